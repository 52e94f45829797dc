"""Results on disk: bounded, shared, and never in the way when their file is not usable."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rise_core.tracking.results import ResultCache


def test_what_is_put_is_found_by_another_that_opens_the_folder(tmp_path: Path) -> None:
    ResultCache(tmp_path).put("key", "text")
    ResultCache(tmp_path).put("key", "newer")
    assert ResultCache(tmp_path).get("key") == "newer"
    assert ResultCache(tmp_path).get("another") is None


def test_the_least_recently_used_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000_000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    results = ResultCache(tmp_path, max_items=2)
    for key in ("first", "second", "third"):
        results.put(key, key)
        now[0] += 1
    now[0] += 2 * 24 * 3600
    assert results.get("first") == "first"  # used again, long after
    results.evict()
    assert [results.get(key) for key in ("first", "second", "third")] == ["first", None, "third"]


def test_it_keeps_within_its_bound_by_itself(tmp_path: Path) -> None:
    results = ResultCache(tmp_path, max_items=10)
    for i in range(200):
        results.put(f"{i}", "text")
    with sqlite3.connect(results.file) as link:
        assert link.execute("SELECT count(*) FROM results").fetchone() == (10,)
    link.close()


def test_threads_write_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: ResultCache(tmp_path).put(f"{i}", f"text {i}"), range(64)))
    assert [ResultCache(tmp_path).get(f"{i}") for i in range(64)] == [
        f"text {i}" for i in range(64)
    ]


def test_a_damaged_file_is_replaced(tmp_path: Path) -> None:
    results = ResultCache(tmp_path)
    results.put("key", "text")
    results.file.write_bytes(b"no database" * 500)
    assert results.get("key") is None
    results.put("key", "again")
    assert results.get("key") == "again"


def test_a_folder_that_cannot_be_gives_nothing_and_takes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    results = ResultCache(tmp_path / "file")
    results.put("key", "text")
    assert results.get("key") is None
