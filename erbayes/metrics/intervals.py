"""Kinds of interval: small objects, which tables, plots, reports and studies take.

`BetaGamma`, `Symmetric` and `WALD` are distributions about a closed-form estimate. `Anytime` makes a
confidence sequence of each of them. `EqualTailed` is the interval of draws: bootstrap replicates or posterior
draws. Others are in `erbayes.engine`: `BCa` needs a bootstrap with its sample, and
`Betting` the value of each draw. `simultaneous_level` makes intervals of several components cover together.

Sources: Korn and Graubard (1998), Survey Methodology 24, 193-201 (effective sample size, Beta quantiles,
adjustment by t quantiles). Agresti and Coull (1998), The American Statistician 52, 119-126 (pseudo-draws).
Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024), The Annals of Statistics 52, 2613-2640 (asymptotic
confidence sequences).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.special import lambertw, ndtr, ndtri

from .._internal.arrays import FloatArray
from .._internal.errors import DataError, import_extra, need_object, number
from . import unseen

if TYPE_CHECKING:
    from .estimates import Estimates


KIND = "a kind of interval is an object such as WALD or EqualTailed()"


class Kind(Protocol):
    """A rule that turns an uncertain estimate into an interval."""

    def label(self, result: Estimates, j: int) -> str:
        """Return the name of the kind in tables, for component j of a result."""

    def suits(self, result: Estimates) -> bool:
        """Return whether results of this type have such intervals."""

    def bounds(self, result: Estimates, level: float) -> FloatArray:
        """Return two-sided intervals of the share `level`, (..., k, 2)."""


def interval(result: Estimates, level: float, kind: Kind) -> FloatArray:
    """Return two-sided intervals, (..., k, 2), cut to the support; NaN for a metric without a mean."""
    check_level(level)
    need_suitable(kind, result)
    bounds = kind.bounds(result, level)
    bounds[np.isnan(result.mean)] = np.nan
    limits = np.array(result.support)
    return np.clip(bounds, limits[:, :1], limits[:, 1:])


def shift_ends(result: Estimates, level: float, kind: Kind) -> FloatArray:
    """Return intervals, (..., k, 2), with ends that `Unseen.between` and `Unseen.skew` move outward.

    An interval begins where that of the least estimate of the range does, and ends where the largest's does.
    """
    between, skew = result.unseen.between, result.unseen.skew
    if not (between.any() or skew.any()):
        return interval(result, level, kind)
    down_up = result.unseen.find_shifts(level)
    # the ends of the range take the place of its variance
    fit = replace(result, cov=result.cov - np.diag(between.sum(axis=1) ** 2 / 12))
    low, high = (
        interval(replace(fit, mean=fit.mean + shift), level, kind)
        for shift in (-down_up[..., 0], down_up[..., 1])
    )
    return np.stack([low[..., 0], high[..., 1]], axis=-1)


def allow_unreached(result: Estimates, bounds: FloatArray) -> FloatArray:
    """Return intervals (..., k, 2) in which the unreached share may have any value of the support."""
    share, support = result.unseen.unreached_share, np.array(result.support)
    x = np.clip(result.estimate, support[:, 0], support[:, 1])
    widened = unseen.widen(x, bounds, share, unseen.measure_parts(x, share, support)[..., None])
    # a small share shortens arms, also those that reach an end of the support, which is certain to hold
    reached = np.stack([bounds[..., 0] <= support[:, 0], bounds[..., 1] >= support[:, 1]], axis=-1)
    return np.where(reached, bounds, widened)


def need_suitable(kind: Kind, result: Estimates) -> None:
    """Refuse an object that is no kind of interval, or none that the result can have."""
    need_object(kind, "bounds", KIND)
    if not kind.suits(result):
        raise DataError(
            f"{type(kind).__name__} is no interval of these estimates: BetaGamma, Symmetric, WALD and "
            "Anytime are of a closed form, EqualTailed of draws, BCa of a bootstrap, Betting of bounded means"
        )


def suitable(kinds: Sequence[Kind], result: Estimates) -> list[Kind]:
    """Return the kinds that suit a result, or its own kind if none does; DataError for what is no kind."""
    need_object(kinds, "__iter__", "kinds is a list, such as [WALD]")
    for kind in kinds:
        need_object(kind, "suits", KIND)
    return [kind for kind in kinds if kind.suits(result)] or [result.kind]


class Distribution(ABC):
    """Kind of interval between quantiles of a distribution about a closed-form estimate."""

    __slots__ = ()

    @abstractmethod
    def label(self, result: Estimates, j: int) -> str: ...

    @abstractmethod
    def quantile(self, fit: Estimates, p: FloatArray) -> FloatArray:
        """Return quantiles (..., k) at probabilities p that broadcast against the estimates (..., k)."""

    def suits(self, result: Estimates) -> bool:
        return result.values is None

    def bounds(self, result: Estimates, level: float) -> FloatArray:
        """Return the quantiles of both tails, widened to the estimate if it is outside them."""
        ends = self.find_ends(result, np.full((1,) * result.mean.ndim, (1 - level) / 2))
        return self.widened(result, ends)

    def find_ends(self, fit: Estimates, tail: FloatArray) -> FloatArray:
        """Return quantiles (..., k, 2) at a probability of each tail, with the estimate between them."""
        low, high = self.quantile(fit, tail), self.quantile(fit, 1 - tail)
        return np.stack([np.minimum(low, fit.mean), np.maximum(high, fit.mean)], axis=-1)

    def widened(self, fit: Estimates, bounds: FloatArray) -> FloatArray:
        """Return intervals (..., k, 2) as they are: most kinds do not allow for what no draw can show."""
        return bounds

    def spread_unseen(self, fit: Estimates) -> FloatArray:
        """Return the variances, (..., k), that the kind adds for errors that no draw has shown: most none."""
        return np.zeros_like(fit.mean)


@dataclass(frozen=True, slots=True)
class EqualTailed:
    """Kind of interval with as many draws below it as above: the percentile interval of a bootstrap.

    Examples
    --------
    >>> from erbayes.metrics import Estimates
    >>> draws = Estimates.of_draws(("recall",), np.linspace(0, 1, 101).reshape(1, -1, 1), ((0.0, 1.0),))
    >>> draws.interval(0.5, EqualTailed())
    array([[0.25, 0.75]])
    """

    def label(self, result: Estimates, j: int) -> str:
        return "equal-tailed"

    def suits(self, result: Estimates) -> bool:
        return result.values is not None

    def bounds(self, result: Estimates, level: float) -> FloatArray:
        return np.asarray(np.quantile(result.flat, [(1 - level) / 2, (1 + level) / 2], axis=0).T)


def array_stats() -> Any:
    """Return ArviZ's statistics of arrays."""
    what = "errors of quantiles and diagnostics of chains need arviz-stats"
    return import_extra("arviz_stats.base", what, "bayes").array_stats


