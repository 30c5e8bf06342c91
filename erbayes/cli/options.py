"""Classes of options that commands share, and what a shell is told of errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any

import typer

from ..errors import DataError, Remedy, printable
from ..files import refuse_output

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
)


COLUMNS = "name them: --record, --cluster, --entity"
REMEDIES = {
    Remedy.MISSING: "choose a policy to go on: --missing omit, singleton or together",
    Remedy.COVERAGE: "choose --coverage common to compare them on the records that they share",
    Remedy.COLUMNS: COLUMNS,
    Remedy.ORDER: f"if columns are in the other order, {COLUMNS}",
    Remedy.SCANNED_COLUMNS: COLUMNS,
    Remedy.ALONE: Remedy.ALONE.value,
    Remedy.LINKS: "if rows are links between records, --edges makes clusters of them",
    Remedy.ANSWERS: (
        "if rows are answers about pairs of records, erbayes.labelling.read_stars makes entities of them, in "
        "Python"
    ),
    Remedy.SCORE: "name those of the two records and of scores: --left, --right, --score with --threshold",
    Remedy.DATABASE: "name its table: --table NAME",
}
"""What to do about an error, in a shell."""


def file_option(what: str) -> Any:
    return typer.Option(exists=True, dir_okay=False, help=what)


def tell(text: str) -> None:
    typer.echo(printable(text), err=True)


def command(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As `app.command`; a parameter that is a dataclass gives way to an option for each of its fields.

    Such a class is the one place that declares what commands share. Its fields may be such classes too.
    Required options come first.
    """

    def added(work: Callable[..., None]) -> Callable[..., None]:
        @wraps(work)
        def run(**given: Any) -> None:
            try:
                _called(work, given)
            except DataError as error:
                tell("; ".join([f"erbayes: {error.what}", *(REMEDIES[r] for r in error.remedies)]))
                raise typer.Exit(2) from error

        options = sorted(_options(work), key=lambda option: option.default is not Parameter.empty)
        vars(run)["__signature__"] = Signature(options)
        return app.command(name)(run)

    return added


def _parameters(call: Callable[..., Any]) -> Iterator[tuple[Parameter, bool]]:
    """Parameters, and whether each is a class of options."""
    for parameter in signature(call, eval_str=True).parameters.values():
        yield parameter, is_dataclass(parameter.annotation)


def _options(call: Callable[..., Any]) -> Iterator[Parameter]:
    for own, grouped in _parameters(call):
        if grouped:
            yield from _options(own.annotation)
        else:
            yield own.replace(kind=Parameter.KEYWORD_ONLY)


def _called(call: Callable[..., Any], given: dict[str, Any]) -> Any:
    """What a call gives for the options that a shell gave."""
    built = {
        own.name: _called(own.annotation, given) if grouped else given[own.name]
        for own, grouped in _parameters(call)
    }
    return call(**built)


def files_of(options: Any) -> Iterator[tuple[str, Path]]:
    """Files that options name."""
    for field in fields(options):
        value = getattr(options, field.name)
        if is_dataclass(value):
            yield from files_of(value)
        for path in value if isinstance(value, list) else [value]:
            if isinstance(path, Path):
                yield field.name, path


def refuse_output_over(output: Path | None, options: Any) -> None:
    """Before anything is read."""
    if output is not None:
        refuse_output(output, [path for _, path in files_of(options)])
