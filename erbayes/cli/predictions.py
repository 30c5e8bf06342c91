"""Options of predictions, and their reading: memberships, links, databases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import erbayes as eb

from .._internal.errors import DataError, Remedy, head
from .lazily import clusterings, disk, large_files, pd
from .options import argument, file_option, flag, message, option, panel

CLUSTERS = "{:,} records in {:,} clusters"


LARGE = 2**28
"""Bytes from which a file is scanned rather than read, as it takes several times as many in memory."""


@dataclass(frozen=True)
class Part:
    """A prediction among several: its path, its table in a database, its column of clusters."""

    path: Path
    table: str | None
    cluster: str | None


@panel("Edges")
class Links:
    """Options of a prediction that is links between records."""

    edges: bool = flag("Each row of PREDICTION is a link of two records.")
    left: str | None = option("With --edges, the column of one record.", rare=True)
    right: str | None = option("With --edges, the column of the other record.", rare=True)
    score: str | None = option("With --edges, the column of scores.", rare=True)
    threshold: float | None = option("With --edges: pairs with this score or more are links.", rare=True)
    records: Path | None = file_option(
        "With --edges, all records, some of which may be in no pair.", rare=True
    )

    def __post_init__(self) -> None:
        values = (self.left, self.right, self.score, self.threshold, self.records)
        if not self.edges and any(value is not None for value in values):
            raise DataError("--left, --right, --score, --threshold and --records need --edges")

    def read(self, path: Path, record: str | None) -> tuple[eb.Clustering, str]:
        """Read a file of links as clusters, with a sentence about what was read."""
        table = disk.read_table(path)
        score = self.score or clusterings.find_score(list(table.columns))
        columns = {"left": self.left, "right": self.right} | ({"score": score} if score else {})
        frame = disk.choose_columns(table, path, columns)
        if score:
            frame[score] = read_scores(frame, score, path)
        left, right = (frame[column] for column in frame.columns[:2])
        # memberships name each record once and a cluster of several records again, whereas a list of all
        # records names no cluster
        memberships = left.is_unique and not right.is_unique and not left.isin(right).any()
        if memberships and self.records is None:
            message(
                f"caution: {path} has each {left.name} once, and none of them as {right.name}: if these are "
                "records and their clusters, leave out --edges"
            )
        records = None if self.records is None else read_ids(self.records, record)
        clustering = eb.Clustering.from_pairs(
            frame, score=score, threshold=self.threshold, records=records, what=f"pairs of {path}"
        )
        links = "links" if score is None else f"pairs, links from {self.threshold:g} on,"
        rest = "records that are in no pair are not known: --records lists them"
        if records is not None:
            rest = f"{int((clustering.sizes == 1).sum()):,} of the records are linked to no other"
        sizes = CLUSTERS.format(len(clustering.records), len(clustering.clusters))
        return clustering, f"{len(frame):,} {links} of {sizes} ({in_words(frame.columns, path)}; {rest})"


def read_ids(path: Path, record: str | None) -> pd.Series:
    """Return the ids of a file, which may be a prediction."""
    ids: pd.Series = disk.read_columns(path, {"record": record}, spare=1).iloc[:, 0]
    return ids


def read_scores(table: pd.DataFrame, score: str, path: Path) -> pd.Series:
    """Return a column of scores as numbers, or raise DataError if some are none."""
    scores = pd.to_numeric(table[score], errors="coerce")
    wrong = scores.isna() & table[score].notna()
    if wrong.any():
        raise DataError(
            f"{path}: {wrong.sum():,} of {len(wrong):,} scores {score!r} are not numbers, such as "
            f"{head(table[score][wrong])}"
        )
    return scores


@panel("Files")
class Reading:
    """Options of the way in which predictions are read."""

    record: str | None = option("Record column, in each file that has records.", metavar="COLUMN")
    links: Links
    memory_limit: str | None = option(
        "Scan PREDICTION, within this memory, such as 4GB.", rare=True, panel="Scans"
    )
    any_id: bool = flag(
        'Take ids such as -1, "NULL" and "NA" for ids of real clusters.', rare=True, panel="Scans"
    )

    def scanned(self, parts: Iterable[Part], frame: Path | None = None) -> bool:
        """True if predictions are scanned where they lie, False if they are read into memory."""
        parts = list(parts)
        for part in parts:
            if part.table is None and disk.is_database(part.path):
                raise DataError(f"{part.path} is a DuckDB database", Remedy.DATABASE)
        by_option = self.memory_limit is not None or any(part.table is not None for part in parts)
        files = [*(part.path for part in parts), *([] if frame is None else [frame])]
        if not self.links.edges:
            return by_option or any(map(_is_large, files))
        if by_option or any(file.is_dir() for file in files):
            raise DataError("with --edges, PREDICTION and --frame are files that are read into memory")
        return False

    def source(self, part: Part) -> Any:
        """Return the source to scan. A file that DuckDB cannot unpack is read into memory."""
        if part.table is not None:
            return eb.large.DatabaseTable(part.path, part.table, text=True)
        return self.source_of(part.path, {"record": self.record, "cluster": part.cluster})

    def source_of(self, path: Path, columns: dict[str, str | None], spare: int = 0) -> Any:
        """Return the source to scan in a file, of which `columns` are read if it cannot be unpacked."""
        return (
            eb.large.Files(path, text=True)
            if large_files.unpacks(path)
            else disk.read_columns(path, columns, spare)
        )

    def read(self, part: Part, what: str) -> tuple[eb.Clustering, str]:
        """Read a prediction, with a sentence about what was read."""
        if self.links.edges:
            return self.links.read(part.path, self.record)
        table = disk.read_columns(part.path, {"record": self.record, "cluster": part.cluster})
        return self.clustering_of(table, part.path, what, CLUSTERS)

    def clustering_of(
        self, table: pd.DataFrame, path: Path, what: str, sizes: str
    ) -> tuple[eb.Clustering, str]:
        """Return a table of two columns as a clustering, with a sentence about what was read."""
        clustering = eb.Clustering.of(table, what, any_id=self.any_id)
        read = sizes.format(len(clustering.records), len(clustering.clusters))
        return clustering, f"{read} ({in_words(table.columns, path)})"

    @contextmanager
    def opened(self, part: Part, what: str = "prediction") -> Iterator[tuple[Any, str]]:
        """Read a prediction, or open it where it lies, with a sentence about it."""
        if not self.scanned([part]):
            yield self.read(part, what)
            return
        columns = eb.large.Columns(self.record, part.cluster, self.any_id)
        with eb.large.drawing(self.source(part), columns, database=self.database) as source:
            known = source.known
            sizes = CLUSTERS.format(int(known.size @ known.count), int(known.count.sum()))
            yield source, f"{sizes} ({part.path}, where it lies)"

    def scan(self, part: Part | Mapping[str, Part], shared: dict[str, Any]) -> Any:
        """Scan a prediction, or several by name on the records that all of them have."""
        source: Any
        clusters: Any
        if isinstance(part, Part):
            source, clusters = self.source(part), part.cluster
        else:
            source = {name: self.source(one) for name, one in part.items()}
            clusters = {name: one.cluster for name, one in part.items()}
        columns = eb.large.Columns(self.record, clusters, self.any_id)
        return eb.large.scan(source, columns=columns, database=self.database, **shared)

    @property
    def database(self) -> eb.large.DuckDB:
        """Return the database that scans."""
        return eb.large.DuckDB(self.memory_limit)


@panel("Files")
class Predicted:
    """Options of one prediction."""

    prediction: Path = argument("Record and cluster of all records; or pairs, with --edges.")
    reading: Reading
    cluster: str | None = option("Cluster column of PREDICTION.", metavar="COLUMN")
    stored: str | None = option("Table of a DuckDB database.", "--table", rare=True, panel="Scans")

    @property
    def part(self) -> Part:
        """Return the prediction as part of the input."""
        return Part(self.prediction, self.stored, self.cluster)

    def parts(self) -> dict[str, Part]:
        """Return the prediction under the name "", as one of several (see `Several`)."""
        return {"": self.part}


def in_words(columns: Iterable[Any], path: Path) -> str:
    """Text that names columns and their file."""
    return f"{', '.join(map(str, columns))} of {path}"


def _is_large(prediction: Path) -> bool:
    """True if a prediction is scanned where it lies, without an option that asks for it."""
    return prediction.is_dir() or (
        prediction.stat().st_size >= LARGE
        and large_files.unpacks(prediction)
        and find_spec("duckdb") is not None
    )
