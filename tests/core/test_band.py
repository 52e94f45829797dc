"""Who is in a band: values that it holds more of than chance, against pandas and by simulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import hypergeom

from rise_core import Evaluation, PredictionsError, evaluate
from rise_core.band import band_ends, columns_of, hypergeometric_tail, profile
from rise_core.gap import wilson_interval


def table(seed: int, n: int = 1500, *, planted: bool = False) -> pd.DataFrame:
    """Columns that have nothing to do with the errors; ``planted`` over-scores one shift."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    frame = pd.DataFrame(
        {
            "y": np.where(y == 1, "yes", "no"),
            "group": rng.choice(["a", "b"], n),
            "shift": rng.choice(["day", "late", "night"], n, p=[0.6, 0.3, 0.1]),
            "city": rng.choice(list("uvwxyz"), n, p=[0.5, 0.3, 0.1, 0.05, 0.03, 0.02]),
            "age": rng.normal(40, 10, n),
        }
    )
    p = 0.2 + 0.4 * y + rng.uniform(-0.2, 0.2, n)
    if planted:
        p = np.where(frame["shift"] == "night", np.minimum(p + 0.25, 1), p)
    return frame.assign(p=p)


def evaluated(frame: pd.DataFrame, **options: Any) -> Evaluation:
    return evaluate(
        frame["y"], frame["p"], sensitive_features=frame["group"], pos_label="yes", **options
    )


@pytest.mark.parametrize(
    ("x", "drawn", "marked", "total"),
    [(7, 10, 20, 50), (3, 10, 3, 100), (11, 10**5, 50, 10**6), (50_500, 10**5, 5 * 10**5, 10**6)],
)
def test_the_tail_is_scipys(x: int, drawn: int, marked: int, total: int) -> None:
    wanted = hypergeom.sf(x - 1, total, marked, drawn)
    assert hypergeometric_tail(x, drawn, marked, total) == pytest.approx(wanted, rel=1e-6)


def test_a_tail_by_hand() -> None:
    # Both of 2 marked rows among 2 drawn of 4: one way out of six.
    assert hypergeometric_tail(2, 2, 2, 4) == pytest.approx(1 / 6)
    # As many as expected is no over-representation, and all rows are no surprise.
    assert hypergeometric_tail(1, 2, 2, 4) == 1
    assert hypergeometric_tail(4, 4, 4, 4) == 1


@pytest.mark.parametrize("weighted", [False, True])
def test_lifts_are_what_pandas_counts(weighted: bool) -> None:
    frame = table(3, planted=True)
    frame["weight"] = np.random.default_rng(0).uniform(0.2, 3, len(frame)) if weighted else 1.0
    ev = evaluated(frame, sample_weight=frame["weight"] if weighted else None)
    band = ev.band(0.6, 0.9)
    found = profile(ev, band, columns_of(frame, ["y", "p", "weight"]))

    frame["age"] = pd.qcut(frame["age"], 5).cat.codes
    inside = frame.iloc[band.rows]
    lifts = {(x.column, x.value): x for x in found.lifts}
    assert len(lifts) == 2 + 3 + 6 + 5
    for column in ("group", "shift", "city"):
        share = inside.groupby(column)["weight"].sum() / inside["weight"].sum()
        overall = frame.groupby(column)["weight"].sum() / frame["weight"].sum()
        for value, wanted in (share / overall).items():
            lift = lifts[column, str(value)]
            assert lift.lift == pytest.approx(wanted)
            assert lift.n == (inside[column] == value).sum()
            assert lift.n_all == (frame[column] == value).sum()
            assert lift.low <= lift.lift <= lift.high
    fifths = [x for x in found.lifts if x.column == "age"]
    assert sorted(x.n for x in fifths) == sorted(inside["age"].value_counts())


def test_a_planted_slice_is_found_and_named_first() -> None:
    frame = table(1, planted=True)
    ev = evaluated(frame)
    found = profile(ev, ev.band(0.85, 1.0), columns_of(frame, ["y", "p"])).found
    assert [(x.column, x.value) for x in found] == [("shift", "night")]
    assert found[0].low > 2


def test_shuffled_columns_report_nothing_in_95_of_100_tables() -> None:
    # 200 tables, 16 values each: at 5 % for all values together more than 18 would be a fault
    # (binomial, one in 10,000 by chance). Measured over 1,200 tables: 2 to 4 %.
    rng = np.random.default_rng(0)
    reported = 0
    for seed in range(200):
        frame = table(seed, 800, planted=True)
        ev = evaluated(frame)
        shuffled = frame[["group", "shift", "city", "age"]].sample(frac=1, random_state=seed)
        q0 = rng.uniform(0, 0.8)
        found = profile(ev, ev.band(q0, q0 + 0.15), columns_of(shuffled.reset_index(drop=True)))
        reported += bool(found.found)
    assert reported <= 18


