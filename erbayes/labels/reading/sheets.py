"""Labelling sheets: a sampled mention, its predicted cluster, mentions to add and to remove."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pandas as pd

from ..._internal.errors import DataError, head, need
from ...units.clustering import Clustering

NOT_CORRECT = frozenset({"", "no", "n", "false", "0"})
"""Contents of a cell that do not mark a predicted cluster as correct, in capitals or small letters."""


class Problem(Enum):
    """A fault in a labelling sheet, and how `read_sheet` reads it."""

    UNKNOWN_MENTION = "the sampled mention is not in the prediction; the row is left out"
    REPEATED_MENTION = "the mention was sampled before; the first row counts"
    OTHER_CLUSTER = "the prediction puts the mention into another cluster, which is used"
    UNKNOWN_ADDED = "a mention to add is not in the prediction; it is added"
    UNKNOWN_REMOVED = "a mention to remove is not in the prediction; nothing is done"
    ALREADY_THERE = "a mention to add is in the predicted cluster already"
    NOT_THERE = "a mention to remove is not in the predicted cluster; nothing is done"
    ADDED_AND_REMOVED = "a mention is to be added and to be removed; it is removed"
    LISTED_TWICE = "a mention is listed twice in a cell"
    MENTION_REMOVED = "the sampled mention itself is to be removed; it is kept, unless keep_mention=False"
    CORRECT_YET_CHANGED = "marked correct, but with mentions to add or to remove; they count"
    UNANSWERED = "neither marked correct nor with mentions to add or to remove; taken as correct"
    IN_TWO_ENTITIES = "a mention is in the entities of two sampled mentions"


@dataclass(frozen=True, slots=True)
class SheetColumns:
    """Names of a labelling sheet's columns, for `read_sheet`.

    Parameters
    ----------
    mention, cluster : str
        Columns of the sampled mention and of its predicted cluster.
    add, remove : str
        Columns of mentions to add and of mentions to remove.
    correct : str, optional
        A column whose cells are filled if the predicted cluster is right. "no", "n", "false", "0" and blanks
        count as not filled. None: the sheet has no such column.
    separator : str
        Regular expression that separates the mentions of a cell.

    Examples
    --------
    >>> SheetColumns(add="missing", remove="wrong", correct=None).add
    'missing'
    """

    mention: str = "mention_id"
    cluster: str = "cluster_id"
    add: str = "add"
    remove: str = "remove"
    correct: str | None = "correct"
    separator: str = r"[,;\s]+"


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """The content of a labelling sheet: entities, and the faults in it.

    Attributes
    ----------
    answers : DataFrame
        Columns mention, record: the entity of each sampled mention, for `Pair.of`.
    problems : DataFrame
        Columns row (counted from 0), mention, record, problem (of `Problem`): one row per fault.
    """

    answers: pd.DataFrame
    problems: pd.DataFrame

    @property
    def labels(self) -> pd.Series:
        """Labels for `erbayes.estimate`, record -> entity. An entity has the id of its sampled mention.

        Raises
        ------
        DataError
            A record in two entities.
        """
        twice = self.answers["record"].duplicated()
        if twice.any():
            raise DataError(
                f"{int(twice.sum())} records are in the entities of two mentions, such as "
                f"{head(self.answers['record'][twice].tolist())}: adjudicate, or draw entities once"
            )
        return self.answers.set_index("record")["mention"]

    def summary(self) -> pd.Series:
        """Return the number of times that each problem occurs, indexed by its text."""
        return pd.Series([p.value for p in self.problems["problem"]], dtype="str").value_counts()


def read_sheet(
    table: pd.DataFrame, prediction: Any, columns: SheetColumns | None = None, *, keep_mention: bool = True
) -> Sheet:
    """Read entities from a labelling sheet.

    The entity of a sampled mention is its predicted cluster, with the mentions to add and without those to
    remove. No fault in the sheet stops the reading; `Sheet.problems` lists them all.

    Parameters
    ----------
    table : DataFrame
        One row per sampled mention. Cells of mentions to add and to remove hold ids, or nothing.
    prediction : memberships
        The prediction that was shown to the annotator, with ids as text.
    columns : SheetColumns, optional
        Names of the columns; by default mention_id, cluster_id, add, remove and correct.
    keep_mention : bool
        True: the sampled mention stays in its entity even if the sheet removes it. False: it is removed, and
        the entity is that of the other records.

    Returns
    -------
    Sheet

    Raises
    ------
    DataError
        Missing columns, or a sheet without rows.

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
            f"the sheet of {len(table)} rows lacks columns {head(lacking)}; it has {head(table.columns, 20)}"
        )
    prediction = Clustering.of(prediction, "prediction")
    predicted = pd.Series(prediction.clusters.take(prediction.codes), index=prediction.records)
    members = {k: pd.Index(g) for k, g in predicted.groupby(predicted, sort=False).groups.items()}
    entities: dict[Any, list[Any]] = {}
    problems: list[tuple[int, Any, Any, Problem]] = []
    for row, cells in enumerate(table[needed].itertuples(index=False, name=None)):
        mention, stated = cells[:2]

        def note(problem: Problem, record: Any = None, row: int = row, mention: Any = mention) -> None:
            problems.append((row, mention, record, problem))

        if mention not in predicted.index:
            note(Problem.UNKNOWN_MENTION)
            continue
        if mention in entities:
            note(Problem.REPEATED_MENTION)
            continue
        home = members[predicted[mention]]
        if stated != predicted[mention]:
            note(Problem.OTHER_CLUSTER)
        add, remove = (_parse_ids(cell, columns.separator, note) for cell in cells[2:4])
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
        removed = set(remove) - ({mention} if keep_mention else set())
        entities[mention] = [r for r in dict.fromkeys([*home, *add]) if r not in removed]
    answers = pd.DataFrame(
        [(mention, record) for mention, records in entities.items() for record in records],
        columns=["mention", "record"],
    )
    rows = {mention: row for row, mention in reversed(list(enumerate(table[columns.mention])))}
    shared = answers[answers["record"].duplicated(keep=False)]
    for mention, record in shared.itertuples(index=False, name=None):
        problems.append((rows[mention], mention, record, Problem.IN_TWO_ENTITIES))
    faults = pd.DataFrame(problems, columns=["row", "mention", "record", "problem"], dtype=object)
    return Sheet(answers, faults)


def _parse_ids(cell: Any, separator: str, note: Callable[[Problem, Any], None]) -> dict[str, None]:
    """Return the ids in a cell as keys, each once, in order."""
    if pd.isna(cell):
        return {}
    listed = [r for r in re.split(separator, str(cell)) if r]
    distinct = dict.fromkeys(listed)
    for record in distinct:
        if listed.count(record) > 1:
            note(Problem.LISTED_TWICE, record)
    return distinct
