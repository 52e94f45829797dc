"""How often the intervals hold the truth: ``python -m benchmarks.coverage`` (an hour or so).

Every situation is a population that rows can be drawn from without end. Its true values come from
many large samples; each data set is then asked whether its intervals hold them. One line of JSON
is written per situation and size, as soon as it is known.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from dataclasses import dataclass, replace
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rise_core import Evaluation, compare, evaluate

FloatArray = NDArray[np.float64]
SIZES = (300, 3_000, 30_000)
LARGE, SAMPLES = 1_000_000, 6
INDICATORS = ("accuracy", "dp", "md", "md_decision", "f_mean", "f_shift", "f_acc", "w1")


@dataclass(frozen=True)
class Situation:
    """A population.

    Attributes
    ----------
    name : what it stands for
    shares : of the groups
    base_rates : P(y = 1) of each group
    bias : added to each group's log-odds
    noise : standard deviation of the log-odds of each group
    signal : how far apart the labels are, log-odds
    options : passed to `evaluate`
    cluster : rows that share a random part of their log-odds; 1 for none
    rival : added to the groups' log-odds by a second model on the same rows; None for no second
    """

    name: str
    shares: tuple[float, ...] = (2 / 3, 1 / 3)
    base_rates: tuple[float, ...] = (0.4, 0.4)
    bias: tuple[float, ...] = (0.0, 0.0)
    noise: tuple[float, ...] = (1.0, 1.0)
    signal: float = 2.5
    options: tuple[tuple[str, Any], ...] = ()
    cluster: int = 1
    rival: tuple[float, ...] | None = None

    @property
    def alike(self) -> bool:
        """Whether all groups are the same, given the label at equal base rates."""
        same_rates = len(set(self.base_rates)) == 1 or ("base_rates", "equal") in self.options
        return same_rates and len(set(self.bias)) == 1 and len(set(self.noise)) == 1

    def sample(self, n: int, rng: np.random.Generator) -> Evaluation:
        """Draw and evaluate ``n`` rows, groups in their exact shares."""
        return self.pair(n, rng)[0]

    def pair(self, n: int, rng: np.random.Generator) -> tuple[Evaluation, Evaluation]:
        """Draw rows, and evaluate two models on them; the second adds ``rival`` and noise."""
        sizes = [round(n * share / self.cluster) for share in self.shares]
        group = np.repeat(np.arange(len(sizes)), sizes)
        common = rng.normal(0, 1, group.size)
        owner = np.repeat(np.arange(group.size), self.cluster)
        group = group[owner]
        y = (rng.random(group.size) < np.array(self.base_rates)[group]).astype(int)
        spread = np.array(self.noise)[group]
        noise = rng.normal(0, spread)
        if self.cluster > 1:
            noise = (noise + spread * common[owner]) / np.sqrt(2)
        odds = self.signal * (y - 0.5) + np.array(self.bias)[group] + noise
        labels = np.array([f"g{i}" for i in range(len(sizes))])[group]
        options = dict(self.options)
        if self.cluster > 1:
            options["cluster"] = owner
        other = odds if self.rival is None else odds + np.array(self.rival)[group]
        if self.rival is not None:
            other = other + rng.normal(0, 0.5, group.size)
        first, second = (
            evaluate(y, 1 / (1 + np.exp(-z)), sensitive_features=labels, **options)
            for z in (odds, other)
        )
        return first, second


FOUR = Situation(
    "four groups, alike",
    shares=(0.4, 0.3, 0.2, 0.1),
    base_rates=(0.4,) * 4,
    bias=(0.0,) * 4,
    noise=(1.0,) * 4,
)
SITUATIONS = (
    Situation("alike"),
    Situation("mild difference", base_rates=(0.4, 0.35), bias=(0, 0.2), noise=(1.0, 1.2)),
    Situation("strong difference", base_rates=(0.5, 0.3), bias=(0, 0.6), noise=(0.9, 1.6)),
    Situation("accurate model, small difference", signal=9.0, noise=(1.5, 1.8)),
    Situation(
        "alike given the label, at equal base rates",
        base_rates=(0.6, 0.3),
        options=(("base_rates", "equal"),),
    ),
    Situation("alike, clusters of 5", cluster=5),
    FOUR,
    replace(FOUR, name="four groups, one apart", bias=(0.0, 0.0, 0.6, 0.0)),
    Situation(
        "decision gap, mild difference",
        base_rates=(0.4, 0.35),
        bias=(0, 0.3),
        noise=(1.0, 1.2),
        options=(("residual", "decision_gap"),),
    ),
)


RIVALS = (
    Situation("paired: both alike", rival=(0.0, 0.0)),
    Situation("paired: alike and apart", rival=(0.0, 0.5)),
    Situation(
        "paired: both apart",
        base_rates=(0.4, 0.35),
        bias=(0, 0.3),
        noise=(1.0, 1.2),
        rival=(0.0, -0.8),
    ),
)


@dataclass(frozen=True)
class Truth:
    """True values of a population: indicators, Δh and Δd, and one large sample."""

    indicators: dict[str, float]
    displacements: dict[tuple[Any, ...], float]
    large: Evaluation


def truth_of(situation: Situation, rng: np.random.Generator) -> Truth:
    """Average signed values over large samples; 0 is exact where the groups are alike."""
    large = replace(situation, cluster=1)
    return _truth_from([large.sample(LARGE, rng) for _ in range(SAMPLES)], situation.alike)


def _truth_from(drawn: list[Evaluation], alike: bool) -> Truth:
    indicators = {
        name: float(np.mean([getattr(ev.indicators, name) for ev in drawn])) for name in INDICATORS
    }
    keys = ["side", "group", "reference"]
    tables = [ev.displacements.set_index(keys) for ev in drawn]
    mean = sum(tables[1:], tables[0]) / len(tables)
    sides = mean.abs().groupby("side").max()
    indicators["f_shift"] = float(sides["h"].mean())
    indicators["f_acc"] = float(sides["v"].mean())
    fair = dict.fromkeys(INDICATORS, 0.0) | {"dp": 1.0, "f_mean": 1.0}
    if alike:
        indicators = {**fair, "accuracy": indicators["accuracy"]}
        mean = mean * 0
    displacements: dict[tuple[Any, ...], float] = {
        (*row[:3], name): float(row[3 + i])
        for row in mean.reset_index()[[*keys, "delta_h", "delta_d"]].to_numpy().tolist()
        for i, name in enumerate(("delta_h", "delta_d"))
    }
    return Truth(indicators, displacements, drawn[0])


def ask(ev: Evaluation, truth: Truth, alike: bool, replicates: int, seed: int) -> dict[str, Any]:
    """Whether each interval of one data set holds the truth, its length, and its p-value."""
    u = ev.uncertainty(replicates, replicates, random_state=seed)
    found: dict[str, Any] = {}
    for name, estimate in u.indicators.items():
        found[name] = _holds(estimate, truth.indicators[name])
    moves = [
        _holds(e, truth.displacements[e.side, e.group, e.reference, e.name])
        for e in u.displacements
        if (e.side, e.group, e.reference, e.name) in truth.displacements
    ]
    found["delta"] = moves[len(moves) // 2]
    for segment in ev.segments:
        if segment.name != "core":
            continue
        a, b = (truth.large.groups[label].sample for label in segment.pair)
        q0, q1 = segment.q0, segment.q1
        if not q1 > q0:
            continue
        q = q0 + (q1 - q0) * (np.arange(2000) + 0.5) / 2000
        apart = a.at(q) - b.at(q)
        gap, area = float(apart.mean()), float(np.abs(apart).mean() * (q1 - q0))
        true = {"mean_gap": 0.0 if alike else gap, "area": 0.0 if alike else area}
        for e in u.segments:
            if e.segment == "core" and e.name in true:
                found[f"core {e.name}"] = _holds(e, true[e.name])
    return found


def _holds(estimate: Any, true: float) -> tuple[float, float, float]:
    if isnan(estimate.low):
        return nan, nan, nan
    # The truth itself is known to some digits only.
    held = estimate.low - 1e-9 <= true <= estimate.high + 1e-9
    return float(held), estimate.high - estimate.low, estimate.p_value


def simulate_pair(
    situation: Situation, n: int, data_sets: int, replicates: int, seed: int
) -> dict[str, Any]:
    """Coverage of paired differences, and how often a verdict is the wrong way round."""
    rng = np.random.default_rng(seed)
    assert situation.rival is not None
    drawn = [situation.pair(LARGE, rng) for _ in range(SAMPLES)]
    alike = situation.alike, situation.alike and len(set(situation.rival)) == 1
    true = [
        _truth_from([pair[i] for pair in drawn], fair).indicators for i, fair in enumerate(alike)
    ]
    held: dict[str, list[float]] = {name: [] for name in INDICATORS}
    length: dict[str, list[float]] = {name: [] for name in INDICATORS}
    for i in range(data_sets):
        a, b = situation.pair(n, rng)
        compared = compare({"a": a, "b": b}, n_boot=replicates, n_perm=replicates, random_state=i)
        for row in compared.differences.to_dict("records"):
            gap = true[1][row["indicator"]] - true[0][row["indicator"]]
            within = row["low"] - 1e-9 <= gap <= row["high"] + 1e-9
            held[row["indicator"]].append(nan if isnan(row["low"]) else float(within))
            length[row["indicator"]].append(row["high"] - row["low"])
    return {
        "situation": situation.name,
        "n": n,
        "data_sets": data_sets,
        "replicates": replicates,
        "coverage": {k: _share(np.array(v)) for k, v in held.items()},
        "length": {k: _share(np.array(v), np.nanmedian) for k, v in length.items()},
    }


def simulate(
    situation: Situation, n: int, data_sets: int, replicates: int, seed: int
) -> dict[str, Any]:
    """Coverage, median length and, for alike groups, how uniform the p-values are."""
    rng = np.random.default_rng(seed)
    truth = truth_of(situation, rng)
    started = time.perf_counter()
    answers = [
        ask(situation.sample(n, rng), truth, situation.alike, replicates, i)
        for i in range(data_sets)
    ]
    names = Counter(name for answer in answers for name in answer)
    values = {name: np.array([a.get(name, (nan, nan, nan)) for a in answers]).T for name in names}
    result: dict[str, Any] = {
        "situation": situation.name,
        "n": n,
        "data_sets": data_sets,
        "replicates": replicates,
        "seconds": round(time.perf_counter() - started, 1),
        "truth": {k: round(v, 5) for k, v in truth.indicators.items()},
        "coverage": {k: _share(v[0]) for k, v in values.items()},
        "length": {k: _share(v[1], np.nanmedian) for k, v in values.items()},
        "no_interval": {k: int(np.isnan(v[0]).sum()) for k, v in values.items()},
        "p_below_05": {k: _share(v[2] <= 0.05) for k, v in values.items() if k != "accuracy"},
    }
    if situation.alike:
        result["ks_p"] = {k: _uniform(v[2]) for k, v in values.items() if k != "accuracy"}
    return result


def _share(values: FloatArray, of: Any = np.nanmean) -> float:
    return nan if np.isnan(values).all() else round(float(of(values)), 4)


def _uniform(p_values: FloatArray) -> float:
    from scipy.stats import kstest

    kept = p_values[~np.isnan(p_values)]
    return round(float(kstest(kept, "uniform").pvalue), 4) if kept.size else nan


TABLE = (*INDICATORS, "delta", "core area", "core mean_gap")
HEADS = (
    "Acc",
    "DP",
    "MD",
    "MD dec.",
    "F_mean",
    "F_shift",
    "F_acc",
    "W1",
    "Δ knee",
    "core area",
    "core gap",
)


def table(path: Path) -> str:
    """Markdown of a file of results: coverage of every rule, situation and size."""
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    text = ["| situation | n | " + " | ".join(HEADS) + " |", "|---" * (len(HEADS) + 2) + "|"]
    for line in lines:
        held = [line["coverage"].get(name) for name in TABLE]
        shown = ["–" if x is None or isnan(x) else f"{x:.2f}".lstrip("0") for x in held]
        text.append(f"| {line['situation']} | {line['n']:,} | " + " | ".join(shown) + " |")
    return "\n".join(text)


def main() -> None:
    """Simulate what was asked for, or show what was simulated."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--data-sets", type=int, default=300)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--only", nargs="+", type=int, help="numbers of situations, from 0")
    parser.add_argument("--out", type=Path, default=Path("coverage.jsonl"))
    parser.add_argument("--table", type=Path, metavar="FILE", help="only show such a file")
    asked = parser.parse_args()
    if asked.table:
        print(table(asked.table))
        return
    known = (*SITUATIONS, *RIVALS)
    chosen = known if asked.only is None else [known[i] for i in asked.only]
    for n in asked.sizes:
        for situation in chosen:
            run = simulate if situation.rival is None else simulate_pair
            line = run(situation, n, asked.data_sets, asked.replicates, seed=n)
            print(situation.name, n, line["coverage"], flush=True)
            with asked.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
