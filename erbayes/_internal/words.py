"""Objects in words: what they are, and what code of the user does."""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from types import FunctionType
from typing import Any

import numpy as np

OTHERS = re.compile(r"(site|dist)-packages|[\\/][lL]ib[\\/]|^<string>$")
"""Places of code that the user did not write, of other packages and of methods that `dataclass` makes."""

PLAIN = (str, int, float, tuple, np.ndarray)
"""Types of values that `repr` says all of."""


def describe(thing: object) -> str:
    """Return an object in words: its `repr`, and the source of code of the user with the values it names.

    Code of packages is described by its name alone, and a long array by what its `repr` shows.
    """
    return "\n".join(dict.fromkeys(_list_words(thing, set())))


def _list_words(x: Any, seen: set[int]) -> Iterator[str]:
    """Yield the words of an object and of the objects and functions that it refers to."""
    if id(x) in seen or (isinstance(x, FunctionType) and _is_of_package(x)):
        return
    seen.add(id(x))
    yield re.sub(r" at 0x[0-9a-f]+", "", repr(x))  # addresses differ from run to run
    parts: list[Any] = []
    if isinstance(x, FunctionType):
        with suppress(OSError):  # text that was executed has no source
            yield textwrap.dedent(inspect.getsource(x))
        names = inspect.getclosurevars(x)
        parts = [*names.nonlocals.values(), *names.globals.values(), x.__defaults__]
    elif dataclasses.is_dataclass(x):
        fields = [getattr(x, f.name) for f in dataclasses.fields(x) if f.repr]
        parts = [value for value in fields if not isinstance(value, PLAIN)]  # `repr` has the others
    elif not isinstance(x, PLAIN):
        parts = list(getattr(x, "__dict__", {}).values())
    if not _is_of_package(type(x)):
        classes = [kind for kind in type(x).__mro__ if not _is_of_package(kind)]
        parts += [part for kind in classes for name, part in vars(kind).items() if _is_code(name, part)]
    for part in parts:
        if isinstance(part, (*PLAIN, FunctionType)) or dataclasses.is_dataclass(type(part)):
            yield from _list_words(part, seen)


def _is_code(name: str, part: Any) -> bool:
    return isinstance(part, FunctionType) or not name.startswith("__")


def _is_of_package(thing: FunctionType | type) -> bool:
    of_others = isinstance(thing, FunctionType) and OTHERS.search(thing.__code__.co_filename)
    return bool(of_others) or thing.__module__.partition(".")[0] in {__name__.partition(".")[0], "builtins"}
