"""A fitted sample: what engines, alarms and reports read of a sample, each number computed once.

`balance` and `influence` are tables of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import cached_property

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray
from .._internal.errors import DataError, NotIdentified
from ..design.sample import Sample, need_sample
from ..metrics import columns as u
from ..metrics.definitions import (
    DEFAULT_METRICS,
    Metric,
    MetricLike,
    pairwise_precision,
    resolve_metric,
    resolve_metrics,
)
from ..metrics.estimates import EMPTY, Estimates
from ..metrics.totals import Totals, evaluate
from ..metrics.unseen import sum_rows

REMEMBERED = 100
"""Metrics up to which a sample remembers its fit. Domains have thousands, whose covariances fill memory."""
LATEST = 8
"""Fits that a sample remembers, the latest ones, as balances and domains make metrics anew at each call."""


def columns_of(metrics: Sequence[Metric]) -> tuple[list[u.Column], list[u.Known]]:
    """Return the distinct columns that metrics need, those counted on units and those with known totals."""
    columns: dict[str, u.Column | u.Known] = {}
    for metric in metrics:
        for column in (*metric.columns, *(sized for sized, _ in metric.size)):
            if columns.setdefault(column.name, column) != column:
                raise DataError(f"two different columns are called '{column.name}': rename one")
    counted = [c for c in columns.values() if not isinstance(c, u.Known)]
    return counted, [c for c in columns.values() if isinstance(c, u.Known)]


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
        k, size, units = len(self.counted), len(self.counted) + len(self.known), sample.units.pseudo_units
        pseudo = np.zeros((len(units), size))
        for j, column in enumerate(self.counted):
            pseudo[:, j] = np.nan  # if only the sampled units have it
            with suppress(NotIdentified):
                pseudo[:, j] = units.column(column)
        mean, cov = np.zeros((*sample.leading, size)), np.zeros((*sample.leading, size, size))
        mean[..., :k], mean[..., k:] = Z.sum(axis=-2), [sample.units.total(t.column) for t in self.known]
        cov[..., :k, :k] = draws.covariance(draws.residuals(Z))
        return Totals(
            names=(*(c.name for c in self.counted), *(t.name for t in self.known)),
            mean=mean,
            cov=cov,
            contributions=Z,
            unseen=draws.unseen,
            repeated=draws.repeated,
            df_per_draw=np.maximum(draws.number - draws.df_lost, 0) / draws.number,
            absolute=draws.absolute,
            pseudo_units=pseudo,
            by_entity=units.by_entity,
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
        """Return estimates with the ends that labels settle, all arrays protected from whoever asks again."""
        unseen = replace(fit.unseen, certain=self.sample.certain(self.metrics), third=self.third)
        fit = replace(fit, unseen=unseen)
        for part in (fit, fit.unseen, fit.moves):
            for field in fields(part):
                if isinstance(value := getattr(part, field.name), np.ndarray):
                    value.flags.writeable = False
        return fit

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
        sizes = self.totals.sizes(self.metrics)
        total = sizes.sum(axis=0)
        return np.divide(sizes, total, out=np.full_like(sizes, 1 / len(sizes)), where=total != 0)

    @cached_property
    def jackknifed(self) -> FloatArray:
        """Changes √scale (g_(s) - g) of the metrics without each draw in turn, (n, metrics)."""
        need_sample(self.sample)
        totals = self.totals
        change, scale = self.sample.expansion.jackknife(self.contributions)
        replicates = totals.mean + np.pad(change, ((0, 0), (0, len(self.known))))
        rounding = np.abs(replicates) <= 1e-12 * np.abs(totals.mean)
        replicates[rounding] = 0.0  # 0/0 must not become a ratio of two rounding errors
        values = evaluate(self.metrics, totals.names, replicates)
        undefined = ~np.isfinite(values).all(axis=0)
        if undefined.all():
            names = ", ".join(m.name for m in self.metrics)
            raise NotIdentified(f"the jackknife of {names} is 0/0 if one draw is left out")
        values[:, undefined] = np.nan
        return np.asarray((values - self.plain.mean) * np.sqrt(scale)[:, None])

    @cached_property
    def unseen_shares(self) -> FloatArray:
        """Shares θ of the totals averaged over that are estimated not to be in the sample, (..., metrics)."""
        sizes = self.totals.sizes(self.metrics)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.clip(sum_rows(sizes, self.totals.unseen) / sizes.sum(axis=-2), 0.0, 1.0)


def fit_sample(sample: Sample, metrics: MetricLike = DEFAULT_METRICS) -> Fitted:
    """Return a sample with metrics, which the sample remembers, so that whoever reads it computes no more."""
    need_sample(sample, many=True)
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


def balance(sample: Sample) -> pd.DataFrame:
    """Compare estimated totals of the prediction with known ones.

    Totals are estimated as N Σ w y / Σ w records, in which an unknown scale of the weights w cancels. If
    weights are absolute, a further row compares the estimated number of records with N. Under a heavy tail
    the sample misses large clusters, and estimates too few predicted links.

    Returns
    -------
    DataFrame
        One row per total. Columns: estimate, se, known, ratio (of the estimate to the known one). The
        standard error counts what one unseen draw of average size would move.

    Raises
    ------
    NotIdentified
        If the totals of the prediction are not known.

    See Also
    --------
    alarms : which says when the balance is off.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x"})
    >>> balance(eb.Sample(units, eb.UniformClusters()))["ratio"]
    predicted_links       1.0
    predicted_clusters    1.0
    Name: ratio, dtype: float64
    """
    need_sample(sample)
    columns = [u.PREDICTED_LINKS, u.PREDICTED_CLUSTERS]
    found = compare_with_known(columns, *sample.estimate_known(columns, [u.RECORDS] * 2))
    if not sample.expansion.absolute:
        return found
    return pd.concat([compare_with_known([u.RECORDS], *sample.estimate_known([u.RECORDS])), found])


def compare_with_known(
    columns: Sequence[u.Column], estimate: FloatArray, error: FloatArray, known: FloatArray
) -> pd.DataFrame:
    """Return a table of estimated and known totals, (k,), with their ratio."""
    ratio = np.divide(estimate, known, out=np.full(len(known), np.nan), where=known > 0)
    values = {"estimate": estimate, "se": error, "known": known, "ratio": ratio}
    return pd.DataFrame(values, index=[column.name for column in columns])


def influence(sample: Sample, metric: Metric | str = pairwise_precision) -> pd.DataFrame:
    """Return the influence of each unit on a metric, the largest first.

    Influence is how much a unit moves the metric to first order: J (z - z̄) summed over its draws, with J the
    gradient of the metric by the totals, z the contribution of a draw, and z̄ the mean of contributions.
    Without a unit the estimate changes by about minus its influence. Influences sum to 0.

    Returns
    -------
    DataFrame
        One row per unit. Columns:

        - records, pieces and draws: their numbers.
        - missing: records of the unit outside its largest piece.
        - wrong: records of others in the predicted cluster of that piece.
        - foreign_links: predicted links between the unit and other records.
        - influence: in the unit of the metric.
        - variance_share: of its draws in the sum of squared effects, about their share of the variance.

    Raises
    ------
    NotIdentified
        If the metric is 0/0 in the sample.

    See Also
    --------
    erbayes.analysis.causes.features : what units with large influence have in common.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> influence(eb.Sample(units, eb.UniformClusters()), "mean-cluster-size")["influence"]
    x    0.25
    y   -0.25
    Name: influence, dtype: float64
    """
    need_sample(sample)
    units, expansion = sample.units, sample.expansion
    metric = resolve_metric(metric)
    effect = fit_sample(sample, metric).effects[:, 0]
    if np.isnan(effect).any():
        raise NotIdentified(f"no unit has an influence on {metric.name}: {EMPTY}")
    order = np.lexsort((units.m, units.n, units.unit))
    main = order[np.append(np.flatnonzero(np.diff(units.unit[order])), len(order) - 1)]
    foreign = units.n * (units.m - 1) - 2 * u.pairs(units.n)
    effect = np.where(expansion.weight > 0, effect - effect.mean(), 0.0)  # a unit that is gone has no weight
    squares = np.bincount(expansion.unit, effect**2, len(units))
    columns = {
        "records": units.size,
        "pieces": units.column(u.PIECES),
        "missing": units.size - units.n[main],
        "wrong": units.m[main] - units.n[main],
        "foreign_links": np.bincount(units.unit, foreign, len(units)),
        "draws": np.bincount(expansion.order, minlength=len(units)),
        "influence": np.bincount(expansion.unit, effect, len(units)),
        "variance_share": np.divide(squares, squares.sum(), out=np.zeros(len(units)), where=squares > 0),
    }
    table = pd.DataFrame(columns, index=units.ids)
    return table.sort_values("influence", key=np.abs, ascending=False, kind="stable")
