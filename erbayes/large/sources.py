"""Where a large prediction lies: files, DuckDB, Spark, frames in memory, or anything that runs SQL.

A source opens as a `Database`, which answers SQL made of COUNT, GROUP BY and IN. In DuckDB and Spark 64-bit
hashes stand for string ids: such *keys* take less memory to group.
"""

from __future__ import annotations

import csv
import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from glob import escape, glob, has_magic
from io import TextIOWrapper
from numbers import Integral
from operator import itemgetter
from pathlib import Path, PurePath, PurePosixPath
from shutil import rmtree
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, Protocol
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from ..errors import DataError, some
from ..files import PARQUET, terminable
from ..progress import track

SEPARATORS = defaultdict(lambda: ",", {".tsv": "\t"})
TEXT = {".csv", ".tsv"}
PACKED = {".gz", ".zst"}
FOREIGN = {".bz2", ".xz", ".zip", ".tar"}
"""Packed files that pandas reads and DuckDB does not."""


def double_quoted(name: str) -> str:
    """An identifier of standard SQL.

    Examples
    --------
    >>> print(double_quoted('a"; DROP TABLE b'))
    "a""; DROP TABLE b"
    """
    return '"' + name.replace('"', '""') + '"'


def backquoted(name: str) -> str:
    """An identifier of Spark, BigQuery or MySQL."""
    return "`" + name.replace("`", "``") + "`"


def chr_literal(text: str) -> str:
    """A string as SQL that no dialect's rules for quotes, escapes and parameters can alter.

    For PostgreSQL, DuckDB, Spark, Databricks, BigQuery, Snowflake, Redshift, Trino and Athena.

    Examples
    --------
    >>> print(chr_literal("it's"))
    'it' || CHR(39) || 's'
    """
    return " || ".join(_written(text, "CHR({})"))


def char_literal(text: str) -> str:
    """As `chr_literal`, for SQLite and ClickHouse.

    Examples
    --------
    >>> print(char_literal("it's"))
    'it' || CHAR(39) || 's'
    """
    return " || ".join(_written(text, "CHAR({})"))


def concat_literal(text: str) -> str:
    """As `chr_literal`, for MySQL and MariaDB, where || may mean "or".

    Examples
    --------
    >>> print(concat_literal("it's"))
    CONCAT('it', CHAR(39 USING utf8mb4), 's')
    """
    return f"CONCAT({', '.join(_written(text, 'CHAR({} USING utf8mb4)'))})"


def _written(text: str, code: str) -> list[str]:
    """Parts of a string: letters, digits, blanks and _ . - in quotes, other ASCII by its code."""
    parts = re.split(r"([^\w .-])", text, flags=re.ASCII)
    written = [code.format(ord(p)) if i % 2 and p.isascii() else f"'{p}'" for i, p in enumerate(parts) if p]
    return written or ["''"]


class Database(Protocol):
    """A prediction's table, opened.

    Attributes
    ----------
    table : str
        SQL of the table.
    by_folder : collection of str
        Columns that the names of folders give, year=2021 for one; they are never chosen unnamed.
    """

    @property
    def table(self) -> str: ...
    @property
    def by_folder(self) -> Collection[str]: ...
    def quote(self, name: str) -> str: ...
    def rows(self, sql: str) -> list[tuple[Any, ...]]: ...
    def columns(self) -> Sequence[str]:
        """All columns; none where that cannot be told."""

    def use(self, record: str, cluster: str, *others: str) -> None:
        """Be ready for these columns."""

    def kind(self, column: str) -> str | None:
        """'string', 'integer', or the name of another type; None where that cannot be told."""

    def id(self, column: str) -> str:
        """SQL of an id, as a string or a number."""

    def key(self, column: str) -> str:
        """SQL of what stands for an id."""

    def keys(self, column: str, ids: Sequence[Any]) -> dict[Any, Any]:
        """Key -> id."""

    def listed(self, values: Sequence[Any]) -> list[str]:
        """What may stand in IN (...), in one piece or several."""

    def keep(self, select: str) -> str:
        """SQL of a table that holds what `select` finds, computed once where that is cheaper."""

    def forget(self, table: str, column: str | None = None) -> None:
        """What is kept, or a column of it, is needed no more."""

    def share(self, key: str) -> str | None:
        """Condition that a pseudo-random share of keys fulfils; None: no need, take all."""

    def digest(self, key: str) -> str:
        """SQL of a number that tells sets of keys apart; NULL where there is none."""

    @property
    def one_in(self) -> int:
        """One over that share."""


