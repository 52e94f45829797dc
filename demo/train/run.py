"""Train the grid on one data set, choose on validation, write the tables and ``runs.json``."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from demo.cards import DATASETS
from demo.train import tables, teaching
from demo.train.algorithms import Batch, fit, scores
from demo.train.archives import sha256
from demo.train.grid import (
    BUDGETS,
    COLLAPSED_IGA,
    EXPONENTIATED_GRADIENT,
    GRID,
    SEEDS,
)
from demo.train.problem import TRAIN, VALIDATION, Problem

Report = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Trained:
    """One trained model: where it stands on the training environments, and its scores."""

    algorithm: str
    settings: dict[str, float]
    seed: int
    train_accuracy: float
    validation_accuracy: float
    validation_accuracy_by_environment: dict[str, float]
    y_prob: NDArray[np.float32]

    def to_dict(self) -> dict[str, object]:
        """Everything but the scores, accuracies to four digits."""
        whole = {key: value for key, value in asdict(self).items() if key != "y_prob"}
        return json.loads(json.dumps(whole), parse_float=lambda text: round(float(text), 4))


def judge(
    problem: Problem,
    algorithm: str,
    settings: dict[str, float],
    seed: int,
    y_prob: NDArray[np.float32],
) -> Trained:
    """Accuracy on the training environments; each of them counts the same.

    ``y_prob`` covers all rows, the held-out ones too; nothing here looks at those.
    """
    right = (y_prob >= 0.5) == (problem.y == 1)
    split = problem.split()

    def accuracies(part: str) -> dict[str, float]:
        return {
            name: float(right[(problem.environment == name) & (split == part)].mean())
            for name in problem.train_environments
        }

    validation = accuracies(VALIDATION)
    return Trained(
        algorithm,
        settings,
        seed,
        float(np.mean(list(accuracies(TRAIN).values()))),
        float(np.mean(list(validation.values()))),
        validation,
        y_prob,
    )


def train_one(problem: Problem, algorithm: str, settings: dict[str, float], seed: int) -> Trained:
    """Fit one cell of the grid and score every row."""
    split = problem.split()
    environments = [
        Batch(torch.from_numpy(problem.x[rows]), torch.from_numpy(problem.y[rows]).float())
        for name in problem.train_environments
        for rows in [(problem.environment == name) & (split == TRAIN)]
    ]
    network = fit(algorithm, settings, environments, BUDGETS[problem.kind], seed)
    return judge(problem, algorithm, settings, seed, scores(network, torch.from_numpy(problem.x)))


def chosen(tried: Iterable[Trained]) -> list[Trained]:
    """The runs of the setting with the best mean validation accuracy over seeds."""
    by_setting: dict[str, list[Trained]] = {}
    for run in tried:
        by_setting.setdefault(json.dumps(run.settings), []).append(run)
    return max(by_setting.values(), key=lambda runs: np.mean([r.validation_accuracy for r in runs]))


def run(problem: Problem, out: Path, report: Report) -> None:
    """Train everything for one data set and write it below ``out``."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    rows = tables.evaluated_rows(problem)
    used = problem.split() != TRAIN
    order = np.argsort(problem.row_id[used], kind="stable")
    cells = [(name, settings) for name, grid in GRID.items() for settings in grid]
    total = len(cells) * len(SEEDS) + len(_lessons(problem))
    tried: list[Trained] = []
    for name, settings in cells:
        for seed in SEEDS:
            report(len(tried), total, f"{name} {_words(settings)}seed {seed}")
            tried.append(train_one(problem, name, settings, seed))
    kept = [run for name in GRID for run in chosen(t for t in tried if t.algorithm == name)]
    lessons: dict[str, Trained] = {}
    for name, make in _lessons(problem).items():
        report(len(tried) + len(lessons), total, name)
        lessons[name] = make()
    folder = out / problem.dataset
    records = []
    for name, model in [(f"{r.algorithm}-{r.seed}", r) for r in kept] + list(lessons.items()):
        path = folder / f"{name}.parquet"
        tables.write(DATASETS[problem.dataset], rows, model.y_prob[used][order], path)
        teaches = name in lessons
        records.append(
            {"name": name, "sha256": sha256(path), "teaching": teaches, **model.to_dict()}
        )
    _write_json(
        folder / "runs.json",
        {
            "dataset": problem.dataset,
            "rows": len(rows),
            "digest": tables.digest(rows),
            "train_environments": list(problem.train_environments),
            "held_out": problem.held_out,
            "budget": asdict(BUDGETS[problem.kind]),
            "made_with": {
                "python": platform.python_version(),
                **{name: version(name) for name in ("torch", "numpy", "scikit-learn", "fairlearn")},
            },
            "runs": records,
            "tried": [model.to_dict() for model in tried],
        },
    )
    report(total, total, "written")


def _lessons(problem: Problem) -> dict[str, Callable[[], Trained]]:
    if problem.dataset == "fashionweather":
        return {"iga-collapsed-0": lambda: train_one(problem, "iga", COLLAPSED_IGA, 0)}
    if problem.dataset == "adult":

        def mitigated() -> Trained:
            y_prob = teaching.exponentiated_gradient(problem, 0)
            name, settings = "exponentiated-gradient", EXPONENTIATED_GRADIENT
            return judge(problem, name, settings, 0, y_prob)

        return {"exponentiated-gradient-0": mitigated}
    return {}


def _words(settings: dict[str, float]) -> str:
    return "".join(f"{name} {value:g}, " for name, value in settings.items())


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
