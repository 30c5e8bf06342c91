"""Bets on the order of draws: exact intervals for metrics that are plain means of numbers in [0, 1].

A gambler starts with wealth 1 and bets, before each draw, that its value x lies above p:

    W_t(p) = Π_{s ≤ t} (1 + λ_s(p) (x_s - p)),   λ_s(p) = min(λ_s, c/p)

If p is the mean, no bet pays on average, and the wealth ever exceeds 1/a with probability a at most (Ville's
inequality). Values p at which the wealth has exceeded 2/α are therefore too low, except with probability
α/2. A second gambler bets that x lies below p. Both statements need no normal approximation, and hold for
every number of draws. W_t falls in p, and the wealth of the second gambler rises, since each factor does. So
bisection finds both ends to rounding.

The bets λ_s follow from the variance of the draws before s, σ²_{s-1}, which counts ¼ as one draw:

    λ_s = √(2 log(2/α) / (σ²_{s-1} n))            for a fixed number n of draws
    λ_s = √(2 log(2/α) / (σ²_{s-1} s log(1 + s))) for a sequence

Source: Waudby-Smith and Ramdas (2024), Journal of the Royal Statistical Society B 86, 1-27, theorem 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol

import numpy as np

from ..arrays import FloatArray, Seed
from ..columns import ClusterSum
from ..design import SelectedBySize
from ..errors import DataError, NotIdentified
from ..intervals import Support, check_level
from ..metrics import UNIT, Metric
from ..sample import Sample
from ..uncertain import Normal
from ..variance import StratifiedDraws
from .closed_form import columns_of, taylor

CAP = 0.75
"""The largest share c of the wealth that a bet can lose."""
HALVINGS = 50
"""Steps of bisection, after which ends are exact to 2⁻⁵⁰."""


class Pace(Protocol):
    """The number of draws over which a gambler spreads the bets."""

    def __call__(self, draw: FloatArray) -> FloatArray:
        """Return it for each draw, (n,), from the numbers of the draws, 1 to n."""
        ...


def fixed(draw: FloatArray) -> FloatArray:
    """Return n for each of n draws: the pace of bets for one look after the last draw.

    Examples
    --------
    >>> fixed(np.arange(1.0, 4.0))
    array([3., 3., 3.])
    """
    return np.full_like(draw, len(draw))


def unending(draw: FloatArray) -> FloatArray:
    """Return s log(1 + s) for draw s: the pace of bets for looks at any time.

    Examples
    --------
    >>> unending(np.arange(1.0, 4.0)).round(1)
    array([0.7, 2.2, 4.2])
    """
    return draw * np.log1p(draw)


def _bets(x: FloatArray, alpha: float, pace: Pace) -> FloatArray:
    """Return λ_s before each draw, (..., n), from the draws before it."""
    draw = np.arange(1.0, x.shape[-1] + 1)
    mean = (0.5 + np.cumsum(x, axis=-1)) / (1 + draw)
    variance = (0.25 + np.cumsum((x - mean) ** 2, axis=-1)) / (1 + draw)
    before = np.concatenate([np.full_like(x[..., :1], 0.25), variance[..., :-1]], axis=-1)
    return np.asarray(np.sqrt(2 * np.log(2 / alpha) / (before * pace(draw))))


def _log_wealth(x: FloatArray, bets: FloatArray, p: FloatArray) -> FloatArray:
    """Return the logarithm of the largest wealth so far of bets that x lies above p, (...)."""
    p = p[..., None]
    with np.errstate(divide="ignore"):
        stake = np.minimum(bets, CAP / p)
    return np.asarray(np.cumsum(np.log1p(stake * (x - p)), axis=-1).max(axis=-1))


def _lowest(x: FloatArray, alpha: float, pace: Pace) -> FloatArray:
    """Return the least p at which the gambler's wealth has stayed below 2/α, (...)."""
    bets = _bets(x, alpha, pace)
    low, high = np.zeros(x.shape[:-1]), np.ones(x.shape[:-1])
    for _ in range(HALVINGS):
        p = (low + high) / 2
        refuted = _log_wealth(x, bets, p) >= np.log(2 / alpha)
        low, high = np.where(refuted, p, low), np.where(refuted, high, p)
    return low


