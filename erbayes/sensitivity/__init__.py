"""How much of an estimate rests on labels being perfect: grids, tipping points, probabilistic bias analysis.

With u the share of records elsewhere that are missed and v the share of foreign records of the home cluster
that are kept (`erbayes.labelling`), the totals TP, |T|, |P| that labels give are, to first order, linear in u
and v with slopes that are totals themselves. A `Law` names these; `corrected` turns a metric into the one
that true labels would have given, to be estimated by any engine. For draws proportional to size

    P = (P_obs - v)/(1 - v),    R = R_obs (1 - u)/(1 - u R_obs) at v = 0,

hence P_obs - P = v (1 - P) and R_obs - R ≈ u R (1 - R). `Restored` and `restored_analysis` instead draw true
entities behind the labels and estimate from them: no linearisation, any metric, design and model of errors.

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
