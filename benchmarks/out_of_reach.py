"""Recall and B-cubed recall where more than a tenth of the predicted links is out of reach of entities.

    python benchmarks/out_of_reach.py [--samples 40] [--differences]

Coverage and interval score of 95 % intervals from 150 uniform entities, with and without the range of values
that links and records out of reach may have, in samples with more than a tenth of the links out of reach. The
twelve populations were written down before they were run: giants that are right, or cut, among small
entities, and heavy tails with errors at random. Takes ten seconds.

With --differences, three further predictions are compared with that of every third population: large entities
are right, or halved, or small ones are changed.
"""

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import populations as sim
from common import as_markdown

import erbayes as eb
from erbayes import metrics as m
from erbayes.metrics.unseen import NOTABLE

METRICS = [m.pairwise_recall, m.b3_recall]
DRAWS = 150


def giants(law: sim.EntitySizes, records: int, sizes: list[int], pieces: list[int]) -> sim.Population:
    """Return small entities, a tenth of whose records is alone, and giants in equal pieces."""
    true = sim.population(law, records, 5).to_numpy()
    small = pd.Series(true)
    alone = np.random.default_rng(3).random(len(true)) < 0.1
    pred: list[str] = small.astype(str).mask(alone, [f"alone {i}" for i in range(len(true))]).tolist()
    truth: list[str] = small.astype(str).tolist()
    for at, (size, parts) in enumerate(zip(sizes, pieces, strict=True)):
        truth += [f"giant {at}"] * size
        pred += [f"giant {at} {i * parts // size}" for i in range(size)]
    return sim.Population(pd.Series(pred), pd.Series(truth))


def at_random(law: sim.EntitySizes, errors: tuple[sim.Mechanism, ...], seed: int) -> sim.Population:
    return sim.simulate(law, sim.Chain(list(errors)), 6000, np.random.default_rng(seed))


def populations() -> dict[str, sim.Population]:
    four, two, one = [120, 90, 70, 60], [200, 150, 40, 30], [200]
    usual, small, tail = sim.LogNormal(0.5, 0.7), sim.LogNormal(0.3, 0.6), sim.LogNormal(0.6, 1.3)
    return {
        "giants right": giants(usual, 4000, four, [1, 1, 1, 1]),
        "giants halved": giants(usual, 4000, four, [2, 2, 2, 2]),
        "one of four halved": giants(usual, 4000, four, [2, 1, 1, 1]),
        "two in four": giants(small, 3000, two, [4, 4, 1, 1]),
        "one giant right": giants(small, 3000, one, [1]),
        "one giant halved": giants(small, 3000, one, [2]),
        "zeta 2.2, splits": at_random(sim.Zeta(2.2, 500), (sim.Splits(0.2),), 1),
        "zeta 2.2, misattribution": at_random(sim.Zeta(2.2, 500), (sim.Misattribution(0.03),), 2),
        "zeta 2.1, large halved": at_random(sim.Zeta(2.1, 600), (sim.Even(2, 60), sim.Merges(0.02)), 3),
        "log-normal 1.3, merges": at_random(tail, (sim.Merges(0.03),), 4),
        "log-normal 1.3, shattered": at_random(tail, (sim.Shattered(1.0, 0.2, 40),), 5),
        "zeta 2.3, nearly perfect": at_random(sim.Zeta(2.3, 500), (sim.Splits(0.01),), 6),
    }


def judge(samples: int) -> pd.DataFrame:
    """Return coverage and score, one row per population and metric, without and with the range."""
    rows = []
    for name, population in populations().items():
        truth = np.array([population.value(metric) for metric in METRICS])
        for i in range(samples):
            at = np.random.default_rng([i, len(name)]).choice(len(population.units), DRAWS, replace=False)
            sample = eb.Sample(population.units.take(np.sort(at)), eb.UniformClusters())
            if sample.out_of_reach[0] <= NOTABLE:
                continue
            found = eb.engine.Taylor()(sample, METRICS)
            without = replace(found, unseen=replace(found.unseen, unreached_share=np.zeros(len(METRICS))))
            for way, one in (("without", without), ("with", found)):
                (lower, upper) = one.interval().T
                miss = np.maximum(np.maximum(lower - truth, truth - upper), 0.0)
                score = upper - lower + 40 * miss
                rows += [
                    {"population": name, "metric": metric.name, "way": way, "coverage": c, "score": s}
                    for metric, c, s in zip(METRICS, miss <= 1e-9, score, strict=True)
                ]
    runs = pd.DataFrame(rows)
    return (
        runs.groupby(["metric", "population", "way"], sort=False)[["coverage", "score"]].mean().unstack("way")
    )


def predict_anew(old: "pd.Series[str]", true: "pd.Series[str]") -> Iterator[tuple[str, "pd.Series[str]"]]:
    """Yield other predictions, by what they change."""
    rng, large = np.random.default_rng(9), true.map(true.value_counts()) > 25
    alone = [f"single {i}" for i in range(len(old))]
    yield "large ones right", old.mask(large, "whole " + true)
    yield "large ones halved", old.mask(large & (rng.random(len(old)) < 0.5), old + " half")
    yield "small ones changed", old.mask(~large & (rng.random(len(old)) < 0.08), alone)


def compare(samples: int) -> pd.DataFrame:
    """Return coverage and score of differences, one row per metric, population and change."""
    rows = []
    for name, population in list(populations().items())[::3]:
        true, old = (s.astype(str).reset_index(drop=True) for s in (population.true, population.pred))
        for change, new in predict_anew(old, true):
            both, entities = {"old": old, "new": new}, true.unique()
            census = eb.UniformClusters(population=len(entities))
            truth = eb.compare(both, true, census, METRICS).differences()["estimate"].to_numpy()
            for i in range(samples):
                drawn = np.random.default_rng([i, 3]).choice(entities, DRAWS, replace=False)
                found = eb.compare(both, true[true.isin(drawn)], eb.UniformClusters(), METRICS)
                if max(float(sample.unreached_links) for sample in found.samples) <= NOTABLE:
                    continue
                table = found.differences()
                miss = np.maximum(np.maximum(table["lower"] - truth, truth - table["upper"]), 0.0)
                score = table["upper"] - table["lower"] + 40 * miss
                about = {"population": name, "change": change}
                rows.append(table[["metric"]].assign(**about, coverage=miss <= 1e-9, score=score))
    return pd.concat(rows).groupby(["metric", "population", "change"])[["coverage", "score"]].mean()


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description="Recall and B-cubed recall where links are out of reach.")
    asked.add_argument("--samples", type=int, default=40, help="samples of each population")
    asked.add_argument("--differences", action="store_true", help="of two predictions")
    warnings.simplefilter("ignore", eb.Alarm)
    if asked.parse_args().differences:
        print(as_markdown(compare(asked.parse_args().samples).reset_index().round(3)))
        raise SystemExit
    cells = judge(asked.parse_args().samples)
    table = cells["coverage"].add_prefix("coverage ")
    table["score ratio"] = cells["score", "with"] / cells["score", "without"]
    print(as_markdown(table.reset_index().round(2)))
    print(np.exp(np.log(table["score ratio"]).groupby("metric").mean()).round(2))
