"""What a store answers with: experiments, runs, table files and tables. Plain frozen values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import pandas as pd

from rise_core.columns import Roles

__all__ = [
    "ALGORITHM",
    "DATASET",
    "ENVIRONMENT",
    "LOGGED_TAG",
    "PARENT_TAG",
    "SEED",
    "TABLE_TAG",
    "Experiment",
    "Run",
    "RunPage",
    "Table",
    "TableRef",
    "fact",
    "fact_source",
    "logged_tables",
]

TABLE_TAG = "rise.predictions"
"""Tag by which `log_predictions` says path, size and digest of the table it wrote."""
LOGGED_TAG = "mlflow.loggedArtifacts"
"""Tag by which MLflow's ``log_table`` says the paths of the tables it wrote."""
PARENT_TAG = "mlflow.parentRunId"
"""Tag of a nested run: the run it is nested in."""

# Tags or parameters that say a fact of a run, the likeliest first.
DATASET = ("dataset", "dataset_name", "data", "data_name")
ALGORITHM = ("algorithm", "algo", "model", "model_name", "model_type", "estimator_name")
ENVIRONMENT = ("environment", "env", "test_env", "test_envs", "domain")
SEED = ("seed", "random_state", "random_seed", "trial_seed")


@dataclass(frozen=True)
class Experiment:
    """An experiment, as listed.

    Parameters
    ----------
    id, name : as on the server
    last_update, created : times in UTC, or None
    tags : of the experiment
    """

    id: str
    name: str
    last_update: datetime | None = None
    created: datetime | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """A run, as listed.

    Parameters
    ----------
    id, name, experiment_id : as on the server
    status : "RUNNING", "SCHEDULED", "FINISHED", "FAILED" or "KILLED"
    start_time, end_time : in UTC, or None
    dataset, environment, seed : from tags, params or the logged input, or None
    algorithm : from tags or params; the run's name where there is none
    params, tags, metrics : all of the run's; an infinite metric is inf again
    artifact_uri : where its files are
    parent_id : run this one is nested in, or None
    user : who started it, or ""
    model_ids : models the run logged, whose files are not among the run's own
    deleted : True only for a run asked for by its id
    """

    id: str
    name: str
    experiment_id: str
    status: str
    start_time: datetime | None
    end_time: datetime | None
    dataset: str | None
    algorithm: str
    environment: str | None
    seed: str | None
    params: Mapping[str, str]
    tags: Mapping[str, str]
    metrics: Mapping[str, float]
    artifact_uri: str
    parent_id: str | None = None
    user: str = ""
    model_ids: tuple[str, ...] = ()
    deleted: bool = False

    @property
    def running(self) -> bool:
        """Whether the run may still change."""
        return self.status not in ("FINISHED", "FAILED", "KILLED")


@dataclass(frozen=True)
class RunPage:
    """One page of runs, newest first unless ordered otherwise.

    Parameters
    ----------
    runs : of this page
    next_token : give it to `Store.runs(page_token=)` for the next page; None on the last
    """

    runs: tuple[Run, ...]
    next_token: str | None = None


@dataclass(frozen=True)
class TableRef:
    """A file of a run that looks like a table.

    Parameters
    ----------
    path : inside the run's artifacts
    size : in bytes, or None where only its name is known
    digest : of its content, where the run says it, or ""
    roles_path : file with the roles of its columns, beside it, or ""
    root : address the path is under, for a file of a logged model; "" for the run's own
    """

    path: str
    size: int | None = None
    digest: str = ""
    roles_path: str = ""
    root: str = ""


@dataclass(frozen=True)
class Table:
    """A table that was read, with the roles of its columns.

    Parameters
    ----------
    frame : rows and columns as logged; do not change it, it may be shared
    roles : from the file beside the table, else guessed; see `Roles.missing`
    path, size : of the file, size in bytes
    key : names the content: same key, same rows. Use it as cache key
    run_id : run it belongs to
    notes : what a reader should know of the form ("10 decimals only"), plain sentences
    roles_from : "logged", "experiment" (kept by `Store.keep_roles`), "guessed" or "given"
    """

    frame: pd.DataFrame
    roles: Roles
    path: str
    size: int
    key: str
    run_id: str
    notes: tuple[str, ...] = ()
    roles_from: str = "guessed"


def fact(names: tuple[str, ...], tags: Mapping[str, str], params: Mapping[str, str]) -> str | None:
    """Return the first that is said of some names, a tag before a parameter; None for nothing."""
    return next((source[name] for _, name, source in _said(names, tags, params)), None)


def fact_source(
    names: tuple[str, ...], tags: Mapping[str, str], params: Mapping[str, str]
) -> str | None:
    """Return where `fact` found it, in the words of MLflow's filters: "tags.`dataset`"."""
    return next((f"{kind}.`{name}`" for kind, name, _ in _said(names, tags, params)), None)


def _said(
    names: tuple[str, ...], tags: Mapping[str, str], params: Mapping[str, str]
) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    for name in names:
        for kind, source in (("tags", tags), ("params", params)):
            if source.get(name):
                yield kind, name, source


def logged_tables(tags: Mapping[str, str]) -> tuple[TableRef, ...]:
    """Tables that a run's tags name, without asking the server: ours, then log_table's."""
    found: dict[str, TableRef] = {}
    ours = _json(tags.get(TABLE_TAG))
    if isinstance(ours, dict) and isinstance(ours.get("path"), str):
        size = ours.get("size")
        found[ours["path"]] = TableRef(
            ours["path"], size if isinstance(size, int) else None, str(ours.get("digest", ""))
        )
    logged = _json(tags.get(LOGGED_TAG))
    for entry in logged if isinstance(logged, list) else ():
        if isinstance(entry, dict) and entry.get("type") == "table":
            path = entry.get("path")
            if isinstance(path, str) and path:
                found.setdefault(path, TableRef(path))
    return tuple(found.values())


def _json(text: str | None) -> object:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None
