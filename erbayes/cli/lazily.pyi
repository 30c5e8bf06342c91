# The modules that commands use, each once: type checkers read this stub, as does the loader in `lazily.py`.
# A module whose name is also that of an option or of a local variable has another name here, in `__all__`.
import numpy as np
import pandas as pd

from .._internal import arrays as arrays
from .._internal import digits as digits
from .._internal import files as files
from ..analysis import impact as impacts
from ..analysis import sensitivity as sensitivity
from ..analysis import thresholds as curves
from ..engine import named as named_engines
from ..labels import folder as folders
from ..labels import labelling_tasks as sheets
from ..labels import page as pages
from ..labels import plans as plans
from ..labels import returned as returned_answers
from ..labels import source as sources
from ..labels import stopping as stopping
from ..labels import verdicts as answer_faults
from ..large import files as large_files
from ..large import scanning as scanning
from ..metrics import unseen as unseen
from ..report import sections as sections
from ..units import clustering as frames
from ..units import columns as column_roles
from ..units import edges as scored_edges
from ..units import features as features
from ..units import ids as ids
from ..units import reading as readings
from ..units import settled as heaps

__all__ = [
    "answer_faults",
    "column_roles",
    "curves",
    "folders",
    "frames",
    "heaps",
    "impacts",
    "large_files",
    "named_engines",
    "np",
    "pages",
    "pd",
    "readings",
    "returned_answers",
    "scored_edges",
    "sheets",
    "sources",
]