@dataclass(frozen=True, slots=True)
class Files:
    """Parquet, CSV or TSV files.

    Parameters
    ----------
    path : str or Path
        A file, a folder with all files in it, a pattern such as "release/*.parquet", or a URL that
        DuckDB reads. Ids in CSV and TSV files are text.
    text : bool
        True where integers in Parquet files are to be read as text too.
    """

    path: str | Path
    text: bool = False

    def found(self) -> list[Path]:
        """The files. In folders and patterns names that start with . or _ are left out, links are followed.

        Raises
        ------
        DataError
            No file, files that are not all of one kind, or a folder that only its log can read.
        """
        path = Path(self.path)
        if path.is_dir():
            every = _walked(path)
        elif not path.exists() and has_magic(str(path)):
            met = [Path(p) for p in sorted(glob(str(path), recursive=True))]
            every = [p for p in met if not _hidden(p.relative_to(self.root))]
            if "**" in path.parts:
                every = [p for p in every if not p.is_dir()]
        else:
            every = [path]
        if not every or not every[0].exists():
            raise DataError(f"cannot read {self.path}: there is no such file")
        kinds = {_kind_of_file(p) for p in every}
        unknown = [p.name for p in every if _kind_of_file(p) not in PARQUET | TEXT]
        if unknown and len(every) > 1:
            raise DataError(
                f"{self.path}: {len(unknown)} of {len(every)} files are neither Parquet, CSV nor "
                f"TSV, such as {some(unknown)}"
            )
        if kinds & FOREIGN:
            raise DataError(f"cannot scan {every[0]}: DuckDB unpacks {some(sorted(PACKED))} only")
        if len(kinds - PARQUET) > 1 or (kinds & PARQUET and kinds - PARQUET):
            raise DataError(f"{self.path} holds files of several kinds: {some(sorted(kinds), 9)}")
        return every

    @property
    def root(self) -> Path:
        """The folder below which names of folders count: release=2021 below it is a column."""
        path = Path(self.path)
        if path.exists():
            return path
        return next(p for p in path.parents if not has_magic(str(p)))


def _hidden(path: Path) -> bool:
    return any(part[0] in "._" for part in path.parts)


LOGS = {"_delta_log": "Delta", "_spark_metadata": "Spark streaming", ".hoodie": "Hudi"}
"""Folders beside files of which not all count."""


def _walked(folder: Path) -> list[Path]:
    """Files in a folder and in those below it.

    Raises
    ------
    DataError
        A folder that cannot be read, a file or folder that is met twice, a link that leads nowhere, a table
        with a log.
    """

    def refuse(error: OSError) -> None:
        raise DataError(f"cannot read {error.filename}: {error.strerror}") from error

    found: list[Path] = []
    met: dict[Path, Path] = {}
    for where, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        logs = [kind for log, kind in LOGS.items() if log in folders]
        logs += ["Iceberg"] * (
            Path(where).name == "metadata" and any(n.endswith(".metadata.json") for n in names)
        )
        if logs:
            raise DataError(
                f"{folder} is a table of {logs[0]}, some of whose files no longer count or do not count yet: "
                "give what its own reader returns, an Arrow dataset or a frame"
            )
        folders[:] = sorted(f for f in folders if f[0] not in "._")
        here = [Path(where) / name for name in sorted(names) if name[0] not in "._"]
        for path in (Path(where), *here):
            if not path.exists():
                raise DataError(f"cannot read {path}: it leads nowhere")
            place = path.resolve()
            if place in met:
                raise DataError(f"{path} leads to {met[place]}, whose records would be counted twice")
            met[place] = path
        found += here
    return found


def _suffix(path: Path) -> str:
    *_, before, last = ("", "", *(s.lower() for s in path.suffixes))
    return before if last in PACKED else last


def _kind_of_file(path: Path) -> str:
    """As its name says, or ".parquet" where it says nothing and the file begins as Parquet does."""
    suffix = _suffix(path)
    if suffix in PARQUET | TEXT | FOREIGN or not path.is_file():
        return suffix
    return ".parquet" if _begins(path, b"PAR1") else suffix


def _begins(path: Path, wanted: bytes) -> bool:
    """Whether a file begins with some bytes; False where it cannot be read."""
    with suppress(OSError), path.open("rb") as file:
        return file.read(len(wanted)) == wanted
    return False


def _strings(texts: Sequence[str]) -> str:
    """A list of strings in DuckDB's SQL."""
    return "[" + ", ".join("'" + text.replace("'", "''") + "'" for text in texts) + "]"


def _partitions(paths: Iterable[PurePath]) -> set[str]:
    """Names of columns that names of folders stand for, such as release=2021."""
    return {part.partition("=")[0].lower() for path in paths for part in path.parts[:-1] if "=" in part}


