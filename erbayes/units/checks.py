"""Checks for mistaken input: edges instead of memberships, swapped files, ids in another spelling."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import log

import numpy as np
import pandas as pd

from .._internal import remedies
from .._internal.arrays import BoolArray, FloatArray, IntArray
from .._internal.errors import DataError, Remedy, head
from .clustering import Clustering
from .ids import ROUNDED, kind

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


def first_entities(labels: Clustering) -> tuple[Clustering, IntArray]:
    """Return the first entities, of `EXAMINED` records or somewhat more, and positions of their records."""
    entities = int(np.searchsorted(np.cumsum(labels.sizes), EXAMINED)) + 1
    rows = np.flatnonzero(labels.codes < entities)
    return Clustering(labels.records[rows], labels.codes[rows], labels.clusters[:entities]), rows


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
    # groups named after a record by chance are about Poisson: P(x or more) <= exp(x - λ - x log(x/λ)) for λ <
    # x
    log_chance = surprising - expected - surprising * log(surprising / expected)
    enough = groups(elsewhere) > ELSEWHERE * hits or groups(nowhere) > NOWHERE * hits
    return bool(log_chance < log(CHANCE)) and enough


def refuse_edges(
    labels: Clustering,
    cluster: IntArray,
    named: IntArray,
    entity_cluster: IntArray,
    size: IntArray,
    records: int,
) -> None:
    """Refuse a prediction that is edges, as the labels show, and labels that are, as the prediction shows."""
    entity = labels.codes
    of_entity = position_in_labels(labels, labels.clusters)[entity]
    for what, remedy, namesake, group, known, namesake_known, sizes in (
        ("prediction", remedies.LINKS, named, cluster, entity, np.append(entity, -1)[named], labels.sizes),
        ("labels", remedies.ANSWERS, of_entity, entity, cluster, entity_cluster[entity], size),
    ):
        namesake_group = np.append(group, -1)[namesake]  # a namesake of -1 finds the -1 that is appended
        rows = (cluster >= 0) & (namesake != np.arange(len(cluster)))
        evidence = group[rows], known[rows], namesake_group[rows], namesake_known[rows]
        if rows.any() and are_edges(*evidence, sizes[known[rows]] / records):
            hit = rows & (namesake_known == known) & (namesake_group != group)
            raise DataError(
                f"the rows of the {what} look like pairs of records, such as those of "
                f"{head(labels.records[hit])}: their second ids are those of other records, which have other "
                "rows or none",
                remedy,
            )


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


def describe_missing(
    labels: Clustering,
    missed: BoolArray,
    *reasons: str,
    ways: Sequence[Remedy] = (),
    complete: bool = True,
) -> DataError:
    """Return the error for labelled records that are missing in a prediction, with their `reasons`."""
    said = _count_missing(labels, missed)
    if not complete:
        return DataError("; ".join([said, UNPAIRED, *reasons]), *ways, remedies.LISTED, remedies.UNLINKED)
    if missed.mean() < NEARLY_ALL:
        return DataError("; ".join([said, *reasons]), *ways, remedies.MISSING)
    question = "are the files or their columns in each other's place, or ids written in another way?"
    return DataError("; ".join([said, *(reasons or [question])]), *ways)


def _count_missing(labels: Clustering, missed: BoolArray) -> str:
    """Return the number of labelled records that a prediction does not have, with examples, in words."""
    records = labels.records[missed]
    count = f"{len(records):,} of {len(missed):,} labelled records"
    return f"{count} are not in the prediction, such as {head(records)}"


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


def explain_missing(prediction: Clustering, labels: Clustering, missed: BoolArray) -> DataError:
    """Return the error for labelled records that are missing in a prediction, with reasons that ids show."""
    unmatched, records = labels.records[missed], prediction.records
    if otherwise := written_otherwise(unmatched, records):
        return DataError(f"{_count_missing(labels, missed)}; {otherwise}")
    reasons = []
    if 2 * (number := int(unmatched.isin(prediction.clusters).sum())) >= len(unmatched):
        reasons.append(
            f"{number:,} of them are ids of its clusters: are its columns in the other order, or its rows "
            "pairs of records?"
        )
    number = int(labels.clusters.isin(records).sum())
    if 2 * len(unmatched) >= len(labels.records) and 2 * number >= len(labels.clusters):
        reasons.append(
            f"{number:,} of {len(labels.clusters):,} entities are records of the prediction: are the columns "
            "of the labels in the other order?"
        )
    ways = [remedies.ORDER] if reasons else []
    if len(labels.records) > len(records):
        reasons.append(
            f"the labels hold more records than the prediction, which has {len(records):,}: are they in each "
            "other's place?"
        )
    counted = pd.Index(range(len(records)))
    is_index = records.equals(counted) or records.equals(counted.astype("str"))
    if is_index and len(records) and 2 * len(unmatched) >= len(missed):
        reasons.append("its records are 0, 1, 2, …: are they the index of a table?")
    return describe_missing(labels, missed, *reasons, ways=ways, complete=prediction.complete)
