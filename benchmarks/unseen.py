"""What no draw has shown: intervals of good matchers, and of their differences, under repeated sampling.

    python benchmarks/unseen.py --set choice --out FILE.csv [--samples 200] [--designs records entities]
        [--n 50 400] [--engine bootstrap] [--processes 2] [--against OTHER.csv] [--doors]

Errors of good matchers are rare and come in lumps, so that many samples show none. `good_matchers.py` has the
populations, in a set that rules are chosen on and one that is held out.

Each sample is judged as by `erbayes.estimate` of the old and of the new prediction and by `erbayes.compare`
of both. To be fast, populations are measured once and samples are taken from them; --doors exits with an
error if the doors themselves print other intervals (for engines without chance; a few samples will do). FILE
has one row per cell: the share of samples whose interval is given, holds the truth, lies below it or above
it, has no length, or excludes 0; its mean width, and its mean interval score (Gneiting and Raftery 2007).
--against adds ratios of scores to another FILE, such as one of an older version: of all cells, and of those
of ordinary populations which the other version covers.

A set of 200 samples a cell under records and entities takes 5 minutes.
"""

import argparse
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import joblib
import numpy as np
import pandas as pd
import populations as sim
from common import Mixture, as_markdown
from figures import stamp
from good_matchers import ORDINARY, SETS, pair_of

import erbayes as eb
from erbayes._internal.arrays import FloatArray, IntArray
from erbayes.analysis.comparison import Comparison, compare_counted
from erbayes.design.contract import Design
from erbayes.engine.named import find_engine
from erbayes.metrics.definitions import DEFAULT_METRICS, resolve_metrics
from erbayes.units import Units
from erbayes.units.settled import Overlaps

METRICS = resolve_metrics([*DEFAULT_METRICS, "cluster-precision"])
DOORS = ("old", "new", "difference")
ALPHA, ROUNDING, COVERS = 0.05, 1e-12, 0.93


@dataclass(frozen=True)
class Population:
    """A truth and two predictions by name, with the units of all entities, whose ids are their positions.

    `clusterings`: those of the predictions; `right`: true metrics of both and their differences, (doors,
    metrics).
    """

    truth: "pd.Series[Any]"
    predictions: "dict[str, pd.Series[Any]]"
    units: dict[str, Units]
    clusterings: list[eb.Clustering]
    right: FloatArray


@cache
def population(name: str) -> Population:
    """Measure a population once."""
    pair = pair_of(name)
    truth, predictions = pd.Series(pair.truth), {"old": pd.Series(pair.old), "new": pd.Series(pair.new)}
    units = {which: eb.measure(prediction, truth) for which, prediction in predictions.items()}
    old, new = (sim.truths(u, METRICS) for u in units.values())
    clusterings = [eb.Clustering.of(p, which) for which, p in predictions.items()]
    return Population(truth, predictions, units, clusterings, np.array([old, new, new - old]))


# Designs: positions of the drawn entities, and what makes the design of their units on the old prediction

Drawn = tuple[IntArray, Callable[[Units], Design]]


def draw_records(old: Units, n: int, rng: np.random.Generator) -> Drawn:
    at = sim.positions(old, eb.UniformRecords(), (1, n), rng)[0]
    return at, lambda _: eb.UniformRecords(old.ids[at])


def draw_entities(old: Units, n: int, rng: np.random.Generator) -> Drawn:
    return rng.choice(len(old), n, replace=False), lambda _: eb.UniformClusters()


def draw_mixture(old: Units, n: int, rng: np.random.Generator) -> Drawn:
    """Draw uniform records and ends of links, with weights that are kept for the new prediction."""
    assert old.known is not None
    column = Mixture(0.3).column(old.known)
    at = sim.positions(old, eb.design.ByPredictedSize(column), (1, n), rng)[0]
    design = eb.design.ByPredictedSize(column, old.ids[at], old.known)
    return at, lambda taken: eb.design.FrozenWeights(design, taken)


