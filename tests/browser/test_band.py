"""Drag over the curve in a real Chromium, and read who is in the band."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rise_core import Evaluation, Predictions, evaluate_predictions
from rise_core.tracking import connect
from tests.browser.conftest import App
from tests.browser.test_journey import query, until, wait_for_chart, wait_until_done


def evaluation_of(app: App, run_id: str, cache: Path) -> Evaluation:
    """What the engine says of the run that the page shows, on the rows it holds out."""
    store = connect(f"sqlite:///{app.home / 'demo' / 'mlflow.db'}", cache_dir=cache)
    table, run = store.load(run_id), store.run(run_id)
    rows = Predictions.from_frame(table.frame, table.roles)
    return evaluate_predictions(rows.in_environment(str(run.environment)))


def drag(page: Any, start: tuple[float, float], stop: tuple[float, float]) -> None:
    """Drag between two points of the chart, given as shares of its picture."""
    box = wait_for_chart(page).bounding_box()
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in (start, stop)]
    page.mouse.move(*points[0])
    page.mouse.down()
    page.mouse.move(*points[1], steps=8)
    page.mouse.up()


def told(page: Any) -> str:
    """The facts of the band, as one line."""
    page.get_by_text("In this band").wait_for()
    wait_until_done(page)
    return " ".join(page.locator(".rise-facts").last.inner_text().split())


@pytest.mark.timeout(400)
@pytest.mark.parametrize("view", ["global", "groups"])
def test_a_drag_tells_who_is_in_the_band(
    view: str,
    app: App,
    page: Any,
    tmp_path: Path,
    screenshot: Any,
    assert_quiet: Callable[[Any], None],
) -> None:
    page.set_viewport_size({"width": 1440, "height": 1300})
    page.set_default_timeout(120_000)
    page.goto(f"{app.url}/diagnose?view={view}", timeout=120_000)
    wait_for_chart(page)
    # What comes late would draw the page anew under the hand that drags.
    page.get_by_text("Computing intervals").wait_for(state="detached")
    wait_until_done(page)
    ev = evaluation_of(app, query(page)["run"], tmp_path)

    path = ((0.35, 0.35), (0.55, 0.35)) if view == "global" else ((0.5, 0.55), (0.5, 0.8))
    drag(page, *path)
    said = told(page)
    q0, q1 = map(float, query(page)["band"].split("-"))
    assert 0 < q0 < q1 < 1
    band = ev.band(q0, q1)
    assert f"rows {band.n:,} of {ev.n:,}" in said
    table = page.locator(".rise-matrix").first.inner_text()
    for label, group in band.groups.items():
        assert re.search(rf"{re.escape(label)}\s+{group.n:,}\s", table), (label, table)
        assert f"{group.lift:.2f}×" in table
    screenshot(page, f"band-{view}")

    # Another drag is another band; a click beside it lets go.
    before = query(page)["band"]
    drag(page, (0.7, 0.3), (0.9, 0.5))
    until(page, lambda: query(page).get("band") not in (before, None), "another band")
    told(page)
    box = wait_for_chart(page).bounding_box()
    page.mouse.click(box["x"] + 0.2 * box["width"], box["y"] + 0.7 * box["height"])
    until(page, lambda: "band" not in query(page), "no band")
    page.get_by_text("In this band").wait_for(state="detached")
    assert_quiet(page)


def test_the_keyboard_does_the_same(app: App, page: Any, tmp_path: Path) -> None:
    page.set_default_timeout(120_000)
    page.goto(f"{app.url}/diagnose", timeout=120_000)
    wait_for_chart(page)
    wait_until_done(page)
    ev = evaluation_of(app, query(page)["run"], tmp_path)
    page.get_by_role("spinbutton", name="From, %").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("10")
    page.keyboard.press("Enter")
    until(page, lambda: query(page).get("band") == "0.1-1", "a band from the keyboard")
    wait_until_done(page)
    page.get_by_role("spinbutton", name="To, %").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("30")
    page.keyboard.press("Enter")
    until(page, lambda: query(page).get("band") == "0.1-0.3", "the other end")
    wait_until_done(page)
    assert f"rows {ev.band(0.1, 0.3).n:,} of {ev.n:,}" in told(page)
    # What was typed keeps the focus, so that the next key goes there too.
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "To, %"


def threshold_chart(app: App, page: Any) -> Any:
    """Open the first of the charts whose threshold can be moved."""
    page.set_viewport_size({"width": 1440, "height": 2000})
    page.set_default_timeout(120_000)
    page.goto(f"{app.url}/diagnose?tab=Threshold", timeout=120_000)
    wait_for_chart(page)
    wait_until_done(page)
    page.get_by_text("Drag the mark").wait_for()
    page.wait_for_timeout(500)
    chart = page.locator("[data-testid=stVegaLiteChart]").nth(1)
    chart.scroll_into_view_if_needed()
    return chart


def threshold_set(page: Any) -> str:
    """Wait for a threshold, hold that the whole page has it, and return it."""
    until(page, lambda: "threshold" in query(page), "a threshold in the address")
    wait_until_done(page)
    found: str = query(page)["threshold"]
    assert 0.2 < float(found) < 0.5
    assert f"threshold {found}" in " ".join(page.locator(".rise-facts").first.inner_text().split())
    return found


def test_a_click_on_a_threshold_chart_moves_the_threshold(
    app: App, page: Any, assert_quiet: Callable[[Any], None]
) -> None:
    chart = threshold_chart(app, page)
    box = chart.bounding_box()
    page.mouse.click(box["x"] + 0.4 * box["width"], box["y"] + 0.5 * box["height"])
    clicked = threshold_set(page)
    # The slider has the last word: what was clicked before does not come back.
    slider = page.get_by_role("slider", name="Threshold")
    slider.focus()
    page.keyboard.press("ArrowRight")
    moved = f"{float(clicked) + 0.01:g}"
    until(page, lambda: query(page).get("threshold") == moved, "the slider's threshold")
    wait_until_done(page)
    assert query(page)["threshold"] == moved
    assert_quiet(page)


def test_the_mark_of_a_threshold_chart_can_be_dragged(
    app: App, page: Any, assert_quiet: Callable[[Any], None]
) -> None:
    chart = threshold_chart(app, page)
    box = chart.bounding_box()

    def at(share: float, height: float = 0.5) -> tuple[float, float]:
        return box["x"] + share * box["width"], box["y"] + height * box["height"]

    def mark() -> float:
        """Where the handle of the mark stands, in pixels of the page."""
        handles = chart.locator("svg.marks .mark-symbol path").all()
        return max(found["x"] + found["width"] / 2 for h in handles if (found := h.bounding_box()))

    # Under way the mark follows the pointer, and nothing is computed.
    page.mouse.move(*at(0.5))
    page.mouse.down()
    page.mouse.move(*at(0.75), steps=6)
    until(page, lambda: abs(mark() - at(0.75)[0]) < 6, "a mark under the pointer")
    page.wait_for_timeout(500)
    assert "threshold" not in query(page)
    page.mouse.move(*at(0.4), steps=6)
    page.mouse.up()
    dragged = threshold_set(page)

    # Let go beside the plot, it returns.
    box = chart.bounding_box()
    stood = mark()
    page.mouse.move(*at(0.6))
    page.mouse.down()
    until(page, lambda: abs(mark() - at(0.6)[0]) < 6, "a mark where the pointer is pressed")
    page.mouse.move(*at(0.6, 1.4), steps=4)
    page.mouse.up()
    until(page, lambda: abs(mark() - stood) < 1, "the mark where it was")
    assert query(page)["threshold"] == dragged
    assert_quiet(page)
