"""A look at a store before MLflow touches it: alive, in seconds, and really MLflow.

MLflow's own client waits minutes for a dead server, prints whole web pages into its errors, and
makes a new database where a path is mistyped. So the first contact is made here.
"""

from __future__ import annotations

import difflib
import functools
import json
import os
import re
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from rise_core.exceptions import (
    AuthenticationError,
    NotMlflowError,
    ServerUnreachableError,
    TrackingError,
)
from rise_core.tracking.address import Address, clean_text
from rise_core.tracking.limits import TIMEOUT_VARIABLE

__all__ = ["Login", "ServerFacts", "check", "check_schema", "login"]

_MAX_BODY = 65_536


@dataclass(frozen=True)
class ServerFacts:
    """What the first contact told: MLflow's version, who one is there, and the time it took.

    Parameters
    ----------
    version : of the server, or of the database schema; "" when it does not say
    user : name the requests carry, "" for nobody
    seconds : of the whole check
    """

    version: str = ""
    user: str = ""
    seconds: float = 0.0


def check(address: Address, timeout: float = 5.0) -> ServerFacts:
    """Tell whether the store can be used, within about `timeout` seconds.

    Raises
    ------
    ServerUnreachableError
        nothing listens there, the name is unknown, or no answer came in time.
    AuthenticationError
        401, 403, or a refused Host header.
    NotMlflowError
        something else answers.
    TrackingError
        an sqlite file that is absent, no MLflow database, or of another schema version.
    """
    started = time.monotonic()
    if address.path is not None:
        version = check_schema(address, address.path)
        _refuse_without_default(address, address.path)
        return ServerFacts(version, "", time.monotonic() - started)
    version = _check_http(address, timeout)
    return ServerFacts(version, _user(address), time.monotonic() - started)


# ------------------------------------------------------------------------------------- servers


@dataclass(frozen=True)
class _Answer:
    status: int
    text: str
    kind: str

    def json(self) -> Any:
        try:
            return json.loads(self.text)
        except ValueError:
            return None


def _check_http(address: Address, timeout: float) -> str:
    # A slow database must be told from a dead host: the last fifth is kept for /health.
    try:
        answer = _get(
            address, "/api/2.0/mlflow/experiments/search?max_results=1", deadline=0.8 * timeout
        )
    except TimeoutError as error:
        raise _too_slow(address, timeout) from error
    value = answer.json()
    if answer.status == 200 and isinstance(value, dict):
        version = _version(address, timeout)
        if "experiments" in value or version:
            return version
    raise _refusal(address, answer)


def _too_slow(address: Address, timeout: float) -> ServerUnreachableError:
    try:
        alive = _get(address, "/health", deadline=max(0.2 * timeout, 0.5)).status == 200
    except (TimeoutError, TrackingError):
        alive = False
    if alive:
        return ServerUnreachableError(
            f"The tracking server {address.label} is alive, but did not list its experiments "
            f"within {timeout:g} s. Its database may be busy: try again, or raise "
            f"{TIMEOUT_VARIABLE}."
        )
    return ServerUnreachableError(
        f"The tracking server {address.label} did not answer within {timeout:g} s. It may be "
        f"overloaded, starting up, or behind a firewall: try again, or raise {TIMEOUT_VARIABLE}."
    )


def _version(address: Address, timeout: float) -> str:
    """Version of the server's MLflow, or "" (a proxy may hide that page: no reason to fail)."""
    try:
        answer = _get(address, "/version", deadline=min(timeout, 2.0))
    except (TimeoutError, TrackingError):
        return ""
    text = answer.text.strip()
    return text if answer.status == 200 and re.fullmatch(r"\d+\.\d+[\w.+-]{0,30}", text) else ""


def _get(address: Address, page: str, *, deadline: float) -> _Answer:
    """GET a page; TimeoutError when it is not all there in `deadline` seconds."""
    import requests

    ends = time.monotonic() + deadline
    headers = {"Accept": "application/json"}
    known = login(address)
    if known.token:
        headers["Authorization"] = f"Bearer {known.token}"
    try:
        with requests.get(
            address.uri + page, headers=headers, auth=known.auth, timeout=(deadline, deadline),
            stream=True, verify=known.verify, cert=known.certificate,
        ) as response:  # fmt: skip
            body = b""
            # A server that sends a byte a second never trips a read timeout: count ourselves.
            for chunk in response.iter_content(4096):
                body += chunk
                if len(body) >= _MAX_BODY:
                    break
                if time.monotonic() > ends:
                    raise TimeoutError
            kind = response.headers.get("Content-Type", "")
            return _Answer(response.status_code, body.decode("utf-8", "replace"), kind)
    except requests.exceptions.Timeout as error:
        raise TimeoutError from error
    except requests.exceptions.SSLError as error:
        raise ServerUnreachableError(
            f"No secure connection to {address.label}: {clean_text(_root_cause(error), 160)}. "
            + _tls_remedy(f"{error} {_root_cause(error)}")
        ) from error
    except requests.exceptions.RequestException as error:
        raise ServerUnreachableError(_connection_words(address, error)) from error


