"""From an evaluation to the tidy tables that the layers of a chart draw.

Each function gives one table with fixed columns and is the whole of what its layer shows, so a
picture can be tested by its numbers. Nothing is estimated here: values come from the evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from rise_core.charts.thinning import MAX_POINTS, STAIRS, curve_points, ranks_of
from rise_core.curve import Curve

if TYPE_CHECKING:
    from rise_core.evaluation import Evaluation
    from rise_core.mix import Piece

__all__ = [
    "KNEE_SIDES",
    "Curves",
    "box_table",
    "curve_table",
    "curves_of",
    "gap_table",
    "hover_table",
    "knee_table",
    "median_table",
    "piece_curve_table",
    "piece_table",
    "segment_table",
    "share_table",
]

View = Literal["groups", "global"]
KNEE_SIDES = ("left knee", "right knee")
# All curves of a chart together; with more curves each gets fewer points.
TOTAL_POINTS = 3_600
HOVER_RANKS = 100
GAP_RANKS = 240
_DIGITS = 6


@dataclass(frozen=True)
class Curves:
    """The curves of one chart: what they are coloured by, the groups, and all rows.

    Attributes
    ----------
    by : name of the column that tells the curves apart
    groups : curves in legend order
    overall : the curve of all rows
    pooled : the label that stands for all rows
    """

    by: str
    groups: Mapping[str, Curve]
    overall: Curve
    pooled: str

    @property
    def labels(self) -> tuple[str, ...]:
        """Group labels in legend order."""
        return tuple(self.groups)

    @property
    def all(self) -> dict[str, Curve]:
        """Every curve, the pooled one last."""
        return {**self.groups, self.pooled: self.overall}


def curves_of(ev: Evaluation, color_by: str | None, pooled: str = "all rows") -> Curves:
    """Curves of an evaluation by its own groups, or by another column."""
    own = color_by is None or color_by == ev.feature
    groups = ev.groups if own else ev.curves_by(str(color_by))
    return Curves(ev.feature if own else str(color_by), groups, ev.overall, pooled)


def curve_table(curves: Curves, total: int = TOTAL_POINTS) -> pd.DataFrame:
    """Points of every curve: ``curve``, ``rank``, ``residual``."""
    share = min(1.0, total / (len(curves.all) * MAX_POINTS))
    even, per_end = max(int(540 * share), 60), max(int(200 * share), 20)
    parts = [
        curve_points(curve, even=even, per_end=per_end).assign(curve=label)
        for label, curve in curves.all.items()
    ]
    return _rounded(pd.concat(parts, ignore_index=True)[["curve", "rank", "residual"]])


def knee_table(curves: Curves, view: View) -> pd.DataFrame:
    """Knees that exist: ``curve``, ``side``, ``rank``, ``residual`` and what the hover tells.

    ``rank`` is the curve's own percentile in the group view and the global one in the other;
    ``label`` is what a screen reader says.
    """
    rows = []
    for label, curve in curves.all.items():
        for side, knee in zip(KNEE_SIDES, (curve.left_knee, curve.right_knee), strict=True):
            if knee is None:
                continue
            rows.append(
                {
                    "curve": label,
                    "side": side,
                    "rank": knee.own_percentile if view == "groups" else knee.percentile,
                    "residual": knee.residual,
                    "percentile": knee.percentile,
                    "own_percentile": knee.own_percentile,
                    "strength": knee.strength,
                    "shape": knee.shape,
                    "label": f"{label}, {side}: residual {knee.residual:+.3f}, "
                    f"{knee.percentile:.1%} of all rows lie below",
                }
            )
    columns = (
        *("curve", "side", "rank", "residual"),
        *("percentile", "own_percentile", "strength", "shape", "label"),
    )
    return pd.DataFrame(rows, columns=list(columns))


def median_table(curves: Curves) -> pd.DataFrame:
    """Medians of the groups: ``curve``, ``residual``, ``position`` (global percentile)."""
    return pd.DataFrame(
        {
            "curve": list(curves.labels),
            "residual": [c.median_residual for c in curves.groups.values()],
            "position": [c.median_position for c in curves.groups.values()],
        }
    ).dropna()


def box_table(curves: Curves, view: View) -> pd.DataFrame:
    """Shift boxes, left knee to right knee: ``curve``, ``x0``, ``x1``, ``y0``, ``y1``."""
    rows = []
    for label, curve in curves.groups.items():
        left, right = curve.left_knee, curve.right_knee
        if left is None or right is None:
            continue
        own = view == "groups"
        rows.append(
            {
                "curve": label,
                "x0": left.own_percentile if own else left.percentile,
                "x1": right.own_percentile if own else right.percentile,
                "y0": left.residual,
                "y1": right.residual,
            }
        )
    return pd.DataFrame(rows, columns=["curve", "x0", "x1", "y0", "y1"])


def segment_table(ev: Evaluation, *, shares: bool = True) -> pd.DataFrame:
    """Segments between the pooled knees: ``name``, ``q0``, ``q1``, ``share`` (of W1, or nan)."""
    return pd.DataFrame(
        [
            {"name": s.name, "q0": s.q0, "q1": s.q1, "share": s.share if shares else math.nan}
            for s in ev.segments
            if s.q1 > s.q0
        ],
        columns=["name", "q0", "q1", "share"],
    )


def gap_table(curves: Curves, ranks: int = GAP_RANKS) -> pd.DataFrame:
    """Area between exactly two curves: ``rank``, ``low``, ``high``, ``first``, ``second``.

    ``first`` and ``second`` are the two residuals, ``low`` and ``high`` the same in order; empty
    unless there are two groups.
    """
    columns = ["rank", "first", "second", "low", "high"]
    if len(curves.groups) != 2:
        return pd.DataFrame(columns=columns)
    pair = list(curves.groups.values())
    if max(c.n for c in pair) <= STAIRS:
        edges = np.unique(np.concatenate([ranks_of(c, np.arange(c.n + 1)) for c in pair]))
        rank = np.column_stack([edges[:-1], edges[1:]]).ravel()
        first, second = (np.repeat(c.at(edges[1:]), 2) for c in pair)
    else:
        ends = np.geomspace(1e-4, 0.05, 30)
        rank = np.unique(np.concatenate([np.linspace(0, 1, ranks), ends, 1 - ends]))
        first, second = (c.at(rank) for c in pair)
    return _rounded(
        pd.DataFrame(
            {
                "rank": rank,
                "first": first,
                "second": second,
                "low": np.minimum(first, second),
                "high": np.maximum(first, second),
            }
        )
    )


def hover_table(curves: Curves, ranks: int = HOVER_RANKS) -> pd.DataFrame:
    """One row a rank with the residual of every curve: ``rank``, ``q0``, ``q1``, ``c0``, ``c1``, ….

    ``c0`` and on are the curves in the order of ``curves.all``; labels are kept out of the column
    names because Vega reads dots and brackets in them.
    """
    edges = np.linspace(0, 1, ranks + 1)
    middle = (edges[:-1] + edges[1:]) / 2
    table = pd.DataFrame({"rank": middle, "q0": edges[:-1], "q1": edges[1:]})
    for place, curve in enumerate(curves.all.values()):
        table[f"c{place}"] = curve.at(middle)
    return _rounded(table)


def piece_table(pieces: Sequence[Piece], labels: Sequence[str]) -> pd.DataFrame:
    """Pieces of the global curve, one row each.

    Columns ``q0``, ``q1``, ``rank`` (middle), ``curve`` (the group over-represented) and the
    hover's texts: ``ranks``, ``residuals``, ``verdict``, and ``t0``, ``t1``, … a group in order.
    """
    rows = []
    for piece in pieces:
        doubt = "" if piece.significant else ", could be chance"
        row: dict[str, object] = {
            "q0": piece.q0,
            "q1": piece.q1,
            "rank": (piece.q0 + piece.q1) / 2,
            "ranks": f"{piece.q0:.1%} to {piece.q1:.1%}",
            "residuals": f"{piece.d0:+.3f} to {piece.d1:+.3f}".replace("-", "−"),
            "curve": piece.label,
            "verdict": f"{piece.label}, {piece.excess:.2f}× its overall share{doubt}",
        }
        for place, label in enumerate(labels):
            row[f"t{place}"] = f"{piece.counts[label]:,} rows, {piece.shares[label]:.1%}"
        rows.append(row)
    return _rounded(pd.DataFrame(rows))


def piece_curve_table(overall: Curve, pieces: Sequence[Piece]) -> pd.DataFrame:
    """Points of the global curve cut into pieces.

    Columns ``piece``, ``curve``, ``significant``, ``rank``, ``residual``. Neighbours share the
    point at their cut, so that the curve has no holes.
    """
    cuts = [piece.q1 for piece in pieces[:-1]]
    points = curve_points(overall, keep=cuts)
    rank, residual = points["rank"].to_numpy(), points["residual"].to_numpy()
    parts = []
    for number, piece in enumerate(pieces):
        # One point past either end: the line runs on to where the next piece starts.
        first = max(int(np.searchsorted(rank, piece.q0 - 1e-9, "left")), 0)
        last = min(int(np.searchsorted(rank, piece.q1 + 1e-9, "right")), rank.size)
        first = first if first < last else max(last - 1, 0)
        if number and rank[first] > piece.q0 + 1e-9:
            first -= 1
        parts.append(
            pd.DataFrame(
                {
                    "piece": number,
                    "curve": piece.label,
                    "significant": bool(piece.significant),
                    "rank": rank[first:last],
                    "residual": residual[first:last],
                }
            )
        )
    return _rounded(pd.concat(parts, ignore_index=True))


def share_table(pieces: Sequence[Piece], curves: Curves) -> pd.DataFrame:
    """Share of each group along the curve: ``curve``, ``q0``, ``q1``, ``share``, ``overall``."""
    labels, size = curves.labels, len(pieces)
    table = pd.DataFrame(
        {
            "curve": np.repeat(np.array(labels, dtype=object), size),
            "q0": np.tile([piece.q0 for piece in pieces], len(labels)),
            "q1": np.tile([piece.q1 for piece in pieces], len(labels)),
            "share": [piece.shares[label] for label in labels for piece in pieces],
            "overall": np.repeat([curve.share for curve in curves.groups.values()], size),
        }
    )
    return _rounded(table)


def _rounded(table: pd.DataFrame) -> pd.DataFrame:
    """A millionth is finer than any screen; the rest would be bytes in a file."""
    return table.round(_DIGITS)
