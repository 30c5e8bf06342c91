"""The closed form of the front door, in which the known number of predicted clusters helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._internal.arrays import Seed
from .._internal.errors import DataError
from ..design.calibration import Calibrated, CalibratedDraws
from ..design.contract import Expansion
from ..design.sample import Sample
from ..metrics.columns import PREDICTED_CLUSTERS, RECORDS
from ..metrics.definitions import Metric, entities, hill1, mean_cluster_size, singleton_share
from ..metrics.uncertain import Normal, stacked
from ..units.units import Units
from .closed_form import effects, paired_taylor, taylor

HELPED = (entities, mean_cluster_size, singleton_share, hill1)
"""Metrics of the truth alone that the known number of predicted clusters helps (benchmarks/impact.md)."""


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """The closed form, with weights calibrated to clusters for `HELPED` if that lowers the error."""

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Normal:
        found, variance = taylor(sample, metrics).apply(metrics), sample.expansion.variance
        at = [j for j, metric in enumerate(metrics) if metric in HELPED and not found.reasons[j]]
        if not at or not sample.units.by_entity or sample.units.population is None or variance.census:
            return found
        helped = [metrics[j] for j in at]
        try:
            design = Calibrated(_Drawn(sample.expansion), lambda *_: (RECORDS, PREDICTED_CLUSTERS))
            calibrated = Sample(sample.units, sample.design, design.expand(sample.units))
            better = taylor(calibrated, helped).apply(helped)
        except DataError:  # too few draws carry the number of clusters
            return found
        parts, own = effects(calibrated, helped), calibrated.expansion.variance
        while isinstance(own, CalibratedDraws) and own is not variance:
            own = own.base
            parts = own.residuals(parts)
        cov, k = variance.covariance(np.hstack([effects(sample, metrics), parts])), len(metrics)
        cov[:k, :k], cov[k:, k:] = found.cov, better.cov  # without the rounding of another order
        take = np.arange(k)
        take[at] = np.where(better.sd < found.sd[at], k + np.arange(len(at)), at)
        return stacked([found, better], cov).part(take.tolist())

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> Normal:
        """As `Paired.paired`, by `Taylor`."""
        return paired_taylor(samples, metrics)


@dataclass(frozen=True, slots=True, eq=False)
class _Drawn:
    """A design whose draws are there already."""

    expansion: Expansion

    def expand(self, units: Units) -> Expansion:
        return self.expansion
