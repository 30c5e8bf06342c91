"""A prediction as its database counts it: its rows, sizes and faults; and as a source of draws.

Every database runs the same SQL of COUNT, GROUP BY, JOIN, IN and, for draws, MD5. For draws it returns the
records near the start of a random order and the members of drawn clusters (see `erbayes.labels.source`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import md5
from typing import Any
from unicodedata import normalize

import numpy as np
import pandas as pd

from .._internal.arrays import IntArray
from .._internal.errors import DataError, Remedy, head, refuse_cases
from ..units.clustering import refuse_nulls
from ..units.ids import DIGITS, NULL_NUMBERS, NULL_TEXTS, ROUNDED, find_nulls, refuse_blanks
from ..units.units import KnownTotals
from .database import CODED, Dialect, changed
from .duckdb import EMBEDDED, DuckDB
from .files import opened
from .prediction import TWO_COLUMNS, Columns, FrameIds, Prediction, frame_sources, use_columns

HINTED = 1000
"""Most ids that are looked at for a habit of writing, which shows in few."""
ANY_ID = Remedy("or, if it is a real id", "Columns(any_id=True)", "--any-id")
"""What to do about ids that mean none."""
BLANKS = (" ", "\t", "\u00a0")
"""Blanks that are looked for at the ends of cluster ids."""
NONE_TEXTS = {text.strip() for text in NULL_TEXTS} - {"0"}
"""Texts that mean no cluster, in small letters without blanks around them."""
NONE_INTEGERS = (*NULL_NUMBERS, 2**64 - 1)
LONGEST = 2 + max(map(len, NONE_TEXTS))
"""Letters of the longest id that can mean no cluster, so that long ids are not put into small letters."""
OF_KEY = 16
"""Hexadecimal digits of a key, as many of the 32 of MD5 as fit 64 bits. The first 4 are its bucket."""
WITHOUT_MD5 = (
    "draws need a database whose MD5 returns hexadecimal digits, of text in UTF-8, as PostgreSQL, DuckDB and "
    "Spark have it. SQLite has no MD5: define one by connection.create_function, or draw from a file of the "
    "table"
)
KEYED = ["record", "cluster", "size", "key", "value"]
"""Columns of records, which SQL calls r, c, m, k, v; v is 1 if there are no values."""


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
    for what, key, present, other in (
        ("record", "r", records, prediction.cluster),
        ("cluster", "c", clusters, prediction.record),
    ):
        if present < total:
            raise DataError(
                f"{what} ids of the prediction: {int(total - present)} of {int(total)} are missing"
                + prediction.examples(other, f"{key} IS NULL")
            )
    if not total:
        raise DataError("the prediction has no record")
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


def write_blank(prediction: Prediction) -> str:
    """SQL that is true of cluster ids c with a blank at an end, which is a space, a tab or one from HTML."""
    dialect, conditions = prediction.database.dialect, ["1 = 0"]
    if prediction.database.kind(prediction.cluster) == "string":
        for blank in map(dialect.literal, BLANKS):
            conditions += [f"c LIKE {dialect.join(*ends)}" for ends in ((blank, "'%'"), ("'%'", blank))]
    return " OR ".join(conditions)


def refuse_blank_ends(prediction: Prediction) -> None:
    """Refuse cluster ids that are there without the blanks at their ends too, as `refuse_blanks` does."""
    select = f"SELECT DISTINCT c FROM {prediction.table} WHERE ({write_blank(prediction)}) LIMIT {HINTED}"
    ids = [id for (id,) in prediction.database.rows(select)]
    there = [id for (id,) in prediction.rows_in("DISTINCT c", "c", dict.fromkeys(id.strip() for id in ids))]
    records = [id for (id,) in prediction.rows_in("DISTINCT r", "r", ids)]
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
            folded = f"SELECT COUNT(DISTINCT LOWER(c)) FROM {table} WHERE"
            parts = prediction.database.parts("LOWER(c)", rows)
            cased = sum(counts.values()) - sum(int(read(f"{folded} {part}")[0][0]) for part in parts)
    # copied, so that sums add in the order in which they do in memory
    size, count = np.array(sorted(counts.items()), dtype=float).T.copy()
    return KnownTotals(size, count, cased=cased)


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

    def may_be_none(id: Any) -> bool:
        return not isinstance(id, str) or id in {"0", *DIGITS} or id.strip().lower() in NONE_TEXTS

    several = find_nulls({id: size for id, size in sizes.items() if may_be_none(id)})
    if several and database.kind(prediction.record) == database.kind(prediction.cluster):
        of_none = f"SELECT c FROM {prediction.table} WHERE r = c AND {write_no_cluster(prediction)}"
        own = {id for (id,) in database.rows(of_none)}
        several = {id: size for id, size in several.items() if id not in own}
    refuse_nulls(f"cluster ids of the prediction{whose}", several, records, ANY_ID)


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


@dataclass(frozen=True, slots=True, eq=False)
class InDatabase:
    """A prediction in a database, as a source of draws, which `drawing` makes.

    `rows`: SQL of a table p of ids r and c and values v, and of sizes m if records are clusters; `sizes`: SQL
    of clusters c and sizes m.
    """

    prediction: Prediction
    rows: str
    sizes: str
    known: KnownTotals
    valued: bool = False
    by_cluster: bool = False
    _members: dict[tuple[Any, ...], pd.DataFrame] = field(default_factory=dict)

    def up_to(self, highest: Mapping[int, int], seed: int) -> pd.DataFrame:
        if not highest:
            return self._fetch_keyed("")
        # MD5 is compared as text of 32 digits, so that limits are filled up with the largest digit
        digits = {int(m): f"{int(key):0{OF_KEY}x}".ljust(32, "f") for m, key in highest.items()}
        limits = ", ".join(f"({m}, '{key}')" for m, key in digits.items())
        return self._fetch_keyed(
            f"WITH h(m, k) AS (VALUES {limits}) SELECT a.r, a.c, a.m, a.k, a.v "
            f"FROM ({self._write_keyed('1 = 1', seed)}) AS a JOIN h ON a.m = h.m WHERE a.k <= h.k"
        )

    def in_buckets(self, buckets: IntArray, seed: int) -> pd.DataFrame:
        listed = ", ".join(f"'{int(bucket):04x}'" for bucket in buckets)
        return self._fetch_keyed(self._write_keyed(f"SUBSTR(k, 1, 4) IN ({listed})", seed) if listed else "")

    def counts(self, seed: int) -> pd.DataFrame:
        select = f"SELECT SUBSTR(k, 1, 4) AS b, m, v FROM ({self._write_keyed('1 = 1', seed)}) AS a"
        sql = f"SELECT b, m, v, COUNT(*) FROM ({select}) AS g GROUP BY b, m, v"
        table = self.prediction.database.fetched(sql, ["bucket", "size", "value", "records"])
        digits = table["bucket"].astype("category")
        numbers = np.array([int(bucket, 16) for bucket in digits.cat.categories], dtype=np.int64)
        table = table.assign(bucket=numbers[digits.cat.codes]).astype({"size": np.int64, "records": np.int64})
        return table if self.valued else table.drop(columns="value")

    def members(self, clusters: pd.Index) -> pd.DataFrame:
        # of the last clusters, for which plans and `draw` ask both
        key = tuple(sorted(clusters))
        if key not in self._members:
            self._members.clear()
            self._members[key] = self._fetch_listed(KEYED[:2], "r, c", self.prediction.table, "c", key)
        return self._members[key]

    def look_up(self, records: pd.Index) -> pd.DataFrame:
        rows = f"(SELECT r, c FROM {self.rows}) AS p JOIN (SELECT c AS d, m FROM {self.sizes}) AS s ON c = d"
        return self._fetch_listed(KEYED[:3], "r, c, m", rows, "r", records.tolist())

    def _fetch_listed(
        self, names: list[str], columns: str, rows: str, key: str, ids: Sequence[Any]
    ) -> pd.DataFrame:
        """Return columns of SQL `rows` whose key is listed."""
        database, select = self.prediction.database, f"SELECT {columns} FROM {rows} WHERE {key} IN"
        tables = [database.fetched(f"{select} ({inside})", names) for inside in database.listed(list(ids))]
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=names)

    def of_clusters(self) -> InDatabase:
        rows = f"(SELECT c AS r, c, m, 1 AS v FROM {self.sizes}) AS p"
        return replace(self, rows=rows, by_cluster=True, valued=False)

    def _write_keyed(self, condition: str, seed: int) -> str:
        """SQL of the columns r, c, m, k, v of the rows whose key k meets a condition."""
        key = _write_md5(self.prediction.database.dialect, f"{int(seed)}:")
        keyed = f"SELECT p.*, {key} AS k FROM {self.rows}"
        if self.by_cluster:
            return f"SELECT r, c, m, k, v FROM ({keyed}) AS p WHERE {condition}"
        near = f"SELECT * FROM ({keyed}) AS q WHERE {condition}"
        sizes = f"(SELECT c, m FROM {self.sizes}) AS s"
        return f"SELECT p.r, p.c, s.m, p.k, p.v FROM ({near}) AS p JOIN {sizes} ON p.c = s.c"

    def _fetch_keyed(self, sql: str) -> pd.DataFrame:
        """Return the records of a statement, none if there is no statement."""
        table = self.prediction.database.fetched(sql, KEYED) if sql else pd.DataFrame(columns=KEYED)
        keys = np.array([int(key[:OF_KEY], 16) for key in table["key"]], dtype=np.uint64)
        table = table.assign(size=table["size"].astype(np.int64), key=keys)
        return table if self.valued else table.drop(columns="value")


@contextmanager
def drawing(
    source: Any,
    columns: Columns = TWO_COLUMNS,
    *,
    value: str | None = None,
    frame: Any = None,
    database: DuckDB = EMBEDDED,
) -> Iterator[InDatabase]:
    """Open a prediction that need not fit in memory, as a source of draws.

    Parameters
    ----------
    source, columns, frame, database
        As in `erbayes.large.scan`. Records outside the frame are not drawn, and do not count.
    value : str, optional
        Column with a value per record, such as a stratum or a chance.

    Raises
    ------
    DataError
        If the source cannot be read, if ids or values are missing, or if its database has no MD5.

    Examples
    --------
    >>> import pyarrow as pa
    >>> prediction = pa.table({"record": ["r1", "r2", "r3"], "cluster": ["a", "a", "b"], "year": [1, 1, 2]})
    >>> with drawing(prediction, Columns("record", "cluster")) as opened_prediction:
    ...     len(opened_prediction.members(pd.Index(["a"])))
    2
    """
    others = () if value is None else (value,)
    with opened([source, *frame_sources(frame, [source])], database) as (table, *listed):
        record, (cluster,) = use_columns(table, columns.record, [columns.cluster_of("")], others)
        # one letter that is not ASCII shows UTF-8 from other encodings
        text = "na\u00efve:"
        try:
            ((found,),) = table.rows(f"SELECT {_write_md5(table.dialect, text)} FROM (SELECT 1 AS r) AS t")
        except DataError as error:
            raise DataError(f"{WITHOUT_MD5} ({error.what})") from error
        if found != md5(f"{text}1".encode(), usedforsecurity=False).hexdigest():
            raise DataError(WITHOUT_MD5)
        prediction = Prediction.of(table, (record, cluster), v="1" if value is None else table.quote(value))
        for ids in listed:
            prediction = prediction.within(FrameIds.of(ids, columns.record, prediction).ids)
        rows = count_rows(prediction, columns.any_id)
        if value is not None:
            ((present,),) = table.rows(f"SELECT COUNT(v) FROM {prediction.table}")
            if present < rows:
                raise DataError(
                    f"values of the prediction: {rows - present} of {rows} are missing in column {value!r}"
                )
        refuse_duplicates(prediction, rows)
        with table.counting(rows):
            sizes = table.keep(f"SELECT c, COUNT(*) AS m FROM {prediction.table} GROUP BY c")
        known = count_sizes(prediction, rows, columns.any_id, sizes=sizes)
        yield InDatabase(prediction, prediction.table, sizes, known, valued=value is not None)


def _write_md5(dialect: Dialect, before: str) -> str:
    """SQL of the MD5 of a text and the id r behind it."""
    return f"MD5({dialect.join(f"'{before}'", 'r')})"
