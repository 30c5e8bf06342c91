"""What the pages say exists does: rooms, links, layers."""

import ast
import re
import tomllib
from importlib import import_module
from inspect import ismodule
from itertools import pairwise
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from source import parse, parse_package

from erbayes import metrics

ROOT = Path(__file__).parents[1]
HOUSE = ROOT / "erbayes"
ROOMS = {p.stem for p in HOUSE.glob("*.py")} | {p.parent.name for p in HOUSE.glob("*/__init__.py")}
ROOMS -= {"__init__", "__main__"}
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_every_room_stands_once_in_the_table_of_rooms_with_all_its_modules():
    """The cell of a package with rooms of its own reads `module, room/ (module, module)`."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\|[^|]*\|([^|]*)\|$", page, re.M)
    assert sorted(room for room, _ in rows) == sorted(ROOMS)
    for room, listed in rows:
        inside = {p.relative_to(HOUSE / room) for p in (HOUSE / room).rglob("*.py")}
        names = [p.parent.name if p.name == "__init__.py" else p.stem for p in inside if len(p.parts) > 1]
        names += [p.stem for p in inside if len(p.parts) == 1 and p.name != "__init__.py"]
        assert sorted(re.findall(r"\w+", listed)) == sorted(names), room


def test_every_room_keeps_to_its_lines():
    """One in, one out: whoever raises a number of the table names what retired for it in the same commit."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([\d,]+) \|", page, re.M)
    assert sorted(room for room, _ in rows) == sorted(ROOMS)
    for room, most in rows:
        files = [HOUSE / f"{room}.py"] if (HOUSE / f"{room}.py").exists() else (HOUSE / room).rglob("*.py")
        lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
        budget = int(most.replace(",", ""))
        assert lines <= budget, f"{room} has {lines:,} lines, {budget:,} in docs/architecture.md: what goes?"
        assert lines > budget - 60, f"{room} has {lines:,} lines: lower its number in docs/architecture.md"


def test_no_module_is_hidden_by_a_name_of_its_package():
    for init in HOUSE.rglob("__init__.py"):
        imports = [n for n in parse(init).body if isinstance(n, ast.ImportFrom)]
        names = {alias.asname or alias.name for n in imports if n.module for alias in n.names}
        modules = {p.stem for p in init.parent.glob("*.py")} | {
            p.parent.name for p in init.parent.glob("*/__init__.py")
        }
        assert not names & modules, init


def test_every_room_has_its_layer():
    with open(ROOT / "pyproject.toml", "rb") as file:
        contract, *_ = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    rooms = re.findall(r"erbayes\.(\w+)", " ".join(contract["layers"]))
    assert sorted(rooms) == sorted(ROOMS)


API = (ROOT / "docs" / "guide" / "api.md").read_text(encoding="utf-8")
LISTED = re.findall(r"^   (erbayes\.[\w.]+)$", API, re.M)


def named(path: str) -> Any:
    """The object of a dotted name."""
    room, _, name = path.rpartition(".")
    return getattr(import_module(room), name)


@pytest.mark.slow
def test_the_reference_lists_each_name_once():
    assert len(LISTED) == len(set(LISTED))
    objects = [id(named(path)) for path in LISTED]
    assert len(objects) == len(set(objects))


PACKAGES = sorted(
    {"erbayes", *(f"erbayes.{p.parent.name}" for p in HOUSE.glob("*/__init__.py"))} - {"erbayes.cli"}
)
LISTED_ROOMS = {path.rpartition(".")[0] for path in LISTED if path.count(".") == 2} - set(PACKAGES)


@pytest.mark.slow
@pytest.mark.parametrize("room", [*PACKAGES, *sorted(LISTED_ROOMS)])
def test_every_public_name_is_in_the_reference(room):
    """The names of `__all__`; in a room without it, the functions and classes that it defines."""
    module = import_module(room)
    own = {
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == room and isinstance(value, FunctionType | type)
    }
    public = getattr(module, "__all__", {name for name in own if name[0] != "_"})
    listed = {id(named(path)) for path in LISTED}
    others = {n for n in public if id(getattr(module, n)) not in listed}
    # metrics stand in the tables of metrics instead
    objects = {n: getattr(module, n) for n in others}
    absent = sorted(n for n, x in objects.items() if not (ismodule(x) or isinstance(x, metrics.Metric)))
    assert not absent, f"list {', '.join(absent)} of {room} in docs/guide/api.md"


def test_every_metric_is_in_the_tables_of_metrics():
    """The page has a table for each group; the paper's names stand in a table of their own."""
    page = (ROOT / "docs" / "guide" / "metrics.md").read_text(encoding="utf-8")
    groups = re.findall(r"^```\{metrics\} (\w+)$", page, re.M)
    shown = {m.name for m in (*metrics.ALL, *metrics.definitions.OTHERS) if m.group.name in groups}
    assert len(groups) == len(set(groups))
    assert shown | set(re.findall(r"`([PR]_\w+)`", page)) == set(metrics.definitions.NAMED)
    assert all(m.meaning for m in metrics.definitions.NAMED.values())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert not [t for t in targets if not (page.parent / t).exists()]


@pytest.mark.slow
def test_no_docstring_of_an_attribute_is_taken_for_its_type():
    """Sphinx reads "Nothing: the unit ..." as an attribute of the type Nothing."""
    found = []
    for path, tree in parse_package().items():
        bodies = [node.body for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef)]
        for assigned, told in (pair for body in bodies for pair in pairwise(body)):
            if isinstance(assigned, ast.Assign | ast.AnnAssign) and isinstance(told, ast.Expr):
                text = ast.literal_eval(told.value)
                found += [f"{path.name}: {text}"] * (":" in text.splitlines()[0])
    assert not found
