"""Every form in which predictions are logged, read back and evaluated to values known by hand.

Eight rows, so that each value can be derived on paper. Score and label by group:

    women   .90 yes   .60 yes   .40 no   .20 no
    men     .70 yes   .30 yes   .45 no   .10 no

Decided at .5 only the man with .30 is wrong: accuracy 7/8. Positive decisions: 2/4 of the women,
1/4 of the men, so DP 2. Mean scores 2.10/4 and 1.55/4 lie .1375 apart. Errors (score − label),
sorted, are −.4 −.1 .2 .4 for women and −.7 −.3 .1 .45 for men: W1 = (.3 + .2 + .1 + .05)/4. Among
all eight, women have ranks 2 4 6 7 and men 1 3 5 8, with medians 5 and 4: F_mean 1 − (1/8)/2.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import pytest

from rise_core import evaluate_predictions
from rise_core.exceptions import ColumnError
from rise_core.tracking import Table, connect, log_predictions
from rise_core.tracking.sources import Correction
from tests.tracking.conftest import Workspace

SCORES = [0.9, 0.6, 0.4, 0.2, 0.7, 0.3, 0.45, 0.1]
LABELS = ["yes", "yes", "no", "no"] * 2
SEX = ["female"] * 4 + ["male"] * 4
ZONE = ["001", "002", "NA", "001", "002", "NA", "001", "002"]  # neither numbers nor gaps
KNOWN = {"accuracy": 7 / 8, "dp": 2.0, "md": 0.1375, "f_mean": 0.9375, "w1": 0.1625}
# Of hard decisions only that man's error remains: one residual of −1 among the men's four.
KNOWN_HARD = {"accuracy": 7 / 8, "dp": 2.0, "md": 0.25, "f_mean": 1.0, "w1": 0.25}


def table(**columns: object) -> pd.DataFrame:
    whole = {"y_true": LABELS, "y_prob": SCORES, "sex": SEX, "zone": ZONE} | columns
    return pd.DataFrame({name: values for name, values in whole.items() if values is not None})


def evaluated(found: Table, correction: Correction | None = None) -> dict[str, float]:
    predictions, _, _ = (correction or Correction()).predictions(found)
    assert (predictions.n, predictions.n_rows) == (8, 8)
    ev = evaluate_predictions(predictions, feature="sex", sensitive="female")
    return dict(ev.indicators)


def assert_known(found: dict[str, float], known: dict[str, float] | None = None) -> None:
    for name, value in (known or KNOWN).items():
        assert found[name] == pytest.approx(value, abs=1e-9), name


# --------------------------------------------------------------------------------- the forms

Log = Callable[[Workspace, str, Path], Any]


def _file(name: str, write: Callable[[pd.DataFrame, Path], Any]) -> Log:
    """A script that writes a file and logs it."""

    def log(workspace: Workspace, run_id: str, folder: Path) -> None:
        file = folder / Path(name).name
        write(table(), file)
        parent = str(Path(name).parent)
        workspace.client.log_artifact(run_id, str(file), None if parent == "." else parent)

    return log


def _log_table(name: str) -> Log:
    def log(workspace: Workspace, run_id: str, _: Path) -> None:
        workspace.client.log_table(run_id, table(), name)

    return log


def _domainbed(workspace: Workspace, run_id: str, _: Path) -> None:
    rows = [
        {"predicted_probabilities": [1 - p, p], "true_label": int(y == "yes"), "sex": s, "zone": z}
        for p, y, s, z in zip(SCORES, LABELS, SEX, ZONE, strict=True)
    ]
    workspace.client.log_text(run_id, json.dumps(rows), "results/predictions.json")


def _beside_a_model(workspace: Workspace, run_id: str, folder: Path) -> None:
    from mlflow.entities import LoggedModelOutput

    client = workspace.client
    model = client.create_logged_model(workspace.experiment_id, source_run_id=run_id)
    (folder / "model").mkdir()
    table().to_csv(folder / "model" / "test_predictions.csv", index=False)
    client.log_model_artifacts(model.model_id, str(folder / "model"))
    client.log_outputs(run_id, [LoggedModelOutput(model.model_id, 0)])


def _mlflow_evaluate(workspace: Workspace, run_id: str, _: Path) -> None:
    from mlflow.metrics import MetricValue, make_metric

    def right(predictions: Any, targets: Any, metrics: Any = None) -> MetricValue:
        pairs = zip(predictions, targets, strict=True)
        return MetricValue(scores=[float((p > 0.5) == y) for p, y in pairs])

    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(workspace.uri)
    try:
        with mlflow.start_run(run_id=run_id):
            mlflow.models.evaluate(
                data=table(y_true=[int(y == "yes") for y in LABELS]),
                predictions="y_prob",
                targets="y_true",
                # without a value for each row MLflow writes no table
                extra_metrics=[make_metric(eval_fn=right, greater_is_better=True, name="right")],
                evaluator_config={"log_model_explainability": False},
            )
    finally:
        mlflow.set_tracking_uri(before)


def _ours(workspace: Workspace, run_id: str, _: Path) -> None:
    frame = table()
    log_predictions(frame["y_true"], frame["y_prob"], sensitive_features=frame[["sex", "zone"]],
                    run_id=run_id, tracking_uri=workspace.uri)  # fmt: skip


FORMS: dict[str, tuple[str, Log]] = {
    "log_predictions": ("rise/predictions.parquet", _ours),
    "parquet": ("predictions.parquet", _file("predictions.parquet", pd.DataFrame.to_parquet)),
    "csv": ("out/test.csv", _file("out/test.csv", lambda t, f: t.to_csv(f, index=False))),
    "csv.gz": ("p.csv.gz", _file("p.csv.gz", lambda t, f: t.to_csv(f, index=False))),
    "jsonl": (
        "a/b/scores.jsonl",
        _file("a/b/scores.jsonl", lambda t, f: t.to_json(f, orient="records", lines=True)),
    ),
    "records": ("p.json", _file("p.json", lambda t, f: t.to_json(f, orient="records"))),
    "split": ("p.json", _file("p.json", lambda t, f: t.to_json(f, orient="split"))),
    "columns": ("p.json", _file("p.json", lambda t, f: t.to_json(f, orient="columns"))),
    "log_table": ("eval/preds.json", _log_table("eval/preds.json")),
    "log_table, parquet": ("preds.parquet", _log_table("preds.parquet")),
    "DomainBed": ("results/predictions.json", _domainbed),
    "a model's folder": ("test_predictions.csv", _beside_a_model),
    "mlflow.models.evaluate": ("eval_results_table.json", _mlflow_evaluate),
}


@pytest.mark.filterwarnings("ignore")  # mlflow.models.evaluate warns of much that is its own
@pytest.mark.parametrize("form", FORMS)
def test_a_form_of_logging(workspace, tmp_path, monkeypatch, form: str) -> None:
    monkeypatch.chdir(tmp_path)
    path, log = FORMS[form]
    run_id = workspace.run(status=None)
    log(workspace, run_id, tmp_path)
    workspace.client.set_terminated(run_id)
    store = connect(workspace.uri)
    for _ in range(2):  # fetched, then from the cache
        found = store.load(run_id)
        assert found.path == path
        assert_known(evaluated(found))
        assert found.frame["zone"].tolist() == ZONE


# ------------------------------------------------------- tables that say less than they should


@pytest.fixture
def logged(on_server, tmp_path) -> Iterator[Callable[[pd.DataFrame], Table]]:
    """Log a table to a run on the server, and read it back."""

    def log(frame: pd.DataFrame) -> Table:
        file = tmp_path / "predictions.parquet"
        frame.to_parquet(file)
        run_id = on_server.run()
        on_server.client.log_artifact(run_id, str(file))
        return connect(on_server.uri).load(run_id)

    return log


def test_a_column_for_each_of_two_classes(logged) -> None:
    """The score of the positive class is taken, not the first or the last column."""
    against = [1 - p for p in SCORES]
    for columns in ({"p_no": against, "p_yes": SCORES}, {"p_yes": SCORES, "p_no": against}):
        assert_known(evaluated(logged(table(y_prob=None, **columns))))
    numbers = [int(y == "yes") for y in LABELS]
    found = logged(table(y_prob=None, y_true=numbers, p_0=against, p_1=SCORES))
    assert_known(evaluated(found))


def test_a_column_for_each_of_many_classes_with_a_chosen_one(logged) -> None:
    """The others share what is left of the score; two of them stand for "no"."""
    rest = [(1 - p) / 2 for p in SCORES]
    labels = ["2" if y == "yes" else str(k % 2) for k, y in enumerate(LABELS)]
    found = logged(table(y_prob=None, y_true=labels, p_0=rest, p_1=rest, p_2=SCORES))
    assert_known(evaluated(found, Correction(pos_label="2")))


def test_labels_that_do_not_tell_which_is_positive(logged) -> None:
    found = logged(table(y_true=["coat" if y == "yes" else "top" for y in LABELS]))
    assert found.roles.pos_label is None
    assert "nothing in the names" in found.roles.reasons["pos_label"]
    assert_known(evaluated(found, Correction(pos_label="coat")))
    # the other class: each label turned, and 0 − error is what is left of it
    turned = evaluated(found, Correction(pos_label="top"))
    assert turned["accuracy"] == pytest.approx(1 / 8)


@pytest.mark.parametrize(
    ("scale", "scores", "said"),
    [
        ("percent", [100 * p for p in SCORES], "looks like percent"),
        ("logit", [math.log(p / (1 - p)) for p in SCORES], "looks like logits"),
    ],
)  # fmt: skip
def test_other_scales_are_recognised_and_converted_only_on_request(
    logged, scale: str, scores: list[float], said: str
) -> None:
    found = logged(table(y_prob=scores))
    assert found.roles.scale == scale
    assert said in found.roles.reasons["y_prob"]
    with pytest.raises(ColumnError, match=f"look like {scale}"):
        Correction().predictions(found)
    assert_known(evaluated(found, Correction(scale=scale)))


@pytest.mark.parametrize("kind", ["texts", "numbers"])
def test_hard_decisions_are_scores_0_and_1_and_it_is_said(logged, kind: str) -> None:
    decided: list[object] = ["yes" if p > 0.5 else "no" for p in SCORES]
    labels: list[object] = list(LABELS)
    if kind == "numbers":
        decided = [int(value == "yes") for value in decided]
        labels = [int(value == "yes") for value in labels]
    found = logged(table(y_prob=None, y_true=labels, y_pred=decided))
    assert found.roles.scale == "decision"
    _, _, notes = Correction().predictions(found)
    assert any("analysed as scores 0 and 1" in note for note in notes)
    assert_known(evaluated(found), KNOWN_HARD)


def test_one_of_several_tables_is_picked(workspace, tmp_path) -> None:
    run_id = workspace.run()
    for name, scores in (("test.csv", SCORES), ("train.csv", [0.5] * 8)):
        table(y_prob=scores).to_csv(tmp_path / name, index=False)
        workspace.client.log_artifact(run_id, str(tmp_path / name))
    store = connect(workspace.uri)
    assert {ref.path for ref in store.tables(run_id)} == {"test.csv", "train.csv"}
    assert_known(evaluated(store.load(run_id, "test.csv")))
    assert evaluated(store.load(run_id, "train.csv"))["w1"] == 0
