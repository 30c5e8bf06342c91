"""Labels that come back from annotators: the answers in the folder of a draw, and every fault in them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from html import escape
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..arrays import BoolArray, FloatArray
from ..clustering import Clustering, as_index, kind
from ..design import Design, KeptWeights
from ..errors import DataError, Remedy, head
from ..files import replacing
from ..large import lies_elsewhere, scan
from ..sampling import (
    Drawn,
    GivenChances,
    LinkEnds,
    Mixture,
    Poisson,
    PredictedClusters,
    Records,
    RootSize,
    Systematic,
)
from ..sampling.folder import DECIDED, Folder, answer_files, read_folder
from ..sampling.page import ADDED, DRAWN, read_answers
from ..sampling.sheets import HAS_XLSX, read_sheet, write_sheet
from ..sampling.source import opened
from ..sampling.tasks import ASKED, asked
from ..units import Missing, Units, measure, measure_predicted
from .pairs import Pair
from .sheets import NOT_CORRECT
from .stars import Flaw, Stars, read_stars

INDEPENDENT = (GivenChances, LinkEnds, Mixture, Records, RootSize)
"""Plans whose unresolved draws `erbayes.Responding` allows for."""
WITHOUT_REPEATS = (Poisson, PredictedClusters, Systematic)
"""Plans whose table has probabilities to be in the sample."""
OWN = "predicted clusters judge only the prediction that they were drawn from: draw records to judge others"
"""Why another prediction is refused."""
YES, NO = frozenset({"y", "yes"}), frozenset({"n", "no"})
"""Answers in the column `same`, in small letters."""


class Fault(Enum):
    """A fault in the answers of annotators. Those of `HARMLESS` do not stop `Labels.labels`."""

    UNREAD = "the file is not read"
    UNKNOWN_TASK = "the draw has no such task"
    OTHER_RECORD = "the task has another drawn record in this folder, so the row may be of another draw"
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
    UNKNOWN_RECORD = "the prediction lacks the record, which an annotator has added"
    UNANSWERED = "nobody has answered the task"
    BLANK = "the task is answered in part, and not for this record"
    YET_ANSWERED = "the annotator cannot tell, yet answers; the answers do not count"
    ONE_CANNOT_TELL = "one annotator cannot tell, and another can; the answers count"


HARMLESS = frozenset(
    {Fault.UNKNOWN_RECORD, Fault.UNANSWERED, Fault.BLANK, Fault.YET_ANSWERED, Fault.ONE_CANNOT_TELL}
)
"""Faults that leave labels usable. A task without a complete answer is unresolved."""
OF_FLAW = {
    Flaw.CONTRADICTED: Fault.DIFFERING,
    Flaw.INTRANSITIVE: Fault.INTRANSITIVE,
    Flaw.IN_TWO_ENTITIES: Fault.IN_TWO_ENTITIES,
}


class State(Enum):
    """State of a task after its annotator."""

    ANSWERED = "answered"
    CANNOT_TELL = "cannot tell"
    INCOMPLETE = "incomplete"
    UNANSWERED = "unanswered"
    SETTLED = "settled"
    """Blank, and another task of the drawn predicted cluster has y for its record."""
    DISPUTED = "disputed"


@dataclass(frozen=True, slots=True)
class _Answer:
    """An annotator's answer to a task: the records that are the same, and those that are not."""

    state: State
    same: frozenset[Any] = frozenset()
    different: frozenset[Any] = frozenset()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Labels:
    """Labels of a draw, as `read_labels` reads them from its folder.

    Attributes
    ----------
    folder : Folder
        The draw and its tasks.
    stars : Stars
        The entities of tasks with a complete answer. Drawn records that are judged the same have one entity.
        Entities of predicted clusters whose tasks are not all answered or settled are left out.
    problems : DataFrame
        One row per fault: where, annotator, task, record and fault (of `Fault`).
    unresolved : DataFrame
        One row per task without a complete answer that is not settled: task, record (the drawn one) and state
        (of `State`).
    states : DataFrame
        One row per annotator and task: annotator, task, state.
    answers : DataFrame
        One row per answer: annotator, task, record, same (y or n).
    pairs : dict, (annotator, annotator) -> Pair
        The tasks that both annotators have answered in full. There are none if predicted clusters were drawn,
        as the tasks that an annotator answers then depend on the answers before.
    files : tuple of str
        Names of the files that hold answers.
    """

    folder: Folder
    stars: Stars
    problems: pd.DataFrame
    unresolved: pd.DataFrame
    states: pd.DataFrame
    answers: pd.DataFrame
    pairs: Mapping[tuple[str, str], Pair]
    files: tuple[str, ...]

    @property
    def labels(self) -> pd.Series:
        """Labels for `erbayes.estimate`, record -> entity.

        Raises
        ------
        DataError
            Faults outside `HARMLESS`, or no task with a complete answer.
        """
        wrong = self.problems[~self.problems["fault"].isin(HARMLESS)]
        if len(wrong):
            counts = Counter(wrong["fault"])
            where, _, task, record, _ = wrong.iloc[0]
            places = [text for text in (where, f"task {task}" * bool(task), str(record)) if text]
            raise DataError(
                f"{self.folder.path}: "
                + "; ".join(f"{n:,} times: {fault.value}" for fault, n in counts.items())
                + f"; such as {', '.join(places)}",
                Remedy.DECIDE,
            )
        if not len(self.stars.answers):
            what = "drawn predicted cluster" if self.of_clusters else "task"
            raise DataError(f"{self.folder.path}: no {what} has a complete answer yet")
        return self.stars.answers.set_index("record")["entity"]

    @property
    def of_clusters(self) -> bool:
        """True if predicted clusters were drawn, False if records were."""
        return isinstance(self.folder.drawn.plan, PredictedClusters)

    @property
    def lost(self) -> pd.Series:
        """State of each draw without a complete answer, by its row in the table of draws.

        A drawn predicted cluster has a complete answer if each of its tasks is answered or settled. Otherwise
        it is unanswered if nobody has begun it, and else in the state of its first unresolved task that is
        not unanswered, or incomplete.
        """
        table, states = self.folder.drawn.table, self.unresolved.set_index("record")["state"]
        if not self.of_clusters:
            return table["record"].map(states).dropna()
        tasks = asked(self.folder.drawn)
        tasks["state"] = tasks["record"].map(states)
        worst = {}
        for cluster, of_tasks in tasks.groupby("cluster", sort=False)["state"]:
            if of_tasks.notna().any():
                begun = [state for state in of_tasks.dropna() if state is not State.UNANSWERED]
                untouched = (of_tasks == State.UNANSWERED).all()
                worst[cluster] = State.UNANSWERED if untouched else [*begun, State.INCOMPLETE][0]
        return table["cluster"].map(pd.Series(worst, dtype=object)).dropna()

    def summary(self) -> pd.DataFrame:
        """Count the tasks of each annotator: dealt, and in each state.

        Returns
        -------
        DataFrame
            Columns annotator, tasks, answered, cannot tell, incomplete, unanswered and, if predicted clusters
            were drawn, settled.
        """
        others = {State.DISPUTED} if self.of_clusters else {State.DISPUTED, State.SETTLED}
        wanted = [state.value for state in State if state not in others]
        named = self.states.assign(state=[state.value for state in self.states["state"]])
        counts = pd.crosstab(named["annotator"], named["state"]).reindex(columns=wanted, fill_value=0)
        counts.insert(0, "tasks", counts.sum(axis=1))
        return counts.rename_axis(columns=None).reset_index()

    def agreement(self) -> pd.DataFrame:
        """Estimate how far annotators agree in the population, from the tasks that two of them answered.

        Returns
        -------
        DataFrame
            One row per pair of annotators and share of `Pair.agreement`: annotators, tasks, share, estimate,
            lower and upper.
        """
        chance = self.folder.drawn.table.drop_duplicates("record").set_index("record")["probability"]
        tables = []
        for (first, second), pair in self.pairs.items():
            weight = partial(_weight, chance[pair.mentions].to_numpy(float))
            table = pair.agreement(weight).table().rename_axis("share").reset_index()
            table.insert(0, "annotators", f"{first}, {second}")
            table.insert(1, "tasks", len(pair.mentions))
            tables.append(table[["annotators", "tasks", "share", "estimate", "lower", "upper"]])
        columns = ["annotators", "tasks", "share", "estimate", "lower", "upper"]
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)

    def disputed(self) -> pd.DataFrame:
        """Return the tasks to decide, in the form of a sheet.

        Returns
        -------
        DataFrame
            The rows of the tasks in which a fault stops `labels`, and the records that annotators have added
            to them. A column per annotator has the answers so far.
        """
        wrong = self.problems[~self.problems["fault"].isin(HARMLESS)]
        tasks = self.folder.tasks
        rows = tasks[tasks["task"].isin(wrong["task"])]
        given = self.answers[self.answers["task"].isin(rows["task"])]
        keys = pd.MultiIndex.from_frame(rows[["task", "record"]])
        others = given[~pd.MultiIndex.from_frame(given[["task", "record"]]).isin(keys)]
        added = others[["task", "record"]].drop_duplicates().assign(role=ADDED)
        table = pd.concat([rows, added], ignore_index=True).sort_values(["task"], kind="stable")
        keys = pd.MultiIndex.from_frame(table[["task", "record"]])
        for annotator, answers in given.groupby("annotator"):
            marks = answers.groupby(["task", "record"])["same"].agg(lambda x: "/".join(sorted(set(x))))
            table.insert(
                list(table).index(ASKED[0]), f"answer of {annotator}", marks.reindex(keys).to_numpy()
            )
        return table.fillna("").reset_index(drop=True)

    def write_disputed(self) -> Path:
        """Write the tasks to decide as sheet-decided into the folder, and return its path.

        Raises
        ------
        DataError
            If there is nothing to decide, or such a sheet already.
        """
        table = self.disputed()
        if not len(table):
            raise DataError(f"{self.folder.path}: no task needs a decision")
        paths = [self.folder.path / f"sheet-{DECIDED}{suffix}" for suffix in (".xlsx", ".csv")]
        for path in paths:
            if path.exists():
                raise DataError(
                    f"cannot write {path}: it is there already; add the tasks to it, or rename it"
                )
        path = paths[0 if HAS_XLSX else 1]
        with replacing(path) as new:
            write_sheet(table.assign(note=""), new)
        return path

    def design(
        self, drawn_from: Any = None, *, missing: Missing = Missing.ERROR, values: Any = None
    ) -> Design:
        """Return the design of the draws.

        Draws of tasks that nobody has begun count as not made yet. Those of other unresolved tasks stay in
        the data (see `erbayes.Responding`), if draws are independent. Otherwise they are left out as well. So
        are predicted clusters without a complete answer.

        Parameters
        ----------
        drawn_from : memberships, or files and tables, optional
            The prediction that was drawn from. It is needed to judge another prediction of the same records,
            unless records were drawn uniformly: chances follow from the predicted clusters at the draw.
        missing : Missing
            What to do with labelled records that `drawn_from` lacks, as in `erbayes.measure`.
        values : Series or mapping, record -> value, optional
            The value of every labelled record, if they were drawn by values and annotators have added some.

        Returns
        -------
        Design
            For the prediction that was drawn from, or, with `drawn_from`, for any prediction of its records.

        Raises
        ------
        DataError
            As `labels`, or if `drawn_from` is not the prediction that was drawn from. With `drawn_from` if
            predicted clusters were drawn, since they judge their own prediction only.
        """
        labels, drawn = self.labels, self.folder.drawn
        if self.of_clusters:
            if drawn_from is not None:
                raise DataError(OWN)
            return _among(drawn, ~drawn.table.index.isin(self.lost.index)).design(labels)
        states = self.unresolved.set_index("record")["state"]
        begun = states.index[states != State.UNANSWERED]
        drawn = _among(drawn, ~drawn.table["record"].isin(states.index[states == State.UNANSWERED]))
        if len(begun) and isinstance(drawn.plan, INDEPENDENT):
            design = drawn.design(labels, values, unresolved=begun)
        else:
            design = _among(drawn, ~drawn.table["record"].isin(begun)).design(labels, values)
        if drawn_from is None:
            return design
        units = (scan if lies_elsewhere(drawn_from) else measure)(drawn_from, labels, missing=missing)
        return KeptWeights(design, units)

    def units(self, prediction: Any, *, missing: Missing = Missing.ERROR) -> Units:
        """Return the units of the draws, for `erbayes.Sample` with `design`.

        Units are the labelled entities. If predicted clusters were drawn, units are those with a complete
        answer (see `erbayes.measure_predicted`). Their entities are whole, since a task asks for records that
        lie elsewhere as well, so precision and recall are identified.

        Parameters
        ----------
        prediction : memberships, Source, or files and tables
            A source is taken only if predicted clusters were drawn.
        missing : Missing
            What to do with labelled records that the prediction lacks, as in `erbayes.measure`. If predicted
            clusters were drawn, SINGLETON and TOGETHER both count them in their entity.

        Raises
        ------
        DataError
            As `labels` and `erbayes.measure`. If predicted clusters were drawn, from another prediction.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from erbayes.sampling import PredictedClusters, draw, tasks, write_folder
        >>> prediction = {"r1": "a", "r2": "a"}
        >>> drawn = draw(prediction, PredictedClusters(), n=1, seed=1)
        >>> with TemporaryDirectory() as temporary:
        ...     folder = write_folder(Path(temporary) / "to-label", drawn, tasks(drawn))
        ...     sheet = folder.tasks.assign(same="y")
        ...     sheet.to_csv(folder.path / "sheet-A.csv", index=False)
        ...     read_labels(folder).units(prediction).table()[["records", "predicted_links"]]
                 records  predicted_links
        cluster
        a            2.0              1.0
        """
        if not self.of_clusters:
            count = scan if lies_elsewhere(prediction) else measure
            return count(prediction, self.labels, missing=missing)
        labels, drawn = self.labels, self.folder.drawn
        with opened(prediction) as source:
            drawn.refuse_another(source)
            there = labels.index.isin(source.look_up(labels.index)["record"])
        if missing is Missing.ERROR and not there.all():
            lacking = labels.index[~there]
            raise DataError(
                f"{len(lacking)} labelled records are not in the prediction, such as {head(lacking)}",
                Remedy.MISSING,
            )
        if missing is Missing.OMIT:
            labels = labels[there]
        whole = drawn.table["cluster"][~drawn.table.index.isin(self.lost.index)]
        members = drawn.members.set_index("record")["cluster"]
        return replace(measure_predicted(members, labels, whole), known=drawn.known)

    def __repr__(self) -> str:
        tasks = self.folder.tasks["task"].nunique()
        records, entities = len(self.stars.answers), self.stars.answers["entity"].nunique()
        return (
            f"Labels({records:,} records of {entities:,} entities, from {tasks - len(self.unresolved):,} of "
            f"{tasks:,} tasks; {len(self.problems):,} faults)"
        )

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self.summary().to_html(index=False)}"


