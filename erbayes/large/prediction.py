"""A prediction as SQL: the columns of its table, its records, and those of a frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import eq
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import INDEX, BoolArray, refuse_names, separator_hint
from .._internal.errors import DataError, Remedy, head
from .._internal.names import find_known
from ..units.clustering import Clustering, FrameFacts, frame_ids, refuse_outside
from ..units.columns import ask_of_answers, list_readings, pick_record, refuse_numbers
from ..units.ids import kind, same_kind
from ..units.links import ColumnFacts
from ..units.reading import Named, Near, find_readable
from .database import Database
from .files import lies_elsewhere, refuse_second_table

LOOKED_UP = 100
"""Rows of a table that are looked at, and ids of another file that are looked up in a column."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a prediction that are read, and how its ids are taken.

    Parameters
    ----------
    record, cluster : str, optional
        Columns of record and cluster ids; by default they are found as `erbayes.Clustering.of` does. If
        predictions are a mapping of names to sources, `cluster` may be one too, of names to columns.
    any_id : bool
        True takes every id for that of a real cluster, also ids such as -1 and "NULL" that usually mean none
        (see `erbayes.Clustering.of`). Labels have their own: `Clustering.of(labels, any_id=True)`.

    Examples
    --------
    >>> import pandas as pd
    >>> from erbayes.large import scan
    >>> table = pd.DataFrame({"id": [1, 2], "old": ["a", "b"], "new": ["c", "c"]})
    >>> scan(table, {1: "x", 2: "x"}, Columns("id", "new")).columns
    ('id', 'new')
    """

    record: str | None = None
    cluster: str | Mapping[str, str | None] | None = None
    any_id: bool = False

    def cluster_of(self, name: str) -> str | None:
        """Return the column of clusters of a prediction."""
        return self.cluster.get(name) if isinstance(self.cluster, Mapping) else self.cluster


TWO_COLUMNS = Columns()


@dataclass(frozen=True, eq=False, kw_only=True)
class ScannedFacts(ColumnFacts):
    """Facts of the columns of a table in a database: its first rows, which can only refute, and SQL."""

    database: Database

    @classmethod
    def of(
        cls, database: Database, named: Named, near: Near | None, what: str, others: Sequence[str] = ()
    ) -> ScannedFacts:
        """Read the first rows of all columns but others, and but those that folders give."""
        known = {c for meaning in ("record", "cluster") for c in find_known(database.columns(), meaning)}
        known |= {*named.columns} | ({*near.keys} if near else set())
        columns = [c for c in database.columns() if c in known or c not in {*others, *database.by_folder}]
        readable = database.look(*columns)
        if lost := [c for c in columns if c not in readable and (c in known or len(columns) == 2)]:
            database.use(*lost)  # which says why they cannot be read
        rows = pd.DataFrame()
        if readable:
            listed = ", ".join(map(database.value, readable))
            rows = database.fetched(f"SELECT {listed} FROM {database.table} LIMIT {LOOKED_UP}", readable)
        return cls(rows, named, near, what=what, database=database)

    @property
    def _has_all(self) -> bool:
        return len(self.table) < LOOKED_UP

    @property
    def usable(self) -> list[Any]:
        return find_readable(self.table)

    def has_ids(self, column: Any) -> bool:
        # a name that both files have needs no look at the ids, which are looked up later
        shared = [c for c in self.table.columns if self.near and c in self.near.keys]
        return shared == [column] or super().has_ids(column)

    def _all_agree(self, found: bool, facts: str, agree: Callable[..., bool]) -> bool:
        """Return what the first rows say, unless these facts of all rows, as SQL, refute it."""
        if not found or self._has_all:
            return found
        return bool(agree(*self.database.rows(f"SELECT {facts} FROM {self.database.table}")[0]))

    def answers(self, column: Any, *families: tuple[frozenset[str], frozenset[str]]) -> BoolArray | None:
        """Return whether each row is a link, those of a word together; None if there are other words."""
        found = super().answers(column, *families)
        if found is None or self._has_all:
            return found
        x = self.database.value(column)
        counted = self.database.rows(
            f"SELECT {x}, COUNT(*) FROM {self.database.table} GROUP BY {x} LIMIT {LOOKED_UP}"
        )
        each = pd.DataFrame({column: [word for word, _ in counted]})
        found = ColumnFacts(each, self.named, self.near, what=self.what).answers(column, *families)
        return None if found is None else np.repeat(found, [rows for _, rows in counted])

    def is_unique(self, column: Any) -> bool:
        facts = f"COUNT(*), COUNT(DISTINCT {self.database.id(column)})"
        return self._all_agree(super().is_unique(column), facts, eq)

    def is_constant(self, column: Any) -> bool:
        x = self.database.value(column)
        return self._all_agree(super().is_constant(column), f"MIN({x}), MAX({x})", eq)

    def counts_rows(self, column: Any, in_order: bool = True) -> bool:
        """Return whether a column counts rows in any order, since a database has none."""
        if self._has_all:
            return super().counts_rows(column, in_order=False)
        x, whole = self.database.number(column), self.numbers(column) is not None
        could = whole and not self.has_decimals(column) and self.is_unique(column)
        counts = lambda least, most, rows: least in (0, 1) and most - least + 1 == rows  # noqa: E731
        return self._all_agree(could, f"MIN({x}), MAX({x}), COUNT(*)", counts)

    def find(self, column: Any, group: Any, ids: pd.Index) -> pd.Index:
        found = self._look_up(column, ids, *(self.usable if group is None else [group]))
        return pd.Index([found.get(id) for id in ids], dtype=object)

    def _kind(self, column: Any) -> str:
        return self.database.kind(column) or super()._kind(column)

    def _share(self, column: Any, ids: pd.Index) -> float:
        some = ids[np.unique(np.linspace(0, len(ids) - 1, LOOKED_UP).astype(int))]
        return len(self._look_up(column, some)) / len(some)

    def _look_up(self, column: Any, ids: pd.Index, *others: Any) -> dict[Any, str]:
        """Return the values of other columns, as text, where a column has an id."""
        id = self.database.id(column)
        select = (
            f"SELECT DISTINCT {', '.join([id, *map(self.database.value, others)])} FROM {self.database.table}"
        )
        return {plain_id(id): str(values) for id, *values in self.database.rows_in(select, id, ids.tolist())}


def find_scanned(
    database: Database, record: str | None, near: Near | None, what: str, others: Sequence[str] = ()
) -> Any:
    """Return the column of records of a table of attributes or of a frame, that of a name if it is there."""
    if record in database.columns():
        return record
    facts = ScannedFacts.of(database, Named(), near, what, others)
    if not facts.usable:
        raise DataError(f"the {what} needs a column of ids; it has {head(database.columns()) or 'none'}")
    return pick_record(facts, [])


def use_columns(
    database: Database,
    record: str | None,
    clusters: Sequence[str | None],
    others: tuple[str, ...] = (),
    near: Near | None = None,
) -> tuple[str, list[str]]:
    """Choose the columns of records and clusters, prepare these and others, and refuse ids of other types.

    Ids that are unique inside their source alone become one id with it.
    """
    named = [cluster for cluster in clusters if cluster is not None]
    pairs = [
        _choose_columns(database, record, cluster, (*others, *(c for c in named if c != cluster)), near)
        for cluster in clusters
    ]
    chosen = list(dict.fromkeys([pairs[0][0], *(cluster for _, cluster in pairs)]))
    sources = [c for c in find_known(database.columns(), "source") if c not in chosen][:1]
    database.use(*dict.fromkeys([*chosen, *others, *sources]))
    for source in sources:
        id, origin = database.id(chosen[0]), database.value(source)
        several = f"SELECT 1 AS a FROM {database.table} GROUP BY {id} HAVING MIN({origin}) < MAX({origin})"
        if database.rows(f"SELECT COUNT(*) FROM ({several}) AS t")[0][0]:
            database.join_source(chosen[0], source)
    for column in chosen:
        if (kind := database.kind(column)) not in {"string", "integer", None}:
            what = "record" if column == chosen[0] else "cluster"
            raise DataError(
                f"{what} ids of the prediction must be all strings or all integers, not {kind}; convert them "
                "to text where they lie"
            )
    return chosen[0], [cluster for _, cluster in pairs]


def _choose_columns(
    database: Database, record: str | None, cluster: str | None, others: tuple[str, ...], near: Near | None
) -> tuple[str, str]:
    """Return the columns of records and of clusters, by what is said, by the other file and by values."""
    columns = database.columns()
    remedy = Remedy("name them", "Columns(record=..., cluster=...)", "FILE:RECORD,CLUSTER")
    said = [c for c in (record, cluster) if c is not None]
    refuse_names([*said, *others], columns or [*said, *others], "the prediction", dict.fromkeys(said, remedy))
    if record is not None and cluster is not None:
        return record, cluster
    if columns:
        refuse_numbers(columns, "prediction")
        named = Named(record=record, cluster=cluster, links=False)
        facts = ScannedFacts.of(database, named, near, "prediction", others)
        free = [c for c in facts.usable if c not in facts.sources]
        if len(facts.clusters) == 1 and len(facts.usable) > 1:
            record = pick_record(facts, facts.clusters)
            ask_of_answers(facts, record, facts.clusters[0])
            return record, facts.clusters[0]
        if not facts.clusters and (readings := list_readings(facts)):
            return readings[0].ids[0], readings[0].other
        if len(free) == 2:  # whose repeated ids are counted later
            record = pick_record(facts, facts.clusters)
            return next((record, c) for c in free if c != record)
        if len(free) > 2:
            raise DataError(f"the prediction has {len(columns)} columns, {head(columns, 20)}, not 2", remedy)
    index = [c for c in columns if c in database.by_folder and INDEX.fullmatch(c)]
    raise DataError(
        "the prediction needs a column of records and one of clusters"
        + (f"; it has {head(columns, 20)}{separator_hint(columns)}" if columns else "")
        + (f", of which pandas wrote {head(index)} for an index without a name" if index else ""),
        remedy,
    )


def plain_id(id: Any) -> Any:
    """Return an id as text or as an integer, since drivers return some integers as decimals."""
    if isinstance(id, str):
        return id
    if id != int(id):
        raise DataError(f"ids of the prediction must be all strings or all integers, not {id}")
    return int(id)


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
    def of(cls, database: Database, columns: tuple[str, str], **further: str) -> Prediction:
        """Select ids, and SQL of further columns by their names."""
        record, cluster = columns
        selected = {"r": database.id(record), "c": database.id(cluster), **further}
        listed = ", ".join(f"{sql} AS {name}" for name, sql in selected.items())
        return cls(database, record, cluster, f"(SELECT {listed} FROM {database.table}) AS p")

    @property
    def kind(self) -> str | None:
        """Return the type of record ids, as in `Database.kind`."""
        return self.database.kind(self.record)

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
        some = [key for key in near.keys.values() if self.kind in {None, kind(key)}]
        found = {id for key in some for (id,) in self.rows_in("DISTINCT r", "r", key.tolist())}
        records: pd.Index = pd.Index([*found], name=self.record)
        return records

    def near(self) -> Near:
        """Return some records, by which those of a second table are found."""
        ids = self.database.rows(f"SELECT r FROM {self.table} WHERE r IS NOT NULL LIMIT {LOOKED_UP}")
        return Near({self.record: pd.Index([plain_id(id) for (id,) in ids])})


@dataclass(frozen=True, slots=True)
class FrameIds:
    """Record ids of a frame: SQL of ids r in a table, their column and distinct number."""

    ids: str
    column: str
    count: int

    @classmethod
    def of(
        cls, database: Database, record: str | None, prediction: Prediction, labels: Clustering | None = None
    ) -> FrameIds:
        """Take the ids from the column `record` of a table, or from that which has labelled records.

        Labelled records that are not among them are refused, and ids of other types than the prediction's.
        """
        near = None if labels is None else Near({labels.records.name: labels.records})
        column = find_scanned(database, record, near, "frame")
        database.use(column)
        same_kind(prediction.kind, database.kind(column), "frame")
        ids = f"(SELECT {database.id(column)} AS r FROM {database.table}) AS p"
        ((rows, present, count),) = database.rows(f"SELECT COUNT(*), COUNT(r), COUNT(DISTINCT r) FROM {ids}")
        if rows > present:
            raise DataError(f"record ids of the frame: {rows - present} of {rows} are missing")
        if not rows:
            raise DataError("the frame holds no record")
        if labels is not None:
            inside = database.rows_in(f"SELECT r FROM {ids}", "r", labels.records.tolist())
            refuse_outside(labels.records, ~labels.records.isin([r for (r,) in inside]))
        return cls(f"SELECT r FROM {ids}", column, int(count))

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
    refuse_second_table([frame, *predictions], "list of ids as a frame")
    return [frame if lies_elsewhere(frame) else pd.DataFrame({"record": frame_ids(frame)})]
