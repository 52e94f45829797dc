"""`evaluate`: one model's predictions, everything that RISE says of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, reduce
from itertools import combinations, pairwise
from math import inf, isfinite, isnan, nan
from operator import add
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rise_core.binning import edges_text, is_whole
from rise_core.curve import Curve, PooledSample, SortedSample, all_equal
from rise_core.exceptions import ColumnError, PredictionsError
from rise_core.gap import (
    SEGMENT_NAMES,
    Band,
    BandGroup,
    Segment,
    areas_between,
    measure_stretch,
    wasserstein,
    wilson_interval,
)
from rise_core.indicators import (
    Displacement,
    Indicators,
    demographic_parity_ratio,
    displacements,
    knee_indicators,
    mean_fairness,
    spread,
)
from rise_core.knees import DETECTORS, SIDES, Bend, Detector, Knee, Side, twin_knees
from rise_core.mix import Method, Piece, cut_into_pieces
from rise_core.predictions import CORRECTNESS, ENVIRONMENT, Factor, Predictions, label_text
from rise_core.residuals import residual_named

if TYPE_CHECKING:
    from rise_core.uncertainty import Uncertainty

__all__ = ["Evaluation", "Settings", "evaluate", "evaluate_predictions"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
BaseRates = Literal["observed", "equal"]

_MOST_GROUPS = 250
BETWEEN_GROUPS = ("dp", "md", "md_decision", "f_mean", "f_shift", "f_acc", "w1")


@dataclass(frozen=True)
class Settings:
    """How an evaluation is made; everything but the rows.

    Attributes
    ----------
    threshold : decision ``ŷ = 1[p ≥ threshold]``, in [0, 1]
    residual : "signed_error" (``p − y``) or "decision_gap" (``ŷ − p``)
    base_rates : "observed", or "equal" for rows weighted by ``P(y) / P(y | a)``
    detector : "prominent", or "kneed" for classic Kneedle
    sensitivity : Kneedle's S
    """

    threshold: float = 0.5
    residual: str = "signed_error"
    base_rates: BaseRates = "observed"
    detector: Detector = "prominent"
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        residual_named(self.residual)
        if not 0 <= self.threshold <= 1:
            raise PredictionsError(f"threshold must lie in [0, 1]; came {self.threshold!r}.")
        if self.base_rates not in ("observed", "equal"):
            raise PredictionsError(
                f"base_rates must be 'observed' or 'equal'; came {self.base_rates!r}."
            )
        if self.detector not in DETECTORS:
            known = " or ".join(map(repr, DETECTORS))
            raise PredictionsError(f"detector must be {known}; came {self.detector!r}.")


def evaluate(
    y_true: Any,
    y_prob: Any,
    *,
    sensitive_features: Any,
    sensitive: str | None = None,
    environment: Any = None,
    threshold: float = 0.5,
    residual: str = "signed_error",
    sample_weight: Any = None,
    pos_label: Any = None,
    base_rates: BaseRates = "observed",
    cluster: Any = None,
    detector: Detector = "prominent",
    sensitivity: float = 1.0,
    bins: Mapping[str, Sequence[float]] | None = None,
    intersections: bool | Sequence[Sequence[str]] = False,
) -> Evaluation:
    """Evaluate one model: where, and for whom, it errs.

    Parameters
    ----------
    y_true : labels, shape (n,), two distinct values
    y_prob : score of the positive class, shape (n,), in [0, 1]
    sensitive_features : groups, shape (n,), or several columns (a frame, a mapping); each is
        evaluated, see `Evaluation.by_feature`
    sensitive : the group to look at; unnamed, the smaller of two groups
    environment : shape (n,), optional, see `Evaluation.by_environment`
    threshold : decision threshold, in [0, 1]
    residual : "signed_error" (``p − y``) or "decision_gap" (``ŷ − p``)
    sample_weight : positive weights, shape (n,), optional
    pos_label : the positive label; needed where the labels do not tell
    base_rates : "observed" or "equal" (every group reweighted to the pooled base rate)
    cluster : rows that belong together, shape (n,), optional; used by resampling
    detector, sensitivity : "prominent", or "kneed" with its S
    bins : sensitive column to the edges that cut its numbers into bands, ascending, such as
        ``{"age": (30, 45, 60)}`` for "under 30", "30–44", "45–59", "60 and over"
    intersections : columns to cross, such as ``[("sex", "age")]``, each crossing a further
        feature ``"sex × age"``; True crosses all columns

    Returns
    -------
    Evaluation

    Raises
    ------
    PredictionsError
        labels that are not binary, scores outside [0, 1], an empty table, a measurement in place
        of groups, …
    ColumnError
        no such group, or bins or intersections of a column that is not there

    Examples
    --------
    >>> ev = evaluate([1, 0, 1, 0], [0.9, 0.2, 0.6, 0.7], sensitive_features=list("aabb"))
    >>> round(ev.indicators.accuracy, 2)
    0.75

    References
    ----------
    shared definition of every value: ``docs/method.md``
    """
    predictions = Predictions.from_columns(
        y_true,
        y_prob,
        sensitive_features=sensitive_features,
        environment=environment,
        sample_weight=sample_weight,
        pos_label=pos_label,
        cluster=cluster,
        bins=bins,
        intersections=intersections,
    )
    settings = Settings(threshold, residual, base_rates, detector, sensitivity)
    return evaluate_predictions(predictions, sensitive=sensitive, settings=settings)


def evaluate_predictions(
    predictions: Predictions,
    *,
    feature: str | None = None,
    sensitive: str | None = None,
    settings: Settings | None = None,
) -> Evaluation:
    """Evaluate predictions that are already checked.

    Parameters
    ----------
    predictions : checked rows
    feature : name of the sensitive column; the first by default
    sensitive : the group to look at; unnamed, the smaller of two groups
    settings : threshold, residual, base rates, detector

    Raises
    ------
    ColumnError
        no such sensitive column, or no such group in it
    PredictionsError
        the column holds a measurement, or more groups than can be compared
    """
    settings = settings or Settings()
    factor = predictions.feature(feature)
    _refuse_too_fine(factor)
    named = None if sensitive is None else label_text(sensitive)
    if named is not None and named not in factor.labels:
        known = ", ".join(map(repr, factor.labels))
        raise ColumnError(f"No group {named!r} in {factor.name!r}. There are: {known}.")
    roles = _choose_sensitive(factor, named)
    return _evaluate(predictions, factor, roles, settings)


def _refuse_too_fine(factor: Factor) -> None:
    measured = factor.as_measured
    if measured is not None and (len(factor.labels) > _MOST_GROUPS or not is_whole(measured[0])):
        edges = edges_text(measured[1])
        raise PredictionsError(
            f"{factor.name!r} holds {len(factor.labels):,} distinct numbers: a measurement, no "
            f"groups. Edges such as {edges} cut it into bands: `bins` in Python, Columns in the "
            "app."
        )
    if len(factor.labels) > _MOST_GROUPS:
        raise PredictionsError(
            f"{factor.name!r} splits the rows into {len(factor.labels):,} groups; every two are "
            f"compared, and more than {_MOST_GROUPS} cannot be. Choose a coarser column."
        )


@dataclass(frozen=True)
class _Roles:
    """Who is compared with whom, and how that was decided."""

    sensitive: str | None
    reference: str | None
    chosen: str


def _choose_sensitive(factor: Factor, named: str | None) -> _Roles:
    """Sensitive and reference group; two unnamed groups: the smaller one is sensitive."""
    counts = dict(zip(factor.labels, map(int, factor.counts), strict=True))
    chosen = "named"
    if named is None:
        if len(counts) != 2:
            reason = "one group only" if len(counts) < 2 else "more than two groups"
            return _Roles(None, None, f"none named, {reason}")
        first, second = factor.labels
        named = first if counts[first] < counts[second] else second
        chosen = "the smaller group" if counts[first] != counts[second] else "the later label"
    others = [label for label in factor.labels if label != named]
    reference = max(others, key=lambda label: counts[label]) if others else None
    return _Roles(named, reference, chosen)


def _roles_among(factor: Factor, roles: _Roles) -> _Roles:
    """Roles of the groups that are there: an environment, or equal base rates, may lack some."""
    present = set(factor.labels)
    if roles.sensitive in present and roles.reference not in present:
        return replace(_choose_sensitive(factor, roles.sensitive), chosen=roles.chosen)
    return replace(
        roles,
        sensitive=roles.sensitive if roles.sensitive in present else None,
        reference=roles.reference if roles.reference in present else None,
    )


def _evaluate(
    predictions: Predictions, factor: Factor, roles: _Roles, settings: Settings
) -> Evaluation:
    given, named = predictions, roles
    weights, reason, defined = predictions.sample_weight, None, True
    if settings.base_rates == "equal":
        equal = _at_equal_base_rates(predictions, factor)
        predictions, factor, weights = equal.predictions, equal.factor, equal.weights
        reason, defined = equal.reason, equal.defined
    if weights is not None and all_equal(weights):
        weights = None
    roles = _roles_among(factor, roles)

    y_true, y_prob = predictions.y_true, predictions.y_prob
    y_pred = y_prob >= settings.threshold
    residual = residual_named(settings.residual).compute(y_true, y_prob, y_pred)
    rows = _rows_by_group(factor, weights)
    samples = [SortedSample.from_values(r.take(residual), r.weights) for r in rows]
    pooled = PooledSample.merge(samples, weighted=weights is not None)
    rates = _rates(rows, y_true, y_prob, y_pred)
    everyone = reduce(add, rates)

    def curve(label: str, sample: SortedSample, rate: _Rates) -> Curve:
        return _make_curve(label, sample, pooled.sample, rate, everyone.weight, settings)

    overall = curve("all", pooled.sample, everyone)
    made = {
        label: curve(label, sample, rate)
        for label, sample, rate in zip(factor.labels, samples, rates, strict=True)
    }
    groups = {label: made[label] for label in _display_order(factor.labels, roles)}
    widest = _widest_pair(groups) if defined else None
    areas: list[float] = []
    if widest is not None:  # one pass gives the segments' areas, and their sum is W1
        group, reference = map(factor.labels.index, widest)
        areas = areas_between(pooled, (group, reference), _segment_cuts(overall))
    w1 = sum(areas) if areas else nan
    indicators, undefined = _indicators(overall, groups, roles, w1)
    if reason is not None:
        undefined["base_rates"] = reason
        if not defined:
            indicators = Indicators(*[nan] * len(fields(Indicators)))
            undefined |= dict.fromkeys((name for name, _ in indicators), reason)
    return Evaluation(
        predictions=predictions,
        factor=factor,
        sensitive=roles.sensitive,
        reference=roles.reference,
        sensitive_chosen=roles.chosen,
        settings=settings,
        indicators=indicators,
        undefined=undefined,
        overall=overall,
        groups=groups,
        pooled=pooled,
        widest_pair=widest,
        segment_areas=tuple(areas),
        residual_values=residual,
        weight_values=weights,
        given=given,
        roles=named,
    )


def _display_order(labels: tuple[str, ...], roles: _Roles) -> list[str]:
    """Reference first and sensitive last, the others between in their own order."""
    ends = {roles.reference: 0, roles.sensitive: 2}
    return sorted(labels, key=lambda label: ends.get(label, 1))


@dataclass(frozen=True)
class _Rows:
    """Which rows a curve is made of, and what they weigh."""

    index: NDArray[np.intp]
    weights: FloatArray | None

    def take(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return a copy of the rows' values."""
        return values[self.index]

    def total(self, values: NDArray[Any]) -> float:
        """Weighted sum of the rows' values."""
        mine = self.take(values)
        if self.weights is None:
            return float(np.count_nonzero(mine) if mine.dtype == np.bool_ else mine.sum())
        return float(np.dot(mine, self.weights))

    @property
    def weight(self) -> float:
        return float(self.index.size if self.weights is None else self.weights.sum())