def test_intervals_hold_for_all_values_together() -> None:
    frame = table(5, planted=True)
    ev = evaluated(frame)
    band, columns = ev.band(0.8, 1.0), columns_of(frame, ["y", "p"])
    one = profile(ev, band, columns_of(frame[["shift"]]))
    many = profile(ev, band, columns)
    few, all_ = (next(x for x in found.lifts if x.value == "night") for found in (one, many))
    assert len(one.lifts) == 3
    assert len(many.lifts) == 16
    assert all_.high - all_.low > few.high - few.low
    assert all_.p_value == few.p_value
    assert all_.adjusted == pytest.approx(min(1.0, 16 * all_.p_value))


@pytest.mark.parametrize(
    ("part", "inside", "outside"), [(0.2, 0.3, 0.1), (0.6, 0.1, 0.4), (0.05, 0.6, 0.2)]
)
def test_the_interval_of_a_lift_holds_the_truth(part: float, inside: float, outside: float) -> None:
    from rise_core.band import _rows_of_a_ratio, _Size

    rng, n, hits, draws = np.random.default_rng(0), 2000, 0, 1000
    rows = int(n * part)
    truth = inside / (part * inside + (1 - part) * outside)
    for _ in range(draws):
        a, c = rng.binomial(rows, inside), rng.binomial(n - rows, outside)
        share, overall = a / rows, (a + c) / n
        size = _Size(rows, n, part, rows, weighted=False)
        low, high = wilson_interval(share, _rows_of_a_ratio(share, overall, size))
        hits += low / overall <= truth <= high / overall
    assert 0.93 <= hits / draws <= 0.975


def test_columns_that_name_rows_are_skipped_with_the_reason() -> None:
    frame = pd.DataFrame(
        {
            "id": [f"row {i}" for i in range(100)],
            "same": "x",
            "lists": [[i] for i in range(100)],
            "kind": ["a", "b"] * 50,
            "number": [*range(99), np.nan],
            "when": pd.date_range("2024-01-01", periods=100),
            "flag": [True, False] * 50,
        }
    )
    made = columns_of(frame, ["kind"])
    assert set(made.factors) == {"number", "when", "flag"}
    assert made.skipped == {
        "id": "more than 60 different values",
        "lists": "its values cannot be compared",
    }
    assert made.factors["number"].labels[-1] == "(missing)"
    assert made.factors["number"].counts.tolist() == [20, 20, 19, 20, 20, 1]
    assert made.factors["when"].labels[0].startswith("up to 2024-01-20")


def test_rows_left_out_and_other_environments_do_not_count() -> None:
    frame = table(2, 400)
    frame.loc[::7, "p"] = np.nan
    frame["place"] = np.where(np.arange(400) % 2, "north", "south")
    ev = evaluated(frame, environment=frame["place"]).by_environment["north"]
    found = profile(ev, ev.band(0.2, 0.7), columns_of(frame, ["y", "p"]))
    used = frame[frame["p"].notna() & (frame["place"] == "north")]
    for lift in found.lifts:
        if lift.column == "shift":
            assert lift.n_all == (used["shift"] == lift.value).sum()
    assert not any(lift.column == "place" for lift in found.lifts)  # one value only


def test_an_empty_band_has_no_profile_and_a_foreign_table_is_refused() -> None:
    y, p = [0, 1] * 4, [0.0, 1.0] * 4
    ev = evaluate(y, p, sensitive_features=list("aabb" * 2))
    assert (
        profile(ev, ev.band(0.1, 0.2), columns_of(pd.DataFrame({"c": list("ab" * 4)}))).lifts == ()
    )
    with pytest.raises(PredictionsError, match=r"'c' has 3 rows"):
        profile(ev, ev.band(0, 1), columns_of(pd.DataFrame({"c": list("aba")})))


def test_the_order_of_the_rows_changes_nothing() -> None:
    frame = table(9, planted=True)
    numbers = []
    for rows in (frame, frame.iloc[::-1].reset_index(drop=True)):
        ev = evaluated(rows)
        found = profile(ev, ev.band(0.7, 1.0), columns_of(rows, ["y", "p"]))
        numbers.append(found.to_frame().sort_values(["column", "value"], ignore_index=True))
    pd.testing.assert_frame_equal(*numbers)


@pytest.mark.parametrize("grid", [0, 20])
def test_a_stretch_of_residuals_is_the_band_of_its_rows(grid: int) -> None:
    frame = table(4, 300)
    if grid:  # ties: whole runs of equal residuals are in or out
        frame["p"] = np.round(frame["p"] * grid) / grid
    ev = evaluated(frame)
    for low, high in ((-0.35, 0.2), (-1.0, -0.3), (0.25, 1.0), (-1.0, 1.0)):
        inside = (ev.residual_values >= low) & (ev.residual_values <= high)
        assert ev.band(*band_ends(ev, low, high)).rows.tolist() == np.flatnonzero(inside).tolist()
