"""Options of second clusterings of the records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from .._internal.errors import DataError, Remedy, head
from .inputs import Inputs, One, Several, stem
from .lazily import assistance, counted, disk, large, second_clusterings
from .options import message, option, refuse_same_file, remedies
from .predictions import CLUSTERS, Part, in_words

if TYPE_CHECKING:
    from ..auxiliary.assistance import Assisted
    from ..design.sample import Sample
    from ..metrics.definitions import Metric
    from ..units.units import Units

COLUMNS = "name them: --record, --assist-cluster"
REMEDIES = {
    Remedy.COLUMNS: COLUMNS,
    Remedy.ORDER: f"if columns are in the other order, {COLUMNS}",
    Remedy.LINKS: "if rows are links between records, --assist needs clusters of them",
}
"""Remedies of errors in the files of second clusterings."""


def in_words_of(engine: Assisted, sample: Sample, metrics: Sequence[Metric]) -> dict[str, str]:
    """Return facts about second clusterings in words, for a page: their sizes and weights."""
    found = engine(sample, metrics)
    weights = (
        f"{name}: {weight:.2f}{f' ({note})' * bool(note)}"
        for name, weight, note in zip(found.names, found.weights.sum(axis=1), found.notes, strict=True)
    )
    return {
        "second clustering": "\n".join(map(repr, engine.counted)),
        "lambda, its weight": "\n".join(weights),
    }


@dataclass(frozen=True, kw_only=True)
class Assist:
    """Options of second clusterings of the records, which help to estimate."""

    panel: ClassVar = "Second clustering"

    assist: list[Path] | None = option(
        "A second clustering of all records, which shortens intervals. Several are allowed.",
        exists=True,
        metavar="FILE",
    )
    assist_cluster: str | None = option(
        "The cluster column of --assist; without --assist, a column of PREDICTION.", rare=True
    )
    assist_table: str | None = option("The table of --assist, if that is a DuckDB database.", rare=True)

    def __post_init__(self) -> None:
        if self.assist_table is not None and not self.assist:
            raise DataError("--assist-table needs --assist, a DuckDB database")

    @property
    def given(self) -> bool:
        """True if the options name a second clustering."""
        return bool(self.assist) or self.assist_cluster is not None

    def refuse(self, inputs: Inputs, by: str | None) -> None:
        """Refuse options that do not go with second clusterings, before anything is read."""
        if not self.given:
            return
        if by is not None:
            raise DataError(
                "--by takes no second clustering, and --across none: leave out --assist, or these"
            )
        if inputs.of_clusters:
            raise DataError(
                "--assist needs drawn records, and the folder has predicted clusters: leave it out"
            )
        for path in self.assist or ():
            if self.assist_cluster is None:
                refuse_same_file(("--assist", path), ("LABELS", inputs.labels))

    @property
    def parts(self) -> dict[str, Part]:
        """The second clusterings in files and tables, by name."""
        paths = self.assist or []
        names = [stem(path) for path in paths]
        if len(set(names)) < len(names):
            raise DataError(f"second clusterings go by their files' names, which must differ: {head(names)}")
        for path in paths:
            if disk.is_database(path) and self.assist_table is None:
                raise DataError(f"--assist {path} is a DuckDB database: name its table, --assist-table NAME")
            if not disk.is_database(path) and self.assist_table is not None:
                raise DataError(f"--assist {path} is no DuckDB database: leave out --assist-table")
        return {
            name: Part(path, self.assist_table, self.assist_cluster)
            for name, path in zip(names, paths, strict=True)
        }

    def of_scan(self, inputs: Inputs, parts: Iterable[Part]) -> dict[str, Any]:
        """Return arguments of a scan that counts second clusterings; none if they are read into memory."""
        if not self.given or not inputs.reading.scanned(parts, inputs.framed.frame):
            return {}
        seconds = {
            name: large.SecondSource(inputs.reading.source(part), self.assist_cluster, inputs.reading.record)
            for name, part in self.parts.items()
        }
        return {
            "seconds": seconds or {str(self.assist_cluster): large.SecondSource(cluster=self.assist_cluster)}
        }

    def engine(self, inputs: One, units: Units) -> Assisted:
        """Return the engine of second clusterings that a scan has counted, or that are read now."""
        if isinstance(units, counted.Scanned):
            engine = self._take_scanned({"": units}, {"": inputs.part})
        else:
            prediction, shared, _ = inputs.memory
            engine = self._read(inputs, {"": prediction}, {"": inputs.part}, shared)
        self._print_left_out(engine, inputs)
        return engine

    def engine_of_several(
        self, inputs: Several, predictions: Mapping[str, Any], shared: dict[str, Any]
    ) -> Assisted:
        """Return the engine of a comparison, in which second clusterings help each prediction."""
        scans = {name: units for name, units in predictions.items() if isinstance(units, counted.Scanned)}
        if scans:
            engine = self._take_scanned(scans, inputs.parts())
        else:
            engine = self._read(inputs, predictions, inputs.parts(), shared)
        self._print_left_out(engine, inputs)
        return engine

    def _print_left_out(self, engine: Assisted, inputs: Inputs) -> None:
        """Print how many records of second clusterings in files are left out, since predictions lack them."""
        framed = inputs.framed.frame is not None or inputs.framed.dates is not None
        for name, left_out in dict.fromkeys((second.name, second.left_out) for second in engine.counted):
            if left_out and self.assist:
                message(
                    f"note: {left_out:,} records of {self.parts[name].path} are not in "
                    f"PREDICTION{' inside the frame' if framed else ''} and are left out"
                )

    def _take_scanned(self, scans: Mapping[str, counted.Scanned], parts: Mapping[str, Part]) -> Assisted:
        """Return the engine of second clusterings that scans have counted."""
        for name, units in scans.items():
            for second in units.seconds:
                sizes = CLUSTERS.format(units.rows, int(second.count.sum()))
                path = self.parts[second.name].path if self.assist else parts[name].path
                of = in_words([self.assist_cluster or "clusters"], path)
                message(f"assist{f' {name}' if name else ''}: scanned {sizes} ({of})")
        return assistance.Assisted(
            tuple(second for units in scans.values() for second in second_clusterings.Second.scanned(units))
        )

    def _read(
        self,
        inputs: Inputs,
        predictions: Mapping[str, Any],
        parts: Mapping[str, Part],
        shared: dict[str, Any],
    ) -> Assisted:
        """Return the engine of second clusterings that are read into memory."""
        if not self.assist and inputs.reading.links.edges:
            raise DataError(
                "with --edges, PREDICTION has no second column of clusters: name a file by --assist"
            )
        column, (first, *others) = str(self.assist_cluster), {part.path for part in parts.values()}
        if not self.assist and others:
            raise DataError(
                f"--assist-cluster names a column of PREDICTION, of which there are {1 + len(others)} files: "
                "name a file by --assist, or scan all by --memory-limit, such as 4GB"
            )
        by = {}
        for name, part in (self.parts or {column: Part(first, None, self.assist_cluster)}).items():
            if part.path.is_dir() or part.table is not None:
                kind = "a folder" if part.table is None else "a DuckDB database"
                raise DataError(
                    f"--assist {part.path} is {kind}, and PREDICTION is read into memory: name a file, or "
                    "scan both by --memory-limit, such as 4GB"
                )
            columns = {"record": inputs.reading.record, "cluster": part.cluster}
            with remedies(REMEDIES):
                table = disk.read_columns(part.path, columns)
                second = f"second clustering {name!r}"
                by[name], read = inputs.reading.clustering_of(table, part.path, second, CLUSTERS)
            message(f"assist: read {read}")
        return assistance.Assisted.of(predictions, by=by, **shared)
