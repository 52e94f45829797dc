"""`log_predictions`: one line in a training script, read back to the same numbers."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from rise_core import Predictions, evaluate, evaluate_predictions
from rise_core.exceptions import PredictionsError, TrackingError
from rise_core.tracking import connect, log_predictions


@pytest.fixture
def columns() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    label = rng.integers(0, 2, 400)
    return {
        "y_true": np.where(label == 1, "coat", "top"),
        "y_prob": np.clip(0.5 * label + 0.5 * rng.random(400), 0, 1),
        "sex": rng.choice(["f", "m"], 400),
        "env": rng.choice(["red", "blue"], 400),
    }


def test_written_and_read_back_to_the_same_numbers(workspace, columns) -> None:
    run_id = workspace.run(status=None)
    ref = log_predictions(
        columns["y_true"], columns["y_prob"],
        sensitive_features=pd.DataFrame({"sex": columns["sex"]}),
        environment=columns["env"], row_id=range(400), pos_label="coat",
        run_id=run_id, tracking_uri=workspace.uri,
    )  # fmt: skip
    assert ref.path == "rise/predictions.parquet"
    workspace.client.set_terminated(run_id)
    store = connect(workspace.uri)
    run = store.run(run_id)
    assert store.tables(run) == [ref]
    table = store.load(run)
    assert (table.roles_from, table.roles.pos_label, table.roles.environment) == (
        "logged", "coat", "environment",
    )  # fmt: skip
    assert np.array_equal(table.frame["y_prob"], columns["y_prob"])
    wanted = evaluate(
        columns["y_true"], columns["y_prob"], sensitive_features={"sex": columns["sex"]},
        environment=columns["env"], pos_label="coat",
    )  # fmt: skip
    found = evaluate_predictions(Predictions.from_frame(table.frame, table.roles))
    assert found.indicators == wanted.indicators
    for name in ("f_mean", "w1", "accuracy", "dp", "md", "md_decision"):
        assert run.metrics[f"rise.{name}"] == getattr(wanted.indicators, name)
    names = {entry.path for entry in workspace.client.list_artifacts(run_id, "rise")}
    assert names == {"rise/predictions.parquet", "rise/roles.json"}


def test_reading_what_was_logged_costs_one_request(on_server, columns, proxy) -> None:
    run_id = on_server.run()
    log_predictions(columns["y_true"], columns["y_prob"], sensitive_features=columns["sex"],
                    pos_label="coat", run_id=run_id, tracking_uri=on_server.uri)  # fmt: skip
    store = connect(proxy.url)
    run = store.run(run_id)
    proxy.requests.clear()
    table = store.load(run)
    assert table.roles_from == "logged"
    assert len(proxy.requests) == 1


def test_a_re_logged_table_is_fetched_again(on_server, columns) -> None:
    run_id = on_server.run()
    store = connect(on_server.uri)
    keys = []
    for shift in (0.0, 0.1):
        log_predictions(columns["y_true"], np.minimum(columns["y_prob"] + shift, 1),
                        sensitive_features=columns["sex"], pos_label="coat",
                        run_id=run_id, tracking_uri=on_server.uri)  # fmt: skip
        keys.append(store.load(run_id).key)
    assert keys[0] != keys[1]


def test_inside_an_active_run(
    sqlite_uri, tmp_path, columns, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow

    monkeypatch.chdir(tmp_path)
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(sqlite_uri)
    try:
        with mlflow.start_run() as active:
            log_predictions(
                columns["y_true"] == "coat",
                columns["y_prob"],
                sensitive_features=pd.Series(columns["sex"], name="sex"),
            )
        assert mlflow.get_tracking_uri() == sqlite_uri
    finally:
        mlflow.set_tracking_uri(before)
    table = connect(sqlite_uri).load(active.info.run_id)
    assert (table.roles.sensitive_features, table.roles.pos_label) == (("sex",), "True")
    with pytest.raises(TrackingError, match="no active run"):
        log_predictions([0, 1], [0.1, 0.2], sensitive_features=["a", "b"])


def test_both_columns_of_predict_proba(on_sqlite, columns) -> None:
    both = np.column_stack([columns["y_prob"], 1 - columns["y_prob"]])  # coat, top: sorted
    run_id = on_sqlite.run()
    log_predictions(columns["y_true"], both, sensitive_features=columns["sex"],
                    pos_label="coat", run_id=run_id, tracking_uri=on_sqlite.uri)  # fmt: skip
    table = connect(on_sqlite.uri).load(run_id)
    assert np.array_equal(table.frame["y_prob"], columns["y_prob"])
    with pytest.raises(PredictionsError, match="Give pos_label"):
        log_predictions(columns["y_true"], both, sensitive_features=columns["sex"],
                        run_id=run_id, tracking_uri=on_sqlite.uri)  # fmt: skip


@pytest.mark.parametrize("kind", ["list", "mapping", "polars", "two-dimensional"])
def test_groups_in_every_form(on_sqlite, columns, kind: str) -> None:
    sex = columns["sex"]
    features = {
        "list": list(sex),
        "mapping": {"sex": sex, "env": columns["env"]},
        "polars": pl.DataFrame({"sex": sex}),
        "two-dimensional": np.column_stack([sex, columns["env"]]),
    }[kind]
    names = {
        "list": ("sensitive_feature",), "mapping": ("sex", "env"), "polars": ("sex",),
        "two-dimensional": ("sensitive_feature_0", "sensitive_feature_1"),
    }[kind]  # fmt: skip
    run_id = on_sqlite.run()
    log_predictions(list(columns["y_true"]), list(columns["y_prob"]), sensitive_features=features,
                    pos_label="coat", run_id=run_id, tracking_uri=on_sqlite.uri)  # fmt: skip
    table = connect(on_sqlite.uri).load(run_id)
    assert table.roles.sensitive_features == names
    assert list(table.frame[names[0]]) == list(sex)


def test_what_is_number_here_and_text_there_is_logged_as_text(on_sqlite, columns) -> None:
    """A script must not end at its last line for a code of another kind."""
    regions = np.resize(np.array([1, "unknown", 2.0, None], dtype=object), 400)
    labels = [int(label == "coat") for label in columns["y_true"]]
    labels = [str(label) if k % 2 else label for k, label in enumerate(labels)]
    scores = [Decimal(str(round(score, 6))) for score in columns["y_prob"]]
    run_id = on_sqlite.run()
    log_predictions(labels, scores, sensitive_features={"region": regions},
                    run_id=run_id, tracking_uri=on_sqlite.uri)  # fmt: skip
    store = connect(on_sqlite.uri)
    table = store.load(run_id)
    assert set(table.frame["y_true"]) == {"0", "1"}
    found = evaluate_predictions(Predictions.from_frame(table.frame, table.roles))
    assert {group: curve.n for group, curve in found.groups.items()} == {
        "1": 100, "2": 100, "unknown": 100, "(missing)": 100,
    }  # fmt: skip
    wanted = evaluate(
        [int(label) for label in labels],
        np.round(columns["y_prob"], 6),
        sensitive_features=[str(region) for region in regions],
    )
    assert found.indicators.w1 == pytest.approx(wanted.indicators.w1)
    assert store.run(run_id).metrics["rise.w1"] == pytest.approx(wanted.indicators.w1)


def test_what_cannot_be_evaluated_is_logged_with_a_warning(on_sqlite, columns) -> None:
    run_id = on_sqlite.run()
    with pytest.warns(UserWarning, match="No indicators were logged"):
        log_predictions(columns["y_true"], columns["y_prob"] * 9, pos_label="coat",
                        sensitive_features=columns["sex"],
                        run_id=run_id, tracking_uri=on_sqlite.uri)  # fmt: skip
    run = connect(on_sqlite.uri).run(run_id)
    assert not [name for name in run.metrics if name.startswith("rise.")]
    assert len(connect(on_sqlite.uri).load(run).frame) == 400


def test_undefined_indicators_are_left_out(on_sqlite) -> None:
    run_id = on_sqlite.run()
    log_predictions([0, 1, 0, 1], [0.1, 0.9, 0.1, 0.9], sensitive_features=["a"] * 4,
                    run_id=run_id, tracking_uri=on_sqlite.uri)  # fmt: skip
    metrics = connect(on_sqlite.uri).run(run_id).metrics
    assert metrics["rise.accuracy"] == 1
    assert "rise.dp" not in metrics
    assert not any(math.isnan(value) for value in metrics.values())


def test_metrics_can_be_left_out(on_sqlite, columns) -> None:
    run_id = on_sqlite.run()
    with warnings.catch_warnings():
        log_predictions(columns["y_true"], columns["y_prob"], sensitive_features=columns["sex"],
                        metrics=False, run_id=run_id, tracking_uri=on_sqlite.uri)  # fmt: skip
    assert connect(on_sqlite.uri).run(run_id).metrics == {}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"y_prob": [0.1, 0.2]}, r"y_prob has 2 rows, y_true has 3"),
        ({"environment": ["a"]}, r"environment has 1 rows"),
        ({"y_prob": ["a", "b", "c"]}, "must be numbers"),
        ({"y_prob": np.zeros((3, 4))}, "must be one column"),
        ({"pos_label": "maybe"}, "pos_label is 'maybe', but y_true holds no, yes"),
        ({"sensitive_features": {}}, "sensitive_features is empty"),
        ({"sensitive_features": pd.DataFrame([["a", "b"]] * 3, columns=["sex", "sex"])},
         "Two sensitive features are named 'sex'"),
        ({"y_true": [], "y_prob": [], "sensitive_features": []}, "no rows: y_true is empty"),
        ({"sensitive_features": {"y_true": [1, 2, 3]}}, "Rename it"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_before_anything_is_written(on_sqlite, change, text) -> None:
    run_id = on_sqlite.run()
    good = {
        "y_true": ["no", "yes", "no"], "y_prob": [0.1, 0.7, 0.2],
        "sensitive_features": ["a", "b", "a"],
    }  # fmt: skip
    arguments = good | change
    with pytest.raises(PredictionsError, match=text):
        log_predictions(arguments.pop("y_true"), arguments.pop("y_prob"), **arguments,
                        run_id=run_id, tracking_uri=on_sqlite.uri)  # fmt: skip
    assert on_sqlite.client.list_artifacts(run_id) == []


def test_a_run_that_is_not_there(on_sqlite, columns) -> None:
    with pytest.raises(TrackingError, match="could not be logged to run"):
        log_predictions(columns["y_true"], columns["y_prob"], sensitive_features=columns["sex"],
                        pos_label="coat", run_id="0" * 32, tracking_uri=on_sqlite.uri)  # fmt: skip


def test_a_mistyped_database_is_not_created(tmp_path, columns) -> None:
    uri = f"sqlite:///{tmp_path}/no/such.db"
    with pytest.raises(TrackingError, match="nothing was created"):
        log_predictions(columns["y_true"], columns["y_prob"], sensitive_features=columns["sex"],
                        pos_label="coat", run_id="0" * 32, tracking_uri=uri)  # fmt: skip
    assert not (tmp_path / "no").exists()
