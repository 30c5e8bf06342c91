"""Units of predictions too large for memory, counted by their databases, with groups of their records.

Every database runs the same SQL of COUNT, GROUP BY and IN. It returns only the labelled records, the sizes of
the clusters that they touch, and the histogram of all predicted cluster sizes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, overload

import numpy as np
import pandas as pd

from .._internal.arrays import refuse_names
from .._internal.errors import DataError, head, need
from .._internal.remedies import Missing
from ..units.clustering import Clustering, FrameFacts
from ..units.columns import find_near
from ..units.grouping import Grouping, Of, PooledGroups, Variable, discrete, piece_values
from ..units.ids import kind, same_kind
from ..units.measuring import assemble, need_policy, position_in_labels, refuse_edges, sampled_labels
from ..units.reading import Near
from ..units.units import KnownTotals, Units
from .counted import count_rows, count_sizes, refuse_duplicates, refuse_other_writing
from .database import Database, changed
from .duckdb import EMBEDDED, DuckDB
from .files import identify, opened, refuse_second_table
from .prediction import (
    TWO_COLUMNS,
    Columns,
    FrameIds,
    Prediction,
    find_scanned,
    frame_sources,
    plain_id,
    use_columns,
)

MOST_GROUPS = 10_000
"""Most values of a group variable that a scan reads. One with more is rather an id."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Place:
    """Where a prediction lies: its `source`, its `columns` of record and cluster ids, and its `database`.

    `frame`: that of the scan, whose ids are in the column `frame_record`; `others`: places of the predictions
    with which it shares the records that were counted.
    """

    source: Any
    columns: tuple[str, str]
    frame: Any
    frame_record: str | None
    database: DuckDB
    others: tuple[Place, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Scanned(Units):
    """Units of a prediction that a database has counted. `scan` makes them.

    `rows`: records of the prediction; `columns`: those of record and cluster ids; `place`: where it lies.
    """

    rows: int = 0
    columns: tuple[str, ...] = ()
    place: Place = field(kw_only=True)

    def refuse_others(self, labels: Any, **others: Any) -> None:
        """Refuse labels of other records or entities than those of the scan, and what else it has already."""
        assert self.piece_of is not None
        own, entity = self.piece_of.index, self.group[self.piece_of]
        given = [name for name, other in others.items() if other is not None]
        if labels is not None:
            labels = sampled_labels(labels)
            at, number = labels.records.get_indexer(own), len(labels.records)
            one, other = (pd.factorize(codes)[0] for codes in (labels.codes[at], entity))
            # those that the prediction does not have may be left out
            as_many = number in {len(own), len(own) + self.unmatched}
            if (at < 0).any() or not as_many or (one != other).any():
                given.append(f"the {number:,} labels, which are not its own {len(own):,}")
        if given:
            raise DataError(
                f"a finished scan has its labels, blocks and frame already: leave out {', '.join(given)}, or "
                "scan the prediction again with what is given"
            )


@overload
def scan(
    source: Mapping[str, Any], labels: Any, columns: Columns = ..., **options: Any
) -> dict[str, Scanned]: ...
@overload
def scan(source: Any, labels: Any, columns: Columns = ..., **options: Any) -> Scanned: ...
def scan(  # type: ignore[misc]  # options of the overloads are those below
    source: Any,
    labels: Any,
    columns: Columns = TWO_COLUMNS,
    *,
    blocks: Any = None,
    missing: Missing | str = Missing.ERROR,
    frame: Any = None,
    groups: str | GroupSource | None = None,
    database: DuckDB = EMBEDDED,
) -> Any:
    """Make units as `erbayes.measure` does, from predictions that need not fit in memory.

    Parameters
    ----------
    source : path, `Files`, `DatabaseTable`, frame, dataset, DuckDB relation, DataFrame of Spark, `RunSQL`
        One row per record of the population. A path is a file, a folder or a pattern. A mapping of names to
        sources of one database restricts them to the records that they share: labelled records that some of
        them do not have are left out.
    columns : Columns
        Columns of the source; by default they are found by names, labels and values, as in memory.
    labels, blocks, missing
        As in `erbayes.measure`.
    frame : record ids, an older prediction, path, `Files`, `DatabaseTable` or dataset, optional
        As in `erbayes.measure`. The ids of a file, a table or a dataset are in its column `columns.record`,
        or else in that which has labelled records. A source with its own database takes none: scan a view.
    groups : str or GroupSource, optional
        Column with the group of each record, for `erbayes.by_domain(sample, groups)`, in the source (the
        first of several) or in a second table. Totals of groups are then known. If records have no group,
        their number is in `Grouping.unknown`, and totals are estimated.
    database : DuckDB
        The database that reads files, database tables, frames and datasets. A relation, a DataFrame of
        Spark, and `RunSQL` have databases of their own.

    Returns
    -------
    Scanned, or dict of Scanned
        A dict has the names of the mapping. `erbayes.compare` opens the sources of two scans again, to count
        by a join what their predictions share.

    Raises
    ------
    DataError
        As `erbayes.measure`, if groups do not fit the records, if several predictions have no common record,
        or if a table changes while it is read.

    Examples
    --------
    >>> import pandas as pd
    >>> prediction = pd.DataFrame({"record": [1, 2, 3, 4], "cluster": ["a", "a", "b", "b"]})
    >>> units = scan(prediction, {1: "x", 2: "x", 3: "x"})
    >>> units.table()[["records", "true_links", "common_links", "predicted_links"]]
       records  true_links  common_links  predicted_links
    x      3.0         3.0           1.0              1.5

    >>> old, new = pd.Series(["a", "a", "a"], [1, 2, 3]), pd.Series(["b", "b"], [2, 3])
    >>> common = scan({"old": old, "new": new}, {1: "x", 2: "x", 3: "x"})
    >>> {name: (units.rows, units.unmatched) for name, units in common.items()}
    {'old': (2, 1), 'new': (2, 1)}
    """
    need(columns, Columns, "columns must be Columns(record=..., cluster=...)")
    several = isinstance(source, Mapping)
    # a mapping is judged on common records in any case
    common = several and missing in (Missing.COMMON, Missing.COMMON.value)
    missing = need_policy(Missing.ERROR if common else missing)
    near = find_near(labels)
    sources = dict(source) if several else {"": source}
    of_frame = frame_sources(frame, sources.values())
    second = [groups.source] if isinstance(groups, GroupSource) else []
    refuse_second_table([*second, *sources.values()] if second else [], "second table of attributes")
    places = {name: identify(one) for name, one in sources.items()}
    once = dict(zip(places.values(), sources.values(), strict=True))
    with opened([*once.values(), *of_frame, *second], database) as tables:
        of_place, others = dict(zip(once, tables, strict=False)), tables[len(once) :]
        named = {name: of_place[place] for name, place in places.items()}
        predictions, column = _select(named, columns, groups, others[-1:], near)
        first = next(iter(predictions.values()))
        wide = len(getattr(labels, "columns", ())) > 2
        labels = sampled_labels(labels, first.find(near) if wide else None)
        for prediction in predictions.values():
            same_kind(prediction.kind, kind(labels.records))
        ids = FrameIds.of(others[0], columns.record, first, labels) if of_frame else None
        counts = {name: _Count.of(p, name, ids, columns.any_id) for name, p in predictions.items()}
        if several:
            before, counts = counts, _count_shared(counts)
            if any(count.rows != before[name].rows for name, count in counts.items()):
                missing = Missing.OMIT
        of_frame_ids = None if ids is None else ids.column
        own = {
            name: Place(sources[name], (p.record, p.cluster), frame, of_frame_ids, database)
            for name, p in predictions.items()
        }
        units = dict[str, Scanned]()
        for name, count in counts.items():
            place = replace(own[name], others=tuple(p for other, p in own.items() if other != name))
            units[name] = _count_units(count, labels, blocks, missing, column, place)
    return units if several else units[""]


def _select(
    tables: Mapping[str, Database],
    columns: Columns,
    groups: str | GroupSource | None,
    second: list[Database],
    near: Near | None,
) -> tuple[dict[str, Prediction], GroupColumn | None]:
    """Select the columns of each table, and the column of groups of the first or of a second table."""
    in_table = groups if isinstance(groups, str) else None
    chosen, (first, *_) = dict[str, tuple[str, str]](), tables.values()
    for table in {id(table): table for table in tables.values()}.values():
        names = [name for name in tables if tables[name] is table]
        # the groups of the first prediction serve all, whether others have them too or not
        further = () if in_table is None or table is not first else (in_table,)
        of_names = [*map(columns.cluster_of, names)]
        record, clusters = use_columns(table, columns.record, of_names, further, near)
        chosen |= {name: (record, cluster) for name, cluster in zip(names, clusters, strict=True)}
    column, of_first = None, chosen[next(iter(tables))]
    if in_table is not None and len(tables) == 1:
        column = GroupColumn.of(first, in_table)
    elif groups is not None:
        name, ids = (groups, of_first[0]) if isinstance(groups, str) else (groups.group, columns.record)
        place = copy(first) if isinstance(groups, str) else second[0]
        column = GroupColumn.of_second(place, name, ids, Prediction.of(first, of_first).near())
    key = {} if column is None or column.second is not None else {"g": column.key}
    return {name: Prediction.of(table, chosen[name], **key) for name, table in tables.items()}, column


@dataclass(frozen=True, slots=True, eq=False)
class _Count:
    """A prediction with its number of records, its sizes, and facts of its frame."""

    prediction: Prediction
    rows: int
    known: KnownTotals
    facts: FrameFacts | None = None

    @classmethod
    def of(cls, prediction: Prediction, name: str, frame: FrameIds | None, any_id: bool) -> _Count:
        """Count a prediction, inside the frame if there is one, and refuse its faults."""
        rows, facts = count_rows(prediction, any_id), None
        if frame is not None:
            facts = frame.count_inside(prediction, name)
            prediction = prediction.within(frame.ids)
            rows = count_rows(prediction, any_id)
        if not name:  # of several predictions, the records that they share are looked at
            refuse_duplicates(prediction, rows)
        whose = f", in {name!r}" if name else ""
        return cls(prediction, rows, count_sizes(prediction, rows, any_id, whose), facts)


def _count_shared(counts: Mapping[str, _Count]) -> dict[str, _Count]:
    # columns of clusters in one table have its records, whose repeats are looked for once
    records = {name: (id(c.prediction.database), c.prediction.record) for name, c in counts.items()}
    lists = {records[name]: count.prediction.table for name, count in counts.items()}
    shared, unique = {}, set[Any]()
    for name, count in counts.items():
        own = records[name]
        if others := [f"SELECT r FROM {table}" for of, table in lists.items() if of != own]:
            prediction = count.prediction.within(*others)
            if not prediction.database.rows(f"SELECT COUNT(*) FROM {prediction.table}")[0][0]:
                raise DataError("no record is in every prediction")
            rows = count_rows(prediction, True)
            known = count_sizes(prediction, rows, True)
            count = replace(count, prediction=prediction, rows=rows, known=known)
        if own not in unique:
            refuse_duplicates(count.prediction, count.rows)
        unique.add(own)
        shared[name] = count
    return shared


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
        values = [g for (g,) in database.rows(f"SELECT g FROM ({distinct}) AS s LIMIT {MOST_GROUPS + 1}")]
        if len(values) > MOST_GROUPS:
            raise DataError(
                f"{name!r} has more than {MOST_GROUPS:,} values: a group variable has few, such as classes"
            )
        codes, groups = pd.factorize(discrete(pd.Series(values), name), sort=True)
        try:
            return cls(database, name, key, None, pd.Index(groups), dict(zip(values, codes, strict=True)))
        except TypeError as error:
            raise DataError(
                f"{name!r} has lists or structs, which are no groups: make texts of it"
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


def _count_units(
    count: _Count, labels: Clustering, blocks: Any, missing: Missing, groups: GroupColumn | None, place: Place
) -> Scanned:
    known, prediction = count.known, count.prediction if groups is None else groups.join(count.prediction)
    cluster, group = _find_labelled(prediction, labels, groups is not None)
    touched = list(dict.fromkeys(cluster[cluster.notna()].tolist()))
    sizes = dict(prediction.rows_in("c, COUNT(*)", "c", touched, " GROUP BY c"))
    # every statement reads a table anew, which may change
    number = dict(zip(known.size.tolist(), known.count.tolist(), strict=True))
    if any(k > number.get(m, 0) for m, k in Counter(int(sizes.get(c, 0)) for c in touched).items()):
        raise changed("a cluster that the labels touch has a size that no cluster has")
    size = np.array([int(sizes[c]) for c in touched], dtype=np.int64)
    codes = pd.Index(touched, dtype=object).get_indexer(cluster)
    # the last one is for the code -1 of labelled records that are missing in the prediction
    named = np.append(position_in_labels(labels, pd.Index(touched)), -1)[codes]
    entity = position_in_labels(labels, labels.clusters)
    refuse_edges(labels, codes, named, np.where(entity < 0, -1, codes[entity]), size, count.rows)
    if missing is Missing.ERROR:
        refuse_other_writing(prediction, labels.records[codes < 0])
    units = assemble(labels, codes, size, known, blocks=blocks, missing=missing)
    groupings = units.groupings
    if groups is not None:
        of_record = groups.look_up(labels, group)
        groupings = (
            split_pieces(prediction, groups, of_record, units, touched, pd.Series(codes, labels.records)),
        )
    return Scanned(
        **units.__getstate__() | {"frame": count.facts, "groupings": groupings},
        rows=count.rows,
        columns=place.columns,
        place=place,
    )


def _find_labelled(
    prediction: Prediction, labels: Clustering, grouped: bool
) -> tuple[pd.Series, dict[Any, Any]]:
    """Return the cluster of each labelled record, None if it is missing, and groups of records by id."""
    ids = labels.records.tolist()
    position = {id: i for i, id in enumerate(ids)}
    cluster = pd.Series([None] * len(ids), dtype=object)
    group: dict[Any, Any] = {}
    for r, c, *value in prediction.rows_in("r, c, g" if grouped else "r, c", "r", ids):
        # a database may compare text without case or trailing blanks
        if r not in position:
            raise DataError(
                f"the database takes {r!r} for a labelled record, which has another id: it must compare "
                "ids exactly, with case and blanks"
            )
        cluster[position[r]] = plain_id(c)
        if grouped:
            group[r] = value[0]
    return cluster, group