def compute_end_errors(result: Estimates, level: float, kind: Kind) -> FloatArray:
    """Return Monte Carlo standard errors of equal-tailed intervals, (k, 2); NaN for other kinds."""
    if not isinstance(kind, EqualTailed):
        return np.full((len(result.names), 2), np.nan)
    # of both members of an average, only the draws vary from seed to seed
    of = result.chains if result.other is None else result.weight * result.chains
    by = {"chain_axis": 0, "draw_axis": 1, "method": "quantile"}
    ends = [array_stats().mcse(of, prob=p, **by) for p in ((1 - level) / 2, (1 + level) / 2)]
    return np.stack(ends, axis=-1)


def check_level(level: float, what: str = "level") -> None:
    """Refuse a level outside (0, 1), which messages call `what`."""
    if isinstance(level, bool) or not isinstance(level, Real) or not 0 < level < 1:
        raise DataError(f"{what} must lie strictly between 0 and 1, not {level!r}")


@dataclass(frozen=True, slots=True)
class BetaGamma(Distribution):
    """The default kind of interval: Beta quantiles for shares, Gamma quantiles for counts.

    It adds two pseudo-draws to the sample, for errors that no draw has shown: an entity that
    raises the metric as far as any can, and one that lowers it as far. The mass of each fades from the ends
    of the scale to its middle (`Unseen.weigh_pseudo_draws`).

    Let x be the estimate with the pseudo-draws, and V its variance. On [0, 1], to which any [a, b] is mapped,
    quantiles are those of Beta(n* x, n* (1 - x)), n* = x (1 - x)/V. On [a, ∞) they are those of a plus a
    Gamma variable with mean x - a and variance V, and elsewhere x + √V t_df(p). Few degrees of freedom widen
    the first two: V is multiplied by (t_df(p)/z(p))² at probability p, with t and z the quantiles of
    Student's and of the normal distribution (Korn and Graubard 1998).

    If draws have more skewness than such a Beta distribution, the end on its side moves outward by the excess
    (Johnson 1978, JASA 73, 536-544).

    Differences of two predictions are gains less losses of draws, and each interval allows for the share of
    what a metric averages over that no draw reaches (`erbayes.metrics.unseen`).

    Parameters
    ----------
    mass : float
        Weight of each pseudo-draw at an end of the scale, 0 or more.

    Examples
    --------
    No error in 100 draws:

    >>> import erbayes as eb
    >>> units = eb.measure({i: i // 2 for i in range(400)}, {i: i // 2 for i in range(200)})
    >>> sample = eb.Sample(units, eb.UniformClusters())
    >>> fit = eb.engine.Taylor()(sample, [eb.metrics.pairwise_precision])
    >>> interval(fit, 0.95, BetaGamma()).round(3)
    array([[0.975, 1.   ]])
    """

    mass: float = 0.5

    def __post_init__(self) -> None:
        number(self.mass, "mass of the pseudo-draws", lambda x: 0 <= x < np.inf, "be 0 or more and finite")

    def label(self, result: Estimates, j: int) -> str:
        if result.moves.there[j]:
            return "gains and losses"
        bounded = np.isfinite(result.support[j])
        return "Beta" if bounded.all() else "Gamma" if bounded[0] else "t"

    def bounds(self, result: Estimates, level: float) -> FloatArray:
        bounds = Distribution.bounds(self, result, level)
        return bounds + self._skew_further(result, level) if result.unseen.third.any() else bounds

    def _skew_further(self, fit: Estimates, level: float) -> FloatArray:
        """Return how far ends move, (..., k, 2), by skewness of draws that Beta quantiles have not.

        With g the third moment of an estimate over its variance, and β that of equal draws that are right or
        wrong, (1 - 2x)V/(x(1 - x)), it is the part of g beyond β times (1 + 2z²)/6.
        """
        least, most = np.array(fit.support).T
        x, V = self.moments(fit)
        own = fit.uncut_sd**2
        g = np.divide(fit.unseen.third, own, out=np.zeros_like(own), where=own > 0)
        with np.errstate(invalid="ignore"):  # infinite supports, which stay as they are
            room = (x - least) * (most - x)
            beta = np.divide((least + most - 2 * x) * V, room, out=np.zeros_like(V), where=room > 0)
        further = np.where(g * beta > 0, np.maximum(np.abs(g) - np.abs(beta), 0.0), np.abs(g)) * np.sign(g)
        further = np.where(np.isfinite(most - least) & ~fit.moves.there, further, 0.0)
        step = further * (1 + 2 * ndtri((1 + level) / 2) ** 2) / 6
        return np.stack([np.minimum(step, 0.0), np.maximum(step, 0.0)], axis=-1)

    def quantile(self, fit: Estimates, p: FloatArray) -> FloatArray:
        p, x, V = np.broadcast_arrays(p, *self.moments(fit))
        widened, quantiles = unseen.inflate_variances(V, fit.df, p), np.empty(x.shape)
        for least, most in dict.fromkeys(fit.support):
            j = [i for i, support in enumerate(fit.support) if support == (least, most)]
            above, Vj, pj, width = x[..., j] - least, widened[..., j], p[..., j], most - least
            if np.isfinite(width):
                shares = unseen.compute_beta_quantiles(above / width, Vj / width**2, pj)
                quantiles[..., j] = least + width * shares
            elif np.isfinite(least):
                quantiles[..., j] = least + unseen.compute_gamma_quantiles(above, Vj, pj)
            else:
                quantiles[..., j] = x[..., j] + np.sqrt(V[..., j]) * unseen.compute_t_quantiles(
                    fit.df[..., j], pj
                )
        there = fit.moves.there
        if not there.any():
            return quantiles
        return np.where(there, fit.moves.quantile(fit.mean, p, self.mass), quantiles)

    def widened(self, fit: Estimates, bounds: FloatArray) -> FloatArray:
        """Return intervals (..., k, 2) that allow for the unreached share."""
        widened = allow_unreached(fit, bounds)
        there = fit.moves.there
        if not there.any():
            return widened
        moved = unseen.widen(fit.mean, bounds, fit.unseen.unreached_share, fit.moves.parts)
        low, high = np.minimum(bounds[..., 0], moved[..., 0]), np.maximum(bounds[..., 1], moved[..., 1])
        moved = np.where(fit.moves.at_most[..., None] > 0, np.stack([low, high], axis=-1), moved)
        return np.where(there[:, None], moved, widened)

    def spread_unseen(self, fit: Estimates) -> FloatArray:
        return fit.unseen.spread_pseudo_draws(self.mass)

    def moments(self, fit: Estimates) -> tuple[FloatArray, FloatArray]:
        """Return estimates, within their support, and variances with the pseudo-draws, both (..., k)."""
        least, most = np.array(fit.support).T
        share = fit.unseen.weigh_pseudo_draws(self.mass)
        centre = np.clip(fit.mean, least, most) + share / (1 + 2 * share) * fit.unseen.reach.sum(axis=-1)
        spread = fit.uncut_sd**2 + self.spread_unseen(fit)
        return np.clip(centre, least, most), spread / (1 + 2 * share) ** 2


