"""Mechanisms of error, each of which turns true cluster codes into predicted ones.

Source: [B22] Binette et al. (2022), arXiv 2210.01230.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, isnan
from typing import Protocol

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from ..arrays import IntArray
from ..errors import number, some, whole
from .sizes import require


class Mechanism(Protocol):
    """How a prediction goes wrong."""

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        """Predicted cluster of each record, 0 to K' - 1, given its true one, 0 to K - 1."""
        ...


def _sizes(codes: IntArray) -> IntArray:
    """Size of each cluster.

    Raises
    ------
    DataError
        Codes that are not 0 to K - 1, each used.
    """
    require(len(codes) > 0, "there are no records to put errors into")
    outside = int(np.count_nonzero((codes < 0) | (codes >= len(codes))))
    require(not outside, f"cluster codes must be 0 to K - 1; {outside} of {len(codes)} are out of range")
    sizes = np.bincount(codes)
    unused = np.flatnonzero(sizes == 0).tolist()
    require(not unused, f"cluster codes must be 0 to K - 1; {len(unused)} are not used: {some(unused)}")
    return sizes


def _compact(codes: IntArray) -> IntArray:
    """The same clusters with codes 0 to K - 1."""
    used = np.bincount(codes) > 0
    return np.asarray((np.cumsum(used) - 1)[codes])


def _need_share(value: float, what: str) -> None:
    number(value, what, lambda x: 0 <= x <= 1, "lie in [0, 1]")


def _some_clusters(wanted: int, clusters: int, what: str, rng: np.random.Generator) -> IntArray:
    """Distinct clusters in random order."""
    require(wanted <= clusters, f"{what} needs {wanted} entities, but there are {clusters}")
    return rng.choice(clusters, wanted, replace=False)


@dataclass(frozen=True, slots=True)
class Misattribution:
    """The paper's noise: records picked at random take the clusters of others picked at random.

    [B22], section 2.4 "Simulation Study": round(rate N) distinct records are picked, and each takes the
    original cluster of a record drawn uniformly from all, with replacement (so itself once in N times).
    For large entities P ≈ R ≈ (1 - rate)²; a true link survives where neither end was picked. Small
    entities lose precision further, singletons being joined by intruders.

    Parameters
    ----------
    rate : float in [0, 1]

    Raises
    ------
    DataError
        Rate outside [0, 1].

    Examples
    --------
    >>> Misattribution(0.0).apply(np.array([0, 0, 1]), np.random.default_rng(1))
    array([0, 0, 1])
    """

    rate: float

    def __post_init__(self) -> None:
        _need_share(self.rate, "rate of Misattribution")

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        """Predicted cluster of each record."""
        _sizes(codes)
        picked = rng.choice(len(codes), round(self.rate * len(codes)), replace=False, shuffle=False)
        moved = codes.copy()
        moved[picked] = codes[rng.integers(len(codes), size=len(picked))]
        return _compact(moved)


@dataclass(frozen=True, slots=True)
class Splits:
    """Each entity of two records or more is split in two with probability `rate`.

    The size of one part is uniform on 1 to s - 1, its records are a random choice. A split loses
    s(s+1)/6 links on average, a third of those of a large entity. P = 1,
    E R = 1 - rate Σ_{s≥2} s(s+1)/6 / |T|.

    Parameters
    ----------
    rate : float in [0, 1]

    Raises
    ------
    DataError
        Rate outside [0, 1].

    Examples
    --------
    >>> np.bincount(Splits(1.0).apply(np.array([0, 0, 1]), np.random.default_rng(1)))
    array([1, 1, 1])
    """

    rate: float

    def __post_init__(self) -> None:
        _need_share(self.rate, "rate of Splits")

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        """Predicted cluster of each record."""
        sizes = _sizes(codes)
        split = (sizes > 1) & (rng.random(len(sizes)) < self.rate)
        part = np.where(split, rng.integers(1, np.maximum(sizes, 2)), 0)
        order = rng.permutation(len(codes))
        order = order[np.argsort(codes[order], kind="stable")]
        rank = np.empty_like(codes)
        rank[order] = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return _compact(np.where(rank < part[codes], codes + len(sizes), codes))


@dataclass(frozen=True, slots=True)
class Merges:
    """A share of the entities is merged, each with another one drawn uniformly.

    round(rate K) distinct entities are picked. Merges are transitive, so chains of picks give larger
    clusters, of any number of entities as the rate nears 1. R = 1; each merge of a and b adds s_a s_b
    false links, hence P ≈ |T|/(|T| + rate K s̄²) for a low rate.

    Parameters
    ----------
    rate : float in [0, 1]

    Raises
    ------
    DataError
        Rate outside [0, 1].

    Examples
    --------
    >>> np.bincount(Merges(0.5).apply(np.array([0, 0, 1]), np.random.default_rng(1)))
    array([3])
    """

    rate: float

    def __post_init__(self) -> None:
        _need_share(self.rate, "rate of Merges")

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        """Predicted cluster of each record."""
        clusters = len(_sizes(codes))
        picked = rng.choice(clusters, round(self.rate * clusters), replace=False, shuffle=False)
        other = (picked + rng.integers(1, max(clusters, 2), size=len(picked))) % clusters
        merges = coo_array((np.ones(len(picked)), (picked, other)), shape=(clusters, clusters))
        _, merged = connected_components(merges, directed=False)
        return np.asarray(merged, dtype=np.int64)[codes]


