"""Write ``demo/RESULTS.md`` from the committed tables: ``python -m demo.results``."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from demo.cards import DATASETS, DatasetCard
from demo.findings import FINDINGS, INTRODUCTION, PAPER
from demo.pack import INDICATORS, Pack, PackRun, packs
from rise_core import Evaluation, evaluate

REPORT = Path(__file__).resolve().parent / "RESULTS.md"
COLUMNS = (
    ("accuracy", "Acc"),
    ("dp", "DP"),
    ("md", "MD"),
    ("f_mean", "F_mean"),
    ("f_shift", "F_shift"),
    ("f_acc", "F_acc"),
    ("w1", "W1"),
    ("w1_equal", "W1, equal base rates"),
)


@dataclass(frozen=True)
class Measured:
    """One run in the held-out environment, and its indicators over all evaluated rows."""

    run: PackRun
    held_out: Mapping[str, float]
    pooled: Mapping[str, float]
    majority: float
    groups: tuple[str, str]
    base_rates: tuple[float, float]


def evaluation(run: PackRun, card: DatasetCard) -> Evaluation:
    """Every evaluated row of one run, by the first sensitive column of its data set."""
    frame = pd.read_parquet(run.table)
    return evaluate(
        frame["y_true"],
        frame["y_prob"],
        sensitive_features=frame[[column.name for column in card.sensitive]],
        environment=frame["environment"],
        pos_label=card.positive,
    )


def measure(run: PackRun, card: DatasetCard) -> Measured:
    """Indicators of one run, in the held-out environment and over all its rows."""
    whole = evaluation(run, card)
    there = whole.by_environment[card.held_out]
    level = there.with_settings(base_rates="equal")
    sensitive, reference = str(there.sensitive), str(there.reference)
    return Measured(
        run,
        asdict(there.indicators) | {"w1_equal": level.indicators.w1},
        asdict(whole.indicators),
        there.majority_accuracy,
        (sensitive, reference),
        (there.groups[sensitive].base_rate, there.groups[reference].base_rate),
    )


def cell(values: Sequence[float]) -> str:
    """Mean and range over seeds, ``.810 (.790–.830)``; “–” where no seed has a value."""
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return "–"
    mean, low, high = (number(float(f(known))) for f in (np.mean, np.min, np.max))
    remarks = [] if low == high else [f"{low}–{high}"]
    if len(known) < len(values):
        remarks.append(f"{len(known)} of {len(values)} seeds")
    return f"{mean} ({'; '.join(remarks)})" if remarks else mean


def number(value: float) -> str:
    """Three decimals below 10, fewer above; no leading zero."""
    if math.isinf(value):
        return "∞"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    text = f"{value:.3f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 and float(text) < 1 else text


def section(pack: Pack, measured: Sequence[Measured]) -> list[str]:
    """One data set: what it is, its table, facts counted from it, and what we make of it."""
    card = pack.card
    sensitive, reference = measured[0].groups
    rate, other = measured[0].base_rates
    majority = measured[0].majority
    lines = [
        f"## {card.title}: {card.held_out}",
        "",
        f"{card.question} {card.sensitive[0].title}: {sensitive} against {reference}; "
        f"{card.held_out_rows:,} rows, base rates {number(rate)} and {number(other)}. "
        f"**Always saying the more frequent label is right in {number(majority)}.**",
        "",
        "| | " + " | ".join(title for _, title in COLUMNS) + " |",
        "|---" * (len(COLUMNS) + 1) + "|",
    ]
    by_title: dict[str, list[Measured]] = {}
    for one in measured:
        by_title.setdefault(one.run.title, []).append(one)
    for title, seeds in by_title.items():
        cells = [cell([one.held_out[key] for one in seeds]) for key, _ in COLUMNS]
        mark = " *(teaching)*" if seeds[0].run.teaching else ""
        lines.append(f"| {title}{mark} | " + " | ".join(cells) + " |")
    return [*lines, "", *counted(measured, majority), "", FINDINGS[card.id], ""]


def counted(measured: Sequence[Measured], majority: float) -> list[str]:
    """Sentences whose numbers are counted here, so that they cannot go stale."""
    frame = pd.DataFrame(
        {
            "algorithm": [one.run.algorithm for one in measured],
            **{key: [one.held_out[key] for one in measured] for key, _ in COLUMNS},
        }
    )[[not one.run.teaching for one in measured]]
    by = frame.groupby("algorithm")
    mean = by["accuracy"].mean()
    better = int((mean > majority).sum())
    between = {key: np.ptp(by[key].mean()) for key in ("accuracy", "w1")}
    within = {key: (by[key].max() - by[key].min()).max() for key in ("accuracy", "w1")}
    return [
        f"{better} of {len(mean)} algorithms beat the majority baseline on average over the seeds. "
        f"Accuracy differs by {number(between['accuracy'])} between the means of the algorithms, "
        f"and by up to {number(within['accuracy'])} between the seeds of one; W1 by "
        f"{number(between['w1'])} and {number(within['w1'])}."
    ]


def settings_table(found: Sequence[Pack]) -> list[str]:
    """Which setting of the grid was chosen, where there was a choice."""
    rows: dict[str, dict[str, str]] = {}
    for pack in found:
        for run in pack.runs:
            if not run.teaching and run.seed == 0 and run.settings:
                text = ", ".join(f"{key} {value:g}" for key, value in run.settings.items())
                rows.setdefault(run.algorithm, {})[pack.card.id] = text
    names = [pack.card.id for pack in found]
    return [
        "| chosen | " + " | ".join(DATASETS[name].title for name in names) + " |",
        "|---" * (len(names) + 1) + "|",
        *(
            f"| {algorithm} | " + " | ".join(row.get(name, "") for name in names) + " |"
            for algorithm, row in rows.items()
        ),
    ]


def indicators_json(measured: Iterable[Measured]) -> str:
    """Indicators over all evaluated rows, by data set and run; undefined ones are left out."""
    out: dict[str, dict[str, dict[str, float]]] = {}
    for one in measured:
        values = {k: round(v, 6) for k, v in one.pooled.items() if math.isfinite(v)}
        out.setdefault(one.run.dataset, {})[one.run.name] = values
    return json.dumps(out, indent=1) + "\n"


def report() -> tuple[str, str]:
    """Return the text of ``RESULTS.md`` and of ``indicators.json``, from the committed tables."""
    found = packs()
    measured = [[measure(run, pack.card) for run in pack.runs] for pack in found]
    lines = ["# What the demo's models do where they were not trained", "", INTRODUCTION, ""]
    for pack, of_pack in zip(found, measured, strict=True):
        lines += section(pack, of_pack)
    lines += ["## Settings", "", *settings_table(found), "", "## The paper's story", "", PAPER, ""]
    return "\n".join(lines), indicators_json(one for of_pack in measured for one in of_pack)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo.results", description=__doc__)
    parser.add_argument("--out", type=Path, default=REPORT)
    given = parser.parse_args()
    text, values = report()
    given.out.write_text(text, encoding="utf-8")
    INDICATORS.write_text(values, encoding="utf-8")
    print(f"{given.out} and {INDICATORS.name} written")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
