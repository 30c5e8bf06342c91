"""Units from a prediction and labels: records are looked up once, checked, and counted as pieces.

Mistaken input is refused: edges instead of memberships, swapped files, ids in another spelling.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import log
from typing import Any

import numpy as np
import pandas as pd

from .._internal import remedies
from .._internal.arrays import BoolArray, FloatArray, IntArray
from .._internal.errors import DataError, Remedy, head, member, refuse_cases
from .._internal.remedies import Missing
from .clustering import Clustering, FrameFacts, Memberships, framed
from .columns import find_near
from .ids import ROUNDED, count_cased, ids, kind, look_up, unite_ids
from .units import KnownTotals, Units, histogram

CHANCE = 1e-6
"""Probability below which equal ids are not a coincidence, as it costs a user a refusal of sound input."""
HITS = 0.2
"""Least share of known groups with a hit, for rows to be edges."""
ELSEWHERE, NOWHERE = 0.1, 0.5
"""Least shares of the known groups with a hit whose namesakes have another group, or none, as a few may."""
NEARLY_ALL = 0.9
"""Least share of missing labelled records at which messages offer no policy, since ids then do not fit."""
EXAMINED = 10_000
"""About the number of labelled records that are examined for edges, so that a check takes a moment."""


def are_edges(
    group: IntArray, known: IntArray, namesake_group: IntArray, namesake_known: IntArray, share: FloatArray
) -> bool:
    """Return whether a clustering, (r,), is edges (record, other record) or parents, as a known one shows."""

    def groups(rows: BoolArray) -> int:
        return len(np.unique(known[rows]))

    # the other end of an edge is a record, whose id names the group, and belongs with the row's record
    hit = namesake_known == known
    # a group named after one of its own records has that record at home, which says nothing of edges
    home, nowhere = hit & (namesake_group == group), hit & (namesake_group < 0)
    elsewhere = hit & ~home & ~nowhere
    surprising, hits = groups(elsewhere | nowhere), groups(hit)
    expected = share[np.unique(group * (known.max() + 1) + known, return_index=True)[1]].sum()
    if surprising <= expected or hits < HITS * groups(known >= 0):
        return False
    # groups named after a record by chance are about Poisson: P(x or more) <= exp(x - λ - x log(x/λ)), λ < x
    log_chance = surprising - expected - surprising * log(surprising / expected)
    enough = groups(elsewhere) > ELSEWHERE * hits or groups(nowhere) > NOWHERE * hits
    return bool(log_chance < log(CHANCE)) and enough


def refuse_edges(
    labels: Clustering, cluster: IntArray, named: IntArray, entity_cluster: IntArray, size: IntArray, N: int
) -> None:
    """Refuse a prediction that is edges, as the labels show, and labels that are, as the prediction shows.

    `cluster`, `named` (n,): predicted cluster of each labelled record, and position in the labels of the
    record that its cluster is called like; `entity_cluster` (E,): cluster of the record that an entity is
    called like, -1 if there is none; `size`: of all N records by cluster.
    """
    entity = labels.codes
    of_entity = position_in_labels(labels, labels.clusters)[entity]
    for what, remedy, namesake, group, known, namesake_known, sizes in (
        ("prediction", remedies.LINKS, named, cluster, entity, np.append(entity, -1)[named], labels.sizes),
        ("labels", remedies.ANSWERS, of_entity, entity, cluster, entity_cluster[entity], size),
    ):
        namesake_group = np.append(group, -1)[namesake]  # a namesake of -1 finds the -1 that is appended
        rows = (cluster >= 0) & (namesake != np.arange(len(cluster)))
        evidence = group[rows], known[rows], namesake_group[rows], namesake_known[rows]
        if rows.any() and are_edges(*evidence, sizes[known[rows]] / N):
            hit = rows & (namesake_known == known) & (namesake_group != group)
            said = f"the rows of the {what} look like pairs of records, such as those of "
            said += f"{head(labels.records[hit])}: their second ids are those of other records, which have "
            raise DataError(f"{said}other rows or none", remedy)


def position_in_labels(labels: Clustering, others: pd.Index) -> IntArray:
    """Position in the labels of each id that is a labelled record, -1 for others."""
    if kind(others) != kind(labels.records):
        return np.full(len(others), -1)
    return labels.records.get_indexer(others)


UNPAIRED = (
    "pairs do not name records that are linked to none, and to leave these out would leave out every link "
    "that was missed"
)
"""Why labelled records that are in no pair may not be left out."""
WRITTEN: dict[str, Callable[[pd.Series], pd.Series]] = {
    "in another case or with other blanks": lambda ids: ids.str.strip().str.lower(),
    "with other leading zeros": lambda ids: ids.str.strip().str.lstrip("0"),
    "in another form of Unicode (NFC or NFD)": lambda ids: ids.str.normalize("NFC"),
    "with or without '.0' at the end": lambda ids: ids.str.strip().str.removesuffix(".0"),
}
"""Other ways to write ids, and the form that they share."""


def written_otherwise(unmatched: pd.Index, records: pd.Index) -> str:
    """Return how most unmatched ids are written among `records`, with the remedy; "" if they are not."""
    if kind(unmatched) == kind(records) == "string":
        for otherwise, form in WRITTEN.items():
            known, ids = (form(pd.Series(index, dtype="object")) for index in (records, unmatched))
            if 2 * (number := int(ids.isin(known).sum())) >= len(ids):
                return f"{number:,} of them are there {otherwise}: bring both to one form"
    return ""


def are_written_otherwise(ids: pd.Series, others: pd.Series) -> BoolArray:
    """Return whether each text is the other one as somebody else or a spreadsheet writes it, (n,)."""
    ids, others = ids.astype(object), others.astype(object)
    same = [form(ids).to_numpy() == form(others).to_numpy() for form in WRITTEN.values() if len(ids)]
    return np.any([*same, [re.fullmatch(ROUNDED, id) is not None for id in ids]], axis=0)


def explain_missing(labels: Clustering, missed: BoolArray, prediction: Clustering | None = None) -> DataError:
    """Return the error for labelled records that are missing, with reasons that a prediction's ids show."""
    unmatched, reasons, ways = labels.records[missed], list[str](), list[Remedy]()
    said = f"{len(unmatched):,} of {len(missed):,} labelled records are not in the prediction, such as"
    said += f" {head(unmatched)}"
    if prediction is not None:
        records = prediction.records
        if otherwise := written_otherwise(unmatched, records):
            return DataError(f"{said}; {otherwise}")
        if 2 * (number := int(unmatched.isin(prediction.clusters).sum())) >= len(unmatched):
            named = f"{number:,} of them are ids of its clusters"
            reasons.append(f"{named}: are its columns in the other order, or its rows pairs of records?")
        number = int(labels.clusters.isin(records).sum())
        if 2 * len(unmatched) >= len(missed) and 2 * number >= len(labels.clusters):
            entities = f"{number:,} of {len(labels.clusters):,} entities are records of the prediction"
            reasons.append(f"{entities}: are the columns of the labels in the other order?")
        ways = [remedies.ORDER] if reasons else []
        if len(missed) > len(records):
            more = f"the labels hold more records than the prediction, which has {len(records):,}"
            reasons.append(f"{more}: are they in each other's place?")
        counted = pd.Index(range(len(records)))
        is_index = records.equals(counted) or records.equals(counted.astype("str"))
        if is_index and len(records) and 2 * len(unmatched) >= len(missed):
            reasons.append("its records are 0, 1, 2, …: are they the index of a table?")
        if not prediction.complete:
            said = "; ".join([said, UNPAIRED, *reasons])
            return DataError(said, *ways, remedies.LISTED, remedies.UNLINKED)
    if missed.mean() < NEARLY_ALL:
        return DataError("; ".join([said, *reasons]), *ways, remedies.MISSING)
    question = "are the files or their columns in each other's place, or ids written in another way?"
    return DataError("; ".join([said, *(reasons or [question])]), *ways)


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
    # the first entities, of `EXAMINED` records or somewhat more
    examined = int(np.searchsorted(np.cumsum(labels.sizes), EXAMINED)) + 1
    rows = np.flatnonzero(labels.codes < examined)
    shown = Clustering(labels.records[rows], labels.codes[rows], labels.clusters[:examined])
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
        False if labels end at the border of the sampled clusters. Precision alone is then identified.

    Raises
    ------
    DataError
        Unknown or repeated cluster ids, unlabelled records of a sampled cluster, or labels outside the frame.

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
    known, entity = histogram(prediction.sizes, count_cased(prediction.clusters)), labels.codes[position]
    rows = np.flatnonzero(np.isin(labels.codes, entity)) if whole_entities else position
    codes, used = pd.factorize(labels.codes[rows])
    touched = Clustering(labels.records[rows], codes, labels.clusters[used])
    cluster = np.append(prediction.codes, -1)[look_up(prediction.records, touched.records)]  # -1 if missing
    entities = assemble(touched, cluster, prediction.sizes, known, missing=Missing.SINGLETON)
    # pieces of predicted clusters are those of entities, with truth and prediction exchanged
    clusters = Clustering(prediction.records[inside], unit_of_record[inside].astype(np.int64), drawn)
    units = assemble(clusters, entity, labels.sizes, known)
    N = units.m if whole_entities else np.full(len(units.n), np.nan)
    return replace(units, N=N, m=units.N, cluster=units.unit, by_entity=False, frame=facts, entities=entities)


