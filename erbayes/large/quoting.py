"""Names and strings written as SQL, in the dialects of databases."""

from __future__ import annotations

import re
from collections.abc import Callable

CODED = r"[^\w ./#<>()-]"
"""Characters that are coded, since some dialect or driver reads them as a quote, an escape or a parameter."""


def double_quoted(name: str) -> str:
    """Quote an identifier of standard SQL.

    Examples
    --------
    >>> print(double_quoted('a"; DROP TABLE b'))
    "a""; DROP TABLE b"
    """
    return '"' + name.replace('"', '""') + '"'


def backquoted(name: str) -> str:
    """Quote an identifier for Spark, BigQuery or MySQL.

    Examples
    --------
    >>> print(backquoted("my table"))
    `my table`
    """
    return "`" + name.replace("`", "``") + "`"


def qualified(table: str | tuple[str, ...], quote: Callable[[str], str]) -> str:
    """Quote the name of a table, or the names of catalog, schema and table."""
    return ".".join(map(quote, (table,) if isinstance(table, str) else table))


def chr_literal(text: str) -> str:
    """Write a string as SQL, safe from every dialect's rules for quotes, escapes and parameters.

    It is for PostgreSQL, DuckDB, Spark, Databricks, BigQuery, Snowflake, Redshift, Trino and Athena.

    Examples
    --------
    >>> print(chr_literal("it's"))
    'it' || CHR(39) || 's'
    """
    return " || ".join(_split_string(text, "CHR({})"))


def char_literal(text: str) -> str:
    """Write a string as SQL for SQLite and ClickHouse, as `chr_literal` does for others.

    Examples
    --------
    >>> print(char_literal("it's"))
    'it' || CHAR(39) || 's'
    """
    return " || ".join(_split_string(text, "CHAR({})"))


def concat_literal(text: str) -> str:
    """Write a string as SQL for MySQL and MariaDB, where || may mean "or".

    Examples
    --------
    >>> print(concat_literal("it's"))
    CONCAT('it', CHAR(39 USING utf8mb4), 's')
    """
    return f"CONCAT({', '.join(_split_string(text, 'CHAR({} USING utf8mb4)'))})"


def _split_string(text: str, code: str) -> list[str]:
    """Parts of a string: what no dialect gives a meaning inside quotes stays there, other ASCII is coded."""
    parts = re.split(f"({CODED})", text, flags=re.ASCII)
    written = [code.format(ord(p)) if i % 2 and p.isascii() else f"'{p}'" for i, p in enumerate(parts) if p]
    return written or ["''"]
