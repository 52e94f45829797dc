"""A file from the disk ends in a chart, in a real Chromium, with no store to be had."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rise_core import evaluate
from tests.app.conftest import predictions_table
from tests.app.reading import values_of
from tests.browser.conftest import App, running_app
from tests.browser.test_journey import facts, hold_quiet, until, wait_for_chart, wait_until_done


@pytest.fixture(scope="module")
def lonely_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """An app whose store does not answer."""
    home = tmp_path_factory.mktemp("lonely") / "home"
    with running_app(home, MLFLOW_TRACKING_URI="http://127.0.0.1:9") as started:
        yield started


def test_a_file_is_asked_about_and_ends_in_a_chart(
    lonely_app: App, page: Any, tmp_path: Path, screenshot: Any
) -> None:
    table = predictions_table(3)
    table["y_true"] = np.where(table["y_true"] == "yes", "coat", "top")
    good, bad = tmp_path / "coats.parquet", tmp_path / "words.csv"
    table.to_parquet(good)
    bad.write_text("hello\n")

    page.refused = []
    page.goto(f"{lonely_app.url}/add", timeout=120_000)
    drop = page.locator("input[type=file]")
    drop.wait_for(state="attached")
    drop.set_input_files([good, bad])
    page.get_by_text("This file was not added.").wait_for()
    assert page.get_by_text("words.csv holds no table").is_visible()

    # Which class is the positive one cannot be told, so it is asked.
    page.get_by_text("Which class of 'y_true' is the score for?").wait_for()
    screenshot(page, "add-asks")
    page.get_by_role("button", name="coat", exact=True).click()
    wait_for_chart(page)
    wait_until_done(page)
    said = " ".join(facts(page).split())
    assert "rows used 240 of 240" in said
    assert "positive class coat" in said
    ev = evaluate(
        table["y_true"],
        table["y_prob"],
        sensitive_features=table[["sex", "region"]],
        pos_label="coat",
    )
    row = page.locator(".rise-cards tr", has_text="W1").first
    assert row.locator(".value b").inner_text() == values_of(ev)["w1"]
    screenshot(page, "add-chart")

    # Another page and back: the file is still there.
    sidebar = page.get_by_test_id("stSidebar")
    sidebar.get_by_role("link", name="Learn").click()
    page.locator(".rise-badge").wait_for()
    sidebar.get_by_role("link", name="Add predictions").click()
    page.locator(".rise-title", has_text="coats.parquet").wait_for()
    wait_for_chart(page)

    # The indicators leave as a file.
    page.get_by_role("tab", name="Save", exact=True).click()
    button = page.get_by_role("button", name="Indicators (CSV)")
    until(page, button.is_visible, "a button to save the indicators")
    with page.expect_download() as download:
        button.click()
    text = Path(download.value.path()).read_text("utf-8")
    assert "w1" in text
    assert "null_high" in text
    hold_quiet(page, lonely_app)


def test_a_phone_can_map_columns(
    lonely_app: App, open_page: Callable[..., Any], tmp_path: Path, screenshot: Any
) -> None:
    file = tmp_path / "mine.csv"
    predictions_table(4).to_csv(file, index=False)
    page = open_page(width=390, height=844, dark=True)
    page.goto(f"{lonely_app.url}/add", timeout=120_000)
    drop = page.locator("input[type=file]")
    drop.wait_for(state="attached")
    drop.set_input_files(file)
    wait_for_chart(page)
    wait_until_done(page)
    label = page.get_by_label("Score of the positive class", exact=True).first
    label.scroll_into_view_if_needed()
    box = label.bounding_box()
    assert box["x"] + box["width"] <= 390
    main = page.get_by_test_id("stMain").evaluate("e => [e.scrollWidth, e.clientWidth]")
    assert main[0] <= main[1]
    screenshot(page, "add-phone")
