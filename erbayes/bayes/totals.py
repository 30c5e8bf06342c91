"""Totals of a fitted size model: draws of each column's population total, also under a cap of the matcher.

Clusters of a heap in the predicted sizes can be full pieces of larger entities, whose sizes then follow the
distribution of the sizes below: clusters of s records are in proportion to s^-a exp(-b log2(s)²/2), a power
law if b is 0, and near a log-normal distribution else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, TypeGuard

import numpy as np
import pandas as pd

from .._internal.arrays import BoolArray, FloatArray, IntArray
from .._internal.errors import NotIdentified
from ..design.sample import Sample
from ..metrics import columns as u
from ..metrics.definitions import ALL, Metric, MetricLike, resolve_metrics
from ..metrics.estimates import Estimates
from ..metrics.tables import Pictured
from ..metrics.totals import evaluate_draws
from ..units.settled import Heap, Looks, chance_capped
from ..units.units import KnownTotals
from .data import Evidence
from .importance import KHAT
from .model import JoinedDraws, Populations, SizeModel
from .programs import ParameterDraws

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
STRAY = 0.5
"""Standard deviation of a that is added, because the tail above a cap need not go on as below it.

With .15, recall after looks covered .13 where sizes have an exponential end far above the cap.
"""
STREAM = 2**20
"""Stream of the seed of a fit, which no part or candidate model has."""
LEAST_AGREEING = 0.02
"""Least mean agreement of common links by sizes and retention with those by mates, from 0 to 1.

