"""Drawing: which records of a prediction to label, and the design to estimate by afterwards.

drawn = draw(prediction, LinkEnds(), n=200, seed=1)
estimate(prediction, labels, drawn.design(labels))
"""

from .drawn import Drawn, draw
from .folder import Folder, read_folder, write_folder
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
from .tasks import dealt, tasks

__all__ = [
    "PLANS",
    "Drawn",
    "Folder",
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
    "dealt",
    "draw",
    "labelling_page",
    "read_answers",
    "read_folder",
    "tasks",
    "write_folder",
]
