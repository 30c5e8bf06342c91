"""What erbayes raises and warns of, and how messages show values."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from numbers import Real
from typing import Any

import numpy as np


class Remedy(Enum):
    """What a caller can do about an error, in the words of Python; the command line has words of its own."""

    MISSING = "choose a policy to go on: missing=Missing.OMIT, Missing.SINGLETON or Missing.TOGETHER"
    COVERAGE = "choose Coverage.COMMON to compare them on the records that they share"
    COLUMNS = "choose two, such as table[['record', 'cluster']]"
    ALONE = "leave these alone in it"
    ORDER = "if columns are in the other order, choose them: table[['record', 'cluster']]"
    SCANNED_COLUMNS = "name them: record=..., cluster=..."
    LINKS = "if rows are links between records, Clustering.from_pairs makes clusters of them"
    ANSWERS = "if rows are answers about pairs of records, labelling.read_stars makes entities of them"
    SCORE = "choose the rows that are links and two columns, or score='column' and threshold=x"
    DATABASE = "scan it: erbayes.large.DatabaseTable(path, table)"


class DataError(ValueError):
    """Input that cannot be used; the message says what, where and how many, and what to do.

    Parameters
    ----------
    what : str
        Control characters in it are shown escaped, so that no file can send commands to a terminal.
    *remedies : Remedy

    Attributes
    ----------
    what : str
        The message without remedies.
    remedies : tuple of Remedy
        What to do. The message ends in their values.

    Examples
    --------
    >>> error = DataError("2 labelled records are missing", Remedy.COVERAGE)
    >>> print(error)
    2 labelled records are missing; choose Coverage.COMMON to compare them on the records that they share
    >>> error.remedies
    (<Remedy.COVERAGE: 'choose Coverage.COMMON to compare them on the records that they share'>,)
    """

    def __init__(self, what: str, *remedies: Remedy) -> None:
        self.what, self.remedies = printable(what), remedies
        super().__init__("; ".join([self.what, *(remedy.value for remedy in remedies)]))


class NotIdentified(DataError):
    """A quantity that these units or this design cannot tell."""


class Alarm(UserWarning):
    """Something about the sample that makes its estimates doubtful."""


def printable(text: str) -> str:
    r"""`text` with control characters escaped, except ends of lines and tabs.

    Examples
    --------
    >>> print(printable("a\x1b[2Jb é"))
    a\x1b[2Jb é
    """
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)


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


def need(value: Any, of: type, what: str) -> None:
    """Refuse anything but an object of the class `of`; `what` is the start of the message.

    Examples
    --------
    >>> need("50", int, "draws are counted in an int")
    Traceback (most recent call last):
    ...
    erbayes.errors.DataError: draws are counted in an int, not str
    """
    if not isinstance(value, of):
        kind = "None" if value is None else type(value).__name__
        raise DataError(f"{what}, not {f'the class {value.__name__}' if isinstance(value, type) else kind}")


def number(value: Any, what: str, allowed: Callable[[float], bool], must: str) -> float:
    """`value`, a real number that is allowed; `must` says in words what is.

    Raises
    ------
    DataError
        Anything else, also NaN.

    Examples
    --------
    >>> number(0.5, "mass", lambda x: x >= 0, "be 0 or more")
    0.5
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or not allowed(float(value)):
        raise DataError(f"{what} must {must}, not {some([value])}")
    return float(value)


def need_object(value: Any, method: str, what: str) -> None:
    """Refuse a class, a string or anything else in the place of an object that has `method`."""
    if isinstance(value, type):
        raise DataError(f"{value.__name__} is a class: pass an object of it, {value.__name__}(...)")
    if not hasattr(value, method):
        raise DataError(f"{what}, not {value!r}")
