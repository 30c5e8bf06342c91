"""Features of entities and of predicted clusters: aggregates of the attributes of their records.

Both have the same features, so that statistics of true entities and predicted clusters can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from .._internal import remedies
from .._internal.arrays import EXACT, FloatArray, IntArray, need_table, refuse_names
from .._internal.errors import DataError, Grade, Remedy, Sentence, head, refuse_cases
from .clustering import Clustering
from .columns import find_record
from .ids import ids, locate_all, look_up
from .reading import Near
from .units import Units

SIZE = "size"
WRITTEN = 10
"""Predicted clusters of several records from which an attribute that never differs in one is suspect."""


def _find_ends(codes: IntArray, x: FloatArray, groups: int) -> tuple[FloatArray, FloatArray]:
    least, most = np.full(groups, np.inf), np.full(groups, -np.inf)
    np.minimum.at(least, codes, x)
    np.maximum.at(most, codes, x)
    return least, most


def _count_distinct(codes: IntArray, x: FloatArray, groups: int) -> FloatArray:
    of_value, values = pd.factorize(x)
    pairs = pd.unique(codes * len(values) + of_value)
    return np.bincount(pairs // len(values), minlength=groups).astype(float)


def _drop_missing(codes: IntArray, x: Any) -> tuple[IntArray, Any]:
    known = ~pd.isna(x)
    return (codes, x) if known.all() else (codes[known], x[known])


def _find_varying(codes: IntArray, x: Any) -> IntArray:
    """Return the group of each record whose value differs from another of its group, from groups, (N,)."""
    last = np.empty(int(codes.max()) + 1, dtype=x.dtype)
    codes, x = _drop_missing(codes, x)
    last[codes] = x
    return np.asarray(codes[x != last[codes]])


AGGREGATES: dict[str, Callable[[IntArray, FloatArray, int], FloatArray]] = {
    "sum": np.bincount,
    "mean": lambda codes, x, groups: np.bincount(codes, x, groups) / np.bincount(codes, minlength=groups),
    "min": lambda codes, x, groups: _find_ends(codes, x, groups)[0],
    "max": lambda codes, x, groups: _find_ends(codes, x, groups)[1],
    "range": lambda codes, x, groups: -np.subtract(*_find_ends(codes, x, groups)),
    "distinct": _count_distinct,
}
"""Aggregates of the values of records by name, of which `distinct` is the number of different values."""
KNOWN = "known-"
"""Beginning of the names of aggregates of the values that are there, whose sum is 0 if there is none."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of an entity: an aggregate of an attribute, by name or by a function of a Series."""

    name: str
    column: str
    how: str | Callable[[Any], float]

    def __post_init__(self) -> None:
        if self.name == SIZE:
            raise DataError(f"{SIZE!r} is the number of records of an entity: give the feature another name")
        if not callable(self.how) and self.aggregate not in AGGREGATES:
            said = f"the feature {self.name!r} is no {self.how!r}: aggregates are {', '.join(AGGREGATES)}"
            raise DataError(f"{said}, and of values that are there {KNOWN}sum and so on")

    @property
    def aggregate(self) -> str:
        """Return the name of the aggregate, whether or not it is of the values that are there alone."""
        return str(self.how).removeprefix(KNOWN)

    def settle_missing(self, missing: int, records: int, such: str = "") -> list[Sentence]:
        """Return a sentence about missing values, if there are any, or refuse those that `how` needs."""
        if not missing:
            return []
        said = f"attribute {self.column!r} is missing for {missing:,} of {records:,} records"
        if not str(self.how).startswith(KNOWN):
            other = f"fill it in, or aggregate the values that are there, as by {KNOWN}sum"
            raise DataError(f"{said}{such}: {other}")
        said += f", and {self.name!r} is the {self.aggregate} of the values that are there."
        return [Sentence(said, Grade.NOTE)]

    def refuse(self, what: str) -> DataError:
        """Return the error of values that are no numbers."""
        said = f"{what}: {self.name!r} needs finite numbers below 2**53. Make numbers of dates and times"
        other = "subtract one number from all large ones, or count different values by 'distinct'"
        return DataError(f"{said}, such as their year, {other}")

    @classmethod
    def parse(cls, text: str) -> Feature:
        """Return the feature of a text NAME=COLUMN:AGGREGATE."""
        name, _, rest = text.partition("=")
        column, _, how = rest.rpartition(":")
        if not (name.strip() and column.strip()):
            raise DataError(f"a feature is NAME=COLUMN:AGGREGATE, such as span=year:range, not {text!r}")
        return cls(name.strip(), column.strip(), how.strip())


