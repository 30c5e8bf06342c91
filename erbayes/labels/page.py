"""The labelling page: one HTML file that shows tasks one by one, and the file of answers that it saves.

The page needs no server and no network. Its policy lets only its own script run, and no request leave it.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Collection, Mapping
from hashlib import sha256
from html import escape
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray, IntArray, as_text, refuse_names
from .._internal.errors import DataError, head, need, refuse_cases
from .._internal.files import read_json
from ..units.ids import ids, kind

VERSION = 1
"""The version of the file of answers."""
DRAWN, CLUSTER, CANDIDATE, ADDED = "drawn", "cluster", "candidate", "added"
"""Roles of records in a task. Only answers have records in the role `added`."""
CONTROL = "control"
"""The role of a stranger that is put into a task to test the annotator. The page shows it as `cluster`."""
SHOWN = "shown"
"""The role of all records but the drawn one in a blind task, which hides where they are from."""
KEYS = ["task", "record", "role"]
"""Columns that every table of tasks has."""
WHY = "why"
"""The column that says why a record is a candidate. The page does not show it, lest it sway the answer."""
SECONDS = "seconds"
"""The column, and the field of an answer, with the seconds that the annotator was at work on a task."""
LONGEST = 10**8
"""Seconds that no task takes, some three years, which a page never writes and floats represent."""
ANSWERS = ["same", "cannot_tell", "note", "annotator", SECONDS]
"""Columns of answers."""
FIELDS: dict[str, type] = {
    "task": int,
    "record": str,
    "same": list,
    "different": list,
    "added": list,
    "cannot_tell": bool,
    "note": str,
    "done": bool,
}
"""Fields of every answer in the file, and their types. The time of an answer without SECONDS is unknown."""


def labelling_page(
    tasks: pd.DataFrame,
    annotator: str,
    fingerprint: str,
    *,
    title: str = "Records to label",
    question: str = "Which of the records below are the same person or thing as the one on top?",
    settling: Mapping[int, Any] | None = None,
    pairs: bool = False,
) -> str:
    """Make the HTML page on which an annotator answers the tasks.

    Parameters
    ----------
    tasks : DataFrame
        As `erbayes.labels.tasks` makes them, without answers. If all roles but "drawn" are "shown", the page
        is blind: it has one list in the order of the table, has no answer of its own, and takes a task for
        done only when every record of it has an answer. Otherwise it shows candidates in the order of their
        likeness to the drawn record, and folds those that have next to nothing in common with it. A control
        is shown as one of the cluster, and the column why is not shown.
    annotator : str
        The name under which progress and answers are saved.
    fingerprint : str
        A text that names the draw. The page refuses answers with another one, and so does `read_answers`.
    title, question : str
    settling : mapping, task -> predicted cluster, optional
        Given if predicted clusters were drawn: the page goes past the task of a record that another task of
        the cluster has judged the same.
    pairs : bool
        Whether each task asks about two records alone, which the page then shows side by side.

    Examples
    --------
    >>> tasks = pd.DataFrame(
    ...     {
    ...         "task": [1, 1, 1],
    ...         "record": ["r1", "r7", "r9"],
    ...         "role": ["drawn", "cluster", "candidate"],
    ...         "name": ["Ann <Lee>", "Ann Lee", "Anne Lee"],
    ...     }
    ... )
    >>> page = labelling_page(tasks, "Bo", "a1b2")
    >>> "Ann <Lee>" in page, "Ann Lee" in page, "://" in page
    (False, True, False)
    """
    frame = _check_tasks(tasks)
    for text, what in ((annotator, "the annotator"), (fingerprint, "the fingerprint"), (title, "the title")):
        need(text, str, f"{what} is a str")
        if not text.strip():
            raise DataError(f"{what} has no text")
    cells = frame[frame.columns.intersection(ANSWERS)].fillna("").astype(str)
    if answered := int(cells.map(str.strip).astype(bool).to_numpy().sum()):
        raise DataError(
            f"the tasks hold answers in {answered:,} cells: "
            "a page starts without any; load a file of answers in the page itself"
        )
    numbers = frame["task"].unique().tolist()
    contents: dict[str, Any] = {
        "title": title,
        "question": question,
        "annotator": annotator,
        "fingerprint": fingerprint,
        "file": f"answers-{re.sub(r'[^\w.-]+', '-', annotator).strip('-.') or 'annotator'}.json",
        "pairs": pairs,
        "blind": bool((frame["role"] == SHOWN).any()),
        "settling": settling and pd.factorize(pd.Series([settling[task] for task in numbers]))[0].tolist(),
        "integers": kind(pd.Index(frame["record"])) == "integer",
    }
    return _render_page(title, contents | _list_records(frame))


def _list_records(frame: pd.DataFrame) -> dict[str, Any]:
    """Return attributes by falling information, each record once, and tasks by places of records."""
    attributes: list[Any] = [c for c in frame.columns if c not in (*KEYS, *ANSWERS, WHY)]
    texts = pd.DataFrame({c: [as_text(x) for x in frame[c]] for c in ["record", *attributes]}, dtype=object)
    # a record that many tasks show is stored once
    row = np.asarray(texts.groupby(list(texts), sort=False, dropna=False).ngroup(), dtype=np.int64)
    rows = texts.drop_duplicates(ignore_index=True)
    top = pd.Series(row).where((frame["role"] == DRAWN).to_numpy()).groupby(frame["task"]).transform("max")
    weights, order = _weigh_attributes(rows[attributes], top.to_numpy(dtype=np.int64), row)
    attributes = [attributes[k] for k in order]
    shown: dict[int, tuple[list[int], list[int], list[int]]] = {}
    part = frame["role"].map({DRAWN: 0, CLUSTER: 1, CONTROL: 1, SHOWN: 1, CANDIDATE: 2})
    for task, of_task, position in zip(frame["task"], part, row, strict=True):
        shown.setdefault(int(task), ([], [], []))[of_task].append(int(position))
    return {
        "attributes": [str(c) for c in attributes],
        "weights": weights[order].round(3).tolist(),
        "rows": rows[["record", *attributes]].to_numpy().tolist(),
        "tasks": [[task, drawn, rest, others] for task, ([drawn], rest, others) in shown.items()],
    }


def read_answers(answers: Path | str, tasks: pd.DataFrame, fingerprint: str) -> pd.DataFrame:
    """Read a file of answers that the labelling page has saved.

    Parameters
    ----------
    answers : Path or str
        The file, or its text.
    tasks, fingerprint
        Those of that page.

    Returns
    -------
    DataFrame
        The rows of the tasks, with columns of answers. `same` is "y" or "n", and "y" in the row of the drawn
        record once the task is done. `cannot_tell` ("x"), `note`, `annotator` and `seconds` stand in that row
        alone. Ids that the annotator has added follow the rows of their task, with the role "added".
        Answers that are unknown, double or not complete are a DataError.

    Examples
    --------
    >>> tasks = pd.DataFrame({"task": [1, 1], "record": [11, 12], "role": ["drawn", "cluster"]})
    >>> answer = {"task": 1, "record": "11", "same": [], "different": ["12"], "added": ["95"]}
    >>> answer |= {"cannot_tell": False, "note": "", "done": True}
    >>> text = json.dumps({"version": 1, "fingerprint": "f", "annotator": "Bo", "answers": [answer]})
    >>> read_answers(text, tasks, "f")[["task", "record", "role", "same"]]
       task  record     role same
    0     1      11    drawn    y
    1     1      12  cluster    n
    2     1      95    added    y
    """
    frame = _check_tasks(tasks)
    what = str(answers) if isinstance(answers, Path) else "the answers"
    saved = _parse_answers(answers, what, fingerprint)
    drawn = frame.loc[frame["role"] == DRAWN].set_index("task")["record"].map(str).to_dict()
    rows = list(zip(frame["task"], frame["record"].map(str), strict=True))
    ids_by_text = {str(record): record for record in frame["record"]}
    integers = kind(pd.Index(frame["record"])) == "integer"
    shown, given, added = set(rows), dict[tuple[int, str], list[Any]](), []
    for number, answer in enumerate(saved["answers"], 1):
        _check_fields(answer, f"{what}: answer {number}")
    if others := [a for a in saved["answers"] if drawn.get(a["task"]) != a["record"]]:
        raise DataError(
            f"{what}: {len(others):,} of {len(saved['answers']):,} answers are of another draw: task "
            f"{others[0]['task']} of record {shortened(others[0]['record'])} is not among the "
            f"{len(drawn):,} tasks"
        )
    for answer in saved["answers"]:
        task, record = answer["task"], answer["record"]
        where = f"{what}: task {task}"
        if (task, record) in given:
            raise DataError(f"{where} is answered twice")
        _refuse_records(answer, shown, where)
        marks = ["y" if answer["done"] else "", "x" if answer["cannot_tell"] else "", answer["note"]]
        given[task, record] = [*marks, saved["annotator"], answer.get(SECONDS, "")]
        for mark, records in (("y", answer["same"]), ("n", answer["different"])):
            given |= {(task, r): [mark, "", "", "", ""] for r in records}
        for id in answer["added"]:
            if (found := read_id(id, ids_by_text, integers)) is None:
                raise DataError(f"{where}: the added id {id!r} is no integer, and ids of the records are")
            added.append({"task": task, "record": found, "role": ADDED, "same": "y"})
    table = frame.drop(columns=ANSWERS, errors="ignore").join(
        pd.DataFrame([given.get(row, [""] * len(ANSWERS)) for row in rows], columns=ANSWERS, dtype=object)
    )
    done = table.loc[(table["role"] == DRAWN) & (table["same"] == "y"), "task"]
    open_records = table[table["task"].isin(done) & (table["same"] == "")]
    if len(open_records):
        task, record = open_records["task"].iloc[0], head(open_records["record"], 1)
        raise DataError(
            f"{what}: {open_records['task'].nunique():,} tasks are said to be done and have no answers about "
            f"{len(open_records):,} records, such as task {task} about {record}"
        )
    if not added:
        return table
    order = {task: i for i, task in enumerate(drawn)}
    table = pd.concat([table, pd.DataFrame(added)], ignore_index=True)
    table[ANSWERS] = table[ANSWERS].fillna("")
    return table.sort_values("task", key=lambda c: c.map(order), kind="stable", ignore_index=True)


def _refuse_records(answer: Mapping[str, Any], shown: Collection[tuple[int, str]], where: str) -> None:
    """Refuse an answer about records that its task does not show, or adds of it, or about one twice."""
    task, top, marked = answer["task"], answer["record"], answer["same"] + answer["different"]
    counts = Counter([*marked, *answer["added"]])
    for fault, records in {
        "has more than one answer about records {}": sorted(r for r, n in counts.items() if n > 1),
        "does not show records {}, which have answers": [
            r for r in marked if (task, r) not in shown or r == top
        ],
        "shows records {}, which cannot be added": [r for r in answer["added"] if (task, r) in shown],
    }.items():
        if records:
            raise DataError(f"{where} {fault.format(head(records))}")


def read_id(text: str, known: Mapping[str, Any], integers: bool) -> Any:
    """Return the record of an id as it was typed, None if no record can have it; `known`: text -> record."""
    id = text.strip()
    if (record := known.get(text, known.get(id))) is not None:
        return record
    if not integers:
        return id
    return int(id) if re.fullmatch(r"-?\d{1,18}", id) else None  # 18 digits fit into 64 bits


def _check_tasks(tasks: pd.DataFrame) -> pd.DataFrame:
    """Return the tasks, with rows numbered from 0, if they are a table of tasks."""
    need(tasks, pd.DataFrame, "tasks are a DataFrame, one row per record shown")
    refuse_names(KEYS, list(tasks.columns), "the table of tasks")
    if len(twice := tasks.columns[tasks.columns.duplicated()]):
        raise DataError(f"the table of tasks has columns {head(twice)} twice")
    frame = tasks.reset_index(drop=True)
    if not len(frame):
        raise DataError("there are no tasks")
    if not pd.api.types.is_integer_dtype(frame["task"]):
        raise DataError(f"numbers of tasks must be integers, not such as {head(frame['task'])}")
    ids(frame["record"], "records of the tasks")
    roles, open_roles = frame["role"], frame["role"].isin([CLUSTER, CANDIDATE, CONTROL])
    known = ", ".join(map(repr, (DRAWN, CLUSTER, CANDIDATE, CONTROL, SHOWN)))
    others = roles[~open_roles & ~roles.isin([DRAWN, SHOWN])]
    refuse_cases(others, "rows of the tasks have roles", f", not {known}")
    if (roles == SHOWN).any():
        then = f", and others are {SHOWN!r}: a page is blind if all but the drawn records are"
        refuse_cases(roles[open_roles], "rows of the tasks tell a role", then)
    per_task = (roles == DRAWN).groupby(frame["task"]).sum()
    wrong, again = per_task[per_task != 1], frame[frame.duplicated(["task", "record"])]
    refuse_cases(wrong.index, "tasks do not have one drawn record each", f", which have {head(wrong)}")
    refuse_cases(again["record"], "rows repeat a record of their task", f", in tasks {head(again['task'])}")
    return frame


def _weigh_attributes(rows: pd.DataFrame, top: IntArray, other: IntArray) -> tuple[FloatArray, IntArray]:
    """Return how rare attributes are, and their order by information, (k,), by drawn and shown rows."""
    compared = top != other
    weights, information = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    for k in range(rows.shape[1]):
        values = rows.iloc[:, k].map(lambda x: " ".join(x.casefold().split()), na_action="ignore")
        codes = pd.factorize(values)[0]
        counts = np.bincount(codes[codes >= 0])
        shares = counts / max(int(counts.sum()), 1)
        # the log of how rarely two records share a value by chance, as in a Fellegi-Sunter weight
        weights[k] = -np.log(shares @ shares) if len(shares) else 0.0
        agrees = (codes[top] == codes[other]) & (codes[top] >= 0)
        # a column that never agrees, such as a number of rows, has as little as one that always does
        information[k] = weights[k] * agrees[compared].mean() if compared.any() else 0.0
    return weights, np.argsort(-information, kind="stable")


def _render_page(title: str, data: Mapping[str, Any]) -> str:
    """Return the page with its data. The policy names its script and its style by their digests."""
    page = Path(__file__).with_name("page.html").read_text(encoding="utf-8")

    def digest(tag: str) -> str:
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"

    embedded = json.dumps(data, separators=(",", ":"))  # ASCII alone, so that U+2028 is escaped
    # no text of a record can end the script element around it
    for sign in "<>&":
        embedded = embedded.replace(sign, f"\\u{ord(sign):04x}")
    contents = {
        # nothing runs but the page's own script, whatever is in records, and nothing is sent
        "policy": f"default-src 'none'; script-src {digest('script')}; style-src {digest('style')}; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'",
        "title": escape(title),
        "data": embedded,
    }
    return re.sub(r"\{(policy|title|data)\}", lambda match: contents[match[1]], page)


def _parse_answers(answers: Path | str, what: str, fingerprint: str) -> dict[str, Any]:
    """Return the content of a file of answers, if it is one and belongs to the fingerprint."""
    saved = read_json(answers, what if isinstance(answers, Path) else f"{what} (a file needs its Path)")
    if "version" not in saved or not isinstance(saved.get("answers"), list):
        raise DataError(f"{what}: this is no file of answers of a labelling page")
    if saved["version"] != VERSION:
        raise DataError(f"{what}: it has version {shortened(saved['version'])}; this erbayes reads {VERSION}")
    if saved.get("fingerprint") != fingerprint:
        raise DataError(
            f"{what}: the answers belong to another draw or another prediction: "
            f"their fingerprint is {shortened(saved.get('fingerprint'))}, not {fingerprint!r}"
        )
    if not isinstance(saved.get("annotator"), str):
        raise DataError(f"{what}: the file names no annotator")
    return saved


def _check_fields(answer: Any, where: str) -> None:
    """Refuse an answer without all fields, or whose fields are of other types."""
    if not isinstance(answer, dict):
        raise DataError(f"{where} is {type(answer).__name__}, not an object with fields {head([*FIELDS], 9)}")
    if missing := [name for name in FIELDS if name not in answer]:
        raise DataError(f"{where} has no {head(missing, 9)}")
    for name, needed in FIELDS.items():
        value = answer[name]
        # the exact type, because a bool is an int for isinstance
        if type(value) is not needed or (type(value) is list and any(type(x) is not str for x in value)):
            must = "texts" if needed is list else needed.__name__
            raise DataError(f"{where}: {name!r} is {shortened(value)}, not {must}")
    seconds = answer.get(SECONDS, 0)
    if type(seconds) not in {int, float} or not 0 <= seconds < LONGEST:
        raise DataError(f"{where}: {SECONDS!r} is {shortened(seconds)}, not a number from 0 to {LONGEST:,}")
