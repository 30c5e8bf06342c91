"""The command line: `erbayes estimate PREDICTION LABELS --design uniform-records`."""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from hashlib import file_digest
from importlib.metadata import version
from importlib.util import find_spec
from io import StringIO
from itertools import compress, product
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from .clustering import ids
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
from .errors import DataError, some
from .files import read_columns, replacing
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


class Format(Enum):
    """How a table is printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    HTML = "html"


def _file(what: str) -> Any:
    return typer.Option(exists=True, dir_okay=False, help=what)


def _argument(name: str, what: str) -> Any:
    return typer.Argument(metavar=name, exists=True, dir_okay=False, help=what)


Prediction = Annotated[
    Path,
    typer.Argument(metavar="PREDICTION", exists=True, help="Record and predicted cluster, for all records."),
]
Labels = Annotated[Path, _argument("LABELS", "Record and entity, for every record of each labelled entity.")]
DesignOption = Annotated[DesignName, typer.Option("--design", help="How the labelled units were found.")]
Drawn = Annotated[Path | None, _file("One column: the unit of each draw, repeats kept.")]
Draws = Annotated[int | None, typer.Option(min=1, help="How many records were drawn.")]
Population = Annotated[int | None, typer.Option(min=1, help="How many there were to draw from.")]
Weights = Annotated[Path | None, _file("Unit and weight.")]
Strata = Annotated[Path | None, _file("Unit and stratum.")]
Populations = Annotated[Path | None, _file("Stratum and its number of units.")]
Single = Annotated[SingleUnit | None, typer.Option(help="Variance of a stratum with a single draw.")]
Blocks = Annotated[
    Path | None, _file("Record and block, of every labelled record: blocks then are the units drawn.")
]
Record = Annotated[str | None, typer.Option(help="Record column, in every file that has records.")]
Cluster = Annotated[str | None, typer.Option(help="Cluster column of PREDICTION.")]
Entity = Annotated[str | None, typer.Option(help="Entity column of LABELS.")]
MissingOption = Annotated[
    Missing, typer.Option("--missing", help="What to do with labelled records that PREDICTION lacks.")
]
MetricNames = Annotated[
    str | None, typer.Option(help="Comma-separated, see erbayes metrics; all of them by default.")
]
FrameFile = Annotated[
    Path | None,
    typer.Option(
        "--frame",
        exists=True,
        help="The records that existed when the labels were made: their ids, or an older prediction.",
    ),
]
FrameColumn = Annotated[
    str | None, typer.Option(help="Column of PREDICTION that dates its records, in place of --frame.")
]
FrameUntil = Annotated[
    str | None, typer.Option(help="Last day (YYYY-MM-DD) or number of --frame-column in the frame.")
]
Stored = Annotated[str | None, typer.Option("--table", help="Table of a DuckDB database.")]
MemoryLimit = Annotated[str | None, typer.Option(help="For the scan of PREDICTION, such as 4GB.")]
Level = Annotated[float, typer.Option(help="Level of the intervals, between 0 and 1.")]
FormatOption = Annotated[Format, typer.Option("--format", help="How to print.")]
Output = Annotated[
    Path | None, typer.Option(help="File to write instead of printing; replaced only by a whole one.")
]


LARGE = 2**28
"""Bytes from which a file is scanned rather than read, where DuckDB is installed."""


@contextmanager
def _errors_told() -> Iterator[None]:
    try:
        yield
    except DataError as error:
        typer.echo(f"erbayes: {error}", err=True)
        raise typer.Exit(2) from error


def _keyed(path: Path) -> pd.Series:
    """Second column of a table, indexed by the first, whose ids are unique."""
    frame = read_columns(path, (None, None))
    key, value = frame.columns
    keys = ids(frame[key], f"{path}, column {key!r}")
    if not keys.is_unique:
        twice = keys[keys.duplicated()]
        raise DataError(f"{path}: {len(twice)} ids are listed twice, such as {some(twice)}")
    return pd.Series(ids(frame[value], f"{path}, column {value!r}"), index=keys)


def _numbers(path: Path, whole: bool = False) -> pd.Series:
    """As `_keyed`, for numbers."""
    text = _keyed(path)
    numbers = pd.to_numeric(text, errors="coerce")
    bad = numbers.isna() | (whole & (numbers % 1 != 0))
    if bad.any():
        kind = "whole numbers" if whole else "numbers"
        raise DataError(f"{path}: {bad.sum()} of {len(bad)} are not {kind}, such as {some(text[bad])}")
    return numbers.astype("int64") if whole else numbers


def _design(
    name: DesignName,
    drawn: Path | None,
    draws: int | None,
    population: int | None,
    weights: Path | None,
    strata: Path | None,
    populations: Path | None,
    single_unit: SingleUnit | None,
) -> Design:
    given = {
        "drawn": drawn,
        "draws": draws,
        "population": population,
        "weights": weights,
        "strata": strata,
        "populations": populations,
        "single-unit": single_unit,
    }
    takes = [f"--{option}" for option in given if option in TAKES[name]]
    foreign = [f"--{o}" for o, value in given.items() if value is not None and o not in TAKES[name]]
    if foreign:
        raise DataError(
            f"--design {name.value} does not take {', '.join(foreign)}; it takes {', '.join(takes)}"
        )
    units = None if drawn is None else list(read_columns(drawn, (None,)).iloc[:, 0])
    match name:
        case DesignName.UNIFORM_RECORDS:
            return UniformRecords(units, population)
        case DesignName.UNIFORM_CLUSTERS:
            return UniformClusters(population, units)
        case DesignName.DISTINCT_ENTITIES:
            if draws is None:
                raise DataError(f"--design {name.value} needs --draws")
            return DistinctEntities(draws, population)
        case DesignName.KNOWN_WEIGHTS:
            if weights is None:
                raise DataError(f"--design {name.value} needs --weights")
            return KnownWeights(_numbers(weights), units, population)
        case DesignName.STRATIFIED:
            if strata is None or populations is None:
                raise DataError(f"--design {name.value} needs --strata and --populations")
            sizes = {str(h): int(n) for h, n in _numbers(populations, whole=True).items()}
            return Stratified(_keyed(strata), sizes, single_unit or SingleUnit.ERROR)


def _large(prediction: Path) -> bool:
    """Whether a prediction is scanned where it lies, unasked."""
    return prediction.is_dir() or (
        prediction.stat().st_size >= LARGE and unpacks(prediction) and find_spec("duckdb") is not None
    )


def _source(prediction: Path, record: str | None, cluster: str | None, stored: str | None) -> Any:
    """What to scan; a file that DuckDB cannot unpack is read."""
    if stored is not None:
        return DatabaseTable(prediction, stored, text=True)
    if not unpacks(prediction):
        return read_columns(prediction, (record, cluster))
    return Files(prediction, text=True)


def _frame(file: Path | None, column: str | None, until: str | None) -> Path | Dated | None:
    """The frame as the options give it."""
    if file is not None and (column is not None or until is not None):
        raise DataError("a frame is either --frame or --frame-column with --frame-until")
    if column is None:
        if until is not None:
            raise DataError("--frame-until needs --frame-column")
        return file
    return Dated(column, int(until) if until is not None and until.isdecimal() else until)


def _read(
    prediction: Path, record: str | None, cluster: str | None, frame: Path | Dated | None
) -> pd.DataFrame:
    """Memberships of a prediction, and the dates that its frame needs."""
    dates = [frame.column] if isinstance(frame, Dated) else []
    return read_columns(prediction, (record, cluster, *dates))


def _labelled(
    labels: Path,
    blocks: Path | None,
    record: str | None,
    entity: str | None,
    missing: Missing,
    frame: Path | Dated | None,
    scanned: bool,
) -> dict[str, Any]:
    """What is common to all ways of measuring a prediction."""
    listed: Any = frame
    if isinstance(frame, Path):
        listed = _source(frame, record, None, None) if scanned else read_columns(frame, (record,))
    return {
        "frame": listed,
        "labels": read_columns(labels, (record, entity)),
        "blocks": None if blocks is None else read_columns(blocks, (record, None)),
        "missing": missing,
    }


def _tell_frame(units: Units, name: str = "") -> None:
    if units.frame is not None:
        told = "; ".join(f"{what}: {value}" for what, value in units.frame.told().items())
        typer.echo(f"note: {name}{told}", err=True)


def _tell_scan(units: Scanned, name: str = "") -> None:
    typer.echo(f"{name}{units.rows:,} records scanned; no duplicates among {units.checked}", err=True)


def _measured(
    prediction: Path,
    labels: Path,
    blocks: Path | None,
    record: str | None,
    cluster: str | None,
    entity: str | None,
    missing: Missing,
    frame: Path | Dated | None,
    stored: str | None,
    memory_limit: str | None,
) -> Units:
    """Units of one prediction, which is scanned where it is large."""
    scanned = _large(prediction) or stored is not None or memory_limit is not None
    given = _labelled(labels, blocks, record, entity, missing, frame, scanned)
    if not scanned:
        counted = measure(_read(prediction, record, cluster, frame), **given)
        _tell_frame(counted)
        return counted
    units = scan(
        _source(prediction, record, cluster, stored),
        record=record,
        cluster=cluster,
        engine=DuckDB(memory_limit),
        **given,
    )
    _tell_scan(units)
    _tell_frame(units)
    return units


def _metrics(names: str | None) -> Sequence[Metric]:
    return METRICS if names is None else chosen(name.strip() for name in names.split(","))


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


def _show(table: pd.DataFrame, format: Format, output: Path | None) -> None:
    text = _rendered(table, format)
    if output is None:
        typer.echo(text, nl=False)
        return
    with replacing(output) as new:
        new.write_text(text, encoding="utf-8")


def _show_estimates(table: pd.DataFrame, level: float, format: Format, output: Path | None) -> None:
    """Estimates with their method; the plain table says the level once and leaves out the method."""
    if format is Format.TABLE:
        bounds = {bound: f"{bound} {100 * level:g} %" for bound in ("lower", "upper")}
        table = table.drop(columns="level").rename(columns=bounds)
    else:
        table.insert(list(table.columns).index("metric") + 1, "method", "taylor")
    _show(table, format, output)


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


@app.command("estimate")
def estimate_command(
    prediction: Prediction,
    labels: Labels,
    design: DesignOption,
    drawn: Drawn = None,
    draws: Draws = None,
    population: Population = None,
    weights: Weights = None,
    strata: Strata = None,
    populations: Populations = None,
    single_unit: Single = None,
    blocks: Blocks = None,
    record: Record = None,
    cluster: Cluster = None,
    entity: Entity = None,
    missing: MissingOption = Missing.ERROR,
    frame: FrameFile = None,
    frame_column: FrameColumn = None,
    frame_until: FrameUntil = None,
    metrics: MetricNames = None,
    level: Level = 0.95,
    stored: Stored = None,
    memory_limit: MemoryLimit = None,
    interval: Annotated[
        KindName,
        typer.Option(help="symmetric: on the logit scale for shares, on the log scale for counts."),
    ] = KindName.BETA_GAMMA,
    format: FormatOption = Format.TABLE,
    output: Output = None,
) -> None:
    """Estimate metrics of PREDICTION from a labelled sample.

    LABELS holds every record of each entity in the sample. Files are CSV, TSV (both may be compressed)
    or Parquet. Their first two columns are taken unless columns are named. Ids are text: integers in a
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
    with _errors_told():
        asked = _metrics(metrics)
        drawing = _design(design, drawn, draws, population, weights, strata, populations, single_unit)
        limit = _frame(frame, frame_column, frame_until)
        units = _measured(
            prediction, labels, blocks, record, cluster, entity, missing, limit, stored, memory_limit
        )
        if units.unmatched:
            typer.echo(
                f"note: {units.unmatched} labelled records are not in PREDICTION; --missing "
                f"{missing.value}: {MISSING[missing]}",
                err=True,
            )
        sample = Sample(units, drawing)
        table = taylor(sample, asked).apply(asked).table(level, KINDS[interval]).reset_index()
        for alarm in alarms(sample, asked):
            typer.echo(f"warning: {alarm}", err=True)
        _show_estimates(table, level, format, output)


