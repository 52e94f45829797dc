"""Stores to look at, made once, and the app run without a browser (Streamlit's AppTest)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rise_core import Evaluation, Predictions, Settings, evaluate_predictions
from rise_core.columns import Roles
from rise_core.tracking import Run, Store, connect, log_predictions
from tests.app.reading import ROOT, Screen
from tests.tracking.conftest import FOREIGN_WARNINGS as OF_MLFLOW
from tests.tracking.servers import guarded_server, mlflow_server

mlflow = pytest.importorskip("mlflow")
pytest.importorskip("streamlit")

# Warnings of other people's code, which nobody here can mend.
FOREIGN_WARNINGS = (
    *OF_MLFLOW,
    "ignore:Series.values returning an ndarray:DeprecationWarning",  # pyarrow on pandas 3.1
)
PAGES = {
    "Experiments": "app.py",
    "Diagnose": "pages/diagnose.py",
    "Compare": "pages/compare.py",
    "Environments": "pages/environments.py",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the warnings of others pass in this folder; all others stay errors."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            for line in FOREIGN_WARNINGS:
                item.add_marker(pytest.mark.filterwarnings(line))


# ---------------------------------------------------------------------------------- stores


@dataclass
class Shelf:
    """A store on disk, and what was put there.

    Attributes
    ----------
    uri : its address
    experiments : name to id
    runs : run name to id
    """

    folder: Path
    experiments: dict[str, str] = field(default_factory=dict)
    runs: dict[str, str] = field(default_factory=dict)

    @property
    def uri(self) -> str:
        return f"sqlite:///{self.folder / 'mlflow.db'}"

    @property
    def client(self) -> Any:
        return mlflow.MlflowClient(tracking_uri=self.uri)

    def experiment(self, name: str) -> str:
        """Make an experiment whose files lie beside the database."""
        if name not in self.experiments:
            place = (self.folder / "artifacts" / str(len(self.experiments))).as_uri()
            self.experiments[name] = self.client.create_experiment(name, artifact_location=place)
        return self.experiments[name]

    def run(
        self,
        experiment: str,
        name: str,
        table: pd.DataFrame | None = None,
        *,
        status: str = "FINISHED",
        roles: Roles | None = None,
        **tags: str,
    ) -> str:
        """Make a run, with a table of predictions where one is given; returns its id.

        Without ``roles`` beside the table, its columns must be guessed.
        """
        client = self.client
        # Seconds apart, so that "newest first" is one order; the first made is the newest.
        start = 1_790_000_000_000 - 1000 * len(self.runs)
        made = client.create_run(
            self.experiment(experiment), run_name=name, tags=tags, start_time=start
        )
        run_id = str(made.info.run_id)
        if table is not None:
            file = self.folder / "predictions.parquet"
            table.to_parquet(file)
            client.log_artifact(run_id, str(file), "rise")
            if roles is not None:
                client.log_dict(run_id, roles.to_dict(), "rise/roles.json")
        if status != "RUNNING":
            client.set_terminated(run_id, status)
        self.runs[name] = run_id
        return run_id


def predictions_table(seed: int, rows: int = 240, *, noise: float = 0.6) -> pd.DataFrame:
    """Text labels, two and three groups, two environments; every number depends on ``seed``."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, rows)
    sex = rng.choice(["female", "male"], rows, p=[0.4, 0.6])
    shift = np.where(sex == "female", 0.12, 0.0)
    score = np.clip(label * (1 - noise) + rng.random(rows) * noise - shift * label, 0, 1)
    return pd.DataFrame(
        {
            "y_true": np.where(label == 1, "yes", "no"),
            "y_prob": np.round(score, 6),
            "sex": sex,
            "region": rng.choice(["001", "002", "003"], rows),
            "environment": rng.choice(["north", "south"], rows),
        }
    )


