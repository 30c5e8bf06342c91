"""Closed-form engine: totals with their covariance, and the jackknife beside it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from .arrays import FloatArray
from .columns import Column, Known
from .errors import DataError, NotIdentified
from .metrics import METRICS, Metric, Wanted, chosen
from .sample import Sample, need_sample
from .uncertain import Normal, Totals


def columns_of(metrics: Sequence[Metric]) -> tuple[list[Column], list[Known]]:
    """The distinct counted and known totals that metrics need."""
    found: dict[str, Column | Known] = {}
    for metric in metrics:
        for column in (*metric.columns, *(sized for sized, _ in metric.size)):
            if found.setdefault(column.name, column) != column:
                raise DataError(f"two different columns are called '{column.name}': rename one")
    counted = [c for c in found.values() if not isinstance(c, Known)]
    return counted, [c for c in found.values() if isinstance(c, Known)]


def taylor(sample: Sample, metrics: Wanted = METRICS) -> Totals:
    """Totals that `metrics` need, with the design's covariance.

    Parameters
    ----------
    sample : Sample
    metrics : Metric or str, or several
        Objects of `erbayes.metrics`, or names as tables print them.

    Raises
    ------
    DataError
        Anything but a Sample in its place.
    NotIdentified
        A column that these units cannot give, or a total that is not known.
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
    stock = np.pad(_on_stock(sample, counted), ((0, 0), (0, len(known))))
    free = max(n - variance.lost, 0) / n
    return Totals(names, mean, cov, moment, free, variance.theta_mean, sample.expansion.absolute, stock)


def _on_stock(sample: Sample, columns: Sequence[Column]) -> FloatArray:
    """Columns on the stock entities, (4, k); NaN for a column that is bound to the sampled units."""
    stock = sample.units.stock()
    counted = np.full((len(stock), len(columns)), np.nan)
    for j, column in enumerate(columns):
        with suppress(NotIdentified):
            counted[:, j] = stock.column(column)
    return counted


def effects(sample: Sample, metrics: Sequence[Metric]) -> FloatArray:
    """J z_s: the linearised contribution of each draw to each metric, (n draws, metrics)."""
    totals = taylor(sample, metrics)
    counted, _ = columns_of(metrics)
    z = sample.expansion.variance.residuals(sample.contributions(counted))
    return np.asarray(z @ totals.slopes(metrics)[:, : len(counted)].T)


def leave_one_out(sample: Sample, metrics: Sequence[Metric]) -> tuple[FloatArray, FloatArray]:
    """Metrics with each draw left out in turn, (n, metrics), and the scale of each square, (n,).

    A metric that is 0/0 without one of the draws is NaN.

    Raises
    ------
    NotIdentified
        Every metric is 0/0 without one of the draws.
    """
    totals = taylor(sample, metrics)
    counted, known = columns_of(metrics)
    change, scale = sample.expansion.variance.jackknife(sample.contributions(counted))
    left = totals.mean + np.pad(change, ((0, 0), (0, len(known))))
    left[np.abs(left) <= 1e-12 * np.abs(totals.mean)] = 0.0  # where nothing is left but rounding
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.column_stack([m.formula(*left[:, totals.where(m)].T) for m in metrics])
    undefined = ~np.isfinite(found).all(axis=0)
    if undefined.all():
        names = ", ".join(m.name for m in metrics)
        raise NotIdentified(f"the jackknife of {names} is 0/0 where one draw is left out")
    found[:, undefined] = np.nan
    return found, scale


def jackknife(sample: Sample, metrics: Wanted = METRICS) -> Normal:
    """Metrics with leave-one-draw-out standard errors about the full estimate.

    V = Σ_s θ_h (n_h - 1)/n_h (g_(s) - g)², g uncorrected. Far above the Taylor standard error it
    tells of a heavy tail.
    """
    metrics = chosen(metrics)
    plain = taylor(sample, metrics).apply(metrics, order=1)
    left, scale = leave_one_out(sample, metrics)
    off = (left - plain.mean).T
    undefined = tuple(
        why or ("its jackknife is 0/0 where one draw is left out" if lost else "")
        for why, lost in zip(plain.undefined, np.isnan(off).any(axis=1), strict=True)
    )
    return replace(plain, cov=(off * scale) @ off.T, undefined=undefined)


def paired_taylor(samples: Sequence[Sample], metrics: Sequence[Metric]) -> Normal:
    """Metrics of the first sample, then of the second, and so on: covariances from the shared draws."""
    fits = [taylor(sample, metrics).apply(metrics) for sample in samples]
    parts = np.hstack([effects(sample, metrics) for sample in samples])
    return Normal(
        tuple(name for f in fits for name in f.names),
        np.concatenate([f.mean for f in fits]),
        samples[0].expansion.variance.covariance(parts),
        np.concatenate([f.df for f in fits]),
        tuple(s for f in fits for s in f.support),
        np.concatenate([np.broadcast_to(f.draws, f.mean.shape) for f in fits]),
        np.concatenate([f.reach for f in fits]),
        tuple(why for f in fits for why in f.undefined),
    )
