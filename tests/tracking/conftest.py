"""A real MLflow server on loopback, a store of each kind, and servers that misbehave."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import shutil
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.tracking.servers import mlflow_server

mlflow = pytest.importorskip("mlflow")


# Warnings of MLflow's own code, which nobody here can mend.
FOREIGN_WARNINGS = (
    "ignore:The ``noload`` loader strategy is deprecated:DeprecationWarning",  # on SQLAlchemy 2.1
    "ignore:For backward compatibility, 'str' dtypes:DeprecationWarning",  # log_table on pandas 3
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let MLflow's own warnings pass in this folder; all others stay errors."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            for line in FOREIGN_WARNINGS:
                item.add_marker(pytest.mark.filterwarnings(line))
            if _wants_server(item):
                # one server for all, where tests are spread over processes
                item.add_marker(pytest.mark.xdist_group("mlflow-server"))


def _wants_server(item: pytest.Item) -> bool:
    names = set(getattr(item, "fixturenames", ()))
    if names & {"server_url", "on_server", "proxy"}:
        return True
    return "workspace" in names and "[server" in item.nodeid


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a real tracking server: sqlite behind it, artifacts through its proxy."""
    with mlflow_server(tmp_path_factory.mktemp("mlflow-server")) as url:
        yield url


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An MLflow database as MLflow makes it; copied, since making one takes seconds."""
    path = tmp_path_factory.mktemp("database") / "mlflow.db"
    # The first experiment keeps its artifacts below the folder one stands in now.
    with contextlib.chdir(path.parent):
        mlflow.MlflowClient(tracking_uri=f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def sqlite_uri(empty_database: Path, tmp_path: Path) -> str:
    """Address of a fresh database file in `tmp_path`."""
    path = tmp_path / "mlflow.db"
    shutil.copyfile(empty_database, path)
    return f"sqlite:///{path}"


@dataclass
class Workspace:
    """A client and an experiment of its own, to write runs with."""

    uri: str
    client: Any
    experiment_id: str

    def run(self, name: str = "a run", status: str | None = "FINISHED", **tags: str) -> str:
        """Make a run; status None leaves it running."""
        made = self.client.create_run(self.experiment_id, run_name=name, tags=tags)
        run_id = str(made.info.run_id)
        if status is not None:
            self.client.set_terminated(run_id, status)
        return run_id


def _workspace(uri: str, artifacts: str | None = None) -> Workspace:
    client = mlflow.MlflowClient(tracking_uri=uri)
    name = f"experiment {time.monotonic_ns()}"
    return Workspace(uri, client, client.create_experiment(name, artifact_location=artifacts))


def close(workspace: Workspace, run_id: str, how: str) -> None:
    """Close a run to writing: "deleted", "locked", or still running."""
    if how == "deleted":
        workspace.client.delete_run(run_id)
    elif how == "locked":
        workspace.client.set_tag(run_id, "rise.locked", "audit 2026")
    else:
        workspace.client.update_run(run_id, status="RUNNING")


@pytest.fixture
def on_server(server_url: str) -> Workspace:
    return _workspace(server_url)


@pytest.fixture
def on_sqlite(sqlite_uri: str, tmp_path: Path) -> Workspace:
    return _workspace(sqlite_uri, str(tmp_path / "artifacts"))


@pytest.fixture(params=["server", "sqlite"])
def workspace(request: pytest.FixtureRequest) -> Workspace:
    """A place to write, on a server and in a database file."""
    made: Workspace = request.getfixturevalue(f"on_{request.param}")
    return made


@pytest.fixture
def frame() -> pd.DataFrame:
    """240 rows with text labels, two groups and codes that look like numbers."""
    rng = np.random.default_rng(7)
    label = rng.integers(0, 2, 240)
    return pd.DataFrame(
        {
            "y_true": np.where(label == 1, "yes", "no"),
            "y_prob": np.round(np.clip(label * 0.4 + rng.random(240) * 0.6, 0, 1), 6),
            "sex": rng.choice(["female", "male"], 240),
            "region_code": rng.choice(["001", "002", "NA"], 240),
        }
    )


# ------------------------------------------------------------------------- faulty servers


Answer = Callable[[http.server.BaseHTTPRequestHandler], None]


@contextlib.contextmanager
def _serve(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with contextlib.suppress(OSError):
                answer(self)

        do_POST = do_PUT = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        scheme = "http" if tls is None else "https"
        yield f"{scheme}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.socket.close()


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Start a server whose answers are written by hand; returns its address."""
    with contextlib.ExitStack() as stack:
        yield lambda answer, tls=None: stack.enter_context(_serve(answer, tls))


@pytest.fixture
def page(serve: Callable[[Answer], str]) -> Callable[..., str]:
    """Start a server that gives one answer to everything."""

    def start(status: int, body: str, kind: str = "text/html") -> str:
        def answer(request: http.server.BaseHTTPRequestHandler) -> None:
            send(request, status, body.encode(), kind)

        return serve(answer)

    return start


def send(
    request: http.server.BaseHTTPRequestHandler,
    status: int,
    body: bytes,
    kind: str,
    sent: int | None = None,
) -> None:
    """Answer; with `sent`, only so many bytes of it, and then hang up."""
    request.send_response(status)
    request.send_header("Content-Type", kind)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body[:sent])
    request.close_connection = sent is not None


@dataclass
class Proxy:
    """Stands before the real server: counts requests, and can spoil answers.

    `spoil` gets path, status and body, and returns what to answer: (status, body), or None to
    hang up. `dead` makes it hang up on everything; while `answers` is cleared it keeps all
    waiting, a minute at most, and paths that hold `slow` whatever else it does. Of a path that
    ends in `cut` it promises all and sends half.
    """

    url: str = ""
    requests: list[str] = field(default_factory=list)
    spoil: Callable[[str, int, bytes], tuple[int, bytes] | None] | None = None
    dead: bool = False
    slow: str | None = None
    cut: str | None = None
    over: threading.Event = field(default_factory=threading.Event)
    answers: threading.Event = field(default_factory=threading.Event)


@pytest.fixture
def proxy(server_url: str, serve: Callable[[Answer], str]) -> Iterator[Proxy]:
    made = Proxy()
    made.answers.set()
    host = server_url.removeprefix("http://")

    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        made.requests.append(f"{request.command} {request.path}")
        made.answers.wait(60)
        if made.slow is not None and made.slow in request.path:
            made.over.wait(60)
        if made.dead:
            request.close_connection = True
            return
        length = int(request.headers.get("Content-Length") or 0)
        body = request.rfile.read(length) if length else None
        link = http.client.HTTPConnection(host, timeout=30)
        try:
            headers = {"Content-Type": request.headers.get("Content-Type", "")}
            link.request(request.command, request.path, body, headers)
            response = link.getresponse()
            status, data = response.status, response.read()
            kind = response.headers.get("Content-Type", "")
        finally:
            link.close()
        if made.spoil is not None:
            spoilt = made.spoil(request.path, status, data)
            if spoilt is None:
                request.close_connection = True
                return
            status, data = spoilt
        whole = made.cut is None or not request.path.endswith(made.cut)
        send(request, status, data, kind, sent=None if whole else len(data) // 2)

    made.url = serve(answer)
    yield made
    made.answers.set()
    made.over.set()
