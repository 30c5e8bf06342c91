"""The file of finished blocks of a study, and a digest of the code that made them."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import re
import sqlite3
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType, TracebackType
from typing import Any, Self

import joblib
import numpy as np
import pandas as pd
import scipy

from .._internal.arrays import FloatArray
from .._internal.errors import DataError, head

OWN = __name__.partition(".")[0]


def _list_sources(folder: Traversable) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every source file below a folder, which may lie in an archive."""
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.is_dir():
            yield from _list_sources(entry)
        elif entry.name.endswith(".py"):
            yield entry.name, entry.read_bytes()


def digest_of(package: Traversable) -> str:
    """Make a digest of the sources in a folder, and of the versions of NumPy and SciPy."""
    digest = hashlib.sha256(f"numpy {np.__version__} scipy {scipy.__version__}".encode())
    for name, content in _list_sources(package):
        digest.update(f"\n{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


PACKAGE = digest_of(files(OWN))
"""The digest of this package.

It is made at import, when the code is loaded: later the sources of an editable installation may differ.
"""


def plain_repr(thing: object) -> str:
    """Return `repr` without addresses, which differ from run to run."""
    # addresses differ from run to run
    return re.sub(r" at 0x[0-9a-f]+", "", repr(thing))


def code_of(*things: object) -> str:
    """Return a digest of this package, versions, and the code and values that callables refer to."""
    # code counts in its compiled form, so that comments do not matter and no source file is needed
    walk = _Walk()
    for thing in things:
        walk.add(thing)
    return hashlib.sha256("\n".join([PACKAGE, *walk.lines]).encode()).hexdigest()


REMEDIES = {
    "SQLITE_BUSY": "another program is writing to it: wait until it has finished, then run the study again",
    "SQLITE_LOCKED": "another program is writing to it: wait until it has finished, then run the study again",
    "SQLITE_NOTADB": "it is not a file of a study: pass the path of another file, or of none yet",
    "SQLITE_CORRUPT": "it is damaged: delete it, or pass another path",
    "SQLITE_CANTOPEN": "its folder must exist, and you need permission to write there",
    "SQLITE_READONLY": "it cannot be written to: change its permissions, or pass a copy",
    "SQLITE_PERM": "it cannot be written to: change its permissions, or pass a copy",
    "SQLITE_FULL": "the disk is full: make room, then run the study again; finished blocks are kept",
}
"""Remedy of an error of SQLite, by the start of the error's name."""


class StudyFile:
    """Finished blocks of a study, in SQLite or in memory, by a digest of the question and one of the code."""

    # hexadecimal digits of the first digest in a key, of population, names and numbers; that of code follows
    QUESTION = 64

    def __init__(self, path: Path | str | None) -> None:
        self.path = path
        with self._name_errors():
            self.file = sqlite3.connect(":memory:" if path is None else path)
            try:
                tables = {name for (name,) in self.file.execute("SELECT name FROM sqlite_master")}
                if tables and "blocks" not in tables:
                    raise DataError(f"{path} holds other tables ({head(sorted(tables))}): pass another path")
                self.file.execute("CREATE TABLE IF NOT EXISTS blocks (key TEXT PRIMARY KEY, runs BLOB)")
            except BaseException:
                self.file.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.file.close()

    def load(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, FloatArray]:
        """Load finished blocks of these shapes by key, and warn of those cut off or made by other code."""
        blocks, cut, other = {}, 0, 0
        with self._name_errors():
            for key, shape in shapes.items():
                row = self.file.execute(
                    "SELECT CAST(runs AS BLOB) FROM blocks WHERE key = ?", [key]
                ).fetchone()
                if row is None:
                    other += self._count_other_code(key)
                elif len(row[0] or b"") != 8 * np.prod(shape):
                    cut += 1
                else:
                    blocks[key] = np.frombuffer(row[0]).reshape(shape)
            if len(blocks) < len(shapes):
                # if the file cannot be written to, this fails before the work instead of after it
                self.file.execute("DELETE FROM blocks WHERE 0")
                self.file.rollback()
        if other:
            warnings.warn(
                f"{self.path}: finished blocks that other code made, and that are not used: {other}. "
                "erbayes, NumPy, SciPy, a plan, a metric or an estimator has changed.",
                stacklevel=3,
            )
        if cut:
            warnings.warn(
                f"{self.path}: finished blocks that are cut off, and are made again: {cut}.", stacklevel=3
            )
        return blocks

    def _count_other_code(self, key: str) -> int:
        """Count blocks with the same question and other code."""
        first = key[: self.QUESTION]
        count = "SELECT count(*) FROM blocks WHERE key >= ? AND key < ?"
        return int(self.file.execute(count, [first, first + "g"]).fetchone()[0])  # "g" follows all hex digits

    def keep(self, runs: Mapping[str, FloatArray]) -> None:
        """Write finished blocks by key."""
        with self._name_errors():
            self.file.executemany(
                "INSERT OR REPLACE INTO blocks VALUES (?, ?)", [(k, r.tobytes()) for k, r in runs.items()]
            )
            self.file.commit()

    @contextmanager
    def _name_errors(self) -> Iterator[None]:
        """Turn errors of SQLite into DataError, with the path and a remedy."""
        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "")
            remedy = next((r for start, r in REMEDIES.items() if name.startswith(start)), "pass another path")
            raise DataError(f"{self.path}: {error}; {remedy}") from error


