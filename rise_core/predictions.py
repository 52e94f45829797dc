"""A validated table of predictions: what came in, what is used, what was left out and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import nan
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rise_core.binning import (
    MANY_NUMBERS,
    checked_edges,
    edges_text,
    into_bands,
    is_numeric,
    nice_edges,
)
from rise_core.columns import SCALE_WORDS, Roles, as_probabilities, missing_column
from rise_core.exceptions import ColumnError, PredictionsError, ScaleError

__all__ = [
    "CORRECTNESS",
    "ENVIRONMENT",
    "MISSING",
    "NO_ROWS",
    "Factor",
    "Predictions",
    "label_text",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MISSING = "(missing)"
ENVIRONMENT = "environment"
CORRECTNESS = "correctness"

NO_ROWS = "The table is empty: it has columns and no rows."
# Pairs of labels whose positive class nobody would dispute, positive last, in lower case.
_KNOWN_LABELS = (
    ("0", "1"),
    ("0.0", "1.0"),
    ("-1", "1"),
    ("false", "true"),
    ("no", "yes"),
    ("n", "y"),
    ("negative", "positive"),
    ("neg", "pos"),
    ("<=50k", ">50k"),
)


@dataclass(frozen=True, eq=False)
class Factor:
    """A column of groups.

    Attributes
    ----------
    name : name of the column
    labels : the groups' labels as text; a missing value is the group ``(missing)``
    codes : index into ``labels`` for every row, shape (n,)
    numeric : whether its values came as numbers
    """

    name: str
    labels: tuple[str, ...]
    codes: IntArray
    numeric: bool = False

    @classmethod
    def from_values(cls, values: Any, name: str) -> Factor:
        """Make groups of a column (array-like, shape (n,)); codes stay text, never numbers."""
        column = _as_series(values)
        if isinstance(column.dtype, pd.CategoricalDtype):
            ordered = bool(column.cat.ordered)
            column = column.cat.remove_unused_categories()
            codes, uniques = column.cat.codes.to_numpy(), list(column.cat.categories)
        else:
            codes, index = _factorize(column, f"group {name!r}")
            uniques, ordered = list(index), False
        made = cls._from_codes(name, codes.astype(np.intp, copy=False), uniques, ordered)
        return replace(made, numeric=True) if is_numeric(column) else made

    @classmethod
    def _from_codes(cls, name: str, codes: IntArray, uniques: list[Any], ordered: bool) -> Factor:
        if codes.min() < 0:
            codes = np.where(codes < 0, len(uniques), codes)
            uniques = [*uniques, None]
        texts = [MISSING if value is None else label_text(value) for value in uniques]
        shown = list(range(len(uniques)))
        if not ordered:
            shown.sort(key=lambda i: (uniques[i] is None, _sort_key(uniques[i]), texts[i]))
        labels = tuple(dict.fromkeys(texts[i] for i in shown))
        place = {label: position for position, label in enumerate(labels)}
        lookup = np.array([place[text] for text in texts], dtype=np.intp)
        if np.array_equal(lookup, np.arange(lookup.size)):
            return cls(name, labels, codes)
        return cls(name, labels, lookup[codes])

    @cached_property
    def counts(self) -> IntArray:
        """Rows of each label, shape (len(labels),)."""
        if len(self.labels) == 2:  # by far the most frequent case, and forty times faster
            second = np.count_nonzero(self.codes)
            return np.array([self.codes.size - second, second])
        return np.bincount(self.codes, minlength=len(self.labels))

    def take(self, rows: Any) -> Factor:
        """Keep some rows (indices or a mask) and the labels that still occur."""
        codes = self.codes[rows]
        present = np.bincount(codes, minlength=len(self.labels)) > 0
        if present.all():
            return replace(self, codes=codes)
        labels = tuple(label for label, here in zip(self.labels, present, strict=True) if here)
        return replace(self, labels=labels, codes=(np.cumsum(present) - 1)[codes])

    @cached_property
    def as_measured(self) -> tuple[FloatArray, tuple[float, ...]] | None:
        """Numbers of many distinct values, shape (n,), and edges to cut them at; else None."""
        if not self.numeric or len(self.labels) <= MANY_NUMBERS:
            return None
        known = [nan if label == MISSING else float(label) for label in self.labels]
        numbers = np.array(known)[self.codes]
        return numbers, nice_edges(numbers)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Rows that can be evaluated, and the account of those that cannot.

    Attributes
    ----------
    y_true : int8, shape (n,), 1 for the positive class
    y_prob : float64, shape (n,), score of the positive class in [0, 1]
    features : sensitive columns by name, each a Factor over the n rows
    environment : Factor, or None
    sample_weight : float64, shape (n,), positive, or None
    cluster : Factor of the rows that belong together, or None
    pos_label, neg_label : the two classes as text
    n_rows : rows that came in; ``n_rows == n + sum(left_out.values())``
    left_out : reason to number of rows
    rows : positions of the used rows in what came in, shape (n,); None when all are used
    notes : remarks a reader should see (what was assumed, what looks odd)
    row_id : name of every row, shape (n,), to match the rows of two models; None without names
    """

    y_true: NDArray[np.int8]
    y_prob: FloatArray
    features: Mapping[str, Factor]
    environment: Factor | None = None
    sample_weight: FloatArray | None = None
    cluster: Factor | None = None
    pos_label: str = "1"
    neg_label: str = "0"
    n_rows: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    rows: IntArray | None = None
    notes: tuple[str, ...] = ()
    row_id: pd.Series[Any] | None = None

    @classmethod
    def from_columns(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        sensitive_features: Any,
        environment: Any = None,
        sample_weight: Any = None,
        pos_label: Any = None,
        cluster: Any = None,
        row_id: Any = None,
        bins: Mapping[str, Sequence[float]] | None = None,
        intersections: bool | Sequence[Sequence[str]] = False,
        one_against_rest: bool = False,
    ) -> Predictions:
        """Check columns and keep the rows that can be evaluated.

        Parameters
        ----------
        y_true : labels, shape (n,), two distinct values
        y_prob : score of the positive class, shape (n,), in [0, 1]
        sensitive_features : one column, shape (n,), or several: a frame, a mapping of columns,
            or a two-dimensional array
        environment : column, shape (n,), optional
        sample_weight : positive weights, shape (n,), optional
        pos_label : the positive label; needed where the labels do not tell
        cluster : column, shape (n,), optional; rows with the same value belong together
        row_id : column, shape (n,), optional; the same row has the same name in every model
        bins : sensitive column to the inner edges, ascending, that cut its numbers into bands
        intersections : columns to cross, such as ``[("sex", "age")]``, each crossing a further
            feature ``"sex × age"``; True crosses all columns
        one_against_rest : hold ``pos_label`` against all other labels, if there are several

        Raises
        ------
        PredictionsError, ColumnError
            with what was wanted, what came, and how to mend it

        Notes
        -----
        Columns may be lists or numpy, pandas, polars or Arrow columns. Rows without a label, a
        score or a weight are left out and counted; a missing group is a group of its own.
        """
        columns: dict[str, Any] = {"y_true": y_true, "y_prob": y_prob}
        columns |= {
            name: column
            for name, column in (
                ("environment", environment),
                ("sample_weight", sample_weight),
                ("cluster", cluster),
                ("row_id", row_id),
            )
            if column is not None
        }
        groups = _named_columns(sensitive_features)
        edges = _edges_of(bins or {}, groups)
        n_rows = _common_length({**columns, **{f"group {k!r}": v for k, v in groups.items()}})

        labels, pos_text, neg_text, notes = _binary_labels(y_true, pos_label, one_against_rest)
        scores = _scores(y_prob)
        weights = None if sample_weight is None else _weights(sample_weight)
        reasons = {
            "the label is missing": labels < 0,
            "the score is missing": np.isnan(scores) if np.isnan(scores.min()) else None,
            "the weight is missing or 0": None if weights is None else ~(weights > 0),
        }
        left_out, used = _account(reasons, n_rows)
        if used is not None and not used.any():
            why = "; ".join(f"{reason}: {count:,} rows" for reason, count in left_out.items())
            raise PredictionsError(
                f"Of {n_rows:,} rows none can be evaluated ({why}). "
                "Wanted: rows with a label and a score."
            )

        def keep(array: Any) -> Any:
            return array if used is None or array is None else array[used]

        names = None if row_id is None else _as_series(row_id).reset_index(drop=True)

        def factor(values: Any, name: str) -> Factor:
            made = Factor.from_values(values, name)
            return made if used is None else made.take(used)

        groups |= {k: into_bands(_as_series(groups[k]), edges[k], k) for k in edges}
        found = cls(
            y_true=keep(labels),
            y_prob=keep(scores),
            features={name: factor(values, name) for name, values in groups.items()},
            environment=None if environment is None else factor(environment, ENVIRONMENT),
            sample_weight=keep(weights),
            cluster=None if cluster is None else factor(cluster, "cluster"),
            pos_label=pos_text,
            neg_label=neg_text,
            n_rows=n_rows,
            left_out=left_out,
            rows=None if used is None else np.flatnonzero(used),
            notes=notes,
            row_id=names if names is None else keep(names).reset_index(drop=True),
        )
        for crossed in _crossings(intersections, groups):
            found = found.with_intersection(*crossed)
        doubts = tuple(_doubt(factor) for factor in found.features.values() if factor.as_measured)
        return replace(found, notes=found.notes + doubts) if doubts else found

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, roles: Roles) -> Predictions:
        """Check a table whose column roles are known.

        What the roles say is done and noted: bands, intersections, one class against the rest,
        hard predictions as scores 0 and 1, and a conversion that a person has agreed to.

        Raises
        ------
        ColumnError
            label, score or groups are not known, or a role names a column that is not there
        ScaleError
            percent or logits that nobody has agreed to convert
        PredictionsError
            as in `from_columns`
        """
        if not len(frame):
            raise PredictionsError(NO_ROWS)
        roles.check(frame.columns)
        if roles.unconverted:
            raise ScaleError(
                f"The scores in {roles.y_prob!r} look like {SCALE_WORDS[roles.scale]}, not "
                f"probabilities: {roles.reasons.get('y_prob', '')}. Nothing is converted unasked: "
                "agree to it on the Diagnose page (or by Roles.convert), or choose another column."
            )
        frame, roles, done = as_probabilities(frame, roles)

        def column(role: str) -> Any:
            name = getattr(roles, role)
            return None if name is None else frame[name]

        found = cls.from_columns(
            column("y_true"),
            column("y_prob"),
            sensitive_features={name: frame[name] for name in roles.sensitive_features},
            environment=column("environment"),
            sample_weight=column("sample_weight"),
            pos_label=roles.pos_label,
            cluster=column("cluster"),
            row_id=column("row_id"),
            bins={
                name: roles.bins[name] for name in roles.sensitive_features if name in roles.bins
            },
            intersections=roles.intersections,
            one_against_rest=True,
        )
        return replace(found, notes=(done, *found.notes)) if done else found

    @property
    def n(self) -> int:
        """Number of rows used."""
        return int(self.y_true.size)

    @cached_property
    def row_positions(self) -> IntArray:
        """Positions of the used rows in what came in, shape (n,)."""
        return np.arange(self.n) if self.rows is None else self.rows

    def feature(self, name: str | None = None) -> Factor:
        """Return a sensitive column by name; the first one by default."""
        if name is None:
            return next(iter(self.features.values()))
        if name not in self.features:
            known = ", ".join(map(repr, self.features))
            raise ColumnError(f"No sensitive column {name!r}. There are: {known}.")
        return self.features[name]

    def intersection(self, *names: str) -> Factor:
        """Cross several sensitive columns: one group for each combination that occurs."""
        factors = [self.feature(name) for name in names]
        crossed = np.zeros(self.n, dtype=np.intp)
        for factor in factors:
            crossed = crossed * len(factor.labels) + factor.codes
        found, codes = np.unique(crossed, return_inverse=True)
        labels = []
        for code in found:
            parts: list[str] = []
            for factor in reversed(factors):
                code, part = divmod(int(code), len(factor.labels))
                parts.append(factor.labels[part])
            labels.append(" × ".join(reversed(parts)))
        return Factor(" × ".join(names), tuple(labels), codes.astype(np.intp))

    def with_feature(self, factor: Factor) -> Predictions:
        """Add a sensitive column made from others, such as an intersection."""
        return replace(self, features={**self.features, factor.name: factor})

    def with_intersection(self, *names: str) -> Predictions:
        """Cross several sensitive columns and add the crossing as a further one, "sex × age".

        One group for each combination that occurs, in the order of the columns' own groups; a
        missing part stands in its place: "female × (missing)".

        Raises
        ------
        ColumnError
            fewer than two columns, one twice or one that is not there, or the name is taken.
        """
        if len(names) < 2 or len(set(names)) < len(names):
            raise ColumnError(
                f"An intersection needs two or more different columns; came {list(names)}."
            )
        crossed = self.intersection(*names)
        if crossed.name in self.features:
            raise ColumnError(f"There is a sensitive column {crossed.name!r} already.")
        return self.with_feature(crossed)

    def subset(self, mask: NDArray[np.bool_], reason: str) -> Predictions:
        """Keep the rows of a mask, shape (n,); the others are left out for ``reason``."""
        if mask.all():
            return self
        dropped = int(mask.size - np.count_nonzero(mask))
        return replace(
            self,
            y_true=self.y_true[mask],
            y_prob=self.y_prob[mask],
            features={name: factor.take(mask) for name, factor in self.features.items()},
            environment=None if self.environment is None else self.environment.take(mask),
            sample_weight=None if self.sample_weight is None else self.sample_weight[mask],
            cluster=None if self.cluster is None else self.cluster.take(mask),
            rows=self.row_positions[mask],
            row_id=None if self.row_id is None else self.row_id[mask].reset_index(drop=True),
            left_out={**self.left_out, reason: self.left_out.get(reason, 0) + dropped},
        )

    def in_environment(self, label: str) -> Predictions:
        """Keep one environment; its rows are then all the rows there are."""
        if self.environment is None or label not in self.environment.labels:
            known = [] if self.environment is None else list(self.environment.labels)
            raise ColumnError(f"No environment {label!r}. There are: {known}.")
        mask = self.environment.codes == self.environment.labels.index(label)
        part = self.subset(mask, "another environment")
        return replace(part, n_rows=part.n, left_out={}) if part is not self else self


