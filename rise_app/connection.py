"""The connection to the MLflow store that the app looks at, and what people see without one."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import streamlit as st

from rise_app.messages import as_text, show_error
from rise_app.servers import Server
from rise_core.exceptions import RiseError, ServerUnreachableError
from rise_core.tracking import Store, connect

__all__ = ["home", "is_demo", "open_for_writing", "open_store", "stop_with", "store_uri", "watch"]

_PROJECT = Path(__file__).resolve().parent.parent
_RETRY_SECONDS = 5
_DRAWN = "retry drawn"


def home() -> Path:
    """Folder of the demo store and the caches: ``RISE_HOME``, by default ``.rise`` here."""
    return Path(os.environ.get("RISE_HOME") or _PROJECT / ".rise").expanduser().resolve()


def is_demo(store: Store) -> bool:
    """Whether a store is the app's own demo."""
    return store.uri in _demo_memo().filled.values()


def open_store(server: Server) -> Store:
    """Open the store of a server; the demo store is filled the first time.

    A failure is shown, looked at again every few seconds, and ends the script run.
    """
    try:
        return _connected(server)
    except RiseError as error:
        show_error("There is no connection to the runs.", error)
        watch(server)
        st.stop()


def store_uri(server: Server) -> str:
    """Return the store's address; the demo store is filled the first time."""
    return _demo_uri() if server.uri is None else server.uri


def open_for_writing(uri: str) -> Store:
    """Open a store so that it can be written to: for one act that a person has asked for.

    Raises
    ------
    TrackingError
        it does not answer
    """
    return connect(uri, cache_dir=home() / "cache", writable=True)


def _connected(server: Server) -> Store:
    """Return the store, connected once for all sessions; a failed attempt is made again."""
    made = _connections().ask(store_uri(server))
    with st.spinner(f"Connecting to {as_text(server.label)} …"):
        return made.result()


class _Connections:
    """Connections by address, shared by all sessions.

    An attempt too: where a server hangs, each would otherwise wait for those of all others.
    """

    def __init__(self) -> None:
        self._made: dict[str, Future[Store]] = {}
        self._lock = threading.Lock()

    def ask(self, uri: str) -> Future[Store]:
        with self._lock:
            found = self._made.get(uri)
            if found is None or (found.done() and found.exception()):
                found = self._made[uri] = Future()
                # No pool: it could be full of servers that hang.
                threading.Thread(
                    target=_connect, args=(uri, found), name="rise-connect", daemon=True
                ).start()
            return found


def _connect(uri: str, made: Future[Store]) -> None:
    try:
        made.set_result(connect(uri, cache_dir=home() / "cache"))
    except BaseException as error:
        made.set_exception(error)


@st.cache_resource(show_spinner=False)
def _connections() -> _Connections:
    return _Connections()


def _demo_uri() -> str:
    """Address of the demo store; the first call of this process fills it where needed."""
    folder = home() / "demo"
    memo = _demo_memo()
    with memo.lock:
        if folder not in memo.filled:
            from demo.load import load_demo

            bar = st.empty()

            def progress(done: int, total: int, text: str) -> None:
                bar.progress(done / max(total, 1), text=f"Filling the demo store, once. {text}")

            memo.filled[folder] = load_demo(folder, progress=progress)
            bar.empty()
    return memo.filled[folder]


@dataclass
class _DemoMemo:
    lock: threading.Lock = field(default_factory=threading.Lock)
    filled: dict[Path, str] = field(default_factory=dict)


@st.cache_resource(show_spinner=False)
def _demo_memo() -> _DemoMemo:
    return _DemoMemo()


def stop_with(heading: str, error: RiseError) -> NoReturn:
    """Say what failed and end the script run; a server that has gone is looked for by itself."""
    show_error(heading, error)
    if isinstance(error, ServerUnreachableError):
        _look_every_few_seconds(st.rerun)
    st.stop()


def watch(server: Server) -> None:
    """Offer to try again, and try by itself every few seconds until the store answers."""
    st.button("Try again", type="primary")

    def look() -> None:
        try:
            _connected(server)
        except RiseError:
            pass
        else:
            st.rerun()

    _look_every_few_seconds(look)


def _look_every_few_seconds(act: Callable[[], object]) -> None:
    st.session_state[_DRAWN] = False

    @st.fragment(run_every=_RETRY_SECONDS)
    def look() -> None:
        # The first call draws; the later ones are the clock's.
        if st.session_state[_DRAWN]:
            act()
        st.session_state[_DRAWN] = True
        st.caption(f"Looked again every {_RETRY_SECONDS} seconds; the page comes back by itself.")

    look()
