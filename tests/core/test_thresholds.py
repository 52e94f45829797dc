"""Every threshold of the sweep says what an evaluation at that threshold says."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rise_core import evaluate
from rise_core.thresholds import threshold_sweep


@pytest.mark.parametrize("groups", ["ab", "abc"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_sweep_is_an_evaluation_a_threshold(groups: str, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    n = 400
    y = rng.integers(0, 2, n)
    p = np.round(np.clip(0.2 + 0.4 * y + rng.normal(0, 0.25, n), 0, 1), 2)
    frame = pd.DataFrame({"y": y, "p": p, "g": rng.choice(list(groups), n)})
    w = rng.uniform(0.1, 2, n) if weighted else np.ones(n)
    options = {"sensitive_features": frame["g"], "sample_weight": w if weighted else None}
    sweep = threshold_sweep(evaluate(frame["y"], frame["p"], **options))  # type: ignore[arg-type]
    assert len(sweep) == 101
    for place in (0, 7, 30, 50, 93, 100):
        row = sweep.iloc[place]
        ev = evaluate(frame["y"], frame["p"], threshold=row["threshold"], **options)  # type: ignore[arg-type]
        for key in ("accuracy", "dp", "md_decision"):
            wanted = getattr(ev.indicators, key)
            assert row[key] == pytest.approx(wanted, nan_ok=True), (key, place)
        called = frame["p"] >= row["threshold"]
        for key, label in (("tpr", 1), ("fpr", 0)):
            rates = [
                np.average(called[mine], weights=w[mine])
                for g in ev.groups
                if (mine := ((frame["g"] == g) & (frame["y"] == label)).to_numpy()).any()
            ]
            assert row[f"{key}_gap"] == pytest.approx(max(rates) - min(rates), abs=1e-12)
            assert row[[f"{key}_{i}" for i in range(len(groups))]].tolist() == pytest.approx(rates)


def test_a_rate_without_rows_is_undefined_and_one_group_has_no_gap() -> None:
    ev = evaluate([1, 1, 0, 1], [0.9, 0.2, 0.6, 0.4], sensitive_features=list("aabb"))
    sweep = threshold_sweep(ev)
    assert sweep["fpr_gap"].isna().all()  # group a has no negatives
    assert sweep["tpr_gap"].notna().all()
    one = threshold_sweep(evaluate([1, 0], [0.9, 0.2], sensitive_features=["a", "a"]))
    assert one[["dp", "md_decision", "tpr_gap"]].isna().all(axis=None)
    assert one["accuracy"].iloc[50] == 1


def test_scores_at_a_threshold_count_as_positive() -> None:
    ev = evaluate([1, 0], [0.3, 0.3], sensitive_features=["a", "b"])
    sweep = threshold_sweep(ev).set_index("threshold")
    assert sweep["positive_0"].loc[0.3] == 1
    assert sweep["positive_0"].iloc[31] == 0
