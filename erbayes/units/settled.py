"""What labels of whole entities settle of a prediction, whatever the other records are.

Every predicted link with a labelled end is settled, as all records of a labelled entity have labels. Among
the U records without a label, predicted cluster k of m_k records has u_k. Totals are worst if these records
are one entity, or spoil each other's clusters in pairs, and best if those of a predicted cluster are one
entity. Bounds of this kind are identified sets (Manski 2003, Partial Identification of Probability
Distributions); docs/intervals.md has the reasons.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._internal.arrays import BoolArray, FloatArray, IntArray
from ..metrics.columns import (
    B3_PRECISION,
    B3_RECALL,
    COMMON_LINKS,
    ENTITIES,
    EXACT,
    PREDICTED_CLUSTERS,
    PREDICTED_LINKS,
    RECORDS,
    TRUE_LINKS,
    TRUE_SINGLETONS,
    Column,
    pairs,
)
from .units import Units, list_pieces

Totals = dict[Column, FloatArray]
"""Totals of all records by their column, (samples,) each."""


@dataclass(frozen=True, slots=True, eq=False)
class Open:
    """What labels of samples leave open, (samples,) each.

    `records`: U; `links`: predicted links without a labelled end, Σ u_k (u_k - 1)/2; `shares`: Σ u_k/m_k;
    `squares`: Σ u_k²; `parts`: Σ u_k²/m_k; `whole`, `singles`: predicted clusters, and those of one record,
    without a label; `begun`: whether a predicted cluster has records with and without a label.
    """

    records: FloatArray
    links: FloatArray
    shares: FloatArray
    squares: FloatArray
    parts: FloatArray
    whole: FloatArray
    singles: FloatArray
    begun: BoolArray


def settle(units: Units, unit: IntArray) -> list[tuple[Totals, Totals]] | None:
    """Return the worst and the best totals of each family of metrics, of samples of units, (samples, n).

    None if labelled entities may not be whole, or if the prediction does not fix the number of records.
    """
    known = units.known
    if units.population is None or known is None or not units.by_entity or units.counted is not None:
        return None
    if (np.bincount(units.group, units.n)[units.group] != units.N).any():
        return None
    sample, chosen = _list_distinct(unit)

    def count(column: Column) -> FloatArray:
        return np.bincount(sample, units.column(column)[chosen], len(unit))

    fixed = RECORDS, PREDICTED_LINKS, PREDICTED_CLUSTERS
    total: Totals = {c: np.full(len(unit), known.total(c)) for c in fixed}
    left, K = _count_open(units, sample, chosen, len(unit)), count(ENTITIES)
    U, TP, T, E, single = left.records, *map(count, (COMMON_LINKS, TRUE_LINKS, EXACT, TRUE_SINGLETONS))
    B, R = count(B3_PRECISION), count(B3_RECALL)
    alone = (U == 1) & (left.singles == 1)  # the last record of all, alone, is exact for sure
    worst: tuple[Totals, ...] = (
        {COMMON_LINKS: TP, TRUE_LINKS: T + pairs(U) - left.links},
        {B3_PRECISION: B + left.shares, B3_RECALL: R + left.squares / np.maximum(U, 1)},
        {EXACT: E + alone, ENTITIES: K + U - np.where(alone, 0, np.ceil(left.singles / 2))},
        {TRUE_SINGLETONS: single + (U == 1), ENTITIES: K + np.where(U == 1, 1, U // 2)},
    )
    best: tuple[Totals, ...] = (
        {COMMON_LINKS: TP + left.links, TRUE_LINKS: T + left.links},
        {B3_PRECISION: B + left.parts, B3_RECALL: R + U},
        {EXACT: E + left.whole, ENTITIES: K + left.whole + left.begun},
        {TRUE_SINGLETONS: single + U, ENTITIES: K + U},
    )
    return [(low | total, high | total) for low, high in zip(worst, best, strict=True)]


def _list_distinct(unit: IntArray) -> tuple[IntArray, IntArray]:
    """Return the sample and the position of each distinct unit of samples, (samples, n), both (distinct,)."""
    ordered = np.sort(unit, axis=1)
    first = np.diff(ordered, axis=1, prepend=-1) > 0
    return np.nonzero(first)[0], ordered[first]


def _count_open(units: Units, sample: IntArray, chosen: IntArray, samples: int) -> Open:
    """Return what the units at the positions `chosen` of each sample leave open."""
    known = units.known
    assert known is not None
    piece, of_unit = list_pieces(units, chosen)
    clusters = int(units.cluster.max()) + 1
    key, first, at = np.unique(sample[of_unit] * clusters + units.cluster[piece], True, True)
    of, labelled, m = key // clusters, np.bincount(at, units.n[piece]), units.m[piece][first]

    def less(total: Any, touched: FloatArray) -> FloatArray:
        return np.asarray(total - np.bincount(of, touched, samples))

    size, count = known.size, known.count
    U, squares = less(size @ count, labelled), less(count @ size**2, m**2 - (m - labelled) ** 2)
    return Open(
        records=U,
        links=(squares - U) / 2,
        shares=less(count.sum(), labelled / m),
        squares=squares,
        parts=less(size @ count, m - (m - labelled) ** 2 / m),
        whole=less(count.sum(), np.ones(len(m))),
        singles=less(count[size == 1].sum(), m == 1),
        begun=np.bincount(of, labelled < m, samples) > 0,
    )
