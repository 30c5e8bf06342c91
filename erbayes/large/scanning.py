"""Units of a prediction too large for memory, counted where it is.

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
from ..units.measuring import need_policy, sampled_labels
from .choice import Columns, refuse_another_kind, refuse_kinds, use_columns
from .counted import Scanned, count_units
from .database import Database
from .duckdb import DuckDB, united
from .frame import Listed, frame_sources
from .groups import GroupColumn, GroupSource
from .keys import Prediction
from .sources import has_own_database, opened, opened_together

EMBEDDED = DuckDB()
TWO_COLUMNS = Columns()
FRAME, GROUPS = "frame", "groups"
"""Roles of sources next to predictions."""


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
    missing: Missing | str = ...,
    frame: Any = ...,
    groups: str | GroupSource | None = ...,
    database: DuckDB = ...,
) -> dict[Any, Scanned]: ...
@overload
def scan(
    source: Any,
    labels: Any,
    columns: Columns = ...,
    *,
    blocks: Any = ...,
    missing: Missing | str = ...,
    frame: Any = ...,
    groups: str | GroupSource | None = ...,
    database: DuckDB = ...,
) -> Scanned: ...
def scan(
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
        One row per record of the population. A path is a file, a folder or a pattern. `Releases` has several
        predictions in one table. A mapping of names to sources that DuckDB reads restricts them to the
        records that they share: labelled records that not all of them have are left out.
    columns : Columns
        Columns of the source; by default its only two.
    labels, blocks, missing
        As in `erbayes.measure`.
    frame : record ids, an older prediction, path, `Files`, `DatabaseTable` or dataset, optional
        As in `erbayes.measure`. The ids of a file, a table or a dataset are in its column `columns.record`,
        or else in its first. A source with a database of its own takes none: scan a view of its records.
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
        A dict has the releases in increasing order, or the names of the mapping.

    Raises
    ------
    DataError
        As `erbayes.measure`, if groups do not fit the records, or if several predictions have no common
        record. Duplicate record ids are looked for among all records of the
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
    common = missing in (Missing.COMMON, Missing.COMMON.value) and isinstance(source, Mapping)
    # a mapping is judged on common records in any case
    missing = need_policy(Missing.ERROR if common else missing)
    asked = _Asked(sampled_labels(labels), columns, blocks, missing, frame, GroupSource.of(groups), database)
    if isinstance(source, Mapping):
        return asked.count_shared(source)
    if isinstance(source, Releases):
        return asked.count_table(source)
    (units,) = asked.count_table(Releases(source, "")).values()
    return units


@dataclass(frozen=True, slots=True)
class _Asked:
    """The arguments of a scan, as in `scan`."""

    labels: Clustering
    columns: Columns
    blocks: Any
    missing: Missing
    frame: Any
    groups: GroupSource | None
    database: DuckDB

    @property
    def own_groups(self) -> str | None:
        """Return the column of predictions that has groups, None if there is none."""
        return None if self.groups is None or self.groups.source is not None else self.groups.group

    def list_sources(self, predictions: Iterable[Any]) -> dict[str, Any]:
        """Return what is opened next to the predictions, by its role."""
        predictions = list(predictions)
        sources: dict[str, Any] = {}
        for ids in frame_sources(self.frame, predictions):
            sources[FRAME] = ids
        if self.groups is not None and self.groups.source is not None:
            if any(map(has_own_database, predictions)):
                raise DataError(
                    "a table with a database of its own takes no second table of attributes: make a view of "
                    "the prediction that has the column of groups"
                )
            sources[GROUPS] = self.groups.source
        return sources

    def count_table(self, releases: Releases) -> dict[Any, Scanned]:
        """Count the releases of one table; their column is "" if the table is one prediction."""
        release = releases.column or None
        others = tuple(column for column in (release, self.own_groups) if column is not None)
        sources = self.list_sources([releases.source])
        with opened([releases.source, *sources.values()], self.database) as (table, *further):
            chosen = use_columns(table, self.columns.record, self.columns.cluster_of(""), others)
            places = dict(zip(sources, further, strict=True))
            return self._count(table, (*chosen, release), places, (table, chosen[0]), releases.common)

    def count_shared(self, predictions: Mapping[str, Any]) -> dict[str, Scanned]:
        """Count several predictions, restricted to the records that they share."""
        if foreign := [name for name, source in predictions.items() if has_own_database(source)]:
            raise DataError(
                f"{head(foreign)} has a database of its own: bring all predictions into one table or "
                "view with a column of releases, and scan Releases(view, column, common=True)"
            )
        sources, parts = self.list_sources([]), []
        with opened_together([*predictions.values(), *sources.values()], self.database) as tables:
            for i, (name, table) in enumerate(zip(predictions, tables, strict=False)):
                # the groups of the first prediction serve all, whether others have them too or not
                groups = self.own_groups
                taken = (groups,) if groups is not None and (i == 0 or groups in table.columns()) else ()
                chosen = use_columns(table, self.columns.record, self.columns.cluster_of(name), taken)
                refuse_kinds(*(table.kind(column) for column in chosen))
                refuse_another_kind(self.labels, table.kind(chosen[0]))
                parts.append((table, *chosen))
            places: dict[str, Database] = dict(zip(sources, tables[len(predictions) :], strict=True))
            first = parts[0][0], parts[0][1]
            if self.own_groups is not None:
                places[GROUPS] = replace(first[0])
            whole, columns = united(parts)
            names = dict(enumerate(predictions))
            releases = self._count(whole, columns, places, first, True, names)
        return {name: replace(releases[i], columns=parts[i][1:]) for i, name in names.items()}

    def _count(
        self,
        table: Database,
        columns: tuple[str, str, str | None],
        places: Mapping[str, Database],
        like: tuple[Database, str],
        common: bool,
        names: Mapping[Any, str] | None = None,
    ) -> dict[Any, Scanned]:
        """Count the releases of an opened table. Record ids at `places` have the type of a column `like`."""
        frame = Listed.of(places[FRAME], self.columns.record) if FRAME in places else None
        groups = None
        if GROUPS in places and self.groups is not None:
            record = self.columns.record if self.groups.source is not None else like[1]
            groups = GroupColumn.of_attributes(places[GROUPS], self.groups.group, record, like)
        elif self.groups is not None:
            groups = GroupColumn.of(table, self.groups.group)
        prediction = Prediction.of(table, self.labels, columns, frame=frame, groups=groups, names=names)
        any_id = self.columns.any_id
        return count_units(prediction, self.labels, self.blocks, self.missing, common=common, any_id=any_id)


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
