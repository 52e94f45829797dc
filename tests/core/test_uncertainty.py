"""Intervals, nulls and p-values, against doing it the long way."""

from __future__ import annotations

from itertools import combinations
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest

from rise_core import Evaluation, PredictionsError, evaluate
from rise_core.gap import SEGMENT_NAMES
from rise_core.intervals import Interval, fold, null_of, percentile, range_interval, share_interval
from rise_core.replicates import Replicates, Sampler
from rise_core.resampling import Shuffle, blocks, draw_counts, plan_bootstrap, seeds
from rise_core.uncertainty import Estimate, uncertainty

INDICATORS = ("accuracy", "dp", "md", "md_decision", "f_mean", "f_shift", "f_acc", "w1")


def rows(n: int, k: int = 2, seed: int = 0, ties: int | None = 3) -> dict[str, Any]:
    """At least three rows a group; with ties also some perfect scores."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    p = np.clip(0.5 * y + 0.3 * rng.random(n) + 0.1, 0, 1)
    if ties is not None:
        p = np.where(rng.random(n) < 0.1, 1.0 * y, np.round(p, ties))
    group = np.concatenate([np.arange(k).repeat(3), rng.integers(0, k, n - 3 * k)])
    return {"y_true": y, "y_prob": p, "sensitive_features": np.array(list("abcdef"))[group]}


def all_values(ev: Evaluation, labels: list[str]) -> dict[str, float]:
    """Everything that a replicate measures, from an evaluation."""
    found = {"accuracy": ev.overall.accuracy}
    curves = {"all": ev.overall, **ev.groups}
    for label in ["all", *labels]:
        curve = curves[label]
        found[f"median {label}"] = curve.median_position
        found[f"rate {label}"] = curve.positive_rate
        found[f"score {label}"] = curve.mean_score
        for side in ("left", "right"):
            knee = curve.knee(side)
            found[f"d {side} {label}"] = np.nan if knee is None else knee.residual
            found[f"h {side} {label}"] = np.nan if knee is None else knee.percentile
    for name in ("median", "rate", "score"):  # not measured for all rows
        del found[f"{name} all"]
    q = np.unique(np.concatenate([np.cumsum(_shares(curves[x])) for x in labels]))
    middle = np.concatenate([[q[0] / 2], (q[1:] + q[:-1]) / 2])
    for a, b in combinations(labels, 2):
        apart = np.abs(curves[a].at(middle) - curves[b].at(middle))
        found[f"w1 {a} {b}"] = float(apart @ np.diff(q, prepend=0))
    return found


def _shares(curve: Any) -> Any:
    weights = np.ones(curve.n) if curve.weights is None else curve.weights
    return weights / weights.sum()


def measured(replicates: Replicates, b: int, labels: list[str]) -> dict[str, float]:
    curves = replicates.curves
    found = {"accuracy": replicates.accuracy[b]}
    for j, side in enumerate(("left", "right")):
        found[f"d {side} all"] = curves.pooled_d[b, j]
        found[f"h {side} all"] = curves.pooled_h[b, j]
        for a, label in enumerate(labels):
            found[f"d {side} {label}"] = curves.knee_d[b, a, j]
            found[f"h {side} {label}"] = curves.knee_h[b, a, j]
    for a, label in enumerate(labels):
        found[f"median {label}"] = curves.median[b, a]
        found[f"rate {label}"] = replicates.rate[b, a]
        found[f"score {label}"] = replicates.score[b, a]
    for p, (a, b2) in enumerate(combinations(labels, 2)):
        found[f"w1 {a} {b2}"] = curves.w1[b, p]
    return found


def again(ev: Evaluation, index: Any, labels: Any) -> Evaluation:
    """Evaluate drawn rows from scratch: gather, sort, group, find the knees."""
    p = ev.predictions
    return evaluate(
        p.y_true[index],
        p.y_prob[index],
        sensitive_features=labels,
        residual=ev.residual,
        base_rates=ev.base_rates,  # type: ignore[arg-type]
        sample_weight=None if p.sample_weight is None else p.sample_weight[index],
        pos_label="1",
    )


def weights(n: int) -> Any:
    return np.random.default_rng(5).random(n) + 0.1


def nested_clusters(group: Any) -> Any:
    rng = np.random.default_rng(6)
    return [f"{g}{rng.integers(0, 12)}" for g in group]


WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "decision gap": {"residual": "decision_gap"},
    "weights": {"sample_weight": "random"},
    "integer weights": {"sample_weight": "integers"},
    "equal base rates": {"base_rates": "equal"},
    "clusters": {"cluster": "nested"},
    "clusters across groups": {"cluster": "crossed"},
}


def prepared(n: int, k: int, way: str, ties: int | None = 3) -> Evaluation:
    columns, options = rows(n, k, ties=ties), dict(WAYS[way])
    match options.get("sample_weight"):
        case "random":
            options["sample_weight"] = weights(n)
        case "integers":
            options["sample_weight"] = np.random.default_rng(7).integers(1, 4, n)
    match options.get("cluster"):
        case "nested":
            options["cluster"] = nested_clusters(columns["sensitive_features"])
        case "crossed":
            options["cluster"] = np.arange(n) // 3
    return evaluate(**columns, **options)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("n", "k"), [(14, 2), (60, 2), (61, 3), (400, 2)])
def test_bootstrap_equals_draw_sort_evaluate(n: int, k: int, way: str) -> None:
    # At equal base rates rows that tie have weights that change with each replicate, and the
    # order within a run of ties is not defined by the method.
    ev = prepared(n, k, way, ties=None if way == "equal base rates" else 3)
    if len(ev.groups) < k:
        pytest.skip("a group lacks a label, so it is left out from the start")
    sampler, replicates = Sampler(ev, random_state=3), 9
    boot = sampler.bootstrap(replicates)
    (rng,) = seeds(3, 2, 1)
    drawing = plan_bootstrap(ev.factor, ev.predictions.cluster, rng, bags=None)
    sizes = blocks(replicates, drawing.units)
    compared = b = 0
    for size, generator in zip(sizes, seeds(3, 0, len(sizes)), strict=True):
        counts = np.concatenate(draw_counts(drawing.strata, size, generator), axis=1)
        for count in counts:
            index = np.repeat(np.arange(ev.n), count[drawing.unit])
            labels = np.array(ev.factor.labels)[ev.factor.codes[index]]
            if way == "equal base rates" and not both_labels(ev, index, labels, k):
                assert isnan(boot.accuracy[b])
            elif len(set(labels)) == k:
                expected = all_values(again(ev, index, labels), sampler.labels)
                assert measured(boot, b, sampler.labels) == pytest.approx(
                    expected, abs=1e-9, nan_ok=True
                )
                compared += 1
            b += 1
    assert compared >= 3


def both_labels(ev: Evaluation, index: Any, labels: Any, k: int) -> bool:
    seen = {(label, int(y)) for label, y in zip(labels, ev.predictions.y_true[index], strict=True)}
    return len(seen) == 2 * k


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("n", "k"), [(60, 2), (61, 3)])
def test_permutation_equals_relabel_sort_evaluate(n: int, k: int, way: str) -> None:
    ev = prepared(n, k, way, ties=None if way == "equal base rates" else 3)
    sampler, replicates = Sampler(ev, random_state=4), 6
    perm = sampler.permute(replicates)
    assert perm is not None
    order = sampler.order
    cluster = ev.predictions.cluster
    shuffle = Shuffle(
        ev.factor.codes[order],
        sampler._classes[order],
        None if cluster is None else cluster.codes[order],
    )
    (generator,) = seeds(4, 1, 1)
    for b, codes in enumerate(shuffle.draw(replicates, generator)):
        labels = np.array(ev.factor.labels)[codes]
        expected = all_values(again(ev, order, labels), sampler.labels)
        assert measured(perm, b, sampler.labels) == pytest.approx(expected, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("way", WAYS)
def test_the_observed_rows_give_the_evaluation(way: str) -> None:
    ev = prepared(200, 3, way)
    sampler = Sampler(ev)
    observed = measured(sampler.observed, 0, sampler.labels)
    assert observed == pytest.approx(all_values(ev, sampler.labels), abs=1e-9, nan_ok=True)
    for s, segment in enumerate(ev.segments):
        curves = sampler.observed.curves
        assert curves.area[0, s] == pytest.approx(segment.area, abs=1e-9)
        assert curves.mean_gap[0, s] == pytest.approx(segment.mean_gap, abs=1e-9, nan_ok=True)
        assert curves.slope_gap[0, s] == pytest.approx(segment.slope_gap, abs=1e-9, nan_ok=True)


def test_random_groupings_stay_within_environment_and_label() -> None:
    columns = rows(300)
    environment = np.where(columns["sensitive_features"] == "a", "x", "y")
    environment[::5] = "z"
    ev = evaluate(**columns, environment=environment, base_rates="equal")
    sampler = Sampler(ev)
    drawn = sampler._shuffle().draw(20, np.random.default_rng(0))
    codes = ev.factor.codes[sampler.order]
    env = environment[sampler.order]
    y = ev.predictions.y_true[sampler.order]
    for row in drawn:
        for e in "xyz":
            for label in (0, 1):
                inside = (env == e) & (y == label)
                assert (
                    np.bincount(row[inside], minlength=2) == np.bincount(codes[inside], minlength=2)
                ).all()
    assert (drawn != codes).any()
    assert ev.uncertainty(20, 20).within == "environment and label"


def test_many_environments_are_shuffled_at_once() -> None:
    codes = np.random.default_rng(0).integers(0, 3, 600)
    stratum = np.random.default_rng(1).integers(0, 90, 600)
    drawn = Shuffle(codes, stratum).draw(200, np.random.default_rng(2))
    for s in range(90):
        inside = stratum == s
        assert (np.sort(drawn[:, inside]) == np.sort(codes[inside])).all()
    # Every row takes each label as often as its environment has it.
    one = stratum == 7
    share = (drawn[:, one] == 0).mean(axis=0)
    assert share == pytest.approx((codes[one] == 0).mean(), abs=0.15)


def test_too_many_environments_for_bags_give_no_null_and_say_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rise_core.replicates._MOST_BAGS", 5000)
    columns = rows(13_000, ties=None)
    u = evaluate(**columns, environment=np.arange(13_000) // 100).uncertainty(20, 20)
    assert isnan(u["md"].p_value)
    assert not isnan(u["md"].low)
    assert any("No random groupings" in note for note in u.notes)


def test_clusters_move_as_a_whole() -> None:
    columns = rows(200)
    cluster = np.array(nested_clusters(columns["sensitive_features"]))
    ev = evaluate(**columns, cluster=cluster)
    sampler = Sampler(ev)
    ordered = cluster[sampler.order]
    for row in sampler._shuffle().draw(10, np.random.default_rng(0)):
        for name in np.unique(ordered):
            assert len(set(row[ordered == name])) == 1


def test_clusters_make_intervals_longer() -> None:
    # Every row five times: five times the rows, and not one bit more known.
    columns = {name: np.repeat(column, 5) for name, column in rows(300, ties=None).items()}
    rowwise = evaluate(**columns).uncertainty(200, 0)
    whole = evaluate(**columns, cluster=np.arange(1500) // 5).uncertainty(200, 0)
    for name in ("accuracy", "md", "f_mean", "w1"):
        longer = (whole[name].high - whole[name].low) / (rowwise[name].high - rowwise[name].low)
        assert longer > 1.4, name
    assert (rowwise.resampled, whole.resampled) == ("rows", "clusters")


# -- many rows: cells and bags


@pytest.mark.parametrize("way", WAYS)
def test_cells_and_bags_give_the_same_spread(way: str) -> None:
    ev = prepared(6000, 2, way, ties=None)
    exact, cells = Sampler(ev), Sampler(ev, exact_rows=100)
    assert exact.exact
    assert not cells.exact
    assert cells.grid.size < 2500
    for name, tolerance in (("median", 3e-4), ("w1", 3e-4)):
        there, here = (getattr(s.observed.curves, name)[0] for s in (exact, cells))
        assert np.allclose(here, there, atol=tolerance, equal_nan=True), name
    pairs = [(exact.bootstrap(300), cells.bootstrap(300))]
    permuted = exact.permute(300), cells.permute(300)
    if way == "clusters across groups":
        assert permuted[1] is None
    else:
        assert permuted[0] is not None
        assert permuted[1] is not None
        pairs.append((permuted[0], permuted[1]))
    for long_way, short_way in pairs:
        for of in (
            lambda r: r.score[:, 1] - r.score[:, 0],
            lambda r: r.rate[:, 1] - r.rate[:, 0],
            lambda r: r.curves.median[:, 1] - r.curves.median[:, 0],
            lambda r: r.curves.w1[:, 0],
            lambda r: r.curves.mean_gap[:, 1],
        ):
            expected, found = of(long_way).std(), of(short_way).std()
            # Two standard deviations from 300 replicates each differ by 6 % on average.
            assert found == pytest.approx(expected, rel=0.25, abs=1e-6)


def test_a_small_group_among_many_rows() -> None:
    columns = rows(30_000, ties=None)
    columns["sensitive_features"] = np.where(np.arange(30_000) < 40, "few", "many")
    u = evaluate(**columns).uncertainty(100, 200)
    assert u.places is not None
    # Scores have a standard deviation of about .27 in the whole: 40 rows know a mean to ±.08.
    assert 0.03 < u["md"].null_high < 0.2
    assert u.cell_error < 1e-3
    assert any("cells" in note for note in u.notes)


# -- the published file


def test_published_values_with_their_uncertainty(method_data: Path) -> None:
    frame = pd.read_parquet(method_data / "bdd_iga.parquet")
    ev = evaluate(
        frame["y_true"],
        frame["y_prob"],
        sensitive_features=frame["weather"].astype(str),
        residual="decision_gap",
    )
    u = ev.uncertainty(1000, 1000)
    f_acc, f_shift = u["f_acc"], u["f_shift"]
    assert f_acc.value == pytest.approx(1.449135, abs=1e-6)
    assert f_acc.low == pytest.approx(0.24, abs=0.1)
    assert f_acc.high == pytest.approx(6.5, rel=0.2)
    assert f_acc.null_median == pytest.approx(0.49, abs=0.05)
    assert f_acc.null_low == pytest.approx(0.19, abs=0.04)
    assert f_acc.null_high == pytest.approx(1.2, rel=0.25)
    assert f_shift.value == pytest.approx(0.395214, abs=1e-6)
    assert f_shift.low == pytest.approx(0.21, abs=0.03)
    assert f_shift.high == pytest.approx(0.99, rel=0.2)
    assert f_shift.null_low == pytest.approx(0.016, abs=0.003)
    assert f_shift.null_high == pytest.approx(0.21, abs=0.08)
    assert f_shift.distinguishable


# -- what the p-values and intervals promise


def drawn(n: int, apart: float, rng: np.random.Generator) -> Evaluation:
    group = np.arange(n) % 3 == 0
    y = rng.random(n) < 0.4
    odds = 2.5 * y - 1.25 + rng.normal(0, 1, n) + apart * group
    return evaluate(y.astype(int), 1 / (1 + np.exp(-odds)), sensitive_features=group.astype(str))


def test_p_values_are_uniform_where_groups_are_alike() -> None:
    rng = np.random.default_rng(11)
    found = [drawn(150, 0, rng).uncertainty(20, 99, random_state=i) for i in range(250)]
    for name in ("md", "f_mean", "f_shift", "f_acc", "w1"):
        p = [u[name].p_value for u in found if not isnan(u[name].p_value)]
        assert len(p) > 240
        assert kstest(p, "uniform").pvalue > 0.001, name
    two_sided = [u.displacement("left", "delta_h").p_value for u in found]
    assert 0.01 < np.mean(np.array(two_sided) <= 0.05) < 0.1


def test_a_planted_difference_is_found() -> None:
    u = drawn(900, 1.2, np.random.default_rng(1)).uncertainty(200, 200)
    for name in ("md", "md_decision", "w1"):
        assert u[name].p_value < 0.01, name
        assert u[name].distinguishable, name
    assert u["md"].low > 0
    assert u["w1"].low > 0


def test_intervals_hold_the_truth() -> None:
    """A small version of ``benchmarks.coverage``: alike groups, where naive intervals fail."""
    rng = np.random.default_rng(12)
    fair = {"dp": 1.0, "md": 0.0, "md_decision": 0.0, "f_mean": 1.0, "f_shift": 0.0, "f_acc": 0.0}
    fair |= {"w1": 0.0}
    held = dict.fromkeys(fair, 0)
    data_sets = 120
    for i in range(data_sets):
        u = drawn(300, 0, rng).uncertainty(100, 60, random_state=i)
        for name, true in fair.items():
            held[name] += u[name].low <= true <= u[name].high
    for name, count in held.items():
        assert count / data_sets >= 0.88, name


# -- odd data


def estimates(**options: Any) -> Any:
    return evaluate(**options).uncertainty(60, 60)


def test_all_scores_tied() -> None:
    columns = rows(40)
    columns["y_prob"] = np.full(40, 0.5)
    columns["residual"] = "decision_gap"
    u = estimates(**columns)
    assert isnan(u["f_shift"].low)
    assert "all residuals" in u["f_shift"].reason
    assert (u["w1"].value, u["w1"].low, u["w1"].high) == (0, 0, 0)
    assert u["w1"].distinguishable is False
    assert u["md"].p_value == 1


def test_one_group() -> None:
    u = estimates(y_true=[1, 0, 1, 0], y_prob=[0.9, 0.2, 0.6, 0.7], sensitive_features=list("aaaa"))
    assert isnan(u["md"].low)
    assert "one group" in u["md"].reason
    assert u["accuracy"].low < 0.75 < u["accuracy"].high
    assert u.displacements == ()


@pytest.mark.parametrize("base_rates", ["observed", "equal"])
@pytest.mark.parametrize("few", [1, 2])
def test_a_group_of_one_or_two_rows(few: int, base_rates: str) -> None:
    columns = rows(60)
    columns["sensitive_features"] = np.where(np.arange(60) < few, "few", "many")
    columns["y_true"][:2] = 0, 1
    u = estimates(**columns, base_rates=base_rates)
    if base_rates == "equal" and few == 1:
        assert "one group" in u["f_shift"].reason
        return
    assert isnan(u["f_shift"].value)
    assert isnan(u["f_shift"].low)
    assert u["f_shift"].distinguishable is None
    assert any("'few'" in note and "too few" in note for note in u.notes)
    if base_rates == "equal":
        # Two rows, one of each label: every second draw lacks one, and is counted.
        assert 10 < u["md"].undefined_boot < 50


def test_a_perfect_model_is_not_certain() -> None:
    columns = rows(50)
    columns["y_prob"] = columns["y_true"] * 0.8 + 0.1
    u = estimates(**columns)
    assert u["accuracy"].value == 1
    # Wilson: 1 / (1 + z²/n)
    assert u["accuracy"].low == pytest.approx(1 / (1 + 1.959964**2 / 50), abs=1e-6)


def test_a_denominator_at_zero_is_unstable() -> None:
    # Residuals around 0 with a pooled left knee of either sign.
    rng = np.random.default_rng(2)
    n = 120
    y = rng.integers(0, 2, n)
    p = np.clip(y + np.where(y == 1, -1, 1) * np.abs(rng.normal(0, 0.2, n)), 0, 1)
    ev = evaluate(y, p, sensitive_features=np.arange(n) % 2)
    u = ev.uncertainty(300, 0)
    wide = [e for e in u.denominators if e.name == "d_g" and e.low <= 0 <= e.high]
    assert {e.side for e in u.denominators if e.unstable} == {e.side for e in wide}
    assert u["f_acc"].unstable == bool(wide)


# -- more than two groups


def test_range_of_two_groups_is_the_folded_difference() -> None:
    samples = np.random.default_rng(0).normal([0.0, 0.3], 0.1, (400, 2))
    expected = fold(percentile(samples[:, 1] - samples[:, 0], 0.95))
    found = range_interval(samples, np.array([0.0, 0.3]), 0.95)
    assert (found.low, found.high) == (expected.low, expected.high)


def test_range_of_many_alike_groups_reaches_zero() -> None:
    rng = np.random.default_rng(0)
    reached = 0
    for _ in range(200):
        value = rng.normal(0, 1, 6)
        found = range_interval(value + rng.normal(0, 1, (300, 6)), value, 0.95)
        reached += found.low == 0
        assert found.high >= value.max() - value.min()
    # Fifteen pairs, each folded by itself, would all reach 0 in about 60 % of the cases.
    assert reached >= 186


def test_displacements_and_segments_are_all_there() -> None:
    ev = evaluate(**rows(300, k=3))
    u = ev.uncertainty(60, 60)
    assert len(u.displacements) == 2 * len(ev.displacements)
    assert {e.segment for e in u.segments} == set(SEGMENT_NAMES)
    assert {e.name for e in u.segments} == {"share", "area", "mean_gap", "slope_gap"}
    one = u.displacement("left", "delta_h", "b", "a")
    row = ev.displacements.query("side == 'left' and group == 'b' and reference == 'a'")
    assert one.value == row["delta_h"].item()
    with pytest.raises(PredictionsError, match="3 displacements match"):
        u.displacement("left", "delta_h")


# -- the small rules


@pytest.mark.parametrize(
    ("low", "high", "folded"),
    [(-1, 2, (0, 2)), (-3, 2, (0, 3)), (1, 2, (1, 2)), (-2, -1, (1, 2)), (0, 1, (0, 1))],
)
def test_fold(low: float, high: float, folded: tuple[float, float]) -> None:
    found = fold(Interval(low, high))
    assert (found.low, found.high) == folded


def test_percentile_takes_order_statistics_outwards() -> None:
    # 100 replicates: 2.525 from below is the 2nd, 98.475 from above the 99th.
    assert percentile(np.arange(1.0, 101), 0.95) == Interval(2.0, 99.0, 0)
    assert percentile(np.array([1.0, np.inf, np.nan, 2.0]), 0.95) == Interval(1.0, np.inf, 1)
    assert isnan(percentile(np.array([1.0, np.nan, np.nan]), 0.95).low)


def test_p_value_counts_ties_and_undefined_groupings_against_rarity() -> None:
    samples = np.array([0.0, 1.0, 2.0, 3.0, np.nan, 5.0])
    # 3, 5 and the undefined one are at least as uneven: (1 + 3) / (1 + 6).
    assert null_of(3.0, samples, 0.9).p_value == pytest.approx(4 / 7)
    assert null_of(3.0, samples, 0.9).undefined == 1
    # From below: 0, 1, 2, 3 and the undefined one: 6/7, so the smaller tail is 4/7.
    assert null_of(3.0, samples, 0.9, "low").p_value == pytest.approx(6 / 7)
    assert null_of(3.0, samples, 0.9, "both").p_value == 1


def test_share_interval_uses_the_rows_that_replicates_are_worth() -> None:
    # Binomial replicates of 25 rows at .2: variance .0064, worth 25 rows.
    samples = np.array([0.2 - 0.08, 0.2 + 0.08] * 50)
    found = share_interval(0.2, samples, 1000, 0.95)
    assert (found.low, found.high) == pytest.approx((0.0886, 0.3913), abs=1e-3)


@pytest.mark.parametrize(
    ("direction", "value", "expected"),
    [
        ("high", 0.5, False),
        ("high", 1.1, True),
        ("high", -0.1, False),
        ("low", -0.1, True),
        ("low", 1.1, False),
        ("both", -0.1, True),
        ("both", 1.1, True),
    ],
)
def test_distinguishable(direction: Any, value: float, expected: bool) -> None:
    e = Estimate("indicator", "x", value, null_low=0, null_high=1, direction=direction)
    assert e.distinguishable is expected


# -- the result


def test_same_seed_same_numbers_other_seed_others() -> None:
    ev = evaluate(**rows(300))
    first, again_, other = (uncertainty(ev, 60, 60, random_state=s) for s in (1, 1, 2))
    pd.testing.assert_frame_equal(first.to_frame(), again_.to_frame())
    assert first["md"].high != other["md"].high


def test_an_evaluation_answers_twice_from_memory() -> None:
    ev = evaluate(**rows(100))
    assert ev.uncertainty(30, 30) is ev.uncertainty(30, 30)
    assert ev.uncertainty(30, 30) is not ev.uncertainty(31, 30)


def test_table_is_tidy_and_says_how_it_was_made() -> None:
    u = evaluate(**rows(100)).uncertainty(40, 30, confidence=0.9, random_state=7)
    table = u.to_frame()
    assert list(table["name"][:8]) == list(INDICATORS)
    assert set(table["kind"]) == {"indicator", "displacement", "segment", "denominator"}
    facts = table[["n_boot", "n_perm", "confidence", "random_state"]].drop_duplicates()
    assert facts.to_numpy().tolist() == [[40, 30, 0.9, 7]]
    assert (table["low"] <= table["high"])[table["low"].notna()].all()


def test_without_permutations_there_is_no_null() -> None:
    u = evaluate(**rows(100)).uncertainty(40, 0)
    assert u.n_perm == 0
    assert isnan(u["md"].p_value)
    assert u["md"].distinguishable is None


@pytest.mark.parametrize(
    "options", [{"confidence": 1.0}, {"confidence": 0}, {"n_boot": 5}, {"n_perm": -1}]
)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(PredictionsError, match="came"):
        evaluate(**rows(30)).uncertainty(**options)
