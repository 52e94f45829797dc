"""Faults between one request and the next, brought about on the real server where that is possible.

How a store that cannot be used at all is told apart is held in test_connect, what is wrong with a
single file in test_load and test_formats.
"""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest

from rise_core.exceptions import (
    ArtifactStoreError,
    AuthenticationError,
    ServerUnreachableError,
    TrackingError,
    UnreadableTableError,
)
from rise_core.tracking import connect
from tests.tracking.test_load import log_table_file, put


def artifacts(workspace, run_id: str):
    """MLflow's own hand on a run's files, which can also delete them."""
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    uri = workspace.client.get_run(run_id).info.artifact_uri
    return get_artifact_repository(uri, tracking_uri=workspace.uri)


# ----------------------------------------------------------------------------------- the server


def test_a_host_name_that_the_server_does_not_know(server_url, monkeypatch) -> None:
    """Its own refusal, not one written by hand."""
    port = server_url.rsplit(":", 1)[1]
    resolve = socket.getaddrinfo

    def anywhere(host: object, *rest: object, **more: object) -> object:
        return resolve("127.0.0.1" if host == "mlflow.example" else host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", anywhere)
    with pytest.raises(
        AuthenticationError, match=r"403 Invalid Host.*--allowed-hosts mlflow\.exam"
    ):
        connect(f"http://mlflow.example:{port}")


def test_an_answer_that_takes_a_minute(proxy, monkeypatch) -> None:
    """A person may be more patient, or less."""
    monkeypatch.setenv("RISE_TIMEOUT", "1")
    proxy.slow = "experiments/search"
    started = time.monotonic()
    with pytest.raises(ServerUnreachableError, match=r"alive, .* within 1 s.*raise RISE_TIMEOUT"):
        connect(proxy.url)
    assert time.monotonic() - started < 5
    proxy.slow = None
    assert connect(proxy.url).experiments()


@pytest.mark.parametrize("value", ["soon", "-1", "0", "nan", "inf"])
def test_a_limit_that_is_no_number(server_url, monkeypatch, value: str) -> None:
    monkeypatch.setenv("RISE_TIMEOUT", value)
    with pytest.raises(TrackingError, match=f"RISE_TIMEOUT is '{value}'. Give a positive number"):
        connect(server_url)


# ------------------------------------------------------------------------------------ the files


def test_a_table_of_two_gigabytes(on_server, proxy, frame, tmp_path, monkeypatch) -> None:
    """Refused by its listing, before a byte is fetched, until the limit is raised."""
    run_id = on_server.run()
    log_table_file(on_server, run_id, frame, tmp_path / "out", "p.csv")

    def grow(path: str, status: int, body: bytes) -> tuple[int, bytes]:
        if "artifacts?" in path:
            (entry,) = json.loads(body)["files"]
            body = json.dumps({"files": [entry | {"file_size": 2 << 30}]}).encode()
        return status, body

    proxy.spoil = grow
    store = connect(proxy.url)
    proxy.requests.clear()
    with pytest.raises(
        UnreadableTableError, match=r"has 2,048\.0 MB.*512\.0 MB.*RISE_MAX_TABLE_MB"
    ):
        store.load(run_id)
    assert not [asked for asked in proxy.requests if asked.endswith("/p.csv")]
    monkeypatch.setenv("RISE_MAX_TABLE_MB", "4096")
    with pytest.raises(ArtifactStoreError, match=r"incomplete.* of 2,147,483,648 bytes"):
        store.load(run_id)  # now it is fetched, and is not as large as it was said to be


def test_a_folder_of_two_gigabytes_read_in_place(on_sqlite, monkeypatch) -> None:
    run_id = on_sqlite.run()
    folder = Path(on_sqlite.client.get_run(run_id).info.artifact_uri)
    folder.mkdir(parents=True)
    with (folder / "p.csv").open("wb") as file:
        file.truncate(2 << 30)  # takes no room on the disk
    with pytest.raises(UnreadableTableError, match=r"2,048\.0 MB, more than the limit"):
        connect(on_sqlite.uri).load(run_id)


def test_files_that_hang_while_the_server_lives(
    on_server, proxy, frame, tmp_path, monkeypatch
) -> None:
    """A store behind the server that answers after a minute; MLflow's own limit ends the wait."""
    run_id = on_server.run()
    log_table_file(on_server, run_id, frame, tmp_path / "out", "p.csv")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    store = connect(proxy.url, timeout=1)
    run = store.run(run_id)
    proxy.slow = "mlflow-artifacts"
    started = time.monotonic()
    with pytest.raises(
        ArtifactStoreError, match=r"answers, but of run .* did not come in time.*raise"
    ):
        store.load(run)
    assert time.monotonic() - started < 10
    assert store.run(run_id).name == run.name


def test_a_connection_that_breaks_within_a_file(on_server, proxy, frame, tmp_path) -> None:
    """Fewer bytes than the answer's own head has promised."""
    run_id = on_server.run()
    log_table_file(on_server, run_id, frame, tmp_path / "out", "p.csv")
    store = connect(proxy.url)
    proxy.cut = "/p.csv"
    with pytest.raises(ArtifactStoreError, match=r"arrived incomplete, twice.*try again"):
        store.load(run_id)
    assert not list(store.cache.folder.glob("*.data"))
    proxy.cut = None
    assert len(store.load(run_id).frame) == len(frame)


def test_a_file_deleted_since_it_was_listed(on_server, frame, tmp_path) -> None:
    run_id = on_server.run()
    log_table_file(on_server, run_id, frame, tmp_path / "out", "p.csv")
    store = connect(on_server.uri)
    assert [ref.path for ref in store.tables(run_id)] == ["p.csv"]
    artifacts(on_server, run_id).delete_artifacts("p.csv")
    with pytest.raises(ArtifactStoreError, match=r"'p.csv' is listed but gone from .*try again"):
        store.load(run_id)
    # which is what the next look does
    with pytest.raises(UnreadableTableError, match="no table of predictions"):
        store.load(run_id)


def test_a_table_that_is_logged_after_the_run_has_ended(
    on_server, frame, tmp_path, monkeypatch
) -> None:
    """What a listing did not show is looked for again, once some minutes have gone."""
    bare, other = on_server.run(), on_server.run()
    put(on_server, other, tmp_path / "out", "loss.csv", b"epoch,loss\n1,0.5\n2,0.25\n")
    store = connect(on_server.uri)
    for logged in (False, True):
        with pytest.raises(UnreadableTableError, match="no table of predictions"):
            store.load(bare)
        assert store.load(other).path == "loss.csv"
        if not logged:
            log_table_file(on_server, bare, frame, tmp_path / "out", "p.csv")
            log_table_file(on_server, other, frame, tmp_path / "out", "p.csv")
    later = time.time() + 3600
    monkeypatch.setattr("rise_core.tracking.store.time.time", lambda: later)
    assert store.load(bare).path == "p.csv"
    store.load(other)
    assert store.load(other).path == "p.csv"


def test_predictions_beside_a_table_that_the_tags_name(workspace, frame, tmp_path) -> None:
    """`log_table` names what it writes; that does not hide what was logged as a file."""
    run_id = workspace.run()
    workspace.client.log_table(run_id, {"feature": ["a", "b"], "gain": [3, 1]}, "importance.json")
    log_table_file(workspace, run_id, frame, tmp_path / "out", "p.csv")
    store = connect(workspace.uri)
    assert store.load(run_id).path == "p.csv"
    assert [ref.path for ref in store.tables(run_id)] == ["importance.json"]
    both = {"importance.json", "p.csv"}
    assert {ref.path for ref in store.tables(run_id, everything=True)} == both


def test_a_file_that_is_picked_beside_a_table_that_the_tags_name(
    workspace, frame, tmp_path
) -> None:
    run_id = workspace.run()
    workspace.client.log_table(run_id, frame.head(50), "train_predictions.json")
    log_table_file(workspace, run_id, frame, tmp_path / "out", "test.csv")
    store = connect(workspace.uri)
    table = store.load(run_id)
    assert table.path == "train_predictions.json"
    store.keep_roles(workspace.experiment_id, table.roles.corrected(table="test.csv"))
    assert store.load(run_id).path == "test.csv"


@pytest.mark.parametrize(
    "name", ["../p.csv", "/etc/p.csv", "a\\p.csv", "..", "ok/../../p.csv", "C:p.csv"]
)
def test_a_name_in_a_listing_that_leads_out(on_server, proxy, name: str) -> None:
    def rename(path: str, status: int, body: bytes) -> tuple[int, bytes]:
        if "artifacts?" in path:
            entry = {"path": name, "is_dir": False, "file_size": 9}
            body = json.dumps({"files": [entry]}).encode()
        return status, body

    run_id = on_server.run()
    proxy.spoil = rename
    store = connect(proxy.url)
    proxy.requests.clear()
    # MLflow refuses some of them itself, which says why the run cannot be read
    with pytest.raises((UnreadableTableError, ArtifactStoreError), match=r"no table|Invalid path"):
        store.load(run_id)
    (listing,) = [asked for asked in proxy.requests if "mlflow-artifacts/artifacts" in asked]
    assert "artifacts?path=" in listing  # and no file was asked for


# -------------------------------------------------------------------------------------- the run


def test_a_run_deleted_meanwhile(workspace, frame, tmp_path) -> None:
    run_id = workspace.run("candidate")
    log_table_file(workspace, run_id, frame, tmp_path / "out", "p.csv")
    store = connect(workspace.uri)
    workspace.client.delete_run(run_id)
    with pytest.raises(TrackingError, match=f"'candidate' has been deleted.*--run-id {run_id}"):
        store.load(run_id)
    workspace.client.restore_run(run_id)
    assert len(store.load(run_id).frame) == len(frame)


def test_a_run_that_is_gone_for_good(on_sqlite, frame, tmp_path) -> None:
    """As `mlflow gc` leaves it: neither its record nor its files."""
    import shutil

    from mlflow.tracking._tracking_service.utils import _get_store

    run_id = on_sqlite.run("candidate")
    log_table_file(on_sqlite, run_id, frame, tmp_path / "out", "p.csv")
    store = connect(on_sqlite.uri)
    run = store.run(run_id)
    assert store.tables(run)
    on_sqlite.client.delete_run(run_id)
    _get_store(on_sqlite.uri)._hard_delete_run(run_id)
    shutil.rmtree(run.artifact_uri)
    with pytest.raises(TrackingError, match=r"not found at .*deleted meanwhile"):
        store.load(run_id)
    with pytest.raises(ArtifactStoreError, match=r"folder .* is not on this machine"):
        store.load(run)
