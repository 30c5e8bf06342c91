"""The command `erbayes clusters`: what a matcher wrote, as records and their clusters."""

from __future__ import annotations

from enum import Enum

from .._internal.errors import DataError
from .answers import Answer
from .lazily import pd
from .options import command, message, option
from .predictions import PredictionOptions
from .printing import Printing


class Blank(Enum):
    """What records without a cluster are."""

    OWN = "own"
    OMIT = "omit"


@command("clusters")
def clusters_command(
    *,
    inputs: PredictionOptions,
    blank: Blank | None = option(
        "Records without a cluster: own (each is a cluster of its own, as dedupe means) or omit.",
        metavar="POLICY",
    ),
    printing: Printing,
) -> None:
    """Write what a matcher wrote as a table of record and cluster.

    PREDICTION is a file of any matcher: clusters, or links with their scores. Clusters of links are their
    connected components. Columns are found by their names and values, and a line says which were taken.

    \b
    Examples:
      erbayes clusters edges.csv@0.95 --records customers.csv -o clusters.csv
      erbayes clusters dedupe.csv --blank own -o clusters.csv
      erbayes clusters pairs.csv:id_a,id_b,score@14.7 -o clusters.csv
    """
    if inputs.part.table is not None:
        raise DataError("erbayes clusters reads files: name a file, and leave out --table")
    alone = None if blank is None else blank is Blank.OWN
    clustering, read = inputs.reading.read(inputs.part, "prediction", alone=alone)
    inputs.reading.refuse_unbound()
    message(f"read {read}")
    table = pd.DataFrame(
        {"record": clustering.records, "cluster": clustering.clusters.take(clustering.codes)}
    )
    printing.show(Answer(table=table, ids=True))