@dataclass(frozen=True)
class Login:
    """How requests to a server say who asks, and by which certificates.

    Parameters
    ----------
    auth : name and password, or None
    token : where there is no such pair, or ""
    verify : False for no check of the server's certificate, a file to check it with, or None
    certificate : file with one's own, or None
    """

    auth: tuple[str, str] | None = field(default=None, repr=False)
    token: str = field(default="", repr=False)
    verify: bool | str | None = None
    certificate: str | None = None


def login(address: Address) -> Login:
    """Read the login from the address, else from MLflow's environment variables.

    Raises
    ------
    TrackingError
        a variable names a certificate that is not there.
    """
    user, password = _credentials(address)
    auth = (user, password) if user and password else None
    verify: bool | str | None = None
    if os.environ.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() in ("true", "1"):
        verify = False
    elif path := _certificate("MLFLOW_TRACKING_SERVER_CERT_PATH"):
        verify = path
    return Login(
        auth,
        "" if auth else os.environ.get("MLFLOW_TRACKING_TOKEN", ""),
        verify,
        _certificate("MLFLOW_TRACKING_CLIENT_CERT_PATH") or None,
    )


def _certificate(variable: str) -> str:
    path = os.environ.get(variable, "")
    if path and not Path(path).exists():
        raise TrackingError(f"{variable} names {clean_text(path, 160)}, and there is no such file.")
    return path


def _tls_remedy(text: str) -> str:
    if "mismatch" in text:
        return "Use the name that the server's certificate is for."
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return (
            "Set MLFLOW_TRACKING_SERVER_CERT_PATH to the file of the authority that signed the "
            "server's certificate."
        )
    if "WRONG_VERSION_NUMBER" in text:
        return "The server speaks no TLS there: use http://, or another port."
    return (
        "It may want a certificate of yours (MLFLOW_TRACKING_CLIENT_CERT_PATH), or speak no TLS "
        "(http://)."
    )


def _credentials(address: Address) -> tuple[str, str]:
    parts = urlsplit(address.uri)
    if parts.username:
        return unquote(parts.username), unquote(parts.password or "")
    return (
        os.environ.get("MLFLOW_TRACKING_USERNAME", ""),
        os.environ.get("MLFLOW_TRACKING_PASSWORD", ""),
    )


def _user(address: Address) -> str:
    user, _ = _credentials(address)
    if user:
        return user
    return "token" if os.environ.get("MLFLOW_TRACKING_TOKEN") else ""


def _root_cause(error: BaseException) -> str:
    cause: BaseException = error
    while (inner := cause.__cause__ or cause.__context__) is not None:
        cause = inner
    return str(cause)


def _connection_words(address: Address, error: Exception) -> str:
    text = f"{error} {_root_cause(error)}"
    parts = urlsplit(address.uri)
    if re.search(r"refused|\[Errno 111\]|\[Errno 61\]", text):
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return (
            f"Nothing listens at {address.label}: the host refused the connection on port {port}. "
            "Start the server (mlflow server --port …) or correct the address."
        )
    if re.search(r"resolve|Name or service|nodename|getaddrinfo|No address associated", text):
        return f"The host of {address.label} is unknown. Correct the address or the network."
    if re.search(r"reset|aborted|closed|without response|EOF|BadStatus|RemoteDisconnected", text):
        return (
            f"{address.label} broke off the connection without an HTTP answer. "
            "Is it http where https is wanted, or a server that is shutting down?"
        )
    return f"No connection to {address.label}: {clean_text(_root_cause(error), 160)}."


def _refusal(address: Address, answer: _Answer) -> TrackingError:
    said = _said(answer)
    if answer.status == 401:
        user, password = _credentials(address)
        token = os.environ.get("MLFLOW_TRACKING_TOKEN") and not (user and password)
        came = f"as {user!r}" if user else "without credentials"
        came = "with MLFLOW_TRACKING_TOKEN" if token else came
        return AuthenticationError(
            f"The tracking server {address.label} wants a login (401); the request came {came}. "
            "Set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN."
        )
    if answer.status == 403:
        if "invalid host header" in answer.text.lower():
            host = urlsplit(address.uri).hostname
            return AuthenticationError(
                f"The tracking server {address.label} refuses this host name (403 Invalid Host "
                f"header). Start it with --allowed-hosts {host} or use a name it knows."
            )
        return AuthenticationError(
            f"The tracking server {address.label} refuses access (403){said}. "
            "Ask for read permission, or use other credentials."
        )
    if answer.status == 407:
        return AuthenticationError(
            f"A proxy before {address.label} wants a login (407). Set it in HTTPS_PROXY, or name "
            "the host in NO_PROXY."
        )
    if answer.status in (429, 502, 503, 504):
        return ServerUnreachableError(
            f"The tracking server {address.label} cannot answer now ({answer.status}){said}. "
            "Try again in a moment."
        )
    value = answer.json()
    if answer.status >= 500 or (isinstance(value, dict) and "error_code" in value):
        return TrackingError(
            f"The tracking server {address.label} failed ({answer.status}){said}. "
            "Its log says more; its database may be down or of another version."
        )
    return NotMlflowError(
        f"{address.label} answers, but is not an MLflow tracking server (status {answer.status}, "
        f"{clean_text(answer.kind or 'no content type', 40)}{said}). "
        "Correct the address; behind a proxy, add the path prefix the server is under."
    )


