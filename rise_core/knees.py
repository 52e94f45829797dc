"""Twin knees: where a sorted residual curve bends most, once on either side of its middle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from rise_core.exceptions import PredictionsError

if TYPE_CHECKING:
    from rise_core.curve import SortedSample

__all__ = ["DETECTORS", "Bend", "Detector", "Knee", "difference_curve", "twin_knees"]

FloatArray = NDArray[np.float64]
Side = Literal["left", "right"]
Shape = Literal["concave", "convex"]
Detector = Literal["prominent", "kneed"]
DETECTORS: tuple[Detector, ...] = ("prominent", "kneed")
SIDES: tuple[Side, ...] = ("left", "right")

_STRAIGHT = 1e-9
# Two bends closer than this are a tie, which the first one wins. Without it, rounding would
# decide, and the same curve with weights 1 and with weights 3 could have two different knees.
_TIE = 1e-12
_BLOCK = 512
_KNEED_GRID = 500


@dataclass(frozen=True)
class Bend:
    """A knee on the curve it was found on, before it is placed among all rows."""

    index: int
    residual: float
    strength: float
    shape: Shape


@dataclass(frozen=True)
class Knee:
    """A knee of a curve.

    Attributes
    ----------
    side : "left" (drawn ◆) or "right" (drawn ★)
    index : 0-based index in the curve's own sorted residuals
    residual : the curve's residual there
    percentile : *global* percentile of that residual, between 0 and 1
    own_percentile : percentile of that residual in the curve itself
    strength : distance from the chord in the unit square of its half, between 0 and 1
    shape : "concave" (above the chord) or "convex" (below it)
    """

    side: Side
    index: int
    residual: float
    percentile: float
    own_percentile: float
    strength: float
    shape: Shape


def twin_knees(
    sample: SortedSample, detector: Detector = "prominent", sensitivity: float = 1.0
) -> dict[Side, Bend | str]:
    """Left and right knee of a sorted residual curve.

    Each half of the curve is scaled to the unit square; its knee is the point farthest from the
    diagonal, on either side of it (Kneedle's difference curve, most prominent extremum).

    Parameters
    ----------
    sample : sorted residuals, shape (n,), with weights or without
    detector : "prominent", or "kneed" for classic Kneedle
    sensitivity : Kneedle's S; used by "kneed" alone

    Returns
    -------
    "left" and "right" to a Bend, or to the reason why that side has none

    Notes
    -----
    shared definition: method, "Twin knees". Both halves hold the middle index. Linear at worst;
    a curve of a million rows is mostly skipped, because between two points of a rising curve
    the difference curve is bounded by its values at them.

    References
    ----------
    Satopää et al., "Finding a 'Kneedle' in a Haystack", ICDCS workshops 2011.
    """
    mid = sample.mid
    halves: dict[Side, tuple[int, int]] = {"left": (0, mid), "right": (mid, sample.n - 1)}
    return {
        side: _half_knee(sample, first, last, side, detector, sensitivity)
        for side, (first, last) in halves.items()
    }


def difference_curve(values: FloatArray, positions: FloatArray | None = None) -> FloatArray:
    """Kneedle's normalised difference curve ``c = d̂ − x̂`` of a rising curve, shape (n,).

    ``values`` must rise by more than 0 from first to last; ``positions`` default to the index.
    """
    x = np.arange(values.size, dtype=np.float64) if positions is None else positions
    span, length = values[-1] - values[0], x[-1] - x[0]
    return np.asarray((values - values[0]) / span - (x - x[0]) / length)


def _half_knee(
    sample: SortedSample, first: int, last: int, side: Side, detector: Detector, sensitivity: float
) -> Bend | str:
    values = sample.values
    if last - first < 2:
        return f"the {side} half has {max(last - first + 1, 0)} rows; a knee needs 3"
    if not values[last] > values[first]:
        return f"all residuals of the {side} half are equal"
    strength, index = _largest_bend(sample, first, last)
    if abs(strength) < _STRAIGHT:
        return f"the {side} half is a straight line"
    shape: Shape = "concave" if strength > 0 else "convex"
    if detector == "kneed":
        found = _kneed_index(sample, first, last, shape, sensitivity)
        if found is None:
            return f"kneed finds no knee in the {side} half at S = {sensitivity:g}"
        index = found
        strength = float(_bend_at(sample, first, last)(np.array([index]))[0])
    return Bend(index, float(values[index]), abs(strength), shape)


def _bend_at(
    sample: SortedSample, first: int, last: int
) -> Callable[[NDArray[np.intp]], FloatArray]:
    """Return the difference curve of a half as a function of indices of the whole curve."""
    values, weights = sample.values, sample.weights
    low, span = values[first], values[last] - values[first]

    def position(index: NDArray[np.intp]) -> FloatArray:
        if weights is None:
            return index.astype(np.float64)
        return np.asarray(sample.cumulative[index] - weights[index] / 2)

    start, end = position(np.array([first, last]))

    def bend(index: NDArray[np.intp]) -> FloatArray:
        return np.asarray((values[index] - low) / span - (position(index) - start) / (end - start))

    return bend


def _largest_bend(sample: SortedSample, first: int, last: int) -> tuple[float, int]:
    """Signed difference and index of the largest ``|c|`` between two indices, first on ties."""
    bend = _bend_at(sample, first, last)
    if last - first <= 4 * _BLOCK:
        candidates = np.arange(first, last + 1)
    else:
        # d̂ and x̂ both rise, so inside a block c lies between d̂(start) − x̂(end) and
        # d̂(end) − x̂(start). Only blocks that may beat the best sampled point are looked into.
        posts = np.append(np.arange(first, last, _BLOCK), last)
        at_posts = bend(posts)
        level = (sample.values[posts] - sample.values[first]) / (
            sample.values[last] - sample.values[first]
        )
        place = level - at_posts
        bound = np.maximum(level[1:] - place[:-1], place[1:] - level[:-1])
        open_blocks = np.flatnonzero(bound >= np.abs(at_posts).max() - 4 * _TIE)
        # A block takes both its posts along, so the best post itself is always looked at.
        candidates = np.concatenate([np.arange(posts[b], posts[b + 1] + 1) for b in open_blocks])
    c = bend(candidates)
    size = np.abs(c)
    best = int(np.argmax(size >= size.max() - _TIE))
    return float(c[best]), int(candidates[best])


def _kneed_index(
    sample: SortedSample, first: int, last: int, shape: Shape, sensitivity: float
) -> int | None:
    """Index of classic Kneedle's knee, found on a fixed grid of the half, even in weight.

    The grid is fixed because Kneedle's threshold is S over the number of points: on raw rows its
    knee wanders to the end of the curve as rows are added.
    """
    try:
        from kneed import KneeLocator  # a second's import (scipy), paid by those who ask for it
    except ImportError as error:
        raise PredictionsError(
            "detector='kneed' needs the package kneed, which is not installed here: "
            'pip install "rise-core[kneed]". detector="prominent" needs nothing more.'
        ) from error

    half = slice(first, last + 1)
    places = np.arange(first, last + 1, dtype=np.float64)
    if sample.weights is not None:
        places = sample.cumulative[half] - sample.weights[half] / 2
    wanted = np.linspace(places[0], places[-1], min(_KNEED_GRID, places.size))
    index = first + np.unique(_nearest(places, wanted))
    positions = places[index - first]
    located = KneeLocator(
        positions,
        sample.values[index],
        S=sensitivity,
        curve=shape,
        direction="increasing",
        online=False,
    )
    if located.knee is None:
        return None
    return int(index[int(np.argmin(np.abs(positions - float(located.knee))))])


def _nearest(places: FloatArray, wanted: FloatArray) -> NDArray[np.intp]:
    """Index of the place nearest to each of ``wanted``; both ascending."""
    after = np.clip(np.searchsorted(places, wanted), 1, places.size - 1)
    return after - (wanted - places[after - 1] < places[after] - wanted)
