"""Archives are opened only when their hash is the pinned one."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from demo.train import archives
from demo.train.archives import Archive, ArchiveError, fetch, member, sha256


def pinned(path: Path) -> Archive:
    return Archive("pip", "thing", "1", path.name, sha256(path))


def test_an_archive_in_the_cache_is_taken_when_its_hash_is_right(tmp_path: Path) -> None:
    path = tmp_path / "thing.whl"
    path.write_bytes(b"content")
    assert fetch(pinned(path), tmp_path) == path


def test_another_content_under_the_same_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "thing.whl"
    path.write_bytes(b"content")
    archive = pinned(path)
    path.write_bytes(b"contend")
    with pytest.raises(ArchiveError, match=r"thing\.whl should have SHA-256"):
        fetch(archive, tmp_path)


def test_a_missing_client_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives.shutil, "which", lambda name: None)
    with pytest.raises(ArchiveError, match="fetched with npm, which is not installed"):
        fetch(Archive("npm", "thing", "1", "thing.tgz", "0" * 64), tmp_path)


def tarball(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def test_members_are_read_out_of_wheels_tarballs_and_debian_packages(tmp_path: Path) -> None:
    wheel = tmp_path / "a.whl"
    with zipfile.ZipFile(wheel, "w") as zipped:
        zipped.writestr("a/b.txt", "wheel")
    assert member(wheel, "a/b.txt") == b"wheel"

    npm = tmp_path / "a.tgz"
    npm.write_bytes(tarball("package/b.txt", b"npm"))
    assert member(npm, "package/b.txt") == b"npm"

    def entry(name: str, content: bytes) -> bytes:
        head = f"{name:16s}{0:<12d}{0:<6d}{0:<6d}{100644:<8d}{len(content):<10d}".encode() + b"`\n"
        return head + content + b"\n" * (len(content) % 2)

    deb = tmp_path / "a.deb"
    # An odd member first: the next one starts on an even offset.
    parts = [entry("debian-binary", b"2.0"), entry("data.tar.xz", tarball("./b.txt", b"deb"))]
    deb.write_bytes(b"!<arch>\n" + b"".join(parts))
    assert member(deb, "./b.txt") == b"deb"