def need_policy(missing: Missing | str) -> Missing:
    """Return a policy for the records that one prediction is missing, and refuse all else."""
    policy = member(missing, Missing, "missing")
    if policy is Missing.COMMON:
        others = "error, omit, singleton or together"
        raise DataError(f"the policy 'common' is for several predictions: choose {others}")
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
        raise explain_missing(labels, missed)
    counted = np.ones(len(cluster), dtype=bool) if missing is not Missing.OMIT else ~missed
    if not counted.any():
        raise DataError("none of the labelled records is in the prediction")
    cluster = cluster.copy()
    cluster[~missed], touched = pd.factorize(cluster[~missed])  # in order of appearance
    sizes = sizes[touched]
    if missing in {Missing.SINGLETON, Missing.TOGETHER}:
        added = np.arange(unmatched) if missing is Missing.SINGLETON else labels.codes[missed]
        cluster[missed] = len(sizes) + added
        sizes = np.concatenate([sizes, np.bincount(added)])
    if unmatched and missing is Missing.SINGLETON:
        known = replace(known, singletons=False)
    code, unit_ids = units_of(labels, blocks)
    order = np.argsort(code, kind="stable")  # by unit, and inside of blocks by entity
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


def refuse_unmatched(prediction: Clustering, labels: Clustering, missed: BoolArray, missing: Missing) -> None:
    """Refuse labelled records that are missing in a prediction, if the policy or the lost links forbid it."""
    # a record in no pair has no found link: without such records, recall would count found links only
    refused = {Missing.ERROR} if prediction.complete else {Missing.ERROR, Missing.OMIT}
    if missed.all() or (missed.any() and missing in refused):
        raise explain_missing(labels, missed, prediction)


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
