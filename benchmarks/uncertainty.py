"""500 bootstrap and 500 permutation replicates, against Fairlearn's bootstrap."""

from __future__ import annotations

import time
from functools import partial

from benchmarks.evaluation import data
from benchmarks.timing import Goal, Line, Settings, Table, timed
from rise_core import evaluate
from rise_core.uncertainty import uncertainty

REPLICATES = 500
# Seconds for a hundredth of the rows asked for, for all of them, and for ten times as many.
AIMS = {0.01: 1.0, 1.0: 2.0, 10.0: 4.0}
FEW = (2, 6)


def run(settings: Settings) -> Table:
    """Time ``uncertainty`` on evaluations that are there already."""
    lines, goals = [], []
    for factor, aim in AIMS.items():
        rows = int(settings.rows * factor)
        frame = data(rows, settings.seed)
        ev = evaluate(frame["y_true"], frame["y_prob"], sensitive_features=frame["sex"])
        ev.segments  # noqa: B018 - a cached part of the evaluation, not of its uncertainty
        line = timed(
            f"uncertainty(), {rows:,} rows",
            partial(uncertainty, ev, REPLICATES, REPLICATES),
            min(settings.repeats, 3),
            f"{REPLICATES} + {REPLICATES} replicates of every value",
        )
        lines.append(line)
        goals.append(Goal(f"seconds, {rows:,} rows", line.seconds, aim, at_most=True))
    lines.append(fairlearn(settings.rows // 10, settings.seed))
    return Table("Intervals and nulls", tuple(lines), tuple(goals))


def fairlearn(rows: int, seed: int) -> Line:
    """Fairlearn's own bootstrap of two metrics, extrapolated from few replicates."""
    from fairlearn.metrics import MetricFrame, selection_rate
    from sklearn.metrics import accuracy_score

    frame = data(rows, seed)
    taken = []
    for replicates in FEW:
        start = time.perf_counter()
        MetricFrame(
            metrics={"accuracy": accuracy_score, "selection rate": selection_rate},
            y_true=frame["y_true"],
            y_pred=(frame["y_prob"] >= 0.5).astype(int),
            sensitive_features=frame["sex"],
            n_boot=replicates,
            ci_quantiles=[0.025, 0.975],
            random_state=seed,
        )
        taken.append(time.perf_counter() - start)
    each = (taken[1] - taken[0]) / (FEW[1] - FEW[0])
    seconds = taken[0] + each * (REPLICATES - FEW[0])
    note = f"{REPLICATES} replicates of 2 metrics, extrapolated from {FEW[0]} and {FEW[1]}; no null"
    return Line(f"Fairlearn bootstrap, {rows:,} rows", seconds, seconds, seconds, 1, note)
