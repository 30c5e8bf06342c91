"""Predictions in files and databases, as sources of draws (see `erbayes.labels.source`).

Every database runs the same SQL of COUNT, GROUP BY, JOIN, IN and MD5. It returns the histogram of all
predicted cluster sizes, the records near the start of a random order, and the members of the drawn clusters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import md5
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import IntArray
from .._internal.errors import DataError
from ..units.units import KnownTotals
from .counted import count_rows, count_sizes, refuse_duplicates
from .database import Database
from .duckdb import DuckDB
from .prediction import FrameIds, Prediction, frame_sources
from .reading import Columns, use_columns
from .scanning import EMBEDDED, TWO_COLUMNS
from .sources import opened

DIGITS = 16
"""Hexadecimal digits of a key, as many of the 32 of MD5 as fit 64 bits. The first 4 are its bucket."""
WITHOUT_MD5 = (
    "draws need a database whose MD5 returns hexadecimal digits, of text in UTF-8, as PostgreSQL, DuckDB and "
    "Spark have it. SQLite has no MD5: define one by connection.create_function, or draw from a file of the "
    "table"
)


KEYED = ["record", "cluster", "size", "key", "value"]
"""Columns of records, which SQL calls r, c, m, k, v; v is 1 if there are no values."""


@dataclass(frozen=True, slots=True, eq=False)
class InDatabase:
    """A prediction in a database, as a source of draws, which `drawing` makes.

    `rows`: SQL of a table p of ids r and c and values v, and of sizes m if records are clusters; `sizes`: SQL
    of clusters c and sizes m.
    """

    prediction: Prediction
    rows: str
    sizes: str
    known: KnownTotals
    valued: bool = False
    by_cluster: bool = False
    _members: dict[tuple[Any, ...], pd.DataFrame] = field(default_factory=dict)

    def up_to(self, highest: Mapping[int, int], seed: int) -> pd.DataFrame:
        if not highest:
            return self._fetch_keyed("")
        # MD5 is compared as text of 32 digits, so that limits are filled up with the largest digit
        digits = {int(m): f"{int(key):0{DIGITS}x}".ljust(32, "f") for m, key in highest.items()}
        limits = ", ".join(f"({m}, '{key}')" for m, key in digits.items())
        # records are joined with their sizes, so first without those that no size lets through
        most = "1 = 1" if self.by_cluster else f"k <= '{max(digits.values())}'"
        return self._fetch_keyed(
            f"WITH h(m, k) AS (VALUES {limits}) SELECT a.r, a.c, a.m, a.k, a.v "
            f"FROM ({self._write_keyed(most, seed)}) AS a JOIN h ON a.m = h.m WHERE a.k <= h.k"
        )

    def in_buckets(self, buckets: IntArray, seed: int) -> pd.DataFrame:
        listed = ", ".join(f"'{int(bucket):04x}'" for bucket in buckets)
        inside = f"SUBSTR(k, 1, 4) IN ({listed})"
        return self._fetch_keyed(self._write_keyed(inside, seed) if listed else "")

    def counts(self, seed: int) -> pd.DataFrame:
        select = f"SELECT SUBSTR(k, 1, 4) AS b, m, v FROM ({self._write_keyed('1 = 1', seed)}) AS a"
        sql = f"SELECT b, m, v, COUNT(*) FROM ({select}) AS g GROUP BY b, m, v"
        table = self.prediction.database.fetched(sql, ["bucket", "size", "value", "records"])
        digits = table["bucket"].astype("category")
        numbers = np.array([int(bucket, 16) for bucket in digits.cat.categories], dtype=np.int64)
        table = table.assign(bucket=numbers[digits.cat.codes]).astype({"size": np.int64, "records": np.int64})
        return table if self.valued else table.drop(columns="value")

    def members(self, clusters: pd.Index) -> pd.DataFrame:
        key = tuple(sorted(clusters))
        if key not in self._members:  # of the last clusters, for which plans and `draw` ask both
            self._members.clear()
            self._members[key] = self._fetch_listed(KEYED[:2], "r, c", self.prediction.table, "c", key)
        return self._members[key]

    def look_up(self, records: pd.Index) -> pd.DataFrame:
        rows = f"(SELECT r, c FROM {self.rows}) AS p JOIN (SELECT c AS d, m FROM {self.sizes}) AS s ON c = d"
        return self._fetch_listed(KEYED[:3], "r, c, m", rows, "r", records.tolist())

    def _fetch_listed(
        self, names: list[str], columns: str, rows: str, key: str, ids: Sequence[Any]
    ) -> pd.DataFrame:
        """Return columns of SQL `rows` whose key is listed."""
        tables = [
            self.prediction.database.fetched(f"SELECT {columns} FROM {rows} WHERE {key} IN ({inside})", names)
            for inside in (self.prediction.database.listed(list(ids)) if len(ids) else ())
        ]
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=names)

    def of_clusters(self) -> InDatabase:
        rows = f"(SELECT c AS r, c, m, 1 AS v FROM {self.sizes}) AS p"
        return replace(self, rows=rows, by_cluster=True, valued=False)

    def _write_keyed(self, condition: str, seed: int) -> str:
        """SQL of the columns r, c, m, k, v of the rows whose key k meets a condition."""
        keyed = f"SELECT p.*, {_write_md5(self.prediction.database, f'{int(seed)}:')} AS k FROM {self.rows}"
        if self.by_cluster:
            return f"SELECT r, c, m, k, v FROM ({keyed}) AS p WHERE {condition}"
        near = f"SELECT * FROM ({keyed}) AS q WHERE {condition}"
        sizes = f"(SELECT c, m FROM {self.sizes}) AS s"
        return f"SELECT p.r, p.c, s.m, p.k, p.v FROM ({near}) AS p JOIN {sizes} ON p.c = s.c"

    def _fetch_keyed(self, sql: str) -> pd.DataFrame:
        """Return the records of a statement, none if there is no statement."""
        table = self.prediction.database.fetched(sql, KEYED) if sql else pd.DataFrame(columns=KEYED)
        keys = np.array([int(key[:DIGITS], 16) for key in table["key"]], dtype=np.uint64)
        table = table.assign(size=table["size"].astype(np.int64), key=keys)
        return table if self.valued else table.drop(columns="value")


@contextmanager
def drawing(
    source: Any,
    columns: Columns = TWO_COLUMNS,
    *,
    value: str | None = None,
    frame: Any = None,
    database: DuckDB = EMBEDDED,
) -> Iterator[InDatabase]:
    """Open a prediction that need not fit in memory, as a source of draws.

    Parameters
    ----------
    source, columns, frame, database
        As in `erbayes.large.scan`. Records outside the frame are not drawn, and do not count.
    value : str, optional
        Column with a value per record, such as a stratum or a chance.

    Raises
    ------
    DataError
        If the source cannot be read, if ids or values are missing, or if its database has no MD5.

    Examples
    --------
    >>> import pyarrow as pa
    >>> prediction = pa.table({"record": ["r1", "r2", "r3"], "cluster": ["a", "a", "b"], "year": [1, 1, 2]})
    >>> with drawing(prediction, Columns("record", "cluster")) as opened_prediction:
    ...     len(opened_prediction.members(pd.Index(["a"])))
    2
    """
    others = () if value is None else (value,)
    with opened([source, *frame_sources(frame, [source])], database) as (table, *listed):
        record, (cluster,) = use_columns(table, columns.record, [columns.cluster_of("")], others)
        # one letter that is not ASCII shows UTF-8 from other encodings
        text = "na\u00efve:"
        try:
            ((found,),) = table.rows(f"SELECT {_write_md5(table, text)} FROM (SELECT 1 AS r) AS t")
        except DataError as error:
            raise DataError(f"{WITHOUT_MD5} ({error.what})") from error
        if found != md5(f"{text}1".encode(), usedforsecurity=False).hexdigest():
            raise DataError(WITHOUT_MD5)
        further = {"v": "1" if value is None else table.quote(value)}
        prediction = Prediction.of(table, (record, cluster), further)
        for ids in listed:
            prediction = FrameIds.of(ids, columns.record).restrict(prediction)
        rows = count_rows(prediction, columns.any_id)
        if value is not None:
            ((present,),) = table.rows(f"SELECT COUNT(v) FROM {prediction.table}")
            if present < rows:
                raise DataError(
                    f"values of the prediction: {rows - present} of {rows} are missing in column {value!r}"
                )
        refuse_duplicates(prediction, rows)
        with table.counting(rows):
            sizes = table.keep(f"SELECT c, COUNT(*) AS m FROM {prediction.table} GROUP BY c")
        known = count_sizes(prediction, rows, columns.any_id, sizes=sizes)
        yield InDatabase(prediction, prediction.table, sizes, known, valued=value is not None)


def _write_md5(database: Database, before: str) -> str:
    """SQL of the MD5 of a text and the id r behind it."""
    dialect = database.dialect
    return f"MD5({dialect.joined.format(dialect.between.join((f"'{before}'", 'r')))})"
