"""The protocol of databases that can count a prediction."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Any, Protocol

import pandas as pd

from .._internal.errors import DataError
from .._internal.known_columns import JOIN
from ..units.lookup import same_kind
from .quoting import STANDARD, Dialect

Row = tuple[Any, ...]


class Database(Protocol):
    """An opened table, whose database runs SQL made of COUNT, SUM, MIN, MAX, CASE, GROUP BY, JOIN and IN."""

    table: str
    dialect: Dialect = STANDARD
    by_folder: Collection[str] = ()
    headings: Mapping[str, Collection[str]] = MappingProxyType({})

    def columns(self) -> Sequence[str]:
        """Names of all columns; empty if the database does not list them."""

    def kind(self, column: str) -> str | None:
        """'string', 'integer', or the name of another type; None if it is not known."""

    def rows(self, sql: str) -> list[Row]:
        """Return the rows of a statement, or raise DataError if the database refuses it."""

    def listed(self, values: Sequence[Any]) -> list[str]:
        """SQL of lists of one or more values for IN (...), one list or several."""

    def quote(self, name: str) -> str:
        """SQL of a column."""
        return self.dialect.quote(name)

    def use(self, *columns: str) -> None:
        """Prepare the columns that are read: first that of records, then that of clusters."""
        return

    def id(self, column: str) -> str:
        """SQL of an id, as a string or a number."""
        return self.quote(column)

    def value(self, column: str) -> str:
        """SQL of a column of any type, whose strings are compared as those of ids are."""
        return self.id(column) if self.kind(column) in {"string", "integer", None} else self.quote(column)

    def number(self, column: str) -> str:
        """SQL of a column as numbers, NULL where it has none."""
        return f"CAST({self.quote(column)} AS {self.dialect.double})"

    def rows_in(self, select: str, key: str, values: Iterable[Any], rest: str = "") -> list[Row]:
        """Rows of `select` whose key is one of the values, with the `rest` of the statement."""
        ids = list(values)
        lists = self.listed(ids) if ids else []
        return [row for ids in lists for row in self.rows(f"{select} WHERE {key} IN ({ids}){rest}")]

    def fetched(self, sql: str, names: Sequence[str]) -> pd.DataFrame:
        """Return the rows of a statement as a DataFrame with columns of these names."""
        return pd.DataFrame(self.rows(sql), columns=list(names))

    def join_source(self, record: str, source: str) -> None:
        """Make one id of source and id of each record."""
        raise DataError(
            f"ids in {record!r} are in several sources of {source!r}: make a view with one id, such as "
            f"{source} || '{JOIN}' || {record}, and the cluster"
        )

    def keep(self, select: str) -> str:
        """SQL of a table p with the rows of `select`, which are computed once if that is possible."""
        return f"({select}) AS p"

    def parts(self, key: str, rows: int) -> list[str]:
        """Conditions that split so many rows by a key, so that each part is counted in bounded memory."""
        return ["1 = 1"]

    def counting(self, rows: int) -> AbstractContextManager[None]:
        """Prepare the database for statements that only count so many rows by one id."""
        return nullcontext()


def refuse_unlike(kind: str | None, other: str | None, what: str) -> None:
    """Refuse record ids of a second table whose type is another than that of the prediction's."""
    if kind is not None and other is not None:
        same_kind(kind, other, what)


def changed(how: str) -> DataError:
    """Return the error of counts that contradict each other: each statement reads a table anew."""
    return DataError(
        f"the prediction changed while it was scanned: {how}. Scan a copy or a version of it, or all in one "
        "transaction of isolation REPEATABLE READ"
    )


ADVICE = re.compile(
    r"\s*\n\s*\n?(Possible (fix(es)?|solutions?|causes?):|file ?=).*|\s*\nLINE \d+: .*",
    re.DOTALL | re.IGNORECASE,
)
"""What DuckDB adds to a message, which is settings of its readers that no caller has, and the statement."""


def legible(error: Exception) -> str:
    """Return the message of a database error, without control characters and advice for no caller."""
    said = ADVICE.sub("", str(error))
    # a message may quote data with control characters, which a terminal would obey
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in said)
