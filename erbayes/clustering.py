"""Clustering: which record belongs to which cluster, validated once and integer-coded."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from .arrays import BoolArray, IntArray
from .errors import DataError, some

LONGEST = 64
"""Bytes of the longest strings that have digests; pandas is as quick with longer ones."""
CHUNK = 2**15
"""Strings whose digests are computed at once, so many as fit in the processor's cache."""


def ids(values: Any, what: str) -> pd.Index:
    """`values` as an Index of string or integer ids.

    Raises
    ------
    DataError
        Missing values, or ids that are neither all strings nor all integers. Floats are refused
        since they cannot tell 2**53 from 2**53 + 1.
    """
    if isinstance(values, str | int):
        raise DataError(f"{what} must be several ids, not {values!r} alone")
    index: pd.Index = pd.Index(values)
    if isinstance(index.dtype, pd.ArrowDtype) and pa.types.is_dictionary(index.dtype.pyarrow_dtype):
        index = index.astype(pd.ArrowDtype(index.dtype.pyarrow_dtype.value_type))
    missing = int(np.count_nonzero(index.isna()))
    if missing:
        raise DataError(f"{what}: {missing} of {len(index)} are missing")
    if isinstance(index, pd.CategoricalIndex):
        index = pd.Index(index.categories[index.codes])
    kind = pd.api.types.infer_dtype(index, skipna=False)
    if len(index) and kind not in {"string", "integer"}:
        raise DataError(f"{what} must be all strings or all integers, not {kind}")
    return index


def _digests(strings: pa.Array | pa.ChunkedArray) -> NDArray[np.uint64] | None:
    """Numbers that are equal for equal strings, and hardly ever for others; None where a string is long."""
    chunks = [chunk.cast(pa.large_string()) for chunk in getattr(strings, "chunks", [strings])]
    padded = pa.concat_arrays([*chunks, pa.array(["\0" * LONGEST], pa.large_string())])
    _, offsets, data = padded.buffers()
    ends = np.frombuffer(offsets, np.int64)[: len(padded)]
    start, size = ends[:-1], np.diff(ends)
    longest = int(size.max())
    if longest > LONGEST:
        return None
    word = np.ndarray(len(data) - 7, "<u8", data, strides=1)  # the eight bytes from each byte on
    found = size.astype(np.uint64)
    for a in range(0, len(size), CHUNK):
        digest, at, bits = found[a : a + CHUNK], start[a : a + CHUNK], 8 * size[a : a + CHUNK]
        for byte in range(0, longest, 8):
            digest ^= word[at + byte] << np.maximum(64 + 8 * byte - bits, 0).astype(np.uint64)
            digest *= np.uint64(0x9E3779B97F4A7C15)
            digest ^= digest >> np.uint64(32)
    return found


def _unique(index: pd.Index) -> bool:
    """Whether each id occurs once. Sorting numbers is many times quicker than hashing ids."""
    numbers = None
    if isinstance(index.dtype, np.dtype) and index.dtype.kind in "iu":
        numbers = index.to_numpy(copy=True)
    elif len(index) and isinstance(index[0], str):
        with suppress(UnicodeEncodeError):  # half of a surrogate pair
            numbers = _digests(pa.array(index))
    if numbers is None:
        return index.is_unique
    numbers.sort()
    return bool((numbers[1:] != numbers[:-1]).all()) or index.is_unique


def _coded(values: Any, what: str) -> tuple[IntArray, pd.Index]:
    """Code of each id, in order of first appearance, and the distinct ids."""
    index: pd.Index = pd.Index(values)
    if isinstance(index, pd.CategoricalIndex) and not index.hasnans:
        codes, seen = pd.factorize(index.codes)
        return codes.astype(np.int64), ids(index.categories[seen], what)
    codes, distinct = pd.factorize(ids(index, what))
    return codes.astype(np.int64), pd.Index(distinct)


@dataclass(frozen=True, slots=True, eq=False)
class Clustering:
    """A partition of records into clusters.

    Attributes
    ----------
    records : Index, (N,)
        Unique record ids, strings or integers.
    codes : int array, (N,)
        Cluster of each record, 0 to K - 1.
    clusters : Index, (K,)
        Cluster ids, in order of first appearance.

    Examples
    --------
    >>> Clustering.of({"r1": "a", "r2": "a", "r3": "b"}).sizes
    array([2, 1])
    """

    records: pd.Index
    codes: IntArray
    clusters: pd.Index

    @classmethod
    def of(cls, memberships: Any, what: str = "clustering") -> Clustering:
        """From a Series (index = records), a mapping, or a table whose first two columns are
        record and cluster: a DataFrame or anything with an Arrow C stream (polars, pyarrow).

        Parameters
        ----------
        memberships : Clustering, Series, mapping, DataFrame or Arrow table
        what : str
            How messages name this input.

        Raises
        ------
        DataError
            Duplicate record ids, missing values, ids neither strings nor integers.
        """
        if isinstance(memberships, Clustering):
            return memberships
        if isinstance(memberships, pd.Series):
            record, cluster = memberships.index, memberships.array
        elif isinstance(memberships, Mapping):
            record, cluster = list(memberships), list(memberships.values())  # type: ignore[assignment]
        elif isinstance(memberships, pd.DataFrame) or hasattr(memberships, "__arrow_c_stream__"):
            frame = (
                memberships if isinstance(memberships, pd.DataFrame) else pd.DataFrame.from_arrow(memberships)  # type: ignore[attr-defined]
            )
            if frame.shape[1] < 2:
                raise DataError(f"{what}: a table needs a record and a cluster column")
            record, cluster = frame.iloc[:, 0], frame.iloc[:, 1]  # type: ignore[assignment]
        else:
            raise DataError(
                f"{what}: expected a Series, a mapping, a DataFrame or an Arrow table, "
                f"not {type(memberships).__name__}"
            )
        records = ids(record, f"record ids of the {what}")
        if not _unique(records):
            twice = records[records.duplicated()]
            raise DataError(f"record ids of the {what}: {len(twice)} duplicates, such as {some(twice)}")
        return cls(records, *_coded(cluster, f"cluster ids of the {what}"))

    @property
    def sizes(self) -> IntArray:
        """Number of records of each cluster, (K,)."""
        return np.bincount(self.codes, minlength=len(self.clusters))

    def restrict(self, records: pd.Index) -> Clustering:
        """The same partition on those of its records that are among `records`."""
        return self.where(self.records.isin(records))

    def where(self, kept: BoolArray) -> Clustering:
        """The same partition on those of its records that a mask, (N,), keeps."""
        codes, clusters = pd.factorize(self.codes[kept])
        return Clustering(self.records[kept], codes.astype(np.int64), self.clusters[clusters])

    def __repr__(self) -> str:
        return f"Clustering({len(self.records)} records, {len(self.clusters)} clusters)"
