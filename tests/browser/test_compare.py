"""From the table of runs to a decision in a file: select, compare, take the report away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.app.conftest import FOREIGN_WARNINGS, Shelf, rows_of
from tests.browser.conftest import App, running_app
from tests.browser.test_journey import pick, query, tick_row, until, wait_until_done

pytestmark = [pytest.mark.filterwarnings(line) for line in FOREIGN_WARNINGS]
NAMES = ("ERM", "IRM", "Mixup", "GroupDRO", "V-REx")
ROW_HEIGHT = 44


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    """Five models on the same rows."""
    made = Shelf(tmp_path_factory.mktemp("shelf"))
    for number, name in enumerate(NAMES):
        table = rows_of(number % 4, 400)
        made.run("Bench", name.lower(), table, algorithm=name, environment="south")
    return made


@pytest.fixture(scope="module")
def app(shelf: Shelf, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """The app on that store."""
    home = tmp_path_factory.mktemp("compare") / "home"
    with running_app(home, MLFLOW_TRACKING_URI=shelf.uri) as started:
        yield started


def models_of(page: Any, table: int) -> list[str]:
    """Names of the models in one of the page's own tables, from top to bottom."""
    rows = page.locator(".rise-matrix").nth(table).locator("tbody th")
    return [str(text) for text in rows.all_inner_texts()]


def test_three_runs_are_selected_compared_and_taken_away(
    app: App,
    shelf: Shelf,
    page: Any,
    open_page: Callable[..., Any],
    assert_quiet: Callable[[Any], None],
    screenshot: Callable[[Any, str], Path],
    tmp_path: Path,
) -> None:
    page.set_default_timeout(120_000)
    page.goto(app.url, timeout=120_000)
    grid = page.get_by_test_id("stDataFrame").first
    grid.wait_for()
    page.get_by_role("progressbar").wait_for(state="detached")
    wait_until_done(page)

    # Its cells are drawn on a canvas: tick the boxes of the first, third and fourth row.
    button = page.get_by_test_id("stMain").get_by_role("button", name="Compare", exact=True)
    assert button.is_disabled()
    for row in (0, 2, 3):
        tick_row(page, grid, row)
        wait_until_done(page)
    page.get_by_text("3 runs", exact=True).wait_for()
    until(page, button.is_enabled, "a button that can be pressed")
    button.click()

    page.wait_for_url("**/compare?**")
    page.locator(".rise-title", has_text="3 models on Bench").wait_for()
    page.get_by_text("Differences to", exact=False).first.wait_for()  # all intervals are there
    wait_until_done(page)
    chosen = [NAMES[row] for row in (0, 2, 3)]
    wanted = {shelf.runs[name.lower()] for name in chosen}
    assert set(query(page)["runs"].split("|")) == wanted
    assert sorted(models_of(page, 0)) == sorted(chosen)
    first = page.get_by_label("Compare with", exact=True).first.input_value()
    assert set(models_of(page, 1)) == set(chosen) - {first}
    charts = page.locator("[data-testid=stVegaLiteChart]")
    until(page, lambda: charts.locator("canvas, svg.marks").count() == 5, "five charts drawn")
    assert charts.count() == 1 + 1 + len(chosen)

    # Another model to compare with: other differences, and a link that says so.
    other = next(name for name in chosen if name != first)
    pick(page, "Compare with", other)
    page.get_by_text(f"Differences to {other}", exact=True).wait_for()
    wait_until_done(page)
    assert query(page)["baseline"] == other
    assert set(models_of(page, 1)) == set(chosen) - {other}

    # The decision, and the file.
    # A list that is open closes when the page scrolls: be there first.
    page.get_by_role("button", name="Report (one HTML file)").scroll_into_view_if_needed()
    wait_until_done(page)
    pick(page, "Our choice", "GroupDRO")
    wait_until_done(page)
    note = page.get_by_label("Note for the minutes", exact=True)
    note.fill("Its gap is the smallest.")
    note.press("Control+Enter")
    wait_until_done(page)
    screenshot(page, "compare")
    with page.expect_download(timeout=120_000) as coming:
        page.get_by_role("button", name="Report (one HTML file)").click()
    file = tmp_path / coming.value.suggested_filename
    assert file.suffix == ".html"
    coming.value.save_as(file)
    assert_quiet(page)

    hold_report(open_page(), file, chosen, other, wanted)


def hold_report(page: Any, file: Path, models: list[str], baseline: str, runs: set[str]) -> None:
    """Hold that the file, opened from disk without a network, shows everything by itself."""
    page.context.set_offline(True)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(file.as_uri())
    page.wait_for_function("document.documentElement.dataset.paper === 'drawn'")
    drawn = page.evaluate(
        """() => [...document.querySelectorAll("[data-chart]")].map((place) => {
            const svg = [...place.querySelectorAll("svg.marks")]
                .find((one) => getComputedStyle(one).visibility === "visible");
            const box = svg?.getBoundingClientRect();
            const marks = svg?.querySelectorAll(".mark-line path, .mark-symbol path") ?? [];
            return {width: box?.width ?? 0, height: box?.height ?? 0, marks: marks.length};
        })"""
    )
    assert len(drawn) == 1 + len(models)
    for chart in drawn:
        assert chart["width"] > 150
        assert chart["height"] > 100
        assert chart["marks"] >= 2
    text = page.locator("body").inner_text()
    assert "Its gap is the smallest." in text
    assert "GroupDRO" in text
    assert f"minus {baseline}" in text or f"to {baseline}" in text
    assert all(name in text for name in models)
    assert all(run in text for run in runs)
    assert requests == [file.as_uri()]
    assert page.observed.errors == []
    assert page.observed.outside == [file.as_uri()]  # itself, and nothing else
    assert file.stat().st_size < 3_000_000
