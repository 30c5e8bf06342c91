"""Options of predictions and designs, and their reading: memberships, links, databases, designs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from importlib.util import find_spec
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, Literal

import erbayes as eb

from .._internal.errors import DataError, Remedy, head, refuse_cases
from .lazily import arrays, column_roles, files, folders, ids, large_files, pd, readings
from .options import (
    argument,
    file_option,
    flag,
    message,
    name_options,
    option,
    panel,
    record_option,
    stored_option,
)
from .remembered import Call, File, name_columns, read_attributes, said_of

CLUSTERS = "{:,} records in {:,} clusters"
LABELLED = "{:,} labelled records of {:,} entities"


@dataclass(frozen=True)
class PredictionFile:
    """A prediction among several: path, table of a database, clusters (an `optional` column)."""

    path: Path
    table: str | None = None
    cluster: str | None = None
    optional: bool = False


@panel("Edges")
class LinkOptions:
    edges: bool = flag("Each row of PREDICTION is a link of two records.")
    score: str | None = option("With --edges, the column of scores.", rare=True)
    threshold: float | None = option("With --edges: pairs with this score or more are links.", rare=True)
    records: Path | None = file_option(
        "With --edges, all records, some of which may be in no pair.", rare=True
    )


def read_ids(path: Path, record: str | None, near: readings.Near | None = None) -> pd.Index:
    """Return the ids of a file, which may be a prediction."""
    table, said = files.read_table(path), said_of(path, 1)
    arrays.refuse_names(said, list(table.columns), str(path))
    return column_roles.read_records(
        table, str(path), next(iter(said), record if record in table.columns else None), near
    )


@panel("Files")
class ReadingOptions:
    record: str | None = record_option()
    links: LinkOptions
    memory_limit: str | None = option(
        "Scan PREDICTION, within this memory, such as 4GB.", rare=True, panel="Scans"
    )
    alone: str | None = option(
        "The word for records of PREDICTION without a match: each is a cluster of its own.",
        rare=True,
        metavar="WORD",
    )
    strip: bool = flag("Remove blanks at the ends of ids and clusters.", rare=True)
    any_id: bool = flag(
        'Take ids such as -1, "NULL" and "NA" for ids of real clusters.', rare=True, panel="Scans"
    )

    def scanned(self, parts: Iterable[PredictionFile], frame: Path | None = None) -> bool:
        """Return whether predictions are scanned in place, and not read into memory."""
        parts = list(parts)
        for part in parts:
            if part.table is None and files.is_database(part.path):
                raise DataError(
                    f"{part.path} is a DuckDB database",
                    Remedy("scan it", "erbayes.large.DatabaseTable(path, table)", "--table NAME"),
                )
        paths = [*(part.path for part in parts), *([] if frame is None else [frame])]
        said = [File.read(path) for path in paths]
        links = self.links.edges or any(x.threshold is not None or "edges" in x.options for x in said)
        by_option = self.memory_limit is not None or any(part.table is not None for part in parts)
        in_place = by_option or any(path.is_dir() for path in paths)
        if links and in_place:
            raise DataError("with --edges, PREDICTION and --frame are files that are read into memory")
        large = [x for x in paths if not (links or in_place) and x.stat().st_size >= files.LARGE]
        return in_place or any(large_files.unpacks(path) and bool(find_spec("duckdb")) for path in large)

    def source(self, part: PredictionFile) -> Any:
        """Return the source to scan. A file that DuckDB cannot unpack is read into memory."""
        if part.table is not None:
            return eb.large.DatabaseTable(part.path, part.table, text=True)
        unpacked = large_files.unpacks(part.path)
        return eb.large.Files(part.path, text=True) if unpacked else files.read_table(part.path)

    @cached_property
    def listed(self) -> pd.Index | None:
        return None if self.links.records is None else read_ids(self.links.records, self.record)

    @cached_property
    def bound(self) -> set[str]:
        """Return the options that said something of a file."""
        return set()

    def bind(self, columns: Iterable[Any]) -> str | None:
        """Return the column of --record if a table has it."""
        if self.record is None or self.record not in list(columns):
            return None
        self.bound.add("--record")
        return self.record

    def refuse_unbound(
        self, attributes: Path | None = None, cluster: str | None = None, recalled: bool = False
    ) -> None:
        """Refuse what says nothing of any file, not even of attributes; what a folder recalls may."""
        if attributes is not None:
            self.bind(read_attributes(attributes, None, pd.Index([], dtype=str)))
        for name, value, what in (
            ("--record", self.record, "no file that was read has a column"),
            ("--cluster", cluster, "no prediction that was read has a column"),
            ("--alone", None if recalled else self.alone, "no record that was read has a cluster"),
        ):
            if value is not None and name not in self.bound:
                raise DataError(f"{what} {value!r}, which {name} names: name another one, or leave it out")
        if self.links.records is not None and not recalled and "--records" not in self.bound:
            raise DataError(
                "--records lists all records of links, and no prediction that was read has links: leave it "
                "out, or say --edges if rows are links"
            )

    def read_table(self, path: Path) -> pd.DataFrame:
        """Read a file, without blanks at the ends of its cells if they are to be removed."""
        table = files.read_table(path)
        text = pd.api.types.is_string_dtype
        return table.apply(lambda x: x.str.strip() if text(x) else x) if self.strip else table

    def take(self, part: PredictionFile, what: str, near: readings.Near | None = None) -> readings.Reading:
        """Return what the columns of a prediction mean; `near`: what labels say of records."""
        table = self.read_table(part.path)
        links = {name: getattr(self.links, name) for name in ("edges", "score", "threshold")}
        optional = part.optional and (part.cluster not in table or bool(File.read(part.path).said))
        cluster = None if optional else part.cluster
        self.bound.update(["--cluster"] if cluster is not None else [])
        named = name_columns(part.path, record=self.bind(table.columns), cluster=cluster, links=links)
        if not named.ends:  # said of another table of the same matcher
            hints = File.read(part.path).hints.items()
            hinted = {name: column for name, column in hints if column in table.columns}
            named = replace(named, **{n: c for n, c in hinted.items() if getattr(named, n) is None})
        near = readings.Near.all_of(self.listed) or near
        taken = column_roles.read_prediction(table, named, near, what=f"{what} {part.path}")
        files.refuse_repeated_header(taken.chosen, part.path)
        if named.threshold is not None and not taken.of_links:
            raise DataError(
                f"{part.path} has records and clusters, which no threshold makes links: write the threshold "
                "behind the file that has scores, such as edges.csv@0.9"
            )
        if taken.of_links:
            self.bound.add("--records")
        elif self.alone is not None:
            taken, before = taken.separate(self.alone), taken
            self.bound.update(["--alone"] if not taken.chosen.equals(before.chosen) else [])
        return taken

    def read(
        self, part: PredictionFile, what: str, near: readings.Near | None = None, alone: bool | None = None
    ) -> tuple[eb.Clustering, str]:
        """Read a prediction and say so; `alone`: records without a cluster are alone, or left out."""
        taken = self.take(part, what, near)
        if alone is not None and not taken.of_links:
            taken = taken.fill(alone)
        return self.clustering_of(taken, part.path, CLUSTERS)

    def read_labels(
        self, path: Path, entity: str | None, records: pd.Index | None = None
    ) -> tuple[eb.Clustering, str]:
        """Read a file of labels, with a sentence about what was read; `records` of a prediction."""
        table, said = self.read_table(path), name_columns(path, cluster=entity)
        said_of(path, 2)
        record = said.record or self.bind(table.columns)
        named = readings.Named(record=record, cluster=said.cluster, sources=said.sources, links=False)
        near = readings.Near.all_of(records)
        taken = column_roles.read_prediction(table, named, near, groups="entity", what="labels")
        files.refuse_repeated_header(taken.chosen, path)
        return self.clustering_of(taken, path, LABELLED)

    def clustering_of(self, taken: readings.Reading, path: Path, sizes: str) -> tuple[eb.Clustering, str]:
        """Return what was read of a table as a clustering, with a sentence about it."""
        clustering = eb.Clustering.read(taken, self.listed if taken.of_links else None, any_id=self.any_id)
        read = sizes.format(len(clustering.records), len(clustering.clusters))
        if not taken.of_links:
            return clustering, f"{read} ({taken.in_words()} of {path})"
        rest = "records that are in no pair are not known: --records lists them"
        left, right = taken.key(0), taken.key(1)
        # memberships name each record once and a cluster of several records again
        bare = not (taken.sources or clustering.complete or readings.pair_columns([left.name, right.name]))
        if bare and left.is_unique and not (right.is_unique or left.isin(right).any()):
            message(
                f"caution: {path} has each {left.name} once, and none of them as {right.name}: if these are "
                "records and their clusters, leave out --edges"
            )
        if clustering.complete:
            rest = f"{int((clustering.sizes == 1).sum()):,} of the records are linked to no other"
        kind = "links" if taken.other is None else "pairs"
        return clustering, f"{len(taken.table):,} {kind} of {read} ({taken.in_words()} of {path}; {rest})"

    @contextmanager
    def opened(self, part: PredictionFile, what: str = "prediction") -> Iterator[tuple[Any, str]]:
        """Read a prediction, or open it in place, with a sentence about it."""
        if not self.scanned([part]):
            yield self.read(part, what)
            return
        columns = self._name_scanned({"": part})
        with eb.large.drawing(self.source(part), columns, database=self.database) as source:
            known = source.known
            sizes = CLUSTERS.format(int(known.size @ known.count), int(known.count.sum()))
            yield source, f"{sizes} ({part.path}, where it lies)"

    def scan(self, part: PredictionFile | Mapping[str, PredictionFile], shared: dict[str, Any]) -> Any:
        """Scan a prediction, or several by name on the records that all of them have."""
        if isinstance(part, PredictionFile):
            source, columns = self.source(part), self._name_scanned({"": part})
        else:
            source, columns = {name: self.source(one) for name, one in part.items()}, self._name_scanned(part)
        return eb.large.scan(source, columns=columns, database=self.database, **shared)

    def _name_scanned(self, parts: Mapping[str, PredictionFile]) -> eb.large.Columns:
        """Return the columns of predictions that are scanned, of which records have one name in all."""
        named = {x: name_columns(p.path, record=self.record, cluster=p.cluster) for x, p in parts.items()}
        if foreign := [parts[name].path for name, one in named.items() if one.links or one.sources]:
            raise DataError(
                f"{foreign[0]} is scanned where it lies, where :RECORD,CLUSTER may be behind its name"
            )
        records = [*{one.record for one in named.values()}]
        if len(records) > 1:
            raise DataError(f"files that are scanned together have one name for records, not {head(records)}")
        clusters: Any = {name: one.cluster for name, one in named.items()}
        clusters = clusters if len(parts) > 1 else clusters.popitem()[1]
        return eb.large.Columns(records[0], clusters, self.any_id)

    @property
    def database(self) -> eb.large.DuckDB:
        return eb.large.DuckDB(self.memory_limit)


@panel("Files")
class PredictionOptions:
    prediction: Path = argument("Record and cluster of all records; or pairs, with --edges.")
    reading: ReadingOptions
    cluster: str | None = option("Cluster column of PREDICTION.", metavar="COLUMN")
    stored: str | None = stored_option()

    @property
    def part(self) -> PredictionFile:
        return PredictionFile(self.prediction, self.stored, self.cluster)

    def parts(self) -> dict[str, PredictionFile]:
        """Return the prediction under the name "", as one of several (see `Several`)."""
        return {"": self.part}


def in_words(columns: Iterable[Any], path: Path) -> str:
    """Text that names columns and their file."""
    return f"{', '.join(map(str, columns))} of {path}"


def read_drawn_from(folder: folders.Folder) -> eb.Clustering:
    """Read the prediction that a folder was drawn from, as the folder remembers it."""
    call = Call.of(folder.path)
    if not call.options or "stored" in call.options:
        raise DataError(f"{folder.path} remembers no file that it was drawn from: draw it from a file")
    path = call.take("prediction")
    if not path.is_file():
        raise DataError(f"{path}, from which {folder.path} was drawn, is not there: put it back")
    links = {one.name: call.take(one.name) for one in fields(LinkOptions) if one.name in call.options}
    known = {x: call.options[x] for x in ("record", "alone", "strip", "any_id") if x in call.options}
    part = PredictionFile(path, cluster=call.options.get("cluster"))
    reading = ReadingOptions(links=LinkOptions(**links), **known)
    prediction: eb.Clustering = reading.read(part, f"prediction {path}")[0]
    if not folder.drawn.is_from(prediction):
        raise DataError(f"{path} has changed since {folder.path} was drawn from it: put the old file back")
    return prediction


DesignName = Literal[
    "uniform-records", "distinct-entities", "uniform-clusters", "known-weights", "stratified"
]
DESIGNS: dict[DesignName, Callable[..., eb.design.contract.Design]] = {
    "uniform-records": lambda drawn=None, population=None: eb.design.UniformRecords(drawn, population),
    "distinct-entities": lambda draws, population=None: eb.design.DistinctEntities(draws, population),
    "uniform-clusters": lambda drawn=None, population=None: eb.design.UniformClusters(population, drawn),
    "known-weights": lambda *, drawn=None, population=None, weights: eb.design.KnownWeights(
        numbers(weights, "unit", "weight"), drawn, population
    ),
    "stratified": lambda strata, populations: eb.design.Stratified(
        keyed(strata, "unit", "stratum"), numbers(populations, "stratum", "number", whole=True).to_dict()
    ),
}
"""What makes each design, of the options that are its parameters. It needs those without a default."""
TAKES = {design: {**signature(make).parameters} for design, make in DESIGNS.items()}
"""Options of each design, by their names."""


def refuse_for_design(
    design: str, given: Collection[str], takes: Collection[str], needed: Collection[str]
) -> None:
    """Refuse options that a design does not take, and a design without those that it needs."""
    if foreign := [option for option in given if option not in takes]:
        right = f"; it takes {name_options(takes)}" if takes else ""
        raise DataError(f"--design {design} does not take {name_options(foreign)}{right}")
    if not {*needed} <= {*given}:
        raise DataError(f"--design {design} needs {name_options(needed, ' and ')}")


@panel("Design")
class Drawing:
    design: DesignName | None = option(
        "How units were drawn. Of a folder, uniform-records takes such draws alone.", "-d", metavar="DESIGN"
    )
    drawn: Path | None = file_option("File of one column: the unit of each draw.")
    draws: int | None = option("Number of records that were drawn.", min=1, metavar="NUMBER")
    population: int | None = option("Number of records or units to draw from.", min=1, metavar="NUMBER")
    weights: Path | None = file_option("File of units and their weights.", rare=True)
    strata: Path | None = file_option("File of units and their strata.", rare=True)
    populations: Path | None = file_option("File of strata and their numbers of units.", rare=True)

    @property
    def given(self) -> list[str]:
        """Names of the options that have a value, without --design."""
        return [f.name for f in fields(self) if f.name != "design" and getattr(self, f.name) is not None]

    @property
    def in_words(self) -> str:
        """Return the options that have a value, with their values; "" if there is none."""
        design = [] if self.design is None else [f"--design {self.design}"]
        return " ".join([*design, *(f"--{name} {getattr(self, name)}" for name in self.given)])

    def read(self, entities: Callable[[], pd.Index]) -> eb.design.contract.Design:
        """Make the design, and read the files that it needs; `entities`: those of the labels, if needed."""
        if self.design is None:
            raise DataError(
                f"--design is needed, one of {', '.join(TAKES)}: how were the "
                "labelled units drawn? Only a folder of erbayes draw needs no design"
            )
        takes = TAKES[self.design]
        needed = [name for name, option in takes.items() if option.default is Parameter.empty]
        refuse_for_design(self.design, self.given, takes, needed)
        values = {name: getattr(self, name) for name in self.given}
        if self.drawn is not None:
            values["drawn"] = _read_drawn(self.drawn, entities)
        return DESIGNS[self.design](**values)


def _read_drawn(path: Path, entities: Callable[[], pd.Index]) -> list[Any]:
    """Return the unit of each draw; of several columns, that which has entities of the labels."""
    table, said = files.read_table(path), said_of(path, 1)
    arrays.refuse_names(said, list(table.columns), str(path))
    near = readings.Near({None: entities()}) if table.shape[1] > 1 and not said else None
    column = column_roles.find_record(table, near, f"the draws {path}", next(iter(said), None))
    files.refuse_repeated_header(table[[column]], path)
    return list(table[column])


def keyed(path: Path, key: str, value: str) -> pd.Series:
    """Read a file of two columns as a Series of the second, indexed by the unique ids of the first."""
    frame = files.read_columns(path, 2, said_of(path, 2))
    key, value = frame.columns
    keys = ids.ids(frame[key], f"{path}, column {key!r}")
    refuse_cases(keys[keys.duplicated()], f"{path}: {{n}} ids are listed twice, such as")
    return pd.Series(ids.ids(frame[value], f"{path}, column {value!r}"), index=keys, name=value)


def numbers(path: Path, key: str, value: str, whole: bool = False) -> pd.Series:
    """Read a file as `keyed` does, with numbers in the second column."""
    text = keyed(path, key, value)
    if pd.notna(pd.to_numeric(str(text.name), errors="coerce")):
        raise DataError(
            f"{path}: {text.name!r} is the name of its second column: is the first line a row of data? It "
            f"must name the columns, such as {key},{value}"
        )
    parsed = pd.to_numeric(text, errors="coerce")
    wrong = parsed.isna() | (whole & (parsed % 1 != 0))
    if wrong.any():
        kind, where = "whole numbers" if whole else "numbers", f"{path}, column {text.name!r}"
        raise DataError(
            f"{where}: {wrong.sum()} of {len(wrong)} are not {kind}, such as "
            f"{text[wrong].iloc[0]!r} of {text.index[wrong][0]!r}"
        )
    return parsed.astype("int64") if whole else parsed


def design_of(labels: eb.labels.Labels, drawn_from: Any = None) -> eb.design.contract.Design:
    """Return the design of a folder, with the values of records that annotators have added, if it has any."""
    call, known, values = Call.of(labels.folder.path), labels.folder.drawn.values, None
    if known is not None and "values" in call.options and (path := call.take("values")).is_file():
        values = (numbers if pd.api.types.is_numeric_dtype(known) else keyed)(path, "record", "value")
    return labels.design(drawn_from, values=values)
