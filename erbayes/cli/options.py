"""Classes of options that commands share, errors in the words of the shell, and topics of help."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache, partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, dataclass_transform, get_args

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import ArgumentInfo

from .._internal.errors import Alarm, DataError, Grade, NotIdentified, Sentence, grade_of, head, printable
from .lazily import files
from .remembered import File, recall

WORDS = {
    "Value error, ": "",
    "Input should be a valid integer, unable to parse string as an integer": "write a whole number",
    "Input should be a valid number, unable to parse string as a number": "write a number; 2% is 0.02",
}
"""What a library says of values that it refuses, and what is said instead."""
COLOURS = {Grade.NOTE: None, Grade.CAUTION: "yellow", Grade.FAULT: "red"}
"""Colours of alarms in a terminal."""
ORDER = [
    *("clusters", "draw", "labels", "estimate", "compare", "thresholds", "pairs", "impact", "check", "plan"),
    *("report", "metrics", "demo", "help"),
]
"""Commands in the order of the work."""
OUTPUTS = ("output", "picture", "problems")
"""Options that name a file to write."""


class Explained(TyperCommand):
    """A command whose help has a panel per subject, and names the topics of options that it leaves out."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options in panels."""
        options: list[Any] = self.get_params(ctx)
        write_panels(options, ctx, formatter)
        if topics := dict.fromkeys(slug(option) for option in options if getattr(option, "hidden", False)):
            formatter.write_paragraph()
            formatter.write_text(f"More options: erbayes help {', '.join(topics)}")

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read arguments, and say what is wrong with them in the words of the shell."""
        ctx.allow_extra_args = True  # which are refused below, with the command that takes them
        needed = [p for p in self.params if p.required and p.opts[0].startswith("-")]
        try:
            for p in needed:  # a folder that gets more draws knows how it was drawn
                p.required = not any(argument.partition("=")[0] == "--more" for argument in args)
            rest = super().parse_args(ctx, list(args))
        except typer.BadParameter as error:
            given = self.make_parser(ctx).parse_args(args=list(args))[0]
            absent = [p for p in self.get_params(ctx) if p.required and given.get(p.name) is None]
            if error.param in absent:
                # all at once, since each refusal costs another call
                names = [p.opts[0] if p.opts[0].startswith("-") else p.opts[0].upper() for p in absent]
                ctx.fail(f"Missing: {', '.join(names)}. The help says what each is, with its choices")
            for theirs, ours in WORDS.items():
                error.message = error.message.replace(theirs, ours)
            raise
        finally:
            for p in needed:
                p.required = True
        order = self.make_parser(ctx).parse_args(args=list(args))[2]
        times = Counter(p.opts[0] for p in order if not (p.multiple or getattr(p, "is_flag", False)))
        if again := [f"{name} stands there {n} times" for name, n in times.items() if n > 1]:
            ctx.fail(f"{again[0]}: give it once, with commas if it takes several values")
        if rest and not ctx.resilient_parsing:
            one = any(p.name == "prediction" for p in self.get_params(ctx))
            several = f": {self.name} takes one PREDICTION, and erbayes compare several" if one else ""
            ctx.fail(f"Got unexpected extra argument(s) ({printable(' '.join(rest))}){several}")
        return rest


class Shell(TyperGroup):
    """The commands together."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the commands in the order of the work."""
        return sorted(self.commands, key=ORDER.index)


def slug(option: Any) -> str:
    """Name of the topic that explains an option: its panel in one word."""
    return (option.rich_help_panel or "Options").lower().replace(" ", "-")


def write_panels(options: Sequence[Any], ctx: Any, formatter: Any) -> None:
    """Write what options do, each in the panel of its subject."""
    panels: dict[str, list[tuple[str, str]]] = {}
    for option in options:
        # whoever reads help knows the option that shows it
        if option.name != "help" and (row := option.get_help_record(ctx)) is not None:
            panels.setdefault(option.rich_help_panel or "Options", []).append(row)
    for panel, rows in panels.items():
        with formatter.section(typer.style(panel, bold=True)):
            formatter.write_dl(rows)


