"""What a command has found, as text in each format: tables and pictures that the shell prints or writes."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, Literal

import typer

import erbayes as eb

from .._internal.errors import DataError, Grade, Sentence
from .lazily import answer_faults, digits, files, pd
from .options import PICTURES, flag, message, option, panel, say

WIDTH = 10_000
"""Characters of a line that no terminal limits, more than a table has, as rich wants some number."""
GAP = 3
"""Blanks between columns."""
SPARE = ("df", "ess_bulk", "r_hat", "kind", "se", "se_bound", "sd", "n_eff")
"""Columns that a narrow terminal does without, in this order."""
PHONE = '<meta name="viewport" content="width=device-width, initial-scale=1">'
"""What keeps a phone from showing a page as wide as a desk's."""


Format = Literal["table", "csv", "json"]


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
        if format == "csv":
            return render_csv(self.table, self.ids)
        if format == "table":
            table = render_plain(self.table if self.shown is None else self.shown, width, self.spare)
            return "\n".join([*self.sentences, "", table] if self.sentences else [table])
        rows = blank_missing(self.table).to_dict("records")
        for row in rows:  # JSON has neither NaN nor infinity
            row |= {k: None for k, x in row.items() if isinstance(x, float) and not math.isfinite(x)}
        alarms = [{"grade": alarm.grade.value, "text": alarm} for alarm in self.alarms]
        answer = {"sentences": self.sentences, "estimates": rows, "alarms": alarms, "read": self.read}
        return json.dumps(answer if self.read else rows, indent=1, ensure_ascii=False) + "\n"


def count_read(sample: eb.Sample, **more: Any) -> dict[str, Any]:
    """Return counts of what was drawn, labelled and predicted, after `more` facts about it."""
    units = sample.units
    counts = {"draws": len(sample), "labelled_units": len(units), "labelled_records": int(units.n.sum())}
    if units.known is not None:
        sizes = units.known.size @ units.known.count
        counts |= {"records": int(sizes), "clusters": int(units.known.count.sum())}
    return more | counts


