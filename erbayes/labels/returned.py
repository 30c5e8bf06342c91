"""Labels that come back from annotators: answers in the folder of a draw, and every fault in them.

All files make one table of rows. Checks of entire columns separate the rows that cannot be read. The rest are
the answers of each file to each task (`TaskAnswers`), from which `verdicts` makes labels.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._internal import remedies
from .._internal.arrays import NO, YES
from .._internal.errors import DataError, Remedy, head, member, refuse_cases
from .._internal.files import replacing
from .._internal.names import Nearest
from .._internal.remedies import Missing
from ..design import FrozenWeights
from ..design.contract import Design
from ..large import scan
from ..large.files import lies_elsewhere
from ..units.clustering import Clustering
from ..units.measuring import are_written_otherwise, measure, measure_predicted, refuse_unmatched
from ..units.units import Units
from .annotators import Annotator, AnnotatorPair, Beta, annotator_of
from .folder import DECIDED, Folder, answer_files, read_folder
from .labelling_tasks import FILLED, HAS_XLSX, drawn_records, read_sheet, write_sheet
from .page import ADDED, CANDIDATE, CLUSTER, CONTROL, DRAWN, KEYS, SECONDS, WHY, read_answers, read_id
from .source import open_source
from .verdicts import (
    HARMLESS,
    KEY,
    Fault,
    Problems,
    ShownTasks,
    Stars,
    State,
    TaskAnswers,
    describe_counts,
    occurs,
    reach_verdicts,
)

JUDGES_ITS_OWN = (
    "predicted clusters judge only the prediction that they were drawn from: draw records to judge others"
)
"""Why another prediction is refused."""
HASTY = 2.0
"""Seconds at work on a task in which nobody has compared records, by convention."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Labels(Nearest):
    """Labels of a draw, as `read_labels` reads them from its folder.

    Attributes
    ----------
    stars : Stars
        The entities of tasks with a complete answer. Drawn records that are judged the same have one entity.
        Entities of predicted clusters whose tasks are not all answered or settled are left out.
    problems : DataFrame
        One row per fault: where, annotator, task, record and fault (of `Fault`).
    unresolved : DataFrame
        One row per task without a complete answer that is not settled: task, record (the drawn one) and state
        (of `State`).
    states : DataFrame
        One row per annotator and task: annotator, task, state, seconds at work (NaN if not known).
    answers : DataFrame
        One row per answer: annotator, task, record, same (y or n), role. Those about controls are among them.
    pairs : dict, (annotator, annotator) -> AnnotatorPair
        The tasks that both annotators have answered in full. There are none if predicted clusters were drawn,
        as the tasks that an annotator answers then depend on the answers before.
    files : tuple of str
        Names of the files that have answers.

    Examples
    --------
    The annotator accepts all records, a control from the other predicted cluster among them:

    >>> from tempfile import TemporaryDirectory
    >>> from erbayes.labels import PredictedClusters, draw, read_labels, tasks, write_folder
    >>> prediction = {"r1": "a", "r2": "a", "r3": "b"}
    >>> drawn = draw(prediction, PredictedClusters(), n=2, seed=1)
    >>> names = pd.DataFrame({"record": ["r1", "r2", "r3"], "name": ["Ann", "Anne", "Bo"]})
    >>> with TemporaryDirectory() as temporary:
    ...     folder = write_folder(Path(temporary) / "to-label", drawn, tasks(drawn, names, controls=0.5))
    ...     folder.tasks.assign(same="y").to_csv(folder.path / "sheet-A.csv", index=False)
    ...     labels = read_labels(folder)
    >>> labels.annotators()[["tasks", "controls", "controls missed"]]
       tasks  controls  controls missed
    0      3         1                1
    >>> labels.annotator_errors().kept
    Beta(a=1.5, b=0.5)
    >>> labels.records()["name"].tolist()
    ['Ann', 'Anne', 'Bo']
    >>> labels.units(prediction).table()["predicted_links"].tolist()
    [0.0, 1.0]
    """

    folder: Folder
    stars: Stars
    problems: pd.DataFrame
    unresolved: pd.DataFrame
    states: pd.DataFrame
    answers: pd.DataFrame
    pairs: Mapping[tuple[str, str], AnnotatorPair]
    files: tuple[str, ...]

    @property
    def labels(self) -> pd.Series:
        """Labels for `erbayes.estimate`, record -> entity; harmful faults are a DataError."""
        if len(wrong := self._harmful):
            where, _, task, record, _ = wrong.iloc[0]
            places = [text for text in (where, f"task {task}" if task else "", str(record)) if text]
            what = f"{describe_counts(wrong['fault'])}; such as {', '.join(places)}"
            raise DataError(
                f"{self.folder.path}: {what}",
                Remedy(
                    "see Labels.problems (erbayes labels FOLDER); decide them in the sheets, or all at once "
                    "by Labels.disputed() (--decide)"
                ),
            )
        if not len(self.stars.answers):
            what = "drawn predicted cluster" if self.of_clusters else "task"
            raise DataError(f"{self.folder.path}: no {what} has a complete answer yet")
        return self.stars.answers.set_index("record")["entity"]

    @property
    def _harmful(self) -> pd.DataFrame:
        """Return the rows of `problems` whose faults stop labels."""
        return self.problems[~self.problems["fault"].isin(HARMLESS)]

    @property
    def of_clusters(self) -> bool:
        """True if predicted clusters were drawn, False if records were."""
        return self.folder.drawn.of_clusters

    @property
    def lost(self) -> pd.Series:
        """State of each draw (or cluster) without a complete answer, by its row in the table of draws."""
        states, drawn = self.unresolved.set_index("record")["state"], self.folder.drawn
        if not self.of_clusters:
            return drawn.table["record"].map(states).dropna()
        tasks, worst = drawn_records(drawn), {}
        for name, of_tasks in tasks["record"].map(states).groupby(tasks["cluster"], sort=False):
            begun = [state for state in of_tasks.dropna() if state is not State.UNANSWERED]
            if (of_tasks == State.UNANSWERED).all():
                worst[name] = State.UNANSWERED
            elif of_tasks.notna().any():
                worst[name] = [*begun, State.INCOMPLETE][0]
        return drawn.table["cluster"].map(pd.Series(worst, dtype=object)).dropna()

    def summary(self) -> pd.DataFrame:
        """Count the tasks of each annotator: in all, and in each state (settled if clusters were drawn)."""
        others = {State.DISPUTED} if self.of_clusters else {State.DISPUTED, State.SETTLED}
        columns = [state.value for state in State if state not in others]
        named = self.states["state"].map(lambda state: state.value)
        counts = pd.crosstab(self.states["annotator"], named).reindex(columns=columns, fill_value=0)
        counts.insert(0, "tasks", counts.sum(axis=1))
        return counts.rename_axis(columns=None).reset_index()

    def annotators(self) -> pd.DataFrame:
        """Count what each annotator changed of the prediction, in the tasks with a complete answer.

        Columns annotator; tasks; records refused, of the predicted clusters; candidates accepted; ids added;
        controls, and controls missed, which are those accepted; median seconds at work on a task.
        """
        given, states = self._take_complete(), self.states
        answered = (states["state"] == State.ANSWERED).groupby(states["annotator"]).sum()
        table = answered.rename("tasks").to_frame()
        for name, of_role, marks in (
            ("records refused", CLUSTER, "n"),
            ("candidates accepted", CANDIDATE, "y"),
            ("ids added", ADDED, "y"),
            ("controls", CONTROL, "yn"),
            ("controls missed", CONTROL, "y"),
        ):
            counted = given["annotator"][(given["role"] == of_role) & given["same"].isin(list(marks))]
            table[name] = counted.value_counts().reindex(table.index, fill_value=0)
        table["median seconds"] = states.astype({SECONDS: float}).groupby("annotator")[SECONDS].median()
        return table.reset_index()

    def cautions(self) -> list[str]:
        """Return a sentence for each sign that an annotator has not looked at the records."""
        given, states = self._take_complete(), self.states
        said, undecided = [], set(states["annotator"][states["state"] == State.CANNOT_TELL])
        accepted = given[(given["role"] == CONTROL) & (given["same"] == "y")]
        for row in self.annotators().to_dict("records"):
            name, tasks, missed = row["annotator"], row["tasks"], row["controls missed"]
            refused = row["controls"] - missed
            changed = row["records refused"] + row["candidates accepted"] + row["ids added"] + refused
            if tasks and not changed and not self.folder.blind and name not in undecided:
                said.append(
                    f"{name} answered {tasks:,} tasks and never changed a default: each record of a "
                    "predicted cluster is accepted, each candidate is refused, and no id is added. Pressing "
                    "Enter alone does the same, and then every estimate is 1: have some of these tasks "
                    "answered anew in a blind folder, with controls"
                )
            if row["median seconds"] < HASTY:
                within = f"{name} answered half of the tasks within {row['median seconds']:.1f} seconds each"
                said.append(f"{within}, in which nobody compares records: look at some of these together")
            if missed:
                where = accepted["task"][accepted["annotator"] == name]
                said.append(
                    f"{name} accepted {missed:,} of {row['controls']:,} controls, which are records of other "
                    f"predicted clusters, in tasks {head(where)}. No label has them. If one does belong to "
                    f"the entity, decide its task in sheet-{DECIDED}, with y for it; if not, have the tasks "
                    f"of {name} answered anew by somebody else"
                )
        return said

    def _take_complete(self) -> pd.DataFrame:
        """Return the answers of tasks with a complete answer."""
        return self.answers.merge(self.states[self.states["state"] == State.ANSWERED][["annotator", "task"]])

    def records(self) -> pd.DataFrame:
        """Return the records that tasks show: record, entity, cluster and attributes, for `erbayes.report`.

        The entity is missing if no complete answer names one, and the cluster if it was not drawn.
        """
        shown = self.folder.tasks.drop_duplicates("record").sort_values("record", ignore_index=True)
        entity = self.stars.answers.set_index("record")["entity"]
        cluster = self.folder.drawn.members.set_index("record")["cluster"]
        known = shown[["record"]].assign(
            entity=shown["record"].map(entity), cluster=shown["record"].map(cluster)
        )
        return known.join(shown.drop(columns=[*KEYS, *FILLED, WHY], errors="ignore"))

    def agreement(self) -> pd.DataFrame:
        """Estimate the shares of `AnnotatorPair.agreement`, from tasks that two annotators answered."""
        draws = self.folder.drawn.table.drop_duplicates("record").set_index("record")
        tables = [pd.DataFrame(columns=["annotators", "tasks", "share", "estimate", "lower", "upper"])]
        for (first, second), pair in self.pairs.items():
            # an entity weighs by the chance of its drawn record
            chance = draws["probability"][pair.mentions].to_numpy(float)
            found = pair.agreement(partial(lambda chance, size: np.asarray(1 / (chance * size)), chance))
            table = found.table().rename_axis("share").reset_index()
            tables.append(table.assign(annotators=f"{first}, {second}", tasks=len(pair.mentions)))
        return pd.concat(tables[1:] or tables, ignore_index=True)[[*tables[0]]]

    def annotator_errors(self) -> Annotator:
        """Return priors of the rates of errors of one annotator, for `erbayes.with_errors`.

        They are from tasks that several annotated and somebody settled (see `AnnotatorPair.rates`). Without
        such tasks, controls show what is kept, Beta(½ + missed, ½ + refused), and nothing of other errors.
        Controls are easier than namesakes, so that this is the least.
        """
        if self.pairs:
            names = {name for pair in self.pairs for name in pair}
            judged = [
                pair.judge(self.labels, swapped=x) for pair in self.pairs.values() for x in (False, True)
            ]
            # each annotator is in as many pairs as there are others
            counts = pd.DataFrame(judged).sum() / (len(names) - 1)
            return annotator_of(
                counts, f"{counts['tasks'] / len(names):.0f} settled tasks of {len(names)} annotators"
            )
        people = self.annotators()
        shown, missed = int(people["controls"].sum()), int(people["controls missed"].sum())
        if not shown:
            raise DataError(
                f"{self.folder.path} has neither tasks that two annotators answered nor controls, so that "
                "nothing shows their errors: state the rates"
            )
        source = f"{shown} controls, which show no other error"
        return Annotator(kept=Beta(0.5 + missed, 0.5 + shown - missed), source=source)

    def disputed(self) -> pd.DataFrame:
        """Return the tasks in which a fault stops `labels`, as a sheet with the answers of each annotator."""
        tasks, given = self.folder.tasks, self.answers[self.answers["role"] != CONTROL]
        rows = tasks[tasks["task"].isin(self._harmful["task"]) & (tasks["role"] != CONTROL)]
        given = given[given["task"].isin(rows["task"])]
        added = given[given["role"] == ADDED][["task", "record", "role"]].drop_duplicates()
        table = pd.concat([rows, added], ignore_index=True).sort_values("task", kind="stable")
        keys = pd.MultiIndex.from_frame(table[["task", "record"]])
        for annotator, answers in given.groupby("annotator"):
            marks = answers.groupby(["task", "record"])["same"].agg(lambda x: "/".join(sorted(set(x))))
            place = list(table).index(FILLED[0])
            table.insert(place, f"answer of {annotator}", marks.reindex(keys).to_numpy())
        return table.fillna("").reset_index(drop=True)

    def write_disputed(self) -> Path:
        """Write the tasks to decide as sheet-decided into the folder, and return its path."""
        table, folder = self.disputed(), self.folder.path
        if not len(table):
            raise DataError(f"{folder}: no task needs a decision")
        paths = [folder / f"sheet-{DECIDED}{suffix}" for suffix in (".xlsx", ".csv")]
        if there := [path for path in paths if path.exists()]:
            said = "it is there already; add the tasks to it, or rename it"
            raise DataError(f"cannot write {there[0]}: {said}")
        path = paths[0 if HAS_XLSX else 1]
        with replacing(path) as new:
            write_sheet(table.assign(note=""), new)
        return path

    def design(
        self, drawn_from: Any = None, *, missing: Missing | str = Missing.ERROR, values: Any = None
    ) -> Design:
        """Return the design of the draws.

        Draws from the first task on that nobody has begun count as not made yet, if no later task is begun.
        Otherwise tasks that nobody has begun are missing completely at random. Draws of other unresolved
        tasks stay in the data (see `design.Responding`), and so do predicted clusters that were begun and
        have no complete answer.

        Parameters
        ----------
        drawn_from : memberships, or files and tables, optional
            The prediction that was drawn from, to judge another one by chances that depend on its clusters.
        missing : Missing
            Policy for labelled records that are missing in `drawn_from`, as in `erbayes.measure`.
        values : Series or mapping, record -> value, optional
            The value of every labelled record, if they were drawn by values and annotators have added some.

        Raises
        ------
        DataError
            As `labels`, or if `drawn_from` is not the prediction that was drawn from. With `drawn_from` if
            predicted clusters were drawn, since they judge their own prediction only.
        """
        labels, drawn = self.labels, self.folder.drawn
        if self.of_clusters:
            if drawn_from is not None:
                raise DataError(JUDGES_ITS_OWN)
            states = self.lost.set_axis(drawn.table["record"][self.lost.index])
        else:
            states = self.unresolved.set_index("record")["state"]
        begun = states != State.UNANSWERED
        left, lost = states.index[~begun], states.index[begun]
        design = drawn.design(labels, values, unresolved=lost, unlabelled=left)
        if drawn_from is None:
            return design
        count = scan if lies_elsewhere(drawn_from) else measure
        return FrozenWeights(design, count(drawn_from, labels, missing=missing))

    def uniform(self) -> Labels:
        """Return the labels of the draws that are a sample of uniform records (`RecordDraws.uniform`)."""
        drawn = self.folder.drawn.uniform()
        answers, lost = self.stars.answers, self.unresolved
        entities = answers["entity"][answers["record"].isin(drawn.table["record"])]
        return replace(
            self,
            folder=replace(self.folder, drawn=drawn),
            stars=replace(self.stars, answers=answers[answers["entity"].isin(entities)]),
            unresolved=lost[lost["record"].isin(drawn.table["record"])],
        )

    def units(self, prediction: Any, *, missing: Missing | str = Missing.ERROR) -> Units:
        """Return the units of the draws, for `erbayes.Sample` with `design`.

        Units are the labelled entities. If predicted clusters were drawn, units are those with a complete
        answer (see `erbayes.measure_predicted`).

        Parameters
        ----------
        prediction : memberships, files and tables or, if predicted clusters were drawn, Source
        missing : Missing
            Policy for labelled records that are missing in the prediction, as in `erbayes.measure`. If
            predicted clusters were drawn, SINGLETON and TOGETHER both count them in their entity.

        Raises
        ------
        DataError
            As `labels` and `erbayes.measure`. If predicted clusters were drawn, from another prediction.
        """
        missing = member(missing, Missing, "missing")
        if not self.of_clusters:
            count = scan if lies_elsewhere(prediction) else measure
            return count(prediction, self.labels, missing=missing)
        labels, drawn = self.labels, self.folder.drawn
        with open_source(prediction) as source:
            drawn.refuse_another(source)
            predicted = labels.index.isin(source.look_up(labels.index)["record"])
        if missing is Missing.ERROR:
            absent = labels.index[~predicted]
            refuse_cases(absent, "labelled records are not in the prediction", "", remedies.MISSING)
        if missing is Missing.OMIT:
            if isinstance(prediction, Clustering):
                refuse_unmatched(prediction, Clustering.of(labels, "labels"), ~predicted, missing)
            labels = labels[predicted]
        complete = drawn.table["cluster"][~drawn.table.index.isin(self.lost.index)]
        members = drawn.members.set_index("record")["cluster"]
        return replace(measure_predicted(members, labels, complete), known=drawn.known)

    def __repr__(self) -> str:
        tasks = self.folder.tasks["task"].nunique()
        records, entities = len(self.stars.answers), self.stars.answers["entity"].nunique()
        text = (
            f"Labels({records:,} records of {entities:,} entities, from {tasks - len(self.unresolved):,} of "
            f"{tasks:,} tasks; {len(self.problems):,} faults)"
        )
        return "\n".join([text, *(f"caution: {caution}" for caution in self.cautions())])

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{escape(line)}</p>" for line in repr(self).splitlines())
        tables = (self.summary(), self.annotators())
        return lines + "".join(table.to_html(index=False, na_rep="") for table in tables)


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
