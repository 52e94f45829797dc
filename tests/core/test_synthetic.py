"""Synthetic models: what the sliders promise, and what the lessons claim."""

from __future__ import annotations

import re
from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.special import expit, logit

from rise_core import PredictionsError, Settings, evaluate_predictions
from rise_core.glossary import PUBLISHED, TERMS
from rise_core.lessons import LESSONS
from rise_core.synthetic import BOUNDS, FEATURE, GROUPS, NEGATIVE, POSITIVE, SyntheticModel
from rise_core.wording import METRICS, format_number
from tests.core.test_golden import PUBLISHED as GOLDEN


def test_rows_groups_and_base_rates_are_what_was_asked_for() -> None:
    model = SyntheticModel(rows=1000, share_b=0.3, rate_a=0.6, rate_b=0.2)
    table = model.frame()
    counts = table[FEATURE].value_counts()
    rates = (table["y_true"] == POSITIVE).groupby(table[FEATURE]).mean()
    assert (counts[GROUPS[0]], counts[GROUPS[1]]) == (700, 300)
    assert rates[GROUPS[0]] == pytest.approx(0.6)
    assert rates[GROUPS[1]] == pytest.approx(0.2)


def test_scores_follow_the_formula() -> None:
    model = SyntheticModel(
        separation=2.0, noise=0.5, bias=-1.0, extra_noise=0.7, confidence=1.5, collapse=0.25,
        rate_a=0.5, rate_b=0.25, rows=400, seed=7,
    )  # fmt: skip
    table = model.frame()
    # 400 rows, 160 of them B; 120 positives of A and 40 of B make a base rate of .4
    seen, everyone, alone = np.random.default_rng(7).standard_normal((3, 400))
    positive = (table["y_true"] == POSITIVE).to_numpy()
    in_b = (table[FEATURE] == GROUPS[1]).to_numpy()
    assert positive.mean() == 0.4
    x = np.where(positive, 1.0, -1.0) + seen
    score = expit(1.5 * (2 * x + logit(0.4) + 0.5 * everyone + in_b * (-1 + 0.7 * alone)))
    np.testing.assert_allclose(table["y_prob"], 0.75 * score + 0.25 * 0.4, atol=1e-12)


def test_without_noise_and_bias_the_scores_are_calibrated() -> None:
    tables = [SyntheticModel(separation=2.0, seed=seed).frame() for seed in range(50)]
    score = np.concatenate([t["y_prob"] for t in tables])
    hit = np.concatenate([t["y_true"] == POSITIVE for t in tables])
    for low in np.arange(0, 1, 0.1):
        inside = (score >= low) & (score < low + 0.1)
        error = hit[inside].std() / np.sqrt(inside.sum())
        assert abs(hit[inside].mean() - score[inside].mean()) < 4 * error


def test_a_slider_moves_the_rows_and_draws_no_others() -> None:
    before, after = SyntheticModel().frame(), SyntheticModel(bias=0.1).frame()
    in_b = before[FEATURE] == GROUPS[1]
    assert (before["y_prob"][~in_b] == after["y_prob"][~in_b]).all()
    assert (before["y_prob"][in_b] < after["y_prob"][in_b]).all()
    assert SyntheticModel().frame().equals(before)
    assert not SyntheticModel(seed=1).frame()["y_prob"].equals(before["y_prob"])


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("end", ["low", "high"])
def test_every_slider_works_at_both_ends(name: str, end: str) -> None:
    value = type(getattr(SyntheticModel(), name))(getattr(BOUNDS[name], end))
    for small in (False, True):
        model = SyntheticModel(**{"rows": 100 if small else 600, name: value})
        ev = evaluate_predictions(model.predictions())
        assert ev.n == model.rows
        assert set(ev.groups) == set(GROUPS)
        assert 0 <= ev.indicators.w1 <= 1


@pytest.mark.parametrize("name", BOUNDS)
def test_what_no_slider_offers_is_refused(name: str) -> None:
    with pytest.raises(PredictionsError, match=f"{name} must lie between"):
        replace(SyntheticModel(), **{name: BOUNDS[name].high + 1})


