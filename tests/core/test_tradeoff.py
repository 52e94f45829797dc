"""The trade-off chart: every model is where its numbers are, or stands at the edge and says so."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from math import inf, isnan, nan
from typing import Any

import pandas as pd
import pytest

from rise_core.charts import DARK, LIGHT, tradeoff_chart
from rise_core.charts.tradeoff import TRADEOFF_COLUMNS
from rise_core.wording import METRICS

WIDTH, HEIGHT = 500, 380
GOOD, BEATEN = "no model is better on both", "beaten"

Row = tuple[Any, ...]


def frame(*rows: Row) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(TRADEOFF_COLUMNS))


STEADY = [
    ("ERM", 0.50, 0.40, 0.60, 0.80, 0.70, 0.90, True, False),
    ("IRM", 0.60, 0.50, 0.70, 0.70, 0.60, 0.80, False, False),
    ("Mixup", 0.70, 0.60, 0.80, 0.72, 0.62, 0.82, False, False),
]
FAR = ("Far", 900.0, 2.0, 5000.0, 0.75, 0.65, 0.85, False, True)
LOW = ("Low", -40.0, -45.0, -30.0, 0.75, 0.65, 0.85, True, False)


def spec(*rows: Row, **how: Any) -> dict[str, Any]:
    drawn: dict[str, Any] = tradeoff_chart(frame(*rows), "w1", width=WIDTH, **how).to_dict()
    return drawn


def layers(chart: dict[str, Any], mark: str) -> list[tuple[dict[str, Any], pd.DataFrame]]:
    """Layers of a kind of mark: the layer and its own table."""
    return [
        (layer, pd.DataFrame(chart["datasets"][layer["data"]["name"]]))
        for layer in chart["layer"]
        if layer["mark"]["type"] == mark
    ]


def names(chart: dict[str, Any]) -> dict[str, list[str]]:
    """Names inside the plot, and at its edges."""
    found: dict[str, list[str]] = {}
    for layer, table in layers(chart, "text"):
        if "model" in table:  # not the baseline's
            mark = layer["mark"]
            side = "inside" if mark["clip"] else mark["align"]
            found.setdefault(side, []).extend(table["text"])
    return {side: sorted(texts) for side, texts in found.items()}


def ends(chart: dict[str, Any], axis: str) -> list[float]:
    """Ends of an axis; all layers must agree on it."""
    found = [
        layer["encoding"][axis]["scale"]["domain"]
        for layer in chart["layer"]
        if "scale" in layer["encoding"].get(axis, {})
    ]
    assert all(domain == found[0] for domain in found)
    return list(found[0])


def drawn(chart: dict[str, Any]) -> dict[str, list[list[dict[str, str]]]]:
    """Marks of the compiled picture, one list a layer, by kind: what each is and where."""
    compiler = pytest.importorskip("vl_convert")
    root = ET.fromstring(compiler.vegalite_to_svg(chart))
    found: dict[str, list[list[dict[str, str]]]] = {}
    for group in root.iter():
        kind = re.match(r"mark-(\w+) role-mark", group.get("class", ""))
        if kind:
            marks = [{**mark.attrib, "text": mark.text or ""} for mark in group]
            found.setdefault(kind[1], []).append(marks)
    return found


def place(mark: dict[str, str]) -> tuple[float, float]:
    x, y = re.findall(r"-?[\d.]+(?:e-?\d+)?", mark["transform"])[:2]
    return float(x), float(y)


# ------------------------------------------------------------------------------------ data


def test_every_model_has_its_dot_its_intervals_and_its_name() -> None:
    chart = spec(*STEADY)
    ((dots, table),) = layers(chart, "point")
    assert table["model"].tolist() == ["ERM", "IRM", "Mixup"]
    assert table["shown"].tolist() == [0.5, 0.6, 0.7]
    assert table["y"].tolist() == [0.8, 0.7, 0.72]
    assert table["front"].tolist() == [GOOD, BEATEN, BEATEN]
    assert dots["encoding"]["x"]["field"] == "shown"
    assert dots["encoding"]["y"]["field"] == "y"
    (across, rows), (up, _) = layers(chart, "rule")
    assert (across["encoding"]["x"]["field"], across["encoding"]["x2"]["field"]) == ("from", "to")
    assert rows[["from", "to"]].to_numpy().tolist() == [[0.4, 0.6], [0.5, 0.7], [0.6, 0.8]]
    assert (up["encoding"]["y"]["field"], up["encoding"]["y2"]["field"]) == ("y_low", "y_high")
    assert names(chart) == {"inside": ["ERM", "IRM", "Mixup"]}


def test_the_front_joins_the_models_on_it_from_left_to_right() -> None:
    rows = [(*STEADY[2][:7], True, False), STEADY[1], STEADY[0]]
    ((line, table),) = layers(spec(*rows), "line")
    assert table["model"].tolist() == ["ERM", "Mixup"]
    assert line["encoding"]["order"]["field"] == "shown"


def test_axes_hold_all_steady_intervals_and_the_baseline() -> None:
    chart = spec(*STEADY, baseline=0.3)
    low, high = ends(chart, "x")
    assert low < 0.4 < 0.8 < high
    assert high - low < 1
    low, high = ends(chart, "y")
    assert low < 0.3 < 0.9 < high
    *_, (rule, table) = layers(chart, "rule")
    assert table["y"].tolist() == [0.3]
    assert rule["encoding"]["y"]["field"] == "y"
    assert ends(spec(*STEADY), "y")[0] > 0.5


def test_without_a_baseline_there_is_no_line_for_it() -> None:
    assert len(layers(spec(*STEADY, baseline=0.3), "rule")) == 3
    assert len(layers(spec(*STEADY), "rule")) == 2


@pytest.mark.parametrize("key", ["w1", "dp", "f_acc", "f_mean"])
def test_axis_titles_name_the_indicator_and_its_better_side(key: str) -> None:
    chart = tradeoff_chart(frame(*STEADY), key, width=WIDTH).to_dict()
    ((dots, _),) = layers(chart, "point")
    title = dots["encoding"]["x"]["title"]
    assert title == f"{METRICS[key].name}, {METRICS[key].meaning} {METRICS[key].arrow}"
    assert dots["encoding"]["y"]["title"] == "Accuracy ↑"
    names = [tip["title"] for tip in dots["encoding"]["tooltip"]]
    assert names == ["Model", "Accuracy", METRICS[key].name, "Its interval"]


def test_dots_zoom_and_their_words_are_for_all() -> None:
    chart = spec(*STEADY)
    (zoom,) = chart["params"]
    assert zoom["bind"] == "scales"
    assert chart["description"] == (
        "Accuracy against W1 of 3 models. No model is better on both than: ERM."
    )


def test_the_table_that_came_in_stays_as_it_is() -> None:
    table = frame(*STEADY, FAR)
    before = table.copy()
    tradeoff_chart(table, "w1", width=WIDTH)
    pd.testing.assert_frame_equal(table, before)


# ------------------------------------------------------------------------- what does not fit


def test_a_model_far_to_the_right_stands_at_the_edge_with_its_value() -> None:
    chart = spec(*STEADY, FAR)
    low, high = ends(chart, "x")
    assert low > 0
    assert high < 2, "one unstable model must not flatten the others"
    ((_, table),) = layers(chart, "point")
    assert table["shown"].tolist() == [0.5, 0.6, 0.7, high]
    assert table["x"].tolist()[-1] == 900
    assert names(chart) == {"inside": ["ERM", "IRM", "Mixup"], "right": ["Far (900 →)"]}


def test_a_model_far_to_the_left_too_on_its_side() -> None:
    chart = spec(*STEADY, LOW)
    low, _ = ends(chart, "x")
    assert low > 0
    assert names(chart) == {"inside": ["ERM", "IRM", "Mixup"], "left": ["(← −40.0) Low"]}
    name = next(mark for layer in drawn(chart)["text"] for mark in layer if "Low" in mark["text"])
    assert place(name)[0] >= 0
    assert name.get("text-anchor", "start") == "start"


def test_an_unstable_interval_does_not_stretch_the_axis() -> None:
    wide = ("Wide", 0.55, 0.1, 80.0, 0.75, 0.65, 0.85, False, True)
    assert ends(spec(*STEADY, wide), "x") == ends(spec(*STEADY), "x")


def test_where_all_are_unstable_the_values_make_the_axis() -> None:
    rows = [(*row[:8], True) for row in STEADY]
    low, high = ends(spec(*rows), "x")
    assert low < 0.5 < 0.7 < high


@pytest.mark.parametrize("end", [inf, -inf])
def test_an_interval_without_an_end_reaches_the_edge(end: float) -> None:
    name, x, low, high, *rest = STEADY[0]
    row = (name, x, low, end, *rest) if end > 0 else (name, x, end, high, *rest)
    chart = spec(row, *STEADY[1:])
    edge = ends(chart, "x")[1 if end > 0 else 0]
    (_, table), _ = layers(chart, "rule")
    assert table.loc[0, "to" if end > 0 else "from"] == edge
    first = drawn(chart)["rule"][0][0]
    start = place(first)[0]
    stop = start + float(first["x2"])
    assert (stop if end > 0 else min(start, stop)) == pytest.approx(WIDTH if end > 0 else 0)
    assert abs(stop - start) > 50
    ((_, dots),) = layers(chart, "point")
    assert "∞" in dots.loc[0, "interval"]


def test_an_endless_value_stands_at_the_edge() -> None:
    endless = ("Endless", inf, 0.5, inf, 0.75, 0.65, 0.85, False, False)
    chart = spec(*STEADY, endless)
    assert names(chart)["right"] == ["Endless (∞ →)"]
    assert len(drawn(chart)["symbol"][0]) == 4


def test_models_without_a_value_are_left_out() -> None:
    lost = ("Lost", nan, nan, nan, 0.75, 0.65, 0.85, False, False)
    other = ("Other", 0.6, 0.5, 0.7, nan, nan, nan, False, False)
    chart = spec(*STEADY, lost, other)
    ((_, table),) = layers(chart, "point")
    assert table["model"].tolist() == ["ERM", "IRM", "Mixup"]
    assert "3 models" in chart["description"]


def test_values_without_intervals_are_dots_alone() -> None:
    bare = [
        (name, x, nan, nan, y, nan, nan, front, False)
        for name, x, _, _, y, _, _, front, _ in STEADY
    ]
    chart = spec(*bare)
    ((_, table),) = layers(chart, "point")
    assert table["interval"].tolist() == ["–"] * 3
    marks = drawn(chart)
    assert len(marks["symbol"][0]) == 3
    assert marks["rule"] == [[], []]


def test_nothing_to_draw_is_an_empty_plot_with_words() -> None:
    chart = spec(("Lost", nan, nan, nan, 0.75, 0.65, 0.85, False, False), baseline=0.6)
    assert chart["description"] == "Accuracy against W1: no model has both values."
    assert drawn(chart)["symbol"] == [[]]


def test_models_on_one_spot_have_axes_all_the_same() -> None:
    rows = [(name, 0.5, nan, nan, 0.8, nan, nan, True, False) for name in ("ERM", "Twin")]
    chart = spec(*rows)
    for axis in ("x", "y"):
        low, high = ends(chart, axis)
        assert high - low > 0.01
    assert len(drawn(chart)["symbol"][0]) == 2


# ----------------------------------------------------------------------------- as it is seen


def test_the_picture_puts_everything_where_the_numbers_say() -> None:
    chart = spec(*STEADY, FAR, baseline=0.65)
    marks = drawn(chart)
    (left, right), (bottom, top) = ends(chart, "x"), ends(chart, "y")

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            WIDTH * (min(x, right) - left) / (right - left),
            HEIGHT * (top - y) / (top - bottom),
        )

    for dot, row in zip(marks["symbol"][0], [*STEADY, FAR], strict=True):
        assert place(dot) == pytest.approx(at(row[1], row[4]), abs=1e-6)
    for line, row in zip(marks["rule"][0], STEADY, strict=False):
        start = place(line)
        assert start == pytest.approx(at(row[2], row[4]), abs=1e-6)
        assert start[0] + float(line["x2"]) == pytest.approx(at(row[3], 0)[0], abs=1e-6)
    for line, row in zip(marks["rule"][1], [*STEADY, FAR], strict=True):
        foot = place(line)
        assert foot == pytest.approx(at(row[1], row[5]), abs=1e-6)
        assert foot[1] + float(line["y2"]) == pytest.approx(at(0, row[6])[1], abs=1e-6)
    (level,) = marks["rule"][2]
    assert place(level)[1] == pytest.approx(at(0, 0.65)[1], abs=1e-6)
    texts = [mark["text"] for layer in marks["text"] for mark in layer]
    assert sorted(texts) == sorted(["ERM", "IRM", "Mixup", "Far (900 →)", "majority baseline"])


def test_names_of_close_models_do_not_lie_on_each_other() -> None:
    pytest.importorskip("vl_convert")
    close = [
        (f"Model {i}", 0.5 + 0.004 * i, 0.3, 0.7, 0.8 + 0.003 * (i % 3), 0.7, 0.9, False, False)
        for i in range(6)
    ]
    marks = [mark for layer in drawn(spec(*close))["text"] for mark in layer]
    assert len(marks) == 6
    boxes = []
    for mark in marks:
        x, y = place(mark)
        length = 5.5 * len(mark["text"])
        left = {"start": x, "middle": x - length / 2, "end": x - length}[
            mark.get("text-anchor", "start")
        ]
        boxes.append((left, left + length, y))
    for i, (left, right, y) in enumerate(boxes):
        for other_left, other_right, other_y in boxes[:i]:
            apart = right <= other_left or other_right <= left or abs(y - other_y) >= 11
            assert apart, (marks[i]["text"], boxes)


def test_the_front_is_told_by_shape_and_by_colour() -> None:
    dots = drawn(spec(*STEADY))["symbol"][0]
    on, off, _ = dots
    assert on["d"] != off["d"]
    assert on["fill"] != off["fill"]
    assert dots[1]["fill"] == dots[2]["fill"]


@pytest.mark.parametrize(("theme", "look"), [("light", LIGHT), ("dark", DARK)])
def test_both_themes(theme: Any, look: Any) -> None:
    chart = spec(*STEADY, theme=theme)
    assert chart["config"]["background"] == look.background
    assert drawn(chart)["symbol"][0][0]["fill"].lower() == look.groups[1].lower()


def test_names_from_outside_are_text() -> None:
    name = "<img src=x onerror=alert(1)>"
    marks = drawn(spec((name, *STEADY[0][1:]), *STEADY[1:]))
    assert marks["text"][0][0]["text"] == name


def test_no_number_of_the_picture_is_nan() -> None:
    compiler = pytest.importorskip("vl_convert")
    for rows in ([*STEADY, FAR, LOW], STEADY[:1], [FAR]):
        svg = compiler.vegalite_to_svg(spec(*rows, baseline=0.6))
        assert "NaN" not in svg
        assert not any(isnan(float(x)) for x in re.findall(r'x2="([^"]+)"', svg))
