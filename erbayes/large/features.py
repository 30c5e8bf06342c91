"""Features of predicted clusters by GROUP BY, in the database of the prediction and of attributes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import EXACT
from .._internal.errors import DataError, Sentence, head
from .._internal.known_columns import choose_record
from .._internal.tables import refuse_names
from ..units.clustering import Clustering
from ..units.features import SIZE, Attributes, Feature, Featured, features_of, locate_pieces, take_values
from .counted import Scanned
from .database import Database, refuse_unlike
from .duckdb import DuckDB
from .scanning import EMBEDDED
from .sources import has_own_database, opened

AGGREGATES = {
    "sum": "COALESCE(SUM({0}), 0)",
    "mean": "AVG({0})",
    "min": "MIN({0})",
    "max": "MAX({0})",
    "range": "MAX({0}) - MIN({0})",
    "distinct": "COUNT(DISTINCT {0})",
}
"""SQL of the aggregates of `erbayes.units.features`."""
FLOATING = re.compile("float|double|real", re.IGNORECASE)
NUMERIC = re.compile(rf"{FLOATING.pattern}|string|integer|mixed|decimal|bool", re.IGNORECASE)
"""Kinds of columns (`Database.kind`) that are numbers, or may be."""


def scan_features(
    source: Any,
    units: Scanned,
    labels: Clustering,
    *,
    attributes: Any = None,
    features: Any = None,
    by: str | None = None,
    database: DuckDB = EMBEDDED,
) -> Featured:
    """Compute features of all predicted clusters, and of labelled entities, as `Featured.of` does."""
    features = features_of(features)
    attributes = attributes if features or by is not None else None
    if own := [feature.name for feature in features if callable(feature.how)]:
        raise DataError(f"{head(own)} aggregates by a function, which no database runs: read all into memory")
    if attributes is not None and has_own_database(source):
        raise DataError("a table with a database of its own takes no second table: make a view of both")
    with opened([source] if attributes is None else [source, attributes], database) as tables:
        joined, notes = _join_attributes(tables, units, features, by)
        values = [f"x{i}" for i in range(len(features))]
        names = [feature.name for feature in features]
        clusters, differs = _aggregate(tables[0], joined, features, values)
        parts = tables[0].fetched(f"SELECT c, g, COUNT(*) FROM {joined} GROUP BY c, g", ["c", "g", "n"])
        keys = tables[0].keys(units.columns[0], labels.records.tolist())
        columns = ["r", "c", "g", *values]
        select = f"SELECT {', '.join(columns)} FROM {joined}"
        labelled = pd.DataFrame([*tables[0].rows_with(select, "r", keys)], columns=columns)
    domains = sorted(parts["g"].unique())
    place = pd.Index(clusters["c"])
    records = pd.Index(labelled["r"].map(keys))
    entity = pd.factorize(labels.codes[labels.records.get_indexer(records)])[0]
    of_record = {f.name: take_values(labelled[x], f) for f, x in zip(features, values, strict=True)}
    codes = np.asarray(pd.Index(domains).get_indexer(labelled["g"]))
    of_labelled = Attributes(features, of_record, codes, tuple(domains))
    of_labelled.refuse_written_by_matcher(entity, clusters[SIZE], differs)
    of_cluster, size = place.get_indexer(parts["c"]), clusters[SIZE].to_numpy()
    shares = {
        name: np.bincount(of_cluster, parts["n"] * (parts["g"] == name), len(place)) / size
        for name in domains
    }
    E = int(entity.max()) + 1
    return Featured(
        clusters[[SIZE, *names]].astype(float),
        of_labelled.rows(entity, E),
        shares,
        of_labelled.shares(entity, E),
        tuple(notes),
        *locate_pieces(units, records, place.get_indexer(labelled["c"]), entity),
    )


def _aggregate(
    table: Database, joined: str, features: tuple[Feature, ...], values: list[str]
) -> tuple[pd.DataFrame, dict[str, bool]]:
    """Return the size and features of each cluster c, and which features differ within a cluster."""
    names = [feature.name for feature in features]
    sums = [AGGREGATES[f.aggregate].format(x) for f, x in zip(features, values, strict=True)]
    differ = [f"CASE WHEN MIN({x}) < MAX({x}) THEN 1 ELSE 0 END" for x in values]
    flags = [f"{name} differs" for name in names]
    clusters = table.fetched(
        f"SELECT {', '.join(['c', 'COUNT(*)', *sums, *differ])} FROM {joined} GROUP BY c",
        ["c", SIZE, *names, *flags],
    )
    return clusters, {name: bool(clusters[flag].any()) for name, flag in zip(names, flags, strict=True)}


def _join_attributes(
    tables: list[Database], units: Scanned, features: tuple[Feature, ...], by: str | None
) -> tuple[str, list[Sentence]]:
    """Return SQL of keys r and c, the domain g and the values x0, x1, … of each record, and notes."""
    table, holder = tables[0], tables[-1]
    record, cluster = units.columns
    wanted = [*(f.column for f in features), *([] if by is None else [by])]
    columns = list(holder.columns())
    refuse_names(list(dict.fromkeys(wanted)), columns or wanted, "the table of attributes")
    own = record if holder is table else choose_record(columns)
    table.use(record, cluster, *(wanted if holder is table else []))
    if holder is not table:
        holder.use(own, *dict.fromkeys(wanted))
        refuse_unlike(table.kind(record), holder.kind(own), "attributes")
    written = [_write_value(holder, feature) for feature in features]
    group = "''" if by is None else f"CAST({holder.quote(by)} AS VARCHAR)"
    listed = ", ".join([f"{group} AS g", *(f"{x} AS x{i}" for i, (x, _) in enumerate(written))])
    names = ["g", *(f"x{i}" for i in range(len(written)))]
    keys = f"SELECT {table.key(record)} AS r, {table.key(cluster)} AS c"
    if holder is table:
        select = f"{keys}, {listed} FROM {table.table}"
    else:
        rows = f"SELECT {holder.key(own)} AS r, {listed} FROM {holder.table}"
        taken = ", ".join(["p.r", "p.c", *(f"a.{name}" for name in names)])
        both = f"({keys} FROM {table.table}) AS p LEFT JOIN ({rows}) AS a ON p.r = a.r"
        select = f"SELECT {taken} FROM {both}"
    joined = table.keep(select)
    fine = [condition.format(f"x{i}") for i, (_, condition) in enumerate(written)]
    wrong = [f"COUNT(CASE WHEN {held} THEN NULL ELSE x{i} END)" for i, held in enumerate(fine)]
    counts = ", ".join(["COUNT(*)", *(f"COUNT({name})" for name in names), *wrong])
    total, grouped, *numbers = table.rows(f"SELECT {counts} FROM {joined}")[0]
    if total != units.rows:
        raise DataError(f"{total - units.rows:,} rows of the attributes repeat a record of the prediction")
    if grouped < total:
        of = f"{total - grouped:,} of {total:,} records"
        none = f"{of} of the prediction have no attributes: the table must list every record"
        raise DataError(none if by is None else f"attribute {by!r} is missing for {of}: fill it in")
    notes = list[Sentence]()
    for feature, there, others in zip(features, numbers, numbers[len(features) :], strict=False):
        notes += feature.settle_missing(total - there, total)
        if others:
            raise feature.refuse(f"{others:,} of {total:,} values of {feature.column!r} cannot be used")
    return joined, notes


def _write_value(holder: Database, feature: Feature) -> tuple[str, str]:
    """Return SQL of an attribute as a feature needs it, and of the condition of values that it can take."""
    kind = holder.kind(feature.column) or ""
    floating = FLOATING.match(kind)
    if feature.aggregate == "distinct":
        return holder.number(feature.column) if floating else holder.quote(feature.column), "1 = 1"
    if kind and not NUMERIC.match(kind):
        raise feature.refuse(f"{feature.column!r} is of type {kind}")
    # an endless number less itself is not 0
    return holder.number(feature.column), "{0} - {0} = 0" if floating else f"ABS({{0}}) < {EXACT}"
