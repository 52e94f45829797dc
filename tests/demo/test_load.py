"""The demo store: whole or not there, the same for everybody, quick."""

from __future__ import annotations

import json
import multiprocessing
import sqlite3
from pathlib import Path

import pandas as pd
import pytest

from demo import load
from demo.cards import DATASETS
from demo.load import DemoError, load_demo
from demo.pack import packs

# MLflow's own mappers, under SQLAlchemy 2.1; nothing of ours.
pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy:DeprecationWarning")

PACKS = packs()
COUNT = sum(len(pack.runs) for pack in PACKS)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("a folder with spaces") / "demo"
    load_demo(folder)
    return folder


def rows(store: Path, query: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(store / "mlflow.db") as database:
        return database.execute(query).fetchall()


def test_a_store_has_one_experiment_a_data_set_and_every_run_is_finished(store: Path) -> None:
    names = {name for (name,) in rows(store, "select name from experiments")}
    assert names == {pack.card.title for pack in PACKS} | {"Default"}
    assert rows(store, "select count(*), min(status), max(status) from runs") == [
        (COUNT, "FINISHED", "FINISHED")
    ]


def test_a_run_carries_its_facts_and_its_table(store: Path) -> None:
    from mlflow.artifacts import download_artifacts
    from mlflow.tracking import MlflowClient

    uri = load_demo(store)
    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("Adult")
    (run,) = client.search_runs(
        [experiment.experiment_id],
        "tags.algorithm = 'MBDG, linear-transport G' and tags.seed = '1'",
    )
    assert run.data.tags["environment"] == "Black"
    assert run.data.tags["rise.positive_class"] == ">50K"
    assert run.data.params["steps"] == "600"
    assert 0.5 < run.data.metrics["validation_accuracy"] < 1
    (used,) = run.inputs.dataset_inputs
    assert used.dataset.name == "Adult"
    assert len(used.dataset.digest) == 16
    path = download_artifacts(
        artifact_uri=f"{run.info.artifact_uri}/rise/predictions.parquet", tracking_uri=uri
    )
    assert len(pd.read_parquet(path)) == DATASETS["adult"].evaluated_rows
    listed = {item.path for item in client.list_artifacts(run.info.run_id, "rise")}
    assert "rise/predictions.parquet" in listed
    assert len(listed) == 2


def test_a_run_looks_like_one_that_log_predictions_wrote(tmp_path: Path) -> None:
    from mlflow.tracking import MlflowClient

    from rise_core.columns import Roles
    from rise_core.tracking import connect, log_predictions
    from rise_core.tracking.entities import TABLE_TAG

    pack = PACKS[0]
    card, run = pack.card, pack.runs[0]
    store = tmp_path / "demo"
    with pytest.MonkeyPatch.context() as patch:
        one = type(pack)(card, pack.digest, pack.budget, pack.made_with, (run,))
        patch.setattr(load, "packs", lambda: (one,))
        uri = load_demo(store)
    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name(card.title).experiment_id
    (ours,) = client.search_runs([experiment])
    frame = pd.read_parquet(run.table)
    groups = [column.name for column in card.sensitive]
    theirs = client.create_run(experiment)
    log_predictions(
        frame["y_true"],
        frame["y_prob"],
        sensitive_features=frame[groups],
        environment=frame["environment"],
        row_id=frame["row_id"],
        pos_label=card.positive,
        run_id=theirs.info.run_id,
        tracking_uri=uri,
    )
    theirs = client.get_run(theirs.info.run_id)
    tags = [json.loads(one.data.tags[TABLE_TAG]) for one in (ours, theirs)]
    assert tags[0].keys() == tags[1].keys()
    assert tags[0]["path"] == tags[1]["path"]
    metrics = {key: value for key, value in theirs.data.metrics.items() if key.startswith("rise.")}
    accuracies = {
        "train_accuracy": run.train_accuracy,
        "validation_accuracy": run.validation_accuracy,
    }
    assert ours.data.metrics == pytest.approx(metrics | accuracies, abs=1e-6)

    def plain(roles: Roles) -> dict[str, object]:
        return {k: v for k, v in roles.to_dict().items() if k not in ("reasons", "confidence")}

    reader = connect(uri)
    loaded = [reader.load(reader.run(one.info.run_id)) for one in (ours, theirs)]
    assert plain(loaded[0].roles) == plain(loaded[1].roles)
    assert loaded[0].roles_from == loaded[1].roles_from
    assert len(loaded[0].frame) == len(loaded[1].frame) == card.evaluated_rows


def test_every_run_is_read_and_evaluated_without_a_guess(store: Path) -> None:
    from rise_core import evaluate_predictions
    from rise_core.predictions import Predictions
    from rise_core.tracking import connect

    reader = connect(load_demo(store))
    ids = [one.id for one in reader.experiments()]
    page = reader.runs(ids, max_results=200)
    assert len(page.runs) == COUNT
    for run in page.runs:
        card = DATASETS[run.tags["rise.dataset_id"]]
        table = reader.load(run)
        assert table.roles_from == "logged"
        predictions = Predictions.from_frame(table.frame, table.roles)
        assert predictions.n == card.evaluated_rows
        assert predictions.pos_label == card.positive
        assert evaluate_predictions(predictions).by_environment[card.held_out].n > 0


def test_a_second_load_changes_nothing_and_is_quick(store: Path) -> None:
    before = (store / "mlflow.db").stat().st_mtime_ns
    calls: list[int] = []
    load_demo(store, progress=lambda done, total, text: calls.append(done))
    assert calls == []
    assert (store / "mlflow.db").stat().st_mtime_ns == before


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """One data set with three runs: how a store is built does not depend on how many there are."""
    first = PACKS[0]
    few = type(first)(first.card, first.digest, first.budget, first.made_with, first.runs[:3])
    monkeypatch.setattr(load, "packs", lambda: (few,))


@pytest.mark.usefixtures("small")
def test_progress_counts_to_the_end(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    load_demo(tmp_path / "demo", progress=lambda done, total, text: calls.append((done, total)))
    assert calls == [(0, 3), (1, 3), (2, 3), (3, 3)]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("damage", ["no marker", "no database", "other version", "other place"])
def test_a_store_that_is_not_this_one_is_moved_aside_and_built_anew(
    tmp_path: Path, damage: str
) -> None:
    store = tmp_path / "demo"
    load_demo(store)
    (store / "mine.txt").write_text("kept", encoding="utf-8")
    marker = store / "demo.json"
    if damage == "no marker":
        marker.unlink()
    elif damage == "no database":
        (store / "mlflow.db").unlink()
    elif damage == "other version":
        marker.write_text(json.dumps(json.loads(marker.read_text()) | {"pack": "x"}))
    else:
        store = store.rename(tmp_path / "moved")
    load_demo(store)
    assert rows(store, "select count(*) from runs") == [(3,)]
    assert not (store / "mine.txt").exists()
    (aside,) = tmp_path.glob(f"{store.name}.before-*")
    assert (aside / "mine.txt").read_text(encoding="utf-8") == "kept"


@pytest.mark.usefixtures("small")
def test_a_build_that_is_broken_off_leaves_no_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(done: int, total: int, text: str) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_demo(tmp_path / "demo", progress=stop)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("small")
def test_of_two_builds_at_once_one_wins_and_the_other_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The second process comes and finishes while the first is half way through.
    store = tmp_path / "demo"
    second = []

    def overtake(done: int, total: int, text: str) -> None:
        if done == 2:
            second.append(load_demo(store))
            marker.append((store / "demo.json").stat().st_ino)

    marker: list[int] = []
    assert load_demo(store, progress=overtake) == second[0]
    assert (store / "demo.json").stat().st_ino == marker[0]
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]


def _load(folder: str) -> None:
    load_demo(Path(folder))


@pytest.mark.timeout(120)
def test_two_processes_that_start_at_once_end_with_one_whole_store(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    both = [context.Process(target=_load, args=(str(tmp_path / "demo"),)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]
    assert rows(tmp_path / "demo", "select count(*) from runs") == [(COUNT,)]
    assert rows(tmp_path / "demo", "pragma integrity_check") == [("ok",)]


def test_missing_tables_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "packs", lambda: ())
    with pytest.raises(DemoError, match="make demo-train"):
        load_demo(tmp_path / "demo")
    assert list(tmp_path.iterdir()) == []
