"""Drawing from large predictions: `erbayes.labels.draw` against reading the columns of ids.

    python benchmarks/drawing_scale.py 5 20        # million rows of Parquet; needs the extra scale

A draw of 500 records counts all cluster sizes, chooses, looks for missing and duplicate ids, and reads all
members of the drawn clusters. Every measurement is a process of its own. Tables are written to a temporary
folder and deleted. Seconds are the least of the rounds, since other work on the machine only adds to them.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from common import write_large
from figures import stamp
from scale import THREADS, in_own_process, peak, read

DRAWS, BAR = 500, 2.0
PLANS = {"uniform records": "Records", "ends of predicted links": "LinkEnds"}


def read_by_pyarrow(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_cpu_count(THREADS)
    pq.read_table(path, columns=["record", "cluster"])


def drawn(path: Path, plan: str, folder: Path) -> str:
    from erbayes import labels as sampling
    from erbayes.large import DuckDB, drawing

    with drawing(path, database=DuckDB(threads=THREADS, folder=folder, progress=False)) as source:
        return sampling.draw(source, getattr(sampling, plan)(), n=DRAWS, seed=1).fingerprint


def scanned(path: Path, folder: Path) -> None:
    import pandas as pd

    from erbayes.large import DuckDB, scan

    scan(path, pd.read_parquet(folder / "labels.parquet"), database=DuckDB(threads=THREADS, folder=folder))


def measured(arm: str, folder: Path) -> tuple[float, float, float]:
    """Wall and processor seconds, peak memory in GiB."""
    import duckdb  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    import erbayes.labels  # noqa: F401

    path = folder / "prediction.parquet"
    work: dict[str, Callable[[], Any]] = {
        "read both columns, DuckDB": lambda: read(path),
        "read both columns, pyarrow": lambda: read_by_pyarrow(path),
        "erbayes.large.scan": lambda: scanned(path, folder),
    } | {name: lambda plan=plan: drawn(path, plan, folder) for name, plan in PLANS.items()}
    wall, cpu = time.perf_counter(), time.process_time()
    work[arm]()
    return time.perf_counter() - wall, time.process_time() - cpu, peak()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("millions", type=int, nargs="+")
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    arms = ["read both columns, DuckDB", "read both columns, pyarrow", "erbayes.large.scan", *PLANS]
    for millions in given.millions:
        with TemporaryDirectory() as name:
            folder = Path(name)
            in_own_process(write_large, millions * 1_000_000, folder)
            runs: dict[str, list[tuple[float, float, float]]] = {arm: [] for arm in arms}
            for _ in range(given.rounds):
                for arm in arms:
                    runs[arm].append(in_own_process(measured, arm, folder))
        print(f"{millions} million rows of Parquet, {DRAWS} draws")
        wall, cpu, memory = ({arm: [row[i] for row in runs[arm]] for arm in arms} for i in range(3))
        for arm in arms:
            ratios = ", ".join(f"{min(cpu[arm]) / min(cpu[base]):.2f}" for base in arms[:2])
            print(
                f"  {arm:27} {min(wall[arm]):6.2f} s {min(cpu[arm]):6.2f} s processor "
                f"{max(memory[arm]):5.2f} GiB   {ratios} times reading by DuckDB, by pyarrow",
                flush=True,
            )
        worst = max(min(cpu[plan]) for plan in PLANS) / min(cpu[arms[1]])
        print(f"  draws: {worst:.2f} times reading by pyarrow; the aim is {BAR}", flush=True)
    stamp("scale", "seed 1")


if __name__ == "__main__":
    main()
