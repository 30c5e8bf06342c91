"""The fast fit as an estimator of the study harness."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..metrics import Metric
from ..sample import Sample
from ..study import Estimates
from .fit import NotConverged, fast
from .model import SizeModel


@dataclass(frozen=True, slots=True)
class Modelled:
    """Posterior means and equal-tailed intervals of a size model, by the fast fit.

    Parameters
    ----------
    model : SizeModel
    draws : int
    counted : Counter
        "fits" made in this process and those "not converged", whose warnings are silenced.
    """

    model: SizeModel = field(default_factory=SizeModel)
    draws: int = 1000
    counted: Counter[str] = field(default_factory=Counter, repr=False, compare=False)

    def __call__(
        self, sample: Sample, metrics: Sequence[Metric], level: float, rng: np.random.Generator
    ) -> Estimates:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", NotConverged)
            fit = fast(sample, self.model, draws=self.draws, rng=rng)
        self.counted["fits"] += 1
        self.counted["not converged"] += any(issubclass(w.category, NotConverged) for w in told)
        found = fit.apply(metrics)
        return Estimates(found.mean, *found.interval(level).T)