def _reader(kind: str, paths: Sequence[str], partitioned: bool) -> str:
    """SQL that reads files, with nothing left for DuckDB to guess."""
    listed = _strings(paths)
    hive = f"hive_partitioning = {partitioned}, hive_types_autocast = false"
    common = f"{hive}, filename = false, union_by_name = true"
    if kind in PARQUET:
        return f"read_parquet({listed}, binary_as_string = false, file_row_number = false, {common})"
    separator = SEPARATORS[kind]
    return (
        f"read_csv({listed}, delim = '{separator}', quote = '\"', escape = '\"', comment = '', "
        "header = true, skip = 0, all_varchar = true, nullstr = '', allow_quoted_nulls = true, "
        "null_padding = false, ignore_errors = false, store_rejects = false, normalize_names = false, "
        f"encoding = 'utf-8', strict_mode = true, {common})"
    )


def _header(kind: str, path: Path) -> tuple[list[str], list[str]]:
    """Names of columns as a file has them, and those that pandas wrote last but shows first.

    DuckDB renames columns whose names differ in case only.
    """
    try:
        if kind in PARQUET:
            schema = parquet.read_schema(path)
            index = (schema.pandas_metadata or {}).get("index_columns", [])
            return schema.names, [
                c for c in index if isinstance(c, str) and not c.startswith("__index_level_")
            ]
        packed = {".gz": "gzip", ".zst": "zstd"}.get(path.suffix.lower())
        with TextIOWrapper(pa.input_stream(path, packed), "utf-8-sig", newline="") as text:
            names = next(csv.reader(text, delimiter=SEPARATORS[kind]), [])
    except (OSError, ValueError, csv.Error, pa.ArrowException) as error:
        raise DataError(f"cannot read {path}: {_printable(error)}") from error
    if not any(name.strip() for name in names):
        raise DataError(f"cannot read {path}: its first line is blank, which must name the columns")
    return names, []


