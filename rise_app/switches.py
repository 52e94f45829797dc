"""The switches in the sidebar: which run, which groups, how it is measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import streamlit as st

from rise_app import loaders
from rise_app.address import chosen, linked, linked_many, linked_number, linked_text, remember
from rise_app.loaders import ALL_ROWS, HELD_OUT
from rise_core import Predictions, Settings
from rise_core.exceptions import AuthenticationError, ServerUnreachableError, TrackingError
from rise_core.residuals import RESIDUALS
from rise_core.tracking import Experiment, Run, Store

__all__ = [
    "MOST_COMPARED",
    "RATES",
    "THRESHOLD",
    "choose_attribute",
    "choose_environment",
    "choose_environment_of_many",
    "choose_experiment",
    "choose_from_store",
    "choose_run",
    "choose_runs",
    "choose_settings",
    "filter_runs",
    "page_of",
]

MOST_COMPARED = 20
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
        return loaders.find_run(store, run_id)
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
    names = {run.id: _run_name(run) for run in runs}
    times = Counter(names.values())
    return {
        run_id: name if times[name] == 1 else f"{name} ({run_id[:8]})"
        for run_id, name in names.items()
    }


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
    first = list({str(run.algorithm): run for run in reversed(runs)}.values())[::-1]
    found = {run.id: run for run in runs}
    names = _run_names(runs)
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


def filter_runs(runs: Sequence[Run]) -> list[Run]:
    """Narrow runs down by text and by data set, algorithm, where there are several."""
    text = linked_text(
        "Find",
        "find",
        placeholder="name, tag or parameter",
        icon=":material/search:",
        width=250,
    )
    picked = {
        what: _pick(label, what, sorted({str(v) for run in runs if (v := getattr(run, what))}))
        for what, label in (("dataset", "Data set"), ("algorithm", "Algorithm"))
    }
    words = text.lower().split()
    return [
        run
        for run in runs
        if all(
            not chosen_ or str(getattr(run, what)) in chosen_ for what, chosen_ in picked.items()
        )
        and all(word in _searchable(run) for word in words)
    ]


def _pick(label: str, name: str, options: list[str]) -> list[str]:
    if len(options) < 2:
        return []
    return linked_many(st.multiselect, label, options, name, placeholder="all", width=250)


def _searchable(run: Run) -> str:
    own = {k: v for k, v in run.tags.items() if not k.startswith("mlflow.")}
    pairs = [f"{name}={value}" for name, value in {**own, **run.params}.items()]
    return " ".join([run.name, run.id, run.status, *pairs]).lower()


def page_of(runs: Sequence[Run], size: int) -> Sequence[Run]:
    """Choose one page of runs; no choice where they fit on one."""
    pages = -(-len(runs) // size)
    if pages < 2:
        return runs
    page = st.pagination(pages, key="page of runs")
    return runs[(page - 1) * size : page * size]
