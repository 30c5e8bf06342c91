"""All kinds of sources, and how each is opened; files of Parquet, CSV and TSV."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from glob import escape, glob, has_magic
from io import TextIOWrapper
from itertools import chain
from pathlib import Path, PurePath
from typing import Any, Protocol

import pyarrow as pa
from pyarrow import parquet

from .._internal.errors import DataError, head, refuse_cases
from .._internal.files import DAMAGED, ENDLESS, LINE, PARQUET, holds, name_of, not_utf8
from ..units.clustering import Memberships
from . import duckdb
from .database import Database, RunSQL, RunSQLTable, legible, opened_relation, opened_spark

SEPARATORS = {".csv": ",", ".tsv": "\t"}
PACKED = {".gz": "gzip", ".zst": "zstd"}
FOREIGN = {".bz2", ".xz", ".zip", ".tar"}
"""Packed files that pandas reads and DuckDB does not."""
LOGS = {"_delta_log": "Delta", "_spark_metadata": "Spark streaming", ".hoodie": "Hudi"}
"""Folders next to files whose logs decide which files count."""


@dataclass(frozen=True, slots=True)
class Files:
    """Parquet, CSV or TSV files to scan.

    Parameters
    ----------
    path : str or Path
        A file, a folder with all files in it, or a pattern such as "release/*.parquet". Ids in CSV and TSV
        files are text. Nothing is downloaded, so that URLs are refused, except those of file://.
    text : bool
        True reads integers of Parquet files as text too.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "part-1.csv").write_text("record,cluster\\n1,a\\n", encoding="utf-8")
    ...     [path.name for path in Files(folder).paths()]
    ['part-1.csv']
    """

    path: str | Path
    text: bool = False

    def paths(self) -> list[Path]:
        """Paths of the files, without names in folders and patterns that start with . or _."""
        path = self.place
        paths = [path]
        if path.is_dir():
            paths = _list_files(path)
        elif not path.exists() and has_magic(str(path)):
            matching = [Path(p) for p in sorted(glob(str(path), recursive=True))]
            # as in folders, names that begin with . or _ are notes of other programs
            shown = [p for p in matching if not any(n[0] in "._" for n in p.relative_to(self.root).parts)]
            paths = [p for p in shown if not ("**" in path.parts and p.is_dir())]
        if not paths or not paths[0].exists():
            raise DataError(f"cannot read {self.path}: there is no such file")
        kinds = {p: _recognise_kind(p) for p in paths}
        unknown = [p.name for p, kind in kinds.items() if kind not in PARQUET | SEPARATORS.keys()]
        if len(paths) > 1:
            refuse_cases(
                unknown, f"{self.path}: {{n}} files are neither Parquet, CSV nor TSV, such as", of=len(paths)
            )
        if FOREIGN.intersection(kinds.values()):
            raise DataError(f"cannot scan {paths[0]}: DuckDB unpacks {head(sorted(PACKED))} only")
        if len({".parquet" if kind in PARQUET else kind for kind in kinds.values()}) > 1:
            raise DataError(
                f"{self.path} holds files of several kinds: {head(sorted(set(kinds.values())), 9)}"
            )
        return paths

    @property
    def place(self) -> Path:
        """Return the path, refusing a URL of another machine."""
        path = str(self.path).removeprefix("file://")
        if "://" in path:
            raise DataError(
                f"{path.partition('://')[0]}:// is not read, since nothing is downloaded: download the file, "
                "or give the relation of a connection of DuckDB on which you have loaded httpfs"
            )
        return Path(path)

    @property
    def root(self) -> Path:
        """Return the folder below which names of folders make columns, such as release=2021."""
        path = self.place
        return path if path.exists() else next(p for p in path.parents if not has_magic(str(p)))


def _list_files(folder: Path) -> list[Path]:
    """Paths of the files in a folder and below it, without links to nothing or to the same file twice."""

    def refuse(error: OSError) -> None:
        raise DataError(f"cannot read {error.filename}: {error.strerror}") from error

    files: list[Path] = []
    places: dict[Path, Path] = {}
    for parent, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        logs = [kind for log, kind in LOGS.items() if log in folders]
        if Path(parent).name == "metadata" and any(n.endswith(".metadata.json") for n in names):
            logs.append("Iceberg")
        if logs:
            raise DataError(
                f"{folder} is a table of {logs[0]}, some of whose files no longer count or do not count yet: "
                "give what its own reader returns, an Arrow dataset or a frame"
            )
        folders[:] = sorted(f for f in folders if f[0] not in "._")  # os.walk goes into these
        inside = [Path(parent) / name for name in sorted(names) if name[0] not in "._"]
        for path in (Path(parent), *inside):
            if not path.exists():
                raise DataError(f"cannot read {path}: it leads nowhere")
            # links may lead to a file twice, or in a circle
            place = path.resolve()
            if place in places:
                raise DataError(f"{path} leads to {places[place]}, whose records would be counted twice")
            places[place] = path
        files += inside
    return files


def _find_suffix(path: Path) -> str:
    *_, before, last = ("", "", *(s.lower() for s in path.suffixes))
    return before if last in PACKED else last


def _recognise_kind(path: Path) -> str:
    """Return the suffix of a file's name; ".parquet" if it is unknown and the file begins as Parquet does."""
    suffix = _find_suffix(path)
    known = suffix in PARQUET | SEPARATORS.keys() | FOREIGN
    return ".parquet" if not known and holds(path, b"PAR1") else suffix


