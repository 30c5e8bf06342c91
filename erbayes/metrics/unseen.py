"""What intervals allow for: quantiles, what draws have not shown, and gains less losses of draws.

Errors of a good matcher are rare and come in lumps, so that most samples show none of them. Results of
engines therefore know of each metric how far a draw that was not made could move it, how many draws there
are, and which share of it is in clusters larger than any that a draw touches. Intervals, differences,
certificates, verdicts and tests of balance take it from there (docs/guide/theory.md has proofs).

Source: Zou and Donner (2008), Statistics in Medicine 27, 1693-1702 (arms of a difference).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import block_diag
from scipy.special import betaincinv, gammaincinv, ndtri, stdtrit

from .._internal.arrays import BoolArray, FloatArray

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


MOST = 1e16
"""Sum of the parameters of a Beta distribution above which its spread is rounding, and its inverse fails."""


def compute_t_quantiles(df: FloatArray, p: FloatArray) -> FloatArray:
    """Return quantiles of Student's distribution, and normal ones for infinite df."""
    return np.asarray(stdtrit(np.minimum(df, 1e12), p))


def compute_beta_quantiles(x: FloatArray, V: FloatArray, p: FloatArray) -> FloatArray:
    """Return quantiles of Beta(n x, n (1 - x)) with n = x (1 - x)/V; x itself if V is 0."""
    # without spread, or with one of rounding, the distribution is a point, where the inverse has no value
    spread = (V * MOST > x * (1 - x)) & (x > 0) & (x < 1)
    size = np.divide(x * (1 - x), V, out=np.ones_like(x), where=spread)
    quantiles = betaincinv(np.where(spread, size * x, 1.0), np.where(spread, size * (1 - x), 1.0), p)
    return np.where(spread, quantiles, np.where(np.isnan(V), np.nan, x))


def compute_gamma_quantiles(x: FloatArray, V: FloatArray, p: FloatArray) -> FloatArray:
    """Return quantiles of the Gamma distribution of mean x and variance V; x itself if V is 0."""
    spread = (V > 0) & (x > 0)
    shape = np.divide(x**2, V, out=np.ones_like(x), where=spread)
    quantiles = gammaincinv(shape, p) * x / shape
    return np.where(spread, quantiles, np.where(np.isnan(V), np.nan, x))


def inflate_variances(V: FloatArray, df: FloatArray, p: FloatArray) -> FloatArray:
    """Return V (t_df(p)/z(p))², which widens a tail for few degrees of freedom (Korn and Graubard 1998)."""
    tail = np.where(np.abs(p - 0.5) < 1e-4, 0.5 + 1e-4, p)  # at the median t/z would be 0/0
    return np.asarray(V * (compute_t_quantiles(df, tail) / ndtri(tail)) ** 2)


NOTABLE = 0.1
"""Unreached share of all predicted links up to which it is chance like any other error. Above it is
ignorance: interval scores were least with a tenth (benchmarks/unseen.md), which is also the bar of alarms."""
UNSETTLED = np.array([-np.inf, np.inf])
"""Certain ends where labels settle nothing."""
ULPS = 8 * np.finfo(float).eps
"""Rounding of a certain end, over the end or over 1, since no formula of the true value differs by more."""
ROUNDING = 1e-12
"""Distance from an end of an interval, over the end or over 1, that is rounding. Such a value lies inside."""


def round_outward(ends: FloatArray) -> FloatArray:
    """Return certain ends, (..., k, 2), that rounding keeps on their side of the truth; 0 is exact."""
    return np.asarray(ends + [-ULPS, ULPS] * np.where(ends == 0, 0.0, np.clip(np.abs(ends), 1.0, 1e300)))


def by_component(*axes: int, **default: Any) -> Any:
    """Return a field of a dataclass that has a value per component, along these axes of an array."""
    return field(metadata={"components": axes}, **default)


