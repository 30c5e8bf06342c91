"""Size families: priors on the share P(s) of entities of size s. Parameters are scales of their priors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pymc as pm
import pytensor.tensor as pt

from .grid import RANK
from .priors import NormalPrior, Prior, StudentTPrior, shares, smooth, variable

Tensors = Mapping[str, Any]
FLOOR = 1e-300
"""Smallest share of the records in entities of one size, whose log is taken."""


class SizeFamily(Protocol):
    """A prior on how many entities have each size, such as one of your own (docs/guide/own-parts.md).

    A frozen dataclass of plain values is compiled only once.
    """

    def log_weights(self, data: Tensors) -> Any:
        """Create random variables in a PyMC model, and return the log weight of each bin of sizes."""
        ...


@dataclass(frozen=True, slots=True)
class PredictionInformed:
    """Size family, the default: the histogram of predicted cluster sizes, smoothed and tilted.

        log M_s = log H(s) + b log2 s + g(log2 s) + c 1(s = 1)

    M_s is the number of entities of size s, and H the histogram of predicted sizes, smoothed over .4
    doublings and extended past its largest size. g is a smooth function. The step c is below 0 if missed
    links leave records alone, whatever the size of their entity, and above 0 if strangers are joined.

    A share of the records belongs to further entities, larger than predicted clusters, with log-normal sizes
    of records. Their median is a factor times the mean size of a random record's predicted cluster.

    Parameters
    ----------
    slope : float
        Prior scale of b per doubling, which is t distributed with 3 degrees of freedom. Above 0.
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
    >>> from erbayes.bayes import PredictionInformed
    >>> PredictionInformed(slope=0.5).larger_share
    NormalPrior(mean=-3.5, sd=1.5)
    """

    slope: float = 0.35
    amplitude: float = 0.55
    larger_share: Prior = NormalPrior(-3.5, 1.5)
    larger_factor: Prior = NormalPrior(1.5, 1.0)
    larger_spread: Prior = NormalPrior(0.0, 0.4)
    single: Prior = StudentTPrior(0.0, 0.7)

    def log_weights(self, data: Tensors) -> Any:
        tilt = StudentTPrior(0.0, self.slope)("size_slope") * (data["x"] - data["centre"])
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
class LogNormalSizes:
    """Size family: log-normal on whole sizes, P(s) ∝ φ((log s - μ)/σ)/s with the normal density φ.

    Parameters
    ----------
    location_sd : float
        Prior standard deviation of μ + σ², the median of log s for the entity of a random record, around
        the log of the mean size of a random record's predicted cluster. Above 0.
    log_scale_sd : float
        Prior standard deviation of log σ around 0. Above 0.

    Examples
    --------
    >>> from erbayes.bayes import LogNormalSizes
    >>> LogNormalSizes()
    LogNormalSizes(location_sd=1.5, log_scale_sd=0.5)
    """

    location_sd: float = 1.5
    log_scale_sd: float = 0.5

    def log_weights(self, data: Tensors) -> Any:
        sigma = pt.exp(NormalPrior(0.0, self.log_scale_sd)("size_log_sigma"))
        mu = data["log_biased_mean"] + NormalPrior(0.0, self.location_sd)("size_location") - sigma**2
        ln = pt.log(data["size"])
        return -0.5 * ((ln - mu) / sigma) ** 2 - ln + pt.log(data["width"])


@dataclass(frozen=True, slots=True)
class ZetaSizes:
    """Size family: power law, P(s) ∝ s^(-a), up to the end of the grid.

    Parameters
    ----------
    excess_sd : float
        Prior standard deviation of log(a - 1) around log 1.2. Above 0.

    Examples
    --------
    >>> from erbayes.bayes import ZetaSizes
    >>> ZetaSizes()
    ZetaSizes(excess_sd=0.6)
    """

    excess_sd: float = 0.6

    def log_weights(self, data: Tensors) -> Any:
        a = 1 + 1.2 * pt.exp(NormalPrior(0.0, self.excess_sd)("size_log_excess"))
        return -a * pt.log(data["size"]) + pt.log(data["width"])
