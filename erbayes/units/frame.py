"""The frame: the records that existed when the labels were made.

A prediction may have newer records. If some belong to a labelled entity, the labels have none of them, and
their links count as false. With a frame, everything is counted inside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import BoolArray, IntArray
from .._internal.errors import DataError, head, refuse_cases
from .._internal.tables import is_table, to_frame
from .clustering import Clustering, are_listed, ids, kind
from .lookup import look_up, same_kind

Moment = date | int
"""The date of a record, a day or a whole number."""


@dataclass(frozen=True, slots=True)
class Dated:
    """A frame made of dates: the records up to a cut-off.

    Parameters
    ----------
    column : str
        Column of the prediction's table with the date of each record: a day, a time without a zone, or a
        whole number such as a year. Text is YYYY-MM-DD, with or without a time, or numbers of equal length.
    until : date, str or int, optional
        Last day in the frame, as a date or as text YYYY-MM-DD, or last number. None: every record is in the
        frame, and only `erbayes.alarms` uses the dates.

    Examples
    --------
    >>> import erbayes as eb
    >>> table = pd.DataFrame({"record": [1, 2, 3], "cluster": "a", "year": [2019, 2019, 2021]})
    >>> units = eb.measure(table, {1: "x", 2: "x"}, frame=Dated("year", until=2019))
    >>> units.table()[["common_links", "predicted_links"]]
       common_links  predicted_links
    x           1.0              1.0
    """

    column: str
    until: date | str | int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "until", self.last)

    def __str__(self) -> str:
        return f"{self.column!r} up to {self.last}"

    @property
    def last(self) -> Moment | None:
        """Return the cut-off, as a day or a whole number; None without one."""
        until = self.until
        if isinstance(until, datetime) and not pd.isna(until) and until.timetz() == time(0):
            return until.date()
        if isinstance(until, np.integer):
            return int(until)
        if until is None or (isinstance(until, date | int) and not isinstance(until, datetime | bool)):
            return until
        if isinstance(until, str) and _is_day(until):
            return date.fromisoformat(until)
        raise DataError(f"a cut-off is a day (YYYY-MM-DD) or a whole number, not {until!r}")

    @property
    def after(self) -> str:
        """Return the first text beyond the cut-off."""
        # '2019' and all numbers of four digits up to it come before '20190'
        return (self.last + timedelta(days=1)).isoformat() if isinstance(self.last, date) else f"{self.last}0"

    @property
    def form(self) -> str:
        """Pattern, for LIKE in SQL, of text that can be compared with the cut-off."""
        return "____-__-__%" if isinstance(self.last, date) else "_" * len(str(self.last))

    def newest(self, dates: Iterable[Any]) -> Dated | None:
        """Return a frame of this column with the newest of some dates as cut-off; None without dates."""
        newest = max(dates, default=None)
        if isinstance(newest, datetime):
            newest = newest.date()
        elif isinstance(newest, str):
            if not (_is_day(newest[:10]) or newest.isdecimal()):
                raise self.unfit(f"text such as {newest!r}")
            newest = newest[:10] if _is_day(newest[:10]) else int(newest)
        return None if newest is None else Dated(self.column, newest)

    def refuse_missing(self, missing: int, total: int) -> None:
        """Refuse records without a date."""
        if missing:
            raise DataError(
                f"{missing} of {total} records of the prediction have no {self.column!r}: date them, or give "
                "the ids of the frame's records"
            )

    def refuse_form(self, other: int, total: int) -> None:
        """Refuse text that cannot be compared with the cut-off."""
        if other:
            raise DataError(
                f"{other} of {total} values of {self.column!r} are not written like {self.last}: text must "
                "be days as YYYY-MM-DD, or numbers of equal length"
            )

    def unfit(self, kind: str) -> DataError:
        """Error for dates of another kind than the cut-off."""
        alike = "" if self.last is None else f", as the cut-off is, {self.last}"
        return DataError(
            f"column {self.column!r} holds {kind}: records must be dated by days (YYYY-MM-DD as text), times "
            f"without a zone, or whole numbers{alike}"
        )


def _convert_to_table(data: Any) -> pd.DataFrame | None:
    """Return a table as a DataFrame; None if `data` is not a table."""
    return to_frame(data) if is_table(data) and hasattr(data, "columns") else None


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Cut:
    """Counts of the records and predicted links of a set that are left in a smaller set F.

    `links_inside` is Σ_k f_k (f_k - 1) / Σ_k f_k (m_k - 1), the share of predicted links of records in F that
    stay in F, or 1 if there are none. Without the frame, pairwise precision is too low by this factor.
    """

    inside: int
    outside: int
    links_inside: float

    @classmethod
    def of(cls, clusters: IntArray, inside: BoolArray) -> Cut:
        """Count from the predicted cluster of each record of the set, (N,), and whether it is in F, (N,)."""
        m = np.bincount(clusters).astype(float)
        f = np.bincount(clusters[inside], minlength=len(m)).astype(float)
        return cls.counted(f.sum(), m.sum(), f @ (f - 1), f @ (m - 1))

    @classmethod
    def counted(cls, inside: float, whole: float, kept: float, links: float) -> Cut:
        """Make one from sums over clusters: of f, m, f (f - 1), and f (m - 1)."""
        return cls(int(inside), int(whole) - int(inside), float(kept / links) if links else 1.0)


@dataclass(frozen=True, slots=True)
class FrameFacts:
    """Counts of the records and links of a prediction that a frame leaves, up to the `newest` label."""

    cut: Cut
    absent: int | None = None
    newest: Dated | None = None
    labelled: Cut | None = None

    def in_words(self) -> dict[str, str]:
        """Text of each value, by its name in words."""
        words = {
            "records outside the frame": f"{self.cut.outside:,} of {self.cut.inside + self.cut.outside:,}",
            "precision without the frame": f"{self.cut.links_inside:.3f} of that inside",
        }
        if self.absent is not None:
            words["records of the frame missing in the prediction"] = f"{self.absent:,}"
        if self.newest is not None:
            words["the newest labelled record"] = f"{self.newest.last} in {self.newest.column!r}"
        return words


def frame_ids(frame: Any) -> pd.Index:
    """Record ids of a frame: keys, first column, index of a Series, or values if its index counts from 0."""
    if isinstance(frame, Clustering):
        values: Any = frame.records
    elif isinstance(frame, pd.Series):
        plain = isinstance(frame.index, pd.RangeIndex) and frame.index.equals(pd.RangeIndex(len(frame)))
        values = frame.array if plain and frame.is_unique else frame.index
    elif (table := _convert_to_table(frame)) is not None:
        if table.shape[1] not in {1, 2}:
            raise DataError(f"frame: give its column of record ids; it has {head(table.columns, 20)}")
        values = table.iloc[:, 0]
    elif isinstance(frame, str | bytes) or not isinstance(frame, Iterable):
        raise DataError(
            f"frame: expected record ids, an older prediction or Dated, not {type(frame).__name__}; files go "
            "with a prediction in files"
        )
    else:
        values = frame if isinstance(frame, pd.Index | np.ndarray) else list(frame)
    listed = ids(values, "record ids of the frame")
    if not len(listed):
        raise DataError("the frame holds no record")
    return listed


def dates_of(prediction: Any, dated: Dated) -> tuple[pd.DataFrame, pd.Series]:
    """Return the memberships of a table, and the dates of its records: whole numbers, times or text."""
    table = _convert_to_table(prediction)
    if table is None:
        raise DataError(
            f"a frame by {dated.column!r} needs a table with this column, not a {type(prediction).__name__}; "
            "give the ids of the frame's records instead"
        )
    if list(table.columns).count(dated.column) != 1:
        raise DataError(f"a frame needs one column {dated.column!r}; there are {head(table.columns, 20)}")
    dates = table[dated.column]
    dated.refuse_missing(int(dates.isna().sum()), len(dates))
    if isinstance(dates.dtype, pd.CategoricalDtype):
        dates = dates.astype(dates.cat.categories.dtype)
    kind = pd.api.types.infer_dtype(dates, skipna=False)
    if kind in {"date", "datetime", "datetime64"}:
        dates = pd.to_datetime(dates)
        if dates.dt.tz is not None:
            raise dated.unfit("times with a zone")
        dates = dates.astype("datetime64[us]")
    elif len(dates) and kind not in {"integer", "string"}:
        raise dated.unfit(kind)
    return table.drop(columns=dated.column), dates


def dated_inside(dates: pd.Series, dated: Dated) -> BoolArray:
    """Return whether each date is inside the frame, at or before a cut-off of the same kind, (N,)."""
    last = dated.last
    if last is None or not len(dates):
        return np.ones(len(dates), dtype=bool)
    if pd.api.types.is_datetime64_dtype(dates.dtype):
        if not isinstance(last, date):
            raise dated.unfit("days")
        inside = dates < pd.Timestamp(last) + pd.Timedelta(days=1)
    elif pd.api.types.is_integer_dtype(dates.dtype):
        if isinstance(last, date):
            raise dated.unfit("whole numbers")
        inside = dates <= last
    else:
        like = re.sub("_", r"\\d", dated.form).replace("%", ".*")
        dated.refuse_form(int((~dates.str.fullmatch(like)).sum()), len(dates))
        inside = dates < dated.after
    return inside.to_numpy(dtype=bool)


def framed(
    prediction: Any, labels: Clustering, frame: Any, what: str = "prediction"
) -> tuple[Clustering, FrameFacts | None]:
    """Restrict a prediction to the frame, and count what is left of it."""
    if frame is None:
        return Clustering.of(prediction, what), None
    if isinstance(frame, Dated):
        return _restrict_by_dates(prediction, labels, frame, what)
    whole, listed = Clustering.of(prediction, what), frame_ids(frame)
    for other, name in ((listed, "frame"), (labels.records, "labels")):
        if len(whole.records) and len(other):
            same_kind(kind(whole.records), kind(other), name)
    near = listed[are_listed(listed, labels.records)]
    refuse_outside(labels.records, ~labels.records.isin(near))
    inside = are_listed(whole.records, listed)
    remaining = _restrict_clustering(whole, inside, what)
    shared = len(remaining.records)
    absent = 0 if shared == len(listed) else listed.nunique() - shared
    return remaining, FrameFacts(Cut.of(whole.codes, inside), absent=absent)


def refuse_outside(records: pd.Index, outside: BoolArray) -> None:
    """Refuse labelled records that are not in the frame."""
    said = f"{{n}} of {len(records)} labelled records are outside the frame, such as"
    must = "hold every record that existed when the labels were made, with ids written as in the labels"
    refuse_cases(records[outside], said, f": it must {must}")


def _restrict_by_dates(
    prediction: Any, labels: Clustering, frame: Dated, what: str
) -> tuple[Clustering, FrameFacts]:
    table, dates = dates_of(prediction, frame)
    whole, inside = Clustering.of(table, what), dated_inside(dates, frame)
    remaining = _restrict_clustering(whole, inside, what)
    position = look_up(whole.records, labels.records)
    refuse_outside(labels.records, (position >= 0) & ~inside[position])
    newest = frame.newest(dates.iloc[position[position >= 0]])
    labelled = None if newest is None else Cut.of(remaining.codes, dated_inside(dates[inside], newest))
    return remaining, FrameFacts(Cut.of(whole.codes, inside), newest=newest, labelled=labelled)


def _restrict_clustering(whole: Clustering, inside: BoolArray, what: str) -> Clustering:
    if not inside.any():
        raise DataError(f"no record of the {what} is in the frame")
    return whole.where(inside)
