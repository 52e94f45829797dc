"""Charts by the data they draw: no pixels here, `Evaluation` in, specification out."""

from __future__ import annotations

import itertools
import json
import math
import re
import tomllib
from base64 import b64decode
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from rise_core import Evaluation, RiseError, evaluate

pytest.importorskip("altair")

from rise_core.charts import (
    DARK,
    LIGHT,
    curve_grid,
    curve_legend,
    curve_panels,
    curve_points,
    palette_for,
    rise_chart,
    spark_svg,
    spark_values,
    strip_chart,
    strip_domain,
    strip_svg,
)
from rise_core.charts.thinning import MAX_POINTS

ROOT = Path(__file__).resolve().parents[2]
NAN = math.nan


def make(
    n: int = 1200, groups: int = 2, environments: int = 3, seed: int = 0, **settings: Any
) -> Evaluation:
    """Imbalanced labels as text, base rates that differ by group, scores that overlap."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, n)
    y = rng.random(n) < np.linspace(0.75, 0.2, groups)[group]
    p = 1 / (1 + np.exp(-(1.2 * (2 * y - 1) + 1.2 * rng.normal(size=n) + 0.4 * group)))
    names = np.array(["day", "night", "(missing)", *(f"g {i}" for i in range(3, groups + 3))])
    return evaluate(
        np.where(y, "coat or dress", "top"),
        p,
        sensitive_features=pd.Series(names[group], name="lighting"),
        environment=np.array([f"site {i}" for i in range(environments)])[
            rng.integers(0, environments, n)
        ],
        pos_label="coat or dress",
        **settings,
    )


def collapsed() -> Evaluation:
    rng = np.random.default_rng(1)
    group = rng.choice(["day", "night"], 2000)
    y = (rng.random(2000) < np.where(group == "day", 0.7, 0.3)).astype(int)
    return evaluate(y, np.full(2000, 0.42), sensitive_features=group)


def eighteen() -> Evaluation:
    y = [int(c) for c in "101001010010100100"]
    p = [0.95, 0.05, 0.80, 0.10, 0.35, 0.60, 0.02, 0.30, 0.70, 0.15]
    p += [0.90, 0.40, 0.45, 0.30, 0.85, 0.10, 0.25, 0.55]
    return evaluate(y, p, sensitive_features=["n"] * 10 + ["s"] * 8)


def tiny_group() -> Evaluation:
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 402)
    p = np.clip(rng.normal(0.3 + 0.4 * y, 0.15), 0, 1)
    return evaluate(y, p, sensitive_features=["many"] * 400 + ["two rows"] * 2)


def one_group() -> Evaluation:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 50)
    return evaluate(y, rng.random(50), sensitive_features=["only"] * 50)


def layers_with(spec: dict[str, Any], *fields: str) -> list[dict[str, Any]]:
    """Layers whose table has all these columns, with the table as ``rows``."""
    found = []
    for layer in spec["layer"]:
        rows = spec["datasets"][layer.get("data", spec.get("data"))["name"]]
        if rows and all(field in rows[0] for field in fields):
            found.append({**layer, "rows": rows})
    return found


def mark(layer: dict[str, Any]) -> str:
    return str(layer["mark"]["type"])


def curve_rows(spec: dict[str, Any]) -> pd.DataFrame:
    (layer,) = [x for x in layers_with(spec, "curve", "rank", "residual") if mark(x) == "line"]
    return pd.DataFrame(layer["rows"])


def knee_rows(spec: dict[str, Any]) -> pd.DataFrame:
    layers = layers_with(spec, "curve", "side", "strength")
    return pd.DataFrame(layers[0]["rows"] if layers else [])


# --- thinning ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 18, 149, 150, 151, 999, 50_000])
def test_points_are_rows_of_the_full_curve_and_few(n: int) -> None:
    rng = np.random.default_rng(n)
    ev = evaluate(np.arange(n) % 2 if n > 1 else [1], rng.random(n), sensitive_features=["a"] * n)
    points = curve_points(ev.overall)
    assert len(points) <= MAX_POINTS
    assert points["rank"].is_monotonic_increasing
    assert points["residual"].is_monotonic_increasing
    assert set(points["residual"]) <= set(ev.overall.residuals)
    assert points["residual"].iloc[[0, -1]].tolist() == list(ev.overall.residuals[[0, -1]])
    assert points["rank"].iloc[[0, -1]].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("settings", [{}, {"base_rates": "equal"}], ids=["plain", "weights"])
def test_knees_and_medians_of_a_long_curve_have_their_point(settings: dict[str, Any]) -> None:
    ev = make(30_001, **settings)
    for curve in (ev.overall, *ev.groups.values()):
        drawn = curve_points(curve)
        assert curve.left_knee is not None
        assert curve.right_knee is not None
        for knee in (curve.left_knee, curve.right_knee):
            near = drawn.iloc[(drawn["residual"] - knee.residual).abs().argmin()]
            assert near["residual"] == knee.residual
            assert near["rank"] == pytest.approx(knee.own_percentile, abs=1e-4)
        low, high = curve.sample.middle
        assert curve.residuals[high] in drawn["residual"].to_numpy()
        assert low <= high


def test_a_knee_among_equal_residuals_has_both_ends_of_its_run() -> None:
    # Scores with two decimals: residuals in runs of a hundred, a step apart that no one would see.
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 20_011)
    p = np.clip(rng.normal(0.35 + 0.3 * y, 0.2), 0, 1).round(2)
    curve = evaluate(y, p, sensitive_features=["a"] * y.size).overall
    knee = curve.left_knee
    assert knee is not None
    first = np.searchsorted(curve.residuals, knee.residual, "left")
    last = np.searchsorted(curve.residuals, knee.residual, "right") - 1
    assert last - first > 20
    ranks = curve_points(curve, even=20, per_end=5)["rank"].to_numpy()
    for index in (first, last):
        assert np.abs(ranks - index / curve.n).min() < 1e-9


def test_ends_are_drawn_more_densely_than_the_middle() -> None:
    rank = curve_points(make(100_000).overall)["rank"]
    assert (rank < 0.01).sum() > 3 * ((rank > 0.5) & (rank < 0.51)).sum()


def test_a_jump_between_two_drawn_rows_is_upright() -> None:
    # Two residuals alone, 30,000 rows: the jump at 70 % falls between two even ranks.
    y = np.r_[np.ones(21_007), np.zeros(8_993)].astype(int)
    ev = evaluate(y, np.full(30_000, 0.4), sensitive_features=["a"] * 30_000)
    drawn = curve_points(ev.overall)
    before, after = drawn[drawn["residual"] < 0], drawn[drawn["residual"] > 0]
    assert after["rank"].min() == pytest.approx(21_007 / 30_000)
    assert after["rank"].min() - before["rank"].max() == pytest.approx(1 / 30_000)


def test_few_rows_are_a_staircase() -> None:
    drawn = curve_points(eighteen().groups["s"])
    assert len(drawn) == 2 * 8
    assert drawn["rank"].tolist()[:4] == [0, 1 / 8, 1 / 8, 2 / 8]
    assert drawn["residual"].iloc[0] == drawn["residual"].iloc[1]


# --- the chart: what is in it -----------------------------------------------------------------


def test_group_view_draws_every_group_and_all_rows() -> None:
    ev = make(20_000, groups=5)
    drawn = curve_rows(rise_chart(ev).to_dict())
    assert set(drawn["curve"]) == {*ev.groups, "all rows"}
    assert drawn.groupby("curve").size().max() <= MAX_POINTS


def test_group_named_as_the_pooled_curve_keeps_its_own() -> None:
    y = [0, 1] * 30
    ev = evaluate(y, np.linspace(0, 1, 60), sensitive_features=["all rows", "b"] * 30)
    drawn = curve_rows(rise_chart(ev).to_dict())
    assert set(drawn["curve"]) == {"all rows", "b", "all rows (pooled)"}


@pytest.mark.parametrize("view", ["groups", "global"])
def test_knees_sit_where_the_evaluation_says(view: Any) -> None:
    ev = make()
    knees = knee_rows(rise_chart(ev, view=view).to_dict())
    assert len(knees) == 6
    for label, curve in ev.groups.items():
        row = knees[(knees["curve"] == label) & (knees["side"] == "right knee")].iloc[0]
        assert curve.right_knee is not None
        own, everyone = curve.right_knee.own_percentile, curve.right_knee.percentile
        assert row["rank"] == pytest.approx(own if view == "groups" else everyone)
        assert row["residual"] == pytest.approx(curve.right_knee.residual)
        assert row["label"].startswith(f"{label}, right knee: residual {row['residual']:+.3f}")


def test_undefined_knees_draw_nothing() -> None:
    ev = tiny_group()
    assert ev.groups["two rows"].left_knee is None
    spec = rise_chart(ev, show_boxes=True).to_dict()
    assert "two rows" not in set(knee_rows(spec)["curve"])
    assert {row["curve"] for row in layers_with(spec, "x0", "y0")[0]["rows"]} == {"many"}
    assert "two rows" in set(curve_rows(spec)["curve"])


def test_no_knee_at_all_is_a_chart_without_knees() -> None:
    ev = evaluate([0, 1], [0.2, 0.9], sensitive_features=["a", "b"])
    spec = rise_chart(ev, show_boxes=True).to_dict()
    assert knee_rows(spec).empty
    assert not layers_with(spec, "x0", "y0")


def test_rulers_stand_at_the_medians() -> None:
    ev = make()
    horizontal = layers_with(rise_chart(ev).to_dict(), "curve", "residual", "position")
    rows = {row["curve"]: row for row in horizontal[0]["rows"]}
    vertical = layers_with(rise_chart(ev, view="global").to_dict(), "position", "upper")
    places = {row["curve"]: row["position"] for row in vertical[0]["rows"]}
    for label, curve in ev.groups.items():
        assert rows[label]["residual"] == pytest.approx(curve.median_residual)
        assert places[label] == pytest.approx(curve.median_position)


@pytest.mark.parametrize("view", ["groups", "global"])
def test_rulers_of_many_groups_are_ticks_with_one_caption(view: Any) -> None:
    spec = rise_chart(make(groups=9), view=view).to_dict()
    ticks, caption = layers_with(spec, "position", "residual", "paint")
    assert mark(ticks) == "rule"
    assert len(ticks["rows"]) == 9
    assert [row["label"] for row in caption["rows"]] == ["medians"]


def test_segments_are_cut_at_the_pooled_knees_and_carry_their_share() -> None:
    ev = make()
    (named,) = layers_with(rise_chart(ev).to_dict(), "name", "share", "long")
    assert [row["name"] for row in named["rows"]] == ["left tail", "core", "right tail"]
    assert ev.overall.left_knee is not None
    assert named["rows"][0]["q1"] == pytest.approx(ev.overall.left_knee.percentile)
    assert sum(row["share"] for row in named["rows"]) == pytest.approx(1)


def test_segments_name_no_share_of_a_gap_that_is_not_drawn() -> None:
    (named,) = layers_with(rise_chart(make(), color_by="environment").to_dict(), "name", "long")
    assert [row["long"] for row in named["rows"]] == ["left tail", "core", "right tail"]


def test_area_is_tinted_between_two_groups_only() -> None:
    ev = make()
    areas = [x for x in rise_chart(ev).to_dict()["layer"] if mark(x) == "area"]
    assert len(areas) == 2
    assert not [x for x in rise_chart(make(groups=3)).to_dict()["layer"] if mark(x) == "area"]
    (table, _) = layers_with(rise_chart(ev).to_dict(), "first", "second")
    rank = np.array([row["rank"] for row in table["rows"]])
    gap = np.array([row["high"] - row["low"] for row in table["rows"]])
    # The tinted area is W1 (trapezoids over the drawn ranks).
    area = float((np.diff(rank) * (gap[1:] + gap[:-1]) / 2).sum())
    assert area == pytest.approx(ev.indicators.w1, rel=0.02)


@pytest.mark.parametrize(
    ("flag", "columns"),
    [
        ("show_knees", ("side", "strength")),
        ("show_rulers", ("position", "residual", "paint")),
        ("show_segments", ("name", "q0")),
        ("show_boxes", ("x0", "y1")),
    ],
)
def test_each_flag_takes_away_its_own_layer(flag: str, columns: tuple[str, ...]) -> None:
    ev = make()
    assert layers_with(rise_chart(ev, **{flag: True}).to_dict(), *columns)
    assert not layers_with(rise_chart(ev, **{flag: False}).to_dict(), *columns)


def test_boxes_have_the_dash_of_their_group() -> None:
    ev = make()
    boxes = layers_with(rise_chart(ev, view="global").to_dict(), "x0", "y1")
    palette = palette_for(list(ev.groups), LIGHT)
    found = {row["curve"]: box["mark"]["strokeDash"] for box in boxes for row in box["rows"]}
    assert found == {label: list(palette.dash(label)) for label in ev.groups}
    assert len({tuple(dash) for dash in found.values()}) == 2


def test_boxes_are_in_the_global_view_unless_asked_otherwise() -> None:
    ev = make()
    assert not layers_with(rise_chart(ev).to_dict(), "x0", "y1")
    assert layers_with(rise_chart(ev, view="global").to_dict(), "x0", "y1")
    assert not layers_with(rise_chart(ev, view="global", show_boxes=False).to_dict(), "x0", "y1")


def test_pieces_cover_the_curve_in_the_colour_of_their_group() -> None:
    ev = make(5000)
    pieces = ev.pieces(k=12)
    drawn = curve_rows(rise_chart(ev, view="global", segments=12).to_dict())
    assert sorted(set(drawn["piece"])) == list(range(len(pieces)))
    for number, piece in enumerate(pieces):
        part = drawn[drawn["piece"] == number]
        assert set(part["curve"]) == {piece.label}
        assert set(part["significant"]) == {piece.significant}
        assert part["rank"].max() == pytest.approx(piece.q1, abs=2e-3)
    starts = drawn.groupby("piece")["rank"].min().to_numpy()
    ends = drawn.groupby("piece")["rank"].max().to_numpy()
    assert (starts[1:] <= ends[:-1] + 1e-3).all(), "the curve has a hole"


def test_equal_pieces_on_request() -> None:
    drawn = curve_rows(
        rise_chart(make(5000), view="global", segments=10, pieces_method="equal").to_dict()
    )
    assert drawn["piece"].nunique() == 10


def test_strip_bars_grow_from_the_overall_share() -> None:
    ev = make(4000)
    last = list(ev.groups)[-1]
    spec = rise_chart(ev, view="global").to_dict()
    (strip,) = [x for x in layers_with(spec, "q0", "y0", "y1") if mark(x) == "rect"]
    (reference,) = {round(row["y0"], 6) for row in strip["rows"]}
    for row, piece in zip(strip["rows"], ev.pieces(k=40, method="equal"), strict=True):
        more = piece.shares[last] >= ev.groups[last].share
        assert (row["curve"] == last) == more
        assert (row["y1"] >= reference - 1e-9) == more
    axis = spec["layer"][0]["encoding"]["y"]["axis"]
    assert f'"{ev.groups[last].share:.0%}"' in axis["labelExpr"]
    assert any(value == pytest.approx(reference, abs=1e-5) for value in axis["values"])


def test_strip_has_a_row_a_group_from_three_groups_on() -> None:
    ev = make(4000, groups=9)
    spec = rise_chart(ev, view="global").to_dict()
    (strip,) = [x for x in layers_with(spec, "q0", "y0", "y1") if mark(x) == "rect"]
    assert {row["curve"] for row in strip["rows"]} == set(ev.groups)
    y = spec["layer"][0]["encoding"]["y"]
    assert min(row["y1"] for row in strip["rows"]) >= y["scale"]["domain"][0]
    assert max(row["y1"] for row in strip["rows"]) < -1
    # Vega thins given ticks to tickCount; no group may lose its name to that.
    assert y["axis"]["tickCount"] > len(y["axis"]["values"])


def test_hover_lists_all_groups_at_once() -> None:
    ev = make(groups=4)
    spec = rise_chart(ev).to_dict()
    (hover,) = [x for x in layers_with(spec, "c0", "q0") if mark(x) == "rect"]
    titles = [item["title"] for item in hover["encoding"]["tooltip"]]
    assert titles == ["rank", *(f"{label} (p − y)" for label in [*ev.groups, "all rows"])]
    assert len(hover["rows"]) == 100
    at = hover["rows"][37]
    expected = [curve.at(at["rank"]) for curve in [*ev.groups.values(), ev.overall]]
    assert [at[f"c{i}"] for i in range(5)] == pytest.approx(expected, abs=1e-6)


def test_hover_on_a_piece_tells_counts_and_shares() -> None:
    ev = make()
    spec = rise_chart(ev, view="global", segments=5).to_dict()
    (hover,) = [x for x in layers_with(spec, "verdict", "t0") if mark(x) == "rect"]
    first, piece = hover["rows"][0], ev.pieces(k=5)[0]
    label = next(iter(ev.groups))
    assert first["t0"] == f"{piece.counts[label]:,} rows, {piece.shares[label]:.1%}"
    assert piece.label in first["verdict"]


# --- colours, axes, text ----------------------------------------------------------------------


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_and_dashes_are_the_same_in_both_views(theme: Any) -> None:
    ev = make(groups=6)
    scales = [
        {channel: layer["encoding"][channel]["scale"] for channel in ("color", "strokeDash")}
        for view in ("groups", "global")
        for layer in rise_chart(ev, view=view, theme=theme).to_dict()["layer"]  # type: ignore[arg-type]
        if mark(layer) == "line"
    ]
    assert len(scales) == 2
    assert scales[0] == scales[1]


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda t: t.name)
def test_groups_are_told_apart_twice(theme: Any) -> None:
    palette = palette_for([f"g{i}" for i in range(20)] + ["(missing)"], theme)
    colours, dashes = palette.colors[:8], palette.dashes[:8]
    assert len(set(colours)) == len(set(dashes)) == 8
    assert len(set(zip(palette.colors, palette.dashes, strict=True))) == len(palette.labels)
    assert palette.color("(missing)") == theme.missing


def test_two_groups_are_blue_and_orange() -> None:
    assert palette_for(["a", "b"], LIGHT).colors[:2] == ("#0072B2", "#D55E00")


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda t: t.name)
def test_text_and_lines_can_be_read_on_the_background(theme: Any) -> None:
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(colour: str) -> float:
        a, b = sorted([luminance(colour), luminance(theme.background)])
        return (b + 0.05) / (a + 0.05)

    # WCAG 2: 4.5 for text, 3 for what is drawn.
    assert min(contrast(theme.text), contrast(theme.muted)) >= 4.5
    assert min(map(contrast, (*theme.groups[:2], theme.pooled, theme.accent))) >= 3
    assert min(map(contrast, theme.groups)) >= 2.5


def test_background_is_the_page_of_the_app() -> None:
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())
    for theme in (LIGHT, DARK):
        assert config["theme"][theme.name]["backgroundColor"] == theme.background


def test_axis_title_names_direction_formula_and_positive_class() -> None:
    def title(ev: Evaluation) -> str:
        axis = rise_chart(ev).to_dict()["layer"][0]["encoding"]["y"]
        return " ".join(axis["title"])

    signed = title(make())
    assert re.search(r"← under-estimated .* over-estimated →", signed)
    assert "p − y" in signed
    assert "positive: coat or dress" in signed
    gap = title(make(residual="decision_gap", threshold=0.3))
    assert "ŷ − p" in gap
    assert "0.3" in gap
    assert "coat or dress" in gap
    assert "under-estimated" not in gap


@pytest.mark.parametrize(
    ("settings", "low", "high"),
    [
        ({}, -1, 1),
        ({"residual": "decision_gap"}, -0.5, 0.5),
        ({"residual": "decision_gap", "threshold": 0.3}, -0.7, 0.7),
    ],
)
def test_full_range_is_the_residual_s_own(
    settings: dict[str, Any], low: float, high: float
) -> None:
    scale = rise_chart(make(**settings)).to_dict()["layer"][0]["encoding"]["y"]["scale"]
    assert scale["domain"][0] == pytest.approx(low)
    # Above the highest residual there is room for the segments' names.
    assert high < scale["domain"][1] < high + 0.2 * (high - low)


def test_fitted_range_is_what_is_drawn() -> None:
    ev = evaluate([0, 1] * 50, np.linspace(0.45, 0.55, 100), sensitive_features=["a", "b"] * 50)
    spec = rise_chart(ev, y_domain="fit").to_dict()
    low, high = spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert low < ev.overall.residuals[0]
    assert ev.overall.residuals[-1] < high < 0.8


def test_names_of_groups_are_data_and_never_expressions() -> None:
    odd = ["a\"b'c", "datum.x ? 1 : 2", "[x].y", "<img src=x>"]
    y = [0, 1] * 40
    ev = evaluate(y, np.linspace(0, 1, 80), sensitive_features=np.tile(odd, 20))
    for view in ("groups", "global"):
        compile_to_vega(rise_chart(ev, view=view).to_dict())
    axis = rise_chart(ev, view="global").to_dict()["layer"][0]["encoding"]["y"]["axis"]
    assert json.dumps("a\"b'c") in axis["labelExpr"]


def test_description_tells_groups_and_medians() -> None:
    ev = make()
    text = rise_chart(ev).to_dict()["description"]
    for label, curve in ev.groups.items():
        assert f"{label} {curve.median_residual:+.2f}" in text
    assert "coat or dress" in text


def brushes(chart: Any) -> list[dict[str, Any]]:
    return [p for p in chart.to_dict()["params"] if p["select"]["type"] == "interval"]


def test_the_brush_has_its_name_and_takes_ranks_of_all_rows_or_residuals() -> None:
    # Ranks within groups are other residuals in every group: there residuals are brushed.
    for view, axis in (("global", "x"), ("groups", "y")):
        (brush,) = brushes(rise_chart(make(), selection="stretch", view=view))  # type: ignore[arg-type]
        assert brush["name"] == "stretch"
        assert brush["select"]["encodings"] == [axis]
        assert "value" not in brush
    assert brushes(rise_chart(make(), selection=None)) == []


def test_a_brush_that_is_there_at_first_covers_the_same_rows_in_both_views() -> None:
    ev = make()
    (along,) = brushes(rise_chart(ev, view="global", band=(0.2, 0.6)))
    (across,) = brushes(rise_chart(ev, view="groups", band=(0.2, 0.6)))
    assert along["value"] == {"x": [0.2, 0.6]}
    low, high = across["value"]["y"]
    inside = (ev.residual_values >= low) & (ev.residual_values <= high)
    assert np.count_nonzero(inside) == pytest.approx(0.4 * ev.n, abs=2)


def test_unknown_view_and_theme_say_what_there_is() -> None:
    with pytest.raises(RiseError, match=r'"groups" or "global", got \'all\''):
        rise_chart(make(), view="all")  # type: ignore[arg-type]
    with pytest.raises(RiseError, match=r'"light" or "dark", got \'blue\''):
        rise_chart(make(), theme="blue")  # type: ignore[arg-type]


# --- it compiles, and it is small -------------------------------------------------------------


def compile_to_vega(spec: dict[str, Any]) -> dict[str, Any]:
    vl_convert = pytest.importorskip("vl_convert")
    found: dict[str, Any] = vl_convert.vegalite_to_vega(json.dumps(spec, allow_nan=False))
    return found


CASES = {
    "two": make,
    "weights": lambda: make(base_rates="equal"),
    "decision gap": lambda: make(residual="decision_gap"),
    "nine groups": lambda: make(groups=9),
    "collapsed": collapsed,
    "eighteen rows": eighteen,
    "group of two": tiny_group,
    "one group": one_group,
}


@pytest.mark.parametrize("case", CASES)
def test_every_case_compiles_in_both_views_and_themes(case: str) -> None:
    ev = CASES[case]()
    for view, theme in (("groups", "light"), ("global", "dark")):
        vega = compile_to_vega(rise_chart(ev, view=view, theme=theme).to_dict())  # type: ignore[arg-type]
        assert vega["marks"]


def test_every_combination_of_options_compiles() -> None:
    ev = make(120)
    flags = ("show_segments", "show_knees", "show_rulers", "show_boxes")
    some = list(itertools.product((False, True), repeat=len(flags)))
    # Colours change the tables of the layers, flags which layers there are: with another colour,
    # none and all of them will do.
    wanted = [(view, None, values) for view in ("groups", "global") for values in some]
    wanted += [
        (view, color_by, values)
        for view in ("groups", "global")
        for color_by in ("environment", "correctness", "lighting")
        for values in (some[0], some[-1])
    ]
    for view, color_by, values in wanted:
        chart = rise_chart(
            ev,
            view=view,  # type: ignore[arg-type]
            color_by=color_by,
            segments=7,
            y_domain="fit" if values[0] else "full",
            pieces_method="equal" if values[1] else "adaptive",
            selection="band" if values[2] else None,
            width=300 if values[3] else "container",
            **dict(zip(flags, values, strict=True)),  # type: ignore[arg-type]
        )
        assert compile_to_vega(chart.to_dict())["marks"]


@pytest.mark.parametrize("view", ["groups", "global"])
def test_legend_of_the_curves_survives_the_other_layers(view: Any) -> None:
    legends = compile_to_vega(rise_chart(make(), view=view).to_dict())["legends"]
    assert any("strokeDash" in legend and "stroke" in legend for legend in legends)
    assert any("shape" in legend for legend in legends)


@pytest.mark.parametrize("view", ["groups", "global"])
@pytest.mark.parametrize("groups", [2, 9])
def test_specification_stays_below_300_kilobytes(view: Any, groups: int) -> None:
    chart = rise_chart(make(60_000, groups=groups), view=view)
    assert len(chart.to_json(indent=None)) < 300_000


# --- small multiples --------------------------------------------------------------------------


def test_panels_share_axes_and_colours() -> None:
    models = {"A": make(seed=1), "B": make(seed=2, groups=3)}
    panels = curve_panels(models)
    assert list(panels) == ["A", "B"]
    specs = [panel.to_dict() for panel in panels.values()]
    assert specs[0]["title"] == "A"
    domains = [spec["layer"][0]["encoding"]["y"]["scale"]["domain"] for spec in specs]
    assert domains[0] == domains[1]
    lines = [next(x for x in spec["layer"] if mark(x) == "line") for spec in specs]
    assert lines[0]["encoding"]["color"]["scale"] == lines[1]["encoding"]["color"]["scale"]
    assert set(lines[0]["encoding"]["color"]["scale"]["domain"]) == {
        *models["B"].groups,
        "all rows",
    }
    for spec in specs:
        compile_to_vega(spec)


def test_grid_wraps_and_compiles() -> None:
    models = {f"model {i}": make(300, seed=i) for i in range(5)}
    spec = curve_grid(models, columns=2).to_dict()
    assert spec["columns"] == 2
    assert [part["title"] for part in spec["concat"]] == list(models)
    compile_to_vega(spec)
    legend = compile_to_vega(curve_legend(models).to_dict())["legends"]
    assert legend


def test_grid_refuses_what_cannot_share_an_axis() -> None:
    with pytest.raises(RiseError, match="at least one model"):
        curve_grid({})
    with pytest.raises(RiseError, match=r"same residual.*decision_gap.*signed_error"):
        curve_panels({"A": make(), "B": make(residual="decision_gap")})


# --- sparks -----------------------------------------------------------------------------------


def test_spark_values_rise_from_the_least_to_the_largest_residual() -> None:
    curve = make().overall
    values = spark_values(curve)
    assert len(values) == 40
    assert values == sorted(values)
    assert values[0] == pytest.approx(curve.residuals[0], abs=1e-3)
    assert values[-1] == pytest.approx(curve.residuals[-1], abs=1e-3)


def svg_of(uri: str) -> ElementTree.Element:
    prefix = "data:image/svg+xml;base64,"
    assert uri.startswith(prefix)
    return ElementTree.fromstring(b64decode(uri.removeprefix(prefix)))


@pytest.mark.parametrize("case", CASES)
def test_spark_svg_has_a_line_a_group_and_loads_nothing(case: str) -> None:
    ev = CASES[case]()
    uri = spark_svg(ev, theme="dark")
    root = svg_of(uri)
    lines = [e for e in root.iter() if e.tag.endswith("polyline")]
    assert len(lines) == len(ev.groups)
    assert "href" not in b64decode(uri.split(",")[1]).decode()
    assert len(uri) < 3_000 + 1_500 * len(ev.groups)


# --- strips -----------------------------------------------------------------------------------


def strip_frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "name": ["ERM", "IRM", "IGA", "MBDG", "CORAL", "Mixup"],
            "value": [0.4, 0.5, 70.0, 0.02, 0.5, NAN],
            "low": [0.2, 0.3, 1.0, 0.01, 0.3, NAN],
            "high": [0.8, 0.9, 150.0, 0.1, 200.0, NAN],
            "null_low": [0.1, 0.1, 0.2, 0.1, 0.2, NAN],
            "null_high": [0.45, 0.4, 60.0, 0.3, 0.9, NAN],
            "unstable": [False, False, True, False, False, False],
        }
    )


def test_one_runaway_row_does_not_flatten_the_others() -> None:
    low, high = strip_domain(strip_frame())
    assert low == 0
    assert 0.9 < high < 2


def test_strip_cuts_at_the_edge_and_says_so() -> None:
    spec = strip_chart(strip_frame()).to_dict()
    layer = layers_with(spec, "x_value", "beyond_high")[0]
    rows = {row["name"]: row for row in layer["rows"]}
    assert rows["IGA"]["beyond_high"]
    assert rows["CORAL"]["beyond_high"]
    assert not rows["ERM"]["beyond_high"]
    assert rows["IGA"]["text"] == "70.0"
    # A dot at the edge would claim a value there.
    assert not rows["IGA"]["shown"]
    assert rows["ERM"]["shown"]
    assert rows["IGA"]["interval"] == "1.000 to 150.0"


def test_strip_keeps_undefined_rows_and_reads_the_null() -> None:
    rows = {
        row["name"]: row
        for row in layers_with(strip_chart(strip_frame()).to_dict(), "verdict")[0]["rows"]
    }
    assert rows["Mixup"]["text"] == "–"
    assert rows["Mixup"]["verdict"] == "undefined"
    assert rows["ERM"]["verdict"] == "not distinguishable from a random grouping"
    assert rows["MBDG"]["verdict"] == "outside the band of random groupings"
    assert rows["IGA"]["verdict"].startswith("unstable")


@pytest.mark.parametrize("scale", ["shared", "own"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_strips_compile(scale: Any, theme: Any) -> None:
    frame = strip_frame()
    frame.loc[0, "value"] = math.inf
    frame["domain"] = [(0, 1), None, None, None, None, None]
    for options in ({}, {"names": False, "values": False, "axis": False, "fair": 0.0}):
        chart = strip_chart(frame, scale=scale, theme=theme, **options)
        assert compile_to_vega(chart.to_dict())["marks"]
    bare = pd.DataFrame({"name": ["a"], "value": [NAN]})
    assert compile_to_vega(strip_chart(bare, scale=scale).to_dict())["marks"]


def test_own_scales_put_every_row_between_0_and_1() -> None:
    frame = strip_frame().assign(domain=[(0, 1), (0, 1), (0, 100), (0, 0.2), None, None])
    rows = layers_with(strip_chart(frame, scale="own").to_dict(), "x_value")[0]["rows"]
    x = {row["name"]: row["x_value"] for row in rows}
    assert x["ERM"] == pytest.approx(0.4)
    assert x["IGA"] == pytest.approx(0.7)
    assert x["MBDG"] == pytest.approx(0.1)
    assert [row["name"] for row in rows] == strip_frame()["name"].tolist()


def test_strip_without_rows_or_columns_is_refused() -> None:
    with pytest.raises(RiseError, match="at least one row"):
        strip_chart(pd.DataFrame({"name": [], "value": []}))
    with pytest.raises(RiseError, match=r"\['value'\] is absent"):
        strip_chart(pd.DataFrame({"name": ["a"]}))


def test_strip_svg_marks_the_unstable_and_the_cut() -> None:
    steady = strip_svg(0.4, low=0.2, high=0.6, null_low=0.1, null_high=0.3, domain=(0, 1))
    assert len([e for e in svg_of(steady).iter() if e.tag.endswith("path")]) == 1
    cut = svg_of(strip_svg(0.4, low=0.2, high=9, domain=(0, 1), unstable=True, theme="dark"))
    paths = [e for e in cut.iter() if e.tag.endswith("path")]
    assert len(paths) == 2
    assert paths[0].get("stroke-dasharray")
    (dot,) = [e for e in cut.iter() if e.tag.endswith("circle")]
    assert dot.get("fill") == "none"
    for nowhere in (NAN, math.inf, 9.0):
        root = svg_of(strip_svg(nowhere, domain=(0, 1)))
        assert not [e for e in root.iter() if e.tag.endswith("circle")]


def test_an_interval_that_leaves_the_axis_on_the_left_ends_in_an_arrow() -> None:
    rows = pd.DataFrame({"name": ["a"], "value": [0.1], "low": [-3.0], "high": [0.4]})
    spec = strip_chart(rows, domain=(-1, 1)).to_dict()
    assert compile_to_vega(spec)["marks"]
    assert "270" in json.dumps(spec)
