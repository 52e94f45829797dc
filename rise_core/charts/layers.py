"""Layers of the RISE chart, each a function of one table (see ``tables``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
import pandas as pd

from rise_core.charts.panel import Panel, Strip
from rise_core.charts.tables import KNEE_SIDES, Curves
from rise_core.charts.theme import Palette, Theme, chart_text

__all__ = [
    "Brush",
    "Style",
    "box_layer",
    "curve_layer",
    "gap_layers",
    "hover_layers",
    "knee_layer",
    "piece_curve_layer",
    "piece_hover_layers",
    "position_ruler_layers",
    "residual_ruler_layers",
    "segment_layers",
    "strip_layers",
    "zero_layer",
]

STAR = (
    "M0.00,-1.50L0.34,-0.47L1.43,-0.46L0.55,0.18L0.88,1.21L0.00,0.58"
    "L-0.88,1.21L-0.55,0.18L-1.43,-0.46L-0.34,-0.47Z"
)
# Up to here medians are labelled in words; beyond, the words would lie on each other.
LABELLED_GROUPS = 4
LABEL_PIXELS = 14


@dataclass(frozen=True)
class Brush:
    """A stretch that can be dragged: its name, its axis, and where it lies at first."""

    name: str
    axis: Literal["x", "y"]
    start: tuple[float, float] | None = None


@dataclass(frozen=True)
class Style:
    """What layers need to know about looks."""

    theme: Theme
    palette: Palette

    @property
    def scale(self) -> alt.Scale:
        """Colour scale of the curves, the same in every layer."""
        return alt.Scale(domain=list(self.palette.labels), range=list(self.palette.colors))

    @property
    def dashes(self) -> alt.Scale:
        """Dash scale of the curves."""
        return alt.Scale(
            domain=list(self.palette.labels), range=[list(d) for d in self.palette.dashes]
        )

    def legend(
        self, labels: Sequence[str], title: str | None = None, width: int | None = None
    ) -> alt.Legend:
        """Legend above the chart, in as many columns as the width has room for.

        The markers' legend is below: side by side, two legends would be cut on a phone. ``width``
        is given where the chart's own is not what there is room for.
        """
        longest = min(max(len(label) for label in labels), 22)
        return alt.Legend(
            title=title,
            orient="top",
            direction="horizontal",
            titleOrient="top",
            titleAnchor="start",
            titleLimit=400,
            values=list(labels),
            columns=alt.expr(f"max(1, floor({width or 'width'} / {48 + 7 * longest}))"),
            symbolType="stroke",
            symbolSize=420,
            symbolStrokeWidth=2.5,
        )

    def painted(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the table with the colour of each row's curve in ``paint``."""
        colors = dict(zip(self.palette.labels, self.palette.colors, strict=True))
        return table.assign(paint=table["curve"].map(colors))


# Markers take their colours from the table, without a scale: Vega-Lite merges the legends of equal
# scales, and a layer whose legend is switched off would switch off that of the curves.
def _fill() -> alt.Fill:
    return alt.Fill("paint:N", scale=None)


def _stroke() -> alt.Stroke:
    return alt.Stroke("paint:N", scale=None)


def zero_layer(theme: Theme) -> list[alt.Chart]:
    """Line of no error."""
    zero = alt.Chart(pd.DataFrame({"residual": [0.0]}))
    return [zero.mark_rule(color=theme.zero, strokeWidth=1.2).encode(y=alt.Y("residual:Q"))]


