"""Bands of numeric columns: edges that people would choose, labels that show them, nothing lost."""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rise_core import binning
from rise_core.binning import (
    bin_labels,
    checked_edges,
    edges_text,
    into_bands,
    is_numeric,
    is_whole,
    nice_edges,
    parse_edges,
)
from rise_core.exceptions import ColumnError

NAN, INF = np.nan, np.inf


def test_the_examples_in_the_documentation() -> None:
    assert doctest.testmod(binning).failed == 0


# --------------------------------------------------------------------------------- edges


@pytest.mark.parametrize(
    ("values", "k", "edges"),
    [
        # ages 18 to 89, each once: quartiles 35.5, 53.5, 71.5
        (range(18, 90), 4, (35, 50, 70)),
        (range(18, 90), 2, (50,)),
        (range(1, 101), 10, (10, 20, 30, 40, 50, 60, 70, 80, 90)),
        (np.arange(1, 101) / 1e5, 4, (0.0002, 0.0005, 0.0008)),
        (np.arange(1, 101) * 1000, 4, (20_000, 50_000, 80_000)),
        (range(-100, 101), 4, (-50, 0, 50)),
        ([7] * 9, 4, ()),
        ([NAN, INF, -INF], 4, ()),
        ([], 4, ()),
        # four fifths are 0, so three quantiles are: the only cut keeps the zeros together
        ([0] * 80 + list(range(1, 21)), 4, (1,)),
        # two numbers
        ([5] * 9 + [6], 4, (6,)),
        ([5] + [6] * 9, 4, (6,)),
        ([NAN, 1.5, INF, 1.5, 2.5, 2.5], 4, (2,)),
        # nothing rounder lies between them
        ([0.3, 0.1 + 0.2], 4, (0.1 + 0.2,)),
    ],
)  # fmt: skip
def test_nice_edges(values: Any, k: int, edges: tuple[float, ...]) -> None:
    assert nice_edges(values, k) == edges


def test_edges_that_round_alike_are_one() -> None:
    # quartiles 99.9, 100.0, 100.1: one of them is left, the others would cut off nobody
    values = np.r_[np.full(50, 99.9), np.full(50, 100.0), np.full(50, 100.1), 0.0]
    edges = nice_edges(values)
    assert edges == tuple(sorted(set(edges)))
    assert 100.0 in edges


def test_fewer_than_two_bands_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        nice_edges([1, 2], 1)


NUMBERS = st.lists(st.floats(width=64) | st.integers(-100, 100).map(float), max_size=60)


@settings(max_examples=300, deadline=None)
@given(NUMBERS, st.integers(2, 8))
@example([5e-324, 1e-323], 4)
@example([1.7976931348623157e308, -1.7976931348623157e308, 1.0], 3)
def test_edges_rise_and_leave_no_band_empty(values: list[float], k: int) -> None:
    edges = nice_edges(values, k)
    finite = [value for value in values if np.isfinite(value)]
    assert bool(edges) == (len(set(finite)) > 1)
    if not edges:
        return
    assert len(edges) < k or len(edges) == 1
    assert checked_edges(edges, "x") == edges
    counts = np.histogram(finite, [-INF, *edges, INF])[0]
    assert (counts > 0).all()
    if is_whole(np.array(finite)):
        assert all(edge == int(edge) for edge in edges)


@settings(max_examples=300, deadline=None)
@given(st.sets(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_edges_are_read_back_as_written(numbers: set[float]) -> None:
    edges = tuple(sorted(numbers))
    assert parse_edges(edges_text(edges), "x") == edges


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        ("30, 45, 60", (30, 45, 60)),
        ("30;45 60\n", (30, 45, 60)),
        (" −10, -0.5,1e3 ", (-10, -0.5, 1000)),
        ("0.0003", (0.0003,)),
    ],
)
def test_edges_as_people_type_them(text: str, edges: tuple[float, ...]) -> None:
    assert parse_edges(text, "age") == edges


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "'age' has no edges"),
        (" , ", "'age' has no edges"),
        ("30, old", "no number: 'old'"),
        ("30, 30", "must rise: 30 comes after 30"),
        ("45, 30", "must rise: 30 comes after 45"),
        ("30, nan", "is nan; edges must be finite"),
        ("30, inf", "is inf; edges must be finite"),
    ],
)
def test_edges_that_cannot_be_meant(text: str, says: str) -> None:
    with pytest.raises(ColumnError, match=says):
        parse_edges(text, "age")


@pytest.mark.parametrize("edges", ["30", 30, [True], ["30"], [None], []])
def test_edges_of_foreign_hands_are_checked(edges: Any) -> None:
    with pytest.raises(ColumnError):
        checked_edges(edges, "age")


# -------------------------------------------------------------------------------- labels


