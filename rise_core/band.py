"""What is special about the rows of a band: values found there more often than elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import exp, lgamma, log, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rise_core.exceptions import PredictionsError
from rise_core.gap import Band, wilson_interval
from rise_core.predictions import MISSING, Factor

if TYPE_CHECKING:
    from rise_core.evaluation import Evaluation

__all__ = ["Columns", "Lift", "Profile", "band_ends", "columns_of", "profile"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# A column with more values than this names rows, not kinds of rows.
MOST_VALUES = 60
# Numbers with more values than this are cut into fifths.
_PLAIN_NUMBERS, _FIFTHS = 12, 5
_SAMPLE = 10_000
# Terms of a tail beyond so many standard deviations are below the smallest float.
_TAIL_SD = 45


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a table that are looked through, each cut into kinds of rows.

    Attributes
    ----------
    factors : name to the groups of all rows of the table
    skipped : name to the reason why a column is not looked through
    """

    factors: Mapping[str, Factor]
    skipped: Mapping[str, str]


@dataclass(frozen=True)
class Lift:
    """How much more often a value is found in a band than in all rows.

    Attributes
    ----------
    column, value : what is looked at
    n, n_all : rows with the value in the band, and in all
    share, overall_share : by weight, in the band and in all rows
    lift, low, high : ``share / overall_share``, and an interval that holds for all values together
    p_value : of at least so many rows with the value in a band drawn at random
    adjusted : ``min(1, values looked at · p_value)`` (Bonferroni)
    """

    column: str
    value: str
    n: int
    n_all: int
    share: float
    overall_share: float
    lift: float
    low: float
    high: float
    p_value: float
    adjusted: float


@dataclass(frozen=True, eq=False)
class Profile:
    """All values that were looked at in a band, the most over-represented first.

    Attributes
    ----------
    lifts : one entry a value, by rising p-value
    confidence : of all intervals together; 1 − confidence is the chance that `found` holds
        anything where the band is drawn at random
    """

    lifts: tuple[Lift, ...]
    confidence: float

    @cached_property
    def found(self) -> tuple[Lift, ...]:
        """Values over-represented by more than chance, largest lift first."""
        told = [x for x in self.lifts if x.adjusted <= 1 - self.confidence and x.low > 1]
        return tuple(sorted(told, key=lambda x: -x.lift))

    def to_frame(self) -> pd.DataFrame:
        """One row a value; the columns are the fields of `Lift`."""
        return pd.DataFrame([vars(x) for x in self.lifts], columns=list(Lift.__annotations__))


def columns_of(frame: pd.DataFrame, leave_out: Iterable[str] = ()) -> Columns:
    """Cut the columns of a table into kinds of rows, to be looked through in bands.

    Parameters
    ----------
    frame : the table
    leave_out : columns not to look at: label and score, which make the residual, and row ids

    Notes
    -----
    Text and numbers of up to 12 values stay as they are, longer columns of numbers are cut into
    fifths. Columns with more than 60 values of text are skipped.
    """
    factors, skipped = {}, {}
    for name in frame.columns:
        if name in set(leave_out):
            continue
        made = _cut(frame[name], str(name))
        if isinstance(made, str):
            skipped[str(name)] = made
        elif len(made.labels) > 1:
            factors[str(name)] = made
    return Columns(factors, skipped)


def _cut(column: pd.Series[Any], name: str) -> Factor | str:
    """Groups of a column, or why it has none."""
    try:
        # A look at the first rows spares a pass over a million distinct texts.
        distinct = int(column.iloc[:_SAMPLE].nunique())
        if column.dtype.kind in "iufmM" and distinct > _PLAIN_NUMBERS:
            return _fifths(column, name)
        if distinct <= MOST_VALUES:
            made = Factor.from_values(column, name)
            distinct = len(made.labels)
    except (TypeError, PredictionsError):  # lists, dicts: nothing that could be compared
        return "its values cannot be compared"
    return made if distinct <= MOST_VALUES else f"more than {MOST_VALUES} different values"


