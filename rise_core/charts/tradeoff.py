"""Accuracy against a fairness indicator: which models no other one beats on both."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import altair as alt
import pandas as pd

from rise_core.charts.labels import Align, Placement, place_labels
from rise_core.charts.theme import FONT, ThemeName, apply_theme, theme_of
from rise_core.wording import METRICS, format_short

__all__ = ["TRADEOFF_COLUMNS", "tradeoff_chart"]

TRADEOFF_COLUMNS = ("model", "x", "x_low", "x_high", "y", "y_low", "y_high", "on_front", "unstable")
_AIR = 0.08
# Half a page on a laptop: names that are apart there are apart on a wall too.
_USUAL_WIDTH = 440


def tradeoff_chart(
    frame: pd.DataFrame,
    fairness: str,
    *,
    baseline: float = math.nan,
    theme: ThemeName = "light",
    width: int | Literal["container"] = "container",
    height: int = 380,
) -> alt.LayerChart:
    """One dot a model with its intervals, the front, and the majority baseline.

    Parameters
    ----------
    frame : `TRADEOFF_COLUMNS`; x is the fairness indicator, y the accuracy. Rows without a value
        are not drawn
    fairness : key of the fairness indicator
    baseline : accuracy of always deciding for the more frequent label
    theme, width, height : as in ``rise_chart``

    Notes
    -----
    The plot zooms and pans, so that models on top of each other come apart. An interval that a
    runaway denominator makes is cut at the plot's edge; a model beyond it stands on the edge, with
    its value.
    """
    look = theme_of(theme)
    metric = METRICS[fairness]
    rows = frame.dropna(subset=["x", "y"]).reset_index(drop=True)
    rows["front"] = rows["on_front"].map({True: "no model is better on both", False: "beaten"})
    x_domain = _domain(rows, "x")
    y_domain = _domain(rows, "y", extra=baseline)
    rows["shown"] = rows["x"].clip(*x_domain)
    # JSON has no ∞: an interval without an end would be drawn without a length.
    rows["from"] = rows["x_low"].replace(-math.inf, x_domain[0])
    rows["to"] = rows["x_high"].replace(math.inf, x_domain[1])
    rows["value"] = [format_short(x) for x in rows["x"]]
    ends = zip(rows["x_low"], rows["x_high"], strict=True)
    rows["interval"] = [
        f"{format_short(low)} to {format_short(high)}" if low == low else "–" for low, high in ends
    ]
    above, below = rows["x"] > x_domain[1], rows["x"] < x_domain[0]
    rows["text"] = [
        f"{name} ({value} →)" if high else f"(← {value}) {name}" if low else str(name)
        for name, value, high, low in zip(rows["model"], rows["value"], above, below, strict=True)
    ]
    x = alt.X(
        "shown:Q",
        title=f"{metric.name}, {metric.meaning} {metric.arrow}",
        scale=alt.Scale(domain=x_domain, nice=False),
        axis=alt.Axis(tickCount=6),
    )
    y = alt.Y(
        "y:Q",
        title="Accuracy ↑",
        scale=alt.Scale(domain=y_domain, nice=False),
        axis=alt.Axis(tickCount=6),
    )
    colour = alt.Color(
        "front:N",
        title=None,
        scale=alt.Scale(
            domain=["no model is better on both", "beaten"],
            range=[look.groups[1], look.accent],
        ),
        legend=alt.Legend(orient="top", symbolSize=90),
    )
    base = alt.Chart(rows)
    bars = base.mark_rule(strokeWidth=1.2, opacity=0.55, clip=True)
    dots = base.mark_point(filled=True, size=95, opacity=1, clip=True).encode(
        x=x,
        y=y,
        color=colour,
        shape=alt.Shape(
            "front:N",
            title=None,
            scale=alt.Scale(
                domain=["no model is better on both", "beaten"], range=["diamond", "circle"]
            ),
        ),
        tooltip=[
            alt.Tooltip("model:N", title="Model"),
            alt.Tooltip("y:Q", title="Accuracy", format=".3f"),
            alt.Tooltip("value:N", title=metric.name),
            alt.Tooltip("interval:N", title="Its interval"),
        ],
    )
    # A model at the edge has its name inside the plot.
    sides: list[Align | None] = [
        "right" if high else "left" if low else None for high, low in zip(above, below, strict=True)
    ]
    plot = (_USUAL_WIDTH if width == "container" else width, height)
    names = [
        alt.Chart(part)
        .mark_text(**style, fontSize=11, color=look.text, font=FONT)
        .encode(x=x, y=y, text="text:N")
        for style, part in _names(rows, x_domain, y_domain, plot, sides)
    ]
    front = (
        alt.Chart(rows[rows["on_front"].astype(bool)].sort_values("x"))
        .mark_line(strokeDash=[4, 3], strokeWidth=1.2, color=look.groups[1], clip=True)
        .encode(x=x, y=y, order="shown:Q")
    )
    layers = [
        bars.encode(x=_from(x, "from"), x2="to:Q", y=y, color=colour),
        bars.encode(x=x, y=_from(y, "y_low"), y2="y_high:Q", color=colour),
        front,
        dots,
        *names,
    ]
    if not math.isnan(baseline):
        level = alt.Chart(pd.DataFrame({"y": [baseline], "text": ["majority baseline"]}))
        layers += [
            level.mark_rule(color=look.muted, strokeDash=[2, 3]).encode(y=y),
            level.mark_text(
                align="left", dx=4, dy=-6, fontSize=10.5, color=look.muted, clip=True
            ).encode(y=y, x=alt.value(0), text="text:N"),
        ]
    layers[3] = layers[3].add_params(alt.selection_interval(bind="scales", name="zoom"))
    chart = alt.layer(*layers).properties(
        width=width, height=height, description=_describe(rows, metric.name)
    )
    themed: alt.LayerChart = apply_theme(chart, look)
    return themed


def _names(
    rows: pd.DataFrame,
    x_domain: list[float],
    y_domain: list[float],
    plot: tuple[int, int],
    sides: list[Align | None],
) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Yield the names that stand alike beside their dots, with that style: a layer each."""
    width, height = plot

    def across(column: str) -> list[float]:
        part = (rows[column] - x_domain[0]) / (x_domain[1] - x_domain[0])
        return (part.clip(0, 1) * width).tolist()

    def down(column: str) -> list[float]:
        part = (y_domain[1] - rows[column]) / (y_domain[1] - y_domain[0])
        return (part.clip(0, 1) * height).tolist()

    x, y = across("shown"), down("y")
    level = zip(across("from"), y, across("to"), y, strict=True)
    upright = zip(x, down("y_high"), x, down("y_low"), strict=True)
    places = place_labels(
        x,
        y,
        rows["text"].tolist(),
        width=width,
        height=height,
        sides=sides,
        # A model without an interval has no lines.
        lines=[line for line in (*level, *upright) if not any(map(math.isnan, line))],
    )
    alike: dict[tuple[Placement, bool], list[int]] = {}
    for i, (place, side) in enumerate(zip(places, sides, strict=True)):
        alike.setdefault((place, side is None), []).append(i)
    for (place, clip), members in alike.items():
        yield {**place._asdict(), "baseline": "middle", "clip": clip}, rows.iloc[members]


