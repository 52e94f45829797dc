"""The evaluator plugin: MLflow finds it by its entry point, and it acts only when asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pandas as pd
import pytest

from rise_core import ColumnError, Predictions, evaluate, evaluate_predictions
from rise_core.tracking import connect
from rise_core.tracking.evaluator import RiseEvaluator


@pytest.fixture
def installed(root: Path, tmp_path: Path) -> Path:
    """What an installer leaves behind: the package's metadata with its entry points."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    folder = tmp_path / "site" / f"rise_core-{project['version']}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: rise-core\nVersion: {project['version']}\n"
    )
    points = project["entry-points"]["mlflow.model_evaluator"]
    lines = [f"{name} = {target}" for name, target in points.items()]
    (folder / "entry_points.txt").write_text("\n".join(["[mlflow.model_evaluator]", *lines, ""]))
    return folder.parent


PROGRAM = """
import json, sys
import mlflow, pandas as pd
frame = pd.read_parquet(sys.argv[2])
options = json.loads(sys.argv[3])
if options.pop("fit", False):
    from sklearn.linear_model import LogisticRegression
    frame["y_true"] = (frame["y_true"] == "yes").astype(int)
    fitted = LogisticRegression().fit(frame[["y_prob"]], frame["y_true"])
    mlflow.set_tracking_uri(sys.argv[1])
    info = mlflow.sklearn.log_model(fitted, name="m", input_example=frame[["y_prob"]].head(2))
    options["model"] = info.model_uri
    mlflow.end_run()
else:
    options["predictions"] = "y_prob"
mlflow.set_tracking_uri(sys.argv[1])
with mlflow.start_run() as run:
    found = mlflow.models.evaluate(data=frame, targets="y_true", model_type="classifier", **options)
print(json.dumps({"run": run.info.run_id, "metrics": found.metrics}, default=float))
"""


def run(uri: str, frame: pd.DataFrame, installed: Path, folder: Path, **options: object):
    """Run an evaluation in a process of its own, where the plugin is installed."""
    file = folder / "frame.parquet"
    frame.to_parquet(file)
    root = Path(__file__).resolve().parents[2]
    path = os.pathsep.join([str(installed), str(root)])
    environment = os.environ | {"PYTHONPATH": path, "MLFLOW_DISABLE_TELEMETRY": "true"}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, uri, str(file), json.dumps(options)],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=110,
    )  # fmt: skip


def test_a_static_data_set(on_server, frame, installed, tmp_path) -> None:
    config = {"rise": {"sensitive_features": ["sex"], "pos_label": "yes"}}
    done = run(on_server.uri, frame, installed, tmp_path, evaluators=["rise"],
               evaluator_config=config)  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    ev = evaluate(frame["y_true"], frame["y_prob"], sensitive_features=frame["sex"])
    wanted = {f"rise.{name}": value for name, value in ev.indicators}
    assert found["metrics"] == pytest.approx(wanted)
    store = connect(on_server.uri)
    assert store.run(found["run"]).metrics == pytest.approx(wanted)
    table = store.load(found["run"])
    assert (table.path, table.roles_from) == ("rise/predictions.parquet", "logged")
    again = evaluate_predictions(Predictions.from_frame(table.frame, table.roles))
    assert dict(again.indicators) == pytest.approx(dict(ev.indicators))


def test_nobody_else_s_evaluation_is_touched(on_sqlite, frame, installed, tmp_path) -> None:
    """Installed, but not asked: MLflow's own evaluators run, and nothing of ours is logged."""
    binary = frame.assign(y_true=(frame["y_true"] == "yes").astype(int),
                          y_prob=(frame["y_prob"] >= 0.5).astype(int))  # fmt: skip
    done = run(on_sqlite.uri, binary.drop(columns=["sex", "region_code"]).assign(x=1.0), installed,
               tmp_path, evaluator_config={"log_model_explainability": False})  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert "accuracy_score" in found["metrics"]
    assert not [name for name in found["metrics"] if name.startswith("rise.")]


def test_the_model_s_own_scores(on_sqlite, frame, installed, tmp_path) -> None:
    config = {"rise": {"sensitive_features": "sex"}}
    done = run(on_sqlite.uri, frame, installed, tmp_path, fit=True, evaluators=["rise"],
               evaluator_config=config)  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    table = connect(on_sqlite.uri).load(found["run"])
    assert table.frame["y_prob"].between(0, 1).all()
    assert table.frame["y_prob"].nunique() > 100  # scores, not decisions
    assert 0.5 < found["metrics"]["rise.accuracy"] <= 1


@pytest.mark.parametrize(
    ("config", "model_type", "acts"),
    [
        ({}, "classifier", False),
        (None, "classifier", False),
        ({"explainability_nsamples": 20}, "classifier", False),
        ({"sensitive_features": []}, "classifier", False),
        ({"sensitive_features": "sex"}, "classifier", True),
        ({"sensitive_features": ["sex"]}, None, True),
        ({"sensitive_features": "sex"}, "regressor", False),
    ],
)
def test_it_acts_only_when_asked(config: object, model_type: str | None, acts: bool) -> None:
    assert RiseEvaluator.can_evaluate(model_type=model_type, evaluator_config=config) is acts


class Data:
    """As much of MLflow's evaluation data set as is looked at."""

    has_targets = has_predictions = True
    feature_names = None

    def __init__(self, frame: pd.DataFrame, predictions: object) -> None:
        self.features_data = frame[["sex"]]
        self.labels_data = frame["y_true"].to_numpy()
        self.predictions_data = predictions


def test_predicted_labels_become_scores_and_it_is_said(on_sqlite, frame, monkeypatch) -> None:
    import mlflow

    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(on_sqlite.uri)
    try:
        run_id = on_sqlite.run()
        labels = (frame["y_prob"] >= 0.5).map({True: "yes", False: "no"})
        with pytest.warns(UserWarning, match="analysed as scores 0 and 1"):
            found = RiseEvaluator().evaluate(
                dataset=Data(frame, labels.to_numpy()), run_id=run_id,
                evaluator_config={"sensitive_features": "sex"},
            )  # fmt: skip
        wanted = evaluate(frame["y_true"], labels == "yes", sensitive_features=frame["sex"])
        assert found.metrics["rise.w1"] == pytest.approx(wanted.indicators.w1)
        with pytest.warns(UserWarning, match="does not know gruppen"):
            RiseEvaluator().evaluate(
                dataset=Data(frame, frame["y_prob"].to_numpy()), run_id=run_id,
                evaluator_config={"sensitive_features": "sex", "gruppen": 1},
            )  # fmt: skip
    finally:
        mlflow.set_tracking_uri(before)


def test_a_column_that_is_not_there_is_named(frame) -> None:
    with pytest.raises(ColumnError, match="no column 'gender'; they have sex"):
        RiseEvaluator().evaluate(
            dataset=Data(frame, frame["y_prob"].to_numpy()), run_id="unused",
            evaluator_config={"sensitive_features": "gender"},
        )  # fmt: skip
