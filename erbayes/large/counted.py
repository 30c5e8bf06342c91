"""Units of a prediction that a database has counted, and the faults for which it is refused."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from unicodedata import normalize

import numpy as np
import pandas as pd

from .._internal.errors import DataError, Remedy, head, refuse_cases
from .._internal.remedies import Missing
from ..units.clustering import Clustering, FrameFacts, refuse_nulls
from ..units.ids import DIGITS, NULL_NUMBERS, NULL_TEXTS, ROUNDED, find_nulls, refuse_blanks
from ..units.measuring import assemble, position_in_labels, refuse_edges, sampled_labels
from ..units.units import KnownTotals, Units
from .database import CODED, changed
from .duckdb import DuckDB
from .prediction import GroupColumn, Prediction, split_pieces
from .reading import plain_id

HINTED = 1000
"""Most ids that are looked at for a habit of writing, which shows in few."""
NONE_TEXTS = {text.strip() for text in NULL_TEXTS} - {"0"}
"""Texts that mean no cluster, in small letters without blanks around them."""
NONE_INTEGERS = (*NULL_NUMBERS, 2**64 - 1)
ANY_ID = Remedy("or, if it is a real id", "Columns(any_id=True)", "--any-id")
"""What to do about ids that mean none."""
BLANKS = (" ", "\t", "\u00a0")
"""Blanks that are looked for at the ends of cluster ids."""
LONGEST = 2 + max(map(len, NONE_TEXTS))
"""Letters of the longest id that can mean no cluster, so that long ids are not put into small letters."""


def write_no_cluster(prediction: Prediction) -> str:
    """SQL that is true of cluster ids c that may mean no cluster."""
    database = prediction.database
    if database.kind(prediction.cluster) != "string":
        return f"c IN ({', '.join(map(str, NONE_INTEGERS))})"
    texts = [*sorted(NONE_TEXTS), "0", *DIGITS]
    plain = ", ".join(database.dialect.literal(text) for text in texts if not re.search(CODED, text))
    # so that a database need not know the code of a character; what else this finds is left out later
    coded = [re.sub(CODED, "_", text) for text in texts if re.search(CODED, text)]
    alike = " OR ".join(f"LOWER(TRIM(c)) LIKE '{pattern}'" for pattern in coded)
    short = f"LENGTH(c) <= {2 + max(map(len, coded))} AND ({alike})"
    return f"LENGTH(c) <= {LONGEST} AND (LOWER(TRIM(c)) IN ({plain}) OR {short})"


def refuse_no_cluster(prediction: Prediction, sizes: Mapping[Any, int], records: int, whose: str) -> None:
    """Refuse clusters of several records whose ids mean none, unless it is the id of one of their records."""
    database = prediction.database
    exact = {"0", *DIGITS}
    several = find_nulls(
        {
            id: size
            for id, size in sizes.items()
            if not isinstance(id, str) or id in exact or id.strip().lower() in NONE_TEXTS
        }
    )
    if several and database.kind(prediction.record) == database.kind(prediction.cluster):
        of_none = f"SELECT c FROM {prediction.table} WHERE r = c AND {write_no_cluster(prediction)}"
        own = {id for (id,) in database.rows(of_none)}
        several = {id: size for id, size in several.items() if id not in own}
    refuse_nulls(f"cluster ids of the prediction{whose}", several, records, ANY_ID)


def refuse_missing(prediction: Prediction, total: int, records: int, clusters: int) -> None:
    """Refuse missing ids, by the number of rows and those of ids that are there."""
    for what, key, present, other in (
        ("record", "r", records, prediction.cluster),
        ("cluster", "c", clusters, prediction.record),
    ):
        if present < total:
            raise DataError(
                f"{what} ids of the prediction: {total - present} of {total} are missing"
                + prediction.examples(other, f"{key} IS NULL")
            )
    if not total:
        raise DataError("the prediction has no record")


def write_blank(prediction: Prediction) -> str:
    """SQL that is true of cluster ids c with a blank at an end, which is a space, a tab or one from HTML."""
    dialect, conditions = prediction.database.dialect, ["1 = 0"]
    if prediction.database.kind(prediction.cluster) == "string":
        for blank in map(dialect.literal, BLANKS):
            both = ((blank, "'%'"), ("'%'", blank))
            conditions += [f"c LIKE {dialect.joined.format(dialect.between.join(ends))}" for ends in both]
    return " OR ".join(conditions)


def refuse_blank_ends(prediction: Prediction) -> None:
    """Refuse cluster ids that are there without the blanks at their ends too, as `refuse_blanks` does."""
    condition = f"({write_blank(prediction)}) LIMIT {HINTED}"
    ids = [
        id
        for (id,) in prediction.database.rows(f"SELECT DISTINCT c FROM {prediction.table} WHERE {condition}")
    ]
    bare = dict.fromkeys(id.strip() for id in ids)
    there = [id for (id,) in prediction.rows_in("DISTINCT c", "c", bare)]
    records = [id for (id,) in prediction.rows_in("DISTINCT r", "r", ids)] if ids else []
    refuse_blanks(pd.Index([*ids, *there]).unique(), "cluster ids of the prediction", pd.Index(records))


def refuse_duplicates(prediction: Prediction, rows: int) -> None:
    """Refuse repeated record ids, which are counted exactly and in parts that fit in memory."""
    database, table = prediction.database, prediction.table
    parts = database.parts("r", rows)
    distinct = 0
    with database.counting(rows):
        for part in parts:
            unique = f"SELECT r FROM {table} WHERE {part} GROUP BY r"
            distinct += int(database.rows(f"SELECT COUNT(*) FROM ({unique}) AS d")[0][0])
    if distinct < rows:
        ends: set[Any] = set()
        for part in parts:
            several = f"SELECT r FROM {table} WHERE {part} GROUP BY r HAVING COUNT(*) > 1"
            ends.update(*database.rows(f"SELECT MIN(r), MAX(r) FROM ({several}) AS d"))
        shown = head(sorted(ends - {None})[:: max(len(ends) - 2, 1)])
        raise DataError(f"record ids of the prediction: {rows - distinct} duplicates, such as {shown}")


def refuse_other_writing(prediction: Prediction, missing: pd.Index) -> None:
    """Refuse labelled records that the prediction has in another case or form, or with other blanks."""
    if not len(missing) or not isinstance(missing[0], str):
        return
    forms = [normalize(form, record) for record in missing[:HINTED] for form in ("NFC", "NFD")]
    plain = [record.strip().lower() for record in [*missing[:HINTED], *forms]]
    rows = prediction.rows_in("DISTINCT r", "LOWER(TRIM(r))", dict.fromkeys(plain))
    if similar := sorted(id for (id,) in rows if id not in set(missing)):
        raise DataError(
            f"{len(missing)} labelled records are not in the prediction, such as {head(missing)}; but "
            f"{len(similar)} ids there differ from these in case or blanks, or in the form of Unicode only, "
            f"such as {head(similar)}: bring both to one form"
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Place:
    """Where a prediction lies: its `source`, its `columns` of record and cluster ids, and its `database`.

    `frame`: that of the scan, whose ids are in the column `frame_record`; `others`: places of the predictions
    with which it shares the records that were counted.
    """

    source: Any
    columns: tuple[str, str]
    frame: Any
    frame_record: str | None
    database: DuckDB
    others: tuple[Place, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Scanned(Units):
    """Units of a prediction that a database has counted. `scan` makes them.

    `rows`: records of the prediction; `columns`: names of the columns of record and cluster ids; `place`:
    where it lies.
    """

    rows: int = 0
    columns: tuple[str, ...] = ()
    place: Place = field(kw_only=True)

    def refuse_others(self, labels: Any, **others: Any) -> None:
        """Refuse labels of other records or entities than those of the scan, and what else it has already."""
        assert self.piece_of is not None
        own, entity = self.piece_of.index, self.group[self.piece_of]
        given = [name for name, other in others.items() if other is not None]
        if labels is not None:
            labels = sampled_labels(labels)
            at, number = labels.records.get_indexer(own), len(labels.records)
            one, other = (pd.factorize(codes)[0] for codes in (labels.codes[at], entity))
            # those that the prediction does not have may be left out
            as_many = number in {len(own), len(own) + self.unmatched}
            if (at < 0).any() or not as_many or (one != other).any():
                given.append(f"the {number:,} labels, which are not its own {len(own):,}")
        if given:
            raise DataError(
                f"a finished scan has its labels, blocks and frame already: leave out {', '.join(given)}, or "
                "scan the prediction again with what is given"
            )


def count_rows(prediction: Prediction, any_id: bool) -> int:
    """Count the records, and refuse ids that are missing or wrongly written."""
    database, quote = prediction.database, prediction.database.dialect.literal
    columns = {"r": prediction.record, "c": prediction.cluster}
    headed = [
        f"{key} IN ({', '.join(map(quote, names))})"
        for key, column in columns.items()
        if (names := database.headings.get(column, ()))
    ]
    texts = [key for key in columns if not any_id and database.kind(columns[key]) == "string"]
    rounded = [f"({key} LIKE '%E+%' OR {key} LIKE '%e+%')" for key in texts]  # such as 1.00001E+11
    faults = [" OR ".join(headed or ["1 = 0"]), "1 = 0" if any_id else write_blank(prediction), *rounded]
    counts = ", ".join(f"SUM(CASE WHEN {fault} THEN 1 ELSE 0 END)" for fault in faults)
    select = f"SELECT COUNT(*), COUNT(r), COUNT(c), {counts} FROM {prediction.table}"
    ((total, records, clusters, headings, blanks, *suspects),) = database.rows(select)
    if headings:
        names = " or ".join(map(repr, columns.values()))
        raise DataError(
            f"the prediction: {int(headings):,} rows hold {names} in the column of this name: is the first "
            "line a record, or one of several headers? The first line of each file, and no other, must name "
            "the columns"
        )
    refuse_missing(prediction, int(total), int(records), int(clusters))
    for key, condition, number in zip(texts, rounded, suspects, strict=True):
        if number:
            listed = f"SELECT DISTINCT {key} FROM {prediction.table} WHERE {condition} LIMIT {HINTED}"
            cases = [text for (text,) in database.rows(listed) if re.search(ROUNDED, text)]
            what = f"{'record' if key == 'r' else 'cluster'} ids of the prediction"
            said = f"{what}: {{n}} ids are numbers that a spreadsheet rounded, such as"
            refuse_cases(cases, said, ": export them as text", ANY_ID)
    if blanks:
        refuse_blank_ends(prediction)
    return int(total)


def count_sizes(
    prediction: Prediction, rows: int, any_id: bool, whose: str = "", sizes: str | None = None
) -> KnownTotals:
    """Count predicted clusters by their size, and refuse those whose ids mean no cluster.

    `sizes`: SQL of a table of clusters c and sizes m, if there is one.
    """
    counts: Counter[int] = Counter()
    suspects: dict[Any, int] = {}
    none = "" if any_id else f", CASE WHEN {write_no_cluster(prediction)} THEN c END AS none_id"
    by = "m" if any_id else "m, none_id"
    with prediction.database.counting(rows):
        for part in prediction.database.parts("c", rows):
            # looked for per cluster, which costs a tenth of doing so per record
            clusters = f"SELECT COUNT(*) AS m{none} FROM {prediction.table} WHERE {part} GROUP BY c"
            if sizes is not None:
                clusters = f"SELECT m{none} FROM {sizes} WHERE {part}"
            of_size = f"SELECT {by}, COUNT(*) FROM ({clusters}) AS s GROUP BY {by}"
            for *key, k in prediction.database.rows(of_size):
                counts[int(key[0])] += int(k)
                if key[-1] is not None and not any_id:
                    suspects[key[-1]] = int(key[0])
    refuse_no_cluster(prediction, suspects, rows, whose)
    if rows != (now := sum(m * k for m, k in counts.items())):
        raise changed(f"{rows:,} records were counted, and then {now:,} in all clusters")
    cased = 0
    if prediction.database.kind(prediction.cluster) == "string":
        read, table = prediction.database.rows, prediction.table
        # most ids have no capital, which a look tells without counting
        if read(f"SELECT MAX(CASE WHEN c <> LOWER(c) THEN 1 ELSE 0 END) FROM {table}")[0][0]:
            parts, folded = (
                prediction.database.parts("LOWER(c)", rows),
                "SELECT COUNT(DISTINCT LOWER(c)) FROM",
            )
            cased = sum(counts.values()) - sum(int(read(f"{folded} {table} WHERE {p}")[0][0]) for p in parts)
    # copied, so that sums add in the order in which they do in memory
    size, count = np.array(sorted(counts.items()), dtype=float).T.copy()
    return KnownTotals(size, count, cased=cased)


def count_units(
    prediction: Prediction,
    known: KnownTotals,
    labels: Clustering,
    blocks: Any,
    missing: Missing,
    groups: GroupColumn | None,
    facts: FrameFacts | None,
    rows: int,
    place: Place,
) -> Scanned:
    """Count the units of labelled records in a prediction whose clusters are `known`."""
    cluster, group = _find_labelled(prediction, labels, groups is not None)
    touched = list(dict.fromkeys(cluster[cluster.notna()].tolist()))
    sizes = dict(prediction.rows_in("c, COUNT(*)", "c", touched, " GROUP BY c"))
    # every statement reads a table anew, which may change
    number = dict(zip(known.size.tolist(), known.count.tolist(), strict=True))
    if any(k > number.get(m, 0) for m, k in Counter(int(sizes.get(c, 0)) for c in touched).items()):
        raise changed("a cluster that the labels touch has a size that no cluster has")
    size = np.array([int(sizes[c]) for c in touched], dtype=np.int64)
    codes = pd.Index(touched, dtype=object).get_indexer(cluster)
    # the last one is for the code -1 of labelled records that are missing in the prediction
    named = np.append(position_in_labels(labels, pd.Index(touched)), -1)[codes]
    entity = position_in_labels(labels, labels.clusters)
    refuse_edges(labels, codes, named, np.where(entity < 0, -1, codes[entity]), size, rows)
    if missing is Missing.ERROR:
        refuse_other_writing(prediction, labels.records[codes < 0])
    units = assemble(labels, codes, size, known, blocks=blocks, missing=missing)
    groupings = units.groupings
    if groups is not None:
        of_record = groups.look_up(labels, group)
        groupings = (
            split_pieces(prediction, groups, of_record, units, touched, pd.Series(codes, labels.records)),
        )
    return Scanned(
        **units.__getstate__() | {"frame": facts, "groupings": groupings},
        rows=rows,
        columns=place.columns,
        place=place,
    )


def _find_labelled(
    prediction: Prediction, labels: Clustering, grouped: bool
) -> tuple[pd.Series, dict[Any, Any]]:
    """Return the cluster of each labelled record, None if it is missing, and groups of records by id."""
    ids = labels.records.tolist()
    position = {id: i for i, id in enumerate(ids)}
    cluster = pd.Series([None] * len(ids), dtype=object)
    group: dict[Any, Any] = {}
    for r, c, *value in prediction.rows_in("r, c, g" if grouped else "r, c", "r", ids):
        # a database may compare text without case or trailing blanks
        if r not in position:
            raise DataError(
                f"the database takes {r!r} for a labelled record, which has another id: it must compare "
                "ids exactly, with case and blanks"
            )
        cluster[position[r]] = plain_id(c)
        if grouped:
            group[r] = value[0]
    return cluster, group
