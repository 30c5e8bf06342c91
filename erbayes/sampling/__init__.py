"""Drawing: which records of a prediction to label, the design to estimate by afterwards, and when to stop.

drawn = draw(prediction, LinkEnds(), n=200, seed=1)
sample = Sample(measure(prediction, labels), drawn.design(labels))
check(sample, {"pairwise-precision": 0.95}).verdict
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
from .stopping import ONCE, REPEATED, Check, Rule, Verdict, check
from .unresolved import worst_cases

__all__ = [
    "ONCE",
    "PLANS",
    "REPEATED",
    "Check",
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
    "Rule",
    "Source",
    "Strata",
    "Systematic",
    "Verdict",
    "check",
    "draw",
    "worst_cases",
]
