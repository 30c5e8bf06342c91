"""Tables read from CSV, TSV and Parquet files; files that are complete once they are there."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import sys
import threading
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import BytesIO, TextIOWrapper
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pyarrow as pa
from pandas.io.common import get_handle  # type: ignore[import-not-found]
from pyarrow import ArrowException
from pyarrow.compute import field
from pyarrow.csv import ConvertOptions, ParseOptions, read_csv

from .arrays import is_whole_decimal, refuse_names, separator_hint
from .errors import DataError, head
from .names import IN_SOURCE, JOIN, find_known, join_ids

PARQUET = {".parquet", ".pq"}
DEVICES = (Path("/dev"), Path("/proc"))
BLANK = re.compile(r"Unnamed: \d+|\s+(\.\d+)?")
"""Names that pandas gives to columns whose names are blank."""
MEMORY = Path("/dev/shm")
"""A folder of regular files among the devices."""
HIDDEN = ".erbayes-"
"""The beginning of the names of folders in which outputs are made, next to the output."""
NEW, OLD = "new", "old"
"""Names in such a folder of what is being made, and of what it replaces."""
HEADER = 2**16
"""Bytes of a file whose lines show its separator."""
SEPARATORS = ",;\t|"
"""Characters between columns; the first is taken if it gives each line as many fields."""
NO_TEXT = {
    rb"PK\x03\x04|\xd0\xcf\x11\xe0": "it is a file of Excel: save its sheet as CSV",
    rb"\s*[\[{]\s*([\[{\]}\"\d-]|null|true|false)": "it is JSON, and no table: make one row per "
    "record, such as by pandas.read_json(path).explode('ids') if a column lists ids, and save it as CSV",
}
"""Patterns of the beginning of files that are no text in columns, with what to do."""
SEPARATOR = re.compile(rb"sep=[,;\t|]\r?\n")
"""A first line in which Excel names the separator."""
LARGE = 2**28
"""Bytes from which a file is scanned rather than read, as it takes several times as many in memory."""
LINE = 2**20
ENDLESS = f"its first line, which names the columns, is over {LINE:,} letters"
"""Why a file is refused whose first line may never end."""
DAMAGED = (
    "it has NUL characters, as damaged files and UTF-16 without its mark have: save it again as text in UTF-8"
)
LINKS = 40
"""Number of symbolic links that may lead from one to the next, as in Linux."""


def read_columns(path: Path, number: int, named: Sequence[str] = ()) -> pd.DataFrame:
    """Read columns of a Parquet, TSV or CSV file, with ids as text: the `named` ones, or all of them."""
    frame = _read(path)
    columns = list(frame.columns)
    refuse_names(named, columns, str(path))
    if len(named or columns) != number:
        what = f"{number} column{'s' if number > 1 else ''}"
        hint = separator_hint(columns) if len(columns) < number else f": name {what} as {path}:COLUMNS"
        raise DataError(f"{path} has {head(columns, 20) or 'no column'}, and {what} are needed{hint}")
    chosen = frame[list(named or columns)]
    refuse_repeated_header(chosen, path)
    return _add_text(chosen)


def refuse_repeated_header(table: pd.DataFrame, path: Path) -> None:
    """Refuse columns of a file that have their own name as a value."""
    for name, column in table.items():
        if times := int((column == name).sum()):
            raise DataError(
                f"{path}: {times:,} rows hold {name!r} in the column of this name: is the first line a "
                "record, or one of several headers? The first line, and no other, must name the columns"
            )


def read_table(path: Path) -> pd.DataFrame:
    """Read all columns of a file, with integers as text."""
    return _add_text(_read(path))


def read_rows(
    path: Path, choose: Callable[[pd.DataFrame], Any], records: pd.Index | None = None
) -> pd.DataFrame:
    """Read the rows of these records, or of all, as text, with the column of records first.

    `choose` returns that column of a table. Of a large Parquet file only rows of `records` are read, and the
    names alone say which column has them.
    """
    if (
        path.suffix.lower() in PARQUET
        and records is not None
        and (path.stat().st_size >= LARGE or not len(records))
    ):
        from pyarrow.dataset import dataset  # which loads clients of networks

        try:
            rows = dataset(path)
            names = rows.schema.names
            key = choose(pd.DataFrame(columns=names))
            # source and id may be one id, which a look-up of ids alone does not find
            sources = find_known(names, "source")
            frame: pd.DataFrame = rows.to_table(
                filter=None if sources else field(key).cast("string").isin(pa.array(records, pa.string()))
            ).to_pandas(ignore_metadata=True)
        except (OSError, ArrowException) as error:
            raise DataError(f"cannot read {path}: {error}") from error
    else:
        frame = _add_text(_read(path))
        key = choose(frame)
    frame = _add_text(frame[[key, *(c for c in frame.columns if c != key)]])
    if records is not None:
        frame = key_by_source(frame, records)
        frame = frame[frame.iloc[:, 0].isin(records)]
    return frame.reset_index(drop=True)


def key_by_source(frame: pd.DataFrame, records: pd.Index) -> pd.DataFrame:
    """Return a table whose first column has ids, joined with their source if ids of `records` are."""
    key = frame.columns[0]
    sources = [c for c in find_known(frame.columns, "source") if c != key]
    if not sources or not len(records) or JOIN not in str(records[0]) or frame[key].isin(records).any():
        return frame
    joined = join_ids(frame[sources[0]].astype("str"), frame[key].astype("str"))
    rest = frame.rename(columns={key: f"{key}{IN_SOURCE}"})
    rest.insert(0, key, joined)
    return rest


def _add_text(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with text in the place of integers, and of decimals without decimal places."""
    decimals = [
        name for name, column in frame.items() if column.dtype == object and is_whole_decimal(column.dropna())
    ]
    # ids of a Parquet file then equal those of a CSV file
    columns = [*frame.select_dtypes("integer").columns, *decimals]
    frame = frame.copy(deep=False)
    # before pandas 3 astype makes the text "<NA>" of what is missing
    frame[columns] = frame[columns].astype("str").where(frame[columns].notna())
    return frame


