"""Pictures of results. Each function takes a result, and `ax` in place of a new figure, and returns Axes.

Pictures need matplotlib (the extra `plots`), which is loaded when the first one is drawn. Everything is
black, white and grey, and series differ in shape as well. The gallery of the guide has each of them, with
the code that draws it.
"""

from .curves import calibration, curve, stages, track
from .fits import leakage, predicted_retention, predicted_sizes, retention, size_distribution
from .impacts import errors
from .results import (
    balance,
    by_domain,
    comparison,
    forest,
    influence,
    sampling_distribution,
    side_by_side,
    tree,
)
from .studies import coverage, estimates, tipping

__all__ = [
    "balance",
    "by_domain",
    "calibration",
    "comparison",
    "coverage",
    "curve",
    "errors",
    "estimates",
    "forest",
    "influence",
    "leakage",
    "predicted_retention",
    "predicted_sizes",
    "retention",
    "sampling_distribution",
    "side_by_side",
    "size_distribution",
    "stages",
    "tipping",
    "track",
    "tree",
]
