"""Geometry and axes of the RISE chart: which residual lies at which pixel."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import pandas as pd

from rise_core.charts.tables import Curves
from rise_core.charts.theme import chart_text

if TYPE_CHECKING:
    from rise_core.evaluation import Evaluation

__all__ = [
    "Panel",
    "Strip",
    "fitted_domain",
    "rank_axis",
    "residual_axis",
    "residual_title",
    "share_strip",
    "signed_domain",
    "strip_room",
]

HEADROOM = 20
STRIP_GAP = 44
STRIP_PIXELS = 90
ROW_PIXELS = 26
# A row of the many-group strip is full at four times, or a quarter of, the overall share.
FULL_ROW = 4.0
_MANY_ROWS = 234


@dataclass(frozen=True)
class Panel:
    """Where the curve and, below it, the share strip lie in one view with one y scale.

    The strip lies below the lowest residual instead of in a view of its own, because concatenated
    views cannot follow the width of a page.

    Attributes
    ----------
    low, high : residuals at the bottom and the top of the curve's part
    pixels : height of that part
    strip : height of the share strip, 0 without one
    gap : room between curve and strip, for the strip's header
    head : room for labels above
    """

    low: float
    high: float
    pixels: float
    strip: float = 0.0
    gap: float = STRIP_GAP
    head: float = HEADROOM

    @property
    def unit(self) -> float:
        """Residual per pixel."""
        return (self.high - self.low) / self.pixels

    @property
    def top(self) -> float:
        """Upper end of the scale."""
        return self.high + self.head * self.unit

    @property
    def strip_top(self) -> float:
        """Y value at which the strip starts."""
        return self.low - self.gap * self.unit

    @property
    def bottom(self) -> float:
        """Lower end of the scale."""
        return self.strip_top - self.strip * self.unit if self.strip else self.low

    @property
    def height(self) -> int:
        """Height of the whole plot in pixels."""
        return round((self.top - self.bottom) / self.unit)

    def below_strip_top(self, pixels: float | pd.Series[float]) -> Any:
        """Y value so many pixels below the top of the strip."""
        return self.strip_top - pixels * self.unit


@dataclass(frozen=True)
class Strip:
    """The share strip in the panel's coordinates.

    Attributes
    ----------
    bars : ``curve``, ``q0``, ``q1``, ``y0``, ``y1``; coloured by the group that is ahead
    lines : ``y`` of the reference lines (each group's share in all rows)
    ticks : y value to label
    header : lines that say what the strip shows
    """

    bars: pd.DataFrame
    lines: pd.DataFrame
    ticks: Mapping[float, str]
    header: str


def strip_room(groups: int) -> tuple[float, float]:
    """Pixels of the share strip and of its header: one curve for two groups, else a row each."""
    if groups <= 2:
        return STRIP_PIXELS, STRIP_GAP
    return min(ROW_PIXELS * groups, max(_MANY_ROWS, 15 * groups)), STRIP_GAP + 32


def share_strip(shares: pd.DataFrame, labels: Sequence[str], panel: Panel) -> Strip:
    """Lay out the shares (``tables.share_table``) below the curve."""
    if len(labels) <= 2:
        return _two_group_strip(shares, labels, panel)
    return _row_strip(shares, labels, panel)


def _two_group_strip(shares: pd.DataFrame, labels: Sequence[str], panel: Panel) -> Strip:
    shown = shares[shares["curve"] == labels[-1]]
    overall = float(shown["overall"].iloc[0])
    low, high = _share_range(shown["share"], overall)

    def at(share: Any) -> Any:
        return panel.below_strip_top(panel.strip * (high - share) / (high - low))

    bars = pd.DataFrame(
        {
            "curve": np.where(shown["share"] >= overall, labels[-1], labels[0]),
            "q0": shown["q0"],
            "q1": shown["q1"],
            "y0": at(overall),
            "y1": at(shown["share"]),
        }
    )
    ticks = {float(at(overall)): f"{overall:.0%}"}
    for share in (low, high):
        if abs(share - overall) > 0.18 * (high - low):
            ticks[float(at(share))] = f"{share:.0%}"
    return Strip(
        bars,
        pd.DataFrame({"y": [float(at(overall))]}),
        ticks,
        f"Share of {chart_text(labels[-1], 18)} (line: {overall:.0%} overall)",
    )


def _share_range(share: pd.Series[float], overall: float) -> tuple[float, float]:
    """Round ends of the strip's axis, at least ten points apart.

    The axis need not start at 0: bars grow from the overall share, which is what they compare.
    """
    low, high = min(float(share.min()), overall), max(float(share.max()), overall)
    step = 0.1 if high - low > 0.2 else 0.05
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    if high - low < 0.1:
        low, high = low - 0.05, high + 0.05
    return max(low, 0.0), min(high, 1.0)


def _row_strip(shares: pd.DataFrame, labels: Sequence[str], panel: Panel) -> Strip:
    row = panel.strip / len(labels)
    place = shares["curve"].map({label: i for i, label in enumerate(labels)}).astype(float)
    ratio = shares["share"] / shares["overall"].where(shares["overall"] > 0, np.nan)
    lift = np.log2(ratio.fillna(1.0).clip(1 / FULL_ROW, FULL_ROW)) / math.log2(FULL_ROW)
    middle = (place + 0.5) * row
    bars = pd.DataFrame(
        {
            "curve": shares["curve"],
            "q0": shares["q0"],
            "q1": shares["q1"],
            "y0": panel.below_strip_top(middle),
            "y1": panel.below_strip_top(middle - lift * (row / 2 - 1)),
        }
    )
    lines = [float(panel.below_strip_top((i + 0.5) * row)) for i in range(len(labels))]
    ticks = {y: chart_text(label, 12) for y, label in zip(lines, labels, strict=True)}
    header = (
        "Curve: the group over-represented,\n"
        "faint where it could be chance\n"
        f"Rows: share ÷ overall share, 1/{FULL_ROW:g} to {FULL_ROW:g}"
    )
    return Strip(bars, pd.DataFrame({"y": lines}), ticks, header)


def signed_domain(ev: Evaluation) -> tuple[float, float]:
    """Whole range of the evaluation's residual, the same for every model."""
    if ev.residual == "signed_error":
        return -1.0, 1.0
    # ŷ − p lies in (−t, 1 − t]; kept symmetrical, so that zero sits in the middle.
    reach = max(ev.threshold, 1 - ev.threshold)
    return -reach, reach


def fitted_domain(curves: Curves) -> tuple[float, float]:
    """Range of the drawn residuals and zero, with a little air."""
    values = curves.overall.residuals
    low, high = min(float(values[0]), 0.0), max(float(values[-1]), 0.0)
    air = 0.04 * (high - low) or 0.1
    return low - air, high + air


def residual_title(ev: Evaluation) -> list[str]:
    """Title of the residual's axis: direction, formula and positive class."""
    positive = chart_text(ev.predictions.pos_label)
    if ev.residual == "signed_error":
        return ["← under-estimated  ·  over-estimated →", f"p − y  (positive: {positive})"]
    return [
        "← decided below score  ·  above score →",
        f"ŷ − p  (positive: {positive}, from {ev.threshold:g})",
    ]


def rank_axis(title: str, ticks: int = 5) -> alt.X:
    """X axis of ranks, 0 to 100 %."""
    return alt.X(
        "rank:Q",
        title=title,
        scale=alt.Scale(domain=[0, 1], nice=False, zero=False),
        axis=alt.Axis(
            format=".0%", grid=False, tickCount=ticks, labelFlush=True, labelOverlap=True
        ),
        # Points arrive in order; sorting them again by rank would swap the two ends of a jump.
        sort=None,
    )


def residual_axis(title: Sequence[str], panel: Panel, strip: Strip | None = None) -> alt.Y:
    """Y axis of residuals, with the strip's own ticks below."""
    labels = {tick: _signed(tick) for tick in _ticks(panel.low, panel.high, panel.pixels)}
    middle: Any = alt.Undefined
    if strip is not None:
        labels |= strip.ticks
        # A part of the height, not pixels: a page may fit the plot to its own height.
        share = (panel.head + panel.pixels / 2) / panel.height
        middle = alt.expr(f"height * {share:.4f}")
    return alt.Y(
        "residual:Q",
        title=list(title) or None,
        scale=alt.Scale(domain=[panel.bottom, panel.top], nice=False, zero=False),
        axis=alt.Axis(
            values=list(labels),
            labelExpr=_label_expression(labels),
            titleY=middle,
            domain=False,
            ticks=False,
            labelOverlap=False,
            # Vega drops every other of the given values where there are more than tickCount.
            tickCount=len(labels) + 1,
            labelPadding=6,
            titlePadding=8,
        ),
    )


def _ticks(low: float, high: float, pixels: float) -> list[float]:
    """Round residuals from low to high, zero among them, at least 36 pixels apart."""
    least = (high - low) * 36 / pixels
    step = next(s * 10.0**e for e in range(-12, 2) for s in (1, 2, 2.5, 5) if s * 10.0**e >= least)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(place * step, 12) for place in range(first, last + 1)]


def _signed(value: float) -> str:
    if value == 0:
        return "0"
    return f"{value:+.10g}".replace("-", "−")


def _label_expression(labels: Mapping[float, str]) -> str:
    """Vega expression that gives every tick its own text."""
    nearest = "''"
    for value, text in labels.items():
        # A group's name is data: json writes it as a literal, so it can never be an expression.
        nearest = f"abs(datum.value - ({value!r})) < 1e-9 ? {json.dumps(text)} : {nearest}"
    return nearest