def _as_series(values: Any) -> pd.Series[Any]:
    """Return any column as a pandas Series; data is not copied where that can be avoided."""
    if isinstance(values, pd.Series):
        return values
    if len(getattr(values, "shape", ())) == 2:
        return pd.Series(_only_column(values))
    if isinstance(values, pd.Categorical):
        return pd.Series(values)
    # An Arrow column knows pandas, a polars one knows Arrow and numpy; neither is imported here.
    if type(values).__module__.startswith("pyarrow"):
        return pd.Series(values.to_pandas())
    if hasattr(values, "to_numpy"):
        return pd.Series(values.to_numpy())
    if isinstance(values, np.ndarray):
        return pd.Series(values)
    return pd.Series(list(values))


def _only_column(table: Any) -> NDArray[Any]:
    """Return the column of a frame or two-dimensional array that has no other."""
    columns = table.shape[1]
    if columns != 1:
        raise PredictionsError(
            f"Wanted one column, came a table of {columns}. Of scores for both classes take the "
            "positive class's, such as y_prob[:, 1]."
        )
    return np.asarray(table).reshape(-1)


def _factorize(column: pd.Series[Any], name: str) -> tuple[IntArray, Any]:
    """Codes and distinct values; −1 for a missing value."""
    try:
        return pd.factorize(column)
    except TypeError as error:  # lists, dicts: nothing that could be compared
        example = column.iloc[0]
        raise PredictionsError(
            f"{name} must hold one value a row, text or number; came {type(example).__name__} "
            f"such as {example!r}. Hand several columns over as a frame or a mapping."
        ) from error


