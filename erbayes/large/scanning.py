"""Units of predictions too large for memory, counted by their databases.

Every database runs the same SQL of COUNT, GROUP BY and IN. It returns only the labelled records, the sizes of
the clusters that they touch, and the histogram of all predicted cluster sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, overload

import numpy as np
import pandas as pd

from .._internal import remedies
from .._internal.errors import DataError, need
from .._internal.remedies import Missing
from ..units.clustering import FrameFacts
from ..units.columns import find_near
from ..units.ids import kind, same_kind
from ..units.measuring import need_policy, sampled_labels
from ..units.reading import Near
from ..units.settled import Overlap, Overlaps, Pairs
from ..units.units import KnownTotals
from .counted import Place, Scanned, count_rows, count_sizes, count_units, refuse_duplicates
from .database import Database
from .duckdb import DuckDB
from .prediction import FrameIds, GroupColumn, GroupSource, Prediction, frame_sources
from .reading import Columns, use_columns
from .sources import has_own_database, identify, opened

EMBEDDED = DuckDB()
TWO_COLUMNS = Columns()


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
    source : path, `Files`, `DatabaseTable`, frame, dataset, DuckDB relation, table of Spark or Ibis, `RunSQL`
        One row per record of the population. A path is a file, a folder or a pattern. A mapping of names to
        sources of one database restricts them to the records that they share: labelled records that some of
        them do not have are left out.
    columns : Columns
        Columns of the source; by default they are found by names, labels and values, as in memory.
    labels, blocks, missing
        As in `erbayes.measure`.
    frame : record ids, an older prediction, path, `Files`, `DatabaseTable` or dataset, optional
        As in `erbayes.measure`. The ids of a file, a table or a dataset are in its column `columns.record`,
        or else in that which has labelled records. A source with a database of its own takes none: scan a
        view of its records.
    groups : str or GroupSource, optional
        Column with the group of each record, for `erbayes.by_domain(sample, groups)`, in the source (the
        first of several) or in a second table. Totals of groups are then known. If records have no group,
        their number is in `Grouping.unknown`, and totals are estimated.
    database : DuckDB
        The database that reads files, database tables, frames and datasets. A relation, tables of Ibis and
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
    further = [*of_frame, *_list_attributes(groups, sources.values())]
    places = {name: identify(one) for name, one in sources.items()}
    once = dict(zip(places.values(), sources.values(), strict=True))
    with opened([*once.values(), *further], database) as tables:
        of_place, others = dict(zip(once, tables, strict=False)), tables[len(once) :]
        named = {name: of_place[place] for name, place in places.items()}
        predictions, column = _select(named, columns, groups, others[-1:], near)
        wide = len(getattr(labels, "columns", ())) > 2
        labels = sampled_labels(labels, next(iter(predictions.values())).find(near) if wide else None)
        known = kind(labels.records)
        for prediction in predictions.values():
            same_kind(prediction.database.kind(prediction.record), known)
        ids = FrameIds.of(others[0], columns.record, labels.records) if of_frame else None
        if ids is not None:
            ids.refuse_outside(next(iter(predictions.values())), labels)
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
        units = {
            name: count_units(
                count.prediction if column is None else column.join(count.prediction),
                count.known,
                labels,
                blocks=blocks,
                missing=missing,
                groups=column,
                facts=count.facts,
                rows=count.rows,
                place=replace(own[name], others=tuple(p for other, p in own.items() if other != name)),
            )
            for name, count in counts.items()
        }
    return units if several else units[""]


def _list_attributes(groups: str | GroupSource | None, sources: Iterable[Any]) -> list[Any]:
    """Return the second table that has the groups, if they are not in the first."""
    if groups is None or isinstance(groups, str):
        return []
    if any(map(has_own_database, sources)):
        raise DataError(
            "a table with a database of its own takes no second table of attributes: make a view of "
            "the prediction that has the column of groups"
        )
    return [groups.source]


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
    record, _ = chosen[next(iter(tables))]
    column = None
    if in_table is not None and len(tables) == 1:
        column = GroupColumn.of(first, in_table)
    elif groups is not None:
        name, of_records = (groups, record) if isinstance(groups, str) else (groups.group, columns.record)
        place = copy(first) if isinstance(groups, str) else second[0]
        records = Prediction.of(first, chosen[next(iter(tables))]).near()
        column = GroupColumn.of_second(place, name, of_records, records)
    key = {} if column is None or column.second is not None else {"g": column.key}
    return {name: Prediction.of(table, chosen[name], key) for name, table in tables.items()}, column


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
            prediction = frame.restrict(prediction)
            rows = count_rows(prediction, any_id)
        if not name:  # of several predictions, the records that they share are looked at
            refuse_duplicates(prediction, rows)
        whose = f", in {name!r}" if name else ""
        return cls(prediction, rows, count_sizes(prediction, rows, any_id, whose), facts)


def _count_shared(counts: Mapping[str, _Count]) -> dict[str, _Count]:
    """Count predictions on the records that all of them have."""
    # columns of clusters in one table have its records, whose repeats are looked for once
    lists = {_find_records(count.prediction): count.prediction.table for count in counts.values()}
    shared, unique = {}, set[Any]()
    for name, count in counts.items():
        own = _find_records(count.prediction)
        others = [f"SELECT r FROM {table}" for records, table in lists.items() if records != own]
        if others:
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


def _find_records(prediction: Prediction) -> tuple[int, str]:
    """Return what predictions in columns of one table have in common: the table and its column of records."""
    return id(prediction.database), prediction.record


def refuse_different_records(predictions: Mapping[str, Scanned]) -> None:
    """Refuse scans of different records or labels, since a comparison would take gaps for errors."""
    (first_name, first), *others = predictions.items()
    for name, other in others:
        if first.rows != other.rows:
            raise DataError(
                f"{first_name!r} and {name!r} cover different records, {first.rows:,} and {other.rows:,}",
                remedies.DIFFERING,
            )
        if not first.ids.equals(other.ids):
            raise DataError(
                f"{first_name!r} and {name!r} are scans for different labels, or leave out different ones"
            )


def overlaps_of(scans: Mapping[str, Scanned]) -> Overlaps:
    """Return what each two scans share, for which their sources are opened again."""
    return Overlaps(partial(_count_each, dict(scans)))


class _Side(NamedTuple):
    """A scan by its name, and the SQL of its prediction and of `sizes` m of clusters c."""

    name: str
    units: Scanned
    prediction: Prediction
    sizes: str


def _count_each(scans: Mapping[str, Scanned], wanted: Pairs) -> list[Overlap]:
    sides = dict[int, _Side]()
    with _opened_again([*scans.values()]) as predictions:
        for i, (name, units) in enumerate(scans.items()):
            if any(i in pair for pair in wanted):
                database = predictions[i].database
                with database.counting(units.rows):
                    kept = database.keep(f"SELECT c, COUNT(*) AS m FROM {predictions[i].table} GROUP BY c")
                sides[i] = _Side(name, units, predictions[i], f"(SELECT c, m FROM {kept})")
        return [_count(sides[i], sides[j]) for i, j in wanted]


@contextmanager
def _opened_again(scans: Sequence[Scanned]) -> Iterator[list[Prediction]]:
    """Open the predictions of scans, each on the records that were counted."""
    places, first = [place for scan in scans for place in (scan.place, *scan.place.others)], scans[0].place
    sources = {(identify(p.source), p.columns[0]): p.source for p in places}
    frames = frame_sources(first.frame, sources.values())
    with opened([*sources.values(), *frames], first.database) as tables:
        of_place = dict(zip(sources, tables, strict=False))
        for key, table in of_place.items():
            own = [p.columns[1] for p in places if (identify(p.source), p.columns[0]) == key]
            use_columns(table, key[1], list(dict.fromkeys(own)))

        def find(place: Place) -> Prediction:
            return Prediction.of(of_place[identify(place.source), place.columns[0]], place.columns)

        predictions = []
        for scan in scans:
            lists = [f"SELECT r FROM {find(other).table}" for other in scan.place.others]
            predictions.append(find(scan.place).within(*lists))
        ids = [FrameIds.of(table, first.frame_record) for table in tables[len(sources) :]]
        yield [ids[0].restrict(prediction) for prediction in predictions] if ids else predictions


def _count(first: _Side, second: _Side) -> Overlap:
    """Count what predictions share by cells, the n records that clusters c of m and d of k records share."""
    database, rows, ids = first.prediction.database, first.units.rows, first.units.piece_of
    a, b = (f"(SELECT r, c FROM {side.prediction.table})" for side in (first, second))
    both = f"SELECT a.c AS c, b.c AS d, COUNT(*) AS n FROM {a} AS a JOIN {b} AS b ON a.r = b.r"
    with database.counting(rows):
        kept = database.keep(f"{both} GROUP BY a.c, b.c")
    cells = f"{kept} JOIN {first.sizes} AS s ON p.c = s.c JOIN {second.sizes} AS t ON p.d = t.c"
    same = "CASE WHEN n = s.m AND n = t.m THEN {} ELSE 0 END"
    sums = database.rows(
        "WITH g AS (SELECT s.m AS m, t.m AS k, SUM(n * (s.m - n)) AS x, SUM(n * (t.m - n)) AS y, "
        f"SUM(n) AS n, SUM(n * (n - 1)) AS l, SUM({same.format(1)}) AS i, SUM({same.format('n')}) AS j "
        f"FROM {cells} GROUP BY s.m, t.m) "
        "SELECT 0, m, SUM(x), SUM(n), SUM(l), SUM(i), SUM(j) FROM g GROUP BY m "
        "UNION ALL SELECT 1, k, SUM(y), 0, 0, 0, 0 FROM g GROUP BY k"
    )
    side, size, alone, *totals = np.array(sorted(sums), dtype=float).reshape(-1, 7).T
    records, links, clusters, inside = np.sum(totals, axis=1)
    if not rows == second.units.rows == records:
        raise DataError(
            f"{first.name!r} and {second.name!r} cover different records, {rows:,} and "
            f"{second.units.rows:,}, of which {int(records):,} are in both",
            remedies.DIFFERING,
        )
    different = [np.flatnonzero((side == x) & (alone > 0)) for x in (0, 1)]
    one, other = ((size[at], alone[at] / 2) for at in different)
    assert ids is not None
    labelled = [
        row
        for listed in database.listed(ids.index.tolist())
        for row in database.rows(
            f"SELECT p.c, p.d, p.n, s.m, t.m, l.n FROM {cells} "
            f"JOIN ({both} WHERE a.r IN ({listed}) GROUP BY a.c, b.c) AS l ON p.c = l.c AND p.d = l.d"
        )
    ]
    database.drop(kept)
    # cells come again with each list of ids
    table = pd.DataFrame(labelled, columns=[*"cdnmk", "known"])
    table = table.astype(dict.fromkeys([*"nmk", "known"], float))
    cell = table.groupby([*"cdnmk"], as_index=False)["known"].sum()
    differ = (cell["n"] != cell["m"]) | (cell["n"] != cell["k"])
    of_labelled = cell["n"].to_numpy(), cell["known"].to_numpy(), differ.to_numpy()
    return Overlap.labelled((links / 2, clusters, inside), (one, other), rows, of_labelled)
