"""An evaluation in plain words: a few sentences, each with the number that supports it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING

from rise_core.wording import METRICS, format_number

if TYPE_CHECKING:
    from rise_core.comparison import Comparison
    from rise_core.evaluation import Evaluation
    from rise_core.uncertainty import Uncertainty

__all__ = ["Sentence", "read", "read_comparison"]

# A segment is said to carry "most" of a gap only where even the low end of its share does.
_MOST = 0.5
# Base rates nearer than this explain no gap worth a sentence.
_SAME_RATE = 0.02
_NAMED = 6


@dataclass(frozen=True)
class Sentence:
    """One statement and what it rests on.

    Attributes
    ----------
    topic : "accuracy", "gap", "where", "base rates", "decisions", "knees"
    text : the sentence, its numbers in it
    rests_on : names of the indicators behind it
    """

    topic: str
    text: str
    rests_on: tuple[str, ...]


def read(
    ev: Evaluation,
    known: Uncertainty,
    equal: Evaluation | None = None,
    known_equal: Uncertainty | None = None,
) -> tuple[Sentence, ...]:
    """Say in a few sentences what the numbers support.

    Parameters
    ----------
    ev, known : an evaluation and its uncertainty
    equal, known_equal : the same rows at equal base rates, where that is defined

    Returns
    -------
    Sentences in reading order. A difference is claimed only where its interval leaves out "no
    difference" and random groupings do not reach it; otherwise the sentence says that.

    Notes
    -----
    What is undefined is left out here; the indicators' list has the reasons.
    """
    if isnan(ev.indicators.accuracy):
        return (Sentence("accuracy", f"There are no numbers: {known['accuracy'].reason}.", ()),)
    sentences = [_accuracy(ev, known)]
    if len(ev.groups) < 2:
        only = next(iter(ev.groups))
        text = f"All rows belong to one group ({only}), so there is nothing to compare."
        return (*sentences, Sentence("gap", text, ()))
    gap = known["w1"]
    sentences.append(_gap(ev, known))
    if gap.distinguishable:
        sentences += _where(known)
    sentences += _base_rates(ev, equal, known_equal)
    sentences += _decisions(known)
    sentences += _knees(ev, known)
    return tuple(sentences)


def _n(value: float) -> str:
    return format_number(value, 2 if abs(value) >= 0.1 else 3)


def _range(low: float, high: float) -> str:
    return f"{_n(low)} to {_n(high)}"


def _accuracy(ev: Evaluation, known: Uncertainty) -> Sentence:
    estimate = known["accuracy"]
    baseline = ev.majority_accuracy
    if isnan(estimate.low):
        verdict = "beside"
    elif estimate.low > baseline:
        verdict = "better than"
    elif estimate.high < baseline:
        verdict = "worse than"
    else:
        verdict = "not told apart from"
    interval = "" if isnan(estimate.low) else f" ({_range(estimate.low, estimate.high)})"
    text = (
        f"Accuracy is {_n(estimate.value)}{interval}, {verdict} always deciding for the more "
        f"frequent label ({_n(baseline)})."
    )
    return Sentence("accuracy", text, ("accuracy",))


def _gap(ev: Evaluation, known: Uncertainty) -> Sentence:
    gap = known["w1"]
    if gap.distinguishable is None:
        text = (
            f"The groups' error curves lie {_n(gap.value)} apart (W1); without random groupings "
            "nothing tells whether chance alone does that."
        )
        return Sentence("gap", text, ("w1",))
    share = f"{100 * known.confidence:g} % of random groupings"
    null = f"{share} give {_range(gap.null_low, gap.null_high)}"
    if not gap.distinguishable:
        text = (
            f"The groups' error curves lie {_n(gap.value)} apart (W1); {null}, so this is not "
            "told from no group effect."
        )
        return Sentence("gap", text, ("w1",))
    group, reference = ev.widest_pair or ("", "")
    a, b = ev.groups[group].median_residual, ev.groups[reference].median_residual
    higher, lower = (group, reference) if a >= b else (reference, group)
    medians = f"median error {_signed(max(a, b))} for {higher} and {_signed(min(a, b))} for {lower}"
    text = (
        f"The error curves of {group} and {reference} lie {_n(gap.value)} apart "
        f"(W1, {_range(gap.low, gap.high)}; {null}): {medians}."
    )
    return Sentence("gap", text, ("w1",))


def _signed(value: float) -> str:
    if abs(value) < 5e-4:
        return "0"
    return ("+" if value > 0 else "−") + _n(abs(value))


def _where(known: Uncertainty) -> list[Sentence]:
    shares = [e for e in known.segments if e.name == "share" and e.low > _MOST]
    return [
        Sentence(
            "where",
            f"Most of this gap lies in the {e.segment}: {e.value:.0%} of it "
            f"({e.low:.0%} to {e.high:.0%}).",
            ("w1",),
        )
        for e in shares
    ]


def _base_rates(
    ev: Evaluation, equal: Evaluation | None, known_equal: Uncertainty | None
) -> list[Sentence]:
    if ev.base_rates == "equal":
        text = (
            "Every group is weighted to the same base rate: what is left is error given the label."
        )
        return [Sentence("base rates", text, ())]
    rates = {label: curve.base_rate for label, curve in ev.groups.items()}
    if max(rates.values()) - min(rates.values()) < _SAME_RATE:
        return []
    told = ", ".join(f"{rate:.2f} for {label}" for label, rate in rates.items())
    text = f"Positive labels are not equally frequent ({told}), which alone parts the curves"
    if equal is not None and known_equal is not None and not isnan(equal.indicators.w1):
        before, after = ev.indicators.w1, known_equal["w1"]
        text += f"; at equal base rates W1 is {_n(after.value)} instead of {_n(before)}"
        if after.distinguishable is False:
            text += ", not told from no group effect"
    return [Sentence("base rates", text + ".", ("w1",))]


def _decisions(known: Uncertainty) -> list[Sentence]:
    dp, md = known["dp"], known["md"]
    if isnan(dp.value):
        return []
    one = {True: "lies outside what random groupings give", False: "is not told from chance"}
    verdicts = (dp.distinguishable, md.distinguishable)
    if verdicts == (True, True):
        verdict = "both lie outside what random groupings give"
    elif verdicts == (False, False):
        verdict = "neither is told from a random grouping"
    elif None not in verdicts:
        verdict = f"only {'DP' if dp.distinguishable else 'MD'} {one[True]}"
    else:
        named = {"DP": dp.distinguishable, "MD": md.distinguishable}
        known_ones = [f"{name} {one[told]}" for name, told in named.items() if told is not None]
        verdict = ", ".join(known_ones) or "there are no random groupings to hold them against"
    text = (
        f"The ratio of positive rates (DP) is {_n(dp.value)} ({_range(dp.low, dp.high)}), the gap "
        f"of mean scores (MD) {_n(md.value)} ({_range(md.low, md.high)}); {verdict}."
    )
    return [Sentence("decisions", text, ("dp", "md"))]


def _knees(ev: Evaluation, known: Uncertainty) -> list[Sentence]:
    names = {"f_shift": "F_shift", "f_acc": "F_acc"}
    shaky = [name for key, name in names.items() if known[key].unstable]
    absent = [name for key, name in names.items() if isnan(known[key].value)]
    if absent:
        reason = ev.undefined.get("f_acc" if "F_acc" in absent else "f_shift", "")
        text = f"{' and '.join(absent)} cannot be computed: {reason}."
        return [Sentence("knees", text, ("f_shift", "f_acc"))]
    if shaky:
        verb = "divides" if len(shaky) == 1 else "divide"
        text = (
            f"{' and '.join(shaky)} {verb} by a number that may be 0: read the displacements, "
            "not the ratio."
        )
        return [Sentence("knees", text, ("f_shift", "f_acc"))]
    return []


def read_comparison(found: Comparison, fairness: str) -> tuple[Sentence, ...]:
    """Say what a comparison supports, on accuracy and on one fairness indicator.

    Parameters
    ----------
    found : models side by side
    fairness : key of the fairness indicator

    Returns
    -------
    Sentences in reading order; a model is called better only where the interval of the difference
    leaves out 0.
    """
    metric = METRICS[fairness]
    sentences = [
        _best(found, "accuracy", "the most accurate"),
        _baseline_of(found),
        _best(found, fairness, f"the fairest by {metric.name}"),
    ]
    first = found.ranking(fairness)["model"].iloc[0]
    if found.uncertainties[first][fairness].unstable:
        del sentences[-1]  # what is said of its denominator, below, takes the place
    like_random = [
        name for name, u in found.uncertainties.items() if u[fairness].distinguishable is False
    ]
    if like_random:
        text = f"{metric.name} of {_list(like_random)} is not told from that of a random grouping."
        sentences.append(Sentence("null", text, (fairness,)))
    sentences.append(_front(found, fairness))
    shaky = [name for name, u in found.uncertainties.items() if u[fairness].unstable]
    if shaky:
        text = (
            f"{metric.name} of {_list(shaky)} divides by a number that may be 0: do not rank by it."
        )
        sentences.append(Sentence("unstable", text, (fairness,)))
    if not found.paired:
        text = "The models stand on different rows: differences are noisier than on shared ones."
        sentences.append(Sentence("rows", text, ()))
    return tuple(sentences)


def _best(found: Comparison, key: str, title: str) -> Sentence:
    ranking = found.ranking(key).to_dict("records")
    # A table gives a missing verdict as nan.
    named = [row for row in ranking if isinstance(row["from_best"], str)]
    if not named:
        text = f"{METRICS[key].name} is undefined for every model."
        return Sentence("best", text, (key,))
    first, *others = named
    even, worse = (
        [str(row["model"]) for row in others if row["from_best"] == verdict]
        for verdict in ("not distinguishable", "worse")
    )
    silent = [str(row["model"]) for row in ranking if not isinstance(row["from_best"], str)]
    name = METRICS[key].name
    value = f"{name} {_n(first['value'])}"
    if not isnan(first["low"]):
        value += f", {_range(first['low'], first['high'])}"
    if even:
        text = f"{first['model']} has the best {name} ({value}), not told apart from {_list(even)}"
        text += f"; shown to be worse: {_list(worse)}" if worse else ""
    elif worse:
        text = f"{first['model']} is {title} ({value}), shown to be worse: {_list(worse)}"
        if not silent:
            text = f"{first['model']} is {title} ({value}); every other model is shown to be worse"
    else:
        text = f"{first['model']} alone has a {name} that can be judged ({value})"
    if silent:
        text += f"; without one that can be compared: {_list(silent)}"
    return Sentence("best", text + ".", (key,))


def _baseline_of(found: Comparison) -> Sentence:
    baseline = found.majority_accuracy
    better = [n for n, u in found.uncertainties.items() if u["accuracy"].low > baseline]
    if len(better) == len(found.models):
        who = "Every model is"
    elif better:
        who = f"Only {_list(better)} {'is' if len(better) == 1 else 'are'} shown to be"
    else:
        who = "No model is shown to be"
    text = f"{who} more accurate than always deciding for the more frequent label ({_n(baseline)})."
    return Sentence("baseline", text, ("accuracy",))


def _front(found: Comparison, fairness: str) -> Sentence:
    front = found.pareto(fairness)
    names = [str(row["model"]) for row in front.to_dict("records") if row["on_front"]]
    if not names:
        return Sentence("front", f"No model has both accuracy and {METRICS[fairness].name}.", ())
    one = len(names) == 1
    text = (
        f"By the values alone, {_list(names)} {'is' if one else 'are'} beaten by no model on both "
        f"accuracy and {METRICS[fairness].name}."
    )
    return Sentence("front", text, ("accuracy", fairness))


def _list(names: Sequence[str]) -> str:
    """Names as a person lists them; more than six are counted."""
    if len(names) > _NAMED:
        names = [*names[: _NAMED - 1], f"{len(names) - _NAMED + 1} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
