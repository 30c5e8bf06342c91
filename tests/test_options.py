"""What the commands share is declared once, and all of them take it."""

import inspect
import sys
from collections import Counter
from contextlib import chdir
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import numpy as np
import pandas as pd
import pytest
import typer
from shell import done, refused, run
from test_cli import fill, folder  # noqa: F401
from typer.models import OptionInfo

from erbayes import Missing
from erbayes.cli import analyses as analyses
from erbayes.cli import app
from erbayes.cli import commands as commands
from erbayes.cli import inputs as inputs
from erbayes.cli import predictions as predictions
from erbayes.cli import printing as printing

pytestmark = pytest.mark.lowest
RUNS = {command.name: command.callback for command in app.registered_commands}


def parameters(command):
    return inspect.signature(RUNS[command].__wrapped__, eval_str=True).parameters


def takes_inputs(command):
    """Whether a command has the class of options of predictions and their labels."""
    there = parameters(command).get("inputs")
    return there is not None and issubclass(there.annotation, inputs.Inputs)


COMMANDS = [command for command in RUNS if takes_inputs(command)]


@cache
def shown(command):
    """Names of options in the order of the help, with what is said of each."""
    found = typer.main.get_command(app).commands[command].params
    return {p.opts[0].removeprefix("--"): (p.required, p.default, p.help) for p in found}


def list_shared():
    """Names of the options that all commands on labelled predictions take, in the order of each."""
    common = set.intersection(*({*shown(command)} for command in COMMANDS))
    return {command: [name for name in shown(command) if name in common] for command in COMMANDS}


def test_shared_options_have_one_order_and_one_meaning():
    several = {"prediction", "cluster", "table", "missing"}
    for command, names in list_shared().items():
        assert names == list_shared()["estimate"], f"{command} has shared options in another order"
        for name in {*names} - several - {"output"}:
            said = f"erbayes {command} and estimate differ on --{name}: use one class of options"
            assert shown(command)[name] == shown("estimate")[name], said
    assert len(COMMANDS) > 5 and len(names) > 20


def test_every_policy_for_missing_records_is_listed():
    assert all(policy.value in shown("compare")["missing"][2] for policy in Missing)


def test_no_two_commands_declare_the_same_option():
    declared = [one for command in COMMANDS for one in parameters(command).values()]
    times = Counter(one.name for one in declared if not is_dataclass(one.annotation))
    again = sorted(name for name, n in times.items() if n > 1)
    assert not again, f"commands declare {again} several times: make it a field of a class of options"


def test_required_options_come_first():
    for command in COMMANDS:
        required = [required for required, *_ in shown(command).values()]
        assert required == sorted(required, reverse=True)
        assert sum(required) == (command != "compare")  # a folder remembers the others


def list_paths(run):
    """Options and arguments of a command that name files or folders, each with what typer is told of it."""
    for name, one in run.__signature__.parameters.items():
        annotation, said = get_args(one.annotation)
        if Path in (annotation, *get_args(annotation)):
            yield "output" if "--output" in (said.param_decls or ()) else name, said


WRITTEN = {"output", "picture", "problems"}
"""Options that name what a command writes. All others name what it reads."""
FILES = {
    "prediction": "p.csv", "edges": "p.csv", "answers": "l.parquet", "labels": "l.parquet", "folder": "f",
}  # fmt: skip
"""A file or folder for each argument."""


@pytest.mark.parametrize("command", RUNS)
def test_files_that_are_read_must_exist(command):
    missing = {name for name, said in list_paths(RUNS[command]) if not (said.exists or said.parser)}
    assert missing <= WRITTEN, "make it a `file_option`, or say `exists=True`"


def list_read_and_written():
    """Each option that a command writes with each that it reads. The output of `draw` is a new folder."""
    for command, work in RUNS.items():
        names = [name for name, _ in list_paths(work) if command != "draw"]
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


# Options that change something
TAKEN = "p.csv l.parquet -d uniform-clusters"
CALLS = {
    "estimate": TAKEN,
    "compare": f"p.csv q.csv {TAKEN.removeprefix('p.csv ')}",
    "report": f"{TAKEN} -o page.html",
    "check": f"{TAKEN} --min-precision .5",
    "plan": f"{TAKEN} --half-width .1",
    "impact": TAKEN,
    "clusters": "p.csv",
    "draw": "p.csv -n 5 --seed 1 -o f",
    "labels": "drawn",
    "thresholds": "edges.csv l.parquet -d uniform-clusters --records p.csv --at 3",
    "pairs": "edges.csv pairs/pairs.csv --records p.csv",
    "metrics": "",
}
"""A call of each command that the next table does not name."""
OTHER_CALLS = {
    ("estimate", "missing"): "p.csv more.csv -d uniform-clusters",
    ("estimate", "strip"): "blanks.csv l.parquet -d uniform-clusters",
    ("estimate", "any-id"): "none.csv l.parquet -d uniform-clusters",
    ("estimate", "alone"): "none.csv l.parquet -d uniform-clusters",
    ("estimate", "records"): "edges.csv l.parquet -d uniform-clusters --edges --threshold 3",
    ("estimate", "strict"): "p.csv single.csv -d uniform-clusters -m b3-recall",
    ("compare", "missing"): "p.csv fewer.csv l.parquet -d uniform-clusters",
    ("compare", "cluster"): "both.csv l.parquet -d uniform-clusters --cluster old --cluster new",
    ("compare", "all-pairs"): "p.csv q.csv three.csv four.csv five.csv l.parquet -d uniform-clusters -m f1",
    ("report", "replace"): f"{TAKEN} -o there.html",
    ("check", "once"): f"{TAKEN} --min cluster-recall=.2",
    ("clusters", "blank"): "blank.csv",
    ("draw", "more"): "drawn",
    ("draw", "overlap"): "p.csv -n 5 --seed 1 -o f --annotators 2",
    ("draw", "replace"): "p.csv -n 5 --seed 1 -o drawn",
}
"""Calls in which an option matters that matters nowhere else."""
VALUES = {
    "alone": "NULL", "records": "drawn.csv", "min-precision": 0.7, "format": "json", "output": "new.csv",
    "picture": "new.svg", "problems": "new.csv", "n": 6, "seed": 2,
}  # fmt: skip


