"""From replicates to estimates: each quantity with its interval, null and p-value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import isnan, nan
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from rise_core.intervals import (
    Direction,
    Interval,
    Null,
    chosen_interval,
    null_of,
    percentile,
    range_interval,
    share_interval,
)
from rise_core.knees import SIDES, Knee
from rise_core.replicates import Replicates, Sampler

if TYPE_CHECKING:
    from rise_core.evaluation import Evaluation

__all__ = ["Estimate", "Rules"]

FloatArray = NDArray[np.float64]
# Indicators that are a difference of one quantity between groups.
_BY_GROUP = {"md": "score", "md_decision": "rate", "f_mean": "median"}
Kind = Literal["indicator", "displacement", "segment", "denominator"]


@dataclass(frozen=True)
class Estimate:
    """A value with its interval and its null.

    Attributes
    ----------
    kind : "indicator", "displacement", "segment" or "denominator"
    name : "f_acc", …; "delta_h", "delta_d"; "share", "area", "mean_gap", "slope_gap"; "h_g", "d_g"
    value : as the evaluation has it; nan when undefined
    low, high : bootstrap interval
    null_low, null_median, null_high : what random groupings give: middle share and median
    p_value : share of random groupings at least as uneven as the groups are
    side : "left" or "right", of a displacement or a denominator
    group, reference : the pair of a displacement or a segment; differences are group − reference
    segment : "left tail", "core" or "right tail"
    unstable : a denominator whose interval reaches 0; an indicator that divides by one
    direction : which side of the null is uneven, "high", "low" or "both"
    undefined_boot, undefined_perm : replicates in which the value is undefined
    reason : why value, interval or null is missing; None when nothing is
    """

    kind: Kind
    name: str
    value: float
    low: float = nan
    high: float = nan
    null_low: float = nan
    null_median: float = nan
    null_high: float = nan
    p_value: float = nan
    side: str | None = None
    group: str | None = None
    reference: str | None = None
    segment: str | None = None
    unstable: bool = False
    direction: Direction = "high"
    undefined_boot: int = 0
    undefined_perm: int = 0
    reason: str | None = None

    @property
    def distinguishable(self) -> bool | None:
        """Whether the value lies outside its null, on the uneven side.

        False is *not distinguishable from a random grouping*; None where there is no null.
        """
        if isnan(self.value) or isnan(self.null_high):
            return None
        # The same sum in another order differs in its last bits, as in `null_of`.
        slack = 1e-12 * max(abs(self.value), 1.0)
        too_high = self.value > self.null_high + slack
        too_low = self.value < self.null_low - slack
        return {"high": too_high, "low": too_low, "both": too_high or too_low}[self.direction]

    def with_interval(self, interval: Interval) -> Estimate:
        """Return a copy with an interval, unless the value itself is undefined."""
        if isnan(self.value):
            return replace(self, undefined_boot=interval.undefined)
        reason = self.reason
        if isnan(interval.low):
            reason = f"no interval: undefined in {interval.undefined:,} bootstrap replicates"
        return replace(
            self,
            low=interval.low,
            high=interval.high,
            undefined_boot=interval.undefined,
            reason=reason,
        )

    def with_null(self, null: Null) -> Estimate:
        """Return a copy with a null, unless the value itself is undefined."""
        if isnan(self.value):
            return replace(self, undefined_perm=null.undefined)
        return replace(
            self,
            null_low=null.low,
            null_median=null.median,
            null_high=null.high,
            p_value=null.p_value,
            undefined_perm=null.undefined,
        )


@dataclass(frozen=True, eq=False)
class Quantity:
    """A quantity of every group: observed (K,), resampled (R, K), and permuted (R', K) or None."""

    value: FloatArray
    boot: FloatArray
    perm: FloatArray | None

    @property
    def extremes(self) -> tuple[int, int]:
        """Groups with the largest and with the smallest observed value."""
        return int(np.argmax(self.value)), int(np.argmin(self.value))


def spread_of(values: FloatArray) -> FloatArray:
    """Largest minus smallest over groups, (R, K) to (R,); nan where a group has no value."""
    return np.asarray(values.max(axis=1) - values.min(axis=1))


def over(top: FloatArray, below: FloatArray) -> FloatArray:
    """Ratio of replicates, nan where the denominator is 0."""
    return np.divide(top, below, where=below != 0, out=np.full_like(top, nan))


@dataclass(frozen=True)
class Rules:
    """From replicates to estimates, one method a kind of quantity."""

    ev: Evaluation
    sampler: Sampler
    boot: Replicates
    perm: Replicates | None
    confidence: float

    @cached_property
    def codes(self) -> dict[str, int]:
        """Place of each group in the arrays."""
        return {label: i for i, label in enumerate(self.sampler.labels)}

    # -- quantities -------------------------------------------------------------------------------

    def by_group(self, name: str, side: int = 0) -> Quantity:
        """Return "score", "rate", "median", or a knee's "h" or "d", of every group."""
        groups = [self.ev.groups[label] for label in self.sampler.labels]
        if name == "score":
            values = [g.mean_score for g in groups]
        elif name == "rate":
            values = [g.positive_rate for g in groups]
        elif name == "median":
            values = [g.median_position for g in groups]
        else:
            values = [_at_knee(name, g.knee(SIDES[side])) for g in groups]

        def of(replicates: Replicates) -> FloatArray:
            curves = replicates.curves
            return {
                "score": replicates.score,
                "rate": replicates.rate,
                "median": curves.median,
                "h": curves.knee_h[:, :, side],
                "d": curves.knee_d[:, :, side],
            }[name]

        return self._quantity(values, of)

    def pooled(self, name: str, side: int) -> Quantity:
        """Return ``h_g`` or ``d_g``, as a quantity of one group."""

        def of(replicates: Replicates) -> FloatArray:
            curves = replicates.curves
            return (curves.pooled_h if name == "h" else curves.pooled_d)[:, side, None]

        return self._quantity([_at_knee(name, self.ev.overall.knee(SIDES[side]))], of)

    def _quantity(self, values: list[float], of: Callable[[Replicates], FloatArray]) -> Quantity:
        value = np.array(values, dtype=np.float64)
        return Quantity(value, of(self.boot), None if self.perm is None else of(self.perm))

    def _moved(self, of: Callable[[Replicates], FloatArray], value: FloatArray) -> FloatArray:
        """Bootstrap values of an area, moved by what cells change of the observed one."""
        return np.asarray(of(self.boot) + np.nan_to_num(value - of(self.sampler.observed)[0]))

    def cell_error(self) -> float:
        """Largest change of a median position or an area by the cells."""
        observed = self.sampler.observed.curves
        found = [np.abs(observed.median[0] - self.by_group("median").value)]
        found.append(np.abs(observed.area[0] - [segment.area for segment in self.ev.segments]))
        return float(np.max(np.nan_to_num(np.concatenate(found)), initial=0.0))

    # -- indicators -------------------------------------------------------------------------------

    def indicators(self) -> dict[str, Estimate]:
        """All indicators, in the order of the evaluation."""
        ev = self.ev
        made = {
            name: Estimate("indicator", name, value, reason=ev.undefined.get(name))
            for name, value in ev.indicators
        }
        interval = share_interval(
            ev.indicators.accuracy, self.boot.accuracy, self._independent_rows, self.confidence
        )
        made["accuracy"] = replace(
            made["accuracy"].with_interval(interval),
            direction="low",
            reason="accuracy does not depend on the groups, so it has no null",
        )
        if self.sampler.k < 2:
            return made
        made["dp"] = self._dp(made["dp"])
        made["md"] = self._spread(made["md"], self.by_group("score"))
        made["md_decision"] = self._spread(made["md_decision"], self.by_group("rate"))
        made["f_mean"] = self._f_mean(made["f_mean"])
        made["f_shift"] = self._relative(made["f_shift"], "h")
        made["f_acc"] = self._relative(made["f_acc"], "d")
        made["w1"] = self._w1(made["w1"])
        return made

    @property
    def _independent_rows(self) -> float:
        """Rows that are worth one each: by Kish's formula under weights, or clusters."""
        cluster, weights = self.ev.predictions.cluster, self.ev.weight_values
        if cluster is not None:
            return float(len(cluster.labels))
        if weights is None:
            return float(self.ev.n)
        return float(weights.sum() ** 2 / (weights**2).sum())

    def _with_null(self, blank: Estimate, samples: FloatArray | None) -> Estimate:
        if samples is None:
            return blank
        return blank.with_null(null_of(blank.value, samples, self.confidence, blank.direction))

    def _spread(self, blank: Estimate, quantity: Quantity) -> Estimate:
        made = blank.with_interval(range_interval(quantity.boot, quantity.value, self.confidence))
        return self._with_null(made, None if quantity.perm is None else spread_of(quantity.perm))

    def _f_mean(self, blank: Estimate) -> Estimate:
        quantity = self.by_group("median")
        apart = range_interval(quantity.boot, quantity.value, self.confidence)
        made = replace(blank, direction="low").with_interval(
            Interval(1 - apart.high / 2, 1 - apart.low / 2, apart.undefined)
        )
        perm = quantity.perm
        return self._with_null(made, None if perm is None else 1 - spread_of(perm) / 2)

    def _relative(self, blank: Estimate, name: str) -> Estimate:
        """F_shift and F_acc: fold each side, and average the ends."""
        low = high = 0.0
        undefined = np.zeros(len(self.boot), dtype=bool)
        null = None if self.perm is None else np.zeros(len(self.perm))
        unstable = False
        for side in (0, 1):
            groups, pooled = self.by_group(name, side), self.pooled(name, side)
            relative = over(groups.boot, np.broadcast_to(pooled.boot, groups.boot.shape))
            undefined |= np.isnan(relative).any(axis=1)
            with np.errstate(invalid="ignore", divide="ignore"):
                value = groups.value / pooled.value
            interval = range_interval(relative, value, self.confidence)
            low, high = low + interval.low / 2, high + interval.high / 2
            unstable |= self._reaches_zero(pooled)
            if null is not None and groups.perm is not None and pooled.perm is not None:
                null += over(spread_of(groups.perm), np.abs(pooled.perm[:, 0])) / 2
        made = replace(blank, unstable=unstable).with_interval(
            Interval(low, high, int(undefined.sum()))
        )
        return self._with_null(made, null)

    def _reaches_zero(self, pooled: Quantity) -> bool:
        interval = percentile(pooled.boot[:, 0], self.confidence)
        return interval.low <= 0 <= interval.high

    def _ratio(self, rates: FloatArray) -> FloatArray:
        """Demographic parity ratio of rates (R, K), as the evaluation defines it."""
        ev = self.ev
        if self.sampler.k == 2 and ev.sensitive is not None and ev.reference is not None:
            top, below = rates[:, self.codes[ev.sensitive]], rates[:, self.codes[ev.reference]]
        else:
            top, below = rates.min(axis=1), rates.max(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(top / below)

    def _dp(self, blank: Estimate) -> Estimate:
        rates = self.by_group("rate")
        two = self.sampler.k == 2
        if two:
            interval = percentile(self._ratio(rates.boot), self.confidence)
        else:
            # A rate of 0 has no logarithm: it counts as half a row.
            least = 0.5 / self.ev.factor.counts
            boot, value = (np.log(np.maximum(x, least)) for x in (rates.boot, rates.value))
            apart = range_interval(boot, value, self.confidence)
            ends = np.exp([-apart.high, -apart.low])
            interval = Interval(float(ends[0]), float(ends[1]), apart.undefined)
        made = replace(blank, direction="both" if two else "low").with_interval(interval)
        return self._with_null(made, None if rates.perm is None else self._ratio(rates.perm))

    def _w1(self, blank: Estimate) -> Estimate:
        def widest(replicates: Replicates) -> FloatArray:
            return np.asarray(replicates.curves.w1.max(axis=1, keepdims=True))

        blank = self._with_null(blank, None if self.perm is None else widest(self.perm)[:, 0])
        return self._unsigned(blank, self._moved(widest, np.array([blank.value]))[:, 0])

    def _unsigned(self, estimate: Estimate, boot: FloatArray) -> Estimate:
        """Interval of an area, which has no sign to fold: reflect the upper end.

        Its lower end is 0 wherever a random grouping may give as much.
        """
        found = percentile(boot, self.confidence)
        low = max(0.0, 2 * estimate.value - found.high)
        if estimate.distinguishable is False:
            low = 0.0
        return estimate.with_interval(Interval(low, found.high, found.undefined))

    # -- displacements, segments, denominators ----------------------------------------------------

    def displacements(self) -> tuple[Estimate, ...]:
        """Δh and Δd of every pair on each side, group minus reference, as the evaluation has it."""
        found = []
        for d in self.ev.pair_displacements:
            side, a, b = SIDES.index(d.side), self.codes[d.group], self.codes[d.reference]
            for name, quantity in (("delta_h", "h"), ("delta_d", "d")):
                q = self.by_group(quantity, side)
                blank = Estimate(
                    "displacement",
                    name,
                    getattr(d, name),
                    side=d.side,
                    group=d.group,
                    reference=d.reference,
                )
                perm = None if q.perm is None else q.perm[:, a] - q.perm[:, b]
                found.append(self._signed(blank, q.boot[:, a] - q.boot[:, b], perm))
        return tuple(found)

    def _signed(self, blank: Estimate, boot: FloatArray, perm: FloatArray | None) -> Estimate:
        blank = replace(blank, direction="both")
        made = blank.with_interval(percentile(boot, self.confidence))
        return self._with_null(made, perm)

    def segments(self) -> tuple[Estimate, ...]:
        """Share, area, mean gap and slope gap of every segment; its ends stay where they are."""
        found = []
        for s, segment in enumerate(self.ev.segments):
            for name in ("share", "area", "mean_gap", "slope_gap"):
                blank = Estimate(
                    "segment",
                    name,
                    getattr(segment, name),
                    group=segment.pair[0],
                    reference=segment.pair[1],
                    segment=segment.name,
                )
                found.append(self._segment(blank, s, empty=segment.q1 <= segment.q0))
        return tuple(found)

    def _segment(self, blank: Estimate, s: int, *, empty: bool) -> Estimate:
        if isnan(blank.value):
            why = "the segment is empty" if empty else "the groups' curves are equal"
            return replace(blank, reason=why)

        def values(replicates: Replicates) -> FloatArray:
            curves = replicates.curves
            if blank.name == "share":
                return over(curves.area[:, s], curves.area.sum(axis=1))
            return np.asarray(getattr(curves, blank.name)[:, s])

        boot = self._moved(lambda r: values(r)[:, None], np.array([blank.value]))[:, 0]
        perm = None if self.perm is None else values(self.perm)
        if blank.name == "share":
            return self._signed(blank, boot, perm)
        if blank.name != "area":
            choices = self.sampler.k * (self.sampler.k - 1) // 2
            interval = chosen_interval(blank.value, boot, choices, self.confidence)
            blank = replace(blank, direction="both").with_interval(interval)
            return self._with_null(blank, perm)
        return self._unsigned(self._with_null(blank, perm), boot)

    def denominators(self) -> tuple[Estimate, ...]:
        """h_g and d_g on each side; *unstable* where the interval reaches 0."""
        found = []
        for i, side in enumerate(SIDES):
            for name in ("h", "d"):
                pooled = self.pooled(name, i)
                blank = Estimate("denominator", f"{name}_g", float(pooled.value[0]), side=side)
                if isnan(blank.value):
                    found.append(replace(blank, reason=self.ev.overall.knee_reasons[side]))
                    continue
                interval = percentile(pooled.boot[:, 0], self.confidence)
                reaches = self._reaches_zero(pooled)
                found.append(replace(blank, unstable=reaches).with_interval(interval))
        return tuple(found)

    # -- for comparisons --------------------------------------------------------------------------

    def plain(self, name: str) -> FloatArray:
        """Bootstrap values of an indicator as it is defined, shape (R,)."""
        if name == "accuracy":
            return self.boot.accuracy
        if self.sampler.k < 2:
            return np.full(len(self.boot), nan)
        if name == "w1":
            shift = self.ev.indicators.w1 - self.sampler.observed.curves.w1[0].max()
            return np.asarray(self.boot.curves.w1.max(axis=1) + shift)
        if name == "dp":
            return self._ratio(self.by_group("rate").boot)
        if name in ("f_shift", "f_acc"):
            total = np.zeros(len(self.boot))
            for side in (0, 1):
                knee = "h" if name == "f_shift" else "d"
                groups, pooled = self.by_group(knee, side), self.pooled(knee, side)
                total += over(spread_of(groups.boot), np.abs(pooled.boot[:, 0])) / 2
            return total
        apart = spread_of(self.by_group(_BY_GROUP[name]).boot)
        return np.asarray(1 - apart / 2 if name == "f_mean" else apart)

    def along(self, name: str) -> FloatArray:
        """Bootstrap values of an indicator with the signs and extreme groups of the observed one.

        Shape (R,). They spread around the observed value on both sides, also where the groups are
        alike and the indicator itself could only grow: what a difference of two models needs.
        """
        if name == "accuracy":
            return self.boot.accuracy
        if self.sampler.k < 2:
            return np.full(len(self.boot), nan)
        if name == "w1":
            observed = self.sampler.observed.curves
            widest = int(np.argmax(observed.w1[0]))
            shift = self.ev.indicators.w1 - observed.along[0, widest]
            return np.asarray(self.boot.curves.along[:, widest] + shift)
        if name == "dp":
            rates = self.by_group("rate")
            if self.sampler.k == 2:
                return self._ratio(rates.boot)
            top, bottom = rates.extremes
            return over(rates.boot[:, bottom], rates.boot[:, top])
        if name in ("f_shift", "f_acc"):
            return self._relative_along("h" if name == "f_shift" else "d")
        quantity = self.by_group(_BY_GROUP[name])
        top, bottom = quantity.extremes
        apart = quantity.boot[:, top] - quantity.boot[:, bottom]
        return np.asarray(1 - apart / 2 if name == "f_mean" else apart)

    def _relative_along(self, name: str) -> FloatArray:
        total = np.zeros(len(self.boot))
        for side in (0, 1):
            groups, pooled = self.by_group(name, side), self.pooled(name, side)
            top, bottom = groups.extremes
            apart = groups.boot[:, top] - groups.boot[:, bottom]
            total += over(apart, pooled.boot[:, 0] * np.sign(pooled.value[0])) / 2
        return total


def _at_knee(name: str, knee: Knee | None) -> float:
    if knee is None:
        return nan
    return knee.percentile if name == "h" else knee.residual
