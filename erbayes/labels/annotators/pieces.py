"""Labels as annotators made them: pieces of entities, next to the predicted clusters that they were shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..._internal.arrays import BoolArray, IntArray, Seed, generator
from ..._internal.errors import DataError
from ..._internal.tables import locate
from ...units.clustering import Clustering
from ...units.ids import ids


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """The cluster of each record as `codes`, (N,), -1 if it has none, and the records of each cluster."""

    codes: IntArray
    order: IntArray
    first: IntArray

    @classmethod
    def of(cls, codes: IntArray) -> Members:
        """Group records by their codes, (N,)."""
        order = np.argsort(codes, kind="stable")
        return cls(codes, order, np.searchsorted(codes[order], np.arange(codes.max(initial=-1) + 2)))

    def list(self, cluster: int) -> IntArray:
        """Return the positions of the records of a cluster."""
        return self.order[self.first[cluster] : self.first[cluster + 1]] if cluster >= 0 else self.order[:0]

    @property
    def sizes(self) -> IntArray:
        """Return the number of records of each cluster."""
        return np.diff(self.first)


@dataclass(frozen=True, slots=True, eq=False)
class Labelling:
    """Labels by pieces: the records of an entity in one shown cluster, of which one is *home* of its start.

    `records` (N,), `shown`: the shown prediction; `others`: other predictions of its records; `entities`
    (E,), `start` (E,): labelled entities and the record from which each was labelled; `record` (L,): labelled
    records, piece by piece; `first` (p + 1,): bounds of pieces; `who`, `cluster` (p,): entity and shown
    cluster of each; `elsewhere`: labels of records that are not in the prediction.
    """

    records: pd.Index
    shown: Members
    others: tuple[Members, ...]
    entities: pd.Index
    start: IntArray
    record: IntArray
    first: IntArray
    who: IntArray
    cluster: IntArray
    elsewhere: pd.Series

    @classmethod
    def of(cls, labels: Any, shown: Any, starts: Any = None, rng: Seed = None) -> Labelling:
        """Cut labels into pieces of the first prediction of `shown`; `starts` are drawn unless given."""
        labels = Clustering.of(labels, "labels")
        prediction, *compared = list_predictions(shown)
        position = prediction.records.get_indexer(labels.records)
        there = position >= 0
        if not there.any():
            raise DataError("none of the labelled records is in the prediction")
        present, entity = np.unique(labels.codes[there], return_inverse=True)
        cluster = prediction.codes[position[there]]
        order = np.lexsort((position[there], cluster, entity))
        entity, cluster = entity[order], cluster[order]
        first = np.flatnonzero((np.diff(entity, prepend=-1) != 0) | (np.diff(cluster, prepend=-1) != 0))
        at = [c.records.get_indexer(prediction.records) for c in compared]
        return cls(
            records=prediction.records,
            shown=Members.of(prediction.codes),
            others=tuple(
                Members.of(np.where(x >= 0, c.codes[x], -1)) for c, x in zip(compared, at, strict=True)
            ),
            entities=labels.clusters[present],
            start=_place_starts(labels, prediction, starts, generator(rng))[present],
            record=position[there][order],
            first=np.append(first, len(order)),
            who=entity[first],
            cluster=cluster[first],
            elsewhere=pd.Series(labels.clusters[labels.codes[~there]], labels.records[~there], name="entity"),
        )

    @property
    def n(self) -> IntArray:
        """Return the number of records of each piece, (p,)."""
        return np.diff(self.first)

    @property
    def m(self) -> IntArray:
        """Return the number of records of each piece's shown cluster, (p,)."""
        return self.shown.sizes[self.cluster]

    @property
    def home(self) -> BoolArray:
        """Return whether each piece is that of its entity's start, (p,)."""
        return np.asarray(self.cluster == self.shown.codes[self.start[self.who]])

    @property
    def piece(self) -> IntArray:
        """Return the piece of each labelled record, (L,)."""
        return np.repeat(np.arange(len(self.who)), self.n)

    @property
    def exact(self) -> pd.Series:
        """Return whether each entity is predicted exactly, by its id, (E,)."""
        right = (self.n == self.m) & (np.bincount(self.who)[self.who] == 1)
        return pd.Series(np.bincount(self.who, right) > 0, index=self.entities)

    def are_joined(self, start: Any, record: IntArray) -> BoolArray:
        """Return whether another prediction than the shown one has records in the cluster of a start."""
        joined = np.zeros(len(record), dtype=bool)
        for other in self.others:
            joined |= (other.codes[record] == other.codes[start]) & (other.codes[record] >= 0)
        return joined

    def list_joined(self, taken: BoolArray) -> list[tuple[int, IntArray]]:
        """Return pieces elsewhere, with their entities, that are joined and have no label, `taken` (N,)."""
        pieces = []
        for who, start in enumerate(self.start):
            for other in self.others:
                near = other.list(other.codes[start])
                near = near[(self.shown.codes[near] != self.shown.codes[start]) & ~taken[near]]
                codes = self.shown.codes[near]
                pieces += [(who, near[codes == code]) for code in np.unique(codes)]
        return pieces

    def write(self, record: IntArray, entity: IntArray) -> pd.Series:
        """Return labels, record -> entity, from positions of both; a record goes to the first of several."""
        labels = pd.Series(self.entities.take(entity), self.records.take(record), name="entity")
        written: pd.Series = pd.concat([labels[~labels.index.duplicated()], self.elsewhere])
        return written


def list_predictions(shown: Any) -> list[Clustering]:
    """Return predictions, the one that was shown first, from one or from a mapping of names to several."""
    values = list(shown.values()) if isinstance(shown, Mapping) and len(shown) else []
    several = values if values and not pd.api.types.is_scalar(values[0]) else [shown]
    return [Clustering.of(one, "shown prediction") for one in several]


def _place_starts(
    labels: Clustering, prediction: Clustering, starts: Any, rng: np.random.Generator
) -> IntArray:
    """Return the position of the start of each labelled entity, (entities,), drawn unless it is given."""
    # an entity is met by any of its records, if records were drawn uniformly
    records = labels.records[rng.permutation(len(labels.records))]
    records = records[records.isin(prediction.records)]
    if starts is not None:
        given = ids(starts, "starts")
        locate(prediction.records, given, "starts are not in the prediction", of=len(given))
        locate(labels.records, given, "starts have no label", of=len(given))
        records = given.append(records)
    entity = labels.codes[labels.records.get_indexer(records)]
    position = np.full(len(labels.clusters), -1)
    position[entity[::-1]] = prediction.records.get_indexer(records[::-1])  # the first counts
    return position
