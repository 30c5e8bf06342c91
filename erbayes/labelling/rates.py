"""Rates of annotators' errors: known, with a prior, or from what two annotators found.

Source: Chapman (1951), University of California Publications in Statistics 1, 131-160 (two lists).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from ..arrays import FloatArray
from ..errors import number


@runtime_checkable
class Rate(Protocol):
    """A share that is not known."""

    def draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        """Draws in [0, 1], of shape `size`."""
        ...


@dataclass(frozen=True, slots=True)
class Beta:
    """A Beta prior: mean a/(a+b), as sure as a + b cases seen.

    Parameters
    ----------
    a, b : float
        Above 0.

    Examples
    --------
    >>> round(float(Beta(20, 80).draw(np.random.default_rng(1), (10_000,)).mean()), 2)
    0.2
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        for value in (self.a, self.b):
            number(value, "a and b of Beta", lambda x: 0 < x < np.inf, "be above 0 and finite")

    def draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        """Draws in [0, 1], of shape `size`."""
        return rng.beta(self.a, self.b, size)


@dataclass(frozen=True, slots=True)
class Recaptured:
    """Share that two annotators both missed, from what each of them found.

    With shares q of a 2 × 2 table, odds ratio ω = q11 q00/(q10 q01). The posterior of the three seen cells
    under a Dirichlet prior gives q00 = ω q10 q01/q11, and the share is q00/(q00 + q10 + q01 + q11). With
    the default prior the missed are (first + ½)(second + ½)/(both + 1) in mean, Chapman's estimator but
    for the halves, which keep a doubt where counts are 0.

    What nobody can find is not in the data: ω > 1 (easy finds are easy for both) is an assumption, to vary.

    Parameters
    ----------
    both, first, second : float
        Finds of both, of only the first, of only the second.
    odds_ratio : float
        ω, above 0; 1 for independent annotators.
    prior : (float, float, float)
        Dirichlet masses of both, only the first, only the second.

    Raises
    ------
    DataError
        Negative counts, an odds ratio or a prior mass not above 0.

    Examples
    --------
    >>> share = Recaptured(60, 15, 20).draw(np.random.default_rng(1), (10_000,))
    >>> round(float(np.median(share)), 2)  # 15 · 20/60 = 5 of 100
    0.05
    """

    both: float
    first: float
    second: float
    odds_ratio: float = 1.0
    prior: tuple[float, float, float] = (2.0, 0.5, 0.5)

    def __post_init__(self) -> None:
        for count in (self.both, self.first, self.second):
            number(count, "counts", lambda x: 0 <= x < np.inf, "be 0 or more and finite")
        for value, what in ((self.odds_ratio, "the odds ratio"), *((m, "prior masses") for m in self.prior)):
            number(value, what, lambda x: 0 < x < np.inf, "be above 0 and finite")

    def draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        """Draws in [0, 1], of shape `size`."""
        mass = np.add([self.both, self.first, self.second], self.prior)
        both, first, second = np.moveaxis(rng.standard_gamma(mass, (*size, 3)), -1, 0)
        with np.errstate(divide="ignore"):
            seen = both / (self.odds_ratio * first * second) * (both + first + second)
        return np.asarray(1 / (1 + seen))


def drawn(rate: float | Rate, rng: np.random.Generator, size: tuple[int, ...] = ()) -> FloatArray:
    """Draws of a rate, or a known one repeated."""
    return np.asarray(rate.draw(rng, size)) if isinstance(rate, Rate) else np.full(size, rate, dtype=float)


def need_rate(rate: float | Rate, what: str) -> None:
    """Refuse known rates outside [0, 1]."""
    if not isinstance(rate, Rate):
        number(rate, what, lambda x: 0 <= x <= 1, "lie in [0, 1]")
