"""Places of draws: from chances by bucket to drawn records.

Records are laid end to end, in the order of their keys, each as long as its chance. A draw is a point on this
line. Independent uniform points are draws with replacement; points at equal distances from a random start are
a systematic sample without replacement.
"""

from __future__ import annotations

from collections.abc import Callable

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


def at_points(
    source: Source, counts: pd.DataFrame, chance: Chance, points: FloatArray, seed: int
) -> pd.DataFrame:
    """Return the record at each point.

    Parameters
    ----------
    source : Source
    counts : DataFrame
        As `ordered_counts` returns them.
    chance : callable
        Chances of records that sum to 1 over the source.
    points : float array, (n,)
        In [0, 1).
    seed : int
        Of the keys.

    Returns
    -------
    DataFrame
        One row per point, in order of the points: record, cluster, size, key, [value,] chance.
    """
    weight = chance(counts) * counts["records"].to_numpy()
    ends = np.cumsum(np.bincount(counts["bucket"], weight, BUCKETS))
    points = points * ends[-1]  # the sum of chances is 1 up to rounding
    bucket = _containing(ends, points)
    rows = in_order(source.in_buckets(np.unique(bucket), seed))
    of_rows = (rows["key"].to_numpy() >> np.uint64(48)).astype(np.int64)
    first = np.searchsorted(of_rows, np.arange(BUCKETS + 1))
    of_record, at = chance(rows), np.empty(len(points), dtype=np.int64)
    starts = np.append(0.0, ends)[bucket]
    for b in np.unique(bucket):
        here = bucket == b
        inside = np.cumsum(of_record[first[b] : first[b + 1]])
        at[here] = first[b] + _containing(inside, points[here] - starts[here])
    return rows.iloc[at].assign(chance=of_record[at]).reset_index(drop=True)


def _containing(ends: FloatArray, points: FloatArray) -> IntArray:
    """Return the interval that holds each point, by the ends of adjoining intervals from 0.

    Intervals of length 0 hold none. A point beyond the last end, by rounding, is in the last interval.
    """
    last = int(np.searchsorted(ends, ends[-1]))
    return np.minimum(np.searchsorted(ends, points, side="right"), last)