def blank_missing(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose missing values are None, so that integers next to them are still integers."""
    return table.astype(object).where(table.notna(), None)


def render_csv(table: pd.DataFrame, ids: bool = False) -> str:
    """Return a table as CSV in which no spreadsheet runs a cell, or as it is, if programs read its `ids`."""
    safe, formulas = digits.guard(table)
    if formulas:
        said = "an apostrophe before them keeps spreadsheet programs from running them"
        if ids:
            said = "they stay as they are for programs, so that no spreadsheet program should open the file"
        message(f"note: {len(formulas):,} cells begin like a formula, such as {formulas[0]!r}: {said}")
    return (table if ids else safe).to_csv(index=False)


def render_plain(table: pd.DataFrame, width: int = 0, spare: Sequence[str] = SPARE) -> str:
    """Return a table in aligned columns; in a terminal of some `width` as few of the `spare` ones as must be.

    Text is folded at blanks, but no word is cut, so that keys can be typed.
    """
    from rich import box  # rich is loaded by the first table
    from rich.console import Console
    from rich.table import Table

    aligned = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    text = digits.shown(table)
    if "level" in text and text["level"].nunique() == 1:  # which then stands in the heads of intervals
        level = f"{100 * float(text['level'].iloc[0]):g} %"
        text = text.drop(columns="level").rename(columns={x: f"{x} {level}" for x in ("lower", "upper")})
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


FAULTS = 20
"""Number of faults that are printed, so that they fit a screen; a file has all."""
ENDINGS: tuple[Format, ...] = ("csv", "json")
"""Endings of files that decide their format; those of other files are .txt or none."""


def tabulate_labels(labels: eb.labels.Labels) -> pd.DataFrame:
    """Return what came back from annotators as one long table: a row per annotator, or pair, and quantity."""
    agreement = labels.agreement()
    annotators = agreement["annotators"] + ": " + agreement["share"]
    faults = labels.problems["fault"].map(lambda fault: fault.value).value_counts().rename("times")
    tables = {
        "tasks": labels.summary(),
        "answers": labels.annotators(),
        "agreement": agreement.drop(columns="share").assign(annotators=annotators),
        "faults": faults.rename_axis("fault").reset_index(),
    }
    long = {name: table.melt(table.columns[0], var_name="what") for name, table in tables.items()}
    parts = [table.set_axis(["of", "what", "value"], axis=1) for table in long.values()]
    return pd.concat(parts, keys=long, names=["about", None]).reset_index("about").reset_index(drop=True)


def show_labels(labels: eb.labels.Labels) -> None:
    """Print what came back from annotators: their tasks, the faults in their answers, their agreement."""
    records, draws = labels.stars.answers, len(labels.folder.drawn.table)
    counts = f"{len(records):,} records of {records['entity'].nunique():,} entities"
    by = f"by {draws - len(labels.lost):,} of {draws:,} draws"
    typer.echo(f"{counts}, {by}; answers in {', '.join(labels.files) or 'no file'}\n")
    answered = [labels.annotators()] if len(records) else []
    typer.echo("\n".join(map(render_plain, [labels.summary(), *answered])))
    if len(labels.unresolved):
        states = pd.Series([state.value for state in labels.unresolved["state"]]).value_counts()
        counts = ", ".join(f"{n:,} {state}" for state, n in states.items())
        typer.echo(f"tasks without a complete answer: {counts}\n")
    show_cautions(labels)
    if len(labels.pairs):
        typer.echo(render_plain(labels.agreement()))
    # unanswered tasks are counted above
    faults = labels.problems[labels.problems["fault"] != answer_faults.Fault.UNANSWERED]
    faults = faults.assign(fault=[fault.value for fault in faults["fault"]])
    if len(faults):
        times = faults["fault"].value_counts().rename_axis("fault").rename("times").reset_index()
        typer.echo(render_plain(times[["times", "fault"]]))
        typer.echo(render_plain(faults.head(FAULTS).astype(str)))
    if len(faults) > FAULTS:
        typer.echo(f"and {len(faults) - FAULTS:,} more, which --problems FILE lists")


def show_cautions(labels: eb.labels.Labels) -> list[Sentence]:
    """Print the cautions about annotators, and return them as alarms."""
    return [say(Sentence(caution, Grade.CAUTION)) for caution in labels.cautions()]


@panel("Output")
class Formatted:
    """Options of the format of an answer, and of its file if the command writes one."""

    format: Format | None = option(
        "table (the default), csv or json; of a file by its ending.", "-f", metavar="FORMAT"
    )

    @property
    def _file(self) -> Path | None:
        return getattr(self, "output", None)

    @property
    def chosen(self) -> Format:
        """Return the format, which the ending of a file decides."""
        ending = "" if self._file is None else self._file.suffix.lower().removeprefix(".")
        return next((known for known in ENDINGS if known == ending), self.format or "table")

    @property
    def _width(self) -> int:
        """Characters of a line of the terminal; 0 if a file or another program reads the table."""
        return get_terminal_size().columns if self._file is None and sys.stdout.isatty() else 0

    def _write(self, text: str) -> None:
        if self._file is None:
            typer.echo(text, nl=False)
        else:
            files.write_text(self._file, text)

    def show(self, answer: Answer) -> None:
        """Print or write an answer. Sentences go to standard error if the format has no place for them."""
        if self.chosen == "csv":
            for sentence in answer.sentences:
                message(sentence)
        self._write(answer.render(self.chosen, self._width))

    def show_sentences(self, answer: Answer) -> None:
        """Print or write an answer, of which the plain format has the sentences alone."""
        if self.chosen == "table":
            self._write("".join(f"{sentence}\n" for sentence in answer.sentences))
        else:
            self.show(answer)


@panel()
class Printing(Formatted):
    output: Path | None = option(
        "File to write instead of printing. An old one is replaced once it is complete.",
        "-o",
        ends=(*ENDINGS, "txt", ""),
    )

    def __post_init__(self) -> None:
        if self.format not in (None, self.chosen):
            raise DataError(
                f"--output {self.output} ends in .{self.chosen}: leave out --format, or end it in .txt"
            )


@panel()
class Judging(Printing):
    """Options of an answer that a program may act on."""

    strict: bool = flag("Exit with status 1 if an alarm is a fault.")

    def show(self, answer: Answer) -> None:
        """Print or write an answer, and exit with 1 if an alarm is a fault and --strict is there."""
        super().show(answer)
        if self.strict and any(alarm.grade is Grade.FAULT for alarm in answer.alarms):
            raise typer.Exit(1)


@panel("Output")
class Picture:
    picture: Path | None = option(
        "Picture to write; .html shows values under the pointer (extra explore).", ends=[*PICTURES, "html"]
    )

    def save(self, result: Any, level: float, kind: eb.intervals.Kind | None = None) -> None:
        """Write the picture, if the option names a file, in HTML the one to explore."""
        path, asked = self.picture, dict[str, Any]({} if kind is None else {"kind": kind})
        if path is not None and path.suffix.lower() == ".html":
            # a fixed id, so that the same result makes the same file
            page = result.explore(level=level, **asked).to_html({"displayModeBar": False}, div_id="picture")
            files.write_text(path, page.replace("<head>", f"<head>{PHONE}", 1))
        elif path is not None:
            figure = result.plot(level=level, **asked).get_figure(root=True)
            with files.replacing(path) as new:
                figure.savefig(new)
