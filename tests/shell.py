"""The shell as tests ask it: what a command prints, its rows, and what it refuses."""

import json
import re

from typer.main import get_command
from typer.testing import CliRunner

from erbayes.cli import app

COMMANDS = get_command(app).commands


def run(*args):
    """Run a command, whose refusals name its own options, or others after their command."""
    shown, given = CliRunner().invoke(app, [str(a) for a in args]), " ".join(map(str, args))
    if shown.exit_code == 2 and args[0] in COMMANDS:
        named = re.findall(r"(?<![\w-])--[a-z][a-z-]*", re.sub(r"erbayes [^();\n]*", "", shown.stderr))
        strange = {x for x in named if x not in given} - {o for p in COMMANDS[args[0]].params for o in p.opts}
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
