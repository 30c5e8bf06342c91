"""The control variate: an estimate, corrected by the known error of another one from the same draws.

Another quantity, such as a metric with a second clustering as the truth, has a known value θ^S, and the draws
estimate it by θ̂^S. The error of that estimate corrects the one of θ:

    θ̂ + λ (θ^S - θ̂^S)

The correction has mean 0 to first order, whatever S is. A poor S can lengthen intervals, but it does not bias
them. `erbayes.assisted`, `erbayes.two_phase` and `erbayes.impact` correct their estimates here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from .._internal.arrays import BoolArray, FloatArray
from ..design.draws import DrawnUnits

MASS = 0.5
"""Weight of each of the two pseudo-draws on which the control is entirely wrong, in draws.

It is that of the default interval (see `BetaGamma`).
"""
FEWEST_DRAWS = 10
"""Number of draws below which no weight is estimated, since it would fit their noise."""
ROUNDING = 1e-12
"""Changes of an estimate, over its size, that are only rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Effects:
    """Effects of n draws on k estimates: `residual` of each draw, and scaled `change` without it, (n, k).

    Draws that move together may share a row of `change`. `varying`: how many draws are neither certain nor
    repeats that do not count; None if all are.
    """

    residual: FloatArray
    change: FloatArray
    varying: int | None = None

    @classmethod
    def of(cls, changes: FloatArray, variance: DrawnUnits) -> Self:
        """Return the effects of draws whose contributions to linearised estimates are `changes`, (n, k)."""
        residual = variance.residuals(changes)
        if len(changes) < FEWEST_DRAWS:
            return cls(residual, np.zeros_like(residual))
        without, scale = variance.jackknife(changes)
        return cls(residual, without * np.sqrt(scale)[:, None], int(np.count_nonzero(scale)))

    def vary(self, mean: FloatArray) -> BoolArray:
        """Return whether draws change estimates with this `mean`, (k,), by more than rounding."""
        size = np.sqrt(np.sum(self.residual**2, axis=0) + np.nan_to_num(mean) ** 2)
        return np.asarray(np.sqrt(np.sum(self.change**2, axis=0)) > ROUNDING * size)


@dataclass(frozen=True, slots=True, eq=False)
class ControlVariate:
    """A control variate for each of k estimates.

    `weight` (k,): λ; `residual` (n, k): effects of draws with the correction; `cov` (k, k): their covariance,
    with pseudo-draws; `skew` (k, 2): third moments of draws and pseudo-draws down and up, over second ones, 0
    or more; `remaining` (k,): share of the variance that the control does not explain; `control_sd` (k,):
    standard error of the control.

    Notes
    -----
    Let d_s and e_s be the changes of the estimate and of its control without draw s, scaled as in the
    jackknife.

    - λ is the covariance of both estimates over the variance of the control, cut to [0, 1].
    - The variance is that of the design for d - λe.
    - Two pseudo-draws allow for errors of the control that no draw shows. Each is of an average entity about
      which the control is entirely wrong, and changes the estimate no further than a draw without a control.
    - If few draws make most of d - λe, the end of an interval on their side is further away by the
      skewness (`Unseen.find_shifts`).

    The figures by which these guards were chosen are in benchmarks/assisted.md.

    References
    ----------
    Angelopoulos, Duchi and Zrnic (2023), arXiv 2311.01453: PPI++, the weight λ.
    Korn and Graubard (1998), Survey Methodology 24, 193-201: the rule of three for pseudo-draws.
    Johnson (1978), Journal of the American Statistical Association 73, 536-544: skewness.
    """

    weight: FloatArray
    residual: FloatArray
    cov: FloatArray
    skew: FloatArray
    remaining: FloatArray
    control_sd: FloatArray

    @classmethod
    def of(
        cls, estimate: Effects, control: Effects, reach: FloatArray, usable: BoolArray, variance: DrawnUnits
    ) -> Self:
        """Choose weights where `usable`, (k,), and compute what they leave.

        `reach` (k, 2): changes down and up by the average entity that lowers, or raises, an estimate most,
        infinite if unknown.
        """
        d, k = estimate.change, len(usable)
        V = variance.covariance(np.hstack([estimate.residual, control.residual]))
        own, of_control, of_both = (np.diagonal(x) for x in (V[:k, :k], V[k:, k:], V[:k, k:]))
        weight = np.where(usable, np.clip(_divide(of_both, of_control), 0, 1), 0.0)
        residual, left = estimate.residual - weight * control.residual, d - weight * control.change
        with np.errstate(invalid="ignore"):  # an unknown reach is infinite
            moves = np.where(weight[:, None] > 0, reach - weight[:, None] * reach[:, ::-1], 0.0)
        pseudo = _limit_pseudo_draws(moves, d, len(d) if estimate.varying is None else estimate.varying)
        cov = variance.covariance(residual)
        # rounding counts as 0, since the weight of pseudo-draws of an interval depends on a ratio of reaches
        share = _divide(np.diagonal(cov), own)
        return cls(
            weight,
            residual,
            cov=cov + np.diag(MASS * np.sum(pseudo**2, axis=1)),
            skew=_compute_skew(left, pseudo) * (weight > 0)[:, None],
            remaining=np.where(weight > 0, np.where(share > ROUNDING**2, share, 0.0), 1.0),
            control_sd=np.sqrt(of_control),
        )


def _limit_pseudo_draws(moves: FloatArray, d: FloatArray, n: int) -> FloatArray:
    """Return changes by two pseudo-draws, (k, 2), no larger than √(Σd⁴/Σd² + 3Σd²/n), that of n draws.

    That is the root of the mean x⁴ over the mean x² of differences x of two draws, so that equal draws do not
    count. If every draw is right or wrong, as for exact entities, it is the change by one wrong draw.
    """
    square = np.sum(d**2, axis=0)
    typical = np.sqrt(_divide(np.sum(d**4, axis=0), square) + 3 * square / max(n, 1))[:, None]
    return np.asarray(np.clip(moves, -typical, typical))


def _compute_skew(left: FloatArray, pseudo: FloatArray) -> FloatArray:
    """Return third moments of draws and pseudo-draws down and up, over second moments, (k, 2), 0 or more."""
    # an estimate is larger without a draw that lowers it
    third = [-1, 1] * (MASS * pseudo**3 - np.sum(left**3, axis=0)[:, None])
    second = np.sum(left**2, axis=0) + MASS * np.sum(pseudo**2, axis=1)
    return np.asarray(np.maximum(third, 0) / np.maximum(second, 1e-300)[:, None])


def _divide(top: FloatArray, bottom: FloatArray) -> FloatArray:
    return np.asarray(np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0))


def count_equivalent_labels(draws: int, before: FloatArray, after: FloatArray) -> FloatArray:
    """Return how many further draws would reduce variances, (k,), from `before` to `after`."""
    # variances fall as 1/n, so that their ratio says how many draws more would be as good
    gain = np.divide(before, after, out=np.ones_like(before), where=after > 0) - 1
    return np.maximum(np.round(draws * gain), 0)
