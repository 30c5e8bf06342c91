"""Causes of error: features of units, and records to review."""

from .records_to_review import review
from .unit_features import aggregated, features

__all__ = ["aggregated", "features", "review"]
