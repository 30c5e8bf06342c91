"""The full count of a second clustering: its totals, and what it tells of a metric, given a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd

from .._internal.arrays import BoolArray, FloatArray, IntArray
from .._internal.errors import DataError
from ..engine.fitted import columns_of
from ..metrics.columns import Column
from ..metrics.definitions import Metric, coefficients_of_size
from ..metrics.uncertain import positions
from ..units.units import Units


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """The value of a metric with a second clustering as the truth, θ^S, and its share `out_of_reach`.

    `values` (3,): clusters out of reach as they are, with the prediction in the place of that which matters
    most, and with the prediction in the place of all.
    """

    values: FloatArray
    out_of_reach: float

    @property
    def range(self) -> tuple[float, float]:
        """Return the lesser and the larger value: all clusters out of reach as they are, and as predicted."""
        ends = self.values[[0, 2]]
        return float(np.nanmin(ends)), float(np.nanmax(ends))

    def likely(self, right: float) -> float:
        """Return the value if the second clustering is `right` about a share of what is out of reach."""
        whole, most, predicted = self.values
        if not np.isfinite(self.values).all():
            return sum(self.range) / 2
        return float(np.clip((whole + most) / 2 + (1 - right) * (predicted - most), *self.range))


def find_shared_records(
    units: Units, mine: BoolArray, cluster: IntArray
) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    """Return units and clusters with records in common, their number, and a piece of each, (o,) each."""
    assert units.counted is not None  # a second clustering counts the records that it shares
    at = np.flatnonzero(mine)
    least = int(cluster.min(initial=0))  # below 0 if a scan does not know a cluster by itself
    unit, width = units.unit[at], int(cluster.max(initial=0)) - least + 1
    key = unit * width + cluster[at] - least
    _, first, pair = np.unique(key, return_index=True, return_inverse=True)
    common = np.bincount(pair, units.counted[at])
    return unit[first], cluster[at][first], common, at[first]


def find_reached(units: Units, mine: BoolArray, cluster: IntArray, size: FloatArray) -> IntArray:
    """Return the clusters that share most records of one of the two with a unit whose pieces are `mine`."""
    # A unit with a stray record in a giant says nothing about the giant.
    unit, found, shared, piece = find_shared_records(units, mine, cluster)
    most = (2 * shared >= units.size[unit]) | (2 * shared >= size[piece])
    return np.unique(found[most])


def mark_possible_parts(units: Units, whole: Units, mine: BoolArray, limit: float) -> BoolArray:
    """Return whether each cluster may be a part of an unreached entity above `limit`, (clusters,)."""
    predicted = find_reached(units, mine, units.cluster, units.m)
    far = (whole.m > limit) & ~np.isin(whole.cluster, predicted)
    inside = np.bincount(whole.unit, whole.n * far, len(whole))
    return np.asarray(2 * inside > whole.size)


def evaluate_metric(metric: Metric, names: tuple[str, ...], totals: FloatArray) -> FloatArray:
    """Return a metric of totals, (..., totals); NaN if it is 0/0."""
    place = positions(metric, names)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(metric.formula(*np.moveaxis(totals[..., place], -1, 0)), dtype=float)


def compute_per(metric: Metric, totals: FloatArray) -> FloatArray:
    """Return the total that a metric averages over, of each cluster, (clusters,)."""
    columns, _ = columns_of([metric])
    return np.asarray(totals @ coefficients_of_size([metric], [c.name for c in columns])[0])


@dataclass(frozen=True, eq=False)
class FullCount:
    """All clusters of a second clustering as units, each of which stands for `count` clusters, (u,)."""

    whole: Units
    count: FloatArray
    _ordered: dict[Metric, IntArray] = field(default_factory=dict, init=False)

    @cached_property
    def cut(self) -> Units:
        """The clusters, each cut apart as the prediction has it."""
        return replace(self.whole, N=self.whole.n)

    def sum(self, values: FloatArray) -> FloatArray:
        """Return the sum over all clusters of values of each unit, (clusters, ...)."""
        return np.asarray((values.T * self.count).T.sum(axis=0))

    def totals(self, metrics: Sequence[Metric]) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
        """Return names of totals, those of each cluster, (clusters, counted), and known ones."""
        counted, known = columns_of(metrics)
        names = tuple(c.name for c in counted) + tuple(t.name for t in known)
        constants = np.array([self.whole.total(t.column) for t in known])
        return names, np.stack([self.whole.column(c) for c in counted], axis=1), constants

    def value(self, metric: Metric) -> float:
        """Return a metric of the prediction with these clusters as the truth."""
        names, totals, known = self.totals([metric])
        return float(evaluate_metric(metric, names, np.append(self.sum(totals), known)))

    def order_by_influence(self, metric: Metric, columns: list[Column]) -> IntArray:
        """Return the clusters that the prediction cuts, that which moves a metric most if cut first."""
        if metric not in self._ordered:
            names, totals, known = self.totals([metric])
            cut = np.flatnonzero(np.bincount(self.whole.unit) > 1)
            change = np.stack([self.cut.column(c) for c in columns], axis=1)[cut] - totals[cut]
            whole = self.sum(totals)
            constants = np.tile(known, (len(cut), 1))
            moved = evaluate_metric(metric, names, np.hstack([whole + change, constants]))
            influence = np.abs(moved - evaluate_metric(metric, names, np.append(whole, known)))
            # clusters of equal influence come in an order that their numbers do not choose
            largest = np.nanmax(influence, initial=0.0)
            alike = np.round(influence / largest, 9) if largest > 0 else influence
            self._ordered[metric] = cut[np.lexsort((-compute_per(metric, totals)[cut], -alike))]
        return self._ordered[metric]

    def count_as_predicted(self, clusters: BoolArray, columns: list[Column]) -> FloatArray:
        """Return totals of the records of some clusters if the prediction were right about them."""
        inside = clusters[self.whole.unit]
        if not inside.any():
            return np.zeros(len(columns))
        cluster, piece = np.unique(self.whole.cluster[inside], return_inverse=True)
        n, m = np.bincount(piece, self.whole.n[inside]), np.empty(len(cluster))
        m[piece] = self.whole.m[inside]
        unit = np.zeros(len(n), dtype=np.int64)
        units = Units(pd.Index(["all"]), unit, np.arange(len(n)), n, n, m, cluster, known=None)
        return np.array([c.count(units)[0] for c in columns])

    def split_by_reach(self, units: Units, position: IntArray) -> tuple[BoolArray, BoolArray]:
        """Return which clusters units at `position` reach, and which giants they do not, (clusters,) each."""
        mine, size = np.isin(units.unit, position), self.whole.size
        reached = np.zeros(len(size), dtype=bool)
        reached[find_reached(units, mine, units.group, units.N)] = True
        limit = float(size[reached].max(initial=0))
        beyond = (size > limit) | mark_possible_parts(units, self.whole, mine, limit)
        return reached, beyond & ~reached

    def reference(self, name: str, units: Units, metric: Metric, position: IntArray) -> Reference:
        """Return what the full count tells of a metric, given labelled units at `position`, (u,)."""
        reached, beyond = self.split_by_reach(units, position)
        if (self.whole.cluster[beyond[self.whole.unit]] < 0).any():
            raise DataError(
                f"the scan of {name!r} has one by one only the clusters that all labelled units touch, "
                "and larger ones. This sample has some of these units: scan for its labels alone"
            )
        names, totals, known = self.totals([metric])
        columns, _ = columns_of([metric])
        whole = self.sum(totals)
        cut = np.stack([self.cut.column(c) for c in columns], axis=1) - totals
        candidates = self.order_by_influence(metric, columns)
        candidates = candidates[~reached[candidates]]
        # the cluster that matters most is doubted alone, since two joined giants are one place
        alone = candidates[~beyond[candidates]][:1]
        most = whole + cut[candidates[:1]].sum(axis=0)
        predicted = whole - totals[beyond].sum(axis=0) + self.count_as_predicted(beyond, columns)
        answers = np.stack([whole, most, predicted + cut[alone].sum(axis=0)])
        values = evaluate_metric(metric, names, np.hstack([answers, np.tile(known, (3, 1))]))
        beyond[alone] = True
        sized = compute_per(metric, totals)
        every = float(self.sum(sized))
        return Reference(values, float(sized[beyond].sum()) / every if every else 0.0)
