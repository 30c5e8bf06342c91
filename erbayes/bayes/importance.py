"""Adaptive importance sampling of a density with few dimensions, with its evidence.

Proposals are t distributions around the mode, adapted over rounds (Cornuet, Marin, Mira and Robert 2012,
Scandinavian Journal of Statistics 39, 798-812). Weights are Pareto smoothed, and unreliable if the shape k̂
is large (Vehtari et al. 2024, JMLR 25 (72)). Then a round draws where weights are large (Raftery and Bao
2010, Biometrics 66, 1162-1173). No entity resolution here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg.lapack import dtrtri
from scipy.optimize import minimize
from scipy.special import gammaln

from .._internal.arrays import FloatArray, IntArray
from .._internal.errors import DataError, whole

DF = 20.0
"""Degrees of freedom of proposals."""
FIRST, SMALLEST = 4, 150
"""Points of a first round are 1/`FIRST` of the draws, and not fewer than `SMALLEST`."""
MISSING = 0.8
"""Points of a later round, as a share of those that seem to be missing, since proposals become better."""
WIDER = 1.3
"""Factor of the covariance matrix of proposals. It makes large weights rarer, and log evidence more exact."""
MOST = 40
"""Largest number of points of a target, in multiples of the draws."""
EFFECTIVE = 1.25
"""Effective points that suffice, as a multiple of the draws.

With .4, points had copies that no diagnostic of ArviZ could see among the draws.
"""
BEND = 6.0
"""|v|² from which `LightTails` shortens tails, κ, which is twice the degrees of freedom of t priors.

With κ = 3 priors are nearly normal in u, but data cut their tails, and posteriors are nearer to normal at 6.
"""
TINY, FARTHEST = 1e-12, 500.0
"""Limits of |u|²/κ of a block of coordinates, far from any draw, so that nothing overflows."""
FEWEST_DRAWS = 50
"""Fewest draws from which the Pareto shape of their weights can be estimated."""
KHAT = 0.7
"""Pareto shapes above this make importance weights unreliable (Vehtari et al. 2024)."""
LENGTHS = np.array([1.0, 0.5, 0.2, 0.0])
"""Lengths of a Newton step of which the best is chosen."""
LARGE = 3.0
"""Largest weights that unreliable weights are adapted to, in multiples of √K, which are those smoothed."""
SHRINKAGE = 3.0
"""Draws, per coordinate, that the covariance of the round before counts for when proposals adapt."""


def need_draws(draws: Any) -> int:
    """Return a number of draws as an integer; raise DataError if it is none, or below `FEWEST_DRAWS`."""
    number = whole(draws, "draws", 0)
    if number < FEWEST_DRAWS:
        raise DataError(f"{number} draws are too few: draws must be {FEWEST_DRAWS} or more")
    return number


Block = tuple[IntArray, Any, float]
"""Coordinates with a multivariate t prior of 3 degrees of freedom, its location and its scale."""


class Target(Protocol):
    """An unnormalised density of θ, (d,), the start of the search of its mode, and blocks with a t prior."""

    @property
    def start(self) -> FloatArray: ...
    @property
    def heavy_tails(self) -> Sequence[Block]: ...
    def log_densities(self, thetas: FloatArray, /) -> FloatArray: ...


class LightTails:
    """Coordinates u in which priors with heavy tails are nearly standard normal, as t proposals need.

    A block with a t prior is v = (θ - location)/scale, and u has its direction, with |u|² = κ log(1 +
    |v|²/κ). Other coordinates stay, with location 0 and scale 1. `member` (d, blocks) is 1 in the block.
    """

    def __init__(self, dimension: int, blocks: Sequence[Block]) -> None:
        self.blocks, self.location, self.scale = blocks, np.zeros(dimension), np.ones(dimension)
        self.member = np.zeros((dimension, len(blocks)))
        for i, (at, location, scale) in enumerate(blocks):
            self.member[at, i], self.location[at], self.scale[at] = 1.0, location, scale

    def stretch(self, points: FloatArray, by: FloatArray) -> FloatArray:
        """Multiply the coordinates of each block by its number, (..., blocks)."""
        return np.asarray(points * (1 + (by - 1) @ self.member.T))

    def about(self, theta: FloatArray) -> LightTails:
        """Return coordinates in which blocks whose prior has θ, (d,), in its tail are centred there.

        Their scale is as much larger as θ is farther out than `BEND`: data on one side only leave such a
        posterior the tail of its prior.
        """
        blocks = []
        for at, location, scale in self.blocks:
            far = (((theta[at] - location) / scale) ** 2).sum() / BEND
            blocks.append((at, location, scale) if far < 1 else (at, theta[at], scale * np.sqrt(far)))
        return LightTails(len(theta), blocks)

    def theta(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return θ at each u, (K, d), and the log Jacobian of dθ/du, (K,)."""
        square = (u**2 @ self.member / BEND).clip(TINY, FARTHEST)
        by = np.sqrt(np.expm1(square) / square)
        exponent = self.member.sum(axis=0) - 2
        log_jacobian = np.log(self.scale).sum() + square.sum(axis=1) + np.log(by) @ exponent
        return self.location + self.scale * self.stretch(u, by), log_jacobian

    def u(self, theta: FloatArray) -> FloatArray:
        """Return u at each θ, (K, d)."""
        v = (theta - self.location) / self.scale
        square = np.maximum(v**2 @ self.member / BEND, TINY)
        return self.stretch(v, np.sqrt(np.log1p(square) / square))


