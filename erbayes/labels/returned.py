"""Labels that come back from annotators, with the faults in them and what they show of annotators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._internal.errors import DataError, Remedy, head, member
from .._internal.files import replacing
from .._internal.names import Nearest
from .._internal.remedies import Missing
from ..design import FrozenWeights
from ..design.contract import Design
from ..large import scan
from ..large.files import lies_elsewhere
from ..units.clustering import Clustering
from ..units.measuring import assemble, measure, measure_predicted, refuse_unmatched
from ..units.units import Units
from .annotators import Annotator, AnnotatorPair, Beta, annotator_of
from .folder import DECIDED, Folder, read_folder
from .labelling_tasks import FILLED, HAS_XLSX, drawn_records, write_sheet
from .page import ADDED, CANDIDATE, CLUSTER, CONTROL, KEYS, SECONDS, WHY
from .source import open_source
from .stars import Stars, describe_counts, occurs
from .verdicts import HARMLESS, State, reach_verdicts

JUDGES_ITS_OWN = (
    "predicted clusters judge only the prediction that they were drawn from: draw records to judge others"
)
"""Why another prediction is refused."""
HASTY = 2.0
"""Seconds at work on a task in which nobody has compared records, by convention."""
UNCHANGED = (
    "{annotator} answered {tasks:,} tasks and never changed a default: each record of a predicted cluster is "
    "accepted, each candidate is refused, and no id is added. Pressing Enter alone does the same, and then "
    "every estimate is 1: have some of these tasks answered anew in a blind folder, with controls"
)
"""What is said of an annotator who has changed nothing of the prediction."""
HURRIED = (
    "{annotator} answered half of the tasks within {median seconds:.1f} seconds each, in which nobody "
    "compares records: look at some of these together"
)
"""What is said of an annotator who is `HASTY`."""
FOOLED = (
    "{annotator} accepted {controls missed:,} of {controls:,} controls, which are records of other predicted "
    "clusters, in tasks {where}. No label has them. If one does belong to the entity, decide its task in "
    f"sheet-{DECIDED}, with y for it; if not, have the tasks of {{annotator}} answered anew by somebody else"
)
"""What is said of an annotator who has accepted controls."""
COUNTED = {
    "records refused": (CLUSTER, "n"),
    "candidates accepted": (CANDIDATE, "y"),
    "ids added": (ADDED, "y"),
    "controls": (CONTROL, "yn"),
    "controls missed": (CONTROL, "y"),
}
"""The role and the answers of what `Labels.annotators` counts."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Labels(Nearest):
    """Labels of a draw, as `read_labels` reads them from its folder.

    Attributes
    ----------
    stars : Stars
        The entities of tasks with a complete answer. Drawn records that are judged the same have one entity.
        Entities of predicted clusters whose tasks are not all answered or settled are left out.
    problems : DataFrame
        Where, annotator, task, record and fault (of `Fault`) of each fault.
    unresolved : DataFrame
        Task, record (the drawn one) and state of each task without a complete answer that is not settled.
    states : DataFrame
        Annotator, task, state (of `State`) and seconds at work (NaN if not known) of each annotator's tasks.
    answers : DataFrame
        Annotator, task, record, same (y or n) and role of each answer, also about controls.
    pairs : dict, (annotator, annotator) -> AnnotatorPair
        The tasks that both have answered in full. There are none if predicted clusters were drawn, as the
        tasks that an annotator answers then depend on the answers before.
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
        if len(wrong := self.problems[~self.problems["fault"].isin(HARMLESS)]):
            where, _, task, record, _ = wrong.iloc[0]
            places = ", ".join(text for text in (where, f"task {task}" if task else "", str(record)) if text)
            raise DataError(
                f"{self.folder.path}: {describe_counts(wrong['fault'])}; such as {places}",
                Remedy(
                    "see Labels.problems (erbayes labels FOLDER); decide them in the sheets, or all at "
                    "once by Labels.disputed() (erbayes labels FOLDER --decide)"
                ),
            )
        if not len(self.stars.answers):
            what = "drawn predicted cluster" if self.folder.drawn.of_clusters else "task"
            raise DataError(f"{self.folder.path}: no {what} has a complete answer yet")
        return self.stars.answers.set_index("record")["entity"]

    @property
    def lost(self) -> pd.Series:
        """State of each draw (or cluster) without a complete answer, by its row in the table of draws."""
        states, drawn = self.unresolved.set_index("record")["state"], self.folder.drawn
        if not drawn.of_clusters:
            return drawn.table["record"].map(states).dropna()
        tasks = drawn_records(drawn)
        of_clusters = tasks["record"].map(states).groupby(tasks["cluster"], sort=False)
        return drawn.table["cluster"].map(of_clusters.agg(_sum_up)).dropna()

    def summary(self) -> pd.DataFrame:
        """Count the tasks of each annotator: in all, and in each state (settled if clusters were drawn)."""
        others = {State.DISPUTED} if self.folder.drawn.of_clusters else {State.DISPUTED, State.SETTLED}
        named = self.states["state"].map(lambda state: state.value)
        columns = [state.value for state in State if state not in others]
        counts = pd.crosstab(self.states["annotator"], named).reindex(columns=columns, fill_value=0)
        counts.insert(0, "tasks", counts.sum(axis=1))
        return counts.rename_axis(columns=None).reset_index()

    def annotators(self) -> pd.DataFrame:
        """Count what each annotator changed of the prediction, in the tasks with a complete answer.

        Columns annotator; tasks; records refused, of the predicted clusters; candidates accepted; ids added;
        controls, and controls missed, which are those accepted; median seconds at work on a task.
        """
        given, states = _take_complete(self), self.states
        answered = (states["state"] == State.ANSWERED).groupby(states["annotator"]).sum()
        table = answered.rename("tasks").to_frame()
        for name, (role, marks) in COUNTED.items():
            counted = given["annotator"][(given["role"] == role) & given["same"].isin(list(marks))]
            table[name] = counted.value_counts().reindex(table.index, fill_value=0)
        table["median seconds"] = states.astype({SECONDS: float}).groupby("annotator")[SECONDS].median()
        return table.reset_index()

    def cautions(self) -> list[str]:
        """Return a sentence for each sign that an annotator has not looked at the records."""
        return _suspect(self)

    def records(self) -> pd.DataFrame:
        """Return the records that tasks show: record, entity, cluster and attributes, for `erbayes.report`.

        The entity is missing if no complete answer names one, and the cluster if it was not drawn.
        """
        shown = self.folder.tasks.drop_duplicates("record").sort_values("record", ignore_index=True)
        tables = {"entity": self.stars.answers, "cluster": self.folder.drawn.members}
        known = {name: shown["record"].map(table.set_index("record")[name]) for name, table in tables.items()}
        attributes = shown.drop(columns=[*KEYS, *FILLED, WHY], errors="ignore")
        return shown[["record"]].assign(**known).join(attributes)

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
            who = {name for pair in self.pairs for name in pair}
            pairs, labels = self.pairs.values(), self.labels
            # each annotator is in as many pairs as there are others
            judged = [pair.judge(labels, swapped=swapped) for pair in pairs for swapped in (False, True)]
            counts = pd.DataFrame(judged).sum() / (len(who) - 1)
            source = f"{counts['tasks'] / len(who):.0f} settled tasks of {len(who)} annotators"
            return annotator_of(counts, source)
        shown, missed = self.annotators()[["controls", "controls missed"]].sum().astype(int)
        if not shown:
            raise DataError(
                f"{self.folder.path} has neither tasks that two annotators answered nor controls, so that "
                "nothing shows their errors: state the rates"
            )
        source = f"{shown} controls, which show no other error"
        return Annotator(kept=Beta(0.5 + missed, 0.5 + shown - missed), source=source)

    def disputed(self) -> pd.DataFrame:
        """Return the tasks in which a fault stops `labels`, as a sheet with the answers of each annotator."""
        return _list_disputed(self)

    def write_disputed(self) -> Path:
        """Write the tasks to decide as sheet-decided into the folder, and return its path."""
        table, folder = self.disputed(), self.folder.path
        if not len(table):
            raise DataError(f"{folder}: no task needs a decision")
        if there := [*folder.glob(f"sheet-{DECIDED}.*")]:
            raise DataError(
                f"cannot write {there[0]}: it is there already; add the tasks to it, or rename it"
            )
        path = folder / f"sheet-{DECIDED}{'.xlsx' if HAS_XLSX else '.csv'}"
        with replacing(path) as new:
            write_sheet(table.assign(note=""), new)
        return path

    def design(
        self, drawn_from: Any = None, *, missing: Missing | str = Missing.ERROR, values: Any = None
    ) -> Design:
        """Return the design of the draws (see `RecordDraws.design`).

        Tasks that nobody has begun are unlabelled, and others without a complete answer unresolved.

        Parameters
        ----------
        drawn_from : memberships, or files and tables, optional
            The prediction that was drawn from, to judge another one by chances that depend on its clusters.
            If predicted clusters were drawn, a DataError, since they judge their own prediction only.
        missing : Missing
            Policy for labelled records that are missing in `drawn_from`, as in `erbayes.measure`.
        values : Series or mapping, record -> value, optional
            The value of every labelled record, if they were drawn by values and annotators have added some.
        """
        labels, drawn = self.labels, self.folder.drawn
        if not drawn.of_clusters:
            states = self.unresolved.set_index("record")["state"]
        elif drawn_from is not None:
            raise DataError(JUDGES_ITS_OWN)
        else:
            states = self.lost.set_axis(drawn.table["record"][self.lost.index])
        begun = states != State.UNANSWERED
        design = drawn.design(labels, values, unresolved=states.index[begun], unlabelled=states.index[~begun])
        if drawn_from is None:
            return design
        count = scan if lies_elsewhere(drawn_from) else measure
        return FrozenWeights(design, count(drawn_from, labels, missing=missing))

    def uniform(self) -> Labels:
        """Return the labels of the draws that are a sample of uniform records (`RecordDraws.uniform`)."""
        drawn, answers, lost = self.folder.drawn.uniform(), self.stars.answers, self.unresolved
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
        answer (see `erbayes.measure_predicted`), and another prediction is a DataError.

        Parameters
        ----------
        prediction : memberships, files and tables or, if predicted clusters were drawn, Source
        missing : Missing
            Policy for labelled records that are missing in the prediction, as in `erbayes.measure`. If
            predicted clusters were drawn, SINGLETON and TOGETHER both count them in their entity.
        """
        if not self.folder.drawn.of_clusters:
            return (scan if lies_elsewhere(prediction) else measure)(prediction, self.labels, missing=missing)
        return _measure_clusters(self, prediction, missing)

    def __repr__(self) -> str:
        tasks, answers = self.folder.tasks["task"].nunique(), self.stars.answers
        text = (
            f"Labels({len(answers):,} records of {answers['entity'].nunique():,} entities, from "
            f"{tasks - len(self.unresolved):,} of {tasks:,} tasks; {len(self.problems):,} faults)"
        )
        return "\n".join([text, *(f"caution: {caution}" for caution in self.cautions())])

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{escape(line)}</p>" for line in repr(self).splitlines())
        tables = (self.summary(), self.annotators())
        return lines + "".join(table.to_html(index=False, na_rep="") for table in tables)


