"""The size model on ten populations that had no part in choosing it, benchmarks/size-model.md.

    python benchmarks/size_model.py FILE [--samples 24]

100 uniform records and 100 uniform entities, with replacement, of ten populations that were written down
before any fit. 95 % intervals of precision, recall, F1 and B-cubed metrics by the closed form, the size model
and its posterior: interval score over that of the closed form, a geometric mean over populations, mean
coverage and its least. Writes the ends to FILE as CSV. On 1 core it takes some minutes.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from figures import stamp
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

import erbayes as eb
from erbayes import bayes

SEED, DRAWS, WORLDS = 68, 100, 3
METRICS = ["pairwise-precision", "pairwise-recall", "pairwise-f1", "b3-precision", "b3-recall"]
World = tuple[np.ndarray, np.ndarray]
"""The predicted cluster and the true entity of each record."""


def repeat(sizes: np.ndarray) -> np.ndarray:
    """Return the entity of each record."""
    return np.repeat(np.arange(len(sizes)), sizes)


def fill(draw: Callable[[int], np.ndarray], records: int) -> np.ndarray:
    """Return sizes of entities with about so many records."""
    sizes = draw(records)
    return sizes[: np.searchsorted(np.cumsum(sizes), records) + 1]


def compact(ids: np.ndarray) -> np.ndarray:
    return np.unique(ids, return_inverse=True)[1]


def lose(pred: np.ndarray, rng: np.random.Generator, share: float) -> np.ndarray:
    """Return clusters that a share of the records has left."""
    out = np.flatnonzero(rng.random(len(pred)) < share)
    pred = pred.copy()
    pred[out] = pred.max() + 1 + np.arange(len(out))
    return pred


def zipf(rng: np.random.Generator, a: float, largest: int, records: int) -> np.ndarray:
    return fill(lambda n: rng.zipf(a, n).clip(1, largest), records)


def names(rng: np.random.Generator) -> World:
    """Entities are joined within a name, more often if it is frequent."""
    size = fill(lambda n: 1 + rng.negative_binomial(0.6, 0.6 / 5, n), 25000)
    K, truth = len(size), repeat(size)
    name = np.floor(rng.zipf(1.8, K).clip(1, 4000)).astype(int)
    order, following = np.argsort(name, kind="stable"), np.empty(K, int)
    following[order] = np.roll(order, -1)
    often = rng.random(K) < 0.01 * np.log2(1 + np.bincount(name)[name])
    join = often & (name[following] == name)
    to = np.where(join, following, np.arange(K))
    return lose(to[to][truth], rng, 0.04), truth


def households(rng: np.random.Generator) -> World:
    """Whole households of up to five persons are one cluster."""
    size = fill(lambda n: rng.choice([1, 2, 3], n, p=[0.5, 0.35, 0.15]), 12000)
    K, truth = len(size), repeat(size)
    home = repeat(rng.integers(1, 6, K))[:K]
    joined = rng.random(home.max() + 1) < 0.06
    return lose(np.where(joined[home], K + home, np.arange(K))[truth], rng, 0.05), truth


def initials(rng: np.random.Generator) -> World:
    """Ten collisions of 20 to 80 entities with heavy sizes."""
    size = fill(lambda n: np.ceil(rng.lognormal(0.5, 1.5, n)).clip(1, 1500).astype(int), 30000)
    K, truth = len(size), repeat(size)
    to = np.arange(K)
    for c in range(10):
        to[rng.choice(K, rng.integers(20, 80), replace=False)] = K + c
    return lose(to[truth], rng, 0.03), truth


def placeholder(rng: np.random.Generator) -> World:
    """Three values that stand for none make clusters of 300, 200 and 100 strangers."""
    size = fill(lambda n: 1 + rng.poisson(rng.gamma(0.5, 6, n)), 25000)
    truth = repeat(size)
    pred, at = truth.copy(), rng.permutation(len(truth))
    for c, (a, b) in enumerate(((0, 300), (300, 500), (500, 600))):
        pred[at[a:b]] = len(size) + c
    return lose(pred, rng, 0.03), truth


def percolated(rng: np.random.Generator) -> World:
    """Wrong links join a part of all records in one component."""
    size = fill(lambda n: 1 + rng.poisson(2.0, n), 25000)
    K, truth = len(size), repeat(size)
    a, b = rng.integers(K, size=(2, int(0.505 * K)))
    return connected_components(coo_matrix((np.ones(len(a)), (a, b)), (K, K)))[1][truth], truth


def greedy(rng: np.random.Generator) -> World:
    """Large clusters take in others."""
    size = zipf(rng, 2.2, 2500, 30000)
    K, truth = len(size), repeat(size)
    to, join = np.arange(K), np.flatnonzero(rng.random(K) < np.minimum(0.01 * size**0.5, 0.3))
    to[join] = truth[rng.integers(len(truth), size=len(join))]
    return lose(to[to][truth], rng, 0.05), truth


def clean(rng: np.random.Generator) -> World:
    """Six pairs of entities are joined."""
    size = fill(lambda n: np.ceil(rng.weibull(0.6, n) * 3).clip(1, 400).astype(int), 25000)
    K, truth = len(size), repeat(size)
    to, join = np.arange(K), rng.choice(K, 12, replace=False)
    to[join[:6]] = join[6:]
    return lose(to[truth], rng, 0.02), truth


def siblings(rng: np.random.Generator) -> World:
    """A tenth of the entities give a share of their records to a sibling."""
    size = fill(lambda n: np.ceil(rng.lognormal(1.2, 0.8, n)).clip(1, 300).astype(int), 25000)
    K, truth = len(size), repeat(size)
    gives, share = rng.random(K) < 0.1, rng.beta(1, 2, K)
    go = gives[truth] & (rng.random(len(truth)) < share[truth])
    return np.where(go, (truth + 1) % K, truth), truth


def little(rng: np.random.Generator) -> World:
    """2,000 records."""
    size = zipf(rng, 2.5, 200, 2000)
    K, truth = len(size), repeat(size)
    join = rng.random(K) < 0.05
    to = np.where(join, rng.integers(K, size=K), np.arange(K))
    return lose(to[to][truth], rng, 0.08), truth


def capped20(rng: np.random.Generator) -> World:
    """Clusters end at 20 records, and some records move."""
    size = zipf(rng, 2.15, 3000, 25000)
    truth = repeat(size)
    rank = np.arange(len(truth)) - np.searchsorted(truth, truth)
    pred = compact(truth * 1000 + rank // 20)
    go = np.flatnonzero(rng.random(len(truth)) < 0.02)
    pred[go] = pred[rng.integers(len(pred), size=len(go))]
    return pred, truth


ALL = (names, households, initials, placeholder, percolated, greedy, clean, siblings, little, capped20)


def find_truths(pred: np.ndarray, truth: np.ndarray) -> list[float]:
    """Return the values of `METRICS`, by counting pieces."""
    _, first, n = np.unique(truth * (pred.max() + 1) + pred, return_index=True, return_counts=True)
    m, s, N = np.bincount(pred)[pred[first]], np.bincount(truth)[truth[first]], len(pred)
    right, found, true = ((n * (x - 1.0)).sum() for x in (n, m, s))
    links = [right / found, right / true, 2 * right / (found + true)]
    return [*links, (n * n / m).sum() / N, (n * n / s).sum() / N]


def draw_sample(pred: np.ndarray, truth: np.ndarray, design: str, rng: np.random.Generator) -> eb.Sample:
    """Draw records or entities with replacement."""
    records = truth[rng.integers(len(truth), size=DRAWS)]
    drawn = records if design == "records" else rng.integers(truth.max() + 1, size=DRAWS)
    keep, chosen = np.isin(truth, np.unique(drawn)), drawn.tolist()
    units = eb.measure(pd.Series(pred), pd.Series(truth[keep], index=np.flatnonzero(keep)))
    return eb.Sample(
        units, eb.UniformRecords(chosen) if design == "records" else eb.UniformClusters(draws=chosen)
    )


def judge(samples: int) -> Iterator[dict[str, Any]]:
    """Return the ends of each interval."""
    for place, make in enumerate(ALL):
        for world in range(WORLDS):
            pred, truth = (compact(ids) for ids in make(np.random.default_rng([world, place, SEED])))
            truths = find_truths(pred, truth)
            for design in ("records", "entities"):
                for j in range(samples // WORLDS):
                    sample = draw_sample(pred, truth, design, np.random.default_rng([SEED, world, j]))
                    fit = bayes.fast(sample, draws=1000, rng=j)
                    answers = {"closed form": eb.estimate(sample, metrics=METRICS)}
                    answers |= {"size model": fit.estimate(METRICS), "posterior": fit.apply(METRICS)}
                    for engine, answer in answers.items():
                        for metric, t, (lower, upper) in zip(METRICS, truths, answer.interval(), strict=True):
                            yield {
                                "population": make.__name__,
                                "design": design,
                                "world": world,
                                "sample": j,
                                "engine": engine,
                                "metric": metric,
                                "truth": t,
                                "lower": lower,
                                "upper": upper,
                            }
        print(make.__name__, flush=True)


def summarise(ends: pd.DataFrame) -> pd.DataFrame:
    """Return score over that of the closed form, mean coverage and the least of a population, as text."""
    below, above = (ends.lower - ends.truth).clip(lower=0), (ends.truth - ends.upper).clip(lower=0)
    ends = ends.assign(score=ends.upper - ends.lower + 40 * (below + above), held=below + above < 1e-9)
    cells = ends.groupby(["design", "metric", "population", "engine"])[["score", "held"]].mean().unstack()
    ratio = cells.score.div(cells.score["closed form"], axis=0)
    of = ["design", "metric"]
    score = np.exp(np.log(ratio).groupby(of).mean())
    mean, least = cells.held.groupby(of).mean(), cells.held.groupby(of).min()
    both = score.map("{:.2f}; ".format) + mean.map("{:.3f}".format) + least.map(" ({:.2f})".format)
    return pd.DataFrame(both.unstack("design")).swaplevel(axis=1).sort_index(axis=1)


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description="The size model on populations that chose nothing.")
    asked.add_argument("file")
    asked.add_argument("--samples", type=int, default=24, help="samples per population and design")
    args = asked.parse_args()
    warnings.simplefilter("ignore")
    with bayes.compiled():
        found = pd.DataFrame(judge(args.samples))
    found.to_csv(args.file, index=False)
    print(summarise(found).to_string())
    stamp("size-model", f"seed {SEED}")
