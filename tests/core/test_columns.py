"""Column roles: guessed with a reason, left open where the content does not decide."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rise_core import Predictions
from rise_core.columns import (
    Roles,
    Scale,
    as_probabilities,
    for_class,
    guess_pos_label,
    guess_roles,
    label_text,
    missing_column,
    one_against_rest,
    recognised_scale,
    to_probabilities,
)
from rise_core.exceptions import ColumnError

N = 60


def scores(low: float = 0.0, high: float = 1.0) -> np.ndarray:
    return np.linspace(low, high, N)


def table(**columns: object) -> pd.DataFrame:
    """A frame of N rows; short lists are repeated."""
    return pd.DataFrame(
        {
            name: list(values) * (N // len(values)) if isinstance(values, list) else values
            for name, values in columns.items()
        }
    )


@pytest.mark.parametrize(
    ("label", "score", "group"),
    [
        ("y_true", "y_prob", "sex"),  # scikit-learn
        ("y_true", "y_score", "sensitive_features"),  # Fairlearn
        ("true_label", "predicted_probability", "gender"),  # DomainBed-style
        ("target", "prediction_score", "race"),
        ("label", "prediction", "Race"),  # evidently
        ("trueLabel", "predictedProbability", "ageBand"),
        ("Ground Truth", "Score", "Ethnic Group"),
        ("labels", "scores", "sensitive_attribute"),
        ("y", "p", "a"),
        ("outcome", "risk_score", "skin_tone"),
    ],
)
def test_names_of_many_habits(label: str, score: str, group: str) -> None:
    frame = table(**{group: ["x", "y", "z"], score: scores(0.01, 0.99), label: [0, 1]})
    roles = guess_roles(frame)
    assert (roles.y_true, roles.y_prob, roles.sensitive_features) == (label, score, (group,))
    assert roles.pos_label == "1"
    assert roles.complete
    for role in ("y_true", "y_prob", "sensitive_features", "pos_label"):
        assert roles.reasons[role]
        assert roles.confidence[role] == "high"


def test_everything_in_one_table() -> None:
    frame = table(
        row_id=np.arange(N), y_true=["coat or dress", "top"], y_prob=scores(), y_pred=[0, 1],
        night=["day", "night"], garment=["001", "002", "003"], environment=["snow", "fog"],
        split=["train", "test"], sample_weight=[1.0, 2.0], patient_id=[1, 2, 3, 4, 5],
    )  # fmt: skip
    roles = guess_roles(frame)
    assert roles.row_id == "row_id"
    assert roles.environment == "environment"
    assert roles.sample_weight == "sample_weight"
    assert roles.cluster == "patient_id"
    assert set(roles.sensitive_features) == {"night", "garment"}
    assert roles.pos_label is None


def test_published_predictions(method_data: Path) -> None:
    roles = guess_roles(pd.read_parquet(method_data / "bdd_iga.parquet"))
    assert (roles.y_true, roles.y_prob, roles.pos_label) == ("y_true", "y_prob", "1")
    assert (roles.sensitive_features, roles.environment) == (("weather",), "timeofday")


# ------------------------------------------------------------------------------ positive class


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        ([0, 1], "1"),
        ([1.0, 0.0], "1"),
        ([-1, 1], "1"),
        ([False, True], "True"),
        (["no", "yes"], "yes"),
        (["Yes", "No"], "Yes"),
        (["<=50K", ">50K"], ">50K"),
        ([" <=50K.", " >50K."], " >50K."),
        (["< 18", ">= 18"], ">= 18"),
        (["not frisked", "frisked"], "frisked"),
        (["non-smoker", "smoker"], "smoker"),
        (["negative", "positive"], "positive"),
        (["risk high", "risk low"], "risk high"),
        (["synthetic no", "synthetic yes"], "synthetic yes"),
        (["income", "income high"], None),
        (["coat", "top"], None),
        (["a", "b"], None),
        ([1, 2], None),
        (["<=50K", ">60K"], None),
        ([1, 2, 3], None),
        (["top"], None),
        ([], None),
    ],
)
def test_positive_class(labels: list[object], positive: str | None) -> None:
    found, reason = guess_pos_label(labels)
    assert found == positive
    assert reason
    assert guess_pos_label(labels[::-1])[0] == positive


def test_an_open_positive_class_is_not_filled_but_hinted_at() -> None:
    frame = table(label=["coat", "top"], score=[0.1, 0.8], sex=["f", "m", "m"])
    roles = guess_roles(frame)
    assert roles.pos_label is None
    assert (
        "scores are higher on average for 'top' (0.80 against 0.10)" in roles.reasons["pos_label"]
    )
    assert roles.confidence["pos_label"] == "low"


def test_a_score_named_after_a_label_says_which_class() -> None:
    frame = table(label=["coat", "top"], prob_coat=scores(0.9, 0.1), sex=["f", "m", "m"])
    roles = guess_roles(frame)
    assert (roles.y_prob, roles.pos_label) == ("prob_coat", "coat")
    both = table(label=["no", "yes"], p_no=scores(0.9, 0.1), p_yes=scores(0.1, 0.9),
                 sex=["f", "m", "m"])  # fmt: skip
    roles = guess_roles(both)
    assert (roles.y_prob, roles.pos_label) == ("p_yes", "yes")


def test_the_guess_is_one_the_engine_understands() -> None:
    """Text of the class leads to the same positives, whatever the label's type."""
    for labels in ([0, 1], [0.0, 1.0], [False, True], ["no", "yes"], ["<=50K", ">50K"], [-1, 1]):
        frame = table(y_true=labels, y_prob=scores(), sex=["f", "m", "m"])
        predictions = Predictions.from_frame(frame, guess_roles(frame))
        assert predictions.y_true.tolist() == [0, 1] * (N // 2)


# ---------------------------------------------------------------------------------- groups


@pytest.mark.parametrize("codes", [[1, 2, 3], ["001", "002"], [1.0, 2.0, None], [True, False]])
def test_codes_are_groups_not_numbers(codes: list[object]) -> None:
    frame = table(y_true=[0, 1], y_prob=scores(), race=codes)
    roles = guess_roles(frame)
    assert roles.sensitive_features == ("race",)
    predictions = Predictions.from_frame(frame, roles)
    assert len(predictions.feature("race").labels) == len(codes)


@pytest.mark.parametrize(
    ("name", "values"),
    [("race", np.arange(1, 1 + N)), ("gender", [f"word {k}" for k in range(N)])],
)
def test_fine_codes_and_texts_are_no_groups_and_say_so(name: str, values: object) -> None:
    frame = table(y_true=[0, 1], y_prob=scores(), **{name: values})
    roles = guess_roles(frame)
    assert roles.sensitive_features == ()
    assert "cut it into bands" in roles.reasons["sensitive_features"]
    with pytest.raises(ColumnError, match="cut it into bands"):
        roles.check(frame.columns)


@pytest.mark.parametrize(
    ("values", "edges"),
    [
        (np.arange(18, 18 + N), (30, 50, 60)),  # quartiles 32, 47, 62
        (np.where(np.arange(N) % 10 == 0, np.nan, np.arange(N) / 4.0), (4, 8, 12)),
        ([*range(30), *[None] * 30], (5, 15, 20)),  # quartiles 7, 15, 22
    ],
)
def test_an_age_is_proposed_in_bands_with_round_edges(
    values: object, edges: tuple[float, ...]
) -> None:
    frame = table(y_true=[0, 1], y_prob=scores(), age=values, sex=["f", "m", "m"])
    roles = guess_roles(frame)
    assert roles.sensitive_features == ("sex", "age")
    assert dict(roles.bins) == {"age": edges}
    assert ", ".join(f"{edge:g}" for edge in edges) in roles.reasons["age"]
    assert roles.confidence["age"] == "medium"
    assert Roles.from_dict(json.loads(json.dumps(roles.to_dict()))) == roles


def test_few_ages_are_groups_as_they_are() -> None:
    frame = table(y_true=[0, 1], y_prob=scores(), age=[20, 30, 40])
    assert guess_roles(frame).bins == {}
    alone = table(y_true=[0, 1], y_prob=scores(), age=np.arange(N))
    assert guess_roles(alone).confidence["sensitive_features"] == "medium"
    same = table(y_true=[0, 1], y_prob=scores(), age=[40.5])
    assert guess_roles(same).sensitive_features == ()


def test_features_and_constants_are_no_groups() -> None:
    frame = table(y_true=[0, 1], y_prob=scores(), height=scores(1.5, 1.9), country=["FR"],
                  sex=["f", "m", "m"])  # fmt: skip
    assert guess_roles(frame).sensitive_features == ("sex",)


def test_named_features_come_before_others() -> None:
    frame = table(colour=["r", "g"], y_true=[0, 1], y_prob=scores(), sex=["f", "m", "m"])
    assert guess_roles(frame).sensitive_features == ("sex", "colour")


# ---------------------------------------------------------------------------------- scores


@pytest.mark.parametrize(
    ("values", "scale", "word"),
    [
        (scores(0, 1), "probability", "[0, 1]"),
        (scores(0, 100), "percent", "percent"),
        (scores(-8, 9), "logit", "logits"),
        (scores(0, 250), "logit", "logits"),
        (np.full(N, np.inf), "unknown", "not finite"),
    ],
)
def test_scale_of_the_score_is_told_not_converted(values, scale: str, word: str) -> None:
    frame = table(y_true=[0, 1], y_score=values, sex=["f", "m", "m"])
    roles = guess_roles(frame)
    assert (roles.y_prob, roles.scale) == ("y_score", scale)
    assert word in roles.reasons["y_prob"]


def test_logits_by_name() -> None:
    frame = table(y_true=[0, 1], logit=scores(-3, 3), sex=["f", "m", "m"])
    assert guess_roles(frame).scale == "logit"


def test_hard_predictions_when_there_is_no_score() -> None:
    frame = table(y_true=["no", "yes"], y_pred=["yes", "no", "no"], sex=["f", "m", "m"])
    roles = guess_roles(frame)
    assert (roles.y_prob, roles.scale) == ("y_pred", "decision")
    assert "hard predictions" in roles.reasons["y_prob"]


def test_a_score_is_preferred_to_hard_predictions() -> None:
    frame = table(y_true=[0, 1], prediction=[1, 0, 0], probability=scores(), sex=["f", "m", "m"])
    assert guess_roles(frame).y_prob == "probability"


def test_score_by_content_alone() -> None:
    frame = table(y_true=[0, 1], model_7=scores(), sex=["f", "m", "m"])
    assert guess_roles(frame).y_prob == "model_7"
    assert guess_roles(frame).confidence["y_prob"] == "medium"
    both = frame.assign(model_8=scores()[::-1])
    assert guess_roles(both).y_prob is None
    assert "'model_7', 'model_8'" in guess_roles(both).reasons["y_prob"]


def test_label_by_content_alone() -> None:
    frame = table(hired=["no", "yes"], probability=scores(), sex=["f", "m", "m"])
    roles = guess_roles(frame)
    assert (roles.y_true, roles.confidence["y_true"]) == ("hired", "low")


def test_a_label_that_is_not_binary_is_named_with_what_it_holds() -> None:
    frame = table(label=[0, 1, 2], score=scores(), sex=["f", "m"])
    roles = guess_roles(frame)
    assert roles.y_true == "label"
    assert "3 distinct values" in roles.reasons["y_true"]


def test_tables_that_hold_no_predictions() -> None:
    for frame in (
        pd.DataFrame(),
        pd.DataFrame({"a": []}),
        table(epoch=np.arange(N), loss=scores(3, 0.1)),
        pd.DataFrame({"x": [[1, 2], [3]]}),
        pd.DataFrame({"x": [None, None]}),
        pd.DataFrame({("a", "b"): [1, 2]}),
    ):
        roles = guess_roles(frame)
        assert not roles.complete
        with pytest.raises(ColumnError, match="by hand"):
            roles.check(frame.columns)


# ------------------------------------------------------------------------------- the class


def test_json_round_trip() -> None:
    frame = table(y_true=[0, 1], y_prob=scores(), sex=["f", "m", "m"])
    roles = guess_roles(frame)
    assert Roles.from_dict(json.loads(json.dumps(roles.to_dict()))) == roles


@pytest.mark.parametrize(
    "value", [[], {"y_true": 3}, {"sensitive_features": [1]}, {"pos_label": True}, "x"]
)
def test_roles_of_foreign_hands_are_checked(value: object) -> None:
    with pytest.raises(ColumnError):
        Roles.from_dict(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value",
    [
        {"bins": [30]},
        {"bins": {"age": 30}},
        {"bins": {"age": ["30"]}},
        {"bins": {"age": []}},
        {"bins": {"age": [45, 30]}},
        {"bins": {"age": [30, float("nan")]}},
        {"intersections": "sex"},
        {"intersections": {"sex": "age"}},
        {"intersections": ["sex, age"]},
        {"intersections": [["sex"]]},
        {"intersections": [["sex", "sex"]]},
        {"intersections": [["sex", 3]]},
        {"table": 3},
    ],
)
def test_bands_and_crossings_of_foreign_hands_are_checked(value: dict[str, object]) -> None:
    with pytest.raises(ColumnError):
        Roles.from_dict(value)


def test_what_a_person_added_is_read_back() -> None:
    roles = Roles(
        "y", "p", ("sex", "age"), pos_label="1", scale="percent",
        bins={"age": (30.0, 45.0)}, intersections=(("sex", "age"),), convert=True,
        table="test/p.csv",
    )  # fmt: skip
    assert Roles.from_dict(json.loads(json.dumps(roles.to_dict()))) == roles
    # what was kept before there were bands is read as it was, and written as it was
    plain = Roles("y", "p", ("sex",))
    old = plain.to_dict()
    assert not {"bins", "intersections", "convert", "table"} & set(old)
    assert Roles.from_dict(old) == plain
    assert Roles.from_dict({**old, "convert": "no"}).convert is False


def test_a_crossing_needs_its_columns_among_the_sensitive_features() -> None:
    roles = Roles("y", "p", ("sex",), intersections=(("sex", "age"),))
    with pytest.raises(ColumnError, match="sex × age needs 'age' among the sensitive features"):
        roles.check(["y", "p", "sex", "age"])
    assert roles.corrected(sensitive_features=("sex", "age")).check(["y", "p", "sex", "age"])


def test_edges_set_by_hand_say_so() -> None:
    frame = table(y_true=[0, 1], y_prob=scores(), age=np.arange(N))
    roles = guess_roles(frame)
    same = roles.corrected(bins=dict(roles.bins))
    assert same.reasons["age"] == roles.reasons["age"]
    other = roles.corrected(bins={"age": (18.0, 40.0)})
    assert (other.reasons["age"], other.confidence["age"]) == ("chosen by hand", "high")


def test_foreign_roles_in_short_form() -> None:
    roles = Roles.from_dict({"y_true": "y", "y_prob": "p", "sensitive_features": "sex",
                             "scale": "weird", "confidence": {"y_true": "sky-high"}})  # fmt: skip
    assert roles.sensitive_features == ("sex",)
    assert roles.scale == "unknown"
    assert roles.confidence == {}


def test_correction_by_hand() -> None:
    roles = Roles(y_true="a", reasons={"y_true": "its name"}).corrected(y_true="b", y_prob="p")
    assert (roles.y_true, roles.y_prob) == ("b", "p")
    assert roles.reasons == {"y_true": "chosen by hand", "y_prob": "chosen by hand"}
    assert roles.missing == ("sensitive_features",)


def test_check_names_the_nearest_column() -> None:
    roles = Roles("lable", "score", ("sex",))
    with pytest.raises(ColumnError, match=r"column 'lable' not found. Did you mean 'label'\?"):
        roles.check(["label", "score", "sex"])
    assert Roles("label", "score", ("sex",)).check(["label", "score", "sex"])
    with pytest.raises(ColumnError, match="No column is set as the score"):
        Roles("label").check(["label"])
    with pytest.raises(ColumnError, match="sensitive feature"):
        Roles("label", "score").check(["label", "score"])


def test_missing_column_without_a_near_name_lists_what_there_is() -> None:
    assert "Did you mean 'Label'?" in str(missing_column("label", ["Label", "x"]))
    text = str(missing_column("zzz", [f"column{k}" for k in range(30)]))
    assert "'column0'" in text
    assert "and 18 more" in text


def test_label_text_is_the_same_however_stored() -> None:
    assert [label_text(v) for v in (1, 1.0, np.int8(1), np.float32(1))] == ["1"] * 4
    assert [label_text(v) for v in (True, np.bool_(True), 0.5, "1.0")] == [
        "True", "True", "0.5", "1.0",
    ]  # fmt: skip


def test_conversion_to_probabilities() -> None:
    logits = pd.Series([-1000.0, 0.0, 1000.0, np.nan])
    found = to_probabilities(logits, "logit")
    assert found[:3].tolist() == [0.0, 0.5, 1.0]
    assert np.isnan(found[3])
    assert to_probabilities(pd.Series([0, 50, 100]), "percent").tolist() == [0, 0.5, 1]
    same = pd.Series([0.1])
    assert to_probabilities(same, "probability") is same


@pytest.mark.parametrize("scale", ["percent", "logit"])
def test_what_looks_like_probabilities_is_not_converted_again(scale: Scale) -> None:
    frame = table(y_true=[0, 1], y_score=scores(0, 0.98), sex=["f", "m", "m"])
    roles = Roles("y_true", "y_score", ("sex",), scale=scale, convert=True)
    with pytest.raises(ColumnError, match=r"run from 0 to 0.98, as probabilities do"):
        as_probabilities(frame, roles)


@pytest.mark.parametrize(
    ("values", "said", "seen"),
    [
        (scores(0, 100), "percent", "percent"),
        (scores(0, 100), "probability", "percent"),  # logged under another name
        (scores(-4, 4), "probability", "logit"),
        (scores(0, 100), "unknown", "percent"),
        (scores(0, 1), "probability", None),
        (scores(0, 1.0000001), "probability", None),
        (scores(-0.001, 1), "probability", None),
        (scores(0, 1), "logit", "logit"),
        ([0, 5], "decision", None),
        (["a", "b"], "probability", None),
        ([1.0, np.inf], "probability", None),
        ([None], "probability", None),
    ],
)
def test_scores_that_are_no_probabilities_are_recognised(
    values: object, said: Scale, seen: str | None
) -> None:
    frame = table(y_true=[0, 1], y_score=values, sex=["f", "m", "m"])
    roles = Roles("y_true", "y_score", ("sex",), scale=said)
    assert recognised_scale(frame, roles) == seen
    assert recognised_scale(frame, roles.corrected(convert=True)) is None
    assert recognised_scale(frame, roles.corrected(y_prob="gone", scale="probability")) is None


@pytest.mark.parametrize(
    ("scale", "values", "wanted"),
    [
        ("percent", ["50%", "20%"], "must hold numbers to convert; it holds values such as '50%'"),
        ("logit", [[0.5], [1.0]], "must hold numbers to convert"),
        ("decision", [[0], [1]], "must hold one prediction a row"),
    ],
)
def test_scores_that_cannot_be_converted_are_named(
    scale: Scale, values: list[object], wanted: str
) -> None:
    frame = table(y_true=[0, 1], y_score=values, sex=["f", "m", "m"])
    roles = Roles("y_true", "y_score", ("sex",), scale=scale, convert=True, pos_label="1")
    with pytest.raises(ColumnError, match=f"'y_score' {wanted}"):
        as_probabilities(frame, roles)


def test_the_positive_class_takes_its_own_score_along() -> None:
    columns = ["label", "p_cat", "p_dog", "feature_cat", "score"]
    wide = Roles("label", "p_dog", ("sex",))
    assert for_class(columns, wide, "cat").y_prob == "p_cat"
    assert for_class(columns, wide, "dog").y_prob == "p_dog"
    assert for_class(columns, wide, "owl").y_prob == "p_dog"
    assert for_class(columns, wide, "cat").pos_label == "cat"
    assert for_class(columns, Roles("label", "score", ("sex",)), "cat").y_prob == "score"
    nested = ["label", "prob_0", "prob_1", "1"]
    assert for_class(nested, Roles("label", "prob_1"), "0").y_prob == "prob_0"


def test_hard_predictions_become_scores_and_say_so() -> None:
    frame = table(y_true=["no", "yes"], y_pred=["yes", "no", None], sex=["f", "m", "m"])
    changed, roles, done = as_probabilities(frame, guess_roles(frame))
    assert changed["y_pred"].iloc[:2].tolist() == [1.0, 0.0]
    assert np.isnan(changed["y_pred"].iloc[2])
    assert "hard predictions" in done
    assert roles.scale == "probability"
    assert frame["y_pred"].iloc[0] == "yes"  # the table that came in stays as it was
    predictions = Predictions.from_frame(changed, roles)
    assert predictions.n == 40
    with pytest.raises(ColumnError, match="Choose the positive class"):
        as_probabilities(frame, guess_roles(frame).corrected(pos_label=None))


def test_scores_of_other_scales_are_converted_on_request() -> None:
    frame = table(y_true=[0, 1], y_score=scores(0, 100), sex=["f", "m", "m"])
    changed, roles, done = as_probabilities(frame, guess_roles(frame))
    assert changed["y_score"].max() == 1
    assert "percent" in done
    assert as_probabilities(changed, roles) == (changed, roles, "")
    with pytest.raises(ColumnError, match="not found"):
        as_probabilities(frame, Roles("y_true", "y_scor", scale="percent"))


def test_one_class_against_the_rest() -> None:
    frame = table(label=["cat", "dog", "bird", None], p_cat=scores(), p_dog=scores(1, 0),
                  p_bird=scores(), sex=["f", "m", "m"])  # fmt: skip
    binary, roles = one_against_rest(frame, guess_roles(frame), "dog")
    assert binary["label"].iloc[:3].tolist() == ["not dog", "dog", "not dog"]
    assert (roles.y_prob, roles.pos_label) == ("p_dog", "dog")
    predictions = Predictions.from_frame(binary, roles)
    assert (predictions.n, predictions.y_true.sum()) == (45, 15)
    coded = frame.assign(label=frame["label"].astype("category"))
    again, _ = one_against_rest(coded, guess_roles(coded), "dog")
    assert again["label"].dropna().tolist() == binary["label"].dropna().tolist()
    assert again["label"].isna().tolist() == binary["label"].isna().tolist()
    numbered = table(y=[0, 1, 2], p_0=scores(), p_1=scores(), p_2=scores(), sex=["f", "m"])
    binary, roles = one_against_rest(numbered, guess_roles(numbered), "2")
    assert (roles.y_prob, binary["y"].unique().tolist()) == ("p_2", ["not 2", "2"])
    with pytest.raises(ColumnError, match="named after 'fish'"):
        one_against_rest(frame, guess_roles(frame), "fish")
    with pytest.raises(ColumnError, match="Did you mean 'p_dog'"):
        one_against_rest(frame, guess_roles(frame), "dog", "p_dgo")


CELLS = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.floats(), st.text(max_size=3))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=12), st.lists(CELLS, min_size=4, max_size=4)),
                max_size=6))  # fmt: skip
