"""Size families: priors on the share P(s) of entities of size s. Parameters are scales of their priors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.special import softmax

from .._internal.errors import DataError
from .grid import RANK
from .priors import NormalPrior, Prior, StudentTPrior, smooth, variable

Tensors = Mapping[str, Any]
FLOOR = 1e-300
"""Smallest share of the records in entities of one size, whose log is taken."""


class SizeFamily(Protocol):
    """A prior on how many entities have each size, such as one of your own (docs/guide/own-parts.md).

    A frozen dataclass of plain values is built only once.
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
        larger = softmax(-0.5 * z**2 - log_size + pt.log(data["width"]), axis=-1) * pm.math.sigmoid(share)
        of_records = softmax(tilted + log_size, axis=-1) * pm.math.sigmoid(-share) + larger
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


@dataclass(frozen=True, slots=True)
class DistributionSizes:
    """Size family of a distribution (see `size_family`), by (name, prior, link) of each parameter."""

    distribution: Any
    parameters: tuple[tuple[str, Prior, Callable[[Any], Any]], ...]

    @property
    def title(self) -> str:
        return str(self.distribution.__name__)

    def log_weights(self, data: Tensors) -> Any:
        values = {name: link(variable(prior, f"size_{name}")) for name, prior, link in self.parameters}
        size = pt.floor(data["size"]).astype("int64")
        return pm.logp(self.distribution.dist(**values), size) + pt.log(data["width"])


def size_family(distribution: Any, **parameters: tuple[Prior, Callable[[Any], Any]]) -> DistributionSizes:
    """Return a size family in which sizes of entities have a distribution of PyMC, without 0.

    Parameters
    ----------
    distribution : class
        A discrete distribution of whole numbers without a largest one, such as `pm.NegativeBinomial`,
        `pm.Geometric` or `pm.DiscreteWeibull`. A fit refuses others.
    **parameters : (prior, function)
        The prior of a number on the whole line, and the function of tensors that makes the parameter of it,
        such as `pt.exp` for one above 0 or `pt.sigmoid` for a probability.

    Raises
    ------
    DataError
        No class of discrete distributions, or parameters that are no such pairs or that it does not take.

    See Also
    --------
    erbayes.bayes.prior : draws precision and recall from the prior, which shows what it says.

    Examples
    --------
    >>> import pymc as pm
    >>> import pytensor.tensor as pt
    >>> from erbayes import bayes
    >>> mean, shape = bayes.NormalPrior(1.5, 1.0), bayes.NormalPrior(0.0, 1.5)
    >>> family = bayes.size_family(pm.NegativeBinomial, mu=(mean, pt.exp), alpha=(shape, pt.exp))
    >>> bayes.SizeModel(sizes=family).tied["sizes"].title
    'NegativeBinomial'
    """
    if not (isinstance(distribution, type) and issubclass(distribution, pm.Discrete)):
        raise DataError(
            f"size_family takes a discrete distribution, as pm.NegativeBinomial, not {distribution!r}"
        )
    for name, pair in parameters.items():
        if not (isinstance(pair, tuple) and len(pair) == 2 and callable(pair[1])):
            raise DataError(
                f"'{name}' of a size family must be a prior and a function, as (NormalPrior(0, 1), pt.exp)"
            )
    make: Any = distribution.dist  # type: ignore[attr-defined]
    try:
        make(**{name: link(pt.dscalar(name)) for name, (_, link) in parameters.items()})
    except (TypeError, ValueError) as error:
        named = ", ".join(parameters) or "nothing"
        raise DataError(f"{distribution.__name__} cannot be made of {named}: {error}") from error
    return DistributionSizes(distribution, tuple((name, *pair) for name, pair in parameters.items()))
