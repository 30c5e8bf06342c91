"""Where a large prediction lies: files, DuckDB, Spark, frames in memory, or anything that runs SQL.

A source opens as a `Database`, which answers SQL made of COUNT, GROUP BY and IN. In DuckDB and Spark 64-bit
hashes stand for string ids: such *keys* take less memory to group.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from glob import escape, glob, has_magic
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol
from uuid import uuid4

import pandas as pd
import pyarrow as pa

from .errors import DataError, some
from .files import PARQUET, terminable
from .progress import track

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


def literal(value: str | int) -> str:
    """A value as SQL that no dialect's rules for quotes, escapes and parameters can alter.

    Examples
    --------
    >>> print(literal("it's"), literal(7))
    'it' || CHR(39) || 's' 7
    """
    if not isinstance(value, str):
        return str(int(value))
    parts = re.split(r"([^\w .-])", value, flags=re.ASCII)
    shown = [f"CHR({ord(p)})" if i % 2 and p.isascii() else f"'{p}'" for i, p in enumerate(parts) if p]
    return " || ".join(shown) or "''"


class Database(Protocol):
    """A prediction's table, opened.

    Attributes
    ----------
    table : str
        SQL of the table.
    """

    @property
    def table(self) -> str: ...
    def quote(self, name: str) -> str: ...
    def rows(self, sql: str) -> list[tuple[Any, ...]]: ...
    def columns(self) -> Sequence[str]:
        """All columns; none where that cannot be told."""

    def use(self, record: str, cluster: str, *others: str) -> None:
        """Be ready for these columns."""

    def kind(self, column: str) -> str | None:
        """'string', 'integer', or the name of another type; None where that cannot be told."""

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

    def found(self) -> list[str]:
        """The files, as patterns that match nothing else.

        Raises
        ------
        DataError
            No file, or files that are not all of one kind.
        """
        if "://" in str(self.path):
            return [str(self.path)]
        path = Path(self.path)
        if path.is_dir():
            every = [p for p in sorted(path.rglob("*")) if p.is_file() and p.name[0] not in "._"]
        elif not path.exists() and has_magic(str(path)):
            every = sorted(map(Path, glob(str(path), recursive=True)))
        else:
            every = [path]
        if not every or not every[0].exists():
            raise DataError(f"cannot read {self.path}: there is no such file")
        kinds = {_suffix(str(p)) for p in every}
        unknown = [p.name for p in every if _suffix(str(p)) not in PARQUET | TEXT]
        if unknown and len(every) > 1:
            raise DataError(
                f"{self.path}: {len(unknown)} of {len(every)} files are neither Parquet, CSV nor "
                f"TSV, such as {some(unknown)}"
            )
        if kinds & FOREIGN:
            raise DataError(f"cannot scan {every[0]}: DuckDB unpacks {some(sorted(PACKED))} only")
        if len(kinds - PARQUET) > 1 or (kinds & PARQUET and kinds - PARQUET):
            raise DataError(f"{self.path} holds files of several kinds: {some(sorted(kinds), 9)}")
        return [escape(str(p)) for p in every]

    def sql(self) -> str:
        files = self.found()
        listed = ", ".join("'" + f.replace("'", "''") + "'" for f in files)
        suffix = _suffix(files[0])
        if suffix in PARQUET:
            return f"read_parquet([{listed}])"
        separator = "\t" if suffix == ".tsv" else ","
        return (
            f"read_csv([{listed}], delim = '{separator}', header = true, quote = '\"', escape = '\"', "
            "all_varchar = true, nullstr = '', union_by_name = true)"
        )


def _suffix(path: str) -> str:
    *_, before, last = ("", "", *(s.lower() for s in Path(path).suffixes))
    return before if last in PACKED else last


def unpacks(path: Path) -> bool:
    """Whether DuckDB can read a file as it is packed.

    Examples
    --------
    >>> unpacks(Path("a.csv.gz")), unpacks(Path("a.csv.bz2")), unpacks(Path("a.tar.gz"))
    (True, False, False)
    """
    return _suffix(str(path)) not in FOREIGN


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

    The statements only read. Ids are compared as they are, and duplicates looked for among all of them. The
    engine must tell strings apart that differ in case or in trailing blanks.

    Parameters
    ----------
    run : callable, str -> rows
        Rows are sequences of values, as of a cursor's fetchall().
    name : str or tuple of str
        The table, or the names of catalog, schema and table. They are quoted: any character may occur.
    quote : callable, str -> str
        How identifiers are quoted: `double_quoted` (the standard), `backquoted`, or your own.
    most : int
        How many ids may be listed in a statement.
    names : sequence of str
        All columns of the table, where `record` and `cluster` are not named.

    Examples
    --------
    >>> import sqlite3
    >>> from erbayes.scan import scan
    >>> database = sqlite3.connect(":memory:")
    >>> _ = database.execute("CREATE TABLE p AS SELECT 1 AS record, 'a' AS cluster UNION SELECT 2, 'a'")
    >>> table = RunSQL(lambda sql: database.execute(sql).fetchall(), "p")
    >>> scan(table, {1: "x"}, record="record", cluster="cluster")
    Units(1 units, 1 records, 1 pieces)
    """

    run: Callable[[str], Iterable[Sequence[Any]]]
    name: str | tuple[str, ...]
    quote: Callable[[str], str] = double_quoted
    most: int = 10_000
    names: Sequence[str] = ()

    one_in = 1

    @property
    def table(self) -> str:
        return _qualified(self.name, self.quote)

    def columns(self) -> Sequence[str]:
        return self.names

    def use(self, record: str, cluster: str, *others: str) -> None: ...

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.run(sql)]

    def kind(self, column: str) -> str | None:
        ((least,),) = self.rows(f"SELECT MIN({self.quote(column)}) FROM {self.table}")
        if least is None:
            return None
        return {str: "string", int: "integer"}.get(type(least), type(least).__name__)

    def key(self, column: str) -> str:
        return self.quote(column)

    def keys(self, column: str, ids: Sequence[Any]) -> dict[Any, Any]:
        return {i: i for i in ids}

    def listed(self, values: Sequence[Any]) -> list[str]:
        parts = (values[a : a + self.most] for a in range(0, len(values), self.most))
        return [", ".join(map(literal, part)) for part in parts]

    def keep(self, select: str) -> str:
        return f"({select}) AS p"

    def forget(self, table: str, column: str | None = None) -> None: ...

    def share(self, key: str) -> str | None:
        return None

    def digest(self, key: str) -> str:
        return "NULL"


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

    def key(self, column: str) -> str:
        id = self.quote(column)
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
        with (
            terminable(),
            TemporaryDirectory(dir=self.folder, prefix="erbayes-", ignore_cleanup_errors=True) as folder,
        ):
            given = {"memory_limit": self.memory_limit, "threads": self.threads}
            config: dict[str, Any] = {k: str(v) for k, v in given.items() if v is not None}
            config |= {"temp_directory": folder, "preserve_insertion_order": "false"}
            try:
                connection = duckdb.connect(config=config)
            except duckdb.Error as error:
                raise DataError(f"DuckDB does not start: {error}") from error
            with connection:
                for setting, value in SETTINGS.items():
                    connection.execute(f"SET {setting} = {value}")
                databases = []
                for i, source in enumerate(sources):
                    databases.append(_DuckDB(connection, self, duckdb.Error, f"prediction_{i}"))
                    databases[i].attach(source)
                yield databases


