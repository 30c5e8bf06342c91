"""A second clustering of the same records: labelled units by it, its clusters, and what no draw reaches."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import betainc

from .._internal import remedies
from .._internal.arrays import BoolArray, FloatArray, IntArray, is_table
from .._internal.errors import DataError, head, member
from .._internal.remedies import Missing
from ..design.draws import kish
from ..design.sample import Sample
from ..engine.fitted import columns_of
from ..large.sources import lies_elsewhere
from ..metrics.columns import EXACT, PREDICTED_LINKS, RECORDS, Column
from ..metrics.definitions import Metric, coefficients_of_size, resolve_metric
from ..metrics.totals import positions
from ..units.clustering import Clustering
from ..units.ids import same_kind
from ..units.measuring import NEARLY_ALL, read_framed, refuse_unmatched, units_of, written_otherwise
from ..units.units import Units, histogram


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """The value of a metric with a second clustering as the truth, θ^S, and its `unreached_share`.

    `values` (2,): unreached clusters as they are, and as the prediction has them.
    """

    values: FloatArray
    unreached_share: float

    @property
    def range(self) -> tuple[float, float]:
        """Return the lesser and the larger value."""
        return float(np.nanmin(self.values)), float(np.nanmax(self.values))

    def likely(self, right: float) -> float:
        """Return the value if the second clustering is `right` about a share of the unreached clusters."""
        if not np.isfinite(self.values).all():
            return sum(self.range) / 2
        return float(self.values @ [right, 1 - right])


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
    """Totals of a metric by cluster, (clusters, c)."""

    metric: Metric
    columns: list[Column]
    by_cluster: FloatArray
    known: FloatArray
    place: list[int]

    @classmethod
    def of(cls, metric: Metric, clusters: Units) -> MetricTotals:
        columns, known = columns_of([metric])
        by_cluster = np.stack([clusters.column(c) for c in columns], axis=1)
        constants = np.array([clusters.total(total.column) for total in known])
        place = positions(metric, [c.name for c in columns] + [total.name for total in known])
        return cls(metric, columns, by_cluster, constants, place)

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


@dataclass(frozen=True, eq=False, repr=False)
class Second:
    """A second clustering of the same records, counted with a prediction and with labelled units.

    Attributes
    ----------
    name : str
    units : Units
        The labelled units, with the second clustering in place of the truth. A piece has the n records
        that a second and a predicted cluster share, of which `counted` are in the unit.
    whole : Units
        All clusters of the second clustering as units, (clusters,).
    left_out : int
        Number of records of the second clustering that are missing in the prediction (inside the frame).

    See Also
    --------
    erbayes.assisted : counts a second clustering and estimates in one call.
    Assisted : the engine that takes it.

    Examples
    --------
    >>> prediction = {1: "a", 2: "a", 3: "a", 4: "b"}
    >>> second = Second.of(prediction, {1: "x", 2: "x"}, by={1: 1, 2: 1, 3: 1, 4: 2})
    >>> second
    Second('second' ec1bd601e17d: 4 records in 2 clusters, 1 labelled units)
    >>> second.value("pairwise-precision")
    1.0
    """

    name: str
    units: Units
    whole: Units
    left_out: int = 0

    @classmethod
    def of(
        cls,
        prediction: Any,
        labels: Any,
        by: Any,
        *,
        name: str = "second",
        blocks: Any = None,
        missing: Missing | str = Missing.ERROR,
        frame: Any = None,
    ) -> Second:
        """Count a second clustering with a prediction and the labelled units.

        Parameters
        ----------
        prediction, labels, blocks, frame
            As in `erbayes.measure`. Files and tables are refused, because both clusterings are compared in
            memory.
        by : memberships
            The second clustering. It must cover every record of the prediction (inside the frame). Its other
            records are left out, and their number is `left_out`.
        name : str
            The name that messages and tables print.
        missing : Missing
            `Missing.ERROR` or `Missing.OMIT`. The other policies add records that no second clustering has.
        """
        refuse_elsewhere(prediction, by)
        _refuse_several(by)
        missing = member(missing, Missing, "missing")
        if missing not in {Missing.ERROR, Missing.OMIT}:
            raise DataError(
                "estimates with the help of other clusterings cannot keep labelled records that are missing "
                f"in the prediction, as the policy {missing.value!r} does",
                remedies.LEAVE_OUT,
            )
        labels, read = read_framed({"": prediction}, labels, frame)
        prediction, _ = read[""]
        second = Clustering.of(by, f"second clustering {name!r}")
        of_record = _number_clusters(prediction, second, name)
        position = prediction.records.get_indexer(labels.records)
        unmatched = position < 0
        refuse_unmatched(prediction, labels, unmatched, missing)
        code, unit_ids = units_of(labels, blocks)
        whole, pair = _cross_clusters(prediction, of_record)
        unit = code[labels.codes[~unmatched]]
        units = _make_labelled_units(unit_ids, unit, pair[position[~unmatched]], whole)
        return cls(name, units, whole, len(second.records) - len(prediction.records))

    def __repr__(self) -> str:
        left_out = f", {self.left_out:,} records left out" if self.left_out else ""
        return (
            f"Second({self.name!r} {self.content[:12]}: {self.whole.size.sum():,.0f} records in "
            f"{len(self.whole):,} clusters, {len(self.units):,} labelled units{left_out})"
        )

    @property
    def is_prediction(self) -> bool:
        """Return True if this is the prediction itself: each cluster is an entire predicted cluster."""
        return bool((self.whole.n == self.whole.N).all() and (self.whole.n == self.whole.m).all())

    @cached_property
    def content(self) -> str:
        """Return a digest of all counts, which identifies the second clustering in files of studies."""
        digest = hashlib.sha256()
        for units in (self.units, self.whole):
            for array in (units.unit, units.group, units.n, units.m, units.cluster):
                digest.update(np.ascontiguousarray(array))
        return digest.hexdigest()

    def value(self, metric: Metric | str) -> float:
        """Return a metric of the prediction with the second clustering as the truth, θ^S."""
        totals = MetricTotals.of(resolve_metric(metric), self.whole)
        return float(totals.evaluate(totals.total))

    def position(self, units: Units) -> IntArray | None:
        """Return the positions of a sample's units, (u,), or None if these were counted otherwise."""
        position = self.units.ids.get_indexer(units.ids)
        if self.units.known is None or not self.units.known.equals(units.known) or (position < 0).any():
            return None
        columns = (RECORDS, PREDICTED_LINKS)
        same = [np.allclose(units.column(c), self.units.column(c)[position]) for c in columns]
        return position if all(same) else None

    @cached_property
    def match(self) -> IntArray:
        """Return the cluster with a Jaccard index above ½ with each labelled unit, (u,), or -1."""
        all_pieces = np.ones(len(self.units.unit), dtype=bool)
        unit, cluster, common, _ = find_shared_records(self.units, all_pieces, self.units.group)
        matches = 3 * common > self.units.size[unit] + self.whole.size[cluster]
        match = np.full(len(self.units), -1)
        match[unit[matches]] = cluster[matches]
        return match

    def changes(self, sample: Sample) -> ChangedShare:
        """Return how often draws meet a cluster that no predicted one equals, and how often all would.

        By chance draws meet at most the share of such clusters in the population. If they meet far more, the
        second clustering was made with the labels. Entities are counted, or records if these have a larger
        effective sample size.
        """
        position = self.position(sample.units)
        assert position is not None  # the caller has compared the units
        drawn, changed = position[sample.expansion.unit], self.whole.column(EXACT) == 0
        met = np.append(changed, False)[self.match][drawn]
        entities = sample.expansion.weight
        records, total = entities * self.units.size[drawn], float(self.whole.size.sum())
        if kish(records) > kish(entities):
            return ChangedShare.of(met, records, float((self.whole.size * changed).sum()) / total)
        # the number of entities is that of the sample, or that of the clusters if these are fewer
        of_sample = total * entities.sum() / records.sum()
        population = float(changed.sum()) / min(float(len(self.whole)), float(of_sample))
        return ChangedShare.of(met, entities, min(population, 1.0))

    def reference(self, metric: Metric, position: IntArray) -> Reference:
        """Return the value of a metric by the second clustering, and its share that no draw reaches.

        A unit reaches the clusters with which it shares most records of the unit or of the cluster. Let L be
        the number of records of the largest cluster that a unit at `position` reaches, or of the largest
        predicted one that it reaches likewise, if this is larger. Unreached are, of the others,

        - those larger than L;
        - those most of whose records are in predicted clusters that are larger than L and that no unit
          reaches: parts of an entity larger than L, if the second clustering split it.

        No draw shows whether these clusters are right. The metric is computed with them as they are, and as
        if the prediction were right about their records.
        """
        unreached, totals = self._find_unreached(self.units, position), MetricTotals.of(metric, self.whole)
        as_predicted = self._count_as_predicted(unreached, totals.columns)
        predicted = totals.total - totals.by_cluster[unreached].sum(axis=0) + as_predicted
        values, total = totals.evaluate(np.stack([totals.total, predicted])), float(totals.size.sum())
        return Reference(values, float(totals.size[unreached].sum()) / total if total else 0.0)

    def _count_as_predicted(self, clusters: BoolArray, columns: list[Column]) -> FloatArray:
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

    def _find_unreached(self, units: Units, position: IntArray) -> BoolArray:
        """Return which clusters larger than all that units at `position` reach they do not, (clusters,)."""
        mine, size = np.isin(units.unit, position), self.whole.size
        reached = np.zeros(len(size), dtype=bool)
        reached[find_reached(units, mine, units.group, units.N)] = True
        predicted = find_reached(units, mine, units.cluster, units.m)
        # an entity as large as a predicted cluster that units reach is seen, also if the second clustering
        # has none as large
        seen = mine & np.isin(units.cluster, predicted)
        limit = float(max(size[reached].max(initial=0), units.m[seen].max(initial=0)))
        larger = (size > limit) | mark_possible_parts(self.whole, predicted, limit)
        return np.asarray(larger & ~reached)


