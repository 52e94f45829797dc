"""Bands of a numeric column: round edges near its quantiles, and labels that show them.

Edges ``e_1 < … < e_k`` cut the numbers into ``k + 1`` bands, ``x < e_1``, ``e_1 ≤ x < e_2``, …,
``x ≥ e_k``: every number, an infinite one too, lies in exactly one. A missing value lies in none
and stays a group of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import ceil, floor, isfinite, log10
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rise_core.exceptions import ColumnError

__all__ = [
    "MANY_NUMBERS",
    "bin_labels",
    "checked_edges",
    "edges_text",
    "into_bands",
    "is_numeric",
    "is_whole",
    "nice_edges",
    "numbers_of",
    "parse_edges",
]

FloatArray = NDArray[np.float64]

MANY_NUMBERS = 20
"""Of more distinct numbers than this, bands are proposed instead of a group for each."""

_ROUND = (10, 5, 2, 1)
_DIGITS = 17  # of a double
_MOST_WRITTEN = 1e15


def nice_edges(values: Any, k: int = 4) -> tuple[float, ...]:
    """Choose round edges that cut numbers into about `k` bands of about as many rows each.

    Parameters
    ----------
    values : numbers, shape (n,); missing and infinite ones say nothing
    k : bands wanted, at least 2; ties and rounding may leave fewer

    Returns
    -------
    edges, ascending, with numbers in every band; () where all numbers are the same.

    Notes
    -----
    An edge is the roundest number whose share of numbers below it is within ``1 / (5 k)`` of the
    one wanted: a multiple of 10 is rounder than one of 5, 2 or 1, and so for every power of ten.

    Examples
    --------
    >>> nice_edges(range(18, 90))
    (35.0, 50.0, 70.0)
    """
    if k < 2:
        raise ValueError(f"k must be at least 2; came {k!r}.")
    numbers = np.asarray(values, dtype=np.float64)
    numbers = numbers[np.isfinite(numbers)]
    if not numbers.size:
        return ()
    shares = np.arange(1, k) / k
    near = 1 / (5 * k)
    low, middle, high = np.quantile(
        numbers, [shares - near, shares, shares + near], method="inverted_cdf"
    ).tolist()
    edges = {_roundest(*ends) for ends in zip(low, middle, high, strict=True)}
    return _without_empty_bands(sorted(edges), numbers) or _even_split(numbers)


def _without_empty_bands(edges: Sequence[float], numbers: FloatArray) -> tuple[float, ...]:
    """Keep the edges that have numbers below them, above the edge before, and beyond them."""
    below = [int(np.count_nonzero(numbers < edge)) for edge in edges]
    kept: list[float] = []
    before = 0
    for edge, count in zip(edges, below, strict=True):
        if before < count < numbers.size:
            kept.append(edge)
            before = count
    return tuple(kept)


def _even_split(numbers: FloatArray) -> tuple[float, ...]:
    """Return the one edge that splits numbers most evenly, where most of them are the same."""
    distinct, counts = np.unique(numbers, return_counts=True)
    if distinct.size < 2:
        return ()
    place = int(np.argmin(np.abs(np.cumsum(counts)[:-1] - numbers.size / 2)))
    low, high = float(distinct[place]), float(distinct[place + 1])
    edge = _roundest(low, high, high)
    return (edge if low < edge <= high else high,)


def _roundest(low: float, middle: float, high: float) -> float:
    """Return the roundest number in [low, high]; of several as round, the nearest to `middle`."""
    if low <= 0 <= high:
        return 0.0
    top = floor(log10(max(abs(low), abs(high))))
    for power in range(top, top - _DIGITS, -1):
        for multiple in _ROUND:
            step = multiple * 10.0**power
            if not 0 < step < np.inf:
                continue
            first, last = ceil(low / step), floor(high / step)
            if first <= last:
                # 3 × 0.0001 is not 0.0003 in binary: the shorter number is meant
                edge = round(min(max(round(middle / step), first), last) * step, max(0, -power))
                if low <= edge <= high:
                    return edge
    return middle


def checked_edges(edges: Iterable[Any], name: str) -> tuple[float, ...]:
    """Return edges as numbers.

    Parameters
    ----------
    edges : of the bands
    name : column that they cut, for messages

    Raises
    ------
    ColumnError
        none, one that is no finite number, or one that is not above the one before.
    """
    if isinstance(edges, str) or not isinstance(edges, Iterable):
        raise ColumnError(f"The edges of {name!r} must be a list of numbers; came {edges!r}.")
    found = []
    for edge in edges:
        if isinstance(edge, bool) or not isinstance(edge, int | float | np.integer | np.floating):
            raise ColumnError(f"An edge of {name!r} is no number: {edge!r}. Give such as 30, 45.")
        if not isfinite(edge):
            raise ColumnError(f"An edge of {name!r} is {edge}; edges must be finite.")
        found.append(float(edge))
    if not found:
        raise ColumnError(f"{name!r} has no edges. Give at least one, such as 30, 45, 60.")
    for before, edge in pairwise(found):
        if edge <= before:
            raise ColumnError(
                f"The edges of {name!r} must rise: {_number(edge)} comes after {_number(before)}."
            )
    return tuple(found)


def parse_edges(text: str, name: str) -> tuple[float, ...]:
    """Read edges as a person types them, such as "30, 45, 60".

    Parameters
    ----------
    text : numbers with commas, semicolons or spaces between them
    name : column that they cut, for messages

    Raises
    ------
    ColumnError
        as `checked_edges`.
    """
    edges = []
    for part in re.split(r"[,;\s]+", text.strip().replace("−", "-")):
        try:
            edges += [float(part)] if part else []
        except ValueError as error:
            raise ColumnError(
                f"An edge of {name!r} is no number: {part!r}. Give such as 30, 45, 60."
            ) from error
    return checked_edges(edges, name)


def edges_text(edges: Iterable[float]) -> str:
    """Return edges as a person types them; `parse_edges` reads them back.

    >>> edges_text((30.0, 45.5))
    '30, 45.5'
    """
    return ", ".join(map(_number, edges))


def bin_labels(edges: Sequence[float], whole: bool) -> tuple[str, ...]:
    """Name the bands by their edges, in ascending order.

    Parameters
    ----------
    edges : ascending, shape (k,)
    whole : whether only whole numbers are cut; then a band names its first and last number

    Returns
    -------
    k + 1 labels, no two alike

    >>> bin_labels((30, 45, 60), whole=True)
    ('under 30', '30–44', '45–59', '60 and over')
    >>> bin_labels((0.5, 0.75), whole=False)
    ('under 0.5', '[0.5, 0.75)', '0.75 and over')
    """
    whole = whole and all(map(_is_counted, edges))
    between = _whole_band if whole else _band
    return (
        f"under {_number(edges[0])}",
        *(between(low, high) for low, high in pairwise(edges)),
        f"{_number(edges[-1])} and over",
    )


def _band(low: float, high: float) -> str:
    return f"[{_number(low)}, {_number(high)})"


def _whole_band(low: float, high: float) -> str:
    first, last = int(low), int(high) - 1
    if first == last:
        return str(first)
    return f"{first}–{last}" if first >= 0 else f"{first} to {last}"


def _is_counted(value: float) -> bool:
    """Whether a number is whole, and small enough to be written out."""
    return value == floor(value) and abs(value) < _MOST_WRITTEN


def _number(value: float) -> str:
    """Return the shortest text that is this number; whole ones without a point."""
    return str(int(value)) if _is_counted(value) else repr(float(value))


def is_numeric(column: pd.Series[Any]) -> bool:
    """Whether a column holds numbers: no texts, no dates, no truth values."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    types = pd.api.types
    return (
        types.is_numeric_dtype(dtype)
        and not types.is_bool_dtype(dtype)
        and not types.is_complex_dtype(dtype)
    )


