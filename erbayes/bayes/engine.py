"""The fast fit as an engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..arrays import Seed
from ..metrics import Metric, pairwise_recall
from ..sample import Sample
from ..uncertain import Draws
from .fit import Fit, fast
from .model import SizeModel


@dataclass(frozen=True, slots=True)
class Modelled:
    """Engine that fits a size model by importance sampling (see `fast`).

    Parameters
    ----------
    model : SizeModel
    draws : int
        Posterior draws, 50 or more.

    Examples
    --------
    >>> from erbayes.bayes import Modelled, SizeModel, Zeta
    >>> Modelled(SizeModel(Zeta()), draws=500).draws
    500
    """

    model: SizeModel = field(default_factory=SizeModel)
    draws: int = 1000

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Draws:
        """Return posterior draws of metrics, (1, draws, k)."""
        return self.fitted(sample, rng).apply(metrics)

    def fitted(self, sample: Sample, rng: Seed = None) -> Fit:
        """Return the fit of a sample."""
        return fast(sample, self.model, draws=self.draws, rng=rng)

    def alarms(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> list[str]:
        """Return the alarms of the fit of these draws (see `Fit.alarms`) if recall is among the metrics."""
        return self.fitted(sample, rng).alarms if pairwise_recall in metrics else []
