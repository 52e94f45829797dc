"""Synthetic models: predictions made by formula, to learn what a picture means.

No data set and no person stands behind a row. Every label says so, so that neither a chart nor a
table of it can be mistaken for a real run.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rise_core.exceptions import PredictionsError
from rise_core.predictions import Predictions

__all__ = ["BOUNDS", "FEATURE", "GROUPS", "NEGATIVE", "POSITIVE", "Bound", "SyntheticModel"]

GROUPS = ("synthetic A", "synthetic B")
FEATURE = "synthetic group"
POSITIVE, NEGATIVE = "synthetic yes", "synthetic no"


@dataclass(frozen=True)
class Bound:
    """What a parameter may be: ends and step of its slider."""

    low: float
    high: float
    step: float


BOUNDS: dict[str, Bound] = {
    "separation": Bound(0.0, 6.0, 0.1),
    "noise": Bound(0.0, 4.0, 0.1),
    "bias": Bound(-4.0, 4.0, 0.1),
    "extra_noise": Bound(0.0, 4.0, 0.1),
    "rate_a": Bound(0.02, 0.98, 0.01),
    "rate_b": Bound(0.02, 0.98, 0.01),
    "share_b": Bound(0.02, 0.98, 0.01),
    "confidence": Bound(0.2, 10.0, 0.1),
    "collapse": Bound(0.0, 1.0, 0.01),
    "rows": Bound(100, 2000, 100),
    "seed": Bound(0, 99, 1),
}
"""Ends of every parameter, by its name."""


@dataclass(frozen=True)
class SyntheticModel:
    """A classifier made by formula, for two groups A and B.

    Parameters
    ----------
    separation : how far the two classes lie apart in what the model sees, in standard deviations
    noise : standard deviation of what is added to every score, in logits
    bias : added to every score of group B, in logits; below 0 B is under-estimated
    extra_noise : as `noise`, for group B alone
    rate_a, rate_b : share of positive labels in each group
    share_b : share of group B among the rows
    confidence : factor on the logits; above 1 over-confident, below 1 under-confident
    collapse : 0 leaves the scores as they are, 1 gives every row the same score
    rows : number of rows
    seed : of the random numbers; the same seed gives the same rows

    Raises
    ------
    PredictionsError
        for a parameter outside `BOUNDS`

    Notes
    -----
    With base rate ``π`` over all rows, separation ``s`` and ``x | y ~ N(±s/2, 1)``, the score is
    ``p = (1 − c)·σ(k·(s·x + logit π + noise·ε + [B]·(bias + extra_noise·ε_B))) + c·π``. Without
    noise and bias, at ``k = 1`` and equal base rates, it is exactly calibrated. A row's random
    numbers depend on seed and place alone, so a slider moves the points instead of drawing others.
    """

    separation: float = 3.0
    noise: float = 0.0
    bias: float = 0.0
    extra_noise: float = 0.0
    rate_a: float = 0.4
    rate_b: float = 0.4
    share_b: float = 0.4
    confidence: float = 1.0
    collapse: float = 0.0
    rows: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what no slider offers."""
        for name in (field.name for field in fields(self)):
            value, bound = getattr(self, name), BOUNDS[name]
            if not bound.low <= value <= bound.high:
                raise PredictionsError(
                    f"{name} must lie between {bound.low:g} and {bound.high:g}; came {value!r}."
                )

    def frame(self) -> pd.DataFrame:
        """Make the rows.

        Returns
        -------
        table with the columns ``y_true`` (text), ``y_prob`` and ``synthetic group`` (text)
        """
        rows = int(self.rows)
        in_b = np.arange(rows) < min(max(round(rows * self.share_b), 1), rows - 1)
        positive = np.zeros(rows, dtype=bool)
        for members, rate in ((in_b, self.rate_b), (~in_b, self.rate_a)):
            positive[members] = _first(int(members.sum()), rate)
        seen, everyone, b_alone = np.random.default_rng(self.seed).standard_normal((3, rows))
        evidence = self.separation * (np.where(positive, 0.5, -0.5) * self.separation + seen)
        rate = float(positive.mean())
        logit = evidence + np.log(rate / (1 - rate)) + self.noise * everyone
        logit += in_b * (self.bias + self.extra_noise * b_alone)
        score = (1 - self.collapse) * _sigmoid(self.confidence * logit) + self.collapse * rate
        return pd.DataFrame(
            {
                "y_true": np.where(positive, POSITIVE, NEGATIVE),
                "y_prob": np.clip(score, 0.0, 1.0),
                FEATURE: np.where(in_b, GROUPS[1], GROUPS[0]),
            }
        )

    def predictions(self) -> Predictions:
        """Make the rows, ready to be evaluated."""
        table = self.frame()
        return Predictions.from_columns(
            table["y_true"],
            table["y_prob"],
            sensitive_features={FEATURE: table[FEATURE]},
            pos_label=POSITIVE,
        )


def _first(n: int, share: float) -> NDArray[np.bool_]:
    """Mark a share of n rows, both kinds at least once where there are two rows."""
    marked = round(n * share)
    if n > 1:
        marked = min(max(marked, 1), n - 1)
    return np.arange(n) < marked


def _sigmoid(logit: NDArray[np.float64]) -> NDArray[np.float64]:
    # exp of a negative argument only: no overflow for large logits of either sign
    small = np.exp(-np.abs(logit))
    return np.asarray(np.where(logit >= 0, 1.0 / (1.0 + small), small / (1.0 + small)))
