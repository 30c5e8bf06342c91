"""The frame of a scan: conditions in SQL, and counts of what they leave of a prediction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import pandas as pd

from .._internal.errors import DataError
from ..units.clustering import Clustering
from ..units.frame import Cut, Dated, FrameFacts, frame_ids, refuse_outside
from .database import ByRelease, Database, refuse_unlike
from .sources import has_own_database, lies_elsewhere


@dataclass(frozen=True, slots=True)
class Listed:
    """Record ids of a frame: SQL of a table of distinct keys, r, their `Database.kind` and their number."""

    keys: str
    kind: str | None
    count: int

    @classmethod
    def of(cls, database: Database, record: str | None) -> Listed:
        """Take the ids from the column `record` of a table, or from its first."""
        columns = database.columns()
        column = record if record is not None and record in columns else columns[0]
        database.use(column)
        id = database.quote(column)
        ((rows, present),) = database.rows(f"SELECT COUNT(*), COUNT({id}) FROM {database.table}")
        if rows > present:
            raise DataError(f"record ids of the frame: {rows - present} of {rows} are missing")
        if not rows:
            raise DataError("the frame holds no record")
        keys = database.keep(f"SELECT DISTINCT {database.key(column)} AS r FROM {database.table}")
        ((count,),) = database.rows(f"SELECT COUNT(*) FROM {keys}")
        return cls(keys, database.kind(column), int(count))


Limit = Dated | Listed | None
"""An opened frame."""


def frame_sources(frame: Any, sources: Iterable[Any]) -> list[Any]:
    """Sources to open next to the predictions: the ids of the frame, if it is made of ids."""
    if frame is None or isinstance(frame, Dated):
        return []
    if any(map(has_own_database, [frame, *sources])):
        raise DataError(
            "a table with a database of its own takes no list of ids as a frame: name a column of dates by "
            "Dated, or make a view of the frame's records the prediction"
        )
    return [frame if lies_elsewhere(frame) else pd.DataFrame({"record": frame_ids(frame)})]


@dataclass(frozen=True, slots=True)
class Limits:
    """A frame as SQL conditions: of being `inside`, and no newer than the newest labelled record."""

    inside: str
    older: str
    newest: Dated | None = None
    count: int | None = None

    @classmethod
    def of(cls, database: Database, labels: Clustering | None, limit: Dated | Listed, record: str) -> Limits:
        """Make the conditions, after checking the labels, if there are any, and the dates."""
        key, ids = database.key(record), pd.Index([]) if labels is None else labels.records
        keys = database.keys(record, ids.tolist()) if len(ids) else {}
        if isinstance(limit, Listed):
            refuse_unlike(database.kind(record), limit.kind, "frame")
            there = database.rows_with(f"SELECT r FROM {limit.keys}", "r", keys)
            refuse_outside(ids, ~ids.isin([keys[r] for (r,) in there]))
            return cls(f"{key} IN (SELECT r FROM {limit.keys})", "1 = 0", count=limit.count)
        column, kind = database.quote(limit.column), database.kind(limit.column)
        ((rows, present),) = database.rows(f"SELECT COUNT(*), COUNT({column}) FROM {database.table}")
        limit.refuse_missing(int(rows - present), int(rows))
        inside = _write_cutoff(database, limit, column, kind)
        select = f"SELECT {key}, {column}, CASE WHEN {inside} THEN 1 ELSE 0 END FROM {database.table}"
        dated = list(database.rows_with(select, key, keys))
        refuse_outside(ids, ids.isin([keys[r] for r, _, within in dated if not within]))
        newest = limit.newest(day for _, day, _ in dated)
        older = "1 = 0" if newest is None else _write_cutoff(database, newest, column, kind)
        return cls(inside, older, newest)

    @property
    def flags(self) -> str:
        """Columns of SQL: i is 1 in rows inside, o in older rows, and both are NULL in others."""
        return f"CASE WHEN {self.inside} THEN 1 END AS i, CASE WHEN {self.older} THEN 1 END AS o"

    def facts(
        self, database: Database, flagged: str, by: ByRelease, names: Mapping[Any, str]
    ) -> dict[Any, FrameFacts]:
        """Count what the frame leaves of each release v, from a table `flagged` with c and the `flags`."""
        v, facts = by.v, {}
        clusters = f"SELECT {v}c, COUNT(*) AS m, COUNT(i) AS f, COUNT(o) AS g FROM {flagged} GROUP BY {v}c"
        terms = ("m", "f", "f * (f - 1)", "f * (m - 1)", "g", "g * (g - 1)", "g * (f - 1)")
        sums = ", ".join(f"SUM({term})" for term in terms)
        for row in database.rows(f"SELECT {v}{sums} FROM ({clusters}) AS s{by.grouped}"):
            release, m, f, kept, links, g, still, within = row if v else (None, *row)
            if not f:
                whose = "the prediction" if release is None else repr(names.get(release, release))
                raise DataError(f"no record of {whose} is in the frame")
            facts[release] = FrameFacts(
                Cut.counted(f, m, kept, links),
                absent=None if self.count is None else self.count - int(f),
                newest=self.newest,
                labelled=None if self.newest is None else Cut.counted(g, f, still, within),
            )
        return facts


def _write_cutoff(database: Database, dated: Dated, column: str, kind: str | None) -> str:
    """Condition that a date is not after the cut-off, for a quoted column of a type (see `Database.kind`)."""
    last = dated.last
    # the day of a time with a zone depends on who asks
    zoned = kind is not None and ("ZONE" in kind or "TIMESTAMPTZ" in kind)
    days = kind is not None and kind.lower().startswith(("date", "timestamp")) and not zoned
    if kind not in {"string", "integer", None} and not days:
        raise dated.unfit(str(kind))
    if last is None or kind is None:
        return "1 = 1"
    if kind == "string":
        text = f"({column} || '')"  # also of numbers that are read as text
        unlike = f"CASE WHEN {text} NOT LIKE '{dated.form}' THEN 1 END"
        ((rows, other),) = database.rows(f"SELECT COUNT(*), COUNT({unlike}) FROM {database.table}")
        dated.refuse_form(int(other), int(rows))
        return f"{text} < '{dated.after}'"
    if days != isinstance(last, date):
        raise dated.unfit(kind)
    return f"CAST({column} AS DATE) <= CAST('{last}' AS DATE)" if days else f"{column} <= {last}"


def inside_frame(database: Database, limits: Limits, record: str) -> str:
    """SQL of a prediction's table inside the frame. Records without an id stay, to be refused later."""
    missing = f"{database.quote(record)} IS NULL"
    return f"(SELECT * FROM {database.table} WHERE {limits.inside} OR {missing}) AS inside"