def features_of(features: Any) -> tuple[Feature, ...]:
    """Return features from features, or from a mapping of names to (column, aggregate)."""
    if isinstance(features, Mapping):
        for name, value in features.items():
            if not isinstance(value, tuple | list) or len(value) != 2:
                raise DataError(f"the feature {name!r} is (column, aggregate), as in ('year', 'range')")
        return tuple(Feature(str(name), *value) for name, value in features.items())
    features = () if features is None else features
    if not isinstance(features, Iterable) or not all(isinstance(f, Feature) for f in features):
        raise DataError(f"features map names to (column, aggregate), not {features!r}")
    return tuple(features)


@dataclass(frozen=True, slots=True, eq=False)
class Attributes:
    """Attributes of records in the order of a prediction, with the domain of each record, (N,).

    `values` (N,): numbers, which are codes for `distinct`, or values of any kind for functions.
    """

    features: tuple[Feature, ...]
    values: Mapping[str, Any]
    domain: IntArray
    domains: tuple[str, ...] = ("",)
    notes: tuple[Sentence, ...] = ()

    @classmethod
    def of(cls, table: Any, features: Any, by: str | None, records: pd.Index) -> Attributes:
        """Read the columns of a table, whose records are found by those of the prediction."""
        features = features_of(features)
        columns = dict.fromkeys([*(f.column for f in features), *([] if by is None else [by])])
        nothing = cls(features, {}, np.zeros(len(records), dtype=np.int64))
        if table is None and not columns:
            return nothing
        if table is None:
            name_it = Remedy("name it", "attributes=table", "--attributes TABLE")
            raise DataError(f"no table has the columns {head([*columns])}", name_it)
        frame = need_table(table, "attributes are a DataFrame or an Arrow table")
        refuse_names([*columns], list(frame.columns), "the table of attributes")
        key = find_record(frame, Near({records.name: records}), "the table of attributes")
        listed, notes = ids(frame[key], "records of the attributes"), list[Sentence]()
        at: Any = slice(None)
        if not listed.equals(records):
            twice, do = listed[listed.duplicated()], f": keep one row of each, as by drop_duplicates({key!r})"
            refuse_cases(twice, "{n} rows of the attributes repeat a record, such as", do)
            at = locate_all(listed, records)
            said = f"{{n}} of {len(records):,} records of the prediction have no attributes, such as"
            refuse_cases(records[at < 0], said, ": the table must list every record")
        for feature in features:
            missing = records[frame[feature.column].isna().to_numpy()[at]]
            notes += feature.settle_missing(len(missing), len(records), f", such as {head(missing)}")
        values = {f.name: take_values(frame[f.column], f, at) for f in features}
        attributes = replace(nothing, values=values, notes=tuple(notes))
        if by is None:
            return attributes
        said = f"attribute {by!r} is missing for {{n}} of {len(records):,} records, such as"
        refuse_cases(records[frame[by].isna().to_numpy()[at]], said, ": fill it in")
        domain, names = pd.factorize(frame[by].iloc[at].astype(str), sort=True)
        return replace(attributes, domain=domain, domains=tuple(names))

    def rows(self, codes: IntArray, groups: int) -> pd.DataFrame:
        """Return the features of groups of records, (groups,), from the group of each record, (N,)."""
        rows = {SIZE: np.bincount(codes, minlength=groups).astype(float)}
        for feature in self.features:
            x = self.values[feature.name]
            if isinstance(feature.how, str):
                with np.errstate(invalid="ignore", over="ignore"):  # `Featured` refuses what is no number
                    rows[feature.name] = AGGREGATES[feature.aggregate](*_drop_missing(codes, x), groups)
            else:  # one call for each group
                of_group = pd.Series(x).groupby(codes).agg(feature.how)
                rows[feature.name] = np.asarray(of_group.reindex(range(groups)), dtype=float)
        return pd.DataFrame(rows)

    def shares(self, codes: IntArray, groups: int) -> dict[str, FloatArray]:
        """Return the share of the records of each group that a domain has, (groups,), by domain."""
        size, inside = np.bincount(codes, minlength=groups), self.domain
        counts = (np.bincount(codes[inside == i], minlength=groups) for i in range(len(self.domains)))
        return {name: count / size for name, count in zip(self.domains, counts, strict=True)}

    def varies(self, codes: IntArray) -> dict[str, bool]:
        """Return whether attributes differ inside a group of records, by feature, from groups, (N,)."""
        # a function of a user's own is a way to say that the source wrote the attribute
        listed = [f.name for f in self.features if isinstance(f.how, str)]
        return {name: len(_find_varying(codes, self.values[name])) > 0 for name in listed}

    def refuse_written_by_matcher(self, entities: IntArray, sizes: Any, varies: Mapping[str, bool]) -> None:
        """Refuse an attribute that differs in labelled `entities`, (n,), but `varies` in no cluster."""
        several = (np.asarray(sizes) > 1).sum() >= WRITTEN
        for feature in (f for f in self.features if several and not varies.get(f.name, True)):
            differing = np.unique(_find_varying(entities, self.values[feature.name]))
            if len(differing):
                said = f"{feature.column!r} is the same in all records of each predicted cluster, but not in"
                said += f" {len(differing):,} labelled entities, as if the matcher wrote it (a golden record)"
                own = "if this is it, aggregate it by your own function"
                raise DataError(f"{said}. Use the column as the source wrote it; {own}")


