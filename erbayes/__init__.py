"""How good is my entity resolution? Honest estimates from a small labelled sample."""

from functools import cache
from importlib import import_module
from os.path import dirname, isdir, isfile, join
from typing import Any


@cache
def _list_paths() -> dict[str, str]:
    """Return the path of each public name, which `__init__.pyi` lists for type checkers too."""
    from ._internal.names import read_stub

    return read_stub(__file__)


def _is_module(path: str) -> bool:
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
        from ._internal.names import suggest_name

        said = suggest_name(name, _list_paths())
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{said}", name=name)
    elif _is_module(path):
        value = import_module(path, __name__)
    else:
        value = getattr(import_module(path.rpartition(".")[0], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_list_paths(), "__version__"})
