"""A prediction as a table of keys, and what a database looks up and counts in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._internal.errors import DataError, head
from ..units.clustering import Clustering
from ..units.frame import FrameFacts
from ..units.units import KnownTotals
from .choice import refuse_another_kind, refuse_kinds
from .database import Database, KeyColumn
from .frame import Limit, Limits, inside_frame
from .groups import GroupColumn
from .joint import SecondColumn


@dataclass(frozen=True, slots=True)
class Prediction:
    """A prediction inside its frame, as a table of keys."""

    database: Database
    record: str
    cluster: str
    release: str | None
    source: str
    frames: dict[Any, FrameFacts]
    table: str
    groups: GroupColumn | None = None
    seconds: tuple[SecondColumn, ...] = ()

    @classmethod
    def of(
        cls,
        database: Database,
        labels: Clustering,
        record: str,
        cluster: str,
        release: str | None = None,
        *,
        limit: Limit = None,
        groups: GroupColumn | None = None,
        seconds: tuple[SecondColumn, ...] = (),
    ) -> Prediction:
        refuse_kinds(database.kind(record), database.kind(cluster))
        refuse_another_kind(labels, database.kind(record))
        columns = "r, c" if release is None else "r, c, v"
        further: list[KeyColumn] = [*([] if groups is None else [groups]), *seconds]
        select = f"SELECT {database.key(record)} AS r, {database.key(cluster)} AS c"
        select += "" if release is None else f", {database.value(release)} AS v"
        select += "".join(column.select for column in further)
        columns = ", ".join([columns, *(x.column for x in further if x.select)])

        def kept(select: str) -> str:
            names = columns
            for x in further:
                if x.joined is not None:
                    select, names = x.join(select, names), f"{names}, {x.column}"
            return database.keep(select)

        if limit is None:
            table = kept(f"{select} FROM {database.table}")
            return cls(database, record, cluster, release, database.table, {}, table, groups, seconds)
        limits = Limits.of(database, labels, limit, record)
        flagged = database.keep(f"{select}, {limits.flags} FROM {database.table}")
        frames = limits.facts(database, flagged, "" if release is None else "v, ")
        # records without an id are in no frame; they stay, to be refused later
        inside = f"SELECT {columns} FROM {flagged} WHERE i = 1 OR r IS NULL"
        table, source = kept(inside), inside_frame(database, limits, record)
        database.forget(flagged)
        return cls(database, record, cluster, release, source, frames, table, groups, seconds)

    @property
    def by(self) -> str:
        return "" if self.release is None else "v, "

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """Rows of a statement, each with its release first, which is None if there are no releases."""
        for row in self.database.rows(sql):
            yield row if self.by else (None, *row)

    def common(self, releases: int) -> Prediction:
        """Return the prediction on the records that every release covers."""
        inside = f"SELECT r FROM {self.table} GROUP BY r HAVING COUNT(DISTINCT v) = {releases}"
        further = [] if self.groups is None else [self.groups.column]
        columns = ", ".join(["r, c, v", *further, *(second.column for second in self.seconds)])
        table = self.database.keep(f"SELECT {columns} FROM {self.table} WHERE r IN ({inside})")
        self.database.forget(self.table)
        return replace(self, table=table)

    def examples(self, column: str, condition: str) -> str:
        """Ids in rows that meet a condition, to show in a message."""
        id = self.database.id(column)
        (ends,) = self.database.rows(f"SELECT MIN({id}), MAX({id}) FROM {self.source} WHERE {condition}")
        shown = [end for end in dict.fromkeys(ends) if end is not None]
        return f", such as where {column!r} is {head(shown)}" if shown else ""

    def originals(self, conditions: Iterable[str]) -> list[Any]:
        """Record ids that meet one of the conditions."""
        id, table = self.database.id(self.record), self.source
        selects = [f"SELECT DISTINCT {id} FROM {table} WHERE {condition}" for condition in conditions]
        return sorted(record for sql in selects for (record,) in self.database.rows(sql))

    def clusters(self, ids: list[Any]) -> dict[Any, dict[int, Any]]:
        """Key of the cluster of each labelled record, by release and by position in the labels."""
        keys = self.database.keys(self.record, ids)
        position = {id: i for i, id in enumerate(ids)}
        clusters: dict[Any, dict[int, Any]] = defaultdict(dict)
        select = f"SELECT DISTINCT {self.by}r, c FROM {self.table}"
        for inside in self.database.listed(list(keys)):
            for v, r, c in self.rows(f"{select} WHERE r IN ({inside})"):
                # a database may compare text without case or trailing blanks
                if r not in keys:
                    raise DataError(
                        f"the database takes {r!r} for a labelled record, which has another id: it "
                        "must compare ids exactly, with case and blanks"
                    )
                clusters[v][position[keys[r]]] = c
        return clusters

    def groups_of(self, ids: list[Any], releases: Iterable[Any]) -> dict[Any, dict[Any, int]]:
        """Group of each labelled record that has one, by release and by record."""
        groups: dict[Any, dict[Any, int]] = {v: {} for v in releases}
        if self.groups is None:
            return groups
        joined = self.groups.joined  # has records that the prediction lacks, too
        by, table = (self.by, self.table) if joined is None else ("", joined)
        keys = self.database.keys(self.record, ids)
        for inside in self.database.listed(list(keys)):
            sql = f"SELECT DISTINCT {by}r, g FROM {table} WHERE g IS NOT NULL AND r IN ({inside})"
            for *v, r, g in self.database.rows(sql):
                for release in groups if joined is not None else v or [None]:
                    groups[release][keys[r]] = self.groups.codes[g]
        return groups

    def left_out(self, second: SecondColumn, rows: Mapping[Any, int]) -> dict[Any, int]:
        """Return how many records of each release, of some `rows`, are missing in a second clustering."""
        if second.joined is None:
            return dict.fromkeys(rows, 0)
        ((total, records),) = self.database.rows(f"SELECT COUNT(*), COUNT(r) FROM {second.joined}")
        if total > records:
            raise DataError(
                f"record ids of the second clustering {second.name!r}: {total - records:,} of {total:,} are "
                "missing: fill them in, or leave these rows out"
            )
        return {v: int(records) - number for v, number in rows.items()}

    def places(
        self, second: SecondColumn, ids: list[Any], clusters: Mapping[Any, Mapping[int, Any]]
    ) -> dict[Any, dict[Any, tuple[Any, Any]]]:
        """Keys of both clusters of each labelled record that the prediction has, by release and by record."""
        keys = self.database.keys(self.record, ids)
        select = f"SELECT DISTINCT {self.by}r, {second.column} FROM {self.table}"
        own = {
            (v, keys[r]): s
            for inside in self.database.listed(list(keys))
            for v, r, s in self.rows(f"{select} WHERE r IN ({inside})")
        }
        return {
            v: {ids[i]: (c, own[v, ids[i]]) for i, c in sorted(of_record.items())}
            for v, of_record in clusters.items()
        }

    def named(self, keys: Iterable[Any]) -> list[Any]:
        """Record ids of some keys."""
        key = self.database.key(self.record)
        return self.originals(f"{key} IN ({inside})" for inside in self.database.listed([*set(keys)]))

    def sizes(self, touched: list[Any]) -> dict[Any, dict[Any, int]]:
        """Return the number of records of each touched cluster, by release and key."""
        sizes: dict[Any, dict[Any, int]] = defaultdict(dict)
        select = f"SELECT {self.by}c, COUNT(*) FROM {self.table}"
        for inside in self.database.listed(touched) if touched else ():
            for v, c, size in self.rows(f"{select} WHERE c IN ({inside}) GROUP BY {self.by}c"):
                sizes[v][c] = int(size)
        return sizes

    def histogram(self, releases: Iterable[Any]) -> dict[Any, KnownTotals]:
        """Sizes of the predicted clusters of each release."""
        counts: dict[Any, list[tuple[float, float]]] = defaultdict(list)
        clusters = f"SELECT {self.by}c, COUNT(*) AS m FROM {self.table} GROUP BY {self.by}c"
        for v, size, count in self.rows(
            f"SELECT {self.by}m, COUNT(*) FROM ({clusters}) AS s GROUP BY {self.by}m"
        ):
            counts[v].append((float(size), float(count)))
        return {v: KnownTotals(*np.array(sorted(counts[v])).reshape(-1, 2).T) for v in releases}
