"""More runs than fit: the Experiments page asks the server for pieces, and groups what belongs."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator
from statistics import mean
from typing import Any

import numpy as np
import pytest

from rise_app import loaders
from rise_core.wording import format_short
from tests.app.conftest import Shelf, Truth, mlflow, predictions_table
from tests.app.reading import Screen
from tests.app.test_experiments import bare, names, select

Open = Callable[..., Screen]
Ask = Callable[[str], Truth]


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    """Seventy runs; only the oldest ten are of the data set "old", said by a parameter."""
    shelf = Shelf(tmp_path_factory.mktemp("sweep"))
    for number in range(70):
        old = number >= 60
        tags = {"algorithm": ("ERM", "IRM")[number % 2]} | ({} if old else {"dataset": "new"})
        run_id = shelf.run("Sweep", f"run {number:02d}", predictions_table(number, 40), **tags)
        if old:
            shelf.client.log_param(run_id, "dataset", "old")
        if number % 2 == 0:
            shelf.client.log_metric(run_id, "auc", number / 100)
    return shelf


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaders, "RUNS_AT_ONCE", 30)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The filters of every listing that was asked for since it was last cleared."""
    found: list[str] = []
    search = mlflow.MlflowClient.search_runs

    def counted(self: Any, *arguments: Any, **named: Any) -> Any:
        found.append(named["filter_string"])
        return search(self, *arguments, **named)

    monkeypatch.setattr(mlflow.MlflowClient, "search_runs", counted)
    return found


def runs(*numbers: int) -> list[str]:
    return [f"run {number:02d}" for number in numbers]


@pytest.fixture
def listed(open_app: Open, sweep: Shelf) -> Callable[..., Screen]:
    """``listed(page="2")`` opens the seventy runs."""
    return lambda **query: open_app(
        "Experiments", sweep.uri, experiment=sweep.experiments["Sweep"], **query
    ).settle()


def open_page(page: Screen, number: int) -> Screen:
    page.at.pagination[0].set_value(number)
    return page.run().settle()


def count(page: Screen) -> str:
    """Return what is said to be on screen."""
    (found,) = [c.value for c in page.at.caption if c.value.startswith(("runs ", "lines "))]
    return str(found)


def test_the_next_piece_is_asked_for_when_somebody_pages_past_the_last(
    listed: Open, asked: list[str]
) -> None:
    page = listed()
    assert asked == [""]
    assert names(page) == runs(*range(25))
    assert count(page) == "runs 1–25 of 30+"
    page.run().settle()
    assert asked == [""]  # none on a rerun
    open_page(page, 2)
    assert asked == [""] * 2
    assert names(page) == runs(*range(25, 50))
    assert count(page) == "runs 26–50 of 60+"
    assert page.address["page"] == "2"
    open_page(page, 3)
    assert asked == [""] * 3
    assert names(page) == runs(*range(50, 70))
    assert count(page) == "runs 51–70 of 70"
    open_page(page, 1)
    assert len(asked) == 3
    assert "page" not in page.address


def test_a_link_opens_a_page_far_down_and_one_beyond_the_end_the_last(
    listed: Open,
) -> None:
    assert names(listed(page="2")) == runs(*range(25, 50))
    assert names(listed(page="99")) == runs(*range(50, 70))
    assert names(listed(page="none")) == runs(*range(25))


def test_another_search_begins_at_its_first_page(listed: Open) -> None:
    page = listed(page="2")
    page.choose("Algorithm", ["IRM"]).settle()
    assert names(page) == runs(*range(1, 51, 2))
    assert "page" not in page.address
    open_page(page, 2)
    assert count(page) == "runs 26–35 of 35"
    page.choose("Find", "run 0").settle()
    assert names(page) == runs(1, 3, 5, 7, 9)
    assert count(page) == "runs 1–5 of 5"


def test_a_filter_reaches_runs_that_are_not_listed(listed: Open, asked: list[str]) -> None:
    # The newest know only one data set, and only as a tag; another one is typed in.
    page = listed()
    assert page.widget("Data set").options == ["new"]
    asked.clear()
    page.choose("Data set", ["old"]).settle()
    assert names(page) == runs(*range(60, 70))
    assert page.address["dataset"] == "old"
    assert "params.`dataset` = 'old'" in asked
    again = len(asked)
    page.run().settle()
    assert len(asked) == again
    page.choose("Data set", ["old", "new"]).settle()
    assert count(page) == "runs 1–25 of 30+"
    assert names(listed(find="run 6", dataset="old")) == runs(*range(60, 70))


