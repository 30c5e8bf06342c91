"""Tables and pictures that the shell prints or writes."""

from __future__ import annotations

import sys
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

import typer

import erbayes as eb

from .._internal.errors import DataError, Grade, Sentence
from .answers import PHONE, Answer, Format, render_plain
from .lazily import answer_faults, files, pd
from .options import explored_option, flag, message, option, panel, say

ENDINGS = ("csv", "json", "html")
"""Endings of files that decide their format; those of other files are .txt or none."""
FAULTS = 20
"""Number of faults that are printed, so that they fit a screen; a file has all."""


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
    typer.echo(render_plain(labels.summary()))
    typer.echo(render_plain(labels.annotators()))
    if len(labels.unresolved):
        states = pd.Series([state.value for state in labels.unresolved["state"]]).value_counts()
        counts = ", ".join(f"{n:,} {state}" for state, n in states.items())
        typer.echo(f"{len(labels.unresolved):,} tasks without a complete answer: {counts}\n")
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


def find_cautions(labels: eb.labels.Labels) -> list[Sentence]:
    """Return the cautions about annotators, as alarms."""
    return [Sentence(caution, Grade.CAUTION) for caution in labels.cautions()]


def show_cautions(labels: eb.labels.Labels) -> None:
    """Print the cautions about annotators on standard error."""
    for caution in find_cautions(labels):
        say(caution)


@panel("Output")
class Formatted:
    format: Format | None = option(
        "table (the default), csv, json or html; of a file by its ending.", "-f", metavar="FORMAT"
    )

    @property
    def chosen(self) -> Format:
        return self.format or Format.TABLE

    @property
    def for_people(self) -> bool:
        """Return whether people read the format, and not programs."""
        return self.chosen in (Format.TABLE, Format.HTML)

    @property
    def _width(self) -> int:
        """Characters of a line of the terminal; 0 if a file or another program reads the table."""
        return get_terminal_size().columns if sys.stdout.isatty() else 0

    def _write(self, text: str) -> None:
        typer.echo(text, nl=False)

    def show(self, answer: Answer) -> None:
        """Print or write an answer. Sentences go to standard error if the format has no place for them."""
        if self.chosen is Format.CSV:
            for sentence in answer.sentences:
                message(sentence)
        self._write(answer.render(self.chosen, self._width))

    def show_sentences(self, answer: Answer) -> None:
        """Print or write an answer, of which the plain format has the sentences alone."""
        if self.chosen is Format.TABLE:
            self._write("".join(f"{sentence}\n" for sentence in answer.sentences))
        else:
            self.show(answer)


@panel()
class Printing(Formatted):
    """Options of a table's format and file."""

    output: Path | None = option(
        "File to write instead of printing. An old one is replaced once it is complete.",
        "-o",
        ends=(*ENDINGS, "txt", ""),
    )

    def __post_init__(self) -> None:
        if self.format not in (None, self.chosen):
            ending = self.chosen.value
            raise DataError(
                f"--output {self.output} ends in .{ending}: leave out --format, or end it in .txt"
            )

    @property
    def chosen(self) -> Format:
        ending = "" if self.output is None else self.output.suffix[1:].lower()
        return Format(ending) if ending in ENDINGS else super().chosen

    @property
    def _width(self) -> int:
        return 0 if self.output is not None else super()._width

    def _write(self, text: str) -> None:
        if self.output is None:
            super()._write(text)
        else:
            files.write_text(self.output, text)


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
    """The option of a picture of a result that can be explored."""

    picture: Path | None = explored_option("Picture to write")

    def save(self, result: Any, level: float) -> None:
        """Write the picture, if the option names a file."""
        if self.picture is not None:
            save_picture(result, self.picture, level)


def save_picture(result: Any, path: Path, level: float) -> None:
    """Write the picture of a result to a file, in HTML the one to explore."""
    if path.suffix.lower() == ".html":
        # a fixed id, so that the same result makes the same file
        page = result.explore(level=level).to_html({"displayModeBar": False}, div_id="picture")
        files.write_text(path, page.replace("<head>", f"<head>{PHONE}", 1))
    else:
        result.plot(level=level).get_figure(root=True).savefig(path)