def betting(values: Any, level: float = 0.95, pace: Pace = fixed) -> FloatArray:
    """Return exact intervals of the mean of independent draws in [0, 1], by betting.

    Parameters
    ----------
    values : float array, (..., n)
        The draws in their order. Leading axes hold many samples.
    level : float in (0, 1)
        The interval holds the mean with at least this probability, whatever the distribution of the draws.
    pace : Pace
        `fixed` if the sample is looked at once, after the last draw. `unending` if it may be looked at after
        any draw, and drawing may stop at any look. All looks then hold the mean together.

    Returns
    -------
    float array, (..., 2)
        If the draws refute every value in [0, 1], it has the values that both gamblers refute.

    Raises
    ------
    DataError
        If a value is outside [0, 1] or missing, if there is none, or if the level is outside (0, 1).

    Examples
    --------
    Of 100 partners, 96 are right:

    >>> right = np.ones(100)
    >>> right[[20, 40, 60, 80]] = 0
    >>> betting(right).round(2), betting(right, pace=unending).round(2)
    (array([0.88, 1.  ]), array([0.88, 1.  ]))
    """
    check_level(level)
    x = np.asarray(values, dtype=float)
    if not x.ndim or not x.shape[-1]:
        raise DataError("betting needs one draw or more")
    outside = ~((x >= 0) & (x <= 1))
    if outside.any():
        raise DataError(f"values must lie in [0, 1]; {int(outside.sum())} of {x.size} do not")
    ends = np.stack([_lowest(x, 1 - level, pace), 1 - _lowest(1 - x, 1 - level, pace)], axis=-1)
    return np.sort(ends, axis=-1)


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Means(Normal):
    """Metrics that are plain means over draws, with the draws. `PlainMeans` makes them.

    Attributes
    ----------
    names, mean, cov, df, support, effective, extremes, undefined
        As in `Normal`.
    values : float array, (..., n draws, k)
        The value in [0, 1] of each draw, in the order of draws. `mean` has their means.
    """

    kind: ClassVar[Any]
    values: FloatArray

    def part(self, at: Sequence[int]) -> Means:
        normal = Normal.part(self, at)
        return means(normal, self.values[..., list(at)])


def means(fit: Normal, values: FloatArray) -> Means:
    """Return a fit together with the values of its draws, (..., n draws, k)."""
    return Means(**{f.name: getattr(fit, f.name) for f in fields(Normal)}, values=values)


class _OfMeans:
    """Kind of interval that needs the value of each draw."""

    __slots__ = ()
    pace: ClassVar[Pace]

    def suits(self, result: Any) -> bool:
        return isinstance(result, Means)

    def bounds(self, result: Means, level: float) -> FloatArray:
        return betting(np.swapaxes(result.values, -1, -2), level, type(self).pace)


@dataclass(frozen=True, slots=True)
class Betting(_OfMeans):
    """Kind of interval by betting, exact if the draws are looked at once, at a number fixed beforehand.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({i: i // 3 for i in range(120)}, {i: i // 4 for i in range(120)})
    >>> found = PlainMeans()(eb.Sample(units, eb.UniformRecords()), [eb.metrics.b3_precision])
    >>> found.interval(0.95, Betting()).round(2)
    array([[0.66, 0.83]])
    """

    pace: ClassVar[Pace] = staticmethod(fixed)

    def label(self, support: Support) -> str:
        return "betting"


@dataclass(frozen=True, slots=True)
class AnytimeBetting(_OfMeans):
    """Kind of interval by betting, exact at all looks together: a confidence sequence.

    Draws count in the order in which the design lists them, which must be that of drawing.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({i: i // 3 for i in range(120)}, {i: i // 4 for i in range(120)})
    >>> found = PlainMeans()(eb.Sample(units, eb.UniformRecords()), [eb.metrics.b3_precision])
    >>> found.interval(0.95, AnytimeBetting()).round(2)
    array([[0.66, 0.83]])
    """

    pace: ClassVar[Pace] = staticmethod(unending)

    def label(self, support: Support) -> str:
        return "betting at any time"


Means.kind = Betting()


def _is_share(metric: Metric) -> bool:
    """Return whether a metric is a ratio of totals on [0, 1] whose denominator is its `size`.

    Metric times size is then a sum over units, which is tried at two points without a pattern.
    """
    counted, known = columns_of([metric])
    if known or metric.support != UNIT:
        return False
    first, second = np.sqrt(2 + np.arange(2 * len(counted))).reshape(2, -1) % 1

    def top(y: FloatArray) -> float:
        by_name = dict(zip((c.name for c in counted), y, strict=True))
        size = sum(coefficient * by_name[c.name] for c, coefficient in metric.size)
        return float(metric.formula(*(by_name[c.name] for c in metric.columns)) * size)

    return bool(np.isclose(top(first + second), top(first) + top(second), rtol=1e-9, atol=0))