def segment_layers(segments: pd.DataFrame, panel: Panel, theme: Theme) -> list[alt.Chart]:
    """Cuts at the pooled knees, and the names of the segments above the curve."""
    if segments.empty:
        return []
    cuts = segments[segments["q0"] > segments["q0"].min()].assign(top=panel.top, low=panel.low)
    rules = (
        alt.Chart(cuts)
        .mark_rule(strokeDash=[2, 3], color=theme.muted, opacity=0.75)
        .encode(x=alt.X("q0:Q"), y=alt.Y("low:Q"), y2=alt.Y2("top"))
    )
    named = segments.assign(
        middle=(segments["q0"] + segments["q1"]) / 2,
        room=segments["q1"] - segments["q0"],
        top=panel.top,
        long=[
            name if pd.isna(share) else f"{name} · {share:.0%} of the gap"
            for name, share in zip(segments["name"], segments["share"], strict=True)
        ],
    )
    text = (
        alt.Chart(named)
        .mark_text(baseline="top", dy=3, fontSize=11, color=theme.muted)
        .encode(
            x=alt.X("middle:Q"),
            y=alt.Y("top:Q"),
            text=alt.when("datum.room * width > 6.2 * length(datum.long)")
            .then(alt.value(alt.expr("datum.long")))
            .when("datum.room * width > 6.2 * length(datum.name)")
            .then(alt.value(alt.expr("datum.name")))
            .otherwise(alt.value("")),
        )
    )
    return [rules, text]


def gap_layers(gap: pd.DataFrame, labels: Sequence[str], style: Style) -> list[alt.Chart]:
    """Area between two curves, in the colour of the one that is above."""
    if gap.empty:
        return []
    opacity = 0.13 if style.theme.name == "light" else 0.17
    layers = []
    for label, own in zip(labels, ("first", "second"), strict=True):
        other = "second" if own == "first" else "first"
        layers.append(
            alt.Chart(gap)
            .mark_area(color=style.palette.color(label), opacity=opacity, aria=False)
            .encode(x=alt.X("rank:Q", sort=None), y=alt.Y("high:Q"), y2=alt.Y2(other))
        )
    return layers


def box_layer(boxes: pd.DataFrame, style: Style) -> list[alt.Chart]:
    """Shift boxes, from the left to the right knee of every group."""
    if boxes.empty:
        return []
    # The edge has the dash of the group's curve: corners are its knees, whatever their colour. A
    # layer a dash, since a dash that a column holds does not survive Streamlit's tables.
    return [
        alt.Chart(own)
        .mark_rect(
            fillOpacity=0.07 if len(boxes) <= LABELLED_GROUPS else 0.0,
            strokeOpacity=0.75,
            strokeWidth=1.2,
            strokeDash=list(style.palette.dash(str(label))),
        )
        .encode(
            x=alt.X("x0:Q"),
            x2=alt.X2("x1"),
            y=alt.Y("y0:Q"),
            y2=alt.Y2("y1"),
            fill=_fill(),
            stroke=_stroke(),
        )
        for label, own in style.painted(boxes).groupby("curve", sort=False)
    ]


def residual_ruler_layers(medians: pd.DataFrame, panel: Panel, style: Style) -> list[alt.Chart]:
    """Horizontal rulers at the groups' median residuals (group view)."""
    if medians.empty:
        return []
    medians, muted = style.painted(medians), style.theme.muted
    if len(medians) > LABELLED_GROUPS:
        # Many rulers are ticks on the edge: lines from side to side would be a fence.
        ticks = medians.assign(x0=0.0, x1=0.022)
        top = ticks.nlargest(1, "residual").assign(label="medians")
        return [
            alt.Chart(ticks)
            .mark_rule(strokeWidth=2.5)
            .encode(
                x=alt.X("x0:Q"),
                x2=alt.X2("x1"),
                y=alt.Y("residual:Q"),
                stroke=_stroke(),
                tooltip=[
                    alt.Tooltip("curve:N", title="median of"),
                    alt.Tooltip("residual:Q", title="residual", format="+.3f"),
                ],
            ),
            alt.Chart(top)
            .mark_text(align="left", baseline="bottom", dy=-4, fontSize=11, color=muted)
            .encode(x=alt.X("x0:Q"), y=alt.Y("residual:Q"), text=alt.Text("label:N")),
        ]
    rules = (
        alt.Chart(medians)
        .mark_rule(strokeDash=[2, 3], strokeWidth=1.3, opacity=0.9)
        .encode(y=alt.Y("residual:Q"), stroke=_stroke())
    )
    # Rising curves leave the upper left and the lower right free.
    ordered = medians.sort_values("residual", ascending=False, ignore_index=True)
    half = (len(ordered) + 1) // 2 if len(ordered) > 1 else 0
    layers = [rules]
    for part, up in ((ordered.iloc[:half], True), (ordered.iloc[half:], False)):
        if part.empty:
            continue
        labels = part.assign(
            rank=0.008 if up else 0.992,
            y=_spread(part["residual"].tolist(), LABEL_PIXELS * panel.unit, up=up),
            label=[
                f"median {chart_text(curve, 22)} {_signed(value)}"
                for curve, value in zip(part["curve"], part["residual"], strict=True)
            ],
        )
        place: dict[str, Any] = (
            {"align": "left", "baseline": "bottom", "dy": -3}
            if up
            else {"align": "right", "baseline": "top", "dy": 4}
        )
        layers.append(
            alt.Chart(labels)
            .mark_text(fontSize=11, **place)
            .encode(x=alt.X("rank:Q"), y=alt.Y("y:Q"), text=alt.Text("label:N"), fill=_fill())
        )
    return layers