def unpacks(path: Path) -> bool:
    """Return whether DuckDB can read a file as it is packed, such as a.csv.gz, but not a.csv.bz2."""
    return _find_suffix(path) not in FOREIGN


def _list_partitions(paths: Iterable[PurePath]) -> set[str]:
    """Names of columns that are in names of folders, such as release=2021."""
    return {part.partition("=")[0].lower() for path in paths for part in path.parts[:-1] if "=" in part}


def _write_reader(kind: str, paths: Sequence[str], partitioned: bool, names: Sequence[str] = ()) -> str:
    """SQL that reads files whose columns have `names`, with every option, so that DuckDB guesses nothing."""
    # every option is named, because DuckDB guesses from the first rows, and later ones may be different
    common = (
        f"hive_partitioning = {partitioned}, hive_types_autocast = false, filename = false, "
        f"union_by_name = {not names}"  # which reads the first rows, also if columns are stated
    )
    if kind in PARQUET:
        files = duckdb.quote_strings(paths)
        return f"read_parquet({files}, binary_as_string = false, file_row_number = false, {common})"
    columns = ", ".join(f"{duckdb.quote_string(name)}: 'VARCHAR'" for name in names)
    # without names DuckDB reads the first rows for them, and what it says of a fault there names no row
    types = f"auto_detect = false, columns = {{{columns}}}" if names else "all_varchar = true"
    return (
        f"read_csv({duckdb.quote_strings(paths)}, delim = '{SEPARATORS.get(kind, ',')}', "
        "quote = '\"', escape = '\"', "
        f"comment = '', header = true, skip = 0, {types}, nullstr = '', allow_quoted_nulls = true, "
        "null_padding = false, ignore_errors = false, store_rejects = false, normalize_names = false, "
        f"encoding = 'utf-8', strict_mode = true, {common})"
    )


