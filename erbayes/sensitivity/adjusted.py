"""Engines about errors of labelling: one that puts errors into a sample, and those that undo them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..arrays import Seed, generator
from ..engine.bootstrap import Resampled
from ..engine.closed_form import Taylor
from ..engine.contract import Engine
from ..engine.schemes import PseudoDraws
from ..labelling import Annotator, Rate, mislabel
from ..metrics import Metric
from ..sample import Sample, need_sample
from ..uncertain import Draws, Normal
from .adjustments import Adjustment
from .bias import bias_analysis, restored_analysis


@dataclass(frozen=True, slots=True)
class Mislabelled:
    """Another engine on a sample with the errors of an annotator.

    Parameters
    ----------
    model : Annotator
        Rates with priors are drawn anew for each sample.
    engine : Engine
    """

    model: Annotator
    engine: Engine

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Normal | Draws:
        need_sample(sample)
        rng = generator(rng)
        return self.engine(Sample(mislabel(sample.units, self.model, rng), sample.design), metrics, rng)


@dataclass(frozen=True, slots=True)
class Adjusted:
    """Another engine on the sample without errors of stated shares.

    Parameters
    ----------
    adjust : Adjustment
    u, v : float
        Shares missed and kept.
    engine : Engine
    """

    adjust: Adjustment
    u: float
    v: float
    engine: Engine = field(default_factory=Taylor)

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Normal | Draws:
        need_sample(sample)
        rng = generator(rng)
        asked = self.adjust(sample, metrics, self.u, self.v, rng)
        return averaged([self.engine(truth, given, rng) for truth, given in asked])


def averaged(results: Sequence[Normal | Draws]) -> Normal | Draws:
    """The average of results of one engine: of moments, or all draws together."""
    first, *others = results
    if not others:
        return first

    def mean(part: str) -> Any:
        return np.mean([getattr(found, part) for found in results], axis=0)

    if isinstance(first, Normal):
        parts = {p: mean(p) for p in ("mean", "cov", "df", "draws")}
        return replace(first, **parts, extremes=mean("reach"))
    values = np.concatenate([found.flat for found in results if isinstance(found, Draws)])
    return Draws(first.names, values[None], first.support, mean("estimate"))


@dataclass(frozen=True, slots=True)
class BiasAdjusted:
    """`bias_analysis` with any engine.

    Parameters
    ----------
    missed, kept : float or Rate
    engine : Engine
    imputations, draws : int
    """

    missed: float | Rate
    kept: float | Rate
    engine: Engine = field(default_factory=Taylor)
    imputations: int = 200
    draws: int = 10

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Draws:
        found = bias_analysis(
            sample,
            self.missed,
            self.kept,
            metrics,
            engine=self.engine,
            imputations=self.imputations,
            draws=self.draws,
            rng=rng,
            progress=False,
        )
        return found.adjusted


@dataclass(frozen=True, slots=True)
class RestoredAdjusted:
    """`restored_analysis` with any engine.

    Parameters
    ----------
    model : Annotator
    engine : Engine
    imputations, draws : int
    """

    model: Annotator
    engine: Engine = field(default_factory=lambda: Resampled(PseudoDraws(), 100))
    imputations: int = 200
    draws: int = 10

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Draws:
        found = restored_analysis(
            sample,
            self.model,
            metrics,
            engine=self.engine,
            imputations=self.imputations,
            draws=self.draws,
            rng=rng,
            progress=False,
        )
        return found.adjusted