@dataclass(frozen=True, slots=True, eq=False)
class Featured:
    """Features of predicted clusters, all or those that labels touch, (K,), and of labelled entities, (E,).

    `cluster_shares`, `entity_shares` (K,), (E,): share of the records of each that the domain has, "" if
    there are none; `cluster_of`, `entity_of` (p,): row of the cluster and of the entity of each piece.
    """

    clusters: pd.DataFrame
    entities: pd.DataFrame
    cluster_shares: Mapping[str, FloatArray]
    entity_shares: Mapping[str, FloatArray]
    notes: tuple[Sentence, ...]
    cluster_of: IntArray
    entity_of: IntArray

    def __post_init__(self) -> None:
        for rows in (self.clusters, self.entities):
            for name, values in rows.items():
                refuse_unusable(str(name), int((~np.isfinite(values)).sum()), len(rows))

    @classmethod
    def of(cls, units: Units, prediction: Clustering, labels: Clustering, table: Attributes) -> Featured:
        """Compute features of a prediction, and of the labelled entities of units that were counted on it."""
        assert units.piece_of is not None  # labels have ids
        # entities that predicted clusters touch have records outside them
        records = units.piece_of.index if units.by_entity else labels.records
        at = look_up(prediction.records, records)
        if (at < 0).any():
            said = f"{int((at < 0).sum()):,} labelled records are not in the prediction"
            raise DataError(said, remedies.LEAVE_OUT)
        entity, _ = pd.factorize(labels.codes[look_up(labels.records, records, "labels")])
        of_cluster = prediction.codes, len(prediction.clusters)
        values = {name: column[at] for name, column in table.values.items()}
        labelled = replace(table, values=values, domain=table.domain[at])
        of_entity = entity, int(entity.max()) + 1
        labelled.refuse_written_by_matcher(entity, prediction.sizes, table.varies(prediction.codes))
        return cls(
            table.rows(*of_cluster),
            labelled.rows(*of_entity),
            table.shares(*of_cluster),
            labelled.shares(*of_entity),
            table.notes,
            *locate_pieces(units, records, prediction.codes[at], entity),
        )


def refuse_unusable(name: str, wrong: int, rows: int) -> None:
    """Refuse a feature of entities or clusters, some of which have no finite number."""
    if wrong:
        what = f"the feature {name!r} is no finite number"
        raise DataError(f"{what} for {wrong:,} of {rows:,} entities or clusters: no value, or too large")


def locate_pieces(units: Units, records: pd.Index, *codes: IntArray) -> list[IntArray]:
    """Return the code of each piece, (p,), from those of records, for each of several codes."""
    assert units.piece_of is not None
    place = np.zeros(len(units.n), dtype=np.int64)
    place[units.piece_of] = look_up(records, units.piece_of.index, "labels")
    return [of_record[place] for of_record in codes]


def take_values(column: pd.Series, feature: Feature, at: Any = slice(None)) -> Any:
    """Return the values of an attribute in some rows: numbers, unless the aggregate is a function."""
    if callable(feature.how):
        return column.array[at]
    if feature.aggregate == "distinct":
        try:
            codes = pd.factorize(column)[0][at]
        except (TypeError, NotImplementedError, pa.ArrowException) as error:
            said = f"{feature.column!r} has lists or structs, which are not counted: make texts of them"
            raise DataError(said) from error
        return np.where(codes < 0, np.nan, codes)
    numbers = _read_numbers(column)[at]  # before rows are taken, since numbers are copied sooner than texts
    most = np.inf if pd.api.types.is_float_dtype(column) else EXACT
    others = column.notna().to_numpy()[at] & ~(np.abs(numbers) < most)
    if others.any():
        said = f"{others.sum():,} of {len(numbers):,} values of {feature.column!r} cannot be used, such as"
        raise feature.refuse(f"{said} {head(column.iloc[at][others].tolist())}")
    return numbers


def _read_numbers(column: pd.Series) -> FloatArray:
    """Return a column as numbers, NaN for other values, such as dates and complex numbers."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    if pd.api.types.is_string_dtype(column):
        # Arrow reads texts many times faster than pandas, and none if one is no number
        with suppress(pa.ArrowException, UnicodeEncodeError):
            return np.asarray(pa.array(column).cast(pa.float64()), dtype=float)
    if column.dtype.kind in "iufbO" and not isinstance(column.dtype, pd.PeriodDtype):
        numbers = pd.to_numeric(column, errors="coerce")
        if not pd.api.types.is_complex_dtype(numbers):
            return numbers.to_numpy(dtype=float, na_value=np.nan)
    return np.full(len(column), np.nan)
