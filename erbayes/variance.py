"""How draws vary: the covariance of totals over repeated sampling, and the jackknife."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .arrays import FloatArray, IntArray
from .errors import DataError, NotIdentified


def kish(Z: FloatArray) -> FloatArray:
    """Effective number of draws that each column's sum rests on, (Σz)²/Σz² (Kish 1965)."""
    return np.asarray(Z.sum(axis=0) ** 2 / (Z**2).sum(axis=0))


class Variance(Protocol):
    """How contributions Z (n draws × k columns) vary over repeated sampling."""

    @property
    def lost(self) -> int:
        """Degrees of freedom taken by the means of strata and by calibration."""

    @property
    def census(self) -> bool:
        """True where every unit is in the sample."""

    @property
    def theta_mean(self) -> float:
        """Finite-population correction, averaged over draws."""

    def residuals(self, Z: FloatArray) -> FloatArray:
        """What of Z varies: Z itself, or what calibration leaves of it."""

    def covariance(self, residuals: FloatArray) -> FloatArray: ...
    def jackknife(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]: ...

    @property
    def independent(self) -> StratifiedDraws:
        """The independent draws to resample.

        Raises
        ------
        NotIdentified
            Where draws are not independent.
        """

    def replicates(self, Z: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Totals with the weights of draws multiplied by `multipliers`, (B, n) -> (B, k)."""


@dataclass(frozen=True, slots=True, eq=False)
class StratifiedDraws:
    """Independent draws within strata.

    Attributes
    ----------
    stratum : int array, (n,)
    theta : float array, (H,)
        Finite-population correction of each stratum.
    adjust : bool
        Strata of one draw are centred at the mean of all draws; otherwise they count as certain.
    """

    stratum: IntArray
    theta: FloatArray
    adjust: bool = False

    @property
    def lost(self) -> int:
        return len(self.theta)

    @property
    def census(self) -> bool:
        return not self.theta.any()

    @property
    def theta_mean(self) -> float:
        return float(self.theta[self.stratum].mean())

    def residuals(self, Z: FloatArray) -> FloatArray:
        return Z

    def _centred(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        n = np.bincount(self.stratum, minlength=self.lost).astype(float)
        factor = np.where(n > 1, n / np.maximum(n - 1, 1), 1.0)
        if self.lost == 1:
            centred = Z - Z.mean(axis=-2, keepdims=True) if n[0] > 1 else Z
            return centred * (self.theta[0] > 0), factor
        means = np.column_stack([np.bincount(self.stratum, z, self.lost) for z in Z.T]) / n[:, None]
        if self.adjust:
            means[n == 1] = Z.mean(axis=0)
        centred = Z - means[self.stratum]
        centred[self.theta[self.stratum] == 0] = 0.0
        return centred, factor[self.stratum]

    def covariance(self, residuals: FloatArray) -> FloatArray:
        """Σ_h θ_h n_h/(n_h - 1) Σ_s (z_s - z̄_h)(z_s - z̄_h)'; NaN for a single draw.

        One stratum takes leading axes, (..., n, k) -> (..., k, k).
        """
        k = residuals.shape[-1]
        if len(self.stratum) == 1 and self.theta[0] > 0:
            return np.full((*residuals.shape[:-2], k, k), np.nan)
        centred, factor = self._centred(residuals)
        scaled = centred * (factor * self.theta[self.stratum])[:, None]
        return np.asarray(np.swapaxes(scaled, -1, -2) @ centred)

    @property
    def independent(self) -> StratifiedDraws:
        return self

    def replicates(self, Z: FloatArray, multipliers: FloatArray) -> FloatArray:
        return np.asarray(multipliers @ Z)

    def jackknife(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Change of the totals when draw s is left out, (n, k), and its scale, (n,)."""
        if len(Z) == 1 and self.theta[0] > 0:
            raise DataError("a single draw has no jackknife")
        centred, factor = self._centred(Z)
        return -centred * factor[:, None], self.theta[self.stratum] / factor


@dataclass(frozen=True, slots=True, eq=False)
class DistinctDraws:
    """Distinct entities among records drawn with replacement (Horvitz-Thompson).

    π_c = 1 - (1-p_c)^n and π_cd = 1 - (1-p_c)^n - (1-p_d)^n + (1-p_c-p_d)^n with p_c = N_c/N. Entities of one
    size have one p: time and memory go with the number of sizes squared, not of entities.
    """

    p: FloatArray
    draws: int

    @property
    def lost(self) -> int:
        return 1

    @property
    def census(self) -> bool:
        return bool((self.inclusion == 1).all())

    @property
    def theta_mean(self) -> float:
        return float((1 - self.inclusion).mean())

    def residuals(self, Z: FloatArray) -> FloatArray:
        return Z

    @property
    def inclusion(self) -> FloatArray:
        return np.asarray(-np.expm1(self.draws * np.log1p(-self.p)))

    def covariance(self, residuals: FloatArray) -> FloatArray:
        """ΣΣ (π_cd - π_c π_d)/π_cd z_c z_d', with π_cc = π_c."""
        p, of = np.unique(self.p, return_inverse=True)
        together = np.zeros((len(p), residuals.shape[1]))
        np.add.at(together, of, residuals)
        odds = p / (1 - p)
        with np.errstate(divide="ignore"):  # two entities that share all records: one is always found
            excess = np.expm1(self.draws * np.log1p(-np.minimum(np.outer(odds, odds), 1)))
        found = -np.expm1(self.draws * np.log1p(-p))
        miss = 1 - found
        joint = np.outer(miss, miss) * excess  # π_cd - π_c π_d, without its cancellation for small p
        both = np.outer(found, found) + joint
        delta = np.divide(joint, both, out=np.zeros_like(both), where=both > 0)
        alike, others = np.diag(delta)[of, None], delta - np.diag(np.diag(delta))
        own = miss[of, None] * residuals + alike * (together[of] - residuals)
        return np.asarray(together.T @ others @ together + residuals.T @ own)

    @property
    def independent(self) -> StratifiedDraws:
        raise NotIdentified(
            "distinct entities are not independent draws, so no bootstrap resamples them; keep the "
            "draws with their repeats (UniformRecords), or use taylor or the jackknife"
        )

    def replicates(self, Z: FloatArray, multipliers: FloatArray) -> FloatArray:
        return np.asarray(multipliers @ Z)

    def jackknife(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Leave one entity out; an entity that is certain to be found has scale 0."""
        n = len(Z)
        if n == 1:
            raise DataError("a single entity has no jackknife")
        return -(Z - Z.mean(axis=0)) * n / (n - 1), (1 - self.inclusion) * (n - 1) / n