def unpacks(path: Path) -> bool:
    """Whether DuckDB can read a file as it is packed.

    Examples
    --------
    >>> unpacks(Path("a.csv.gz")), unpacks(Path("a.csv.bz2")), unpacks(Path("a.tar.gz"))
    (True, False, False)
    """
    return _suffix(path) not in FOREIGN


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A table or view of a DuckDB database file.

    Parameters
    ----------
    path : str or Path
    table : str or tuple of str
        Its name, or the names of schema and table. They are quoted: any character may occur.
    text : bool
        True where integers are to be read as text.
    """

    path: str | Path
    table: str | tuple[str, ...]
    text: bool = False


def _qualified(table: str | tuple[str, ...], quote: Callable[[str], str]) -> str:
    return ".".join(quote(part) for part in ((table,) if isinstance(table, str) else table))


@dataclass(frozen=True, slots=True)
class RunSQL:
    """A table behind a function that runs one SQL statement: PostgreSQL, a warehouse.

    The statements only read. Ids are compared as they are, and duplicates looked for among all of them.

    Parameters
    ----------
    run : callable, str -> rows
        Rows are sequences of values, as of a cursor's fetchall().
    name : str or tuple of str
        The table, or the names of catalog, schema and table. They are quoted: any character may occur.
    quote : callable, str -> str
        How identifiers are quoted: `double_quoted` (the standard), `backquoted`, or your own.
    literal : callable, str -> str
        How strings are written: `chr_literal`, `char_literal`, `concat_literal`, or your own.
    longest : int
        Bytes of the longest list of ids in a statement. Athena takes statements of 256 KB.
    names : sequence of str
        All columns of the table, where `record` and `cluster` are not named.

    Examples
    --------
    >>> import sqlite3
    >>> from erbayes.large import scan
    >>> database = sqlite3.connect(":memory:")
    >>> _ = database.execute("CREATE TABLE p AS SELECT 1 AS record, 'a' AS cluster UNION SELECT 2, 'a'")
    >>> table = RunSQL(lambda sql: database.execute(sql).fetchall(), "p", literal=char_literal)
    >>> scan(table, {1: "x"}, record="record", cluster="cluster")
    Units(1 units, 1 records, 1 pieces)
    """

    run: Callable[[str], Iterable[Sequence[Any]]]
    name: str | tuple[str, ...]
    quote: Callable[[str], str] = double_quoted
    literal: Callable[[str], str] = chr_literal
    longest: int = 200_000
    names: Sequence[str] = ()


ALIKE = ["a", "A", "a ", "\xe1", "a-", "7", "07"]
"""Strings that a database may take for equal, if it does not see case, blanks, accents, signs or zeros."""


@dataclass(slots=True)
class _RunSQL:
    source: RunSQL
    kinds: dict[str, str | None] = field(default_factory=dict)

    one_in = 1
    by_folder = ()

    @property
    def table(self) -> str:
        return _qualified(self.source.name, self.source.quote)

    def quote(self, name: str) -> str:
        return self.source.quote(name)

    def columns(self) -> Sequence[str]:
        return self.source.names

    def use(self, record: str, cluster: str, *others: str) -> None:
        named = [record, cluster, *others]
        for column in named:
            id = self.quote(column)
            first = self.rows(f"SELECT {id} FROM {self.table} WHERE {id} IS NOT NULL LIMIT 1")
            self.kinds[column] = _kind(first[0][0]) if first else None
        plain = [column for column in named if self.kinds[column] in {"string", "integer"}]
        if plain:
            ends = ", ".join(f"MIN({self.quote(column)}), MAX({self.quote(column)})" for column in plain)
            (found,) = self.rows(f"SELECT {ends} FROM {self.table}")
            for column, least, most in zip(plain, found[::2], found[1::2], strict=True):
                kinds = {_kind(least), _kind(most)}
                self.kinds[column] = kinds.pop() if len(kinds) == 1 else "mixed"
        for column in named:
            if self.kind(column) == "string":
                self.refuse_blind(column)

    def refuse_blind(self, column: str) -> None:
        """Refuse a column whose collation takes different strings for one. No row is read."""
        literals = enumerate(map(self.source.literal, ALIKE))
        strings = " UNION ALL ".join(f"SELECT {text}, {i}" for i, text in literals)
        alike = f"SELECT {self.id(column)} AS x, 0 AS k FROM {self.table} WHERE 1 = 0 UNION ALL {strings}"
        groups = self.rows(f"SELECT MIN(k), MAX(k) FROM ({alike}) AS s GROUP BY x")
        for first, last in groups:
            if first != last:
                raise DataError(
                    f"column {column!r} of the prediction takes {ALIKE[first]!r} and {ALIKE[last]!r} for one "
                    "id: scan a view in which its collation is exact (binary), with case, blanks and accents"
                )

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        try:
            return [tuple(row) for row in self.source.run(sql)]
        except Exception as error:  # of whatever driver there is
            raise DataError(f"the engine refuses a statement of the scan: {_printable(error)}") from error

    def kind(self, column: str) -> str | None:
        return "string" if self.kinds[column] == "UUID" else self.kinds[column]

    def id(self, column: str) -> str:
        quoted = self.quote(column)
        return f"CAST({quoted} AS VARCHAR(36))" if self.kinds[column] == "UUID" else quoted

    def key(self, column: str) -> str:
        return self.id(column)

    def keys(self, column: str, ids: Sequence[Any]) -> dict[Any, Any]:
        return {i: i for i in ids}

    def listed(self, values: Sequence[Any]) -> list[str]:
        lists: list[list[str]] = [[]]
        size = 0
        for value in values:
            text = self.source.literal(value) if isinstance(value, str) else str(int(value))
            length = len(text.encode(errors="surrogatepass")) + len(", ")
            size += length
            if size > self.source.longest and lists[-1]:
                lists.append([])
                size = length
            lists[-1].append(text)
        return [", ".join(part) for part in lists]

    def keep(self, select: str) -> str:
        return f"({select}) AS p"

    def forget(self, table: str, column: str | None = None) -> None: ...

    def share(self, key: str) -> str | None:
        return None

    def digest(self, key: str) -> str:
        return "NULL"


def _kind(value: Any) -> str | None:
    """Kind of an id that a driver returned."""
    if value is None:
        return None
    if isinstance(value, str):
        return "string"
    integer = isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
    return "integer" if integer else type(value).__name__


def _printable(error: Exception) -> str:
    """What an engine says, without the control characters of the data that it quotes."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in str(error))


def _hashed(function: str, id: str) -> str:
    return f"CASE WHEN {id} IS NOT NULL THEN {function}({id}) END"


@dataclass(frozen=True, slots=True)
class Spark:
    """A Spark DataFrame, counted by its own session.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    one_in : int
        Duplicates are looked for among this share of the record ids of clusters that no label touches.
    """

    frame: Any
    one_in: int = 64

    @contextmanager
    def open(self) -> Iterator[Database]:
        views = [f"erbayes_{uuid4().hex}"]
        self.frame.createOrReplaceTempView(views[0])
        try:
            yield _Spark(self.frame, self.one_in, views)
        finally:
            for view in views:
                self.frame.sparkSession.catalog.dropTempView(view)


