"""What is loaded when: the shell starts without pandas, and `import erbayes` without anything."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import erbayes as eb
from erbayes.cli import lazily
from erbayes.cli.drawing import PlanName
from erbayes.labels.drawing.plans import PLANS

HEAVY = {"numpy", "pandas", "scipy", "pyarrow", "pydantic", "joblib"}
TREE = ast.parse(Path(eb.__file__).read_text(encoding="utf-8"))


def loaded(code):
    """Names of modules that a new process has loaded after some code."""
    code = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split("\n")[-2].split())


def test_commands_run_as_a_module():
    called = [sys.executable, "-m", "erbayes.cli", "--version"]
    assert subprocess.run(called, capture_output=True, text=True).stdout == f"erbayes {eb.__version__}\n"


def test_import_loads_nothing_else():
    found = loaded("import erbayes; dir(erbayes), erbayes.__version__, erbayes.DataError")
    assert not found & HEAVY
    assert {name for name in found if name.startswith("erbayes.")} <= {
        "erbayes._internal",
        "erbayes._internal.errors",
    }


def test_estimates_load_neither_statistics_nor_models():
    found = loaded("import erbayes; erbayes.estimate, erbayes.alarms, erbayes.two_phase, erbayes.study")
    assert "pandas" in found
    assert not found & {"scipy.stats", "pymc", "matplotlib", "erbayes.cli"}


@pytest.mark.parametrize("call", ["--version", "--help", "estimate --help", "draw --help", ""])
def test_the_shell_helps_without_what_commands_need(call):
    stop = f"sys.argv = ['erbayes', *{call.split()}]\nfrom erbayes.cli import app\ntry: app()\nexcept SystemExit: pass"
    found = loaded(stop)
    assert "erbayes.cli.commands" in found
    assert not found & HEAVY


def test_every_public_name_is_loaded_from_where_checkers_of_types_find_it():
    (block,) = (node for node in TREE.body if isinstance(node, ast.If))
    found = {
        alias.asname or alias.name: f"{node.module or ''}"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    rooms = {name for name, home in found.items() if not home}
    homes = {name: home for name, home in found.items() if home and name not in eb._ROOMS}
    assert homes == eb._MODULES
    inside = {name: path for name, path in eb._ROOMS.items() if "." in path}
    assert rooms | set(inside) == set(eb._ROOMS)
    assert {name: f"{found[name]}.{name}" for name in inside} == inside
    assert set(eb._MODULES) == set(eb.__all__)
    for name, home in eb._MODULES.items():
        assert getattr(eb, name) is getattr(import_module(f"erbayes.{home}"), name)
    for room in eb._ROOMS.keys() - {"bayes"}:
        assert getattr(eb, room) is import_module(f"erbayes.{eb._ROOMS[room]}")


def test_names_are_those_of_the_front_door():
    assert dir(eb) == sorted({*eb.__all__, *eb._ROOMS, "__version__"})
    assert eb.__version__.count(".") == 2
    with pytest.raises(AttributeError, match="no attribute 'estimat'"):
        eb.estimat  # noqa: B018
    with pytest.raises(AttributeError, match=r"erbayes\.analysis.* no attribute 'domain'"):
        eb.analysis.domain  # noqa: B018
    assert eb.analysis.domains.by_domain is eb.by_domain


def test_modules_of_commands_are_what_checkers_of_types_take_them_for():
    tree = ast.parse(Path(lazily.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    found = {}
    for node in block.body:
        for alias in node.names:
            if isinstance(node, ast.Import):
                found[alias.asname or alias.name] = alias.name
            else:
                dots = "." * node.level
                found[alias.asname or alias.name] = (
                    f"{dots}{node.module or ''}{'.' * bool(node.module)}{alias.name}"
                )
    assert found == lazily._PATHS
    for name, path in found.items():
        module = import_module(path, "erbayes.cli")
        assert getattr(lazily, name).__name__ == module.__name__


def test_the_shell_knows_every_plan():
    assert [plan.value for plan in PlanName] == [*PLANS, "pairs"]  # which erbayes.pairs draws
