"""The method once more, by definition: plain loops over exact fractions.

Written from the method alone, to compare the engine with. It knows no array, no tolerance and no
short cut; what it costs does not matter (rows × rows). Scores and weights should be dyadic
(a multiple of 1/1024, say), so that the engine's floats hold the same numbers and equal residuals
are equal in both.

The one thing that the method leaves open: in which order rows of equal residual and unequal
weight stand. Here, as in the engine, the lighter one comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, permutations

STRAIGHT = Fraction(1, 10**9)


@dataclass(frozen=True)
class Row:
    y: int
    p: Fraction
    group: str
    weight: Fraction

    def decided(self, threshold: Fraction) -> int:
        return 1 if self.p >= threshold else 0


@dataclass(frozen=True)
class Step:
    """One row of a sorted curve."""

    d: Fraction
    weight: Fraction


@dataclass(frozen=True)
class ReferenceKnee:
    index: int
    residual: Fraction
    strength: Fraction
    shape: str


@dataclass(frozen=True)
class ReferenceCurve:
    steps: list[Step]
    median_residual: Fraction
    median_position: Fraction
    left: ReferenceKnee | None
    right: ReferenceKnee | None
    positive_rate: Fraction
    base_rate: Fraction
    mean_score: Fraction


@dataclass(frozen=True)
class ReferenceResult:
    accuracy: Fraction
    dp: Fraction | float | None
    md: Fraction
    md_decision: Fraction
    f_mean: Fraction
    f_shift: Fraction | None
    f_acc: Fraction | None
    w1: Fraction
    overall: ReferenceCurve
    groups: dict[str, ReferenceCurve]


def weigh_to_equal_base_rates(rows: list[Row]) -> list[Row]:
    """Multiply every weight by P(y) / P(y | a)."""

    def weight_of(chosen: list[Row]) -> Fraction:
        return sum((r.weight for r in chosen), Fraction(0))

    weighed = []
    for row in rows:
        same_group = [r for r in rows if r.group == row.group]
        pooled_rate = weight_of([r for r in rows if r.y == row.y]) / weight_of(rows)
        group_rate = weight_of([r for r in same_group if r.y == row.y]) / weight_of(same_group)
        weighed.append(Row(row.y, row.p, row.group, row.weight * pooled_rate / group_rate))
    return weighed


def residual(row: Row, kind: str, threshold: Fraction) -> Fraction:
    if kind == "signed_error":
        return row.p - row.y
    return row.decided(threshold) - row.p


def sort(rows: list[Row], kind: str, threshold: Fraction) -> list[Step]:
    steps = [Step(residual(r, kind, threshold), r.weight) for r in rows]
    return sorted(steps, key=lambda s: (s.d, s.weight))


def percentile(value: Fraction, pooled: list[Step]) -> Fraction:
    """h(v) = (W_<v + W_≤v − W/n) / (2W)."""
    below = sum((s.weight for s in pooled if s.d < value), Fraction(0))
    upto = sum((s.weight for s in pooled if s.d <= value), Fraction(0))
    total = sum((s.weight for s in pooled), Fraction(0))
    return (below + upto - total / len(pooled)) / (2 * total)


def middle_rows(steps: list[Step]) -> tuple[int, int]:
    """First index with C_i > W/2; and the one before it where C_{mid−1} = W/2 exactly."""
    half = sum((s.weight for s in steps), Fraction(0)) / 2
    so_far = Fraction(0)
    for mid, step in enumerate(steps):
        before, so_far = so_far, so_far + step.weight
        if so_far > half:
            return (mid - 1 if before == half else mid), mid
    raise AssertionError("half of a positive weight is always passed")


def knee(steps: list[Step], first: int, last: int) -> ReferenceKnee | None:
    if last - first + 1 < 3:
        return None
    if steps[first].d == steps[last].d:
        return None
    x, cumulated = [], Fraction(0)
    for step in steps:
        cumulated += step.weight
        x.append(cumulated - step.weight / 2)
    best = first
    bends = {}
    for i in range(first, last + 1):
        rise = (steps[i].d - steps[first].d) / (steps[last].d - steps[first].d)
        run = (x[i] - x[first]) / (x[last] - x[first])
        bends[i] = rise - run
        if abs(bends[i]) > abs(bends[best]):
            best = i
    if abs(bends[best]) < STRAIGHT:
        return None
    shape = "concave" if bends[best] > 0 else "convex"
    return ReferenceKnee(best, steps[best].d, abs(bends[best]), shape)


def curve(rows: list[Row], pooled: list[Step], kind: str, threshold: Fraction) -> ReferenceCurve:
    steps = sort(rows, kind, threshold)
    low, mid = middle_rows(steps)
    total = sum((r.weight for r in rows), Fraction(0))

    def rate(value: Sequence[Fraction | int]) -> Fraction:
        return sum((r.weight * v for r, v in zip(rows, value, strict=True)), Fraction(0)) / total

    return ReferenceCurve(
        steps=steps,
        median_residual=(steps[low].d + steps[mid].d) / 2,
        median_position=(percentile(steps[low].d, pooled) + percentile(steps[mid].d, pooled)) / 2,
        left=knee(steps, 0, mid),
        right=knee(steps, mid, len(steps) - 1),
        positive_rate=rate([r.decided(threshold) for r in rows]),
        base_rate=rate([r.y for r in rows]),
        mean_score=rate([r.p for r in rows]),
    )


def quantile_steps(steps: list[Step]) -> list[tuple[Fraction, Fraction]]:
    """(rank where a step ends, its residual), ranks from 0 to 1."""
    total = sum((s.weight for s in steps), Fraction(0))
    ends, so_far = [], Fraction(0)
    for step in steps:
        so_far += step.weight
        ends.append((so_far / total, step.d))
    return ends


def quantile(steps: list[Step], q: Fraction) -> Fraction:
    """Q(q): the first residual whose rank reaches q."""
    for end, d in quantile_steps(steps):
        if end >= q:
            return d
    return steps[-1].d


def area(
    a: list[Step], b: list[Step], q0: Fraction = Fraction(0), q1: Fraction = Fraction(1)
) -> Fraction:
    """∫ |Q_a − Q_b| dq between two ranks, step by step."""
    return sum((width * abs(gap) for width, gap in gaps(a, b, q0, q1)), Fraction(0))


def signed_area(a: list[Step], b: list[Step], q0: Fraction, q1: Fraction) -> Fraction:
    return sum((width * gap for width, gap in gaps(a, b, q0, q1)), Fraction(0))


def gaps(
    a: list[Step], b: list[Step], q0: Fraction, q1: Fraction
) -> list[tuple[Fraction, Fraction]]:
    """(width, Q_a − Q_b) of every stretch on which both curves are flat."""
    ranks = {end for steps in (a, b) for end, _ in quantile_steps(steps)}
    grid = sorted({q0, q1, *(r for r in ranks if q0 < r < q1)})
    return [(hi - lo, quantile(a, hi) - quantile(b, hi)) for lo, hi in pairwise(grid)]


def spread(values: list[Fraction]) -> Fraction:
    return max(values) - min(values)


def evaluate(
    rows: list[Row],
    *,
    sensitive: str | None = None,
    threshold: Fraction = Fraction(1, 2),
    kind: str = "signed_error",
    base_rates: str = "observed",
) -> ReferenceResult:
    """Everything of the method for two groups or more; ``sensitive`` matters for two."""
    if base_rates == "equal":
        rows = weigh_to_equal_base_rates(rows)
    pooled = sort(rows, kind, threshold)
    overall = curve(rows, pooled, kind, threshold)
    names = sorted({r.group for r in rows})
    groups = {
        name: curve([r for r in rows if r.group == name], pooled, kind, threshold) for name in names
    }
    total = sum((r.weight for r in rows), Fraction(0))
    right = sum((r.weight for r in rows if r.decided(threshold) == r.y), Fraction(0))
    rates = {name: c.positive_rate for name, c in groups.items()}
    f_shift, f_acc = knee_indicators(overall, groups, pooled)
    return ReferenceResult(
        accuracy=right / total,
        dp=parity_ratio(rates, sensitive),
        md=spread([c.mean_score for c in groups.values()]),
        md_decision=spread(list(rates.values())),
        f_mean=1 - spread([c.median_position for c in groups.values()]) / 2,
        f_shift=f_shift,
        f_acc=f_acc,
        w1=max(area(a.steps, b.steps) for a, b in permutations(groups.values(), 2)),
        overall=overall,
        groups=groups,
    )


def parity_ratio(rates: dict[str, Fraction], sensitive: str | None) -> Fraction | float | None:
    if not any(rates.values()):
        return None
    if len(rates) > 2:
        return min(rates.values()) / max(rates.values())
    (reference,) = (rate for name, rate in rates.items() if name != sensitive)
    return rates[str(sensitive)] / reference if reference else float("inf")


def knee_indicators(
    overall: ReferenceCurve, groups: dict[str, ReferenceCurve], pooled: list[Step]
) -> tuple[Fraction | None, Fraction | None]:
    shift: Fraction | None = Fraction(0)
    acc: Fraction | None = Fraction(0)
    for side in ("left", "right"):
        centre = getattr(overall, side)
        knees = [getattr(c, side) for c in groups.values()]
        if centre is None or None in knees:
            return None, None
        h = percentile(centre.residual, pooled)
        apart = spread([percentile(k.residual, pooled) for k in knees])
        shift = None if shift is None or h == 0 else shift + apart / abs(h) / 2
        apart = spread([k.residual for k in knees])
        d = centre.residual
        acc = None if acc is None or d == 0 else acc + apart / abs(d) / 2
    return shift, acc
