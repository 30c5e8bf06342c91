"""Engines: each turns a sample into uncertain metrics.

    Taylor()(sample, metrics)
    Resampled(replicates=4000)(sample, metrics, rng=1)

Studies, reports, comparisons and sensitivity analyses take all of them. They also take functions of users
with the same arguments (see `Engine`).
"""

from .bounded_means import Betting, BoundedMeans, betting
from .closed_form import Jackknife, Naive, P_naive, Taylor, jackknife, naive
from .fitted import taylor
from .named import Engine, Estimator, records_of, side_by_side
from .replicates import BCa, Resampled, bootstrap

__all__ = [
    "BCa",
    "Betting",
    "BoundedMeans",
    "Engine",
    "Estimator",
    "Jackknife",
    "Naive",
    "P_naive",
    "Resampled",
    "Taylor",
    "betting",
    "bootstrap",
    "jackknife",
    "naive",
    "records_of",
    "side_by_side",
    "taylor",
]
