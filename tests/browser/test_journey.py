"""A person's way through the app in a real Chromium: by a link, by the table, on a phone."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.browser.conftest import TRIED_FIRST, App, running_app

CHART = "[data-testid=stVegaLiteChart] canvas, [data-testid=stVegaLiteChart] svg.marks"
# What an evaluation without a fault leaves in the server's log.
TRACEBACK = ("Traceback", "Uncaught", "Error")


@pytest.fixture(scope="module")
def filled_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """An app that no other module uses, so that its log is this module's own."""
    with running_app(tmp_path_factory.mktemp("journey") / "home") as started:
        yield started


@pytest.fixture
def watched(open_page: Callable[..., Any]) -> Callable[..., Any]:
    """Open a page that also remembers which requests were answered with an error."""

    def make(**arguments: Any) -> Any:
        page = open_page(**arguments)
        page.refused = []
        page.on("response", lambda r: r.status >= 400 and page.refused.append(r.url))
        return page

    return make


def hold_quiet(page: Any, app: App) -> None:
    """Hold that console, network and log are clean.

    The only exception is Streamlit's own two probes of ``/diagnose/_stcore/…`` on a deep link.
    """
    assert [url for url in page.refused if not TRIED_FIRST.search(urlsplit(url).path)] == []
    assert page.observed.errors == []
    assert page.observed.outside == []
    log = app.log.read_text("utf-8")
    assert not any(word in log for word in TRACEBACK), log[-3000:]


def until(page: Any, true: Callable[[], bool], what: str, seconds: float = 120) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"{what} not within {seconds} s"
        page.wait_for_timeout(100)


def wait_for_chart(page: Any) -> Any:
    """Return the drawn chart once it has a size."""
    chart = page.locator(CHART).first
    chart.wait_for()

    def has_size() -> bool:
        box = chart.bounding_box()
        return box is not None and box["width"] > 150 and box["height"] > 150

    until(page, has_size, "a chart with a size")
    return chart


def wait_until_done(page: Any) -> None:
    """Wait until Streamlit runs nothing, and has done so for a moment."""
    state = page.locator("[data-test-script-state]").first
    calm = [0]

    def idle() -> bool:
        running = state.get_attribute("data-test-script-state") == "running"
        calm[0] = 0 if running else calm[0] + 1
        return calm[0] >= 5

    until(page, idle, "an end of the script's run")


def query(page: Any) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def pick(page: Any, label: str, option: str) -> None:
    """Choose an option of a select box by keyboard and mouse, as a person does."""
    page.get_by_label(label, exact=True).first.click()
    page.get_by_role("option", name=option, exact=True).click()


def facts(page: Any) -> str:
    return str(page.locator(".rise-facts").first.inner_text())


@pytest.mark.timeout(400)
def test_a_deep_link_on_a_cold_server_then_the_table_then_back(
    filled_app: App, watched: Callable[..., Any], screenshot: Any
) -> None:
    page = watched()
    page.goto(f"{filled_app.url}/diagnose?threshold=0.4&view=groups", timeout=120_000)
    page.set_default_timeout(120_000)  # the first visit fills the demo store
    chart = wait_for_chart(page)
    wait_until_done(page)
    assert "threshold 0.4" in " ".join(facts(page).split())
    assert query(page)["threshold"] == "0.4"
    title = page.locator(".rise-title").inner_text()
    run, said = query(page)["run"], facts(page)
    before = chart.screenshot()

    # Another algorithm: another run in the address, other facts, another picture.
    now = page.get_by_label("Algorithm", exact=True).first.input_value()
    other = "IRM" if now != "IRM" else "ERM"
    pick(page, "Algorithm", other)
    until(page, lambda: query(page).get("run") not in (run, None), "another run in the address")
    page.locator(".rise-title", has_text=other).wait_for()
    wait_until_done(page)
    chart = wait_for_chart(page)
    assert page.locator(".rise-title").inner_text() != title
    assert facts(page) != said
    assert chart.screenshot() != before
    assert query(page)["threshold"] == "0.4"
    screenshot(page, "journey-diagnose")

    # The table of runs keeps the threshold.
    page.get_by_test_id("stSidebar").get_by_role("link", name="Experiments").click()
    grid = page.get_by_test_id("stDataFrame").first
    grid.wait_for()
    page.get_by_role("progressbar").wait_for(state="detached")
    wait_until_done(page)
    assert query(page)["threshold"] == "0.4"

    # Its cells are drawn on a canvas: tick the box of the second row.
    button = page.get_by_test_id("stMain").get_by_role("button", name="Diagnose", exact=True)
    assert button.is_disabled()
    tick_row(page, grid, 1)
    until(page, button.is_enabled, "a button that can be pressed")
    wait_until_done(page)
    screenshot(page, "journey-experiments")
    button.click()
    page.wait_for_url("**/diagnose?**")
    wait_for_chart(page)
    wait_until_done(page)
    arrived = query(page)
    assert arrived["threshold"] == "0.4"
    assert arrived["run"][:8] in facts(page)
    assert "threshold 0.4" in " ".join(facts(page).split())

    # Back, and the choices are still there.
    page.go_back()
    page.wait_for_url(lambda url: "/diagnose" not in url)
    page.get_by_test_id("stDataFrame").first.wait_for()
    wait_until_done(page)
    assert query(page)["threshold"] == "0.4"
    hold_quiet(page, filled_app)


