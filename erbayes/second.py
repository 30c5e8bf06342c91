"""A second clustering of the same records, which stands in for the truth: its full count and its samples."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from .arrays import BoolArray, FloatArray, IntArray
from .clustering import Clustering, kind
from .columns import PREDICTED_LINKS, RECORDS, Column
from .engine.closed_form import columns_of
from .errors import DataError, head
from .metrics import Metric, chosen
from .mistaken import missing_records
from .uncertain import positions
from .units import Missing, Units, framed, histogram, same_kind, sampled_labels, units_of


@dataclass(frozen=True, eq=False, repr=False)
class Second:
    """A second clustering of the same records, counted with a prediction and with labelled units.

    Attributes
    ----------
    name : str
    units : Units
        The labelled units, with the second clustering in the place of the truth. A piece has the n records
        that a second and a predicted cluster share, of which `counted` are in the unit.
    whole : Units
        All clusters of the second clustering as units: the full count.

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
    _known: dict[Metric, IntArray] = field(default_factory=dict, compare=False)

    @classmethod
    def of(
        cls,
        prediction: Any,
        labels: Any,
        by: Any,
        *,
        name: str = "second",
        blocks: Any = None,
        missing: Missing = Missing.ERROR,
        frame: Any = None,
    ) -> Second:
        """Count a second clustering with a prediction and the labelled units.

        Parameters
        ----------
        prediction, labels, blocks, frame
            As in `erbayes.measure`.
        by : memberships
            The second clustering. It must cover every record of the prediction (inside the frame). Its other
            records are left out.
        name : str
            The name that messages and tables print.
        missing : Missing
            `Missing.ERROR` or `Missing.OMIT`. The other policies add records that no full count has.

        Returns
        -------
        Second

        Raises
        ------
        DataError
            If the second clustering lacks records of the prediction. If the prediction lacks labelled
            records, under `Missing.ERROR`. Under other policies than these two.
        """
        if missing not in {Missing.ERROR, Missing.OMIT}:
            raise DataError(
                f"assisted estimates cannot keep labelled records that the prediction lacks, as "
                f"{missing} does: choose Missing.OMIT"
            )
        labels = sampled_labels(labels)
        prediction, _ = framed(prediction, labels, frame)
        of_record = _codes(prediction, Clustering.of(by, f"second clustering {name!r}"), name)
        position = prediction.records.get_indexer(labels.records)
        lacking = position < 0
        if lacking.all() or (lacking.any() and missing is Missing.ERROR):
            raise missing_records(prediction, labels, lacking)
        code, unit_ids = units_of(labels, blocks)
        clusters = len(prediction.clusters)
        key, pair, n = np.unique(
            of_record * clusters + prediction.codes, return_inverse=True, return_counts=True
        )
        group, cluster = key // clusters, key % clusters
        N = np.bincount(of_record).astype(float)
        m, known = prediction.sizes.astype(float), histogram(prediction.sizes)
        whole = Units(
            ids=pd.RangeIndex(len(N)),
            unit=group,
            group=group,
            n=n.astype(float),
            N=N[group],
            m=m[cluster],
            cluster=cluster,
            known=known,
        )
        used, unit = np.unique(code[labels.codes[~lacking]], return_inverse=True)
        row, counted = np.unique(unit * len(key) + pair[position[~lacking]], return_counts=True)
        unit, piece = row // len(key), row % len(key)
        units = Units(
            ids=unit_ids[used],
            unit=unit,
            group=group[piece],
            n=whole.n[piece],
            N=whole.N[piece],
            m=whole.m[piece],
            cluster=cluster[piece],
            known=known,
            counted=counted.astype(float),
        )
        return cls(name, units, whole)

    def __repr__(self) -> str:
        return (
            f"Second({self.name!r} {self.content[:12]}: {self.whole.n.sum():,.0f} records in "
            f"{len(self.whole):,} clusters, {len(self.units):,} labelled units)"
        )

    @cached_property
    def content(self) -> str:
        """A digest of all counts, which identifies the second clustering in files of studies."""
        digest = hashlib.sha256()
        for units in (self.units, self.whole):
            for array in (units.unit, units.group, units.n, units.m, units.cluster):
                digest.update(np.ascontiguousarray(array))
        return digest.hexdigest()

    def value(self, metric: Metric | str) -> float:
        """Return a metric of the prediction with the second clustering as the truth, θ^S.

        Raises
        ------
        NotIdentified
            If the metric has no formula over sums of records.
        """
        metrics = chosen(metric)
        names, totals, known = self._totals(metrics)
        return float(_value(metrics[0], names, np.append(totals.sum(axis=0), known)))

    def position(self, units: Units) -> IntArray | None:
        """Return the positions of a sample's units, (u,), or None if these were counted otherwise.

        Each unit must be here, with as many records and predicted links. The predicted clusters must have
        the same sizes.
        """
        own, other = self.units.known, units.known
        if own is None or other is None or not np.array_equal(own.size, other.size):
            return None
        position = self.units.ids.get_indexer(units.ids)
        if not np.array_equal(own.count, other.count) or (position < 0).any():
            return None
        columns = (RECORDS, PREDICTED_LINKS)
        same = [np.allclose(units.column(c), self.units.column(c)[position]) for c in columns]
        return position if all(same) else None

    def touched(self, position: IntArray) -> BoolArray:
        """Return whether the units at some positions have records of each cluster, (clusters,)."""
        drawn = np.zeros(len(self.units), dtype=bool)
        drawn[position] = True
        touched = np.zeros(len(self.whole), dtype=bool)
        touched[self.units.group[drawn[self.units.unit]]] = True
        return touched

    def _totals(self, metrics: Sequence[Metric]) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
        """Return names of totals, those of each cluster, (clusters, counted), and known ones."""
        counted, known = columns_of(metrics)
        names = tuple(c.name for c in counted) + tuple(t.name for t in known)
        constants = np.array([self.whole.total(t.column) for t in known])
        return names, np.stack([self.whole.column(c) for c in counted], axis=1), constants

    @cached_property
    def _cut(self) -> Units:
        """The clusters of the second clustering, each cut apart as the prediction has it."""
        return replace(self.whole, N=self.whole.n)

    def _by_influence(self, metric: Metric, column: list[Column]) -> IntArray:
        """Return the clusters that the prediction cuts, that which moves a metric most if cut first."""
        if metric not in self._known:
            names, totals, known = self._totals([metric])
            cut = np.flatnonzero(np.bincount(self.whole.unit) > 1)
            change = np.stack([self._cut.column(c) for c in column], axis=1)[cut] - totals[cut]
            whole = totals.sum(axis=0)
            constants = np.tile(known, (len(cut), 1))
            moved = _value(metric, names, np.hstack([whole + change, constants]))
            influence = np.abs(moved - _value(metric, names, np.append(whole, known)))
            self._known[metric] = cut[np.argsort(-influence, kind="stable")]
        return self._known[metric]

    def _as_predicted(self, clusters: BoolArray, columns: list[Column]) -> FloatArray:
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

    def reference(self, metric: Metric, position: IntArray) -> Reference:
        """Return what the whole second clustering tells of a metric, given the sampled units.

        Clusters out of reach are those larger than any that the units at `position` touch, and the one below
        this size that matters most among the clusters that no unit touches. No draw is witness to them. The
        value is counted with these clusters as they are, without their records, and as if the prediction were
        right about their records.
        """
        touched = self.touched(position)
        size = self.whole.size
        beyond = size > size[touched].max()
        names, totals, known = self._totals([metric])
        columns, _ = columns_of([metric])
        whole = totals.sum(axis=0)
        inside = whole - totals[beyond].sum(axis=0)
        predicted = inside + self._as_predicted(beyond, columns)
        candidates = self._by_influence(metric, columns)
        alone = candidates[~(touched | beyond)[candidates]][:1]
        for cluster in alone:
            predicted += [self._cut.column(c)[cluster] for c in columns] - totals[cluster]
        versions = np.stack([whole, inside, predicted])
        values = _value(metric, names, np.hstack([versions, np.tile(known, (3, 1))]))
        beyond[alone] = True
        coefficients = [sum(share for sized, share in metric.size if sized.name == c.name) for c in columns]
        sized = totals @ np.array(coefficients, dtype=float)
        return Reference(values, float(sized[beyond].sum() / sized.sum()) if sized.sum() else 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """The value of a metric with a second clustering as the truth, θ^S.

    Attributes
    ----------
    values : float array, (3,)
        With the clusters out of reach as they are, without them, and with the prediction in their place.
    out_of_reach : float
        Share of the total that the metric averages over, in clusters out of reach.
    """

    values: FloatArray
    out_of_reach: float

    @property
    def centre(self) -> float:
        """The middle between the least and the largest of the values."""
        return float(np.nanmin(self.values) + np.nanmax(self.values)) / 2

    @property
    def range(self) -> float:
        """The largest of the values less the least."""
        return float(np.nanmax(self.values) - np.nanmin(self.values))


def _codes(prediction: Clustering, second: Clustering, name: str) -> IntArray:
    """Return the cluster in the second clustering of each record of the prediction, numbered without gaps."""
    if len(second.records) and len(prediction.records):
        same_kind(kind(prediction.records), kind(second.records), f"second clustering {name!r}")
    position = second.records.get_indexer(prediction.records)
    lacking = prediction.records[position < 0]
    if len(lacking):
        raise DataError(
            f"the second clustering {name!r} lacks {len(lacking):,} of {len(prediction.records):,} records "
            f"of the prediction, such as {head(lacking)}: it must cover all of them; restrict the prediction "
            "to the records of both with frame=, or give the others clusters of their own"
        )
    return np.unique(second.codes[position], return_inverse=True)[1]


def _value(metric: Metric, names: tuple[str, ...], totals: FloatArray) -> FloatArray:
    """Return a metric of totals, (..., totals); NaN if it is 0/0."""
    place = positions(metric, names)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(metric.formula(*np.moveaxis(totals[..., place], -1, 0)), dtype=float)
