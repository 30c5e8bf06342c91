"""Places of draws: from chances by bucket to drawn records.

Records are laid end to end, in the order of their keys, each as long as its chance. A draw is a point on this
line. Independent uniform points are draws with replacement; points at equal distances from a random start are
a systematic sample without replacement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import pandas as pd

from ..._internal.arrays import FloatArray, IntArray
from .source import BUCKETS, Source, change, text_of

Chance = Callable[[pd.DataFrame], FloatArray]
"""The chance of a record in each row of a table with its `size` (and `value`)."""
ORDER = 2**32 - 1
"""Stream of random numbers for the order of draws. Strata have the streams from 0 on."""


def in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """Return records in the order of their keys, records of equal keys in the order of their texts."""
    rows = rows.sort_values("key", kind="stable", ignore_index=True)
    if rows["key"].is_unique:
        return rows
    # equal keys are ordered by id, because rows of a database have no order
    text = rows["record"].map(text_of)
    return rows.assign(text=text).sort_values(["key", "text"], ignore_index=True).drop(columns="text")


def in_random_order(rows: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return draws in an order that depends on no chance, so that the first of them are a sample of all."""
    # whoever stops before the last task has then labelled draws that chance alone chose
    order = np.random.default_rng([seed, ORDER]).permutation(len(rows))
    return rows.iloc[order].reset_index(drop=True)


def ordered_counts(source: Source, seed: int) -> pd.DataFrame:
    """Return the counts of a source in the order of bucket, size and value."""
    counts = source.counts(seed)
    by = [column for column in ("bucket", "size", "value") if column in counts]
    return counts.sort_values(by, ignore_index=True)


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """Records laid end to end, each as long as its chance, with points on them, (n,), each in [0, 1)."""

    chance: Chance
    points: FloatArray


def at_points(source: Source, counts: pd.DataFrame, lines: Sequence[Line], seed: int) -> list[pd.DataFrame]:
    """Return a table per line with the record at each point, which asks the source once for all lines."""
    ends = [
        np.cumsum(np.bincount(counts["bucket"], line.chance(counts) * counts["records"], BUCKETS))
        for line in lines
    ]
    points = [line.points * end[-1] for line, end in zip(lines, ends, strict=True)]  # 1 up to rounding
    buckets = [containing(end, p) for end, p in zip(ends, points, strict=True)]
    # only buckets with a point are read, so that no source returns all its records
    rows = in_order(source.in_buckets(np.unique(np.concatenate(buckets)), seed))
    of_rows = (rows["key"].to_numpy() >> np.uint64(48)).astype(np.int64)
    first = np.searchsorted(of_rows, np.arange(BUCKETS + 1))
    tables = []
    for line, end, places, bucket in zip(lines, ends, points, buckets, strict=True):
        chance = line.chance(rows)
        inside = pd.Series(chance).groupby(of_rows).cumsum().to_numpy()
        row_ends = np.append(0.0, end)[of_rows] + inside
        at = np.searchsorted(row_ends, places, side="right")
        last = np.searchsorted(row_ends, row_ends[first[bucket + 1] - 1])  # with a chance, in the bucket
        at = np.clip(at, first[bucket], np.maximum(last, first[bucket]))
        tables.append(rows.iloc[at].assign(chance=chance[at]).reset_index(drop=True))
    return tables


def first_in_order(source: Source, needed: Mapping[int, int], seed: int) -> pd.DataFrame:
    """Return the first records of clusters of each size by their keys, at least `needed` (size -> number)."""
    clusters = dict(zip(source.known.size.tolist(), source.known.count.tolist(), strict=True))
    expected = {m: k + 6 * k**0.5 + 10 for m, k in needed.items()}  # so that a second look is rare
    while True:
        share = {m: min(e / clusters[m], 1.0) for m, e in expected.items()}
        rows = in_order(source.up_to({m: highest_key(s) for m, s in share.items()}, seed))
        counted = rows["size"].value_counts()
        short = [m for m, k in needed.items() if counted.get(m, 0) < k]
        if not short:
            return rows
        # all clusters of the size were read, so that the source has changed
        if all(share[m] == 1 for m in short):
            raise change(short)
        expected = {m: 8 * e for m, e in expected.items()}


def highest_key(share: float) -> int:
    """Return the highest key whose permanent random number is below a share in (0, 1].

    >>> hex(highest_key(0.5))
    '0x7fffffffffffffff'
    """
    return ceil(share * 2.0**64) - 1


def at_equal_distances(n: int, seed: int) -> FloatArray:
    """Return n points at equal distances from a random start, (n,), in [0, 1)."""
    return (np.random.default_rng(seed).random() + np.arange(n)) / n


def containing(ends: FloatArray, points: FloatArray) -> IntArray:
    """Return the interval of each point, (n,), by the ends of adjoining intervals from 0."""
    # intervals of length 0 have no point, and one above the last end, by rounding, is in the last interval
    last = int(np.searchsorted(ends, ends[-1]))
    return np.minimum(np.searchsorted(ends, points, side="right"), last)
