"""Dependence of an estimate on perfect labels: grids, tipping points, probabilistic bias analysis.

Annotators err in two ways (`erbayes.labels`). They miss a share u of the records outside home, and they
keep a share v of the foreign records in home. There are two ways to undo these errors.

The closed form corrects metrics. To first order, the labelled totals of common, true and predicted links are
linear in u and v. Their slopes are totals as well, which a `Law` names. `corrected` turns a metric into the
one of true labels, and any engine estimates it. For draws proportional to size, precision P and recall R
follow from the observed P_obs and R_obs. P is for entities in one piece, and R for v = 0:

    P = (P_obs - v)/(1 - v),    R = R_obs (1 - u)/(1 - u R_obs),

so that P_obs - P = v (1 - P) and R_obs - R ≈ u R (1 - R).

Restoration draws true entities behind the labels, and estimates from them (`Restored`, `restored_analysis`).
It needs no linearisation, and takes any metric, design and model of errors.

Source of the analysis: Lash, Fox and Fink (2009), Applying Quantitative Bias Analysis to Epidemiologic Data.
"""

from .adjusted import Adjusted, BiasAdjusted, Mislabelled, RestoredAdjusted
from .adjustments import Adjustment, Corrected, Restored, by_pieces
from .bias import BiasAnalysis, bias_analysis, restored_analysis
from .grids import Grid, Tipping, grid, tipping
from .laws import FIXED, PRF, PROPORTIONAL, Law, breaks_down, corrected, law_of

__all__ = [
    "FIXED",
    "PRF",
    "PROPORTIONAL",
    "Adjusted",
    "Adjustment",
    "BiasAdjusted",
    "BiasAnalysis",
    "Corrected",
    "Grid",
    "Law",
    "Mislabelled",
    "Restored",
    "RestoredAdjusted",
    "Tipping",
    "bias_analysis",
    "breaks_down",
    "by_pieces",
    "corrected",
    "grid",
    "law_of",
    "restored_analysis",
    "tipping",
]
