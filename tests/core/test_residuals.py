"""Residuals: their formulas, signs and ranges."""

from __future__ import annotations

import numpy as np
import pytest

from rise_core import PredictionsError
from rise_core.residuals import RESIDUALS, residual_named

SCORES = np.array([0.0, 0.2, 0.5, 0.7, 1.0])


@pytest.mark.parametrize(
    ("name", "label", "threshold", "expected"),
    [
        ("signed_error", 0, 0.5, [0.0, 0.2, 0.5, 0.7, 1.0]),
        ("signed_error", 1, 0.5, [-1.0, -0.8, -0.5, -0.3, 0.0]),
        # p below the threshold: −p; from it on: 1 − p. The label plays no part.
        ("decision_gap", 0, 0.5, [0.0, -0.2, 0.5, 0.3, 0.0]),
        ("decision_gap", 1, 0.5, [0.0, -0.2, 0.5, 0.3, 0.0]),
        ("decision_gap", 1, 0.6, [0.0, -0.2, -0.5, 0.3, 0.0]),
        ("decision_gap", 1, 0.0, [1.0, 0.8, 0.5, 0.3, 0.0]),
    ],
)
def test_formula(name: str, label: int, threshold: float, expected: list[float]) -> None:
    y_true = np.full(SCORES.size, label, dtype=np.int8)
    found = residual_named(name).compute(y_true, SCORES, np.greater_equal(SCORES, threshold))
    assert found == pytest.approx(expected)
    assert found.dtype == np.float64


@pytest.mark.parametrize("name", RESIDUALS)
@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 1.0])
def test_bounds_are_reached_and_never_passed(name: str, threshold: float) -> None:
    residual = residual_named(name)
    below = np.nextafter(threshold, -1)
    scores = np.unique(np.clip([*np.linspace(0, 1, 101), below, threshold], 0, 1))
    found = np.concatenate(
        [
            residual.compute(np.full(scores.size, y, dtype=np.int8), scores, scores >= threshold)
            for y in (0, 1)
        ]
    )
    low, high = residual.bounds(threshold)
    assert found.min() >= low
    assert found.max() == pytest.approx(high)
    assert found.min() == pytest.approx(low) or threshold == 0


def test_a_residual_that_does_not_exist() -> None:
    with pytest.raises(
        PredictionsError,
        match=r"No residual 'squared'\. There are: 'signed_error', 'decision_gap'",
    ):
        residual_named("squared")