def _rows_by_group(factor: Factor, weights: FloatArray | None) -> list[_Rows]:
    """Rows of every group in label order.

    Index arrays, since picking rows by a mask costs numpy five times as much.
    """
    k = len(factor.labels)
    if k <= 2:
        second = factor.codes.astype(bool)
        index = [np.flatnonzero(~second), np.flatnonzero(second)][:k]
    else:
        small = np.uint8 if k <= 256 else np.uint16 if k <= 65536 else np.intp
        # numpy sorts small integers by radix: linear in the rows.
        order = np.argsort(factor.codes.astype(small), kind="stable")
        index = np.split(order, np.cumsum(factor.counts)[:-1])
    return [_Rows(rows, None if weights is None else weights[rows]) for rows in index]


@dataclass(frozen=True)
class _Rates:
    """Weight of some rows, and the weight of those that are positive, called positive, right."""

    weight: float
    positive: float
    called_positive: float
    right: float
    score: float

    def __add__(self, other: _Rates) -> _Rates:
        return _Rates(
            *(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True))
        )

    def of(self, total: float) -> dict[str, Any]:
        """Return the rates of a curve whose rows are compared with a total weight."""
        return {
            "share": self.weight / total,
            "base_rate": self.positive / self.weight,
            "positive_rate": self.called_positive / self.weight,
            "accuracy": self.right / self.weight,
            "mean_score": self.score / self.weight,
        }


