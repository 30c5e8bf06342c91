"""Distributions of entity sizes. Symbols are those of `erbayes.study.populations`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Protocol

import numpy as np
from scipy.special import zeta

from ..._internal.arrays import FloatArray, IntArray
from ..._internal.errors import DataError, head, number, whole


def require(condition: bool, message: str) -> None:
    """Raise DataError with a message if a condition is false."""
    if not condition:
        raise DataError(message)


class EntitySizes(Protocol):
    """A distribution of entity sizes."""

    def draw(self, records: int, rng: np.random.Generator) -> IntArray:
        """Draw sizes of entities that fill a population."""


def fill(sizes: IntArray | FloatArray, records: int) -> IntArray:
    """Return the first sizes that fill the population, with the last one cut; `sizes` has N of them."""
    ends = np.cumsum(np.clip(sizes, 1, records).astype(np.int64))
    # the last entity is cut, so that sizes sum to the number of records
    ends = np.minimum(ends[: np.searchsorted(ends, records) + 1], records)
    return np.diff(ends, prepend=0)


def draw_from(weight: FloatArray, records: int, rng: np.random.Generator) -> IntArray:
    """Draw independent sizes, with P(s) ∝ weight[s - 1], that fill the population."""
    return fill(1 + rng.choice(len(weight), records, p=weight / weight.sum()), records)


@dataclass(frozen=True, slots=True)
class Zeta:
    """Independent sizes with zeta distribution: P(s) ∝ s^-exponent for s = 1, 2, …, largest.

    The last entity is cut if it exceeds the population. If `largest` is None and the exponent is 2 or less,
    the mean size is infinite, and one entity has a large part of the records.

    Parameters
    ----------
    exponent : float
        Above 1; with `largest`, 0 or more.
    largest : int, optional
        Largest size, 1 or more.

    Examples
    --------
    >>> sizes = Zeta(2.5, largest=20).draw(1000, np.random.default_rng(1))
    >>> int(sizes.sum()), bool(sizes.max() <= 20)
    (1000, True)
    """

    exponent: float
    largest: int | None = None

    def __post_init__(self) -> None:
        if self.largest is None:
            number(
                self.exponent, "exponent of Zeta", lambda x: 1 < x < np.inf, "be above 1 without `largest`"
            )
        else:
            number(self.exponent, "exponent of Zeta", lambda x: 0 <= x < np.inf, "be 0 or more and finite")
            whole(self.largest, "largest of Zeta")

    def draw(self, records: int, rng: np.random.Generator) -> IntArray:
        whole(records, "records of a population")
        weight = np.arange(1.0, (self.largest or records) + 1) ** -self.exponent
        if self.largest is None:
            weight[-1] = zeta(self.exponent, records)  # Σ over s ≥ records, which are cut
        return draw_from(weight, records, rng)


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Independent sizes that are log-normal and rounded up. The last entity is cut to fill the population.

    The size is s = ⌈exp(mu + sigma z)⌉, with z standard normal, so that P(S ≤ s) = Φ((log s - mu)/sigma).

    Parameters
    ----------
    mu, sigma : float
        Mean and standard deviation, above 0, of the log size before it is rounded up.

    Examples
    --------
    >>> int(LogNormal(1.0, 0.8).draw(1000, np.random.default_rng(1)).sum())
    1000
    """

    mu: float
    sigma: float

    def __post_init__(self) -> None:
        number(self.mu, "mu of LogNormal", isfinite, "be finite")
        number(self.sigma, "sigma of LogNormal", lambda x: 0 < x < np.inf, "be above 0 and finite")

    def draw(self, records: int, rng: np.random.Generator) -> IntArray:
        whole(records, "records of a population")
        return fill(np.ceil(rng.lognormal(self.mu, self.sigma, records)), records)


@dataclass(frozen=True, slots=True, eq=False)
class Empirical:
    """Sizes drawn with replacement from a list of sizes. The last entity is cut to fill the population.

    Parameters
    ----------
    sizes : int array or sequence
        Sizes to draw from, each 1 or more, such as `Clustering.sizes`, which are copied.

    Examples
    --------
    >>> Empirical([2]).draw(5, np.random.default_rng(1))
    array([2, 2, 1])
    """

    sizes: IntArray | Sequence[int]

    def __post_init__(self) -> None:
        sizes = np.array(self.sizes)
        require(sizes.ndim == 1 and len(sizes) > 0, "Empirical needs a list of one size or more")
        require(np.issubdtype(sizes.dtype, np.integer), f"sizes must be integers, not {sizes.dtype}")
        bad = sizes[sizes < 1]
        require(not len(bad), f"{len(bad)} of {len(sizes)} sizes are below 1, such as {head(bad.tolist())}")
        object.__setattr__(self, "sizes", sizes.astype(np.int64))

    def draw(self, records: int, rng: np.random.Generator) -> IntArray:
        whole(records, "records of a population")
        return fill(rng.choice(np.asarray(self.sizes), records), records)
