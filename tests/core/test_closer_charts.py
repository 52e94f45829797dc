"""Charts of calibration, thresholds and environments, by the tables that they draw."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rise_core import Evaluation, RiseError, evaluate
from rise_core.calibration import calibrate
from rise_core.charts import calibration_chart, heat_map, threshold_charts
from rise_core.thresholds import threshold_sweep
from tests.core.test_charts import compile_to_vega


def model(n: int = 400) -> Evaluation:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    p = np.clip(0.2 + 0.5 * y + rng.normal(0, 0.2, n), 0, 1)
    labels = np.where(y == 1, "lamb <b>", "wolf")
    return evaluate(labels, p, sensitive_features=rng.choice(["a", "b"], n), pos_label="lamb <b>")


def drawn(chart: Any) -> list[pd.DataFrame]:
    return [pd.DataFrame(rows) for rows in chart.to_dict()["datasets"].values()]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_reliability_draws_every_bin_and_names_the_class(theme: Any) -> None:
    ev = model()
    found = calibrate(ev)
    chart = calibration_chart(found, list(ev.groups), ev.predictions.pos_label, theme=theme)
    (bins,) = [table for table in drawn(chart) if "mean_score" in table and "low" in table]
    wanted = found.table[found.table["group"] != "all"]
    assert len(bins) == len(wanted)
    assert bins["observed"].tolist() == pytest.approx(wanted["observed"].tolist(), abs=1e-5)
    assert "lamb <b>" in chart.to_json()
    vega = compile_to_vega(chart.to_dict())
    assert bins.groupby("curve")["shape"].nunique().tolist() == [1, 1]
    assert bins["shape"].nunique() == 2
    # Dash tells the groups apart, so colour is not the only channel.
    assert any("strokeDash" in legend for legend in vega["legends"])


def test_thresholds_are_drawn_in_three_charts_with_the_current_one_marked() -> None:
    ev = model()
    sweep = threshold_sweep(ev)
    charts = threshold_charts(sweep, 0.3, baseline=ev.majority_accuracy)
    assert len(charts) == 3
    for chart in charts.values():
        assert compile_to_vega(chart.to_dict())["marks"]
        assert any(list(t.columns) == ["threshold"] and t.iloc[0, 0] == 0.3 for t in drawn(chart))
        # A click takes one of the sweep's thresholds.
        (click,) = [p for p in chart.to_dict()["params"] if p["name"] == "at"]
        assert click["select"]["fields"] == ["threshold"]
        (columns,) = [t for t in drawn(chart) if "x0" in t]
        assert columns["threshold"].tolist() == pytest.approx(sweep["threshold"].tolist())
        assert max(len(t) for t in drawn(chart)) <= 3 * 101


def test_one_group_has_accuracy_alone() -> None:
    ev = evaluate([0, 1, 1, 0], [0.2, 0.7, 0.4, 0.6], sensitive_features=["a"] * 4)
    assert list(threshold_charts(threshold_sweep(ev), 0.5)) == ["Accuracy"]


def test_an_endless_ratio_is_drawn_at_the_edge_and_said_in_the_tooltip() -> None:
    # From .3 to .7 nobody of the reference is called positive, and one in two of the others is.
    ev = evaluate(
        [0, 1, 0, 1], [0.1, 0.2, 0.1, 0.7], sensitive_features=list("aabb"), sensitive="b"
    )
    chart = threshold_charts(threshold_sweep(ev), 0.5)["DP, ratio of positive rates (1 is parity)"]
    (columns,) = [t for t in drawn(chart) if "x0" in t]
    assert "∞" in columns["t0"].tolist()
    (line,) = [t for t in drawn(chart) if "key" in t]
    assert np.isfinite(line["value"]).all()
    assert compile_to_vega(chart.to_dict())["marks"]


def cells(**changes: Any) -> pd.DataFrame:
    table = pd.DataFrame(
        {
            "row": ["m1", "m1", "m2", "m2"],
            "column": ["a long name of a place", "x", "a long name of a place", "x"],
            "value": [0.1, math.nan, 0.3, math.inf],
            "distance": [0.1, math.nan, 0.3, math.inf],
            "text": ["0.100", "–", "0.300", "∞"],
        }
    )
    return table.assign(**changes)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_heat_map_writes_every_number_and_marks_the_unsure(theme: Any) -> None:
    chart = heat_map(
        cells(unsure=[True, False, False, False], marked=[False] * 3 + [True]), theme=theme
    )
    (table,) = drawn(chart)
    assert table["label"].tolist() == ["~ 0.100", "–", "0.300", "∞"]
    assert table["shade"].iloc[0] < table["shade"].iloc[2]
    assert table["column"].iloc[0].count("\n") == 1
    assert compile_to_vega(chart.to_dict())["marks"]
    assert "m1, a long name of a place: ~ 0.100" in chart.to_dict()["description"]


def test_a_heat_map_without_rows_or_columns_says_what_it_needs() -> None:
    with pytest.raises(RiseError, match="it has no rows"):
        heat_map(cells().iloc[:0])
    with pytest.raises(RiseError, match="distance"):
        heat_map(cells().drop(columns="distance"))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_numbers_of_a_heat_map_can_be_read_on_every_shade(theme: Any) -> None:
    steps = np.linspace(0, 1, 101)
    table = pd.DataFrame(
        {
            "row": [f"m{place}" for place in range(101)],
            "column": "c",
            "value": steps,
            "distance": steps,
            "text": "0.1",
        }
    )
    chart = heat_map(table, theme=theme)
    (shown,) = [t for t in drawn(chart) if "ink" in t]
    scale = chart.to_dict()["layer"][0]["encoding"]["color"]["scale"]
    weak, strong = (np.array(to_rgb(color)) for color in scale["range"])

    def luminance(rgb: Any) -> float:
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    for shade, ink in zip(shown["shade"], shown["ink"], strict=True):
        ends = sorted(map(luminance, (weak + shade * (strong - weak), np.array(to_rgb(ink)))))
        assert (ends[1] + 0.05) / (ends[0] + 0.05) >= 4.5, (shade, ink)


def to_rgb(color: str) -> list[float]:
    return [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]


def test_many_columns_of_a_heat_map_take_shorter_lines() -> None:
    names = [f"patrol car, plain clothes {place}" for place in range(6)]
    table = pd.DataFrame(
        {"row": "m", "column": names, "value": 0.1, "distance": 0.1, "text": "0.1"}
    )
    (shown,) = [t for t in drawn(heat_map(table)) if "ink" in t]
    longest = max(len(line) for name in shown["column"] for line in name.split("\n"))
    # Six columns have 80 pixels each where a phone scrolls, and a character takes about 6.
    assert longest <= 13
