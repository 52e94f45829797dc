"""The engine needs numpy and pandas, whatever else is or is not installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

# What an installation of numpy and pandas brings; every other installed package is hidden.
ALLOWED = {"numpy", "pandas", "dateutil", "six", "tzdata", "pytz", "rise_core"}
HIDDEN = {name for name in packages_distributions() if not name.startswith("_")} - ALLOWED

HIDE = f"""
import sys

class Hidden:
    names = frozenset({sorted(HIDDEN)!r})

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {{name!r}} (hidden by a test)", name=name)

sys.meta_path.insert(0, Hidden())
"""

EVALUATE = """
import json, rise_core
y = [1,0,1,0,0,1,0,1,0,0, 1,0,1,0,0,1,0,0]
p = [.95,.05,.80,.10,.35,.60,.02,.30,.70,.15, .90,.40,.45,.30,.85,.10,.25,.55]
ev = rise_core.evaluate(y, p, sensitive_features=["n"] * 10 + ["s"] * 8)
print(json.dumps({"f_mean": ev.indicators.f_mean, "f_acc": ev.indicators.f_acc}))
"""

KNEED = EVALUATE.replace('["s"] * 8)', '["s"] * 8, detector="kneed")')


def run(program: str, root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_it_evaluates_with_numpy_and_pandas_alone(root: Path) -> None:
    done = run(HIDE + EVALUATE, root)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == pytest.approx({"f_mean": 0.888889, "f_acc": 1.625}, abs=1e-6)


def test_classic_kneedle_without_kneed_says_what_to_install(root: Path) -> None:
    done = run(HIDE + KNEED, root)
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert "kneed" in last
    assert "install" in last


@pytest.mark.parametrize("name", ["streamlit", "altair", "mlflow", "kneed", "scipy", "pyarrow"])
def test_the_hiding_hides(name: str, root: Path) -> None:
    assert "hidden by a test" in run(f"{HIDE}import {name}", root).stderr


def test_importing_the_engine_loads_nothing_heavy(root: Path) -> None:
    done = run("import sys, rise_core; print(*sorted(sys.modules))", root)
    assert done.returncode == 0, done.stderr
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"streamlit", "altair", "mlflow", "kneed", "scipy", "sklearn", "matplotlib"}


def test_importing_charts_and_tracking_does_not_load_mlflow(root: Path) -> None:
    done = run(
        "import sys, rise_core.charts, rise_core.tracking; print(*sorted(sys.modules))", root
    )
    assert done.returncode == 0, done.stderr
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"streamlit", "mlflow", "kneed", "scipy", "sklearn"}
