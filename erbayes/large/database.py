"""The protocol of databases that can run a scan."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import pandas as pd

from .._internal.errors import DataError
from .._internal.known_columns import JOIN
from ..units.ids import list_null_ids
from ..units.lookup import same_kind

Row = tuple[Any, ...]


class ByRelease(NamedTuple):
    """What a statement on a table of keys needs to count by release, all empty without releases."""

    v: str = ""
    """The column, before others."""
    a: str = ""
    """The same of a table a in a join."""
    join: str = ""
    """The condition that tables a and b have one release."""
    names: tuple[str, ...] = ()
    """Its name in a result."""

    @property
    def grouped(self) -> str:
        """End of a statement that has one row per release."""
        return " GROUP BY v" if self.v else ""


BY_RELEASE = ByRelease("v, ", "a.v, ", " AND a.v = b.v", ("release",))


class Database(Protocol):
    """An opened table of a prediction, whose database runs SQL made of COUNT, GROUP BY and IN."""

    table: str
    by_folder: Collection[str] = ()
    headings: Mapping[str, Collection[str]] = MappingProxyType({})
    one_in: int = 1

    def columns(self) -> Sequence[str]:
        """Names of all columns; empty if the database does not list them."""

    def quote(self, name: str) -> str:
        """SQL of a column."""

    def kind(self, column: str) -> str | None:
        """'string', 'integer', or the name of another type; None if it is not known."""

    def rows(self, sql: str) -> list[Row]:
        """Return the rows that a statement returns, or raise DataError if the database refuses it."""

    def rows_with(self, select: str, key: str, keys: Iterable[Any], rest: str = "") -> Iterator[Row]:
        """Rows of `select` whose key is one of `keys`, with the `rest` of the statement."""
        values = list(keys)
        for inside in self.listed(values) if values else ():
            yield from self.rows(f"{select} WHERE {key} IN ({inside}){rest}")

    def fetched(self, sql: str, names: Sequence[str]) -> pd.DataFrame:
        """Return the rows of a statement as a DataFrame with columns of these names."""
        return pd.DataFrame(self.rows(sql), columns=list(names))

    def listed(self, values: Sequence[Any]) -> list[str]:
        """SQL of lists of one or more values for IN (...), one list or several."""

    def use(self, *columns: str) -> None:
        """Prepare the columns that the scan reads: first that of records, then that of clusters."""
        return

    def join_source(self, record: str, source: str) -> None:
        """Make one id of source and id of each record."""
        raise DataError(
            f"ids in {record!r} are in several sources of {source!r}: make a view with one id, such as "
            f"{source} || '{JOIN}' || {record}, and the cluster"
        )

    def id(self, column: str) -> str:
        """SQL of an id, as a string or a number."""
        return self.quote(column)

    def number(self, column: str) -> str:
        """SQL of a column as numbers, NULL where it has none."""
        return f"CAST({self.quote(column)} AS DOUBLE PRECISION)"

    def value(self, column: str) -> str:
        """SQL of a column of any type, whose strings are compared as those of ids are."""
        plain = self.kind(column) in {"string", "integer", None}
        return self.id(column) if plain else self.quote(column)

    def key_of(self, column: str, id: str) -> str:
        """SQL of the key of an id of a column."""
        return id

    def key(self, column: str) -> str:
        """SQL of the key of the id in a row."""
        return self.key_of(column, self.id(column))

    def keys(self, column: str, ids: Sequence[Any]) -> dict[Any, Any]:
        """Ids by their keys."""
        return {id: id for id in ids}

    def no_clusters(self, column: str) -> dict[Any, Any]:
        """Return the null ids of a column, those of no cluster, by their keys."""
        kind = self.kind(column)
        return {} if kind is None else self.keys(column, list(list_null_ids(kind)))

    def repeats_heading(self, columns: Mapping[str, str]) -> str | None:
        """Condition of rows that have the name of a column as its id, by keys of `columns`, or None."""
        conditions = []
        for key, column in columns.items():
            names = list(self.headings.get(column, ()))
            lists = self.listed(list(self.keys(column, names))) if names else []
            conditions += [f"{key} IN ({inside})" for inside in lists]
        return " OR ".join(conditions) or None

    def keep(self, select: str) -> str:
        """SQL of a table with the rows of `select`, computed once if that is cheaper."""
        return f"({select}) AS p"

    def forget(self, table: str, column: str | None = None) -> None:
        """Drop a stored table, or a column of it."""
        return

    def share(self, key: str) -> str | None:
        """Condition that selects a pseudo-random share of keys; None to take all keys."""
        return None

    def digest(self, key: str) -> str:
        """SQL of a number that differs between sets of keys; NULL if there is none."""
        return "NULL"

    def alike(self, cluster: str, *values: str) -> str:
        """SQL that is equal for clusters with equal rows of distinct values, or that differs for each."""
        # without hashes no two clusters are known to be equal, which costs memory and no correctness
        return f"MIN({cluster})"


class Hashing(Database, Protocol):
    """A database that groups string ids by their 64-bit `hash`, and integers of the `widest` type."""

    hash: str
    widest: str

    def key_of(self, column: str, id: str) -> str:
        # the hash of NULL may be a number, which would hide missing ids
        hashed = f"CASE WHEN {id} IS NOT NULL THEN {self.hash}({id}) END"
        return id if self.kind(column) == "integer" else hashed

    def keys(self, column: str, ids: Sequence[Any]) -> dict[Any, Any]:
        (inside,) = self.listed(ids)
        return dict(self.rows(f"SELECT {self.key_of(column, 'id')}, id FROM ({inside}) AS s"))

    def share(self, key: str) -> str | None:
        # by the hash of an id, so that all its duplicates are looked at or none of them
        return None if self.one_in == 1 else f"({self.hash}({key}) % {int(self.one_in)} = 0)"

    def digest(self, key: str) -> str:
        # the order of rows does not matter and nothing overflows; the hash may depend on the type of integers
        return f"BIT_XOR({self.hash}(CAST({key} AS {self.widest})))"

    def alike(self, cluster: str, *values: str) -> str:
        # the hash of a pair may be a sum of two, which would be equal for (g, n), (h, k) and (g, k), (h, n)
        return f"BIT_XOR({self.hash}({self.hash}({', '.join(values)})))"


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


ADVICE = re.compile(r"\s*\n\s*\n?(Possible (fixes|solutions|causes):|file ?=).*|\s*\nLINE \d+: .*", re.DOTALL)
"""What DuckDB adds to a message, which is settings of its readers that no caller has, and the statement."""


def legible(error: Exception) -> str:
    """Return the message of a database error, without control characters and advice for no caller."""
    said = ADVICE.sub("", str(error))
    # a message may quote data with control characters, which a terminal would obey
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in said)
