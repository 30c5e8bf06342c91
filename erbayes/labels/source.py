"""Sources: predictions from which records are drawn, in memory or elsewhere.

Every source draws the same records from the same prediction with the same seed. Records are in random order,
that of their keys of 64 bits. The key of a record is the first 16 hexadecimal digits of md5 of the text
"seed:id", and its first 16 bits are the bucket. A source counts records per bucket and size. All arithmetic
with chances is done here, on these counts, in one order, so that sources cannot differ by rounding.

To draw, records are laid end to end in the order of their keys, each as long as its chance. A draw is a point
on this line. Independent uniform points are draws with replacement; points at equal distances from a random
start are a systematic sample without replacement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import md5
from math import ceil
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._internal.arrays import FloatArray, IntArray
from .._internal.errors import DataError, head, refuse_cases
from ..design.contract import series_by_id
from ..large import drawing
from ..large.files import lies_elsewhere
from ..units.clustering import Clustering
from ..units.ids import are_listed, count_cased, ids
from ..units.units import KnownTotals, histogram

BUCKETS = 2**16
"""Number of buckets. The bucket of a key is its first 16 bits."""

Keys = NDArray[np.uint64]
Chance = Callable[[pd.DataFrame], FloatArray]
"""The chance of a record in each row of a table with its `size` (and `value`)."""
ORDER, ACCEPTED = 2**32 - 1, 2**32 - 2
"""Streams of random numbers for the order of draws, and for those that stay in a sample of uniform records.
Strata have the streams from 0 on."""


class Source(Protocol):
    """A prediction from which records are drawn. Tables have a `value` only if it was opened with values."""

    @property
    def known(self) -> KnownTotals:
        """Return the histogram of sizes of predicted clusters."""

    def counts(self, seed: int) -> pd.DataFrame:
        """Count records: bucket, size (of the cluster), [value,] records; a row for each combination."""

    def in_buckets(self, buckets: IntArray, seed: int) -> pd.DataFrame:
        """Return the records in the buckets: record, cluster, size, key, [value]. `key` has type uint64."""

    def up_to(self, highest: Mapping[int, int], seed: int) -> pd.DataFrame:
        """Return the records whose key is at most the `highest` of the size of their cluster."""

    def members(self, clusters: pd.Index) -> pd.DataFrame:
        """Return all records of predicted clusters: record, cluster."""

    def look_up(self, records: pd.Index) -> pd.DataFrame:
        """Return those of these records that the source has: record, cluster, size."""

    def of_clusters(self) -> Source:
        """Return the source whose records are the predicted clusters, one row each with its id and size."""


def text_of(id: Any) -> bytes:
    """Return the text of an id in UTF-8, of which keys are made."""
    # ids from damaged files may have lone surrogates, which UTF-8 alone refuses
    return str(id).encode("utf-8", "surrogatepass")


def keys_of(records: Any, seed: int) -> Keys:
    """Return the first 64 bits of md5 of "seed:id", (n,); over 2**64 they are permanent random numbers.

    >>> [hex(key) for key in keys_of(["r1", 7], seed=1)]
    ['0x7e121075491da87b', '0xa9857b2167864a55']
    """
    start = f"{seed}:".encode()
    # an Index of strings is slow to walk
    listed = records.tolist() if hasattr(records, "tolist") else records
    # databases have MD5 too, so that a seed draws the same records in all of them; nothing is secret here
    digests = b"".join(
        # `text_of`, without a call for each of many ids
        [md5(start + str(r).encode("utf-8", "surrogatepass"), usedforsecurity=False).digest() for r in listed]
    )
    return np.frombuffer(digests, dtype=">u8")[::2].astype(np.uint64)


def fingerprint_of(known: KnownTotals, members: pd.DataFrame) -> str:
    """Return "records-clusters-digest" of a prediction, by its sizes and `members` of the drawn clusters.

    >>> sizes = KnownTotals(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    >>> fingerprint_of(sizes, pd.DataFrame({"record": ["r1"], "cluster": ["a"]}))
    '3-2-9a7e254c0ab29a73'
    """
    # all that a draw knows of a prediction, so that no other record is read for its fingerprint
    sizes = ",".join(f"{m:.0f}:{k:.0f}" for m, k in zip(known.size, known.count, strict=True))
    pairs = zip(members["record"], members["cluster"], strict=True)
    lines = sorted(text_of(r) + b"\t" + text_of(c) for r, c in pairs)
    digest = md5(b"\n".join([sizes.encode(), *lines]), usedforsecurity=False).hexdigest()[:16]
    return f"{known.size @ known.count:.0f}-{known.count.sum():.0f}-{digest}"


def change(clusters: Any) -> DataError:
    """Return the error about predicted clusters whose sizes changed while a table was read several times."""
    return DataError(
        f"the prediction changed while it was read: {len(clusters)} clusters or sizes, such as "
        f"{head(clusters)}, are not what they were. Draw from a copy or a version of it"
    )


@dataclass(frozen=True, slots=True, eq=False)
class InMemory:
    """A prediction in memory, as a source: `codes` and `size` (N,) are of the cluster of each record."""

    records: pd.Index
    codes: IntArray
    clusters: pd.Index
    size: IntArray
    known: KnownTotals
    values: Any = None

    @classmethod
    def of(cls, prediction: Any, values: Any = None) -> InMemory:
        """Make a source of memberships (see `Clustering.of`), with a value for every record or none."""
        clustering = Clustering.of(prediction, "prediction")
        if not len(clustering.records):
            raise DataError("the prediction has no record: there is nothing to draw from")
        sizes = clustering.sizes
        known = histogram(sizes, count_cased(clustering.clusters))
        of_records = None if values is None else match_values(values, clustering.records).to_numpy()
        records, codes, clusters = clustering.records, clustering.codes, clustering.clusters
        return cls(records, codes, clusters, sizes[codes], known, of_records)

    def counts(self, seed: int) -> pd.DataFrame:
        bucket = (keys_of(self.records, seed) >> np.uint64(48)).astype(np.int64)
        table = self._take_rows(slice(None)).drop(columns=["record", "cluster"]).assign(bucket=bucket)
        by = list(table.columns)
        return table.groupby(by, sort=False, observed=True).size().rename("records").reset_index()

    def in_buckets(self, buckets: IntArray, seed: int) -> pd.DataFrame:
        keys = keys_of(self.records, seed)
        chosen = np.zeros(BUCKETS, dtype=bool)
        chosen[buckets] = True
        at = np.flatnonzero(chosen[(keys >> np.uint64(48)).astype(np.int64)])
        return self._take_rows(at).assign(key=keys[at])

    def up_to(self, highest: Mapping[int, int], seed: int) -> pd.DataFrame:
        sizes = np.array(sorted(highest), dtype=np.int64)
        limits = np.array([highest[m] for m in sizes.tolist()], dtype=np.uint64)
        at = np.flatnonzero(np.isin(self.size, sizes))
        keys = keys_of(self.records[at], seed)
        near = keys <= limits[np.searchsorted(sizes, self.size[at])]
        return self._take_rows(at[near]).assign(key=keys[near])

    def members(self, clusters: pd.Index) -> pd.DataFrame:
        at = np.flatnonzero(are_listed(self.clusters, clusters)[self.codes])
        return self._take_rows(at)[["record", "cluster"]]

    def look_up(self, records: pd.Index) -> pd.DataFrame:
        at = np.flatnonzero(are_listed(self.records, records))
        return self._take_rows(at)[["record", "cluster", "size"]]

    def of_clusters(self) -> InMemory:
        codes = np.arange(len(self.clusters))
        return InMemory(self.clusters, codes, self.clusters, np.bincount(self.codes), self.known)

    def _take_rows(self, at: Any) -> pd.DataFrame:
        table = {"record": self.records[at], "cluster": self.clusters[self.codes[at]], "size": self.size[at]}
        return pd.DataFrame(table | ({} if self.values is None else {"value": self.values[at]}))


def match_values(values: Any, records: pd.Index, what: str = "records") -> pd.Series:
    """Return the value of each record, (n,), and refuse records with several values or none."""
    series = series_by_id(values, "values", "records")
    found: pd.Series = series.set_axis(ids(series.index, "record ids of the values")).reindex(records)
    refuse_cases(records[found.isna()], f"{what} have no value", of=len(records))
    return found


@contextmanager
def open_source(prediction: Any, values: Any = None) -> Iterator[Source]:
    """Open a prediction as a source, with values by record or, in files and tables, the name of a column."""
    if hasattr(prediction, "in_buckets"):
        if values is not None:
            raise DataError("values belong to a source that is opened already: open it with them")
        yield prediction
    elif lies_elsewhere(prediction):
        if not isinstance(values, str | None):
            raise DataError("values of a prediction in files or tables are the name of a column of theirs")
        with drawing(prediction, value=values) as source:
            yield source
    else:
        yield InMemory.of(prediction, values)


def in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """Return records in the order of their keys, records of equal keys in the order of their texts."""
    rows = rows.sort_values("key", kind="stable", ignore_index=True)
    if rows["key"].is_unique:
        return rows
    # equal keys are ordered by id, because rows of a database have no order
    text = rows["record"].map(text_of)
    return rows.assign(text=text).sort_values(["key", "text"], ignore_index=True).drop(columns="text")


def ordered_counts(source: Source, seed: int) -> pd.DataFrame:
    """Return the counts of a source in the order of bucket, size and value."""
    counts = source.counts(seed)
    by = [column for column in ("bucket", "size", "value") if column in counts]
    return counts.sort_values(by, ignore_index=True)


Line = tuple[Chance, FloatArray]
"""Records laid end to end, each as long as its chance, with points on them, (n,), each in [0, 1)."""


def at_points(source: Source, counts: pd.DataFrame, lines: Sequence[Line], seed: int) -> list[pd.DataFrame]:
    """Return a table per line with the record at each point and its chance, by one question to the source."""
    ends = [
        np.cumsum(np.bincount(counts["bucket"], chance(counts) * counts["records"], BUCKETS))
        for chance, _ in lines
    ]
    points = [of_line * end[-1] for (_, of_line), end in zip(lines, ends, strict=True)]  # 1 up to rounding
    buckets = [containing(end, p) for end, p in zip(ends, points, strict=True)]
    # only buckets with a point are read, so that no source returns all its records
    rows = in_order(source.in_buckets(np.unique(np.concatenate(buckets)), seed))
    of_rows = (rows["key"].to_numpy() >> np.uint64(48)).astype(np.int64)
    first = np.searchsorted(of_rows, np.arange(BUCKETS + 1))
    tables = []
    for (chance_of, _), end, places, bucket in zip(lines, ends, points, buckets, strict=True):
        chance = chance_of(rows)
        row_ends = np.append(0.0, end)[of_rows] + pd.Series(chance).groupby(of_rows).cumsum().to_numpy()
        at = np.searchsorted(row_ends, places, side="right")
        last = np.searchsorted(row_ends, row_ends[first[bucket + 1] - 1])  # with a chance, in the bucket
        at = np.clip(at, first[bucket], np.maximum(last, first[bucket]))
        tables.append(rows.iloc[at].assign(probability=chance[at]).reset_index(drop=True))
    return tables


def first_in_order(source: Source, needed: Mapping[Any, int], seed: int) -> pd.DataFrame:
    """Return the first records of clusters of each size by their keys, at least `needed` (size -> number)."""
    clusters = dict(zip(source.known.size.tolist(), source.known.count.tolist(), strict=True))
    expected = {m: k + 6 * k**0.5 + 10 for m, k in needed.items()}  # so that a second look is rare
    while True:
        share = {m: min(e / clusters[m], 1.0) for m, e in expected.items()}
        # the highest key whose permanent random number is below the share
        rows = in_order(source.up_to({m: ceil(s * 2.0**64) - 1 for m, s in share.items()}, seed))
        counted = Counter(rows["size"])
        short = [m for m, k in needed.items() if counted[m] < k]
        if not short:
            return rows
        # all clusters of the size were read, so that the source has changed
        if all(share[m] == 1 for m in short):
            raise change(short)
        expected = {m: 8 * e for m, e in expected.items()}


def containing(ends: FloatArray, points: FloatArray) -> IntArray:
    """Return the interval of each point, (n,), by the ends of adjoining intervals from 0."""
    # intervals of length 0 have no point, and one above the last end, by rounding, is in the last interval
    last = int(np.searchsorted(ends, ends[-1]))
    return np.minimum(np.searchsorted(ends, points, side="right"), last)
