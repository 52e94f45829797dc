"""Every indicator has its words, and its best value is the one that words and direction name."""

from __future__ import annotations

from dataclasses import fields
from math import inf, nan

import pytest

from rise_core import evaluate
from rise_core.indicators import Indicators
from rise_core.wording import METRICS, format_number


def test_every_indicator_has_its_words_in_the_same_order() -> None:
    assert list(METRICS) == [field.name for field in fields(Indicators)]
    for key, metric in METRICS.items():
        assert metric.key == key
        assert metric.meaning
        assert metric.formula
        assert metric.explains.endswith(".")
        assert metric.direction.endswith(".")


def test_a_perfect_model_that_treats_the_groups_alike_has_the_ideal_values() -> None:
    """The same residuals in both groups, all decisions right."""
    p = [0.02, 0.05, 0.1, 0.3, 0.6, 0.9, 0.95, 0.99, 0.45, 0.51]
    y = [int(score >= 0.5) for score in p]
    ev = evaluate(y * 2, p * 2, sensitive_features=["a"] * 10 + ["b"] * 10)
    for name, value in ev.indicators:
        assert value == pytest.approx(METRICS[name].ideal), name


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.12345, "0.123"),
        (-0.5, "−0.500"),
        (12345.6789, "12,345.679"),
        (nan, "–"),
        (inf, "∞"),
        (-inf, "−∞"),
    ],
)
def test_numbers_for_people(value: float, text: str) -> None:
    assert format_number(value) == text


def test_fewer_digits() -> None:
    assert format_number(2.5, digits=1) == "2.5"
