"""The fast fit as an engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..arrays import Seed
from ..metrics import Metric
from ..sample import Sample
from ..uncertain import Draws
from .fit import fast
from .model import SizeModel


@dataclass(frozen=True, slots=True)
class Modelled:
    """A size model by the fast fit.

    Parameters
    ----------
    model : SizeModel
    draws : int
    """

    model: SizeModel = field(default_factory=SizeModel)
    draws: int = 1000

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Draws:
        return fast(sample, self.model, draws=self.draws, rng=rng).apply(metrics)
