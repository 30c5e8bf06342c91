"""The command line: `erbayes estimate PREDICTION LABELS --design uniform-records`."""

from __future__ import annotations

import json
import math
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import wraps
from hashlib import file_digest
from importlib.metadata import version
from importlib.util import find_spec
from inspect import Parameter, Signature, signature
from io import StringIO
from itertools import compress, product
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from .clustering import Clustering, ids
from .compare import Coverage, compare
from .demo import demo
from .design import (
    Design,
    DistinctEntities,
    KnownWeights,
    SingleUnit,
    Stratified,
    UniformClusters,
    UniformRecords,
)
from .diagnostics import alarms
from .errors import DataError, Remedy, printable, some
from .files import is_database, read_columns, refuse_output, replacing
from .frame import Dated
from .intervals import DEFAULT, WALD, Kind, Symmetric
from .metrics import METRICS, Metric, chosen, pairwise_precision, pairwise_recall
from .planning import forecast
from .report import report
from .sample import Sample
from .scan import DatabaseTable, DuckDB, Files, Scanned, scan, scan_common
from .sources import FOREIGN, PACKED, unpacks
from .taylor import taylor
from .units import Missing, Units, measure

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
)


class DesignName(Enum):
    """How the labelled units were found."""

    UNIFORM_RECORDS = "uniform-records"
    DISTINCT_ENTITIES = "distinct-entities"
    UNIFORM_CLUSTERS = "uniform-clusters"
    KNOWN_WEIGHTS = "known-weights"
    STRATIFIED = "stratified"


TAKES = {
    DesignName.UNIFORM_RECORDS: {"drawn", "population"},
    DesignName.DISTINCT_ENTITIES: {"draws", "population"},
    DesignName.UNIFORM_CLUSTERS: {"drawn", "population"},
    DesignName.KNOWN_WEIGHTS: {"weights", "drawn", "population"},
    DesignName.STRATIFIED: {"strata", "populations", "single-unit"},
}
"""Options of each design."""


class KindName(Enum):
    """Kind of interval."""

    BETA_GAMMA = "beta-gamma"
    SYMMETRIC = "symmetric"
    WALD = "wald"


KINDS: dict[KindName, Kind] = {
    KindName.BETA_GAMMA: DEFAULT,
    KindName.SYMMETRIC: Symmetric(),
    KindName.WALD: WALD,
}


MISSING = {
    Missing.SINGLETON: "each is a predicted cluster of its own",
    Missing.TOGETHER: "those of an entity are one predicted cluster",
    Missing.OMIT: "left out",
}


