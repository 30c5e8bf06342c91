"""The grids on which sizes and intrusions are counted, and smooth functions on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray, IntArray

SINGLE = 16
"""Sizes up to this have a bin each."""
PER_DOUBLING = 6
"""Bins a doubling above."""
LENGTH = 2.5
"""Length scale of smooth functions, in doublings."""
RANK = 5
"""Basis functions of a smooth function."""
INTRUSION = 2.0 ** np.arange(-9.0, 20.5, 0.5)
"""Bins of intrusion, the foreign records that a record of an entity meets, on average over the entity."""


@dataclass(frozen=True, slots=True, eq=False)
class SizeGrid:
    """Bins of entity sizes: single sizes up to 16, then six a doubling.

    Attributes
    ----------
    lower : float array, (J,)
        Smallest size of each bin, in records.
    size : float array, (J,)
        Mean size of each bin.
    width : float array, (J,)
        Number of sizes in each bin.

    Examples
    --------
    >>> grid = SizeGrid.up_to(1000)
    >>> grid.size[:3], len(grid.size), grid.bin(np.array([1.0, 20.0, 999.0]))
    (array([1., 2., 3.]), 52, array([ 0, 17, 50]))
    """

    lower: FloatArray
    size: FloatArray
    width: FloatArray

    @classmethod
    def up_to(cls, top: float) -> SizeGrid:
        """Bins for sizes from 1 to `top` at least."""
        doublings = np.ceil(PER_DOUBLING * np.log2((max(top, SINGLE) + 1) / SINGLE)) + 1
        coarse = np.round(SINGLE * 2 ** (np.arange(doublings + 1) / PER_DOUBLING))
        edges = np.concatenate([np.arange(1.0, SINGLE), coarse])
        lower, upper = edges[:-1], edges[1:]
        return cls(lower, (lower + upper - 1) / 2, upper - lower)

    def bin(self, size: FloatArray) -> IntArray:
        """Bin of each size."""
        return np.searchsorted(self.lower, size, side="right") - 1

    @property
    def x(self) -> FloatArray:
        """log2 of the sizes."""
        return np.asarray(np.log2(self.size))

    @property
    def doubling(self) -> IntArray:
        """Doubling of each bin: 0 for size 1, 1 for 2 and 3, and so on."""
        return np.floor(np.log2(self.lower)).astype(np.int64)


def basis(x: FloatArray, length: float = LENGTH, rank: int = RANK) -> FloatArray:
    """Leading eigenfunctions of a squared-exponential Gaussian process, times √eigenvalue, (J, rank).

    Rescaled so that with independent standard normal coefficients their sum has unit variance at every
    x, on long grids too, where so few functions are smoother than the process.
    """
    values, vectors = np.linalg.eigh(np.exp(-0.5 * ((x[:, None] - x) / length) ** 2))
    leading = vectors[:, -rank:] * np.sqrt(values[-rank:])
    return np.asarray(leading / np.sqrt((leading**2).sum(axis=1, keepdims=True)))


def nearest(grid: FloatArray, x: FloatArray) -> IntArray:
    """Position of the nearest point, on the log scale, of an increasing positive grid."""
    return np.searchsorted(np.sqrt(grid[1:] * grid[:-1]), x)
