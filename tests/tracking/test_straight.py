"""Files taken straight from a server's proxy, and everything else left to MLflow's client."""

from __future__ import annotations

import http.server
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rise_core.tracking import connect
from rise_core.tracking.address import parse_address
from rise_core.tracking.files import RemoteFiles
from rise_core.tracking.straight import StraightFetch
from tests.tracking.conftest import send


def test_a_table_comes_without_mlflows_client(on_server, frame, tmp_path, monkeypatch) -> None:
    run_id = on_server.run()
    file = tmp_path / "predictions.parquet"
    frame.to_parquet(file)
    on_server.client.log_artifact(run_id, str(file))

    def refuse(*_: Any) -> None:
        raise AssertionError("MLflow's client was asked")

    monkeypatch.setattr(RemoteFiles, "fetch", refuse)
    store = connect(on_server.uri, cache_dir=tmp_path / "cache")
    pd.testing.assert_frame_equal(store.load(run_id).frame, frame, check_dtype=False)


class Server:
    """Answers with one status, and remembers what it was asked."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.seen: list[tuple[str, str | None]] = []

    def __call__(self, request: http.server.BaseHTTPRequestHandler) -> None:
        self.seen.append((request.path, request.headers.get("Authorization")))
        if self.status == 302:
            request.send_response(302)
            request.send_header("Location", "/elsewhere")
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        send(request, self.status, b"rows", "application/octet-stream")


@pytest.mark.parametrize(
    ("status", "later"), [(404, True), (403, False), (500, False), (302, False)]
)
def test_another_answer_is_left_to_mlflow(serve, tmp_path: Path, status: int, later: bool) -> None:
    server = Server(status)
    url = serve(server)
    straight = StraightFetch(parse_address(url), 5)
    target = tmp_path / "file"
    assert not straight.fetch(f"{url}/a", target)
    assert not target.exists()
    server.status = 200
    assert straight.fetch(f"{url}/b", target) is later, "one failure costs one request"
    assert [path for path, _ in server.seen] == (["/a", "/b"] if later else ["/a"])


def test_it_is_tried_again_after_a_minute(serve, tmp_path: Path, monkeypatch) -> None:
    server = Server(500)
    url = serve(server)
    straight = StraightFetch(parse_address(url), 5)
    assert not straight.fetch(f"{url}/a", tmp_path / "file")
    server.status = 200
    assert not straight.fetch(f"{url}/a", tmp_path / "file")
    now = time.monotonic
    monkeypatch.setattr("time.monotonic", lambda: now() + 61)
    assert straight.fetch(f"{url}/a", tmp_path / "file")


def test_what_is_sent_instead_of_a_file_is_left_to_mlflow(
    on_server, frame, tmp_path, monkeypatch
) -> None:
    run_id = on_server.run()
    file = tmp_path / "predictions.parquet"
    frame.to_parquet(file)
    on_server.client.log_artifact(run_id, str(file))

    def log_in(_self: Any, _url: str, target: Path) -> bool:
        target.write_text("<html>Please log in</html>")
        return True

    monkeypatch.setattr(StraightFetch, "fetch", log_in)
    store = connect(on_server.uri, cache_dir=tmp_path / "cache")
    pd.testing.assert_frame_equal(store.load(run_id).frame, frame, check_dtype=False)


def test_the_login_goes_to_its_server_alone(serve, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "secret")
    own, other = Server(), Server()
    url, elsewhere = serve(own), serve(other)
    straight = StraightFetch(parse_address(url), 5)
    assert straight.fetch(f"{url}/a", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"rows"
    assert own.seen == [("/a", "Bearer secret")]
    assert not straight.fetch(f"{elsewhere}/a", tmp_path / "file")
    assert other.seen == []


def test_a_special_login_is_mlflows_business(serve, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_AWS_SIGV4", "true")
    server = Server()
    url = serve(server)
    assert not StraightFetch(parse_address(url), 5).fetch(f"{url}/a", tmp_path / "file")
    assert server.seen == []


def test_a_server_that_has_gone_is_left_to_mlflow(tmp_path) -> None:
    url = "http://127.0.0.1:9"
    assert not StraightFetch(parse_address(url), 1).fetch(f"{url}/a", tmp_path / "file")
