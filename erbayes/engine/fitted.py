"""A fitted sample: what engines, alarms and reports read of a sample, each number computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from .._internal.arrays import FloatArray
from .._internal.errors import DataError, NotIdentified
from ..design.draws import sum_rows
from ..design.sample import Sample, need_sample
from ..metrics.columns import Column, Known
from ..metrics.definitions import DEFAULT_METRICS, Metric, MetricLike, coefficients_of_size, resolve_metrics
from ..metrics.estimates import Estimates
from ..metrics.totals import Totals
from ..metrics.unseen import map_components

REMEMBERED = 100
"""Metrics up to which a sample remembers its fit. Domains have thousands, whose covariances fill memory."""
LATEST = 8
"""Fits that a sample remembers, the latest ones, as balances and domains make metrics anew at each call."""


def columns_of(metrics: Sequence[Metric]) -> tuple[list[Column], list[Known]]:
    """Return the distinct columns that metrics need, those counted on units and those with known totals."""
    columns: dict[str, Column | Known] = {}
    for metric in metrics:
        for column in (*metric.columns, *(sized for sized, _ in metric.size)):
            if columns.setdefault(column.name, column) != column:
                raise DataError(f"two different columns are called '{column.name}': rename one")
    counted = [c for c in columns.values() if not isinstance(c, Known)]
    return counted, [c for c in columns.values() if isinstance(c, Known)]


class Fitted:
    """A sample with the metrics that are read of it, (k,): totals, estimates and effects of draws.

    Each is computed when it is first read. `fit_sample` returns the one that a sample remembers.
    """

    def __init__(self, sample: Sample, metrics: tuple[Metric, ...]) -> None:
        self.sample, self.metrics = sample, metrics
        self.counted, self.known = columns_of(metrics)

    @cached_property
    def contributions(self) -> FloatArray:
        """Contributions z of draws to the counted totals, (..., n, k)."""
        return self.sample.contributions(self.counted)

    @cached_property
    def totals(self) -> Totals:
        """The totals, with the covariance of the design."""
        sample, draws, Z = self.sample, self.sample.expansion, self.contributions
        k, size, units = len(self.counted), len(self.counted) + len(self.known), sample.units.pseudo_units()
        pseudo = np.zeros((len(units), size))
        for j, column in enumerate(self.counted):
            try:
                pseudo[:, j] = units.column(column)
            except NotIdentified:  # only the sampled units have it
                pseudo[:, j] = np.nan
        mean, unseen = np.zeros((2, *sample.leading, size))
        cov, moment, missing = np.zeros((3, *sample.leading, size, size))
        mean[..., :k], mean[..., k:] = Z.sum(axis=-2), [sample.units.total(t.column) for t in self.known]
        unseen[..., :k] = sum_rows(Z, draws.unseen)
        cov[..., :k, :k] = draws.covariance(draws.residuals(Z))
        moment[..., :k, :k] = Z.mT @ Z
        missing[..., :k, :k] = Z.mT @ (Z * (draws.unseen / draws.repeated)[..., None])
        return Totals(
            names=(*(c.name for c in self.counted), *(t.name for t in self.known)),
            mean=mean,
            cov=cov,
            moment=moment,
            missing=missing,
            df_per_draw=np.maximum(draws.number - draws.df_lost, 0) / draws.number,
            unseen=unseen,
            absolute=draws.absolute,
            pseudo_units=pseudo,
            unreached_share=sample.out_of_reach,
        )

    @cached_property
    def estimates(self) -> Estimates:
        """The metrics, corrected for bias."""
        return self._settle(self.totals.apply(self.metrics))

    @cached_property
    def plain(self) -> Estimates:
        """The metrics of the totals as they are, not corrected for bias."""
        return self._settle(self.totals.apply(self.metrics, order=1))

    def _settle(self, fit: Estimates) -> Estimates:
        """Return estimates with the ends that labels settle, all arrays protected."""
        unseen = replace(fit.unseen, certain=self.sample.certain(self.metrics), third=self.third)
        return _protect(replace(fit, unseen=unseen))

    @cached_property
    def third(self) -> FloatArray:
        """Third moments of the metrics under the design, (..., metrics), to first order."""
        with np.errstate(invalid="ignore"):  # a metric that is 0/0
            # a cube by pow is slow
            third = sum_rows(self.effects * self.effects**2, self.sample.expansion.third)
        return np.asarray(np.where(np.isfinite(third), third, 0.0))

    @cached_property
    def slopes(self) -> FloatArray:
        """Derivatives J of metrics by the counted totals, (..., metrics, k)."""
        return self.totals.slopes(self.metrics)[..., : len(self.counted)]

    @cached_property
    def changes(self) -> FloatArray:
        """Linearised contributions J z_s of draws to metrics, (n draws, metrics)."""
        return np.asarray(self.contributions @ self.slopes.T)

    @cached_property
    def effects(self) -> FloatArray:
        """As `changes`, of what varies of z, which odds of unresolved draws lessen, (..., draws, metrics)."""
        return np.asarray(self.sample.expansion.residuals(self.contributions) @ self.slopes.mT)

    @cached_property
    def shares(self) -> FloatArray:
        """Shares of draws in the totals averaged over, (n draws, metrics), which add up to 1.

        If a metric averages over nothing that is counted, those of all draws are equal.
        """
        Z = self.contributions
        sizes = Z @ coefficients_of_size(self.metrics, [c.name for c in self.counted]).T
        total = sizes.sum(axis=0)
        return np.divide(sizes, total, out=np.full_like(sizes, 1 / len(Z)), where=total != 0)

    @cached_property
    def left_out(self) -> tuple[FloatArray, FloatArray]:
        """Metrics without each draw in turn, (n, metrics), and the scale of each square, (n,)."""
        totals = self.totals
        change, scale = self.sample.expansion.jackknife(self.contributions)
        replicates = totals.mean + np.pad(change, ((0, 0), (0, len(self.known))))
        rounding = np.abs(replicates) <= 1e-12 * np.abs(totals.mean)
        replicates[rounding] = 0.0  # 0/0 must not become a ratio of two rounding errors
        values = totals.evaluate(self.metrics, replicates)
        undefined = ~np.isfinite(values).all(axis=0)
        if undefined.all():
            names = ", ".join(m.name for m in self.metrics)
            raise NotIdentified(f"the jackknife of {names} is 0/0 if one draw is left out")
        values[:, undefined] = np.nan
        return values, scale

    @cached_property
    def unseen_shares(self) -> FloatArray:
        """Shares θ of the totals averaged over that are estimated not to be in the sample, (..., metrics)."""
        return self.totals.unseen_shares(coefficients_of_size(self.metrics, self.totals.names))

    @property
    def jackknifed(self) -> FloatArray:
        """Changes √scale (g_(s) - g) of the metrics without each draw, (n, metrics)."""
        replicates, scale = self.left_out
        return np.asarray((replicates - self.plain.mean) * np.sqrt(scale)[:, None])


def _protect(fit: Estimates) -> Estimates:
    """Return estimates whose arrays cannot be written, since whoever asks for them again gets the same."""

    def lock(axes: Sequence[int], x: Any) -> Any:
        if isinstance(x, np.ndarray):
            x.flags.writeable = False
        return x

    return map_components(lock, fit)


def fit_sample(sample: Sample, metrics: MetricLike = DEFAULT_METRICS) -> Fitted:
    """Return a sample with metrics, which the sample remembers, so that whoever reads it computes no more."""
    need_sample(sample)
    metrics = resolve_metrics(metrics)
    fitted: Fitted = sample.fits.pop(metrics, None) or Fitted(sample, metrics)
    if len(metrics) <= REMEMBERED:
        sample.fits[metrics] = fitted
        if len(sample.fits) > LATEST:
            del sample.fits[next(iter(sample.fits))]
    return fitted


def taylor(sample: Sample, metrics: MetricLike = DEFAULT_METRICS) -> Totals:
    """Estimate the totals that metrics need, with the covariance of the design.

    `.apply(metrics)` makes metrics of them (see `Totals.apply`).

    Raises
    ------
    NotIdentified
        If a column is not identified on these units, or if a total is not known.

    See Also
    --------
    jackknife : standard errors without derivatives.
    bootstrap : replicates of the draws.

    References
    ----------
    Binette et al. (2022), arXiv 2210.01230, section 3.

    Särndal, Swensson and Wretman (1992), Model Assisted Survey Sampling, section 5.5.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> totals = taylor(eb.Sample(units, eb.UniformClusters()), "mean-cluster-size")
    >>> totals.apply("mean-cluster-size").estimate.round(2)
    array([1.5])
    """
    return fit_sample(sample, metrics).totals
