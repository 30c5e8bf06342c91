"""Populations of the benchmarks: laws of sizes and mechanisms of error that only studies use.

`import populations as sim` also has those of `erbayes.study.populations`, and releases of PatentsView. [P06]
is Pitman (2006), Combinatorial Stochastic Processes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite, isnan

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit
from scipy.stats import nbinom

from erbayes import Sample, UniformClusters, UniformRecords
from erbayes._internal.arrays import FloatArray, IntArray
from erbayes._internal.errors import number, whole
from erbayes.datasets import patentsview_mentions, patentsview_release
from erbayes.design import ByPredictedSize
from erbayes.engine import taylor
from erbayes.metrics.definitions import Metric
from erbayes.study.populations import (
    Chain,
    Empirical,
    EntitySizes,
    LogNormal,
    Mechanism,
    Merges,
    Misattribution,
    Population,
    Splits,
    Zeta,
    customers,
    draw_from,
    measure_clusters,
    number_compactly,
    population,
    require,
    simulate,
)
from erbayes.units import Units

__all__ = [
    "Chain",
    "Empirical",
    "EntitySizes",
    "LogNormal",
    "Mechanism",
    "Merges",
    "Misattribution",
    "Population",
    "RareErrors",
    "Splits",
    "Zeta",
    "customers",
    "population",
    "simulate",
]

TRUTH = "20220630"
"""The release of PatentsView that stands for the truth."""


@dataclass(frozen=True, slots=True)
class NegativeBinomial:
    """Independent sizes under a negative binomial law without 0. The last entity is cut to fit.

    With 0 the mean is μ, the variance μ + μ²/α, and P(0) = (α/(α + μ))^α. Without 0 the mean is
    μ/(1 - P(0)).
    """

    mean: float
    dispersion: float

    def __post_init__(self) -> None:
        for name, value in (("mean", self.mean), ("dispersion", self.dispersion)):
            number(value, f"{name} of NegativeBinomial", lambda x: 0 < x < np.inf, "be above 0 and finite")

    def draw(self, records: int, rng: np.random.Generator) -> IntArray:
        """Draw sizes that add to `records`."""
        whole(records, "records of a population")
        law = (self.dispersion, self.dispersion / (self.dispersion + self.mean))
        weight = np.asarray(nbinom.pmf(np.arange(1, records + 1), *law), dtype=np.float64)
        weight[-1] = nbinom.sf(records - 1, *law)  # Σ over s ≥ records: all are truncated alike
        return draw_from(weight, records, rng)


@dataclass(frozen=True, slots=True)
class PitmanYor:
    """Sizes of tables in the Chinese restaurant process with two parameters, [P06] section 3.2.

    Records come one after another, and each table is an entity. If n records sit at K tables, the next record
    opens a table with probability (θ + σK)/(θ + n). It joins table k, of n_k records, with probability
    (n_k - σ)/(θ + n). The law is exact and exchangeable, because no entity is cut.

    If σ = 0, this is Ewens' law, with about θ log(N/θ) entities. If σ > 0, the number of entities grows as
    N^σ, and the share of entities of size s falls as s^-(1+σ).

    Notes
    -----
    The code draws all records at once, by a way to the same probabilities:

    1. Record n chooses an earlier record: the first with probability (1 + θ)/(θ + n), any other with
       1/(θ + n). It joins the table of that record.
    2. Exception: if that record opened its table, record n opens one of its own with probability σ. At the
       first record this probability is (θ + σ)/(1 + θ).

    A record therefore opens a table if and only if the coins of all records in its chain of choices say so.
    Pointer doubling follows the chains in O(log log N) rounds.
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
        whole(records, "records of a population")
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


def draw_clusters(number: int, clusters: int, what: str, rng: np.random.Generator) -> IntArray:
    """Draw distinct clusters, in random order."""
    require(number <= clusters, f"{what} needs {number} entities, but there are {clusters}")
    return rng.choice(clusters, number, replace=False)


