"""What erbayes raises and warns of, and how messages show values."""

from __future__ import annotations

from typing import Any

import numpy as np


class DataError(ValueError):
    """Input that cannot be used; the message says what, where and how many."""


class NotIdentified(DataError):
    """A quantity that these units or this design cannot tell."""


class Alarm(UserWarning):
    """Something about the sample that makes its estimates doubtful."""


def some(values: Any, most: int = 3) -> str:
    """The first few of `values`, to show in a message."""
    shown = [repr(v.item() if isinstance(v, np.generic) else v) for v in list(values[:most])]
    return ", ".join(shown) + (", …" if len(values) > most else "")
