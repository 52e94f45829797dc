"""The numbers of the runs on the Experiments page, computed in the background."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from functools import partial
from math import nan
from typing import Any, TypeVar

from rise_app.jobs import jobs
from rise_app.kept_results import Form, estimates_from_text, estimates_to_text, kept
from rise_app.loaders import ALL_ROWS, Analysis, answer, question_of, stamp
from rise_app.mapping import mapping_stamp, roles_for
from rise_app.messages import is_passing, problem_of
from rise_app.switches import RATES
from rise_core import Evaluation, Predictions
from rise_core.charts import spark_svg
from rise_core.charts.theme import ThemeName
from rise_core.columns import Roles
from rise_core.estimates import Estimate
from rise_core.exceptions import NestedTablesError
from rise_core.residuals import RESIDUALS
from rise_core.tracking import Run, Store, Table

__all__ = [
    "RunFacts",
    "RunLine",
    "ask_facts",
    "ask_lines",
    "ask_noise",
    "common_facts",
    "finished",
    "groups_text",
    "is_fault",
    "known_groups",
    "pending",
    "stop",
    "unreadable",
]

T = TypeVar("T")

_RUNNING_SECONDS = 60


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
    nested : whether the run has no table because the runs nested in it hold them
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
    nested: bool = False


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


def _line(store: Store, analysis: Analysis, run: Run) -> RunLine:
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
        nested = isinstance(error, NestedTablesError)
        return RunLine(problem=problem_of(error), passing=is_passing(error), nested=nested)


def _noise(store: Store, analysis: Analysis, run: Run) -> Mapping[str, Estimate]:
    try:
        table, roles, predictions = _read(store, run)
        ev = answer(question_of(run, table, roles, predictions, analysis), predictions)
        return ev.uncertainty().indicators
    except Exception as error:
        problem_of(error)
        if is_passing(error):
            raise
        return {}  # the run's line says why


def groups_text(ev: Evaluation) -> str:
    """Return the compared groups as text, the sensitive one first."""
    if ev.sensitive is not None and ev.reference is not None and len(ev.groups) == 2:
        return f"{ev.sensitive} against {ev.reference}"
    return ", ".join(ev.groups)


def common_facts(lines: Mapping[str, Future[RunLine]], analysis: Analysis) -> dict[str, str]:
    """Return what holds for all runs shown; what differs between them says so."""
    done = [line for line in finished(lines).values() if not line.problem]

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
    return _ask("facts", store, runs, partial(_facts, store), _FACTS, passing=_passing)


def ask_lines(store: Store, runs: Sequence[Run], analysis: Analysis) -> dict[str, Future[RunLine]]:
    """Begin to compute the numbers of runs; by run id."""
    work = partial(_line, store, analysis)
    return _ask("line", store, runs, work, _LINE, analysis, passing=_passing)


def ask_noise(
    store: Store, runs: Sequence[Run], analysis: Analysis
) -> dict[str, Future[Mapping[str, Estimate]]]:
    """Begin to compute interval and null of every indicator of runs; by run id."""
    return _ask("noise", store, runs, partial(_noise, store, analysis), _NOISE, analysis)


def _ask(
    kind: str,
    store: Store,
    runs: Sequence[Run],
    work: Callable[[Run], T],
    form: Form[T],
    *what: Hashable,
    passing: Callable[[T], bool] = lambda _: False,
) -> dict[str, Future[T]]:
    """Begin work of a kind on runs, unless its results are kept on disk; by run id."""

    def ask(run: Run) -> Future[T]:
        key = (kind, *_key(store, run), *what)
        own = partial(work, run)
        # What a run says that is still written is not kept.
        return jobs().ask(
            key, own if run.running else partial(kept, store, key, own, form), passing
        )

    return {run.id: ask(run) for run in runs}


def _to_text(found: RunFacts | RunLine) -> str:
    return json.dumps(asdict(found))


def _facts_from_text(text: str) -> RunFacts:
    value = json.loads(text)
    return RunFacts(tuple(value["attributes"]), tuple(value["environments"]))


def _line_from_text(text: str) -> RunLine:
    return RunLine(**json.loads(text))


_FACTS = Form(_to_text, _facts_from_text, lambda facts: not facts.problem)
_LINE = Form(_to_text, _line_from_text, lambda line: not line.problem)
_NOISE = Form(estimates_to_text, estimates_from_text, bool)


def _passing(found: RunFacts | RunLine) -> bool:
    return found.passing


def known_groups(facts: Mapping[str, Future[RunFacts]]) -> tuple[list[str], list[str]]:
    """Return the sensitive columns and the environments of the runs looked into so far."""
    attributes: dict[str, None] = {}
    environments: dict[str, None] = {}
    for found in finished(facts).values():
        attributes |= dict.fromkeys(found.attributes)
        environments |= dict.fromkeys(found.environments)
    return list(attributes), list(environments)


def is_fault(line: RunLine) -> bool:
    """Whether a run has no numbers though it should; a parent of nested runs need not."""
    return bool(line.problem) and not line.nested


def finished(futures: Mapping[str, Future[T]]) -> dict[str, T]:
    """Return the results that are there; by run id."""
    return {
        run_id: future.result()
        for run_id, future in futures.items()
        if future.done() and not future.cancelled() and future.exception() is None
    }


def unreadable(runs: Sequence[Run], lines: Mapping[str, Future[RunLine]]) -> list[tuple[Run, str]]:
    """Return the runs that have no numbers, each with the reason; no parents of nested runs."""
    done = finished(lines)
    return [
        (run, done[run.id].problem) for run in runs if run.id in done and is_fault(done[run.id])
    ]


def pending(lines: Mapping[str, Future[Any]]) -> list[str]:
    """Return the ids of the runs that are still being worked on."""
    return [run_id for run_id, future in lines.items() if not future.done()]


def stop(lines: Mapping[str, Future[Any]]) -> None:
    """Give up what has not begun."""
    for future in lines.values():
        future.cancel()