def _suspect(returned: Labels) -> list[str]:
    """Return a sentence for each sign that an annotator has not looked at the records."""
    given, states, said = _take_complete(returned), returned.states, list[str]()
    undecided = set(states["annotator"][states["state"] == State.CANNOT_TELL])
    accepted = given[(given["role"] == CONTROL) & (given["same"] == "y")]
    for row in returned.annotators().to_dict("records"):
        name, missed = row["annotator"], row["controls missed"]
        row["where"] = head(accepted["task"][accepted["annotator"] == name])
        unchanged = row["tasks"] and sum(row[what] for what in COUNTED) == 2 * missed
        suspect = {
            UNCHANGED: unchanged and not returned.folder.blind and name not in undecided,
            HURRIED: row["median seconds"] < HASTY,
            FOOLED: missed,
        }
        said += [text.format_map(row) for text, true in suspect.items() if true]
    return said


def _take_complete(returned: Labels) -> pd.DataFrame:
    complete = returned.states[returned.states["state"] == State.ANSWERED]
    return returned.answers[occurs(returned.answers, complete, ["annotator", "task"])]


def _list_disputed(returned: Labels) -> pd.DataFrame:
    """Return the tasks in which a fault stops labels, with a column of answers for each annotator."""
    wrong = returned.problems["task"][~returned.problems["fault"].isin(HARMLESS)]
    tables = returned.folder.tasks, returned.answers
    rows, given = (x[x["task"].isin(wrong) & (x["role"] != CONTROL)] for x in tables)
    added = given[given["role"] == ADDED][["task", "record", "role"]].drop_duplicates()
    table = pd.concat([rows, added], ignore_index=True).sort_values("task", kind="stable")
    keys = pd.MultiIndex.from_frame(table[["task", "record"]])
    for annotator, answers in given.groupby("annotator"):
        marks = answers.groupby(["task", "record"])["same"].agg(lambda x: "/".join(sorted(set(x))))
        table.insert(list(table).index(FILLED[0]), f"answer of {annotator}", marks.reindex(keys).to_numpy())
    return table.fillna("").reset_index(drop=True)


