"""Types of arrays and of seeds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
Seed = np.random.Generator | int | None
"""A generator of random numbers, the seed of a new one, or None for a new one with a random seed."""