def _said(answer: _Answer) -> str:
    """What the server said, short: the title of a page, or the message of a JSON error."""
    value = answer.json()
    if isinstance(value, dict):
        text = str(value.get("message") or value.get("error_code") or value.get("detail") or "")
    else:
        title = re.search(r"<title[^>]*>(.*?)</title", answer.text, re.I | re.S)
        text = title[1] if title else answer.text[:2000]
    text = clean_text(text, 120)
    return f': "{text}"' if text else ""


# ------------------------------------------------------------------------------- sqlite files


def check_schema(address: Address, path: Path) -> str:
    """Return the version of a database file; refuse what MLflow would make or migrate on opening.

    Raises
    ------
    TrackingError
        there is no such file, or it is of another MLflow's version.
    NotMlflowError
        it is something else.
    """
    if not path.exists():
        raise TrackingError(
            f"There is no database at {address.label}; nothing was created."
            + _near_file(path)
            + " Correct the path, or make a store with mlflow first."
        )
    if not path.is_file():
        raise TrackingError(f"{address.label} is not a file. Give the path of an mlflow.db.")
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        raise TrackingError(f"{address.label} cannot be read: {error.strerror}.") from error
    if head != b"SQLite format 3\x00":
        what = "is empty" if not head else "is not an SQLite database"
        raise NotMlflowError(f"{address.label} {what}. Give the path of an mlflow.db.")
    found = _schema_version(address, path)
    known, head_version = _schema_versions()
    if found == head_version:
        return found
    if found in known:
        raise TrackingError(
            f"The database {address.label} was written by an older MLflow (schema {found}, "
            f"wanted {head_version}). RISE never changes it: make a copy, then run "
            f"`mlflow db upgrade sqlite:///{path}`."
        )
    raise TrackingError(
        f"The database {address.label} was written by a newer MLflow (schema {found}, this one "
        f"knows {head_version}). Install a newer mlflow here, or use its server's http address."
    )


def _schema_version(address: Address, path: Path) -> str:
    try:
        link = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=2.0)
        with closing(link):
            tables = {row[0] for row in link.execute("SELECT name FROM sqlite_master")}
            if not {"alembic_version", "experiments", "runs"} <= tables:
                raise NotMlflowError(
                    f"{address.label} is an SQLite database, but not one of MLflow's "
                    "(it has no experiments and runs). Give the path of an mlflow.db."
                )
            row = link.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.Error as error:
        raise _unreadable(address, error) from error
    return str(row[0]) if row else "none"


def _refuse_without_default(address: Address, path: Path) -> None:
    try:
        link = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=2.0)
        with closing(link):
            found = link.execute("SELECT 1 FROM experiments WHERE experiment_id = 0").fetchone()
    except sqlite3.Error as error:
        raise _unreadable(address, error) from error
    if found is None:
        # MLflow would write this experiment on opening, and a read-only database refuses
        raise TrackingError(
            f"The database {address.label} lacks MLflow's experiment 0 (Default), without which "
            "MLflow does not open it. Start `mlflow server` over it once, or restore it."
        )


def _unreadable(address: Address, error: Exception) -> TrackingError:
    return TrackingError(
        f"The database {address.label} cannot be read: {clean_text(error, 160)}. "
        "It may be damaged, or locked by another program: try again."
    )


@functools.cache
def _schema_versions() -> tuple[frozenset[str], str]:
    """All schema versions the installed MLflow knows, and its newest."""
    import importlib.util

    from alembic.script import ScriptDirectory

    spec = importlib.util.find_spec("mlflow")
    folder = Path((spec.submodule_search_locations or [""])[0] if spec else "")
    scripts = ScriptDirectory(str(folder / "store" / "db_migrations"))
    known = frozenset(script.revision for script in scripts.walk_revisions())
    return known, scripts.get_current_head() or ""


def _near_file(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f" The folder {folder} does not exist."
    names = [entry.name for entry in folder.iterdir() if entry.suffix in (".db", ".sqlite")]
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.5)
    return f" Did you mean {near[0]!r}?" if near else ""
