"""Writing back: only on request, planned first, never where a run is closed."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from rise_core import Evaluation, Predictions, evaluate, evaluate_predictions
from rise_core.exceptions import ServerUnreachableError, TrackingError
from rise_core.tracking import connect, log_predictions
from rise_core.tracking.writing import EVALUATION_TAG, REPORT_PATH, plan, write
from rise_core.uncertainty import not_resampled
from tests.tracking.conftest import close


@pytest.fixture
def run_id(workspace, frame) -> str:
    """A finished run with predictions and without numbers."""
    run_id = workspace.run("erm")
    log_predictions(frame["y_true"], frame["y_prob"], sensitive_features=frame["sex"],
                    run_id=run_id, tracking_uri=workspace.uri, metrics=False)  # fmt: skip
    return run_id


def evaluated(store, run_id: str) -> Evaluation:
    table = store.load(run_id)
    return evaluate_predictions(Predictions.from_frame(table.frame, table.roles))


def snapshot(workspace, run_id: str) -> tuple[object, ...]:
    """Everything of a run and its experiment that writing could change."""
    run = workspace.client.get_run(run_id).to_dictionary()
    files = [(f.path, f.file_size) for f in workspace.client.list_artifacts(run_id, "rise")]
    return run, files, dict(workspace.client.get_experiment(workspace.experiment_id).tags)


def test_everything_is_written_as_planned(workspace, run_id) -> None:
    store = connect(workspace.uri, writable=True)
    ev = evaluated(store, run_id)
    known = ev.uncertainty(n_boot=20, n_perm=20)
    roles = store.load(run_id).roles
    before = snapshot(workspace, run_id)
    planned = plan(store, run_id, ev, known, report="<p>é</p>", roles=roles)
    assert snapshot(workspace, run_id) == before  # a plan writes nothing
    text = str(planned)
    assert "metric rise.w1: " in text
    assert f"file {REPORT_PATH}: 9 bytes" in text
    assert "experiment tag rise.roles: " in text

    assert write(store, planned) == (
        *[c for c in planned.changes if c.kind == "file"],
        *[c for c in planned.changes if c.kind in ("metric", "tag")],
        *[c for c in planned.changes if c.kind == "experiment tag"],
    )
    run = workspace.client.get_run(run_id)
    for name, value in ev.indicators:
        assert run.data.metrics[f"rise.{name}"] == pytest.approx(value)
        for end in ("low", "high", "null_low", "null_high"):
            wanted = getattr(known[name], end)
            if np.isfinite(wanted):
                assert run.data.metrics[f"rise.{name}.{end}"] == pytest.approx(wanted)
            else:
                assert f"rise.{name}.{end}" not in run.data.metrics
    what = json.loads(run.data.tags[EVALUATION_TAG])
    assert (what["feature"], what["threshold"], what["n"], what["n_boot"]) == ("sex", 0.5, 240, 20)
    path = workspace.client.download_artifacts(run_id, REPORT_PATH)
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        assert file.read() == "<p>é</p>"
    # the next person needs no click
    fresh = connect(workspace.uri)
    fresh.experiments()
    assert fresh.kept_roles(workspace.experiment_id) == roles


def test_the_same_again_writes_nothing_twice(workspace, run_id) -> None:
    store = connect(workspace.uri, writable=True)
    ev = evaluated(store, run_id)
    roles = store.load(run_id).roles
    write(store, plan(store, run_id, ev, roles=roles))
    again = plan(store, run_id, ev, roles=roles)
    assert again.changes == ()
    assert again.left_out["rise.w1"] == "it is there already"
    assert "nothing to write" in str(again)
    assert write(store, again) == ()
    other = plan(store, run_id, ev.with_settings(threshold=0.6), report="x")
    changed = {change.name: change for change in other.changes}
    assert changed[EVALUATION_TAG].before
    assert "rise.w1" not in changed  # W1 knows no threshold
    assert changed["rise.dp"].before
    write(store, other)
    assert "now 1 bytes" in str(plan(store, run_id, report="xyz"))


def test_a_store_is_read_only_unless_asked(workspace, run_id) -> None:
    store = connect(workspace.uri)
    planned = plan(store, run_id, evaluated(store, run_id), report="x")
    before = snapshot(workspace, run_id)
    with pytest.raises(TrackingError, match="opened read-only, so nothing was written"):
        write(store, planned)
    assert snapshot(workspace, run_id) == before
    assert store.read_only
    assert not connect(workspace.uri, writable=True).read_only


CLOSED = {"deleted": "has been deleted", "locked": r"locked by .*\(audit 2026\)",
          "running": "another program is still writing"}  # fmt: skip


def log_metric(workspace, run_id: str) -> None:
    workspace.client.log_metric(run_id, "rise.w1", 0.125)


def set_tag(workspace, run_id: str) -> None:
    workspace.client.set_tag(run_id, EVALUATION_TAG, "by hand")


def put_report(workspace, run_id: str) -> None:
    workspace.client.log_text(run_id, "another", REPORT_PATH)


def map_columns(workspace, run_id: str) -> None:
    workspace.client.set_experiment_tag(workspace.experiment_id, "rise.roles", "{}")


@pytest.mark.parametrize(
    ("meanwhile", "says"),
    [
        (log_metric, "Metric rise.w1 of run 'erm' is 0.125 now and was absent"),
        (set_tag, "Tag rise.evaluation of run 'erm' is by hand now and was absent"),
        (put_report, "File rise/report.html of run 'erm' is 7 bytes now and was absent"),
        (map_columns, "Experiment tag rise.roles of run 'erm' is {} now and was absent"),
    ],
)
def test_what_changed_since_the_plan_is_not_overwritten(
    workspace, run_id, meanwhile, says: str
) -> None:
    store = connect(workspace.uri, writable=True)
    ev = evaluated(store, run_id)
    planned = plan(store, run_id, ev, report="x", roles=store.load(run_id).roles)
    meanwhile(workspace, run_id)
    before = snapshot(workspace, run_id)
    with pytest.raises(TrackingError, match=says):
        write(store, planned)
    assert snapshot(workspace, run_id) == before


def test_the_tag_says_whose_rows_the_numbers_are_of(on_sqlite, frame) -> None:
    run_id = on_sqlite.run("erm")
    ev = evaluate(frame["y_true"], frame["y_prob"], sensitive_features=frame["sex"])
    store = connect(on_sqlite.uri)
    of_all, of_north = (plan(store, run_id, ev, environment=name) for name in (None, "north"))
    assert json.loads(of_all.tags[EVALUATION_TAG])["environment"] is None
    assert json.loads(of_north.tags[EVALUATION_TAG])["environment"] == "north"


def test_intervals_that_are_not_known_are_said(on_sqlite, frame) -> None:
    run_id = on_sqlite.run("erm")
    ev = evaluate(frame["y_true"], frame["y_prob"], sensitive_features=frame["sex"])
    planned = plan(connect(on_sqlite.uri), run_id, ev, not_resampled(ev, "too few rows"))
    assert planned.left_out["intervals"] == "too few rows"
    assert not [name for name in planned.metrics if name.endswith(".low")]


@pytest.mark.parametrize("how", CLOSED)
def test_a_closed_run_is_left_alone(on_sqlite, frame, how: str) -> None:
    run_id = on_sqlite.run("erm")
    ev = evaluate(frame["y_true"], frame["y_prob"], sensitive_features=frame["sex"])
    store = connect(on_sqlite.uri, writable=True)
    planned = plan(store, run_id, ev, report="x")
    close(on_sqlite, run_id, how)
    before = snapshot(on_sqlite, run_id)
    # closed before the plan, and between plan and writing
    with pytest.raises(TrackingError, match=CLOSED[how]):
        plan(store, run_id, ev)
    with pytest.raises(TrackingError, match=CLOSED[how]):
        write(store, planned)
    assert snapshot(on_sqlite, run_id) == before


def test_an_unlocked_run_is_open(on_sqlite) -> None:
    run_id = on_sqlite.run("erm", **{"rise.locked": "false"})
    store = connect(on_sqlite.uri, writable=True)
    assert write(store, plan(store, run_id, report="x"))


def test_what_is_undefined_or_infinite_is_not_written(on_sqlite, frame) -> None:
    run_id = on_sqlite.run("erm")
    one = evaluate(frame["y_true"], frame["y_prob"], sensitive_features=["all"] * len(frame))
    store = connect(on_sqlite.uri, writable=True)
    planned = plan(store, run_id, one)
    assert "rise.w1" not in planned.metrics
    assert planned.left_out["rise.w1"].startswith("undefined: ")
    write(store, planned)
    run = on_sqlite.client.get_run(run_id)
    assert list(run.data.metrics) == ["rise.accuracy"]
    assert "w1" in json.loads(run.data.tags[EVALUATION_TAG])["undefined"]
    endless = replace(one, indicators=replace(one.indicators, f_acc=np.inf))
    assert plan(store, run_id, endless).left_out["rise.f_acc"] == "infinite"


def test_a_failure_in_the_middle_says_what_was_written(on_server, frame, proxy) -> None:
    run_id = on_server.run("erm")
    ev = evaluate(frame["y_true"], frame["y_prob"], sensitive_features=frame["sex"])
    store = connect(proxy.url, writable=True)
    planned = plan(store, run_id, ev, report="x")

    def refuse(path: str, status: int, data: bytes) -> tuple[int, bytes] | None:
        if "log-batch" in path:
            return 403, b'{"error_code": "PERMISSION_DENIED", "message": "no"}'
        return status, data

    proxy.spoil = refuse
    with pytest.raises(TrackingError, match=r"refuses it.*Written before that: rise/report.html"):
        write(store, planned)
    proxy.spoil = None
    proxy.dead = True
    with pytest.raises(ServerUnreachableError):
        write(store, planned)


def test_reading_with_a_writable_store_changes_nothing(sqlite_uri, tmp_path) -> None:
    before = (tmp_path / "mlflow.db").read_bytes()
    store = connect(sqlite_uri, writable=True)
    store.experiments()
    store.runs("0")
    assert (tmp_path / "mlflow.db").read_bytes() == before
