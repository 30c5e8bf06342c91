"""Marks of tests: files that are slow are not even read where a run leaves slow tests out."""

import re
from functools import cache
from pathlib import Path

import pytest
import typer.testing

ROOT = Path(__file__).parents[1]
SLOW_DOCTESTS = ROOT / "erbayes" / "bayes"
"""The examples of this room compile models."""


@pytest.fixture(autouse=True, scope="session")
def one_command():
    """The commands of the shell are made of their functions once, as in a process, and not at every call of a test."""
    typer.testing._get_command = cache(typer.testing._get_command)


def is_slow(path: Path) -> bool:
    """Return whether the mark of a whole file is `slow`.

    It is read in the text, because an import loads PyMC, which takes seconds and is not installed everywhere.
    """
    if path.is_relative_to(SLOW_DOCTESTS):
        return True
    return path.suffix == ".py" and bool(
        re.search(r"^pytestmark = \[?\s*pytest\.mark\.slow\b", path.read_text(encoding="utf-8"), re.M)
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    leaves_out = "not slow" in config.option.markexpr
    return True if leaves_out and collection_path.is_file() and is_slow(collection_path) else None


def fits_models(path: Path) -> bool:
    """Return whether the tests of a file fit size models, each of which a process compiles once."""
    return path.is_relative_to(SLOW_DOCTESTS) or path.stem.startswith(("test_arviz", "test_bayes"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give all tests that fit size models to one process, so that it compiles each once, and first: they take longest."""
    items.sort(key=lambda item: not fits_models(item.path))
    for item in items:
        if item.path.is_relative_to(SLOW_DOCTESTS):
            item.add_marker("slow")
        if item.get_closest_marker("xdist_group") is None:
            group = "models" if fits_models(item.path) else item.path.stem
            item.add_marker(pytest.mark.xdist_group(group))
