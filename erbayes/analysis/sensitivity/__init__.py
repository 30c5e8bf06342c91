"""Dependence of an estimate on perfect labels: grids, tipping points, probabilistic bias analysis.

Annotators err in two ways (`erbayes.labels`). They miss a share u of the records outside home, and they
keep a share v of the foreign records in home. Restoration undoes these errors: it draws true entities behind
the labels, and estimates from them (`Restored`, `restored_analysis`). It takes any metric, design, engine and
model of errors.

To first order, observed precision exceeds precision by v (1 - precision), and observed recall exceeds recall
by u (1 - recall), if draws are proportional to size.

Source of the analysis: Lash, Fox and Fink (2009), Applying Quantitative Bias Analysis to Epidemiologic Data.
"""

from .bias import PRF, restored_analysis
from .grids import grid, tipping

__all__ = ["PRF", "grid", "restored_analysis", "tipping"]