def _from(channel: Any, column: str) -> Any:
    """Return a copy of a channel that reads another column."""
    other = channel.copy()
    other.shorthand = f"{column}:Q"
    return other


def _domain(rows: pd.DataFrame, axis: str, extra: float = math.nan) -> list[float]:
    """Ends of an axis: all values, and the intervals of the models whose numbers are steady."""
    steady = rows[~rows["unstable"].astype(bool)] if axis == "x" else rows
    ends = pd.concat(
        [
            rows[axis] if steady.empty else steady[axis],
            steady[f"{axis}_low"],
            steady[f"{axis}_high"],
            pd.Series([extra]),
        ]
    ).dropna()
    ends = ends[ends.abs() != math.inf]
    if ends.empty:
        return [0.0, 1.0]
    values = steady[axis] if not steady.empty else rows[axis]
    centre, reach = float(values.median()), float((values - values.median()).abs().median())
    # One interval of hundreds would press all models into a corner.
    if axis == "x" and len(values) > 2:
        far = 10 * max(reach, 0.1 * abs(centre), 1e-3)
        ends = ends[(ends - centre).abs() <= far] if (ends - centre).abs().max() > far else ends
    low, high = float(ends.min()), float(ends.max())
    air = _AIR * (high - low) or 0.05
    return [low - air, high + air]


def _describe(rows: pd.DataFrame, name: str) -> str:
    if rows.empty:
        return f"Accuracy against {name}: no model has both values."
    best = ", ".join(rows.loc[rows["on_front"].astype(bool), "model"].astype(str))
    return (
        f"Accuracy against {name} of {len(rows)} models. No model is better on both than: {best}."
    )
