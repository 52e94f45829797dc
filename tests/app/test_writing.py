"""Writing to a run from Diagnose: shown first, written as shown, never where a run is closed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rise_core.tracking import connect
from rise_core.tracking.writing import EVALUATION_TAG, REPORT_PATH
from tests.app.conftest import Shelf, log_table, predictions_table
from tests.app.reading import Screen
from tests.tracking.conftest import Workspace, _workspace, close
from tests.tracking.servers import ADMIN, PASSWORD, as_admin

Open = Callable[..., Screen]

SHOW, ALL = "Show what would be written", "numbers|report|columns"


def with_run(workspace: Workspace) -> str:
    """Log a run with predictions, and with no numbers."""
    run_id = workspace.run("erm", environment="south")
    log_table(predictions_table(3), run_id, workspace.uri, metrics=False)
    return run_id


@pytest.fixture
def workspace(server_url: str) -> Workspace:
    return _workspace(server_url)


@pytest.fixture
def run_id(workspace: Workspace) -> str:
    return with_run(workspace)


def snapshot(workspace: Workspace, run_id: str) -> tuple[Any, ...]:
    """Everything of a run and its experiment that writing could change."""
    run = workspace.client.get_run(run_id).to_dictionary()
    files = [(f.path, f.file_size) for f in workspace.client.list_artifacts(run_id, "rise")]
    return run, files, dict(workspace.client.get_experiment(workspace.experiment_id).tags)


def until(page: Screen, there: Callable[[Screen], bool]) -> Screen:
    """Look again until something is on the page."""
    end = time.monotonic() + 60
    while not there(page):
        assert time.monotonic() < end, page.texts
        time.sleep(0.1)
        page.run()
    return page


def enabled(page: Screen, label: str) -> bool:
    return page.has(label) and not page.widget(label).disabled


def show(page: Screen) -> Screen:
    """Ask for the plan, and wait for it or for why there is none."""
    until(page, lambda p: enabled(p, SHOW)).press(SHOW)
    return until(page, lambda p: not any("Making the plan" in c.value for c in p.at.caption))


def press_write(page: Screen) -> Screen:
    page.press("Write to erm")
    return until(page, lambda p: not any("Writing to erm" in c.value for c in p.at.caption))


def planned(page: Screen) -> pd.DataFrame:
    """The table of changes."""
    (found,) = [d.value for d in page.at.dataframe if "kind" in d.value.columns]
    return found


def left_out(page: Screen) -> dict[str, str]:
    (found,) = [d.value for d in page.at.dataframe if list(d.value.columns) == ["name", "why"]]
    return dict(zip(found["name"], found["why"], strict=True))


def test_a_dry_run_writes_nothing(open_app: Open, workspace: Workspace, run_id: str) -> None:
    before = snapshot(workspace, run_id)
    page = open_app("Diagnose", workspace.uri, run=run_id, tab="Save", write=ALL)
    assert not page.has("Write to erm")
    show(page)
    found = planned(page).set_index("name")
    assert set(found["kind"]) == {"metric", "tag", "file", "experiment tag"}
    assert {"rise.w1", "rise.w1.low", EVALUATION_TAG, REPORT_PATH, "rise.roles"} <= set(found.index)
    assert set(found["now"]) == {"–"}
    assert any("south, by sex" in text and "threshold 0.5" in text for text in page.texts)
    assert enabled(page, "Write to erm")
    assert snapshot(workspace, run_id) == before
    assert page.address["write"] == ALL


def test_what_is_written_is_what_was_shown(
    open_app: Open, workspace: Workspace, run_id: str
) -> None:
    _, files, tags = snapshot(workspace, run_id)
    run = workspace.client.get_run(run_id)
    page = show(open_app("Diagnose", workspace.uri, run=run_id, tab="Save", write=ALL))
    rows = planned(page)
    by_kind = {
        kind: dict(zip(part["name"], part["value"], strict=True))
        for kind, part in rows.groupby("kind")
    }
    press_write(page)
    assert any(text.startswith("✓ Written to erm: 1 file, ") for text in page.texts)
    assert not page.has("Write to erm")

    after = workspace.client.get_run(run_id)
    metrics = {name: f"{value:.6g}" for name, value in after.data.metrics.items()}
    assert metrics == by_kind["metric"]
    assert after.data.tags == run.data.tags | by_kind["tag"]
    assert json.loads(after.data.tags[EVALUATION_TAG])["environment"] == "south"
    _, files_after, tags_after = snapshot(workspace, run_id)
    (path, size) = next(file for file in files_after if file not in files)
    assert (path, f"{size:,} bytes") == (REPORT_PATH, by_kind["file"][REPORT_PATH])
    assert len(files_after) == len(files) + 1
    assert tags_after == tags | by_kind["experiment tag"]
    # The next look knows of it at once.
    shown = open_app("Diagnose", workspace.uri, run=run_id, tab="About")
    facts = next(d.value for d in shown.at.dataframe if "what" in d.value.columns)
    assert {"rise.w1", "rise.w1.low"} <= set(facts["name"])
    again = show(open_app("Diagnose", workspace.uri, run=run_id, tab="Save"))
    assert "There is nothing to write." in again.texts
    assert left_out(again)["rise.w1"] == "it is there already"
    assert not again.has("Write to erm")


def test_only_what_is_chosen_is_written(open_app: Open, workspace: Workspace, run_id: str) -> None:
    page = show(open_app("Diagnose", workspace.uri, run=run_id, tab="Save", write="columns"))
    assert list(planned(page)["kind"]) == ["experiment tag"]
    run, files, _ = snapshot(workspace, run_id)
    press_write(page)
    assert snapshot(workspace, run_id)[:2] == (run, files)
    fresh = connect(workspace.uri)
    fresh.experiments()
    roles = fresh.kept_roles(workspace.experiment_id)
    assert roles is not None
    assert roles.sensitive_features == ("sex", "region")


def test_another_setting_voids_the_plan(open_app: Open, workspace: Workspace, run_id: str) -> None:
    page = show(open_app("Diagnose", workspace.uri, run=run_id, tab="Save"))
    before = snapshot(workspace, run_id)
    page.choose("Threshold", 0.4)
    assert not page.has("Write to erm")
    assert any("show it again" in caption.value for caption in page.at.caption)
    page.choose("Threshold", 0.5)
    assert not page.has("Write to erm"), "a plan that was void came back"
    # A click that comes together with another setting finds no plan either.
    show(page)
    page.widget("Threshold").set_value(0.4)
    page.press("Write to erm")
    assert snapshot(workspace, run_id) == before
    press_write(show(page))
    tags = workspace.client.get_run(run_id).data.tags
    assert json.loads(tags[EVALUATION_TAG])["threshold"] == 0.4


def test_another_run_voids_the_plan(open_app: Open, workspace: Workspace, run_id: str) -> None:
    other = workspace.run("other")
    page = show(open_app("Diagnose", workspace.uri, run=run_id, tab="Save"))
    before = snapshot(workspace, run_id), snapshot(workspace, other)
    page.at.query_params["run"] = with_run(workspace)
    page.run()
    assert not page.has("Write to erm")
    assert (snapshot(workspace, run_id), snapshot(workspace, other)) == before


def test_what_somebody_else_wrote_meanwhile_is_not_replaced(
    open_app: Open, workspace: Workspace, run_id: str
) -> None:
    page = show(open_app("Diagnose", workspace.uri, run=run_id, tab="Save"))
    workspace.client.log_metric(run_id, "rise.w1", 0.125)
    before = snapshot(workspace, run_id)
    press_write(page)
    assert "The writing stopped." in page.markdown
    assert any("rise.w1" in text and "Make the plan again" in text for text in page.texts)
    assert snapshot(workspace, run_id) == before
    show(page)
    assert planned(page).set_index("name").loc["rise.w1", "now"] == "0.125"
    assert any("1 of them would replace" in text for text in page.texts)


CLOSED = {
    "deleted": "has been deleted",
    "locked": "locked by its tag rise.locked (audit 2026)",
    "running": "another program is still writing it",
}


@pytest.mark.parametrize("how", CLOSED)
def test_a_closed_run_is_left_alone(
    open_app: Open, workspace: Workspace, run_id: str, how: str
) -> None:
    page = show(open_app("Diagnose", workspace.uri, run=run_id, tab="Save", write=ALL))
    close(workspace, run_id, how)
    before = snapshot(workspace, run_id)
    press_write(page)
    assert "The writing stopped." in page.markdown
    assert any(CLOSED[how] in text for text in page.texts)
    if how != "deleted":  # a deleted run has no page
        show(page)
        assert "Nothing can be written to this run." in page.markdown
        assert any(CLOSED[how] in text for text in page.texts)
        assert not page.has("Write to erm")
    assert snapshot(workspace, run_id) == before


def test_who_may_only_read_is_told_so(
    open_app: Open, guarded_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = guarded_url.removeprefix("http://")
    admin = _workspace(f"http://{ADMIN}:{PASSWORD.replace(' ', '%20')}@{address}")
    run_id = with_run(admin)
    secret = "another long word 2"
    as_admin(guarded_url, "users/create", username="reader", password=secret)
    before = snapshot(admin, run_id)
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "reader")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", secret)
    page = open_app("Diagnose", guarded_url, run=run_id, tab="Save", write=ALL)
    assert f"{guarded_url} as reader, connected in" in page.html
    assert "Reads only; writes when you ask" in page.html
    press_write(show(page))
    assert "The writing stopped." in page.markdown
    (reason,) = (text for text in page.texts if "refuses it for this user" in text)
    assert "Writing files to run 'erm'" in reason
    assert "Ask for the permission" in reason
    assert secret not in page.everything
    assert snapshot(admin, run_id) == before


def test_a_refusal_in_the_middle_says_what_was_written(
    open_app: Open, workspace: Workspace, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow import MlflowClient

    from rise_core.exceptions import AuthenticationError

    def refuse(*_: object, **__: object) -> None:
        raise AuthenticationError("Not you.")

    page = show(open_app("Diagnose", workspace.uri, run=run_id, tab="Save", write=ALL))
    monkeypatch.setattr(MlflowClient, "log_batch", refuse)
    press_write(page)
    assert any(f"Not you. Written before that: {REPORT_PATH}." in text for text in page.texts)
    assert not workspace.client.get_run(run_id).data.metrics


def test_the_demo_store_can_be_written_to(
    open_app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a file of one's own; here a small store stands for it."""
    from rise_app import connection

    shelf = Shelf(tmp_path)
    run_id = shelf.run("Own", "erm", predictions_table(3))
    monkeypatch.setattr(connection, "_demo_uri", lambda: shelf.uri)
    page = show(open_app("Diagnose", None, run=run_id, tab="Save"))
    press_write(page)
    assert "rise.w1" in shelf.client.get_run(run_id).data.metrics


def test_the_demo_store_is_named_as_ones_own(open_app: Open, demo: Path, lab: Shelf) -> None:
    def said(page: Screen) -> bool:
        return any("The demo store is a file of yours" in c.value for c in page.at.caption)

    assert said(open_app("Diagnose", None, tab="Save"))
    assert not said(open_app("Diagnose", lab.uri, run=lab.runs["erm number 0"], tab="Save"))


def test_without_its_package_no_report_is_offered(
    open_app: Open, workspace: Workspace, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rise_app.writing_views.CAN_EXPORT", False)
    page = show(open_app("Diagnose", workspace.uri, run=run_id, tab="Save", write=ALL))
    assert "file" not in set(planned(page)["kind"])