def _read_header(kind: str, path: Path) -> tuple[list[str], list[str], set[str]]:
    """Return names of a file's columns, and of indexes that pandas wrote last: those named, and others."""
    try:
        if kind in PARQUET:
            schema = parquet.read_schema(name_of(path))
            index = (schema.pandas_metadata or {}).get("index_columns", [])
            unnamed = {c for c in index if isinstance(c, str) and c.startswith("__index_level_")}
            return schema.names, [c for c in index if isinstance(c, str) and c not in unnamed], unnamed
        stream = pa.input_stream(name_of(path), PACKED.get(path.suffix.lower()))
        with TextIOWrapper(stream, "utf-8-sig", newline="") as text:
            if len(first := text.readline(LINE)) == LINE:
                raise ValueError(ENDLESS)
            # a field in quotes may go on in the next line
            names = next(csv.reader(chain([first], text), delimiter=SEPARATORS.get(kind, ",")), [])
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from error
    except (OSError, ValueError, csv.Error, pa.ArrowException) as error:
        raise DataError(f"cannot read {path}: {legible(error)}") from error
    if any("\0" in name for name in names):
        raise DataError(f"cannot read {path}: {DAMAGED}")
    if not any(name.strip() for name in names):
        raise DataError(f"cannot read {path}: its first line is blank, which must name the columns")
    return names, [], set()


class FilesTable(duckdb.DuckTable):
    """Opened files, as a table of DuckDB."""

    paths: Sequence[str] = ()
    reader: str = ""

    @classmethod
    def reads(cls, source: Any) -> list[str]:
        paths = [name_of(path) for path in source.paths()]
        return [*paths, *map(escape, paths)]

    def attach(self) -> None:
        source: Files = self.source
        self.text = source.text
        names, unnamed = list[str](), set[str]()
        stated = names
        files = source.paths()
        kind, self.paths = _recognise_kind(files[0]), [escape(name_of(p)) for p in files]
        partitions = _list_partitions(p.relative_to(source.root) for p in files)
        if files[0].is_file():
            names, self.first, unnamed = _read_header(kind, files[0])
            # blank names, and those that differ in case only, are left to DuckDB, which changes them
            different = len({name.lower() for name in names}) == len(names) and all(map(str.strip, names))
            same = (
                kind not in PARQUET
                and different
                and all(_read_header(kind, x)[0] == names for x in files[1:])
            )
            stated = names if same else []
        self.table = _write_reader(kind, self.paths, False, stated)
        self.describe(names)
        # DuckDB also takes folders above the root for columns, which may hide columns of the files
        if partitions and not _list_partitions(files) & {name.lower() for name in self.types}:
            of_files = set(self.types)
            self.table = _write_reader(kind, self.paths, True, stated)
            self.describe(names)
            self.by_folder = set(self.types) - of_files
        self.by_folder = {*self.by_folder, *unnamed}
        self.reader = self.table
        if kind in PARQUET:
            # DuckDB reads durations as integers, whose unit nobody says
            spans = {f.name for f in parquet.read_schema(name_of(files[0])) if pa.types.is_duration(f.type)}
            self.types |= {name: "INTERVAL" for name in spans & self.types.keys()}
        else:
            self.headings = {name: (name,) for name in self.types}

    def use(self, *columns: str) -> None:
        """Read text once, and refuse Parquet files with ids of different types, which DuckDB would cast."""
        if self.headings:
            # statements would take longer to parse it again than to read a table
            self.table = self.keep(f"SELECT {', '.join(map(self.quote, columns))} FROM {self.reader}")
        for column in columns:
            if len(files := self._list_types(column)) > 1:
                said = ", ".join(f"{type} in {Path(file).name}" for type, file in files.items())
                raise DataError(f"column {column!r} of the prediction is {said}: bring all files to one type")

    def look(self, *columns: str) -> list[str]:
        return [column for column in columns if len(self._list_types(column)) <= 1]

    def _list_types(self, column: str) -> dict[str, str]:
        """Return the types of a column of several Parquet files, each with a file that has it."""
        return {of[column.lower()]: file for file, of in self._types.items() if column.lower() in of}

    @cached_property
    def _types(self) -> dict[str, dict[str, str]]:
        types = dict[str, dict[str, str]]()
        for path in () if self.headings or len(self.paths) == 1 else self.paths:
            described = self.rows(f"DESCRIBE SELECT * FROM {_write_reader('.parquet', [path], False)}")
            types[path] = {name.lower(): duckdb.family(type) for name, type, *_ in described}
        return types


