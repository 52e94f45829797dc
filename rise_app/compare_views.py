"""Parts of the Compare page: the matrix of indicators, trade-off, differences, curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from html import escape
from math import isnan, nan
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from rise_app.address import linked
from rise_app.cards import facts_html, heads_html, reading_html, section_html, title_html
from rise_app.export import show_comparison_export
from rise_app.jobs import Jobs, jobs, rerun_when_done
from rise_app.loaders import ALL_ROWS, Question
from rise_app.messages import problem_of, show_error
from rise_app.panels import show_panels
from rise_app.runs_table import groups_text
from rise_app.switches import RATES, choose_indicator
from rise_core import Comparison, Evaluation, compare
from rise_core.charts import strip_domain, tradeoff_chart
from rise_core.charts.theme import ThemeName
from rise_core.exceptions import RiseError
from rise_core.reading import read_comparison
from rise_core.report import RunReference
from rise_core.report.html import strip_html
from rise_core.residuals import RESIDUALS
from rise_core.wording import METRICS, SHOWN, format_short

__all__ = ["FAIRNESS", "show_comparison"]

# Small comparisons are done by then, and the page is drawn once.
_PATIENCE_SECONDS = 0.5
FAIRNESS = tuple(key for key in SHOWN if key != "accuracy")
_ENDS = ("low", "high", "null_low", "null_high")


def show_comparison(
    title: str,
    questions: Mapping[str, Question],
    models: Mapping[str, Evaluation],
    theme: ThemeName,
    references: Mapping[str, RunReference],
    algorithms: Mapping[str, str],
) -> None:
    """Show models side by side: values at once, what needs resampling when it is there.

    Parameters
    ----------
    title : of the page and the report
    questions, models : what was asked of each model, and the answer, by its name
    references : what the report says of where a model comes from, by its name
    algorithms : the algorithm of each model; seeds of one are folded
    """
    values, comparison = _ask(questions, models)
    Jobs.settle([comparison], _PATIENCE_SECONDS)
    waiting = not comparison.done()
    if waiting and not values.done():
        st.html(title_html(title))
        rerun_when_done(values, "Matching the rows of the models …")
        return
    try:
        found = values.result() if waiting else comparison.result()
    except RiseError as error:
        show_error("These models cannot be compared.", error)
        return

    place = _where(questions)
    st.html(title_html(title, place) + facts_html(_facts_of(found)))
    fairness, baseline = _choose_view(found)
    _show_matrix(found, fairness, theme)
    left, right = st.columns(2, gap="large")
    with left:
        _section("Trade-off")
        _show_tradeoff(found, fairness, theme)
    with right:
        if waiting:
            _section("What the numbers support")
            rerun_when_done(comparison, "Resampling all models together, for intervals …")
        else:
            _show_summary(found, fairness)
    if not waiting:
        _section(f"Differences to {baseline}")
        _show_differences(found, baseline, theme)
    _section("Curves on the same axes")
    show_panels(tuple(questions.items()), found.models, theme)
    if len(set(algorithms.values())) < len(algorithms):
        _section("Seeds folded: mean and range of each algorithm")
        _show_folded(found, algorithms)
    if not waiting:
        _section("Decision")
        report = f"{title}, {place}" if place else title
        show_comparison_export(found, report, fairness, baseline, references, algorithms)


def _choose_view(found: Comparison) -> tuple[str, str]:
    """Choose the fairness indicator to look at, and the model that all are compared with."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        fairness = choose_indicator("Fairness by", FAIRNESS, width=220)
        baseline = linked(
            st.selectbox,
            "Compare with",
            list(found.models),
            "baseline",
            default=next(iter(found.models)),
            width=260,
        )
    return fairness, baseline