@dataclass(frozen=True, slots=True)
class _Spark:
    frame: Any
    one_in: int
    views: list[str]

    by_folder = ()

    @property
    def table(self) -> str:
        return self.views[0]

    def quote(self, name: str) -> str:
        return backquoted(name)

    def columns(self) -> Sequence[str]:
        return list(self.frame.columns)

    def use(self, record: str, cluster: str, *others: str) -> None: ...

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.frame.sparkSession.sql(sql).collect()]

    def kind(self, column: str) -> str:
        (type,) = [str(t) for name, t in self.frame.dtypes if name == column]
        known = {"string": "string"} | dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "integer")
        return known.get(type, type)

    def id(self, column: str) -> str:
        return self.quote(column)

    def key(self, column: str) -> str:
        id = self.id(column)
        return id if self.kind(column) == "integer" else _hashed("xxhash64", id)

    def keys(self, column: str, ids: Sequence[Any]) -> dict[Any, Any]:
        (inside,) = self.listed(ids)
        key = "id" if self.kind(column) == "integer" else "xxhash64(id)"
        return dict(self.rows(f"SELECT {key}, id FROM ({inside}) AS s"))

    def listed(self, values: Sequence[Any]) -> list[str]:
        type = "string" if isinstance(values[0], str) else "bigint"
        view = f"erbayes_{uuid4().hex}"
        rows = self.frame.sparkSession.createDataFrame([(v,) for v in values], f"id {type}")
        rows.createOrReplaceTempView(view)
        self.views.append(view)
        return [f"SELECT id FROM {view}"]

    def keep(self, select: str) -> str:
        return f"({select}) AS p"

    def forget(self, table: str, column: str | None = None) -> None: ...

    def share(self, key: str) -> str | None:
        return None if self.one_in == 1 else f"(xxhash64({key}) % {int(self.one_in)} = 0)"

    def digest(self, key: str) -> str:
        return f"BIT_XOR(xxhash64(CAST({key} AS BIGINT)))"


@dataclass(frozen=True, slots=True)
class DuckDB:
    """The embedded engine, which reads files, its own databases, and frames in memory.

    Parameters
    ----------
    memory_limit : str, optional
        Such as "4GB"; what does not fit goes to a temporary folder. DuckDB's own choice is 80 % of memory.
    threads : int, optional
        All processors by default.
    folder : str or Path, optional
        Where the temporary folder is made.
    keep : bool
        The source is read once and 16 bytes a record are kept until the end. False: it is read
        anew for each of five statements.
    one_in : int
        Duplicates are looked for among this share of the record ids of clusters that no label touches; 1 for
        all, which takes 60 bytes a record.
    progress : bool
        Show a bar on standard error once a statement is seen to take over two seconds.
    """

    memory_limit: str | None = None
    threads: int | None = None
    folder: str | Path | None = None
    keep: bool = True
    one_in: int = 64
    progress: bool = True

    @contextmanager
    def open(self, source: Any) -> Iterator[Database]:
        with self.open_all([source]) as (database,):
            yield database

    @contextmanager
    def open_all(self, sources: Sequence[Any]) -> Iterator[list[_DuckDB]]:
        """Several sources, which share a connection."""
        try:
            import duckdb
        except ImportError as error:
            raise DataError("scanning needs DuckDB: pip install 'erbayes[scale]'") from error
        with terminable(), _spilling(self.folder) as folder:
            given = {"memory_limit": self.memory_limit, "threads": self.threads}
            config: dict[str, Any] = {k: str(v) for k, v in given.items() if v is not None}
            config |= {"temp_directory": str(folder), "preserve_insertion_order": "false"}
            try:
                connection = duckdb.connect(config=config)
            except duckdb.Error as error:
                raise DataError(f"DuckDB does not start: {_printable(error)}") from error
            with connection:
                for setting, value in SETTINGS.items():
                    connection.execute(f"SET {setting} = {value}")
                databases = []
                for i, source in enumerate(sources):
                    databases.append(_DuckDB(connection, self, duckdb.Error, f"prediction_{i}"))
                    databases[i].attach(source)
                yield databases


@contextmanager
def _spilling(parent: str | Path | None) -> Iterator[Path]:
    """A folder for what does not fit in memory. Those that killed processes left beside it are removed.

    A process holds a lock on a file in its folder, which ends with the process, however that ends.
    """
    try:
        folder = TemporaryDirectory(dir=parent, prefix="erbayes-", ignore_cleanup_errors=True)
    except OSError as error:
        raise DataError(
            f"cannot make a temporary folder in {parent or gettempdir()}: {error.strerror}"
        ) from error
    with folder as name, ExitStack() as stack:
        if sys.platform != "win32":
            from fcntl import LOCK_EX, LOCK_NB, flock

            for left in Path(parent or gettempdir()).glob("erbayes-*/lock"):
                with (
                    suppress(OSError),
                    left.open("r+") as held,
                ):  # of a process that lives, or of another user
                    flock(held, LOCK_EX | LOCK_NB)
                    rmtree(left.parent, ignore_errors=True)
            own = stack.enter_context((Path(name) / "unlocked").open("w"))
            flock(own, LOCK_EX)
            Path(own.name).rename(Path(name) / "lock")  # no other process ever sees it unlocked
        yield Path(name) / "spill"


