"""The frame of a scan: conditions in SQL, and what they leave of a prediction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any

import pandas as pd

from .arrays import BoolArray
from .clustering import Clustering
from .errors import DataError
from .frame import Cut, Dated, FrameFacts, frame_ids
from .sources import Database, DuckDB, has_engine, lies_elsewhere, opened
from .units import refuse_outside, same_kind


@dataclass(frozen=True, slots=True)
class Listed:
    """Record ids of a frame, in a table of the connection that has the prediction.

    Attributes
    ----------
    database : Database
    record : str
        Column of the ids.
    """

    database: Database
    record: str

    @property
    def keys(self) -> str:
        """SQL of their keys."""
        return f"SELECT {self.database.key(self.record)} AS r FROM {self.database.table}"


Limit = Dated | Listed | None
"""A frame, opened."""


def frame_sources(frame: Any, sources: Iterable[Any]) -> list[Any]:
    """What to open beside the predictions: the ids of the frame, if it is made of ids.

    Raises
    ------
    DataError
        Ids, but a prediction or a frame with an engine of its own.
    """
    if frame is None or isinstance(frame, Dated):
        return []
    if any(map(has_engine, [frame, *sources])):
        raise DataError(
            "a table with an engine of its own takes no list of ids as a frame: name a column of dates by "
            "Dated, or make a view of the frame's records the prediction"
        )
    return [frame if lies_elsewhere(frame) else pd.DataFrame({"record": frame_ids(frame)})]


def limit_of(frame: Any, listed: Sequence[Database], record: str | None) -> Limit:
    """The frame, whose ids are in `listed`, if anywhere: in the column `record`, or in the first."""
    if not listed:
        limit: Limit = frame
        return limit
    (database,) = listed
    columns = database.columns()
    column = record if record in columns and record is not None else columns[0]
    database.use(column, column)
    return Listed(database, column)


@contextmanager
def opened_with(
    source: Any, frame: Any, record: str | None, engine: DuckDB
) -> Iterator[tuple[Database, Limit]]:
    """A prediction and its frame, opened."""
    listed = frame_sources(frame, [source])
    if listed:
        with engine.open_all([source, *listed]) as (database, *ids):
            yield database, limit_of(frame, ids, record)
    else:
        with opened(source, engine) as alone:
            yield alone, limit_of(frame, [], record)


def framed(
    database: Database,
    labels: Clustering,
    limit: Limit,
    record: str,
    cluster: str,
    release: str | None = None,
) -> tuple[str, dict[Any, FrameFacts]]:
    """SQL of the prediction's table inside the frame, and what the frame leaves of each release.

    Raises
    ------
    DataError
        Labelled records outside the frame, no record of a release inside, a frame that cannot be used.
    """
    if limit is None:
        return database.table, {}
    met = _Labelled.of(database, labels, record)
    newest, total = None, None
    if isinstance(limit, Dated):
        inside, newest, older = _dated(database, met, limit, record)
    else:
        inside, older = f"{database.key(record)} IN ({limit.keys})", "1 = 0"
        total = _count_listed(database, met, limit, record)
    # records without an id are kept: they are refused with the prediction
    table = f"(SELECT * FROM {database.table} WHERE {inside} OR {database.quote(record)} IS NULL) AS framed"
    by, version = ("", "") if release is None else ("v, ", f"{database.quote(release)} AS v, ")
    facts = {}
    for row in database.rows(
        f"SELECT {by}SUM(m), SUM(f), SUM(f * (f - 1)), SUM(f * (m - 1)), "
        f"SUM(g), SUM(g * (g - 1)), SUM(g * (f - 1)) FROM ("
        f"SELECT {by}c, COUNT(*) AS m, COUNT(i) AS f, COUNT(o) AS g FROM ("
        f"SELECT {version}{database.key(cluster)} AS c, CASE WHEN {inside} THEN 1 END AS i, "
        f"CASE WHEN {older} THEN 1 END AS o FROM {database.table}) AS p GROUP BY {by}c) AS s"
        + (" GROUP BY v" if by else "")
    ):
        v, m, f, kept, links, g, still, within = row if by else (None, *row)
        if not f:
            raise DataError(f"no record of {'the prediction' if v is None else v!r} is in the frame")
        facts[v] = FrameFacts(
            Cut.counted(int(f), int(m), kept, links),
            absent=None if total is None else total - int(f),
            newest=newest,
            labelled=None if newest is None else Cut.counted(int(g), int(f), still, within),
        )
    return table, facts


@dataclass(frozen=True, slots=True)
class _Labelled:
    """The labelled records, where the engine can find them: key -> id, and conditions of being one."""

    records: pd.Index
    keys: Mapping[Any, Any]
    listed: list[str]

    @classmethod
    def of(cls, database: Database, labels: Clustering, record: str) -> _Labelled:
        keys = database.keys(record, labels.records.tolist())
        return cls(labels.records, keys, database.listed(list(keys)))

    def among(self, database: Database, key: str, rows: str) -> BoolArray:
        """Whether each is among some rows."""
        select = f"SELECT DISTINCT {key} FROM {rows} {key} IN"
        found = [k for inside in self.listed for (k,) in database.rows(f"{select} ({inside})")]
        return self.records.isin([self.keys[k] for k in found])


def _count_listed(database: Database, labelled: _Labelled, limit: Listed, record: str) -> int:
    """Number of ids in a frame."""
    rows, present, distinct = database.rows(
        f"SELECT COUNT(*), COUNT(r), COUNT(DISTINCT r) FROM ({limit.keys}) AS s"
    )[0]
    if rows > present:
        raise DataError(f"record ids of the frame: {rows - present} of {rows} are missing")
    if not rows:
        raise DataError("the frame holds no record")
    kinds = database.kind(record), limit.database.kind(limit.record)
    if None not in kinds:
        same_kind(str(kinds[0]), str(kinds[1]), "frame")
    refuse_outside(labelled.records, ~labelled.among(database, "r", f"({limit.keys}) AS s WHERE"))
    return int(distinct)


def _dated(
    database: Database, labelled: _Labelled, dated: Dated, record: str
) -> tuple[str, Dated | None, str]:
    """Conditions of being inside and of being as old as a labelled record, and the newest date of these."""
    column, kind, key = database.quote(dated.column), database.kind(dated.column), database.key(record)
    ((rows, present),) = database.rows(f"SELECT COUNT(*), COUNT({column}) FROM {database.table}")
    dated.refuse_missing(int(rows - present), int(rows))
    inside = _until(dated, column, kind)
    if kind == "string" and dated.last is not None:
        _refuse_other_form(database, dated, column)
    refuse_outside(
        labelled.records, labelled.among(database, key, f"{database.table} WHERE NOT ({inside}) AND")
    )
    found = [
        row[0]
        for part in labelled.listed
        for row in database.rows(f"SELECT MAX({column}) FROM {database.table} WHERE {key} IN ({part})")
        if row[0] is not None
    ]
    newest = dated.newest(found)
    if kind == "string" and dated.last is None and newest is not None:
        _refuse_other_form(database, newest, column)
    return inside, newest, "1 = 0" if newest is None else _until(newest, column, kind)


def _refuse_other_form(database: Database, dated: Dated, column: str) -> None:
    unlike = f"({column} || '') NOT LIKE '{dated.form}'"
    ((rows, other),) = database.rows(
        f"SELECT COUNT(*), COUNT(CASE WHEN {unlike} THEN 1 END) FROM {database.table}"
    )
    dated.refuse_form(int(other), int(rows))


def _until(dated: Dated, column: str, kind: str | None) -> str:
    """Condition of not being after the cut-off, for a quoted column of a kind (see `Database.kind`)."""
    last = dated.last
    days = kind is not None and kind.lower().startswith(("date", "timestamp")) and "ZONE" not in kind
    if kind not in {"string", "integer", None} and not days:
        raise dated.unfit(str(kind))
    if last is None or kind is None:
        return "1 = 1"
    if kind == "string":
        return f"({column} || '') < '{dated.after}'"  # || makes text of numbers that are read as text
    if days != isinstance(last, date):
        raise dated.unfit(kind)
    return f"CAST({column} AS DATE) <= CAST('{last}' AS DATE)" if days else f"{column} <= {last}"
