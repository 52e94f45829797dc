"""The eight objectives on cases small enough to know the answer.  They need torch."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed (requirements-train.txt)", allow_module_level=True)

import torch

from demo.train import algorithms as alg
from demo.train.grid import BUDGETS, GRID, Budget

Y = torch.tensor([1.0, 0.0, 1.0, 1.0])


def batch(seed: int, rows: int = 32, columns: int = 5) -> alg.Batch:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns)).astype(np.float32)
    y = (x[:, 0] + 0.3 * rng.normal(size=rows) > 0).astype(np.float32)
    return alg.Batch(torch.from_numpy(x), torch.from_numpy(y))


def loss_of(algorithm: alg.Algorithm, network: alg.Network, *batches: alg.Batch) -> float:
    return algorithm.loss(network, batches, warm=True).item()


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_irm_penalty_is_zero_where_scaling_the_logits_cannot_help() -> None:
    # R(w f) = mean BCE(w f, y). With f = log 3 on every row and three of four labels 1,
    # sigmoid(f) = 3/4 = mean(y): R'(w) at w = 1 is mean((3/4 - y) log 3) = 0.
    logits = torch.full((4,), float(np.log(3.0)))
    assert float(alg.irm_penalty(logits, Y)) == pytest.approx(0.0, abs=1e-12)
    # Twice the logits: sigmoid = 9/10, slope (9/10 - 3/4) log 9 = .329584, squared .108626.
    assert float(alg.irm_penalty(2 * logits, Y)) == pytest.approx((0.15 * np.log(9)) ** 2)


def test_irm_penalty_is_the_squared_derivative_that_autograd_finds() -> None:
    logits = torch.tensor([0.3, -1.2, 2.0, 0.1])
    w = torch.ones((), requires_grad=True)
    (slope,) = torch.autograd.grad(alg.risk(w * logits, Y), w)
    assert float(alg.irm_penalty(logits, Y)) == pytest.approx(float(slope**2))


def test_iga_penalty_is_zero_for_equal_gradients_and_their_variance_otherwise() -> None:
    g = torch.tensor([1.0, -2.0, 3.0])
    assert float(alg.iga_penalty([g, g, g])) == 0.0
    # (0,0) and (2,4): mean (1,2), each at squared distance 1 + 4 = 5.
    assert float(alg.iga_penalty([torch.zeros(2), torch.tensor([2.0, 4.0])])) == 5.0


def test_iga_loss_equals_the_mean_risk_when_all_environments_are_the_same() -> None:
    network = alg.table_network(5)
    same, other = batch(1), batch(2)
    iga = alg.Iga({"lambda": 1000.0}, [same, same], generator())
    erm = alg.Algorithm({}, [same, same], generator())
    assert loss_of(iga, network, same, same) == pytest.approx(loss_of(erm, network, same, same))
    assert loss_of(iga, network, same, other) > 1.1 * loss_of(erm, network, same, other)


def test_vrex_penalty_is_the_variance_over_environments() -> None:
    # 1, 2, 6: mean 3, squares 4 + 1 + 9 = 14, over 3.
    assert float(alg.vrex_penalty(torch.tensor([1.0, 2.0, 6.0]))) == pytest.approx(14 / 3)


def test_groupdro_weights_follow_the_worst_environment_and_sum_to_one() -> None:
    weights = torch.tensor([0.5, 0.5])
    new = alg.groupdro_weights(weights, torch.tensor([0.0, float(np.log(3.0))]), eta=1.0)
    # q ∝ .5·1, .5·3
    assert new.tolist() == pytest.approx([0.25, 0.75])
    assert alg.groupdro_weights(weights, torch.tensor([2.0, 2.0]), eta=1.0).tolist() == [0.5, 0.5]


def test_coral_distance_agrees_with_numpy() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(40, 6)), 2 + 3 * rng.normal(size=(50, 6))
    expected = np.mean((a.mean(0) - b.mean(0)) ** 2) + np.mean((np.cov(a.T) - np.cov(b.T)) ** 2)
    assert float(alg.coral_distance(torch.from_numpy(a), torch.from_numpy(b))) == pytest.approx(
        expected
    )
    assert float(alg.coral_distance(torch.from_numpy(a), torch.from_numpy(a))) == 0.0


def test_mixup_with_a_share_of_one_is_the_risk_on_the_first_rows() -> None:
    network, first, second = alg.table_network(5), batch(1), batch(2)
    alone = alg.risk(network(first.x), first.y)
    mixed = alg.mixup_risk(network, first, second, 1.0)
    assert mixed.item() == pytest.approx(alone.item())
    assert alg.mixup_risk(network, first, second, 0.5).item() != pytest.approx(alone.item())


def test_kl_of_logits_is_exact_and_survives_certainty() -> None:
    p, q = 0.8, 0.3
    expected = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    logit = [torch.tensor([float(np.log(v / (1 - v)))]) for v in (p, q)]
    assert float(alg.bernoulli_kl(logit[0], logit[1])) == pytest.approx(expected, rel=1e-5)
    assert float(alg.bernoulli_kl(logit[0], logit[0])) == 0.0
    # sigmoid(60) is 1 in float32: taken from probabilities this would be log(0).
    assert float(alg.bernoulli_kl(torch.tensor([60.0]), torch.tensor([0.0]))) == pytest.approx(
        np.log(2), rel=1e-5
    )


def test_mbdg_dual_variable_rises_when_the_constraint_is_broken_and_never_goes_below_zero() -> None:
    assert alg.mbdg_dual(1.0, regulariser=0.5, gamma=0.1, eta=0.05) == pytest.approx(1.02)
    assert alg.mbdg_dual(1.0, regulariser=0.0, gamma=0.1, eta=0.05) == pytest.approx(0.995)
    assert alg.mbdg_dual(0.0, regulariser=0.0, gamma=0.1, eta=0.05) == 0.0


def test_mbdg_raises_its_dual_variable_in_a_step_that_breaks_the_constraint() -> None:
    first = batch(1)
    second = alg.Batch(first.x + 5, first.y)
    mbdg = alg.Mbdg({"gamma": 0.0, "eta": 0.05}, [first, second], generator())
    mbdg.loss(alg.table_network(5), [first, second], warm=False)
    assert mbdg.nu > 0
    lenient = alg.Mbdg({"gamma": 1e9, "eta": 0.05}, [first, second], generator())
    lenient.loss(alg.table_network(5), [first, second], warm=False)
    assert lenient.nu == 0.0


def test_linear_transport_carries_mean_and_covariance_over() -> None:
    rng = np.random.default_rng(5)
    mix = rng.normal(size=(3, 3))
    a = rng.normal(size=(5000, 3)) @ mix
    b = rng.normal(size=(5000, 3)) * [1.0, 2.0, 0.5] + [4.0, 0.0, -1.0]
    moved = alg.fit_transport(torch.from_numpy(a), torch.from_numpy(b), ridge=0.0)(
        torch.from_numpy(a.astype(np.float32))
    ).numpy()
    assert moved.mean(0) == pytest.approx(b.mean(0), abs=1e-3)
    assert np.cov(moved.T) == pytest.approx(np.cov(b.T), abs=1e-2)


def test_colour_transfer_moves_channels_and_keeps_the_picture() -> None:
    rng = np.random.default_rng(6)
    images = rng.random((20, 3, 4, 4)).astype(np.float32)
    bluer = images.copy()
    bluer[:, 2] += 2
    moved = alg.fit_transport(torch.from_numpy(images), torch.from_numpy(bluer), ridge=0.0)(
        torch.from_numpy(images)
    )
    assert moved.numpy() == pytest.approx(bluer, abs=1e-4)


@pytest.mark.parametrize("name", list(GRID))
def test_every_algorithm_learns_and_the_same_seed_gives_the_same_network(name: str) -> None:
    environments = [batch(1, 300), batch(2, 300)]
    budget = Budget(steps=60, rows_per_environment=64, learning_rate=1e-2)
    first, again = (
        alg.scores(alg.fit(name, GRID[name][-1], environments, budget, 4), environments[0].x)
        for _ in range(2)
    )
    assert (first == again).all()
    right = ((first >= 0.5) == (environments[0].y.numpy() == 1)).mean()
    assert right > 0.8


def test_the_grid_names_every_algorithm_once_and_gives_all_the_same_budget() -> None:
    assert list(GRID) == list(alg.ALGORITHMS)
    assert set(BUDGETS) == {"image", "table"}
