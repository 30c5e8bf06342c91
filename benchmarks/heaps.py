"""Coverage of recall where the predicted sizes have a heap, benchmarks/heavy-tails.md.

    python benchmarks/heaps.py [--samples 30] [--judged | --find]

100 uniform entities of populations whose matcher caps its clusters, or whose entities end at one size, and
95 % intervals: of the closed form, of the size model as if entities ended there (`before`), and of what its
table shows before and after five looks, which the truth answers. --judged has populations that chose nothing
of the model, and --find counts heaps in those without a cap.
"""

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import populations as sim
from common import as_markdown
from figures import stamp

import erbayes as eb
from erbayes import bayes
from erbayes import metrics as m
from erbayes.bayes.totals import read_as_capped
from erbayes.study.populations import draw_from
from erbayes.units.settled import Heap, find_heap

METRICS = [m.pairwise_precision, m.pairwise_recall, m.pairwise_f1, m.b3_recall, m.entities, m.hill1, m.hill2]
RECORDS, DRAWS, LOOKS = 40_000, 100, 5
SEED = 911


@dataclass(frozen=True, slots=True)
class Weibull:
    """Independent sizes, Weibull distributed and rounded up."""

    shape: float
    scale: float

    def draw(self, records: int, rng: np.random.Generator) -> np.ndarray:
        sf = np.exp(-((np.arange(5001) / self.scale) ** self.shape))
        return draw_from(sf[:-1] - sf[1:], records, rng)


def made(law: sim.EntitySizes, *errors: sim.Mechanism) -> Callable[[int], sim.Population]:
    """Return a population by its seed."""
    return lambda seed: sim.simulate(law, sim.Chain(list(errors)), RECORDS, seed)


def ended(
    law: sim.EntitySizes, most: int, *errors: sim.Mechanism, share: float = 1.0
) -> Callable[[int], sim.Population]:
    """Return a population by its seed, a share of whose entities end at a size, where the matcher cuts."""

    def of_seed(seed: int) -> sim.Population:
        world, rng = sim.simulate(law, sim.Capped(most), RECORDS, seed), np.random.default_rng([seed, 1])
        codes, cut = pd.factorize(world.true)[0], pd.factorize(world.pred)[0]
        ends = rng.random(codes.max() + 1)[codes] < share
        true = np.where(ends, codes.max() + 1 + cut, codes)
        found = sim.Chain(list(errors)).apply(cut, rng)
        return sim.Population(pd.Series(found, world.true.index), pd.Series(true, world.true.index))

    return of_seed


HEAPS = {
    "cap 40, Zeta 2.1, noise": made(sim.Zeta(2.1, 3000), sim.Misattribution(0.03), sim.Capped(40)),
    "cap 60, log-normal 1.6, splits": made(sim.LogNormal(0.5, 1.6), sim.Capped(60), sim.Splits(0.05)),
    "cap 80, Zeta 2.15, noise after": made(sim.Zeta(2.15, 4000), sim.Capped(80), sim.Misattribution(0.02)),
    "cap 30, Pitman-Yor .6, merges": made(sim.PitmanYor(800.0, 0.6), sim.Merges(0.02), sim.Capped(30)),
    "cap 25, log-normal 1.3, noise after": made(
        sim.LogNormal(1.0, 1.3), sim.Capped(25), sim.Misattribution(0.02)
    ),
    "half of the heap ends at 50, Zeta 2.25": ended(sim.Zeta(2.25, 5000), 50, sim.Splits(0.02), share=0.5),
    "entities end at 50, Zeta 2.25, splits": ended(sim.Zeta(2.25, 5000), 50, sim.Splits(0.08)),
    "entities end at 30, log-normal 1.4, noise": ended(sim.LogNormal(0.7, 1.4), 30, sim.Misattribution(0.03)),
}
"""Written down before they were run. The half was changed twice, since it had no heap, and then no half."""
JUDGED = {
    "cap 12, log-normal 1.5, lost after": made(
        sim.LogNormal(1.0, 1.5), sim.Capped(12), sim.SizeDependent(-3.5, 0.0)
    ),
    "cap 15, Zeta 2.3, splits after": made(sim.Zeta(2.3, 2000), sim.Capped(15), sim.Splits(0.05)),
    "cap 20, Weibull .45, noise after": made(Weibull(0.45, 3.0), sim.Capped(20), sim.Misattribution(0.03)),
    "cap 25, negative binomial .5, noise after": made(
        sim.NegativeBinomial(12.0, 0.5), sim.Capped(25), sim.Misattribution(0.01)
    ),
    "cap 30, Pitman-Yor .5, noise": made(sim.PitmanYor(400.0, 0.5), sim.Misattribution(0.02), sim.Capped(30)),
    "cap 40, Pitman-Yor .75, lost after": made(
        sim.PitmanYor(100.0, 0.75), sim.Capped(40), sim.SizeDependent(-4.6, 0.0)
    ),
    "cap 50, log-normal 1.8, merges": made(sim.LogNormal(0.5, 1.8), sim.Merges(0.02), sim.Capped(50)),
    "cap 100, Zeta 2.05, noise after": made(sim.Zeta(2.05, 5000), sim.Capped(100), sim.Misattribution(0.02)),
    "entities end at 15, log-normal 1.2, lost": ended(
        sim.LogNormal(0.8, 1.2), 15, sim.SizeDependent(-3.5, 0.0)
    ),
    "entities end at 40, Zeta 2.2, noise": ended(sim.Zeta(2.2, 4000), 40, sim.Misattribution(0.02)),
}
"""Written down before the number of full pieces and the tail above a cap were mended, and no part of it."""
NONE = {
    "log-normal 1.4, giants in halves": made(sim.LogNormal(0.7, 1.4), sim.Even(2, 80), sim.Merges(0.02)),
    "Ewens, shattered": made(sim.PitmanYor(1200.0), sim.Shattered(1.5, 0.1, 20), sim.Splits(0.02)),
    "Zeta 2.45, splits and merges": made(sim.Zeta(2.45, 3000), sim.Splits(0.08), sim.Merges(0.04)),
    "Zeta 2.2, giants whole": made(sim.Zeta(2.2, 4000), sim.Splits(0.1), sim.Misattribution(0.02)),
    "log-normal .6, merges": made(sim.LogNormal(2.0, 0.6), sim.Merges(0.1)),
    "log-normal 2, broken": made(sim.LogNormal(0.2, 2.0), sim.Fragmented(30, 0.6)),
    "Pitman-Yor .7, eras": made(sim.PitmanYor(300.0, 0.7), sim.Eras(0.008)),
    "negative binomial 4": made(sim.NegativeBinomial(4.0, 2.0), sim.Merges(0.2)),
    "Zeta 2.6, lumps of 12": made(sim.Zeta(2.6, 2000), sim.Homonyms(40, 12, 0.9)),
}


