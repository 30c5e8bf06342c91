"""Kinds of interval: each is a small object, which tables, plots, reports and studies take.

`BetaGamma`, `Symmetric` and `WALD` are distributions about a closed-form estimate. `EqualTailed` and
`HighestDensity` are intervals of draws: bootstrap replicates or a posterior sample. `BCa`, `Basic` and
`Studentised` need a whole bootstrap, and are in `erbayes.engine`.

Sources: Korn and Graubard (1998), Survey Methodology 24, 193-201 (effective sample size, Beta quantiles,
adjustment by t quantiles); Agresti and Coull (1998), The American Statistician 52, 119-126 (pseudo-draws).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy.special import betaincinv, gammaincinv, ndtri, stdtrit

from .arrays import FloatArray
from .errors import DataError, need_object, number

Support = tuple[float, float]


@runtime_checkable
class Estimated(Protocol):
    """Estimates with standard errors (see `erbayes.Normal`)."""

    @property
    def mean(self) -> FloatArray: ...
    @property
    def sd(self) -> FloatArray: ...
    @property
    def df(self) -> FloatArray: ...
    @property
    def support(self) -> tuple[Support, ...]: ...
    @property
    def draws(self) -> FloatArray | float: ...
    @property
    def reach(self) -> FloatArray: ...


@runtime_checkable
class Drawn(Protocol):
    """Draws of metrics (see `erbayes.Draws`)."""

    @property
    def flat(self) -> FloatArray: ...


class Kind(Protocol):
    """A kind of interval."""

    def label(self, support: Support) -> str:
        """Return the name of the kind in tables, for a metric of this support."""
        ...

    def suits(self, result: Any) -> bool:
        """Return whether results of this type have such intervals."""
        ...

    def bounds(self, result: Any, level: float) -> FloatArray:
        """Return two-sided intervals, (..., k, 2)."""
        ...


def interval(result: Any, level: float, kind: Kind) -> FloatArray:
    """Return two-sided intervals, (..., k, 2), cut to the support; NaN for a metric without a mean.

    Raises
    ------
    DataError
        A level outside (0, 1), no kind, or a kind that the result cannot have.
    """
    check_level(level)
    need_suitable(kind, result)
    bounds = kind.bounds(result, level)
    bounds[np.isnan(result.mean)] = np.nan
    limits = np.array(result.support)
    return np.clip(bounds, limits[:, :1], limits[:, 1:])


def need_suitable(kind: Kind, result: Any) -> None:
    """Refuse what is no kind of interval, or none that the result can have.

    Raises
    ------
    DataError
    """
    need_object(kind, "bounds", "a kind of interval is an object such as WALD or EqualTailed()")
    if not kind.suits(result):
        raise DataError(
            f"{type(kind).__name__} is no interval of a {type(result).__name__}: BetaGamma, Symmetric and "
            "WALD are those of a Normal, EqualTailed and HighestDensity of Draws, and BCa, Basic and "
            "Studentised of a Bootstrap"
        )


def suitable(kinds: Sequence[Kind], result: Any) -> list[Kind]:
    """Return the kinds that suit a result, or its own kind if none does."""
    for kind in kinds:
        need_object(kind, "suits", "a kind of interval is an object such as WALD or EqualTailed()")
    return [kind for kind in kinds if kind.suits(result)] or [result.kind]


class Distribution(ABC):
    """A kind of interval by the quantiles of a distribution, about closed-form estimates."""

    __slots__ = ()

    @abstractmethod
    def label(self, support: Support) -> str: ...

    @abstractmethod
    def quantile(self, fit: Estimated, p: FloatArray) -> FloatArray:
        """Return quantiles (..., k) at probabilities p that broadcast against the estimates (..., k)."""

    def suits(self, result: Any) -> bool:
        return isinstance(result, Estimated)

    def bounds(self, result: Estimated, level: float) -> FloatArray:
        """Return the quantiles of both tails, or the estimate if it lies outside them."""
        shape = (1,) * result.mean.ndim
        low, high = (self.quantile(result, np.full(shape, p)) for p in ((1 - level) / 2, (1 + level) / 2))
        return np.stack([np.minimum(low, result.mean), np.maximum(high, result.mean)], axis=-1)


@dataclass(frozen=True, slots=True)
class EqualTailed:
    """As many draws below the interval as above it: the percentile interval of a bootstrap."""

    def label(self, support: Support) -> str:
        return "equal-tailed"

    def suits(self, result: Any) -> bool:
        return isinstance(result, Drawn)

    def bounds(self, result: Drawn, level: float) -> FloatArray:
        return np.asarray(np.quantile(result.flat, [(1 - level) / 2, (1 + level) / 2], axis=0).T)


@dataclass(frozen=True, slots=True)
class HighestDensity:
    """The shortest interval that holds the share `level` of the draws. Needs the extra `bayes`.

    Raises
    ------
    DataError
        arviz-stats is not installed.
    """

    def label(self, support: Support) -> str:
        return "HDI"

    def suits(self, result: Any) -> bool:
        return isinstance(result, Drawn)

    def bounds(self, result: Drawn, level: float) -> FloatArray:
        return np.array(array_stats().hdi(result.flat, level, axis=0))


def array_stats() -> Any:
    """Return ArviZ's statistics of arrays.

    Raises
    ------
    DataError
        arviz-stats is not installed.
    """
    try:
        from arviz_stats.base import array_stats
    except ModuleNotFoundError as error:
        raise DataError(
            "highest-density intervals and diagnostics of chains need arviz-stats: "
            "pip install 'erbayes[bayes]'"
        ) from error
    return array_stats


def check_level(level: float, what: str = "level") -> None:
    """Refuse a level outside (0, 1)."""
    if isinstance(level, bool) or not isinstance(level, Real) or not 0 < level < 1:
        raise DataError(f"{what} must lie strictly between 0 and 1, not {level!r}")


def _t(df: FloatArray, p: FloatArray) -> FloatArray:
    return np.asarray(stdtrit(np.minimum(df, 1e12), p))


@dataclass(frozen=True, slots=True)
class BetaGamma(Distribution):
    """Beta quantiles on a bounded support, Gamma quantiles on a half-line, t quantiles on the line.

    Two pseudo-draws are added first: one of an entity that raises the metric as far as any can, and one that
    lowers it. They stand for errors that no draw has shown. Mass 1/2 at an end of the scale is that of
    Jeffreys' prior: n equal draws without an error give about the interval of Beta(n + 1/2, 1/2). Towards the
    middle, where draws show errors enough and V alone tells how they differ, the mass fades: it is multiplied
    by ((u + d)/(u - d))², with u and d the distances up and down, (2x - 1)² on [0, 1]. If few draws hold most
    of what a metric averages over, the masses count against the effective number of draws.

    With the pseudo-draws the estimate is x and its variance V. On [0, 1] quantiles are those of
    Beta(n* x, n* (1 - x)), where n* = x (1 - x)/V is the effective sample size. Metrics on [a, b] are moved
    to [0, 1] first. On [a, ∞) quantiles are those of a + Gamma with mean x - a and variance V. Few degrees
    of freedom widen all of them: V is multiplied by (t_df(p)/z(p))² at probability p.

    Parameters
    ----------
    mass : float
        Weight of each pseudo-draw at an end of the scale, 0 or more; an effective draw of the sample has 1.

    Raises
    ------
    DataError
        A mass that is no number, or below 0, or infinite.

    Examples
    --------
    No error in 100 draws:

    >>> from erbayes import Normal
    >>> fit = Normal(("precision",), np.ones(1), np.zeros((1, 1)), np.array([99.0]), ((0.0, 1.0),), draws=100)
    >>> interval(fit, 0.95, BetaGamma()).round(3)
    array([[0.975, 1.   ]])
    """

    mass: float = 0.5

    def __post_init__(self) -> None:
        number(self.mass, "mass of the pseudo-draws", lambda x: 0 <= x < np.inf, "be 0 or more and finite")

    def label(self, support: Support) -> str:
        bounded = np.isfinite(support)
        return "Beta" if bounded.all() else "Gamma" if bounded[0] else "t"

    def quantile(self, fit: Estimated, p: FloatArray) -> FloatArray:
        p, x, V = np.broadcast_arrays(p, *self._with_pseudo_draws(fit))
        away = np.where(np.abs(p - 0.5) < 1e-4, 0.5 + 1e-4, p)  # at the median both quantiles are 0
        widened = V * (_t(fit.df, away) / ndtri(away)) ** 2
        found = x + np.sqrt(V) * _t(fit.df, p)
        for j, (least, most) in enumerate(fit.support):
            at = (..., j)
            if np.isfinite([least, most]).all():
                width = most - least
                found[at] = least + width * _beta((x[at] - least) / width, widened[at] / width**2, p[at])
            elif np.isfinite(least):
                found[at] = least + _gamma(x[at] - least, widened[at], p[at])
        return np.asarray(found)

    def share(self, reach: FloatArray, draws: FloatArray | float) -> FloatArray:
        """Mass of each pseudo-draw over the effective number of draws, (..., k)."""
        length = np.abs(reach).sum(axis=-1)
        fade = np.divide(reach.sum(axis=-1), length, out=np.zeros_like(length), where=length > 0) ** 2
        return np.asarray(self.mass * fade / draws)

    def _with_pseudo_draws(self, fit: Estimated) -> tuple[FloatArray, FloatArray]:
        """Estimates, within their support, and variances, both (..., k)."""
        least, most = np.array(fit.support).T
        reach = fit.reach
        share = self.share(reach, fit.draws)
        centre = np.clip(fit.mean, least, most) + share / (1 + 2 * share) * reach.sum(axis=-1)
        spread = fit.sd**2 + share / fit.draws * (reach**2).sum(axis=-1)
        return np.clip(centre, least, most), spread / (1 + 2 * share) ** 2


def _beta(x: FloatArray, V: FloatArray, p: FloatArray) -> FloatArray:
    """Quantiles of the Beta distribution of mean x and size x (1 - x)/V; x itself if V is 0."""
    spread = (V > 0) & (x > 0) & (x < 1)
    size = np.divide(x * (1 - x), V, out=np.ones_like(x), where=spread)
    found = betaincinv(np.where(spread, size * x, 1.0), np.where(spread, size * (1 - x), 1.0), p)
    return np.where(spread, found, np.where(np.isnan(V), np.nan, x))


def _gamma(x: FloatArray, V: FloatArray, p: FloatArray) -> FloatArray:
    """Quantiles of the Gamma distribution of mean x and variance V; x itself if V is 0."""
    spread = (V > 0) & (x > 0)
    shape = np.divide(x**2, V, out=np.ones_like(x), where=spread)
    found = gammaincinv(shape, p) * x / shape
    return np.where(spread, found, np.where(np.isnan(V), np.nan, x))


DEFAULT = BetaGamma()
"""The default kind; docs/intervals.md tells why."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scale:
    """A monotone transformation on which an interval is symmetric."""

    name: str
    forward: Callable[[FloatArray], FloatArray]
    inverse: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], FloatArray]
    lower: float
    upper: float

    def __repr__(self) -> str:
        return f"<{self.name} scale>"


