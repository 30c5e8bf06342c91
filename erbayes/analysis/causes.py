"""Causes of error: the stages at which links are lost or made, features of units, and records for review.

A true link is found by an edge that reaches the threshold, or by closure, through other records. It is lost
by the threshold if a looser one would find it, and was never compared if none would.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import truediv
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from .._internal.arrays import BoolArray, FloatArray, IntArray, Seed, to_frame
from .._internal.errors import DataError, Grade, Sentence, head, need, refuse_cases, warn_of, whole
from ..design.contract import Design
from ..design.sample import Sample, need_sample
from ..engine.fitted import influence
from ..engine.named import EngineLike, find_engine
from ..metrics.columns import COMMON_LINKS, PIECES, PREDICTED_LINKS, TRUE_LINKS, OfUnits
from ..metrics.definitions import UNIT, Group, Metric
from ..metrics.estimates import Estimates
from ..metrics.tables import Pictured
from ..units.clustering import Clustering, Memberships
from ..units.edges import Edges
from ..units.ids import same_kind
from ..units.measuring import sampled_labels
from ..units.units import Units
from .rows import effective_draws, intervals_table, tidy
from .thresholds import describe_few, load_edges


def features(sample: Sample) -> pd.DataFrame:
    """Return features that every sample has, one row per unit.

    Columns are records; pieces, the number of pieces; and largest_cluster, the records of the largest
    predicted cluster that has records of the unit. The last two describe the prediction too, and say where
    errors are rather than why.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "x"})
    >>> features(eb.Sample(units, eb.UniformClusters()))
       records  pieces  largest_cluster
    x      3.0     2.0              2.0
    """
    need_sample(sample)
    units, largest = sample.units, sample.units.largest_touched
    columns = {"records": units.size, "pieces": units.column(PIECES), "largest_cluster": largest}
    return pd.DataFrame(columns, index=units.ids)


def _of_records(units: Units, attributes: Any) -> pd.DataFrame:
    """Return the attributes of labelled records, in the order of `piece_of`."""
    need(attributes, pd.DataFrame, "attributes are a DataFrame, one row per record with its id in the index")
    if units.piece_of is None:
        raise DataError("these units have no ids of records")
    ids, among = units.piece_of.index, "labelled records"
    same_kind(attributes.index, ids, among, "ids in the index of attributes")
    table: pd.DataFrame = attributes[attributes.index.isin(ids)]
    refuse_cases(
        table.index[table.index.duplicated()].unique(),
        f"attributes have several rows for {{n}} {among}, such as",
    )
    position = table.index.get_indexer(ids)
    refuse_cases(ids[position < 0], f"attributes have no row for {{n}} of {len(ids):,} {among}, such as")
    return table.iloc[position]


def review(sample: Sample, metric: Metric | str, attributes: pd.DataFrame, *, most: int = 20) -> pd.DataFrame:
    """List the records of the most influential units with their attributes, for a person who reviews them.

    `.to_csv(path, index=False)` exports the list.

    Parameters
    ----------
    attributes : DataFrame
        One row per record, whose id is in the index. It may have further records.

    Returns
    -------
    DataFrame
        One row per record; the `most` influential units first, and in each the largest piece. Columns: unit;
        influence, as in `erbayes.influence`; record; piece, numbered within the unit; cluster_size, the
        records of its predicted cluster; then the attributes.

    Raises
    ------
    DataError, NotIdentified
        If labelled records have no row or several, or if the metric is 0/0 in the sample.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "c"}, {1: "x", 2: "x", 3: "x", 4: "y"})
    >>> names = pd.DataFrame({"name": ["Ann", "Ann", "Anne", "Bob"]}, index=[1, 2, 3, 4])
    >>> found = review(eb.Sample(units, eb.UniformClusters()), "b3-recall", names, most=1)
    >>> found.drop(columns="influence")
      unit  record  piece  cluster_size  name
    0    x       1      1             2   Ann
    1    x       2      1             2   Ann
    2    x       3      2             1  Anne
    """
    need_sample(sample)
    most, units = whole(most, "most units"), sample.units
    shown = _of_records(units, attributes)
    moved = influence(sample, metric)["influence"].head(most)
    order = np.lexsort((-units.n, units.unit))  # pieces of each unit, the largest first
    place = np.empty(len(order), dtype=np.int64)
    first = np.searchsorted(units.unit[order], np.arange(len(units)))
    place[order] = np.arange(len(order)) - first[units.unit[order]] + 1
    assert units.piece_of is not None  # _of_records needs it
    piece = units.piece_of.to_numpy()
    columns = {
        "unit": units.ids[units.unit[piece]],
        "influence": moved.reindex(units.ids).to_numpy()[units.unit[piece]],
        "record": shown.index,
        "piece": place[piece],
        "cluster_size": units.m[piece].astype(np.int64),
    }
    if clash := [c for c in shown.columns if c in columns]:
        raise DataError(f"attributes have columns {head(clash)}, as the list itself: rename them")
    table = pd.concat([pd.DataFrame(columns), shown.reset_index(drop=True)], axis=1)
    rank = pd.Series(np.arange(len(moved)), index=moved.index).reindex(table["unit"]).to_numpy()
    table = table.assign(_rank=rank)[~np.isnan(rank)]
    return table.sort_values(["_rank", "piece"], kind="stable").drop(columns="_rank").reset_index(drop=True)


FOUND = ("found by an edge", "found by closure", "lost by the threshold", "never compared")
"""What becomes of true links. Their shares add up to 1."""
FALSE = ("false edges", "false by closure")
"""Shares of false links among those that edges make, and among those that closure adds."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stages(Pictured):
    """Shares of links at each stage of a matcher: those of `FOUND` and of `FALSE`, `joint`, (6,).

    `least`: the score below which a compared pair counts as never compared; None if candidates are given.
    """

    picture: ClassVar[str] = "stages"
    joint: Estimates
    effective: FloatArray
    sample: Sample
    least: float | None = None

    def table(self, level: float = 0.95) -> pd.DataFrame:
        """Return the shares with intervals of `level`, without one below ten effective draws."""
        few = describe_few(self.effective, self.sample)
        rows, n_eff = {"stage": self.joint.names}, self.effective
        return tidy(intervals_table(rows, self.joint, level, None, few, n_eff=n_eff, before="level"))

    def __str__(self) -> str:
        """Return in one sentence where links are lost."""
        lost, never = self.joint.estimate[2 : len(FOUND)]
        missed = lost + never
        if not missed > 0:
            return "No link is missed in this sample."
        said = (
            f"Of 100 true links {100 * missed:.0f} are missed, and of 100 missed links "
            f"{100 * never / missed:.0f} were never compared"
        )
        if self.least is None or not never > 0:
            return f"{said}."
        return f"{said}, or score below {self.least:g}, the least score of the file."


