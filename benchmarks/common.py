"""What benchmarks share: tables as Markdown, the usual designs and releases, and large predictions."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from erbayes import metrics as m
from erbayes.labels import Records
from erbayes.metrics.columns import PREDICTED_LINKS, RECORDS, ClusterSum
from erbayes.study import UniformEntities
from erbayes.units.units import KnownTotals

PR = (m.pairwise_precision, m.pairwise_recall)
PLANS: dict[str, Records | UniformEntities] = {
    "uniform records": Records(),
    "uniform clusters": UniformEntities(),
}


@dataclass(frozen=True)
class Mixture:
    """A plan that is none of the package's: uniform records with share `alpha`, otherwise ends of links."""

    alpha: float = 0.2

    def column(self, known: KnownTotals) -> ClusterSum:
        """Return the chances of records, by the size of their predicted cluster."""
        uniform = self.alpha / known.total(RECORDS)
        rest = (1 - self.alpha) / known.total(PREDICTED_LINKS)
        return ClusterSum("mixture", lambda m: uniform + rest * PREDICTED_LINKS.phi(m))


RELEASES = ("20170808", "20171226", "20190820", "20201229")
"""Releases of PatentsView whose truth is that of 2022-06-30."""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table: a header, a rule and one line per row."""
    cells = [f"| {' | '.join(line)} |" for line in (header, *rows)]
    return "\n".join([cells[0], "|" + " --- |" * len(header), *cells[1:]])


def decimals(x: float, digits: int) -> str:
    """Return a number without the 0 before its point, or a dash if there is none."""
    return re.sub(r"(?<!\d)0\.", ".", f"{x:.{digits}f}") if np.isfinite(x) else "-"


def as_markdown(frame: pd.DataFrame) -> str:
    """Return a DataFrame as a Markdown table, with three decimals."""
    rows = [
        [decimals(x, 3) if isinstance(x, float) else str(x) for x in row]
        for row in frame.itertuples(index=False)
    ]
    return table(list(map(str, frame.columns)), rows)


# Large predictions: ids like US7654321-2, cluster sizes with a heavy tail up to 5,000

SINGLETONS, LARGEST, CHUNK = 0.44, 5000, 1_000_000
ENTITIES, FOREIGN = 400, 0.05


def sizes(records: int, rng: np.random.Generator) -> np.ndarray:
    """Cluster sizes that sum to `records`, of mean 4.5; P(size > x) falls like x**-2.2."""
    drawn = records // 4
    tail = np.minimum(2 + 6.9 * (rng.random(drawn) ** (-1 / 2.2) - 1), LARGEST)
    found = np.where(rng.random(drawn) < SINGLETONS, 1, tail).astype(np.int32)
    found[0] = LARGEST
    ends = np.cumsum(found, dtype=np.int64)
    last = int(np.searchsorted(ends, records))
    found[last] -= ends[last] - records
    return found[: last + 1]


def ids(numbers: np.ndarray) -> pa.Array:
    """US4000000-0, US4000000-1, US4000000-2, US4000001-0, ..."""
    patent = pa.array(4_000_000 + numbers // 3).cast(pa.string())
    return pc.binary_join_element_wise(
        pc.binary_join_element_wise("US", patent, ""), pa.array(numbers % 3).cast(pa.string()), "-"
    )


def write_large(records: int, folder: Path) -> None:
    """prediction.parquet, and labels.parquet: some predicted clusters, with a few records of others."""
    rng = np.random.default_rng(records)
    size = sizes(records, rng)
    cluster = np.repeat(np.arange(len(size), dtype=np.int32), size)
    first = np.cumsum(size, dtype=np.int64) - size
    name = rng.permutation(records).astype(np.int32)  # number in the id of each record
    labelled = np.flatnonzero(np.isin(cluster, cluster[rng.integers(records, size=ENTITIES)]))
    entity = name[first[cluster[labelled]]]
    foreign = rng.random(len(labelled)) < FOREIGN
    labelled[foreign] = rng.integers(records, size=foreign.sum())
    labelled, once = np.unique(labelled, return_index=True)
    labels = pa.table({"record": ids(name[labelled]), "entity": ids(entity[once])})
    pq.write_table(labels, folder / "labels.parquet")
    order = rng.permutation(records).astype(np.int32)
    schema = pa.schema({"record": pa.string(), "cluster": pa.string()})
    with pq.ParquetWriter(folder / "prediction.parquet", schema) as writer:
        for start in range(0, records, CHUNK):
            rows = order[start : start + CHUNK]
            columns = [ids(name[rows]), ids(name[first[cluster[rows]]])]
            writer.write_table(pa.table(columns, schema=schema))
