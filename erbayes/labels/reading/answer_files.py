"""Reading of the answers in the folder of a draw: sheets, and files that a labelling page has saved."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from ..._internal.errors import DataError, head
from ...units.clustering import Clustering
from ..drawing.folder import DECIDED, Folder, answer_files, read_folder
from ..drawing.labelling_tasks import ASKED
from ..drawing.page import CANDIDATE, CLUSTER, DRAWN, SECONDS, read_answers
from ..drawing.sheets import read_sheet
from .faults import Fault, State
from .returned import Labels
from .verdicts import (
    CLOSED,
    OF_FLAW,
    Answer,
    Problem,
    ShownTasks,
    decide_answer,
    list_answers,
    list_settled,
    list_states,
    make_stars,
    merge_answers,
    pair_annotators,
)

YES, NO = frozenset({"y", "yes"}), frozenset({"n", "no"})
"""Answers in the column `same`, in small letters."""
NO_DOUBT = frozenset({"", "no", "n", "false", "0"})
"""Contents of a cell, in capitals or small letters, that do not say that the annotator cannot tell."""


def read_labels(folder: str | Path | Folder, prediction: Any = None) -> Labels:
    """Read the answers in the folder of a draw: sheets, and files that a labelling page has saved.

    Every row of a task needs an answer: y if the record belongs to the entity of the drawn record, n if not.
    The y of the drawn record itself says that the task is done. Annotators add records by new rows of the
    task, with y. One x in `cannot_tell` stands for the whole task.

    No fault stops the reading: `Labels.problems` lists them all. Several files of one annotator are read as
    one. Answers of sheet-decided.csv (or .xlsx) replace those of the annotators.

    If predicted clusters were drawn, a blank task is settled if another task of its cluster has y for its
    record.

    Answers about controls enter no label. sheet-decided need not have their rows: it decides as if they were
    not shown, and a y there adds the record, which a person has then found to belong to the entity.

    Parameters
    ----------
    folder : str, Path or Folder
    prediction : memberships, optional
        The prediction that was drawn from, to tell which added records it lacks.

    Raises
    ------
    DataError
        A folder that is not one of a draw.

    Examples
    --------
    Nobody has answered yet:

    >>> from tempfile import TemporaryDirectory
    >>> from erbayes.labels import Records, draw, tasks, write_folder
    >>> drawn = draw({"r1": "a", "r2": "b", "r3": "c"}, Records(), n=1, seed=1)
    >>> with TemporaryDirectory() as temporary:
    ...     read_labels(write_folder(Path(temporary) / "to-label", drawn, tasks(drawn)))
    Labels(0 records of 0 entities, from 0 of 1 tasks; 1 faults)
    """
    folder = folder if isinstance(folder, Folder) else read_folder(folder)
    reader = _Reader(folder)
    for file in answer_files(folder.path):
        reader.read(file)
    return reader.labels(prediction)


class _Reader:
    """The answers of a folder, as they are read file by file."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.tasks = ShownTasks(folder)
        self.answers: dict[tuple[str, int], list[Answer]] = {}
        self.problems: list[Problem] = []
        self.added: dict[Any, tuple[str, str, int]] = {}
        self.files: list[str] = []

    def read(self, file: Path) -> None:
        """Read the answers of a file."""
        try:
            if file.suffix.lower() == ".json":
                annotator, rows = _read_page_file(file, self.folder)
            else:
                annotator, rows = _read_sheet_file(file, self.folder.blind)
        except DataError as error:
            self.problems.append((error.what, "", "", "", Fault.UNREAD))
            return
        filled = (rows[["same", "cannot_tell"]].map(str.strip) != "").any(axis=1)
        begun = rows["task"][filled].unique()
        if len(begun):
            self.files.append(file.name)
        for number, group in rows[rows["task"].isin(begun)].groupby("task", sort=False):
            self._read_task(annotator, str(number), group)

    def _read_task(self, annotator: str, number: str, rows: pd.DataFrame) -> None:
        """Read the rows of a task in one file."""
        task = int(number) if re.fullmatch(r"\d{1,9}", number) else 0
        first = rows["where"].iloc[0]
        if task not in self.tasks.drawn:
            self.problems.append((first, annotator, number, "", Fault.UNKNOWN_TASK))
            return
        shown, drawn = self.tasks.shown[task], self.tasks.drawn[task]
        strangers = {record for record in shown.values() if (task, record) in self.tasks.strangers}
        if annotator == DECIDED:
            shown, strangers = {id: r for id, r in shown.items() if r not in strangers}, set()
        as_drawn = rows["record"][rows["role"] == DRAWN]
        if len(others := as_drawn[as_drawn != str(drawn)]):
            self.problems.append((first, annotator, task, others.iloc[0], Fault.OTHER_RECORD))
            return
        read = self._read_rows(annotator, task, shown, rows)
        seconds = float(pd.to_numeric(rows.get(SECONDS, pd.Series(dtype=float)), errors="coerce").max())
        if read.cannot_tell:
            if any(read.marks[record] for record in read.marks if record != drawn):
                self.problems.append((first, annotator, task, "", Fault.YET_ANSWERED))
            answer = Answer(State.CANNOT_TELL, seconds=seconds)
        elif any(read.marks.values()):
            faults = _find_faults(read, drawn, shown, first)
            self.problems += [(where, annotator, task, record, fault) for where, record, fault in faults]
            state = State.INCOMPLETE if faults or not read.usable else State.ANSWERED
            same, different = (
                frozenset(r for r in read.marks if mark in read.marks[r] and r not in strangers)
                for mark in "yn"
            )
            controls = frozenset((r, mark) for r in strangers for mark in read.marks[r])
            answer = Answer(state, same, different, controls, seconds)
        else:
            return
        self.answers.setdefault((annotator, task), []).append(answer)

    def _read_rows(
        self, annotator: str, task: int, shown: Mapping[str, Any], rows: pd.DataFrame
    ) -> _MarkedTask:
        """Read the marks of a task row by row, and note the rows that cannot be read."""
        read = _MarkedTask({record: set() for record in shown.values()})

        def note(fault: Fault, where: str, record: Any) -> None:
            self.problems.append((where, annotator, task, record, fault))

        for where, text, same, doubt in rows[["where", "record", "same", "cannot_tell"]].itertuples(
            index=False, name=None
        ):
            read.cannot_tell |= doubt.strip().lower() not in NO_DOUBT
            answer = same.strip().lower()
            mark = "y" if answer in YES else "n" if answer in NO else ""
            if answer and not mark:
                note(Fault.UNREADABLE, where, text)
                read.usable = False
            if not text.strip() and not answer:
                continue
            record = self.tasks.find_record(text, shown)
            if record is None:
                note(Fault.NO_ID, where, text)
                read.usable = False
                continue
            read.place.setdefault(record, where)
            if answer and not mark:
                read.unread.add(record)
            if record not in read.marks and not answer and (task, record) not in self.tasks.strangers:
                note(Fault.NOT_SHOWN, where, record)
            if mark:
                read.marks.setdefault(record, set()).add(mark)
                if mark == "y" and str(record) not in self.tasks.known:
                    self.added.setdefault(record, (where, annotator, task))
        return read

    def labels(self, prediction: Any) -> Labels:
        """Return the labels of all files together."""
        merged = {key: merge_answers(self.tasks, *key, a, self.problems) for key, a in self.answers.items()}
        verdicts = {task: decide_answer(self.tasks, task, merged, self.problems) for task in self.tasks.drawn}
        for task in list_settled(self.tasks, verdicts):
            verdicts[task] = Answer(State.SETTLED)
        drawn = self.tasks.drawn
        blank = [task for task, answer in verdicts.items() if answer.state is State.UNANSWERED]
        self.problems += [("", "", task, drawn[task], Fault.UNANSWERED) for task in blank]
        stars = make_stars(self.tasks, self.folder.drawn, verdicts)
        task_of = {record: task for task, record in drawn.items()}
        for sampled, record, flaw in stars.problems.itertuples(index=False, name=None):
            self.problems.append(("", "", task_of[sampled], record, OF_FLAW[flaw]))
        if prediction is not None:
            self._note_unknown(prediction)
        rest = [(task, drawn[task], a.state) for task, a in verdicts.items() if a.state not in CLOSED]
        return Labels(
            self.folder,
            stars,
            pd.DataFrame(
                self.problems, columns=["where", "annotator", "task", "record", "fault"], dtype=object
            ),
            pd.DataFrame(rest, columns=["task", "record", "state"], dtype=object),
            list_states(self.tasks, self.folder.dealt, merged),
            list_answers(self.answers),
            pair_annotators(self.tasks, self.folder.drawn.members, merged),
            tuple(self.files),
        )

    def _note_unknown(self, prediction: Any) -> None:
        """Note the records that annotators added and that a prediction lacks."""
        records = Clustering.of(prediction, "prediction").records
        for record, (where, annotator, task) in self.added.items():
            if record not in records:
                self.problems.append((where, annotator, task, record, Fault.UNKNOWN_RECORD))


