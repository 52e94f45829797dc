"""Work in the background: numbers of many runs, computed while the page stays alive."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import streamlit as st

__all__ = ["Jobs", "jobs", "rerun_when_done"]

_POLL_SECONDS = 0.5
_AT_ONCE = 8
_KEPT = 4000


class Jobs:
    """Results by key, computed eight at a time and kept while the server lives.

    Shared by all sessions: two people who look at the same runs compute them once.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="rise")
        self._futures: OrderedDict[Hashable, Future[Any]] = OrderedDict()
        self._lock = threading.Lock()

    def ask(self, key: Hashable, work: Callable[[], Any]) -> Future[Any]:
        """Return the future of a key, starting its work when nobody has asked for it yet."""
        with self._lock:
            found = self._futures.get(key)
            if found is None or found.cancelled():
                found = self._futures[key] = self._pool.submit(work)
            self._futures.move_to_end(key)
            while len(self._futures) > _KEPT:
                self._futures.popitem(last=False)
            return found

    def forget(self, key: Hashable) -> None:
        """Drop a result, so that the next who asks computes it again."""
        with self._lock:
            found = self._futures.pop(key, None)
        if found is not None:
            found.cancel()

    @staticmethod
    def settle(futures: list[Future[Any]], seconds: float) -> None:
        """Give work a moment to finish, so that a fast store is drawn once."""
        wait(futures, timeout=seconds)


@st.cache_resource(show_spinner=False)
def jobs() -> Jobs:
    """Return the one pool of this server."""
    return Jobs()


def rerun_when_done(future: Future[Any], text: str) -> None:
    """Say that something is being computed, and draw the page again when it is."""

    @st.fragment(run_every=_POLL_SECONDS)
    def wait_for_it() -> None:
        if future.done():
            st.rerun()
        st.caption(text)

    wait_for_it()
