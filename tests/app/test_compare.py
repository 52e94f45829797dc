"""The Compare page shows what `rise_core.compare` says, and says what it left out."""

from __future__ import annotations

import html
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rise_core
from rise_app import compare_views
from rise_app import panels as rise_panels
from rise_app.compare_views import FAIRNESS
from rise_core import Comparison, Evaluation
from rise_core.columns import Roles
from rise_core.reading import read_comparison
from rise_core.residuals import RESIDUALS
from rise_core.wording import METRICS, format_short
from tests.app.conftest import Shelf, Truth, rows_of
from tests.app.reading import CURVE_COLUMNS, Screen, arrow

Open = Callable[..., Screen]
Ask = Callable[[str], Truth]

SHOWN = ("accuracy", *FAIRNESS)
FEW = {"n_boot": 40, "n_perm": 30}
ROWS = 200
HOSTILE = "<img src=x onerror=alert(1)>"
MARKDOWN = "![x](https://example.org/x.png) :red[x]"
ENGINE = rise_core.compare
ENGINE_PANELS = rise_panels.curve_panels


# --------------------------------------------------------------------------------- a store


def roles(*, row_id: str | None = None, features: Sequence[str] = ("sex", "region")) -> Roles:
    return Roles(
        y_true="y_true",
        y_prob="y_prob",
        sensitive_features=tuple(features),
        environment="environment",
        sample_weight=None,
        cluster=None,
        row_id=row_id,
        pos_label="yes",
        reasons={},
    )


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    """Runs on the same rows, and some that cannot be put beside them."""
    shelf = Shelf(tmp_path_factory.mktemp("bench"))
    for number, (algorithm, seed) in enumerate((("ERM", 0), ("ERM", 1), ("IRM", 0), ("Mixup", 0))):
        shelf.run(
            "Bench",
            f"{algorithm} {seed}",
            rows_of(number),
            roles=roles(),
            algorithm=algorithm,
            seed=str(seed),
            environment="south",
        )
    shelf.run("Bench", "no table", algorithm="Lost", seed="0")

    ids = [f"p{i:03}" for i in range(ROWS)]
    first, other = (rows_of(i).assign(patient=ids) for i in (0, 1))
    shelf.run("Labels", "right", first, roles=roles(row_id="patient"), algorithm="A")
    for i in (7, 42):
        other.loc[i, "y_true"] = "no" if other.loc[i, "y_true"] == "yes" else "yes"
    shelf.run("Labels", "wrong", other, roles=roles(row_id="patient"), algorithm="B")

    shelf.run("Rows", "all", rows_of(0), roles=roles(), algorithm="A")
    shelf.run("Rows", "fewer", rows_of(1, 150), roles=roles(), algorithm="B")

    for number, name in enumerate((HOSTILE, MARKDOWN)):
        table = rows_of(number)
        table["sex"] = table["sex"].replace({"male": HOSTILE, "female": MARKDOWN})
        shelf.run("Hostile", name, table, roles=roles(features=("sex",)), algorithm=name)

    for number in range(21):
        table = rows_of(number % 3, 40)
        shelf.run("Many", f"run {number}", table, roles=roles(), algorithm="ERM", seed=str(number))

    for number in range(2):
        shelf.run("Twins", "twin", rows_of(number), roles=roles(), algorithm="ERM", seed="0")
    return shelf


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Draw few resamples, and take down which models were resampled together."""
    calls: list[tuple[str, ...]] = []

    def few(models: Mapping[str, Any], **arguments: Any) -> Comparison:
        if "n_boot" in arguments:
            return ENGINE(models, **arguments)
        calls.append(tuple(models))
        return ENGINE(models, **FEW)

    monkeypatch.setattr(compare_views, "compare", few)
    return calls


@pytest.fixture
def handed_over(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the download button was given last."""
    import streamlit as st

    given: dict[str, Any] = {}
    draw = st.download_button

    def record(label: str, data: Any, **arguments: Any) -> bool:
        given.update(label=label, data=data, **arguments)
        return draw(label, data, **arguments)

    monkeypatch.setattr(st, "download_button", record)
    return given


