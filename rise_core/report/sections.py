"""Sections of a report: results as tables and sentences. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import isnan, nan
from typing import TYPE_CHECKING, Any

import pandas as pd

from rise_core.binning import edges_text
from rise_core.charts import DARK, LIGHT, palette_for, strip_domain
from rise_core.columns import ROLE_WORDS, SCALE_WORDS
from rise_core.reading import Sentence
from rise_core.report.html import Markup, facts, items, link, section, strip_html, table, text
from rise_core.residuals import RESIDUALS
from rise_core.wording import METRICS, UNDEFINED, Metric, format_number, format_short

if TYPE_CHECKING:
    from rise_core.comparison import Comparison
    from rise_core.estimates import Estimate
    from rise_core.evaluation import Evaluation
    from rise_core.uncertainty import Uncertainty

__all__ = ["RunReference"]

_ENDS = ("low", "high", "null_low", "null_high")
_RATES = {
    "observed": "as observed",
    "equal": "equal: every group is weighted to the pooled base rate, so that error given the "
    "label is what remains",
}
_DETECTORS = {
    "prominent": "the most prominent bend of each half (nothing to tune)",
    "kneed": "classic Kneedle",
}
_VERDICTS = {"better": "▲ better", "worse": "▼ worse", "not distinguishable": "not told apart"}
_GROUP_COLUMNS = {
    "n": "rows",
    "share": "share",
    "base_rate": "base rate",
    "positive_rate": "positive rate",
    "mean_score": "mean score",
    "accuracy": "accuracy",
    "median_residual": "median residual",
    "median_position": "median position",
    "left_knee_residual": "◆ left knee",
    "left_knee_percentile": "at",
    "right_knee_residual": "★ right knee",
    "right_knee_percentile": "at",
}
_SHARES = {"share", "left_knee_percentile", "right_knee_percentile", "median_position"}
_SIGNED = {"median_residual", "left_knee_residual", "right_knee_residual"}


@dataclass(frozen=True)
class RunReference:
    """Where a model's predictions came from, for the minutes.

    Attributes
    ----------
    id, name : of the run
    url : address of the run on its server, or None; only http(s) becomes a link
    table : path of the table of predictions among the run's files
    mapping : which column is what, as `Roles.to_dict` gives it
    facts : more to tell, such as data set, algorithm and seed
    """

    id: str
    name: str
    url: str | None = None
    table: str = ""
    mapping: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a table, each by column name."""
    return [{str(k): v for k, v in row.items()} for row in frame.to_dict("records")]


# -- one number -----------------------------------------------------------------------------------


def _between(low: float, high: float) -> str:
    return f"{format_short(low)} to {format_short(high)}"


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + format_short(value)


def indicator_cell(
    row: Mapping[str, Any], domain: tuple[float, float], strip: bool = True
) -> Markup:
    """Value, picture, interval and null of an indicator.

    Parameters
    ----------
    row : indicator, value, low, high, null_low, null_high, distinguishable, unstable, reason
    domain : ends of the picture's scale
    strip : whether there is a picture
    """
    if isnan(row["value"]):
        why = text(row["reason"] or "undefined")
        return Markup(f"<td><b>{UNDEFINED}</b><small>{why}</small></td>")
    metric = METRICS[row["indicator"]]
    remarks = []
    if not isnan(row["low"]):
        remarks.append(_between(row["low"], row["high"]))
    if not isnan(row["null_low"]):
        remarks.append(f"random {_between(row['null_low'], row['null_high'])}")
    if row["distinguishable"] is False:
        remarks.append("not told from random")
    if row["unstable"]:
        remarks.append("unstable")
    kind = ' class="unstable"' if row["unstable"] else ""
    words = f"{metric.name} {', '.join([format_short(row['value']), *remarks])}"
    picture = strip_html(
        row["value"],
        domain,
        **{end: row[end] for end in _ENDS},
        ideal=1.0 if metric.better == "one" else nan,
        text=words,
    )
    small = "".join(f"<small>{text(remark)}</small>" for remark in remarks)
    return Markup(
        f'<td{kind} title="{escape(words)}"><b>{format_short(row["value"])}</b>'
        f"{picture if strip else ''}{small}</td>"
    )


