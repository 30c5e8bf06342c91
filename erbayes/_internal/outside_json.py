"""JSON from outside: answers that a page has saved, and what a folder says of its draw."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .errors import DataError, head

LARGEST = 2**28
"""Bytes of the largest JSON that is read, which takes several times as much memory. Answers to a million
tasks have as many."""
DEEPEST = 40
"""Levels of brackets within brackets that are read. Files that are written here have about 5."""


def read_object(source: Path | str, what: str) -> dict[str, Any]:
    """Return the object of a file or a text of JSON, which messages call `what`; refuse all else."""
    try:
        size = source.stat().st_size if isinstance(source, Path) else len(source)
        if size > LARGEST:
            raise ValueError(f"it has {size:,} bytes, and {LARGEST:,} are the most that is read")
        value = json.loads(source.read_text(encoding="utf-8") if isinstance(source, Path) else source)
        inside = [value]
        for _ in range(DEEPEST):
            within = [x.values() if isinstance(x, dict) else x for x in inside if isinstance(x, dict | list)]
            inside = [x for values in within for x in values]
        if inside:
            raise RecursionError
    except RecursionError as error:
        raise DataError(f"cannot read {what}: it has brackets in brackets, over {DEEPEST} deep") from error
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {what}: {error}") from error
    if not isinstance(value, dict):
        raise DataError(f"cannot read {what}: it is {type(value).__name__}, and no object in braces")
    return value


def is_whole(value: Any, least: int = 1, most: float = float("inf")) -> bool:
    """Return whether a value of JSON is a whole number from `least` to `most`."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def need_fields(values: Any, must: Mapping[str, tuple[str, Callable[[Any], bool]]], what: str) -> None:
    """Refuse an object without a field, or with a value of another kind; `must`: the kind, and its test."""
    for name, (words, fine) in must.items():
        if name not in values or not fine(values[name]):
            there = f"not {head([values[name]])}" if name in values else "and is missing"
            raise DataError(f"{what}: {name!r} must be {words}, {there}")