class OfSpark(Protocol):
    """A DataFrame of Spark."""

    @property
    def sparkSession(self) -> Any: ...


Source = Memberships | str | Path | Files | duckdb.DatabaseTable | RunSQL | OfSpark
"""A prediction in memory or elsewhere, as `scan` reads it; relations are Arrow streams."""


def is_dataset(source: Any) -> bool:
    """Return whether a source is an Arrow dataset."""
    # by name, so that nothing is imported for sources of other kinds
    return type(source).__module__ == "pyarrow._dataset"


def lies_elsewhere(prediction: Any) -> bool:
    """Return whether a prediction is to be scanned: files, a table or a dataset, not memberships."""
    stored = isinstance(prediction, str | Path | Files | duckdb.DatabaseTable)
    return stored or has_own_database(prediction) or is_dataset(prediction)


def has_own_database(source: Any) -> bool:
    """Return whether a source is counted by a database of its own."""
    return isinstance(source, RunSQL) or _is_of(source, "pyspark") or _is_relation(source)


def refuse_second_table(sources: Iterable[Any], what: str) -> None:
    """Refuse a second table, called `what`, if one of the sources has a database of its own."""
    if any(map(has_own_database, sources)):
        raise DataError(
            f"a table with a database of its own takes no {what}: make a view there of the prediction and of "
            "what it is joined with"
        )


def _is_of(source: Any, *packages: str) -> bool:
    # by name, so that nothing is imported for sources of other kinds
    return type(source).__module__.partition(".")[0] in packages


def _is_relation(source: Any) -> bool:
    return _is_of(source, "duckdb", "_duckdb") and hasattr(source, "columns")


def identify(source: Any) -> Any:
    """Return what is equal for sources that are one: files and tables by what they name."""
    return source if isinstance(source, str | Path | Files | duckdb.DatabaseTable) else id(source)


@contextmanager
def opened(sources: Sequence[Any], database: duckdb.DuckDB) -> Iterator[list[Database]]:
    """Open sources of one database, or several that `database` reads."""
    sources = [Files(source) if isinstance(source, str | Path) else source for source in sources]
    if not any(map(has_own_database, sources)):
        kinds = [_choose_table(source) for source in sources]
        files = [path for kind, source in zip(kinds, sources, strict=True) for path in kind.reads(source)]
        trusted = any(isinstance(source, duckdb.DatabaseTable) and source.reads_files for source in sources)
        with database.connected(files, closed=not trusted) as connection:
            tables = [kind(connection, database, one) for kind, one in zip(kinds, sources, strict=True)]
            for table in tables:
                table.attach()
            yield [*tables]
        return
    places = [_find_place(source) for source in sources]
    if any(place is None or place != places[0] for place in places[1:]):
        raise DataError(
            "predictions in databases of their own are counted together in one database alone: give views "
            "of one connection, as DataFrames of one Spark session or RunSQL of one function"
        )
    with ExitStack() as stack:
        yield [stack.enter_context(_open(source)) for source in sources]


def _find_place(source: Any) -> Any:
    """Return what is equal for tables of one database, None if it is not known."""
    if _is_of(source, "pyspark"):
        return source.sparkSession
    return source.run if isinstance(source, RunSQL) else None


def _open(source: Any) -> AbstractContextManager[Database]:
    if _is_of(source, "pyspark"):
        return opened_spark(source)
    if _is_relation(source):
        return opened_relation(source)
    return nullcontext(RunSQLTable(source))


def _choose_table(source: Any) -> type[duckdb.DuckTable]:
    if isinstance(source, Files):
        return FilesTable
    if isinstance(source, duckdb.DatabaseTable):
        return duckdb.StoredTable
    return duckdb.DuckTable if is_dataset(source) else duckdb.FrameTable