def _head(metric: Metric) -> Markup:
    arrow = f'<span class="dir" title="{escape(metric.direction)}">{metric.arrow}</span>'
    return Markup(f"{text(metric.name)} {arrow}<small>{text(metric.meaning)}</small>")


def how_to_read(u: Uncertainty) -> Markup:
    """Say what dot, line and grey mean."""
    share = f"{u.confidence:.0%}"
    return Markup(
        f'<p class="quiet">Dot: value. Line and first range: {share} interval. Grey and “random”: '
        f"where {share} of random groupings of the same rows fall; a value inside is not told from "
        "a random grouping. Unstable: divides by a number that may be 0; do not rank by it. "
        "An arrow: goes on beyond the scale.</p>"
    )


# -- several models -------------------------------------------------------------------------------


def matrix(found: Comparison, by: str) -> Markup:
    """All indicators of all models, best first by one of them, and the majority baseline."""
    known = found.table
    rows = {(row["model"], row["indicator"]): row for row in records(known)}
    domains = {
        key: strip_domain(known[known["indicator"] == key].rename(columns={"model": "name"}))
        for key in METRICS
    }
    lines: list[list[object]] = [
        [name, *(indicator_cell(rows[name, key], domains[key]) for key in METRICS)]
        for name in map(str, found.ranking(by)["model"])
    ]
    accuracies = sorted({f"{ev.majority_accuracy:.3f}" for ev in found.models.values()})
    lines.append(
        [
            "majority baseline",
            Markup(
                f"<td><b>{' to '.join(accuracies)}</b><small>always deciding for the</small>"
                "<small>more frequent label</small></td>"
            ),
            *[UNDEFINED] * (len(METRICS) - 1),
        ]
    )
    caption = f"Indicators of every model, from best to worst by {METRICS[by].name}"
    return table(caption, ["Model", *map(_head, METRICS.values())], lines, "matrix")


def curve_key(models: Mapping[str, Evaluation]) -> Markup:
    """Colour and dash of every curve; in HTML, so that it wraps where a chart's would be cut."""
    labels = list(dict.fromkeys(label for ev in models.values() for label in ev.groups))
    light, dark = palette_for(labels, LIGHT), palette_for(labels, DARK)
    keys = "".join(
        f'<span><svg viewBox="0 0 30 8" aria-hidden="true"><line x1="0" y1="4" x2="30" y2="4" '
        f'style="--on-light:{light.color(label)};--on-dark:{dark.color(label)}" '
        f'stroke-dasharray="{" ".join(map(str, dashes))}"/></svg>{text(label)}</span>'
        for label, dashes in zip(light.labels, light.dashes, strict=True)
    )
    return Markup(f'<p class="key">{keys}</p>')


def differences(found: Comparison, baseline: str) -> Markup:
    """Differences of all models to the baseline, paired where they are."""
    known = found.against(baseline)
    if known.empty:
        return Markup("<p>There is one model only, so there is nothing to compare it with.</p>")
    rows = {(row["model"], row["indicator"]): row for row in records(known)}
    reach = {}
    for key in METRICS:
        part = known[known["indicator"] == key]
        part = part.rename(columns={"model": "name", "difference": "value"})
        reach[key] = max(*map(abs, strip_domain(part[["name", "value", "low", "high"]])), 1e-9)
    lines = [
        [name, *(_difference_cell(rows[name, key], reach[key]) for key in METRICS)]
        for name in found.models
        if name != baseline
    ]
    caption = f"Each model minus {baseline}; {found.pairing.how}"
    head = ["Model", *map(_head, METRICS.values())]
    return Markup(
        table(caption, head, lines, "matrix")
        + f'<p class="quiet">Second line: {found.confidence:.0%} interval of the difference, from '
        f"{found.n_boot:,} resamples{', the same for both models' if found.paired else ''}. ▲ "
        "better and ▼ worse stand only where the interval leaves out 0; for DP the distance from "
        "1 is compared.</p>"
    )


