"""Importance sampling of one part: proposals are t distributions around the mode, adapted to the weights.

A part has few dimensions, so that this is accurate. The weights are smoothed by Pareto's distribution, whose
shape k̂ shows whether they can be relied on. Source: Vehtari et al. (2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from arviz_stats.base import array_stats
from scipy.optimize import minimize
from scipy.special import gammaln

from ..arrays import FloatArray, IntArray
from .parts import CompiledPart
from .priors import TAIL

DF = 5.0
"""Degrees of freedom of proposals. Widened proposals have those of priors with heavy tails."""
WIDER = 4.0
"""Widened proposals treat priors of smooth functions as this many times as wide."""
FEWEST, MOST = 8, 24
"""Smallest and largest number of rounds. There are more rounds if the weights cannot be relied on."""
KHAT = 0.7
"""Pareto shapes above this make importance weights unreliable (Vehtari et al. 2024)."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """A proposal distribution of θ = centre + root z.

    Each variable has some coordinates of z. They are multivariate t distributed, independently of the other
    variables. If priors have heavy tails, one variable may be far out while the others are not. A single t
    distribution of all coordinates would have hardly any draws there.

    Attributes
    ----------
    centre : float array, (d,)
    root : float array, (d, d)
        Lower triangular root of its scale matrix.
    variable : float array, (d, k)
        1 if a coordinate belongs to a variable, else 0.
    df : float
        Degrees of freedom.
    """

    centre: FloatArray
    root: FloatArray
    variable: FloatArray
    df: float = DF

    def draws(self, number: int, rng: np.random.Generator) -> FloatArray:
        """Draw `number` values of θ, (number, d)."""
        z = rng.standard_normal((number, len(self.centre)))
        spread = np.sqrt(self.df / rng.chisquare(self.df, (number, self.variable.shape[1])))
        return self.centre + z * (spread @ self.variable.T) @ self.root.T

    @cached_property
    def _inverse(self) -> FloatArray:
        return np.asarray(np.linalg.inv(self.root).T)

    @cached_property
    def _power(self) -> FloatArray:
        return np.asarray((self.df + self.variable.sum(axis=0)) / 2)

    @cached_property
    def _constant(self) -> float:
        d = self.variable.sum(axis=0)
        terms = gammaln(self._power) - gammaln(self.df / 2) - d / 2 * np.log(self.df * np.pi)
        return float(terms.sum() - np.log(np.diag(self.root)).sum())

    def log_density(self, thetas: FloatArray) -> FloatArray:
        """Return the log density at each θ, (K,)."""
        z = (thetas - self.centre) @ self._inverse
        square = z**2 @ self.variable
        return np.asarray(self._constant - np.log1p(square / self.df) @ self._power)

    def widened(self, weights: IntArray, scale: float) -> Proposal:
        """Return a proposal for the tails of the weights of a smooth function.

        The prior of these weights is a t distribution around 0, which is nearly flat in its tails. Its
        precision is replaced by that of a prior `WIDER` times as wide. The precision that comes from the data
        stays. In no direction is the result more than `WIDER` times as wide as this proposal.

        Parameters
        ----------
        weights : int array
            Coordinates of the weights.
        scale : float
            Scale of their prior.
        """
        w, root = self.centre[weights], self.root[weights]
        precision = (TAIL - 2) / (TAIL * scale**2) * (1 - WIDER**-2)
        value, vector = np.linalg.eigh(np.eye(len(self.centre)) - precision * root.T @ root)
        factor = self.root @ (vector / np.sqrt(np.maximum(value, WIDER**-2)))
        cov = factor @ factor.T
        centre = self.centre + cov[:, weights] @ (precision * w)
        return Proposal(centre, np.linalg.cholesky(cov), self.variable, TAIL)


@dataclass(frozen=True, slots=True, eq=False)
class Approximation:
    """An approximate posterior of one part, given that there are errors.

    Attributes
    ----------
    centre : float array, (d,)
        Posterior mean of θ.
    root : float array, (d, d)
        Lower triangular root of the covariance matrix.
    thetas : float array, (K, d)
        Posterior draws.
    khat : float
        Pareto shape of their weights.
    log_evidence : float
        Log marginal density of the data.
    """

    centre: FloatArray
    root: FloatArray
    thetas: FloatArray
    khat: float
    log_evidence: float


def approximated(part: CompiledPart, draws: int, rng: np.random.Generator) -> Approximation:
    """Approximate the posterior of a part by adaptive multiple importance sampling (Cornuet et al. 2012).

    The first round draws from Laplace's approximation. Each later round has the weighted mean and covariance
    of all rounds before it. Every second round is widened for the tails of one smooth function. The weight of
    a draw is its posterior density divided by that of the mixture of all rounds' proposals.

    Parameters
    ----------
    part : CompiledPart
    draws : int
        Number of draws to return, K.
    rng : Generator

    Returns
    -------
    Approximation
    """
    (centre, cov), smooths = _laplace(part), part.smooths
    names = np.array(part.coordinates)
    variable = (names[:, None] == np.unique(names)).astype(float)
    proposals: list[Proposal] = []
    thetas, densities, mixture = np.empty((0, len(centre))), np.empty(0), np.empty(0)
    per_round, khat = -(-2 * draws // FEWEST), np.inf
    while len(proposals) < (FEWEST if khat <= KHAT else MOST):
        proposal = Proposal(centre, np.linalg.cholesky(cov), variable)
        pair, second = divmod(len(proposals), 2)
        if smooths and second:
            proposal = proposal.widened(*smooths[pair % len(smooths)])
        proposals.append(proposal)
        new = proposal.draws(per_round, rng)
        earlier = np.logaddexp(mixture, proposal.log_density(thetas))
        mixture = np.concatenate([earlier, np.logaddexp.reduce([q.log_density(new) for q in proposals])])
        thetas = np.concatenate([thetas, new])
        densities = np.concatenate([densities, part.log_densities(new)])
        log_w = np.where(np.isfinite(densities), densities - mixture + np.log(len(proposals)), -np.inf)
        if len(proposals) < FEWEST:
            w = truncated(log_w)
        else:
            w, khat = smoothed(log_w)
        centre = w @ thetas
        deviations, size = thetas - centre, 1 / (w @ w)
        cov = (size * (deviations.T * w) @ deviations + len(centre) * cov) / (size + len(centre))
    chosen = resampled(w, draws, rng)
    log_evidence = float(np.logaddexp.reduce(log_w) - np.log(len(log_w)))
    return Approximation(centre, np.linalg.cholesky(cov), thetas[chosen], khat, log_evidence)


def _laplace(part: CompiledPart) -> tuple[FloatArray, FloatArray]:
    """Return mode and inverse curvature of the log density.

    They come from differences of densities, because gradients take seconds to compile.
    """
    d, h = len(part.start), 1e-3
    one = np.eye(d)
    two = (one[:, None] + one).reshape(-1, d)

    def rise(theta: FloatArray) -> tuple[float, FloatArray]:
        f = -part.log_densities(theta + 1e-6 * np.vstack([0 * theta, one]))
        return f[0], (f[1:] - f[0]) / 1e-6

    mode = minimize(rise, part.start, jac=True, method="L-BFGS-B", options={"ftol": 1e-5}).x
    f = -part.log_densities(mode + h * np.vstack([0 * mode, one, two]))
    H = (f[d + 1 :].reshape(d, d) - f[1 : d + 1] - f[1 : d + 1, None] + f[0]) / h**2
    values, vectors = np.linalg.eigh(H)
    return mode, (vectors / np.maximum(values, 0.05)) @ vectors.T


def truncated(log_w: FloatArray) -> FloatArray:
    """Return weights that add to 1, cut at √K times their mean (Ionides 2008)."""
    w = np.exp(log_w - log_w.max())
    w = np.minimum(w, w.mean() * np.sqrt(len(w)))
    return np.asarray(w / w.sum())


def smoothed(log_w: FloatArray) -> tuple[FloatArray, float]:
    """Return Pareto-smoothed weights that add to 1, and the Pareto shape, which is -∞ if all are equal."""
    if np.ptp(log_w[np.isfinite(log_w)]) < 1e-9:
        return np.isfinite(log_w) / np.isfinite(log_w).sum(), -np.inf
    log_smooth, khat = array_stats.psislw(-log_w)
    if not np.isfinite(khat):  # the tail has too few distinct weights
        log_smooth, khat = log_w, np.inf
    w = np.exp(log_smooth - log_smooth.max())
    return w / w.sum(), float(khat)


def resampled(w: FloatArray, number: int, rng: np.random.Generator) -> IntArray:
    """Draw positions with probabilities w by systematic resampling, in increasing order."""
    return np.searchsorted(np.cumsum(w), (np.arange(number) + rng.random()) / number).clip(0, len(w) - 1)
