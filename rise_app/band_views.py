"""A stretch of the curve on the Diagnose page: drag, pick or type it, and see who is in it."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from html import escape
from math import isnan
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from rise_app.address import chosen, remember
from rise_app.cards import facts_html, section_html
from rise_app.jobs import jobs
from rise_core import Evaluation
from rise_core.band import Columns, Lift, Profile, band_ends, columns_of, profile
from rise_core.charts.tables import View
from rise_core.charts.theme import ThemeName
from rise_core.columns import Roles
from rise_core.gap import Band
from rise_core.report.html import strip_html
from rise_core.tracking import Table

__all__ = ["Source", "show_chart_with_band", "source_of"]

# Name of the brush in the chart and of the band in the address.
_BRUSH = "band"

_ROWS_SHOWN = 500
_LIFTS_SHOWN = 12
_DIGITS = 4
# What the last brush said, so that letting go of it is told from never having brushed.
_LAST = "band brushed"
# What the band was set to by anything but the brush: it becomes part of the chart's key, so that
# a chart begins with its brush where the band is.
_SET = "band set"
# The chart that is on the page, by its key.
_CHART = "band chart"
# What band each widget showed last.
_SHOWN = "band shown"

Ends = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Source:
    """The table that an evaluation's rows came from.

    Attributes
    ----------
    frame : all of its columns
    key : names its content
    made_of : columns that are no kinds of rows: label, score, weight, names of rows
    """

    frame: pd.DataFrame
    key: str
    made_of: tuple[str, ...]


def source_of(table: Table, roles: Roles) -> Source:
    """Return the table of a run as something to look bands up in."""
    named = (roles.y_true, roles.y_prob, roles.sample_weight, roles.row_id, roles.cluster)
    return Source(table.frame, table.key, tuple(name for name in named if name is not None))


@st.fragment
def show_chart_with_band(
    draw: Callable[..., Any], ev: Evaluation, view: View, source: Source, theme: ThemeName
) -> None:
    """Show the curve with a brush and, below it, who is in the band; reruns by itself.

    Parameters
    ----------
    draw : makes the chart, with ``selection`` and ``band`` as in `rise_chart`
    ev, view : what it shows
    source : the table of the rows
    """
    columns = jobs().ask(
        ("columns", source.key, source.made_of), partial(columns_of, source.frame, source.made_of)
    )
    key = _chart_key(draw, ev, view, source)
    event = st.altair_chart(
        _chart_of(key, draw),
        theme=None,
        width="stretch",
        key=key,
        on_select="rerun",
        selection_mode=[_BRUSH],
    )
    _take_brush(ev, key, event)
    _show_band(ev, source, columns, view, theme)


def _chart_key(draw: Callable[..., Any], ev: Evaluation, view: View, source: Source) -> str:
    """Return a key that changes with what is drawn and with a band set by hand.

    A chart of the same key keeps its brush; a new one begins with it where the band is.
    """
    options = {} if not isinstance(draw, partial) else draw.keywords
    few = ev.residual_values[:: max(ev.n // 100, 1)].tobytes()
    drawn = (source.key, ev.feature, ev.n, ev.settings, tuple(ev.indicators), few, options)
    return f"chart {view} {zlib.crc32(repr(drawn).encode()):x} {st.session_state.get(_SET, 0)}"


def _band_of_address() -> Ends | None:
    """Return the band that is chosen, as global percentiles."""
    text = chosen(_BRUSH)
    try:
        q0, q1 = (float(end) for end in (text or "").split("-"))
    except ValueError:
        found = None
    else:
        found = (q0, q1) if 0 <= q0 < q1 <= 1 else None
    if text is not None and found is None:
        remember(_BRUSH, None)
    return found


def _text(ends: Ends) -> str:
    return "-".join(f"{end:.{_DIGITS}f}".rstrip("0").rstrip(".") for end in ends)


def _choose(ends: Ends | None, *, brushed: bool) -> None:
    """Keep a band; one that was not brushed moves the brush."""
    if ends is not None:
        ends = round(ends[0], _DIGITS), round(ends[1], _DIGITS)
        if ends[0] >= ends[1]:
            return
    text = None if ends is None else _text(ends)
    remember(_BRUSH, text)
    if not brushed:
        st.session_state[_SET] = st.session_state.get(_SET, 0) + 1
        st.session_state.pop(_LAST, None)


def _chart_of(key: str, draw: Callable[..., Any]) -> Any:
    """Return the chart of a key, made once: a drag draws nothing anew.

    Its brush lies at first where the band is.
    """
    made: dict[str, Any] = st.session_state.setdefault(_CHART, {})
    if key not in made:
        made.clear()
        made[key] = draw(selection=_BRUSH, band=_band_of_address())
    return made[key]


def _take_brush(ev: Evaluation, key: str, event: Any) -> None:
    """Adopt what was dragged on the chart; letting go of the brush drops the band."""
    dragged = dict(event.selection.get(_BRUSH) or {})
    now = (key, tuple((name, tuple(ends)) for name, ends in dragged.items()))
    before = st.session_state.get(_LAST)
    st.session_state[_LAST] = now
    if now == before or (not dragged and (before is None or before[0] != key)):
        return
    if not dragged:
        _choose(None, brushed=True)
    elif "rank" in dragged:
        low, high = sorted(dragged["rank"])
        _choose((max(low, 0.0), min(high, 1.0)), brushed=True)
    elif "residual" in dragged:
        low, high = sorted(dragged["residual"])
        _choose(band_ends(ev, low, high), brushed=True)


def _show_band(
    ev: Evaluation, source: Source, cut: Future[Columns], view: View, theme: ThemeName
) -> None:
    """Show the ways to choose a band, and, where one is chosen, who is in it."""
    ends = _band_of_address()
    _choose_by_hand(ev, ends)
    if ends is None:
        drag = "sideways" if view == "global" else "up or down"
        st.caption(
            f"Drag {drag} on the chart, pick a segment or type two percentiles to see who is in "
            "that part of the curve."
        )
        return
    band = ev.band(*ends)
    st.html(_head(ev, band, view))
    if not band.n:
        st.text("No row lies here: many rows share one residual just beside it.")
        return
    columns = cut.result()
    found = profile(ev, band, columns)
    st.html(_groups_html(ev, band, theme))
    st.html(_lifts_html(found, theme))
    _show_looked_at(found, columns)
    _show_rows(ev, band, source)


def _choose_by_hand(ev: Evaluation, ends: Ends | None) -> None:
    segments = {s.name: (round(s.q0, _DIGITS), round(s.q1, _DIGITS)) for s in ev.segments}
    segments = {name: ends for name, ends in segments.items() if ends[0] < ends[1]}
    segment = _key_of("segment", ends)
    first, last = f"{_key_of('numbers', ends)} from", f"{_key_of('numbers', ends)} to"
    low, high = ends or (0.0, 1.0)
    st.session_state.setdefault(segment, next((n for n, e in segments.items() if e == ends), None))
    st.session_state.setdefault(first, 100 * low)
    st.session_state.setdefault(last, 100 * high)

    def take_segment() -> None:
        if not _is_shown("segment", segment):
            return
        picked = st.session_state[segment]
        _choose(None if picked is None else segments[picked], brushed=False)
        _comes_from("segment")

    def take_numbers() -> None:
        if not _is_shown("numbers", first.removesuffix(" from")):
            return
        low, high = sorted((st.session_state[first], st.session_state[last]))
        _choose((low / 100, high / 100), brushed=False)
        _comes_from("numbers")

    with st.container(horizontal=True, vertical_alignment="bottom"):
        if segments:
            st.pills("Segment", list(segments), key=segment, on_change=take_segment)
        for label, key in (("From, %", first), ("To, %", last)):
            st.number_input(
                label,
                0.0,
                100.0,
                step=1.0,
                format="%.2f",
                key=key,
                on_change=take_numbers,
                width=130,
                help="Percentile of all rows, sorted by their residual.",
            )
        st.button(
            "Clear band",
            disabled=ends is None,
            on_click=lambda: _choose(None, brushed=False),
            icon=":material/close:",
        )


# A widget that is given a new value while the browser still holds the old one sends the old one
# back as if a person had chosen it. So a band that comes from elsewhere makes new widgets; one
# that a widget set itself keeps it, and the keyboard's focus in it.


def _key_of(widget: str, ends: Ends | None) -> str:
    """Return the key of a widget, another one where the band did not come from it."""
    shown: dict[str, tuple[int, str | None]] = st.session_state.setdefault(_SHOWN, {})
    text = None if ends is None else _text(ends)
    number, before = shown.get(widget, (0, None))
    if text != before:
        number += 1
    shown[widget] = number, text
    return f"band {widget} {number}"


def _is_shown(widget: str, key: str) -> bool:
    """Whether a widget is the one that is on the page now.

    A request that left the browser before the page was drawn anew still holds the widgets of
    before, and Streamlit calls back for them.
    """
    shown: dict[str, tuple[int, str | None]] = st.session_state.get(_SHOWN, {})
    return widget in shown and key == f"band {widget} {shown[widget][0]}"


def _comes_from(widget: str) -> None:
    """Say that a widget shows the band already."""
    shown: dict[str, tuple[int, str | None]] = st.session_state[_SHOWN]
    shown[widget] = shown[widget][0], chosen(_BRUSH)


def _head(ev: Evaluation, band: Band, view: View) -> str:
    facts = {"percentiles": f"{100 * band.q0:.4g} % to {100 * band.q1:.4g} %"}
    facts["rows"] = f"{band.n:,} of {ev.n:,} ({band.n / ev.n:.1%})"
    if band.residual_range and band.score_range:
        facts["residuals"] = "{:+.3f} to {:+.3f}".format(*band.residual_range).replace("-", "−")
        facts["scores"] = "{:.3f} to {:.3f}".format(*band.score_range)
        positives = sum(group.positives for group in band.groups.values())
        facts[ev.predictions.pos_label] = f"{positives:,}"
        facts[ev.predictions.neg_label] = f"{band.n - positives:,}"
        wrong = sum(g.false_positives + g.false_negatives for g in band.groups.values())
        facts["decided wrongly"] = f"{wrong:,} ({wrong / band.n:.1%})"
    if band.gap is not None and not isnan(band.gap.share):
        facts["share of W1"] = f"{band.gap.share:.0%}"
    note = ""
    if view == "groups":
        note = (
            '<p class="rise-note">Percentiles are those of all rows. In this view a band is a '
            "stretch of residuals: a rank within a group is another residual in each group.</p>"
        )
    return section_html("In this band") + facts_html(facts) + note


def _groups_html(ev: Evaluation, band: Band, theme: ThemeName) -> str:
    top = _top([group.high for group in band.groups.values()])
    rows = []
    for label, group in band.groups.items():
        negatives = group.n - group.positives
        sentence = f"{group.lift:.2f} times its share of all rows"
        if not isnan(group.low):
            sentence += f", interval {group.low:.2f} to {group.high:.2f}"
        strip = strip_html(
            group.lift, (0, top), low=group.low, high=group.high, ideal=1.0, text=sentence
        )
        rows.append(
            f'<tr><th scope="row">{escape(label)}</th><td>{group.n:,}</td>'
            f"<td>{group.share:.1%}<small>{group.overall_share:.1%} overall</small></td>"
            f'<td title="{sentence}"><b>{group.lift:.2f}×</b>{strip}</td>'
            f"<td>{_of(group.false_positives, negatives)}</td>"
            f"<td>{_of(group.false_negatives, group.positives)}</td></tr>"
        )
    by = escape(ev.feature)
    head = "".join(
        f'<th scope="col">{name}</th>'
        for name in (by, "Rows", "Share", "Lift", "False positives", "False negatives")
    )
    return (
        section_html("Groups")
        + f'<div class="rise-scroll"><table class="rise-matrix rise-{theme}"><thead><tr>{head}'
        f"</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        '<p class="rise-note">Lift: share in the band over share of all rows; line: 95 % '
        "interval. Errors: of the band's rows with that label.</p>"
    )


def _of(count: int, rows: int) -> str:
    return f"{count:,}<small>of {rows:,}</small>"


def _top(ends: list[float]) -> float:
    return min(max([2.0, *(end for end in ends if not isnan(end))]), 6.0)


def _lifts_html(found: Profile, theme: ThemeName) -> str:
    heading = section_html("Over-represented here")
    told = found.found
    if not told:
        return heading + (
            f'<p class="rise-note">None of the {len(found.lifts)} values looked at is found here '
            "more often than chance gives.</p>"
        )
    top = _top([x.high for x in told[:_LIFTS_SHOWN]])
    rows = "".join(_lift_row(x, top) for x in told[:_LIFTS_SHOWN])
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Value", "Rows", "Share", "Lift"))
    more = len(told) - _LIFTS_SHOWN
    rest = f" {more} more are in the table below." if more > 0 else ""
    return heading + (
        f'<div class="rise-scroll"><table class="rise-matrix rise-{theme}"><thead><tr>{head}'
        f"</tr></thead><tbody>{rows}</tbody></table></div>"
        f'<p class="rise-note">Line: interval that holds for all {len(found.lifts)} values looked '
        f"at together. The chance that anything stands here by luck is at most "
        f"{1 - found.confidence:.0%}.{rest}</p>"
    )


def _lift_row(x: Lift, top: float) -> str:
    sentence = f"{x.lift:.2f} times, interval {x.low:.2f} to {x.high:.2f}"
    strip = strip_html(x.lift, (0, top), low=x.low, high=x.high, ideal=1.0, text=sentence)
    return (
        f'<tr><th scope="row">{escape(x.value)}<small>{escape(x.column)}</small></th>'
        f"<td>{x.n:,}<small>of {x.n_all:,}</small></td>"
        f"<td>{x.share:.1%}<small>{x.overall_share:.1%} overall</small></td>"
        f'<td title="{sentence}"><b>{x.lift:.2f}×</b>{strip}</td></tr>'
    )


def _show_looked_at(found: Profile, columns: Columns) -> None:
    with st.expander(f"All {len(found.lifts)} values looked at"):
        st.dataframe(
            found.to_frame(),
            hide_index=True,
            alt="All values looked at, with their share in the band and in all rows.",
            column_config={
                "n": st.column_config.NumberColumn("rows here", format="localized"),
                "n_all": st.column_config.NumberColumn("rows in all", format="localized"),
                "share": st.column_config.NumberColumn("share here", format="percent"),
                "overall_share": st.column_config.NumberColumn("share of all", format="percent"),
                "p_value": st.column_config.NumberColumn("p", format="%.2g"),
                "adjusted": st.column_config.NumberColumn("p, for all values", format="%.2g"),
                **{
                    name: st.column_config.NumberColumn(name, format="%.2f")
                    for name in ("lift", "low", "high")
                },
            },
        )
        for name, reason in columns.skipped.items():
            st.text(f"{name} is not looked through: {reason}.")
        st.caption("Label and score are left out: the residual is made of them.")


def _show_rows(ev: Evaluation, band: Band, source: Source) -> None:
    """Show the first rows, worst first, and offer all of them as a file."""
    residuals = ev.residual_values[np.searchsorted(ev.predictions.row_positions, band.rows)]
    name = "residual"
    while name in source.frame.columns:
        name += " (RISE)"

    def rows(most: int) -> pd.DataFrame:
        size = np.abs(residuals)
        picked = np.arange(size.size)
        if most < size.size:  # a band may hold a million rows, of which few are shown
            picked = np.argpartition(-size, most)[:most]
        picked = picked[np.argsort(-size[picked], kind="stable")]
        table = source.frame.iloc[band.rows[picked]].copy()
        table.insert(0, name, residuals[picked])
        return table

    def file() -> bytes:
        return rows(band.n).to_csv(index=False).encode("utf-8")

    shown = rows(_ROWS_SHOWN)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.html(section_html("Rows, largest residual first"))
        st.download_button(
            f"Save {band.n:,} rows as CSV",
            file,
            file_name=f"band {_text((band.q0, band.q1))}.csv",
            mime="text/csv",
            icon=":material/download:",
            on_click="ignore",
        )
    st.dataframe(shown, hide_index=True, height=280, alt="Rows in the band.")
    if band.n > len(shown):
        st.caption(f"The first {len(shown):,} of {band.n:,} rows are shown; the file has all.")
