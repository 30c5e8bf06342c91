"""Closed-form engine: totals with their covariance, and the jackknife beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .clustering import FloatArray
from .design import Design
from .metrics import METRICS, Metric
from .sample import Sample
from .uncertain import Normal, Totals, gradient
from .units import Column, Known, Missing, NotIdentified, measure


def _columns(metrics: Sequence[Metric]) -> tuple[list[Column], list[Known]]:
    """The distinct counted and known totals that metrics need."""
    counted: dict[str, Column] = {}
    known: dict[str, Known] = {}
    for metric in metrics:
        for column in metric.columns:
            if isinstance(column, Known):
                known[column.name] = column
            else:
                counted[column.name] = column
        for sized, _ in metric.size:
            counted[sized.name] = sized
    return list(counted.values()), list(known.values())


def taylor(sample: Sample, metrics: Sequence[Metric] = METRICS) -> Totals:
    """Totals that `metrics` need, with the design's covariance.

    Raises
    ------
    NotIdentified
        A column that these units cannot give, or a total that is not known.
    """
    counted, known = _columns(metrics)
    Z = sample.contributions(counted)
    k, q = len(counted), len(known)
    cov = np.zeros((k + q, k + q))
    moment = np.zeros((k + q, k + q))
    cov[:k, :k] = sample.expansion.variance.covariance(Z)
    moment[:k, :k] = Z.T @ Z
    mean = np.concatenate([Z.sum(axis=0), [sample.known(t) for t in known]])
    names = tuple(c.name for c in counted) + tuple(t.name for t in known)
    return Totals(names, mean, cov, moment, sample.expansion.variance.strata,
                  sample.expansion.absolute)  # fmt: skip


def effects(sample: Sample, metrics: Sequence[Metric]) -> FloatArray:
    """J z_s: the linearised contribution of each draw to each metric, (n draws, metrics)."""
    totals = taylor(sample, metrics)
    effect = np.empty((len(sample.expansion.unit), len(metrics)))
    for j, metric in enumerate(metrics):
        slopes = gradient(metric.formula, totals.mean[totals.where(metric)])
        pairs = [(c, s) for c, s in zip(metric.columns, slopes, strict=True) if not isinstance(c, Known)]
        effect[:, j] = sample.contributions([c for c, _ in pairs]) @ np.array([s for _, s in pairs])
    return effect


def jackknife(sample: Sample, metrics: Sequence[Metric] = METRICS) -> Normal:
    """Metrics with leave-one-draw-out standard errors about the full estimate.

    V = Σ_s θ_h (n_h - 1)/n_h (g_(s) - g)², g uncorrected. Far above the Taylor standard error it
    tells of a heavy tail.
    """
    totals = taylor(sample, metrics)
    counted, known = _columns(metrics)
    Z = sample.contributions(counted)
    change, scale = sample.expansion.variance.jackknife(Z)
    left = totals.mean + np.hstack([change, np.zeros((len(Z), len(known)))])
    plain = totals.apply(metrics, order=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        replicates = np.array([m.formula(*left[:, totals.where(m)].T) for m in metrics])
    undefined = [m.name for m, r in zip(metrics, replicates, strict=True) if not np.isfinite(r).all()]
    if undefined:
        raise NotIdentified(f"the jackknife of {', '.join(undefined)} is 0/0 where one draw is left out")
    off = replicates - plain.mean[:, None]
    return Normal(plain.names, plain.mean, (off * scale) @ off.T, plain.df, plain.support)


def estimate(
    prediction: Any, labels: Any, design: Design, metrics: Sequence[Metric] = METRICS,
    *, blocks: Any = None, missing: Missing = Missing.ERROR,
) -> Normal:  # fmt: skip
    """Estimates of `metrics` from a labelled sample, in one call.

    Parameters
    ----------
    prediction, labels, blocks, missing
        As in `erbayes.measure`.
    design : Design
        How the labelled units were drawn.
    metrics : sequence of Metric

    Returns
    -------
    Normal
        Jointly; `.table()` gives estimates, standard errors and intervals.

    Examples
    --------
    >>> from erbayes import UniformClusters, metrics
    >>> prediction = {1: "a", 2: "a", 3: "b", 4: "b", 5: "b"}
    >>> labels = {1: "x", 2: "x", 3: "x", 4: "y", 5: "y"}
    >>> found = estimate(prediction, labels, UniformClusters(population=2),
    ...                  [metrics.pairwise_precision, metrics.pairwise_recall])
    >>> found.table()[["estimate", "se"]]
                        estimate   se
    metric                           
    pairwise-precision       0.5  0.0
    pairwise-recall          0.5  0.0
    """
    sample = Sample(measure(prediction, labels, blocks=blocks, missing=missing), design)
    return taylor(sample, metrics).apply(metrics)