def _difference_cell(row: Mapping[str, Any], reach: float) -> Markup:
    value = row["difference"]
    if isnan(value):
        why = text(row["reason"] or "undefined")
        return Markup(f"<td><b>{UNDEFINED}</b><small>{why}</small></td>")
    verdict = _VERDICTS.get(str(row["verdict"]), "no verdict")
    even = "" if row["verdict"] in ("better", "worse") else ' class="even"'
    interval = row["reason"] or "no interval"
    if not isnan(row["low"]):
        interval = _between(row["low"], row["high"])
    words = f"{METRICS[row['indicator']].name} {_signed(value)}, {interval}, {verdict}"
    picture = strip_html(
        value, (-reach, reach), low=row["low"], high=row["high"], ideal=0.0, text=words
    )
    return Markup(
        f"<td{even}><b>{_signed(value)}</b>{picture}<small>{text(interval)}</small>"
        f"<small>{text(verdict)}</small></td>"
    )


def front(found: Comparison, fairness: str) -> Markup:
    """Which models no other one beats on both accuracy and fairness, as a table."""
    name = METRICS[fairness].name
    lines = [
        [
            row["model"],
            format_short(row["accuracy"]),
            format_short(row[fairness]),
            "no model is better on both" if row["on_front"] else _beaten(row["dominated_by"]),
        ]
        for row in records(found.pareto(fairness))
    ]
    head = ["Model", "Accuracy", name, "By the values alone"]
    return table(f"Accuracy and {name}", head, lines, numbers=(1, 2))


def _beaten(names: Sequence[str]) -> str:
    return f"beaten by {', '.join(names)}" if names else "undefined"


def folded(found: Comparison, algorithms: Mapping[str, str]) -> Markup:
    """Mean and range over the seeds of every algorithm."""
    rows: dict[str, list[object]] = {}
    for row in records(found.fold(algorithms)):
        line = rows.setdefault(row["algorithm"], [row["algorithm"], f"{row['seeds']}"])
        missing = f"<small>undefined in {row['undefined']}</small>" if row["undefined"] else ""
        ends = "" if isnan(row["mean"]) else _between(row["smallest"], row["largest"])
        line.append(
            Markup(f"<td><b>{format_short(row['mean'])}</b><small>{ends}</small>{missing}</td>")
        )
    head = ["Algorithm", "Seeds", *map(_head, METRICS.values())]
    caption = "Mean, and smallest to largest, over the seeds of each algorithm"
    return table(caption, head, rows.values(), "matrix", numbers=(1,))


# -- one model ------------------------------------------------------------------------------------


def reading(sentences: Iterable[Sentence]) -> Markup:
    """Sentences that say what the numbers support."""
    return items(sentence.text for sentence in sentences)


def _estimate_row(e: Estimate) -> dict[str, Any]:
    row: dict[str, Any] = {end: getattr(e, end) for end in ("value", *_ENDS)}
    row |= {"indicator": e.name, "distinguishable": e.distinguishable, "unstable": e.unstable}
    return {**row, "reason": e.reason}


def indicators(u: Uncertainty) -> Markup:
    """All indicators of one model."""
    lines: list[list[object]] = []
    for key, e in u.indicators.items():
        row = _estimate_row(e)
        domain = strip_domain(pd.DataFrame([{"name": key, **row}]))
        lines.append([_head(METRICS[key]), indicator_cell(row, domain), METRICS[key].explains])
    caption = "Indicators of this model"
    return table(caption, ["Indicator", "Value", "What it sees"], lines, "words")


def groups(ev: Evaluation) -> Markup:
    """Rates, medians and knees of all rows and of every group."""
    lines = [
        [row["group"], *(_group_value(name, row[name]) for name in _GROUP_COLUMNS)]
        for row in records(ev.group_table())
    ]
    head = ["Group", *_GROUP_COLUMNS.values()]
    caption = (
        f"Groups by {ev.feature}. Knees and medians: residual {RESIDUALS[ev.residual].symbol}; "
        "“at” and “median position”: share of all rows that lie below"
    )
    return table(caption, head, lines, numbers=range(1, len(head)))


def _group_value(name: str, value: float) -> str:
    if name == "n":
        return f"{value:,}"
    if isnan(value):
        return UNDEFINED
    if name in _SHARES:
        return f"{value:.1%}"
    return ("+" if name in _SIGNED and value > 0 else "") + format_number(value)


