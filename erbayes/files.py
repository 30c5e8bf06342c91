"""Tables read from CSV, TSV and Parquet files; files written whole or not at all."""

from __future__ import annotations

import csv
import os
import re
import shutil
import signal
import sys
import threading
import zlib
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from pandas.io.common import get_handle  # type: ignore[import-not-found]

from .errors import DataError, Remedy
from .tables import refuse_columns, refuse_names

PARQUET = {".parquet", ".pq"}
CHOICES = {
    frozenset({"record", "cluster", "entity"}): Remedy.COLUMNS,
    frozenset({"left", "right"}): Remedy.SCORE,
}
"""What columns mean that can be named, and how."""
DEVICES = (Path("/dev"), Path("/proc"))
MEMORY = Path("/dev/shm")
"""Files there are regular ones, though among devices."""
LINKS = 40
"""As many symbolic links lead from one to the next, as in Linux."""


def read_columns(path: Path, columns: Mapping[str, str | None], spare: int = 0) -> pd.DataFrame:
    """Some columns of a table, ids as text.

    Integer columns become text, so that ids of a Parquet file meet those of a CSV file: ids are
    only compared for equality.

    Parameters
    ----------
    path : Path
        Parquet where its name ends in .parquet or .pq, tab-separated where it ends in .tsv, otherwise
        CSV; text may be compressed (.csv.gz).
    columns : mapping, meaning -> name
        None stands for the next column, from the left, that is not named; there must be no others then.
    spare : int
        How many others there may be.

    Raises
    ------
    DataError
        A file that cannot be read, that lacks columns, or that has more than can be told apart.
    """
    frame = _read(path)
    named = [c for c in columns.values() if c is not None]
    choices = {name: remedy for meaning, name in columns.items() if name for remedy in _choices({meaning})}
    refuse_names(named, list(frame.columns), str(path), choices)
    unnamed = {meaning for meaning, name in columns.items() if name is None}
    refuse_columns(
        frame,
        str(path),
        *_choices(unnamed) or [Remedy.ALONE],
        pairs=Remedy.ANSWERS if "entity" in columns else Remedy.LINKS if "cluster" in columns else None,
        needed=len(columns),
        spare=spare,
        named=named,
    )
    free = (c for c in frame.columns if c not in named)
    chosen = frame[[c if c is not None else next(free) for c in columns.values()]]
    for name, column in chosen.items():
        if times := int((column == name).sum()):
            raise DataError(
                f"{path}: {times:,} rows hold {name!r} in the column of this name: is the first line a "
                "record, or one of several headers? The first line, and no other, must name the columns"
            )
    integers = chosen.select_dtypes("integer").columns
    return chosen.astype({c: "str" for c in integers})


def _choices(meanings: set[str]) -> list[Remedy]:
    """How columns of these meanings are named."""
    return [remedy for some_meanings, remedy in CHOICES.items() if some_meanings & meanings]


def _read(path: Path) -> pd.DataFrame:
    suffixes = [s.lower() for s in path.suffixes]
    try:
        if suffixes and suffixes[-1] in PARQUET:
            frame = pd.read_parquet(path)
            return frame if frame.index.names == [None] else frame.reset_index()
        separator = "\t" if ".tsv" in suffixes[-2:] else ","
        _refuse_text_after_quotes(path, separator)
        frame = pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False, na_values=[""])
    except DataError:
        raise
    except (OSError, ValueError, EOFError, NotImplementedError, zlib.error) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    if not isinstance(frame.index, pd.RangeIndex):
        raise DataError(f"cannot read {path}: its lines have more fields than its header")
    return frame


