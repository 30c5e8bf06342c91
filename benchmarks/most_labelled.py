"""Drawn records that lead to three quarters of all records: two designs, and three kinds of interval.

    python benchmarks/most_labelled.py [--samples 300] [--fits 40]

Four populations of 205 entities, of which 150 uniform records reach some 60, with three quarters of records.
Pairwise precision (P) and recall (R) by `UniformRecords` and `DistinctEntities` with the default interval and
Wald's, and in --fits samples by the size model and the pool. A row has sd, coverage and mean width of each.
"""

import argparse
import warnings
from typing import Any

import numpy as np
import pandas as pd
from common import PR, as_markdown

import erbayes as eb
from erbayes import bayes
from erbayes.study import populations as simulate

ENTITIES, DRAWS, SEEDS = 205, 150, (1, 2, 3, 4)
LAW = simulate.Chain([simulate.Splits(0.1), simulate.Misattribution(0.015), simulate.Merges(0.03)])
KINDS = {"default": None, "Wald": eb.intervals.WALD}


def make_population(rng: np.random.Generator) -> simulate.Population:
    """Return log-normal entities of at most 240 records, with errors."""
    sizes = np.round(np.exp(rng.normal(0.9, 1.7, ENTITIES))).clip(1, 240).astype(int)
    true = np.repeat(np.arange(ENTITIES), sizes)
    return simulate.Population.of(pd.Series(LAW.apply(true, rng)), pd.Series(true))


def measure_samples(seed: int, samples: int, fitted: bool) -> list[dict[str, Any]]:
    """Return a row per sample, design, interval and metric."""
    rng, rows = np.random.default_rng(seed), list[dict[str, Any]]()
    world = make_population(rng)
    for _ in range(samples):
        drawn = world.true.iloc[rng.integers(len(world.true), size=DRAWS)]
        units = eb.measure(world.pred, world.true[world.true.isin(drawn)])
        distinct = eb.Sample(units, eb.DistinctEntities(draws=DRAWS))
        if fitted:
            table = bayes.fast(distinct, rng=int(rng.integers(10**9))).table(0.95, PR)
            tables = {("distinct", f"{kind}_"): table for kind in ("posterior", "pooled")}
        else:
            both = {"uniform": eb.Sample(units, eb.UniformRecords(list(drawn))), "distinct": distinct}
            found = {name: eb.estimate(sample, metrics=PR) for name, sample in both.items()}
            tables = {(name, kind): found[name].table(0.95, KINDS[kind]) for name in found for kind in KINDS}
        for (design, kind), table in tables.items():
            prefix = kind if fitted else ""
            for metric, row in table.iterrows():
                low, high, truth = row[f"{prefix}lower"], row[f"{prefix}upper"], world.value(str(metric))
                about = {"population": seed, "metric": metric, "design": design, "interval": kind.rstrip("_")}
                values = {
                    "estimate": row["estimate"],
                    "covers": low <= truth <= high,
                    "width": high - low,
                }
                rows.append(about | values)
    return rows


def main() -> None:
    """Print a table of both metrics, one row per population, design and interval."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--samples", type=int, default=300)
    asked.add_argument("--fits", type=int, default=40, help="samples per population for the size model")
    args = asked.parse_args()
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # alarms, of each sample anew
        for seed in SEEDS:
            rows += measure_samples(seed, args.samples, False) + measure_samples(seed, args.fits, True)
    by = pd.DataFrame(rows).groupby(["design", "interval", "population", "metric"])
    table = by.agg(sd=("estimate", "std"), coverage=("covers", "mean"), width=("width", "mean"))
    wide = pd.DataFrame(table.unstack("metric"))
    wide.columns = pd.Index([f"{column[0]} {column[1]}" for column in wide.columns.to_flat_index()])
    print(as_markdown(wide.reset_index()))


if __name__ == "__main__":
    main()
