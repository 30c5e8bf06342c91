"""Rates of annotators' errors: known, with a prior, or from a comparison of two annotators.

References
----------
Chapman (1951), University of California Publications in Statistics 1, 131-160 (two lists).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from ..._internal.arrays import FloatArray
from ..._internal.errors import number


@runtime_checkable
class Rate(Protocol):
    """An unknown rate with a distribution."""

    def draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        """Draw values of 0 or more, an array of shape `size`."""


@dataclass(frozen=True, slots=True)
class Beta:
    """A Beta prior of a rate. Its mean is a/(a + b), and it weighs as much as a + b observed cases.

    Parameters
    ----------
    a, b : float, above 0
        Imagined cases with and without the error.

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
        """Draw values in [0, 1], an array of shape `size`."""
        return rng.beta(self.a, self.b, size)


@dataclass(frozen=True, slots=True)
class Gamma:
    """A Gamma prior of a number per entity: `cases` were seen in so many `entities`.

    Its mean is cases/entities, and its standard deviation √cases/entities.

    Examples
    --------
    >>> round(float(Gamma(2, 100).draw(np.random.default_rng(1), (10_000,)).mean()), 2)
    0.02
    """

    cases: float
    entities: float

    def __post_init__(self) -> None:
        for value in (self.cases, self.entities):
            number(value, "cases and entities of Gamma", lambda x: 0 < x < np.inf, "be above 0 and finite")

    def draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        """Draw values of 0 or more, an array of shape `size`."""
        return rng.gamma(self.cases, 1 / self.entities, size)


@dataclass(frozen=True, slots=True)
class Recaptured:
    """The share of cases that two annotators both missed, from those that each of them caught.

    The data cannot show it without an assumption, the odds ratio ω = q11 q00/(q10 q01) of the shares caught
    by both, one, the other and neither; vary it. The first three have a Dirichlet posterior. For ω = 1 the
    number missed is (first + ½)(second + ½)/(both + 1) in mean: Chapman's estimator, except for the halves.
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
        """Draw values in [0, 1], an array of shape `size`."""
        mass = np.add([self.both, self.first, self.second], self.prior)
        both, first, second = np.moveaxis(rng.standard_gamma(mass, (*size, 3)), -1, 0)
        with np.errstate(divide="ignore"):
            caught_per_missed = both / (self.odds_ratio * first * second) * (both + first + second)
        return np.asarray(1 / (1 + caught_per_missed))


def drawn(rate: float | Rate, rng: np.random.Generator, size: tuple[int, ...] = ()) -> FloatArray:
    """Draws of a rate, or copies of a known rate, an array of shape `size`."""
    return np.asarray(rate.draw(rng, size)) if isinstance(rate, Rate) else np.full(size, rate, dtype=float)
