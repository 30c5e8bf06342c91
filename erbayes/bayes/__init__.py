"""The Bayesian engine: models of entity sizes and errors in PyMC. Importing it imports PyMC."""

try:
    import pymc  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("models need PyMC: pip install 'erbayes[bayes]'", name=error.name) from error

from .engine import Modelled
from .error_models import Leakage, Retention, Threshold
from .fit import Fit, NotConverged, fast
from .model import RETENTION, SIZES, SizeModel
from .model_average import ModelAverage
from .prior_predictive import elicited, prior
from .priors import NormalPrior, StudentTPrior
from .programs import compiled
from .sizes import LogNormalSizes, PredictionInformed, ZetaSizes, size_family
from .totals import EXPECTED

__all__ = [
    "EXPECTED",
    "RETENTION",
    "SIZES",
    "Fit",
    "Leakage",
    "LogNormalSizes",
    "ModelAverage",
    "Modelled",
    "NormalPrior",
    "NotConverged",
    "PredictionInformed",
    "Retention",
    "SizeModel",
    "StudentTPrior",
    "Threshold",
    "ZetaSizes",
    "compiled",
    "elicited",
    "fast",
    "prior",
    "size_family",
]
