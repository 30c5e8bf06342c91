"""Scanning large predictions: `erbayes.large.scan` against hand-written DuckDB SQL of the same counts.

    python benchmarks/scale.py 5 20        # million rows; needs the extra scale
    python benchmarks/scale.py 100 --memory-limit 1GB --frames --rounds 1

Files are scanned without a memory limit and, where one is given, under it too; frames without. Every
measurement is a process of its own, so that its peak memory is its own. Tables are written to a temporary
folder and deleted.
"""

import argparse
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from common import write_large
from figures import stamp

THREADS, BAR = 2, 1.5
FRAMES = ["strings", "objects", "integers", "categories"]


def by_hand(table: Any, labels: pd.DataFrame, key: str, limit: str | None, folder: Path) -> tuple[int, ...]:
    import duckdb

    config = {"threads": THREADS, "preserve_insertion_order": False, "temp_directory": str(folder / "spill")}
    with duckdb.connect(config=config | ({"memory_limit": limit} if limit else {})) as con:
        con.register("labels", labels)
        name = f"'{table}'"
        if not isinstance(table, Path):
            con.register("p", table)
            name = "p"
        con.execute(f"CREATE TEMP TABLE sizes AS SELECT {key} AS k, COUNT(*) AS m FROM {name} GROUP BY k")
        histogram = con.execute("SELECT m, COUNT(*) FROM sizes GROUP BY m").fetchall()
        pieces = con.execute(
            f"SELECT entity, k, m, COUNT(*) FROM (SELECT entity, {key} AS k FROM {name} JOIN labels "
            "USING (record)) JOIN sizes USING (k) GROUP BY ALL"
        ).fetchall()
    return summary(histogram, [(n, m) for *_, m, n in pieces])


def counts(units: Any) -> tuple[int, ...]:
    """Return the same counts, from units of erbayes."""
    return summary(zip(units.known.size, units.known.count, strict=True), zip(units.n, units.m, strict=True))


def scanned(table: Any, labels: pd.DataFrame, limit: str | None, folder: Path) -> tuple[int, ...]:
    from erbayes.large import DuckDB, scan

    return counts(scan(table, labels, database=DuckDB(limit, THREADS, folder)))


def summary(histogram: Any, pieces: Any) -> tuple[int, ...]:
    """Records, clusters, links; pieces, and two sums over them."""
    known, met = [(int(m), int(k)) for m, k in histogram], [(int(n), int(m)) for n, m in pieces]
    return (
        sum(m * k for m, k in known),
        sum(k for _, k in known),
        sum(k * m * (m - 1) // 2 for m, k in known),
        len(met),
        sum(n * n for n, _ in met),
        sum(n * m for n, m in met),
    )


def read(path: Path) -> None:
    import duckdb

    with duckdb.connect(config={"threads": THREADS}) as con:
        con.execute(f"SELECT SUM(LENGTH(record) + LENGTH(cluster)) FROM '{path}'").fetchall()


def frame_of(path: Path, kind: str) -> pd.DataFrame:
    frame = pd.read_parquet(path)
    match kind:
        case "integers":
            return frame.apply(lambda ids: ids.str[2:].str.replace("-", "").astype("int64"))
        case "categories":
            return frame.astype({"cluster": "category"})
        case "objects":
            return frame.astype(object)
    return frame


def measured(arm: str, folder: Path, kind: str | None, limit: str | None) -> tuple[float, float, float, Any]:
    """Wall and processor seconds, peak memory in GiB (of frames: beyond what there was before), result."""
    import duckdb  # noqa: F401

    import erbayes.large  # noqa: F401

    path = folder / "prediction.parquet"
    labels = pd.read_parquet(folder / "labels.parquet")
    table: Any = path
    if kind is not None:
        table = frame_of(path, kind)
        if kind == "integers":
            labels["record"] = labels.record.str[2:].str.replace("-", "").astype("int64")
    work: dict[str, Callable[[], Any]] = {
        "read both columns": lambda: read(path),
        "SQL by hand": lambda: by_hand(table, labels, "cluster", limit, folder),
        "SQL by hand, hashed": lambda: by_hand(table, labels, "hash(cluster)", limit, folder),
        "erbayes.large.scan": lambda: scanned(table, labels, limit, folder),
        "erbayes.measure": lambda: measure(table, labels),
    }
    before = peak() if kind else 0.0
    wall, cpu = time.perf_counter(), time.process_time()
    found = work[arm]()
    return time.perf_counter() - wall, time.process_time() - cpu, peak() - before, found


def measure(table: pd.DataFrame, labels: pd.DataFrame) -> tuple[int, ...]:
    import erbayes as eb

    return counts(eb.measure(table, labels))


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def in_own_process(work: Callable[..., Any], *args: Any) -> Any:
    """Run in a new process. A process inherits the peak memory of its parent, which therefore stays small."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(work, *args).result()


def compared(
    arms: list[str], folder: Path, kind: str | None, limit: str | None, rounds: int
) -> dict[str, float]:
    """Processor seconds of each arm, medians of rounds in turns; all arms must count the same."""
    runs: dict[str, list[Any]] = {arm: [] for arm in arms}
    for _ in range(rounds):
        for arm in arms:
            try:
                runs[arm].append(in_own_process(measured, arm, folder, kind, limit))
            except Exception as error:
                runs[arm].append((float("nan"), float("nan"), float("nan"), None))
                print(f"{arm}: {str(error).splitlines()[0]}")
    if len({found for rows in runs.values() for *_, found in rows if found is not None}) != 1:
        sys.exit("failed: the counts differ")
    cpu = {arm: median(seconds for _, seconds, *_ in rows) for arm, rows in runs.items()}
    for arm, rows in runs.items():
        wall, memory = median(r[0] for r in rows), max(r[2] for r in rows)
        ratio = cpu["erbayes.large.scan"] / cpu[arm]
        print(
            f"  {arm:22} {wall:7.2f} s {cpu[arm]:7.2f} s processor {memory:6.2f} GiB   "
            f"scan is {ratio:.2f} times it",
            flush=True,
        )
    return cpu


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("millions", type=int, nargs="+")
    options.add_argument("--memory-limit")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--frames", nargs="*", choices=FRAMES, default=FRAMES)
    given = options.parse_args()
    failed = False
    for millions in given.millions:
        with TemporaryDirectory() as name:
            folder = Path(name)
            in_own_process(write_large, millions * 1_000_000, folder)
            size = (folder / "prediction.parquet").stat().st_size / 2**20
            print(f"{millions} million rows of Parquet, {size:.0f} MiB")
            arms = ["read both columns", "SQL by hand", "SQL by hand, hashed", "erbayes.large.scan"]
            for limit in dict.fromkeys([None, given.memory_limit]):
                if limit:
                    print(f"the same, memory limit {limit}")
                cpu = compared(arms, folder, None, limit, given.rounds)
                failed |= cpu["erbayes.large.scan"] > BAR * cpu["SQL by hand"]
            for kind in given.frames:
                print(f"{millions} million rows of pandas {kind}; memory beyond the frame")
                arms = [] if kind == "categories" else ["SQL by hand"]
                compared([*arms, "erbayes.large.scan", "erbayes.measure"], folder, kind, None, given.rounds)
    stamp("scale", "seed: the number of records")
    if failed:
        sys.exit(f"failed: more than {BAR} times the processor time of SQL by hand")


if __name__ == "__main__":
    main()