def name_of(path: Path) -> str:
    """Return the name of a file as no library takes it for a URL, such as s3:x, or for a home, such as ~x."""
    return os.path.join(os.curdir, path)


def _read(path: Path) -> pd.DataFrame:
    suffixes = [s.lower() for s in path.suffixes]
    try:
        if suffixes and suffixes[-1] in PARQUET:
            frame = pd.read_parquet(name_of(path))
            return frame if frame.index.names == [None] else frame.reset_index()
        with get_handle(name_of(path), "rb", compression="infer", is_text=False) as opened:
            content: bytes = opened.handle.read()
        if found := next((told for start, told in NO_TEXT.items() if re.match(start, content)), None):
            raise DataError(f"cannot read {path}: {found}")
        if len(content) > LINE and not re.search(rb"[\r\n]", content[:LINE]):
            raise ValueError(ENDLESS)
        content = _find_table(content)
        if b"\0" in content.partition(b"\n")[0] or content.rstrip(b"\r\n").endswith(b"\0"):
            raise ValueError(DAMAGED)
        # a comma separates columns, unless another character alone gives each line as many
        found = next(iter(_list_separators(content)), ",")
        frame = _parse(content, "\t" if ".tsv" in suffixes[-2:] else found)
    except DataError:
        raise
    except pd.errors.EmptyDataError as error:
        raise DataError(
            f"cannot read {path}: its first line is blank, which must name the columns"
        ) from error
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from error
    except (OSError, ValueError, EOFError, NotImplementedError, zlib.error) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    if len(frame.columns) and all(map(BLANK.fullmatch, map(str, frame.columns))):
        raise DataError(f"cannot read {path}: its first line is blank, which must name the columns")
    return frame


def _find_table(content: bytes) -> bytes:
    """Return text in UTF-8, without lines of comments above a table whose columns they do not share."""
    if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        content = content.decode("utf-16").encode()
    content = content.removeprefix(BOM_UTF8)
    if named := SEPARATOR.match(content):  # in the words of Excel
        return content[named.end() :]
    rest = re.sub(rb"\A(#[^\n]*\n)+", b"", content)
    return rest if _list_separators(rest) and not _list_separators(content) else content


