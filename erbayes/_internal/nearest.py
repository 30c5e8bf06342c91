"""Attributes that results do not have: what they find instead, or which name the error suggests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

TABLE = frozenset(["columns", "head", "iloc", "loc", "tail"])
"""What a result takes from its table, next to all of `to_csv`, `to_latex` and so on."""
WORDS = {
    "interval": "bounds ci conf_int confidence_interval confint credible_interval hdi intervals",
    "sd": "bse se sem std std_err std_error stderr standard_error",
    "estimate": "coef mean params point_estimate values",
    "table": "dataframe df frame results to_dataframe to_df to_pandas",
    "plot": "draw figure hist show",
    "tree": "idata inference_data posterior samples to_arviz to_inference_data trace",
    "alarms": "warnings",
    "differences": "contrast diff difference",
    "facts": "describe info",
}
"""Names by which other libraries call what results have."""
CARRIERS = ("recommended(metrics)", "both", "joint", "fit", "as_draws()")
"""Parts of results that have estimates, if a result has none itself."""


def suggest_name(name: str, names: Iterable[str]) -> str:
    """Return the end of an error about a name that is missing: the nearest of the names, or all of them."""
    from difflib import get_close_matches  # not above, so that `import erbayes` does not wait for it

    names = sorted(names)
    meant = next((ours for ours, words in WORDS.items() if name in {ours, *words.split()}), name)
    parts = [f"{part}.{meant}" for part in CARRIERS if part.partition("(")[0] in names]
    if meant in names:
        near = meant
    elif meant in ("interval", "sd", "estimate", "tree") and parts:
        near = parts[0]
    elif name in dir(import_module("erbayes")):
        near = f"erbayes.{name}"  # a function that takes the result
    else:
        near = next(iter(get_close_matches(name, names, 1)), "")
    if near:
        return f"did you mean {near!r}?"
    return f"{'table() has its numbers, and ' if 'table' in names else ''}it has {', '.join(names)}"


class Nearest:
    """A result that names the nearest attribute where it lacks one, also in notebooks.

    A conversion of its table, such as `to_csv`, and rows that it has by name are found as attributes.
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # so that type checkers still refuse names that are wrong

        def __getattr__(self, name: str) -> Any:
            """Return what the table or a row has under this name, or refuse the name with the nearest one."""
            # a name of the class comes here if it is not set yet, or if a property has failed
            if name.startswith("_") or hasattr(type(self), name):
                return object.__getattribute__(self, name)
            if hasattr(type(self), "table") and (name in TABLE or name.startswith("to_")):
                from pandas import DataFrame

                if hasattr(DataFrame, name):
                    return getattr(self.table(), name)
            if hasattr(type(self), "__getitem__"):
                try:
                    return self[name.replace("_", "-")]
                except ValueError:  # as a DataError is
                    pass
            public = [known for known in dir(self) if not known.startswith("_")]
            said = f"{type(self).__name__!r} object has no attribute {name!r}; {suggest_name(name, public)}"
            # without the object, in which the interpreter would look for a second suggestion
            raise AttributeError(said, name=name)


def call_as(module: ModuleType, function: Callable[..., Any]) -> None:
    """Let a room be called as its function: `erbayes.report(sample)` is `erbayes.report.report(sample)`."""
    module.__class__ = type("Room", (ModuleType,), {"__call__": staticmethod(function)})
