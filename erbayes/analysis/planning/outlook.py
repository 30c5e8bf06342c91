"""The width of intervals under one design, at any number of draws.

    S² = Σa Σd²/a - (Σd)²

S² is the variance of one draw, and n times the variance of a total that n draws with unequal probabilities
estimate. Sums run over all units. d = J y is the linearised effect of a unit on a metric. Units are drawn
with probabilities p ∝ a: a = 1 if entities are drawn uniformly, and a = size if records are. Other designs
have another function of size, or of the sizes of predicted clusters. Source: Hansen and Hurwitz (1943);
Cochran (1977), theorem 9A.1.

A pilot estimates the width w with an error, and so the number of draws n. The bounds n_low and n_high are the
numbers at which w has the required value t of its standard errors away:

    log w(n) ± t √(g' C g)

C is the linearised covariance, under the pilot's design, of the estimate, log S² and the log of the effective
number of draws. g is the gradient of log w(n) by these three. t is the quantile of the pilot's degrees of
freedom. Ends of the scale (`extremes`) are held fixed. For n_high the pilot also has the pseudo-draws of
`BetaGamma`. A pilot that missed the heavy errors has both a small S² and a small C.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from ..._internal.arrays import FloatArray, IntArray
from ..._internal.errors import DataError, whole
from ...design import ByPredictedSize, UniformClusters, UniformRecords
from ...design.contract import SelectedBySize
from ...metrics.definitions import Metric
from ...metrics.intervals import DEFAULT, Kind
from ...metrics.uncertain import Normal
from ...metrics.unseen import Unseen

MOST = 10**9
"""Largest number of draws that a search tries, which is more than anybody labels."""


def frame(design: SelectedBySize | ByPredictedSize) -> int | None:
    """Return the number of elements that a design draws from without replacement; None with replacement."""
    elements = design.population if isinstance(design, UniformRecords | UniformClusters) else None
    return None if elements is None else whole(elements, "population")


@dataclass(frozen=True, slots=True, eq=False)
class OfDraws:
    """Columns of the m draws of a pilot, each for the units that it stands for, (m, k).

    `square`: squared effects e² of a unit on each metric, Σ e = 0; `size`, `size_square`: what a unit has of
    the total that the metric averages over, and its square.
    """

    square: FloatArray
    size: FloatArray
    size_square: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """Forecast of interval widths and costs for one design and k metrics, at any number of draws.

    `estimate`, `variance`, `effective` (k,): each metric, the variance S² of one draw, and effective draws
    per draw; `covariance` (k, 3, 3): that of the estimate, log S² and log `effective` under the pilot's
    design; `extremes` (k, 2): `reach` of `Unseen`; `pilot_effective`, `df` (k,): effective draws of the
    pilot, ∞ for a census; `share`, `reach`, `price` (m,): of the units that each of the m draws of the pilot
    stands for, their chance at one draw, that of one of them (0 if N is not known), and the cost of one.
    `once`: if the design counts each unit once, however often it is drawn, else None.
    """

    design: SelectedBySize | ByPredictedSize
    metrics: tuple[Metric, ...]
    estimate: FloatArray
    variance: FloatArray
    effective: FloatArray
    covariance: FloatArray
    extremes: FloatArray
    pilot_effective: FloatArray
    df: FloatArray
    share: FloatArray
    reach: FloatArray
    price: FloatArray
    once: OfDraws | None = None
    kind: Kind = DEFAULT

    @property
    def doubt(self) -> FloatArray:
        """Relative standard error of S², (k,): 0 for a census, NaN if the pilot shows no variation."""
        varies = (self.variance > 0) | np.isinf(self.pilot_effective)
        return np.where(varies, np.sqrt(self.covariance[:, 1, 1]), np.nan)

    def half_widths(self, n: int, level: float) -> FloatArray:
        """Return the half widths of intervals of n draws, (k,), NaN for a metric that is 0/0 in the pilot."""
        n, T = whole(n, "the number of draws", 0), frame(self.design)
        if n < 2 or (T is not None and n > T):
            raise DataError(f"{n} draws: 2 or more are needed" + (f", {T} at most" if T is not None else ""))
        return self._shift_widths(np.full(len(self.metrics), n), level, np.zeros(1), 0)

    def _shift_widths(self, n: IntArray, level: float, t: FloatArray, fresh: int) -> FloatArray:
        """Return half widths of n draws, (k,), t of their standard errors away on the log scale."""
        scale = np.sqrt(np.where(self.variance > 0, self.variance, 1.0))
        # numerical slopes of the log width by the estimate, its log variance and its log effective draws
        step = 1e-4 * np.column_stack([scale, np.ones((len(n), 2))])
        sides = np.vstack([np.zeros(3), np.eye(3), -np.eye(3)]) if t.any() else np.zeros((1, 3))
        dx, log_S2, log_effective = np.moveaxis(sides[:, None] * step, -1, 0)
        spread, carried, bounding = self._correct(n)
        effective = n * self.effective * np.exp(log_effective)
        variance = self.variance * np.exp(log_S2) * spread / n
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            fit = Normal(
                names=tuple(m.name for m in self.metrics),
                mean=self.estimate + dx,
                cov=variance[..., None] * np.eye(len(n)),
                df=np.maximum((n - 1) / n * effective * carried, 1.0),
                support=tuple(m.support for m in self.metrics),
                unseen=Unseen(effective=effective * bounding, reach=self.extremes - dx[..., None]),
            )
            half = np.diff(fit.interval(level, self.kind))[..., 0] / 2
            if len(half) == 1:
                return np.asarray(half[0], dtype=float)
            slope = (np.log(half[1:4]) - np.log(half[4:])).T / (2 * step)
            square = np.einsum("ki,kij,kj->k", slope, self.covariance, slope)
            error = np.sqrt(np.maximum(square, 0.0))
            # the n draws to come estimate their variance with an error of their own
            error *= np.sqrt(1 + fresh / n)
            # a width of 0, or of rounding where nearly all is labelled, has no slopes
            return np.asarray(np.where(np.isfinite(error), half[0] * np.exp(t * error), half[0]))

    def _correct(self, n: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return factors of the variance, of effective draws, and of those that bound what is unseen, (k,).

        If each unit counts once, the first is Σ e² (1 - π)/π over Σ e²/(n p), about the variance of Horvitz
        and Thompson over that with repeats, and the others follow in the same way.
        """
        one, design = np.ones(len(n)), self.design
        if self.once is None:
            if isinstance(design, UniformRecords | UniformClusters) and design.population is not None:
                fpc = np.array([design.fpc(int(x), design.population) for x in n])
                with np.errstate(divide="ignore"):
                    return fpc, one, 1 / fpc
            return one, one, one
        log_missed = self._log_missed(n[:, None]).T  # (m, k)
        missed, found, with_repeats = np.exp(log_missed), -np.expm1(log_missed), 1 / (n * self.reach[:, None])

        def compare(column: FloatArray, once: FloatArray, each: FloatArray) -> FloatArray:
            top, bottom = ((column * x).sum(axis=0) for x in (once, each))
            return np.divide(top, bottom, out=np.ones(len(n)), where=bottom > 0)

        size, square = self.once.size, self.once.size_square
        unseen, missing = compare(size, missed, one), compare(square, missed * with_repeats, with_repeats)
        return (
            compare(self.once.square, missed / found, with_repeats),
            compare(square, with_repeats, 1 / found),
            np.divide(unseen, missing, out=np.full(len(n), np.inf), where=missing > 0),
        )

    def _log_missed(self, n: IntArray) -> FloatArray:
        """Return the logarithm of the chance that n draws, (..., 1), miss a unit, (..., m).

        Without replacement a unit with a of the T elements is missed with probability (1 - n/T)^a, which is
        exact if a = 1 and close if n ≪ T.
        """
        T = frame(self.design)
        with np.errstate(divide="ignore", invalid="ignore"):
            # by logs, since 1 - p is 1 to rounding if the population is large
            missed = n * np.log1p(-self.reach) if T is None else self.reach * T * np.log1p(-n / T)
        return np.asarray(missed)

    def smallest(
        self, half_width: FloatArray, level: float, t: ArrayLike = 0.0, fresh: int = 0
    ) -> FloatArray:
        """Return the smallest numbers of draws, (k,), whose intervals have the required half widths, (k,).

        Half widths are taken t of their standard errors away on the log scale. A number is ∞ if all
        possible draws are not enough, and NaN for a metric that is 0/0 or has no standard error.
        """
        most, t, k = frame(self.design) or MOST, np.asarray(t, dtype=float), len(self.metrics)
        # bisection for all metrics at once
        low, high = np.full(k, 2), np.full(k, most + 1)
        while (low < high).any():
            n = (low + high) // 2
            enough = self._shift_widths(np.minimum(n, most), level, t, fresh) <= half_width
            low, high = np.where(enough, low, n + 1), np.where(enough, n, high)
        undefined = np.isnan(self.estimate) | ((t != 0) & np.isnan(self.covariance).any(axis=(1, 2)))
        return np.where(undefined, np.nan, np.where(high > most, np.inf, high))

    def assured(self, half_width: FloatArray, level: float, assurance: float) -> FloatArray:
        """Return the smallest n, (k,), whose achieved half width is as required with probability `assurance`.

        The variance on the log scale is that of the forecast, times 1 + m/n for a pilot of m draws, since the
        width of a fresh sample varies too. Above one half the pilot also has the two pseudo-draws of
        `bounds`.
        """
        likely = self.smallest(half_width, level)
        if assurance == 0.5:
            return likely
        outlook = self._add_pseudo_draws() if assurance > 0.5 else self
        n = outlook.smallest(half_width, level, stdtrit(self.df, assurance), len(self.share))
        n = np.where(np.isnan(n), likely, n)
        return np.asarray(np.maximum(n, likely) if assurance > 0.5 else np.minimum(n, likely))

    def bounds(self, half_width: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the smallest n if half widths are t errors lower, or higher with pseudo-draws, (k,) each."""
        t = stdtrit(self.df, (1 + level) / 2)
        high = self._add_pseudo_draws().smallest(half_width, level, t)
        return np.where(np.isnan(high), np.nan, self.smallest(half_width, level, -t)), high

    def _add_pseudo_draws(self) -> Outlook:
        """Return the outlook if the pilot had the pseudo-draws too; its covariance is NaN if S² stays 0."""
        ends = self.extremes
        share = Unseen(effective=self.pilot_effective, reach=ends).weigh_pseudo_draws(DEFAULT.mass)
        estimate = self.estimate + share / (1 + 2 * share) * ends.sum(axis=1)
        square = ends**2 / self.effective[:, None]
        variance = (self.variance + share * square.sum(axis=1)) / (1 + 2 * share) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            kept = np.where(
                variance > 0, self.variance / variance, np.where(np.isinf(self.pilot_effective), 1, np.nan)
            )
            relative = np.where(variance[:, None] > 0, square / variance[:, None], 0.0)
        unit = np.stack([np.ones_like(kept), kept, np.ones_like(kept)], axis=-1)
        moved = np.stack([ends, relative, np.zeros_like(ends)], axis=-1)
        added = np.einsum("k,kei,kej->kij", share / self.pilot_effective, moved, moved)
        return replace(
            self,
            estimate=estimate,
            variance=variance,
            covariance=self.covariance * unit[:, :, None] * unit[:, None, :] + added,
            extremes=ends + (self.estimate - estimate)[:, None],
        )

    def cost(self, n: int) -> float:
        """Return the expected cost of the distinct units of n draws, Σ price (1 - (1 - p)^n)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = -np.expm1(self._log_missed(np.array([n])))
            units = np.where(self.reach > 0, found / self.reach, n)
        return float((self.share * self.price * units).sum())