SETTINGS = {
    "enable_progress_bar": "true",  # or the progress is not known
    "enable_progress_bar_print": "false",
    "python_enable_replacements": "false",
}
INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}


@dataclass(slots=True)
class _DuckDB:
    connection: Any
    engine: DuckDB
    error: type[Exception]
    table: str
    types: dict[str, str] = field(default_factory=dict)
    frame: Any = None
    text: bool = False
    first: Sequence[str] = ()
    tables: int = 0

    @property
    def one_in(self) -> int:
        return self.engine.one_in

    def attach(self, source: Any) -> None:
        if isinstance(source, str | Path):
            source = Files(source)
        if isinstance(source, Files):
            self.table, self.text = source.sql(), source.text
            self.describe()
            if self.table.startswith("read_parquet"):
                self.first = _pandas_index(source)
        elif isinstance(source, DatabaseTable):
            path = str(source.path).replace("'", "''")
            name = double_quoted(f"database {Path(source.path).resolve()}")  # a file can be attached but once
            self.rows(f"ATTACH IF NOT EXISTS '{path}' AS {name} (READ_ONLY)")
            self.table, self.text = f"{name}.{_qualified(source.table, double_quoted)}", source.text
        elif type(source).__module__ == "pyarrow._dataset":
            self.connection.register(self.table, source)
        else:
            self.frame = _frame(source)
            self.first = [
                str(c)
                for c in (
                    self.frame.columns if isinstance(self.frame, pd.DataFrame) else self.frame.column_names
                )
            ]
            return
        self.describe()

    def describe(self) -> None:
        self.types = {n: type for n, type, *_ in self.rows(f"DESCRIBE SELECT * FROM {self.table}")}

    def quote(self, name: str) -> str:
        return double_quoted(name)

    def columns(self) -> Sequence[str]:
        return [*self.first, *(c for c in self.types if c not in self.first)]

    def use(self, record: str, cluster: str, *others: str) -> None:
        if self.frame is not None:
            self.connection.register(self.table, _arrow(self.frame, self.first, record, cluster, *others))
            self.describe()

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
            raise DataError(f"DuckDB cannot scan the prediction: {error}") from error

    def _percents(self, running: Future[Any]) -> Iterator[int]:
        shown = 0
        while not running.done():
            wait([running], 0.1)
            done = int(self.connection.query_progress())
            yield from range(shown, done)
            shown = max(shown, done)

    def kind(self, column: str) -> str:
        type = self.types[column]
        if type == "VARCHAR" or type.startswith("ENUM(") or (self.text and type in INTEGERS):
            return "string"
        return "integer" if type in INTEGERS else type

    def _key(self, column: str, id: str) -> str:
        if self.types[column] in INTEGERS and not self.text:
            return id
        return _hashed("hash", f"CAST({id} AS VARCHAR)")

    def key(self, column: str) -> str:
        return self._key(column, self.quote(column))

    def keys(self, column: str, ids: Sequence[Any]) -> dict[Any, Any]:
        (inside,) = self.listed(ids)
        return dict(self.rows(f"SELECT {self._key(column, 'id')}, id FROM ({inside})"))

    def listed(self, values: Sequence[Any]) -> list[str]:
        self.tables += 1
        name = f"listed_{self.tables}"
        if isinstance(values[0], str):
            array = pa.array(values, pa.string())
        else:
            array = pa.array(values, pa.uint64() if max(values) >= 2**63 else pa.int64())
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
        record, cluster = (
            f"CAST({database.quote(c)} AS VARCHAR)" if database.kind(c) == "string" else database.quote(c)
            for c in named
        )
        columns = f"{record} AS record, {cluster} AS cluster, {i} AS release"
        selects.append(f"SELECT {columns} FROM {database.table}")
    table = f"({' UNION ALL '.join(selects)}) AS united"
    first, *_ = parts[0]
    whole = _DuckDB(first.connection, first.engine, first.error, table)
    whole.describe()
    return whole


def _pandas_index(source: Files) -> list[str]:
    """Columns that pandas wrote last but shows first."""
    import pyarrow.parquet as parquet

    (path, *_) = source.found()
    if "://" in path:
        return []
    metadata = parquet.read_schema(re.sub(r"\[(.)\]", r"\1", path)).pandas_metadata or {}
    return [
        c
        for c in metadata.get("index_columns", [])
        if isinstance(c, str) and not c.startswith("__index_level_")
    ]


def _frame(source: Any) -> Any:
    """A DataFrame, or an Arrow table."""
    if isinstance(source, pd.Series):
        return source.rename("cluster").rename_axis("record").reset_index()
    if isinstance(source, pd.DataFrame):
        return source
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
            column = column if isinstance(column, pa.ChunkedArray) else pa.array(column, from_pandas=True)
        except pa.ArrowException as error:
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
        yield RunSQL(run, view, names=list(relation.columns))
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
        return nullcontext(source)
    if not has_engine(source):
        return engine.open(source)
    if isinstance(source, Spark):
        return source.open()
    return Spark(source).open() if type(source).__module__.startswith("pyspark") else _relation(source)
