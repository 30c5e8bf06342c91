"""Types of arrays and of seeds; conversion to them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import DataError, head

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
Seed = np.random.Generator | int | None
"""A generator of random numbers, the seed of a new one, or None for a new one with a random seed."""


def generator(rng: Any) -> np.random.Generator:
    """Make a generator of random numbers from an argument `rng`: a `Seed`, or what NumPy takes for one."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"rng must be a Generator, a whole number of 0 or more as seed, or None, not {rng!r}"
        ) from error


def draw_seed(rng: Any) -> int:
    """Return the seed of all that one call computes: doors that use it agree on the answer of an engine."""
    return int(generator(rng).integers(2**32))


def label_components(left: IntArray, right: IntArray, nodes: int) -> IntArray:
    """Return the connected component of each node of a graph, (nodes,), from both ends of its edges, (e,)."""
    from scipy.sparse import coo_array  # not above, since the shell starts without it
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(left), dtype=bool), (left, right)), shape=(nodes, nodes))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def floats(values: Any, what: str) -> FloatArray:
    """Convert a number or an array of numbers to floats. `what` is its name in the message."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} must be numbers, not {head([values])}") from error


EXACT = 2**53
"""Number from which on neighbouring integers are one number in floating point."""
