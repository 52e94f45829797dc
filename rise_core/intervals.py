"""Intervals and nulls from replicates. Which rule serves which quantity, and why.

An absolute value cannot be resampled where the groups are alike: all replicates lie above 0. So the
*signed* quantity is resampled and its interval folded at 0. The rules and their coverage are in
``docs/uncertainty.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import ceil, floor, nan
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rise_core.gap import wilson_interval

__all__ = [
    "Direction",
    "Interval",
    "Null",
    "chosen_interval",
    "fold",
    "null_of",
    "percentile",
    "range_interval",
    "share_interval",
]

FloatArray = NDArray[np.float64]
# Which side of the null is the uneven one.
Direction = Literal["high", "low", "both"]

# An interval from less than this share of the replicates would leave out the worst of them.
_ENOUGH = 0.5


@dataclass(frozen=True)
class Interval:
    """Ends of an interval, nan where there is none, and the replicates without a value."""

    low: float
    high: float
    undefined: int = 0


@dataclass(frozen=True)
class Null:
    """What random groupings give: the middle share, the median, and how rare the value is."""

    low: float = nan
    median: float = nan
    high: float = nan
    p_value: float = nan
    undefined: int = 0


def percentile(samples: FloatArray, confidence: float) -> Interval:
    """Percentile interval of replicates, shape (R,); nan are counted and left out.

    The ends are order statistics, rounded outwards, so that infinite replicates do no harm.
    """
    defined = np.sort(samples[~np.isnan(samples)])
    n, missing = defined.size, samples.size - defined.size
    if n == 0 or n < _ENOUGH * samples.size:
        return Interval(nan, nan, missing)
    tail = (1 - confidence) / 2
    low = max(floor((n + 1) * tail), 1) - 1
    high = min(ceil((n + 1) * (1 - tail)), n) - 1
    return Interval(float(defined[low]), float(defined[high]), missing)


def share_interval(share: float, samples: FloatArray, rows: float, confidence: float) -> Interval:
    """Wilson interval of a share, at the number of rows that its replicates are worth.

    Parameters
    ----------
    share : observed, in [0, 1]
    samples : replicates, shape (R,)
    rows : independent rows, used where the replicates do not vary

    Notes
    -----
    A model without an error has replicates without an error, and a percentile interval of length
    0. Replicates tell the *effective* number of rows instead, ``share·(1 − share) / variance``,
    which weights and clusters lower.
    """
    missing = int(np.isnan(samples).sum())
    if np.isnan(share) or missing > (1 - _ENOUGH) * samples.size:
        return Interval(nan, nan, missing)
    variance = float(np.nanvar(samples))
    spread = share * (1 - share)
    worth = spread / variance if variance > 0 and spread > 0 else rows
    low, high = wilson_interval(share, worth, confidence)
    return Interval(low, high, missing)


def fold(interval: Interval) -> Interval:
    """Interval of ``|x|`` from that of ``x``: 0 is in it when the signed one holds 0."""
    ends = abs(interval.low), abs(interval.high)
    holds_zero = interval.low <= 0 <= interval.high
    return Interval(0.0 if holds_zero else min(ends), max(ends), interval.undefined)


def range_interval(samples: FloatArray, value: FloatArray, confidence: float) -> Interval:
    """Interval of ``max_a x^a − min_a x^a``, the absolute difference of two groups.

    Parameters
    ----------
    samples : replicates of the groups' values, shape (R, K)
    value : their observed values, shape (K,)
    confidence : of the interval

    Notes
    -----
    Two groups: the percentile interval of the difference, folded. More (*ours*): every pair is
    folded; the upper end is the largest one, since the pair that is truly farthest apart lies
    below its own. The lower end must hold for all pairs at once: with ``t`` the
    ``(1 + confidence) / 2`` quantile of the largest ``|Δ* − Δ| / s`` over pairs, it is the largest
    ``max(|Δ| − t·s, 0)``.
    """
    pairs = list(combinations(range(value.size), 2))
    differences = np.stack([samples[:, j] - samples[:, i] for i, j in pairs], axis=1)
    missing = int(np.isnan(differences).any(axis=1).sum())
    folded = [fold(percentile(differences[:, p], confidence)) for p in range(len(pairs))]
    if len(pairs) == 1 or any(np.isnan(f.high) for f in folded):
        return Interval(folded[0].low, max(f.high for f in folded), missing)
    observed = np.array([value[j] - value[i] for i, j in pairs])
    defined = differences[~np.isnan(differences).any(axis=1)]
    scale = defined.std(axis=0)
    away = np.divide(
        np.abs(defined - observed), scale, where=scale > 0, out=np.zeros_like(defined)
    ).max(axis=1)
    t = percentile(away, confidence).high
    low = float(np.max(np.abs(observed) - t * scale))
    return Interval(max(low, 0.0), max(f.high for f in folded), missing)


def chosen_interval(value: float, samples: FloatArray, choices: int, confidence: float) -> Interval:
    """Interval of a signed value of the pair that was chosen for lying widest apart.

    One choice: the percentile interval. More: ``value ± z·s`` with ``z`` for ``choices`` intervals
    at once (Bonferroni), since the largest of several differences is large by chance too.
    """
    found = percentile(samples, confidence)
    if choices == 1 or np.isnan(found.low):
        return found
    z = NormalDist().inv_cdf(1 - (1 - confidence) / (2 * choices))
    reach = z * float(np.nanstd(samples))
    return Interval(value - reach, value + reach, found.undefined)


def null_of(
    value: float, samples: FloatArray, confidence: float, direction: Direction = "high"
) -> Null:
    """Summarise random groupings.

    Parameters
    ----------
    value : observed
    samples : the same quantity of random groupings, shape (R,)
    confidence : of the middle share
    direction : which side of the null is uneven; "both" doubles the smaller tail

    Notes
    -----
    ``p = (1 + #{at least as uneven}) / (1 + R)`` (Phipson and Smyth, 2010). A grouping in which the
    quantity is undefined counts as uneven, so that it never makes a value look rare.
    """
    middle = percentile(samples, confidence)
    if np.isnan(value) or np.isnan(middle.low):
        return Null(undefined=middle.undefined)
    # The same sum in another order differs in its last bits.
    slack = 1e-12 * max(abs(value), 1.0)
    above = (1 + np.count_nonzero(~(samples < value - slack))) / (1 + samples.size)
    below = (1 + np.count_nonzero(~(samples > value + slack))) / (1 + samples.size)
    p_value = {"high": above, "low": below, "both": min(1.0, 2 * min(above, below))}[direction]
    median = float(np.nanmedian(samples))
    return Null(middle.low, median, middle.high, float(p_value), middle.undefined)
