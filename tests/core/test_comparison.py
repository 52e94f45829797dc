"""Models side by side: rows matched, differences paired, ranks, front and seeds."""

from __future__ import annotations

from math import isnan, nan
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rise_core import Evaluation, Predictions, PredictionsError, Settings, compare, evaluate
from rise_core.columns import Roles
from rise_core.comparison import Comparison
from rise_core.evaluation import evaluate_predictions

N = 400
RNG = np.random.default_rng(21)
GROUP = np.where(RNG.random(N) < 0.4, "f", "m")
Y = RNG.integers(0, 2, N)
ODDS = 2.5 * Y - 1.25 + RNG.normal(0, 1, N)
SMALL = {"n_boot": 100, "n_perm": 40}


def scores(noise: float = 0.3, bias: float = 0.0, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    odds = ODDS + rng.normal(0, noise, N) + bias * (GROUP == "f")
    return 1 / (1 + np.exp(-odds))


GOOD, BIASED, NOISY = scores(seed=1), scores(seed=2, bias=2.0), scores(seed=3, noise=4.0)


def model(p: Any, rows: Any = None, *, ids: bool = True, y: Any = Y, **settings: Any) -> Evaluation:
    rows = np.arange(N) if rows is None else rows
    predictions = Predictions.from_columns(
        y[rows],
        p[rows],
        sensitive_features={"sex": GROUP[rows]},
        row_id=[f"r{i}" for i in rows] if ids else None,
    )
    return evaluate_predictions(predictions, settings=Settings(**settings))


def three() -> Comparison:
    return compare({"good": model(GOOD), "biased": model(BIASED), "noisy": model(NOISY)}, **SMALL)


def row(table: pd.DataFrame, name: str, indicator: str) -> dict[str, Any]:
    found = table[(table["model"] == name) & (table["indicator"] == indicator)]
    assert len(found) == 1
    return dict(found.iloc[0])


# -- rows


def test_shuffled_rows_are_matched_by_id() -> None:
    shuffled = np.random.default_rng(0).permutation(N)
    straight = compare({"a": model(GOOD), "b": model(BIASED)}, **SMALL)
    mixed = compare({"a": model(GOOD), "b": model(BIASED, shuffled)}, **SMALL)
    assert mixed.paired
    assert mixed.pairing.how == "paired: the same 400 rows, matched by row id"
    pd.testing.assert_frame_equal(mixed.differences, straight.differences)
    pd.testing.assert_frame_equal(mixed.table, straight.table)


def test_rows_of_tables_are_matched_by_the_column_that_names_them() -> None:
    frame = pd.DataFrame({"y": Y, "sex": GROUP, "id": [f"r{i}" for i in range(N)]})
    roles = Roles("y", "p", ("sex",), row_id="id")
    models = {
        name: evaluate_predictions(
            Predictions.from_frame(frame.assign(p=p).sample(frac=1, random_state=seed), roles)
        )
        for seed, (name, p) in enumerate((("a", GOOD), ("b", BIASED)))
    }
    c = compare(models, **SMALL)
    assert c.pairing.how == "paired: the same 400 rows, matched by row id"


def test_rows_of_one_model_only_are_left_out() -> None:
    c = compare(
        {"a": model(GOOD, np.arange(0, 350)), "b": model(BIASED, np.arange(50, N))}, **SMALL
    )
    assert c.paired
    assert c.pairing.n == 300
    assert c.pairing.how == "paired: 300 of up to 350 rows, matched by row id"
    common = np.arange(50, 350)
    assert c.models["b"].indicators == model(BIASED, common).indicators
    assert c.models["a"].left_out["not in all models"] == 50


def test_rows_without_ids_are_matched_by_position() -> None:
    missing = GOOD.copy()
    missing[:10] = nan
    c = compare({"a": model(missing, ids=False), "b": model(BIASED, ids=False)}, **SMALL)
    assert c.pairing.how == "paired: 390 of up to 400 rows, matched by position"


def test_names_that_repeat_alike_in_every_table_leave_the_position() -> None:
    twice = np.arange(N) // 2
    frame = pd.DataFrame({"y": Y, "sex": GROUP, "id": twice})
    a, b = (
        evaluate_predictions(
            Predictions.from_frame(frame.assign(p=p), Roles("y", "p", ("sex",), row_id="id"))
        )
        for p in (GOOD, BIASED)
    )
    c = compare({"a": a, "b": b}, **SMALL)
    assert c.pairing.how == "paired: the same 400 rows, matched by position"


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (lambda: model(BIASED, np.arange(300), ids=False), "no row ids, and tables of 300, 400"),
        (lambda: model(BIASED, np.arange(N) // 2), "row ids occur twice in b"),
        (
            lambda: evaluate(Y, BIASED, sensitive_features={"age": GROUP}),
            r"the groups differ \(age, sex\)",
        ),
    ],
)
def test_other_rows_are_compared_unpaired_and_labelled(other: Any, why: str) -> None:
    first = model(GOOD, ids="twice" in why)
    c = compare({"a": first, "b": other()}, **SMALL)
    assert not c.paired
    assert pd.Series([c.pairing.how]).str.contains("^unpaired: .*" + why).all()
    assert not c.differences["paired"].any()


def test_another_group_for_the_same_row_is_not_paired() -> None:
    other = evaluate(Y, BIASED, sensitive_features={"sex": GROUP[::-1].copy()})
    c = compare({"a": model(GOOD, ids=False), "b": other}, **SMALL)
    assert c.pairing.how == "unpaired: the same row has another group in b"


def test_another_label_for_the_same_row_is_an_error_that_names_rows() -> None:
    wrong = Y.copy()
    wrong[[3, 77]] = 1 - wrong[[3, 77]]
    with pytest.raises(PredictionsError, match=r"2 rows have another label in 'b'.*r3, r77\."):
        compare({"a": model(GOOD), "b": model(BIASED, y=wrong)}, **SMALL)
    asked = compare({"a": model(GOOD), "b": model(BIASED, y=wrong)}, match_rows=False, **SMALL)
    assert asked.pairing.how == "unpaired: as asked for"


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ({}, "nothing to compare"),
        ({"a": model(GOOD), "b": model(GOOD, residual="decision_gap")}, "same residual; came: a"),
        ({"a": model(GOOD), "b": model(GOOD, base_rates="equal")}, "same base_rates; came: a"),
        (
            {
                "a": evaluate(
                    list("xy") * 9,
                    [0.1, 0.8] * 9,
                    sensitive_features=list("ppqqpp") * 3,
                    pos_label="y",
                ),
                "b": evaluate(
                    list("xy") * 9,
                    [0.1, 0.8] * 9,
                    sensitive_features=list("ppqqpp") * 3,
                    pos_label="x",
                ),
            },
            "same positive class; came: a 'y', b 'x'",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(models: Any, message: str) -> None:
    with pytest.raises(PredictionsError, match=message):
        compare(models, **SMALL)


def test_an_unknown_baseline_or_indicator_is_refused() -> None:
    with pytest.raises(PredictionsError, match=r"No model 'c'.*'a'"):
        compare({"a": model(GOOD)}, baseline="c", **SMALL)
    with pytest.raises(PredictionsError, match="No indicator 'speed'"):
        three().ranking("speed")


# -- differences


def test_a_model_differs_from_its_copy_by_nothing() -> None:
    c = compare({"a": model(GOOD), "copy": model(GOOD.copy())}, **SMALL)
    for key in ("accuracy", "md", "f_mean", "w1", "f_acc"):
        found = row(c.differences, "copy", key)
        assert found["difference"] == 0
        assert found["low"] <= 0 <= found["high"]
        assert found["verdict"] == "not distinguishable"
    exact = row(c.differences, "copy", "accuracy")
    assert (exact["low"], exact["high"]) == (0, 0)


def test_pairing_makes_the_interval_of_a_difference_shorter() -> None:
    models = {"good": model(GOOD), "other": model(scores(seed=9))}
    paired = row(compare(models, **SMALL).differences, "other", "accuracy")
    apart = row(compare(models, match_rows=False, **SMALL).differences, "other", "accuracy")
    assert paired["high"] - paired["low"] < 0.7 * (apart["high"] - apart["low"])


def test_verdicts() -> None:
    c = three()
    assert c.baseline == "good"
    assert row(c.differences, "biased", "md")["verdict"] == "worse"
    assert row(c.differences, "biased", "dp")["verdict"] == "worse"
    assert row(c.differences, "noisy", "accuracy")["verdict"] == "worse"
    assert row(c.against("biased"), "good", "md")["verdict"] == "better"
    md = row(c.against("biased"), "good", "md")
    back = row(c.differences, "biased", "md")
    assert md["difference"] == -back["difference"]
    assert (md["low"], md["high"]) == pytest.approx((-back["high"], -back["low"]))


def test_paired_difference_of_accuracy_is_that_of_its_rows() -> None:
    # Accuracy differs by the mean of correct_b − correct_a, whose standard error is known.
    c = compare({"a": model(GOOD), "b": model(NOISY)}, n_boot=1000, n_perm=0)
    per_row = ((NOISY >= 0.5) == Y).astype(float) - ((GOOD >= 0.5) == Y)
    expected = 2 * 1.96 * per_row.std() / np.sqrt(N)
    found = row(c.differences, "b", "accuracy")
    assert found["high"] - found["low"] == pytest.approx(expected, rel=0.12)


def test_undefined_values_give_no_difference_but_a_reason() -> None:
    flat = np.full(N, 0.5)
    c = compare({"a": model(GOOD), "flat": model(flat, residual="signed_error")}, **SMALL)
    found = row(c.differences, "flat", "f_acc")
    assert isnan(found["difference"])
    assert pd.isna(found["verdict"])
    assert found["reason"].startswith("flat: ")
    assert c.ranking("f_acc")["model"].tolist() == ["a", "flat"]
    assert c.ranking("f_acc")["from_best"].isna().tolist() == [False, True]


# -- ranks, front, seeds


def test_ranking_follows_the_better_direction() -> None:
    c = three()
    assert c.ranking("accuracy")["model"].iloc[-1] == "noisy"
    assert c.ranking("md")["model"].iloc[-1] == "biased"
    dp = {name: ev.indicators.dp for name, ev in c.models.items()}
    nearest = min(dp, key=lambda name: abs(np.log(dp[name])))
    assert c.ranking("dp")["model"].iloc[0] == nearest
    table = c.ranking("md")
    assert table["rank"].tolist() == [1, 2, 3]
    assert table["from_best"].tolist()[0] == "best"
    assert table["from_best"].tolist()[-1] == "worse"


def test_pareto_front() -> None:
    front = three().pareto("md").set_index("model")
    # The noisy model is less accurate; whether it is on the front depends on its gap alone.
    assert front.loc["good", "on_front"]
    assert not front.loc["biased", "on_front"]
    assert "good" in front.loc["biased", "dominated_by"]
    twin = compare({"a": model(GOOD), "b": model(GOOD.copy())}, **SMALL).pareto()
    assert twin["on_front"].tolist() == [True, True]


def test_seeds_fold_into_mean_and_range() -> None:
    models = {f"ERM-{i}": model(scores(seed=30 + i)) for i in range(3)} | {"IRM": model(BIASED)}
    c = compare(models, **SMALL)
    table = c.fold({f"ERM-{i}": "ERM" for i in range(3)}).set_index(["algorithm", "indicator"])
    values = [models[f"ERM-{i}"].indicators.md for i in range(3)]
    found = table.loc[("ERM", "md")]
    assert found["mean"] == pytest.approx(np.mean(values))
    assert (found["smallest"], found["largest"]) == (min(values), max(values))
    assert (found["seeds"], found["undefined"]) == (3, 0)
    assert table.loc[("IRM", "md")]["seeds"] == 1


def test_the_table_has_every_model_and_indicator() -> None:
    c = three()
    assert len(c.table) == 3 * 8
    found = row(c.table, "biased", "md")
    assert found["low"] <= found["value"] <= found["high"]
    assert found["distinguishable"]
    assert found["n"] == N


def test_one_model_alone() -> None:
    c = compare({"only": model(GOOD)}, **SMALL)
    assert c.differences.empty
    assert c.pareto()["on_front"].tolist() == [True]


def test_the_same_seed_gives_the_same_comparison() -> None:
    pd.testing.assert_frame_equal(three().differences, three().differences)


def test_values_alone_come_at_once_and_claim_nothing() -> None:
    models = {"good": model(GOOD), "biased": model(BIASED), "flat": model(np.full(N, 0.5))}
    quick, whole = compare(models, n_boot=0), compare(models, **SMALL)
    assert (quick.n_boot, quick.n_perm, quick.paired) == (0, 0, True)
    same = ["model", "n", "indicator", "value"]
    pd.testing.assert_frame_equal(quick.table[same], whole.table[same])
    assert quick.table[["low", "high", "null_low", "p_value"]].isna().all(axis=None)
    assert quick.differences["verdict"].isna().all()
    assert quick.differences["reason"].notna().all()
    pd.testing.assert_frame_equal(quick.pareto("md"), whole.pareto("md"))
    for key in ("md", "f_acc"):
        assert quick.ranking(key)["model"].tolist() == whole.ranking(key)["model"].tolist()
    # An undefined value keeps its own reason.
    assert row(quick.table, "flat", "f_acc")["reason"] == models["flat"].undefined["f_acc"]
    assert row(quick.table, "good", "f_acc")["reason"] == "no interval: not resampled"


def test_models_without_rows_to_draw_are_compared_all_the_same() -> None:
    # Every group has one label: no weights make the base rates equal.
    mad = {
        name: model(p, y=(GROUP == "f").astype(int), base_rates="equal")
        for name, p in (("a", GOOD), ("b", BIASED))
    }
    c = compare(mad, **SMALL)
    assert c.table["value"].isna().all()
    assert c.table["reason"].str.contains("one label only").all()
    assert c.differences["reason"].str.contains("^b: .*one label only").all()
