"""Units of a prediction too large for memory, counted where it lies.

Every database runs the same SQL of COUNT, GROUP BY and IN. It returns only the labelled records, the sizes of
the clusters that they touch, and the histogram of all predicted cluster sizes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ..clustering import Clustering, kind
from ..errors import DataError, Remedy, head, need
from ..frame import Dated, FrameFacts
from ..grouping import Grouping, Of, Variable, piece_values
from ..mistaken import position_in_labels, refuse_edges
from ..tables import refuse_names
from ..units import KnownTotals, Missing, Units, assemble, same_kind, sampled_labels
from .database import Database, KeyColumn
from .duckdb import DuckDB, united
from .frame import Limit, Limits, Listed, frame_sources
from .groups import Composed, GroupColumn, composed
from .joint import Joint, SecondColumn, SecondSource, joint, refuse_kept, refuse_lacking
from .sources import has_own_database, opened, opened_together

EMBEDDED = DuckDB()
HINTED = 1000
"""Number of labelled records that are looked for without case and blanks, if the prediction lacks them."""


@dataclass(frozen=True, eq=False, repr=False)
class Scanned(Units):
    """Units of a prediction that a database has counted. `scan` makes them.

    Attributes
    ----------
    rows : int
        Number of records of the prediction.
    checked : str
        The record ids among which duplicates were looked for, in words.
    digest : int or None
        A number that differs between predictions with different record ids; None for `RunSQL`.
    columns : tuple of str
        Names of the columns of records and of clusters.
    seconds : tuple of Joint
        Joint counts of the prediction and of second clusterings.
    """

    rows: int = 0
    checked: str = ""
    digest: int | None = None
    columns: tuple[str, ...] = ()
    seconds: tuple[Joint, ...] = ()


def scan(
    source: Any,
    labels: Any,
    *,
    record: str | None = None,
    cluster: str | None = None,
    blocks: Any = None,
    missing: Missing = Missing.ERROR,
    frame: Any = None,
    groups: str | None = None,
    attributes: Any = None,
    seconds: Mapping[str, SecondSource] | None = None,
    database: DuckDB = EMBEDDED,
) -> Scanned:
    """Make units as `erbayes.measure` does, from a prediction that need not fit in memory.

    Parameters
    ----------
    source : path, `Files`, `DatabaseTable`, frame, Arrow dataset, DuckDB relation, Spark DataFrame, `RunSQL`
        One row per record of the population. A path is a file, a folder or a pattern.
    labels, blocks, missing
        As in `erbayes.measure`.
    frame : Dated, record ids, an older prediction, path, `Files`, `DatabaseTable` or dataset, optional
        As in `erbayes.measure`. The ids of a file, a table or a dataset are in its column `record`, or else
        in its first. A source with a database of its own takes `erbayes.Dated` only.
    record, cluster : str, optional
        Columns of `source`; by default its only two.
    groups : str, optional
        Column with the group of each record, for `erbayes.by_domain(sample, groups)`. Totals of groups are
        then known. If records have no group, their number is in `Grouping.unknown`, and totals are estimated.
    attributes : source, optional
        A second table, which has the column `groups`. Record ids are in its column `record`, or else in its
        first. A source with a database of its own takes none.
    seconds : mapping, name -> SecondSource, optional
        Second clusterings of the same records, counted together with the prediction (see
        `erbayes.Second.scanned`). A source with a database of its own takes columns only.
    database : DuckDB
        The database that reads files, database tables, frames and datasets. A relation, a Spark DataFrame and
        `RunSQL` have databases of their own.

    Returns
    -------
    Scanned

    Raises
    ------
    DataError
        As `erbayes.measure`. Duplicate record ids are looked for among all records of the clusters
        that the labels touch, and among a share of the others (`Scanned.checked`). If labelled records have
        no group, or records several groups. If a second clustering lacks records of the prediction, or has
        one of them twice.

    Examples
    --------
    >>> import pandas as pd
    >>> prediction = pd.DataFrame({"record": [1, 2, 3, 4], "cluster": ["a", "a", "b", "b"]})
    >>> units = scan(prediction, {1: "x", 2: "x", 3: "x"})
    >>> units.table()[["records", "true_links", "common_links", "predicted_links"]]
       records  true_links  common_links  predicted_links
    x      3.0         3.0           1.0              1.5
    """
    (units,) = scan_releases(
        source,
        labels,
        None,
        record=record,
        cluster=cluster,
        blocks=blocks,
        missing=missing,
        frame=frame,
        groups=groups,
        attributes=attributes,
        seconds=seconds,
        database=database,
    ).values()
    return units


def scan_releases(
    source: Any,
    labels: Any,
    release: str | None,
    *,
    record: str | None = None,
    cluster: str | None = None,
    blocks: Any = None,
    missing: Missing = Missing.ERROR,
    frame: Any = None,
    groups: str | None = None,
    attributes: Any = None,
    seconds: Mapping[str, SecondSource] | None = None,
    common: bool = False,
    database: DuckDB = EMBEDDED,
) -> dict[Any, Scanned]:
    """Make units of several predictions in one table, by the value of a column, in one scan.

    Parameters
    ----------
    release : str or None
        Column that names the prediction of each row. Folders called "release=2021" make such a column, of
        text. None: the table is one prediction.
    common : bool
        True restricts the predictions to the records that they share (`erbayes.Differing.COMMON`). Other
        labelled records are left out.
    source, labels, record, cluster, blocks, missing, frame, groups, attributes, database
        As in `scan`.
    seconds : mapping, name -> SecondSource, optional
        As in `scan`, if there is no column of releases.

    Returns
    -------
    dict, release -> Scanned
        Without a column of releases its only key is None.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"r": [1, 2, 1, 2], "c": ["a", "a", "a", "b"], "year": [1, 1, 2, 2]})
    >>> years = scan_releases(table, {1: "x", 2: "x"}, "year")
    >>> {year: float(units.table().common_links.sum()) for year, units in years.items()}
    {1: 1.0, 2: 0.0}
    """
    labels = sampled_labels(labels)
    own_groups = groups if attributes is None else None
    wanted = _need_seconds(seconds, release, missing)
    own_seconds = [second.cluster for second in wanted.values() if second.source is None]
    others = tuple(name for name in (release, own_groups, *date_columns(frame)) if name is not None)
    others = tuple(dict.fromkeys((*others, *(name for name in own_seconds if name is not None))))
    ids, tables = frame_sources(frame, [source]), second_table(groups, attributes)
    if tables and has_own_database(source):
        raise DataError(
            "a table with a database of its own takes no second table of attributes: make a view of the "
            "prediction that has the column of groups"
        )
    beside = {name: second.source for name, second in wanted.items() if second.source is not None}
    if beside and any(map(has_own_database, [source, *beside.values()])):
        raise DataError(
            f"a table with a database of its own takes no second table, such as that of {head([*beside])}: "
            "make a view of the prediction that has the clusters as a column, SecondSource(cluster=...)"
        )
    with opened([source, *ids, *tables, *beside.values()], database) as (table, *further):
        limit = Listed.of(further[0], record) if ids else frame
        chosen = chosen_columns(table, record, cluster, others)
        table.use(*chosen, *others)
        variable = None
        if groups is not None and tables:
            variable = GroupColumn.of_attributes(further[len(ids)], groups, record, (table, chosen[0]))
        elif groups is not None:
            variable = GroupColumn.of(table, groups)
        places = dict(zip(beside, further[len(ids) + len(tables) :], strict=True))
        columns = tuple(
            SecondColumn.of_table(places[name], name, second, i, (table, chosen[0]))
            if name in places
            else SecondColumn.of(table, name, str(second.cluster), i)
            for i, (name, second) in enumerate(wanted.items())
        )
        prediction = Prediction.of(
            table, labels, *chosen, release, limit=limit, groups=variable, seconds=columns
        )
        return prediction.units(labels, blocks, missing, common)


def _need_seconds(
    seconds: Mapping[str, SecondSource] | None, release: str | None, missing: Missing
) -> dict[str, SecondSource]:
    """Refuse second clusterings that are none, and those of several releases."""
    if seconds is None:
        return {}
    if not isinstance(seconds, Mapping):
        raise DataError(
            f"seconds must map names to second clusterings, as in {{'new': SecondSource('new.parquet')}}, "
            f"not be a {type(seconds).__name__}"
        )
    for name, second in seconds.items():
        need(second, SecondSource, f"seconds[{name!r}] must be a SecondSource(source, cluster=...)")
    if seconds and release is not None:
        raise DataError("second clusterings go with one prediction: scan a view of each release by itself")
    if seconds:
        refuse_kept(missing)
    return {str(name): second for name, second in seconds.items()}


def scan_common(
    predictions: Mapping[str, Any],
    labels: Any,
    *,
    record: str | None = None,
    cluster: str | Mapping[str, str | None] | None = None,
    blocks: Any = None,
    missing: Missing = Missing.ERROR,
    frame: Any = None,
    groups: str | None = None,
    attributes: Any = None,
    database: DuckDB = EMBEDDED,
) -> dict[str, Scanned]:
    """Make units of several predictions, restricted to the records that they share.

    Parameters
    ----------
    predictions : mapping, name -> source
        Sources that DuckDB reads, as in `scan`. Tables of another database must be brought into one table,
        for `scan_releases`.
    cluster : str, or mapping of name -> str, optional
        Cluster column of all predictions, or of each.
    groups : str, optional
        Column with the group of each record, in the first prediction or in `attributes`.
    labels, record, blocks, missing, frame, attributes, database
        As in `scan`. If predictions differ in their records, labelled records that not all of them have are
        left out.

    Returns
    -------
    dict, name -> Scanned

    Raises
    ------
    DataError
        As `scan`, or there is no common record.

    Examples
    --------
    >>> import pandas as pd
    >>> old, new = pd.Series(["a", "a", "a"], [1, 2, 3]), pd.Series(["b", "b"], [2, 3])
    >>> common = scan_common({"old": old, "new": new}, {1: "x", 2: "x", 3: "x"})
    >>> {name: (units.rows, units.unmatched) for name, units in common.items()}
    {'old': (2, 1), 'new': (2, 1)}
    """
    if foreign := [name for name, source in predictions.items() if has_own_database(source)]:
        raise DataError(
            f"{head(foreign)} has a database of its own: bring all predictions into one table or "
            "view with a column of releases, and use scan_releases with common=True"
        )
    labels, parts, frames = sampled_labels(labels), [], {}
    ids, second = frame_sources(frame, []), second_table(groups, attributes)
    with opened_together([*predictions.values(), *ids, *second], database) as tables:
        limit = Listed.of(tables[len(predictions)], record) if ids else frame
        variable = None
        for name, table in zip(predictions, tables, strict=False):
            column = cluster.get(name) if isinstance(cluster, Mapping) else cluster
            others = date_columns(frame)
            if groups is not None and not second and (variable is None or groups in table.columns()):
                others = tuple(dict.fromkeys((*others, groups)))
            chosen = chosen_columns(table, record, column, others)
            table.use(*chosen, *date_columns(frame))
            refuse_kinds(*(table.kind(column) for column in chosen))
            refuse_another_kind(labels, table.kind(chosen[0]))
            if groups is not None and variable is None:
                place = (tables[-1], record) if second else (replace(table), chosen[0])
                variable = GroupColumn.of_attributes(place[0], groups, place[1], (table, chosen[0]))
            if limit is not None:
                limits = Limits.of(table, labels, limit, chosen[0])
                flagged = f"SELECT {table.key(chosen[1])} AS c, {limits.flags} FROM {table.table}"
                frames[name] = limits.facts(table, f"({flagged}) AS p")[None]
                table = replace(table, table=inside_frame(table, limits, chosen[0]))
            parts.append((table, *chosen))
        whole = Prediction.of(united(parts), labels, "record", "cluster", "release", groups=variable)
        releases = whole.units(labels, blocks, missing, common=True)
    return {
        name: replace(releases[i], frame=frames.get(name), columns=parts[i][1:])
        for i, name in enumerate(predictions)
    }


def second_table(groups: str | None, attributes: Any) -> list[Any]:
    """Return the table of attributes as a list, which is empty if there is none.

    Raises
    ------
    DataError
        No column of groups is named, or the table has a database of its own.
    """
    if attributes is None:
        return []
    if groups is None:
        raise DataError("attributes have the column of groups: name it, groups=...")
    if has_own_database(attributes):
        raise DataError(
            "the table of attributes has a database of its own: give files, a table of a DuckDB database or "
            "a frame, or make a view of the prediction that has the column of groups"
        )
    return [attributes]


def refuse_different_records(predictions: Mapping[str, Scanned]) -> None:
    """Refuse scans of different records, since a comparison would take gaps for errors.

    Raises
    ------
    DataError
        The scans differ in their numbers of records, in digests of ids (if both have one), or in their
        labels.

    Examples
    --------
    >>> import pandas as pd
    >>> old, new = pd.Series(["a", "a", "b"], [1, 2, 3]), pd.Series(["c", "c", "c"], [1, 2, 3])
    >>> refuse_different_records({"old": scan(old, {1: "x"}), "new": scan(new, {1: "x"})})
    """
    (first_name, first), *others = predictions.items()
    for name, other in others:
        if first.rows != other.rows or len({first.digest, other.digest} - {None}) > 1:
            raise DataError(
                f"{first_name!r} and {name!r} cover different records, {first.rows:,} and {other.rows:,}",
                Remedy.DIFFERING,
            )
        if not first.ids.equals(other.ids):
            raise DataError(
                f"{first_name!r} and {name!r} are scans for different labels, or lack different ones"
            )


def inside_frame(database: Database, limits: Limits, record: str) -> str:
    """SQL of a prediction's table inside the frame. Records without an id stay, to be refused later."""
    missing = f"{database.quote(record)} IS NULL"
    return f"(SELECT * FROM {database.table} WHERE {limits.inside} OR {missing}) AS inside"


