"""The command line: `erbayes estimate PREDICTION LABELS --design uniform-records`."""

from __future__ import annotations

import json
import math
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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


def _argument(name: str, what: str) -> Any:
    return typer.Argument(metavar=name, exists=True, dir_okay=False, help=what)


Prediction = Annotated[
    Path,
    typer.Argument(
        metavar="PREDICTION",
        exists=True,
        help="Record and predicted cluster, for all records; or pairs, with --edges.",
    ),
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
MemoryLimit = Annotated[
    str | None, typer.Option(callback=_positive, help="For the scan of PREDICTION, such as 4GB.")
]
Edges = Annotated[
    bool, typer.Option("--edges", help="Rows of PREDICTION are links between two records, not memberships.")
]
Left = Annotated[str | None, typer.Option(help="With --edges, the column of one record.")]
Right = Annotated[str | None, typer.Option(help="With --edges, the column of the other record.")]
Score = Annotated[str | None, typer.Option(help="With --edges, the column of scores.")]
Threshold = Annotated[
    float | None, typer.Option(help="With --score: pairs with this score or more are links.")
]
Records = Annotated[Path | None, _file("With --edges, all records, since some may be in no pair.")]
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
        _tell("; ".join([f"erbayes: {error.what}", *(REMEDIES[r] for r in error.remedies)]))
        raise typer.Exit(2) from error


def _tell(text: str) -> None:
    typer.echo(printable(text), err=True)


def _refuse_output(output: Path | None, *inputs: Path | None) -> None:
    """Before any work is done."""
    if output is not None:
        refuse_output(output, [path for path in inputs if path is not None])


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
    units = None if drawn is None else list(read_columns(drawn, {"unit": None}).iloc[:, 0])
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
            return KnownWeights(_numbers(weights, "unit", "weight"), units, population)
        case DesignName.STRATIFIED:
            if strata is None or populations is None:
                raise DataError(f"--design {name.value} needs --strata and --populations")
            numbers = _numbers(populations, "stratum", "number", whole=True)
            sizes = {str(h): int(n) for h, n in numbers.items()}
            return Stratified(_keyed(strata, "unit", "stratum"), sizes, single_unit or SingleUnit.ERROR)


@dataclass(frozen=True, slots=True)
class Pairs:
    """How a prediction that is links between records is read."""

    left: str | None
    right: str | None
    score: str | None
    threshold: float | None
    records: Path | None

    @classmethod
    def of(cls, edges: bool, *given: Any) -> Pairs | None:
        if not edges and any(value is not None for value in given):
            raise DataError("--left, --right, --score, --threshold and --records need --edges")
        return cls(*given) if edges else None

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


def _scanned(predictions: Sequence[Path], stored: Any, memory_limit: str | None, pairs: Pairs | None) -> bool:
    """Whether predictions are scanned where they lie, rather than read."""
    for path in predictions:
        if stored is None and is_database(path):
            raise DataError(f"{path} is a DuckDB database", Remedy.DATABASE)
    if pairs is None:
        return stored is not None or memory_limit is not None or any(map(_large, predictions))
    if stored is not None or memory_limit is not None or any(path.is_dir() for path in predictions):
        raise DataError("with --edges, PREDICTION is a file that is read into memory")
    return False


def _source(prediction: Path, record: str | None, cluster: str | None, stored: str | None) -> Any:
    """What to scan; a file that DuckDB cannot unpack is read."""
    if stored is not None:
        return DatabaseTable(prediction, stored, text=True)
    if not unpacks(prediction):
        return read_columns(prediction, {"record": record, "cluster": cluster})
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
    prediction: Path,
    record: str | None,
    cluster: str | None,
    frame: Path | Dated | None,
    pairs: Pairs | None,
    what: str,
) -> tuple[Any, str]:
    """A prediction, with the dates that its frame needs, and what was read."""
    dates = {"date": frame.column} if isinstance(frame, Dated) else {}
    if pairs is not None and dates:
        raise DataError("with --edges, a frame is --frame FILE: pairs have no dates")
    if pairs is not None:
        return pairs.read(prediction, record)
    table = read_columns(prediction, {"record": record, "cluster": cluster, **dates})
    found = Clustering.of(table.iloc[:, :2], what)
    return (table if dates else found), f"{_sized(found)} ({_of(table.columns, prediction)})"


