"""Options of second clusterings of the records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ..assisted import Assisted
from ..errors import DataError, head
from ..files import read_columns
from ..second import Second
from .inputs import CLUSTERS, One, clustering_of, stem
from .options import file_option, message


@dataclass(frozen=True, kw_only=True)
class Assist:
    """Options of second clusterings of the records, which help to estimate."""

    assist: Annotated[
        list[Path] | None,
        file_option(
            "A second clustering of the records, such as the next release: record and cluster, for all "
            "records. It shortens intervals. Give it several times for several."
        ),
    ] = None
    assist_cluster: Annotated[
        str | None, typer.Option(help="With --assist, the cluster column of its files.")
    ] = None

    def __post_init__(self) -> None:
        if self.assist_cluster is not None and not self.assist:
            raise DataError("--assist-cluster needs --assist")

    def engine(self, inputs: One) -> Assisted:
        """Read the second clusterings, and count them together with the prediction."""
        paths = self.assist or []
        if inputs.reading.scanned([inputs.part], inputs.framed.frame):
            raise DataError(
                f"--assist needs a PREDICTION that is read into memory, and {inputs.prediction} is scanned "
                "where it lies: write its records and clusters to a file of less than 256 MB, and leave out "
                "--table and --memory-limit"
            )
        names = [stem(path) for path in paths]
        if len(set(names)) < len(names):
            raise DataError(f"second clusterings go by their files' names, which must differ: {head(names)}")
        prediction, shared, _ = inputs.memory
        seconds = []
        for name, path in zip(names, paths, strict=True):
            table = read_columns(path, {"record": inputs.reading.record, "cluster": self.assist_cluster})
            clustering, read = clustering_of(table, path, f"second clustering {name!r}", CLUSTERS)
            message(f"assist: read {read}")
            seconds.append(Second.of(prediction, by=clustering, name=name, **shared))
        return Assisted(tuple(seconds))
