"""Large predictions to measure on: ids like US7654321-2, cluster sizes with a heavy tail up to 5,000."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

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


def write(records: int, folder: Path) -> None:
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