@pytest.mark.parametrize(
    ("edges", "whole", "labels"),
    [
        ((30, 45, 60), True, ("under 30", "30–44", "45–59", "60 and over")),
        ((30, 31), True, ("under 30", "30", "31 and over")),
        ((-10, 0), True, ("under -10", "-10 to -1", "0 and over")),
        ((1,), True, ("under 1", "1 and over")),
        # an edge between two whole numbers would name none of them
        ((17.5, 30), True, ("under 17.5", "[17.5, 30)", "30 and over")),
        ((0.5, 0.75), False, ("under 0.5", "[0.5, 0.75)", "0.75 and over")),
        ((0.0003, 1), False, ("under 0.0003", "[0.0003, 1)", "1 and over")),
    ],
)
def test_labels_show_the_edges(edges: Any, whole: bool, labels: tuple[str, ...]) -> None:
    assert bin_labels(edges, whole) == labels


@settings(max_examples=200, deadline=None)
@given(
    st.sets(
        st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9).map(float),
        min_size=1,
        max_size=8,
    ),
    st.booleans(),
)
def test_no_two_labels_are_alike(numbers: set[float], whole: bool) -> None:
    labels = bin_labels(sorted(numbers), whole)
    assert len(set(labels)) == len(numbers) + 1


# ----------------------------------------------------------------------------- the bands


def bands(values: Any, edges: tuple[float, ...] = (30.0, 45.0)) -> list[Any]:
    column = values if isinstance(values, pd.Series) else pd.Series(values)
    made = into_bands(column, edges, "age")
    assert made.ordered
    return [None if value is NAN or value != value else value for value in made]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([29, 30, 44, 45]),
        pd.Series([29.0, 30.0, 44.0, 45.0]),
        pd.Series([29, 30, 44, 45], dtype="Int64"),
        pd.Series([29, 30, 44, 45], dtype="category"),
        pd.Series(["29", "30", "44", "45"]),
        pd.Series(["29", "30", "44", "45"], dtype="category"),
        pd.Series([29, 30, 44, 45], dtype=object),
        pl.Series([29, 30, 44, 45]).to_pandas(),
    ],
    ids=lambda column: str(column.dtype),
)
def test_a_number_on_an_edge_lies_above_it(column: Any) -> None:
    assert bands(column) == ["under 30", "30–44", "30–44", "45 and over"]


def test_a_fraction_makes_half_open_intervals() -> None:
    assert bands([29.9, 30.0, 44.999, 45.0]) == [
        "under 30",
        "[30, 45)",
        "[30, 45)",
        "45 and over",
    ]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([29, None, 45]),
        pd.Series([29, None, 45], dtype="Int64"),
        pd.Series([29, None, 45], dtype="category"),
        pd.Series(["29", None, "45"]),
    ],
    ids=lambda column: str(column.dtype),
)
def test_a_missing_value_lies_in_no_band(column: Any) -> None:
    assert bands(column) == ["under 30", None, "45 and over"]


def test_infinite_numbers_are_numbers() -> None:
    assert bands([-INF, 31, INF]) == ["under 30", "30–44", "45 and over"]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["29", "unknown"]),
        pd.Series(["29", "unknown"], dtype="category"),
        pd.Series([True, False]),
        pd.to_datetime(pd.Series(["2026-01-01", "2026-01-02"])),
        pd.Series([[1], [2]]),
        pd.Series([1j, 2j]),
    ],
    ids=lambda column: str(column.dtype),
)
def test_what_is_no_number_is_refused_and_not_lost(column: Any) -> None:
    with pytest.raises(ColumnError, match=r"'age' holds .*no number"):
        bands(column)


def test_numbers_are_told_from_what_looks_like_them() -> None:
    assert is_numeric(pd.Series([1, 2]))
    assert is_numeric(pd.Series([1, None], dtype="Int64"))
    assert is_numeric(pd.Series([1.5], dtype="category"))
    assert not is_numeric(pd.Series([True]))
    assert not is_numeric(pd.Series(["1"]))
    assert not is_numeric(pd.to_datetime(pd.Series(["2026-01-01"])))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.floats(width=32) | st.integers(-50, 50).map(float), max_size=40),
    st.sets(st.integers(-40, 40), min_size=1, max_size=6),
)
def test_every_number_lies_in_the_band_that_its_edges_say(
    values: list[float], numbers: set[int]
) -> None:
    edges = tuple(map(float, sorted(numbers)))
    made = into_bands(pd.Series(values, dtype=float), edges, "x")
    ends = [-INF, *edges, INF]
    for value, code in zip(values, made.codes, strict=True):
        if np.isnan(value):
            assert code == -1
        else:
            assert ends[code] <= value
            assert value < ends[code + 1] or value == INF
