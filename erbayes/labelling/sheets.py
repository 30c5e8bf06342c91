"""Labelling sheets: a sampled mention, its predicted cluster, mentions to add and to remove."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pandas as pd

from ..clustering import Clustering
from ..errors import DataError, need, some

NOT_CORRECT = frozenset({"", "no", "n", "false", "0"})
"""What a cell holds that does not mark a predicted cluster as correct, in any case of letters."""


class Problem(Enum):
    """What is wrong in a labelling sheet, and what is made of it."""

    UNKNOWN_MENTION = "the sampled mention is not in the prediction; the row is left out"
    REPEATED_MENTION = "the mention was sampled before; the first row counts"
    OTHER_CLUSTER = "the prediction puts the mention into another cluster, which is used"
    UNKNOWN_ADDED = "a mention to add is not in the prediction; it is added"
    UNKNOWN_REMOVED = "a mention to remove is not in the prediction; nothing is done"
    ALREADY_THERE = "a mention to add is in the predicted cluster already"
    NOT_THERE = "a mention to remove is not in the predicted cluster; nothing is done"
    ADDED_AND_REMOVED = "a mention is to be added and to be removed; it is removed"
    LISTED_TWICE = "a mention is listed twice in a cell"
    MENTION_REMOVED = "the sampled mention itself is to be removed; it is kept, unless asked otherwise"
    CORRECT_YET_CHANGED = "marked correct, but with mentions to add or to remove; they count"
    UNANSWERED = "neither marked correct nor with mentions to add or to remove; taken as correct"
    IN_TWO_ENTITIES = "a mention is in the entities of two sampled mentions"


@dataclass(frozen=True, slots=True)
class SheetColumns:
    """Names of a labelling sheet's columns.

    Parameters
    ----------
    mention, cluster, add, remove : str
        The sampled mention, its predicted cluster, mentions to add and to remove.
    correct : str, optional
        Filled, with anything but `NOT_CORRECT`, where the predicted cluster is right.
    separator : str
        Regular expression between the mentions of a cell.
    """

    mention: str = "mention_id"
    cluster: str = "cluster_id"
    add: str = "add"
    remove: str = "remove"
    correct: str | None = "correct"
    separator: str = r"[,;\s]+"


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """What a sheet says.

    Attributes
    ----------
    answers : DataFrame
        Columns mention, record: the entity of each sampled mention, as `Pair.of` takes it.
    problems : DataFrame
        Columns row (counted from 0), mention, record, problem (of `Problem`): every inconsistency.
    """

    answers: pd.DataFrame
    problems: pd.DataFrame

    @property
    def labels(self) -> pd.Series:
        """record -> entity, named by the sampled mention.

        Raises
        ------
        DataError
            A record in two entities.
        """
        twice = self.answers["record"].duplicated()
        if twice.any():
            raise DataError(
                f"{int(twice.sum())} records are in the entities of two mentions, such as "
                f"{some(self.answers['record'][twice].tolist())}: adjudicate, or draw entities once"
            )
        return self.answers.set_index("record")["mention"]

    def summary(self) -> pd.Series:
        """How often each problem occurs."""
        kinds = pd.Series([p.value for p in self.problems["problem"]], dtype="str")
        return kinds.value_counts()


def read_sheet(
    table: pd.DataFrame, prediction: Any, columns: SheetColumns | None = None, *, keep_mention: bool = True
) -> Sheet:
    """Entities from a sheet: predicted cluster + mentions to add - mentions to remove.

    Parameters
    ----------
    table : DataFrame
        One row a sampled mention. Cells of mentions to add and to remove hold ids, or nothing.
    prediction : memberships
        The prediction that was shown to the annotator, with ids as text.
    columns : SheetColumns, optional
    keep_mention : bool
        False takes a sheet at its word that removes the sampled mention from its own entity, which is then
        that of the other records.

    Returns
    -------
    Sheet
        With every inconsistency; none stops the reading. See `Problem` for what is made of each.

    Raises
    ------
    DataError
        Missing columns, a sheet without rows.

    Examples
    --------
    >>> prediction = {"p-1": "a", "p-2": "a", "q-1": "b"}
    >>> rows = {"mention_id": ["p-1"], "cluster_id": ["a"], "add": ["q-1, z-9"], "remove": ["q-1 p-2"]}
    >>> sheet = read_sheet(pd.DataFrame(rows), prediction, SheetColumns(correct=None))
    >>> sheet.labels.to_dict()
    {'p-1': 'p-1', 'z-9': 'p-1'}
    >>> [p.name for p in sheet.problems["problem"]]
    ['UNKNOWN_ADDED', 'NOT_THERE', 'ADDED_AND_REMOVED']
    """
    need(table, pd.DataFrame, "a sheet is a DataFrame, one row per record to add or remove")
    columns = columns or SheetColumns()
    needed = [columns.mention, columns.cluster, columns.add, columns.remove]
    needed += [] if columns.correct is None else [columns.correct]
    lacking = [c for c in needed if c not in table.columns]
    if lacking or not len(table):
        raise DataError(
            f"the sheet of {len(table)} rows lacks columns {some(lacking)}; it has {some(table.columns, 20)}"
        )
    prediction = Clustering.of(prediction, "prediction")
    predicted = pd.Series(prediction.clusters.take(prediction.codes), index=prediction.records)
    members = {k: pd.Index(g) for k, g in predicted.groupby(predicted, sort=False).groups.items()}
    found: dict[Any, list[Any]] = {}
    problems: list[tuple[int, Any, Any, Problem]] = []
    for row, cells in enumerate(table[needed].itertuples(index=False, name=None)):
        mention, stated = cells[:2]

        def note(problem: Problem, record: Any = None, row: int = row, mention: Any = mention) -> None:
            problems.append((row, mention, record, problem))

        if mention not in predicted.index:
            note(Problem.UNKNOWN_MENTION)
            continue
        if mention in found:
            note(Problem.REPEATED_MENTION)
            continue
        home = members[predicted[mention]]
        if stated != predicted[mention]:
            note(Problem.OTHER_CLUSTER)
        add, remove = (_listed(cell, columns.separator, note) for cell in cells[2:4])
        for record in add:
            if record not in predicted.index:
                note(Problem.UNKNOWN_ADDED, record)
            elif record in home:
                note(Problem.ALREADY_THERE, record)
        for record in remove:
            if record not in predicted.index:
                note(Problem.UNKNOWN_REMOVED, record)
            elif record not in home:
                note(Problem.NOT_THERE, record)
            if record in add:
                note(Problem.ADDED_AND_REMOVED, record)
            if record == mention:
                note(Problem.MENTION_REMOVED, record)
        if columns.correct is not None:
            correct = not pd.isna(cells[4]) and str(cells[4]).strip().lower() not in NOT_CORRECT
            if correct and (add or remove):
                note(Problem.CORRECT_YET_CHANGED)
            if not correct and not add and not remove:
                note(Problem.UNANSWERED)
        gone = set(remove) - ({mention} if keep_mention else set())
        found[mention] = [r for r in dict.fromkeys([*home, *add]) if r not in gone]
    long = pd.DataFrame(
        [(mention, record) for mention, records in found.items() for record in records],
        columns=["mention", "record"],
    )
    rows = {mention: row for row, mention in reversed(list(enumerate(table[columns.mention])))}
    for mention, record in long[long["record"].duplicated(keep=False)].itertuples(index=False, name=None):
        problems.append((rows[mention], mention, record, Problem.IN_TWO_ENTITIES))
    kinds = pd.DataFrame(problems, columns=["row", "mention", "record", "problem"], dtype=object)
    return Sheet(long, kinds)


def _listed(cell: Any, separator: str, note: Callable[[Problem, Any], None]) -> dict[str, None]:
    """The ids in a cell, each once, in order."""
    if pd.isna(cell):
        return {}
    listed = [r for r in re.split(separator, str(cell)) if r]
    once = dict.fromkeys(listed)
    for record in once:
        if listed.count(record) > 1:
            note(Problem.LISTED_TWICE, record)
    return once
