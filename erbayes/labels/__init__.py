"""Annotators: models of their errors, comparisons of two of them, answers about pairs.

An annotator starts from *home*, the predicted cluster of a drawn record (the *sampled mention*).
There are two decisions: which records of home to remove, and which records elsewhere to add. Each has its
error: records elsewhere are *missed*, and foreign records in home are *kept*. Both flatter the prediction.
"""

from .annotators.agreement import PER_LINK
from .annotators.audit import Audit
from .annotators.error_models import (
    Annotator,
    KeptRecords,
    Missed,
    MissedPieces,
    MissedRecords,
    mislabel,
    perturb,
    restore,
    sampled_mention,
)
from .annotators.rates import Beta, Rate, Recaptured, drawn
from .annotators.two_annotators import Pair, anchoring, answers
from .drawing.candidates import by_text, candidate_counts, from_clustering, from_pairs, interleaved
from .drawing.drawn import Drawn, draw
from .drawing.folder import Folder, read_folder, write_folder
from .drawing.labelling_tasks import dealt, tasks
from .drawing.page import labelling_page, read_answers
from .drawing.plans import (
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
from .drawing.source import InMemory, Source
from .drawing.stopping import ONCE, REPEATED, Check, Rule, Verdict, check
from .drawing.unresolved import worst_cases
from .reading.answer_files import read_labels
from .reading.faults import HARMLESS, Fault, State
from .reading.machine import MachineLabels, machine_labels
from .reading.returned import Labels
from .reading.stars import Flaw, Stars, read_stars

__all__ = [
    "HARMLESS",
    "ONCE",
    "PER_LINK",
    "REPEATED",
    "Annotator",
    "Audit",
    "Beta",
    "Check",
    "Drawn",
    "Fault",
    "Flaw",
    "Folder",
    "GivenChances",
    "InMemory",
    "KeptRecords",
    "Labels",
    "LinkEnds",
    "MachineLabels",
    "Missed",
    "MissedPieces",
    "MissedRecords",
    "Mixture",
    "Pair",
    "Plan",
    "Poisson",
    "PredictedClusters",
    "Rate",
    "Recaptured",
    "Records",
    "RootSize",
    "Rule",
    "Source",
    "Stars",
    "State",
    "Strata",
    "Systematic",
    "Verdict",
    "anchoring",
    "answers",
    "by_text",
    "candidate_counts",
    "check",
    "dealt",
    "draw",
    "drawn",
    "from_clustering",
    "from_pairs",
    "interleaved",
    "labelling_page",
    "machine_labels",
    "mislabel",
    "perturb",
    "read_answers",
    "read_folder",
    "read_labels",
    "read_stars",
    "restore",
    "sampled_mention",
    "tasks",
    "worst_cases",
    "write_folder",
]
