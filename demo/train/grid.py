"""The whole grid of settings, fixed before any held-out row was looked at.

Each algorithm is trained with each of its settings and each seed. The setting with the best mean
accuracy over the validation parts of the training environments and over the seeds is kept (of two
equal ones the earlier line); only that one is ever applied to the held-out environment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Budget:
    """What every algorithm gets, the same for all of them."""

    steps: int
    rows_per_environment: int = 256
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    warm_up: float = 0.3


BUDGETS: dict[Literal["image", "table"], Budget] = {
    "image": Budget(steps=400),
    "table": Budget(steps=600),
}

GRID: dict[str, tuple[dict[str, float], ...]] = {
    "erm": ({},),
    "irm": ({"lambda": 100.0}, {"lambda": 10.0}),
    "iga": ({"lambda": 1.0}, {"lambda": 3.0}),
    "mbdg": ({"gamma": 0.025, "eta": 0.05}, {"gamma": 0.1, "eta": 0.05}),
    "groupdro": ({"eta": 0.01},),
    "vrex": ({"beta": 10.0}, {"beta": 100.0}),
    "coral": ({"gamma": 1.0},),
    "mixup": ({"alpha": 0.2},),
}

#: Not part of the comparison: a run that shows what goes wrong. Never chosen by accuracy.
COLLAPSED_IGA = {"lambda": 1000.0}
EXPONENTIATED_GRADIENT = {"eps": 0.01, "max_iter": 12.0}
