"""One evaluation of many rows, against a plain sort and against Fairlearn's MetricFrame."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks.timing import Goal, Settings, Table, timed, together
from rise_core import evaluate

SORTS = 10
TIMES_FAIRLEARN = 50


def data(rows: int, seed: int) -> pd.DataFrame:
    """Labels, scores and two groups of unequal size and base rate, the groups as text."""
    rng = np.random.default_rng(seed)
    female = rng.random(rows) < 0.35
    y_true = (rng.random(rows) < np.where(female, 0.3, 0.5)).astype(int)
    noise = rng.normal(0, np.where(female, 1.2, 0.9))
    y_prob = 1 / (1 + np.exp(-(2.5 * y_true - 1.2 + noise)))
    sex = pd.Series(np.where(female, "female", "male"), dtype="str")
    return pd.DataFrame({"y_true": y_true, "y_prob": y_prob, "sex": sex})


def run(settings: Settings) -> Table:
    """Time ``evaluate`` as a user calls it: pandas columns in, every indicator out."""
    from fairlearn.metrics import MetricFrame, selection_rate
    from sklearn.metrics import accuracy_score

    frame = data(settings.rows, settings.seed)
    y_true, y_prob, sex = frame["y_true"], frame["y_prob"], frame["sex"]
    residuals = (y_prob - y_true).to_numpy(dtype=np.float64)
    decisions = (y_prob >= 0.5).astype(int)
    metrics = {"accuracy": accuracy_score, "selection rate": selection_rate}

    def everything() -> object:
        ev = evaluate(y_true, y_prob, sensitive_features=sex)
        return ev.indicators, ev.groups, ev.displacements, ev.segments

    sort, ours = together(
        {
            "np.sort of the residuals": lambda: np.sort(residuals),
            "evaluate(), two groups": everything,
        },
        settings.repeats,
        {"evaluate(), two groups": "every indicator, knee, displacement and segment"},
    )
    fairlearn = timed(
        "Fairlearn MetricFrame",
        lambda: (
            MetricFrame(
                metrics=metrics, y_true=y_true, y_pred=decisions, sensitive_features=sex
            ).by_group
        ),
        min(settings.repeats, 3),
        "accuracy and selection rate by group",
    )
    return Table(
        f"One evaluation of {settings.rows:,} rows",
        (sort, ours, fairlearn),
        (
            Goal("evaluate() in sorts", ours.seconds / sort.seconds, SORTS, at_most=True),
            Goal(
                "Fairlearn in evaluate()s",
                fairlearn.seconds / ours.seconds,
                TIMES_FAIRLEARN,
                at_most=False,
            ),
        ),
    )
