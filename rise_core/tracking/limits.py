"""Limits that a person may raise without touching code: environment variables."""

from __future__ import annotations

import os

from rise_core.exceptions import TrackingError

__all__ = ["TABLE_VARIABLE", "TIMEOUT_VARIABLE", "first_contact_seconds", "largest_table"]

TIMEOUT_VARIABLE = "RISE_TIMEOUT"
"""Environment variable: seconds for the first contact with a server."""
TABLE_VARIABLE = "RISE_MAX_TABLE_MB"
"""Environment variable: the largest table of a run that is fetched, in megabytes (2²⁰ bytes)."""


def first_contact_seconds() -> float:
    """Seconds for the first contact, 5 where `TIMEOUT_VARIABLE` says nothing else."""
    return _positive(TIMEOUT_VARIABLE, 5.0)


def largest_table() -> int:
    """Bytes of the largest table that is fetched, 512 MB where `TABLE_VARIABLE` says no other."""
    return int(_positive(TABLE_VARIABLE, 512.0) * 2**20)


def _positive(name: str, default: float) -> float:
    text = os.environ.get(name, "").strip()
    try:
        value = float(text) if text else default
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise TrackingError(f"{name} is {text!r}. Give a positive number, such as {default:g}.")
    return value
