"""Linear forms of estimates: weights, values, covariances in which rounding is 0, and arms of intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from .._internal.arrays import FloatArray
from .._internal.errors import DataError
from .intervals import Anytime, Distribution, Kind
from .unseen import by_component

if TYPE_CHECKING:
    from .estimates import Estimates


def make_sparse(J: FloatArray, V: FloatArray) -> Any:
    """Return linear forms J to be multiplied by V, as a sparse matrix if they are many."""
    many = J.ndim == 2 and J.size > 10_000  # fewer take longer to convert than to multiply
    return csr_array(J) if many and not np.isnan(V).any() else J


def compute_covariance(J: FloatArray, V: FloatArray, rounding: float = 1e-14) -> FloatArray:
    """Return J V J', the covariance of linear forms J, with 0 for entries that are rounding."""
    sparse = make_sparse(J, V)
    both = (sparse, V), (abs(sparse), np.abs(V))
    cov, size = (np.asarray(A @ np.swapaxes(A @ B, -1, -2)) for A, B in both)
    # entries that cancel are 0, so that no interval has the length of rounding
    return np.where((np.abs(cov) <= rounding * size) | ((cov < 0) & (cov >= -1e-12 * size)), 0.0, cov)


def check_weights(weights: Any, names: Sequence[str], of: Sequence[str]) -> FloatArray:
    """Return the weights of linear combinations as an array, (names, of), refusing other shapes."""
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise DataError(f"names of combinations must be a list of str, not {names!r}")
    try:
        C = np.atleast_2d(np.asarray(weights, dtype=float))
    except (TypeError, ValueError) as error:
        raise DataError(f"weights of a combination must be numbers, one row per name: {error}") from error
    if C.shape != (len(names), len(of)):
        raise DataError(
            f"weights must have one row per name, {len(names)}, and one column per component, {len(of)}, "
            f"not shape {C.shape}"
        )
    if not np.isfinite(C).all():
        raise DataError("weights of a combination must be finite")
    if not (C != 0).any(axis=1).all():
        raise DataError("weights of a combination are all 0")
    return C


def combine_linearly(C: FloatArray, x: FloatArray) -> FloatArray:
    """Return linear combinations of the last axis. They are NaN only if a NaN has a weight other than 0."""
    lost = np.isnan(x) @ (C != 0).T
    return np.where(lost, np.nan, np.where(np.isnan(x), 0.0, x) @ C.T)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Combination:
    """Linear combinations of `parts`, (k,), by `weights`, (j, k), with intervals from those of the parts.

    With estimates x_i, correlations r_il and arms δ_i of the parts on the sides to which weights w_i turn
    them, the arm of Σ w_i x_i is √(ΣΣ w_i δ_i w_l δ_l r_il), so that nothing for which the intervals of the
    parts allow is lost (Zou and Donner 2008, Statistics in Medicine 27, 1693-1702). Variances in r_il include
    what the kind adds for errors that no draw has shown. One draw that shows an error of both parts would
    otherwise make their correlation 1, and cancel the arms of all other errors.
    """

    parts: Estimates
    weights: FloatArray = by_component(0)

    def find_arms(self, level: float, kind: Kind) -> FloatArray:
        """Return the arms down and up, (2, j), of intervals of a kind."""
        w, parts = self.weights, self.parts
        # what no draw shows of one part does not go with that of another, however few draws make both
        unseen = kind.spread_unseen(parts) if isinstance(kind, Distribution | Anytime) else 0.0
        sd = np.sqrt(parts.uncut_sd**2 + unseen)
        both = np.outer(sd, sd)
        # a part without a standard error has an arm all the same, which goes with no other
        r = np.divide(parts.cov, both, out=np.zeros_like(both), where=both > 0)
        np.fill_diagonal(r, 1.0)
        down, up = np.abs(parts.interval(level, kind) - parts.estimate[:, None]).T
        # a negative weight turns the arm up of a part into one down
        turned = (w * np.where(w < 0, up, down), w * np.where(w < 0, down, up))
        of_each = (np.where(w != 0, arm, 0.0) for arm in turned)
        return np.stack([np.sqrt(np.maximum(np.sum((arm @ r) * arm, axis=1), 0.0)) for arm in of_each])
