"""Good matchers: pairs of predictions whose errors are rare and come in lumps, for `unseen.py`.

Each population is a truth and two predictions, of which the new one differs a little from the old one. Both
sets were written down before any interval was judged on them, and are not changed: rules are chosen on
"choice", and "held out" says what they are worth.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from erbayes._internal.arrays import IntArray


@dataclass(frozen=True)
class Pair:
    """A population of N records with two predictions, (N,) each."""

    truth: IntArray
    old: IntArray
    new: IntArray


def entities_of(sizes: IntArray, largest: int = 10**6) -> IntArray:
    """Return the entity of each record."""
    return np.repeat(np.arange(len(sizes)), np.minimum(sizes, largest))


def spoil(
    codes: IntArray, splits: float, merges: float, seed: int, lump: int = 2, most: int = 100
) -> IntArray:
    """Split some clusters in two at random and merge others in lumps, none of more than `most` records."""
    rng, spoilt, sizes = np.random.default_rng(seed), codes.copy(), np.bincount(codes)
    several = np.flatnonzero((sizes > 1) & (sizes <= most))
    for cluster in rng.choice(several, int(splits), replace=False):
        where = np.flatnonzero(codes == cluster)
        spoilt[rng.choice(where, rng.integers(1, len(where)), replace=False)] = spoilt.max() + 1
    sizes = np.bincount(spoilt)
    some = np.flatnonzero((sizes > 0) & (sizes <= most))
    for first, *others in rng.choice(some, (int(merges), lump), replace=False):
        spoilt[np.isin(spoilt, others)] = first
    return spoilt


def near_perfect(seed: int, entities: int, splits: int, lumps: int, lump: int) -> Pair:
    """Sizes to 12. Both predictions split some entities; the new one merges lumps of small clusters, too."""
    truth = entities_of(np.random.default_rng(seed).geometric(0.4, entities), 12)
    old = spoil(truth, splits, 2, seed + 1, most=3)
    return Pair(truth, old, spoil(old, splits / 4, lumps, seed + 2, lump, most=3))


def of_files(seed: int, files: int, entities: int, found: tuple[float, float], lumps: int, lump: int) -> Pair:
    """Entities with a record in each file: a strict old prediction, and a loose new one with some lumps."""
    truth = entities_of(np.full(entities, files))
    luck = np.random.default_rng(seed).random(len(truth)) * (np.arange(len(truth)) % files > 0)
    strict, loose = (np.where(luck < share, truth, entities + np.arange(len(truth))) for share in found)
    return Pair(truth, strict, spoil(loose, 0, lumps, seed + 1, lump))


def names(seed: int, entities: int, known: int, years: int, misspelt: float) -> Pair:
    """Records match by name and year of birth: common names are merged, and rare ones misspelt."""
    rng, frequency = np.random.default_rng(seed), np.arange(1, known + 1) ** -0.85
    name = rng.choice(known, entities, p=frequency / frequency.sum())
    truth = entities_of(rng.zipf(2.5, entities), 60)
    key = (name * years + rng.integers(years, size=entities))[truth]
    wrong = rng.random(len(truth)) < np.where(name > known / 2, misspelt, misspelt / 5)[truth]
    old = 3 * key + wrong * rng.integers(1, 3, len(truth))
    return Pair(truth, old, spoil(old, 45, 25, seed + 1, most=10))


def heavy(seed: int, entities: int, giants: tuple[int, ...]) -> Pair:
    """Zipf sizes to 50 and giants: one is in parts and the last two are merged. Small ones are spoilt."""
    rng = np.random.default_rng(seed)
    sizes = np.minimum(rng.zipf(2.2, entities), 50)
    sizes[: len(giants)] = giants
    truth = entities_of(sizes)
    old = spoil(truth, entities / 15, entities / 60, seed + 1, most=50)
    old = np.where(truth == 1, old.max() + rng.choice([1, 1, 1, 2, 3], len(truth)), old)
    old[truth == len(giants) - 1] = len(giants) - 2
    return Pair(truth, old, spoil(old, 50, 30, seed + 2, most=50))


def ordinary(seed: int, entities: int, splits: float, merges: float) -> Pair:
    """Zipf sizes to 40 of which about a tenth are in error: what most matchers look like."""
    truth = entities_of(np.random.default_rng(seed).zipf(2.35, entities), 40)
    old = spoil(truth, splits * entities, merges * entities, seed + 1)
    return Pair(truth, old, spoil(old, 50, 30, seed + 2))


def twins(seed: int, entities: int, rate: float) -> Pair:
    """Two equally good predictions: each makes the same errors, in another half of the records."""
    half = entities_of(np.random.default_rng(seed).zipf(2.3, entities), 60)
    wrong, other = spoil(half, rate * entities, rate * entities / 3, seed + 1), half + 10**5
    old, new = np.concatenate([wrong, other]), np.concatenate([half, wrong + 10**5])
    return Pair(np.concatenate([half, half + entities]), old, new)


def release(seed: int, entities: int, share: float) -> Pair:
    """Singles, pairs and triples; the new release merges pairs into one cluster with a share of its links."""
    truth = entities_of(np.random.default_rng(seed).choice([1, 2, 3], entities, p=[0.6, 0.3, 0.1]))
    old = spoil(truth, entities / 40, entities / 200, seed + 1)
    new, sizes = spoil(old, 20, 10, seed + 2), np.bincount(truth)
    giant = np.sqrt(share / (1 - share) * (sizes * (sizes - 1)).sum())
    pairs = np.flatnonzero(sizes == 2)[: int(giant / 2)]
    return Pair(truth, old, np.where(np.isin(truth, pairs), new.max() + 1, new))


SETS: dict[str, dict[str, Callable[[], Pair]]] = {
    "choice": {
        "near-perfect, lumps of 2": lambda: near_perfect(1101, 4500, 60, 14, 2),
        "two files, .02 wrong": lambda: of_files(1201, 2, 4000, (0.88, 0.96), 20, 2),
        "triples": lambda: of_files(1301, 3, 2800, (0.93, 0.985), 12, 2),
        "names": lambda: names(1401, 4200, 3500, 70, 0.13),
        "heavy tail": lambda: heavy(1501, 4200, (300, 260, 200, 160, 130, 110, 90, 90, 75)),
        "ordinary": lambda: ordinary(1601, 3200, 0.07, 0.12),
        "twins, rare errors": lambda: twins(1701, 1900, 0.02),
        "release with a giant": lambda: release(1801, 7000, 0.35),
    },
    "held out": {
        "near-perfect, lumps of 3": lambda: near_perfect(2101, 4000, 150, 9, 3),
        "two files, .005 wrong": lambda: of_files(2201, 2, 5200, (0.93, 0.98), 2, 3),
        "fours": lambda: of_files(2301, 4, 2300, (0.9, 0.97), 10, 3),
        "names, fewer": lambda: names(2401, 3400, 4500, 45, 0.18),
        "heavy tail, fewer giants": lambda: heavy(2501, 3600, (220, 180, 150, 100, 85)),
        "twins, many errors": lambda: twins(2701, 1700, 0.12),
    },
}
ORDINARY = ("names", "ordinary", "names, fewer", "heavy tail, fewer giants")
"""Populations whose precision and recall are below .95."""


def pair_of(name: str) -> Pair:
    """Return a population by its name."""
    return next(populations[name]() for populations in SETS.values() if name in populations)