def stages(
    edges: Any,
    labels: Memberships,
    design: Design,
    threshold: float,
    *,
    records: Any = None,
    score: str | None = None,
    candidates: Any = None,
    engine: EngineLike | None = None,
    rng: Seed = None,
) -> Stages:
    """Estimate at which stage of a matcher links are lost, and where false ones are made.

    Parameters
    ----------
    edges, labels, design, records, score
        As in `erbayes.thresholds`.
    threshold : float
        Edges with this score or more are links.
    candidates : table of two columns of ids, optional
        Pairs that were compared, if `edges` does not keep those with low scores.
    engine : Engine or str, optional
        `"closed form"` by default, or any other that takes columns of your own.
    rng : Generator, int or None

    Warns
    -----
    Alarm
        As `erbayes.thresholds`, or if the file has no edge below the threshold or only the best per record.

    Raises
    ------
    DataError, NotIdentified
        As `erbayes.thresholds`, or if no labelled entity has two records.

    Examples
    --------
    >>> import erbayes as eb
    >>> edges = pd.DataFrame({"l": ["a", "b", "d"], "r": ["b", "c", "e"], "weight": [9.0, 4.0, 2.0]})
    >>> labels = {"a": "x", "b": "x", "c": "x", "d": "y", "e": "y", "f": "z", "g": "z"}
    >>> design = eb.UniformClusters(population=3)
    >>> found = stages(edges, labels, design, threshold=3, records=list("abcdefg"))
    >>> found.table()[["stage", "estimate"]][:4]
                       stage  estimate
    0       found by an edge       0.4
    1       found by closure       0.2
    2  lost by the threshold       0.2
    3         never compared       0.2
    >>> print(found)
    Of 100 true links 40 are missed, and of 100 missed links 50 were never compared, or
    score below 2, the least score of the file.
    """
    labels = sampled_labels(labels, records)
    by = find_engine(engine)
    table = Edges.of(load_edges(edges, score), records, score)
    (threshold,) = table.thresholds([threshold]).tolist()
    linked = table.score >= threshold
    warn_of([*table.alarms(labels), *_find_alarms(table, linked, labels, candidates is not None)])
    compared = table if candidates is None else _add_candidates(table, candidates)
    units, *looser = compared.units(labels, np.unique([compared.score.min(), threshold])[::-1])
    metrics = _make_metrics(table, linked, labels, units, (looser or [units])[0])
    sample = Sample(units, design)
    least = float(table.score.min()) if candidates is None else None
    return Stages(by(sample, metrics, rng), effective_draws(sample, metrics), sample, least)


