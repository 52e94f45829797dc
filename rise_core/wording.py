"""Names and meanings of what RISE measures: the one place for the words people read."""

from __future__ import annotations

from dataclasses import dataclass
from math import isinf, isnan
from typing import Literal

__all__ = ["METRICS", "SHOWN", "UNDEFINED", "Metric", "format_number", "format_short"]

Better = Literal["higher", "lower", "one"]

UNDEFINED = "–"
_ARROWS: dict[Better, str] = {"higher": "↑", "lower": "↓", "one": "→ 1"}
_BETTER: dict[Better, str] = {
    "higher": "Higher is better.",
    "lower": "Lower is fairer.",
    "one": "1 is parity.",
}


@dataclass(frozen=True)
class Metric:
    """How an indicator is called and read.

    Attributes
    ----------
    key : field of `Indicators`
    name : short name, as in the paper
    meaning : what it is, in a few words
    better : "higher", "lower", or "one" (nearest to 1)
    ideal : the value of a fair, or for accuracy perfect, model
    formula : definition as plain text
    explains : one or two sentences: what it sees and what it misses
    """

    key: str
    name: str
    meaning: str
    better: Better
    ideal: float
    formula: str
    explains: str

    @property
    def arrow(self) -> str:
        """Direction that is better: ↑, ↓ or → 1."""
        return _ARROWS[self.better]

    @property
    def direction(self) -> str:
        """Direction that is better, as a sentence."""
        return "Higher is fairer." if self.key == "f_mean" else _BETTER[self.better]


METRICS: dict[str, Metric] = {
    metric.key: metric
    for metric in (
        Metric(
            "accuracy",
            "Acc",
            "accuracy",
            "higher",
            1.0,
            "share of rows with ŷ = y",
            "How often the decision is right, over all rows. Read it beside the majority "
            "baseline; it says nothing about groups.",
        ),
        Metric(
            "dp",
            "DP",
            "positive-rate ratio",
            "one",
            1.0,
            "P(ŷ = 1 | sensitive) / P(ŷ = 1 | reference)",
            "Whether the groups get positive decisions equally often. It looks at decisions only: "
            "errors that cancel do not show.",
        ),
        Metric(
            "md",
            "MD",
            "mean score gap",
            "lower",
            0.0,
            "| mean score of one group − mean score of the other |",
            "Whether the groups get the same score on average. Gaps in opposite tails cancel.",
        ),
        Metric(
            "md_decision",
            "MD (decision)",
            "positive-rate gap",
            "lower",
            0.0,
            "| P(ŷ = 1 | one group) − P(ŷ = 1 | the other) |",
            "The gap of the positive rates: what other tools call demographic parity difference.",
        ),
        Metric(
            "f_mean",
            "F_mean",
            "median alignment",
            "higher",
            1.0,
            "1 − | median position of one group − of the other | / 2",
            "Whether the groups' middle rows sit at the same place of the sorted errors. For two "
            "groups it lies between ¾ and 1 (with many equal errors it can fall to ⅝). It sees the "
            "middle, not the tails.",
        ),
        Metric(
            "f_shift",
            "F_shift",
            "knee position",
            "lower",
            0.0,
            "½ |Δh left / h left| + ½ |Δh right / h right|, h: percentile of a knee",
            "Whether the errors of the groups begin to rise at the same place. Noisy on few rows: "
            "read it with its interval and its null.",
        ),
        Metric(
            "f_acc",
            "F_acc",
            "knee size",
            "lower",
            0.0,
            "½ |Δd left / d left| + ½ |Δd right / d right|, d: residual of a knee",
            "Whether the groups' errors are equally large at their knees. Its denominators are "
            "tiny for an over-confident model, which makes it explode.",
        ),
        Metric(
            "w1",
            "W1",
            "area between curves",
            "lower",
            0.0,
            "∫ |Q₁(q) − Q₀(q)| dq over all ranks",
            "How far apart the groups' errors are over the whole curve, in units of the score. "
            "It is 0 when, and only when, the groups' errors are distributed alike.",
        ),
    )
}


SHOWN = tuple(key for key in METRICS if key != "md_decision")
"""What tables of indicators have as columns, in this order: DP and MD say it of decisions."""


def format_number(value: float, digits: int = 3) -> str:
    """Write an indicator for people: "–" where it is undefined, "∞" where it is infinite."""
    if isnan(value):
        return UNDEFINED
    if isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:,.{digits}f}".replace("-", "−")


def format_short(value: float) -> str:
    """Write an indicator where there is little room: three digits that say something."""
    size = abs(value)
    if isnan(value) or isinf(value):
        return format_number(value)
    if size >= 1e4:
        return f"{value:.0e}".replace("e+0", "e")
    return format_number(value, 3 if size < 10 else 1 if size < 100 else 0)
