"""Tables read from CSV, TSV and Parquet files; files written whole or not at all."""

from __future__ import annotations

import signal
import sys
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from .errors import DataError, some

PARQUET = {".parquet", ".pq"}


def read_columns(path: Path, columns: Sequence[str | None]) -> pd.DataFrame:
    """Some columns of a table, ids as text.

    Integer columns become text, so that ids of a Parquet file meet those of a CSV file: ids are
    only compared for equality.

    Parameters
    ----------
    path : Path
        Parquet where its name ends in .parquet or .pq, tab-separated where it ends in .tsv, otherwise
        CSV; text may be compressed (.csv.gz).
    columns : sequence of str or None
        None stands for the next column, from the left, that is not named.

    Raises
    ------
    DataError
        A file that cannot be read, or that lacks columns.
    """
    frame = _read(path)
    named = [c for c in columns if c is not None]
    lacking = [c for c in named if c not in frame.columns]
    if lacking:
        raise DataError(f"{path} has no column {some(lacking)}; it has {some(frame.columns, 20)}")
    if len(set(named)) < len(named):
        raise DataError(f"{path}: one column cannot serve twice: {some(named)}")
    if frame.shape[1] < len(columns):
        raise DataError(f"{path}: {len(columns)} columns are needed; it has {some(frame.columns)}")
    free = (c for c in frame.columns if c not in named)
    chosen = frame[[c if c is not None else next(free) for c in columns]]
    integers = chosen.select_dtypes("integer").columns
    return chosen.astype({c: "str" for c in integers})


def _read(path: Path) -> pd.DataFrame:
    suffixes = [s.lower() for s in path.suffixes]
    try:
        if suffixes and suffixes[-1] in PARQUET:
            frame = pd.read_parquet(path)
            return frame if frame.index.names == [None] else frame.reset_index()
        separator = "\t" if ".tsv" in suffixes[-2:] else ","
        frame = pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False, na_values=[""])
    except (OSError, ValueError, EOFError, NotImplementedError, zlib.error) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    if not isinstance(frame.index, pd.RangeIndex):
        raise DataError(f"cannot read {path}: its lines have more fields than its header")
    return frame


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


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file that takes the place of `path` when the block ends without error, and is removed otherwise.

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
    target = path.resolve()
    if target.exists() and not target.is_file():
        raise DataError(f"cannot write {path}: it is not a regular file")
    try:
        with terminable(), TemporaryDirectory(dir=target.parent, prefix=".erbayes-") as folder:
            new = Path(folder) / target.name
            yield new
            new.replace(target)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from error
