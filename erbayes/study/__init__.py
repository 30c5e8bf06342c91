"""How far an estimator can be trusted: repeated sampling from populations whose truth is known."""

from .harness import Entities, draw_samples, study

__all__ = ["Entities", "draw_samples", "study"]
