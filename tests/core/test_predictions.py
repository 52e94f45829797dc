"""What may come in, what is made of it, and what is said of that which cannot be used."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rise_core import ColumnError, Factor, Predictions, PredictionsError, evaluate
from rise_core.columns import Roles, guess_roles
from rise_core.predictions import MISSING, label_text

# Imbalanced, with string labels: 3 of 10 are "granted". A swapped class changes every number.
LABEL = ["granted", "refused", "refused", "granted", "refused"] + ["refused"] * 4 + ["granted"]
SCORE = [0.9, 0.2, 0.6, 0.7, 0.1, 0.3, 0.4, 0.2, 0.1, 0.4]
GROUP = list("aababbabaa")


def predictions(**changes: Any) -> Predictions:
    columns = {
        "y_true": LABEL,
        "y_prob": SCORE,
        "sensitive_features": GROUP,
        "pos_label": "granted",
        **changes,
    }
    return Predictions.from_columns(**columns)


def used_labels(factor: Factor) -> list[str]:
    return [factor.labels[code] for code in factor.codes]


# Kinds of columns

KINDS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "numpy": np.array,
    "numpy objects": lambda v: np.array(v, dtype=object),
    "numpy column": lambda v: np.array(v).reshape(-1, 1),
    "pandas": pd.Series,
    "pandas with another index": lambda v: pd.Series(v, index=range(100, 100 - len(v), -1)),
    "pandas frame of one column": lambda v: pd.DataFrame({"x": v}),
    "pandas nullable": lambda v: pd.Series(v).convert_dtypes(),
    "pandas on Arrow": lambda v: pd.Series(v).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.Series,
    "polars frame of one column": lambda v: pl.DataFrame({"x": v}),
    "Arrow": pa.array,
    "Arrow in chunks": lambda v: pa.chunked_array([pa.array(v[:3]), pa.array(v[3:])]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_column_gives_the_same_rows(kind: str) -> None:
    make = KINDS[kind]
    whole = evaluate(
        LABEL, SCORE, sensitive_features=GROUP, environment=GROUP[::-1], pos_label="granted"
    )
    made = evaluate(
        make(LABEL),
        make(SCORE),
        sensitive_features={"group": make(GROUP)},
        environment=make(GROUP[::-1]),
        sample_weight=make([2.0] * 10),
        cluster=make(list(range(10))),
        pos_label="granted",
    )
    assert made.predictions.y_true.tolist() == [1, 0, 0, 1, 0, 0, 0, 0, 0, 1]
    assert made.predictions.y_prob.tolist() == SCORE
    assert used_labels(made.factor) == GROUP
    assert made.predictions.environment is not None
    assert used_labels(made.predictions.environment) == GROUP[::-1]
    assert made.predictions.cluster is not None
    assert made.predictions.cluster.labels == tuple(map(str, range(10)))
    assert repr(made.indicators) == repr(whole.indicators)


@pytest.mark.parametrize("kind", ["list", "numpy objects", "pandas", "polars", "Arrow"])
def test_every_kind_of_missing_value_is_missing(kind: str) -> None:
    make = KINDS[kind]
    ev = evaluate(
        make([None, *LABEL[1:]]),
        make([0.9, None, *SCORE[2:]]),
        sensitive_features=make([*GROUP[:-1], None]),
        pos_label="granted",
    )
    assert ev.left_out == {"the label is missing": 1, "the score is missing": 1}
    assert used_labels(ev.factor) == [*GROUP[2:-1], MISSING]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint8, np.bool_])
def test_scores_of_any_number_type(dtype: type) -> None:
    scores = np.array([0, 1, 1, 0, 1], dtype=dtype)
    made = Predictions.from_columns([0, 1, 0, 1, 1], scores, sensitive_features=list("aabbb"))
    assert made.y_prob.dtype == np.float64
    assert made.y_prob.tolist() == [0, 1, 1, 0, 1]


# Labels


def test_the_positive_class_changes_every_number() -> None:
    granted, refused = (
        evaluate(LABEL, SCORE, sensitive_features=GROUP, pos_label=label)
        for label in ("granted", "refused")
    )
    # Scores ≥ ½: rows 0, 2, 3; right for "granted": 0, 3 and the seven below that are refused
    # but row 9.
    assert granted.indicators.accuracy == 0.8
    assert refused.indicators.accuracy == pytest.approx(0.2)
    assert granted.overall.base_rate == 0.3
    assert refused.overall.base_rate == 0.7
    assert granted.indicators.w1 != refused.indicators.w1
    assert (granted.predictions.pos_label, granted.predictions.neg_label) == ("granted", "refused")


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        ([0, 1, 1], "1"),
        ([0.0, 1.0, 1.0], "1"),
        (["0", "1", "1"], "1"),
        ([-1, 1, 1], "1"),
        ([False, True, True], "1"),
        (["False", "True", "True"], "True"),
        (["no", "yes", "yes"], "yes"),
        (["N", "Y", "Y"], "Y"),
        (["Negative", "Positive", "Positive"], "Positive"),
        (["<=50K", ">50K", ">50K"], ">50K"),
    ],
)
def test_labels_that_tell_by_themselves(labels: list[Any], positive: str) -> None:
    for order in (slice(None), slice(None, None, -1)):
        made = Predictions.from_columns(
            labels[order], [0.5] * 3, sensitive_features=list("abb"[order])
        )
        assert made.y_true.tolist() == [0, 1, 1][order]
        assert made.pos_label == positive
        assert made.notes == ()


@pytest.mark.parametrize(
    ("labels", "pos_label"),
    [
        ([0, 1, 1], 0),
        ([0, 1, 1], "0"),
        ([0, 1, 1], 0.0),
        ([0.0, 1.0, 1.0], 0),
        (["0", "1", "1"], 0),
        ([False, True, True], False),
        (["yes", "no", "no"], "yes"),
        ([7, 3, 3], 7),
    ],
)
def test_the_label_that_is_named_is_positive(labels: list[Any], pos_label: object) -> None:
    made = Predictions.from_columns(
        labels, [0.5] * 3, sensitive_features=list("abb"), pos_label=pos_label
    )
    assert made.y_true.tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            ["cat", "dog", "cat"],
            "y_true holds 'cat' and 'dog'; which one is the positive class does not show. Name it",
        ),
        ([1, 2, 2], "which one is the positive class does not show"),
        ([0, 1, 2], "y_true has 3 distinct values (0, 1, 2); a binary label needs 2"),
        (["cat", "dog", "eel"], "3 distinct values (cat, dog, eel)"),
        ([0.1, 0.2, 0.3], "3 distinct values (0.1, 0.2, 0.3)"),
        ([None, None, None], "y_true holds missing values only"),
        ([[1], [0], [1]], "y_true must hold one value a row, text or number; came list"),
        (np.eye(3), "Wanted one column, came a table of 3"),
    ],
)
def test_labels_that_cannot_be_used(labels: Any, message: str) -> None:
    with pytest.raises(PredictionsError, match=re.escape(message)):
        Predictions.from_columns(labels, [0.5] * 3, sensitive_features=list("abb"))


def test_a_positive_label_that_does_not_occur() -> None:
    with pytest.raises(PredictionsError, match="'grant'; y_true holds 'granted' and 'refused'"):
        predictions(pos_label="grant")


@pytest.mark.parametrize(
    ("labels", "pos_label", "positive", "negative", "note"),
    [
        ([1, 1, 1], None, "1", "0", "All labels are positive"),
        ([0, 0, 0], None, "1", "0", "All labels are negative"),
        (["yes"] * 3, None, "yes", "no", "All labels are positive"),
        (["no"] * 3, None, "yes", "no", "All labels are negative"),
        (["cat"] * 3, "cat", "cat", "not cat", "All labels are positive"),
        (["cat"] * 3, "dog", "dog", "cat", "All labels are negative"),
    ],
)
def test_one_class_only_is_remarked(
    labels: list[Any], pos_label: Any, positive: str, negative: str, note: str
) -> None:
    made = Predictions.from_columns(
        labels, [0.5] * 3, sensitive_features=list("abb"), pos_label=pos_label
    )
    assert (made.pos_label, made.neg_label) == (positive, negative)
    assert set(made.y_true) == {int("positive" in note)}
    (remark,) = made.notes
    assert remark.startswith(note)


# Scores


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([-3.2, 0.4, 5.0], "2 of 3 values lie outside (smallest -3.2, largest 5). They look like"),
        ([-3.2, 0.4, 5.0], "logits: apply 1 / (1 + exp(−x))"),
        ([12.0, 55.0, 99.0], "They look like percentages: divide by 100"),
        ([0.1, 0.5, 150.0], "1 of 3 values lie outside (smallest 0.1, largest 150). Choose"),
        ([0.1, 0.5, np.inf], "largest inf"),
        ([np.nan, np.nan, np.nan], "y_prob holds missing values only"),
        ([None, None, None], "y_prob holds missing values only"),
        (["high", "low", "high"], "y_prob must be numbers; came str with values such as 'high'"),
        ([[0.1, 0.9]] * 3, "y_prob must be numbers; came object with values such as [0.1, 0.9]"),
        (np.full((3, 2), 0.5), "came a table of 2. Of scores for both classes take the positive"),
        (pd.DataFrame({"no": [0.1] * 3, "yes": [0.9] * 3}), "came a table of 2"),
    ],
)
def test_scores_that_cannot_be_used(scores: Any, message: str) -> None:
    with pytest.raises(PredictionsError, match=re.escape(message)):
        Predictions.from_columns([0, 1, 1], scores, sensitive_features=list("abb"))


@pytest.mark.parametrize("scores", [[0.0, 1.0, 0.5], ["0", "1.0", "0.5"], [0, 1, "0.5"]])
def test_the_ends_of_the_range_and_numbers_as_text(scores: list[Any]) -> None:
    made = Predictions.from_columns([0, 1, 1], scores, sensitive_features=list("abb"))
    assert made.y_prob.tolist() == [0, 1, 0.5]


# Groups


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (["b", "a", "b"], ("a", "b")),
        (["b", None, "a"], ("a", "b", MISSING)),
        ([np.nan, "b", "a"], ("a", "b", MISSING)),
        (["b", MISSING, None], (MISSING, "b")),
        ([3, 1, 2], ("1", "2", "3")),
        ([10, 9, 2], ("2", "9", "10")),
        ([1.0, 2.0, 1.0], ("1", "2")),
        ([1.0, np.nan, 2.0], ("1", "2", MISSING)),
        ([1.5, 2.0, 1.0], ("1", "1.5", "2")),
        (["001", "1", "01"], ("001", "01", "1")),
        (["10", "9", "2"], ("10", "2", "9")),
        ([1, "1", "b"], ("1", "b")),
        ([True, False, True], ("False", "True")),
        ([True, None, False], ("False", "True", MISSING)),
        ([-1, 0, 1], ("-1", "0", "1")),
        (pd.Categorical(["b", "a", "b"]), ("a", "b")),
        (pd.Categorical(["b", None, "a"]), ("a", "b", MISSING)),
        (pd.Categorical(["lo", "hi", "lo"], ["lo", "mid", "hi"], ordered=True), ("lo", "hi")),
        (pd.Categorical(["lo", None, "hi"], ["lo", "hi"], ordered=True), ("lo", "hi", MISSING)),
        (pd.to_datetime(["2024-01-02", None, "2024-01-01"]), None),
        (pl.Series([1, None, 2]), ("1", "2", MISSING)),
        (pl.Series(["b", None, "a"], dtype=pl.Categorical), ("a", "b", MISSING)),
        (pa.array(["b", None, "a"]).dictionary_encode(), ("a", "b", MISSING)),
        (pa.array([True, None, False]), ("False", "True", MISSING)),
    ],
)
def test_groups_are_categories_whatever_they_are_written_with(
    values: Any, labels: tuple[str, ...] | None
) -> None:
    factor = Factor.from_values(values, "group")
    if labels is not None:
        assert set(factor.labels) == set(labels)
        ordered = [label for label in factor.labels if label != MISSING]
        assert ordered == [label for label in labels if label != MISSING]
    assert len(set(factor.labels)) == len(factor.labels)
    shown = used_labels(factor)
    for value, text in zip(pd.Series(list(values)), shown, strict=True):
        if value is None or (not isinstance(value, str) and pd.isna(value)):
            assert text == MISSING
        elif isinstance(value, str):
            assert text == value


def test_a_missing_group_is_a_group_of_its_own() -> None:
    ev = evaluate(LABEL, SCORE, sensitive_features=[None, None, *GROUP[2:]], pos_label="granted")
    assert ev.groups[MISSING].n == 2
    assert sum(curve.n for curve in ev.groups.values()) == ev.n == 10
    assert ev.left_out == {}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (1.0, "1"),
        (np.float32(2), "2"),
        (1.5, "1.5"),
        (-0.0, "0"),
        (True, "True"),
        (np.True_, "True"),
        ("1.0", "1.0"),
        ("001", "001"),
        (float("inf"), "inf"),
    ],
)
def test_labels_as_text(value: object, text: str) -> None:
    assert label_text(value) == text


@pytest.mark.parametrize(
    ("features", "names"),
    [
        (GROUP, ["group"]),
        (pd.Series(GROUP, name="sex"), ["sex"]),
        (pd.Series(GROUP), ["group"]),
        (pl.Series("sex", GROUP), ["sex"]),
        (pl.Series(GROUP), ["group"]),
        (pd.DataFrame({"sex": GROUP, "age": GROUP[::-1]}), ["sex", "age"]),
        (pl.DataFrame({"sex": GROUP, "age": GROUP[::-1]}), ["sex", "age"]),
        (pa.table({"sex": GROUP, "age": GROUP[::-1]}), ["sex", "age"]),
        ({"sex": GROUP, "age": np.array(GROUP[::-1])}, ["sex", "age"]),
        (np.array([GROUP, GROUP[::-1]]).T, ["group 1", "group 2"]),
    ],
)
def test_one_or_several_columns_of_groups(features: Any, names: list[str]) -> None:
    made = predictions(sensitive_features=features)
    assert list(made.features) == names
    assert used_labels(made.features[names[0]]) == GROUP
    if len(names) == 2:
        assert used_labels(made.features[names[1]]) == GROUP[::-1]
    assert made.feature() is made.features[names[0]]
    assert made.feature(names[-1]) is made.features[names[-1]]


@pytest.mark.parametrize("nothing", [None, {}, pd.DataFrame()])
def test_no_column_of_groups(nothing: Any) -> None:
    with pytest.raises(PredictionsError, match=r"sensitive_features is empty\. Wanted: one"):
        predictions(sensitive_features=nothing)


def test_lists_inside_a_column_of_groups() -> None:
    with pytest.raises(PredictionsError, match="group 'group' must hold one value a row"):
        predictions(sensitive_features=[[g, g] for g in GROUP])


def test_a_column_of_groups_that_does_not_exist() -> None:
    with pytest.raises(ColumnError, match=r"No sensitive column 'age'\. There are: 'group'"):
        predictions().feature("age")


def test_intersections_are_the_combinations_that_occur() -> None:
    age = ["old", "new", "old", "new", None, "old", "old", "old", "new", "new"]
    made = predictions(sensitive_features={"sex": GROUP, "age": age, "one": ["x"] * 10})
    crossed = made.intersection("sex", "age", "one")
    assert crossed.name == "sex × age × one"
    expected = [f"{g} × {a or MISSING} × x" for g, a in zip(GROUP, age, strict=True)]
    assert used_labels(crossed) == expected
    assert set(crossed.labels) == set(expected)
    assert made.with_feature(crossed).feature("sex × age × one") is crossed


# Weights


def test_weights_of_nothing_are_left_out() -> None:
    weight = [1, 0, np.nan, 2, 1, 1, 1, 1, 1, 3]
    made = predictions(sample_weight=weight)
    assert made.left_out == {"the weight is missing or 0": 2}
    assert made.row_positions.tolist() == [0, 3, 4, 5, 6, 7, 8, 9]
    assert made.sample_weight is not None
    assert made.sample_weight.tolist() == [1, 2, 1, 1, 1, 1, 1, 3]


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([-1.0] + [1.0] * 9, "sample_weight must be positive and finite; it runs from -1 to 1"),
        ([np.inf] + [1.0] * 9, "it runs from 1 to inf"),
        (["heavy"] * 10, "sample_weight must be numbers; came str with values such as 'heavy'"),
        ([0.0] * 10, "Of 10 rows none can be evaluated (the weight is missing or 0: 10 rows)"),
        ([np.nan] * 10, "Of 10 rows none can be evaluated (the weight is missing or 0: 10 rows)"),
        ([1.0] * 9, "All columns must have the same number of rows; came: y_true 10, y_prob 10, "),
    ],
)
def test_weights_that_cannot_be_used(weight: list[Any], message: str) -> None:
    with pytest.raises(PredictionsError, match=re.escape(message)):
        predictions(sample_weight=weight)


# The account


def test_rows_in_are_rows_used_and_rows_left_out() -> None:
    # Row 0 lacks label, score and weight: it is counted once, under the first reason.
    made = predictions(
        y_true=[None, None, *LABEL[2:]],
        y_prob=[None, 0.1, None, *SCORE[3:]],
        sample_weight=[0, 1, 0, np.nan, 1, 1, 1, 1, 1, 1],
        environment=list("xxxxyyyyyy"),
        cluster=range(10),
    )
    assert made.left_out == {
        "the label is missing": 2,
        "the score is missing": 1,
        "the weight is missing or 0": 1,
    }
    assert made.n == 6
    assert made.n_rows == 10 == made.n + sum(made.left_out.values())
    assert made.row_positions.tolist() == [4, 5, 6, 7, 8, 9]
    assert used_labels(made.feature()) == GROUP[4:]
    assert made.y_true.tolist() == [int(label == "granted") for label in LABEL[4:]]
    assert made.y_prob.tolist() == SCORE[4:]
    # An environment, and clusters, of which no row is left are no longer there.
    assert made.environment is not None
    assert made.environment.labels == ("y",)
    assert made.cluster is not None
    assert made.cluster.labels == tuple("456789")


def test_all_rows_used_keeps_no_positions() -> None:
    made = predictions()
    assert made.rows is None
    assert made.left_out == {}
    assert made.row_positions.tolist() == list(range(10))


def test_no_row_that_can_be_used() -> None:
    message = "none can be evaluated (the label is missing: 1 rows; the score is missing: 1 rows)"
    with pytest.raises(PredictionsError, match=re.escape(message)):
        Predictions.from_columns([None, 1], [0.5, None], sensitive_features=["a", "b"])


def test_an_empty_table() -> None:
    with pytest.raises(PredictionsError, match="The table is empty: it has columns and no rows"):
        evaluate([], [], sensitive_features=[])


def test_columns_of_unequal_length() -> None:
    message = "came: y_true 10, y_prob 10, environment 2, group 'group' 10"
    with pytest.raises(PredictionsError, match=message):
        predictions(environment=["x", "y"])


def test_subset_keeps_the_account() -> None:
    made = predictions(y_prob=[None, *SCORE[1:]], environment=list("xyxyxyxyxy"))
    mask = made.y_prob > 0.15
    part = made.subset(mask, "low")
    assert part.left_out == {"the score is missing": 1, "low": 2}
    assert part.n_rows == 10 == part.n + 3
    assert part.row_positions.tolist() == [i for i in range(1, 10) if SCORE[i] > 0.15]
    assert made.subset(np.ones(9, dtype=bool), "none") is made
    again = part.subset(part.y_prob > 0.25, "low")
    assert again.left_out["low"] == 4
    there = made.in_environment("y")
    assert (there.n, there.n_rows, there.left_out) == (5, 5, {})
    assert there.row_positions.tolist() == [1, 3, 5, 7, 9]
    with pytest.raises(ColumnError, match=r"No environment 'z'\. There are: \['x', 'y'\]"):
        made.in_environment("z")


# Tables with roles


def frame() -> pd.DataFrame:
    return pd.DataFrame({"y_true": LABEL, "y_prob": SCORE, "sex": GROUP, "weight": range(1, 11)})


def test_a_table_with_roles() -> None:
    roles = guess_roles(frame())
    roles = type(roles).from_dict(
        {**roles.to_dict(), "sensitive_features": ["sex"], "pos_label": "granted"}
    )
    made = Predictions.from_frame(frame(), roles)
    assert made.y_true.tolist() == predictions().y_true.tolist()
    assert used_labels(made.feature("sex")) == GROUP


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y_true": "lable"}, "column 'lable' not found. The table has 'y_true', 'y_prob', 'sex'"),
        ({"y_true": None}, "No column is set as the label."),
        ({"y_prob": None}, "No column is set as the score."),
        ({"sensitive_features": []}, "No column is set as a sensitive feature."),
        ({"environment": "place"}, "column 'place' not found."),
    ],
)
def test_roles_that_the_table_does_not_fill(changes: dict[str, Any], message: str) -> None:
    roles = guess_roles(frame())
    given = {**roles.to_dict(), "sensitive_features": ["sex"], "pos_label": "granted", **changes}
    with pytest.raises(ColumnError, match=re.escape(message)):
        Predictions.from_frame(frame(), type(roles).from_dict(given))


@pytest.mark.parametrize("labels", [[0, "1", 1, "0"], ["0.0", "1.0", "1.0", "0.0"]])
def test_one_label_in_several_spellings_is_one_class(labels: list[object]) -> None:
    found = Predictions.from_columns(labels, [0.1, 0.9, 0.8, 0.2], sensitive_features=list("abab"))
    assert found.y_true.tolist() == [0, 1, 1, 0]


def test_a_frame_without_rows_says_so_before_its_roles_are_asked_for() -> None:
    with pytest.raises(PredictionsError, match="The table is empty"):
        Predictions.from_frame(pd.DataFrame({"y_true": []}), Roles())


def test_two_columns_of_groups_of_one_name() -> None:
    groups = pd.DataFrame([["a", "x"], ["b", "y"]], columns=["sex", "sex"])
    with pytest.raises(PredictionsError, match="columns of groups are named 'sex'"):
        Predictions.from_columns([0, 1], [0.2, 0.8], sensitive_features=groups)
