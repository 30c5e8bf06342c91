"""Spark DataFrames, which their own session counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from .database import Hashing
from .quoting import Dialect


@dataclass(frozen=True, slots=True)
class Spark:
    """A Spark DataFrame to scan, which its own session counts.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    one_in : int
        Duplicates are looked for among one in `one_in` record ids of clusters that no label touches.
    """

    frame: Any
    one_in: int = 64

    @contextmanager
    def opened(self) -> Iterator[SparkTable]:
        """Open the DataFrame as a view of its session, which is dropped at the end."""
        database = SparkTable(self.frame, self.one_in)
        try:
            yield database
        finally:
            for view in database.views:
                self.frame.sparkSession.catalog.dropTempView(view)


class SparkTable(Hashing):
    """A view of a Spark session, and views of the ids that are looked up in it."""

    hash, widest = "xxhash64", "BIGINT"

    def __init__(self, frame: Any, one_in: int) -> None:
        self.frame, self.one_in = frame, one_in
        self.views: list[str] = []
        self.table = self.view(frame)

    def view(self, frame: Any) -> str:
        """Return a new view of a DataFrame."""
        self.views.append(f"erbayes_{uuid4().hex}")
        frame.createOrReplaceTempView(self.views[-1])
        return self.views[-1]

    def columns(self) -> Sequence[str]:
        return list(self.frame.columns)

    def quote(self, name: str) -> str:
        return Dialect.SPARK.quote(name)

    def kind(self, column: str) -> str:
        (type,) = [str(t) for name, t in self.frame.dtypes if name == column]
        return "integer" if type in {"tinyint", "smallint", "int", "bigint"} else type

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.frame.sparkSession.sql(sql).collect()]

    def listed(self, values: Sequence[Any]) -> list[str]:
        type = "string" if isinstance(values[0], str) else "bigint"
        rows = [(value,) for value in values]
        return [f"SELECT id FROM {self.view(self.frame.sparkSession.createDataFrame(rows, f'id {type}'))}"]
