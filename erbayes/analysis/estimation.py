"""Estimates from memberships in one call."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._internal.errors import Alarm, DataError
from ..design import Design, Expansion
from ..design.calibration import Calibrated, CalibratedDraws
from ..design.sample import Sample
from ..engine.closed_form import effects, stacked, taylor
from ..engine.diagnostics import alarms
from ..large import lies_elsewhere, scan
from ..metrics.columns import PREDICTED_CLUSTERS, RECORDS
from ..metrics.definitions import (
    USUAL,
    Metric,
    Wanted,
    chosen,
    entities,
    hill1,
    mean_cluster_size,
    singleton_share,
)
from ..metrics.uncertain import Normal
from ..units.measuring import Missing, measure
from ..units.units import Units

HELPED = (entities, mean_cluster_size, singleton_share, hill1)
"""Metrics of the truth alone that the known number of predicted clusters helps (benchmarks/impact.md)."""


def estimate(
    prediction: Any,
    labels: Any,
    design: Design,
    metrics: Wanted = USUAL,
    *,
    blocks: Any = None,
    missing: Missing = Missing.ERROR,
    frame: Any = None,
) -> Normal:
    """Estimate metrics of a prediction from a labelled sample.

    Parameters
    ----------
    prediction : memberships, or files and tables
        As in `erbayes.measure`. Files and tables are those of `erbayes.large.scan` with two columns.
    labels, blocks, missing, frame
        As in `erbayes.measure`.
    design : Design
        How the labelled units were drawn.
    metrics : Metric or str, or several
        Objects of `erbayes.metrics`, or names as tables print them.

    Returns
    -------
    Normal
        The metrics, jointly. `.table()` returns estimates, standard errors and intervals.

    Warns
    -----
    Alarm
        For each sentence of `alarms`.

    Raises
    ------
    DataError
        If the memberships, the design or the metrics cannot be used.
    NotIdentified
        If the sample cannot estimate a metric.

    Examples
    --------
    >>> from erbayes import UniformClusters
    >>> prediction = {1: "a", 2: "a", 3: "b", 4: "b", 5: "b"}
    >>> labels = {1: "x", 2: "x", 3: "x", 4: "y", 5: "y"}
    >>> estimates = estimate(prediction, labels, UniformClusters(population=2),
    ...                      ["pairwise-precision", "pairwise-recall"])
    >>> estimates.table()[["estimate", "se"]]
                        estimate   se
    metric
    pairwise-precision       0.5  0.0
    pairwise-recall          0.5  0.0
    """
    metrics = chosen(metrics)
    count = scan if lies_elsewhere(prediction) else measure
    sample = Sample(count(prediction, labels, blocks=blocks, missing=missing, frame=frame), design)
    for alarm in alarms(sample, metrics):
        warnings.warn(alarm, Alarm, stacklevel=2)
    return estimate_sample(sample, metrics)


@dataclass(frozen=True, slots=True, eq=False)
class _Drawn:
    """A design whose draws are there already."""

    expansion: Expansion

    def expand(self, units: Units) -> Expansion:
        return self.expansion


def estimate_sample(sample: Sample, metrics: Sequence[Metric]) -> Normal:
    """Estimate metrics in the closed form, and those of the truth alone with the known number of clusters.

    A sample with too many predicted clusters has too many entities as well. For the metrics `HELPED`, weights
    are therefore calibrated to the records and clusters of the prediction, if that lowers the
    standard error and `Calibrated` does not refuse the sample.

    Parameters
    ----------
    sample : Sample
    metrics : sequence of Metric

    Returns
    -------
    Normal
        The metrics, jointly.
    """
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
