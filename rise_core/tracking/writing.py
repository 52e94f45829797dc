"""Writing back to a run, only on request: a plan that can be read first, then the writing.

A store must have been opened with ``connect(writable=True)``. Deleted runs, runs that another
program is still writing, and runs with the tag ``rise.locked`` are left alone.
"""

from __future__ import annotations

import json
import posixpath
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite, isnan
from pathlib import Path
from typing import Any, Literal

from rise_core.columns import Roles
from rise_core.evaluation import Evaluation
from rise_core.exceptions import TrackingError
from rise_core.tracking.address import clean_text
from rise_core.tracking.entities import Run
from rise_core.tracking.files import RunFiles, open_files
from rise_core.tracking.store import ROLES_TAG, Store
from rise_core.tracking.training import METRIC_PREFIX
from rise_core.uncertainty import Uncertainty

__all__ = ["EVALUATION_TAG", "LOCK_TAG", "REPORT_PATH", "Change", "Plan", "plan", "write"]

EVALUATION_TAG = "rise.evaluation"
"""Tag of a run that says what its metrics ``rise.*`` are: groups, threshold, seed, … as JSON."""
LOCK_TAG = "rise.locked"
"""Tag by which a person closes a run to RISE; any value but "false" does."""
REPORT_PATH = "rise/report.html"

_LONGEST_TAG = 5000  # MLflow's limit
_ENDS = ("low", "high", "null_low", "null_high")

Kind = Literal["metric", "tag", "file", "experiment tag"]


@dataclass(frozen=True)
class Change:
    """One thing that would be, or was, written.

    Parameters
    ----------
    kind : what it is
    name : of the metric or tag, or path of the file
    value : as text
    before : what stands there now, "" for nothing
    """

    kind: Kind
    name: str
    value: str
    before: str = ""

    def __str__(self) -> str:
        """Return one line for people."""
        was = f" (now {self.before})" if self.before else ""
        return f"{self.kind} {self.name}: {self.value}{was}"