def date_columns(frame: Any) -> tuple[str, ...]:
    return (frame.column,) if isinstance(frame, Dated) else ()


def refuse_kinds(record: str | None, cluster: str | None) -> None:
    """Refuse ids that are neither strings nor integers."""
    for type, what in ((record, "record"), (cluster, "cluster")):
        if type not in {"string", "integer", None}:
            raise DataError(
                f"{what} ids of the prediction must be all strings or all integers, not "
                f"{type}; convert them to text where they lie"
            )


def refuse_another_kind(labels: Clustering, record: str | None) -> None:
    """Refuse labelled records whose ids are of another type than those of the prediction."""
    labelled = kind(labels.records)
    same_kind(record or labelled, labelled)


def chosen_columns(
    database: Database, record: str | None, cluster: str | None, others: tuple[str, ...]
) -> tuple[str, str]:
    """Return the columns of records and of clusters: those named, or the only two that are not."""
    columns = database.columns()
    named = [c for c in (record, cluster, *others) if c is not None]
    choices = dict.fromkeys((c for c in (record, cluster) if c is not None), Remedy.SCANNED_COLUMNS)
    refuse_names(named, columns or named, "the prediction", choices)
    missing = [record, cluster].count(None)
    unnamed = [c for c in columns if c not in named and c not in database.by_folder]
    if missing and len(unnamed) > missing:
        raise DataError(
            f"the prediction has {len(columns)} columns, {head(columns, 20)}, instead of 2",
            Remedy.SCANNED_COLUMNS,
        )
    free = iter(unnamed)
    record, cluster = (name if name is not None else next(free, None) for name in (record, cluster))
    if record is None or cluster is None:
        raise DataError(
            "name the record and the cluster column of the prediction"
            + (f"; it has {head(columns, 20)}" if columns else "")
        )
    return record, cluster


