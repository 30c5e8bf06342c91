"""Pairs to label, drawn by bands of the height at which two records join."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from ..._internal.arrays import FloatArray, IntArray
from ..._internal.errors import DataError, whole
from ...units.edges import Edges, ThresholdClusters, sweep
from ...units.units import KnownTotals
from ..thresholds import load_edges
from .limits import FEWEST


def draw_pairs(
    edges: Any,
    n: int,
    *,
    records: Any = None,
    seed: int,
    threshold: float | None = None,
    bands: int | Iterable[float] = 8,
    score: str | None = None,
) -> pd.DataFrame:
    """Draw pairs to label, uniformly without replacement in each band of height.

    The height of a pair is the strictest threshold at which both records are in one cluster, through other
    records if need be. Bands are about equally many edges, and each has the same number of drawn pairs, or
    all of its pairs if it has fewer.

    Parameters
    ----------
    edges, records, score
        As in `erbayes.thresholds`.
    n : int
        Number of pairs, two per band or more.
    seed : int
        The same seed draws the same pairs again.
    threshold : float, optional
        The threshold of interest, at which a band ends. Half of the bands are above it.
    bands : int or sequence of float
        The number of bands, or the thresholds at which they end. Pairs that join below the loosest of them
        are no candidates; by default that is the least score.

    Returns
    -------
    DataFrame
        One row per pair, in random order, with columns left, right, band (the threshold at which its band
        ends), pairs (their number in the band) and same, which is empty. Answers go there: y, n, or ? if
        undecided.

    Raises
    ------
    DataError
        If edges, records or thresholds cannot be used, or if there are fewer than two pairs per band.

    Examples
    --------
    >>> edges = pd.DataFrame({"l": ["a", "b", "d"], "r": ["b", "c", "e"], "weight": [9.0, 2.0, 4.0]})
    >>> draw_pairs(edges, 4, records=list("abcdef"), seed=1, bands=[9, 2]).drop(columns="same")
      left right  band  pairs
    0    d     e   2.0      3
    1    a     b   9.0      1
    2    b     c   2.0      3
    3    a     c   2.0      3
    """
    table = Edges.of(load_edges(edges, score), records, score)
    floors = _choose_floors(table, threshold, bands)
    n, rng = whole(n, "number of pairs"), np.random.default_rng(whole(seed, "seed", 0))
    records = np.arange(len(table.records))
    known = KnownTotals(np.ones(1), np.array([float(len(records))]))
    apart = ThresholdClusters(records, np.ones_like(records), known, records)
    levels = [apart, *sweep(table, floors, records)]
    merged = [_count_new_pairs(before, after) for before, after in pairwise(levels)]
    # a threshold that joins no records ends no band
    at = [b for b, new in enumerate(merged) if new.any()]
    pairs = np.array([merged[b].sum() for b in at])
    drawn = [
        _draw_band(levels[b].cluster, levels[b + 1].cluster, merged[b], k, rng)
        for b, k in zip(at, _allocate(pairs, n).tolist(), strict=True)
    ]
    count = [len(left) for left, _ in drawn]
    left, right = (table.records[np.concatenate(ends)] for ends in zip(*drawn, strict=True))
    band, size = (np.repeat(values, count) for values in (floors[at], pairs))
    table_of_pairs = pd.DataFrame({"left": left, "right": right, "band": band, "pairs": size, "same": ""})
    # annotators who see a band after the other would learn what to answer
    return table_of_pairs.iloc[rng.permutation(len(table_of_pairs))].reset_index(drop=True)


def _choose_floors(edges: Edges, threshold: float | None, bands: Any) -> FloatArray:
    """Return thresholds at which bands end, from the strictest to the loosest."""
    if not isinstance(bands, int | np.integer):
        return edges.thresholds([*bands, *([] if threshold is None else [threshold])])
    if threshold is None:
        shares = np.arange(whole(bands, "number of bands")) / int(bands)
        return edges.thresholds(np.quantile(edges.score, shares, method="lower"))
    half = whole(bands, "number of bands, half of which are above the threshold,", 2) // 2
    (least,) = edges.thresholds([threshold])
    above, below = edges.score[edges.score >= least], edges.score[edges.score < least]
    floors = [least, *np.quantile(above, np.arange(1, half) / half, method="lower")]
    if len(below):
        floors += np.quantile(
            below, np.arange(int(bands) - half) / (int(bands) - half), method="lower"
        ).tolist()
    return edges.thresholds(floors)


def _count_new_pairs(before: ThresholdClusters, after: ThresholdClusters) -> IntArray:
    """Return the pairs that each cluster joins which smaller ones inside it had apart, (clusters,)."""
    # floats are exact below 2⁵³, and no file has as many pairs
    apart = np.bincount(after.cluster[before.roots], before.sizes.astype(float) ** 2, len(after.sizes))
    return (after.sizes**2 - apart.astype(np.int64)) // 2


def _allocate(pairs: IntArray, n: int) -> IntArray:
    """Return equal numbers of draws of the bands, (B,), except for bands with fewer pairs."""
    if n < FEWEST * len(pairs):
        raise DataError(
            f"{n} pairs in {len(pairs)} bands are fewer than {FEWEST} each: draw {FEWEST * len(pairs)} or "
            "more, or name fewer bands, such as bands=4"
        )
    count = np.zeros(len(pairs), dtype=np.int64)
    for done, band in enumerate(np.argsort(pairs, kind="stable")):
        count[band] = min(pairs[band], (n - count.sum()) // (len(pairs) - done))
    return count


def _draw_band(
    before: IntArray, after: IntArray, new: IntArray, n: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Return both records of n distinct pairs of a band, (n,) each, every set of n pairs being as likely."""
    total = np.cumsum(new)
    rank = rng.choice(int(total[-1]), n, replace=False)
    cluster = np.searchsorted(total, rank, side="right")
    rank -= total[cluster] - new[cluster]
    # only clusters with a drawn pair are put in order, so that a draw costs a look at each record
    chosen = np.unique(cluster)
    record = np.flatnonzero(np.isin(after, chosen))
    record = record[np.lexsort((before[record], after[record]))]
    # each record makes a pair with those of its cluster that stand behind its old cluster
    end, old_end = _end_runs(after[record]), _end_runs(before[record])
    last = np.cumsum(end - old_end)
    start = np.cumsum(new[chosen]) - new[chosen]
    place = start[np.searchsorted(chosen, cluster)] + rank
    one = np.searchsorted(last, place, side="right")
    other = end[one] - (last[one] - place)
    return record[one], record[other]


def _end_runs(codes: IntArray) -> IntArray:
    """Return the end of the run of equal codes that each position is in, (n,)."""
    ends = np.flatnonzero(np.append(codes[1:] != codes[:-1], True)) + 1
    return np.repeat(ends, np.diff(ends, prepend=0))
