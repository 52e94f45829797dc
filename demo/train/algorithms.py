"""The eight objectives, each a function that can be tested alone, and the loop that trains them.

Notation: ``R_e`` is the mean logistic loss in environment e, the network is ``head(phi(x))``.
Written from the papers; every batch holds the same number of rows of each training environment.
"""

# ruff: noqa: D102  (what a loss is made of is said once, in the docstring of its class)

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from demo.train.grid import Budget


class Network(nn.Module):
    """A feature map and a linear head; one logit a row."""

    def __init__(self, phi: nn.Module, width: int) -> None:
        super().__init__()
        self.phi = phi
        self.head = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.phi(x)).squeeze(-1)


def table_network(columns: int) -> Network:
    """Two hidden layers of 64."""
    phi = nn.Sequential(nn.Linear(columns, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
    return Network(phi, 64)


def image_network() -> Network:
    """Two small convolutions and a hidden layer of 64, for 3 × 14 × 14 images."""
    phi = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 49, 64),
        nn.ReLU(),
    )
    return Network(phi, 64)


# --- objectives -----------------------------------------------------------------------------


def risk(logits: Tensor, y: Tensor) -> Tensor:
    """Mean logistic loss of one environment."""
    return functional.binary_cross_entropy_with_logits(logits, y)


def irm_penalty(logits: Tensor, y: Tensor) -> Tensor:
    """Squared derivative of R(w·f) by the scalar w at w = 1 (arXiv 1907.02893).

    For the logistic loss that derivative is mean((sigmoid(f) − y)·f); written out, it needs no
    second pass through the network.
    """
    return ((torch.sigmoid(logits) - y) * logits).mean().square()


def iga_penalty(gradients: Sequence[Tensor]) -> Tensor:
    """Mean squared distance of the environments' gradients from their mean (arXiv 2008.01883).

    ``gradients``: one flat vector an environment.
    """
    stacked = torch.stack(list(gradients))
    return (stacked - stacked.mean(0)).square().sum(1).mean()


def vrex_penalty(risks: Tensor) -> Tensor:
    """Variance of the risks over environments, divisor E (arXiv 2003.00688)."""
    return risks.var(unbiased=False)


def groupdro_weights(weights: Tensor, risks: Tensor, eta: float) -> Tensor:
    """New weights of the environments, q_e ∝ q_e·exp(η R_e) (arXiv 1911.08731)."""
    new = weights * torch.exp(eta * risks.detach())
    return new / new.sum()


def coral_distance(a: Tensor, b: Tensor) -> Tensor:
    """Mean squared difference of feature means plus that of feature covariances."""
    means = (a.mean(0) - b.mean(0)).square().mean()
    covariances = (torch.cov(a.T) - torch.cov(b.T)).square().mean()
    return means + covariances


def mixup_risk(
    network: Callable[[Tensor], Tensor], first: Batch, second: Batch, share: float
) -> Tensor:
    """Loss on rows mixed from two environments, labels mixed alike (arXiv 2001.00677)."""
    logits = network(share * first.x + (1 - share) * second.x)
    return share * risk(logits, first.y) + (1 - share) * risk(logits, second.y)


def bernoulli_kl(logits: Tensor, other: Tensor) -> Tensor:
    """Mean KL(p ‖ q) of Bernoulli scores given as logits, where no score rounds to 0 or 1."""
    p = torch.sigmoid(logits)
    positive = functional.logsigmoid(logits) - functional.logsigmoid(other)
    negative = functional.logsigmoid(-logits) - functional.logsigmoid(-other)
    return (p * positive + (1 - p) * negative).mean()


def mbdg_dual(nu: float, regulariser: float, gamma: float, eta: float) -> float:
    """Dual ascent, ν ← max(0, ν + η (reg − γ)) (arXiv 2102.11436)."""
    return max(0.0, nu + eta * (regulariser - gamma))


# --- the transformation model of MBDG -------------------------------------------------------


@dataclass(frozen=True)
class LinearTransport:
    """x ↦ (x − source) A + target: the optimal-transport map between two Gaussians.

    Applied to the features of a table, or to the three colour channels of every pixel
    (mean-covariance colour transfer). It stands where the paper has a learned image translator.
    """

    source: Tensor
    target: Tensor
    matrix: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        if x.ndim == 4:
            pixels = x.permute(0, 2, 3, 1)
            return ((pixels - self.source) @ self.matrix + self.target).permute(0, 3, 1, 2)
        return (x - self.source) @ self.matrix + self.target


