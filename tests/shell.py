"""The shell as tests ask it: what a command prints, its rows, and what it refuses."""

import json

from typer.testing import CliRunner

from erbayes.cli import app


def run(*args):
    return CliRunner().invoke(app, [str(a) for a in args])


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
