"""Features of entities and of predicted clusters: aggregates of the attributes of their records.

Both sides have the same features, computed alike, so that a statistic of the true entities can be compared
with the same statistic of predicted clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray, IntArray
from .._internal.errors import DataError, Remedy, head
from .._internal.tables import is_table, refuse_names, to_frame
from .clustering import Clustering, ids
from .lookup import look_up
from .units import Units

Function = Callable[[Any], float]
SIZE = "size"
WRITTEN = 10
"""Predicted clusters of several records from which an attribute that never differs in one is suspect."""


def _sum(codes: IntArray, x: FloatArray, groups: int) -> FloatArray:
    return np.bincount(codes, x, groups)


def _mean(codes: IntArray, x: FloatArray, groups: int) -> FloatArray:
    return _sum(codes, x, groups) / np.bincount(codes, minlength=groups)


def _min(codes: IntArray, x: FloatArray, groups: int) -> FloatArray:
    least = np.full(groups, np.inf)
    np.minimum.at(least, codes, x)
    return least


def _max(codes: IntArray, x: FloatArray, groups: int) -> FloatArray:
    return -_min(codes, -x, groups)


def _range(codes: IntArray, x: FloatArray, groups: int) -> FloatArray:
    return _max(codes, x, groups) - _min(codes, x, groups)


def _distinct(codes: IntArray, x: Any, groups: int) -> FloatArray:
    of_value, values = pd.factorize(x)
    pairs = pd.unique(codes * max(len(values), 1) + of_value)
    return np.bincount(pairs // max(len(values), 1), minlength=groups).astype(float)


AGGREGATES: dict[str, Callable[[IntArray, Any, int], FloatArray]] = {
    "sum": _sum,
    "mean": _mean,
    "min": _min,
    "max": _max,
    "range": _range,
    "distinct": _distinct,
}
"""Aggregates of the values of records by name, of which `distinct` is the number of different values."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of an entity: an aggregate of an attribute of its records.

    Attributes
    ----------
    name, column : str
    how : str or callable
        A name of `AGGREGATES`, or a function of the values of one entity, a Series, that returns a number.

    Examples
    --------
    >>> Feature.parse("span=year:range")
    Feature(name='span', column='year', how='range')
    """

    name: str
    column: str
    how: str | Function

    @classmethod
    def parse(cls, text: str) -> Feature:
        """Return the feature of a text NAME=COLUMN:AGGREGATE."""
        name, equals, rest = text.partition("=")
        column, colon, how = rest.rpartition(":")
        if not (equals and colon and name.strip() and column.strip()):
            raise DataError(f"a feature is NAME=COLUMN:AGGREGATE, such as span=year:range, not {text!r}")
        return cls.of(name.strip(), (column.strip(), how.strip()))

    @classmethod
    def of(cls, name: str, wanted: Any) -> Feature:
        """Return the feature of a name and (column, aggregate)."""
        if name == SIZE:
            raise DataError(
                f"{SIZE!r} is the number of records of each entity: give the feature another name"
            )
        if not isinstance(wanted, tuple | list) or len(wanted) != 2:
            raise DataError(
                f"the feature {name!r} is (column, aggregate), as in ('year', 'range'), not {wanted!r}"
            )
        column, how = wanted
        if not callable(how) and how not in AGGREGATES:
            raise DataError(f"the feature {name!r} is no {how!r}: aggregates are {', '.join(AGGREGATES)}")
        return cls(str(name), str(column), how)

    def of_groups(self, codes: IntArray, values: Any, groups: int) -> FloatArray:
        """Return the feature of each group, (groups,), from the values of records, (n,), and their groups."""
        if isinstance(self.how, str):
            return AGGREGATES[self.how](codes, values, groups)
        # one call for each entity, in any order of its records
        found = pd.Series(values).groupby(codes).agg(self.how)
        return np.asarray(found.reindex(range(groups)), dtype=float)


def features_of(wanted: Mapping[str, Any] | None) -> tuple[Feature, ...]:
    """Return features from a mapping of names to (column, aggregate)."""
    if wanted is not None and not isinstance(wanted, Mapping):
        raise DataError(f"features map names to (column, aggregate), not {wanted!r}")
    return tuple(Feature.of(name, value) for name, value in (wanted or {}).items())


@dataclass(frozen=True, slots=True, eq=False)
class Attributes:
    """Attributes of records in the order of a prediction.

    Attributes
    ----------
    features : tuple of Feature
    values : mapping, name of a feature -> array, (N,)
        Numbers, or values of any kind for functions.
    groups : Series of category, (N,), or None
        The domain of each record.
    """

    features: tuple[Feature, ...]
    values: Mapping[str, Any]
    groups: pd.Series | None

    @classmethod
    def of(cls, table: Any, features: tuple[Feature, ...], by: str | None, records: pd.Index) -> Attributes:
        """Read the columns of a table, whose first column has the ids of records.

        Raises
        ------
        DataError
            If a column is missing, if records have none or several rows, or if values are missing, or are no
            numbers where numbers are needed.
        """
        wanted = list(dict.fromkeys([f.column for f in features] + ([by] if by is not None else [])))
        if table is None:
            if wanted:
                raise DataError(
                    f"{head(wanted)} are columns of a table of records, and there is none", Remedy.ATTRIBUTES
                )
            return cls(features, {}, None)
        if not is_table(table):
            raise DataError(f"attributes are a DataFrame or an Arrow table, not {type(table).__name__}")
        frame = to_frame(table)
        refuse_names(wanted, list(frame.columns), "the table of attributes")
        chosen = frame.iloc[_locate(ids(frame.iloc[:, 0], "records of the attributes"), records)]
        for name in wanted:
            if missing := int(chosen[name].isna().sum()):
                raise DataError(
                    f"attribute {name!r} is missing for {missing:,} of {len(records):,} records, such as "
                    f"{head(records[chosen[name].isna().to_numpy()])}: fill it in, or leave these records "
                    "out of the prediction and the labels"
                )
        values = {f.name: _take_values(chosen[f.column], f) for f in features}
        return cls(features, values, None if by is None else chosen[by].astype(str).astype("category"))

    def rows(self, codes: IntArray, groups: int, at: IntArray | slice = slice(None)) -> pd.DataFrame:
        """Return the features of each group of the records at some positions, (groups,)."""
        rows = {SIZE: np.bincount(codes, minlength=groups).astype(float)}
        for feature in self.features:
            rows[feature.name] = feature.of_groups(codes, self.values[feature.name][at], groups)
            if wrong := int((~np.isfinite(rows[feature.name])).sum()):
                raise DataError(
                    f"the feature {feature.name!r} is no finite number for {wrong:,} of {groups:,} groups"
                )
        return pd.DataFrame(rows)

    def shares(
        self, codes: IntArray, groups: int, at: IntArray | slice = slice(None)
    ) -> dict[str, FloatArray]:
        """Return the share of the records of each group that a domain has, (groups,), by domain."""
        if self.groups is None:
            return {"": np.ones(groups)}
        size = np.bincount(codes, minlength=groups)
        domain = self.groups.cat.codes.to_numpy()[at]
        return {
            str(name): np.bincount(codes[domain == i], minlength=groups) / size
            for i, name in enumerate(self.groups.cat.categories)
        }

    def refuse_written_by_matcher(self, clusters: IntArray, entities: IntArray, at: IntArray) -> None:
        """Refuse an attribute that is the same in each predicted cluster, but not in labelled entities.

        Clusters are those of all records, (N,), entities those of the labelled ones, which are `at`.
        """
        several = int((np.bincount(clusters) > 1).sum())
        for feature in self.features:
            values = pd.factorize(self.values[feature.name])[0].astype(float)
            # a function of a user's own is a way to say that the source wrote the attribute
            if (
                callable(feature.how)
                or several < WRITTEN
                or _range(clusters, values, int(clusters.max()) + 1).any()
            ):
                continue
            differing = int((_range(entities, values[at], int(entities.max()) + 1) > 0).sum())
            if differing:
                raise DataError(
                    f"{feature.column!r} is the same in all records of each predicted cluster and differs "
                    f"in {differing:,} labelled entities, as if the matcher wrote it (a golden record): use "
                    "the attribute as the source wrote it; if this is it, aggregate it by your own function"
                )


@dataclass(frozen=True, slots=True, eq=False)
class Featured:
    """Features of all predicted clusters, and of the entities of a sample.

    Attributes
    ----------
    clusters, entities : DataFrame, (K,), (E,)
    cluster_shares, entity_shares : mapping, domain -> float array, (K,), (E,)
        Share of the records of each that the domain has; the only domain is "" if there are none.
    cluster_of, entity_of : int arrays, (p,)
        Row of the cluster and of the entity of each piece.
    """

    clusters: pd.DataFrame
    entities: pd.DataFrame
    cluster_shares: Mapping[str, FloatArray]
    entity_shares: Mapping[str, FloatArray]
    cluster_of: IntArray
    entity_of: IntArray

    @classmethod
    def of(cls, units: Units, prediction: Clustering, labels: Clustering, attributes: Attributes) -> Featured:
        """Compute features of a prediction, and of the labelled entities of units that were counted on it."""
        K = len(prediction.clusters)
        assert units.piece_of is not None  # labels have ids
        pieces = units.piece_of
        # entities that predicted clusters touch have records outside them
        records = pieces.index if units.by_entity else labels.records
        at = look_up(prediction.records, records)
        if (at < 0).any():
            raise DataError(
                f"{int((at < 0).sum()):,} labelled records are not in the prediction", Remedy.LEAVE_OUT
            )
        entity, _ = pd.factorize(labels.codes[look_up(labels.records, records, "labels")])
        E = int(entity.max()) + 1
        attributes.refuse_written_by_matcher(prediction.codes, entity, at)
        place = look_up(records, pieces.index, "labels")
        cluster_of, entity_of = np.zeros((2, len(units.n)), dtype=np.int64)
        cluster_of[pieces], entity_of[pieces] = prediction.codes[at[place]], entity[place]
        return cls(
            attributes.rows(prediction.codes, K),
            attributes.rows(entity, E, at),
            attributes.shares(prediction.codes, K),
            attributes.shares(entity, E, at),
            cluster_of,
            entity_of,
        )


def _locate(listed: pd.Index, records: pd.Index) -> Any:
    """Return the row of each record, refusing records with several rows or none."""
    if listed.equals(records):
        return slice(None)
    if not listed.is_unique:
        twice = listed[listed.duplicated()]
        raise DataError(f"{len(twice):,} rows of the attributes repeat a record, such as {head(twice)}")
    position = look_up(listed, records, "attributes")
    if (position < 0).any():
        lacking = records[position < 0]
        raise DataError(
            f"{len(lacking):,} of {len(records):,} records of the prediction have no attributes, such as "
            f"{head(lacking)}: the table must list every record"
        )
    return position


def _take_values(column: pd.Series, feature: Feature) -> Any:
    """Return the values of an attribute: numbers, unless the aggregate takes any."""
    if callable(feature.how) or feature.how == "distinct":
        return column.array if callable(feature.how) else pd.factorize(column)[0]
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=float)
    numbers = pd.to_numeric(column, errors="coerce")
    if numbers.isna().any():
        raise DataError(
            f"{int(numbers.isna().sum()):,} of {len(numbers):,} values of {feature.column!r} are no numbers, "
            f"such as {head(column[numbers.isna()].tolist())}, and {feature.name!r} needs numbers: make "
            "numbers of dates, such as their year, or count different values by 'distinct'"
        )
    return numbers.to_numpy(dtype=float)
