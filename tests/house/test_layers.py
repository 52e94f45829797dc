from __future__ import annotations

from pathlib import Path

import pytest

from tests.house import layers


def test_every_import_points_down(root: Path) -> None:
    found = [
        fault
        for path in layers.sources(root)
        for fault in layers.faults(str(path.relative_to(root)), path.read_text("utf-8"), root)
    ]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("path", "source", "fault"),
    [
        ("rise_core/x.py", "import streamlit as st", "numerics may not import streamlit"),
        ("rise_core/x.py", "import scipy.stats", "numerics may not import scipy"),
        ("rise_core/x.py", "import kneed", "kneed may be imported inside functions only"),
        ("rise_core/x.py", "from rise_core.tracking import a", "numerics may not import tracking"),
        ("rise_core/x.py", "from . import tracking", "numerics may not import tracking"),
        ("rise_core/tracking/x.py", "import mlflow", "mlflow may be imported inside functions"),
        ("rise_core/tracking/x.py", "def f():\n  import altair", "tracking may not import altair"),
        ("rise_core/charts/x.py", "from ..tracking import y", "charts may not import tracking"),
        ("pages/x.py", "def f():\n  from mlflow import log_table", "pages may not import mlflow"),
        ("rise_app/x.py", "import altair", "app may not import altair"),
        ("demo/x.py", "import torch", "demo may not import torch"),
    ],
)
def test_a_wrong_import_is_found(path: str, source: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "rise_core/tracking").mkdir(parents=True)
    (tmp_path / "rise_core/tracking/__init__.py").touch()
    assert any(fault in line for line in layers.faults(path, source, tmp_path))


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("rise_core/x.py", "import numpy\ndef f():\n  import kneed"),
        ("rise_core/tracking/x.py", "def f():\n  from mlflow import MlflowClient"),
        ("rise_core/tracking/x.py", "if TYPE_CHECKING:\n  import mlflow"),
        ("pages/x.py", "import streamlit"),
    ],
)
def test_a_right_import_is_not(path: str, source: str, tmp_path: Path) -> None:
    assert layers.faults(path, source, tmp_path) == []
