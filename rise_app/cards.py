"""Indicators as a compact list: name, meaning, value, interval and null as a small picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from math import isfinite, isnan, nan

from rise_core import Evaluation
from rise_core.estimates import Estimate
from rise_core.reading import Sentence
from rise_core.report.html import strip_html
from rise_core.uncertainty import Uncertainty
from rise_core.wording import METRICS, Metric, format_number

__all__ = [
    "CardRow",
    "badge_html",
    "card_rows",
    "cards_html",
    "facts_html",
    "glossary_html",
    "heads_html",
    "legend_html",
    "reading_html",
    "section_html",
    "title_html",
]

_ORDER = ("f_mean", "f_shift", "f_acc", "w1", "accuracy", "dp", "md")
# Scales that every model shares; the others start at 0 and end where the numbers do.
_FIXED = {"accuracy": (0.0, 1.0), "f_mean": (0.7, 1.0)}
_SMALLEST = {"dp": 2.0, "md": 0.1, "f_shift": 1.0, "f_acc": 1.0, "w1": 0.1}
# A longer scale would flatten the value into its corner; the line then ends in an arrow.
_LONGEST = 6.0


@dataclass(frozen=True)
class CardRow:
    """One indicator as it is shown; ends are nan where they are not known.

    Attributes
    ----------
    key : name of the indicator
    value : its value, nan when undefined
    reason : why it is undefined, or ""
    low, high : interval
    null_low, null_high : where random groupings fall
    remark : a word of caution ("unstable", "not distinguishable from a random grouping"), or ""
    """

    key: str
    value: float
    reason: str = ""
    low: float = nan
    high: float = nan
    null_low: float = nan
    null_high: float = nan
    remark: str = ""


def card_rows(ev: Evaluation, known: Uncertainty | None = None) -> list[CardRow]:
    """Indicators in the order they are shown, with what is known of their noise."""
    rows = []
    for key in _ORDER:
        value = getattr(ev.indicators, key)
        row = CardRow(key, value, ev.undefined.get(key, ""))
        if known is not None and not isnan(value):
            estimate = known[key]
            row = replace(
                row,
                low=estimate.low,
                high=estimate.high,
                null_low=estimate.null_low,
                null_high=estimate.null_high,
                remark=_remark(estimate),
            )
        rows.append(row)
    return rows


def _remark(estimate: Estimate) -> str:
    remarks = []
    if estimate.distinguishable is False:
        remarks.append("not told from random")
    if estimate.unstable:
        remarks.append("unstable")
    return ", ".join(remarks)


def cards_html(rows: list[CardRow], theme: str) -> str:
    """Return the list as HTML; all text from outside is escaped."""
    body = "".join(_row(row, METRICS[row.key]) for row in rows)
    return (
        f'<table class="rise-cards rise-{theme}" aria-label="Indicators">'
        f"<tbody>{body}</tbody></table>"
    )


def _row(row: CardRow, metric: Metric) -> str:
    direction = f'<span class="dir" aria-label="{escape(metric.direction)}">{metric.arrow}</span>'
    name = (
        f'<td class="name" title="{escape(metric.explains)}\n\n{escape(metric.formula)}">'
        f"{metric.name}{direction}<small>{metric.meaning}</small></td>"
    )
    if isnan(row.value):
        why = escape(row.reason or "undefined")
        return f'<tr>{name}<td class="value"><b>–</b></td><td class="why">{why}</td></tr>'
    interval = ""
    if not isnan(row.low):
        interval = f"<small>{_short(row.low)} to {_short(row.high)}</small>"
    remark = f'<span class="flag">{escape(row.remark)}</span>' if row.remark else ""
    return (
        f'<tr>{name}<td class="value"><b>{format_number(row.value)}</b>{interval}</td>'
        f'<td class="strip" title="{escape(_sentence(row, metric))}">'
        f"{_strip(row, metric)}{remark}</td></tr>"
    )


def _short(value: float) -> str:
    return format_number(value, 2 if abs(value) >= 0.1 or value == 0 else 3)


def _sentence(row: CardRow, metric: Metric) -> str:
    parts = [f"{metric.name} {format_number(row.value)}. {metric.direction}"]
    if not isnan(row.low):
        parts.append(f"95 % interval: {_short(row.low)} to {_short(row.high)}.")
    if not isnan(row.null_low):
        parts.append(
            f"95 % of random groupings: {_short(row.null_low)} to {_short(row.null_high)}."
        )
    return " ".join([*parts, row.remark]).strip()


def _domain(row: CardRow) -> tuple[float, float]:
    if row.key in _FIXED:
        low, high = _FIXED[row.key]
        known = [x for x in (row.value, row.low, row.null_low) if isfinite(x)]
        return min([low, *known]), high
    shown = [x for x in (row.value, row.high, row.null_high) if isfinite(x)]
    longest = max(_SMALLEST[row.key], _LONGEST * (row.value if isfinite(row.value) else 1.0))
    return 0.0, min(max([_SMALLEST[row.key], *shown]) * 1.05, longest * 1.05)


def _strip(row: CardRow, metric: Metric) -> str:
    """Draw a row's strip on the scale that suits its indicator."""
    return strip_html(
        row.value,
        _domain(row),
        low=row.low,
        high=row.high,
        null_low=row.null_low,
        null_high=row.null_high,
        ideal=1.0 if metric.better == "one" else nan,
        text=_sentence(row, metric),
    )


