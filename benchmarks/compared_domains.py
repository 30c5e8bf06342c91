"""Differences of two predictions by group of records: which intervals are given, and what they cover.

    python benchmarks/compared_domains.py [--samples 60]

Two predictions split and merge the same entities at random, at rates that differ a little, in groups of whole
entities. Each cell has samples of 100 and 300 uniform records, and of as many uniform clusters.
"""

import argparse
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from common import as_markdown
from figures import stamp
from numpy.typing import NDArray

import erbayes as eb
from erbayes.analysis.domains import compare_by_domain
from erbayes.design.contract import Design

METRICS = ["pairwise-recall", "pairwise-precision", "b3-precision", "cluster-recall"]
SIZES = (100, 300)
Counts = NDArray[np.int64]


def make_populations() -> dict[str, tuple[Counts, tuple[float, float], tuple[float, float], int]]:
    """Return sizes of entities, shares of entities split and merged by either prediction, and groups."""
    rng = np.random.default_rng(77)
    return {
        "zeta": (np.minimum(rng.zipf(2.2, 3000), 40), (0.15, 0.12), (0.05, 0.05), 2),
        "merges": (rng.geometric(0.35, 3000), (0.1, 0.1), (0.03, 0.01), 2),
        "Poisson": (1 + rng.poisson(2, 3000), (0.25, 0.15), (0.06, 0.06), 3),
        "even": (np.full(1500, 5), (0.3, 0.25), (0.08, 0.04), 4),
    }


def predict(truth: Counts, split: float, merged: float, rng: np.random.Generator) -> "pd.Series[str]":
    """Merge entities at random in pairs, and split others in two."""
    entities = truth[-1] + 1
    home, joined = np.arange(entities), np.flatnonzero(rng.random(entities) < merged)
    home[joined] = np.minimum(joined, rng.permutation(joined))
    off = (rng.random(entities) < split)[truth] & (rng.random(len(truth)) < 0.5)
    return pd.Series(home[truth].astype(str)) + np.where(off, "s", "")


def draw(truth: "pd.Series[Any]", n: int, rng: np.random.Generator) -> Iterator[tuple[str, set[int], Design]]:
    """Yield a sample of records and one of entities: the way, the entities, the design."""
    entities = int(truth.iloc[-1]) + 1
    of_records = truth.to_numpy()[rng.integers(0, len(truth), n)].tolist()
    yield "records", set(of_records), eb.UniformRecords(of_records)
    yield (
        "clusters",
        set(rng.choice(entities, n, replace=False).tolist()),
        eb.UniformClusters(population=entities),
    )


def study(samples: int) -> pd.DataFrame:
    """Return one row per interval, with the true difference."""
    rows = []
    for at, (name, (sizes, split, merged, groups)) in enumerate(make_populations().items()):
        rng = np.random.default_rng([5, at])
        of_record = np.repeat(np.arange(len(sizes)), sizes).astype(np.int64)
        truth = pd.Series(of_record)
        group = pd.Series(rng.integers(0, groups, len(sizes)).astype(str)[of_record])
        old, new = (predict(of_record, *rates, rng) for rates in zip(split, merged, strict=True))
        predictions, census = {"old": old, "new": new}, eb.UniformClusters(population=len(sizes))
        whole = compare_by_domain(eb.compare(predictions, truth, census, METRICS), group, METRICS).table()
        right = whole.set_index(["domain", "metric"])["estimate"]
        for n in SIZES * samples:
            for way, entities, design in draw(truth, n, rng):
                compared = eb.compare(predictions, truth[truth.isin(entities)], design, METRICS)
                table = compare_by_domain(compared, group, METRICS).table()
                places = pd.MultiIndex.from_frame(table[["domain", "metric"]])
                rows.append(table.assign(population=name, n=n, way=way, truth=right.loc[places].to_numpy()))
    return pd.concat(rows)


def main() -> None:
    asked = argparse.ArgumentParser(description="Differences of two predictions by group.")
    asked.add_argument("--samples", type=int, default=60)
    warnings.simplefilter("ignore", eb.Alarm)
    found = study(asked.parse_args().samples)
    found["given"] = found["lower"].notna()
    shown = found[found["given"]].copy()
    shown["coverage"] = shown["truth"].between(shown["lower"], shown["upper"])
    below, above = shown["lower"] - shown["truth"], shown["truth"] - shown["upper"]
    outside = below.clip(lower=0) + above.clip(lower=0)
    shown["score"] = shown["upper"] - shown["lower"] + 40 * outside
    by = ["way", "metric"]
    table = shown.groupby(by)[["coverage", "score"]].mean()
    table.insert(0, "given", found.groupby(by)["given"].mean())
    print(as_markdown(table.round(3).reset_index()))
    cells = shown.groupby([*by, "population", "n"])["coverage"].agg(["mean", "size"])
    print(f"\nmean {shown['coverage'].mean():.3f}; least of cells with 40 intervals or more:")
    print(as_markdown(cells[cells["size"] >= 40].nsmallest(3, "mean").round(3).reset_index()))
    stamp("compared-domains", "seed 5")


if __name__ == "__main__":
    main()
