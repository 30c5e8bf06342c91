"""Simultaneous intervals of several components: the sup-t band."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from .._internal.arrays import FloatArray
from .estimates import Estimates
from .intervals import check_level

PATHS = 10_000
"""Random vectors from which the level of simultaneous intervals is computed, to a standard error of .002."""
ROUNDING = 1e-12
"""Standard error below which a component has no error, over its estimate or over 1, whichever is larger."""


def draw_paths(cov: FloatArray) -> FloatArray:
    """Return normal vectors of mean 0 and covariance `cov`, (k, k), the same each time, (PATHS, k)."""
    value, vector = np.linalg.eigh(np.nan_to_num(cov))
    # the symmetric root is unique, whereas signs and order of eigenvectors differ between processors
    root = vector * np.sqrt(np.maximum(value, 0)) @ vector.T
    # a seed of its own, so that a table is the same each time
    return np.asarray(np.random.default_rng(0).standard_normal((PATHS, len(root))) @ root)


def simultaneous_level(result: Estimates, level: float) -> float:
    """Return the pointwise level at which all intervals cover together at `level`: the sup-t band.

    It is 2 Φ(c) - 1, with c the quantile of the largest of |z_1|, ..., |z_k|, correlated as the components.

    References
    ----------
    Montiel Olea and Plagborg-Møller (2019), Journal of Applied Econometrics 34, 1-17.
    """
    check_level(level)
    cov = np.atleast_2d(result.cov)
    sd = np.sqrt(np.maximum(np.nan_to_num(np.diagonal(cov)), 0))
    scale = np.maximum(np.abs(np.nan_to_num(result.estimate)), 1)
    some = np.flatnonzero(sd > ROUNDING * scale)
    if len(some) < 2:
        return level
    sd = sd[some]
    z = draw_paths(cov[np.ix_(some, some)] / np.outer(sd, sd))
    c = np.quantile(np.abs(z).max(axis=1), level)
    return float(max(level, 2 * ndtr(c) - 1))
