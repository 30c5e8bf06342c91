"""Bootstrap engines: replicates of the totals by multipliers of the draws' weights.

A scheme draws multipliers r_bs; replicate b of the totals is Σ_s r_bs z_s: one matrix product for
all metrics. Finite-population corrections shrink multipliers to 1, r -> 1 + √θ (r - 1).

Sources: Efron (1987), JASA 82, 171-185 (BCa); Rao and Wu (1988), JASA 83, 231-241; Rubin (1981),
Annals of Statistics 9, 130-134 (Bayesian bootstrap); Davison and Hinkley (1997), chapter 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from .arrays import FloatArray, IntArray, Seed, generator
from .columns import RECORDS, TRUE_LINKS, Column
from .errors import DataError, NotIdentified, need_object, whole
from .intervals import Scale, check_level, identity, natural_scale
from .metrics import METRICS, Metric, Wanted, chosen
from .progress import track
from .sample import Sample, need_sample
from .taylor import columns_of, leave_one_out, taylor
from .uncertain import Draws, Normal, Tabled, gradient, positions, reason_column
from .variance import StratifiedDraws

CHUNK = 2**18
"""Multipliers held in memory at a time."""


class Scheme(Protocol):
    """A way of resampling draws: schemes inherit from it and give `multipliers`."""

    __slots__ = ()

    def multipliers(self, draws: StratifiedDraws, replicates: int, rng: np.random.Generator) -> FloatArray:
        """r_bs, (replicates, n + pseudo-draws)."""
        ...

    def chunks(
        self, draws: StratifiedDraws, replicates: int, rng: np.random.Generator
    ) -> Iterator[FloatArray]:
        """All multipliers, about `CHUNK` at a time."""
        at_once = max(CHUNK // len(draws.stratum), 1)
        for done in range(0, replicates, at_once):
            yield self.multipliers(draws, min(at_once, replicates - done), rng)

    def pseudo(self, sample: Sample, columns: Sequence[Column]) -> FloatArray:
        """Contributions of pseudo-draws, (pseudo-draws, k)."""
        return np.empty((0, len(columns)))


def _resampled(draws: StratifiedDraws) -> tuple[IntArray, FloatArray]:
    """Draws in each stratum, (H,), and √θ of each draw, (n,).

    Raises
    ------
    NotIdentified
        A stratum with one draw that was not certain: nothing to resample.
    """
    n = np.bincount(draws.stratum)
    single = (n == 1) & (draws.theta > 0)
    if single.any():
        raise NotIdentified(
            f"{int(single.sum())} of {len(n)} strata hold a single draw: the bootstrap cannot resample it"
        )
    return n, np.sqrt(draws.theta)[draws.stratum]


def _counts(draws: StratifiedDraws, fewer: int, replicates: int, rng: np.random.Generator) -> FloatArray:
    """How often each draw recurs among n_h - fewer draws with replacement in its stratum, (B, n)."""
    n = np.bincount(draws.stratum)
    total = len(draws.stratum)
    if len(n) == 1:
        picks = rng.integers(total, size=(replicates, total - fewer))
    else:
        of = np.repeat(np.arange(len(n)), np.maximum(n - fewer, 1))
        place = rng.integers(n[of], size=(replicates, len(of))) + (np.cumsum(n) - n)[of]
        picks = np.argsort(draws.stratum, kind="stable")[place]
    picks += np.arange(replicates)[:, None] * total
    counts = np.bincount(picks.ravel(), minlength=replicates * total)
    return counts.reshape(replicates, total).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Multinomial(Scheme):
    """n_h draws with replacement in each stratum, Efron's bootstrap. Variance (n-1)/n of the unbiased."""

    def multipliers(self, draws: StratifiedDraws, replicates: int, rng: np.random.Generator) -> FloatArray:
        _, root = _resampled(draws)
        r = _counts(draws, 0, replicates, rng)
        r *= root
        r += 1 - root
        return r


@dataclass(frozen=True, slots=True)
class RaoWu(Scheme):
    """n_h - 1 draws, rescaled by n_h/(n_h-1): the variance of totals is unbiased, in strata and
    without replacement too."""

    def multipliers(self, draws: StratifiedDraws, replicates: int, rng: np.random.Generator) -> FloatArray:
        n, root = _resampled(draws)
        factor = (n / np.maximum(n - 1, 1))[draws.stratum]
        r = _counts(draws, 1, replicates, rng)
        r *= root * factor
        r += 1 - root
        return r


@dataclass(frozen=True, slots=True)
class Dirichlet(Scheme):
    """Rubin's Bayesian bootstrap: n_h times flat Dirichlet weights in each stratum."""

    def multipliers(self, draws: StratifiedDraws, replicates: int, rng: np.random.Generator) -> FloatArray:
        n, root = _resampled(draws)
        r = rng.standard_exponential((replicates, len(draws.stratum)))
        member = np.eye(len(n))[draws.stratum] if len(n) > 1 else np.ones((len(draws.stratum), 1))
        return 1 + root * (r * n[draws.stratum] / (r @ member)[:, draws.stratum] - 1)


