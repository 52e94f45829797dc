"""The report is counted from the tables, and says so when they change."""

from __future__ import annotations

import json
from math import inf, nan

import pytest

from demo.pack import INDICATORS
from demo.results import REPORT, cell, number, report


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1234, ".123"), (0.9996, "1.000"), (1.5, "1.500"), (12.34, "12.3"), (1234.0, "1,234"),
     (-0.5, "-.500"), (inf, "∞"), (0.0, ".000")],
)  # fmt: skip
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value) == text


def test_a_cell_is_mean_and_range_and_an_undefined_seed_is_not_a_zero() -> None:
    assert cell([0.1, 0.2, 0.6]) == ".300 (.100–.600)"
    assert cell([0.1, nan, 0.3]) == ".200 (.100–.300; 2 of 3 seeds)"
    assert cell([0.5, 0.5]) == ".500"
    assert cell([nan, nan]) == "–"


def test_the_committed_report_is_what_the_tables_say() -> None:
    text, values = report()
    assert REPORT.read_text(encoding="utf-8") == text, "run `python -m demo.results`"
    committed = json.loads(INDICATORS.read_text(encoding="utf-8"))
    for dataset, runs in json.loads(values).items():
        for name, found in runs.items():
            assert committed[dataset][name] == pytest.approx(found, abs=1e-6), (dataset, name)
