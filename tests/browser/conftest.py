"""A started app and a real Chromium that watches what the app does behind the page.

``app_url`` is a fresh server on an empty store; ``browser_page`` is a page whose console errors and
outgoing requests are kept, so that ``assert_quiet(page)`` can say that there were none.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.browser import chromium

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 60
# On a deep link Streamlit asks for these below the page's path, gets a 404, and asks at the root.
TRIED_FIRST = re.compile(r"/\w+/_stcore/(health|host-config)$")
FLAGS = (
    "--no-sandbox",  # root in a container has no user namespace to sandbox with
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            # A cold server, a demo store that fills, a browser: more than a unit test is given.
            if not any(item.iter_markers("timeout")):
                item.add_marker(pytest.mark.timeout(300))


@dataclass(frozen=True)
class App:
    """A running app: where it answers, where it keeps its store, what it printed."""

    url: str
    home: Path
    log: Path


@contextlib.contextmanager
def running_app(home: Path, **environment: str) -> Iterator[App]:
    """Start the app with ``home`` as its RISE_HOME; end its whole process group afterwards."""
    home.mkdir(parents=True, exist_ok=True)
    log = home / "server.log"
    port = _free_port()
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    command += ["--server.headless", "true"]  # all else as `make run` starts it
    inherited = {
        k: v for k, v in os.environ.items() if not k.startswith(("MLFLOW_", "RISE_TRACKING"))
    }
    with log.open("wb") as output:
        server = subprocess.Popen(
            command,
            cwd=ROOT,
            env=inherited | {"RISE_HOME": str(home)} | environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    app = App(f"http://127.0.0.1:{port}", home, log)
    try:
        _wait_until_healthy(server, app)
        yield app
    finally:
        _end_group(server)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_healthy(server: subprocess.Popen[bytes], app: App) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if server.poll() is not None:
            pytest.fail(f"the app ended with status {server.returncode}:\n{app.log.read_text()}")
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{app.url}/_stcore/health", timeout=2).close()
            return
        time.sleep(0.2)
    pytest.fail(f"the app did not answer within {START_SECONDS} s:\n{app.log.read_text()}")


def _end_group(server: subprocess.Popen[bytes]) -> None:
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(10)
            return


@dataclass
class Observed:
    """What a page did that nobody sees: errors in the console, requests to other machines."""

    errors: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    def watch(self, page: Any) -> None:
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self._note(request.url))
        page.on("websocket", lambda socket: self._note(socket.url))

    def _heard(self, message: Any) -> None:
        url = message.location.get("url", "")
        if message.type == "error" and not TRIED_FIRST.search(url):
            self.errors.append(f"{message.text} {url}".strip())

    def _note(self, url: str) -> None:
        parts = urlsplit(url)
        here = parts.scheme in {"data", "blob", "about"} or parts.hostname in {
            "127.0.0.1",
            "localhost",
        }
        if not here:
            self.outside.append(url)


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """One app for the whole run, started on an empty store."""
    with running_app(tmp_path_factory.mktemp("app") / "home") as started:
        yield started


@pytest.fixture
def cold_app(tmp_path: Path) -> Iterator[App]:
    """An app of this test's own, that nobody has opened yet."""
    with running_app(tmp_path / "home") as started:
        yield started


@pytest.fixture
def app_url(app: App) -> str:
    """Address of the shared app."""
    return app.url


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium: the system's where there is one."""
    from playwright.sync_api import sync_playwright

    path = chromium.find()
    if path is None:
        pytest.fail("no Chromium: run `make chromium`, or name one in RISE_CHROMIUM")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, headless=True, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """``open_page(width=1440, height=900, dark=False)`` gives a watched page."""
    contexts = []

    def make(width: int = 1440, height: int = 900, *, dark: bool = False) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.observed = Observed()
        page.observed.watch(page)
        return page

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def page(open_page: Callable[..., Any]) -> Any:
    """A watched page at desktop width, light."""
    return open_page()


@pytest.fixture
def assert_quiet() -> Callable[[Any], None]:
    """``assert_quiet(page)``: the console is clean and no request left this machine."""

    def check(page: Any) -> None:
        assert page.observed.errors == [], "errors in the browser's console"
        assert page.observed.outside == [], "requests left this machine"

    return check


@pytest.fixture
def screenshot(root: Path) -> Callable[[Any, str], Path]:
    """``screenshot(page, "diagnose-light")`` keeps a picture to look at, outside of git."""

    def take(page: Any, name: str) -> Path:
        path = root / "tests" / "browser" / "shots" / f"{name}.png"
        path.parent.mkdir(exist_ok=True)
        page.screenshot(path=path)
        return path

    return take
