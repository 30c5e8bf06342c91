"""What the commands share is declared once, and all of them take it."""

import inspect
import re
from collections import Counter
from dataclasses import fields
from functools import cache
from itertools import product
from pathlib import Path
from typing import get_args

import pytest
import typer
from test_cli import folder, refused  # noqa: F401

from erbayes import Missing
from erbayes.cli import analyses as analyses
from erbayes.cli import app
from erbayes.cli import commands as commands
from erbayes.cli import drawing as drawing
from erbayes.cli import inputs as inputs
from erbayes.cli import predictions as predictions
from erbayes.cli import printing as printing

pytestmark = pytest.mark.lowest
BY = {"by", "across", "attributes"}
ERRORS = {"annotator-errors"}
OWN = {
    "estimate": {*("looks", "worst-cases", "engine", "side-by-side", "picture", "format", "output", "strict")}
    | BY
    | ERRORS,
    "compare": {"all-pairs", "engine", "picture", "format", "output", "strict"} | BY | ERRORS,
    "report": {"looks", "title", "with-records", "explore", "statistic", "feature", "output", "replace"}
    | BY
    | ERRORS,
    "plan": {"looks", "half-width", "per-unit", "per-record", "format", "output"},
    "check": {"looks", "min-precision", "min-recall", "min", "once", "format", "output"} | ERRORS,
}
LACKS = {"check": {"metrics", "interval"}}
"""Shared options that a command does not take: those of class `MetricOptions`."""
COMMANDS = {c.name: c.callback for c in app.registered_commands if c.name in OWN}


@cache
def shown(command):
    """Names of options in the order of the help, with what is said of each."""
    found = typer.main.get_command(app).commands[command].params
    return {p.opts[0].removeprefix("--"): (p.required, p.default, p.help) for p in found}


def test_every_command_takes_every_shared_option_in_the_same_order():
    shared = {c: [name for name in shown(c) if name not in own] for c, own in OWN.items()}
    for command, names in shared.items():
        wanted = [n for n in shared["estimate"] if n not in LACKS.get(command, ())]
        assert names == wanted, f"{command}: put options of one command into `OWN`"
    assert len(shared["estimate"]) > 25


def test_shared_options_mean_the_same_everywhere():
    several = {"prediction", "cluster", "table", "missing"}
    for command, own in OWN.items():
        for name, said in shown(command).items():
            if name not in own | several | ({"metrics"} if command == "plan" else set()):
                assert said == shown("estimate")[name], (command, name)


def test_every_policy_for_missing_records_is_listed():
    assert all(policy.value in shown("compare")["missing"][2] for policy in Missing)


def test_no_two_commands_declare_the_same_option():
    declared = Counter(
        name for run in COMMANDS.values() for name in inspect.signature(run.__wrapped__).parameters
    )
    assert {name for name, times in declared.items() if times > 1} == {
        "inputs",
        "asked",
        "by_engine",
        "domains",
        "errors",
        "picture",
        "printing",
    }


def test_required_options_come_first():
    for command in OWN:
        required = [required for required, *_ in shown(command).values()]
        assert required == sorted(required, reverse=True)
        assert sum(required) == (command != "compare")  # a folder remembers the others


@pytest.mark.parametrize(
    "command", ["estimate p.csv", "compare p.csv drawn.csv", "report p.csv", "plan p.csv --half-width 1"]
)
def test_a_frame_is_not_written_over(folder, command):  # noqa: F811
    before = (folder / "q.csv").read_bytes()
    args = ("l.parquet", "--design", "uniform-clusters", "--frame", "q.csv", "--output", "q.csv")
    assert "cannot write q.csv: it is read as q.csv" in refused(*command.split(), *args)
    assert (folder / "q.csv").read_bytes() == before


def list_paths(run):
    """Options and arguments of a command that name files or folders, each with what typer is told of it."""
    for name, one in run.__signature__.parameters.items():
        annotation, said = get_args(one.annotation)
        if Path in (annotation, *get_args(annotation)):
            yield "output" if "--output" in (said.param_decls or ()) else name, said


RUNS = {command.name: command.callback for command in app.registered_commands}
WRITTEN = {"output", "picture", "problems"}
"""Options that name what a command writes. All others name what it reads."""
FILES = {
    "prediction": "p.csv",
    "edges": "p.csv",
    "answers": "l.parquet",
    "labels": "l.parquet",
    "folder": "f",
}
"""A file or folder for each argument."""


@pytest.mark.parametrize("command", RUNS)
def test_files_that_are_read_must_exist(command):
    missing = {name for name, said in list_paths(RUNS[command]) if not (said.exists or said.parser)}
    assert missing <= WRITTEN, "make it a `file_option`, or say `exists=True`"


def list_read_and_written():
    """Each option that a command writes with each that it reads. The output of `draw` is a new folder."""
    for command, run in RUNS.items():
        names = [name for name, _ in list_paths(run) if command != "draw"]
        for pair in product(sorted(WRITTEN & set(names)), sorted(set(names) - WRITTEN)):
            yield command, *pair


@pytest.mark.parametrize(("command", "written", "read"), list(list_read_and_written()))
def test_a_file_that_is_read_is_not_written_over(folder, command, written, read):  # noqa: F811
    (folder / "f").mkdir()
    for name in ("x", "f/x"):
        (folder / name).write_text("one\n", encoding="utf-8")
    given = {name: FILES[name] for name, _ in list_paths(RUNS[command]) if name in FILES}
    output = "f/x" if read == "folder" else given.get(read, "x")
    options = [] if read in given else [f"--{read.replace('_', '-')}", "x"]
    before = Path(output).read_bytes()
    assert "it is read as" in refused(command, *given.values(), *options, f"--{written}", output)
    assert Path(output).read_bytes() == before


def test_every_shared_option_is_read():
    """A field that no code reads would be an option without effect."""
    room = Path(commands.__file__).parent
    code = "\n".join(path.read_text(encoding="utf-8") for path in room.glob("*.py"))
    classes = [
        inputs.One, inputs.Several, drawing.Drawing, predictions.LinkOptions, analyses.MetricOptions,
        analyses.Minima, analyses.Domains, printing.Printing,
    ]  # fmt: skip
    declared = {field.name for one in classes for field in fields(one)}
    assert len(declared) > 25
    assert not sorted(name for name in declared if not re.search(rf"\.{name}\b", code))
