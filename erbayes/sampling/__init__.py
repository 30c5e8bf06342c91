"""Drawing: which records of a prediction to label, and the design to estimate by afterwards.

drawn = draw(prediction, LinkEnds(), n=200, seed=1)
estimate(prediction, labels, drawn.design(labels))
"""

from .candidates import by_text, candidate_counts, from_clustering, from_pairs, interleaved
from .drawn import Drawn, draw
from .page import labelling_page, read_answers
from .plans import (
    PLANS,
    GivenChances,
    LinkEnds,
    Mixture,
    Plan,
    Poisson,
    Records,
    RootSize,
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
    "Records",
    "RootSize",
    "Source",
    "Systematic",
    "by_text",
    "candidate_counts",
    "draw",
    "from_clustering",
    "from_pairs",
    "interleaved",
    "labelling_page",
    "read_answers",
]
