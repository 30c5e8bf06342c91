"""Bets on the order of draws: exact intervals for metrics that are means of bounded numbers.

A metric is the mean of ratios x in [0, 1], in which a draw has a share u in [0, 1]: E[u (x - p)] = 0 if p is
the metric. A gambler starts with wealth 1 and bets, before each draw, that the metric exceeds p:

    W_t(p) = Π_{s ≤ t} (1 + λ_s(p) u_s (x_s - p)),   λ_s(p) = min(λ_s, c/p)

If p is the metric, the wealth ever reaches 1/a with probability a at most (Ville's inequality). Values p at
which it has reached 2/α are therefore too low, except with probability α/2, and a second gambler bets that
it is less. W_t falls in p, since each factor does, so that bisection finds both ends.

The bets λ_s follow from the draws before s. Their variance σ²_{s-1} counts ¼ as one draw:

    λ_s = √(2 log(2/α) / (σ²_{s-1} n))             for a fixed number n of draws
    λ_s = √(2 log(2/α) / (σ²_{s-1} s log(1 + s)))  for a sequence

Source: Waudby-Smith and Ramdas (2024), Journal of the Royal Statistical Society B 86, 1-27, theorem 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from .._internal.arrays import FloatArray, Seed, floats
from .._internal.errors import DataError, NotIdentified
from ..design import ByPredictedSize, WeightedRecords
from ..design.contract import SelectedBySize, innermost
from ..design.sample import Sample
from ..metrics.columns import ClusterSum, Column, Known
from ..metrics.definitions import Metric
from ..metrics.estimates import Bets, Estimates
from ..metrics.intervals import check_level
from .fitted import columns_of, fit_sample

REFUTED = (
    "its draws contradict each other, as those do that are not independent, not listed in the order of "
    "drawing, or not drawn from this prediction"
)
"""Why there is no interval if bets refute the mean of all draws."""
CAP = 0.75
"""The largest share c of the wealth that a bet can lose, so that no single draw ruins a gambler."""
ROUNDING = 1e-9
"""Distance of a number from an interval that is rounding."""
HALVINGS = 50
"""Steps of bisection, after which ends are exact to 2⁻⁵⁰."""
GREATEST = 2.0
"""The largest share of a draw, over the mean share, with which a bet is worth while."""


def _compute_bets(x: FloatArray, u: FloatArray, alpha: float, anytime: bool) -> FloatArray:
    """Return λ_s before each draw, (..., n), from the draws before it."""
    draw = np.arange(1.0, x.shape[-1] + 1)
    # the number of draws over which bets are spread; for looks at any time, no number is large enough
    pace = draw * np.log1p(draw) if anytime else len(draw)
    # an imagined draw, ½ with variance ¼, keeps the first bets finite
    mean = (0.5 + np.cumsum(u * x, axis=-1)) / (1 + np.cumsum(u, axis=-1))
    variance = (0.25 + np.cumsum((u * (x - mean)) ** 2, axis=-1)) / (1 + draw)
    # a bet may depend on earlier draws only, or wealth could grow without being evidence
    before = np.concatenate([np.full_like(x[..., :1], 0.25), variance[..., :-1]], axis=-1)
    return np.asarray(np.sqrt(2 * np.log(2 / alpha) / (before * pace)))


def _find_lowest(x: FloatArray, u: FloatArray, alpha: float, bets: FloatArray) -> FloatArray:
    """Return the least p at which the gambler's wealth has stayed below 2/α, (...)."""
    low, high = np.zeros(x.shape[:-1]), np.ones(x.shape[:-1])
    for _ in range(HALVINGS):
        p = (low + high) / 2
        with np.errstate(divide="ignore"):
            stake = np.minimum(bets, CAP / p[..., None])
        # the logarithm of the wealth after each draw, (..., n)
        wealth = np.cumsum(np.log1p(stake * u * (x - p[..., None])), axis=-1)
        # wealth that was ever large enough refutes p, whatever became of it later (Ville's inequality)
        refuted = wealth.max(axis=-1) >= np.log(2 / alpha)
        low, high = np.where(refuted, p, low), np.where(refuted, high, p)
    return low


