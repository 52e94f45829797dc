"""Bands on the Diagnose page: the same band by brush, segment, numbers and address."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rise_core import Evaluation
from tests.app.conftest import Shelf, Truth
from tests.app.reading import Screen

Open = Callable[..., Screen]
Ask = Callable[[str], Truth]

FIRST = "erm number 0"


@pytest.fixture
def ev(lab: Shelf, truth: Ask) -> Evaluation:
    return truth(lab.uri).evaluation(lab.runs[FIRST])


def opened(open_app: Open, lab: Shelf, **query: str) -> Screen:
    return open_app("Diagnose", lab.uri, run=lab.runs[FIRST], environment="(all)", **query)


def band_facts(page: Screen) -> dict[str, str]:
    """What is said of the band: the last line of facts."""
    lines = re.findall(r'<div class="rise-facts">(.*?)</div>', page.html, re.S)
    pairs = re.findall(r"<i>(.*?)</i>\s*<b>(.*?)</b>", lines[-1], re.S)
    return {html.unescape(name): html.unescape(value) for name, value in pairs}


def agrees(page: Screen, ev: Evaluation, q0: float, q1: float) -> None:
    """Hold that the page tells who is in this band."""
    band = ev.band(q0, q1)
    facts = band_facts(page)
    assert facts["rows"].startswith(f"{band.n:,} of {ev.n:,} ")
    wrong = sum(g.false_positives + g.false_negatives for g in band.groups.values())
    assert facts["decided wrongly"].startswith(f"{wrong:,} ")
    rows = np.searchsorted(ev.predictions.row_positions, band.rows)
    assert facts["yes"] == f"{int(ev.predictions.y_true[rows].sum()):,}"
    shown = next(d.value for d in page.at.dataframe if "residual" in d.value.columns)
    assert sorted(shown["residual"]) == pytest.approx(sorted(ev.residual_values[rows]))
    assert page.address["band"] == f"{q0:g}-{q1:g}"


def numbers(page: Screen) -> dict[str, Any]:
    return {w.label: w for w in page.at.number_input}


def test_without_a_band_the_page_says_how_to_get_one(open_app: Open, lab: Shelf) -> None:
    page = opened(open_app, lab)
    assert "Drag up or down on the chart" in page.markdown
    assert "In this band" not in page.html
    page.choose("View", "global")
    assert "Drag sideways on the chart" in page.markdown


def test_a_link_opens_its_band(open_app: Open, lab: Shelf, ev: Evaluation) -> None:
    page = opened(open_app, lab, band="0.1-0.35")
    agrees(page, ev, 0.1, 0.35)
    assert numbers(page)["From, %"].value == 10
    assert numbers(page)["To, %"].value == 35
    for label, group in ev.band(0.1, 0.35).groups.items():
        assert re.search(rf">{label}</th><td>{group.n:,}</td>", page.html)
        assert f"{group.lift:.2f}×" in page.html


def test_typed_numbers_choose_a_band_in_either_order(
    open_app: Open, lab: Shelf, ev: Evaluation
) -> None:
    page = opened(open_app, lab)
    numbers(page)["To, %"].set_value(20.0)
    agrees(page.run(), ev, 0.0, 0.2)
    numbers(page)["From, %"].set_value(60.0)
    agrees(page.run(), ev, 0.2, 0.6)
    page.press("Clear band")
    assert "band" not in page.address
    assert "In this band" not in page.html


def test_a_segment_chooses_a_band_and_takes_it_back(
    open_app: Open, lab: Shelf, ev: Evaluation
) -> None:
    page = opened(open_app, lab)
    core = next(s for s in ev.segments if s.name == "core")
    (pills,) = [w for w in page.at.button_group if w.label == "Segment"]
    pills.set_value("core")
    agrees(page.run(), ev, round(core.q0, 4), round(core.q1, 4))
    (pills,) = [w for w in page.at.button_group if w.label == "Segment"]
    assert pills.value == "core"
    pills.set_value(None)
    assert "band" not in page.run().address


@pytest.mark.parametrize(
    "garbage", ["0.5", "0.6-0.2", "a-b", "0.1-1.5", "-1-0.5", "nan-nan", "<b>-1", "0-0", ""]
)
def test_a_band_that_cannot_be_is_forgotten(garbage: str, open_app: Open, lab: Shelf) -> None:
    page = opened(open_app, lab, band=garbage)
    assert "In this band" not in page.html
    assert not page.address.get("band")
    assert page.cards


def test_a_band_stays_when_the_model_changes(
    open_app: Open, lab: Shelf, truth: Ask, ev: Evaluation
) -> None:
    page = opened(open_app, lab, band="0.1-0.35")
    page.choose("Algorithm", "Mixup")
    agrees(page, truth(lab.uri).evaluation(lab.runs["mixup number 0"]), 0.1, 0.35)
    page.choose("View", "global")
    page.choose("Threshold", 0.3)
    agrees(page, truth(lab.uri).evaluation(lab.runs["mixup number 0"], threshold=0.3), 0.1, 0.35)


def test_a_band_between_two_residuals_has_no_rows_and_says_so(
    open_app: Open, tmp_path: Any
) -> None:
    import pandas as pd

    shelf = Shelf(tmp_path)
    half = ["no", "yes"] * 20
    table = pd.DataFrame({"y_true": half, "y_prob": 0.5, "sex": ["f", "m", "m", "f"] * 10})
    run = shelf.run("Flat", "tied", table)
    page = open_app("Diagnose", shelf.uri, run=run, band="0.4-0.6")
    assert any("No row lies here" in text for text in page.texts)
