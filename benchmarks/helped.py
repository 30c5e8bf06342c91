"""Second clusterings of good matchers: what no draw shows, for `assisted.md`.

    python benchmarks/helped.py [--samples 100] [--sets choice "held out" good giants]

Coverage and interval score, over the default's, of `eb.assisted` from 100 draws of records and of entities.
The second clustering is the other prediction of a pair of `good_matchers.py`, with as many errors elsewhere,
or a good one ("good"). In "giants", one of both clusterings, or both, join or split the largest entities.
Prints the cells that cover less than .93 or score worse than the default, and each set on average.
"""

import argparse
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from common import as_markdown
from figures import stamp
from good_matchers import SETS, Pair, entities_of, heavy, names, near_perfect, ordinary, spoil, twins

import erbayes as eb
from erbayes import metrics as m
from erbayes.engine import Taylor
from erbayes.study import populations as sim

METRICS = [m.pairwise_precision, m.pairwise_recall, m.b3_precision, m.b3_recall]
DRAWS = 100


def by_good(pair: Pair, share: float) -> Pair:
    """Return a pair whose second clustering errs about a share of the entities."""
    errors = share * len(np.unique(pair.truth))
    return Pair(pair.truth, pair.old, spoil(pair.truth, errors, errors / 4, 99))


def giants(seed: int, wrong: str, how: str) -> Pair:
    """Zipf sizes and four giants: two joined, or one in three parts, in one clustering or both."""
    sizes = np.minimum(np.random.default_rng(seed).zipf(2.3, 3500), 40)
    sizes[:4] = (300, 250, 150, 100)
    truth = entities_of(sizes)
    sides = {"old": spoil(truth, 200, 60, seed + 1, most=40), "new": spoil(truth, 30, 10, seed + 2, most=40)}
    for name in sides if wrong == "both" else [wrong]:
        if how == "join":
            sides[name][truth == 1] = sides[name][truth == 0][0]
        else:
            parts = np.random.default_rng(seed + 3).integers(3, size=sizes[0])
            sides[name][truth == 0] = sides[name].max() + 1 + parts
    return Pair(truth, **sides)


GOOD: dict[str, Callable[[], Pair]] = {
    "names": lambda: by_good(names(3401, 4000, 4000, 60, 0.15), 0.02),
    "ordinary": lambda: by_good(ordinary(3601, 3000, 0.08, 0.1), 0.01),
    "heavy tail": lambda: by_good(heavy(3501, 4000, (250, 200, 150, 120, 90, 80)), 0.02),
    "near-perfect": lambda: by_good(near_perfect(3101, 4200, 80, 12, 2), 0.002),
    "twins": lambda: by_good(twins(3701, 1800, 0.08), 0.02),
}
GIANTS: dict[str, Callable[[], Pair]] = {
    "old joins": lambda: giants(5101, "old", "join"),
    "second joins": lambda: giants(5102, "new", "join"),
    "old splits": lambda: giants(5103, "old", "split"),
    "second splits": lambda: giants(5104, "new", "split"),
    "both join": lambda: giants(5105, "both", "join"),
}


def judge(name: str, pair: Pair, by_records: bool, samples: int) -> pd.DataFrame:
    """Return coverage, that of the default, and the score over it, by metric."""
    truth, old, new = (pd.Series(x) for x in (pair.truth, pair.old, pair.new))
    values = np.array([sim.Population(old, truth).value(metric) for metric in METRICS])
    rng, entities = np.random.default_rng(5), truth.unique()
    covers, score = np.zeros((2, len(METRICS))), np.zeros((2, len(METRICS)))
    for _ in range(samples):
        drawn = truth[rng.integers(len(truth), size=DRAWS)] if by_records else rng.choice(entities, DRAWS)
        draws, labels = list(drawn), truth[truth.isin(drawn)]
        design = eb.UniformRecords(draws=draws) if by_records else eb.UniformClusters(draws=draws)
        sample = eb.Sample(eb.measure(old, labels), design)
        found = Taylor()(sample, METRICS), eb.assisted(old, labels, design, METRICS, by=new)
        for i, estimates in enumerate(found):
            lower, upper = estimates.interval().T
            outside = np.maximum(lower - values, 0) + np.maximum(values - upper, 0)
            covers[i] += (outside == 0) / samples
            score[i] += upper - lower + 40 * outside
    return pd.DataFrame(
        {
            "second clustering": name,
            "drawn": "records" if by_records else "entities",
            "metric": [metric.name for metric in METRICS],
            "default": covers[0],
            "coverage": covers[1],
            "score": score[1] / score[0],
        }
    )


def main() -> None:
    asked = argparse.ArgumentParser()
    sets = SETS | {"good": GOOD, "giants": GIANTS}
    asked.add_argument("--samples", type=int, default=100)
    asked.add_argument("--sets", nargs="*", choices=sets, default=list(sets))
    args = asked.parse_args()
    warnings.simplefilter("ignore")
    cells = pd.concat(
        [
            judge(name, make(), by_records, args.samples).assign(set=of)
            for of in args.sets
            for name, make in sets[of].items()
            for by_records in (True, False)
        ]
    )
    few = cells[(cells["coverage"] < 0.93) | (cells["score"] > 1.05)]
    print(as_markdown(few.drop(columns="set")), "\n")
    by = cells.assign(lowest=cells["coverage"]).groupby(["set", "drawn"], sort=False)
    together = by.agg({"default": "mean", "coverage": "mean", "lowest": "min", "score": "mean"})
    print(as_markdown(together.reset_index()))
    stamp("assisted", "seed 5")


if __name__ == "__main__":
    main()
