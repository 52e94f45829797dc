"""The decision threshold: what accuracy and the gaps between groups would be at every other one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rise_core.evaluation import Evaluation

__all__ = ["STEPS", "threshold_sweep"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

STEPS = 101
"""Thresholds of a sweep: every hundredth, which a slider can reach too."""


@dataclass(frozen=True, eq=False)
class _Above:
    """Weight at or above each threshold, and of all, for the rows of one group and label."""

    above: FloatArray
    total: float

    @property
    def rate(self) -> FloatArray:
        """Share of the weight at or above; nan without rows."""
        if self.total == 0:
            return np.full_like(self.above, np.nan)
        return self.above / self.total


def threshold_sweep(ev: Evaluation, steps: int = STEPS) -> pd.DataFrame:
    """Decision indicators at evenly spaced thresholds from 0 to 1.

    Parameters
    ----------
    ev : the evaluation; its own threshold plays no part, its weights hold
    steps : number of thresholds

    Returns
    -------
    one row a threshold: threshold, accuracy, dp, md_decision, tpr_gap, fpr_gap, and for each group
    in order ``positive_0``, ``tpr_0``, ``fpr_0``, …; nan where a rate or ratio is undefined

    Notes
    -----
    Definitions are those of `Evaluation.indicators` at that threshold, ``ŷ = 1[p ≥ t]``; a gap is
    the largest minus the smallest rate of the groups. O(n log n): each group's scores are sorted
    once, then a threshold is a look-up. MD compares mean scores and has no threshold.
    """
    # As a person writes them: 0.29, not 0.29000000000000004.
    t = np.linspace(0, 1, steps).round(12)
    negative: dict[str, _Above] = {}
    positive: dict[str, _Above] = {}
    codes, y, p = ev.factor.codes, ev.predictions.y_true, ev.predictions.y_prob
    order = np.argsort(p, kind="stable")
    kind = (codes * 2 + y)[order]
    for label in ev.groups:
        code = ev.factor.labels.index(label)
        for value, into in ((0, negative), (1, positive)):
            rows = order[kind == code * 2 + value]
            into[label] = _above(
                p[rows], None if ev.weight_values is None else ev.weight_values[rows], t
            )
    called = {
        label: (negative[label].above + positive[label].above)
        / (negative[label].total + positive[label].total)
        for label in ev.groups
    }
    right = sum(positive[g].above + negative[g].total - negative[g].above for g in ev.groups)
    total = sum(positive[g].total + negative[g].total for g in ev.groups)
    tpr = {label: positive[label].rate for label in ev.groups}
    fpr = {label: negative[label].rate for label in ev.groups}
    table = pd.DataFrame(
        {
            "threshold": t,
            "accuracy": right / total,
            "dp": _ratio(ev, called),
            "md_decision": _spread(called),
            "tpr_gap": _spread(tpr),
            "fpr_gap": _spread(fpr),
        }
    )
    for place, label in enumerate(ev.groups):
        table[f"positive_{place}"] = called[label]
        table[f"tpr_{place}"] = tpr[label]
        table[f"fpr_{place}"] = fpr[label]
    return table


def _above(scores: FloatArray, weights: FloatArray | None, t: FloatArray) -> _Above:
    """Weight of ascending scores at or above each threshold."""
    first = np.searchsorted(scores, t, side="left")
    if weights is None:
        return _Above((scores.size - first).astype(np.float64), float(scores.size))
    below = np.concatenate([[0.0], np.cumsum(weights)])
    return _Above(below[-1] - below[first], float(below[-1]))


def _spread(rates: dict[str, FloatArray]) -> FloatArray:
    stacked = np.stack(list(rates.values()))
    if stacked.shape[0] < 2:
        return np.full(stacked.shape[1], np.nan)
    return np.asarray(stacked.max(axis=0) - stacked.min(axis=0))


def _ratio(ev: Evaluation, rates: dict[str, FloatArray]) -> FloatArray:
    """Demographic parity ratio, as in `rise_core.indicators`."""
    if len(rates) < 2:
        return np.full(next(iter(rates.values())).size, np.nan)
    if len(rates) == 2 and ev.sensitive is not None and ev.reference is not None:
        top, below = rates[ev.sensitive], rates[ev.reference]
    else:
        stacked = np.stack(list(rates.values()))
        top, below = stacked.min(axis=0), stacked.max(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(top / below)