def _list_separators(content: bytes) -> list[str]:
    """Return the separators that give each of the first lines the same number of fields, two or more."""
    if len(content) > HEADER:
        content = content[:HEADER].rpartition(b"\n")[0]
    lines = content.decode("utf-8-sig", errors="replace").splitlines(keepends=True)
    widths = {s: {len(row) for row in csv.reader(lines, delimiter=s) if row} for s in SEPARATORS}
    return [s for s, several in widths.items() if len(several) == 1 and several != {1}]


def not_utf8(path: Path, error: UnicodeDecodeError) -> DataError:
    """Error for text in another encoding."""
    return DataError(f"cannot read {path}: {error}: it is not text in UTF-8, save it as such")


def _parse(content: bytes, separator: str) -> pd.DataFrame:
    """Return text as a table. pyarrow takes a fifth of the time of pandas, which judges what it refuses."""

    def read_lines() -> Any:
        text = TextIOWrapper(BytesIO(content), "utf-8", newline="")
        return csv.reader(text, delimiter=separator, strict=True)

    apart = separator.encode()
    # pandas and pyarrow would join `"a" ` and `"a"b` to one text; the pattern is quick, but wrong at quotes
    # in quotes, so that the csv module decides what it finds
    if b'"' in content and re.search(rb'(?:^|[%b\r\n])"(?:[^"]|"")*+"[^"%b\r\n]' % (apart, apart), content):
        lines = read_lines()
        try:
            deque(lines, maxlen=0)
        except csv.Error as error:
            said = "nothing, not even a blank, may stand between a closing quote and the end of its field"
            raise ValueError(f"line {lines.line_num}: {error}; {said}") from error
    names = list[str]()
    with suppress(csv.Error):  # a field that is too long for it
        names, first = [*islice(filter(None, read_lines()), 2), [], []][:2]
        if len(first) > len(names):  # of which pandas makes an index
            raise ValueError("its lines have more fields than its header")
    plain = content.count(b"\r") == content.count(b"\r\n") and b"\0" not in content
    if plain and len(names) == len(set(names)) > 1 and all(map(str.strip, names)):
        with suppress(ArrowException, UnicodeDecodeError):
            table = read_csv(
                pa.BufferReader(content),
                parse_options=ParseOptions(delimiter=separator, newlines_in_values=b'"' in content),
                convert_options=ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), null_values=[""], strings_can_be_null=True
                ),
            )
            if table.column_names == names:
                # not .astype("str"), which before pandas 3 makes the text "None" of what is missing
                frame: pd.DataFrame = table.to_pandas()
                return frame
    last = content.rpartition(b"\n")[2]
    if last and b'"' not in last and (n := last.count(apart) + 1) < len(names):
        raise ValueError(f"its last line has {n} of {len(names)} fields and no end: it is cut, get it whole")
    return pd.read_csv(BytesIO(content), sep=separator, dtype=str, keep_default_na=False, na_values=[""])


