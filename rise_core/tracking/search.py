"""What is looked for among an experiment's runs, in MLflow's language: the server looks.

MLflow's filters know "and" and no "or". What may stand in several places (a word in the name or in
the algorithm, a data set in a tag or in a parameter) is therefore asked in a few filters, whose
answers `rise_core.tracking.listing.Listing` merges. A filter may let too much through, never too
little; what it lets through is checked by `Search.test`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import isnan
from typing import Any

from rise_core.tracking.entities import ALGORITHM, DATASET, Run, fact_source

__all__ = [
    "MOST_FILTERS",
    "NEWEST",
    "Order",
    "Search",
    "Sources",
    "filter_for_ids",
    "is_filter",
    "possible_sources",
    "sources_in",
]

MOST_FILTERS = 12
"""So many filters are asked at most; conditions beyond are checked when the answers are here."""

_NAME = "attributes.run_name"
_INPUT = "dataset.name"


# ------------------------------------------------------------------------------------------ order


@dataclass(frozen=True)
class Order:
    """How runs are ordered by the server.

    Parameters
    ----------
    key : "start_time", "run_name" or the name of a metric
    metric : whether ``key`` names a metric; runs that lack it come last
    descending : largest or latest first
    """

    key: str = "start_time"
    metric: bool = False
    descending: bool = True

    @classmethod
    def parse(cls, text: str) -> Order:
        """Read "newest", "oldest", "name", or a metric with "desc" or "asc": "auc desc".

        Raises
        ------
        ValueError
            for any other text
        """
        if text in _ORDERS:
            return _ORDERS[text]
        name, _, direction = text.rpartition(" ")
        # MLflow lets no other signs into a metric's name.
        if direction in ("asc", "desc") and re.fullmatch(r"[\w\-. /:]+", name):
            return cls(name, True, direction == "desc")
        raise ValueError(f"No order: {text!r}. Use newest, oldest, name, or a metric: 'auc desc'.")

    @property
    def text(self) -> str:
        """What `parse` reads."""
        named = {order: text for text, order in _ORDERS.items()}
        return named.get(self) or f"{self.key} {'desc' if self.descending else 'asc'}"

    @property
    def clauses(self) -> list[str]:
        """For `Store.runs`."""
        column = f"metrics.`{self.key}`" if self.metric else f"attributes.{self.key}"
        return [f"{column} {'DESC' if self.descending else 'ASC'}"]

    def rank(self, run: Run) -> tuple[Any, ...]:
        """Sort key that orders runs as MLflow does: equal ones newest first, then by their id."""
        start = run.start_time.timestamp() if run.start_time else 0.0
        if self.key == "start_time" and not self.metric:
            return (-start if self.descending else start, run.id)
        if not self.metric:
            return (run.name, -start, run.id)
        value = run.metrics.get(self.key)
        if value is None or isnan(value):
            return (2 if value is None else 1, 0.0, -start, run.id)
        return (0, -value if self.descending else value, -start, run.id)


NEWEST = Order()
_ORDERS = {
    "newest": NEWEST,
    "oldest": Order(descending=False),
    "name": Order("run_name", descending=False),
}


# ---------------------------------------------------------------------------------------- sources


@dataclass(frozen=True)
class Sources:
    """Where an experiment's runs say their data set and algorithm, in MLflow's words.

    Parameters
    ----------
    dataset, algorithm : such as "tags.`dataset`", "params.`data`", "dataset.name"
    """

    dataset: tuple[str, ...] = ()
    algorithm: tuple[str, ...] = ()


def possible_sources(what: str) -> tuple[str, ...]:
    """Return every place where a run may say its "dataset" or "algorithm", the first counts."""
    names, last = (DATASET, _INPUT) if what == "dataset" else (ALGORITHM, _NAME)
    return (*(f"{kind}.`{name}`" for name in names for kind in ("tags", "params")), last)


def sources_in(runs: Iterable[Run]) -> Sources:
    """Return where these runs say their data set and algorithm."""
    datasets: dict[str, None] = {}
    algorithms: dict[str, None] = {}
    for run in runs:
        if run.dataset is not None:
            datasets[fact_source(DATASET, run.tags, run.params) or _INPUT] = None
        algorithms[fact_source(ALGORITHM, run.tags, run.params) or _NAME] = None
    return Sources(tuple(datasets), tuple(algorithms))


# ----------------------------------------------------------------------------------------- search


@dataclass(frozen=True)
class _Condition:
    """One thing that must hold: any of some terms says so, and ``holds`` is sure."""

    terms: tuple[str, ...]
    holds: Callable[[Run], bool]


@dataclass(frozen=True)
class Search:
    """What is looked for, and in which order it comes.

    Parameters
    ----------
    text : words of the run's name or algorithm, "name=value" for a tag or a parameter, the
        beginning of a run's id, or MLflow's filter language: "metrics.auc > 0.8"
    datasets, algorithms : only runs of one of these; empty lets all through
    order : by the server

    Examples
    --------
    >>> search = Search("night", datasets=("adult",))
    >>> for asked in search.filters(Sources(("tags.`dataset`",), ("params.`model`",))):
    ...     print(asked)
    attributes.run_name ILIKE '%night%' and tags.`dataset` = 'adult'
    params.`model` ILIKE '%night%' and tags.`dataset` = 'adult'
    """

    text: str = ""
    datasets: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ()
    order: Order = field(default=NEWEST)

    @property
    def in_filter_language(self) -> bool:
        """Whether the text goes to the server as it is."""
        return is_filter(self.text)

    @property
    def depends_on(self) -> tuple[str, ...]:
        """The facts ("dataset", "algorithm") whose `Sources` must be known for `filters`."""
        words = [] if self.in_filter_language else _split(self.text)[0]
        asked = {"dataset": self.datasets, "algorithm": self.algorithms or words}
        return tuple(what for what, values in asked.items() if values)

    def filters(self, sources: Sources) -> list[str]:
        """Return MLflow filters, at most `MOST_FILTERS`; a run must pass any one of them.

        No filter at all means that no run can be meant.
        """
        conditions = self._conditions(sources)
        if not all(condition.terms for condition in conditions):
            return []
        asked: list[_Condition] = []
        room = MOST_FILTERS
        for condition in sorted(conditions, key=lambda c: len(c.terms)):
            if len(condition.terms) <= room:
                room //= len(condition.terms)
                asked.append(condition)
        kept = [condition.terms for condition in conditions if condition in asked]
        return [" and ".join(terms) for terms in product(*kept)]

    def test(self) -> Callable[[Run], bool]:
        """Return whether a run is meant; a filter in MLflow's language is the server's alone."""
        conditions = self._conditions(Sources())
        return lambda run: all(condition.holds(run) for condition in conditions)

    def _conditions(self, sources: Sources) -> list[_Condition]:
        found: list[_Condition] = []
        if self.in_filter_language:
            found.append(_Condition((self.text.strip(),), lambda _: True))
        else:
            words, pairs = _split(self.text)
            if words:
                found.append(_words(words, sources))
            found += [_pair(name, value) for name, value in pairs]
        for what, values in (("dataset", self.datasets), ("algorithm", self.algorithms)):
            if values:
                found.append(_values(what, values, getattr(sources, what)))
        return found


def _words(words: Sequence[str], sources: Sources) -> _Condition:
    places = [_NAME, *(source for source in sources.algorithm if source != _NAME)]
    terms = [" and ".join(_like(place, word, "%", "%") for word in words) for place in places]
    lowered = [word.lower() for word in words]
    start = lowered[0] if len(words) == 1 and _is_id(lowered[0]) else ""
    if start:
        terms.append(f"attributes.run_id LIKE '{start}%'")

    def holds(run: Run) -> bool:
        if start and run.id.startswith(start):
            return True
        texts = (run.name.lower(), run.algorithm.lower())
        return any(all(word in text for word in lowered) for text in texts)

    return _Condition(tuple(terms), holds)


def _is_id(word: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{6,32}", word) is not None


def _pair(name: str, value: str) -> _Condition:
    if name.lower() == "status":
        status = value.upper()
        return _Condition((_equal("attributes.status", status),), lambda run: run.status == status)
    places = (f"tags.`{name}`", f"params.`{name}`")
    # Nothing behind the "=" asks for any value.
    told = [_like(place, value, "", "" if value else "%") for place in places]
    # Names such as "lr=0.1, depth=3" are common.
    terms = (*told, _like(_NAME, f"{name}={value}", "%", "%"))
    written = f"{name}={value}".lower()

    def holds(run: Run) -> bool:
        given = [source[name] for source in (run.tags, run.params) if name in source]
        tagged = any(not value or text.lower() == value.lower() for text in given)
        return tagged or written in run.name.lower()

    return _Condition(terms, holds)


def _values(what: str, values: Sequence[str], sources: Sequence[str]) -> _Condition:
    terms = tuple(_equal(source, value) for source in sources for value in values)
    return _Condition(terms, lambda run: getattr(run, what) in values)


# ------------------------------------------------------------------------------------------- text

_FIELDS = r"metrics?|param(?:eter)?s?|tags?|attr(?:ibute)?s?"
_ATTRIBUTES = (
    r"status|run_name|run_id|user_id|artifact_uri|start_time|end_time|created|name|digest|context"
)
_FILTER = re.compile(
    rf"""\s*(?: `?(?:{_FIELDS})`? \s* \. \s* \S
            | (?:run\.|datasets?\.)? (?:{_ATTRIBUTES}) \s*
              (?: [<>] | !?=\s*['"\d] | (?:not\s+)?in\s*\( | i?like\s*['"] )
         )""",
    re.VERBOSE | re.IGNORECASE,
)
_PIECES = re.compile(
    r"""(?P<name>[^\s="'`]+)=(?P<value>"[^"]*"|'[^']*'|\S*)|"(?P<phrase>[^"]+)"|(?P<word>\S+)"""
)


def is_filter(text: str) -> bool:
    """Whether a text is meant as MLflow's filter language, told by how it begins."""
    return _FILTER.match(text) is not None


def _split(text: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the words and the "name=value" pairs of a text."""
    words: list[str] = []
    pairs: list[tuple[str, str]] = []
    for piece in _PIECES.finditer(text):
        if piece["name"]:
            value = piece["value"]
            quoted = len(value) > 1 and value[0] in "\"'" and value[-1] == value[0]
            pairs.append((piece["name"], value[1:-1] if quoted else value))
        else:
            words.append(piece["phrase"] or piece["word"])
    return words, pairs


def _equal(place: str, value: str) -> str:
    if re.fullmatch(r"[\w\-. ,:;/()+&%#@*|~^$!?]*", value):
        return f"{place} = '{value}'"
    # Quotes and backslashes have no escape there: let any sign stand for them, `test` is exact.
    return f"{place} LIKE '{_blurred(value)}'"


def _like(place: str, text: str, before: str, after: str) -> str:
    return f"{place} ILIKE '{before}{_blurred(text)}{after}'"


def _blurred(text: str) -> str:
    """Replace what cannot be quoted, or what sqlite cannot fold to lower case, by "any sign"."""
    return re.sub(r"[^ -~]|['\"`\\]", "_", text)


def filter_for_ids(ids: Iterable[str]) -> str:
    """Return the filter for the runs with these ids; "" where none of them can be an id."""
    safe = [f"'{run_id}'" for run_id in ids if re.fullmatch(r"[\w-]+", run_id)]
    return f"attributes.run_id IN ({', '.join(safe)})" if safe else ""
