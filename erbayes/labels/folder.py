"""The folder of a draw: sheets and pages for annotators, and all that an estimate needs of the draw."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._internal.errors import DataError, Remedy, head, need, refuse_cases
from .._internal.files import HIDDEN, NEW, OLD, alone, read_json, refuse_output, writing
from ..units.ids import as_index, kind
from .drawn import RecordDraws
from .labelling_tasks import FILLED, HAS_XLSX, as_sent, dealt, drawn_records, read_sheet, write_sheet
from .page import CLUSTER, DRAWN, KEYS, labelling_page
from .plans import GivenProbabilities, NewRecords, to_plain

VERSION = 1
"""The version of the folder."""
IDS = ("record", "cluster")
"""Columns of ids in the table of draws."""
FACTS, DRAWS, TASKS = "drawn.json", "drawn.csv", "tasks.csv"
"""Files of the draw."""
TYPES = {"date": str, "annotators": dict, "overlap": int | float, "blind": bool, "types": dict, "drawn": dict}
"""Facts without which a folder is not read, and what each is."""
UNHASHED = frozenset({"fingerprint", "date", "erbayes"})
"""Facts that the fingerprint of the others leaves out, because they decide nothing."""
README = "README.txt"
"""The file that says which file goes to whom."""
DECIDED = "decided"
"""The name of the sheet that decides what annotators dispute."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Folder:
    """A folder with a draw, by whose `fingerprint` pages know it, its tasks, and its `facts` in words."""

    path: Path
    drawn: RecordDraws
    tasks: pd.DataFrame
    dealt: Mapping[str, list[int]]
    fingerprint: str
    facts: Mapping[str, Any]
    blind: bool = False

    def __repr__(self) -> str:
        return (
            f"Folder({str(self.path)!r}: {len(self.drawn.table):,} draws, {self.tasks['task'].nunique():,} "
            f"tasks, {len(self.tasks):,} records shown, annotators {', '.join(self.dealt)})"
        )


def write_folder(
    path: str | Path,
    drawn: RecordDraws,
    tasks: pd.DataFrame,
    *,
    annotators: int = 1,
    overlap: float = 0.2,
    blind: bool = False,
    replace: bool = False,
    facts: Mapping[str, Any] | None = None,
) -> Folder:
    """Write the folder of a draw: sheets and a labelling page for each annotator, and the draw itself.

    Annotator A gets sheet-A.csv, sheet-A.xlsx (with the extra sheets) and label-A.html, all with the same
    tasks, of which one is to be filled. The files drawn.json, drawn.csv and tasks.csv contain the draw, must
    stay as they are, and are not for annotators, since tasks.csv says which records are controls. All tasks
    of a drawn predicted cluster go to the same annotators.

    Parameters
    ----------
    path : str or Path
    drawn : RecordDraws
    tasks : DataFrame
        As `erbayes.labels.tasks` returns them.
    annotators, overlap : int, float in [0, 1]
        Annotators, and the share of tasks that two of them get. The seed of the draw deals the tasks.
    blind : bool
        True hides the prediction: sheets and pages show the cluster and the candidates in one shuffled list.
    replace : bool
        True replaces a folder of a draw that has answers. They are lost.
    facts : mapping, optional
        What else is to be stored with the draw, such as the files that it was made from.

    Examples
    --------
    >>> from erbayes.labels import Records, draw, tasks
    >>> from tempfile import TemporaryDirectory
    >>> drawn = draw({"r1": "a", "r2": "a", "r3": "b"}, Records(), n=2, seed=1)
    >>> with TemporaryDirectory() as temporary:
    ...     folder = write_folder(Path(temporary) / "to-label", drawn, tasks(drawn))
    ...     sorted(path.name for path in folder.path.iterdir())[:3]
    ['README.txt', 'drawn.csv', 'drawn.json']
    """
    path = Path(path)
    need(tasks, pd.DataFrame, "tasks are a DataFrame, as erbayes.labels.tasks returns them")
    refuse_folder(path, replace)
    clusters, number = drawn_records(drawn)["cluster"], tasks["task"].max()
    # what is dealt: each task, or the tasks of a predicted cluster together
    of_task = 1 + (pd.factorize(clusters)[0] if drawn.of_clusters else np.arange(number))
    hands = dealt(int(of_task.max()), annotators, overlap, drawn.seed)
    hands = {who: (1 + np.flatnonzero(np.isin(of_task, some))).tolist() for who, some in hands.items()}
    shared = overlap if annotators > 1 else 0.0
    with replacing_folder(path) as new:
        write_files(new, drawn, tasks, hands, blind, {**(facts or {}), "overlap": shared})
    return read_folder(path)