@dataclass(slots=True)
class _MarkedTask:
    """Marks "y" and "n" by record, the `place` of its first row, and records with `unread` answers."""

    marks: dict[Any, set[str]]
    place: dict[Any, str] = field(default_factory=dict)
    unread: set[Any] = field(default_factory=set)
    cannot_tell: bool = False
    usable: bool = True


def _find_faults(
    read: _MarkedTask, drawn: Any, shown: Mapping[str, Any], first: str
) -> list[tuple[str, Any, Fault]]:
    """Return place, record and kind of each fault that keeps the marks of a task from being an answer."""
    marks = read.marks.items()
    faults = [(first, record, Fault.ROW_MISSING) for record in shown.values() if record not in read.place]
    faults += [(first, record, Fault.CONTRADICTED) for record, values in marks if len(values) > 1]
    if "n" in read.marks[drawn]:
        faults.append((first, drawn, Fault.DRAWN_REJECTED))
    blank = [record for record, values in marks if not values and record not in read.unread]
    return faults + [(read.place[r], r, Fault.BLANK) for r in blank if r in read.place]


def _read_page_file(file: Path, folder: Folder) -> tuple[str, pd.DataFrame]:
    """Return the annotator of a file that a page has saved, and its rows."""
    table = read_answers(file, folder.tasks, folder.fingerprint)
    (annotator,) = {name for name in table["annotator"] if name} or {""}
    answered = table["task"][table["annotator"] != ""]
    rows = table[table["task"].isin(answered)]
    return annotator, rows.assign(where=file.name, task=rows["task"].map(str), record=rows["record"].map(str))


def _read_sheet_file(file: Path, blind: bool) -> tuple[str, pd.DataFrame]:
    """Return the annotator of a sheet, and its rows. Sheets do not know the time."""
    name = re.fullmatch(r"sheet-(.+)", file.stem)
    if name is None or file.suffix.lower() not in {".csv", ".xlsx"}:
        raise DataError(
            f"{file.name}: files with answers are sheet-NAME.csv, sheet-NAME.xlsx or saved by a page"
        )
    table = read_sheet(file)
    if lacking := [c for c in ("task", "record", "role", *ASKED) if c not in table.columns]:
        raise DataError(f"{file.name} has no column {head(lacking, 9)}; it has {head(table.columns, 20)}")
    told = table[table["role"].isin([CLUSTER, CANDIDATE])]
    if blind and len(told) and name[1] != DECIDED:
        raise DataError(
            f"{file.name}: row {told.index[0]} tells the role {told['role'].iloc[0]!r}, which a blind sheet "
            "hides: its answers are those of another folder, or the column was filled in"
        )
    where = [f"{file.name}, row {row}" for row in table.index]
    return name[1], table.drop(columns=SECONDS, errors="ignore").assign(where=where)
