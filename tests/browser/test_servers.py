"""A server that hangs holds nobody who wants to choose another one."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.app.conftest import FOREIGN_WARNINGS, Shelf, predictions_table
from tests.browser.conftest import App, running_app
from tests.browser.test_journey import pick, query

pytestmark = [pytest.mark.filterwarnings(line) for line in FOREIGN_WARNINGS]
# A connection that hangs is given up after 5 s.
AT_ONCE_SECONDS = 3.5


@pytest.fixture(scope="module")
def hanging() -> Iterator[str]:
    """Address of something that takes every connection and never answers."""
    kept = []

    def accept() -> None:
        with suppress(OSError):  # closed at the end
            while True:
                kept.append(listener.accept()[0])

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(None)
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)
    for link in kept:
        link.close()


@pytest.fixture(scope="module")
def app(hanging: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    shelf = Shelf(tmp_path_factory.mktemp("shelf"))
    shelf.run("Answers", "quick", predictions_table(3))
    listed = f"quick={shelf.uri} hanging={hanging}"
    with running_app(tmp_path_factory.mktemp("home"), RISE_TRACKING_URIS=listed) as started:
        yield started


def test_a_server_that_hangs_is_left_at_once(
    app: App, page: Any, assert_quiet: Callable[[Any], None]
) -> None:
    page.goto(app.url, timeout=120_000)
    grid = page.get_by_test_id("stDataFrame").first
    grid.wait_for(timeout=120_000)
    connecting = page.get_by_text("Connecting to hanging")

    def leave() -> float:
        connecting.wait_for(timeout=30_000)
        assert query(page)["server"] == "hanging"
        started = time.monotonic()
        pick(page, "Server", "quick")
        # What is left of the page before stays until the new one is drawn: first this must go.
        connecting.wait_for(state="detached", timeout=30_000)
        grid.wait_for(timeout=30_000)
        page.get_by_text("connected in").wait_for(timeout=30_000)
        assert "server" not in query(page)
        return time.monotonic() - started

    pick(page, "Server", "hanging")
    assert leave() < AT_ONCE_SECONDS
    # And while the clock looks whether it is back.
    pick(page, "Server", "hanging")
    page.get_by_text("There is no connection to the runs.").wait_for(timeout=30_000)
    assert leave() < AT_ONCE_SECONDS
    assert_quiet(page)
