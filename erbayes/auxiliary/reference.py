"""All clusters of a second clustering: the value of a metric by them, and the share that no draw reaches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from .._internal.arrays import BoolArray, FloatArray, IntArray
from ..engine.fitted import columns_of
from ..metrics.columns import Column
from ..metrics.definitions import Metric, coefficients_of_size
from ..metrics.totals import positions
from ..units.units import Units


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """The value of a metric with a second clustering as the truth, θ^S, and its `unreached_share`.

    `values` (3,): unreached clusters as they are, with the most influential one cut as the prediction has it,
    and with all of them as the prediction has them.
    """

    values: FloatArray
    unreached_share: float

    @property
    def range(self) -> tuple[float, float]:
        """Return the lesser and the larger value: all unreached clusters as they are, and as predicted."""
        ends = self.values[[0, 2]]
        return float(np.nanmin(ends)), float(np.nanmax(ends))

    def likely(self, right: float) -> float:
        """Return the value if the second clustering is `right` about a share of the unreached clusters."""
        unchanged, one_cut, predicted = self.values
        if not np.isfinite(self.values).all():
            return sum(self.range) / 2
        return float(np.clip((unchanged + one_cut) / 2 + (1 - right) * (predicted - one_cut), *self.range))


def find_shared_records(
    units: Units, mine: BoolArray, cluster: IntArray
) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    """Return units and clusters with records in common, their number, and a piece of each, (o,) each."""
    assert units.counted is not None  # a second clustering counts the records that it shares
    at = np.flatnonzero(mine)
    unit, width = units.unit[at], int(cluster.max(initial=0)) + 1
    _, first, pair = np.unique(unit * width + cluster[at], return_index=True, return_inverse=True)
    common = np.bincount(pair, units.counted[at])
    return unit[first], cluster[at][first], common, at[first]


def find_reached(units: Units, mine: BoolArray, cluster: IntArray, size: FloatArray) -> IntArray:
    """Return the clusters that share most records of one of the two with a unit whose pieces are `mine`."""
    # a unit with one stray record in a very large cluster does not show whether that cluster is right
    unit, of_pair, shared, piece = find_shared_records(units, mine, cluster)
    most = (2 * shared >= units.size[unit]) | (2 * shared >= size[piece])
    return np.unique(of_pair[most])


def mark_possible_parts(clusters: Units, predicted: IntArray, limit: float) -> BoolArray:
    """Return whether each cluster may be a part of an entity above `limit`, (clusters,).

    That is in predicted clusters other than those that units reach, `predicted`.
    """
    far = (clusters.m > limit) & ~np.isin(clusters.cluster, predicted)
    inside = np.bincount(clusters.unit, clusters.n * far, len(clusters))
    return np.asarray(2 * inside > clusters.size)


@dataclass(frozen=True, slots=True, eq=False)
class MetricTotals:
    """Totals of a metric by cluster, (clusters, c), and their `change` if the prediction cuts it."""

    metric: Metric
    columns: list[Column]
    by_cluster: FloatArray
    change: FloatArray
    known: FloatArray
    place: list[int]

    @classmethod
    def of(cls, metric: Metric, clusters: Units) -> MetricTotals:
        columns, known = columns_of([metric])
        cut = replace(clusters, N=clusters.n)
        by_cluster, apart = (np.stack([u.column(c) for c in columns], axis=1) for u in (clusters, cut))
        constants = np.array([clusters.total(total.column) for total in known])
        place = positions(metric, [c.name for c in columns] + [total.name for total in known])
        return cls(metric, columns, by_cluster, apart - by_cluster, constants, place)

    @property
    def total(self) -> FloatArray:
        """Return the totals over all clusters, (c,)."""
        return np.asarray(self.by_cluster.sum(axis=0))

    @property
    def size(self) -> FloatArray:
        """Return the total that the metric averages over, of each cluster, (clusters,)."""
        coefficients = coefficients_of_size([self.metric], [c.name for c in self.columns])[0]
        return np.asarray(self.by_cluster @ coefficients)

    def evaluate(self, totals: FloatArray) -> FloatArray:
        """Return the metric of totals, (..., c); NaN if it is 0/0."""
        known = np.broadcast_to(self.known, (*totals.shape[:-1], len(self.known)))
        values = np.concatenate([totals, known], axis=-1)[..., self.place]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.metric.formula(*np.moveaxis(values, -1, 0)), dtype=float)


@dataclass(frozen=True, eq=False)
class FullCount:
    """All clusters of a second clustering as units, (clusters,)."""

    clusters: Units
    _ordered: dict[Metric, IntArray] = field(default_factory=dict, init=False)

    def value(self, metric: Metric) -> float:
        """Return a metric of the prediction with these clusters as the truth."""
        totals = MetricTotals.of(metric, self.clusters)
        return float(totals.evaluate(totals.total))

    def order_by_influence(self, totals: MetricTotals) -> IntArray:
        """Return the clusters that the prediction cuts, the one that changes a metric most if cut first."""
        if totals.metric not in self._ordered:
            cut = np.flatnonzero(np.bincount(self.clusters.unit) > 1)
            changed = totals.evaluate(totals.total + totals.change[cut])
            influence = np.abs(changed - totals.evaluate(totals.total))
            # rounded, so that the order of clusters of equal influence does not depend on their numbers
            largest = np.nanmax(influence, initial=0.0)
            rounded = np.round(influence / largest, 9) if largest > 0 else influence
            self._ordered[totals.metric] = cut[np.lexsort((-totals.size[cut], -rounded))]
        return self._ordered[totals.metric]

    def count_as_predicted(self, clusters: BoolArray, columns: list[Column]) -> FloatArray:
        """Return totals of the records of some clusters if the prediction were right about them."""
        inside = clusters[self.clusters.unit]
        if not inside.any():
            return np.zeros(len(columns))
        cluster, piece = np.unique(self.clusters.cluster[inside], return_inverse=True)
        n, m = np.bincount(piece, self.clusters.n[inside]), np.empty(len(cluster))
        m[piece] = self.clusters.m[inside]
        unit = np.zeros(len(n), dtype=np.int64)
        units = Units(pd.Index(["all"]), unit, np.arange(len(n)), n, n, m, cluster, known=None)
        return np.array([c.count(units)[0] for c in columns])

    def split_by_reach(self, units: Units, position: IntArray) -> tuple[BoolArray, BoolArray]:
        """Return which clusters units at `position` reach, and which larger ones not, (clusters,) each."""
        mine, size = np.isin(units.unit, position), self.clusters.size
        reached = np.zeros(len(size), dtype=bool)
        reached[find_reached(units, mine, units.group, units.N)] = True
        predicted = find_reached(units, mine, units.cluster, units.m)
        # an entity as large as a predicted cluster that units reach is seen, also if the second clustering
        # has none as large
        seen = mine & np.isin(units.cluster, predicted)
        limit = float(max(size[reached].max(initial=0), units.m[seen].max(initial=0)))
        larger = (size > limit) | mark_possible_parts(self.clusters, predicted, limit)
        return reached, larger & ~reached

    def reference(self, units: Units, metric: Metric, position: IntArray) -> Reference:
        """Return the value of a metric and its unreached share, given labelled units at `position`, (u,)."""
        reached, unreached = self.split_by_reach(units, position)
        totals = MetricTotals.of(metric, self.clusters)
        candidates = self.order_by_influence(totals)
        candidates = candidates[~reached[candidates]]
        # the most influential cluster is cut alone, since two joined entities are one such cluster
        alone = candidates[~unreached[candidates]][:1]
        one_cut = totals.total + totals.change[candidates[:1]].sum(axis=0)
        as_predicted = self.count_as_predicted(unreached, totals.columns)
        predicted = totals.total - totals.by_cluster[unreached].sum(axis=0) + as_predicted
        predicted += totals.change[alone].sum(axis=0)
        values = totals.evaluate(np.stack([totals.total, one_cut, predicted]))
        unreached[alone] = True
        total = float(totals.size.sum())
        return Reference(values, float(totals.size[unreached].sum()) / total if total else 0.0)
