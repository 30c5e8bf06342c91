"""How far an estimator can be trusted: repeated sampling from populations whose truth is known."""

from .harness import Samples, UniformEntities, draw_samples, study
from .measures import Against, Study

__all__ = ["Against", "Samples", "Study", "UniformEntities", "draw_samples", "study"]
