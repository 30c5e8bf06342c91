"""Options of second clusterings of the records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import erbayes as eb

from .._internal.errors import DataError, Remedy, head, speaking
from .analyses import Analysis, Result
from .inputs import Inputs, One, stem
from .lazily import counted, files
from .metric_options import MetricOptions, Metrics
from .options import message, option, panel, refuse_same_file
from .predictions import CLUSTERS, LinkOptions, PredictionFile, in_words

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

    def refuse(self, inputs: Inputs, asked: MetricOptions) -> None:
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

    def run(self, inputs: One, asked: MetricOptions, sample: eb.Sample, metrics: Metrics) -> Result:
        """Estimate metrics, after alarms of the second clusterings too."""
        engine = self.engine_of_one(inputs, sample.units)
        found = engine(sample, metrics)
        alarms = engine.of_prediction(sample) + found.alarms(sample, metrics)
        table, said = found.table(inputs.level, asked.kind), found.sentence(inputs.level, asked.kind)
        return Result(table.reset_index(), "assisted", alarms, said)

    @property
    def parts(self) -> dict[str, PredictionFile]:
        """The second clusterings in files and tables, by name."""
        paths = self.assist or []
        names = [stem(path) for path in paths]
        if len(set(names)) < len(names):
            raise DataError(f"second clusterings go by their files' names, which must differ: {head(names)}")
        for path in filter(files.is_database, paths):
            raise DataError(
                f"--assist {path} is a DuckDB database: write its table to a file, or make its clusters a "
                "column of PREDICTION"
            )
        return {
            name: PredictionFile(path, None, self.assist_cluster)
            for name, path in zip(names, paths, strict=True)
        }

    def of_scan(self, inputs: Inputs) -> dict[str, Any]:
        """Return arguments of a scan that counts second clusterings; none if they are read into memory."""
        if self.option is None or not inputs.scanned:
            return {}
        reading, column = inputs.reading, self.assist_cluster
        if not self.assist:
            return {"seconds": {str(column): eb.large.SecondSource(cluster=column)}}
        return {
            "seconds": {
                name: eb.large.SecondSource(reading.source(part), column, reading.record)
                for name, part in self.parts.items()
            }
        }

    def engine(
        self, inputs: Inputs, predictions: Mapping[str, Any], shared: dict[str, Any]
    ) -> eb.auxiliary.Assisted:
        """Return the engine of predictions, by name, with second clusterings as scans or files have them."""
        if inputs.scanned:
            engine = self._take_scanned(inputs, predictions)
        else:
            engine = eb.auxiliary.Assisted.of(predictions, by=self._read(inputs), **shared)
        self._print_left_out(engine, inputs)
        return engine

    def engine_of_one(self, inputs: One, units: eb.units.Units) -> eb.auxiliary.Assisted:
        """Return the engine of one prediction, whose units are known."""
        prediction, shared = (units, {}) if inputs.scanned else inputs.memory[:2]
        return self.engine(inputs, {"": prediction}, shared)

    def _print_left_out(self, engine: eb.auxiliary.Assisted, inputs: Inputs) -> None:
        """Print how many records of second clusterings in files are left out, since predictions lack them."""
        for name, left_out in dict.fromkeys((second.name, second.left_out) for second in engine.counted):
            if left_out and self.assist:
                message(
                    f"note: {left_out:,} records of {self.parts[name].path} are not in "
                    f"PREDICTION{'' if inputs.frame is None else ' inside the frame'} and are left out"
                )

    def _take_scanned(self, inputs: Inputs, scans: Mapping[str, counted.Scanned]) -> eb.auxiliary.Assisted:
        """Return the engine of second clusterings that scans have counted."""
        for name, units in scans.items():
            for second in units.seconds:
                sizes = CLUSTERS.format(units.rows, int(second.count.sum()))
                path = self.parts[second.name].path if self.assist else inputs.parts()[name].path
                of = in_words([self.assist_cluster or "clusters"], path)
                message(f"assist{f' {name}' if name else ''}: scanned {sizes} ({of})")
        return eb.auxiliary.Assisted(
            tuple(second for units in scans.values() for second in eb.auxiliary.Second.scanned(units))
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
        for name, part in (self.parts or {column: PredictionFile(first, None, self.assist_cluster)}).items():
            if part.path.is_dir():
                raise DataError(
                    f"--assist {part.path} is a folder, and PREDICTION is read into memory: name a file, or "
                    "scan both by --memory-limit, such as 4GB"
                )
            with speaking(REMEDIES):
                own = replace(inputs.reading, links=LinkOptions())
                seconds[name], read = own.read(part, f"second clustering {name!r}")
            message(f"assist: read {read}")
        return seconds
