"""The engine and the method's definitions, read twice, give the same numbers on random rows."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import isnan

import numpy as np
import pytest

from rise_core import Evaluation, evaluate
from rise_core.curve import Curve
from tests.core import reference as by_definition

ROUNDING = 1e-9


def random_rows(seed: int, weighted: str) -> list[by_definition.Row]:
    """Some ten to forty rows; a coarse grid of scores makes many ties, a fine one hardly any."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 36))
    grid = int(rng.choice([8, 64, 1024]))
    groups = rng.choice(list("abcd")[: int(rng.choice([2, 2, 3, 4]))], size=n)
    weights = {
        "none": np.ones(n, dtype=int),
        "integer": rng.integers(1, 5, n),
        "uneven": rng.integers(1, 2000, n),
    }[weighted]
    rows = [
        by_definition.Row(int(y), Fraction(int(p), grid), str(g), Fraction(int(w), 4))
        for y, p, g, w in zip(
            rng.integers(0, 2, n), rng.integers(0, grid + 1, n), groups, weights, strict=True
        )
    ]
    # Every group with both labels, so that equal base rates are defined for all of them.
    both = [(y, name) for name in sorted(set(groups)) for y in (0, 1)]
    extra = [
        by_definition.Row(y, Fraction(int(rng.integers(0, grid + 1)), grid), str(g), Fraction(1, 4))
        for y, g in both
    ]
    return rows + extra


def by_engine(
    rows: list[by_definition.Row],
    *,
    threshold: float,
    residual: str,
    base_rates: str,
    weighted: str,
) -> Evaluation:
    return evaluate(
        [r.y for r in rows],
        [float(r.p) for r in rows],
        sensitive_features=[r.group for r in rows],
        sensitive="a",
        threshold=threshold,
        residual=residual,
        sample_weight=None if weighted == "none" else [float(r.weight) for r in rows],
        base_rates=base_rates,  # type: ignore[arg-type]
    )


def same(value: float, expected: Fraction | float | None) -> bool:
    if expected is None:
        return isnan(value)
    return value == pytest.approx(float(expected), abs=ROUNDING, rel=ROUNDING)


def assert_same_curve(ours: Curve, theirs: by_definition.ReferenceCurve) -> None:
    assert ours.residuals.tolist() == [float(step.d) for step in theirs.steps]
    assert same(ours.median_residual, theirs.median_residual)
    assert same(ours.median_position, theirs.median_position)
    assert same(ours.base_rate, theirs.base_rate)
    assert same(ours.positive_rate, theirs.positive_rate)
    assert same(ours.mean_score, theirs.mean_score)
    for side in ("left", "right"):
        knee, expected = ours.knee(side), getattr(theirs, side)
        assert (knee is None) == (expected is None), (side, ours.knee_reasons)
        if knee is not None:
            assert knee.index == expected.index
            assert knee.residual == float(expected.residual)
            assert same(knee.strength, expected.strength)
            assert knee.shape == expected.shape


@pytest.mark.parametrize("residual", ["signed_error", "decision_gap"])
@pytest.mark.parametrize("base_rates", ["observed", "equal"])
@pytest.mark.parametrize("weighted", ["none", "integer", "uneven"])
@pytest.mark.parametrize("block", range(2))
def test_every_number_is_the_one_of_the_definition(
    residual: str, base_rates: str, weighted: str, block: int
) -> None:
    for seed, threshold in product(range(10 * block, 10 * block + 10), (0.5, 0.25)):
        rows = random_rows(seed, weighted)
        ours = by_engine(
            rows, threshold=threshold, residual=residual, base_rates=base_rates, weighted=weighted
        )
        theirs = by_definition.evaluate(
            rows,
            sensitive="a",
            threshold=Fraction(threshold),
            kind=residual,
            base_rates=base_rates,
        )
        for name, value in ours.indicators:
            expected = getattr(theirs, name)
            assert same(value, expected), (seed, threshold, name, value, expected)
            assert isnan(value) == (name in ours.undefined)
        assert_same_curve(ours.overall, theirs.overall)
        assert set(ours.groups) == set(theirs.groups)
        for label, curve in ours.groups.items():
            assert_same_curve(curve, theirs.groups[label])


@pytest.mark.parametrize("weighted", ["none", "uneven"])
@pytest.mark.parametrize("seed", range(25))
def test_segments_are_those_of_the_definition(weighted: str, seed: int) -> None:
    rows = random_rows(seed, weighted)
    ours = by_engine(
        rows, threshold=0.5, residual="signed_error", base_rates="observed", weighted=weighted
    )
    theirs = by_definition.evaluate(rows, sensitive="a")
    pooled = theirs.overall.steps
    knees = [k for k in (theirs.overall.left, theirs.overall.right) if k is not None]
    cuts = [
        Fraction(0),
        *(by_definition.percentile(k.residual, pooled) for k in knees),
        Fraction(1),
    ]
    cuts = [max(cut, Fraction(0)) for cut in cuts]
    assert len(ours.segments) == len(cuts) - 1
    for segment, q0, q1 in zip(ours.segments, cuts[:-1], cuts[1:], strict=True):
        group, other = (theirs.groups[label].steps for label in segment.pair)
        assert same(segment.q0, q0)
        assert same(segment.q1, q1)
        area = by_definition.area(group, other, q0, q1)
        assert same(segment.area, area)
        assert same(segment.share, area / theirs.w1 if theirs.w1 else None)
        if q1 == q0:
            assert isnan(segment.mean_gap)
            continue
        mean_gap = by_definition.signed_area(group, other, q0, q1) / (q1 - q0)
        assert same(segment.mean_gap, mean_gap)
        rises = [
            by_definition.quantile(c, q1) - by_definition.quantile(c, q0) for c in (group, other)
        ]
        assert same(segment.slope_gap, (rises[0] - rises[1]) / (q1 - q0))
