"""Laws of cluster sizes. Below, s is the size of an entity, s̄ its mean, K the number of entities.

Source: [P06] Pitman (2006), Combinatorial Stochastic Processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Protocol

import numpy as np
from scipy.special import zeta
from scipy.stats import nbinom

from ..arrays import FloatArray, IntArray
from ..errors import DataError, number, some, whole


def require(met: bool, message: str) -> None:
    """Raise DataError with the message unless the condition is met."""
    if not met:
        raise DataError(message)


class SizeLaw(Protocol):
    """A law of cluster sizes."""

    def draw(self, records: int, rng: np.random.Generator) -> IntArray:
        """Sizes of clusters, each 1 or more, that sum to `records`."""
        ...


def _need_records(records: int) -> None:
    whole(records, "records of a population")


def _fill(sizes: IntArray | FloatArray, records: int) -> IntArray:
    """The first of `sizes` (as many as `records`) that fill the population, the last one truncated."""
    ends = np.cumsum(np.clip(sizes, 1, records).astype(np.int64))
    ends = np.minimum(ends[: np.searchsorted(ends, records) + 1], records)
    return np.diff(ends, prepend=0)


def _draw_from(weight: FloatArray, records: int, rng: np.random.Generator) -> IntArray:
    """Independent sizes with P(s) ∝ weight[s - 1] that fill the population."""
    return _fill(1 + rng.choice(len(weight), records, p=weight / weight.sum()), records)


@dataclass(frozen=True, slots=True)
class Zeta:
    """Independent sizes under a power law, P(s) ∝ s^-exponent for s = 1, 2, …, largest.

    The last cluster is truncated where the population is full. Without `largest` the mean is infinite
    for an exponent of 2 or less: a giant then holds a good part of the records.

    Parameters
    ----------
    exponent : float
        Above 1; 0 or more where `largest` is given.
    largest : int, optional

    Raises
    ------
    DataError
        Parameters outside these ranges.

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
        """Sizes that sum to `records`."""
        _need_records(records)
        weight = np.arange(1.0, (self.largest or records) + 1) ** -self.exponent
        if self.largest is None:
            weight[-1] = zeta(self.exponent, records)  # Σ over s ≥ records: all are truncated alike
        return _draw_from(weight, records, rng)


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Independent sizes s = ⌈exp(mu + sigma z)⌉ with z standard normal; the last cluster is truncated.

    P(S ≤ s) = Φ((log s - mu)/sigma).

    Parameters
    ----------
    mu : float
    sigma : float
        Above 0.

    Raises
    ------
    DataError
        Parameters outside these ranges.

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
        """Sizes that sum to `records`."""
        _need_records(records)
        return _fill(np.ceil(rng.lognormal(self.mu, self.sigma, records)), records)


@dataclass(frozen=True, slots=True)
class NegativeBinomial:
    """Independent sizes under a negative binomial law given s ≥ 1; the last cluster is truncated.

    Before the condition the mean is μ and the variance μ + μ²/α, P(0) = (α/(α+μ))^α; given s ≥ 1 the
    mean is μ/(1 - P(0)).

    Parameters
    ----------
    mean : float
        μ > 0, before the condition.
    dispersion : float
        α > 0; the smaller, the heavier the tail. α = 1 is geometric, α → ∞ Poisson.

    Raises
    ------
    DataError
        Parameters outside these ranges.

    Examples
    --------
    >>> int(NegativeBinomial(3.0, 0.5).draw(1000, np.random.default_rng(1)).sum())
    1000
    """

    mean: float
    dispersion: float

    def __post_init__(self) -> None:
        for name, value in (("mean", self.mean), ("dispersion", self.dispersion)):
            number(value, f"{name} of NegativeBinomial", lambda x: 0 < x < np.inf, "be above 0 and finite")

    def draw(self, records: int, rng: np.random.Generator) -> IntArray:
        """Sizes that sum to `records`."""
        _need_records(records)
        law = (self.dispersion, self.dispersion / (self.dispersion + self.mean))
        weight = np.asarray(nbinom.pmf(np.arange(1, records + 1), *law), dtype=np.float64)
        weight[-1] = nbinom.sf(records - 1, *law)  # Σ over s ≥ records: all are truncated alike
        return _draw_from(weight, records, rng)


@dataclass(frozen=True, slots=True)
class PitmanYor:
    """Table sizes of the Chinese restaurant process with two parameters, [P06] section 3.2.

    After n records at K tables, the next opens a table with probability (θ + σK)/(θ + n) and joins
    table k with probability (n_k - σ)/(θ + n). Exact and exchangeable: nothing is truncated. With
    σ = 0 this is Ewens' law, of about θ log(N/θ) entities; with σ > 0 entities grow as N^σ and the
    share of those of size s falls as s^-(1+σ).

    Parameters
    ----------
    strength : float
        θ > -σ.
    discount : float
        0 ≤ σ < 1.

    Raises
    ------
    DataError
        Parameters outside these ranges.

    Notes
    -----
    No record waits for the one before it. Record n picks an earlier record, the first one with
    probability (1 + θ)/(θ + n) and any other with 1/(θ + n), and comes to its table; but where that
    record opened its table, it opens one of its own with probability σ, or (θ + σ)/(1 + θ) at the
    first record. These add up to the probabilities above. So a record opens a table if and only if all
    coins along its chain of picks say so, which pointer doubling finds in O(log log N) rounds.

    Examples
    --------
    >>> int(PitmanYor(10.0, 0.5).draw(1000, np.random.default_rng(1)).sum())
    1000
    """

    strength: float
    discount: float = 0.0

    def __post_init__(self) -> None:
        least = -number(self.discount, "discount of PitmanYor", lambda x: 0 <= x < 1, "lie in [0, 1)")
        number(
            self.strength,
            "strength of PitmanYor",
            lambda x: least < x < np.inf,
            f"be above {least:g} and finite",
        )

    def draw(self, records: int, rng: np.random.Generator) -> IntArray:
        """Sizes that sum to `records`, in the order in which tables are opened."""
        _need_records(records)
        record = np.arange(records)
        place = rng.random(records) * (record + self.strength)
        picked = np.where(place < 1 + self.strength, 0, place - self.strength).astype(np.int64)
        picked = np.minimum(picked, np.maximum(record - 1, 0))  # rounding may reach the record itself
        first = (self.strength + self.discount) / (1 + self.strength)
        opens = rng.random(records) < np.where(picked == 0, first, self.discount)
        opens[0] = True
        ancestor = picked
        while ancestor.any():
            opens &= opens[ancestor]
            ancestor = ancestor[ancestor]
        table = np.where(opens, record, picked)
        while not np.array_equal(table, above := table[table]):
            table = above
        return np.bincount(table, minlength=records)[opens]


@dataclass(frozen=True, slots=True, eq=False)
class Empirical:
    """Sizes drawn with replacement from given ones; the last cluster is truncated.

    Parameters
    ----------
    sizes : int array or sequence
        Sizes to draw from, 1 or more, such as `Clustering.sizes`; a copy is kept.

    Raises
    ------
    DataError
        No sizes, or some that are not integers of 1 or more.

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
        require(not len(bad), f"{len(bad)} of {len(sizes)} sizes are below 1, such as {some(bad.tolist())}")
        object.__setattr__(self, "sizes", sizes.astype(np.int64))

    def draw(self, records: int, rng: np.random.Generator) -> IntArray:
        """Sizes that sum to `records`."""
        _need_records(records)
        return _fill(rng.choice(np.asarray(self.sizes), records), records)
