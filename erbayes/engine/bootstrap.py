"""The bootstrap: replicates of metrics, and the kinds of interval that need them.

Sources: Efron (1987), JASA 82, 171-185 (BCa); Davison and Hinkley (1997), chapter 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from ..arrays import FloatArray, Seed, generator
from ..columns import Column
from ..errors import DataError, NotIdentified, need_object, whole
from ..intervals import DEFAULT, Distribution, EqualTailed, Kind, Scale, Support, identity, natural_scale
from ..metrics import USUAL, Metric, Wanted, chosen
from ..progress import track
from ..sample import Sample, need_sample
from ..uncertain import Draws, Normal, gradient, positions
from .closed_form import columns_of, taylor
from .jackknife import leave_one_out
from .schemes import CHUNK, RaoWu, Scheme


class OfBootstrap:
    """A kind of interval that needs a whole bootstrap: its replicates and its sample."""

    __slots__ = ()

    def label(self, support: Support) -> str:
        return type(self).__name__

    def suits(self, result: Any) -> bool:
        return isinstance(result, Bootstrap)


@dataclass(frozen=True, slots=True)
class BCa(OfBootstrap):
    """Bias-corrected and accelerated quantiles, Efron (1987): the same on every scale.

    Quantiles are taken at Φ(z0 + (z0 + z_a)/(1 - A (z0 + z_a))), with z0 = Φ⁻¹ of the share of
    replicates below the estimate (those equal to it count by half) and A the acceleration.
    """

    def bounds(self, boot: Bootstrap, level: float) -> FloatArray:
        values, x = boot.flat, boot.fit.mean
        below = np.mean(values < x, axis=0) + np.mean(values == x, axis=0) / 2
        z0 = ndtri(np.clip(below, 0.5 / len(values), 1 - 0.5 / len(values)))
        z = z0[:, None] + ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
        at = ndtr(z0[:, None] + z / (1 - boot.acceleration()[:, None] * z))
        rank, ordered = np.arange(len(values)), np.sort(values.T)
        return np.array([np.interp(a * rank[-1], rank, v) for v, a in zip(ordered, at, strict=True)])


@dataclass(frozen=True, slots=True)
class Basic(OfBootstrap):
    """2x - quantiles, reflected at the estimate x on a scale (by default the natural one)."""

    scale: Scale | None = None

    def bounds(self, boot: Bootstrap, level: float) -> FloatArray:
        low, high = EqualTailed().bounds(boot, level).T
        bounds = np.empty((len(low), 2))
        for j, on in enumerate(_scales(boot, self.scale)):
            x, ends = on.forward(boot.fit.mean[j]), on.forward(np.array([high[j], low[j]]))
            bounds[j] = on.inverse(2 * x - ends)
        return bounds


@dataclass(frozen=True, slots=True)
class Studentised(OfBootstrap):
    """Bootstrap-t: x - quantile(t*) se, with t* = (x* - x)/se* on a scale (by default the natural one).

    A replicate whose own standard error is 0 has t* = ±∞, or 0 where x* = x.
    """

    scale: Scale | None = None

    def bounds(self, boot: Bootstrap, level: float) -> FloatArray:
        errors = boot.errors()
        bounds = np.empty((len(boot.metrics), 2))
        for j, on in enumerate(_scales(boot, self.scale)):
            x, draws = boot.fit.mean[j : j + 1], boot.flat[:, j]
            away = on.forward(draws) - on.forward(x)
            with np.errstate(divide="ignore", invalid="ignore"):
                t = np.where(away == 0, 0.0, away / (on.slope(draws) * errors[:, j]))
            t = np.clip(t, -1e9, 1e9)  # quantiles do not interpolate between infinities
            q = np.quantile(t, [(1 + level) / 2, (1 - level) / 2])
            bounds[j] = on.inverse(on.forward(x) - q * on.slope(x) * boot.fit.sd[j])
        return bounds


def _scales(boot: Bootstrap, scale: Scale | None) -> list[Scale]:
    """The scale of each metric; identity where the estimate or a replicate is outside its open range."""
    low, high = boot.flat.min(axis=0), boot.flat.max(axis=0)
    chosen = [scale or natural_scale(s) for s in boot.fit.support]
    return [
        on if on.lower < a and b < on.upper and on.lower < x < on.upper else identity
        for on, a, b, x in zip(chosen, low, high, boot.fit.mean, strict=True)
    ]


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Bootstrap(Draws):
    """Bootstrap replicates of metrics: draws about the estimates g(t̂), which are not corrected.

    Attributes
    ----------
    names, values, support, centre
        As in `Draws`, (1, B, metrics). `centre` holds the estimates.
    fit : Normal
        The estimates with their Taylor standard errors.
    totals : Draws
        Replicates of the totals, (1, B, k).
    sample : Sample
    metrics : tuple of Metric
    scheme : Scheme
    seed : Generator
        As it was before the first replicate.
    """

    kind: ClassVar[Kind] = BCa()
    fit: Normal
    totals: Draws
    sample: Sample
    metrics: tuple[Metric, ...]
    scheme: Scheme
    seed: np.random.Generator

    def as_draws(self, number: int = 4000, rng: Seed = None, kind: Distribution = DEFAULT) -> Draws:
        """The replicates alone, with equal-tailed intervals: those of a Bayesian bootstrap."""
        return Draws(self.names, self.values, self.support, self.centre)

    def part(self, at: Sequence[int]) -> Bootstrap:
        """The metrics at these positions."""
        alone = Draws.part(self, at)
        return replace(
            self,
            names=alone.names,
            values=alone.values,
            support=alone.support,
            centre=alone.centre,
            fit=self.fit.part(at),
            metrics=tuple(self.metrics[j] for j in at),
        )

    def acceleration(self) -> FloatArray:
        """Σ u³ / (6 (Σ u²)^1.5), u_s = mean of the g_(s) - g_(s), g_(s) without draw s, (metrics,)."""
        left, _ = leave_one_out(self.sample, self.metrics)
        lost = np.isnan(left).any(axis=0) & ~np.isnan(self.mean)
        if lost.any():
            names = ", ".join(m.name for m, bad in zip(self.metrics, lost, strict=True) if bad)
            raise NotIdentified(
                f"the acceleration of {names} is 0/0 where one draw is left out: use EqualTailed()"
            )
        u = left.mean(axis=0) - left
        spread = np.sum(u**2, axis=0) ** 1.5
        return np.asarray(np.sum(u**3, axis=0) / (6 * np.where(spread > 0, spread, 1.0)))

    def errors(self) -> FloatArray:
        """Taylor standard error of each metric within each replicate, (B, metrics)."""
        variance = self.sample.expansion.variance
        counted, _ = columns_of(self.metrics)
        Z, k = _contributions(self.sample, self.scheme, counted), len(counted)
        e = variance.residuals(Z) if len(Z) == len(self.sample.expansion.unit) else Z
        squares = (e[:, :, None] * e[:, None, :]).reshape(len(e), -1)
        draws, B = variance.independent, len(self.flat)
        stratum = np.pad(draws.stratum, (0, len(Z) - len(draws.stratum)))
        moments = np.zeros((B, k, k))
        for h, theta in enumerate(draws.theta):
            at = stratum == h
            n = int(at.sum())
            rows = slice(0, 0)
            for r in self.scheme.chunks(draws, B, deepcopy(self.seed)):
                rows = slice(rows.stop, rows.stop + len(r))
                mean = r[:, at] @ e[at]
                second = (r[:, at] @ squares[at]).reshape(-1, k, k)
                spread = second - mean[:, :, None] * mean[:, None, :] / n
                moments[rows] += theta * n / max(n - 1, 1) * spread
        found = np.empty((B, len(self.metrics)))
        for j, metric in enumerate(self.metrics):
            at_j = positions(metric, self.totals.names)
            with np.errstate(divide="ignore", invalid="ignore"):
                J = gradient(metric.formula, self.totals.flat[:, at_j].T)
            free = [i for i, p in enumerate(at_j) if p < k]
            V = moments[np.ix_(np.arange(B), [at_j[i] for i in free], [at_j[i] for i in free])]
            found[:, j] = np.sqrt(np.maximum(np.einsum("ib,bij,jb->b", J[free], V, J[free]), 0))
        return found


def _contributions(sample: Sample, scheme: Scheme, columns: Sequence[Column]) -> FloatArray:
    """Contributions of draws and pseudo-draws."""
    Z = sample.contributions(columns)
    more = scheme.pseudo(sample, columns)
    if len(more) and sample.expansion.variance is not sample.expansion.variance.independent:
        raise NotIdentified("pseudo-draws cannot be calibrated: use the design that was calibrated")
    return np.vstack([Z, more])


def bootstrap(
    sample: Sample,
    metrics: Wanted = USUAL,
    scheme: Scheme | None = None,
    *,
    replicates: int = 4000,
    rng: Seed = None,
    progress: bool = True,
) -> Bootstrap:
    """Replicates of `metrics` under resampling of the draws.

    Parameters
    ----------
    sample : Sample
    metrics : Metric or str, or several
        Objects of `erbayes.metrics`, or names as tables print them.
    scheme : Scheme, optional
        `RaoWu` by default.
    replicates : int
        2 or more.
    rng : Generator, int or None
        A seed gives the same replicates again.
    progress : bool
        Show a bar where it takes more than two seconds.

    Raises
    ------
    NotIdentified
        A stratum with a single draw, draws that are not independent, every metric 0/0 in some
        replicates. (One of several is NaN there, see `Draws.reasons`.)

    Examples
    --------
    >>> import erbayes as eb
    >>> prediction = {i: i // 3 for i in range(24)}
    >>> labels = {i: i // 4 for i in range(24)}
    >>> sample = eb.Sample(eb.measure(prediction, labels), eb.UniformClusters())
    >>> found = bootstrap(sample, "pairwise-recall", rng=1)
    >>> found.table(0.9)[["estimate", "lower", "upper"]].round(2)
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
    seed = deepcopy(rng)
    counted, known = columns_of(metrics)
    Z = _contributions(sample, scheme, counted)
    variance = sample.expansion.variance
    chunks = scheme.chunks(variance.independent, replicates, rng)
    number = -(-replicates // max(CHUNK // len(sample.expansion.unit), 1))
    sums = [variance.replicates(Z, r) for r in track(chunks, number, "bootstrap", progress)]
    constants = np.array([sample.known(t) for t in known])
    values = np.hstack([np.vstack(sums), np.tile(constants, (replicates, 1))])
    names = tuple(c.name for c in counted) + tuple(t.name for t in known)
    totals = Draws(names, values[None], ((-np.inf, np.inf),) * len(names))
    fit = taylor(sample, metrics).apply(metrics, order=1)
    found = totals.apply(metrics)
    return Bootstrap(
        found.names,
        found.values,
        found.support,
        fit.mean,
        fit=fit,
        totals=totals,
        sample=sample,
        metrics=metrics,
        scheme=scheme,
        seed=seed,
    )


@dataclass(frozen=True, slots=True)
class Resampled:
    """The bootstrap.

    Parameters
    ----------
    scheme : Scheme
    replicates : int
        2 or more.
    """

    scheme: Scheme = field(default_factory=RaoWu)
    replicates: int = 4000

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Bootstrap:
        return bootstrap(sample, metrics, self.scheme, replicates=self.replicates, rng=rng, progress=False)

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> Draws:
        """As `Paired.paired`: every prediction has the same multipliers."""
        seed = generator(rng)
        boots = [self(sample, metrics, deepcopy(seed)) for sample in samples]
        return Draws(
            tuple(name for b in boots for name in b.names),
            np.concatenate([b.values for b in boots], axis=-1),
            tuple(s for b in boots for s in b.support),
            np.concatenate([b.estimate for b in boots]),
        )