def value_of(one):
    """A value that an option takes, other than its default, or that it refuses."""
    kind, _ = get_args(one.annotation)
    kinds = [kind, *get_args(kind), *(x for inner in get_args(kind) for x in get_args(inner))]
    name = long_name(one)[2:]
    if name in VALUES or bool in kinds:
        return [VALUES[name]] if name in VALUES else []
    named = [x.value for k in kinds if isinstance(k, type) and issubclass(k, Enum) for x in k]
    choices = [
        x for x in (*named, *kinds) if isinstance(x, str) and x != getattr(one.default, "value", one.default)
    ]
    if choices:
        return [choices[-1]]
    return [3 if int in kinds else 0.5 if float in kinds else "three.csv"]


def long_name(one):
    """The long name of an option."""
    return next(name for name in get_args(one.annotation)[1].param_decls if name.startswith("--"))


def list_options():
    """Each option of a command, those that commands share once."""
    seen = set()
    for command in CALLS:
        for one in RUNS[command].__signature__.parameters.values():
            said = get_args(one.annotation)[1]
            if isinstance(said, OptionInfo) and (known := (one.name, said.help)) not in seen:
                seen.add(known)
                yield pytest.param(command, one, id=f"{command} {long_name(one)}")


@cache
def make_files():
    """Files of which each option takes one, by their names."""
    with TemporaryDirectory() as made, chdir(made):
        fill()
        prediction, labels = pd.read_csv("p.csv", dtype=str), pd.read_parquet("l.parquet").astype(str)
        for name, i in (("three", 1), ("four", 2), ("five", 3)):
            alone = prediction.assign(cluster=prediction["cluster"].mask(prediction.index == i, "alone"))
            alone.to_csv(f"{name}.csv", index=False)
        more = pd.DataFrame({"record": ["strange"], "entity": labels["entity"].iloc[:1]})
        pd.concat([labels, more]).to_csv("more.csv", index=False)
        clusters = prediction["cluster"]
        blank = clusters.where(prediction.index % 2 > 0, " " + clusters)
        prediction.assign(cluster=blank).to_csv("blanks.csv", index=False)
        prediction.assign(cluster=clusters.where(prediction.index > 1)).to_csv("blank.csv", index=False)
        prediction[1:].to_csv("fewer.csv", index=False)
        labels[:2].assign(record=["r0", "r1"], entity="x").to_csv("single.csv", index=False)
        prediction.rename(columns={"cluster": "old"}).assign(new="one").to_csv("both.csv", index=False)
        unknown = prediction.assign(cluster=clusters.where(prediction.index > 1, "NULL"))
        unknown.to_csv("none.csv", index=False)
        ends = prediction["record"].to_numpy()
        edges = pd.DataFrame({"l": ends[:-1], "r": ends[1:], "score": np.arange(len(ends) - 1) % 7.0})
        edges.to_csv("edges.csv", index=False)
        Path("there.html").write_text("old", encoding="utf-8")
        done("draw", "p.csv", "-n", 5, "--seed", 1, "-o", "drawn")
        sheet = pd.read_csv("drawn/sheet-A.csv", dtype=str, keep_default_na=False)
        sheet.assign(same="y").to_csv("drawn/sheet-A.csv", index=False)
        pairs = ("--edges", "--records", "p.csv", "--design", "pairs")
        done("draw", "edges.csv", "-n", 16, "--seed", 1, "-o", "pairs", *pairs)
        pd.read_csv("pairs/pairs.csv").assign(same="y").to_csv("pairs/pairs.csv", index=False)
        return read_all()


def read_all():
    return {str(path): path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}


@cache
def outcome(*call):
    """What a call prints, its exit status, and the files that are there after it."""
    with TemporaryDirectory() as empty, chdir(empty):
        for path, content in make_files().items():
            Path(path).parent.mkdir(exist_ok=True)
            Path(path).write_bytes(content)
        shown = run(*call)
        return shown.exit_code, shown.output, read_all()


@pytest.mark.slow
@pytest.mark.parametrize(("command", "one"), list(list_options()))
def test_an_option_changes_something(command, one, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["erbayes"])  # which a report prints
    name = long_name(one)
    call = [command, *OTHER_CALLS.get((command, name[2:]), CALLS[command]).split()]
    rest = call
    if short := [n for n in get_args(one.annotation)[1].param_decls if n in call]:
        at = call.index(short[0])  # what a call cannot do without has another value
        rest = call[:at] + call[at + 2 :]
    kinds = lambda found: [found[0], *(content[:8] for content in found[2].values())]  # noqa: E731
    values, ends = value_of(one), getattr(get_args(one.annotation)[1], "ends", None) or ()
    after = outcome(*rest, name, *values)
    assert kinds(outcome(*rest, "=".join([name, *map(str, values)]))) == kinds(after), f"{name}=VALUE"
    for end in filter(None, ends):
        low, high = (kinds(outcome(*rest, name, f"X.{word}")) for word in (end, end.upper()))
        assert low == high and low[0] == 0, f"{name} X.{end.upper()}"
    changed = "erbayes {} says the same with {}: read the option, or say in OTHER_CALLS where it matters"
    assert after != outcome(*call), changed.format(" ".join(call), name)
