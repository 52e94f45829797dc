"""The two runs that teach what goes wrong; named as such, outside the comparison."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from demo.train.grid import EXPONENTIATED_GRADIENT
from demo.train.problem import TRAIN, Problem


def exponentiated_gradient(problem: Problem, seed: int) -> NDArray[np.float32]:
    """Fairlearn's ExponentiatedGradient under demographic parity between the sexes.

    The score is the chance that the randomised classifier says yes: a weighted vote of a few
    hard classifiers, so it has few distinct values.
    """
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient
    from sklearn.linear_model import LogisticRegression

    rows = problem.split() == TRAIN
    mitigated = ExponentiatedGradient(
        LogisticRegression(max_iter=1000, random_state=seed),
        DemographicParity(),
        eps=EXPONENTIATED_GRADIENT["eps"],
        max_iter=int(EXPONENTIATED_GRADIENT["max_iter"]),
    )
    mitigated.fit(
        problem.x[rows], problem.y[rows], sensitive_features=problem.sensitive["sex"][rows]
    )
    return _vote(problem, mitigated.predictors_, mitigated.weights_)


def _vote(
    problem: Problem, predictors: Mapping[int, object], weights: Mapping[int, float]
) -> NDArray[np.float32]:
    votes = [
        weight * np.asarray(predictors[key].predict(problem.x), np.float64)  # type: ignore[attr-defined]
        for key, weight in weights.items()
        if weight > 0
    ]
    # Rounded: the sum of the weights may miss 1 by an ulp, and 1 + ulp is no probability.
    return np.clip(np.round(np.sum(votes, axis=0), 6), 0, 1).astype(np.float32)
