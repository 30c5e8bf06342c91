"""Labelling tasks: what an annotator sees of each drawn record, who gets which task, and sheets of them.

Sheets are tables of text as CSV and XLSX files, in which nothing from the data runs. A spreadsheet program
takes text such as =1+1 in a CSV file for a formula, and turns the id 007 into 7. Cells of a CSV file that it
would change therefore start with an apostrophe, which is taken off when they are read. Cells of an XLSX file
are marked as text, so that they need no apostrophe.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from string import ascii_uppercase
from typing import Any
from xml.etree.ElementTree import ParseError
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from .._internal.arrays import IntArray, locate, need_table, refuse_names, separator_hint, to_frame
from .._internal.digits import begins_formula
from .._internal.errors import DataError, head, number, printable, refuse_cases, whole
from ..units.columns import find_record
from ..units.ids import are_listed, as_index, ids, same_kind
from ..units.reading import Near
from .drawn import RecordDraws
from .page import ANSWERS, CANDIDATE, CLUSTER, CONTROL, DRAWN, KEYS, SHOWN, WHY

FILLED = ("same", "cannot_tell")
"""The last columns of a table of tasks, which annotators fill."""
RESERVED = frozenset([*KEYS, *ANSWERS, WHY, "value"])
"""Names that no column of attributes may have."""
STRANGERS, SHUFFLED = 2, 3
"""Streams of random numbers of a seed for controls and the order of blind tasks; that of `dealt` is 1."""


def drawn_records(drawn: RecordDraws) -> pd.DataFrame:
    """Return the records that have a task: record, cluster, in the order of the first draw."""
    first = drawn.table.drop_duplicates("record")[["record", "cluster"]]
    if drawn.of_clusters:
        order = pd.Series(range(len(first)), first["cluster"])
        rows = pd.concat([first, drawn.members[["record", "cluster"]]]).drop_duplicates("record")
        first = rows.iloc[np.argsort(rows["cluster"].map(order).to_numpy(), kind="stable")]
    return first.reset_index(drop=True)


def tasks(
    drawn: RecordDraws, attributes: Any = None, candidates: Any = None, *, controls: float | None = None
) -> pd.DataFrame:
    """Make the table of labelling tasks, one per drawn record, or per record of a drawn predicted cluster.

    A task shows the drawn record, the other records of its predicted cluster, and candidates from elsewhere.
    The annotator says of each whether it belongs to the entity of the drawn record. If predicted clusters
    were drawn, each of their records is a task, and later tasks show no record of the cluster that an earlier
    one has shown on top. Once a task has y for a record, the task of this record is settled, maybe blank.

    Parameters
    ----------
    drawn : RecordDraws
    attributes : DataFrame or Arrow table, optional
        What annotators see of a record. One column has the records that are shown; all others are shown too.
    candidates : DataFrame or Arrow table, optional
        Records that may be missing from the predicted clusters, as `by_text` and others return them: columns
        record (the drawn one), candidate and, optionally, why. Rows of other records are left out.
    controls : float, between 0 and 1, optional
        Share of the tasks (or of drawn predicted clusters, in whose first task it is), at least one, that get
        a *control*: a record of another drawn predicted cluster, which annotators see as one more record of
        the cluster and ought to refuse. No candidate of the task is one, as it may belong to the entity.

    Returns
    -------
    DataFrame
        One row per record shown: task (1, 2, … in the order of the draws), record, role (drawn, cluster,
        candidate or control), why (if candidates have it), the attributes, and blank same and cannot_tell.

    Examples
    --------
    >>> from erbayes.labels import Records, draw
    >>> drawn = draw({"a1": "a", "a2": "a"}, Records(), n=1, seed=1)
    >>> names = pd.DataFrame({"record": ["a1", "a2", "b1"], "name": ["Ann", "Anne", "Anna"]})
    >>> tasks(drawn, names, pd.DataFrame({"record": ["a2"], "candidate": ["b1"]}))
       task record       role  name same cannot_tell
    0     1     a2      drawn  Anne
    1     1     a1    cluster   Ann
    2     1     b1  candidate  Anna
    """
    first = drawn_records(drawn)
    mentions = first.assign(task=np.arange(1, len(first) + 1))
    shown = mentions.rename(columns={"record": "mention"}).merge(drawn.members, on="cluster")
    shown["role"] = np.where(shown["record"] == shown["mention"], DRAWN, CLUSTER)
    absent = first["record"][~first["record"].isin(shown["record"][shown["role"] == DRAWN])]
    refuse_cases(absent.tolist(), "drawn records are not among the members")
    if drawn.of_clusters:
        # each pair of records of a cluster is judged once, in the earlier of their tasks
        shown = shown[shown["record"].map(mentions.set_index("record")["task"]) >= shown["task"]]
    others = [] if candidates is None else [_list_candidates(candidates, mentions)]
    table = pd.concat([shown[["task", "record", "role"]], *others], ignore_index=True)
    table = table.drop_duplicates(["task", "record"])
    table["place"] = table.groupby(["task", "role"]).cumcount().astype(float)
    if controls is not None:
        table = pd.concat([table, _draw_controls(table, drawn, mentions, controls)], ignore_index=True)
    order = table["role"].map({DRAWN: 0, CLUSTER: 1, CONTROL: 1, CANDIDATE: 2})
    table = table.assign(order=order).sort_values(["task", "order", "place"], ignore_index=True)
    table = table.drop(columns=["order", "place"])
    if attributes is not None:
        seen, _, rows = locate_attributes(attributes, as_index(table["record"]), "shown")
        if taken := [name for name in seen if name in RESERVED]:
            raise DataError(f"attributes cannot be called {head(taken)}, as columns of sheets: rename them")
        table = pd.concat([table, seen.iloc[rows].reset_index(drop=True)], axis=1)
    return table.assign(**dict.fromkeys(FILLED, ""))


def _list_candidates(candidates: Any, mentions: pd.DataFrame) -> pd.DataFrame:
    frame = to_frame(candidates)
    refuse_names(["record", "candidate"], list(frame.columns), "the table of candidates")
    records = ids(frame["record"], "drawn records of the candidates")
    others = ids(frame["candidate"], "candidates")
    drawn = as_index(mentions["record"])
    for listed, what in ((records, "drawn records of the candidates"), (others, "candidates")):
        same_kind(drawn, listed, what, "ids of drawn records")
    position = drawn.get_indexer(records)
    known = position >= 0
    if len(records) and not known.any():
        raise DataError(
            f"none of the {len(records):,} candidates is for a drawn record, "
            f"such as {head(drawn)}: the first column has records such as {head(records)}"
        )
    rows = pd.DataFrame(
        {"task": mentions["task"].to_numpy()[position[known]], "record": others[known], "role": CANDIDATE}
    )
    return rows.assign(why=frame["why"].to_numpy()[known]) if "why" in frame else rows


def _draw_controls(
    table: pd.DataFrame, drawn: RecordDraws, mentions: pd.DataFrame, share: float
) -> pd.DataFrame:
    """Return the rows of controls: task, record, role and place, which is between two of the cluster's."""
    number(share, "controls", lambda x: 0 < x < 1, "lie between 0 and 1")
    rng = np.random.default_rng([drawn.seed, STRANGERS])
    open_to = mentions.drop_duplicates("cluster") if drawn.of_clusters else mentions
    chosen = open_to.iloc[np.sort(rng.permutation(len(open_to))[: max(round(share * len(open_to)), 1)])]
    rows = []
    for task, home in chosen[["task", "cluster"]].itertuples(index=False, name=None):
        shown, others = table[table["task"] == task], drawn.members[drawn.members["cluster"] != home]
        others = others[~others["record"].isin(shown["record"])]
        if not len(others):
            raise DataError(
                f"task {task} can have no control: no record of another drawn predicted cluster is left that "
                "it does not show; draw more records, or leave out the controls"
            )
        # first a cluster and then a record, or most controls would come from the largest clusters
        codes, clusters = pd.factorize(others["cluster"])
        records = others["record"][codes == rng.integers(len(clusters))]
        # anywhere among the cluster's records, so that its place does not give a control away
        place = rng.integers((shown["role"] == CLUSTER).sum() + 1) - 0.5
        rows.append((task, records.iloc[rng.integers(len(records))], CONTROL, place))
    return pd.DataFrame(rows, columns=["task", "record", "role", "place"])


