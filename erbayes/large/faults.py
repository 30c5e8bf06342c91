"""Faults of a prediction in a database, which are refused by their number and examples."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from .._internal.errors import DataError, Remedy, head
from ..units.clustering import refuse_none, standing_for_none
from ..units.units import KnownTotals
from .joint import refuse_lacking, refuse_repeated_heading
from .keys import Prediction

HINTED = 1000
"""Number of labelled records that are looked for without case and blanks, if the prediction lacks them."""


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
    """Refuse records that share a cluster id which stands for none, also in second clusterings."""
    clusters = prediction.cluster, "c", prediction.database.no_clusters(prediction.cluster)
    seconds = [(second.name, second.column, second.no_clusters) for second in prediction.seconds]
    for i, (name, column, nones) in enumerate([clusters, *seconds]):
        what = f"cluster ids of the second clustering {name!r}" if i else "cluster ids of the prediction"
        for v, sizes in _count_sizes(prediction, column, nones).items():
            found = standing_for_none(sizes)
            named = _mark_named_after_records(prediction, column, nones, list(found))
            shared = {id: size for id, size in found.items() if id not in named}
            rows = (
                sum(n for u, n in prediction.rows(_count_by_release(prediction)) if u == v) if shared else 0
            )
            refuse_none(what if v is None else f"{what}, in {v!r}", shared, rows, Remedy.SCANNED_ANY_ID)


def _count_by_release(prediction: Prediction) -> str:
    """Return SQL that counts the records of each release."""
    grouped = " GROUP BY v" if prediction.by else ""
    return f"SELECT {prediction.by}COUNT(*) FROM {prediction.table}{grouped}"


def _count_sizes(prediction: Prediction, column: str, ids: Mapping[Any, Any]) -> dict[Any, dict[Any, int]]:
    """Return the number of records with some ids in a column of keys, by release and id."""
    sizes: dict[Any, dict[Any, int]] = defaultdict(dict)
    for inside in prediction.database.listed(list(ids)) if ids else ():
        for v, key, size in prediction.rows(
            f"SELECT {prediction.by}{column}, COUNT(*) FROM {prediction.table} "
            f"WHERE {column} IN ({inside}) GROUP BY {prediction.by}{column}"
        ):
            sizes[v][ids[key]] = int(size)
    return sizes


def _mark_named_after_records(
    prediction: Prediction, column: str, ids: Mapping[Any, Any], found: list[Any]
) -> set[Any]:
    """Return those of the `found` ids of clusters which a record of the cluster has as its own id."""
    database = prediction.database
    if not found or (database.kind(prediction.record) == "string") != isinstance(found[0], str):
        return set()
    records = database.keys(prediction.record, found)
    rows = (
        row
        for inside in database.listed(list(records))
        for row in database.rows(f"SELECT r, {column} FROM {prediction.table} WHERE r IN ({inside})")
    )
    return {records[r] for r, key in rows if ids.get(key) == records[r]}


def refuse_headings(prediction: Prediction) -> None:
    """Refuse text files whose first line is a record, or that have it again further below."""
    database = prediction.database
    columns = {"r": prediction.record, "c": prediction.cluster}
    if condition := database.repeats_heading(columns):
        ((times,),) = database.rows(f"SELECT COUNT(*) FROM {prediction.table} WHERE {condition}")
        refuse_repeated_heading(int(times), columns.values(), "the prediction")


def refuse_gaps(prediction: Prediction, rows: Mapping[Any, int]) -> None:
    """Refuse second clusterings that miss records of the prediction; each release has some `rows`."""
    grouped = " GROUP BY v" if prediction.by else ""
    for second in prediction.seconds:
        if second.heading is not None:
            ((times,),) = prediction.database.rows(
                f"SELECT COUNT(*) FROM {second.joined} WHERE {second.heading}"
            )
            refuse_repeated_heading(int(times), second.names, f"the second clustering {second.name!r}")
        for v, lacking, *ends in prediction.rows(
            f"SELECT {prediction.by}COUNT(*), MIN(r), MAX(r) FROM {prediction.table} "
            f"WHERE {second.column} IS NULL{grouped}"
        ):
            if lacking:
                whose = "the prediction" if v is None else f"{v!r}"
                refuse_lacking(int(lacking), rows[v], second.name, prediction.named(ends), whose)


def refuse_repeats(prediction: Prediction) -> None:
    """Refuse second tables that have a record of the prediction twice."""
    joined = [second for second in prediction.seconds if second.joined is not None]
    if not joined:
        return
    before, after = (
        int(prediction.database.rows(f"SELECT COUNT(*) FROM {table}")[0][0])
        for table in (prediction.source, prediction.table)
    )
    # a join without repeats keeps the number of rows, so that the search is made only after a change
    for second in joined if after != before else ():
        several = f"SELECT r, COUNT(*) AS k FROM {second.joined} GROUP BY r"
        ((repeats, *ends),) = prediction.database.rows(
            f"SELECT SUM(k - 1), MIN(r), MAX(r) FROM ({several}) AS t "
            f"WHERE k > 1 AND r IN (SELECT r FROM {prediction.table})"
        )
        if repeats:
            raise DataError(
                f"record ids of the second clustering {second.name!r}: {repeats} duplicates, such as "
                f"{head(prediction.named(ends))}"
            )


def refuse_changes(
    prediction: Prediction, rows: int, touched: set[Any], sizes: Mapping[Any, int], known: KnownTotals
) -> None:
    """Refuse counts that contradict each other, since every statement reads a table anew that may change."""
    total = int(known.size @ known.count)
    clusters = dict(zip(known.size.tolist(), known.count.tolist(), strict=True))
    labelled_sizes = Counter(sizes.get(cluster, 0) for cluster in touched)
    change = ""
    if total != rows:
        change = f"{rows:,} records were counted, and then {total:,} in all clusters"
    elif any(number > clusters.get(size, 0) for size, number in labelled_sizes.items()):
        change = "a cluster that the labels touch has a size that no cluster has"
    if change:
        raise DataError(
            f"the prediction changed while it was scanned: {change}. Scan a copy or a version of it, "
            "or all in one transaction of isolation REPEATABLE READ"
        )


def refuse_duplicates(prediction: Prediction, within: Iterable[str], which: str) -> str:
    """Refuse duplicate ids of records that meet a condition `within`; return where they were looked for."""
    database = prediction.database
    share, where, checked = database.share("r"), "", "all record ids"
    if share is not None:
        where = " WHERE " + " OR ".join([share, *within])
        checked = f"all records of the {which} and one in {database.one_in} of the others"
    several = (
        f"SELECT {prediction.by}r, COUNT(*) AS k FROM {prediction.table}{where} GROUP BY {prediction.by}r"
    )
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
    """Refuse labelled records that the prediction has in another case or with other blanks."""
    if not len(lacking) or not isinstance(lacking[0], str):
        return
    plain_ids = [r.strip().lower() for r in lacking[:HINTED]]
    plain = f"LOWER(TRIM({prediction.database.id(prediction.record)}))"
    found = prediction.originals(f"{plain} IN ({inside})" for inside in prediction.database.listed(plain_ids))
    # an id that is there to the letter is of another release, and no other writing
    if alike := [id for id in found if id not in set(lacking)]:
        raise DataError(
            f"{len(lacking)} labelled records are not in the prediction, such as {head(lacking)}; but "
            f"{len(alike)} ids there differ from these in case or blanks only, such as {head(alike)}: "
            "bring both to one form"
        )
