"""Engines: each turns a sample into uncertain metrics.

    Taylor()(sample, metrics)
    Resampled(RaoWu(), replicates=4000)(sample, metrics, rng=1)

Studies, reports, comparisons and sensitivity analyses take all of them. They also take functions of users
with the same arguments (see `Engine`).
"""

from .bounded_means import AnytimeBetting, Betting, BoundedMeans, Means, betting, draws_of
from .closed_form import Taylor, taylor
from .contract import Counting, Doubting, Engine, Estimator, Explaining, Paired, Preparing
from .known_clusters import ClosedForm
from .labelled_only import Naive, P_naive, R_naive, naive
from .leave_one_out import Jackknife, jackknife
from .named import Advised, advise, find_engine
from .pool import LinearPool, linear_pool
from .replicates import BCa, Bootstrap, Resampled, Studentised, bootstrap
from .schemes import Dirichlet, PseudoDraws, RaoWu, Scheme
from .several_engines import SideBySide, side_by_side

__all__ = [
    "Advised",
    "AnytimeBetting",
    "BCa",
    "Betting",
    "Bootstrap",
    "BoundedMeans",
    "ClosedForm",
    "Counting",
    "Dirichlet",
    "Doubting",
    "Engine",
    "Estimator",
    "Explaining",
    "Jackknife",
    "LinearPool",
    "Means",
    "Naive",
    "P_naive",
    "Paired",
    "Preparing",
    "PseudoDraws",
    "R_naive",
    "RaoWu",
    "Resampled",
    "Scheme",
    "SideBySide",
    "Studentised",
    "Taylor",
    "advise",
    "betting",
    "bootstrap",
    "draws_of",
    "find_engine",
    "jackknife",
    "linear_pool",
    "naive",
    "side_by_side",
    "taylor",
]
