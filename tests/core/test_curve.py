"""Ranks, percentiles, quantiles and medians of sorted residuals, with weights and without."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from rise_core import evaluate
from rise_core.curve import PooledSample, SortedSample

Array = NDArray[np.float64]


def sample(values: list[float], weights: list[float] | None = None) -> SortedSample:
    return SortedSample.from_values(
        np.array(values, dtype=float), None if weights is None else np.array(weights, dtype=float)
    )


def naive_percentile(value: float, values: Array, weights: Array) -> float:
    """h(v) = (W_<v + W_≤v − W/n) / (2W), one row at a time."""
    below = sum(w for d, w in zip(values, weights, strict=True) if d < value)
    upto = sum(w for d, w in zip(values, weights, strict=True) if d <= value)
    total = sum(weights)
    return float((below + upto - total / len(values)) / (2 * total))


def naive_quantile(q: float, values: Array, weights: Array) -> float:
    total, so_far = weights.sum(), 0.0
    for d, w in sorted(zip(values, weights, strict=True)):
        so_far += w
        if so_far >= q * total - 1e-12:
            return float(d)
    return float(values.max())


def test_hand_case_with_ties() -> None:
    # 0-based ranks 0 | 1 2 3 share 2 | 4, over 5.
    curve = sample([0.2, 0.1, 0.2, 0.9, 0.2])
    assert curve.values.tolist() == [0.1, 0.2, 0.2, 0.2, 0.9]
    assert curve.percentile(np.array([0.1, 0.2, 0.9])).tolist() == [0, 2 / 5, 4 / 5]
    # Below all, between two, above all: (0 + 0 − 1)/10, (4 + 4 − 1)/10, (5 + 5 − 1)/10.
    assert curve.percentile(np.array([0.0, 0.5, 1.0])).tolist() == pytest.approx([-0.1, 0.7, 0.9])
    assert isinstance(curve.percentile(0.2), float)


def test_hand_case_with_weights() -> None:
    # Weights 1 | 2 3 | 4 of W = 10, n = 4, so W/n = 2.5.
    curve = sample([0.5, 0.1, 0.5, 0.9], [3, 1, 2, 4])
    assert curve.percentile(0.1) == pytest.approx((0 + 1 - 2.5) / 20)
    assert curve.percentile(0.5) == pytest.approx((1 + 6 - 2.5) / 20)
    assert curve.percentile(0.9) == pytest.approx((6 + 10 - 2.5) / 20)
    # C = 1, 3, 6, 10: first above 5 is index 2.
    assert curve.mid == 2
    assert curve.median == 0.5


def test_a_median_between_two_rows() -> None:
    assert sample([4, 1, 2, 8]).median == 3
    assert sample([4, 1, 2]).median == 2
    assert sample([7]).median == 7
    # C = 1, 3, 4, 6: half of 6 is reached exactly at the second row, so 2 and 4 are averaged.
    assert sample([1, 2, 4, 8], [1, 2, 1, 2]).median == 3
    # C = 1, 4, 5, 7: half is passed inside the second row.
    assert sample([1, 2, 4, 8], [1, 3, 1, 2]).median == 2
    # One row holds more than half of the weight.
    assert sample([1, 2, 4], [5, 1, 1]).mid == 0
    assert sample([1, 2, 4], [1, 1, 5]).median == 4


def test_half_of_the_weight_is_recognised_in_spite_of_rounding() -> None:
    # 0.1 + 0.2 is a hair above 0.3: the sums are the same all the same.
    curve = sample([1, 2, 4, 8], [0.1, 0.2, 0.25, 0.05])
    assert curve.middle == (1, 2)
    assert curve.median == 3


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("grid", [5, 10_000])
def test_against_one_row_at_a_time(seed: int, grid: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    values = rng.integers(-grid, grid, n) / grid
    weights = rng.uniform(0.01, 3, n)
    asked = np.concatenate([values, rng.uniform(-1.1, 1.1, 10)])
    for given, used in ((None, np.ones(n)), (weights, weights)):
        curve = SortedSample.from_values(values.copy(), None if given is None else given.copy())
        expected = [naive_percentile(v, values, used) for v in asked]
        assert curve.percentile(asked) == pytest.approx(expected, abs=1e-12)
        ranks = rng.uniform(0, 1, 20)
        assert curve.at(ranks).tolist() == [naive_quantile(q, values, used) for q in ranks]
        assert curve.total == pytest.approx(used.sum())


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_ranks_that_are_whole_rows(n: int) -> None:
    curve = sample(list(range(n)))
    for i in range(n):
        assert curve.at((i + 1) / n) == i
        assert curve.at((i + 0.5) / n) == i
    assert (curve.at(0.0), curve.at(1.0)) == (0, n - 1)
    # 0.07 × 100 is 7.000000000000001 in floats; rank .07 of 100 rows is still the 7th row.
    assert sample(list(range(100))).at(0.07) == 6


@pytest.mark.parametrize("weighted", [False, True])
def test_the_integral_of_the_quantile_function(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    values, weights = rng.normal(size=37), rng.uniform(0.1, 2, 37)
    curve = SortedSample.from_values(values.copy(), weights.copy() if weighted else None)
    assert curve.integral(0, 1) == pytest.approx(
        np.average(values, weights=weights if weighted else None)
    )
    fine = (np.arange(200_000) + 0.5) / 200_000
    for q0, q1 in ((0, 0.3), (0.31, 0.32), (0.5, 1), (1 / 37, 2 / 37)):
        inside = fine[(fine > q0) & (fine < q1)]
        assert curve.integral(q0, q1) == pytest.approx(
            curve.at(inside).mean() * (q1 - q0), abs=1e-4
        )


@pytest.mark.parametrize("weight", [1e-9, 1 / 3, 0.1, 1.0, 7.3, 1e12])
@pytest.mark.parametrize("base_rates", ["observed", "equal"])
def test_equal_weights_of_any_size_are_no_weights_to_the_last_bit(
    weight: float, base_rates: str
) -> None:
    rng = np.random.default_rng(3)
    n = 101
    y, p, group = rng.integers(0, 2, n), rng.integers(0, 50, n) / 50, rng.choice(["a", "b", "c"], n)
    kinds = [
        evaluate(y, p, sensitive_features=group, sample_weight=w, base_rates=base_rates)  # type: ignore[arg-type]
        for w in (None, np.full(n, weight))
    ]
    if base_rates == "observed":
        assert kinds[0].indicators == kinds[1].indicators
        assert kinds[0].to_dict() == kinds[1].to_dict()
        assert kinds[1].weight_values is None
    else:  # weights by group and label, times a constant: the same but for rounding
        for (name, none), (_, equal) in zip(*(k.indicators for k in kinds), strict=True):
            assert none == pytest.approx(equal, rel=1e-9), name


@pytest.mark.parametrize("seed", range(10))
def test_whole_weights_are_repeated_rows(seed: int) -> None:
    """Medians, quantiles, integrals, W1 and rates agree exactly, percentiles but for W/n.

    The percentile of a row holds half a row's share less: W/n with weights, 1 with repeated rows.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 40))
    values, weights = rng.integers(-20, 20, n) / 20, rng.integers(1, 6, n)
    weighted = SortedSample.from_values(values.copy(), weights.astype(float))
    repeated = SortedSample.from_values(np.repeat(values, weights))
    total = weights.sum()
    assert weighted.total == repeated.total == total
    assert weighted.median == repeated.median
    ranks = np.arange(1, 200) / 200
    assert weighted.at(ranks).tolist() == repeated.at(ranks).tolist()
    assert weighted.integral(0.2, 0.7) == pytest.approx(repeated.integral(0.2, 0.7), abs=1e-12)
    shift = weighted.percentile(values) - repeated.percentile(values)
    assert shift == pytest.approx(np.full(n, (1 - total / n) / (2 * total)), abs=1e-12)


