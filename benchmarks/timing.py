"""Measure, and say what was measured on which machine."""

from __future__ import annotations

import gc
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Settings:
    """What a benchmark is asked for.

    Attributes
    ----------
    rows : rows of the large case
    repeats : how often each thing is timed; the median counts
    seed : of all random numbers
    """

    rows: int = 1_000_000
    repeats: int = 5
    seed: int = 0


@dataclass(frozen=True)
class Line:
    """One thing that was timed.

    Attributes
    ----------
    name : what was done
    seconds : median of the repeats
    low, high : fastest and slowest repeat, seconds
    repeats : how many
    note : what the number is compared with, or how it was got
    """

    name: str
    seconds: float
    low: float
    high: float
    repeats: int
    note: str = ""


@dataclass(frozen=True)
class Goal:
    """A ratio and the bound it should keep."""

    name: str
    value: float
    bound: float
    at_most: bool

    @property
    def met(self) -> bool:
        """Whether the ratio keeps its bound."""
        return self.value <= self.bound if self.at_most else self.value >= self.bound


@dataclass(frozen=True)
class Table:
    """The outcome of one benchmark."""

    title: str
    lines: tuple[Line, ...]
    goals: tuple[Goal, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-safe."""
        goals = [asdict(goal) | {"met": goal.met} for goal in self.goals]
        return {"title": self.title, "lines": [asdict(x) for x in self.lines], "goals": goals}

    def to_text(self) -> str:
        """A table for the terminal."""
        width = max(len(line.name) for line in self.lines) + 2
        text = [self.title]
        for line in self.lines:
            spread = f"{line.low:.4f} to {line.high:.4f}, {line.repeats} repeats"
            note = f"  {line.note}" if line.note else ""
            text.append(f"  {line.name:<{width}}{line.seconds:9.4f} s  ({spread}){note}")
        for goal in self.goals:
            sign = "≤" if goal.at_most else "≥"
            verdict = "met" if goal.met else "MISSED"
            text.append(f"  {goal.name}: {goal.value:.1f} (aim {sign} {goal.bound:g}: {verdict})")
        return "\n".join(text)


def timed(name: str, action: Callable[[], object], repeats: int, note: str = "") -> Line:
    """Median time of an action, after one untimed run that warms caches and imports."""
    action()
    return together({name: action}, repeats, {name: note}, warm=False)[0]


def together(
    actions: dict[str, Callable[[], object]],
    repeats: int,
    notes: dict[str, str] | None = None,
    *,
    warm: bool = True,
) -> list[Line]:
    """Median times of actions that take turns, so that a busy moment hits all of them alike."""
    seconds: dict[str, list[float]] = {name: [] for name in actions}
    if warm:
        for action in actions.values():
            action()
    for _ in range(repeats):
        for name, action in actions.items():
            gc.collect()
            started = time.perf_counter()
            action()
            seconds[name].append(time.perf_counter() - started)
    return [
        Line(name, statistics.median(s), min(s), max(s), repeats, (notes or {}).get(name, ""))
        for name, s in seconds.items()
    ]


def machine() -> str:
    """Processor, cores, system and the versions that matter, on one line."""
    packages = ("numpy", "pandas", "fairlearn")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    python = ".".join(map(str, sys.version_info[:3]))
    cores = os.cpu_count() or 1
    return f"{_processor()}, {cores} cores, {platform.system()}; Python {python}, {versions}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
