"""What the draws of a sample have not shown, and what every interval allows for it.

Errors of a good matcher are rare and come in lumps, so that most samples show none of them. Results of
engines therefore know of each metric how far a draw that was not made could move it, how many draws there
are, and which share of it is in clusters larger than any that a draw touches. Intervals, differences,
certificates, verdicts and tests of balance take it from there (docs/unseen.md has proofs and studies).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from .._internal.arrays import FloatArray

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

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
    return np.asarray(ends + [-ULPS, ULPS] * np.where(ends == 0, 0.0, np.maximum(np.abs(ends), 1.0)))


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
    """Return the components of several results as one, in this order: see `map_components`."""

    def join(axes: tuple[int, ...], *of_each: Any) -> Any:
        return sum(of_each, ()) if isinstance(of_each[0], tuple) else np.concatenate(of_each, axis=axes[0])

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
        (docs/settled.md). Both are returned, so that nothing moves twice: `cut(*cut(x, b))` is `cut(x, b)`.
        """
        nearest = self.nearest(x)
        moved = bounds + (nearest - x)[..., None]
        return nearest, np.asarray(np.clip(moved, self.certain[..., :1], self.certain[..., 1:]))

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
