"""Pieces of the global curve, cut where the mix of groups changes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from rise_core import PredictionsError, evaluate
from rise_core.mix import Method, Piece, cut_into_pieces
from rise_core.predictions import Factor

Codes = NDArray[np.intp]


def factor(codes: Codes, k: int = 2) -> Factor:
    return Factor("group", tuple("abcdef"[:k]), codes.astype(np.intp))


def planted(n: int = 3_000, seed: int = 0) -> tuple[NDArray[np.float64], Codes]:
    """Residuals in order; b is 20 % of the first 30 %, 80 % of the next 40 %, then 20 % again."""
    rng = np.random.default_rng(seed)
    place = np.arange(n) / n
    share = np.where((place > 0.3) & (place < 0.7), 0.8, 0.2)
    return np.linspace(-1, 1, n), (rng.random(n) < share).astype(np.intp)


def check_cover(pieces: tuple[Piece, ...], residuals: NDArray[np.float64], groups: Factor) -> None:
    """Pieces cover [0, 1] without gap; counts add up; no run of equal residuals is parted."""
    assert pieces[0].q0 == 0
    assert pieces[-1].q1 == pytest.approx(1)
    assert all(a.q1 == pytest.approx(b.q0) for a, b in pairwise(pieces))
    assert all(a.d1 < b.d0 for a, b in pairwise(pieces))
    assert sum(piece.n for piece in pieces) == residuals.size
    for code, label in enumerate(groups.labels):
        assert sum(p.counts[label] for p in pieces) == np.count_nonzero(groups.codes == code)
    for piece in pieces:
        inside = (residuals >= piece.d0) & (residuals <= piece.d1)
        assert piece.n == inside.sum() == sum(piece.counts.values())
        assert sum(piece.shares.values()) == pytest.approx(1)
        assert piece.excess >= 1 - 1e-12


def test_a_planted_change_is_found() -> None:
    residuals, codes = planted()
    pieces = cut_into_pieces(residuals, factor(codes))
    assert [piece.label for piece in pieces] == ["a", "b", "a"]
    assert [piece.q1 for piece in pieces] == pytest.approx([0.3, 0.7, 1], abs=0.01)
    assert all(piece.significant for piece in pieces)
    middle = pieces[1]
    overall = np.count_nonzero(codes) / codes.size
    assert middle.excess == pytest.approx(middle.counts["b"] / middle.n / overall)
    check_cover(pieces, residuals, factor(codes))


def test_a_clean_cut_is_found_exactly() -> None:
    # 40 rows of a, then 60 of b: the one cut lies at 40, with excess 1/.4 and 1/.6.
    codes = np.repeat([0, 1], [40, 60])
    first, second = cut_into_pieces(np.arange(100.0), factor(codes))
    assert (first.q1, first.n, first.d1) == (0.4, 40, 39)
    assert first.excess == pytest.approx(1 / 0.4)
    assert second.excess == pytest.approx(1 / 0.6)
    assert (first.label, second.label) == ("a", "b")


def test_a_shuffled_mix_is_one_piece() -> None:
    """By BIC a false cut is rare: 40 shuffles of 2,000 rows hardly show one."""
    residuals = np.linspace(-1, 1, 2_000)
    found = [
        len(cut_into_pieces(residuals, factor(np.random.default_rng(s).integers(0, 2, 2_000))))
        for s in range(40)
    ]
    assert sum(count > 1 for count in found) <= 3
    alone = cut_into_pieces(residuals, factor(np.arange(2_000) % 2))
    assert len(alone) == 1
    assert not alone[0].significant
    assert alone[0].excess == 1


@pytest.mark.parametrize("k", [1, 2, 3, 7, 40, 200])
@pytest.mark.parametrize("method", ["adaptive", "equal"])
def test_k_is_the_most_there_are(k: int, method: Method) -> None:
    # 25 alternating blocks: many changes to find.
    codes = np.repeat(np.arange(25) % 2, 200)
    residuals = np.arange(5_000.0)
    pieces = cut_into_pieces(residuals, factor(codes), k=k, method=method)
    assert len(pieces) == (k if method == "equal" else min(k, 25))
    check_cover(pieces, residuals, factor(codes))


def test_equal_pieces_hold_equal_counts() -> None:
    pieces = cut_into_pieces(np.arange(1_000.0), factor(np.zeros(1_000), 1), k=8, method="equal")
    assert {piece.n for piece in pieces} == {125}
    # More pieces than rows: one row each.
    few = cut_into_pieces(np.arange(3.0), factor(np.array([0, 1, 0])), k=40, method="equal")
    assert [piece.n for piece in few] == [1, 1, 1]


@pytest.mark.parametrize("method", ["adaptive", "equal"])
@pytest.mark.parametrize("distinct", [1, 2, 5, 60])
@pytest.mark.parametrize("seed", range(4))
def test_equal_residuals_are_never_parted(method: Method, distinct: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    residuals = np.sort(rng.integers(0, distinct, 3_000)) / distinct
    codes = (rng.random(3_000) < residuals).astype(np.intp)
    groups = factor(codes) if codes.any() else factor(codes, 1)
    pieces = cut_into_pieces(residuals, groups, k=30, method=method)
    assert len(pieces) <= distinct
    check_cover(pieces, residuals, groups)


def test_weights_count() -> None:
    residuals, codes = planted()
    weights = np.where(codes == 1, 3.0, 1.0)
    pieces = cut_into_pieces(residuals, factor(codes), weights)
    check_cover(pieces, residuals, factor(codes))
    middle = max(pieces, key=lambda piece: piece.shares["b"])
    inside = (residuals >= middle.d0) & (residuals <= middle.d1)
    share = weights[inside & (codes == 1)].sum() / weights[inside].sum()
    overall = weights[codes == 1].sum() / weights.sum()
    assert middle.shares["b"] == pytest.approx(share)
    assert middle.excess == pytest.approx(share / overall)
    assert middle.q0 == pytest.approx(weights[residuals < middle.d0].sum() / weights.sum())
    # Three times the weights are the same weights.
    assert cut_into_pieces(residuals, factor(codes), weights * 3) == pieces


def test_a_small_excess_is_not_significant() -> None:
    # 10 rows, 6 of them b on the right: far from enough to say anything.
    codes = np.array([0, 1, 0, 1, 0, 0, 1, 1, 1, 1])
    pieces = cut_into_pieces(np.arange(10.0), factor(codes), k=2, method="equal")
    assert [piece.label for piece in pieces] == ["a", "b"]
    assert not any(piece.significant for piece in pieces)


def test_pieces_of_an_evaluation() -> None:
    rng = np.random.default_rng(0)
    n = 2_000
    group, place = rng.choice(list("abc"), n), rng.choice(["x", "y"], n)
    y = (rng.random(n) < np.where(group == "a", 0.7, 0.3)).astype(int)
    p = np.round(np.clip(rng.normal(0.3 + 0.4 * y, 0.2), 0, 1), 2)
    for weight in (None, rng.uniform(0.5, 2, n)):
        ev = evaluate(y, p, sensitive_features=group, environment=place, sample_weight=weight)
        d = p - y
        for name, column in (
            (None, group),
            ("environment", place),
            ("correctness", np.where((p >= 0.5) == y, "correct", "wrong")),
        ):
            pieces = ev.pieces(k=20, by=name)
            assert sum(piece.n for piece in pieces) == n
            for piece in pieces:
                inside = (d >= piece.d0) & (d <= piece.d1)
                expected = {
                    label: (inside & (column == label)).sum() for label in np.unique(column)
                }
                assert dict(piece.counts) == expected


def test_fewer_than_one_piece_cannot_be_meant() -> None:
    with pytest.raises(PredictionsError, match="k must be at least 1 piece; came 0"):
        cut_into_pieces(np.arange(3.0), factor(np.array([0, 1, 0])), k=0)
