"""What labels of whole entities settle of a prediction, whatever the other records are.

Every predicted link with a labelled end is settled, as all records of a labelled entity have labels. Among
the U records without a label, predicted cluster k of m_k records has u_k. Totals are worst if these records
are one entity, or spoil each other's clusters in pairs, and best if those of a predicted cluster are one
entity. Bounds of this kind are identified sets (Manski 2003, Partial Identification of Probability
Distributions); docs/intervals.md has the reasons.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

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
from .units import KnownTotals, Units

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


def settle(units: Units, unit: IntArray, there: BoolArray) -> list[tuple[Totals, Totals]] | None:
    """Return the worst and the best totals of each family of metrics, of samples of distinct units.

    `unit` (samples, k): positions of units, which count where they are `there`. None if labelled entities may
    not be whole, or if the prediction does not fix the number of records.
    """
    known = units.known
    if units.population is None or known is None or not units.by_entity or units.counted is not None:
        return None
    if (np.bincount(units.group, units.n)[units.group] != units.N).any():
        return None
    stop, samples = np.cumsum(np.count_nonzero(there, axis=-1)), len(unit)
    drawn = csr_array((np.ones(stop[-1]), unit[there], np.append(0, stop)), (samples, len(units)))

    fixed = RECORDS, PREDICTED_LINKS, PREDICTED_CLUSTERS
    total: Totals = {c: np.full(samples, known.total(c)) for c in fixed}
    left = _count_open(units, known, drawn)
    counted = COMMON_LINKS, TRUE_LINKS, EXACT, TRUE_SINGLETONS, ENTITIES, B3_PRECISION, B3_RECALL
    U = left.records
    TP, T, E, single, K, B, R = (drawn @ np.stack([units.column(c) for c in counted], axis=-1)).T
    alone = (U == 1) & (left.singles == 1)  # the last record of all, alone, is exact for sure
    worst: tuple[Totals, ...] = (
        {COMMON_LINKS: TP, TRUE_LINKS: T + pairs(U) - left.links},
        {B3_PRECISION: B + left.shares, B3_RECALL: R + left.squares / np.maximum(U, 1)},
        {EXACT: E + alone, ENTITIES: K + U - np.where(alone, 0, np.ceil(left.singles / 2))},
        {TRUE_SINGLETONS: single + (U == 1), ENTITIES: K + np.where(U == 1, 1, U // 2)},
        {TRUE_LINKS: T + pairs(U)},
    )
    best: tuple[Totals, ...] = (
        {COMMON_LINKS: TP + left.links, TRUE_LINKS: T + left.links},
        {B3_PRECISION: B + left.parts, B3_RECALL: R + U},
        {EXACT: E + left.whole, ENTITIES: K + left.whole + left.begun},
        {TRUE_SINGLETONS: single + U, ENTITIES: K + U},
        {TRUE_LINKS: T},
    )
    return [(low | total, high | total) for low, high in zip(worst, best, strict=True)]


def _count_open(units: Units, known: KnownTotals, drawn: csr_array) -> Open:
    """Return what the units of each sample, which are 1 in its row of `drawn`, leave open."""
    n, m, of_piece, samples = units.n, units.m, units.cluster, drawn.shape[0]
    shared, records = np.bincount(of_piece)[of_piece] > 1, np.zeros(int(of_piece.max()) + 1)
    records[of_piece] = m
    first = np.append(0, np.cumsum(shared))[units.first_pieces]
    # labelled records of each sample in predicted clusters that several units share
    joint = drawn @ csr_array((n[shared], of_piece[shared], first), (len(units), len(records)))
    of, labelled, size = (
        np.repeat(np.arange(samples), np.diff(joint.indptr)),
        joint.data,
        records[joint.indices],
    )
    alone = (np.where(shared, 0, x) for x in (n**2, n**2 / m, 1, n < m))
    by_piece = n, n * m, n / m, m == 1, *alone
    by_unit = np.stack([np.bincount(units.unit, x, len(units)) for x in by_piece], axis=-1)
    inside, products, shares, singles, *own = (drawn @ by_unit).T
    together = labelled**2, labelled**2 / size, np.ones(len(of)), labelled < size
    squares, parts, touched, begun = (
        x + np.bincount(of, y, samples) for x, y in zip(own, together, strict=True)
    )
    sizes, count = known.size, known.count
    U, left = sizes @ count - inside, count @ sizes**2 - 2 * products + squares
    return Open(
        records=U,
        links=(left - U) / 2,
        shares=count.sum() - shares,
        squares=left,
        parts=sizes @ count - 2 * inside + parts,
        whole=count.sum() - touched,
        singles=count[sizes == 1].sum() - singles,
        begun=begun > 0,
    )
