"""The Bayesian engine: models of entity sizes and errors in PyMC. Importing it imports PyMC."""

from .beforehand import elicited, prior
from .engine import Modelled, Pooled
from .fit import Fit, fast, nuts
from .groups import Together, after, together
from .laws import OneOf
from .model import RETENTION, SIZES, SizeModel
from .outcomes import Leakage, Retention, Threshold
from .priors import Level, Slope
from .samplers import NotConverged
from .sizes import LogNormal, PredictionInformed, Zeta
from .totals import EXPECTED

__all__ = [
    "EXPECTED",
    "RETENTION",
    "SIZES",
    "Fit",
    "Leakage",
    "Level",
    "LogNormal",
    "Modelled",
    "NotConverged",
    "OneOf",
    "Pooled",
    "PredictionInformed",
    "Retention",
    "SizeModel",
    "Slope",
    "Threshold",
    "Together",
    "Zeta",
    "after",
    "elicited",
    "fast",
    "nuts",
    "prior",
    "together",
]