def _refuse_text_after_quotes(path: Path, separator: str) -> None:
    """Refuse fields such as `"a" ` and `"a"b`, of which pandas would make one text.

    The search is quick and may err at quotes in quotes. Then the csv module decides.
    """
    with get_handle(path, "rb", compression="infer", is_text=False) as opened:
        content: bytes = opened.handle.read()
    apart = separator.encode()
    field = rb'(?:^|[%b\r\n])"(?:[^"]|"")*+"[^"%b\r\n]' % (apart, apart)
    if re.search(field, content.removeprefix(BOM_UTF8)) is None:
        return
    lines = csv.reader(StringIO(content.decode("utf-8-sig"), newline=""), delimiter=separator, strict=True)
    try:
        deque(lines, maxlen=0)
    except csv.Error as error:
        raise DataError(
            f"cannot read {path}: line {lines.line_num}: {error}; nothing, not even a blank, may stand "
            "between a closing quote and the end of its field"
        ) from error


@contextmanager
def terminable() -> Iterator[None]:
    """Let a request to terminate (SIGTERM) end the block as an error does, so that it can clean up.

    The program exits with status 143. A program that handles the signal itself is left alone.

    Examples
    --------
    >>> with terminable(), TemporaryDirectory() as folder:
    ...     pass  # the folder is removed whatever ends the block, SIGKILL aside
    """
    unhandled = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not unhandled or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def holds(path: Path, magic: bytes, start: int = 0) -> bool:
    """Whether a file holds some bytes from byte `start` on; False if it cannot be read."""
    with suppress(OSError):
        if path.is_file():  # opening anything else might wait for ever
            with path.open("rb") as file:
                return file.read(start + len(magic))[start:] == magic
    return False


def is_database(path: Path) -> bool:
    """Whether a file is a DuckDB database, by its first bytes."""
    return holds(path, b"DUCK", 8)


def refuse_output(path: Path, inputs: Iterable[Path] = ()) -> None:
    """Refuse to write where `replacing` could not, or where it would harm.

    Parameters
    ----------
    path : Path
    inputs : iterable of Path
        Files and folders that are read, and so must not be replaced or added to.

    Raises
    ------
    DataError
        A device, a folder, a file that may only be read, one of the inputs, no such folder.
    """
    try:
        target = _target(path)
        if target.exists() and not target.is_file():
            raise DataError(f"cannot write {path}: it is not a regular file")
        if target.exists() and not (target.stat().st_mode & 0o222 and os.access(target, os.W_OK)):
            raise DataError(f"cannot write {path}: the file may only be read")
        os.stat(f"{target.parent}/.")  # raises where there is none
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise DataError(f"cannot write {path}: its folder may only be read")
        for read in inputs:
            if (target.exists() and read.samefile(target)) or target.is_relative_to(read.resolve()):
                raise DataError(f"cannot write {path}: it is read as {read}")
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from error


def _target(path: Path) -> Path:
    """The file that `path` names in the end; never a device, which may lead on to a file."""
    link = path.absolute()
    for _ in range(LINKS):
        link = link.parent.resolve() / link.name
        if any(map(link.is_relative_to, DEVICES)) and not link.is_relative_to(MEMORY):
            raise DataError(f"cannot write {path}: it is not a regular file")
        if not link.is_symlink():
            return link
        link = link.parent / link.readlink()
    raise DataError(f"cannot write {path}: its links lead nowhere")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file that takes the place of `path` when the block ends without error, and is removed otherwise.

    It gets the mode of the file that it replaces. A symbolic link stays one, and the file that it names is
    replaced. Another hard link to the old file keeps the old content.

    Raises
    ------
    DataError
        As `refuse_output`; what the system says where it cannot write.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "found.csv"
    ...     with replacing(path) as new:
    ...         _ = new.write_text("good")
    ...     path.read_text()
    'good'
    """
    refuse_output(path)
    target = _target(path)
    try:
        with terminable(), TemporaryDirectory(dir=target.parent, prefix=".erbayes-") as folder:
            new = Path(folder) / target.name
            yield new
            if target.exists():
                shutil.copymode(target, new)
            new.replace(target)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from error
