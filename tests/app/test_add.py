"""The Add predictions page: a file in, the same view as for a run out, and no MLflow needed."""

from __future__ import annotations

import gzip
import io
import re
import time
from collections.abc import Callable
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rise_core import Evaluation, compare, evaluate
from rise_core.charts import tables
from rise_core.tracking import connect
from rise_core.wording import format_short
from tests.app.conftest import PAGES, Shelf, predictions_table
from tests.app.reading import Screen, same_rows, values_of

Open = Callable[..., Screen]

# Nobody answers there: a page that asked for a store would say so.
NO_STORE = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def _page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(PAGES, "Add predictions", "pages/add.py")
    monkeypatch.setenv("RISE_HOME", str(tmp_path / "home"))


@pytest.fixture
def table() -> pd.DataFrame:
    return predictions_table(3)


def truth(table: pd.DataFrame, **arguments: Any) -> Evaluation:
    return evaluate(
        table["y_true"],
        table["y_prob"],
        sensitive_features=table[["sex", "region"]],
        environment=table["environment"],
        **arguments,
    )


def agrees(page: Screen, ev: Evaluation) -> None:
    """Hold that the page shows this evaluation."""
    assert same_rows(page.curves, tables.curve_table(tables.curves_of(ev, None)))
    assert page.cards == values_of(ev, page.cards)
    assert page.facts["rows used"] == f"{ev.n:,} of {ev.n_rows:,}"
    assert page.facts["positive class"] == ev.predictions.pos_label


def add(page: Screen, *files: tuple[str, bytes]) -> Screen:
    (uploader,) = page.at.file_uploader
    uploader.set_value([(name, content, "application/octet-stream") for name, content in files])
    page.run()
    assert not page.at.file_uploader[0].value, "what was read is still in the uploader"
    return page


def csv(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False).encode()


def parquet(table: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.to_parquet(buffer)
    return buffer.getvalue()


def has_chart(page: Screen) -> bool:
    return bool(page.at.get("vega_lite_chart"))


def field(page: Screen, kind: str, label: str) -> Any:
    (found,) = (w for w in getattr(page.at, kind) if w.label == label)
    return found


def submit(page: Screen, label: str) -> Screen:
    next(b for b in page.at.button if b.label == label).click()
    return page.run()


def test_without_a_file_it_says_what_is_needed(open_app: Open, tmp_path: Path) -> None:
    page = open_app("Add predictions", NO_STORE)
    assert page.title == "Add predictions"
    assert any("score of the positive class" in text for text in page.texts)
    assert not has_chart(page)
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("mine.csv", csv),
        ("mine.csv.gz", lambda t: gzip.compress(csv(t))),
        ("mine.parquet", parquet),
        ("mine.jsonl", lambda t: t.to_json(orient="records", lines=True).encode()),
        ("mine.json", lambda t: t.to_json(orient="records").encode()),
        ("split.json", lambda t: t.to_json(orient="split", index=False).encode()),
    ],
)
def test_a_file_ends_in_the_view_of_a_run(
    open_app: Open, table: pd.DataFrame, name: str, write: Callable[[pd.DataFrame], bytes]
) -> None:
    page = add(open_app("Add predictions", NO_STORE), (name, write(table)))
    agrees(page, truth(table))
    assert page.title.startswith(name)
    assert name in page.facts["file"]


def test_switches_work_as_on_diagnose(open_app: Open, table: pd.DataFrame) -> None:
    page = add(open_app("Add predictions", NO_STORE), ("mine.csv", csv(table)))
    page.choose("Protected attribute", "region")
    agrees(page, truth(table).by_feature["region"])
    page.choose("Environment", "north")
    north = table[table["environment"] == "north"]
    page.choose("Protected attribute", "sex")
    agrees(page, truth(north))
    page.choose("Base rates", "equal")
    agrees(page, truth(north, base_rates="equal"))
    page.choose("Threshold", 0.3)
    agrees(page, truth(north, base_rates="equal", threshold=0.3))


def test_rows_left_out_are_counted_by_reason(open_app: Open, table: pd.DataFrame) -> None:
    holes = table.copy()
    holes.loc[:4, "y_prob"] = np.nan
    holes.loc[10:12, "y_true"] = None
    page = add(open_app("Add predictions", NO_STORE), ("holes.parquet", parquet(holes)))
    assert page.facts["rows used"] == "232 of 240"
    assert "5 (the score is missing)" in page.facts["left out"]
    assert "3 (the label is missing)" in page.facts["left out"]


