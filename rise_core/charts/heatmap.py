"""A heat map of numbers: rows by columns, every number written, the unsure ones marked."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap
from typing import Any, Literal

import altair as alt
import numpy as np
import pandas as pd

from rise_core.charts.theme import ThemeName, apply_theme, chart_text, theme_of
from rise_core.exceptions import RiseError

__all__ = ["heat_map"]

_COLUMNS = ("row", "column", "value", "distance", "text")
_ROW_PIXELS = 34
# Characters of a line of a column's name at most; longer names take several lines. Names of several
# columns stay apart where the cells have so many pixels together, as on a phone that scrolls.
_LINE, _LINE_PIXELS = 18, 13
_SHORTEST_LINE, _CHARACTER_PIXELS, _CELLS_PIXELS = 8, 6, 480
_SHADES: Mapping[ThemeName, tuple[str, str]] = {
    "light": ("#f0f4f9", "#1f5fa8"),
    "dark": ("#20262d", "#7ab4ea"),
}
# Contrast that small text needs (WCAG 2, AA).
_READABLE = 4.5


def heat_map(
    table: pd.DataFrame,
    *,
    title: str | None = None,
    theme: ThemeName = "light",
    width: int | Literal["container"] = "container",
) -> alt.LayerChart:
    """Cells, stronger in colour the farther from ideal, with their numbers on them.

    Parameters
    ----------
    table : one row a cell. ``row`` and ``column``, in the order they are drawn; ``value``;
        ``distance`` from the ideal, which gives the shade (nan: none); ``text`` written on the
        cell; optional ``unsure`` (not told from random: "~" before the number),
        ``marked`` (a frame around the cell), ``note`` (for the tooltip)
    title, theme, width : as in ``strip_chart``

    Raises
    ------
    RiseError : for a table without rows or without one of the columns above

    Notes
    -----
    Shades end at the ninth tenth of the distances, so that one runaway cell does not bleach all
    others.
    """
    absent = [name for name in _COLUMNS if name not in table.columns]
    if absent or table.empty:
        raise RiseError(
            f"A heat map needs rows and the columns {', '.join(_COLUMNS)}; "
            f"{'it has no rows' if table.empty else f'{absent} is absent'}."
        )
    look = theme_of(theme)
    cells = table.copy()
    for name, usual in (("unsure", False), ("marked", False), ("note", "")):
        cells[name] = cells[name] if name in cells.columns else usual
    cells["named"] = cells["column"]
    line = _CELLS_PIXELS // (_CHARACTER_PIXELS * cells["column"].nunique())
    line = min(max(line, _SHORTEST_LINE), _LINE)
    cells["column"] = ["\n".join(wrap(str(name), line)) or " " for name in cells["column"]]
    cells["label"] = [
        f"~ {text}" if unsure else text
        for text, unsure in zip(cells["text"], cells["unsure"], strict=True)
    ]
    far = cells["distance"].replace([np.inf, -np.inf], np.nan)
    most = float(far.quantile(0.9)) if far.notna().any() else 1.0
    cells["shade"] = (cells["distance"] / (most or 1.0)).clip(0, 1)
    weak, strong = _SHADES[theme]
    cells["ink"] = [_ink(_mixed(weak, strong, shade), look.text) for shade in cells["shade"]]
    cells[["value", "distance"]] = cells[["value", "distance"]].replace([np.inf, -np.inf], np.nan)
    rows, columns = (list(dict.fromkeys(cells[name])) for name in ("row", "column"))
    short: dict[str, Any] = {"labelLimit": 190, "title": None, "domain": False, "ticks": False}
    x = alt.X(
        "column:N",
        sort=columns,
        axis=alt.Axis(
            orient="top",
            labelAngle=0,
            labelExpr="split(datum.label, '\\n')",
            labelOverlap=False,
            labelLimit=0,
            # The first line stands here and the others grow down towards the cells.
            labelPadding=4 + _LINE_PIXELS * max(name.count("\n") for name in columns),
            **{k: v for k, v in short.items() if k != "labelLimit"},
        ),
    )
    y = alt.Y("row:N", sort=rows, axis=alt.Axis(**short))
    base = alt.Chart(cells)
    shades = base.mark_rect(stroke=look.background, strokeWidth=3).encode(
        x=x,
        y=y,
        color=alt.Color(
            "shade:Q",
            scale=alt.Scale(domain=[0, 1], range=[weak, strong], interpolate="rgb"),
            legend=None,
        ),
        tooltip=[
            alt.Tooltip("row:N", title="row"),
            alt.Tooltip("text:N", title="value"),
            alt.Tooltip("note:N", title="note"),
        ],
    )
    parts = [shades]
    if cells["marked"].any():
        parts.append(
            base.transform_filter("datum.marked")
            .mark_rect(fillOpacity=0, stroke=look.text, strokeWidth=1.4)
            .encode(x=x, y=y)
        )
    parts.append(
        base.mark_text(fontSize=12).encode(
            x=x,
            y=y,
            text=alt.Text("label:N"),
            fill=alt.Fill("ink:N", scale=None),
        )
    )
    told = "; ".join(
        f"{row}, {column}: {label}"
        for row, column, label in zip(cells["row"], cells["named"], cells["label"], strict=True)
    )
    chart = alt.layer(*parts).properties(
        width=width,
        height=_ROW_PIXELS * len(rows),
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        description=f"{title or 'Heat map'}. {told}. ~ is not told from random.",
    )
    if title:
        chart = chart.properties(title=chart_text(title, 90))
    themed: alt.LayerChart = apply_theme(chart, look)
    return themed


def _mixed(weak: str, strong: str, shade: float) -> tuple[float, ...]:
    """Colour between two, as the chart's scale mixes it; a cell without a shade is drawn weak."""
    share = 0.0 if np.isnan(shade) else shade
    return tuple((1 - share) * a + share * b for a, b in zip(_rgb(weak), _rgb(strong), strict=True))


def _rgb(color: str) -> tuple[float, ...]:
    return tuple(int(color[place : place + 2], 16) / 255 for place in (1, 3, 5))


def _luminance(rgb: tuple[float, ...]) -> float:
    """Relative luminance of WCAG 2, 0 to 1."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return sum(part * c for part, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _ink(ground: tuple[float, ...], usual: str) -> str:
    """Colour of text that can be read on a ground: the theme's own, or else black or white.

    One of black and white always has a contrast of at least 4.58.
    """
    if _contrast(ground, _rgb(usual)) >= _READABLE:
        return usual
    return max(("#000000", "#ffffff"), key=lambda ink: _contrast(ground, _rgb(ink)))
