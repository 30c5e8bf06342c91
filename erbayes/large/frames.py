"""Frames and Arrow tables in memory, and Arrow datasets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pandas as pd
import pyarrow as pa

from .._internal.errors import DataError
from .._internal.tables import hint_at_polars
from .duckdb import DuckTable, integers


def is_dataset(source: Any) -> bool:
    """Return whether a source is an Arrow dataset."""
    # by name, so that nothing is imported for sources of other kinds
    return type(source).__module__ == "pyarrow._dataset"


class DatasetTable(DuckTable):
    """An opened Arrow dataset, as a table of DuckDB."""

    def attach(self) -> None:
        self.table = f"dataset_{uuid4().hex}"
        self.connection.register(self.table, self.source)
        self.describe()


class FrameTable(DuckTable):
    """A frame or an Arrow table, as a table of DuckDB with only the columns in use."""

    def attach(self) -> None:
        self.source = _convert_source(self.source)
        frame = self.source
        names = frame.columns if isinstance(frame, pd.DataFrame) else frame.column_names
        self.first = [str(c) for c in names]

    def use(self, *columns: str) -> None:
        self.table = f"frame_{uuid4().hex}"
        self.connection.register(self.table, _convert_to_arrow(self.source, self.first, columns))
        self.describe(columns)


def _convert_source(source: Any) -> Any:
    """Return a source in memory as a DataFrame or an Arrow table."""
    if isinstance(source, pd.Series):
        return source.rename("cluster").rename_axis("record").reset_index()
    if isinstance(source, pd.DataFrame):
        return source
    if type(source).__name__ == "LazyFrame":
        raise DataError("a LazyFrame holds no rows yet: give the files that it reads, or its .collect()")
    if hasattr(source, "__arrow_c_stream__"):
        return pa.table(source)
    raise DataError(
        f"cannot scan a {type(source).__name__}: expected files, a frame, an Arrow dataset, a "
        f"DuckDB relation, a Spark DataFrame or RunSQL{hint_at_polars(source)}"
    )


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
