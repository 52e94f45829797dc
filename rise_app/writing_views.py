"""Writing back to a run, only on request: what would be written is shown, then written as shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from rise_app import loaders
from rise_app.address import linked_many
from rise_app.cards import section_html
from rise_app.connection import is_demo, open_for_writing
from rise_app.export import CAN_EXPORT, reference_of, report_maker, show_evaluation_export
from rise_app.jobs import Jobs, jobs, rerun_when_done
from rise_app.loaders import ALL_ROWS, Question
from rise_app.messages import as_text, problem_of, show_error
from rise_app.switches import RATES
from rise_app.views import Verdict, title_of
from rise_core import Evaluation
from rise_core.columns import Roles
from rise_core.residuals import RESIDUALS
from rise_core.tracking import Run, Store, Table
from rise_core.tracking.address import clean_text
from rise_core.tracking.writing import Change, Plan, plan, write

__all__ = ["show_save"]

NUMBERS, REPORT, COLUMNS = "numbers", "report", "columns"
_WHAT = {
    NUMBERS: "Numbers with intervals",
    REPORT: "Report",
    COLUMNS: "Columns, for everybody",
}
_DRAFT = "what would be written"
# A plan takes a few requests; most servers answer them by then, and it is drawn once.
_PATIENCE_SECONDS = 0.4


@dataclass(frozen=True)
class _Asked:
    """All that a plan depends on: where another one is meant, the plan no longer holds."""

    store: str
    run: str
    question: Question
    what: tuple[str, ...]


@dataclass(frozen=True)
class _Failure:
    """Why something was not planned or written, for people."""

    reason: str


@dataclass
class _Draft:
    """A plan that was asked for, and what became of it."""

    asked: _Asked
    name: str
    plan: Future[Plan | _Failure]
    written: Future[Sequence[Change] | _Failure] | None = None


def show_save(
    store: Store,
    run: Run,
    table: Table,
    roles: Roles,
    ev: Evaluation,
    question: Question,
    verdict: Future[Verdict],
    draw: Callable[..., Any],
) -> None:
    """Hand over the report and the picture of a run, and offer to write to the run.

    Parameters
    ----------
    store, run, table, roles : what was read
    ev, question, verdict : what was evaluated, its name for the caches, its noise
    draw : draws the chart, for the picture
    """
    title = title_of(run, question.environment)
    reference = reference_of(store, run, table, roles)
    with st.container(horizontal=True):
        show_evaluation_export(ev, verdict, title, reference, draw)
    st.html(section_html("Write to this run in MLflow"))
    what = linked_many(
        st.pills,
        "What to write",
        [name for name in _WHAT if name != REPORT or CAN_EXPORT],
        "write",
        default=[NUMBERS],
        selection_mode="multi",
        format_func=_WHAT.__getitem__,
        label_visibility="collapsed",
    )
    asked = _Asked(store.uri, run.id, question, tuple(what))
    if st.button(
        "Show what would be written",
        disabled=not (what and verdict.done()),
        help=None if verdict.done() else "Intervals are still being computed.",
    ):
        made = partial(
            plan,
            store,
            run.id,
            *((ev, verdict.result()[0]) if NUMBERS in what else ()),
            environment=None if question.environment == ALL_ROWS else question.environment,
            roles=roles if COLUMNS in what else None,
        )
        report = report_maker(ev, verdict, title, reference) if REPORT in what else None
        work = partial(_told, partial(_plan, made, report))
        st.session_state[_DRAFT] = _Draft(asked, run.name, jobs().start(work))
    if _DRAFT in st.session_state:
        _show_draft(asked, ev)
    else:
        _explain(store)


def _explain(store: Store) -> None:
    own = " The demo store is a file of yours on this machine, good to try it on."
    st.caption(
        "Numbers become metrics of the run, the report a file of it. Which column is what becomes "
        "a tag of the experiment, so that nobody need say it again. Nothing is written before you "
        "have seen it." + (own if is_demo(store) else "")
    )


def _plan(made: Callable[..., Plan], report: Callable[[], str] | None) -> Plan:
    return made(report=None if report is None else report())


def _write(uri: str, planned: Plan) -> tuple[Change, ...]:
    """Open the store for this one act; the app's own stays read-only."""
    try:
        return write(open_for_writing(uri), planned)
    finally:
        loaders.forget_lists()


