"""The closed form of the front door, in which the known number of predicted clusters helps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import block_diag

from .._internal.arrays import FloatArray, Seed
from .._internal.errors import DataError
from ..design.calibration import Calibrated, CalibratedDraws
from ..design.contract import Expansion
from ..design.sample import Sample
from ..metrics.columns import ENTITIES, PREDICTED_CLUSTERS, RECORDS
from ..metrics.definitions import Metric, entities, hill1, mean_cluster_size, singleton_share
from ..metrics.moves import Moves
from ..metrics.uncertain import Normal, stacked
from ..units.units import Units
from .fitted import fit_sample

COUNTED = (entities, mean_cluster_size)
HELPED = (singleton_share, hill1)
"""Other metrics of the truth alone that the number of predicted clusters helps (benchmarks/impact.md)."""
HALF = 0.5
"""Entities by which a record of an unseen draw may have more, or fewer, than its predicted clusters."""
Better = tuple[list[int], Normal, FloatArray]
"""Positions of components, a fit that takes their place, and what each draw moves it by, (n, k)."""


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """The closed form, in which the known number of predicted clusters improves `COUNTED` and `HELPED`."""

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Normal:
        found, better = _estimate_both(sample, metrics)
        return put_in_place(found, fit_sample(sample, metrics).effects, better, sample) if better else found

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> Normal:
        """As `Paired.paired`."""
        fits, parts = list[Normal](), list[FloatArray]()
        for sample in samples:
            found, better = _estimate_both(sample, metrics)
            moved = fit_sample(sample, metrics).effects.copy()
            fits.append(put_in_place(found, moved, better, sample) if better else found)
            for at, _, moved_by in better:
                moved[:, at] = moved_by
            parts.append(moved)
        return stacked(fits, samples[0].expansion.variance.covariance(np.hstack(parts)))


def _estimate_both(sample: Sample, metrics: Sequence[Metric]) -> tuple[Normal, list[Better]]:
    """Return metrics by totals alone, and better fits of some."""
    found = fit_sample(sample, metrics).estimates
    reasons = found.reasons
    sound = {j: metric for j, metric in enumerate(metrics) if not reasons[j]}
    return found, list(find_better(sample, found, sound))


def find_better(sample: Sample, found: Normal, metrics: Mapping[int, Metric | None]) -> Iterator[Better]:
    """Return better fits for some components of `found`, which are these metrics, or None for another one."""
    units, variance = sample.units, sample.expansion.variance
    if not units.by_entity or units.population is None or variance.census:
        return
    if at := [j for j, metric in metrics.items() if metric in COUNTED]:
        yield at, *_count_entities(sample, [metrics[j] for j in at])
    helped = [j for j, metric in metrics.items() if metric in HELPED]
    with suppress(DataError):  # too few draws carry the number of clusters
        if helped:
            fit, moved = _calibrate(sample, [metric for metric in metrics.values() if metric in HELPED])
            lower = np.flatnonzero(fit.sd < found.sd[helped]).tolist()
            if lower:
                yield [helped[i] for i in lower], fit.part(lower), moved[:, lower]


def put_in_place(found: Normal, moved: FloatArray, better: Sequence[Better], sample: Sample) -> Normal:
    """Return a fit, which draws move by `moved`, (n, k), with better ones in the place of components."""
    fits, parts, take = [found], [moved], np.arange(len(found.names))
    for at, fit, moved_by in better:
        take[at] = sum(len(f.names) for f in fits) + np.arange(len(at))
        fits.append(fit)
        parts.append(moved_by)
    joint = sample.expansion.variance.covariance(np.hstack(parts))
    # those within a fit are there already, without the rounding of another order
    within = block_diag(*(np.ones_like(fit.cov) for fit in fits)) > 0
    cov = np.where(within, block_diag(*(fit.cov for fit in fits)), joint)
    return replace(stacked(fits, cov).part(take.tolist()), names=found.names)


def _count_entities(sample: Sample, metrics: Sequence[Metric | None]) -> tuple[Normal, FloatArray]:
    """Return the number of entities K, or the mean size N/K, and what each draw moves them by, (n, k).

    K is the known number of predicted clusters, plus gains, less losses N a_s (v_s - x_s) of draws, for the
    share a_s of a draw in the records, and its entities v_s and predicted clusters x_s per record.
    """
    units, expansion, variance = sample.units, sample.expansion, sample.expansion.variance
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
    fit = replace(
        number,
        mean=np.where(is_size, N / K, K),
        cov=np.outer(slope, slope) * cov,
        support=tuple(COUNTED[size].support for size in is_size.astype(int)),
        moves=replace(number.moves, over=np.where(is_size, N, np.nan), certain=certain),
    )
    return fit, moved * slope


def _calibrate(sample: Sample, metrics: Sequence[Metric]) -> tuple[Normal, FloatArray]:
    """Return metrics with weights calibrated to the number of clusters, and what draws move them by."""
    design = Calibrated(_Drawn(sample.expansion), lambda *_: (RECORDS, PREDICTED_CLUSTERS))
    calibrated = Sample(sample.units, sample.design, design.expand(sample.units))
    fit, own = fit_sample(calibrated, metrics), calibrated.expansion.variance
    moved = fit.effects
    while isinstance(own, CalibratedDraws) and own is not sample.expansion.variance:
        own = own.base
        moved = own.residuals(moved)
    return fit.estimates, moved


@dataclass(frozen=True, slots=True, eq=False)
class _Drawn:
    """A design whose draws are there already."""

    expansion: Expansion

    def expand(self, units: Units) -> Expansion:
        return self.expansion
