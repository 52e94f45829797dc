"""Residuals: what "an error" is. Each kind is a small named strategy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rise_core.exceptions import PredictionsError

__all__ = ["RESIDUALS", "Residual", "residual_named"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Residual:
    """A way to measure an error from label, score and decision.

    Attributes
    ----------
    name : key used in `evaluate`
    symbol : formula as text, for titles
    low_means, high_means : what a negative and a positive residual say
    bounds : smallest and largest possible value at a threshold
    compute : (y_true int8, y_prob float64, y_pred bool) → float64, each shape (n,)
    """

    name: str
    symbol: str
    low_means: str
    high_means: str
    bounds: Callable[[float], tuple[float, float]]
    compute: Callable[[NDArray[np.int8], FloatArray, NDArray[np.bool_]], FloatArray]


RESIDUALS: dict[str, Residual] = {
    r.name: r
    for r in (
        Residual(
            "signed_error",
            "p − y",
            "under-estimated",
            "over-estimated",
            lambda threshold: (-1.0, 1.0),
            lambda y_true, y_prob, y_pred: y_prob - y_true,
        ),
        Residual(
            "decision_gap",
            "ŷ − p",
            "decided lower than its score",
            "decided higher than its score",
            lambda threshold: (-threshold, 1.0 - threshold),
            lambda y_true, y_prob, y_pred: y_pred - y_prob,
        ),
    )
}


def residual_named(name: str) -> Residual:
    """Look a residual up by name; raises PredictionsError with the names there are."""
    if name not in RESIDUALS:
        known = ", ".join(map(repr, RESIDUALS))
        raise PredictionsError(f"No residual {name!r}. There are: {known}.")
    return RESIDUALS[name]