def _rates(
    groups: list[_Rows], y_true: NDArray[np.int8], y_prob: FloatArray, y_pred: BoolArray
) -> list[_Rates]:
    positive = y_true.view(np.bool_)
    right = positive == y_pred
    return [
        _Rates(
            rows.weight,
            rows.total(positive),
            rows.total(y_pred),
            rows.total(right),
            rows.total(y_prob),
        )
        for rows in groups
    ]


def _make_curve(
    label: str,
    sample: SortedSample,
    pooled: SortedSample,
    rates: _Rates,
    total: float,
    settings: Settings,
) -> Curve:
    """Place a sorted sample among all rows: its median position and its knees."""
    # h rises with the residual, so the median of the rows' percentiles is that of the middle rows.
    low, high = sample.middle
    position = (
        pooled.percentile(float(sample.values[low])) + pooled.percentile(float(sample.values[high]))
    ) / 2
    knees: dict[Side, Knee | None] = {}
    reasons: dict[str, str] = {}
    for side, bend in twin_knees(sample, settings.detector, settings.sensitivity).items():
        knees[side] = _place(bend, side, sample, pooled) if isinstance(bend, Bend) else None
        if isinstance(bend, str):
            reasons[side] = bend
    return Curve(
        label=label,
        sample=sample,
        median_residual=sample.median,
        median_position=position,
        left_knee=knees["left"],
        right_knee=knees["right"],
        knee_reasons=reasons,
        **rates.of(total),
    )