COLUMNS = "name them: --record, --cluster, --entity"
REMEDIES = {
    Remedy.MISSING: (
        "choose a policy to go on: --missing omit, singleton or together; with --edges, --records lists "
        "records that are in no pair"
    ),
    Remedy.COVERAGE: "choose --coverage common to compare them on the records that they share",
    Remedy.COLUMNS: COLUMNS,
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


class Format(Enum):
    """How a table is printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    HTML = "html"


def _positive(limit: str | None) -> str | None:
    number = None if limit is None else re.match(r"\s*(\d+(\.\d+)?)", limit)
    if limit is not None and (number is None or float(number[1]) == 0):
        raise typer.BadParameter(f"{limit!r} is not an amount of memory such as 4GB")
    return limit


def _file(what: str) -> Any:
    return typer.Option(exists=True, dir_okay=False, help=what)


LARGE = 2**28
"""Bytes from which a file is scanned rather than read, where DuckDB is installed."""


def _tell(text: str) -> None:
    typer.echo(printable(text), err=True)


def _command(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As `app.command`; a parameter that is a dataclass gives way to an option for each of its fields.

    Such a class is the one place that declares what commands share. Its fields may be such classes too.
    Required options come first.
    """

    def added(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            try:
                _called(command, given)
            except DataError as error:
                _tell("; ".join([f"erbayes: {error.what}", *(REMEDIES[r] for r in error.remedies)]))
                raise typer.Exit(2) from error

        options = sorted(_options(command), key=lambda option: option.default is not Parameter.empty)
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


def _files(options: Any) -> Iterator[tuple[str, Path]]:
    """Files that options name."""
    for field in fields(options):
        value = getattr(options, field.name)
        if is_dataclass(value):
            yield from _files(value)
        for path in value if isinstance(value, list) else [value]:
            if isinstance(path, Path):
                yield field.name, path


def _refuse_output(output: Path | None, options: Any) -> None:
    """Before any work is done."""
    if output is not None:
        refuse_output(output, [path for _, path in _files(options)])


def _keyed(path: Path, key: str, value: str) -> pd.Series:
    """A column of a table, indexed by the other, whose ids are unique."""
    frame = read_columns(path, {key: None, value: None})
    key, value = frame.columns
    keys = ids(frame[key], f"{path}, column {key!r}")
    if not keys.is_unique:
        twice = keys[keys.duplicated()]
        raise DataError(f"{path}: {len(twice)} ids are listed twice, such as {some(twice)}")
    return pd.Series(ids(frame[value], f"{path}, column {value!r}"), index=keys)


def _numbers(path: Path, key: str, value: str, whole: bool = False) -> pd.Series:
    """As `_keyed`, for numbers."""
    text = _keyed(path, key, value)
    numbers = pd.to_numeric(text, errors="coerce")
    bad = numbers.isna() | (whole & (numbers % 1 != 0))
    if bad.any():
        kind = "whole numbers" if whole else "numbers"
        raise DataError(f"{path}: {bad.sum()} of {len(bad)} are not {kind}, such as {some(text[bad])}")
    return numbers.astype("int64") if whole else numbers


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """How the labelled units were drawn."""

    design: Annotated[DesignName, typer.Option(help="How the labelled units were found.")]
    drawn: Annotated[Path | None, _file("One column: the unit of each draw, repeats kept.")] = None
    draws: Annotated[int | None, typer.Option(min=1, help="How many records were drawn.")] = None
    population: Annotated[int | None, typer.Option(min=1, help="How many there were to draw from.")] = None
    weights: Annotated[Path | None, _file("Unit and weight.")] = None
    strata: Annotated[Path | None, _file("Unit and stratum.")] = None
    populations: Annotated[Path | None, _file("Stratum and its number of units.")] = None
    single_unit: Annotated[
        SingleUnit | None, typer.Option(help="Variance of a stratum with a single draw.")
    ] = None

    def read(self) -> Design:
        """The design, with what its files hold."""
        given = {f.name.replace("_", "-"): getattr(self, f.name) for f in fields(self) if f.name != "design"}
        takes = [f"--{option}" for option in given if option in TAKES[self.design]]
        foreign = [
            f"--{o}" for o, value in given.items() if value is not None and o not in TAKES[self.design]
        ]
        if foreign:
            told = f"{', '.join(foreign)}; it takes {', '.join(takes)}"
            raise DataError(f"--design {self.design.value} does not take {told}")
        units = None if self.drawn is None else list(read_columns(self.drawn, {"unit": None}).iloc[:, 0])
        match self.design:
            case DesignName.UNIFORM_RECORDS:
                return UniformRecords(units, self.population)
            case DesignName.UNIFORM_CLUSTERS:
                return UniformClusters(self.population, units)
            case DesignName.DISTINCT_ENTITIES:
                if self.draws is None:
                    raise DataError(f"--design {self.design.value} needs --draws")
                return DistinctEntities(self.draws, self.population)
            case DesignName.KNOWN_WEIGHTS:
                if self.weights is None:
                    raise DataError(f"--design {self.design.value} needs --weights")
                return KnownWeights(_numbers(self.weights, "unit", "weight"), units, self.population)
            case DesignName.STRATIFIED:
                if self.strata is None or self.populations is None:
                    raise DataError(f"--design {self.design.value} needs --strata and --populations")
                numbers = _numbers(self.populations, "stratum", "number", whole=True)
                sizes = {str(h): int(n) for h, n in numbers.items()}
                return Stratified(
                    _keyed(self.strata, "unit", "stratum"), sizes, self.single_unit or SingleUnit.ERROR
                )


@dataclass(frozen=True, kw_only=True)
class Links:
    """How a prediction that is links between records is read."""

    edges: Annotated[
        bool,
        typer.Option("--edges", help="Rows of PREDICTION are links between two records, not memberships."),
    ] = False
    left: Annotated[str | None, typer.Option(help="With --edges, the column of one record.")] = None
    right: Annotated[str | None, typer.Option(help="With --edges, the column of the other record.")] = None
    score: Annotated[str | None, typer.Option(help="With --edges, the column of scores.")] = None
    threshold: Annotated[
        float | None, typer.Option(help="With --score: pairs with this score or more are links.")
    ] = None
    records: Annotated[Path | None, _file("With --edges, all records, since some may be in no pair.")] = None

    def __post_init__(self) -> None:
        given = (self.left, self.right, self.score, self.threshold, self.records)
        if not self.edges and any(value is not None for value in given):
            raise DataError("--left, --right, --score, --threshold and --records need --edges")

    def read(self, path: Path, record: str | None) -> tuple[Clustering, str]:
        """Clusters of the links, and what was read."""
        columns = {"left": self.left, "right": self.right} | ({"score": self.score} if self.score else {})
        frame = read_columns(path, columns)
        if self.score:
            scores = pd.to_numeric(frame[self.score], errors="coerce")
            bad = scores.isna() & frame[self.score].notna()
            if bad.any():
                raise DataError(
                    f"{path}: {bad.sum():,} of {len(bad):,} scores {self.score!r} are not numbers, such as "
                    f"{some(frame[self.score][bad])}: keep the rows that are links, and two columns"
                )
            frame[self.score] = scores
        every = None if self.records is None else read_columns(self.records, {"record": record}).iloc[:, 0]
        found = Clustering.from_pairs(
            frame, score=self.score, threshold=self.threshold, records=every, what=f"pairs of {path}"
        )
        links = "links" if self.score is None else f"pairs, links from {self.threshold:g} on,"
        alone = int((found.sizes == 1).sum())
        rest = (
            f"{alone:,} of the records are linked to no other"
            if self.records is not None
            else "records that are in no pair do not count, unless --records lists them"
        )
        return found, f"{len(frame):,} {links} of {_sized(found)} ({_of(frame.columns, path)}; {rest})"


def _of(columns: Iterable[Any], path: Path) -> str:
    return f"{', '.join(map(str, columns))} of {path}"


def _sized(clustering: Clustering) -> str:
    return f"{len(clustering.records):,} records in {len(clustering.clusters):,} clusters"


def _large(prediction: Path) -> bool:
    """Whether a prediction is scanned where it lies, unasked."""
    return prediction.is_dir() or (
        prediction.stat().st_size >= LARGE and unpacks(prediction) and find_spec("duckdb") is not None
    )


def _tell_frame(units: Units, name: str = "") -> None:
    if units.frame is not None:
        told = "; ".join(f"{what}: {value}" for what, value in units.frame.told().items())
        _tell(f"note: {name}{told}")


def _tell_scan(units: Scanned, path: Path, name: str = "") -> None:
    clusters = "" if units.known is None else f", in {units.known.count.sum():,.0f} clusters"
    _tell(
        f"{name}{units.rows:,} records scanned{clusters} ({_of(units.columns, path)}); "
        f"no duplicates among {units.checked}"
    )


@dataclass(frozen=True, kw_only=True)
class Frame:
    """The records that existed when the labels were made."""

    frame: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            help="The records that existed when the labels were made: their ids, or an older prediction.",
        ),
    ] = None
    frame_column: Annotated[
        str | None, typer.Option(help="Column of PREDICTION that dates its records, in place of --frame.")
    ] = None
    frame_until: Annotated[
        str | None, typer.Option(help="Last day (YYYY-MM-DD) or number of --frame-column in the frame.")
    ] = None

    def __post_init__(self) -> None:
        dated = self.frame_column is not None or self.frame_until is not None
        if self.frame is not None and dated:
            raise DataError("a frame is either --frame or --frame-column with --frame-until")
        if dated and self.frame_column is None:
            raise DataError("--frame-until needs --frame-column")

    @property
    def dates(self) -> Dated | None:
        until = self.frame_until
        if self.frame_column is None:
            return None
        return Dated(self.frame_column, int(until) if until is not None and until.isdecimal() else until)


