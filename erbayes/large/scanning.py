"""Units of a prediction too large for memory, counted where it lies.

Every database runs the same SQL of COUNT, GROUP BY and IN. It returns only the labelled records, the sizes of
the clusters that they touch, and the histogram of all predicted cluster sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from .._internal.errors import DataError, Remedy, head, need
from .._internal.policies import Missing
from ..units.measuring import sampled_labels
from .choice import chosen_columns, date_columns, refuse_another_kind, refuse_kinds, second_table
from .counted import Scanned, count_units
from .database import Database
from .duckdb import DuckDB, united
from .frame import Limits, Listed, frame_sources, inside_frame
from .groups import GroupColumn
from .joint import SecondColumn, SecondSource, refuse_kept
from .keys import Prediction
from .sources import has_own_database, opened, opened_together

EMBEDDED = DuckDB()


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
    any_id: bool = False,
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
    any_id : bool
        True takes every id for that of a real cluster, also ids such as -1 and "NULL" that usually stand for
        none (see `erbayes.Clustering.of`). Labels have their own: `Clustering.of(labels, any_id=True)`.
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
        any_id=any_id,
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
    any_id: bool = False,
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
    source, labels, record, cluster, blocks, missing, frame, groups, attributes, any_id, database
        As in `scan`.
    seconds : mapping, name -> SecondSource, optional
        As in `scan`. A second table serves every release. A column has a cluster in each row.

    Returns
    -------
    dict, release -> Scanned
        In increasing order of the releases. Without a column of releases its only key is None.

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
    wanted = _need_seconds(seconds, missing)
    others = tuple(name for name in (release, own_groups, *date_columns(frame)) if name is not None)
    others = tuple(dict.fromkeys((*others, *_list_own_columns(wanted))))
    ids, tables = frame_sources(frame, [source]), second_table(groups, attributes)
    if tables and has_own_database(source):
        raise DataError(
            "a table with a database of its own takes no second table of attributes: make a view of the "
            "prediction that has the column of groups"
        )
    beside = _list_sources(wanted, [source])
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
        columns = _open_second_columns(wanted, places, (table, chosen[0]), table)
        prediction = Prediction.of(
            table, labels, *chosen, release, limit=limit, groups=variable, seconds=columns
        )
        return count_units(prediction, labels, blocks, missing, common=common, any_id=any_id)


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
    seconds: Mapping[str, SecondSource] | None = None,
    any_id: bool = False,
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
    seconds : mapping, name -> SecondSource, optional
        As in `scan`, for the records that the predictions share. A column is one of each prediction.
    labels, record, blocks, missing, frame, attributes, any_id, database
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
    wanted = _need_seconds(seconds, missing)
    beside, own_seconds = _list_sources(wanted, []), _list_own_columns(wanted)
    ids, second = frame_sources(frame, []), second_table(groups, attributes)
    read_too = tuple(dict.fromkeys((*date_columns(frame), *own_seconds)))
    with opened_together([*predictions.values(), *ids, *second, *beside.values()], database) as tables:
        further = tables[len(predictions) :]
        limit = Listed.of(further[0], record) if ids else frame
        variable = None
        for name, table in zip(predictions, tables, strict=False):
            column = cluster.get(name) if isinstance(cluster, Mapping) else cluster
            others = read_too
            if groups is not None and not second and (variable is None or groups in table.columns()):
                others = tuple(dict.fromkeys((*others, groups)))
            chosen = chosen_columns(table, record, column, others)
            table.use(*chosen, *read_too)
            refuse_kinds(*(table.kind(column) for column in chosen))
            refuse_another_kind(labels, table.kind(chosen[0]))
            for of_second in own_seconds:
                SecondColumn.of(table, of_second, of_second, 0)
            if groups is not None and variable is None:
                place = (further[len(ids)], record) if second else (replace(table), chosen[0])
                variable = GroupColumn.of_attributes(place[0], groups, place[1], (table, chosen[0]))
            if limit is not None:
                limits = Limits.of(table, labels, limit, chosen[0])
                flagged = f"SELECT {table.key(chosen[1])} AS c, {limits.flags} FROM {table.table}"
                frames[name] = limits.facts(table, f"({flagged}) AS p")[None]
                table = replace(table, table=inside_frame(table, limits, chosen[0]))
            parts.append((table, *chosen))
        whole = united(parts, own_seconds)
        places = dict(zip(beside, further[len(ids) + len(second) :], strict=True))
        names = {column: f"further{j}" for j, column in enumerate(own_seconds)}
        columns = _open_second_columns(wanted, places, parts[0][:2], whole, names)
        prediction = Prediction.of(
            whole, labels, "record", "cluster", "release", groups=variable, seconds=columns
        )
        releases = count_units(prediction, labels, blocks, missing, common=True, any_id=any_id)
    return {
        name: replace(releases[i], frame=frames.get(name), columns=parts[i][1:])
        for i, name in enumerate(predictions)
    }


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


def _list_own_columns(seconds: Mapping[str, SecondSource]) -> tuple[str, ...]:
    """Return the columns of predictions that are second clusterings."""
    return tuple(dict.fromkeys(str(second.cluster) for second in seconds.values() if second.source is None))


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