def _fifths(column: pd.Series[Any], name: str) -> Factor:
    """Cut numbers or dates into five groups of about the same size; missing ones stay apart."""
    missing = column.isna().to_numpy()
    numbers = column.to_numpy(dtype="int64" if column.dtype.kind in "mM" else "float64")
    ranks = np.linspace(0, 1, _FIFTHS + 1)[1:-1]
    cuts = np.unique(np.quantile(numbers[~missing], ranks))
    ends = [_short(cut, column.dtype) for cut in cuts]
    labels = [f"up to {ends[0]}"]
    labels += [f"{low} to {high}" for low, high in pairwise(ends)]
    labels.append(f"over {ends[-1]}")
    if len(set(labels)) < len(labels):  # cuts that round to the same text
        labels = [f"{text} ({place + 1})" for place, text in enumerate(labels)]
    codes = np.searchsorted(cuts, numbers, side="left").astype(np.intp)
    if missing.any():
        codes[missing] = len(labels)
        labels.append(MISSING)
    return Factor(name, tuple(labels), codes).take(slice(None))


def _short(end: float, dtype: Any) -> str:
    if dtype.kind in "mM":
        return str(pd.Series([int(end)]).astype(dtype).iloc[0])[:16]
    return f"{end:.4g}"


def band_ends(ev: Evaluation, low: float, high: float) -> tuple[float, float]:
    """Global percentiles of the stretch that holds the rows with residuals from low to high.

    Parameters
    ----------
    ev : the evaluation
    low, high : residuals

    Returns
    -------
    ends for `Evaluation.band`, half a row outside of the first and the last row that is meant
    """
    sample = ev.overall.sample
    below = float(sample.weight_below(low, inclusive=False)) / sample.total
    upto = float(sample.weight_below(high, inclusive=True)) / sample.total
    half = 0.5 / sample.n
    return max(below - half, 0.0), min(max(upto - half, 0.0), 1.0)


def profile(ev: Evaluation, band: Band, columns: Columns, *, confidence: float = 0.95) -> Profile:
    """Look through all values of all columns for those that a band holds more of than chance.

    Parameters
    ----------
    ev : the evaluation
    band : a band of it, see `Evaluation.band`
    columns : of the table that the evaluation's rows came from, see `columns_of`
    confidence : of all values together

    Returns
    -------
    Profile

    Raises
    ------
    PredictionsError
        columns of another table: they have fewer rows than the band names

    Notes
    -----
    *Ours*. A value's rows in a band drawn at random are hypergeometric; its p-value is the exact
    upper tail. With weights the tail is normal, at Kish's effective number of rows. Of ``m``
    values looked at, one is reported when ``m · p ≤ 1 − confidence`` (Bonferroni) and its interval
    leaves out 1. The interval of a lift is Wilson's for the share in the band, at level
    ``1 − (1 − confidence) / m`` and at the number of rows that gives the variance of the ratio
    ``a / (π a + (1 − π) c)``, with ``a`` and ``c`` the shares inside and outside of the band and
    ``π`` its part of all rows. Rows are taken to be independent.
    """
    positions = ev.predictions.row_positions
    for factor in columns.factors.values():
        if positions.size and positions[-1] >= factor.codes.size:
            raise PredictionsError(
                f"Column {factor.name!r} has {factor.codes.size:,} rows and the evaluation uses "
                f"row {positions[-1]:,}. Wanted: the columns of the evaluation's own table."
            )
    if not band.n:
        return Profile((), confidence)
    every_row = positions.size == (positions[-1] + 1)
    weights = ev.weight_values
    inside = None if weights is None else weights[np.searchsorted(positions, band.rows)]
    size = _Size.of(band.rows.size, positions.size, weights, inside)
    counted = []
    for factor in columns.factors.values():
        codes = factor.codes[: positions.size] if every_row else factor.codes[positions]
        counted.append(_count(factor, codes, factor.codes[band.rows], weights, inside))
    tested = [
        (table, place)
        for table in counted
        for place in range(len(table.labels))
        if table.n_all[place] and table.n_all[place] < positions.size
    ]
    level = 1 - (1 - confidence) / max(len(tested), 1)
    lifts = [_lift(table, place, size, level, len(tested)) for table, place in tested]
    return Profile(tuple(sorted(lifts, key=lambda x: (x.p_value, -x.lift))), confidence)


