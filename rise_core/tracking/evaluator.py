"""An evaluator for ``mlflow.models.evaluate``: ``evaluators=["rise"]``.

It is found by MLflow through the entry point ``mlflow.model_evaluator``, and from then on offered
every evaluation on that machine; so it acts only where its own configuration asks for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

from rise_core.columns import guess_pos_label, label_text
from rise_core.evaluation import evaluate
from rise_core.exceptions import ColumnError, PredictionsError, RiseError
from rise_core.tracking.address import clean_text
from rise_core.tracking.training import METRIC_PREFIX, log_predictions, positive_scores

__all__ = ["RiseEvaluator"]

_ASKS = "sensitive_features"
_KNOWN = frozenset({_ASKS, "environment", "sample_weight", "row_id", "pos_label", "y_prob", "bins"})


class RiseEvaluator:
    """Log predictions in the recommended form, with the indicators, from an MLflow evaluation.

    Configuration, ``evaluator_config={"rise": {…}}``:

    sensitive_features : name of a column of the data, or a list of names; without it nothing is
        done
    y_prob : column of the score; else the predictions, or what the model's predict_proba gives
    pos_label : the positive label, where the labels do not tell
    environment, sample_weight, row_id : names of further columns
    bins : sensitive column to the edges that cut its numbers into bands

    Notes
    -----
    No base class: importing this must not import MLflow, which asks for the methods only.

    Examples
    --------
    >>> mlflow.models.evaluate(                                         # doctest: +SKIP
    ...     data=frame, targets="label", predictions="score", model_type="classifier",
    ...     evaluators=["rise"], evaluator_config={"rise": {"sensitive_features": "sex"}})
    """

    @classmethod
    def can_evaluate(
        cls, *, model_type: Any = None, evaluator_config: Any = None, **_: Any
    ) -> bool:
        """Whether this evaluation asks for RISE: a classifier, and sensitive columns are named."""
        asked = isinstance(evaluator_config, Mapping) and bool(evaluator_config.get(_ASKS))
        return asked and model_type in ("classifier", None)

    def evaluate(
        self,
        *,
        dataset: Any,
        run_id: str,
        evaluator_config: Mapping[str, Any],
        model: Any = None,
        **_: Any,
    ) -> Any:
        """Log table and indicators to the run.

        Parameters
        ----------
        dataset : MLflow's evaluation data set: features, labels, predictions if it has them
        run_id : run to log to
        evaluator_config : see the class
        model : pyfunc model, or None for predictions that are there already

        Returns
        -------
        mlflow.models.EvaluationResult with the metrics ``rise.w1``, …

        Raises
        ------
        RiseError
            a column that is not there, labels that are missing, scores that cannot be found.
        """
        import mlflow
        from mlflow.models import EvaluationResult

        columns = _columns(dataset, evaluator_config)
        labels = np.asarray(dataset.labels_data) if dataset.has_targets else None
        if labels is None:
            raise PredictionsError("The evaluation has no labels. Give mlflow targets=….")
        pos_label = evaluator_config.get("pos_label")
        y_prob = columns.pop("y_prob", None)
        if y_prob is None:
            y_prob = _scores(dataset, model, labels, pos_label)
        options = {**columns, "pos_label": pos_label, "bins": evaluator_config.get("bins")}
        log_predictions(
            labels, y_prob, run_id=run_id, tracking_uri=mlflow.get_tracking_uri(), **options
        )
        options.pop("row_id", None)
        return EvaluationResult(_metrics(labels, y_prob, options), {}, run_id)


def _columns(dataset: Any, config: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that the configuration names."""
    unknown = sorted(set(map(str, config)) - _KNOWN)
    if unknown:
        # a flat configuration is given to all evaluators: another's option is no fault
        warnings.warn(
            f"The evaluator 'rise' does not know {', '.join(unknown)}; it knows "
            f"{', '.join(sorted(_KNOWN))}.",
            stacklevel=3,
        )
    frame = _frame(dataset)
    named = config[_ASKS]
    names = [named] if isinstance(named, str) else list(named)
    found: dict[str, Any] = {_ASKS: pd.DataFrame({name: _column(frame, name) for name in names})}
    for role in ("environment", "sample_weight", "row_id", "y_prob"):
        if config.get(role) is not None:
            found[role] = _column(frame, config[role])
    return found


def _frame(dataset: Any) -> pd.DataFrame:
    data = dataset.features_data
    if isinstance(data, pd.DataFrame):
        return data.reset_index(drop=True)
    array = np.asarray(data)
    names: Sequence[Any] = dataset.feature_names or range(array.shape[1])
    return pd.DataFrame(array, columns=[str(name) for name in names])


def _column(frame: pd.DataFrame, name: Any) -> pd.Series:
    if name in frame.columns:
        return pd.Series(frame[name])
    known = ", ".join(map(str, frame.columns))
    raise ColumnError(
        f"The evaluated data have no column {clean_text(name, 60)!r}; they have "
        f"{clean_text(known, 200)}."
    )


def _scores(dataset: Any, model: Any, labels: np.ndarray, pos_label: Any) -> Any:
    """Scores out of the data set's predictions, or the model's."""
    found = dataset.predictions_data if dataset.has_predictions else None
    if found is None:
        found = _predicted(dataset, model)
    values = np.asarray(found)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim == 2:
        return positive_scores(values, pd.Series(labels), pos_label)
    if np.issubdtype(values.dtype, np.number) and not _are_labels(values, labels):
        return values
    positive = guess_pos_label(pd.unique(labels))[0] if pos_label is None else label_text(pos_label)
    if positive is None:
        raise PredictionsError(
            "The predictions are labels, and it is not clear which is the positive one. Give "
            "pos_label, or name the column of the scores as y_prob."
        )
    warnings.warn(
        "The predictions are labels, not scores; they are analysed as scores 0 and 1. Name the "
        "column of the scores as y_prob.",
        stacklevel=3,
    )
    return np.array([float(label_text(value) == positive) for value in values.ravel()])


def _are_labels(values: np.ndarray, labels: np.ndarray) -> bool:
    """Whether numbers are predicted labels: then each of them is a label too."""
    return bool(set(np.unique(values).tolist()) <= set(pd.unique(labels).tolist()))


def _predicted(dataset: Any, model: Any) -> Any:
    if model is None:
        raise PredictionsError(
            "There are no scores: neither a model nor predictions were given. Give mlflow "
            "predictions=…, or name the column of the scores as y_prob."
        )
    features = dataset.features_data
    schema = model.metadata.get_input_schema() if getattr(model, "metadata", None) else None
    if isinstance(features, pd.DataFrame) and schema is not None and schema.has_input_names():
        features = features[schema.input_names()]
    raw = None
    with suppress(AttributeError, NotImplementedError):  # flavours without a model of their own
        raw = model.get_raw_model()
    predict = getattr(raw, "predict_proba", None)
    return predict(features) if predict is not None else model.predict(features)


def _metrics(labels: Any, y_prob: Any, options: Mapping[str, Any]) -> dict[str, float]:
    try:
        found = evaluate(labels, y_prob, **options)
    except RiseError:
        return {}  # log_predictions has warned already
    return {METRIC_PREFIX + name: value for name, value in found.indicators if value == value}
