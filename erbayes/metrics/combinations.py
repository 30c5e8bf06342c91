"""Linear forms of estimates: their weights, values and covariances, in which rounding is 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from .._internal.arrays import FloatArray
from .._internal.errors import DataError


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