@dataclass(frozen=True, kw_only=True)
class SharedFrame(Frame):
    """The same, for predictions that may cover different records."""

    coverage: Annotated[
        Coverage, typer.Option(help="What to do where predictions cover different records.")
    ] = Coverage.ERROR


@dataclass(frozen=True)
class Part:
    """One prediction: where it lies, its table in a database, its column of clusters."""

    path: Path
    table: str | None
    cluster: str | None


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What is read and what is asked of it; `One` and `Several` say how many predictions there are."""

    prediction: Path | list[Path]
    labels: Annotated[
        Path,
        typer.Argument(
            metavar="LABELS",
            exists=True,
            dir_okay=False,
            help="Record and entity, for every record of each labelled entity.",
        ),
    ]
    drawing: Drawing
    blocks: Annotated[
        Path | None, _file("Record and block, of every labelled record: blocks then are the units drawn.")
    ] = None
    record: Annotated[str | None, typer.Option(help="Record column, in every file that has records.")] = None
    cluster: str | list[str] | None = None
    entity: Annotated[str | None, typer.Option(help="Entity column of LABELS.")] = None
    links: Links
    missing: Annotated[
        Missing, typer.Option(help="What to do with labelled records that PREDICTION lacks.")
    ] = Missing.ERROR
    framed: Frame
    metrics: Annotated[
        str | None, typer.Option(help="Comma-separated, see erbayes metrics; all of them by default.")
    ] = None
    level: Annotated[float, typer.Option(help="Level of the intervals, between 0 and 1.")] = 0.95
    stored: str | list[str] | None = None
    memory_limit: Annotated[
        str | None, typer.Option(callback=_positive, help="For the scan of PREDICTION, such as 4GB.")
    ] = None

    def asked(self, default: Sequence[Metric] = METRICS) -> Sequence[Metric]:
        names = self.metrics
        return default if names is None else chosen(name.strip() for name in names.split(","))

    def scanned(self, parts: Iterable[Part]) -> bool:
        """Whether predictions are scanned where they lie, rather than read."""
        parts = list(parts)
        for part in parts:
            if part.table is None and is_database(part.path):
                raise DataError(f"{part.path} is a DuckDB database", Remedy.DATABASE)
        told = self.memory_limit is not None or any(part.table is not None for part in parts)
        if not self.links.edges:
            return told or any(_large(part.path) for part in parts)
        if told or any(part.path.is_dir() for part in parts):
            raise DataError("with --edges, PREDICTION is a file that is read into memory")
        return False

    def source(self, part: Part) -> Any:
        """What to scan; a file that DuckDB cannot unpack is read."""
        if part.table is not None:
            return DatabaseTable(part.path, part.table, text=True)
        if not unpacks(part.path):
            return read_columns(part.path, {"record": self.record, "cluster": part.cluster})
        return Files(part.path, text=True)

    def read(self, part: Part, what: str) -> tuple[Any, str]:
        """A prediction, with the dates that its frame needs, and what was read."""
        dates = self.framed.dates
        if self.links.edges:
            if dates is not None:
                raise DataError("with --edges, a frame is --frame FILE: pairs have no dates")
            return self.links.read(part.path, self.record)
        columns = {"record": self.record, "cluster": part.cluster}
        table = read_columns(part.path, columns if dates is None else columns | {"date": dates.column})
        found = Clustering.of(table.iloc[:, :2], what)
        return (found if dates is None else table), f"{_sized(found)} ({_of(table.columns, part.path)})"

    def labelled(self, scanned: bool) -> tuple[dict[str, Any], str]:
        """What is common to all ways of measuring a prediction, and what was read."""
        frame: Any = self.framed.dates
        if (listed := self.framed.frame) is not None:
            frame = (
                self.source(Part(listed, None, None))
                if scanned
                else read_columns(listed, {"record": self.record}, spare=1)
            )
        table = read_columns(self.labels, {"record": self.record, "entity": self.entity})
        found = Clustering.of(table, "labels")
        given = {"frame": frame, "labels": found, "blocks": None, "missing": self.missing}
        read = (
            f"{len(found.records):,} labelled records of {len(found.clusters):,} entities "
            f"({_of(table.columns, self.labels)})"
        )
        if self.blocks is None:
            return given, read
        table = read_columns(self.blocks, {"record": self.record, "block": None})
        filled = Clustering.of(table, "blocks")
        filling = f"{len(filled.records):,} records of {len(filled.clusters):,} blocks"
        return given | {"blocks": filled}, f"{read}; {filling} ({_of(table.columns, self.blocks)})"

    def scan(self, part: Part, given: dict[str, Any]) -> Scanned:
        engine = DuckDB(self.memory_limit)
        return scan(self.source(part), record=self.record, cluster=part.cluster, engine=engine, **given)


@dataclass(frozen=True, kw_only=True)
class One(Inputs):
    """One prediction."""

    prediction: Annotated[
        Path,
        typer.Argument(
            metavar="PREDICTION",
            exists=True,
            help="Record and predicted cluster, for all records; or pairs, with --edges.",
        ),
    ]
    cluster: Annotated[str | None, typer.Option(help="Cluster column of PREDICTION.")] = None
    stored: Annotated[str | None, typer.Option("--table", help="Table of a DuckDB database.")] = None

    def sample(self) -> tuple[Sample, str]:
        """The labelled sample of the prediction, which is scanned where it is large, and what was read."""
        design = self.drawing.read()
        part = Part(self.prediction, self.stored, self.cluster)
        units: Units
        if self.scanned([part]):
            given, of_labels = self.labelled(scanned=True)
            _tell(f"read {of_labels}")
            units = found = self.scan(part, given)
            _tell_scan(found, part.path)
            read = f"{found.rows:,} records ({_of(found.columns, part.path)})"
        else:
            judged, read = self.read(part, "prediction")
            given, of_labels = self.labelled(scanned=False)
            _tell(f"read {read}; {of_labels}")
            units = measure(judged, **given)
        _tell_frame(units)
        return Sample(units, design), f"{read}; {of_labels}"


@dataclass(frozen=True, kw_only=True)
class Pilot(One):
    """One prediction, for which two metrics are planned."""

    metrics: Annotated[
        str | None, typer.Option(help="Comma-separated; pairwise precision and recall by default.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class Several(Inputs):
    """Predictions to compare."""

    prediction: Annotated[
        list[Path],
        typer.Argument(
            metavar="PREDICTION", exists=True, help="Each with record and predicted cluster, for all records."
        ),
    ]
    cluster: Annotated[
        list[str] | None, typer.Option(help="Cluster column of PREDICTION; several are compared.")
    ] = None
    framed: SharedFrame
    stored: Annotated[
        list[str] | None, typer.Option("--table", help="Table of a DuckDB database; several are compared.")
    ] = None

    def parts(self) -> dict[str, Part]:
        """Predictions by name."""
        tables: list[Any] = self.stored or [None]
        columns: list[Any] = self.cluster or [None]
        given = (self.prediction, tables, columns)
        several = [len(values) > 1 for values in given]
        parts = [Part(*values) for values in product(*given)]
        names = [" ".join(compress((_stem(p.path), str(p.table), str(p.cluster)), several)) for p in parts]
        if len(set(names)) < len(names):
            raise DataError(f"predictions go by their files' names, which must differ: {some(names, 20)}")
        return dict(zip(names, parts, strict=True))

    def judged(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Predictions by name, scanned where one is large, and what is common to them."""
        parts = self.parts()
        scanned = self.scanned(parts.values())
        given, of_labels = self.labelled(scanned)
        _tell(f"read {of_labels}")
        judged: dict[str, Any] = {}
        if not scanned:
            for name, part in parts.items():
                judged[name], read = self.read(part, f"prediction {name!r}")
                _tell(f"{name}: read {read}")
        elif self.framed.coverage is Coverage.COMMON:
            judged = scan_common(
                {name: self.source(part) for name, part in parts.items()},
                record=self.record,
                cluster={name: part.cluster for name, part in parts.items()},
                engine=DuckDB(self.memory_limit),
                **given,
            )
        else:
            judged = {name: self.scan(part, given) for name, part in parts.items()}
        if scanned:
            for name, units in judged.items():
                _tell_scan(units, parts[name].path, f"{name}: ")
        return judged, given


