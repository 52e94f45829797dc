"""Numbers of runs kept on disk, so that the second visit need not compute them again."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

import rise_core
from rise_core.estimates import Estimate
from rise_core.tracking import Store
from rise_core.tracking.cache import TableCache
from rise_core.tracking.results import ResultCache

__all__ = ["Form", "estimates_from_text", "estimates_to_text", "kept"]

T = TypeVar("T")


@dataclass(frozen=True)
class Form(Generic[T]):
    """How a result is kept: as text and back, and whether it is worth it.

    A failure is not, as it may pass.
    """

    write: Callable[[T], str]
    read: Callable[[str], T]
    worth: Callable[[T], bool]


def kept(store: Store, key: tuple[Hashable, ...], work: Callable[[], T], form: Form[T]) -> T:
    """Return what is kept under a key, else do the work and keep what came of it.

    Parameters
    ----------
    store : results lie beside its fetched tables
    key : all that the result depends on but the program itself, which is added
    """
    results = _results(store.cache.folder)
    name = TableCache.key(_program(), *map(repr, key))
    if (text := results.get(name)) is not None:
        with suppress(TypeError, ValueError, KeyError):  # else it is replaced
            return form.read(text)
    found = work()
    if form.worth(found):
        results.put(name, form.write(found))
    return found


@cache
def _results(folder: Path) -> ResultCache:
    return ResultCache(folder)


@cache
def _program() -> str:
    """Name the code that computes: numbers of another version are never shown for this one's."""
    digest = blake2b(np.__version__.encode(), digest_size=16)
    for file in sorted(Path(rise_core.__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def estimates_to_text(estimates: Mapping[str, Estimate]) -> str:
    """Return indicators with interval and null as JSON; nan stays NaN."""
    return json.dumps({name: asdict(estimate) for name, estimate in estimates.items()})


def estimates_from_text(text: str) -> Mapping[str, Estimate]:
    """Read what `estimates_to_text` wrote."""
    value: dict[str, dict[str, Any]] = json.loads(text)
    return {name: Estimate(**fields) for name, fields in value.items()}
