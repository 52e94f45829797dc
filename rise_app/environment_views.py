"""Parts of the Environments page: one model across environments, all models, drift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from html import escape
from math import inf, isnan, log, nan
from typing import Any

import pandas as pd
import streamlit as st

from rise_app.cards import heads_html, section_html
from rise_app.jobs import jobs
from rise_app.loaders import Question
from rise_app.messages import problem_of
from rise_app.panels import show_panels
from rise_core import Evaluation
from rise_core.charts import heat_map, strip_domain
from rise_core.charts.theme import ThemeName
from rise_core.environments import Drift, average_over, drift
from rise_core.estimates import Estimate
from rise_core.report.html import strip_html
from rise_core.uncertainty import Uncertainty
from rise_core.wording import METRICS, SHOWN, Metric, format_short

__all__ = [
    "MEAN",
    "POOLED",
    "Task",
    "all_of",
    "ask_drift",
    "ask_parts",
    "section",
    "show_curves",
    "show_drift",
    "show_heat_map",
    "show_model",
    "watch_progress",
]

POOLED = "pooled"
MEAN = "mean over environments"
_REPLICATES = 200
_POLL_SECONDS = 0.7
# More environments than this are compared with the one that is held out, not with each other.
_MOST_PAIRED = 6

# The uncertainty of each environment of a model, and of all rows together (`POOLED`).
Task = Mapping[str, Future[Uncertainty]]


def ask_parts(question: Question, ev: Evaluation) -> Task:
    """Begin to resample a model in each environment and on all rows."""
    parts = {POOLED: ev, **ev.by_environment}
    return {
        label: jobs().ask(
            ("environment", question, label), partial(part.uncertainty, _REPLICATES, _REPLICATES)
        )
        for label, part in parts.items()
    }


def ask_drift(
    question: Question, ev: Evaluation, held_out: str | None
) -> Future[tuple[Drift, ...]]:
    """Begin to measure how far the errors of the environments lie apart."""
    labels = list(ev.by_environment)
    pairs: list[tuple[str, str]] | None = None
    if len(labels) > _MOST_PAIRED:
        reference = held_out if held_out in labels else labels[0]
        pairs = [(label, reference) for label in labels if label != reference]
    return jobs().ask(("drift", question, held_out), partial(drift, ev, pairs))


def all_of(tasks: Mapping[str, Task], other: Future[Any]) -> list[Future[Any]]:
    """Return everything that is being computed."""
    return [*(future for task in tasks.values() for future in task.values()), other]


def watch_progress(futures: Sequence[Future[Any]]) -> None:
    """Show how much is computed, and draw the page again when all is; nothing once it is."""
    if all(future.done() for future in futures):
        return

    @st.fragment(run_every=_POLL_SECONDS)
    def look() -> None:
        done = sum(future.done() for future in futures)
        if done == len(futures):
            st.rerun()
        st.progress(
            done / len(futures), text=f"Computing intervals: {done} of {len(futures)} are ready"
        )

    look()


def _known(future: Future[Uncertainty] | None) -> Uncertainty | None:
    """Return what is known by now; a failed computation is as good as none."""
    if future is None or not future.done() or future.exception() is not None:
        return None
    return future.result()


def show_curves(ev: Evaluation, question: Question, held_out: str | None, theme: ThemeName) -> None:
    """Show the curves of every environment on the same axes."""
    models = {
        # Long names are cut at the end.
        f"Held out: {label}" if label == held_out else label: part
        for label, part in ev.by_environment.items()
    }
    show_panels((question, held_out), models, theme)


def _name(label: str, held_out: str | None) -> str:
    return f"{label} (held out)" if label == held_out else label


def show_model(ev: Evaluation, task: Task, held_out: str | None, theme: ThemeName) -> None:
    """Show all indicators of a model: pooled, mean over environments, and each environment."""
    parts = {POOLED: ev, **ev.by_environment}
    known = {label: _known(task[label]) for label in parts}
    domains = {key: _domain(key, parts, known) for key in SHOWN}
    rows = []
    for label, part in parts.items():
        cells = "".join(_cell(METRICS[key], part, known[label], domains[key]) for key in SHOWN)
        rows.append(_row(_name(label, held_out), f"{part.n:,} rows", cells))
        if label == POOLED:
            cells = "".join(_average_cell(ev, key) for key in SHOWN)
            rows.append(_row(MEAN, "equal weight", cells))
    st.html(
        f'<div class="rise-scroll"><table class="rise-matrix rise-{theme}"><thead><tr>'
        f'<th scope="col">Environment</th>{heads_html(SHOWN)}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody>"
        f'</table></div><p class="rise-note">Dot: value. Line: 95 % interval. Grey: where 95 % of '
        f"{_REPLICATES} random groupings fall. Pooled: all rows together, so that large "
        "environments count more and differences between environments mix with those between "
        "groups. Mean: every environment counts the same, as published tables do; below it the "
        "smallest and the largest.</p>"
    )


def _row(name: str, note: str, cells: str) -> str:
    return f'<tr><th scope="row">{escape(name)}<small>{note}</small></th>{cells}</tr>'


def _domain(
    key: str, parts: Mapping[str, Evaluation], known: Mapping[str, Uncertainty | None]
) -> tuple[float, float]:
    rows = []
    for label, part in parts.items():
        found = known[label]
        e = found[key] if found is not None else Estimate("indicator", key, _value(part, key))
        rows.append({"name": label, "value": e.value, "low": e.low, "high": e.high})
    return strip_domain(pd.DataFrame(rows))


def _value(ev: Evaluation, key: str) -> float:
    return float(getattr(ev.indicators, key))


def _cell(
    metric: Metric, ev: Evaluation, known: Uncertainty | None, domain: tuple[float, float]
) -> str:
    value = _value(ev, metric.key)
    if isnan(value):
        return f'<td title="{escape(ev.undefined.get(metric.key, "undefined"))}"><b>–</b></td>'
    estimate = known[metric.key] if known is not None else Estimate("indicator", metric.key, value)
    sentence = f"{metric.name} {format_short(value)}"
    if not isnan(estimate.low):
        sentence += f", interval {format_short(estimate.low)} to {format_short(estimate.high)}"
    if estimate.distinguishable is False:
        sentence += "; not told from random"
    strip = strip_html(
        value,
        domain,
        low=estimate.low,
        high=estimate.high,
        null_low=estimate.null_low,
        null_high=estimate.null_high,
        ideal=1.0 if metric.better == "one" else nan,
        text=sentence,
    )
    mark = "~ " if estimate.distinguishable is False else ""
    return f'<td title="{escape(sentence)}"><b>{mark}{format_short(value)}</b>{strip}</td>'


def _average_cell(ev: Evaluation, key: str) -> str:
    mean = average_over(ev, key)
    if isnan(mean.value):
        return "<td><b>–</b></td>"
    without = ""
    if mean.left_out:
        without = f"<small>without {escape(', '.join(mean.left_out))}</small>"
    return (
        f"<td><b>{format_short(mean.value)}</b><small>{format_short(mean.smallest)} to "
        f"{format_short(mean.largest)}</small>{without}</td>"
    )


def show_heat_map(
    models: Mapping[str, Evaluation],
    tasks: Mapping[str, Task],
    held_out: Mapping[str, str | None],
    key: str,
    theme: ThemeName,
) -> pd.DataFrame:
    """Show an indicator of all models in all environments; return the cells."""
    labels = list(dict.fromkeys(x for ev in models.values() for x in ev.by_environment))
    common = set(held_out.values())
    shared = common.pop() if len(common) == 1 else None
    rows = []
    for name, ev in models.items():
        parts = {POOLED: ev, **ev.by_environment}
        for label in (*labels, POOLED):
            if label in parts:
                known = _known(tasks[name].get(label))
                rows.append(_heat_cell(name, label, parts[label], known, key, held_out[name]))
            if label == POOLED:
                rows.append(_mean_cell(name, ev, key))
    cells = pd.DataFrame(rows)
    cells["column"] = [_name(column, shared) for column in cells["column"]]
    with st.container(key="wide-heat-map"):
        st.altair_chart(heat_map(cells, theme=theme), theme=None, width="stretch", key="heat map")
    frame = " Framed: held out in training." if cells["marked"].any() else ""
    direction = METRICS[key].direction
    st.caption(
        f"{direction} Stronger colour: farther from the ideal. ~ could be a random grouping."
        f"{frame} Point at a cell for its interval."
    )
    return cells


def _distance(key: str, value: float) -> float:
    metric = METRICS[key]
    if isnan(value):
        return nan
    if metric.better == "one":
        return abs(log(value)) if 0 < value < inf else inf
    return abs(value - metric.ideal)


def _heat_cell(
    name: str,
    label: str,
    ev: Evaluation,
    known: Uncertainty | None,
    key: str,
    held_out: str | None,
) -> dict[str, Any]:
    value = _value(ev, key)
    note = ev.undefined.get(key, "") if isnan(value) else f"{ev.n:,} rows"
    unsure = False
    if known is not None and not isnan(value):
        e = known[key]
        note = f"{format_short(e.low)} to {format_short(e.high)} (95 % interval), {note}"
        unsure = e.distinguishable is False
        note += "; not told from random" if unsure else ""
        note += "; unstable" if e.unstable else ""
    return {
        "row": name,
        "column": label,
        "value": value,
        "distance": _distance(key, value),
        "text": format_short(value),
        "unsure": unsure,
        "marked": label == held_out,
        "note": note,
    }


def _mean_cell(name: str, ev: Evaluation, key: str) -> dict[str, Any]:
    mean = average_over(ev, key)
    note = f"from {format_short(mean.smallest)} to {format_short(mean.largest)}"
    if mean.left_out:
        note += f"; without {', '.join(mean.left_out)}"
    return {
        "row": name,
        "column": "mean",
        "value": mean.value,
        "distance": _distance(key, mean.value),
        "text": format_short(mean.value),
        "unsure": False,
        "marked": False,
        "note": note,
    }


def show_drift(future: Future[tuple[Drift, ...]], held_out: str | None, theme: ThemeName) -> None:
    """Show how far the errors of each two environments lie apart."""
    if not future.done():
        st.caption("Comparing environments …")
        return
    error = future.exception()
    if isinstance(error, Exception):
        st.text(f"The environments cannot be compared. {problem_of(error)}")
        return
    found = future.result()
    if not found:
        st.text("There is one environment only.")
        return
    rows = [
        {
            "row": _name(d.environment, held_out),
            "column": _name(d.reference, held_out),
            "value": d.w1.value,
            "distance": d.w1.value,
            "text": f"{d.w1.value:.3f} ({d.w1.low:.3f} to {d.w1.high:.3f})",
            "unsure": d.w1.distinguishable is False,
            "note": "not told from random" if d.w1.distinguishable is False else "",
        }
        for d in found
    ]
    chart = heat_map(pd.DataFrame(rows), theme=theme)
    with st.container(key="wide-drift"):
        st.altair_chart(chart, theme=None, width="stretch", key="drift")
    st.caption(
        "W1 between the residuals of two environments, all groups together, with its 95 % "
        "interval. ~ is no more than an exchange of the rows would give."
    )


def section(text: str) -> None:
    """Draw a small heading."""
    st.html(section_html(text))