@dataclass(frozen=True, slots=True)
class RareErrors:
    """Errors so rare that most samples of a few hundred draws miss them: some pairs of merged entities.

    `entities` entities are drawn uniformly and merged in pairs. All others are predicted exactly. Recall
    stays 1, and precision loses the links between the merged entities:

        R = 1,  1 - P ≈ ½ entities s̄² / |T|

    Parameters
    ----------
    entities : int
        Number of merged entities: even, 0 or more.
    """

    entities: int

    def __post_init__(self) -> None:
        number(self.entities, "entities of RareErrors", lambda x: x >= 0 and x % 2 == 0, "be even, 0 or more")

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        clusters = len(measure_clusters(codes))
        picked = draw_clusters(self.entities, clusters, "RareErrors", rng)
        merged = np.arange(clusters)
        merged[picked[::2]] = picked[1::2]
        return number_compactly(merged[codes])


@dataclass(frozen=True, slots=True)
class Homonyms:
    """Giant predicted clusters, *lumps*, such as those of persons with the same name.

    lumps × size distinct entities are chosen uniformly. Each of their records joins the lump of its entity
    with probability `share`. A lump of m records adds about C2(m) false links, so that few lumps ruin
    precision. Recall stays 1 if the share is 1. Otherwise the chosen entities keep share² + (1 - share)² of
    their links on average.
    """

    lumps: int
    size: int
    share: float = 1.0

    def __post_init__(self) -> None:
        whole(self.lumps, "lumps of Homonyms", 0)
        whole(self.size, "size of Homonyms", 2)
        number(self.share, "share of Homonyms", lambda x: 0 <= x <= 1, "lie in [0, 1]")

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        """Predicted cluster of each record, (N,)."""
        clusters = len(measure_clusters(codes))
        picked = draw_clusters(self.lumps * self.size, clusters, "Homonyms", rng)
        lump = np.full(clusters, -1)
        lump[picked] = clusters + np.arange(len(picked)) // self.size
        joins = (lump[codes] >= 0) & (rng.random(len(codes)) < self.share)
        return number_compactly(np.where(joins, lump[codes], codes))


@dataclass(frozen=True, slots=True)
class SizeDependent:
    """Records that leave their entity for clusters of their own, with a probability by the entity's size.

    Each record of an entity of size s leaves independently, with probability p(s). The logit of p is linear
    in log s. Precision stays 1, and a link survives if both of its records stay:

        logit p(s) = base + slope log s
        P = 1,  E R = Σ C2(s)(1 - p(s))² / |T|
    """

    base: float
    slope: float

    def __post_init__(self) -> None:
        number(self.base, "base of SizeDependent", lambda x: not isnan(x), "be a number")
        number(self.slope, "slope of SizeDependent", isfinite, "be finite")

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        """Predicted cluster of each record, (N,)."""
        sizes = measure_clusters(codes)
        leaves = rng.random(len(codes)) < expit(self.base + self.slope * np.log(sizes))[codes]
        predicted = codes.copy()
        predicted[leaves] = len(sizes) + np.arange(np.count_nonzero(leaves))
        return number_compactly(predicted)


