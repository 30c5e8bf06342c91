"""Differences of two predictions by a size model: draws of the model, the closed form, and their average.

    python benchmarks/model_differences.py FILE [--samples 40] [--only WORD]

The ends of 95 % intervals of the new less the old prediction's pairwise precision (P) and recall (R), from
100 uniform records and 100 uniform entities: by gains less losses of the closed form, by posterior draws in
the order of their true links, by their span, and as `erbayes.compare` prints them with the engine "size
model", an average of both. FILE keeps the ends as CSV, and cells that it has are not done again. Populations
were written down before any difference was judged on them.
"""

import argparse
import warnings
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import populations as sim
from common import PR, as_markdown
from figures import stamp
from good_matchers import Pair, pair_of

import erbayes as eb
from erbayes._internal.arrays import IntArray
from erbayes.analysis.comparison import compare_counted
from erbayes.bayes import Modelled, compiled
from erbayes.design.contract import Design
from erbayes.units import Units
from erbayes.units.settled import Overlaps

RECORDS, DRAWS, POSTERIOR = 40_000, 100, 400
CELL = ["design", "metric", "population"]
WAYS = ("closed form", "draws", "span", "quoted")
Errors = tuple[sim.Mechanism, ...]


def of_errors(law: sim.EntitySizes, old: Errors, new: Errors, seed: int) -> Callable[[], Pair]:
    """Return a truth, and two predictions with mechanisms of error of their own."""

    def make() -> Pair:
        truth = sim.population(law, RECORDS, np.random.default_rng(seed)).to_numpy()
        found = [
            sim.Chain(list(e)).apply(truth, np.random.default_rng([seed, i]))
            for i, e in enumerate((old, new))
        ]
        return Pair(truth, *found)

    return make


def named(name: str) -> Callable[[], Pair]:
    return lambda: pair_of(name)


PAIRS: dict[str, Callable[[], Pair]] = {
    "both nearly perfect": named("near-perfect, lumps of 2"),
    "triples, both good": named("triples"),
    "ordinary, alike": named("ordinary"),
    "giants, alike": named("heavy tail"),
    "one good, one worse": of_errors(
        sim.LogNormal(0.8, 1.0),
        (sim.Splits(0.4), sim.Merges(0.05)),
        (sim.Splits(0.1), sim.Merges(0.02)),
        4101,
    ),
    "heavy tail, splits or merges": of_errors(
        sim.Zeta(2.2, 4000), (sim.Splits(0.3),), (sim.Misattribution(0.04), sim.Merges(0.04)), 4102
    ),
    "capped at 40, or whole": of_errors(
        sim.Zeta(2.1, 3000), (sim.Misattribution(0.03), sim.Capped(40)), (sim.Misattribution(0.03),), 4103
    ),
    "giants in halves, or in four": of_errors(
        sim.LogNormal(0.7, 1.4),
        (sim.Even(4, 80), sim.Merges(0.02)),
        (sim.Even(2, 80), sim.Merges(0.02), sim.Splits(0.05)),
        4104,
    ),
}


def draw(units: Units, design: str, rng: np.random.Generator) -> tuple[IntArray, Design]:
    """Return the positions of the drawn entities, and the design."""
    if design == "entities":
        return rng.choice(len(units), DRAWS, replace=False), eb.UniformClusters()
    at = sim.positions(units, eb.UniformRecords(), (1, DRAWS), rng)[0]
    return at, eb.UniformRecords(units.ids[at])


def find_ends(
    taken: dict[str, Units], design: Design, clusterings: list[eb.Clustering], seed: int
) -> pd.DataFrame:
    """Return the ends of the intervals of one sample, one row per metric."""
    with warnings.catch_warnings(), compiled():
        warnings.simplefilter("ignore")
        labelled = taken["old"].piece_of
        assert labelled is not None
        overlaps = Overlaps.of(clusterings, labelled.index)
        compared = compare_counted(taken, design, PR, overlaps, Modelled(draws=POSTERIOR), seed)
        moved = compared.subtract("old", "new")
    assert moved.other is not None
    closed, draws = moved.other.interval(), replace(moved, other=None).interval()
    widest = np.stack([np.minimum(closed, draws)[:, 0], np.maximum(closed, draws)[:, 1]], axis=-1)
    found: dict[str, Any] = {"metric": [m.name for m in PR]}
    for way, ends in zip(WAYS, (closed, draws, widest, moved.interval()), strict=True):
        found |= {f"{way} lower": ends[:, 0], f"{way} upper": ends[:, 1]}
    return pd.DataFrame(found)


