"""The indicators: F_mean, F_shift, F_acc and their companions Acc, DP, MD."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from math import inf, nan

from rise_core.curve import Curve
from rise_core.knees import SIDES, Side

__all__ = [
    "Displacement",
    "Indicators",
    "demographic_parity_ratio",
    "displacements",
    "knee_indicators",
    "mean_fairness",
    "spread",
]


@dataclass(frozen=True)
class Indicators:
    """All indicators of one evaluation; ``nan`` where undefined.

    Attributes
    ----------
    accuracy : share of rows decided rightly, [0, 1]
    dp : demographic parity ratio ``P(ŷ=1 | s) / P(ŷ=1 | n)``, (0, ∞), 1 is parity
    md : absolute gap of the mean scores, [0, 1]
    md_decision : the same of the decisions, [0, 1]
    f_mean : median alignment ``1 − |m̃_0 − m̃_1| / 2``; for two groups in [¾, 1],
        with tied residuals or weights in [⅝, 1]
    f_shift : displacement of the knees along the ranks, relative to the pooled knee
    f_acc : displacement of the knees' residuals, relative to the pooled knee
    w1 : area between the group curves, residual units
    """

    accuracy: float
    dp: float
    md: float
    md_decision: float
    f_mean: float
    f_shift: float
    f_acc: float
    w1: float

    def __iter__(self) -> Iterator[tuple[str, float]]:
        """Yield (name, value) pairs."""
        return ((f.name, getattr(self, f.name)) for f in fields(self))


@dataclass(frozen=True)
class Displacement:
    """How far two groups' knees lie apart on one side.

    Attributes
    ----------
    side : "left" or "right"
    group, reference : the two groups; differences are group minus reference
    delta_h, delta_d : difference of the knees' global percentiles and of their residuals
    h, v : the same over the pooled knee's percentile and residual; nan where that is 0
    """

    side: Side
    group: str
    reference: str
    delta_h: float
    delta_d: float
    h: float
    v: float


def spread(values: Sequence[float]) -> float:
    """Largest minus smallest; for two groups the absolute difference."""
    return max(values) - min(values)


def mean_fairness(positions: Sequence[float]) -> float:
    """``F_mean = 1 − (max m̄_a − min m̄_a) / 2`` from the groups' median positions.

    The common re-centring by the pooled median position drops out of the difference.
    """
    return 1 - spread(positions) / 2


def demographic_parity_ratio(
    rates: Mapping[str, float], sensitive: str | None, reference: str | None
) -> tuple[float, str | None]:
    """Positive-rate ratio and, where it is undefined, the reason.

    Two groups: sensitive over reference, ``inf`` when the reference's rate alone is 0. More:
    smallest rate over largest.
    """
    if not any(rates.values()):
        return nan, "no group has a positive decision (0 / 0)"
    if len(rates) == 2 and sensitive is not None and reference is not None:
        below = rates[reference]
        return (rates[sensitive] / below if below else inf), None
    return min(rates.values()) / max(rates.values()), None


def displacements(overall: Curve, groups: Mapping[str, Curve]) -> list[Displacement]:
    """Displacements of every pair of groups on both sides, where both have a knee."""
    found = []
    for side in SIDES:
        pooled = overall.knee(side)
        for (reference, b), (group, a) in combinations(groups.items(), 2):
            knee_a, knee_b = a.knee(side), b.knee(side)
            if knee_a is None or knee_b is None:
                continue
            delta_h = knee_a.percentile - knee_b.percentile
            delta_d = knee_a.residual - knee_b.residual
            h = delta_h / pooled.percentile if pooled and pooled.percentile else nan
            v = delta_d / pooled.residual if pooled and pooled.residual else nan
            found.append(Displacement(side, group, reference, delta_h, delta_d, h, v))
    return found


def knee_indicators(
    overall: Curve, groups: Mapping[str, Curve]
) -> tuple[float, float, dict[str, str]]:
    """F_shift and F_acc, and the reason of each that is undefined.

    Notes
    -----
    ``F_shift = ½|H_ℓ| + ½|H_r|`` with ``H = (h¹ − h⁰) / h_g`` of global percentiles,
    ``F_acc = ½|V_ℓ| + ½|V_r|`` with ``V = (d¹ − d⁰) / d_g`` of residuals; with more than two
    groups the difference is largest minus smallest. shared definition: method, "F_shift, F_acc".
    """
    undefined: dict[str, str] = {}
    shift = acc = 0.0
    for side in SIDES:
        missing = _missing_knee(side, overall, groups)
        pooled = overall.knee(side)
        if missing is not None or pooled is None:
            undefined.setdefault("f_shift", missing or "")
            undefined.setdefault("f_acc", missing or "")
            continue
        knees = [knee for curve in groups.values() if (knee := curve.knee(side))]
        if pooled.percentile:
            shift += spread([k.percentile for k in knees]) / abs(pooled.percentile) / 2
        else:
            undefined.setdefault("f_shift", f"the {side} knee of the pooled curve lies at rank 0")
        if pooled.residual:
            acc += spread([k.residual for k in knees]) / abs(pooled.residual) / 2
        else:
            undefined.setdefault("f_acc", f"the {side} knee of the pooled curve lies at residual 0")
    return (
        nan if "f_shift" in undefined else shift,
        nan if "f_acc" in undefined else acc,
        undefined,
    )


def _missing_knee(side: Side, overall: Curve, groups: Mapping[str, Curve]) -> str | None:
    curves = [("the pooled curve", overall)]
    curves += [(f"group {label!r}", curve) for label, curve in groups.items()]
    for name, curve in curves:
        if curve.knee(side) is None:
            return f"{name} has no {side} knee: {curve.knee_reasons[side]}"
    return None
