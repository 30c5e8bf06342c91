"""The jackknife: standard errors from the metrics without each draw in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._internal.arrays import FloatArray, Seed
from .._internal.errors import NotIdentified
from ..design.sample import Sample
from ..metrics.definitions import USUAL, Metric, Wanted, chosen
from ..metrics.totals import Totals
from ..metrics.uncertain import Normal, stacked
from .closed_form import columns_of, taylor

UNDEFINED = "its jackknife is 0/0 if one draw is left out"


def leave_one_out(sample: Sample, totals: Totals, metrics: Sequence[Metric]) -> tuple[FloatArray, FloatArray]:
    """Return the metrics without each draw in turn, (n, metrics), and the scale of each square, (n,)."""
    counted, known = columns_of(metrics)
    change, scale = sample.expansion.variance.jackknife(sample.contributions(counted))
    replicates = totals.mean + np.pad(change, ((0, 0), (0, len(known))))
    rounding = np.abs(replicates) <= 1e-12 * np.abs(totals.mean)
    replicates[rounding] = 0.0  # 0/0 must not become a ratio of two rounding errors
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.column_stack([m.formula(*replicates[:, totals.positions(m)].T) for m in metrics])
    undefined = ~np.isfinite(values).all(axis=0)
    if undefined.all():
        names = ", ".join(m.name for m in metrics)
        raise NotIdentified(f"the jackknife of {names} is 0/0 if one draw is left out")
    values[:, undefined] = np.nan
    return values, scale


def jackknife(sample: Sample, metrics: Wanted = USUAL) -> Normal:
    """Estimate metrics with jackknife standard errors: each draw is left out in turn.

    The variance is Σ_s θ_h (n_h - 1)/n_h (g_(s) - g)² over draws, with g the metric, g_(s) the metric without
    draw s, and n_h and θ_h the draws and the finite-population correction of its stratum. Estimates are not
    corrected for bias. A standard error far above Taylor's is a sign of a heavy tail.

    Raises
    ------
    DataError, NotIdentified
        If there is a single draw, or if every metric is 0/0 without one of the draws.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> jackknife(eb.Sample(units, eb.UniformClusters()), "mean-cluster-size").sd
    array([0.5])
    """
    metrics = chosen(metrics)
    totals = taylor(sample, metrics)
    changes = scaled_changes(sample, totals, metrics)
    return _replace_errors(totals.apply(metrics, order=1), changes)


def scaled_changes(sample: Sample, totals: Totals, metrics: Sequence[Metric]) -> FloatArray:
    """Return √scale (g_(s) - g), the changes of the metrics without each draw, (n, metrics)."""
    replicates, scale = leave_one_out(sample, totals, metrics)
    plain = totals.apply(metrics, order=1)
    return np.asarray((replicates - plain.mean) * np.sqrt(scale)[:, None])


def _replace_errors(fit: Normal, changes: FloatArray) -> Normal:
    """Return a fit with the covariance of the jackknife."""
    undefined = tuple(
        why or (UNDEFINED if lost else "")
        for why, lost in zip(fit.undefined, np.isnan(changes).any(axis=0), strict=True)
    )
    return replace(fit, cov=changes.T @ changes, undefined=undefined)


@dataclass(frozen=True, slots=True)
class Jackknife:
    """The jackknife: an engine with estimates of the closed form and the standard errors of `jackknife`."""

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Normal:
        totals = taylor(sample, metrics)
        return _replace_errors(totals.apply(metrics), scaled_changes(sample, totals, metrics))

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> Normal:
        """As `Paired.paired`: each draw is left out of all samples at once."""
        totals = [taylor(sample, metrics) for sample in samples]
        changes = [scaled_changes(s, t, metrics) for s, t in zip(samples, totals, strict=True)]
        fits = [_replace_errors(t.apply(metrics), c) for t, c in zip(totals, changes, strict=True)]
        joint = np.hstack(changes)
        return stacked(fits, joint.T @ joint)
