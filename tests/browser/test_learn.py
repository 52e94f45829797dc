"""Through the Learn page by keyboard alone, with no store to be had."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rise_core import evaluate_predictions
from rise_core.lessons import LESSONS
from rise_core.synthetic import SyntheticModel
from rise_core.wording import METRICS
from tests.app.reading import values_of
from tests.browser.conftest import App, running_app
from tests.browser.test_journey import query, until, wait_for_chart, wait_until_done

MOST_TABS = 70
# What the focus is on, as a screen reader names it.
FOCUS = """() => {
  const e = document.activeElement;
  return [e.getAttribute('role') || e.tagName.toLowerCase(),
          (e.getAttribute('aria-label') || e.innerText || '').trim()];
}"""


@pytest.fixture(scope="module")
def lonely_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """An app whose store does not answer, which Learn must not notice."""
    home = tmp_path_factory.mktemp("lonely") / "home"
    with running_app(home, MLFLOW_TRACKING_URI="http://127.0.0.1:9") as started:
        yield started


def tab_to(page: Any, role: str, name: str) -> None:
    """Press Tab until the focus is on something, as a person without a mouse does."""
    seen = []
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(FOCUS))
        if seen[-1][0] == role and name in seen[-1][1]:
            return
    pytest.fail(f"{role} {name!r} is not reached by Tab: {seen}")


def press(page: Any, key: str, times: int = 1) -> None:
    for _ in range(times):
        page.keyboard.press(key)
    wait_until_done(page)


def shown(page: Any, key: str) -> str:
    """The value of an indicator; its row is found by the beginning of its name."""
    row = page.locator(".rise-cards tr", has_text=re.compile(rf"^{METRICS[key].name}"))
    return str(row.locator(".value b").inner_text())


def test_through_learn_by_keyboard(
    lonely_app: App,
    page: Any,
    screenshot: Any,
    assert_quiet: Callable[[Any], None],
) -> None:
    page.goto(f"{lonely_app.url}/learn", timeout=120_000)
    wait_for_chart(page)
    wait_until_done(page)
    assert page.locator(".rise-badge").inner_text().upper().startswith("SYNTHETIC")

    # The third example: question, picture and answer change.
    lessons = list(LESSONS.values())
    before = wait_for_chart(page).screenshot()
    tab_to(page, "radio", lessons[0].title)
    press(page, "ArrowRight", 2)
    press(page, "Space")
    lesson = lessons[2]
    page.get_by_text(lesson.question, exact=True).wait_for()
    assert lesson.answered() in page.locator(".rise-answer").inner_text()
    assert query(page) == {"example": lesson.key}
    until(page, lambda: shown(page, "w1") == values_of(lesson.evaluation())["w1"], "its W1")
    assert wait_for_chart(page).screenshot() != before

    # A slider: one step a key, the numbers are those of the new model, the address says so.
    tab_to(page, "input", "Separation")
    press(page, "ArrowLeft", 5)
    until(page, lambda: query(page).get("separation") == "3.5", "the slider in the address")
    ev = evaluate_predictions(SyntheticModel(separation=3.5, bias=-4.0).predictions())
    until(page, lambda: shown(page, "accuracy") == values_of(ev)["accuracy"], "its accuracy")
    screenshot(page, "learn-keyboard")

    # Back to the example, by its button.
    tab_to(page, "button", "Back to the example")
    press(page, "Enter")
    until(page, lambda: query(page) == {"example": lesson.key}, "an address without sliders")

    # The words under it.
    tab_to(page, "tab", "Indicators")
    press(page, "ArrowRight", 2)
    page.locator(".rise-glossary dt", has_text="Median ruler").wait_for()
    assert query(page)["words"] == "Glossary"
    assert_quiet(page)


@pytest.mark.parametrize("width", [390, 1440, 1920])
def test_learn_fits_every_screen(
    width: int, lonely_app: App, open_page: Callable[..., Any], screenshot: Any
) -> None:
    page = open_page(width=width, height=900, dark=width == 1920)
    page.goto(f"{lonely_app.url}/learn?example=disagree", timeout=120_000)
    chart = wait_for_chart(page)
    wait_until_done(page)
    box = chart.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    main = page.get_by_test_id("stMain").evaluate("e => [e.scrollWidth, e.clientWidth]")
    assert main[0] <= main[1]
    if width == 390:  # the picture comes before its sliders
        slider = page.get_by_label("Separation", exact=True).bounding_box()
        assert box["y"] < slider["y"]
    screenshot(page, f"learn-{width}")
