"""The standard metrics against scikit-learn and Fairlearn (scipy: test_gap, kneed: test_knees)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from fairlearn.metrics import (
    MetricFrame,
    demographic_parity_difference,
    demographic_parity_ratio,
    mean_prediction,
    selection_rate,
)
from sklearn.metrics import accuracy_score

from rise_core import evaluate


def table(groups: str, seed: int, n: int = 700) -> pd.DataFrame:
    """String labels, 1 in 5 positive, so that a swapped class must change a number."""
    rng = np.random.default_rng(seed)
    group = rng.choice(list(groups), n)
    positive = rng.random(n) < np.where(group == groups[0], 0.3, 0.15)
    score = np.clip(rng.normal(0.25 + 0.4 * positive + 0.1 * (group == groups[-1]), 0.2), 0, 1)
    return pd.DataFrame(
        {
            "label": np.where(positive, "granted", "refused"),
            "score": score,
            "group": group,
            "weight": rng.uniform(0.1, 4, n),
        }
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("threshold", [0.3, 0.5])
@pytest.mark.parametrize("groups", ["ab", "abc", "abcde"])
@pytest.mark.parametrize("seed", range(3))
def test_accuracy_and_demographic_parity(
    groups: str, threshold: float, weighted: bool, seed: int
) -> None:
    data = table(groups, seed)
    weight = data["weight"] if weighted else None
    ev = evaluate(
        data["label"],
        data["score"],
        sensitive_features=data["group"],
        pos_label="granted",
        threshold=threshold,
        sample_weight=weight,
    )
    y_true = (data["label"] == "granted").astype(int)
    y_pred = (data["score"] >= threshold).astype(int)
    options = {"sensitive_features": data["group"], "sample_weight": weight}

    assert ev.indicators.accuracy == pytest.approx(
        accuracy_score(y_true, y_pred, sample_weight=weight)
    )
    folded = min(ev.indicators.dp, 1 / ev.indicators.dp)
    assert folded == pytest.approx(demographic_parity_ratio(y_true, y_pred, **options))
    assert ev.indicators.md_decision == pytest.approx(
        demographic_parity_difference(y_true, y_pred, **options)
    )

    metrics = {"rate": selection_rate, "accuracy": accuracy_score, "score": mean_prediction}
    by_group = MetricFrame(
        metrics=metrics,
        y_true=y_true,
        y_pred=y_pred,
        sensitive_features=data["group"],
        sample_params=None if weight is None else {m: {"sample_weight": weight} for m in metrics},
    ).by_group
    for label, curve in ev.groups.items():
        assert curve.positive_rate == pytest.approx(by_group.loc[label, "rate"])
        assert curve.accuracy == pytest.approx(by_group.loc[label, "accuracy"])
    scores = MetricFrame(
        metrics=mean_prediction,
        y_true=y_true,
        y_pred=data["score"],
        sensitive_features=data["group"],
        sample_params=None if weight is None else {"sample_weight": weight},
    )
    assert ev.indicators.md == pytest.approx(scores.difference(method="between_groups"))


def test_dp_has_a_direction_that_fairlearn_folds_away() -> None:
    data = table("ab", 0)
    values = [
        evaluate(
            data["label"],
            data["score"],
            sensitive_features=data["group"],
            pos_label="granted",
            sensitive=label,
        ).indicators.dp
        for label in "ab"
    ]
    assert values[0] == pytest.approx(1 / values[1])
    assert min(values) < 1 < max(values)
    rates = (data["score"] >= 0.5).groupby(data["group"]).mean()
    assert values[0] == pytest.approx(rates["a"] / rates["b"])
