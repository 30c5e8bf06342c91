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

from .bias import Analytic, BiasAnalysis, Engine, Resampling, bias_analysis
from .grids import Adjustment, ClosedForm, Grid, Restored, Tipping, by_pieces, grid, tipping
from .imputation import Bootstrapped, Fitted, PlainEngine, Posterior, restored_analysis
from .laws import FIXED, PRF, PROPORTIONAL, Law, breaks_down, corrected, law_of
from .studied import BiasAdjusted, Mislabelled, RestoredAdjusted

__all__ = [
    "FIXED",
    "PRF",
    "PROPORTIONAL",
    "Adjustment",
    "Analytic",
    "BiasAdjusted",
    "BiasAnalysis",
    "Bootstrapped",
    "ClosedForm",
    "Engine",
    "Fitted",
    "Grid",
    "Law",
    "Mislabelled",
    "PlainEngine",
    "Posterior",
    "Resampling",
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
