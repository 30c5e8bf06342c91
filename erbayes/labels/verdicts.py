"""What answers say together, about pairs and about tasks: entities, states of tasks, and faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import BoolArray, refuse_names, to_frame
from .._internal.errors import DataError, head
from ..units.clustering import Clustering
from ..units.ids import as_index, ids, kind, same_kind
from .annotators import AnnotatorPair
from .drawn import RecordDraws
from .folder import DECIDED, Folder
from .labelling_tasks import drawn_records
from .page import CONTROL, DRAWN, SECONDS


class Flaw(Enum):
    """A fault in answers about pairs of records."""

    CONTRADICTED = "the pair is judged a match, and not a match"
    UNANSWERED = "the pair has no answer"
    INTRANSITIVE = "the pair is judged not a match, but a chain of matches joins its records"
    IN_TWO_ENTITIES = "the record matches several sampled records that do not match each other"
    NOT_SAMPLED = "neither record of the pair was sampled; the pair is left out"


def describe_counts(faults: Iterable[Enum]) -> str:
    """Return the number of times of each fault, in words."""
    return "; ".join(f"{n:,} times: {fault.value}" for fault, n in Counter(faults).items())


@dataclass(frozen=True, slots=True, eq=False)
class Stars:
    """Entities of sampled records, as `read_stars` makes them from answers about pairs.

    `answers`: columns entity (the id of its first sampled record), record; `draws`: entity of each sampled
    record, with repeats; `problems`: columns sampled, record, problem (of `Flaw`).
    """

    answers: pd.DataFrame
    draws: pd.Index
    problems: pd.DataFrame

    @property
    def labels(self) -> pd.Series:
        """Labels for `erbayes.estimate`, record -> entity."""
        undecided = self.problems[self.problems["problem"] != Flaw.NOT_SAMPLED]
        if len(undecided):
            sampled, record, _ = undecided.iloc[0]
            raise DataError(
                f"{describe_counts(undecided['problem'])}; such as {sampled!r} and {record!r}: decide them "
                "first, see problems"
            )
        return self.answers.set_index("record")["entity"]


def read_stars(
    pairs: Any,
    sampled: Any,
    *,
    left: str = "unique_id_l",
    right: str = "unique_id_r",
    answer: str = "clerical_match_score",
    threshold: float | None = None,
) -> Stars:
    """Make entities from answers about sampled records and their candidates.

    The entity of a sampled record is the record itself and every candidate that is judged to match it. Every
    true match of a sampled record must be among its candidates, or the estimate of recall is too high.

    Parameters
    ----------
    pairs : DataFrame or Arrow table
        One row per judged pair. The sampled record is on either side.
    sampled : sequence of record ids
        Every sampled record, also those without candidates; one that was drawn twice is listed twice.
    left, right : str
        Columns of the two records. The defaults are those of Splink's table of clerical labels.
    answer : str
        Column of answers: True or 1 for a match, False or 0 for none, missing for no answer.
    threshold : float, optional
        A score of `threshold` or more is a match. None: answers are not scores.

    Returns
    -------
    Stars
        Faults in the answers do not stop the reading. `Stars.problems` lists them, and most of them stop
        `Stars.labels`.

    Examples
    --------
    >>> pairs = pd.DataFrame({"l": ["a", "a", "x"], "r": ["b", "c", "d"], "same": [True, False, True]})
    >>> stars = read_stars(pairs, ["a", "d", "e"], left="l", right="r", answer="same")
    >>> stars.labels.to_dict()
    {'a': 'a', 'd': 'd', 'e': 'e', 'b': 'a', 'x': 'd'}
    >>> list(stars.draws)
    ['a', 'd', 'e']
    """
    frame = to_frame(pairs)
    refuse_names([left, right, answer], list(frame.columns), "the table of pairs")
    drawn = ids(sampled, "sampled records")
    first, second = (ids(frame[c], f"column {c!r} of the pairs") for c in (left, right))
    for column, end in ((left, first), (right, second)):
        same_kind(drawn, end, f"column {column!r} of the pairs", "ids of sampled records")
    # 1 for a match, 0 for none, NaN for no answer
    verdicts, scored = pd.to_numeric(frame[answer], errors="coerce").astype("float64"), threshold is not None
    unclear = frame[answer].notna() & (verdicts.isna() if scored else ~verdicts.isin([0, 1]))
    if unclear.any():
        raise DataError(
            f"{unclear.sum():,} of {len(unclear):,} answers {answer!r} are neither match nor none, such as "
            f"{head(frame[answer][unclear])}: give scores a threshold=0.5, and words a table[{answer!r}].map("
            "{'match': True, 'non-match': False})"
        )
    if threshold is not None:
        verdicts = (verdicts >= threshold).astype("float64").where(verdicts.notna())
    judged = pd.DataFrame({"sampled": first, "record": second, "match": verdicts.to_numpy()})
    # a pair has no order, so that each is read from both of its ends
    turned = judged.rename(columns={"sampled": "record", "record": "sampled"})
    both_ways = pd.concat([judged, turned[first != second]], ignore_index=True)
    not_sampled = judged[~(first.isin(drawn) | second.isin(drawn))]
    rays = both_ways[both_ways["sampled"].isin(drawn)].groupby(["sampled", "record"], sort=False)
    stars = rays["match"].agg(["min", "max"]).reset_index()

    matches = stars[(stars["min"] == 1) & (stars["sampled"] != stars["record"])]
    links = matches[matches["record"].isin(drawn)][["sampled", "record"]]
    once = drawn.unique()
    one, other = (once.get_indexer(pd.Index(links[end])) for end in ("sampled", "record"))
    joined = Clustering.joined(once, one, other)
    entity = pd.Series(joined.clusters.take(joined.codes), index=joined.records)
    drawn_alone = pd.DataFrame({"entity": entity.to_numpy(), "record": entity.index})
    matched = matches[["record"]].assign(entity=entity[matches["sampled"]].to_numpy())
    members = pd.concat([drawn_alone, matched]).drop_duplicates(ignore_index=True)

    within = stars.assign(entity=entity[stars["sampled"]].to_numpy()).merge(members, on=["entity", "record"])
    twice = members[members["record"].duplicated(keep=False)]
    flaws: dict[Any, pd.DataFrame] = {
        Flaw.CONTRADICTED: stars[stars["min"] < stars["max"]],
        Flaw.UNANSWERED: stars[stars["max"].isna()],
        Flaw.INTRANSITIVE: within[within["max"] == 0],
        Flaw.IN_TWO_ENTITIES: twice.rename(columns={"entity": "sampled"}),
        Flaw.NOT_SAMPLED: not_sampled,
    }
    listed = [rows[["sampled", "record"]].assign(problem=[flaw] * len(rows)) for flaw, rows in flaws.items()]
    problems = pd.concat(listed, ignore_index=True).astype(object)
    return Stars(members, pd.Index(entity[drawn]), problems)


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


OF_FLAW = {
    Flaw.CONTRADICTED: Fault.DIFFERING,
    Flaw.INTRANSITIVE: Fault.INTRANSITIVE,
    Flaw.IN_TWO_ENTITIES: Fault.IN_TWO_ENTITIES,
}
"""Faults of answers, by flaws of entities."""
CLOSED = frozenset({State.ANSWERED, State.SETTLED})
"""States of a task that needs no more answers."""
KEY = ["file", "annotator", "task"]
"""Columns that name the answer of a file to a task."""
BY = ["annotator", "task"]
"""Columns that name the answer of an annotator to a task."""
PLACE = ["where", "annotator", "task", "record"]
"""Columns that say where a fault is."""


class Problems:
    """The faults that are found while answers are read, of which `Labels.problems` is made."""

    def __init__(self) -> None:
        self._noted = [pd.DataFrame(columns=[*PLACE, "fault"], dtype=object)]

    def note(self, fault: Fault, rows: pd.DataFrame) -> None:
        """Note a fault in each of some rows, which have columns of `PLACE`, or some of them."""
        if len(rows):
            kind: Any = fault
            places = rows.reindex(columns=PLACE, fill_value="").astype(object)
            self._noted.append(places.assign(fault=kind))

    def table(self) -> pd.DataFrame:
        """Return the faults, one row each: where, annotator, task, record, fault."""
        return pd.concat(self._noted, ignore_index=True)


@dataclass(frozen=True, slots=True)
class ShownTasks:
    """The tasks of a folder as they were shown.

    `drawn`: task -> drawn record; `shown`: task, record, role; `records`: text of an id -> record;
    `integers`: whether ids are integers; `cluster`: task -> predicted cluster, None if records were drawn.
    """

    drawn: pd.Series
    shown: pd.DataFrame
    records: Mapping[str, Any]
    integers: bool
    cluster: pd.Series | None

    @classmethod
    def of(cls, folder: Folder) -> ShownTasks:
        """Return the tasks of a folder."""
        tasks = folder.tasks
        drawn = tasks[tasks["role"] == DRAWN].set_index("task")["record"]
        cluster = None
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


def occurs(rows: pd.DataFrame, others: pd.DataFrame, by: Sequence[str]) -> BoolArray:
    """Return whether some of the other rows have the same values in the columns `by`, (rows,)."""
    # answers are few, and an index of pandas for them takes more time than a set
    one, other = (zip(*(table[name].tolist() for name in by), strict=True) for table in (rows, others))
    known = set(other)
    return np.fromiter((row in known for row in one), dtype=np.bool_, count=len(rows))


def reach_verdicts(
    tasks: ShownTasks, folder: Folder, answers: TaskAnswers, problems: Problems
) -> dict[str, Any]:
    """Return what `Labels` has of stars, unresolved, states and pairs, and add faults to `problems`."""
    merged = _merge_files(answers, problems)
    verdicts = _decide_tasks(tasks, merged, problems)
    state = _list_by_task(tasks, verdicts)
    blank = state.index[state == State.UNANSWERED]
    problems.note(Fault.UNANSWERED, pd.DataFrame({"task": blank, "record": tasks.drawn[blank].to_numpy()}))
    stars = _make_stars(tasks, folder.drawn, state, verdicts)
    task_of = pd.Series(tasks.drawn.index, tasks.drawn)
    flawed = stars.problems.assign(task=task_of[stars.problems["sampled"]].to_numpy())
    for flaw, fault in OF_FLAW.items():
        problems.note(fault, flawed[flawed["problem"] == flaw])
    rest = state.index[~state.isin(CLOSED)]
    unresolved = {"task": rest, "record": tasks.drawn[rest].to_numpy(), "state": state[rest].to_numpy()}
    return {
        "stars": stars,
        "unresolved": pd.DataFrame(unresolved, dtype=object),
        "states": _list_states(tasks, folder.dealt, merged),
        "pairs": _pair_annotators(tasks, folder.drawn.members, merged),
    }


def _find_differing(accepted: pd.DataFrame, answers: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return the records that some of several complete answers accept, and others do not: by, record."""
    times = accepted.groupby([*by, "record"], sort=False).size().rename("times").reset_index()
    of = answers.groupby(by, sort=False).size().rename("of").reset_index()
    both = times.merge(of, on=by)
    return both[both["times"] < both["of"]]


