"""Types of arrays, and of what random numbers start from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
Seed = np.random.Generator | int | None
"""A generator, a seed for a new one, or None for a new one that differs from run to run."""
