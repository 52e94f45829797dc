"""Entries of the model registry lead to their run, on a server and in a database file."""

from __future__ import annotations

import pytest

from rise_core.exceptions import TrackingError
from rise_core.tracking import connect
from rise_core.tracking.registry import is_run_reference, parse_reference


@pytest.fixture
def registered(workspace):
    """Two versions of a model, each from a run of its own; @champion is the first."""
    name = f"churn {workspace.experiment_id} {id(workspace)}"
    workspace.client.create_registered_model(name)
    runs = [workspace.run("first"), workspace.run("second")]
    for run_id in runs:
        workspace.client.create_model_version(name, f"runs:/{run_id}/model", run_id)
    workspace.client.set_registered_model_alias(name, "champion", "1")
    return workspace, name, runs


def test_alias_version_and_latest(registered) -> None:
    workspace, name, (first, second) = registered
    store = connect(workspace.uri)
    assert store.run_of_model(f"models:/{name}@champion").id == first
    assert store.run_of_model(f"models:/{name}/1").name == "first"
    assert store.run_of_model(f"models:/{name}/2").id == second
    assert store.run_of_model(f"models:/{name}/latest").id == second
    workspace.client.set_registered_model_alias(name, "champion", "2")
    assert store.run_of_model(f"models:/{name}@champion").id == second


def test_another_registry_in_the_environment_is_not_asked(
    registered, tmp_path, monkeypatch
) -> None:
    workspace, name, (first, _) = registered
    monkeypatch.setenv("MLFLOW_REGISTRY_URI", f"sqlite:///{tmp_path}/elsewhere.db")
    assert connect(workspace.uri).run_of_model(f"models:/{name}@champion").id == first
    assert not (tmp_path / "elsewhere.db").exists()


def test_what_is_not_there_is_said(registered) -> None:
    workspace, name, _ = registered
    store = connect(workspace.uri)
    for missing in (f"{name}@nobody", f"{name}/9", "no such model@champion", "no such model/1"):
        with pytest.raises(TrackingError, match=r"models:/") as caught:
            store.run_of_model(f"models:/{missing}")
        assert f"models:/{missing}: not found at" in str(caught.value), caught.value
    with pytest.raises(TrackingError, match="no version of a model"):
        store.run_of_model("models:/no such model/latest")
    with pytest.raises(TrackingError, match="given up stages"):
        store.run_of_model(f"models:/{name}/Production")
    with pytest.raises(TrackingError, match="looks like models:/name@alias"):
        store.run_of_model("models:/")


def test_a_version_that_no_run_made(workspace) -> None:
    name = f"orphan {workspace.experiment_id} {id(workspace)}"
    workspace.client.create_registered_model(name)
    workspace.client.create_model_version(name, "s3://bucket/model")
    with pytest.raises(TrackingError, match="not made by a run"):
        connect(workspace.uri).run_of_model(f"models:/{name}/1")


def test_logged_model_by_its_id(on_server) -> None:
    run_id = on_server.run()
    model = on_server.client.create_logged_model(on_server.experiment_id, source_run_id=run_id)
    store = connect(on_server.uri)
    assert store.run_of_model(f"models:/{model.model_id}").id == run_id


@pytest.mark.parametrize(
    ("text", "run_id", "model", "path"),
    [
        ("a" * 32, "a" * 32, "", None),
        ("runs:/abc", "abc", "", None),
        ("runs:/abc/rise/predictions.parquet", "abc", "", "rise/predictions.parquet"),
        ("models:/churn@champion", "", "models:/churn@champion", None),
    ],
)
def test_references(text: str, run_id: str, model: str, path: str | None) -> None:
    assert is_run_reference(text)
    found = parse_reference(text)
    assert (found.run_id, found.model_uri, found.path) == (run_id, model, path)


@pytest.mark.parametrize("text", ["data.csv", "f" * 31, "./runs", "model"])
def test_a_file_name_is_no_reference(text: str) -> None:
    assert not is_run_reference(text)
