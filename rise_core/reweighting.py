"""Curves of a block of replicates: an already sorted curve under other weights.

A replicate gives every place of the sorted curve a new weight. Cumulative weights then give ranks,
medians, knees and areas by the same definitions as in `rise_core.curve`, `rise_core.knees` and
`rise_core.gap`, for many replicates at once. Nothing is sorted here.

Places are single rows, or *cells* (short runs of rows) where there are many rows. A cell knows its
smallest and its largest residual, and the curve is taken to rise evenly between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CurveBlock", "Grid", "Measured", "Strand", "Stretches", "measure"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

# As in rise_core.curve and rise_core.knees, so that a replicate is what a re-sort would give.
_SAME = 1e-12
_STRAIGHT = 1e-9
_TIE = 1e-12
LEFT, RIGHT = 0, 1


@dataclass(frozen=True, eq=False)
class Strand:
    """The places of one curve on the pooled grid.

    Attributes
    ----------
    columns : the curve's places among the pooled ones, ascending, shape (m,); None for all
    low, high : smallest and largest residual of the curve in each place, shape (m,)
    low_at, high_at : where in the pooled place those lie, as a share of its rows
    """

    columns: IntArray | None
    low: FloatArray
    high: FloatArray
    low_at: FloatArray
    high_at: FloatArray


@dataclass(frozen=True, eq=False)
class Grid:
    """The pooled sorted curve, cut into places.

    Attributes
    ----------
    exact : whether every place is one row
    pooled : all places
    groups : the places of each group, in label order
    run_first, run_last : first and last place with the same residual, shape (m,)
    widths : what ``∑ |F_a − F_b| · widths`` integrates over the residual, shape (m,)
    cell : place of every row, shape (n,)
    """

    exact: bool
    pooled: Strand
    groups: tuple[Strand, ...]
    run_first: IntArray
    run_last: IntArray
    widths: FloatArray
    cell: IntArray

    @property
    def size(self) -> int:
        """Number of places."""
        return int(self.pooled.low.size)


@dataclass(frozen=True, eq=False)
class CurveBlock:
    """One curve under the weights of a block of replicates.

    Attributes
    ----------
    strand : the curve's places
    cumulative : cumulative weight with a leading 0, shape (B, m + 1)
    rows : number of rows of the curve in each replicate, shape (B,)
    half : half the weight of one row, a number or shape (B, m); 0 for cells
    counts : rows in each place, shape (B, m), where weights differ; else None
    """

    strand: Strand
    cumulative: FloatArray
    rows: FloatArray
    half: FloatArray | float
    counts: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class _Place:
    """Points on a curve, one a replicate: place, residual, share of the pooled place before it."""

    column: IntArray
    residual: FloatArray
    within: FloatArray


@dataclass(frozen=True, eq=False)
class _Trace:
    """Medians and knees of a curve, before they are placed among all rows."""

    absent: BoolArray
    middle: tuple[_Place, _Place]
    knees: tuple[_Place, _Place]


@dataclass(frozen=True)
class Stretches:
    """Stretches of [0, 1] to look for gaps on.

    Attributes
    ----------
    ends : ranks (q0, q1) of each
    pair : the two groups, by index in label order, gaps are first minus second; None for the pair
        that is widest apart in each replicate, as in a random grouping
    """

    ends: tuple[tuple[float, float], ...]
    pair: tuple[int, int] | None


@dataclass(frozen=True, eq=False)
class Measured:
    """What a block of B replicates gives; K groups in label order, P pairs, S stretches.

    Attributes
    ----------
    median : median position of each group, (B, K)
    knee_h, knee_d : global percentile and residual of the knees, (B, K, 2), left and right
    pooled_h, pooled_d : the same of the pooled curve, (B, 2)
    w1 : Wasserstein-1 distance of each pair, (B, P), pairs in `combinations` order
    along : the part of W1 that keeps the observed sign, (B, P); nan without one
    area, mean_gap, slope_gap : of each stretch, (B, S)
    """

    median: FloatArray
    knee_h: FloatArray
    knee_d: FloatArray
    pooled_h: FloatArray
    pooled_d: FloatArray
    w1: FloatArray
    along: FloatArray
    area: FloatArray
    mean_gap: FloatArray
    slope_gap: FloatArray


def first_above(cumulative: FloatArray, targets: FloatArray, *, inclusive: bool) -> IntArray:
    """First place whose cumulative weight exceeds (``inclusive``: reaches) each target.

    ``cumulative`` (B, m + 1) with its leading 0, ``targets`` (B, T); returns (B, T) places.
    """
    side: Any = "left" if inclusive else "right"
    found = [row.searchsorted(t, side) for row, t in zip(cumulative[:, 1:], targets, strict=True)]
    return np.asarray(np.minimum(np.array(found, dtype=np.intp), cumulative.shape[1] - 2))


def _pick(matrix: FloatArray | float, column: IntArray) -> FloatArray:
    """One entry a replicate; a matrix of one row, or a number, serves all."""
    if isinstance(matrix, float):
        return np.full(column.size, matrix)
    rows = np.arange(column.size) if matrix.shape[0] > 1 else 0
    return np.asarray(matrix[rows, column])


def _trace(block: CurveBlock, *, exact: bool) -> _Trace:
    """Find the middle rows and both knees of a curve in every replicate."""
    strand, cumulative = block.strand, block.cumulative
    total = cumulative[:, -1]
    absent = ~(total > 0)
    half_weight = total / 2
    beyond = first_above(
        cumulative, np.stack([0 * total, half_weight * (1 + _SAME)], axis=1), inclusive=False
    )
    upto = first_above(
        cumulative,
        np.stack([half_weight * (1 - _SAME), total * (1 - _SAME)], axis=1),
        inclusive=True,
    )
    first, mid, low_mid, last = beyond[:, 0], beyond[:, 1], upto[:, 0], upto[:, 1]
    before = _pick(cumulative, mid)
    weight = _pick(cumulative, mid + 1) - before
    if exact:
        unit = 2 * _pick(block.half, mid)
        with np.errstate(invalid="ignore", divide="ignore"):
            copies = np.floor((half_weight * (1 + _SAME) - before) / unit) + 1
        position, residual = before + (copies - 0.5) * unit, strand.low[mid]
        within = strand.low_at[mid]
        middle = (
            _Place(low_mid, strand.low[low_mid], strand.low_at[low_mid]),
            _Place(mid, residual, within),
        )
    else:
        share = np.divide(half_weight - before, weight, where=weight > 0, out=np.zeros_like(total))
        position, copies = half_weight, np.ones_like(total)
        residual = strand.low[mid] + share * (strand.high[mid] - strand.low[mid])
        within = strand.low_at[mid] + share * (strand.high_at[mid] - strand.low_at[mid])
        middle = (_Place(mid, residual, within),) * 2
    if block.counts is None:
        mid_row = np.floor(block.rows / 2)
    else:
        inside = np.arange(block.counts.shape[1]) < mid[:, None]
        mid_row = np.where(inside, block.counts, 0).sum(axis=1) + copies - 1

    start = (_pick(block.half, first), strand.low[first])
    centre = (position, residual)
    end = (total - _pick(block.half, last), strand.high[last])
    left = _half_knee(block, (first, mid), start, centre, LEFT, exact=exact)
    right = _half_knee(block, (mid, last), centre, end, RIGHT, exact=exact)
    left.residual[mid_row < 2] = np.nan
    right.residual[block.rows - mid_row < 3] = np.nan
    return _Trace(absent, middle, (left, right))


def _half_knee(
    block: CurveBlock,
    ends: tuple[IntArray, IntArray],
    start: tuple[FloatArray, FloatArray],
    stop: tuple[FloatArray, FloatArray],
    side: int,
    *,
    exact: bool,
) -> _Place:
    """Place of the largest ``|c|`` between two places; nan residual where there is none.

    In a run of equal residuals ``c`` is largest at its first row and smallest at its last, so one
    side of the chord needs the weight before each place, the other the weight up to it.
    """
    strand, cumulative = block.strand, block.cumulative
    first, last = ends
    length, rise = stop[0] - start[0], stop[1] - start[1]
    usable = (length > 0) & (rise > 0)
    slope = np.divide(length, rise, where=usable, out=np.zeros_like(length))
    base = start[1] * slope - start[0]
    lo, hi = int(first.min()), int(last.max()) + 1
    columns = np.arange(lo, hi)
    # The middle row closes both halves, and c is 0 there; its other copies are outside.
    inner = (first, last - 1) if side == LEFT else (first + 1, last)

    above = strand.low[lo:hi] * slope[:, None]
    below = above.copy() if exact else strand.high[lo:hi] * slope[:, None]
    above -= cumulative[:, lo:hi]
    below -= cumulative[:, lo + 1 : hi + 1]
    half = block.half
    shift = half if isinstance(half, float) else 0.0
    if not isinstance(half, float):
        above -= half[:, lo:hi]
        below += half[:, lo:hi]
    if block.counts is not None:
        nobody = block.counts[:, lo:hi] == 0
        above[nobody], below[nobody] = -np.inf, np.inf
    # Beyond the ends nothing counts; in the middle place only the copies on this side do.
    _mask(above, columns, first if side == LEFT else inner[0], last, -np.inf)
    _mask(below, columns, first, inner[1] if side == LEFT else last, np.inf)

    at_above, top = _first_extreme(above, length, largest=True, ties=exact)
    at_below, bottom = _first_extreme(below, length, largest=False, ties=exact)
    with np.errstate(invalid="ignore", divide="ignore"):
        concave = (top - shift - base) / length
        convex = (base - bottom - shift) / length
        tied = np.abs(concave - convex) <= _TIE
    use_above = np.where(tied, at_above <= at_below, concave > convex)
    strength = np.maximum(concave, convex)
    column = lo + np.where(use_above, at_above, at_below)
    residual = np.where(use_above, strand.low[column], strand.high[column])
    within = np.where(use_above, strand.low_at[column], strand.high_at[column])
    residual[~usable | ~(strength >= _STRAIGHT)] = np.nan
    return _Place(column, residual, within)


def _mask(
    values: FloatArray, columns: IntArray, first: IntArray, last: IntArray, by: float
) -> None:
    """Blank what lies before ``first`` or after ``last``; only the ragged edges are touched."""
    lo = columns[0]
    left = max(int(first.max()) - lo, 0)
    if left:
        edge = values[:, :left]
        edge[columns[:left] < first[:, None]] = by
    right = max(int(last.min()) + 1 - lo, 0)
    if right < columns.size:
        edge = values[:, right:]
        edge[columns[right:] > last[:, None]] = by


def _first_extreme(
    values: FloatArray, length: FloatArray, *, largest: bool, ties: bool
) -> tuple[IntArray, FloatArray]:
    rows = np.arange(values.shape[0])
    if not ties:
        at = values.argmax(axis=1) if largest else values.argmin(axis=1)
        return at, values[rows, at]
    tolerance = _TIE * length
    if largest:
        extreme = values.max(axis=1)
        return (values >= (extreme - tolerance)[:, None]).argmax(axis=1), extreme
    extreme = values.min(axis=1)
    return (values <= (extreme + tolerance)[:, None]).argmax(axis=1), extreme


def _global_percentile(
    grid: Grid, strand: Strand, place: _Place, pooled: FloatArray, rows: FloatArray
) -> FloatArray:
    """``h(v)`` of a point on a curve, from the pooled cumulative weight (B, M + 1)."""
    column = place.column if strand.columns is None else strand.columns[place.column]
    before = _pick(pooled, grid.run_first[column])
    upto = _pick(pooled, grid.run_last[column] + 1)
    rank = before + place.within * (upto - before)
    return np.asarray(rank / pooled[:, -1] - 0.5 / rows)


def spread_over(grid: Grid, strand: Strand, cumulative: FloatArray) -> FloatArray:
    """Cumulative weight of a group (B, m + 1) at every pooled place, shape (B, M)."""
    if strand.columns is None:
        return cumulative[:, 1:]
    reached = np.zeros(grid.size, dtype=np.intp)
    reached[strand.columns] = 1
    return np.take(cumulative, np.cumsum(reached), axis=1)


def measure(
    grid: Grid,
    groups: list[CurveBlock],
    pooled: CurveBlock,
    spread: list[FloatArray],
    stretches: Stretches,
    signs: tuple[FloatArray, ...] | None,
) -> Measured:
    """Measure a block of replicates.

    Parameters
    ----------
    grid : the places
    groups, pooled : the curves; ``pooled`` may have one row that serves all replicates
    spread : cumulative weight of each group at every pooled place, (B, M) each
    stretches : where to look for gaps
    signs : for each pair the sign of the observed ``F_a − F_b`` times the widths, or None
    """
    size = groups[0].cumulative.shape[0]
    whole = _trace(pooled, exact=grid.exact)
    pooled_h = np.empty((size, 2))
    pooled_d = np.empty((size, 2))
    for side, place in enumerate(whole.knees):
        where = _global_percentile(grid, pooled.strand, place, pooled.cumulative, pooled.rows)
        pooled_h[:, side] = np.where(np.isnan(place.residual), np.nan, where)
        pooled_d[:, side] = place.residual
    median = np.empty((size, len(groups)))
    knee_h = np.empty((size, len(groups), 2))
    knee_d = np.empty((size, len(groups), 2))
    for k, block in enumerate(groups):
        trace = _trace(block, exact=grid.exact)

        def height(place: _Place, block: CurveBlock = block) -> FloatArray:
            return _global_percentile(grid, block.strand, place, pooled.cumulative, pooled.rows)

        median[:, k] = (height(trace.middle[0]) + height(trace.middle[1])) / 2
        median[trace.absent, k] = np.nan
        for side, place in enumerate(trace.knees):
            missing = np.isnan(place.residual) | trace.absent
            knee_h[:, k, side] = np.where(missing, np.nan, height(place))
            knee_d[:, k, side] = np.where(missing, np.nan, place.residual)
    gaps = _gaps(grid, groups, spread, stretches, signs)
    return Measured(median, knee_h, knee_d, pooled_h, pooled_d, *gaps)


def _gaps(
    grid: Grid,
    groups: list[CurveBlock],
    spread: list[FloatArray],
    stretches: Stretches,
    signs: tuple[FloatArray, ...] | None,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """W1 of every pair, its part along the observed signs, and the gaps on each stretch."""
    size = spread[0].shape[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = [s / block.cumulative[:, -1:] for s, block in zip(spread, groups, strict=True)]
    pairs = list(combinations(range(len(groups)), 2))
    w1 = np.empty((size, len(pairs)))
    along = np.full((size, len(pairs)), np.nan)
    for p, (i, j) in enumerate(pairs):
        height = shares[i] - shares[j]
        if signs is not None:
            along[:, p] = height @ signs[p]
        np.abs(height, out=height)
        w1[:, p] = height @ grid.widths
    found = [np.full((size, len(stretches.ends)), np.nan) for _ in range(3)]
    if not pairs:
        return w1, along, found[0], found[1], found[2]
    if stretches.pair is not None:
        _on_stretches(grid, groups, shares, stretches.pair, slice(None), stretches, found)
    else:
        widest = w1.argmax(axis=1)
        for p in np.unique(widest):
            rows = np.flatnonzero(widest == p)
            _on_stretches(grid, groups, shares, pairs[p], rows, stretches, found)
    return w1, along, found[0], found[1], found[2]


def _on_stretches(
    grid: Grid,
    groups: list[CurveBlock],
    shares: list[FloatArray],
    pair: tuple[int, int],
    rows: IntArray | slice,
    stretches: Stretches,
    found: list[FloatArray],
) -> None:
    """Area, mean gap and slope gap (first minus second of the pair) of some replicates."""
    f_a, f_b = (shares[k][rows] for k in pair)
    curves = [(groups[k].strand, groups[k].cumulative[rows]) for k in pair]
    height = f_a - f_b
    cuts = sorted({q for ends in stretches.ends for q in ends})
    upto = {q: _area_to(grid, f_a, f_b, height, q) for q in cuts}
    level = {q: [_quantile(grid, *curve, q) for curve in curves] for q in cuts}
    area, mean_gap, slope_gap = found
    for s, (q0, q1) in enumerate(stretches.ends):
        (below0, gap0), (below1, gap1) = upto[q0], upto[q1]
        width = q1 - q0
        area[rows, s] = np.maximum(below1 - below0, 0)
        if width > 0:
            # ∫ Q dq up to q is q·max − ∫ min(F, q) dv: the gap of Q is minus that of F.
            mean_gap[rows, s] = (gap0 - gap1) / width
            rise = [high - low for high, low in zip(level[q1], level[q0], strict=True)]
            slope_gap[rows, s] = (rise[0] - rise[1]) / width


def _area_to(
    grid: Grid, f_a: FloatArray, f_b: FloatArray, height: FloatArray, q: float
) -> tuple[FloatArray, FloatArray]:
    """Area between two curves up to rank ``q``, absolute and signed (``F_a − F_b``), (B,) each."""
    size, widths = height.shape[0], grid.widths
    if q <= 0:
        return np.zeros(size), np.zeros(size)
    if q >= 1:
        return np.abs(height) @ widths, height @ widths
    reach = [[row.searchsorted(q) for row in f] for f in (f_a, f_b)]
    # Below ``lo`` both curves lie under q in every replicate, from ``hi`` on neither does.
    lo, hi = int(np.min(reach)), int(np.max(reach)) + 1
    edge = np.minimum(f_a[:, lo:hi], q) - np.minimum(f_b[:, lo:hi], q)
    signed = height[:, :lo] @ widths[:lo] + edge @ widths[lo:hi]
    absolute = np.abs(height[:, :lo]) @ widths[:lo] + np.abs(edge) @ widths[lo:hi]
    return absolute, signed


def _quantile(grid: Grid, strand: Strand, cumulative: FloatArray, q: float) -> FloatArray:
    """Residual of a curve at its own rank ``q``, (B,)."""
    total = cumulative[:, -1]
    if q <= 0:
        return strand.low[first_above(cumulative, 0 * total[:, None], inclusive=False)[:, 0]]
    target = q * total * (1 - _SAME)
    column = first_above(cumulative, target[:, None], inclusive=True)[:, 0]
    if grid.exact:
        return strand.low[column]
    before = _pick(cumulative, column)
    weight = _pick(cumulative, column + 1) - before
    share = np.divide(target - before, weight, where=weight > 0, out=np.zeros_like(total))
    return np.asarray(strand.low[column] + share * (strand.high[column] - strand.low[column]))
