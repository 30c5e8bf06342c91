"""Engines for errors of labelling: one puts errors into a sample, the others undo them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._internal.arrays import Seed, generator
from ...design.sample import Sample, need_sample
from ...engine.closed_form import Taylor
from ...engine.contract import Engine
from ...engine.replicates import Resampled
from ...engine.schemes import PseudoDraws
from ...labels import Annotator, Rate, mislabel
from ...metrics.definitions import Metric
from ...metrics.uncertain import Draws, Normal
from .adjustments import Adjustment
from .bias import bias_analysis, restored_analysis


@dataclass(frozen=True, slots=True)
class Mislabelled:
    """An engine that estimates from a sample with simulated errors of an annotator, for studies.

    Parameters
    ----------
    model : Annotator
        Rates with priors are drawn anew for each sample.
    engine : Engine
        The engine that estimates from the changed sample.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes.labels import MissedRecords
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "c"}, {1: "x", 2: "x", 3: "x", 4: "y"})
    >>> careless = Mislabelled(Annotator(MissedRecords(1.0)), Taylor())
    >>> result = careless(eb.Sample(units, eb.UniformClusters()), [eb.metrics.pairwise_recall], rng=1)
    >>> round(float(result.estimate[0]), 3)  # the truth is 1/3
    1.0
    """

    model: Annotator
    engine: Engine

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Normal | Draws:
        need_sample(sample)
        rng = generator(rng)
        return self.engine(Sample(mislabel(sample.units, self.model, rng), sample.design), metrics, rng)


@dataclass(frozen=True, slots=True)
class Adjusted:
    """An engine that estimates as if labelling errors of stated shares were undone.

    Parameters
    ----------
    adjust : Adjustment
        How errors are undone: `Corrected()` or `Restored()`.
    u, v : float in [0, 1)
        Shares missed and kept.
    engine : Engine
        `Taylor()` by default.

    Raises
    ------
    NotIdentified
        The adjustment cannot undo errors of these shares.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes.analysis.sensitivity import Corrected
    >>> units = eb.measure({i: i // 3 for i in range(24)}, {i: i // 4 for i in range(12)})
    >>> sample = eb.Sample(units, eb.UniformRecords())
    >>> Adjusted(Corrected(), 0.2, 0.0)(sample, [eb.metrics.pairwise_recall]).estimate.round(2)
    array([0.39])
    """

    adjust: Adjustment
    u: float
    v: float
    engine: Engine = field(default_factory=Taylor)

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Normal | Draws:
        need_sample(sample)
        rng = generator(rng)
        adjusted = self.adjust(sample, metrics, self.u, self.v, rng)
        return averaged([self.engine(*sample_and_metrics, rng) for sample_and_metrics in adjusted])


def averaged(results: Sequence[Normal | Draws]) -> Normal | Draws:
    """Return the average of several results of an engine: of moments of `Normal`, or all draws of `Draws`."""
    first, *others = results
    if not others:
        return first

    def mean(part: str) -> Any:
        return np.mean([getattr(result, part) for result in results], axis=0)

    if isinstance(first, Normal):
        parts = {p: mean(p) for p in ("mean", "cov", "df", "effective")}
        return replace(first, **parts, extremes=mean("reach"))
    values = np.concatenate([result.flat for result in results if isinstance(result, Draws)])
    return Draws(first.names, values[None], first.support, mean("estimate"))


@dataclass(frozen=True, slots=True)
class BiasAdjusted:
    """`bias_analysis` as an engine, for studies and comparisons of engines.

    Parameters
    ----------
    missed, kept : float in [0, 1) or Rate
        Shares u and v.
    engine : Engine
        `Taylor()` by default.
    imputations, draws : int
        Pairs of rates, and draws for each pair; 1 or more.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({i: i // 3 for i in range(240)}, {i: i // 4 for i in range(120)})
    >>> sample = eb.Sample(units, eb.UniformRecords())
    >>> BiasAdjusted(0.2, 0.0)(sample, [eb.metrics.pairwise_recall], rng=1).estimate.round(2)
    array([0.39])
    """

    missed: float | Rate
    kept: float | Rate
    engine: Engine = field(default_factory=Taylor)
    imputations: int = 200
    draws: int = 10

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Draws:
        return bias_analysis(
            sample,
            self.missed,
            self.kept,
            metrics,
            engine=self.engine,
            imputations=self.imputations,
            draws=self.draws,
            rng=rng,
            progress=False,
        ).adjusted


@dataclass(frozen=True, slots=True)
class RestoredAdjusted:
    """`restored_analysis` as an engine, for studies and comparisons of engines.

    Parameters
    ----------
    model : Annotator
        How annotators err, with priors on the rates.
    engine : Engine
        `Resampled(PseudoDraws(), 100)` by default.
    imputations, draws : int
        Restored samples, and draws for each; 1 or more.

    Examples
    --------
    >>> import erbayes as eb
    >>> from erbayes.labels import MissedRecords
    >>> units = eb.measure({i: i // 3 for i in range(240)}, {i: i // 4 for i in range(120)})
    >>> sample, metrics = eb.Sample(units, eb.UniformRecords()), [eb.metrics.pairwise_recall]
    >>> adjusted = RestoredAdjusted(Annotator(MissedRecords(0.2)), Taylor(), imputations=5)
    >>> adjusted(sample, metrics, rng=1).values.shape
    (1, 50, 1)
    """

    model: Annotator
    engine: Engine = field(default_factory=lambda: Resampled(PseudoDraws(), 100))
    imputations: int = 200
    draws: int = 10

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Draws:
        return restored_analysis(
            sample,
            self.model,
            metrics,
            engine=self.engine,
            imputations=self.imputations,
            draws=self.draws,
            rng=rng,
            progress=False,
        ).adjusted