def betting(values: Any, level: float = 0.95, anytime: bool = False, shares: Any = 1.0) -> FloatArray:
    """Return exact intervals of the mean of independent draws in [0, 1], by betting.

    Parameters
    ----------
    values : float array, (..., n)
        The draws x in their order. Leading axes are samples.
    level : float in (0, 1)
        The interval covers the mean with at least this probability, whatever the distribution of the draws.
    anytime : bool
        True if the sample may be looked at after any draw, and drawing may stop at any look. All looks then
        cover the mean together.
    shares : float array that broadcasts against `values`
        The share u of each draw, in [0, 1], if the mean is E[u x]/E[u]. By default all are equal.

    Returns
    -------
    float array, (..., 2)
        The lower end is above the upper one if the draws refute every value.

    See Also
    --------
    Betting : the same as a kind of interval.

    References
    ----------
    Waudby-Smith and Ramdas (2024), Journal of the Royal Statistical Society B 86, 1-27.

    Examples
    --------
    Of 100 partners, 96 are right:

    >>> right = np.ones(100)
    >>> right[[20, 40, 60, 80]] = 0
    >>> betting(right).round(2), betting(right, anytime=True).round(2)
    (array([0.88, 1.  ]), array([0.88, 1.  ]))
    """
    check_level(level)
    x, u = floats(values, "values"), floats(shares, "shares")
    if not x.ndim or not x.shape[-1]:
        raise DataError("betting needs one draw or more")
    for what, numbers in (("values", x), ("shares", u)):
        if outside := int((~((numbers >= 0) & (numbers <= 1))).sum()):
            raise DataError(f"{what} must lie in [0, 1]; {outside} of {numbers.size} do not")
    alpha, u = 1 - level, np.broadcast_to(u, x.shape)
    lower, upper = (_find_lowest(y, u, alpha, _compute_bets(y, u, alpha, anytime)) for y in (x, 1 - x))
    return np.stack([lower, 1 - upper], axis=-1)


def with_draws(fit: Estimates, values: FloatArray, shares: FloatArray) -> Estimates:
    """Return a fit together with the ratios and the shares of its draws, both (..., n draws, k)."""
    return replace(fit, bets=Bets(values=values, shares=shares), kind=Betting())


@dataclass(frozen=True, slots=True)
class Betting:
    """Kind of interval by betting, exact if the draws are looked at once, at a number fixed beforehand.

    With `anytime` it is exact at all looks together, a confidence sequence. Draws count in the order in which
    the design lists them, which must be that of drawing: where they are sorted, each bet profits from those
    before. There is no interval (NaN) if it would leave out the mean of its draws. An estimate outside of it,
    which may count each unit once, extends it.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({i: i // 3 for i in range(1200)}, {i: i // 4 for i in range(120)})
    >>> design = eb.UniformRecords(draws=units.ids)
    >>> BoundedMeans()(eb.Sample(units, design), [eb.metrics.b3_precision]).interval(0.95, Betting()).round(2)
    array([[0.66, 0.83]])
    """

    anytime: bool = False

    def suits(self, result: Estimates) -> bool:
        return result.bets is not None

    def bounds(self, result: Estimates, level: float) -> FloatArray:
        assert result.bets is not None
        # a metric without an estimate has no values
        both = (np.nan_to_num(a) for a in (result.bets.values, result.bets.shares))
        values, shares = (np.swapaxes(a, -1, -2) for a in both)
        low, high = np.moveaxis(betting(values, level, self.anytime, shares), -1, 0)
        with np.errstate(invalid="ignore"):
            mean, x = (shares * values).sum(axis=-1) / shares.sum(axis=-1), result.mean
        # where early draws refute what all of them say, the order is wrong, or the interval most often is
        inside = (low <= mean + ROUNDING) & (mean - ROUNDING <= high)
        ends = np.stack([np.minimum(low, x), np.maximum(high, x)], axis=-1)
        return np.where(inside[..., None], ends, np.nan)

    def label(self, result: Estimates, j: int) -> str:
        return "betting at any time" if self.anytime else "betting"


def _is_constant(x: FloatArray) -> bool:
    """Return whether numbers are above 0, and equal along the last axis apart from rounding."""
    return bool((x > 0).all() and np.allclose(x, x[..., :1], rtol=1e-9, atol=0))


def _evaluate_per(metric: Metric, columns: Callable[[Column], FloatArray]) -> FloatArray:
    """Return the `size` of a metric, from values of its columns."""
    return np.asarray(np.sum([k * columns(c) for c, k in metric.size], axis=0))


