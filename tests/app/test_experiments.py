"""The Experiments page: every run with true numbers, narrowed down, and led on to Diagnose."""

from __future__ import annotations

import math
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rise_core import Evaluation
from rise_core.wording import format_short
from tests.app.conftest import Shelf, Truth, predictions_table
from tests.app.reading import Screen, values_of

Open = Callable[..., Screen]
Ask = Callable[[str], Truth]

SHOWN = ("accuracy", "dp", "md", "f_mean", "f_shift", "f_acc", "w1")


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    """Thirty runs of two data sets: one is running, one has no table, one table is no use."""
    shelf = Shelf(tmp_path_factory.mktemp("many"))
    for number in range(27):
        algorithm = ("ERM", "IRM", "Mixup")[number % 3]
        shelf.run(
            "Many",
            f"run {number:02d}",
            predictions_table(number, 60),
            algorithm=algorithm,
            dataset="Alpha" if number < 14 else "Beta",
            team="blue" if number == 5 else "red",
        )
    shelf.run("Many", "still going", predictions_table(90, 60), status="RUNNING", algorithm="ERM")
    shelf.run("Many", "no table", None, algorithm="ERM")
    shelf.run("Many", "no groups", predictions_table(91, 60)[["y_true", "y_prob"]])
    return shelf


def bare(page: Screen) -> pd.DataFrame:
    """Return the table with its indicators as numbers, by run name."""
    (toggle,) = [t for t in page.at.toggle if t.label == "Bare numbers"]
    if not toggle.value:
        toggle.set_value(True)
        page.run().settle()
    return page.table.set_index("run")


def agrees(row: pd.Series[Any], ev: Evaluation) -> None:
    for key in SHOWN:
        value = getattr(ev.indicators, key)
        shown = row[key]
        if math.isfinite(value):
            assert shown == pytest.approx(value, abs=1e-12), key
        else:
            assert pd.isna(shown), key
    assert row["rows"] == ev.n


def names(page: Screen) -> list[str]:
    return [str(name) for name in page.table["run"]]


def test_the_table_holds_every_run_with_its_true_numbers(
    open_app: Open, lab: Shelf, truth: Ask
) -> None:
    page = open_app("Experiments", lab.uri, experiment=lab.experiments["Lab"]).settle()
    runs = [name for name in lab.runs if name != "alone"]
    assert names(page) == runs  # newest first
    shown = bare(page)
    ask = truth(lab.uri).evaluation
    for name in runs:
        agrees(shown.loc[name], ask(lab.runs[name], environment="south"))  # what it holds out
        assert shown.loc[name, "curve"].startswith("data:image/svg+xml")
    assert list(shown["algorithm"].unique()) == ["ERM", "IRM", "Mixup"]
    assert list(shown["seed"].unique()) == ["0", "1"]
    assert shown["curve"].nunique() == len(runs)


def test_numbers_are_drawn_with_interval_and_null_at_first(
    open_app: Open, lab: Shelf, truth: Ask
) -> None:
    page = open_app("Experiments", lab.uri, experiment=lab.experiments["Lab"]).settle()
    row = page.table.set_index("run").loc["irm number 1"]
    ev = truth(lab.uri).evaluation(lab.runs["irm number 1"], environment="south")
    known = ev.uncertainty()
    for key in SHOWN:
        kind, _, data = row[key].partition(",")
        assert kind == "data:image/svg+xml;base64"
        picture = b64decode(data).decode()
        assert format_short(getattr(ev.indicators, key)) in picture
        # A null band is a box; where there is none, nothing is drawn.
        assert ("<rect" in picture) == (not math.isnan(known[key].null_low)), key


def test_each_switch_changes_the_numbers(open_app: Open, lab: Shelf, truth: Ask) -> None:
    ask = truth(lab.uri).evaluation
    run = lab.runs["mixup number 1"]
    page = open_app("Experiments", lab.uri, experiment=lab.experiments["Lab"]).settle()
    seen: list[tuple[Any, ...]] = [tuple(bare(page).loc["mixup number 1", list(SHOWN)])]

    def changed(ev: Evaluation) -> None:
        page.settle()
        row = bare(page).loc["mixup number 1"]
        agrees(row, ev)
        numbers = tuple(row[list(SHOWN)])
        assert numbers not in seen
        seen.append(numbers)

    page.choose("Environment", "north")
    changed(ask(run, environment="north"))
    page.choose("Environment", "(all)")
    changed(ask(run))
    page.choose("Protected attribute", "region")
    changed(ask(run, attribute="region"))
    page.choose("Residual", "decision_gap")
    changed(ask(run, attribute="region", residual="decision_gap"))
    page.choose("Threshold", 0.3)
    settings: dict[str, Any] = {"residual": "decision_gap", "threshold": 0.3}
    changed(ask(run, attribute="region", **settings))
    page.choose("Base rates", "equal")
    changed(ask(run, attribute="region", base_rates="equal", **settings))
    assert {
        "environment": "(all)",
        "attribute": "region",
        "residual": "decision_gap",
        "threshold": "0.3",
        "rates": "equal",
    }.items() <= page.address.items()

    page.choose("Experiment", lab.experiments["Other"]).settle()
    assert names(page) == ["alone"]
    agrees(bare(page).loc["alone"], ask(lab.runs["alone"], attribute="region", **settings,
                                        base_rates="equal"))  # fmt: skip


