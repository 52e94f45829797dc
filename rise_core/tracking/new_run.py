"""Predictions that came as a file, logged as a run of their own."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rise_core.exceptions import RiseError, TrackingError
from rise_core.predictions import Factor, Predictions
from rise_core.tracking import client as mlflow_client
from rise_core.tracking.address import Address, clean_text, parse_address
from rise_core.tracking.preflight import check
from rise_core.tracking.training import log_predictions

__all__ = ["LoggedRun", "log_new_run"]


@dataclass(frozen=True)
class LoggedRun:
    """Where predictions were logged: ids of the run and of its experiment."""

    run_id: str
    experiment_id: str


def log_new_run(
    predictions: Predictions,
    *,
    tracking_uri: str,
    experiment: str,
    run_name: str,
    tags: Mapping[str, str] | None = None,
) -> LoggedRun:
    """Log predictions as a new run, making its experiment where there is none.

    This writes to the store: call it only when a person has said so.

    Parameters
    ----------
    predictions : the rows that are used; rows left out are not logged
    tracking_uri : "http(s)://…" or "sqlite:///…", of a store that exists
    experiment, run_name : their names
    tags : of the run, such as algorithm and dataset

    Raises
    ------
    TrackingError
        an empty name, a deleted experiment, or a store that does not answer or refuses.
    PredictionsError
        a group column has the name of another column of the table.
    """
    for what, name in (("experiment", experiment), ("run", run_name)):
        if not name.strip():
            raise TrackingError(f"The {what} has no name. Give it one.")
    address = parse_address(tracking_uri)
    check(address)
    client = mlflow_client.open_client(address.uri)
    try:
        experiment_id = _experiment(client, address, experiment.strip())
        made = client.create_run(experiment_id, run_name=run_name.strip(), tags=dict(tags or {}))
    except RiseError:
        raise
    except Exception as error:
        raise TrackingError(
            f"{address.label} did not take the run: {clean_text(error, 200)} Ask for permission "
            "to write, or go on without logging."
        ) from error
    run_id = str(made.info.run_id)
    ended = "FAILED"
    try:
        _log(predictions, run_id, address.uri)
        ended = "FINISHED"
    finally:
        client.set_terminated(run_id, ended)
    return LoggedRun(run_id, experiment_id)


def _experiment(client: Any, address: Address, name: str) -> str:
    found = client.get_experiment_by_name(name)
    if found is None:
        # By itself MLflow would put a database's files into the folder this process runs in.
        place = None
        if address.path is not None:
            place = (address.path.parent / "artifacts" / uuid.uuid4().hex).as_uri()
        return str(client.create_experiment(name, artifact_location=place))
    if found.lifecycle_stage == "deleted":
        raise TrackingError(
            f"An experiment {clean_text(name, 60)!r} has been deleted and keeps its name. "
            "Choose another name."
        )
    return str(found.experiment_id)


def _log(predictions: Predictions, run_id: str, uri: str) -> None:
    def texts(factor: Factor) -> Any:
        return np.array(factor.labels, dtype=object)[factor.codes]

    def groups(factor: Factor) -> Any:
        # ordered, so that "under 30" stays before "30–44"
        labels = pd.Index(factor.labels)
        return pd.Series(pd.Categorical.from_codes(factor.codes, labels, ordered=True))

    positive = predictions.y_true == 1
    log_predictions(
        np.where(positive, predictions.pos_label, predictions.neg_label),
        predictions.y_prob,
        sensitive_features={name: groups(f) for name, f in predictions.features.items()},
        environment=None if predictions.environment is None else texts(predictions.environment),
        sample_weight=predictions.sample_weight,
        pos_label=predictions.pos_label,
        run_id=run_id,
        tracking_uri=uri,
    )
