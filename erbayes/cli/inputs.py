"""Options and files that commands read: predictions, labels, and how the labels were drawn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from enum import Enum
from functools import cached_property
from importlib.util import find_spec
from itertools import compress, product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from ..clustering import Clustering, ids
from ..compare import Differing
from ..design import (
    Design,
    DistinctEntities,
    KeptWeights,
    KnownWeights,
    SingleUnit,
    Stratified,
    UniformClusters,
    UniformRecords,
)
from ..errors import DataError, Remedy, head
from ..files import is_database, read_columns
from ..frame import Dated
from ..intervals import DEFAULT, WALD, Anytime, Kind, Symmetric
from ..labelling import Fault, Labels, read_labels
from ..labelling.returned import OWN
from ..large import DatabaseTable, DuckDB, Files, Scanned, drawing, scan, scan_common
from ..large.files import FOREIGN, PACKED, unpacks
from ..measuring import Missing, measure
from ..metrics import ALL, USUAL, Metric, chosen, pairwise_precision, pairwise_recall
from ..sample import Sample
from ..sampling import Drawn
from ..sampling.plans import FREE
from ..units import Units
from .options import file_option, message, within


class KindName(Enum):
    """Kind of interval."""

    BETA_GAMMA = "beta-gamma"
    SYMMETRIC = "symmetric"
    WALD = "wald"
    ANYTIME = "anytime"


KINDS: dict[KindName, Kind] = {
    KindName.BETA_GAMMA: DEFAULT,
    KindName.SYMMETRIC: Symmetric(),
    KindName.WALD: WALD,
    KindName.ANYTIME: Anytime(),
}


class DesignName(Enum):
    """Options of the design by which the labelled units were drawn."""

    UNIFORM_RECORDS = "uniform-records"
    DISTINCT_ENTITIES = "distinct-entities"
    UNIFORM_CLUSTERS = "uniform-clusters"
    KNOWN_WEIGHTS = "known-weights"
    STRATIFIED = "stratified"


TAKES = {
    DesignName.UNIFORM_RECORDS: ["drawn", "population"],
    DesignName.DISTINCT_ENTITIES: ["draws", "population"],
    DesignName.UNIFORM_CLUSTERS: ["drawn", "population"],
    DesignName.KNOWN_WEIGHTS: ["drawn", "population", "weights"],
    DesignName.STRATIFIED: ["strata", "populations", "single-unit"],
}
"""Options of each design."""
NAMED = 3
"""Added records that the prediction lacks, named at most."""
LARGE = 2**28
"""Bytes from which a file is scanned rather than read, if DuckDB is installed."""


def _positive(limit: str | None) -> str | None:
    """Refuse a limit that is not an amount of memory above 0."""
    number = None if limit is None else re.match(r"\s*(\d+(\.\d+)?)", limit)
    if limit is not None and (number is None or float(number[1]) == 0):
        raise typer.BadParameter(f"{limit!r} is not an amount of memory such as 4GB")
    return limit


def keyed(path: Path, key: str, value: str) -> pd.Series:
    """Read a file of two columns as a Series of the second, indexed by the unique ids of the first."""
    frame = read_columns(path, {key: None, value: None})
    key, value = frame.columns
    keys = ids(frame[key], f"{path}, column {key!r}")
    if not keys.is_unique:
        twice = keys[keys.duplicated()]
        raise DataError(f"{path}: {len(twice)} ids are listed twice, such as {head(twice)}")
    return pd.Series(ids(frame[value], f"{path}, column {value!r}"), index=keys)


def numbers(path: Path, key: str, value: str, whole: bool = False) -> pd.Series:
    """Read a file as `keyed` does, with numbers in the second column."""
    text = keyed(path, key, value)
    parsed = pd.to_numeric(text, errors="coerce")
    wrong = parsed.isna() | (whole & (parsed % 1 != 0))
    if wrong.any():
        kind = "whole numbers" if whole else "numbers"
        raise DataError(f"{path}: {wrong.sum()} of {len(wrong)} are not {kind}, such as {head(text[wrong])}")
    return parsed.astype("int64") if whole else parsed


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """Options of the way in which the labelled units were drawn."""

    design: Annotated[
        DesignName | None,
        typer.Option(help="How the labelled units were drawn: see erbayes estimate. Not for a folder."),
    ] = None
    drawn: Annotated[Path | None, file_option("File of one column: the unit of each draw, with repeats.")] = (
        None
    )
    draws: Annotated[int | None, typer.Option(min=1, help="Number of records that were drawn.")] = None
    population: Annotated[
        int | None, typer.Option(min=1, help="Number of records or units from which draws were made.")
    ] = None
    weights: Annotated[Path | None, file_option("File of units and their weights.")] = None
    strata: Annotated[Path | None, file_option("File of units and their strata.")] = None
    populations: Annotated[Path | None, file_option("File of strata and their numbers of units.")] = None
    single_unit: Annotated[
        SingleUnit | None, typer.Option(help="Variance of a stratum with a single draw.")
    ] = None

    @property
    def given(self) -> list[str]:
        """Names of the options that have a value, without --design."""
        names = [f.name for f in fields(self) if f.name != "design"]
        return [name.replace("_", "-") for name in names if getattr(self, name) is not None]

    @property
    def in_words(self) -> str:
        """Return the options that have a value, with their values; "" if there is none."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return " ".join(
            f"--{name.replace('_', '-')} {value.value if isinstance(value, Enum) else value}"
            for name, value in values.items()
            if value is not None
        )

    def read(self) -> Design:
        """Make the design, and read the files that it needs."""
        if self.design is None:
            raise DataError(
                f"--design is needed, one of {', '.join(name.value for name in DesignName)}: how were the "
                "labelled units drawn? Only a folder of erbayes draw needs no design"
            )
        options = TAKES[self.design]
        if foreign := [f"--{option}" for option in self.given if option not in options]:
            allowed = ", ".join(f"--{option}" for option in options)
            raise DataError(
                f"--design {self.design.value} does not take {', '.join(foreign)}; it takes {allowed}"
            )
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
                return KnownWeights(numbers(self.weights, "unit", "weight"), units, self.population)
            case DesignName.STRATIFIED:
                if self.strata is None or self.populations is None:
                    raise DataError(f"--design {self.design.value} needs --strata and --populations")
                of_strata = numbers(self.populations, "stratum", "number", whole=True)
                sizes = {str(h): int(n) for h, n in of_strata.items()}
                return Stratified(
                    keyed(self.strata, "unit", "stratum"), sizes, self.single_unit or SingleUnit.ERROR
                )