identity = Scale("identity", lambda x: x, lambda y: y, np.ones_like, -np.inf, np.inf)
logit = Scale(
    "logit",
    lambda x: np.log(x / (1 - x)),
    lambda y: (1 + np.tanh(y / 2)) / 2,
    lambda x: 1 / (x * (1 - x)),
    0.0,
    1.0,
)
log = Scale("log", np.log, np.exp, lambda x: 1 / x, 0.0, np.inf)


def natural_scale(support: Support) -> Scale:
    """logit on [0, 1], log on [0, ∞), identity elsewhere."""
    return {(0.0, 1.0): logit, (0.0, np.inf): log}.get(support, identity)


@dataclass(frozen=True, slots=True)
class Symmetric(Distribution):
    """Quantiles that lie symmetrically about the estimate on a scale: x, then ± t standard errors.

    Parameters
    ----------
    scale : Scale, optional
        By default the natural one of each metric's support. An estimate outside the open range of its scale
        is treated on the identity scale.
    df : float, optional
        Degrees of freedom for all metrics; ∞ gives normal quantiles. By default those of the estimates.

    Raises
    ------
    DataError
        A scale that is none, or degrees of freedom that are no number above 0.

    Examples
    --------
    >>> from erbayes import Normal
    >>> fit = Normal(("recall",), np.array([0.8]), np.array([[0.01]]), np.array([20.0]), ((0.0, 1.0),))
    >>> interval(fit, 0.95, Symmetric()).round(2), interval(fit, 0.95, WALD).round(2)
    (array([[0.52, 0.94]]), array([[0.6, 1. ]]))
    """

    scale: Scale | None = None
    df: float | None = None

    def __post_init__(self) -> None:
        if self.scale is not None:
            need_object(self.scale, "forward", "a scale is one of identity, logit and log")
        if self.df is not None:
            number(self.df, "degrees of freedom", lambda x: x > 0, "be above 0")

    def label(self, support: Support) -> str:
        name = (self.scale or natural_scale(support)).name
        return f"{name}-{'t' if self.df is None or np.isfinite(self.df) else 'normal'}"

    def quantile(self, fit: Estimated, p: FloatArray) -> FloatArray:
        step = fit.sd * _t(fit.df if self.df is None else np.full_like(fit.df, self.df), p)
        found = np.array(fit.mean + step)
        for j, support in enumerate(fit.support):
            on, x = self.scale or natural_scale(support), fit.mean[..., j]
            with np.errstate(divide="ignore", invalid="ignore"):
                moved = on.inverse(on.forward(x) + step[..., j] * on.slope(x))
            found[..., j] = np.where((on.lower < x) & (x < on.upper), moved, found[..., j])
        return found


WALD = Symmetric(identity, np.inf)
"""Estimate ± normal quantile × standard error, as in the paper."""
