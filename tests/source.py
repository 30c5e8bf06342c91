"""The package as it is written, parsed once by each process for all tests that read it."""

import ast
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "erbayes"


@cache
def parse(path):
    """Return the syntax tree of one file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def parse_package(package=PACKAGE):
    """Return the syntax tree of each module of a package by its path."""
    return {path: parse(path) for path in sorted(package.rglob("*.py"))}
