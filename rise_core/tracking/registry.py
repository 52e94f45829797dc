"""From an entry of the model registry, or a reference in text, to the run behind it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from rise_core.exceptions import TrackingError
from rise_core.tracking.address import clean_text

__all__ = ["RunReference", "is_run_reference", "parse_reference", "run_id_of_model"]

_RUN_ID = re.compile(r"[0-9a-f]{32}")
_MODEL_URI = re.compile(
    r"models:/+(?:(?P<id>m-[0-9a-f]{32})|(?P<name>[^/@]+)(?:@(?P<alias>[^/]+)|/(?P<version>[^/]+)))"
)


@dataclass(frozen=True)
class RunReference:
    """What a text such as "runs:/…" or "models:/…" refers to.

    Parameters
    ----------
    run_id : of the run, "" for a model
    model_uri : "models:/…", "" for a run
    path : of a file of the run, or None
    """

    run_id: str = ""
    model_uri: str = ""
    path: str | None = None


def is_run_reference(text: str) -> bool:
    """Whether a text has the form of a run's id, "runs:/…" or "models:/…"."""
    return text.startswith(("runs:/", "models:/")) or _RUN_ID.fullmatch(text) is not None


def parse_reference(text: str) -> RunReference:
    """Read a run's id, "runs:/id", "runs:/id/path/of/a/table" or "models:/…".

    Raises
    ------
    TrackingError
        when it is none of these.
    """
    text = text.strip()
    if text.startswith("models:/"):
        return RunReference(model_uri=text)
    run_id, _, path = text.removeprefix("runs:").lstrip("/").partition("/")
    if not text or (path and not text.startswith("runs:/")):
        raise TrackingError(
            f"{clean_text(text, 80)!r} names no run. Give a run's id, runs:/id, runs:/id/path "
            "or models:/name@alias."
        )
    return RunReference(run_id=run_id, path=path or None)


def run_id_of_model(client: Any, uri: str) -> str:
    """Id of the run that made a model.

    Parameters
    ----------
    client : of the store that holds the registry
    uri : "models:/name@alias", "models:/name/3", "models:/name/latest" or "models:/m-…"

    Raises
    ------
    TrackingError
        another form, no such version, or a model that no run made.
    """
    found = _MODEL_URI.fullmatch(uri.strip())
    if found is None:
        raise TrackingError(
            f"{clean_text(uri, 80)!r} names no model. It looks like models:/name@alias, "
            "models:/name/3 or models:/name/latest."
        )
    if found["id"]:
        model_id, run_id = found["id"], None
    else:
        version = _version(client, found["name"], found["alias"], found["version"])
        model_id, run_id = getattr(version, "model_id", None), version.run_id
    if not run_id and model_id:
        run_id = client.get_logged_model(model_id).source_run_id
    if not run_id:
        raise TrackingError(
            f"{clean_text(uri, 80)} was not made by a run, so it has no predictions. Give the run "
            "whose predictions belong to it."
        )
    return str(run_id)


def _version(client: Any, name: str, alias: str | None, version: str | None) -> Any:
    if alias is not None:
        return client.get_model_version_by_alias(name, alias)
    if version is not None and version.isdigit():
        return client.get_model_version(name, version)
    if version is not None and version.lower() == "latest":
        quoted = f"'{name}'" if "'" not in name else f'"{name}"'
        found = list(client.search_model_versions(f"name={quoted}"))
        if found:
            return max(found, key=lambda entry: int(entry.version))
        raise TrackingError(f"There is no version of a model {clean_text(name, 60)!r}.")
    raise TrackingError(
        f"{clean_text(str(version), 40)!r} is no version of {clean_text(name, 60)!r}. Give a "
        "number, 'latest' or @alias; MLflow has given up stages such as Production."
    )
