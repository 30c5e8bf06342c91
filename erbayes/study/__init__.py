"""How far an estimator can be trusted: repeated sampling from populations whose truth is known."""

import sys
from typing import TYPE_CHECKING

from .._internal.nearest import call_as, refuse_attribute
from .harness import study
from .measures import Study
from .samples import Samples, UniformEntities, draw_samples

call_as(sys.modules[__name__], study)

__all__ = ["Samples", "Study", "UniformEntities", "draw_samples", "study"]

if not TYPE_CHECKING:  # so that type checkers still refuse names that are wrong
    __getattr__ = refuse_attribute(__name__, __all__)
