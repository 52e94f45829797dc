"""Find a Chromium that really starts; run as a program, install one where there is none.

First the system's own, then (as root, where apt-get is) the distribution's package, then the one
that Playwright downloads.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

NAMES = ("chromium", "google-chrome", "google-chrome-stable", "chromium-browser", "chrome")
MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")


def find() -> str | None:
    """Path of the first Chromium that answers to ``--version``; RISE_CHROMIUM names one."""
    return next((path for path in _candidates() if _starts(path)), None)


def _candidates() -> Iterator[str]:
    if named := os.environ.get("RISE_CHROMIUM"):
        yield named
    yield from (path for name in NAMES if (path := shutil.which(name)))
    if MAC.exists():
        yield str(MAC)
    yield from _of_playwright()


def _of_playwright() -> Iterator[str]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    if Path(path).exists():
        yield path


def _starts(path: str) -> bool:
    # Ubuntu's package is a stub that only points at a snap; it is there and does not start.
    try:
        return subprocess.run([path, "--version"], capture_output=True, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def install() -> None:
    """Install a Chromium: the distribution's package as root, else Playwright's download."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    if root and shutil.which("apt-get"):
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        for command in (
            ["apt-get", "update", "-qq"],
            ["apt-get", "install", "-qq", "-y", "--no-install-recommends", "chromium"],
        ):
            subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=False)
        if find():
            return
    command = [sys.executable, "-m", "playwright", "install"]
    subprocess.run([*command, *(["--with-deps"] if root else []), "chromium"], check=False)


def main() -> int:
    """Make sure that there is one, and say which."""
    path = find()
    if path is None:
        print("No Chromium found; installing one for the browser tests …", flush=True)
        install()
        path = find()
    if path is None:
        print(
            "The browser tests need Chromium, and none could be installed. Install chromium or "
            "Google Chrome, or name one: RISE_CHROMIUM=/path/to/chrome make test",
            file=sys.stderr,
        )
        return 1
    print(f"Chromium: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