def map_components[Result: DataclassInstance](
    change: Callable[..., Any], *results: Result, **fixed: Any
) -> Result:
    """Return the first result, with `change(axes, *values)` in the place of each field `by_component`.

    Selecting, stacking and filling components go through here, so that no field is forgotten. Fields that are
    results themselves are mapped in turn, fields without a value stay so, and `fixed` ones are set.
    """
    first, values = results[0], dict[str, Any]()
    for f in fields(first):
        axes = f.metadata.get("components")
        if axes is None or f.name in fixed:
            continue
        of_each = [getattr(result, f.name) for result in results]
        if is_dataclass(of_each[0]):
            values[f.name] = map_components(change, *of_each)
        elif of_each[0] is not None:
            values[f.name] = change(axes, *of_each)
    return replace(first, **values, **fixed)


def stack_components[Result: DataclassInstance](*results: Result, **fixed: Any) -> Result:
    """Return the components of several results as one, in this order: see `map_components`.

    Results, and their `other` ones, are independent, unless `cov` and `other` are among the `fixed` fields.
    """

    def join(axes: tuple[int, ...], *of_each: Any) -> Any:
        if isinstance(of_each[0], tuple):
            return sum(of_each, ())
        return np.concatenate(of_each, axis=axes[0]) if len(axes) == 1 else block_diag(*of_each)

    return map_components(join, *results, **fixed)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Unseen:
    """What no draw has shown of each metric, (..., k).

    `effective` (..., k): effective number of draws over the finite-population correction, n_eff/θ: ∞ for a
    census; `reach` (..., k, 2): changes of the metric, to first order, if all draws were of the one entity
    that lowers it most, or raises it most; by default they reach the ends of a bounded support, and are 0 on
    others; `unreached_share` (..., k): the known share of what the metric averages over that no draw
    represents, such as that in clusters larger than any that one touches. A number counts for all metrics.
    `certain` (..., k, 2): the least and the largest value that right labels leave possible, whatever the
    other records are; (-∞, ∞) if they settle nothing. `skew` (..., k, 2): third moments of draws down and up,
    over second ones, 0 or more, for which an end moves outward. `between` (..., k, 2): distances down and up
    to the ends of a range in which the estimate may be anywhere, whose uniform distribution is in the
    covariance. `third` (..., k): third moments of the estimates under the design. All are 0 by default.
    """

    effective: FloatArray = by_component(-1, default=np.inf)
    reach: FloatArray = by_component(-2, default=None)
    unreached_share: FloatArray = by_component(-1, default=0.0)
    certain: FloatArray = by_component(-2, default=None)
    skew: FloatArray = by_component(-2, default=0.0)
    between: FloatArray = by_component(-2, default=0.0)
    third: FloatArray = by_component(-1, default=0.0)

    def for_metrics(self, distances: FloatArray) -> Unseen:
        """Return the same with an array in each field, from `distances` to both ends, (..., k, 2)."""
        shape = distances.shape[:-1]
        return Unseen(
            effective=np.broadcast_to(self.effective, shape),
            reach=distances if self.reach is None else self.reach,
            unreached_share=np.broadcast_to(self.unreached_share, shape),
            certain=np.broadcast_to(UNSETTLED if self.certain is None else self.certain, distances.shape),
            skew=np.broadcast_to(self.skew, distances.shape),
            between=np.broadcast_to(self.between, distances.shape),
            third=np.broadcast_to(self.third, shape),
        )

    def nearest(self, x: FloatArray) -> FloatArray:
        """Return the certain values that are nearest to estimates x, (..., k)."""
        return np.asarray(np.clip(x, self.certain[..., 0], self.certain[..., 1]))

    def cut(self, x: FloatArray, bounds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the nearest certain estimates, (..., k), and intervals, (..., k, 2), moved there and cut.

        Intervals contain what a cut alone would leave, which may have no length although nothing is certain
        (docs/intervals.md). Both are returned, so that nothing moves twice: `cut(*cut(x, b))` is `cut(x, b)`.
        """
        inside = np.clip(x, bounds[..., 0], bounds[..., 1])  # estimates may lie beyond the support
        moved = bounds + (self.nearest(inside) - inside)[..., None]
        return self.nearest(x), np.asarray(np.clip(moved, self.certain[..., :1], self.certain[..., 1:]))

    def find_shifts(self, level: float) -> FloatArray:
        """Return how far ends move outward, (..., k, 2): `between`, and `skew` (1 + 2z²)/6 (Johnson 1978)."""
        return np.asarray(self.between + self.skew * (1 + 2 * ndtri((1 + level) / 2) ** 2) / 6)

    def weigh_pseudo_draws(self, mass: float) -> FloatArray:
        """Return the mass of each of two pseudo-draws over the effective draws, (..., k).

        It is `mass` at an end of the scale, as in Jeffreys' prior, and fades towards the middle, where draws
        show enough errors, by the factor ((u - d)/(u + d))² of the distances d down and u up.
        """
        length = np.abs(self.reach).sum(axis=-1)
        fade = np.divide(self.reach.sum(axis=-1), length, out=np.zeros_like(length), where=length > 0) ** 2
        return np.asarray(mass * fade / self.effective)

    def spread_pseudo_draws(self, mass: float) -> FloatArray:
        """Return the variance that the pseudo-draws add to each metric, (..., k)."""
        return np.asarray(self.weigh_pseudo_draws(mass) / self.effective * (self.reach**2).sum(axis=-1))


def kish(Z: FloatArray, axis: int = -2) -> FloatArray:
    """Return the effective number of draws, (..., k), of contributions z, (..., n, k): (Σz)²/Σz² (Kish)."""
    return np.asarray(Z.sum(axis=axis) ** 2 / (Z**2).sum(axis=axis))


def sum_rows(Z: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the sums of contributions (..., n, k) of draws, (..., k), by weights (..., n)."""
    return np.asarray((weight[..., None, :] @ Z)[..., 0, :])


def count_unseen(Z: FloatArray, unseen: FloatArray, repeated: FloatArray) -> FloatArray:
    """Return how many draws, (..., k), bound what is unseen of totals of contributions z, (..., n, k).

    It is Σ(1-π)z Σz/Σ((1-π)z²/r), n_eff/θ without repeats: ∞ if nothing is unseen, NaN if nothing counts.
    `unseen` (..., n): share 1 - π of units like that of a draw which no draw has seen; `repeated` (..., n):
    r, how many draws such a unit had, over its chance to be seen. Draws that met a large unit again would
    have met others, had they erred.
    """
    missed = sum_rows(Z, unseen) * Z.sum(axis=-2)
    against = sum_rows(Z**2, unseen / repeated)
    return np.divide(missed, against, out=np.where(Z.any(axis=-2), np.inf, np.nan), where=against > 0)


def measure_parts(x: FloatArray, share: FloatArray, support: FloatArray) -> FloatArray:
    """Return how far an unreached share, (..., k), can move metrics down and up, (..., k, 2)."""
    with np.errstate(invalid="ignore"):  # 0 × ∞, for a support without bounds
        parts = share[..., None] * np.abs(support - x[..., None])
    return np.where(share[..., None] > 0, parts, 0.0)


def split_parts(share: FloatArray, parts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the `parts` (..., k, 2) of shares above a tenth, and those of smaller ones, which are chance."""
    notable = (share > NOTABLE).reshape(*share.shape, *[1] * (parts.ndim - share.ndim))
    return np.where(notable, parts, 0.0), np.where(notable, 0.0, parts)


def widen(x: FloatArray, bounds: FloatArray, share: FloatArray, parts: FloatArray) -> FloatArray:
    """Return intervals (..., k, 2) that allow any value for a `share` φ, (..., k), that no draw reaches.

    With arms δ of the interval of the rest, and `parts` f (..., k, 2, j) by which the unreached share can
    move the metric x down and up, arms are √(((1-φ)δ)² + Σf²) up to a tenth, where it is chance like any
    other error (Zou and Donner 2008, Statistics in Medicine 27, 1693-1702), and (1-φ)δ + Σf above, an
    identified set (Manski 2003, Partial Identification of Probability Distributions).
    """
    share = share[..., None]
    with np.errstate(invalid="ignore"):  # infinite supports, whose share is 0
        arms = (1 - share) * np.abs(bounds - x[..., None])
        certain, of_chance = split_parts(share[..., 0], parts)
        widened = np.sqrt(arms**2 + (of_chance**2).sum(axis=-1)) + certain.sum(axis=-1)
        widened = widened * [-1.0, 1.0]
    return np.where(share > 0, x[..., None] + widened, bounds)


PRIOR = 2.0
"""Moving draws that the reach of an unseen one counts as, the number of pseudo-draws of single intervals."""
FREE = 5.0
"""Degrees of freedom of gains, or losses, without a draw that shows one.

With it 95 % intervals of differences covered .93 or more in all of 896 cells (benchmarks/unseen.md).
"""
STILL = 1e-14
"""Move of a draw that is rounding, over the reach of an unseen one or over 1."""


def count_moving(d: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return how many draws move a sum, (Σ|d|)²/Σd² (Kish), and how far they do, Σd²/Σ|d|, (..., k) each."""
    first, second = np.abs(d).sum(axis=-2), (d**2).sum(axis=-2)
    moves = second > 0
    number = np.divide(first**2, second, out=np.zeros_like(first), where=moves)
    return number, np.divide(second, first, out=np.zeros_like(first), where=moves)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Moves:
    """Gains and losses of draws, of which components x are the gains G less the losses Λ, (..., k).

    After leading axes: `sums` (k, 2): G and Λ; `variance` (k, 2) and `covariance` (k,): theirs under the
    design; `step` (k, 2): how far an unseen draw moves each of them; `df` (k, 2): degrees of freedom;
    `moving` (k,): draws that move x; `parts` (k, 2, 3): how far the unreached share can move x down and up;
    `at_most` (k,): 1 where that share is only a bound, so that less may be out of reach, else 0. A component
    that is no such sum is NaN throughout. One that is a known total T over a sum has T in `over` (k,).
    """

    sums: FloatArray = by_component(-2)
    variance: FloatArray = by_component(-2)
    covariance: FloatArray = by_component(-1)
    step: FloatArray = by_component(-2)
    df: FloatArray = by_component(-2)
    moving: FloatArray = by_component(-1)
    parts: FloatArray = by_component(-3)
    at_most: FloatArray = by_component(-1)
    over: FloatArray = by_component(-1)

    @classmethod
    def none(cls, *shape: int) -> Moves:
        """Return moves of components of a shape, (..., k), that are no gains and losses."""
        further = {f.name: (2, 3)[: -1 - f.metadata["components"][0]] for f in fields(cls)}
        return cls(**{name: np.full((*shape, *axes), np.nan) for name, axes in further.items()})

    @property
    def there(self) -> BoolArray:
        """Return which components are gains and losses, (k,)."""
        return np.asarray(~np.isnan(self.moving).all(axis=tuple(range(self.moving.ndim - 1))))

    @classmethod
    def of(
        cls,
        d: FloatArray,
        a: FloatArray,
        covariance: Callable[[FloatArray], FloatArray],
        *,
        variance: FloatArray,
        reach: FloatArray,
        effective: FloatArray,
        fpc: FloatArray,
        df: FloatArray,
    ) -> Moves:
        """Return gains and losses of draws that move sums by d, (..., n, k), with nothing unreached.

        `a` (..., n, k): shares of draws in the total that is averaged over, Σa = 1; `covariance` maps
        contributions (..., n, 2) to theirs under the design, (..., 2, 2); `variance` (..., k): that of x by
        the engine, which may not be that of Σd; `reach` (k, 2): how far x would go up and down if all draws
        were unseen ones of average size; `effective`, `fpc` (..., k): n_eff/θ, and θ.
        """
        d = np.where(np.abs(d) < STILL * np.maximum(reach.max(axis=-1), 1.0), 0.0, d)
        both = np.maximum(d[..., None] * [1.0, -1.0], 0.0)  # gains and losses, (..., n, k, 2)
        sums = both.sum(axis=-3)
        about = both - a[..., None] * sums[..., None, :, :]
        V = np.stack([covariance(each) for each in np.moveaxis(about, -2, 0)], axis=-3)
        own = V[..., 0, 0] + V[..., 1, 1] - 2 * V[..., 0, 1]
        scale = np.divide(variance, own, out=np.ones_like(own), where=(own > 0) & (variance > 0))
        # imputed labels may differ where no draw does, in gains as much as in losses
        still = ~(np.abs(d) > 0).any(axis=-2) & (variance > 0)
        V = V * scale[..., None, None] + np.eye(2) * np.where(still, variance / 2, 0.0)[..., None, None]
        moving, typical = count_moving(d)
        # draws that moved x teach how far an unseen one may, which need not be on the same side
        seen = (moving * typical * fpc)[..., None]
        step = (seen + PRIOR * reach / effective[..., None]) / (moving + PRIOR)[..., None]
        of_each = count_moving(both.swapaxes(-3, -2))[0]
        return cls(
            sums=sums,
            variance=np.diagonal(V, axis1=-2, axis2=-1),
            covariance=V[..., 0, 1],
            step=step,
            df=np.minimum(df[..., None], of_each + FREE),
            moving=moving,
            parts=np.zeros((*moving.shape, 2, 3)),
            at_most=np.zeros_like(moving),
            over=np.full_like(moving, np.nan),
        )

    def inflated(self, total: FloatArray, within: FloatArray) -> Moves:
        """Return the same for components of variance `total` instead of `within`, (k,) each.

        Where no draw moves a component, as many gains as losses have the variance.
        """
        still = (self.variance.sum(axis=-1) == 0) & (total > 0)
        factor = np.divide(total, within, out=np.ones_like(total), where=within > 0)
        variance = np.where(still, total / 2, factor)[:, None] * np.where(still[:, None], 1.0, self.variance)
        return replace(self, variance=variance, covariance=factor * self.covariance)

    def quantile(self, x: FloatArray, p: FloatArray, mass: float) -> FloatArray:
        """Return x less or plus its arm at probability p, (..., k), with `mass` of an unseen draw a side."""
        turned = ~np.isnan(self.over)
        x, p = np.where(turned, self.over / x, x), np.where(turned, 1 - p, p)
        down, up = self._find_arms(np.minimum(p, 1 - p), mass)
        x = np.where(p < 0.5, x - down, x + up)
        return np.where(turned, self.over / np.maximum(x, 1.0), x)  # a count of entities is 1 or more

    def _find_arms(self, tail: FloatArray, mass: float) -> tuple[FloatArray, FloatArray]:
        """Return the arms of x down and up at a probability of each tail, (..., k) each."""
        p = np.stack([tail, 1 - tail], axis=-1)[..., None, :]  # (..., k, 1, tails)
        mean, V = self.sums + mass * self.step, self.variance + mass * self.step**2
        widened = inflate_variances(V[..., None], self.df[..., None], p)
        shape = np.broadcast_shapes(widened.shape, p.shape)
        quantiles = compute_gamma_quantiles(
            np.broadcast_to(mean[..., None], shape), widened, np.broadcast_to(p, shape)
        )
        arms = np.maximum((quantiles - self.sums[..., None]) * [-1.0, 1.0], 0.0)  # (..., k, sides, tails)
        spread = np.sqrt(V.prod(axis=-1))
        r = np.divide(self.covariance, spread, out=np.zeros_like(spread), where=spread > 0)
        (gain_down, gain_up), (loss_down, loss_up) = (
            (arms[..., side, 0], arms[..., side, 1]) for side in (0, 1)
        )
        return _join_arms(gain_down, loss_up, r), _join_arms(gain_up, loss_down, r)


def _join_arms(one: FloatArray, other: FloatArray, r: FloatArray) -> FloatArray:
    """Return the arm of a difference from those of both parts, whose correlation is r (Zou and Donner)."""
    return np.sqrt(np.maximum(one**2 + other**2 - 2 * r * one * other, 0.0))
