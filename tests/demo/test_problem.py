"""How a data set is cut, planted and cleaned: on small made-up tables, without the archives."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from demo.train.pictures import agreeing, flipped, halved, idx
from demo.train.problem import Problem, bands, standardised, table_problem


def problem(shift: float = 0.0) -> Problem:
    n = 1000
    environment = np.repeat(["a", "b", "c"], [500, 100, 400])
    x = pd.DataFrame({"v": np.arange(n) + np.where(environment == "c", shift, 0.0)})
    groups = pd.DataFrame({"g": np.where(np.arange(n) % 2, "x", "y")})
    return table_problem("toy", x, np.arange(n) % 3 == 0, groups, environment, ("a", "b"), "c")


def test_thirty_per_cent_of_each_training_environment_and_all_of_the_held_out_one() -> None:
    made = problem()
    counts = pd.crosstab(made.environment, made.split())
    assert counts.loc["a"].to_dict() == {"held-out": 0, "train": 350, "validation": 150}
    assert counts.loc["b"].to_dict() == {"held-out": 0, "train": 70, "validation": 30}
    assert counts.loc["c"].to_dict() == {"held-out": 400, "train": 0, "validation": 0}
    assert (made.split() == problem().split()).all()


def test_scaling_looks_at_training_rows_only() -> None:
    known = problem().environment != "c"
    near, far = problem(), problem(shift=1e6)
    assert (near.x[known] == far.x[known]).all()
    train = near.x[near.split() == "train"]
    assert train.mean() == pytest.approx(0, abs=1e-6)
    assert train.std() == pytest.approx(1, abs=1e-6)


def test_a_constant_column_stays_finite() -> None:
    x = np.array([[1.0], [1.0], [3.0]])
    assert standardised(x, np.array([True, True, False])).tolist() == [[0], [0], [2]]


def test_a_band_holds_its_lower_edge() -> None:
    ages = pd.Series([29, 30, 64, 65])
    assert bands(ages, [0, 30, 65, 200], ["young", "middle", "old"]).tolist() == [
        "young",
        "middle",
        "middle",
        "old",
    ]


def test_planted_attributes_agree_as_often_as_said() -> None:
    rng = np.random.default_rng(0)
    y = rng.random(100_000) < 0.3
    for share in (0.9, 0.2):
        assert (agreeing(y, np.full(len(y), share), rng) == y).mean() == pytest.approx(
            share, abs=0.01
        )
    assert (flipped(y, 0.1, rng) != y).mean() == pytest.approx(0.1, abs=0.01)


def test_images_are_read_and_halved() -> None:
    content = b"\x00\x00\x08\x03" + np.array([1, 28, 28], ">i4").tobytes() + bytes(784)
    image = np.array(idx(content))
    image[0, :2, 2:4] = 255
    small = halved(image)
    assert small.shape == (1, 14, 14)
    assert small[0, 0, 1] == 1
    assert small.sum() == 1
