"""Naive metrics: those of the labelled records alone, which flatter the prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from .._internal.arrays import Seed
from .._internal.errors import NotIdentified
from ..design import UniformClusters
from ..design.sample import Sample, need_sample
from ..metrics.definitions import DEFAULT_METRICS, Metric, MetricLike, pairwise_precision, resolve_metrics
from ..metrics.estimates import Estimates
from ..units.units import Units, need_units
from .fitted import fit_sample


def naive(units: Units, metrics: MetricLike = DEFAULT_METRICS) -> pd.Series:
    """Compute metrics on the labelled records alone, as a Series by their names: a warning, no estimate.

    Wrong links to records outside the sample are missed, so that precision is far too high. These are P_naive
    and R_naive of Binette et al. (2022) for any metric. There is no standard error, since none would be
    honest.

    Raises
    ------
    NotIdentified
        If the units are predicted clusters, for which the paper has no naive estimators.

    See Also
    --------
    erbayes.estimate : the metrics of all records.

    References
    ----------
    Binette et al. (2022), arXiv 2210.01230, section 2.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "a", 4: "a"}, {1: "x", 2: "x"})
    >>> P_naive(units)
    1.0
    >>> P = [eb.metrics.pairwise_precision]
    >>> round(float(eb.engine.taylor(eb.Sample(units, eb.UniformClusters()), P).apply(P).mean[0]), 3)
    0.333
    """
    census = _as_census(units, resolve_metrics(metrics))
    return pd.Series(census.mean, pd.Index(census.names, name="metric"), name="naive")


def P_naive(units: Units) -> float:
    """Compute pairwise precision on the labelled records alone, the paper's P_naive (see `naive`)."""
    return float(naive(units, [pairwise_precision]).iloc[0])


def _as_census(units: Units, metrics: Sequence[Metric]) -> Estimates:
    """Return the metrics of a census, as if the labelled records were the population."""
    need_units(units)
    if not units.by_entity:
        raise NotIdentified("naive metrics are those of labelled entities, not of predicted clusters")
    # the closed form of a census is the plain metric, so that no formula is written twice
    census = Sample(units.isolated(), UniformClusters(population=len(units)))
    return fit_sample(census, metrics).plain


@dataclass(frozen=True, slots=True)
class Naive:
    """An engine of naive metrics (see `naive`), without standard errors."""

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
        need_sample(sample)
        census = _as_census(sample.units, metrics)
        return replace(census, cov=np.full_like(census.cov, np.nan))
