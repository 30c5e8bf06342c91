"""Databases that can count a prediction, how each writes, and tables behind a function that runs SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral
from types import MappingProxyType
from typing import Any, ClassVar, Protocol
from uuid import uuid4

import numpy as np
import pandas as pd

from .._internal.arrays import is_table
from .._internal.errors import DataError
from .._internal.names import JOIN

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
        return self.join(*(written or ["''"]))

    def join(self, *parts: str) -> str:
        """SQL of texts in a row."""
        return self.joined.format(self.between.join(parts))


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
        """SQL of lists of values for IN (...), one list or several, none of no values."""

    def quote(self, name: str) -> str:
        """SQL of a column."""
        return self.dialect.quote(name)

    def look(self, *columns: str) -> list[str]:
        """Find the kinds of columns without reading all rows, and return those that can be read."""
        return [*columns]

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
        lists = self.listed(list(values))
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
    """Return the message of a database error without advice for no caller."""
    return ADVICE.sub("", str(error))


ALIKE = ["a", "A", "a ", "\xe1", "a-", "7", "07"]
"""Strings that a database may take for equal, if it ignores case, blanks, accents, signs or zeros."""


@dataclass(frozen=True, slots=True)
class RunSQL:
    """A table behind a function that runs one SQL statement: PostgreSQL, a warehouse.

    The statements only read. Ids are compared as they are, and duplicates are looked for among all ids.

    Parameters
    ----------
    run : callable, str -> rows
        Rows are sequences of values, as of a cursor's fetchall().
    name : str or tuple of str
        The table, or the names of catalog, schema and table. They are quoted: any character may occur.
    dialect : Dialect
        How the database wants names and strings written, such as `Dialect.SQLITE`.
    longest : int
        Bytes of the longest list of ids in a statement. Athena takes statements of 256 KB.
    names : sequence of str
        All columns of the table, if `record` and `cluster` are not named.

    Examples
    --------
    >>> import sqlite3
    >>> from erbayes.large import Columns, Dialect, scan
    >>> database = sqlite3.connect(":memory:")
    >>> _ = database.execute("CREATE TABLE p AS SELECT 1 AS record, 'a' AS cluster UNION SELECT 2, 'a'")
    >>> table = RunSQL(lambda sql: database.execute(sql).fetchall(), "p", Dialect.SQLITE)
    >>> scan(table, {1: "x"}, Columns("record", "cluster"))
    Units(1 units, 1 records, 1 pieces)
    """

    run: Callable[[str], Iterable[Sequence[Any]]]
    name: str | tuple[str, ...]
    dialect: Dialect = STANDARD
    longest: int = 200_000
    names: Sequence[str] = ()


class RunSQLTable(Database):
    """A table that a `RunSQL` reads; the types of its columns are those of the values that it returns."""

    def __init__(self, source: RunSQL) -> None:
        self.source, self.table = source, source.dialect.qualify(source.name)
        self.dialect = source.dialect
        self.kinds: dict[str, str | None] = {}

    def columns(self) -> Sequence[str]:
        return self.source.names

    def look(self, *columns: str) -> list[str]:
        for column in columns:
            # SQLite, MySQL and BigQuery take a quoted name that is no column for a text, but not after a dot
            id = f"q.{self.quote(column)}"
            first = self.rows(f"SELECT {id} FROM {self.table} AS q WHERE {id} IS NOT NULL LIMIT 1")
            self.kinds[column] = _recognise_kind(first[0][0]) if first else None
        return [*columns]

    def use(self, *columns: str) -> None:
        self.look(*columns)
        if plain := [column for column in columns if self.kinds[column] in {"string", "integer"}]:
            ends = ", ".join(f"MIN({self.quote(column)}), MAX({self.quote(column)})" for column in plain)
            (extremes,) = self.rows(f"SELECT {ends} FROM {self.table}")
            for column, least, most in zip(plain, extremes[::2], extremes[1::2], strict=True):
                self.kinds[column] = (
                    _recognise_kind(least) if _recognise_kind(least) == _recognise_kind(most) else "mixed"
                )
        for column in columns:
            if self.kind(column) == "string":
                self.refuse_blind(column)

    def refuse_blind(self, column: str) -> None:
        """Refuse a column whose collation takes different strings for equal. No row is read."""
        literals = enumerate(map(self.dialect.literal, ALIKE))
        strings = " UNION ALL ".join(f"SELECT {text}, {i}" for i, text in literals)
        all_texts = f"SELECT {self.id(column)} AS x, 0 AS k FROM {self.table} WHERE 1 = 0 UNION ALL {strings}"
        for first, last in self.rows(f"SELECT MIN(k), MAX(k) FROM ({all_texts}) AS s GROUP BY x"):
            if first != last:
                raise DataError(
                    f"column {column!r} of the prediction takes {ALIKE[first]!r} and {ALIKE[last]!r} for one "
                    "id: scan a view in which its collation is exact (binary), with case, blanks and accents"
                )

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        try:
            returned = self.source.run(sql)
            rows = list(returned) if _is_plain(returned) else [returned]
        except Exception as error:  # every driver has errors of its own
            raise DataError(f"the database refuses a statement of the scan: {legible(error)}") from error
        if strange := [row for row in rows[:1] if not _is_plain(row)]:
            raise DataError(
                "RunSQL: run must return rows that are sequences of values, as fetchall() of a plain cursor "
                f"does, not a {type(strange[0]).__name__}"
            )
        return [tuple(row) for row in rows]

    def kind(self, column: str) -> str | None:
        return "string" if self.kinds[column] == "UUID" else self.kinds[column]

    def id(self, column: str) -> str:
        quoted = self.quote(column)
        return f"CAST({quoted} AS VARCHAR(36))" if self.kinds[column] == "UUID" else quoted

    def listed(self, values: Sequence[Any]) -> list[str]:
        # several lists, because databases limit the length of a statement
        lists: list[list[str]] = [[]]
        size = 0
        for value in values:
            if not isinstance(value, str) and value != int(value):
                raise DataError(f"ids of the prediction must be all strings or all integers, not {value}")
            text = self.dialect.literal(value) if isinstance(value, str) else str(int(value))
            length = len(text.encode(errors="surrogatepass")) + len(", ")
            size += length
            if size > self.source.longest and lists[-1]:
                lists.append([])
                size = length
            lists[-1].append(text)
        return [", ".join(part) for part in lists if part]


def _is_plain(rows: Any) -> bool:
    """Return whether rows or values are a sequence; a mapping would give its keys in place of its values."""
    return isinstance(rows, Iterable) and not (isinstance(rows, Mapping | str | bytes) or is_table(rows))


def _recognise_kind(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, str):
        return "string"
    integer = isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
    if isinstance(value, Decimal):  # NUMERIC(20, 0) of PostgreSQL, NUMBER of Oracle and Snowflake
        integer = value.is_finite() and value.as_tuple().exponent == 0
    return "integer" if integer else type(value).__name__


@contextmanager
def opened_relation(relation: Any) -> Iterator[RunSQLTable]:
    """Open a relation of DuckDB as a view of its own connection, which is dropped at the end."""
    view = f"erbayes_{uuid4().hex}"
    try:
        yield RunSQLTable(
            RunSQL(lambda sql: relation.query(view, sql).fetchall(), view, names=list(relation.columns))
        )
    finally:
        relation.query(view, f"DROP VIEW IF EXISTS {view}")


@contextmanager
def opened_spark(frame: Any) -> Iterator[RunSQLTable]:
    """Open a DataFrame of Spark as a view of its own session, which is dropped at the end."""
    view, session = f"erbayes_{uuid4().hex}", frame.sparkSession
    frame.createOrReplaceTempView(view)
    try:
        yield RunSQLTable(
            RunSQL(lambda sql: session.sql(sql).collect(), view, Dialect.SPARK, names=frame.columns)
        )
    finally:
        session.catalog.dropTempView(view)