@pytest.fixture
def open_compare(open_app: Open, bench: Shelf) -> Open:
    """``open_compare("Bench", "ERM 0", "IRM 0", by="md")`` opens the page on named runs."""

    def start(experiment: str, *runs: str, **query: str) -> Screen:
        if runs:
            query["runs"] = "|".join(bench.runs[name] for name in runs)
        page = open_app("Compare", bench.uri, experiment=bench.experiments[experiment], **query)
        return settled(page)

    return start


@pytest.fixture
def wanted(bench: Shelf, truth: Ask) -> Callable[..., Comparison]:
    """``wanted({"ERM": "ERM 0"}, environment="south")`` asks the engine without the app."""

    def ask(runs: Mapping[str, str], environment: str | None = "south", **how: Any) -> Comparison:
        of = truth(bench.uri).evaluation
        models = {
            name: of(bench.runs[run], environment=environment, **how) for name, run in runs.items()
        }
        return ENGINE(models, **FEW)

    return ask


# ------------------------------------------------------------------------- reading the page


def settled(page: Screen, seconds: float = 60) -> Screen:
    """Look again until nothing is being computed any more."""
    end = time.monotonic() + seconds
    while re.search(r"Resampling all|Matching the rows", page.markdown):
        assert time.monotonic() < end, "still computing"
        time.sleep(0.05)
        page.run()
    return page


Cells = dict[str, list[tuple[str, str]]]


def tables(page: Screen) -> list[Cells]:
    """The page's own tables: model to (value, what a pointer is told) of each indicator."""
    found = []
    for table in re.findall(r'<table class="rise-matrix.*?</table>', page.html, re.S):
        body = re.search(r"<tbody>(.*?)</tbody>", table, re.S)
        assert body
        lines = {}
        for line in re.findall(r"<tr>(.*?)</tr>", body[1], re.S):
            name = re.search(r'<th scope="row">(.*?)</th>', line, re.S)
            assert name
            cells = re.findall(r'<td[^>]*? title="(.*?)"><b>(.*?)</b>', line, re.S)
            lines[html.unescape(name[1])] = [
                (html.unescape(value).strip(), html.unescape(said)) for said, value in cells
            ]
        found.append(lines)
    return found


def matrix(page: Screen) -> Cells:
    return tables(page)[0]


def differences(page: Screen) -> Cells:
    _, found = tables(page)
    return found


def told(page: Screen) -> list[str]:
    """The sentences of the summary."""
    return [html.unescape(text) for text in re.findall(r"<li>(.*?)</li>", page.html, re.S)]


def drawn(page: Screen) -> list[tuple[dict[str, Any], list[pd.DataFrame]]]:
    """Every chart: its specification and the tables it draws."""
    return [
        (json.loads(chart.proto.spec), [arrow(data.data.data) for data in chart.proto.datasets])
        for chart in page.at.get("vega_lite_chart")
    ]


def panels(page: Screen) -> list[tuple[dict[str, Any], pd.DataFrame]]:
    """The small charts, one a model: specification and curves."""
    return [
        (spec, table)
        for spec, tables in drawn(page)
        for table in tables
        if set(table.columns) == CURVE_COLUMNS
    ]


def dots(page: Screen) -> pd.DataFrame:
    """The models of the trade-off, by name."""
    columns = {"model", "x_low", "on_front"}
    found = [t for _, tables in drawn(page) for t in tables if columns <= set(t.columns)]
    assert found, "no trade-off"
    return max(found, key=len).set_index("model")