@dataclass(frozen=True, kw_only=True)
class Links:
    """Options of a prediction that is links between records."""

    edges: Annotated[
        bool,
        typer.Option("--edges", help="Each row of PREDICTION is a link of two records, not a membership."),
    ] = False
    left: Annotated[str | None, typer.Option(help="With --edges, the column of one record.")] = None
    right: Annotated[str | None, typer.Option(help="With --edges, the column of the other record.")] = None
    score: Annotated[str | None, typer.Option(help="With --edges, the column of scores.")] = None
    threshold: Annotated[
        float | None, typer.Option(help="With --score: pairs with this score or more are links.")
    ] = None
    records: Annotated[
        Path | None,
        file_option("With --edges, all records, some of which may be in no pair: ids, or a prediction."),
    ] = None

    def __post_init__(self) -> None:
        values = (self.left, self.right, self.score, self.threshold, self.records)
        if not self.edges and any(value is not None for value in values):
            raise DataError("--left, --right, --score, --threshold and --records need --edges")

    def read(self, path: Path, record: str | None) -> tuple[Clustering, str]:
        """Read a file of links as clusters, with a sentence about what was read."""
        columns = {"left": self.left, "right": self.right} | ({"score": self.score} if self.score else {})
        frame = read_columns(path, columns)
        if self.score:
            scores = pd.to_numeric(frame[self.score], errors="coerce")
            wrong = scores.isna() & frame[self.score].notna()
            if wrong.any():
                raise DataError(
                    f"{path}: {wrong.sum():,} of {len(wrong):,} scores {self.score!r} are not numbers, such "
                    f"as {head(frame[self.score][wrong])}: keep the rows that are links, and two columns"
                )
            frame[self.score] = scores
        left, right = (frame[column] for column in frame.columns[:2])
        if left.is_unique and not left.isin(right).any():
            message(
                f"warning: {path} has each {left.name} once, and none of them as {right.name}: if these are "
                "records and their clusters, leave out --edges"
            )
        records = (
            None
            if self.records is None
            else read_columns(self.records, {"record": record}, spare=1).iloc[:, 0]
        )
        clustering = Clustering.from_pairs(
            frame, score=self.score, threshold=self.threshold, records=records, what=f"pairs of {path}"
        )
        links = "links" if self.score is None else f"pairs, links from {self.threshold:g} on,"
        rest = "records that are in no pair do not count, unless --records lists them"
        if records is not None:
            rest = f"{int((clustering.sizes == 1).sum()):,} of the records are linked to no other"
        sizes = CLUSTERS.format(len(clustering.records), len(clustering.clusters))
        return clustering, f"{len(frame):,} {links} of {sizes} ({in_words(frame.columns, path)}; {rest})"


