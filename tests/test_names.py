"""One name means one thing in the whole package."""

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

from source import PACKAGE, parse_package


def find_definitions(kind):
    """Return the modules that define each class or function at their top."""
    modules = defaultdict(list)
    for path, tree in parse_package().items():
        for node in tree.body:
            if isinstance(node, kind) and not node.name.startswith("_"):
                modules[node.name].append(path.relative_to(PACKAGE).as_posix())
    return modules


def test_a_class_is_called_as_no_other():
    modules = find_definitions(ast.ClassDef)
    assert len(modules) > 200
    twice = {name: where for name, where in modules.items() if len(where) > 1}
    assert not twice, "two classes of one name: rename one"


def test_a_function_is_called_as_none_of_another_room():
    modules = find_definitions(ast.FunctionDef)
    assert len(modules) > 400
    rooms = {name: {module.split("/")[0] for module in where} for name, where in modules.items()}
    twice = {name: modules[name] for name, of in rooms.items() if len(of) > 1}
    assert not twice, "two rooms have a function of one name: rename one"


def test_no_helper_of_the_tests_is_left_alone():
    """An enumeration of samples guards nothing if no test runs it."""
    texts = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py")]
    words = Counter(word for text in texts for word in re.findall(r"\w+", text))
    defined = [name for text in texts for name in re.findall(r"(?<=\n\n)(?:def|class) (\w+)", text)]
    alone = [name for name in defined if words[name] == 1 and not re.match("test|Test|pytest_", name)]
    assert not alone, "helpers that nobody calls: list them where they belong, or let them go"
