"""Units of a prediction too large for memory, counted where it lies.

Every database runs the same SQL of COUNT, GROUP BY and IN. It returns only the labelled records, the sizes of
the clusters that they touch, and the histogram of all predicted cluster sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, overload

from .._internal.errors import DataError, Remedy, head, need
from .._internal.policies import Missing
from ..units.clustering import Clustering
from ..units.frame import FrameFacts
from ..units.measuring import refuse_policy, sampled_labels
from .choice import Columns, chosen_columns, date_columns, refuse_another_kind, refuse_kinds
from .counted import Scanned, count_units
from .database import Database
from .duckdb import DuckDB, DuckTable, united
from .frame import Limit, Limits, Listed, frame_sources, inside_frame
from .groups import GroupColumn, GroupSource
from .joint import SecondColumn, SecondSource, refuse_kept
from .keys import Prediction
from .sources import has_own_database, opened, opened_together

EMBEDDED = DuckDB()
TWO_COLUMNS = Columns()


@dataclass(frozen=True, slots=True)
class Releases:
    """Several predictions in one table, by the value of a column.

    Parameters
    ----------
    source : as in `scan`
    column : str
        Names the prediction of each row. Folders called "release=2021" make such a column, of text.
    common : bool
        True restricts the predictions to the records that they share (`erbayes.Missing.COMMON`). Other
        labelled records are left out.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"r": [1, 2, 1, 2], "c": ["a", "a", "a", "b"], "year": [1, 1, 2, 2]})
    >>> years = scan(Releases(table, "year"), {1: "x", 2: "x"})
    >>> {year: float(units.table().common_links.sum()) for year, units in years.items()}
    {1: 1.0, 2: 0.0}
    """

    source: Any
    column: str
    common: bool = False


@overload
def scan(
    source: Releases | Mapping[str, Any],
    labels: Any,
    columns: Columns = ...,
    *,
    blocks: Any = ...,
    missing: Missing = ...,
    frame: Any = ...,
    groups: str | GroupSource | None = ...,
    seconds: Mapping[str, SecondSource] | None = ...,
    database: DuckDB = ...,
) -> dict[Any, Scanned]: ...
@overload
def scan(
    source: Any,
    labels: Any,
    columns: Columns = ...,
    *,
    blocks: Any = ...,
    missing: Missing = ...,
    frame: Any = ...,
    groups: str | GroupSource | None = ...,
    seconds: Mapping[str, SecondSource] | None = ...,
    database: DuckDB = ...,
) -> Scanned: ...
def scan(
    source: Any,
    labels: Any,
    columns: Columns = TWO_COLUMNS,
    *,
    blocks: Any = None,
    missing: Missing = Missing.ERROR,
    frame: Any = None,
    groups: str | GroupSource | None = None,
    seconds: Mapping[str, SecondSource] | None = None,
    database: DuckDB = EMBEDDED,
) -> Any:
    """Make units as `erbayes.measure` does, from predictions that need not fit in memory.

    Parameters
    ----------
    source : path, `Files`, `DatabaseTable`, frame, dataset, DuckDB relation, table of Spark or Ibis, `RunSQL`
        One row per record of the population. A path is a file, a folder or a pattern. `Releases` has several
        predictions in one table. A mapping of names to sources that DuckDB reads restricts them to the
        records that they share: labelled records that not all of them have are left out.
    columns : Columns
        Columns of the source; by default its only two.
    labels, blocks, missing
        As in `erbayes.measure`.
    frame : Dated, record ids, an older prediction, path, `Files`, `DatabaseTable` or dataset, optional
        As in `erbayes.measure`. The ids of a file, a table or a dataset are in its column `columns.record`,
        or else in its first. A source with a database of its own takes `erbayes.Dated` only.
    groups : str or GroupSource, optional
        Column with the group of each record, for `erbayes.by_domain(sample, groups)`, in the source (the
        first of several) or in a second table. Totals of groups are then known. If records have no group,
        their number is in `Grouping.unknown`, and totals are estimated.
    seconds : mapping, name -> SecondSource, optional
        Second clusterings of the same records, counted together with the prediction (see
        `erbayes.auxiliary.Second.scanned`). A second table serves every prediction, and a column is one of
        each. A source with a database of its own takes columns only.
    database : DuckDB
        The database that reads files, database tables, frames and datasets. A relation, tables of Ibis and
        Spark, and `RunSQL` have databases of their own.

    Returns
    -------
    Scanned, or dict of Scanned
        A dict has the releases in increasing order, or the names of the mapping.

    Raises
    ------
    DataError
        As `erbayes.measure`, if groups or second clusterings do not fit the records, or if several
        predictions have no common record. Duplicate record ids are looked for among all records of the
        clusters that the labels touch, and among a share of the others (`Scanned.checked`).

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
    if missing is Missing.COMMON and isinstance(source, Mapping):
        missing = Missing.ERROR  # a mapping is judged on common records in any case
    refuse_policy(missing)
    wanted = _need_seconds(seconds, missing)
    asked = _Asked(
        sampled_labels(labels), columns, blocks, missing, frame, GroupSource.of(groups), wanted, database
    )
    if isinstance(source, Mapping):
        return asked.count_shared(source)
    if isinstance(source, Releases):
        return asked.count_table(source)
    (units,) = asked.count_table(Releases(source, "")).values()
    return units


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a scan was asked for, as in `scan`."""

    labels: Clustering
    columns: Columns
    blocks: Any
    missing: Missing
    frame: Any
    groups: GroupSource | None
    seconds: dict[str, SecondSource]
    database: DuckDB

    @property
    def attributes(self) -> list[Any]:
        """Return the table of groups, if it is a second one."""
        return [] if self.groups is None or self.groups.source is None else [self.groups.source]

    @property
    def own_seconds(self) -> tuple[str, ...]:
        """Return the columns of predictions that are second clusterings."""
        return tuple(dict.fromkeys(str(s.cluster) for s in self.seconds.values() if s.source is None))

    def count_table(self, releases: Releases) -> dict[Any, Scanned]:
        """Count the releases of one table; their column is "" if the table is one prediction."""
        source, release, columns = releases.source, releases.column or None, self.columns
        ids, attributes = frame_sources(self.frame, [source]), self.attributes
        if attributes and has_own_database(source):
            raise DataError(
                "a table with a database of its own takes no second table of attributes: make a view of the "
                "prediction that has the column of groups"
            )
        beside = _list_sources(self.seconds, [source])
        own_groups = None if self.groups is None or attributes else self.groups.group
        further_columns = (release, own_groups, *date_columns(self.frame), *self.own_seconds)
        others = tuple(dict.fromkeys(name for name in further_columns if name is not None))
        with opened([source, *ids, *attributes, *beside.values()], self.database) as (table, *further):
            limit = Listed.of(further[0], columns.record) if ids else self.frame
            chosen = chosen_columns(table, columns.record, columns.cluster_of(""), others)
            table.use(*chosen, *others)
            variable = None
            if own_groups is not None:
                variable = GroupColumn.of(table, own_groups)
            elif self.groups is not None:
                place = further[len(ids)], self.groups.group, columns.record
                variable = GroupColumn.of_attributes(*place, (table, chosen[0]))
            places = dict(zip(beside, further[len(ids) + len(attributes) :], strict=True))
            opened_seconds = _open_second_columns(self.seconds, places, (table, chosen[0]), table)
            prediction = Prediction.of(
                table, self.labels, *chosen, release, limit=limit, groups=variable, seconds=opened_seconds
            )
            return self._count_units(prediction, releases.common)

    def count_shared(self, predictions: Mapping[str, Any]) -> dict[str, Scanned]:
        """Count several predictions, restricted to the records that they share."""
        if foreign := [name for name, source in predictions.items() if has_own_database(source)]:
            raise DataError(
                f"{head(foreign)} has a database of its own: bring all predictions into one table or "
                "view with a column of releases, and scan Releases(view, column, common=True)"
            )
        parts, frames, record = [], {}, self.columns.record
        beside, ids = _list_sources(self.seconds, []), frame_sources(self.frame, [])
        read_too = tuple(dict.fromkeys((*date_columns(self.frame), *self.own_seconds)))
        sources = [*predictions.values(), *ids, *self.attributes, *beside.values()]
        with opened_together(sources, self.database) as tables:
            further = tables[len(predictions) :]
            limit = Listed.of(further[0], record) if ids else self.frame
            variable = None
            for name, table in zip(predictions, tables, strict=False):
                others = read_too
                if self.groups is not None and not self.attributes:
                    group = self.groups.group
                    if variable is None or group in table.columns():
                        others = tuple(dict.fromkeys((*others, group)))
                chosen = chosen_columns(table, record, self.columns.cluster_of(name), others)
                table.use(*chosen, *read_too)
                refuse_kinds(*(table.kind(column) for column in chosen))
                refuse_another_kind(self.labels, table.kind(chosen[0]))
                for of_second in self.own_seconds:
                    SecondColumn.of(table, of_second, of_second, 0)
                if self.groups is not None and variable is None:
                    place = (further[len(ids)], record) if self.attributes else (replace(table), chosen[0])
                    variable = GroupColumn.of_attributes(
                        place[0], self.groups.group, place[1], (table, chosen[0])
                    )
                table, facts = _limit_table(table, chosen, self.labels, limit)
                frames[name] = facts
                parts.append((table, *chosen))
            whole = united(parts, self.own_seconds)
            places = dict(zip(beside, further[len(ids) + len(self.attributes) :], strict=True))
            names = {column: f"further{j}" for j, column in enumerate(self.own_seconds)}
            opened_seconds = _open_second_columns(self.seconds, places, parts[0][:2], whole, names)
            prediction = Prediction.of(
                whole, self.labels, "record", "cluster", "release", groups=variable, seconds=opened_seconds
            )
            releases = self._count_units(prediction, common=True)
        return {
            name: replace(releases[i], frame=frames[name], columns=parts[i][1:])
            for i, name in enumerate(predictions)
        }

    def _count_units(self, prediction: Prediction, common: bool) -> dict[Any, Scanned]:
        any_id = self.columns.any_id
        return count_units(prediction, self.labels, self.blocks, self.missing, common=common, any_id=any_id)


def _limit_table(
    table: DuckTable, chosen: tuple[str, str], labels: Clustering, limit: Limit
) -> tuple[DuckTable, FrameFacts | None]:
    """Return a prediction inside a frame, and what the frame leaves of it."""
    if limit is None:
        return table, None
    limits = Limits.of(table, labels, limit, chosen[0])
    flagged = f"SELECT {table.key(chosen[1])} AS c, {limits.flags} FROM {table.table}"
    facts = limits.facts(table, f"({flagged}) AS p")[None]
    return replace(table, table=inside_frame(table, limits, chosen[0])), facts


def _need_seconds(seconds: Mapping[str, SecondSource] | None, missing: Missing) -> dict[str, SecondSource]:
    """Refuse second clusterings that are none."""
    if seconds is None:
        return {}
    if not isinstance(seconds, Mapping):
        raise DataError(
            f"seconds must map names to second clusterings, as in {{'new': SecondSource('new.parquet')}}, "
            f"not be a {type(seconds).__name__}"
        )
    for name, second in seconds.items():
        need(second, SecondSource, f"seconds[{name!r}] must be a SecondSource(source, cluster=...)")
    if seconds:
        refuse_kept(missing)
    return {str(name): second for name, second in seconds.items()}


def _list_sources(seconds: Mapping[str, SecondSource], predictions: Iterable[Any]) -> dict[str, Any]:
    """Return the second tables, by name, none of which may have a database of its own."""
    beside = {name: second.source for name, second in seconds.items() if second.source is not None}
    if beside and any(map(has_own_database, [*predictions, *beside.values()])):
        raise DataError(
            f"a table with a database of its own takes no second table, such as that of {head([*beside])}: "
            "make a view of the prediction that has the clusters as a column, SecondSource(cluster=...)"
        )
    return beside


def _open_second_columns(
    seconds: Mapping[str, SecondSource],
    places: Mapping[str, Database],
    prediction: tuple[Database, str],
    table: Database,
    names: Mapping[str, str] | None = None,
) -> tuple[SecondColumn, ...]:
    """Open second clusterings: those at `places`, or columns of `table`, which may have other `names`."""
    return tuple(
        SecondColumn.of_table(places[name], name, second, i, prediction)
        if name in places
        else SecondColumn.of(table, name, (names or {}).get(str(second.cluster), str(second.cluster)), i)
        for i, (name, second) in enumerate(seconds.items())
    )


def refuse_different_records(predictions: Mapping[str, Scanned]) -> None:
    """Refuse scans of different records or labels, since a comparison would take gaps for errors."""
    (first_name, first), *others = predictions.items()
    for name, other in others:
        if first.rows != other.rows or len({first.digest, other.digest} - {None}) > 1:
            raise DataError(
                f"{first_name!r} and {name!r} cover different records, {first.rows:,} and {other.rows:,}",
                Remedy.DIFFERING,
            )
        if not first.ids.equals(other.ids):
            raise DataError(
                f"{first_name!r} and {name!r} are scans for different labels, or leave out different ones"
            )