SETTINGS = {
    "enable_progress_bar": "true",  # or the progress is not known
    "enable_progress_bar_print": "false",
    "python_enable_replacements": "false",
}
INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}


def _family(type: str) -> str:
    """'string', 'integer', or a type of DuckDB that is neither."""
    if type == "VARCHAR" or type.startswith("ENUM("):
        return "string"
    whole = type in INTEGERS or type == "HUGEINT" or re.fullmatch(r"DECIMAL\(\d+,0\)", type)
    return "integer" if whole else type


@dataclass(slots=True)
class _DuckDB:
    connection: Any
    engine: DuckDB
    error: type[Exception]
    table: str
    types: dict[str, str] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)
    files: str = ""
    frame: Any = None
    text: bool = False
    first: Sequence[str] = ()
    tables: int = 0
    by_folder: Collection[str] = ()

    @property
    def one_in(self) -> int:
        return self.engine.one_in

    def attach(self, source: Any) -> None:
        if isinstance(source, str | Path):
            source = Files(source)
        if isinstance(source, Files):
            self.text = source.text
            self.attach_files(source)
        elif isinstance(source, DatabaseTable):
            self.text = source.text
            self.attach_database(source)
        elif type(source).__module__ == "pyarrow._dataset":
            self.connection.register(self.table, source)
            self.describe()
        else:
            self.frame = _frame(source)
            frame = isinstance(self.frame, pd.DataFrame)
            self.first = [str(c) for c in (self.frame.columns if frame else self.frame.column_names)]

    def attach_files(self, source: Files) -> None:
        names: list[str] = []
        if "://" in str(source.path):
            url = str(source.path)
            kind, paths = _suffix(Path(url)), [url]
            partitions = every = _partitions([PurePosixPath(url.partition("?")[0])])
        else:
            found = source.found()
            kind, paths = _kind_of_file(found[0]), [escape(str(p)) for p in found]
            partitions = _partitions([p.relative_to(source.root) for p in found])
            every = _partitions(found)
            if found[0].is_file():
                names, self.first = _header(kind, found[0])
        self.table = _reader(kind, paths, False)
        self.describe(names)
        if partitions and not every & {name.lower() for name in self.types}:
            own = set(self.types)
            self.table = _reader(kind, paths, True)
            self.describe(names)
            self.by_folder = set(self.types) - own
        if kind in PARQUET:
            self.files = _strings(paths)

    def attach_database(self, source: DatabaseTable) -> None:
        path, name = (
            str(source.path),
            f"database {Path(source.path).resolve()}",
        )  # it can be attached but once
        if _begins(Path(path), b"SQLite format 3"):
            raise DataError(
                f"{path} is a database of SQLite: scan it by RunSQL in Python, or export the table"
            )
        (escaped, catalog) = (text.replace("'", "''") for text in (path, name))
        self.rows(f"ATTACH IF NOT EXISTS '{escaped}' AS {double_quoted(name)} (READ_ONLY, TYPE duckdb)")
        held = self.rows(
            "SELECT table_schema, table_name FROM information_schema.tables "
            f"WHERE table_catalog = '{catalog}' ORDER BY table_schema <> 'main', table_schema, table_name"
        )
        wanted = source.table if isinstance(source.table, str) else ".".join(source.table)
        called = [table if schema == "main" else f"{schema}.{table}" for schema, table in held]
        fitting = [part for part, name in zip(held, called, strict=True) if name.lower() == wanted.lower()]
        if not fitting:
            raise DataError(f"{path} has no table {wanted!r}; it has {some(called, 20)}")
        self.table = _qualified((name, *fitting[0]), double_quoted)
        self.describe()

    def describe(self, names: Sequence[str] = ()) -> None:
        """Learn the columns, and how DuckDB calls those of which we have the names."""
        rows = self.rows(f"DESCRIBE SELECT * FROM {self.table}")
        found = [name for name, *_ in rows]
        own = [n if n and names.count(n) == 1 else f for n, f in zip(names, found, strict=False)]
        own += found[len(own) :]
        self.named = dict(zip(own, found, strict=True))
        self.types = {name: type for name, (_, type, *_) in zip(own, rows, strict=True)}

    def quote(self, name: str) -> str:
        return double_quoted(self.named.get(name, name))

    def columns(self) -> Sequence[str]:
        return [*self.first, *(c for c in self.types if c not in self.first)]

    def use(self, record: str, cluster: str, *others: str) -> None:
        if self.frame is not None:
            names = record, cluster, *others
            self.connection.register(self.table, _arrow(self.frame, self.first, *names))
            self.describe(names)
        if self.files:
            self.refuse_different_types(record, cluster, *others)

    def refuse_different_types(self, *columns: str) -> None:
        """Refuse Parquet files of which DuckDB would cast the ids of one to the type of another."""
        found = self.rows(
            f"SELECT file_name, name, num_children, duckdb_type FROM parquet_schema({self.files})"
        )
        rows = sorted(found, key=itemgetter(0))  # DuckDB may mix files; rows of one keep their order
        for column in columns:
            of = {
                _family(type): file for file, name, type in _top_level(rows) if name.lower() == column.lower()
            }
            if len(of) > 1:
                told = ", ".join(f"{type} in {Path(file).name}" for type, file in of.items())
                raise DataError(f"column {column!r} of the prediction is {told}: bring all files to one type")

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        try:
            with ThreadPoolExecutor(1) as pool:
                running = pool.submit(lambda: self.connection.execute(sql).fetchall())
                try:
                    for _ in track(self._percents(running), 100, "scanning", self.engine.progress):
                        pass
                except BaseException:
                    self.connection.interrupt()
                    raise
            found: list[tuple[Any, ...]] = running.result()
            return found
        except self.error as error:
            raise DataError(f"DuckDB cannot scan the prediction: {_printable(error)}") from error

    def _percents(self, running: Future[Any]) -> Iterator[int]:
        shown = 0
        while not running.done():
            wait([running], 0.1)
            done = int(self.connection.query_progress())
            yield from range(shown, done)
            shown = max(shown, done)

    def kind(self, column: str) -> str:
        family = _family(self.types[column])
        return "string" if family == "UUID" or (family == "integer" and self.text) else family

    def id(self, column: str) -> str:
        id, type = self.quote(column), self.types[column]
        if self.kind(column) == "string":
            return id if type == "VARCHAR" else f"CAST({id} AS VARCHAR)"
        return id if type in INTEGERS else f"CAST({id} AS HUGEINT)"

    def key(self, column: str) -> str:
        id = self.id(column)
        return id if self.kind(column) == "integer" else _hashed("hash", id)

    def keys(self, column: str, ids: Sequence[Any]) -> dict[Any, Any]:
        (inside,) = self.listed(ids)
        key = "id" if self.kind(column) == "integer" else _hashed("hash", "id")
        return dict(self.rows(f"SELECT {key}, id FROM ({inside})"))

    def listed(self, values: Sequence[Any]) -> list[str]:
        self.tables += 1
        name = f"listed_{self.tables}"
        try:
            array = pa.array(values, pa.string()) if isinstance(values[0], str) else _integers(values)
        except (pa.ArrowException, UnicodeEncodeError) as error:
            raise DataError(f"ids such as {some(values)} cannot be looked for: {error}") from error
        self.connection.register(name, pa.table({"id": array}))
        return [f"SELECT id FROM {name}"]

    def keep(self, select: str) -> str:
        if not self.engine.keep:
            return f"({select}) AS p"
        name = f"kept_{uuid4().hex}"  # other databases may share the connection
        self.rows(f"CREATE TEMP TABLE {name} AS {select}")
        return name

    def forget(self, table: str, column: str | None = None) -> None:
        if self.engine.keep:
            self.rows(f"ALTER TABLE {table} DROP COLUMN {column}" if column else f"DROP TABLE {table}")

    def share(self, key: str) -> str | None:
        return None if self.one_in == 1 else f"(hash({key}) % {int(self.one_in)} = 0)"

    def digest(self, key: str) -> str:
        # the hash of an integer may depend on its type
        return f"BIT_XOR(hash(CAST({key} AS HUGEINT)))"


