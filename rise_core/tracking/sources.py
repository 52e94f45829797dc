"""A table of predictions by what a person types: a file's name, a run's id, models:/name@alias."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from rise_core.columns import (
    SCALE_WORDS,
    Roles,
    as_probabilities,
    guess_roles,
    label_text,
    one_against_rest,
)
from rise_core.exceptions import (
    ColumnError,
    PredictionsError,
    ScaleError,
    TrackingError,
    UnreadableTableError,
)
from rise_core.predictions import NO_ROWS, Predictions
from rise_core.tracking.address import clean_text
from rise_core.tracking.cache import file_digest
from rise_core.tracking.entities import Run, Table
from rise_core.tracking.find import ROLES_FILE
from rise_core.tracking.formats import read_table
from rise_core.tracking.registry import is_run_reference, parse_reference
from rise_core.tracking.store import Store

__all__ = ["Correction", "Source", "read_file", "read_source"]


@dataclass(frozen=True)
class Source:
    """A table that was read, and where it came from.

    Parameters
    ----------
    name : what to call the model: the run's or the file's name
    table : rows, and roles of the columns
    run : the run, or None for a file
    """

    name: str
    table: Table
    run: Run | None = None


@dataclass(frozen=True)
class Correction:
    """Roles set by hand; None leaves a role as it was logged or guessed.

    Parameters
    ----------
    y_true, y_prob, environment, sample_weight, cluster, row_id : columns
    sensitive_features : columns that split the rows; () leaves them
    pos_label : text of the positive class; of a label of many kinds it makes one against the rest
    scale : what the scores are: "probability", "percent", "logit" or "decision"; the second and
        third are converted, which nobody but a person may ask for
    bins : column to the edges at which its numbers are cut; it becomes a sensitive feature
    intersections : columns to cross, all of which become sensitive features
    """

    y_true: str | None = None
    y_prob: str | None = None
    sensitive_features: tuple[str, ...] = ()
    environment: str | None = None
    sample_weight: str | None = None
    cluster: str | None = None
    row_id: str | None = None
    pos_label: str | None = None
    scale: str | None = None
    bins: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    intersections: tuple[tuple[str, ...], ...] = ()

    def apply(self, roles: Roles) -> Roles:
        """Return roles with those set here in place of their own."""
        changes: dict[str, Any] = {name: value for name, value in vars(self).items() if value}
        if self.y_prob and not self.scale:
            changes["scale"] = "probability"  # what the other column held says nothing of this one
        if self.bins:
            changes["bins"] = {**roles.bins, **self.bins}
        named = self.sensitive_features or roles.sensitive_features
        wanted = tuple(dict.fromkeys([*named, *self.bins, *sum(self.intersections, ())]))
        if wanted != named:
            changes["sensitive_features"] = wanted
        if self.sensitive_features and not self.intersections:
            changes["intersections"] = ()  # those named are all that count
        return roles.corrected(**changes) if changes else roles

    def predictions(self, table: Table) -> tuple[Predictions, Roles, tuple[str, ...]]:
        """Check a table's rows with these roles.

        Returns
        -------
        the predictions, the roles they were read by, and what a reader should know, as sentences

        Raises
        ------
        ColumnError
            a role that is not known, a column that is not there, scores of another scale.
        PredictionsError
            labels that are not of two kinds, scores outside [0, 1], …
        """
        if not len(table.frame):
            raise PredictionsError(NO_ROWS)  # the guess of its roles would say something else
        frame, roles = table.frame, self.apply(table.roles)
        notes = list(table.notes)
        label = roles.y_true
        if self.pos_label and label in frame.columns and _many(frame[label]):
            frame, roles = one_against_rest(frame, roles, self.pos_label, self.y_prob)
            notes.append(f"{self.pos_label!r} against all other labels, score {roles.y_prob!r}")
        if self.scale is None and roles.unconverted and roles.y_prob:
            raise ScaleError(
                f"The scores in {roles.y_prob!r} look like {SCALE_WORDS[roles.scale]}, not "
                f"probabilities: {roles.reasons.get('y_prob', '')}. Say so to convert them "
                f"(scale {roles.scale}), or name another column."
            )
        roles.check(frame.columns)
        frame, roles, done = as_probabilities(frame, roles)
        found = Predictions.from_frame(frame, roles)
        notes += [done] * bool(done) + [note for note in found.notes if note not in notes]
        return found, roles, tuple(notes)


def _many(labels: pd.Series) -> bool:
    return len({label_text(label) for label in labels.dropna().unique()}) > 2


def read_source(text: str, store: Callable[[], Store]) -> Source:
    """Read the table that a text names.

    Parameters
    ----------
    text : a file's path, a run's id, "runs:/id", "runs:/id/table", "models:/name@alias"
    store : opens the store; called for runs only

    Raises
    ------
    TrackingError
        nothing of that name, or the store cannot be used.
    UnreadableTableError
        what was found is no table.
    """
    path = Path(text).expanduser()
    if path.exists() or not is_run_reference(text):
        return Source(path.name, read_file(path))
    reference = parse_reference(text)
    opened = store()
    run = (
        opened.run_of_model(reference.model_uri)
        if reference.model_uri
        else opened.run(reference.run_id)
    )
    return Source(clean_text(run.name, 80), opened.load(run, reference.path), run)


def read_file(path: Path) -> Table:
    """Read a file of predictions; its roles are inside it, in roles.json beside it, or guessed.

    Raises
    ------
    TrackingError
        there is no such file.
    UnreadableTableError
        it is no table.
    """
    if not path.exists():
        raise TrackingError(
            f"There is no file {clean_text(path, 160)!r}. Give a file, a run's id, runs:/id or "
            "models:/name@alias."
        )
    if not path.is_file():
        raise UnreadableTableError(f"{clean_text(path, 160)!r} is a folder. Give a file in it.")
    try:
        found = read_table(path)
        digest = file_digest(path)
    except OSError as error:
        raise UnreadableTableError(f"{path.name} cannot be read: {error.strerror}.") from error
    roles, origin = guess_roles(found.frame), "guessed"
    for written in (_beside(path), found.roles):
        with suppress(ColumnError, TypeError):
            logged = Roles.from_dict(written or {})
            if logged.complete and set(logged.columns()) <= set(found.frame.columns):
                roles, origin = logged, "logged"
    return Table(
        frame=found.frame,
        roles=roles,
        path=str(path),
        size=path.stat().st_size,
        key=digest,
        run_id="",
        notes=found.notes,
        roles_from=origin,
    )


def _beside(path: Path) -> Any:
    with suppress(OSError, ValueError):
        return json.loads((path.parent / ROLES_FILE).read_text("utf-8"))
    return None
