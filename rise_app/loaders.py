"""What pages ask for, with the caches behind it: runs, tables, predictions, evaluations.

Everything that is cached is keyed by what names its content (store, run, path, digest), never by
hashing the data: Streamlit hashes only a sample of a large frame.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

import streamlit as st
from streamlit.runtime.scriptrunner import add_script_run_ctx, get_script_run_ctx

from rise_app.connection import is_demo
from rise_app.mapping import roles_for
from rise_core import Evaluation, Predictions, Settings, evaluate_predictions
from rise_core.columns import Roles
from rise_core.exceptions import ColumnError, RiseError
from rise_core.tracking import Experiment, Listing, Run, Search, Store, Table, TableRef
from rise_core.tracking.entities import LOGGED_TAG, TABLE_TAG
from rise_core.tracking.listing import CHUNK, find_sources
from rise_core.tracking.search import Sources, filter_for_ids

__all__ = [
    "ALL_ROWS",
    "HELD_OUT",
    "Analysis",
    "Question",
    "answer",
    "attributes_in",
    "environment_of",
    "environments_in",
    "evaluation",
    "experiments",
    "find_run",
    "forget_lists",
    "listing",
    "load_table",
    "load_tables",
    "predictions_of",
    "question_of",
    "run_names",
    "runs_named",
    "runs_of",
    "tables_of",
]

ALL_ROWS = "(all)"
HELD_OUT = "(held out)"

_LIST_SECONDS = 30
_KEPT_SECONDS = 600
_AT_ONCE = 8
_ALL = Search()
RUNS_AT_ONCE = CHUNK


@dataclass(frozen=True)
class Analysis:
    """What is asked of a run.

    Attributes
    ----------
    environment : a label, `ALL_ROWS`, or `HELD_OUT` for the one that the run names
    attribute : sensitive column; None for the first
    settings : threshold, residual, base rates, detector
    """

    environment: str = HELD_OUT
    attribute: str | None = None
    settings: Settings = field(default_factory=Settings)


@st.cache_resource(ttl=_LIST_SECONDS, max_entries=16, show_spinner="Reading experiments …")
def _experiments(uri: str, _store: Store) -> list[Experiment]:
    return _store.experiments()


def experiments(store: Store) -> list[Experiment]:
    """List the experiments, last changed first; raises TrackingError."""
    found = _experiments(store.uri, store)
    # MLflow puts an experiment of its own into every store; the demo's has no runs.
    return [e for e in found if e.id != "0"] if is_demo(store) else found


@st.cache_resource(ttl=_KEPT_SECONDS, max_entries=32, show_spinner=False, hash_funcs={Search: repr})
def _listing(uri: str, experiment: str, search: Search, _store: Store) -> Listing:
    sources = {what: _sources_of(_store, experiment, what) for what in search.depends_on}
    return Listing(_store, experiment, search, Sources(**sources), chunk=RUNS_AT_ONCE)


def _sources_of(store: Store, experiment: str, what: str) -> tuple[str, ...]:
    known = listing(store, experiment, fresh=False)
    if known.complete:  # costs no request
        return find_sources(store, experiment, what, known.runs, complete=True)
    return _sources(store.uri, experiment, what, store, known)


@st.cache_resource(ttl=_KEPT_SECONDS, max_entries=64, show_spinner=False)
def _sources(
    uri: str, experiment: str, what: str, _store: Store, _known: Listing
) -> tuple[str, ...]:
    return find_sources(_store, experiment, what, _known.runs, complete=False)


def listing(
    store: Store, experiment: str, search: Search = _ALL, count: int = 1, *, fresh: bool = True
) -> Listing:
    """List what a search finds, at least ``count`` runs of it where there are as many.

    One request for every 500 runs, and none while what was listed is new. Who has read on keeps
    what is listed for some minutes, as pages must not shift under a reader.

    Parameters
    ----------
    fresh : list again what is older than half a minute

    Raises
    ------
    FilterError
        the server does not understand the search's text
    TrackingError
        it does not answer
    """
    found = _listing(store.uri, experiment, search, store)
    if fresh and found.age > _LIST_SECONDS and found.in_first_chunk and count <= RUNS_AT_ONCE:
        _listing.clear(store.uri, experiment, search, store)
        found = _listing(store.uri, experiment, search, store)
    if len(found.runs) < count and not found.complete:
        with st.spinner("Reading runs …"):
            found.reach(count)
    return found


def runs_of(store: Store, experiment: str) -> list[Run]:
    """List an experiment's newest runs; raises TrackingError."""
    return list(listing(store, experiment).runs)


