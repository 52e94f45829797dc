"""Calibration: whether, of the rows scored 0.8, eight in ten are positive in every group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import nan, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rise_core.gap import wilson_interval

if TYPE_CHECKING:
    from rise_core.evaluation import Evaluation

__all__ = ["Calibration", "GroupCalibration", "calibrate"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

BINS = 10
# Fewer rows than this say nothing about a share.
_ROWS_A_BIN = 20
_DRAWS = 2000


@dataclass(frozen=True)
class GroupCalibration:
    """How far the scores of some rows lie from the frequency of the positive class.

    Attributes
    ----------
    label : group, or "all"
    n : rows
    bins : bins that the rows were put into
    ece : expected calibration error, ``Σ_b |Σ_b w (p − y)| / Σ w``
    low, high : its interval
    chance : what a perfectly calibrated model with these scores stays below in 95 % of draws
    bias, bias_low, bias_high : mean score minus share of positives, and its interval
    """

    label: str
    n: int
    bins: int
    ece: float
    low: float
    high: float
    chance: float
    bias: float
    bias_low: float
    bias_high: float

    @property
    def distinguishable(self) -> bool:
        """Whether the error is more than a calibrated model shows by chance."""
        return self.ece > self.chance


@dataclass(frozen=True, eq=False)
class Calibration:
    """Reliability of all rows and of every group.

    Attributes
    ----------
    groups : label to GroupCalibration, in the evaluation's order; all rows ("all") last
    table : one row a group and bin: group, bin, n, from, to (scores), mean_score, observed (share
        of positives), low, high (its interval)
    confidence : of all intervals
    """

    groups: Mapping[str, GroupCalibration]
    table: pd.DataFrame
    confidence: float

    def to_frame(self) -> pd.DataFrame:
        """One row a group; the columns are the fields of `GroupCalibration`."""
        return pd.DataFrame([vars(group) for group in self.groups.values()])


def calibrate(
    ev: Evaluation, *, bins: int = BINS, confidence: float = 0.95, random_state: int = 0
) -> Calibration:
    """Compare scores with frequencies, group by group.

    Parameters
    ----------
    ev : the evaluation; its weights hold, its threshold and residual play no part
    bins : most bins a group, each of at least 20 rows
    confidence : of the intervals
    random_state : seed of the draws behind the intervals of the ECE

    Returns
    -------
    Calibration

    Notes
    -----
    *Ours*, but for the ECE (Naeini and others, AAAI 2015). Each group's rows are sorted by score
    and cut into bins of equal count; equal scores are never parted. A bin's share of positives has
    Wilson's interval, at Kish's number of rows under weights. The ECE is a sum of absolute values:
    it is above 0 for a calibrated model too, which is why ``chance`` stands beside it, from labels
    drawn by the scores (Bröcker and Smith, 2007). Its interval is ``[max(0, 2·ECE − hi), hi]``,
    ``hi`` the upper percentile end of resampled bin sums, and begins at 0 where the ECE does not
    exceed ``chance``. Bin sums are drawn as normal, with the variances that resampled rows and
    drawn labels give. Rows are taken to be independent.
    """
    rng = np.random.default_rng(random_state)
    y, p, weights = ev.predictions.y_true, ev.predictions.y_prob, ev.weight_values
    order = np.argsort(p, kind="stable")
    codes = ev.factor.codes[order]
    groups, parts = {}, []
    for label in (*ev.groups, None):
        rows = order if label is None else order[codes == ev.factor.labels.index(label)]
        name = "all" if label is None else label
        w = np.ones(rows.size) if weights is None else weights[rows]
        made, table = _calibrate(name, y[rows], p[rows], w, bins, confidence, rng)
        groups[label if label is not None else _free(ev.groups)] = made
        parts.append(table)
    return Calibration(groups, pd.concat(parts, ignore_index=True), confidence)


def _free(labels: Mapping[str, object]) -> str:
    """Key of all rows, which no group has."""
    name = "all"
    while name in labels:
        name += " rows"
    return name


def _calibrate(
    label: str,
    y: NDArray[np.int8],
    p: FloatArray,
    w: FloatArray,
    bins: int,
    confidence: float,
    rng: np.random.Generator,
) -> tuple[GroupCalibration, pd.DataFrame]:
    """Calibration of rows in the order of their scores."""
    starts = _bin_starts(p, min(bins, max(p.size // _ROWS_A_BIN, 1)))
    d = w * (p - y)
    weight, gap = np.add.reduceat(w, starts), np.add.reduceat(d, starts)
    squares, kish = np.add.reduceat(d * d, starts), weight**2 / np.add.reduceat(w * w, starts)
    by_chance = np.add.reduceat(w * w * p * (1 - p), starts)
    total = float(weight.sum())
    ece = float(np.abs(gap).sum() / total)

    resampled = np.maximum(squares - gap**2 / p.size, 0)
    draws = rng.standard_normal((_DRAWS, starts.size))
    boot = np.abs(gap + draws * np.sqrt(resampled)).sum(axis=1) / total
    null = np.abs(draws * np.sqrt(by_chance)).sum(axis=1) / total
    tail = (1 - confidence) / 2
    high = max(float(np.quantile(boot, 1 - tail)), ece)
    chance = float(np.quantile(null, confidence))
    low = max(0.0, 2 * ece - high) if ece > chance else 0.0

    bias = float(d.sum() / total)
    reach = (
        NormalDist().inv_cdf(1 - tail) * sqrt(max(float(((d - bias * w) ** 2).sum()), 0)) / total
    )
    ends = np.append(starts[1:], p.size)
    positive = np.add.reduceat(w * y, starts) / weight
    intervals = [
        wilson_interval(float(share), float(rows), confidence)
        for share, rows in zip(positive, kish, strict=True)
    ]
    table = pd.DataFrame(
        {
            "group": label,
            "bin": np.arange(starts.size),
            "n": ends - starts,
            "from": p[starts],
            "to": p[ends - 1],
            "mean_score": np.add.reduceat(w * p, starts) / weight,
            "observed": positive,
            "low": [low for low, _ in intervals],
            "high": [high for _, high in intervals],
        }
    )
    found = GroupCalibration(
        label=label,
        n=p.size,
        bins=starts.size,
        ece=ece,
        low=low,
        high=high if p.size > 1 else nan,
        chance=chance,
        bias=bias,
        bias_low=bias - reach,
        bias_high=bias + reach,
    )
    return found, table


def _bin_starts(p: FloatArray, bins: int) -> IntArray:
    """First rows of about ``bins`` bins of equal count that never part equal scores."""
    wanted = np.linspace(0, p.size, bins + 1)[:-1].astype(np.intp)
    return np.unique(np.searchsorted(p, p[wanted], side="left")).astype(np.intp)
