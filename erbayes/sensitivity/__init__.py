"""How much of an estimate rests on labels being perfect: grids, tipping points, probabilistic bias analysis.

First-order laws (`corrected`) answer in closed form, for metrics of links under usual designs. `Restored` and
`restored_analysis` draw true entities behind the labels and estimate from them: any metric, design and model
of errors.
"""

from .bias import BiasAnalysis, Engine, LogitT, Resampling, bias_analysis
from .grids import Adjustment, ClosedForm, Grid, Restored, Tipping, by_pieces, grid, tipping
from .imputation import Bootstrapped, Fitted, PlainEngine, Posterior, restored_analysis
from .laws import FIXED, PRF, PROPORTIONAL, Law, breaks_down, corrected, law_of
from .studied import BiasAdjusted, Mislabelled, RestoredAdjusted

__all__ = [
    "FIXED", "PRF", "PROPORTIONAL", "Adjustment", "BiasAdjusted", "BiasAnalysis", "Bootstrapped",
    "ClosedForm", "Engine", "Fitted", "Grid", "Law", "LogitT", "Mislabelled", "PlainEngine", "Posterior",
    "Resampling", "Restored", "RestoredAdjusted", "Tipping", "bias_analysis", "breaks_down", "by_pieces",
    "corrected", "grid", "law_of", "restored_analysis", "tipping",
]  # fmt: skip
