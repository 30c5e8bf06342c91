"""Tables of what annotators answered: states, changes of the prediction, agreement, and what to decide."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from ..._internal.arrays import FloatArray
from ..._internal.errors import head
from ..annotators.two_annotators import AnnotatorPair
from ..drawing.folder import DECIDED
from ..drawing.labelling_tasks import FILLED
from ..drawing.page import ADDED, CANDIDATE, CLUSTER, CONTROL, SECONDS
from .faults import State, take_harmful


def count_states(states: pd.DataFrame, of_clusters: bool) -> pd.DataFrame:
    """Return the table of `Labels.summary`, from the state of each task of each annotator."""
    others = {State.DISPUTED} if of_clusters else {State.DISPUTED, State.SETTLED}
    columns = [state.value for state in State if state not in others]
    named = states.assign(state=[state.value for state in states["state"]])
    counts = pd.crosstab(named["annotator"], named["state"]).reindex(columns=columns, fill_value=0)
    counts.insert(0, "tasks", counts.sum(axis=1))
    return counts.rename_axis(columns=None).reset_index()


def count_changes(given: pd.DataFrame, states: pd.DataFrame) -> pd.DataFrame:
    """Return the table of `Labels.annotators`, from answers with their roles and the states of tasks."""
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


def warn_unlooked(changes: pd.DataFrame, given: pd.DataFrame, states: pd.DataFrame, blind: bool) -> list[str]:
    """Return the sentences of `Labels.cautions`, from the changes of each annotator and the answers."""
    said, undecided = [], set(states["annotator"][states["state"] == State.CANNOT_TELL])
    accepted = given[(given["role"] == CONTROL) & (given["same"] == "y")]
    for row in changes.to_dict("records"):
        name, tasks, missed = row["annotator"], row["tasks"], row["controls missed"]
        refused = row["controls"] - missed
        changed = row["records refused"] + row["candidates accepted"] + row["ids added"] + refused
        if tasks and not changed and not blind and name not in undecided:
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


def tabulate_agreement(pairs: Mapping[tuple[str, str], AnnotatorPair], draws: pd.DataFrame) -> pd.DataFrame:
    """Return the table of `Labels.agreement`, from the pairs of annotators and the table of draws."""
    chance = draws.drop_duplicates("record").set_index("record")["probability"]
    columns = ["annotators", "tasks", "share", "estimate", "lower", "upper"]
    tables = []
    for (first, second), pair in pairs.items():
        weight = partial(_weigh_entities, chance[pair.mentions].to_numpy(float))
        table = pair.agreement(weight).table().rename_axis("share").reset_index()
        table = table.assign(annotators=f"{first}, {second}", tasks=len(pair.mentions))
        tables.append(table[columns])
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)


def _weigh_entities(chance: FloatArray, size: FloatArray) -> FloatArray:
    """Return the weight of an entity by the chance of its drawn record, (n,)."""
    return np.asarray(1 / (chance * size))


def list_disputed(problems: pd.DataFrame, tasks: pd.DataFrame, given: pd.DataFrame) -> pd.DataFrame:
    """Return the table of `Labels.disputed`: tasks with harmful problems, and the answers given to them."""
    wrong = take_harmful(problems)["task"]
    rows = tasks[tasks["task"].isin(wrong) & (tasks["role"] != CONTROL)]
    given = given[given["task"].isin(rows["task"]) & (given["role"] != CONTROL)]
    added = given[given["role"] == ADDED][["task", "record", "role"]].drop_duplicates()
    table = pd.concat([rows, added], ignore_index=True).sort_values("task", kind="stable")
    keys = pd.MultiIndex.from_frame(table[["task", "record"]])
    for annotator, answers in given.groupby("annotator"):
        marks = answers.groupby(["task", "record"])["same"].agg(lambda x: "/".join(sorted(set(x))))
        table.insert(list(table).index(FILLED[0]), f"answer of {annotator}", marks.reindex(keys).to_numpy())
    return table.fillna("").reset_index(drop=True)
