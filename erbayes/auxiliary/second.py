"""A second clustering of the same records, used in place of the truth, with the labelled units."""

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
from .._internal.arrays import BoolArray, FloatArray, IntArray
from .._internal.errors import DataError, head, member
from .._internal.policies import Missing
from .._internal.tables import is_table
from ..design.draws import kish
from ..design.sample import Sample
from ..large.sources import lies_elsewhere
from ..metrics.columns import EXACT, PREDICTED_LINKS, RECORDS
from ..metrics.definitions import Metric, resolve_metric
from ..units.checks import NEARLY_ALL, written_otherwise
from ..units.clustering import Clustering
from ..units.ids import kind
from ..units.lookup import same_kind
from ..units.measuring import read_framed, refuse_unmatched, units_of
from ..units.units import Units, histogram
from .reference import FullCount, Reference, find_shared_records


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
        refuse_added(missing)
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
        return self._full.value(resolve_metric(metric))

    @cached_property
    def _full(self) -> FullCount:
        return FullCount(self.whole)

    def position(self, units: Units) -> IntArray | None:
        """Return the positions of a sample's units, (u,), or None if these were counted otherwise."""
        position = self.units.ids.get_indexer(units.ids)
        if self.units.known is None or not self.units.known.equals(units.known) or (position < 0).any():
            return None
        columns = (RECORDS, PREDICTED_LINKS)
        same = [np.allclose(units.column(c), self.units.column(c)[position]) for c in columns]
        return position if all(same) else None

    @cached_property
    def overlaps(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Return labelled units and clusters with records in common, and the number of these, (o,) each."""
        all_pieces = np.ones(len(self.units.unit), dtype=bool)
        unit, cluster, common, _ = find_shared_records(self.units, all_pieces, self.units.group)
        return unit, cluster, common

    @cached_property
    def match(self) -> IntArray:
        """Return the cluster with a Jaccard index above ½ with each labelled unit, (u,), or -1."""
        unit, cluster, common = self.overlaps
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
          reaches: parts of an entity larger than L, if the second clustering split it;
        - the most influential one of the rest.

        No draw shows whether these clusters are right. The metric is computed with them as they are, and as
        if the prediction were right about their records.
        """
        return self._full.reference(self.units, metric, position)


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


def refuse_added(missing: Missing) -> None:
    """Refuse policies other than `Missing.ERROR` and `OMIT`: they add records that no clustering has."""
    if missing not in {Missing.ERROR, Missing.OMIT}:
        raise DataError(
            "estimates with the help of other clusterings cannot keep labelled records that are missing in "
            f"the prediction, as the policy {missing.value!r} does",
            remedies.LEAVE_OUT,
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
    if len(second.records) and len(prediction.records):
        same_kind(kind(prediction.records), kind(second.records), f"second clustering {name!r}")
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
