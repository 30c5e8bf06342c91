"""Clusters of a second clustering that stand for entities: matched to the sampled ones, and those left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from .._internal.arrays import BoolArray, FloatArray, IntArray
from .._internal.errors import DataError
from ..auxiliary.second import Second
from ..design.contract import SelectedBySize
from ..design.sample import Sample
from ..metrics.columns import COMMON_LINKS, LARGEST_PIECE, TRUE_LINKS, pairs
from .grid import SizeGrid

IMAGINED = 0.5
"""Number of matched pairs, among those of a sample, that are imagined to differ by all of their links."""
FEWEST = 3
"""Number of clusters of two records or more that sampled entities must match, or no cluster counts."""


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """A second clustering next to the sampled entities, (u,), which match some of its clusters, (clusters,).

    `cluster` is the one that an entity matches, or -1, and `common` counts their common records. Clusters
    that are `left` can match an unsampled entity; `guests` match none and have most of their records
    there. Of `broken` entities, `mended` ones have more of their records in a cluster than in any
    predicted one.
    """

    second: Second
    size: FloatArray
    cluster: IntArray
    common: FloatArray
    left: BoolArray
    guests: IntArray
    broken: int
    mended: int

    @classmethod
    def of(cls, sample: Sample, second: Second) -> Matched:
        """Match the clusters of a second clustering of the same prediction to the sampled entities."""
        position = second.position(sample.units)
        if position is None:
            raise DataError(
                "the second clustering was not counted with the prediction and the labels of this sample: "
                "make both from the same, with Second.of(prediction, labels, by) and "
                "measure(prediction, labels)"
            )
        size, of_entity = second.whole.size, second.match[position]
        of_sample = np.full(len(second.units), -1)
        of_sample[position] = np.arange(len(position))
        unit, cluster, common = second.overlaps
        drawn = of_sample[unit] >= 0
        entity, cluster, common = of_sample[unit[drawn]], cluster[drawn], common[drawn]
        in_both, matches = np.zeros(len(position)), of_entity[entity] == cluster
        in_both[entity[matches]] = common[matches]
        left = np.bincount(cluster, common, len(size)) < size / 2
        left[cluster[matches]] = False
        guest = (2 * common > sample.units.size[entity]) & (of_entity[entity] < 0)
        guests = np.bincount(cluster[guest], minlength=len(size))
        # from fewer pairs one cannot tell how entities differ from their clusters
        if np.sum(size[cluster[matches]] > 1) < FEWEST:
            of_entity, left = np.full(len(position), -1), np.zeros(len(size), dtype=bool)
        broken = sample.units.column(COMMON_LINKS) < pairs(sample.units.size)
        mended = broken & (in_both > sample.units.column(LARGEST_PIECE))
        return cls(second, size, of_entity, in_both, left, guests, int(broken.sum()), int(mended.sum()))

    @property
    def used(self) -> bool:
        """False if few sampled entities match, or if it mends less than half of those that are broken."""
        return bool(self.known.any()) and 2 * self.mended >= self.broken

    @property
    def largest(self) -> float:
        """Records of the largest cluster that a sampled entity matches."""
        return float(self.size[self.cluster[self.known]].max())

    @property
    def known(self) -> BoolArray:
        """True for sampled entities that match a cluster, (u,)."""
        return np.asarray(self.cluster >= 0)

    def data(self, sample: Sample, grid: SizeGrid) -> dict[str, Any]:
        """Count the data of `contract.SECOND_DATA`, except of the entities."""
        whole, bins, J = self.second.whole, grid.bin(self.size), len(grid.size)
        of_entities = bins[self.cluster[self.known]]

        def total(values: Any) -> FloatArray:
            """Return the sum of values of the clusters by size, (J,)."""
            return np.bincount(bins, values * self.second.count, J).astype(float)

        def total_left(values: Any) -> FloatArray:
            """Return the sum of values of the clusters left, (2 J,): without guests, then with guests."""
            left = values * self.left
            return np.concatenate([total(left * (self.guests == 0)), total(left * (self.guests > 0))])

        return {
            "second": self.used * total(1.0),
            "second_records": self.used * total(self.size),
            "out_of_reach": (np.arange(J) > of_entities.max(initial=-1)).astype(float),
            "left": total_left(1.0),
            "left_records": total_left(self.size),
            "guests": total_left(self.guests),
            "guest_rate": len(self.cluster) / (self.size @ self.second.count),
            "left_true": total_left(whole.column(TRUE_LINKS)),
            "left_common": total_left(whole.column(COMMON_LINKS)),
            "matched": np.bincount(of_entities, minlength=J),
            **self._compare_pairs(sample),
        }

    def _compare_pairs(self, sample: Sample) -> dict[str, Any]:
        """Return how matched entities and their clusters differ, with one record or two more imagined."""
        units, design = sample.units, cast(SelectedBySize, sample.design)
        cluster, common = self.cluster[self.known], self.common[self.known]
        records, others = units.size[self.known], self.size[cluster]
        weight = 1 / design.selection(units.size, units)[self.known]
        t, s, c, d = (
            weight * values
            for column in (TRUE_LINKS, COMMON_LINKS)
            for values in (units.column(column)[self.known], self.second.whole.column(column)[cluster])
        )
        found = (
            _compute_jackknife(lambda t, s: np.log(t / s), t, s),
            _compute_jackknife(lambda t, s, c, d: np.log(c / t * s / d), t, s, c, d),
        )
        links = pairs(records) + 1e-9
        return {
            "foreign_share": float((1 + np.sum(others - common)) / (2 + others.sum())),
            "pair_change": float((1 + np.sum(records + others - 2 * common)) / (1 + records.sum())),
            "pair_centre": float(links @ np.log2(records) / links.sum()) if len(records) else 0.0,
            "pair_difference": np.array([value for value, _ in found]),
            "pair_error": np.array([error for _, error in found]),
        }


def _compute_jackknife(formula: Callable[..., Any], *terms: FloatArray) -> tuple[float, float]:
    """Return a formula of sums over pairs, or 0 if undefined, with its standard error by the jackknife."""
    n = len(terms[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        value = formula(*(t.sum() for t in terms))
        without = formula(*(t.sum() - t for t in terms))
    if n < 2 or not (np.isfinite(value) and np.isfinite(without).all()):
        return 0.0, 1.0
    # pairs that all agree would have no error, so that imagined ones differ by all of their links
    variance = (n - 1) / n * np.sum((without - without.mean()) ** 2) + (IMAGINED / n) ** 2
    return float(value), float(np.sqrt(variance))
