"""What answers in the folder of a draw say together: states of tasks, and faults.

All files make one table of rows. Checks of entire columns separate the rows that cannot be read. The rest are
the answers of each file to each task, from which come those of each annotator, and one to each task.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import NO, YES
from .._internal.errors import DataError, head
from ..units.clustering import Clustering
from ..units.ids import as_index, kind
from ..units.measuring import are_written_otherwise
from .annotators import AnnotatorPair
from .drawn import RecordDraws
from .folder import DECIDED, Folder, answer_files
from .labelling_tasks import FILLED, drawn_records, read_sheet
from .page import ADDED, CANDIDATE, CLUSTER, CONTROL, DRAWN, SECONDS, read_answers, read_id
from .stars import Flaw, Stars, occurs, read_stars


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


CLOSED = frozenset({State.ANSWERED, State.SETTLED})
"""States of a task that needs no more answers."""
BY = ["annotator", "task"]
"""Columns that name the answer of an annotator to a task."""
KEY = ["file", *BY]
"""Columns that name the answer of a file to a task."""
PLACE = ["where", *BY, "record"]
"""Columns that say where a fault is."""
MARKS = dict.fromkeys(YES, "y") | dict.fromkeys(NO, "n")
"""Answers in the column `same`, in small letters, and the mark of each."""
DECIDES = NO | {""}
"""Contents of the column `cannot_tell`, in small letters, of an annotator who can."""
ROWS = [*KEY, "where", "record", "role", *FILLED, SECONDS]
"""Columns of the table of rows, all of them text."""


class Problems(list[pd.DataFrame]):
    """The faults that are found while answers are read: tables of where, annotator, task, record, fault."""

    def note(self, fault: Fault, rows: pd.DataFrame) -> None:
        """Note a fault in each of some rows, which have columns of `PLACE`, or some of them."""
        kind: Any = fault
        if len(rows) or not self:  # the first has the columns of the table of none
            self.append(rows.reindex(columns=PLACE, fill_value="").astype(object).assign(fault=kind))


@dataclass(frozen=True, slots=True)
class ShownTasks:
    """Tasks as they were shown, by the text of each id, and their predicted clusters if these were drawn.

    `drawn`: task -> drawn record; `shown`: task, record, role; `records`: text of an id -> record.
    """

    drawn: pd.Series
    shown: pd.DataFrame
    records: Mapping[str, Any]
    integers: bool
    cluster: pd.Series | None

    @classmethod
    def of(cls, folder: Folder) -> ShownTasks:
        """Return the tasks of a folder."""
        tasks, cluster = folder.tasks, None
        drawn = tasks[tasks["role"] == DRAWN].set_index("task")["record"]
        if folder.drawn.of_clusters:
            cluster = drawn.map(drawn_records(folder.drawn).set_index("record")["cluster"])
        shown = tasks[["task", "record", "role"]].astype({"record": object})
        records = {str(record): record for record in shown["record"]}
        return cls(drawn, shown, records, kind(as_index(drawn)) == "integer", cluster)


@dataclass(frozen=True, slots=True)
class TaskAnswers:
    """The answers that are not blank: of files, of annotators, or one to each task.

    `states`: annotator, task, state, seconds; `marks`: annotator, task, record, role, same (y or n).
    """

    states: pd.DataFrame
    marks: pd.DataFrame

    def of(self, states: pd.DataFrame) -> TaskAnswers:
        """Return the answers of annotators to tasks that `states` has, with these states."""
        return TaskAnswers(states, self.marks[occurs(self.marks, states, BY)])

    @property
    def accepted(self) -> pd.DataFrame:
        """Return the marks y. Those of controls are left out, so that they enter no estimate."""
        return self.marks[(self.marks["same"] == "y") & (self.marks["role"] != CONTROL)]


def _read_files(folder: Folder, problems: Problems) -> pd.DataFrame:
    """Return the rows of all files about tasks that are begun in them, with the columns `ROWS`."""
    tables = [pd.DataFrame(columns=ROWS, dtype=object)]
    for file in answer_files(folder.path):
        try:
            if file.suffix.lower() == ".json":  # that a page has saved
                table = read_answers(file, folder.tasks, folder.fingerprint)
                texts = {column: table[column].map(str) for column in ("task", "record")}
                table = table.assign(annotator=table["annotator"].max(), where=file.name, **texts)
            else:
                table = _read_sheet_file(file, folder.blind)
        except DataError as error:
            problems.note(Fault.UNREAD, pd.DataFrame({"where": [error.what]}))
            continue
        table = table.assign(file=file.name).reindex(columns=ROWS, fill_value="").astype(object)
        for column in ("task", "role", *FILLED):
            table[column] = [text.strip().lower() for text in table[column]]
        begun = table["task"][(table[[*FILLED]] != "").any(axis=1)]
        tables.append(table[table["task"].isin(begun)])
    return pd.concat(tables, ignore_index=True)


def _read_sheet_file(file: Path, blind: bool) -> pd.DataFrame:
    """Return the rows of a sheet. Sheets do not know the time."""
    name = re.fullmatch(r"sheet-(.+)", file.stem)
    if name is None or file.suffix.lower() not in {".csv", ".xlsx"}:
        raise DataError(
            f"{file.name}: files with answers are sheet-NAME.csv, sheet-NAME.xlsx or saved by a page"
        )
    table = read_sheet(file)
    if missing := [c for c in ("task", "record", "role", *FILLED) if c not in table.columns]:
        raise DataError(f"{file.name} has no column {head(missing, 9)}; it has {head(table.columns, 20)}")
    if blind and len(shown := table[table["role"].isin([CLUSTER, CANDIDATE])]) and name[1] != DECIDED:
        raise DataError(
            f"{file.name}: row {shown.index[0]} tells the role {shown['role'].iloc[0]!r}, which a blind "
            "sheet hides: its answers are those of another folder, or the column was filled in"
        )
    return table.assign(
        annotator=name[1], where=[f"{file.name}, row {row}" for row in table.index], **{SECONDS: ""}
    )


def _take_tasks(rows: pd.DataFrame, tasks: ShownTasks, problems: Problems) -> pd.DataFrame:
    """Return the rows of tasks that the draw has, unless the file names another drawn record for the task."""
    written = rows["task"].map(lambda text: bool(re.fullmatch(r"\d{1,9}", text))).astype(bool)
    number = rows["task"].where(written, "0").astype("int64")
    known = number.isin(tasks.drawn.index)
    problems.note(Fault.UNKNOWN_TASK, rows[~known].drop_duplicates(KEY).drop(columns="record"))
    rows = rows.assign(task=number)[known]
    drawn = rows[rows["role"] == DRAWN]
    ids = np.array([read_id(text, tasks.records, tasks.integers) for text in drawn["record"]], dtype=object)
    other = drawn[ids != tasks.drawn[drawn["task"]].to_numpy()].drop_duplicates(KEY)
    same = are_written_otherwise(other["record"], tasks.drawn[other["task"]].map(str))
    problems.note(Fault.CHANGED, other[same])
    problems.note(Fault.OTHER_RECORD, other[~same])
    return rows[~occurs(rows, other, KEY)]


def _read_rows(rows: pd.DataFrame, tasks: ShownTasks, problems: Problems) -> pd.DataFrame:
    """Return the rows with record (missing if blank or no id), role, undecided, unusable and seconds."""
    blank = (rows["record"].map(str.strip) == "") & (rows["same"] == "")
    ids = [read_id(text, tasks.records, tasks.integers) for text in rows["record"]]
    records = pd.Series(ids, rows.index, dtype=object)
    unread = (rows["same"] != "") & ~rows["same"].isin(MARKS)
    problems.note(Fault.UNREADABLE, rows[unread])
    problems.note(Fault.NO_ID, rows[records.isna() & ~blank])
    rows = rows.drop(columns="role").assign(
        record=records.mask(blank),
        undecided=~rows["cannot_tell"].isin(DECIDES),
        unusable=unread | (records.isna() & ~blank),
        seconds=pd.to_numeric(rows[SECONDS], errors="coerce").astype(float),
    )
    rows = rows.merge(tasks.shown, on=["task", "record"], how="left")
    return rows.assign(role=rows["role"].fillna(ADDED))


def _judge_rows(rows: pd.DataFrame, tasks: ShownTasks, problems: Problems) -> TaskAnswers:
    """Return the answers of each file to each task, and note what keeps them from being complete."""
    states = rows.groupby(KEY, sort=False).agg(
        where=("where", "first"),
        undecided=("undecided", "any"),
        unusable=("unusable", "any"),
        seconds=(SECONDS, "max"),
    )
    states, rows = states.reset_index(), rows[rows["record"].notna()]
    given = rows[rows["same"] != ""]
    unanswered = rows[~occurs(rows, given, [*KEY, "record"])].drop_duplicates([*KEY, "record"])
    problems.note(Fault.NOT_SHOWN, unanswered[unanswered["role"] == ADDED])
    # whoever decides does so as if controls were not shown, and adds one by a y
    given, unanswered = (
        table.assign(
            role=table["role"].mask((table["annotator"] == DECIDED) & (table["role"] == CONTROL), ADDED)
        )
        for table in (given, unanswered)
    )
    marks = given[given["same"].isin(MARKS)]
    marks = marks.assign(same=marks["same"].map(MARKS)).drop_duplicates([*KEY, "record", "same"])
    marked, others = occurs(states, marks, KEY), marks[marks["role"] != DRAWN]
    problems.note(Fault.YET_ANSWERED, states[states["undecided"] & occurs(states, others, KEY)])
    decided = states[marked & ~states["undecided"]]
    marks = marks[occurs(marks, decided, KEY)]
    needed = decided.merge(tasks.shown, on="task")
    needed = needed[(needed["annotator"] != DECIDED) | (needed["role"] != CONTROL)]
    faulty = {
        Fault.ROW_MISSING: needed[~occurs(needed, rows, [*KEY, "record"])],
        Fault.CONTRADICTED: marks[marks.duplicated([*KEY, "record"])],
        Fault.DRAWN_REJECTED: marks[(marks["role"] == DRAWN) & (marks["same"] == "n")],
        Fault.BLANK: unanswered[(unanswered["role"] != ADDED) & occurs(unanswered, decided, KEY)],
    }
    for fault, places in faulty.items():
        problems.note(fault, places)
    incomplete = states["unusable"] | np.any([occurs(states, t, KEY) for t in faulty.values()], axis=0)
    state = pd.Series(State.ANSWERED, states.index, dtype=object).mask(incomplete, State.INCOMPLETE)
    states["state"] = state.mask(states["undecided"], State.CANNOT_TELL)
    return TaskAnswers(states[marked | states["undecided"]], marks)


def reach_verdicts(folder: Folder, prediction: Any = None) -> dict[str, Any]:
    """Return what `Labels` has of the answers in a folder; added records may be missing in `prediction`."""
    tasks, problems = ShownTasks.of(folder), Problems()
    rows = _read_files(folder, problems)
    answers = _judge_rows(_read_rows(_take_tasks(rows, tasks, problems), tasks, problems), tasks, problems)
    merged = _merge_files(answers, problems)
    verdicts = _decide_tasks(tasks, merged, problems)
    state = _list_by_task(tasks, verdicts)
    blank = state.index[state == State.UNANSWERED]
    problems.note(Fault.UNANSWERED, pd.DataFrame({"task": blank, "record": tasks.drawn[blank].to_numpy()}))
    stars = _make_stars(tasks, folder.drawn, state, verdicts)
    task_of = pd.Series(tasks.drawn.index, tasks.drawn)
    flawed = stars.problems.assign(task=task_of[stars.problems["sampled"]].to_numpy())
    for flaw in (Flaw.DIFFERING, Flaw.INTRANSITIVE, Flaw.IN_TWO_ENTITIES):
        problems.note(Fault[flaw.name], flawed[flawed["problem"] == flaw])
    if prediction is not None:
        records = Clustering.of(prediction, "prediction").records
        added = answers.accepted.drop_duplicates("record")
        known = added["record"].isin(tasks.records.values()) | added["record"].isin(records)
        problems.note(Fault.UNKNOWN_RECORD, added[~known])
    rest = state.index[~state.isin(CLOSED)]
    unresolved = {"task": rest, "record": tasks.drawn[rest].to_numpy(), "state": state[rest].to_numpy()}
    given = answers.marks[["annotator", "task", "record", "same", "role"]].drop_duplicates(ignore_index=True)
    return {
        "stars": stars,
        "problems": pd.concat(problems, ignore_index=True),
        "unresolved": pd.DataFrame(unresolved, dtype=object),
        "states": _list_states(tasks, folder.dealt, merged),
        "answers": given,
        "pairs": _pair_annotators(tasks, folder.drawn.members, merged),
        "files": tuple(rows["file"].unique()),
    }


def _find_differing(accepted: pd.DataFrame, answers: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return the records that some of several complete answers accept, and others do not: by, record."""
    keys = [*by, "record"]
    times, of = (Counter(rows.itertuples(index=False, name=None)) for rows in (accepted[keys], answers[by]))
    return pd.DataFrame([key for key in times if times[key] < of[key[:-1]]], columns=keys, dtype=object)


