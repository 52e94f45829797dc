"""Pieces of HTML. Text that comes in is foreign and escaped; `Markup` is what was made here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import inf, isfinite, isnan, nan
from pathlib import Path
from typing import Any

import numpy as np

__all__ = [
    "STRIP_STYLE",
    "Markup",
    "facts",
    "items",
    "json_block",
    "link",
    "plain",
    "section",
    "strip_html",
    "table",
    "text",
]

STRIP_STYLE = Path(__file__).with_name("strip.css")
"""Style sheet of what `strip_html` gives, for every page that shows it."""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: object) -> Markup:
    """Escape what is not `Markup` yet."""
    return value if isinstance(value, Markup) else Markup(escape(str(value)))


def section(name: str, title: str, *parts: str) -> Markup:
    """Return a part of the report with its heading; ``name`` is its anchor."""
    return Markup(
        f'<section id="{escape(name)}" aria-labelledby="{escape(name)}-title">'
        f'<h2 id="{escape(name)}-title">{text(title)}</h2>{"".join(parts)}</section>'
    )


def table(
    caption: str,
    head: Sequence[object],
    rows: Iterable[Sequence[object]],
    kind: str = "plain",
    numbers: Iterable[int] = (),
) -> Markup:
    """Return a table; the first cell of every row is its heading.

    Parameters
    ----------
    caption : what the table shows; also the name of the region that scrolls
    head : column headings
    rows : cells of each row; a `Markup` that begins with ``<td`` is a cell already
    kind : class that the style sheet knows
    numbers : columns whose cells are numbers
    """
    right = set(numbers)

    def cell(place: int, value: object) -> str:
        if isinstance(value, Markup) and value.startswith("<td"):
            return value
        if place == 0:
            return f'<th scope="row">{text(value)}</th>'
        return f"<td{' class=number' if place in right else ''}>{text(value)}</td>"

    titles = "".join(
        f'<th scope="col"{" class=number" if i in right else ""}>{text(title)}</th>'
        for i, title in enumerate(head)
    )
    body = "".join(
        f"<tr>{''.join(cell(i, value) for i, value in enumerate(row))}</tr>" for row in rows
    )
    return Markup(
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}">'
        f'<table class="{kind}"><caption>{text(caption)}</caption>'
        f"<thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def facts(known: Mapping[str, object]) -> Markup:
    """Return names and their values."""
    rows = "".join(f"<div><dt>{text(k)}</dt><dd>{text(v)}</dd></div>" for k, v in known.items())
    return Markup(f"<dl>{rows}</dl>")


def items(lines: Iterable[object]) -> Markup:
    """Return a list of sentences."""
    return Markup(f"<ul>{''.join(f'<li>{text(line)}</li>' for line in lines)}</ul>")


def link(url: str | None, label: str) -> Markup:
    """Return a link to a page of the web; anything else that calls itself a link is only text."""
    if url is None or not url.lower().startswith(("https://", "http://")):
        return text(label)
    return Markup(f'<a href="{escape(url)}" rel="noreferrer noopener">{text(label)}</a>')


def plain(value: Any) -> Any:
    """Return a copy that JSON can hold: nan is None, infinity is the text "inf"."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not isfinite(value):
        return None if isnan(value) else "inf" if value == inf else "-inf"
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def json_block(name: str, value: Any) -> Markup:
    """Return data for programs; nothing in it can end the element or start another."""
    written = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        written = written.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(f'<script type="application/json" id="{escape(name)}">{written}</script>')


def strip_html(
    value: float,
    domain: tuple[float, float],
    *,
    low: float = nan,
    high: float = nan,
    null_low: float = nan,
    null_high: float = nan,
    ideal: float = nan,
    text: str = "",
) -> str:
    """Draw value, interval and null on one line; an end beyond the scale becomes an arrow.

    Boxes and not SVG: Streamlit strips SVG from HTML.

    Parameters
    ----------
    value : drawn as a dot
    domain : ends of the scale
    low, high, null_low, null_high : interval and null; nan is not drawn
    ideal : a line to compare with, such as parity
    text : what a screen reader says
    """
    start, stop = domain

    def at(number: float) -> float:
        return 100 * (min(max(number, start), stop) - start) / ((stop - start) or 1.0)

    def stretch(kind: str, first: float, last: float) -> str:
        left = at(first)
        return f'<span class="{kind}" style="left:{left:.1f}%;width:{at(last) - left:.1f}%"></span>'

    parts = ['<span class="axis"></span>']
    if not isnan(null_low):
        parts.append(stretch("null", null_low, null_high))
    if not isnan(ideal):
        parts.append(f'<span class="ideal" style="left:{at(ideal):.1f}%"></span>')
    if not isnan(low):
        parts.append(stretch("interval", low, high))
        if low < start:
            parts.append('<span class="beyond left"></span>')
        if high > stop:
            parts.append('<span class="beyond"></span>')
    parts.append(f'<span class="dot" style="left:{at(value):.1f}%"></span>')
    return f'<div class="rise-strip" role="img" aria-label="{escape(text)}">{"".join(parts)}</div>'
