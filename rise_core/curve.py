"""Sorted residuals: ranks, percentiles, quantiles, medians.

A curve knows sorted values and, where there are any, their weights. It does not know where its
rows came from, so the same code serves rows in memory, counts from a database and resamples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rise_core.knees import Knee

__all__ = ["Curve", "PooledSample", "SortedSample", "all_equal"]

FloatArray = NDArray[np.float64]
# Cumulated weights carry rounding; two sums closer than this (relative) are the same sum.
_SAME = 1e-12


@dataclass(frozen=True, eq=False)
class SortedSample:
    """Values in ascending order with their weights.

    Parameters
    ----------
    values : float64, shape (n,), ascending
    weights : float64, shape (n,), positive, in the order of ``values``; None when all are equal
    scale : the weight of every row where ``weights`` is None; only pooling asks for it

    Notes
    -----
    shared definition: method, "Curve, rank, percentile". Equal weights are the same as none, to
    the last bit, which is why they are stored as None.
    """

    values: FloatArray
    weights: FloatArray | None = None
    scale: float = 1.0

    @classmethod
    def from_values(cls, values: FloatArray, weights: FloatArray | None = None) -> SortedSample:
        """Sort values (shape (n,), any order) and carry their weights along.

        ``values`` is sorted in place where it can be: hand over an array that nobody else holds.
        """
        if weights is None or all_equal(weights):
            values.sort()
            return cls(values, scale=1.0 if weights is None else float(weights[0]))
        order = np.argsort(values)
        values, weights = values[order], weights[order]
        ties = _order_within_ties(values, weights)
        return cls(values, weights if ties is None else weights[ties])

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.values.size)

    @property
    def row_weights(self) -> FloatArray:
        """Weight of every row, shape (n,), comparable with those of other samples."""
        return np.full(self.n, self.scale) if self.weights is None else self.weights

    @cached_property
    def cumulative(self) -> FloatArray:
        """Cumulative weight ``C_i``, shape (n,); the count 1..n without weights."""
        if self.weights is None:
            return np.arange(1, self.n + 1, dtype=np.float64)
        return np.cumsum(self.weights)

    @property
    def total(self) -> float:
        """Total weight ``W``; the number of rows without weights."""
        return float(self.n) if self.weights is None else float(self.cumulative[-1])

    @property
    def mid(self) -> int:
        """First index whose cumulative weight exceeds half; ``n // 2`` without weights."""
        if self.weights is None:
            return self.n // 2
        half = self.total / 2 * (1 + _SAME)
        return int(np.searchsorted(self.cumulative, half, side="right"))

    @property
    def middle(self) -> tuple[int, int]:
        """Indices of the one or two middle elements; a median is their average."""
        mid = self.mid
        if self.weights is None:
            return (mid - 1, mid) if self.n % 2 == 0 else (mid, mid)
        exact = mid > 0 and abs(self.cumulative[mid - 1] - self.total / 2) <= _SAME * self.total
        return (mid - 1, mid) if exact else (mid, mid)

    @property
    def median(self) -> float:
        """Median of the values."""
        low, high = self.middle
        return float((self.values[low] + self.values[high]) / 2)

    def weight_below(self, value: ArrayLike, *, inclusive: bool) -> FloatArray:
        """Weight of the rows below ``value`` (``inclusive``: at or below)."""
        index = np.searchsorted(self.values, value, side="right" if inclusive else "left")
        if self.weights is None:
            return np.asarray(index, dtype=np.float64)
        return np.where(index > 0, self.cumulative[np.maximum(index - 1, 0)], 0.0)

    @overload
    def percentile(self, value: float) -> float: ...
    @overload
    def percentile(self, value: FloatArray) -> FloatArray: ...
    def percentile(self, value: float | FloatArray) -> float | FloatArray:
        """Mid-rank of a residual in this sample, as a share of it.

        Parameters
        ----------
        value : residual, scalar or shape (k,)

        Returns
        -------
        ``h(v) = (W_<v + W_≤v − W/n) / (2W)``, same shape, in [0, 1); with weights, rows much
        lighter than the average can lie below 0, by less than ``1 / (2n)``

        Notes
        -----
        Without ties this is ``index / n`` with a 0-based index. Mid-ranks make every position
        independent of the order of the rows.
        """
        below = self.weight_below(value, inclusive=False)
        upto = self.weight_below(value, inclusive=True)
        share = (below + upto - self.total / self.n) / (2 * self.total)
        return float(share) if np.ndim(value) == 0 else share

    @overload
    def at(self, q: float) -> float: ...
    @overload
    def at(self, q: FloatArray) -> FloatArray: ...
    def at(self, q: float | FloatArray) -> float | FloatArray:
        """Residual at a rank ``q`` in [0, 1]: the left-continuous quantile function ``Q(q)``."""
        if self.weights is None:
            # A product such as 0.07 * 100 lies a hair above the whole number it means.
            index = np.ceil(np.asarray(q) * self.n * (1 - _SAME)).astype(np.intp) - 1
        else:
            index = np.searchsorted(
                self.cumulative, np.asarray(q) * self.total * (1 - _SAME), side="left"
            )
        found = self.values[np.clip(index, 0, self.n - 1)]
        return float(found) if np.ndim(q) == 0 else found

    def integral(self, q0: float, q1: float) -> float:
        """``∫ Q(q) dq`` from ``q0`` to ``q1``, in residual units."""
        return self._integral_to(q1) - self._integral_to(q0)

    def _integral_to(self, q: float) -> float:
        position = q * self.total
        if self.weights is None:
            whole = min(int(position), self.n)
            done, area = float(whole), float(self.values[:whole].sum())
        else:
            whole = int(np.searchsorted(self.cumulative, position, side="right"))
            done = float(self.cumulative[whole - 1]) if whole else 0.0
            area = float(np.dot(self.values[:whole], self.weights[:whole]))
        rest = position - done
        if whole < self.n and rest > 0:
            area += rest * float(self.values[whole])
        return area / self.total


