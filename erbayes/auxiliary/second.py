"""A second clustering of the same records: labelled units by it, its clusters, and what no draw reaches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import betainc

from .._internal import remedies
from .._internal.arrays import BoolArray, FloatArray, IntArray, is_table
from .._internal.errors import DataError, head, member
from .._internal.remedies import Missing
from ..design.sample import Sample
from ..engine.fitted import columns_of
from ..large.files import lies_elsewhere
from ..metrics.columns import EXACT, PREDICTED_LINKS, RECORDS, Column, Known
from ..metrics.definitions import Metric, coefficients_of_size, resolve_metric
from ..metrics.unseen import kish
from ..units.clustering import Clustering
from ..units.ids import same_kind
from ..units.measuring import NEARLY_ALL, read_framed, refuse_unmatched, units_of, written_otherwise
from ..units.units import Units, histogram


class Reference(NamedTuple):
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


class ChangedShare(NamedTuple):
    """Shares of draws and of the population that differ from the prediction, and the `chance` of as many."""

    drawn: float
    population: float
    chance: float

    @classmethod
    def of(cls, met: BoolArray, weight: FloatArray, population: float) -> ChangedShare:
        """Compare draws that differ, (n,), with their weights, to the share of all that do."""
        drawn, n = float(met @ weight / weight.sum()), float(kish(weight, 0))
        x = drawn * n
        # P(X ≥ x) of a binomial variable, for any x
        return cls(drawn, population, float(betainc(x, n - x + 1, population)) if x > 0 else 1.0)


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
    Second('second': 4 records in 2 clusters, 1 labelled units)
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
            As in `erbayes.measure`. Files and tables are refused, since both are compared in memory.
        by : memberships
            The second clustering, which must cover every record of the prediction (inside the frame). Its
            other records are left out.
        name : str
            The name that messages and tables print.
        missing : Missing
            `Missing.ERROR` or `Missing.OMIT`.
        """
        _need_one_in_memory(prediction, by)
        missing = member(missing, Missing, "missing")
        if missing not in {Missing.ERROR, Missing.OMIT}:
            said = "a second clustering has no labelled records that are missing in the prediction, which the"
            raise DataError(f"{said} policy {missing.value!r} keeps", remedies.LEAVE_OUT)
        labels, read = read_framed({"": prediction}, labels, frame)
        (prediction, _), second = read[""], Clustering.of(by, f"second clustering {name!r}")
        whole, pair = _cross_clusters(prediction, _number_clusters(prediction, second, name))
        position = prediction.records.get_indexer(labels.records)
        refuse_unmatched(prediction, labels, position < 0, missing)
        code, unit_ids = units_of(labels, blocks)
        found = position >= 0
        units = _make_labelled_units(unit_ids, code[labels.codes[found]], pair[position[found]], whole)
        return cls(name, units, whole, len(second.records) - len(prediction.records))

    def __repr__(self) -> str:
        left_out = f", {self.left_out:,} records left out" if self.left_out else ""
        return (
            f"Second({self.name!r}: {self.whole.size.sum():,.0f} records in {len(self.whole):,} clusters, "
            f"{len(self.units):,} labelled units{left_out})"
        )

    @property
    def is_prediction(self) -> bool:
        """Return True if this is the prediction itself: each cluster is an entire predicted cluster."""
        return bool((self.whole.n == self.whole.N).all() and (self.whole.n == self.whole.m).all())

    def value(self, metric: Metric | str) -> float:
        """Return a metric of the prediction with the second clustering as the truth, θ^S."""
        metric = resolve_metric(metric)
        counted, _ = columns_of([metric])
        totals = np.stack([self.whole.column(c) for c in counted], axis=1).sum(axis=0)
        return float(self._evaluate(metric, counted, totals[None])[0])

    def _evaluate(self, metric: Metric, counted: list[Column], totals: FloatArray) -> FloatArray:
        """Return a metric, (k,), of totals of columns, (k, c); NaN if it is 0/0."""
        at = dict(zip(counted, totals.T, strict=True))
        values = [self.whole.total(c.column) if isinstance(c, Known) else at[c] for c in metric.columns]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(metric.formula(*values), dtype=float)

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
        if kish(records, 0) > kish(entities, 0):
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
        unreached, (counted, _) = self._find_unreached(position), columns_of([metric])
        by_cluster = np.stack([self.whole.column(c) for c in counted], axis=1)
        totals, beyond = by_cluster.sum(axis=0), by_cluster[unreached].sum(axis=0)
        predicted = totals - beyond + self._count_as_predicted(unreached, counted)
        values = self._evaluate(metric, counted, np.stack([totals, predicted]))
        size = by_cluster @ coefficients_of_size([metric], [c.name for c in counted])[0]
        return Reference(values, float(size[unreached].sum() / size.sum()) if size.any() else 0.0)

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

    def _find_unreached(self, position: IntArray) -> BoolArray:
        """Return which clusters larger than all that units at `position` reach they do not, (clusters,)."""
        units, size = self.units, self.whole.size
        mine, reached = np.isin(units.unit, position), np.zeros(len(size), dtype=bool)
        reached[find_reached(units, mine, units.group, units.N)] = True
        predicted = find_reached(units, mine, units.cluster, units.m)
        # an entity as large as a predicted cluster that units reach is seen, also if the second clustering
        # has none as large
        seen = mine & np.isin(units.cluster, predicted)
        limit = float(max(size[reached].max(initial=0), units.m[seen].max(initial=0)))
        # clusters most of whose records are in larger predicted ones, which no unit reaches, may be parts
        far = self.whole.n * (self.whole.m > limit)
        parts = 2 * np.bincount(self.whole.unit, far, len(size)) > size
        return np.asarray(((size > limit) | parts) & ~reached)


def _need_one_in_memory(prediction: Any, by: Any) -> None:
    """Refuse clusterings in files or tables, and a mapping of names to several."""
    if lies_elsewhere(prediction) or lies_elsewhere(by):
        raise DataError(
            "a second clustering is compared with the prediction in memory, and these are files or tables: "
            "read the two columns of each, as in pandas.read_parquet(path).set_index('record')['cluster']"
        )
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


def _number_clusters(prediction: Clustering, second: Clustering, name: str) -> IntArray:
    """Return the cluster in the second clustering of each record of the prediction, numbered without gaps."""
    same_kind(prediction.records, second.records, f"second clustering {name!r}")
    position = second.records.get_indexer(prediction.records)
    absent, records = prediction.records[position < 0], len(prediction.records)
    if not len(absent):
        return np.unique(second.codes[position], return_inverse=True)[1]
    said = (
        f"the second clustering {name!r} is missing {len(absent):,} of {records:,} records of the prediction"
    )
    said += f", such as {head(absent)}"
    if otherwise := written_otherwise(absent, second.records):
        raise DataError(f"{said}; {otherwise}")
    if len(absent) >= NEARLY_ALL * records:
        raise DataError(f"{said}: are its ids written in another way, or its columns in the other order?")
    raise DataError(f"{said}, and must cover all of them", remedies.COVER)
