"""The jackknife: standard errors from metrics with each draw left out in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import FloatArray, Seed
from ..errors import NotIdentified
from ..metrics import USUAL, Metric, Wanted, chosen
from ..sample import Sample
from ..uncertain import Normal
from .closed_form import columns_of, stacked, taylor

UNDEFINED = "its jackknife is 0/0 if one draw is left out"


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
        raise NotIdentified(f"the jackknife of {names} is 0/0 if one draw is left out")
    found[:, undefined] = np.nan
    return found, scale


def jackknife(sample: Sample, metrics: Wanted = USUAL) -> Normal:
    """Metrics with leave-one-draw-out standard errors about the full estimate.

    V = Σ_s θ_h (n_h - 1)/n_h (g_(s) - g)², g uncorrected. Far above the Taylor standard error it
    tells of a heavy tail.
    """
    metrics = chosen(metrics)
    return _about(taylor(sample, metrics).apply(metrics, order=1), sample, metrics)


def _about(fit: Normal, sample: Sample, metrics: Sequence[Metric]) -> Normal:
    """A fit with the covariance of the jackknife."""
    away = _away(sample, metrics)
    undefined = tuple(
        why or (UNDEFINED if lost else "")
        for why, lost in zip(fit.undefined, np.isnan(away).any(axis=0), strict=True)
    )
    return replace(fit, cov=away.T @ away, undefined=undefined)


def _away(sample: Sample, metrics: Sequence[Metric]) -> FloatArray:
    """Distances √scale (g_(s) - g) of the metrics without each draw from those with all, (n, metrics)."""
    left, scale = leave_one_out(sample, metrics)
    plain = taylor(sample, metrics).apply(metrics, order=1)
    return np.asarray((left - plain.mean) * np.sqrt(scale)[:, None])


@dataclass(frozen=True, slots=True)
class Jackknife:
    """Leave-one-draw-out standard errors about the bias-corrected estimates of the closed form."""

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Normal:
        return _about(taylor(sample, metrics).apply(metrics), sample, metrics)

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> Normal:
        fits = [self(sample, metrics) for sample in samples]
        away = np.hstack([_away(sample, metrics) for sample in samples])
        return stacked(fits, away.T @ away)
