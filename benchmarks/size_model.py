"""The size model on eight populations that had no part in choosing it, benchmarks/size-model.md.

    python benchmarks/size_model.py FILE [--samples 18]

100 uniform records and 100 uniform entities, with replacement, of eight populations that were written down
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


def dirty(rng: np.random.Generator) -> World:
    """A fifth of the records are dirty, and leave their cluster or move to one of the next names."""
    size = fill(lambda n: 1 + np.floor(rng.pareto(1.4, n) * 1.5).clip(0, 1500).astype(int), 25000)
    truth = repeat(size)
    pred = truth.copy()
    bad = rng.random(len(truth)) < 0.2
    leave = bad & (rng.random(len(truth)) < 0.25)
    pred[leave] = len(size) + np.arange(leave.sum())
    go = np.flatnonzero(bad & ~leave & (rng.random(len(truth)) < 0.15))
    pred[go] = truth[(go + rng.integers(5, 500, len(go))) % len(truth)]
    return pred, truth


def blocks(rng: np.random.Generator) -> World:
    """Entities in blocks; two entities of a block are merged, more often in large blocks."""
    size = fill(lambda n: 1 + rng.negative_binomial(0.5, 0.5 / 4.5, n), 25000)
    K = len(size)
    block = np.sort(np.floor(K * rng.random(K) ** 3 / 6).astype(int))
    to = np.arange(K)
    number = np.bincount(block)[block]
    join = rng.random(K) < np.minimum(0.004 * np.sqrt(number), 0.5)
    first = np.searchsorted(block, block)
    partner = first + (rng.random(K) * number).astype(int)
    to[join] = partner[join]
    to = to[to]
    truth = repeat(size)
    pred = to[truth]
    lost = rng.random(len(truth)) < 0.03
    pred[lost] = K + np.arange(lost.sum())
    return pred, truth


def graph(rng: np.random.Generator) -> World:
    """Each record links to few of its own and, seldom, to any: connected components."""
    size = fill(lambda n: np.ceil(rng.weibull(0.45, n) * 2).clip(1, 1200).astype(int), 25000)
    truth = repeat(size)
    N = len(truth)
    start = np.searchsorted(truth, truth)
    i = np.repeat(np.arange(N), 3)
    j = start[i] + (rng.random(len(i)) * size[truth[i]]).astype(int)
    keep = rng.random(len(i)) < 0.55
    a, b = rng.integers(N, size=(2, int(0.015 * N)))
    i, j = np.append(i[keep], a), np.append(j[keep], b)
    return connected_components(coo_matrix((np.ones(len(i)), (i, j)), (N, N)))[1], truth


def capped18(rng: np.random.Generator) -> World:
    """Blocks of at most 18 records, geometric mixture sizes."""
    size = fill(lambda n: rng.geometric(rng.beta(1.1, 1.6, n).clip(0.004, 1)), 25000)
    truth = repeat(size)
    rank = np.arange(len(truth)) - np.searchsorted(truth, truth)
    pred = compact(truth * 4000 + rank // 18)
    lost = rng.random(len(truth)) < 0.015
    pred[lost] = pred.max() + 1 + np.arange(lost.sum())
    join = np.flatnonzero(rng.random(pred.max() + 1) < 0.01)
    to = np.arange(pred.max() + 1)
    to[join] = pred[rng.integers(len(pred), size=len(join))]
    return to[pred], truth


def contacts(rng: np.random.Generator) -> World:
    """4,000 records, entities of one to four, wrong pairs."""
    size = fill(lambda n: rng.choice([1, 2, 3, 4], n, p=[0.55, 0.3, 0.1, 0.05]), 4000)
    K = len(size)
    truth = repeat(size)
    to = np.arange(K)
    pairs = rng.permutation(K)[: 2 * int(0.03 * K)]
    to[pairs[::2]] = pairs[1::2]
    pred = to[truth]
    lost = rng.random(len(truth)) < 0.08
    pred[lost] = K + np.arange(lost.sum())
    return pred, truth


def precise(rng: np.random.Generator) -> World:
    """Hardly anything false; entities break into parts, the more the larger."""
    size = fill(lambda n: np.ceil(rng.lognormal(1.0, 1.2, n)).astype(int), 25000)
    truth = repeat(size)
    parts = 1 + rng.poisson(0.06 * np.log2(size))
    pred = truth * 1000 + (rng.random(len(truth)) ** 2 * parts[truth]).astype(int)
    pred = compact(pred)
    to = np.arange(pred.max() + 1)
    join = rng.choice(len(to), 12, replace=False)
    to[join] = np.roll(join, 1)[:12]
    to[join[6:]] = join[6:]
    return to[pred], truth


def unknown(rng: np.random.Generator) -> World:
    """400 records without a name are one predicted cluster."""
    size = fill(lambda n: rng.zipf(2.3, n).clip(1, 2000), 25000)
    truth = repeat(size)
    pred = truth.copy()
    pred[rng.choice(len(truth), 400, replace=False)] = len(size)
    lost = rng.random(len(truth)) < 0.04
    pred[lost] = len(size) + 1 + np.arange(lost.sum())
    return pred, truth


def middle(rng: np.random.Generator) -> World:
    """Families: entities of 4 to 20 are joined in pairs, a quarter of those over 50 lose a third."""
    size = fill(lambda n: np.ceil(rng.gamma(0.35, 18, n)).clip(1).astype(int), 25000)
    truth = repeat(size)
    K = len(size)
    to = np.arange(K)
    of = rng.permutation(np.flatnonzero((size >= 4) & (size <= 20)))
    k = 2 * int(0.08 * len(of))
    to[of[1:k:2]] = of[0:k:2]
    pred = to[truth]
    cut = (size > 50) & (rng.random(K) < 0.25)
    pred = pred * 2 + (cut[truth] & (rng.random(len(truth)) < 0.33))
    return pred, truth


ALL = (dirty, blocks, graph, capped18, contacts, precise, unknown, middle)


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
    asked.add_argument("--samples", type=int, default=18, help="samples per population and design")
    args = asked.parse_args()
    warnings.simplefilter("ignore")
    with bayes.compiled():
        found = pd.DataFrame(judge(args.samples))
    found.to_csv(args.file, index=False)
    print(summarise(found).to_string())
    stamp("size-model", f"seed {SEED}")