def write_files(
    new: Path,
    drawn: RecordDraws,
    tasks: pd.DataFrame,
    hands: Mapping[str, Sequence[int]],
    blind: bool,
    facts: Mapping[str, Any],
) -> None:
    """Write the files of a folder, whose tasks are in the `hands` of annotators."""
    blank = [column for column in tasks.columns if column not in FILLED]
    write_sheet(drawn.table, new / DRAWS, ("record", "cluster"))
    values = {} if drawn.values is None else {"value": drawn.values.reindex(tasks["record"]).to_numpy()}
    write_sheet(tasks[blank].assign(**values), new / TASKS)
    about = {
        "version": VERSION,
        "erbayes": version("erbayes"),
        "date": date.today().isoformat(),
        "fingerprint": "",
        **facts,
        "annotators": hands,
        "blind": blind,
        "types": {c: kind(as_index(drawn.table[c])) for c in IDS},
        "drawn": json.loads(drawn.to_json()),
    }
    # of bytes, so that a file that a spreadsheet program saved again is noticed
    about["fingerprint"] = _compute_fingerprint([(new / name).read_bytes() for name in (DRAWS, TASKS)], about)
    # one fact a line, for people who open the file
    facts_by_line = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in about.items())
    (new / FACTS).write_text("{\n" + ",\n".join(facts_by_line) + "\n}\n", encoding="utf-8")
    settling = dict(enumerate(drawn_records(drawn)["cluster"], 1)) if drawn.of_clusters else None
    sent = as_sent(tasks, drawn.seed, blind)
    lines = []
    for annotator, numbers in hands.items():
        mine = sent[sent["task"].isin(numbers)].reset_index(drop=True)
        page = labelling_page(mine, annotator, _name_draw(about), settling=settling)
        (new / f"label-{annotator}.html").write_text(page, encoding="utf-8")
        sheets = [f"sheet-{annotator}{suffix}" for suffix in ([".xlsx"] * HAS_XLSX + [".csv"])]
        for sheet in sheets:
            write_sheet(mine.assign(note=""), new / sheet)
        either = " or ".join([f"label-{annotator}.html", *sheets])
        number = f"{len(numbers):,} task{'s' * (len(numbers) > 1)}"
        lines.append(f"  to annotator {annotator}: {either} ({number})")
    text = Path(__file__).with_name("folder_readme.txt").read_text(encoding="utf-8")
    told = {"day": about["date"], "sheets": "\n".join(lines), "kept": f"{TASKS}, {DRAWS}, {FACTS}"}
    (new / README).write_text(text.format_map(told), encoding="utf-8")


def read_folder(path: str | Path) -> Folder:
    """Open the folder of a draw."""
    path = Path(path)
    about = read_facts(path)
    table, shown = (read_sheet(path / name).reset_index(drop=True) for name in (DRAWS, TASKS))
    table = table.astype({column: "int64" for column, type in about["types"].items() if type == "integer"})
    shown = shown.astype({"record": table["record"].dtype, "task": "int64"})
    # of a drawn predicted cluster, only the first task shows all records
    cluster = table.drop_duplicates("record").set_index("record")["cluster"]
    inside = shown[shown["role"].isin([DRAWN, CLUSTER])]
    mention = inside["record"].where(inside["role"] == DRAWN).ffill()
    first = mention.isin(cluster.index)
    members = pd.DataFrame({"record": inside["record"][first], "cluster": cluster[mention[first]].to_numpy()})
    drawn = RecordDraws.from_json(json.dumps(about["drawn"]), table, members.drop_duplicates("record"))
    as_numbers = isinstance(drawn.plan, GivenProbabilities)
    for name in table.columns.intersection(["size", "probability", *["value"] * as_numbers]):
        table[name] = pd.to_numeric(table[name])
    values = None
    if "value" in shown:
        values = pd.Series(shown.pop("value").to_numpy(), pd.Index(shown["record"]))
        values = values[~values.index.duplicated()]
        values = pd.to_numeric(values) if as_numbers else values
    shown[[*FILLED]] = ""
    fields = {"version", "fingerprint", "annotators", "types", "drawn", "blind"}
    stated = {name: value for name, value in about.items() if name not in fields}
    drawn = dataclasses.replace(drawn, values=values)
    return Folder(path, drawn, shown, about["annotators"], _name_draw(about), stated, about["blind"])


def read_facts(path: Path) -> dict[str, Any]:
    """Return what the folder of a draw says of it, refusing other folders and files that have changed."""
    files = [path / name for name in (FACTS, DRAWS, TASKS)]
    none = "is no folder that erbayes draw has written"
    if missing := [file.name for file in files if not file.is_file()]:
        raise DataError(f"{path} {none}: it has no {missing[0]}")
    about = read_json(files[0], str(files[0]))
    try:
        tables = [file.read_bytes() for file in files[1:]]
    except OSError as error:
        raise DataError(f"{path} {none}: {error!r}") from error
    if about.get("version") != VERSION:
        raise DataError(f"{path / FACTS} is not of version {VERSION}: read it with the erbayes that wrote it")
    if about.get("fingerprint") != _compute_fingerprint(tables, about):
        raise DataError(
            f"{path}: {DRAWS}, {TASKS} or {FACTS} has changed since the draw, perhaps in a spreadsheet "
            "program, or another version of erbayes has written them: restore all three; answers belong "
            "into the sheets"
        )
    lacking = [name for name, type in TYPES.items() if not isinstance(about.get(name), type)]
    lacking = lacking or ["types"] * (about["types"].keys() != {*IDS})
    are = f"{files[0]}: {{n}} facts are missing or not as erbayes draw writes them, such as"
    refuse_cases(lacking, are, ": restore the file, or draw anew")
    return about


