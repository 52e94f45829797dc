"""Fetched tables kept on disk: safe for several processes, bounded, oldest out first.

An entry is a small JSON beside a data file named after its content. Data files are written once
and replaced never, so a reader in another process sees a whole file or none.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["CacheEntry", "TableCache", "default_cache_dir", "file_digest"]

_STALE_SECONDS = 6 * 3600


def default_cache_dir() -> Path:
    """Folder of the cache: RISE_CACHE_DIR, else RISE_HOME/cache, else the user's cache folder."""
    if folder := os.environ.get("RISE_CACHE_DIR"):
        return Path(folder).expanduser()
    if home := os.environ.get("RISE_HOME"):
        return Path(home).expanduser() / "cache"
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "rise"


def file_digest(path: Path) -> str:
    """Digest of a file's content (BLAKE2b, 128 bits, hex)."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@dataclass(frozen=True)
class CacheEntry:
    """A cached file: where, how large, its digest, and what its owner wrote beside it."""

    file: Path
    size: int
    digest: str
    stamp: Mapping[str, Any]


class TableCache:
    """Files by key, in one folder that several processes may share.

    Parameters
    ----------
    folder : made when first needed; a folder that cannot be written is replaced by a temporary one
    max_bytes : of all data files together; the least recently used go first
    """

    def __init__(self, folder: Path | str | None = None, max_bytes: int = 4 << 30) -> None:
        self._wanted = Path(folder) if folder is not None else default_cache_dir()
        self.max_bytes = max_bytes
        self._folder: Path | None = None
        self._lock = threading.Lock()
        self._unchecked = 0

    @property
    def folder(self) -> Path:
        """The folder in use."""
        with self._lock:
            if self._folder is None:
                self._folder = self._make(self._wanted)
            return self._folder

    @staticmethod
    def _make(wanted: Path) -> Path:
        folder = wanted / "tables-1"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=folder, prefix=".probe-"):
                pass
        except OSError:
            return Path(tempfile.mkdtemp(prefix="rise-cache-"))
        return folder

    @staticmethod
    def key(*parts: str) -> str:
        """Name for what `parts` name together."""
        digest = hashlib.blake2b(digest_size=16)
        for part in parts:
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "little") + data)
        return digest.hexdigest()

    def get(self, key: str) -> CacheEntry | None:
        """The entry, or None when there is none or another process has just removed it."""
        value = self.note(key)
        if value is None:
            return None
        try:
            file = self.folder / f"{key}-{value['digest']}.data"
            size = file.stat().st_size
            if size != value["size"]:
                return None
            os.utime(file)
            return CacheEntry(file, size, str(value["digest"]), value["stamp"])
        except (OSError, KeyError, TypeError):
            return None

    def put(self, key: str, source: Path, stamp: Mapping[str, Any]) -> CacheEntry:
        """Move the file `source` (from `workplace`) in under `key`."""
        digest = file_digest(source)
        size = source.stat().st_size
        file = self.folder / f"{key}-{digest}.data"
        source.replace(file)
        os.utime(file)
        self.write_note(key, {"digest": digest, "size": size, "stamp": dict(stamp)})
        self._bound(size, keep=file)
        return CacheEntry(file, size, digest, stamp)

    def note(self, key: str) -> dict[str, Any] | None:
        """The JSON object under `key`, or None."""
        try:
            value = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return value if isinstance(value, dict) else None

    def write_note(self, key: str, value: Mapping[str, Any]) -> None:
        """Write a small JSON object under `key`, whole or not at all."""
        handle, name = tempfile.mkstemp(dir=self.folder, prefix=".note-")
        with os.fdopen(handle, "wb") as file:
            file.write(json.dumps(value).encode())
        Path(name).replace(self.folder / f"{key}.json")

    @contextlib.contextmanager
    def workplace(self) -> Iterator[Path]:
        """A new file for one download, on the cache's own disk; gone afterwards."""
        handle, name = tempfile.mkstemp(dir=self.folder, prefix=".get-")
        os.close(handle)
        try:
            yield Path(name)
        finally:
            _remove(Path(name))

    def _bound(self, added: int, keep: Path) -> None:
        with self._lock:
            self._unchecked += added
            # looking at every file costs; do it each time a twentieth has been added
            if self._unchecked < self.max_bytes // 20:
                return
            self._unchecked = 0
        self.evict(keep)

    def evict(self, keep: Path | None = None) -> int:
        """Remove the least recently used files above `max_bytes`, and litter; bytes freed."""
        now = time.time()
        files: list[tuple[float, int, Path]] = []
        for entry in os.scandir(self.folder):
            try:
                facts = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            path = Path(entry.path)
            if entry.name.startswith("."):
                if now - facts.st_mtime > _STALE_SECONDS:
                    _remove(path)
            elif entry.name.endswith(".data"):
                files.append((facts.st_mtime, facts.st_size, path))
        excess = sum(size for _, size, _ in files) - self.max_bytes
        freed = 0
        for _, size, path in sorted(files):
            if freed >= excess:
                break
            if path != keep:
                _remove(path)
                _remove(path.with_name(path.name.split("-", 1)[0] + ".json"))
                freed += size
        return freed


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
