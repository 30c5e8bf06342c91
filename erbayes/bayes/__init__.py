"""The Bayesian engine: models of entity sizes and errors in PyMC. Importing it imports PyMC."""

try:
    import pymc  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("models need PyMC: pip install 'erbayes[bayes]'", name=error.name) from error

from .engine import Modelled, prior
from .error_models import Mates, Retention
from .fit import Fit, NotConverged, fast
from .model import SizeModel
from .priors import LogNormalSizes, NormalPrior, PredictionInformed, StudentTPrior, ZetaSizes, size_family
from .programs import compiled
from .totals import EXPECTED

__all__ = [
    "EXPECTED",
    "Fit",
    "LogNormalSizes",
    "Mates",
    "Modelled",
    "NormalPrior",
    "NotConverged",
    "PredictionInformed",
    "Retention",
    "SizeModel",
    "StudentTPrior",
    "ZetaSizes",
    "compiled",
    "fast",
    "prior",
    "size_family",
]