@dataclass(frozen=True, eq=False)
class _Counts:
    """Rows and shares of every value of a column."""

    column: str
    labels: tuple[str, ...]
    n: IntArray
    n_all: IntArray
    share: FloatArray
    overall: FloatArray


def _count(
    factor: Factor,
    codes: IntArray,
    in_band: IntArray,
    weights: FloatArray | None,
    inside: FloatArray | None,
) -> _Counts:
    k = len(factor.labels)
    n, n_all = np.bincount(in_band, minlength=k), np.bincount(codes, minlength=k)
    share, overall = n / n.sum(), n_all / n_all.sum()
    if weights is not None:
        share, overall = (
            np.bincount(of, weights=w, minlength=k)
            for of, w in ((in_band, inside), (codes, weights))
        )
        share, overall = share / share.sum(), overall / overall.sum()
    return _Counts(factor.name, factor.labels, n, n_all, share, overall)


@dataclass(frozen=True)
class _Size:
    """How large a band is: rows, rows of all, its part of all weight, rows that it is worth."""

    n: int
    n_all: int
    part: float
    worth: float
    weighted: bool

    @classmethod
    def of(cls, n: int, n_all: int, weights: FloatArray | None, inside: FloatArray | None) -> _Size:
        if weights is None or inside is None:
            return cls(n, n_all, n / n_all, n, weighted=False)
        kish = float(inside.sum() ** 2 / np.dot(inside, inside))
        return cls(n, n_all, float(inside.sum() / weights.sum()), kish, weighted=True)


def _lift(table: _Counts, place: int, size: _Size, level: float, looked_at: int) -> Lift:
    share, overall = float(table.share[place]), float(table.overall[place])
    n, n_all = int(table.n[place]), int(table.n_all[place])
    low, high = wilson_interval(share, _rows_of_a_ratio(share, overall, size), level)
    if size.weighted:
        spread = sqrt(overall * (1 - overall) * (1 - size.part) / size.worth)
        p = NormalDist().cdf(-(share - overall) / spread) if spread > 0 else 1.0
    else:
        p = hypergeometric_tail(n, size.n, n_all, size.n_all)
    return Lift(
        column=table.column,
        value=table.labels[place],
        n=n,
        n_all=n_all,
        share=share,
        overall_share=overall,
        lift=share / overall,
        low=low / overall,
        high=min(high / overall, 1 / max(size.part, overall)),
        p_value=p,
        adjusted=min(1.0, looked_at * p),
    )


def _rows_of_a_ratio(share: float, overall: float, size: _Size) -> float:
    """Independent rows at which a share varies as much as its ratio to the overall share does.

    Delta method on ``log a − log(π a + (1 − π) c)``. Half a row is added to every count, so that
    an empty cell varies too.
    """
    part = min(size.part, 1 - 1e-12)
    rest = size.worth * (1 - part) / part
    outside = max(overall - part * share, 0.0) / (1 - part)
    a = (share * size.worth + 0.5) / (size.worth + 1)
    c = (outside * rest + 0.5) / (rest + 1)
    m = part * a + (1 - part) * c
    own = ((1 - part) * c / m) ** 2
    other = (1 - part) * part * c * (1 - c) * a / (m**2 * (1 - a))
    return size.worth / max(own + other, 1e-12)


def hypergeometric_tail(x: int, drawn: int, marked: int, total: int) -> float:
    """Chance of at least ``x`` marked rows among ``drawn`` of ``total``, of which some are marked.

    1 where ``x`` is no more than is expected. Exact: the tail is summed from its first term.
    """
    expected = drawn * marked / total
    if x <= expected:
        return 1.0
    spread = sqrt(expected * (1 - marked / total) * (1 - drawn / total)) + 1
    stop = min(drawn, marked, x + int(_TAIL_SD * spread) + _TAIL_SD)
    first = (
        _log_choose(marked, x) + _log_choose(total - marked, drawn - x) - _log_choose(total, drawn)
    )
    k = np.arange(x, stop, dtype=np.float64)
    ratio = (marked - k) * (drawn - k) / ((k + 1) * (total - marked - drawn + k + 1))
    tail = 1.0 + float(np.cumprod(ratio).sum())
    return min(1.0, exp(first + log(tail)))


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
