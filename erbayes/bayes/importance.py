"""Importance sampling of one part: a t distribution around the mode, adapted to what the weights find.

In the few dimensions of a part it is exact enough, and its weights, smoothed by Pareto's distribution
(Vehtari et al. 2024), say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from arviz_stats.base import array_stats
from scipy.optimize import minimize
from scipy.special import gammaln

from ..clustering import FloatArray, IntArray
from .parts import CompiledPart

DF = 5.0
"""Degrees of freedom of proposals."""
FEWEST, MOST = 8, 24
"""Rounds; more than the fewest where the weights cannot yet be relied on."""
KHAT = 0.7
"""Pareto shapes above this make importance weights unreliable (Vehtari et al. 2024)."""
FIRST, LATER = 1.1, 1.2
"""Scales of proposals, in standard deviations, of the first round and of those that follow."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """A multivariate t distribution.

    Attributes
    ----------
    centre : float array, (d,)
    root : float array, (d, d)
        Lower triangular root of its scale matrix.
    """

    centre: FloatArray
    root: FloatArray

    def draws(self, number: int, rng: np.random.Generator) -> FloatArray:
        """Draws, (number, d)."""
        z = rng.standard_normal((number, len(self.centre)))
        return self.centre + z * np.sqrt(DF / rng.chisquare(DF, (number, 1))) @ self.root.T

    @cached_property
    def _inverse(self) -> FloatArray:
        return np.asarray(np.linalg.inv(self.root).T)

    @cached_property
    def _constant(self) -> float:
        d = len(self.centre)
        scale = np.log(np.diag(self.root)).sum() + d / 2 * np.log(DF * np.pi)
        return float(gammaln((DF + d) / 2) - gammaln(DF / 2) - scale)

    def log_density(self, thetas: FloatArray) -> FloatArray:
        """Log density at each θ, (K,)."""
        t = (thetas - self.centre) @ self._inverse
        tails = 0.5 * (DF + len(self.centre)) * np.log1p(np.einsum("ij,ij->i", t, t) / DF)
        return np.asarray(self._constant - tails)


@dataclass(frozen=True, slots=True, eq=False)
class Approximation:
    """A posterior approximated.

    Attributes
    ----------
    centre : float array, (d,)
    root : float array, (d, d)
        Lower triangular, with the covariance matrix as its square.
    thetas : float array, (K, d)
        Draws.
    khat : float
        Pareto shape of their weights.
    log_evidence : float
        Log marginal density of the data, where there are errors.
    """

    centre: FloatArray
    root: FloatArray
    thetas: FloatArray
    khat: float
    log_evidence: float


def approximated(part: CompiledPart, draws: int, rng: np.random.Generator) -> Approximation:
    """Laplace's approximation, adapted by adaptive multiple importance sampling (Cornuet et al. 2012).

    Each round proposes from a t distribution with the weighted mean and covariance of all rounds before
    it, the first from Laplace's; every draw is weighted against the mixture of all rounds' proposals.
    """
    (centre, cov), scale = _laplace(part), FIRST
    proposals: list[Proposal] = []
    thetas, densities, mixture = np.empty((0, len(centre))), np.empty(0), np.empty(0)
    each, khat = -(-2 * draws // FEWEST), np.inf
    while len(proposals) < (FEWEST if khat <= KHAT else MOST):
        proposal = Proposal(centre, np.linalg.cholesky(cov) * scale)
        proposals.append(proposal)
        new = proposal.draws(each, rng)
        earlier = np.logaddexp(mixture, proposal.log_density(thetas))
        mixture = np.concatenate([earlier, np.logaddexp.reduce([q.log_density(new) for q in proposals])])
        thetas = np.concatenate([thetas, new])
        densities = np.concatenate([densities, part.log_densities(new)])
        log_w = np.where(np.isfinite(densities), densities - mixture + np.log(len(proposals)), -np.inf)
        if len(proposals) < FEWEST:
            w = truncated(log_w)
        else:
            w, khat = smoothed(log_w)
        centre, scale = w @ thetas, LATER
        off, size = thetas - centre, 1 / (w @ w)
        cov = (size * (off.T * w) @ off + len(centre) * cov) / (size + len(centre))
    chosen = resampled(w, draws, rng)
    log_evidence = float(np.logaddexp.reduce(log_w) - np.log(len(log_w)))
    return Approximation(centre, np.linalg.cholesky(cov), thetas[chosen], khat, log_evidence)


def _laplace(part: CompiledPart) -> tuple[FloatArray, FloatArray]:
    found = minimize(part.slope, part.start, jac=True, method="L-BFGS-B", options={"ftol": 1e-6}).x
    k = len(found)
    H = np.array([(part.slope(found + e)[1] - part.slope(found - e)[1]) / 2e-4 for e in np.eye(k) * 1e-4])
    values, vectors = np.linalg.eigh((H + H.T) / 2)
    return found, (vectors / np.maximum(values, 0.05)) @ vectors.T


def truncated(log_w: FloatArray) -> FloatArray:
    """Weights that add to 1, none above √K times their mean (Ionides 2008)."""
    w = np.exp(log_w - log_w.max())
    w = np.minimum(w, w.mean() * np.sqrt(len(w)))
    return np.asarray(w / w.sum())


def smoothed(log_w: FloatArray) -> tuple[FloatArray, float]:
    """Pareto-smoothed weights that add to 1, and the Pareto shape: -∞ where all weigh the same."""
    if np.ptp(log_w[np.isfinite(log_w)]) < 1e-9:
        return np.isfinite(log_w) / np.isfinite(log_w).sum(), -np.inf
    log_smooth, khat = array_stats.psislw(-log_w)
    if not np.isfinite(khat):  # too few distinct weights in the tail to say
        log_smooth, khat = log_w, np.inf
    w = np.exp(log_smooth - log_smooth.max())
    return w / w.sum(), float(khat)


def resampled(w: FloatArray, number: int, rng: np.random.Generator) -> IntArray:
    """Systematic resampling: positions in increasing order."""
    return np.searchsorted(np.cumsum(w), (np.arange(number) + rng.random()) / number).clip(0, len(w) - 1)
