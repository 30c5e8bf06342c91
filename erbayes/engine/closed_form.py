"""The closed form: totals with the covariance of the design, and metrics by Taylor linearisation.

Source: Binette et al. (2022), arXiv 2210.01230.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._internal.arrays import FloatArray, Seed
from .._internal.errors import DataError, NotIdentified
from ..design.sample import Sample, need_sample
from ..metrics.columns import Column, Known
from ..metrics.definitions import USUAL, Metric, Wanted, chosen, coefficients_of_size
from ..metrics.totals import Totals
from ..metrics.uncertain import Normal, stacked


def columns_of(metrics: Sequence[Metric]) -> tuple[list[Column], list[Known]]:
    """Return the distinct columns that metrics need, those counted on units and those with known totals."""
    columns: dict[str, Column | Known] = {}
    for metric in metrics:
        for column in (*metric.columns, *(sized for sized, _ in metric.size)):
            if columns.setdefault(column.name, column) != column:
                raise DataError(f"two different columns are called '{column.name}': rename one")
    counted = [c for c in columns.values() if not isinstance(c, Known)]
    return counted, [c for c in columns.values() if isinstance(c, Known)]


def taylor(sample: Sample, metrics: Wanted = USUAL) -> Totals:
    """Estimate the totals that metrics need, with the covariance of the design.

    `.apply(metrics)` makes metrics of them (see `Totals.apply`).

    Raises
    ------
    NotIdentified
        If a column is not identified on these units, or if a total is not known.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> totals = taylor(eb.Sample(units, eb.UniformClusters()), "mean-cluster-size")
    >>> totals.apply("mean-cluster-size").estimate.round(2)
    array([1.5])
    """
    need_sample(sample)
    counted, known = columns_of(chosen(metrics))
    Z = sample.contributions(counted)
    k, size, batch = len(counted), len(counted) + len(known), Z.shape[:-2]
    cov, moment = np.zeros((2, *batch, size, size))
    variance = sample.expansion.variance
    cov[..., :k, :k] = variance.covariance(variance.residuals(Z))
    moment[..., :k, :k] = np.swapaxes(Z, -1, -2) @ Z
    mean = np.empty((*batch, size))
    mean[..., :k] = Z.sum(axis=-2)
    mean[..., k:] = [sample.known(t) for t in known]
    names = tuple(c.name for c in counted) + tuple(t.name for t in known)
    n = sample.expansion.unit.shape[-1]
    stock = np.pad(_evaluate_stock(sample, counted), ((0, 0), (0, len(known))))
    free = max(n - variance.df_lost, 0) / n
    absolute, beyond = sample.expansion.absolute, sample.underrepresented_links()
    return Totals(names, mean, cov, moment, free, variance.mean_fpc, absolute, stock, beyond)


def _evaluate_stock(sample: Sample, columns: Sequence[Column]) -> FloatArray:
    """Return columns of the stock entities, (4, k); NaN for a column that only the sampled units have."""
    stock = sample.units.pseudo_units()
    counted = np.full((len(stock), len(columns)), np.nan)
    for j, column in enumerate(columns):
        with suppress(NotIdentified):
            counted[:, j] = stock.column(column)
    return counted


def linearise(sample: Sample, metrics: Sequence[Metric]) -> tuple[FloatArray, FloatArray]:
    """Return effects of draws, J z_s, and their shares in the totals averaged over, (n draws, metrics) each.

    Shares add up to 1. If a metric averages over nothing that is counted, those of all draws are equal.
    """
    counted, _ = columns_of(metrics)
    Z = sample.contributions(counted)
    J = taylor(sample, metrics).slopes(metrics)[:, : len(counted)]
    sizes = Z @ coefficients_of_size(metrics, [c.name for c in counted]).T
    total = sizes.sum(axis=0)
    shares = np.divide(sizes, total, out=np.full_like(sizes, 1 / len(Z)), where=total != 0)
    return np.asarray(Z @ J.T), shares


def effects(sample: Sample, metrics: Sequence[Metric]) -> FloatArray:
    """Return J z_s, the linearised contribution of each draw s to each metric, (n draws, metrics)."""
    totals = taylor(sample, metrics)
    counted, _ = columns_of(metrics)
    z = sample.expansion.variance.residuals(sample.contributions(counted))
    return np.asarray(z @ totals.slopes(metrics)[:, : len(counted)].T)


def paired_taylor(samples: Sequence[Sample], metrics: Sequence[Metric], order: int = 2) -> Normal:
    """Return metrics of all samples in order, with covariances from the shared draws."""
    fits = [taylor(sample, metrics).apply(metrics, order) for sample in samples]
    parts = np.hstack([effects(sample, metrics) for sample in samples])
    return stacked(fits, samples[0].expansion.variance.covariance(parts))


@dataclass(frozen=True, slots=True)
class Taylor:
    """The closed form: an engine of bias-corrected estimates with linearised standard errors.

    Parameters
    ----------
    order : int
        2 for estimates corrected for bias, 1 for plain ones.
    """

    batched: ClassVar[bool] = True
    order: int = 2

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Normal:
        return taylor(sample, metrics).apply(metrics, self.order)

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> Normal:
        """As `Paired.paired`, with bias-corrected estimates."""
        return paired_taylor(samples, metrics)
