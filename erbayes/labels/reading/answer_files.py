"""Reading of the answers in the folder of a draw: sheets, and files that a labelling page has saved."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from math import isnan, nan
from pathlib import Path
from typing import Any

import pandas as pd

from ..._internal.errors import DataError, head
from ...units.clustering import Clustering, as_index, kind
from ..annotators.two_annotators import Pair
from ..drawing import PredictedClusters
from ..drawing.folder import DECIDED, Folder, answer_files, read_folder
from ..drawing.labelling_tasks import ASKED, asked
from ..drawing.page import CANDIDATE, CLUSTER, CONTROL, DRAWN, SECONDS, read_answers
from ..drawing.sheets import read_sheet
from .faults import Fault, State
from .returned import Labels
from .sheets import NOT_CORRECT
from .stars import Flaw, Stars, read_stars

YES, NO = frozenset({"y", "yes"}), frozenset({"n", "no"})
"""Answers in the column `same`, in small letters."""
OF_FLAW = {
    Flaw.CONTRADICTED: Fault.DIFFERING,
    Flaw.INTRANSITIVE: Fault.INTRANSITIVE,
    Flaw.IN_TWO_ENTITIES: Fault.IN_TWO_ENTITIES,
}


@dataclass(frozen=True, slots=True)
class _Answer:
    """An annotator's answer to a task: the records that are the same, and those that are not.

    Controls are in neither set, but in `controls` with y or n, so that they enter no estimate.
    """

    state: State
    same: frozenset[Any] = frozenset()
    different: frozenset[Any] = frozenset()
    controls: frozenset[tuple[Any, str]] = frozenset()
    seconds: float = nan


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

    Returns
    -------
    Labels

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
        tasks = folder.tasks
        self.drawn: dict[int, Any] = dict(
            tasks.loc[tasks["role"] == DRAWN, ["task", "record"]].itertuples(index=False, name=None)
        )
        self.cluster: dict[int, Any] = {}  # of each task, if predicted clusters were drawn
        if isinstance(folder.drawn.plan, PredictedClusters):
            cluster = asked(folder.drawn).set_index("record")["cluster"]
            self.cluster = {task: cluster[record] for task, record in self.drawn.items()}
        self.shown: dict[int, dict[str, Any]] = {
            int(str(task)): dict(zip(rows.map(str), rows, strict=True))
            for task, rows in tasks.groupby("task")["record"]
        }
        self.strangers = set(
            tasks.loc[tasks["role"] == CONTROL, ["task", "record"]].itertuples(index=False, name=None)
        )
        self.known = {str(record): record for record in tasks["record"]}
        self.integers = kind(as_index(tasks["record"])) == "integer"
        self.answers: dict[tuple[str, int], list[_Answer]] = {}
        self.problems: list[tuple[str, str, Any, Any, Fault]] = []
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

        def note(fault: Fault, where: str, record: Any = "") -> None:
            self.problems.append((where, annotator, task, record, fault))

        task = int(number) if re.fullmatch(r"\d{1,9}", number) else 0
        first = rows["where"].iloc[0]
        if task not in self.drawn:
            task = number  # type: ignore[assignment]
            note(Fault.UNKNOWN_TASK, first)
            return
        shown, drawn = self.shown[task], self.drawn[task]
        strangers = {record for record in shown.values() if (task, record) in self.strangers}
        if annotator == DECIDED:
            shown, strangers = {id: r for id, r in shown.items() if r not in strangers}, set()
        as_drawn = rows["record"][rows["role"] == DRAWN]
        if len(others := as_drawn[as_drawn != str(drawn)]):
            note(Fault.OTHER_RECORD, first, others.iloc[0])
            return
        marks: dict[Any, set[str]] = {record: set() for record in shown.values()}
        place: dict[Any, str] = {}  # where a record has its first row
        cannot_tell, seen, unread, usable = False, set(), set(), True
        for where, text, same, doubt in rows[["where", "record", "same", "cannot_tell"]].itertuples(
            index=False, name=None
        ):
            cannot_tell |= doubt.strip().lower() not in NOT_CORRECT
            answer = same.strip().lower()
            mark = "y" if answer in YES else "n" if answer in NO else ""
            if answer and not mark:
                note(Fault.UNREADABLE, where, text)
                usable = False
            if not text.strip() and not answer:
                continue
            record = self._find_record(text, shown)
            if record is None:
                note(Fault.NO_ID, where, text)
                usable = False
                continue
            seen.add(record)
            place.setdefault(record, where)
            if answer and not mark:
                unread.add(record)
            if record not in marks and not mark and not answer and (task, record) not in self.strangers:
                note(Fault.NOT_SHOWN, where, record)
            if mark:
                marks.setdefault(record, set()).add(mark)
                if mark == "y" and str(record) not in self.known:
                    self.added.setdefault(record, (where, annotator, task))
        answered = any(marks.values())
        seconds = float(pd.to_numeric(rows.get(SECONDS, pd.Series(dtype=float)), errors="coerce").max())
        if cannot_tell:
            if any(marks[record] for record in marks if record != drawn):
                note(Fault.YET_ANSWERED, first)
            self.answers.setdefault((annotator, task), []).append(_Answer(State.CANNOT_TELL, seconds=seconds))
            return
        if not answered:
            return
        for record in [r for r in shown.values() if r not in seen]:
            note(Fault.ROW_MISSING, first, record)
            usable = False
        for record in [r for r, values in marks.items() if len(values) > 1]:
            note(Fault.CONTRADICTED, first, record)
            usable = False
        if "n" in marks[drawn]:
            note(Fault.DRAWN_REJECTED, first, drawn)
            usable = False
        for record in [r for r, values in marks.items() if not values and r in seen - unread]:
            note(Fault.BLANK, place[record], record)
            usable = False
        same, different = (
            frozenset(r for r in marks if mark in marks[r] and r not in strangers) for mark in "yn"
        )
        controls = frozenset((r, mark) for r in strangers for mark in marks[r])
        state = State.ANSWERED if usable else State.INCOMPLETE
        self.answers.setdefault((annotator, task), []).append(
            _Answer(state, same, different, controls, seconds)
        )

    def _find_record(self, text: str, shown: Mapping[str, Any]) -> Any:
        """Return the record of an id as it was typed, None if no record can have it."""
        for known in (shown, self.known):
            for id in (text, text.strip()):
                if id in known:
                    return known[id]
        id = text.strip()
        if not self.integers:
            return id
        return int(id) if re.fullmatch(r"-?\d{1,18}", id) else None

    def labels(self, prediction: Any) -> Labels:
        """Return the labels of all files together."""
        merged = {key: self._merge_answers(*key, answers) for key, answers in self.answers.items()}
        verdicts = {task: self._decide_answer(task, merged) for task in self.drawn}
        for task in self._list_settled(verdicts):
            verdicts[task] = _Answer(State.SETTLED)
        blank = [task for task, answer in verdicts.items() if answer.state is State.UNANSWERED]
        self.problems += [("", "", task, self.drawn[task], Fault.UNANSWERED) for task in blank]
        closed = {State.ANSWERED, State.SETTLED}
        partly = {self.cluster[task] for task in self.cluster if verdicts[task].state not in closed}
        resolved = {
            task: answer
            for task, answer in verdicts.items()
            if answer.state is State.ANSWERED and self.cluster.get(task) not in partly
        }
        stars = self._make_stars(resolved)
        task_of = {record: task for task, record in self.drawn.items()}
        for sampled, record, flaw in stars.problems.itertuples(index=False, name=None):
            self.problems.append(("", "", task_of[sampled], record, OF_FLAW[flaw]))
        if prediction is not None:
            records = Clustering.of(prediction, "prediction").records
            for record, (where, annotator, task) in self.added.items():
                if record not in records:
                    self.problems.append((where, annotator, task, record, Fault.UNKNOWN_RECORD))
        dealt = [(name, task) for name, tasks in self.folder.dealt.items() for task in tasks]
        keys = dict.fromkeys([*dealt, *(key for key in merged if key[0] != DECIDED)])
        settled = {
            (name, task)
            for name in self.folder.dealt
            for task in self._list_settled({t: answer for (n, t), answer in merged.items() if n == name})
        }
        states = [
            (name, task, merged[name, task].state, merged[name, task].seconds)
            if (name, task) in merged
            else (name, task, State.SETTLED if (name, task) in settled else State.UNANSWERED, nan)
            for name, task in keys
        ]
        rest = [(task, self.drawn[task], a.state) for task, a in verdicts.items() if a.state not in closed]
        return Labels(
            self.folder,
            stars,
            pd.DataFrame(
                self.problems, columns=["where", "annotator", "task", "record", "fault"], dtype=object
            ),
            pd.DataFrame(rest, columns=["task", "record", "state"], dtype=object),
            pd.DataFrame(states, columns=["annotator", "task", "state", SECONDS], dtype=object),
            self._list_answers(),
            self._pair_annotators(merged),
            tuple(self.files),
        )

    def _list_settled(self, answers: Mapping[int, _Answer]) -> list[int]:
        """Return the blank tasks of drawn predicted clusters whose record has y in a task of the cluster."""
        found: dict[Any, set[Any]] = {}
        for task, answer in answers.items():
            if answer.state is State.ANSWERED and task in self.cluster:
                found.setdefault(self.cluster[task], set()).update(answer.same)
        return [
            task
            for task, cluster in self.cluster.items()
            if (task not in answers or answers[task].state is State.UNANSWERED)
            and self.drawn[task] in found.get(cluster, ())
        ]

    def _list_answers(self) -> pd.DataFrame:
        """Return every answer: annotator, task, record, same."""
        rows = {
            (name, task, record, mark): None
            for (name, task), answers in self.answers.items()
            for answer in answers
            for record, mark in (
                *((record, "y") for record in sorted(answer.same, key=str)),
                *((record, "n") for record in sorted(answer.different, key=str)),
                *sorted(answer.controls, key=str),
            )
        }
        return pd.DataFrame(list(rows), columns=["annotator", "task", "record", "same"], dtype=object)

    def _merge_answers(self, annotator: str, task: int, answers: list[_Answer]) -> _Answer:
        """Return what the files of one annotator say of a task."""
        complete = [a for a in answers if a.state is not State.INCOMPLETE]
        if not complete:
            return answers[0]
        differing = frozenset[Any]().union(*(a.same ^ complete[0].same for a in complete))
        if differing or len({a.state for a in complete}) > 1:
            for record in differing or {self.drawn[task]}:
                self.problems.append(("", annotator, task, record, Fault.CONTRADICTED))
            return _Answer(State.INCOMPLETE)
        known = [a.seconds for a in complete if not isnan(a.seconds)]
        return replace(complete[0], seconds=max(known, default=nan))  # a page counts on from save to save

    def _decide_answer(self, task: int, merged: Mapping[tuple[str, int], _Answer]) -> _Answer:
        """Return the answer to a task, of all annotators or as it was decided."""
        if (decided := merged.get((DECIDED, task))) is not None:
            return decided
        answers = {name: a for (name, number), a in merged.items() if number == task}
        complete = {name: a for name, a in answers.items() if a.state is State.ANSWERED}
        doubts = [name for name, a in answers.items() if a.state is State.CANNOT_TELL]
        if not complete:
            states = {a.state for a in answers.values()}
            if not states:
                return _Answer(State.UNANSWERED)
            return _Answer(State.CANNOT_TELL if State.CANNOT_TELL in states else State.INCOMPLETE)
        for name in doubts:
            self.problems.append(("", name, task, self.drawn[task], Fault.ONE_CANNOT_TELL))
        first, *others = complete.values()
        if differing := frozenset[Any]().union(*(a.same ^ first.same for a in others)):
            for record in sorted(differing, key=str):
                self.problems.append(("", ", ".join(complete), task, record, Fault.DISPUTED))
            return _Answer(State.DISPUTED)
        return first

    def _make_stars(self, resolved: Mapping[int, _Answer]) -> Stars:
        """Return the entities of resolved tasks."""
        pairs = [
            (self.drawn[task], record, match)
            for task, answer in resolved.items()
            for records, match in ((answer.same, True), (answer.different, False))
            for record in sorted(records, key=str)
            if record != self.drawn[task]
        ]
        if not resolved:
            none = pd.DataFrame(columns=["sampled", "record", "problem"])
            return Stars(pd.DataFrame(columns=["entity", "record"]), pd.Index([]), none)
        table = pd.DataFrame(pairs, columns=["drawn", "record", "same"], dtype=object)
        wanted = {self.drawn[task] for task in resolved}
        draws = pd.Series(list(self.drawn.values())) if self.cluster else self.folder.drawn.table["record"]
        return read_stars(table, draws[draws.isin(wanted)], left="drawn", right="record", answer="same")

    def _pair_annotators(self, merged: Mapping[tuple[str, int], _Answer]) -> dict[tuple[str, str], Pair]:
        """Return the tasks that two annotators have both answered in full."""
        if self.cluster:
            return {}
        complete: dict[str, dict[int, _Answer]] = {}
        for (name, task), answer in merged.items():
            if name != DECIDED and answer.state is State.ANSWERED:
                complete.setdefault(name, {})[task] = answer
        members = self.folder.drawn.members
        cluster = dict(zip(members["record"], members["cluster"].map("in {}".format), strict=True))
        pairs = {}
        for first, second in combinations(sorted(complete), 2):
            both = [task for task in complete[first] if task in complete[second]]
            if both:
                one, other = (_name_entities(complete[name], both, self.drawn) for name in (first, second))
                records = pd.concat([one, other, members])["record"].drop_duplicates()
                prediction = {record: cluster.get(record, f"alone {record}") for record in records}
                pairs[first, second] = Pair.of(one, other, prediction)
        return pairs


def _name_entities(
    answers: Mapping[int, _Answer], tasks: Iterable[int], drawn: Mapping[int, Any]
) -> pd.DataFrame:
    """Return the entity of each drawn record, for `Pair.of`."""
    rows = [(drawn[task], record) for task in tasks for record in {drawn[task]} | answers[task].same]
    return pd.DataFrame(rows, columns=["mention", "record"])


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