def details(u: Uncertainty) -> Markup:
    """Displacements of the knees, segments of the gap and denominators, with their noise."""
    parts = [
        ("Knees: how far the groups' lie apart", u.displacements),
        ("Segments: where the gap lies", u.segments),
        ("Denominators of F_shift and F_acc", u.denominators),
    ]
    made = ""
    for caption, estimates in parts:
        if estimates:
            lines = [_estimate_line(e) for e in estimates]
            head = ["What", "Value", "Interval", "Random groupings", "p", "Remark"]
            made += table(caption, head, lines, numbers=(1, 2, 3, 4))
    return Markup(made)


_NAMES = {
    "delta_h": "Δh, position",
    "delta_d": "Δd, residual",
    "share": "share of W1",
    "area": "area",
    "mean_gap": "mean gap",
    "slope_gap": "slope gap",
    "h_g": "h, position of all rows' knee",
    "d_g": "d, residual of all rows' knee",
}


def _estimate_line(e: Estimate) -> list[object]:
    where = e.segment or f"{e.side} knee"
    pair = f", {e.group} minus {e.reference}" if e.group and e.reference else ""
    remarks = [e.reason or ""]
    if e.distinguishable is False:
        remarks.append("not told from a random grouping")
    if e.unstable:
        remarks.append("may be 0")
    return [
        f"{where}: {_NAMES.get(e.name, e.name)}{pair}",
        format_short(e.value),
        UNDEFINED if isnan(e.low) else _between(e.low, e.high),
        UNDEFINED if isnan(e.null_low) else _between(e.null_low, e.null_high),
        format_number(e.p_value),
        "; ".join(filter(None, remarks)),
    ]


# -- what it stands on ----------------------------------------------------------------------------


def _same(values: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(values))


def _environment(ev: Evaluation) -> str:
    environment = ev.predictions.environment
    if environment is None:
        return "none named"
    return ", ".join(environment.labels)


def _compared(ev: Evaluation) -> str:
    if ev.sensitive is not None and ev.reference is not None and len(ev.groups) == 2:
        return f"{ev.sensitive} against {ev.reference} (sensitive group: {ev.sensitive_chosen})"
    return ", ".join(ev.groups)


def _residual(ev: Evaluation) -> str:
    kind = RESIDUALS[ev.residual]
    return f"{kind.symbol}; below 0 {kind.low_means}, above 0 {kind.high_means}"


def _detector(ev: Evaluation) -> str:
    tuned = f", sensitivity {ev.settings.sensitivity:g}" if ev.settings.detector == "kneed" else ""
    return _DETECTORS.get(ev.settings.detector, ev.settings.detector) + tuned


def settings(models: Mapping[str, Evaluation]) -> dict[str, object]:
    """What the numbers stand on; what differs between models is listed."""
    evs = list(models.values())
    return {
        "positive class": _same(
            f"{ev.predictions.pos_label} (the other: {ev.predictions.neg_label})" for ev in evs
        ),
        "groups by": _same(ev.feature for ev in evs),
        "groups": _same(map(_compared, evs)),
        "environment": _same(map(_environment, evs)),
        "threshold": _same(f"decides for the positive class from {ev.threshold:g}" for ev in evs),
        "residual": _same(map(_residual, evs)),
        "base rates": _same(_RATES[ev.base_rates] for ev in evs),
        "knees": _same(map(_detector, evs)),
        "weights": _same("yes" if ev.predictions.sample_weight is not None else "no" for ev in evs),
    }


def rows_account(models: Mapping[str, Evaluation]) -> Markup:
    """Rows that came in, were used, and were left out, with the reason."""
    lines = []
    for name, ev in models.items():
        why = "; ".join(f"{n:,} {reason}" for reason, n in ev.left_out.items() if n)
        lines.append(
            [name, f"{ev.n_rows:,}", f"{ev.n:,}", why or "none", " ".join(ev.predictions.notes)]
        )
    head = ["Model", "Rows in", "Used", "Left out", "Notes"]
    return table("Rows in = rows used + rows left out", head, lines, "words", numbers=(1, 2))


