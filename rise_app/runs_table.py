"""The table of runs on the Experiments page: one line a run, computed in the background."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import sha1
from math import isfinite, isnan, nan
from typing import Any, TypeVar

import pandas as pd
import streamlit as st

from rise_app.jobs import jobs
from rise_app.kept_results import Form, estimates_from_text, estimates_to_text, kept
from rise_app.loaders import ALL_ROWS, Analysis, answer, question_of, stamp
from rise_app.mapping import mapping_stamp, roles_for
from rise_app.messages import is_passing, problem_of
from rise_app.switches import RATES
from rise_core import Evaluation, Predictions
from rise_core.charts import spark_svg, strip_domain, strip_svg
from rise_core.charts.theme import ThemeName
from rise_core.columns import Roles
from rise_core.estimates import Estimate
from rise_core.residuals import RESIDUALS
from rise_core.tracking import Run, Store, Table
from rise_core.wording import METRICS, format_short

__all__ = [
    "RunFacts",
    "RunLine",
    "ask_facts",
    "ask_lines",
    "ask_noise",
    "common_facts",
    "groups_text",
    "known_groups",
    "pending",
    "run_table",
    "stop",
    "unreadable",
]

T = TypeVar("T")

_RUNNING_SECONDS = 60
_COLUMNS = ("accuracy", "dp", "md", "f_mean", "f_shift", "f_acc", "w1")


@dataclass(frozen=True)
class RunFacts:
    """What a run's table can be asked: sensitive columns and environments; or why it cannot be."""

    attributes: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    problem: str = ""
    passing: bool = False


@dataclass(frozen=True)
class RunLine:
    """A run's numbers, or why there are none.

    Attributes
    ----------
    values : indicator name to value, nan where undefined
    rows, left_out : rows used and left out
    environment, positive, groups : what was evaluated; groups as "sensitive against reference"
    majority : accuracy of always deciding for the more frequent label
    spark : picture of the sorted residuals by group, as a data address, by theme
    problem : why the run has no numbers, or ""
    passing : whether asking again may help
    """

    values: Mapping[str, float] = field(default_factory=dict)
    rows: int = 0
    left_out: int = 0
    environment: str = ""
    positive: str = ""
    groups: str = ""
    majority: float = nan
    spark: Mapping[ThemeName, str] = field(default_factory=dict)
    problem: str = ""
    passing: bool = False


def _read(store: Store, run: Run) -> tuple[Table, Roles, Predictions]:
    table = store.load(run)
    roles = roles_for(store, run, table)
    return table, roles, Predictions.from_frame(table.frame, roles)


def _key(store: Store, run: Run) -> tuple[str, ...]:
    # A run that is still written is looked at afresh now and then.
    when = f"{time.time() // _RUNNING_SECONDS:.0f}" if run.running else stamp(run)
    return (store.uri, run.id, when, mapping_stamp(store, run.experiment_id))


def _facts(store: Store, run: Run) -> RunFacts:
    try:
        _, _, predictions = _read(store, run)
    except Exception as error:  # one run must not take the page with it
        return RunFacts(problem=problem_of(error), passing=is_passing(error))
    environment = predictions.environment
    return RunFacts(tuple(predictions.features), () if environment is None else environment.labels)


def _line(store: Store, run: Run, analysis: Analysis) -> RunLine:
    try:
        table, roles, predictions = _read(store, run)
        question = question_of(run, table, roles, predictions, analysis)
        ev = answer(question, predictions)
        return RunLine(
            values=dict(ev.indicators),
            rows=ev.n,
            left_out=ev.n_rows - ev.n,
            environment="" if question.environment == ALL_ROWS else question.environment,
            positive=ev.predictions.pos_label,
            groups=groups_text(ev),
            majority=ev.majority_accuracy,
            spark={"light": spark_svg(ev, theme="light"), "dark": spark_svg(ev, theme="dark")},
        )
    except Exception as error:  # one run must not take the page with it
        return RunLine(problem=problem_of(error), passing=is_passing(error))


def groups_text(ev: Evaluation) -> str:
    """Return the compared groups as text, the sensitive one first."""
    if ev.sensitive is not None and ev.reference is not None and len(ev.groups) == 2:
        return f"{ev.sensitive} against {ev.reference}"
    return ", ".join(ev.groups)