def test_no_table_breaks_the_guess(columns: list[tuple[str, list[object]]]) -> None:
    frame = pd.DataFrame(dict(enumerate(values for _, values in columns)))
    frame.columns = pd.Index([name for name, _ in columns], dtype=object)
    roles = guess_roles(frame)
    used = roles.columns()
    assert set(used) <= {name for name, _ in columns}
    assert len(used) == len(set(used))
    assert json.dumps(roles.to_dict())


# --------------------------------------------------------------------- columns of odd content


@pytest.mark.parametrize(
    ("scores", "why"),
    [
        (["0,5", "0,25", "0,75", "1"], "texts such as '0,5'; log numbers"),
        (["50%", "25%", "75%", "1%"], "texts such as '50%'"),
        ([[0.5], [0.5, 0.5], [], [1.0]], "lists of different lengths"),
        ([None, None, None, None], "missing values only"),
    ],
)
def test_a_score_that_is_no_number_is_named(scores: list[object], why: str) -> None:
    frame = pd.DataFrame({"y_true": [0, 1, 0, 1], "y_prob": scores, "sex": ["f", "m", "f", "m"]})
    roles = guess_roles(frame)
    assert roles.y_prob is None
    with pytest.raises(ColumnError, match=f"'y_prob' is named like a score, but holds {why}"):
        roles.check(frame.columns)


@pytest.mark.parametrize(
    ("sex", "why"),
    [
        (["f", "f", "f"], "'sex' holds 'f' only"),
        ([0.5, 1.25, 0.5], "'sex' holds fractions; cut it into bands"),
        ([["f"], ["m"], ["f"]], "'sex' holds lists"),
    ],
)
def test_a_sensitive_column_that_is_no_group_says_why(sex: list[object], why: str) -> None:
    frame = pd.DataFrame({"y_true": [0, 1, 1], "y_prob": [0.5, 0.25, 0.75], "sex": sex})
    with pytest.raises(ColumnError, match=why):
        guess_roles(frame).check(frame.columns)


@pytest.mark.parametrize(
    ("labels", "positive"),
    [(["0.0", "1.0", "1.0"], "1.0"), ([0, "1", 1], "1"), (["0", 0.0, 1], "1")],
)
def test_one_label_in_several_spellings(labels: list[object], positive: str) -> None:
    frame = pd.DataFrame({"y_true": labels, "y_prob": [0.25, 0.75, 0.5], "sex": ["f", "m", "m"]})
    roles = guess_roles(frame)
    assert (roles.y_true, roles.pos_label) == ("y_true", positive)
    assert roles.confidence["y_true"] == "high"
