"""How far an estimator can be trusted: repeated sampling from populations whose truth is known."""

from .harness import Entities, OwnPlan, Samples, Study, draw_samples, study

__all__ = ["Entities", "OwnPlan", "Samples", "Study", "draw_samples", "study"]