def common_facts(lines: Mapping[str, Future[RunLine]], analysis: Analysis) -> dict[str, str]:
    """Return what holds for all runs shown; what differs between them says so."""
    done = [
        future.result()
        for future in lines.values()
        if future.done() and not future.cancelled() and not future.result().problem
    ]

    def common(values: Iterable[str]) -> str:
        found = set(values)
        return found.pop() if len(found) == 1 else "differs by run"

    if not done:
        return {}
    return {
        "environment": common(line.environment or "all" for line in done),
        "positive class": common(line.positive for line in done),
        "groups": common(line.groups for line in done),
        "threshold": f"{analysis.settings.threshold:g}",
        "residual": RESIDUALS[analysis.settings.residual].symbol,
        "base rates": RATES[analysis.settings.base_rates],
        "rows": common(f"{line.rows:,}" for line in done),
        "majority baseline": common(f"accuracy {line.majority:.3f}" for line in done),
    }


def ask_facts(store: Store, runs: Sequence[Run]) -> dict[str, Future[RunFacts]]:
    """Begin to look into the tables of runs; by run id."""

    def ask(run: Run) -> Future[RunFacts]:
        key = ("facts", *_key(store, run))
        form = Form(_to_text, _facts_from_text, lambda facts: not (facts.problem or run.running))
        return jobs().ask(
            key, partial(kept, store, key, partial(_facts, store, run), form), _passing
        )

    return {run.id: ask(run) for run in runs}


def ask_lines(store: Store, runs: Sequence[Run], analysis: Analysis) -> dict[str, Future[RunLine]]:
    """Begin to compute the numbers of runs; by run id."""

    def ask(run: Run) -> Future[RunLine]:
        key = ("line", *_key(store, run), analysis)
        form = Form(_to_text, _line_from_text, lambda line: not (line.problem or run.running))
        work = partial(_line, store, run, analysis)
        return jobs().ask(key, partial(kept, store, key, work, form), _passing)

    return {run.id: ask(run) for run in runs}


def _to_text(found: RunFacts | RunLine) -> str:
    return json.dumps(asdict(found))


def _facts_from_text(text: str) -> RunFacts:
    value = json.loads(text)
    return RunFacts(tuple(value["attributes"]), tuple(value["environments"]))


def _line_from_text(text: str) -> RunLine:
    return RunLine(**json.loads(text))


def _passing(found: RunFacts | RunLine) -> bool:
    return found.passing


def _noise(store: Store, run: Run, analysis: Analysis) -> Mapping[str, Estimate]:
    try:
        table, roles, predictions = _read(store, run)
        ev = answer(question_of(run, table, roles, predictions, analysis), predictions)
        return ev.uncertainty().indicators
    except Exception as error:
        problem_of(error)
        if is_passing(error):
            raise
        return {}  # the run's line says why


def ask_noise(
    store: Store, runs: Sequence[Run], analysis: Analysis
) -> dict[str, Future[Mapping[str, Estimate]]]:
    """Begin to compute interval and null of every indicator of runs; by run id."""

    def ask(run: Run) -> Future[Mapping[str, Estimate]]:
        key = ("noise", *_key(store, run), analysis)
        form = Form(
            estimates_to_text, estimates_from_text, lambda noise: bool(noise) and not run.running
        )
        work = partial(_noise, store, run, analysis)
        return jobs().ask(key, partial(kept, store, key, work, form))

    return {run.id: ask(run) for run in runs}


def known_groups(facts: Mapping[str, Future[RunFacts]]) -> tuple[list[str], list[str]]:
    """Return the sensitive columns and the environments of the runs looked into so far."""
    attributes: dict[str, None] = {}
    environments: dict[str, None] = {}
    for future in facts.values():
        if future.done() and not future.cancelled():
            attributes |= dict.fromkeys(future.result().attributes)
            environments |= dict.fromkeys(future.result().environments)
    return list(attributes), list(environments)


def run_table(
    runs: Sequence[Run],
    lines: Mapping[str, Future[RunLine]],
    noise: Mapping[str, Future[Mapping[str, Estimate]]] | None,
    theme: ThemeName,
) -> list[Run]:
    """Draw the table and return the selected runs.

    ``noise`` draws every indicator with its interval and null; None writes bare numbers, to be
    copied and calculated with.
    """
    done = _finished(lines)
    readable = [run for run in runs if not (run.id in done and done[run.id].problem)]
    if not readable:
        return []
    frame = pd.DataFrame([_cells(run, done.get(run.id), theme) for run in readable])
    if noise is not None:
        _draw_noise(frame, [run.id for run in readable], done, _finished(noise), theme)
    # Row positions are all that a selection remembers, so the key names the rows.
    names = sha1(" ".join(run.id for run in readable).encode()).hexdigest()[:12]
    event = st.dataframe(
        frame.loc[:, _worth_showing(frame)],
        hide_index=True,
        row_height=44,
        height="content",
        column_config=_column_config(pictures=noise is not None),
        on_select="rerun",
        selection_mode="multi-row",
        key=f"runs {names}",
        placeholder="–",
        alt="Runs and their indicators",
    )
    return [readable[i] for i in event.selection.rows if i < len(readable)]


