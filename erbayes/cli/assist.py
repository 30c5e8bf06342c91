"""Options of second clusterings of the records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import erbayes as eb

from .._internal.errors import DataError, Remedy, head, speaking
from .analyses import Analysis, Result
from .asked import Asked, Metrics
from .inputs import Inputs, One, stem
from .lazily import disk
from .options import message, option, panel, refuse_same_file
from .predictions import Links, Part

COLUMNS = "name them: --record, --assist-cluster"
REMEDIES = {
    Remedy.COLUMNS: COLUMNS,
    Remedy.ORDER: f"if columns are in the other order, {COLUMNS}",
    Remedy.LINKS: "if rows are links between records, --assist needs clusters of them",
}
"""Remedies of errors in the files of second clusterings."""


def in_words_of(engine: eb.auxiliary.Assisted, sample: eb.Sample, metrics: Metrics) -> dict[str, str]:
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


@panel("Second clustering")
class Assist(Analysis):
    """Options of second clusterings of the records, which help to estimate."""

    assist: list[Path] | None = option(
        "A second clustering of all records, which shortens intervals. Several are allowed.",
        exists=True,
        metavar="FILE",
    )
    assist_cluster: str | None = option(
        "The cluster column of --assist; without --assist, a column of PREDICTION.", rare=True
    )

    @property
    def option(self) -> str | None:
        return "--assist" if self.assist else None if self.assist_cluster is None else "--assist-cluster"

    def refuse(self, inputs: Inputs, asked: Asked) -> None:
        """Refuse inputs without drawn records, and a second clustering that is the labels."""
        if self.option is None:
            return
        if inputs.of_clusters:
            raise DataError(
                "--assist needs drawn records, and the folder has predicted clusters: leave it out"
            )
        for path in self.assist or ():
            if self.assist_cluster is None:
                refuse_same_file(("--assist", path), ("LABELS", inputs.labels))

    def refuse_groups(self, by: str | None) -> None:
        """Refuse a column of groups next to second clusterings."""
        if self.option is not None and by is not None:
            raise DataError(
                "--by takes no second clustering, and --across none: leave out --assist, or these"
            )

    def run(self, inputs: One, asked: Asked, sample: eb.Sample, metrics: Metrics) -> Result:
        """Estimate metrics, after alarms of the second clusterings too."""
        engine = self.engine_of_one(inputs, sample.units)
        found = engine(sample, metrics)
        alarms = engine.of_prediction(sample) + found.alarms(sample, metrics)
        table, said = found.table(inputs.level, asked.kind), found.sentence(inputs.level, asked.kind)
        return Result(table.reset_index(), "assisted", alarms, said)

    @property
    def parts(self) -> dict[str, Part]:
        """The second clusterings in files and tables, by name."""
        paths = self.assist or []
        names = [stem(path) for path in paths]
        if len(set(names)) < len(names):
            raise DataError(f"second clusterings go by their files' names, which must differ: {head(names)}")
        for path in filter(disk.is_database, paths):
            raise DataError(
                f"--assist {path} is a DuckDB database: write its table to a file, or make its clusters a "
                "column of PREDICTION"
            )
        return {name: Part(path, None, self.assist_cluster) for name, path in zip(names, paths, strict=True)}

    def of_scan(self, inputs: Inputs) -> dict[str, Any]:
        """Refuse a prediction that is scanned where it lies, and return no arguments of a scan."""
        if self.option is not None and inputs.scanned:
            raise DataError(
                f"{self.option} compares clusterings in memory, and PREDICTION is scanned where it lies: "
                "leave out --table and --memory-limit, or name a file of two columns"
            )
        return {}

    def engine(
        self, inputs: Inputs, predictions: Mapping[str, Any], shared: dict[str, Any]
    ) -> eb.auxiliary.Assisted:
        """Return the engine of predictions, by name, with second clusterings as scans or files have them."""
        engine = eb.auxiliary.Assisted.of(predictions, by=self._read(inputs), **shared)
        self._print_left_out(engine, inputs)
        return engine

    def engine_of_one(self, inputs: One, units: eb.units.Units) -> eb.auxiliary.Assisted:
        """Return the engine of one prediction, whose units are known."""
        prediction, shared, _ = inputs.memory
        return self.engine(inputs, {"": prediction}, shared)

    def _print_left_out(self, engine: eb.auxiliary.Assisted, inputs: Inputs) -> None:
        """Print how many records of second clusterings in files are left out, since predictions lack them."""
        for name, left_out in dict.fromkeys((second.name, second.left_out) for second in engine.counted):
            if left_out and self.assist:
                message(
                    f"note: {left_out:,} records of {self.parts[name].path} are not in "
                    f"PREDICTION{'' if inputs.frame is None else ' inside the frame'} and are left out"
                )

    def _read(self, inputs: Inputs) -> dict[str, eb.Clustering]:
        """Read second clusterings into memory, by name."""
        if not self.assist and inputs.reading.links.edges:
            raise DataError(
                "with --edges, PREDICTION has no second column of clusters: name a file by --assist"
            )
        column, (first, *others) = str(self.assist_cluster), {part.path for part in inputs.parts().values()}
        if not self.assist and others:
            raise DataError(
                f"--assist-cluster names a column of PREDICTION, of which there are {1 + len(others)} files: "
                "name a file by --assist, or scan all by --memory-limit, such as 4GB"
            )
        seconds = {}
        for name, part in (self.parts or {column: Part(first, None, self.assist_cluster)}).items():
            if part.path.is_dir():
                raise DataError(
                    f"--assist {part.path} is a folder, and PREDICTION is read into memory: name a file, or "
                    "scan both by --memory-limit, such as 4GB"
                )
            with speaking(REMEDIES):
                own = replace(inputs.reading, links=Links())
                seconds[name], read = own.read(part, f"second clustering {name!r}")
            message(f"assist: read {read}")
        return seconds