def _place(bend: Bend, side: Side, sample: SortedSample, pooled: SortedSample) -> Knee:
    return Knee(
        side=side,
        index=bend.index,
        residual=bend.residual,
        percentile=pooled.percentile(bend.residual),
        own_percentile=sample.percentile(bend.residual),
        strength=bend.strength,
        shape=bend.shape,
    )


def _indicators(
    overall: Curve, groups: Mapping[str, Curve], roles: _Roles, w1: float
) -> tuple[Indicators, dict[str, str]]:
    if len(groups) < 2:
        only = next(iter(groups))
        reason = f"there is one group only ({only!r}); a comparison needs two"
        return (
            Indicators(overall.accuracy, *[nan] * len(BETWEEN_GROUPS)),
            dict.fromkeys(BETWEEN_GROUPS, reason),
        )
    rates = {label: curve.positive_rate for label, curve in groups.items()}
    dp, no_dp = demographic_parity_ratio(rates, roles.sensitive, roles.reference)
    f_shift, f_acc, undefined = knee_indicators(overall, groups)
    if no_dp:
        undefined["dp"] = no_dp
    return (
        Indicators(
            accuracy=overall.accuracy,
            dp=dp,
            md=spread([curve.mean_score for curve in groups.values()]),
            md_decision=spread(list(rates.values())),
            f_mean=mean_fairness([curve.median_position for curve in groups.values()]),
            f_shift=f_shift,
            f_acc=f_acc,
            w1=w1,
        ),
        undefined,
    )


def _widest_pair(groups: Mapping[str, Curve]) -> tuple[str, str] | None:
    """Pair of groups, (group, reference) in display order, with the largest W1."""
    pairs = [(group, reference) for reference, group in combinations(groups, 2)]
    if len(pairs) < 2:
        return pairs[0] if pairs else None
    return max(pairs, key=lambda pair: wasserstein(groups[pair[0]].sample, groups[pair[1]].sample))


