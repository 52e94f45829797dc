"""`connect`: each way in which a store cannot be used is told apart, within seconds."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rise_core.cli import UNREADABLE, main
from rise_core.exceptions import (
    AuthenticationError,
    NotMlflowError,
    RiseError,
    ServerUnreachableError,
    TrackingError,
)
from rise_core.tracking import connect, log_predictions
from rise_core.tracking.address import clean_text, parse_address, redact


def test_server_says_its_version_and_time(server_url: str) -> None:
    store = connect(server_url)
    assert store.label == server_url
    assert store.facts.version.startswith("3.")
    assert 0 < store.facts.seconds < 5
    assert "Default" in [experiment.name for experiment in store.experiments()]


def test_address_copied_from_the_browser_works(server_url: str) -> None:
    assert connect(server_url + "/#/experiments/0").uri == server_url


def test_tracking_uri_from_the_environment(
    server_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server_url)
    assert connect().uri == server_url


def test_no_address() -> None:
    with pytest.raises(TrackingError, match="Set MLFLOW_TRACKING_URI"):
        connect()


def test_sqlite_file_is_opened_read_only(
    sqlite_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = (tmp_path / "mlflow.db").read_bytes()
    store = connect(sqlite_uri)
    assert [experiment.name for experiment in store.experiments()] == ["Default"]
    assert (tmp_path / "mlflow.db").read_bytes() == before
    # MLflow makes a folder "file:" for a read-only address, and mlruns for a relative one
    assert {entry.name for entry in tmp_path.iterdir()} <= {"mlflow.db", "rise-home"}
    with pytest.raises(Exception, match="readonly"):
        store.client.create_experiment("must fail")


def test_relative_sqlite_path(
    sqlite_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert connect("sqlite:///mlflow.db").uri == sqlite_uri


# ---------------------------------------------------------------------------------- servers


@contextlib.contextmanager
def _quick(seconds: float = 6.0) -> Iterator[None]:
    started = time.monotonic()
    yield
    assert time.monotonic() - started < seconds


def test_server_down() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with _quick(2), pytest.raises(ServerUnreachableError, match="Nothing listens") as caught:
        connect(f"http://127.0.0.1:{port}")
    assert f"port {port}" in str(caught.value)


def test_unknown_host() -> None:
    with pytest.raises(ServerUnreachableError, match="unknown"):
        connect("http://no-such-host.invalid:5000")


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and never answers."""
    listener = socket.create_server(("127.0.0.1", 0))
    held: list[socket.socket] = []

    def hold() -> None:
        with contextlib.suppress(OSError):
            while True:
                held.append(listener.accept()[0])

    thread = threading.Thread(target=hold)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()
    for link in held:
        link.close()


def test_server_that_never_answers(silent_port: int) -> None:
    with _quick(), pytest.raises(ServerUnreachableError, match=r"did not answer within 2 s"):
        connect(f"http://127.0.0.1:{silent_port}", timeout=2)


def test_slow_database_is_told_from_a_dead_server(serve: Callable[..., str]) -> None:
    def answer(request) -> None:  # type: ignore[no-untyped-def]
        if "experiments" in request.path:
            time.sleep(4)
        else:
            request.send_response(200)
            request.end_headers()
            request.wfile.write(b"OK")

    url = serve(answer)
    with _quick(3), pytest.raises(ServerUnreachableError, match="alive, but did not list"):
        connect(url, timeout=1)


def test_server_that_drips(serve: Callable[..., str]) -> None:
    def answer(request) -> None:  # type: ignore[no-untyped-def]
        request.send_response(200)
        request.end_headers()
        for _ in range(100):
            request.wfile.write(b" " * 5000)
            time.sleep(0.3)

    url = serve(answer)
    with _quick(5), pytest.raises(ServerUnreachableError, match="did not answer within"):
        connect(url, timeout=1)


def test_web_page_is_not_mlflow(page: Callable[..., str]) -> None:
    body = "<html><title>Welcome to <b>nginx</b>!</title>" + "x" * 50_000 + "</html>"
    with pytest.raises(NotMlflowError) as caught:
        connect(page(200, body))
    text = str(caught.value)
    assert "not an MLflow tracking server" in text
    assert "Welcome to nginx" in text
    assert len(text) < 400
    assert "<" not in text


