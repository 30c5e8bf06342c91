"""Faults of a prediction in a database, which are refused by their number and examples."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any
from unicodedata import normalize

import pandas as pd

from .._internal.errors import DataError, Remedy, head, refuse_cases
from ..units.clustering import refuse_nulls
from ..units.ids import ROUNDED, find_nulls
from ..units.units import KnownTotals
from .database import Database, changed
from .keys import Prediction

HINTED = 1000
"""Most labelled records that are looked for without case and blanks, as a habit of writing shows in few."""


def refuse_missing(prediction: Prediction, total: int, records: int, clusters: int, unnamed: int = 0) -> None:
    """Refuse missing ids, by the number of rows and those of ids that are there."""
    absent = [
        ("record", prediction.record, total - records),
        ("cluster", prediction.cluster, total - clusters),
        ("release", prediction.release, unnamed),
    ]
    for what, column, number in absent:
        if column and number:
            other = prediction.cluster if column == prediction.record else prediction.record
            raise DataError(
                f"{what} ids of the prediction: {number} of {total} are missing"
                + prediction.examples(other, f"{prediction.database.quote(column)} IS NULL")
            )
    if not total:
        raise DataError(
            "no record is in every prediction" if prediction.release else "the prediction holds no record"
        )


def refuse_unclustered(prediction: Prediction) -> None:
    """Refuse records that share a cluster id that is null, and ids that a spreadsheet rounded."""
    for column, whose in ((prediction.record, "record"), (prediction.cluster, "cluster")):
        _refuse_rounded(prediction.database, column, f"{whose} ids of the prediction")
    nones = prediction.database.no_clusters(prediction.cluster)
    for v, sizes in prediction.count_keys("c", nones).items():
        found = find_nulls({nones[key]: size for key, size in sizes.items()})
        named = _mark_named_after_records(prediction, nones, list(found))
        shared = {id: size for id, size in found.items() if id not in named}
        rows = _count_rows(prediction)[v] if shared else 0
        release = prediction.called(v)
        what = "cluster ids of the prediction"
        whose = what if release is None else f"{what}, in {release}"
        refuse_nulls(whose, shared, rows, Remedy.SCANNED_ANY_ID)


def _refuse_rounded(database: Database, column: str, what: str) -> None:
    """Refuse a column with texts such as 1.00001E+11."""
    if database.kind(column) == "string":
        id = database.id(column)
        written = (
            f"SELECT DISTINCT {id} AS id FROM {database.table} WHERE {id} LIKE '%E+%' OR {id} LIKE '%e+%'"
        )
        texts = [text for (text,) in database.rows(f"SELECT id FROM ({written}) AS t LIMIT {HINTED}")]
        said = f"{what}: {{n}} ids are numbers that a spreadsheet rounded, such as"
        rounded = [text for text in texts if re.search(ROUNDED, text)]
        refuse_cases(rounded, said, ": export them as text", Remedy.SCANNED_ANY_ID)


def _count_rows(prediction: Prediction) -> dict[Any, int]:
    """Return the number of records of each release."""
    by = prediction.by
    return dict(prediction.rows(f"SELECT {by.v}COUNT(*) FROM {prediction.table}{by.grouped}"))


def _mark_named_after_records(prediction: Prediction, ids: Mapping[Any, Any], found: list[Any]) -> set[Any]:
    """Return those of the `found` ids of clusters which a record of the cluster has as its own id."""
    database = prediction.database
    if not found or (database.kind(prediction.record) == "string") != isinstance(found[0], str):
        return set()
    records = database.keys(prediction.record, found)
    rows = database.rows_with(f"SELECT r, c FROM {prediction.table}", "r", records)
    return {records[r] for r, key in rows if ids.get(key) == records[r]}


def refuse_headings(prediction: Prediction) -> None:
    """Refuse text files whose first line is a record, or that have it again further below."""
    database = prediction.database
    columns = {"r": prediction.record, "c": prediction.cluster}
    if condition := database.repeats_heading(columns):
        ((times,),) = database.rows(f"SELECT COUNT(*) FROM {prediction.table} WHERE {condition}")
        if times:
            named = " or ".join(map(repr, columns.values()))
            raise DataError(
                f"the prediction: {times:,} rows hold {named} in the column of this name: is the first line "
                "a record, or one of several headers? The first line of each file, and no other, must name "
                "the columns"
            )


def refuse_changes(
    prediction: Prediction, rows: int, touched: set[Any], sizes: Mapping[Any, int], known: KnownTotals
) -> None:
    """Refuse counts that contradict each other, since every statement reads a table anew that may change."""
    total = int(known.size @ known.count)
    clusters = dict(zip(known.size.tolist(), known.count.tolist(), strict=True))
    labelled_sizes = Counter(sizes.get(cluster, 0) for cluster in touched)
    if total != rows:
        raise changed(f"{rows:,} records were counted, and then {total:,} in all clusters")
    if any(number > clusters.get(size, 0) for size, number in labelled_sizes.items()):
        raise changed("a cluster that the labels touch has a size that no cluster has")


def refuse_duplicates(prediction: Prediction, within: Iterable[str], which: str) -> str:
    """Refuse duplicate ids of records that meet a condition `within`; return where they were looked for."""
    database = prediction.database
    share, where, checked = database.share("r"), "", "all record ids"
    if share is not None:
        where = " WHERE " + " OR ".join([share, *within])
        checked = f"all records of the {which} and one in {database.one_in} of the others"
    keys = f"{prediction.by.v}r"
    several = f"SELECT {keys}, COUNT(*) AS k FROM {prediction.table}{where} GROUP BY {keys}"
    ((repeats, *ends),) = database.rows(
        f"SELECT SUM(k - 1), MIN(r), MAX(r) FROM ({several}) AS s WHERE k > 1"
    )
    if repeats:
        raise DataError(
            f"record ids of the prediction: {repeats} duplicates, such as {head(prediction.named(ends))}, "
            f"among {checked}"
        )
    return checked


def refuse_other_writing(prediction: Prediction, lacking: pd.Index) -> None:
    """Refuse labelled records that the prediction has in another case or form, or with other blanks."""
    if not len(lacking) or not isinstance(lacking[0], str):
        return
    forms = [normalize(form, record) for record in lacking[:HINTED] for form in ("NFC", "NFD")]
    plain_ids = [record.strip().lower() for record in [*lacking[:HINTED], *forms]]
    plain = f"LOWER(TRIM({prediction.database.id(prediction.record)}))"
    # an id that is there to the letter is of another release, and no other writing
    if similar := [id for id in prediction.ids_with(plain, plain_ids) if id not in set(lacking)]:
        raise DataError(
            f"{len(lacking)} labelled records are not in the prediction, such as {head(lacking)}; but "
            f"{len(similar)} ids there differ from these in case or blanks, or in the form of Unicode only, "
            f"such as {head(similar)}: bring both to one form"
        )
