"""Metrics of the labelled records alone: a warning, not an estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ..arrays import Seed
from ..design import UniformClusters
from ..errors import NotIdentified
from ..metrics import USUAL, Metric, Wanted, chosen, pairwise_precision, pairwise_recall
from ..sample import Sample, need_sample
from ..uncertain import Normal
from ..units import Units, need_units
from .closed_form import taylor


def naive(units: Units, metrics: Wanted = USUAL) -> pd.Series:
    """Metrics of the prediction restricted to the labelled records: a warning, not an estimate.

    False links to records outside the sample are not seen, so that precision looks far too good
    (P_naive and R_naive of Binette et al. 2022). No standard error would be honest, so none is
    given.

    Raises
    ------
    NotIdentified
        Sampled predicted clusters, which the paper's naive estimators do not know.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "a", 4: "a"}, {1: "x", 2: "x"})
    >>> P_naive(units)
    1.0
    >>> P = [eb.metrics.pairwise_precision]
    >>> round(float(eb.taylor(eb.Sample(units, eb.UniformClusters()), P).apply(P).mean[0]), 3)
    0.333
    """
    found = _census(units, chosen(metrics))
    return pd.Series(found.mean, pd.Index(found.names, name="metric"), name="naive")


def P_naive(units: Units) -> float:
    """The paper's P_naive: see `naive`."""
    return float(naive(units, [pairwise_precision]).iloc[0])


def R_naive(units: Units) -> float:
    """The paper's R_naive: see `naive`."""
    return float(naive(units, [pairwise_recall]).iloc[0])


def _census(units: Units, metrics: Sequence[Metric]) -> Normal:
    """The metrics as if the labelled records were all that there are."""
    need_units(units)
    if not units.by_entity:
        raise NotIdentified("naive metrics are those of labelled entities, not of predicted clusters")
    census = Sample(units.alone(), UniformClusters(population=len(units)))
    return taylor(census, metrics).apply(metrics, order=1)


@dataclass(frozen=True, slots=True)
class Naive:
    """Metrics of the labelled records alone (see `naive`), without a standard error."""

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Normal:
        need_sample(sample)
        found = _census(sample.units, metrics)
        return replace(found, cov=np.full_like(found.cov, np.nan))
