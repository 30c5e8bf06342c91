"""How good is my entity resolution? Honest estimates from a small labelled sample."""

from functools import cache
from importlib import import_module
from itertools import product
from os.path import dirname, isdir, isfile, join
from typing import Any

_ROOMS = (
    "datasets",
    "design",
    "engine",
    "labels",
    "units",
    "analysis.planning",
    "analysis.sensitivity",
    "plots",
)
"""Modules that are searched for a name that `erbayes` does not have; others take long to load."""


@cache
def _list_paths() -> dict[str, str]:
    """Return the path of each public name, which `__init__.pyi` lists for type checkers too."""
    from ._internal.lazy import read_stub

    return read_stub(__file__)


def _is_module(path: str) -> bool:
    """Return whether a path is that of a room or of another module, and not of a function or class."""
    file = join(dirname(__file__), *path.split("."))
    return isdir(file) or isfile(f"{file}.py")


def __getattr__(name: str) -> Any:
    """Load what `import erbayes` leaves out, so that this import costs nothing: names, rooms, the version."""
    if name == "__all__":
        value: Any = sorted(name for name, path in _list_paths().items() if not _is_module(path))
    elif name == "__version__":
        from importlib.metadata import version

        value = version(__name__)
    elif (path := _list_paths().get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_suggest(name)}", name=name)
    elif _is_module(path):
        value = import_module(path, __name__)
    else:
        value = getattr(import_module(path.rpartition(".")[0], __name__), name)
    globals()[name] = value
    return value


def _suggest(name: str) -> str:
    """Return the end of an error about a missing name: the metric or engine of this name, or the nearest."""
    if name.startswith("_"):
        return ""
    metrics, engines = (import_module(m, __name__) for m in (".metrics.definitions", ".engine.named"))
    if (metric := name.replace("_", "-")) in {*metrics.NAMED, *metrics.ALIASES}:
        return f"; did you mean estimate(..., metrics={metric!r})?"
    if (engine := name.replace("_", " ")) in engines.NAMES:
        return f"; did you mean estimate(..., engine={engine!r})?"
    nearest = import_module("._internal.nearest", __name__)
    for meant, room in product((name, nearest.find_meant(name)), _ROOMS):
        inside = vars(import_module(f".{room}", __name__)).get(meant)
        if meant not in _list_paths() and getattr(inside, "__module__", "").startswith(__name__):
            return f"; did you mean '{room}.{meant}'?"
    return f"; {nearest.suggest_name(name, _list_paths())}"


def __dir__() -> list[str]:
    return sorted({*_list_paths(), "__version__"})
