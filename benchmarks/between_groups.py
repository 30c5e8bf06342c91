"""Differences of groups of good matchers, and of others: coverage and interval scores, printed as tables."""

import sys
import warnings
from itertools import combinations

import good_matchers
import numpy as np
import pandas as pd
from common import as_markdown
from figures import stamp

import erbayes as eb
from erbayes.analysis.domains import by_domain

METRICS = ("pairwise-precision", "pairwise-recall", "b3-precision", "b3-recall")
GOOD: tuple[str, ...] = ("near-perfect, lumps of 2", "two files, .02 wrong", "triples", "twins, rare errors")
GOOD += ("near-perfect, lumps of 3", "two files, .005 wrong", "fours")
OTHERS = ("names", "ordinary", "names, fewer", "heavy tail", "heavy tail, fewer giants", "twins, many errors")
SHARES = {"a": 0.6, "b": 0.25, "c": 0.15}
DRAWS, LEVEL = (100, 200), 0.95
"""Numbers of draws of uniform records, and the level of intervals."""
WAYS = ("records", "entities")
"""What is in a group: records at random, so that entities lie in several groups, or whole entities."""


def compare(name: str, of: str, draws: int, samples: int) -> pd.DataFrame:
    """Return intervals of differences of each two groups, of "entities" or "records", with their truth."""
    pair = good_matchers.pair_of(name)
    truth, pred = pd.Series(pair.truth), pd.Series(pair.old)
    drawn = np.random.default_rng(7).choice(list(SHARES), len(truth), p=list(SHARES.values()))
    group = pd.Series(drawn[pair.truth] if of == "entities" else drawn, name="group")
    all_units = eb.Sample(eb.measure(pred, truth), eb.UniformClusters(population=truth.nunique()))
    exact = by_domain(all_units, group, METRICS, prediction=pred).table().set_index(["metric", "domain"])
    found = []
    for at in range(samples):
        drawn = pair.truth[np.random.default_rng([at, draws]).integers(len(truth), size=draws)]
        sample = eb.Sample(eb.measure(pred, truth[truth.isin(drawn)]), eb.UniformRecords(drawn.tolist()))
        result = by_domain(sample, group, METRICS, prediction=pred)
        found.append(result.differences(LEVEL, simultaneous=False))
    table = pd.concat(found)
    names = {f"{b} - {a}": (a, b) for a, b in combinations(sorted(SHARES), 2)}
    ends = [
        [exact.estimate[metric, group] for group in names[difference]]
        for difference, metric in zip(table.difference, table.metric, strict=True)
    ]
    return table.assign(truth=np.diff(ends, axis=1)[:, 0], population=name, of=of, draws=draws)


def judge(table: pd.DataFrame) -> pd.DataFrame:
    """Return coverage, interval score and the share of rows with an interval, by cell."""
    given = table[table.lower.notna()].copy()
    length = given.upper - given.lower
    below, above = (given.lower - given.truth).clip(lower=0), (given.truth - given.upper).clip(lower=0)
    given["covers"] = (below <= 1e-12) & (above <= 1e-12)
    given["score"] = length + 2 / (1 - LEVEL) * (below + above)
    by = ["population", "of", "draws", "metric"]
    cells = given.groupby(by)[["covers", "score"]].mean()
    cells["given"] = table.groupby(by).lower.apply(lambda x: x.notna().mean())
    return cells


def main(samples: int = 120) -> None:
    """Print coverage and scores of good matchers, and of others, and the cells that cover least."""
    warnings.simplefilter("ignore")
    for which, names in (("good matchers", GOOD), ("others", OTHERS)):
        found = [compare(name, of, n, samples) for name in names for of in WAYS for n in DRAWS]
        cells = judge(pd.concat(found)).reset_index()
        table = cells.groupby(["of", "metric"])[["covers", "score", "given"]].mean().reset_index()
        print(f"\n{which}:\n\n{as_markdown(table.round(3))}\n\nleast, of cells where nine of ten have one:\n")
        print(as_markdown(cells[cells.given > 0.9].nsmallest(3, "covers").round(3)), flush=True)
    stamp("domains", "seeds 7 and of samples")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 120)
