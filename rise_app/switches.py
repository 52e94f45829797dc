"""The switches in the sidebar: which run, which groups, how it is measured."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Literal

import streamlit as st

from rise_app import loaders
from rise_app.address import (
    chosen,
    linked,
    linked_many,
    linked_number,
    linked_text,
    listed,
    page_number,
    query_for,
    remember,
    split,
)
from rise_app.entries import EntryPage
from rise_app.loaders import ALL_ROWS, HELD_OUT
from rise_app.messages import as_text, show_error, told_apart
from rise_core import Predictions, Settings
from rise_core.exceptions import AuthenticationError, ServerUnreachableError, TrackingError
from rise_core.residuals import RESIDUALS
from rise_core.tracking import Experiment, Listing, Order, Run, Search, Store
from rise_core.wording import METRICS

__all__ = [
    "MOST_COMPARED",
    "RATES",
    "THRESHOLD",
    "choose_attribute",
    "choose_environment",
    "choose_environment_of_many",
    "choose_experiment",
    "choose_from_store",
    "choose_indicator",
    "choose_run",
    "choose_runs",
    "choose_search",
    "choose_settings",
    "count_text",
    "page_wanted",
    "show_run_of_model",
]

MOST_COMPARED = 20
_PAGE_OF = "page is of"
_SEARCHED = "experiment searched"
_FIRST_COMPARED = 8
THRESHOLD = 0.5
RATES = {"observed": "as observed", "equal": "equal"}
"""What the two kinds of base rates are called."""


def choose_experiment(
    found: Sequence[Experiment],
    *,
    label: str = "Data set",
    width: int | Literal["stretch"] = "stretch",
) -> Experiment:
    """Choose an experiment; the address keeps its id. Raises TrackingError where there is none."""
    if not found:
        raise TrackingError(
            "The store answers and holds no experiment. Log a run with "
            "rise_core.tracking.log_predictions, or look at another store."
        )
    names = {e.id: e.name for e in found}
    picked = linked(
        st.selectbox,
        label,
        list(names),
        "experiment",
        default=found[0].id,
        format_func=names.__getitem__,
        # The default changes when somebody logs a run, and a linked run names another one.
        sticky=True,
        width=width,
    )
    return next(e for e in found if e.id == picked)


def choose_from_store(store: Store) -> tuple[Experiment, Run]:
    """Choose experiment, algorithm and run; a run named in the address says the rest.

    Raises
    ------
    RiseError
        the store does not answer, or has no runs
    """
    found = loaders.experiments(store)
    before = chosen("experiment")
    linked_run = _run_of_address(store)
    if linked_run is not None and before is None:
        remember("experiment", linked_run.experiment_id)
    experiment = choose_experiment(found)
    runs = loaders.runs_of(store, experiment.id)
    if linked_run is not None and linked_run.experiment_id != experiment.id:
        # Another experiment was chosen: keep algorithm and seed where it has them.
        linked_run = _alike(runs, linked_run)
        remember("run", linked_run.id if linked_run else None)
    if not runs and linked_run is None:
        raise TrackingError(f"Experiment {experiment.name!r} has no runs. Choose another one.")
    return experiment, choose_run(runs, linked_run)


def _run_of_address(store: Store) -> Run | None:
    """Return the run that the address names; one that is not there is said, and forgotten."""
    run_id = chosen("run")
    if run_id is None:
        return None
    try:
        run = loaders.find_run(store, run_id)
        if run.id != run_id:  # a model stood there: from now on the run that made it
            remember("run", run.id)
        return run
    except (ServerUnreachableError, AuthenticationError):
        raise
    except TrackingError as error:
        remember("run", None)
        st.text(f"The run of the address cannot be shown. {error}")
        return None


def _alike(runs: Sequence[Run], like: Run) -> Run | None:
    """Return the run most like another: same algorithm and seed, same algorithm, or the newest."""
    same = [run for run in runs if run.algorithm == like.algorithm]
    both = [run for run in same if run.seed == like.seed]
    return next(iter([*both, *same, *runs]), None)


def choose_run(runs: Sequence[Run], linked_run: Run | None) -> Run:
    """Choose an algorithm and one of its runs; another algorithm keeps the seed where it can."""
    current = linked_run or runs[0]
    if current.id not in {run.id for run in runs}:  # older than the newest runs that are listed
        runs = [current, *runs]
    algorithms = list(dict.fromkeys(str(run.algorithm) for run in runs))
    st.session_state["choose algorithm"] = str(current.algorithm)

    def take_algorithm() -> None:
        wanted = replace(current, algorithm=st.session_state["choose algorithm"])
        found = _alike(runs, wanted)
        remember("run", found.id if found else None)

    st.selectbox("Algorithm", algorithms, key="choose algorithm", on_change=take_algorithm)

    same = [run for run in runs if str(run.algorithm) == str(current.algorithm)]
    if len(same) > 1:
        names = _run_names(same)
        st.session_state["choose run"] = current.id

        def take_run() -> None:
            remember("run", st.session_state["choose run"])

        st.selectbox(
            "Run", list(names), key="choose run", format_func=names.__getitem__, on_change=take_run
        )
    remember("run", current.id)
    return current


def _run_names(runs: Sequence[Run]) -> dict[str, str]:
    """Return what runs are called, by id: no two alike, as a widget knows options by their text."""
    return told_apart({run.id: _run_name(run) for run in runs})


def _run_name(run: Run) -> str:
    parts = [run.name]
    if run.seed is not None and str(run.seed) not in run.name:
        parts.append(f"seed {run.seed}")
    if run.running:
        parts.append("running")
    return ", ".join(parts)


def choose_runs(store: Store, experiment: Experiment) -> list[Run]:
    """Choose the runs to compare, in the order chosen; at first one of each algorithm.

    Raises
    ------
    TrackingError
        the experiment has no runs
    """
    runs = loaders.runs_of(store, experiment.id)
    if not runs:
        raise TrackingError(f"Experiment {experiment.name!r} has no runs. Choose another one.")
    parents = {run.parent_id for run in runs}
    leaves = [run for run in runs if run.id not in parents] or runs
    first = list({str(run.algorithm): run for run in reversed(leaves)}.values())[::-1]
    found = {run.id: run for run in runs}
    # A link may name runs older than those that are listed.
    others = [run_id for run_id in split(chosen("runs") or "") if run_id not in found]
    if others:
        found |= loaders.runs_named(store, experiment.id, others[:MOST_COMPARED])
    names = _run_names(list(found.values()))
    picked = linked_many(
        st.multiselect,
        "Runs",
        list(found),
        "runs",
        default=[run.id for run in first[:_FIRST_COMPARED]],
        format_func=names.__getitem__,
        max_selections=MOST_COMPARED,
        placeholder="Pick two or more runs",
    )
    return [found[run_id] for run_id in picked]


def choose_environment(run: Run | None, predictions: Predictions) -> str:
    """Choose an environment of a table, or all rows; a run may name the one it holds out."""
    of_run = None if run is None else run.environment
    if predictions.environment is None:
        return ALL_ROWS
    counts = dict(zip(predictions.environment.labels, predictions.environment.counts, strict=True))

    def show(value: str) -> str:
        if value == ALL_ROWS:
            return f"all ({predictions.n:,} rows)"
        held_out = ", held out" if value == of_run else ""
        return f"{value} ({counts[value]:,} rows{held_out})"

    labels = list(predictions.environment.labels)
    default = of_run if of_run in labels else ALL_ROWS
    return linked(
        st.selectbox,
        "Environment",
        [ALL_ROWS, *labels],
        "environment",
        default=str(default),
        format_func=show,
    )


def choose_environment_of_many(labels: Sequence[str]) -> str:
    """Choose an environment for many runs: the one each holds out, all rows, or a label."""
    names = {HELD_OUT: "held out, where a run names it", ALL_ROWS: "all rows"}
    return linked(
        st.selectbox,
        "Environment",
        [HELD_OUT, ALL_ROWS, *labels],
        "environment",
        default=HELD_OUT,
        format_func=lambda value: names.get(value, value),
    )


def choose_attribute(names: Sequence[str]) -> str | None:
    """Choose the protected attribute; None when there is none to choose from."""
    if not names:
        return None
    return linked(st.selectbox, "Protected attribute", list(names), "attribute", default=names[0])


def choose_settings() -> Settings:
    """Choose residual, base rates and threshold."""
    residual = linked(
        st.segmented_control,
        "Residual",
        list(RESIDUALS),
        "residual",
        default="signed_error",
        format_func=lambda name: RESIDUALS[name].symbol,
        help="p − y: how far the score is from the label. "
        "ŷ − p: how far the decision is from its own score; no label needed.",
    )
    rates = linked(
        st.segmented_control,
        "Base rates",
        list(RATES),
        "rates",
        default="observed",
        format_func=RATES.__getitem__,
        help="Equal: every group is weighted to the same share of positive labels. What remains "
        "is error given the label.",
    )
    threshold = linked_number(
        "Threshold",
        0.0,
        1.0,
        "threshold",
        default=THRESHOLD,
        step=0.01,
        help="A row is called positive when its score is at or above it.",
    )
    return Settings(threshold=threshold, residual=residual, base_rates=rates)  # type: ignore[arg-type]


def choose_indicator(label: str, keys: Sequence[str], *, width: int) -> str:
    """Choose the indicator that models are ordered or coloured by."""
    return linked(
        st.selectbox,
        label,
        list(keys),
        "by",
        default="w1",
        width=width,
        format_func=lambda key: f"{METRICS[key].name}, {METRICS[key].meaning}",
    )


_FIND_HELP = """
The server looks through all runs of the experiment:

