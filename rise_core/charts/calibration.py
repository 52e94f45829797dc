"""Reliability curves: how often the positive class occurs where a model scores so much."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import altair as alt
import pandas as pd

from rise_core.charts.layers import Style
from rise_core.charts.theme import ThemeName, apply_theme, chart_text, palette_for, theme_of

if TYPE_CHECKING:
    from rise_core.calibration import Calibration

__all__ = ["calibration_chart"]

_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


def calibration_chart(
    found: Calibration,
    groups: Sequence[str],
    pos_label: str,
    *,
    theme: ThemeName = "light",
    width: int | Literal["container"] = "container",
    height: int = 360,
) -> alt.LayerChart:
    """Share of positives against mean score, a point a bin with its interval, a line a group.

    Parameters
    ----------
    found : from ``calibrate``
    groups : labels to draw, in legend order
    pos_label : the positive class, for the axis
    theme, width, height : as in ``rise_chart``

    Notes
    -----
    On the diagonal, scores are frequencies; below it the class is over-estimated.
    """
    look = theme_of(theme)
    style = Style(look, palette_for(groups, look))
    table = found.table[found.table["group"].isin(groups)].rename(columns={"group": "curve"})
    # High scores lie so close that a line between them shows no dash: the points tell groups, too.
    shapes = {label: _SHAPES[place % len(_SHAPES)] for place, label in enumerate(groups)}
    table = style.painted(table).assign(shape=table["curve"].map(shapes)).round(5)
    axis = alt.Axis(format=".0%", grid=False, tickCount=5)
    scale = alt.Scale(domain=[0, 1], nice=False)
    x = alt.X("mean_score:Q", title="mean score in the bin", scale=scale, axis=axis)
    y = alt.Y(
        "observed:Q",
        title=f"share of {chart_text(pos_label)}",
        scale=scale,
        axis=alt.Axis(format=".0%", tickCount=5, domain=False, ticks=False),
    )
    diagonal = (
        alt.Chart(pd.DataFrame({"mean_score": [0.0, 1.0], "observed": [0.0, 1.0]}))
        .mark_line(color=look.zero, strokeWidth=1.2)
        .encode(x=x, y=y)
    )
    words = (
        alt.Chart(
            pd.DataFrame(
                {
                    "mean_score": [0.02, 0.98],
                    "observed": [0.95, 0.04],
                    "label": ["under-estimated", "over-estimated"],
                }
            )
        )
        .mark_text(
            fontSize=11,
            color=look.muted,
            align=alt.expr("datum.mean_score < 0.5 ? 'left' : 'right'"),
        )
        .encode(x=x, y=y, text=alt.Text("label:N"))
    )
    intervals = (
        alt.Chart(table)
        .mark_rule(strokeWidth=1.4, opacity=0.7)
        .encode(x=x, y=alt.Y("low:Q"), y2=alt.Y2("high"), stroke=alt.Stroke("paint:N", scale=None))
    )
    labels = list(groups)
    legend = style.legend(labels)
    lines = (
        alt.Chart(table)
        .mark_line(strokeWidth=2)
        .encode(
            x=x,
            y=y,
            color=alt.Color("curve:N", scale=style.scale, legend=legend, sort=labels),
            strokeDash=alt.StrokeDash("curve:N", scale=style.dashes, legend=legend, sort=labels),
        )
    )
    points = (
        alt.Chart(table)
        .mark_point(filled=True, opacity=1, size=55, stroke=look.background, strokeWidth=1)
        .encode(
            x=x,
            y=y,
            fill=alt.Fill("paint:N", scale=None),
            shape=alt.Shape("shape:N", scale=None),
            tooltip=[
                alt.Tooltip("curve:N", title="group"),
                alt.Tooltip("from:Q", title="scores from", format=".3f"),
                alt.Tooltip("to:Q", title="to", format=".3f"),
                alt.Tooltip("n:Q", title="rows", format=","),
                alt.Tooltip("mean_score:Q", title="mean score", format=".3f"),
                alt.Tooltip("observed:Q", title="share of positives", format=".3f"),
                alt.Tooltip("low:Q", title="interval from", format=".3f"),
                alt.Tooltip("high:Q", title="to", format=".3f"),
            ],
        )
    )
    told = "; ".join(
        f"{group.label}: ECE {group.ece:.3f}, {group.low:.3f} to {group.high:.3f}"
        for group in found.groups.values()
    )
    chart = alt.layer(diagonal, words, intervals, lines, points).properties(
        width=width,
        height=height,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        description=f"Reliability: share of {pos_label} against the mean score, by group. {told}.",
    )
    themed: alt.LayerChart = apply_theme(chart, look)
    return themed