def shows(page: Screen, found: Comparison, by: str = "w1", baseline: str | None = None) -> None:
    """Hold that the page shows this comparison: matrix, differences, trade-off, words, facts."""
    shown = matrix(page)
    assert list(shown) == found.ranking(by)["model"].tolist()
    rows = {(r["model"], r["indicator"]): r for r in found.table.to_dict("records")}
    for name, cells in shown.items():
        assert len(cells) == len(SHOWN)
        for key, (value, said) in zip(SHOWN, cells, strict=True):
            row = rows[name, key]
            if isnan(row["value"]):
                assert (value, said) == ("–", row["reason"])
                continue
            assert value == format_short(row["value"])
            assert between(said, "interval") == ends(row["low"], row["high"])
            if not isnan(row["null_low"]):
                assert between(said, "random groupings") == ends(row["null_low"], row["null_high"])
            assert ("unstable" in said) == row["unstable"]

    baseline = baseline or found.baseline
    against = found.against(baseline)
    gaps = {(r["model"], r["indicator"]): r for r in against.to_dict("records")}
    assert list(differences(page)) == [name for name in found.models if name != baseline]
    for name, cells in differences(page).items():
        for key, (value, said) in zip(SHOWN, cells, strict=True):
            row = gaps[name, key]
            if isnan(row["difference"]):
                assert (value, said) == ("–", row["reason"])
                continue
            number, *mark = value.split()
            assert number.lstrip("+") == format_short(row["difference"])
            assert mark == {"better": ["▲"], "worse": ["▼"]}.get(row["verdict"], [])
            assert ends(row["low"], row["high"]) in said

    points = dots(page)
    front = found.pareto(by).set_index("model")
    for name, u in found.uncertainties.items():
        if isnan(u[by].value):
            assert name not in points.index
            continue
        point = points.loc[name]
        wanted = [u[by].value, u[by].low, u[by].high]
        wanted += [u["accuracy"].value, u["accuracy"].low, u["accuracy"].high]
        got = point[["x", "x_low", "x_high", "y", "y_low", "y_high"]].astype(float)
        assert got.tolist() == pytest.approx(wanted, nan_ok=True)
        assert point["on_front"] == front.loc[name, "on_front"]

    assert told(page) == [sentence.text for sentence in read_comparison(found, by)]
    ev = next(iter(found.models.values()))
    facts = page.facts
    assert facts["positive class"] == ev.predictions.pos_label
    assert facts["threshold"] == f"{ev.threshold:g}"
    assert facts["residual"].startswith(RESIDUALS[ev.residual].symbol)
    assert facts["resamples"] == f"40 + {found.n_perm} permutations, seed 0"
    assert f"{ev.majority_accuracy:.3f}" in facts["majority baseline"]


def ends(low: float, high: float) -> str:
    return f"{format_short(low)} to {format_short(high)}"


def between(said: str, what: str) -> str:
    found = re.search(rf"{what} (\S+ to [^;\s]+)", said)
    assert found, said
    return found[1]


# ------------------------------------------------------------------------------- the choice

THREE = {"ERM": "ERM 0", "IRM": "IRM 0", "Mixup": "Mixup 0"}


def test_at_first_one_run_of_each_algorithm_is_compared_and_a_broken_one_left_out(
    open_compare: Open, wanted: Callable[..., Comparison], asked: list[tuple[str, ...]]
) -> None:
    page = open_compare("Bench")
    found = wanted(THREE)
    shows(page, found)
    assert asked == [("ERM", "IRM", "Mixup")]
    assert "3 models on Bench" in page.title
    assert "south" in page.title
    assert page.facts["rows"] == f"{found.pairing.n:,}, the same in every model"
    assert page.facts["groups"] == "female against male"
    # The one without a table is said to be left out, and why.
    assert "Lost is left out." in page.markdown
    assert any("no table" in text.lower() for text in page.texts), page.texts
    # Every model's curves are drawn, on the same axes.
    assert len(panels(page)) == 3
    for (_, table), ev in zip(panels(page), found.models.values(), strict=True):
        assert same_curves(table, ev)
    assert len({json.dumps(list(ends_of_axes(spec))) for spec, _ in panels(page)}) == 1
    assert not page.at.dataframe, "one seed each: nothing to fold"


def same_curves(table: pd.DataFrame, ev: Evaluation) -> bool:
    """Whether a panel's curves end where the groups' residuals do."""
    for label, curve in ev.groups.items():
        mine = table.loc[table["curve"] == label, "residual"]
        if not np.allclose([mine.min(), mine.max()], curve.residuals[[0, -1]], atol=1e-6):
            return False
    return set(table["curve"]) == {*ev.groups, "all rows"}


