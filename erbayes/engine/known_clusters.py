"""The closed form of the front door, in which the known number of predicted clusters helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import block_diag

from .._internal.arrays import FloatArray, Seed
from ..design.sample import Sample
from ..metrics.columns import ENTITIES, PREDICTED_CLUSTERS, RECORDS
from ..metrics.definitions import Metric, entities, mean_cluster_size
from ..metrics.estimates import Estimates, stacked
from ..metrics.moves import Moves
from ..metrics.unseen import round_outward
from .fitted import fit_sample

COUNTED = (entities, mean_cluster_size)
HALF = 0.5
"""Entities by which a record of an unseen draw may have more, or fewer, than its predicted clusters."""


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """The closed form, in which the known number of predicted clusters improves `COUNTED`."""

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
        return _estimate(sample, metrics)[0]

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
        """As `Paired.paired`."""
        fits, moved = zip(*(_estimate(sample, metrics) for sample in samples), strict=True)
        return stacked(fits, samples[0].expansion.covariance(np.hstack(moved)))


def _estimate(sample: Sample, metrics: Sequence[Metric]) -> tuple[Estimates, FloatArray]:
    """Return metrics of a sample, and what each draw moves them by, (n, k)."""
    fitted = fit_sample(sample, metrics)
    found = fitted.estimates
    sound = [None if why else metric for metric, why in zip(metrics, found.reasons, strict=True)]
    return improve_counts(sample, found, fitted.effects, sound)


def improve_counts(
    sample: Sample, found: Estimates, moved: FloatArray, metrics: Sequence[Metric | None]
) -> tuple[Estimates, FloatArray]:
    """Return `found`, which draws move by `moved`, (n, k), with better numbers of entities and mean sizes.

    Components are these metrics, or None for another one.
    """
    units, variance = sample.units, sample.expansion
    at = [j for j, metric in enumerate(metrics) if metric in COUNTED]
    if not at or not units.by_entity or units.population is None or variance.census:
        return found, moved
    better, moved_by = _count_entities(sample, [metrics[j] for j in at])
    moved, k = moved.copy(), len(found.names)
    moved[:, at] = moved_by
    # those of one fit are there already, without the rounding of another order
    is_counted = np.isin(np.arange(k), at)
    cov = np.where(np.logical_or.outer(is_counted, is_counted), variance.covariance(moved), found.cov)
    cov[np.ix_(at, at)] = better.cov
    take = np.arange(k)
    take[at] = k + np.arange(len(at))
    both = stacked([found, better], block_diag(found.cov, better.cov)).part(take.tolist())
    return replace(both, names=found.names, cov=cov), moved


def _count_entities(sample: Sample, metrics: Sequence[Metric | None]) -> tuple[Estimates, FloatArray]:
    """Return the number of entities K, or the mean size N/K, and what each draw moves them by, (n, k).

    K is the known number of predicted clusters, plus gains, less losses N a_s (v_s - x_s) of draws, for the
    share a_s of a draw in the records, and its entities v_s and predicted clusters x_s per record.
    """
    units, expansion, variance = sample.units, sample.expansion, sample.expansion
    columns = (units.column(c)[expansion.unit, None] for c in (RECORDS, ENTITIES, PREDICTED_CLUSTERS))
    (size, counted, clusters), N = columns, units.total(RECORDS)
    a = expansion.weight[:, None] * size / (expansion.weight @ size)
    d = N * a * (counted - clusters) / size
    drawn = np.unique(expansion.unit)
    least = units.column(ENTITIES)[drawn].sum()  # those drawn, and at most each record of the others
    ends = np.array([least, N - units.size[drawn].sum() + least])
    K = np.clip(units.total(PREDICTED_CLUSTERS) + d.sum(axis=0), *ends)
    moved = variance.residuals(d - a * d.sum(axis=0))
    counting = fit_sample(sample, entities)
    plain, cov = counting.estimates, variance.covariance(moved)
    moves = Moves.of(
        d,
        a,
        lambda both: variance.covariance(variance.residuals(both)),
        variance=cov[0],
        reach=np.full((1, 2), HALF * N),
        effective=plain.unseen.effective,
        fpc=counting.unseen_shares,
        df=plain.df,
    )
    number = replace(plain, mean=K, cov=cov, moves=moves).part([0] * len(metrics))
    is_size = np.array([metric == mean_cluster_size for metric in metrics])
    slope, certain = np.where(is_size, -N / K**2, 1.0), np.where(is_size[:, None], N / ends[::-1], ends)
    settled = np.broadcast_to(round_outward(certain), (len(metrics), 2))
    fit = replace(
        number,
        mean=np.where(is_size, N / K, K),
        cov=np.outer(slope, slope) * cov,
        support=tuple(COUNTED[size].support for size in is_size.astype(int)),
        unseen=replace(number.unseen, certain=settled),
        moves=replace(number.moves, over=np.where(is_size, N, np.nan)),
    )
    return fit, moved * slope
