"""Intervals of precision and recall from the shares of right pairs in strata.

Let M_s be the pairs of stratum s, of which n_s are labelled and y_s of these right, with the share
μ_s = y_s/n_s, and let [l_s, u_s] be the exact interval of μ_s, drawn in by √(1 - n_s/M_s) since pairs are
drawn without replacement. With A = Σ M_s μ_s above the threshold and B the same below it,

    precision = A / Σ_above M_s        recall = A / (A + B)

The limits of a sum are A - √Σ M_s²(μ_s - l_s)² and A + √Σ M_s²(u_s - μ_s)², and those of a ratio solve
A - r B ± √(...) = 0, which is quadratic (method of variance estimates recovery). A stratum without an error
keeps its uncertainty, which one effective sample size of all strata loses (see benchmarks/pairs.md).

Sources: Zou and Donner (2008), Statistics in Medicine 27, 1693-1702 (sums). Donner and Zou (2012),
Statistical Methods in Medical Research 21, 347-359 (ratios). Clopper and Pearson (1934), Biometrika 26,
404-413. Cochran (1977), Sampling Techniques, chapter 6 (linearised standard errors).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv

from ..._internal.arrays import BoolArray, FloatArray


class Estimate(NamedTuple):
    """An estimate with its standard error and interval."""

    value: float
    se: float
    lower: float
    upper: float


NONE = Estimate(np.nan, np.nan, np.nan, np.nan)
"""No estimate."""


@dataclass(frozen=True, slots=True, eq=False)
class Strata:
    """Numbers of all, labelled and right pairs of each stratum, (S,), and which are above the threshold."""

    pairs: FloatArray
    labelled: FloatArray
    right: FloatArray
    above: BoolArray

    @property
    def share(self) -> FloatArray:
        """Return the share of right pairs in each stratum, (S,)."""
        unknown = np.full_like(self.right, np.nan)
        return np.divide(self.right, self.labelled, out=unknown, where=self.labelled > 0)

    @property
    def unseen(self) -> FloatArray:
        """Return the share of each stratum that nobody has labelled, (S,)."""
        return 1 - self.labelled / self.pairs

    def limits(self, level: float) -> FloatArray:
        """Return exact intervals of the shares, drawn in for what is labelled, (2, S)."""
        tail, n, y = (1 - level) / 2, self.labelled, self.right
        # at 0 and 1 the inverse has no value, and the limit is the end itself
        lower = np.where(y == 0, 0.0, betaincinv(np.maximum(y, 1), n - y + 1, tail))
        upper = np.where(y == n, 1.0, betaincinv(y + 1, np.maximum(n - y, 1), 1 - tail))
        share = self.share
        return share + np.sqrt(self.unseen) * (np.stack([lower, upper]) - share)

    def variance(self) -> FloatArray:
        """Return the variance of the share of each stratum, (S,)."""
        return self.unseen * self.share * (1 - self.share) / np.maximum(self.labelled - 1, 1)


def _measure_reach(strata: Strata, level: float) -> FloatArray:
    """Return the distances down and up of A, then those of B, (2, 2)."""
    steps = (strata.pairs * (strata.limits(level) - strata.share)) ** 2
    return np.sqrt([[step @ side for step in steps] for side in (strata.above, ~strata.above)])


def estimate_precision(strata: Strata, level: float) -> Estimate:
    """Return the share of right pairs among those above the threshold."""
    of = strata.above
    strata = Strata(strata.pairs[of], strata.labelled[of], strata.right[of], of[of])
    total, right = strata.pairs.sum(), strata.pairs @ strata.share
    (down, up), _ = _measure_reach(strata, level)
    se = np.sqrt(strata.pairs**2 @ strata.variance())
    return Estimate(*(float(x / total) for x in (right, se, right - down, right + up)))


def estimate_recall(strata: Strata, level: float) -> Estimate:
    """Return the share of the right pairs that lies above the threshold, if any pair is right."""
    right = strata.pairs * strata.share
    A, B = float(right @ strata.above), float(right @ ~strata.above)
    R = A / (A + B)
    (a_down, a_up), (b_down, b_up) = _measure_reach(strata, level)
    slope = np.where(strata.above, 1 - R, -R) * strata.pairs / (A + B)
    se = float(np.sqrt(slope**2 @ strata.variance()))
    # odds A/B = top/bottom become the share top/(top + bottom), which is finite where B is 0
    top, bottom = A**2 - a_down**2, A * B + _root(A, B, a_down, b_up)
    lower = top / (top + bottom) if top > 0 else 0.0
    top, bottom = A * B + _root(A, B, a_up, b_down), B**2 - b_down**2
    upper = top / (top + bottom) if bottom > 0 else 1.0
    return Estimate(R, se, float(lower), float(upper))


def _root(A: float, B: float, a: float, b: float) -> float:
    """Return the root of the discriminant of the limits of A/B."""
    return float(np.sqrt(max((A * B) ** 2 - (A**2 - a**2) * (B**2 - b**2), 0.0)))
