"""Addresses of MLflow stores: what kind, how to show one without its password."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Literal
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from rise_core.exceptions import TrackingError

__all__ = ["Address", "clean_text", "parse_address", "redact"]

_SECRET_QUERY = re.compile(r"(?i)\b((?:password|passwd|pwd|token|secret|key)=)[^&;\s'\"]+")
# "user:password@" ends at the last "@", as a password may hold "/" and "@"; ":5000/" is a port.
_USERINFO = re.compile(
    r"(?i)\b([a-z][a-z0-9+.-]*://)(?:[^\s/@:'\"]*:(?!\d{1,5}/)[^\s'\"]*|[^\s/@'\"]+)@"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Address:
    """Where a store is.

    Parameters
    ----------
    kind : "http" (a tracking server) or "sqlite" (a database file)
    uri : address as MLflow wants it
    label : address as people may see it, without credentials
    path : the database file, for "sqlite"
    """

    kind: Literal["http", "sqlite"]
    uri: str
    label: str
    path: Path | None = None

    @property
    def on_this_machine(self) -> bool:
        """Whether it is a file, or a server that is reached by this machine's own name."""
        host = urlsplit(self.uri).hostname or ""
        if self.path is not None or host == "localhost":
            return True
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return False

    @property
    def client_uri(self) -> str:
        """Address that opens a database read-only; the plain one for a server.

        The driver is named because MLflow makes a folder called "file:" for "sqlite:///file:…".
        """
        if self.path is None:
            return self.uri
        return f"sqlite+pysqlite:///file:{quote(str(self.path))}?mode=ro&uri=true"


def redact(text: str) -> str:
    """Replace user, password and token in every address inside `text` by dots."""
    return _SECRET_QUERY.sub(r"\1…", _USERINFO.sub(r"\1…@", text))


def clean_text(text: object, limit: int = 300) -> str:
    """Foreign text made fit for a message: one line, no control marks, no markup, cut, redacted."""
    plain = re.sub(r"<(script|style)\b.*?</\1\s*>", " ", str(text), flags=re.I | re.S)
    plain = re.sub(r"<[^<>]{0,200}>", " ", plain)
    plain = redact(" ".join(_CONTROL.sub(" ", plain).split()))
    plain = plain.replace("<", "‹").replace(">", "›")
    return plain if len(plain) <= limit else plain[: limit - 1].rstrip() + "…"


def parse_address(uri: str) -> Address:
    """Say what kind of store `uri` names.

    Raises
    ------
    TrackingError
        for an address that is not a tracking server or an sqlite file, with the way out.
    """
    uri = uri.strip()
    label = redact(uri)
    if not uri:
        raise TrackingError(
            "The tracking address is empty. Give one such as http://localhost:5000."
        )
    scheme = uri.split(":", 1)[0].lower() if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", uri) else ""
    if scheme in ("http", "https"):
        return _http(uri)
    if scheme in ("sqlite", "sqlite+pysqlite"):
        return _sqlite(uri)
    if scheme in ("", "file"):
        path = Path(unquote(urlsplit(uri).path) if scheme == "file" else uri).expanduser()
        if path.is_file():
            with path.open("rb") as file:
                if file.read(16) == b"SQLite format 3\x00":
                    raise TrackingError(
                        f"{label} is an SQLite file. Give its address as sqlite:///{path}"
                    )
        if path.is_dir() or scheme == "file" or "/" in uri:
            inside = path / "mlflow.db"
            hint = f" It holds a database: use sqlite:///{inside}." if inside.is_file() else ""
            raise TrackingError(
                f"{label} is a folder path, and MLflow has given up its file store.{hint} Use a "
                "tracking server (http://…) or a database file (sqlite:///path/to/mlflow.db); "
                "`mlflow migrate-filestore` brings an old mlruns folder into a database."
            )
        raise TrackingError(
            f"{label!r} is no address of a store. Use http://host:port or sqlite:///path/mlflow.db."
        )
    base = scheme.split("+", 1)[0]
    if base in ("postgresql", "postgres", "mysql", "mssql"):
        raise TrackingError(
            f"{label}: a {base} database is not opened directly. Start a server over it "
            "(mlflow server --backend-store-uri …) and give its http address."
        )
    raise TrackingError(
        f"{label}: addresses that start with {scheme}: are not supported. "
        "Use http://host:port or sqlite:///path/mlflow.db."
    )


def _http(uri: str) -> Address:
    try:
        parts = urlsplit(uri)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise TrackingError(
            # without the words of the error, which may quote a password
            f"{redact(uri)} is not a valid address: its host or port cannot be read. It looks like "
            "http://host:5000; in a user name or password, marks such as / @ : are written %2F %40 "
            "%3A."
        ) from error
    if not host:
        raise TrackingError(f"{redact(uri)} names no host. It looks like http://host:5000.")
    # "#/experiments/3" is copied from the browser's address line now and then
    clean = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
    return Address("http", clean, redact(clean))


def _sqlite(uri: str) -> Address:
    text = uri.split(":", 1)[1]
    if not text.startswith("///") or text in ("///", "///:memory:"):
        raise TrackingError(
            f"{uri} names no database file. Write sqlite:///relative.db or sqlite:////absolute.db."
        )
    path = Path(text[3:].split("?", 1)[0]).expanduser().absolute()
    return Address("sqlite", f"sqlite:///{path}", f"sqlite:///{path}", path)
