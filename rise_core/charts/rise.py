"""The RISE chart: sorted residuals of a model, and where its groups sit on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import altair as alt
import pandas as pd

from rise_core.charts import layers as draw
from rise_core.charts import tables
from rise_core.charts.panel import (
    Panel,
    Strip,
    fitted_domain,
    rank_axis,
    residual_axis,
    residual_title,
    share_strip,
    signed_domain,
    strip_room,
)
from rise_core.charts.tables import Curves, View
from rise_core.charts.theme import ThemeName, apply_theme, palette_for, theme_of
from rise_core.exceptions import RiseError

if TYPE_CHECKING:
    from rise_core.evaluation import Evaluation

__all__ = ["describe", "hover_unit", "on_axes", "rise_chart"]

STRIP_CUTS = 40


def rise_chart(
    ev: Evaluation,
    *,
    view: View = "groups",
    color_by: str | None = None,
    segments: int = 40,
    pieces_method: Literal["adaptive", "equal"] = "adaptive",
    show_segments: bool = True,
    show_knees: bool = True,
    show_rulers: bool = True,
    show_boxes: bool | None = None,
    y_domain: Literal["full", "fit"] = "full",
    theme: ThemeName = "light",
    width: int | Literal["container"] = "container",
    height: int = 420,
    selection: str | None = "band",
    band: tuple[float, float] | None = None,
) -> alt.LayerChart:
    """Sorted residuals of a model, by group.

    Parameters
    ----------
    ev : one evaluated model
    view : "groups" draws each group's own sorted residuals against its own rank; "global" draws
        one curve of all rows, coloured by the group that is over-represented, with each group's
        share along it underneath
    color_by : "environment", "correctness" or another column; the evaluation's own groups if None
    segments : most pieces the global curve is cut into
    pieces_method : "adaptive" cuts where the mix of groups changes, "equal" into equal counts
    show_segments, show_knees, show_rulers : cuts at the pooled knees; ◆ ★; medians
    show_boxes : a rectangle per group from left to right knee; None shows them in
        the global view of up to four groups
    y_domain : "full" is the residual's whole range, the same for every model; "fit" is what the
        drawn curves take
    theme : "light" or "dark"
    width : pixels, or "container" to follow the page
    height : pixels of the curve's part; the global view adds its strip below
    selection : name of a brush, None for no brush. The global view is brushed along its
        percentiles (x, field ``rank``), the group view along the residuals (y, field
        ``residual``): a rank within a group is another residual in each group, while a stretch of
        residuals is the same rows in both views
    band : global percentiles that the brush covers at first

    Returns
    -------
    One layered view, themed, which compiles outside of Streamlit as it is

    Raises
    ------
    RiseError : for a view or a theme that there is not

    Notes
    -----
    shared definition: method, "Curve, rank, percentile" and "Adaptive segments".
    """
    if view not in ("groups", "global"):
        raise RiseError(f'view must be "groups" or "global", got {view!r}')
    look = theme_of(theme)
    curves = tables.curves_of(ev, color_by)
    style = draw.Style(look, palette_for(curves.labels, look))
    curves = replace(curves, pooled=style.palette.pooled)
    low, high = signed_domain(ev) if y_domain == "full" else fitted_domain(curves)
    if show_boxes is None:
        show_boxes = view == "global" and len(curves.groups) <= draw.LABELLED_GROUPS
    panel = Panel(low, high, height)
    strip: Strip | None = None
    if view == "global" and len(curves.groups) > 1:
        room, gap = strip_room(len(curves.groups))
        panel = replace(panel, strip=room, gap=gap)
        strip = share_strip(_shares(ev, curves, color_by), curves.labels, panel)
    unit = hover_unit(ev)
    brush = None if selection is None else _brush(ev, view, selection, band)

    parts: list[alt.Chart] = draw.zero_layer(look)
    if show_segments:
        # Shares of W1 belong to the gap between the compared groups; other colours show another.
        own = curves.groups is ev.groups
        parts += draw.segment_layers(tables.segment_table(ev, shares=own), panel, look)
    if view == "groups":
        parts += draw.gap_layers(tables.gap_table(curves), curves.labels, style)
    if show_boxes:
        parts += draw.box_layer(tables.box_table(curves, view), style)
    if show_rulers:
        rulers = draw.residual_ruler_layers if view == "groups" else draw.position_ruler_layers
        parts += rulers(tables.median_table(curves), panel, style)
    if strip is not None:
        parts += draw.strip_layers(strip, panel, style)
    if view == "global":
        pieces = ev.pieces(k=segments, by=color_by, method=pieces_method)
        points = tables.piece_curve_table(ev.overall, pieces)
        parts += draw.piece_curve_layer(points, style, brush, listed=len(curves.groups) == 2)
        hover = tables.piece_table(pieces, curves.labels)
        parts += draw.piece_hover_layers(hover, curves, unit, panel, look)
    else:
        parts += draw.curve_layer(tables.curve_table(curves), style, brush)
        parts += draw.hover_layers(tables.hover_table(curves), curves, unit, panel, look)
    if show_knees:
        parts += draw.knee_layer(tables.knee_table(curves, view), style)

    title = "rank within the group" if view == "groups" else "percentile of all rows"
    axes = rank_axis(title), residual_axis(residual_title(ev), panel, strip)
    chart = alt.layer(*on_axes(parts, *axes)).properties(
        width=width,
        height=panel.height,
        # Only the width is fitted: a legend of many groups must not eat the plot.
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        description=describe(ev, curves, view),
    )
    themed: alt.LayerChart = apply_theme(chart, look)
    return themed


def _brush(ev: Evaluation, view: View, name: str, band: tuple[float, float] | None) -> draw.Brush:
    if view == "global":
        return draw.Brush(name, "x", band)
    start = None if band is None else (ev.overall.at(band[0]), ev.overall.at(band[1]))
    return draw.Brush(name, "y", start)


def on_axes(parts: Sequence[alt.Chart], x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Put the axes on a layer of their own, below the others, which share its scales."""
    frame = pd.DataFrame({"rank": [0.0], "residual": [0.0]})
    return [alt.Chart(frame).mark_point(opacity=0, aria=False).encode(x=x, y=y), *parts]


def hover_unit(ev: Evaluation) -> str:
    """Formula of the residual, which names what a hovered number is."""
    return "p − y" if ev.residual == "signed_error" else "ŷ − p"


def _shares(ev: Evaluation, curves: Curves, color_by: str | None) -> pd.DataFrame:
    # Fewer cuts on few rows: a share of two rows says nothing.
    cuts = min(STRIP_CUTS, max(ev.n // 4, 1))
    return tables.share_table(ev.pieces(k=cuts, by=color_by, method="equal"), curves)


def describe(ev: Evaluation, curves: Curves, view: View) -> str:
    """Alternative text: what the picture shows, with its medians."""
    what = (
        "Each group's sorted residuals against its own rank"
        if view == "groups"
        else "Sorted residuals of all rows, coloured by the over-represented group"
    )
    medians = ", ".join(
        f"{label} {curve.median_residual:+.2f} ({curve.n:,} rows)"
        for label, curve in curves.groups.items()
    )
    return (
        f"RISE chart. {what}, from −1 (most under-estimated) to 1 (most over-estimated), "
        f"residual {hover_unit(ev)}, positive class {ev.predictions.pos_label}, by {curves.by}. "
        f"Median residuals: {medians}."
    )
