"""Which MLflow store the app looks at, and what people see when it does not answer."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from pathlib import Path

import streamlit as st

from rise_app.messages import show_error
from rise_core.exceptions import RiseError
from rise_core.tracking import Store, connect
from rise_core.tracking.address import redact

__all__ = ["home", "is_demo", "open_for_writing", "open_store", "store_label", "store_uri", "watch"]

_PROJECT = Path(__file__).resolve().parent.parent
_RETRY_SECONDS = 5


def home() -> Path:
    """Folder of the demo store and the caches: ``RISE_HOME``, by default ``.rise`` here."""
    return Path(os.environ.get("RISE_HOME") or _PROJECT / ".rise").expanduser().resolve()


def is_demo() -> bool:
    """Whether the app shows its own demo, for want of a tracking URI."""
    return not os.environ.get("MLFLOW_TRACKING_URI", "").strip()


def open_store() -> Store:
    """Open the store of ``MLFLOW_TRACKING_URI``, or the demo store, filling it the first time.

    A failure is shown, looked at again every few seconds, and ends the script run.
    """
    try:
        return _connect(store_uri())
    except RiseError as error:
        show_error("There is no connection to the runs.", error)
        watch()
        st.stop()


def store_label() -> str:
    """Name the store for people, without opening it and without credentials."""
    if is_demo():
        return "the demo store of this machine"
    return redact(os.environ["MLFLOW_TRACKING_URI"].strip())


def store_uri() -> str:
    """Return the store's address; the demo store is filled the first time."""
    return _demo_uri() if is_demo() else os.environ["MLFLOW_TRACKING_URI"].strip()


def open_for_writing(uri: str) -> Store:
    """Open a store so that it can be written to: for one act that a person has asked for.

    Raises
    ------
    TrackingError
        it does not answer
    """
    return connect(uri, cache_dir=home() / "cache", writable=True)


@st.cache_resource(show_spinner=False, max_entries=8)
def _connect(uri: str) -> Store:
    return connect(uri, cache_dir=home() / "cache")


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


def watch() -> None:
    """Offer to try again, and try by itself every few seconds until the store answers."""
    st.button("Try again", type="primary")

    @st.fragment(run_every=_RETRY_SECONDS)
    def look() -> None:
        # The first call draws; the later ones are the clock's.
        if st.session_state.setdefault("_looked", False):
            try:
                _connect(store_uri()).check()
            except RiseError:
                pass
            else:
                st.session_state.pop("_looked")
                st.rerun()
        st.session_state["_looked"] = True
        st.caption(f"Looked again every {_RETRY_SECONDS} seconds; the page comes back by itself.")

    look()
