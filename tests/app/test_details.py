"""The closer looks on Diagnose: each tab shows what the engine says, and only when it is open."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from rise_core import Evaluation
from rise_core.calibration import calibrate
from rise_core.columns import Roles
from rise_core.conditional import given_labels
from rise_core.thresholds import threshold_sweep
from tests.app.conftest import Shelf, Truth
from tests.app.reading import Screen

Open = Callable[..., Screen]
Ask = Callable[[str], Truth]

FIRST = "erm number 0"
ALL = {"environment": "(all)"}


@pytest.fixture
def ev(lab: Shelf, truth: Ask) -> Evaluation:
    return truth(lab.uri).evaluation(lab.runs[FIRST])


def opened(open_app: Open, lab: Shelf, tab: str, **query: str) -> Screen:
    return open_app("Diagnose", lab.uri, run=lab.runs[FIRST], tab=tab, **{**ALL, **query})


def charts(page: Screen) -> list[dict[str, Any]]:
    return [json.loads(chart.proto.spec) for chart in page.at.get("vega_lite_chart")]


def frame(page: Screen, *columns: str) -> Any:
    """The table that has these columns."""
    found = [d.value for d in page.at.dataframe if set(columns) <= set(d.value.columns)]
    assert len(found) == 1, [list(d.value.columns) for d in page.at.dataframe]
    return found[0]


def test_segments_are_drawn_with_shares_that_add_up(
    open_app: Open, lab: Shelf, ev: Evaluation
) -> None:
    page = opened(open_app, lab, "Segments of the gap")
    assert len(charts(page)) == 4
    table = frame(page, "segment", "tight?")
    assert table["segment"].tolist() == [s.name for s in ev.segments]
    assert table["share of W1"].sum() == pytest.approx(1)
    assert table["area"].sum() == pytest.approx(ev.indicators.w1)
    assert set(table["tight?"]) <= {"–", "no", "not told from 0"}


def test_the_two_labels_apart(open_app: Open, lab: Shelf, ev: Evaluation) -> None:
    page = opened(open_app, lab, "Given the label")
    table = frame(page, "rows", "called positive").set_index(["rows", "group"])
    parts = given_labels(ev)
    for label, name in ((1, "y = yes"), (0, "y = no")):
        for group, curve in parts[label].groups.items():
            row = table.loc[(name, group)]
            assert row["n"] == curve.n
            assert row["called positive"] == pytest.approx(curve.positive_rate)
        assert f"W1 {parts[label].indicators.w1:.3f}" in page.html
    assert sum(part.n for part in parts.values()) == ev.n


def test_calibration_of_every_group(open_app: Open, lab: Shelf, ev: Evaluation) -> None:
    page = opened(open_app, lab, "Calibration")
    found = calibrate(ev)
    told = next(c["description"] for c in charts(page) if "Reliability" in c["description"])
    for group in found.groups.values():
        assert f"{group.label}: ECE {group.ece:.3f}" in told
    assert len(frame(page, "mean_score", "observed")) == len(found.table)


def test_thresholds_of_every_group(open_app: Open, lab: Shelf, ev: Evaluation) -> None:
    page = opened(open_app, lab, "Threshold", threshold="0.3")
    row = threshold_sweep(ev).iloc[30]
    table = frame(page, "group", "false positive rate").set_index("group")
    for place, label in enumerate(ev.groups):
        assert float(table.loc[label, "positive rate"]) == pytest.approx(
            row[f"positive_{place}"], abs=6e-4
        )
    said = [c["description"] for c in charts(page) if "over all thresholds" in c["description"]]
    assert len(said) == 3
    assert f"At 0.3: accuracy {row['accuracy']:.3f}" in said[0]
    assert any("do not depend on the threshold" in text for text in page.texts)
    page.choose("Residual", "decision_gap")
    assert any("those of the current threshold" in text for text in page.texts)


def test_a_group_of_its_own_has_no_gap_to_look_at(open_app: Open, tmp_path: Any) -> None:
    shelf = Shelf(tmp_path)
    table = pd.DataFrame(
        {"y_true": ["no", "yes"] * 30, "y_prob": [0.2, 0.7] * 30, "sex": ["f"] * 60}
    )
    roles = Roles(y_true="y_true", y_prob="y_prob", sensitive_features=("sex",), pos_label="yes")
    run = shelf.run("One", "one", table, roles=roles)
    for tab in ("Segments of the gap", "Given the label", "Calibration", "Threshold"):
        page = open_app("Diagnose", shelf.uri, run=run, tab=tab)
        assert page.cards["w1"] == "–"


@pytest.mark.parametrize("query", [{"rates": "equal"}, {"attribute": "region"}])
@pytest.mark.parametrize(
    "tab", ["Segments of the gap", "Given the label", "Calibration", "Threshold"]
)
def test_every_tab_opens_with_every_switch(
    tab: str, query: dict[str, str], open_app: Open, lab: Shelf
) -> None:
    page = opened(open_app, lab, tab, **query)
    assert page.address["tab"] == tab
    assert len(charts(page)) > 1


def test_a_tab_that_is_not_there_is_the_first_one(open_app: Open, lab: Shelf) -> None:
    page = opened(open_app, lab, "Nonsense")
    assert len(charts(page)) == 1
    assert page.cards
