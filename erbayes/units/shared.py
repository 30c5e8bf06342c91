"""What two predictions of the same records have in common, where no sample can show a difference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from .._internal.arrays import BoolArray, FloatArray, IntArray
from ..metrics.columns import pairs
from .clustering import Clustering
from .ids import look_up

Pairs = Sequence[tuple[int, int]]
"""Positions of two predictions each."""


@dataclass(frozen=True, slots=True, eq=False)
class Overlap:
    """Links, clusters and records of clusters that are the same in two predictions, and links of one alone.

    `alone`: of each prediction, the sizes of its clusters and how many links those of each size have that the
    other prediction does not, (h,) each. `open_links`: links of both without a labelled end; `open_records`:
    records without a label whose clusters differ.
    """

    links: float
    clusters: float
    records: float
    alone: tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
    open_links: float
    open_records: float

    @classmethod
    def of(cls, first: Clustering, second: Clustering, labelled: IntArray) -> Overlap:
        """Count what clusterings of the same records in one order share; positions of `labelled` records."""
        a, b, m, k = first.codes, second.codes, first.sizes, second.sizes
        # most clusters of good matchers are in both, and need not be sorted
        partner = np.empty(len(m), dtype=np.int64)
        partner[a] = b
        same = m == k[partner]
        same[a[partner[a] != b]] = False
        rest = np.flatnonzero(~same[a])
        cells, n = np.unique(a[rest] * len(k) + b[rest], return_counts=True)
        one, other = np.divmod(cells, len(k))
        alone = [_sum_by_size(size, n * (size - n) / 2) for size in (m[one], k[other])]
        of_labelled, known = np.unique(a[labelled] * len(k) + b[labelled], return_counts=True)
        one, at = of_labelled // len(k), np.searchsorted(cells, of_labelled)
        size = np.where(same[one], m[one], np.append(n, 0)[at])
        links = pairs(n).sum() + pairs(m[same]).sum()
        shared = links, same.sum(), m[same].sum()
        cells_of = size.astype(float), known.astype(float), ~same[one]
        return cls.labelled(shared, (alone[0], alone[1]), len(a), cells_of)

    @classmethod
    def labelled(
        cls,
        shared: Iterable[float],
        alone: tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]],
        records: int,
        cells: tuple[FloatArray, FloatArray, BoolArray],
    ) -> Overlap:
        """Return an overlap of links, clusters and records that are `shared`, of all `records`.

        `cells`: where two clusters share labelled records, the number of those that they share in all and
        with a label, and whether the clusters differ, (l,) each.
        """
        links, same, inside = map(float, shared)
        n, known, differ = cells
        open_links = links - float((pairs(n) - pairs(n - known)).sum())
        return cls(links, same, inside, alone, open_links, records - inside - float(known[differ].sum()))


def _sum_by_size(size: IntArray, links: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the sizes of clusters and the sums of links by size, (h,) each, without sums of 0."""
    total = np.bincount(size, links)
    at = np.flatnonzero(total)
    return at.astype(float), total[at]


class Overlaps:
    """What each two of several predictions share, which `count` counts once, when it is first needed."""

    def __init__(self, count: Callable[[Pairs], Iterable[Overlap]]) -> None:
        self._count = count
        self._counted = dict[tuple[int, int], Overlap]()

    @classmethod
    def of(cls, clusterings: Sequence[Clustering], labelled: pd.Index) -> Overlaps:
        """Compare clusterings of the same records in one order, some of which are labelled."""
        at = look_up(clusterings[0].records, labelled)
        at = at[at >= 0]
        return cls(partial(_count_each, tuple(clusterings), at))

    def find(self, wanted: Pairs) -> list[Overlap]:
        """Return what the predictions of each pair share."""
        if new := [pair for pair in wanted if pair not in self._counted]:
            self._counted |= zip(new, self._count(new), strict=True)
        return [self._counted[pair] for pair in wanted]


def _count_each(clusterings: Sequence[Clustering], labelled: IntArray, wanted: Pairs) -> list[Overlap]:
    return [Overlap.of(clusterings[i], clusterings[j], labelled) for i, j in wanted]
