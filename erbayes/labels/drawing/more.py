"""More draws for a folder that annotators have begun: its tasks and all answers stay."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..._internal.errors import DataError, head
from ..._internal.files import alone
from .drawn import RecordDraws
from .folder import FACTS, IDS, Folder, read_folder, refuse_folder, replacing_folder, write_files
from .labelling_tasks import dealt
from .page import KEYS
from .plans import NewRecords, to_plain
from .sheets import read_sheet, write_sheet


def refuse_dependent(folder: Folder) -> None:
    """Refuse a folder whose draws and tasks are not the first of those of a larger number."""
    plan = folder.drawn.plan
    if not getattr(plan, "independent", False) or isinstance(plan, NewRecords):
        raise DataError(
            f"{folder.path}: under {to_plain(plan)['name']} a larger number is another sample, or has its "
            "tasks in another order: draw it into a new folder"
        )


def add_draws(folder: Folder, drawn: RecordDraws, tasks: pd.DataFrame, facts: Mapping[str, Any]) -> Folder:
    """Write a folder anew with all draws of `drawn`, of which it has the first, and retain every answer.

    The tasks that it has stay as they are, with their controls and annotators. The `tasks` of further records
    follow them, and are assigned to the same annotators.
    """
    old, first = folder.drawn.table, drawn.table.head(len(folder.drawn.table))
    same = first[[*IDS]].astype(str).equals(old[[*IDS]].astype(str))
    if not same or not np.allclose(first["probability"], old["probability"], rtol=1e-9, atol=0):
        raise DataError(f"{folder.path}: the values of its records have changed since: give the old ones")
    last = int(folder.tasks["task"].max())
    added = tasks[tasks["task"] > last]
    if len(added) and list(added) != list(folder.tasks):
        names = head(list(folder.tasks), 99)
        raise DataError(f"{folder.path}: its tasks have the columns {names}: give the old attributes")
    hands = {name: list(numbers) for name, numbers in folder.dealt.items()}
    overlap = folder.facts["overlap"]
    if new := added["task"].nunique():
        for name, numbers in dealt(new, min(len(hands), new), overlap, drawn.seed).items():
            hands[name] += [last + number for number in numbers]
    refuse_folder(folder.path, replace=True)
    old_rows, rows = (table[KEYS].astype(str) for table in (folder.tasks, tasks[tasks["task"] <= last]))
    if not rows.equals(old_rows):  # as controls are drawn from the tasks that are there
        tasks = pd.concat([folder.tasks, added], ignore_index=True)
    with alone(folder.path / FACTS):
        if (now := len(read_folder(folder.path).drawn.table)) != len(old):
            raise DataError(f"{folder.path} has {now:,} draws since, not {len(old):,}: begin again")
        with replacing_folder(folder.path) as path:
            write_files(path, drawn, tasks, hands, folder.blind, {**facts, "overlap": overlap})
            _keep_answers(folder.path, path, last)
    return read_folder(folder.path)


def _keep_answers(old: Path, new: Path, last: int) -> None:
    """Bring the answers of a folder into a new one, whose sheets get the rows of tasks after the `last`."""
    for file in sorted(file for file in old.iterdir() if file.is_file()):
        fresh = new / file.name
        if not fresh.exists():
            shutil.copy2(file, fresh)
        elif file.name.startswith("sheet-"):
            sheet, blank = read_sheet(file), read_sheet(fresh)
            if sheet.columns.has_duplicates or not set(blank) <= set(sheet):
                said = f"{file} has the columns {head(sheet.columns, 99)}, and was written with"
                raise DataError(f"{said} {head(blank.columns, 99)}: give these back to it")
            further = blank[blank["task"].astype("int64") > last]
            rows = pd.concat([sheet, further], ignore_index=True).fillna("")
            # a row that an annotator adds may have no id
            write_sheet(rows, fresh, ("record",) if rows["record"].map(str.strip).all() else ())
