"""Tables of DuckDB's database files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .._internal.errors import DataError, head
from .._internal.files import holds
from .duckdb import DuckTable
from .quoting import STANDARD


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A table or view of a DuckDB database file.

    Parameters
    ----------
    table : str or tuple of str
        Name of the table, or the names of schema and table. They are quoted: any character may occur.
    text : bool
        True reads integers as text.
    reads_files : bool
        True lets a view of the database read files of its own. It then reads any file that you may read.

    Examples
    --------
    >>> DatabaseTable("releases.duckdb", ("main", "clusters"), text=True).table
    ('main', 'clusters')
    """

    path: str | Path
    table: str | tuple[str, ...]
    text: bool = False
    reads_files: bool = False


class StoredTable(DuckTable):
    """An opened `DatabaseTable`."""

    source: DatabaseTable

    @classmethod
    def reads(cls, source: DatabaseTable) -> list[str]:
        # DuckDB looks next to the file that a link leads to
        paths = (source.path, Path(source.path).resolve())
        return [f"{path}{end}" for path in paths for end in ("", ".wal")]

    def attach(self) -> None:
        path = str(self.source.path)
        name = f"database {Path(path).resolve()}"  # a database can be attached only once
        if holds(Path(path), b"SQLite format 3"):
            raise DataError(
                f"{path} is a database of SQLite: scan it by RunSQL in Python, or export the table"
            )
        escaped, catalog = (text.replace("'", "''") for text in (path, name))
        self.rows(f"ATTACH IF NOT EXISTS '{escaped}' AS {STANDARD.quote(name)} (READ_ONLY, TYPE duckdb)")
        # the schema main comes first, as its tables need no name of a schema
        tables = self.rows(
            "SELECT table_schema, table_name FROM information_schema.tables "
            f"WHERE table_catalog = '{catalog}' ORDER BY table_schema <> 'main', table_schema, table_name"
        )
        wanted = self.source.table if isinstance(self.source.table, str) else ".".join(self.source.table)
        shown = [table if schema == "main" else f"{schema}.{table}" for schema, table in tables]
        matching = [
            place for place, table in zip(tables, shown, strict=True) if table.lower() == wanted.lower()
        ]
        if not matching:
            raise DataError(f"{path} has no table {wanted!r}; it has {head(shown, 20)}")
        self.table = STANDARD.qualify((name, *matching[0]))
        self.text = self.source.text
        self.describe()
