"""How far an estimator can be trusted: repeated sampling from populations whose truth is known."""

from .harness import UniformEntities, draw_samples, study

__all__ = ["UniformEntities", "draw_samples", "study"]
