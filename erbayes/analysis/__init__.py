"""What a user asks: one prediction, several, groups of records, causes, plans, sensitivity."""

from importlib import import_module
from typing import Any

_MODULES = {"causes", "comparison", "domains", "planning", "sensitivity"}


def __getattr__(name: str) -> Any:
    """Load an analysis when it is first used, since few need several of them."""
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
