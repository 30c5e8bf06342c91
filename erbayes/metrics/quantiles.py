"""Quantiles of distributions, arrays at once, also where a distribution is a point."""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv, gammaincinv, ndtri, stdtrit

from .._internal.arrays import FloatArray

MOST = 1e16
"""Sum of the parameters of a Beta distribution above which its spread is rounding, and its inverse fails."""


def compute_t_quantiles(df: FloatArray, p: FloatArray) -> FloatArray:
    """Return quantiles of Student's distribution, and normal ones for infinite df."""
    return np.asarray(stdtrit(np.minimum(df, 1e12), p))


def compute_beta_quantiles(x: FloatArray, V: FloatArray, p: FloatArray) -> FloatArray:
    """Return quantiles of Beta(n x, n (1 - x)) with n = x (1 - x)/V; x itself if V is 0."""
    # without spread, or with one of rounding, the distribution is a point, where the inverse has no value
    spread = (V * MOST > x * (1 - x)) & (x > 0) & (x < 1)
    size = np.divide(x * (1 - x), V, out=np.ones_like(x), where=spread)
    quantiles = betaincinv(np.where(spread, size * x, 1.0), np.where(spread, size * (1 - x), 1.0), p)
    return np.where(spread, quantiles, np.where(np.isnan(V), np.nan, x))


def compute_gamma_quantiles(x: FloatArray, V: FloatArray, p: FloatArray) -> FloatArray:
    """Return quantiles of the Gamma distribution of mean x and variance V; x itself if V is 0."""
    spread = (V > 0) & (x > 0)
    shape = np.divide(x**2, V, out=np.ones_like(x), where=spread)
    quantiles = gammaincinv(shape, p) * x / shape
    return np.where(spread, quantiles, np.where(np.isnan(V), np.nan, x))


def inflate_variances(V: FloatArray, df: FloatArray, p: FloatArray) -> FloatArray:
    """Return V (t_df(p)/z(p))², which widens a tail for few degrees of freedom (Korn and Graubard 1998)."""
    tail = np.where(np.abs(p - 0.5) < 1e-4, 0.5 + 1e-4, p)  # at the median t/z would be 0/0
    return np.asarray(V * (compute_t_quantiles(df, tail) / ndtri(tail)) ** 2)