Of 504 fits of the default model none had less than .06. Of 84 with zeta sizes, which were wrong, 17 had less.
"""


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

    def total_above(self, term: u.Term) -> FloatArray:
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
    heap: Heap, known: KnownTotals, evidence: Evidence, population: Populations, rng: np.random.Generator
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


def depends_on_size(column: u.Column | u.Known) -> TypeGuard[u.PieceSum]:
    """Return True if a column depends only on the sizes of true entities: term(n, N, m) = n φ(N)."""
    if not isinstance(column, u.PieceSum):
        return False
    N = np.array([1.0, 2.0, 5.0, 40.0])
    of_entity, of_half = column.term(N, N, N), column.term(N / 2, N, 3 * N)
    return bool(np.allclose(of_half, of_entity / 2, rtol=1e-12))


Total = Callable[[u.Column | u.Known], FloatArray]
"""A function of a column that returns posterior draws of its population total, (chain, draw)."""


def draw_totals(metrics: MetricLike, total: Total) -> Estimates:
    """Return posterior draws of the totals that metrics need, (chain, draw, column)."""
    columns = dict.fromkeys(c for m in resolve_metrics(metrics) for c in m.columns)
    values = {c.name: total(c) for c in columns}
    ends = ((0.0, np.inf),) * len(values)
    return Estimates.of_draws(tuple(values), np.stack(list(values.values()), axis=-1), ends)


def applied(metrics: MetricLike, total: Total) -> Estimates:
    """Return posterior draws of metrics, (chain, draw, k)."""
    drawn = draw_totals(metrics, total)
    return evaluate_draws(resolve_metrics(metrics), drawn.names, drawn.chains)


@dataclass(frozen=True, eq=False, repr=False)
class FittedTotals(Pictured):
    """The draws of a fitted size model, and the totals that follow from them. `Fit` explains the fields."""

    picture: ClassVar[str] = "forest"
    sample: Sample
    model: SizeModel
    evidence: Evidence
    draws: JoinedDraws
    population: Populations
    seed: int
    parts: dict[str, ParameterDraws] = field(default_factory=dict)
    capped: CappedReading | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return only the fields. Cached properties are computed anew after unpickling."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @property
    def size(self) -> FloatArray:
        """Records of an entity of each size, (J,)."""
        return self.evidence.grid.size

    @property
    def by_size(self) -> dict[str, FloatArray]:
        """Expected entities of each size, and the quantities of the tied parts, (chain, draw, J)."""
        return self.draws.by_size

    @cached_property
    def _totals(self) -> dict[u.Column | u.Known, FloatArray]:
        return {}

    def total(self, column: u.Column | u.Known) -> FloatArray:
        """Return posterior draws of a column's population total, (chain, draw); refuse one without draws."""
        if column not in self._totals:
            self._totals[column] = self._compute_total(column)
        return self._totals[column]

    def _compute_total(self, column: u.Column | u.Known) -> FloatArray:
        if isinstance(column, u.Known | u.ClusterSum):
            known = column.column if isinstance(column, u.Known) else column
            return np.full(self.population.true.shape, self.evidence.units.total(known))
        if column in COMPLETED:
            total = COMPLETED[column](self.draws, self.population)
        else:
            unsampled = (self._unsampled * self._expect(column)).sum(-1)
            total = np.asarray(unsampled + self.evidence.units.column(column).sum())
        if self.capped is None or not u.depends_on_true_size(column):
            return total
        return np.where(self.capped.cut, self._total_if_cut(column, self.capped), total)

    def _expect(self, column: u.Column) -> FloatArray:
        """Return the mean of a column among entities of each size, (..., J)."""
        if column in EXPECTED:
            return EXPECTED[column](self)
        if depends_on_size(column):
            return column.term(self.size, self.size, self.size)
        raise NotIdentified(
            f"no part of the size model returns '{column.name}': use the closed form or the "
            "bootstrap for metrics that need it, or add its mean among entities of each size to "
            "erbayes.bayes.EXPECTED"
        )

    def _total_if_cut(self, column: u.Column, capped: CappedReading) -> FloatArray:
        """Return a column's total if the matcher cuts the entities above a heap, (chain, draw).

        Those above have the pieces that the heap shows. The rest is as in the model, so many that all records
        add up to N. What is sampled near the heap or above it is counted at least.
        """
        if not isinstance(column, u.PieceSum):
            raise NotIdentified(f"'{column.name}' is no sum over pieces, which a cap makes of large entities")
        units, near = self.evidence.units, 0.9 * capped.heap.size
        small, sampled = self.size < near, units.size < near
        count = units.column(column)
        above = np.maximum(capped.total_above(column.term), count[~sampled].sum())
        records = np.maximum(capped.total_above(lambda n, N, m: n), units.size[~sampled].sum())
        number = self.population.number[..., small]
        rest = self.evidence.data["records"] - units.size[sampled].sum() - records
        number = number * (np.maximum(rest, 0) / np.maximum(number @ self.size[small], 1.0))[..., None]
        below = (number * self._expect(column)[..., small]).sum(-1) + count[sampled].sum()
        # all links that the prediction finds are true ones
        least = self.total(u.COMMON_LINKS) if column == u.TRUE_LINKS else 0.0
        return np.asarray(np.maximum(above + below, least))

    @cached_property
    def _unsampled(self) -> FloatArray:
        """Unsampled entities of each size, (chain, draw, J), whose records and the sample's add to N."""
        number = self.population.number
        records = self.evidence.data["records"] - self.evidence.data["sampled_records"]
        return np.asarray(number * (records / np.maximum(number @ self.size, 1.0))[..., None])

    def apply(self, metrics: MetricLike) -> Estimates:
        """Return posterior draws of metrics, (chain, draw, k); NotIdentified if a column has no draws."""
        metrics = resolve_metrics(metrics)
        draws = applied(metrics, self.total)
        return replace(draws, unseen=replace(draws.unseen, certain=self.sample.certain(metrics)))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Return the metrics of `erbayes.metrics.ALL` that have draws."""
        return tuple(m for m in ALL if identifies(m))

    def prior_shift(self, draws: Estimates) -> pd.DataFrame:
        """Return how sensitive the mean of each metric is to the prior of each part, (metric, part).

        It is the absolute shift of the mean, in posterior standard deviations, if the prior p is raised to
        the power α = 2, from the slope at α = 1, which for a metric g is a posterior covariance:

            d E(g)/d log α = Cov(g, log p)

        References
        ----------
        Kallioinen et al. (2024), Statistics and Computing 34, 57.
        """
        shifts = self._shift_by_draw(draws)
        number = shifts[..., 0, 0].size
        return self._by_metric_and_part(draws, np.abs(shifts.sum(axis=(0, 1))) / (number - 1))

    def prior_shift_error(self, draws: Estimates) -> pd.DataFrame:
        """Return the Monte Carlo standard error of `prior_shift`, from means of √n consecutive draws."""
        shifts = self._shift_by_draw(draws)
        n = shifts.shape[1]
        length = int(np.sqrt(n))
        batches = shifts[:, n % length :].reshape(-1, length, *shifts.shape[2:]).mean(axis=1)
        return self._by_metric_and_part(draws, batches.std(axis=0, ddof=1) / np.sqrt(len(batches)))

    def _shift_by_draw(self, draws: Estimates) -> FloatArray:
        """Return what each draw adds to the shift of each metric by each part, (chain, draw, k, part)."""
        priors = np.stack(list(self.draws.log_prior.values()), axis=-1)
        certain = draws.sd <= 1e-12 * np.maximum(np.abs(draws.mean), 1)
        metrics = (draws.chains - draws.mean) / np.where(certain, np.inf, draws.sd)
        deviations = priors - priors.mean(axis=(0, 1))
        return np.asarray(np.log(2) * metrics[..., None] * deviations[..., None, :])

    def _by_metric_and_part(self, draws: Estimates, values: FloatArray) -> pd.DataFrame:
        return pd.DataFrame(
            values, index=pd.Index(draws.names, name="metric"), columns=list(self.draws.log_prior)
        )

    @cached_property
    def unreached_share(self) -> FloatArray:
        """Share of the true links in entities larger than any sampled one, (chain, draw)."""
        links = self.population.number * u.pairs(self.size)
        unreached = links[..., self.size > self.evidence.entities.size.max()].sum(-1)
        return np.asarray(unreached / np.maximum(self.population.true, 1.0))

    def problems(self) -> list[str]:
        """Return the reasons not to rely on the draws, with remedies; an empty list if there are none."""
        problems = [
            f"{name}: importance weights are unreliable (Pareto k {part.khat:.2f}, above {KHAT}): raise "
            "draws, take another model of this part, or sample the model by pymc.sample(model=fit.pymc)"
            for name, part in self.parts.items()
            if part.khat > KHAT
        ]
        agreeing = self.draws.agreeing
        if agreeing < LEAST_AGREEING:
            problems.append(
                "few draws of sizes and retention agree with the number of predicted links that is right "
                f"(agreement {agreeing:.2g}, below {LEAST_AGREEING}): either this family of sizes is "
                "wrong, or the prediction is not the population that was sampled"
            )
        return problems


def identifies(metric: Metric) -> bool:
    """Return True if a size model produces all totals of a metric."""
    return all(
        isinstance(c, u.Known | u.ClusterSum) or c in COMPLETED or c in EXPECTED or depends_on_size(c)
        for c in metric.columns
    )


def split_identified(metrics: Iterable[Metric]) -> tuple[list[Metric], list[Metric]]:
    """Return the metrics that a size model has, and others, of which the closed form takes its place.

    Metrics of groups of records are refused, since a model of such a group would be another answer.
    """
    metrics = list(metrics)
    if any(isinstance(column, u.Between | u.InDomain) for metric in metrics for column in metric.columns):
        raise NotIdentified(
            "a size model has no metrics of groups of records, since an entity may lie in several: fit a "
            "group that has whole entities as a population of its own, or use the closed form, the jackknife "
            "or the bootstrap"
        )
    return [m for m in metrics if identifies(m)], [m for m in metrics if not identifies(m)]


COMPLETED: dict[u.Column, Callable[[JoinedDraws, Populations], FloatArray]] = {
    u.COMMON_LINKS: lambda draws, population: draws.common,
    u.TRUE_LINKS: lambda draws, population: population.scale_true(draws.common),
    u.B3_PRECISION: lambda draws, population: draws.b3,
}
"""Totals of the joint draws and their finite populations, (chain, draw)."""
EXPECTED: dict[u.Column, Callable[[FittedTotals], FloatArray]] = {
    u.B3_RECALL: lambda fit: 1 + (fit.size - 1) * fit.by_size["kept"],
    u.B3_RECALL_MEAN: lambda fit: (1 + (fit.size - 1) * fit.by_size["kept"]) / fit.size,
}
"""Functions of a fit that return the mean of a column among entities of each size, (chain, draw, J).

Add a function for a column of your own, and fits have its total. Entities have `fit.size` records, and
`fit.by_size` has their quantities `intact` and `kept` (see `contract.RETURNED`). True and common links follow
from the finite populations, and columns that depend only on the sizes of entities need no function.
"""
