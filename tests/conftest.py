"""Marks of tests: files that are slow are not even read where a run leaves slow tests out."""

import gc
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.testing

ROOT = Path(__file__).parents[1]
LOADED = pytest.StashKey[bool]()
"""Whether a run without slow tests has loaded PyMC."""
SLOW_DOCTESTS = ROOT / "erbayes" / "bayes"
"""The examples of this room load PyMC."""
PLAIN = "additions alarms asking assisted blind cli cli_folder cli_thresholds domains_shown heap matchers one_answer phases refusals remembered stages stars stopping top_up undefined walk".split()
"""Tests that need neither XLSX sheets nor pictures of reports."""
OUTER_RINGS = {
    "research": r"\b(bayes|auxiliary|sensitivity|assisted|two_phase|with_errors)\b|\bstudy( import |\.)(?!populations)",
    "work": r"\b(labels|large|cli|plots|report|pairs|thresholds|stages|impact)\b",
}
"""Rooms whose tests are of a ring, the outermost first, as imports name them. All others are of the ring `estimate`."""
READ_ALONE = ("kernel", "lowest")
"""The lowest versions come without PyMC, so that a file without that mark cannot even be imported there."""


@pytest.fixture(autouse=True, scope="session")
def one_command():
    """The commands of the shell are made of their functions once, as in a process, and not at every call of a test."""
    typer.testing._get_command = cache(typer.testing._get_command)


@pytest.fixture(autouse=True)
def closed_figures():
    """Matplotlib warns of many open pictures, in whatever test the last one is drawn."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(autouse=True, scope="module")
def plain_files(request):
    """XLSX sheets, and pictures of reports, take most of their time: test_folder.py and test_report.py have them."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.stem.removeprefix("test_") in PLAIN:
            patch.setattr("erbayes.labels.folder.HAS_XLSX", False)
            nothing = {"description": "", "data": "", "explored": ""}
            patch.setattr("erbayes.report.sections._make_picture", lambda *_: nothing)
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test with the mark `every(k)`, leave every k-th case to quick runs, and mark the others as slow."""
    cases = Counter[str]()
    for item in items:
        for mark in item.iter_markers("every"):
            if cases[test := item.nodeid.partition("[")[0]] % mark.args[0]:
                item.add_marker("slow")
            cases[test] += 1


def pytest_collection_finish() -> None:
    """Let searches for garbage leave out what is imported, and be rare: they take a twentieth of a run."""
    gc.freeze()
    gc.set_threshold(200_000, 20, 1000)


def is_slow(path: Path) -> bool:
    """Return whether the mark of a whole file is `slow`, or PyMC is imported at its top.

    It is read in the text, because an import loads PyMC, which takes seconds and is not installed everywhere.
    """
    if path.is_relative_to(SLOW_DOCTESTS):
        return True
    slow = r"^(import pymc\b|pytestmark = \[?\s*pytest\.mark\.slow\b)"
    return path.suffix == ".py" and bool(re.search(slow, path.read_text(encoding="utf-8"), re.M))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option by which the gate runs the tests in three jobs."""
    parser.addoption("--ring", choices=["estimate", *OUTER_RINGS], help="tests of one ring of rooms alone")


def find_ring(path: Path) -> str:
    """Return the outermost ring of which a test file imports or calls a room."""
    named = "\n".join(re.findall(r"^\s*(?:from|import) .*|\beb\.\w+", path.read_text("utf-8"), re.M))
    return next((ring for ring, rooms in OUTER_RINGS.items() if re.search(rooms, named)), "estimate")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Read no file that a run leaves out, and for `-m kernel` or `-m lowest` only those with a test of that mark."""
    asked, ring = config.option.markexpr, config.option.ring
    if collection_path.suffix != ".py" or not collection_path.is_file():
        return None
    if ring and find_ring(collection_path) != ring:
        return True
    chosen = f"pytest.mark.{asked.split()[0]}" if asked.startswith(READ_ALONE) else ""
    left_out = "not slow" in asked and is_slow(collection_path)
    return True if left_out or chosen not in collection_path.read_text(encoding="utf-8") else None


def refuse_models(report: Any, node: pytest.Item | pytest.Collector) -> Any:
    """Return a report, as a failure of the first that loads PyMC in a run without slow tests.

    It takes six seconds of each process. A slow file is only read where a run names it.
    """
    stash = node.config.stash
    if "not slow" in node.config.option.markexpr and "pymc" in sys.modules and LOADED not in stash:
        stash[LOADED] = True
        if not is_slow(node.path):
            report.outcome, report.longrepr = "failed", f"{report.nodeid} loads PyMC: give it the mark slow"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Any:
    """Name the file that loads PyMC when it is read."""
    return refuse_models((yield), collector)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Name the test that loads PyMC when it runs."""
    return refuse_models((yield), item)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share tests among processes by file.

    The marks of pytest-xdist 3.8 that do the same say nothing under pytest 9.2, and nobody is told.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid.partition("::")[0]

    return Together(config, log)