def _rendered(table: pd.DataFrame, format: Format) -> str:
    match format:
        case Format.CSV:
            return table.to_csv(index=False)
        case Format.HTML:
            with pd.option_context("display.max_colwidth", None):
                return table.to_html(index=False) + "\n"
        case Format.JSON:
            rows = [
                {k: None if isinstance(x, float) and not math.isfinite(x) else x for k, x in row.items()}
                for row in table.to_dict("records")
            ]
            return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
        case Format.TABLE:
            return _plain(table)


def _plain(table: pd.DataFrame) -> str:
    """Aligned columns, as wide as they need to be."""
    shown = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in table.columns:
        number = pd.api.types.is_float_dtype(table[name])
        shown.add_column(str(name), justify="right" if number else "left", no_wrap=True)
    for row in table.itertuples(index=False):
        shown.add_row(*(f"{x:,.4f}" if isinstance(x, float) else str(x) for x in row))
    console = Console(file=StringIO(), width=10_000, markup=False, highlight=False, emoji=False)
    with console.capture() as text:
        console.print(shown)
    return "".join(f"{line.rstrip()}\n" for line in text.get().splitlines())


@dataclass(frozen=True, kw_only=True)
class Printing:
    """Where a table goes, and how it looks."""

    format: Annotated[Format, typer.Option(help="How to print.")] = Format.TABLE
    output: Annotated[
        Path | None, typer.Option(help="File to write instead of printing; replaced only by a whole one.")
    ] = None

    def show(self, table: pd.DataFrame) -> None:
        text = _rendered(table, self.format)
        if self.output is None:
            typer.echo(text, nl=False)
            return
        with replacing(self.output) as new:
            new.write_text(text, encoding="utf-8")

    def show_estimates(self, table: pd.DataFrame, level: float) -> None:
        """Estimates with their method; the plain table says the level once and leaves out the method."""
        if self.format is Format.TABLE:
            bounds = {bound: f"{bound} {100 * level:g} %" for bound in ("lower", "upper")}
            table = table.drop(columns="level").rename(columns=bounds)
        else:
            table.insert(list(table.columns).index("metric") + 1, "method", "taylor")
        self.show(table)


