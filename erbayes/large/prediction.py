"""A prediction as SQL: on the records of a frame or of others, with columns of groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import refuse_names
from .._internal.errors import DataError, head, need
from ..units.clustering import Clustering, FrameFacts, frame_ids, refuse_outside
from ..units.grouping import Grouping, Of, PooledGroups, Variable, discrete, piece_values
from ..units.ids import kind, same_kind
from ..units.reading import Near
from ..units.units import Units
from .database import Database, changed
from .reading import LOOKED_UP, find_scanned, plain_id
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

    def find(self, near: Near | None) -> pd.Index | None:
        """Return the records among the ids of columns of another file."""
        if near is None:
            return None
        known = self.database.kind(self.record)
        some = [key for key in near.keys.values() if known in {None, kind(key)}]
        found = {id for key in some for (id,) in self.rows_in("DISTINCT r", "r", key.tolist())}
        records: pd.Index = pd.Index([*found], name=self.record)
        return records

    def near(self) -> Near:
        """Return some records, by which those of a second table are found."""
        ids = self.database.rows(f"SELECT r FROM {self.table} WHERE r IS NOT NULL LIMIT {LOOKED_UP}")
        return Near({self.record: pd.Index([plain_id(id) for (id,) in ids])})


@dataclass(frozen=True, slots=True)
class FrameIds:
    """Record ids of a frame: SQL of ids r in a table, their column, `Database.kind` and distinct number."""

    ids: str
    column: str
    kind: str | None
    count: int

    @classmethod
    def of(cls, database: Database, record: str | None, labels: pd.Index | None = None) -> FrameIds:
        """Take the ids from the column `record` of a table, or from that which has labelled records."""
        near = None if labels is None else Near({labels.name: labels})
        column = find_scanned(database, record, near, "frame")
        database.use(column)
        ids = f"(SELECT {database.id(column)} AS r FROM {database.table}) AS p"
        ((rows, present, count),) = database.rows(f"SELECT COUNT(*), COUNT(r), COUNT(DISTINCT r) FROM {ids}")
        if rows > present:
            raise DataError(f"record ids of the frame: {rows - present} of {rows} are missing")
        if not rows:
            raise DataError("the frame holds no record")
        return cls(f"SELECT r FROM {ids}", column, database.kind(column), int(count))

    def restrict(self, prediction: Prediction) -> Prediction:
        """Return the prediction on the records of the frame."""
        same_kind(prediction.database.kind(prediction.record), self.kind, "frame")
        return prediction.within(self.ids)

    def refuse_outside(self, prediction: Prediction, labels: Clustering) -> None:
        """Refuse labelled records that are not in the frame, and ids of other types."""
        database = prediction.database
        same_kind(database.kind(prediction.record), self.kind, "frame")
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


LARGEST = 10_000
"""Most values of a group variable that a scan reads. One with more is rather an id."""


@dataclass(frozen=True, slots=True)
class GroupSource:
    """The group of each record, in a second table.

    Parameters
    ----------
    source : as in `scan`, without a database of its own
        A table of records. Their column is called as in the prediction, or has ids of it.
    group : str
        The column of groups.

    Examples
    --------
    >>> from erbayes.large import scan
    >>> people = pd.DataFrame({"record": [1, 2, 3], "country": ["FR", "US", "US"]})
    >>> units = scan(pd.Series(["a", "a", "b"], [1, 2, 3]), {1: "x"}, groups=GroupSource(people, "country"))
    >>> [str(value) for value in units.groupings[0].values]
    ['FR', 'US']
    """

    source: Any
    group: str

    def __post_init__(self) -> None:
        need(self.group, str, "the column of groups is named by a text, GroupSource(source, group)")
        if has_own_database(self.source):
            raise DataError(
                "the table of attributes has a database of its own: give files, a table of a DuckDB database "
                "or a frame, or make a view of the prediction that has the column of groups"
            )


@dataclass(frozen=True, slots=True)
class GroupColumn:
    """A column with the group of each record: its distinct values, sorted, (G,), and the position of each.

    `key`: SQL of the column, or None of a second table, whose records r and groups g are `second`.
    """

    database: Database
    name: str
    key: str
    second: str | None
    values: pd.Index
    codes: dict[Any, int]

    @classmethod
    def of(cls, database: Database, name: str) -> GroupColumn:
        """Take a column of the prediction, after `Database.use`."""
        key = database.value(name)
        distinct = f"SELECT DISTINCT {key} AS g FROM {database.table} WHERE {key} IS NOT NULL"
        # one more than allowed shows that there are too many, without reading all
        values = [g for (g,) in database.rows(f"SELECT g FROM ({distinct}) AS s LIMIT {LARGEST + 1}")]
        if len(values) > LARGEST:
            raise DataError(
                f"{name!r} has more than {LARGEST:,} values: a group variable has few; join values to classes"
            )
        codes, groups = pd.factorize(discrete(pd.Series(values), name), sort=True)
        try:
            return cls(database, name, key, None, pd.Index(groups), dict(zip(values, codes, strict=True)))
        except TypeError as error:
            raise DataError(
                f"{name!r} has lists or structs, which are no groups: make texts of them"
            ) from error

    @classmethod
    def of_second(cls, attributes: Database, name: str, record: str | None, near: Near) -> GroupColumn:
        """Take a column of a second table of records, of which some are near."""
        refuse_names([name], attributes.columns(), "the table of attributes")
        named = None if record == name else record
        ids = find_scanned(attributes, named, near, "table of attributes", (name,))
        attributes.use(ids, name)
        same_kind(kind(near.first), attributes.kind(ids), "table of attributes")
        column = cls.of(attributes, name)
        rows = f"SELECT {attributes.id(ids)} AS r, {column.key} AS g FROM {attributes.table}"
        # MIN and MAX differ if a record has several values
        distinct = attributes.keep(
            f"SELECT r, MIN(g) AS g, MAX(g) AS h FROM ({rows}) AS p WHERE g IS NOT NULL GROUP BY r"
        )
        counts = "COUNT(CASE WHEN r IS NULL THEN 1 END), COUNT(CASE WHEN g <> h THEN 1 END)"
        ((unnamed, several),) = attributes.rows(f"SELECT {counts} FROM {distinct}")
        if unnamed:
            raise DataError(f"record ids of the table of attributes are missing in rows that have {name!r}")
        if several:
            ((id, *ends),) = attributes.rows(f"SELECT r, g, h FROM {distinct} WHERE g <> h LIMIT 1")
            raise DataError(
                f"{several:,} records have several values of {name!r}, such as {head([id])} with "
                f"{head(ends)}: a variable has one value for each record"
            )
        return cls(attributes, name, "", f"SELECT r, g FROM {distinct}", column.values, column.codes)

    def join(self, prediction: Prediction) -> Prediction:
        """Return the prediction with the column g."""
        return prediction if self.second is None else prediction.with_columns(["g"], self.second)

    def look_up(self, labels: Clustering, in_prediction: dict[Any, Any]) -> dict[Any, int]:
        """Return the position of the group of each labelled record that has one."""
        groups = in_prediction
        if self.second is not None:  # which has records that the prediction is missing
            select = f"SELECT r, g FROM ({self.second}) AS p"
            groups = dict(self.database.rows_in(select, "r", labels.records.tolist()))
        return {r: self.codes[g] for r, g in groups.items() if g is not None}


def split_pieces(
    prediction: Prediction,
    groups: GroupColumn,
    of_record: dict[Any, int],
    units: Units,
    touched: list[Any],
    cluster: pd.Series,
) -> Grouping:
    """Return the split of pieces by groups; `touched`: ids of predicted clusters, `cluster`: of records."""
    variable = Variable(
        groups.name, pd.Index(list(of_record)), np.array([*of_record.values()], dtype=np.int64), groups.values
    )
    counted = piece_values(variable, Of.RECORDS, units, units.piece_of)
    database, table = prediction.database, prediction.table
    pooled: list[tuple[Any, ...]] = []
    records = int(units.known.size @ units.known.count) if units.known else 1
    for part in database.parts("c", 2 * records):  # clusters and their pieces are in memory
        pooled += database.rows(
            f"WITH b AS (SELECT c, g, COUNT(*) AS n FROM {table} WHERE {part} GROUP BY c, g) "
            "SELECT b.g, a.m, b.n, COUNT(*) FROM b JOIN (SELECT c, SUM(n) AS m FROM b GROUP BY c) AS a "
            "ON a.c = b.c GROUP BY b.g, a.m, b.n"
        )
    unknown = sum(int(n) * int(k) for g, _, n, k in pooled if g is None)
    if unknown or units.population is None or units.piece_of is None or units.known is None:
        return Grouping(groups.name, groups.values, counted, None, unknown)
    rows = prediction.rows_in("c, g, COUNT(*)", "c", touched, " GROUP BY c, g")
    code = {c: i for i, c in enumerate(touched)}
    listed = [(code[c], groups.codes[g], int(number)) for c, g, number in rows]
    of_touched = np.array(listed, dtype=np.int64).reshape(-1, 3)
    place = np.zeros(len(units.n), dtype=np.int64)
    place[units.piece_of] = cluster.loc[units.piece_of.index]
    cluster_of, n = of_touched[:, 0], of_touched[:, 2].astype(float)
    m = np.bincount(cluster_of, n, len(touched))
    of_group = np.array([(groups.codes[g], *numbers) for g, *numbers in pooled], dtype=float).reshape(-1, 4)
    if of_group[:, 2] @ of_group[:, 3] != units.population or (m[place] != units.m).any():
        raise changed("groups do not add up to its clusters")
    sizes = units.known.size, units.known.count
    predicted = PooledGroups(cluster_of, of_touched[:, 1], n, m, place, of_group, sizes)
    return Grouping(groups.name, groups.values, counted, predicted)