@contextmanager
def terminable() -> Iterator[None]:
    """Let a request to terminate (SIGTERM) end the block as an error does, so that it can clean up."""
    # a program that handles the signal itself is left alone, and threads cannot set handlers
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
def locked(folder: Path, prefix: str) -> Iterator[None]:
    """Mark a temporary folder as in use, and remove those next to it that killed processes have left."""
    with ExitStack() as stack:
        if sys.platform != "win32":
            from fcntl import LOCK_EX, LOCK_NB, flock

            for lock in folder.parent.glob(f"{prefix}*/lock"):
                # an error means that the process lives, or that the folder belongs to another user
                with suppress(OSError), lock.open("rb+") as file:
                    flock(file, LOCK_EX | LOCK_NB)
                    if not all((lock.parent / part).exists() for part in (NEW, OLD)):
                        shutil.rmtree(lock.parent, ignore_errors=True)
            with suppress(OSError):  # a file system without locks
                lock_file = stack.enter_context((folder / "unlocked").open("wb"))
                # a lock ends with its process, even if that is killed
                flock(lock_file, LOCK_EX)
                Path(lock_file.name).rename(folder / "lock")  # no other process ever sees it unlocked
        yield


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Refuse that another process, which has this file too, goes on at the same time."""
    with path.open("rb") as file:
        if sys.platform != "win32":
            from fcntl import LOCK_EX, LOCK_NB, flock

            try:
                flock(file, LOCK_EX | LOCK_NB)
            except BlockingIOError as error:
                raise DataError(f"{path.parent} is being written by another process: try again") from error
            except OSError:  # a file system without locks
                pass
        yield


def holds(path: Path, magic: bytes, start: int = 0) -> bool:
    """Return whether a file has these bytes from byte `start` on; False if it cannot be read."""
    with suppress(OSError):
        if path.is_file():  # to open a pipe might wait for ever
            with path.open("rb") as file:
                return file.read(start + len(magic))[start:] == magic
    return False


def is_database(path: Path) -> bool:
    """Return whether a file is a DuckDB database, by its first bytes."""
    return holds(path, b"DUCK", 8)


def refuse_output(path: Path, inputs: Iterable[Path] = ()) -> None:
    """Refuse to write a file that `replacing` could not write, or that is, or is in, one of the inputs."""
    try:
        target = _resolve_target(path)
        if target.exists() and not target.is_file():
            raise DataError(f"cannot write {path}: it is not a regular file")
        if target.exists() and not (target.stat().st_mode & 0o222 and os.access(target, os.W_OK)):
            raise DataError(f"cannot write {path}: the file may only be read")
        os.stat(f"{target.parent}/.")  # raises if there is no such folder
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise DataError(f"cannot write {path}: its folder may only be read")
        for source in inputs:
            if (target.exists() and source.samefile(target)) or target.is_relative_to(source.resolve()):
                raise DataError(f"cannot write {path}: it is read as {source}")
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from error


def _resolve_target(path: Path) -> Path:
    """Return the file that `path` names after all links. Devices are refused, which may lead on to a file."""
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
    """Make a new file that replaces `path`, with its mode, if the block ends without error."""
    refuse_output(path)
    target = _resolve_target(path)
    with writing(path, target) as folder:
        new = folder / NEW / target.name
        yield new
        if target.exists():
            shutil.copymode(target, new)
        # a rename in one folder is atomic: a reader sees the old file or the new one
        new.replace(target)


def write_text(path: Path, text: str) -> None:
    """Write text in UTF-8 to a file, which `replacing` replaces."""
    with replacing(path) as new:
        new.write_text(text, encoding="utf-8")


@contextmanager
def writing(path: Path, target: Path) -> Iterator[Path]:
    """Make a temporary folder next to the target of a path, with an empty folder `NEW`."""
    try:
        with (
            terminable(),
            TemporaryDirectory(dir=target.parent, prefix=HIDDEN) as folder,
            locked(Path(folder), HIDDEN),
        ):
            (Path(folder) / NEW).mkdir()
            yield Path(folder)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from error


LARGEST_JSON = 2**28
"""Bytes of the largest JSON that is read, which takes several times as much memory. Answers to a million
tasks have as many."""
DEEPEST_JSON = 40
"""Levels of brackets within brackets that are read. Files that are written here have about 5."""


def read_json(source: Path | str, what: str) -> dict[str, Any]:
    """Return the object of a file or a text of JSON, which messages call `what`; refuse all else."""
    try:
        size = source.stat().st_size if isinstance(source, Path) else len(source)
        if size > LARGEST_JSON:
            raise ValueError(f"it has {size:,} bytes, and {LARGEST_JSON:,} are the most that is read")
        value = json.loads(source.read_text(encoding="utf-8") if isinstance(source, Path) else source)
        inside = [value]
        for _ in range(DEEPEST_JSON):
            within = [x.values() if isinstance(x, dict) else x for x in inside if isinstance(x, dict | list)]
            inside = [x for values in within for x in values]
        if inside:
            raise RecursionError
    except RecursionError as error:
        raise DataError(
            f"cannot read {what}: it has brackets in brackets, over {DEEPEST_JSON} deep"
        ) from error
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {what}: {error}") from error
    if not isinstance(value, dict):
        raise DataError(f"cannot read {what}: it is {type(value).__name__}, and no object in braces")
    return value
