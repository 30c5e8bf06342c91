"""Tables printed or written by the shell."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from enum import Enum
from io import StringIO
from pathlib import Path
from shutil import get_terminal_size

import typer

import erbayes as eb

from .lazily import answer_faults, digits, disk, pd
from .options import message, option, panel

FAULTS = 20
"""Number of faults that are printed, so that they fit a screen; a file has all."""
WIDTH = 10_000
"""Characters of a line that no terminal limits, more than a table has, as rich wants some number."""


class Format(Enum):
    """Format of a printed table."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    HTML = "html"


def _render_table(table: pd.DataFrame, format: Format, width: int = 0) -> str:
    match format:
        case Format.CSV:
            return table.to_csv(index=False)
        case Format.HTML:
            with pd.option_context("display.max_colwidth", None):
                return digits.shown(table).to_html(index=False) + "\n"
        case Format.JSON:
            rows = [
                # JSON has neither NaN nor infinity
                {k: None if isinstance(x, float) and not math.isfinite(x) else x for k, x in row.items()}
                for row in table.to_dict("records")
            ]
            return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
        case Format.TABLE:
            return _render_plain(table, width=width)


def _render_plain(table: pd.DataFrame, heads: Mapping[str, str] | None = None, width: int = 0) -> str:
    """Text of a table in aligned columns. `heads` replaces names of columns."""
    from rich import box  # rich is loaded by the first table
    from rich.console import Console
    from rich.table import Table

    aligned = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in map(str, table):
        text = table[name].map(lambda x: isinstance(x, str)).any()
        aligned.add_column(
            (heads or {}).get(name, name), justify="left" if text else "right", no_wrap=not text
        )
    for row in digits.shown(table).itertuples(index=False):
        aligned.add_row(*row)
    # long cells are folded in a terminal only, and no name is taken for markup
    console = Console(file=StringIO(), width=width or WIDTH, markup=False, highlight=False, emoji=False)
    with console.capture() as printed:
        console.print(aligned)
    return "".join(f"{line.rstrip()}\n" for line in printed.get().splitlines())


def blank_missing(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose missing values are None, so that integers next to them are still integers."""
    return table.astype(object).where(table.notna(), None)


def tabulate_labels(labels: eb.labels.Labels) -> pd.DataFrame:
    """Return what came back from annotators as one long table: a row per annotator, or pair, and quantity."""
    agreement = labels.agreement()
    faults = labels.problems["fault"].map(lambda fault: fault.value).value_counts().rename("times")
    tables = {
        "tasks": labels.summary(),
        "answers": labels.annotators(),
        "agreement": agreement.assign(annotators=agreement["annotators"] + ": " + agreement["share"]).drop(
            columns="share"
        ),
        "faults": faults.rename_axis("fault").reset_index(),
    }
    long = [
        table.melt(table.columns[0], var_name="what")
        .set_axis(["of", "what", "value"], axis=1)
        .assign(about=name)
        for name, table in tables.items()
    ]
    return pd.concat(long, ignore_index=True)[["about", "of", "what", "value"]]


def show_labels(labels: eb.labels.Labels) -> None:
    """Print what came back from annotators: their tasks, the faults in their answers, their agreement."""
    records, draws = labels.stars.answers, len(labels.folder.drawn.table)
    typer.echo(
        f"{len(records):,} records of {records['entity'].nunique():,} entities, by "
        f"{draws - len(labels.lost):,} of {draws:,} draws; "
        f"answers in {', '.join(labels.files) or 'no file'}\n"
    )
    typer.echo(_render_plain(labels.summary()))
    typer.echo(_render_plain(labels.annotators()))
    if len(labels.unresolved):
        states = pd.Series([state.value for state in labels.unresolved["state"]]).value_counts()
        counts = ", ".join(f"{n:,} {state}" for state, n in states.items())
        typer.echo(f"{len(labels.unresolved):,} tasks without a complete answer: {counts}\n")
    show_cautions(labels)
    if len(labels.pairs):
        typer.echo(_render_plain(labels.agreement()))
    faults = labels.problems[
        labels.problems["fault"] != answer_faults.Fault.UNANSWERED
    ]  # these are counted above
    faults = faults.assign(fault=[fault.value for fault in faults["fault"]])
    if len(faults):
        times = faults["fault"].value_counts().rename_axis("fault").rename("times").reset_index()
        typer.echo(_render_plain(times[["times", "fault"]]))
        typer.echo(_render_plain(faults.head(FAULTS).astype(str)))
    if len(faults) > FAULTS:
        typer.echo(f"and {len(faults) - FAULTS:,} more, which --problems FILE lists")


def show_cautions(labels: eb.labels.Labels) -> None:
    """Print the reasons to doubt the work of annotators on standard error."""
    for caution in labels.cautions():
        message(f"caution: {caution}")


@panel("Output")
class Formatted:
    """Option of a table's format."""

    format: Format = option("table, csv, json or html.", "-f", default=Format.TABLE, metavar="FORMAT")

    @property
    def _width(self) -> int:
        """Characters of a line of the terminal; 0 if a file or another program reads the table."""
        return get_terminal_size().columns if sys.stdout.isatty() else 0

    def _write(self, text: str) -> None:
        typer.echo(text, nl=False)

    def show(self, table: pd.DataFrame) -> None:
        """Print or write a table."""
        self._write(_render_table(table, self.format, self._width))

    def show_sentences(self, sentences: Sequence[str], table: pd.DataFrame) -> None:
        """Print or write sentences. Formats other than the plain one show the table."""
        if self.format is Format.TABLE:
            self._write("".join(f"{sentence}\n" for sentence in sentences))
        else:
            self.show(blank_missing(table))


@panel()
class Printing(Formatted):
    """Options of a table's format and file."""

    output: Path | None = option(
        "File to write instead of printing. An old one is replaced once it is complete.", "-o"
    )

    @property
    def _width(self) -> int:
        return 0 if self.output is not None else super()._width

    def _write(self, text: str) -> None:
        if self.output is None:
            super()._write(text)
            return
        with disk.replacing(self.output) as new:
            new.write_text(text, encoding="utf-8")

    def show_estimates(self, table: pd.DataFrame, level: float, method: str = "closed-form") -> None:
        """Print or write estimates. The plain table shows the level in its heads, others show the method."""
        if self.format is Format.TABLE:
            bounds = {bound: f"{bound} {100 * level:g} %" for bound in ("lower", "upper")}
            self._write(_render_plain(table.drop(columns="level"), bounds, self._width))
            return
        if "method" in table:  # of several engines
            self.show(table)
            return
        table.insert(list(table.columns).index("metric") + 1, "method", method)
        self.show(table)
