"""What names and values say of columns: pairs for both records of a link, numbers, joined sources."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from .._internal import known_columns
from .._internal.errors import DataError, head
from .._internal.known_columns import NAMES, find_known, plain
from .._internal.tables import INDEX
from .ids import ids

SIDES = (*(("_l", "_r"), ("_left", "_right"), ("_1", "_2"), ("_a", "_b"), ("_x", "_y"), ("1", "2")),)
"""Ends of the names of two columns that have one attribute of both records."""
FRONTS = (
    *(("left_", "right_"), ("left", "right"), ("l_", "r_"), ("ltable_", "rtable_"), ("source", "target")),
    ("from", "to"),
)
"""Beginnings of such names."""
TWO_TABLES = ("ltable", "source")
"""Beginnings of names that say that there are two tables, each of which may count its records from 0."""


@dataclass(frozen=True, slots=True)
class ColumnPair:
    """Two columns with one attribute, `stem`, of both records; `of_two`: their names say two tables."""

    left: Any
    right: Any
    stem: str
    of_two: bool


def pair_columns(columns: Sequence[Any]) -> list[ColumnPair]:
    """Return the pairs of columns whose names differ by a mark of the left and the right record."""
    by_name, pairs = {str(c).lower(): c for c in columns}, dict[tuple[Any, Any], ColumnPair]()

    def add(name: str, stem: str, mate: str, of_two: bool = False) -> None:
        if mate in by_name:
            both = by_name[name], by_name[mate]
            pairs.setdefault(both, ColumnPair(*both, plain(stem), of_two))

    for name in by_name:
        for one, other in SIDES:
            if name.endswith(one):
                add(name, stem := name.removesuffix(one), stem + other)
        for one, other in FRONTS:
            if name.startswith(one):
                add(name, stem := name.removeprefix(one), other + stem, name.startswith(TWO_TABLES))
    return list(pairs.values())


def list_candidates(columns: Sequence[Any], score: Any = None) -> list[Any]:
    """Return the columns of a table of links that a reading may need; all if names do not show the ends."""
    pairs = pair_columns(columns)
    sources, ends = (
        {c for p in pairs if p.stem in NAMES[meaning] for c in (p.left, p.right)}
        for meaning in ("source", "record")
    )
    scores = [score] if score is not None else find_known(columns, "score")
    return [c for c in columns if c in sources | ends | set(scores)] if ends and scores else list(columns)


def join_source(source: pd.Series, column: pd.Series) -> pd.Series:
    """Return source and id as one text, (rows,), and refuse missing ones."""
    named = [(source, f"column {source.name!r} of sources"), (column, f"column {column.name!r}")]
    texts, ends = (ids(x, what).astype(str).to_series(index=column.index) for x, what in named)
    return pd.Series(known_columns.join_ids(texts, ends), name=column.name)


def read_numbers(column: pd.Series) -> pd.Series | None:
    """Return a column as numbers, also with decimal commas, NaN if missing; None if it has others."""
    types = pd.api.types
    if types.is_numeric_dtype(column):
        return None if types.is_complex_dtype(column) else column
    if not (types.is_object_dtype(column) or types.is_string_dtype(column)):
        return None  # times, for instance, whose numbers are of any unit
    texts = column.dropna().astype(str)
    if texts.str.contains(",").any() and texts.str.fullmatch(r"-?\d+(,\d+)?").all():
        # 1,234 may be thousands
        if texts.str.fullmatch(r"-?[1-9]\d{0,2},\d{3}|-?\d+").all():
            return None
        column = column.str.replace(",", ".")
    numbers = pd.to_numeric(column.astype(str).where(column.notna()), errors="coerce")
    return numbers if len(texts) and numbers.notna().sum() == len(texts) else None


def find_readable(table: pd.DataFrame) -> list[Any]:
    """Return the columns that can have ids or scores: no index that pandas wrote, and no lists."""
    if not table.columns.is_unique:
        raise DataError(f"several columns are called {head(table.columns[table.columns.duplicated()])}")
    return [c for c in table.columns if not INDEX.fullmatch(str(c)) and has_plain_values(table[c])]


def has_plain_values(column: pd.Series) -> bool:
    """Return whether values of a column can be compared with each other."""
    mixed = column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "mixed"
    return not mixed or all(isinstance(value, Hashable) for value in column)
