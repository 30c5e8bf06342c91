"""Rates of annotators' errors, known or with a prior."""

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


def drawn(rate: float | Rate, rng: np.random.Generator, size: tuple[int, ...] = ()) -> FloatArray:
    """Draws of a rate, or copies of a known rate, an array of shape `size`."""
    return np.asarray(rate.draw(rng, size)) if isinstance(rate, Rate) else np.full(size, rate, dtype=float)