def title_html(title: str, detail: str = "") -> str:
    """Return a page's title with a quieter detail behind it."""
    tail = f" <em>{escape(detail)}</em>" if detail else ""
    return f'<h1 class="rise-title">{escape(title)}{tail}</h1>'


def badge_html(badge: str, text: str) -> str:
    """Return a striped badge with a sentence behind it, for what is no real run."""
    return f'<p class="rise-badge"><b>{escape(badge)}</b> {escape(text)}</p>'


def glossary_html(terms: Sequence[tuple[str, str, str]]) -> str:
    """Return terms with meaning and formula, one a line."""
    items = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(meaning)}"
        + (f"<code>{escape(formula)}</code>" if formula else "")
        + "</dd>"
        for name, meaning, formula in terms
    )
    return f'<dl class="rise-glossary">{items}</dl>'


def heads_html(keys: Sequence[str]) -> str:
    """Return the heads of a table's columns: indicators with direction and meaning."""
    return "".join(
        f'<th scope="col" title="{escape(METRICS[key].explains)}">{METRICS[key].name} '
        f'<span class="dir">{METRICS[key].arrow}</span><small>{METRICS[key].meaning}</small></th>'
        for key in keys
    )


def legend_html(ev: Evaluation, known: Uncertainty) -> str:
    """Say how the list is to be read, and how its intervals were made."""
    share = f"{known.confidence:.0%}"
    environment = ev.predictions.environment
    several = environment is not None and len(environment.labels) > 1
    within = f", within each {escape(known.within)}" if known.within and several else ""
    notes = " ".join(escape(note) for note in known.notes)
    return (
        f"Dot: value. Line: {share} interval, {known.n_boot} resamples of {known.resampled}. "
        f"Grey: where {share} of {known.n_perm} random groupings fall{within}; a value inside "
        f"it is not told from random. Unstable: divides by a number that may be 0. "
        f"Seed {known.random_state}. {notes} "
        f"Always deciding for the more frequent label: accuracy {ev.majority_accuracy:.3f}."
    )


def reading_html(sentences: Sequence[Sentence], heading: str = "Reading") -> str:
    """Return a reading as a list of sentences."""
    items = "".join(f"<li>{escape(sentence.text)}</li>" for sentence in sentences)
    return f'{section_html(heading)}<ul class="rise-reading">{items}</ul>'


def section_html(text: str) -> str:
    """Return a small heading."""
    return f'<h3 class="rise-section">{escape(text)}</h3>'


def facts_html(facts: Mapping[str, str]) -> str:
    """Return a line of facts, "name value"; what does not fit goes on the next line."""
    parts = "".join(
        f"<span><i>{escape(name)}</i> <b>{escape(value)}</b></span>"
        for name, value in facts.items()
    )
    return f'<div class="rise-facts">{parts}</div>'
