"""All kinds of sources, and how each is opened. A new kind is added here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .database import Database
from .duckdb import DuckDB, DuckTable
from .files import Files, FilesTable
from .frames import DatasetTable, FrameTable, is_dataset
from .ibis import is_ibis, read_through_ibis
from .runsql import RunSQL, opened_relation
from .spark import Spark
from .stored import DatabaseTable, StoredTable


def lies_elsewhere(prediction: Any) -> bool:
    """Return whether a prediction is to be scanned: files, a table or a dataset, not memberships."""
    stored = isinstance(prediction, str | Path | Files | DatabaseTable)
    return stored or has_own_database(prediction) or is_dataset(prediction)


def has_own_database(source: Any) -> bool:
    """Return whether a source is counted by a database of its own."""
    return isinstance(source, RunSQL | Spark) or _is_spark(source) or _is_relation(source) or is_ibis(source)


def _is_spark(source: Any) -> bool:
    return type(source).__module__.partition(".")[0] == "pyspark"


def _is_relation(source: Any) -> bool:
    return type(source).__module__.partition(".")[0] in {"duckdb", "_duckdb"} and hasattr(source, "columns")


@contextmanager
def opened(sources: Sequence[Any], database: DuckDB) -> Iterator[list[Database]]:
    """Open a source that has a database of its own, or several that `database` reads."""
    first, *_ = sources
    if not has_own_database(first):
        with opened_together(sources, database) as tables:
            yield [*tables]
    elif _is_relation(first):
        with opened_relation(first) as relation:
            yield [relation]
    else:
        with _with_database(first).opened() as table:
            yield [table]


def _with_database(source: Any) -> RunSQL | Spark:
    """Return a source that has a database of its own as one that can be opened."""
    if is_ibis(source):
        return read_through_ibis(source)
    opening: RunSQL | Spark = Spark(source) if _is_spark(source) else source
    return opening


@contextmanager
def opened_together(sources: Sequence[Any], database: DuckDB) -> Iterator[list[DuckTable]]:
    """Open several sources that `database` reads, as tables of one connection."""
    kinds = [_choose_table(source) for source in sources]
    files = [path for kind, source in zip(kinds, sources, strict=True) for path in kind.reads(source)]
    trusted = any(isinstance(source, DatabaseTable) and source.reads_files for source in sources)
    with database.connected(files, closed=not trusted) as connection:
        tables = [kind(connection, database, source) for kind, source in zip(kinds, sources, strict=True)]
        for table in tables:
            table.attach()
        yield tables


def _choose_table(source: Any) -> type[DuckTable]:
    if isinstance(source, str | Path | Files):
        return FilesTable
    if isinstance(source, DatabaseTable):
        return StoredTable
    return DatasetTable if is_dataset(source) else FrameTable