DEFAULT = BetaGamma()
"""The default kind of interval. docs/intervals.md has the reasons."""


@dataclass(frozen=True, slots=True)
class Symmetric(Distribution):
    """Kind of interval that is symmetric about the estimate: estimate ± t standard errors.

    Parameters
    ----------
    df : float, optional
        Degrees of freedom of Student's distribution for all metrics, above 0; ∞ for normal quantiles. By
        default those of the estimates.

    Examples
    --------
    >>> from erbayes.metrics import Estimates
    >>> given = dict(names=("recall",), df=np.array([20.0]), support=((0.0, 1.0),))
    >>> fit = Estimates(mean=np.array([0.8]), cov=np.array([[0.01]]), **given)
    >>> interval(fit, 0.95, Symmetric()).round(2), interval(fit, 0.95, WALD).round(2)
    (array([[0.59, 1.  ]]), array([[0.6, 1. ]]))
    """

    df: float | None = None

    def __post_init__(self) -> None:
        if self.df is not None:
            number(self.df, "degrees of freedom", lambda x: x > 0, "be above 0")

    def label(self, result: Estimates, j: int) -> str:
        return "Wald" if self == WALD else "t"

    def quantile(self, fit: Estimates, p: FloatArray) -> FloatArray:
        df = fit.df if self.df is None else np.full_like(fit.df, self.df)
        return np.asarray(fit.mean + fit.uncut_sd * unseen.compute_t_quantiles(df, p))


