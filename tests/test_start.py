"""What is loaded when: the shell starts without pandas, and `import erbayes` without anything."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

import erbayes as eb
from erbayes.cli import lazily
from erbayes.cli.drawing import PlanName
from erbayes.labels.plans import PLANS

HEAVY = {"numpy", "pandas", "scipy", "pyarrow", "pydantic", "joblib"}


def loaded(code):
    """Names of modules that a new process has loaded after some code."""
    code = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split("\n")[-2].split())


def test_commands_run_as_a_module():
    called = [sys.executable, "-m", "erbayes", "--version"]
    done = subprocess.run(called, capture_output=True, text=True, encoding="utf-8")
    assert done.stdout == f"erbayes {eb.__version__}\n"


def test_import_loads_nothing_else():
    found = loaded("import erbayes; dir(erbayes), erbayes.__version__, erbayes.DataError")
    assert not found & HEAVY
    least = {"erbayes._internal", "erbayes._internal.errors", "erbayes._internal.names"}
    assert {name for name in found if name.startswith("erbayes.")} <= least


def test_estimates_load_neither_statistics_nor_models():
    found = loaded("from erbayes import alarms, engine, estimate, plots, study, two_phase")
    assert "pandas" in found and found.isdisjoint(
        "scipy.stats pymc arviz arviz_stats matplotlib erbayes.cli".split()
    )


@pytest.mark.parametrize("call", ["--version", "--help", "estimate --help", "draw --help", ""])
def test_the_shell_helps_without_what_commands_need(call):
    stop = f"sys.argv = ['erbayes', *{call.split()}]\nfrom erbayes.cli import app\ntry: app()\nexcept SystemExit: pass"
    found = loaded(stop)
    assert "erbayes.cli.commands" in found and not found & (HEAVY - {"pydantic"})


def read_stub(module):
    """Home and name of what each name of a module's stub is, read anew."""
    tree = ast.parse(Path(module).with_suffix(".pyi").read_text(encoding="utf-8"))
    return {
        alias.asname or alias.name: (
            f"{'.' * getattr(node, 'level', 0)}{getattr(node, 'module', '') or ''}",
            alias.name,
        )
        for node in tree.body
        for alias in getattr(node, "names", ())
    }


STUB = read_stub(eb.__file__)
ROOMS = {name for name, (home, _) in STUB.items() if home == "."}


def test_every_public_name_is_loaded_from_where_checkers_of_types_find_it():
    assert {name: name for name in STUB} == {name: own for name, (_, own) in STUB.items()}
    inside = {name for name in STUB.keys() - ROOMS if isinstance(getattr(eb, name), ModuleType)}
    assert inside == {"columns", "intervals", "pairs", "statistics"}
    assert set(eb.__all__) == STUB.keys() - ROOMS - inside
    for name in eb.__all__:
        assert getattr(eb, name) is getattr(import_module(STUB[name][0], "erbayes"), name)
    for name in (ROOMS | inside) - {"bayes"}:
        home = STUB[name][0].rstrip(".")
        assert getattr(eb, name) is import_module(f"{home}.{name}", "erbayes")


def test_names_are_those_of_the_front_door():
    assert dir(eb) == sorted({*STUB, "__version__"}) and eb.__version__.count(".") == 2
    with pytest.raises(AttributeError, match="no attribute 'estimat'"):
        eb.estimat  # noqa: B018
    with pytest.raises(AttributeError, match=r"erbayes\.analysis.* no attribute 'domain'"):
        eb.analysis.domain  # noqa: B018
    assert eb.analysis.domains.by_domain is eb.by_domain


def test_modules_of_commands_are_what_checkers_of_types_take_them_for():
    for name, (home, own) in read_stub(lazily.__file__).items():
        dot = "." if home.strip(".") else ""
        module = import_module(f"{home}{dot}{own}", "erbayes.cli")
        assert getattr(lazily, name).__name__ == module.__name__


def test_the_shell_knows_every_plan():
    assert [*get_args(PlanName)] == [*PLANS, "pairs"]  # which erbayes.pairs draws
