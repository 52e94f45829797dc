"""The Learn page: sliders and lessons on synthetic models, with no store at all."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rise_core import Evaluation, Settings, evaluate_predictions
from rise_core.charts import tables
from rise_core.glossary import PUBLISHED, TERMS
from rise_core.lessons import LESSONS
from rise_core.synthetic import GROUPS, SyntheticModel
from rise_core.wording import METRICS
from tests.app.conftest import PAGES
from tests.app.reading import Screen, same_rows, values_of

Open = Callable[..., Screen]

# Nobody answers there: a page that asked for a store would say so.
NO_STORE = "http://127.0.0.1:9"
FIRST = next(iter(LESSONS))


@pytest.fixture(autouse=True)
def _page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(PAGES, "Learn", "pages/learn.py")
    monkeypatch.setenv("RISE_HOME", str(tmp_path / "home"))


def agrees(page: Screen, ev: Evaluation) -> None:
    """Hold that curves and indicators are those of an evaluation."""
    assert same_rows(page.curves, tables.curve_table(tables.curves_of(ev, None)))
    assert page.cards == values_of(ev, page.cards)
    assert len(page.cards) >= 7


def evaluation(model: SyntheticModel, **settings: Any) -> Evaluation:
    return evaluate_predictions(model.predictions(), settings=Settings(**settings))


def move(page: Screen, label: str, value: float) -> Screen:
    slider = next(s for s in page.at.slider if s.label == label)
    slider.set_value(value)
    return page.run()


def pick(page: Screen, title: str) -> Screen:
    """Press a lesson's pill."""
    (pills,) = (w for w in page.at.get("button_group") if w.proto.id.endswith("choose example"))
    pills.set_value(next(key for key, lesson in LESSONS.items() if lesson.title == title))
    return page.run()


def test_it_opens_with_no_store_and_says_that_nothing_is_real(
    open_app: Open, tmp_path: Path
) -> None:
    page = open_app("Learn", NO_STORE)
    assert page.title.startswith("Learn")
    assert "Synthetic" in page.html
    assert "no person" in page.html
    agrees(page, LESSONS[FIRST].evaluation())
    drawn = set(page.curves["curve"])
    assert set(GROUPS) <= drawn
    assert "synthetic yes" in page.chart.spec
    assert not (tmp_path / "home").exists(), "it made a store"


@pytest.mark.parametrize("key", LESSONS)
def test_each_example_has_its_question_picture_and_answer(open_app: Open, key: str) -> None:
    lesson = LESSONS[key]
    page = open_app("Learn", NO_STORE, example=key)
    said = html.unescape(page.html)
    assert lesson.question in said
    assert lesson.answered() in said
    agrees(page, lesson.evaluation())
    assert not page.has("Back to the example")


def test_a_slider_is_answered_at_once_and_is_in_the_address(open_app: Open) -> None:
    page = open_app("Learn", NO_STORE)
    before = page.curves
    move(page, "Bias of B", -2.0)
    agrees(page, evaluation(SyntheticModel(separation=3.6, bias=-2.0)))
    assert not same_rows(page.curves, before)
    assert page.address["bias"] == "-2"
    assert "Bias of B" in page.markdown  # "changed since"
    move(page, "Rows", 300)
    agrees(page, evaluation(SyntheticModel(separation=3.6, bias=-2.0, rows=300)))
    page.press("Back to the example")
    agrees(page, LESSONS[FIRST].evaluation())
    assert "bias" not in page.address
    assert "rows" not in page.address


def test_a_link_holds_the_whole_choice(open_app: Open) -> None:
    page = open_app("Learn", NO_STORE, example="base-rates", rate_b="0.3", seed="4", rates="equal")
    model = SyntheticModel(separation=3.0, rate_a=0.6, rate_b=0.3, seed=4)
    agrees(page, evaluation(model, base_rates="equal"))


def test_a_number_beyond_a_slider_is_moved_to_its_end(open_app: Open) -> None:
    page = open_app("Learn", NO_STORE, bias="99", separation="nonsense")
    agrees(page, evaluation(SyntheticModel(separation=3.6, bias=4.0)))


def test_another_example_sets_all_sliders(open_app: Open) -> None:
    page = open_app("Learn", NO_STORE, noise="2", threshold="0.3")
    page.choose("Base rates", "equal")
    pick(page, "Metrics disagree")
    agrees(page, LESSONS["disagree"].evaluation())
    assert page.address == {"example": "disagree"}


def test_a_collapsed_model_shows_what_is_undefined(open_app: Open) -> None:
    page = open_app("Learn", NO_STORE, collapse="1")
    assert page.cards["dp"] == "–"
    assert page.cards["f_acc"] == "–"
    assert "no group has a positive decision" in page.html


def test_what_each_indicator_sees_is_told_and_shown_on_the_examples(open_app: Open) -> None:
    page = open_app("Learn", NO_STORE, words="All examples")
    text = html.unescape(page.html)
    for key in ("accuracy", "dp", "md", "f_mean", "f_shift", "f_acc", "w1"):
        assert METRICS[key].explains in text
    row = re.search(r"<th scope=.row.>Metrics disagree</th>(.*?)</tr>", text, re.S)
    assert row
    told = re.findall(r'<td class="told"[^>]*>● ([\d.]+)</td>', row[1])
    assert told == [values_of(LESSONS["disagree"].evaluation())["w1"]]


def test_words_and_the_papers_numbers_are_there(open_app: Open) -> None:
    page = open_app("Learn", NO_STORE)
    for term in TERMS:
        assert f"<dt>{term.name}</dt>" in page.html
    for row in PUBLISHED:
        assert f"{row.model} (paper)" in page.html
        for number in (row.f_mean, row.f_shift, row.f_acc):
            assert f"<td>{number:.3f}" in page.html
    assert "not of your runs" in page.html


def test_a_choice_made_elsewhere_is_still_in_the_links(open_app: Open) -> None:
    page = open_app("Learn", NO_STORE, experiment="7", run="abc")
    assert page.address["run"] == "abc"
