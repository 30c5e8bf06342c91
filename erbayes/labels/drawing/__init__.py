"""Drawing: which records of a prediction to label, the design to estimate by afterwards, and when to stop.

drawn = draw(prediction, LinkEnds(), n=200, seed=1)
sample = Sample(measure(prediction, labels), drawn.design(labels))
check(sample, {"pairwise-precision": 0.95}).verdict
"""

from .candidates import by_text, candidate_counts, from_clustering, from_pairs, interleaved
from .drawn import Drawn, draw
from .folder import Folder, read_folder, write_folder
from .labelling_tasks import dealt, tasks
from .page import labelling_page, read_answers
from .plans import (
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
    "REPEATED",
    "Check",
    "Drawn",
    "Folder",
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
    "by_text",
    "candidate_counts",
    "check",
    "dealt",
    "draw",
    "from_clustering",
    "from_pairs",
    "interleaved",
    "labelling_page",
    "read_answers",
    "read_folder",
    "tasks",
    "worst_cases",
    "write_folder",
]