def in_words(columns: Iterable[Any], path: Path) -> str:
    """Text that names columns and their file."""
    return f"{', '.join(map(str, columns))} of {path}"


CLUSTERS = "{:,} records in {:,} clusters"
LABELLED = "{:,} labelled records of {:,} entities"


def clustering_of(table: pd.DataFrame, path: Path, what: str, sizes: str) -> tuple[Clustering, str]:
    """Return the first two columns of a table as a clustering, with a sentence about what was read."""
    clustering = Clustering.of(table.iloc[:, :2], what)
    read = sizes.format(len(clustering.records), len(clustering.clusters))
    return clustering, f"{read} ({in_words(table.columns, path)})"


def _large(prediction: Path) -> bool:
    """True if a prediction is scanned where it lies, without an option that asks for it."""
    return prediction.is_dir() or (
        prediction.stat().st_size >= LARGE and unpacks(prediction) and find_spec("duckdb") is not None
    )


def note_unresolved(labels: Labels | None) -> None:
    """Print how many draws of a folder have no complete answer, if there are any."""
    if labels is None or not len(labels.unresolved):
        return
    lost = labels.lost.map(lambda state: state.value).value_counts()
    kinds = ", ".join(f"{n:,} {state}" for state, n in lost.items())
    draws = len(labels.folder.drawn.table)
    message(f"note: {lost.sum():,} of {draws:,} draws have no complete answer: {kinds}")


def _unlike(units: Units, drawn: Drawn) -> str | None:
    """Text that tells a prediction from the one that was drawn from, None if their sizes are alike."""
    known = units.known
    if known is None or all(
        np.array_equal(*pair) for pair in ((known.size, drawn.known.size), (known.count, drawn.known.count))
    ):
        return None
    one, other = (
        CLUSTERS.format(int(sizes.size @ sizes.count), int(sizes.count.sum()))
        for sizes in (known, drawn.known)
    )
    return f"it has {one}, not {other}" if one != other else f"its clusters of {one} have other sizes"


def note_frame(units: Units, name: str = "") -> None:
    """Print what the frame leaves of a prediction, if there is a frame."""
    if units.frame is not None:
        facts = "; ".join(f"{what}: {value}" for what, value in units.frame.in_words().items())
        message(f"note: {name}{facts}")


def _counted(units: Scanned) -> str:
    """Text with the number of records that a scan counts."""
    return f"{units.rows:,} records{'' if units.frame is None else ' of the frame'}"


def _note_scan(units: Scanned, path: Path, name: str = "") -> None:
    """Print what was scanned."""
    clusters = "" if units.known is None else f", in {units.known.count.sum():,.0f} clusters"
    message(
        f"{name}{_counted(units)} scanned{clusters} ({in_words(units.columns, path)}); "
        f"no duplicates among {units.checked}"
    )


