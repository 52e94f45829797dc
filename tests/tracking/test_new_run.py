"""`log_new_run`: predictions that came as a file, in a run of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rise_core import Predictions, PredictionsError, evaluate_predictions
from rise_core.exceptions import ServerUnreachableError, TrackingError
from rise_core.tracking import connect
from rise_core.tracking.new_run import log_new_run


@pytest.fixture
def predictions() -> Predictions:
    rng = np.random.default_rng(5)
    label = rng.integers(0, 2, 300)
    score = np.clip(0.5 * label + 0.5 * rng.random(300), 0, 1)
    score[:7] = np.nan
    return Predictions.from_columns(
        np.where(label == 1, "coat", "top"),
        score,
        sensitive_features={"sex": rng.choice(["f", "m"], 300)},
        environment=rng.choice(["red", "blue"], 300),
        pos_label="coat",
    )


def test_it_comes_back_as_the_same_numbers(workspace, predictions, root: Path) -> None:
    before = set(root.iterdir())
    name = f"by hand {workspace.uri[-12:]}"
    first, second = (
        log_new_run(
            predictions,
            tracking_uri=workspace.uri,
            experiment=name,
            run_name=run_name,
            tags={"algorithm": "By hand"},
        )
        for run_name in ("one", "two")
    )
    assert first.experiment_id == second.experiment_id
    store = connect(workspace.uri)
    run = store.run(first.run_id)
    assert (run.name, run.status, run.algorithm) == ("one", "FINISHED", "By hand")
    table = store.load(run)
    back = Predictions.from_frame(table.frame, table.roles)
    assert (back.n, back.pos_label) == (293, "coat")
    found, wanted = evaluate_predictions(back), evaluate_predictions(predictions)
    assert found.indicators == wanted.indicators
    assert set(back.environment.labels) == {"red", "blue"}
    assert set(root.iterdir()) == before


@pytest.mark.parametrize(("experiment", "run_name"), [(" ", "a"), ("a", "")])
def test_a_name_is_needed(sqlite_uri, predictions, experiment, run_name) -> None:
    with pytest.raises(TrackingError, match="has no name"):
        log_new_run(predictions, tracking_uri=sqlite_uri, experiment=experiment, run_name=run_name)


def test_a_deleted_experiment_keeps_its_name(on_sqlite, predictions) -> None:
    gone = on_sqlite.client.create_experiment("gone")
    on_sqlite.client.delete_experiment(gone)
    with pytest.raises(TrackingError, match="has been deleted and keeps its name"):
        log_new_run(predictions, tracking_uri=on_sqlite.uri, experiment="gone", run_name="a")


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path, predictions) -> None:
    with pytest.raises(TrackingError):
        log_new_run(
            predictions,
            tracking_uri=f"sqlite:///{tmp_path / 'none.db'}",
            experiment="a",
            run_name="a",
        )
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ServerUnreachableError):
        log_new_run(predictions, tracking_uri="http://127.0.0.1:9", experiment="a", run_name="a")


def test_a_run_whose_rows_could_not_be_logged_is_marked(on_sqlite, predictions) -> None:
    factor = predictions.feature()
    clash = Predictions(
        predictions.y_true, predictions.y_prob, {"y_true": factor}, n_rows=predictions.n
    )
    with pytest.raises(PredictionsError, match="Rename it"):
        log_new_run(clash, tracking_uri=on_sqlite.uri, experiment="clash", run_name="a")
    (experiment,) = (e for e in connect(on_sqlite.uri).experiments() if e.name == "clash")
    (run,) = connect(on_sqlite.uri).runs([experiment.id]).runs
    assert run.status == "FAILED"