def test_another_json_api_is_not_mlflow(page: Callable[..., str]) -> None:
    with pytest.raises(NotMlflowError):
        connect(page(200, '{"ok": true}', "application/json"))


def test_wrong_path_is_not_mlflow(server_url: str) -> None:
    with pytest.raises(NotMlflowError, match="path prefix"):
        connect(server_url + "/somewhere")


def test_other_protocol(serve: Callable[..., str]) -> None:
    def answer(request) -> None:  # type: ignore[no-untyped-def]
        request.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        request.close_connection = True

    with pytest.raises(RiseError, match=r"broke off|No connection|not an MLflow"):
        connect(serve(answer))


def test_login_wanted(page: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    url = page(401, "You are not authenticated.")
    with pytest.raises(AuthenticationError, match=r"401.*without credentials.*USERNAME"):
        connect(url)
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "ann")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "pa55word")
    with pytest.raises(AuthenticationError, match="as 'ann'") as caught:
        connect(url)
    assert "pa55word" not in str(caught.value)


def test_refused_host_name(page: Callable[..., str]) -> None:
    url = page(403, "Invalid Host header - possible DNS rebinding attack detected", "text/plain")
    with pytest.raises(AuthenticationError, match=r"--allowed-hosts 127\.0\.0\.1"):
        connect(url)


def test_real_server_refuses_a_foreign_host_name(server_url: str) -> None:
    """The text the message relies on is the one MLflow sends."""
    port = server_url.rsplit(":", 1)[1]
    with socket.create_connection(("127.0.0.1", int(port))) as link:
        link.sendall(b"GET /api/2.0/mlflow/experiments/search?max_results=1 HTTP/1.1\r\n"
                     b"Host: evil.example\r\nConnection: close\r\n\r\n")  # fmt: skip
        data = b""
        while block := link.recv(4096):
            data += block
    assert b" 403 " in data.split(b"\r\n", 1)[0]
    assert b"invalid host header" in data.lower()


def test_no_permission(page: Callable[..., str]) -> None:
    with pytest.raises(AuthenticationError, match=r"refuses access \(403\).*Permission denied"):
        connect(page(403, "Permission denied"))


@pytest.mark.parametrize("status", [502, 503, 504, 429])
def test_busy_proxy(page: Callable[..., str], status: int) -> None:
    with pytest.raises(ServerUnreachableError, match=f"cannot answer now .{status}"):
        connect(page(status, "<html><h1>Bad Gateway</h1></html>"))


def test_failing_database_behind_the_server(page: Callable[..., str]) -> None:
    body = '{"error_code": "INTERNAL_ERROR", "message": "no such table: experiments"}'
    with pytest.raises(TrackingError, match="no such table: experiments"):
        connect(page(500, body, "application/json"))


def test_credentials_never_show(page: Callable[..., str]) -> None:
    url = page(401, "no").replace("http://", "http://ann:s3cret@")
    with pytest.raises(AuthenticationError) as caught:
        connect(url)
    assert "s3cret" not in str(caught.value)
    assert "as 'ann'" in str(caught.value)


# ------------------------------------------------------------------------------ sqlite files


