"""Gains less losses: how draws move a difference of two predictions, or a number of entities.

Source: Zou and Donner (2008), Statistics in Medicine 27, 1693-1702 (arms of a difference).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np

from .._internal.arrays import BoolArray, FloatArray
from .quantiles import compute_gamma_quantiles, inflate_variances
from .unseen import by_component

PRIOR = 2.0
"""Moving draws that the reach of an unseen one counts as, the number of pseudo-draws of single intervals."""
FREE = 5.0
"""Degrees of freedom of gains, or losses, without a draw that shows one.

With it 95 % intervals of differences covered .93 or more in all of 896 cells (benchmarks/unseen.md).
"""
ROUNDING = 1e-14
"""Move of a draw that is rounding, over the reach of an unseen one or over 1."""


def count_moving(d: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return how many of draws move a sum, (Σ|d|)²/Σd² (Kish), and how far they do, Σd²/Σ|d|, (k,) each."""
    first, second = np.abs(d).sum(axis=0), (d**2).sum(axis=0)
    moves = second > 0
    number = np.divide(first**2, second, out=np.zeros_like(first), where=moves)
    return number, np.divide(second, first, out=np.zeros_like(first), where=moves)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Moves:
    """Gains and losses of draws, of which components x are the gains G less the losses Λ, (k,).

    `sums` (k, 2): G and Λ; `variance` (k, 2) and `covariance` (k,): theirs under the design; `step` (k, 2):
    how far an unseen draw moves each of them; `df` (k, 2): degrees of freedom; `moving` (k,): draws that move
    x; `parts` (k, 2, 3): how far the unreached share can move x down and up. A component that is no such sum
    is NaN throughout. One that is a known total T over such a sum, as a mean size is, has T in `over` (k,),
    which is NaN for the others.
    """

    sums: FloatArray = by_component(-2)
    variance: FloatArray = by_component(-2)
    covariance: FloatArray = by_component(-1)
    step: FloatArray = by_component(-2)
    df: FloatArray = by_component(-2)
    moving: FloatArray = by_component(-1)
    parts: FloatArray = by_component(-3)
    over: FloatArray = by_component(-1)

    @classmethod
    def none(cls, k: int) -> Moves:
        """Return moves of k components that are no gains and losses."""
        axes = {f.name: f.metadata["components"][0] for f in fields(cls)}
        return cls(**{name: np.full((k, 2, 3)[:-axis], np.nan) for name, axis in axes.items()})

    @property
    def there(self) -> BoolArray:
        """Return which components are gains and losses, (k,)."""
        return ~np.isnan(self.moving)

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
        """Return gains and losses of draws that move sums by d, (n, k), with nothing unreached.

        `a` (n, k): shares of draws in the total that is averaged over, Σa = 1; `covariance` maps
        contributions (n, 2) to their covariance (2, 2) under the design; `variance` (k,): that of x by the
        engine, which may not be that of Σd; `reach` (k, 2): how far x would go up and down if all draws were
        unseen ones of average size; `effective`, `fpc` (k,): n_eff/θ, and θ.
        """
        d = np.where(np.abs(d) < ROUNDING * np.maximum(reach.max(axis=-1), 1.0), 0.0, d)
        gains, losses = np.maximum(d, 0.0), np.maximum(-d, 0.0)
        sums = np.stack([gains.sum(axis=0), losses.sum(axis=0)], axis=-1)
        about = np.stack([gains - a * sums[:, 0], losses - a * sums[:, 1]], axis=-1)
        V = np.array([covariance(both) for both in np.moveaxis(about, 1, 0)])
        own = V[:, 0, 0] + V[:, 1, 1] - 2 * V[:, 0, 1]
        V *= np.divide(variance, own, out=np.ones_like(own), where=(own > 0) & (variance > 0))[:, None, None]
        # imputed labels may differ where no draw does, in gains as much as in losses
        still = ~(np.abs(d) > 0).any(axis=0) & (variance > 0)
        V[still] = np.eye(2) * variance[still, None, None] / 2
        moving, typical = count_moving(d)
        # draws that moved x teach how far an unseen one may, which need not be on the same side
        seen = (moving * typical * fpc)[:, None]
        step = (seen + PRIOR * reach / effective[:, None]) / (moving + PRIOR)[:, None]
        of_each = np.stack([count_moving(gains)[0], count_moving(losses)[0]], axis=-1)
        return cls(
            sums=sums,
            variance=np.stack([V[:, 0, 0], V[:, 1, 1]], axis=-1),
            covariance=V[:, 0, 1],
            step=step,
            df=np.minimum(df[:, None], of_each + FREE),
            moving=moving,
            parts=np.zeros((len(moving), 2, 3)),
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
