"""From a training script: log predictions in the recommended form, with one line."""

from __future__ import annotations

import dataclasses
import json
import math
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rise_core.columns import Roles, guess_pos_label, label_text, missing_column
from rise_core.exceptions import PredictionsError, RiseError, TrackingError
from rise_core.tracking.address import clean_text, parse_address, redact
from rise_core.tracking.cache import file_digest
from rise_core.tracking.entities import TABLE_TAG, TableRef
from rise_core.tracking.formats import ROLES_KEY
from rise_core.tracking.preflight import check_schema

__all__ = ["METRIC_PREFIX", "log_predictions", "positive_scores"]

METRIC_PREFIX = "rise."
_FOLDER = "rise"
_TABLE = "predictions.parquet"
_ROLES = "roles.json"


def log_predictions(
    y_true: Any,
    y_prob: Any,
    *,
    sensitive_features: Any,
    environment: Any = None,
    sample_weight: Any = None,
    pos_label: Any = None,
    row_id: Any = None,
    bins: Mapping[str, Sequence[float]] | None = None,
    run_id: str | None = None,
    tracking_uri: str | None = None,
    metrics: bool = True,
) -> TableRef:
    """Log predictions, their column roles and the indicators to an MLflow run.

    Writes ``rise/predictions.parquet`` and ``rise/roles.json``, and the indicators as metrics
    ``rise.f_mean``, ``rise.w1``, … (undefined ones are left out).

    Parameters
    ----------
    y_true : labels of two kinds, numbers or texts, shape (n,)
    y_prob : score of the positive class, shape (n,), or what ``predict_proba`` gives, shape (n, 2)
    sensitive_features : one column, or several as a frame or a mapping of names to columns
    environment, sample_weight, row_id : further columns, shape (n,)
    pos_label : the label that `y_prob` is the score of; needed for texts such as "coat" and "top"
    bins : sensitive column to the edges that cut its numbers into bands, such as
        ``{"age": (30, 45, 60)}``; the numbers are logged, and the edges beside them
    run_id : run to log to; the active run by default
    tracking_uri : store of that run; MLflow's current one by default
    metrics : whether to log the indicators

    Returns
    -------
    TableRef of the logged table.

    Raises
    ------
    PredictionsError
        when columns differ in length or `y_prob` is not a column of scores.
    ColumnError
        when `bins` names a column that is no sensitive feature, or edges that do not rise.
    TrackingError
        when there is no run, or the store refuses.

    Notes
    -----
    Predictions that cannot be evaluated are logged all the same, with a warning that says why:
    a training run of hours must not be lost to its last line.

    Examples
    --------
    >>> with mlflow.start_run():                                        # doctest: +SKIP
    ...     log_predictions(y_test, model.predict_proba(X_test)[:, 1],
    ...                     sensitive_features=X_test["sex"])
    """
    frame, roles = _table(
        y_true, y_prob, sensitive_features, environment, sample_weight, pos_label, row_id
    )
    if bins:
        unknown = [name for name in bins if name not in roles.sensitive_features]
        if unknown:
            raise missing_column(unknown[0], roles.sensitive_features)
        roles = replace(roles, bins={name: tuple(edges) for name, edges in bins.items()})
    client, run_id, where = _target(run_id, tracking_uri)
    values = _indicators(frame, roles, pos_label) if metrics else {}
    with tempfile.TemporaryDirectory(prefix="rise-") as folder:
        file = Path(folder) / _TABLE
        _write(frame, roles, file)
        (Path(folder) / _ROLES).write_text(
            json.dumps(roles.to_dict(), indent=1, ensure_ascii=False), encoding="utf-8"
        )
        ref = TableRef(f"{_FOLDER}/{_TABLE}", file.stat().st_size, file_digest(file))
        try:
            client.log_artifacts(run_id, folder, _FOLDER)
            _log_facts(client, run_id, ref, values)
        except Exception as error:
            raise TrackingError(
                f"The predictions could not be logged to run {clean_text(run_id, 40)} at {where}: "
                f"{clean_text(error, 200)}"
            ) from error
    return ref


