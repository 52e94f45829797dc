"""`compare`: several models, where they can be on the same rows and the same resamples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan, log, nan
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rise_core.evaluation import Evaluation, evaluate_predictions
from rise_core.exceptions import PredictionsError
from rise_core.intervals import Interval, percentile
from rise_core.predictions import Factor, Predictions
from rise_core.uncertainty import Uncertainty, estimate, not_resampled, summarise
from rise_core.wording import METRICS

__all__ = ["Comparison", "compare"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
_NAMED_ROWS = 5
_NOT_RESAMPLED = "no interval: not resampled"
# What an absolute difference is where groups are alike: a bound that chance only moves away from.
_FAIR = {"md": 0.0, "md_decision": 0.0, "f_mean": 1.0, "w1": 0.0}


@dataclass(frozen=True)
class Pairing:
    """Whether models stand on the same rows, and how that is known.

    Attributes
    ----------
    paired : whether the same resamples serve all models
    how : one sentence for the reader
    n : rows compared in each model; None where these differ
    """

    paired: bool
    how: str
    n: int | None


@dataclass(frozen=True, eq=False)
class Comparison:
    """Several models side by side; made by `compare`.

    Attributes
    ----------
    models : name to Evaluation, on the rows that are compared
    uncertainties : name to Uncertainty
    baseline : the model that others are compared with
    pairing : whether, and how, rows were matched
    confidence, n_boot, n_perm, random_state : as asked for
    replicates : of every model and indicator, with the observed sign and plain, (R,) each
    """

    models: Mapping[str, Evaluation]
    uncertainties: Mapping[str, Uncertainty]
    baseline: str
    pairing: Pairing
    confidence: float
    n_boot: int
    n_perm: int
    random_state: int
    replicates: Mapping[str, Mapping[str, tuple[FloatArray, FloatArray]]]

    @property
    def paired(self) -> bool:
        """Whether all models were resampled together."""
        return self.pairing.paired

    @property
    def table(self) -> pd.DataFrame:
        """One row a model and indicator.

        Columns: model, n, indicator, value, low, high, null_low, null_median, null_high, p_value,
        distinguishable, unstable, reason.
        """
        columns = ["value", "low", "high", "null_low", "null_median", "null_high", "p_value"]
        rows = []
        for name, u in self.uncertainties.items():
            for key, e in u.indicators.items():
                row: dict[str, Any] = {"model": name, "n": self.models[name].n, "indicator": key}
                row |= {column: getattr(e, column) for column in columns}
                row |= {"distinguishable": e.distinguishable, "unstable": e.unstable}
                rows.append({**row, "reason": e.reason})
        return pd.DataFrame(rows)

    @property
    def differences(self) -> pd.DataFrame:
        """Differences to the baseline; see `against`."""
        return self.against(self.baseline)

    def against(self, baseline: str) -> pd.DataFrame:
        """Differences of every other model to one of them, without resampling again.

        Returns
        -------
        DataFrame
            one row a model and indicator: model, baseline, indicator, difference (model minus
            baseline), low, high, verdict, paired, undefined_boot, reason. The verdict is "better",
            "worse" or "not distinguishable" (the interval holds 0), missing where undefined; for DP
            the distance from 1 is compared, ``|log DP|``

        Notes
        -----
        The interval holds those of several kinds of replicates. Those that keep the sign and the
        extreme groups of the observed values spread around the observed difference also where a
        model treats groups alike. Plain ones see that the sign itself may be chance; reflected,
        they undo what an absolute value gains by chance. Where a model's own interval reaches
        *fair*, the difference to a fair model counts too.
        """
        self._known(baseline)
        rows = [
            self._difference(name, baseline, key)
            for name in self.models
            if name != baseline
            for key in METRICS
        ]
        columns = ["model", "baseline", "indicator", "difference", "low", "high", "verdict"]
        return pd.DataFrame(rows, columns=[*columns, "paired", "undefined_boot", "reason"])

    def _difference(self, name: str, baseline: str, key: str) -> dict[str, Any]:
        a, b = (getattr(self.models[m].indicators, key) for m in (name, baseline))
        row: dict[str, Any] = {
            "model": name,
            "baseline": baseline,
            "indicator": key,
            "difference": a - b,
            "low": nan,
            "high": nan,
            "verdict": None,
            "paired": self.paired,
            "undefined_boot": 0,
            "reason": None,
        }
        if isnan(a) or isnan(b):
            which = name if isnan(a) else baseline
            why = self.models[which].undefined.get(key, "undefined")
            return {**row, "reason": f"{which}: {why}"}
        if not self.n_boot:
            return {**row, "reason": _NOT_RESAMPLED}
        kinds = list(zip(self.replicates[name][key], self.replicates[baseline][key], strict=True))
        kinds += self._cases(name, baseline, key)
        with np.errstate(invalid="ignore"):
            interval = _hull([x - y for x, y in kinds], a - b, self.confidence)
            worse = [
                _badness(key, x, a, signed=i != 1) - _badness(key, y, b, signed=i != 1)
                for i, (x, y) in enumerate(kinds)
            ]
            gain = _hull(worse, _distance(key, a) - _distance(key, b), self.confidence)
        row |= {"low": interval.low, "high": interval.high, "undefined_boot": interval.undefined}
        if isnan(interval.low):
            missing = f"undefined in {interval.undefined:,} bootstrap replicates"
            return {**row, "reason": f"no interval: {missing}"}
        if gain.high < 0:
            row["verdict"] = "better"
        elif gain.low > 0:
            row["verdict"] = "worse"
        elif not isnan(gain.low):
            row["verdict"] = "not distinguishable"
        return row

    def _cases(self, name: str, baseline: str, key: str) -> list[tuple[FloatArray, FloatArray]]:
        """Cases in which one of the two values is truly fair, where its interval allows it."""
        if key not in _FAIR:
            return []
        mine, theirs = (self.replicates[m][key][0] for m in (name, baseline))
        fair = np.full(mine.size, _FAIR[key])
        allowed = [self.uncertainties[m][key] for m in (name, baseline)]
        cases = [(fair, theirs), (mine, fair)]
        return [c for c, e in zip(cases, allowed, strict=True) if _FAIR[key] in (e.low, e.high)]

    def ranking(self, by: str = "f_mean") -> pd.DataFrame:
        """Models from best to worst by an indicator; those without a value come last.

        Returns
        -------
        DataFrame
            rank, model, value, low, high, from_best: "best", "worse" or "not distinguishable" from
            the first, missing where undefined
        """
        metric = _metric(by)
        values = {name: getattr(ev.indicators, by) for name, ev in self.models.items()}
        order = sorted(
            values,
            key=lambda name: (isnan(values[name]), _distance(metric.key, values[name])),
        )
        rows = []
        for rank, name in enumerate(order, 1):
            e = self.uncertainties[name][by]
            if isnan(values[name]):
                verdict = None
            else:
                verdict = "best" if rank == 1 else self._difference(name, order[0], by)["verdict"]
            rows.append(
                {
                    "rank": rank,
                    "model": name,
                    "value": e.value,
                    "low": e.low,
                    "high": e.high,
                    "from_best": verdict,
                }
            )
        return pd.DataFrame(rows)

    def pareto(self, fairness: str = "f_mean") -> pd.DataFrame:
        """Which models no other one beats on both accuracy and a fairness indicator.

        Returns
        -------
        DataFrame
            model, accuracy, the fairness indicator, on_front, dominated_by (names; a model
            dominates that is at least as good on both and better on one). Undefined: not on the
            front
        """
        _metric(fairness)
        points = {
            name: (ev.indicators.accuracy, getattr(ev.indicators, fairness))
            for name, ev in self.models.items()
        }
        costs = {
            name: (-accuracy, _distance(fairness, value))
            for name, (accuracy, value) in points.items()
        }
        rows = []
        for name, cost in costs.items():
            above = [
                other
                for other, its in costs.items()
                if its != cost and its[0] <= cost[0] and its[1] <= cost[1]
            ]
            defined = not isnan(cost[0]) and not isnan(cost[1])
            rows.append(
                {
                    "model": name,
                    "accuracy": points[name][0],
                    fairness: points[name][1],
                    "on_front": defined and not above,
                    "dominated_by": tuple(above),
                }
            )
        return pd.DataFrame(rows)

    @property
    def majority_accuracy(self) -> float:
        """Accuracy of always deciding for the more frequent label, the highest of the models'."""
        return max(ev.majority_accuracy for ev in self.models.values())

    def tradeoff(self, fairness: str = "f_mean") -> pd.DataFrame:
        """Accuracy and a fairness indicator with their intervals, one row a model.

        Returns
        -------
        DataFrame
            model, x, x_low, x_high (the fairness indicator), y, y_low, y_high (accuracy),
            on_front, unstable (whether x is)
        """
        rows = []
        for model, on_front in self.pareto(fairness)[["model", "on_front"]].itertuples(index=False):
            known = self.uncertainties[model]
            ends = {
                f"{axis}{end}": getattr(known[key], name)
                for axis, key in (("x", fairness), ("y", "accuracy"))
                for end, name in (("", "value"), ("_low", "low"), ("_high", "high"))
            }
            rows.append(
                {"model": model, **ends, "on_front": on_front, "unstable": known[fairness].unstable}
            )
        return pd.DataFrame(rows)

    def fold(self, algorithms: Mapping[str, str]) -> pd.DataFrame:
        """Fold the seeds of each algorithm into mean and range.

        Parameters
        ----------
        algorithms : model name to algorithm; models that are not named stand for themselves

        Returns
        -------
        DataFrame
            algorithm, indicator, mean, smallest, largest (over the seeds where it is defined),
            seeds, undefined (seeds without a value)
        """
        rows = []
        names: dict[str, list[str]] = {}
        for model in self.models:
            names.setdefault(algorithms.get(model, model), []).append(model)
        for algorithm, members in names.items():
            for key in METRICS:
                values = [getattr(self.models[m].indicators, key) for m in members]
                defined = [v for v in values if not isnan(v)]
                rows.append(
                    {
                        "algorithm": algorithm,
                        "indicator": key,
                        "mean": float(np.mean(defined)) if defined else nan,
                        "smallest": min(defined, default=nan),
                        "largest": max(defined, default=nan),
                        "seeds": len(values),
                        "undefined": len(values) - len(defined),
                    }
                )
        return pd.DataFrame(rows)

    def _known(self, name: str) -> None:
        if name not in self.models:
            known = ", ".join(map(repr, self.models))
            raise PredictionsError(f"No model {name!r} is compared. There are: {known}.")


