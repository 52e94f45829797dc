"""The files of one run, wherever they are: on this disk, or behind a server or a bucket."""

from __future__ import annotations

import json
import os
import posixpath
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from rise_core.exceptions import ArtifactStoreError, UnreadableTableError
from rise_core.tracking.address import Address, clean_text, redact
from rise_core.tracking.formats import unsafe_reason

__all__ = ["LOCAL_VARIABLE", "FileEntry", "LocalFiles", "RemoteFiles", "RunFiles", "open_files",
           "read_json_object", "safe_path"]  # fmt: skip

LOCAL_VARIABLE = "RISE_ALLOW_LOCAL_ARTIFACTS"
"""Environment variable; "1" lets a server elsewhere name folders of this machine."""

_MAX_JSON_BYTES = 1 << 20


@dataclass(frozen=True)
class FileEntry:
    """A file or folder of a run: path inside the run, size in bytes when known."""

    path: str
    is_dir: bool
    size: int | None


class RunFiles(Protocol):
    """What is asked of a run's files."""

    def entries(self, folder: str = "") -> list[FileEntry]:
        """Files and folders directly in `folder`."""

    def size(self, path: str) -> int | None:
        """Size of a file as listed, None when the store does not say."""

    def local(self, path: str) -> Path | None:
        """The file itself when it lies on this disk."""

    def fetch(self, path: str, target: Path) -> None:
        """Copy a file to `target`."""

    def proxied(self, path: str) -> str | None:
        """Address of a file at a server that hands files on; None where there is none."""

    def put(self, source: Path, path: str) -> None:
        """Copy `source` into the run, as `path`."""


def safe_path(path: str) -> str:
    """Return a path of a run in plain form.

    Raises
    ------
    UnreadableTableError
        when it is absolute or leads out of the run.
    """
    reason = unsafe_reason(path)
    if reason is not None:
        raise UnreadableTableError(
            f"The file name {clean_text(path, 80)!r} is not safe: {reason}. "
            "It was not opened; log the table under a plain name."
        )
    return posixpath.normpath(path)


def open_files(artifact_uri: str, address: Address) -> RunFiles:
    """Files of the run whose artifacts are at `artifact_uri`.

    Raises
    ------
    ArtifactStoreError
        there is no address, or a server elsewhere names a folder of this machine: whoever can make
        a run there could have any table on this disk shown. `LOCAL_VARIABLE` allows it, for a
        folder that both have mounted.
    """
    if not artifact_uri:
        raise ArtifactStoreError("The run does not say where its files are (no artifact address).")
    parts = urlsplit(artifact_uri)
    if parts.scheme in ("", "file"):
        path = unquote(parts.path) if parts.scheme else artifact_uri
        allowed = os.environ.get(LOCAL_VARIABLE, "").strip().lower() in ("1", "true", "yes")
        if not address.on_this_machine and not allowed:
            raise ArtifactStoreError(
                f"{address.label} answers, but says that this run's files are in the folder "
                f"{clean_text(path, 160)}. A server elsewhere may not name folders of this "
                "machine. Start it with --serve-artifacts, so that it hands the files over; or, "
                f"if both have mounted that folder, set {LOCAL_VARIABLE}=1 here."
            )
        return LocalFiles(Path(path), address)
    return RemoteFiles(artifact_uri, address)