def _target(run_id: str | None, tracking_uri: str | None) -> tuple[Any, str, str]:
    """Client, run and shown address; the script's own MLflow settings stay as they are."""
    import mlflow

    if run_id is None:
        active = mlflow.active_run()
        if active is None:
            raise TrackingError(
                "There is no active run. Call log_predictions inside `with mlflow.start_run():`, "
                "or give run_id=."
            )
        run_id = str(active.info.run_id)
    uri = tracking_uri or mlflow.get_tracking_uri()
    if uri.startswith("sqlite"):
        address = parse_address(uri)
        if address.path is not None:
            # MLflow would make a new database there, or migrate an old one, and find no run in it
            check_schema(address, address.path)
    return mlflow.MlflowClient(tracking_uri=uri), run_id, redact(uri)


def _log_facts(client: Any, run_id: str, ref: TableRef, values: Mapping[str, float]) -> None:
    import time

    from mlflow.entities import Metric, RunTag

    now = int(time.time() * 1000)
    tag = json.dumps({"path": ref.path, "size": ref.size, "digest": ref.digest})
    client.log_batch(
        run_id,
        metrics=[Metric(METRIC_PREFIX + name, value, now, 0) for name, value in values.items()],
        tags=[RunTag(TABLE_TAG, tag)],
    )


def _indicators(frame: pd.DataFrame, roles: Roles, pos_label: Any) -> dict[str, float]:
    """The indicators that are defined, by name; a warning where none can be computed."""
    from rise_core.evaluation import evaluate

    try:
        evaluation = evaluate(
            frame["y_true"],
            frame["y_prob"],
            sensitive_features=frame[list(roles.sensitive_features)],
            environment=None if roles.environment is None else frame[roles.environment],
            sample_weight=None if roles.sample_weight is None else frame[roles.sample_weight],
            pos_label=pos_label if pos_label is not None else _same_type(frame["y_true"], roles),
            bins=roles.bins,
        )
    except RiseError as error:
        warnings.warn(f"No indicators were logged. {error}", stacklevel=3)
        return {}
    found = dataclasses.asdict(evaluation.indicators)
    return {name: float(value) for name, value in found.items() if not math.isnan(value)}


def _same_type(labels: pd.Series, roles: Roles) -> Any:
    """The positive label as it stands in the column."""
    return next((label for label in labels.dropna().unique()
                 if label_text(label) == roles.pos_label), None)  # fmt: skip


# ------------------------------------------------------------------------------- the table


def _table(
    y_true: Any, y_prob: Any, sensitive_features: Any, environment: Any, sample_weight: Any,
    pos_label: Any, row_id: Any,
) -> tuple[pd.DataFrame, Roles]:  # fmt: skip
    labels = _column(y_true, "y_true")
    if not len(labels):
        raise PredictionsError("There are no rows: y_true is empty.")
    columns: dict[str, pd.Series] = {}
    if row_id is not None:
        columns["row_id"] = _column(row_id, "row_id")
    columns["y_true"] = labels
    columns["y_prob"] = positive_scores(y_prob, labels, pos_label)
    groups = _groups(sensitive_features)
    for name, column in groups.items():
        if name in ("y_true", "y_prob", "row_id", "environment", "sample_weight"):
            raise PredictionsError(
                f"A sensitive feature is named {name!r}, which is the name of another column of "
                "the table. Rename it."
            )
        columns[name] = column
    if environment is not None:
        columns["environment"] = _column(environment, "environment")
    if sample_weight is not None:
        columns["sample_weight"] = _column(sample_weight, "sample_weight")
    for name, column in columns.items():
        if len(column) != len(labels):
            raise PredictionsError(
                f"{name} has {len(column):,} rows, y_true has {len(labels):,}; "
                "all columns need the same rows in the same order."
            )
    positive, reason = guess_pos_label(labels.dropna().unique())
    if pos_label is not None:
        positive, reason = label_text(pos_label), "given when the predictions were logged"
        known = {label_text(label) for label in labels.dropna().unique()}
        if positive not in known:
            raise PredictionsError(
                f"pos_label is {positive!r}, but y_true holds {', '.join(sorted(known)[:6])}."
            )
    roles = Roles(
        y_true="y_true",
        y_prob="y_prob",
        sensitive_features=tuple(groups),
        environment="environment" if environment is not None else None,
        sample_weight="sample_weight" if sample_weight is not None else None,
        row_id="row_id" if row_id is not None else None,
        pos_label=positive,
        reasons={"y_true": "logged as such", "y_prob": "logged as such", "pos_label": reason},
        confidence={"y_true": "high", "y_prob": "high",
                    "pos_label": "low" if positive is None else "high"},
    )  # fmt: skip
    return pd.DataFrame(columns), roles