def _told(work: Callable[[], Any]) -> Any:
    """Do work, and return its failure in words: said once, however often the page is drawn."""
    try:
        return work()
    except Exception as error:
        return _Failure(problem_of(error))


# ---------------------------------------------------------------------------------- showing


def _show_draft(asked: _Asked, ev: Evaluation) -> None:
    draft: _Draft = st.session_state[_DRAFT]
    if draft.written is not None:
        _show_written(draft)
    elif draft.asked != asked:
        del st.session_state[_DRAFT]
        st.caption("What would be written has changed: show it again.")
    else:
        Jobs.settle([draft.plan], _PATIENCE_SECONDS)
        if draft.plan.done():
            _show_plan(draft, ev)
        else:
            rerun_when_done(draft.plan, "Making the plan …")


def _show_plan(draft: _Draft, ev: Evaluation) -> None:
    planned = draft.plan.result()
    if isinstance(planned, _Failure):
        show_error("Nothing can be written to this run.", planned.reason)
        return
    if NUMBERS in draft.asked.what:
        st.text(_whose(draft.asked.question, ev))
    if planned.changes:
        replaced = sum(bool(change.before) for change in planned.changes)
        st.text(
            f"{_counted(planned.changes)}. "
            + (f"{replaced} of them would replace what stands there now." if replaced else "")
        )
        _show_changes(planned.changes)
    else:
        st.text("There is nothing to write.")
    if planned.left_out:
        st.caption("Not written")
        st.dataframe(
            [{"name": name, "why": why} for name, why in planned.left_out.items()],
            hide_index=True,
            alt="What is not written, and why.",
            column_config={"why": st.column_config.TextColumn(width="large")},
        )
    if planned.changes and st.button(
        f"Write to {as_text(clean_text(draft.name, 60))}", type="primary"
    ):
        work = partial(_told, partial(_write, draft.asked.store, planned))
        draft.written = jobs().start(work)
        st.rerun()


def _whose(question: Question, ev: Evaluation) -> str:
    """Say what the numbers are of: a run has one metric of a name."""
    rows = "all rows" if question.environment == ALL_ROWS else question.environment
    settings = question.settings
    return (
        f"The numbers of this page: {rows}, by {ev.feature}, residual "
        f"{RESIDUALS[settings.residual].symbol}, base rates {RATES[settings.base_rates]}, "
        f"threshold {settings.threshold:g}."
    )


def _show_changes(changes: Sequence[Change]) -> None:
    # The many metrics last: what there is besides must not need scrolling.
    changes = sorted(changes, key=lambda change: change.kind == "metric")
    st.dataframe(
        [
            {"kind": c.kind, "name": c.name, "value": c.value, "now": c.before or "–"}
            for c in changes
        ],
        hide_index=True,
        alt="What would be written: kind, name, value, and what stands there now.",
        column_config={
            "kind": st.column_config.TextColumn(width="small"),
            "value": st.column_config.TextColumn(width="medium"),
        },
    )


def _show_written(draft: _Draft) -> None:
    assert draft.written is not None  # for mypy: asked before
    Jobs.settle([draft.written], _PATIENCE_SECONDS)
    if not draft.written.done():
        rerun_when_done(draft.written, f"Writing to {as_text(clean_text(draft.name, 60))} …")
        return
    done = draft.written.result()
    if isinstance(done, _Failure):
        show_error("The writing stopped.", done.reason)
        return
    st.text(f"✓ Written to {clean_text(draft.name, 60)}: {_counted(done)}.")


def _counted(changes: Sequence[Change]) -> str:
    counts = Counter(change.kind for change in changes)
    return ", ".join(f"{n} {kind}{'s' * (n > 1)}" for kind, n in counts.items())