def _add_candidates(edges: Edges, candidates: Any) -> Edges:
    """Return the edges with pairs that were compared, whose scores are below any other."""
    pairs = Edges.of(to_frame(candidates).assign(_score=-np.inf), edges.records, "_score", "candidates")
    left, right, score = (
        np.concatenate([getattr(one, name) for one in (edges, pairs)]) for name in ("left", "right", "score")
    )
    return Edges(edges.records, left, right, score)


def _find_alarms(edges: Edges, linked: BoolArray, labels: Clustering, compared: bool) -> list[Sentence]:
    """Return sentences about files that have too few edges to distinguish stages."""
    no_edge = (
        "The file has no edge below the threshold, so that no link can be lost by it: links that were "
        "compared count as never compared; keep all scored pairs, or give candidates="
    )
    one_edge = (
        "Each record has one edge at most, in one of its columns, although entities have three records "
        "and more: if the file keeps the best edge of each record only, others count as never compared"
    )
    ends = edges.left[edges.left != edges.right], edges.right[edges.left != edges.right]
    once = any(len(np.unique(end)) == len(end) for end in ends) and (labels.sizes > 2).any()
    alarms = [Sentence(no_edge, Grade.FAULT)] * bool(linked.all() and not compared)
    return alarms + [Sentence(one_edge, Grade.CAUTION)] * bool(once)


def _make_metrics(
    edges: Edges, linked: BoolArray, labels: Clustering, units: Units, looser: Units
) -> list[Metric]:
    """Return the shares of `FOUND` and `FALSE`, of links of each labelled entity and of its records."""
    entity = np.full(len(edges.records), -1)
    entity[edges.watch(labels)] = labels.codes
    true, ends = _count_edges(edges, linked, entity, len(labels.clusters))
    T, TP, P = (units.column(c) for c in (TRUE_LINKS, COMMON_LINKS, PREDICTED_LINKS))
    within = looser.column(COMMON_LINKS)

    def count(name: str, values: FloatArray) -> OfUnits:
        return OfUnits(name, pd.Series(values, units.ids))

    counted = (true, TP - true, within - TP, T - within, ends - true, (P - TP) - (ends - true))
    of = [TRUE_LINKS] * len(FOUND) + [count("edges", ends), count("closure", P - ends)]
    return [
        Metric(name, (count(name, y), whole), truediv, ((whole, 1.0),), UNIT, "", group=Group.LINKS)
        for name, y, whole in zip((*FOUND, *FALSE), counted, of, strict=True)
    ]


def _count_edges(
    edges: Edges, linked: BoolArray, entity: IntArray, entities: int
) -> tuple[FloatArray, FloatArray]:
    """Return the linked pairs inside each entity, and half of the ends that each has in one, (entities,)."""
    left, right = edges.left[linked].astype(np.int64), edges.right[linked].astype(np.int64)
    near = ((entity[left] >= 0) | (entity[right] >= 0)) & (left != right)
    low, high = np.minimum(left, right)[near], np.maximum(left, right)[near]
    # an edge that is there twice is one link
    key = np.unique(low * len(entity) + high)
    one, other = entity[key // len(entity)], entity[key % len(entity)]
    inside = np.bincount(one[one == other], minlength=entities).astype(float)
    ends = np.concatenate([one, other])
    return inside, np.bincount(ends[ends >= 0], minlength=entities) / 2
