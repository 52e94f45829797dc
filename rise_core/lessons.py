"""Lessons on synthetic models: a question, a picture, an answer whose numbers are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rise_core.evaluation import Evaluation, Settings, evaluate_predictions
from rise_core.synthetic import GROUPS, SyntheticModel
from rise_core.wording import format_number

if TYPE_CHECKING:
    from rise_core.uncertainty import Uncertainty

__all__ = ["LESSONS", "Lesson"]


@dataclass(frozen=True)
class Lesson:
    """A model, what to ask of it, and what its numbers must show.

    Attributes
    ----------
    key : name in an address
    title : name on a button
    question : what to look for in the picture
    answer : what it shows; ``{w1}``, ``{right_a}``, … stand for numbers of the model
    model : the synthetic model
    told : indicators that lie outside of what random groupings give
    quiet : indicators that do not, or that are undefined; a test holds both lists
    """

    key: str
    title: str
    question: str
    answer: str
    model: SyntheticModel
    told: tuple[str, ...] = ()
    quiet: tuple[str, ...] = ()

    def evaluation(self, settings: Settings | None = None) -> Evaluation:
        """Evaluate the lesson's model."""
        return evaluate_predictions(self.model.predictions(), settings=settings)

    def answered(self) -> str:
        """Return the answer with its numbers in it; they are those of the default settings."""
        ev = self.evaluation()
        equal = self.evaluation(Settings(base_rates="equal"))
        numbers = dict(ev.indicators)
        numbers |= {f"{key}_equal": value for key, value in equal.indicators}
        numbers["majority"] = ev.majority_accuracy
        for letter, label in zip("ab", GROUPS, strict=True):
            numbers[f"right_{letter}"] = ev.groups[label].accuracy
        return self.answer.format(**{key: format_number(v) for key, v in numbers.items()})

    def faults(self, known: Uncertainty) -> list[str]:
        """Say which of its claims the numbers do not bear out; empty when all hold."""
        return [
            f"{self.key}: {key} is {known[key].distinguishable}, not {wanted}"
            for wanted, keys in ((True, self.told), (False, self.quiet))
            for key in keys
            if bool(known[key].distinguishable) is not wanted
        ]


_BETWEEN = ("dp", "md", "f_mean", "f_shift", "f_acc", "w1")

LESSONS: dict[str, Lesson] = {
    lesson.key: lesson
    for lesson in (
        Lesson(
            "fair-accurate",
            "Fair, accurate",
            "What does a good model look like?",
            "Both curves lie flat on 0 and bend at the very ends, one on top of the other: few "
            "rows err, and no group errs more. The decision is right for {accuracy} of the rows, "
            "and W1 is {w1}. F_shift is {f_shift} and F_acc {f_acc}, not 0: random groupings give "
            "as much. Read them with their grey band.",
            SyntheticModel(separation=3.6),
            quiet=_BETWEEN,
        ),
        Lesson(
            "fair-useless",
            "Fair, useless",
            "Every fairness number is perfect. Do we take this model?",
            "No. It hardly looks at the row: both curves are the same two steps, W1 is {w1} and "
            "F_mean {f_mean}. But it is right for {accuracy} of the rows, and always saying no "
            "would be right for {majority}. Fairness numbers alone reward a model that knows "
            "nothing; read accuracy beside its baseline first.",
            SyntheticModel(separation=0.3),
            quiet=_BETWEEN,
        ),
        Lesson(
            "accurate-unfair",
            "Accurate, unfair",
            "It is right for 19 of 20 rows. Right for whom?",
            "For A, {right_a} of the decisions are right, for B {right_b}. B's curve drops away "
            "on the left: where B deserves a yes, its score is too low. One average of {accuracy} "
            "hides it; the curves show where it happens, and W1 ({w1}), DP ({dp}) and F_mean "
            "({f_mean}) all lie outside what random groupings give.",
            SyntheticModel(separation=4.0, bias=-4.0),
            told=("dp", "md", "f_mean", "f_acc", "w1"),
        ),
        Lesson(
            "disagree",
            "Metrics disagree",
            "DP, MD and F_mean call it fair. Is it?",
            "Not for B. Its scores are noisier: too high as often as too low. So the rates (DP "
            "{dp}), the mean scores (MD {md}) and the middles (F_mean {f_mean}) agree, while both "
            "tails of B are longer and its decisions are right for {right_b} instead of {right_a}. "
            "Errors that cancel are invisible to averages; the area between the curves (W1 {w1}) "
            "sees them.",
            SyntheticModel(separation=3.0, extra_noise=3.5, rate_a=0.5, rate_b=0.5),
            told=("w1",),
            quiet=("dp", "md", "f_mean"),
        ),
        Lesson(
            "base-rates",
            "Base rates",
            "Every number calls it unfair. What did the model do?",
            "Nothing to the groups: it treats equal rows equally. But A has yes for 60 % of its "
            "rows and B for 20 %, and a curve crosses 0 at its own base rate. That alone gives DP "
            "{dp} and W1 {w1}. Switch the base rates to equal, in the sidebar: DP becomes "
            "{dp_equal}, W1 {w1_equal}, and the curves lie together.",
            SyntheticModel(separation=3.0, rate_a=0.6, rate_b=0.2),
            told=("dp", "md", "f_mean", "w1"),
        ),
        Lesson(
            "over-confident",
            "Over-confident",
            "F_acc is far from 0. Is a group treated worse?",
            "No: the groups are alike, and W1 is {w1}. Nearly all scores are 0 or 1, so the knee "
            "that F_acc divides by lies almost at 0, and chance alone is blown up to {f_acc}. Its "
            "interval and its grey band are as wide. Read how far the knees lie apart, not the "
            "ratio.",
            SyntheticModel(separation=4.0, confidence=8.0),
            quiet=_BETWEEN,
        ),
    )
}
"""The lessons by key, in the order of reading."""