def _merge_files(answers: TaskAnswers, problems: Problems) -> TaskAnswers:
    """Return what the files of each annotator say together, and note where they contradict each other."""
    # a page counts on from save to save
    longest = answers.states.groupby(BY, sort=False)[SECONDS].transform("max")
    states = answers.states.assign(**{SECONDS: longest})
    complete = states[states["state"] != State.INCOMPLETE]
    marks = answers.marks[occurs(answers.marks, complete, KEY)]
    differing = _find_differing(TaskAnswers(complete, marks).accepted, complete, BY)
    problems.note(Fault.CONTRADICTED, differing)
    merged = pd.concat([complete, states]).drop_duplicates(BY, ignore_index=True)  # complete ones come first
    merged["state"] = merged["state"].mask(occurs(merged, differing, BY), State.INCOMPLETE)
    return TaskAnswers(merged, marks.drop_duplicates([*BY, "record", "same"]))


def _decide_tasks(tasks: ShownTasks, merged: TaskAnswers, problems: Problems) -> TaskAnswers:
    """Return one answer to each task, of all annotators or as it was decided, and note disputes."""
    decided = merged.states[merged.states["annotator"] == DECIDED]
    states = merged.states[~merged.states["task"].isin(decided["task"])]
    complete, undecided = (states[states["state"] == s] for s in (State.ANSWERED, State.CANNOT_TELL))
    differing = _find_differing(merged.of(complete).accepted, complete, ["task"])
    names = complete.groupby("task")["annotator"].agg(", ".join)
    problems.note(Fault.DISPUTED, differing.assign(annotator=differing["task"].map(names)))
    one = undecided[undecided["task"].isin(complete["task"])]
    problems.note(Fault.ONE_CANNOT_TELL, one.assign(record=tasks.drawn[one["task"]].to_numpy()))
    first = pd.concat([decided, complete, undecided, states]).drop_duplicates("task", ignore_index=True)
    disputed = first["task"].isin(differing["task"])
    return merged.of(first.assign(state=first["state"].mask(disputed, State.DISPUTED)))


