"""One model in several environments: how far its errors drift, and averages over environments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import isfinite, nan
from typing import TYPE_CHECKING

import numpy as np

from rise_core.evaluation import evaluate_predictions
from rise_core.exceptions import PredictionsError
from rise_core.predictions import ENVIRONMENT

if TYPE_CHECKING:
    from rise_core.estimates import Estimate
    from rise_core.evaluation import Evaluation

__all__ = ["Average", "Drift", "average_over", "drift"]


@dataclass(frozen=True)
class Drift:
    """How far the residuals of two environments lie apart.

    Attributes
    ----------
    environment, reference : the two
    w1 : Wasserstein-1 distance of their residuals, with interval and null; the null exchanges the
        rows' environments
    """

    environment: str
    reference: str
    w1: Estimate


@dataclass(frozen=True)
class Average:
    """An indicator averaged over environments with equal weight, as published tables do.

    Attributes
    ----------
    value : mean over the environments where it is finite; nan where that is none
    smallest, largest : over those environments
    used, left_out : environments averaged, and those where the indicator is undefined or infinite
    """

    value: float
    smallest: float
    largest: float
    used: tuple[str, ...]
    left_out: tuple[str, ...]


def average_over(ev: Evaluation, indicator: str) -> Average:
    """Mean of an indicator over environments, each with the same weight.

    Parameters
    ----------
    ev : the evaluation of all environments together
    indicator : a name of `Indicators`

    Notes
    -----
    shared definition: method, "Standard metrics": *pooled*, *per environment* and *mean over
    environments* are three choices. The range is that of the environments, not an interval.
    """
    values = {
        label: float(getattr(part.indicators, indicator))
        for label, part in ev.by_environment.items()
    }
    finite = {label: value for label, value in values.items() if isfinite(value)}
    if not finite:
        return Average(nan, nan, nan, (), tuple(values))
    return Average(
        value=float(np.mean(list(finite.values()))),
        smallest=min(finite.values()),
        largest=max(finite.values()),
        used=tuple(finite),
        left_out=tuple(label for label in values if label not in finite),
    )


def drift(
    ev: Evaluation,
    pairs: Sequence[tuple[str, str]] | None = None,
    *,
    n_boot: int = 200,
    n_perm: int = 200,
    random_state: int = 0,
) -> tuple[Drift, ...]:
    """Distance of the residual distributions of environments.

    Parameters
    ----------
    ev : the evaluation of all environments together
    pairs : (environment, reference) to compare; every pair by default
    n_boot, n_perm, random_state : as in `Evaluation.uncertainty`

    Returns
    -------
    one Drift a pair

    Raises
    ------
    PredictionsError
        the rows have no environments

    Notes
    -----
    *Ours*. The environments take the place of the groups: W1, its interval and its null are those
    of two groups. With base rates set to equal, every environment is weighted to the base rate
    of the pair, and what is left is drift of the errors given the label.
    """
    rows = ev.given
    if rows.environment is None:
        raise PredictionsError("Drift needs environments, and these rows have no such column.")
    labels = rows.environment.labels
    wanted = pairs or [(b, a) for a, b in combinations(labels, 2)]
    found = []
    for environment, reference in wanted:
        codes = [labels.index(environment), labels.index(reference)]
        mask = np.isin(rows.environment.codes, codes)
        two = rows.subset(mask, "another environment")
        assert two.environment is not None
        factor = replace(two.environment, name=ENVIRONMENT)
        both = evaluate_predictions(
            replace(two.with_feature(factor), environment=None),
            feature=factor.name,
            sensitive=environment,
            settings=ev.settings,
        )
        known = both.uncertainty(n_boot, n_perm, random_state=random_state)
        found.append(Drift(environment, reference, known["w1"]))
    return tuple(found)
