"""A prediction as a table of keys, and what a database looks up and counts in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._internal.errors import DataError, head
from ..units.clustering import Clustering
from ..units.frame import FrameFacts
from ..units.units import KnownTotals
from .choice import refuse_another_kind, refuse_kinds
from .database import BY_RELEASE, ByRelease, Database, Row
from .frame import Listed, rows_inside
from .groups import GroupColumn


@dataclass(frozen=True, slots=True)
class Prediction:
    """A prediction inside its frame, as a table of keys r, c and, of releases, v, which may have `names`."""

    database: Database
    record: str
    cluster: str
    release: str | None
    source: str
    frames: dict[Any, FrameFacts]
    table: str
    groups: GroupColumn | None = None
    names: Mapping[Any, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        database: Database,
        labels: Clustering,
        columns: tuple[str, str, str | None],
        *,
        frame: Listed | None = None,
        groups: GroupColumn | None = None,
        names: Mapping[Any, str] | None = None,
    ) -> Prediction:
        """Make the table of keys of records in a frame, from `columns` of record, cluster and release."""
        record, cluster, release = columns
        refuse_kinds(database.kind(record), database.kind(cluster))
        refuse_another_kind(labels, database.kind(record))
        keys = {"r": database.key(record), "c": database.key(cluster)}
        if release is not None:
            keys["v"] = database.value(release)
        if groups is not None and groups.joined is None:
            keys[groups.column] = groups.key
        select = f"SELECT {', '.join(f'{sql} AS {column}' for column, sql in keys.items())}"
        by, names = ByRelease() if release is None else BY_RELEASE, names or {}
        source, frames = database.table, {}
        if frame is None:
            table = database.keep(_join_groups(f"{select} FROM {source}", list(keys), groups))
        else:
            inside = frame.inside(database, record)
            frame.refuse_outside(database, labels, record)
            flagged = database.keep(f"{select}, CASE WHEN {inside} THEN 1 END AS i FROM {source}")
            frames = frame.facts(database, flagged, by, names)
            # records without an id are in no frame; they stay, to be refused later
            rows = f"SELECT {', '.join(keys)} FROM {flagged} WHERE i = 1 OR r IS NULL"
            table = database.keep(_join_groups(rows, list(keys), groups))
            database.forget(flagged)
            source = rows_inside(database, inside, record)
        return cls(database, record, cluster, release, source, frames, table, groups, names)

    @property
    def by(self) -> ByRelease:
        """SQL by which statements count each release."""
        return ByRelease() if self.release is None else BY_RELEASE

    def rows(self, sql: str) -> Iterator[Row]:
        """Rows of a statement, each with its release first, which is None if there are no releases."""
        return self._with_release(self.database.rows(sql))

    def rows_with(self, select: str, key: str, keys: Iterable[Any], rest: str = "") -> Iterator[Row]:
        """Rows of `Database.rows_with`, each with its release first, as in `rows`."""
        return self._with_release(self.database.rows_with(select, key, keys, rest))

    def _with_release(self, rows: Iterable[Row]) -> Iterator[Row]:
        several = self.release is not None
        for row in rows:
            yield row if several else (None, *row)

    def called(self, release: Any) -> str | None:
        """Text that names a release in messages, None if there are no releases."""
        return None if release is None else repr(self.names.get(release, release))

    def common(self, releases: int) -> Prediction:
        """Return the prediction on the records that every release covers."""
        inside = f"SELECT r FROM {self.table} GROUP BY r HAVING COUNT(DISTINCT v) = {releases}"
        groups = [] if self.groups is None else [self.groups.column]
        columns = ", ".join(["r, c, v", *groups])
        table = self.database.keep(f"SELECT {columns} FROM {self.table} WHERE r IN ({inside})")
        self.database.forget(self.table)
        return replace(self, table=table)

    def examples(self, column: str, condition: str) -> str:
        """Ids in rows that meet a condition, to show in a message."""
        id = self.database.id(column)
        (ends,) = self.database.rows(f"SELECT MIN({id}), MAX({id}) FROM {self.source} WHERE {condition}")
        shown = [end for end in dict.fromkeys(ends) if end is not None]
        return f", such as where {column!r} is {head(shown)}" if shown else ""

    def clusters(self, ids: list[Any]) -> dict[Any, dict[int, Any]]:
        """Key of the cluster of each labelled record, by release and by position in the labels."""
        keys = self.database.keys(self.record, ids)
        position = {id: i for i, id in enumerate(ids)}
        clusters: dict[Any, dict[int, Any]] = defaultdict(dict)
        for v, r, c in self.rows_with(f"SELECT DISTINCT {self.by.v}r, c FROM {self.table}", "r", keys):
            # a database may compare text without case or trailing blanks
            if r not in keys:
                raise DataError(
                    f"the database takes {r!r} for a labelled record, which has another id: it must compare "
                    "ids exactly, with case and blanks"
                )
            clusters[v][position[keys[r]]] = c
        return clusters

    def groups_of(self, ids: list[Any], releases: Iterable[Any]) -> dict[Any, dict[Any, int]]:
        """Group of each labelled record that has one, by release and by record."""
        groups: dict[Any, dict[Any, int]] = {v: {} for v in releases}
        if self.groups is None:
            return groups
        keys, joined = self.database.keys(self.record, ids), self.groups.joined
        if joined is not None:  # which has the records of all releases, and others
            found = self.database.rows_with(f"SELECT DISTINCT r, g FROM {joined}", "r", keys)
            rows = [(v, r, g) for r, g in found for v in groups]
        else:
            rows = [*self.rows_with(f"SELECT DISTINCT {self.by.v}r, g FROM {self.table}", "r", keys)]
        for v, r, g in rows:
            if g is not None:
                groups[v][keys[r]] = self.groups.codes[g]
        return groups

    def named(self, keys: Iterable[Any]) -> list[Any]:
        """Record ids of some keys."""
        return self.ids_with(self.database.key(self.record), {*keys})

    def ids_with(self, key: str, keys: Iterable[Any]) -> list[Any]:
        """Record ids, sorted, of rows whose SQL `key` is one of `keys`."""
        select = f"SELECT DISTINCT {self.database.id(self.record)} FROM {self.source}"
        return sorted(record for (record,) in self.database.rows_with(select, key, keys))

    def count_keys(self, column: str, keys: Iterable[Any]) -> dict[Any, dict[Any, int]]:
        """Return the number of records of each of some keys in a column, by release and key."""
        counts: dict[Any, dict[Any, int]] = defaultdict(dict)
        columns = f"{self.by.v}{column}"
        select = f"SELECT {columns}, COUNT(*) FROM {self.table}"
        for v, key, count in self.rows_with(select, column, keys, f" GROUP BY {columns}"):
            counts[v][key] = int(count)
        return counts

    def histogram(self, releases: Iterable[Any]) -> dict[Any, KnownTotals]:
        """Sizes of the predicted clusters of each release."""
        counts: dict[Any, list[tuple[float, float]]] = defaultdict(list)
        clusters = f"SELECT {self.by.v}c, COUNT(*) AS m FROM {self.table} GROUP BY {self.by.v}c"
        sql = f"SELECT {self.by.v}m, COUNT(*) FROM ({clusters}) AS s GROUP BY {self.by.v}m"
        for v, size, count in self.rows(sql):
            counts[v].append((float(size), float(count)))
        return {v: KnownTotals(*np.array(sorted(counts[v])).reshape(-1, 2).T) for v in releases}


def _join_groups(rows: str, names: list[str], groups: GroupColumn | None) -> str:
    """SQL of a prediction's keys, of which `rows` has those of these names, with groups of a second table."""
    if groups is None or groups.joined is None:
        return rows
    columns = ", ".join([*(f"p.{name}" for name in names), f"b.{groups.column}"])
    second = f"SELECT r, {groups.column} FROM {groups.joined}"
    return f"SELECT {columns} FROM ({rows}) AS p LEFT JOIN ({second}) AS b ON p.r = b.r"
