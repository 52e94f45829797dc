"""Every picture says what it shows to those who do not see it."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("altair")

from rise_core import Evaluation, charts, evaluate
from rise_core.calibration import calibrate
from rise_core.charts.tradeoff import TRADEOFF_COLUMNS
from rise_core.thresholds import threshold_sweep

# What Streamlit gives no name of its own. A Vega chart is named by its description; ``alt`` would
# take the place of it.
NAMELESS = ("dataframe", "data_editor", "image", "pyplot")


@pytest.fixture(scope="module")
def ev() -> Evaluation:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    p = np.clip(0.2 + 0.5 * y + rng.normal(0, 0.2, 300), 0, 1)
    return evaluate(y, p, sensitive_features=rng.choice(["a", "b"], 300))


def tradeoff() -> pd.DataFrame:
    row = ("ERM", 0.1, 0.0, 0.2, 0.9, 0.8, 1.0, True, False)
    return pd.DataFrame([row], columns=list(TRADEOFF_COLUMNS))


def cells() -> pd.DataFrame:
    return pd.DataFrame(
        {"row": ["m"], "column": ["c"], "value": [0.1], "distance": [0.1], "text": ["0.1"]}
    )


DRAWN: dict[str, Callable[[Evaluation], Any]] = {
    "calibration_chart": lambda ev: charts.calibration_chart(calibrate(ev), list(ev.groups), "1"),
    "curve_grid": lambda ev: charts.curve_grid({"ERM": ev}),
    "curve_legend": lambda ev: charts.curve_legend({"ERM": ev}),
    "curve_panels": lambda ev: charts.curve_panels({"ERM": ev}),
    "heat_map": lambda ev: charts.heat_map(cells()),
    "rise_chart": lambda ev: {
        view: charts.rise_chart(ev, view=view)  # type: ignore[arg-type]
        for view in ("groups", "global")
    },
    "strip_chart": lambda ev: charts.strip_chart(pd.DataFrame({"name": ["m"], "value": [0.1]})),
    "threshold_charts": lambda ev: charts.threshold_charts(threshold_sweep(ev), 0.5),
    "tradeoff_chart": lambda ev: charts.tradeoff_chart(tradeoff(), "w1"),
}


def test_no_chart_is_forgotten_here() -> None:
    drawing = {
        name
        for name in charts.__all__
        if inspect.isfunction(function := getattr(charts, name))
        and "alt." in str(inspect.signature(function).return_annotation)
    }
    assert drawing == set(DRAWN)


@pytest.mark.parametrize("name", DRAWN)
def test_every_chart_describes_itself(name: str, ev: Evaluation) -> None:
    made = DRAWN[name](ev)
    for chart in made.values() if isinstance(made, dict) else [made]:
        spec = chart.to_dict()
        parts = [*spec.get("hconcat", ()), *spec.get("vconcat", ()), *spec.get("concat", ())]
        for part in parts or [spec]:
            assert len(part.get("description", "")) > 8, part.get("title")


def test_every_table_and_image_of_the_app_has_an_alternative_text(root: Path) -> None:
    nameless = []
    looked_at = 0
    for path in [root / "app.py", *sorted(root.glob("pages/*.py")), *root.glob("rise_app/*.py")]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if node.func.attr in NAMELESS:
                looked_at += 1
                if "alt" not in {keyword.arg for keyword in node.keywords}:
                    nameless.append(f"{path.name}:{node.lineno} {node.func.attr}")
    assert nameless == []
    assert looked_at > 10


def test_every_strip_in_html_says_its_numbers(root: Path) -> None:
    silent = [
        f"{path.name}:{node.lineno}"
        for path in [*root.glob("rise_app/*.py"), *root.glob("rise_core/report/*.py")]
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "strip_html"
        and "text" not in {keyword.arg for keyword in node.keywords}
    ]
    assert silent == []
