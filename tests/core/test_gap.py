"""The gap between two curves: W1, segments, bands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.stats import wasserstein_distance

from rise_core import Evaluation, PredictionsError, evaluate
from rise_core.curve import PooledSample, SortedSample
from rise_core.gap import areas_between, wasserstein, wilson_interval

Array = NDArray[np.float64]


def model(n: int = 600, seed: int = 0, *, groups: str = "ab", grid: int = 0) -> pd.DataFrame:
    """Predictions with groups that differ; ``grid`` > 0 rounds the scores, which makes ties."""
    rng = np.random.default_rng(seed)
    group = rng.choice(list(groups), n)
    y = (rng.random(n) < np.where(group == "a", 0.6, 0.3)).astype(int)
    p = np.clip(rng.normal(0.3 + 0.4 * y + 0.1 * (group == "b"), 0.2), 0, 1)
    if grid:
        p = np.round(p * grid) / grid
    return pd.DataFrame({"y": y, "p": p, "group": group, "weight": rng.uniform(0.2, 3, n)})


def evaluated(frame: pd.DataFrame, *, weighted: bool = False, **options: object) -> Evaluation:
    return evaluate(
        frame["y"],
        frame["p"],
        sensitive_features=frame["group"],
        sample_weight=frame["weight"] if weighted else None,
        **options,  # type: ignore[arg-type]
    )


def integrate(
    function: Callable[[Array], Array], q0: float, q1: float, *, absolute: bool = False
) -> float:
    """Midpoint rule: naive, and precise to about the largest jump over the number of cells."""
    cells = 400_000
    values = function(q0 + (np.arange(cells) + 0.5) * (q1 - q0) / cells)
    return float((np.abs(values) if absolute else values).mean() * (q1 - q0))


def difference_of(ev: Evaluation, pair: tuple[str, str]) -> Callable[[Array], Array]:
    group, reference = (ev.groups[label] for label in pair)
    return lambda q: group.at(q) - reference.at(q)


# W1


def test_hand_case() -> None:
    # a: 0 on [0, ½], 1 on [½, 1]. b: 0 on [0, ⅓], ½ on [⅓, ⅔], 1 on [⅔, 1].
    # |Q_a − Q_b| is ½ on [⅓, ½] and ½ on [½, ⅔], else 0: area 1/12 + 1/12.
    a = SortedSample.from_values(np.array([0.0, 1.0]))
    b = SortedSample.from_values(np.array([0.0, 0.5, 1.0]))
    assert wasserstein(a, b) == pytest.approx(1 / 6)
    pooled = PooledSample.merge([a, b])
    cuts = [0, 1 / 3, 0.4, 0.5, 1]
    assert areas_between(pooled, (0, 1), cuts) == pytest.approx([0, 1 / 30, 1 / 20, 1 / 12])
    assert areas_between(pooled, (1, 0), cuts) == areas_between(pooled, (0, 1), cuts)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("grid", [0, 5])
@pytest.mark.parametrize("seed", range(5))
def test_w1_is_scipys_wasserstein_distance(seed: int, grid: int, weighted: bool) -> None:
    frame = model(300, seed, grid=grid)
    frame["d"] = frame["p"] - frame["y"]
    a, b = (frame[frame["group"] == g] for g in "ab")
    weights = (a["weight"], b["weight"]) if weighted else (None, None)
    expected = wasserstein_distance(a["d"], b["d"], *weights)
    assert evaluated(frame, weighted=weighted).indicators.w1 == pytest.approx(expected, abs=1e-12)
    samples = [
        SortedSample.from_values(
            part["d"].to_numpy(copy=True), part["weight"].to_numpy() if weighted else None
        )
        for part in (a, b)
    ]
    assert wasserstein(*samples) == pytest.approx(expected, abs=1e-12)


def test_w1_of_one_group_with_weights_and_one_without() -> None:
    rng = np.random.default_rng(2)
    x, y, w = rng.normal(size=40), rng.normal(size=70), rng.uniform(1, 9, 40)
    samples = SortedSample.from_values(x.copy(), w), SortedSample.from_values(y.copy())
    assert wasserstein(*samples) == pytest.approx(wasserstein_distance(x, y, w))


def test_w1_of_a_pair_among_more_groups() -> None:
    frame = model(900, groups="abcd", grid=20)
    ev = evaluated(frame)
    frame["d"] = frame["p"] - frame["y"]
    labels = ev.factor.labels
    for first, second in ((0, 1), (2, 0), (1, 3), (3, 2)):
        parts = [frame.loc[frame["group"] == labels[i], "d"] for i in (first, second)]
        (area,) = areas_between(ev.pooled, (first, second), (0.0, 1.0))
        assert area == pytest.approx(wasserstein_distance(*parts), abs=1e-12)


def test_alike_groups_have_no_gap() -> None:
    frame = model(100)
    twice = pd.concat([frame.assign(group="a"), frame.assign(group="b")])
    ev = evaluated(twice)
    assert ev.indicators.w1 == 0
    assert [segment.area for segment in ev.segments] == [0, 0, 0]
    assert all(np.isnan(segment.share) for segment in ev.segments)


# Segments


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("grid", [0, 8])
@pytest.mark.parametrize("residual", ["signed_error", "decision_gap"])
def test_segments_against_numeric_integration(weighted: bool, grid: int, residual: str) -> None:
    ev = evaluated(model(grid=grid), weighted=weighted, residual=residual)
    left, right = ev.overall.left_knee, ev.overall.right_knee
    assert left is not None
    assert right is not None
    assert [segment.name for segment in ev.segments] == ["left tail", "core", "right tail"]
    ends = [0, left.percentile, right.percentile, 1]
    assert [s.q0 for s in ev.segments] + [ev.segments[-1].q1] == ends
    assert sum(s.area for s in ev.segments) == pytest.approx(ev.indicators.w1, abs=1e-12)
    assert sum(s.share for s in ev.segments) == pytest.approx(1, abs=1e-12)
    for segment in ev.segments:
        assert segment.pair == (ev.sensitive, ev.reference)
        width = segment.q1 - segment.q0
        gap = difference_of(ev, segment.pair)
        signed = integrate(gap, segment.q0, segment.q1)
        area = integrate(gap, segment.q0, segment.q1, absolute=True)
        assert segment.mean_gap == pytest.approx(signed / width, abs=1e-5)
        assert segment.area == pytest.approx(area, abs=1e-5)
        rise = gap(np.array([segment.q1])) - gap(np.array([segment.q0]))
        assert segment.slope_gap == pytest.approx(float(rise[0]) / width)


def test_tight_and_parallel() -> None:
    # The same residuals shifted by a tenth: parallel everywhere, a tenth apart everywhere.
    rng = np.random.default_rng(0)
    p = np.round(rng.uniform(0.1, 0.8, 200), 3)
    ev = evaluate(
        [0] * 400, [*p, *(p + 0.1)], sensitive_features=["a"] * 200 + ["b"] * 200, pos_label=1
    )
    for segment in ev.segments:
        assert segment.mean_gap == pytest.approx(0.1)
        assert segment.slope_gap == pytest.approx(0, abs=1e-9)
        assert segment.share == pytest.approx(segment.q1 - segment.q0)


def test_a_missing_knee_cuts_nothing() -> None:
    # Residuals 0 for the first half of the pooled curve: no left knee.
    y = [0] * 20
    p = [0.0] * 11 + [0.1, 0.12, 0.2, 0.3, 0.35, 0.4, 0.6, 0.8, 0.9]
    ev = evaluate(y, p, sensitive_features=list("ab") * 10, pos_label=1)
    assert ev.overall.left_knee is None
    assert [segment.name for segment in ev.segments] == ["core", "right tail"]
    assert (ev.segments[0].q0, ev.segments[-1].q1) == (0, 1)
    assert sum(s.share for s in ev.segments) == pytest.approx(1)


def test_a_knee_among_very_light_rows_leaves_an_empty_tail() -> None:
    # Weights .01 × 4 and 1 × 3, W/n = 3.04/7. The left knee is the fourth row, whose percentile is
    # (.03 + .04 − .434)/6.08 < 0: there is nothing to the left of it.
    ev = evaluate(
        [0] * 7,
        [0, 0.3, 0.35, 0.4, 0.5, 0.6, 0.9],
        sensitive_features=list("abababa"),
        sample_weight=[0.01] * 4 + [1] * 3,
    )
    assert ev.overall.left_knee is not None
    assert ev.overall.left_knee.percentile == pytest.approx((0.07 - 3.04 / 7) / 6.08)
    tail = ev.segments[0]
    assert (tail.q0, tail.q1, tail.area) == (0, 0, 0)
    assert np.isnan(tail.mean_gap)
    assert sum(segment.share for segment in ev.segments) == pytest.approx(1)


# Bands


def plain_percentiles(frame: pd.DataFrame, *, weighted: bool) -> pd.Series:
    d = frame["p"] - frame["y"]
    if not weighted:
        return (d.rank(method="average") - 1) / len(d)
    w = frame["weight"]
    below = np.array([w[d < v].sum() for v in d])
    upto = np.array([w[d <= v].sum() for v in d])
    return pd.Series((below + upto - w.mean()) / (2 * w.sum()), index=frame.index)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("q0", "q1"), [(0, 1), (0.1, 0.35), (0.9, 1), (0, 0.2), (0.5, 0.5001)])
@pytest.mark.parametrize("grid", [0, 10])
def test_a_band_counts_what_pandas_counts(weighted: bool, q0: float, q1: float, grid: int) -> None:
    frame = model(500, 3, groups="abc", grid=grid)
    band = evaluated(frame, weighted=weighted).band(q0, q1)
    h = plain_percentiles(frame, weighted=weighted)
    inside = frame[((h >= q0) | (q0 == 0)) & (h <= q1)]
    assert band.rows.tolist() == inside.index.tolist()
    assert band.n == len(inside)
    if inside.empty:
        assert band.residual_range is None
        assert band.score_range is None
        return
    d = inside["p"] - inside["y"]
    assert band.residual_range == pytest.approx((d.min(), d.max()))
    assert band.score_range == (inside["p"].min(), inside["p"].max())
    weight = inside["weight"] if weighted else pd.Series(1.0, index=inside.index)
    everything = frame["weight"] if weighted else pd.Series(1.0, index=frame.index)
    for label, group in band.groups.items():
        mine = inside[inside["group"] == label]
        share = weight[mine.index].sum() / weight.sum()
        overall = everything[frame["group"] == label].sum() / everything.sum()
        assert group.n == len(mine)
        assert group.share == pytest.approx(share)
        assert group.overall_share == pytest.approx(overall)
        assert group.lift == pytest.approx(share / overall)
        assert group.low <= group.lift <= group.high
        decided = mine["p"] >= 0.5
        assert group.positives == mine["y"].sum()
        assert group.false_positives == (decided & (mine["y"] == 0)).sum()
        assert group.false_negatives == (~decided & (mine["y"] == 1)).sum()


def test_the_interval_of_a_share_knows_how_much_the_weights_say() -> None:
    # Band of all 8 rows, a's share ½. Weights 1 × 4 and 3 × 4: W = 16, Σw² = 40, so that they say
    # as much as 16²/40 = 6.4 equal rows.
    y, p, group = [0] * 8, np.linspace(0.1, 0.8, 8), list("aabbaabb")
    weighted = evaluate(y, p, sensitive_features=group, sample_weight=[1, 3] * 4).band(0, 1)
    plain = evaluate(y, p, sensitive_features=group).band(0, 1)
    for band, n in ((weighted, 6.4), (plain, 8)):
        group_a = band.groups["a"]
        assert group_a.lift == pytest.approx(1)
        expected = [end / 0.5 for end in wilson_interval(0.5, n)]
        assert [group_a.low, group_a.high] == pytest.approx(expected)


def test_the_gap_of_a_band_is_that_of_a_segment() -> None:
    ev = evaluated(model())
    for segment in ev.segments:
        gap = ev.band(segment.q0, segment.q1).gap
        assert gap is not None
        assert gap.area == pytest.approx(segment.area)
        assert gap.share == pytest.approx(segment.share)
        assert gap.mean_gap == pytest.approx(segment.mean_gap)
        assert gap.slope_gap == pytest.approx(segment.slope_gap)


def test_the_rows_of_a_band_are_positions_in_what_came_in() -> None:
    p = [0.1, None, 0.9, 0.3, 0.5]
    ev = evaluate([0, 0, 0, None, 1], p, sensitive_features=list("aabbb"))
    assert ev.band(0, 1).rows.tolist() == [0, 2, 4]
    assert ev.left_out == {"the label is missing": 1, "the score is missing": 1}


def test_an_empty_band() -> None:
    ev = evaluate([0, 0, 1, 1], [0.1, 0.2, 0.3, 0.4], sensitive_features=list("aabb"))
    band = ev.band(0.3, 0.4)
    assert band.n == 0
    assert band.rows.size == 0
    assert np.isnan(band.groups["a"].lift)
    assert band.groups["a"].n == 0


@pytest.mark.parametrize(
    ("q0", "q1"), [(0.5, 0.5), (0.6, 0.2), (-0.1, 0.2), (0.1, 1.1), (float("nan"), 1)]
)
def test_a_band_with_ends_that_cannot_be_meant(q0: float, q1: float) -> None:
    with pytest.raises(PredictionsError, match="0 ≤ q0 < q1 ≤ 1; came"):
        evaluated(model(50)).band(q0, q1)


def test_wilson_interval_by_hand() -> None:
    # 8 of 10 with z = 1.96 (z² = 3.8416): centre (.8 + .19208)/1.38416 = .716735,
    # half width 1.96/1.38416 × √(.016 + .009604) = .226578.
    low, high = wilson_interval(0.8, 10)
    assert (low, high) == pytest.approx((0.490157, 0.943313), abs=1e-4)
    assert wilson_interval(0, 10)[0] == pytest.approx(0, abs=1e-15)
    assert wilson_interval(1, 10)[1] == pytest.approx(1)
    assert wilson_interval(0.5, 0) == (0, 1)
    narrow, wide = wilson_interval(0.5, 50, 0.5), wilson_interval(0.5, 50, 0.99)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
