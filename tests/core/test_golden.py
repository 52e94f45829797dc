"""Golden values: 18 rows that fit on a sheet of paper, and the paper's own predictions."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from rise_core import Evaluation, evaluate
from rise_core.curve import Curve

# Groups n × 10, then s × 8.
Y = [1, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0]
P_N = [0.95, 0.05, 0.80, 0.10, 0.35, 0.60, 0.02, 0.30, 0.70, 0.15]
P_S = [0.90, 0.40, 0.45, 0.30, 0.85, 0.10, 0.25, 0.55]
P = P_N + P_S
GROUP = ["n"] * 10 + ["s"] * 8


def paper_case(residual: str) -> Evaluation:
    return evaluate(Y, P, sensitive_features=GROUP, residual=residual)


def knees(curve: Curve) -> list[tuple[int, float]]:
    assert curve.left_knee is not None
    assert curve.right_knee is not None
    return [(k.index, round(k.residual, 12)) for k in (curve.left_knee, curve.right_knee)]


def shapes(curve: Curve) -> list[str]:
    return [knee.shape for knee in (curve.left_knee, curve.right_knee) if knee is not None]


# Signed errors d = p − y, sorted, with their 0-based index in all 18 rows:
#   all  −.90 −.70 −.55 −.40 −.20 −.10 −.05 .02 .05 .10 .15 .25 .30 .35 .40 .55 .70 .85
#          0    1    2    3    4    5    6    7   8   9  10  11  12  13  14  15  16  17
#   n    −.70 −.40 −.20 −.05 .02 .05 .10 .15 .35 .70    (1 3 4 6 7 8 9 10 13 16)
#   s    −.90 −.55 −.10 .25 .30 .40 .55 .85             (0 2 5 11 12 14 15 17)


def test_signed_errors_medians() -> None:
    ev = paper_case("signed_error")
    # n: middle rows .02 and .05 at 7/18 and 8/18; s: .25 and .30 at 11/18 and 12/18.
    assert ev.groups["n"].median_position == pytest.approx(7.5 / 18, abs=1e-12)
    assert ev.groups["s"].median_position == pytest.approx(11.5 / 18, abs=1e-12)
    assert ev.overall.median_position == pytest.approx(8.5 / 18, abs=1e-12)
    assert ev.groups["n"].median_residual == pytest.approx(0.035)
    assert ev.groups["s"].median_residual == pytest.approx(0.275)
    assert ev.overall.median_residual == pytest.approx(0.075)
    # 1 − (11.5 − 7.5)/18 / 2
    assert ev.indicators.f_mean == pytest.approx(1 - 4 / 36, abs=1e-12)


def test_signed_errors_knees() -> None:
    ev = paper_case("signed_error")
    # All, left half 0..9: span −.9 to .1. At index 4: (−.2 + .9)/1.0 − 4/9 = .7 − .444 = .256.
    assert knees(ev.overall) == [(4, -0.2), (14, 0.4)]
    assert ev.overall.left_knee is not None
    assert ev.overall.left_knee.strength == pytest.approx(0.7 - 4 / 9)
    # Right half 9..17: span .1 to .85. At index 14: (.4 − .1)/.75 − 5/8 = −.225, convex.
    assert ev.overall.right_knee is not None
    assert ev.overall.right_knee.strength == pytest.approx(5 / 8 - 0.3 / 0.75)
    assert shapes(ev.overall) == ["concave", "convex"]
    # n, halves 0..5 and 5..9. Index 2: (.5/.75) − 2/5 = .267. Index 7: (.1/.65) − 2/4 = −.346.
    assert knees(ev.groups["n"]) == [(2, -0.2), (7, 0.15)]
    # s, halves 0..4 and 4..7. Index 3: 1.15/1.2 − 3/4 = .208. Index 6: .25/.55 − 2/3 = −.212.
    assert knees(ev.groups["s"]) == [(3, 0.25), (6, 0.55)]
    assert shapes(ev.groups["n"]) == shapes(ev.groups["s"]) == ["concave", "convex"]

    left, right = ev.groups["s"].left_knee, ev.groups["s"].right_knee
    assert left is not None
    assert right is not None
    assert (left.percentile, right.percentile) == pytest.approx((11 / 18, 15 / 18))
    assert (left.own_percentile, right.own_percentile) == pytest.approx((3 / 8, 6 / 8))


def test_signed_errors_indicators() -> None:
    values = paper_case("signed_error").indicators
    # H left (11 − 4)/4, right (15 − 10)/14; their mean.
    assert values.f_shift == pytest.approx((7 / 4 + 5 / 14) / 2, abs=1e-12)
    assert values.f_shift == pytest.approx(1.053571, abs=1e-6)
    # V left (.25 + .2)/−.2 → 2.25, right (.55 − .15)/.4 = 1.
    assert values.f_acc == pytest.approx((2.25 + 1) / 2, abs=1e-12)
    # Ranks in fortieths: a step of n is 4 wide, one of s 5. Widths times differences:
    # 4×.20 + 1×.50 + 3×.15 + 2×.35 + 2×.10 + 3×.05 + 1×.30 + 4×.23 + 4×.25 + 1×.20 + 3×.30
    # + 2×.25 + 2×.40 + 3×.20 + 1×.50 + 4×.15 = 9.12 fortieths.
    assert values.w1 == pytest.approx(0.228, abs=1e-12)
    # Wrong decisions: n .30 (y 1) and .70 (y 0); s .45, .10 (y 1) and .85, .55 (y 0).
    assert values.accuracy == pytest.approx(12 / 18, abs=1e-12)
    # Positive decisions: n .95 .80 .60 .70 of 10; s .90 .85 .55 of 8.
    assert values.dp == pytest.approx(0.375 / 0.4, abs=1e-12)
    assert values.md_decision == pytest.approx(0.025, abs=1e-12)
    # Mean scores: n 4.02/10, s 3.80/8.
    assert values.md == pytest.approx(0.475 - 0.402, abs=1e-12)


def test_signed_errors_displacements_and_segments() -> None:
    ev = paper_case("signed_error")
    table = ev.displacements.set_index("side")
    assert (ev.sensitive, ev.reference, ev.sensitive_chosen) == ("s", "n", "the smaller group")
    assert table.loc["left", ["delta_h", "delta_d", "h", "v"]].tolist() == pytest.approx(
        [7 / 18, 0.45, 7 / 4, -2.25]
    )
    assert table.loc["right", ["delta_h", "delta_d", "h", "v"]].tolist() == pytest.approx(
        [5 / 18, 0.4, 5 / 14, 1.0]
    )
    cuts = [(s.name, round(s.q0 * 18, 9), round(s.q1 * 18, 9)) for s in ev.segments]
    assert cuts == [("left tail", 0, 4), ("core", 4, 14), ("right tail", 14, 18)]
    assert sum(s.area for s in ev.segments) == pytest.approx(0.228, abs=1e-12)
    # Left tail, ranks 0 to 4/18 (s minus n): [0, .1] −.2, [.1, .125] −.5, [.125, .2] −.15,
    # [.2, 4/18] −.35; together −.0200 − .0125 − .01125 − .007778 = −.051528.
    left = ev.segments[0]
    assert left.mean_gap == pytest.approx(-0.0515277778 / (4 / 18))
    assert left.area == pytest.approx(0.0515277778)
    # Chords: s from −.9 to −.55, n from −.7 to −.2; (.35 − .5) / (4/18).
    assert left.slope_gap == pytest.approx(-0.15 / (4 / 18))


# Decision gaps d = ŷ − p at ½, sorted:
#   all  −.45 −.40 −.35 −.30 −.30 −.25 −.15 −.10 −.10 −.05 −.02 .05 .10 .15 .20 .30 .40 .45
#   n    −.35 −.30 −.15 −.10 −.05 −.02 .05 .20 .30 .40
#   s    −.45 −.40 −.30 −.25 −.10 .10 .15 .45


def test_decision_gaps() -> None:
    ev = paper_case("decision_gap")
    # Ties share a rank: −.30 stands at 3 and 4, so at 3.5/18, and −.10 at 7.5/18.
    # n: (−.05 at 9 and −.02 at 10)/2 = 9.5; s: (−.25 at 5 and −.10 at 7.5)/2 = 6.25.
    assert ev.groups["n"].median_position == pytest.approx(9.5 / 18, abs=1e-12)
    assert ev.groups["s"].median_position == pytest.approx(6.25 / 18, abs=1e-12)
    assert ev.indicators.f_mean == pytest.approx(1 - 3.25 / 36, abs=1e-12)
    assert ev.indicators.f_mean == pytest.approx(0.909722, abs=1e-6)
    # All: left half 0..9, index 7: .35/.4 − 7/9 = .097; right half 9..17, index 14: .25/.5 − 5/8.
    assert knees(ev.overall) == [(7, -0.1), (14, 0.2)]
    # n: index 2: .2/.33 − 2/5 = .206; index 6: .07/.42 − 1/4 = −.083.
    assert knees(ev.groups["n"]) == [(2, -0.15), (6, 0.05)]
    assert shapes(ev.groups["n"]) == ["concave", "convex"]
    # s: index 3: .2/.35 − 3/4 = −.179; index 6: .25/.55 − 2/3 = −.212. Both bend the same way.
    assert knees(ev.groups["s"]) == [(3, -0.25), (6, 0.15)]
    assert shapes(ev.groups["s"]) == ["convex", "convex"]
    # H left (5 − 6)/7.5, right (13 − 11)/14; V left −.1/−.1, right .1/.2.
    assert ev.indicators.f_shift == pytest.approx((1 / 7.5 + 2 / 14) / 2, abs=1e-12)
    assert ev.indicators.f_shift == pytest.approx(0.138095, abs=1e-6)
    assert ev.indicators.f_acc == pytest.approx((1 + 0.5) / 2, abs=1e-12)
    assert ev.indicators.w1 == pytest.approx(0.123, abs=1e-12)
    # The residual changes nothing that is about decisions and scores alone.
    other = paper_case("signed_error").indicators
    for name in ("accuracy", "dp", "md", "md_decision"):
        assert getattr(ev.indicators, name) == getattr(other, name)


def test_percentiles_of_ties_are_mid_ranks() -> None:
    overall = paper_case("decision_gap").overall
    assert overall.percentile(-0.30) == pytest.approx(3.5 / 18)
    assert overall.percentile(-0.45) == 0
    assert overall.percentile(overall.residuals[-1]) == pytest.approx(17 / 18)
    # Between two residuals, half a rank after the one below.
    assert overall.percentile(0.0) == pytest.approx((11 + 11 - 1) / 36)


PUBLISHED = [
    ("bdd_iga", "decision_gap", 0.942324, 0.395214, 1.449135),
    ("bdd_mbdg", "decision_gap", 0.933162, 0.042115, 0.039958),
    ("bdd_iga", "signed_error", 0.937891, 0.962565, 2.491558),
    ("bdd_mbdg", "signed_error", 0.941775, 0.018111, 0.027314),
]


@pytest.mark.parametrize(("file", "residual", "f_mean", "f_shift", "f_acc"), PUBLISHED)
def test_the_papers_own_predictions(
    method_data: Path, file: str, residual: str, f_mean: float, f_shift: float, f_acc: float
) -> None:
    frame = pd.read_parquet(method_data / f"{file}.parquet")
    assert len(frame) == 5921
    ev = evaluate(
        frame["y_true"], frame["y_prob"], sensitive_features=frame["weather"], residual=residual
    )
    found = (ev.indicators.f_mean, ev.indicators.f_shift, ev.indicators.f_acc)
    assert found == pytest.approx((f_mean, f_shift, f_acc), abs=1e-6)
    # No row's place in the file matters.
    mixed = frame.sample(frac=1, random_state=0)
    again = evaluate(
        mixed["y_true"], mixed["y_prob"], sensitive_features=mixed["weather"], residual=residual
    )
    assert (again.indicators.f_mean, again.indicators.f_shift, again.indicators.f_acc) == found
