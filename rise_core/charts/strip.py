"""Indicators as dots with their interval and the band of random groupings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any, Literal

import altair as alt
import numpy as np
import pandas as pd

from rise_core.charts.spark import svg_uri
from rise_core.charts.theme import Theme, ThemeName, apply_theme, theme_of
from rise_core.exceptions import RiseError

__all__ = ["STRIP_COLUMNS", "strip_chart", "strip_domain", "strip_svg"]

STRIP_COLUMNS = (
    *("name", "value", "low", "high", "null_low", "null_high"),
    *("domain", "unstable"),
)
_LABEL_HEIGHT = 14
_ENDS = ("value", "low", "high", "null_low", "null_high")
# What lies farther from the median than so many median deviations is drawn as an arrow instead of
# flattening the others. The deviation is taken as at least a tenth of the median.
_FENCE = 10.0
_FENCED_FROM = 3


def strip_chart(
    frame: pd.DataFrame,
    *,
    scale: Literal["shared", "own"] = "shared",
    domain: tuple[float, float] | None = None,
    fair: float | None = None,
    names: bool = True,
    values: bool = True,
    axis: bool = True,
    title: str | None = None,
    number_format: str | None = None,
    theme: ThemeName = "light",
    width: int | Literal["container"] = "container",
    row_height: int = 26,
) -> alt.LayerChart:
    """One row a name: a dot for the value, a line for its interval, a grey band for the null.

    Parameters
    ----------
    frame : columns ``name``, ``value``, ``low``, ``high`` (interval), ``null_low``, ``null_high``
        (95 % of random groupings), ``domain`` (None or ``(low, high)``; read with
        ``scale="own"``), ``unstable`` (a denominator whose interval reaches 0). nan is not known;
        a nan value shows as "–". All but ``name`` and ``value`` may be absent
    scale : "shared" puts all rows on one axis (one indicator, many models), "own" gives every row
        its own (one model, many indicators)
    domain : ends of the shared axis; found from the rows if None, see ``strip_domain``
    fair : value to mark with a line on a shared axis
    names, values, axis : write names on the left, values on the right, the shared axis below
    title : above the chart
    number_format : format of the values, as in ``format(value, number_format)``; three decimals
        below 10 and fewer above if None
    theme, width : as in ``rise_chart``
    row_height : pixels

    Returns
    -------
    One layered view

    Raises
    ------
    RiseError : for a table without rows or without ``name`` and ``value``

    Notes
    -----
    What does not fit on the axis is cut at its edge and ends in an arrow, and its number stays on
    the right: one unstable model must not flatten the others. An unstable value is hollow and its
    interval dashed.
    """
    look = theme_of(theme)
    rows = _complete(frame)
    if scale == "shared":
        low, high = domain or strip_domain(rows)
        ends = pd.DataFrame({"lo": low, "hi": high}, index=rows.index)
    else:
        ends = pd.DataFrame([_own_domain(rows.loc[place]) for place in rows.index])
        ends.columns, ends.index = pd.Index(["lo", "hi"]), rows.index
        low, high = 0.0, 1.0
    table = _placed(rows, ends, own=scale == "own", number_format=number_format)
    x = alt.X(
        "x_value:Q",
        title=None,
        scale=alt.Scale(domain=[low, high], nice=False, zero=False),
        axis=alt.Axis(tickCount=4, domain=False, ticks=False, labelFlush=True, labelOverlap=True)
        if axis and scale == "shared"
        else None,
    )
    parts = _strip_layers(table, look, values)
    if fair is not None and scale == "shared" and low <= fair <= high:
        mark = alt.Chart(pd.DataFrame({"fair": [fair]}))
        rule = mark.mark_rule(color=look.zero, strokeWidth=1.2).encode(x=alt.X("fair:Q"))
        parts.insert(0, rule)
    base = alt.Chart(table).mark_point(opacity=0).encode(x=x, y=_row_axis(table, names))
    chart = alt.layer(base, *parts).properties(
        width=width,
        height=row_height * len(table),
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        description=_describe(table, title),
    )
    if title:
        chart = chart.properties(title=title)
    themed: alt.LayerChart = apply_theme(chart, look)
    return themed


def strip_domain(frame: pd.DataFrame) -> tuple[float, float]:
    """Ends of a shared axis that one runaway row does not decide.

    Unstable rows count only where there are no others; from three rows on, ends more than ten
    median absolute deviations from the median are left out.
    """
    rows = _complete(frame)
    steady = rows[~rows["unstable"]]
    if not np.isfinite(steady["value"].to_numpy(float)).any():
        steady = rows
    lows = np.nanmin(_or_nan(steady[list(_ENDS)]), axis=1)
    highs = np.nanmax(_or_nan(steady[list(_ENDS)]), axis=1)
    lows, highs = lows[np.isfinite(lows)], highs[np.isfinite(highs)]
    if lows.size == 0:
        return 0.0, 1.0
    low, high = float(lows.min()), float(highs.max())
    if lows.size >= _FENCED_FROM:
        high = float(highs[highs <= np.median(highs) + _reach(highs)].max())
        low = float(lows[lows >= np.median(lows) - _reach(lows)].min())
    air = 0.04 * (high - low) or 0.05 * max(abs(high), 1e-3)
    # Most indicators cannot be negative: an axis that starts just above 0 starts at 0.
    floor = 0.0 if 0 <= low < 0.25 * high else low - air
    return floor, high + air


def strip_svg(
    value: float,
    *,
    domain: tuple[float, float],
    low: float = math.nan,
    high: float = math.nan,
    null_low: float = math.nan,
    null_high: float = math.nan,
    unstable: bool = False,
    label: str = "",
    theme: ThemeName | None = None,
    width: int = 110,
    height: int = 22,
) -> str:
    """Draw one row of a strip chart as an image for a table cell.

    Images of one column sort by their values.

    Parameters
    ----------
    value, low, high, null_low, null_high, unstable : as in ``strip_chart``
    domain : ends of the axis, which all rows of a table should share
    label : written above the strip
    theme : "light" or "dark"; None draws colours that can be read on both
    width, height : pixels; a label adds to the height

    Returns
    -------
    ``data:`` URI of an SVG; nothing is fetched to show it
    """
    look = theme_of(theme or "light")
    band, accent = (look.band, look.accent) if theme else ("#8a929a59", "#3f87cf")
    start, end = domain
    room = width - 8

    def at(number: float) -> float:
        return 4 + (min(max(number, start), end) - start) / ((end - start) or 1.0) * room

    middle = height / 2
    parts: list[str] = []
    if math.isfinite(null_low) and math.isfinite(null_high):
        span = max(at(null_high) - at(null_low), 1.5)
        parts.append(
            f'<rect x="{at(null_low):.1f}" y="3" width="{span:.1f}" height="{height - 6}" '
            f'fill="{band}"/>'
        )
    if not math.isnan(low) and not math.isnan(high):
        dash = ' stroke-dasharray="3 2"' if unstable else ""
        parts.append(
            f'<path d="M{at(low):.1f},{middle}H{at(high):.1f}" stroke="{accent}" '
            f'stroke-width="2"{dash}/>'
        )
        for number, tip in ((low, -4), (high, 4)):
            if not start <= number <= end:
                x = at(number)
                parts.append(
                    f'<path d="M{x:.1f},{middle - 3.5}L{x + tip:.1f},{middle}'
                    f'L{x:.1f},{middle + 3.5}Z" fill="{accent}"/>'
                )
    if start <= value <= end:
        fill = "none" if unstable else accent
        parts.append(
            f'<circle cx="{at(value):.1f}" cy="{middle}" r="3.6" fill="{fill}" '
            f'stroke="{accent}" stroke-width="1.4"/>'
        )
    body = "".join(parts)
    if label:
        ink = look.text if theme else "#8a929a"
        body = (
            f'<text x="{width / 2}" y="12" text-anchor="middle" fill="{ink}" '
            f'font-family="system-ui, sans-serif" font-size="12.5">{escape(label)}</text>'
            f'<g transform="translate(0 {_LABEL_HEIGHT})">{body}</g>'
        )
        height += _LABEL_HEIGHT
    return svg_uri(body, width, height, order=_sortable(value))


def _sortable(value: float) -> str:
    """Text that sorts as the number does; undefined last. Indicators are not negative."""
    return "~" if math.isnan(value) else f"{min(max(value, 0.0), 1e11):018.6f}"


def _reach(ends: Any) -> float:
    middle = float(np.median(ends))
    return _FENCE * max(float(np.median(np.abs(ends - middle))), 0.1 * abs(middle))


def _complete(frame: pd.DataFrame) -> pd.DataFrame:
    missing = [column for column in ("name", "value") if column not in frame.columns]
    if missing:
        raise RiseError(
            f"A strip chart needs the columns name and value; {missing} is absent from "
            f"{list(frame.columns)}."
        )
    if frame.empty:
        raise RiseError("A strip chart needs at least one row, and the table has none.")
    rows = frame.reset_index(drop=True).copy()
    for column in _ENDS:
        given = rows[column] if column in rows.columns else math.nan
        rows[column] = pd.to_numeric(pd.Series(given, index=rows.index)).astype(float)
    rows["unstable"] = (
        rows["unstable"].astype("boolean").fillna(False).astype(bool)
        if "unstable" in rows.columns
        else False
    )
    if "domain" not in rows.columns:
        rows["domain"] = None
    return rows


def _or_nan(part: pd.DataFrame) -> Any:
    """Finite numbers only, with a column that keeps nanmin quiet about rows without any."""
    numbers = part.to_numpy(float)
    numbers = np.where(np.isfinite(numbers), numbers, np.nan)
    return numbers[~np.isnan(numbers).all(axis=1)]


def _own_domain(row: pd.Series[Any]) -> tuple[float, float]:
    given = row["domain"]
    if isinstance(given, Sequence) and len(given) == 2:
        return float(given[0]), float(given[1])
    return strip_domain(row.to_frame().T)


def _placed(
    rows: pd.DataFrame, ends: pd.DataFrame, *, own: bool, number_format: str | None
) -> pd.DataFrame:
    """Rows in the coordinates of the axis, cut at its ends, with the texts that are shown."""
    table = rows.drop(columns=["domain"])
    span = (ends["hi"] - ends["lo"]).replace(0.0, 1.0)
    for column in _ENDS:
        cut = rows[column].clip(ends["lo"], ends["hi"])
        table[f"x_{column}"] = (cut - ends["lo"]) / span if own else cut
    reach_low = rows[["value", "low"]].min(axis=1)
    reach_high = rows[["value", "high"]].max(axis=1)
    table["beyond_low"] = reach_low < ends["lo"]
    table["beyond_high"] = reach_high > ends["hi"]
    table["shown"] = rows["value"].between(ends["lo"], ends["hi"])
    table["edge_low"] = 0.0 if own else ends["lo"]
    table["edge_high"] = 1.0 if own else ends["hi"]
    table["text"] = [_number(value, number_format) for value in rows["value"]]
    table["interval"] = _ranges(rows["low"], rows["high"], number_format)
    table["null"] = _ranges(rows["null_low"], rows["null_high"], number_format)
    inside = (rows["value"] >= rows["null_low"]) & (rows["value"] <= rows["null_high"])
    known = rows[["null_low", "null_high", "value"]].notna().all(axis=1)
    table["verdict"] = np.select(
        [rows["value"].isna(), rows["unstable"], known & inside, known],
        [
            "undefined",
            "unstable: the denominator may be 0",
            "not distinguishable from a random grouping",
            "outside the band of random groupings",
        ],
        default="",
    )
    # JSON has no infinity; the texts have said it.
    numbers = table.select_dtypes("number").columns
    table[numbers] = table[numbers].replace([np.inf, -np.inf], np.nan)
    return table


def _strip_layers(table: pd.DataFrame, look: Theme, values: bool) -> list[alt.Chart]:
    base = alt.Chart(table)
    y = _row_axis(table, True)
    tooltip = [
        alt.Tooltip("name:N", title="name"),
        alt.Tooltip("text:N", title="value"),
        alt.Tooltip("interval:N", title="95 % interval"),
        alt.Tooltip("null:N", title="random groupings"),
        alt.Tooltip("verdict:N", title="reading"),
    ]
    parts = [
        base.transform_filter("isValid(datum.x_null_low) && isValid(datum.x_null_high)")
        .mark_bar(color=look.band, height={"band": 0.62}, minBandSize=2)
        .encode(x=alt.X("x_null_low:Q"), x2=alt.X2("x_null_high"), y=y),
        base.transform_filter("isValid(datum.x_low) && isValid(datum.x_high)")
        .mark_rule(color=look.accent, strokeWidth=2)
        .encode(
            x=alt.X("x_low:Q"),
            x2=alt.X2("x_high"),
            y=y,
            strokeDash=alt.when("datum.unstable")
            .then(alt.value([4, 3]))
            .otherwise(alt.value([1, 0])),
        ),
    ]
    for side, angle in (("low", 270), ("high", 90)):
        if table[f"beyond_{side}"].any():
            parts.append(
                base.transform_filter(f"datum.beyond_{side}")
                .mark_point(shape="triangle", angle=angle, filled=True, opacity=1, size=55)
                .encode(x=alt.X(f"edge_{side}:Q"), y=y, color=alt.value(look.accent))
            )
    parts.append(
        base.transform_filter("datum.shown")
        .mark_point(size=75, stroke=look.accent, strokeWidth=1.6, opacity=1)
        .encode(
            x=alt.X("x_value:Q"),
            y=y,
            fill=alt.when("datum.unstable")
            .then(alt.value(look.background))
            .otherwise(alt.value(look.accent)),
        )
    )
    if values:
        parts.append(
            base.mark_text(align="left", dx=10, fontSize=12, color=look.text).encode(
                x=alt.value("width"), y=y, text=alt.Text("text:N")
            )
        )
    parts.append(
        base.mark_bar(opacity=0, height={"band": 1}).encode(
            x=alt.X("edge_low:Q"), x2=alt.X2("edge_high"), y=y, tooltip=tooltip
        )
    )
    return parts


def _row_axis(table: pd.DataFrame, names: bool) -> alt.Y:
    axis = alt.Axis(domain=False, ticks=False, labelLimit=150, labelPadding=8) if names else None
    return alt.Y("name:N", sort=list(dict.fromkeys(table["name"])), title=None, axis=axis)


def _number(value: float, number_format: str | None) -> str:
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if number_format is None:
        number_format = ".3f" if abs(value) < 10 else ".1f" if abs(value) < 1000 else ",.0f"
    return format(value, number_format).replace("-", "−")


def _ranges(low: pd.Series[float], high: pd.Series[float], number_format: str | None) -> list[str]:
    return [
        "–"
        if math.isnan(a) or math.isnan(b)
        else f"{_number(a, number_format)} to {_number(b, number_format)}"
        for a, b in zip(low, high, strict=True)
    ]


def _describe(table: pd.DataFrame, title: str | None) -> str:
    rows = "; ".join(
        f"{name} {text}" + ("" if interval == "–" else f" ({interval})")
        for name, text, interval in zip(
            table["name"], table["text"], table["interval"], strict=True
        )
    )
    return f"{title or 'Indicators'}: value and 95 % interval. {rows}."