def _named_columns(values: Any) -> dict[str, Any]:
    """Sensitive features as columns by name."""
    if isinstance(values, Mapping):
        named = {str(name): column for name, column in values.items()}
    elif hasattr(values, "columns") and hasattr(values, "__getitem__"):  # a frame of any kind
        names = getattr(values, "column_names", None) or list(values.columns)
        if twice := [name for place, name in enumerate(names) if name in names[:place]]:
            raise PredictionsError(f"Two columns of groups are named {twice[0]!r}. Rename one.")
        named = {str(name): values[name] for name in names}
    elif isinstance(values, np.ndarray) and values.ndim == 2:
        named = {f"group {i + 1}": values[:, i] for i in range(values.shape[1])}
    elif values is None:
        named = {}
    else:
        name = getattr(values, "name", None)
        named = {str(name) if name not in (None, "") else "group": values}
    if not named:
        raise PredictionsError(
            "sensitive_features is empty. Wanted: one column of groups, or a frame of several."
        )
    return named


def _edges_of(
    bins: Mapping[str, Sequence[float]], groups: Mapping[str, Any]
) -> dict[str, tuple[float, ...]]:
    for name in bins:
        if name not in groups:
            raise missing_column(name, groups)
    return {name: checked_edges(edges, name) for name, edges in bins.items()}


