"""At equal base rates: every group weighted to the pooled base rate (direct standardisation)."""

from __future__ import annotations

import numpy as np
import pytest

from rise_core import evaluate

# Two groups with scores that depend on the label alone: given the label, they err alike.
#   n: 3 of 4 positive, s: 1 of 4 positive, pooled 4 of 8.
Y = [1, 1, 1, 0, 1, 0, 0, 0]
P = [0.8, 0.8, 0.8, 0.4, 0.8, 0.4, 0.4, 0.4]
GROUP = list("nnnnssss")


def uneven(n: int = 400, seed: int = 0) -> dict[str, np.ndarray]:
    """Three groups whose base rates, scores and weights differ."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])
    rate = np.select([group == "a", group == "b"], [0.3, 0.5], 0.8)
    y = (rng.random(n) < rate).astype(int)
    p = np.clip(rng.normal(0.3 + 0.4 * y, 0.2), 0, 1)
    return {"y": y, "p": p, "group": group, "weight": rng.uniform(0.1, 5, n)}


def test_hand_case() -> None:
    # P(1) = 1/2. n: weight of a positive row (1/2)/(3/4) = 2/3, of the negative row (1/2)/(1/4)
    # = 2; s the other way round. Each group then weighs 4, with 2 on either label, so that both
    # have mean score (0.8 + 0.4)/2 = 0.6, positive rate 1/2, and the same distribution.
    ev = evaluate(Y, P, sensitive_features=GROUP, base_rates="equal")
    assert ev.weight_values == pytest.approx([2 / 3, 2 / 3, 2 / 3, 2, 2, 2 / 3, 2 / 3, 2 / 3])
    for curve in ev.groups.values():
        assert curve.base_rate == pytest.approx(0.5)
        assert curve.mean_score == pytest.approx(0.6)
        assert curve.share == pytest.approx(0.5)
    assert ev.indicators.md == pytest.approx(0, abs=1e-12)
    assert ev.indicators.dp == pytest.approx(1)
    assert ev.indicators.w1 == pytest.approx(0, abs=1e-12)
    assert ev.indicators.f_mean == pytest.approx(1)

    # As observed the base rates show: mean scores .7 and .5, rates 3/4 and 1/4.
    # W1: n holds 3 × −0.2 and 1 × 0.4, s 1 × −0.2 and 3 × 0.4; half the ranks lie 0.6 apart.
    observed = evaluate(Y, P, sensitive_features=GROUP)
    assert observed.indicators.md == pytest.approx(0.2)
    assert observed.indicators.dp == pytest.approx(1 / 3)
    assert observed.indicators.w1 == pytest.approx(0.3)


@pytest.mark.parametrize("weighted", [False, True])
def test_each_group_gets_the_pooled_base_rate(weighted: bool) -> None:
    data = uneven()
    weight = data["weight"] if weighted else np.ones(400)
    ev = evaluate(
        data["y"],
        data["p"],
        sensitive_features=data["group"],
        sample_weight=data["weight"] if weighted else None,
        base_rates="equal",
    )
    pooled = float(np.average(data["y"], weights=weight))
    assert ev.overall.base_rate == pytest.approx(pooled)
    for label, curve in ev.groups.items():
        mine = data["group"] == label
        assert curve.base_rate == pytest.approx(pooled)
        # A group's own weight stays what it was: only its mix of labels changes.
        assert curve.share == pytest.approx(weight[mine].sum() / weight.sum())


def test_given_the_label_nothing_changes() -> None:
    """Weights are constant inside (group, label): rates given the label are the observed ones."""
    data = uneven()
    ev = evaluate(data["y"], data["p"], sensitive_features=data["group"], base_rates="equal")
    pooled = data["y"].mean()
    for label, curve in ev.groups.items():
        mine = data["group"] == label
        by_label = [data["p"][mine & (data["y"] == y)].mean() for y in (0, 1)]
        assert curve.mean_score == pytest.approx((1 - pooled) * by_label[0] + pooled * by_label[1])


def test_equal_base_rates_already_change_nothing() -> None:
    y = [1, 0, 1, 0] * 5
    p = np.linspace(0.02, 0.97, 20)
    group = list("aabb") * 5
    kinds = [evaluate(y, p, sensitive_features=group, base_rates=k) for k in ("observed", "equal")]
    assert kinds[0].indicators == kinds[1].indicators
    assert kinds[1].weight_values is None


def test_a_group_without_one_label_is_left_out_with_its_reason() -> None:
    data = uneven()
    y = np.where(data["group"] == "c", 1, data["y"])
    lacking = int((data["group"] == "c").sum())
    ev = evaluate(y, data["p"], sensitive_features=data["group"], base_rates="equal")
    assert list(ev.groups) == ["a", "b"]
    assert ev.n + lacking == ev.n_rows == 400
    assert list(ev.left_out.values()) == [lacking]
    assert "'c'" in ev.undefined["base_rates"]
    without = data["group"] != "c"
    alone = evaluate(
        y[without],
        data["p"][without],
        sensitive_features=data["group"][without],
        base_rates="equal",
    )
    assert alone.indicators.w1 == ev.indicators.w1


def test_a_reference_that_is_left_out_hands_its_part_to_the_next_group() -> None:
    # Named sensitive "c"; its reference "a", the largest, lacks a label and goes.
    data = uneven()
    y = np.where(data["group"] == "a", 0, data["y"])
    ev = evaluate(y, data["p"], sensitive_features=data["group"], sensitive="c", base_rates="equal")
    assert (ev.sensitive, ev.reference, ev.sensitive_chosen) == ("c", "b", "named")
    rates = {label: curve.positive_rate for label, curve in ev.groups.items()}
    assert ev.indicators.dp == pytest.approx(rates["c"] / rates["b"])


@pytest.mark.parametrize("y", [[1, 1, 1, 1, 0, 0, 0, 0], [1] * 8])
def test_where_every_group_lacks_a_label_all_is_undefined_and_nothing_raises(y: list[int]) -> None:
    ev = evaluate(y, P, sensitive_features=GROUP, base_rates="equal", pos_label=1)
    assert all(np.isnan(value) for _, value in ev.indicators)
    assert {name for name, _ in ev.indicators} < set(ev.undefined)
    assert "'n', 's'" in ev.undefined["base_rates"]
    assert ev.segments == ()
    assert ev.n == ev.n_rows == 8


def test_going_back_to_the_observed_rates_brings_all_rows_back() -> None:
    data = uneven()
    y = np.where(data["group"] == "c", 1, data["y"])
    columns = {"group": data["group"], "half": np.arange(400) % 2}
    equal = evaluate(y, data["p"], sensitive_features=columns, base_rates="equal")
    observed = evaluate(y, data["p"], sensitive_features=columns)
    assert equal.n < observed.n
    assert equal.with_settings(base_rates="observed").indicators == observed.indicators
    # Another column loses its own incomplete groups only, and here it has none.
    other = equal.by_feature["half"]
    assert other.n == 400
    assert equal.intersection().n_rows == 400


def test_an_environment_without_one_label_leaves_the_others_alive() -> None:
    data = uneven()
    environment = np.where(np.arange(400) < 100, "day", "night")
    y = np.where(environment == "day", 1, data["y"])
    ev = evaluate(
        y,
        data["p"],
        sensitive_features=data["group"],
        environment=environment,
        base_rates="equal",
    )
    parts = ev.by_environment
    assert np.isnan(parts["day"].indicators.w1)
    assert "base_rates" in parts["day"].undefined
    assert parts["night"].indicators.w1 > 0


def test_rows_of_an_environment_are_used_or_left_out() -> None:
    data = uneven()
    environment = np.where(np.arange(400) < 200, "day", "night")
    gone = (data["group"] == "c") & (environment == "day")
    y = np.where(gone, 1, data["y"])
    ev = evaluate(
        y, data["p"], sensitive_features=data["group"], environment=environment, base_rates="equal"
    )
    day = ev.by_environment["day"]
    assert day.n_rows == 200
    assert day.n == 200 - gone.sum()
    assert sum(day.left_out.values()) == gone.sum()
