"""What the pages say exists does: rooms, links, layers."""

import ast
import re
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HOUSE = ROOT / "erbayes"
ROOMS = {p.stem for p in HOUSE.glob("*.py")} | {p.parent.name for p in HOUSE.glob("*/__init__.py")}
ROOMS -= {"__init__"}
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_every_room_stands_once_in_the_table_of_rooms():
    table = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", table, re.M)
    listed = [room for row in rows for room in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == sorted(ROOMS)


def test_every_room_has_its_layer():
    with open(ROOT / "pyproject.toml", "rb") as file:
        contract, *_ = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    rooms = re.findall(r"erbayes\.(\w+)", " ".join(contract["layers"]))
    assert sorted(rooms) == sorted(ROOMS)


def test_every_room_but_the_command_line_is_in_the_reference():
    page = (ROOT / "docs" / "guide" / "api.md").read_text(encoding="utf-8")
    assert set(re.findall(r"automodule:: erbayes\.(\w+)", page)) == ROOMS - {"cli"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert not [t for t in targets if not (page.parent / t).exists()]


def test_benchmarks_find_what_they_import_from_each_other():
    scripts = {p.stem: ast.parse(p.read_text(encoding="utf-8")) for p in (ROOT / "benchmarks").glob("*.py")}
    lost = []
    for name, tree in scripts.items():
        for line in (n for n in tree.body if isinstance(n, ast.ImportFrom) and n.module in scripts):
            held = scripts[line.module].body
            made = {
                t.id
                for n in held
                if isinstance(n, ast.Assign)
                for e in n.targets
                for t in ast.walk(e)
                if isinstance(t, ast.Name)
            }
            made |= {n.name for n in held if isinstance(n, ast.FunctionDef | ast.ClassDef)}
            lost += [f"{name}: {line.module}.{a.name}" for a in line.names if a.name not in made]
    assert not lost


def test_no_docstring_of_an_attribute_is_taken_for_its_type():
    """Sphinx reads "Nothing: the unit ..." as an attribute of the type Nothing."""
    found = []
    for path in HOUSE.rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        bodies = [node.body for node in nodes if isinstance(node, ast.Module | ast.ClassDef)]
        for assigned, told in (pair for body in bodies for pair in pairwise(body)):
            if isinstance(assigned, ast.Assign | ast.AnnAssign) and isinstance(told, ast.Expr):
                text = ast.literal_eval(told.value)
                found += [f"{path.name}: {text}"] * (":" in text.splitlines()[0])
    assert not found