def _doubt(factor: Factor) -> str:
    assert factor.as_measured is not None
    edges = edges_text(factor.as_measured[1])
    return (
        f"{factor.name!r} holds {len(factor.labels)} distinct numbers, and each is a group of its "
        f"own. Edges such as {edges} cut it into bands: `bins` in Python, Columns in the app."
    )


def _crossings(
    intersections: bool | Sequence[Sequence[str]], groups: Mapping[str, Any]
) -> Sequence[Sequence[str]]:
    if isinstance(intersections, bool):
        return [list(groups)] if intersections else []
    if any(isinstance(names, str) for names in intersections):
        raise ColumnError(
            f"intersections must be a list of columns to cross, such as [('sex', 'age')]; came "
            f"{list(intersections)}."
        )
    return intersections


def _common_length(columns: Mapping[str, Any]) -> int:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        came = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        raise PredictionsError(f"All columns must have the same number of rows; came: {came}.")
    n_rows = next(iter(lengths.values()))
    if n_rows == 0:
        raise PredictionsError(NO_ROWS)
    return n_rows


def _binary_labels(
    values: Any, pos_label: Any, one_against_rest: bool
) -> tuple[NDArray[np.int8], str, str, tuple[str, ...]]:
    """Labels as 1, 0, and −1 where missing; the two classes as text; remarks."""
    column = _as_series(values)
    raw = column.to_numpy() if column.dtype.kind in "biuf" else None
    if raw is not None and raw.dtype.kind in "biu":
        low, high = int(raw.min()), int(raw.max())
        # where 0 and 1 both occur, naming the 1 says nothing new
        said = raw.dtype.kind != "b" and low < high and label_text(pos_label) == "1"
        if low >= 0 and high <= 1 and (pos_label is None or said):
            return raw.astype(np.int8), "1", "0", _one_class_note(low, high)

    codes, uniques = _factorize(column, "y_true")
    texts = [label_text(value) for value in uniques]
    distinct = list(dict.fromkeys(texts))  # 1 and "1" are one label
    rest: tuple[str, ...] = ()
    if one_against_rest and len(distinct) > 2 and label_text(pos_label) in distinct:
        pos_label, others = label_text(pos_label), f"not {label_text(pos_label)}"
        rest = (f"{pos_label!r} is held against all other labels ({len(distinct) - 1}).",)
        texts = [text if text == pos_label else others for text in texts]
        distinct = [pos_label, others]
    if len(distinct) > 2:
        shown = ", ".join(sorted(distinct)[:5]) + (", …" if len(distinct) > 5 else "")
        raise PredictionsError(
            f"y_true has {len(distinct)} distinct values ({shown}); a binary label needs 2. "
            "Choose the column that holds the label, or reduce it to two classes."
        )
    if not distinct:
        raise PredictionsError("y_true holds missing values only; a binary label needs 2 classes.")
    positive, negative = _choose_positive(distinct, pos_label)
    is_positive = np.array([*(text == positive for text in texts), -1], dtype=np.int8)
    labels = np.where(codes < 0, np.int8(-1), is_positive[codes]).astype(np.int8)
    seen = {text == positive for text in texts}
    note = () if len(seen) == 2 else _one_class_note(int(min(seen)), int(max(seen)))
    return labels, positive, negative, rest + note


