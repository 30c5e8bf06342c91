"""Files as the shell names them: FILE, FILE:COLUMNS, FILE@THRESHOLD, and which of their columns are meant."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .._internal.errors import DataError, head
from .lazily import column_roles, files, pd, readings, tables

if TYPE_CHECKING:
    from ..units.reading import Named

SAID = re.compile(r"(:(?P<columns>.+?))?(@(?P<threshold>[-+\d.eE]+))?", re.DOTALL)
"""What stands behind a file (columns, and the least score of a link)."""


class File(Path):
    """A path with what is said of the columns of its table.

    `said`: names of columns in the order that its kind of table has; `threshold`: the least score of a link;
    `hints`: names of columns of another table of the same matcher; `options`: those with which a folder was
    drawn from this file.
    """

    said: tuple[str, ...] = ()
    threshold: float | None = None
    hints: dict[str, Any] = {}  # noqa: RUF012  it is replaced, and never changed
    options: dict[str, Any] = {}  # noqa: RUF012

    @classmethod
    def of(cls, path: str, words: str) -> File:
        """Return a path with what words say of its columns, such as :left,right,score@14.7."""
        file, match = cls(path), SAID.fullmatch(words)
        if match is None:
            raise DataError(f"{words!r} behind {path!r} is not :COLUMNS, @THRESHOLD or both")
        try:
            file.said = tuple(next(csv.reader([match["columns"]]))) if match["columns"] else ()
            file.threshold = float(match["threshold"]) if match["threshold"] else None
        except (ValueError, csv.Error) as error:
            raise DataError(f"{words!r} behind {path!r} is not read: {error}") from error
        return file

    @classmethod
    def parse(cls, text: str) -> File:
        """Return a file or folder that exists, with what the text says of its columns."""
        file = cls(text)
        if not file.exists():
            for start in (i for i, letter in enumerate(text) if letter in ":@"):
                if start and cls(text[:start]).exists() and SAID.fullmatch(text[start:]):
                    try:
                        return cls.of(text[:start], text[start:])
                    except DataError as error:
                        raise typer.BadParameter(error.what) from error
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


def words_behind(path: Path) -> str:
    """Return what stands behind a file."""
    return path.in_words() if isinstance(path, File) else ""


def said_of(path: Path, most: int) -> tuple[str, ...]:
    """Return the columns that are named behind a file, and refuse more of them, or a threshold."""
    said, threshold = (path.said, path.threshold) if isinstance(path, File) else ((), None)
    if len(said) > most or threshold is not None:
        needed = f"{most} column{'s' if most > 1 else ''}" if most else "nothing"
        raise DataError(f"{path} takes {needed} behind its name, not {words_behind(path)}")
    return said


def read_named(path: Path, number: int) -> pd.DataFrame:
    """Read a file of so many columns, or those that are named behind it."""
    return files.read_columns(path, number, said_of(path, number))


def read_attributes(
    path: Path, record: str | None, records: pd.Index | None = None, known: pd.Index | None = None
) -> pd.DataFrame:
    """Read the rows of these records, or of all; a column may be named behind the file.

    `known`: records of another file, by which their column is found; by default `records`.
    """
    said = said_of(path, 1)
    known = records if known is None else known

    def choose(frame: pd.DataFrame) -> Any:
        tables.refuse_names(said, list(frame.columns), str(path))
        named = said[0] if said else record if record in frame.columns else None
        near = None if known is None or not len(known) else readings.Near({known.name: known.astype("str")})
        return column_roles.find_record(frame, near, f"attributes {path}", named)

    return files.read_rows(path, choose, records)


def name_columns(
    path: Path, *, record: Any = None, cluster: Any = None, links: Mapping[str, Any] | None = None
) -> Named:
    """Return what a path and options say of the columns of a prediction.

    `links`: edges, left, right, score and threshold of --edges.
    """
    of_folder = path.options if isinstance(path, File) else {}
    given = of_folder | {name: value for name, value in (links or {}).items() if value not in (None, False)}
    record, cluster = record or given.get("record"), cluster or given.get("cluster")
    said, behind = (path.said, path.threshold) if isinstance(path, File) else ((), None)
    if len(said) > 3:
        raise DataError(f"{path} takes three columns behind its name at most, not {head(said, 20)}")
    options = {"threshold": behind} | ({"left": said, "right": said, "cluster": said} if said else {})
    options |= {"score": said} if len(said) == 3 else {}
    for name, value in options.items():
        if value is not None and (cluster if name == "cluster" else given.get(name)) is not None:
            raise DataError(f"{path}: --{name} and what stands behind the file both name it: leave out one")
    threshold = given.get("threshold") if behind is None else behind
    ids = [name.rpartition("+") for name in said]
    sources, columns = tuple(source for source, _, _ in ids if source), [column for _, _, column in ids]
    if any(map(given.get, ("edges", "left", "right"))) or len(said) == 3 or behind is not None:
        if cluster is not None:
            raise DataError(f"{path} has links, which have no --cluster: leave it out")
        ends = tuple(columns[:2]) or tuple(c for c in (given.get("left"), given.get("right")) if c)
        if len(ends) == 1:
            raise DataError(
                f"{path}: a link has two records: name the columns of both, as in {path}:LEFT,RIGHT"
            )
        score = columns[2] if len(columns) == 3 else given.get("score")
        if len(columns) == 3 and "=" in columns[2]:
            score, _, word = columns[2].partition("=")
            return readings.Named(ends=ends, sources=sources, score=score, word=word, links=True)
        return readings.Named(ends=ends, sources=sources, score=score, threshold=threshold, links=True)
    if columns:
        record, cluster = (columns[0], columns[1]) if len(columns) == 2 else (record, columns[0])
    return readings.Named(
        record=record, cluster=cluster, sources=sources, score=given.get("score"), threshold=threshold
    )
