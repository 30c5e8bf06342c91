"""The bootstrap: replicates of metrics, and the kind of interval that needs them.

Source: Efron (1987), JASA 82, 171-185 (BCa).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from .._internal.arrays import FloatArray, Seed, generator
from .._internal.errors import DataError, NotIdentified, need_object, whole
from .._internal.progress import track
from ..design.sample import Sample, need_sample
from ..metrics.columns import Column
from ..metrics.definitions import USUAL, Metric, Wanted, chosen
from ..metrics.intervals import DEFAULT, Distribution, Kind
from ..metrics.uncertain import Draws, Normal
from .closed_form import columns_of, taylor
from .leave_one_out import leave_one_out
from .schemes import CHUNK, RaoWu, Scheme


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
    >>> units = eb.measure({i: i // 3 for i in range(120)}, {i: i // 4 for i in range(120)})
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
class Bootstrap(Draws):
    """Bootstrap replicates of metrics, and of their totals, (1, B, k). Estimates are not corrected for bias.

    `fit`: the estimates with Taylor standard errors.
    """

    kind: ClassVar[Kind] = BCa()
    fit: Normal
    totals: Draws
    sample: Sample
    metrics: tuple[Metric, ...]

    def as_draws(self, number: int = 4000, rng: Seed = None, kind: Distribution = DEFAULT) -> Draws:
        """Return the replicates without their sample. Their default intervals are equal-tailed."""
        return Draws(self.names, self.values, self.support, self.centre)

    def part(self, at: Sequence[int]) -> Bootstrap:
        metrics = tuple(self.metrics[j] for j in at)
        return replace(Draws.part(self, at), fit=self.fit.part(at), metrics=metrics)

    def acceleration(self) -> FloatArray:
        """Return Σ u³ / (6 (Σ u²)^1.5), (metrics,), u_s being the mean of all g_(s) minus g_(s) (Efron)."""
        replicates, _ = leave_one_out(self.sample, taylor(self.sample, self.metrics), self.metrics)
        lost = np.isnan(replicates).any(axis=0) & ~np.isnan(self.mean)
        if lost.any():
            names = ", ".join(m.name for m, bad in zip(self.metrics, lost, strict=True) if bad)
            raise NotIdentified(
                f"the acceleration of {names} is 0/0 if one draw is left out: use EqualTailed()"
            )
        u = replicates.mean(axis=0) - replicates
        spread = np.sum(u**2, axis=0) ** 1.5
        return np.asarray(np.sum(u**3, axis=0) / (6 * np.where(spread > 0, spread, 1.0)))


def _collect_contributions(sample: Sample, scheme: Scheme, columns: Sequence[Column]) -> FloatArray:
    """Return the contributions of draws, then of pseudo-draws, (n + pseudo-draws, k)."""
    Z = sample.contributions(columns)
    pseudo = scheme.pseudo(sample, columns)
    if len(pseudo) and sample.expansion.variance is not sample.expansion.variance.independent:
        raise NotIdentified("pseudo-draws cannot be calibrated: use the design that was calibrated")
    return np.vstack([Z, pseudo])


def bootstrap(
    sample: Sample,
    metrics: Wanted = USUAL,
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

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({i: i // 3 for i in range(24)}, {i: i // 4 for i in range(24)})
    >>> sample = eb.Sample(units, eb.UniformClusters())
    >>> boot = bootstrap(sample, "pairwise-recall", rng=1)
    >>> boot.table(0.9)[["estimate", "lower", "upper"]].round(2)
                     estimate  lower  upper
    metric
    pairwise-recall      0.44    0.4    0.5
    """
    need_sample(sample)
    replicates = whole(replicates, "replicates")
    if replicates < 2:
        raise DataError(f"a bootstrap needs two replicates or more, not {replicates}")
    scheme = scheme or RaoWu()
    need_object(scheme, "multipliers", "a scheme is an object such as RaoWu()")
    metrics, rng = chosen(metrics), generator(rng)
    counted, known = columns_of(metrics)
    Z = _collect_contributions(sample, scheme, counted)
    variance = sample.expansion.variance
    chunks = scheme.chunks(variance.independent, replicates, rng)
    number = -(-replicates // max(CHUNK // len(sample.expansion.unit), 1))
    sums = [variance.replicates(Z, r) for r in track(chunks, number, "bootstrap", progress)]
    constants = np.array([sample.known(t) for t in known])
    values = np.hstack([np.vstack(sums), np.tile(constants, (replicates, 1))])
    names = tuple(c.name for c in counted) + tuple(t.name for t in known)
    totals = Draws(names, values[None], ((-np.inf, np.inf),) * len(names))
    fit = taylor(sample, metrics).apply(metrics, order=1)
    draws = totals.apply(metrics)
    given = draws.names, draws.values, draws.support, fit.mean
    return Bootstrap(*given, fit=fit, totals=totals, sample=sample, metrics=metrics)


@dataclass(frozen=True, slots=True)
class Resampled:
    """The bootstrap, as an engine (see `bootstrap`)."""

    scheme: Scheme = field(default_factory=RaoWu)
    replicates: int = 4000

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Bootstrap:
        return bootstrap(sample, metrics, self.scheme, replicates=self.replicates, rng=rng, progress=False)

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> Draws:
        """As `Paired.paired`, with the same multipliers for every sample."""
        seed = generator(rng)
        boots = [self(sample, metrics, deepcopy(seed)) for sample in samples]
        return Draws(
            tuple(name for b in boots for name in b.names),
            np.concatenate([b.values for b in boots], axis=-1),
            tuple(s for b in boots for s in b.support),
            np.concatenate([b.estimate for b in boots]),
        )
