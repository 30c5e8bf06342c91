"""What two predictions of the same records have in common, where no sample can show a difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray, IntArray
from ..metrics.columns import pairs
from .clustering import Clustering
from .lookup import look_up


@dataclass(frozen=True, slots=True, eq=False)
class Overlap:
    """Links, clusters and records of clusters that are the same in two predictions, and links of one alone.

    `alone`: of each prediction, the sizes of its clusters and how many links those of each size have that the
    other prediction does not, (h,) each.
    """

    links: float
    clusters: float
    records: float
    alone: tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]

    @classmethod
    def of(cls, first: Clustering, second: Clustering) -> Overlap:
        """Count what two clusterings of the same records share."""
        codes = second.codes[look_up(second.records, first.records)]
        of_both, n = np.unique(first.codes * len(second.sizes) + codes, return_counts=True)
        one, other = np.divmod(of_both, len(second.sizes))
        same = (n == first.sizes[one]) & (n == second.sizes[other])
        alone = [
            _count_links_alone(clustering.sizes, np.bincount(at, pairs(n), len(clustering.sizes)))
            for clustering, at in ((first, one), (second, other))
        ]
        return cls(float(pairs(n).sum()), float(same.sum()), float(n[same].sum()), (alone[0], alone[1]))


def count_open(
    first: Clustering, second: Clustering, shared: Overlap, labelled: pd.Index
) -> tuple[float, float]:
    """Return the links without a label in both clusterings, and the records without one that differ.

    They differ if their clusters do. `labelled`: records of whole entities.
    """
    known = np.zeros(len(first.records), dtype=bool)
    known[look_up(first.records, labelled)] = True
    touched = np.zeros(len(first.sizes), dtype=bool)
    touched[first.codes[known]] = True
    inside = np.flatnonzero(touched[first.codes])  # overlaps without a labelled record are not counted again
    one, other = first.codes[inside], second.codes[look_up(second.records, first.records[inside])]
    _, at, n = np.unique(one * len(second.sizes) + other, return_inverse=True, return_counts=True)
    left, differs = (
        n - np.bincount(at, known[inside]),
        (first.sizes[one] != n[at]) | (second.sizes[other] != n[at]),
    )
    settled = len(first.records) - shared.records - (known[inside] & differs).sum()
    return float(shared.links - (pairs(n) - pairs(left)).sum()), float(settled)


def _count_links_alone(size: IntArray, common: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return sizes and numbers of links that are not `common`, (h,) each, from those by cluster."""
    links = np.bincount(size, pairs(size.astype(float)) - common)
    at = np.flatnonzero(links)
    return at.astype(float), links[at]


class Overlaps:
    """What each two of several predictions share, counted once, when it is first needed."""

    def __init__(self, clusterings: Sequence[Clustering]) -> None:
        self.clusterings = tuple(clusterings)
        self._counted = dict[tuple[int, int], Overlap]()

    def find_open(self, first: int, second: int, labelled: pd.Index) -> tuple[float, float]:
        """Return what labels leave open of both predictions: see `count_open`."""
        shared = self.find(first, second)
        assert shared is not None
        return count_open(self.clusterings[first], self.clusterings[second], shared, labelled)

    def find(self, first: int, second: int) -> Overlap | None:
        """Return what the predictions at two positions share; None if they were counted elsewhere."""
        if not self.clusterings:
            return None
        if (first, second) not in self._counted:
            self._counted[first, second] = Overlap.of(self.clusterings[first], self.clusterings[second])
        return self._counted[first, second]
