"""Synthetic populations: a distribution of sizes makes the entities, a mechanism of error the prediction.

A *size distribution* draws sizes of entities that add to a number of records, and a *mechanism* turns true
cluster codes into predicted ones. Both are protocols: any object with a method `draw` or `apply` will do.

Symbols of the docstrings are the size s of an entity and the mean size s̄, K entities, N records, the number
C2(s) = s(s - 1)/2 of links of an entity, |T| = Σ C2(s) true links, pairwise precision P and recall R, and
E R, the mean of R over random errors.

[B22] is Binette et al. (2022), arXiv 2210.01230.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Protocol

import numpy as np
import pandas as pd
from scipy.special import zeta

from .._internal.arrays import FloatArray, IntArray, Seed, generator, label_components
from .._internal.errors import DataError, NotIdentified, head, need_object, number, whole
from ..datasets import customers
from ..design.sample import Sample
from ..labels import RecordDraws
from ..metrics.columns import Column, Known
from ..metrics.definitions import Metric, resolve_metric
from ..units.clustering import Clustering
from ..units.measuring import measure, measure_predicted
from ..units.units import Units

__all__ = [
    "Chain",
    "Empirical",
    "LogNormal",
    "Merges",
    "Misattribution",
    "Population",
    "Splits",
    "Zeta",
    "customers",
    "population",
    "simulate",
]


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
        what = "exponent of Zeta"
        if self.largest is None:
            number(self.exponent, what, lambda x: 1 < x < np.inf, "be above 1 without `largest`")
        else:
            number(self.exponent, what, lambda x: 0 <= x < np.inf, "be 0 or more and finite")
            whole(self.largest, "largest of Zeta")

    def draw(self, records: int, rng: np.random.Generator) -> IntArray:
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
        return fill(rng.choice(np.asarray(self.sizes), records), records)


class Mechanism(Protocol):
    """A rule by which a prediction errs."""

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        """Turn true clusters, (N,), into predicted ones."""


def measure_clusters(codes: IntArray) -> IntArray:
    """Return the size of each cluster, (K,), whose codes must be 0 to K - 1 with each in use."""
    require(len(codes) > 0, "there are no records to put errors into")
    outside = int(np.count_nonzero((codes < 0) | (codes >= len(codes))))
    require(not outside, f"cluster codes must be 0 to K - 1; {outside} of {len(codes)} are out of range")
    sizes = np.bincount(codes)
    unused = np.flatnonzero(sizes == 0).tolist()
    require(not unused, f"cluster codes must be 0 to K - 1; {len(unused)} are not used: {head(unused)}")
    return sizes


def number_compactly(codes: IntArray) -> IntArray:
    """Number the clusters anew, without gaps in the codes."""
    used = np.bincount(codes) > 0
    return np.asarray((np.cumsum(used) - 1)[codes])


@dataclass(frozen=True, slots=True)
class _Rate:
    """A mechanism that has one parameter, a share in [0, 1]."""

    rate: float

    def __post_init__(self) -> None:
        number(self.rate, f"rate of {type(self).__name__}", lambda x: 0 <= x <= 1, "lie in [0, 1]")


@dataclass(frozen=True, slots=True)
class Misattribution(_Rate):
    """Records that take the cluster of another record, the noise of [B22], section 2.4.

    round(rate N) distinct records are chosen at random, and each takes the original cluster of a record that
    is drawn uniformly from all N, which can be the record itself. A true link survives if neither of its
    records is chosen, hence P ≈ R ≈ (1 - rate)² if entities are large. Small entities have a lower precision,
    because foreign records join singletons.

    Parameters
    ----------
    rate : float in [0, 1]
        Share of the records that are chosen.

    Examples
    --------
    >>> Misattribution(0.0).apply(np.array([0, 0, 1]), np.random.default_rng(1))
    array([0, 0, 1])
    """

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        measure_clusters(codes)
        picked = rng.choice(len(codes), round(self.rate * len(codes)), replace=False, shuffle=False)
        predicted = codes.copy()
        predicted[picked] = codes[rng.integers(len(codes), size=len(picked))]
        return number_compactly(predicted)


@dataclass(frozen=True, slots=True)
class Splits(_Rate):
    """Entities of two records or more that are split in two, each with probability `rate`.

    The size of one part is uniform on 1 to s - 1, and its records are a random choice. A split loses
    s(s + 1)/6 links on average, which is a third of the links of a large entity. Precision stays 1, and
    recall loses these links:

        P = 1,  E R = 1 - rate Σ_{s≥2} s(s + 1)/6 / |T|

    Parameters
    ----------
    rate : float in [0, 1]
        Probability that an entity is split.

    Examples
    --------
    >>> np.bincount(Splits(1.0).apply(np.array([0, 0, 1]), np.random.default_rng(1)))
    array([1, 1, 1])
    """

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        sizes = measure_clusters(codes)
        split = (sizes > 1) & (rng.random(len(sizes)) < self.rate)
        part = np.where(split, rng.integers(1, np.maximum(sizes, 2)), 0)
        order = rng.permutation(len(codes))
        order = order[np.argsort(codes[order], kind="stable")]
        rank = np.empty_like(codes)
        # the random rank of a record in its entity decides which part it is in
        rank[order] = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return number_compactly(np.where(rank < part[codes], codes + len(sizes), codes))


@dataclass(frozen=True, slots=True)
class Merges(_Rate):
    """A share of the entities, each merged with another one that is drawn uniformly.

    round(rate K) distinct entities are chosen. Merges are transitive: chains of them make larger clusters, of
    any number of entities if the rate is near 1. Recall stays 1. A merge of entities a and b adds s_a s_b
    false links. If the rate is low, precision is therefore

        P ≈ |T|/(|T| + rate K s̄²)

    At rates of some per thousand, most samples of a few hundred draws miss all errors.

    Parameters
    ----------
    rate : float in [0, 1]
        Share of the entities that are chosen.

    Examples
    --------
    >>> np.bincount(Merges(0.5).apply(np.array([0, 0, 1]), np.random.default_rng(1)))
    array([3])
    """

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        clusters = len(measure_clusters(codes))
        picked = rng.choice(clusters, round(self.rate * clusters), replace=False, shuffle=False)
        # one step or more leads to another entity, never to the same
        other = (picked + rng.integers(1, max(clusters, 2), size=len(picked))) % clusters
        return label_components(picked, other, clusters)[codes]


@dataclass(frozen=True, slots=True)
class Chain:
    """Mechanisms one after another: each changes the clusters that the one before it made.

    `Chain(())` makes a perfect prediction.

    Examples
    --------
    >>> noise = Chain((Splits(1.0), Merges(0.4)))
    >>> np.sort(np.bincount(noise.apply(np.array([0, 0, 1]), np.random.default_rng(1))))
    array([1, 2])
    """

    steps: Sequence[Mechanism]

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        measure_clusters(codes)
        codes = codes.copy()
        for step in self.steps:
            codes = step.apply(codes, rng)
        return codes


def population(sizes: EntitySizes, records: int, rng: Seed = None) -> pd.Series:
    """Draw the entity of each record of a synthetic population, (N,), in which those of one are neighbours.

    Examples
    --------
    >>> population(Empirical([2]), 3, np.random.default_rng(1)).tolist()
    [0, 0, 1]
    """
    need_object(sizes, "draw", "a distribution of sizes is an object such as Zeta(2.5, 60)")
    whole(records, "records of a population")
    drawn = sizes.draw(records, generator(rng))
    index = pd.RangeIndex(records, name="record")
    return pd.Series(np.repeat(np.arange(len(drawn)), drawn), index, name="entity")


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """A prediction and the truth of the same records, from which every metric has a known value.

    Attributes
    ----------
    pred, true : Series, (N,)
        Predicted cluster and true entity, both indexed by record.
    dropped : int
        Number of records that only the prediction or only the truth had.
    units : Units
        All entities, counted from the prediction and the truth.

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
        require(
            self.pred.index.equals(self.true.index),
            f"the {len(self.pred)} records of the prediction are not the {len(self.true)} of the truth "
            "in the same order; Population.of restricts both to what they share",
        )
        object.__setattr__(self, "units", measure(self.pred, self.true))

    @classmethod
    def of(cls, prediction: Any, truth: Any) -> Population:
        """Make a population from two clusterings of real records. It has the records that both cover."""
        pred, true = Clustering.of(prediction, "prediction"), Clustering.of(truth, "truth")
        common = pred.records.intersection(true.records)
        require(
            len(common) > 0,
            f"the prediction ({len(pred.records)} records of type {pred.records.dtype}) and the truth "
            f"({len(true.records)} of type {true.records.dtype}) share no record",
        )
        dropped = len(pred.records) + len(true.records) - 2 * len(common)
        first, second = (
            pd.Series(side.clusters.take(side.codes[side.records.get_indexer(common)]), index=common)
            for side in (pred, true)
        )
        return cls(first, second, dropped)

    def total(self, column: Column | Known) -> float:
        """Return the total of a column over entities, or else over predicted clusters."""
        if isinstance(column, Known):
            column = column.column
        units = self.units
        # entities as units do not have it, but predicted clusters may
        if not column.identified(units):
            units = measure_predicted(self.pred, self.true, self.pred.unique())
        return float(column.count(units).sum())

    def value(self, metric: Metric | str) -> float:
        """Return the true value of a metric: its formula at the population totals."""
        metric = resolve_metric(metric)
        totals = np.array([self.total(c) for c in metric.columns])
        with np.errstate(divide="ignore", invalid="ignore"):
            value = float(metric.formula(*totals))
        if np.isnan(value):
            raise NotIdentified(f"{metric.name} is 0/0 in this population of {len(self.true)} records")
        return value

    def label(self, drawn: RecordDraws, unresolved: Sequence[Any] = ()) -> Sample:
        """Return drawn records with their true labels, as a sample; `unresolved` ones have no label."""
        table, design = drawn.table, drawn.design(self.true, unresolved=unresolved)
        if drawn.of_clusters:
            return Sample(measure_predicted(self.pred, self.true, table["cluster"]), design)
        entities = self.true.loc[table["record"][~table["record"].isin(unresolved)]]
        return Sample(self.units.take(np.unique(self.units.ids.get_indexer(pd.Index(entities)))), design)

    def __repr__(self) -> str:
        clusters = f"{len(self.units)} entities, {self.pred.nunique()} predicted clusters"
        return f"Population({len(self.true)} records, {clusters}, {self.dropped} records dropped)"


def simulate(sizes: EntitySizes, errors: Mechanism, records: int, rng: Seed = None) -> Population:
    """Make a synthetic population: entities with `sizes`, and a prediction with `errors`.

    Parameters
    ----------
    sizes : EntitySizes
    errors : Mechanism
    records : int
        Number of records N, 1 or more.
    rng : Generator, int or None

    Raises
    ------
    DataError
        Fewer than 1 record, or fewer entities than the errors need.

    Examples
    --------
    >>> from erbayes import metrics
    >>> everyone = simulate(Zeta(2.5), Merges(0.005), 2000, np.random.default_rng(1))
    >>> everyone.value(metrics.pairwise_recall), everyone.value(metrics.splits)
    (1.0, 5.0)
    """
    rng = generator(rng)
    true = population(sizes, records, rng)
    need_object(errors, "apply", "errors are made by an object such as Misattribution(0.1)")
    pred = pd.Series(errors.apply(true.to_numpy(), rng), true.index, name="cluster")
    return Population(pred, true)