@st.cache_resource(ttl=_LIST_SECONDS, max_entries=256, show_spinner=False)
def _named_runs(uri: str, experiment: str, asked: str, _store: Store) -> dict[str, Run]:
    page = _store.runs(experiment, filter=asked, max_results=RUNS_AT_ONCE)
    return {run.id: run for run in page.runs}


def runs_named(store: Store, experiment: str, ids: Iterable[str]) -> dict[str, Run]:
    """Return those of an experiment's runs that have these ids, in one request; by id.

    Raises TrackingError. A run that is not there is absent.
    """
    asked = filter_for_ids(sorted(set(ids)))
    return _named_runs(store.uri, experiment, asked, store) if asked else {}


def forget_lists() -> None:
    """Forget what was listed, so that what was just written is found."""
    _experiments.clear()
    _listing.clear()
    _sources.clear()
    _named_runs.clear()
    _run.clear()


def run_names(
    store: Store, experiment: str, ids: Sequence[str], known: Iterable[Run]
) -> dict[str, str]:
    """Return the names of runs, by id: of those known, else in one request; without one, no name.

    A name is not worth a failure: what cannot be had is absent.
    """
    names = {run.id: run.name for run in known}
    if unknown := [run_id for run_id in ids if run_id not in names]:
        with suppress(RiseError):
            asked = runs_named(store, experiment, unknown)
            names |= {run_id: run.name for run_id, run in asked.items()}
    return {run_id: names[run_id] for run_id in ids if run_id in names}


@st.cache_resource(ttl=_LIST_SECONDS, max_entries=256, show_spinner=False)
def _run(uri: str, run_id: str, _store: Store) -> Run:
    if run_id.startswith("models:/"):
        return _store.run_of_model(run_id)
    return _store.run(run_id)


def find_run(store: Store, run_id: str) -> Run:
    """Return a run by its id, or by a model that it made ("models:/name@alias").

    Raises
    ------
    TrackingError
        there is no such run or model, or the store does not answer
    """
    return _run(store.uri, run_id, store)


def stamp(run: Run) -> str:
    """Text that changes when a run's files may have changed."""
    # A table may be logged, or logged again, to a run that has ended; its tags say so.
    named = (run.tags.get(name, "") for name in (TABLE_TAG, LOGGED_TAG))
    return " ".join([run.status, str(run.end_time), *named])


@st.cache_resource(max_entries=64, show_spinner=False)
def _table(
    uri: str, run_id: str, stamp: str, place: str, _store: Store, _run: Run, _ref: TableRef | None
) -> Table:
    return _store.load(_run, _ref)


def load_table(store: Store, run: Run, ref: TableRef | None = None) -> Table:
    """Fetch a run's prediction table; raises RiseError. A running run is looked at afresh.

    ``ref`` is one of `tables_of`; without it the one kept for the experiment, or the likeliest.
    """
    if run.running:
        return store.load(run, ref)
    kept = store.kept_roles(run.experiment_id)
    place = f"kept {kept and kept.table}" if ref is None else f"{ref.root} {ref.path}"
    return _table(store.uri, run.id, stamp(run), place, store, run, ref)


@st.cache_resource(ttl=_LIST_SECONDS, max_entries=256, show_spinner=False)
def _tables(uri: str, run_id: str, stamp: str, _store: Store, _run: Run) -> list[TableRef]:
    return _store.tables(_run, everything=True)


