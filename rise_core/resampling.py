"""Who is drawn how often: bootstrap counts and permuted groups, without touching a curve.

A replicate never sorts and never groups. It is a row of counts over *units*: rows, whole clusters,
or, where there are many of either, random bags of them. Everything a curve needs is linear in
those counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rise_core.predictions import Factor

__all__ = ["BAGS", "Drawing", "Shuffle", "Stratum", "blocks", "draw_counts", "plan_bootstrap"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
CodeArray = NDArray[np.int16]

# With more units than this in a stratum, units are bags. A standard error from R bags is off by a
# factor 1 ± 1/sqrt(2R), here 1.1 %; 500 replicates alone give 3 %.
BAGS = 4096
# Replicates are made in blocks of about this many counts, so that a block stays in the cache.
_BLOCK = 1 << 16
# One shuffle a class is quick for few classes only.
_MANY_CLASSES = 40


@dataclass(frozen=True)
class Stratum:
    """Units that are drawn among themselves: ``first`` to ``first + size``."""

    first: int
    size: int


@dataclass(frozen=True, eq=False)
class Drawing:
    """How a bootstrap draws.

    Attributes
    ----------
    unit : unit of every row, shape (n,)
    strata : units drawn among themselves; one a group, unless clusters run across groups
    by_group : whether each group has a stratum of its own
    members : rows, or whole clusters, in each unit, shape (units,)
    """

    unit: IntArray
    strata: tuple[Stratum, ...]
    by_group: bool
    members: FloatArray

    @property
    def units(self) -> int:
        """Number of units."""
        return sum(stratum.size for stratum in self.strata)


def blocks(replicates: int, width: int | None) -> list[int]:
    """Sizes of the blocks that replicates are made in, ``width`` counts a replicate.

    None is for cells, where a block passes over a large table once: few, large blocks.
    """
    size = 128 if width is None else int(np.clip(_BLOCK // max(width, 1), 4, 64))
    whole, rest = divmod(replicates, size)
    return [size] * whole + [rest] * (rest > 0)


def plan_bootstrap(
    groups: Factor, cluster: Factor | None, rng: np.random.Generator, *, bags: int | None
) -> Drawing:
    """Plan a bootstrap within groups.

    Parameters
    ----------
    groups : groups of the rows
    cluster : rows that belong together, or None
    rng : for the bags
    bags : most units a stratum; None for no bags

    Notes
    -----
    Clusters that lie within one group each are drawn within groups. Clusters that run across
    groups (tokens of a text) are drawn from all, so that group sizes vary too.
    """
    n, k = groups.codes.size, len(groups.labels)
    if cluster is None:
        stratum_of, owner = groups.codes, None
        sizes = groups.counts
    else:
        owner = cluster.codes
        nested = is_nested(groups.codes, owner, len(cluster.labels))
        first_row = np.zeros(len(cluster.labels), dtype=np.intp)
        first_row[owner[::-1]] = np.arange(n)[::-1]
        of_cluster = groups.codes[first_row] if nested else np.zeros_like(first_row)
        k = k if nested else 1
        sizes = np.bincount(of_cluster, minlength=k)
        stratum_of = of_cluster
    unit = np.empty(stratum_of.size, dtype=np.intp)
    strata, first = [], 0
    for code in range(k):
        members = np.flatnonzero(stratum_of == code) if k > 1 else slice(None)
        size = int(sizes[code])
        if bags is not None and size > bags:
            unit[members] = first + rng.integers(0, bags, size, dtype=np.uint16)
            size = bags
        else:
            unit[members] = first + np.arange(size)
        strata.append(Stratum(first, size))
        first += size
    by_group = k == len(groups.labels)
    content = np.bincount(unit, minlength=first).astype(np.float64)
    return Drawing(unit if owner is None else unit[owner], tuple(strata), by_group, content)


def is_nested(inner: IntArray, outer: IntArray, n_outer: int) -> bool:
    """Whether every outer class holds one inner code only."""
    low = np.full(n_outer, np.iinfo(np.intp).max)
    high = np.full(n_outer, -1)
    np.minimum.at(low, outer, inner)
    np.maximum.at(high, outer, inner)
    return bool(np.all(low >= high))


def draw_counts(
    strata: tuple[Stratum, ...], size: int, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Multinomial counts of the units of each stratum, a list of shape (size, units)."""
    counts = []
    for stratum in strata:
        drawn = rng.integers(0, stratum.size, (size, stratum.size), dtype=np.int64)
        drawn += (np.arange(size) * stratum.size)[:, None]
        counted = np.bincount(drawn.ravel(), minlength=size * stratum.size)
        counts.append(counted.reshape(size, stratum.size))
    return counts


