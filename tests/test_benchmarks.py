"""Every benchmark can be imported, and every page of figures says from which commit, day and seed it is."""

import ast
import runpy
from pathlib import Path

import figures
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = {path.stem: path for path in sorted(FOLDER.glob("*.py"))}
HEAVY = {"erbayes.bayes", "arviz", "averages", "er_evaluation", "heavy_tails"}
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
    names = runpy.run_path(str(SCRIPTS[stem]), run_name=stem)
    assert names["__doc__"]


@pytest.mark.parametrize("page", sorted(FOLDER.glob("*.md")), ids=lambda page: page.stem)
def test_page_says_of_which_numbers_it_is(page):
    first = page.read_text(encoding="utf-8").splitlines()[0]
    runs = figures.RUN.findall(first)
    assert runs, "a script of the page writes its first line by figures.stamp"
    for script, *_, numbers in runs:
        assert f'stamp("{page.stem}", ' in SCRIPTS[Path(script).stem].read_text(encoding="utf-8")
        assert int(numbers) <= figures.NUMBERS
    older = [f"`{script}`" for script, *_, numbers in runs if figures.is_older(page.stem, numbers)]
    mark = f"**Older than the last change of numbers**: {', '.join(older)}." if older else "numbers"
    assert mark in first, "python benchmarks/figures.py marks pages that a change of numbers made older"


def test_stamp_replaces_the_run_of_its_script_alone(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text(
        "Figures of `a.py` (commit 1, 2026-01-01, seed 1, numbers 1).\n\n# Title\n", encoding="utf-8"
    )
    monkeypatch.setattr(figures, "MOVED", (None, ("page",), ("other",)))
    figures.mark_page(page, ("b.py", "2 and changes", "2026-01-02", "seeds 2, 3", "3"))
    assert page.read_text(encoding="utf-8").splitlines() == [
        "Figures of `a.py` (commit 1, 2026-01-01, seed 1, numbers 1), `b.py` (commit 2 and changes, 2026-01-02, "
        "seeds 2, 3, numbers 3). **Older than the last change of numbers**: `a.py`.",
        "",
        "# Title",
    ]
    figures.mark_page(page, ("a.py", "4", "2026-01-03", "seed 1", "3"))
    first = page.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("Figures of `a.py` (commit 4, ") and "Older" not in first
