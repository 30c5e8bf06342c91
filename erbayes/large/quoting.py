"""Names and strings written as SQL, in the dialects of databases."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

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