def test_the_server_orders_by_a_logged_metric_and_says_who_comes_last(
    listed: Open, asked: list[str]
) -> None:
    page = listed()
    assert "auc, highest first" in page.widget("Order").options
    asked.clear()
    page.choose("Order", "auc desc").settle()
    assert asked == [""]
    assert names(page) == runs(*range(68, 18, -2))
    assert "runs without auc come last" in count(page)
    assert page.table["metric"].tolist() == [n / 100 for n in range(68, 18, -2)]
    open_page(page, 2)
    assert names(page) == runs(*range(18, -1, -2), *range(1, 31, 2))
    page.choose("Order", "oldest").settle()
    assert names(page) == runs(*range(69, 44, -1))
    assert "metric" not in page.table.columns
    # A link may name a metric that none of the newest runs has.
    linked = listed(order="loss asc")
    assert linked.widget("Order").value == "loss asc"
    assert names(linked) == runs(*range(25))


def test_a_malformed_filter_leaves_the_page_alive(listed: Open) -> None:
    page = listed(find="metrics.auc > high")
    assert any("does not understand this filter" in text for text in page.markdown.splitlines())
    (said,) = [text for text in page.texts if "Expected numeric value" in text]
    assert "metrics.auc > 0.8 and tags.dataset = 'adult'" in said
    page.choose("Find", "metrics.auc > 0.6").settle()
    assert names(page) == runs(68, 66, 64, 62)[::-1]
    page.choose("Find", "metrics.auc > 0.6 and tags.algorithm = 'IRM'")
    assert any("No run matches" in info.value for info in page.at.info)


def test_another_experiment_forgets_filters_that_mean_nothing_there(
    listed: Open, sweep: Shelf
) -> None:
    sweep.run("Small", "small", predictions_table(99, 40), algorithm="IRM")
    page = listed(dataset="new", algorithm="IRM|ERM", order="auc desc")
    page.choose("Experiment", sweep.experiments["Small"]).settle()
    assert names(page) == ["small"]
    assert not {"dataset", "order", "page"} & set(page.address)


# ------------------------------------------------------------------------------------ nested


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    """Parents of nested runs, with and without a table; one far from its child."""
    shelf = Shelf(tmp_path_factory.mktemp("family"))

    def run(name: str, parent: str = "", table: bool = True) -> str:
        tags = {"mlflow.parentRunId": shelf.runs[parent]} if parent else {}
        shown = predictions_table(len(shelf.runs), 40) if table else None
        return shelf.run("Family", name, shown, **tags)

    far = shelf.run("Family", "first trial", predictions_table(1, 40))
    run("search", table=False)
    run("alone")
    run("trial a", "search")
    run("trial b", "search")
    for number in range(30):
        run(f"more {number:02d}")
    shelf.client.set_tag(far, "mlflow.parentRunId", run("far away"))
    return shelf


def test_nested_runs_stand_under_their_parent(
    open_app: Open, family: Shelf, asked: list[str]
) -> None:
    page = open_app("Experiments", family.uri).settle()
    assert names(page)[:5] == [
        "↳ first trial · in far away",
        "search",
        "↳ trial a",
        "↳ trial b",
        "alone",
    ]
    assert page.table["algorithm"].tolist()[:3] == ["↳ first trial", "search", "↳ trial a"]
    # The list, the name of the parent that is elsewhere, and whether a run without table has any.
    assert len(asked) == 3
    assert sum("run_id IN" in text for text in asked) == 1


def test_a_parent_without_a_table_is_not_broken(open_app: Open, family: Shelf) -> None:
    page = open_app("Experiments", family.uri).settle()
    assert page.table.set_index("run")["status"]["search"] == "parent"
    assert not [d for d in page.at.dataframe if "reason" in d.value.columns]
    select(page, names(page).index("search"))
    assert page.widget("Diagnose").disabled
    assert page.widget("Compare").disabled
    assert any("search: its nested runs hold the tables" in text for text in page.texts)
    lost = open_app("Diagnose", family.uri, run=family.runs["search"])
    assert any("its nested runs hold them" in text for text in lost.texts)


def test_compare_proposes_no_parent(open_app: Open, family: Shelf) -> None:
    page = open_app("Compare", family.uri).settle()
    proposed = page.widget("Runs").value
    assert family.runs["search"] not in proposed
    assert family.runs["trial a"] in proposed


# ------------------------------------------------------------------------------------- seeds


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    """Three seeds of ERM, one of them run before; two of IRM, one without numbers; one of none."""
    shelf = Shelf(tmp_path_factory.mktemp("seeds"))
    for number, (algorithm, seed) in enumerate(
        [("ERM", 2), ("IRM", 0), ("ERM", 1), ("IRM", 1), ("ERM", 0), ("ERM", 1)]
    ):
        table = None if (algorithm, seed) == ("IRM", 1) else predictions_table(number)
        name = f"{algorithm} {seed} of {number}"
        shelf.run("Seeds", name, table, algorithm=algorithm, seed=str(seed), dataset="Lab")
    shelf.run("Seeds", "no seed", predictions_table(9), algorithm="ERM", dataset="Lab")
    # Two groups of one algorithm are two lines.
    for seed in (0, 1):
        shelf.run(
            "Seeds",
            f"north {seed}",
            predictions_table(20 + seed),
            algorithm="ERM",
            seed=str(seed),
            dataset="Lab",
            environment="north",
        )
    return shelf