def _compute_fingerprint(tables: Sequence[bytes], facts: Mapping[str, Any]) -> str:
    """Return a text that changes with the tables of a folder and with each fact that decides a number."""
    hashed = {name: value for name, value in facts.items() if name not in UNHASHED}
    return sha256(b"".join([*tables, json.dumps(hashed, sort_keys=True).encode()])).hexdigest()[:16]


def _name_draw(facts: Mapping[str, Any]) -> str:
    """Return a text that names a draw on its pages, the same for more draws of it."""
    hashed = [facts["types"], facts["blind"], *(facts["drawn"][name] for name in ("plan", "seed", "sizes"))]
    return sha256(json.dumps(hashed, sort_keys=True).encode()).hexdigest()[:16]


def answer_files(path: Path) -> list[Path]:
    """Return the files of a folder that may have answers: sheets, and files that a page has saved."""
    return sorted(
        file
        for file in path.iterdir()
        if file.is_file()
        and file.name not in {FACTS, DRAWS, TASKS}
        and file.suffix.lower() in {".csv", ".xlsx", ".json", ".ods", ".xls", ".tsv", ".numbers"}
        # office programs put locks and copies of open files next to them
        and not file.name.startswith((".", "~"))
    )


def _list_answered(path: Path) -> list[str]:
    """Return the names of the files in a folder that have answers or cannot be read."""
    named = []
    for file in answer_files(path):
        if file.suffix.lower() in {".csv", ".xlsx"}:
            try:
                sheet = read_sheet(file)
            except DataError:
                sheet = pd.DataFrame({"note": ["it cannot be read"]})
            if not (sheet[sheet.columns.intersection([*FILLED, "note"])] != "").to_numpy().any():
                continue
        named.append(file.name)
    return named


def refuse_folder(path: Path, replace: bool) -> None:
    """Refuse to write a folder that `write_folder` could not write, or whose content must not be lost."""
    try:
        inside = path.is_dir()
        if not inside and path.exists():
            raise DataError(f"cannot write {path}: it is a file, not a folder")
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from error
    refuse_output(path / FACTS if inside else path)
    if not path.is_dir() or not any(path.iterdir()):
        return
    # replacing a folder deletes it, so that it may have only a draw and its answers
    of_draw = re.compile(rf"{README}|{FACTS}|{DRAWS}|{TASKS}|sheet-.*\.(csv|xlsx)|label-.*\.html|.*\.json")
    others = [file.name for file in path.iterdir() if not (of_draw.fullmatch(file.name) and file.is_file())]
    others = [name for name in others if not name.startswith(HIDDEN)]  # which a killed process has left
    if not (path / FACTS).exists() or others:
        raise DataError(
            f"cannot write {path}: it holds other files, such as {head(others)}: name a new folder"
        )
    if (names := _list_answered(path)) and not replace:
        raise DataError(
            f"cannot write {path}: it holds answers, in {head(names)}: name a new folder",
            Remedy("or replace them, and they are lost", "replace=True", "--replace"),
        )


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders at one stroke, and return whether the system can."""
    if sys.platform != "linux":
        return False
    from ctypes import CDLL  # not above, since only writers of folders need it

    exchange = getattr(CDLL(None), "renameat2", None)  # which Python does not have
    here, exchanging = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return exchange is not None and exchange(here, bytes(one), here, bytes(other), exchanging) == 0


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Make a new folder that takes the place of `path` if the block ends without error."""
    target = path.resolve()
    with writing(path, target) as temporary:
        new, old = temporary / NEW, temporary / OLD
        yield new
        if target.exists() and _exchange(new, target):
            return
        # the old folder returns if the new one cannot take its place, so that no answer is lost
        if target.exists():
            target.replace(old)
        try:
            new.replace(target)
        except OSError:
            if old.exists():
                old.replace(target)
            raise


def refuse_dependent(folder: Folder) -> None:
    """Refuse a folder whose draws and tasks are not the first of those of a larger number."""
    plan = folder.drawn.plan
    if not getattr(plan, "independent", False) or isinstance(plan, NewRecords):
        name, other = to_plain(plan)["name"], "another sample, or has its tasks in another order"
        raise DataError(f"{folder.path}: under {name} a larger number is {other}: draw it into a new folder")


def add_draws(folder: Folder, drawn: RecordDraws, tasks: pd.DataFrame, facts: Mapping[str, Any]) -> Folder:
    """Write a folder anew with more draws; its tasks, controls, annotators and answers stay as they are."""
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
                raise DataError(
                    f"{file} has the columns {head(sheet.columns, 99)}, and was written with "
                    f"{head(blank.columns, 99)}: give these back to it"
                )
            further = blank[blank["task"].astype("int64") > last]
            rows = pd.concat([sheet, further], ignore_index=True).fillna("")
            # a row that an annotator adds may have no id
            write_sheet(rows, fresh, ("record",) if rows["record"].map(str.strip).all() else ())
