"""What annotators do wrong: rates of their errors, each a number or a prior, and draws of the rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import betaincinv, gammaincinv

from ..._internal.arrays import FloatArray, Seed, generator
from ..._internal.errors import DataError, head, number, whole


@dataclass(frozen=True, slots=True)
class Beta:
    """A Beta prior of a rate. Its mean is a/(a + b), and it weighs as much as a + b observed cases.

    Parameters
    ----------
    a, b : float, above 0
        Imagined cases with and without the error.

    Examples
    --------
    >>> Beta(3, 17).ppf([0.025, 0.5, 0.975]).round(2).tolist()
    [0.03, 0.14, 0.33]
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        for value in (self.a, self.b):
            number(value, "a and b of Beta", lambda x: 0 < x < np.inf, "be above 0 and finite")

    def ppf(self, q: Any) -> FloatArray:
        """Return the quantiles of probabilities `q`, from 0 to 1."""
        return np.asarray(betaincinv(self.a, self.b, q))


@dataclass(frozen=True, slots=True)
class Gamma:
    """A Gamma prior of a number per entity: `cases` were seen in so many `entities`.

    Its mean is cases/entities, and its standard deviation √cases/entities.

    Examples
    --------
    >>> Gamma(2, 100).ppf([0.025, 0.5, 0.975]).round(3).tolist()
    [0.002, 0.017, 0.056]
    """

    cases: float
    entities: float

    def __post_init__(self) -> None:
        for value in (self.cases, self.entities):
            number(value, "cases and entities of Gamma", lambda x: 0 < x < np.inf, "be above 0 and finite")

    def ppf(self, q: Any) -> FloatArray:
        """Return the quantiles of probabilities `q`, 0 or more."""
        return np.asarray(gammaincinv(self.cases, q)) / self.entities


RATES = ["removed", "missed", "kept", "added"]
SHARES = RATES[:3]
"""Rates that are probabilities."""
NONE = dict.fromkeys(RATES, 0.0) | {"unsure": 1.0}
"""An annotator who does nothing wrong."""


@dataclass(frozen=True, slots=True, init=False)
class Annotator:
    """What annotators may have done wrong, in numbers or priors of them. By default nothing.

    A prior is an object with quantiles `ppf`, such as `Beta(3, 17)` or `scipy.stats.uniform(0, 0.2)`.

    Parameters
    ----------
    removed : float or prior
        Probability, below 1, that a true record of a cluster that was opened is struck out or overlooked.
    missed : float or prior
        Probability, below 1, that another cluster with records of the entity is not opened.
    kept : float or prior
        Probability, below 1, that a foreign record of a cluster that was opened is accepted.
    added : float or prior
        Number of foreign predicted clusters that are added to an entity, on average.
    unsure : float or prior
        Odds of an error of draws that nobody could decide, over those of decided ones (see `Responding`).
    source : str
        Where the rates come from, for those who quote the result.

    Examples
    --------
    >>> annotator = Annotator(removed=Beta(2, 38), missed=Beta(3, 17), kept=0.1, added=Gamma(2, 100))
    >>> annotator.draw(2000, rng=1).mean().round(2).to_dict()
    {'removed': 0.05, 'missed': 0.15, 'kept': 0.1, 'added': 0.02, 'unsure': 1.0}
    """

    removed: Any
    missed: Any
    kept: Any
    added: Any
    unsure: Any
    source: str

    def __init__(
        self,
        removed: Any = 0.0,
        missed: Any = 0.0,
        kept: Any = 0.0,
        added: Any = 0.0,
        unsure: Any = 1.0,
        source: str = "judgement",
        **unknown: Any,
    ) -> None:
        if unknown:
            raise DataError(f"annotators have no rate {head([*unknown])}: rates are {', '.join(NONE)}")
        for name, rate in zip(NONE, (removed, missed, kept, added, unsure), strict=True):
            if isinstance(rate, type) or not hasattr(rate, "ppf"):
                number(rate, name, lambda x: 0 <= x < np.inf, "be 0 or more, or a prior such as Beta(3, 17)")
            object.__setattr__(self, name, rate)
        object.__setattr__(self, "source", source)

    def draw(self, number: int, rng: Seed = None) -> pd.DataFrame:
        """Draw the rates of as many annotators, a row each and a column for each rate.

        Each prior is cut into as many equally likely parts, of which each has one draw (a Latin hypercube;
        McKay, Beckman and Conover 1979, Technometrics 21, 239-245).
        """
        rng, number = generator(rng), whole(number, "number of draws")
        table = {}
        for name in NONE:
            rate, q = getattr(self, name), (rng.permutation(number) + rng.random(number)) / number
            table[name] = np.asarray(rate.ppf(q)) if hasattr(rate, "ppf") else np.full(number, float(rate))
        return check_rates(pd.DataFrame(table))


def check_rates(rates: pd.DataFrame) -> pd.DataFrame:
    """Return a table of rates with a column for each, refusing values that none can have."""
    if unknown := sorted(map(str, set(rates.columns) - {*NONE})):
        raise DataError(f"no rate is called {head(unknown)}: columns are {', '.join(NONE)}")
    rates = pd.DataFrame({name: rates.get(name, value) for name, value in NONE.items()}, index=rates.index)
    rates = rates.apply(pd.to_numeric, errors="coerce")
    if rates.empty or not ((rates >= 0).all(axis=None) and (rates["added"] < np.inf).all()):
        raise DataError("rates of errors are numbers of 0 or more, in one row at least")
    if (rates[SHARES] >= 1).any(axis=None):
        raise DataError(f"true labels cannot be imputed if all is {' or '.join(SHARES)}: rates are below 1")
    return rates
