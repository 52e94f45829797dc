"""The committed demo pack, read back: which runs there are, and where their tables lie."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from demo.cards import ALGORITHMS, DATASETS, TEACHING, DatasetCard, algorithm_title
from rise_core.columns import Roles

PREDICTIONS = Path(__file__).resolve().parent / "predictions"
INDICATORS = PREDICTIONS / "indicators.json"


@dataclass(frozen=True)
class PackRun:
    """One model of the demo and its prediction table.

    ``train_accuracy`` and ``validation_accuracy`` are means over the training environments, each
    of them counting the same.
    """

    dataset: str
    name: str
    algorithm: str
    settings: Mapping[str, float]
    seed: int
    train_accuracy: float
    validation_accuracy: float
    teaching: bool
    sha256: str
    table: Path

    @property
    def title(self) -> str:
        """The algorithm as it is shown; a stand-in and a teaching run are named as such."""
        if self.teaching:
            return TEACHING[self.name].title
        return algorithm_title(self.algorithm, DATASETS[self.dataset].images)


@dataclass(frozen=True)
class Pack:
    """One data set of the demo: its card, how it was trained, and its runs."""

    card: DatasetCard
    digest: str
    budget: Mapping[str, float]
    made_with: Mapping[str, str]
    runs: tuple[PackRun, ...]


def packs(folder: Path = PREDICTIONS) -> tuple[Pack, ...]:
    """Every data set that has a ``runs.json``, in the order of the cards."""
    return tuple(
        _read(folder / name, card)
        for name, card in DATASETS.items()
        if (folder / name / "runs.json").exists()
    )


def fingerprint(folder: Path = PREDICTIONS) -> str:
    """Sixteen hex digits that change when any table or setting of the demo changes."""
    files = [*sorted(folder.glob("*/runs.json")), *folder.glob(INDICATORS.name)]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def indicators() -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    """RISE indicators over all evaluated rows, by data set and run name; {} before they are made.

    Written by ``python -m demo.results``, so that filling the store need not compute them.
    """
    if not INDICATORS.exists():
        return {}
    content: dict[str, dict[str, dict[str, float]]] = json.loads(INDICATORS.read_text("utf-8"))
    return content


def roles(card: DatasetCard) -> Roles:
    """Which column of this data set's tables is what."""
    said = "written with the demo's tables"
    names = ("y_true", "y_prob", "sensitive_features", "environment", "row_id", "pos_label")
    return Roles(
        y_true="y_true",
        y_prob="y_prob",
        sensitive_features=tuple(column.name for column in card.sensitive),
        environment="environment",
        row_id="row_id",
        pos_label=card.positive,
        reasons=dict.fromkeys(names, said),
        confidence=dict.fromkeys(names, "high"),
    )


def _read(folder: Path, card: DatasetCard) -> Pack:
    content = json.loads((folder / "runs.json").read_text(encoding="utf-8"))
    order = {name: place for place, name in enumerate(ALGORITHMS)}
    runs = [
        PackRun(
            card.id,
            run["name"],
            run["algorithm"],
            run["settings"],
            run["seed"],
            run["train_accuracy"],
            run["validation_accuracy"],
            run["teaching"],
            run["sha256"],
            folder / f"{run['name']}.parquet",
        )
        for run in content["runs"]
    ]
    runs.sort(key=lambda run: (run.teaching, order[run.algorithm], run.seed))
    return Pack(card, content["digest"], content["budget"], content["made_with"], tuple(runs))