def _segment_cuts(overall: Curve) -> list[float]:
    """Ends of the segments: 0, the positions of the pooled knees there are, 1."""
    knees = [knee for side in SIDES if (knee := overall.knee(side)) is not None]
    # With weights the mid-rank of very light rows can be a hair below 0.
    return [0.0, *(max(0.0, knee.percentile) for knee in knees), 1.0]


@dataclass(frozen=True)
class _AtEqualBaseRates:
    """Rows weighted so that every group has the pooled base rate.

    ``reason`` says which groups are left out for lacking a label, if any. Where all of them
    lack one, the rows stay as they are and ``defined`` is False.
    """

    predictions: Predictions
    factor: Factor
    weights: FloatArray | None
    reason: str | None = None
    defined: bool = True


def _at_equal_base_rates(predictions: Predictions, factor: Factor) -> _AtEqualBaseRates:
    """Weight the rows; groups that lack a label go, since no weight gives them another rate."""
    positives = np.bincount(factor.codes, weights=predictions.y_true, minlength=len(factor.labels))
    lacking = (positives == 0) | (positives == factor.counts)
    reason = None
    if lacking.any():
        names = [label for label, bad in zip(factor.labels, lacking, strict=True) if bad]
        quoted = ", ".join(map(repr, names))
        reason = f"no equal base rate in a group with one label only ({quoted})"
        if lacking.all():
            observed = predictions.sample_weight
            return _AtEqualBaseRates(predictions, factor, observed, reason, defined=False)
        keep = ~lacking[factor.codes]
        predictions, factor = predictions.subset(keep, reason), factor.take(keep)
    weights = _equal_base_rate_weights(predictions, factor)
    return _AtEqualBaseRates(predictions, factor, weights, reason)


