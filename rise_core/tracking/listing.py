"""A long list of runs, fetched piece by piece as somebody reads on."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from rise_core.exceptions import FilterError
from rise_core.tracking.entities import Run
from rise_core.tracking.search import Search, Sources, possible_sources, sources_in
from rise_core.tracking.store import Store

__all__ = ["CHUNK", "Listing", "find_sources", "nested"]

CHUNK = 500
"""Runs asked for at a time: a fraction of a second, and enough for twenty pages."""

_AT_ONCE = 8


@dataclass
class _Stream:
    """The answers to one filter: those that came and wait to be merged, and how to go on."""

    filter: str
    waiting: deque[Run] = field(default_factory=deque)
    token: str | None = None
    ended: bool = False

    @property
    def dry(self) -> bool:
        return not (self.waiting or self.ended)


class Listing:
    """Runs of an experiment that a search finds, in its order, as far as they were asked for.

    One request a chunk and filter; what has been listed does not change any more. Safe to be shared
    by several threads.

    Parameters
    ----------
    store, experiment_id : where
    search : what is looked for, and in which order
    sources : where the experiment's runs say their data set and algorithm (`find_sources`)
    chunk : runs asked for at a time
    """

    def __init__(
        self,
        store: Store,
        experiment_id: str,
        search: Search,
        sources: Sources,
        *,
        chunk: int = CHUNK,
    ) -> None:
        self._store = store
        self._experiment_id = experiment_id
        self._order = search.order
        self._is_meant: Callable[[Run], bool] = search.test()
        self._streams = [_Stream(asked) for asked in search.filters(sources)]
        self._chunk = chunk
        self._known: dict[str, Run] = {}
        self._lock = threading.Lock()
        self._began = time.monotonic()

    @property
    def runs(self) -> Sequence[Run]:
        """The runs listed so far; a nested run follows its parent if both came in one chunk."""
        return tuple(self._known.values())

    @property
    def complete(self) -> bool:
        """Whether there are no more."""
        return all(stream.ended and not stream.waiting for stream in self._streams)

    @property
    def age(self) -> float:
        """Seconds since the first of it was asked for."""
        return time.monotonic() - self._began

    @property
    def in_first_chunk(self) -> bool:
        """Whether nobody has read on: then listing it afresh costs what it cost."""
        return len(self._known) <= self._chunk

    def reach(self, count: int) -> Sequence[Run]:
        """List at least so many runs, where there are as many; raises TrackingError."""
        with self._lock:
            while len(self._known) < count and not self.complete:
                self._read_on()
        return self.runs

    def _read_on(self) -> None:
        dry = [stream for stream in self._streams if stream.dry]
        if len(dry) == 1:
            self._fetch(dry[0])
        elif dry:
            with ThreadPoolExecutor(min(_AT_ONCE, len(dry)), "rise-list") as pool:
                list(pool.map(self._fetch, dry))
        found: dict[str, Run] = {}
        # The next run is known while every stream shows its own next.
        while not any(stream.dry for stream in self._streams):
            ready = [stream for stream in self._streams if stream.waiting]
            if not ready:
                break
            run = min(ready, key=lambda s: self._order.rank(s.waiting[0])).waiting.popleft()
            if run.id not in self._known and self._is_meant(run):
                found[run.id] = run
        self._known = self._known | {run.id: run for run in nested(found.values())}

    def _fetch(self, stream: _Stream) -> None:
        page = self._store.runs(
            self._experiment_id,
            filter=stream.filter,
            order_by=self._order.clauses,
            max_results=self._chunk,
            page_token=stream.token,
        )
        stream.waiting.extend(page.runs)
        stream.token = page.next_token
        stream.ended = page.next_token is None


def nested(runs: Iterable[Run]) -> list[Run]:
    """Return runs with each nested one behind its parent, where that is among them."""
    given = {run.id: run for run in runs}
    children: dict[str, list[Run]] = {}
    first = []
    for run in given.values():
        if run.parent_id in given and run.parent_id != run.id:
            children.setdefault(str(run.parent_id), []).append(run)
        else:
            first.append(run)
    ordered: dict[str, Run] = {}
    stack = first[::-1]
    while stack:
        run = stack.pop()
        ordered[run.id] = run
        stack += children.get(run.id, ())[::-1]
    # Tags can be written by hand: runs that are each other's parents stay, too.
    return list((ordered | given).values())


def find_sources(
    store: Store, experiment_id: str, what: str, known: Sequence[Run], *, complete: bool
) -> tuple[str, ...]:
    """Find out where an experiment's runs say a fact, so that no filter overlooks one.

    No request where all runs are known; else one, if those that are known tell the rule; else a
    few, the first time.

    Parameters
    ----------
    what : "dataset" or "algorithm"
    known : runs of the experiment that were listed
    complete : whether they are all there are

    Returns
    -------
    places in MLflow's words, for `Sources`
    """
    found: tuple[str, ...] = getattr(sources_in(known), what)
    if complete:
        return found

    def exists(filter: str) -> bool:  # noqa: A002 — MLflow's own word
        return bool(store.runs(experiment_id, filter=filter, max_results=1).runs)

    said = [place for place in found if place.startswith(("tags.", "params."))]
    if said and not _some_lack(said, exists):
        return found
    # The run's name, or its logged inputs, come last and are asked for without a look.
    *named, last = possible_sources(what)
    others = _existing([place for place in named if place not in found], exists)
    return tuple(dict.fromkeys((*found, *others, last)))


def _some_lack(places: Sequence[str], exists: Callable[[str], bool]) -> bool:
    try:
        return exists(" and ".join(f"{place} IS NULL" for place in places))
    except FilterError:  # an older server has no IS NULL
        return True


def _existing(places: Sequence[str], exists: Callable[[str], bool]) -> list[str]:
    with ThreadPoolExecutor(_AT_ONCE, "rise-list") as pool:
        answers = pool.map(lambda place: exists(f"{place} LIKE '%'"), places)
        return [place for place, there in zip(places, answers, strict=True) if there]
