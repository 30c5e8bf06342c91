"""DuckDB, the embedded database: its connection and its SQL, its own tables, datasets and frames."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any
from uuid import uuid4

import pandas as pd
import pyarrow as pa

from .._internal.arrays import hint_at_polars
from .._internal.errors import DataError, Remedy, head, import_extra, show_progress, whole
from .._internal.files import holds, locked, name_of, terminable
from .._internal.names import JOIN
from .database import STANDARD, Database, legible

SETTINGS = {
    # or a statement would download code, and run it
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_progress_bar": "true",  # or the progress is not known
    "enable_progress_bar_print": "false",
    # or an unknown table would be looked for among the caller's variables
    "python_enable_replacements": "false",
}
PART = 10_000_000
"""Rows of a part that is counted at once, because groups take memory."""
PLACES, DENSE = 2**26, 2
"""Integers are counted in an array, in half the time of a hash table or less, if their range has at most so
many numbers, in all and by row."""
BYTES_OF_PLACE, BYTES_OF_ROW = 9, 34
"""Memory of a place in the array of a thread, and of a row in a hash table. The smaller one is taken."""
THREADS = 1024
"""Largest number of threads, since a million never end."""
MEMORY = re.compile(r"\s*(?=[0-9.]*[1-9])[0-9]+(\.[0-9]+)?\s*[KMGT]i?B\s*", re.IGNORECASE)
"""An amount of memory above 0. DuckDB takes one below 0 for its default."""
REMEDIES = {
    "PermissionException": Remedy(
        "if a view reads a file of its own and you trust its database, let it, or make a table of the view",
        "DatabaseTable(path, table, reads_files=True)",
    ),
    "OutOfMemoryException": Remedy(
        "allow it more, or fewer threads in Python", "DuckDB(memory_limit='8GB')", "--memory-limit 8GB"
    ),
}
"""What to do about errors of DuckDB."""
INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}


@dataclass(frozen=True, slots=True)
class DuckDB:
    """The embedded database, which reads files, its own databases, and frames in memory.

    Parameters
    ----------
    memory_limit : str, optional
        Memory for a scan, such as "4GB". Other data go to a temporary folder. By default 80 % of memory.
    threads : int, optional
        The number of threads, at most 1,024; by default one per processor.
    folder : str or Path, optional
        The folder in which the temporary folder is made; by default that of the system.
    progress : bool
        Show a bar on standard error once a statement has taken about two seconds.

    Examples
    --------
    >>> from erbayes.large import scan
    >>> frugal = DuckDB(memory_limit="1GB", threads=1, progress=False)
    >>> scan(pa.table({"record": [1, 2], "cluster": ["a", "a"]}), {1: "x"}, database=frugal)
    Units(1 units, 1 records, 1 pieces)
    """

    memory_limit: str | None = None
    threads: int | None = None
    folder: str | Path | None = None
    progress: bool = True

    def __post_init__(self) -> None:
        limit = self.memory_limit
        if limit is not None and not (isinstance(limit, str) and MEMORY.fullmatch(limit)):
            raise DataError(f"{limit!r} is not an amount of memory such as 4GB")
        if self.threads is not None:
            whole(self.threads, "the number of threads", most=THREADS)

    @contextmanager
    def connected(self, files: Sequence[str], closed: bool = True) -> Iterator[Any]:
        """Open a connection that reads these files, and no others if it is closed."""
        duckdb = import_extra("duckdb", "scanning needs DuckDB", "scale")
        with terminable(), _make_spill_folder(self.folder) as folder:
            # results are counts, so that the order of rows may be given up for less memory
            config: dict[str, Any] = {"temp_directory": str(folder), "preserve_insertion_order": "false"}
            if self.memory_limit is not None:
                config["memory_limit"] = self.memory_limit
            if self.threads is not None:
                config["threads"] = str(int(self.threads))
            with ExitStack() as stack:
                try:
                    connection = stack.enter_context(duckdb.connect(config=config))
                    for setting, value in SETTINGS.items():
                        connection.execute(f"SET {setting} = {value}")
                    if closed:
                        connection.execute(f"SET allowed_paths = {quote_strings(files)}")
                        connection.execute("SET enable_external_access = false")
                except duckdb.Error as error:
                    raise DataError(f"DuckDB does not start: {legible(error)}") from error
                yield connection


EMBEDDED = DuckDB()


@contextmanager
def _make_spill_folder(parent: str | Path | None) -> Iterator[Path]:
    parent = Path(parent or gettempdir())
    try:
        folder = TemporaryDirectory(dir=parent, prefix="erbayes-", ignore_cleanup_errors=True)
    except OSError as error:
        raise DataError(f"cannot make a temporary folder in {parent}: {error.strerror}") from error
    with folder as name, locked(Path(name), "erbayes-"):
        yield Path(name) / "spill"


def family(type: str) -> str:
    """'string', 'integer', or a type of DuckDB that is neither."""
    if type == "VARCHAR" or type.startswith("ENUM("):
        return "string"
    integer = type in INTEGERS or type == "HUGEINT" or re.fullmatch(r"DECIMAL\(\d+,0\)", type)
    return "integer" if integer else type


@dataclass
class DuckTable(Database):
    """An opened Arrow dataset in a connection of DuckDB; other sources derive, and attach their data."""

    connection: Any
    options: DuckDB
    source: Any = None
    table: str = ""
    by_folder: Collection[str] = ()
    headings: Mapping[str, Collection[str]] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)
    text: bool = False
    first: Sequence[str] = ()

    @classmethod
    def reads(cls, source: Any) -> list[str]:
        """Return the paths that DuckDB itself opens for a source."""
        return []

    def attach(self) -> None:
        """Make the source, here an Arrow dataset, a table of the connection, and read its columns."""
        self.table = f"dataset_{uuid4().hex}"
        self.connection.register(self.table, self.source)
        self.describe()

    def describe(self, names: Sequence[str] = ()) -> None:
        """Read the columns from DuckDB; `names` are those of the source, in order."""
        self.named, self.types = {}, {}
        # a name that occurs twice does not identify a column
        unique = {i: name for i, name in enumerate(names) if name and names.count(name) == 1}
        for i, (name, type, *_) in enumerate(self.rows(f"DESCRIBE SELECT * FROM {self.table}")):
            known = unique.get(i, name)
            self.named[known], self.types[known] = name, type

    def columns(self) -> Sequence[str]:
        return [*self.first, *(c for c in self.types if c not in self.first)]

    def quote(self, name: str) -> str:
        return STANDARD.quote(self.named.get(name, name))

    def kind(self, column: str) -> str:
        kind = family(self.types[column])
        return "string" if kind == "UUID" or (kind == "integer" and self.text) else kind

    def id(self, column: str) -> str:
        id, type = self.quote(column), self.types[column]
        if self.kind(column) == "string":
            return id if type == "VARCHAR" else f"CAST({id} AS VARCHAR)"
        # DuckDB 1.5 hands conditions on numbers above 63 bits to pyarrow, which cannot take them
        return id if type in INTEGERS - {"UBIGINT"} else f"CAST({id} AS HUGEINT)"

    def join_source(self, record: str, source: str) -> None:
        id, origin = (f"CAST({self.quote(column)} AS VARCHAR)" for column in (record, source))
        joined = f"{origin} || '{JOIN}' || {id} AS {self.quote(record)}"
        self.table = f"(SELECT * REPLACE ({joined}) FROM {self.table}) AS joined"
        self.types = {**self.types, record: "VARCHAR"}
        if record in self.headings:
            self.headings = {**self.headings, record: (f"{source}{JOIN}{record}",)}

    def number(self, column: str) -> str:
        value, none = self.quote(column), "CAST('NaN' AS DOUBLE)"
        if self.kind(column) != "string":
            return f"NULLIF(CAST({value} AS DOUBLE), {none})"
        # DuckDB takes 1_000 for a number, and a text that is none is not missing
        number = f"TRY_CAST(REPLACE(CAST({value} AS VARCHAR), '_', '?') AS DOUBLE)"
        return f"CASE WHEN {value} IS NOT NULL THEN COALESCE({number}, {none}) END"

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self._run(sql, lambda result: result.fetchall())

    def fetched(self, sql: str, names: Sequence[str]) -> pd.DataFrame:
        def columns(result: Any) -> pd.DataFrame:
            # columns are quicker than rows, but make floats of integers above 64 bits, and times of dates
            wide = any(str(type) in {"HUGEINT", "DATE"} for _, type, *_ in result.description)
            table = pd.DataFrame(result.fetchall(), dtype=object) if wide else result.df()
            return table.set_axis(list(names), axis=1) if len(table) else pd.DataFrame(columns=list(names))

        return self._run(sql, columns)

    def _run[Read](self, sql: str, read: Callable[[Any], Read]) -> Read:
        """Run a statement, and return what `read` makes of its result; errors come in DuckDB's words."""
        import duckdb

        try:
            # in a thread of its own, so that this one can show progress and pass on an interrupt
            with ThreadPoolExecutor(1) as pool:
                running = pool.submit(lambda: read(self.connection.execute(sql)))
                try:
                    percents = self._report_percents(running)
                    for _ in show_progress(percents, 100, "scanning", self.options.progress):
                        pass
                except BaseException:
                    self.connection.interrupt()
                    raise
            return running.result()
        except duckdb.Error as error:
            raise DataError(
                f"DuckDB cannot scan the prediction: {legible(error)}",
                *[remedy for kind, remedy in REMEDIES.items() if isinstance(error, getattr(duckdb, kind))],
            ) from error

    def _report_percents(self, running: Future[Any]) -> Iterator[int]:
        shown = 0
        while not running.done():
            wait([running], 0.1)
            done = int(self.connection.query_progress())
            yield from range(shown, done)
            shown = max(shown, done)

    def listed(self, values: Sequence[Any]) -> list[str]:
        if not len(values):
            return []
        name = f"listed_{uuid4().hex}"
        try:
            array = pa.array(values, pa.string()) if isinstance(values[0], str) else integers(values)
        except (pa.ArrowException, UnicodeEncodeError) as error:
            raise DataError(f"ids such as {head(values)} cannot be looked for: {error}") from error
        self.connection.register(name, pa.table({"id": array}))
        return [f"SELECT id FROM {name}"]

    def keep(self, select: str) -> str:
        name = f"kept_{uuid4().hex}"  # a name of its own, since other tables may share the connection
        self.rows(f"CREATE TEMP TABLE {name} AS {select}")
        return f"{name} AS p"

    def drop(self, kept: str) -> None:
        self.rows(f"DROP TABLE {kept.removesuffix(' AS p')}")

    def parts(self, key: str, rows: int) -> list[str]:
        number = 1 + (rows - 1) // PART
        return [f"hash({key}) % {number} = {i}" for i in range(number)] if number > 1 else ["1 = 1"]

    @contextmanager
    def counting(self, rows: int) -> Iterator[None]:
        # DuckDB does not spill such arrays, of which each thread has one
        bits = 0
        if self.options.memory_limit is None:
            ((threads,),) = self.rows("SELECT current_setting('threads')")
            places = min(PLACES, DENSE * rows, rows * BYTES_OF_ROW // (BYTES_OF_PLACE * threads))
            bits = places.bit_length() - 1
        self.connection.execute(f"SET perfect_ht_threshold = {max(bits, 0)}")
        try:
            yield
        finally:
            self.connection.execute("RESET perfect_ht_threshold")


def quote_string(text: str) -> str:
    """Return a string in DuckDB's SQL."""
    return "'" + text.replace("'", "''") + "'"


def quote_strings(texts: Iterable[str]) -> str:
    """Return a list of strings in DuckDB's SQL."""
    return f"[{', '.join(map(quote_string, texts))}]"


def integers(values: Any) -> pa.Array:
    """Return an array of integers of any size up to 38 digits."""
    # the narrowest type that holds all of them, because narrow keys take less memory to group
    for type in (pa.int64(), pa.uint64(), pa.decimal128(38, 0)):
        with suppress(OverflowError, pa.ArrowInvalid):
            return pa.array(values, type, from_pandas=True)
    raise pa.ArrowInvalid("integers have more than 38 digits, or other values are among them")


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A table or view of a DuckDB database file.

    Parameters
    ----------
    table : str or tuple of str
        Name of the table, or the names of schema and table. They are quoted: any character may occur.
    text : bool
        True reads integers as text.
    reads_files : bool
        True lets a view of the database read files of its own. It then reads any file that you may read.

    Examples
    --------
    >>> DatabaseTable("releases.duckdb", ("main", "clusters"), text=True).table
    ('main', 'clusters')
    """

    path: str | Path
    table: str | tuple[str, ...]
    text: bool = False
    reads_files: bool = False


class StoredTable(DuckTable):
    """An opened `DatabaseTable`."""

    source: DatabaseTable

    @classmethod
    def reads(cls, source: DatabaseTable) -> list[str]:
        # DuckDB looks beside the file that a link leads to
        paths = (name_of(Path(source.path)), Path(source.path).resolve())
        return [f"{path}{end}" for path in paths for end in ("", ".wal")]

    def attach(self) -> None:
        path = name_of(Path(self.source.path))
        name = f"database {Path(path).resolve()}"  # a database can be attached only once
        if holds(Path(path), b"SQLite format 3"):
            raise DataError(
                f"{path} is a database of SQLite: scan it by RunSQL in Python, or export the table"
            )
        quoted = STANDARD.quote(name)
        self.rows(f"ATTACH IF NOT EXISTS {quote_string(path)} AS {quoted} (READ_ONLY, TYPE duckdb)")
        # the schema main comes first, as its tables need no name of a schema
        tables = self.rows(
            "SELECT table_schema, table_name FROM information_schema.tables "
            f"WHERE table_catalog = {quote_string(name)} "
            "ORDER BY table_schema <> 'main', table_schema, table_name"
        )
        named = self.source.table if isinstance(self.source.table, str) else ".".join(self.source.table)
        shown = [table if schema == "main" else f"{schema}.{table}" for schema, table in tables]
        matching = [tables[i] for i, table in enumerate(shown) if table.lower() == named.lower()]
        if not matching:
            raise DataError(f"{path} has no table {named!r}; it has {head(shown, 20)}")
        self.table = STANDARD.qualify((name, *matching[0]))
        self.text = self.source.text
        self.describe()

    def id(self, column: str) -> str:
        # since DuckDB 2.0.1 a hash follows the collation, which would make one cluster of two
        exact = self.types[column] == "VARCHAR"
        return f'({self.quote(column)} COLLATE "binary")' if exact else super().id(column)


class FrameTable(DuckTable):
    """A frame or an Arrow table, as a table with only the columns in use."""

    def attach(self) -> None:
        source = self.source
        if isinstance(source, pd.Series):
            source = source.rename("cluster").rename_axis("record").reset_index()
        elif not isinstance(source, pd.DataFrame) and hasattr(source, "__arrow_c_stream__"):
            source = pa.table(source)
        elif not isinstance(source, pd.DataFrame):
            lazy = ", or of a LazyFrame its .collect()" if type(source).__name__ == "LazyFrame" else ""
            raise DataError(
                f"cannot scan a {type(source).__name__}: expected files{lazy}, a frame, an Arrow dataset, a "
                f"DuckDB relation, a Spark DataFrame or RunSQL{hint_at_polars(source)}"
            )
        self.source = source
        self.arrays: dict[str, Any] = {}
        names = source.columns if isinstance(source, pd.DataFrame) else source.column_names
        self.first = [str(c) for c in names]

    def look(self, *columns: str) -> list[str]:
        readable = []
        for name in columns:
            with suppress(DataError):  # of columns that nobody may need
                self._convert(name)
                readable.append(name)
        if readable:
            self.use(*readable)
        return readable

    def use(self, *columns: str) -> None:
        self.table = f"frame_{uuid4().hex}"
        self.connection.register(self.table, pa.table({name: self._convert(name) for name in columns}))
        self.describe(columns)

    def _convert(self, name: str) -> Any:
        """Return a column as Arrow has it, which is converted once."""
        if (times := self.first.count(name)) > 1:
            raise DataError(f"the prediction has {times} columns {name!r}")
        if not isinstance(self.source, pd.DataFrame):
            return self.source[name]
        if name not in self.arrays:
            column = self.source.iloc[:, self.first.index(name)]
            try:
                try:
                    self.arrays[name] = pa.array(column, from_pandas=True)
                except OverflowError:
                    self.arrays[name] = integers(column)
            except (pa.ArrowException, UnicodeEncodeError) as error:
                raise DataError(
                    f"column {name!r} of the prediction must be all strings or all integers: {error}"
                ) from error
        return self.arrays[name]
