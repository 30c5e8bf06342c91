"""Families of cluster-size distributions: how many true entities have each size.

Each gives the logarithm of its weights on the bins of a `SizeGrid`, up to a constant: the model scales
them so that the records add to N. Sampled sizes then follow these weights times the design's
selection. Fields are the scales of priors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from .grid import RANK
from .priors import Level, Slope, hyper, positive, smooth

Tensors = Mapping[str, Any]


class SizeFamily(Protocol):
    """A prior on the cluster-size distribution.

    A family of your own needs this one method: docs/guide/own-parts.md has an example. Best it is a frozen
    dataclass of plain values.
    """

    def log_weights(self, data: Tensors) -> Any:
        """Log weight of each bin of sizes, (J,), up to a constant, inside a PyMC model.

        The method creates one or more continuous random variables, of any names. Weights must be finite.

        Parameters
        ----------
        data : mapping, name -> tensor
            As in `erbayes.bayes.contract.DATA`.
        """
        ...


@dataclass(frozen=True, slots=True)
class PredictionInformed:
    """The histogram of predicted sizes, smoothed and tilted.

    log M_s = log H(s) + b log2 s + g(log2 s): H the predicted histogram smoothed over .4 doublings and
    carried on past its largest size, b a slope per doubling and g a smooth function.

    Parameters
    ----------
    slope : float
        Scale of b, t with 3 degrees of freedom.
    amplitude : float
        Scale of g, a Gaussian process of length 2.5 doublings.
    """

    slope: float = 0.25
    amplitude: float = 0.35

    def log_weights(self, data: Tensors) -> Any:
        tilt = Slope(0.0, self.slope)("size_slope") * (data["x"] - data["centre"])
        return data["log_predicted"] + tilt + smooth("size_tilt", RANK, self.amplitude)(data["basis"])


@dataclass(frozen=True, slots=True)
class NegativeBinomial:
    """Zero-truncated negative binomial.

    P(s) ∝ Γ(s + α)/s! · (ν/(ν + α + 1))^s, with ν + 1 the mean size of the entity of a random record.
    That mean, rather than the entities', is nearly independent of α.

    Parameters
    ----------
    mean_sd : float
        Standard deviation of log ν around its value among predicted clusters.
    shape_sd : float
        Standard deviation of log α around 0.
    """

    mean_sd: float = 1.0
    shape_sd: float = 1.5

    def log_weights(self, data: Tensors) -> Any:
        predicted = pt.exp(data["log_biased_mean"]) - 0.5
        nu = predicted * pt.exp(Level(0.0, self.mean_sd)("size_log_mean"))
        alpha = pt.exp(Level(0.0, self.shape_sd)("size_log_shape"))
        s = data["size"]
        log_p = pt.log(nu) - pt.log(nu + alpha + 1)
        return pt.gammaln(s + alpha) - pt.gammaln(s + 1) + s * log_p + pt.log(data["width"])


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Discretised log-normal: P(s) ∝ φ((log s - μ)/σ)/s.

    Parameters
    ----------
    location_sd : float
        Standard deviation of μ + σ², the median of log s of a random record's entity, around the log mean of
        predicted clusters.
    log_scale_sd : float
        Standard deviation of log σ around 0.
    """

    location_sd: float = 1.5
    log_scale_sd: float = 0.5

    def log_weights(self, data: Tensors) -> Any:
        sigma = pt.exp(Level(0.0, self.log_scale_sd)("size_log_sigma"))
        mu = data["log_biased_mean"] + Level(0.0, self.location_sd)("size_location") - sigma**2
        ln = pt.log(data["size"])
        return -0.5 * ((ln - mu) / sigma) ** 2 - ln + pt.log(data["width"])


@dataclass(frozen=True, slots=True)
class PoissonLogNormal:
    """Zero-truncated Poisson with a log-normal mean: P(s) ∝ ∫ e^(-λ) λ^s/s! dLN(λ; μ, σ).

    By seven-point Gauss-Hermite quadrature around each integrand's mode, which keeps it exact to the eye
    from s = 1 to 10^6 (Liu and Pierce 1994).

    Parameters
    ----------
    location_sd, log_scale_sd
        As of `LogNormal`.
    """

    location_sd: float = 1.5
    log_scale_sd: float = 0.5

    def log_weights(self, data: Tensors) -> Any:
        sigma = pt.exp(Level(0.0, self.log_scale_sd)("size_log_sigma"))
        mu = data["log_biased_mean"] + Level(0.0, self.location_sd)("size_location") - sigma**2
        return log_poisson_log_normal(data["size"], mu, sigma) + pt.log(data["width"])


