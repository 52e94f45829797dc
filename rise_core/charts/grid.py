"""Small multiples: the group curves of several models on the same axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import altair as alt
import pandas as pd

from rise_core.charts import layers as draw
from rise_core.charts import tables
from rise_core.charts.panel import Panel, rank_axis, residual_axis, signed_domain
from rise_core.charts.rise import describe, hover_unit, on_axes
from rise_core.charts.theme import (
    Theme,
    ThemeName,
    apply_theme,
    chart_text,
    palette_for,
    theme_of,
)
from rise_core.exceptions import RiseError

if TYPE_CHECKING:
    from rise_core.evaluation import Evaluation

__all__ = ["curve_grid", "curve_legend", "curve_panels"]

# A small picture shows no more than this, and twenty of them must stay light.
POINTS = 500
HOVER_RANKS = 40


def curve_panels(
    models: Mapping[str, Evaluation],
    *,
    color_by: str | None = None,
    theme: ThemeName = "light",
    width: int | Literal["container"] = "container",
    height: int = 170,
) -> dict[str, alt.LayerChart]:
    """One small chart a model, all with the same axes and colours, to be laid out by the page.

    Parameters
    ----------
    models : name to evaluation, 1 to 20 or so; all with the same residual
    color_by : as in ``rise_chart``
    theme : "light" or "dark"
    width : pixels, or "container" to follow the column it is put in
    height : pixels of the plot

    Returns
    -------
    name to chart, in the order that came; colours are those of all models' groups together, and
    ``curve_legend`` names them once for all

    Raises
    ------
    RiseError : for no models, or for models with different residuals
    """
    look, panel, style = _common(models, color_by, theme, height)
    panels = {}
    for name, ev in models.items():
        chart = _panel(name, ev, color_by, panel, style)
        fit = alt.AutoSizeParams(type="fit-x", contains="padding")
        panels[name] = apply_theme(
            chart.properties(width=width, height=panel.height, autosize=fit), look
        )
    return panels


def curve_legend(
    models: Mapping[str, Evaluation],
    *,
    color_by: str | None = None,
    theme: ThemeName = "light",
    width: int | Literal["container"] = "container",
) -> alt.Chart:
    """Legend of ``curve_panels`` by itself, to stand above them.

    Parameters
    ----------
    models, color_by, theme, width : as in ``curve_panels``
    """
    look, _, style = _common(models, color_by, theme, 1)
    legend = style.legend(style.palette.labels)
    rows = pd.DataFrame({"curve": list(style.palette.labels)})
    chart = (
        alt.Chart(rows)
        .mark_line(opacity=0)
        .encode(
            color=alt.Color("curve:N", scale=style.scale, legend=legend),
            strokeDash=alt.StrokeDash("curve:N", scale=style.dashes, legend=legend),
        )
        .properties(
            width=width,
            height=1,
            autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
            description="Legend: " + ", ".join(style.palette.labels),
        )
    )
    themed: alt.Chart = apply_theme(chart, look)
    return themed


def curve_grid(
    models: Mapping[str, Evaluation],
    *,
    columns: int = 4,
    color_by: str | None = None,
    theme: ThemeName = "light",
    panel_width: int = 220,
    panel_height: int = 150,
) -> alt.ConcatChart:
    """All models in one chart of fixed size, in rows of ``columns``: for a file or a wall.

    Parameters
    ----------
    models, color_by, theme : as in ``curve_panels``
    columns : models a row; a page of w pixels has room for ``w // (panel_width + 60)``
    panel_width, panel_height : pixels of each plot
    """
    look, panel, style = _common(models, color_by, theme, panel_height)
    room = min(max(columns, 1), len(models)) * panel_width
    charts = [
        _panel(
            name, ev, color_by, panel, style, number=place, room=room if place == 0 else None
        ).properties(width=panel_width, height=panel.height)
        for place, (name, ev) in enumerate(models.items())
    ]
    grid = alt.concat(*charts, columns=max(columns, 1), spacing=18)
    themed: alt.ConcatChart = apply_theme(grid, look)
    return themed


def _common(
    models: Mapping[str, Evaluation], color_by: str | None, theme: str, height: int
) -> tuple[Theme, Panel, draw.Style]:
    if not models:
        raise RiseError("A grid of curves needs at least one model, and none came.")
    kinds = {ev.residual for ev in models.values()}
    if len(kinds) > 1:
        raise RiseError(
            f"Curves on the same axes need the same residual; these models have {sorted(kinds)}."
        )
    look = theme_of(theme)
    labels: Sequence[str] = list(
        dict.fromkeys(
            label for ev in models.values() for label in tables.curves_of(ev, color_by).labels
        )
    )
    domains = [signed_domain(ev) for ev in models.values()]
    panel = Panel(min(d[0] for d in domains), max(d[1] for d in domains), height, head=2)
    return look, panel, draw.Style(look, palette_for(labels, look))


def _panel(
    name: str,
    ev: Evaluation,
    color_by: str | None,
    panel: Panel,
    style: draw.Style,
    *,
    number: int = 0,
    room: int | None = None,
) -> alt.LayerChart:
    curves = replace(tables.curves_of(ev, color_by), pooled=style.palette.pooled)
    parts = draw.zero_layer(style.theme)
    parts += draw.gap_layers(tables.gap_table(curves, ranks=80), curves.labels, style)
    points = tables.curve_table(curves, total=POINTS)
    parts += draw.curve_layer(points, style, None, width=1.7, listed=room is not None, room=room)
    hover = tables.hover_table(curves, ranks=HOVER_RANKS)
    parts += draw.hover_layers(
        hover, curves, hover_unit(ev), panel, style.theme, name=f"hover_{number}"
    )
    axes = on_axes(parts, rank_axis("", ticks=3), residual_axis((), panel))
    text = f"{name}. {describe(ev, curves, 'groups')}"
    chart = alt.layer(*axes, title=chart_text(name, 34), description=text)
    assert isinstance(chart, alt.LayerChart)  # a facet only with alt.facet in it
    return chart
