"""Faults in the answers of annotators, the states of tasks, and what is said of a fault that stops labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import Enum
from typing import Any

import pandas as pd

from ..._internal.errors import DataError, Remedy


class Fault(Enum):
    """A fault in the answers of annotators. Those of `HARMLESS` do not stop `Labels.labels`."""

    UNREAD = "the file is not read"
    UNKNOWN_TASK = "the draw has no such task"
    OTHER_RECORD = "the task has another drawn record in this folder, so the row may be of another draw"
    CHANGED = "the id of the drawn record is changed, as a spreadsheet makes 7 of 007: write it as it was"
    NOT_SHOWN = "the task does not show the record, and the row says neither y nor n"
    NO_ID = "the id that is added is no integer, as ids of records are"
    ROW_MISSING = "the task shows the record, and its row is missing"
    UNREADABLE = "the answer is neither y nor n"
    CONTRADICTED = "the annotator answers both y and n"
    DRAWN_REJECTED = "the drawn record has n, but it belongs to its own entity"
    DISPUTED = "annotators differ on the record"
    DIFFERING = "of two drawn records, one task says that they are the same, and the other that they are not"
    INTRANSITIVE = "the record is judged not the same, but a chain of answers joins the two"
    IN_TWO_ENTITIES = "the record is in the entities of drawn records that are not joined"
    UNKNOWN_RECORD = "the record, which an annotator has added, is missing in the prediction"
    UNANSWERED = "nobody has answered the task"
    BLANK = "the task is answered in part, and not for this record"
    YET_ANSWERED = "the annotator cannot tell, yet answers; the answers do not count"
    ONE_CANNOT_TELL = "one annotator cannot tell, and another can; the answers count"


HARMLESS = frozenset(
    {Fault.UNKNOWN_RECORD, Fault.UNANSWERED, Fault.BLANK, Fault.YET_ANSWERED, Fault.ONE_CANNOT_TELL}
)
"""Faults that leave labels usable. A task without a complete answer is unresolved."""


class State(Enum):
    """State of a task after its annotator."""

    ANSWERED = "answered"
    CANNOT_TELL = "cannot tell"
    INCOMPLETE = "incomplete"
    UNANSWERED = "unanswered"
    SETTLED = "settled"
    """Blank, and another task of the drawn predicted cluster has y for its record."""
    DISPUTED = "disputed"


def describe_counts(faults: Iterable[Enum]) -> str:
    """Return the number of times of each fault, in words."""
    return "; ".join(f"{n:,} times: {fault.value}" for fault, n in Counter(faults).items())


PLACE = ["where", "annotator", "task", "record"]
"""Columns that say where a fault is."""


class Problems:
    """The faults that are found while answers are read, of which `Labels.problems` is made."""

    def __init__(self) -> None:
        self._noted = [pd.DataFrame(columns=[*PLACE, "fault"], dtype=object)]

    def note(self, fault: Fault, rows: pd.DataFrame) -> None:
        """Note a fault in each of some rows, which have columns of `PLACE`, or some of them."""
        if len(rows):
            kind: Any = fault
            places = rows.reindex(columns=PLACE, fill_value="").astype(object)
            self._noted.append(places.assign(fault=kind))

    def table(self) -> pd.DataFrame:
        """Return the faults, one row each: where, annotator, task, record, fault."""
        return pd.concat(self._noted, ignore_index=True)


def take_harmful(problems: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `Labels.problems` whose faults stop labels."""
    return problems[~problems["fault"].isin(HARMLESS)]


def refuse_harmful(problems: pd.DataFrame, folder: object) -> None:
    """Raise a DataError that counts the faults which stop labels, and names the place of the first."""
    wrong = take_harmful(problems)
    if len(wrong):
        where, _, task, record, _ = wrong.iloc[0]
        places = [text for text in (where, f"task {task}" if task else "", str(record)) if text]
        raise DataError(
            f"{folder}: {describe_counts(wrong['fault'])}; such as {', '.join(places)}", Remedy.DECIDE
        )
