"""Scanning with Spark in local mode: `erbayes.large.scan` against hand-written SQL of the same counts.

    python benchmarks/spark.py 1 5        # million rows; needs the extras spark and scale, and Java 17

One session runs everything, after a first query that starts its processes. Seconds are those of the clock,
for a Java process does the work. Tables are written to a temporary folder and deleted.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from common import write_large
from pyspark.sql import DataFrame, SparkSession
from scale import THREADS, counts, in_own_process, summary

from erbayes.large import scan


def started(folder: Path) -> SparkSession:
    return (
        SparkSession.builder.master(f"local[{THREADS}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.local.dir", str(folder))
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.sql.shuffle.partitions", str(4 * THREADS))
        .getOrCreate()
    )


def by_hand(session: SparkSession, table: DataFrame, labels: pd.DataFrame) -> tuple[int, ...]:
    table.createOrReplaceTempView("p")
    session.createDataFrame(labels).createOrReplaceTempView("labels")
    sizes = "SELECT cluster, COUNT(*) AS m FROM p GROUP BY cluster"
    histogram = session.sql(f"SELECT m, COUNT(*) FROM ({sizes}) GROUP BY m").collect()
    pieces = session.sql(
        f"SELECT m, n FROM (SELECT entity, cluster, COUNT(*) AS n FROM p JOIN labels USING (record) "
        f"GROUP BY entity, cluster) JOIN ({sizes}) USING (cluster)"
    ).collect()
    return summary(histogram, [(n, m) for m, n in pieces])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("millions", type=int, nargs="+")
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    with TemporaryDirectory() as name:
        session = started(Path(name))
        for millions in given.millions:
            in_own_process(write_large, millions * 1_000_000, Path(name))
            labels = pd.read_parquet(Path(name) / "labels.parquet")
            table = session.read.parquet(str(Path(name) / "prediction.parquet"))
            table.selectExpr("SUM(LENGTH(record) + LENGTH(cluster))").collect()
            arms: dict[str, Callable[[], Any]] = {
                "SQL by hand": lambda t=table, s=labels: by_hand(session, t, s),
                "erbayes.large.scan": lambda t=table, s=labels: counts(scan(t, s)),
            }
            seconds: dict[str, list[float]] = {arm: [] for arm in arms}
            results = set()
            for _ in range(given.rounds):
                for arm, work in arms.items():
                    start = time.perf_counter()
                    results.add(work())
                    seconds[arm].append(time.perf_counter() - start)
            if len(results) != 1:
                sys.exit("failed: the counts differ")
            wall = {arm: median(each) for arm, each in seconds.items()}
            ratio = wall["erbayes.large.scan"] / wall["SQL by hand"]
            print(
                f"{millions} million rows: " + ", ".join(f"{arm} {s:.1f} s" for arm, s in wall.items()),
                f"ratio {ratio:.2f}",
                sep=", ",
                flush=True,
            )
        session.stop()


if __name__ == "__main__":
    main()
