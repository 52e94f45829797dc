"""The words of the method, each with its formula, and the numbers its paper has published."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PAPER", "PUBLISHED", "TERMS", "Published", "Term"]

PAPER = "arXiv:2602.04339"


@dataclass(frozen=True)
class Term:
    """A word, what it means, and its formula ("" where there is none)."""

    name: str
    meaning: str
    formula: str = ""


TERMS: tuple[Term, ...] = (
    Term("Score", "what the model says: how likely the row is positive", "p, between 0 and 1"),
    Term(
        "Decision",
        "the score held against a threshold",
        "ŷ = 1 where p ≥ threshold, else 0",
    ),
    Term(
        "Residual",
        "the error of a row, with its sign: above 0 over-estimated, below 0 under-estimated",
        "d = p − y",
    ),
    Term(
        "Decision gap",
        "how far a decision lies from its own score; needs no label",
        "d = ŷ − p",
    ),
    Term(
        "Curve",
        "all residuals, sorted from the lowest to the highest",
        "d₍₁₎ ≤ d₍₂₎ ≤ … ≤ d₍ₙ₎ against rank / n",
    ),
    Term(
        "Percentile",
        "where a residual stands among all rows; equal residuals share one place",
        "h(v) = (rows below v + rows at or below v − 1) / 2n",
    ),
    Term(
        "Median ruler",
        "the middle row of a group: its residual, and its percentile among all rows",
        "m = median of h(d) over the group",
    ),
    Term(
        "Knee ◆ ★",
        "where a half of the curve bends most: ◆ on the left, ★ on the right",
        "largest |scaled residual − scaled rank|, each half scaled to the unit square",
    ),
    Term(
        "Displacement",
        "how far the knees of two groups lie apart, across and up",
        "Δh = h¹ − h⁰, Δd = d¹ − d⁰",
    ),
    Term(
        "Segment",
        "left tail, core and right tail: the ranks between the knees of all rows",
        "shares of W1 over the three add up to 1",
    ),
    Term("Base rate", "how often the label is positive in a group", "P(y = 1 | group)"),
    Term(
        "Equal base rates",
        "rows weighted so that every group has the base rate of all; what remains is error "
        "given the label",
        "weight = P(y) / P(y | group)",
    ),
    Term(
        "Interval",
        "where the number would lie if other rows of the same kind had been drawn, in 95 of 100 "
        "cases",
        "bootstrap within groups",
    ),
    Term(
        "Random groupings (grey)",
        "what the number is when the group labels are dealt out by chance; a value among them "
        "says nothing of the groups",
        "middle 95 % of permutations",
    ),
    Term(
        "Unstable",
        "a ratio whose denominator may be 0: it can be any size, so do not rank by it",
        "95 % interval of the denominator holds 0",
    ),
    Term(
        "Majority baseline",
        "the accuracy of always deciding for the more frequent label",
        "max(P(y = 1), P(y = 0))",
    ),
)


@dataclass(frozen=True)
class Published:
    """One row of the paper's Table 2, and the same computed from the authors' predictions.

    Attributes
    ----------
    model : as the paper calls it
    f_mean, f_shift, f_acc : as printed
    again : the three, recomputed here from the authors' files with the residual ŷ − p
    note : what a reader must know, or ""
    """

    model: str
    f_mean: float
    f_shift: float
    f_acc: float
    again: tuple[float, float, float]
    note: str = ""


PUBLISHED: tuple[Published, ...] = (
    Published("IGA", 0.942, 0.395, 1.449, (0.942324, 0.395214, 1.449135)),
    Published(
        "MBDG",
        0.933,
        0.042,
        0.040,
        (0.933162, 0.042115, 0.039958),
        "The row mixes two runs: its accuracy is .960, that of the predictions .773.",
    ),
)
"""BDD100K, 5,921 rows: label person, groups by weather, environments by time of day."""
