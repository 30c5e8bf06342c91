"""How far an estimator can be trusted: repeated sampling from populations whose truth is known."""

import sys

from .._internal.nearest import call_as
from .harness import study
from .measures import Study
from .samples import Samples, UniformEntities, draw_samples

call_as(sys.modules[__name__], study)

__all__ = ["Samples", "Study", "UniformEntities", "draw_samples", "study"]