def as_sent(tasks: pd.DataFrame, seed: int, blind: bool) -> pd.DataFrame:
    """Return tasks as annotators get them: controls as records of the cluster; if blind, only one role."""
    if not blind:
        return tasks.assign(role=tasks["role"].replace(CONTROL, CLUSTER))
    drawn = tasks["role"] == DRAWN
    chance = np.random.default_rng([seed, SHUFFLED]).random(len(tasks))
    order = np.lexsort((np.where(drawn, -1.0, chance), tasks["task"]))
    sent = tasks.assign(role=tasks["role"].where(drawn, SHOWN)).iloc[order]
    # the reason for a candidate would show that it is one
    return sent.drop(columns=WHY, errors="ignore").reset_index(drop=True)


def locate_attributes(
    attributes: Any, queries: pd.Index, what: str
) -> tuple[pd.DataFrame, pd.Index, IntArray]:
    """Return attributes, their records, and the row of each of the queries, which messages call `what`."""
    frame = need_table(attributes, "attributes are a DataFrame or an Arrow table")
    if len(names := list(frame.columns)) < 2:
        raise DataError(
            "the table of attributes needs a record and at least one column to show; "
            f"it has {head(names)}{separator_hint(names)}"
        )
    key = find_record(frame, Near({"record": queries}), "the table of attributes")
    frame = frame if frame[key].is_unique else frame[~frame.astype("str").duplicated()]
    records = ids(frame[key], f"column {key!r} of the attributes")
    same_kind(queries, records, "records of the attributes", f"ids of {what} records")
    here = np.flatnonzero(are_listed(records, queries))
    listed = records[here]
    refuse_cases(listed[listed.duplicated()].unique(), f"{what} records have several different rows")
    rows = here[locate(listed, queries, f"{what} records have no attributes", of=queries.nunique())]
    return frame.drop(columns=key), records, rows


