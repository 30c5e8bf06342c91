"""Size families: priors on how many true entities have each size.

A family returns the log weights of the bins of a `SizeGrid`, up to a constant. The model scales the weights
so that the records add to N. Sizes of sampled entities then follow the weights times the chance that the
design selects an entity of the size. Fields of a family are the scales of its priors.

In the formulas, s is the size of an entity and P(s) the share of entities of that size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from .._internal.errors import DataError, whole
from .grid import RANK, SINGLE
from .priors import Level, Prior, Slope, hyper, need_positive, shares, smooth, variable

Tensors = Mapping[str, Any]
FLOOR = 1e-300
"""Smallest share of the records in entities of one size, whose log is taken."""


class SizeFamily(Protocol):
    """A prior on how many entities have each size.

    A family of your own needs this one method: docs/guide/own-parts.md has an example. A frozen dataclass of
    plain values is best, because it is compiled only once.
    """

    def log_weights(self, data: Tensors) -> Any:
        """Create random variables in a PyMC model, and return the log weight of each bin of sizes.

        The method creates one or more continuous random variables, of any names.

        Parameters
        ----------
        data : mapping, name -> tensor
            Entries are those of `erbayes.bayes.contract.DATA`.

        Returns
        -------
        tensor, (J,)
            Log weights up to a constant. They must be finite.
        """
        ...


@dataclass(frozen=True, slots=True)
class PredictionInformed:
    """Size family, the default: the histogram of predicted cluster sizes, smoothed and tilted.

    M_s is the number of entities of size s. Its log is that of predicted clusters, plus a line, a smooth
    function and a step:

        log M_s = log H(s) + b log2 s + g(log2 s) + c 1(s = 1)

    H is the histogram of predicted sizes, smoothed over .4 doublings and extended past its largest size. b is
    a slope per doubling, g a smooth function, and c the step at single records. A matcher that misses links
    leaves records alone, whatever the size of their entity: then c is below 0. One that joins strangers takes
    single records away.

    A share of the records belongs to further entities, which are larger than predicted clusters. The sizes of
    the entities of these records are log-normal. Their median is a factor times the mean size of a random
    record's predicted cluster.

    Parameters
    ----------
    slope : float
        Prior scale of b, which is t distributed with 3 degrees of freedom. Above 0.
    amplitude : float
        Prior scale of g, a Gaussian process with a length scale of 2.5 doublings. Above 0.
    larger_share : Prior
        Logit of the share of the records in larger entities.
    larger_factor : Prior
        Log of the factor.
    larger_spread : Prior
        Log of the standard deviation of the log sizes of larger entities.
    single : Prior
        The step c.

    Examples
    --------
    >>> from erbayes.bayes import PredictionInformed, SizeModel
    >>> SizeModel(PredictionInformed(slope=0.5)).sizes.larger_share
    Level(mean=-3.5, sd=1.5)
    """

    slope: float = 0.35
    amplitude: float = 0.55
    larger_share: Prior = Level(-3.5, 1.5)
    larger_factor: Prior = Level(1.5, 1.0)
    larger_spread: Prior = Level(0.0, 0.4)
    single: Prior = Slope(0.0, 0.7)

    def log_weights(self, data: Tensors) -> Any:
        tilt = Slope(0.0, self.slope)("size_slope") * (data["x"] - data["centre"])
        single = variable(self.single, "size_single") * pt.lt(data["size"], 1.5)
        smoothed = smooth("size_tilt", RANK, self.amplitude)(data["basis"])
        tilted = data["log_predicted"] + tilt + smoothed + single
        log_size = pt.log(data["size"])
        share = variable(self.larger_share, "larger_share_logit")
        median = data["log_biased_mean"] + variable(self.larger_factor, "larger_log_factor")
        z = (log_size - median) / pt.exp(variable(self.larger_spread, "larger_log_spread"))
        larger = shares(-0.5 * z**2 - log_size + pt.log(data["width"]))
        of_records = shares(tilted + log_size) * pm.math.sigmoid(-share) + larger * pm.math.sigmoid(share)
        return pt.log(of_records + FLOOR) - log_size


@dataclass(frozen=True, slots=True)
class NegativeBinomial:
    """Size family: negative binomial without 0.

        P(s) ∝ Γ(s + α)/s! · (ν/(ν + α + 1))^s

    ν + 1 is the mean size of the entity of a random record, and α the shape. This mean is nearly independent
    of α, unlike the mean size of entities.

    Parameters
    ----------
    mean_sd : float
        Prior standard deviation of log ν around its value among predicted clusters. Above 0.
    shape_sd : float
        Prior standard deviation of log α around 0. Above 0.

    Examples
    --------
    >>> from erbayes.bayes import NegativeBinomial, SizeModel
    >>> SizeModel(NegativeBinomial(shape_sd=1.0)).sizes
    NegativeBinomial(mean_sd=1.0, shape_sd=1.0)
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
    """Size family: log-normal on whole sizes.

        P(s) ∝ φ((log s - μ)/σ)/s

    φ is the standard normal density. μ + σ² is the median of log s for the entity of a random record.

    Parameters
    ----------
    location_sd : float
        Prior standard deviation of μ + σ² around its value among predicted clusters, the log of their mean
        size for a random record. Above 0.
    log_scale_sd : float
        Prior standard deviation of log σ around 0. Above 0.

    Examples
    --------
    >>> from erbayes.bayes import LogNormal, SizeModel
    >>> SizeModel(LogNormal()).sizes
    LogNormal(location_sd=1.5, log_scale_sd=0.5)
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
    """Size family: Poisson with a log-normal mean, without 0.

        P(s) ∝ ∫ e^(-λ) λ^s/s! dLN(λ; μ, σ)

    LN is the log-normal distribution of the mean λ. The integral is computed by Gauss-Hermite quadrature with
    seven points around the mode of each integrand (Liu and Pierce 1994). Its error is too small to see in a
    picture from s = 1 to 10^6.

    Parameters
    ----------
    location_sd, log_scale_sd : float
        Priors of μ + σ² and log σ, as in `LogNormal`. Above 0.

    Examples
    --------
    >>> from erbayes.bayes import PoissonLogNormal, SizeModel
    >>> SizeModel(PoissonLogNormal()).sizes
    PoissonLogNormal(location_sd=1.5, log_scale_sd=0.5)
    """

    location_sd: float = 1.5
    log_scale_sd: float = 0.5

    def log_weights(self, data: Tensors) -> Any:
        sigma = pt.exp(Level(0.0, self.log_scale_sd)("size_log_sigma"))
        mu = data["log_biased_mean"] + Level(0.0, self.location_sd)("size_location") - sigma**2
        return log_poisson_log_normal(data["size"], mu, sigma) + pt.log(data["width"])


def log_poisson_log_normal(s: Any, mu: Any, sigma: Any) -> Any:
    """Return log P(s) of a Poisson whose log mean is N(μ, σ²), for all sizes at once."""
    # The integrand exp(s η - e^η - (η - μ)²/2σ²) has its mode at η = a - W. Here a = s σ² + μ, and W solves
    # W + log W = a + log σ² (Lambert's function). Newton steps find W; their start is close for any target.
    a = s * sigma**2 + mu
    target = a + 2 * pt.log(sigma)
    w = pt.switch(target > 1, target - pt.log(pt.maximum(target, 1.0)), pt.exp(pt.minimum(target, 1.0)) / 2)
    for _ in range(6):
        w = pt.maximum(w * (1 + target - pt.log(w)) / (1 + w), 1e-12)
    eta = a - w
    spread = sigma / pt.sqrt(1 + w)
    nodes, weights = np.polynomial.hermite.hermgauss(7)
    point = eta[..., None] + np.sqrt(2.0) * spread[..., None] * nodes
    log_integrand = s[..., None] * point - pt.exp(point) - 0.5 * ((point - mu) / sigma) ** 2
    terms = log_integrand + nodes**2 + np.log(weights)
    return pt.logsumexp(terms, axis=-1) + pt.log(spread / sigma) - 0.5 * np.log(np.pi) - pt.gammaln(s + 1)


@dataclass(frozen=True, slots=True)
class Zeta:
    """Size family: power law, up to the end of the grid.

        P(s) ∝ s^(-a)

    Parameters
    ----------
    excess_sd : float
        Prior standard deviation of log(a - 1) around log 1.2. Above 0.

    Examples
    --------
    >>> from erbayes.bayes import SizeModel, Zeta
    >>> SizeModel(Zeta()).sizes
    Zeta(excess_sd=0.6)
    """

    excess_sd: float = 0.6

    def log_weights(self, data: Tensors) -> Any:
        a = 1 + 1.2 * pt.exp(Level(0.0, self.excess_sd)("size_log_excess"))
        return -a * pt.log(data["size"]) + pt.log(data["width"])


@dataclass(frozen=True, slots=True)
class CutZeta:
    """Size family: power law with an exponential cut-off.

        P(s) ∝ s^(-a) exp(-s/κ)

    Parameters
    ----------
    excess_sd : float
        Prior standard deviation of log(a - 1) around log 1.2. Above 0.
    cut_sd : float
        Prior standard deviation of log κ. The prior median of κ is 4 times the mean size of a random record's
        predicted cluster. Above 0.

    Examples
    --------
    >>> from erbayes.bayes import CutZeta, SizeModel
    >>> SizeModel(CutZeta()).sizes
    CutZeta(excess_sd=0.6, cut_sd=1.5)
    """

    excess_sd: float = 0.6
    cut_sd: float = 1.5

    def log_weights(self, data: Tensors) -> Any:
        a = 1 + 1.2 * pt.exp(Level(0.0, self.excess_sd)("size_log_excess"))
        kappa = 4 * pt.exp(data["log_biased_mean"] + Level(0.0, self.cut_sd)("size_log_cut"))
        return -a * pt.log(data["size"]) - data["size"] / kappa + pt.log(data["width"])


@dataclass(frozen=True, slots=True)
class BodyAndTail:
    """Size family: a free probability for each size from 1 to `body`, and a generalised-Pareto tail above.

        P(s) = w_s                                if s ≤ body
        P(s) ∝ (1 + ξ (s - body)/τ)^(-1/ξ - 1)    if s > body

    w_s are the free probabilities. ξ is the shape of the tail, and τ its scale.

    Parameters
    ----------
    body : int
        Number of sizes with a free probability, 1 to 7: these have a bin of their own (see `SizeGrid`).
    concentration : float
        Parameter of the symmetric Dirichlet prior on the probabilities w_s and that of the tail. Above 0.
    shape_mean, shape_sd : float
        Mean and standard deviation of the normal prior of ξ, which is cut to (.02, 2). shape_sd is above 0.
    log_scale_sd : float
        Prior standard deviation of log τ around log body. Above 0.

    Raises
    ------
    DataError
        A body that is no whole number from 1 to 7.
    ValueError
        A concentration or shape_sd that is not above 0 and finite.

    Examples
    --------
    >>> from erbayes.bayes import BodyAndTail, SizeModel
    >>> SizeModel(BodyAndTail(body=5)).sizes.body
    5
    """

    body: int = 7
    concentration: float = 1.0
    shape_mean: float = 0.5
    shape_sd: float = 0.3
    log_scale_sd: float = 1.0

    def __post_init__(self) -> None:
        if not 1 <= whole(self.body, "body") < SINGLE:
            raise DataError(
                f"body must be 1 to {SINGLE - 1} sizes, not {self.body}: larger sizes share bins, so that "
                "none has a probability of its own"
            )
        need_positive("concentration", self.concentration)
        need_positive("standard deviation", self.shape_sd)

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
        # Bins are found by position: those of the first `body` sizes hold one size each.
        excess = data["size"][self.body :] - self.body
        tail = -(1 / xi + 1) * pt.log1p(xi * excess / tau) + pt.log(data["width"][self.body :])
        return pt.concatenate([pt.log(w[:-1]), tail - pt.logsumexp(tail) + pt.log(w[-1])])