def log_poisson_log_normal(s: Any, mu: Any, sigma: Any) -> Any:
    """log P(s) of a Poisson whose log mean is N(μ, σ²), vectorised in s."""
    # The mode η of s η - e^η - (η - μ)²/2σ² is a - W, a = s σ² + μ, W + log W = a + log σ².
    a = s * sigma**2 + mu
    target = a + 2 * pt.log(sigma)
    w = pt.switch(target > 1, target - pt.log(pt.maximum(target, 1.0)), pt.exp(pt.minimum(target, 1.0)) / 2)
    for _ in range(6):
        w = pt.maximum(w * (1 + target - pt.log(w)) / (1 + w), 1e-12)
    eta = a - w
    spread = sigma / pt.sqrt(1 + w)
    nodes, weights = np.polynomial.hermite.hermgauss(7)
    at = eta[..., None] + np.sqrt(2.0) * spread[..., None] * nodes
    inside = s[..., None] * at - pt.exp(at) - 0.5 * ((at - mu) / sigma) ** 2 + nodes**2 + np.log(weights)
    return pt.logsumexp(inside, axis=-1) + pt.log(spread / sigma) - 0.5 * np.log(np.pi) - pt.gammaln(s + 1)


@dataclass(frozen=True, slots=True)
class Zeta:
    """Power law: P(s) ∝ s^(-a), up to the end of the grid.

    Parameters
    ----------
    excess_sd : float
        Standard deviation of log(a - 1) around log 1.2.
    """

    excess_sd: float = 0.6

    def log_weights(self, data: Tensors) -> Any:
        a = 1 + 1.2 * pt.exp(Level(0.0, self.excess_sd)("size_log_excess"))
        return -a * pt.log(data["size"]) + pt.log(data["width"])


@dataclass(frozen=True, slots=True)
class CutZeta:
    """Power law with an exponential cut-off: P(s) ∝ s^(-a) exp(-s/κ).

    Parameters
    ----------
    excess_sd : float
        Standard deviation of log(a - 1) around log 1.2.
    cut_sd : float
        Standard deviation of log κ around the log mean size of a random record's predicted cluster, times 4.
    """

    excess_sd: float = 0.6
    cut_sd: float = 1.5

    def log_weights(self, data: Tensors) -> Any:
        a = 1 + 1.2 * pt.exp(Level(0.0, self.excess_sd)("size_log_excess"))
        kappa = 4 * pt.exp(data["log_biased_mean"] + Level(0.0, self.cut_sd)("size_log_cut"))
        return -a * pt.log(data["size"]) - data["size"] / kappa + pt.log(data["width"])


@dataclass(frozen=True, slots=True)
class BodyAndTail:
    """Free probabilities of sizes 1 to `body`, and a discrete generalised-Pareto tail above.

    P(s) = w_s for s ≤ body, ∝ (1 + ξ (s - body)/τ)^(-1/ξ - 1) above.

    Parameters
    ----------
    body : int
        At most 15.
    concentration : float
        Of the symmetric Dirichlet prior on the body's sizes and the tail as a whole.
    shape_mean, shape_sd : float
        Of ξ, normal and cut to (.02, 2).
    log_scale_sd : float
        Of log τ around log body.
    """

    body: int = 8
    concentration: float = 1.0
    shape_mean: float = 0.5
    shape_sd: float = 0.3
    log_scale_sd: float = 1.0

    def __post_init__(self) -> None:
        if not 1 <= self.body <= 15:
            raise ValueError(f"a body of 1 to 15 single sizes, not {self.body}")
        positive("concentration", self.concentration)
        positive("standard deviation", self.shape_sd)

    def log_weights(self, data: Tensors) -> Any:
        concentration = hyper("size_concentration", self.concentration)
        w = pm.Dirichlet("size_body", concentration * np.ones(self.body + 1))
        xi = pm.TruncatedNormal(
            "size_shape",
            hyper("size_shape_mean", self.shape_mean),
            hyper("size_shape_sd", self.shape_sd),
            lower=0.02,
            upper=2.0,
        )
        tau = self.body * pt.exp(Level(0.0, self.log_scale_sd)("size_log_scale"))
        excess = data["size"][self.body :] - self.body
        tail = -(1 / xi + 1) * pt.log1p(xi * excess / tau) + pt.log(data["width"][self.body :])
        return pt.concatenate([pt.log(w[:-1]), tail - pt.logsumexp(tail) + pt.log(w[-1])])
