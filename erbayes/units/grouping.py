"""Splits of pieces by variables of records: the records of each group in each piece and predicted cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd

from .._internal import remedies
from .._internal.arrays import BoolArray, FloatArray, IntArray, need_table
from .._internal.errors import DataError, NotIdentified, head, refuse_cases
from ..metrics.columns import Domain, Links, Pieces
from .columns import find_record
from .ids import ids, same_kind
from .reading import Near

MOST = 200
"""Number of values from which a variable is taken for ids, numbers or dates without classes."""


class Of(Enum):
    """Subject of a variable: records or entities."""

    RECORDS = "records"
    """Records, such as their source or year (the default)."""
    ENTITIES = "entities"
    """Entities, such as a kind of customer. All records of an entity have its value."""


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """Ids `keys` of records or entities, (k,), with `codes` of their sorted `values`, (k,) and (G,)."""

    name: str
    keys: pd.Index
    codes: IntArray
    values: pd.Index

    @classmethod
    def of(cls, groups: Any, name: str | None, of: Of, listed: pd.Index | None = None) -> Variable:
        """Read a variable from a Series, mapping or table of two columns, leaving out ids without a value.

        `listed`: ids of some units, which say which column of a table has ids.
        """
        if isinstance(groups, pd.Series):
            keys, column = groups.index, groups
        elif isinstance(groups, Mapping):
            keys, column = pd.Index(list(groups)), pd.Series(list(groups.values()))
        else:
            said = "groups: expected a Series, a mapping or a table that gives the value of each of the"
            frame = need_table(groups, f"{said} {of.value}")
            if len(frame.columns) != 2:
                columns = f"{len(frame.columns)} columns, {head(frame.columns, 20)}"
                raise DataError(f"the table of groups has {columns}, instead of 2", remedies.COLUMNS)
            key = find_record(frame, None if listed is None else Near({None: listed}), "the table of groups")
            keys, column = pd.Index(frame[key]), frame.drop(columns=key).iloc[:, 0]
        what = name or ("group" if column.name in (None, "") else str(column.name))
        valued = column.notna().to_numpy()
        keys = ids(keys[valued], f"ids of {of.value} that have a value of {what!r}")
        codes, values = pd.factorize(discrete(column[valued], what), sort=True)
        if keys.is_unique:  # which is known sooner than that no id has two values
            return cls(what, keys, np.asarray(codes), pd.Index(values))
        table = pd.DataFrame({"key": keys, "code": codes}).drop_duplicates()
        if len(twice := table["key"][table["key"].duplicated()].unique()):
            shown = values[table["code"][table["key"] == twice[0]]]
            said = f"{len(twice):,} {of.value} have several values of {what!r}, such as {head(twice[:1])}"
            said += f" with {head(shown)}: a variable has one value for each of the {of.value}"
            of_records = "; if records of one entity differ, it is a variable of records"
            raise DataError(said + of_records * (of is Of.ENTITIES))
        return cls(what, pd.Index(table["key"]), table["code"].to_numpy(), pd.Index(values))

    def codes_of(self, listed: pd.Index, among: str) -> IntArray:
        """Return the value of each listed id."""
        same_kind(self.keys, listed, among, f"ids of {self.name!r}")
        position = self.keys.get_indexer(listed)
        said = f"{self.name!r} has no value for {{n}} of {among}, such as"
        refuse_cases(listed[position < 0], said, ": write one of their own, such as 'unknown'")
        return np.asarray(self.codes[position])


def discrete(column: pd.Series, what: str) -> pd.Series:
    """Return values that can be groups: text, integers, or anything else as its text."""
    types = pd.api.types
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.remove_unused_categories().cat.rename_categories(str)
    if types.is_bool_dtype(column) or not (types.is_float_dtype(column) or types.is_integer_dtype(column)):
        return column.astype(str)
    if (column % 1 != 0).any():
        said = f"values of {what!r} are numbers that are not whole, such as {head(column.to_numpy())}"
        raise DataError(f"{said}: make classes of them first, as with pandas.cut")
    return column.astype("int64")


def piece_values(variable: Variable, of: Of, units: Pieces, piece_of: pd.Series | None) -> FloatArray:
    """Return the number of records of each group in each piece, (G, p), and refuse missing values."""
    pieces = len(units.n)
    if of is Of.ENTITIES:
        if not units.by_entity or (np.diff(units.unit)[np.diff(units.group) > 0] == 0).any():
            said = f"{variable.name!r} is a variable of entities, but units are blocks or predicted clusters"
            raise DataError(f"{said}: give its value for records")
        assert units.ids is not None  # labelled entities have ids
        codes = variable.codes_of(units.ids, f"{len(units):,} labelled entities")[units.unit]
        place, count = np.arange(pieces), units.n
    else:
        if piece_of is None:
            raise DataError(f"these units have no ids of records, which a split by {variable.name!r} needs")
        records = piece_of.index
        codes = variable.codes_of(records, f"{len(records):,} labelled records")
        place, count = piece_of.to_numpy(), np.ones(len(records))
    if (number := len(np.unique(codes))) > MOST:
        said = f"{variable.name!r} has {number:,} values among the labelled {of.value}, more than {MOST}"
        raise DataError(f"{said}: a domain needs draws of its own; join values to classes")
    counted = np.bincount(codes * pieces + place, count, len(variable.values) * pieces)
    return counted.reshape(len(variable.values), pieces)


@dataclass(frozen=True, slots=True, eq=False)
class GroupedClusters:
    """The records of each group in each predicted cluster, (t,), of m records.

    `m` (clusters,); `place` (p,): predicted cluster of each piece.
    """

    cluster: IntArray
    group: IntArray
    n: FloatArray
    m: FloatArray
    place: IntArray

    @classmethod
    def of(cls, cluster: IntArray, group: IntArray, groups: int, place: IntArray) -> GroupedClusters:
        """Count records, each of which has a predicted cluster and a group."""
        key, n = np.unique(cluster * groups + group, return_counts=True)
        return cls(key // groups, key % groups, n.astype(float), np.bincount(cluster).astype(float), place)

    def inside(self, member: BoolArray) -> FloatArray:
        """Return the records of each predicted cluster whose group is a member, (clusters,)."""
        some = member[self.group]
        return np.bincount(self.cluster[some], self.n[some], len(self.m))

    def known(self, member: BoolArray, links: Links) -> tuple[FloatArray, FloatArray]:
        """Return sizes m of all clusters, or of their members if INSIDE, and records of members in each."""
        inside = self.inside(member)
        some = inside > 0
        return (self.m if links is Links.SHARED else inside)[some], inside[some]


@dataclass(frozen=True, slots=True, eq=False)
class PooledGroups(GroupedClusters):
    """Those of the predicted clusters that a scan touches, and how many clusters there are of each kind.

    `pooled` (r, 4): groups, m, n, and the number of clusters of m records, n of which have the group;
    `sizes` (s,) each: sizes of all predicted clusters, rising, and their numbers.
    """

    pooled: FloatArray
    sizes: tuple[FloatArray, FloatArray]

    def known(self, member: BoolArray, links: Links) -> tuple[FloatArray, FloatArray]:
        """Return as `GroupedClusters.known`, with several entries for one size or cluster."""
        group, m, n, count = self.pooled.T
        some = member[group.astype(np.int64)]
        if links is Links.SHARED:  # linear in the records of each group
            return m[some], (n * count)[some]
        size, clusters = self.sizes
        if member.sum() == 1:
            inside, count = n[some], count[some]
        elif (~member).sum() <= 1:  # all records less those of one group
            m, left, k = m[~some], (m - n)[~some], count[~some]
            without = clusters - np.bincount(np.searchsorted(size, m), k, len(size))
            inside, count = np.concatenate([left, size]), np.concatenate([k, without])
        else:
            said = f"a scan counts links inside one group, or all but one, and not inside {int(member.sum())}"
            other = "scan a column in which these have one value, or read the prediction into memory"
            raise NotIdentified(f"{said} together: {other}")
        some = inside * count > 0
        return inside[some], (inside * count)[some]


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """Split of the pieces of units by a variable with sorted `values`, (G,).

    `counted` (G, p): records of each group in each piece; `predicted`: those in each predicted cluster, None
    if not known for all; `unknown`: records of a scanned prediction without a value.
    """

    variable: str
    values: pd.Index
    counted: FloatArray
    predicted: GroupedClusters | None = None
    unknown: int = 0

    def take(self, piece: IntArray) -> Grouping:
        """Take the pieces at these positions."""
        at = self.predicted
        predicted = None if at is None else replace(at, place=at.place[piece])
        return replace(self, counted=self.counted[:, piece], predicted=predicted)

    def isolated(self, cluster: IntArray) -> Grouping:
        """This grouping if the prediction has only records of the pieces, whose clusters are `cluster`."""
        if self.predicted is None:
            return self
        group, piece = np.nonzero(self.counted)
        place = np.unique(cluster, return_inverse=True)[1]
        n = self.counted[group, piece]
        m = np.bincount(place[piece], n)
        return replace(self, predicted=GroupedClusters(place[piece], group, n, m, place))

    @property
    def everyone(self) -> bool:
        """Whether all records of the prediction have the one value, so that its group is all records."""
        return len(self.values) == 1 and self.predicted is not None and not self.unknown

    def domains(self) -> list[Domain]:
        """Return each value as a domain."""
        return [Domain(self.variable, (value,)) for value in self.values]

    def _mark_members(self, domain: Domain) -> BoolArray:
        position = self.values.get_indexer(pd.Index(list(domain.values)))
        if (position < 0).any():
            unknown = [v for v, at in zip(domain.values, position, strict=True) if at < 0]
            raise DataError(f"{self.variable!r} has no value {head(unknown)}; it has {head(self.values, 10)}")
        member = np.full(len(self.values), domain.rest)
        member[position] = not domain.rest
        return member

    def records_of(self, domain: Domain) -> FloatArray:
        """Return the records of a domain in each piece, (p,)."""
        return np.asarray(self.counted[self._mark_members(domain)].sum(axis=0))

    def _count_all_records(self) -> GroupedClusters:
        what = f"totals by {self.variable}, and links inside its groups, need"
        if self.unknown:
            none = f"{self.unknown:,} of the prediction have none: write one there, such as 'unknown'"
            raise NotIdentified(f"{what} the value of each record, and {none}")
        if self.predicted is None:
            raise NotIdentified(f"{what} the prediction and each record's value: pass prediction=...")
        return self.predicted

    def cluster_sizes(self, domain: Domain, units: Pieces) -> FloatArray:
        """Return the records of a domain in the predicted cluster of each piece, (p,)."""
        if not units.by_entity:  # predicted clusters are labelled completely
            return np.bincount(units.group, self.records_of(domain))[units.group]
        groups = self._count_all_records()
        return groups.inside(self._mark_members(domain))[groups.place]

    def known(self, domain: Domain, links: Links) -> tuple[FloatArray, FloatArray]:
        """Return sizes m of predicted clusters (within the domain if INSIDE), and its records in each."""
        return self._count_all_records().known(self._mark_members(domain), links)

    def table(self, units: Pieces) -> pd.DataFrame:
        """Return the labelled records, pieces and units of each group, one row per value."""
        columns = {
            "records": self.counted.sum(axis=1),
            "pieces": (self.counted > 0).sum(axis=1),
            "units": [len(np.unique(units.unit[row > 0])) for row in self.counted],
        }
        return pd.DataFrame(columns, index=self.values.rename(self.variable))