def ends_of_axes(spec: Any) -> Iterator[list[float]]:
    """Every axis' ends, anywhere in a specification."""
    if isinstance(spec, dict):
        domain = spec.get("domain")
        if isinstance(domain, list) and all(isinstance(end, int | float) for end in domain):
            yield domain
    inner = spec.values() if isinstance(spec, dict) else spec if isinstance(spec, list) else ()
    for part in inner:
        yield from ends_of_axes(part)


def test_runs_come_from_the_address_and_from_the_list(
    open_compare: Open, wanted: Callable[..., Comparison], bench: Shelf
) -> None:
    page = open_compare("Bench", "Mixup 0", "ERM 1", by="md", threshold="0.3", baseline="ERM")
    both = {"Mixup": "Mixup 0", "ERM": "ERM 1"}
    shows(page, wanted(both, threshold=0.3), "md", "ERM")
    before = dict(page.address)
    runs = [bench.runs[name] for name in ("ERM 0", "ERM 1", "Mixup 0")]
    settled(page.choose("Runs", runs))
    names = {"ERM · 0": "ERM 0", "ERM · 1": "ERM 1", "Mixup · 0": "Mixup 0"}
    found = wanted(names, threshold=0.3)
    # The model that was compared with has another name now: the first takes its place.
    shows(page, found, "md", "ERM · 0")
    now = page.address
    assert "|".join(runs) in now["runs"]
    for gone in (before, now):
        gone.pop("baseline", None), gone.pop("runs")
    assert now == before

    # Two seeds of one algorithm: mean and range.
    folded = found.fold({"ERM · 0": "ERM", "ERM · 1": "ERM", "Mixup · 0": "Mixup"})
    (table,) = page.at.dataframe
    shown = table.value
    assert len(shown) == 2 * len(SHOWN)
    for row in folded[folded["indicator"].isin(SHOWN)].to_dict("records"):
        name = METRICS[row["indicator"]].name
        (line,) = shown[
            (shown["algorithm"] == row["algorithm"]) & (shown["indicator"] == name)
        ].to_dict("records")
        keys = ("mean", "smallest", "largest", "seeds")
        assert [line[k] for k in keys] == pytest.approx([row[k] for k in keys], nan_ok=True)


def test_every_choice_is_in_the_address_and_the_address_gives_the_view_again(
    open_compare: Open, open_app: Open, bench: Shelf
) -> None:
    page = open_compare("Bench", "ERM 0", "IRM 0")
    page.choose("Fairness by", "f_mean")
    page.choose("Compare with", "IRM")
    page.choose("Our choice", "ERM")
    page.choose("Environment", "(all)")
    settled(page.choose("Residual", "decision_gap"))
    query = {k: v[0] if isinstance(v, list) else v for k, v in page.address.items()}
    wanted = {"by": "f_mean", "baseline": "IRM", "choice": "ERM", "residual": "decision_gap"}
    assert wanted.items() <= query.items()
    again = settled(open_app("Compare", bench.uri, **query))
    assert again.html == page.html
    assert again.widget("Our choice").value == "ERM"
    assert again.address == page.address


# ---------------------------------------------------------------------------------- switches


def test_each_switch_changes_the_numbers(
    open_compare: Open, wanted: Callable[..., Comparison]
) -> None:
    page = open_compare("Bench", *THREE.values())
    seen = [matrix(page)]

    def changed(label: str, value: Any, **how: Any) -> None:
        settled(page.choose(label, value))
        shows(page, wanted(THREE, **how))
        assert matrix(page) not in seen
        seen.append(matrix(page))

    how: dict[str, Any] = {"environment": None}
    changed("Environment", "(all)", **how)
    changed("Protected attribute", "region", **(how := {**how, "attribute": "region"}))
    assert page.facts["groups"] == "001, 002, 003"
    changed("Residual", "decision_gap", **(how := {**how, "residual": "decision_gap"}))
    changed("Threshold", 0.3, **(how := {**how, "threshold": 0.3}))
    changed("Base rates", "equal", **(how := {**how, "base_rates": "equal"}))
    assert page.facts["base rates"] == "equal"
    changed("Environment", "north", **{**how, "environment": "north"})
    assert "north" in page.title