def test_everything_a_chart_or_table_shows_says_synthetic() -> None:
    ev = evaluate_predictions(SyntheticModel().predictions())
    named = (*ev.groups, ev.feature, ev.predictions.pos_label, ev.predictions.neg_label)
    assert all(name.startswith("synthetic") for name in named)
    assert NEGATIVE in set(SyntheticModel().frame()["y_true"])


# -------------------------------------------------------------------------------- lessons


@pytest.mark.parametrize("key", LESSONS)
def test_the_numbers_bear_a_lesson_out(key: str) -> None:
    lesson = LESSONS[key]
    assert lesson.told or lesson.quiet
    assert lesson.faults(lesson.evaluation().uncertainty()) == []


def test_a_lesson_that_claims_too_much_is_found() -> None:
    lesson = replace(LESSONS["fair-accurate"], told=("w1",), quiet=())
    assert lesson.faults(lesson.evaluation().uncertainty(n_boot=100, n_perm=100)) != []


@pytest.mark.parametrize("key", LESSONS)
def test_a_lesson_answers_with_the_numbers_of_its_model(key: str) -> None:
    lesson = LESSONS[key]
    text = lesson.answered()
    assert "{" not in text
    assert "nan" not in text
    for name in re.findall(r"\{(\w+)\}", lesson.answer):
        if name in METRICS:
            value = getattr(lesson.evaluation().indicators, name)
            assert format_number(value) in text, name


@pytest.mark.parametrize("key", LESSONS)
def test_a_lesson_lies_on_the_sliders(key: str) -> None:
    model = LESSONS[key].model
    for field in fields(model):
        bound, value = BOUNDS[field.name], getattr(model, field.name)
        steps = (value - bound.low) / bound.step
        assert steps == pytest.approx(round(steps)), field.name


def test_what_the_lessons_say_in_words_holds() -> None:
    useless = LESSONS["fair-useless"].evaluation()
    assert useless.indicators.accuracy <= useless.majority_accuracy
    unfair = LESSONS["accurate-unfair"].evaluation()
    assert unfair.indicators.accuracy > 0.95  # 19 of 20
    assert unfair.groups[GROUPS[0]].accuracy - unfair.groups[GROUPS[1]].accuracy > 0.04
    noisy = LESSONS["disagree"].evaluation()
    assert noisy.groups[GROUPS[0]].accuracy - noisy.groups[GROUPS[1]].accuracy > 0.1
    # "Switch the base rates to equal": nothing is left of the gap.
    equal = LESSONS["base-rates"].evaluation(Settings(base_rates="equal"))
    known = equal.uncertainty()
    assert not any(known[key].distinguishable for key in ("w1", "dp", "md", "f_mean"))
    shaky = LESSONS["over-confident"].evaluation()
    assert shaky.indicators.f_acc > 1
    assert shaky.indicators.w1 < 0.02


@pytest.mark.parametrize("seed", range(1, 6))
def test_the_lessons_are_no_luck_of_one_draw(seed: int) -> None:
    for key, must in (
        ("accurate-unfair", ("w1", "f_mean", "dp")),
        ("disagree", ("w1",)),
        ("base-rates", ("w1", "dp", "md")),
    ):
        model = replace(LESSONS[key].model, seed=seed)
        known = evaluate_predictions(model.predictions()).uncertainty(n_boot=50, n_perm=200)
        assert all(known[name].distinguishable for name in must), key


# ------------------------------------------------------------------------------- glossary


def test_every_term_is_explained_once() -> None:
    names = [term.name for term in TERMS]
    assert len(set(names)) == len(names)
    assert all(term.meaning and not term.meaning.endswith(".") for term in TERMS)


def test_the_papers_numbers_are_those_computed_from_its_files() -> None:
    for row in PUBLISHED:
        printed = (row.f_mean, row.f_shift, row.f_acc)
        assert printed == tuple(round(value, 3) for value in row.again)
        # test_golden computes these from the files themselves
        assert (f"bdd_{row.model.lower()}", "decision_gap", *row.again) in GOLDEN
