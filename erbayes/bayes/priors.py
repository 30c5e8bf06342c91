"""Priors and random variables of the parts of size models, and families of sizes, the priors of P(s)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.distribution import SymbolicRandomVariable
from pymc.pytensorf import replace_rng_nodes
from pytensor.compile.mode import Mode
from pytensor.graph.replace import clone_replace
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.special import softmax
from scipy.special import gammaln

from .._internal.errors import DataError
from .contract import RANK

Tensors = Mapping[str, Any]
"""The data of a part, as tensors by name."""
TAIL = 3.0
"""Degrees of freedom of priors whose scale is itself uncertain.

Their tag `heavy_tails` names location (None for 0) and scale, by which importance sampling lightens tails.
"""

Prior = Callable[[str], Any]
"""A prior of one number, which is a distribution of PyMC, as ``pm.Normal.dist(0, 1)``, or a callable.

The callable takes a name and creates a variable of that name in the current PyMC model, as `NormalPrior` or
``lambda name: pm.Normal(name, 0, 1)``.
"""


def variable(prior: Any, name: str) -> Any:
    """Create the variable of a prior in the current PyMC model, and return it.

    Raises
    ------
    DataError
        An object that is no prior, or a callable that creates no variable of one number of this name.
    """
    node = getattr(prior, "owner", None)
    is_distribution = node is not None and isinstance(node.op, RandomVariable | SymbolicRandomVariable)
    if not callable(prior) and not is_distribution:
        raise DataError(
            f"the prior of '{name}' is a {type(prior).__name__}: it must be a distribution as "
            "pm.Normal.dist(0, 1), or be called with a name and create a variable of it, as NormalPrior(0, 1)"
        )
    model = pm.modelcontext(None)
    if callable(prior):
        number = prior(name)
    else:  # a copy, with a stream of random numbers of its own
        number = model.register_rv(*replace_rng_nodes([clone_replace(prior)]), name)
    if name not in model.named_vars:
        raise DataError(f"the prior of '{name}' created no variable of that name in the model")
    if number.ndim:
        raise DataError(f"the prior of '{name}' created {number.ndim} dimensions: it must create one number")
    return number


def need_positive(what: str, value: float) -> None:
    """Raise ValueError unless a parameter of a prior is above 0 and finite."""
    if not 0 < value < np.inf:
        raise ValueError(f"a prior's {what} must be above 0 and finite, not {value}")


@dataclass(frozen=True, slots=True)
class StudentTPrior:
    """Student's t with 3 degrees of freedom, for slopes; a `scale` that is not above 0 raises ValueError.

    Examples
    --------
    >>> import pymc as pm
    >>> from erbayes.bayes import StudentTPrior
    >>> with pm.Model() as model:
    ...     slope = StudentTPrior(mean=0.0, scale=0.25)("slope")
    >>> model.free_RVs
    [slope]
    """

    mean: float
    scale: float

    def __post_init__(self) -> None:
        need_positive("scale", self.scale)

    def __call__(self, name: str) -> Any:
        mean, scale = hyper(f"{name}_mean", self.mean), hyper(f"{name}_scale", self.scale)
        # PyTensor would take a plain 3.0 for a number of single precision
        slope = pm.StudentT(name, np.float64(TAIL), mu=mean, sigma=scale)
        slope.tag.heavy_tails = f"{name}_mean", f"{name}_scale"
        return slope


@dataclass(frozen=True, slots=True)
class NormalPrior:
    """Normal prior. An `sd` that is not above 0 raises ValueError.

    Examples
    --------
    >>> import pymc as pm
    >>> from erbayes.bayes import NormalPrior
    >>> with pm.Model() as model:
    ...     level = NormalPrior(mean=-0.5, sd=1.5)("level")
    >>> model.free_RVs
    [level]
    """

    mean: float
    sd: float

    def __post_init__(self) -> None:
        need_positive("standard deviation", self.sd)

    def __call__(self, name: str) -> Any:
        return pm.Normal(name, hyper(f"{name}_mean", self.mean), hyper(f"{name}_sd", self.sd))


def smooth(name: str, rank: int, scale: float) -> Callable[[Any], Any]:
    """Create a smooth function in the current PyMC model: a Gaussian process whose amplitude is uncertain.

    It is a weighted sum of the columns of a basis (see `contract.basis`). The weights have a multivariate t
    distribution with 3 degrees of freedom, a normal one with its common scale integrated out.

    Parameters
    ----------
    name : str
        The weights are the variable "<name>_weights".
    rank : int
        Columns of the basis: `erbayes.bayes.contract.RANK` for the bases in the data of a part.
    scale : float
        Standard deviation of the function if the amplitude is 1. If it is not above 0, ValueError.

    Returns
    -------
    callable
        Function of a basis, (J, rank), that returns the values of the smooth function, (J,).
    """
    need_positive("amplitude", scale)

    def logp(value: Any, mean: Any, scale: Any) -> Any:
        square = pt.sum(value**2, axis=-1) / scale**2
        constant = gammaln((TAIL + rank) / 2) - gammaln(TAIL / 2) - rank / 2 * np.log(TAIL * np.pi)
        return constant - rank * pt.log(scale) - (TAIL + rank) / 2 * pt.log1p(square / TAIL)

    def random(mean: Any, scale: Any, rng: Any = None, size: Any = None) -> Any:
        shape = (*(size or ()), rank)
        common = rng.chisquare(TAIL, (*shape[:-1], 1)) / TAIL
        return mean + scale * rng.standard_normal(shape) / np.sqrt(common)

    pm.modelcontext(None).add_coord(f"{name}_basis", np.arange(rank))
    made: dict[str, Any] = {"signature": "(r),()->(r)", "dims": f"{name}_basis"}
    size = hyper(f"{name}_scale", scale)
    w = pm.CustomDist(f"{name}_weights", np.zeros(rank), size, logp=logp, random=random, **made)
    w.tag.heavy_tails = None, f"{name}_scale"
    return lambda basis: (basis * w).sum(axis=-1)


NEVER = -40.0
"""Log hazard of an event that does not happen."""


def flawless(name: str, chance: float, observed: Any) -> tuple[Any, Any]:
    """Create a Bernoulli variable: 1 if the prediction is right about all entities of the population.

    Parameters
    ----------
    chance : float
        Prior probability of 1. Outside [0, 1] it raises ValueError.
    observed : tensor
        Numbers of sampled entities with an error. If one has, the variable is 0.

    Returns
    -------
    variable, log_density : tensors
        The variable, and the log joint density of the data and of the state without errors.
    """
    if not 0 <= chance <= 1:
        raise ValueError(f"a prior probability must lie in [0, 1], not {chance}")
    if not pm.modelcontext(None).data_vars and pt.sum(observed).eval(mode=Mode("py", None)) > 0:
        return pt.constant(0), pt.constant(-np.inf)  # of a model whose data are numbers
    p = hyper(f"{name}_chance", chance)
    return pm.Bernoulli(name, p), pt.switch(pt.sum(observed) > 0, -np.inf, pt.log(p))


def counts(name: str, n: Any, log_p: Any, observed: Any, **kwargs: Any) -> Any:
    """Add multinomial counts over the last axis to the likelihood, without terms of the counts alone."""

    def logp(value: Any, n: Any, log_p: Any) -> Any:
        return pt.sum(value * log_p, axis=-1)

    def random(n: Any, log_p: Any, rng: Any = None, size: Any = None) -> Any:
        p = np.exp(log_p)
        return rng.multinomial(n, p / p.sum(axis=-1, keepdims=True))

    made: dict[str, Any] = {"signature": "(),(k)->(k)", "dtype": "int64", "observed": observed, **kwargs}
    return pm.CustomDist(name, n, log_p, logp=logp, random=random, **made)


def events(name: str, n: Any, log_hazard: Any, observed: Any) -> Any:
    """Add binomial counts of an event of probability 1 - exp(-e^h) in sampled bins to the likelihood."""

    def logp(value: Any, n: Any, log_hazard: Any) -> Any:
        hazard = pt.exp(pt.clip(log_hazard, NEVER, 20.0))
        return value * pt.log(-pt.expm1(-hazard)) - (n - value) * hazard

    def random(n: Any, log_hazard: Any, rng: Any = None, size: Any = None) -> Any:
        return rng.binomial(n, -np.expm1(-np.exp(np.clip(log_hazard, NEVER, 20.0))))

    made: dict[str, Any] = {"signature": "(),()->()", "dtype": "int64", "dims": "sampled_size"}
    return pm.CustomDist(name, n, log_hazard, logp=logp, random=random, observed=observed, **made)


def hyper(name: str, value: float) -> Any:
    """Return a parameter of a prior: data if the model has data, so that no value compiles it anew."""
    of_data = bool(pm.modelcontext(None).data_vars)
    return pm.Data(name, np.float64(value)) if of_data else np.float64(value)


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

    A share of the records belongs to further entities with log-normal sizes of records. Their median is a
    factor times the mean size of a random record's predicted cluster.

    Parameters
    ----------
    slope : float
        Prior scale of b per doubling, which is t distributed with 3 degrees of freedom. Above 0.
    amplitude : float
        Prior scale of g, a Gaussian process with a length scale of 2.5 doublings. Above 0.
    larger_share, larger_factor, larger_spread : Prior
        Of further entities, the logit of the share and the logs of the factor and of the sd of log sizes.
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