def test_text_and_lists_narrow_the_runs(open_app: Open, many: Shelf) -> None:
    page = open_app("Experiments", many.uri, experiment=many.experiments["Many"]).settle()
    page.choose("Find", "team=blue").settle()
    assert names(page) == ["run 05"]
    page.choose("Find", "team=RED algorithm=").settle()
    page.choose("Algorithm", ["IRM", "Mixup"]).settle()
    found = [n for n in range(27) if n % 3 and n != 5]
    assert names(page) == [f"run {n:02d}" for n in found]
    page.choose("Data set", ["Beta"]).settle()
    assert names(page) == [f"run {n:02d}" for n in found if n >= 14]
    page.choose("Find", "irm").settle()  # a word is looked for in the algorithm, too
    assert names(page) == [f"run {n:02d}" for n in found if n >= 14 and n % 3 == 1]
    page.choose("Find", "nothing like it")
    assert any("No run matches" in info.value for info in page.at.info)
    page.choose("Find", "").settle()
    assert all(name.startswith("run") for name in names(page))


def test_more_than_a_page_of_runs_is_paged(open_app: Open, many: Shelf) -> None:
    page = open_app("Experiments", many.uri, experiment=many.experiments["Many"]).settle()
    assert names(page) == [f"run {n:02d}" for n in range(25)]
    (pages,) = page.at.pagination
    pages.set_value(2)
    page.run().settle()
    assert names(page) == ["run 25", "run 26", "still going"]


def test_running_runs_are_marked_and_unreadable_ones_say_why(open_app: Open, many: Shelf) -> None:
    page = open_app("Experiments", many.uri, experiment=many.experiments["Many"])
    page.at.pagination[0].set_value(2)
    page.run().settle()
    status = page.table.set_index("run")["status"]
    assert status["still going"] == "running"
    assert status["run 26"] == "finished"
    (broken,) = [d.value for d in page.at.dataframe if "reason" in d.value.columns]
    reasons = broken.set_index("run")["reason"]
    assert set(reasons.index) == {"no table", "no groups"}
    assert "log_predictions" in reasons["no table"]
    assert "group" in reasons["no groups"]
    assert any("2 of these runs" in part.label for part in page.at.expander)


def select(page: Screen, *rows: int) -> Screen:
    """Tick rows of the table, as the browser would report it."""
    page.at.session_state[page.table_key] = {
        "selection": {"rows": list(rows), "columns": [], "cells": []}
    }
    return page.run()


def test_a_selected_run_is_diagnosed_with_the_settings_that_were_chosen(
    open_app: Open, lab: Shelf
) -> None:
    page = open_app(
        "Experiments", lab.uri, experiment=lab.experiments["Lab"], threshold="0.4"
    ).settle()
    assert page.widget("Diagnose").disabled
    page.choose("Protected attribute", "region").settle()
    select(page, names(page).index("irm number 1"))
    assert "irm number 1" in page.texts
    page.press("Diagnose")
    assert "IRM" in page.title
    wanted = {"run": lab.runs["irm number 1"], "attribute": "region", "threshold": "0.4"}
    assert wanted.items() <= page.address.items()
    assert page.facts["threshold"] == "0.4"
    assert wanted["run"][:8] in page.facts["run"]


def test_a_selection_names_runs_and_not_row_numbers(open_app: Open, lab: Shelf) -> None:
    page = open_app("Experiments", lab.uri, experiment=lab.experiments["Lab"]).settle()
    select(page, 0)
    assert "erm number 0" in page.texts
    page.choose("Find", "mixup").settle()
    # Row 0 is another run now; it must not be taken for the selected one.
    assert "mixup number 0" not in page.texts
    assert page.widget("Diagnose").disabled


def test_two_selected_runs_cannot_be_diagnosed_at_once(open_app: Open, lab: Shelf) -> None:
    page = open_app("Experiments", lab.uri, experiment=lab.experiments["Lab"]).settle()
    select(page, 0, 2)
    assert page.widget("Diagnose").disabled


def test_a_model_of_the_registry_leads_to_its_run(open_app: Open, lab: Shelf) -> None:
    client, run_id = lab.client, lab.runs["irm number 1"]
    client.create_registered_model("credit")
    client.create_model_version("credit", f"runs:/{run_id}/model", run_id)
    client.set_registered_model_alias("credit", "champion", "1")
    page = open_app("Experiments", lab.uri, find="models:/credit@champion")
    assert "models:/credit@champion was made by run irm number 1." in page.texts
    (link,) = (
        node.proto.query_string
        for node in page.at.get("page_link")
        if node.proto.label.startswith("Look at irm")
    )
    assert f"run={run_id}" in link
    page = open_app("Experiments", lab.uri, find="models:/credit@nobody")
    assert "This model leads to no run." in page.markdown
    assert any("not found" in text for text in page.texts)


def test_the_demo_is_listed_with_nothing_set(open_app: Open, demo: Path, truth: Ask) -> None:
    page = open_app("Experiments", None).settle()
    ask = truth(f"sqlite:///{demo / 'demo' / 'mlflow.db'}")
    shown = bare(page)
    assert shown["algorithm"].nunique() >= 8
    experiment = page.widget("Experiment").value
    run = next(iter(ask.store.runs(experiment).runs))
    agrees(shown.loc[run.name], ask.evaluation(run.id, environment=run.environment))
    assert values_of(ask.evaluation(run.id))
