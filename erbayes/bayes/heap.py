"""The reading of a heap in the predicted sizes as a cap: the entities above it, if the matcher cuts them.

Clusters of the heap are then full pieces of larger entities, whose sizes follow the distribution of the sizes
below: clusters of s records are in proportion to s^-a exp(-b log2(s)²/2), a power law if b is 0, and near a
log-normal distribution else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._internal.arrays import BoolArray, FloatArray, IntArray
from ..design.sample import Sample
from ..metrics.columns import Term
from ..units.settled import Heap, Looks, chance_capped
from ..units.units import KnownTotals
from .data import Evidence
from .population import Populations

SIMULATED = 1000
"""Sets of entities above a cap that are drawn, and then resampled for each posterior draw."""
LARGE = 2000
"""Entities of a set at most. Their numbers are scaled if the heap has pieces of more entities."""
SIZES = 400
"""Sizes above a cap, equally spaced on a log scale."""
BEND = 0.12
"""Median of b before the prediction is seen, that of a log-normal distribution of natural sd 2."""
SPREAD = 0.8
"""Standard deviation of log b, which is from .025 to .6 with probability .95."""
STRAY = 0.15
"""Standard deviation of a that is added, because the tail above a cap need not go on as below it."""
STREAM = 2**20
"""Stream of the seed of a fit, which no part or candidate model has."""


@dataclass(frozen=True, slots=True, eq=False)
class CappedReading:
    """The entities above a heap, from which all that depends on true sizes follows if a matcher caps there.

    `chance`: probability of this reading; `cut`: posterior draws under it, (chain, draw); `size`: records of
    an entity above, (S,); `number`: entities of each size in sets of them, (SIMULATED, S); `chosen`: the set
    of each posterior draw, (chain, draw).
    """

    heap: Heap
    looks: Looks | None
    chance: float
    cut: BoolArray
    size: FloatArray
    number: FloatArray
    chosen: IntArray

    def __str__(self) -> str:
        looks = "" if self.looks is None else f". {self.looks}"
        return (
            f"{self.heap}{looks}. In {100 * self.chance:.0f} % of the posterior draws of recall, and of all "
            "that depends on the sizes of entities, the matcher cuts them"
        )

    def total_above(self, term: Term) -> FloatArray:
        """Return the sum of a term over the pieces of the entities above, (chain, draw).

        One of s records is in as many full pieces as it has room for, and in a rest.
        """
        s, full = self.size, np.full(len(self.size), float(self.heap.size))
        number, rest = np.divmod(s, full)
        of_rest = np.where(rest > 0, term(np.maximum(rest, 1.0), s, np.maximum(rest, 1.0)), 0.0)
        return np.asarray((self.number @ (number * term(full, s, full) + of_rest))[self.chosen])


def read_as_capped(
    sample: Sample, evidence: Evidence, population: Populations, seed: int
) -> CappedReading | None:
    """Return the reading that the matcher caps, for each posterior population; None without an open heap."""
    heap, known = sample.heap, sample.units.known
    if heap is None or known is None:
        return None
    rng, shape = np.random.default_rng([seed, STREAM]), population.true.shape
    chance = chance_capped(sample.looks)
    size, number, weight = _draw_entities_above(heap, known, evidence, population, rng)
    chosen = rng.choice(SIMULATED, shape, p=weight)
    # of each chain the same share of draws, chosen by chance, so that chains agree
    rank = rng.random(shape).argsort(axis=1).argsort(axis=1)
    start = (rng.random() + np.arange(shape[0]) / shape[0]) % 1
    cut = rank < np.floor(chance * shape[1] + start)[:, None]
    return CappedReading(heap, sample.looks, chance, cut, size, number, chosen)


def _draw_entities_above(
    heap: Heap,
    known: KnownTotals,
    evidence: Evidence,
    population: Populations,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return sizes above a cap, (S,), their numbers in sets of entities, (SIMULATED, S), and weights of sets.

    A set has about as many full pieces as the heap has clusters too many, and its weight is the binomial
    probability of the sampled entities above the cap. With only the share of the heap that looks find to go
    on, intervals were longer by a twentieth to two fifths, and covered no more where half of it was cut.
    """
    a, b = _draw_shape(heap, known, rng)
    s = np.unique(np.round(np.geomspace(heap.size + 1, evidence.data["records"] / 4, SIZES)))
    log_density = np.log(np.gradient(s)) - a[:, None] * np.log(s) - b[:, None] / 2 * np.log2(s) ** 2
    ends = np.cumsum(np.exp(log_density - log_density.max(axis=1, keepdims=True)), axis=1)
    bins, q = (evidence.data[name] for name in ("size", "selection"))
    selected = population.number.reshape(-1, len(bins)).mean(axis=0) @ q
    selected += np.interp(evidence.entities.size, bins, q).sum()
    size, draws = evidence.entities.size, evidence.entities.draws
    above, all_draws = draws[size > heap.size].sum(), draws.sum()
    pieces = np.maximum(rng.poisson(heap.excess, SIMULATED), 1)
    # each entity has a full piece or more; row i is searched in [i, i + 1)
    number, row = min(int(pieces.max()), LARGE), np.arange(SIMULATED)[:, None]
    at = np.searchsorted((ends / ends[:, -1:] + row).ravel(), rng.random((SIMULATED, number)) + row)
    drawn = np.minimum(at - row * len(s), len(s) - 1)
    full = s[drawn] // heap.size
    reached = np.cumsum(full, axis=1)
    kept = reached - full < pieces[:, None]
    scale = np.maximum(pieces / np.where(kept, reached, 0).max(axis=1), 1.0)
    of_set = np.bincount((drawn + row * len(s)).ravel(), kept.ravel(), SIMULATED * len(s))
    numbers = scale[:, None] * of_set.reshape(SIMULATED, -1)
    p = np.minimum(numbers @ (np.interp(s, bins, q) / selected), 0.999)
    fits = above * np.log(p) + (all_draws - above) * np.log1p(-p)
    weight = np.exp(fits - fits.max())
    return s, numbers, weight / weight.sum()


def _draw_shape(heap: Heap, known: KnownTotals, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draw a and b from their posterior on a grid, (SIMULATED,) each, given sizes from .1 to .85 of a cap."""
    s = np.arange(max(np.ceil(heap.size / 10), 2), 0.85 * heap.size)
    inside = np.isin(known.size, s)
    count = np.bincount((known.size[inside] - s[0]).astype(int), known.count[inside], len(s))
    a, b = (v.ravel() for v in np.meshgrid(np.linspace(-1, 5, 121), np.geomspace(0.003, 0.6, 40)))
    log_p = -a[:, None] * np.log(s) - b[:, None] / 2 * np.log2(s) ** 2
    log_p -= np.logaddexp.reduce(log_p, axis=1)[:, None]
    likelihood = log_p @ count
    expected = count.sum() * np.exp(log_p[likelihood.argmax()])
    # counts that vary more than multinomial ones tell less
    dispersion = max(((count - expected) ** 2 / (expected + 0.5)).sum() / max(len(s) - 2, 1), 1.0)
    log_posterior = likelihood / dispersion - (np.log(b / BEND) / SPREAD) ** 2 / 2
    weight = np.exp(log_posterior - log_posterior.max())
    at = rng.choice(len(weight), SIMULATED, p=weight / weight.sum())
    return a[at] + STRAY * rng.standard_normal(SIMULATED), b[at]