def _labelled(
    labels: Path,
    blocks: Path | None,
    record: str | None,
    entity: str | None,
    missing: Missing,
    frame: Path | Dated | None,
    scanned: bool,
) -> tuple[dict[str, Any], str]:
    """What is common to all ways of measuring a prediction, and what was read."""
    listed: Any = frame
    if isinstance(frame, Path):
        listed = (
            _source(frame, record, None, None)
            if scanned
            else read_columns(frame, {"record": record}, spare=1)
        )
    table = read_columns(labels, {"record": record, "entity": entity})
    found = Clustering.of(table, "labels")
    given = {"frame": listed, "labels": found, "blocks": None, "missing": missing}
    read = (
        f"{len(found.records):,} labelled records of {len(found.clusters):,} entities "
        f"({_of(table.columns, labels)})"
    )
    if blocks is None:
        return given, read
    table = read_columns(blocks, {"record": record, "block": None})
    filled = Clustering.of(table, "blocks")
    filling = f"{len(filled.records):,} records of {len(filled.clusters):,} blocks"
    return given | {"blocks": filled}, f"{read}; {filling} ({_of(table.columns, blocks)})"


def _tell_frame(units: Units, name: str = "") -> None:
    if units.frame is not None:
        told = "; ".join(f"{what}: {value}" for what, value in units.frame.told().items())
        _tell(f"note: {name}{told}")


def _counted(units: Scanned) -> str:
    """The records that a scan counts."""
    return f"{units.rows:,} records{'' if units.frame is None else ' of the frame'}"