def _metric(key: str) -> Any:
    if key not in METRICS:
        raise PredictionsError(f"No indicator {key!r}. There are: {', '.join(METRICS)}.")
    return METRICS[key]


def _distance(key: str, value: float) -> float:
    """How bad a value is: smaller is better, nan stays nan."""
    better = METRICS[key].better
    if better == "higher":
        return -value
    if better == "lower" or isnan(value):
        return value
    return abs(log(value)) if value > 0 else float("inf")


def _badness(key: str, replicates: FloatArray, value: float, *, signed: bool) -> FloatArray:
    """`_distance` of replicates; ``signed`` keeps a ratio on the observed side of 1."""
    better = METRICS[key].better
    if better != "one":
        return -replicates if better == "higher" else replicates
    with np.errstate(divide="ignore"):
        distance = np.log(replicates)
    return np.asarray((1 if value >= 1 else -1) * distance if signed else np.abs(distance))


def _hull(samples: Sequence[FloatArray], observed: float, confidence: float) -> Interval:
    """Smallest interval that holds those of all kinds of replicates, and the second reflected.

    Plain replicates, the second kind, grow where a model is fair; the observed value has grown as
    well, by about as much.
    """
    signed, plain, *cases = (percentile(x, confidence) for x in samples)
    if np.array_equal(samples[0], samples[1], equal_nan=True):
        return signed  # has a sign of its own, as accuracy has
    ends = [end for found in (signed, plain, *cases) for end in (found.low, found.high)]
    ends += [2 * observed - plain.low, 2 * observed - plain.high]
    missing = max(signed.undefined, plain.undefined)
    return Interval(float(np.min(ends)), float(np.max(ends)), missing)


