"""Replicates of an evaluation: the same rows drawn again, or their groups exchanged.

`bootstrap` and `permute` give what `rise_core.reweighting` measures, for as many replicates as are
asked for. Up to `EXACT_ROWS` rows every row is a place of its own and a replicate is exactly what
drawing, sorting and evaluating again would give. Above, the sorted curve is cut into cells and
rows are drawn in random bags.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rise_core.resampling import (
    BAGS,
    Drawing,
    Shuffle,
    blocks,
    draw_counts,
    is_nested,
    plan_bootstrap,
    seeds,
)
from rise_core.reweighting import (
    CurveBlock,
    Grid,
    Measured,
    Strand,
    Stretches,
    measure,
    spread_over,
)

if TYPE_CHECKING:
    from rise_core.evaluation import Evaluation

__all__ = ["EXACT_ROWS", "Replicates", "Sampler"]

FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]
IntArray = NDArray[np.intp]
# What `_block_of` of a way to resample gives: curves of the groups, their sums of correct
# decisions, positive decisions and scores (B, 3), and the pooled curve where it never changes.
Block = tuple[list[CurveBlock], list[FloatArray], "CurveBlock | None"]

EXACT_ROWS = 12_000
# A cell holds at most this share of the rows and of the range of the residuals, unless it is one
# residual many rows share.
_MASS_CELLS, _VALUE_CELLS = 1000, 400
_TAIL, _CENTRE = 40, 64
_FEWEST_BAGS = 64
# A table of bags by cells then takes about half a gigabyte.
_MOST_BAGS = 65_536
# A group smaller than this many bags is drawn row by row.
_SMALL_IN_BAGS = 8
_BOOT, _PERM, _PLAN = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Replicates:
    """Values of R replicates; K groups in label order, P pairs of them, S segments.

    Attributes
    ----------
    accuracy : of all rows, (R,)
    rate, score : positive rate and mean score of each group, (R, K)
    curves : medians, knees and gaps
    """

    accuracy: FloatArray
    rate: FloatArray
    score: FloatArray
    curves: Measured

    def __len__(self) -> int:
        """Number of replicates."""
        return int(self.accuracy.size)


class Sampler:
    """Rows of an evaluation, sorted once, ready to be resampled.

    Parameters
    ----------
    ev : the evaluation
    random_state : seed; the same seed, rows, groups and clusters give the same resamples, whatever
        the model: that is what makes two models comparable
    exact_rows : up to so many rows, every row is a place of its own
    """

    def __init__(
        self, ev: Evaluation, random_state: int = 0, *, exact_rows: int = EXACT_ROWS
    ) -> None:
        self.ev, self.random_state = ev, random_state
        predictions = ev.predictions
        self.codes = ev.factor.codes
        self.k = len(ev.factor.labels)
        self.equal = ev.settings.base_rates == "equal"
        # At equal base rates the weights are made anew in each replicate, from these.
        self.weights = predictions.sample_weight if self.equal else ev.weight_values
        self.y = predictions.y_true
        self.exact = ev.n <= exact_rows
        self.labels = list(ev.factor.labels)
        self.grid = self._exact_grid() if self.exact else self._cell_grid()
        segments = ev.segments
        self._ends = tuple((s.q0, s.q1) for s in segments)
        self._pair = None
        if segments:
            group, reference = (self.labels.index(label) for label in segments[0].pair)
            self._pair = group, reference
        # Fixed by the observed rows: filled by `observed` before the first replicate.
        self._signs: tuple[FloatArray, ...] | None = None
        self.observed = self._observe()

    # -- places -------------------------------------------------------------------------------

    @cached_property
    def order(self) -> IntArray:
        """Rows by residual, ties by weight, as the curve has them (exact grids only)."""
        residual, weights = self.ev.residual_values, self.ev.weight_values
        if weights is None:
            return np.argsort(residual, kind="stable")
        return np.lexsort((weights, residual))

    def _exact_grid(self) -> Grid:
        order = self.order
        value = self.ev.residual_values[order]
        n = value.size
        new = np.ones(n, dtype=bool)
        new[1:] = value[1:] > value[:-1]
        starts = np.flatnonzero(new)
        run = np.cumsum(new) - 1
        run_first, run_last = starts[run], np.append(starts[1:], n)[run] - 1
        middle = np.full(n, 0.5)
        sorted_codes = self.codes[order]

        def strand(columns: IntArray | None) -> Strand:
            v = value if columns is None else value[columns]
            return Strand(columns, v, v, middle[: v.size], middle[: v.size])

        cell = np.empty(n, dtype=np.intp)
        cell[order] = np.arange(n)
        return Grid(
            exact=True,
            pooled=strand(None),
            groups=tuple(strand(np.flatnonzero(sorted_codes == a)) for a in range(self.k)),
            run_first=run_first,
            run_last=run_last,
            widths=np.append(np.diff(value), 0.0),
            cell=cell,
        )

    def _cell_grid(self) -> Grid:
        value = self.ev.overall.sample.values
        samples = [self.ev.groups[label].sample.values for label in self.labels]
        starts = _cell_starts(value, samples)
        opening = value[starts]
        ends = np.append(starts[1:], value.size)

        def strand(sorted_values: FloatArray, *, pooled: bool) -> Strand:
            first = np.searchsorted(sorted_values, opening, "left")
            after = np.append(first[1:], sorted_values.size)
            columns = np.flatnonzero(after > first)
            low, high = sorted_values[first[columns]], sorted_values[after[columns] - 1]
            start, count = starts[columns], (ends - starts)[columns]

            def share(v: FloatArray) -> FloatArray:
                rank = np.searchsorted(value, v, "left") + np.searchsorted(value, v, "right")
                return np.asarray((rank / 2 - start) / count)

            return Strand(None if pooled else columns, low, high, share(low), share(high))

        whole = strand(value, pooled=True)
        width = whole.high - whole.low
        # The trapezoid rule inside cells, and steps between them.
        widths = width / 2
        widths[:-1] += whole.low[1:] - whole.high[:-1] + width[1:] / 2
        cell = np.searchsorted(opening, self.ev.residual_values, "right") - 1
        here = np.arange(starts.size)
        groups = tuple(strand(v, pooled=False) for v in samples)
        return Grid(False, whole, groups, here, here, widths, cell)

    # -- what a replicate is made of -----------------------------------------------------------

    @cached_property
    def _sums_of(self) -> FloatArray:
        """Correct decision, positive decision and score of every row, (n, 3)."""
        p = self.ev.predictions.y_prob
        decided = p >= self.ev.threshold
        return np.stack([decided == self.y, decided, p], axis=1).astype(np.float64)

    def _alpha(self, table: FloatArray) -> FloatArray:
        """Equal-base-rate weights of (group, label), (B, K, 2), from weights by the same.

        nan in a replicate where a group lacks a label: no weight can mend that.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            within = table / table.sum(axis=2, keepdims=True)
            pooled = table.sum(axis=1, keepdims=True) / table.sum(axis=(1, 2))[:, None, None]
            alpha = pooled / within
        alpha[~np.isfinite(alpha).all(axis=(1, 2))] = np.nan
        return np.asarray(alpha)

    @cached_property
    def _table(self) -> FloatArray:
        """Observed weight by group and label, (K, 2)."""
        key = self.codes * 2 + self.y
        table = np.bincount(key, weights=self.weights, minlength=2 * self.k)
        return table.reshape(self.k, 2).astype(np.float64)

    @property
    def varying(self) -> bool:
        """Whether rows weigh differently."""
        return self.equal or self.weights is not None

    # -- exact: every row a place --------------------------------------------------------------

    def _exact_rows(self, a: int) -> IntArray:
        columns = self.grid.groups[a].columns
        assert columns is not None
        return self.order[columns]

    def _boot_exact(self, drawing: Drawing, size: int, rng: np.random.Generator) -> Block:
        counts = np.concatenate(draw_counts(drawing.strata, size, rng), axis=1)
        return self._from_row_counts(
            [counts[:, drawing.unit[self._exact_rows(a)]] for a in range(self.k)]
        )

    def _from_row_counts(self, counts: Sequence[NDArray[np.int64]]) -> Block:
        """Curves from counts of each group's rows, in the order of its curve, (B, n_a) each."""
        rows = [self._exact_rows(a) for a in range(self.k)]
        unit = [None if self.weights is None else self.weights[r][None, :] for r in rows]
        if self.equal:
            table = np.stack(
                [
                    _label_sums(c if u is None else c * u, self.y[r])
                    for c, u, r in zip(counts, unit, rows, strict=True)
                ],
                axis=1,
            )
            alpha = self._alpha(table)
            of_row = [alpha[:, a, :][:, self.y[r]] for a, r in enumerate(rows)]
            unit = [x if u is None else x * u for x, u in zip(of_row, unit, strict=True)]
        made, sums = [], []
        for c, u, r, strand in zip(counts, unit, rows, self.grid.groups, strict=True):
            weight = c.astype(np.float64) if u is None else np.nan_to_num(c * u)
            made.append(
                CurveBlock(
                    strand,
                    _accumulate(weight),
                    c.sum(axis=1).astype(np.float64),
                    0.5 if u is None else np.nan_to_num(u) / 2,
                    None if u is None else c.astype(np.float64),
                )
            )
            sums.append(weight @ self._sums_of[r])
        return made, sums, None

    @cached_property
    def _fixed_pooled(self) -> CurveBlock:
        """The pooled curve, for permutations that do not touch it."""
        if self.exact:
            weight = self._weight_in_order[None, :]
            rows = np.array([float(self.ev.n)])
            if self.weights is None:
                return CurveBlock(self.grid.pooled, _accumulate(weight), rows, 0.5)
            ones = np.ones_like(weight)
            return CurveBlock(self.grid.pooled, _accumulate(weight), rows, weight / 2, ones)
        mass = np.bincount(self.grid.cell, weights=self.weights, minlength=self.grid.size)
        rows = np.array([float(self.ev.n)])
        return CurveBlock(self.grid.pooled, _accumulate(mass[None, :].astype(float)), rows, 0.0)

    @cached_property
    def _weight_in_order(self) -> FloatArray:
        return np.ones(self.ev.n) if self.weights is None else self.weights[self.order]

    @cached_property
    def _classes(self) -> IntArray:
        """Labels are exchanged within these: environment, and the label at equal base rates.

        At equal base rates the question is whether errors differ *given the label*, so the base
        rates of the groups, which are known to differ, stay as they are.
        """
        environment = self.ev.predictions.environment
        classes = np.zeros(self.ev.n, dtype=np.intp) if environment is None else environment.codes
        return classes * 2 + self.y if self.equal else classes

    def _shuffle(self) -> Shuffle:
        cluster = self.ev.predictions.cluster
        return Shuffle(
            self.codes[self.order],
            self._classes[self.order],
            None if cluster is None else cluster.codes[self.order],
        )

    def _perm_exact(self, shuffle: Shuffle, size: int, rng: np.random.Generator) -> Block:
        drawn = shuffle.draw(size, rng)
        made, sums = [], []
        weight = self._weight_in_order
        y = self.y[self.order]
        alphas: FloatArray | None = None
        if self.equal and shuffle.cluster is None:
            alphas = self._alpha(self._table[None])
        elif self.equal:
            # Whole clusters take their labels along, so base rates change a little.
            table = [_label_sums((drawn == a) * weight, y) for a in range(self.k)]
            alphas = self._alpha(np.stack(table, axis=1))
        pooled = None if self.equal else self._fixed_pooled
        for a in range(self.k):
            mine = (drawn == a).astype(np.float64)
            rows = mine.sum(axis=1)
            half: FloatArray | float = 0.5
            counts = None
            mass = mine
            if self.varying:
                unit = weight[None, :] if alphas is None else weight * alphas[:, a, :][:, y]
                unit = np.nan_to_num(unit)
                mass, half, counts = mine * unit, unit / 2, mine
            made.append(CurveBlock(self.grid.pooled, _accumulate(mass), rows, half, counts))
            sums.append(mass @ self._sums_of[self.order])
        return made, sums, pooled

    # -- cells: many rows ------------------------------------------------------------------------

    def _histogram(
        self, unit: IntArray, units: int, rows: IntArray | slice, columns: IntArray | None
    ) -> Float32Array:
        """Weight of every unit in every cell, (units, m)."""
        key = unit[rows] * self.grid.size
        key += self.grid.cell[rows]
        weights = None if self.weights is None else self.weights[rows]
        table = np.bincount(key, weights=weights, minlength=units * self.grid.size)
        table = table.reshape(units, self.grid.size)
        return (table if columns is None else table[:, columns]).astype(np.float32)

    def _unit_sums(self, unit: IntArray, units: int, rows: IntArray | slice) -> FloatArray:
        """Rows, and weighted sums of the three rates, of every unit, (units, 4)."""
        u, weights = unit[rows], self.weights
        p = self.ev.predictions.y_prob[rows]
        decided = p >= self.ev.threshold
        if weights is None:
            # One count over (unit, decision, whether it is right) gives three of the four.
            key = (u * 2 + decided) * 2
            key += decided == self.y[rows]
            table = np.bincount(key, minlength=4 * units).reshape(units, 2, 2)
            columns = [table.sum(axis=(1, 2)), table[:, :, 1].sum(axis=1), table[:, 1].sum(axis=1)]
        else:
            w = weights[rows]
            columns = [np.bincount(u, minlength=units)]
            for x in (decided == self.y[rows], decided):
                columns.append(np.bincount(u, weights=x * w, minlength=units))
            p = p * w
        columns.append(np.bincount(u, weights=p, minlength=units))
        return np.stack([c.astype(np.float64) for c in columns], axis=1)

    def _boot_cell_tables(self, drawing: Drawing) -> list[list[tuple[Float32Array, FloatArray]]]:
        """Tables by group, and by label at equal base rates: histogram and sums of each unit."""
        tables = []
        for a in range(self.k):
            mine = self.codes == a
            parts = [mine & (self.y == label) for label in (0, 1)] if self.equal else [mine]
            stratum = drawing.strata[a if drawing.by_group else 0]
            unit = drawing.unit - stratum.first
            columns = self.grid.groups[a].columns
            tables.append(
                [
                    (
                        self._histogram(unit, stratum.size, rows, columns),
                        self._unit_sums(unit, stratum.size, rows),
                    )
                    for rows in map(np.flatnonzero, parts)
                ]
            )
        return tables

    def _boot_cells(
        self,
        drawing: Drawing,
        tables: list[list[tuple[Float32Array, FloatArray]]],
        size: int,
        rng: np.random.Generator,
    ) -> Block:
        counts = [c.astype(np.float32) for c in draw_counts(drawing.strata, size, rng)]
        mass, sums = [], []
        for a, parts in enumerate(tables):
            drawn = counts[a if drawing.by_group else 0]
            mass.append([(drawn @ histogram).astype(np.float64) for histogram, _ in parts])
            sums.append([drawn.astype(np.float64) @ s for _, s in parts])
        if drawing.by_group:
            # Bags differ a little in size; a group keeps its number of rows, or of clusters.
            for a, stratum in enumerate(drawing.strata):
                members = drawing.members[stratum.first : stratum.first + stratum.size]
                scale = members.sum() / (counts[a] @ members)[:, None]
                mass[a] = [m * scale for m in mass[a]]
                sums[a] = [s * scale for s in sums[a]]
        if self.equal:
            table = np.stack([np.stack([m.sum(axis=1) for m in of], axis=1) for of in mass], axis=1)
            alpha = np.nan_to_num(self._alpha(table))
            for a in range(self.k):
                factor = [alpha[:, a, label, None] for label in (0, 1)]
                mass[a] = [f * m for f, m in zip(factor, mass[a], strict=True)]
                sums[a] = [
                    np.concatenate([s[:, :1], f * s[:, 1:]], axis=1)
                    for f, s in zip(factor, sums[a], strict=True)
                ]
        made = []
        for of_mass, of_sums, strand in zip(mass, sums, self.grid.groups, strict=True):
            rows = np.sum([s[:, 0] for s in of_sums], axis=0)
            made.append(CurveBlock(strand, _accumulate(sum(of_mass[1:], of_mass[0])), rows, 0.0))
        return made, [sum(s[1:], s[0])[:, 1:] for s in sums], None

    def _perm_cells(self, plan: _BagPlan, size: int, rng: np.random.Generator) -> Block:
        alpha = self._alpha(self._table[None])[0] if self.equal else None
        membership = [np.zeros((size, plan.units), dtype=np.float32) for _ in range(self.k)]
        mass = [np.zeros((size, self.grid.size)) for _ in range(self.k)]
        sums = [np.zeros((size, 4)) for _ in range(self.k)]
        for stratum in plan.strata:
            span = slice(stratum.first, stratum.first + stratum.size)
            factor = np.ones(self.k) if alpha is None else np.nan_to_num(alpha[:, stratum.label])
            places = np.broadcast_to(
                np.arange(stratum.size, dtype=np.float32), (size, stratum.size)
            )
            place = rng.permuted(places, axis=1)
            for a in map(int, np.flatnonzero(stratum.share > 0)):
                begin, end = np.float32(stratum.bounds[a]), np.float32(stratum.bounds[a + 1])
                inside = np.clip(end - place, 0, 1) - np.clip(begin - place, 0, 1)
                # Bags differ a little in size; a group keeps its number of rows in the class.
                scale = factor[a] * stratum.share[a] / (inside @ plan.members[span])
                membership[a][:, span] = inside * scale[:, None]
            for a, n in stratum.row_by_row.items():
                picked = stratum.rows[rng.integers(0, stratum.rows.size, (size, n))]
                self._add_rows(picked, factor[a], mass[a], sums[a])
        for a in range(self.k):
            mass[a] += membership[a] @ plan.histogram
            sums[a] += membership[a].astype(np.float64) @ plan.sums
        counts = self.ev.factor.counts
        made = [
            CurveBlock(self.grid.pooled, _accumulate(m), np.full(size, float(n)), 0.0)
            for m, n in zip(mass, counts, strict=True)
        ]
        return made, [s[:, 1:] for s in sums], None if self.equal else self._fixed_pooled

    def _add_rows(self, rows: IntArray, factor: float, mass: FloatArray, sums: FloatArray) -> None:
        """Add single rows (B, r) to the weight in cells and to the sums of a block, in place."""
        size, m = mass.shape
        key = self.grid.cell[rows] + (np.arange(size) * m)[:, None]
        weight = np.full(rows.shape, factor)
        if self.weights is not None:
            weight *= self.weights[rows]
        mass += np.bincount(key.ravel(), weight.ravel(), minlength=size * m).reshape(size, m)
        sums[:, 1:] += np.einsum("br,brj->bj", weight, self._sums_of[rows])

    # -- from blocks to replicates ---------------------------------------------------------------

    def _measure(self, block: Block, *, permuted: bool = False) -> Replicates:
        groups, sums, pooled = block
        spread = [spread_over(self.grid, g.strand, g.cumulative) for g in groups]
        if pooled is None:
            pooled = self._pool(groups, spread)
        totals = [g.cumulative[:, -1] for g in groups]
        # The observed pair is the widest one, so random groupings show their widest one too.
        stretches = Stretches(self._ends, None if permuted else self._pair)
        # A group that is absent from a replicate weighs 0: what needs it is nan there.
        with np.errstate(invalid="ignore", divide="ignore"):
            accuracy = np.sum([s[:, 0] for s in sums], axis=0) / np.sum(totals, axis=0)
            rate, score = (
                np.stack([s[:, j] / t for s, t in zip(sums, totals, strict=True)], axis=1)
                for j in (1, 2)
            )
            curves = measure(self.grid, groups, pooled, spread, stretches, self._signs)
        return Replicates(accuracy, rate, score, curves)

    def _pool(self, groups: list[CurveBlock], spread: list[FloatArray]) -> CurveBlock:
        size = spread[0].shape[0]
        cumulative = np.zeros((size, self.grid.size + 1))
        for reached in spread:
            cumulative[:, 1:] += reached
        rows = np.sum([g.rows for g in groups], axis=0)
        if not self.exact:
            return CurveBlock(self.grid.pooled, cumulative, rows, 0.0)
        if not self.varying:
            return CurveBlock(self.grid.pooled, cumulative, rows, 0.5)
        half, counts = (np.zeros((size, self.grid.size)) for _ in range(2))
        for g in groups:
            assert g.counts is not None
            if g.strand.columns is None:
                half += g.half * g.counts
                counts += g.counts
            else:
                half[:, g.strand.columns] = g.half
                counts[:, g.strand.columns] = g.counts
        return CurveBlock(self.grid.pooled, cumulative, rows, half, counts)

    def _observe(self) -> Replicates:
        """The rows as they are, on the same places as the replicates."""
        groups, sums = [], []
        if self.exact:
            block = self._from_row_counts(
                [np.ones((1, n), dtype=np.int64) for n in self.ev.factor.counts]
            )
        else:
            for a, strand in enumerate(self.grid.groups):
                curve = self.ev.groups[self.labels[a]]
                reached = np.append(curve.sample.values.searchsorted(strand.low), curve.n)
                cumulative = reached.astype(np.float64)[None, :]
                if curve.weights is not None:
                    cumulative = np.append(0.0, np.cumsum(curve.weights))[reached][None, :]
                groups.append(CurveBlock(strand, cumulative, np.array([float(curve.n)]), 0.0))
                rates = [curve.accuracy, curve.positive_rate, curve.mean_score]
                sums.append(cumulative[:, -1:] * rates)
            block = (groups, sums, None)
        spread = [spread_over(self.grid, g.strand, g.cumulative) for g in block[0]]
        with np.errstate(invalid="ignore"):  # no weight, as at equal base rates that are undefined
            share = [s[0] / s[0, -1] for s in spread]
        self._signs = tuple(
            np.sign(share[i] - share[j]) * self.grid.widths
            for i, j in combinations(range(self.k), 2)
        )
        return self._measure(block)

    def bootstrap(self, replicates: int) -> Replicates:
        """Draw rows again, within groups, or whole clusters."""
        (rng,) = seeds(self.random_state, _PLAN, 1)
        drawing = plan_bootstrap(
            self.ev.factor,
            self.ev.predictions.cluster,
            rng,
            bags=None if self.exact else BAGS,
        )
        if self.exact:

            def make(size: int, rng: np.random.Generator) -> Block:
                return self._boot_exact(drawing, size, rng)
        else:
            tables = self._boot_cell_tables(drawing)

            def make(size: int, rng: np.random.Generator) -> Block:
                return self._boot_cells(drawing, tables, size, rng)

        # The same blocks for every model of the same rows, so the same resamples.
        width = drawing.units if self.exact else None
        return self._run(make, _BOOT, blocks(replicates, width))

    def permute(self, replicates: int) -> Replicates | None:
        """Exchange the groups of the rows, within environments; None where that is not offered."""
        if self.exact:
            shuffle = self._shuffle()

            def make(size: int, rng: np.random.Generator) -> Block:
                return self._perm_exact(shuffle, size, rng)

            width: int | None = self.ev.n
        else:
            plan = self._bag_plan()
            if plan is None:
                return None

            def make(size: int, rng: np.random.Generator) -> Block:
                return self._perm_cells(plan, size, rng)

            width = None
        return self._run(make, _PERM, blocks(replicates, width))

    def _run(
        self,
        make: Callable[[int, np.random.Generator], Block],
        stream: int,
        sizes: list[int],
    ) -> Replicates:
        generators = seeds(self.random_state, stream, len(sizes))

        def one(job: tuple[int, np.random.Generator]) -> Replicates:
            return self._measure(make(*job), permuted=stream == _PERM)

        # Matrix products use all cores by themselves; more threads would only wait for each other.
        workers = min(2, os.cpu_count() or 1) if self.exact else 1
        with ThreadPoolExecutor(workers) as pool:
            return _join(list(pool.map(one, zip(sizes, generators, strict=True))))

    def _bag_plan(self) -> _BagPlan | None:
        """Bags of rows, or of whole clusters, within the classes whose labels are exchanged."""
        (rng,) = seeds(self.random_state, _PLAN + 1, 1)
        cluster = self.ev.predictions.cluster
        classes, codes = self._classes, self.codes
        owner = None
        if cluster is not None:
            owner, n_clusters = cluster.codes, len(cluster.labels)
            if not (is_nested(codes, owner, n_clusters) and is_nested(classes, owner, n_clusters)):
                return None
            codes, classes = (_of_clusters(x, owner, n_clusters) for x in (codes, classes))
        sizes = np.bincount(classes)
        bags = np.maximum(BAGS * sizes // classes.size, _FEWEST_BAGS)
        bags = np.minimum(bags, sizes)
        if bags.sum() > _MOST_BAGS:
            return None
        unit = np.empty(classes.size, dtype=np.intp)
        strata, first = [], 0
        for c in np.flatnonzero(sizes):
            rows = np.flatnonzero(classes == c) if np.count_nonzero(sizes) > 1 else None
            n, r = int(sizes[c]), int(bags[c])
            placed = np.arange(n) if r == n else rng.integers(0, r, n)
            unit[slice(None) if rows is None else rows] = first + placed
            share = np.bincount(codes if rows is None else codes[rows], minlength=self.k)
            small = {
                int(a): int(share[a])
                for a in np.flatnonzero(share)
                if owner is None and r < n and share[a] * r < _SMALL_IN_BAGS * n
            }
            if len(small) == np.count_nonzero(share):
                small = {}
            kept = share.astype(np.float64)
            kept[list(small)] = 0
            bounds = np.concatenate([[0.0], np.cumsum(kept)]) * (r / kept.sum())
            strata.append(
                _BagStratum(
                    first,
                    r,
                    int(c) % 2 if self.equal else 0,
                    kept,
                    bounds,
                    small,
                    (np.arange(n) if rows is None else rows) if small else np.empty(0, np.intp),
                )
            )
            first += r
        members = np.bincount(unit, minlength=first).astype(np.float32)
        if owner is not None:
            unit = unit[owner]
        every = slice(None)
        return _BagPlan(
            tuple(strata),
            first,
            members,
            self._histogram(unit, first, every, None),
            self._unit_sums(unit, first, every),
        )


@dataclass(frozen=True, eq=False)
class _BagStratum:
    """Bags that exchange their group: a random order of them is cut at ``bounds``."""

    first: int
    size: int
    label: int
    share: FloatArray
    bounds: FloatArray
    row_by_row: dict[int, int]
    rows: IntArray


@dataclass(frozen=True, eq=False)
class _BagPlan:
    strata: tuple[_BagStratum, ...]
    units: int
    members: Float32Array
    histogram: Float32Array
    sums: FloatArray


def _of_clusters(values: IntArray, owner: IntArray, n_clusters: int) -> IntArray:
    found = np.zeros(n_clusters, dtype=np.intp)
    found[owner] = values
    return found


def _accumulate(weight: FloatArray) -> FloatArray:
    """Cumulative weight with a leading 0, (B, m + 1)."""
    total = np.empty((weight.shape[0], weight.shape[1] + 1))
    total[:, 0] = 0.0
    # Without ``out`` most of the time goes into fresh memory.
    np.cumsum(weight, axis=1, out=total[:, 1:])
    return total


def _label_sums(weight: NDArray[Any], y: NDArray[np.int8]) -> FloatArray:
    """Weight by label, (B, 2)."""
    positive = weight @ y.astype(np.float64)
    return np.stack([weight.sum(axis=1) - positive, positive], axis=1)


def _join(parts: list[Replicates]) -> Replicates:
    def stack(of: Callable[[Replicates], FloatArray]) -> FloatArray:
        return np.concatenate([of(part) for part in parts])

    curves = Measured(
        *[stack(lambda part, name=f.name: getattr(part.curves, name)) for f in fields(Measured)]  # type: ignore[misc]
    )
    return Replicates(
        stack(lambda part: part.accuracy),
        stack(lambda part: part.rate),
        stack(lambda part: part.score),
        curves,
    )


def _cell_starts(value: FloatArray, samples: list[FloatArray]) -> IntArray:
    """First row of every cell of a sorted curve.

    Cuts at equal shares of the rows, at equal steps of the residual, ever closer to both ends of
    every curve and around every median. Equal residuals are never parted.
    """
    n = value.size
    ranks = [np.linspace(0, n, _MASS_CELLS, endpoint=False)]
    steps = np.linspace(value[0], value[-1], _VALUE_CELLS)
    cuts = [steps]
    ladder = np.unique(np.geomspace(1, max(n / 100, 2), _TAIL).astype(np.intp))
    detail = [value, *samples] if len(samples) <= 12 else [value]
    for v in detail:
        near = np.concatenate([ladder - 1, v.size - ladder])
        reach = 4 * np.sqrt(v.size)
        centre = v.size / 2 + np.linspace(-reach, reach, _CENTRE)
        index = np.concatenate([near, centre]).astype(np.intp)
        cuts.append(v[np.clip(index, 0, v.size - 1)])
    cuts.append(value[np.clip(ranks[0].astype(np.intp), 0, n - 1)])
    wanted = np.unique(np.concatenate(cuts))
    starts = np.searchsorted(value, wanted, "left")
    # A residual that many rows share is a cell of its own: it also ends there.
    after = np.searchsorted(value, wanted, "right")
    starts = np.concatenate([[0], starts, after[after - starts > n / (4 * _MASS_CELLS)]])
    return np.unique(starts[starts < n]).astype(np.intp)