def _equal(x: FloatArray) -> bool:
    """Return whether numbers are above 0 and equal, but for rounding, along the last axis."""
    return bool((x > 0).all() and (np.ptp(x, axis=-1) <= 1e-9 * x.max(axis=-1)).all())


def _equal_by_design(sample: Sample, metric: Metric, size: FloatArray) -> bool:
    """Return whether all draws of a design add the same to the `size` of a metric, not by chance only."""
    units, design = sample.units, sample.design
    if isinstance(design, SelectedBySize):
        stock = units.stock()
        each = np.sum([coefficient * stock.column(c) for c, coefficient in metric.size], axis=0)
        return _equal(each / design.selection(stock.size, units))
    if units.known is None or not sample.expansion.absolute:
        return False
    if not all(isinstance(c, ClusterSum) for c, _ in metric.size):
        return False
    total = sum(k * units.known.total(c) for c, k in metric.size if isinstance(c, ClusterSum))
    return bool(np.allclose(size.sum(axis=-1), total, rtol=1e-9, atol=0))


def values_of_draws(sample: Sample, metric: Metric) -> FloatArray:
    """Return the value of each draw, of which the metric is the plain mean, (..., n).

    A metric is a plain mean if it is a ratio y/x, and the design draws units with probabilities p ∝ x. Each
    draw then adds the same to the total of x. Its value is the ratio on its unit, y_c/x_c.

    Equal additions of the sampled units are no proof, since these may be alike by chance. So a design by size
    must also have p ∝ x on the imagined units of `Units.stock`. Under any other design, the additions must
    sum to the known total of x.

    Parameters
    ----------
    sample : Sample
    metric : Metric

    Raises
    ------
    NotIdentified
        If the metric is no plain mean under this design, with the reason.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "x"})
    >>> values_of_draws(eb.Sample(units, eb.UniformRecords()), eb.metrics.b3_recall).round(2)
    array([0.56])
    """
    variance = sample.expansion.variance
    if not isinstance(variance, StratifiedDraws) or len(variance.theta) > 1 or variance.theta[0] < 1:
        raise NotIdentified(
            f"{metric.name} is no mean of independent draws under {type(sample.design).__name__}: exact "
            "intervals need draws with replacement, without strata"
        )
    if not _is_share(metric):
        raise NotIdentified(f"{metric.name} is no share, so no mean of numbers in [0, 1] under any design")
    counted, _ = columns_of([metric])
    Z = dict(zip((c.name for c in counted), np.moveaxis(sample.contributions(counted), -1, 0), strict=True))
    size = np.sum([coefficient * Z[c.name] for c, coefficient in metric.size], axis=0)
    if not _equal(size) or not _equal_by_design(sample, metric, size):
        names = " + ".join(c.name for c, _ in metric.size)
        raise NotIdentified(
            f"{metric.name} is no plain mean under {type(sample.design).__name__}: draws differ in the "
            f"{names} that they stand for"
        )
    values = np.asarray(metric.formula(*(Z[c.name] for c in metric.columns)))
    if (values > 1 + 1e-9).any() or (values < -1e-9).any():
        raise NotIdentified(f"{metric.name} exceeds [0, 1] on single units, so it has no exact interval")
    return np.clip(values, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class PlainMeans:
    """An engine for metrics that are plain means over draws, such as B-cubed under uniform records.

    Estimates and standard errors are those of the closed form. The result also has the value of each draw,
    from which `Betting` and `AnytimeBetting` make exact intervals.

    Raises
    ------
    NotIdentified
        In a call, if a metric is no plain mean under the design, with the reason (see `values_of_draws`).

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> PlainMeans()(eb.Sample(units, eb.UniformRecords()), [eb.metrics.b3_recall]).values.round(2)
    array([[1.],
           [1.]])
    """

    batched: ClassVar[bool] = True

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Means:
        values = np.stack([values_of_draws(sample, metric) for metric in metrics], axis=-1)
        return means(taylor(sample, metrics).apply(metrics, order=1), values)
