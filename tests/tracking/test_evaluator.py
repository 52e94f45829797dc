"""The evaluator plugin: MLflow finds it by its entry point, and it acts only when asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

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
for config in options.pop("evaluator_config"):
    with mlflow.start_run() as run:
        found = mlflow.models.evaluate(data=frame, targets="y_true", model_type="classifier",
                                       evaluator_config=config, **options)
    print(json.dumps({"run": run.info.run_id, "metrics": found.metrics}, default=float))
"""


def run(
    uri: str,
    frame: pd.DataFrame,
    installed: Path,
    folder: Path,
    *configs: object,
    **options: object,
) -> list[dict[str, Any]]:
    """Run evaluations in a process of its own, where the plugin is installed; what each gave."""
    options["evaluator_config"] = configs
    file = folder / "frame.parquet"
    frame.to_parquet(file)
    root = Path(__file__).resolve().parents[2]
    path = os.pathsep.join([str(installed), str(root)])
    environment = os.environ | {"PYTHONPATH": path, "MLFLOW_DISABLE_TELEMETRY": "true"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, uri, str(file), json.dumps(options)],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def test_a_static_data_set(on_server, frame, installed, tmp_path) -> None:
    frame = frame.assign(age=[18 + k % 60 for k in range(len(frame))])
    config = {"rise": {"sensitive_features": ["sex"], "pos_label": "yes"}}
    bands = {"rise": {"sensitive_features": "age", "bins": {"age": [30, 45]}}}
    found, cut = run(on_server.uri, frame, installed, tmp_path, config, bands, evaluators=["rise"])
    ages = {"sensitive_features": {"age": frame["age"]}, "bins": {"age": [30, 45]}}
    by_age = evaluate(frame["y_true"], frame["y_prob"], **ages)
    assert cut["metrics"]["rise.w1"] == pytest.approx(by_age.indicators.w1)
    assert len(by_age.groups) == 3
    ev = evaluate(frame["y_true"], frame["y_prob"], sensitive_features=frame["sex"])
    wanted = {f"rise.{name}": value for name, value in ev.indicators}
    assert found["metrics"] == pytest.approx(wanted)
    store = connect(on_server.uri)
    assert store.run(found["run"]).metrics == pytest.approx(wanted)
    table = store.load(found["run"])
    assert (table.path, table.roles_from) == ("rise/predictions.parquet", "logged")
    again = evaluate_predictions(Predictions.from_frame(table.frame, table.roles))
    assert dict(again.indicators) == pytest.approx(dict(ev.indicators))


def test_without_a_list_of_evaluators_it_acts_only_where_its_configuration_asks(
    on_sqlite, frame, installed, tmp_path
) -> None:
    """MLflow then offers every evaluation to all that are installed."""
    others = {"log_model_explainability": False}
    decided = frame.assign(y_true=(frame["y_true"] == "yes").astype(int),
                           y_prob=(frame["y_prob"] >= 0.5).astype(int))  # fmt: skip
    asked = {"rise": {"sensitive_features": "sex"}, "default": others}
    untouched, touched = run(on_sqlite.uri, decided, installed, tmp_path, others, asked)
    store = connect(on_sqlite.uri)
    for found, acts in ((untouched, False), (touched, True)):
        assert "accuracy_score" in found["metrics"]  # MLflow's own evaluators have run
        assert ("rise.w1" in found["metrics"]) is acts
        logged = store.run(found["run"])
        assert ("rise.w1" in logged.metrics) is acts
        assert ("rise.predictions" in logged.tags) is acts
        names = {entry.path for entry in on_sqlite.client.list_artifacts(logged.id)}
        assert ("rise" in names) is acts
    wanted = evaluate(decided["y_true"], decided["y_prob"], sensitive_features=decided["sex"])
    assert touched["metrics"]["rise.w1"] == pytest.approx(wanted.indicators.w1)


def test_the_model_s_own_scores(on_sqlite, frame, installed, tmp_path) -> None:
    config = {"rise": {"sensitive_features": "sex"}}
    (found,) = run(on_sqlite.uri, frame, installed, tmp_path, config, evaluators=["rise"],
                   fit=True)  # fmt: skip
    table = connect(on_sqlite.uri).load(found["run"])
    assert table.frame["y_prob"].between(0, 1).all()
    assert table.frame["y_prob"].nunique() > 100  # scores, not decisions
    # one rising feature was fitted, so that the model ranks the rows as it does
    assert table.frame["y_prob"].corr(frame["y_prob"], method="spearman") == pytest.approx(1)
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
