"""The cache on disk: whole entries or none, several processes, bounded."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rise_core.tracking import TableCache, default_cache_dir
from rise_core.tracking.cache import file_digest


def put(cache: TableCache, key: str, content: bytes, **stamp: str) -> Path:
    with cache.workplace() as file:
        file.write_bytes(content)
        return cache.put(key, file, stamp).file


def test_folder_by_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("RISE_CACHE_DIR", raising=False)
    monkeypatch.setenv("RISE_HOME", str(tmp_path / "home"))
    assert default_cache_dir() == tmp_path / "home" / "cache"
    monkeypatch.setenv("RISE_CACHE_DIR", str(tmp_path / "mine"))
    assert default_cache_dir() == tmp_path / "mine"
    monkeypatch.delenv("RISE_HOME")
    monkeypatch.delenv("RISE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_cache_dir() == tmp_path / "xdg" / "rise"


def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    cache = TableCache(tmp_path)
    key = cache.key("http://host", "run", "p.csv")
    assert cache.get(key) is None
    put(cache, key, b"abc", status="FINISHED")
    entry = TableCache(tmp_path).get(key)
    assert entry is not None
    assert entry.file.read_bytes() == b"abc"
    assert (entry.size, dict(entry.stamp)) == (3, {"status": "FINISHED"})
    assert entry.digest == file_digest(entry.file)
    put(cache, key, b"other", status="x")
    entry = cache.get(key)
    assert entry is not None
    assert entry.file.read_bytes() == b"other"


def test_keys_do_not_run_together() -> None:
    assert TableCache.key("ab", "c") != TableCache.key("a", "bc")
    assert TableCache.key("a") != TableCache.key("a", "")


def test_damaged_or_removed_entries_are_absent(tmp_path: Path) -> None:
    cache = TableCache(tmp_path)
    file = put(cache, "k", b"abcdef")
    file.write_bytes(b"abc")
    assert cache.get("k") is None
    file.unlink()
    assert cache.get("k") is None
    (cache.folder / "k.json").write_text("{broken")
    assert cache.get("k") is None
    (cache.folder / "k.json").write_text('{"digest": 3}')
    assert cache.get("k") is None


def test_least_recently_used_go_first(tmp_path: Path) -> None:
    cache = TableCache(tmp_path)
    for place, name in enumerate("abcd"):
        file = put(cache, name, b"x" * 300)
        os.utime(file, (time.time() - 100 + place,) * 2)
    cache.get("a")  # used again, so b is now the oldest
    cache.max_bytes = 1000
    cache.evict()
    assert [name for name in "abcd" if cache.get(name)] == ["a", "c", "d"]


def test_the_bound_holds_by_itself(tmp_path: Path) -> None:
    cache = TableCache(tmp_path, max_bytes=10_000)
    for number in range(50):
        put(cache, str(number), b"x" * 1000)
    total = sum(file.stat().st_size for file in cache.folder.glob("*.data"))
    assert total <= 10_000
    assert cache.get("49") is not None


def test_left_over_downloads_are_swept(tmp_path: Path) -> None:
    cache = TableCache(tmp_path)
    old = cache.folder / ".get-old"
    old.write_bytes(b"half")
    os.utime(old, (time.time() - 86_400,) * 2)
    new = cache.folder / ".get-new"
    new.write_bytes(b"half")
    cache.evict()
    assert not old.exists()
    assert new.exists()


def test_a_folder_that_cannot_be_written_is_replaced(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file where the folder should be")
    cache = TableCache(blocked)
    put(cache, "k", b"abc")
    assert cache.get("k") is not None
    assert not cache.folder.is_relative_to(blocked)


def test_several_processes_at_once(tmp_path: Path, root: Path) -> None:
    """Four writers and readers of the same keys: never half a file, never an error."""
    code = """
import sys, random
from pathlib import Path
from rise_core.tracking.cache import TableCache
cache = TableCache(Path(sys.argv[1]), max_bytes=60_000)
random.seed(int(sys.argv[2]))
for step in range(60):
    key = f"k{random.randrange(6)}"
    with cache.workplace() as file:
        file.write_bytes(bytes([random.randrange(256)]) * random.randrange(1, 20_000))
        cache.put(key, file, {})
    entry = cache.get(f"k{random.randrange(6)}")
    if entry is not None:
        try:
            data = entry.file.read_bytes()
        except FileNotFoundError:
            continue
        assert len(data) == entry.size and len(set(data)) == 1, "half a file"
"""
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(seed)], cwd=root)
        for seed in range(3)
    ]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