@dataclass(frozen=True)
class Plan:
    """What would be written to a run; made by `plan`, carried out by `write`.

    Parameters
    ----------
    run : the run, as it was when the plan was made
    changes : all that would be written
    left_out : metric name to the reason why it is not: undefined, infinite, or there already
    """

    run: Run
    changes: tuple[Change, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    report: str | None = None
    roles: str | None = None

    def __str__(self) -> str:
        """Return the dry run, for people."""
        head = f"Run {clean_text(self.run.name, 60)} ({self.run.id})"
        lines = [f"  {change}" for change in self.changes] or ["  nothing to write"]
        lines += [f"  not written: {name}, {why}" for name, why in self.left_out.items()]
        return "\n".join([head, *lines])


def plan(
    store: Store,
    run: Run | str,
    ev: Evaluation | None = None,
    known: Uncertainty | None = None,
    *,
    environment: str | None = None,
    report: str | None = None,
    roles: Roles | None = None,
) -> Plan:
    """Say what would be written to a run; writes nothing.

    Parameters
    ----------
    store : the store; a read-only one will do
    run : the run, or its id; looked up again, since it may have changed
    ev : indicators become metrics ``rise.w1``, …; what they are becomes the tag `EVALUATION_TAG`
    known : intervals and nulls become metrics ``rise.w1.low``, ``.high``, ``.null_low``, …
    environment : whose rows `ev` was made of, for that tag; None for all rows
    report : HTML that becomes the file `REPORT_PATH`
    roles : which column is what, kept as a tag of the run's *experiment*, for all its tables

    Raises
    ------
    TrackingError
        the run is deleted, still written by another program, or locked.
    """
    fresh = store.run(run if isinstance(run, str) else run.id)
    _refuse_closed(fresh)
    values, left_out = _metrics(ev, known)
    for name, value in list(values.items()):
        if fresh.metrics.get(name) == value:
            left_out[name] = "it is there already"
            del values[name]
    tags = {} if ev is None else {EVALUATION_TAG: _what(ev, known, environment)}
    tags = {name: text for name, text in tags.items() if fresh.tags.get(name) != text}
    kept = None if roles is None else _tag_of(roles)
    if kept is not None and kept == _experiment_tag(store, fresh):
        kept, left_out[ROLES_TAG] = None, "it is there already"

    texts: list[tuple[Kind, str, str]] = [
        *(("metric", name, _number(value)) for name, value in values.items()),
        *(("tag", name, text) for name, text in tags.items()),
    ]
    if report is not None:
        texts.append(("file", REPORT_PATH, f"{len(report.encode()):,} bytes"))
    if kept is not None:
        texts.append(("experiment tag", ROLES_TAG, kept))
    changes = [
        Change(kind, name, text, _standing(store, fresh, kind, name)) for kind, name, text in texts
    ]
    return Plan(fresh, tuple(changes), left_out, values, tags, report, kept)


def write(store: Store, planned: Plan) -> tuple[Change, ...]:
    """Carry out a plan.

    Parameters
    ----------
    store : opened with ``connect(writable=True)``
    planned : made by `plan`

    Returns
    -------
    what was written

    Raises
    ------
    TrackingError
        the store is read-only, the run has been closed meanwhile, what the plan would replace is
        no longer what it says, or the server refuses; the message says what had been written by
        then.
    """
    if store.read_only:
        raise TrackingError(
            f"{store.label} was opened read-only, so nothing was written. "
            "Open it with connect(…, writable=True)."
        )
    run = planned.run
    _refuse_changed(store, planned)
    done: list[Change] = []
    steps = (
        (("file",), planned.report is not None, lambda: _log_report(store, planned)),
        (("metric", "tag"), bool(planned.metrics or planned.tags), lambda: _log(store, planned)),
        (("experiment tag",), planned.roles is not None, lambda: _keep(store, planned)),
    )
    for kinds, wanted, step in steps:
        if not wanted:
            continue
        # each time anew: whoever deletes or locks a run meanwhile is right
        _refuse_closed(store.run(run.id), done)
        words = " and ".join(f"{kind}s" for kind in kinds)
        try:
            store.ask(f"Writing {words} to run {clean_text(run.name, 60)!r}", step)
        except TrackingError as error:
            raise type(error)(f"{error}{_so_far(done)}") from error
        done += [change for change in planned.changes if change.kind in kinds]
    return tuple(done)


# ------------------------------------------------------------------------------------- plan


def _refuse_closed(run: Run, done: list[Change] | None = None) -> None:
    name = clean_text(run.name, 60)
    after = _so_far(done or [])
    if run.deleted:
        raise TrackingError(
            f"Run {name!r} has been deleted, so nothing is written to it. Bring it back first: "
            f"mlflow runs restore --run-id {run.id}{after}"
        )
    if run.tags.get(LOCK_TAG, "false").strip().lower() not in ("false", ""):
        raise TrackingError(
            f"Run {name!r} is locked by its tag {LOCK_TAG} "
            f"({clean_text(run.tags[LOCK_TAG], 60)}), so nothing is written to it. "
            f"Remove the tag if you may.{after}"
        )
    if run.running:
        raise TrackingError(
            f"Run {name!r} is {run.status.lower()}: another program is still writing it. "
            f"Wait until it has ended.{after}"
        )


def _refuse_changed(store: Store, planned: Plan) -> None:
    """Hold that what would be replaced is still what the person has seen and agreed to."""
    fresh = store.run(planned.run.id)
    _refuse_closed(fresh)
    for change in planned.changes:
        now = _standing(store, fresh, change.kind, change.name)
        if now != change.before:
            raise TrackingError(
                f"{change.kind.capitalize()} {change.name} of run "
                f"{clean_text(fresh.name, 60)!r} is {_short(now)} now and was "
                f"{_short(change.before)} when the plan was made, so nothing was written. "
                "Make the plan again."
            )


def _short(text: str) -> str:
    return clean_text(text, 60) or "absent"


def _standing(store: Store, run: Run, kind: Kind, name: str) -> str:
    """Return what stands now where a change would be written, as text; "" for nothing."""
    if kind == "metric":
        value = run.metrics.get(name)
        return "" if value is None else _number(value)
    if kind == "tag":
        return run.tags.get(name, "")
    if kind == "file":
        return _report_there(store, run)
    return _experiment_tag(store, run)


def _so_far(done: list[Change]) -> str:
    return f" Written before that: {', '.join(change.name for change in done)}." if done else ""


def _metrics(
    ev: Evaluation | None, known: Uncertainty | None
) -> tuple[dict[str, float], dict[str, str]]:
    values: dict[str, float] = {}
    left_out: dict[str, str] = {}
    for name, value in ev.indicators if ev is not None else ():
        key = METRIC_PREFIX + name
        if isnan(value):
            left_out[key] = f"undefined: {ev.undefined.get(name, '')}" if ev is not None else ""
        elif not isfinite(value):
            left_out[key] = "infinite"
        else:
            values[key] = float(value)
    if known is not None and known.n_boot == 0:
        left_out["intervals"] = "; ".join(known.notes) or "the numbers were not resampled"
    for name, estimate in known.indicators.items() if known is not None else ():
        for end in _ENDS:
            value = float(getattr(estimate, end))
            if isfinite(value):
                values[f"{METRIC_PREFIX}{name}.{end}"] = value
    return values, left_out


def _what(ev: Evaluation, known: Uncertainty | None, environment: str | None) -> str:
    """What the metrics are of: without it the numbers say nothing."""
    facts: dict[str, Any] = {
        "environment": environment,
        "feature": ev.feature,
        "sensitive": ev.sensitive,
        "reference": ev.reference,
        "pos_label": ev.predictions.pos_label,
        **vars(ev.settings),
        "n": ev.n,
        "n_rows": ev.n_rows,
    }
    if known is not None:
        facts |= {"confidence": known.confidence, "n_boot": known.n_boot, "n_perm": known.n_perm,
                  "random_state": known.random_state}  # fmt: skip
    undefined = [name for name, value in ev.indicators if isnan(value)]
    # an indicator that was written before and is undefined now cannot be removed from MLflow
    return json.dumps(facts | {"undefined": undefined}, ensure_ascii=False)


def _tag_of(roles: Roles) -> str:
    value = roles.to_dict()
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > _LONGEST_TAG:
        text = json.dumps(value | {"reasons": {}, "confidence": {}}, ensure_ascii=False)
    if len(text) > _LONGEST_TAG:
        raise TrackingError(
            f"The roles of the columns take {len(text):,} characters, more than the "
            f"{_LONGEST_TAG:,} of a tag. Choose fewer sensitive columns."
        )
    return text


def _experiment_tag(store: Store, run: Run) -> str:
    entity = store.ask(
        "Reading the experiment", lambda: store.client.get_experiment(run.experiment_id)
    )
    return str((entity.tags or {}).get(ROLES_TAG, ""))


def _number(value: float) -> str:
    return f"{value:.6g}"


def _report_there(store: Store, run: Run) -> str:
    def look(files: RunFiles) -> str:
        folder = REPORT_PATH.rpartition("/")[0]
        found = next((e for e in files.entries(folder) if e.path == REPORT_PATH), None)
        return "" if found is None else f"{found.size:,} bytes" if found.size else "there"

    return store.with_files(run, look)


# ------------------------------------------------------------------------------------ write


def _log_report(store: Store, planned: Plan) -> None:
    # Not through MLflow's client: that keeps for each run the way to its files that was used
    # first in this process, with the login of whoever used it.
    files = open_files(planned.run.artifact_uri, store.address)
    with tempfile.TemporaryDirectory(prefix="rise-") as place:
        file = Path(place) / posixpath.basename(REPORT_PATH)
        file.write_text(planned.report or "", "utf-8")
        files.put(file, REPORT_PATH)


def _log(store: Store, planned: Plan) -> None:
    from mlflow.entities import Metric, RunTag

    now = int(time.time() * 1000)
    store.client.log_batch(
        planned.run.id,
        metrics=[Metric(name, value, now, 0) for name, value in planned.metrics.items()],
        tags=[RunTag(name, text) for name, text in planned.tags.items()],
    )


def _keep(store: Store, planned: Plan) -> None:
    store.client.set_experiment_tag(planned.run.experiment_id, ROLES_TAG, planned.roles)