@dataclass(frozen=True, kw_only=True)
class Frame:
    """Options of the frame: the records that existed when the labels were made."""

    frame: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            help="The records that existed when the labels were made: their ids, or an older prediction.",
        ),
    ] = None
    frame_column: Annotated[
        str | None, typer.Option(help="Column of PREDICTION with dates of its records, instead of --frame.")
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
        if self.frame is not None and is_database(self.frame):
            raise DataError(f"--frame {self.frame} is a DuckDB database: a frame is a file or a folder")

    @property
    def dates(self) -> Dated | None:
        """Return the frame by dates, if the options name a column of dates."""
        until = self.frame_until
        if self.frame_column is None:
            return None
        return Dated(self.frame_column, int(until) if until is not None and until.isdecimal() else until)


@dataclass(frozen=True, kw_only=True)
class SharedFrame(Frame):
    """Options of the frame of several predictions, which may cover different records."""

    differing: Annotated[
        Differing, typer.Option(help="What to do if predictions cover different records.")
    ] = Differing.ERROR


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Options of the metrics and their kind of interval."""

    metrics: Annotated[
        str | None,
        typer.Option(
            help=f"Names of metrics, with commas between them: see erbayes metrics. By default: "
            f"{', '.join(m.name for m in USUAL)}."
        ),
    ] = None
    every: Annotated[bool, typer.Option("--all", help="Estimate every metric, instead of --metrics.")] = False
    interval: Annotated[
        KindName,
        typer.Option(
            help="Kind of interval. symmetric: on the logit scale for shares, on the log scale for counts. "
            "anytime: valid if labels are looked at again and again."
        ),
    ] = KindName.BETA_GAMMA

    @property
    def kind(self) -> Kind:
        """Return the kind of interval that --interval names."""
        return KINDS[self.interval]

    def chosen_metrics(self) -> Sequence[Metric]:
        """Return the metrics that the options name."""
        if self.metrics is None:
            return ALL if self.every else USUAL
        if self.every:
            raise DataError("--all names every metric and --metrics names some: leave out one of the two")
        return chosen(name.strip() for name in self.metrics.split(","))


@dataclass(frozen=True, kw_only=True)
class Minima:
    """Options of the least values that metrics must reach."""

    min_precision: Annotated[float | None, typer.Option(help="Least pairwise precision, such as 0.95.")] = (
        None
    )
    min_recall: Annotated[float | None, typer.Option(help="Least pairwise recall, such as 0.8.")] = None
    minimum: Annotated[
        list[str] | None,
        typer.Option("--min", metavar="METRIC=VALUE", help="Least value of any metric. Several are allowed."),
    ] = None

    def read(self) -> dict[Metric | str, float]:
        """Return the least value of each metric."""
        pairwise = {pairwise_precision.name: self.min_precision, pairwise_recall.name: self.min_recall}
        named = [(name, least) for name, least in pairwise.items() if least is not None]
        for text in self.minimum or []:
            name, _, value = (part.strip() for part in text.partition("="))
            try:
                named.append((name, float(value)))
            except ValueError as error:
                raise DataError(f"--min {text}: write METRIC=VALUE, such as b3-recall=0.9") from error
        if not named:
            raise DataError("nothing to check: give --min-precision, --min-recall or --min METRIC=VALUE")
        names = [name for name, _ in named]
        if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            raise DataError(f"{len(twice)} metrics have two minima, such as {head(twice)}: leave out one")
        return dict(named)


@dataclass(frozen=True)
class Part:
    """A prediction among several: its path, its table in a database, its column of clusters."""

    path: Path
    table: str | None
    cluster: str | None


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Options of the way in which predictions are read."""

    record: Annotated[str | None, typer.Option(help="Record column, in each file that has records.")] = None
    links: Links
    memory_limit: Annotated[
        str | None,
        typer.Option(callback=_positive, help="Scan PREDICTION, within this memory, such as 4GB."),
    ] = None

    def scanned(self, parts: Iterable[Part], frame: Path | None = None) -> bool:
        """True if predictions are scanned where they lie, False if they are read into memory."""
        parts = list(parts)
        for part in parts:
            if part.table is None and is_database(part.path):
                raise DataError(f"{part.path} is a DuckDB database", Remedy.DATABASE)
        by_option = self.memory_limit is not None or any(part.table is not None for part in parts)
        files = [*(part.path for part in parts), *([] if frame is None else [frame])]
        if not self.links.edges:
            return by_option or any(map(_large, files))
        if by_option or any(file.is_dir() for file in files):
            raise DataError("with --edges, PREDICTION and --frame are files that are read into memory")
        return False

    def source(self, part: Part) -> Any:
        """Return the source to scan. A file that DuckDB cannot unpack is read into memory."""
        if part.table is not None:
            return DatabaseTable(part.path, part.table, text=True)
        return self.source_of(part.path, {"record": self.record, "cluster": part.cluster})

    def source_of(self, path: Path, columns: dict[str, str | None], spare: int = 0) -> Any:
        """Return the source to scan in a file, of which `columns` are read if it cannot be unpacked."""
        return Files(path, text=True) if unpacks(path) else read_columns(path, columns, spare)

    def read(self, part: Part, what: str, dates: Dated | None = None) -> tuple[Any, str]:
        """Read a prediction, with the dates that its frame needs and a sentence about what was read."""
        if self.links.edges:
            if dates is not None:
                raise DataError("with --edges, a frame is --frame FILE: pairs have no dates")
            return self.links.read(part.path, self.record)
        columns = {"record": self.record, "cluster": part.cluster}
        table = read_columns(part.path, columns if dates is None else columns | {"date": dates.column})
        clustering, read = clustering_of(table, part.path, what, CLUSTERS)
        return (clustering if dates is None else table), read

    @contextmanager
    def opened(self, part: Part, what: str = "prediction") -> Iterator[tuple[Any, str]]:
        """Read a prediction, or open it where it lies, with a sentence about it."""
        if not self.scanned([part]):
            yield self.read(part, what)
            return
        database = DuckDB(self.memory_limit)
        columns = {"record": self.record, "cluster": part.cluster}
        with drawing(self.source(part), **columns, database=database) as source:
            known = source.known
            sizes = CLUSTERS.format(int(known.size @ known.count), int(known.count.sum()))
            yield source, f"{sizes} ({part.path}, where it lies)"

    def scan(self, part: Part, shared: dict[str, Any]) -> Scanned:
        """Scan a prediction."""
        database = DuckDB(self.memory_limit)
        return scan(self.source(part), record=self.record, cluster=part.cluster, database=database, **shared)


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """Options of one prediction."""

    prediction: Annotated[
        Path,
        typer.Argument(
            metavar="PREDICTION",
            exists=True,
            help="Record and predicted cluster, for all records; or pairs, with --edges.",
        ),
    ]
    reading: Reading
    cluster: Annotated[str | None, typer.Option(help="Cluster column of PREDICTION.")] = None
    stored: Annotated[str | None, typer.Option("--table", help="Table of a DuckDB database.")] = None

    @property
    def part(self) -> Part:
        """Return the prediction as part of the input."""
        return Part(self.prediction, self.stored, self.cluster)


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """Options that all commands on predictions share. `One` and `Several` add the predictions."""

    prediction: Path | list[Path]
    labels: Annotated[
        Path,
        typer.Argument(
            metavar="LABELS",
            exists=True,
            help="Record and entity, for every record of each labelled entity; or a folder of erbayes draw.",
        ),
    ]
    drawing: Drawing
    drawn_from: Annotated[
        Path | None,
        typer.Option(exists=True, help="With a folder: the prediction drawn from, if not PREDICTION."),
    ] = None
    blocks: Annotated[
        Path | None,
        file_option("Record and block, of every labelled record: blocks then are the units drawn."),
    ] = None
    reading: Reading
    cluster: str | list[str] | None = None
    entity: Annotated[str | None, typer.Option(help="Entity column of LABELS.")] = None
    missing: Annotated[
        Missing, typer.Option(help="What to do with labelled records that PREDICTION lacks.")
    ] = Missing.ERROR
    framed: Frame
    level: Annotated[float, typer.Option(help="Level of the intervals, between 0 and 1.")] = 0.95
    stored: str | list[str] | None = None

    @cached_property
    def returned(self) -> Labels | None:
        """Labels of a folder, None if LABELS is a file."""
        if not self.labels.is_dir():
            if self.drawn_from is not None:
                raise DataError("--drawn-from needs a folder of erbayes draw as LABELS")
            return None
        named = {"design": self.drawing.design, "blocks": self.blocks, "entity": self.entity}
        options = [name for name, value in named.items() if value is not None] + self.drawing.given
        if options:
            raise DataError(
                f"the folder {self.labels} says how its records were drawn: leave out "
                f"{', '.join(f'--{option}' for option in options)}"
            )
        return read_labels(self.labels)

    @property
    def of_clusters(self) -> bool:
        """True if LABELS is a folder with predicted clusters that were drawn."""
        return self.returned is not None and self.returned.of_clusters

    def design(self) -> Design:
        """Return the design, by options or of a folder."""
        return self.drawing.read() if self.returned is None else self.returned.design()

    @cached_property
    def origin(self) -> Part | None:
        """Return the prediction that was drawn from, if --drawn-from names it."""
        if self.returned is None or self.drawn_from is None:
            return None
        return Part(self.drawn_from, None, self.cluster if isinstance(self.cluster, str) else None)

    def notice_another(self, name: str, units: Units, prediction: Clustering | Part) -> None:
        """Refuse a prediction that is not the one drawn from, or say so if chances are the same."""
        if self.returned is None or self.origin is not None:
            return
        drawn = self.returned.folder.drawn
        if isinstance(drawn.plan, FREE):
            unlike = _unlike(units, drawn)
            if unlike is None and isinstance(prediction, Clustering) and not drawn.is_from(prediction):
                unlike = "its clusters hold other records"
            if unlike is not None:
                message(f"note: {name} is not the prediction that was drawn from: {unlike}")
        elif units.frame is None:
            if isinstance(prediction, Clustering):
                drawn.refuse_another(prediction)
                return
            with self.reading.opened(prediction) as (source, _):
                drawn.refuse_another(source)

    def name_added(self, prediction: Clustering) -> None:
        """Print where annotators have added records that a prediction lacks."""
        if self.returned is None or self.missing is not Missing.ERROR:
            return
        if self.returned.labels.index.isin(prediction.records).all():
            return
        problems = read_labels(self.returned.folder, prediction).problems
        unknown = problems[problems["fault"] == Fault.UNKNOWN_RECORD]
        for where, task, record in unknown[["where", "task", "record"]].head(NAMED).itertuples(index=False):
            message(f"note: {where}, task {task}: {Fault.UNKNOWN_RECORD.value}: {record!r}")

    def fitted(self, design: Design, shared: dict[str, Any]) -> Design:
        """Return the design with the chances of the prediction that was drawn from, if `origin` is there."""
        if self.returned is None or (part := self.origin) is None:
            return design
        policy = Missing.OMIT if self.missing is Missing.OMIT else Missing.ERROR
        shared = shared | {"frame": None, "missing": policy}
        units: Units
        with self.reading.opened(part, "prediction that was drawn from") as (prediction, read):
            message(f"read {read}, which was drawn from")
            self.returned.folder.drawn.refuse_another(prediction)
            if isinstance(prediction, Clustering):
                units = measure(prediction, **shared)
            else:
                units = self.reading.scan(part, shared)
        return KeptWeights(design, units)

    def labelled(self, scanned: bool) -> tuple[dict[str, Any], str]:
        """Read the arguments that all predictions share, with a sentence about what was read."""
        frame: Any = self.framed.dates
        if (path := self.framed.frame) is not None and scanned:
            frame = self.reading.source(Part(path, None, None))
        elif path is not None:
            frame = read_columns(path, {"record": self.reading.record}, spare=1)
        if self.returned is not None:
            labels = Clustering.of(self.returned.labels, "labels")
            read = f"{LABELLED.format(len(labels.records), len(labels.clusters))} ({self.labels})"
        else:
            table = read_columns(self.labels, {"record": self.reading.record, "entity": self.entity})
            labels, read = clustering_of(table, self.labels, "labels", LABELLED)
        shared = {"frame": frame, "labels": labels, "blocks": None, "missing": self.missing}
        if self.blocks is not None:
            table = read_columns(self.blocks, {"record": self.reading.record, "block": None})
            shared["blocks"], filled = clustering_of(
                table, self.blocks, "blocks", "{:,} records of {:,} blocks"
            )
            read = f"{read}; {filled}"
        return shared, read


@dataclass(frozen=True, kw_only=True)
class One(Predicted, Inputs):
    """Options of a command on one prediction."""

    def sample(self, **grouped: Any) -> tuple[Sample, str]:
        """Read or scan the prediction and make its sample, with a sentence about what was read.

        `grouped` are further arguments of a scan.
        """
        design, part = self.design(), self.part
        if self.returned is not None and self.of_clusters:
            return self._of_clusters(self.returned, design)
        units: Units
        prediction: Any = None
        if self.reading.scanned([part], self.framed.frame):
            shared, labels_read = self.labelled(scanned=True)
            message(f"read {labels_read}")
            units = scanned = self.reading.scan(part, shared | grouped)
            _note_scan(scanned, part.path)
            read = f"{_counted(scanned)} ({in_words(scanned.columns, part.path)}); {labels_read}"
        else:
            prediction, shared, read = self.memory
            units = measure(prediction, **shared)
        note_frame(units)
        note_unresolved(self.returned)
        self.notice_another(str(part.path), units, prediction if isinstance(prediction, Clustering) else part)
        design = self.fitted(design, shared)
        with within(self.drawing.in_words):
            return Sample(units, design), read

    def _of_clusters(self, returned: Labels, design: Design) -> tuple[Sample, str]:
        """Make the sample of drawn predicted clusters, with a sentence about what was read."""
        framed = self.framed.frame is not None or self.framed.dates is not None
        if self.drawn_from is not None or framed:
            option = "--frame" if framed else "--drawn-from"
            raise DataError(f"{self.labels} takes no {option}: {OWN}")
        labels = returned.labels
        with self.reading.opened(self.part) as (prediction, read):
            units = returned.units(prediction, missing=self.missing)
        read = f"{read}; {LABELLED.format(len(labels), labels.nunique())} ({self.labels})"
        message(f"read {read}")
        note_unresolved(returned)
        return Sample(units, design), read

    @cached_property
    def memory(self) -> tuple[Any, dict[str, Any], str]:
        """Return a prediction read into memory, what goes with it, and a sentence about what was read."""
        prediction, read = self.reading.read(self.part, "prediction", self.framed.dates)
        shared, labels_read = self.labelled(scanned=False)
        message(f"read {read}; {labels_read}")
        self.name_added(prediction)
        return prediction, shared, f"{read}; {labels_read}"


@dataclass(frozen=True, kw_only=True)
class Several(Inputs):
    """Options of a command on several predictions."""

    prediction: Annotated[
        list[Path],
        typer.Argument(
            metavar="PREDICTION",
            exists=True,
            help="One or several files, each with record and predicted cluster, for all records.",
        ),
    ]
    cluster: Annotated[
        list[str] | None, typer.Option(help="Cluster column of PREDICTION. Give it twice to compare two.")
    ] = None
    framed: SharedFrame
    stored: Annotated[
        list[str] | None,
        typer.Option("--table", help="Table of a DuckDB database. Give it twice to compare two."),
    ] = None

    def parts(self) -> dict[str, Part]:
        """Return the parts of the input that are predictions, by name."""
        tables: list[Any] = self.stored or [None]
        columns: list[Any] = self.cluster or [None]
        axes = (self.prediction, tables, columns)
        several = [len(values) > 1 for values in axes]
        parts = [Part(*values) for values in product(*axes)]
        if len(parts) < 2:
            raise DataError(
                "a comparison needs two predictions or more, not 1: give LABELS last, after two files, or "
                "name several --cluster or --table"
            )
        names = [" ".join(compress((stem(p.path), str(p.table), str(p.cluster)), several)) for p in parts]
        if len(set(names)) < len(names):
            raise DataError(f"predictions go by their files' names, which must differ: {head(names, 20)}")
        return dict(zip(names, parts, strict=True))

    @cached_property
    def origin(self) -> Part | None:
        """Return the prediction that was drawn from: that of --drawn-from, or one of those compared."""
        if self.returned is None or self.drawn_from is not None:
            return super().origin
        drawn = self.returned.folder.drawn
        if isinstance(drawn.plan, FREE):
            return None
        for part in self.parts().values():
            with self.reading.opened(part) as (prediction, _):
                if drawn.is_from(prediction):
                    return part
        return None

    def predictions(self, **grouped: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Read or scan the predictions, by name, with the arguments that they share.

        `grouped` are further arguments of a scan.
        """
        parts = self.parts()
        scanned = self.reading.scanned(parts.values(), self.framed.frame)
        shared, labels_read = self.labelled(scanned)
        message(f"read {labels_read}")
        predictions: dict[str, Any] = {}
        if not scanned:
            for name, part in parts.items():
                predictions[name], read = self.reading.read(part, f"prediction {name!r}", self.framed.dates)
                message(f"{name}: read {read}")
                self.name_added(predictions[name])
        elif self.framed.differing is Differing.COMMON:
            predictions = scan_common(
                {name: self.reading.source(part) for name, part in parts.items()},
                record=self.reading.record,
                cluster={name: part.cluster for name, part in parts.items()},
                database=DuckDB(self.reading.memory_limit),
                **shared | grouped,
            )
        else:
            predictions = {name: self.reading.scan(part, shared | grouped) for name, part in parts.items()}
        if scanned:
            for name, units in predictions.items():
                _note_scan(units, parts[name].path, f"{name}: ")
        return predictions, shared


def stem(path: Path) -> str:
    """Name of a file without the endings of its format and packing."""
    packed = path.suffix.lower() in PACKED.keys() | FOREIGN
    return Path(path.stem if packed else path.name).stem
