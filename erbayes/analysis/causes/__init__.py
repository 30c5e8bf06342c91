"""Causes of error: a metric by features of units, as a regression and as an honest tree; names; review.

A metric is close to an average over units. Each unit counts by its part of the total that the metric averages
over, such as its predicted links for pairwise precision. Its value is then its effect on the metric, over
that part. Regression and tree explain these values by features.
"""

from .honest_tree import Split, Tree, tree
from .names import EntitiesOf, homonymy, name_variation
from .records_to_review import review
from .unit_features import aggregated, features
from .weighted_regression import Regression, regression

__all__ = [
    "EntitiesOf",
    "Regression",
    "Split",
    "Tree",
    "aggregated",
    "features",
    "homonymy",
    "name_variation",
    "regression",
    "review",
    "tree",
]
