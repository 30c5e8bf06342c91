"""A group variable of a scan: a column of the scanned table, or of a second one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._internal.errors import DataError, head, need
from .._internal.known_columns import choose_record
from .._internal.tables import refuse_names
from ..units.clustering import Clustering
from ..units.grouping import GroupedClusters, Grouping, Of, PooledGroups, Variable, discrete, piece_values
from ..units.units import Units
from .database import Database, changed, refuse_unlike
from .prediction import Prediction
from .sources import has_own_database

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
