"""Names that a module takes from others when they are first used, as its stub lists them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any


def read_stub(module: str) -> dict[str, str]:
    """Return the path of each name that the stub next to a module's file imports.

    `from .design import Stratified as Stratified` gives the name Stratified the path ".design.Stratified".
    """
    import ast  # not above, so that `import erbayes` does not wait for it

    stub, paths = Path(module).with_suffix(".pyi"), dict[str, str]()
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            home = "" if isinstance(node, ast.Import) else f"{'.' * node.level}{node.module or ''}"
            dot = "." if home.strip(".") else ""
            paths |= {alias.asname or alias.name: f"{home}{dot}{alias.name}" for alias in node.names}
    return paths


class LazyModule:
    """A module that is loaded when an attribute of it is first used."""

    def __init__(self, path: str, package: str) -> None:
        self._path, self._package = path, package

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._path, self._package), name)
