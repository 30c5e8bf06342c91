"""Totals of a fitted size model: posterior draws of each column's population total."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, TypeGuard

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray
from .._internal.errors import NotIdentified
from ..design.sample import Sample
from ..metrics.columns import (
    B3_PRECISION,
    B3_RECALL,
    B3_RECALL_MEAN,
    COMMON_LINKS,
    TRUE_LINKS,
    Between,
    ClusterSum,
    Column,
    InDomain,
    Known,
    PieceSum,
    depends_on_true_size,
    pairs,
)
from ..metrics.definitions import (
    ALL,
    Metric,
    MetricLike,
    resolve_metrics,
)
from ..metrics.estimates import Estimates
from ..metrics.tables import Pictured
from ..metrics.totals import evaluate_draws
from .data import Evidence
from .heap import CappedReading
from .model import SizeModel
from .population import JoinedDraws, Populations
from .programs import ParameterDraws

LEAST_AGREEING = 0.02
"""Least mean agreement of common links by sizes and retention with those by mates, from 0 to 1.

Of 504 fits of the default model none had less than .06. Of 84 with zeta sizes, which were wrong, 17 had less.
"""


def depends_on_size(column: Column | Known) -> TypeGuard[PieceSum]:
    """Return True if a column depends only on the sizes of true entities: term(n, N, m) = n φ(N)."""
    if not isinstance(column, PieceSum):
        return False
    N = np.array([1.0, 2.0, 5.0, 40.0])
    of_entity, of_half = column.term(N, N, N), column.term(N / 2, N, 3 * N)
    return bool(np.allclose(of_half, of_entity / 2, rtol=1e-12))


Total = Callable[[Column | Known], FloatArray]
"""A function of a column that returns posterior draws of its population total, (chain, draw)."""


def totals(metrics: MetricLike, total: Total) -> Estimates:
    """Return posterior draws of the totals that metrics need, (chain, draw, column)."""
    columns = dict.fromkeys(c for m in resolve_metrics(metrics) for c in m.columns)
    values = {c.name: total(c) for c in columns}
    return Estimates.of_draws(
        tuple(values), np.stack(list(values.values()), axis=-1), ((0.0, np.inf),) * len(values)
    )


def applied(metrics: MetricLike, total: Total) -> Estimates:
    """Return posterior draws of metrics, (chain, draw, k): see `Fit.apply`."""
    metrics = resolve_metrics(metrics)
    drawn = totals(metrics, total)
    return evaluate_draws(metrics, drawn.names, drawn.chains)


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

    @property
    def log_prior(self) -> Mapping[str, FloatArray]:
        """Log prior density of the tied parts, (chain, draw) each."""
        return self.draws.log_prior

    @property
    def khat(self) -> dict[str, float]:
        """Pareto shapes of importance weights, by part."""
        return self.draws.khat

    @cached_property
    def _totals(self) -> dict[Column | Known, FloatArray]:
        return {}

    def total(self, column: Column | Known) -> FloatArray:
        """Return posterior draws of a column's population total, (chain, draw); refuse one without draws."""
        if column not in self._totals:
            self._totals[column] = self._compute_total(column)
        return self._totals[column]

    def _compute_total(self, column: Column | Known) -> FloatArray:
        if isinstance(column, Known):
            return np.full(self.population.true.shape, self.evidence.units.total(column.column))
        if isinstance(column, ClusterSum):
            return self._compute_total(Known(column))
        if column in COMPLETED:
            total = COMPLETED[column](self.draws, self.population)
        else:
            unsampled = (self._unsampled * self._expect(column)).sum(-1)
            total = np.asarray(unsampled + self.evidence.units.column(column).sum())
        if self.capped is None or not depends_on_true_size(column):
            return total
        return np.where(self.capped.cut, self._total_if_cut(column, self.capped), total)

    def _expect(self, column: Column) -> FloatArray:
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

    def _total_if_cut(self, column: Column, capped: CappedReading) -> FloatArray:
        """Return a column's total if the matcher cuts the entities above a heap, (chain, draw).

        Those above have the pieces that the heap shows. The rest is as in the model, so many that all records
        add up to N. What is sampled near the heap or above it is counted at least.
        """
        if not isinstance(column, PieceSum):
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
        least = self.total(COMMON_LINKS) if column == TRUE_LINKS else 0.0
        return np.asarray(np.maximum(above + below, least))

    @cached_property
    def _unsampled(self) -> FloatArray:
        """Unsampled entities of each size, (chain, draw, J), whose records and the sample's add to N."""
        number = self.population.number
        records = self.evidence.data["records"] - self.evidence.data["sampled_records"]
        return np.asarray(number * (records / np.maximum(number @ self.size, 1.0))[..., None])

    def totals(self, metrics: MetricLike) -> Estimates:
        """Return posterior draws of the totals that metrics need, (chain, draw, column)."""
        return totals(metrics, self.total)

    def apply(self, metrics: MetricLike) -> Estimates:
        """Return posterior draws of metrics, (chain, draw, k).

        Raises
        ------
        NotIdentified
            A metric whose columns have no draws.
        """
        metrics = resolve_metrics(metrics)
        draws = applied(metrics, self.total)
        return replace(draws, unseen=replace(draws.unseen, certain=self.sample.certain(metrics)))

    def identifies(self, metric: Metric) -> bool:
        return identifies(metric)

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
        priors = np.stack(list(self.log_prior.values()), axis=-1)
        certain = draws.sd <= 1e-12 * np.maximum(np.abs(draws.mean), 1)
        metrics = (draws.chains - draws.mean) / np.where(certain, np.inf, draws.sd)
        deviations = priors - priors.mean(axis=(0, 1))
        return np.asarray(np.log(2) * metrics[..., None] * deviations[..., None, :])

    def _by_metric_and_part(self, draws: Estimates, values: FloatArray) -> pd.DataFrame:
        return pd.DataFrame(values, index=pd.Index(draws.names, name="metric"), columns=list(self.log_prior))

    @cached_property
    def unreached_share(self) -> FloatArray:
        """Share of the true links in entities larger than any sampled one, (chain, draw)."""
        links = self.population.number * pairs(self.size)
        unreached = links[..., self.size > self.evidence.entities.size.max()].sum(-1)
        return np.asarray(unreached / np.maximum(self.population.true, 1.0))

    def problems(self) -> list[str]:
        """Return the reasons not to rely on the draws, with remedies; an empty list if there are none."""
        problems, agreeing = list(self.draws.problems), self.draws.agreeing
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
        isinstance(c, Known | ClusterSum) or c in COMPLETED or c in EXPECTED or depends_on_size(c)
        for c in metric.columns
    )