def dealt(count: int, annotators: int = 1, overlap: float = 0.2, seed: int = 0) -> dict[str, list[int]]:
    """Deal tasks to annotators, some of them to two."""
    count, annotators = whole(count, "the number of tasks"), whole(annotators, "annotators")
    number(overlap, "overlap", lambda share: 0 <= share <= 1, "lie in [0, 1]")
    if annotators > (most := min(len(ascii_uppercase), count)):
        raise DataError(f"{annotators} annotators for {count} tasks: at most {most}")
    names = ascii_uppercase[:annotators]
    order = (1 + np.random.default_rng([whole(seed, "seed", 0), 1]).permutation(count)).tolist()
    hands = {name: order[first::annotators] for first, name in enumerate(names)}
    both = round(overlap * count) if annotators > 1 else 0
    for position, task in enumerate(order[:both], 1):
        hands[names[position % annotators]].append(task)
    return {name: sorted(numbers) for name, numbers in hands.items()}


NUMBER = re.compile(r"'*\s*[+-]?[.\d]")
"""The beginning of text that it may take for a number or a date."""
PLAIN = re.compile(r"0|[1-9]\d{0,14}")
"""Text that it takes for a number, and writes as it was."""
WIDTH = {"task": 7, "role": 11, "same": 8, "cannot_tell": 12}
"""Width of columns of an XLSX sheet, in characters. Others have 24."""
SEPARATORS = ",;\t"
"""Separators of CSV files, because spreadsheet programs of many countries write others than commas."""
HAS_XLSX = find_spec("openpyxl") is not None
"""Whether XLSX files can be written and read."""


def guarded(text: str) -> str:
    """Return the text of a cell of a CSV file that no spreadsheet program changes, such as '007 for 007."""
    changed = begins_formula(text) or (NUMBER.match(text) and not PLAIN.fullmatch(text))
    return f"'{text}" if changed else text


def unguarded(text: str) -> str:
    """Return the text for which `guarded` returns `text`; text that needs no guard is returned as it is."""
    return text[1:] if text.startswith("'") and guarded(text[1:]) == text else text


def write_sheet(table: pd.DataFrame, path: Path, exact: Sequence[str] = ("record",)) -> None:
    """Write a table as a .csv or .xlsx sheet that can be read back, ids in the columns `exact` unchanged."""
    cells = table.astype(object).where(table.notna(), "")
    shown = {str(name): [str(cell) for cell in cells[name]] for name in cells}
    ids = [id for name in exact for id in shown[name]]
    for name in set(shown) - {*exact}:  # without control characters, and without halves of surrogate pairs
        shown[name] = [printable(cell).replace("\r", " ") for cell in shown[name]]
    lost = [id for id in ids if not id.strip() or any("\ud800" <= sign <= "\udfff" for sign in id)]
    if not lost:
        try:
            (_write_xlsx if path.suffix.lower() == ".xlsx" else _write_csv)(shown, path)
        except ValueError:  # control characters, which XML cannot hold
            lost = [id for id in ids if not id.isprintable()]
        else:
            # only reading the file again shows that its format has changed no id
            back = read_sheet(path)
            read = [id for name in exact for id in back[name]]
            lost = [id for id, other in zip(ids, read, strict=True) if id != other]
    refuse_cases(lost, f"ids cannot be written to {path.suffix[1:].upper()} files", ": give them other ids")