def refuse_elsewhere(*clusterings: Any) -> None:
    """Refuse clusterings in files or tables, with what to read instead."""
    if any(map(lies_elsewhere, clusterings)):
        raise DataError(
            "a second clustering is compared with the prediction in memory, and these are files or tables: "
            "read the two columns of each, as in pandas.read_parquet(path).set_index('record')['cluster']"
        )


def _refuse_several(by: Any) -> None:
    """Refuse a mapping of names to clusterings, where one of records to clusters is needed."""
    name, first = next(iter(by.items()), ("", None)) if isinstance(by, Mapping) else ("", None)
    if isinstance(first, Mapping | pd.Series | Clustering | Path) or is_table(first):
        raise DataError(
            f"by= takes one second clustering, not a mapping of names such as {name!r}: give the best of "
            "them, or judge all by erbayes.compare"
        )


def _cross_clusters(prediction: Clustering, of_record: IntArray) -> tuple[Units, IntArray]:
    """Return the clusters of records, cut by a prediction, as units, and the piece of each, (records,)."""
    clusters = len(prediction.clusters)
    key, pair, n = np.unique(of_record * clusters + prediction.codes, return_inverse=True, return_counts=True)
    group, cluster = key // clusters, key % clusters
    n, m, known = n.astype(float), prediction.sizes.astype(float)[cluster], histogram(prediction.sizes)
    N = np.bincount(group, n)
    ids = pd.RangeIndex(len(N))
    return Units(ids=ids, unit=group, group=group, n=n, N=N[group], m=m, cluster=cluster, known=known), pair


