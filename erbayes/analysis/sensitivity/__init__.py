"""Sensitivity to errors of labels: intervals that allow for them, grids of rates, and tipping points.

Source of the analysis: Lash, Fox and Fink (2009), Applying Quantitative Bias Analysis to Epidemiologic Data.
"""

from .grids import grid, tipping
from .imputation import WithErrors, with_errors

__all__ = ["WithErrors", "grid", "tipping", "with_errors"]
