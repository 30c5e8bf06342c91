"""What the answers to a task say together: of one annotator's files, of several annotators, of all tasks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from math import isnan, nan
from typing import Any

import pandas as pd

from ...units.clustering import as_index, kind
from ..annotators.two_annotators import Pair
from ..drawing.drawn import Drawn
from ..drawing.folder import DECIDED, Folder
from ..drawing.labelling_tasks import asked
from ..drawing.page import CONTROL, DRAWN, SECONDS
from ..drawing.plans import PredictedClusters
from .faults import Fault, State
from .stars import Flaw, Stars, read_stars

OF_FLAW = {
    Flaw.CONTRADICTED: Fault.DIFFERING,
    Flaw.INTRANSITIVE: Fault.INTRANSITIVE,
    Flaw.IN_TWO_ENTITIES: Fault.IN_TWO_ENTITIES,
}
"""Faults of answers, by flaws of entities."""
CLOSED = frozenset({State.ANSWERED, State.SETTLED})
"""States of a task that needs no more answers."""
Problem = tuple[str, str, Any, Any, Fault]
"""A row of `Labels.problems`, which is where, annotator, task, record and fault."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An annotator's answer to a task; controls are in neither set, so that they enter no estimate."""

    state: State
    same: frozenset[Any] = frozenset()
    different: frozenset[Any] = frozenset()
    controls: frozenset[tuple[Any, str]] = frozenset()
    seconds: float = nan


Merged = Mapping[tuple[str, int], Answer]
"""Answers by annotator and task."""


class ShownTasks:
    """The tasks of a folder as they were shown: drawn records, others, controls, and predicted clusters."""

    def __init__(self, folder: Folder) -> None:
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

    def find_record(self, text: str, shown: Mapping[str, Any]) -> Any:
        """Return the record of an id as it was typed, None if no record can have it."""
        for known in (shown, self.known):
            for id in (text, text.strip()):
                if id in known:
                    return known[id]
        id = text.strip()
        if not self.integers:
            return id
        return int(id) if re.fullmatch(r"-?\d{1,18}", id) else None


def merge_answers(
    tasks: ShownTasks, annotator: str, task: int, answers: list[Answer], problems: list[Problem]
) -> Answer:
    """Return what the files of one annotator say of a task, and add faults to `problems`."""
    complete = [a for a in answers if a.state is not State.INCOMPLETE]
    if not complete:
        return answers[0]
    differing = frozenset[Any]().union(*(a.same ^ complete[0].same for a in complete))
    if differing or len({a.state for a in complete}) > 1:
        for record in differing or {tasks.drawn[task]}:
            problems.append(("", annotator, task, record, Fault.CONTRADICTED))
        return Answer(State.INCOMPLETE)
    known = [a.seconds for a in complete if not isnan(a.seconds)]
    return replace(complete[0], seconds=max(known, default=nan))  # a page counts on from save to save


def decide_answer(tasks: ShownTasks, task: int, merged: Merged, problems: list[Problem]) -> Answer:
    """Return the answer to a task, of all annotators or as it was decided, and add faults to `problems`."""
    if (decided := merged.get((DECIDED, task))) is not None:
        return decided
    answers = {name: a for (name, number), a in merged.items() if number == task}
    complete = {name: a for name, a in answers.items() if a.state is State.ANSWERED}
    doubts = [name for name, a in answers.items() if a.state is State.CANNOT_TELL]
    if not complete:
        states = {a.state for a in answers.values()}
        if not states:
            return Answer(State.UNANSWERED)
        return Answer(State.CANNOT_TELL if State.CANNOT_TELL in states else State.INCOMPLETE)
    for name in doubts:
        problems.append(("", name, task, tasks.drawn[task], Fault.ONE_CANNOT_TELL))
    first, *others = complete.values()
    if differing := frozenset[Any]().union(*(a.same ^ first.same for a in others)):
        for record in sorted(differing, key=str):
            problems.append(("", ", ".join(complete), task, record, Fault.DISPUTED))
        return Answer(State.DISPUTED)
    return first


def list_settled(tasks: ShownTasks, answers: Mapping[int, Answer]) -> list[int]:
    """Return the blank tasks of drawn predicted clusters whose record has y in a task of the cluster."""
    found: dict[Any, set[Any]] = {}
    for task, answer in answers.items():
        if answer.state is State.ANSWERED and task in tasks.cluster:
            found.setdefault(tasks.cluster[task], set()).update(answer.same)
    return [
        task
        for task, cluster in tasks.cluster.items()
        if (task not in answers or answers[task].state is State.UNANSWERED)
        and tasks.drawn[task] in found.get(cluster, ())
    ]