def draw_strata(old: Units, n: int, rng: np.random.Generator) -> Drawn:
    """Draw as many entities of each stratum, or all of them, and the rest in the largest one.

    Strata are by the largest old cluster that an entity touches, of 1, of 2 or 3, or of more records.
    """
    _, stratum, sizes = np.unique(
        np.digitize(old.largest_touched, (2, 4)), return_inverse=True, return_counts=True
    )
    drawn = np.minimum(sizes, n // len(sizes))
    drawn[sizes.argmax()] += n - drawn.sum()
    at = [rng.choice(np.flatnonzero(stratum == h), k, replace=False) for h, k in enumerate(drawn)]
    design = eb.Stratified(pd.Series(stratum), dict(enumerate(sizes.tolist())))
    return np.concatenate(at), lambda _: design


DESIGNS: dict[str, Callable[[Units, int, np.random.Generator], Drawn]] = {
    "records": draw_records,
    "entities": draw_entities,
    "mixture": draw_mixture,
    "strata": draw_strata,
}


# Judging

Cell = tuple[str, str, int]
"""A population, a design, and a number of draws."""


def draw_samples(cell: Cell, samples: int) -> Iterator[tuple[Drawn, int]]:
    """Yield samples, each with a seed for engines: the same for every engine and version."""
    name, design, n = cell
    for number in range(samples):
        seed = zlib.crc32(f"{name}, {design}, {n}, {number}".encode())
        yield DESIGNS[design](population(name).units["old"], n, np.random.default_rng(seed)), seed


def compared(
    whole: Population, taken: dict[str, Units], design: Design, engine: str, seed: int
) -> Comparison:
    """Return the comparison of the units of a sample, with what is known of the whole predictions."""
    labelled = taken["old"].piece_of
    assert labelled is not None
    overlaps = Overlaps.of(whole.clusterings, labelled.index)
    return compare_counted(taken, design, METRICS, overlaps, find_engine(engine), seed)


def limits(cell: Cell, samples: int, engine: str) -> FloatArray:
    """Return the intervals of some samples, (samples, doors, metrics, 2), from units of the population."""
    whole, found = population(cell[0]), np.full((samples, len(DOORS), len(METRICS), 2), np.nan)
    for at_doors, ((at, make), seed) in zip(found, draw_samples(cell, samples), strict=True):
        taken = {name: units.take(np.unique(at)) for name, units in whole.units.items()}
        design = make(taken["old"])
        for door, units in enumerate(taken.values()):
            fit = find_engine(engine)(eb.Sample(units, design), METRICS, seed)
            at_doors[door] = fit.table()[["lower", "upper"]]
        at_doors[-1] = compared(whole, taken, design, engine, seed).differences()[["lower", "upper"]]
    return found


def limits_at_doors(cell: Cell, samples: int, engine: str) -> FloatArray:
    """Return what `limits` does, by `erbayes.estimate` and `erbayes.compare` of predictions and labels."""
    whole, found = population(cell[0]), []
    for (at, make), seed in draw_samples(cell, samples):
        labels = whole.truth[whole.truth.isin(at)]
        given = labels, make(eb.measure(whole.predictions["old"], labels)), METRICS
        by = find_engine(engine)
        tables = [eb.estimate(p, *given, engine=by, rng=seed).table() for p in whole.predictions.values()]
        tables.append(eb.compare(whole.predictions, *given, engine=by, rng=seed).differences())
        found.append([table[["lower", "upper"]] for table in tables])
    return np.array(found)


def judge(cell: Cell, samples: int, engine: str) -> pd.DataFrame:
    """Return one row per door and metric of a cell."""
    warnings.simplefilter("ignore")
    lower, upper = np.moveaxis(limits(cell, samples, engine), -1, 0)
    right, given = population(cell[0]).right, ~np.isnan(lower)
    below, above = (np.where(x > ROUNDING, x, 0) for x in (right - upper, lower - right))
    shares = {
        "coverage": (below == 0) & (above == 0),
        "below": below > 0,
        "above": above > 0,
        "width": upper - lower,
        "score": upper - lower + 2 / ALPHA * (below + above),
        "no length": upper - lower <= ROUNDING,
        "excludes 0": (lower > ROUNDING) | (upper < -ROUNDING),
    }
    rows = pd.DataFrame([(*cell, *of) for of in product(DOORS, (m.name for m in METRICS))], columns=CELL)
    rows["truth"], rows["given"] = right.ravel(), given.mean(axis=0).ravel()
    return rows.assign(**{k: np.nanmean(np.where(given, x, np.nan), 0).ravel() for k, x in shares.items()})


# Printing

CELL = ["population", "design", "n", "door", "metric"]


def add_ratios(rows: pd.DataFrame, against: str) -> pd.DataFrame:
    """Add logarithms of ratios of scores, and those of ordinary populations where the other file covers."""
    found = pd.read_csv(against).set_index(CELL)
    other = found.loc[pd.MultiIndex.from_frame(rows[CELL])].set_index(rows.index)
    both = (rows.score > 0) & (other.score > 0)
    ratio = pd.Series(np.log(rows.score / other.score)).where(both)
    ordinary = rows.population.isin(ORDINARY) & (other.coverage >= COVERS)
    return rows.assign(**{"log ratio": ratio, "log ordinary": ratio.where(ordinary)})


def summarise(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return what groups of cells cover, and the geometric means of their scores or ratios."""
    columns: dict[str, tuple[str, Any]] = {
        "coverage": ("coverage", "mean"),
        "lowest": ("coverage", "min"),
        "under .92": ("coverage", lambda x: (x < 0.92).mean()),
        "no length": ("no length", "max"),
        "equals excluded": ("equals", "max"),
    }
    logs = {
        name: (f"log {name}", lambda x: np.exp(x.mean()))
        for name in ("score", "ratio", "ordinary")
        if f"log {name}" in rows
    }
    return rows.groupby(by, sort=False).agg(**columns, **logs).reset_index()


def main() -> None:
    asked = argparse.ArgumentParser(description="Intervals of good matchers and of their differences.")
    asked.add_argument("--set", choices=SETS, default="choice")
    asked.add_argument("--samples", type=int, default=200)
    asked.add_argument("--designs", nargs="+", choices=DESIGNS, default=["records", "entities"])
    asked.add_argument("--n", nargs="+", type=int, default=[50, 100, 200, 400])
    asked.add_argument(
        "--engine", default="closed form", help="closed form, bootstrap, size model or advised"
    )
    asked.add_argument("--processes", type=int, default=1)
    asked.add_argument("--out", help="file of CSV with one row per cell")
    asked.add_argument("--against", help="such a file, to whose scores those of this run are compared")
    asked.add_argument("--doors", action="store_true", help="compare few samples with the doors themselves")
    args = asked.parse_args()
    cells = list(product(SETS[args.set], args.designs, args.n))
    if args.doors:
        warnings.simplefilter("ignore")
        for cell in cells:
            fast, doors = (f(cell, args.samples, args.engine) for f in (limits, limits_at_doors))
            np.testing.assert_allclose(fast, doors, rtol=0, atol=1e-9, err_msg=str(cell))
        print(f"the doors print the same in {len(cells)} cells of {args.samples} samples")
        return
    jobs = (joblib.delayed(judge)(cell, args.samples, args.engine) for cell in cells)
    rows = pd.concat(joblib.Parallel(n_jobs=args.processes)(jobs), ignore_index=True)
    if args.out:
        rows.to_csv(args.out, index=False)
    equal = (rows.door == "difference") & rows.population.str.startswith("twins")
    rows["equals"] = rows["excludes 0"].where(equal)
    rows["log score"] = np.log(rows.score.where(rows.score > 0))
    rows = add_ratios(rows, args.against) if args.against else rows
    print(as_markdown(rows.nsmallest(12, "coverage")[[*CELL, "truth", "coverage"]]), end="\n\n")
    rows["door"] = rows.door.where(rows.door == "difference", "estimate")
    for other in ([], ["n"], ["population"]):
        print(as_markdown(summarise(rows, ["design", "door", *other])), end="\n\n")
    stamp("unseen", "seeds by names of cells")


if __name__ == "__main__":
    main()
