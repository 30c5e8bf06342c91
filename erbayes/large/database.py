"""The protocol of databases that can run a scan."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import pandas as pd

from ..units.clustering import no_cluster_ids


class KeyColumn:
    """A further column of the prediction's keys, as SQL `key` of its table or of a `joined` second one."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def key(self) -> str: ...
        @property
        def column(self) -> str: ...
        @property
        def joined(self) -> str | None: ...

    @property
    def select(self) -> str:
        """Column of SQL in a row of the prediction; "" if it is joined."""
        return "" if self.joined is not None else f", {self.key} AS {self.column}"

    def join(self, select: str, columns: str) -> str:
        """SQL of the prediction's keys, of which `select` has `columns`."""
        if self.joined is None:
            return select
        own = ", ".join(f"p.{column}" for column in columns.split(", "))
        second = f"(SELECT r, {self.column} FROM {self.joined}) AS b"
        return f"SELECT {own}, b.{self.column} FROM ({select}) AS p LEFT JOIN {second} ON p.r = b.r"


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

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows that a statement returns, or raise DataError if the database refuses it."""

    def fetched(self, sql: str, names: Sequence[str]) -> pd.DataFrame:
        """Return the rows of a statement as a DataFrame with columns of these names."""
        return pd.DataFrame(self.rows(sql), columns=list(names))

    def listed(self, values: Sequence[Any]) -> list[str]:
        """SQL of lists of values for IN (...), one list or several."""

    def use(self, *columns: str) -> None:
        """Prepare the columns that the scan reads: first that of records, then that of clusters."""
        return

    def id(self, column: str) -> str:
        """SQL of an id, as a string or a number."""
        return self.quote(column)

    def value(self, column: str) -> str:
        """SQL of a column of any type, whose strings are compared as those of ids are."""
        plain = self.kind(column) in {"string", "integer", None}
        return self.id(column) if plain else self.quote(column)

    def key_of(self, column: str, id: str) -> str:
        """SQL of the key that stands for an id of a column."""
        return id

    def key(self, column: str) -> str:
        """SQL of the key that stands for the id in a row."""
        return self.key_of(column, self.id(column))

    def keys(self, column: str, ids: Sequence[Any]) -> dict[Any, Any]:
        """Ids by their keys."""
        return {id: id for id in ids}

    def no_clusters(self, column: str) -> dict[Any, Any]:
        """Return the ids that stand for no cluster in a column, by their keys."""
        kind = self.kind(column)
        return {} if kind is None else self.keys(column, list(no_cluster_ids(kind)))

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
        """Drop a table that was kept, or a column of it."""
        return

    def share(self, key: str) -> str | None:
        """Condition that holds for a pseudo-random share of keys; None to take all keys."""
        return None

    def parts(self, key: str, rows: int) -> list[str]:
        """Conditions that split a table of so many rows by a key. Counting them in turn saves memory."""
        return ["1 = 1"]

    def digest(self, key: str) -> str:
        """SQL of a number that differs between sets of keys; NULL if there is none."""
        return "NULL"

    def alike(self, cluster: str, *values: str) -> str:
        """SQL that is equal for clusters with equal rows of distinct values, or that differs for each."""
        # without hashes no two clusters are known to be equal, which costs memory and no correctness
        return f"MIN({cluster})"


class Hashing(Database, Protocol):
    """A database whose 64-bit `hash` stands for string ids, after a cast of integers to the `widest` type."""

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
        # the hash of a pair may be a sum of two, which would not tell (g, n), (h, k) from (g, k), (h, n)
        return f"BIT_XOR({self.hash}({self.hash}({', '.join(values)})))"


ADVICE = re.compile(r"\s*\n\s*\n?(Possible (fixes|solutions|causes):|file ?=).*|\s*\nLINE \d+: .*", re.DOTALL)
"""What DuckDB adds to a message, which is settings of its readers that no caller has, and the statement."""


def legible(error: Exception) -> str:
    """Return the message of a database error, without control characters and advice for no caller."""
    said = ADVICE.sub("", str(error))
    # a message may quote data with control characters, which a terminal would obey
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in said)