def test_seeds_are_apart_unless_somebody_groups_them(
    open_app: Open, listed: Open, seeds: Shelf
) -> None:
    page = open_app("Experiments", seeds.uri).settle()
    assert len(names(page)) == 8  # of nine, one has no table
    switch = next(t for t in page.at.toggle if t.label == "Group seeds")
    assert not switch.value
    switch.set_value(True)
    page.run().settle()
    assert page.address["seeds"] == "on"
    assert names(page) == [
        "ERM · 3 seeds",
        "IRM · 2 seeds",
        "ERM 1 of 5",
        "no seed",
        "ERM · 2 seeds",
    ]
    none = listed(seeds="on")
    assert not [t for t in none.at.toggle if t.label == "Group seeds"]
    assert names(none) == runs(*range(25))


def test_a_group_shows_mean_and_range_and_no_interval(
    open_app: Open, seeds: Shelf, truth: Ask
) -> None:
    page = open_app("Experiments", seeds.uri, seeds="on").settle()
    ask = truth(seeds.uri).evaluation
    known = [ask(seeds.runs[name]) for name in ("ERM 2 of 0", "ERM 1 of 2", "ERM 0 of 4")]
    row = page.table.set_index("run").loc["ERM · 3 seeds"]
    for key in ("accuracy", "dp", "md", "w1"):
        values = [getattr(ev.indicators, key) for ev in known]
        picture = b64decode(row[key].partition(",")[2]).decode()
        assert format_short(mean(values)) in picture
        assert "<rect" not in picture  # no null
        assert picture.count("<path") == 1  # from the lowest to the highest
    single = page.table.set_index("run").loc["no seed"]
    assert "<path" not in b64decode(single["w1"].partition(",")[2]).decode()
    assert "no confidence intervals" in page.markdown
    shown = bare(page).loc["ERM · 3 seeds"]
    for key in ("accuracy", "dp", "md", "f_mean", "w1"):
        values = [getattr(ev.indicators, key) for ev in known]
        assert shown[key] == pytest.approx(mean(values), abs=1e-12)
    assert shown["seed"] == "3 seeds"
    assert shown["rows"] == 240
    assert page.table.set_index("run").loc["IRM · 2 seeds", "seed"] == "1 of 2 seeds"


def test_what_is_undefined_for_some_seeds_is_counted(
    open_app: Open, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shelf = Shelf(tmp_path_factory.mktemp("undefined"))
    for seed in (0, 1):
        table = predictions_table(seed)
        if seed:  # one score for all: no knees, so no F_acc and no F_shift
            table["y_prob"] = np.float64(0.5)
        shelf.run("Undefined", f"ERM {seed}", table, algorithm="ERM", seed=str(seed))
    page = open_app("Experiments", shelf.uri, seeds="on").settle()
    picture = b64decode(page.table["f_acc"][0].partition(",")[2]).decode()
    assert "(1/2)" in picture
    assert "F_acc 1 of 2" in bare(page)["undefined"].iloc[0]


def test_a_group_is_compared_and_its_newest_seed_diagnosed(open_app: Open, seeds: Shelf) -> None:
    page = open_app("Experiments", seeds.uri, seeds="on").settle()
    select(page, 0)
    assert "ERM · 3 seeds" in page.texts
    page.press("Compare")
    wanted = [seeds.runs[name] for name in ("ERM 2 of 0", "ERM 1 of 2", "ERM 0 of 4")]
    assert page.address["runs"].split("|") == wanted
    page = open_app("Experiments", seeds.uri, seeds="on").settle()
    select(page, 0)
    page.press("Diagnose")
    assert page.address["run"] == wanted[0]


def test_compare_takes_the_seeds_of_several_groups_in_turn(
    open_app: Open, seeds: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rise_app import entry_table

    monkeypatch.setattr(entry_table, "MOST_COMPARED", 3)
    page = open_app("Experiments", seeds.uri, seeds="on").settle()
    select(page, 0, 4)
    assert "5 runs" in page.texts
    assert "Compare takes 3 of them" in page.markdown
    page.press("Compare")
    wanted = [seeds.runs[name] for name in ("ERM 2 of 0", "north 0", "ERM 1 of 2")]
    assert page.address["runs"].split("|") == wanted


def test_compare_finds_runs_older_than_those_listed(open_app: Open, sweep: Shelf) -> None:
    chosen = [sweep.runs[name] for name in runs(0, 65)]
    page = open_app("Compare", sweep.uri, experiment=sweep.experiments["Sweep"],
                    runs="|".join(chosen)).settle()  # fmt: skip
    assert page.widget("Runs").value == chosen
