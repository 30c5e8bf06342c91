"""The closed form: metrics of totals by Taylor linearisation, with the covariance of the design.

Source: Binette et al. (2022), arXiv 2210.01230.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._internal.arrays import Seed
from ..design.sample import Sample
from ..metrics.definitions import Metric
from ..metrics.estimates import Estimates, stacked
from .fitted import fit_sample


def paired_taylor(samples: Sequence[Sample], metrics: Sequence[Metric], order: int = 2) -> Estimates:
    """Return metrics of all samples in order, with covariances from the shared draws."""
    fits = [fit_sample(sample, metrics) for sample in samples]
    effects = np.hstack([fit.effects for fit in fits])
    cov = samples[0].expansion.covariance(effects)
    return stacked([fit.estimates if order > 1 else fit.plain for fit in fits], cov)


@dataclass(frozen=True, slots=True)
class Taylor:
    """The closed form: an engine of bias-corrected estimates with linearised standard errors.

    Parameters
    ----------
    order : int
        2 for estimates corrected for bias, 1 for plain ones.
    """

    batched: ClassVar[bool] = True
    order: int = 2

    def __call__(self, sample: Sample, metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
        fit = fit_sample(sample, metrics)
        return fit.estimates if self.order > 1 else fit.plain

    def paired(self, samples: Sequence[Sample], metrics: Sequence[Metric], rng: Seed = None) -> Estimates:
        """As `Paired.paired`, with bias-corrected estimates."""
        return paired_taylor(samples, metrics)
