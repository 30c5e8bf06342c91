"""Attributes that results do not have: what their table has instead, or which name the error suggests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import wraps
from importlib import import_module
from inspect import signature
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, cast

from .errors import DataError, head

if TYPE_CHECKING:
    from pandas import DataFrame

PASSED_ON = frozenset(["columns", "head", "iloc", "tail"])
"""What a result takes from its table, next to `loc`, columns and all of `to_csv`, `to_latex` and so on."""
WORDS = {
    "interval": "bounds ci conf_int confidence_interval confint credible_interval hdi intervals",
    "sd": "bse se sem std std_err std_error stderr standard_error",
    "estimate": "coef evaluate mean params point_estimate precision_recall score values",
    "table": "dataframe df frame results to_dataframe to_df to_pandas",
    "plot": "draw figure hist show",
    "tree": "idata inference_data posterior samples to_arviz to_inference_data trace",
    "alarms": "warnings",
    "differences": "contrast diff difference",
    "facts": "describe info n",
    "forecast": "plan power sample_size",
    "sentence": "explain text",
}
"""Names by which other libraries call what results have."""
ARGUMENTS = {
    "level": "alpha ci ci_prob conf conf_level confidence confidence_level hdi_prob level prob",
    "rng": "random_state seed",
}
"""Names by which other libraries call arguments of ours."""
OF_ESTIMATES = ("interval", "sd", "estimate", "tree", "sentence")
CARRIERS = ("recommended(metrics)", "both", "joint", "fit", "as_draws()")
"""What estimates have, and parts of other results that are estimates."""
CLOSE = 0.75
"""Likeness by `difflib` from which a name is suggested; `talbe` has .8, and words of others .6."""


def find_meant(name: str) -> str:
    """Return the name of ours for what other libraries call so, or else the name itself."""
    return next((ours for ours, words in WORDS.items() if name in {ours, *words.split()}), name)


def suggest_name(name: str, names: Iterable[str]) -> str:
    """Return the end of an error about a name that is missing: what is meant, or else all names."""
    from difflib import get_close_matches  # not above, so that `import erbayes` does not wait for it

    from pandas import DataFrame

    names = sorted(names)
    meant = find_meant(name)
    near = [meant] if meant in names else get_close_matches(name, names, 1, CLOSE)
    if not near and meant in OF_ESTIMATES:
        near = [f"{part}.{meant}" for part in CARRIERS if part.partition("(")[0] in names]
    if not near and name in import_module("erbayes").__all__:
        near = [f"erbayes.{name}"]  # a function that takes the result
    if not near and "table" in names and hasattr(DataFrame, name):
        near = [f"table().{name}"]
    return f"did you mean {near[0]!r}?" if near else f"it has {', '.join(names)}"


def name_arguments[F: Callable[..., Any]](function: F) -> F:
    """Return a function that refuses arguments which it does not have, with the nearest one."""
    known = [*signature(function).parameters]

    @wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        if unknown := [name for name in given if name not in known]:
            said = f"{function.__name__} has no argument {', '.join(unknown)}"
            raise TypeError(f"{said}; {_suggest_argument(unknown[0], known)}")
        return function(*args, **given)

    return cast(F, call)


def _suggest_argument(name: str, known: list[str]) -> str:
    """Return the end of an error about an argument: which is meant, or else all."""
    from difflib import get_close_matches

    meant = next((ours for ours, words in ARGUMENTS.items() if name in words.split()), name)
    if meant == "level" and known[0] != "self" and meant not in known:
        return "the result takes the level of intervals, as in found.table(level=0.9)"
    near = [meant] if meant in known else get_close_matches(name, known, 1, CLOSE)
    if near == ["level"]:
        return "did you mean level=0.95, the share of intervals that cover?"
    names = ", ".join(x for x in known if x != "self") or "none"
    return f"did you mean {near[0]!r}?" if near else f"it takes {names}"


class Located:
    """What `loc` of a table has, where what is missing is refused with what there is."""

    def __init__(self, table: DataFrame) -> None:
        self._table = table

    def __getitem__(self, key: Any) -> Any:
        try:
            return self._table.loc[key]
        except KeyError:
            raise DataError(self._say_absent(key)) from None

    def _say_absent(self, key: Any) -> str:
        """Return what is said of rows, and perhaps columns, that are not all there."""
        from pandas.api.types import is_list_like

        table = self._table
        by_axis = key if isinstance(key, tuple) and table.index.nlevels == 1 else (key,)
        asked = [list(x) if is_list_like(x) else [x] for x in by_axis]
        rows, columns = (
            [x for x in part if x not in there and x != slice(None)]
            for part, there in zip([*asked, []][:2], table.axes, strict=True)
        )
        if columns and not rows:
            return f"no column {head(columns)}; {suggest_name(str(columns[0]), map(str, table))}"
        said = f"no row {head(rows or [key])}"
        if table.index.dtype.kind != "i":
            return f"{said}; rows are {head(table.index, 20)}"
        holding = [next((name for name in table if x in table[name].tolist()), None) for x in rows + columns]
        named = [name for name in dict.fromkeys(holding) if name is not None]
        by = f"table().set_index({named[0] if len(named) == 1 else named!r}) names them"
        return f"{said}; rows have numbers; {by if named else f'columns are {head(table.columns, 20)}'}"


class Nearest:
    """A result that names the nearest attribute where it lacks one, also in notebooks.

    Rows that it has by name, columns of its table and conversions such as `to_csv` are found as attributes.
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        """Let public methods name the nearest of their arguments."""
        super().__init_subclass__()
        for name, method in [*vars(cls).items()]:
            # a class with slots is made twice
            if isinstance(method, FunctionType) and name[0] != "_" and not hasattr(method, "__wrapped__"):
                if not any(p.kind is p.VAR_KEYWORD for p in signature(method).parameters.values()):
                    setattr(cls, name, name_arguments(method))

    if not TYPE_CHECKING:  # so that type checkers still refuse names that are wrong

        def __getattr__(self, name: str) -> Any:
            """Return what rows or the table have under this name, or refuse it with the nearest one."""
            kind = type(self)
            # a name of the class comes here if it is not set yet, or if a property has failed
            if (
                name.startswith("_")
                or hasattr(kind, name)
                or name in getattr(kind, "__dataclass_fields__", ())
            ):
                return object.__getattribute__(self, name)
            with suppress(ValueError):  # as a DataError is
                if hasattr(kind, "__getitem__"):
                    return self[name.replace("_", "-")]
            with suppress(ValueError):
                if hasattr(kind, "table"):
                    table = self.table()
                    if name in table:
                        return table[name]
                    if name == "loc":
                        return Located(table)
                    if name in PASSED_ON or (name.startswith("to_") and hasattr(table, name)):
                        return getattr(table, name)
            public = [known for known in dir(self) if not known.startswith("_")]
            said = f"{kind.__name__!r} object has no attribute {name!r}; {suggest_name(name, public)}"
            # without the object, in which the interpreter would look for a second suggestion
            raise AttributeError(said, name=name)


def call_as(module: ModuleType, function: Callable[..., Any]) -> None:
    """Let a room be called as its function: `erbayes.report(sample)` is `erbayes.report.report(sample)`."""
    methods = {
        "__call__": staticmethod(function),
        # by its name, as a module is sent to other processes
        "__reduce__": lambda self: (import_module, (self.__name__,)),
        # or else inspect takes the first argument for the room itself
        "__signature__": property(lambda self: signature(function)),
    }
    module.__class__ = type("Room", (ModuleType,), methods)


def refuse_attribute(module: str, names: Iterable[str], prefix: str = "") -> Callable[[str], Any]:
    """Return the `__getattr__` of a module: an error that names the nearest of its public names.

    `plot_forest` and `forest` are `draw_forest` in a module whose names begin with `draw_`.
    """

    def __getattr__(name: str) -> Any:
        ours = f"{prefix}{name.removeprefix('plot_')}"
        said = "" if name.startswith("_") else f"; {suggest_name(ours if ours in names else name, names)}"
        raise AttributeError(f"module {module!r} has no attribute {name!r}{said}", name=name)

    return __getattr__
