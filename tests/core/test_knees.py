"""Twin knees: by hand, by brute force, and against kneed's own difference curve."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from rise_core import evaluate
from rise_core.curve import SortedSample
from rise_core.knees import Bend, difference_curve, twin_knees

Array = NDArray[np.float64]


def knees(
    values: Array | list[float], weights: Array | list[float] | None = None
) -> dict[str, Bend | str]:
    array = np.array(values, dtype=float)
    given = None if weights is None else np.array(weights, dtype=float)
    return dict(twin_knees(SortedSample.from_values(array, given)))


def bend(found: Bend | str) -> Bend:
    assert isinstance(found, Bend), found
    return found


def brute_force(sample: SortedSample, first: int, last: int) -> int:
    """First index of the largest |c|, every point looked at; equal but for rounding is equal."""
    positions = sample.cumulative - sample.row_weights / 2
    half = slice(first, last + 1)
    size = np.abs(difference_curve(sample.values[half], positions[half]))
    return first + int(np.flatnonzero(size >= size.max() - 1e-12)[0])


def is_flat_or_straight(values: Array, weights: Array | None) -> bool:
    if values[0] == values[-1]:
        return True
    return weights is None and bool(np.abs(difference_curve(values)).max() < 1e-9)


# By hand


def test_concave_then_convex() -> None:
    # Left half 0..4: rises at once, then stays: d̂ = 0 .8 .9 1 1 over x̂ = 0 ¼ ½ ¾ 1 → .55 at 1.
    # Right half 4..8: the mirror image → −.55 at 7.
    found = knees([0.0, 0.8, 0.9, 1.0, 1.0, 1.0, 1.1, 1.2, 2.0])
    left, right = bend(found["left"]), bend(found["right"])
    assert (left.index, left.residual, left.shape) == (1, 0.8, "concave")
    assert left.strength == pytest.approx(0.55)
    assert (right.index, right.residual, right.shape) == (7, 1.2, "convex")
    assert right.strength == pytest.approx(0.75 - 0.2)


def test_either_shape_is_found_on_either_side() -> None:
    # Left half convex (index 3: .2 − ¾), right half concave (index 5: .9 − ¼).
    found = knees([0.0, 0.05, 0.1, 0.2, 1.0, 1.9, 1.95, 1.97, 2.0])
    assert (bend(found["left"]).index, bend(found["left"]).shape) == (3, "convex")
    assert (bend(found["right"]).index, bend(found["right"]).shape) == (5, "concave")


def test_the_middle_belongs_to_both_halves() -> None:
    # n = 6: mid = 3, halves 0..3 and 3..5. Index 2: .95 − 2/3 = .283; index 1: .1 − 1/3 = −.233.
    # Were the left half 0..2 only index 1 would lie inside.
    found = knees([0, 1, 9.5, 10, 11, 20])
    assert bend(found["left"]).index == 2
    assert bend(found["right"]).index == 4


def test_the_first_of_equally_strong_bends_wins() -> None:
    # Left half 0..4: d̂ = 0 0 ½ 1 1 → c = 0 −¼ 0 ¼ 0. Right half 4..8: the same.
    found = knees([0, 0, 2, 4, 4, 4, 6, 8, 8])
    assert (bend(found["left"]).index, bend(found["left"]).shape) == (1, "convex")
    assert (bend(found["right"]).index, bend(found["right"]).shape) == (5, "convex")


def test_only_the_ends_of_a_run_can_be_a_knee() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        values = np.sort(rng.integers(0, 6, 40)).astype(float)
        for found in knees(values).values():
            if isinstance(found, Bend):
                run = np.flatnonzero(values == found.residual)
                # The middle index ends a half, and with it a run that goes on beyond.
                assert found.index in (run[0], run[-1])


def test_weights_move_the_positions() -> None:
    # x = C − w/2: weights 1 1 6 1 1 … put index 2 in the middle of its own width.
    values, weights = [0, 1, 2, 3, 4, 9, 10.0], [1, 1, 6, 1, 1, 1, 8.0]
    # C = 1 2 8 9 10 11 19, half 9.5: mid = 4. Left half x = .5 1.5 5 8.5 9.5, d = 0 … 4:
    # c = 0, ¼ − 1/9, ½ − 4.5/9, ¾ − 8/9, 0 → .139 at 1, −.139 at 3: the first.
    left = bend(knees(values, weights)["left"])
    assert (left.index, left.shape) == (1, "concave")
    assert left.strength == pytest.approx(0.25 - 1 / 9)
    # Right half 4..6: x = 9.5 10.5 15, d = 4 9 10 → 5/6 − 1/5.5 at 5.
    right = bend(knees(values, weights)["right"])
    assert right.index == 5
    assert right.strength == pytest.approx(5 / 6 - 1 / 5.5)


# Undefined


@pytest.mark.parametrize(
    ("values", "left", "right"),
    [
        ([1.0], "the left half has 1 rows", "the right half has 1 rows"),
        ([1.0, 2.0], "the left half has 2 rows", "the right half has 1 rows"),
        ([1.0, 2.0, 4.0], "the left half has 2 rows", "the right half has 2 rows"),
        ([1.0] * 9, "all residuals of the left half are equal", "of the right half are equal"),
        ([1.0] * 5 + [2.0, 4.0, 8.0, 9.0], "left half are equal", ""),
        (list(range(9)), "the left half is a straight line", "the right half is a straight line"),
        (list(np.arange(1001) / 1000 - 0.3), "a straight line", "a straight line"),
        # Bends of 5e-11 are rounding, not a knee.
        ([0, 1, 2 + 2e-10, 3, 4, 5, 6 + 2e-10, 7, 8], "a straight line", "a straight line"),
    ],
)
def test_no_knee_and_why(values: list[float], left: str, right: str) -> None:
    found = knees(values)
    for side, reason in (("left", left), ("right", right)):
        if reason:
            assert reason in str(found[side])
        else:
            assert isinstance(found[side], Bend)


def test_four_rows_are_enough_on_the_left() -> None:
    # mid = 2: halves 0..2 (three rows) and 2..3 (two).
    found = knees([0.0, 0.9, 1.0, 2.0])
    assert bend(found["left"]).index == 1
    assert found["right"] == "the right half has 2 rows; a knee needs 3"


def test_one_heavy_row_leaves_a_half_without_rows() -> None:
    found = knees([0, 1, 4, 5, 9], [100, 1, 2, 1, 1])
    assert found["left"] == "the left half has 1 rows; a knee needs 3"
    assert isinstance(found["right"], Bend)


# Large curves are mostly skipped, and give the same knee as looking at every point

Maker = Callable[[np.random.Generator, int], Array]
CURVES: dict[str, Maker] = {
    "uniform": lambda rng, n: rng.random(n),
    "normal": lambda rng, n: rng.normal(size=n),
    "heavy tails": lambda rng, n: np.clip(rng.standard_cauchy(n), -1e6, 1e6),
    "two masses": lambda rng, n: np.where(rng.random(n) < 0.4, -0.9, 0.8) + rng.normal(0, 1e-3, n),
    "few stairs": lambda rng, n: rng.integers(0, 4, n) / 4,
    "many stairs": lambda rng, n: rng.integers(0, 300, n) / 300,
    "one jump": lambda rng, n: (np.arange(n) > n // 3).astype(float),
    "jump at the end": lambda rng, n: (np.arange(n) == n - 1).astype(float),
    "jump at the start": lambda rng, n: (np.arange(n) > 0).astype(float),
    "straight with a dent": lambda rng, n: np.arange(n) + 0.4 * (np.arange(n) == n // 5),
    "nearly straight": lambda rng, n: np.arange(n) + rng.uniform(0, 3, n),
    "two equal bends": lambda rng, n: np.floor(np.arange(n) / (n / 8)),
    "sawtooth": lambda rng, n: np.arange(n) // 700 * 700 + (np.arange(n) % 700 > 350) * 300.0,
    "float32 scores": lambda rng, n: rng.random(n).astype(np.float32).astype(float),
    "confident model": lambda rng, n: rng.normal(0, 1, n) ** 9 * 1e-5,
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CURVES)
def test_blocks_that_are_skipped_hold_no_knee(name: str, weighted: bool) -> None:
    rng = np.random.default_rng(len(name))
    for n in (4 * 512 * 2 + 1, 4 * 512 * 2 + 3, 10_000, 40_001):
        weights = rng.uniform(0.2, 3, n) if weighted else None
        sample = SortedSample.from_values(CURVES[name](rng, n).astype(float), weights)
        mid = sample.mid
        for side, first, last in (("left", 0, mid), ("right", mid, n - 1)):
            found = twin_knees(sample)[side]  # type: ignore[index]
            if isinstance(found, str):
                assert is_flat_or_straight(sample.values[first : last + 1], weights), found
                continue
            index = brute_force(sample, first, last)
            assert (found.index, found.residual) == (index, sample.values[index])


@pytest.mark.parametrize("seed", range(10))
def test_random_stairs_of_random_sizes(seed: int) -> None:
    """Piecewise curves with bends at random places, in blocks' middles and at their ends."""
    rng = np.random.default_rng(seed)
    for _ in range(4):
        n = int(rng.integers(4_200, 30_000))
        slopes = rng.choice([0, 0, 1, 1e-3, 50], int(rng.integers(2, 60)))
        steps = np.repeat(slopes, rng.multinomial(n, np.ones(slopes.size) / slopes.size))
        sample = SortedSample.from_values(np.cumsum(steps))
        for side, first, last in (("left", 0, n // 2), ("right", n // 2, n - 1)):
            found = twin_knees(sample)[side]  # type: ignore[index]
            if isinstance(found, Bend):
                assert found.index == brute_force(sample, first, last)


def test_where_two_bends_are_equal_the_first_one_wins_on_large_curves_too() -> None:
    # Each half is a stair of four equal steps: |c| is ¼ at the end of the first step, at the
    # start of the second, … The same curve scaled, shifted and weighted by 3 has the same knees.
    values = np.repeat(np.arange(8.0), 5_000)
    places = [
        [bend(found).index for found in knees(v, w).values()]
        for v, w in (
            (values, None),
            (values * 0.1 + 0.7, None),
            (values / 3, np.full(40_000, 3.0)),
            (values, np.tile([1.0, 1.0 + 1e-9], 20_000)),
        )
    ]
    assert all(place == places[0] for place in places)


# kneed, the classic


def half_curves(rng: np.random.Generator) -> list[Array]:
    return [
        np.sort(rng.normal(size=301)),
        np.sort(rng.random(80)) ** 3,
        np.sort(rng.random(80)) ** (1 / 3),
    ]


@pytest.mark.parametrize("curve", ["concave", "convex"])
@pytest.mark.parametrize("seed", range(5))
def test_kneeds_difference_curve_is_ours(curve: str, seed: int) -> None:
    from kneed import KneeLocator

    for values in half_curves(np.random.default_rng(seed)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # kneed warns where it finds no knee; not asked here
            theirs = KneeLocator(
                np.arange(values.size), values, S=1, curve=curve, direction="increasing"
            )
        ours = difference_curve(values)
        # For a convex curve kneed turns the picture by half a turn: mirrored, other sign.
        expected = ours if curve == "concave" else -ours[::-1]
        assert theirs.y_difference == pytest.approx(expected, abs=1e-12)


def test_with_kneed_a_single_bend_is_the_same_knee() -> None:
    # Two circular arcs: one extremum on each half, which both detectors must name.
    x = np.linspace(0, 1, 201)
    rise = np.sqrt(1 - (1 - x) ** 2)
    values = np.concatenate([rise - 1, (1 - rise[::-1])[1:]])
    sample = SortedSample.from_values(values.copy())
    ours, theirs = twin_knees(sample), twin_knees(sample, "kneed", 1.0)
    for side in ("left", "right"):
        assert bend(theirs[side]).shape == bend(ours[side]).shape  # type: ignore[index]
        assert bend(theirs[side]).index == bend(ours[side]).index  # type: ignore[index]
        assert bend(theirs[side]).strength == pytest.approx(bend(ours[side]).strength)  # type: ignore[index]


def test_kneed_needs_a_bend_that_outlasts_its_sensitivity() -> None:
    rng = np.random.default_rng(0)
    y, group = rng.integers(0, 2, 500), rng.choice(["a", "b"], 500)
    p = np.clip(rng.normal(0.3 + 0.4 * y, 0.2), 0, 1)
    ev = evaluate(y, p, sensitive_features=group, detector="kneed", sensitivity=1e6)
    assert ev.overall.left_knee is None
    assert ev.overall.knee_reasons["left"] == "kneed finds no knee in the left half at S = 1e+06"
    assert ev.undefined["f_acc"].startswith("the pooled curve has no left knee: kneed finds no")


def test_kneed_does_not_wander_as_rows_are_added() -> None:
    """The fixed grid: a hundred times the rows of the same curve have the knee at the same rank."""
    x = np.linspace(-1, 1, 1_001)
    shape = np.sign(x) * np.abs(x) ** 5
    few = SortedSample.from_values(shape.copy())
    many = SortedSample.from_values(np.repeat(shape, 100))
    for side in ("left", "right"):
        one = bend(twin_knees(few, "kneed", 1.0)[side])  # type: ignore[index]
        other = bend(twin_knees(many, "kneed", 1.0)[side])  # type: ignore[index]
        assert one.index / few.n == pytest.approx(other.index / many.n, abs=0.005)


@pytest.mark.parametrize("seed", range(3))
def test_kneeds_grid_is_even_in_weight(seed: int) -> None:
    """Heavy rows get as many points of the grid as the same rows repeated."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(-1, 1, 4_000))
    values = np.sign(x) * np.abs(x) ** 5
    weights = np.where(x > 0.5, 20, 1) * rng.integers(1, 4, 4_000)
    weighted = SortedSample.from_values(values.copy(), weights.astype(float))
    repeated = SortedSample.from_values(np.repeat(values, weights))
    for side in ("left", "right"):
        one, other = (
            bend(twin_knees(sample, "kneed", 1.0)[side])  # type: ignore[index]
            for sample in (weighted, repeated)
        )
        assert one.residual == pytest.approx(other.residual, abs=5e-4)


@pytest.mark.parametrize("detector", ["prominent", "kneed"])
def test_a_knee_is_placed_among_all_rows(detector: str) -> None:
    rng = np.random.default_rng(1)
    y, group = rng.integers(0, 2, 3_000), rng.choice(["a", "b"], 3_000)
    p = np.clip(rng.normal(0.3 + 0.4 * y + 0.1 * (group == "a"), 0.15), 0, 1)
    ev = evaluate(y, p, sensitive_features=group, detector=detector, sensitivity=0.1)  # type: ignore[arg-type]
    placed = 0
    for curve in ev.groups.values():
        for knee in (curve.left_knee, curve.right_knee):
            if knee is None:
                continue
            placed += 1
            assert curve.residuals[knee.index] == knee.residual
            assert knee.percentile == ev.overall.percentile(knee.residual)
            assert knee.own_percentile == curve.percentile(knee.residual)
            assert knee.own_percentile != knee.percentile
    assert placed == 4
