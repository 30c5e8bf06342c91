"""Random variables that the models share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from ..errors import DataError

TAIL = 3.0
"""Degrees of freedom of priors whose scale is itself uncertain."""


Prior = Callable[[str], Any]
"""A prior of one number, a callable that creates a variable of the given name in the current PyMC model.

Examples are `Level` and `Slope`, ``lambda name: pm.Normal(name, 0, 1)`` and any method that takes a name.
"""


def variable(prior: Prior, name: str) -> Any:
    """The variable that a prior creates in the current PyMC model.

    Raises
    ------
    DataError
        A prior that is not callable, creates no variable of this name, or one of several numbers.
    """
    if not callable(prior):
        raise DataError(
            f"the prior of '{name}' is a {type(prior).__name__}: it must be called with a name and create a "
            "variable of that name, as Level(0, 1) or lambda name: pm.Normal(name, 0, 1)"
        )
    made = prior(name)
    if name not in pm.modelcontext(None).named_vars:
        raise DataError(f"the prior of '{name}' created no variable of that name in the model")
    if made.ndim:
        raise DataError(f"the prior of '{name}' created {made.ndim} dimensions: it must create one number")
    return made


def positive(what: str, value: float) -> None:
    """Raise ValueError unless a parameter of a prior is above 0 and finite."""
    if not 0 < value < np.inf:
        raise ValueError(f"a prior's {what} must be above 0 and finite, not {value}")


@dataclass(frozen=True, slots=True)
class Slope:
    """Prior of a change per doubling: t with 3 degrees of freedom, a normal whose scale is uncertain.

    Parameters
    ----------
    mean, scale : float
    """

    mean: float
    scale: float

    def __post_init__(self) -> None:
        positive("scale", self.scale)

    def __call__(self, name: str) -> Any:
        mean, scale = hyper(f"{name}_mean", self.mean), hyper(f"{name}_scale", self.scale)
        return pm.StudentT(name, TAIL, mu=mean, sigma=scale)


@dataclass(frozen=True, slots=True)
class Level:
    """Normal prior.

    Parameters
    ----------
    mean, sd : float
    """

    mean: float
    sd: float

    def __post_init__(self) -> None:
        positive("standard deviation", self.sd)

    def __call__(self, name: str) -> Any:
        return pm.Normal(name, hyper(f"{name}_mean", self.mean), hyper(f"{name}_sd", self.sd))


def smooth(name: str, rank: int, scale: float) -> Callable[[Any], Any]:
    """A smooth function of a basis, (J, rank): a Gaussian process whose amplitude is uncertain.

    The coefficients have a multivariate t distribution with 3 degrees of freedom, which is the normal
    one with its common scale integrated out.

    Parameters
    ----------
    name : str
        Of the function: its coefficients are the variable "<name>_weights".
    rank : int
        Columns of the basis; `erbayes.bayes.grid.RANK` for those among the data of a part.
    scale : float
        Prior standard deviation of the function, up to its uncertain amplitude.

    Returns
    -------
    callable
        Values of the function, (J,), on a basis, (J, rank).
    """
    positive("amplitude", scale)

    def logp(value: Any, mean: Any, scale: Any) -> Any:
        square = pt.sum(value**2, axis=-1) / scale**2
        constant = pt.gammaln((TAIL + rank) / 2) - pt.gammaln(TAIL / 2) - rank / 2 * np.log(TAIL * np.pi)
        return constant - rank * pt.log(scale) - (TAIL + rank) / 2 * pt.log1p(square / TAIL)

    def random(mean: Any, scale: Any, rng: Any = None, size: Any = None) -> Any:
        shape = (*(size or ()), rank)
        common = rng.chisquare(TAIL, (*shape[:-1], 1)) / TAIL
        return mean + scale * rng.standard_normal(shape) / np.sqrt(common)

    pm.modelcontext(None).add_coord(f"{name}_basis", np.arange(rank))
    w = pm.CustomDist(
        f"{name}_weights",
        np.zeros(rank),
        hyper(f"{name}_scale", scale),
        logp=logp,
        random=random,
        signature="(r),()->(r)",
        dims=f"{name}_basis",
    )
    w.tag.scale_of_smooth = f"{name}_scale"  # importance sampling widens its proposals along such weights
    return lambda basis: (basis * w).sum(axis=-1)


NEVER = -40.0
"""Log hazard of what does not happen."""


def flawless(name: str, chance: float, observed: Any) -> tuple[Any, Any]:
    """Whether no entity at all errs, a Bernoulli variable; and its log density with the data.

    Parameters
    ----------
    chance : float
        Prior probability.
    observed : tensor
        Entities seen to err: with one there are errors.
    """
    if not 0 <= chance <= 1:
        raise ValueError(f"a prior probability of 0 to 1, not {chance}")
    p = hyper(f"{name}_chance", chance)
    return pm.Bernoulli(name, p), pt.switch(pt.sum(observed) > 0, -np.inf, pt.log(p))


def counts(name: str, n: Any, log_p: Any, observed: Any, **kwargs: Any) -> Any:
    """Multinomial counts over the last axis; log densities leave out what depends on counts alone."""

    def logp(value: Any, n: Any, log_p: Any) -> Any:
        return pt.sum(value * log_p, axis=-1)

    def random(n: Any, log_p: Any, rng: Any = None, size: Any = None) -> Any:
        p = np.exp(log_p)
        return rng.multinomial(n, p / p.sum(axis=-1, keepdims=True))

    return pm.CustomDist(
        name,
        n,
        log_p,
        logp=logp,
        random=random,
        signature="(),(k)->(k)",
        dtype="int64",
        observed=observed,
        **kwargs,
    )


def normalised(weights: Any) -> Any:
    """Log probabilities over the last axis from log weights."""
    top = weights.max(axis=-1, keepdims=True)
    return weights - top - pt.log(pt.exp(weights - top).sum(axis=-1, keepdims=True))


def events(name: str, n: Any, log_hazard: Any, observed: Any) -> Any:
    """Binomial counts of what happens with probability 1 - exp(-e^h), in each sampled bin.

    Log densities leave out what depends on counts alone.
    """

    def logp(value: Any, n: Any, log_hazard: Any) -> Any:
        hazard = pt.exp(pt.clip(log_hazard, NEVER, 20.0))
        return value * pt.log(-pt.expm1(-hazard)) - (n - value) * hazard

    def random(n: Any, log_hazard: Any, rng: Any = None, size: Any = None) -> Any:
        return rng.binomial(n, -np.expm1(-np.exp(np.clip(log_hazard, NEVER, 20.0))))

    return pm.CustomDist(
        name,
        n,
        log_hazard,
        logp=logp,
        random=random,
        signature="(),()->()",
        dtype="int64",
        observed=observed,
        dims="sampled_size",
    )


def hyper(name: str, value: float) -> Any:
    """A parameter of a prior, as data: another value needs no new compilation."""
    return pm.Data(name, np.float64(value))
