"""The grids on which sizes and foreign records are counted, and the basis of smooth functions on them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .._internal.arrays import FloatArray, IntArray

SINGLE = 8
"""Each size below this has a bin of its own."""
PER_DOUBLING = 3
"""Bins per doubling of larger sizes. With three to six, ends of intervals differ as by another seed.

Three are still narrower than the kernel that smooths histograms of predicted sizes.
"""
LENGTH = 2.5
"""Length scale of smooth functions, in doublings."""
RANK = 5
"""Number of basis functions of a smooth function."""


@dataclass(frozen=True, slots=True, eq=False)
class SizeGrid:
    """Bins of entity sizes: the least size, the mean size in records, and the number of sizes, (J,) each."""

    lower: FloatArray
    size: FloatArray
    width: FloatArray

    @classmethod
    def up_to(cls, top: float) -> SizeGrid:
        """Make bins for all sizes from 1 to `top`, and possibly some above."""
        return _make_grid(int(np.ceil(PER_DOUBLING * np.log2((max(top, SINGLE) + 1) / SINGLE))) + 1)

    def bin(self, size: FloatArray) -> IntArray:
        """Return the bin of each size."""
        return np.searchsorted(self.lower, size, side="right") - 1

    @property
    def x(self) -> FloatArray:
        return np.asarray(np.log2(self.size))


@lru_cache
def _make_grid(coarse: int) -> SizeGrid:
    """Return a grid with this number of bins of more than one size."""
    upwards = np.round(SINGLE * 2 ** (np.arange(coarse + 1) / PER_DOUBLING))
    edges = np.concatenate([np.arange(1.0, SINGLE), upwards])
    lower, upper = edges[:-1], edges[1:]
    grid = SizeGrid(lower, (lower + upper - 1) / 2, upper - lower)
    for values in (grid.lower, grid.size, grid.width):
        values.setflags(write=False)
    return grid


def basis(x: FloatArray, length: float = LENGTH, rank: int = RANK) -> FloatArray:
    """Return smooth functions on a grid x, both in doublings, (J, rank), of unit variance when added.

    They are the leading eigenfunctions of a squared-exponential Gaussian process, times √eigenvalue.
    """
    return _make_basis(tuple(x), length, rank)


@lru_cache
def _make_basis(points: tuple[float, ...], length: float, rank: int) -> FloatArray:
    x = np.array(points)
    values, vectors = np.linalg.eigh(np.exp(-0.5 * ((x[:, None] - x) / length) ** 2))
    leading = vectors[:, -rank:] * np.sqrt(values[-rank:])
    # on long grids, too few functions would have a variance below 1
    functions = np.asarray(leading / np.sqrt((leading**2).sum(axis=1, keepdims=True)))
    functions.setflags(write=False)
    return functions