app = typer.Typer(
    cls=Shell,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@contextmanager
def within(place: str) -> Iterator[None]:
    """Name in errors the options and files that they are about, unless their remedy does so already."""
    try:
        yield
    except DataError as error:
        if isinstance(error, NotIdentified) or error.remedies or not place:
            raise
        raise DataError(f"{error.what} ({place})") from error


@dataclass_transform(frozen_default=True, kw_only_default=True)
def panel[T](name: str | None = None) -> Callable[[type[T]], type[T]]:
    """Make a class one of options, a field each, which help shows in the panel of this name."""

    def make(options: type[T]) -> type[T]:
        if name is not None:
            options.panel = name  # type: ignore[attr-defined]
        return dataclass(frozen=True, kw_only=True)(options)

    return make


REQUIRED: Any = MISSING
"""The default of an option without one."""


def option(
    help: str,
    *names: str,
    default: Any = None,
    panel: str | None = None,
    rare: bool = False,
    ends: Sequence[str] | None = None,
    **settings: Any,
) -> Any:
    """Return an option: a field of a class of options, or the default of a command's parameter.

    Its long name is that of the field, and `names` has a short one. A rare option is in no help but that of
    its topic: its panel, which is that of its class unless `panel` names another. `ends` are the endings,
    without a dot, that the name of a file to write may have.
    """
    made = typer.Option(..., *names, help=help, hidden=rare, rich_help_panel=panel, **settings)
    made.ends = ends
    return field(default=default, metadata={"option": made})


def argument(help: str, default: Any = REQUIRED, parser: Any = File.parse, **settings: Any) -> Any:
    """Return an argument, as `option` does an option. In the help it is its name in capitals."""
    return field(default=default, metadata={"option": typer.Argument(help=help, parser=parser, **settings)})


PICTURES = "svg png pdf jpg jpeg webp eps tif tiff".split()
"""Endings of files of static pictures."""
picture_option = partial(option, ends=PICTURES)
"""An option that names a picture to write."""
file_option = partial(option, parser=File.parse_file, metavar="FILE")
"""An option that names an existing file."""
flag = partial(option, default=False)
"""An option without a value."""
level_option = partial(option, "Level of the intervals, between 0 and 1.", default=0.95)
"""An option of the level of intervals."""
entity_option = partial(option, "Entity column of LABELS.", metavar="COLUMN")
"""An option that names the column of entities."""
record_option = partial(option, "Record column, in each file that has records.", metavar="COLUMN")
"""An option that names the column of records."""


def stored_option(help: str = "Table of a DuckDB database.") -> Any:
    """Return an option that names a table, or several, of a database."""
    return option(help, "--table", rare=True, panel="Scans")


def name_options(names: Iterable[str], between: str = ", ") -> str:
    """Return options by the names of their fields, such as --drawn, --top-up."""
    return between.join(f"--{name.replace('_', '-')}" for name in names)


def message(text: str) -> None:
    """Print a line on standard error, with control characters escaped."""
    typer.echo(printable(text), err=True)


def say(sentence: str) -> Sentence:
    """Print an alarm on standard error, after its grade, and return both."""
    grade = grade_of(sentence)
    colour = None if os.environ.get("NO_COLOR") else COLOURS[grade]
    head = typer.style(f"{grade.value}:", fg=colour, bold=grade is Grade.FAULT or None)
    typer.echo(f"{head} {printable(sentence)}", err=True)
    return Sentence(printable(sentence), grade)


@contextmanager
def saying_alarms() -> Iterator[list[Sentence]]:
    """Print the alarms that calls in the block warn of once it has ended, and put them into the list."""
    said = list[Sentence]()
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always", Alarm)
        yield said
    said += [say(one.message.args[0]) for one in raised if isinstance(one.message, Alarm)]


def command(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command, as `app.command` does, with a parameter per field of classes of options."""

    def register(work: Callable[..., None]) -> Callable[..., None]:
        @wraps(work)
        def run(**values: Any) -> None:
            try:
                values = recall(values)
                _refuse_outputs(values, options)
                _refuse_combinations(name, values, options)
                _call(work, values)
            except DataError as error:
                message(f"erbayes: {error}")
                raise typer.Exit(2) from error

        # required options come first, as in a signature
        options = sorted(_list_options(work), key=lambda option: option.default is not Parameter.empty)
        vars(run)["__signature__"] = Signature(options)
        return app.command(name, cls=Explained, short_help=(work.__doc__ or "").partition("\n")[0])(run)

    return register


APART = [
    ("", "by", "across", "ask for two results"),
    ("", "annotator_errors", "engine", "do not go together, as errors of labels are for the closed form"),
    ("compare", "picture annotator_errors", "by across", "do not go together, as groups are compared alone"),
]
"""Options none of which goes with one of the second list, of commands (all, if none is named), and why."""
NEEDED = [
    ("estimate compare report", "attributes", "by across statistic feature", "which name its column"),
    ("draw", "search", "attributes", "which it searches"),
    ("draw", "limit", "search candidates looser", "which show candidates"),
    ("draw", "overlap", "annotators", "two of whom get the same tasks"),
]
"""Options that need one of the second list, and why."""


def _refuse_combinations(command: str, values: Mapping[str, Any], options: Sequence[Parameter]) -> None:
    """Refuse options that change nothing together."""
    given = [option.name for option in options if values[option.name] != option.default]
    for commands, *sides, why in APART:
        both = [next((name for name in given if name in side.split()), None) for side in sides]
        if commands in ("", command) and (named := [name for name in both if name]) == both:
            raise DataError(f"{name_options(named, ' and ')} {why}: leave out one of them")
    for commands, name, others, why in NEEDED:
        needed = [other for other in others.split() if other in values]
        if command in commands.split() and name in given and not {*given} & {*needed}:
            raise DataError(f"{name_options([name])} needs {name_options(needed, ' or ')}, {why}")


def _refuse_outputs(values: Mapping[str, Any], options: Sequence[Parameter]) -> None:
    """Refuse an output before anything is read, if it is a file of other options, or cannot be written."""
    read = [value for name, value in values.items() if name not in OUTPUTS]
    listed = [path for value in read for path in (value if isinstance(value, list) else [value])]
    paths = [path for path in listed if isinstance(path, Path)]
    for output in filter(None, map(values.get, OUTPUTS)):
        files.refuse_output(output, paths)
    for one in options:
        path, ends = values[one.name], getattr(get_args(one.annotation)[1], "ends", None)
        if path is not None and ends is not None and path.suffix.lower().removeprefix(".") not in ends:
            known = ", ".join(f".{ending}" for ending in ends if ending)
            raise DataError(f"cannot write {path}: the name of this file ends in {known}")


@cache
def _list_parameters(work: Callable[..., Any]) -> list[tuple[Parameter, bool]]:
    """Parameters of a function or class, and whether each is a class of options."""
    parameters = signature(work, eval_str=True).parameters.values()
    return [(parameter, is_dataclass(parameter.annotation)) for parameter in parameters]


def _list_options(work: Callable[..., Any]) -> Iterator[Parameter]:
    """Options of a function or class, those of its classes of options included."""
    declared = {one.name: one for one in fields(work)} if is_dataclass(work) else {}
    for parameter, grouped in _list_parameters(work):
        if grouped:
            for option in _list_options(parameter.annotation):
                said = get_args(option.annotation)[1]
                said.rich_help_panel = said.rich_help_panel or getattr(parameter.annotation, "panel", None)
                yield option
            continue
        one: Any = declared.get(parameter.name, parameter.default)
        said, long = one.metadata["option"], name_options([parameter.name])
        if isinstance(said, ArgumentInfo):
            said.metavar = parameter.name.upper()
        elif not any(name.startswith("--") for name in said.param_decls or ()):
            said.param_decls = (long, *(said.param_decls or ()))
        default = Parameter.empty if one.default is REQUIRED else one.default
        annotation: Any = Annotated[parameter.annotation, said]
        yield Parameter(parameter.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _call(work: Callable[..., Any], values: dict[str, Any]) -> Any:
    """Call a function or class with the values of options, from which classes of options are made first."""
    arguments = dict[str, Any]()
    for one, grouped in _list_parameters(work):
        arguments[one.name] = _call(one.annotation, values) if grouped else values[one.name]
    return work(**arguments)


def files_of(options: Any) -> Iterator[tuple[str, Path]]:
    """Files that options name, each after the name of its option."""
    for one in fields(options):
        value = getattr(options, one.name)
        if is_dataclass(value):
            yield from files_of(value)
        for path in value if isinstance(value, list) else [value]:
            if isinstance(path, Path):
                yield one.name, path


def refuse_same_file(first: tuple[str, Path], second: tuple[str, Path]) -> None:
    """Refuse one file for two inputs, each with its name in the shell, also if links lead to it."""
    (name, path), (other, again) = first, second
    try:
        same = path.samefile(again)
    except OSError:
        return  # whoever reads them says what is wrong
    if same:
        raise DataError(f"{name} {path} and {other} {again} are one file")


TOPICS = {
    "files": (
        "Files are CSV, TSV (both may be compressed) or Parquet, as matchers write them. Columns are found "
        "by names and values, and printed. FILE:COLUMNS names them for a file, such as p.csv:id,cluster, "
        "shop+id joins a source, and edges.csv@0.9 has the least score of a link. Ids are text: 7 is not "
        "007."
    ),
    "edges": (
        "Many matchers write pairs of records. Linked records are one cluster, directly or through others. "
        "--edges says that rows are pairs, if columns do not. Records in no pair are known if --records "
        "lists them."
    ),
    "scans": (
        "Folders of files, tables of a DuckDB database and files of 256 MiB or more are scanned in place, "
        "within the memory that --memory-limit allows. That needs the extra scale: pip install "
        "'erbayes[scale]'."
    ),
    "design": (
        "The same labels mean different things under different designs. If records were drawn, --drawn lists "
        "the unit of each draw. One that was drawn twice is listed twice, which says how many draws there "
        "were, and counts once where its chance is known. If the list is lost, but each entity is there "
        "once, --design distinct-entities takes the number of draws. If nothing could be drawn twice, "
        "--population says of how many. If alarms tell of a heap in the predicted sizes, --looks says what "
        "looks at some of its clusters have found."
    ),
    "frame": (
        "New records of labelled entities would count as false links if the labels were made for an older "
        "prediction. A frame counts only the records that existed then."
    ),
    "groups": (
        "Every metric for each group of records, such as a country. A link counts half for each of its "
        "records, so that groups add up to all. --across counts links between different groups alone, such "
        "as those between two sources, in metrics of links."
    ),
    "your-own-numbers": (
        "Numbers that were computed from the clusters, such as the count of customers, are as wrong as the "
        "clusters. A feature describes one entity by a column of its records, and a statistic is computed "
        "from entities and their features."
    ),
    "metrics": (
        "Six metrics are estimated by default. precision, recall and f1 are the pairwise ones, b3 both of "
        "B-cubed, and erbayes metrics lists all with their meaning."
    ),
    "output": "Tables fit the terminal. A file that is written is complete or not there at all.",
    "what-to-draw": (
        "Designs with chances of their own take them from another design (--of), from classes of predicted "
        "size (--starts) or from a file (--values)."
    ),
    "what-annotators-see": (
        "Each annotator gets a page and a sheet with the same tasks, of which one is to be filled. In a "
        'sheet every row needs y (the same as the drawn record) or n in the column "same", and y in the row '
        "of the drawn record says that all of its records are found. A record that is missing gets a new "
        "row with the number of the task, its id, and y. A task that nobody can answer gets an x in "
        '"cannot_tell". The page saves a file of answers, which belongs into the folder.'
    ),
    "minima": (
        "A metric holds if its whole interval is at or above the minimum, fails if it is below, and is open "
        "otherwise."
    ),
}
"""What the options of each panel mean together."""


def explain(topic: str | None, shell: Any) -> str:
    """Return the text of a topic or the help of a command, by default the list of topics."""
    context = typer.Context(shell, info_name="erbayes", max_content_width=110)
    formatter = context.make_formatter()
    if topic is None:
        formatter.write_text("Topics: " + ", ".join(TOPICS))
        formatter.write_text("Commands: " + ", ".join(shell.list_commands(context)))
    elif topic in TOPICS:
        options = dict[tuple[str, ...], Any]()
        for option in (option for command in shell.commands.values() for option in command.params):
            if slug(option) == topic:
                options.setdefault(tuple(option.opts), option).hidden = False
        formatter.write_text(TOPICS[topic])
        write_panels(list(options.values()), context, formatter)
    elif topic in shell.commands:
        command = shell.commands[topic]
        return f"{command.get_help(typer.Context(command, info_name=topic, parent=context))}\n"
    else:
        raise DataError(f"no topic {topic!r}; there are {head(list(TOPICS), len(TOPICS))}, and the commands")
    return str(formatter.getvalue())
