"""Calibration by group: a hand case, plain pandas, and how often interval and chance line hold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rise_core import Evaluation, evaluate
from rise_core.calibration import calibrate
from rise_core.gap import wilson_interval


def drawn(seed: int, n: int = 2000, *, off: float = 0.0) -> pd.DataFrame:
    """Scores that are frequencies, but for group b, which is over-estimated by ``off``."""
    rng = np.random.default_rng(seed)
    truth = rng.uniform(0.05, 0.85, n)
    group = rng.choice(["a", "b"], n)
    y = (rng.random(n) < truth).astype(int)
    return pd.DataFrame({"y": y, "p": truth + off * (group == "b"), "group": group})


def evaluated(frame: pd.DataFrame, **options: object) -> Evaluation:
    return evaluate(frame["y"], frame["p"], sensitive_features=frame["group"], **options)  # type: ignore[arg-type]


def test_hand_case() -> None:
    # Two bins of 20 rows: scores .2 with 6 positives (.3), scores .8 with 14 (.7).
    # ECE = ½ |.2 − .3| + ½ |.8 − .7| = .1; mean score .5, share of positives .5: bias 0.
    p = [0.2] * 20 + [0.8] * 20
    y = [1] * 6 + [0] * 14 + [1] * 14 + [0] * 6
    ev = evaluate(y, p, sensitive_features=["a"] * 40)
    found = calibrate(ev)
    a = found.groups["a"]
    assert (a.n, a.bins) == (40, 2)
    assert a.ece == pytest.approx(0.1)
    assert a.bias == pytest.approx(0)
    table = found.table[found.table["group"] == "a"]
    assert table["observed"].tolist() == [0.3, 0.7]
    assert table["mean_score"].tolist() == pytest.approx([0.2, 0.8])
    assert tuple(table[["low", "high"]].iloc[0]) == pytest.approx(wilson_interval(0.3, 20))
    # A calibrated model with these scores shows an error of this size, so it is not told.
    assert not a.distinguishable
    assert a.low == 0 < a.ece < a.high


@pytest.mark.parametrize("weighted", [False, True])
def test_bins_are_what_pandas_counts(weighted: bool) -> None:
    frame = drawn(0, off=0.1)
    frame["w"] = np.random.default_rng(1).uniform(0.2, 3, len(frame)) if weighted else 1.0
    found = calibrate(evaluated(frame, sample_weight=frame["w"] if weighted else None))
    assert list(found.groups) == ["a", "b", "all"] or list(found.groups) == ["b", "a", "all"]
    for label in "ab":
        rows = frame[frame["group"] == label].sort_values("p", ignore_index=True)
        starts = np.linspace(0, len(rows), 11)[:-1].astype(int)
        bins = np.searchsorted(starts, np.arange(len(rows)), side="right")
        gap = ((rows["p"] - rows["y"]) * rows["w"]).groupby(bins).sum()
        assert found.groups[label].ece == pytest.approx(gap.abs().sum() / rows["w"].sum())
        table = found.table[found.table["group"] == label]
        share = (rows["y"] * rows["w"]).groupby(bins).sum() / rows["w"].groupby(bins).sum()
        assert table["observed"].tolist() == pytest.approx(share.tolist())
        assert table["n"].sum() == len(rows)


def test_equal_scores_are_never_parted_and_small_groups_have_few_bins() -> None:
    frame = pd.DataFrame({"y": [0, 1] * 50, "p": 0.5, "group": ["a"] * 90 + ["b"] * 10})
    found = calibrate(evaluated(frame))
    assert {label: group.bins for label, group in found.groups.items()} == dict.fromkeys(
        found.groups, 1
    )
    assert found.groups["a"].ece == pytest.approx(0)


def test_a_group_called_all_keeps_its_name() -> None:
    found = calibrate(evaluated(drawn(0).replace({"group": {"a": "all"}})))
    assert set(found.groups) == {"all", "b", "all rows"}
    assert found.groups["all"].n < found.groups["all rows"].n


def test_the_over_estimated_group_is_told_and_the_other_is_not() -> None:
    found = calibrate(evaluated(drawn(1, off=0.1)))
    assert found.groups["b"].distinguishable
    assert not found.groups["a"].distinguishable
    assert found.groups["b"].bias_low > 0
    assert found.groups["a"].bias_low < 0 < found.groups["a"].bias_high


def test_how_often_the_chance_line_and_the_interval_hold() -> None:
    # 300 data sets. A calibrated model exceeds its 95 % line in 5 % (13 of 300 to 30 of 300 with
    # binomial noise); an ECE of .1 lies in its interval in 95 %, and the bias in its own.
    above = inside = bias = 0
    for seed in range(300):
        found = calibrate(evaluated(drawn(seed, 1000, off=0.1)), random_state=seed)
        above += found.groups["a"].distinguishable
        inside += found.groups["b"].low <= 0.1 <= found.groups["b"].high
        bias += found.groups["b"].bias_low <= 0.1 <= found.groups["b"].bias_high
    assert above <= 28
    assert inside >= 273
    assert 273 <= bias <= 297
