"""Options of second clusterings of the records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ..assisted import Assisted
from ..errors import DataError, Remedy, head
from ..files import is_database, read_columns
from ..large import Scanned, SecondSource
from ..second import Second
from .inputs import CLUSTERS, Inputs, Part, clustering_of, in_words, stem
from .options import message, remedies

COLUMNS = "name them: --record, --assist-cluster"
REMEDIES = {
    Remedy.COLUMNS: COLUMNS,
    Remedy.ORDER: f"if columns are in the other order, {COLUMNS}",
    Remedy.LINKS: "if rows are links between records, --assist needs clusters of them",
}
"""Remedies of errors in the files of second clusterings."""


@dataclass(frozen=True, kw_only=True)
class Assist:
    """Options of second clusterings of the records, which help to estimate."""

    assist: Annotated[
        list[Path] | None,
        typer.Option(
            exists=True,
            help="A second clustering of the records, such as the next release: record and cluster, for all "
            "records. It shortens intervals. Give it several times for several.",
        ),
    ] = None
    assist_cluster: Annotated[
        str | None,
        typer.Option(help="The cluster column of --assist; without --assist, a column of PREDICTION."),
    ] = None

    @property
    def given(self) -> bool:
        """True if the options name a second clustering."""
        return bool(self.assist) or self.assist_cluster is not None

    @property
    def paths(self) -> dict[str, Path]:
        """The files of second clusterings, by name."""
        paths = self.assist or []
        names = [stem(path) for path in paths]
        if len(set(names)) < len(names):
            raise DataError(f"second clusterings go by their files' names, which must differ: {head(names)}")
        for path in paths:
            if is_database(path):
                raise DataError(
                    f"--assist {path} is a DuckDB database: name a column of PREDICTION by --assist-cluster, "
                    "or write its records and clusters to a file"
                )
        return dict(zip(names, paths, strict=True))

    def files(self, inputs: Inputs) -> dict[str, Path]:
        """Return the file of each second clustering, by name."""
        if paths := self.paths:
            return paths
        if inputs.reading.links.edges:
            raise DataError(
                "with --edges, PREDICTION has no second column of clusters: name a file by --assist"
            )
        path, *others = inputs.prediction if isinstance(inputs.prediction, list) else [inputs.prediction]
        if others:
            raise DataError(
                f"--assist-cluster names a column of PREDICTION, of which there are {1 + len(others)} files: "
                "name a file by --assist"
            )
        return {str(self.assist_cluster): path}

    def of_scan(self, inputs: Inputs, parts: Iterable[Part]) -> dict[str, Any]:
        """Return arguments of a scan that counts second clusterings; none if they are read into memory."""
        if not self.given or not inputs.reading.scanned(parts, inputs.framed.frame):
            return {}
        column, record = self.assist_cluster, inputs.reading.record
        columns = {"record": record, "cluster": column}
        seconds = {
            name: SecondSource(inputs.reading.source_of(path, columns), record=record, cluster=column)
            for name, path in self.paths.items()
        }
        return {"seconds": seconds or {name: SecondSource(cluster=column) for name in self.files(inputs)}}

    def engine(self, inputs: Inputs, predictions: Iterable[Any], shared: dict[str, Any]) -> Assisted:
        """Return the engine of second clusterings that scans have counted, or that are read now.

        `predictions` are scans, or are read into memory and go with the arguments `shared`.
        """
        predictions, files = list(predictions), self.files(inputs)
        scans = [one for one in predictions if isinstance(one, Scanned)]
        for second in scans[0].seconds if scans else ():
            sizes = CLUSTERS.format(scans[0].rows, int(second.count.sum()))
            of = in_words([self.assist_cluster or "clusters"], files[second.name])
            message(f"assist: scanned {sizes} ({of})")
        if scans:
            return Assisted(tuple(second for scan in scans for second in Second.scanned(scan)))
        seconds = []
        for name, path in files.items():
            if path.is_dir():
                raise DataError(
                    f"--assist {path} is a folder, and PREDICTION is read into memory: name a file, or scan "
                    "both by --memory-limit, such as 4GB"
                )
            with remedies(REMEDIES):
                table = read_columns(path, {"record": inputs.reading.record, "cluster": self.assist_cluster})
                clustering, read = clustering_of(table, path, f"second clustering {name!r}", CLUSTERS)
            message(f"assist: read {read}")
            seconds += [Second.of(one, by=clustering, name=name, **shared) for one in predictions]
        return Assisted(tuple(seconds))
