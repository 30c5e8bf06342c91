"""Units from a prediction and labels: records are looked up once, and counted as pieces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import BoolArray, FloatArray, IntArray
from .._internal.errors import DataError, member, refuse_cases
from .._internal.policies import Missing
from .checks import describe_missing, explain_missing, first_entities, position_in_labels, refuse_edges
from .clustering import Clustering, Memberships
from .columns import find_near
from .frame import FrameFacts, framed
from .ids import count_cased, ids, kind, look_up, unite_ids
from .units import KnownTotals, Units, histogram


def measure(
    prediction: Memberships,
    labels: Memberships,
    *,
    blocks: Memberships | None = None,
    missing: Missing | str = Missing.ERROR,
    frame: Any = None,
) -> Units:
    """Make units of the labelled entities, or of the blocks that they fill, to estimate from.

    Parameters
    ----------
    prediction : memberships
        Predicted cluster of every record of the population (see `Clustering.of`).
    labels : memberships
        True entity of every record of each sampled entity.
    blocks : memberships, optional
        Block of every labelled record, or of every record; blocks then are the units. `labels` must list
        every record of each sampled block, as far as `blocks` lists them.
    missing : Missing or its word, such as "omit"
        What to do with labelled records that are missing in the prediction.
    frame : record ids or an older prediction, optional
        The records that existed when the labels were made, if the prediction has newer ones: ids or
        memberships. The frame is then the population.

    Raises
    ------
    DataError
        No labels, labelled records missing in the prediction (with `Missing.ERROR`, or all of them), ids of
        different types, a block that a true entity crosses or that has a record without a label,
        labelled records outside the frame, or pairs of records instead of memberships.

    Examples
    --------
    >>> units = measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "x"})
    >>> units.table()[["records", "true_links", "common_links", "predicted_links"]]
       records  true_links  common_links  predicted_links
    x      3.0         3.0           1.0              1.5
    """
    missing = need_policy(missing)
    labels, read = read_framed({"": prediction}, labels, frame)
    prediction, facts = read[""]
    sizes = prediction.sizes
    cluster = _find_clusters(prediction, labels)
    refuse_unmatched(prediction, labels, cluster < 0, missing)
    known = histogram(sizes, count_cased(prediction.clusters))
    units = assemble(labels, cluster, sizes, known, blocks=blocks, missing=missing)
    return replace(units, frame=facts)


def _find_clusters(prediction: Clustering, labels: Clustering) -> IntArray:
    """Return the predicted cluster of each labelled record, (n,), -1 if missing, and refuse edges."""
    shown, rows = first_entities(labels)
    entities = shown.clusters if kind(shown.clusters) == kind(shown.records) else shown.records[:0]
    # ids of entities are looked up too, since those of edges are records of the prediction
    position = look_up(prediction.records, unite_ids(labels.records, entities))
    codes = np.where(position < 0, -1, prediction.codes[position]) if len(prediction.records) else position
    cluster, entity_cluster = codes[: len(labels.records)], np.full(len(shown.clusters), -1)
    entity_cluster[: len(entities)] = codes[len(labels.records) :]
    touched = np.unique(cluster[rows])
    touched = touched[touched >= 0]
    namesake = np.full(len(prediction.clusters) + 1, -1)  # the last one is that of no cluster
    namesake[touched] = position_in_labels(shown, prediction.clusters[touched])
    named = namesake[cluster[rows]]
    refuse_edges(shown, cluster[rows], named, entity_cluster, prediction.sizes, len(prediction.records))
    return cluster


def measure_predicted(
    prediction: Memberships, labels: Any, sampled: Any, *, whole_entities: bool = True, frame: Any = None
) -> Units:
    """Make units of sampled *predicted* clusters, to estimate from.

    Parameters
    ----------
    prediction, frame
        As in `measure`. A predicted cluster that has grown since it was sampled is its records in the frame.
    labels : memberships
        True entity of every record of the sampled clusters and, if `whole_entities`, of every
        other record of the entities that they touch.
    sampled : sequence of cluster ids
        The sampled predicted clusters, each once.
    whole_entities : bool
        False if labels end at the border of the sampled clusters. Precision is then identified, and recall is
        not.

    Raises
    ------
    DataError
        Unknown or repeated cluster ids, records of a sampled cluster without a label, or labelled records
        outside the frame.

    Examples
    --------
    >>> prediction, labels = {1: "a", 2: "a", 3: "b"}, {1: "x", 2: "y", 3: "x"}
    >>> units = measure_predicted(prediction, labels, ["a"])
    >>> units.table()[["records", "predicted_links", "common_links"]]
       records  predicted_links  common_links
    a      2.0              1.0           0.0
    """
    labels, read = read_framed({"": prediction}, labels, frame)
    prediction, facts = read[""]
    drawn, where = ids(sampled, "sampled clusters"), " in the frame" * (frame is not None)
    if not len(drawn):
        raise DataError("no cluster is sampled: an empty sample estimates nothing")
    if not drawn.is_unique:
        raise DataError(f"{int(drawn.duplicated().sum())} sampled clusters are listed twice")
    refuse_cases(drawn.difference(prediction.clusters), f"{{n}} sampled clusters are not predicted{where}:")
    unit_of_record = drawn.get_indexer(prediction.clusters)[prediction.codes]
    inside = np.flatnonzero(unit_of_record >= 0)
    position = look_up(labels.records, prediction.records[inside])
    if (position < 0).any():
        raise DataError(f"{int((position < 0).sum())} records of sampled clusters have no label")
    unit, entity, n, piece = _count_pieces(unit_of_record[inside].astype(np.int64), labels.codes[position])
    return Units(
        ids=drawn,
        unit=unit,
        group=unit,
        n=n,
        N=labels.sizes[entity].astype(float) if whole_entities else np.full(len(n), np.nan),
        m=np.bincount(unit, weights=n)[unit],
        cluster=prediction.clusters.get_indexer(drawn)[unit],
        known=histogram(prediction.sizes, count_cased(prediction.clusters)),
        by_entity=False,
        frame=facts,
        piece_of=pd.Series(piece, index=prediction.records[inside]),
    )


def need_policy(missing: Missing | str) -> Missing:
    """Return a policy for the records that one prediction is missing, and refuse all else."""
    policy = member(missing, Missing, "missing")
    if policy is Missing.COMMON:
        raise DataError(
            "the policy 'common' is for several predictions: choose error, omit, singleton or together"
        )
    return policy


def assemble(
    labels: Clustering,
    cluster: IntArray,
    sizes: IntArray,
    known: KnownTotals,
    *,
    blocks: Memberships | None = None,
    missing: Missing = Missing.ERROR,
) -> Units:
    """Make units from predicted clusters of labelled records by position in `sizes`, -1 if missing."""
    missed = cluster < 0
    unmatched = int(missed.sum())
    if unmatched and missing is Missing.ERROR:
        raise describe_missing(labels, missed)
    counted = np.ones(len(cluster), dtype=bool) if missing is not Missing.OMIT else ~missed
    if not counted.any():
        raise DataError("none of the labelled records is in the prediction")
    cluster, sizes = _place_missing(labels, cluster, sizes, missing)
    if unmatched and missing is Missing.SINGLETON:
        known = replace(known, singletons=False)
    code, unit_ids = units_of(labels, blocks)
    # sorted by unit, and inside of blocks by entity
    order = np.argsort(code, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    place, piece_cluster, n, piece = _count_pieces(rank[labels.codes[counted]], cluster[counted])
    used, unit = np.unique(code[order[place]], return_inverse=True)
    group = np.unique(place, return_inverse=True)[1]
    return Units(
        ids=unit_ids[used],
        unit=unit,
        group=group,
        n=n,
        N=np.bincount(group, n)[group],
        m=sizes[piece_cluster].astype(float),
        cluster=piece_cluster,
        known=None if unmatched and missing is Missing.TOGETHER else known,
        unmatched=unmatched,
        omitted=unit_ids[np.setdiff1d(code, used)],
        piece_of=pd.Series(piece, index=labels.records[counted]),
    )


def _place_missing(
    labels: Clustering, cluster: IntArray, sizes: IntArray, missing: Missing
) -> tuple[IntArray, IntArray]:
    """Return clusters in order of appearance, those of missing records by the policy, and their sizes."""
    missed, cluster = cluster < 0, cluster.copy()
    cluster[~missed], touched = pd.factorize(cluster[~missed])
    sizes = sizes[touched]
    if missing in {Missing.SINGLETON, Missing.TOGETHER}:
        added = np.arange(missed.sum()) if missing is Missing.SINGLETON else labels.codes[missed]
        cluster[missed] = len(sizes) + added
        sizes = np.concatenate([sizes, np.bincount(added)])
    return cluster, sizes


def refuse_unmatched(prediction: Clustering, labels: Clustering, missed: BoolArray, missing: Missing) -> None:
    """Refuse labelled records that are missing in a prediction, if the policy or the lost links forbid it."""
    # a record in no pair has no found link: without such records, recall would count found links only
    refused = {Missing.ERROR} if prediction.complete else {Missing.ERROR, Missing.OMIT}
    if missed.all() or (missed.any() and missing in refused):
        raise explain_missing(prediction, labels, missed)


def read_framed(
    predictions: Mapping[str, Any], labels: Any, frame: Any
) -> tuple[Clustering, dict[str, tuple[Clustering, FrameFacts | None]]]:
    """Return labels and, by name, predictions in the frame; each table tells the records of the other."""
    near = find_near(labels)
    called = {name: f"prediction {name!r}" if name else "prediction" for name in predictions}
    read = {name: Clustering.of(given, called[name], near=near) for name, given in predictions.items()}
    labels = sampled_labels(labels, next(iter(read.values())).records)
    return labels, {name: framed(one, labels, frame, called[name]) for name, one in read.items()}


def sampled_labels(labels: Any, records: Any = None) -> Clustering:
    """Return labels as a clustering with one record or more; `records`: those of a prediction, or all."""
    near = None if records is None else find_near(records)
    clustering = Clustering.of(labels, "labels", near=near and replace(near, whole=True))
    if not len(clustering.records):
        raise DataError("the labels hold no record: an empty sample estimates nothing")
    return clustering


def units_of(labels: Clustering, blocks: Any) -> tuple[IntArray, pd.Index]:
    """Code of the unit of each entity, and the ids of units by their codes."""
    if blocks is None:
        return np.arange(len(labels.clusters)), labels.clusters
    unit, blocks = np.zeros(len(labels.clusters), dtype=np.int64), Clustering.of(blocks, "blocks")
    position = look_up(blocks.records, labels.records, "blocks")
    if (position < 0).any():
        raise DataError(f"{int((position < 0).sum())} labelled records have no block")
    block = blocks.codes[position]
    unlabelled = np.isin(blocks.codes, block)
    unlabelled[position] = False
    said = "{n} records of sampled blocks have no label, such as"
    refuse_cases(blocks.records[unlabelled], said, ": label every record of a sampled block")
    unit[labels.codes] = block
    crossing = np.unique(labels.codes[unit[labels.codes] != block])
    said = "{n} true entities cross blocks, such as"
    refuse_cases(labels.clusters[crossing], said, ": blocks must be unions of true entities")
    return unit, blocks.clusters


def _count_pieces(rows: IntArray, columns: IntArray) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
    """Distinct pairs of row and column, sorted, the number of times that each occurs, and where each is."""
    width = int(columns.max()) + 1
    key, place, n = np.unique(rows * width + columns, return_inverse=True, return_counts=True)
    return key // width, key % width, n.astype(float), place
