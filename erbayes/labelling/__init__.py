"""What is assumed and seen of annotators: their errors, two of them side by side, sheets, stars.

An annotator starts from the predicted cluster of a sampled mention (*home*), removes wrong records from it,
and searches elsewhere for missing ones. Two errors: records elsewhere that are *missed*, and foreign records
that are *kept*. Both flatter the prediction.
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
from .pairs import PER_LINK, Pair, anchoring, answers
from .rates import Beta, Rate, Recaptured, drawn
from .sheets import Problem, Sheet, SheetColumns, read_sheet
from .stars import Flaw, Stars, read_stars

__all__ = [
    "PER_LINK",
    "Annotator",
    "Beta",
    "Flaw",
    "KeptRecords",
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
    "anchoring",
    "answers",
    "drawn",
    "mislabel",
    "perturb",
    "read_sheet",
    "read_stars",
    "restore",
    "sampled_mention",
]