def _list_by_task(tasks: ShownTasks, answers: TaskAnswers) -> pd.Series:
    """Return the state of each task: settled if blank, and another of its cluster has y for its record."""
    state = answers.states.set_index("task")["state"].reindex(tasks.drawn.index)
    state = state.astype(object).where(state.notna(), State.UNANSWERED)
    if tasks.cluster is None:
        return state
    answered = answers.accepted[answers.accepted["task"].map(state) == State.ANSWERED]
    accepted = pd.MultiIndex.from_arrays([tasks.cluster[answered["task"]], answered["record"]])
    on_top = pd.MultiIndex.from_arrays([tasks.cluster, tasks.drawn])
    return state.mask((state == State.UNANSWERED) & on_top.isin(accepted), State.SETTLED)


def _make_stars(tasks: ShownTasks, draws: RecordDraws, state: pd.Series, verdicts: TaskAnswers) -> Stars:
    """Return the entities of answered tasks, of drawn predicted clusters all of whose tasks are closed."""
    resolved = tasks.drawn[state == State.ANSWERED]
    sampled = draws.table["record"]
    if tasks.cluster is not None:
        partly = tasks.cluster[~state.isin(CLOSED)]
        resolved, sampled = resolved[~tasks.cluster[resolved.index].isin(partly)], tasks.drawn
    if not len(resolved):
        none = pd.DataFrame(columns=["sampled", "record", "problem"])
        return Stars(pd.DataFrame(columns=["entity", "record"]), pd.Index([]), none)
    marks = verdicts.marks[verdicts.marks["task"].isin(resolved.index)].sort_values("task", kind="stable")
    marks = marks[~marks["role"].isin([DRAWN, CONTROL])]
    pairs = marks.assign(drawn=tasks.drawn[marks["task"]].to_numpy(), same=marks["same"] == "y")
    pairs = pairs.astype({"drawn": object, "record": object})
    return read_stars(pairs, sampled[sampled.isin(resolved)], left="drawn", right="record", answer="same")