def split_identified(metrics: Iterable[Metric]) -> tuple[list[Metric], list[Metric]]:
    """Return the metrics that a size model has, and others, of which the closed form takes its place.

    Metrics of groups of records are refused, since a model of such a group would be another answer.
    """
    metrics = list(metrics)
    if any(isinstance(column, Between | InDomain) for metric in metrics for column in metric.columns):
        raise NotIdentified(
            "a size model has no metrics of groups of records, since an entity may lie in several: fit a "
            "group that has whole entities as a population of its own, or use the closed form, the jackknife "
            "or the bootstrap"
        )
    return [m for m in metrics if identifies(m)], [m for m in metrics if not identifies(m)]


COMPLETED: dict[Column, Callable[[JoinedDraws, Populations], FloatArray]] = {
    COMMON_LINKS: lambda draws, population: draws.common,
    TRUE_LINKS: lambda draws, population: population.scale_true(draws.common),
    B3_PRECISION: lambda draws, population: draws.b3,
}
"""Totals of the joint draws and their finite populations, (chain, draw)."""
EXPECTED: dict[Column, Callable[[FittedTotals], FloatArray]] = {
    B3_RECALL: lambda fit: 1 + (fit.size - 1) * fit.by_size["kept"],
    B3_RECALL_MEAN: lambda fit: (1 + (fit.size - 1) * fit.by_size["kept"]) / fit.size,
}
"""Functions of a fit that return the mean of a column among entities of each size, (chain, draw, J).

Add a function for a column of your own, and fits have its total. Entities have `fit.size` records, and
`fit.by_size` has their quantities `intact` and `kept` (see `contract.RETURNED`). True and common links follow
from the finite populations, and columns that depend only on the sizes of entities need no function.
"""
