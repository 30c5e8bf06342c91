"""Finished blocks of a study in a folder, and a digest of the code that made them."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import joblib
import numpy as np
import pandas as pd
import scipy

from .._internal.arrays import FloatArray
from .._internal.errors import DataError
from .._internal.files import refuse_output, replacing

OWN = __name__.partition(".")[0]
"""The name of this package."""


def _list_sources(folder: Traversable) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every source file below a folder, also in an archive."""
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
"""The digest of this package at import, since sources of an editable installation may differ later."""
NAMED = (type, FunctionType, ModuleType, BuiltinFunctionType, np.ufunc)
"""Things that a package defines under a name. Those of installed packages count by name and version."""


class StudyFolder:
    """Finished blocks in a folder, a file each, named by a digest of the question and one of the code."""

    def __init__(self, path: Path | str | None) -> None:
        self.path = None if path is None else Path(path)

    def load(self, keys: Iterable[str]) -> dict[str, FloatArray]:
        """Load finished blocks by key, and warn of those that other code made."""
        if self.path is None:
            return {}
        missing, blocks = [], {}
        for key in keys:
            if (file := self.path / f"{key}.npy").is_file():
                try:
                    blocks[key] = np.load(file)
                except (EOFError, ValueError) as error:
                    raise DataError(f"{file} is damaged: remove it, and its block is made again") from error
            else:
                missing.append(key)
        if missing:
            try:
                self.path.mkdir(exist_ok=True)
            except OSError as error:
                raise DataError(f"cannot write {self.path}: {error.strerror}: name a new folder") from error
            refuse_output(self.path / "block.npy")  # before the work instead of after it
        if other := sum(any(self.path.glob(f"{key.partition('-')[0]}-*.npy")) for key in missing):
            warnings.warn(
                f"{self.path}: finished blocks that other code made, and that are not used: {other}. "
                "erbayes, NumPy, SciPy, a plan, a metric or an estimator has changed.",
                stacklevel=4,
            )
        return blocks

    def keep(self, runs: Mapping[str, FloatArray]) -> None:
        """Write finished blocks by key, each completely or not at all."""
        if self.path is None:
            return
        for key, figures in runs.items():
            with replacing(self.path / f"{key}.npy") as new:
                np.save(new, figures)


def plain_repr(thing: object) -> str:
    """Return `repr` without addresses, which differ from run to run."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(thing))


def code_of(*things: object) -> str:
    """Return a digest of this package, versions, and the code and values that callables refer to."""
    lines = "\n".join([PACKAGE, *_describe(things, {})])
    return hashlib.sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()


def _describe(x: Any, seen: dict[int, tuple[int, Any]]) -> Iterator[str]:
    """Yield lines about a thing and all that it is made of or refers to."""
    yield type(x).__qualname__
    if isinstance(x, str | bytes | int | float | complex | Enum | None):
        yield repr(x)
    elif isinstance(x, np.ndarray | pd.Series | pd.DataFrame | pd.Index):
        yield joblib.hash(x)
    elif id(x) in seen:
        yield f"seen {seen[id(x)][0]}"
    else:
        # whether two equal constants of code are one object differs from run to run
        if not isinstance(x, tuple | frozenset | CodeType):
            seen[id(x)] = len(seen), x  # keeps the object, because a freed id passes to another
        if isinstance(x, NAMED):
            yield f"{getattr(x, '__module__', '')} {getattr(x, '__qualname__', x.__name__)}"
        parts = _list_parts(x)
        yield str(len(parts))
        for part in parts:
            yield from _describe(part, seen)


def _list_parts(x: Any) -> list[Any]:
    """Return what a thing is made of and refers to, only the version if an installed package has it."""
    if isinstance(x, NAMED) and _is_installed(x):
        return [getattr(sys.modules.get(_find_package(x)), "__version__", "")]
    match x:
        case Mapping():
            return [*x.keys(), *x.values()]
        case tuple() | list():
            return list(x)
        case set() | frozenset():
            return sorted(x, key=plain_repr)  # the order of a set differs from run to run
        case functools.partial():
            return [x.func, x.args, x.keywords]
        case MethodType():
            return [x.__func__, x.__self__]
        case staticmethod() | classmethod():
            return [x.__func__]
        case property():
            return [x.fget]
        case functools.cached_property():
            return [x.func]
        case FunctionType():
            referred = _list_referred(_list_names(x.__code__), x.__globals__)
            return [x.__code__, x.__defaults__, x.__kwdefaults__, *_list_enclosed(x), *referred]
        case CodeType():
            # in its compiled form, so that comments do not matter and no source file is needed
            return [x.co_code, x.co_varnames, x.co_names, x.co_freevars, x.co_cellvars, x.co_consts]
        case ModuleType():
            return []
        case type():
            members = {n: v for n, v in vars(x).items() if isinstance(v, FunctionType) or n[:2] != "__"}
            return [x.__bases__, members]
    if hasattr(x, "__wrapped__"):
        return [x.__wrapped__]
    if dataclasses.is_dataclass(x):
        return [type(x), *(getattr(x, f.name) for f in dataclasses.fields(x) if f.repr)]
    kind: Any = type(x)
    return [kind, getattr(x, "__dict__", {}) if kind.__repr__ is object.__repr__ else plain_repr(x)]


def _list_names(code: CodeType) -> list[str]:
    """Return the names that a function and the functions within it look up, each once."""
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return list(dict.fromkeys([*code.co_names, *(n for c in inner for n in _list_names(c))]))


def _list_referred(names: Sequence[str], space: Mapping[str, Any]) -> list[Any]:
    """Return the values of names in a module, and of the same names in modules of the user that they name."""
    values = []
    for name, x in ((name, space[name]) for name in names if name in space):
        values.append(x)
        if isinstance(x, ModuleType) and not _is_installed(x):
            # without the module's own name, so that modules which import each other come to an end
            values += _list_referred([other for other in names if other != name], vars(x))
    return values


def _list_enclosed(function: FunctionType) -> list[Any]:
    """Return the values that a function has from the functions around it, without those not there yet."""
    enclosed = []
    for cell in function.__closure__ or ():
        with suppress(ValueError):
            enclosed.append(cell.cell_contents)
    return enclosed


def _find_package(x: Any) -> str:
    """Return the top-level package of a function, class or module."""
    name = x.__name__ if isinstance(x, ModuleType) else getattr(x, "__module__", None) or ""
    return str(name).partition(".")[0]


def _is_installed(x: Any) -> bool:
    """Return True for this package, the standard library and other installed packages."""
    home = _find_package(x)
    if home == "__main__":
        return False  # a script of the user, whatever program runs it
    folders = Path(getattr(sys.modules.get(home), "__file__", None) or "").parts
    return home in {OWN, *sys.stdlib_module_names} or bool({"site-packages", "dist-packages"} & set(folders))
