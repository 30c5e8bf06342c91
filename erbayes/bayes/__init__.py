"""The Bayesian engine: models of entity sizes and errors in PyMC. Importing it imports PyMC."""

from .engine import Modelled
from .fit import Fit
from .fitting import fast, nuts, warm_up
from .laws import OneOf
from .model import RETENTION, SIZES, SizeModel
from .outcomes import Bounded, Exactness, Leakage, Retention, Threshold
from .posterior import Saved
from .priors import Level, Slope
from .samplers import NotConverged
from .sizes import (
    BodyAndTail,
    CutZeta,
    LogNormal,
    NegativeBinomial,
    PoissonLogNormal,
    PredictionInformed,
    SizeFamily,
    Zeta,
)
from .stacking import Stack, stack
from .totals import EXPECTED

__all__ = [
    "EXPECTED",
    "RETENTION",
    "SIZES",
    "BodyAndTail",
    "Bounded",
    "CutZeta",
    "Exactness",
    "Fit",
    "Leakage",
    "Level",
    "LogNormal",
    "Modelled",
    "NegativeBinomial",
    "NotConverged",
    "OneOf",
    "PoissonLogNormal",
    "PredictionInformed",
    "Retention",
    "Saved",
    "SizeFamily",
    "SizeModel",
    "Slope",
    "Stack",
    "Threshold",
    "Zeta",
    "fast",
    "nuts",
    "stack",
    "warm_up",
]