def _tell_scan(units: Scanned, path: Path, name: str = "") -> None:
    clusters = "" if units.known is None else f", in {units.known.count.sum():,.0f} clusters"
    _tell(
        f"{name}{_counted(units)} scanned{clusters} ({_of(units.columns, path)}); "
        f"no duplicates among {units.checked}"
    )


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
    pairs: Pairs | None,
) -> tuple[Units, str]:
    """Units of one prediction, which is scanned where it is large, and what was read."""
    scanned = _scanned([prediction], stored, memory_limit, pairs)
    if not scanned:
        judged, read = _read(prediction, record, cluster, frame, pairs, "prediction")
        given, of_labels = _labelled(labels, blocks, record, entity, missing, frame, scanned)
        _tell(f"read {read}; {of_labels}")
        counted = measure(judged, **given)
        _tell_frame(counted)
        return counted, f"{read}; {of_labels}"
    given, of_labels = _labelled(labels, blocks, record, entity, missing, frame, scanned)
    _tell(f"read {of_labels}")
    units = scan(
        _source(prediction, record, cluster, stored),
        record=record,
        cluster=cluster,
        engine=DuckDB(memory_limit),
        **given,
    )
    _tell_scan(units, prediction)
    _tell_frame(units)
    return units, f"{_counted(units)} ({_of(units.columns, prediction)}); {of_labels}"


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
    edges: Edges = False,
    left: Left = None,
    right: Right = None,
    score: Score = None,
    threshold: Threshold = None,
    records: Records = None,
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
    with _errors_told():
        _refuse_output(
            output, prediction, labels, drawn, weights, strata, populations, blocks, records, frame
        )
        asked = _metrics(metrics)
        drawing = _design(design, drawn, draws, population, weights, strata, populations, single_unit)
        limit = _frame(frame, frame_column, frame_until)
        pairs = Pairs.of(edges, left, right, score, threshold, records)
        units, _ = _measured(
            prediction, labels, blocks, record, cluster, entity, missing, limit, stored, memory_limit, pairs
        )
        if units.unmatched:
            _tell(
                f"note: {units.unmatched} labelled records are not in PREDICTION; --missing "
                f"{missing.value}: {MISSING[missing]}"
            )
        sample = Sample(units, drawing)
        table = taylor(sample, asked).apply(asked).table(level, KINDS[interval]).reset_index()
        for alarm in alarms(sample, asked):
            _tell(f"warning: {alarm}")
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
    edges: Edges = False,
    left: Left = None,
    right: Right = None,
    score: Score = None,
    threshold: Threshold = None,
    records: Records = None,
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
      erbayes compare both.parquet labels.csv --design uniform-records --record id \\
          --cluster old --cluster new
    """
    with _errors_told():
        _refuse_output(
            output, *predictions, labels, drawn, weights, strata, populations, blocks, records, frame
        )
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
        pairs = Pairs.of(edges, left, right, score, threshold, records)
        scanned = _scanned(predictions, stored, memory_limit, pairs)
        given, of_labels = _labelled(labels, blocks, record, entity, missing, limit, scanned)
        _tell(f"read {of_labels}")
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
            for (name, units), (path, *_) in zip(judged.items(), parts, strict=True):
                _tell_scan(units, path, f"{name}: ")
        else:
            judged = {}
            for name, (path, _, column) in zip(names, parts, strict=True):
                judged[name], read = _read(path, record, column, limit, pairs, f"prediction {name!r}")
                _tell(f"{name}: read {read}")
        found = compare(judged, design=drawing, metrics=asked, coverage=coverage, **given)
        for name, sample in zip(names, found.samples, strict=True):
            _tell_frame(sample.units, f"{name}: ")
            for alarm in alarms(sample, asked):
                _tell(f"warning: {name}: {alarm}")
        if found.left_out:
            _tell(f"warning: {found.left_out} labelled records, which a prediction lacks, are left out")
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
    edges: Edges = False,
    left: Left = None,
    right: Right = None,
    score: Score = None,
    threshold: Threshold = None,
    records: Records = None,
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
        _refuse_output(
            output, prediction, labels, drawn, weights, strata, populations, blocks, records, frame
        )
        asked = _metrics(metrics)
        drawing = _design(design, drawn, draws, population, weights, strata, populations, single_unit)
        limit = _frame(frame, frame_column, frame_until)
        pairs = Pairs.of(edges, left, right, score, threshold, records)
        units, read = _measured(
            prediction, labels, blocks, record, cluster, entity, missing, limit, stored, memory_limit, pairs
        )
        files = {
            "PREDICTION": prediction,
            "LABELS": labels,
            "drawn": drawn,
            "weights": weights,
            "strata": strata,
            "populations": populations,
            "blocks": blocks,
            "frame": frame,
            "records": records,
        }
        about = {name: _told(path) for name, path in files.items() if path is not None} | {"read": read}
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
    edges: Edges = False,
    left: Left = None,
    right: Right = None,
    score: Score = None,
    threshold: Threshold = None,
    records: Records = None,
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
        _refuse_output(
            output, prediction, labels, drawn, weights, strata, populations, blocks, records, frame
        )
        asked = (pairwise_precision, pairwise_recall) if metrics is None else _metrics(metrics)
        drawing = _design(design, drawn, draws, population, weights, strata, populations, single_unit)
        limit = _frame(frame, frame_column, frame_until)
        pairs = Pairs.of(edges, left, right, score, threshold, records)
        units, _ = _measured(
            prediction, labels, blocks, record, cluster, entity, missing, limit, stored, memory_limit, pairs
        )
        planned: dict[str, UniformRecords | UniformClusters] = {
            DesignName.UNIFORM_RECORDS.value: UniformRecords(),
            DesignName.UNIFORM_CLUSTERS.value: UniformClusters(),
        }
        pilot = Sample(units, drawing)
        for alarm in alarms(pilot, asked):
            _tell(f"warning: {alarm}")
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
        _refuse_output(output)
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
        _refuse_output(picture)
        demo(picture)