def _among(drawn: Drawn, kept: pd.Series | BoolArray) -> Drawn:
    """Return some of the draws, as if no others had been made."""
    if kept.all():
        return drawn
    table, share = drawn.table[kept].reset_index(drop=True), float(np.mean(kept))
    if isinstance(drawn.plan, WITHOUT_REPEATS):
        table = table.assign(probability=table["probability"] * share)
    return replace(drawn, table=table, n=round(drawn.n * share))


def read_labels(folder: str | Path | Folder, prediction: Any = None) -> Labels:
    """Read the answers in the folder of a draw: sheets, and files that a labelling page has saved.

    Every row of a task needs an answer: y if the record belongs to the entity of the drawn record, n if not.
    The y of the drawn record itself says that the task is done. Annotators add records by new rows of the
    task, with y. One x in `cannot_tell` stands for the whole task.

    No fault stops the reading: `Labels.problems` lists them all. Several files of one annotator are read as
    one. Answers of sheet-decided.csv (or .xlsx) replace those of the annotators.

    If predicted clusters were drawn, a blank task is settled if another task of its cluster has y for its
    record.

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
    >>> from erbayes.sampling import Records, draw, tasks, write_folder
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
                annotator, rows = _of_page(file, self.folder)
            else:
                annotator, rows = _of_sheet(file)
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
        as_drawn = rows["record"][rows["role"] == DRAWN]
        if len(others := as_drawn[as_drawn != str(drawn)]):
            note(Fault.OTHER_RECORD, first, others.iloc[0])
            return
        marks: dict[Any, set[str]] = {record: set() for record in shown.values()}
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
            record = self._record(text, shown)
            if record is None:
                note(Fault.NO_ID, where, text)
                usable = False
                continue
            seen.add(record)
            if answer and not mark:
                unread.add(record)
            if record not in marks and not mark and not answer:
                note(Fault.NOT_SHOWN, where, record)
            if mark:
                marks.setdefault(record, set()).add(mark)
                if mark == "y" and str(record) not in self.known:
                    self.added.setdefault(record, (where, annotator, task))
        answered = any(marks.values())
        if cannot_tell:
            if any(marks[record] for record in marks if record != drawn):
                note(Fault.YET_ANSWERED, first)
            self.answers.setdefault((annotator, task), []).append(_Answer(State.CANNOT_TELL))
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
            note(Fault.BLANK, first, record)
            usable = False
        same, different = (frozenset(r for r in marks if mark in marks[r]) for mark in "yn")
        state = State.ANSWERED if usable else State.INCOMPLETE
        self.answers.setdefault((annotator, task), []).append(_Answer(state, same, different))

    def _record(self, text: str, shown: Mapping[str, Any]) -> Any:
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
        merged = {key: self._merged(*key, answers) for key, answers in self.answers.items()}
        verdicts = {task: self._verdict(task, merged) for task in self.drawn}
        for task in self._settled(verdicts):
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
        stars = self._stars(resolved)
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
            for task in self._settled({t: answer for (n, t), answer in merged.items() if n == name})
        }
        states = [
            (name, task, merged[name, task].state)
            if (name, task) in merged
            else (name, task, State.SETTLED if (name, task) in settled else State.UNANSWERED)
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
            pd.DataFrame(states, columns=["annotator", "task", "state"], dtype=object),
            self._given(),
            self._pairs(merged),
            tuple(self.files),
        )

    def _settled(self, answers: Mapping[int, _Answer]) -> list[int]:
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

    def _given(self) -> pd.DataFrame:
        """Return every answer: annotator, task, record, same."""
        rows = {
            (name, task, record, mark): None
            for (name, task), answers in self.answers.items()
            for answer in answers
            for records, mark in ((answer.same, "y"), (answer.different, "n"))
            for record in sorted(records, key=str)
        }
        return pd.DataFrame(list(rows), columns=["annotator", "task", "record", "same"], dtype=object)

    def _merged(self, annotator: str, task: int, answers: list[_Answer]) -> _Answer:
        """Return what the files of one annotator say of a task."""
        complete = [a for a in answers if a.state is not State.INCOMPLETE]
        if not complete:
            return answers[0]
        differing = frozenset[Any]().union(*(a.same ^ complete[0].same for a in complete))
        if differing or len({a.state for a in complete}) > 1:
            for record in differing or {self.drawn[task]}:
                self.problems.append(("", annotator, task, record, Fault.CONTRADICTED))
            return _Answer(State.INCOMPLETE)
        return complete[0]

    def _verdict(self, task: int, merged: Mapping[tuple[str, int], _Answer]) -> _Answer:
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

    def _stars(self, resolved: Mapping[int, _Answer]) -> Stars:
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

    def _pairs(self, merged: Mapping[tuple[str, int], _Answer]) -> dict[tuple[str, str], Pair]:
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
                one, other = (_entities(complete[name], both, self.drawn) for name in (first, second))
                records = pd.concat([one, other, members])["record"].drop_duplicates()
                prediction = {record: cluster.get(record, f"alone {record}") for record in records}
                pairs[first, second] = Pair.of(one, other, prediction)
        return pairs


def _entities(answers: Mapping[int, _Answer], tasks: Iterable[int], drawn: Mapping[int, Any]) -> pd.DataFrame:
    """Return the entity of each drawn record, for `Pair.of`."""
    rows = [(drawn[task], record) for task in tasks for record in {drawn[task]} | answers[task].same]
    return pd.DataFrame(rows, columns=["mention", "record"])


def _weight(chance: FloatArray, size: FloatArray) -> FloatArray:
    """Return the weight of an entity by the chance of its drawn record, (n,)."""
    return np.asarray(1 / (chance * size))


def _of_page(file: Path, folder: Folder) -> tuple[str, pd.DataFrame]:
    """Return the annotator of a file that a page has saved, and its rows."""
    table = read_answers(file, folder.tasks, folder.fingerprint)
    (annotator,) = {name for name in table["annotator"] if name} or {""}
    answered = table["task"][table["annotator"] != ""]
    rows = table[table["task"].isin(answered)]
    return annotator, rows.assign(where=file.name, task=rows["task"].map(str), record=rows["record"].map(str))


def _of_sheet(file: Path) -> tuple[str, pd.DataFrame]:
    """Return the annotator of a sheet, and its rows."""
    name = re.fullmatch(r"sheet-(.+)", file.stem)
    if name is None or file.suffix.lower() not in {".csv", ".xlsx"}:
        raise DataError(
            f"{file.name}: files with answers are sheet-NAME.csv, sheet-NAME.xlsx or saved by a page"
        )
    table = read_sheet(file)
    if lacking := [c for c in ("task", "record", "role", *ASKED) if c not in table.columns]:
        raise DataError(f"{file.name} has no column {head(lacking, 9)}; it has {head(table.columns, 20)}")
    where = [f"{file.name}, row {row}" for row in table.index]
    return name[1], table.assign(where=where)
