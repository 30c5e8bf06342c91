"""Spark DataFrames, which their own session counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa

from .._internal.errors import DataError, head
from .database import Database
from .quoting import Dialect


@dataclass(frozen=True, slots=True)
class Spark:
    """A Spark DataFrame to scan, which its own session counts.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    """

    frame: Any

    @contextmanager
    def opened(self) -> Iterator[SparkTable]:
        """Open the DataFrame as a view of its session, which is dropped at the end."""
        database = SparkTable(self.frame)
        try:
            yield database
        finally:
            for view in database.views:
                self.frame.sparkSession.catalog.dropTempView(view)


class SparkTable(Database):
    """A view of a Spark session, and views of the ids that are looked up in it."""

    dialect = Dialect.SPARK

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.views: list[str] = []
        self.table = self.view(frame)

    def view(self, frame: Any) -> str:
        """Return a new view of a DataFrame."""
        self.views.append(f"erbayes_{uuid4().hex}")
        frame.createOrReplaceTempView(self.views[-1])
        return self.views[-1]

    def columns(self) -> Sequence[str]:
        return list(self.frame.columns)

    def kind(self, column: str) -> str:
        (type,) = [str(t) for name, t in self.frame.dtypes if name == column]
        return "integer" if type in {"tinyint", "smallint", "int", "bigint"} else type

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.frame.sparkSession.sql(sql).collect()]

    def listed(self, values: Sequence[Any]) -> list[str]:
        try:
            ids = pa.array(values, pa.string() if isinstance(values[0], str) else pa.int64())
        except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
            raise DataError(f"ids such as {head(values)} cannot be looked for: {error}") from error
        # Arrow needs no Python worker, unlike a list
        return [f"SELECT id FROM {self.view(self.frame.sparkSession.createDataFrame(pa.table({'id': ids})))}"]

    def digest(self, key: str, kind: str | None) -> str:
        return f"BIT_XOR(xxhash64({f'CAST({key} AS BIGINT)' if kind == 'integer' else key}))"