def _sum_up(states: pd.Series) -> Any:
    """Return the state of a predicted cluster by those of its open tasks, NaN if each is closed."""
    if (states == State.UNANSWERED).all():
        return State.UNANSWERED
    begun = [state for state in states.dropna() if state is not State.UNANSWERED]
    return [*begun, State.INCOMPLETE][0] if states.notna().any() else np.nan


def _measure_clusters(returned: Labels, prediction: Any, missing: Missing | str) -> Units:
    """Return the drawn predicted clusters with a complete answer, as units."""
    missing, labels, drawn = member(missing, Missing, "missing"), returned.labels, returned.folder.drawn
    with open_source(prediction) as source:
        drawn.refuse_another(source)
        found = source.look_up(labels.index).set_index("record").reindex(labels.index)
    predicted, whole = found["cluster"].notna().to_numpy(), Clustering.of(labels, "labels")
    if missing is Missing.OMIT and isinstance(prediction, Clustering):
        refuse_unmatched(prediction, whole, ~predicted, missing)
    cluster, _ = pd.factorize(found["cluster"])
    sizes = found.groupby("cluster", sort=False)["size"].first().to_numpy(dtype=np.int64)
    entities = assemble(whole, cluster, sizes, drawn.known, missing=missing)
    if missing is Missing.OMIT:
        labels = labels[predicted]
    complete = drawn.table["cluster"][~drawn.table.index.isin(returned.lost.index)]
    members = drawn.members.set_index("record")["cluster"]
    return replace(measure_predicted(members, labels, complete), known=drawn.known, entities=entities)


def read_labels(folder: str | Path | Folder, prediction: Any = None) -> Labels:
    """Read the answers in the folder of a draw: sheets, and files that a labelling page has saved.

    Every row of a task needs an answer: y if the record belongs to the entity of the drawn record, n if not.
    The y of the drawn record itself says that the task is done. Annotators add records by new rows of the
    task, with y. One x in `cannot_tell` is for all records of the task. If predicted clusters were drawn, a
    blank task is settled if another task of its cluster has y for its record.

    No fault stops the reading: `Labels.problems` lists them all. Several files of one annotator are read as
    one. Answers of sheet-decided.csv (or .xlsx) replace those of the annotators. Answers about controls enter
    no label. sheet-decided need not have their rows: it decides as if they were not shown, and a y there adds
    the record, which a person has then found to belong to the entity.

    Parameters
    ----------
    folder : str, Path or Folder
    prediction : memberships, optional
        The prediction that was drawn from, to list the added records that are missing in it.

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
    return Labels(folder, **reach_verdicts(folder, prediction))