@pytest.mark.parametrize(
    ("made", "press"),
    [
        (lambda p: 100 * p, "Divide by 100"),
        (lambda p: np.log(p / (1 - p)), "Make probabilities of them"),
    ],
    ids=["percent", "logits"],
)
def test_scores_are_converted_only_after_a_yes(
    open_app: Open, table: pd.DataFrame, made: Callable[[Any], Any], press: str
) -> None:
    table["y_prob"] = table["y_prob"].clip(0.001, 0.999)
    other = table.assign(y_prob=made(table["y_prob"]))
    page = add(open_app("Add predictions", NO_STORE), ("other.parquet", parquet(other)))
    assert not has_chart(page)
    page.press(press)
    agrees(page, truth(table))
    assert any("were converted from" in text for text in page.texts)


def test_hard_decisions_are_scores_only_after_a_yes(open_app: Open, table: pd.DataFrame) -> None:
    hard = table.drop(columns="y_prob").assign(
        prediction=np.where(table["y_prob"] >= 0.5, "yes", "no")
    )
    page = add(open_app("Add predictions", NO_STORE), ("hard.csv", csv(hard)))
    assert not has_chart(page)
    page.press("Take them as scores 0 and 1")
    agrees(page, truth(table.assign(y_prob=(table["y_prob"] >= 0.5).astype(float))))


def test_it_asks_which_class_is_the_positive_one(open_app: Open, table: pd.DataFrame) -> None:
    coats = table.assign(y_true=np.where(table["y_true"] == "yes", "coat", "top"))
    page = add(open_app("Add predictions", NO_STORE), ("coats.csv", csv(coats)))
    assert not has_chart(page)
    assert any("Which class" in text for text in page.texts)
    page.press("coat")
    agrees(page, truth(coats, pos_label="coat"))


def test_one_class_of_many_is_held_against_the_rest(open_app: Open, table: pd.DataFrame) -> None:
    kinds = table.rename(columns={"y_true": "label"})
    kinds["label"] = np.where(
        table["y_true"] == "yes", "cat", np.where(table["sex"] == "male", "dog", "owl")
    )
    page = add(open_app("Add predictions", NO_STORE), ("kinds.csv", csv(kinds)))
    assert not has_chart(page)
    page.press("cat")
    binary = table.assign(y_true=np.where(table["y_true"] == "yes", "cat", "not cat"))
    agrees(page, truth(binary, pos_label="cat"))


def test_columns_can_be_corrected_and_put_back(open_app: Open, table: pd.DataFrame) -> None:
    two = table.assign(other=1 - table["y_prob"])
    page = add(open_app("Add predictions", NO_STORE), ("two.csv", csv(two)))
    found = truth(table)
    agrees(page, found)
    field(page, "selectbox", "Score of the positive class").set_value("other")
    field(page, "selectbox", "Positive class").set_value("no")
    submit(page, "Use these columns")
    agrees(page, truth(table.assign(y_prob=1 - table["y_prob"]), pos_label="no"))
    submit(page, "Back to what was found")
    agrees(page, found)


def test_another_label_column_brings_its_own_classes(open_app: Open, table: pd.DataFrame) -> None:
    two = table.assign(late=np.where(table["sex"] == "male", "true", "false"))
    page = add(open_app("Add predictions", NO_STORE), ("two.parquet", parquet(two)))
    field(page, "selectbox", "Label").set_value("late")
    submit(page, "Use these columns")
    assert page.facts["positive class"] == "true"


def test_the_columns_are_shown_with_reasons(open_app: Open, table: pd.DataFrame) -> None:
    page = add(open_app("Add predictions", NO_STORE), ("mine.csv", csv(table)))
    reasons = next(d.value for d in page.at.dataframe if "why" in d.value.columns)
    assert set(reasons["is"]) >= {"y_true", "y_prob", "sex", "region", "environment", "yes"}
    assert (reasons["why"] != "").all()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("empty.csv", b"", "0 bytes"),
        ("words.csv", b"hello\nyou\n", "holds no table"),
        ("page.json", b"<html>log in</html>", "web page"),
        ("half.parquet", b"PAR1 and no more", "damaged"),
        ("half.json", b'[{"y_true": 1, ', "damaged JSON"),
        ("latin.csv", "y_true,y_prob,sex\n1,0.5,\xe9\n".encode("latin-1"), "not UTF-8"),
        ("half.csv.gz", gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:25], "cannot be unpacked"),
    ],
)
def test_a_bad_file_is_explained_and_nothing_is_lost(
    open_app: Open, table: pd.DataFrame, name: str, content: bytes, says: str
) -> None:
    page = add(open_app("Add predictions", NO_STORE), ("mine.csv", csv(table)))
    add(page, (name, content))
    (fault,) = (text for text in page.texts if name in text)
    assert says in fault
    assert "Log the table" not in fault
    agrees(page, truth(table))


