"""Bias analyses as estimators of `erbayes.study`, and labels with errors put into a study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..labelling import Annotator, Rate, mislabel
from ..metrics import Metric
from ..sample import Sample
from ..study import Estimates, Estimator
from .bias import Analytic, Engine, bias_analysis
from .imputation import Bootstrapped, PlainEngine, restored_analysis


@dataclass(frozen=True, slots=True)
class Mislabelled:
    """Another estimator on what an annotator makes of the sample: errors put into a study.

    Parameters
    ----------
    model : Annotator
        Rates with priors are drawn anew for each sample.
    estimator : Estimator
    """

    model: Annotator
    estimator: Estimator

    def __call__(
        self, sample: Sample, metrics: Sequence[Metric], level: float, rng: np.random.Generator
    ) -> Estimates:
        seen = Sample(mislabel(sample.units, self.model, rng), sample.design)
        return self.estimator(seen, metrics, level, rng)


@dataclass(frozen=True, slots=True)
class BiasAdjusted:
    """Medians and intervals of a bias analysis.

    Parameters
    ----------
    missed, kept : float or Rate
    engine : Engine
    draws : int
    """

    missed: float | Rate
    kept: float | Rate
    engine: Engine = field(default_factory=Analytic)
    draws: int = 1000

    def __call__(
        self, sample: Sample, metrics: Sequence[Metric], level: float, rng: np.random.Generator
    ) -> Estimates:
        found = bias_analysis(
            sample, self.missed, self.kept, metrics, engine=self.engine, draws=self.draws, rng=rng
        ).adjusted
        return Estimates(np.median(found.flat, axis=0), *found.interval(level).T)


@dataclass(frozen=True, slots=True)
class RestoredAdjusted:
    """Medians and intervals of a restored analysis.

    Parameters
    ----------
    model : Annotator
    engine : PlainEngine
    imputations, draws : int
    """

    model: Annotator
    engine: PlainEngine = field(default_factory=Bootstrapped)
    imputations: int = 200
    draws: int = 10

    def __call__(
        self, sample: Sample, metrics: Sequence[Metric], level: float, rng: np.random.Generator
    ) -> Estimates:
        found = restored_analysis(
            sample,
            self.model,
            metrics,
            engine=self.engine,
            imputations=self.imputations,
            draws=self.draws,
            rng=rng,
            progress=False,
        ).adjusted
        return Estimates(np.median(found.flat, axis=0), *found.interval(level).T)
