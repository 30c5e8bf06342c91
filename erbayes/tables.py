"""Tables of ids, and which of their columns hold them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from .errors import DataError, Remedy, some

INDEX = re.compile(r"|Unnamed: \d+|__index_level_\d+__")
"""Names of columns without a name."""
MATCHES = frozenset(
    "match nonmatch link nonlink nolink nomatch true false yes no y n t f distinct unsure".split()
)
"""Answers about pairs of records, in small letters, without blanks and signs."""


def is_table(value: Any) -> bool:
    """Whether a value is a table: a DataFrame, or an object with an Arrow C stream."""
    return isinstance(value, pd.DataFrame) or hasattr(value, "__arrow_c_stream__")


def to_frame(table: Any) -> pd.DataFrame:
    """A table of any library as a DataFrame.

    Raises
    ------
    DataError
        A single column instead of a table, such as a Series of polars.
    """
    if isinstance(table, pd.DataFrame):
        return table
    try:
        found: pd.DataFrame = pd.DataFrame.from_arrow(table)  # type: ignore[attr-defined]
    except pa.ArrowInvalid as error:
        raise DataError(f"expected a table of two columns, not one column: {type(table).__name__}") from error
    return found


def _judges(column: pd.Series) -> bool:
    """Whether a column looks like scores or answers about pairs."""
    values = column.dropna().head(1000)
    if not len(values):
        return False
    numbers = pd.to_numeric(values, errors="coerce")
    if numbers.notna().all():
        return bool(numbers.between(0, 1).all())  # True and False are 1 and 0
    return {re.sub(r"[\W_]", "", v).lower() for v in set(map(str, values))} <= MATCHES


def refuse_columns(
    frame: pd.DataFrame,
    what: str,
    *remedies: Remedy,
    pairs: Remedy | None = None,
    needed: int = 2,
    spare: int = 0,
    named: Sequence[str] = (),
) -> None:
    """Refuse a table with more columns than are needed, or with fewer.

    Parameters
    ----------
    frame : DataFrame
    what : str
        The name of the table in messages.
    *remedies : Remedy
        What the reader can do about too many columns.
    pairs : Remedy, optional
        What else the reader can do if a column judges pairs of records.
    needed : int
        The number of columns that are read.
    spare : int
        The number of columns that may follow them.
    named : sequence of str
        The columns that the caller has named.

    Raises
    ------
    DataError
        Fewer columns than are needed, or more, unless all that are needed are named.
    """
    columns = list(frame.columns)
    if len(columns) < needed:
        hint = _separated(columns) or _in_index(frame)
        raise DataError(f"{what} needs {needed} columns; it has {some(columns) or 'none'}{hint}")
    if len(columns) <= needed + spare or len(named) == needed:
        return
    free = [i for i, c in enumerate(columns) if c not in named]
    asked = f"{what} has {len(columns)} columns, {some(columns, 20)}, instead of {needed}"
    hints = [
        f"{columns[i]!r} looks like the index that pandas writes, which to_csv(index=False) leaves out"
        for i in free[:1]
        if INDEX.fullmatch(str(columns[i]))
    ]
    if judging := [columns[i] for i in free[needed - len(named) :] if _judges(frame.iloc[:, i])]:
        hints.append(f"{some(judging)} looks like scores or answers about pairs")
    raise DataError(
        "; ".join([asked, *hints]),
        *remedies,
        *([pairs] if judging and pairs else []),
    )


def refuse_names(
    named: Sequence[str], columns: Sequence[str], what: str, choices: Mapping[str, Remedy] | None = None
) -> None:
    """Refuse names of columns that a table lacks, and a name for two columns.

    Parameters
    ----------
    named, columns : sequences of str
        Names asked for, and those that there are.
    what : str
        How messages name the table.
    choices : mapping, name -> Remedy, optional
        How another column is chosen in the place of one that is lacking.

    Raises
    ------
    DataError
    """
    if lacking := [name for name in named if name not in columns]:
        remedies = dict.fromkeys(choices[name] for name in lacking if name in choices) if choices else ()
        raise DataError(f"{what} has no column {some(lacking)}; it has {some(columns, 20)}", *remedies)
    if len(set(named)) < len(named):
        raise DataError(f"{what}: one column cannot serve twice: {some(named)}")


def _in_index(frame: pd.DataFrame) -> str:
    """A hint at records in the index."""
    if isinstance(frame.index, pd.RangeIndex):
        return ""
    return ": if records are its index, reset_index() makes them a column"


def _separated(columns: Sequence[str]) -> str:
    """A hint at another separator than commas."""
    found = [repr(s) for s in (";", "\t", "|") if any(s in str(c) for c in columns)]
    return f": are its columns separated by {found[0]}, not by commas?" if found else ""
