"""The exported file, opened from disk in a real browser without a network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rise_core import Evaluation, compare, evaluate
from rise_core.charts import DARK, LIGHT
from rise_core.report import RunReference, comparison_report, evaluation_report

MODELS = ("ERM · 0", "ERM · 1", "GroupDRO · 0", "V-REx <b>bold</b>")


def model(seed: int, n: int = 3_000) -> Evaluation:
    rng = np.random.default_rng(11)
    group = np.where(rng.random(n) < 0.6, "day", "night")
    y = rng.random(n) < np.where(group == "day", 0.7, 0.25)
    noise = np.random.default_rng(seed).normal(size=n)
    p = 1 / (1 + np.exp(-(1.3 * (2 * y - 1) + (1 + seed / 3) * noise)))
    return evaluate(
        np.where(y, "coat or dress", "top"),
        p,
        sensitive_features=pd.Series(group, name="lighting"),
        pos_label="coat or dress",
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A comparison and a single model, on a "stick"."""
    folder = tmp_path_factory.mktemp("stick")
    found = compare({name: model(i) for i, name in enumerate(MODELS)}, n_boot=60, n_perm=60)
    run = RunReference("0f3c", "calm-fox-12", "https://mlflow.example/runs/0f3c", "p.parquet")
    first = MODELS[0]
    written = {
        "comparison": comparison_report(
            found,
            title="Four models on FashionWeather, snow",
            choice=first,
            note="Taken for its accuracy.",
            runs={first: run},
            algorithms={name: name.split(" · ")[0] for name in MODELS},
        ),
        "evaluation": evaluation_report(
            found.models[first], found.uncertainties[first], title=first, run=run
        ),
    }
    paths = {}
    for name, text in written.items():
        paths[name] = folder / f"{name}.html"
        paths[name].write_text(text, "utf-8")
    return paths


@pytest.fixture
def opened(open_page: Callable[..., Any], files: dict[str, Path]) -> Callable[..., Any]:
    """``opened("comparison", 390, dark=True)`` is the page once its charts are drawn."""

    def make(name: str, width: int = 1440, *, dark: bool = False) -> Any:
        page = open_page(width, 900, dark=dark)
        page.context.set_offline(True)
        page.requests = []
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(files[name].as_uri())
        page.wait_for_function("document.documentElement.dataset.paper === 'drawn'")
        return page

    return make


def shown(page: Any) -> list[dict[str, Any]]:
    """Every chart as it is seen: its size, marks, background and alternative text."""
    return page.evaluate(
        """() => [...document.querySelectorAll("[data-chart]")].map((place) => {
            const visible = (box) => getComputedStyle(box).visibility === "visible";
            const seen = [...place.children].filter(visible);
            const svg = seen[0].querySelector("svg.marks");
            const box = svg.getBoundingClientRect();
            return {
                seen: seen.length, scheme: seen[0].classList[0],
                width: box.width, height: box.height, room: place.clientWidth,
                lines: svg.querySelectorAll(".mark-line path, .mark-symbol path").length,
                ground: svg.style.backgroundColor || svg.getAttribute("style"),
                told: place.querySelector("[role=graphics-document]")?.ariaLabel ?? "",
            };
        })"""
    )


def rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})"


@pytest.mark.parametrize("width", [390, 768, 1440, 1920])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_chart_of_a_comparison_is_drawn_offline(
    opened: Callable[..., Any],
    files: dict[str, Path],
    assert_quiet: Callable[[Any], None],
    screenshot: Callable[[Any, str], Path],
    width: int,
    dark: bool,
) -> None:
    page = opened("comparison", width, dark=dark)
    charts = shown(page)
    assert len(charts) == 1 + len(MODELS)
    for chart in charts:
        assert chart["seen"] == 1
        assert chart["scheme"] == ("dark" if dark else "light")
        assert rgb((DARK if dark else LIGHT).background) in chart["ground"]
        assert chart["lines"] >= 2
        assert chart["told"]
        assert chart["width"] <= chart["room"] + 1
        assert chart["width"] > 0.8 * min(chart["room"], 800) - 40
        assert chart["height"] > 100
    assert page.requests == [files["comparison"].as_uri()]
    page.observed.outside.remove(files["comparison"].as_uri())
    assert_quiet(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    screenshot(page, f"report-{width}-{'dark' if dark else 'light'}")


def test_a_chart_answers_to_the_pointer(opened: Callable[..., Any]) -> None:
    page = opened("comparison")
    place = page.locator("[data-chart]").nth(1)
    place.scroll_into_view_if_needed()
    box = place.locator(".light svg.marks").bounding_box()
    for move in (0.5, 0.55):  # up and down within one column, as a hand does
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * move)
    tip = page.locator("#vg-tooltip-element.visible")
    tip.wait_for()
    assert "night" in tip.inner_text()


def test_a_scheme_that_changes_is_followed(opened: Callable[..., Any]) -> None:
    page = opened("comparison", dark=False)
    page.emulate_media(color_scheme="dark")
    page.wait_for_selector("[data-chart]:last-of-type > .dark svg.marks", state="attached")
    page.wait_for_function(
        "document.querySelectorAll('.dark svg.marks').length === "
        "document.querySelectorAll('[data-chart]').length"
    )
    assert {chart["scheme"] for chart in shown(page)} == {"dark"}


def test_paper_is_light_whatever_the_screen_is(opened: Callable[..., Any]) -> None:
    page = opened("comparison", dark=True)
    page.emulate_media(media="print", color_scheme="dark")
    assert {chart["scheme"] for chart in shown(page)} == {"light"}
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("nav").is_visible()


def test_one_model_is_drawn_too(
    opened: Callable[..., Any], screenshot: Callable[[Any, str], Path]
) -> None:
    page = opened("evaluation")
    charts = shown(page)
    assert len(charts) == 2
    assert all(chart["height"] > 300 and chart["lines"] >= 3 for chart in charts)
    assert page.observed.errors == []
    screenshot(page, "report-one-model")
