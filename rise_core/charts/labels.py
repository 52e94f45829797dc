"""Where names stand beside dots, so that they can be read: off each other and off the dots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

__all__ = ["Align", "Placement", "place_labels"]

Align = Literal["left", "center", "right"]

_LETTER = 6.2  # pixels of an average letter of the 11 pixel font
_LINE = 13.0
_DOT = 6.0
# Corners first: an interval is drawn through its dot, across and upright.
_PLACES: tuple[tuple[float, float, Align], ...] = (
    (7, -9, "left"),
    (-7, -9, "right"),
    (7, 10, "left"),
    (-7, 10, "right"),
    (0, -14, "center"),
    (0, 15, "center"),
    (10, 0, "left"),
    (-10, 0, "right"),
    (8, -22, "left"),
    (-8, -22, "right"),
    (8, 23, "left"),
    (-8, 23, "right"),
    (0, -27, "center"),
    (0, 28, "center"),
)
_OUTSIDE = 4.0  # a name that is cut at the edge is worse than one that touches another


class Placement(NamedTuple):
    """Offset of a name from its dot in pixels, and which of its ends stands there."""

    dx: float
    dy: float
    align: Align


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def shared(self, other: _Box) -> float:
        """Area that two boxes share, in square pixels."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(width, 0.0) * max(height, 0.0)

    @property
    def area(self) -> float:
        return (self.right - self.left) * (self.bottom - self.top)


def place_labels(
    x: Sequence[float],
    y: Sequence[float],
    texts: Sequence[str],
    *,
    width: float,
    height: float,
    sides: Sequence[Align | None] | None = None,
    lines: Sequence[tuple[float, float, float, float]] = (),
) -> list[Placement]:
    """Choose a place for each name: the nearest that overlaps least with names and dots.

    Parameters
    ----------
    x, y : pixels of the dots from the left and the top, shape (n,)
    texts : the names, shape (n,)
    width, height : pixels of the plot; names keep inside where they can
    sides : the end of a name that must stand at its dot, or None where any may
    lines : (left, top, right, bottom) of lines across or upright, which names cross if they must

    Notes
    -----
    Greedy, in the order of the rows: with a few dozen names the best of all arrangements looks no
    better. Where no place is free, the one with the least overlap is taken.
    """
    dots = [_Box(a - _DOT, b - _DOT, a + _DOT, b + _DOT) for a, b in zip(x, y, strict=True)]
    plot = _Box(0, 0, width, height)
    drawn = [*dots, *(_Box(a - 1, b - 1, c + 1, d + 1) for a, b, c, d in lines)]
    taken: list[_Box] = []
    chosen: list[Placement] = []
    for i, text in enumerate(texts):
        side = sides[i] if sides is not None else None
        best: tuple[float, Placement, _Box] | None = None
        for dx, dy, align in _PLACES:
            if side is not None and align != side:
                continue
            box = _box(x[i] + dx, y[i] + dy, align, len(text) * _LETTER)
            cost = sum(map(box.shared, taken)) + sum(map(box.shared, drawn))
            if side is None:
                cost += _OUTSIDE * (box.area - box.shared(plot))
            if best is None or cost < best[0] - 1e-9:
                best = (cost, Placement(dx, dy, align), box)
            if best[0] == 0:
                break
        assert best is not None  # every side has its places
        taken.append(best[2])
        chosen.append(best[1])
    return chosen


def _box(x: float, y: float, align: Align, length: float) -> _Box:
    left = {"left": x, "center": x - length / 2, "right": x - length}[align]
    return _Box(left, y - _LINE / 2, left + length, y + _LINE / 2)