@dataclass(frozen=True, slots=True)
class PseudoDraws(Scheme):
    """Bayesian bootstrap with two more draws: one entity all right, one all wrong.

    Where a sample holds almost no error, every other interval shrinks to nothing. Here two pseudo-draws
    of average size say that errors may exist that were not seen: one entity that is predicted exactly,
    and one whose records are each the only one of it in a predicted cluster as large as the entity.
    Their weight and size give each the average records and true links of a draw.

    Parameters
    ----------
    mass : float
        Dirichlet mass of each, above 0; a draw of the sample has 1.
    """

    mass: float = 0.25

    def __post_init__(self) -> None:
        if not 0 < self.mass < np.inf:
            raise DataError(f"mass of a pseudo-draw must be above 0, not {self.mass}")

    def multipliers(self, draws: StratifiedDraws, replicates: int, rng: np.random.Generator) -> FloatArray:
        _, root = _resampled(draws)
        if draws.lost > 1 or draws.theta[0] < 1:
            raise NotIdentified("pseudo-draws are made for one stratum drawn with replacement")
        n = len(root)
        r = np.hstack(
            [
                rng.standard_exponential((replicates, n)),
                rng.standard_gamma(self.mass, (replicates, 2)),
            ]
        )
        return np.asarray(r * n / r.sum(axis=1, keepdims=True))

    def pseudo(self, sample: Sample, columns: Sequence[Column]) -> FloatArray:
        draws = len(sample.expansion.unit)
        records, links = sample.contributions([RECORDS, TRUE_LINKS]).sum(axis=0)
        size = max(round(1 + 2 * links / records), 2)
        stock = sample.units.stock(size)
        y = np.column_stack([stock.column(c)[:2] for c in columns])
        return np.asarray(y * (records / draws / size))


