"""Drawing: which records of a prediction to label, and the design to estimate by afterwards.

drawn = draw(prediction, LinkEnds(), n=200, seed=1)
estimate(prediction, labels, drawn.design(labels))
"""

from .drawn import Drawn, draw
from .plans import (
    PLANS,
    GivenChances,
    LinkEnds,
    Mixture,
    Plan,
    Poisson,
    PredictedClusters,
    Records,
    RootSize,
    Strata,
    Systematic,
)
from .source import InMemory, Source

__all__ = [
    "PLANS",
    "Drawn",
    "GivenChances",
    "InMemory",
    "LinkEnds",
    "Mixture",
    "Plan",
    "Poisson",
    "PredictedClusters",
    "Records",
    "RootSize",
    "Source",
    "Strata",
    "Systematic",
    "draw",
]