WALD = Symmetric(np.inf)
"""The interval estimate ± normal quantile × standard error (Binette et al. 2022)."""


LEAST_TAIL = 1e-15
"""The smallest tail probability p of which 1 - p is exact enough, as rounding of 1 is 1e-16."""


@dataclass(frozen=True, slots=True)
class Anytime:
    """Kind of interval that stays valid if labels are looked at again and again: a confidence sequence.

    At each look it is an interval of another kind, with a higher level. Its normal quantile K follows from
    Robbins' boundary, which a sum of independent draws crosses at any time with probability α at most:

        K² = (1 + 1/u) log((1 + u)/α²),   u = c n/draws,   c = -W(-α²/e) - 1

    Here n is the effective number of draws, 1 - α the level, which is that of large samples, and W the lower
    branch of Lambert's function. K is smallest at n = `draws`, where it is 3.03 for level .95. With about two
    effective draws or fewer, the interval is the range of the metric.

    Parameters
    ----------
    draws : float
        Effective number of draws at which the interval is as short as possible, above 0.
    kind : Distribution
        The kind of interval at each look.

    Raises
    ------
    DataError
        In `bounds`, if estimates have standard errors without an effective number of draws.

    Examples
    --------
    No error in 100 draws, looked at once and at any time:

    >>> import erbayes as eb
    >>> units = eb.measure({i: i // 2 for i in range(400)}, {i: i // 2 for i in range(200)})
    >>> sample = eb.Sample(units, eb.UniformClusters())
    >>> fit = eb.engine.Taylor()(sample, [eb.metrics.pairwise_precision])
    >>> interval(fit, 0.95, BetaGamma()).round(3), interval(fit, 0.95, Anytime()).round(3)
    (array([[0.975, 1.   ]]), array([[0.946, 1.   ]]))
    """

    draws: float = 200.0
    kind: Distribution = DEFAULT

    def __post_init__(self) -> None:
        what, must = "draws of a confidence sequence", "be above 0 and finite"
        number(self.draws, what, lambda x: 0 < x < np.inf, must)
        need_object(self.kind, "quantile", "kind is one of the intervals in closed form, such as BetaGamma()")

    def label(self, result: Estimates, j: int) -> str:
        return f"{self.kind.label(result, j)} at any time"

    def suits(self, result: Estimates) -> bool:
        return self.kind.suits(result)

    def bounds(self, result: Estimates, level: float) -> FloatArray:
        n = np.asarray(result.unseen.effective)
        if (np.isinf(n) & (result.uncut_sd > 0)).any():
            raise DataError("Anytime needs the effective number of draws, which these estimates have not")
        tail = ndtr(-self.quantile(n, 1 - level))
        ends, few = self.kind.find_ends(result, np.maximum(tail, LEAST_TAIL)), tail < LEAST_TAIL
        return self.kind.widened(result, np.where(few[..., None], result.support, ends))

    def spread_unseen(self, fit: Estimates) -> FloatArray:
        return self.kind.spread_unseen(fit)

    def quantile(self, n: FloatArray, alpha: float) -> FloatArray:
        """Return K for effective numbers of draws."""
        best = -lambertw(-(alpha**2) / np.e, -1).real - 1
        u = np.clip(best * n / self.draws, 1e-9, 1e9)
        return np.asarray(np.sqrt((1 + 1 / u) * np.log((1 + u) / alpha**2)))