def fit_transport(a: Tensor, b: Tensor, ridge: float = 1e-2) -> LinearTransport:
    """Map that carries mean and covariance of ``a`` to those of ``b`` (plus a small ridge)."""
    first, second = _vectors(a), _vectors(b)
    eye = ridge * np.eye(first.shape[1])
    cov_a, cov_b = np.cov(first.T) + eye, np.cov(second.T) + eye
    root = _power(cov_a, 0.5)
    inverse = _power(cov_a, -0.5)
    matrix = inverse @ _power(root @ cov_b @ root, 0.5) @ inverse
    return LinearTransport(
        torch.tensor(first.mean(0), dtype=torch.float32),
        torch.tensor(second.mean(0), dtype=torch.float32),
        torch.tensor(matrix, dtype=torch.float32),
    )


def _vectors(x: Tensor) -> np.ndarray:
    if x.ndim == 4:
        x = x.permute(0, 2, 3, 1).reshape(-1, x.shape[1])
    return x.numpy().astype(np.float64)


def _power(matrix: np.ndarray, exponent: float) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.maximum(values, 1e-12) ** exponent) @ vectors.T


# --- algorithms: what one step minimises ----------------------------------------------------


@dataclass(frozen=True)
class Batch:
    """Rows of one environment: ``x`` (m, …), ``y`` (m,) of 0.0 and 1.0."""

    x: Tensor
    y: Tensor


Settings = Mapping[str, float]


@dataclass
class Algorithm:
    """Plain risk minimisation; the others change what a step minimises.

    ``warm`` tells whether warm-up is over. ``resets`` asks for a fresh optimiser at that moment,
    since a penalty that jumps makes its running averages meaningless.
    """

    settings: Settings
    environments: Sequence[Batch]
    generator: torch.Generator
    resets: bool = field(default=False, init=False)

    def loss(self, network: Network, batches: Sequence[Batch], *, warm: bool) -> Tensor:
        return self.risks(network, batches).mean()

    @staticmethod
    def risks(network: Network, batches: Sequence[Batch]) -> Tensor:
        return torch.stack([risk(network(batch.x), batch.y) for batch in batches])


class Irm(Algorithm):
    """Mean risk plus λ times the mean IRM penalty."""

    def loss(self, network: Network, batches: Sequence[Batch], *, warm: bool) -> Tensor:
        self.resets = True
        weight = self.settings["lambda"] if warm else 1.0
        logits = [network(batch.x) for batch in batches]
        pairs = list(zip(logits, batches, strict=True))
        mean = torch.stack([risk(f, batch.y) for f, batch in pairs]).mean()
        penalty = torch.stack([irm_penalty(f, batch.y) for f, batch in pairs]).mean()
        # Divided by λ, so that a large λ does not act as a large learning rate.
        return (mean + weight * penalty) / max(weight, 1.0)


class Iga(Algorithm):
    """Mean risk plus λ times the variance of the parameter gradients."""

    def loss(self, network: Network, batches: Sequence[Batch], *, warm: bool) -> Tensor:
        risks = self.risks(network, batches)
        weights = list(network.parameters())
        gradients = [
            torch.cat([g.flatten() for g in torch.autograd.grad(r, weights, create_graph=True)])
            for r in risks
        ]
        return risks.mean() + self.settings["lambda"] * iga_penalty(gradients)


class Vrex(Algorithm):
    """Mean risk plus β times the variance of the risks."""

    def loss(self, network: Network, batches: Sequence[Batch], *, warm: bool) -> Tensor:
        self.resets = True
        weight = self.settings["beta"] if warm else 1.0
        risks = self.risks(network, batches)
        return (risks.mean() + weight * vrex_penalty(risks)) / max(weight, 1.0)


class GroupDro(Algorithm):
    """Weighted risk; the weights follow the environments that do worst."""

    weights: Tensor | None = None

    def loss(self, network: Network, batches: Sequence[Batch], *, warm: bool) -> Tensor:
        risks = self.risks(network, batches)
        before = torch.full_like(risks, 1 / len(risks)) if self.weights is None else self.weights
        self.weights = groupdro_weights(before.detach(), risks, self.settings["eta"])
        return (self.weights * risks).sum()


