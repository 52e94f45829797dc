"""Groups that are made: bands of numbers and columns crossed. Every row stays in one of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rise_core import ColumnError, Predictions, PredictionsError, evaluate
from rise_core.cli import HELD, UNREADABLE, main
from rise_core.columns import Roles, guess_roles
from rise_core.exceptions import ScaleError
from rise_core.predictions import MISSING
from rise_core.tracking.sources import Correction

ROWS = 300
BANDS = ("under 30", "30–44", "45 and over", MISSING)


@pytest.fixture
def frame() -> pd.DataFrame:
    """300 rows with a sex that is missing here and there, and an age that is too."""
    rng = np.random.default_rng(5)
    label = rng.integers(0, 2, ROWS)
    sex = rng.choice(["female", "male", None], ROWS, p=[0.4, 0.5, 0.1])
    age = np.where(rng.random(ROWS) < 0.1, np.nan, rng.integers(18, 80, ROWS))
    score = np.clip(0.5 * label + 0.5 * rng.random(ROWS) - 0.1 * (age > 50), 0, 1)
    site = rng.choice(["north", "south"], ROWS)
    return pd.DataFrame({"y": label, "p": score, "sex": sex, "age": age, "site": site})


def band_of(age: float) -> str:
    if np.isnan(age):
        return MISSING
    return BANDS[0] if age < 30 else BANDS[1] if age < 45 else BANDS[2]


def crossed(frame: pd.DataFrame) -> list[str]:
    sexes = [MISSING if sex is None or sex != sex else sex for sex in frame["sex"]]
    return [f"{sex} × {band_of(age)}" for sex, age in zip(sexes, frame["age"], strict=True)]


def labels_of(predictions: Predictions, name: str) -> list[str]:
    factor = predictions.feature(name)
    return [factor.labels[code] for code in factor.codes]


ROLES = Roles("y", "p", ("sex", "age"), pos_label="1", bins={"age": (30, 45)})


# -------------------------------------------------------------------------------- bands


def test_ages_are_cut_into_bands_and_no_row_is_lost(frame: pd.DataFrame) -> None:
    frame.loc[:3, "p"] = np.nan  # left out for another reason
    made = Predictions.from_frame(frame, ROLES)
    used = frame[4:]
    assert labels_of(made, "age") == [band_of(age) for age in used["age"]]
    assert made.feature("age").labels == BANDS  # ascending, what is missing last
    assert int(made.feature("age").counts.sum()) == made.n == ROWS - 4
    assert made.n + sum(made.left_out.values()) == made.n_rows == ROWS
    assert labels_of(made, "sex").count(MISSING) == used["sex"].isna().sum()


def test_a_band_without_rows_is_no_group(frame: pd.DataFrame) -> None:
    made = Predictions.from_frame(frame, ROLES.corrected(bins={"age": (10, 30, 45, 200)}))
    assert made.feature("age").labels == ("10–29", "30–44", "45–199", MISSING)
    young = made.subset(frame["age"].to_numpy() < 30, "not young")
    assert young.feature("age").labels == ("10–29",)


def test_bands_of_a_column_that_is_no_feature_rest_unused(frame: pd.DataFrame) -> None:
    alone = ROLES.corrected(sensitive_features=("sex",), intersections=())
    assert list(Predictions.from_frame(frame, alone).features) == ["sex"]
    assert alone.bins == {"age": (30, 45)}


def test_what_was_guessed_can_be_evaluated_as_it_is(frame: pd.DataFrame) -> None:
    roles = guess_roles(frame.rename(columns={"y": "y_true", "p": "y_prob"}))
    assert roles.sensitive_features[:2] == ("sex", "age")
    made = Predictions.from_frame(frame.rename(columns={"y": "y_true", "p": "y_prob"}), roles)
    assert len(made.feature("age").labels) == len(roles.bins["age"]) + 2
    assert made.notes == ()


@pytest.mark.parametrize(
    "make",
    [list, np.array, pd.Series, pl.Series, pa.array, pd.Categorical],
    ids=["list", "numpy", "pandas", "polars", "arrow", "categorical"],
)
def test_evaluate_cuts_every_kind_of_column(frame: pd.DataFrame, make: Any) -> None:
    whole = frame.dropna()
    ages = make(whole["age"].to_numpy())
    ev = evaluate(whole["y"], whole["p"], sensitive_features={"age": ages}, bins={"age": [30, 45]})
    assert labels_of(ev.predictions, "age") == [band_of(age) for age in whole["age"]]
    by_hand = [band_of(age) for age in whole["age"]]
    wanted = evaluate(whole["y"], whole["p"], sensitive_features=by_hand)
    assert ev.indicators.w1 == wanted.indicators.w1


@pytest.mark.parametrize(
    ("bins", "says"),
    [
        ({"agee": [30]}, "Did you mean 'age'"),
        ({"age": [45, 30]}, "must rise"),
        ({"age": []}, "has no edges"),
        ({"sex": [30]}, "'sex' holds '(fe)?male', which is no number"),
    ],
)
def test_bins_that_cannot_be_meant(frame: pd.DataFrame, bins: Any, says: str) -> None:
    with pytest.raises(ColumnError, match=says):
        evaluate(frame["y"], frame["p"], sensitive_features=frame[["sex", "age"]], bins=bins)


def test_a_measurement_in_place_of_groups_is_named_with_edges_to_cut_it() -> None:
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, ROWS), rng.random(ROWS)
    heights = pd.DataFrame(
        {"sex": rng.choice(["f", "m"], ROWS), "height": rng.normal(1.7, 0.1, ROWS)}
    )
    ev = evaluate(y, p, sensitive_features=heights)
    assert ev.feature == "sex"  # another column is no fault of this one
    with pytest.raises(PredictionsError, match=r"'height' holds 300 distinct numbers: .*1\.\d+, 1"):
        _ = ev.by_feature["height"]
    with pytest.raises(PredictionsError, match="`bins` in Python"):
        evaluate(y, p, sensitive_features=heights["height"])


def test_many_whole_numbers_are_groups_and_doubted() -> None:
    rng = np.random.default_rng(0)
    y, p, age = rng.integers(0, 2, ROWS), rng.random(ROWS), rng.integers(18, 60, ROWS)
    ev = evaluate(y, p, sensitive_features={"age": age})
    assert len(ev.groups) == len(set(age))
    (note,) = ev.predictions.notes
    assert f"'age' holds {len(set(age))} distinct numbers, and each is a group" in note
    assert "Edges such as" in note
    # codes and texts that look like numbers are not doubted
    few = evaluate(y, p, sensitive_features={"code": age % 20})
    assert few.predictions.notes == ()
    texts = evaluate(y, p, sensitive_features={"code": [f"{code / 10:.1f}" for code in age]})
    assert texts.predictions.notes == ()


@pytest.mark.parametrize("kind", [int, str])
def test_more_groups_than_can_be_compared_are_refused(kind: Any) -> None:
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, ROWS), rng.random(ROWS)
    with pytest.raises(PredictionsError, match=r"'id' (holds|splits the rows into) 300 "):
        evaluate(y, p, sensitive_features={"id": [kind(k) for k in range(ROWS)]})
    many = {"a": [str(k % 100) for k in range(ROWS)], "b": [str(k % 7) for k in range(ROWS)]}
    with pytest.raises(PredictionsError, match=r"'a × b' splits the rows into"):
        _ = evaluate(y, p, sensitive_features=many, intersections=True).by_feature["a × b"]


# ------------------------------------------------------------------------- intersections


def test_a_crossing_is_a_feature_with_every_combination_there_is(frame: pd.DataFrame) -> None:
    made = Predictions.from_frame(frame, ROLES.corrected(intersections=(("sex", "age"),)))
    assert list(made.features) == ["sex", "age", "sex × age"]
    assert labels_of(made, "sex × age") == crossed(frame)
    sexes = ("female", "male", MISSING)
    every = [f"{sex} × {band}" for sex in sexes for band in BANDS]
    assert made.feature("sex × age").labels == tuple(x for x in every if x in crossed(frame))
    assert int(made.feature("sex × age").counts.sum()) == made.n == ROWS


def test_a_combination_without_rows_does_not_appear(frame: pd.DataFrame) -> None:
    no_old_women = frame[~((frame["sex"] == "female") & (frame["age"] >= 45))]
    made = Predictions.from_frame(no_old_women, ROLES.corrected(intersections=(("sex", "age"),)))
    assert "female × 45 and over" not in made.feature("sex × age").labels
    assert "male × 45 and over" in made.feature("sex × age").labels


def test_three_columns_and_several_crossings(frame: pd.DataFrame) -> None:
    roles = ROLES.corrected(
        sensitive_features=("sex", "age", "site"),
        intersections=(("site", "sex"), ("sex", "age", "site")),
    )
    made = Predictions.from_frame(frame, roles)
    assert list(made.features) == ["sex", "age", "site", "site × sex", "sex × age × site"]
    wanted = [f"{pair} × {site}" for pair, site in zip(crossed(frame), frame["site"], strict=True)]
    assert labels_of(made, "sex × age × site") == wanted


def test_evaluate_crosses_on_request(frame: pd.DataFrame) -> None:
    options: dict[str, Any] = {"sensitive_features": frame[["sex", "age"]],
                               "bins": {"age": (30, 45)}}  # fmt: skip
    plain = evaluate(frame["y"], frame["p"], **options)
    assert list(plain.by_feature) == ["sex", "age"]
    for how in (True, [("sex", "age")], [["sex", "age"]]):
        ev = evaluate(frame["y"], frame["p"], **options, intersections=how)
        assert ev.feature == "sex"
        both = ev.by_feature["sex × age"]
        alone = evaluate(frame["y"], frame["p"], sensitive_features=crossed(frame))
        assert {k: c.n for k, c in both.groups.items()} == {k: c.n for k, c in alone.groups.items()}
        assert both.indicators.w1 == pytest.approx(alone.indicators.w1)
        assert both.indicators.w1 == plain.intersection().indicators.w1


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ([("sex", "agee")], "No sensitive column 'agee'"),
        ([("sex",)], "two or more different columns"),
        ([("sex", "sex")], "two or more different columns"),
        (["sex", "age"], "must be a list of columns to cross"),
        ([("sex", "age"), ("sex", "age")], "'sex × age' already"),
    ],
)
def test_crossings_that_cannot_be_meant(frame: pd.DataFrame, how: Any, says: str) -> None:
    with pytest.raises(ColumnError, match=says):
        evaluate(
            frame["y"], frame["p"], sensitive_features=frame[["sex", "age"]],
            bins={"age": [30]}, intersections=how,
        )  # fmt: skip
    if how == [("sex",)]:
        with pytest.raises(ColumnError, match=says):
            evaluate(frame["y"], frame["p"], sensitive_features=frame["sex"], intersections=True)


# ------------------------------------------------- scores and labels that must be turned


@pytest.mark.parametrize(
    ("scale", "made"), [("percent", lambda p: 100 * p), ("logit", lambda p: np.log(p / (1 - p)))]
)
def test_scores_are_converted_only_where_somebody_agreed(
    frame: pd.DataFrame, scale: Any, made: Any
) -> None:
    frame["p"] = frame["p"].clip(0.001, 0.999)
    other = frame.assign(p=made(frame["p"]))
    roles = ROLES.corrected(scale=scale)
    with pytest.raises(ScaleError, match="Nothing is converted unasked"):
        Predictions.from_frame(other, roles)
    agreed = Predictions.from_frame(other, roles.corrected(convert=True))
    assert agreed.y_prob == pytest.approx(frame["p"].to_numpy())
    (note,) = agreed.notes
    assert "converted from " + {"percent": "percent", "logit": "logits"}[scale] in note
    # where they are probabilities, a wrong answer must not make nonsense of them
    with pytest.raises(ColumnError, match="as probabilities do"):
        Predictions.from_frame(frame, roles.corrected(convert=True))


def test_hard_predictions_are_scores_0_and_1_and_it_is_said(frame: pd.DataFrame) -> None:
    hard = frame.assign(y=np.where(frame["y"] == 1, "yes", "no"))
    hard["p"] = np.where(frame["p"] >= 0.5, "yes", "no")
    hard.loc[0, "p"] = None
    roles = ROLES.corrected(pos_label="yes", scale="decision")
    made = Predictions.from_frame(hard, roles)
    assert made.y_prob.tolist() == (frame["p"] >= 0.5)[1:].astype(float).tolist()
    assert made.left_out == {"the score is missing": 1}
    assert "hard predictions" in made.notes[0]


def test_one_class_is_held_against_the_rest(frame: pd.DataFrame) -> None:
    kinds = frame.assign(
        y=np.where(frame["y"] == 1, "cat", np.where(frame["p"] > 0.3, "dog", "owl"))
    )
    kinds.loc[0, "y"] = None
    made = Predictions.from_frame(kinds, ROLES.corrected(pos_label="cat"))
    assert made.y_true.tolist() == frame["y"][1:].tolist()
    assert (made.pos_label, made.neg_label) == ("cat", "not cat")
    assert made.notes == ("'cat' is held against all other labels (2).",)
    with pytest.raises(PredictionsError, match="3 distinct values"):
        Predictions.from_frame(kinds, ROLES.corrected(pos_label=None))
    with pytest.raises(PredictionsError, match="3 distinct values"):
        Predictions.from_frame(kinds, ROLES.corrected(pos_label="cow"))
    with pytest.raises(PredictionsError, match="3 distinct values"):
        evaluate(kinds["y"], kinds["p"], sensitive_features=kinds["sex"], pos_label="cat")


# --------------------------------------------------------------------- the command line


@pytest.fixture
def file(frame: pd.DataFrame, tmp_path: Path) -> str:
    path = tmp_path / "p.csv"
    frame.rename(columns={"y": "y_true", "p": "y_prob"}).to_csv(path, index=False)
    return str(path)


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    assert main(["evaluate", *words, "--json"]) == HELD
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def groups_in(found: dict[str, Any]) -> list[str]:
    return [curve["group"] for curve in found["curves"][1:]]


def test_bands_and_crossings_from_a_shell(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(capsys, file, "--bins", "age=30,45", "--intersect", "sex,age",
                  "--sensitive-features", "sex")  # fmt: skip
    assert [one["feature"] for one in found] == ["sex", "age", "sex × age"]
    assert set(groups_in(found[1])) == set(BANDS)
    assert found[1]["roles"]["bins"] == {"age": [30, 45]}
    assert "female × 30–44" in groups_in(found[2])


@pytest.mark.parametrize("words", [["--bins", "age"], ["--bins", "=30"], ["--bins", "age=old"],
                                   ["--bins", "age=45,30"], ["--intersect", "sex"],
                                   ["--intersect", "sex,sex"]])  # fmt: skip
def test_words_that_cannot_be_meant(file: str, words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", file, *words])
    assert ended.value.code == 2


def test_a_column_of_a_band_that_is_not_there(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", file, "--bins", "agee=30"]) == UNREADABLE
    assert "Did you mean 'age'?" in capsys.readouterr().err


def test_columns_named_by_hand_are_all_that_count() -> None:
    kept = ROLES.corrected(intersections=(("sex", "age"),))
    named = Correction(sensitive_features=("age",)).apply(kept)
    assert (named.sensitive_features, named.intersections) == (("age",), ())
    assert named.bins == {"age": (30, 45)}
    assert Correction().apply(kept) == kept
    more = Correction(bins={"income": (1000,)}).apply(kept)
    assert more.sensitive_features == ("sex", "age", "income")
    assert more.bins == {"age": (30, 45), "income": (1000,)}