def _ask(
    questions: Mapping[str, Question], models: Mapping[str, Evaluation]
) -> tuple[Future[Comparison], Future[Comparison]]:
    """Begin to compare models, by name: their values alone, and with all resamples."""
    key = tuple(questions.items())
    values = partial(compare, models, n_boot=0)
    everything = partial(compare, models)
    return (
        jobs().ask(("values", key), partial(_compared, values)),
        jobs().ask(("comparison", key), partial(_compared, everything)),
    )


def _compared(work: Callable[[], Comparison]) -> Comparison:
    try:
        return work()
    except RiseError:
        raise
    except Exception as error:
        raise RiseError(problem_of(error)) from error


def _where(questions: Mapping[str, Question]) -> str:
    """Return the environment that is compared, where it is one for all models."""
    found = {question.environment for question in questions.values()} - {ALL_ROWS}
    return found.pop() if len(found) == 1 else ""


def _facts_of(found: Comparison) -> dict[str, str]:
    """Return what the compared numbers stand on."""
    first = next(iter(found.models.values()))
    baselines = {f"{ev.majority_accuracy:.3f}" for ev in found.models.values()}
    rows = found.pairing.how if found.pairing.n is None else f"{found.pairing.n:,}, {_how(found)}"
    drawn = f"{found.n_boot} + {found.n_perm} permutations, seed {found.random_state}"
    return {
        "rows": rows,
        "positive class": first.predictions.pos_label,
        "groups": groups_text(first),
        "threshold": f"{first.threshold:g}",
        "residual": RESIDUALS[first.residual].symbol,
        "base rates": RATES[first.base_rates],
        "majority baseline": f"accuracy {' to '.join(sorted(baselines))}",
        "resamples": drawn if found.n_boot else "being drawn",
    }


def _how(found: Comparison) -> str:
    return "the same in every model" if found.paired else "not paired"


def _show_matrix(found: Comparison, by: str, theme: ThemeName) -> None:
    """Show all indicators of all models, best first by one of them."""
    table = found.table
    order = [str(name) for name in found.ranking(by)["model"]]
    domains = {key: strip_domain(_named(table, key)) for key in SHOWN}
    rows = {(row["model"], row["indicator"]): row for row in _records(table)}
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(_cell(rows[name, key], domains[key]) for key in SHOWN)
        + "</tr>"
        for name in order
    )
    st.html(
        f'<div class="rise-scroll"><table class="rise-matrix rise-{theme}"><thead><tr>'
        f'<th scope="col">Model</th>{heads_html(SHOWN)}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
        f"{_key_to_strips(found)}"
    )


def _key_to_strips(found: Comparison) -> str:
    if not found.n_boot:
        return ""
    hollow = (
        " Hollow and dashed: unstable, divides by a number that may be 0."
        if found.table["unstable"].any()
        else ""
    )
    return (
        '<p class="rise-note">Dot: value. Line: 95 % interval. Grey: where 95 % of random '
        f"groupings fall.{hollow}</p>"
    )


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def _named(table: pd.DataFrame, key: str) -> pd.DataFrame:
    return table[table["indicator"] == key].rename(columns={"model": "name"})


def _cell(row: dict[str, Any], domain: tuple[float, float]) -> str:
    if isnan(row["value"]):
        reason = escape(str(row["reason"] or "undefined"))
        return f'<td title="{reason}"><b>–</b></td>'
    metric = METRICS[row["indicator"]]
    faint = ' class="unstable"' if row["unstable"] else ""
    ends = {end: row[end] for end in _ENDS}
    sentence = f"{metric.name} {format_short(row['value'])}"
    if not isnan(row["low"]):
        sentence += f", interval {format_short(row['low'])} to {format_short(row['high'])}"
    if not isnan(row["null_low"]):
        sentence += (
            f"; random groupings {format_short(row['null_low'])} to "
            f"{format_short(row['null_high'])}"
        )
    if row["unstable"]:
        sentence += "; unstable: divides by a number that may be 0"
    strip = strip_html(
        row["value"], domain, **ends, ideal=1.0 if metric.better == "one" else nan, text=sentence
    )
    return f'<td{faint} title="{escape(sentence)}"><b>{format_short(row["value"])}</b>{strip}</td>'


