"""The bootstrap: replicates of metrics under any design, and the kind of interval that needs them.

Weights are multiplied by random numbers with mean 1, and with the covariance and the third moments that the
design has, so that no replicate loses a unit. Sources: Beaumont and Patak (2012), International Statistical
Review 80, 127-148; Efron (1987), JASA 82, 171-185 (BCa).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from .._internal.arrays import BoolArray, FloatArray, Seed, generator
from .._internal.errors import DataError, whole
from .._internal.progress import show_progress
from ..design.sample import Sample, need_sample
from ..metrics.definitions import DEFAULT_METRICS, Metric, MetricLike, resolve_metrics
from ..metrics.intervals import DEFAULT, Distribution, Kind
from ..metrics.moves import count_moving
from ..metrics.uncertain import Draws, Estimates, Normal
from ..metrics.unseen import by_component
from .closed_form import paired_taylor
from .fitted import fit_sample

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

    def label(self, result: Any, j: int) -> str:
        return "BCa"

    def suits(self, result: Any) -> bool:
        return isinstance(result, Bootstrap)

    def bounds(self, boot: Bootstrap, level: float) -> FloatArray:
        values, x = boot.flat, boot.plain
        # replicates that equal the estimate count half: few draws give many of them
        below = np.mean(values < x, axis=0) + np.mean(values == x, axis=0) / 2
        # if all replicates are on one side, z0 would be infinite
        z0 = ndtri(np.clip(below, 0.5 / len(values), 1 - 0.5 / len(values)))
        z = z0[:, None] + ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
        share = ndtr(z0[:, None] + z / (1 - boot.acceleration[:, None] * z))
        rank, ordered = np.arange(len(values)), np.sort(values.T)
        return np.array([np.interp(p * rank[-1], rank, v) for v, p in zip(ordered, share, strict=True)])


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Replicates(Draws):
    """Bootstrap replicates of metrics, (1, B, k), with their closed form.

    A resample shows no errors but those of the draws, so that a metric that fewer than five draws move has
    the interval of the closed form. `fit`: that, of the same estimates; `moving` (k,): draws that move each.
    """

    fit: Normal = by_component(-1)
    moving: FloatArray = by_component(-1)

    def _bound(self, level: float, kind: Kind | None) -> FloatArray:
        """As `Estimates`, or the interval of the closed form where few draws move a metric."""
        bounds = DEFAULT.widened(self.fit, Estimates._bound(self, level, kind))
        return np.where(self._few[:, None], self.fit._bound(level, None), bounds)

    @property
    def _few(self) -> BoolArray:
        """Return which metrics few draws move, or all by the same, or are 0/0 in a replicate, (k,)."""
        spread = self.flat.std(axis=0)
        return ((self.moving < FEWEST) | ~(spread > ROUNDING)) & ~np.isnan(self.fit.mean)

    def contrast(self, weights: FloatArray, names: Sequence[str]) -> Replicates:
        """As `Draws.contrast`, with the combinations of the closed form."""
        drawn, fit = Draws.contrast(self, weights, names), self.fit.contrast(weights, names)
        moving = np.array([self.moving[row != 0].min() for row in fit.weights])
        return Replicates(drawn.names, drawn.values, drawn.support, drawn.centre, fit=fit, moving=moving)

    def name_kind(self, j: int, kind: Kind | None = None) -> str:
        return self.fit.name_kind(j) if self._few[j] else Draws.name_kind(self, j, kind)


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Bootstrap(Replicates):
    """Bootstrap replicates of metrics, and of their totals, (1, B, k), not corrected for bias.

    `plain`, `acceleration` (k,): estimates that are not corrected either, and a sixth of their skewness.
    """

    kind: ClassVar[Kind] = BCa()
    totals: Draws
    plain: FloatArray = by_component(0)
    acceleration: FloatArray = by_component(0)

    def as_draws(self, number: int = 4000, rng: Seed = None, kind: Distribution = DEFAULT) -> Draws:
        """Return the replicates without their sample. Their default intervals are equal-tailed."""
        given = self.names, self.values, self.support, self.centre, self.unseen
        return Replicates(*given, fit=self.fit, moving=self.moving)


def bootstrap(
    sample: Sample,
    metrics: MetricLike = DEFAULT_METRICS,
    *,
    replicates: int = 4000,
    rng: Seed = None,
    progress: bool = True,
) -> Bootstrap:
    """Estimate metrics with the bootstrap: replicates of them under resampling of the draws.

    Parameters
    ----------
    replicates : int
        2 or more.

    Returns
    -------
    Bootstrap
        A metric that is 0/0 in some replicates is NaN there (see `Draws.reasons`).

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
    replicates = whole(replicates, "replicates")
    if replicates < 2:
        raise DataError(f"a bootstrap needs two replicates or more, not {replicates}")
    metrics, rng = resolve_metrics(metrics), generator(rng)
    fitted, draws = fit_sample(sample, metrics), sample.expansion
    Z = draws.residuals(fitted.contributions)
    rows = max(CHUNK // max(len(Z), 1), 1)
    numbers = [min(rows, replicates - done) for done in range(0, replicates, rows)]
    moved = [
        (draws.multipliers(number, rng) - 1) @ Z
        for number in show_progress(numbers, len(numbers), "bootstrap", progress)
    ]
    sums = fitted.contributions.sum(axis=0) + np.vstack(moved)
    constants = np.array([sample.known(t) for t in fitted.known])
    values = np.hstack([sums, np.tile(constants, (replicates, 1))])
    names = tuple(c.name for c in fitted.counted) + tuple(t.name for t in fitted.known)
    totals = Draws(names, values[None], ((-np.inf, np.inf),) * len(names))
    fit, found = fitted.estimates, totals.apply(metrics)
    least, most = np.array(found.support).T
    # a multiplier below 0 may take a share out of its range
    values = np.clip(found.values, least, most)
    third, second = draws.third @ fitted.effects**3, np.diagonal(fitted.plain.cov)
    spread = np.maximum(second, 0) ** 1.5
    return Bootstrap(
        *(found.names, values, found.support, fit.mean, fit.unseen),
        fit=fit,
        moving=_count_moving_draws(sample, metrics),
        totals=totals,
        plain=fitted.plain.mean,
        acceleration=np.divide(third, 6 * spread, out=np.zeros_like(third), where=spread > 0),
    )


def _count_moving_draws(sample: Sample, metrics: Sequence[Metric]) -> FloatArray:
    """Return how many draws move each metric, (k,), by their effects less that of most draws."""
    effect = fit_sample(sample, metrics).changes
    effect = effect - np.median(effect, axis=0)
    return count_moving(np.where(np.abs(effect) < ROUNDING, 0.0, effect))[0]


@dataclass(frozen=True, slots=True)
class Resampled:
    """The bootstrap, as an engine (see `bootstrap`)."""

    replicates: int = 4000

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Bootstrap:
        return bootstrap(sample, metrics, replicates=self.replicates, rng=rng, progress=False)

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> Replicates:
        """As `Paired.paired`, with the same multipliers for every sample."""
        seed = generator(rng)
        boots = [self(sample, metrics, deepcopy(seed)) for sample in samples]
        fit = paired_taylor(samples, metrics)
        return Replicates(
            names=fit.names,
            values=np.concatenate([b.values for b in boots], axis=-1),
            support=fit.support,
            centre=fit.mean,
            unseen=fit.unseen,
            fit=fit,
            moving=np.concatenate([b.moving for b in boots]),
        )
