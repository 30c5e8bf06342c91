"""A prediction as SQL: its columns, on the records of a frame or of others, with columns of groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from .._internal.errors import DataError, Remedy, head, need
from .._internal.known_columns import choose_record, find_known
from .._internal.tables import INDEX, refuse_names, separator_hint
from ..units.clustering import Clustering
from ..units.frame import FrameFacts, frame_ids, refuse_outside
from ..units.grouping import GroupedClusters, Grouping, Of, PooledGroups, Variable, discrete, piece_values
from ..units.ids import kind
from ..units.lookup import same_kind
from ..units.units import Units
from .database import Database, changed, refuse_unlike
from .sources import has_own_database, lies_elsewhere


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a prediction that are read, and how its ids are taken.

    Parameters
    ----------
    record, cluster : str, optional
        Columns of record and cluster ids; by default the only two of a table. If predictions are a mapping of
        names to sources, `cluster` may be one too, of names to columns.
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


def use_columns(
    database: Database, record: str | None, clusters: Sequence[str | None], others: tuple[str, ...] = ()
) -> tuple[str, list[str]]:
    """Choose the columns of records and clusters, prepare these and others, and refuse ids of other types.

    Ids that are unique inside their source alone become one id with it.
    """
    named = [cluster for cluster in clusters if cluster is not None]
    pairs = [
        chosen_columns(database, record, cluster, (*others, *(c for c in named if c != cluster)))
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


def chosen_columns(
    database: Database, record: str | None, cluster: str | None, others: tuple[str, ...] = ()
) -> tuple[str, str]:
    """Return the columns of records and of clusters: those named, or the only two that are not."""
    columns = database.columns()
    free = [c for c in columns if c not in {*others, record, cluster}]
    known = {meaning: find_known(free, meaning) for meaning in ("record", "cluster")}
    record, cluster = (
        known[meaning][0] if name is None and len(known[meaning]) == 1 else name
        for meaning, name in (("record", record), ("cluster", cluster))
    )
    named = [c for c in (record, cluster, *others) if c is not None]
    remedy = Remedy.SCANNED_COLUMNS
    choices = dict.fromkeys((c for c in (record, cluster) if c is not None), remedy)
    refuse_names(named, columns or named, "the prediction", choices)
    missing = [record, cluster].count(None)
    unnamed = [c for c in columns if c not in named and c not in database.by_folder]
    if missing and len(unnamed) > missing:
        raise DataError(f"the prediction has {len(columns)} columns, {head(columns, 20)}, not 2", remedy)
    rest = iter(unnamed)
    record, cluster = (name if name is not None else next(rest, None) for name in (record, cluster))
    if record is None or cluster is None:
        index = [c for c in columns if c in database.by_folder and INDEX.fullmatch(c)]
        raise DataError(
            "the prediction needs a column of records and one of clusters"
            + (f"; it has {head(columns, 20)}{separator_hint(columns)}" if columns else "")
            + (f", of which pandas wrote {head(index)} for an index without a name" if index else ""),
            remedy,
        )
    return record, cluster


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


LARGEST = 10_000
"""Most values of a group variable that a scan reads. One with more is rather an id."""


@dataclass(frozen=True, slots=True)
class GroupSource:
    """The group of each record, in a second table.

    Parameters
    ----------
    source : as in `scan`, without a database of its own
        A table of records. Their ids are in the column called as in the prediction, or else in the first.
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
    def of_second(cls, attributes: Database, name: str, record: str | None, kind: str | None) -> GroupColumn:
        """Take a column of a second table of records whose ids are of a `kind`."""
        columns = attributes.columns()
        refuse_names([name], columns, "the table of attributes")
        ids = choose_record(columns, None if record == name else record)
        if ids == name:
            raise DataError(f"{name!r} is the column of the table of attributes that has the ids of records")
        attributes.use(ids, name)
        refuse_unlike(kind, attributes.kind(ids), "table of attributes")
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
    of_piece = GroupedClusters(cluster_of, of_touched[:, 1], n, m, np.ones(len(m)), place)
    of_group = np.array([(groups.codes[g], *numbers) for g, *numbers in pooled], dtype=float).reshape(-1, 4)
    if of_group[:, 2] @ of_group[:, 3] != units.population or (m[place] != units.m).any():
        raise changed("groups do not add up to its clusters")
    group, m, n, count = of_group.T.copy()
    predicted = PooledGroups(of_piece, group.astype(np.int64), m, n, count, units.known)
    return Grouping(groups.name, groups.values, counted, predicted)
