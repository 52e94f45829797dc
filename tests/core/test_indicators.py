"""The indicators one by one: hand cases, zero denominators, more than two groups."""

from __future__ import annotations

from math import inf, isnan

import numpy as np
import pytest

from rise_core import evaluate
from rise_core.curve import Curve, SortedSample
from rise_core.indicators import (
    demographic_parity_ratio,
    displacements,
    knee_indicators,
    mean_fairness,
    spread,
)
from rise_core.knees import Knee, Side


def knee(side: Side, percentile: float, residual: float) -> Knee:
    return Knee(side, 3, residual, percentile, 0.5, 0.2, "concave")


def curve(label: str, left: tuple[float, float] | None, right: tuple[float, float] | None) -> Curve:
    """Build a curve of which only the knees matter: (percentile, residual) on each side."""
    return Curve(
        label=label,
        sample=SortedSample(np.zeros(3)),
        share=0.5,
        median_residual=0.0,
        median_position=0.5,
        left_knee=None if left is None else knee("left", *left),
        right_knee=None if right is None else knee("right", *right),
        knee_reasons={
            side: "why not" for side, k in (("left", left), ("right", right)) if k is None
        },
        base_rate=0.5,
        positive_rate=0.5,
        mean_score=0.5,
        accuracy=1.0,
    )


# F_mean


def test_f_mean() -> None:
    assert mean_fairness([0.2, 0.5]) == pytest.approx(0.85)
    assert mean_fairness([0.5, 0.5]) == 1
    assert mean_fairness([0.2, 0.9, 0.5]) == pytest.approx(0.65)
    assert spread([0.3, -0.2, 0.1]) == 0.5


def test_without_ties_f_mean_of_two_groups_is_never_below_three_quarters() -> None:
    # All of b above all of a: with n rows each, the medians lie half of the rows apart.
    for n in (1, 2, 5, 100):
        p = np.concatenate([np.linspace(0, 0.4, n), np.linspace(0.5, 0.9, n)])
        ev = evaluate([0] * (2 * n), p, sensitive_features=["a"] * n + ["b"] * n)
        assert ev.indicators.f_mean == pytest.approx(0.75)


def test_with_ties_f_mean_of_two_groups_can_fall_to_five_eighths() -> None:
    """A run of equal residuals stands in its own middle: here at ⅛ and at ⅞ of all rows."""
    p_b, p_a = [0, 0, 0, 0.1, 0.2], [0.8, 0.9, 1, 1, 1]
    ev = evaluate([1] * 5 + [0] * 5, p_b + p_a, sensitive_features=["b"] * 5 + ["a"] * 5)
    # b's median, −1, stands on ranks 0 to 2 of 10, a's, 1, on 7 to 9.
    assert ev.indicators.f_mean == pytest.approx(1 - (0.8 - 0.1) / 2)
    many = evaluate(
        [1] * 1_999 + [0] * 1_999,
        [0] * 1_000 + [0.1] * 999 + [0.9] * 999 + [1] * 1_000,
        sensitive_features=["b"] * 1_999 + ["a"] * 1_999,
    )
    assert many.indicators.f_mean == pytest.approx(5 / 8, abs=1e-3)
    assert many.indicators.f_mean > 5 / 8


# DP


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ({"n": 0.4, "s": 0.3}, 0.75),
        ({"n": 0.3, "s": 0.4}, 4 / 3),
        ({"n": 0.3, "s": 0.0}, 0.0),
        ({"n": 0.0, "s": 0.4}, inf),
        ({"n": 0.5, "s": 0.2, "x": 0.8}, 0.25),
        ({"n": 0.5, "s": 0.0, "x": 0.8}, 0.0),
    ],
)
def test_dp(rates: dict[str, float], expected: float) -> None:
    assert demographic_parity_ratio(rates, "s", "n") == (pytest.approx(expected), None)


def test_dp_without_any_positive_decision() -> None:
    for rates in ({"n": 0.0, "s": 0.0}, {"n": 0.0, "s": 0.0, "x": 0.0}):
        value, reason = demographic_parity_ratio(rates, "s", "n")
        assert isnan(value)
        assert reason == "no group has a positive decision (0 / 0)"


def test_dp_of_two_groups_that_nobody_named() -> None:
    assert demographic_parity_ratio({"n": 0.4, "s": 0.8}, None, None) == (0.5, None)


# F_shift and F_acc


def test_shift_and_size_of_the_knees() -> None:
    # Left: Δh .1 over .2, Δd −.3 over −.6. Right: Δh −.2 over .8, Δd .1 over .4.
    overall = curve("all", (0.2, -0.6), (0.8, 0.4))
    groups = {"n": curve("n", (0.15, -0.4), (0.9, 0.3)), "s": curve("s", (0.25, -0.7), (0.7, 0.4))}
    f_shift, f_acc, undefined = knee_indicators(overall, groups)
    assert f_shift == pytest.approx((0.1 / 0.2 + 0.2 / 0.8) / 2)
    assert f_acc == pytest.approx((0.3 / 0.6 + 0.1 / 0.4) / 2)
    assert undefined == {}
    left, right = displacements(overall, groups)
    assert (left.side, left.group, left.reference) == ("left", "s", "n")
    assert (left.delta_h, left.delta_d) == pytest.approx((0.1, -0.3))
    assert (left.h, left.v) == pytest.approx((0.5, 0.5))
    assert (right.delta_h, right.delta_d) == pytest.approx((-0.2, 0.1))
    assert (right.h, right.v) == pytest.approx((-0.25, 0.25))