def united(parts: Sequence[tuple[_DuckDB, str, str]]) -> Database:
    """Predictions of one connection, with their columns of records and clusters, as one table.

    Its columns are `record`, `cluster` and `release`, the position of the prediction.
    """
    selects = []
    for i, (database, *named) in enumerate(parts):
        record, cluster = map(database.id, named)
        columns = f"{record} AS record, {cluster} AS cluster, {i} AS release"
        selects.append(f"SELECT {columns} FROM {database.table}")
    table = f"({' UNION ALL '.join(selects)}) AS united"
    first, *_ = parts[0]
    whole = _DuckDB(first.connection, first.engine, first.error, table)
    whole.describe()
    return whole


def _array(column: pd.Series) -> pa.Array:
    try:
        return pa.array(column, from_pandas=True)
    except OverflowError:
        return _integers(column)


def _integers(values: Any) -> pa.Array:
    """Integers of any size up to 38 digits."""
    for type in (pa.int64(), pa.uint64(), pa.decimal128(38, 0)):
        with suppress(OverflowError, pa.ArrowInvalid):
            return pa.array(values, type, from_pandas=True)
    raise pa.ArrowInvalid("integers have more than 38 digits, or are not alone")


def _top_level(rows: Iterable[tuple[str, str, int | None, str]]) -> Iterator[tuple[str, str, str]]:
    """File, name and type of the columns of Parquet files, without the fields within columns.

    A row is followed by those of its children; the first of a file is the root.
    """
    file, within = "", 0
    for where, name, children, type in rows:
        if where != file:
            file, within = where, 0
        elif within:
            within += (children or 0) - 1
        else:
            within = children or 0
            yield file, name, type


