"""Restoration: an engine that undoes errors of labelling of stated shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..._internal.arrays import Seed, generator
from ...design.sample import Sample, need_sample
from ...engine.closed_form import Taylor
from ...engine.contract import Engine
from ...labels import Annotator, KeptRecords, MissedPieces
from ...labels.annotators.error_models import restore
from ...metrics.definitions import Metric
from ...metrics.uncertain import Draws, Normal


def by_pieces(u: float, v: float) -> Annotator:
    """Return an annotator who misses a share u of whole pieces and keeps v of single foreign records."""
    return Annotator(MissedPieces(u), KeptRecords(v))


@dataclass(frozen=True, slots=True)
class Restored:
    """The way to undo errors: true entities are drawn behind the labels, several times, by `model` (u, v)."""

    model: Callable[[float, float], Annotator] = by_pieces
    draws: int = 20

    def __call__(self, sample: Sample, u: float, v: float, rng: np.random.Generator) -> Iterator[Sample]:
        model = self.model(u, v)
        for _ in range(self.draws):
            yield Sample(restore(sample.units, model, rng), sample.design)


@dataclass(frozen=True, slots=True)
class Adjusted:
    """An engine that estimates as if labelling errors of stated shares were undone."""

    adjust: Restored
    u: float
    v: float
    engine: Engine = field(default_factory=Taylor)

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Normal | Draws:
        need_sample(sample)
        rng = generator(rng)
        restored = self.adjust(sample, self.u, self.v, rng)
        return averaged([self.engine(truth, metrics, rng) for truth in restored])


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
