"""From a curve of any length to the few points that a screen can show."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rise_core.curve import Curve

__all__ = ["MAX_POINTS", "curve_points", "ranks_of"]

EVEN = 540
PER_END = 200
# A curve of few rows is drawn as what it is, a staircase: two points a row.
STAIRS = 150
JUMPS = 20
MAX_POINTS = 1000

IndexArray = NDArray[np.intp]
FloatArray = NDArray[np.float64]


def curve_points(
    curve: Curve, *, even: int = EVEN, per_end: int = PER_END, keep: Iterable[float] = ()
) -> pd.DataFrame:
    """Points that draw a sorted residual curve.

    The ends of a curve are where it is steep, so they get points of their own; knees and the
    median are always there, so that a marker never floats beside its line. No value is averaged
    or interpolated: every point is a row of the full curve.

    Parameters
    ----------
    curve : sorted residuals, shape (n,), with weights or without
    even : evenly spaced ranks
    per_end : geometrically spaced ranks at either end
    keep : further ranks in [0, 1] that need a point, such as the cuts between pieces

    Returns
    -------
    DataFrame with ``rank`` (own rank, 0 to 1, rising) and ``residual`` (rising); at most
    ``MAX_POINTS`` rows plus two per entry of ``keep``

    Notes
    -----
    Row ``i`` fills the ranks from ``i/n`` to ``(i+1)/n`` (with weights: from ``C_{i-1}/W`` to
    ``C_i/W``). Up to ``STAIRS`` rows both ends of every stair are drawn. Above, a row is one point
    at the start of its stair, which is also its percentile in the curve when nothing is tied;
    where the curve jumps between two chosen rows, the two rows of the jump are added, so that a
    jump is drawn upright.
    """
    n = curve.n
    if n == 0:
        return pd.DataFrame({"rank": np.empty(0), "residual": np.empty(0)})
    values = curve.residuals
    if n <= STAIRS:
        edges = ranks_of(curve, np.arange(n + 1))
        return pd.DataFrame(
            {
                "rank": np.column_stack([edges[:-1], edges[1:]]).ravel(),
                "residual": np.repeat(values, 2),
            }
        )
    chosen = _chosen(curve, even, per_end, keep)
    chosen = _with_jumps(values, chosen)
    rank = np.append(ranks_of(curve, chosen), 1.0)
    return pd.DataFrame({"rank": rank, "residual": np.append(values[chosen], values[-1])})


def ranks_of(curve: Curve, index: IndexArray) -> FloatArray:
    """Rank at which the stair of a row starts, between 0 and 1; index ``n`` gives 1."""
    if curve.weights is None:
        return np.asarray(index / curve.n, dtype=np.float64)
    cumulative = curve.sample.cumulative
    before = np.where(index > 0, cumulative[np.maximum(index - 1, 0)], 0.0)
    return np.asarray(before / cumulative[-1], dtype=np.float64)


def _chosen(curve: Curve, even: int, per_end: int, keep: Iterable[float]) -> IndexArray:
    """Indices of the full curve that are drawn, rising, each once."""
    n = curve.n
    ends = np.geomspace(1, n / 2, per_end) - 1
    # With weights the even steps are steps of weight: a heavy row is wide.
    steps = _index_at(curve, np.append(np.linspace(0, 1, even), np.asarray(list(keep), float)))
    parts: list[NDArray[np.generic]] = [steps, ends, n - 1 - ends, np.array([0, n - 1])]
    parts.append(_index_at(curve, np.array([0.5])))
    for knee in (curve.left_knee, curve.right_knee):
        if knee is not None:
            # Both ends of a run of equal residuals: the marker sits in the middle of it.
            parts.append(np.searchsorted(curve.residuals, [knee.residual], "left"))
            parts.append(np.searchsorted(curve.residuals, [knee.residual], "right") - 1)
    index = np.unique(np.concatenate(parts).round().astype(np.intp))
    return np.asarray(index[(index >= 0) & (index < n)])


def _index_at(curve: Curve, rank: FloatArray) -> IndexArray:
    if curve.weights is None:
        return np.clip((rank * curve.n).astype(np.intp), 0, curve.n - 1)
    cumulative = curve.sample.cumulative
    found = np.searchsorted(cumulative, rank * cumulative[-1], side="right")
    return np.asarray(np.clip(found, 0, curve.n - 1), dtype=np.intp)


def _with_jumps(values: FloatArray, chosen: IndexArray) -> IndexArray:
    """Add both rows of the largest jump inside every steep stretch between two chosen rows."""
    rise = np.diff(values[chosen])
    gap = np.diff(chosen)
    span = float(values[-1] - values[0])
    steep = np.flatnonzero((rise > 0.02 * span) & (gap > 1))
    steep = steep[np.argsort(rise[steep])[::-1][:JUMPS]]
    extra: list[int] = []
    for place in steep:
        first, last = int(chosen[place]), int(chosen[place + 1])
        jump = first + int(np.argmax(np.diff(values[first : last + 1])))
        extra += [jump, jump + 1]
    return np.unique(np.append(chosen, np.asarray(extra, dtype=np.intp)))
