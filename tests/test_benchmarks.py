"""Every benchmark can be imported: it finds the names that it takes from the package and from the others."""

import ast
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = {path.stem: path for path in sorted(FOLDER.glob("*.py"))}
HEAVY = {"erbayes.bayes", "arviz", "bayes_pool", "er_evaluation", "heavy_tails"}
"""Modules whose import takes seconds, and which not every installation has."""


def imported(path):
    """Modules that a script imports at its top."""
    found = set()
    for line in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(line, ast.Import):
            found |= {name.name for name in line.names}
        elif isinstance(line, ast.ImportFrom):
            found |= {line.module, *(f"{line.module}.{name.name}" for name in line.names)}
    return found


@pytest.mark.parametrize(
    "stem",
    [pytest.param(s, marks=[pytest.mark.slow] * bool(imported(p) & HEAVY)) for s, p in SCRIPTS.items()],
)
def test_is_imported_without_running(stem):
    for module in imported(SCRIPTS[stem]) & {"arviz", "er_evaluation", "pyspark.sql", "splink"}:
        pytest.importorskip(module)
    if imported(SCRIPTS[stem]) & {"erbayes.bayes", "bayes_pool", "heavy_tails"}:
        pytest.importorskip("pymc")
    names = runpy.run_path(str(SCRIPTS[stem]), run_name=stem)
    assert names["__doc__"]
