"""Units of a prediction that a database has counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import IntArray
from .._internal.policies import Missing
from ..units.checks import position_in_labels, refuse_edges
from ..units.clustering import Clustering
from ..units.grouping import Grouping, Of, Variable, piece_values
from ..units.measuring import assemble
from ..units.units import KnownTotals, Units
from .database import changed
from .faults import (
    refuse_changes,
    refuse_duplicates,
    refuse_headings,
    refuse_missing,
    refuse_other_writing,
    refuse_unclustered,
)
from .groups import Composed, composed
from .keys import Prediction

Records = dict[Any, tuple[int, int | None]]
"""Number of records of each release, and a digest of their ids."""


@dataclass(frozen=True, eq=False, repr=False)
class Scanned(Units):
    """Units of a prediction that a database has counted. `scan` makes them.

    `rows`: records of the prediction; `checked`: where duplicates were looked for; `digest`: a number that
    differs between predictions with other record ids, None for `RunSQL`.
    """

    rows: int = 0
    checked: str = ""
    digest: int | None = None
    columns: tuple[str, ...] = ()


def count_units(
    prediction: Prediction,
    labels: Clustering,
    blocks: Any,
    missing: Missing,
    *,
    common: bool = False,
    any_id: bool = False,
) -> dict[Any, Scanned]:
    """Count the units of each release."""
    refuse_headings(prediction)
    records = count_records(prediction)
    if not any_id:
        refuse_unclustered(prediction)
    if common:
        shared = prediction.common(len(records))
        policy = missing if count_records(shared) == records else Missing.OMIT
        return count_units(shared, labels, blocks, policy, any_id=True)
    counts = _read_counts(prediction, labels, records)
    labelled = _LabelledRecords.of(prediction, labels)
    units = {}
    for v, release in counts.releases.items():
        refuse_changes(prediction, release.rows, {*release.clusters.values()}, release.sizes, release.known)
        cluster = labelled.number_clusters(release)
        labelled.refuse_edges(cluster, release)
        if missing is Missing.ERROR:
            refuse_other_writing(prediction, labels.records[cluster < 0])
        size = np.array(list(release.sizes.values()), dtype=np.int64)
        counted = assemble(labels, cluster, size, release.known, blocks=blocks, missing=missing)
        units[v] = _make_scanned(
            prediction, counted, release, pd.Series(cluster, labels.records), counts.checked
        )
    return units


@dataclass(frozen=True, slots=True, eq=False)
class _Release:
    """What a database has counted of a release: the cluster of labelled records by position, sizes by key."""

    name: Any
    rows: int
    digest: int | None
    clusters: Mapping[int, Any]
    sizes: Mapping[Any, int]
    known: KnownTotals
    values: Mapping[Any, int]
    composed: Composed | None


@dataclass(frozen=True, slots=True, eq=False)
class _Counts:
    """What a database has counted of all releases."""

    releases: Mapping[Any, _Release]
    checked: str


def _read_counts(prediction: Prediction, labels: Clustering, records: Records) -> _Counts:
    """Count what the labels touch and the sizes of all clusters, and refuse what does not fit together."""
    ids = labels.records.tolist()
    clusters = prediction.clusters(ids)
    touched = list({key for keys in clusters.values() for key in keys.values()})
    inside = prediction.database.listed(touched) if touched else []
    within = [f"r IN (SELECT r FROM {prediction.table} WHERE c IN ({i}))" for i in inside]
    which = f"{len(touched)} predicted clusters that the labels touch"
    checked = refuse_duplicates(prediction, within, which)
    sizes = prediction.count_keys("c", touched)
    values = prediction.groups_of(ids, records)
    # ids of records take most of the memory, and nothing after this needs them
    prediction.database.forget(prediction.table, "r")
    known = prediction.histogram(records)
    compositions = {}
    if prediction.groups is not None:
        compositions = composed(
            prediction.database, prediction.table, prediction.by, prediction.groups, touched
        )
    releases = {
        v: _Release(v, *records[v], clusters[v], sizes[v], known[v], values[v], compositions.get(v))
        for v in records
    }
    return _Counts(releases, checked)


def _make_scanned(
    prediction: Prediction, counted: Units, release: _Release, cluster: pd.Series, checked: str
) -> Scanned:
    """Return counted units with the facts of the scan; `cluster` is that of each labelled record."""
    groupings = counted.groupings
    if release.composed is not None:
        place = [release.composed.place.get(c, -1) for c in release.sizes]
        # the last one is for the code -1 of labelled records that are missing in the prediction
        kinds = pd.Series(np.array([*place, -1], dtype=np.int64)[cluster], cluster.index)
        groupings = (_make_grouping(prediction, counted, release.values, release.composed, kinds),)
    return Scanned(
        **counted.__getstate__() | {"frame": prediction.frames.get(release.name), "groupings": groupings},
        rows=release.rows,
        checked=checked,
        digest=release.digest,
        columns=(prediction.record, prediction.cluster),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _LabelledRecords:
    """Labelled records as a prediction names them, to find clusters and entities that have the id of one."""

    labels: Clustering
    position: Mapping[Any, int]
    entity: IntArray

    @classmethod
    def of(cls, prediction: Prediction, labels: Clustering) -> _LabelledRecords:
        """Look up the keys of labelled records, and the entities that are called like a labelled record."""
        keys = prediction.database.keys(prediction.record, labels.records.tolist())
        position = position_in_labels(labels, pd.Index(list(keys.values())))
        entity = position_in_labels(labels, labels.clusters)
        return cls(labels, dict(zip(keys, position, strict=True)), entity)

    def number_clusters(self, release: _Release) -> IntArray:
        """Return the cluster of each labelled record by its position among sizes, -1 if it is missing."""
        code = {key: i for i, key in enumerate(release.sizes)}
        cluster = np.full(len(self.labels.records), -1, dtype=np.int64)
        cluster[list(release.clusters)] = [code[key] for key in release.clusters.values()]
        return cluster

    def refuse_edges(self, cluster: IntArray, release: _Release) -> None:
        """Refuse a prediction, or labels, whose rows look like pairs of records (see `units.checks`)."""
        # the last one is for the code -1 of labelled records that are missing in the prediction
        named = np.array([*(self.position.get(c, -1) for c in release.sizes), -1], dtype=np.int64)[cluster]
        of_entity = np.where(self.entity < 0, -1, cluster[self.entity])
        size = np.array(list(release.sizes.values()), dtype=np.int64)
        refuse_edges(self.labels, cluster, named, of_entity, size, release.rows)


def count_records(prediction: Prediction) -> Records:
    """Count the records of each release, in the order of the releases, and make a digest of their ids."""
    ordered = f"{prediction.by.grouped} ORDER BY v" if prediction.release else ""
    columns = f"{prediction.by.v}COUNT(*), COUNT(r), COUNT(c), {prediction.database.digest('r')}"
    counted = list(prediction.rows(f"SELECT {columns} FROM {prediction.table}{ordered}"))
    total, records, clusters = (sum(int(row[i]) for row in counted) for i in (1, 2, 3))
    unnamed = sum(int(rows) for v, rows, *_ in counted if v is None) if prediction.release else 0
    refuse_missing(prediction, total, records, clusters, unnamed)
    return {v: (int(rows), digest) for v, rows, *_, digest in counted}


def _make_grouping(
    prediction: Prediction, units: Units, values: Mapping[Any, int], found: Composed, kinds: pd.Series
) -> Grouping:
    """Return the split of pieces by the group variable; `kinds` are of the labelled records' clusters."""
    assert prediction.groups is not None and units.piece_of is not None
    name = prediction.groups.name
    codes = np.array(list(values.values()), dtype=np.int64)
    variable = Variable(name, pd.Index(list(values)), codes, prediction.groups.values)
    counted, predicted = piece_values(variable, Of.RECORDS, units, units.piece_of), None
    if found.predicted is not None and units.population is not None:
        place = np.zeros(len(units.n), dtype=np.int64)
        place[units.piece_of] = kinds.loc[units.piece_of.index]
        predicted = replace(found.predicted, place=place)
        same = predicted.m @ predicted.count == units.population
        if not same or (predicted.m[place] != units.m).any():
            raise changed("groups do not add up to its clusters")
    return Grouping(name, prediction.groups.values, counted, predicted, found.unknown)