def _list_states(tasks: ShownTasks, dealt: Mapping[str, Sequence[int]], merged: TaskAnswers) -> pd.DataFrame:
    """Return the table of `Labels.states`, of the tasks of each annotator and of those answered."""
    parts = [pd.DataFrame(columns=[*BY, "state", SECONDS], dtype=object)]
    for name in dict.fromkeys([*dealt, *merged.states["annotator"]]):
        answers = merged.of(merged.states[merged.states["annotator"] == name])
        answered = answers.states.set_index("task")
        numbers = sorted({*dealt.get(name, ()), *answered.index})
        if name != DECIDED:
            state, seconds = _list_by_task(tasks, answers)[numbers], answered[SECONDS].reindex(numbers)
            part = {"annotator": name, "task": numbers, "state": state.array, SECONDS: seconds.array}
            parts.append(pd.DataFrame(part, dtype=object))
    return pd.concat(parts, ignore_index=True)


def _pair_annotators(
    tasks: ShownTasks, members: pd.DataFrame, merged: TaskAnswers
) -> dict[tuple[str, str], AnnotatorPair]:
    if tasks.cluster is not None:
        return {}
    complete = merged.states[merged.states["state"] == State.ANSWERED]
    accepted = merged.of(complete[complete["annotator"] != DECIDED]).accepted
    cluster = dict(zip(members["record"], members["cluster"].map("in {}".format), strict=True))
    accepted = accepted.assign(mention=tasks.drawn[accepted["task"]].to_numpy())
    entities = {str(name): rows[["mention", "record"]] for name, rows in accepted.groupby("annotator")}
    pairs = {}
    for first, second in combinations(entities, 2):
        one, other = entities[first], entities[second]
        one, other = one[one["mention"].isin(other["mention"])], other[other["mention"].isin(one["mention"])]
        if len(one):
            records = pd.concat([one, other, members])["record"].drop_duplicates()
            prediction = {record: cluster.get(record, f"alone {record}") for record in records}
            pairs[first, second] = AnnotatorPair.of(one, other, prediction)
    return pairs
