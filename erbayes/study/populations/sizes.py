"""Laws of entity sizes. Symbols are those of `erbayes.study.populations`.

Source: [P06] Pitman (2006), Combinatorial Stochastic Processes.
"""

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


class SizeLaw(Protocol):
    """A law of entity sizes."""

    def draw(self, records: int, rng: np.random.Generator) -> IntArray:
        """Draw sizes of entities that fill a population.

        Parameters
        ----------
        records : int
            Number of records N, 1 or more.
        rng : Generator

        Returns
        -------
        int array, (K,)
            Sizes, each 1 or more, whose sum is `records`.
        """
        ...


def _need_records(records: int) -> None:
    """Raise DataError if a population has no records."""
    whole(records, "records of a population")


def _fill(sizes: IntArray | FloatArray, records: int) -> IntArray:
    """Return the first sizes that fill the population, with the last one cut; `sizes` has N of them."""
    ends = np.cumsum(np.clip(sizes, 1, records).astype(np.int64))
    # the last entity is cut, so that sizes sum to the number of records
    ends = np.minimum(ends[: np.searchsorted(ends, records) + 1], records)
    return np.diff(ends, prepend=0)


def _draw_from(weight: FloatArray, records: int, rng: np.random.Generator) -> IntArray:
    """Draw independent sizes, with P(s) ∝ weight[s - 1], that fill the population."""
    return _fill(1 + rng.choice(len(weight), records, p=weight / weight.sum()), records)


@dataclass(frozen=True, slots=True)
class Zeta:
    """Independent sizes under a power law: P(s) ∝ s^-exponent for s = 1, 2, …, largest.

    The last entity is cut if it exceeds the population. If `largest` is None and the exponent is 2 or less,
    the mean size is infinite. One giant then holds a large part of the records.

    Parameters
    ----------
    exponent : float
        Above 1; with `largest`, 0 or more.
    largest : int, optional
        Largest size, 1 or more.

    Raises
    ------
    DataError
        A parameter outside its range.

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
        """Draw sizes that add to `records`."""
        _need_records(records)
        weight = np.arange(1.0, (self.largest or records) + 1) ** -self.exponent
        if self.largest is None:
            weight[-1] = zeta(self.exponent, records)  # Σ over s ≥ records: all are truncated alike
        return _draw_from(weight, records, rng)


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Independent sizes that are log-normal and rounded up. The last entity is cut to fill the population.

    The size is s = ⌈exp(mu + sigma z)⌉, with z standard normal. Its distribution function is
    P(S ≤ s) = Φ((log s - mu)/sigma), with Φ the standard normal one.

    Parameters
    ----------
    mu : float
        Mean of the log size before it is rounded up.
    sigma : float
        Standard deviation of the log size before it is rounded up, above 0.

    Raises
    ------
    DataError
        A parameter outside its range.

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
        """Draw sizes that add to `records`."""
        _need_records(records)
        return _fill(np.ceil(rng.lognormal(self.mu, self.sigma, records)), records)


@dataclass(frozen=True, slots=True)
class NegativeBinomial:
    """Independent sizes under a negative binomial law without 0. The last entity is cut to fit.

    With 0 the mean is μ, the variance μ + μ²/α, and P(0) = (α/(α + μ))^α. Without 0 the mean is
    μ/(1 - P(0)).

    Parameters
    ----------
    mean : float
        μ, above 0: the mean of the law with 0.
    dispersion : float
        α, above 0. The tail is heavier if α is smaller: α = 1 is geometric, α → ∞ Poisson.

    Raises
    ------
    DataError
        A parameter outside its range.

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
        """Draw sizes that add to `records`."""
        from scipy.stats import nbinom  # a second of imports, which few need

        _need_records(records)
        law = (self.dispersion, self.dispersion / (self.dispersion + self.mean))
        weight = np.asarray(nbinom.pmf(np.arange(1, records + 1), *law), dtype=np.float64)
        weight[-1] = nbinom.sf(records - 1, *law)  # Σ over s ≥ records: all are truncated alike
        return _draw_from(weight, records, rng)


@dataclass(frozen=True, slots=True)
class PitmanYor:
    """Sizes of tables in the Chinese restaurant process with two parameters, [P06] section 3.2.

    Records come one after another, and each table is an entity. If n records sit at K tables, the next record
    opens a table with probability (θ + σK)/(θ + n). It joins table k, of n_k records, with probability
    (n_k - σ)/(θ + n). The law is exact and exchangeable, because no entity is cut.

    If σ = 0, this is Ewens' law, with about θ log(N/θ) entities. If σ > 0, the number of entities grows as
    N^σ, and the share of entities of size s falls as s^-(1+σ).

    Parameters
    ----------
    strength : float
        θ, above -σ.
    discount : float
        σ in [0, 1).

    Raises
    ------
    DataError
        A parameter outside its range.

    Notes
    -----
    The code draws all records at once, by a way to the same probabilities:

    1. Record n chooses an earlier record: the first with probability (1 + θ)/(θ + n), any other with
       1/(θ + n). It joins the table of that record.
    2. Exception: if that record opened its table, record n opens one of its own with probability σ. At the
       first record this probability is (θ + σ)/(1 + θ).

    A record therefore opens a table if and only if the coins of all records in its chain of choices say so.
    Pointer doubling follows the chains in O(log log N) rounds.

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
        """Draw sizes that add to `records`, in the order in which tables are opened."""
        _need_records(records)
        record = np.arange(records)
        place = rng.random(records) * (record + self.strength)
        picked = np.where(place < 1 + self.strength, 0, place - self.strength).astype(np.int64)
        picked = np.minimum(picked, np.maximum(record - 1, 0))  # rounding may reach the record itself
        first = (self.strength + self.discount) / (1 + self.strength)
        opens = rng.random(records) < np.where(picked == 0, first, self.discount)
        opens[0] = True
        ancestor = picked
        # pointers are doubled, which takes log n rounds in place of a loop over records
        while ancestor.any():
            opens &= opens[ancestor]
            ancestor = ancestor[ancestor]
        table = np.where(opens, record, picked)
        while not np.array_equal(table, above := table[table]):
            table = above
        return np.bincount(table, minlength=records)[opens]


@dataclass(frozen=True, slots=True, eq=False)
class Empirical:
    """Sizes drawn with replacement from a list of sizes. The last entity is cut to fill the population.

    Parameters
    ----------
    sizes : int array or sequence
        Sizes to draw from, each 1 or more, such as `Clustering.sizes`. A copy is kept.

    Raises
    ------
    DataError
        No sizes, or sizes that are not integers of 1 or more.

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
        """Draw sizes that add to `records`."""
        _need_records(records)
        return _fill(rng.choice(np.asarray(self.sizes), records), records)
