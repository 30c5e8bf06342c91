"""Variances of designs: the covariance of totals over repeated sampling, replicates, and the jackknife.

Z are the contributions of draws to totals, one row per draw and one column per total.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from .._internal.arrays import FloatArray, IntArray
from .._internal.errors import DataError, NotIdentified

MOST_CLASSES = 500
"""Distinct chances above which units with about the same chance share their joint chances, to bound memory.

A class of one in 500 of the logarithmic range changes the variance by less than a thousandth."""


def kish(Z: FloatArray) -> FloatArray:
    """Return the effective number of draws, (k,), of contributions z, (n, k): (Σz)²/Σz² (Kish 1965)."""
    return np.asarray(Z.sum(axis=0) ** 2 / (Z**2).sum(axis=0))


def centre(Z: FloatArray, group: IntArray) -> FloatArray:
    """Return contributions about the means of their groups, (n, k)."""
    means = np.column_stack([np.bincount(group, z) for z in Z.T]) / np.bincount(group)[:, None]
    return np.asarray(Z - means[group])


class Variance(Protocol):
    """Variation of contributions Z, (n draws, k columns), over repeated sampling. Classes inherit from it."""

    __slots__ = ()

    @property
    def df_lost(self) -> int:
        """Return the degrees of freedom that means of strata and calibration take."""

    @property
    def census(self) -> bool:
        """Return whether all units are in the sample."""

    @property
    def unseen(self) -> FloatArray:
        """Return the share of units like that of each draw that are not in the sample, (..., n).

        They alone can have errors that no draw has shown: θ, or 1 - π for units that are drawn once.
        """

    @property
    def repeated(self) -> FloatArray:
        """Return how many draws a unit like that of each draw had, over its probability to be seen, (..., n).

        A set of units is missed with probability e^-Σrπ, for units that are seen with probability π.
        """

    def residuals(self, Z: FloatArray) -> FloatArray:
        """Return the part of Z that varies, (n, k): Z itself, or its residuals after calibration."""
        return Z

    def covariance(self, residuals: FloatArray) -> FloatArray:
        """Return the covariance of totals, (k, k), from the `residuals`, (n, k); NaN if there is none."""

    def jackknife(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the change of the totals without each draw, (n, k), and the scale of its square, (n,)."""

    @property
    def independent(self) -> StratifiedDraws:
        """Return the independent draws that a bootstrap resamples."""

    def replicates(self, Z: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return totals of B replicates, (B, k), whose weights are multiplied by `multipliers`, (B, n)."""
        return np.asarray(multipliers @ Z)


@dataclass(frozen=True, slots=True, eq=False)
class StratifiedDraws(Variance):
    """Variance of independent draws within strata; `fpc` (H,): finite-population correction of each."""

    stratum: IntArray
    fpc: FloatArray
    adjust: bool = False

    @property
    def df_lost(self) -> int:
        return len(self.fpc)

    @property
    def census(self) -> bool:
        return not self.fpc.any()

    @property
    def unseen(self) -> FloatArray:
        return self.fpc[self.stratum]

    @property
    def repeated(self) -> FloatArray:
        with np.errstate(divide="ignore"):
            return 1 / self.unseen

    def _centre_in_strata(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Z about the means of strata, and n_h/(n_h - 1) of each draw."""
        n = np.bincount(self.stratum, minlength=self.df_lost).astype(float)
        factor = np.where(n > 1, n / np.maximum(n - 1, 1), 1.0)
        if self.df_lost == 1:
            centred = Z - Z.mean(axis=-2, keepdims=True) if n[0] > 1 else Z
            return centred * (self.fpc[0] > 0), factor
        means = np.column_stack([np.bincount(self.stratum, z, self.df_lost) for z in Z.T]) / n[:, None]
        if self.adjust:
            means[n == 1] = Z.mean(axis=0)
        centred = Z - means[self.stratum]
        centred[self.fpc[self.stratum] == 0] = 0.0
        return centred, factor[self.stratum]

    def covariance(self, residuals: FloatArray) -> FloatArray:
        """Return Σ_h θ_h n_h/(n_h - 1) Σ_s (z_s - z̄_h)(z_s - z̄_h)' (Cochran 1977, chapter 5).

        It is NaN for a single draw. A single stratum may have leading axes, (..., n, k).
        """
        k = residuals.shape[-1]
        if len(self.stratum) == 1 and self.fpc[0] > 0:
            return np.full((*residuals.shape[:-2], k, k), np.nan)
        centred, factor = self._centre_in_strata(residuals)
        scaled = centred * (factor * self.fpc[self.stratum])[:, None]
        return np.asarray(np.swapaxes(scaled, -1, -2) @ centred)

    @property
    def independent(self) -> StratifiedDraws:
        return self

    def jackknife(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        if len(Z) == 1 and self.fpc[0] > 0:
            raise DataError("a single draw has no jackknife")
        centred, factor = self._centre_in_strata(Z)
        return -centred * factor[:, None], self.fpc[self.stratum] / factor


class _OnceDrawn(Variance):
    """Variance of units that are in the sample at most once, each with a known probability π to be in it."""

    __slots__ = ()

    if TYPE_CHECKING:  # a field of some classes, a formula of others

        @property
        def inclusion(self) -> FloatArray: ...

    dependent: ClassVar[str] = "draws without replacement and with unequal probabilities are not independent"
    """Why no bootstrap resamples the draws."""
    remedy: ClassVar[str] = "use the closed form or the jackknife"
    """The remedy that the error names."""

    @property
    def df_lost(self) -> int:
        return 1

    @property
    def census(self) -> bool:
        return bool((self.inclusion == 1).all())

    @property
    def unseen(self) -> FloatArray:
        return 1 - self.inclusion

    @property
    def repeated(self) -> FloatArray:
        p = self.inclusion
        with np.errstate(divide="ignore"):
            return np.divide(-np.log1p(-p), p, out=np.ones_like(p), where=p > 0)

    @property
    def independent(self) -> StratifiedDraws:
        raise NotIdentified(f"{self.dependent}, so no bootstrap resamples them; {self.remedy}")

    def jackknife(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As `Variance.jackknife`. A unit that is certain to be drawn has scale 0."""
        n = len(Z)
        if n == 1 and not self.census:
            raise DataError("a single unit has no jackknife")
        return -(Z - Z.mean(axis=0)) * n / max(n - 1, 1), (1 - self.inclusion) * (n - 1) / n


@dataclass(frozen=True, eq=False)
class DistinctDraws(_OnceDrawn):
    """Variance of the distinct units among n `draws` of elements, such as records (Horvitz and Thompson).

    A unit with chance p (..., n) at one draw is missed with probability e^ℓ(p), and two with e^ℓ(p + p'):
    ℓ(p) = n log(1 - p), or without replacement Σ log(1 - n/(N - i)) over i < pN, for a `population` of N
    elements. A draw of a unit that was drawn before has p = 0, and counts nothing.
    """

    p: FloatArray
    draws: int
    population: int | None = None

    dependent: ClassVar[str] = "distinct units are not independent draws"
    remedy: ClassVar[str] = "list the draws with their repeats, or use the closed form or the jackknife"

    @cached_property
    def inclusion(self) -> FloatArray:
        """Return the probability π that each unit is in the sample, (..., n); 0 for repeats."""
        return np.asarray(-np.expm1(self._log_missed(self.p)))

    @property
    def census(self) -> bool:
        return bool((self.inclusion[self.p > 0] == 1).all())

    def _log_missed(self, p: FloatArray) -> FloatArray:
        """Return ℓ(p): -∞ for units that cannot be missed."""
        with np.errstate(divide="ignore"):
            if self.population is None:
                return np.asarray(self.draws * np.log1p(-np.minimum(p, 1)))
            size = np.rint(p * self.population).astype(np.int64)
            left = np.maximum(self.population - np.arange(size.max(initial=0)), self.draws)
            return np.append(0.0, np.cumsum(np.log1p(-self.draws / left)))[size]

    def _compute_excess(self, p: FloatArray) -> FloatArray:
        """Return exp(ℓ(p + p') - ℓ(p) - ℓ(p')) - 1 for pairs, (h, h): -1 if one of two is always drawn."""
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.population is None:  # without a difference, which would cancel for small p
                odds = p / (1 - p)
                return np.asarray(np.expm1(self.draws * np.log1p(-np.minimum(np.outer(odds, odds), 1))))
            missed, both = self._log_missed(p), self._log_missed(p[:, None] + p)
            return np.where(np.isinf(both), -1.0, np.expm1(both - missed[:, None] - missed))

    @cached_property
    def _pairs(self) -> tuple[IntArray, FloatArray]:
        """Return the class of each unit by its p, (..., n), and (π_cd - π_c π_d)/π_cd of classes, (h, h)."""
        p = self.p
        if len(np.unique(p)) > MOST_CLASSES:
            step = np.ptp(np.log(p[p > 0])) / MOST_CLASSES
            p = np.where(p > 0, np.exp(step * np.rint(np.log(np.where(p > 0, p, 1)) / step)), 0)
        of_class, at = np.unique(p, return_inverse=True)
        missed = self._log_missed(of_class)
        neither, found = np.exp(missed[:, None] + missed), -np.expm1(missed)
        # π_cd - π_c π_d as a product: the difference itself cancels for small p
        joint = neither * np.where(neither > 0, self._compute_excess(of_class), 0.0)
        pair = np.outer(found, found) + joint
        return at.reshape(p.shape), np.divide(joint, pair, out=np.zeros_like(pair), where=pair > 0)

    def covariance(self, residuals: FloatArray) -> FloatArray:
        """Return ΣΣ (π_cd - π_c π_d)/π_cd z_c z_d' over pairs of units, (..., k, k), with π_cc = π_c."""
        if residuals.ndim > 2 and len(np.unique(self.p)) > MOST_CLASSES:  # each sample has fewer
            samples = zip(self.p, residuals, strict=True)
            return np.stack([replace(self, p=p).covariance(z) for p, z in samples])
        at, delta = self._pairs  # units of one p count as one class
        batch, k, classes = residuals.shape[:-2], residuals.shape[-1], len(delta)
        of_sample = classes * np.arange(math.prod(batch)).reshape(*batch, 1) + at
        rows = [
            np.bincount(of_sample.ravel(), z.ravel(), math.prod(batch) * classes)
            for z in np.moveaxis(residuals, -1, 0)
        ]
        sums = np.stack(rows, axis=-1).reshape(*batch, classes, k)
        within = np.diag(delta)
        of_class = np.take_along_axis(sums, at[..., None], axis=-2)
        same = (1 - self.inclusion)[..., None] * residuals + within[at][..., None] * (of_class - residuals)
        between = np.swapaxes(sums, -1, -2) @ ((delta - np.diag(within)) @ sums)
        return np.asarray(between + np.swapaxes(residuals, -1, -2) @ same)

    def jackknife(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As `Variance.jackknife`, where repeats change nothing."""
        once = np.flatnonzero(self.p > 0)
        change, scale = np.zeros_like(Z), np.zeros(len(Z))
        change[once], scale[once] = _OnceDrawn.jackknife(replace(self, p=self.p[once]), Z[once])
        return change, scale


@dataclass(frozen=True, slots=True, eq=False)
class PoissonDraws(_OnceDrawn):
    """Variance of units that enter the sample independently, with probabilities `inclusion` (n,)."""

    inclusion: FloatArray

    dependent: ClassVar[str] = "Poisson draws have no fixed number"

    def covariance(self, residuals: FloatArray) -> FloatArray:
        """Return the covariance of totals, (k, k): Σ (1 - π_c) z_c z_c', which is unbiased."""
        return np.asarray(residuals.T @ ((1 - self.inclusion)[:, None] * residuals))

    def jackknife(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As `Variance.jackknife`, where the weights of the other units stay as they are."""
        if len(Z) == 1 and not self.census:
            raise DataError("a single unit has no jackknife")
        return -Z, 1 - self.inclusion


@dataclass(frozen=True, slots=True, eq=False)
class HartleyRaoDraws(_OnceDrawn):
    """Variance of draws with probabilities `inclusion`, π (n,), and a sum Q of `squares` over the population.

    Hartley and Rao (1962) for systematic draws in random order, without those with π = 1, which are certain:
    1/(n - 1) Σ_{s<t} (1 - π_s - π_t + Q/n) (z_s - z_t)(z_s - z_t)'.
    """

    inclusion: FloatArray
    squares: float

    def covariance(self, residuals: FloatArray) -> FloatArray:
        """Return the covariance of totals, (k, k); NaN for a single uncertain draw."""
        uncertain = self.inclusion < 1
        z, p = residuals[uncertain], self.inclusion[uncertain]
        n, k = z.shape
        if n == 0:
            return np.zeros((k, k))
        if n == 1:
            return np.full((k, k), np.nan)
        half = (1 + (self.squares - (~uncertain).sum()) / n) / 2 - p  # 1 - π_s - π_t + Q/n as a sum of two
        z = z - z.mean(axis=0)  # differences do not change, and sums of z vanish
        squares = z.T @ z
        return np.asarray((n * z.T @ (half[:, None] * z) + half.sum() * squares) / (n - 1))