def position_ruler_layers(medians: pd.DataFrame, panel: Panel, style: Style) -> list[alt.Chart]:
    """Vertical rulers at the groups' median positions (global view)."""
    if medians.empty:
        return []
    muted = style.theme.muted
    ordered = style.painted(medians).sort_values("position", ignore_index=True)
    ordered = ordered.assign(low=panel.low)
    if len(ordered) > LABELLED_GROUPS:
        ticks = ordered.assign(upper=panel.low + 16 * panel.unit)
        last = ticks.iloc[[-1]].assign(label="medians")
        return [
            alt.Chart(ticks)
            .mark_rule(strokeWidth=2.5)
            .encode(
                x=alt.X("position:Q"),
                y=alt.Y("low:Q"),
                y2=alt.Y2("upper"),
                stroke=_stroke(),
                tooltip=[
                    alt.Tooltip("curve:N", title="median of"),
                    alt.Tooltip("position:Q", title="percentile of all rows", format=".1%"),
                ],
            ),
            alt.Chart(last)
            .mark_text(align="left", baseline="top", dx=5, fontSize=11, color=muted)
            .encode(x=alt.X("position:Q"), y=alt.Y("upper:Q"), text=alt.Text("label:N")),
        ]
    rules = (
        alt.Chart(ordered.assign(upper=panel.high))
        .mark_rule(strokeDash=[2, 3], strokeWidth=1.3)
        .encode(x=alt.X("position:Q"), y=alt.Y("low:Q"), y2=alt.Y2("upper"), stroke=_stroke())
    )
    side, line = _label_places(ordered["position"].tolist())
    named = ordered.assign(
        side=side,
        y=[panel.low + (3 + LABEL_PIXELS * at) * panel.unit for at in line],
        label=[
            f"median {chart_text(curve, 18)} {value:.0%}"
            for curve, value in zip(ordered["curve"], ordered["position"], strict=True)
        ],
    )
    layers = [rules]
    places: tuple[tuple[Literal["left", "right"], int], ...] = (("right", -4), ("left", 4))
    for align, dx in places:
        part = named[named["side"] == align]
        if not part.empty:
            layers.append(
                alt.Chart(part)
                .mark_text(align=align, baseline="bottom", dx=dx, fontSize=11)
                .encode(
                    x=alt.X("position:Q"), y=alt.Y("y:Q"), text=alt.Text("label:N"), fill=_fill()
                )
            )
    return layers


def _label_places(positions: list[float]) -> tuple[list[str], list[int]]:
    """Text alignment and line of labels at rising positions, such that none is cut or covered."""
    side = []
    for place, position in enumerate(positions):
        if position < 0.34:
            side.append("left")
        elif position > 0.66:
            side.append("right")
        else:
            side.append("right" if place < len(positions) / 2 else "left")
    if side in (["right", "left"], ["right"], ["left"]):
        return side, [0] * len(side)
    return side, list(range(len(side)))