def look(world: sim.Population, heap: Heap, rng: np.random.Generator) -> eb.Looks:
    """Return what looks at clusters of a heap find, by the truth."""
    pieces = pd.DataFrame({"pred": world.pred, "true": world.true}).value_counts().rename("n").reset_index()
    main = pieces.drop_duplicates("pred")  # the largest come first
    size, whole = main["pred"].map(world.pred.value_counts()), main["true"].map(world.true.value_counts())
    elsewhere = (whole - main["n"])[np.abs(size - heap.size) <= 0.1 * heap.size].to_numpy()
    return eb.Looks(int((rng.choice(elsewhere, LOOKS, replace=False) >= heap.size / 5).sum()), of=LOOKS)


def judge(name: str, world: sim.Population, samples: int) -> pd.DataFrame:
    """Return coverage and interval score of each interval, over the truth of numbers above 1, by metric."""
    rows = []
    known = world.units.known
    assert known is not None
    heap, truth = find_heap(known), [world.value(metric) for metric in METRICS]
    print(f"{name}: {heap}; {np.round(truth, 3).tolist()}", flush=True)
    assert heap is not None
    for k in range(samples):
        rng = np.random.default_rng([SEED, k])
        ids = rng.choice(world.true.unique(), DRAWS, replace=False)
        units = eb.measure(world.pred, world.true[world.true.isin(ids)])
        looks = look(world, heap, rng)
        sample = eb.Sample(units, eb.UniformClusters(), looks=looks)
        fit = bayes.fast(eb.Sample(units, eb.UniformClusters()), draws=400, rng=k)
        seen = read_as_capped(sample, fit.evidence, fit.population, fit.seed)
        found = {
            "closed form": eb.estimate(sample, metrics=METRICS).interval(),
            "before": replace(fit, capped=None).estimate(METRICS).interval(),
            "before looks": fit.estimate(METRICS).interval(),
            "after looks": replace(fit, capped=seen).estimate(METRICS).interval(),
        }
        for what, ends in found.items():
            for metric, (lower, upper), value in zip(METRICS, ends, truth, strict=True):
                miss = max(lower - value, value - upper, 0.0)
                score = (upper - lower + 40 * miss) / max(value, 1.0)
                rows.append((name, metric.name, what, float(miss == 0), score, looks.continued))
    runs = pd.DataFrame(rows, columns=["population", "metric", "interval", "coverage", "score", "found"])
    cells = runs.groupby(["population", "metric", "interval"], sort=False)
    return cells.agg(
        coverage=("coverage", "mean"), score=("score", "mean"), se=("score", "sem"), found=("found", "mean")
    )


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description="Coverage of recall where predicted sizes have a heap.")
    asked.add_argument("--samples", type=int, default=30, help="samples per population")
    asked.add_argument("--judged", action="store_true", help="populations that chose nothing")
    asked.add_argument("--find", action="store_true", help="count heaps in populations without one")
    args = asked.parse_args()
    warnings.simplefilter("ignore")
    if args.find:
        for name, of_seed in NONE.items():
            known = [of_seed(SEED + k).units.known for k in range(8)]
            print(name, sum(one is not None and find_heap(one) is not None for one in known), "of 8")
    else:
        cells = []
        with bayes.compiled():
            for name, of_seed in (JUDGED if args.judged else HEAPS).items():
                cells.append(judge(name, of_seed(SEED), args.samples).reset_index())
                print(as_markdown(cells[-1]), flush=True)
        by = pd.concat(cells).groupby(["metric", "interval"], sort=False)
        print(as_markdown(by.coverage.agg(["mean", "min"]).reset_index()))
    stamp("heavy-tails", f"seed {SEED}")
