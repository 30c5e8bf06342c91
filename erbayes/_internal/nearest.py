"""Attributes that results do not have: what their table has instead, or the name that is nearest."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

PASSED_ON = frozenset(["columns", "head", "iloc", "loc", "tail"])
"""What a result takes from its table, next to columns and all of `to_csv`, `to_latex` and so on."""


def suggest_name(name: str, names: Iterable[str]) -> str:
    """Return the end of an error about a name that is missing: the nearest one, if any is near."""
    from difflib import get_close_matches  # not above, so that `import erbayes` does not wait for it

    # `talbe` is .8 like `table`, and words of other packages are .6 like some of ours
    near = get_close_matches(name, [*names], 1, 0.75)
    return f"; did you mean {near[0]!r}?" if near else ""


class Nearest:
    """A result that has columns and conversions of its table, such as `to_csv`, as attributes.

    It names the nearest attribute where it has none, since notebooks do not print Python's own suggestions.
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # so that type checkers still refuse names that are wrong

        def __getattr__(self, name: str) -> Any:
            """Return what the table has under this name, or refuse it with the nearest one."""
            kind = type(self)
            # a name of the class comes here if it is not set yet, or if a property has failed
            if (
                name.startswith("_")
                or hasattr(kind, name)
                or name in getattr(kind, "__dataclass_fields__", ())
            ):
                return object.__getattribute__(self, name)
            with suppress(ValueError):  # as a DataError is
                if hasattr(kind, "table"):
                    table = self.table()
                    if name in table:
                        return table[name]
                    if name in PASSED_ON or (name.startswith("to_") and hasattr(table, name)):
                        return getattr(table, name)
            said = suggest_name(name, (known for known in dir(self) if not known.startswith("_")))
            # without the object, in which the interpreter would look for a second suggestion
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}{said}", name=name)
