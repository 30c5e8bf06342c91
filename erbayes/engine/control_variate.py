"""The control variate: an estimate, corrected by the known error of another one from the same draws.

Another quantity, such as a metric with a second clustering as the truth, has a known value θ^S, and the draws
estimate it by θ̂^S. The error of that estimate corrects the one of θ:

    θ̂ + λ (θ^S - θ̂^S)

The correction has mean 0 to first order, whatever S is. A poor S can lengthen intervals, but it does not bias
them. `erbayes.assisted`, `erbayes.two_phase` and `erbayes.impact` correct their estimates here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from .._internal.arrays import BoolArray, FloatArray, IntArray
from ..design.draws import DrawnUnits
from ..metrics.intervals import DEFAULT
from ..metrics.moves import Moves
from ..metrics.uncertain import Normal
from ..metrics.unseen import map_components

FEWEST_DRAWS = 10
"""Number of draws below which no weight is estimated, since it would fit their noise."""
ROUNDING = 1e-12
"""Changes of an estimate, over its size, that are only rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Effects:
    """Effects of n draws on k estimates, (n, k).

    `residual` of each draw; scaled `change` without it; `moved`: what it moves the estimate by, about a value
    that draws without an error have; `typical` (k,): how far a draw may move each, 0 if unknown.
    """

    residual: FloatArray
    change: FloatArray
    moved: FloatArray
    typical: FloatArray | float = 0.0

    @classmethod
    def of(
        cls,
        contributions: FloatArray,
        slopes: FloatArray,
        variance: DrawnUnits,
        about: FloatArray | float = 0.0,
    ) -> Self:
        """Linearise estimates with `slopes`, (c, k), by the totals of `contributions`, (n, c).

        `about` (n, k): what is added to the moves of draws.
        """
        residual = variance.residuals(contributions) @ slopes
        change, typical = np.zeros_like(residual), np.zeros(residual.shape[1])
        if len(contributions) >= FEWEST_DRAWS:
            without, scale = variance.jackknife(contributions)
            change = (without @ slopes) * np.sqrt(scale)[:, None]
            typical = _measure_typical(change, int(np.count_nonzero(scale)))
        return cls(residual, change, contributions @ slopes + about, typical)

    def vary(self, mean: FloatArray) -> BoolArray:
        """Return whether draws change estimates with this `mean`, (k,), by more than rounding."""
        size = np.sqrt(np.sum(self.residual**2, axis=0) + np.nan_to_num(mean) ** 2)
        return np.asarray(np.sqrt(np.sum(self.change**2, axis=0)) > ROUNDING * size)

    def nest(self, first: Effects, position: IntArray) -> Effects:
        """Return effects on an estimate from n draws at `position` less one from all, (n', k), n first."""
        return Effects(
            *(
                np.vstack([part - entire[position], -np.delete(entire, position, axis=0)])
                for part, entire in zip(self.arrays, first.arrays, strict=True)
            )
        )

    @property
    def arrays(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return all effects."""
        return self.residual, self.change, self.moved


@dataclass(frozen=True, slots=True, eq=False)
class ControlVariate:
    """A control variate for each of k estimates.

    `weight` (k,): λ; `residual`, `moved` (n, k): effects of draws with the correction, as in `Effects`; `cov`
    (k, k): covariance of the estimates; `correlation` (k,): of effects on both, NaN without a weight.

    Notes
    -----
    Let d_s and e_s be the changes of the estimate and of its control without draw s, scaled as in the
    jackknife. λ is Σde/Σe², cut to [0, 1]. The variance is that of the design for d - λe. Intervals are those
    of gains less losses of the draws in which the control is wrong (`erbayes.metrics.moves`), as an estimate
    less its control is a difference of two judgements by the same draws.

    References
    ----------
    Angelopoulos, Duchi and Zrnic (2023), arXiv 2311.01453: PPI++, the weight λ.
    """

    weight: FloatArray
    residual: FloatArray
    moved: FloatArray
    cov: FloatArray
    correlation: FloatArray

    @classmethod
    def of(
        cls,
        estimate: Effects,
        control: Effects,
        usable: BoolArray,
        variance: DrawnUnits,
        shared: FloatArray | None = None,
    ) -> Self:
        """Choose weights where `usable`, (k,), and compute what they leave.

        `shared` (n, k): changes of the control by the n draws of the estimate, if the control has further
        draws.
        """
        d, e = estimate.change, control.change if shared is None else shared
        weight = np.where(usable, np.clip(_divide(np.sum(d * e, axis=0), np.sum(e**2, axis=0)), 0, 1), 0.0)
        residual, moved = (
            pad_draws(one, len(other)) - weight * other
            for one, other in ((estimate.residual, control.residual), (estimate.moved, control.moved))
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            correlation = np.array([np.corrcoef(x, y)[0, 1] for x, y in zip(d.T, e.T, strict=True)])
        correlation = np.where(weight > 0, correlation, np.nan)
        return cls(weight, residual, moved, variance.covariance(residual), correlation)

    def correct(self, fit: Normal, moves: Moves, between: FloatArray) -> Normal:
        """Return a fit of the corrected estimates, in which draws move those with a weight by `moves`.

        `between` (k, 2): as in `Unseen`. The covariance has unseen draws of both sides.
        """
        unseen = DEFAULT.mass * np.sum(moves.step**2, axis=1) + between.sum(axis=1) ** 2 / 12
        corrected = replace(
            fit,
            cov=self.cov + np.diag(unseen),
            # what is unreached is in `between`
            unseen=replace(fit.unseen, unreached_share=np.zeros(len(unseen)), between=between),
            moves=moves,
        )
        return take_default(corrected, fit, self.weight == 0)


def take_default(fit: Normal, default: Normal, alone: BoolArray) -> Normal:
    """Return a fit with the components of the default where it is `alone`, (k,), at the same correlations."""

    def choose(axes: Sequence[int], own: Any, other: Any) -> Any:
        if isinstance(own, tuple):
            both = zip(alone, own, other, strict=True)
            return tuple(theirs if lone else mine for lone, mine, theirs in both)
        return np.where(alone.reshape(-1, *[1] * (-1 - axes[0])), other, own)

    before, after = np.diagonal(fit.cov), np.where(alone, np.diagonal(default.cov), np.diagonal(fit.cov))
    scale = np.sqrt(np.divide(after, before, out=np.ones_like(after), where=before > 0))
    both = np.logical_and.outer(alone, alone)
    cov = np.where(both, default.cov, fit.cov * np.outer(scale, scale))
    return map_components(choose, fit, default, cov=cov)


def pad_draws(x: FloatArray, draws: int) -> FloatArray:
    """Return effects of the first draws, (n, k), as those of all, which others do not have."""
    return np.pad(x, ((0, draws - len(x)), (0, 0)))


def _measure_typical(d: FloatArray, n: int) -> FloatArray:
    """Return how far a draw may move estimates, (k,): √(Σd⁴/Σd² + 3Σd²/n), for changes d by n draws.

    That is the root of the mean x⁴ over the mean x² of differences x of two draws, so that equal draws do not
    count. If every draw is right or wrong, as for exact entities, it is the change by one wrong draw.
    """
    square = np.sum(d**2, axis=0)
    return np.asarray(np.sqrt(_divide(np.sum(d**4, axis=0), square) + 3 * square / max(n, 1)))


def _divide(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """Return top/bottom, 0 where the bottom is 0."""
    return np.asarray(np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0))


def count_equivalent_labels(draws: int, before: FloatArray, after: FloatArray) -> FloatArray:
    """Return how many further draws would reduce variances, (k,), from `before` to `after`."""
    # variances fall as 1/n, so that their ratio says how many draws more would be as good
    gain = np.divide(before, after, out=np.ones_like(before), where=after > 0) - 1
    return np.maximum(np.round(draws * gain), 0)
