"""How good is my entity resolution? Honest estimates from a small labelled sample."""

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


@cache
def _list_names() -> tuple[dict[str, str], dict[str, str]]:
    """Return the paths of rooms and of other modules, and those of functions and classes, by public name."""
    from ._internal.lazy import read_stub

    paths, modules = read_stub(__file__), dict[str, str]()
    for name, path in paths.items():
        file = Path(__file__).parent.joinpath(*path.split("."))
        if file.is_dir() or file.with_suffix(".py").is_file():
            modules[name] = path
    return modules, {name: path for name, path in paths.items() if name not in modules}


def __getattr__(name: str) -> Any:
    """Load what `import erbayes` leaves out, so that this import costs nothing: names, rooms, the version."""
    modules, others = _list_names()
    if name == "__all__":
        value: Any = sorted(others)
    elif name == "__version__":
        from importlib.metadata import version

        value = version(__name__)
    elif name in modules:
        value = import_module(modules[name], __name__)
    elif name in others:
        value = getattr(import_module(others[name].rpartition(".")[0], __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    modules, others = _list_names()
    return sorted({*modules, *others, "__version__"})