def _equal_base_rate_weights(predictions: Predictions, factor: Factor) -> FloatArray:
    """Weights ``w · P(y) / P(y | a)``, shape (n,)."""
    y, k = predictions.y_true.astype(np.intp), len(factor.labels)
    cell = factor.codes * 2 + y
    table = np.bincount(cell, weights=predictions.sample_weight, minlength=2 * k).reshape(k, 2)
    within = table / table.sum(axis=1, keepdims=True)
    pooled = table.sum(axis=0) / table.sum()
    weights: FloatArray = (pooled / within).reshape(-1)[cell]
    if predictions.sample_weight is not None:
        weights = weights * predictions.sample_weight
    return weights


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What RISE says of one model's predictions; made by `evaluate`, never changed.

    Attributes
    ----------
    predictions : the rows used, and the account of those left out
    factor : groups of those rows
    sensitive, reference : the two groups compared, where they are known
    sensitive_chosen : how the sensitive group was decided ("named", "the smaller group", …)
    settings : threshold, residual, base rates, detector
    indicators : accuracy, dp, md, md_decision, f_mean, f_shift, f_acc, w1; nan when undefined
    undefined : indicator name to the reason why it is undefined
    overall : Curve of all rows
    groups : label to Curve; the reference first, the sensitive group last
    pooled : all rows in residual order, and whose row each one is (codes into ``factor.labels``)
    widest_pair : the two groups, (group, reference), farthest apart by W1; None for one group
    segment_areas : area between that pair on each segment
    residual_values : residual of every row, shape (n,), in row order
    weight_values : weight of every row, shape (n,), or None when all weigh the same
    given : the rows before any were left out for the settings' sake
    roles : the groups to compare, also where some of these rows' groups are absent
    """

    predictions: Predictions
    factor: Factor
    sensitive: str | None
    reference: str | None
    sensitive_chosen: str
    settings: Settings
    indicators: Indicators
    undefined: Mapping[str, str]
    overall: Curve
    groups: Mapping[str, Curve]
    pooled: PooledSample
    widest_pair: tuple[str, str] | None
    segment_areas: tuple[float, ...]
    residual_values: FloatArray
    weight_values: FloatArray | None
    given: Predictions
    roles: _Roles

    @property
    def feature(self) -> str:
        """Name of the sensitive column."""
        return self.factor.name

    @property
    def threshold(self) -> float:
        """Decision threshold."""
        return self.settings.threshold

    @property
    def residual(self) -> str:
        """Residual mode, "signed_error" or "decision_gap"."""
        return self.settings.residual

    @property
    def base_rates(self) -> str:
        """Base rates, "observed" or "equal"."""
        return self.settings.base_rates

    @property
    def n(self) -> int:
        """Rows used; ``n_rows == n + sum(left_out.values())``."""
        return self.overall.n

    @property
    def n_rows(self) -> int:
        """Rows that came in."""
        return self.predictions.n_rows

    @property
    def left_out(self) -> Mapping[str, int]:
        """Reason to number of rows left out."""
        return self.predictions.left_out

    @cached_property
    def majority_accuracy(self) -> float:
        """Accuracy of always deciding for the more frequent label, in [0, 1]."""
        return max(self.overall.base_rate, 1 - self.overall.base_rate)

    @cached_property
    def pair_displacements(self) -> tuple[Displacement, ...]:
        """Displacement of the knees of every pair of groups on both sides."""
        return tuple(displacements(self.overall, self.groups))

    @property
    def displacements(self) -> pd.DataFrame:
        """Displacements as a table: side, group, reference, delta_h, delta_d, h, v."""
        columns = ["side", "group", "reference", "delta_h", "delta_d", "h", "v"]
        return pd.DataFrame([vars(d) for d in self.pair_displacements], columns=columns)

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """Left tail, core and right tail, each with its share of W1; they add up to it.

        The cuts are the pooled knees' positions; a missing knee cuts nothing. With more than two
        groups the pair farthest apart is described.
        """
        if self.widest_pair is None:
            return ()
        names = [
            name
            for name, side in zip(SEGMENT_NAMES, ("left", None, "right"), strict=True)
            if side is None or self.overall.knee(side) is not None
        ]
        ends = pairwise(_segment_cuts(self.overall))
        return tuple(
            self._stretch(name, q0, q1, area)
            for name, (q0, q1), area in zip(names, ends, self.segment_areas, strict=True)
        )

    def _stretch(self, name: str, q0: float, q1: float, area: float) -> Segment:
        assert self.widest_pair is not None
        group, reference = (self.groups[label].sample for label in self.widest_pair)
        w1 = self.indicators.w1
        return measure_stretch(name, q0, q1, self.widest_pair, (group, reference), area, w1)

    def band(self, q0: float, q1: float) -> Band:
        """Look into a stretch of the global curve.

        Parameters
        ----------
        q0, q1 : global percentiles, ``0 ≤ q0 < q1 ≤ 1``

        Returns
        -------
        Band
            the gap between the groups there, each group's presence, and the rows

        Raises
        ------
        PredictionsError
            ends out of order or outside [0, 1]
        """
        if not 0 <= q0 < q1 <= 1:
            raise PredictionsError(f"A band needs 0 ≤ q0 < q1 ≤ 1; came {q0!r} and {q1!r}.")
        gap = None
        if self.widest_pair is not None:
            group, reference = map(self.factor.labels.index, self.widest_pair)
            (area,) = areas_between(self.pooled, (group, reference), (q0, q1))
            gap = self._stretch("band", q0, q1, area)
        rows = self._rows_between(q0, q1)
        codes = self.factor.codes[rows]
        weights = self.weight_values
        y_true, y_prob = self.predictions.y_true[rows], self.predictions.y_prob[rows]
        y_pred = y_prob >= self.threshold
        groups = {}
        mass = np.ones(rows.size) if weights is None else weights[rows]
        band_weight = float(mass.sum())
        # Unequal weights say less than as many equal ones (Kish's effective number of rows).
        effective = band_weight**2 / float(np.dot(mass, mass)) if rows.size else 0.0
        for label, curve in self.groups.items():
            mine = codes == self.factor.labels.index(label)
            share = float(mass[mine].sum()) / band_weight if rows.size else nan
            low, high = wilson_interval(share, effective) if rows.size else (nan, nan)
            groups[label] = BandGroup(
                n=int(np.count_nonzero(mine)),
                share=share,
                overall_share=curve.share,
                lift=share / curve.share,
                low=low / curve.share,
                high=high / curve.share,
                positives=int(np.count_nonzero(mine & (y_true == 1))),
                false_positives=int(np.count_nonzero(mine & y_pred & (y_true == 0))),
                false_negatives=int(np.count_nonzero(mine & ~y_pred & (y_true == 1))),
            )
        residuals = self.residual_values[rows]
        return Band(
            q0=q0,
            q1=q1,
            n=int(rows.size),
            residual_range=_range(residuals),
            score_range=_range(y_prob),
            gap=gap,
            groups=groups,
            rows=self.predictions.row_positions[rows],
        )

    def _rows_between(self, q0: float, q1: float) -> NDArray[np.intp]:
        """Indices of the rows with ``q0 ≤ h(d) ≤ q1``, ascending.

        h rises with d, so the rows are those between two residuals, and only as many
        percentiles are computed as a bisection looks at.
        """
        values = self.overall.sample.values
        first = bisect_left(values, q0, key=lambda d: self.overall.percentile(float(d)))
        stop = bisect_right(values, q1, key=lambda d: self.overall.percentile(float(d)))
        if q0 <= 0:  # with weights the mid-rank of a very light first row is a hair below 0
            first = 0
        if first >= stop:
            return np.zeros(0, dtype=np.intp)
        low, high = values[first], values[stop - 1]
        return np.flatnonzero((self.residual_values >= low) & (self.residual_values <= high))

    @cached_property
    def by_environment(self) -> dict[str, Evaluation]:
        """Each environment by itself, in label order; empty where there are none."""
        environment = self.given.environment
        if environment is None:
            return {}
        return {label: self._alone(label) for label in environment.labels}

    def _alone(self, environment: str) -> Evaluation:
        part = self.given.in_environment(environment)
        return _evaluate(part, part.feature(self.feature), self.roles, self.settings)

    @cached_property
    def by_feature(self) -> dict[str, Evaluation]:
        """Each sensitive column by itself; this evaluation is one of them."""
        return {
            name: self
            if name == self.feature
            else evaluate_predictions(self.given, feature=name, settings=self.settings)
            for name in self.given.features
        }

    def intersection(self, *names: str) -> Evaluation:
        """Evaluate the groups of several sensitive columns crossed; all columns by default."""
        crossed = self.given.intersection(*(names or tuple(self.given.features)))
        return evaluate_predictions(
            self.given.with_feature(crossed), feature=crossed.name, settings=self.settings
        )

    @cached_property
    def correctness(self) -> Factor:
        """Whether each row is decided rightly, as groups "correct" and "wrong"."""
        wrong = (self.predictions.y_prob >= self.threshold) != self.predictions.y_true
        factor = Factor(CORRECTNESS, ("correct", "wrong"), wrong.astype(np.intp))
        return factor.take(slice(None))

    def factor_named(self, name: str | None = None) -> Factor:
        """Return groups of the rows by name.

        ``name`` is a sensitive column, "environment", "correctness", or None for the column that
        is evaluated.
        """
        if name is None or name == self.feature:
            return self.factor
        if name == CORRECTNESS:
            return self.correctness
        if name == ENVIRONMENT:
            if self.predictions.environment is None:
                raise ColumnError("These predictions have no environment column.")
            return self.predictions.environment
        return self.predictions.feature(name)

    def curves_by(self, name: str | None = None) -> Mapping[str, Curve]:
        """Return curves by other groups than the compared ones, placed among the same rows.

        ``name`` as in `factor_named`; for colouring the chart by environment or correctness.
        """
        factor = self.factor_named(name)
        if factor is self.factor:
            return self.groups
        y_prob, pooled = self.predictions.y_prob, self.overall.sample
        rows = _rows_by_group(factor, self.weight_values)
        rates = _rates(rows, self.predictions.y_true, y_prob, y_prob >= self.threshold)
        total = sum(rate.weight for rate in rates)
        samples = [SortedSample.from_values(r.take(self.residual_values), r.weights) for r in rows]
        return {
            label: _make_curve(label, sample, pooled, rate, total, self.settings)
            for label, sample, rate in zip(factor.labels, samples, rates, strict=True)
        }

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """Row indices in ascending order of their residual, shape (n,)."""
        return np.argsort(self.residual_values, kind="stable")

    def pieces(
        self, k: int = 40, by: str | None = None, method: Method = "adaptive"
    ) -> tuple[Piece, ...]:
        """Pieces of the global curve, cut where the mix of groups changes.

        Parameters
        ----------
        k : most pieces
        by : which groups, as in `factor_named`
        method : "adaptive", or "equal" for ``k`` pieces of equal count
        """
        factor, sample = self.factor_named(by), self.pooled.sample
        if factor is self.factor:
            codes, weights = self.pooled.codes.astype(np.intp), sample.weights
        else:
            codes = factor.codes[self.order]
            weights = None if self.weight_values is None else self.weight_values[self.order]
        ordered = Factor(factor.name, factor.labels, codes)
        return cut_into_pieces(sample.values, ordered, weights, k=k, method=method)

    def uncertainty(
        self,
        n_boot: int = 500,
        n_perm: int = 500,
        confidence: float = 0.95,
        random_state: int = 0,
    ) -> Uncertainty:
        """Interval, null and p-value of every number; see `rise_core.uncertainty`."""
        # Imported here: most evaluations are never asked.
        from rise_core.uncertainty import uncertainty

        asked = (n_boot, n_perm, confidence, random_state)
        if asked not in self._uncertainties:
            self._uncertainties[asked] = uncertainty(self, *asked)
        return self._uncertainties[asked]

    @cached_property
    def _uncertainties(self) -> dict[tuple[int, int, float, int], Uncertainty]:
        """Answers of `uncertainty` by its arguments; a page asks again at every click."""
        return {}

    def with_settings(self, **changes: Any) -> Evaluation:
        """Evaluate the same rows again with other settings, such as ``base_rates="equal"``."""
        settings = replace(self.settings, **changes)
        return _evaluate(self.given, self.given.feature(self.feature), self.roles, settings)

    def group_table(self) -> pd.DataFrame:
        """Return one row a curve ("all" and every group): rates, medians and knees."""
        rows = []
        for curve in (self.overall, *self.groups.values()):
            row: dict[str, Any] = {
                "group": curve.label,
                "n": curve.n,
                "share": curve.share,
                "base_rate": curve.base_rate,
                "positive_rate": curve.positive_rate,
                "mean_score": curve.mean_score,
                "accuracy": curve.accuracy,
                "median_residual": curve.median_residual,
                "median_position": curve.median_position,
            }
            for side in SIDES:
                knee = curve.knee(side)
                row[f"{side}_knee_residual"] = nan if knee is None else knee.residual
                row[f"{side}_knee_percentile"] = nan if knee is None else knee.percentile
            rows.append(row)
        return pd.DataFrame(rows)

    def to_frame(self) -> pd.DataFrame:
        """Return the indicators as a tidy table: one row an indicator, with all that defines it.

        Columns: feature, sensitive, reference, pos_label, threshold, residual, base_rates, n,
        indicator, value, undefined (the reason, or None).
        """
        facts = {
            "feature": self.feature,
            "sensitive": self.sensitive,
            "reference": self.reference,
            "pos_label": self.predictions.pos_label,
            "threshold": self.threshold,
            "residual": self.residual,
            "base_rates": self.base_rates,
            "n": self.n,
        }
        return pd.DataFrame(
            [
                {**facts, "indicator": name, "value": value, "undefined": self.undefined.get(name)}
                for name, value in self.indicators
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the rows as plain values that JSON can hold.

        Undefined numbers are None with their reason under "undefined"; infinity is the text "inf".
        """
        return {
            "feature": self.feature,
            "sensitive": self.sensitive,
            "reference": self.reference,
            "sensitive_chosen": self.sensitive_chosen,
            "pos_label": self.predictions.pos_label,
            "neg_label": self.predictions.neg_label,
            "settings": vars(self.settings).copy(),
            "n_rows": self.n_rows,
            "n": self.n,
            "left_out": dict(self.left_out),
            "indicators": {name: _plain(value) for name, value in self.indicators},
            "undefined": dict(self.undefined),
            "curves": _records(self.group_table()),
            "displacements": _records(self.displacements),
            "segments": [
                {name: _plain(value) for name, value in vars(segment).items()}
                for segment in self.segments
            ],
        }


def _range(values: FloatArray) -> tuple[float, float] | None:
    return (float(values.min()), float(values.max())) if values.size else None


def _plain(value: Any) -> Any:
    """Return a JSON-safe copy of a number, or the value itself."""
    if isinstance(value, float):
        if isnan(value):
            return None
        if not isfinite(value):
            return "inf" if value == inf else "-inf"
    return list(value) if isinstance(value, tuple) else value


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {str(name): _plain(value) for name, value in row.items()}
        for row in table.to_dict(orient="records")
    ]
