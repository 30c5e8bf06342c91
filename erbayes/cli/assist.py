"""Options of a second clustering of the records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import erbayes as eb

from .._internal.errors import DataError, Remedy, speaking
from .analyses import Analysis, Result
from .inputs import Inputs, One, stem
from .lazily import files
from .metric_options import MetricOptions, Metrics
from .options import file_option, message, option, panel, refuse_same_file
from .predictions import LinkOptions, PredictionFile

COLUMNS = "name them: --record, --assist-cluster"
REMEDIES = {
    Remedy.COLUMNS: COLUMNS,
    Remedy.ORDER: f"if columns are in the other order, {COLUMNS}",
    Remedy.LINKS: "if rows are links between records, --assist needs clusters of them",
}
"""Remedies of errors in the file of a second clustering."""


def in_words_of(engine: eb.auxiliary.Assisted, sample: eb.Sample, metrics: Metrics) -> dict[str, str]:
    """Return facts about the second clustering in words, for a page: its sizes and weights."""
    estimates = engine(sample, metrics)
    weights = (
        f"{name}: {weight:.2f}{f' ({note})' if note else ''}"
        for name, weight, note in zip(estimates.names, estimates.weights, estimates.notes, strict=True)
    )
    return {
        "second clustering": "\n".join(map(repr, engine.counted)),
        "lambda, its weight": "\n".join(weights),
    }


@panel("Second clustering")
class Assist(Analysis):
    """Options of a second clustering of the records, which shortens intervals."""

    assist: Path | None = file_option("A second clustering of all records, which shortens intervals.")
    assist_cluster: str | None = option(
        "The cluster column of --assist; without --assist, a column of PREDICTION.", rare=True
    )

    @property
    def option(self) -> str | None:
        return "--assist" if self.assist else None if self.assist_cluster is None else "--assist-cluster"

    def refuse(self, inputs: Inputs, asked: MetricOptions) -> None:
        """Refuse drawn clusters, predictions that are scanned, and the labels as second clustering."""
        if self.option is None:
            return
        if inputs.of_clusters:
            raise DataError(
                "--assist needs drawn records, and the folder has predicted clusters: leave it out"
            )
        if inputs.scanned:
            raise DataError(
                f"{self.option} compares two clusterings in memory, and PREDICTION is scanned where it lies: "
                "leave out --memory-limit, and write tables of a database to files"
            )
        if self.assist is not None and self.assist_cluster is None:
            refuse_same_file(("--assist", self.assist), ("LABELS", inputs.labels))

    def refuse_groups(self, by: str | None) -> None:
        """Refuse a column of groups next to a second clustering."""
        if self.option is not None and by is not None:
            raise DataError(
                "--by takes no second clustering, and --across none: leave out --assist, or these"
            )

    def run(self, inputs: One, asked: MetricOptions, sample: eb.Sample, metrics: Metrics) -> Result:
        """Estimate metrics, after alarms of the second clustering too."""
        engine = self.engine_of_one(inputs)
        estimates = engine(sample, metrics)
        alarms = engine.of_prediction(sample) + estimates.find_alarms(sample, metrics)
        table = estimates.table(inputs.level, asked.kind).reset_index()
        return Result(table, "assisted", alarms, estimates.sentence(inputs.level, asked.kind), estimates)

    def engine(
        self, inputs: Inputs, predictions: Mapping[str, Any], shared: dict[str, Any]
    ) -> eb.auxiliary.Assisted:
        """Return the engine of predictions in memory, by name."""
        name, clustering = self._read(inputs)
        engine = eb.auxiliary.Assisted.of(predictions, by=clustering, name=name, **shared)
        if left_out := engine.counted[0].left_out if self.assist else 0:
            message(
                f"note: {left_out:,} records of {self.assist} are not in "
                f"PREDICTION{'' if inputs.frame is None else ' inside the frame'} and are left out"
            )
        return engine

    def engine_of_one(self, inputs: One) -> eb.auxiliary.Assisted:
        """Return the engine of one prediction."""
        prediction, shared, _ = inputs.memory
        return self.engine(inputs, {"": prediction}, shared)

    def _read(self, inputs: Inputs) -> tuple[str, eb.Clustering]:
        """Read the second clustering into memory, after its name."""
        path, name = self.assist, str(self.assist_cluster) if self.assist is None else stem(self.assist)
        if path is None:
            if inputs.reading.links.edges:
                raise DataError(
                    "with --edges, PREDICTION has no second column of clusters: name a file by --assist"
                )
            path, *others = {part.path: None for part in inputs.parts().values()}
            if others:
                raise DataError(
                    f"--assist-cluster names a column of PREDICTION, of which there are {1 + len(others)} "
                    "files: name a file by --assist"
                )
        elif files.is_database(path):
            raise DataError(f"--assist {path} is a DuckDB database: write its table to a file")
        with speaking(REMEDIES):
            reading = replace(inputs.reading, links=LinkOptions())
            clustering, read = reading.read(
                PredictionFile(path, None, self.assist_cluster), f"second clustering {name!r}"
            )
        message(f"assist: read {read}")
        return name, clustering
