"""Sums over predicted clusters by SQL: what two predictions share, and statistics of clusters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from .._internal import remedies
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
from ..units.settled import Overlap, Overlaps, Pairs
from .database import Database
from .duckdb import EMBEDDED, DuckDB
from .files import identify, opened, refuse_second_table
from .prediction import FrameIds, Prediction, find_scanned, frame_sources, plain_id, use_columns
from .scanning import Place, Scanned

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
NUMERIC = re.compile(rf"{FLOATING.pattern}|string|integer|mixed|decimal|bool|\"null", re.IGNORECASE)
"""Kinds of columns (`Database.kind`) that are numbers, or may be."""
LARGEST = 1.7976931348623157e308
"""The largest finite number. Comparisons with it are false of NaN and NULL."""
SIGNS = {"==": "=", "!=": "<>"}


def refuse_different_records(predictions: Mapping[str, Scanned]) -> None:
    """Refuse scans of different records or labels, since a comparison would take gaps for errors."""
    (first_name, first), *others = predictions.items()
    for name, other in others:
        if first.rows != other.rows:
            raise DataError(
                f"{first_name!r} and {name!r} cover different records, {first.rows:,} and {other.rows:,}",
                remedies.DIFFERING,
            )
        if not first.ids.equals(other.ids):
            raise DataError(
                f"{first_name!r} and {name!r} are scans for different labels, or leave out different ones"
            )


def overlaps_of(scans: Mapping[str, Scanned]) -> Overlaps:
    """Return what each two scans share, for which their sources are opened again."""
    return Overlaps(partial(_count_each, dict(scans)))


def _count_each(scans: Mapping[str, Scanned], wanted: Pairs) -> list[Overlap]:
    names, units, sizes = [*scans], [*scans.values()], dict[int, str]()
    with _opened_again(units) as predictions:
        for i in {i for pair in wanted for i in pair}:
            database = predictions[i].database
            with database.counting(units[i].rows):
                kept = database.keep(f"SELECT c, COUNT(*) AS m FROM {predictions[i].table} GROUP BY c")
            sizes[i] = f"(SELECT c, m FROM {kept})"
        found = []
        for i, j in wanted:
            records, overlap = _count(units[i], predictions[i], sizes[i], predictions[j], sizes[j])
            if not units[i].rows == units[j].rows == records:
                raise DataError(
                    f"{names[i]!r} and {names[j]!r} cover different records, {units[i].rows:,} and "
                    f"{units[j].rows:,}, of which {records:,} are in both",
                    remedies.DIFFERING,
                )
            found.append(overlap)
        return found


@contextmanager
def _opened_again(scans: Sequence[Scanned]) -> Iterator[list[Prediction]]:
    """Open the predictions of scans, each on the records that were counted."""
    places, first = [place for scan in scans for place in (scan.place, *scan.place.others)], scans[0].place
    sources = {(identify(p.source), p.columns[0]): p.source for p in places}
    with opened([*sources.values(), *frame_sources(first.frame, sources.values())], first.database) as tables:
        of_place = dict(zip(sources, tables, strict=False))
        for key, table in of_place.items():
            own = [p.columns[1] for p in places if (identify(p.source), p.columns[0]) == key]
            use_columns(table, key[1], list(dict.fromkeys(own)))

        def find(place: Place) -> Prediction:
            return Prediction.of(of_place[identify(place.source), place.columns[0]], place.columns)

        predictions = [
            find(scan.place).within(*(f"SELECT r FROM {find(other).table}" for other in scan.place.others))
            for scan in scans
        ]
        for table in tables[len(sources) :]:
            ids = FrameIds.of(table, first.frame_record, predictions[0]).ids
            predictions = [prediction.within(ids) for prediction in predictions]
        yield predictions


def _count(
    units: Scanned, first: Prediction, sizes: str, second: Prediction, others: str
) -> tuple[int, Overlap]:
    """Return the number of common records, and what predictions share by SQL of their clusters c of sizes m.

    They are counted by cells, the n records that clusters c of m and d of k records share.
    """
    database, rows, ids = first.database, units.rows, units.piece_of
    a, b = (f"(SELECT r, c FROM {prediction.table})" for prediction in (first, second))
    both = f"SELECT a.c AS c, b.c AS d, COUNT(*) AS n FROM {a} AS a JOIN {b} AS b ON a.r = b.r"
    with database.counting(rows):
        kept = database.keep(f"{both} GROUP BY a.c, b.c")
    cells = f"{kept} JOIN {sizes} AS s ON p.c = s.c JOIN {others} AS t ON p.d = t.c"
    same = "CASE WHEN n = s.m AND n = t.m THEN {} ELSE 0 END"
    sums = database.rows(
        "WITH g AS (SELECT s.m AS m, t.m AS k, SUM(n * (s.m - n)) AS x, SUM(n * (t.m - n)) AS y, "
        f"SUM(n) AS n, SUM(n * (n - 1)) AS l, SUM({same.format(1)}) AS i, SUM({same.format('n')}) AS j "
        f"FROM {cells} GROUP BY s.m, t.m) "
        "SELECT 0, m, SUM(x), SUM(n), SUM(l), SUM(i), SUM(j) FROM g GROUP BY m "
        "UNION ALL SELECT 1, k, SUM(y), 0, 0, 0, 0 FROM g GROUP BY k"
    )
    side, size, alone, *totals = np.array(sorted(sums), dtype=float).reshape(-1, 7).T
    records, links, clusters, inside = np.sum(totals, axis=1)
    different = [np.flatnonzero((side == x) & (alone > 0)) for x in (0, 1)]
    one, other = ((size[at], alone[at] / 2) for at in different)
    assert ids is not None
    select, labelled = f"SELECT p.c, p.d, p.n, s.m, t.m, l.n FROM {cells} JOIN", list[tuple[Any, ...]]()
    for listed in database.listed(ids.index.tolist()):
        known = f"({both} WHERE a.r IN ({listed}) GROUP BY a.c, b.c) AS l"
        labelled += database.rows(f"{select} {known} ON p.c = l.c AND p.d = l.d")
    database.drop(kept)
    # cells come again with each list of ids
    table = pd.DataFrame(labelled, columns=[*"cdnmk", "known"])
    table = table.astype(dict.fromkeys([*"nmk", "known"], float))
    cell = table.groupby([*"cdnmk"], as_index=False)["known"].sum()
    differ = (cell["n"] != cell["m"]) | (cell["n"] != cell["k"])
    of_labelled = cell["n"].to_numpy(), cell["known"].to_numpy(), differ.to_numpy()
    return int(records), Overlap.labelled((links / 2, clusters, inside), (one, other), rows, of_labelled)


def scan_features(
    source: Any,
    units: Scanned,
    labels: Clustering,
    statistics: Any,
    *,
    attributes: Any = None,
    features: Any = None,
    database: DuckDB = EMBEDDED,
) -> tuple[tuple[Statistic, ...], dict[str, FloatArray], Featured]:
    """Compute statistics of all clusters, (S,), as domain "", and features of touched ones and entities."""
    features, statistics = features_of(features), statistics_of(statistics)
    if others := [statistic.name for statistic in statistics if not statistic.sums]:
        raise DataError(
            f"{head(others)} needs a row for each predicted cluster, but a database returns only sums, as of "
            "count, total, mean, share and ratio: read the prediction into memory, as by pandas.read_parquet"
        )
    if names := [feature.name for feature in features if callable(feature.how)]:
        raise DataError(
            f"{head(names)} aggregates by a function, which no database runs: read all into memory"
        )
    sources = [source, *([attributes] if features and attributes is not None else [])]
    refuse_second_table(sources if len(sources) > 1 else [], "second table of attributes")
    with opened(sources, database) as tables:
        prediction = _join_attributes(tables[0], tables[-1], units, features)
        notes = _refuse_values(prediction, tables[-1], units, features)
        clusters = Clusters(prediction, features, units.rows)
        summary = clusters.summarise(statistics)
        parts = [[*(summary.totals[term] for term in one.sums), 1.0][:2] for one in statistics]
        top, bottom = np.array(parts, dtype=float).reshape(-1, 2).T
        with np.errstate(divide="ignore", invalid="ignore"):
            known = top / bottom
        known[~np.isfinite(known)] = np.nan
        fitted = tuple(statistic.fit(summary.least) for statistic in statistics)
        return fitted, {"": known}, _find_touched(clusters, units, labels, summary, tuple(notes))


@dataclass(frozen=True, slots=True)
class Summary:
    """Sums over all predicted clusters: `totals` of terms, and `least`, (1,), of each feature.

    `several`: clusters of two or more records; `differs`: whether values differ inside a cluster.
    """

    totals: dict[str | None, float]
    least: pd.DataFrame
    several: int
    differs: dict[str, bool]


@dataclass(frozen=True, slots=True)
class Clusters:
    """Predicted clusters as SQL: their features f0 (the size), f1, … and whether values differ, d1, …"""

    prediction: Prediction
    features: tuple[Feature, ...]
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
            *((f"SUM({self.write_term(term)})", sum) for term in terms),
        ]
        select, rows = f"SELECT {', '.join(sql for sql, _ in columns)} FROM", list[tuple[Any, ...]]()
        for part in database.parts("c", self.records):
            clusters = f"SELECT {self.aggregates()} FROM {self.prediction.table} WHERE {part} GROUP BY c"
            rows += database.rows(f"{select} ({clusters}) AS s")
        table = zip(*(row for row in rows if row[0]), strict=True)  # a part may have no cluster
        number, several, *rest = (how(part) for (_, how), part in zip(columns, table, strict=True))
        for name, wrong in zip(names, rest, strict=False):
            refuse_unusable(name, int(wrong), int(number))
        least, flags, sums = np.split(np.array(rest[len(i) :], dtype=float), [len(i), 2 * len(i) - 1])
        differs = dict(zip(names[1:], flags > 0, strict=True))
        totals = dict(zip(terms, sums, strict=True))
        return Summary(totals, pd.DataFrame([least], columns=names), int(several), differs)


def _find_touched(
    clusters: Clusters, units: Scanned, labels: Clustering, summary: Summary, notes: tuple[Sentence, ...]
) -> Featured:
    """Return features of the clusters that labels touch, and of labelled entities, as `Featured.of` does."""
    prediction, names = clusters.prediction, clusters.names
    values = [f"x{i}" for i in range(1, len(names))]
    columns = ["r", "c", *values]
    rows = prediction.rows_in(", ".join(columns), "r", labels.records.tolist())
    labelled = pd.DataFrame(rows, columns=columns)
    labelled["c"] = [plain_id(c) for c in labelled["c"]]
    # rows come in any order, and sums depend on it by rounding
    at = labels.records.get_indexer(pd.Index(labelled["r"]))
    labelled, at = labelled.iloc[np.argsort(at)].reset_index(drop=True), np.sort(at)
    touched = pd.Index(labelled["c"].drop_duplicates())
    rows = prediction.rows_in(clusters.aggregates(), "c", touched.tolist(), " GROUP BY c")
    table = pd.DataFrame(rows, columns=["c", *names, *(f"d{i}" for i in range(1, len(names)))])
    table = table.set_index("c").loc[touched, names].astype(float).reset_index(drop=True)
    entity = pd.factorize(labels.codes[at])[0]
    of_entity = entity, int(entity.max()) + 1
    of_record = {f.name: take_values(labelled[x], f) for f, x in zip(clusters.features, values, strict=True)}
    inside = Attributes(clusters.features, of_record, np.zeros(len(labelled), dtype=np.int64), ("",))
    inside.refuse_written_by_matcher(entity, np.full(min(summary.several, WRITTEN), 2), summary.differs)
    records, cluster = labels.records[at], touched.get_indexer(pd.Index(labelled["c"]))
    pieces = locate_pieces(units, records, cluster, entity)
    shares = {"": np.ones(len(table))}
    return Featured(table, inside.rows(*of_entity), shares, inside.shares(*of_entity), notes, *pieces)


def _join_attributes(
    table: Database, holder: Database, units: Scanned, features: tuple[Feature, ...]
) -> Prediction:
    """Return the prediction with the values x1, x2, … of each record that a holder has, and with a = 1."""
    record, cluster = units.columns
    needed = list(dict.fromkeys(feature.column for feature in features))
    refuse_names(needed, list(holder.columns()) or needed, "the table of attributes")
    use_columns(table, record, [cluster], tuple(needed) if holder is table else ())
    if holder is not table:
        near = Prediction.of(table, (record, cluster)).near()
        ids = find_scanned(holder, None, near, "table of attributes", needed)
        holder.use(ids, *needed)
        same_kind(table.kind(record), holder.kind(ids), "attributes")
    further = {"a": "1"} | {f"x{i}": _write_value(holder, feature) for i, feature in enumerate(features, 1)}
    if holder is table:
        return Prediction.of(table, (record, cluster), **further)
    listed = ", ".join([f"{holder.id(ids)} AS r", *(f"{sql} AS {name}" for name, sql in further.items())])
    return Prediction.of(table, (record, cluster)).with_columns(
        further, f"SELECT {listed} FROM {holder.table}"
    )


def _write_value(holder: Database, feature: Feature) -> str:
    kind = holder.kind(feature.column) or ""
    if feature.aggregate == "distinct" and not FLOATING.match(kind):
        return holder.quote(feature.column)
    if feature.aggregate != "distinct" and kind and not NUMERIC.match(kind):
        raise feature.refuse(f"{feature.column!r} is of type {kind}")
    return holder.number(feature.column)


def _refuse_values(
    prediction: Prediction, holder: Database, units: Scanned, features: tuple[Feature, ...]
) -> list[Sentence]:
    """Refuse records without attributes and unusable values, and return notes about missing ones."""
    counts = ["COUNT(*)", "COUNT(a)"]
    for i, feature in enumerate(features, 1):
        most, sign = (LARGEST, "<=") if FLOATING.match(holder.kind(feature.column) or "") else (EXACT, "<")
        usable = "1 = 1" if feature.aggregate == "distinct" else f"ABS(x{i}) {sign} {most}"
        counts += [f"COUNT(x{i})", f"COUNT(CASE WHEN {usable} THEN NULL ELSE x{i} END)"]
    select = f"SELECT {', '.join(counts)} FROM {prediction.table}"
    ((total, there, *numbers),) = prediction.database.rows(select)
    if total != units.rows:
        raise DataError(f"{total - units.rows:,} rows of the attributes repeat a record of the prediction")
    if there < total:
        raise DataError(
            f"{total - there:,} of {total:,} records of the prediction have no attributes: the table must "
            "list every record"
        )
    notes = list[Sentence]()
    for feature, number, others in zip(features, numbers[::2], numbers[1::2], strict=True):
        notes += feature.settle_missing(total - number, total)
        if others:
            raise feature.refuse(f"{others:,} of {total:,} values of {feature.column!r} cannot be used")
    return notes
