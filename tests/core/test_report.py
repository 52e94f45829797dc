"""The exported file stands alone, says what the comparison says, and lets no text in as code."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from itertools import pairwise
from math import isnan
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pytest

from rise_core import Comparison, Evaluation, RiseError, compare, evaluate
from rise_core.charts import curve_panels, rise_chart
from rise_core.report import RunReference, chart_image, comparison_report, evaluation_report
from rise_core.report import figures as figures_module
from rise_core.report.figures import Figures, spec_of
from rise_core.report.html import json_block, plain
from rise_core.report.sections import runs_section
from rise_core.wording import METRICS, format_short

WHEN = datetime(2026, 11, 29, 9, 5, tzinfo=UTC)
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
VOID = {"meta", "link", "img", "br", "hr", "input"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    text: str = ""
    path: tuple[str, ...] = ()


@dataclass
class Page(HTMLParser):
    """Every element of a file with its own text and that of what is in it."""

    source: str
    elements: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.open: list[Element] = []
        self.feed(self.source)
        assert self.open == [], "an element is not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        path = tuple(element.tag for element in self.open)
        element = Element(tag, {name: value or "" for name, value in attrs}, path=path)
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        closed = self.open.pop()
        assert closed.tag == tag, f"<{closed.tag}> is closed by </{tag}>"

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data

    def all(self, tag: str) -> list[Element]:
        return [element for element in self.elements if element.tag == tag]

    def json(self, name: str) -> Any:
        (block,) = [e for e in self.all("script") if e.attributes.get("id") == name]
        return json.loads(block.text)

    def rows(self, caption: str) -> dict[str, list[str]]:
        """Cells of a table's rows by the row's heading, the words of a cell apart by spaces."""
        start = self.source.index(f"<caption>{caption}")
        body = self.source[start : self.source.index("</table>", start)].split("<tbody>")[1]
        found = {}
        for row in body.split("<tr>")[1:]:
            cells = re.split(r"<t[hd]\b[^>]*>", row)[1:]
            words = [" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in cells]
            found[words[0]] = words[1:]
        return found


def model(seed: int, n: int = 500, **settings: Any) -> Evaluation:
    rng = np.random.default_rng(7)
    group = np.where(rng.random(n) < 0.6, "day", "night")
    y = rng.random(n) < np.where(group == "day", 0.7, 0.25)
    noise = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-(1.3 * (2 * y - 1) + (1 + seed / 3) * noise.normal(size=n))))
    p[3] = np.nan
    return evaluate(
        np.where(y, "coat or dress", "top"),
        p,
        sensitive_features=pd.Series(group, name="lighting"),
        pos_label="coat or dress",
        **settings,
    )


@pytest.fixture(scope="module")
def found() -> Comparison:
    models = {"ERM-0": model(0), "ERM-1": model(1), "IRM": model(2)}
    return compare(models, n_boot=60, n_perm=60, random_state=3)


@pytest.fixture(scope="module")
def report(found: Comparison) -> str:
    mapping = {
        "y_true": "label",
        "y_prob": "score",
        "sensitive_features": ["lighting"],
        "environment": None,
        "pos_label": "coat or dress",
        "reasons": {"y_true": "two values, named like a label"},
    }
    return comparison_report(
        found,
        title="Which one do we take?",
        choice="IRM",
        note="It errs least at night.",
        runs={
            "IRM": RunReference(
                "0f3c",
                "calm-fox-12",
                "https://mlflow.example/#/experiments/1/runs/0f3c",
                "rise/predictions.parquet",
                mapping,
                {"seed": "0"},
            ),
            "ERM-0": RunReference("77aa", "wild-owl", "javascript:alert(1)"),
        },
        algorithms={"ERM-0": "ERM", "ERM-1": "ERM", "IRM": "IRM"},
        address="http://127.0.0.1:8501/compare?by=w1",
        when=WHEN,
    )


@pytest.fixture(scope="module")
def page(report: str) -> Page:
    return Page(report)


def test_bands_crossings_and_conversions_are_said() -> None:
    mapping = {
        "y_prob": "score",
        "sensitive_features": ["sex", "age"],
        "scale": "percent",
        "convert": True,
        "bins": {"age": [30.0, 45.5], "income": [1000.0]},
        "intersections": [["sex", "age"]],
        "reasons": {"age": "chosen by hand"},
    }
    run = RunReference("0f3c", "calm-fox-12", mapping=mapping)
    rows = Page(str(runs_section({"ERM": run}))).rows("Which column was read as what")
    assert rows["edges of age"] == ["30, 45.5", "chosen by hand", "every model"]
    assert rows["intersection"] == ["sex × age", "", "every model"]
    assert rows["conversion"] == ["from percent", "somebody agreed", "every model"]
    assert "edges of income" not in rows  # no group: its edges rest unused


def between(low: float, high: float) -> str:
    return f"{format_short(low)} to {format_short(high)}"


# -- it stands alone ------------------------------------------------------------------------------


def loading(page: Page) -> Iterator[str]:
    """What a browser would fetch by itself, or could be made to."""
    for element in page.elements:
        for name in ("src", "srcset", "href", "xlink:href", "data", "poster", "action"):
            value = element.attributes.get(name, "")
            harmless = not value or value.startswith(("#", "data:"))
            if not harmless and element.tag != "a":
                yield f"<{element.tag} {name}={value}>"
    for style in page.all("style"):
        yield from re.findall(r"@import|url\([^)]*\)", style.text)
    yield from (
        e.attributes["style"] for e in page.elements if "url(" in e.attributes.get("style", "")
    )


def test_nothing_in_the_file_is_fetched(page: Page) -> None:
    assert list(loading(page)) == []
    (policy,) = [e for e in page.all("meta") if "http-equiv" in e.attributes]
    assert policy.attributes["content"].startswith("default-src 'none';")
    outward = [e.attributes["href"] for e in page.all("a") if e.attributes["href"][0] != "#"]
    assert outward == [
        "http://127.0.0.1:8501/compare?by=w1",
        "https://mlflow.example/#/experiments/1/runs/0f3c",
    ]


def test_what_would_be_fetched_is_found() -> None:
    page = Page('<img src="https://x.example/a.png"><style>a{background:url(b.png)}</style>')
    assert len(list(loading(page))) == 2


def test_ten_models_of_a_hundred_thousand_rows_stay_small() -> None:
    """The curves are those of all rows; the numbers beside them are borrowed, to save minutes."""
    names = [f"algorithm {i} · seed 0" for i in range(10)]
    small = compare({name: model(i) for i, name in enumerate(names)}, n_boot=20, n_perm=20)
    large = replace(small, models={name: model(i, n=100_000) for i, name in enumerate(names)})
    written = comparison_report(large, title="Ten")
    assert len(written.encode("utf-8")) < 3_000_000
    assert "from 99,999 rows a model" in written


def test_without_vl_convert_it_says_what_to_install(
    found: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    figures_module.vega_bundle.cache_clear()
    with pytest.raises(RiseError, match=r"pip install .*export"):
        comparison_report(found, title="x")
    with pytest.raises(RiseError, match=r"pip install .*export"):
        chart_image(rise_chart(found.models["IRM"], width=400))


# -- it says what the comparison says -------------------------------------------------------------


def test_the_matrix_has_every_number(page: Page, found: Comparison) -> None:
    rows = page.rows("Indicators of every model, from best to worst by W1")
    assert list(rows)[:-1] == list(found.ranking("w1")["model"])
    assert rows["majority baseline"][0].startswith(f"{found.models['IRM'].majority_accuracy:.3f}")
    for row in found.table.to_dict("records"):
        cell = rows[row["model"]][list(METRICS).index(row["indicator"])]
        wanted = format_short(row["value"])
        if not isnan(row["low"]):
            wanted += f" {between(row['low'], row['high'])}"
        if not isnan(row["null_low"]):
            wanted += f" random {between(row['null_low'], row['null_high'])}"
        wanted += " not told from random" if row["distinguishable"] is False else ""
        wanted += " unstable" if row["unstable"] else ""
        assert cell == wanted


def test_differences_have_interval_and_verdict(page: Page, found: Comparison) -> None:
    rows = page.rows("Each model minus ERM-0")
    words = {"better": "▲ better", "worse": "▼ worse", "not distinguishable": "not told apart"}
    assert list(rows) == ["ERM-1", "IRM"]
    for row in found.differences.to_dict("records"):
        cell = rows[row["model"]][list(METRICS).index(row["indicator"])]
        value = ("+" if row["difference"] > 0 else "") + format_short(row["difference"])
        assert cell == f"{value} {between(row['low'], row['high'])} {words[row['verdict']]}"


def test_another_baseline_changes_the_differences(found: Comparison) -> None:
    page = Page(comparison_report(found, title="x", baseline="IRM", when=WHEN))
    assert list(page.rows("Each model minus IRM")) == ["ERM-0", "ERM-1"]
    assert {row["baseline"] for row in page.json("data")["differences"]} == {"IRM"}


def test_programs_read_unrounded_numbers(page: Page, found: Comparison) -> None:
    data = page.json("data")
    assert data["made"] == WHEN.isoformat()
    assert (data["choice"], data["note"]) == ("IRM", "It errs least at night.")
    assert (data["n_boot"], data["n_perm"], data["random_state"]) == (60, 60, 3)
    for written, row in zip(data["table"], found.table.to_dict("records"), strict=True):
        assert written == plain(row)
    for written, row in zip(data["differences"], found.differences.to_dict("records"), strict=True):
        assert written == plain(row)
    one = data["models"]["IRM"]
    assert one["evaluation"] == found.models["IRM"].to_dict()
    assert len(one["uncertainty"]) == len(found.uncertainties["IRM"].to_frame())
    assert one["run"]["id"] == "0f3c"
    assert {"rise-core", "python", "numpy", "pandas", "altair", "vega"} <= set(data["software"])


def test_seeds_are_folded(page: Page, found: Comparison) -> None:
    rows = page.rows("Mean, and smallest to largest")
    assert rows["ERM"][0] == "2"
    w1 = [found.models[name].indicators.w1 for name in ("ERM-0", "ERM-1")]
    assert rows["ERM"][-1] == f"{format_short(sum(w1) / 2)} {between(min(w1), max(w1))}"


def test_it_says_what_was_compared_and_how(page: Page, report: str) -> None:
    facts = {
        name.text: value.text for name, value in zip(page.all("dt"), page.all("dd"), strict=True)
    }
    assert facts["rows"] == "paired: the same 499 rows, matched by position"
    assert facts["positive class"] == "coat or dress (the other: top)"
    assert "0.5" in facts["threshold"]
    assert facts["seed"] == "3"
    assert "60 bootstrap resamples of rows" in facts["intervals"]
    account = page.rows("Rows in = rows used + rows left out")["IRM"]
    assert account[:2] == ["500", "499"]
    assert account[2].startswith("1 ")
    read = page.rows("Which column was read as what")
    assert read["label"] == ["label", "two values, named like a label", "IRM"]
    assert read["sensitive feature"][0] == "lighting"
    assert "29 November 2026, 09:05 UTC" in report
    for metric in METRICS.values():
        assert any(metric.formula == cell.text for cell in page.all("td"))


def test_undefined_has_its_reason() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 300)
    group = np.where(rng.random(300) < 0.5, "a", "b")
    flat = evaluate(y, np.full(300, 0.2), sensitive_features=group)
    good = evaluate(y, np.clip(y * 0.6 + rng.random(300) * 0.4, 0, 1), sensitive_features=group)
    found = compare({"flat": flat, "good": good}, n_boot=30, n_perm=30)
    assert isnan(flat.indicators.dp)
    page = Page(comparison_report(found, title="x", fairness="dp"))
    cell = page.rows("Indicators of every model")["flat"][list(METRICS).index("dp")]
    assert cell == f"– {found.uncertainties['flat']['dp'].reason}"
    (written,) = [
        row
        for row in page.json("data")["table"]
        if (row["model"], row["indicator"]) == ("flat", "dp")
    ]
    assert written["value"] is None
    assert written["reason"]


def test_infinity_is_text_for_programs() -> None:
    assert plain({"a": float("inf"), "b": [np.float64("nan"), np.bool_(True)]}) == {
        "a": "inf",
        "b": [None, True],
    }


def test_the_same_input_gives_the_same_file(found: Comparison) -> None:
    assert comparison_report(found, title="x", when=WHEN) == comparison_report(
        found, title="x", when=WHEN
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"choice": "VREx"}, "choice 'VREx'.*'ERM-0'"),
        ({"baseline": "VREx"}, "baseline 'VREx'"),
        ({"fairness": "w2"}, "No fairness indicator 'w2'.*w1"),
    ],
)
def test_a_wrong_name_is_refused(found: Comparison, wrong: dict[str, str], message: str) -> None:
    with pytest.raises(RiseError, match=message):
        comparison_report(found, title="x", **wrong)  # type: ignore[arg-type]


def test_one_model_and_one_group_have_a_report_too() -> None:
    y, p = [0, 1, 1, 0, 1, 0], [0.2, 0.7, 0.4, 0.6, 0.9, 0.1]
    alone = evaluate(y, p, sensitive_features=["a"] * 6)
    found = compare({"only": alone}, n_boot=20, n_perm=20)
    page = Page(comparison_report(found, title="x"))
    assert "nothing to compare it with" in page.source
    assert Page(evaluation_report(alone, found.uncertainties["only"], title="x")).all("h2")


# -- foreign text ---------------------------------------------------------------------------------


def test_foreign_text_stays_text() -> None:
    group = np.where(np.arange(60) % 3 == 0, EVIL, "b")
    y = np.arange(60) % 2
    p = np.random.default_rng(0).random(60)
    evs = {
        EVIL: evaluate(y, p, sensitive_features=group),
        "b": evaluate(y, 1 - p, sensitive_features=group),
    }
    found = compare(evs, n_boot=20, n_perm=20)
    run = RunReference(
        EVIL, EVIL, f'https://x.example/"{EVIL}', EVIL, {"y_true": EVIL}, {EVIL: EVIL}
    )
    written = comparison_report(
        found, title=EVIL, choice=EVIL, note=EVIL, runs={EVIL: run}, algorithms={"b": EVIL}
    )
    page = Page(written)
    assert len(page.all("script")) == 4
    assert page.all("img") == []
    assert {name for e in page.elements for name in e.attributes if name.startswith("on")} == set()
    assert page.json("data")["title"] == EVIL
    assert set(page.json("data")["models"]) == {EVIL, "b"}
    assert page.json("charts")
    assert page.all("h1")[0].text == EVIL


def test_a_block_of_data_cannot_end_itself() -> None:
    block = json_block("x", {"a": "</script><!--\u2028"})
    assert block.count("</") == 1
    assert "<!--" not in block
    assert json.loads(block.split(">", 1)[1].split("<")[0]) == {"a": "</script><!--\u2028"}


def test_only_a_web_address_becomes_a_link(page: Page) -> None:
    assert not [e for e in page.all("a") if e.attributes["href"].startswith("javascript")]
    assert any(cell.text == "77aa" for cell in page.all("td"))


# -- charts ---------------------------------------------------------------------------------------


def test_every_chart_is_there_in_both_schemes_and_has_its_data(page: Page) -> None:
    places = [e.attributes["data-chart"] for e in page.elements if "data-chart" in e.attributes]
    charts = page.json("charts")
    assert places == list(charts["specs"])
    assert len(places) == 1 + 3
    for specs in charts["specs"].values():
        light, dark = specs["light"], specs["dark"]
        assert light["config"]["background"] == "#ffffff"
        assert dark["config"]["background"] == "#15181b"
        assert light["datasets"] == dark["datasets"]
        assert isinstance(light["datasets"], list), "data is kept once, and named here"
        assert set(light["datasets"]) <= set(charts["datasets"])
        assert light["description"]


def test_a_chart_that_lost_its_data_is_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    chart = curve_panels({"a": model(0)})["a"]
    wanted = spec_of(chart)
    alt.data_transformers.register("elsewhere", lambda data, **_: {"name": "elsewhere"})
    waited = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            alt.data_transformers.enable("default")

    monkeypatch.setattr(figures_module.time, "sleep", sleep)
    try:
        alt.data_transformers.enable("elsewhere")
        assert spec_of(chart) == wanted
        assert len(waited) == 2
        alt.data_transformers.enable("elsewhere")
        with pytest.raises(RiseError, match="data transformer"):
            spec_of(chart)
    finally:
        alt.data_transformers.enable("default")


def test_equal_data_is_kept_once() -> None:
    figures = Figures()
    ev = model(0)
    figures.place(lambda theme: rise_chart(ev, theme=theme))
    once = len(figures.datasets)
    figures.place(lambda theme: rise_chart(ev, theme=theme))
    assert len(figures.datasets) == once
    assert len(figures.specs) == 2


def test_a_chart_becomes_a_picture() -> None:
    chart = rise_chart(model(0), width=500)
    assert chart_image(chart).startswith(b"\x89PNG\r\n")
    assert chart_image(chart, "svg").startswith(b"<svg")
    with pytest.raises(RiseError, match='"png" or "svg", got \'gif\''):
        chart_image(chart, "gif")  # type: ignore[arg-type]
    with pytest.raises(RiseError, match="width in pixels"):
        chart_image(rise_chart(model(0)))


# -- reading it -----------------------------------------------------------------------------------


def test_headings_and_tables_can_be_heard(page: Page) -> None:
    levels = [int(e.tag[1]) for e in page.elements if re.fullmatch(r"h[1-6]", e.tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert all(e.attributes.get("scope") in {"col", "row"} for e in page.all("th"))
    assert len(page.all("caption")) == len(page.all("table"))
    ids = [e.attributes["id"] for e in page.elements if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    anchors = {e.attributes["href"][1:] for e in page.all("a") if e.attributes["href"][0] == "#"}
    assert anchors
    assert anchors <= set(ids)
    assert all(
        e.attributes["aria-label"] for e in page.elements if e.attributes.get("role") == "img"
    )


def test_strips_have_their_look(root: Path, found: Comparison) -> None:
    """One style sheet for the app and the report."""
    rules = (root / "rise_core/report/strip.css").read_text("utf-8")
    assert ".rise-strip .interval" in rules
    assert rules in comparison_report(found, title="Bench")
    for path in ("rise_core/report/style.css", "rise_app/style.css"):
        lines = (root / path).read_text("utf-8").splitlines()
        assert not [line for line in lines if line.startswith(".rise-strip")]


# -- one model ------------------------------------------------------------------------------------


def test_one_model_has_all_its_numbers(found: Comparison) -> None:
    ev, known = found.models["IRM"], found.uncertainties["IRM"]
    run = RunReference("0f3c", "calm-fox-12", "https://mlflow.example/r")
    page = Page(evaluation_report(ev, known, title="IRM at night", run=run, name="IRM", when=WHEN))
    assert list(loading(page)) == []
    rows = page.rows("Indicators")
    assert len(rows) == len(METRICS)
    assert any(row[0].startswith(format_short(known["w1"].value)) for row in rows.values())
    moved = page.rows("Knees")
    for e in known.displacements:
        name = "Δh, position" if e.name == "delta_h" else "Δd, residual"
        row = moved[f"{e.side} knee: {name}, {e.group} minus {e.reference}"]
        assert row[0] == format_short(e.value)
        assert row[1] == between(e.low, e.high)
    assert page.rows("Groups by lighting")["night"][0] == f"{ev.groups['night'].n:,}"
    assert page.json("data")["models"]["IRM"]["evaluation"] == ev.to_dict()
    assert len(page.json("charts")["specs"]) == 2
