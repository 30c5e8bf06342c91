"""Annotators: models of their errors, comparisons of two of them, answers about pairs.

An annotator opens predicted clusters, *home* of a drawn record and others, and decides about each record in
them. True records are *removed*, other clusters *missed*, foreign records *kept* and namesakes *added*.
"""

from .annotators.annotator import Annotator, Beta, Gamma
from .annotators.decisions import mislabel
from .annotators.two_annotators import AnnotatorPair, answers
from .drawing.candidates import by_text, from_clustering, from_pairs, interleaved
from .drawing.drawn import RecordDraws, draw
from .drawing.folder import write_folder
from .drawing.labelling_tasks import tasks
from .drawing.page import labelling_page, read_answers
from .drawing.plans import GivenProbabilities, LinkEnds, Multipurpose, PredictedClusters, Records, Strata
from .drawing.stopping import ONCE, REPEATED, Rule, check
from .reading.answer_files import read_labels
from .reading.returned import Labels
from .reading.stars import machine_labels, read_stars

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
