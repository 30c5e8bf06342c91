"""A second clustering counted where it lies, against reading the columns into pandas.

    python benchmarks/seconds.py 5 20      # million rows; needs the extra scale

A table has text ids of records and three clusterings: the prediction, one that has 5 % of records elsewhere,
and a useless one. Every measurement is a process of its own, so that its peak memory is its own. Tables are
written to a temporary folder and deleted.
"""

import argparse
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from common import write_large

THREADS = 2
NAMES = {"record": "record", "cluster": "old"}


def made(records: int, folder: Path) -> tuple[Path, pd.DataFrame]:
    """Write the table of `common.write_large` with two clusterings more, and return the labels."""
    import duckdb

    write_large(records, folder)
    path, source, clusters = folder / "t.parquet", folder / "prediction.parquet", records // 4
    other = (
        f"CASE WHEN hash(record, {{0}}) % 100 < {{1}} THEN 'x' || hash(record) % {clusters} ELSE cluster END"
    )
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT record, cluster AS old, {other.format(3, 5)} AS new, "
            f"{other.format(5, 100)} AS useless FROM '{source}') TO '{path}' (FORMAT parquet)"
        )
    return path, pd.read_parquet(folder / "labels.parquet")


def read(path: Path, labels: pd.DataFrame, folder: Path) -> list[float]:
    """Read the columns of records and of one clustering, and nothing else."""
    pd.read_parquet(path, columns=["record", "old"])
    return []


def memory(path: Path, labels: pd.DataFrame, folder: Path) -> list[float]:
    import erbayes as eb

    table = pd.read_parquet(path, columns=["record", "old", "new"]).set_index("record")
    return values(eb.auxiliary.Second.of(table["old"], labels, by=table["new"]))


def scanned(path: Path, labels: pd.DataFrame, folder: Path, **seconds: Any) -> list[float]:
    import erbayes as eb
    from erbayes.large import Columns, DuckDB, SecondSource, scan

    sources = {name: SecondSource(**options) for name, options in seconds.items()}
    database = DuckDB(None, THREADS, folder, progress=False)
    units = scan(path, labels, Columns(**NAMES), seconds=sources, database=database)
    return values(*eb.auxiliary.Second.scanned(units)) if seconds else []


def values(second: Any) -> list[float]:
    return [second.value(name) for name in ("pairwise-precision", "pairwise-recall", "b3-recall")]


WAYS: dict[str, Any] = {
    "pandas reads record and cluster": (read, {}),
    "in memory": (memory, {}),
    "scan without a second clustering": (scanned, {}),
    "scan, second column": (scanned, {"new": {"cluster": "new"}}),
    "scan, second table": (scanned, {"new": {"source": "PATH", "cluster": "new", "record": "record"}}),
    "scan, useless second column": (scanned, {"useless": {"cluster": "useless"}}),
}


def measured(way: str, path: Path, labels: pd.DataFrame, folder: Path) -> dict[str, Any]:
    work, options = WAYS[way]
    options = {n: {k: path if v == "PATH" else v for k, v in o.items()} for n, o in options.items()}
    start, before = time.perf_counter(), time.process_time()
    found = work(path, labels, folder, **options)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "way": way,
        "seconds": round(time.perf_counter() - start, 1),
        "processor seconds": round(time.process_time() - before, 1),
        "peak GiB": round(peak, 2),
        "values": found,
    }


def in_own_process(work: Any, *args: Any) -> Any:
    """Run in a new process. A process inherits the peak memory of its parent, which therefore stays small."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(work, *args).result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("millions", nargs="+", type=int)
    for millions in parser.parse_args().millions:
        with TemporaryDirectory() as name:
            folder = Path(name)
            path, labels = in_own_process(made, millions * 1_000_000, folder)
            found: list[dict[str, Any]] = []
            for way in WAYS:
                found.append(in_own_process(measured, way, path, labels, folder))
                print(millions, found[-1], flush=True)
        exact = found[1]["values"]
        for row in found[3:5]:
            assert all(abs(a / b - 1) < 1e-12 for a, b in zip(row["values"], exact, strict=True)), row


if __name__ == "__main__":
    main()
