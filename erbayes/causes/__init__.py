"""Causes of error: a metric by features of units, as a regression and as an honest tree; names; review.

A metric is close to an average over units. Each unit counts by its part of the total that the metric averages
over, such as its predicted links for pairwise precision. Its value is then its effect on the metric, over
that part. Regression and tree explain these values by features.
"""

from .features import aggregated, features
from .names import EntitiesOf, homonymy, name_variation
from .regression import Regression, regression
from .review import review
from .tree import Split, Tree, tree

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
