"""The Environments page: heat map, one model, drift, and what is left out."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import streamlit as st

from rise_core.columns import Roles
from rise_core.environments import average_over, drift
from rise_core.wording import format_short
from tests.app.conftest import Shelf, Truth, predictions_table
from tests.app.reading import Screen

Open = Callable[..., Screen]
Ask = Callable[[str], Truth]


def opened(open_app: Open, lab: Shelf, **query: str) -> Screen:
    return open_app("Environments", lab.uri, experiment=lab.experiments["Lab"], **query).settle()


def description(page: Screen, start: str) -> str:
    """The alternative text of a chart that begins so."""
    said = [json.loads(c.proto.spec)["description"] for c in page.at.get("vega_lite_chart")]
    return next(text for text in said if text.startswith(start))


def rows_of_the_table(page: Screen) -> dict[str, list[str]]:
    """The numbers of each row of the model's table."""
    found = re.search(r'<table class="rise-matrix.*?</table>', page.html, re.S)
    assert found
    rows = {}
    for row in re.findall(r"<tr>(.*?)</tr>", found[0].split("<tbody>")[1], re.S):
        name = re.search(r'<th scope="row">(.*?)<small>', row)
        assert name
        rows[html.unescape(name[1])] = [
            text.removeprefix("~ ") for text in re.findall(r"<b>(.*?)</b>", row)
        ]
    return rows


@pytest.mark.parametrize("by", ["w1", "accuracy", "dp"])
def test_the_heat_map_says_what_the_engine_says(
    by: str, open_app: Open, lab: Shelf, truth: Ask
) -> None:
    page = opened(open_app, lab, by=by)
    told = description(page, "Heat map. ERM")
    for algorithm in ("ERM", "IRM", "Mixup"):
        ev = truth(lab.uri).evaluation(lab.runs[f"{algorithm.lower()} number 0"])
        cells = {label: getattr(part.indicators, by) for label, part in ev.by_environment.items()}
        cells["south (held out)"] = cells.pop("south")
        cells |= {"pooled": getattr(ev.indicators, by), "mean": average_over(ev, by).value}
        for column, value in cells.items():
            shown = re.search(rf"{algorithm}, {re.escape(column)}: (~ )?([^;]*?)[;.] ", told)
            assert shown, column
            assert shown[2] == format_short(value)


def test_cells_that_are_not_told_from_random_are_marked(
    open_app: Open, lab: Shelf, truth: Ask
) -> None:
    page = opened(open_app, lab, by="w1")
    told = description(page, "Heat map. ERM")
    ev = truth(lab.uri).evaluation(lab.runs["erm number 0"])
    for label, part in ev.by_environment.items():
        known = part.uncertainty(200, 200)["w1"]
        name = f"{label} (held out)" if label == "south" else label
        assert (f"ERM, {name}: ~ " in told) == (known.distinguishable is False)


def test_one_model_pooled_mean_and_each_environment(open_app: Open, lab: Shelf, truth: Ask) -> None:
    page = opened(open_app, lab, model="IRM")
    ev = truth(lab.uri).evaluation(lab.runs["irm number 0"])
    rows = rows_of_the_table(page)
    assert list(rows) == ["pooled", "mean over environments", "north", "south (held out)"]
    keys = ("accuracy", "dp", "md", "f_mean", "f_shift", "f_acc", "w1")
    parts = {"pooled": ev, "north": ev.by_environment["north"]}
    for name, part in parts.items():
        assert rows[name] == [format_short(getattr(part.indicators, key)) for key in keys]
    assert rows["mean over environments"] == [
        format_short(average_over(ev, key).value) for key in keys
    ]
    assert page.address["model"] == "IRM"
    # A curve for each environment, on the same axes.
    panels = [
        spec
        for chart in page.at.get("vega_lite_chart")
        if "RISE chart" in (spec := json.loads(chart.proto.spec)).get("description", "")
    ]
    assert len(panels) == 2


def test_drift_between_environments(open_app: Open, lab: Shelf, truth: Ask) -> None:
    page = opened(open_app, lab)
    ev = truth(lab.uri).evaluation(lab.runs["erm number 0"])
    (pair,) = drift(ev)
    told = description(page, "Heat map. south")
    assert f"{pair.w1.value:.3f} ({pair.w1.low:.3f} to {pair.w1.high:.3f})" in told


def test_other_switches_reach_the_page(open_app: Open, lab: Shelf, truth: Ask) -> None:
    page = opened(open_app, lab, threshold="0.3", attribute="region", residual="decision_gap")
    ev = truth(lab.uri).evaluation(
        lab.runs["erm number 0"], attribute="region", threshold=0.3, residual="decision_gap"
    )
    assert rows_of_the_table(page)["pooled"][0] == format_short(ev.indicators.accuracy)
    assert rows_of_the_table(page)["pooled"][-1] == format_short(ev.indicators.w1)
    page.choose("Base rates", "equal").settle()
    assert page.facts["base rates"] == "equal"


def test_a_run_without_environments_is_left_out_with_the_reason(
    open_app: Open, tmp_path: Path
) -> None:
    shelf = Shelf(tmp_path)
    plain = predictions_table(1, 100).drop(columns=["environment", "region"])
    run = shelf.run("Half", "plain", plain, algorithm="Plain")
    half = {"experiment": shelf.experiments["Half"]}
    page = open_app("Environments", shelf.uri, runs=run, **half)
    assert any("no environment column" in text for text in page.texts)
    assert any("Pick a run whose table has environments" in i.value for i in page.at.info)
    shelf.run("Half", "placed", predictions_table(2, 100), algorithm="Placed")
    st.cache_resource.clear()
    page = open_app("Environments", shelf.uri, **half).settle()
    assert any("no environment column" in text for text in page.texts)
    assert "pooled" in rows_of_the_table(page)


def test_one_environment_has_no_drift(open_app: Open, tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    table = predictions_table(1, 100).assign(environment="here")
    roles = Roles(
        y_true="y_true",
        y_prob="y_prob",
        sensitive_features=("sex",),
        environment="environment",
        pos_label="yes",
    )
    run = shelf.run("One", "one", table, roles=roles)
    one = {"experiment": shelf.experiments["One"]}
    page = open_app("Environments", shelf.uri, runs=run, **one).settle()
    assert any("one environment only" in text for text in page.texts)


@pytest.mark.parametrize(
    "garbage", [{"by": "luck"}, {"model": "none"}, {"runs": "x|y"}, {"by": "<script>"}]
)
def test_an_address_with_garbage_falls_back(
    garbage: dict[str, Any], open_app: Open, lab: Shelf
) -> None:
    page = opened(open_app, lab, **garbage)
    if "runs" in garbage:
        assert any("Pick a run" in i.value for i in page.at.info) or page.facts
    else:
        assert page.widget("Indicator").value == "w1"
        assert page.widget("Model below").value == "ERM"