@app.command("compare")
def compare_command(
    predictions: Annotated[
        list[Path],
        typer.Argument(
            metavar="PREDICTION", exists=True, help="Each with record and predicted cluster, for all records."
        ),
    ],
    labels: Labels,
    design: DesignOption,
    drawn: Drawn = None,
    draws: Draws = None,
    population: Population = None,
    weights: Weights = None,
    strata: Strata = None,
    populations: Populations = None,
    single_unit: Single = None,
    blocks: Blocks = None,
    record: Record = None,
    cluster: Annotated[
        list[str] | None, typer.Option(help="Cluster column of PREDICTION; several are compared.")
    ] = None,
    entity: Entity = None,
    missing: MissingOption = Missing.ERROR,
    frame: FrameFile = None,
    frame_column: FrameColumn = None,
    frame_until: FrameUntil = None,
    coverage: Annotated[
        Coverage, typer.Option(help="What to do where predictions cover different records.")
    ] = Coverage.ERROR,
    metrics: MetricNames = None,
    level: Level = 0.95,
    stored: Annotated[
        list[str] | None, typer.Option("--table", help="Table of a DuckDB database; several are compared.")
    ] = None,
    memory_limit: MemoryLimit = None,
    format: FormatOption = Format.TABLE,
    output: Output = None,
) -> None:
    """Compare predictions by the same labelled sample.

    Prints each prediction minus each earlier one, with paired standard errors. Two predictions or more are
    files, tables or columns, whose names they go by. Files and designs are those of erbayes estimate; where
    one is scanned, all are.

    \b
    Examples:
      erbayes compare old.csv new.csv labels.csv --design uniform-records --metrics pairwise-f1
      erbayes compare both.parquet labels.csv --design uniform-records --cluster old --cluster new
    """
    with _errors_told():
        asked = _metrics(metrics)
        drawing = _design(design, drawn, draws, population, weights, strata, populations, single_unit)
        tables: Sequence[str | None] = stored or [None]
        columns: Sequence[str | None] = cluster or [None]
        parts = list(product(predictions, tables, columns))
        several = [len(given) > 1 for given in (predictions, tables, columns)]
        names = [" ".join(compress((_stem(p), str(t), str(c)), several)) for p, t, c in parts]
        if len(set(names)) < len(names):
            raise DataError(f"predictions go by their files' names, which must differ: {some(names, 20)}")
        limit = _frame(frame, frame_column, frame_until)
        scanned = stored is not None or memory_limit is not None or any(map(_large, predictions))
        given = _labelled(labels, blocks, record, entity, missing, limit, scanned)
        judged: dict[str, Any]
        if scanned:
            engine = DuckDB(memory_limit)
            sources = {n: _source(p, record, c, t) for n, (p, t, c) in zip(names, parts, strict=True)}
            clusters = {n: c for n, (_, _, c) in zip(names, parts, strict=True)}
            if coverage is Coverage.COMMON:
                judged = scan_common(sources, record=record, cluster=clusters, engine=engine, **given)
            else:
                judged = {
                    n: scan(source, record=record, cluster=clusters[n], engine=engine, **given)
                    for n, source in sources.items()
                }
            for name, units in judged.items():
                _tell_scan(units, f"{name}: ")
        else:
            judged = {n: _read(p, record, c, limit) for n, (p, _, c) in zip(names, parts, strict=True)}
        found = compare(judged, design=drawing, metrics=asked, coverage=coverage, **given)
        for name, sample in zip(names, found.samples, strict=True):
            _tell_frame(sample.units, f"{name}: ")
            for alarm in alarms(sample, asked):
                typer.echo(f"warning: {name}: {alarm}", err=True)
        if found.left_out:
            typer.echo(
                f"warning: {found.left_out} labelled records, which a prediction lacks, are left out",
                err=True,
            )
        _show_estimates(found.differences(level), level, format, output)


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