@dataclass(frozen=True)
class Capped:
    """Entities cut into clusters of at most `most` records, as by a matcher that caps its blocks."""

    most: int

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        return parted(codes, lambda s: np.arange(s) // self.most)


@dataclass(frozen=True)
class Shattered:
    """Entities of more than `above` records, each divided by a Pitman-Yor process of its own."""

    strength: float
    discount: float = 0.0
    above: int = 1

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        law = PitmanYor(self.strength, self.discount)

        def pieces(s: int) -> IntArray:
            of_piece = law.draw(s, rng) if s > self.above else np.array([s])
            return np.repeat(np.arange(len(of_piece)), of_piece)

        return parted(codes, pieces)


@dataclass(frozen=True)
class Even:
    """Entities of more than `above` records, each divided at random among `pieces` clusters."""

    pieces: int
    above: int

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        return parted(codes, lambda s: rng.integers(self.pieces if s > self.above else 1, size=s))


@dataclass(frozen=True)
class Eras:
    """Entities cut where a gap in time follows a record, which has probability `rate` at each record."""

    rate: float

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        return parted(codes, lambda s: np.cumsum(rng.random(s) < self.rate))


@dataclass(frozen=True)
class Percolated:
    """Entities whose records are joined by random pairs and transitivity, `degree` partners on average."""

    degree: float

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        def pieces(s: int) -> IntArray:
            pairs = rng.integers(s, size=(2, rng.poisson(self.degree * s / 2)))
            return components(s, *pairs)

        return parted(codes, pieces)


@dataclass(frozen=True)
class Fragmented:
    """Entities broken at random places: each piece of more than `above` records, with probability `rate`."""

    above: int
    rate: float

    def apply(self, codes: IntArray, rng: np.random.Generator) -> IntArray:
        def pieces(s: int) -> IntArray:
            whole, done = [s], []
            while whole:
                n = whole.pop()
                if n > self.above and rng.random() < self.rate:
                    k = int(rng.integers(1, n))
                    whole += [k, n - k]
                else:
                    done.append(n)
            return np.repeat(np.arange(len(done)), done)

        return parted(codes, pieces)


def components(records: int, first: IntArray, second: IntArray) -> IntArray:
    """Return the connected component of each record, in the graph of some pairs."""
    graph = coo_array((np.ones(len(first)), (first, second)), shape=(records, records))
    return np.asarray(connected_components(graph, directed=False)[1])


def matched(law: EntitySizes, records: int, seed: int, *rules: tuple[str, ...]) -> Population:
    """Customers, linked if they agree on all columns of one rule, where none of them is missing."""
    table = customers(law, records, seed)
    first, second = [], []
    for rule in rules:
        whole = table.reset_index(drop=True).dropna(subset=list(rule))
        leader = whole.groupby(list(rule)).person.transform(lambda of_key: of_key.index[0])
        first.append(whole.index.to_numpy())
        second.append(leader.to_numpy())
    found = components(records, np.concatenate(first), np.concatenate(second))
    return Population(pd.Series(found, table.index), table.person)


def parted(codes: IntArray, pieces: Callable[[int], IntArray]) -> IntArray:
    """Divide clusters: `pieces` returns the piece of each record of a cluster of s records."""
    order = np.argsort(codes, kind="stable")
    of_piece = np.concatenate([pieces(s) for s in np.bincount(codes)])
    key = pd.MultiIndex.from_arrays([codes[order], of_piece])
    predicted = np.empty_like(codes)
    predicted[order] = pd.factorize(key)[0]
    return predicted


def pair(prediction: str, truth: str = TRUTH) -> Population:
    """Return one release as the prediction of another."""
    return Population.of(patentsview_release(prediction), patentsview_release(truth))


def noisy() -> Population:
    """Return the true release with the paper's noise at rate .10 as its prediction."""
    truth = patentsview_release(TRUTH)
    noise = Misattribution(0.1).apply(pd.factorize(truth)[0], np.random.default_rng(3))
    return Population(pd.Series(noise, truth.index), truth)


def by_name(truth: str, years: int | None = None) -> Population:
    """Mentions of equal names, and of the same block of years if any, as the prediction of a release."""
    mentions = patentsview_mentions()
    key = mentions["last"].str.lower() + ", " + mentions["first"].str.lower()
    if years:
        key = key + " " + (mentions["year"] // years).astype(str)
    return Population.of(key.dropna(), patentsview_release(truth))


def of_codes(
    law: EntitySizes, errors: Mechanism, records: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Return the true and the predicted cluster of each record, (records,) each."""
    truth = population(law, records, rng).to_numpy()
    return truth, errors.apply(truth, rng)


def truths(units: Units, metrics: Sequence[Metric]) -> FloatArray:
    """Return the true value of each metric, (metrics,), by a census of the entities."""
    census = Sample(units, UniformClusters(population=len(units)))
    return taylor(census, metrics).apply(metrics, order=1).mean


def positions(
    units: Units,
    design: UniformRecords | UniformClusters | ByPredictedSize,
    shape: tuple[int, int],
    rng: np.random.Generator,
) -> IntArray:
    """Draw the positions of the units of several samples, (samples, draws), with the chances of a design."""
    if isinstance(design, UniformClusters):
        weight = np.ones(len(units))
    else:
        weight = units.size if isinstance(design, UniformRecords) else design.make_round(units, 1).p
    ends = np.cumsum(weight / weight.sum())
    return np.minimum(np.searchsorted(ends, rng.random(shape), side="right"), len(units) - 1)
