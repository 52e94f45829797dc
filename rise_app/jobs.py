"""Work in the background: numbers of many runs, computed while the page stays alive."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from typing import Any

import streamlit as st

from rise_app.messages import is_ending

__all__ = ["Jobs", "jobs", "rerun_when_done"]

_POLL_SECONDS = 0.5
_AT_ONCE = 8
_KEPT = 4000
# Results that hold rows: a comparison of large tables takes hundreds of megabytes.
_KEPT_WITH_ROWS = {"comparison": 8, "values": 8, "columns": 16}
_FAILURE_SECONDS = 5.0


class Jobs:
    """Results by key, computed eight at a time and kept while the server lives.

    Shared by all sessions: two people who look at the same runs compute them once.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="rise")
        self._futures: OrderedDict[tuple[Hashable, ...], Future[Any]] = OrderedDict()
        self._failed: dict[Hashable, float] = {}
        self._lock = threading.Lock()

    def ask(
        self,
        key: tuple[Hashable, ...],
        work: Callable[[], Any],
        passing: Callable[[Any], bool] = lambda _: False,
    ) -> Future[Any]:
        """Return the future of a key, starting its work when nobody has asked for it yet.

        A key begins with the kind of the work; of the kinds that hold rows only the last few are
        kept.

        Work that failed is begun again, since a fault of the moment must not be kept for ever; but
        not at once, since a page that waits for it would ask for ever. ``passing`` tells a result
        that is a failure of the moment, too.
        """
        with self._lock:
            found = self._futures.get(key)
            if found is None or found.cancelled() or self._failed_long_ago(key, found, passing):
                found = self._futures[key] = self.start(work)
                self._failed.pop(key, None)
            self._futures.move_to_end(key)
            for dropped in self._too_many(key[0]):
                del self._futures[dropped]
                self._failed.pop(dropped, None)
            return found

    def _too_many(self, kind: Hashable) -> list[tuple[Hashable, ...]]:
        """Return the keys to drop, those asked for longest ago."""
        kept = _KEPT_WITH_ROWS.get(str(kind))
        if kept is not None:
            return [key for key in self._futures if key[0] == kind][:-kept]
        return list(self._futures)[: max(len(self._futures) - _KEPT, 0)]

    def start(self, work: Callable[[], Any]) -> Future[Any]:
        """Begin work whose future the caller keeps: it is done once, and never begun again."""
        try:
            return self._pool.submit(self._do, work)
        except RuntimeError as error:
            if not is_ending(error):
                raise
            st.stop()  # nobody will see the page that asks

    def _do(self, work: Callable[[], Any]) -> Any:
        # A pool works off its queue before the interpreter ends: Ctrl-C would wait for hundreds of
        # runs that nobody looks at any more. That it ends is told by what no longer can begin.
        try:
            self._pool.submit(int)
        except RuntimeError as error:
            raise CancelledError("The server ends.") from error
        return work()

    def _failed_long_ago(
        self, key: Hashable, future: Future[Any], passing: Callable[[Any], bool]
    ) -> bool:
        if not future.done() or not (future.exception() or passing(future.result())):
            return False
        seen = self._failed.setdefault(key, time.monotonic())
        return time.monotonic() - seen > _FAILURE_SECONDS

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
