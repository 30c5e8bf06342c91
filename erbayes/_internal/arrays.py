"""Types of arrays and of seeds; tables of ids: conversion to them, and checks of their columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from .errors import DataError, Remedy, head, refuse_cases

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
INDEX = re.compile(r"|Unnamed: \d+|__index_level_\d+__")
"""Names that pandas writes for an index without a name."""
YES = frozenset("1 true t yes y match matched link linked same duplicate".split())
NO = frozenset("0 false f no n nonmatch non-match nomatch nonlink nolink distinct different unlinked".split())
"""Answers about pairs of records, in small letters; the number 1.0 is 1."""
UNSURE = frozenset(["?", "unsure"])
"""Answers that leave a pair undecided."""


def is_whole_decimal(values: pd.Series | pd.Index) -> bool:
    """Return whether values are decimals without decimal places, as a column DECIMAL(38, 0) has."""
    if pd.api.types.infer_dtype(values) != "decimal":
        return False
    return all(value.is_finite() and value.as_tuple().exponent == 0 for value in values)


def is_table(value: Any) -> bool:
    """Return whether a value is a table: a DataFrame, or an object with an Arrow C stream."""
    return isinstance(value, pd.DataFrame) or hasattr(value, "__arrow_c_stream__")


def hint_at_polars(value: Any) -> str:
    """Return a hint if a value is a frame of a polars that cannot hand it over yet."""
    old = type(value).__module__.startswith("polars.") and type(value).__name__ == "DataFrame"
    return "; frames of polars can be read from polars 1.3 on" if old and not is_table(value) else ""


def to_frame(table: Any) -> pd.DataFrame:
    """Convert a table of any library to a DataFrame, and refuse a single column, or ids that are an index."""
    if isinstance(table, pd.DataFrame):
        ids, name = table.index, table.index.name
        read = name in table if name is not None else pd.api.types.is_integer_dtype(ids)
        if len(ids) and ids.nlevels == 1 and not read:
            said = f"a table of {head(list(table.columns)) or 'no column'} has the index {head(ids)}"
            raise DataError(f"{said}: reset_index() makes a column of it, reset_index(drop=True) none")
        return table
    try:
        # metadata of pandas would make an index of a column
        frame: pd.DataFrame = pa.table(table).to_pandas(ignore_metadata=True)
    except pa.ArrowInvalid as error:
        raise DataError(f"expected a table of two columns, not one column: {type(table).__name__}") from error
    return frame


def need_table(value: Any, what: str) -> pd.DataFrame:
    """Return a table as a DataFrame, and refuse all else; `what` starts the message."""
    if not is_table(value):
        path = "; read the file first, as pandas.read_csv does" if isinstance(value, str) else ""
        raise DataError(f"{what}, not {type(value).__name__}{path}{hint_at_polars(value)}")
    return to_frame(value)


def looks_like_answers(column: pd.Series) -> bool:
    """Return whether a column looks like scores or answers about pairs."""
    values = column.dropna().head(1000)
    if not len(values):
        return False
    numbers = pd.to_numeric(values, errors="coerce")
    if numbers.notna().all():
        return bool(numbers.between(0, 1).all())  # True and False are 1 and 0
    return {re.sub(r"[\W_]", "", v).lower() for v in set(map(str, values))} <= YES | NO | UNSURE


def refuse_names(
    named: Sequence[str], columns: Sequence[str], what: str, choices: Mapping[str, Remedy] | None = None
) -> None:
    """Refuse names that are missing among `columns`, and one name for two columns."""
    if lacking := [name for name in named if name not in columns]:
        remedies = dict.fromkeys(choices[name] for name in lacking if name in choices) if choices else ()
        raise DataError(f"{what} has no column {head(lacking)}; it has {head(columns, 20)}", *remedies)
    if twice := [name for name in named if list(columns).count(name) > 1]:
        raise DataError(f"{what} has several columns {head(twice)}: rename all but one")
    if len(set(named)) < len(named):
        raise DataError(f"{what}: one column cannot serve twice: {head(named)}")


def locate(listed: pd.Index, queries: pd.Index, are: str, of: int | None = None) -> IntArray:
    """Return the position of each query, (n,), and refuse those that are not listed (see `refuse_cases`)."""
    position = np.asarray(listed.get_indexer(queries))
    refuse_cases(queries[position < 0].unique(), are, of=of)
    return position


def separator_hint(columns: Sequence[str]) -> str:
    """Return a hint if another separator than a comma is in the names of columns."""
    separators = [repr(s) for s in (";", "\t", "|") if any(s in str(c) for c in columns)]
    return f": are its columns separated by {separators[0]}, not by commas?" if separators else ""


def as_text(value: Any) -> str | None:
    """Return a value of a table as a person writes it, or None if it is missing or has no characters."""
    if not isinstance(value, str) and np.ndim(value) == 0 and pd.isna(value):
        return None
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    if isinstance(value, pd.Timestamp):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    return str(value) or None