def _show_summary(found: Comparison, fairness: str) -> None:
    """Say in words what the intervals support."""
    st.html(reading_html(read_comparison(found, fairness), "What the numbers support"))


def _show_tradeoff(found: Comparison, fairness: str, theme: ThemeName) -> None:
    """Show accuracy against a fairness indicator."""
    rows = found.tradeoff(fairness)
    if not np.isfinite(rows["x"]).any():
        st.text(f"{METRICS[fairness].name} is undefined for every model.")
        return
    chart = tradeoff_chart(rows, fairness, baseline=found.majority_accuracy, theme=theme)
    st.altair_chart(chart, theme=None, width="stretch", key="trade-off")
    st.caption("Scroll to zoom, drag to move, double-click to go back.")


def _show_differences(found: Comparison, baseline: str, theme: ThemeName) -> None:
    """Show every model's difference to one of them."""
    table = found.against(baseline)
    if table.empty:
        st.text("Pick a second model to see differences.")
        return
    rows = {(row["model"], row["indicator"]): row for row in _records(table)}
    head = "".join(f'<th scope="col">{METRICS[key].name}</th>' for key in SHOWN)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(_difference(rows[name, key], _reach(table, key)) for key in SHOWN)
        + "</tr>"
        for name in found.models
        if name != baseline
    )
    st.html(
        f'<div class="rise-scroll"><table class="rise-matrix rise-{theme}"><thead><tr>'
        f'<th scope="col">minus {escape(baseline)}</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
        f'<p class="rise-note">{escape(found.pairing.how.capitalize())}. Line: '
        f"{found.confidence:.0%} interval of the difference, {found.n_boot} resamples. "
        "▲ better, ▼ worse where the interval leaves out 0.</p>"
    )


def _reach(table: pd.DataFrame, key: str) -> float:
    """Half-length of a column's axis around 0."""
    part = table[table["indicator"] == key].rename(columns={"model": "name", "difference": "value"})
    low, high = strip_domain(part[["name", "value", "low", "high"]])
    return max(abs(low), abs(high), 1e-9)


_VERDICTS = {"better": "▲", "worse": "▼"}


def _difference(row: dict[str, Any], reach: float) -> str:
    value = row["difference"]
    if isnan(value):
        return f'<td title="{escape(str(row["reason"] or "undefined"))}"><b>–</b></td>'
    sign = "+" if value > 0 else ""
    # A table gives a missing verdict as nan.
    verdict = row["verdict"] if isinstance(row["verdict"], str) else "no interval"
    sentence = f"{METRICS[row['indicator']].name}: {verdict}"
    if not isnan(row["low"]):
        sentence += f", {format_short(row['low'])} to {format_short(row['high'])}"
    strip = strip_html(
        value, (-reach, reach), low=row["low"], high=row["high"], ideal=0.0, text=sentence
    )
    mark = _VERDICTS.get(verdict, "")
    quiet = "" if mark else ' class="quiet"'
    shown = f"{sign}{format_short(value)} {mark}"
    return f'<td{quiet} title="{escape(sentence)}"><b>{shown}</b>{strip}</td>'


def _show_folded(found: Comparison, algorithms: Mapping[str, str]) -> None:
    """Show mean and range over the seeds of every algorithm."""
    folded = found.fold(algorithms)
    st.dataframe(
        folded[folded["indicator"].isin(SHOWN)].assign(
            indicator=[METRICS[key].name for key in folded["indicator"] if key in SHOWN]
        ),
        hide_index=True,
        alt="Mean and range over the seeds of every algorithm.",
        column_config={
            name: st.column_config.NumberColumn(name.capitalize(), format="%.4g")
            for name in ("mean", "smallest", "largest")
        },
    )


def _section(text: str) -> None:
    """Draw a small heading."""
    st.html(section_html(text))
