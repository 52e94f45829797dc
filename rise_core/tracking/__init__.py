"""MLflow as a source of predictions: stores, runs, prediction tables, a cache, and logging.

MLflow itself is imported only when a store is opened or predictions are logged.
"""

from __future__ import annotations

from rise_core.tracking.cache import TableCache, default_cache_dir
from rise_core.tracking.entities import Experiment, Run, RunPage, Table, TableRef
from rise_core.tracking.formats import read_table
from rise_core.tracking.listing import Listing
from rise_core.tracking.search import Order, Search
from rise_core.tracking.store import Store, connect, where
from rise_core.tracking.training import log_predictions

__all__ = [
    "Experiment",
    "Listing",
    "Order",
    "Run",
    "RunPage",
    "Search",
    "Store",
    "Table",
    "TableCache",
    "TableRef",
    "connect",
    "default_cache_dir",
    "log_predictions",
    "read_table",
    "where",
]
