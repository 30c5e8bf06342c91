"""Predictions outside of memory, as sources of draws (see `erbayes.labels.drawing.source`).

Every database runs the same SQL of COUNT, GROUP BY, JOIN, IN and MD5. It returns the histogram of all
predicted cluster sizes, the records near the start of a random order, and the members of the drawn clusters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import md5
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import IntArray
from .._internal.errors import DataError
from ..units.units import KnownTotals
from .choice import Columns, refuse_kinds, use_columns
from .database import Database, changed
from .duckdb import DuckDB
from .faults import refuse_duplicates, refuse_headings, refuse_missing, refuse_unclustered
from .frame import Listed, frame_sources, rows_inside
from .keys import Prediction
from .scanning import EMBEDDED, TWO_COLUMNS
from .sources import opened

DIGITS = 16
"""Hexadecimal digits of a key, as many of the 32 of MD5 as fit 64 bits. The first 4 are its bucket."""


@dataclass(frozen=True, slots=True, eq=False)
class InDatabase:
    """A prediction in a database, as a source of draws, which `drawing` makes."""

    prediction: Prediction
    rows: str
    sizes: str
    known: KnownTotals
    by_cluster: bool = False
    valued: bool = False
    _members: dict[tuple[Any, ...], pd.DataFrame] = field(default_factory=dict)

    @property
    def database(self) -> Database:
        return self.prediction.database

    @property
    def value(self) -> list[str]:
        return ["value"] if self.valued else []

    def up_to(self, highest: Mapping[int, int], seed: int) -> pd.DataFrame:
        """Return the records whose key is at most that of the size of their cluster."""
        # MD5 is compared as text of 32 digits, so that limits are filled up with the largest digit
        digits = {int(m): f"{int(key):0{DIGITS}x}".ljust(32, "f") for m, key in highest.items()}
        limits = ", ".join(f"({m}, '{key}')" for m, key in digits.items())
        if not limits:
            return self._make_empty("record", "cluster", "size", "key", *self.value)
        # records are joined with their sizes, so first without those that no size lets through
        most = "1 = 1" if self.by_cluster else f"k <= '{max(digits.values())}'"
        columns = "a.r, a.c, a.m, a.k" + ", a.v" * self.valued
        sql = (
            f"SELECT {columns} FROM ({self._write_sized(most, seed)}) AS a "
            f"JOIN (VALUES {limits}) AS h(m, k) ON a.m = h.m WHERE a.k <= h.k"
        )
        return self._fetch_records(sql)

    def in_buckets(self, buckets: IntArray, seed: int) -> pd.DataFrame:
        """Return the records in the buckets."""
        listed = ", ".join(f"'{int(bucket):04x}'" for bucket in buckets)
        if not listed:
            return self._make_empty("record", "cluster", "size", "key", *self.value)
        columns = "r, c, m, k" + ", v" * self.valued
        return self._fetch_records(
            f"SELECT {columns} FROM ({self._write_sized(f'SUBSTR(k, 1, 4) IN ({listed})', seed)}) AS a"
        )

    def counts(self, seed: int) -> pd.DataFrame:
        """Count records by bucket, size and value."""
        by = "b, m" + ", v" * self.valued
        columns = "SUBSTR(k, 1, 4) AS b, m" + ", v" * self.valued
        select = f"SELECT {columns} FROM ({self._write_sized('1 = 1', seed)}) AS a"
        sql = f"SELECT {by}, COUNT(*) FROM ({select}) AS g GROUP BY {by}"
        table = self.database.fetched(sql, ["bucket", "size", *self.value, "records"])
        digits = table["bucket"].astype("category")
        numbers = np.array([int(bucket, 16) for bucket in digits.cat.categories], dtype=np.int64)
        return table.assign(bucket=numbers[digits.cat.codes]).astype({"size": np.int64, "records": np.int64})

    def members(self, clusters: pd.Index) -> pd.DataFrame:
        """Return all records of predicted clusters, after looking for duplicates among them and others."""
        wanted = tuple(sorted(clusters))
        if wanted not in self._members:  # of the last clusters, for which plans and `draw` ask both
            self._members.clear()
            self._members[wanted] = self._read_members(list(wanted))
        return self._members[wanted]

    def _read_members(self, clusters: list[Any]) -> pd.DataFrame:
        if not clusters:
            return self._make_empty("record", "cluster")
        database, prediction = self.database, self.prediction
        record, cluster = (database.id(column) for column in (prediction.record, prediction.cluster))
        select = f"SELECT {record} AS r, {cluster} AS c FROM {prediction.source}"
        parts, within = [], []
        for inside in database.listed(clusters):
            kept = database.keep(f"SELECT r, c FROM ({select}) AS p WHERE c IN ({inside})")
            parts.append(database.fetched(f"SELECT r, c FROM {kept}", ["record", "cluster"]))
            within.append(f"r IN (SELECT {database.key_of(prediction.record, 'r')} FROM {kept})")
        table = pd.concat(parts, ignore_index=True)
        refuse_duplicates(prediction, within, f"{len(clusters)} drawn clusters")
        return table

    def look_up(self, records: pd.Index) -> pd.DataFrame:
        """Return those of these records that the prediction has."""
        names = ["record", "cluster", "size"]
        if not len(records):
            return self._make_empty(*names)
        found = [
            self.database.fetched(
                f"SELECT a.r, a.c, s.m FROM (SELECT r, c FROM {self.rows} WHERE r IN ({inside})) AS a "
                f"JOIN (SELECT c, m FROM {self.sizes}) AS s ON a.c = s.c",
                names,
            )
            for inside in self.database.listed(records.tolist())
        ]
        return pd.concat(found, ignore_index=True)

    def of_clusters(self) -> InDatabase:
        """Return the source whose records are the predicted clusters."""
        rows = f"(SELECT c AS r, c, m FROM {self.sizes}) AS t"
        return replace(self, rows=rows, by_cluster=True, valued=False)

    def _write_sized(self, condition: str, seed: int) -> str:
        """SQL of the rows whose key k meets a condition, with their sizes m."""
        keyed = f"SELECT t.*, MD5(CONCAT('{int(seed)}:', r)) AS k FROM {self.rows}"
        if self.by_cluster:
            return f"SELECT * FROM ({keyed}) AS p WHERE {condition}"
        columns = "p.r, p.c, p.k, s.m" + ", p.v" * self.valued
        near = f"SELECT * FROM ({keyed}) AS q WHERE {condition}"
        return f"SELECT {columns} FROM ({near}) AS p JOIN (SELECT c, m FROM {self.sizes}) AS s ON p.c = s.c"

    def _fetch_records(self, sql: str) -> pd.DataFrame:
        table = self.database.fetched(sql, ["record", "cluster", "size", "key", *self.value])
        keys = np.array([int(key[:DIGITS], 16) for key in table["key"]], dtype=np.uint64)
        return table.assign(size=table["size"].astype(np.int64), key=keys)

    def _make_empty(self, *names: str) -> pd.DataFrame:
        return pd.DataFrame({name: [] for name in names})


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
        chosen = use_columns(table, columns.record, columns.cluster_of(""), others)
        refuse_kinds(*(table.kind(column) for column in chosen))
        _refuse_other_md5(table)
        rows = table.table
        for ids in listed:
            inside = Listed.of(ids, columns.record).inside(table, chosen[0])
            rows = rows_inside(table, inside, chosen[0])
        yield _count_sizes(table, chosen, rows, value, columns.any_id)


def _count_sizes(
    table: Database, chosen: tuple[str, str], rows: str, value: str | None, any_id: bool
) -> InDatabase:
    """Count the clusters of SQL `rows` by their size, after refusing ids and values that are missing."""
    keys, ids = ([of(column) for column in chosen] for of in (table.key, table.id))
    keyed = f"(SELECT {keys[0]} AS r, {keys[1]} AS c FROM {rows}) AS keyed"
    prediction = Prediction(table, *chosen, None, rows, {}, keyed)
    refuse_headings(prediction)
    quoted = [table.quote(column) for column in (*chosen, *([] if value is None else [value]))]
    counts = ", ".join(f"COUNT({column})" for column in quoted)
    ((total, *present),) = table.rows(f"SELECT COUNT(*), {counts} FROM {rows}")
    refuse_missing(prediction, int(total), int(present[0]), int(present[1]))
    if not any_id:
        refuse_unclustered(prediction)
    if present[-1] < total:
        raise DataError(
            f"values of the prediction: {total - present[-1]} of {total} are missing in column {value!r}"
        )
    sizes = table.keep(f"SELECT {ids[1]} AS c, COUNT(*) AS m FROM {rows} GROUP BY {ids[1]}")
    sorted_counts = sorted(table.rows(f"SELECT m, COUNT(*) FROM {sizes} GROUP BY m"))
    # copied, so that sums add in the order in which they do in memory
    known = KnownTotals(*np.array(sorted_counts, dtype=float).reshape(-1, 2).T.copy())
    if int(total) != (now := int(known.size @ known.count)):
        raise changed(f"{int(total):,} records were counted, and then {now:,}")
    values = "" if value is None else f", {quoted[-1]} AS v"
    records = f"(SELECT {ids[0]} AS r, {ids[1]} AS c{values} FROM {rows}) AS t"
    return InDatabase(prediction, records, sizes, known, valued=value is not None)


def _refuse_other_md5(database: Database) -> None:
    """Refuse a database whose MD5 is not that of hexadecimal digits of UTF-8 text."""
    # one letter that is not ASCII distinguishes UTF-8 from other encodings
    text = "na\u00efve"
    sql = f"SELECT MD5(CONCAT('{text}:', r)) FROM (SELECT 1 AS r) AS t"
    ((found,),) = database.rows(sql)
    if found != md5(f"{text}:1".encode(), usedforsecurity=False).hexdigest():
        raise DataError("draws need a database whose MD5 returns hexadecimal digits, of text in UTF-8")
