"""Importance sampling of one part: t distributions around the mode, adapted to what the weights find.

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

from ..arrays import FloatArray, IntArray
from .parts import CompiledPart
from .priors import TAIL

DF = 5.0
"""Degrees of freedom of proposals; wide ones have those of the priors with heavy tails."""
WIDER = 4.0
"""Wide proposals take priors of smooth functions for so many times as wide as they are."""
FEWEST, MOST = 8, 24
"""Rounds; more than the fewest where the weights cannot yet be relied on."""
KHAT = 0.7
"""Pareto shapes above this make importance weights unreliable (Vehtari et al. 2024)."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """θ = centre + root z: the z of each variable multivariate t distributed, independent of the others'.

    Where priors have tails like a power, one variable alone is far out. A single t distribution of θ, in
    which all are far out at once, has next to no draws there.

    Attributes
    ----------
    centre : float array, (d,)
    root : float array, (d, d)
        Lower triangular root of its scale matrix.
    variable : float array, (d, k)
        1 where a coordinate is of a variable, 0 else.
    df : float
        Degrees of freedom.
    """

    centre: FloatArray
    root: FloatArray
    variable: FloatArray
    df: float = DF

    def draws(self, number: int, rng: np.random.Generator) -> FloatArray:
        """Draws, (number, d)."""
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
        each = gammaln(self._power) - gammaln(self.df / 2) - d / 2 * np.log(self.df * np.pi)
        return float(each.sum() - np.log(np.diag(self.root)).sum())

    def log_density(self, thetas: FloatArray) -> FloatArray:
        """Log density at each θ, (K,)."""
        z = (thetas - self.centre) @ self._inverse
        square = z**2 @ self.variable
        return np.asarray(self._constant - np.log1p(square / self.df) @ self._power)

    def widened(self, at: IntArray, scale: float) -> Proposal:
        """One for the tails of the coordinates `at`, which under their prior are t distributed around 0.

        Far out the prior is as flat as a wide normal one would be: the precision that it gives is taken
        off, but for that of one `WIDER` times as wide, and what the data determine stays. In no direction
        is it more than as many times as wide as this one.
        """
        w, wide = self.centre[at], self.root[at]
        given = (TAIL - 2) / (TAIL * scale**2) * (1 - WIDER**-2)
        value, vector = np.linalg.eigh(np.eye(len(self.centre)) - given * wide.T @ wide)
        along = self.root @ (vector / np.sqrt(np.maximum(value, WIDER**-2)))
        cov = along @ along.T
        centre = self.centre + cov[:, at] @ (given * w)
        return Proposal(centre, np.linalg.cholesky(cov), self.variable, TAIL)


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

    Each round proposes with the weighted mean and covariance of all rounds before it, the first with
    Laplace's; every other one for the tails of a smooth function. Every draw is weighted against the
    mixture of all rounds' proposals.
    """
    (centre, cov), smooths = _laplace(part), part.smooths
    names = np.array(part.coordinates)
    variable = (names[:, None] == np.unique(names)).astype(float)
    proposals: list[Proposal] = []
    thetas, densities, mixture = np.empty((0, len(centre))), np.empty(0), np.empty(0)
    each, khat = -(-2 * draws // FEWEST), np.inf
    while len(proposals) < (FEWEST if khat <= KHAT else MOST):
        proposal = Proposal(centre, np.linalg.cholesky(cov), variable)
        which, tails = divmod(len(proposals), 2)
        if smooths and tails:
            proposal = proposal.widened(*smooths[which % len(smooths)])
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
        centre = w @ thetas
        off, size = thetas - centre, 1 / (w @ w)
        cov = (size * (off.T * w) @ off + len(centre) * cov) / (size + len(centre))
    chosen = resampled(w, draws, rng)
    log_evidence = float(np.logaddexp.reduce(log_w) - np.log(len(log_w)))
    return Approximation(centre, np.linalg.cholesky(cov), thetas[chosen], khat, log_evidence)


def _laplace(part: CompiledPart) -> tuple[FloatArray, FloatArray]:
    """Mode and inverse curvature, from differences: gradients take seconds to compile."""
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
