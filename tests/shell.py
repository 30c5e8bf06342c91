"""The shell as tests ask it: what a command prints, its rows, and what it refuses."""

import json
import re
from functools import cache

from typer.main import get_command
from typer.testing import CliRunner

from erbayes.cli import app


@cache
def options():
    """Options of each command."""
    return {name: {o for p in c.params for o in p.opts} for name, c in get_command(app).commands.items()}


def run(*args):
    """Run a command, whose refusals name options of this very command."""
    shown, given = CliRunner().invoke(app, [str(a) for a in args]), " ".join(map(str, args))
    if shown.exit_code == 2 and args[0] in options():
        own = re.sub(r"\(erbayes [^()]*\)", "", shown.stderr)  # without other commands
        named = {*re.findall(r"(?<![\w-])--[a-z][a-z-]*", own)}
        strange = {name for name in named - options()[args[0]] if name not in given}
        assert not strange, f"erbayes {args[0]} has no {strange}: {shown.stderr}"
    return shown


def done(*args):
    shown = run(*args)
    assert shown.exit_code == 0, shown.output
    return shown


def listed(*args):
    """Rows of what a command prints in JSON."""
    return json.loads(done(*args, "--format", "json").stdout)["estimates"]


def refused(*args):
    shown = run(*args)
    assert shown.exit_code == 2, shown.output
    assert shown.stdout == ""
    return shown.stderr