def test_ranking_and_baseline_change_without_resampling_again(
    open_compare: Open, wanted: Callable[..., Comparison], asked: list[tuple[str, ...]]
) -> None:
    page = open_compare("Bench", *THREE.values())
    found = wanted(THREE)
    shows(page, found)
    orders = {tuple(matrix(page))}
    for by in ("md", "dp", "f_acc"):
        page.choose("Fairness by", by)
        shows(page, found, by)
        orders.add(tuple(matrix(page)))
    assert len(orders) > 1
    before = differences(page)
    page.choose("Compare with", "Mixup")
    shows(page, found, "f_acc", "Mixup")
    assert list(differences(page)) == ["ERM", "IRM"] != list(before)
    assert asked == [tuple(THREE)]


# ------------------------------------------------------------------------------ while it waits


def test_curves_are_drawn_again_only_for_another_question(
    open_compare: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[list[str]] = []

    def counted(models: Mapping[str, Evaluation], **how: Any) -> Any:
        made.append(list(models))
        return ENGINE_PANELS(models, **how)

    monkeypatch.setattr(rise_panels, "curve_panels", counted)
    page = settled(open_compare("Bench", *THREE.values(), threshold="0.37"))
    assert len(made) == 1
    before = [rows for _, rows in panels(page)]
    page = settled(page.choose("Compare with", "Mixup"))
    assert len(made) == 1
    assert all(a.equals(b) for a, b in zip(before, [rows for _, rows in panels(page)], strict=True))
    settled(page.choose("Threshold", 0.38))
    assert len(made) == 2


def test_values_are_shown_while_intervals_are_drawn(
    open_app: Open,
    bench: Shelf,
    wanted: Callable[..., Comparison],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = threading.Event()
    few = compare_views.compare

    def slow(models: Mapping[str, Any], **arguments: Any) -> Comparison:
        if "n_boot" not in arguments:
            assert gate.wait(60)
        return few(models, **arguments)

    monkeypatch.setattr(compare_views, "compare", slow)
    try:
        page = open_app("Compare", bench.uri, experiment=bench.experiments["Bench"])
        assert "Resampling all models together" in page.markdown
        found = wanted(THREE)
        assert list(matrix(page)) == found.ranking("w1")["model"].tolist()
        for name, cells in matrix(page).items():
            for key, (value, said) in zip(SHOWN, cells, strict=True):
                assert value == format_short(getattr(found.models[name].indicators, key))
                assert "interval" not in said
                assert "random" not in said
        assert set(dots(page).index) == set(THREE)
        assert dots(page)[["x_low", "x_high", "y_low", "y_high"]].isna().all(axis=None)
        assert len(panels(page)) == 3
        # Nothing is claimed, and nothing can be taken away yet.
        assert told(page) == []
        assert len(tables(page)) == 1
        assert not page.has("Our choice")
        assert page.facts["resamples"] == "being drawn"
    finally:
        gate.set()
    shows(settled(page), found)
    assert page.has("Our choice")


# ------------------------------------------------------------------- what cannot be compared


def test_another_label_for_the_same_row_is_said_with_the_rows(open_compare: Open) -> None:
    page = open_compare("Labels")
    assert "These models cannot be compared." in page.markdown
    (message,) = [text for text in page.texts if "another label" in text]
    assert "2 rows have another label in 'B' than in 'A': rows p007, p042." in message
    assert not tables(page)
    assert not page.has("Our choice")


def test_other_rows_are_compared_unpaired_and_said_to_be(
    open_compare: Open, wanted: Callable[..., Comparison]
) -> None:
    page = open_compare("Rows")
    found = wanted({"A": "all", "B": "fewer"}, environment=None)
    assert not found.paired
    shows(page, found)
    assert page.facts["rows"] == "unpaired: no row ids, and tables of 150, 200 rows"
    assert "Unpaired: no row ids" in page.html
    assert any("different rows" in sentence for sentence in told(page))


def test_fewer_than_two_runs_are_no_comparison(
    open_compare: Open, bench: Shelf, asked: list[tuple[str, ...]]
) -> None:
    for runs in (["ERM 0"], ["ERM 0", "no table"]):
        page = open_compare("Bench", *runs)
        assert [i.value for i in page.at.info] == ["Pick at least two runs that can be read."]
        assert not tables(page)
    page.choose("Runs", [])
    assert page.at.info
    assert asked == []
    settled(page.choose("Runs", [bench.runs["ERM 0"], bench.runs["IRM 0"]]))
    assert list(matrix(page))


def test_no_more_than_twenty_are_compared(
    open_compare: Open, asked: list[tuple[str, ...]], bench: Shelf
) -> None:
    names = [f"run {i}" for i in range(21)]
    page = open_compare("Many", *names)
    assert page.widget("Runs").max_selections == 20
    assert page.widget("Runs").value == [bench.runs[name] for name in names[:20]]
    assert len(matrix(page)) == 20
    assert [len(models) for models in asked] == [20]


def test_a_run_that_the_address_repeats_or_does_not_know_is_taken_once_or_not(
    open_app: Open, bench: Shelf
) -> None:
    first, second = bench.runs["ERM 0"], bench.runs["IRM 0"]
    page = open_app(
        "Compare",
        bench.uri,
        experiment=bench.experiments["Bench"],
        runs="|".join([first, "0" * 32, first, second]),
    )
    assert page.widget("Runs").value == [first, second]
    assert set(matrix(settled(page))) == {"ERM", "IRM"}


def test_runs_of_the_same_name_are_told_apart(open_app: Open, bench: Shelf, truth: Ask) -> None:
    ids = [run.id for run in truth(bench.uri).store.runs([bench.experiments["Twins"]]).runs]
    page = open_app("Compare", bench.uri, experiment=bench.experiments["Twins"], runs="|".join(ids))
    settled(page)
    assert sorted(matrix(page)) == sorted(f"twin ({run_id[:6]})" for run_id in ids)
    # What the browser sends back are the labels: two of the same would be one run.
    assert len(set(page.widget("Runs").options)) == 2
    settled(page.choose("Runs", ids[::-1]))
    assert page.widget("Runs").value == ids[::-1]
    assert len(matrix(page)) == 2


def test_names_from_outside_stay_text(open_compare: Open, handed_over: dict[str, Any]) -> None:
    page = open_compare("Hostile", choice=HOSTILE)
    assert set(matrix(page)) == {HOSTILE, MARKDOWN}
    assert "<img" not in page.html
    assert html.escape(HOSTILE) in page.html
    assert "example.org" not in page.markdown
    assert "<img" not in page.markdown
    report = handed_over["data"]()
    assert "<img src=x" not in report
    assert not re.search(r"[<>:\"/\\|?*]", handed_over["file_name"])


# ---------------------------------------------------------------------------------- the report


def test_choice_and_note_go_into_the_report(
    open_compare: Open,
    handed_over: dict[str, Any],
    wanted: Callable[..., Comparison],
    bench: Shelf,
) -> None:
    page = open_compare("Bench", *THREE.values(), by="md")
    assert page.widget("Our choice").options == ["(open)", *THREE]
    page.choose("Our choice", "IRM")
    (area,) = page.at.text_area
    area.set_value("Taken <b>for</b> its gap of 3.")
    page.run()
    page.choose("Compare with", "Mixup")
    assert page.at.text_area[0].value == "Taken <b>for</b> its gap of 3."

    assert handed_over["mime"] == "text/html"
    assert handed_over["file_name"].endswith(".html")
    report = handed_over["data"]()
    assert "Taken &lt;b&gt;for&lt;/b&gt; its gap of 3." in report
    numbers = json.loads(re.search(r'<script[^>]*id="data">(.*?)</script>', report, re.S)[1])
    assert numbers["choice"] == "IRM"
    assert numbers["baseline"] == "Mixup"
    for name in THREE.values():
        assert bench.runs[name] in report
    for sentence in read_comparison(wanted(THREE), "md"):
        assert sentence.text in html.unescape(report)


def test_no_choice_is_an_open_one(open_compare: Open, handed_over: dict[str, Any]) -> None:
    open_compare("Bench", "ERM 0", "IRM 0", choice="nobody")
    keywords = handed_over["data"].keywords
    assert keywords["choice"] is None
    assert keywords["note"] == ""
    assert set(keywords["runs"]) == {"ERM", "IRM"}
    assert keywords["algorithms"] == {"ERM": "ERM", "IRM": "IRM"}