@dataclass(frozen=True, slots=True)
class Prediction:
    """A prediction inside its frame, as a table of keys.

    Attributes
    ----------
    source : str
        SQL of the rows inside the frame, with the original ids.
    frames : dict, release -> FrameFacts
        Counts of what the frame leaves of each release; empty without a frame.
    table : str
        SQL of the keys of these rows: r of the record, c of the cluster and, if there are releases, v, or
        groups, g, or second clusterings, their columns.
    groups : GroupColumn or None
    seconds : tuple of SecondColumn
    """

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
        select += "" if release is None else f", {database.quote(release)} AS v"
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

    def units(
        self, labels: Clustering, blocks: Any, missing: Missing, common: bool = False
    ) -> dict[Any, Scanned]:
        """Count the units of each release."""
        self.refuse_repeats()
        records = self.count()
        if common:
            shared = self.common(len(records))
            return shared.units(labels, blocks, missing if shared.count() == records else Missing.OMIT)
        clusters = self.clusters(labels.records.tolist())
        touched = list({key for keys in clusters.values() for key in keys.values()})
        inside = self.database.listed(touched) if touched else []
        within = [f"r IN (SELECT r FROM {self.table} WHERE c IN ({i}))" for i in inside]
        which = f"{len(touched)} predicted clusters that the labels touch"
        checked = self.refuse_duplicates(within, which)
        sizes = self.sizes(touched)
        values = self.groups_of(labels.records.tolist(), records)
        self.refuse_gaps(sum(rows for rows, _ in records.values()))
        places = [self.places(second, labels.records.tolist(), clusters[None]) for second in self.seconds]
        self.database.forget(self.table, "r")
        known = self.histogram(records)
        compositions = {}
        if self.groups is not None:
            compositions = composed(self.database, self.table, bool(self.by), self.groups, touched)
        for v, (rows, _) in records.items():
            self.refuse_changes(rows, set(clusters[v].values()), sizes[v], known[v])
        keys = self.database.keys(self.record, labels.records.tolist())
        position = dict(zip(keys, position_in_labels(labels, pd.Index(list(keys.values()))), strict=True))
        entity = position_in_labels(labels, labels.clusters)
        units = {}
        for v, (rows, digest) in records.items():
            code = {key: i for i, key in enumerate(sizes[v])}
            cluster = np.full(len(labels.records), -1, dtype=np.int64)
            cluster[list(clusters[v])] = [code[key] for key in clusters[v].values()]
            size = np.array(list(sizes[v].values()), dtype=np.int64)
            named = np.array([*(position.get(c, -1) for c in sizes[v]), -1], dtype=np.int64)[cluster]
            refuse_edges(labels, cluster, named, np.where(entity < 0, -1, cluster[entity]), size, rows)
            if missing is Missing.ERROR:
                self.refuse_other_writing(labels.records[cluster < 0])
            counted = assemble(labels, cluster, size, known[v], blocks=blocks, missing=missing)
            groupings = counted.groupings
            if self.groups is not None:
                predicted = compositions[v]
                kinds = np.array([*(predicted.place.get(c, -1) for c in code), -1], dtype=np.int64)[cluster]
                groupings = (self.grouping(counted, values[v], predicted, pd.Series(kinds, labels.records)),)
            seconds = tuple(
                joint(self.database, self.table, second, of_record, rows)
                for second, of_record in zip(self.seconds, places, strict=True)
            )
            units[v] = Scanned(
                **counted.__getstate__() | {"frame": self.frames.get(v), "groupings": groupings},
                rows=rows,
                checked=checked,
                digest=digest,
                columns=(self.record, self.cluster),
                seconds=seconds,
            )
        return units

    def count(self) -> dict[Any, tuple[int, int | None]]:
        """Count the records of each release, and make a digest of their ids.

        Raises
        ------
        DataError
            Missing ids, no record.
        """
        grouped = " GROUP BY v" if self.by else ""
        columns = f"{self.by}COUNT(*), COUNT(r), COUNT(c), {self.database.digest('r')}"
        counted = list(self.rows(f"SELECT {columns} FROM {self.table}{grouped}"))
        total, records, clusters = (sum(int(row[i]) for row in counted) for i in (1, 2, 3))
        unnamed = sum(int(rows) for v, rows, *_ in counted if v is None) if self.release else 0
        self.refuse_missing(total, records, clusters, unnamed)
        return {v: (int(rows), digest) for v, rows, *_, digest in counted}

    def refuse_missing(self, total: int, records: int, clusters: int, unnamed: int = 0) -> None:
        """Refuse missing ids, by the number of rows and those of ids that are there.

        Raises
        ------
        DataError
            Missing ids, or no row.
        """
        absent = [
            ("record", self.record, total - records),
            ("cluster", self.cluster, total - clusters),
            ("release", self.release, unnamed),
        ]
        for what, column, number in absent:
            if column and number:
                other = self.cluster if column == self.record else self.record
                raise DataError(
                    f"{what} ids of the prediction: {number} of {total} are missing"
                    + self.examples(other, f"{self.database.quote(column)} IS NULL")
                )
        if not total:
            raise DataError(
                "no record is in every prediction" if self.release else "the prediction holds no record"
            )

    def common(self, releases: int) -> Prediction:
        """Return the prediction on the records that every release covers."""
        inside = f"SELECT r FROM {self.table} GROUP BY r HAVING COUNT(DISTINCT v) = {releases}"
        columns = "r, c, v" if self.groups is None else "r, c, v, g"
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

    def places(
        self, second: SecondColumn, ids: list[Any], clusters: Mapping[int, Any]
    ) -> dict[Any, tuple[Any, Any]]:
        """Keys of both clusters of each labelled record that the prediction has, by record."""
        keys = self.database.keys(self.record, ids)
        own = {
            keys[r]: s
            for inside in self.database.listed(list(keys))
            for r, s in self.rows_of(second, f"r IN ({inside})")
        }
        return {ids[i]: (c, own[ids[i]]) for i, c in sorted(clusters.items())}

    def rows_of(self, second: SecondColumn, condition: str) -> list[tuple[Any, ...]]:
        """Keys of records and of their clusters in a second clustering, if they meet a condition."""
        return self.database.rows(f"SELECT DISTINCT r, {second.column} FROM {self.table} WHERE {condition}")

    def refuse_gaps(self, rows: int) -> None:
        """Refuse second clusterings that lack records of the prediction.

        Raises
        ------
        DataError
            Records without a cluster in a second clustering.
        """
        for second in self.seconds:
            ((lacking, *ends),) = self.database.rows(
                f"SELECT COUNT(*), MIN(r), MAX(r) FROM {self.table} WHERE {second.column} IS NULL"
            )
            if lacking:
                refuse_lacking(int(lacking), rows, second.name, self.named(ends))

    def refuse_repeats(self) -> None:
        """Refuse second tables that have a record of the prediction twice.

        Raises
        ------
        DataError
            The join of the second tables has more rows than the prediction.
        """
        joined = [second for second in self.seconds if second.joined is not None]
        if not joined:
            return
        before, after = (
            int(self.database.rows(f"SELECT COUNT(*) FROM {table}")[0][0])
            for table in (self.source, self.table)
        )
        for second in joined if after != before else ():
            several = f"SELECT r, COUNT(*) AS k FROM {second.joined} GROUP BY r"
            ((repeats, *ends),) = self.database.rows(
                f"SELECT SUM(k - 1), MIN(r), MAX(r) FROM ({several}) AS t "
                f"WHERE k > 1 AND r IN (SELECT r FROM {self.table})"
            )
            if repeats:
                raise DataError(
                    f"record ids of the second clustering {second.name!r}: {repeats} duplicates, such as "
                    f"{head(self.named(ends))}"
                )

    def named(self, keys: Iterable[Any]) -> list[Any]:
        """Record ids of some keys."""
        key = self.database.key(self.record)
        return self.originals(f"{key} IN ({inside})" for inside in self.database.listed([*set(keys)]))

    def grouping(
        self, units: Units, values: Mapping[Any, int], found: Composed, kinds: pd.Series
    ) -> Grouping:
        """Return the split of pieces by the group variable; `kinds` are of the labelled records' clusters.

        Raises
        ------
        DataError
            If labelled records have no group, or the table changed.
        """
        assert self.groups is not None and units.piece_of is not None
        name = self.groups.name
        codes = np.array(list(values.values()), dtype=np.int64)
        variable = Variable(name, pd.Index(list(values)), codes, self.groups.values)
        counted, predicted = piece_values(variable, Of.RECORDS, units), None
        if found.predicted is not None and units.population is not None:
            place = np.zeros(len(units.n), dtype=np.int64)
            place[units.piece_of] = kinds.loc[units.piece_of.index]
            predicted = replace(found.predicted, place=place)
            same = predicted.m @ predicted.count == units.population
            if not same or (predicted.m[place] != units.m).any():
                raise DataError(
                    "the prediction changed while it was scanned: groups do not add up to its clusters. "
                    "Scan a copy or a version of it, or all in one transaction of isolation REPEATABLE READ"
                )
        return Grouping(name, self.groups.values, counted, predicted, found.unknown)

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

    def refuse_changes(
        self, rows: int, touched: set[Any], sizes: Mapping[Any, int], known: KnownTotals
    ) -> None:
        """Refuse counts that contradict each other. Every statement reads the table anew, which may change.

        Raises
        ------
        DataError
            The clusters' sizes do not add up to the number of records, or a cluster that the labels touch has
            no size, or a size that no cluster has.
        """
        total = int(known.size @ known.count)
        clusters = dict(zip(known.size.tolist(), known.count.tolist(), strict=True))
        labelled_sizes = Counter(sizes.get(cluster, 0) for cluster in touched)
        change = ""
        if total != rows:
            change = f"{rows:,} records were counted, and then {total:,} in all clusters"
        elif any(number > clusters.get(size, 0) for size, number in labelled_sizes.items()):
            change = "a cluster that the labels touch has a size that no cluster has"
        if change:
            raise DataError(
                f"the prediction changed while it was scanned: {change}. Scan a copy or a version of it, "
                "or all in one transaction of isolation REPEATABLE READ"
            )

    def refuse_duplicates(self, within: Iterable[str], which: str) -> str:
        """Refuse duplicate record ids. Return the records among which they were looked for, in words.

        Parameters
        ----------
        within : iterable of str
            Conditions on r. All records that meet one of them are looked at.
        which : str
            The predicted clusters of these records, in words.

        Raises
        ------
        DataError
            There are duplicates.
        """
        database = self.database
        share, where, checked = database.share("r"), "", "all record ids"
        if share is not None:
            where = " WHERE " + " OR ".join([share, *within])
            checked = f"all records of the {which} and one in {database.one_in} of the others"
        several = f"SELECT {self.by}r, COUNT(*) AS k FROM {self.table}{where} GROUP BY {self.by}r"
        ((repeats, *ends),) = database.rows(
            f"SELECT SUM(k - 1), MIN(r), MAX(r) FROM ({several}) AS s WHERE k > 1"
        )
        if repeats:
            raise DataError(
                f"record ids of the prediction: {repeats} duplicates, such as {head(self.named(ends))}, "
                f"among {checked}"
            )
        return checked

    def refuse_other_writing(self, lacking: pd.Index) -> None:
        """Refuse labelled records that the prediction has in another case or with other blanks."""
        if not len(lacking) or not isinstance(lacking[0], str):
            return
        plain_ids = [r.strip().lower() for r in lacking[:HINTED]]
        plain = f"LOWER(TRIM({self.database.id(self.record)}))"
        alike = self.originals(f"{plain} IN ({inside})" for inside in self.database.listed(plain_ids))
        if alike:
            raise DataError(
                f"{len(lacking)} labelled records are not in the prediction, such as {head(lacking)}; but "
                f"{len(alike)} ids there differ from these in case or blanks only, such as {head(alike)}: "
                "bring both to one form"
            )
