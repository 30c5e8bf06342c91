"""Clustering: which record belongs to which cluster, validated once and integer-coded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


class DataError(ValueError):
    """Input that cannot be used; the message says what, where and how many."""


def some(values: Any, most: int = 3) -> str:
    """The first few of `values`, to show in a message."""
    shown = [repr(v.item() if isinstance(v, np.generic) else v) for v in list(values[:most])]
    return ", ".join(shown) + (", …" if len(values) > most else "")


def ids(values: Any, what: str) -> pd.Index:
    """`values` as an Index of string or integer ids.

    Raises
    ------
    DataError
        Missing values, or ids that are neither all strings nor all integers. Floats are refused
        since they cannot tell 2**53 from 2**53 + 1.
    """
    index: pd.Index = pd.Index(values)
    missing = int(np.count_nonzero(index.isna()))
    if missing:
        raise DataError(f"{what}: {missing} of {len(index)} are missing")
    if isinstance(index, pd.CategoricalIndex):
        index = pd.Index(index.categories[index.codes])
    kind = pd.api.types.infer_dtype(index, skipna=False)
    if len(index) and kind not in {"string", "integer"}:
        raise DataError(f"{what} must be all strings or all integers, not {kind}")
    return index


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
                memberships
                if isinstance(memberships, pd.DataFrame)
                else pd.DataFrame.from_arrow(memberships)  # type: ignore[attr-defined]
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
        if not records.is_unique:
            twice = records[records.duplicated()]
            raise DataError(
                f"record ids of the {what}: {len(twice)} duplicates, such as {some(twice)}"
            )
        codes, clusters = pd.factorize(ids(cluster, f"cluster ids of the {what}"))
        return cls(records, codes.astype(np.int64), pd.Index(clusters))

    @property
    def sizes(self) -> IntArray:
        """Number of records of each cluster, (K,)."""
        return np.bincount(self.codes, minlength=len(self.clusters))

    def restrict(self, records: pd.Index) -> Clustering:
        """The same partition on those of its records that are among `records`."""
        kept = self.records.isin(records)
        codes, clusters = pd.factorize(self.codes[kept])
        return Clustering(self.records[kept], codes.astype(np.int64), self.clusters[clusters])

    def __repr__(self) -> str:
        return f"Clustering({len(self.records)} records, {len(self.clusters)} clusters)"