def _one_class_note(low: int, high: int) -> tuple[str, ...]:
    if low != high:
        return ()
    return (f"All labels are {'positive' if low else 'negative'}: there is one class only.",)


def _choose_positive(texts: list[str], pos_label: Any) -> tuple[str, str]:
    if pos_label is not None:
        positive = label_text(pos_label)
        others = [text for text in texts if text != positive]
        if len(others) == len(texts) and len(texts) == 2:
            raise PredictionsError(
                f"pos_label is {positive!r}; y_true holds {texts[0]!r} and {texts[1]!r}. "
                "Name one of these two as the positive class."
            )
        return positive, others[0] if others else f"not {positive}"
    lowered = {text.lower(): text for text in texts}
    for negative, positive in _KNOWN_LABELS:
        if set(lowered) <= {negative, positive}:
            return lowered.get(positive, positive), lowered.get(negative, negative)
    shown = " and ".join(map(repr, texts))
    raise PredictionsError(
        f"y_true holds {shown}; which one is the positive class does not show. Name it: pos_label=…"
    )


def _numbers(values: Any, name: str) -> FloatArray:
    column = _as_series(values)
    try:
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError) as error:
        example = next((v for v in column if not _is_number(v)), None)
        raise PredictionsError(
            f"{name} must be numbers; came {column.dtype} with values such as {example!r}."
        ) from error


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _scores(values: Any) -> FloatArray:
    scores = _numbers(values, "y_prob")
    low, high = float(np.fmin.reduce(scores)), float(np.fmax.reduce(scores))
    if np.isnan(low):
        raise PredictionsError("y_prob holds missing values only; wanted scores in [0, 1].")
    if low < 0 or high > 1:
        outside = int(np.count_nonzero((scores < 0) | (scores > 1)))
        raise PredictionsError(
            f"y_prob must lie in [0, 1]; {outside:,} of {scores.size:,} values lie outside "
            f"(smallest {low:.4g}, largest {high:.4g}). {_what_they_look_like(low, high)}"
        )
    return scores


