"""Annotators: models of their errors, comparisons of two of them, answers about pairs.

An annotator opens predicted clusters, *home* of a drawn record and others, and decides about each record in
them. True records are *removed*, other clusters *missed*, foreign records *kept* and namesakes *added*.
"""

from .annotators import Annotator, AnnotatorPair, Beta, Gamma, answers
from .candidates import by_text, from_clustering, from_pairs, interleaved
from .decisions import mislabel
from .drawn import RecordDraws, draw
from .folder import write_folder
from .labelling_tasks import tasks
from .page import labelling_page, read_answers
from .plans import GivenProbabilities, LinkEnds, Multipurpose, PredictedClusters, Records, Strata
from .returned import Labels, read_labels
from .stars import machine_labels, read_stars
from .stopping import ONCE, REPEATED, Rule, check

__all__ = [
    "ONCE",
    "REPEATED",
    "Annotator",
    "AnnotatorPair",
    "Beta",
    "Gamma",
    "GivenProbabilities",
    "Labels",
    "LinkEnds",
    "Multipurpose",
    "PredictedClusters",
    "RecordDraws",
    "Records",
    "Rule",
    "Strata",
    "answers",
    "by_text",
    "check",
    "draw",
    "from_clustering",
    "from_pairs",
    "interleaved",
    "labelling_page",
    "machine_labels",
    "mislabel",
    "read_answers",
    "read_labels",
    "read_stars",
    "tasks",
    "write_folder",
]