class Coral(Algorithm):
    """Mean risk plus γ times the mean CORAL distance over pairs of environments."""

    def loss(self, network: Network, batches: Sequence[Batch], *, warm: bool) -> Tensor:
        features = [network.phi(batch.x) for batch in batches]
        risks = [
            risk(network.head(z).squeeze(-1), batch.y)
            for z, batch in zip(features, batches, strict=True)
        ]
        pairs = [
            coral_distance(features[i], features[j])
            for i in range(len(features))
            for j in range(i + 1, len(features))
        ]
        return torch.stack(risks).mean() + self.settings["gamma"] * torch.stack(pairs).mean()


class Mixup(Algorithm):
    """Risk on convex combinations of rows of two environments."""

    def loss(self, network: Network, batches: Sequence[Batch], *, warm: bool) -> Tensor:
        order = torch.randperm(len(batches), generator=self.generator).tolist()
        alpha = self.settings["alpha"]
        rng = np.random.default_rng(int(torch.randint(2**31, (1,), generator=self.generator)))
        return torch.stack(
            [
                mixup_risk(network, batch, batches[other], float(rng.beta(alpha, alpha)))
                for batch, other in zip(batches, order, strict=True)
            ]
        ).mean()


class Mbdg(Algorithm):
    """Least risk subject to KL(f(x) ‖ f(G(x))) ≤ γ, by primal and dual steps."""

    nu: float = 0.0
    transports: dict[tuple[int, int], LinearTransport] | None = None

    def loss(self, network: Network, batches: Sequence[Batch], *, warm: bool) -> Tensor:
        if self.transports is None:
            self.transports = self._fit()
        risks, distances = [], []
        for i, batch in enumerate(batches):
            step = 1 + int(torch.randint(len(batches) - 1, (1,), generator=self.generator))
            moved = self.transports[i, (i + step) % len(batches)](batch.x)
            logits = network(batch.x)
            risks.append(risk(logits, batch.y))
            distances.append(bernoulli_kl(logits, network(moved)))
        distance = torch.stack(distances).mean()
        objective = torch.stack(risks).mean() + self.nu * distance
        self.nu = mbdg_dual(
            self.nu, float(distance.detach()), self.settings["gamma"], self.settings["eta"]
        )
        return objective

    def _fit(self) -> dict[tuple[int, int], LinearTransport]:
        known = self.environments
        return {
            (i, j): fit_transport(known[i].x, known[j].x)
            for i in range(len(known))
            for j in range(len(known))
            if i != j
        }


ALGORITHMS: dict[str, type[Algorithm]] = {
    "erm": Algorithm,
    "irm": Irm,
    "iga": Iga,
    "mbdg": Mbdg,
    "groupdro": GroupDro,
    "vrex": Vrex,
    "coral": Coral,
    "mixup": Mixup,
}


# --- the loop -------------------------------------------------------------------------------


def fit(
    name: str, settings: Settings, environments: Sequence[Batch], budget: Budget, seed: int
) -> Network:
    """Train one network; the same arguments give the same network on the same machine."""
    torch.manual_seed(seed)
    shape = environments[0].x.shape
    network = image_network() if len(shape) == 4 else table_network(shape[1])
    generator = torch.Generator().manual_seed(seed)
    algorithm = ALGORITHMS[name](settings, environments, generator)
    optimiser = _adam(network, budget)
    warm_up = round(budget.warm_up * budget.steps)
    for step in range(budget.steps):
        if step == warm_up and algorithm.resets:
            optimiser = _adam(network, budget)
        batches = [_draw(batch, budget.rows_per_environment, generator) for batch in environments]
        optimiser.zero_grad()
        algorithm.loss(network, batches, warm=step >= warm_up).backward()
        optimiser.step()
    return copy.deepcopy(network).eval()


def scores(network: Network, x: Tensor, chunk: int = 4096) -> np.ndarray:
    """P(y = 1) of each row, float32 (n,)."""
    with torch.inference_mode():
        parts = [torch.sigmoid(network(part)) for part in x.split(chunk)]
    return torch.cat(parts).numpy().astype(np.float32)


def _adam(network: Network, budget: Budget) -> torch.optim.Adam:
    return torch.optim.Adam(
        network.parameters(), lr=budget.learning_rate, weight_decay=budget.weight_decay
    )


def _draw(batch: Batch, rows: int, generator: torch.Generator) -> Batch:
    chosen = torch.randint(len(batch.y), (rows,), generator=generator)
    return Batch(batch.x[chosen], batch.y[chosen])