def curve_layer(
    points: pd.DataFrame,
    style: Style,
    brush: Brush | None,
    *,
    width: float = 2.2,
    listed: bool = True,
    room: int | None = None,
) -> list[alt.Chart]:
    """Curves of the groups and of all rows, with a legend where ``listed``."""
    labels = list(style.palette.labels)
    legend = style.legend(labels, width=room) if listed else None
    lines = (
        alt.Chart(points)
        .mark_line(strokeWidth=width, strokeJoin="round")
        .encode(
            x=alt.X("rank:Q", sort=None),
            y=alt.Y("residual:Q"),
            color=alt.Color("curve:N", scale=style.scale, legend=legend, sort=labels),
            strokeDash=alt.StrokeDash("curve:N", scale=style.dashes, legend=legend, sort=labels),
        )
    )
    return [_brushed(lines, brush, style.theme)]


def piece_curve_layer(
    points: pd.DataFrame, style: Style, brush: Brush | None, *, listed: bool
) -> list[alt.Chart]:
    """The global curve in pieces, each in the colour and dash of the over-represented group.

    ``listed`` adds a legend; with a row per group in the strip below, the rows are the legend.
    """
    labels = [label for label in style.palette.labels if label != style.palette.pooled]
    legend = style.legend(labels, "over-represented (faint: could be chance)") if listed else None
    lines = (
        alt.Chart(points)
        .mark_line(strokeWidth=3.4, strokeCap="butt", strokeJoin="round")
        .encode(
            x=alt.X("rank:Q", sort=None),
            y=alt.Y("residual:Q"),
            color=alt.Color("curve:N", scale=style.scale, legend=legend, sort=labels),
            strokeDash=alt.StrokeDash("curve:N", scale=style.dashes, legend=legend, sort=labels),
            opacity=alt.when("datum.significant").then(alt.value(1)).otherwise(alt.value(0.4)),
            detail=alt.Detail("piece:N"),
        )
    )
    return [_brushed(lines, brush, style.theme)]


def _brushed(lines: alt.Chart, brush: Brush | None, theme: Theme) -> alt.Chart:
    if brush is None:
        return lines
    start: Any = alt.Undefined
    if brush.start is not None:
        start = {brush.axis: list(brush.start)}
    drag = alt.selection_interval(
        name=brush.name,
        encodings=[brush.axis],
        zoom=False,
        value=start,
        mark=alt.BrushConfig(fill=theme.accent, fillOpacity=0.12, stroke=theme.accent),
    )
    return lines.add_params(drag)


def hover_layers(
    table: pd.DataFrame,
    curves: Curves,
    unit: str,
    panel: Panel,
    theme: Theme,
    *,
    name: str = "hover",
) -> list[alt.Chart]:
    """One rule and one tooltip for all curves at a rank.

    ``name`` is the selection's, which must be its own in every chart of a grid.
    """
    tooltip = [alt.Tooltip("rank:Q", title="rank", format=".1%")]
    tooltip += [
        alt.Tooltip(f"c{place}:Q", title=f"{label} ({unit})", format="+.3f")
        for place, label in enumerate(curves.all)
    ]
    return _hover(table, tooltip, panel, theme, opacity=0.0, name=name)


def piece_hover_layers(
    table: pd.DataFrame, curves: Curves, unit: str, panel: Panel, theme: Theme
) -> list[alt.Chart]:
    """Counts and shares of every piece of the global curve."""
    tooltip = [
        alt.Tooltip("ranks:N", title="percentiles"),
        alt.Tooltip("residuals:N", title=unit),
        *(alt.Tooltip(f"t{i}:N", title=label) for i, label in enumerate(curves.labels)),
        alt.Tooltip("verdict:N", title="over-represented"),
    ]
    return _hover(table, tooltip, panel, theme, opacity=0.06, name="hover")


def _hover(
    table: pd.DataFrame,
    tooltip: list[alt.Tooltip],
    panel: Panel,
    theme: Theme,
    *,
    opacity: float,
    name: str,
) -> list[alt.Chart]:
    # Invisible full-height columns catch the pointer: exact, and far lighter than a Voronoi mesh.
    # Their own mark, not a nearest-point search, so that the brush below stays usable.
    hover = alt.selection_point(
        name=name, on="pointerover", clear="pointerout", fields=["q0"], empty=False
    )
    spans = table.assign(bottom=panel.bottom, top=panel.high)
    columns = (
        alt.Chart(spans)
        .mark_rect(color=theme.text, opacity=0, aria=False)
        .encode(
            x=alt.X("q0:Q"),
            x2=alt.X2("q1"),
            y=alt.Y("bottom:Q"),
            y2=alt.Y2("top"),
            tooltip=tooltip,
            opacity=alt.when(hover).then(alt.value(opacity)).otherwise(alt.value(0)),
        )
        .add_params(hover)
    )
    rule = (
        alt.Chart(spans)
        .mark_rule(color=theme.muted, strokeWidth=1, aria=False)
        .encode(
            x=alt.X("rank:Q"),
            y=alt.Y("bottom:Q"),
            y2=alt.Y2("top"),
            opacity=alt.when(hover).then(alt.value(0.9)).otherwise(alt.value(0)),
        )
    )
    return [rule, columns]


