"""A prediction as SQL, on the records of a frame or of others, and with columns of second tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import pandas as pd

from .._internal.errors import DataError, head
from .._internal.known_columns import choose_record
from ..units.clustering import Clustering
from ..units.frame import FrameFacts, frame_ids, refuse_outside
from ..units.ids import kind
from ..units.lookup import same_kind
from .database import Database, refuse_unlike
from .sources import has_own_database, lies_elsewhere

NO_FURTHER: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Prediction:
    """A prediction: SQL of a `table` p of ids r and c of each record, and of further columns.

    `record`, `cluster`: names of the columns of ids in the table of the `database`.
    """

    database: Database
    record: str
    cluster: str
    table: str

    @classmethod
    def of(
        cls, database: Database, columns: tuple[str, str], further: Mapping[str, str] = NO_FURTHER
    ) -> Prediction:
        """Select ids, and SQL of further columns by their names."""
        record, cluster = columns
        selected = {"r": database.id(record), "c": database.id(cluster), **further}
        listed = ", ".join(f"{sql} AS {name}" for name, sql in selected.items())
        return cls(database, record, cluster, f"(SELECT {listed} FROM {database.table}) AS p")

    def within(self, *lists: str) -> Prediction:
        """Return the prediction on the records whose ids are in all SQL lists."""
        if not lists:
            return self
        inside = " AND ".join(f"r IN ({ids})" for ids in lists)
        return replace(self, table=f"(SELECT * FROM {self.table} WHERE {inside}) AS p")

    def with_columns(self, names: Iterable[str], second: str) -> Prediction:
        """Return the prediction with columns of a second table, SQL of record ids r and these names."""
        listed = ", ".join(["p.r", "p.c", *(f"b.{name}" for name in names)])
        rows = f"SELECT {listed} FROM {self.table} LEFT JOIN ({second}) AS b ON p.r = b.r"
        return replace(self, table=self.database.keep(rows))

    def rows_in(self, select: str, column: str, ids: Iterable[Any], rest: str = "") -> list[tuple[Any, ...]]:
        """Rows of `select` of p whose id in a column is listed, with plain integers as integers."""
        rows = self.database.rows_in(f"SELECT {select} FROM {self.table}", column, ids, rest)
        return [(plain_id(row[0]), *row[1:]) for row in rows]

    def examples(self, column: str, condition: str) -> str:
        """Return ids in rows that meet a condition, to show in a message."""
        key = "r" if column == self.record else "c"
        (ends,) = self.database.rows(f"SELECT MIN({key}), MAX({key}) FROM {self.table} WHERE {condition}")
        shown = [end for end in dict.fromkeys(ends) if end is not None]
        return f", such as where {column!r} is {head(shown)}" if shown else ""

    def refuse_another_kind(self, labels: Clustering) -> None:
        """Refuse labelled records whose ids are of another type than those of the prediction."""
        labelled = kind(labels.records)
        same_kind(self.database.kind(self.record) or labelled, labelled)


def plain_id(id: Any) -> Any:
    """Return an id as text or as an integer, since drivers return some integers as decimals."""
    if isinstance(id, str):
        return id
    if id != int(id):
        raise DataError(f"ids of the prediction must be all strings or all integers, not {id}")
    return int(id)


@dataclass(frozen=True, slots=True)
class FrameIds:
    """Record ids of a frame: SQL of distinct ids r in a table, their `Database.kind` and their number."""

    ids: str
    kind: str | None
    count: int

    @classmethod
    def of(cls, database: Database, record: str | None) -> FrameIds:
        """Take the ids from the column `record` of a table, or from its first."""
        column = choose_record(database.columns(), record)
        database.use(column)
        ids = f"(SELECT {database.id(column)} AS r FROM {database.table}) AS p"
        ((rows, present, count),) = database.rows(f"SELECT COUNT(*), COUNT(r), COUNT(DISTINCT r) FROM {ids}")
        if rows > present:
            raise DataError(f"record ids of the frame: {rows - present} of {rows} are missing")
        if not rows:
            raise DataError("the frame holds no record")
        return cls(f"SELECT r FROM {ids}", database.kind(column), int(count))

    def restrict(self, prediction: Prediction) -> Prediction:
        """Return the prediction on the records of the frame."""
        refuse_unlike(prediction.database.kind(prediction.record), self.kind, "frame")
        return prediction.within(self.ids)

    def refuse_outside(self, prediction: Prediction, labels: Clustering) -> None:
        """Refuse labelled records that are not in the frame, and ids of other types."""
        database = prediction.database
        refuse_unlike(database.kind(prediction.record), self.kind, "frame")
        inside = database.rows_in(f"SELECT r FROM ({self.ids}) AS f", "r", labels.records.tolist())
        refuse_outside(labels.records, ~labels.records.isin([r for (r,) in inside]))

    def count_inside(self, prediction: Prediction, name: str) -> FrameFacts:
        """Count what the frame leaves of a prediction, which messages call by its name."""
        flagged = (
            f"SELECT p.c AS c, f.r AS i FROM {prediction.table} "
            f"LEFT JOIN (SELECT DISTINCT r FROM ({self.ids}) AS d) AS f ON p.r = f.r"
        )
        clusters = f"SELECT c, COUNT(*) AS m, COUNT(i) AS f FROM ({flagged}) AS a GROUP BY c"
        sums = f"SELECT SUM(f), SUM(m), SUM(f * (f - 1)), SUM(f * (m - 1)) FROM ({clusters}) AS s"
        ((inside, total, links_inside, links),) = prediction.database.rows(sums)
        if not inside:
            raise DataError(f"no record of {repr(name) if name else 'the prediction'} is in the frame")
        return FrameFacts.counted(inside, total, links_inside, links, self.count)


def frame_sources(frame: Any, predictions: Iterable[Any]) -> list[Any]:
    """Sources to open next to the predictions: the ids of the frame, if there is one."""
    if frame is None:
        return []
    if any(map(has_own_database, [frame, *predictions])):
        raise DataError(
            "a table with a database of its own takes no list of ids as a frame: make a view of the frame's "
            "records the prediction"
        )
    return [frame if lies_elsewhere(frame) else pd.DataFrame({"record": frame_ids(frame)})]
