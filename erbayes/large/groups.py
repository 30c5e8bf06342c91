"""A group variable of a scan: a column of the scanned table, or of a second one."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from .._internal.errors import DataError, head, need
from .._internal.known_columns import choose_record
from .._internal.tables import refuse_names
from ..units.grouping import GroupedClusters, discrete
from .database import ByRelease, Database, refuse_unlike
from .sources import has_own_database

LARGEST = 10_000
"""Largest number of values of a group variable that a scan reads. One with more is rather an id."""


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

    @classmethod
    def of(cls, groups: str | GroupSource | None) -> GroupSource | None:
        """Return where groups are; the source is None for a column of the prediction."""
        return cls(None, groups) if isinstance(groups, str) else groups


@dataclass(frozen=True, slots=True)
class GroupColumn:
    """A column with the group of each record: its distinct values, sorted, (G,), and the position of each."""

    name: str
    key: str
    joined: str | None
    values: pd.Index
    codes: dict[Any, int]

    column: ClassVar[str] = "g"

    @classmethod
    def of(cls, database: Database, name: str) -> GroupColumn:
        """Take a column of the prediction, after `Database.use`."""
        value = database.value(name)
        key = database.key_of(name, value)
        found = f"SELECT DISTINCT {key} AS g, {value} AS x FROM {database.table} WHERE {value} IS NOT NULL"
        # one more than allowed shows that there are too many, without reading all
        rows = database.rows(f"SELECT g, x FROM ({found}) AS s LIMIT {LARGEST + 1}")
        if len(rows) > LARGEST:
            raise DataError(
                f"{name!r} has more than {LARGEST:,} values: a group variable has few; join values to classes"
            )
        column = discrete(pd.Series([x for _, x in rows]), name)
        codes, values = pd.factorize(column, sort=True)
        return cls(name, key, None, pd.Index(values), dict(zip((g for g, _ in rows), codes, strict=True)))

    @classmethod
    def of_attributes(
        cls, attributes: Database, name: str, record: str | None, prediction: tuple[Database, str]
    ) -> GroupColumn:
        """Take a column of a second table, whose records are in the column `record`, or else in its first."""
        columns = attributes.columns()
        refuse_names([name], columns, "the table of attributes")
        own = choose_record(columns, None if record == name else record)
        if own == name:
            raise DataError(f"{name!r} is the column of the table of attributes that has the ids of records")
        attributes.use(own, name)
        database, of_prediction = prediction
        refuse_unlike(database.kind(of_prediction), attributes.kind(own), "table of attributes")
        column, r = cls.of(attributes, name), attributes.key(own)
        rows = f"SELECT {r} AS r, {column.key} AS g FROM {attributes.table}"
        # MIN and MAX differ if a record has several values
        joined = attributes.keep(
            f"SELECT r, MIN(g) AS g, MAX(g) AS h FROM ({rows}) AS p WHERE g IS NOT NULL GROUP BY r"
        )
        unnamed, differs = (f"CASE WHEN {what} THEN" for what in ("r IS NULL", "g <> h"))
        columns = f"COUNT({unnamed} 1 END), COUNT({differs} 1 END), MIN({differs} r END)"
        ((lacking, twice, example),) = attributes.rows(f"SELECT {columns} FROM {joined}")
        if lacking:
            raise DataError(f"record ids of the table of attributes are missing in rows that have {name!r}")
        if twice:
            (inside,) = attributes.listed([example])
            value = attributes.value(name)
            shown = f"SELECT DISTINCT {attributes.id(own)}, {value} FROM {attributes.table}"
            ids, found = zip(*attributes.rows(f"{shown} WHERE {r} IN ({inside})"), strict=True)
            raise DataError(
                f"{twice:,} records have several values of {name!r}, such as {head(ids[:1])} with "
                f"{head(sorted(x for x in found if x is not None))}: a variable has one value for each record"
            )
        return cls(column.name, column.key, joined, column.values, column.codes)


@dataclass(frozen=True, slots=True, eq=False)
class Composed:
    """Predicted clusters of one release by their numbers of records of each group."""

    unknown: int
    predicted: GroupedClusters | None
    place: dict[Any, int]


def composed(
    database: Database, table: str, by: ByRelease, groups: GroupColumn, touched: list[Any]
) -> dict[Any, Composed]:
    """Count the records of each group g in each predicted cluster c, by release (v in the table)."""
    v = by.v
    counted = database.keep(f"SELECT {v}c, g, COUNT(*) AS n FROM {table} GROUP BY {v}c, g")
    unknown = database.rows(
        f"SELECT {v}SUM(CASE WHEN g IS NULL THEN n ELSE 0 END) FROM {counted}{by.grouped}"
    )
    alike = database.keep(f"SELECT {v}c, {database.alike('c', 'g', 'n')} AS f FROM {counted} GROUP BY {v}c")
    kinds = database.fetched(
        f"SELECT {by.a}a.f, b.g, b.n, COUNT(*) "
        f"FROM (SELECT {v}c, g, n FROM {counted} WHERE g IS NOT NULL) AS b "
        f"JOIN (SELECT {v}c, f FROM {alike}) AS a ON a.c = b.c{by.join} GROUP BY {by.a}a.f, b.g, b.n",
        [*by.names, "kind", "group", "records", "clusters"],
    )
    places: dict[Any, dict[Any, Any]] = defaultdict(dict)
    for *release, cluster, f in database.rows_with(f"SELECT {v}c, f FROM {alike}", "c", touched):
        places[release[0] if release else None][cluster] = f
    database.forget(alike)
    database.forget(counted)
    found = {}
    for *release, number in unknown:
        of = release[0] if release else None
        if number:
            found[of] = Composed(int(number), None, {})
        else:
            mine = kinds[kinds["release"] == of] if release else kinds
            found[of] = _compose_kinds(mine, places[of], groups.codes)
    return found


def _compose_kinds(kinds: pd.DataFrame, of_touched: dict[Any, Any], codes: dict[Any, int]) -> Composed:
    """Make one `GroupedClusters` of kinds of clusters, each with the records of a group and its clusters."""
    cluster, found = pd.factorize(kinds["kind"])
    code = {f: i for i, f in enumerate(found.tolist())}
    of_group, keys = pd.factorize(kinds["group"])
    group = np.array([codes[g] for g in keys.tolist()], dtype=np.int64)[of_group]
    n, count = kinds["records"].to_numpy(dtype=float), np.zeros(len(code))
    count[cluster] = kinds["clusters"].to_numpy(dtype=float)
    none = np.zeros(0, dtype=np.int64)
    predicted = GroupedClusters(cluster, group, n, np.bincount(cluster, n), count, none)
    return Composed(0, predicted, {key: code[f] for key, f in of_touched.items()})