def rows_of(model: int, rows: int = 200, *, labels: int = 1) -> pd.DataFrame:
    """The same rows for every ``model``, with scores of its own."""
    rng = np.random.default_rng(labels)
    label = rng.integers(0, 2, rows)
    sex = rng.choice(["female", "male"], rows, p=[0.4, 0.6])
    own = np.random.default_rng(100 + model)
    bias = (0.3, 1.4, 1.0, 0.6)[model] * (sex == "male")
    odds = 2.0 * label - 1 + own.normal(0, 0.8 + 0.3 * model, rows) + bias
    return pd.DataFrame(
        {
            "y_true": np.where(label == 1, "yes", "no"),
            "y_prob": np.round(1 / (1 + np.exp(-odds)), 6),
            "sex": sex,
            "region": rng.choice(["001", "002", "003"], rows),
            "environment": rng.choice(["north", "south"], rows),
        }
    )


def log_table(table: pd.DataFrame, run_id: str, uri: str, *, metrics: bool = True) -> None:
    """Log a table of `predictions_table` to a run, as a training script does."""
    log_predictions(
        table["y_true"],
        table["y_prob"],
        sensitive_features=table[["sex", "region"]],
        environment=table["environment"],
        run_id=run_id,
        tracking_uri=uri,
        metrics=metrics,
    )


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    """Three algorithms with two seeds each, logged as a training script does."""
    shelf = Shelf(tmp_path_factory.mktemp("lab"))
    for number, (algorithm, seed) in enumerate(
        (a, s) for a in ("ERM", "IRM", "Mixup") for s in (0, 1)
    ):
        name = f"{algorithm.lower()} number {seed}"
        run_id = shelf.run(
            "Lab", name, algorithm=algorithm, seed=str(seed), environment="south", dataset="Lab"
        )
        log_table(predictions_table(number, noise=0.5 + 0.07 * number), run_id, shelf.uri)
    shelf.run("Other", "alone", predictions_table(50, 120), algorithm="IRM", seed="1")
    shelf.experiment("Empty")
    return shelf


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a real tracking server, with an artifact proxy."""
    with mlflow_server(tmp_path_factory.mktemp("mlflow-server")) as url:
        yield url


@pytest.fixture(scope="session")
def guarded_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server that wants a login."""
    pytest.importorskip("flask_wtf", reason="mlflow's basic-auth needs Flask-WTF")
    with guarded_server(tmp_path_factory.mktemp("guarded-server")) as url:
        yield url


@pytest.fixture(scope="session")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A RISE_HOME with the demo store in it, filled once."""
    from demo.load import load_demo

    home = tmp_path_factory.mktemp("demo") / "home"
    load_demo(home / "demo")
    return home


# ------------------------------------------------------------------------------------ app


@pytest.fixture(autouse=True)
def _fresh_listings() -> Iterator[None]:
    """Forget stores and lists between tests; a file store reopens in milliseconds."""
    import streamlit as st

    yield
    st.cache_resource.clear()
    st.cache_data.clear()


@pytest.fixture
def open_app(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Screen]:
    """``open_app("Diagnose", uri, run=…)`` opens a page by its address; no uri is the demo."""
    from streamlit.testing.v1 import AppTest

    def start(page: str, uri: str | None, /, **query: str) -> Screen:
        if uri is None:
            monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
        else:
            monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90)
        if page != "Experiments":
            at.switch_page(PAGES[page])
        at.query_params = dict(query)
        return Screen(at).run()

    return start


@pytest.fixture
def demo(demo_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The app's own demo, already filled."""
    monkeypatch.setenv("RISE_HOME", str(demo_home))
    return demo_home


# -------------------------------------------------------------------------- what is true


@dataclass
class Truth:
    """What rise_core says of a run, asked without the app."""

    store: Store

    def run(self, run_id: str) -> Run:
        return self.store.run(run_id)

    def predictions(self, run_id: str) -> Predictions:
        table = self.store.load(run_id)
        return Predictions.from_frame(table.frame, table.roles)

    def evaluation(
        self,
        run_id: str,
        *,
        environment: str | None = None,
        attribute: str | None = None,
        **settings: Any,
    ) -> Evaluation:
        rows = self.predictions(run_id)
        if environment is not None:
            rows = rows.in_environment(environment)
        return evaluate_predictions(rows, feature=attribute, settings=Settings(**settings))


@pytest.fixture
def truth(tmp_path: Path) -> Callable[[str], Truth]:
    """``truth(uri)`` asks the engine."""
    return lambda uri: Truth(connect(uri, cache_dir=tmp_path / "truth-cache"))