def _write_csv(columns: Mapping[str, list[str]], path: Path) -> None:
    with path.open("w", encoding="utf-8-sig", newline="") as file:  # the mark by which Excel knows UTF-8
        lines = csv.writer(file, quoting=csv.QUOTE_ALL)
        lines.writerow(map(guarded, columns))
        lines.writerows(map(guarded, row) for row in zip(*columns.values(), strict=True))


def _write_xlsx(columns: Mapping[str, list[str]], path: Path) -> None:
    from openpyxl import Workbook
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
    from openpyxl.styles import Font
    from openpyxl.utils import get_column_letter
    from openpyxl.worksheet.datavalidation import DataValidation

    if bad := [text for values in columns.values() for text in values if ILLEGAL_CHARACTERS_RE.search(text)]:
        raise ValueError(f"XML cannot hold {head(bad)}")
    book = Workbook()
    sheet = book.active
    sheet.title = "tasks"
    for place, (name, values) in enumerate(columns.items(), 1):
        column = get_column_letter(place)
        sheet.column_dimensions[column].width = WIDTH.get(name, 24)
        sheet.column_dimensions[column].number_format = "@"  # of rows that annotators add
        for row, value in enumerate([name, *values], 1):
            if value:
                cell = sheet.cell(row, place, value)
                cell.data_type = "s"  # never a formula
                cell.number_format = "@"
        sheet.cell(1, place).font = Font(bold=True)
        if name == "same":
            choice = DataValidation("list", formula1='"y,n"', allow_blank=True, showErrorMessage=True)
            # down to the last row of an XLSX sheet, for rows that annotators add
            choice.add(f"{column}2:{column}1048576")
            sheet.add_data_validation(choice)
    sheet.freeze_panes = "A2"
    book.save(path)


def read_sheet(path: Path) -> pd.DataFrame:
    """Read a sheet as text, "" for blanks, by row of the file from 1; rows without any text are left out."""
    try:
        lines = list(_read_xlsx_lines(path) if path.suffix.lower() == ".xlsx" else _read_csv_lines(path))
    except (OSError, ValueError, KeyError, IndexError, BadZipFile, ParseError, csv.Error) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    if not lines:
        raise DataError(f"cannot read {path}: it is empty")
    (_, names), *rows = lines
    width = len(names)
    rows = [(row, cells) for row, cells in rows if any(cells)]
    if long := [row for row, cells in rows if any(cells[width:])]:
        raise DataError(
            f"cannot read {path}: {len(long)} rows have more cells than names, such as row {long[0]}"
        )
    cells = [(values + [""] * width)[:width] for _, values in rows]
    return pd.DataFrame(cells, index=[row for row, _ in rows], columns=names, dtype=object)


def _read_csv_lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Rows of a CSV file with their numbers. A spreadsheet program may have written it with semicolons."""
    try:
        content = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"cannot read {path}: it is not UTF-8; save it as “CSV UTF-8”, or as XLSX") from error
    separator = max(SEPARATORS, key=content.partition("\n")[0].count)
    lines = csv.reader(StringIO(content, newline=""), delimiter=separator, strict=True)
    for row, cells in enumerate(lines, 1):
        yield row, [unguarded(cell) for cell in cells]


def _read_xlsx_lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    if not HAS_XLSX:
        raise DataError(f"cannot read {path}: XLSX files need the extra: pip install 'erbayes[sheets]'")
    from openpyxl import load_workbook

    with path.open("rb") as file:  # openpyxl leaves a file open that it cannot read
        book = load_workbook(file, read_only=True, data_only=True)
        for row, cells in enumerate(book.worksheets[0].iter_rows(values_only=True), 1):
            # in XLSX files the id 7 is 7.0
            whole = [int(x) if isinstance(x, float) and x.is_integer() else x for x in cells]
            yield row, ["" if x is None else str(x) for x in whole]
