"""What erbayes raises and warns of, and how messages show values."""

from __future__ import annotations

from enum import Enum
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


def whole(value: Any, what: str, least: int = 1) -> int:
    """`value` as an int.

    Raises
    ------
    DataError
        A value that is not a whole number, or one below `least`.

    Examples
    --------
    >>> whole(100.0, "population")
    100
    """
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or value % 1 != 0 or value < least:
        raise DataError(f"{what} must be a whole number, {least} or more, not {value!r}")
    return int(value)


def member[Choice: Enum](value: Any, of: type[Choice], argument: str) -> Choice:
    """`value`, which must be a member of an enumeration.

    Raises
    ------
    DataError
        Anything else, such as the name of a member.
    """
    if not isinstance(value, of):
        raise DataError(f"{argument} must be one of {', '.join(map(str, of))}, not {value!r}")
    return value


def need_object(value: Any, method: str, what: str) -> None:
    """Refuse a class, a string or anything else in the place of an object that has `method`."""
    if isinstance(value, type):
        raise DataError(f"{value.__name__} is a class: pass an object of it, such as {value.__name__}()")
    if not hasattr(value, method):
        raise DataError(f"{what}, not {value!r}")
