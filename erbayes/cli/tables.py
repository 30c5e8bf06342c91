"""Files as the shell names them: FILE, FILE:COLUMNS, FILE@THRESHOLD, and which of their columns are meant."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .lazily import disk, pd, reading

if TYPE_CHECKING:
    from ..units.reading import Named

SAID = re.compile(r"(:(?P<columns>.+?))?(@(?P<threshold>[-+\d.eE]+))?", re.DOTALL)
"""What stands behind a file: its columns, such as :left,right,score, and the least score of a link: @14.7."""


class File(Path):
    """A path with what is said of the columns of its table.

    `said`: names of columns in the order that its kind of table has; `threshold`: the least score of a link;
    `hints`: names of columns of another table of the same matcher.
    """

    said: tuple[str, ...] = ()
    threshold: float | None = None
    hints: dict[str, Any] = {}  # noqa: RUF012  it is replaced, and never changed

    @classmethod
    def of(cls, path: str, words: str) -> File:
        """Return a path with what words say of its columns, such as :left,right,score@14.7."""
        file, match = cls(path), SAID.fullmatch(words)
        if match is None:
            raise typer.BadParameter(f"{words!r} behind {path!r} is not :COLUMNS, @THRESHOLD or both")
        file.said = tuple(next(csv.reader([match["columns"]]))) if match["columns"] else ()
        try:
            file.threshold = float(match["threshold"]) if match["threshold"] else None
        except ValueError as error:
            raise typer.BadParameter(f"{match['threshold']!r} behind {path!r} is not a number") from error
        return file

    @classmethod
    def parse(cls, text: str) -> File:
        """Return a file or folder that exists, with what the text says of its columns."""
        file = cls(text)
        if not file.exists():
            for start in (i for i, letter in enumerate(text) if letter in ":@"):
                if start and cls(text[:start]).exists() and SAID.fullmatch(text[start:]):
                    return cls.of(text[:start], text[start:])
            raise typer.BadParameter(f"Path {text!r} does not exist.")
        return file

    def in_words(self) -> str:
        """Return what is said of the columns, as `of` reads it."""
        line = StringIO()
        csv.writer(line, lineterminator="").writerow(self.said)
        columns = f":{line.getvalue()}" if self.said else ""
        return columns if self.threshold is None else f"{columns}@{self.threshold!r}"

    @classmethod
    def parse_file(cls, text: str) -> File:
        """Return a file, as `parse` does, and refuse a folder."""
        file = cls.parse(text)
        if file.is_dir():
            raise typer.BadParameter(f"File {text!r} is a directory.")
        return file


def read_named(path: Path, number: int) -> pd.DataFrame:
    """Read a file of so many columns, or those that are named behind it."""
    return disk.read_columns(path, number, path.said if isinstance(path, File) else ())


def name_columns(
    path: Path, *, record: Any = None, cluster: Any = None, links: Mapping[str, Any] | None = None
) -> Named:
    """Return what a path and options say of the columns of a prediction.

    `links`: edges, left, right, score and threshold of --edges.
    """
    given = dict(links or {})
    said, threshold = (path.said, path.threshold) if isinstance(path, File) else ((), None)
    threshold = given.get("threshold") if threshold is None else threshold
    of_links = given.get("edges") or len(said) == 3 or (isinstance(path, File) and path.threshold is not None)
    ids = [name.rpartition("+") for name in said]
    sources = tuple(source for source, _, _ in ids if source)
    columns = [column for _, _, column in ids]
    if of_links:
        ends = tuple(columns[:2]) or tuple(c for c in (given.get("left"), given.get("right")) if c)
        score = columns[2] if len(columns) == 3 else given.get("score")
        return reading.Named(ends=ends, sources=sources, score=score, threshold=threshold, links=True)
    if columns:
        record, cluster = (columns[0], columns[1]) if len(columns) == 2 else (record, columns[0])
    return reading.Named(
        record=record, cluster=cluster, sources=sources, score=given.get("score"), threshold=threshold
    )
