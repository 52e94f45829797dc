"""What a run's columns are: bands, crossings, tables and conversions, said once on Diagnose."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rise_core import Evaluation, evaluate
from rise_core.columns import Roles
from rise_core.tracking import connect
from tests.app.conftest import PAGES, Shelf, predictions_table
from tests.app.reading import Screen, values_of

Open = Callable[..., Screen]

USE, BACK = "Use for this experiment", "Back to what was found"


def aged(seed: int, rows: int = 300) -> pd.DataFrame:
    """A table with an age of many values, some of them missing."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, rows).astype(float)
    age[:7] = np.nan
    return predictions_table(seed, rows).assign(age=age)


def ages() -> pd.DataFrame:
    return aged(1)


def percent() -> pd.DataFrame:
    return aged(2).assign(y_prob=lambda t: 100 * t["y_prob"])


def kinds() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    table = aged(3).drop(columns=["y_true", "y_prob"])
    table["label"] = rng.choice(["cat", "cow", "dog"], len(table))
    scores = rng.dirichlet([1, 1, 1], len(table))
    return table.assign(
        **{f"p_{kind}": scores[:, i] for i, kind in enumerate(("cat", "cow", "dog"))}
    )


def hard() -> pd.DataFrame:
    table = aged(4)
    said = np.where(table["y_prob"] >= 0.5, "yes", "no")
    return table.drop(columns="y_prob").assign(prediction=said)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    made = Shelf(tmp_path_factory.mktemp("mapped"))
    for name, table in (("Ages", ages), ("Percent", percent), ("Kinds", kinds), ("Hard", hard)):
        made.run(name, f"{name} a", table(), algorithm="A")
        made.run(name, f"{name} b", table(), algorithm="B")
    two = made.run("Two", "both", algorithm="A", status="RUNNING")
    for name, seed in (("test_predictions.csv", 5), ("valid_predictions.csv", 6)):
        file = made.folder / name
        aged(seed).to_csv(file, index=False)
        made.client.log_artifact(two, str(file))
    made.client.set_terminated(two)
    made.run("Two", "one", aged(7), algorithm="B")
    return made


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine on which nothing was kept yet."""
    monkeypatch.setitem(PAGES, "Add predictions", "pages/add.py")
    monkeypatch.setenv("RISE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def kept(shelf: Shelf, home: Path, experiment: str) -> Roles | None:
    store = connect(shelf.uri, cache_dir=home / "cache")
    return store.kept_roles(shelf.experiments[experiment])


def diagnose(open_app: Open, shelf: Shelf, experiment: str, **query: str) -> Screen:
    query = {"tab": "Columns", **query}
    return open_app("Diagnose", shelf.uri, experiment=shelf.experiments[experiment], **query)


def field(page: Screen, label: str, kind: str = "text_input") -> Any:
    (found,) = (w for w in getattr(page.at, kind) if w.label == label)
    return found


def links(page: Screen) -> list[str]:
    """Links in the page itself, not those of the sidebar."""
    return [link.proto.label for link in page.at.main.get("page_link")]


def agrees(page: Screen, ev: Evaluation) -> None:
    assert page.cards == values_of(ev, page.cards)
    assert page.facts["rows used"] == f"{ev.n:,} of {ev.n_rows:,}"
    for label, curve in ev.groups.items():
        assert f"{label} (n = {curve.n:,})" in page.facts["groups"]


def truth(table: pd.DataFrame, feature: str, **options: Any) -> Evaluation:
    return evaluate(
        table["y_true"],
        table["y_prob"],
        sensitive_features=table[["sex", "region", "age"]],
        **options,
    ).by_feature[feature]


# -------------------------------------------------------------------------------- bands


def test_an_age_comes_in_bands_whose_edges_are_seen(open_app: Open, shelf: Shelf) -> None:
    page = diagnose(open_app, shelf, "Ages", attribute="age")
    edges = field(page, "Edges of age").value
    numbers = [float(edge) for edge in edges.split(",")]
    assert len(numbers) == 3
    agrees(page, truth(ages(), "age", bins={"age": numbers}))
    reasons = next(d.value for d in page.at.dataframe if "why" in d.value.columns)
    row = reasons[reasons["is"] == f"age, cut at {edges}"].iloc[0]
    assert edges in row["why"]
    assert row["sure"] == "medium"
    counts = truth(ages(), "age", bins={"age": numbers}).factor
    for label, n in zip(counts.labels, counts.counts, strict=True):
        assert f"<i>{label}</i> <b>{n:,}</b>" in page.html


def test_edges_by_hand_hold_for_the_experiment_and_the_next_person(
    open_app: Open, shelf: Shelf, home: Path
) -> None:
    page = diagnose(open_app, shelf, "Ages", attribute="age")
    field(page, "Edges of age").set_value("30; 45 60")
    page.run()
    assert "<i>45–59</i>" in page.html  # seen before it is used
    assert kept(shelf, home, "Ages") is None
    page.press(USE)
    wanted = truth(ages(), "age", bins={"age": (30, 45, 60)})
    agrees(page, wanted)
    assert wanted.factor.labels == ("under 30", "30–44", "45–59", "60 and over", "(missing)")
    found = kept(shelf, home, "Ages")
    assert found is not None
    assert found.bins == {"age": (30, 45, 60)}
    assert found.reasons["age"] == "chosen by hand"
    # somebody else, another run
    other = open_app(
        "Diagnose", shelf.uri, run=shelf.runs["Ages b"], attribute="age", tab="Columns"
    )
    agrees(other, wanted)
    assert any("are kept for this experiment" in text for text in other.texts)
    assert field(other, "Edges of age").value == "30, 45, 60"
    # and back
    other.press(BACK)
    assert any("are guessed" in text for text in other.texts)
    assert kept(shelf, home, "Ages") is None
    assert field(other, "Edges of age").value != "30, 45, 60"


@pytest.mark.parametrize(
    ("text", "says"), [("30, old", "no number"), ("45, 30", "must rise"), ("inf", "must be finite")]
)
def test_edges_that_cannot_be_meant_are_said_and_nothing_is_lost(
    open_app: Open, shelf: Shelf, home: Path, text: str, says: str
) -> None:
    page = diagnose(open_app, shelf, "Ages", attribute="age")
    before = page.cards
    field(page, "Intersections", "multiselect").set_value(["sex × age"])
    field(page, "Edges of age").set_value(text)
    page.press(USE)
    assert says in page.markdown
    assert page.cards == before
    assert kept(shelf, home, "Ages") is None
    assert field(page, "Edges of age").value == text
    field(page, "Edges of age").set_value("30, 45")
    page.press(USE)
    found = kept(shelf, home, "Ages")
    assert found is not None
    assert (found.bins, found.intersections) == ({"age": (30, 45)}, (("sex", "age"),))


def test_without_edges_each_number_is_a_group(open_app: Open, shelf: Shelf, home: Path) -> None:
    page = diagnose(open_app, shelf, "Ages", attribute="age")
    field(page, "Edges of age").set_value("")
    page.press(USE)
    found = kept(shelf, home, "Ages")
    assert found is not None
    assert found.bins == {}
    assert any("distinct numbers, and each is a group of its own" in text for text in page.texts)
    # the proposal is there again, seen and one click away
    assert field(page, "Edges of age").value


def test_a_measurement_that_is_chosen_by_hand_gets_edges(
    open_app: Open, shelf: Shelf, home: Path
) -> None:
    page = diagnose(open_app, shelf, "Kinds")
    page.press("cat")
    field(page, "Groups", "multiselect").set_value(["p_dog"])
    page.run()
    edges = field(page, r"Edges of p\_dog").value  # its name is no Markdown
    assert len(edges.split(",")) == 3
    page.press(USE)
    assert kept(shelf, home, "Kinds").bins["p_dog"] == tuple(map(float, edges.split(",")))
    assert f"[{edges.split(', ')[0]}, {edges.split(', ')[1]})" in page.facts["groups"]


# ------------------------------------------------------------------------- intersections


def test_groups_are_crossed_on_request(open_app: Open, shelf: Shelf, home: Path) -> None:
    page = diagnose(open_app, shelf, "Ages")
    field(page, "Edges of age").set_value("40")
    crossing = field(page, "Intersections", "multiselect")
    assert crossing.options == ["sex × age", "sex × region", "age × region", "sex × age × region"]
    crossing.set_value(["sex × age", "sex × region"])
    page.run()
    bands = {"bins": {"age": [40]}, "intersections": [("sex", "age"), ("sex", "region")]}
    wanted = truth(ages(), "sex × age", **bands)
    sizes = [curve.n for curve in wanted.groups.values()]
    assert f"{len(sizes)} groups of {min(sizes)} to {max(sizes)} rows" in page.markdown
    page.press(USE)
    page.choose("Protected attribute", "sex × age")
    agrees(page, wanted)
    assert page.address["attribute"] == "sex × age"
    agrees(
        page.choose("Protected attribute", "sex × region"), truth(ages(), "sex × region", **bands)
    )
    # a group that goes takes its crossings along, and leaves its edges
    field(page, "Groups", "multiselect").set_value(["sex", "region"])
    page.run()
    assert field(page, "Intersections", "multiselect").value == ["sex × region"]
    page.press(USE)
    found = kept(shelf, home, "Ages")
    assert found is not None
    assert (found.intersections, found.bins) == ((("sex", "region"),), {"age": (40,)})


# -------------------------------------------------------------------------------- tables


def test_one_of_several_tables_is_picked_and_kept(open_app: Open, shelf: Shelf, home: Path) -> None:
    page = diagnose(open_app, shelf, "Two")
    shown = field(page, "Table", "selectbox")
    assert shown.value == "test_predictions.csv"  # the likeliest
    assert [option.split(" (")[0] for option in shown.options] == [
        "test_predictions.csv",
        "valid_predictions.csv",
    ]
    assert all("kB)" in option for option in shown.options)
    assert "table" not in page.address
    first, second = (truth(aged(seed), "sex") for seed in (5, 6))
    agrees(page, first)
    page.choose("Table", "valid_predictions.csv")
    agrees(page, second)
    assert page.address["table"] == "valid_predictions.csv"
    # a link to it opens it
    agrees(diagnose(open_app, shelf, "Two", table="valid_predictions.csv"), second)
    assert kept(shelf, home, "Two") is None
    page.press(USE)
    found = kept(shelf, home, "Two")
    assert found is not None
    assert found.table == "valid_predictions.csv"
    # from now on it is what everybody sees, on every page
    again = diagnose(open_app, shelf, "Two")
    agrees(again, second)
    assert field(again, "Table", "selectbox").value == "valid_predictions.csv"
    runs = open_app("Experiments", shelf.uri, experiment=shelf.experiments["Two"]).settle()
    line = runs.table.set_index("algorithm").loc["A"]
    assert line["rows"] == second.n
    # a run that lacks it shows the one it has
    other = open_app("Diagnose", shelf.uri, run=shelf.runs["one"])
    agrees(other, truth(aged(7), "sex"))
    assert not other.has("Table")
    again.press(BACK)
    agrees(again, first)


def test_a_table_of_another_run_in_the_address_is_forgotten(open_app: Open, shelf: Shelf) -> None:
    page = diagnose(open_app, shelf, "Two", table="../../secret.csv")
    agrees(page, truth(aged(5), "sex"))
    assert "table" not in page.address


# --------------------------------------------------------------------------- conversions


def test_percent_are_offered_to_be_converted_and_the_answer_is_kept(
    open_app: Open, shelf: Shelf, home: Path
) -> None:
    page = diagnose(open_app, shelf, "Percent")
    assert not page.at.get("vega_lite_chart")
    assert any("look like percent, 0 to 100: its name says score; it runs from" in text
               for text in page.texts)  # fmt: skip
    compared = open_app("Compare", shelf.uri, experiment=shelf.experiments["Percent"])
    assert sum("Nothing is converted unasked" in text for text in compared.texts) == 2
    assert links(compared) == ["Look at A on Diagnose", "Look at B on Diagnose"]
    runs = open_app("Experiments", shelf.uri, experiment=shelf.experiments["Percent"]).settle()
    assert links(runs) == ["Look at Percent a on Diagnose"]
    page.press("Divide by 100")
    wanted = truth(percent().assign(y_prob=lambda t: t["y_prob"] / 100), "sex")
    agrees(page, wanted)
    assert any("'y_prob' were converted from percent" in text for text in page.texts)
    found = kept(shelf, home, "Percent")
    assert found is not None
    assert (found.scale, found.convert) == ("percent", True)
    # no click for anybody else
    agrees(open_app("Diagnose", shelf.uri, run=shelf.runs["Percent b"]), wanted)
    compared = open_app("Compare", shelf.uri, experiment=shelf.experiments["Percent"])
    assert not any("Nothing is converted" in text for text in compared.texts)
    assert sum("were converted from percent" in text for text in compared.texts) == 1
    assert links(compared) == []
    runs = open_app("Experiments", shelf.uri, experiment=shelf.experiments["Percent"]).settle()
    assert set(runs.table["rows"]) == {wanted.n}
    page.press(BACK)
    assert not page.at.get("vega_lite_chart")


def test_what_the_scores_are_can_be_said_otherwise(
    open_app: Open, shelf: Shelf, home: Path
) -> None:
    page = diagnose(open_app, shelf, "Percent")
    field(page, "The scores are", "selectbox").set_value("probability")
    page.press(USE)
    # a person may be wrong: then the range tells, and it is offered again
    assert not page.at.get("vega_lite_chart")
    assert any("look like percent, 0 to 100: they do not lie in [0, 1]" in t for t in page.texts)
    field(page, "The scores are", "selectbox").set_value("percent")
    page.press(USE)  # naming it by hand is a yes
    assert page.at.get("vega_lite_chart")
    assert kept(shelf, home, "Percent").convert


def test_one_class_of_many_is_chosen_with_its_own_score(
    open_app: Open, shelf: Shelf, home: Path
) -> None:
    page = diagnose(open_app, shelf, "Kinds")
    assert any("Which class of 'label' is the score for?" in text for text in page.texts)
    table = kinds()
    for kind in ("cat", "cow"):
        wanted = evaluate(
            table["label"] == kind, table[f"p_{kind}"], sensitive_features=table["sex"]
        )
        if kind == "cat":
            page.press("cat")
        else:  # corrected afterwards, its score goes with it
            field(page, "Positive class", "selectbox").set_value("cow")
            page.press(USE)
        assert page.cards == values_of(wanted, page.cards)
        assert page.facts["positive class"] == kind
        assert any(f"'{kind}' is held against all other labels (2)" in t for t in page.texts)
        found = kept(shelf, home, "Kinds")
        assert found is not None
        assert (found.pos_label, found.y_prob) == (kind, f"p_{kind}")


def test_hard_predictions_are_scores_and_it_is_said(open_app: Open, shelf: Shelf) -> None:
    page = diagnose(open_app, shelf, "Hard")
    table = hard().assign(y_prob=lambda t: (t["prediction"] == "yes").astype(float))
    agrees(page, truth(table, "sex"))
    assert any("analysed as scores 0 and 1" in text for text in page.texts)


# ---------------------------------------------------------------------------- added files


def test_an_added_file_is_cut_and_crossed_likewise(open_app: Open) -> None:
    buffer = io.BytesIO()
    ages().to_parquet(buffer)
    page = open_app("Add predictions", "http://127.0.0.1:9", attribute="age")
    page.at.file_uploader[0].set_value([("ages.parquet", buffer.getvalue(), "")])
    page.run()
    assert field(page, "Edges of age").value
    field(page, "Edges of age").set_value("30, x")
    page.press("Use these columns")
    assert "no number" in page.markdown
    field(page, "Edges of age").set_value("30, 50")
    field(page, "Intersections", "multiselect").set_value(["sex × age"])
    page.press("Use these columns")
    options = {"bins": {"age": [30, 50]}, "intersections": [("sex", "age")]}
    agrees(page, truth(ages(), "age", **options))
    page.choose("Protected attribute", "sex × age")
    agrees(page, truth(ages(), "sex × age", **options))
    page.press("Back to what was found")
    assert field(page, "Edges of age").value != "30, 50"
    assert field(page, "Intersections", "multiselect").value == []


def test_no_choice_of_columns_breaks_the_page(open_app: Open) -> None:
    evil = "![x](http://evil.example/x.png)"
    odd = ages().assign(
        vector=[[k] * (k % 3) for k in range(300)],
        when=pd.date_range("2026-01-01", periods=300),
        words=[f"word {k}" for k in range(300)],
        nothing=None,
    )
    odd[evil] = np.arange(300) / 7
    for frame in (odd, odd[:0]):
        buffer = io.BytesIO()
        frame.to_parquet(buffer)
        page = open_app("Add predictions", "http://127.0.0.1:9")
        page.at.file_uploader[0].set_value([("odd.parquet", buffer.getvalue(), "")])
        page.run()
        field(page, "Groups", "multiselect").set_value(["vector", "when", "words", "nothing", evil])
        page.run()
        crossing = field(page, "Intersections", "multiselect")
        crossing.set_value(crossing.options[:5])
        page.run()
        assert "![x](" not in page.markdown
        for label in ("vector", "nothing", "when", evil):
            field(page, "Label", "selectbox").set_value(label)
            field(page, "Score of the positive class", "selectbox").set_value("vector")
            for scale in ("percent", "logit", "decision"):
                page.run()
                field(page, "The scores are", "selectbox").set_value(scale)
                page.press("Use these columns")
        assert not page.at.get("vega_lite_chart")