def test_three_groups_take_the_widest_pair_on_each_side_and_axis() -> None:
    overall = curve("all", (0.2, -0.5), (0.8, 0.5))
    groups = {
        "a": curve("a", (0.1, -0.5), (0.8, 0.2)),
        "b": curve("b", (0.3, -0.4), (0.6, 0.4)),
        "c": curve("c", (0.2, -0.8), (0.7, 0.3)),
    }
    f_shift, f_acc, _ = knee_indicators(overall, groups)
    assert f_shift == pytest.approx((0.2 / 0.2 + 0.2 / 0.8) / 2)
    assert f_acc == pytest.approx((0.4 / 0.5 + 0.2 / 0.5) / 2)
    assert len(displacements(overall, groups)) == 6


def test_a_pooled_knee_at_residual_0_leaves_only_f_acc_undefined() -> None:
    overall = curve("all", (0.2, 0.0), (0.8, 0.5))
    groups = {"n": curve("n", (0.1, -0.1), (0.8, 0.5)), "s": curve("s", (0.2, 0.1), (0.8, 0.5))}
    f_shift, f_acc, undefined = knee_indicators(overall, groups)
    assert f_shift == pytest.approx(0.25)
    assert isnan(f_acc)
    assert undefined == {"f_acc": "the left knee of the pooled curve lies at residual 0"}
    left = displacements(overall, groups)[0]
    assert (left.delta_d, left.h) == pytest.approx((0.2, 0.5))
    assert isnan(left.v)


def test_a_pooled_knee_at_rank_0_leaves_only_f_shift_undefined() -> None:
    overall = curve("all", (0.2, -0.3), (0.0, 0.5))
    groups = {"n": curve("n", (0.1, -0.3), (0.1, 0.5)), "s": curve("s", (0.1, -0.3), (0.2, 1.0))}
    f_shift, f_acc, undefined = knee_indicators(overall, groups)
    assert isnan(f_shift)
    assert f_acc == pytest.approx(0.5)
    assert undefined == {"f_shift": "the right knee of the pooled curve lies at rank 0"}


def test_a_missing_knee_leaves_both_undefined_and_says_whose() -> None:
    whole = curve("all", (0.2, -0.3), (0.8, 0.5))
    for overall, group, message in (
        (whole, curve("s", (0.1, 0.1), None), "group 's' has no right knee: why not"),
        (curve("all", None, (0.8, 0.5)), whole, "the pooled curve has no left knee: why not"),
    ):
        f_shift, f_acc, undefined = knee_indicators(overall, {"n": whole, "s": group})
        assert isnan(f_shift)
        assert isnan(f_acc)
        assert undefined == {"f_shift": message, "f_acc": message}


def test_displacements_exist_without_a_pooled_knee() -> None:
    overall = curve("all", None, (0.8, 0.5))
    groups = {"n": curve("n", (0.1, 0.2), None), "s": curve("s", (0.4, 0.1), (0.7, 0.3))}
    (left,) = displacements(overall, groups)
    assert (left.side, left.delta_h, left.delta_d) == ("left", pytest.approx(0.3), -0.1)
    assert isnan(left.h)
    assert isnan(left.v)


# Weights


def test_rates_with_weights() -> None:
    # a: scores .9 (1), .2 (3); b: .6 (2), .4 (2). Labels 1 0 0 1.
    ev = evaluate(
        [1, 0, 0, 1],
        [0.9, 0.2, 0.6, 0.4],
        sensitive_features=list("aabb"),
        sample_weight=[1, 3, 2, 2],
    )
    a, b = ev.groups["a"], ev.groups["b"]
    assert (a.mean_score, b.mean_score) == pytest.approx((1.5 / 4, 0.5))
    assert (a.positive_rate, b.positive_rate) == pytest.approx((0.25, 0.5))
    assert (a.base_rate, b.base_rate) == pytest.approx((0.25, 0.5))
    assert (a.accuracy, b.accuracy) == (1, 0)
    assert ev.indicators.accuracy == pytest.approx(4 / 8)
    assert ev.indicators.md == pytest.approx(0.125)
    assert ev.indicators.md_decision == pytest.approx(0.25)
    assert ev.indicators.dp == pytest.approx(2)  # b, the later label of two equal groups, over a


def test_iteration_names_every_indicator_in_order() -> None:
    ev = evaluate([0, 1], [0.2, 0.9], sensitive_features=list("ab"))
    assert [name for name, _ in ev.indicators] == [
        "accuracy",
        "dp",
        "md",
        "md_decision",
        "f_mean",
        "f_shift",
        "f_acc",
        "w1",
    ]
    assert isnan(dict(ev.indicators)["f_acc"])
