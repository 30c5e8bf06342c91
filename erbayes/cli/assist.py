"""Options of second clusterings of the records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ..assisted import Assisted
from ..errors import DataError, head
from ..files import is_database, read_columns
from ..large import Scanned, SecondSource
from ..second import Second
from ..units import Units
from .inputs import CLUSTERS, One, clustering_of, in_words, stem
from .options import message


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

    def of_scan(self, inputs: One) -> dict[str, Any]:
        """Return arguments of a scan that counts second clusterings; none if they are read into memory."""
        if not self.given or not inputs.reading.scanned([inputs.part], inputs.framed.frame):
            return {}
        column, record = self.assist_cluster, inputs.reading.record
        columns = {"record": record, "cluster": column}
        seconds = {
            name: SecondSource(inputs.reading.source_of(path, columns), record=record, cluster=column)
            for name, path in self.paths.items()
        }
        return {"seconds": seconds or {str(column): SecondSource(cluster=column)}}

    def engine(self, inputs: One, units: Units) -> Assisted:
        """Return the engine of second clusterings that a scan has counted, or that are read now."""
        if isinstance(units, Scanned):
            for second in units.seconds:
                sizes = CLUSTERS.format(units.rows, int(second.count.sum()))
                of = in_words(
                    [self.assist_cluster or "clusters"], self.paths.get(second.name, inputs.prediction)
                )
                message(f"assist: scanned {sizes} ({of})")
            return Assisted(Second.scanned(units))
        if not self.paths and inputs.reading.links.edges:
            raise DataError(
                "with --edges, PREDICTION has no second column of clusters: name a file by --assist"
            )
        prediction, shared, _ = inputs.memory
        seconds = []
        for name, path in (self.paths or {str(self.assist_cluster): inputs.prediction}).items():
            if path.is_dir():
                raise DataError(
                    f"--assist {path} is a folder, and PREDICTION is read into memory: name a file, or scan "
                    "both by --memory-limit, such as 4GB"
                )
            table = read_columns(path, {"record": inputs.reading.record, "cluster": self.assist_cluster})
            clustering, read = clustering_of(table, path, f"second clustering {name!r}", CLUSTERS)
            message(f"assist: read {read}")
            seconds.append(Second.of(prediction, by=clustering, name=name, **shared))
        return Assisted(tuple(seconds))
