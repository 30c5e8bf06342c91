"""Synthetic populations: entities by a law of their sizes, predictions by a mechanism of error.

A *size law* draws cluster sizes that fill a number of records, a *mechanism* turns true cluster codes
into predicted ones. Both are protocols: any object with `draw` or `apply` will do. Below, s is the
size of an entity, s̄ its mean, K the number of entities, N that of records, |T| = Σ C2(s).

Sources: [B22] Binette et al. (2022), arXiv 2210.01230; [P06] Pitman (2006), Combinatorial Stochastic
Processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, zeta
from scipy.stats import nbinom

from .clustering import Clustering, DataError, FloatArray, IntArray, some
from .metrics import Metric
from .units import Column, Known, NotIdentified, Units, measure, measure_predicted


def _require(met: bool, message: str) -> None:
    if not met:
        raise DataError(message)


# Size laws


class SizeLaw(Protocol):
    """A law of cluster sizes."""

    def draw(self, records: int, rng: np.random.Generator) -> IntArray:
        """Sizes of clusters, each 1 or more, that sum to `records`."""
        ...


def _need_records(records: int) -> None:
    _require(records >= 1, f"a population needs 1 record or more, not {records}")


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
            _require(1 < self.exponent < np.inf,
                     f"exponent of Zeta must be above 1 without `largest`, not {self.exponent}")  # fmt: skip
        else:
            _require(0 <= self.exponent < np.inf, f"exponent of Zeta must be 0 or more, not {self.exponent}")
            _require(self.largest >= 1, f"largest of Zeta must be 1 or more, not {self.largest}")

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
        _require(bool(np.isfinite(self.mu)), f"mu of LogNormal must be finite, not {self.mu}")
        _require(0 < self.sigma < np.inf, f"sigma of LogNormal must be above 0, not {self.sigma}")

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
            _require(0 < value < np.inf, f"{name} of NegativeBinomial must be above 0, not {value}")

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
        _require(0 <= self.discount < 1, f"discount of PitmanYor must lie in [0, 1), not {self.discount}")
        _require(-self.discount < self.strength < np.inf,
                 f"strength of PitmanYor must be above {-self.discount}, not {self.strength}")  # fmt: skip

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
        _require(sizes.ndim == 1 and len(sizes) > 0, "Empirical needs a list of one size or more")
        _require(np.issubdtype(sizes.dtype, np.integer), f"sizes must be integers, not {sizes.dtype}")
        bad = sizes[sizes < 1]
        _require(not len(bad), f"{len(bad)} of {len(sizes)} sizes are below 1, such as {some(bad.tolist())}")
        object.__setattr__(self, "sizes", sizes.astype(np.int64))

    def draw(self, records: int, rng: np.random.Generator) -> IntArray:
        """Sizes that sum to `records`."""
        _need_records(records)
        return _fill(rng.choice(np.asarray(self.sizes), records), records)


def population(law: SizeLaw, records: int, rng: np.random.Generator) -> pd.Series:
    """True entity, 0 to K - 1, of records 0 to `records` - 1; those of an entity are neighbours.

    Raises
    ------
    DataError
        Fewer than 1 record.

    Examples
    --------
    >>> population(Empirical([2]), 3, np.random.default_rng(1)).tolist()
    [0, 0, 1]
    """
    sizes = law.draw(records, rng)
    index = pd.RangeIndex(records, name="record")
    return pd.Series(np.repeat(np.arange(len(sizes)), sizes), index, name="entity")


# Mechanisms of error


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
    _require(len(codes) > 0, "there are no records to put errors into")
    outside = int(np.count_nonzero((codes < 0) | (codes >= len(codes))))
    _require(not outside, f"cluster codes must be 0 to K - 1; {outside} of {len(codes)} are out of range")
    sizes = np.bincount(codes)
    unused = np.flatnonzero(sizes == 0).tolist()
    _require(not unused, f"cluster codes must be 0 to K - 1; {len(unused)} are not used: {some(unused)}")
    return sizes


def _compact(codes: IntArray) -> IntArray:
    """The same clusters with codes 0 to K - 1."""
    used = np.bincount(codes) > 0
    return np.asarray((np.cumsum(used) - 1)[codes])


def _need_share(value: float, what: str) -> None:
    _require(0 <= value <= 1, f"{what} must lie in [0, 1], not {value}")


def _some_clusters(wanted: int, clusters: int, what: str, rng: np.random.Generator) -> IntArray:
    """Distinct clusters in random order."""
    _require(wanted <= clusters, f"{what} needs {wanted} entities, but there are {clusters}")
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
        _require(self.lumps >= 0, f"lumps of Homonyms must be 0 or more, not {self.lumps}")
        _require(self.size >= 2, f"size of Homonyms must be 2 entities or more, not {self.size}")
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
        _require(not np.isnan(self.base), "base of SizeDependent is NaN")
        _require(bool(np.isfinite(self.slope)), f"slope of SizeDependent must be finite, not {self.slope}")

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
        _require(self.entities >= 0 and self.entities % 2 == 0,
                 f"entities of RareErrors must be even, 0 or more, not {self.entities}")  # fmt: skip

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


# Populations


def _restrict(clustering: Clustering, records: pd.Index) -> pd.Series:
    at = clustering.records.get_indexer(records)
    return pd.Series(clustering.clusters.take(clustering.codes[at]), index=records)


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """A prediction and the truth on the same records, and what is thereby known.

    Attributes
    ----------
    pred, true : Series, (N,)
        Predicted cluster and true entity, both indexed by record.
    dropped : int
        Records that only one of both covered.
    units : Units
        The census of entities, derived from both.

    Raises
    ------
    DataError
        Series that do not have the same records in the same order.

    Examples
    --------
    >>> from erbayes import metrics
    >>> everyone = Population.of({1: "a", 2: "a", 3: "a"}, {1: "x", 2: "x", 3: "y", 4: "y"})
    >>> everyone
    Population(3 records, 2 entities, 1 predicted clusters, 1 records dropped)
    >>> round(everyone.value(metrics.pairwise_precision), 3)
    0.333
    """

    pred: pd.Series
    true: pd.Series
    dropped: int = 0
    units: Units = field(init=False)

    def __post_init__(self) -> None:
        _require(self.pred.index.equals(self.true.index),
                 f"the {len(self.pred)} records of the prediction are not the {len(self.true)} of the truth "
                 "in the same order; Population.of restricts both to what they share")  # fmt: skip
        object.__setattr__(self, "units", measure(self.pred, self.true))

    @classmethod
    def of(cls, prediction: Any, truth: Any) -> Population:
        """From two clusterings of real records, restricted to those that both cover.

        Parameters
        ----------
        prediction, truth : memberships
            See `Clustering.of`.

        Raises
        ------
        DataError
            Invalid memberships, or no record in common.
        """
        pred, true = Clustering.of(prediction, "prediction"), Clustering.of(truth, "truth")
        common = pred.records.intersection(true.records, sort=False)
        _require(len(common) > 0,
                 f"the prediction ({len(pred.records)} records of type {pred.records.dtype}) and the truth "
                 f"({len(true.records)} of type {true.records.dtype}) share no record")  # fmt: skip
        dropped = len(pred.records) + len(true.records) - 2 * len(common)
        return cls(_restrict(pred, common), _restrict(true, common), dropped)

    def total(self, column: Column | Known) -> float:
        """Population total of a column, from the census of entities or, failing that, of predictions."""
        if isinstance(column, Known):
            column = column.column
        units = self.units
        if not column.identified(units):
            units = measure_predicted(self.pred, self.true, self.pred.unique())
        return float(column.count(units).sum())

    def value(self, metric: Metric) -> float:
        """The true value of a metric: its formula at the population totals.

        Raises
        ------
        NotIdentified
            A metric that is 0/0 here, such as precision where no two records are linked.
        """
        totals = np.array([self.total(c) for c in metric.columns])
        with np.errstate(divide="ignore", invalid="ignore"):
            value = float(metric.formula(*totals))
        if np.isnan(value):
            raise NotIdentified(f"{metric.name} is 0/0 in this population of {len(self.true)} records")
        return value

    def __repr__(self) -> str:
        return (f"Population({len(self.true)} records, {len(self.units)} entities, "
                f"{self.pred.nunique()} predicted clusters, {self.dropped} records dropped)")  # fmt: skip


def simulate(law: SizeLaw, errors: Mechanism, records: int, rng: np.random.Generator) -> Population:
    """A synthetic population: entities by `law`, their prediction by `errors`.

    Parameters
    ----------
    law : SizeLaw
    errors : Mechanism
    records : int
        N, 1 or more.
    rng : Generator
        The same seed gives the same population.

    Raises
    ------
    DataError
        Fewer than 1 record, or fewer entities than the errors need.

    Examples
    --------
    >>> from erbayes import metrics
    >>> found = simulate(Zeta(2.5), RareErrors(10), 2000, np.random.default_rng(1))
    >>> found.value(metrics.pairwise_recall), found.value(metrics.splits)
    (1.0, 5.0)
    """
    true = population(law, records, rng)
    pred = pd.Series(errors.apply(true.to_numpy(), rng), true.index, name="cluster")
    return Population(pred, true)
