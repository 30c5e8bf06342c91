"""The bootstrap: replicates of metrics, and the kind of interval that needs them.

Source: Efron (1987), JASA 82, 171-185 (BCa).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from .._internal.arrays import BoolArray, FloatArray, Seed, generator
from .._internal.errors import DataError, NotIdentified, need_object, whole
from .._internal.progress import show_progress
from ..design.sample import Sample, need_sample
from ..metrics.definitions import DEFAULT_METRICS, Metric, MetricLike, resolve_metrics
from ..metrics.intervals import DEFAULT, Distribution, Kind
from ..metrics.moves import count_moving
from ..metrics.uncertain import Draws, Estimates, Normal
from ..metrics.unseen import by_component
from .closed_form import paired_taylor
from .fitted import fit_sample
from .schemes import CHUNK, RaoWu, Scheme

FEWEST = 5.0
"""Draws that move a metric below which it has the interval of the closed form.

Coverage of good matchers was .59 to .76 without it, and is .96 to .99 (benchmarks/unseen.md).
"""
ROUNDING = 1e-12
"""Effect of a draw that is rounding."""


@dataclass(frozen=True, slots=True)
class BCa:
    """Kind of interval between quantiles that are corrected for bias and skewness, the same on every scale.

    The bounds are quantiles of the replicates at the probabilities Φ(z0 + (z0 + z_a)/(1 - A (z0 + z_a))),
    with z_a the normal quantile of a tail, z0 that of the share of replicates below the estimate, of which
    those equal to it count by half, and A the acceleration (Efron 1987).

    Raises
    ------
    NotIdentified
        In `bounds`, if a metric is 0/0 without one of the draws.

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
        values, x = boot.flat, boot.fit.mean
        # replicates that equal the estimate count half: few draws give many of them
        below = np.mean(values < x, axis=0) + np.mean(values == x, axis=0) / 2
        # if all replicates are on one side, z0 would be infinite
        z0 = ndtri(np.clip(below, 0.5 / len(values), 1 - 0.5 / len(values)))
        z = z0[:, None] + ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
        share = ndtr(z0[:, None] + z / (1 - boot.acceleration()[:, None] * z))
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
        """Return which metrics few draws move, or all by the same, of those with values in all replicates,
        (k,)."""
        return ((self.moving < FEWEST) | (self.sd <= ROUNDING)) & ~np.isnan(self.mean)

    def contrast(self, weights: FloatArray, names: Sequence[str]) -> Replicates:
        """As `Draws.contrast`, with the combinations of the closed form."""
        drawn, fit = Draws.contrast(self, weights, names), self.fit.contrast(weights, names)
        moving = np.array([self.moving[row != 0].min() for row in fit.weights])
        return Replicates(drawn.names, drawn.values, drawn.support, drawn.centre, fit=fit, moving=moving)

    def name_kind(self, j: int, kind: Kind | None = None) -> str:
        return self.fit.name_kind(j) if self._few[j] else Draws.name_kind(self, j, kind)


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Bootstrap(Replicates):
    """Bootstrap replicates of metrics, and of their totals, (1, B, k), not corrected for bias."""

    kind: ClassVar[Kind] = BCa()
    totals: Draws
    sample: Sample
    metrics: tuple[Metric, ...] = by_component(0)

    def as_draws(self, number: int = 4000, rng: Seed = None, kind: Distribution = DEFAULT) -> Draws:
        """Return the replicates without their sample. Their default intervals are equal-tailed."""
        given = self.names, self.values, self.support, self.centre, self.unseen
        return Replicates(*given, fit=self.fit, moving=self.moving)

    def acceleration(self) -> FloatArray:
        """Return Σ u³ / (6 (Σ u²)^1.5), (metrics,), u_s being the mean of all g_(s) minus g_(s) (Efron)."""
        replicates, _ = fit_sample(self.sample, self.metrics).left_out
        lost = np.isnan(replicates).any(axis=0) & ~np.isnan(self.mean)
        if lost.any():
            names = ", ".join(m.name for m, bad in zip(self.metrics, lost, strict=True) if bad)
            raise NotIdentified(
                f"the acceleration of {names} is 0/0 if one draw is left out: use EqualTailed()"
            )
        u = replicates.mean(axis=0) - replicates
        spread = np.sum(u**2, axis=0) ** 1.5
        return np.asarray(np.sum(u**3, axis=0) / (6 * np.where(spread > 0, spread, 1.0)))


