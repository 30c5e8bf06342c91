"""The frame of a scan: a condition in SQL, and counts of what it leaves of a prediction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from .._internal.errors import DataError
from .._internal.known_columns import choose_record
from ..units.clustering import Clustering
from ..units.frame import FrameFacts, frame_ids, refuse_outside
from .database import ByRelease, Database, refuse_unlike
from .sources import has_own_database, lies_elsewhere


@dataclass(frozen=True, slots=True)
class Listed:
    """Record ids of a frame: SQL of a table of distinct keys, r, their `Database.kind` and their number."""

    keys: str
    kind: str | None
    count: int

    @classmethod
    def of(cls, database: Database, record: str | None) -> Listed:
        """Take the ids from the column `record` of a table, or from its first."""
        columns = database.columns()
        column = choose_record(columns, record)
        database.use(column)
        id = database.quote(column)
        ((rows, present),) = database.rows(f"SELECT COUNT(*), COUNT({id}) FROM {database.table}")
        if rows > present:
            raise DataError(f"record ids of the frame: {rows - present} of {rows} are missing")
        if not rows:
            raise DataError("the frame holds no record")
        keys = database.keep(f"SELECT DISTINCT {database.key(column)} AS r FROM {database.table}")
        ((count,),) = database.rows(f"SELECT COUNT(*) FROM {keys}")
        return cls(keys, database.kind(column), int(count))

    def refuse_outside(self, database: Database, labels: Clustering, record: str) -> None:
        """Refuse labelled records that are not in the frame."""
        keys = database.keys(record, labels.records.tolist())
        there = database.rows_with(f"SELECT r FROM {self.keys}", "r", keys)
        refuse_outside(labels.records, ~labels.records.isin([keys[r] for (r,) in there]))

    def inside(self, database: Database, record: str) -> str:
        """SQL condition that a record of a prediction is in the frame, which has ids of the same type."""
        refuse_unlike(database.kind(record), self.kind, "frame")
        return f"{database.key(record)} IN (SELECT r FROM {self.keys})"

    def facts(
        self, database: Database, flagged: str, by: ByRelease, names: Mapping[Any, str]
    ) -> dict[Any, FrameFacts]:
        """Count what the frame leaves of each release v, from a table of c and i, which is NULL outside."""
        v, facts = by.v, {}
        clusters = f"SELECT {v}c, COUNT(*) AS m, COUNT(i) AS f FROM {flagged} GROUP BY {v}c"
        sums = "SUM(f), SUM(m), SUM(f * (f - 1)), SUM(f * (m - 1))"
        for row in database.rows(f"SELECT {v}{sums} FROM ({clusters}) AS s{by.grouped}"):
            release, f, m, inside, links = row if v else (None, *row)
            if not f:
                whose = "the prediction" if release is None else repr(names.get(release, release))
                raise DataError(f"no record of {whose} is in the frame")
            facts[release] = FrameFacts.counted(f, m, inside, links, self.count)
        return facts


def frame_sources(frame: Any, sources: Iterable[Any]) -> list[Any]:
    """Sources to open next to the predictions: the ids of the frame, if there is one."""
    if frame is None:
        return []
    if any(map(has_own_database, [frame, *sources])):
        raise DataError(
            "a table with a database of its own takes no list of ids as a frame: make a view of the frame's "
            "records the prediction"
        )
    return [frame if lies_elsewhere(frame) else pd.DataFrame({"record": frame_ids(frame)})]


def rows_inside(database: Database, inside: str, record: str) -> str:
    """SQL of the rows of a prediction `inside` a frame, and those without an id, to be refused later."""
    return f"(SELECT * FROM {database.table} WHERE {inside} OR {database.quote(record)} IS NULL) AS inside"
