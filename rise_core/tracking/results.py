"""Small results kept on disk: one SQLite file, shared by threads and processes, bounded.

A cache may fail at any time without anybody noticing: a file that is damaged, locked or on a full
disk gives no result and takes none.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

__all__ = ["ResultCache"]

_log = logging.getLogger(__name__)

_FILE = "results-1.db"
_WAIT_SECONDS = 2.0
_DAY = 24 * 3600
_LOOK_EVERY = 200
_DAMAGED = ("malformed", "not a database", "disk image")
_SET_UP = """
PRAGMA journal_mode=WAL;
PRAGMA synchronous=OFF;
CREATE TABLE IF NOT EXISTS results (key TEXT PRIMARY KEY, text TEXT NOT NULL, used REAL NOT NULL);
"""


class ResultCache:
    """Texts by key.

    Parameters
    ----------
    folder : where its file lies; made when first needed
    max_items : more than these are dropped, the least recently used first
    """

    def __init__(self, folder: Path, max_items: int = 20_000) -> None:
        self.file = folder / _FILE
        self.max_items = max_items
        self._lock = threading.Lock()
        self._put = 0

    def get(self, key: str) -> str | None:
        """Return the text under a key; None where there is none, or none that can be read."""
        found = self._do("SELECT text, used FROM results WHERE key = ?", key)
        if not found:
            return None
        text, used = found[0]
        # To a day: a read that always writes would make readers wait for each other.
        if time.time() - used > _DAY:
            self._do("UPDATE results SET used = ? WHERE key = ?", time.time(), key)
        return str(text)

    def put(self, key: str, text: str) -> None:
        """Keep a text under a key, in place of an older one."""
        self._do("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", key, text, time.time())
        with self._lock:
            self._put += 1
            due = self._put % _LOOK_EVERY == 0
        if due:
            self.evict()

    def evict(self) -> None:
        """Drop what is above the bound."""
        self._do(
            "DELETE FROM results WHERE key IN "
            "(SELECT key FROM results ORDER BY used DESC LIMIT -1 OFFSET ?)",
            self.max_items,
        )

    def _do(self, statement: str, *values: Any) -> list[Any]:
        """Carry out a statement over a connection of its own; a failure gives no rows."""
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(sqlite3.connect(self.file, timeout=_WAIT_SECONDS)) as link:
                link.executescript(_SET_UP)
                with link:
                    return link.execute(statement, values).fetchall()
        except (OSError, sqlite3.Error) as error:
            _log.info("The kept results cannot be used: %s", error)
            if any(word in str(error) for word in _DAMAGED):
                self._begin_anew()
            return []

    def _begin_anew(self) -> None:
        for end in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                self.file.with_name(self.file.name + end).unlink()