def bootstrap(
    sample: Sample,
    metrics: MetricLike = DEFAULT_METRICS,
    scheme: Scheme | None = None,
    *,
    replicates: int = 4000,
    rng: Seed = None,
    progress: bool = True,
) -> Bootstrap:
    """Estimate metrics with the bootstrap: replicates of them under resampling of the draws.

    Parameters
    ----------
    scheme : Scheme, optional
        The rule by which draws are resampled, `RaoWu` by default.
    replicates : int
        2 or more.

    Returns
    -------
    Bootstrap
        A metric that is 0/0 in some replicates is NaN there (see `Draws.reasons`).

    Raises
    ------
    NotIdentified
        If draws are not independent, if a stratum has a single draw, or if every metric is 0/0 in some
        replicates.

    See Also
    --------
    RaoWu : the default scheme.
    BCa : the default interval.

    References
    ----------
    Rao and Wu (1988), JASA 83, 231-241.

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
    sample = sample.with_repeats
    replicates = whole(replicates, "replicates")
    if replicates < 2:
        raise DataError(f"a bootstrap needs two replicates or more, not {replicates}")
    scheme = scheme or RaoWu()
    need_object(scheme, "multipliers", "a scheme is an object such as RaoWu()")
    metrics, rng = resolve_metrics(metrics), generator(rng)
    fitted = fit_sample(sample, metrics)
    counted, known = fitted.counted, fitted.known
    Z = sample.contributions(counted)
    variance = sample.expansion.variance
    chunks = scheme.chunks(variance.independent, replicates, rng)
    number = -(-replicates // max(CHUNK // len(sample.expansion.unit), 1))
    sums = [variance.replicates(Z, r) for r in show_progress(chunks, number, "bootstrap", progress)]
    constants = np.array([sample.known(t) for t in known])
    values = np.hstack([np.vstack(sums), np.tile(constants, (replicates, 1))])
    names = tuple(c.name for c in counted) + tuple(t.name for t in known)
    totals = Draws(names, values[None], ((-np.inf, np.inf),) * len(names))
    fit, draws = fitted.plain, totals.apply(metrics)
    given = draws.names, draws.values, draws.support, fit.mean, fit.unseen
    moving = _count_moving_draws(sample, metrics)
    return Bootstrap(*given, fit=fit, moving=moving, totals=totals, sample=sample, metrics=metrics)


def _count_moving_draws(sample: Sample, metrics: Sequence[Metric]) -> FloatArray:
    """Return how many draws move each metric, (k,), by their effects less that of most draws."""
    effect = fit_sample(sample, metrics).changes
    effect = effect - np.median(effect, axis=0)
    return count_moving(np.where(np.abs(effect) < ROUNDING, 0.0, effect))[0]


@dataclass(frozen=True, slots=True)
class Resampled:
    """The bootstrap, as an engine (see `bootstrap`)."""

    scheme: Scheme = field(default_factory=RaoWu)
    replicates: int = 4000

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Bootstrap:
        return bootstrap(sample, metrics, self.scheme, replicates=self.replicates, rng=rng, progress=False)

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> Replicates:
        """As `Paired.paired`, with the same multipliers for every sample."""
        seed, samples = generator(rng), [sample.with_repeats for sample in samples]
        boots = [self(sample, metrics, deepcopy(seed)) for sample in samples]
        fit = paired_taylor(samples, metrics, order=1)
        return Replicates(
            names=fit.names,
            values=np.concatenate([b.values for b in boots], axis=-1),
            support=fit.support,
            centre=fit.mean,
            unseen=fit.unseen,
            fit=fit,
            moving=np.concatenate([b.moving for b in boots]),
        )
