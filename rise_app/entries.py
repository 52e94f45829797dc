"""What stands in one line of the table of runs: a run, or runs that differ in their seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rise_core.tracking import Listing, Run

__all__ = [
    "MOST_SEEDS",
    "Entry",
    "EntryPage",
    "Place",
    "entries_of",
    "open_page",
    "parents_elsewhere",
    "places_of",
    "several_seeds",
]

MOST_SEEDS = 20
"""Runs of one line: as many as can be compared, and no more than can be computed for a page."""


@dataclass(frozen=True)
class Entry:
    """A run, or several of one data set, algorithm and environment with a seed each.

    Parameters
    ----------
    runs : the newest first
    """

    runs: tuple[Run, ...]

    @property
    def newest(self) -> Run:
        """The run that stands for the entry."""
        return self.runs[0]

    @property
    def grouped(self) -> bool:
        """Whether it stands for several seeds."""
        return len(self.runs) > 1

    @property
    def name(self) -> str:
        """What people call it: the run's name, or "ERM · 3 seeds"."""
        if self.grouped:
            return f"{self.newest.algorithm} · {len(self.runs)} seeds"
        return self.newest.name

    @property
    def parent_id(self) -> str | None:
        """The run that all of its runs are nested in."""
        parents = {run.parent_id for run in self.runs}
        return parents.pop() if len(parents) == 1 else None


@dataclass(frozen=True)
class Place:
    """Where an entry stands among those above it.

    Parameters
    ----------
    depth : how many of its parents are above it, at least 1 for a nested run
    elsewhere : id of its parent, if that is not above it
    """

    depth: int = 0
    elsewhere: str | None = None

    @property
    def mark(self) -> str:
        """What goes before the name."""
        return "\u2003" * (self.depth - 1) + "↳ " if self.depth else ""


def entries_of(runs: Sequence[Run], *, grouped: bool) -> list[Entry]:
    """Return the lines for runs, in the order given; a group stands where its first run does."""
    group_of = {run.id: group for group in _groups(runs) for run in group} if grouped else {}
    found: dict[str, Entry] = {}
    for run in runs:
        entry = Entry(group_of.get(run.id, (run,)))
        found.setdefault(entry.newest.id, entry)
    return list(found.values())


def several_seeds(runs: Sequence[Run]) -> bool:
    """Whether there is anything to group."""
    return bool(_groups(runs))


def _groups(runs: Sequence[Run]) -> list[tuple[Run, ...]]:
    """Return the runs that differ in their seed, each group with no seed twice.

    Where a seed was run again, the older runs make a group of their own: a mean must not count one
    seed twice, nor leave a run out.
    """
    rounds: dict[tuple[str | None, ...], list[dict[str, Run]]] = {}
    for run in sorted(runs, key=_started, reverse=True):
        if run.seed is None:
            continue
        known = rounds.setdefault((run.dataset, run.algorithm, run.environment), [])
        fitting = (group for group in known if run.seed not in group and len(group) < MOST_SEEDS)
        group = next(fitting, None)
        if group is None:
            known.append({run.seed: run})
        else:
            group[run.seed] = run
    groups = (tuple(group.values()) for known in rounds.values() for group in known)
    return [group for group in groups if len(group) > 1]


def _started(run: Run) -> float:
    return run.start_time.timestamp() if run.start_time else 0.0


def places_of(entries: Sequence[Entry]) -> list[Place]:
    """Return where each entry stands under its parent."""
    above: list[str] = []
    found = []
    for entry in entries:
        parent = entry.parent_id
        while above and above[-1] != parent:
            above.pop()
        if parent is None or above:
            found.append(Place(len(above)))
        else:
            found.append(Place(1, parent))
        above.append(entry.newest.id)
    return found


def parents_elsewhere(entries: Sequence[Entry]) -> list[str]:
    """Return the ids of the parents that are not above the runs nested in them."""
    found = (place.elsewhere for place in places_of(entries))
    return list(dict.fromkeys(parent for parent in found if parent is not None))


@dataclass(frozen=True)
class EntryPage:
    """What is on screen of a list of runs.

    Parameters
    ----------
    entries : on this page
    number, pages : of this page, from 1, and of the last; one more where the list goes on
    before, known : entries on the pages before, and listed so far
    listing : the runs, as far as they are listed
    """

    entries: Sequence[Entry]
    number: int
    pages: int
    before: int
    known: int
    listing: Listing


def open_page(
    read: Callable[[int], Listing], wanted: int, size: int, *, grouped: bool
) -> EntryPage:
    """List as many runs as a page needs, and no more.

    Parameters
    ----------
    read : lists at least so many runs
    wanted : number of the page, from 1; beyond the end it is the last
    size : entries of a page
    """
    listing = read(wanted * size)
    entries = entries_of(listing.runs, grouped=grouped)
    while len(entries) < wanted * size and not listing.complete:
        listing = read(len(listing.runs) + 1)
        entries = entries_of(listing.runs, grouped=grouped)
    last = max(-(-len(entries) // size), 1)
    number = min(wanted, last)
    before = (number - 1) * size
    return EntryPage(
        entries[before : before + size],
        number,
        last if listing.complete else last + 1,
        before,
        len(entries),
        listing,
    )
