"""Labels that come back from annotators: the answers in the folder of a draw, and every fault in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..._internal.arrays import FloatArray
from ..._internal.errors import DataError, Remedy, head
from ..._internal.files import replacing
from ...design import Design, KeptWeights
from ...large import lies_elsewhere, scan
from ...units.clustering import Clustering
from ...units.measuring import Missing, measure, measure_predicted, refuse_unmatched
from ...units.units import Units
from ..annotators.two_annotators import Pair
from ..drawing import PredictedClusters
from ..drawing.folder import DECIDED, Folder
from ..drawing.labelling_tasks import ASKED, asked
from ..drawing.page import ADDED, CANDIDATE, CLUSTER, CONTROL, SECONDS
from ..drawing.sheets import HAS_XLSX, write_sheet
from ..drawing.source import opened
from .stars import Stars

OWN = "predicted clusters judge only the prediction that they were drawn from: draw records to judge others"
"""Why another prediction is refused."""


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


class State(Enum):
    """State of a task after its annotator."""

    ANSWERED = "answered"
    CANNOT_TELL = "cannot tell"
    INCOMPLETE = "incomplete"
    UNANSWERED = "unanswered"
    SETTLED = "settled"
    """Blank, and another task of the drawn predicted cluster has y for its record."""
    DISPUTED = "disputed"


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
        One row per annotator and task: annotator, task, state, seconds. The last is the time at work on the
        task, NaN if it is not known, as in sheets.
    answers : DataFrame
        One row per answer: annotator, task, record, same (y or n). Answers about controls are among them.
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

    def annotators(self) -> pd.DataFrame:
        """Count what each annotator changed of the prediction, in the tasks with a complete answer.

        Returns
        -------
        DataFrame
            Columns annotator; tasks; records refused, of the predicted clusters; candidates accepted; ids
            added; controls, and controls missed, which are those accepted; and median seconds, the time at
            work on a task, NaN for sheets, which do not know it.

        Examples
        --------
        The annotator accepts the control, which is of another predicted cluster:

        >>> from tempfile import TemporaryDirectory
        >>> from erbayes.labels import read_labels
        >>> from erbayes.labels import Records, draw, tasks, write_folder
        >>> drawn = draw({"r1": "a", "r2": "a", "r3": "b"}, Records(), n=5, seed=1)
        >>> table = tasks(drawn, controls=0.3)
        >>> with TemporaryDirectory() as temporary:
        ...     folder = write_folder(Path(temporary) / "to-label", drawn, table)
        ...     folder.tasks.assign(same="y").to_csv(folder.path / "sheet-A.csv", index=False)
        ...     read_labels(folder).annotators()[["tasks", "controls", "controls missed"]]
           tasks  controls  controls missed
        0      3         1                1
        """
        answered = (self.states["state"] == State.ANSWERED).groupby(self.states["annotator"]).sum()
        table = answered.rename("tasks").to_frame()
        given = self._count_by_role()
        for name, of_role, marks in (
            ("records refused", CLUSTER, "n"),
            ("candidates accepted", CANDIDATE, "y"),
            ("ids added", ADDED, "y"),
            ("controls", CONTROL, "yn"),
            ("controls missed", CONTROL, "y"),
        ):
            counted = given["annotator"][(given["role"] == of_role) & given["same"].isin(list(marks))]
            table[name] = counted.value_counts().reindex(table.index, fill_value=0)
        table["median seconds"] = self.states.astype({SECONDS: float}).groupby("annotator")[SECONDS].median()
        return table.reset_index()

    def cautions(self) -> list[str]:
        """Return a sentence for each reason to doubt that an annotator has looked at the records.

        One who only presses Enter makes the same labels as one who finds no error: they repeat the
        prediction, so that estimates come out as 1. Controls and a blind folder tell the two apart.
        """
        doubt = set(self.states["annotator"][self.states["state"] == State.CANNOT_TELL])
        given, said = self._count_by_role(), []
        accepted = given[(given["role"] == CONTROL) & (given["same"] == "y")]
        for row in self.annotators().to_dict("records"):
            name, tasks, missed = row["annotator"], row["tasks"], row["controls missed"]
            refused = row["controls"] - missed
            changes = row["records refused"] + row["candidates accepted"] + row["ids added"] + refused
            if tasks and not changes and not self.folder.blind and name not in doubt:
                said.append(
                    f"{name} answered {tasks:,} tasks and never changed a default: each record of a "
                    "predicted cluster is accepted, each candidate is refused, and no id is added. Pressing "
                    "Enter alone does the same, and then every estimate is 1: have some of these tasks "
                    "answered anew in a blind folder, with controls"
                )
            if missed:
                where = accepted["task"][accepted["annotator"] == name]
                said.append(
                    f"{name} accepted {missed:,} of {row['controls']:,} controls, which are records of other "
                    f"predicted clusters, in tasks {head(where)}. No label has them. If one does belong to "
                    f"the entity, decide its task in sheet-{DECIDED}, with y for it; if not, have the tasks "
                    f"of {name} answered anew by somebody else"
                )
        return said

    def _count_by_role(self) -> pd.DataFrame:
        """Return the answers of tasks with a complete answer, and the role of each record in its task."""
        tasks, whole = self.folder.tasks, self.states[self.states["state"] == State.ANSWERED]
        role = dict(zip(zip(tasks["task"], tasks["record"], strict=True), tasks["role"], strict=True))
        kept = pd.MultiIndex.from_frame(self.answers[["annotator", "task"]]).isin(
            pd.MultiIndex.from_frame(whole[["annotator", "task"]])
        )
        given = self.answers[kept]
        shown = zip(given["task"], given["record"], strict=True)
        return given.assign(role=[role.get(key, ADDED) for key in shown])

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
            to them, without controls. A column per annotator has the answers so far.
        """
        wrong = self.problems[~self.problems["fault"].isin(HARMLESS)]
        tasks, given = self.folder.tasks, self.answers
        strangers = pd.MultiIndex.from_frame(tasks[tasks["role"] == CONTROL][["task", "record"]])
        rows = tasks[tasks["task"].isin(wrong["task"]) & (tasks["role"] != CONTROL)]
        given = given[given["task"].isin(rows["task"])]
        given = given[~pd.MultiIndex.from_frame(given[["task", "record"]]).isin(strangers)]
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

        Draws from the first task on that nobody has begun count as not made yet, if no later task is begun.
        Otherwise chance left out the tasks that nobody has begun, as it dealt them. Draws of other unresolved
        tasks stay in the data (see `erbayes.Responding`), and so do predicted clusters that were begun and
        have no complete answer.

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
            states = self.lost.set_axis(drawn.table["record"][self.lost.index])
        else:
            states = self.unresolved.set_index("record")["state"]
        begun = states != State.UNANSWERED
        left, lost = states.index[~begun], states.index[begun]
        design = drawn.design(labels, values, unresolved=lost, unlabelled=left)
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
        >>> from erbayes.labels import read_labels
        >>> from erbayes.labels import PredictedClusters, draw, tasks, write_folder
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
            if isinstance(prediction, Clustering):
                refuse_unmatched(prediction, Clustering.of(labels, "labels"), ~there, missing)
            labels = labels[there]
        whole = drawn.table["cluster"][~drawn.table.index.isin(self.lost.index)]
        members = drawn.members.set_index("record")["cluster"]
        return replace(measure_predicted(members, labels, whole), known=drawn.known)

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


def _weight(chance: FloatArray, size: FloatArray) -> FloatArray:
    """Return the weight of an entity by the chance of its drawn record, (n,)."""
    return np.asarray(1 / (chance * size))