def compare(
    models: Mapping[str, Evaluation],
    *,
    baseline: str | None = None,
    n_boot: int = 500,
    n_perm: int = 500,
    confidence: float = 0.95,
    random_state: int = 0,
    match_rows: bool = True,
) -> Comparison:
    """Compare models: which one is better, and is the difference real.

    Parameters
    ----------
    models : name to Evaluation, one or more; same residual and base rates
    baseline : the model to compare with; the first by default
    n_boot, n_perm, confidence, random_state : as in `Evaluation.uncertainty`; ``n_boot=0`` gives
        the values at once, without interval, null or verdict
    match_rows : look for the same rows, by their row id, or by position where there are none and
        the tables have the same length. False compares unpaired

    Returns
    -------
    Comparison
        models on the same rows get the same resamples, so that differences are *paired*; else they
        are resampled apart and labelled so

    Raises
    ------
    PredictionsError
        no models, settings that cannot be compared, or different labels for the same row

    Notes
    -----
    Rows that only some models have are left out of a paired comparison, and counted in its pairing.
    """
    if not models:
        raise PredictionsError("There is nothing to compare. Wanted: one evaluation or more.")
    _check_settings(models)
    found, pairing = _pair(dict(models), match_rows)
    made: dict[str, Evaluation] = {}
    drawn: dict[str, Uncertainty] = {}
    replicates: dict[str, dict[str, tuple[FloatArray, FloatArray]]] = {}
    for i, (name, ev) in enumerate(found.items()):
        # The same seed gives the same resamples; models on other rows get their own.
        seed = random_state if pairing.paired else random_state + i
        made[name] = ev
        # At equal base rates that are undefined there are no rows to draw.
        if not n_boot or isnan(ev.indicators.accuracy):
            drawn[name] = not_resampled(ev, _NOT_RESAMPLED, confidence, seed)
            continue
        rules = estimate(ev, n_boot, n_perm, confidence, seed)
        drawn[name] = summarise(rules, n_boot, n_perm, seed)
        replicates[name] = {key: (rules.along(key), rules.plain(key)) for key in METRICS}
    comparison = Comparison(
        models=made,
        uncertainties=drawn,
        baseline=next(iter(models)) if baseline is None else baseline,
        pairing=pairing,
        confidence=confidence,
        n_boot=n_boot,
        n_perm=n_perm if n_boot else 0,
        random_state=random_state,
        replicates=replicates,
    )
    comparison._known(comparison.baseline)
    return comparison


