"""Who sits where along the global curve: pieces cut where the mix of groups changes."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count, pairwise
from math import log
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rise_core.exceptions import PredictionsError
from rise_core.predictions import Factor

__all__ = ["Piece", "cut_into_pieces"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Method = Literal["adaptive", "equal"]

# Cuts are looked for between this many cells of the sorted rows: a cut is off by at most 1/2000.
_CELLS = 2000


@dataclass(frozen=True)
class Piece:
    """A piece of the global curve and the groups in it.

    Attributes
    ----------
    q0, q1 : ends, as shares of the total weight in residual order
    d0, d1 : residuals of its first and last row
    n : rows in it
    counts : rows of each group
    shares : each group's share of the piece's weight
    label : the group most over-represented, by share over overall share
    excess : that group's share in the piece over its overall share, ≥ 1
    significant : whether the excess is larger than chance gives, over all pieces at 5 %
    """

    q0: float
    q1: float
    d0: float
    d1: float
    n: int
    counts: Mapping[str, int]
    shares: Mapping[str, float]
    label: str
    excess: float
    significant: bool


def cut_into_pieces(
    residuals: FloatArray,
    factor: Factor,
    weights: FloatArray | None = None,
    *,
    k: int = 40,
    method: Method = "adaptive",
) -> tuple[Piece, ...]:
    """Cut the global curve where the mix of groups changes.

    Parameters
    ----------
    residuals : float64, shape (n,), ascending
    factor : groups of the rows, in the same order
    weights : float64, shape (n,), in the same order, or None
    k : most pieces
    method : "adaptive" cuts by likelihood, "equal" into ``k`` pieces of equal count

    Returns
    -------
    pieces from left to right, at least one

    Raises
    ------
    PredictionsError
        ``k`` is below 1

    Notes
    -----
    shared definition: method, "Adaptive segments". Binary segmentation: the cut that raises the
    multinomial log-likelihood most comes first, and cuts stop where BIC no longer pays for one
    (``½ · K · log n`` for K − 1 shares and the place of the cut). Rows with equal residuals are
    never parted.
    """
    if k < 1:
        raise PredictionsError(f"k must be at least 1 piece; came {k!r}.")
    n = residuals.size
    ends = _cell_ends(residuals, min(k, n) if method == "equal" else _CELLS)
    mass = np.ones(n) if weights is None else weights * (n / weights.sum())
    groups = len(factor.labels)
    cell = np.zeros(n, dtype=np.intp)
    cell[ends[:-1]] = 1
    cell = np.cumsum(cell)
    key = cell * groups + factor.codes
    shape = (ends.size, groups)
    counts = np.bincount(key, minlength=ends.size * groups).reshape(shape)
    masses: FloatArray = counts.astype(np.float64)
    if weights is not None:
        masses = np.bincount(key, mass, ends.size * groups).reshape(shape).astype(np.float64)

    total = np.vstack([np.zeros(groups), np.cumsum(masses, axis=0)])
    cuts = list(range(ends.size + 1))
    if method == "adaptive":
        cuts = _segment(total, k, penalty=groups * log(max(n, 2)) / 2)
    starts = np.concatenate([[0], ends])
    return _describe(residuals, factor, starts, cuts, counts, total)


def _cell_ends(residuals: FloatArray, cells: int) -> IntArray:
    """Ends (exclusive) of about ``cells`` equal cells that never part equal residuals."""
    n = residuals.size
    wanted = np.linspace(0, n, min(cells, n) + 1)[1:].astype(np.intp)
    ends = np.searchsorted(residuals, residuals[wanted - 1], side="right")
    return np.unique(ends).astype(np.intp)


def _log_likelihood(counts: FloatArray) -> FloatArray:
    """Multinomial log-likelihood of counts, shape (…, K), at their own shares."""
    total = counts.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(counts > 0, counts * np.log(counts / total), 0.0)
    return np.asarray(terms.sum(axis=-1))


def _segment(total: FloatArray, k: int, penalty: float) -> list[int]:
    """Cut indices by greedy binary segmentation of cumulative counts, shape (cells + 1, K)."""

    def best_cut(start: int, stop: int) -> tuple[float, int]:
        if stop - start < 2:
            return 0.0, start
        inner = total[start + 1 : stop]
        gain = (
            _log_likelihood(inner - total[start])
            + _log_likelihood(total[stop] - inner)
            - _log_likelihood(total[stop] - total[start])
        )
        at = int(np.argmax(gain))
        return float(gain[at]), start + 1 + at

    tie_break = count()
    cuts = [0, total.shape[0] - 1]
    gain, at = best_cut(*cuts)
    heap = [(-gain, next(tie_break), at, cuts[0], cuts[1])]
    while heap and len(cuts) <= k:
        loss, _, at, start, stop = heapq.heappop(heap)
        if -loss <= penalty:
            break
        cuts.append(at)
        for left, right in ((start, at), (at, stop)):
            gain, place = best_cut(left, right)
            heapq.heappush(heap, (-gain, next(tie_break), place, left, right))
    return sorted(cuts)


def _describe(
    residuals: FloatArray,
    factor: Factor,
    starts: IntArray,
    cuts: list[int],
    counts: IntArray,
    total: FloatArray,
) -> tuple[Piece, ...]:
    overall = total[-1] / total[-1].sum()
    everything = float(total[-1].sum())
    rows = np.vstack([np.zeros(len(factor.labels), dtype=np.intp), np.cumsum(counts, axis=0)])
    pieces_of_groups = (len(cuts) - 1) * len(factor.labels)
    critical = NormalDist().inv_cdf(1 - 0.05 / (2 * pieces_of_groups))
    pieces = []
    for start, stop in pairwise(cuts):
        inside = total[stop] - total[start]
        n_inside = rows[stop] - rows[start]
        n = int(n_inside.sum())
        shares = inside / inside.sum()
        excess = shares / overall
        top = int(np.argmax(excess))
        noise = (overall[top] * (1 - overall[top]) / n) ** 0.5
        pieces.append(
            Piece(
                q0=float(total[start].sum()) / everything,
                q1=float(total[stop].sum()) / everything,
                d0=float(residuals[starts[start]]),
                d1=float(residuals[starts[stop] - 1]),
                n=n,
                counts=dict(zip(factor.labels, map(int, n_inside), strict=True)),
                shares=dict(zip(factor.labels, map(float, shares), strict=True)),
                label=factor.labels[top],
                excess=float(excess[top]),
                significant=bool(shares[top] - overall[top] > critical * noise),
            )
        )
    return tuple(pieces)
