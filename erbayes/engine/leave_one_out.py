"""The jackknife: standard errors from the metrics without each draw in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._internal.arrays import FloatArray, Seed
from ..design.sample import Sample
from ..metrics.definitions import DEFAULT_METRICS, Metric, MetricLike
from ..metrics.estimates import Estimates, stacked
from .fitted import Fitted, fit_sample

UNDEFINED = "its jackknife is 0/0 if one draw is left out"


def jackknife(sample: Sample, metrics: MetricLike = DEFAULT_METRICS) -> Estimates:
    """Estimate metrics with jackknife standard errors: each draw is left out in turn.

    The variance is Σ_s θ_h (n_h - 1)/n_h (g_(s) - g)² over draws, with g the metric, g_(s) the metric without
    draw s, and n_h and θ_h the draws and the finite-population correction of its stratum. Estimates are not
    corrected for bias. A standard error far above Taylor's is a sign of a heavy tail.

    Raises
    ------
    DataError, NotIdentified
        If there is a single draw, or if every metric is 0/0 without one of the draws.

    See Also
    --------
    taylor : the closed form, which is linear in the draws.
    bootstrap : replicates of the draws.

    References
    ----------
    Wolter (2007), Introduction to Variance Estimation, chapter 4.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> jackknife(eb.Sample(units, eb.UniformClusters()), "mean-cluster-size").sd
    array([0.5])
    """
    return jackknife_errors(fit_sample(sample, metrics))


def jackknife_errors(fit: Fitted) -> Estimates:
    """Return plain estimates with the covariance of the jackknife."""
    return _replace_errors(fit.plain, fit.jackknifed)


def _replace_errors(fit: Estimates, changes: FloatArray) -> Estimates:
    """Return a fit with the covariance of the jackknife."""
    undefined = tuple(
        why or (UNDEFINED if lost else "")
        for why, lost in zip(fit.undefined, np.isnan(changes).any(axis=0), strict=True)
    )
    return replace(fit, cov=changes.T @ changes, undefined=undefined)


@dataclass(frozen=True, slots=True)
class Jackknife:
    """The jackknife: an engine with estimates of the closed form and the standard errors of `jackknife`."""

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
        fit = fit_sample(sample, metrics)
        return _replace_errors(fit.estimates, fit.jackknifed)

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
        """As `Paired.paired`: each draw is left out of all samples at once."""
        fits = [fit_sample(sample, metrics) for sample in samples]
        joint = np.hstack([fit.jackknifed for fit in fits])
        return stacked([_replace_errors(fit.estimates, fit.jackknifed) for fit in fits], joint.T @ joint)
