"""Labels that come back from annotators: the answers in the folder of a draw, and every fault in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from ..._internal.errors import DataError, Remedy, member, refuse_cases
from ..._internal.files import replacing
from ..._internal.nearest import Nearest
from ..._internal.policies import Missing
from ...design import FrozenWeights
from ...design.contract import Design
from ...large import scan
from ...large.sources import lies_elsewhere
from ...units.clustering import Clustering
from ...units.measuring import measure, measure_predicted, refuse_unmatched
from ...units.units import Units
from ..annotators.error_models import Annotator, Beta
from ..annotators.two_annotators import AnnotatorPair, annotator_of
from ..drawing.drawn import RecordDraws
from ..drawing.folder import DECIDED, Folder
from ..drawing.labelling_tasks import FILLED, drawn_records
from ..drawing.page import KEYS, WHY
from ..drawing.sheets import HAS_XLSX, write_sheet
from ..drawing.source import open_source
from .faults import State, refuse_harmful
from .stars import Stars
from .tallies import count_changes, count_states, list_disputed, tabulate_agreement, warn_unlooked

JUDGES_ITS_OWN = (
    "predicted clusters judge only the prediction that they were drawn from: draw records to judge others"
)
"""Why another prediction is refused."""


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
        refuse_harmful(self.problems, self.folder.path)
        if not len(self.stars.answers):
            what = "drawn predicted cluster" if self.of_clusters else "task"
            raise DataError(f"{self.folder.path}: no {what} has a complete answer yet")
        return self.stars.answers.set_index("record")["entity"]

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
        return count_states(self.states, self.of_clusters)

    def annotators(self) -> pd.DataFrame:
        """Count what each annotator changed of the prediction, in the tasks with a complete answer.

        Columns annotator; tasks; records refused, of the predicted clusters; candidates accepted; ids added;
        controls, and controls missed, which are those accepted; median seconds at work on a task.
        """
        return count_changes(self._take_complete(), self.states)

    def cautions(self) -> list[str]:
        """Return a sentence for each sign that an annotator has not looked at the records."""
        return warn_unlooked(self.annotators(), self._take_complete(), self.states, self.folder.blind)

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
        return tabulate_agreement(self.pairs, self.folder.drawn.table)

    def annotator_errors(self) -> Annotator:
        """Return priors of the rates of errors of one annotator, for `erbayes.with_errors`.

        They are from tasks that several annotated and somebody settled (see `annotator_of`). Without such
        tasks, controls show what is kept, Beta(½ + missed, ½ + refused), and nothing of what is missed or
        added. Controls are easier than namesakes, so that this is the least.
        """
        if self.pairs:
            names = {name for pair in self.pairs for name in pair}
            # each annotator is in as many pairs as there are others
            errors = pd.DataFrame([pair.errors(self.labels) for pair in self.pairs.values()]).sum()
            return annotator_of(
                errors / (len(names) - 1), f"settled disagreements of {len(names)} annotators"
            )
        people = self.annotators()
        shown, missed = int(people["controls"].sum()), int(people["controls missed"].sum())
        if not shown:
            raise DataError(
                f"{self.folder.path} has neither tasks that two annotators answered nor controls, so that "
                "nothing shows their errors: state the rates"
            )
        source = f"{shown} controls, which show nothing of what was missed or added"
        return Annotator(kept=Beta(0.5 + missed, 0.5 + shown - missed), source=source)

    def disputed(self) -> pd.DataFrame:
        """Return the tasks in which a fault stops `labels`, as a sheet with the answers of each annotator."""
        return list_disputed(self.problems, self.folder.tasks, self.answers)

    def write_disputed(self) -> Path:
        """Write the tasks to decide as sheet-decided into the folder, and return its path."""
        table, folder = self.disputed(), self.folder.path
        if not len(table):
            raise DataError(f"{folder}: no task needs a decision")
        paths = [folder / f"sheet-{DECIDED}{suffix}" for suffix in (".xlsx", ".csv")]
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
        return measure_drawn_clusters(self.folder.drawn, self.labels, self.lost, prediction, missing)

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


def measure_drawn_clusters(
    drawn: RecordDraws, labels: pd.Series, lost: pd.Series, prediction: Any, missing: Missing
) -> Units:
    """Return drawn predicted clusters as units, without those of the rows `lost` (see `Labels.units`)."""
    with open_source(prediction) as source:
        drawn.refuse_another(source)
        predicted = labels.index.isin(source.look_up(labels.index)["record"])
    if missing is Missing.ERROR:
        absent = labels.index[~predicted]
        refuse_cases(absent, "labelled records are not in the prediction", "", Remedy.MISSING)
    if missing is Missing.OMIT:
        if isinstance(prediction, Clustering):
            refuse_unmatched(prediction, Clustering.of(labels, "labels"), ~predicted, missing)
        labels = labels[predicted]
    complete = drawn.table["cluster"][~drawn.table.index.isin(lost.index)]
    members = drawn.members.set_index("record")["cluster"]
    return replace(measure_predicted(members, labels, complete), known=drawn.known)
