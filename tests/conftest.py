"""Marks of tests: files that are slow are not even read where a run leaves slow tests out."""

import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.testing

ROOT = Path(__file__).parents[1]
SLOW_DOCTESTS = ROOT / "erbayes" / "bayes"
"""The examples of this room compile models."""
FIT_MODELS = (
    "erbayes/bayes/",
    "tests/test_arviz",
    "tests/test_bayes",
    "tests/test_additions.py::TestDesign::test_has_a_size_model_or_is_refused",
    "tests/test_additions.py::test_the_size_model_is_an_engine_too",
    "tests/test_cli_folder.py::test_side_by_side_shows_",
    "tests/test_columns.py::test_columns_of_the_size_model",
    "tests/test_columns.py::test_every_table_is_listed",
    "tests/test_docs.py::test_every_public_name_is_in_the_reference",
    "tests/test_docs.py::test_the_reference_lists_each_name_once",
    "tests/test_engines.py::test_a_fitted_model_stands_beside_the_closed_form",
    "tests/test_front_door.py::test_advice_",
    "tests/test_front_door.py::test_the_size_model_side_by_side_and_by_name",
    "tests/test_notable.py::test_the_advised_engine",
    "tests/test_plots.py::test_leakage",
    "tests/test_plots.py::test_retention",
    "tests/test_plots.py::test_sampled_sizes_are_weighted_by_the_design",
    "tests/test_plots.py::test_size_distribution",
    "tests/test_pool.py::test_a_fit_",
    "tests/test_pool.py::test_the_engine_is_the_pool_of_the_fit_and_says_so",
    "tests/test_pool.py::test_where_giants_are_unseen_the_interval_of_recall_spans_both",
    "tests/test_readme.py::test_the_last_line_sets_three_engines_side_by_side",
    "tests/test_thresholds_curve.py::test_the_size_model_tells_the_probability_of_each_threshold_to_be_best",
)
"""How the names of tests that load models begin; they have the mark `slow`."""
READ_ALONE = ("kernel", "lowest")
"""The lowest versions come without PyMC, so that a file without that mark cannot even be imported there."""


@pytest.fixture(autouse=True, scope="session")
def one_command():
    """The commands of the shell are made of their functions once, as in a process, and not at every call of a test."""
    typer.testing._get_command = cache(typer.testing._get_command)


@pytest.fixture(autouse=True, scope="session")
def without_models(request):
    """A run without slow tests loads no PyMC, which takes six seconds of each process."""
    yield
    if "not slow" in request.config.option.markexpr:
        assert "pymc" not in sys.modules, "a test that loads PyMC belongs to FIT_MODELS"


def is_slow(path: Path) -> bool:
    """Return whether the mark of a whole file is `slow`, or PyMC is imported at its top.

    It is read in the text, because an import loads PyMC, which takes seconds and is not installed everywhere.
    """
    if path.is_relative_to(SLOW_DOCTESTS):
        return True
    return path.suffix == ".py" and bool(
        re.search(
            r"^(import pymc\b|pytestmark = \[?\s*pytest\.mark\.slow\b)",
            path.read_text(encoding="utf-8"),
            re.M,
        )
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Read no file that a run leaves out, and for `-m kernel` or `-m lowest` only those with a test of that mark."""
    asked = config.option.markexpr
    if collection_path.suffix != ".py" or not collection_path.is_file():
        return None
    chosen = f"pytest.mark.{asked.split()[0]}" if asked.startswith(READ_ALONE) else ""
    left_out = "not slow" in asked and is_slow(collection_path)
    return True if left_out or chosen not in collection_path.read_text(encoding="utf-8") else None


def find_process(test: str) -> str:
    """Return the name of the tests that one process runs together, of which `test` is one.

    All tests that fit size models are together, since a process compiles each model once, and all of Spark, which
    starts once. Others go by file.
    """
    if test.startswith(FIT_MODELS):
        return "models"
    return "Spark" if "spark" in test else test.partition("::")[0]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests that fit size models first, since they take longest, then those of Spark."""
    first = {"models": 0, "Spark": 1}
    items.sort(key=lambda item: first.get(find_process(item.nodeid), len(first)))
    for item in items:
        if find_process(item.nodeid) == "models":
            item.add_marker("slow")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share tests among processes by `find_process`.

    The marks of pytest-xdist 3.8 that do the same say nothing under pytest 9.2, and nobody is told.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return find_process(nodeid)

    return Together(config, log)