def tables_of(store: Store, run: Run) -> list[TableRef]:
    """List the files of a run that may be tables, likeliest first; raises RiseError."""
    return _tables(store.uri, run.id, stamp(run), store, run)


Loaded = tuple[Table, Roles, Predictions]


def load_tables(
    store: Store, runs: Sequence[Run]
) -> tuple[dict[str, Loaded], dict[str, RiseError]]:
    """Fetch and check the tables of runs, eight at a time; by run id, and what failed."""
    context = get_script_run_ctx()

    def join() -> None:
        add_script_run_ctx(threading.current_thread(), context)

    def load(run: Run) -> Loaded | RiseError:
        try:
            table = load_table(store, run)
            roles = roles_for(store, run, table)
            return table, roles, predictions_of(table, roles)
        except RiseError as error:
            return error

    with (
        st.spinner("Fetching predictions …"),
        ThreadPoolExecutor(_AT_ONCE, initializer=join) as pool,
    ):
        found = dict(zip([run.id for run in runs], pool.map(load, runs), strict=True))
    return (
        {run_id: item for run_id, item in found.items() if not isinstance(item, RiseError)},
        {run_id: item for run_id, item in found.items() if isinstance(item, RiseError)},
    )


def attributes_in(tables: Iterable[Loaded]) -> list[str]:
    """Return the sensitive columns that any of the tables has."""
    return list(dict.fromkeys(name for *_, rows in tables for name in rows.features))


def environments_in(tables: Iterable[Loaded]) -> list[str]:
    """Return the environments that any of the tables has."""
    factors = [rows.environment for *_, rows in tables]
    return list(dict.fromkeys(label for f in factors if f is not None for label in f.labels))


@st.cache_resource(max_entries=48, show_spinner=False)
def _predictions(key: str, roles: str, _table: Table, _roles: Roles) -> Predictions:
    return Predictions.from_frame(_table.frame, _roles)


def predictions_of(table: Table, roles: Roles) -> Predictions:
    """Check a table's rows under some roles; raises RiseError."""
    return _predictions(table.key, repr(roles.to_dict()), table, roles)


def environment_of(run: Run, predictions: Predictions, wanted: str) -> str:
    """Return the environment that is meant: a label, or `ALL_ROWS`."""
    labels = () if predictions.environment is None else predictions.environment.labels
    if wanted == HELD_OUT:
        wanted = run.environment or ALL_ROWS
        return wanted if wanted in labels else ALL_ROWS
    if wanted != ALL_ROWS and wanted not in labels:
        known = ", ".join(map(repr, labels)) or "none"
        raise ColumnError(f"No environment {wanted!r} in this run's table. There are: {known}.")
    return wanted


@dataclass(frozen=True)
class Question:
    """Everything an evaluation depends on, in a form that caches can compare.

    ``environment`` is a label or `ALL_ROWS`; ``roles`` is the text of the roles.
    """

    table: str
    roles: str
    environment: str
    attribute: str | None
    settings: Settings


def question_of(
    run: Run, table: Table, roles: Roles, predictions: Predictions, analysis: Analysis
) -> Question:
    """Say what is asked of a table; raises ColumnError for an environment it does not have."""
    environment = environment_of(run, predictions, analysis.environment)
    text = repr(roles.to_dict())
    return Question(table.key, text, environment, analysis.attribute, analysis.settings)


def answer(question: Question, predictions: Predictions) -> Evaluation:
    """Evaluate the rows that are asked for; raises RiseError where that is not possible."""
    rows = predictions
    if question.environment != ALL_ROWS:
        rows = rows.in_environment(question.environment)
    return evaluate_predictions(rows, feature=question.attribute, settings=question.settings)


@st.cache_resource(max_entries=128, show_spinner=False, hash_funcs={Question: repr})
def evaluation(question: Question, _predictions: Predictions) -> Evaluation:
    """Evaluate once and keep the answer; as `answer`."""
    return answer(question, _predictions)