@dataclass(frozen=True, slots=True, eq=False)
class FixedReplicates(Scheme):
    """Multipliers made elsewhere, such as replicate weights divided by weights.

    Parameters
    ----------
    given : float array or nested sequence, (replicates, n)
    """

    given: ArrayLike

    def multipliers(self, draws: StratifiedDraws, replicates: int, rng: np.random.Generator) -> FloatArray:
        given = np.asarray(self.given, dtype=float)
        if given.shape != (replicates, len(draws.stratum)):
            raise DataError(
                f"{replicates} replicates of {len(draws.stratum)} draws need multipliers of that shape, "
                f"not {given.shape}"
            )
        if bad := int(np.count_nonzero(~np.isfinite(given))):
            raise DataError(f"multipliers must be finite; {bad} of {given.size} are not")
        return given

    def chunks(
        self, draws: StratifiedDraws, replicates: int, rng: np.random.Generator
    ) -> Iterator[FloatArray]:
        """The given ones, which are in memory already."""
        yield self.multipliers(draws, replicates, rng)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Bootstrap(Tabled):
    """Bootstrap replicates of metrics.

    Attributes
    ----------
    fit : Normal
        The estimates g(t̂), not corrected, with their Taylor standard errors.
    totals, draws : Draws
        Replicates of the totals, (1, B, k), and of the metrics, (1, B, metrics).
    sample : Sample
    metrics : tuple of Metric
    scheme : Scheme
    seed : Generator
        As it was before the first replicate.
    """

    fit: Normal
    totals: Draws
    draws: Draws
    sample: Sample
    metrics: tuple[Metric, ...]
    scheme: Scheme
    seed: np.random.Generator

    @property
    def sd(self) -> FloatArray:
        """Standard deviation over replicates, (metrics,)."""
        return self.draws.sd

    def interval(self, level: float = 0.95, kind: Interval | None = None) -> FloatArray:
        """Intervals of the metrics, (metrics, 2), cut to their support; `BCa` by default."""
        check_level(level)
        kind = BCa() if kind is None else kind
        need_object(kind, "__call__", "an interval is an object such as BCa()")
        bounds = kind(self, level)
        bounds[np.isnan(self.draws.mean)] = np.nan
        limits = np.array(self.fit.support)
        return np.clip(bounds, limits[:, :1], limits[:, 1:])

    def table(self, level: float = 0.95, kind: Interval | None = None) -> pd.DataFrame:
        """Estimate, standard deviation and interval, one row per metric.

        A column `reason` follows where a metric is 0/0 in the sample or in some replicates.
        """
        bounds = self.interval(level, kind)
        return pd.DataFrame(
            {
                "estimate": self.fit.mean,
                "sd": self.sd,
                "lower": bounds[:, 0],
                "upper": bounds[:, 1],
                "level": level,
            }
            | reason_column(self.draws.reasons),
            index=pd.Index(self.fit.names, name="metric"),
        )

    def acceleration(self) -> FloatArray:
        """Σ u³ / (6 (Σ u²)^1.5), u_s = mean of the g_(s) - g_(s), g_(s) without draw s, (metrics,)."""
        left, _ = leave_one_out(self.sample, self.metrics)
        lost = np.isnan(left).any(axis=0) & ~np.isnan(self.draws.mean)
        if lost.any():
            names = ", ".join(m.name for m, bad in zip(self.metrics, lost, strict=True) if bad)
            raise NotIdentified(
                f"the acceleration of {names} is 0/0 where one draw is left out: use Percentile"
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
        draws, B = variance.independent, len(self.draws.flat)
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
    metrics: Wanted = METRICS,
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
    if whole(replicates, "replicates") < 2:
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
    return Bootstrap(fit, totals, totals.apply(metrics), sample, metrics, scheme, seed)


class Interval(Protocol):
    """A way of turning replicates into intervals, (metrics, 2)."""

    def __call__(self, boot: Bootstrap, level: float) -> FloatArray: ...


@dataclass(frozen=True, slots=True)
class Percentile:
    """Quantiles of the replicates: the same on every scale."""

    def __call__(self, boot: Bootstrap, level: float) -> FloatArray:
        return boot.draws.interval(level)


@dataclass(frozen=True, slots=True)
class BCa:
    """Bias-corrected and accelerated quantiles, Efron (1987): the same on every scale.

    Quantiles are taken at Φ(z0 + (z0 + z_a)/(1 - A (z0 + z_a))), with z0 = Φ⁻¹ of the share of
    replicates below the estimate (those equal to it count by half) and A the acceleration.
    """

    def __call__(self, boot: Bootstrap, level: float) -> FloatArray:
        from scipy.special import ndtr, ndtri

        values, x = boot.draws.flat, boot.fit.mean
        below = np.mean(values < x, axis=0) + np.mean(values == x, axis=0) / 2
        z0 = ndtri(np.clip(below, 0.5 / len(values), 1 - 0.5 / len(values)))
        z = z0[:, None] + ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
        at = ndtr(z0[:, None] + z / (1 - boot.acceleration()[:, None] * z))
        rank, ordered = np.arange(len(values)), np.sort(values.T)
        return np.array([np.interp(a * rank[-1], rank, v) for v, a in zip(ordered, at, strict=True)])


@dataclass(frozen=True, slots=True)
class Basic:
    """2x - quantiles, reflected at the estimate x on a scale (by default the natural one)."""

    scale: Scale | None = None

    def __call__(self, boot: Bootstrap, level: float) -> FloatArray:
        low, high = boot.draws.interval(level).T
        bounds = np.empty((len(low), 2))
        for j, on in enumerate(_scales(boot, self.scale)):
            x, ends = on.forward(boot.fit.mean[j]), on.forward(np.array([high[j], low[j]]))
            bounds[j] = on.inverse(2 * x - ends)
        return bounds


@dataclass(frozen=True, slots=True)
class Studentised:
    """Bootstrap-t: x - quantile(t*) se, with t* = (x* - x)/se* on a scale (by default the natural one).

    A replicate whose own standard error is 0 has t* = ±∞, or 0 where x* = x.
    """

    scale: Scale | None = None

    def __call__(self, boot: Bootstrap, level: float) -> FloatArray:
        errors = boot.errors()
        bounds = np.empty((len(boot.metrics), 2))
        for j, on in enumerate(_scales(boot, self.scale)):
            x, draws = boot.fit.mean[j : j + 1], boot.draws.flat[:, j]
            away = on.forward(draws) - on.forward(x)
            with np.errstate(divide="ignore", invalid="ignore"):
                t = np.where(away == 0, 0.0, away / (on.slope(draws) * errors[:, j]))
            t = np.clip(t, -1e9, 1e9)  # quantiles do not interpolate between infinities
            q = np.quantile(t, [(1 + level) / 2, (1 - level) / 2])
            bounds[j] = on.inverse(on.forward(x) - q * on.slope(x) * boot.fit.sd[j])
        return bounds


def _scales(boot: Bootstrap, scale: Scale | None) -> list[Scale]:
    """The scale of each metric; identity where the estimate or a replicate is outside its open range."""
    low, high = boot.draws.flat.min(axis=0), boot.draws.flat.max(axis=0)
    chosen = [scale or natural_scale(s) for s in boot.fit.support]
    return [
        on if on.lower < a and b < on.upper and on.lower < x < on.upper else identity
        for on, a, b, x in zip(chosen, low, high, boot.fit.mean, strict=True)
    ]
