"""All kinds of sources, and how each is opened. A new kind is added here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from .._internal.errors import DataError
from ..units.clustering import Memberships
from .database import Database, RunSQL, opened_relation, opened_spark, read_through_ibis
from .duckdb import DuckDB, DuckTable
from .files import DatabaseTable, DatasetTable, Files, FilesTable, FrameTable, StoredTable, is_dataset


class OfSpark(Protocol):
    """A DataFrame of Spark."""

    @property
    def sparkSession(self) -> Any: ...


Source = Memberships | str | Path | Files | DatabaseTable | RunSQL | OfSpark
"""A prediction in memory or elsewhere, as `scan` reads it; tables of Ibis and relations are Arrow streams."""


def lies_elsewhere(prediction: Any) -> bool:
    """Return whether a prediction is to be scanned: files, a table or a dataset, not memberships."""
    stored = isinstance(prediction, str | Path | Files | DatabaseTable)
    return stored or has_own_database(prediction) or is_dataset(prediction)


def has_own_database(source: Any) -> bool:
    """Return whether a source is counted by a database of its own."""
    return isinstance(source, RunSQL) or _is_of(source, "pyspark", "ibis") or _is_relation(source)


def _is_of(source: Any, *packages: str) -> bool:
    # by name, so that nothing is imported for sources of other kinds
    return type(source).__module__.partition(".")[0] in packages


def _is_relation(source: Any) -> bool:
    return _is_of(source, "duckdb", "_duckdb") and hasattr(source, "columns")


def identify(source: Any) -> Any:
    """Return what is equal for sources that are one: files and tables by what they name."""
    return source if isinstance(source, str | Path | Files | DatabaseTable) else id(source)


@contextmanager
def opened(sources: Sequence[Any], database: DuckDB) -> Iterator[list[Database]]:
    """Open sources of one database, or several that `database` reads."""
    if not any(map(has_own_database, sources)):
        kinds = [_choose_table(source) for source in sources]
        files = [path for kind, source in zip(kinds, sources, strict=True) for path in kind.reads(source)]
        trusted = any(isinstance(source, DatabaseTable) and source.reads_files for source in sources)
        with database.connected(files, closed=not trusted) as connection:
            tables = [kind(connection, database, one) for kind, one in zip(kinds, sources, strict=True)]
            for table in tables:
                table.attach()
            yield [*tables]
        return
    with_database = [read_through_ibis(one) if _is_of(one, "ibis") else one for one in sources]
    # what is equal for tables of one database; None if it is not known
    places = [
        one.run if isinstance(one, RunSQL) else one.sparkSession if _is_of(one, "pyspark") else None
        for one in with_database
    ]
    if any(place is None or place != places[0] for place in places[1:]):
        raise DataError(
            "predictions in databases of their own are counted together in one database alone: give views "
            "of one connection, as DataFrames of one Spark session or RunSQL of one function"
        )
    with ExitStack() as stack:
        yield [stack.enter_context(_open(source)) for source in with_database]


def _open(source: Any) -> AbstractContextManager[Database]:
    if _is_of(source, "pyspark"):
        return opened_spark(source)
    return opened_relation(source) if _is_relation(source) else source.opened()


def _choose_table(source: Any) -> type[DuckTable]:
    if isinstance(source, str | Path | Files):
        return FilesTable
    if isinstance(source, DatabaseTable):
        return StoredTable
    return DatasetTable if is_dataset(source) else FrameTable
