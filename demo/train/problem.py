"""What a data set module hands to training: features, labels, groups, environments."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

SPLIT_SEED = 20261129
VALIDATION_SHARE = 0.3
TRAIN, VALIDATION, HELD_OUT = "train", "validation", "held-out"


@dataclass(frozen=True)
class Problem:
    """A labelled data set cut into environments, one of them held out.

    ``x`` (n, d) or (n, 3, 14, 14) float32; ``y`` (n,) int8, 1 = positive class; ``sensitive``
    n rows of text; ``environment`` (n,) text; ``row_id`` (n,) int32, the row in the source.
    """

    dataset: str
    kind: Literal["image", "table"]
    x: NDArray[np.float32]
    y: NDArray[np.int8]
    sensitive: pd.DataFrame
    environment: NDArray[np.str_]
    train_environments: tuple[str, ...]
    held_out: str
    row_id: NDArray[np.int32]

    def split(self) -> NDArray[np.str_]:
        """``train``, ``validation`` or ``held-out`` for each row, the same on every call.

        Thirty per cent of every training environment is for validation: for the choice of
        settings, and as evaluated rows. Independent of the training seed, so that all models of
        a data set are evaluated on the same rows.
        """
        part = np.where(self.environment == self.held_out, HELD_OUT, TRAIN).astype("U10")
        rng = np.random.default_rng(SPLIT_SEED)
        for name in self.train_environments:
            rows = np.flatnonzero(self.environment == name)
            chosen = rng.permutation(rows)[: round(VALIDATION_SHARE * len(rows))]
            part[chosen] = VALIDATION
        return part


def standardised(x: NDArray[np.float64], reference: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Columns of ``x`` centred and scaled by the reference rows (the training part) alone."""
    mean, spread = x[reference].mean(axis=0), x[reference].std(axis=0)
    # A column that is constant in training carries nothing: scale 1 keeps it finite elsewhere.
    return np.clip((x - mean) / np.where(spread > 0, spread, 1.0), -8, 8).astype(np.float32)


def table_problem(
    dataset: str,
    features: pd.DataFrame,
    y: NDArray[np.bool_],
    sensitive: pd.DataFrame,
    environment: NDArray[np.str_],
    train_environments: tuple[str, ...],
    held_out: str,
) -> Problem:
    """A table data set: features one-hot where they are text, scaled by the training part."""
    raw = pd.get_dummies(features, dtype=float).to_numpy(np.float64)
    shape = Problem(
        dataset,
        "table",
        np.empty((len(raw), 0), np.float32),
        y.astype(np.int8),
        sensitive.astype(str),
        environment.astype(str),
        train_environments,
        held_out,
        np.asarray(features.index, np.int32),
    )
    x = standardised(raw, shape.split() == TRAIN)
    return replace(shape, x=x)


def bands(values: pd.Series, edges: list[float], labels: list[str]) -> pd.Series:
    """Numbers as text bands; an edge belongs to the band above it."""
    return pd.cut(values, edges, labels=labels, right=False).astype(str)
