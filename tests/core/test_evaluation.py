"""`evaluate` and its result: what it holds, how groups are chosen, what is undefined and why."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields
from math import isnan

import numpy as np
import pandas as pd
import pytest

from rise_core import ColumnError, Evaluation, PredictionsError, Settings, evaluate
from rise_core.indicators import Indicators

NAMES = [field.name for field in fields(Indicators)]


def columns(n: int = 300, seed: int = 1, groups: str = "ab") -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    weights = np.arange(len(groups), 0, -1.0)
    group = rng.choice(list(groups), n, p=weights / weights.sum())
    y = (rng.random(n) < np.where(group == groups[0], 0.6, 0.4)).astype(int)
    p = np.clip(rng.normal(0.35 + 0.3 * y + 0.1 * (group == groups[0]), 0.2), 0, 1)
    return {"y": y, "p": p, "group": group, "place": rng.choice(["x", "y"], n)}


def evaluation(groups: str = "ab", **options: object) -> Evaluation:
    data = columns(groups=groups)
    return evaluate(data["y"], data["p"], sensitive_features=data["group"], **options)  # type: ignore[arg-type]


# Which group is sensitive


@pytest.mark.parametrize(
    ("groups", "named", "sensitive", "reference", "chosen"),
    [
        ("aaab", None, "b", "a", "the smaller group"),
        ("abbb", None, "a", "b", "the smaller group"),
        ("aabb", None, "b", "a", "the later label"),
        ("bbaa", None, "b", "a", "the later label"),
        ("aaab", "a", "a", "b", "named"),
        ("aaabbc", None, None, None, "none named, more than two groups"),
        ("aaabbc", "c", "c", "a", "named"),
        ("aaabbc", "a", "a", "b", "named"),
        ("abbbcc", "c", "c", "b", "named"),
        ("aaaa", None, None, None, "none named, one group only"),
        ("aaaa", "a", "a", None, "named"),
    ],
)
def test_sensitive_group(
    groups: str, named: str | None, sensitive: str | None, reference: str | None, chosen: str
) -> None:
    y, p = [0, 1] * 3, [0.2, 0.7] * 3
    n = len(groups)
    ev = evaluate(y[:n], p[:n], sensitive_features=list(groups), sensitive=named)
    assert (ev.sensitive, ev.reference, ev.sensitive_chosen) == (sensitive, reference, chosen)


def test_the_reference_comes_first_and_the_sensitive_group_last() -> None:
    assert list(evaluation("abcd", sensitive="b").groups) == ["a", "c", "d", "b"]
    assert list(evaluation("abcd", sensitive="a").groups) == ["b", "c", "d", "a"]
    assert list(evaluation("abcd").groups) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("named", ["1", 1, 1.0, np.float64(1)])
def test_the_sensitive_group_may_be_named_by_its_value(named: object) -> None:
    ev = evaluate([0, 1, 1], [0.1, 0.2, 0.8], sensitive_features=[1.0, 0.0, 0.0], sensitive=named)  # type: ignore[arg-type]
    assert ev.sensitive == "1"


def test_a_group_that_does_not_exist() -> None:
    with pytest.raises(ColumnError, match=r"No group 'z' in 'group'\. There are: 'a', 'b'"):
        evaluation(sensitive="z")


# Environments and features


def test_by_environment_equals_evaluating_the_rows_of_each() -> None:
    data = columns()
    ev = evaluate(data["y"], data["p"], sensitive_features=data["group"], environment=data["place"])
    assert list(ev.by_environment) == ["x", "y"]
    for label, part in ev.by_environment.items():
        mine = data["place"] == label
        alone = evaluate(
            data["y"][mine],
            data["p"][mine],
            sensitive_features=data["group"][mine],
            sensitive=ev.sensitive,
        )
        assert part.indicators == alone.indicators
        assert part.n == part.n_rows == mine.sum()
        assert part.left_out == {}
        assert data["group"][mine].tolist() == [
            part.factor.labels[code] for code in part.factor.codes
        ]


def test_the_sensitive_group_stays_the_same_in_every_environment() -> None:
    # Over all rows b is the smaller one (4 of 9); in "x" it is the larger one.
    group, place = list("abbbaaaab"), list("xxxxyyyyy")
    ev = evaluate(
        [0, 1, 0, 1, 0, 1, 0, 1, 1],
        np.linspace(0.1, 0.9, 9),
        sensitive_features=group,
        environment=place,
    )
    there = ev.by_environment["x"]
    assert (ev.sensitive, there.sensitive) == ("b", "b")
    assert there.with_settings(threshold=0.3).sensitive == "b"


@pytest.mark.parametrize("absent", ["a", "c"])
def test_an_environment_without_a_named_group(absent: str) -> None:
    # Sensitive "c", reference "a" (the largest); one of them does not occur in "x".
    data = columns(groups="abc")
    place = np.where(data["group"] == absent, "y", data["place"])
    ev = evaluate(
        data["y"], data["p"], sensitive_features=data["group"], environment=place, sensitive="c"
    )
    part = ev.by_environment["x"]
    rates = {label: curve.positive_rate for label, curve in part.groups.items()}
    if absent == "a":
        assert (part.sensitive, part.reference) == ("c", "b")
        assert part.indicators.dp == pytest.approx(rates["c"] / rates["b"])
    else:
        assert (part.sensitive, part.reference) == (None, "a")
        assert part.indicators.dp == pytest.approx(min(rates.values()) / max(rates.values()))


def test_without_environments_there_are_none() -> None:
    assert evaluation().by_environment == {}
    with pytest.raises(ColumnError, match="no environment column"):
        evaluation().curves_by("environment")


def test_by_feature_and_intersection() -> None:
    data = columns()
    frame = pd.DataFrame({"group": data["group"], "place": data["place"]})
    ev = evaluate(data["y"], data["p"], sensitive_features=frame)
    assert list(ev.by_feature) == ["group", "place"]
    assert ev.by_feature["group"] is ev
    alone = evaluate(data["y"], data["p"], sensitive_features=data["place"])
    assert ev.by_feature["place"].indicators == alone.indicators
    crossed = ev.intersection()
    assert crossed.feature == "group × place"
    assert set(crossed.groups) == {"a × x", "a × y", "b × x", "b × y"}
    assert sum(curve.n for curve in crossed.groups.values()) == 300


# More than two groups


def test_more_than_two_groups_take_the_widest_pair() -> None:
    data = columns(groups="abcd", n=500)
    ev = evaluate(data["y"], data["p"], sensitive_features=data["group"])
    pairs = {}
    for first in "abcd":
        for second in "abcd":
            if first < second:
                two = np.isin(data["group"], [first, second])
                alone = evaluate(
                    data["y"][two], data["p"][two], sensitive_features=data["group"][two]
                )
                pairs[first, second] = alone.indicators
    assert ev.indicators.w1 == pytest.approx(max(i.w1 for i in pairs.values()))
    assert ev.indicators.md == pytest.approx(max(i.md for i in pairs.values()))
    assert ev.indicators.md_decision == pytest.approx(max(i.md_decision for i in pairs.values()))
    widest = max(pairs, key=lambda pair: pairs[pair].w1)
    assert set(ev.segments[0].pair) == set(widest)
    assert ev.widest_pair is not None
    assert set(ev.widest_pair) == set(widest)


def test_displacements_hold_every_pair() -> None:
    ev = evaluation("abc", sensitive="c")
    table = ev.displacements
    assert list(table.columns) == ["side", "group", "reference", "delta_h", "delta_d", "h", "v"]
    pairs = [("b", "a"), ("c", "a"), ("c", "b")]
    assert list(zip(table["side"], table["group"], table["reference"], strict=True)) == [
        (side, *pair) for side in ("left", "right") for pair in pairs
    ]
    row = table[(table["side"] == "right") & (table["group"] == "c")].iloc[0]
    pooled, one, other = (c.right_knee for c in (ev.overall, ev.groups["c"], ev.groups["a"]))
    assert pooled is not None
    assert one is not None
    assert other is not None
    assert row["delta_h"] == one.percentile - other.percentile
    assert row["delta_d"] == one.residual - other.residual
    assert row["h"] == pytest.approx(row["delta_h"] / pooled.percentile)
    assert row["v"] == pytest.approx(row["delta_d"] / pooled.residual)
    # F_shift of three groups: the widest pair on each side.
    widest = table.assign(h=table["h"].abs()).groupby("side")["h"].max()
    assert ev.indicators.f_shift == pytest.approx(widest.mean())


# Curves by something else


def test_curves_by_correctness_and_environment() -> None:
    data = columns()
    ev = evaluate(data["y"], data["p"], sensitive_features=data["group"], environment=data["place"])
    right = (data["p"] >= 0.5) == data["y"]
    curves = ev.curves_by("correctness")
    assert {label: c.n for label, c in curves.items()} == {
        "correct": right.sum(),
        "wrong": (~right).sum(),
    }
    assert curves["correct"].accuracy == 1
    assert curves["wrong"].accuracy == 0
    assert {c.n for c in ev.curves_by("environment").values()} == set(
        np.unique(data["place"], return_counts=True)[1]
    )
    assert ev.curves_by() is ev.groups
    # The same rows, so the same positions among all rows.
    expected = np.median(ev.overall.percentile((data["p"] - data["y"])[right]))
    assert curves["correct"].median_position == pytest.approx(expected)


@pytest.mark.parametrize(("p", "only"), [([0.1, 0.9, 0.2], "correct"), ([0.9, 0.1, 0.8], "wrong")])
def test_correctness_of_a_model_that_is_always_right_or_wrong(p: list[float], only: str) -> None:
    ev = evaluate([0, 1, 0], p, sensitive_features=list("aab"))
    assert list(ev.curves_by("correctness")) == [only]
    assert ev.curves_by("correctness")[only].n == 3


# Undefined values


def test_one_group_only_leaves_accuracy() -> None:
    ev = evaluate([0, 1, 1], [0.2, 0.8, 0.3], sensitive_features=["a"] * 3)
    assert ev.indicators.accuracy == pytest.approx(2 / 3)
    for name in NAMES[1:]:
        assert isnan(getattr(ev.indicators, name))
        assert "one group only ('a')" in ev.undefined[name]
    assert ev.segments == ()
    assert ev.band(0, 1).gap is None
    assert ev.displacements.empty


def test_a_group_of_two_rows_has_no_knees_and_everything_else() -> None:
    data = columns(n=40)
    group = np.array(["big"] * 38 + ["small"] * 2)
    ev = evaluate(data["y"], data["p"], sensitive_features=group)
    small = ev.groups["small"]
    assert small.left_knee is None
    assert small.right_knee is None
    assert small.knee_reasons == {
        "left": "the left half has 2 rows; a knee needs 3",
        "right": "the right half has 1 rows; a knee needs 3",
    }
    assert ev.undefined == dict.fromkeys(
        ("f_shift", "f_acc"),
        "group 'small' has no left knee: the left half has 2 rows; a knee needs 3",
    )
    defined = [name for name, value in ev.indicators if not isnan(value)]
    assert defined == ["accuracy", "dp", "md", "md_decision", "f_mean", "w1"]


def test_all_scores_equal() -> None:
    ev = evaluate([0, 1] * 10, [0.5] * 20, sensitive_features=list("aabb") * 5)
    # Residuals are −½ and ½ half of the time, in each group: alike, with a step in the middle.
    assert ev.indicators.w1 == 0
    assert ev.indicators.f_mean == 1
    assert all(isnan(segment.share) for segment in ev.segments)


def test_nothing_is_undefined_without_a_reason() -> None:
    for ev in (
        evaluation(),
        evaluate([0, 0, 1], [0.1, 0.1, 0.1], sensitive_features=list("aab")),
        evaluate([1] * 8, [0.9] * 8, sensitive_features=list("aaaabbbb")),
        evaluation("abcd", detector="kneed", sensitivity=3.0),
    ):
        for name, value in ev.indicators:
            assert isnan(value) == (name in ev.undefined), name
        assert all(ev.undefined.values())


# Settings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 1.5}, r"threshold must lie in \[0, 1\]; came 1\.5"),
        ({"threshold": float("nan")}, r"came nan"),
        ({"residual": "squared"}, "No residual 'squared'. There are: 'signed_error'"),
        ({"base_rates": "same"}, "'observed' or 'equal'; came 'same'"),
        ({"detector": "best"}, "'prominent' or 'kneed'; came 'best'"),
    ],
)
def test_settings_that_cannot_be_meant(options: dict[str, object], message: str) -> None:
    with pytest.raises(PredictionsError, match=message):
        evaluation(**options)


@pytest.mark.parametrize(
    "changes",
    [
        {"threshold": 0.2},
        {"residual": "decision_gap"},
        {"base_rates": "equal"},
        {"detector": "kneed", "sensitivity": 2.0},
    ],
)
def test_with_settings_is_evaluating_again(changes: dict[str, object]) -> None:
    again, afresh = evaluation().with_settings(**changes), evaluation(**changes)
    assert repr(again.indicators) == repr(afresh.indicators)  # nan equals nan
    assert again.settings == afresh.settings
    assert again.sensitive == afresh.sensitive


def test_a_score_at_the_threshold_is_a_positive_decision() -> None:
    ev = evaluate([1, 0], [0.5, 0.4], sensitive_features=list("ab"))
    assert ev.groups["a"].positive_rate == 1
    assert ev.indicators.accuracy == 1


def test_settings_are_the_defaults_of_the_method() -> None:
    assert Settings() == Settings(0.5, "signed_error", "observed", "prominent", 1.0)


# What comes out


def test_an_evaluation_cannot_be_changed() -> None:
    ev = evaluation()
    with pytest.raises(FrozenInstanceError):
        ev.indicators = None  # type: ignore[misc,assignment]
    with pytest.raises(FrozenInstanceError):
        ev.overall.label = "x"  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        ev.overall.residuals[0] = 0.0


def test_what_came_in_is_not_changed() -> None:
    data = columns()
    before = {name: values.copy() for name, values in data.items()}
    weight = np.linspace(1, 2, 300)
    ev = evaluate(
        data["y"],
        data["p"],
        sensitive_features=data["group"],
        environment=data["place"],
        sample_weight=weight,
        base_rates="equal",
    )
    for lazy in (ev.pieces, lambda: ev.by_environment, lambda: ev.segments):
        assert lazy()
    assert all(np.array_equal(before[name], data[name]) for name in data)
    assert np.array_equal(weight, np.linspace(1, 2, 300))


def test_to_frame_is_one_row_an_indicator() -> None:
    ev = evaluation(threshold=0.4)
    table = ev.to_frame()
    assert list(table.columns) == [
        "feature",
        "sensitive",
        "reference",
        "pos_label",
        "threshold",
        "residual",
        "base_rates",
        "n",
        "indicator",
        "value",
        "undefined",
    ]
    assert table["indicator"].tolist() == NAMES
    assert table["value"].tolist() == [value for _, value in ev.indicators]
    assert set(table["threshold"]) == {0.4}
    assert set(table["n"]) == {300}
    assert table["undefined"].isna().all()


def test_to_dict_survives_json() -> None:
    data = columns(groups="abc")
    p = np.where(data["group"] == "c", 0.1, data["p"])
    ev = evaluate(data["y"], p, sensitive_features=data["group"], sensitive="c")
    told = json.loads(json.dumps(ev.to_dict(), allow_nan=False))
    assert told == ev.to_dict()
    assert told["indicators"]["accuracy"] == ev.indicators.accuracy
    assert [curve["group"] for curve in told["curves"]] == ["all", "a", "b", "c"]
    assert told["n_rows"] == told["n"] + sum(told["left_out"].values())
    assert told["settings"]["threshold"] == 0.5
    shares = [segment["share"] for segment in told["segments"]]
    assert sum(shares) == pytest.approx(1)


def test_to_dict_has_no_nan_and_no_infinity() -> None:
    # The reference never gets a positive decision: DP is infinite; two rows have no knee.
    ev = evaluate([0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.9, 0.8], sensitive_features=list("aaabb"))
    told = json.loads(json.dumps(ev.to_dict(), allow_nan=False))
    assert told["indicators"]["dp"] == "inf"
    assert told["indicators"]["f_acc"] is None
    assert "no left knee" in told["undefined"]["f_acc"]
    one = evaluate([0, 1], [0.1, 0.9], sensitive_features=list("aa"))
    assert json.loads(json.dumps(one.to_dict(), allow_nan=False))["indicators"]["w1"] is None


def test_the_group_table_holds_the_curves() -> None:
    ev = evaluation()
    table = ev.group_table().set_index("group")
    assert list(table.index) == ["all", "a", "b"]
    knee = ev.groups["b"].right_knee
    assert knee is not None
    assert table.loc["b", "right_knee_residual"] == knee.residual
    assert table.loc["b", "right_knee_percentile"] == knee.percentile
    assert table.loc["all", "n"] == 300
    assert table["share"].iloc[1:].sum() == pytest.approx(1)


def test_majority_accuracy() -> None:
    ev = evaluate([0, 0, 0, 1], [0.1, 0.2, 0.3, 0.4], sensitive_features=list("aabb"))
    assert ev.majority_accuracy == 0.75