def test_whole_weights_are_repeated_rows_in_an_evaluation() -> None:
    rng = np.random.default_rng(5)
    n = 60
    y, p = rng.integers(0, 2, n), rng.integers(0, 40, n) / 40
    group, weight = rng.choice(["a", "b"], n), rng.integers(1, 5, n)
    weighted = evaluate(y, p, sensitive_features=group, sample_weight=weight, sensitive="a")
    repeated = evaluate(
        np.repeat(y, weight),
        np.repeat(p, weight),
        sensitive_features=np.repeat(group, weight),
        sensitive="a",
    )
    for name in ("accuracy", "dp", "md", "md_decision", "w1", "f_mean"):
        one, other = getattr(weighted.indicators, name), getattr(repeated.indicators, name)
        assert one == pytest.approx(other, abs=1e-12), name
    for label, curve in weighted.groups.items():
        other_curve = repeated.groups[label]
        assert curve.median_residual == other_curve.median_residual
        assert curve.share == pytest.approx(other_curve.share)


def test_a_very_light_row_can_lie_below_percentile_0() -> None:
    """A consequence of W/n in the definition: the row weighs less than the average."""
    curve = sample([0.1, 0.2, 0.3], [0.01, 1, 1])
    assert curve.percentile(0.1) == pytest.approx((0.01 - 2.01 / 3) / (2 * 2.01))
    assert -1 / 6 < curve.percentile(0.1) < 0
    # It is in the widest band there is nevertheless.
    ev = evaluate(
        [0, 0, 0], [0.1, 0.2, 0.3], sensitive_features=list("aab"), sample_weight=[0.01, 1, 1]
    )
    assert ev.band(0, 1).n == 3


def test_the_order_of_tied_rows_with_weights_does_not_show() -> None:
    values = np.array([0.0, 0.5, 0.5, 0.5, 1.0])
    weights = np.array([1.0, 3.0, 1.0, 2.0, 1.0])
    made = []
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(5)
        made.append(SortedSample.from_values(values[order], weights[order]).weights)
    assert all(np.array_equal(w, [1, 1, 2, 3, 1]) for w in made if w is not None)


@pytest.mark.parametrize("groups", [1, 2, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_merged_groups_are_all_rows_sorted(groups: int, weighted: bool) -> None:
    rng = np.random.default_rng(groups)
    code = rng.integers(0, groups, 200)
    values = rng.integers(0, 30, 200) / 30
    # Equal weights inside a group, unequal between groups, is a case of its own.
    weights = rng.uniform(0.5, 2, 200) if groups != 3 else code + 1.0
    parts = [
        SortedSample.from_values(values[code == g], weights[code == g] if weighted else None)
        for g in range(groups)
    ]
    pooled = PooledSample.merge(parts, weighted=weighted)
    assert pooled.sample.values.tolist() == sorted(values)
    for g in range(groups):
        assert np.array_equal(pooled.sample.values[pooled.codes == g], np.sort(values[code == g]))
        if weighted and groups > 1:
            mine = pooled.sample.row_weights[pooled.codes == g]
            assert sorted(mine) == pytest.approx(sorted(weights[code == g]))
    whole = SortedSample.from_values(values.copy(), weights.copy() if weighted else None)
    asked = np.linspace(0, 1, 50)
    assert pooled.sample.percentile(asked) == pytest.approx(whole.percentile(asked), abs=1e-12)
