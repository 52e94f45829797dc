"""What must hold for any predictions whatever (hypothesis)."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from math import isinf, isnan
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rise_core import Evaluation, evaluate
from rise_core.curve import SortedSample
from rise_core.knees import Bend, twin_knees

# The same examples in every run, so that a failure is there again in the next one. No deadline: on
# a busy machine an example can be slow for reasons that are not its own.
# RISE_EXAMPLES=5000 looks further, with other examples each time.
MORE = os.environ.get("RISE_EXAMPLES")
some = settings(
    max_examples=int(MORE or 40), derandomize=MORE is None, deadline=None, database=None
)

# Dyadic scores: differences are exact, so that equal residuals are equal.
scores = st.one_of(
    st.integers(0, 8).map(lambda i: i / 8),
    st.integers(0, 1024).map(lambda i: i / 1024),
    st.sampled_from([0.0, 1.0, 0.5]),
)
weights = st.one_of(st.just(1.0), st.integers(1, 64).map(lambda i: i / 8))
options = st.fixed_dictionaries(
    {
        "residual": st.sampled_from(["signed_error", "decision_gap"]),
        "base_rates": st.sampled_from(["observed", "equal"]),
        "threshold": st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    }
)


@dataclass(frozen=True)
class Table:
    y: list[int]
    p: list[float]
    group: list[str]
    place: list[str]
    weight: list[float] | None

    def take(self, order: Any) -> Table:
        def pick(column: list[Any]) -> list[Any]:
            return [column[i] for i in order]

        return Table(
            pick(self.y),
            pick(self.p),
            pick(self.group),
            pick(self.place),
            None if self.weight is None else pick(self.weight),
        )


@st.composite
def tables(draw: st.DrawFn, groups: str = "abc", min_rows: int = 1) -> Table:
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(0, 1), scores, st.sampled_from(groups), st.sampled_from("xy"), weights
            ),
            min_size=min_rows,
            max_size=50,
        )
    )
    y, p, group, place, weight = (list(column) for column in zip(*rows, strict=True))
    return Table(y, p, group, place, weight if draw(st.booleans()) else None)


def evaluated(table: Table, **chosen: Any) -> Evaluation:
    return evaluate(
        table.y,
        table.p,
        sensitive_features=table.group,
        environment=table.place,
        sample_weight=table.weight,
        **chosen,
    )


def same(a: float, b: float) -> bool:
    if isnan(a) or isnan(b) or isinf(a) or isinf(b):
        return repr(a) == repr(b)
    return a == pytest.approx(b, rel=1e-9, abs=1e-9)


def assert_same_indicators(a: Evaluation, b: Evaluation, *, but: tuple[str, ...] = ()) -> None:
    for (name, one), (_, other) in zip(a.indicators, b.indicators, strict=True):
        if name not in but:
            assert same(one, other), (name, one, other)


def assert_same_curves(a: Evaluation, b: Evaluation) -> None:
    assert set(a.groups) == set(b.groups)
    for label in a.groups:
        one, other = a.groups[label], b.groups[label]
        assert one.residuals.tolist() == other.residuals.tolist()
        assert same(one.median_position, other.median_position)
        for knee, twin in (
            (one.left_knee, other.left_knee),
            (one.right_knee, other.right_knee),
        ):
            assert (knee is None) == (twin is None)
            if knee is not None and twin is not None:
                assert (knee.index, knee.residual) == (twin.index, twin.residual)


@some
@given(tables(), options, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_nothing(table: Table, chosen: Any, random: Any) -> None:
    order = list(range(len(table.y)))
    random.shuffle(order)
    one, other = evaluated(table, **chosen), evaluated(table.take(order), **chosen)
    assert_same_indicators(one, other)
    assert_same_curves(one, other)
    assert one.undefined == other.undefined
    assert one.sensitive == other.sensitive
    assert [p.n for p in one.pieces(10)] == [p.n for p in other.pieces(10)]
    for segment, twin in zip(one.segments, other.segments, strict=True):
        assert same(segment.area, twin.area)
        assert same(segment.slope_gap, twin.slope_gap)


@some
@given(tables(groups="ab"), options)
def test_the_names_of_the_groups_change_nothing(table: Table, chosen: Any) -> None:
    assume("a" in table.group)
    names = {"a": "zebra", "b": "(missing)"}
    renamed = replace(table, group=[names[g] for g in table.group])
    one = evaluated(table, sensitive="a", **chosen)
    other = evaluated(renamed, sensitive="zebra", **chosen)
    assert_same_indicators(one, other)
    assert [names[label] for label in one.groups] == list(other.groups)
    assert one.displacements[["delta_h", "delta_d"]].equals(
        other.displacements[["delta_h", "delta_d"]]
    )


@some
@given(tables(), options, st.sampled_from([1e-6, 1 / 3, 1.0, 8.0, 1e9]))
def test_equal_weights_of_any_size_change_nothing(table: Table, chosen: Any, weight: float) -> None:
    none = evaluated(replace(table, weight=None), **chosen)
    equal = evaluated(replace(table, weight=[weight] * len(table.y)), **chosen)
    assert_same_indicators(none, equal)
    assert_same_curves(none, equal)


@some
@given(tables(), options, st.sampled_from([0.125, 3.0, 1024.0]))
def test_weights_have_no_unit(table: Table, chosen: Any, factor: float) -> None:
    assume(table.weight is not None)
    scaled = replace(table, weight=[w * factor for w in table.weight or []])
    one, other = evaluated(table, **chosen), evaluated(scaled, **chosen)
    assert_same_indicators(one, other)
    assert_same_curves(one, other)


@some
@given(tables())
def test_every_row_twice_moves_a_percentile_by_less_than_a_row(table: Table) -> None:
    n = len(table.y)
    plain = replace(table, weight=None)
    once, twice = evaluated(plain), evaluated(plain.take(list(range(n)) * 2))
    at = once.overall.residuals
    moved = np.abs(once.overall.percentile(at) - twice.overall.percentile(at))
    assert moved.max() <= 1 / n
    assert abs(once.overall.median_position - twice.overall.median_position) <= 1 / n
    for name in ("accuracy", "dp", "md", "md_decision", "w1"):
        assert same(getattr(once.indicators, name), getattr(twice.indicators, name)), name
    for label, curve in once.groups.items():
        assert curve.median_residual == twice.groups[label].median_residual


@some
@given(tables(groups="ab", min_rows=2), options)
def test_the_other_group_as_sensitive_inverts_dp_and_nothing_else(
    table: Table, chosen: Any
) -> None:
    assume(len(set(table.group)) == 2)
    one, other = (evaluated(table, sensitive=label, **chosen) for label in "ab")
    assert_same_indicators(one, other, but=("dp",))
    inverse = {0.0: float("inf"), float("inf"): 0.0}
    dp = one.indicators.dp
    assert same(other.indicators.dp, inverse[dp] if dp in inverse else 1 / dp)
    assert set(one.undefined) == set(other.undefined)  # whose knee is named first may change
    assert_same_curves(one, other)
    for segment, twin in zip(one.segments, other.segments, strict=True):
        assert segment.pair == twin.pair[::-1]
        assert same(segment.area, twin.area)
        assert same(segment.mean_gap, -twin.mean_gap)
        assert same(segment.slope_gap, -twin.slope_gap)


@some
@given(st.sets(st.integers(-4096, 4096), min_size=1, max_size=81))
def test_mirrored_residuals_mirror_the_knees(residuals: set[int]) -> None:
    """For an odd number of rows without ties the two halves are mirror images."""
    values = np.array(sorted(residuals), dtype=float)
    n = values.size - (values.size + 1) % 2
    values = values[:n]
    found = twin_knees(SortedSample.from_values(values.copy()))
    mirrored = twin_knees(SortedSample.from_values(-values))
    for side, opposite in (("left", "right"), ("right", "left")):
        knee, twin = found[side], mirrored[opposite]  # type: ignore[index]
        assert isinstance(knee, Bend) == isinstance(twin, Bend)
        if isinstance(knee, Bend) and isinstance(twin, Bend):
            assert knee.strength == pytest.approx(twin.strength, abs=1e-9)
            size = bends(values, side)
            if np.count_nonzero(size >= size.max() - 1e-9) > 1:
                continue  # of equally strong bends the first wins, which is the mirror's last
            assert knee.index == n - 1 - twin.index
            assert knee.residual == -twin.residual
            assert knee.shape != twin.shape


def bends(values: np.ndarray, side: str) -> np.ndarray:
    mid = values.size // 2
    half = values[: mid + 1] if side == "left" else values[mid:]
    return np.abs((half - half[0]) / (half[-1] - half[0]) - np.linspace(0, 1, half.size))


@some
@given(tables(), options)
def test_segments_add_up_to_w1(table: Table, chosen: Any) -> None:
    ev = evaluated(table, **chosen)
    if not ev.segments:
        assert isnan(ev.indicators.w1)
        return
    assert sum(s.area for s in ev.segments) == pytest.approx(ev.indicators.w1, abs=1e-12)
    assert all(s.area >= -1e-12 for s in ev.segments)
    assert (ev.segments[0].q0, ev.segments[-1].q1) == (0, 1)
    assert all(s.q0 <= s.q1 for s in ev.segments)
    if ev.indicators.w1 > 0:
        assert sum(s.share for s in ev.segments) == pytest.approx(1)
    for segment in ev.segments:  # |∫ gap| ≤ ∫ |gap|
        if segment.q1 > segment.q0:
            assert abs(segment.mean_gap) * (segment.q1 - segment.q0) <= segment.area + 1e-9


@some
@given(tables(), options)
def test_ranges(table: Table, chosen: Any) -> None:
    ev = evaluated(table, **chosen)
    values = dict(ev.indicators)
    bounds = {
        "accuracy": (0, 1),
        "dp": (0, float("inf")),
        "md": (0, 1),
        "md_decision": (0, 1),
        "f_mean": (0.5, 1),
        "f_shift": (0, float("inf")),
        "f_acc": (0, float("inf")),
        "w1": (0, 2),
    }
    for name, (low, high) in bounds.items():
        assert isnan(values[name]) or low - 1e-9 <= values[name] <= high + 1e-9, name
    if len(ev.groups) == 2 and ev.weight_values is None and not isnan(values["f_mean"]):
        assert values["f_mean"] >= 5 / 8 - 1e-9
    assert sum(curve.share for curve in ev.groups.values()) == pytest.approx(1)
    for curve in (ev.overall, *ev.groups.values()):
        for knee in (curve.left_knee, curve.right_knee):
            assert knee is None or 0 < knee.strength <= 1


@some
@given(
    tables(),
    options,
    st.sampled_from(["prominent", "kneed"]),
    st.sampled_from(["rows", "one group", "tied", "one class", "two rows", "one row", "one place"]),
)
def test_an_evaluation_never_raises_on_rows_that_are_valid(
    table: Table, chosen: Any, detector: str, case: str
) -> None:
    n = len(table.y)
    table = {
        "rows": lambda: table,
        "one group": lambda: replace(table, group=["a"] * n),
        "tied": lambda: replace(table, y=[0] * n, p=[0.25] * n),
        "one class": lambda: replace(table, y=[1] * n),
        "two rows": lambda: table.take([0, n - 1]),
        "one row": lambda: table.take([0]),
        "one place": lambda: replace(table, group=table.place),
    }[case]()
    ev = evaluated(table, detector=detector, **chosen)
    assert ev.n + sum(ev.left_out.values()) == ev.n_rows == len(table.y)
    for name, value in ev.indicators:
        assert isnan(value) == (name in ev.undefined)
    json.dumps(ev.to_dict(), allow_nan=False)
    assert len(ev.to_frame()) == 8
    for part in ev.by_environment.values():
        assert part.n + sum(part.left_out.values()) == part.n_rows
        json.dumps(part.to_dict(), allow_nan=False)
    assert sum(part.n_rows for part in ev.by_environment.values()) == ev.n_rows
    for name in (None, "environment", "correctness"):
        assert sum(curve.n for curve in ev.curves_by(name).values()) == ev.n
        assert sum(piece.n for piece in ev.pieces(5, by=name)) == ev.n
        assert sum(piece.n for piece in ev.pieces(5, by=name, method="equal")) == ev.n
    assert ev.band(0, 1).n == ev.n
    assert sum(group.n for group in ev.band(0.2, 0.6).groups.values()) == ev.band(0.2, 0.6).n
    ev.intersection()
    back = ev.with_settings(base_rates="observed")
    assert back.n_rows == back.n == ev.n_rows
