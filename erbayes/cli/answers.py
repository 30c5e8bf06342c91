"""What a command has found, as text in each format."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from html import escape
from io import StringIO
from typing import Any

import erbayes as eb

from .._internal.errors import Sentence
from .lazily import cells, digits, pd, reports
from .options import message

WIDTH = 10_000
"""Characters of a line that no terminal limits, more than a table has, as rich wants some number."""
GAP = 3
"""Blanks between columns."""
SPARE = ("df", "ess_bulk", "r_hat", "kind", "se", "se_bound", "sd", "n_eff")
"""Columns that a narrow terminal does without, in this order."""
PHONE = '<meta name="viewport" content="width=device-width, initial-scale=1">'
"""What keeps a phone from showing a page as wide as a desk's."""


class Format(Enum):
    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    HTML = "html"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A table, with `sentences` that say it, `alarms`, and counts of what was `read`.

    `shown`: the table for people, if theirs is another one; `spare`: what a narrow terminal does without;
    `ids`: the table has ids for programs.
    """

    table: pd.DataFrame
    sentences: Sequence[str] = ()
    alarms: Sequence[Sentence] = ()
    read: Mapping[str, Any] = field(default_factory=dict)
    shown: pd.DataFrame | None = None
    spare: Sequence[str] = SPARE
    ids: bool = False

    def render(self, format: Format, width: int) -> str:
        """Return all of it as text; CSV has the table alone, as has JSON if nothing was read."""
        shown = self.table if self.shown is None else self.shown
        match format:
            case Format.CSV:
                return render_csv(self.table, self.ids)
            case Format.JSON:
                rows = list_rows(self.table)
                alarms = [{"grade": alarm.grade.value, "text": alarm} for alarm in self.alarms]
                answer = {"sentences": self.sentences, "estimates": rows, "alarms": alarms, "read": self.read}
                return json.dumps(answer if self.read else rows, indent=1, ensure_ascii=False) + "\n"
            case Format.HTML:
                return _render_page(_name_level(digits.shown(shown)), self.sentences, self.alarms)
            case Format.TABLE:
                said = "".join(f"{sentence}\n" for sentence in self.sentences)
                return f"{f'{said}\n' if said else ''}{render_plain(shown, width, self.spare)}"


def _name_level(text: pd.DataFrame) -> pd.DataFrame:
    """Return the text of a table with the level of intervals in its heads, if all have one."""
    if "level" not in text or text["level"].nunique() != 1:
        return text
    level = f"{100 * float(text['level'].iloc[0]):g} %"
    return text.drop(columns="level").rename(columns={x: f"{x} {level}" for x in ("lower", "upper")})


def _render_page(table: pd.DataFrame, sentences: Sequence[str], alarms: Sequence[Sentence]) -> str:
    """Return a page in the style of reports."""
    said = [f'<p class="headline">{escape(sentence)}</p>' for sentence in sentences]
    for alarm in alarms:
        grade = alarm.grade.value
        said.append(f'<div class="alarms {grade}"><p>{grade}: {escape(alarm)}</p></div>')
    with pd.option_context("display.max_colwidth", None):
        rows = table.to_html(index=False, border=0)
    head = f'<meta charset="utf-8">{PHONE}<title>erbayes</title>\n<style>\n{reports.read_style()}</style>'
    body = "\n".join([*said, f'<div class="wide">{rows}</div>'])
    return f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{body}\n</body>\n</html>\n'


def count_read(sample: eb.Sample, **more: Any) -> dict[str, Any]:
    """Return counts of what was drawn, labelled and predicted, after `more` facts about it."""
    units = sample.units
    counts = {
        "draws": len(sample),
        "labelled_units": len(units),
        "labelled_records": int(units.n.sum()),
    }
    if units.known is not None:
        sizes = units.known.size @ units.known.count
        counts |= {"records": int(sizes), "clusters": int(units.known.count.sum())}
    return more | counts


def list_rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table for JSON, which has neither NaN nor infinity."""
    return [
        {str(k): None if isinstance(x, float) and not math.isfinite(x) else x for k, x in row.items()}
        for row in blank_missing(table).to_dict("records")
    ]


def blank_missing(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose missing values are None, so that integers next to them are still integers."""
    return table.astype(object).where(table.notna(), None)


def render_csv(table: pd.DataFrame, ids: bool = False) -> str:
    """Return a table as CSV in which no spreadsheet program runs a cell, and say where one would.

    `ids`: the table is one for programs, whose ids stay as they are.
    """
    safe, formulas = cells.guard(table)
    if formulas:
        said = "an apostrophe before them keeps spreadsheet programs from running them"
        if ids:
            said = "they stay as they are for programs, so that no spreadsheet program should open the file"
        message(f"note: {len(formulas):,} cells begin like a formula, such as {formulas[0]!r}: {said}")
    safe = table if ids else safe
    text: str = safe.to_csv(index=False)
    return text


def render_plain(table: pd.DataFrame, width: int = 0, spare: Sequence[str] = SPARE) -> str:
    """Return a table in aligned columns; in a terminal of some `width` as few of the `spare` ones as must be.

    Text is folded at blanks, but no word is cut, so that keys can be typed.
    """
    from rich import box  # rich is loaded by the first table
    from rich.console import Console
    from rich.table import Table

    aligned = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    text = _name_level(digits.shown(table))
    widths = _fit(text, width or WIDTH, spare)
    if left_out := [str(name) for name in text if name not in widths]:
        message(f"note: {width} characters have no room for {', '.join(left_out)}: see --format csv")
    for head, fitting in widths.items():
        words = head in table and table[head].map(lambda cell: isinstance(cell, str)).any()
        aligned.add_column(head, justify="left" if words else "right", width=fitting)
    for row in text[[*widths]].itertuples(index=False):
        aligned.add_row(*row)
    # no name is taken for markup
    console = Console(file=StringIO(), width=WIDTH, markup=False, highlight=False, emoji=False)
    with console.capture() as printed:
        console.print(aligned)
    return "".join(f"{line.rstrip()}\n" for line in printed.get().splitlines())


def _fit(text: pd.DataFrame, width: int, spare: Sequence[str]) -> dict[str, int]:
    """Return the width of each column that fits into `width` characters; no word is wider than its column."""
    from rich.cells import cell_len

    def fits() -> bool:
        return sum(widths.values()) + GAP * (len(widths) - 1) <= width

    widths = {head: max(map(cell_len, [head, *text[head]])) for head in map(str, text)}
    for name in spare:
        if name in widths and not fits():
            del widths[name]
    # numbers and heads are never cut
    least = {head: max(cell_len(x) for x in [head, *" ".join(text[head]).split()]) for head in widths}
    while not fits() and (wide := [head for head in widths if widths[head] > least[head]]):
        widths[max(wide, key=lambda head: widths[head])] -= 1
    return widths