class LocalFiles:
    """Files under a folder of this machine; no link in it may lead out."""

    def __init__(self, root: Path, address: Address) -> None:
        self.root = root
        self._address = address

    def _resolve(self, path: str) -> Path:
        root = self.root.resolve()
        full = (root / path).resolve()
        if not full.is_relative_to(root):
            raise UnreadableTableError(
                f"{clean_text(path, 80)!r} leads out of the run's folder through a link. "
                "It was not opened."
            )
        return full

    def entries(self, folder: str = "") -> list[FileEntry]:
        """Files and folders directly in `folder`; a run without files has no folder at all."""
        full = self._resolve(folder)
        if not full.is_dir():
            if self._address.path is None and not self.root.is_dir():
                raise self._elsewhere()
            return []
        found = []
        for entry in sorted(full.iterdir()):
            inside = posixpath.join(folder, entry.name)
            if unsafe_reason(inside) is None and not entry.name.startswith("."):
                is_dir = entry.is_dir()
                found.append(FileEntry(inside, is_dir, None if is_dir else entry.stat().st_size))
        return found

    def size(self, path: str) -> int | None:
        """Size in bytes."""
        return self.local(path).stat().st_size

    def local(self, path: str) -> Path:
        """The file itself."""
        full = self._resolve(path)
        if full.is_file():
            return full
        if not self.root.is_dir():
            raise self._elsewhere()
        raise ArtifactStoreError(
            f"There is no file {clean_text(path, 80)!r} in {self.root}. It may have been deleted "
            "since it was listed: list the run again."
        )

    def fetch(self, path: str, target: Path) -> None:
        """Copy a file to `target`."""
        target.write_bytes(self.local(path).read_bytes())

    def proxied(self, path: str) -> str | None:
        """Nowhere."""
        return None

    def put(self, source: Path, path: str) -> None:
        """Copy `source` into the run's folder, which a run without files does not have yet."""
        target = self._resolve(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())

    def _elsewhere(self) -> ArtifactStoreError:
        if self._address.path is None:
            return ArtifactStoreError(
                f"{self._address.label} answers, but this run's files are in the folder "
                f"{self.root} of another machine. Start the server with --serve-artifacts, "
                "or mount that folder here."
            )
        return ArtifactStoreError(
            f"The run's folder {self.root} is not on this machine. It may have been moved or "
            "deleted: bring it back to that place."
        )


class RemoteFiles:
    """Files behind MLflow's artifact proxy or in a bucket."""

    def __init__(self, artifact_uri: str, address: Address) -> None:
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        self.artifact_uri = artifact_uri
        self._repository = get_artifact_repository(artifact_uri, tracking_uri=address.uri)
        self._listed: dict[str, list[FileEntry]] = {}

    def __repr__(self) -> str:
        return f"RemoteFiles({redact(self.artifact_uri)!r})"

    def entries(self, folder: str = "") -> list[FileEntry]:
        """Files and folders directly in `folder`, asked once."""
        if folder not in self._listed:
            infos = self._repository.list_artifacts(folder or None)
            self._listed[folder] = [
                FileEntry(info.path, bool(info.is_dir), info.file_size)
                for info in infos
                # names come from a foreign machine
                if unsafe_reason(info.path) is None and info.path != folder
            ]
        return self._listed[folder]

    def size(self, path: str) -> int | None:
        """Size as listed; an absent file is an error that says so."""
        for entry in self.entries(posixpath.dirname(path)):
            if entry.path == path and not entry.is_dir:
                return entry.size
        raise ArtifactStoreError(
            f"There is no file {clean_text(path, 80)!r} at {redact(self.artifact_uri)}. "
            "It may have been deleted since it was listed: list the run again."
        )

    def local(self, path: str) -> Path | None:
        """Never here."""
        return None

    def fetch(self, path: str, target: Path) -> None:
        """Download a file; one request, since its size is known from the listing."""
        # `download_artifacts` would list the folder once more for each file
        self._repository._download_file(path, str(target))

    def proxied(self, path: str) -> str | None:
        """Where MLflow's artifact proxy has a file; None for a bucket."""
        from mlflow.store.artifact.http_artifact_repo import HttpArtifactRepository

        if not isinstance(self._repository, HttpArtifactRepository):
            return None
        return f"{self._repository.artifact_uri}/{path}"

    def put(self, source: Path, path: str) -> None:
        """Upload `source`, whose name must be that of `path`."""
        self._repository.log_artifact(str(source), posixpath.dirname(path) or None)


def read_json_object(files: RunFiles, path: str) -> dict[str, Any] | None:
    """A small JSON object of a run, or None when it is damaged, large or something else."""
    with tempfile.TemporaryDirectory(prefix="rise-") as folder:
        target = Path(folder) / "small.json"
        files.fetch(path, target)
        if target.stat().st_size > _MAX_JSON_BYTES:
            return None
        try:
            value = json.loads(target.read_text(encoding="utf-8"))
        except ValueError:
            return None
    return value if isinstance(value, dict) else None
