"""Predictions that lie elsewhere, as sources of draws (see `erbayes.sampling.source`).

Every database runs the same SQL of COUNT, GROUP BY, JOIN, IN and MD5. It returns the histogram of all predicted
cluster sizes, the records near the start of a random order, and the members of the drawn clusters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import md5
from typing import Any

import numpy as np
import pandas as pd

from ..arrays import IntArray
from ..errors import DataError, head
from ..units import KnownTotals
from .database import Database
from .duckdb import DuckDB
from .frames import FrameTable
from .scan import EMBEDDED, Prediction, chosen_columns, refuse_kinds
from .sources import opened

DIGITS = 16
"""Hexadecimal digits of a key, of which the first 4 are its bucket."""


@dataclass(frozen=True, slots=True, eq=False)
class InDatabase:
    """A prediction in a database, as a source of draws. `drawing` makes it.

    Attributes
    ----------
    prediction : Prediction
        The database, and the columns of records and of clusters.
    rows : str
        SQL of a table of ids: r of the record, c of its cluster, v of its value if there are values.
    sizes : str
        SQL of a table with c and m, the number of records of each cluster.
    known : KnownTotals
        Sizes of all predicted clusters.
    by_cluster : bool
        True if `rows` is `sizes`, with one row per cluster.
    valued : bool
        True if records have values.
    """

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
        limits = ", ".join(f"({int(m)}, '{int(key):0{DIGITS}x}')" for m, key in highest.items())
        if not limits:
            return self._empty("record", "cluster", "size", "key", *self.value)
        most = f"k <= '{max(highest.values()):0{DIGITS}x}'"
        columns = "a.r, a.c, a.m, a.k" + ", a.v" * self.valued
        sql = (
            f"SELECT {columns} FROM ({self._sized(most, seed)}) AS a "
            f"JOIN (VALUES {limits}) AS h(m, k) ON a.m = h.m WHERE a.k <= h.k"
        )
        return self._records(sql)

    def in_buckets(self, buckets: IntArray, seed: int) -> pd.DataFrame:
        """Return the records in the buckets."""
        listed = ", ".join(f"'{int(bucket):04x}'" for bucket in buckets)
        if not listed:
            return self._empty("record", "cluster", "size", "key", *self.value)
        columns = "r, c, m, k" + ", v" * self.valued
        return self._records(
            f"SELECT {columns} FROM ({self._sized(f'SUBSTR(k, 1, 4) IN ({listed})', seed)}) AS a"
        )

    def counts(self, seed: int) -> pd.DataFrame:
        """Count records by bucket, size and value."""
        by = "b, m" + ", v" * self.valued
        columns = "SUBSTR(k, 1, 4) AS b, m" + ", v" * self.valued
        select = f"SELECT {columns} FROM ({self._sized('1 = 1', seed)}) AS a"
        sql = f"SELECT {by}, COUNT(*) FROM ({select}) AS g GROUP BY {by}"
        table = self.database.frame(sql, ["bucket", "size", *self.value, "records"])
        digits = table["bucket"].astype("category")
        numbers = np.array([int(bucket, 16) for bucket in digits.cat.categories], dtype=np.int64)
        return table.assign(bucket=numbers[digits.cat.codes]).astype({"size": np.int64, "records": np.int64})

    def members(self, clusters: pd.Index) -> pd.DataFrame:
        """Return all records of predicted clusters.

        Raises
        ------
        DataError
            A record of them that the prediction lists twice, other duplicates among a share of all records, or
            a prediction that changes while it is read.
        """
        wanted = tuple(sorted(clusters))
        if wanted not in self._members:  # of the last clusters, for which plans and `draw` ask both
            self._members.clear()
            self._members[wanted] = self._read_members(list(wanted))
        return self._members[wanted]

    def _read_members(self, clusters: list[Any]) -> pd.DataFrame:
        if not clusters:
            return self._empty("record", "cluster")
        database, prediction = self.database, self.prediction
        record, cluster = (database.id(column) for column in (prediction.record, prediction.cluster))
        select = f"SELECT {record} AS r, {cluster} AS c FROM {prediction.source}"
        parts, within = [], []
        for inside in database.listed(clusters):
            kept = database.keep(f"SELECT r, c FROM ({select}) AS p WHERE c IN ({inside})")
            parts.append(database.frame(f"SELECT r, c FROM {kept}", ["record", "cluster"]))
            key = _key_of_id(database, prediction.record)
            within.append(f"r IN (SELECT {key} FROM {kept})")
        table = pd.concat(parts, ignore_index=True)
        prediction.refuse_duplicates(within, f"{len(clusters)} drawn clusters")
        return table

    def look_up(self, records: pd.Index) -> pd.DataFrame:
        """Return those of these records that the prediction has."""
        names = ["record", "cluster", "size"]
        if not len(records):
            return self._empty(*names)
        found = [
            self.database.frame(
                f"SELECT a.r, a.c, s.m FROM (SELECT r, c FROM {self.rows} WHERE r IN ({inside})) AS a "
                f"JOIN {self.sizes} AS s ON a.c = s.c",
                names,
            )
            for inside in self.database.listed(records.tolist())
        ]
        return pd.concat(found, ignore_index=True)

    def of_clusters(self) -> InDatabase:
        """Return the source whose records are the predicted clusters."""
        rows = f"(SELECT c AS r, c, m FROM {self.sizes}) AS clusters"
        return replace(self, rows=rows, by_cluster=True, valued=False)

    def _sized(self, condition: str, seed: int) -> str:
        """SQL of the rows whose key k meets a condition, with their sizes m."""
        key = f"SUBSTR(MD5(CONCAT('{int(seed)}:', r)), 1, {DIGITS}) AS k"
        keyed = f"SELECT rows_.*, {key} FROM {self.rows}"
        if self.by_cluster:
            return f"SELECT * FROM ({keyed}) AS p WHERE {condition}"
        columns = "p.r, p.c, p.k, s.m" + ", p.v" * self.valued
        near = f"SELECT * FROM ({keyed}) AS q WHERE {condition}"
        return f"SELECT {columns} FROM ({near}) AS p JOIN {self.sizes} AS s ON p.c = s.c"

    def _records(self, sql: str) -> pd.DataFrame:
        table = self.database.frame(sql, ["record", "cluster", "size", "key", *self.value])
        keys = np.array([int(key, 16) for key in table["key"]], dtype=np.uint64)
        return table.assign(size=table["size"].astype(np.int64), key=keys)

    def _empty(self, *names: str) -> pd.DataFrame:
        return pd.DataFrame({name: [] for name in names})