def _tell_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"erbayes {version('erbayes')}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """How good is my entity resolution? Estimates for the whole database from a labelled sample."""


@_command("estimate")
def estimate_command(
    *,
    inputs: One,
    interval: Annotated[
        KindName,
        typer.Option(help="symmetric: on the logit scale for shares, on the log scale for counts."),
    ] = KindName.BETA_GAMMA,
    printing: Printing,
) -> None:
    """Estimate metrics of PREDICTION from a labelled sample.

    LABELS holds every record of each entity in the sample. Files are CSV, TSV (both may be compressed)
    or Parquet. Of two columns the first is the record; where there are more, name them: --record,
    --cluster, --entity. What was read is told on stderr. Ids are text: integers in a
    Parquet file become text, and 7 is not 007. PREDICTION may also be a folder of such files or, with
    --table, a DuckDB database. These and large files are scanned where they lie (needs erbayes[scale]).

    \b
    How were the labelled entities found? (--design)
      uniform-records    Records were drawn uniformly and their entities labelled. An entity drawn
                         twice counts twice: --drawn. Without replacement: --population RECORDS.
      distinct-entities  The same, with replacement, but the labels list each entity once although
                         some were drawn twice: --draws RECORDS. The population is that of
                         PREDICTION, or --population RECORDS.
      uniform-clusters   Entities were drawn uniformly. Without replacement: --population ENTITIES.
      known-weights      Entities were drawn with known probabilities p: --weights FILE, of 1/p up to
                         a factor.
      stratified         Entities were drawn uniformly, without replacement, within strata of
                         entities: --strata FILE and --populations FILE.
    With --blocks, read "block" for "entity": whole blocks were drawn and labelled.

    Were the labels made for an older PREDICTION? New records of labelled entities would count as false links.
    Count inside the records that existed then: --frame FILE (their ids, or the older prediction), or
    --frame-column NAME --frame-until DAY of PREDICTION. With the column alone a warning says whether the
    labels look older.

    \b
    Examples:
      erbayes estimate clusters.csv labels.csv --design uniform-records
      erbayes estimate clusters.parquet labels.csv --design distinct-entities --draws 400 \\
          --metrics pairwise-precision,pairwise-recall --format json
      erbayes estimate clusters.csv labels.csv --design stratified --strata strata.csv \\
          --populations sizes.csv --missing omit --output found.csv --format csv
      erbayes estimate new.csv labels.csv --design uniform-records --frame old.csv
      erbayes estimate new.csv labels.csv --design uniform-records \\
          --frame-column created --frame-until 2021-06-30

    Warnings, on stderr, say what is wrong with the estimates. Exit status: 0, or 2 where the input
    cannot be used.
    """
    _refuse_output(printing.output, inputs)
    asked = inputs.asked()
    sample, _ = inputs.sample()
    if sample.units.unmatched:
        _tell(
            f"note: {sample.units.unmatched} labelled records are not in PREDICTION; --missing "
            f"{inputs.missing.value}: {MISSING[inputs.missing]}"
        )
    table = taylor(sample, asked).apply(asked).table(inputs.level, KINDS[interval]).reset_index()
    for alarm in alarms(sample, asked):
        _tell(f"warning: {alarm}")
    printing.show_estimates(table, inputs.level)


@_command("compare")
def compare_command(*, inputs: Several, printing: Printing) -> None:
    """Compare predictions by the same labelled sample.

    Prints each prediction minus each earlier one, with paired standard errors. Two predictions or more are
    files, tables or columns, whose names they go by. Files and designs are those of erbayes estimate; where
    one is scanned, all are.

    \b
    Examples:
      erbayes compare old.csv new.csv labels.csv --design uniform-records --metrics pairwise-f1
      erbayes compare both.parquet labels.csv --design uniform-records --record id \\
          --cluster old --cluster new
    """
    _refuse_output(printing.output, inputs)
    asked = inputs.asked()
    design = inputs.drawing.read()
    judged, given = inputs.judged()
    found = compare(judged, design=design, metrics=asked, coverage=inputs.framed.coverage, **given)
    for name, sample in zip(judged, found.samples, strict=True):
        _tell_frame(sample.units, f"{name}: ")
        for alarm in alarms(sample, asked):
            _tell(f"warning: {name}: {alarm}")
    if found.left_out:
        _tell(f"warning: {found.left_out} labelled records, which a prediction lacks, are left out")
    printing.show_estimates(found.differences(inputs.level), inputs.level)


def _stem(path: Path) -> str:
    """Name of a file without the endings of its format and packing."""
    packed = path.suffix.lower() in PACKED | FOREIGN
    return Path(path.stem if packed else path.name).stem


def _told(path: Path) -> str:
    """A file as the user named it, and what tells it from another of the same name."""
    if not path.is_file():
        return str(path)
    with path.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    return f"{path}, {path.stat().st_size:,} bytes, SHA-256 {digest}"


@_command("report")
def report_command(
    *,
    inputs: One,
    title: Annotated[str, typer.Option(help="Of the page.")] = "How good is this entity resolution?",
    output: Annotated[Path, typer.Option(help="The page to write; replaced only by a whole one.")] = Path(
        "report.html"
    ),
) -> None:
    """Write one HTML page about PREDICTION: estimates of all engines, pictures, warnings.

    The page needs no network and runs nothing. It names the files with their SHA-256, the versions and
    this call. Files and designs are those of erbayes estimate. Needs the extra plots:
    pip install 'erbayes[plots]'

    \b
    Example:
      erbayes report clusters.csv labels.csv --design uniform-records \\
          --metrics pairwise-precision,pairwise-recall --output report.html
    """
    _refuse_output(output, inputs)
    asked = inputs.asked()
    sample, read = inputs.sample()
    names = {"prediction": "PREDICTION", "labels": "LABELS"}
    about = {names.get(name, name): _told(path) for name, path in _files(inputs)} | {"read": read}
    if sample.units.unmatched:
        about["--missing"] = f"{inputs.missing.value}: {MISSING[inputs.missing]}"
    page = report(
        sample,
        asked,
        level=inputs.level,
        title=title,
        about=about,
        call=shlex.join(["erbayes", *sys.argv[1:]]),
    )
    with replacing(output) as new:
        new.write_text(page, encoding="utf-8")
    typer.echo(f"wrote {output}")


@_command("plan")
def plan_command(
    *,
    inputs: Pilot,
    half_width: Annotated[float, typer.Option(help="Half the wished width of the interval, such as 0.03.")],
    per_unit: Annotated[float, typer.Option(help="Cost of a unit, whatever its size.")] = 0.0,
    per_record: Annotated[float, typer.Option(help="Cost of each of its records.")] = 1.0,
    printing: Printing,
) -> None:
    """How many units to label for a wished width, from a pilot.

    LABELS is the pilot, found as --design says. Planned are records and units drawn uniformly, with
    replacement. n_low and n_high are n at the ends of an interval for the variance, of which a pilot knows
    little. Cost is the expected one; a unit that is drawn twice is labelled once.

    \b
    Example: minutes, four a person and half a minute a record
      erbayes plan clusters.csv pilot.csv --design uniform-records --half-width 0.03 \\
          --per-unit 4 --per-record 0.5
    """
    _refuse_output(printing.output, inputs)
    asked = inputs.asked(default=(pairwise_precision, pairwise_recall))
    pilot, _ = inputs.sample()
    planned: dict[str, UniformRecords | UniformClusters] = {
        DesignName.UNIFORM_RECORDS.value: UniformRecords(),
        DesignName.UNIFORM_CLUSTERS.value: UniformClusters(),
    }
    for alarm in alarms(pilot, asked):
        _tell(f"warning: {alarm}")
    plan = forecast(pilot, asked, planned, cost=lambda size: per_unit + per_record * size)
    table = plan.needed(half_width, inputs.level)
    printing.show(table.astype(object).where(table.notna(), None))


@_command("metrics")
def metrics_command(printing: Printing) -> None:
    """List every metric, with its formula and source.

    n = records shared by an entity and a predicted cluster, N_c and m = their sizes, N = all records,
    B = number of such overlaps, TP, |T|, |P| = common, true and predicted links, |C|, |Ĉ| = number of
    entities and of predicted clusters, S = number of entities predicted exactly.

    [B22] Binette et al. (2022), [M10] Menestrina et al. (2010), [R07] Rosenberg and Hirschberg (2007),
    [T07] Talburt et al. (2007).
    """
    if printing.output is not None:
        refuse_output(printing.output)
    listed = {"metric": [m.name for m in METRICS], "formula": [m.source for m in METRICS]}
    printing.show(pd.DataFrame(listed))


@_command("demo")
def demo_command(
    picture: Annotated[Path, typer.Option(help="Where to write the forest plot.")] = Path("patentsview.png"),
) -> None:
    """Estimate on real data: a table and a picture.

    PatentsView's disambiguation of inventors, judged by 401 hand-labelled ones. Needs the extra
    datasets: pip install 'erbayes[datasets]'
    """
    refuse_output(picture)
    demo(picture)
