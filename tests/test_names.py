"""One name, one thing: classes of the package, and public functions of its rooms."""

import ast
from collections import defaultdict
from pathlib import Path

import erbayes

PACKAGE = Path(erbayes.__file__).parent
PENDING = {
    *("Between", "Drawn", "Entities", "Known", "Level", "Links", "LogNormal", "Pooled", "Shared", "Zeta"),
    *("alarms", "balance", "by_domain", "check", "curve", "influence", "joined", "side_by_side", "stages"),
    *("tipping", "tree"),
}
"""Names that still have two things. Pictures are called as what they show."""


def list_homes(kind):
    """Name -> places: modules of classes, rooms of public functions."""
    homes = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, kind) and not node.name.startswith("_"):
                homes[node.name].add(".".join(parts) if kind is ast.ClassDef else parts[0])
    return homes


def test_no_two_classes_have_one_name():
    assert {name for name, homes in list_homes(ast.ClassDef).items() if len(homes) > 1} <= PENDING


def test_no_two_rooms_have_a_function_of_one_name():
    assert {name for name, homes in list_homes(ast.FunctionDef).items() if len(homes) > 1} <= PENDING