def is_whole(numbers: FloatArray) -> bool:
    """Whether all finite numbers are whole; shape (n,)."""
    finite = numbers[np.isfinite(numbers)]
    return bool(np.all(np.floor(finite) == finite))


def numbers_of(column: pd.Series[Any], name: str) -> FloatArray:
    """Return a column as numbers, nan where a value is missing; shape (n,).

    Raises
    ------
    ColumnError
        it holds something else, such as words: they would be lost.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        known = numbers_of(pd.Series(column.cat.categories), name)
        return np.append(known, np.nan)[column.cat.codes.to_numpy()]  # −1 takes the last
    if is_numeric(column):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if column.dtype.kind in "OTU" or pd.api.types.is_string_dtype(column.dtype):
        numbers = pd.to_numeric(column, errors="coerce")
        lost = numbers.isna() & column.notna()
        if not lost.any():
            return np.asarray(numbers.to_numpy(dtype=np.float64, na_value=np.nan))
        example: Any = column[lost].iloc[0]
    else:
        example = column.dropna().iloc[0] if column.notna().any() else column.dtype
    raise ColumnError(
        f"{name!r} holds {str(example)!r}, which is no number: it cannot be cut into bands. "
        "Take the edges away, and each of its values is a group."
    )


def into_bands(column: pd.Series[Any], edges: Sequence[float], name: str) -> pd.Categorical[Any]:
    """Cut a numeric column into bands.

    Parameters
    ----------
    column : numbers, shape (n,)
    edges : as `checked_edges` gives them
    name : of the column, for messages

    Returns
    -------
    ordered categories, shape (n,), all bands among them; missing values stay missing.

    Raises
    ------
    ColumnError
        as `numbers_of`.
    """
    numbers = numbers_of(column, name)
    codes = np.searchsorted(np.asarray(edges), numbers, side="right")
    codes[np.isnan(numbers)] = -1
    labels = bin_labels(edges, is_whole(numbers))
    return pd.Categorical.from_codes(codes, categories=pd.Index(labels), ordered=True)