def _check_settings(models: Mapping[str, Evaluation]) -> None:
    for what in ("residual", "base_rates"):
        values = {name: getattr(ev, what) for name, ev in models.items()}
        if len(set(values.values())) > 1:
            came = ", ".join(f"{name} {value!r}" for name, value in values.items())
            raise PredictionsError(
                f"Models must have the same {what}; came: {came}. Evaluate them alike first."
            )
    positive = {ev.predictions.pos_label for ev in models.values()}
    if len(positive) > 1:
        came = ", ".join(f"{name} {ev.predictions.pos_label!r}" for name, ev in models.items())
        raise PredictionsError(
            f"Models must have the same positive class; came: {came}. Name it: pos_label=…"
        )


def _pair(models: dict[str, Evaluation], match_rows: bool) -> tuple[dict[str, Evaluation], Pairing]:
    """Put models on the same rows, or say why that cannot be."""
    first = next(iter(models.values()))
    if len(models) == 1:
        return models, Pairing(True, "one model", first.n)
    if not match_rows:
        return models, _unpaired(models, "as asked for")
    features = sorted({ev.feature for ev in models.values()})
    if len(features) > 1:
        return models, _unpaired(models, f"the groups differ ({', '.join(features)})")
    names = {name: _row_names(ev.predictions) for name, ev in models.items()}
    by_id = all(ev.predictions.row_id is not None for ev in models.values())
    repeated = [name for name, index in names.items() if not index.is_unique]
    if by_id and repeated:
        if not all(index.equals(names[repeated[0]]) for index in names.values()):
            return models, _unpaired(models, f"row ids occur twice in {', '.join(repeated)}")
        by_id = False  # the same names in the same order everywhere, as of patients: go by position
    if not by_id:
        lengths = {ev.predictions.n_rows for ev in models.values()}
        if len(lengths) > 1:
            shown = ", ".join(f"{n:,}" for n in sorted(lengths))
            return models, _unpaired(models, f"no row ids, and tables of {shown} rows")
        names = {name: pd.Index(ev.predictions.row_positions) for name, ev in models.items()}

    rows = _common(list(names.values()))
    if rows[0].size == 0:
        return models, _unpaired(models, "no row is in all models")
    _check_labels(models, rows, next(iter(names.values())))
    reference = _Frame.of(first, rows[0])
    placed = {}
    for (name, ev), mine in zip(models.items(), rows, strict=True):
        put = reference.put(ev, mine)
        if put is None:
            return models, _unpaired(models, f"the same row has another group in {name}")
        placed[name] = put
    n = int(rows[0].size)
    largest = max(ev.n for ev in models.values())
    how = "by row id" if by_id else "by position"
    share = f"the same {n:,} rows" if n == largest else f"{n:,} of up to {largest:,} rows"
    return placed, Pairing(True, f"paired: {share}, matched {how}", n)


