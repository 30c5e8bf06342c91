"""Annotators: models of their errors, comparisons of two of them, labelling sheets, answers about pairs.

An annotator starts from *home*, the predicted cluster of a drawn record (the *sampled mention*).
There are two decisions: which records of home to remove, and which records elsewhere to add. Each has its
error: records elsewhere are *missed*, and foreign records in home are *kept*. Both flatter the prediction.
"""

from .errors import (
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
from .machine import MachineLabels, machine_labels
from .pairs import PER_LINK, Audit, Pair, anchoring, answers
from .rates import Beta, Rate, Recaptured, drawn
from .reading import read_labels
from .returned import HARMLESS, Fault, Labels, State
from .sheets import Problem, Sheet, SheetColumns, read_sheet
from .stars import Flaw, Stars, read_stars

__all__ = [
    "HARMLESS",
    "PER_LINK",
    "Annotator",
    "Audit",
    "Beta",
    "Fault",
    "Flaw",
    "KeptRecords",
    "Labels",
    "MachineLabels",
    "Missed",
    "MissedPieces",
    "MissedRecords",
    "Pair",
    "Problem",
    "Rate",
    "Recaptured",
    "Sheet",
    "SheetColumns",
    "Stars",
    "State",
    "anchoring",
    "answers",
    "drawn",
    "machine_labels",
    "mislabel",
    "perturb",
    "read_labels",
    "read_sheet",
    "read_stars",
    "restore",
    "sampled_mention",
]
