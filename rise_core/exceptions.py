"""The errors of RISE: one small family, each message written for the person who reads it."""

from __future__ import annotations

__all__ = [
    "ArtifactStoreError",
    "AuthenticationError",
    "ColumnError",
    "FilterError",
    "NestedTablesError",
    "NotMlflowError",
    "PredictionsError",
    "RiseError",
    "ScaleError",
    "ServerUnreachableError",
    "TrackingError",
    "UnreadableTableError",
]


class RiseError(Exception):
    """Base of all errors of RISE.

    The text says what was wanted, what came, and how to mend it; it can be shown as it is.
    """


class PredictionsError(RiseError, ValueError):
    """The predictions cannot be evaluated: labels, scores or groups are not what they must be."""


class ColumnError(RiseError, LookupError):
    """A named column is absent, or no column can play a role that is needed."""


class ScaleError(ColumnError):
    """The scores are percent or logits, and nobody has agreed to convert them."""


class TrackingError(RiseError):
    """Something between this program and the MLflow store failed."""


class FilterError(TrackingError):
    """The store does not understand a filter, or an order, of runs."""


class ServerUnreachableError(TrackingError):
    """The tracking server does not answer, or not in time."""


class NotMlflowError(TrackingError):
    """Something answers at the address, and it is not an MLflow tracking server."""


class AuthenticationError(TrackingError):
    """The server wants other credentials, or refuses this host."""


class ArtifactStoreError(TrackingError):
    """Metadata can be read; the files of a run cannot."""


class UnreadableTableError(TrackingError):
    """A file of a run was fetched and holds no table of predictions that can be read."""


class NestedTablesError(UnreadableTableError):
    """A run holds no table of predictions itself; the runs nested in it may."""
