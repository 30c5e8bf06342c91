"""Formulas of regressions: what a text may say, and the matrices that the library formulaic makes of it.

formulaic runs parts of a formula as Python, so that a text from elsewhere could do anything. It is therefore
read here first, by `side ~ side`, and formulaic gets the tokens below and no others:

    side: [+ | -] item {sign item} and sign: + - * / : **
    item: number, feature, ( side ), or function ( side {, number} )
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from .._internal.errors import DataError, import_extra

FUNCTIONS = ("log", "sqrt", "exp", "center", "scale", "poly", "bs", "C")
SIGNS = {"+": 1, "-": 1, "*": 2, "/": 2, ":": 3, "**": 4}
"""Signs between items, with how tightly they bind."""
NAME, NUMBER = r"[^\W\d]\w*", r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?!\w)"
TOKEN = re.compile(rf"\s*({NAME}|{NUMBER}|\*\*|\Z|.)", re.DOTALL)
LETTERS, BRACKETS, COLUMNS, POWER = 1000, 50, 200, 9
"""Most letters, brackets, columns and power of a formula, which bound the time and memory that it takes."""
KNOWN = (
    f"a formula is y ~ x, of names of features, numbers, + - * / : ** ( ) and {', '.join(FUNCTIONS)}; a "
    "feature is named in letters, digits and _"
)


class Formula:
    """A formula that was read: the `names` of its features, and the `text` for formulaic.

    `levels`: number of distinct values of features, of which C makes as many columns.
    """

    def __init__(self, said: str, levels: Mapping[str, int]) -> None:
        self.said, self.levels, self.names = said, levels, dict[str, None]()
        self.text, self.token, self.start, self.end = "", "", 0, 0
        if len(said) > LETTERS:
            raise DataError(f"a formula has at most {LETTERS:,} letters, not {len(said):,}: {said[:50]}…")
        if said.count("(") > BRACKETS:
            raise DataError(f"a formula has at most {BRACKETS} brackets, not {said.count('(')}: {said[:50]}…")
        self._take()
        if self._read() > 1:
            raise self._refuse("one number is explained: name one on the left side")
        self._take("~")
        self._read()
        if self.token:
            raise self._refuse()

    def _refuse(self, why: str = KNOWN) -> DataError:
        at = f"at position {self.start + 1}, {self.token!r}" if self.token else "at its end"
        return DataError(f"{self.said!r} is not read {at}: {why}")

    def _take(self, token: str | None = None) -> str:
        """Go on to the next token, and return the last one, which is `token` if that is named."""
        last = self.token
        if token not in (None, last):
            raise self._refuse()
        found = TOKEN.match(self.said, self.end)
        assert found is not None  # any letter is a token, of which the callers take those that they know
        self.start, self.end, self.token = found.start(1), found.end(), found[1]
        # a function that is not next to its bracket is a feature to formulaic
        self.text += last + " " * (self.token != "(" or last not in FUNCTIONS)
        return last

    def _read(self, least: int = 0) -> int:
        """Read what binds more tightly than `least`, and return the most columns that it makes."""
        while self.token in ("+", "-"):
            self._take()
        columns = self._read_item()
        while SIGNS.get(self.token, 0) > least:
            sign = self._take()
            if sign == "**":
                columns = (1 + columns) ** self._read_whole(POWER) - 1
            else:
                more = self._read(SIGNS[sign])
                columns = columns * more + (sign != ":") * columns + (sign in "+-*") * more
            if columns > COLUMNS:
                raise self._refuse(f"it makes more than {COLUMNS} columns up to here")
        return columns

    def _read_item(self) -> int:
        """Read a number, a feature, a side in brackets or a call, and return its columns."""
        if self.token != "(" and not re.fullmatch(f"{NAME}|{NUMBER}", self.token):
            raise self._refuse()
        item, columns = self._take(), 1
        if item == "(":
            columns = self._read()
        elif item in FUNCTIONS and self.token == "(":
            self._take()
            columns = self._read_arguments(item)
        else:
            self.names |= {item: None} if re.match(NAME, item) else {}
            return 1
        self._take(")")
        return columns

    def _read_arguments(self, function: str) -> int:
        """Read what is between the brackets of a call, and return the columns that it makes."""
        if function == "C":  # of a feature, since values of others are not counted
            if not re.fullmatch(NAME, self.token):
                raise self._refuse()
            self.names[self.token] = None
            return self.levels.get(self._take(), 1)
        self._read()
        columns = 1
        while self.token == ",":
            self._take()
            if self.token in ("df", "degree"):
                self._take()
                self._take("=")
            columns *= self._read_whole(COLUMNS)
        return columns

    def _read_whole(self, most: int) -> int:
        if not re.fullmatch("[0-9]+", self.token) or not 1 <= int(self.token) <= most:
            raise self._refuse(f"here is a whole number from 1 to {most}")
        return int(self._take())


def make_matrices(said: str, spec: Any, rows: pd.DataFrame) -> Any:
    """Return the matrices y and X of a formula's text, or of what another fit has learned from it."""
    formulaic = import_extra("formulaic", "regressions need formulaic", "formulas")
    try:
        with np.errstate(divide="ignore", invalid="ignore"):  # refused below
            found = formulaic.model_matrix(spec, rows, na_action="ignore", context={"sqrt": np.sqrt})
        sides = [np.asarray(part, dtype=float) for part in (found.lhs, found.rhs)]
    except Exception as error:  # Python's own as well, since formulaic hands parts of a formula to it
        raise DataError(f"{said!r} is not read: {str(error).partition(chr(10))[0]}") from error
    if sides[0].shape[1:] != (1,) or not sides[1].shape[1]:
        raise DataError(f"{said!r} needs one number on its left side, and a feature or 1 on its right side")
    if not all(np.isfinite(part).all() for part in sides):
        raise DataError(f"{said!r}: some entities or clusters have no finite value, such as the log of 0")
    return found