PATHS = 10_000
"""Random vectors from which the level of simultaneous intervals is computed, to a standard error of .002."""
ROUNDING = 1e-12
"""Standard error below which a component has no error, over its estimate or over 1, whichever is larger."""


def draw_paths(cov: FloatArray) -> FloatArray:
    """Return normal vectors of mean 0 and covariance `cov`, (k, k), the same each time, (PATHS, k)."""
    value, vector = np.linalg.eigh(np.nan_to_num(cov))
    # the symmetric root is unique, whereas signs and order of eigenvectors differ between processors
    root = vector * np.sqrt(np.maximum(value, 0)) @ vector.T
    # a seed of its own, so that a table is the same each time
    return np.asarray(np.random.default_rng(0).standard_normal((PATHS, len(root))) @ root)


def simultaneous_level(result: Estimates, level: float) -> float:
    """Return the pointwise level at which all intervals cover together at `level`: the sup-t band.

    It is 2 Φ(c) - 1, with c the quantile of the largest of |z_1|, ..., |z_k|, correlated as the components.

    References
    ----------
    Montiel Olea and Plagborg-Møller (2019), Journal of Applied Econometrics 34, 1-17.
    """
    check_level(level)
    cov = np.atleast_2d(result.cov)
    sd = np.sqrt(np.maximum(np.nan_to_num(np.diagonal(cov)), 0))
    scale = np.maximum(np.abs(np.nan_to_num(result.estimate)), 1)
    some = np.flatnonzero(sd > ROUNDING * scale)
    if len(some) < 2:
        return level
    sd = sd[some]
    z = draw_paths(cov[np.ix_(some, some)] / np.outer(sd, sd))
    c = np.quantile(np.abs(z).max(axis=1), level)
    return float(max(level, 2 * ndtr(c) - 1))