def _finished(futures: Mapping[str, Future[T]]) -> dict[str, T]:
    return {
        run_id: future.result()
        for run_id, future in futures.items()
        if future.done() and not future.cancelled() and future.exception() is None
    }


def _draw_noise(
    frame: pd.DataFrame,
    ids: Sequence[str],
    lines: Mapping[str, RunLine],
    noise: Mapping[str, Mapping[str, Estimate]],
    theme: ThemeName,
) -> None:
    """Replace the indicators' numbers by pictures on one axis a column."""
    for key in _COLUMNS:
        found: list[dict[str, Any]] = [
            {"name": run_id, "value": lines[run_id].values.get(key, nan)}
            | _ends(noise.get(run_id, {}).get(key))
            for run_id in ids
            if run_id in lines
        ]
        if not found:
            continue
        domain = strip_domain(pd.DataFrame(found))
        pictures = {
            row.pop("name"): strip_svg(
                **row,
                domain=domain,
                label=format_short(row["value"]),
                theme=theme,
                width=92,
                height=18,
            )
            for row in found
        }
        frame[key] = [pictures.get(run_id) for run_id in ids]


def _ends(estimate: Estimate | None) -> dict[str, Any]:
    if estimate is None:
        return dict.fromkeys(("low", "high", "null_low", "null_high"), nan) | {"unstable": False}
    return {
        "low": estimate.low,
        "high": estimate.high,
        "null_low": estimate.null_low,
        "null_high": estimate.null_high,
        "unstable": estimate.unstable,
    }


def _cells(run: Run, line: RunLine | None, theme: ThemeName) -> dict[str, Any]:
    cells: dict[str, Any] = {
        "algorithm": str(run.algorithm),
        "dataset": run.dataset,
        "seed": None if run.seed is None else str(run.seed),
        "status": "running" if run.running else run.status.lower(),
        "curve": line.spark.get(theme) if line else None,
    }
    for key in _COLUMNS:
        value = line.values.get(key) if line else None
        cells[key] = None if value is None or isnan(value) or not isfinite(value) else value
    cells |= {
        "rows": line.rows if line else None,
        "environment": line.environment if line else None,
        "groups": line.groups if line else None,
        "positive": line.positive if line else None,
        "started": run.start_time,
        "run": run.name,
    }
    return cells


def _worth_showing(frame: pd.DataFrame) -> list[str]:
    """Leave out the columns that are empty or say the same of every run."""

    def worth(name: str) -> bool:
        column = frame[name]
        if name in ("dataset", "groups", "positive", "environment"):
            return column.nunique() > 1
        if name == "status":
            return bool((column != "finished").any())
        return name != "seed" or bool(column.notna().any())

    return [str(name) for name in frame.columns if worth(str(name))]


def _column_config(*, pictures: bool) -> dict[str, Any]:
    config: dict[str, Any] = {
        "algorithm": st.column_config.TextColumn("Algorithm", pinned=True),
        "dataset": "Data set",
        "seed": st.column_config.TextColumn("Seed", width=55),
        "status": "Status",
        "curve": st.column_config.ImageColumn(
            "Residuals", width=130, help="Sorted residuals of each group, from rank 0 to 100 %."
        ),
        "rows": st.column_config.NumberColumn("Rows", format="localized", width=75),
        "environment": "Environment",
        "groups": "Groups",
        "positive": "Positive class",
        "started": st.column_config.DatetimeColumn("Started", format="distance"),
        "run": st.column_config.TextColumn("Run"),
    }
    for key in _COLUMNS:
        metric = METRICS[key]
        title = f"{metric.name} {metric.arrow}"
        help_text = f"{metric.meaning}. {metric.direction} {metric.explains}"
        if pictures:
            config[key] = st.column_config.ImageColumn(title, width=108, help=help_text)
            continue
        config[key] = st.column_config.NumberColumn(
            title,
            # A knee over a knee near 0 runs to thousands: four digits say all there is to say.
            format="%.4g" if key in ("f_shift", "f_acc") else "%.3f",
            width=82,
            help=help_text,
        )
    return config


def unreadable(runs: Sequence[Run], lines: Mapping[str, Future[RunLine]]) -> list[tuple[Run, str]]:
    """Return the runs that have no numbers, each with the reason."""
    return [
        (run, lines[run.id].result().problem)
        for run in runs
        if lines[run.id].done() and not lines[run.id].cancelled() and lines[run.id].result().problem
    ]


def pending(lines: Mapping[str, Future[Any]]) -> list[str]:
    """Return the ids of the runs that are still being worked on."""
    return [run_id for run_id, future in lines.items() if not future.done()]


def stop(lines: Mapping[str, Future[Any]]) -> None:
    """Give up what has not begun."""
    for future in lines.values():
        future.cancel()
