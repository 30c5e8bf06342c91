"""Causes of error: features of units, an honest tree of a metric by these features, and records to review."""

from .honest_tree import tree
from .records_to_review import review
from .unit_features import aggregated, features

__all__ = ["aggregated", "features", "review", "tree"]