def _frame(source: Any) -> Any:
    """A DataFrame, or an Arrow table."""
    if isinstance(source, pd.Series):
        return source.rename("cluster").rename_axis("record").reset_index()
    if isinstance(source, pd.DataFrame):
        return source
    if type(source).__name__ == "LazyFrame":
        raise DataError("a LazyFrame holds no rows yet: give the files that it reads, or its .collect()")
    if hasattr(source, "__arrow_c_stream__"):
        return pa.table(source)
    raise DataError(
        f"cannot scan a {type(source).__name__}: expected files, a frame, an Arrow dataset, a "
        "DuckDB relation, a Spark DataFrame or RunSQL"
    )


def _arrow(frame: Any, names: Sequence[str], record: str, cluster: str, *others: str) -> Any:
    """Those columns of a frame, without copies where possible; clusters of a categorical as its codes."""
    columns = []
    for name in (record, cluster, *others):
        if names.count(name) > 1:
            raise DataError(f"the prediction has {names.count(name)} columns {name!r}")
        column = frame.iloc[:, names.index(name)] if isinstance(frame, pd.DataFrame) else frame[name]
        try:
            column = column if isinstance(column, pa.ChunkedArray) else _array(column)
        except (pa.ArrowException, UnicodeEncodeError) as error:
            raise DataError(
                f"column {name!r} of the prediction must be all strings or all integers: {error}"
            ) from error
        column = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
        if name == cluster and pa.types.is_dictionary(column.type) and _is_id(column.type.value_type):
            chunks = [chunk.indices for chunk in column.unify_dictionaries().chunks]
            column = pa.chunked_array(chunks, column.type.index_type)
        columns.append(column)
    return pa.table(dict(zip((record, cluster, *others), columns, strict=True)))


def _is_id(type: Any) -> bool:
    kinds = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(kind(type) for kind in kinds)


@contextmanager
def _relation(relation: Any) -> Iterator[Database]:
    """A DuckDB relation, counted by the connection that it belongs to."""
    view = f"erbayes_{uuid4().hex}"

    def run(sql: str) -> Iterable[Sequence[Any]]:
        rows: list[tuple[Any, ...]] = relation.query(view, sql).fetchall()
        return rows

    try:
        yield _RunSQL(RunSQL(run, view, names=list(relation.columns)))
    finally:
        relation.query(view, f"DROP VIEW IF EXISTS {view}")


def lies_elsewhere(prediction: Any) -> bool:
    """Whether a prediction is files, a table or a dataset, to be scanned: not memberships in memory.

    Examples
    --------
    >>> lies_elsewhere("release/*.parquet"), lies_elsewhere({1: "a"})
    (True, False)
    """
    dataset = type(prediction).__module__ == "pyarrow._dataset"
    return isinstance(prediction, str | Path | Files | DatabaseTable) or has_engine(prediction) or dataset


def has_engine(source: Any) -> bool:
    """Whether a source is counted by an engine of its own."""
    home = type(source).__module__.split(".")[0]
    relation = home in {"duckdb", "_duckdb"} and hasattr(source, "columns")
    return isinstance(source, RunSQL | Spark) or home == "pyspark" or relation


def opened(source: Any, engine: DuckDB) -> AbstractContextManager[Database]:
    """A source, opened by its own engine where it has one, by `engine` otherwise."""
    if isinstance(source, RunSQL):
        return nullcontext(_RunSQL(source))
    if not has_engine(source):
        return engine.open(source)
    if isinstance(source, Spark):
        return source.open()
    return Spark(source).open() if type(source).__module__.startswith("pyspark") else _relation(source)