class _Walk:
    """Everything that some code refers to, as lines of text. Each thing is there once."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.visited: dict[int, tuple[int, object]] = {}  # keeps the object: a freed id passes to another

    def add(self, x: Any) -> None:
        """Add the lines of a thing, or a reference if it has lines already."""
        self.lines.append(type(x).__qualname__)
        if isinstance(x, str | bytes | int | float | complex | None):
            self.lines.append(repr(x))  # whether two equal constants are one object differs from run to run
        elif isinstance(x, tuple):
            self.add_all(x)
        elif id(x) in self.visited:
            self.lines.append(f"seen {self.visited[id(x)][0]}")
        else:
            self.visited[id(x)] = len(self.visited), x
            self.add_new(x)

    def add_new(self, x: Any) -> None:
        """Add a thing that has no lines yet."""
        if isinstance(x, np.ndarray | pd.Series | pd.DataFrame | pd.Index):
            self.lines.append(joblib.hash(x))
        elif isinstance(x, Mapping):
            self.add_all(x.keys())
            self.add_all(x.values())
        elif isinstance(x, list):
            self.add_all(x)
        elif isinstance(x, set | frozenset):
            # the order of a set differs from run to run
            self.add_all(sorted(x, key=plain_repr))
        elif isinstance(x, functools.partial):
            self.add_all([x.func, x.args, x.keywords])
        elif isinstance(x, MethodType):
            self.add_all([x.__func__, x.__self__])
        elif isinstance(x, type | FunctionType | ModuleType | BuiltinFunctionType | np.ufunc):
            self.code(x)
        elif hasattr(x, "__wrapped__"):
            self.add(x.__wrapped__)
        elif isinstance(x, Enum) or _is_installed(type(x)):
            self.lines.append(plain_repr(x))
        else:
            self.instance(x)

    def add_all(self, several: Iterable[Any]) -> None:
        """Add the number of things, then each of them."""
        things = list(several)
        self.lines.append(str(len(things)))
        for x in things:
            self.add(x)

    def instance(self, x: Any) -> None:
        """Add an object: its class, and its fields or its `repr`."""
        kind: Any = type(x)
        self.add(kind)
        if dataclasses.is_dataclass(x):
            self.add_all(getattr(x, f.name) for f in dataclasses.fields(x) if f.repr)
        elif kind.__repr__ is object.__repr__:
            self.add(getattr(x, "__dict__", {}))
        else:
            self.lines.append(plain_repr(x))

    def code(self, x: Any) -> None:
        """Add a class, function or module: by version if it is installed, else by content."""
        name = getattr(x, "__qualname__", x.__name__)
        self.lines.append(f"{getattr(x, '__module__', '')} {name}")
        if _is_installed(x):
            top = sys.modules.get(_find_package(x))
            self.lines.append(str(getattr(top, "__version__", "")))
        elif isinstance(x, FunctionType):
            self.function(x)
        elif isinstance(x, type):
            self.add_all(x.__bases__)
            for name, member in vars(x).items():
                self.member(name, member, own=_find_package(x) == OWN)

    def member(self, name: str, x: Any, own: bool) -> None:
        """Add a member of a class: a function, or a value if the class is not of this package."""
        if isinstance(x, property):
            x = x.fget
        elif isinstance(x, staticmethod | classmethod):
            x = x.__func__
        elif isinstance(x, functools.cached_property):
            x = x.func
        if isinstance(x, FunctionType) or not (own or name.startswith("__")):
            self.lines.append(name)
            self.add(x)

    def function(self, x: FunctionType) -> None:
        """Add a function: its defaults, its closure, its code and the globals that it refers to."""
        self.add_all([x.__defaults__, x.__kwdefaults__])
        self.add_all(c.cell_contents for c in x.__closure__ or () if _is_filled(c))
        for name in dict.fromkeys(self.compiled(x.__code__)):
            if name in x.__globals__:
                self.reference(name, x.__globals__[name], x)

    def reference(self, name: str, x: Any, user: FunctionType) -> None:
        """Add the object that a global name of a function refers to."""
        self.lines.append(name)
        if isinstance(x, ModuleType):
            self.code(x)
            if not (_is_installed(x) or _find_package(x) == OWN):
                for attribute in dict.fromkeys(_list_names(user.__code__)):
                    if hasattr(x, attribute):
                        self.reference(attribute, getattr(x, attribute), user)
        elif isinstance(x, FunctionType | type) or _find_package(user) != OWN:
            self.add(x)  # values of this package are in its sources

    def compiled(self, code: CodeType) -> list[str]:
        """Add instructions and constants, and return the names that the code looks up."""
        self.lines.append(code.co_code.hex())
        self.lines.append(repr((code.co_varnames, code.co_names, code.co_freevars, code.co_cellvars)))
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self.compiled(constant)
            elif isinstance(constant, frozenset):
                self.lines.append(repr(sorted(map(repr, constant))))
            else:
                self.lines.append(repr(constant))
        return _list_names(code)


def _list_names(code: CodeType) -> list[str]:
    """Return the names that a function and the functions within it look up."""
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return [*code.co_names, *(n for c in inner for n in _list_names(c))]


def _is_filled(cell: Any) -> bool:
    """Return False for a cell of a closure that has no value yet."""
    try:
        return cell.cell_contents is not cell
    except ValueError:  # a name of an enclosing function that has no value yet
        return False


def _find_package(x: Any) -> str:
    """Return the top-level package of a function, class or module."""
    name = x.__name__ if isinstance(x, ModuleType) else getattr(x, "__module__", None) or ""
    return str(name).partition(".")[0]


def _is_installed(x: Any) -> bool:
    """Return True for the standard library and other installed packages, which count by version."""
    home = _find_package(x)
    if home in {OWN, "__main__"}:
        return False
    module = sys.modules.get(home)
    folders = Path(getattr(module, "__file__", None) or "").parts
    return home in sys.stdlib_module_names or bool({"site-packages", "dist-packages"} & set(folders))