def test_mistyped_path_creates_nothing(sqlite_uri: str, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    wrong = sqlite_uri.replace("mlflow.db", "mlfow.db")
    with pytest.raises(TrackingError, match=r"nothing was created. Did you mean 'mlflow.db'"):
        connect(wrong)
    with pytest.raises(TrackingError, match=r"folder .*/nowhere/at does not exist"):
        connect(f"sqlite:///{tmp_path}/nowhere/at/all.db")
    assert main(["evaluate", "0" * 32, "--tracking-uri", wrong]) == UNREADABLE
    assert sorted(tmp_path.rglob("*")) == before


def _old(path: Path) -> None:
    """Make a database as MLflow 1.0 did: fewer tables, and those of another form."""
    import sqlalchemy
    from alembic import command
    from mlflow.store.db.utils import _get_alembic_config
    from mlflow.store.tracking.dbmodels.initial_models import Base

    path.unlink()
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    Base.metadata.create_all(engine)
    engine.dispose()
    command.upgrade(_get_alembic_config(f"sqlite:///{path}"), "451aebb31d03")


def _new(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as link, link:
        link.execute("UPDATE alembic_version SET version_num = 'ffffffffffff'")


@pytest.mark.parametrize(
    ("make", "words"),
    [(_old, r"older MLflow.*mlflow db upgrade"), (_new, r"newer MLflow.*Install a newer mlflow")],
)
def test_another_schema_is_never_migrated(
    sqlite_uri: str,
    tmp_path: Path,
    make: Callable[[Path], None],
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Neither by looking nor by logging; MLflow's own client would do it on opening."""
    make(tmp_path / "mlflow.db")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for writable in (False, True):
        with pytest.raises(TrackingError, match=words):
            connect(sqlite_uri, writable=writable)
    with pytest.raises(TrackingError, match=words):
        log_predictions([0, 1], [0.1, 0.9], sensitive_features=["a", "b"],
                        run_id="0" * 32, tracking_uri=sqlite_uri)  # fmt: skip
    assert main(["evaluate", "0" * 32, "--tracking-uri", sqlite_uri]) == UNREADABLE
    assert re.search(words, capsys.readouterr().err)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_other_databases_and_files(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with contextlib.closing(sqlite3.connect(other)) as link, link:
        link.execute("CREATE TABLE songs (title TEXT)")
    with pytest.raises(NotMlflowError, match="not one of MLflow's"):
        connect(f"sqlite:///{other}")
    (tmp_path / "text.db").write_text("not a database at all")
    with pytest.raises(NotMlflowError, match="is not an SQLite database"):
        connect(f"sqlite:///{tmp_path}/text.db")
    (tmp_path / "empty.db").touch()
    with pytest.raises(NotMlflowError, match="is empty"):
        connect(f"sqlite:///{tmp_path}/empty.db")
    with pytest.raises(TrackingError, match="is not a file"):
        connect(f"sqlite:///{tmp_path}")


def test_database_without_default_experiment_is_left_alone(sqlite_uri: str, tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    with contextlib.closing(sqlite3.connect(path)) as link, link:
        link.execute("DELETE FROM experiments")
    before = path.read_bytes()
    with pytest.raises(TrackingError, match="experiment 0"):
        connect(sqlite_uri)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("./mlruns", "folder path"),
        ("file:///tmp/mlruns", "migrate-filestore"),
        ("postgresql://ann:s3cret@db/mlflow", "not opened directly"),
        ("databricks", "no address of a store"),
        ("ftp://host/x", "not supported"),
        ("http://", "names no host"),
        ("http://host:99999", "not a valid address"),
        ("sqlite://", "names no database file"),
        ("sqlite:///:memory:", "names no database file"),
        ("  ", "is empty"),
    ],
)
def test_addresses_of_other_kinds(uri: str, text: str) -> None:
    with pytest.raises(TrackingError, match=text) as caught:
        connect(uri)
    assert "s3cret" not in str(caught.value)


def test_path_of_a_database_without_its_scheme(sqlite_uri: str, tmp_path: Path) -> None:
    with pytest.raises(TrackingError, match=f"address as sqlite:///{tmp_path}/mlflow.db"):
        connect(str(tmp_path / "mlflow.db"))
    with pytest.raises(TrackingError, match=f"use sqlite:///{tmp_path}/mlflow.db"):
        connect(str(tmp_path))


# ------------------------------------------------------------------------------ small parts


def test_redact_and_clean_text() -> None:
    assert redact("see https://ann:pw@host/x and s3://k:s@b") == "see https://…@host/x and s3://…@b"
    assert redact("https://ann:p/w@1@host:5000/x") == "https://…@host:5000/x"
    assert redact("http://h:5000/a@b http://ann:p@h") == "http://h:5000/a@b http://…@h"
    assert redact("sqlite:////runs/a@b/x.db") == "sqlite:////runs/a@b/x.db"
    assert redact("postgresql://h/db?password=abc&x=1") == "postgresql://h/db?password=…&x=1"
    assert clean_text("<script>alert(1)</script>a\x1b[31m\nb\u202ec <i>d</i>") == "a [31m b c d"
    assert len(clean_text("x" * 5000)) == 300


def test_label_of_an_address_has_no_credentials() -> None:
    address = parse_address("https://ann:pw@host:5000/mlflow/")
    assert address.label == "https://…@host:5000/mlflow"
    assert address.uri == "https://ann:pw@host:5000/mlflow"


def test_importing_the_package_does_not_import_mlflow(root: Path) -> None:
    code = "import sys, rise_core.tracking; sys.exit('mlflow' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root, env=dict(os.environ))