@app.command("report")
def report_command(
    prediction: Prediction,
    labels: Labels,
    design: DesignOption,
    drawn: Drawn = None,
    draws: Draws = None,
    population: Population = None,
    weights: Weights = None,
    strata: Strata = None,
    populations: Populations = None,
    single_unit: Single = None,
    blocks: Blocks = None,
    record: Record = None,
    cluster: Cluster = None,
    entity: Entity = None,
    missing: MissingOption = Missing.ERROR,
    frame: FrameFile = None,
    frame_column: FrameColumn = None,
    frame_until: FrameUntil = None,
    metrics: MetricNames = None,
    level: Level = 0.95,
    stored: Stored = None,
    memory_limit: MemoryLimit = None,
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
    with _errors_told():
        asked = _metrics(metrics)
        drawing = _design(design, drawn, draws, population, weights, strata, populations, single_unit)
        limit = _frame(frame, frame_column, frame_until)
        units = _measured(
            prediction, labels, blocks, record, cluster, entity, missing, limit, stored, memory_limit
        )
        read = {
            "PREDICTION": prediction,
            "LABELS": labels,
            "drawn": drawn,
            "weights": weights,
            "strata": strata,
            "populations": populations,
            "blocks": blocks,
            "frame": frame,
        }
        about = {name: _told(path) for name, path in read.items() if path is not None}
        if units.unmatched:
            about["--missing"] = f"{missing.value}: {MISSING[missing]}"
        page = report(
            Sample(units, drawing),
            asked,
            level=level,
            title=title,
            about=about,
            call=shlex.join(["erbayes", *sys.argv[1:]]),
        )
        with replacing(output) as new:
            new.write_text(page, encoding="utf-8")
        typer.echo(f"wrote {output}")


@app.command("plan")
def plan_command(
    prediction: Prediction,
    labels: Labels,
    design: DesignOption,
    half_width: Annotated[float, typer.Option(help="Half the wished width of the interval, such as 0.03.")],
    drawn: Drawn = None,
    draws: Draws = None,
    population: Population = None,
    weights: Weights = None,
    strata: Strata = None,
    populations: Populations = None,
    single_unit: Single = None,
    blocks: Blocks = None,
    record: Record = None,
    cluster: Cluster = None,
    entity: Entity = None,
    missing: MissingOption = Missing.ERROR,
    frame: FrameFile = None,
    frame_column: FrameColumn = None,
    frame_until: FrameUntil = None,
    metrics: Annotated[
        str | None, typer.Option(help="Comma-separated; pairwise precision and recall by default.")
    ] = None,
    level: Level = 0.95,
    stored: Stored = None,
    memory_limit: MemoryLimit = None,
    per_unit: Annotated[float, typer.Option(help="Cost of a unit, whatever its size.")] = 0.0,
    per_record: Annotated[float, typer.Option(help="Cost of each of its records.")] = 1.0,
    format: FormatOption = Format.TABLE,
    output: Output = None,
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
    with _errors_told():
        asked = (pairwise_precision, pairwise_recall) if metrics is None else _metrics(metrics)
        drawing = _design(design, drawn, draws, population, weights, strata, populations, single_unit)
        limit = _frame(frame, frame_column, frame_until)
        units = _measured(
            prediction, labels, blocks, record, cluster, entity, missing, limit, stored, memory_limit
        )
        planned: dict[str, UniformRecords | UniformClusters] = {
            DesignName.UNIFORM_RECORDS.value: UniformRecords(),
            DesignName.UNIFORM_CLUSTERS.value: UniformClusters(),
        }
        pilot = Sample(units, drawing)
        for alarm in alarms(pilot, asked):
            typer.echo(f"warning: {alarm}", err=True)
        plan = forecast(pilot, asked, planned, cost=lambda size: per_unit + per_record * size)
        table = plan.needed(half_width, level)
        _show(table.astype(object).where(table.notna(), None), format, output)


@app.command("metrics")
def metrics_command(format: FormatOption = Format.TABLE, output: Output = None) -> None:
    """List every metric, with its formula and source.

    n = records shared by an entity and a predicted cluster, N_c and m = their sizes, N = all records,
    B = number of such overlaps, TP, |T|, |P| = common, true and predicted links, |C|, |Ĉ| = number of
    entities and of predicted clusters, S = number of entities predicted exactly.

    [B22] Binette et al. (2022), [M10] Menestrina et al. (2010), [R07] Rosenberg and Hirschberg (2007),
    [T07] Talburt et al. (2007).
    """
    with _errors_told():
        listed = {"metric": [m.name for m in METRICS], "formula": [m.source for m in METRICS]}
        _show(pd.DataFrame(listed), format, output)


@app.command("demo")
def demo_command(
    picture: Annotated[Path, typer.Option(help="Where to write the forest plot.")] = Path("patentsview.png"),
) -> None:
    """Estimate on real data: a table and a picture.

    PatentsView's disambiguation of inventors, judged by 401 hand-labelled ones. Needs the extra
    datasets: pip install 'erbayes[datasets]'
    """
    with _errors_told():
        demo(picture)
