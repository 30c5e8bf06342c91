"""Places of draws: from chances by bucket to drawn records.

Records are laid end to end, in the order of their keys, each as long as its chance. A draw is a point on this
line. Independent uniform points are draws with replacement; points at equal distances from a random start are
a systematic sample without replacement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..arrays import FloatArray, IntArray
from .source import BUCKETS, Source, text_of

Chance = Callable[[pd.DataFrame], FloatArray]
"""The chance of a record in each row of a table with its `size` (and `value`)."""


def in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """Return records in the order of their keys, records of equal keys in the order of their texts."""
    rows = rows.sort_values("key", kind="stable", ignore_index=True)
    if rows["key"].is_unique:
        return rows
    text = rows["record"].map(text_of)
    return rows.assign(text=text).sort_values(["key", "text"], ignore_index=True).drop(columns="text")


def ordered_counts(source: Source, seed: int) -> pd.DataFrame:
    """Return the counts of a source in the order of bucket, size and value."""
    counts = source.counts(seed)
    by = [column for column in ("bucket", "size", "value") if column in counts]
    return counts.sort_values(by, ignore_index=True)


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """Records laid end to end, each as long as its chance, with points on them.

    Attributes
    ----------
    chance : callable
        Chances of records that sum to 1 over the source.
    points : float array, (n,)
        In [0, 1).
    """

    chance: Chance
    points: FloatArray


def at_points(source: Source, counts: pd.DataFrame, lines: Sequence[Line], seed: int) -> list[pd.DataFrame]:
    """Return the record at each point of each line.

    Parameters
    ----------
    source : Source
        It is asked once for the records of all lines.
    counts : DataFrame
        As `ordered_counts` returns them.
    lines : sequence of Line
    seed : int
        Of the keys.

    Returns
    -------
    list of DataFrame
        For each line one row per point, in their order: record, cluster, size, key, [value,] chance.
    """
    ends = [
        np.cumsum(np.bincount(counts["bucket"], line.chance(counts) * counts["records"], BUCKETS))
        for line in lines
    ]
    points = [line.points * end[-1] for line, end in zip(lines, ends, strict=True)]  # 1 up to rounding
    buckets = [_containing(end, p) for end, p in zip(ends, points, strict=True)]
    rows = in_order(source.in_buckets(np.unique(np.concatenate(buckets)), seed))
    of_rows = (rows["key"].to_numpy() >> np.uint64(48)).astype(np.int64)
    first = np.searchsorted(of_rows, np.arange(BUCKETS + 1))
    tables = []
    for line, end, places, bucket in zip(lines, ends, points, buckets, strict=True):
        chance, at = line.chance(rows), np.empty(len(places), dtype=np.int64)
        starts = np.append(0.0, end)[bucket]
        for b in np.unique(bucket):
            here = bucket == b
            inside = np.cumsum(chance[first[b] : first[b + 1]])
            at[here] = first[b] + _containing(inside, places[here] - starts[here])
        tables.append(rows.iloc[at].assign(chance=chance[at]).reset_index(drop=True))
    return tables


def at_equal_distances(n: int, seed: int) -> FloatArray:
    """Return n points at equal distances from a random start, (n,), in [0, 1)."""
    return (np.random.default_rng(seed).random() + np.arange(n)) / n


def _containing(ends: FloatArray, points: FloatArray) -> IntArray:
    """Return the interval that holds each point, by the ends of adjoining intervals from 0.

    Intervals of length 0 hold none. A point beyond the last end, by rounding, is in the last interval.
    """
    last = int(np.searchsorted(ends, ends[-1]))
    return np.minimum(np.searchsorted(ends, points, side="right"), last)
