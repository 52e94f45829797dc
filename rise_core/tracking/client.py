"""The one place where MLflow is imported, and where its waiting times are set."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlflow import MlflowClient

__all__ = ["DEFAULTS", "open_client", "set_defaults"]

DEFAULTS = {
    # A dead server blocks 246 s with MLflow's own values.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    # Saves one request a file: the server is otherwise asked whether it can do multipart.
    "MLFLOW_ENABLE_PROXY_MULTIPART_DOWNLOAD": "false",
}
"""Environment variables of MLflow and what they are set to where nobody has set them."""


def set_defaults() -> None:
    """Set `DEFAULTS` in the environment, wherever a variable is not set already."""
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)


def open_client(uri: str) -> MlflowClient:
    """Return a client bound to `uri`; the process-wide tracking address stays as it is."""
    set_defaults()
    from mlflow import MlflowClient

    # The registry too: MLflow would take one from the environment, which may be another store.
    return MlflowClient(tracking_uri=uri, registry_uri=uri)