def _what_they_look_like(low: float, high: float) -> str:
    if low >= 0 and high <= 100:
        return "They look like percentages: divide by 100."
    if low < 0 < high:
        return "They look like logits: apply 1 / (1 + exp(−x)) to get probabilities."
    return "Choose the column that holds the probability of the positive class."


def _weights(values: Any) -> FloatArray:
    weights = _numbers(values, "sample_weight")
    low, high = np.fmin.reduce(weights), np.fmax.reduce(weights)
    if low < 0 or np.isinf(high):
        raise PredictionsError(
            f"sample_weight must be positive and finite; it runs from {low:.4g} to {high:.4g}."
        )
    return weights


def _account(
    reasons: Mapping[str, NDArray[np.bool_] | None], n_rows: int
) -> tuple[dict[str, int], NDArray[np.bool_] | None]:
    """Count the rows left out by the first reason that holds; mask of the rows used, or None."""
    left_out: dict[str, int] = {}
    used: NDArray[np.bool_] | None = None
    for reason, hit in reasons.items():
        if hit is None or not hit.any():
            continue
        if used is None:
            used = np.ones(n_rows, dtype=bool)
        fresh = used & hit
        if fresh.any():
            left_out[reason] = int(np.count_nonzero(fresh))
            used &= ~hit
    return left_out, used


def label_text(value: Any) -> str:
    """Label as text; 1.0 is "1", since a missing value turns a column of integers into floats."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    return str(value)


def _sort_key(value: Any) -> tuple[int, float, str]:
    """Numbers by size, then everything else as text."""
    if isinstance(value, int | float | np.number):
        return (0, float(value), "")
    return (1, 0.0, str(value))
