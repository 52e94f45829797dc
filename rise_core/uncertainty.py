"""Uncertainty: an interval, a null and a p-value for everything an evaluation says.

The rules, and how well they hold in simulations, are in ``docs/uncertainty.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from math import isnan
from typing import TYPE_CHECKING

import pandas as pd

from rise_core.estimates import Estimate, Rules
from rise_core.exceptions import PredictionsError
from rise_core.replicates import EXACT_ROWS, Sampler

if TYPE_CHECKING:
    from rise_core.evaluation import Evaluation

__all__ = ["Estimate", "Uncertainty", "not_resampled", "uncertainty"]

# Fewer rows than this in a group: resampling them cannot show how uncertain they are.
FEW_ROWS = 20


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """Intervals, nulls and p-values of one evaluation; made by `Evaluation.uncertainty`.

    ``u["f_acc"]`` is the Estimate of an indicator.

    Attributes
    ----------
    indicators : key to Estimate: accuracy, dp, md, md_decision, f_mean, f_shift, f_acc, w1
    displacements : one Estimate for each side, pair and of delta_h, delta_d
    segments : one Estimate for each segment and of share, area, mean_gap, slope_gap
    denominators : h_g and d_g of the pooled curve, each side
    n_boot, n_perm : replicates
    confidence : of the intervals and of the null's middle share
    random_state : seed
    resampled : what a bootstrap draws, "rows" or "clusters"
    within : what labels are exchanged within, such as "environment"; None for all rows
    places : number of cells of the curve, or None where every row is a place of its own
    cell_error : largest change of a median position or an area by the cells; 0 without cells
    notes : what a reader should know
    """

    indicators: Mapping[str, Estimate]
    displacements: tuple[Estimate, ...]
    segments: tuple[Estimate, ...]
    denominators: tuple[Estimate, ...]
    n_boot: int
    n_perm: int
    confidence: float
    random_state: int
    resampled: str
    within: str | None
    places: int | None
    cell_error: float
    notes: tuple[str, ...]

    def __getitem__(self, name: str) -> Estimate:
        """Return the estimate of an indicator."""
        return self.indicators[name]

    def __iter__(self) -> Iterator[Estimate]:
        """Go through all estimates."""
        yield from self.indicators.values()
        yield from self.displacements
        yield from self.segments
        yield from self.denominators

    def displacement(
        self, side: str, name: str, group: str | None = None, reference: str | None = None
    ) -> Estimate:
        """Return a displacement; the pair may be left out where there is one only.

        Raises
        ------
        PredictionsError
            no such displacement, or more than one
        """
        found = [
            e
            for e in self.displacements
            if e.side == side
            and e.name == name
            and group in (None, e.group)
            and reference in (None, e.reference)
        ]
        if len(found) != 1:
            raise PredictionsError(
                f"{len(found)} displacements match side {side!r}, name {name!r}, group {group!r}, "
                f"reference {reference!r}; wanted one. Name side, group and reference."
            )
        return found[0]

    def to_frame(self) -> pd.DataFrame:
        """Return a tidy table, one row an estimate.

        Columns: those of `Estimate`, distinguishable, n_boot, n_perm, confidence, random_state.
        """
        facts = {
            "n_boot": self.n_boot,
            "n_perm": self.n_perm,
            "confidence": self.confidence,
            "random_state": self.random_state,
        }
        rows = [{**asdict(e), "distinguishable": e.distinguishable, **facts} for e in self]
        return pd.DataFrame(rows)


def uncertainty(
    ev: Evaluation,
    n_boot: int = 500,
    n_perm: int = 500,
    confidence: float = 0.95,
    random_state: int = 0,
) -> Uncertainty:
    """How certain an evaluation is: bootstrap intervals and a permutation null.

    Parameters
    ----------
    ev : the evaluation
    n_boot : bootstrap replicates: rows drawn within groups, or whole clusters
    n_perm : permutations of the group labels, within environments where there are any; 0 for none
    confidence : of the intervals, between 0 and 1
    random_state : seed; the same seed gives the same numbers

    Returns
    -------
    Uncertainty

    Raises
    ------
    PredictionsError
        a confidence outside (0, 1), or fewer than 20 bootstrap replicates

    Notes
    -----
    A replicate reweights the sorted curve. Signed quantities are resampled and folded at 0, since
    an absolute value cannot be resampled where it is 0. shared definition: method, "Uncertainty".
    Knees of replicates are always the most prominent ones, also where the evaluation used kneed.
    """
    if isnan(ev.indicators.accuracy):
        # equal base rates that are undefined leave no rows
        reason = ev.undefined.get("base_rates") or ev.undefined.get("accuracy")
        return not_resampled(ev, reason, confidence, random_state)
    rules = estimate(ev, n_boot, n_perm, confidence, random_state)
    return summarise(rules, n_boot, n_perm, random_state)


def not_resampled(
    ev: Evaluation, reason: str | None, confidence: float = 0.95, random_state: int = 0
) -> Uncertainty:
    """Estimates without interval and null, and the reason why there are none."""
    return Uncertainty(
        indicators={
            name: Estimate("indicator", name, value, reason=ev.undefined.get(name, reason))
            for name, value in ev.indicators
        },
        displacements=(),
        segments=(),
        denominators=(),
        n_boot=0,
        n_perm=0,
        confidence=confidence,
        random_state=random_state,
        resampled="rows" if ev.predictions.cluster is None else "clusters",
        within=_within(ev),
        places=None,
        cell_error=0.0,
        notes=() if reason is None else (reason,),
    )


def estimate(
    ev: Evaluation, n_boot: int, n_perm: int, confidence: float, random_state: int
) -> Rules:
    """Resample an evaluation; the replicates and the rules to read them."""
    if not 0 < confidence < 1:
        raise PredictionsError(f"confidence must lie between 0 and 1; came {confidence!r}.")
    if n_boot < 20 or n_perm < 0:
        raise PredictionsError(
            f"n_boot must be 20 or more and n_perm 0 or more; came {n_boot!r} and {n_perm!r}."
        )
    sampler = Sampler(ev, random_state)
    perm = sampler.permute(n_perm) if n_perm and sampler.k > 1 else None
    return Rules(ev, sampler, sampler.bootstrap(n_boot), perm, confidence)


def summarise(rules: Rules, n_boot: int, n_perm: int, random_state: int) -> Uncertainty:
    """Estimates of everything, from the replicates."""
    ev, sampler = rules.ev, rules.sampler
    no_null = rules.perm is None
    return Uncertainty(
        indicators=rules.indicators(),
        displacements=rules.displacements(),
        segments=rules.segments(),
        denominators=rules.denominators(),
        n_boot=n_boot,
        n_perm=0 if no_null else n_perm,
        confidence=rules.confidence,
        random_state=random_state,
        resampled="rows" if ev.predictions.cluster is None else "clusters",
        within=_within(ev),
        places=None if sampler.exact else sampler.grid.size,
        cell_error=0.0 if sampler.exact else rules.cell_error(),
        notes=_notes(ev, sampler, no_null and n_perm > 0 and sampler.k > 1),
    )


def _within(ev: Evaluation) -> str | None:
    parts = [] if ev.predictions.environment is None else ["environment"]
    parts += ["label"] if ev.settings.base_rates == "equal" else []
    return " and ".join(parts) or None


def _notes(ev: Evaluation, sampler: Sampler, no_null: bool) -> tuple[str, ...]:
    notes = []
    for label, curve in ev.groups.items():
        if curve.n < FEW_ROWS:
            rows = "1 row" if curve.n == 1 else f"{curve.n} rows"
            notes.append(
                f"Group {label!r} has {rows}: too few to tell how uncertain it is. "
                "Its intervals are too short."
            )
    if ev.settings.detector == "kneed":
        notes.append(
            "Replicates use the most prominent knees. The values shown use kneed, so a value may "
            "lie outside its interval."
        )
    if not sampler.exact:
        notes.append(
            f"More than {EXACT_ROWS:,} rows: resampled on {sampler.grid.size:,} cells of the "
            "sorted curve."
        )
    if no_null:
        notes.append(
            f"No random groupings: above {EXACT_ROWS:,} rows they need clusters that lie within "
            "one group and environment, and at most some 1,000 environments."
        )
    return tuple(notes)
