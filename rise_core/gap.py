"""The gap between two residual curves: its area (W1), where along the curve it lies, and bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rise_core.curve import PooledSample, SortedSample

__all__ = ["Band", "BandGroup", "Segment", "areas_between", "measure_stretch", "wasserstein"]

FloatArray = NDArray[np.float64]
# Rows worked on at a time: four float64 columns of them stay in a core's cache.
_BLOCK = 32768
SEGMENT_NAMES = ("left tail", "core", "right tail")


@dataclass(frozen=True)
class Segment:
    """A stretch of [0, 1] and what lies between two group curves on it.

    Attributes
    ----------
    name : "left tail", "core", "right tail", or "band"
    q0, q1 : ends of the stretch, ranks in [0, 1]
    pair : the two groups, (group, reference); gaps are group minus reference
    area : ``∫ |Q_1 − Q_0| dq`` over the stretch, residual units; segments add up to W1
    share : ``area / W1``; nan when W1 is 0
    mean_gap : ``∫ (Q_1 − Q_0) dq / (q1 − q0)``, residual units; 0 is *tight*
    slope_gap : difference of the two chord slopes, residual units per unit of rank; 0 is
        *parallel*
    """

    name: str
    q0: float
    q1: float
    pair: tuple[str, str]
    area: float
    share: float
    mean_gap: float
    slope_gap: float


@dataclass(frozen=True)
class BandGroup:
    """One group's presence in a band.

    Attributes
    ----------
    n : rows of the group in the band
    share : share of the band's weight that is the group's
    overall_share : share of all weight that is the group's
    lift, low, high : ``share / overall_share`` and its interval (Wilson, 95 %)
    positives : rows of the group in the band whose label is positive
    false_positives, false_negatives : rows in the band decided wrongly
    """

    n: int
    share: float
    overall_share: float
    lift: float
    low: float
    high: float
    positives: int
    false_positives: int
    false_negatives: int


@dataclass(frozen=True, eq=False)
class Band:
    """A stretch of the global curve: the gap on it, and who is in it.

    Attributes
    ----------
    q0, q1 : ends of the band, global percentiles in [0, 1]
    n : rows in the band, i.e. with ``q0 ≤ h(d) ≤ q1``
    residual_range, score_range : smallest and largest in the band; None when it is empty
    gap : the same numbers as a segment; None where fewer than two groups are compared
    groups : label to BandGroup
    rows : positions of the rows in what came in, shape (n,)
    """

    q0: float
    q1: float
    n: int
    residual_range: tuple[float, float] | None
    score_range: tuple[float, float] | None
    gap: Segment | None
    groups: Mapping[str, BandGroup]
    rows: NDArray[np.intp]


def areas_between(
    pooled: PooledSample, pair: tuple[int, int], cuts: Sequence[float]
) -> list[float]:
    """Area between two groups' quantile curves on each stretch between ascending cuts.

    Parameters
    ----------
    pooled : the merged rows of these groups, and of others where there are more
    pair : codes of the two groups
    cuts : ascending ranks in [0, 1], at least two

    Returns
    -------
    ``∫ |Q_a − Q_b| dq`` from each cut to the next, exact for step functions

    Notes
    -----
    Integrated over residuals, not ranks: ``∫ |min(F_a, q) − min(F_b, q)| dv`` is the area up to
    rank ``q``. The merged rows are there already; ranks would need both grids merged too.
    """
    values, mass_a, mass_b = _masses(pooled, pair)
    all_a, all_b = mass_a[-1], mass_b[-1]

    def area(first: int, stop: int, most: float = 1.0) -> float:
        """``Σ |min(F_a, most) − min(F_b, most)| Δv`` over rows, a cacheful at a time."""
        total = 0.0
        for start in range(first, stop, _BLOCK):
            end = min(start + _BLOCK, stop)
            f_a, f_b = mass_a[start:end] / all_a, mass_b[start:end] / all_b
            if most < 1:
                f_a, f_b = np.minimum(f_a, most), np.minimum(f_b, most)
            f_a -= f_b
            np.abs(f_a, out=f_a)
            f_a *= values[start + 1 : end + 1] - values[start:end]
            # Not np.dot: its threads cost more than they give on a block of this size.
            total += float(f_a.sum())
        return total

    upto, so_far, start, last = [], 0.0, 0, values.size - 1
    for q in cuts:
        # Below `inside` both distribution functions lie under q, from `done` on neither does.
        at = (np.searchsorted(mass_a, q * all_a), np.searchsorted(mass_b, q * all_b))
        inside, done = (min(int(place), last) for place in sorted(at))
        so_far += area(start, inside)
        start = inside
        upto.append(so_far + area(inside, done, q))
    return [high - low for low, high in pairwise(upto)]


def _masses(
    pooled: PooledSample, pair: tuple[int, int]
) -> tuple[FloatArray, NDArray[Any], NDArray[Any]]:
    """Residuals of two groups in order, and the weight of each group up to each of them."""
    codes, values, weights = pooled.codes, pooled.sample.values, pooled.sample.weights
    from_b = codes == pair[1]
    if not np.array_equal(np.unique(pair), np.arange(int(codes.max()) + 1)):
        rows = np.flatnonzero(from_b | (codes == pair[0]))
        values, from_b = values[rows], from_b[rows]
        weights = None if weights is None else weights[rows]
    if weights is not None:
        mass_a = np.cumsum(np.where(from_b, 0.0, weights))
        return values, mass_a, np.cumsum(np.where(from_b, weights, 0.0))
    # Small integers cumulate eight times faster than floats; below 2³¹ rows they are exact.
    whole: type[np.signedinteger[Any]] = np.int32 if values.size < 2**31 else np.int64
    count_b: NDArray[Any] = np.cumsum(from_b, dtype=whole)
    count_a: NDArray[Any] = np.arange(1, values.size + 1, dtype=whole)
    count_a -= count_b
    return values, count_a, count_b


def wasserstein(a: SortedSample, b: SortedSample) -> float:
    """Wasserstein-1 distance of two samples, in their units: ``∫₀¹ |Q_a − Q_b| dq``."""
    weighted = not (a.weights is None and b.weights is None)
    return areas_between(PooledSample.merge([a, b], weighted=weighted), (0, 1), (0.0, 1.0))[0]


def measure_stretch(
    name: str,
    q0: float,
    q1: float,
    pair: tuple[str, str],
    samples: tuple[SortedSample, SortedSample],
    area: float,
    w1: float,
) -> Segment:
    """Describe a stretch between two group curves, its area already known."""
    group, reference = samples
    width = q1 - q0
    if width > 0:
        mean_gap = (group.integral(q0, q1) - reference.integral(q0, q1)) / width
        rise = group.at(q1) - group.at(q0) - (reference.at(q1) - reference.at(q0))
        slope_gap = rise / width
    else:
        mean_gap = slope_gap = float("nan")
    share = area / w1 if w1 > 0 else float("nan")
    return Segment(name, q0, q1, pair, area, share, mean_gap, slope_gap)


def wilson_interval(share: float, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of a share seen in ``n`` rows (Wilson, JASA 22, 1927)."""
    if n <= 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    scale = 1 + z * z / n
    centre = (share + z * z / (2 * n)) / scale
    half = z / scale * sqrt(max(share * (1 - share) / n + z * z / (4 * n * n), 0.0))
    return max(0.0, centre - half), min(1.0, centre + half)