def _make_labelled_units(ids: pd.Index, unit: IntArray, piece: IntArray, whole: Units) -> Units:
    """Return labelled units, from the unit and the piece of each labelled record, (labelled records,)."""
    used, unit = np.unique(unit, return_inverse=True)
    row, counted = np.unique(unit * len(whole.n) + piece, return_counts=True)
    unit, piece = row // len(whole.n), row % len(whole.n)
    return Units(
        ids=ids[used],
        unit=unit,
        group=whole.group[piece],
        n=whole.n[piece],
        N=whole.N[piece],
        m=whole.m[piece],
        cluster=whole.cluster[piece],
        known=whole.known,
        counted=counted.astype(float),
    )


@dataclass(frozen=True, slots=True)
class ChangedShare:
    """Shares of draws and of the population that differ from the prediction, and the `chance` of as many."""

    drawn: float
    population: float
    chance: float

    @classmethod
    def of(cls, met: BoolArray, weight: FloatArray, population: float) -> ChangedShare:
        """Compare draws that differ, (n,), with their weights, to the share of all that do."""
        drawn, n = float(met @ weight / weight.sum()), float(kish(weight))
        x = drawn * n
        # P(X ≥ x) of a binomial variable, for any x
        return cls(drawn, population, float(betainc(x, n - x + 1, population)) if x > 0 else 1.0)


def _number_clusters(prediction: Clustering, second: Clustering, name: str) -> IntArray:
    """Return the cluster in the second clustering of each record of the prediction, numbered without gaps."""
    same_kind(prediction.records, second.records, f"second clustering {name!r}")
    position = second.records.get_indexer(prediction.records)
    absent, records = prediction.records[position < 0], len(prediction.records)
    if len(absent):
        said = (
            f"the second clustering {name!r} is missing {len(absent):,} of {records:,} records of the "
            f"prediction, such as {head(absent)}"
        )
        if otherwise := written_otherwise(absent, second.records):
            raise DataError(f"{said}; {otherwise}")
        if len(absent) >= NEARLY_ALL * records:
            raise DataError(
                f"{said}: are its ids written in another way, or are its columns in the other order?"
            )
        raise DataError(f"{said}, and must cover all of them", remedies.COVER)
    return np.unique(second.codes[position], return_inverse=True)[1]
