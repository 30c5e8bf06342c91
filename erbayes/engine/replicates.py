"""The bootstrap: replicates of metrics under any design, and the kind of interval that needs them.

Weights are multiplied by random numbers with mean 1, and with the covariance and the third moments that the
design has, so that no replicate loses a unit. Sources: Beaumont and Patak (2012), International Statistical
Review 80, 127-148; Efron (1987), JASA 82, 171-185 (BCa).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

from .._internal.arrays import FloatArray, Seed, draw_seed, generator
from .._internal.errors import show_progress, whole
from ..design.sample import Sample, need_sample
from ..metrics.definitions import DEFAULT_METRICS, Metric, MetricLike, resolve_metrics
from ..metrics.estimates import Estimates, Replication
from ..metrics.totals import evaluate_draws
from ..metrics.unseen import count_moving, stack_components
from .closed_form import ClosedForm
from .fitted import Fitted, fit_sample

FEWEST = 5.0
"""Draws that move a metric below which it has the interval of the closed form.

Coverage of good matchers was .59 to .76 without it, and is .96 to .99 (benchmarks/unseen.md).
"""
ROUNDING = 1e-12
"""Effect of a draw that is rounding."""
CHUNK = 2**18
"""The number of multipliers in memory at a time, 2 MB, so that many replicates need little."""


@dataclass(frozen=True, slots=True)
class BCa:
    """Kind of interval between quantiles that are corrected for bias and skewness, the same on every scale.

    The bounds are quantiles of the replicates at the probabilities Φ(z0 + (z0 + z_a)/(1 - A (z0 + z_a))),
    with z_a the normal quantile of a tail, z0 that of the share of replicates below the estimate, of which
    those equal to it count by half, and A the acceleration, a sixth of the skewness that the design gives the
    metric to first order (Efron 1987).

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({i: i // 3 for i in range(1200)}, {i: i // 4 for i in range(120)})
    >>> sample = eb.Sample(units, eb.UniformClusters())
    >>> boot = bootstrap(sample, "pairwise-recall", replicates=200, rng=1)
    >>> boot.interval(0.9, BCa()).round(2)
    array([[0.42, 0.47]])
    """

    def label(self, result: Estimates, j: int) -> str:
        return "BCa"

    def suits(self, result: Estimates) -> bool:
        return result.replicated is not None

    def bounds(self, boot: Estimates, level: float) -> FloatArray:
        assert boot.replicated is not None
        values, x, acceleration = boot.flat, boot.replicated.plain, boot.replicated.acceleration[:, None]
        # replicates that equal the estimate count half: few draws give many of them
        below = np.mean(values < x, axis=0) + np.mean(values == x, axis=0) / 2
        # if all replicates are on one side, z0 would be infinite
        z0 = ndtri(np.clip(below, 0.5 / len(values), 1 - 0.5 / len(values)))
        z = z0[:, None] + ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
        share = ndtr(z0[:, None] + z / (1 - acceleration * z))
        rank, ordered = np.arange(len(values)), np.sort(values.T)
        return np.array([np.interp(p * rank[-1], rank, v) for v, p in zip(ordered, share, strict=True)])


def set_beside(drawn: Estimates, fit: Estimates, moving: FloatArray) -> Estimates:
    """Return replicates with the estimates of the closed form, and its intervals where few draws move them.

    A resample shows no errors but those of the draws. `moving` (k,): draws that move each metric.
    """
    spread = drawn.flat.std(axis=0)
    few = ((moving < FEWEST - ROUNDING) | ~(spread > ROUNDING)) & ~np.isnan(fit.mean)
    return replace(
        drawn, mean=fit.mean, unseen=fit.unseen, moves=fit.moves, other=fit, weight=np.where(few, 0.0, 1.0)
    )


def bootstrap(
    sample: Sample,
    metrics: MetricLike = DEFAULT_METRICS,
    *,
    replicates: int = 4000,
    rng: Seed = None,
    progress: bool = True,
) -> Estimates:
    """Estimate metrics with the bootstrap: replicates of them under resampling of the draws.

    Parameters
    ----------
    replicates : int
        2 or more.

    Returns
    -------
    Estimates
        Its `values` are replicates, (1, replicates, k), not corrected for bias. A metric that is 0/0 in some
        of them is NaN there (see `Estimates.reasons`). One that fewer than five draws move has the interval
        of the closed form.

    Raises
    ------
    NotIdentified
        If a metric is not identified.

    See Also
    --------
    BCa : the default interval.

    References
    ----------
    Beaumont and Patak (2012), International Statistical Review 80, 127-148.

    Efron (1987), JASA 82, 171-185.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({i: i // 3 for i in range(1200)}, {i: i // 4 for i in range(120)})
    >>> sample = eb.Sample(units, eb.UniformClusters())
    >>> boot = bootstrap(sample, "pairwise-recall", rng=1)
    >>> boot.table(0.9)[["estimate", "lower", "upper"]].round(2)
                     estimate  lower  upper
    metric
    pairwise-recall      0.44   0.42   0.47
    """
    need_sample(sample)
    replicates = whole(replicates, "replicates of a bootstrap", 2)
    metrics, rng = resolve_metrics(metrics), generator(rng)
    fitted = fit_sample(sample, metrics)
    names, totals = replicate_totals(fitted, replicates, rng, progress)
    fit, found = ClosedForm()(sample, metrics), evaluate_draws(metrics, names, totals[None])
    third, spread = fitted.third, np.maximum(np.diagonal(fitted.plain.cov), 0) ** 1.5
    acceleration = np.divide(third, 6 * spread, out=np.zeros_like(third), where=spread > 0)
    replicated = Replication(plain=fitted.plain.mean, acceleration=acceleration)
    found = replace(found, replicated=replicated, kind=BCa())
    effect = fitted.changes - np.median(fitted.changes, axis=0)  # less that of most draws
    moving = count_moving(np.where(np.abs(effect) < ROUNDING, 0.0, effect))[0]
    # a number of entities is gains less losses, which no replicate of totals is
    return set_beside(found, fit, np.where(fit.moves.there, 0.0, moving))


def replicate_totals(
    fitted: Fitted, replicates: int, rng: np.random.Generator, progress: bool
) -> tuple[tuple[str, ...], FloatArray]:
    """Return the names of the totals that metrics need, and replicates of them, (replicates, totals)."""
    draws, known = fitted.sample.expansion, fitted.totals.mean[len(fitted.counted) :]
    Z = draws.residuals(fitted.contributions)
    rows = max(CHUNK // max(len(Z), 1), 1)
    numbers = [min(rows, replicates - done) for done in range(0, replicates, rows)]
    moved = [
        (draws.multipliers(number, rng) - 1) @ Z
        for number in show_progress(numbers, len(numbers), "bootstrap", progress)
    ]
    sums = fitted.contributions.sum(axis=0) + np.vstack(moved)
    return fitted.totals.names, np.hstack([sums, np.tile(known, (replicates, 1))])


@dataclass(frozen=True, slots=True)
class Resampled:
    """The bootstrap, as an engine (see `bootstrap`)."""

    replicates: int = 4000

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
        return bootstrap(sample, metrics, replicates=self.replicates, rng=rng, progress=False)

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
        # the seed of the front door, so that each prediction has the answer that it has there, and all have
        # the same multipliers
        seed = draw_seed(rng)
        boots = [self(sample, metrics, seed) for sample in samples]
        cov = np.cov(np.hstack([boot.flat for boot in boots]), rowvar=False)
        return stack_components(*boots, cov=cov, other=ClosedForm().paired(samples, metrics))
