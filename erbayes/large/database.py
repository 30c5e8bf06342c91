"""The protocol of databases that can count a prediction, and how each writes names and strings."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import pandas as pd

from .._internal.errors import DataError
from .._internal.known_columns import JOIN
from ..units.lookup import same_kind

CODED = r"[^\w ./#<>()-]"
"""Characters that are coded, since some dialect or driver reads them as a quote, an escape or a parameter."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a database wants names and strings written, safe from its rules for quotes, escapes and parameters.

    `Dialect()` is for PostgreSQL, DuckDB, Snowflake, Redshift, Trino and Athena, `Dialect.SQLITE` for SQLite
    and ClickHouse, `Dialect.SPARK` for Spark, Databricks and BigQuery, and `Dialect.MYSQL` for MySQL and
    MariaDB, where || may mean "or". For other databases, make one or override its methods.

    Parameters
    ----------
    mark : str
        The quote of names.
    code : str
        A character by its code, which replaces {}.
    joined : str
        SQL of a string, whose parts replace {}.
    between : str
        What separates the parts.
    double, text : str
        The types of numbers of 64 bits and of strings.

    Examples
    --------
    >>> print(Dialect().quote('a"; DROP TABLE b'), Dialect.SPARK.quote("my table"))
    "a""; DROP TABLE b" `my table`
    >>> print(Dialect().literal("it's"), Dialect.MYSQL.literal("it's"), sep="; ")
    'it' || CHR(39) || 's'; CONCAT('it', CHAR(39 USING utf8mb4), 's')
    """

    mark: str = '"'
    code: str = "CHR({})"
    joined: str = "{}"
    between: str = " || "
    double: str = "DOUBLE PRECISION"
    text: str = "VARCHAR"

    SQLITE: ClassVar[Dialect]
    SPARK: ClassVar[Dialect]
    MYSQL: ClassVar[Dialect]

    def quote(self, name: str) -> str:
        """Quote an identifier."""
        return f"{self.mark}{name.replace(self.mark, 2 * self.mark)}{self.mark}"

    def qualify(self, table: str | tuple[str, ...]) -> str:
        """Quote the name of a table, or the names of catalog, schema and table."""
        return ".".join(map(self.quote, (table,) if isinstance(table, str) else table))

    def literal(self, text: str) -> str:
        """Write a string. What no dialect gives a meaning inside quotes stays, and other ASCII is coded."""
        parts = enumerate(re.split(f"({CODED})", text, flags=re.ASCII))
        written = [self.code.format(ord(p)) if i % 2 and p.isascii() else f"'{p}'" for i, p in parts if p]
        return self.joined.format(self.between.join(written or ["''"]))


STANDARD = Dialect()
Dialect.SQLITE = Dialect(code="CHAR({})")
Dialect.SPARK = Dialect(mark="`", double="DOUBLE", text="STRING")
Dialect.MYSQL = Dialect("`", "CHAR({} USING utf8mb4)", "CONCAT({})", ", ", "DOUBLE", "CHAR")


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

    def drop(self, kept: str) -> None:
        """Let go of a table that `keep` made."""
        return

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