def _find_known_per(sample: Sample, metric: Metric) -> float | None:
    """Return the total of the `size` of a metric, or None if it or the scale of weights is not known."""
    if sample.units.population is None or not sample.expansion.absolute:
        return None
    totals = [k * sample.units.total(c) for c, k in metric.size if isinstance(c, ClusterSum)]
    return sum(totals) if len(totals) == len(metric.size) else None


def _bound_share(sample: Sample, metric: Metric, size: FloatArray, total: float | None) -> float:
    """Return the largest share that a draw can have, over the mean share; ∞ if it is not known."""
    units, design, known = sample.units, sample.design, sample.units.known
    if isinstance(design, SelectedBySize):
        # sampled units may have equal shares by chance, so that pseudo-units must have them too
        pseudo = units.pseudo_units
        equal = _is_constant(_evaluate_per(metric, pseudo.column) / design.selection(pseudo.size, units))
        return 1.0 if equal and _is_constant(size) else np.inf
    if total is None or known is None:
        return np.inf
    if isinstance(design, ByPredictedSize):
        # a single record in a cluster of the size with the largest share is the worst case
        m, by = known.size, design.probability
        per_record = np.sum([k * c.phi(m) for c, k in metric.size if isinstance(c, ClusterSum)], axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(np.nanmax(per_record / total / (by.phi(m) / known.total(by))))
    return 1.0 if _is_constant(size) and np.allclose(size.sum(axis=-1), total, rtol=1e-9, atol=0) else np.inf


def draws_of(sample: Sample, metric: Metric) -> tuple[FloatArray, FloatArray]:
    """Return the ratios y_c/x_c and the shares x_c/p_c of draws, whose mean the metric is, both (..., n)."""
    none = f"{metric.name} has no exact interval"
    under = f"{none} under {type(sample.design).__name__}"
    if not sample.expansion.alike:
        raise NotIdentified(f"{under}: it needs independent draws with replacement, without strata")
    if not metric.is_share:
        raise NotIdentified(f"{none}: it is no ratio of totals on [0, 1]")
    counted, _ = columns_of([metric])
    Z = dict(zip(counted, np.moveaxis(sample.count_each().contributions(counted), -1, 0), strict=True))
    size, total = _evaluate_per(metric, Z.__getitem__), _find_known_per(sample, metric)
    greatest = _bound_share(sample, metric, size, total)
    if greatest > GREATEST:
        of = f"{GREATEST:g} times the mean share of {' + '.join(c.name for c, _ in metric.size)}"
        raise NotIdentified(f"{under}: single draws may hold over {of}")
    with np.errstate(invalid="ignore"):
        values = metric.formula(*(Z[c] for c in metric.columns if not isinstance(c, Known)))
    values = np.where(size > 0, values, 0.0)
    if (values > 1 + ROUNDING).any() or (values < -ROUNDING).any():
        raise NotIdentified(f"{none}: it is outside [0, 1] on single units")
    # labelled units that stand for draws are sorted by id, and early ids may be better than later ones
    drawn = innermost(sample.design)
    listed = isinstance(drawn, WeightedRecords) or getattr(drawn, "draws", None) is not None
    if not (listed or sample.leading):
        ways = "list the unit of each draw in that order (draws=, or --drawn in a shell)"
        raise NotIdentified(f"{none}, which depends on the order of draws: {ways}")
    if total is None:  # only equal shares come so far
        size, total = np.ones_like(size), float(size.shape[-1])
    shares = size * size.shape[-1] / total / greatest
    return np.clip(values, 0.0, 1.0), np.clip(shares, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class BoundedMeans:
    """An engine for metrics that are means of bounded numbers, such as B-cubed under uniform records.

    Estimates and standard errors are those of the closed form. The result also has the number of each draw,
    from which `Betting` makes exact intervals.

    Raises
    ------
    NotIdentified
        In a call, if a metric is no such mean under the design, with the reason (see `draws_of`).

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> design = eb.UniformRecords(draws=["x", "y"])
    >>> BoundedMeans()(eb.Sample(units, design), [eb.metrics.b3_recall]).bets.values.round(2)
    array([[1.],
           [1.]])
    """

    batched: ClassVar[bool] = True

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
        values, shares = zip(*(draws_of(sample, metric) for metric in metrics), strict=True)
        fit = fit_sample(sample, metrics).estimates
        return with_draws(fit, np.stack(values, axis=-1), np.stack(shares, axis=-1))
