"""Sentences: each claim is one that intervals and nulls support, each number one it rests on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from math import inf, nan
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rise_core import Comparison, Evaluation, compare, evaluate
from rise_core.reading import Sentence, read, read_comparison
from rise_core.uncertainty import Uncertainty
from rise_core.wording import METRICS, format_number

N = 300
FEW = {"n_boot": 60, "n_perm": 60}
RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, N)
NOISE = RNG.normal(0, 1, N)
GROUP = np.where(RNG.random(N) < 0.4, "f", "m")
THREE = np.array(list("abc"))[RNG.integers(0, 3, N)]
# The same share of positive labels in both groups, so that no base rate parts the curves.
EVEN = np.resize([0, 1], N)
IN_PAIRS = np.repeat(RNG.permutation(np.resize(["f", "m"], N // 2)), 2)


def score(shift: float = 0.0, noise: float = 1.0, y: Any = Y, group: Any = GROUP) -> Any:
    return 1 / (1 + np.exp(-(2 * y - 1 + noise * NOISE + shift * (group == "f"))))


def rows(y: Any, p: Any, group: Any, **how: Any) -> Evaluation:
    return evaluate(y, p, sensitive_features=pd.Series(group, name="s"), **how)


CASES = {
    "alike": lambda: rows(Y, score(), GROUP),
    "biased": lambda: rows(Y, score(2.0), GROUP),
    "a little biased": lambda: rows(Y, score(0.4), GROUP),
    "useless": lambda: rows(Y, score(noise=8.0), GROUP),
    "reversed": lambda: rows(Y, 1 - score(), GROUP),
    "constant": lambda: rows(Y, np.full(N, 0.3), GROUP),
    "tied": lambda: rows(Y, np.where(score() > 0.5, 1.0, 0.0), GROUP),
    "always right": lambda: rows(Y, Y.astype(float), GROUP),
    "one group": lambda: rows(Y, score(), np.full(N, "m")),
    "one class": lambda: rows(np.ones(N, int), score(), GROUP, pos_label=1),
    "three groups": lambda: rows(Y, score(), THREE),
    "equal by weights": lambda: rows(Y, score(1.0), GROUP, base_rates="equal"),
    "right at equal rates": lambda: rows(Y, Y * 0.9, GROUP, base_rates="equal"),
    "no equal rates": lambda: rows((GROUP == "f").astype(int), score(), GROUP, base_rates="equal"),
    "even base rates": lambda: rows(EVEN, score(y=EVEN, group=IN_PAIRS), IN_PAIRS),
    "base rates only": lambda: rows(
        (RNG.random(N) < np.where(GROUP == "f", 0.8, 0.2)).astype(int), score(), GROUP
    ),
    "six rows": lambda: rows([0, 1] * 3, [0.1, 0.9, 0.2, 0.7, 0.3, 0.8], list("ffmmfm")),
    "decisions": lambda: rows(Y, score(2.0), GROUP, residual="decision_gap"),
}


@cache
def case(name: str) -> tuple[Evaluation, Uncertainty]:
    ev = CASES[name]()
    return ev, ev.uncertainty(**FEW)


def said(name: str) -> dict[str, str]:
    return {sentence.topic: sentence.text for sentence in read(*case(name))}


# ------------------------------------------------------------------------ what a text may hold

NUMBER = re.compile(r"\d[\d,]*\.\d+|∞|\d+ ?%")


def written(values: Iterator[float]) -> set[str]:
    """All ways in which a reading may write these numbers, without their sign."""
    found = set()
    for value in values:
        size = abs(value)
        found |= {format_number(size, 2), format_number(size, 3)}
        if size <= 1:
            found |= {f"{size:.0%}", f"{100 * size:g} %"}
    return found


def may_say(sentence: Sentence, ev: Evaluation, known: Uncertainty) -> Iterator[float]:
    """The numbers behind a sentence."""
    for key in sentence.rests_on:
        e = known[key]
        yield from (e.value, e.low, e.high, e.null_low, e.null_high)
    if sentence.topic == "accuracy":
        yield ev.majority_accuracy
    if sentence.topic == "gap":
        yield known.confidence
        yield from (curve.median_residual for curve in ev.groups.values())
    if sentence.topic == "where":
        yield from (
            x for e in known.segments if e.name == "share" for x in (e.value, e.low, e.high)
        )
    if sentence.topic == "base rates":
        yield from (curve.base_rate for curve in ev.groups.values())


def holds(ev: Evaluation, known: Uncertainty, sentences: tuple[Sentence, ...]) -> None:
    """Hold every sentence against the estimates it rests on."""
    assert len({s.topic for s in sentences}) == len(sentences)
    for sentence in sentences:
        assert set(sentence.rests_on) <= set(METRICS)
        numbers = set(NUMBER.findall(sentence.text))
        assert numbers <= written(may_say(sentence, ev, known)), sentence
        assert "nan" not in sentence.text
        assert "–" not in sentence.text
        assert sentence.text.endswith(".")
        check = CHECKS.get(sentence.topic)
        if check and sentence.rests_on:
            check(sentence.text, ev, known)


def accuracy_holds(text: str, ev: Evaluation, known: Uncertainty) -> None:
    e, baseline = known["accuracy"], ev.majority_accuracy
    assert ("better than" in text) == (e.low > baseline)
    assert ("worse than" in text) == (e.high < baseline)
    assert ("not told apart from" in text) == (e.low <= baseline <= e.high)


def gap_holds(text: str, ev: Evaluation, known: Uncertainty) -> None:
    told = known["w1"].distinguishable
    assert ("not told from no group effect" in text) == (told is False)
    assert ("nothing tells" in text) == (told is None)
    assert ("median error" in text) == (told is True)
    if told:
        higher, lower = re.findall(r"for (.+?)(?: and|\.$)", text.split("median error")[1])
        medians = {label: curve.median_residual for label, curve in ev.groups.items()}
        assert medians[higher] >= medians[lower]


def where_holds(text: str, ev: Evaluation, known: Uncertainty) -> None:
    assert known["w1"].distinguishable
    (share,) = [e for e in known.segments if e.name == "share" and e.segment in text]
    assert share.low > 0.5


def decisions_hold(text: str, ev: Evaluation, known: Uncertainty) -> None:
    dp, md = known["dp"].distinguishable, known["md"].distinguishable
    assert ("both lie outside" in text) == (dp is True and md is True)
    assert ("only DP lies outside" in text) == (dp is True and md is False)
    assert ("only MD lies outside" in text) == (md is True and dp is False)
    assert ("neither is told" in text) == (dp is False and md is False)
    assert ("no random groupings" in text) == (dp is None and md is None)


def knees_hold(text: str, ev: Evaluation, known: Uncertainty) -> None:
    for key, name in (("f_shift", "F_shift"), ("f_acc", "F_acc")):
        if name in text:
            absent = np.isnan(known[key].value)
            assert absent == ("cannot be computed" in text)
            assert absent or known[key].unstable


CHECKS = {
    "accuracy": accuracy_holds,
    "gap": gap_holds,
    "where": where_holds,
    "decisions": decisions_hold,
    "knees": knees_hold,
}


# ------------------------------------------------------------------------------- one model


@pytest.mark.parametrize("name", CASES)
def test_every_sentence_is_supported(name: str) -> None:
    ev, known = case(name)
    sentences = read(ev, known)
    holds(ev, known, sentences)
    fewest = {"one group": 2, "no equal rates": 1}.get(name, 2 if name == "one class" else 3)
    assert fewest <= len(sentences) <= 6
    assert max(len(sentence.text.split()) for sentence in sentences) <= 60


def test_known_answers() -> None:
    assert "better than" in said("alike")["accuracy"]
    assert "worse than" in said("reversed")["accuracy"]
    assert "not told apart from" in said("useless")["accuracy"]
    assert "not told from no group effect" in said("alike")["gap"]
    assert said("biased")["gap"].startswith("The error curves of f and m lie ")
    assert re.search(r": median error −0\.\d+ for f and −0\.\d+ for m\.$", said("biased")["gap"])
    assert "both lie outside" in said("biased")["decisions"]
    assert "neither is told" in said("alike")["decisions"]


def test_nothing_significant_claims_nothing() -> None:
    # 40 data sets without any effect: what is claimed is claimed about as often as 1 in 20.
    claims = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, 120)
        p = 1 / (1 + np.exp(-(2 * y - 1 + rng.normal(0, 1, 120))))
        ev = rows(y, p, np.where(rng.random(120) < 0.5, "f", "m"))
        known = ev.uncertainty(n_boot=40, n_perm=80)
        sentences = read(ev, known)
        holds(ev, known, sentences)
        claims += any("median error" in s.text or "Most of" in s.text for s in sentences)
    assert claims <= 6  # P(more | 1 in 20) = 0.4 %


def test_a_model_that_gives_everybody_one_score() -> None:
    told = said("constant")
    assert "not told from no group effect" in told["gap"]
    assert "decisions" not in told, "nobody is decided for: DP is 0 / 0"
    assert told["knees"].startswith("F_shift and F_acc cannot be computed: the pooled curve has no")


def test_scores_that_are_all_tied_have_no_knees() -> None:
    assert "cannot be computed" in said("tied")["knees"]


def test_one_group_is_nothing_to_compare() -> None:
    ev, known = case("one group")
    first, second = read(ev, known)
    assert first.topic == "accuracy"
    assert second.text == "All rows belong to one group (m), so there is nothing to compare."


def test_no_numbers_is_said_once_with_the_reason() -> None:
    (only,) = read(*case("no equal rates"))
    assert only.text.startswith("There are no numbers: no equal base rate in a group with one")


def test_a_denominator_that_may_be_0_is_no_ratio_to_read() -> None:
    ev, known = case("biased")
    for shaky in (("f_shift",), ("f_acc",), ("f_shift", "f_acc"), ()):
        made = {key: replace(e, unstable=key in shaky) for key, e in known.indicators.items()}
        sentences = read(ev, replace(known, indicators=made))
        (knees,) = [s.text for s in sentences if s.topic == "knees"] or [""]
        names = [METRICS[key].name for key in shaky]
        assert knees.startswith(" and ".join(names))
        assert ("read the displacements" in knees) == bool(shaky)
        assert ("divides" in knees) == (len(shaky) == 1)


def test_base_rates_are_told_where_they_differ() -> None:
    assert "base rates" not in said("even base rates")
    text = said("base rates only")["base rates"]
    ev, known = case("base rates only")
    for label, curve in ev.groups.items():
        assert f"{curve.base_rate:.2f} for {label}" in text
    equal = rows(ev.predictions.y_true, ev.predictions.y_prob, GROUP, base_rates="equal")
    known_equal = equal.uncertainty(**FEW)
    (longer,) = [s.text for s in read(ev, known, equal, known_equal) if s.topic == "base rates"]
    assert known_equal["w1"].value < 0.1 < known["w1"].value
    numbers = format_number(known_equal["w1"].value, 3), format_number(known["w1"].value, 2)
    assert f"at equal base rates W1 is {numbers[0]} instead of {numbers[1]}" in longer
    told = known_equal["w1"].distinguishable
    assert longer.endswith(", not told from no group effect.") == (told is False)
    assert "weighted to the same base rate" in said("equal by weights")["base rates"]


def test_last_bits_are_no_difference() -> None:
    # At equal base rates a model that is always right has a DP of 1, and so has any grouping.
    _, known = case("right at equal rates")
    assert known["dp"].value == pytest.approx(1, abs=1e-12)
    assert known["dp"].distinguishable is False
    off = replace(known["dp"], value=1 + 1e-15, null_low=1.0, null_high=1.0)
    assert off.distinguishable is False
    assert replace(off, value=1 + 1e-6).distinguishable is True


def test_without_random_groupings_nothing_is_told_from_chance() -> None:
    ev, _ = case("biased")
    known = ev.uncertainty(n_boot=60, n_perm=0)
    sentences = read(ev, known)
    holds(ev, known, sentences)
    told = {s.topic: s.text for s in sentences}
    assert "nothing tells whether chance alone does that" in told["gap"]
    assert "no random groupings to hold them against" in told["decisions"]
    assert "where" not in told


INSIDE, OUTSIDE, NONE = (0.0, 9.0), (-2.0, -1.0), (nan, nan)


@pytest.mark.parametrize("nulls", [*product((INSIDE, OUTSIDE, NONE), repeat=3)])
def test_words_follow_the_nulls(nulls: tuple[tuple[float, float], ...]) -> None:
    ev, known = case("biased")
    made = dict(known.indicators)
    for key, (low, high) in zip(("w1", "dp", "md"), nulls, strict=True):
        made[key] = replace(made[key], null_low=low, null_high=high)
    forged = replace(known, indicators=made)
    sentences = read(ev, forged)
    holds(ev, forged, sentences)
    (decisions,) = [s.text for s in sentences if s.topic == "decisions"]
    for name, null in zip(("DP", "MD"), nulls[1:], strict=True):
        if null is NONE:  # no verdict on it, whatever the other one's is
            assert f"{name} lies" not in decisions
            assert "both" not in decisions


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.60, 0.70, "better than"),
        (0.40, 0.50, "worse than"),
        (0.50, 0.60, "not told apart from"),
        (nan, nan, "beside"),
    ],
)
def test_accuracy_beside_the_majority(low: float, high: float, verdict: str) -> None:
    ev, known = case("alike")
    assert 0.5 < ev.majority_accuracy < 0.6
    accuracy = replace(known["accuracy"], low=low, high=high)
    first, *_ = read(ev, replace(known, indicators={**known.indicators, "accuracy": accuracy}))
    assert f"{verdict} always deciding" in first.text
    assert "nan" not in first.text
    assert "–" not in first.text


@pytest.mark.parametrize("low", [0.49, 0.51])
def test_most_of_a_gap_is_what_the_low_end_says(low: float) -> None:
    ev, known = case("biased")
    segments = tuple(
        replace(e, value=0.7, low=low if e.segment == "core" else 0.1, high=0.9)
        if e.name == "share"
        else e
        for e in known.segments
    )
    texts = [s.text for s in read(ev, replace(known, segments=segments)) if s.topic == "where"]
    wanted = [f"Most of this gap lies in the core: 70% of it ({low:.0%} to 90%)."]
    assert texts == (wanted if low > 0.5 else [])


# ------------------------------------------------------------------------------ comparisons

MODELS = {
    "alike": lambda **h: rows(Y, score(), GROUP, **h),
    "twin": lambda **h: rows(Y, score(0.05), GROUP, **h),
    "biased": lambda **h: rows(Y, score(2.0), GROUP, **h),
    "very biased": lambda **h: rows(Y, score(5.0), GROUP, **h),
    "useless": lambda **h: rows(Y, score(noise=8.0), GROUP, **h),
    "constant": lambda **h: rows(Y, np.full(N, 0.3), GROUP, **h),
    "flat": lambda **h: rows(Y, np.full(N, 0.4), GROUP, **h),
    "steep": lambda **h: rows(Y, score(noise=0.3), GROUP, **h),
}


@cache
def together(*names: str) -> Comparison:
    return compare({name: MODELS[name]() for name in names}, **FEW)


SETS = (
    ("alike", "twin"),
    ("biased", "alike"),
    ("alike", "twin", "biased", "very biased"),
    ("biased", "constant"),
    ("biased", "very biased", "constant"),
    ("constant", "flat"),
    ("useless", "constant"),
    ("alike",),
    tuple(MODELS)[:6],
)


def listed(text: str, after: str) -> set[str]:
    """Names that stand behind some words, up to the next statement."""
    found = re.search(rf"{after} (.*?)(?:;|\.$)", text)
    return set(re.split(r", | and ", found[1])) if found else set()


@pytest.mark.parametrize("fairness", ["w1", "f_acc", "dp", "f_mean"])
@pytest.mark.parametrize("names", SETS, ids=" ".join)
def test_a_comparison_claims_what_its_differences_show(
    names: tuple[str, ...], fairness: str
) -> None:
    found = together(*names)
    sentences = read_comparison(found, fairness)
    topics = [s.topic for s in sentences]
    assert 3 <= len(sentences) <= 6
    tables = [found.ranking("accuracy"), found.ranking(fairness)]
    best = [s for s in sentences if s.topic == "best"]
    shaky = [name for name in names if found.uncertainties[name][fairness].unstable]
    if tables[1]["model"].iloc[0] in shaky:
        tables.pop()  # no best by a ratio that may be anything
    assert len(best) == len(tables)
    for sentence, table in zip(best, tables, strict=True):
        best_holds(sentence, table, names, found)

    level = max(ev.majority_accuracy for ev in found.models.values())
    above = {name for name in names if found.uncertainties[name]["accuracy"].low > level}
    (baseline,) = [s.text for s in sentences if s.topic == "baseline"]
    assert set(NUMBER.findall(baseline)) == {format_number(level, 2)}
    if above == set(names):
        assert baseline.startswith("Every model is")
    elif above:
        assert listed(baseline, "Only") == {*above} or all(name in baseline for name in above)
        assert "shown to be" in baseline
    else:
        assert baseline.startswith("No model is shown to be")

    random = {
        name for name, u in found.uncertainties.items() if u[fairness].distinguishable is False
    }
    assert ("null" in topics) == bool(random)
    assert ("unstable" in topics) == bool(shaky)
    (front,) = [s.text for s in sentences if s.topic == "front"]
    on_front = found.pareto(fairness).query("on_front")["model"]
    assert all(name in front for name in on_front)
    assert front.startswith("By the values alone" if len(on_front) else "No model has both")
    assert "rows" not in topics


def best_holds(
    sentence: Sentence, table: pd.DataFrame, names: tuple[str, ...], found: Comparison
) -> None:
    text = sentence.text
    (key,) = sentence.rests_on
    verdicts = dict(zip(table["model"], table["from_best"], strict=True))
    by = {
        verdict: {name for name, its in verdicts.items() if its == verdict}
        for verdict in ("best", "worse", "not distinguishable")
    }
    silent = {name for name, its in verdicts.items() if its is None or its != its}
    if not by["best"]:
        assert "is undefined for every model" in text
        return
    (first,) = by["best"]
    e = found.uncertainties[first][key]
    assert text.startswith(f"{first} ")
    assert set(NUMBER.findall(text)) <= written(iter((e.value, e.low, e.high)))
    # Called the most accurate, or the fairest, only where every other one with a value is worse.
    assert (" is the " in text) == (bool(by["worse"]) and not by["not distinguishable"])
    everybody = by["worse"] == set(names) - {first} and bool(by["worse"])
    assert ("every other model" in text) == everybody
    if "every other" not in text:
        assert listed(text, "shown to be worse:") == by["worse"]
    assert listed(text, "not told apart from") == by["not distinguishable"]
    assert listed(text, "without one that can be compared:") == silent


def test_known_answers_of_comparisons() -> None:
    first, _, fairest, *_ = read_comparison(together("biased", "alike"), "w1")
    assert first.text.startswith("alike is the most accurate (Acc ")
    assert fairest.text.startswith("alike is the fairest by W1 (W1 ")
    assert fairest.text.endswith("; every other model is shown to be worse.")
    twins = read_comparison(together("alike", "twin"), "w1")
    assert not any(" is the " in s.text for s in twins)
    undefined = read_comparison(together("constant", "flat"), "f_acc")
    texts = [s.text for s in undefined]
    assert "F_acc is undefined for every model." in texts
    assert "No model has both accuracy and F_acc." in texts


def test_a_model_without_a_value_is_not_shown_to_be_worse() -> None:
    found = together("biased", "very biased", "constant")
    forged = steady(found, "f_acc")
    assert np.isnan(found.models["constant"].indicators.f_acc)
    (_, best) = [s.text for s in read_comparison(forged, "f_acc") if s.topic == "best"]
    assert "every other model" not in best
    assert best.endswith("; without one that can be compared: constant.")


def steady(found: Comparison, key: str) -> Comparison:
    """As if no denominator could be 0."""
    calm: Mapping[str, Uncertainty] = {
        name: replace(u, indicators={**u.indicators, key: replace(u[key], unstable=False)})
        for name, u in found.uncertainties.items()
    }
    return replace(found, uncertainties=calm)


def test_a_ratio_that_may_be_anything_ranks_nobody() -> None:
    found = together("alike", "twin")
    shaky = {
        name: replace(u, indicators={**u.indicators, "f_acc": replace(u["f_acc"], unstable=True)})
        for name, u in found.uncertainties.items()
    }
    sentences = read_comparison(replace(found, uncertainties=shaky), "f_acc")
    assert [s.topic for s in sentences].count("best") == 1
    (text,) = [s.text for s in sentences if s.topic == "unstable"]
    assert text == ("F_acc of alike and twin divides by a number that may be 0: do not rank by it.")


def test_models_on_other_rows_are_said_to_be() -> None:
    models = {name: MODELS[name]() for name in ("alike", "biased")}
    apart = compare(models, match_rows=False, **FEW)
    *_, last = read_comparison(apart, "w1")
    assert last.topic == "rows"
    assert "noisier" in last.text


def test_many_names_are_counted() -> None:
    models = {f"model {i}": MODELS["alike"]() for i in range(9)}
    first, *_ = read_comparison(compare(models, **FEW), "w1")
    assert first.text.endswith(
        "not told apart from model 1, model 2, model 3, model 4, model 5 and 3 more."
    )


def test_an_endless_interval_is_written_as_one() -> None:
    ev, known = case("biased")
    endless = replace(known["dp"], high=inf)
    sentences = read(ev, replace(known, indicators={**known.indicators, "dp": endless}))
    (text,) = [s.text for s in sentences if s.topic == "decisions"]
    assert "to ∞)" in text