def _merge_files(answers: TaskAnswers, problems: Problems) -> TaskAnswers:
    """Return what the files of each annotator say together, and note where they contradict each other."""
    states = answers.states
    complete = states[states["state"] != State.INCOMPLETE]
    marks = answers.marks[occurs(answers.marks, complete, KEY)]
    differing = _find_differing(TaskAnswers(complete, marks).accepted, complete, BY)
    problems.note(Fault.CONTRADICTED, differing)
    merged = pd.concat([complete, states]).drop_duplicates(BY)  # complete answers come first
    # a page counts on from save to save
    seconds = states.groupby(BY, sort=False)[SECONDS].max().rename("seconds").reset_index()
    merged = merged.drop(columns=SECONDS).merge(seconds, on=BY)
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
    pairs = pd.DataFrame(
        {
            "drawn": tasks.drawn[marks["task"]].to_numpy(),
            "record": marks["record"].to_numpy(),
            "same": marks["same"].to_numpy() == "y",
        },
        dtype=object,
    )
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
    """Return the tasks that two annotators have both answered in full."""
    if tasks.cluster is not None:
        return {}
    states = merged.states[
        (merged.states["state"] == State.ANSWERED) & (merged.states["annotator"] != DECIDED)
    ]
    accepted = merged.of(states).accepted
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
