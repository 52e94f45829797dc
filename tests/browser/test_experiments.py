"""Finding, grouping and comparing runs in a real Chromium."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.conftest import App
from tests.browser.test_journey import query, tick_row, until, wait_until_done


@pytest.mark.timeout(400)
def test_runs_are_found_by_typing_and_seeds_are_compared_as_one_line(
    app: App, page: Any, screenshot: Any, assert_quiet: Callable[[Any], None]
) -> None:
    page.set_default_timeout(120_000)  # the first visit fills the demo store
    page.goto(app.url, timeout=120_000)
    grid = page.get_by_test_id("stDataFrame").first
    grid.wait_for()
    page.get_by_role("progressbar").wait_for(state="detached")
    wait_until_done(page)

    # The bar of filters is one line.
    labels = page.get_by_test_id("stMain").get_by_test_id("stWidgetLabel")
    tops = {
        label.inner_text().strip(): round(label.bounding_box()["y"])
        for label in labels.all()
        if label.is_visible()
    }
    bar = [tops[name] for name in ("Experiment", "Find", "Algorithm", "Order")]
    assert max(bar) - min(bar) <= 4

    # A value that is no option can be typed in; the server has no such run.
    chosen = page.get_by_label("Algorithm", exact=True).first
    chosen.click()
    page.keyboard.type("no such")
    page.keyboard.press("Enter")
    page.get_by_text("No run matches").wait_for()
    assert query(page)["algorithm"] == "no such"
    wait_until_done(page)
    page.keyboard.press("Backspace")
    page.keyboard.press("Escape")
    grid.wait_for()
    until(page, lambda: "algorithm" not in query(page), "no algorithm in the address")

    find = page.get_by_label("Find", exact=True).first
    find.fill("metrics.`rise.w1` > wrong")
    find.press("Enter")
    page.get_by_text("The server does not understand this filter.").wait_for()
    find.fill("metrics.`rise.w1` > 0 and tags.algorithm = 'ERM'")
    find.press("Enter")
    page.get_by_text("runs 1–3 of 3").wait_for()
    find.fill("")
    find.press("Enter")
    page.get_by_text("runs 1–3 of 3").wait_for(state="detached")
    wait_until_done(page)

    # One line for the seeds: its box compares them, Diagnose opens one.
    page.get_by_text("Group seeds", exact=True).click()
    until(page, lambda: query(page).get("seeds") == "on", "seeds in the address")
    page.get_by_text("they are no confidence intervals").wait_for()
    page.get_by_role("progressbar").wait_for(state="detached")
    wait_until_done(page)
    grid = page.get_by_test_id("stDataFrame").first
    assert grid.bounding_box()["height"] < 10 * 44
    screenshot(page, "experiments-seeds")
    tick_row(page, grid, 0)
    buttons = page.get_by_test_id("stMain")
    compare = buttons.get_by_role("button", name="Compare", exact=True)
    until(page, compare.is_enabled, "a button that can be pressed")
    assert buttons.get_by_role("button", name="Diagnose", exact=True).is_enabled()
    page.get_by_text("ERM · 3 seeds", exact=True).wait_for()
    compare.click()
    page.wait_for_url("**/compare?**")
    page.locator(".rise-title", has_text="3 models").wait_for()
    assert len(query(page)["runs"].split("|")) == 3
    wait_until_done(page)
    assert_quiet(page)
