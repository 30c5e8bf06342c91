"""Text that a spreadsheet program would run: cells of tables that begin like a formula."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

_FORMULA = re.compile(r"'*(\s*[=+\-@＝＋－＠]|[\t\r\n])")
_SIGNED = re.compile(r"[+-](\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def begins_formula(text: str) -> bool:
    """Return whether a spreadsheet program may take text for a formula; a number with a sign is none."""
    return _FORMULA.match(text) is not None and _SIGNED.fullmatch(text) is None


def guard(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return a table with an apostrophe before text that begins like a formula, and this text."""
    formulas: list[str] = []

    def guarded(cell: Any) -> Any:
        if not isinstance(cell, str) or not begins_formula(cell):
            return cell
        formulas.append(cell)
        return f"'{cell}"

    text = table.select_dtypes(exclude="number").map(guarded)
    return table.assign(**text).rename(columns=guarded), formulas


def unguard(cell: Any) -> Any:
    """Return a cell of a table as it was before `guard`."""
    return cell[1:] if isinstance(cell, str) and cell[:1] == "'" and begins_formula(cell[1:]) else cell
