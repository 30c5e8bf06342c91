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


PASSED_ON = {*"level kind kinds simultaneous rng missing frame blocks any_id pairs near".split()}
PASSED_ON |= {*"attributes candidates links overlap rule limit".split()}
"""Options that mean the same wherever they stand."""
OF_SHELL = {"inputs": "level", "scored": "level", "asked": "kind"}
"""What classes of options say, by the names of their parameters."""
KEPT = {
    ("estimate_jointly", "measure", "frame"), ("impact", "measure", "frame"),  # which is taken before
    ("impact", "scan", "frame"),  # which is refused before
    ("check_command", "table", "level"), ("check_command", "sentences", "level"),  # which the rule has
    ("draw_coverage", "table", "level"),  # of the study, whose intervals are drawn
    ("given", "read_ids", "near"),  # those of all records, which are read first
    ("intervals_table", "table", "simultaneous"),  # which has rows that are refused among others
    ("pairs_command", "save", "kind"),  # of shares of pairs, which have one
    ("paired", "paired", "rng"),  # of the closed form, which draws nothing
    ("stages", "thresholds", "rng"), ("thresholds", "thresholds", "rng"),  # those of edges
    ("_correct", "compare", "missing"),  # a function of its own
    ("_find_bounds", "uncut_interval", "kind"), ("_name_kind", "name_kind", "kind"),  # whose own kind it is
}  # fmt: skip
"""The function, what it calls, and an option of its own that it does not pass on, on purpose."""


def list_optional(of):
    """Arguments that a call may leave out, each with its place among those without a name."""
    places = {one.arg: i for i, one in enumerate(one for one in of.args if one.arg not in ("self", "cls"))}
    left = [one for one, default in zip(of.kwonlyargs, of.kw_defaults, strict=True) if default]
    return {one.arg: places.get(one.arg, 99) for one in [*of.args[len(of.args) - len(of.defaults) :], *left]}


def is_method(function):
    return function.args.args and function.args.args[0].arg in ("self", "cls")


def list_known(function):
    """Options that a function has been given, or that its own lines set."""
    targets = [target for line in function.body if isinstance(line, ast.Assign) for target in line.targets]
    ends = [one for target in targets for one in getattr(target, "elts", [target])]
    known = {one.arg for one in (*function.args.args, *function.args.kwonlyargs)}
    known |= {getattr(one, "id", "") for one in ends}
    return PASSED_ON & (known | {said for name, said in OF_SHELL.items() if name in known})


def test_an_option_is_passed_on_to_what_takes_it():
    """Whoever forgets one prints 95 % intervals under another level, or a number that no seed gives again."""
    trees = parse_package().values()
    holders = [holder for tree in trees for holder in (tree, *tree.body) if hasattr(holder, "body")]
    functions = [node for holder in holders for node in holder.body if isinstance(node, ast.FunctionDef)]
    takes, forgotten, passed = defaultdict(list), set(), 0
    for function in functions:  # methods by their names alone, as nothing says whose they are
        names = [f".{function.name}"] if is_method(function) else [function.name, f".{function.name}"]
        for name in names:
            takes[name].append(list_optional(function.args))
    for function in functions:
        known = list_known(function)
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)) if known else ():
            name = getattr(call.func, "id", f".{getattr(call.func, 'attr', '')}")
            given = {one.arg for one in call.keywords}
            given |= {None for one in call.args if isinstance(one, ast.Starred)}
            for option in known if None not in given else ():
                places = [of[option] for of in takes.get(name, ()) if option in of]
                if 8 * len(places) > len(takes.get(name, ())):  # else most of this name do not take it
                    there = option in given or min(places) < len(call.args)
                    passed += there
                    forgotten |= set() if there else {(function.name, name.strip("."), option)}
    assert {one for one in forgotten if one[1] != "random"} == KEPT  # which a generator has
    assert passed > 150