def test_a_table_that_is_none_of_predictions_can_be_mapped(open_app: Open) -> None:
    frame = pd.DataFrame({"height": [1.5, 1.7, 1.6], "name": ["Ann", "Bo", "Cy"]})
    page = add(open_app("Add predictions", NO_STORE), ("people.csv", csv(frame)))
    assert not has_chart(page)
    assert any("No column is set as the label" in text for text in page.texts)
    assert field(page, "selectbox", "Label").options == ["(none)", "height", "name"]


def test_files_are_kept_for_the_session_and_listed(open_app: Open, table: pd.DataFrame) -> None:
    page = open_app("Add predictions", NO_STORE)
    other = predictions_table(9)
    add(page, ("one.csv", csv(table)), ("two.csv", csv(other)))
    agrees(page, truth(other))
    keys = page.widget("File").options
    assert keys == ["one.csv", "two.csv"]
    page.at.switch_page("pages/learn.py")
    page.run()
    page.at.switch_page("pages/add.py")
    page.run()
    agrees(page, truth(other))
    one = next(iter(page.at.session_state["added files"]))
    page.choose("File", one)
    agrees(page, truth(table))
    assert page.address["file"] == one
    submit(page, "Forget this file")
    assert page.widget("File").options == ["two.csv"]
    agrees(page, truth(other))


def test_the_same_file_again_keeps_its_roles(open_app: Open, table: pd.DataFrame) -> None:
    coats = table.assign(y_true=np.where(table["y_true"] == "yes", "coat", "top"))
    page = add(open_app("Add predictions", NO_STORE), ("coats.csv", csv(coats)))
    page.press("coat")
    add(page, ("coats.csv", csv(coats)))
    agrees(page, truth(coats, pos_label="coat"))


def test_a_link_to_a_file_of_another_session_says_so(open_app: Open) -> None:
    page = open_app("Add predictions", NO_STORE, file="0123abcd")
    assert any("kept for the session" in text for text in page.texts)
    assert "file" not in page.address


def test_names_from_outside_are_text_and_nothing_else(open_app: Open, table: pd.DataFrame) -> None:
    evil = "![x](http://evil.example/x.png)"
    mine = table.rename(columns={"sex": evil})
    mine["y_true"] = np.where(table["y_true"] == "yes", evil, "<b>no</b>")
    name = "<img src=x onerror=alert(1)>.csv"
    page = add(open_app("Add predictions", NO_STORE), (name, csv(mine)))
    buttons = [b.label for b in page.at.button if "evil" in b.label]
    assert buttons
    assert all("![x](" not in label for label in buttons)
    next(b for b in page.at.button if "evil" in b.label).click()
    page.run()
    assert has_chart(page)
    assert "![x](" not in page.markdown
    assert "<img" not in page.html
    assert "<b>no</b>" not in page.html


# ---------------------------------------------------------------------------------- logging


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    """A store of this test's own, which it may write to."""
    made = Shelf(tmp_path)
    made.experiment("There")
    return made


def fill_in(page: Screen, experiment: str, *, sure: bool) -> Screen:
    field(page, "text_input", "Experiment").set_value(experiment)
    field(page, "text_input", "Algorithm").set_value("By hand")
    box = next(b for b in page.at.checkbox if b.label.startswith("Yes, write"))
    box.set_value(sure)
    return submit(page, "Log as a run")


def test_nothing_is_written_without_a_yes(
    open_app: Open, table: pd.DataFrame, shelf: Shelf
) -> None:
    page = open_app("Add predictions", shelf.uri, tab="Log as a run")
    add(page, ("mine.csv", csv(table)))
    fill_in(page, "Fresh", sure=False)
    assert "Nothing was written" in page.markdown
    assert {e.name for e in connect(shelf.uri).experiments()} == {"Default", "There"}