def strip_layers(strip: Strip, panel: Panel, style: Style) -> list[alt.Chart]:
    """Share of the groups along the curve, against their overall share."""
    bars = (
        alt.Chart(style.painted(strip.bars))
        .mark_rect(opacity=0.85, aria=False)
        .encode(x=alt.X("q0:Q"), x2=alt.X2("q1"), y=alt.Y("y0:Q"), y2=alt.Y2("y1"), fill=_fill())
    )
    lines = (
        alt.Chart(strip.lines)
        .mark_rule(color=style.theme.text, strokeWidth=1)
        .encode(y=alt.Y("y:Q"))
    )
    lines_of = strip.header.split("\n")
    header = pd.DataFrame(
        {
            "rank": 0.0,
            # The last line stands just above the strip, the others above it.
            "y": [panel.strip_top + 16 * at * panel.unit for at in range(len(lines_of))][::-1],
            "label": lines_of,
        }
    )
    text = (
        alt.Chart(header)
        .mark_text(
            align="left",
            baseline="bottom",
            dy=-6,
            fontSize=12,
            # Text that sticks out would shrink the plot, which is fitted to the page with it.
            limit=alt.expr("width"),
            color=style.theme.text,
        )
        .encode(x=alt.X("rank:Q"), y=alt.Y("y:Q"), text=alt.Text("label:N"))
    )
    return [bars, lines, text]


def knee_layer(knees: pd.DataFrame, style: Style) -> list[alt.Chart]:
    """◆ left and ★ right knees, with what is known about them on hover."""
    if knees.empty:
        return []
    shape = alt.Shape(
        "side:N",
        scale=alt.Scale(domain=list(KNEE_SIDES), range=["diamond", STAR]),
        legend=alt.Legend(
            title=None,
            orient="bottom",
            direction="horizontal",
            symbolFillColor=style.theme.muted,
            symbolStrokeColor=style.theme.muted,
            symbolSize=90,
        ),
    )
    tooltip: list[Any] = [
        alt.Tooltip("curve:N", title="curve"),
        alt.Tooltip("side:N", title="knee"),
        alt.Tooltip("residual:Q", title="residual", format="+.4f"),
        alt.Tooltip("percentile:Q", title="percentile of all rows", format=".1%"),
        alt.Tooltip("own_percentile:Q", title="rank within the group", format=".1%"),
        alt.Tooltip("strength:Q", title="strength", format=".2f"),
        alt.Tooltip("shape:N", title="shape"),
    ]
    return [
        alt.Chart(style.painted(knees))
        .mark_point(
            filled=True, opacity=1, size=130, stroke=style.theme.background, strokeWidth=1.4
        )
        .encode(
            x=alt.X("rank:Q"),
            y=alt.Y("residual:Q"),
            fill=_fill(),
            shape=shape,
            tooltip=tooltip,
            description=alt.Description("label:N"),
        )
    ]


def _spread(values: list[float], least: float, *, up: bool) -> list[float]:
    """Move falling values apart to a least distance, upwards or downwards."""
    placed: list[float] = []
    for value in reversed(values) if up else values:
        if placed and up:
            value = max(value, placed[-1] + least)
        elif placed:
            value = min(value, placed[-1] - least)
        placed.append(value)
    return placed[::-1] if up else placed


def _signed(value: float) -> str:
    if 0 < abs(value) < 0.005:
        return "≈ 0"
    return f"{value:+.2f}".replace("-", "−")