def _unpaired(models: Mapping[str, Evaluation], why: str) -> Pairing:
    sizes = {ev.n for ev in models.values()}
    return Pairing(False, f"unpaired: {why}", sizes.pop() if len(sizes) == 1 else None)


def _row_names(predictions: Predictions) -> pd.Index[Any]:
    named = predictions.row_id
    index: pd.Index[Any] = pd.Index(predictions.row_positions if named is None else named)
    return index


def _common(names: Sequence[pd.Index[Any]]) -> list[IntArray]:
    """Rows that are in all models, in the order of the first: places in each, (n,) arrays."""
    first = names[0]
    places = [
        first.get_indexer(first) if i == 0 else other.get_indexer(first)
        for i, other in enumerate(names)
    ]
    everywhere = np.all([place >= 0 for place in places], axis=0)
    return [np.asarray(place[everywhere], dtype=np.intp) for place in places]


def _check_labels(
    models: Mapping[str, Evaluation], rows: Sequence[IntArray], names: pd.Index[Any]
) -> None:
    labels = [ev.predictions.y_true[mine] for ev, mine in zip(models.values(), rows, strict=True)]
    first = next(iter(models))
    for name, mine in zip(models, labels, strict=True):
        wrong = np.flatnonzero(mine != labels[0])
        if wrong.size:
            shown = ", ".join(str(names[rows[0][i]]) for i in wrong[:_NAMED_ROWS])
            more = ", …" if wrong.size > _NAMED_ROWS else ""
            raise PredictionsError(
                f"{wrong.size:,} rows have another label in {name!r} than in {first!r}: rows "
                f"{shown}{more}. The same row has one label; correct the tables, or compare "
                "without matching rows (match_rows=False)."
            )


@dataclass(frozen=True, eq=False)
class _Frame:
    """What is resampled: the groups, clusters and environments of the common rows."""

    groups: Factor
    cluster: Factor | None
    environment: Factor | None

    @classmethod
    def of(cls, ev: Evaluation, rows: IntArray) -> _Frame:
        p = ev.predictions
        return cls(
            ev.factor.take(rows),
            None if p.cluster is None else p.cluster.take(rows),
            None if p.environment is None else p.environment.take(rows),
        )

    def put(self, ev: Evaluation, rows: IntArray) -> Evaluation | None:
        """Put a model on the common rows; None where its groups are others."""
        texts = np.array(ev.factor.labels, dtype=object)[ev.factor.codes[rows]]
        wanted = np.array(self.groups.labels, dtype=object)[self.groups.codes]
        if not np.array_equal(texts, wanted):
            return None
        p = ev.predictions
        whole = rows.size == ev.n and np.array_equal(rows, np.arange(ev.n))
        same = ev.factor.labels == self.groups.labels and self._same_context(p, rows)
        if whole and same:
            return ev
        moved = replace(
            p,
            y_true=p.y_true[rows],
            y_prob=p.y_prob[rows],
            features={self.groups.name: self.groups},
            environment=self.environment,
            cluster=self.cluster,
            sample_weight=None if p.sample_weight is None else p.sample_weight[rows],
            rows=p.row_positions[rows],
            row_id=None if p.row_id is None else p.row_id.iloc[rows].reset_index(drop=True),
            left_out={**p.left_out, "not in all models": p.n - int(rows.size)},
        )
        named = ev.sensitive if ev.sensitive_chosen == "named" else None
        return evaluate_predictions(
            moved, feature=self.groups.name, sensitive=named, settings=ev.settings
        )

    def _same_context(self, p: Predictions, rows: IntArray) -> bool:
        pairs = ((self.cluster, p.cluster), (self.environment, p.environment))
        return all(
            (a is None) == (b is None)
            and (a is None or b is None or np.array_equal(a.codes, b.codes[rows]))
            for a, b in pairs
        )