def _column(values: Any, name: str) -> pd.Series:
    """One column out of a list, array, series (pandas, polars) or Arrow column."""
    if hasattr(values, "to_pandas"):
        values = values.to_pandas()
    if isinstance(values, pd.Series):
        return values.reset_index(drop=True)
    if isinstance(values, pd.DataFrame):
        values = values.to_numpy()
    array = values if isinstance(values, np.ndarray) else None
    if array is not None and array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array is not None and array.ndim != 1:
        raise PredictionsError(f"{name} must be one column; its shape is {array.shape}.")
    return pd.Series(array if array is not None else list(values))


def positive_scores(y_prob: Any, labels: pd.Series, pos_label: Any = None) -> pd.Series:
    """Score of the positive class, out of one column or the two of ``predict_proba``.

    Raises
    ------
    PredictionsError
        when it is not clear which column is the positive class's, or they are no numbers.
    """
    values = y_prob.to_numpy() if isinstance(y_prob, pd.DataFrame) else y_prob
    if isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] == 2:
        # predict_proba orders its columns by the sorted labels
        order = sorted(labels.dropna().unique().tolist())
        wanted = pos_label if pos_label is not None else guess_pos_label(order)[0]
        texts = [label_text(label) for label in order]
        if len(texts) != 2 or wanted is None or label_text(wanted) not in texts:
            raise PredictionsError(
                "y_prob has 2 columns, and it is not clear which is the score of the positive "
                f"class (labels {', '.join(texts[:4])}). Give pos_label, or one column of scores."
            )
        values = values[:, texts.index(label_text(wanted))]
    column = _column(values, "y_prob")
    if pd.api.types.infer_dtype(column, skipna=True) == "decimal":
        column = column.astype("float64")
    if not pd.api.types.is_numeric_dtype(column.dtype):
        raise PredictionsError(
            f"y_prob must be numbers, the scores of the positive class; it holds {column.dtype}."
        )
    return column


def _groups(features: Any) -> dict[str, pd.Series]:
    if hasattr(features, "to_pandas"):
        features = features.to_pandas()
    if isinstance(features, pd.DataFrame):
        if twice := [str(name) for name in features.columns[features.columns.duplicated()]]:
            raise PredictionsError(
                f"Two sensitive features are named {clean_text(twice[0], 60)!r}. Rename one."
            )
        found = {str(name): features[name].reset_index(drop=True) for name in features.columns}
    elif isinstance(features, Mapping):
        found = {str(name): _column(column, str(name)) for name, column in features.items()}
    elif isinstance(features, np.ndarray) and features.ndim == 2:
        found = {f"sensitive_feature_{place}": pd.Series(features[:, place])
                 for place in range(features.shape[1])}  # fmt: skip
    else:
        name = getattr(features, "name", None)
        name = "sensitive_feature" if name is None else str(name)
        found = {name: _column(features, name)}
    if not found:
        raise PredictionsError(
            "sensitive_features is empty. Give at least one column that splits the rows."
        )
    return found


def _write(frame: pd.DataFrame, roles: Roles, file: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        try:
            table = pa.Table.from_pandas(frame, preserve_index=False)
        except pa.ArrowException:
            table = pa.Table.from_pandas(_of_one_kind(frame), preserve_index=False)
    except pa.ArrowException as error:
        raise PredictionsError(
            f"A column mixes kinds of values that a table cannot hold: {clean_text(error, 160)}"
        ) from error
    # the roles travel inside the file, so that a reader needs no second request
    metadata = dict(table.schema.metadata or {})
    metadata[ROLES_KEY] = json.dumps(roles.to_dict()).encode()
    pq.write_table(table.replace_schema_metadata(metadata), file, compression="zstd")


def _of_one_kind(frame: pd.DataFrame) -> pd.DataFrame:
    """Labels and groups that are numbers here and texts there, as the texts they are read as."""
    mixed = [
        name
        for name in frame.columns
        if pd.api.types.infer_dtype(frame[name], skipna=True).startswith("mixed")
    ]
    return frame.assign(**{name: frame[name].map(label_text, na_action="ignore") for name in mixed})
