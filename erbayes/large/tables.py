"""Tables that DuckDB reads: frames and Arrow tables in memory, Arrow datasets, and its own databases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pandas as pd
import pyarrow as pa

from .._internal.errors import DataError, head
from .._internal.files import holds
from .._internal.tables import hint_at_polars
from .duckdb import DuckTable, integers, quote_string
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
        # DuckDB looks beside the file that a link leads to
        paths = (source.path, Path(source.path).resolve())
        return [f"{path}{end}" for path in paths for end in ("", ".wal")]

    def attach(self) -> None:
        path = str(self.source.path)
        name = f"database {Path(path).resolve()}"  # a database can be attached only once
        if holds(Path(path), b"SQLite format 3"):
            raise DataError(
                f"{path} is a database of SQLite: scan it by RunSQL in Python, or export the table"
            )
        quoted = STANDARD.quote(name)
        self.rows(f"ATTACH IF NOT EXISTS {quote_string(path)} AS {quoted} (READ_ONLY, TYPE duckdb)")
        # the schema main comes first, as its tables need no name of a schema
        tables = self.rows(
            "SELECT table_schema, table_name FROM information_schema.tables "
            f"WHERE table_catalog = {quote_string(name)} "
            "ORDER BY table_schema <> 'main', table_schema, table_name"
        )
        named = self.source.table if isinstance(self.source.table, str) else ".".join(self.source.table)
        shown = [table if schema == "main" else f"{schema}.{table}" for schema, table in tables]
        matching = [
            place for place, table in zip(tables, shown, strict=True) if table.lower() == named.lower()
        ]
        if not matching:
            raise DataError(f"{path} has no table {named!r}; it has {head(shown, 20)}")
        self.table = STANDARD.qualify((name, *matching[0]))
        self.text = self.source.text
        self.describe()

    def id(self, column: str) -> str:
        # since DuckDB 2.0.1 a hash follows the collation, which would make one cluster of two
        exact = self.types[column] == "VARCHAR"
        return f'({self.quote(column)} COLLATE "binary")' if exact else super().id(column)


def is_dataset(source: Any) -> bool:
    """Return whether a source is an Arrow dataset."""
    # by name, so that nothing is imported for sources of other kinds
    return type(source).__module__ == "pyarrow._dataset"


class DatasetTable(DuckTable):
    """An opened Arrow dataset."""

    def attach(self) -> None:
        self.table = f"dataset_{uuid4().hex}"
        self.connection.register(self.table, self.source)
        self.describe()


class FrameTable(DuckTable):
    """A frame or an Arrow table, as a table with only the columns in use."""

    def attach(self) -> None:
        source = self.source
        if isinstance(source, pd.Series):
            source = source.rename("cluster").rename_axis("record").reset_index()
        elif type(source).__name__ == "LazyFrame":
            raise DataError("a LazyFrame holds no rows yet: give the files that it reads, or its .collect()")
        elif not isinstance(source, pd.DataFrame) and hasattr(source, "__arrow_c_stream__"):
            source = pa.table(source)
        elif not isinstance(source, pd.DataFrame):
            raise DataError(
                f"cannot scan a {type(source).__name__}: expected files, a frame, an Arrow dataset, a "
                f"DuckDB relation, a Spark DataFrame or RunSQL{hint_at_polars(source)}"
            )
        self.source = source
        names = source.columns if isinstance(source, pd.DataFrame) else source.column_names
        self.first = [str(c) for c in names]

    def use(self, *columns: str) -> None:
        self.table = f"frame_{uuid4().hex}"
        self.connection.register(self.table, _convert_to_arrow(self.source, self.first, columns))
        self.describe(columns)


def _convert_to_arrow(frame: Any, names: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """Return columns of a frame as an Arrow table."""
    arrays = {}
    for name in columns:
        if names.count(name) > 1:
            raise DataError(f"the prediction has {names.count(name)} columns {name!r}")
        column = frame.iloc[:, names.index(name)] if isinstance(frame, pd.DataFrame) else frame[name]
        try:
            arrays[name] = column if isinstance(column, pa.ChunkedArray) else _convert_column(column)
        except (pa.ArrowException, UnicodeEncodeError) as error:
            raise DataError(
                f"column {name!r} of the prediction must be all strings or all integers: {error}"
            ) from error
    return pa.table(arrays)


def _convert_column(column: pd.Series) -> pa.Array:
    try:
        return pa.array(column, from_pandas=True)
    except OverflowError:
        return integers(column)
