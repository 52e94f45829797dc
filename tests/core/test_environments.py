"""Environments: averages with equal weight, and drift against scipy and on shuffled rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import wasserstein_distance

from rise_core import Evaluation, PredictionsError, evaluate
from rise_core.environments import average_over, drift


def model(n: int = 900, seed: int = 0, *, moved: float = 0.15) -> pd.DataFrame:
    """Three environments of unequal size; in the third, scores are ``moved``."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    place = rng.choice(["east", "north", "south"], n, p=[0.6, 0.3, 0.1])
    p = np.clip(0.2 + 0.5 * y + rng.normal(0, 0.1, n) + moved * (place == "south"), 0, 1)
    return pd.DataFrame({"y": y, "p": p, "g": rng.choice(["a", "b"], n), "place": place})


def evaluated(frame: pd.DataFrame, **options: object) -> Evaluation:
    return evaluate(
        frame["y"],
        frame["p"],
        sensitive_features=frame["g"],
        environment=frame["place"],
        **options,  # type: ignore[arg-type]
    )


def test_every_environment_counts_the_same() -> None:
    # Accuracy 1 on 8 rows, ½ on 2: pooled .9, mean over environments .75.
    y = [0, 1] * 4 + [0, 1]
    p = [0.1, 0.9] * 4 + [0.1, 0.2]
    ev = evaluate(
        y, p, sensitive_features=list("aabb" * 2 + "ab"), environment=["x"] * 8 + ["z"] * 2
    )
    mean = average_over(ev, "accuracy")
    assert ev.indicators.accuracy == pytest.approx(0.9)
    assert (mean.value, mean.smallest, mean.largest) == (0.75, 0.5, 1.0)
    assert mean.used == ("x", "z")


def test_an_environment_where_it_is_undefined_or_infinite_is_named_and_left_out() -> None:
    # In z nobody of group a is called positive and somebody of b is: DP, b over a, is infinite.
    y, p = [0, 1, 0, 1, 0, 1], [0.1, 0.9, 0.9, 0.9, 0.1, 0.9]
    ev = evaluate(
        y, p, sensitive_features=list("aabbab"), environment=list("xxxxzz"), sensitive="b"
    )
    mean = average_over(ev, "dp")
    assert mean.value == pytest.approx(2.0)
    assert mean.left_out == ("z",)
    nothing = average_over(evaluate(y, p, sensitive_features=list("aabbab")), "dp")
    assert np.isnan(nothing.value)


def test_drift_is_scipys_distance_of_the_residuals() -> None:
    frame = model()
    found = {(d.environment, d.reference): d.w1 for d in drift(evaluated(frame), n_boot=60)}
    assert set(found) == {("north", "east"), ("south", "east"), ("south", "north")}
    d = frame["p"] - frame["y"]
    for (one, other), w1 in found.items():
        wanted = wasserstein_distance(d[frame["place"] == one], d[frame["place"] == other])
        assert w1.value == pytest.approx(wanted)
        assert w1.low <= w1.value <= w1.high
    assert found["south", "east"].distinguishable
    assert found["south", "east"].low > 0.05


def test_only_the_pairs_asked_for() -> None:
    (only,) = drift(evaluated(model()), [("south", "north")], n_boot=40, n_perm=40)
    assert (only.environment, only.reference) == ("south", "north")


def test_environments_without_drift_are_told_apart_as_rarely_as_they_should_be() -> None:
    # 60 data sets at 5 %: more than 9 would come by chance less than once in 1,000.
    told = 0
    for seed in range(60):
        (pair,) = drift(
            evaluated(model(400, seed, moved=0.0)), [("north", "east")], n_boot=20, n_perm=99
        )
        told += bool(pair.w1.distinguishable)
    assert told <= 9


def test_rows_without_environments_have_no_drift() -> None:
    with pytest.raises(PredictionsError, match="needs environments"):
        drift(evaluate([0, 1], [0.2, 0.7], sensitive_features=list("ab")))
