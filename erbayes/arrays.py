"""Types of arrays; what random numbers start from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import DataError, some

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
Seed = np.random.Generator | int | None
"""A generator, a seed for a new one, or None for a new one that differs from run to run."""


def generator(rng: Any) -> np.random.Generator:
    """A generator of random numbers from what a caller gives as `rng`.

    Parameters
    ----------
    rng : Generator, int or None
        As `Seed` says. A Generator is returned itself. NumPy's other sources of seeds are taken too.

    Raises
    ------
    DataError
        Anything that gives no seed, such as text or a number below 0.
    """
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"rng must be a Generator, a whole number of 0 or more as seed, or None, not {rng!r}"
        ) from error


def floats(values: Any, what: str) -> FloatArray:
    """`values`, a number or an array of numbers, as floats.

    Raises
    ------
    DataError
        Words, or rows of different lengths.
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} must be numbers, not {some([values])}") from error
