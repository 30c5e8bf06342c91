"""Sheets for annotators: tables of text as CSV and XLSX files, in which nothing from the data runs.

A spreadsheet program takes text such as =1+1 in a CSV file for a formula, and turns the id 007 into 7. Cells
of a CSV file that it would change therefore start with an apostrophe, which is taken off when they are read.
Cells of an XLSX file are marked as text, so that they need no apostrophe.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from xml.etree.ElementTree import ParseError
from zipfile import BadZipFile

import pandas as pd

from ..._internal.cells import begins_formula
from ..._internal.errors import DataError, head, printable

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
    text = {str(name): _convert_to_text(table[name]) for name in table.columns}
    shown = {
        # without control characters, and without halves of surrogate pairs
        name: column if name in exact else [printable(cell).replace("\r", " ") for cell in column]
        for name, column in text.items()
    }
    ids = [id for name in exact for id in text[name]]
    lost = [id for id in ids if not id.strip() or any("\ud800" <= sign <= "\udfff" for sign in id)]
    if not lost:
        try:
            (_write_xlsx if path.suffix == ".xlsx" else _write_csv)(shown, path)
        except ValueError:  # control characters, which XML cannot hold
            lost = [id for id in ids if not id.isprintable()]
        else:
            # only reading the file again shows that its format has changed no id
            back = read_sheet(path)
            read = [id for name in exact for id in back[name]]
            lost = [id for id, other in zip(ids, read, strict=True) if id != other]
    if lost:
        raise DataError(
            f"{len(lost)} ids cannot be written to {path.suffix[1:].upper()} files, such as {head(lost)}: "
            "give them other ids"
        )


def _convert_to_text(column: pd.Series) -> list[str]:
    """Return the values of a column as text, missing ones as blanks."""
    return ["" if missing else str(value) for value, missing in zip(column, column.isna(), strict=True)]


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
    for number, (name, values) in enumerate(columns.items(), 1):
        column = get_column_letter(number)
        sheet.column_dimensions[column].width = WIDTH.get(name, 24)
        sheet.column_dimensions[column].number_format = "@"  # of rows that annotators add
        for row, value in enumerate([name, *values], 1):
            if value:
                cell = sheet.cell(row, number, value)
                cell.data_type = "s"  # never a formula
                cell.number_format = "@"
        sheet.cell(1, number).font = Font(bold=True)
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
        lines = list(_read_xlsx_lines(path) if path.suffix == ".xlsx" else _read_csv_lines(path))
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
    """Rows of the first sheet of an XLSX file with their numbers."""
    if not HAS_XLSX:
        raise DataError(
            f"cannot read {path}: XLSX files need the extra sheets: pip install 'erbayes[sheets]'"
        )
    from openpyxl import load_workbook

    with path.open("rb") as file:  # openpyxl leaves a file open that it cannot read
        book = load_workbook(file, read_only=True, data_only=True)
        for row, cells in enumerate(book.worksheets[0].iter_rows(values_only=True), 1):
            yield row, [_as_text(cell) for cell in cells]


def _as_text(cell: object) -> str:
    """Return the text of a cell, integers without a decimal point."""
    # in XLSX files the id 7 is 7.0
    integer = isinstance(cell, float) and cell.is_integer()
    return "" if cell is None else str(int(cell) if integer else cell)  # type: ignore[call-overload]
