"""Restoration: an engine that undoes errors of labelling of stated shares."""

from __future__ import annotations

from collections.abc import Sequence
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


@dataclass(frozen=True, slots=True)
class Restored:
    """An engine that estimates as if labelling errors were undone, by several draws of the true entities.

    `u`: share missed of whole pieces; `v`: share kept of single foreign records.
    """

    u: float
    v: float
    engine: Engine = field(default_factory=Taylor)
    draws: int = 20

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Normal | Draws:
        need_sample(sample)
        rng, model = generator(rng), Annotator(MissedPieces(self.u), KeptRecords(self.v))
        results = []
        for _ in range(self.draws):
            truth = Sample(restore(sample.units, model, rng), sample.design)
            results.append(self.engine(truth, metrics, rng))
        return averaged(results)


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