def all_equal(weights: FloatArray) -> bool:
    """Tell whether weights, shape (n,), are the same but for rounding."""
    low, high = float(weights.min()), float(weights.max())
    return high - low <= _SAME * high


def _order_within_ties(values: FloatArray, weights: FloatArray) -> NDArray[np.intp] | None:
    """Order that sorts weights inside every run of equal values; None where there is no run.

    Without it the order of the rows would show: a run's ends are where a knee can be.
    """
    same = np.equal(values[1:], values[:-1])
    if not same.any():
        return None
    starts = np.concatenate([[True], ~same])
    tied = np.concatenate([same, [False]]) | ~starts
    order = np.arange(values.size)
    run = np.cumsum(starts)[tied]
    order[tied] = order[tied][np.lexsort((weights[tied], run))]
    return order


@dataclass(frozen=True, eq=False)
class PooledSample:
    """Several groups' rows in one ascending order, and whose row each one is.

    Attributes
    ----------
    sample : all rows, sorted
    codes : index of the group of each sorted row, shape (n,), small unsigned integers
    """

    sample: SortedSample
    codes: NDArray[Any]

    @classmethod
    def merge(cls, samples: Sequence[SortedSample], *, weighted: bool = False) -> PooledSample:
        """Merge sorted groups, in linear time where the rows have no weights.

        ``weighted`` says that the groups' weights differ from each other even where they are
        equal inside each group; their samples then carry the weights they were made with.
        """
        sizes = [sample.n for sample in samples]
        together = np.concatenate([sample.values for sample in samples])
        # Sorted runs one after the other: numpy's stable sort finds and merges them.
        order = np.argsort(together, kind="stable")
        codes: NDArray[Any]
        if len(samples) == 2:
            codes = (order >= sizes[0]).view(np.uint8)
        else:
            codes = np.repeat(np.arange(len(samples), dtype=np.uint32), sizes)[order]
        values = together[order]
        if not weighted:
            return cls(SortedSample(values), codes)
        weights = np.concatenate([sample.row_weights for sample in samples])[order]
        if (ties := _order_within_ties(values, weights)) is not None:
            weights, codes = weights[ties], codes[ties]
        return cls(SortedSample(values, None if all_equal(weights) else weights), codes)


@dataclass(frozen=True, eq=False)
class Curve:
    """The sorted residual curve of all rows or of one group.

    Attributes
    ----------
    label : group label, or "all"
    sample : the sorted residuals and weights
    share : weight of the curve's rows over the weight of all rows
    median_residual : median of the curve's residuals (horizontal ruler)
    median_position : median of the rows' *global* percentiles (vertical ruler, F_mean)
    left_knee, right_knee : Knee, or None where there is none
    knee_reasons : for each side without a knee ("left", "right"), why
    base_rate, positive_rate, mean_score, accuracy : rates of the curve's rows
    """

    label: str
    sample: SortedSample
    share: float
    median_residual: float
    median_position: float
    left_knee: Knee | None
    right_knee: Knee | None
    knee_reasons: Mapping[str, str]
    base_rate: float
    positive_rate: float
    mean_score: float
    accuracy: float

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.sample.n

    @property
    def residuals(self) -> FloatArray:
        """Residuals in ascending order, shape (n,), read-only."""
        view = self.sample.values.view()
        view.flags.writeable = False
        return view

    @property
    def weights(self) -> FloatArray | None:
        """Weights in the order of ``residuals``, or None when all rows weigh the same."""
        return self.sample.weights

    @overload
    def at(self, q: float) -> float: ...
    @overload
    def at(self, q: FloatArray) -> FloatArray: ...
    def at(self, q: float | FloatArray) -> float | FloatArray:
        """Residual at the curve's own rank ``q`` in [0, 1]."""
        return self.sample.at(q)

    @overload
    def percentile(self, value: float) -> float: ...
    @overload
    def percentile(self, value: FloatArray) -> FloatArray: ...
    def percentile(self, value: float | FloatArray) -> float | FloatArray:
        """The curve's own mid-rank percentile of a residual."""
        return self.sample.percentile(value)

    def knee(self, side: str) -> Knee | None:
        """Return the knee of a side, "left" or "right"."""
        return self.left_knee if side == "left" else self.right_knee
