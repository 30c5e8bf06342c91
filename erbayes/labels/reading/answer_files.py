"""Reading of the answers in the folder of a draw: sheets, and files that a labelling page has saved.

All files make one table of rows. Checks of entire columns separate the rows that cannot be read. The rest are
the answers of each file to each task (`TaskAnswers`), from which `verdicts` makes labels.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd

from ..._internal.errors import DataError, head
from ..._internal.tables import NO, YES
from ...units.clustering import Clustering
from ...units.measuring import are_written_otherwise
from ..drawing.folder import DECIDED, Folder, answer_files, read_folder
from ..drawing.labelling_tasks import FILLED, read_sheet
from ..drawing.page import ADDED, CANDIDATE, CLUSTER, CONTROL, DRAWN, SECONDS, read_answers, read_id
from .returned import Labels
from .verdicts import KEY, Fault, Problems, ShownTasks, State, TaskAnswers, occurs, reach_verdicts

MARKS = dict.fromkeys(YES, "y") | dict.fromkeys(NO, "n")
"""Answers in the column `same`, in small letters, and the mark of each."""
DECIDES = NO | {""}
"""Contents of the column `cannot_tell`, in small letters, of an annotator who can."""
ROWS = [*KEY, "where", "record", "role", *FILLED, SECONDS]
"""Columns of the table of rows, all of them text."""


def read_labels(folder: str | Path | Folder, prediction: Any = None) -> Labels:
    """Read the answers in the folder of a draw: sheets, and files that a labelling page has saved.

    Every row of a task needs an answer: y if the record belongs to the entity of the drawn record, n if not.
    The y of the drawn record itself says that the task is done. Annotators add records by new rows of the
    task, with y. One x in `cannot_tell` is for all records of the task.

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
        The prediction that was drawn from, to list the added records that are missing in it.

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
    tasks, problems = ShownTasks.of(folder), Problems()
    rows = _read_files(folder, problems)
    files = tuple(rows["file"].unique())
    rows = _read_rows(_take_tasks(rows, tasks, problems), tasks, problems)
    answers = _judge_rows(rows, tasks, problems)
    verdicts = reach_verdicts(tasks, folder, answers, problems)
    if prediction is not None:
        records = Clustering.of(prediction, "prediction").records
        added = answers.marks[(answers.marks["role"] == ADDED) & (answers.marks["same"] == "y")]
        added = added[~added["record"].isin(tasks.records.values()) & ~added["record"].isin(records)]
        problems.note(Fault.UNKNOWN_RECORD, added.drop_duplicates("record"))
    given = answers.marks[["annotator", "task", "record", "same", "role"]].drop_duplicates(ignore_index=True)
    return Labels(folder, problems=problems.table(), answers=given, files=files, **verdicts)


def _read_files(folder: Folder, problems: Problems) -> pd.DataFrame:
    """Return the rows of all files about tasks that are begun in them, with the columns `ROWS`."""
    tables = [pd.DataFrame(columns=ROWS, dtype=object)]
    for file in answer_files(folder.path):
        try:
            if file.suffix.lower() == ".json":  # that a page has saved
                table = read_answers(file, folder.tasks, folder.fingerprint)
                answered = table["annotator"] != ""
                name = table["annotator"][answered].max()
                table = table[table["task"].isin(table["task"][answered])]
                texts = {column: table[column].map(str) for column in ("task", "record")}
                table = table.assign(annotator=name, where=file.name, **texts)
            else:
                table = _read_sheet_file(file, folder.blind)
        except DataError as error:
            problems.note(Fault.UNREAD, pd.DataFrame({"where": [error.what]}))
            continue
        table = table.assign(file=file.name).reindex(columns=ROWS, fill_value="").astype(object)
        for column in FILLED:
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
    shown = table[table["role"].isin([CLUSTER, CANDIDATE])]
    if blind and len(shown) and name[1] != DECIDED:
        raise DataError(
            f"{file.name}: row {shown.index[0]} tells the role {shown['role'].iloc[0]!r}, which a blind "
            "sheet hides: its answers are those of another folder, or the column was filled in"
        )
    where = [f"{file.name}, row {row}" for row in table.index]
    return table.assign(annotator=name[1], where=where, **{SECONDS: ""})


def _take_tasks(rows: pd.DataFrame, tasks: ShownTasks, problems: Problems) -> pd.DataFrame:
    """Return the rows of tasks that the draw has, unless the file names another drawn record for the task."""
    written = rows["task"].map(lambda text: bool(re.fullmatch(r"\d{1,9}", text))).astype(bool)
    number = rows["task"].where(written, "0").astype("int64")
    known = number.isin(tasks.drawn.index)
    problems.note(Fault.UNKNOWN_TASK, rows[~known].drop_duplicates(KEY).drop(columns="record"))
    rows = rows.assign(task=number)[known]
    drawn = tasks.drawn[rows["task"]].map(str).to_numpy()
    other = rows[(rows["role"] == DRAWN) & (rows["record"] != drawn)].drop_duplicates(KEY)
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
    incomplete = states["unusable"] | occurs(states, pd.concat([t[KEY] for t in faulty.values()]), KEY)
    state = pd.Series(State.ANSWERED, states.index, dtype=object).mask(incomplete, State.INCOMPLETE)
    states["state"] = state.mask(states["undecided"], State.CANNOT_TELL)
    return TaskAnswers(states[marked | states["undecided"]], marks)