@dataclass(frozen=True, slots=True)
class Homonyms:
    """Giant lumps: each predicted cluster of `lumps` gathers records of `size` entities.

    lumps × size distinct entities are picked uniformly, and each of their records joins the lump of its
    entity with probability `share`. A lump of m records adds about C2(m) false links, so a few ruin P. R = 1
    for a share of 1; otherwise the touched entities keep share² + (1-share)² of their links on average.

    Parameters
    ----------
    lumps : int
        0 or more.
    size : int
        Entities in each lump, 2 or more.
    share : float in [0, 1]

    Raises
    ------
    DataError
        Parameters outside these ranges, or fewer entities than lumps × size.

    Examples
    --------
    >>> np.bincount(Homonyms(2, 3).apply(np.arange(6), np.random.default_rng(1)))
    array([3, 3])
    """

    lumps: int
    size: int
    share: float = 1.0

    def __post_init__(self) -> None:
        whole(self.lumps, "lumps of Homonyms", 0)
        whole(self.size, "size of Homonyms", 2)
        _need_share(self.share, "share of Homonyms")

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        """Predicted cluster of each record."""
        clusters = len(_sizes(codes))
        picked = _some_clusters(self.lumps * self.size, clusters, "Homonyms", rng)
        lump = np.full(clusters, -1)
        lump[picked] = clusters + np.arange(len(picked)) // self.size
        joins = (lump[codes] >= 0) & (rng.random(len(codes)) < self.share)
        return _compact(np.where(joins, lump[codes], codes))


@dataclass(frozen=True, slots=True)
class SizeDependent:
    """Records drop out of their entity into clusters of their own, the likelier the larger it is.

    Each record of an entity of size s does so independently with probability p(s),
    logit p(s) = base + slope log s. P = 1, E R = Σ C2(s)(1 - p(s))² / |T|.

    Parameters
    ----------
    base : float
        logit p(1).
    slope : float
        Above 0, large entities suffer more.

    Raises
    ------
    DataError
        A base that is NaN, a slope that is not finite.

    Examples
    --------
    >>> np.bincount(SizeDependent(np.inf, 0.0).apply(np.array([0, 0, 1]), np.random.default_rng(1)))
    array([1, 1, 1])
    """

    base: float
    slope: float

    def __post_init__(self) -> None:
        number(self.base, "base of SizeDependent", lambda x: not isnan(x), "be a number")
        number(self.slope, "slope of SizeDependent", isfinite, "be finite")

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        """Predicted cluster of each record."""
        sizes = _sizes(codes)
        out = rng.random(len(codes)) < expit(self.base + self.slope * np.log(sizes))[codes]
        moved = codes.copy()
        moved[out] = len(sizes) + np.arange(np.count_nonzero(out))
        return _compact(moved)


@dataclass(frozen=True, slots=True)
class RareErrors:
    """Exactly `entities` entities are wrong: merged in pairs drawn uniformly. All others are perfect.

    R = 1 and 1 - P ≈ ½ entities s̄² / |T|: errors that a sample of a few hundred will mostly miss.

    Parameters
    ----------
    entities : int
        Even, 0 or more.

    Raises
    ------
    DataError
        An odd or negative number, or more than there are.

    Examples
    --------
    >>> np.bincount(RareErrors(2).apply(np.array([0, 1, 1]), np.random.default_rng(1)))
    array([3])
    """

    entities: int

    def __post_init__(self) -> None:
        number(self.entities, "entities of RareErrors", lambda x: x >= 0 and x % 2 == 0, "be even, 0 or more")

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        """Predicted cluster of each record."""
        clusters = len(_sizes(codes))
        picked = _some_clusters(self.entities, clusters, "RareErrors", rng)
        merged = np.arange(clusters)
        merged[picked[::2]] = picked[1::2]
        return _compact(merged[codes])


@dataclass(frozen=True, slots=True)
class Chain:
    """Mechanisms one after another, each taking the clusters that the one before it left.

    `Chain(())` is a perfect prediction.

    Parameters
    ----------
    steps : sequence of Mechanism

    Examples
    --------
    >>> noise = Chain((Splits(1.0), RareErrors(2)))
    >>> np.sort(np.bincount(noise.apply(np.array([0, 0, 1]), np.random.default_rng(1))))
    array([1, 2])
    """

    steps: Sequence[Mechanism]

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        """Predicted cluster of each record."""
        _sizes(codes)
        codes = codes.copy()
        for step in self.steps:
            codes = step.apply(codes, rng)
        return codes