def tick_row(page: Any, grid: Any, row: int) -> None:
    """Tick a row's box: the first column of the canvas; rows are 44 pixels high."""
    box = grid.bounding_box()
    header = 36
    page.mouse.click(box["x"] + 18, box["y"] + header + 44 * row + 22)


def test_a_phone_shows_the_chart_without_scrolling_sideways(
    filled_app: App, watched: Callable[..., Any], screenshot: Any
) -> None:
    page = watched(width=390, height=844)
    page.set_default_timeout(120_000)
    page.goto(f"{filled_app.url}/diagnose", timeout=120_000)
    chart = wait_for_chart(page)
    wait_until_done(page)
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    for name in ("documentElement", "body"):
        wide = page.evaluate(f"document.{name}.scrollWidth")
        assert wide <= 390, f"{name} is {wide} pixels wide"
    main = page.get_by_test_id("stMain").evaluate("e => [e.scrollWidth, e.clientWidth]")
    assert main[0] <= main[1]
    screenshot(page, "journey-phone")
    hold_quiet(page, filled_app)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_chart_follows_the_theme(
    dark: bool, filled_app: App, watched: Callable[..., Any], screenshot: Any
) -> None:
    page = watched(dark=dark)
    page.set_default_timeout(120_000)
    page.goto(f"{filled_app.url}/diagnose", timeout=120_000)
    chart = wait_for_chart(page)
    wait_until_done(page)
    screenshot(page, f"journey-{'dark' if dark else 'light'}")
    light = brightness(page, chart)
    assert light < 0.35 if dark else light > 0.65, light
    # The axis' words stand out against that ground.
    text = page.locator(".rise-facts").first.evaluate("e => getComputedStyle(e).color")
    words = sum(map(int, re.findall(r"\d+", text)[:3])) / (3 * 255)
    assert abs(words - light) > 0.5
    hold_quiet(page, filled_app)


def brightness(page: Any, chart: Any) -> float:
    """Mean brightness of the chart as it is seen, from 0 to 1."""
    import base64

    picture = base64.b64encode(chart.screenshot()).decode()
    found: float = page.evaluate(
        """async picture => {
            const image = new Image();
            image.src = 'data:image/png;base64,' + picture;
            await image.decode();
            const canvas = document.createElement('canvas');
            canvas.width = image.width; canvas.height = image.height;
            const pen = canvas.getContext('2d');
            pen.drawImage(image, 0, 0);
            const data = pen.getImageData(0, 0, canvas.width, canvas.height).data;
            let sum = 0;
            for (let i = 0; i < data.length; i += 4) sum += data[i] + data[i + 1] + data[i + 2];
            return sum / (data.length / 4 * 3 * 255);
        }""",
        picture,
    )
    return found
