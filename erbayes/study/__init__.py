"""How far an estimator can be trusted: repeated sampling from populations whose truth is known."""

from .harness import study
from .measures import Against, Study
from .samples import Samples, UniformEntities, draw_samples

__all__ = ["Against", "Samples", "Study", "UniformEntities", "draw_samples", "study"]
