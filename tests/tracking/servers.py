"""Start what tests connect to: MLflow servers, and a PostgreSQL of one's own."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def mlflow_server(
    folder: Path,
    *options: str,
    backend: str | None = None,
    port: int | None = None,
    **environment: str,
) -> Iterator[str]:
    """Run a tracking server in `folder` with its artifact proxy; yields its address.

    The database is sqlite in the folder unless `backend` names another. A server that is started
    again in its folder, on its old `port`, is the same one.
    """
    port = free_port() if port is None else port
    url = f"http://127.0.0.1:{port}"
    # Jobs would start fifteen processes that outlive their parent.
    variables = os.environ | {
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    variables.pop("MLFLOW_TRACKING_URI", None)
    command = [
        sys.executable, "-m", "mlflow", "server", "--workers", "1",
        "--host", "127.0.0.1", "--port", str(port),
        "--backend-store-uri", backend or f"sqlite:///{folder}/mlflow.db",
        "--artifacts-destination", str(folder / "artifacts"), "--serve-artifacts", *options,
    ]  # fmt: skip
    log = folder / "log.txt"
    with _process(command, log, cwd=folder, env=variables | environment) as process:
        wait_until(lambda: _answers(f"{url}/health"), process, log)
        yield url


ADMIN, PASSWORD = "admin", "a long enough word 1"


@contextlib.contextmanager
def guarded_server(folder: Path) -> Iterator[str]:
    """Run a server that wants a login; who is none of its admins may read; yields its address."""
    settings = folder / "auth.ini"
    settings.write_text(
        "[mlflow]\ndefault_permission = READ\n"
        f"database_uri = sqlite:///{folder}/users.db\nadmin_username = {ADMIN}\n"
        "authorization_function = mlflow.server.auth:authenticate_request_basic_auth\n"
        "grant_default_workspace_access = false\n"
        "auth_cache_ttl_seconds = 60\n"  # else each request hashes the password anew, slowly
    )
    with mlflow_server(
        folder, "--app-name", "basic-auth",
        MLFLOW_AUTH_CONFIG_PATH=str(settings), MLFLOW_AUTH_ADMIN_PASSWORD=PASSWORD,
        MLFLOW_FLASK_SERVER_SECRET_KEY=secrets.token_hex(),
    ) as url:  # fmt: skip
        yield url


def as_admin(url: str, what: str, method: str = "POST", **values: str) -> None:
    """Ask a guarded server for something that its admin may do."""
    import requests

    answer = requests.request(
        method, f"{url}/api/2.0/mlflow/{what}", json=values, auth=(ADMIN, PASSWORD), timeout=30
    )
    assert answer.status_code == 200, answer.text


def _answers(url: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2) as answer:
        return bool(answer.status == 200)
    return False


@contextlib.contextmanager
def _process(command: list[str], log: Path, **options: object) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=out, start_new_session=True, **options  # type: ignore[call-overload]
        )  # fmt: skip
    try:
        yield process
    finally:
        _end_group(process)


def wait_until(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    ends = time.monotonic() + 90
    while time.monotonic() < ends:
        if process.poll() is not None:
            break
        if ready():
            return
        time.sleep(0.2)
    raise RuntimeError(f"{process.args!r} did not start: {log.read_text()[-2000:]}")


def _end_group(process: subprocess.Popen[bytes]) -> None:
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
            if sign == signal.SIGKILL:
                return
    process.wait(5)


# --------------------------------------------------------------------------------- PostgreSQL


def postgresql_programs() -> Path | None:
    """Folder of initdb and postgres, which Debian keeps off the search path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    on_path = shutil.which("postgres")
    if on_path:
        found.append(Path(on_path).resolve().parent)
    return next((p for p in found if (p / "initdb").exists() and (p / "postgres").exists()), None)


@contextlib.contextmanager
def postgresql(programs: Path) -> Iterator[str]:
    """Run a database server of one's own, in a folder that goes with it; yields its address.

    PostgreSQL refuses to run as root: then it is the user "nobody".
    """
    who: dict[str, object] = {}
    # not pytest's folder: another user cannot enter that
    folder = Path(tempfile.mkdtemp(prefix="rise-pg-"))
    try:
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
            who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        data = folder / "data"
        subprocess.run(
            [programs / "initdb", "-D", data, "-U", "rise", "-A", "trust", "--no-sync",
             "-E", "UTF8", "--locale=C"],
            check=True, capture_output=True, cwd=folder, **who,
        )  # fmt: skip
        port = free_port()
        command = [
            str(programs / "postgres"), "-D", str(data), "-p", str(port), "-k", str(folder),
            "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "max_connections=40",
        ]  # fmt: skip
        log = folder / "log.txt"
        with _process(command, log, cwd=folder, **who) as process:
            wait_until(lambda: b"ready to accept" in log.read_bytes(), process, log)
            yield f"postgresql+psycopg2://rise@127.0.0.1:{port}/postgres"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def install_postgresql() -> int:
    """Install Debian's package where that is possible; without it one test is skipped."""
    if postgresql_programs() is None and os.geteuid() == 0 and shutil.which("apt-get"):
        print("Installing PostgreSQL for the tests …", flush=True)
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        for command in (
            ["apt-get", "update", "-qq"],
            ["apt-get", "install", "-qq", "-y", "--no-install-recommends", "postgresql"],
        ):
            subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=False)
    found = postgresql_programs()
    print(f"PostgreSQL: {found or 'not here; its tests are skipped'}")
    return 0


if __name__ == "__main__":
    sys.exit(install_postgresql())