def run(file: Path, samples: int, only: str) -> pd.DataFrame:
    """Return the ends of all intervals, one row per sample and metric."""
    known = [pd.read_csv(file)] if file.exists() else []
    done = {cell for one in known for cell in zip(one.population, one.design, strict=True)}
    for name, make in PAIRS.items():
        if only not in name or all((name, design) in done for design in ("records", "entities")):
            continue
        pair = make()
        truth = pd.Series(pair.truth)
        predictions = {"old": pd.Series(pair.old), "new": pd.Series(pair.new)}
        units = {which: eb.measure(p, truth) for which, p in predictions.items()}
        old, new = (sim.truths(u, PR) for u in units.values())
        clusterings = [eb.Clustering.of(p, which) for which, p in predictions.items()]
        print(f"{name}: P {old[0]:.3f} {new[0]:.3f}, R {old[1]:.3f} {new[1]:.3f}", flush=True)
        for design in ("records", "entities"):
            if (name, design) in done:
                continue
            for i in range(samples):
                seed = zlib.crc32(f"{name}, {design}, {i}".encode())
                at, drawn = draw(units["old"], design, np.random.default_rng(seed))
                taken = {which: u.take(np.unique(at)) for which, u in units.items()}
                of_sample = find_ends(taken, drawn, clusterings, seed)
                known.append(of_sample.assign(population=name, design=design, truth=new - old))
            pd.concat(known, ignore_index=True).to_csv(file, index=False)
    return pd.concat(known, ignore_index=True)


def judge(runs: pd.DataFrame) -> pd.DataFrame:
    """Return coverage and interval score, one row per cell and way."""
    tables = []
    for way in WAYS:
        lower, upper, truth = (runs[name].to_numpy() for name in (f"{way} lower", f"{way} upper", "truth"))
        miss = np.maximum(lower - truth, truth - upper)
        miss = np.where(miss > 1e-12, miss, 0.0)  # rounding of differences that are certain
        judged = runs[CELL].assign(way=way, coverage=miss == 0, score=upper - lower + 40 * miss)
        tables.append(judged.groupby([*CELL, "way"], sort=False)[["coverage", "score"]].mean())
    return pd.concat(tables)


def summarise(cells: pd.DataFrame) -> pd.DataFrame:
    """Return mean and lowest coverage, and two means of scores over the closed form's, by way."""
    of = cells.reset_index().groupby(["design", "metric", "way"], sort=False)
    table = of.agg(coverage=("coverage", "mean"), lowest=("coverage", "min"), score=("score", "mean"))
    logs = np.log(cells.score).groupby(["design", "metric", "way"], sort=False).mean()
    closed = table.xs("closed form", level="way")["score"], logs.xs("closed form", level="way")
    table["score"] = table["score"].div(closed[0])
    table["geometric"] = np.exp(logs.sub(closed[1]))
    return table.reset_index()


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description="Differences of two predictions by a size model.")
    asked.add_argument("file", type=Path, help="CSV of the ends, which goes on where it is")
    asked.add_argument("--samples", type=int, default=40, help="samples per cell")
    asked.add_argument("--only", default="", help="populations whose names have this word")
    args = asked.parse_args()
    cells = judge(run(args.file, args.samples, args.only))
    for column in ("coverage", "score"):
        print(as_markdown(cells[column].unstack("way").reset_index()), end="\n\n")
    print(as_markdown(summarise(cells)))
    stamp("model-differences", "seeds by names of cells")