@dataclass(frozen=True, eq=False)
class Proposal:
    """A multivariate t distribution with a `centre`, (d,), and a triangular `root` of its scale, (d, d)."""

    centre: FloatArray
    root: FloatArray

    def draws(self, number: int, rng: np.random.Generator) -> FloatArray:
        z = rng.standard_normal((number, len(self.centre)))
        spread = np.sqrt(DF / rng.chisquare(DF, (number, 1)))
        return self.centre + z * spread @ self.root.T

    def log_density(self, points: FloatArray) -> FloatArray:
        """Return the log density at each point, (K,)."""
        d, z = len(self.centre), (points - self.centre) @ dtrtri(self.root, lower=1)[0].T
        constant = gammaln((DF + d) / 2) - gammaln(DF / 2) - d / 2 * np.log(DF * np.pi)
        constant -= np.log(np.diag(self.root)).sum()
        return np.asarray(constant - (DF + d) / 2 * np.log1p(np.einsum("kd,kd->k", z, z) / DF))


class Adapted:
    """Adaptive multiple importance sampling of a target.

    `log_evidence` is the log marginal density of the data, and `khat` the Pareto shape of the weights.
    """

    def __init__(self, part: Target, first: int, rng: np.random.Generator, chains: int = 1) -> None:
        self.part, self.rng, self.chains = part, rng, chains
        self.tails = LightTails(len(part.start), part.heavy_tails)
        self.centre, self.cov = self._approximate_laplace(part.start)
        self.proposals: list[tuple[Proposal, float]] = []
        self.points, self.thetas = np.empty((2, 0, len(part.start)))
        self.densities, self.mixture, self.ratios, self.counted = np.empty((4, 0))
        self._smoothed: tuple[FloatArray, float] = (np.empty(0), np.inf)
        self.round(first)

    def _evaluate(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return θ at each point, and the log density of the point."""
        thetas, log_jacobian = self.tails.theta(points)
        log_density = self.part.log_densities(thetas) + log_jacobian
        return thetas, np.where(np.isfinite(log_density), log_density, -np.inf)

    def _negate_density(self, points: FloatArray) -> FloatArray:
        # finite also where the density is 0, since differences of infinities are no number
        return -np.maximum(self._evaluate(points)[1], -1e10)

    def _approximate_laplace(self, start: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mode, (d,), and inverse curvature, (d, d), by a search and a Newton step."""
        point = self.tails.u(start[None])[0]
        d, h = len(point), 1e-3
        one, (i, j) = np.eye(d), np.triu_indices(d)

        def rise(point: FloatArray) -> tuple[float, FloatArray]:
            # differences of densities, because gradients take seconds to compile
            f = self._negate_density(point + 1e-6 * np.vstack([0 * point, one]))
            return f[0], (f[1:] - f[0]) / 1e-6

        point = minimize(rise, point, jac=True, method="L-BFGS-B", options={"ftol": 1e-4}).x
        theta, _ = self.tails.theta(point[None])
        self.tails = self.tails.about(theta[0])
        (point,) = self.tails.u(theta)
        f = self._negate_density(point + h * np.vstack([0 * point, one, one[i] + one[j]]))
        H = np.empty((d, d))
        H[i, j] = H[j, i] = (f[d + 1 :] - f[1:][i] - f[1:][j] + f[0]) / h**2
        gradient = (f[1 : d + 1] - f[0]) / h - h / 2 * np.diag(H)
        values, vectors = np.linalg.eigh(H)
        # a flat or rising direction must not make the first round too wide
        cov = (vectors / np.maximum(values, 0.05)) @ vectors.T
        steps = point - LENGTHS[:, None] * (cov @ gradient)
        return steps[np.argmin(self._negate_density(steps))], cov

    def _locate_tail(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and covariance of the points by what their weights exceed other large ones."""
        top = np.argsort(-self.log_w)[: int(LARGE * np.sqrt(len(self.points)))]
        w = np.exp(self.log_w[top] - self.log_w[top[0]])
        excess = w - w[-1]
        return moments(excess / excess.sum(), self.points[top], self.cov)

    def round(self, number: int, of_tail: bool = False) -> None:
        """Draw a further round of points, of the target or of its tail, and adapt the next to all points."""
        # chains share the proposals but no point: chain c has the points c, c + C, c + 2 C and so on
        number = -(-number // self.chains) * self.chains
        centre, cov = self._locate_tail() if of_tail else (self.centre, self.cov)
        proposal = Proposal(centre, np.linalg.cholesky(WIDER * cov))
        self.proposals.append((proposal, np.log(number)))
        new = proposal.draws(number, self.rng)
        thetas, densities = self._evaluate(new)
        # weights by the mixture of all rounds cannot become large where any round had points
        earlier = np.logaddexp(self.mixture, proposal.log_density(self.points) + np.log(number))
        of_rounds = [q.log_density(new) + log_n for q, log_n in self.proposals]
        mixture = np.logaddexp.reduce(of_rounds)
        self.mixture = np.concatenate([earlier, mixture])
        self.points = np.concatenate([self.points, new])
        self.thetas = np.concatenate([self.thetas, thetas])
        self.densities = np.concatenate([self.densities, densities])
        # later proposals have adapted to the points: the mean of weights by the mixture would be too small
        self.ratios = np.concatenate([self.ratios, densities - of_rounds[-1] + np.log(number)])
        # later rounds are better and count more; fixed counts make the mean unbiased (Owen and Zhou 2020)
        # and a tail has not all of the mass
        counts = -np.inf if of_tail else np.log(len(self.proposals))
        self.counted = np.concatenate([self.counted, np.full(number, counts)])
        weighted = np.logaddexp.reduce(self.ratios + self.counted)
        self.log_evidence = float(weighted - np.logaddexp.reduce(self.counted))
        w = truncated(self.log_w)
        self.effective = float(1 / (w @ w))
        self.centre, self.cov = moments(w, self.points, self.cov)

    @property
    def log_w(self) -> FloatArray:
        """Log weights of the points by the mixture of all proposals, up to a constant."""
        return np.asarray(self.densities - self.mixture)

    @property
    def smoothed(self) -> tuple[FloatArray, float]:
        """Smoothed weights and their Pareto shape."""
        if len(self._smoothed[0]) < len(self.points):
            self._smoothed = smoothed(self.log_w)
        return self._smoothed

    @property
    def khat(self) -> float:
        return self.smoothed[1]

    def draw(self, draws: int) -> FloatArray:
        """Return `draws` draws in each chain, (chain, draw, d)."""
        w, at = self.smoothed[0], np.arange(len(self.points)).reshape(-1, self.chains).T
        # points of one round are next to each other, and resampling keeps their order
        shuffled = self.rng.permuted(at, axis=1)
        chosen = [of[resampled(w[of] / w[of].sum(), draws, self.rng)] for of in shuffled]
        return np.asarray(self.thetas[np.stack(chosen)])


def approximated(target: Target, draws: int, rng: np.random.Generator, chains: int = 1) -> Adapted:
    """Approximate the posterior of a target, for `draws` draws in all `chains` together."""
    one = Adapted(target, max(draws // FIRST, SMALLEST), rng, chains)
    while len(one.points) < MOST * draws:
        # a quarter of the points before if only weights are unreliable, or from a tenth to all of them
        number, of_tail = len(one.points), one.effective >= EFFECTIVE * draws
        if of_tail and one.khat <= KHAT:
            break
        missing = 0.25 if of_tail else MISSING * (EFFECTIVE * draws / one.effective - 1)
        one.round(min(int(number * np.clip(missing, 0.1, 1.0)), MOST * draws - number), of_tail)
    return one


def moments(w: FloatArray, points: FloatArray, cov: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return weighted mean and covariance, (d,) and (d, d), shrunk towards the covariance before."""
    centre = w @ points
    deviations, size, before = points - centre, 1 / (w @ w), SHRINKAGE * len(cov)
    return centre, (size * (deviations.T * w) @ deviations + before * cov) / (size + before)


def truncated(log_w: FloatArray) -> FloatArray:
    """Return weights that add to 1, cut at √K times their mean (Ionides 2008)."""
    w = np.exp(log_w - log_w.max())
    w = np.minimum(w, w.mean() * np.sqrt(len(w)))
    return np.asarray(w / w.sum())


def smoothed(log_w: FloatArray) -> tuple[FloatArray, float]:
    """Return Pareto-smoothed weights that add to 1, and the Pareto shape, which is -∞ if all are equal."""
    if np.ptp(log_w[np.isfinite(log_w)]) < 1e-9:
        return np.isfinite(log_w) / np.isfinite(log_w).sum(), -np.inf
    # imported here, since it is an extra that takes a second to import
    from arviz_stats.base import array_stats

    with np.errstate(over="ignore"):  # of quantiles that are then cut at the largest weight
        log_smooth, khat = array_stats.psislw(-log_w)
    if not np.isfinite(khat):  # the tail has too few distinct weights
        log_smooth, khat = log_w, np.inf
    w = np.exp(log_smooth - log_smooth.max())
    return w / w.sum(), float(khat)


def resampled(w: FloatArray, number: int, rng: np.random.Generator) -> IntArray:
    """Draw positions with probabilities w by systematic resampling, in increasing order."""
    return np.searchsorted(np.cumsum(w), (np.arange(number) + rng.random()) / number).clip(0, len(w) - 1)
