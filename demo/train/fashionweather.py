"""FashionWeather: coats and dresses or tops, night or day as groups, weather as environment."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from demo.train.archives import CACHE, FASHION_MNIST, fetch, member
from demo.train.pictures import agreeing, flipped, halved, idx
from demo.train.problem import Problem

TRAIN_ENVIRONMENTS = ("clear", "fog", "rain")
HELD_OUT = "snow"
AGREEMENT = {"clear": 0.85, "fog": 0.7, "rain": 0.7, "snow": 0.2}
GARMENTS = {0: "T-shirt", 2: "pullover", 3: "dress", 4: "coat", 6: "shirt"}
POSITIVE = ("coat", "dress")
LABEL_NOISE = 0.05
SEED = 11


def build(cache: Path = CACHE) -> Problem:
    """Put five garments of Fashion-MNIST into the weather; its test images are held out."""
    archive = fetch(FASHION_MNIST, cache)

    def part(name: str) -> NDArray[np.uint8]:
        return idx(member(archive, f"./usr/share/datasets/fashion-mnist/{name}-ubyte.gz"))

    images = np.concatenate([part("train-images-idx3"), part("t10k-images-idx3")])
    label = np.concatenate([part("train-labels-idx1"), part("t10k-labels-idx1")])
    row = np.flatnonzero(np.isin(label, list(GARMENTS)))
    training = row < 60_000
    garment = np.array([GARMENTS[code] for code in label[row]])

    rng = np.random.default_rng(SEED)
    environment = np.full(len(row), HELD_OUT, "U5")
    names = np.arange(training.sum()) % len(TRAIN_ENVIRONMENTS)
    environment[training] = np.array(TRAIN_ENVIRONMENTS)[rng.permutation(names)]
    y = flipped(np.isin(garment, POSITIVE), LABEL_NOISE, rng)
    night = agreeing(y, np.vectorize(AGREEMENT.get)(environment), rng)
    return Problem(
        "fashionweather",
        "image",
        _scene(halved(images[row]), night, environment, rng),
        y.astype(np.int8),
        pd.DataFrame({"time_of_day": np.where(night, "night", "day"), "garment": garment}),
        environment,
        TRAIN_ENVIRONMENTS,
        HELD_OUT,
        row.astype(np.int32),
    )


def _scene(
    grey: NDArray[np.float32],
    night: NDArray[np.bool_],
    environment: NDArray[np.str_],
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    """Garment before a sky, dimmed at night, seen through the weather; (n, 3, 14, 14) in [0, 1]."""
    sky = np.where(night[:, None], (0.05, 0.06, 0.2), (0.45, 0.65, 0.95))[:, :, None, None]
    light = np.where(night, 0.45, 1.0)[:, None, None, None]
    cover = grey[:, None]
    scene = np.where(cover > 0.05, cover * light, sky).astype(np.float32)

    fog = (environment == "fog")[:, None, None, None]
    scene = np.where(
        fog, 0.45 * scene + 0.55 * np.where(night, 0.35, 0.8)[:, None, None, None], scene
    )
    rain = (environment == "rain")[:, None, None, None]
    streaks = np.repeat(rng.random((len(grey), 1, 5, 14)) < 0.15, 3, axis=2)[:, :, :14]
    scene = np.where(rain, np.where(streaks, 0.6, 0.75 * scene), scene)
    snow = (environment == "snow")[:, None, None, None]
    flakes = rng.random((len(grey), 1, 14, 14)) < 0.12
    scene = np.where(snow, np.where(flakes, 1.0, 0.85 * scene + 0.12), scene)
    return scene.astype(np.float32)
