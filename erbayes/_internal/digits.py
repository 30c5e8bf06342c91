"""Text of numbers, ids, cells and dataclasses: as many digits as are known, and as a line has room for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from decimal import ROUND_FLOOR, Decimal
from html import escape
from typing import Any

import numpy as np
import pandas as pd

MOST = 4
"""The largest number of decimals, because samples of some hundred draws settle no more."""
NONE = "–"
"""The text of a missing number."""
LONGEST = 40
"""Number of characters of an id that are shown, so that its line has room for more."""
UNCERTAINTIES = ("se", "se_bound", "sd")
"""Columns of the uncertainty of the estimate."""
MEASURED = ("estimate", "lower", "upper", "worst", "best", "difference", "least", "most")
"""Columns in the unit of the estimate. They have as many decimals as it has."""
COUNTED = ("df", "n_eff", "ess_bulk")
"""Columns that are shown without decimals."""


def _find_leading_power(x: float) -> int:
    return int(np.floor(np.log10(abs(x))))


def decimals(value: float, uncertainty: float = np.nan) -> int:
    """Return how many decimals, 0 to `MOST`, show two digits of the uncertainty and four at most."""
    known = np.isfinite(value) and value != 0
    most = 3 - _find_leading_power(value) if known else MOST
    if np.isfinite(uncertainty) and uncertainty > 0:
        most = min(most, 1 - _find_leading_power(uncertainty))
    return int(np.clip(most, 0, MOST))


def format_number(value: Any, places: int | None = None) -> str:
    """Return the text of a value, a number with `places` decimals or as many as it alone warrants."""
    if value is None or value is pd.NA:
        return NONE
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        return str(value)
    if np.isnan(value):
        return NONE
    if np.isinf(value):
        return "∞" if value > 0 else "-∞"
    rounded = f"{value:z,.{decimals(float(value)) if places is None else places}f}"
    return rounded.rstrip("0").rstrip(".") if places is None and "." in rounded else rounded


def error(value: float, places: int) -> str:
    """Return the text of a standard error, which is "0" only if the standard error is 0."""
    rounds_away = np.isfinite(value) and 0 < value < 0.5 * 10.0**-places
    return "0" if value == 0 else f"{value:.1g}" if rounds_away else format_number(value, places)


def round_to_error(value: float, uncertainty: float, shown: bool = False) -> str:
    """Return the text of a value with the digits above its error, or with `MOST` decimals if it has none.

    If the error is `shown`, it stands in parentheses, in units of the last digit.

    >>> round_to_error(0.93127, 0.0081), round_to_error(0.93127, 0.0), round_to_error(0.0304, 0.0021, True)
    ('0.931', '0.9313', '0.030(2)')
    """
    if np.isnan(value):
        return NONE
    if not (np.isfinite(uncertainty) and uncertainty > 0):
        return f"{value:z.{MOST}f}"
    # an error of .0096 has one digit less, as it rounds to .01, not to .010
    first = float(f"{uncertainty:.0e}") if shown else uncertainty
    places = int(np.clip(-_find_leading_power(first), 0, 9))
    return f"{value:z.{places}f}" + (f"({uncertainty * 10**places:.0f})" if shown else "")


def shorten_down(value: np.floating[Any], below: np.floating[Any]) -> float:
    """Return the number of fewest digits between `below` and a value, itself included, in their precision.

    >>> shorten_down(np.float64(0.98104062), np.float64(0.981038))
    0.98104
    """
    exact = Decimal(str(value))
    for digits in range(1, len(exact.as_tuple().digits)):
        last = Decimal(1).scaleb(exact.adjusted() - digits + 1)
        short = exact.quantize(last, ROUND_FLOOR)
        if below < type(value)(str(short)) <= value:
            return float(short)
    return float(exact)


def write_exactly(values: Sequence[float]) -> list[str]:
    """Return texts of numbers that can be typed for them."""
    return [NONE if np.isnan(x) else str(float(x)).removesuffix(".0") for x in values]


def shorten_id(x: Any) -> str:
    """Return the text of an id on one short line, without characters that cannot be seen."""
    line = "".join(c if c.isprintable() else "\ufffd" for c in str(x)[: LONGEST + 1])
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def describe(value: Any) -> str:
    """Return the name of a dataclass with its fields, long ones by their number of values."""
    told = ", ".join(f"{name}={text}" for name, text in _describe_fields(value).items())
    return f"{type(value).__name__}({told})"


class Brief:
    """A dataclass that prints as its fields (see `describe`), in notebooks as a small table."""

    __slots__ = ()
    __repr__ = describe

    def _repr_html_(self) -> str:
        return facts_to_html(type(self).__name__, _describe_fields(self))


def _describe_fields(value: Any) -> dict[str, str]:
    """Return the fields of a dataclass that are given, as text; none of another value."""

    def write(x: Any) -> str:
        if hasattr(x, "__len__") and not isinstance(x, str):
            return f"{len(x):,} {'rows' if isinstance(x, pd.DataFrame) else 'values'}"
        return str(getattr(x, "__name__", type(x).__name__) if callable(x) else getattr(x, "name", x))

    values = {f.name: getattr(value, f.name) for f in fields(value)} if is_dataclass(value) else {}
    return {name: write(x) for name, x in values.items() if x is not None and x is not False}


def facts_to_html(heading: str, facts: Mapping[str, str]) -> str:
    """Return facts as a small table under a heading."""
    rows = (f"<tr><td>{escape(k)}</td><td>{escape(v)}</td></tr>" for k, v in facts.items())
    return f"{heading}<table>{''.join(rows)}</table>"


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of text to print, each row with as many digits as its uncertainty warrants."""
    places = _choose_decimals(table) if "estimate" in table else None
    columns: dict[Any, list[str]] = {}
    for name in table:
        values = table[name].tolist()
        if places is not None and name in MEASURED:
            columns[name] = [format_number(x, n) for x, n in zip(values, places, strict=True)]
        elif places is not None and name in UNCERTAINTIES:
            columns[name] = [error(x, n) for x, n in zip(values, places, strict=True)]
        elif name in COUNTED:
            columns[name] = [format_number(x, 0) for x in values]
        elif name == "threshold" and pd.api.types.is_float_dtype(table[name]):
            columns[name] = write_exactly(values)
        else:
            columns[name] = [format_number(x) for x in values]
    return pd.DataFrame(columns, index=table.index, dtype=object)


def _choose_decimals(table: pd.DataFrame) -> Sequence[int]:
    uncertainty = pd.Series(np.nan, index=range(len(table)))
    for name in UNCERTAINTIES:
        if name in table:
            uncertainty = uncertainty.fillna(pd.Series(table[name].to_numpy(dtype=float)))
    if {"lower", "upper"} <= set(table):
        half = (table["upper"].to_numpy(dtype=float) - table["lower"].to_numpy(dtype=float)) / 2
        # a standard error of 0 says nothing about digits, while the interval does
        uncertainty = uncertainty.where(uncertainty > 0, half)
    return [decimals(x, u) for x, u in zip(table["estimate"].astype(float), uncertainty, strict=True)]


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