def resampling(known: Mapping[str, Uncertainty]) -> Markup:
    """How the intervals and nulls were made."""
    us = list(known.values())
    told: dict[str, object] = {
        "intervals": _same(
            f"{u.confidence:.0%}, {u.n_boot:,} bootstrap resamples of {u.resampled} within groups"
            for u in us
        ),
        "random groupings": _same(
            f"{u.n_perm:,} permutations of the group labels"
            + (f" within each {u.within}" if u.within else "")
            for u in us
        ),
        "seed": _same(str(u.random_state) for u in us),
    }
    cells = [u for u in us if u.places is not None]
    if cells:
        worst = max(u.cell_error for u in cells)
        told["cells"] = (
            f"curves with many rows were resampled on up to {max(u.places or 0 for u in cells):,} "
            f"cells; that changes a median position or an area by at most {worst:.1g}"
        )
    notes = dict.fromkeys(note for u in us for note in u.notes)
    explained = (
        "<p>No indicator is shown as a bare number. An interval says how far the value may move "
        "with other rows of the same kind. A random grouping keeps all predictions and shuffles "
        "who belongs to which group: what it gives is what the indicator shows where groups do "
        "not matter. Signed quantities are resampled and then folded, because an absolute value "
        "cannot fall below “fair”.</p>"
    )
    return Markup(explained + facts(told) + (items(notes) if notes else ""))


def definitions(residual: str) -> Markup:
    """Definitions of all indicators and of the words of this page."""
    lines = [[_head(m), m.formula, m.direction, m.explains] for m in METRICS.values()]
    symbol = RESIDUALS[residual].symbol
    words = {
        "residual": f"{symbol}, with p the score of the positive class, y the label (1 or 0) and "
        "ŷ the decision (1 or 0)",
        "curve": "a group's residuals, sorted; Q(q) is the residual at rank q",
        "median position": "middle of the group's rows on the curve of all rows, from 0 to 1",
        "knee": "where a curve bends most: ◆ in its left half, ★ in its right half",
        "h, d": "position of a knee on the curve of all rows, and its residual; Δ is one group's "
        "minus the other's, without Δ it is the knee of all rows",
        "more groups": "with more than two groups each difference is the largest minus the "
        "smallest, and W1 the largest over pairs",
        "base rate": "share of rows whose label is the positive class",
    }
    head = ["Indicator", "Formula", "Better", "What it sees and misses"]
    return Markup(table("What each indicator is", head, lines, "words") + facts(words))


def runs_section(runs: Mapping[str, RunReference]) -> Markup:
    """Run ids with links, and which column was what."""
    lines = []
    for name, run in runs.items():
        more = ", ".join(f"{k} {v}" for k, v in run.facts.items())
        lines.append([name, link(run.url, run.id), run.name, run.table or UNDEFINED, more])
    head = ["Model", "Run", "Run name", "Table", "Facts"]
    parts = [table("Runs that the predictions came from", head, lines, "words")]
    mapped: dict[tuple[str, str, str], list[str]] = {}
    for name, run in runs.items():
        for line in _mapping(run.mapping):
            mapped.setdefault(line, []).append(name)
    if mapped:
        head = ["Role", "Column or value", "Why", "In"]
        lines = [
            [role, column, why, "every model" if len(names) == len(runs) else ", ".join(names)]
            for (role, column, why), names in mapped.items()
        ]
        parts.append(table("Which column was read as what", head, lines, "words"))
    return section("runs", "Runs and columns", *parts)


def _mapping(mapping: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    reasons = mapping.get("reasons")
    why = reasons if isinstance(reasons, Mapping) else {}
    found = []
    for role in (*ROLE_WORDS, "scale"):
        value = mapping.get(role)
        if value is None or value == []:
            continue
        named = isinstance(value, list | tuple)
        column = ", ".join(map(str, value)) if named else str(value)
        found.append((ROLE_WORDS.get(role, role), column, str(why.get(role, ""))))
    found += [
        (f"edges of {name}", edges_text(edges), str(why.get(name, "")))
        for name, edges in dict(mapping.get("bins") or {}).items()
        if name in (mapping.get("sensitive_features") or ())
    ]
    found += [
        ("intersection", " × ".join(names), str(why.get("intersections", "")))
        for names in mapping.get("intersections") or ()
    ]
    if mapping.get("convert") and mapping.get("scale") in SCALE_WORDS:
        found.append(("conversion", f"from {SCALE_WORDS[mapping['scale']]}", "somebody agreed"))
    return found