@dataclass(frozen=True, eq=False)
class Shuffle:
    """How a permutation of the group labels goes about.

    Attributes
    ----------
    codes : group of every row, shape (n,)
    stratum : labels are exchanged within these classes (environment, label), shape (n,)
    cluster : cluster of every row, or None
    """

    codes: IntArray
    stratum: IntArray
    cluster: IntArray | None = None

    @cached_property
    def strata_rows(self) -> list[IntArray]:
        """Rows of each stratum."""
        order = np.argsort(self.stratum, kind="stable")
        ends = np.cumsum(np.bincount(self.stratum))[:-1]
        return [rows for rows in np.split(order, ends) if rows.size]

    @cached_property
    def _cluster_plan(self) -> tuple[IntArray, IntArray, IntArray, list[IntArray]]:
        """Representatives and places of single-group clusters, and the rows of mixed ones."""
        assert self.cluster is not None
        n_clusters = int(self.cluster.max()) + 1
        low = np.full(n_clusters, np.iinfo(np.intp).max)
        high = np.full(n_clusters, -1)
        np.minimum.at(low, self.cluster, self.codes)
        np.maximum.at(high, self.cluster, self.codes)
        single = low == high
        stratum = np.full(n_clusters, -1)
        stratum[self.cluster] = self.stratum
        mixed_rows = np.flatnonzero(~single[self.cluster])
        # Rows of a mixed cluster exchange their labels inside it, and inside its strata.
        key = self.cluster[mixed_rows] * (int(self.stratum.max()) + 1) + self.stratum[mixed_rows]
        order = np.argsort(key, kind="stable")
        cut = np.flatnonzero(np.diff(key[order])) + 1
        inside = [rows for rows in np.split(mixed_rows[order], cut) if rows.size > 1]
        whole = np.flatnonzero(single & (high >= 0))
        return whole, low[whole], stratum[whole], inside

    def draw(self, size: int, rng: np.random.Generator) -> CodeArray:
        """Permuted group codes, int16, shape (size, n)."""
        codes = self.codes.astype(np.int16)
        if self.cluster is None:
            if len(self.strata_rows) == 1:
                return rng.permuted(np.broadcast_to(codes, (size, codes.size)), axis=1)
            return self._permute_within(codes, self.strata_rows, size, rng)
        whole, own, stratum, inside = self._cluster_plan
        drawn = self._permute_within(codes, inside, size, rng)
        classes = [np.flatnonzero(stratum == s) for s in np.unique(stratum)]
        moved = self._permute_within(own.astype(np.int16), classes, size, rng)
        place = np.full(int(self.cluster.max()) + 1, -1)
        place[whole] = np.arange(whole.size)
        rows = np.flatnonzero(place[self.cluster] >= 0)
        drawn[:, rows] = moved[:, place[self.cluster[rows]]]
        return drawn

    @staticmethod
    def _permute_within(
        codes: CodeArray, classes: list[IntArray], size: int, rng: np.random.Generator
    ) -> CodeArray:
        drawn = np.repeat(codes[None, :], size, axis=0)
        if len(classes) > _MANY_CLASSES:
            # Sorting by class and chance shuffles all classes at once.
            rows = np.concatenate(classes)
            of_row = np.repeat(np.arange(len(classes)), [c.size for c in classes])
            order = np.argsort(of_row + rng.random((size, rows.size)), axis=1)
            drawn[:, rows] = codes[rows][order]
            return drawn
        for rows in classes:
            block = np.broadcast_to(codes[rows], (size, rows.size))
            drawn[:, rows] = rng.permuted(block, axis=1)
        return drawn


def seeds(random_state: int, stream: int, count: int) -> Iterator[np.random.Generator]:
    """Return one generator a block, the same ones for the same arguments."""
    root = np.random.SeedSequence([random_state, stream])
    return (np.random.default_rng(seed) for seed in root.spawn(count))
