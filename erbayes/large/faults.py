"""Faults of a prediction in a database, which are refused by their number and examples."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from unicodedata import normalize

import pandas as pd

from .._internal.errors import DataError, Remedy, head, refuse_cases
from ..units.clustering import refuse_nulls
from ..units.ids import DIGITS, NULL_NUMBERS, NULL_TEXTS, ROUNDED, find_nulls
from .database import Database
from .prediction import Prediction
from .quoting import CODED

HINTED = 1000
"""Most ids that are looked at for a habit of writing, which shows in few."""
NONE_TEXTS = {text.strip() for text in NULL_TEXTS} - {"0"}
"""Texts that mean no cluster, in small letters without blanks around them."""
NONE_INTEGERS = (*NULL_NUMBERS, 2**64 - 1)
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
    refuse_nulls(f"cluster ids of the prediction{whose}", several, records, Remedy.SCANNED_ANY_ID)


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


def write_rounded(database: Database, key: str, column: str) -> str:
    """SQL that is true of ids that may be texts such as 1.00001E+11."""
    string = database.kind(column) == "string"
    return f"{key} LIKE '%E+%' OR {key} LIKE '%e+%'" if string else "1 = 0"


def refuse_rounded(prediction: Prediction, key: str, column: str, what: str) -> None:
    """Refuse ids that a spreadsheet rounded."""
    condition = write_rounded(prediction.database, key, column)
    rows = prediction.database.rows(
        f"SELECT DISTINCT {key} FROM {prediction.table} WHERE {condition} LIMIT {HINTED}"
    )
    rounded = [text for (text,) in rows if re.search(ROUNDED, text)]
    said = f"{what} ids of the prediction: {{n}} ids are numbers that a spreadsheet rounded, such as"
    refuse_cases(rounded, said, ": export them as text", Remedy.SCANNED_ANY_ID)


def write_heading(prediction: Prediction) -> str:
    """SQL that is true of rows that have the name of a column of a text file as its id."""
    database = prediction.database
    conditions = ["1 = 0"]
    for key, column in (("r", prediction.record), ("c", prediction.cluster)):
        names = [database.dialect.literal(name) for name in database.headings.get(column, ())]
        if names:
            conditions.append(f"{key} IN ({', '.join(names)})")
    return " OR ".join(conditions)


def refuse_headings(prediction: Prediction, times: int) -> None:
    """Refuse text files whose first line is a record, or that have it again further below."""
    if times:
        names = " or ".join(map(repr, (prediction.record, prediction.cluster)))
        raise DataError(
            f"the prediction: {times:,} rows hold {names} in the column of this name: is the first line a "
            "record, or one of several headers? The first line of each file, and no other, must name the "
            "columns"
        )


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
