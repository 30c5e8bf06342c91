"""How far an estimator can be trusted: repeated sampling from populations whose truth is known."""

from .harness import (
    DrawClusters,
    DrawDistinctClusters,
    DrawPoisson,
    DrawRecords,
    Plan,
    PoissonSamples,
    Samples,
    Study,
    study,
)

__all__ = [
    "DrawClusters",
    "DrawDistinctClusters",
    "DrawPoisson",
    "DrawRecords",
    "Plan",
    "PoissonSamples",
    "Samples",
    "Study",
    "study",
]