- words: in the run's name and its algorithm
- `team=blue`: in tags and parameters
- the beginning of a run's id
- MLflow's filter language: `metrics.auc > 0.8 and tags.team = 'blue'`
- `models:/name@champion`: the run that made a registered model, wherever it is
"""


def choose_search(experiment: Experiment, known: Listing) -> Search:
    """Choose what to look for among an experiment's runs, and in which order they come.

    ``known`` is what is listed without a search: it tells what there is to choose from.
    """
    before = st.session_state.get(_SEARCHED)
    st.session_state[_SEARCHED] = experiment.id
    if before not in (None, experiment.id):
        _drop_foreign(known.runs)
    text = linked_text(
        "Find",
        "find",
        placeholder="name, team=blue, metrics.auc > 0.8",
        icon=":material/search:",
        help=_FIND_HELP,
        width="stretch",
    )
    datasets = _pick("Data set", "dataset", [run.dataset for run in known.runs], known.complete)
    algorithms = _pick(
        "Algorithm", "algorithm", [run.algorithm for run in known.runs], known.complete
    )
    return Search(text.strip(), tuple(datasets), tuple(algorithms), _choose_order(known.runs))


def show_run_of_model(store: Store, model: str) -> None:
    """Lead from a model of the registry to the run that made it."""
    try:
        run = loaders.find_run(store, model)
    except (ServerUnreachableError, AuthenticationError):
        raise
    except TrackingError as error:
        show_error("This model leads to no run.", error)
        return
    st.text(f"{model} was made by run {run.name}.")
    st.page_link(
        "pages/diagnose.py",
        label=f"Look at {as_text(run.name)} on Diagnose",
        icon=":material/show_chart:",
        query_params=query_for(run=run.id, experiment=run.experiment_id),
    )


def _drop_foreign(runs: Sequence[Run]) -> None:
    """Take back what was chosen in another experiment and means nothing in this one."""
    for name in ("dataset", "algorithm"):
        here = {getattr(run, name) for run in runs}
        kept = listed(value for value in split(chosen(name) or "") if value in here)
        remember(name, kept or None)
    if chosen("order") not in _order_options(runs):
        remember("order", None)


def _pick(label: str, name: str, found: Sequence[str | None], complete: bool) -> list[str]:
    """Choose among values; where more runs may have others, one can be typed in."""
    options = sorted({value for value in found if value})
    picked = split(chosen(name) or "")
    if complete and len(options) < 2 and not picked:
        return []
    return linked_many(
        st.multiselect,
        label,
        # A value that was typed in, or came with a link, is one more of the options.
        [*options, *(value for value in picked if value not in options)],
        name,
        placeholder="all",
        accept_new_options=True,
        width=150,
    )


def _choose_order(known: Sequence[Run]) -> Order:
    options = _order_options(known)
    linked_order = chosen("order")
    if linked_order and linked_order not in options:
        with suppress(ValueError):  # a metric that only other runs have
            options.append(Order.parse(linked_order).text)
    picked = linked(
        st.selectbox,
        "Order",
        options,
        "order",
        default="newest",
        format_func=_order_name,
        help="By the server. Runs that lack the metric come last.",
        width=185,
    )
    return Order.parse(picked)


def _order_options(runs: Sequence[Run]) -> list[str]:
    metrics = sorted(
        {name for run in runs for name in run.metrics},
        key=lambda name: (not name.startswith("rise."), name),
    )
    by_metric = [f"{name} {way}" for name in metrics for way in ("desc", "asc")]
    return ["newest", "oldest", "name", *by_metric]


def _order_name(text: str) -> str:
    order = Order.parse(text)
    if order.metric:
        return f"{order.key}, {'highest' if order.descending else 'lowest'} first"
    return {"newest": "newest first", "oldest": "oldest first", "name": "name, A to Z"}[text]


def page_wanted(of: str) -> int:
    """Return the number of the page that is asked for; the first where ``of`` is something new."""
    before = st.session_state.get(_PAGE_OF)
    if before not in (None, of):
        remember("page", None)
    st.session_state[_PAGE_OF] = of
    return page_number("page")


def count_text(page: EntryPage, search: Search) -> str:
    """Return what is on screen and of how many, as Markdown: "runs 26–50 of 500+"."""
    runs = len(page.listing.runs)
    more = "" if page.listing.complete else "+"
    grouped = page.known < runs
    what = "lines" if grouped else "runs"
    first, last = page.before + 1, page.before + len(page.entries)
    text = f"{what} {first:,}–{last:,} of {page.known:,}{more}"
    if grouped:
        text += f" ({runs:,}{more} runs)"
    if search.order.metric:
        text += f"; runs without {as_text(search.order.key)} come last"
    return text