def make_stars(tasks: ShownTasks, draws: Drawn, verdicts: Mapping[int, Answer]) -> Stars:
    """Return the entities of answered tasks, of drawn predicted clusters all of whose tasks are closed."""
    partly = {tasks.cluster[task] for task in tasks.cluster if verdicts[task].state not in CLOSED}
    resolved = {
        task: answer
        for task, answer in verdicts.items()
        if answer.state is State.ANSWERED and tasks.cluster.get(task) not in partly
    }
    pairs = [
        (tasks.drawn[task], record, match)
        for task, answer in resolved.items()
        for records, match in ((answer.same, True), (answer.different, False))
        for record in sorted(records, key=str)
        if record != tasks.drawn[task]
    ]
    if not resolved:
        none = pd.DataFrame(columns=["sampled", "record", "problem"])
        return Stars(pd.DataFrame(columns=["entity", "record"]), pd.Index([]), none)
    table = pd.DataFrame(pairs, columns=["drawn", "record", "same"], dtype=object)
    wanted = {tasks.drawn[task] for task in resolved}
    drawn = pd.Series(list(tasks.drawn.values())) if tasks.cluster else draws.table["record"]
    return read_stars(table, drawn[drawn.isin(wanted)], left="drawn", right="record", answer="same")


def list_states(tasks: ShownTasks, dealt_to: Mapping[str, Iterable[int]], merged: Merged) -> pd.DataFrame:
    """Return the table of `Labels.states`, from the tasks dealt to each annotator and the answers."""
    dealt = [(name, task) for name, tasks_of in dealt_to.items() for task in tasks_of]
    keys = dict.fromkeys([*dealt, *(key for key in merged if key[0] != DECIDED)])
    settled = {
        (name, task)
        for name in dealt_to
        for task in list_settled(tasks, {t: answer for (n, t), answer in merged.items() if n == name})
    }
    states = [
        (name, task, merged[name, task].state, merged[name, task].seconds)
        if (name, task) in merged
        else (name, task, State.SETTLED if (name, task) in settled else State.UNANSWERED, nan)
        for name, task in keys
    ]
    return pd.DataFrame(states, columns=["annotator", "task", "state", SECONDS], dtype=object)


def list_answers(given: Mapping[tuple[str, int], list[Answer]]) -> pd.DataFrame:
    """Return every answer: annotator, task, record, same."""
    rows = {
        (name, task, record, mark): None
        for (name, task), answers in given.items()
        for answer in answers
        for record, mark in (
            *((record, "y") for record in sorted(answer.same, key=str)),
            *((record, "n") for record in sorted(answer.different, key=str)),
            *sorted(answer.controls, key=str),
        )
    }
    return pd.DataFrame(list(rows), columns=["annotator", "task", "record", "same"], dtype=object)


def pair_annotators(tasks: ShownTasks, members: pd.DataFrame, merged: Merged) -> dict[tuple[str, str], Pair]:
    """Return the tasks that two annotators have both answered in full."""
    if tasks.cluster:
        return {}
    complete: dict[str, dict[int, Answer]] = {}
    for (name, task), answer in merged.items():
        if name != DECIDED and answer.state is State.ANSWERED:
            complete.setdefault(name, {})[task] = answer
    cluster = dict(zip(members["record"], members["cluster"].map("in {}".format), strict=True))
    pairs = {}
    for first, second in combinations(sorted(complete), 2):
        both = [task for task in complete[first] if task in complete[second]]
        if both:
            one, other = (_name_entities(complete[name], both, tasks.drawn) for name in (first, second))
            records = pd.concat([one, other, members])["record"].drop_duplicates()
            prediction = {record: cluster.get(record, f"alone {record}") for record in records}
            pairs[first, second] = Pair.of(one, other, prediction)
    return pairs


def _name_entities(
    answers: Mapping[int, Answer], tasks: Iterable[int], drawn: Mapping[int, Any]
) -> pd.DataFrame:
    """Return the entity of each drawn record, for `Pair.of`."""
    rows = [(drawn[task], record) for task in tasks for record in {drawn[task]} | answers[task].same]
    return pd.DataFrame(rows, columns=["mention", "record"])