@pytest.mark.parametrize("experiment", ["There", "Fresh"])
def test_a_file_becomes_a_run_that_diagnose_shows(
    open_app: Open, table: pd.DataFrame, shelf: Shelf, experiment: str, root: Path
) -> None:
    holes = table.copy()
    holes.loc[:4, "y_prob"] = np.nan
    before = set(root.iterdir())
    page = open_app("Add predictions", shelf.uri, tab="Log as a run")
    add(page, ("mine.csv", csv(holes)))
    fill_in(page, experiment, sure=True)
    store = connect(shelf.uri, cache_dir=shelf.folder / "cache")
    (found,) = (e for e in store.experiments() if e.name == experiment)
    (run,) = store.runs([found.id]).runs
    assert any(run.id in text for text in page.texts)
    assert (run.name, run.algorithm, run.status) == ("mine", "By hand", "FINISHED")
    assert set(root.iterdir()) == before, "files lie outside of the store"

    shown = open_app("Diagnose", shelf.uri, run=run.id)
    ev = truth(holes.dropna())
    assert same_rows(shown.curves, tables.curve_table(tables.curves_of(ev, None)))
    assert shown.cards == values_of(ev, shown.cards)
    assert run.metrics["rise.w1"] == pytest.approx(ev.indicators.w1)


def test_a_store_that_does_not_answer_costs_nothing(open_app: Open, table: pd.DataFrame) -> None:
    page = open_app("Add predictions", NO_STORE, tab="Log as a run")
    add(page, ("mine.csv", csv(table)))
    fill_in(page, "Fresh", sure=True)
    assert "The run was not logged" in page.markdown
    agrees(page, truth(table))


def test_indicators_can_be_saved_with_their_intervals(open_app: Open, table: pd.DataFrame) -> None:
    page = open_app("Add predictions", NO_STORE, tab="Save")
    add(page, ("mine.csv", csv(table)))
    for _ in range(100):
        if "Indicators (CSV)" in (labels := [b.label for b in page.at.get("download_button")]):
            break
        page.run()
    assert "Indicators (CSV)" in labels


@pytest.mark.parametrize(
    "tab",
    [
        "Groups",
        "Segments of the gap",
        "Given the label",
        "Calibration",
        "Threshold",
        "Knees",
        "Rows",
    ],
)
def test_every_closer_look_works_on_a_file(open_app: Open, table: pd.DataFrame, tab: str) -> None:
    page = open_app("Add predictions", NO_STORE, tab=tab)
    add(page, ("mine.csv", csv(table)))
    assert page.address["tab"] == tab
    assert [t.label for t in page.at.tabs if t.children] == [tab], "only the open one is drawn"
    assert page.facts["rows used"] == "240 of 240"


def test_files_are_compared_and_one_that_cannot_be_is_left_out(
    open_app: Open, table: pd.DataFrame
) -> None:
    other = table.assign(y_prob=1 - (1 - table["y_prob"]) * 0.6)
    asks = table.assign(y_true=table["y_true"].map({"yes": "coat", "no": "top"}))
    page = open_app("Add predictions", NO_STORE, tab="Compare files")
    add(page, ("open.csv", csv(asks)))
    add(page, ("mine.csv", csv(table)))
    page = add(page, ("other.csv", csv(other)))
    ends = time.monotonic() + 60
    while "Differences to mine.csv" not in page.html and time.monotonic() < ends:
        time.sleep(0.2)
        page.run()
    models = {"mine.csv": truth(table), "other.csv": truth(other)}
    found = compare(models).table.set_index(["model", "indicator"])
    shown: dict[str, list[str]] = {}
    for name, row in re.findall(r'<tr><th scope="row">([^<]*)</th>(.*?)</tr>', page.html):
        shown.setdefault(name, re.findall(r"<b>([^<]*)</b>", row))  # the matrix comes first
    keys = ("accuracy", "dp", "md", "f_mean", "f_shift", "f_acc", "w1")
    for name in models:
        assert shown[name] == [
            "–" if isnan(value) else format_short(value)
            for value in (found.loc[(name, key), "value"] for key in keys)
        ]
    assert any("open\\.csv is left out" in text for text in page.markdown.splitlines())


def test_one_file_alone_has_nothing_to_be_compared_with(
    open_app: Open, table: pd.DataFrame
) -> None:
    page = add(open_app("Add predictions", NO_STORE), ("mine.csv", csv(table)))
    assert "Compare files" not in [tab.label for tab in page.at.tabs]
