"""Causes of error: a metric by features of units, as a regression and as an honest tree; names; review.

A metric is close to an average over units. Each unit counts by its part of the total that the metric averages
over, such as its predicted links for pairwise precision. Its value is then its effect on the metric, over
that part. Regression and tree explain these values by features.
"""

from .honest_tree import tree
from .records_to_review import review
from .unit_features import aggregated, features
from .weighted_regression import regression

__all__ = ["aggregated", "features", "regression", "review", "tree"]
