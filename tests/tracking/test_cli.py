"""The command line on runs: by id, by runs:/ and models:/, over a real server and a database."""

from __future__ import annotations

import json

import pytest

from rise_core.cli import FAILED, HELD, UNREADABLE, main
from rise_core.tracking import log_predictions


@pytest.fixture
def logged(workspace, frame, monkeypatch):
    """A run with predictions, which is version 1 of a model and its @champion."""
    run_id = workspace.run("erm", seed="3")
    log_predictions(frame["y_true"], frame["y_prob"], sensitive_features=frame["sex"],
                    run_id=run_id, tracking_uri=workspace.uri)  # fmt: skip
    name = f"model of {run_id}"
    workspace.client.create_registered_model(name)
    workspace.client.create_model_version(name, f"runs:/{run_id}/model", run_id)
    workspace.client.set_registered_model_alias(name, "champion", "1")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", workspace.uri)
    return workspace, run_id, name


def test_every_way_to_name_a_run(logged, capsys) -> None:
    workspace, run_id, name = logged
    ways = [run_id, f"runs:/{run_id}", f"runs:/{run_id}/rise/predictions.parquet",
            f"models:/{name}@champion", f"models:/{name}/1"]  # fmt: skip
    w1 = workspace.client.get_run(run_id).data.metrics["rise.w1"]
    assert main(["evaluate", *ways, "--json"]) == HELD
    found = json.loads(capsys.readouterr().out)
    assert [model["run_id"] for model in found] == [run_id] * 5
    assert [model["indicators"]["w1"] for model in found] == pytest.approx([w1] * 5)
    assert found[0]["name"] == "erm"
    assert len({model["name"] for model in found}) == 5


def test_check_and_report_of_a_run(logged, tmp_path, capsys) -> None:
    workspace, run_id, name = logged
    w1 = workspace.client.get_run(run_id).data.metrics["rise.w1"]
    assert main(["check", f"models:/{name}@champion", "--max", f"w1={w1 + 1e-6}"]) == HELD
    assert main(["check", run_id, "--max", f"w1={w1 - 1e-6}"]) == FAILED
    target = tmp_path / "report.html"
    assert main(["report", run_id, "-o", str(target)]) == HELD
    text = target.read_text("utf-8")
    assert run_id in text
    if workspace.uri.startswith("http"):
        assert f"{workspace.uri}/#/experiments/{workspace.experiment_id}/runs/{run_id}" in text
    capsys.readouterr()


def test_another_store_by_option(logged, monkeypatch, capsys) -> None:
    workspace, run_id, _ = logged
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    assert main(["evaluate", run_id, "--tracking-uri", workspace.uri]) == HELD
    assert main(["evaluate", run_id]) == UNREADABLE
    assert "Nothing listens" in capsys.readouterr().err


def test_what_cannot_be_read_is_said(logged, capsys) -> None:
    workspace, run_id, _ = logged
    empty = workspace.run("nothing logged")
    words = ["f" * 32, empty, f"runs:/{run_id}/rise/gone.parquet", "models:/nobody@champion"]
    capsys.readouterr()  # MLflow tells of the runs it made
    assert main(["check", run_id, *words, "--max", "w1=9"]) == UNREADABLE
    out, err = capsys.readouterr()
    assert out.startswith("ok    erm by sex")
    lines = err.splitlines()
    for line, wanted in zip(
        lines, ["not found", "no table of predictions", "no file", "not found"], strict=True
    ):
        assert wanted in line


def test_reading_writes_nothing(logged, capsys) -> None:
    workspace, run_id, _ = logged
    before = workspace.client.get_run(run_id).to_dictionary()
    assert main(["check", run_id, "--max", "w1=9"]) == HELD
    assert workspace.client.get_run(run_id).to_dictionary() == before
    capsys.readouterr()


def test_a_dry_run_first_then_writing(logged, capsys) -> None:
    workspace, run_id, _ = logged
    words = ["write", run_id, "--report", "--keep-columns"]
    before = workspace.client.get_run(run_id).to_dictionary()
    assert main(words) == HELD
    out = capsys.readouterr().out
    assert "file rise/report.html" in out
    assert "Nothing was written" in out
    assert workspace.client.get_run(run_id).to_dictionary() == before
    assert main([*words, "--intervals", "--yes"]) == HELD
    assert "written: " in capsys.readouterr().out
    run = workspace.client.get_run(run_id)
    assert run.data.metrics["rise.w1.low"] <= run.data.metrics["rise.w1.high"]
    assert "rise.evaluation" in run.data.tags
    tags = workspace.client.get_experiment(workspace.experiment_id).tags
    assert json.loads(tags["rise.roles"])["y_true"] == "y_true"
    workspace.client.delete_run(run_id)
    assert main([*words, "--yes"]) == UNREADABLE
    assert "deleted" in capsys.readouterr().err
