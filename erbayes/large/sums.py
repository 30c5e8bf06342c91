"""Statistics of all predicted clusters that are sums or ratios of sums, by SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import EXACT, FloatArray, refuse_names
from .._internal.errors import DataError, Sentence, head
from ..metrics.statistics import Statistic, list_comparisons, statistics_of
from ..units.clustering import Clustering
from ..units.features import (
    SIZE,
    WRITTEN,
    Attributes,
    Feature,
    Featured,
    features_of,
    locate_pieces,
    refuse_unusable,
    take_values,
)
from ..units.ids import same_kind
from .counted import Scanned
from .database import Database
from .duckdb import DuckDB
from .prediction import Prediction
from .reading import find_scanned, plain_id, use_columns
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
LARGEST = 1.7976931348623157e308
"""The largest finite number. Comparisons with it are false of NaN and NULL."""
SIGNS = {"==": "=", "!=": "<>"}


def scan_features(
    source: Any,
    units: Scanned,
    labels: Clustering,
    statistics: Any,
    *,
    attributes: Any = None,
    features: Any = None,
    by: str | None = None,
    database: DuckDB = EMBEDDED,
) -> tuple[tuple[Statistic, ...], dict[str, FloatArray], Featured]:
    """Compute statistics of all clusters by domain, and features of touched clusters and of entities."""
    features, statistics = features_of(features), statistics_of(statistics)
    attributes = attributes if features or by is not None else None
    if others := [statistic.name for statistic in statistics if not statistic.sums]:
        raise DataError(
            f"{head(others)} needs a row for each predicted cluster, but a database returns only sums, as of "
            "count, total, mean, share and ratio: read the prediction into memory, as by pandas.read_parquet"
        )
    if names := [feature.name for feature in features if callable(feature.how)]:
        raise DataError(
            f"{head(names)} aggregates by a function, which no database runs: read all into memory"
        )
    if attributes is not None and has_own_database(source):
        raise DataError("a table with a database of its own takes no second table: make a view of both")
    with opened([source] if attributes is None else [source, attributes], database) as tables:
        prediction = _join_attributes(tables[0], tables[-1], units, features, by)
        notes = _refuse_values(prediction, tables[-1], units, features, by)
        clusters = Clusters(prediction, features, by is not None, units.rows)
        summary = clusters.summarise(statistics)
        values = [clusters.compute(statistic, summary) for statistic in statistics]
        fitted = tuple(statistic for statistic, _ in values)
        known = {g: np.concatenate([value[g] for _, value in values]) for g in summary.domains}
        return fitted, known, _find_touched(clusters, units, labels, summary, tuple(notes))


@dataclass(frozen=True, slots=True)
class Summary:
    """Sums over all predicted clusters: `totals` of terms by domain and `least`, (1,), of each feature.

    `several`: clusters of two or more records; `differs`: whether values differ inside a cluster.
    """

    totals: dict[str, dict[str | None, float]]
    least: pd.DataFrame
    several: int
    differs: dict[str, bool]

    @property
    def domains(self) -> tuple[str, ...]:
        """Return the domains in order."""
        return tuple(sorted(self.totals))


@dataclass(frozen=True, slots=True)
class Clusters:
    """Predicted clusters as SQL: their features f0 (the size), f1, … and whether values differ, d1, …"""

    prediction: Prediction
    features: tuple[Feature, ...]
    by_domain: bool
    records: int

    @property
    def names(self) -> list[str]:
        """Return the names of the features f0, f1, …"""
        return [SIZE, *(feature.name for feature in self.features)]

    def aggregates(self) -> str:
        """SQL of the columns c, f0, f1, …, d1, … of clusters."""
        values = [(i, f"x{i}", feature) for i, feature in enumerate(self.features, 1)]
        features = [f"{AGGREGATES[feature.aggregate].format(x)} AS f{i}" for i, x, feature in values]
        differ = [f"CASE WHEN MIN({x}) < MAX({x}) THEN 1 ELSE 0 END AS d{i}" for i, x, _ in values]
        return ", ".join(["c", "COUNT(*) AS f0", *features, *differ])

    def write(self, part: str) -> str:
        """SQL of clusters, as a table s."""
        return f"(SELECT {self.aggregates()} FROM {self.prediction.table} WHERE {part} GROUP BY c) AS s"

    def write_weighted(self, part: str) -> str:
        """SQL of clusters with the share w of their records in each domain g, as a table t."""
        if not self.by_domain:
            return f"(SELECT s.*, '' AS g, 1 AS w FROM {self.write(part)}) AS t"
        pieces = f"SELECT c AS k, g, COUNT(*) AS n FROM {self.prediction.table} WHERE {part} GROUP BY c, g"
        w = f"CAST(b.n AS {self.prediction.database.dialect.double}) / s.f0"
        return (
            f"(SELECT s.*, b.g AS g, {w} AS w FROM {self.write(part)} JOIN ({pieces}) AS b ON s.c = b.k) AS t"
        )

    def write_term(self, term: str | None) -> str:
        """SQL of a feature, or of 1 where a condition is true, or everywhere, as numbers."""
        place = {name: f"f{i}" for i, name in enumerate(self.names)}
        comparisons = [] if term is None else list_comparisons(term)
        sql = "1" if term is None else place.get(term, "1")
        if comparisons:
            if not all(np.isfinite(number) for *_, number in comparisons):
                raise DataError(f"{term!r} compares with a number that is not finite, which no database has")
            comparison = (f"{place[x]} {SIGNS.get(sign, sign)} {number!r}" for x, sign, number in comparisons)
            sql = f"CASE WHEN {' AND '.join(comparison)} THEN 1 ELSE 0 END"
        return f"CAST({sql} AS {self.prediction.database.dialect.double})"

    def summarise(self, statistics: Sequence[Statistic]) -> Summary:
        """Compute totals of the terms of all statistics of sums, and refuse features that are no numbers."""
        names, database = self.names, self.prediction.database
        for statistic in statistics:
            statistic.refuse_without(pd.DataFrame(columns=names))
        terms = list(dict.fromkeys(term for statistic in statistics for term in statistic.sums))
        i = range(len(names))
        columns: list[tuple[str, Callable[..., Any]]] = [
            ("COUNT(*)", sum),
            ("SUM(CASE WHEN f0 > 1 THEN 1 ELSE 0 END)", sum),
            *((f"SUM(CASE WHEN f{j} BETWEEN -{LARGEST} AND {LARGEST} THEN 0 ELSE 1 END)", sum) for j in i),
            *((f"MIN(f{j})", min) for j in i),
            *((f"MAX(d{j})", max) for j in i[1:]),
            *((f"SUM({self.write_term(term)})", sum) for term in terms if not self.by_domain),
        ]
        select = f"SELECT {', '.join(sql for sql, _ in columns)} FROM "
        rows = [
            database.rows(select + self.write(part))[0]
            for part in self.prediction.database.parts("c", self.records)
        ]
        table = zip(*(row for row in rows if row[0]), strict=True)  # a part may have no cluster
        clusters, several, *rest = (how(part) for (_, how), part in zip(columns, table, strict=True))
        for name, wrong in zip(names, rest, strict=False):
            refuse_unusable(name, int(wrong), int(clusters))
        least, flags, sums = np.split(np.array(rest[len(i) :], dtype=float), [len(i), 2 * len(i) - 1])
        totals = self._sum_by_domain(terms) if self.by_domain else {"": dict(zip(terms, sums, strict=True))}
        differs = dict(zip(names[1:], flags > 0, strict=True))
        return Summary(totals, pd.DataFrame([least], columns=names), int(several), differs)

    def _sum_by_domain(self, terms: list[str | None]) -> dict[str, dict[str | None, float]]:
        """Return totals of terms by domain, to which a cluster belongs by its share of records."""
        totals: dict[str, dict[str | None, float]] = {}
        sums = ", ".join(["g", *(f"SUM(w * {self.write_term(term)})" for term in terms)])
        for part in self.prediction.database.parts("c", self.records):
            rows = self.prediction.database.rows(f"SELECT {sums} FROM {self.write_weighted(part)} GROUP BY g")
            for g, *values in rows:
                before = totals.get(str(g), dict.fromkeys(terms, 0.0))
                totals[str(g)] = {t: before[t] + float(v) for t, v in zip(terms, values, strict=True)}
        return totals

    def compute(self, statistic: Statistic, summary: Summary) -> tuple[Statistic, dict[str, FloatArray]]:
        """Return a statistic as all predicted clusters mean it, and its values by domain."""
        top, *bottom = statistic.sums
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = {
                g: np.divide(totals[top], totals[bottom[0]] if bottom else 1.0)
                for g, totals in summary.totals.items()
            }
        values = {g: np.array([x if np.isfinite(x) else np.nan]) for g, x in ratios.items()}
        return statistic.fit(summary.least), values


def _find_touched(
    clusters: Clusters, units: Scanned, labels: Clustering, summary: Summary, notes: tuple[Sentence, ...]
) -> Featured:
    """Return features of the clusters that labels touch, and of labelled entities, as `Featured.of` does."""
    prediction, names = clusters.prediction, clusters.names
    values = [f"x{i}" for i in range(1, len(names))]
    columns = ["r", "c", *(["g"] if clusters.by_domain else []), *values]
    labelled = pd.DataFrame(
        prediction.rows_in(", ".join(columns), "r", labels.records.tolist()), columns=columns
    )
    labelled["c"] = [plain_id(c) for c in labelled["c"]]
    # rows come in any order, and sums depend on it by rounding
    at = labels.records.get_indexer(pd.Index(labelled["r"]))
    labelled, at = labelled.iloc[np.argsort(at)].reset_index(drop=True), np.sort(at)
    touched = pd.Index(labelled["c"].drop_duplicates())
    wide = [*names, *(f"d{i}" for i in range(1, len(names)))]
    rows = prediction.rows_in(clusters.aggregates(), "c", touched.tolist(), " GROUP BY c")
    table = pd.DataFrame(rows, columns=["c", *wide])
    table = table.set_index("c").loc[touched, names].astype(float).reset_index(drop=True)
    entity = pd.factorize(labels.codes[at])[0]
    E = int(entity.max()) + 1
    domain = np.zeros(len(labelled), dtype=np.int64)
    shares = {"": np.ones(len(table))}
    if clusters.by_domain:
        domain = pd.Index(summary.domains).get_indexer(pd.Index(labelled["g"].astype(str)))
        parts = prediction.rows_in("c, g, COUNT(*)", "c", touched.tolist(), " GROUP BY c, g")
        split = pd.DataFrame(parts, columns=["c", "g", "n"]).astype({"g": str, "n": float})
        n = split.pivot_table("n", "c", "g", "sum", 0.0).reindex(index=touched, columns=summary.domains)
        shares = {g: n[g].fillna(0.0).to_numpy() / table[SIZE].to_numpy() for g in summary.domains}
    of_record = {f.name: take_values(labelled[x], f) for f, x in zip(clusters.features, values, strict=True)}
    inside = Attributes(clusters.features, of_record, domain, summary.domains)
    inside.refuse_written_by_matcher(entity, np.full(min(summary.several, WRITTEN), 2), summary.differs)
    records, cluster = labels.records[at], touched.get_indexer(pd.Index(labelled["c"]))
    pieces = locate_pieces(units, records, cluster, entity)
    return Featured(table, inside.rows(entity, E), shares, inside.shares(entity, E), notes, *pieces)


def _join_attributes(
    table: Database, holder: Database, units: Scanned, features: tuple[Feature, ...], by: str | None
) -> Prediction:
    """Return the prediction with the domain g and the values x1, x2, … of each record, which a holder has."""
    record, cluster = units.columns
    needed = list(dict.fromkeys([*(f.column for f in features), *([] if by is None else [by])]))
    columns = list(holder.columns())
    refuse_names(needed, columns or needed, "the table of attributes")
    use_columns(table, record, [cluster], tuple(needed) if holder is table else ())
    if holder is not table:
        near = Prediction.of(table, (record, cluster)).near()
        ids = find_scanned(holder, None, near, "table of attributes", needed)
        holder.use(ids, *needed)
        same_kind(table.kind(record), holder.kind(ids), "attributes")
    further = {"g": "''" if by is None else f"CAST({holder.quote(by)} AS {holder.dialect.text})"}
    further |= {f"x{i}": _write_value(holder, feature) for i, feature in enumerate(features, 1)}
    if holder is table:
        return Prediction.of(table, (record, cluster), further)
    listed = ", ".join([f"{holder.id(ids)} AS r", *(f"{sql} AS {name}" for name, sql in further.items())])
    return Prediction.of(table, (record, cluster)).with_columns(
        further, f"SELECT {listed} FROM {holder.table}"
    )


def _write_value(holder: Database, feature: Feature) -> str:
    """Return SQL of an attribute as a feature needs it."""
    kind = holder.kind(feature.column) or ""
    if feature.aggregate == "distinct" and not FLOATING.match(kind):
        return holder.quote(feature.column)
    if feature.aggregate != "distinct" and kind and not NUMERIC.match(kind):
        raise feature.refuse(f"{feature.column!r} is of type {kind}")
    return holder.number(feature.column)


def _refuse_values(
    prediction: Prediction, holder: Database, units: Scanned, features: tuple[Feature, ...], by: str | None
) -> list[Sentence]:
    """Refuse records without attributes and unusable values, and return notes about missing ones."""
    wrong = ["0"]
    for i, feature in enumerate(features, 1):
        floating = FLOATING.match(holder.kind(feature.column) or "")
        most, sign = (LARGEST, "<=") if floating else (EXACT, "<")
        usable = "1 = 1" if feature.aggregate == "distinct" else f"ABS(x{i}) {sign} {most}"
        wrong.append(f"COUNT(CASE WHEN {usable} THEN NULL ELSE x{i} END)")
    present = [f"COUNT(x{i})" for i in range(1, len(features) + 1)]
    counts = ", ".join(["COUNT(*)", "COUNT(g)", *present, *wrong])
    ((total, grouped, *numbers),) = prediction.database.rows(f"SELECT {counts} FROM {prediction.table}")
    if total != units.rows:
        raise DataError(f"{total - units.rows:,} rows of the attributes repeat a record of the prediction")
    if grouped < total:
        of = f"{total - grouped:,} of {total:,} records"
        none = f"{of} of the prediction have no attributes: the table must list every record"
        raise DataError(none if by is None else f"attribute {by!r} is missing for {of}: fill it in")
    notes = list[Sentence]()
    for feature, number, others in zip(features, numbers, numbers[len(features) + 1 :], strict=False):
        notes += feature.settle_missing(total - number, total)
        if others:
            raise feature.refuse(f"{others:,} of {total:,} values of {feature.column!r} cannot be used")
    return notes
