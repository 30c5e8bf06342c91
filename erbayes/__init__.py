"""How good is my entity resolution? Honest estimates from a small labelled sample."""

from . import metrics, statistics
from ._internal.errors import Alarm, DataError, NotIdentified
from .analysis.comparison import Comparison, Differing, compare
from .analysis.domains import by_domain
from .analysis.estimation import estimate
from .analysis.impact import Impact, impact
from .auxiliary.assistance import Assisted, assisted
from .auxiliary.estimates import AssistedEstimates
from .auxiliary.second import Second
from .auxiliary.two_phases import TwoPhase, two_phase
from .design import (
    ByPredictedSize,
    BySize,
    DistinctEntities,
    KeptWeights,
    KnownChances,
    KnownInclusion,
    KnownWeights,
    PoissonRecords,
    Pooled,
    SingleUnit,
    Stratified,
    SystematicRecords,
    UniformClusters,
    UniformRecords,
    WeightedRecords,
    paper_theta,
    sampling_fraction,
)
from .design.calibration import ByGroup, Calibrated, linear, links_by_size, links_out_of_reach, raking
from .design.nonresponse import Responding, size_classes
from .design.sample import Sample
from .engine import P_naive, R_naive, jackknife, naive, taylor
from .engine.diagnostics import alarms, balance, influence
from .metrics import columns
from .metrics.definitions import ALL, USUAL
from .metrics.intervals import (
    WALD,
    Anytime,
    BetaGamma,
    EqualTailed,
    HighestDensity,
    Scale,
    Symmetric,
    identity,
    log,
    logit,
)
from .metrics.uncertain import Draws, Normal, Totals
from .units.clustering import Clustering
from .units.frame import Dated, links_inside
from .units.measuring import Missing, measure, measure_predicted
from .units.units import Units

__all__ = [
    "ALL",
    "USUAL",
    "WALD",
    "Alarm",
    "Anytime",
    "Assisted",
    "AssistedEstimates",
    "BetaGamma",
    "ByGroup",
    "ByPredictedSize",
    "BySize",
    "Calibrated",
    "Clustering",
    "Comparison",
    "DataError",
    "Dated",
    "Differing",
    "DistinctEntities",
    "Draws",
    "EqualTailed",
    "HighestDensity",
    "Impact",
    "KeptWeights",
    "KnownChances",
    "KnownInclusion",
    "KnownWeights",
    "Missing",
    "Normal",
    "NotIdentified",
    "P_naive",
    "PoissonRecords",
    "Pooled",
    "R_naive",
    "Responding",
    "Sample",
    "Scale",
    "Second",
    "SingleUnit",
    "Stratified",
    "Symmetric",
    "SystematicRecords",
    "Totals",
    "TwoPhase",
    "UniformClusters",
    "UniformRecords",
    "Units",
    "WeightedRecords",
    "alarms",
    "assisted",
    "balance",
    "by_domain",
    "columns",
    "compare",
    "estimate",
    "identity",
    "impact",
    "influence",
    "jackknife",
    "linear",
    "links_by_size",
    "links_inside",
    "links_out_of_reach",
    "log",
    "logit",
    "measure",
    "measure_predicted",
    "metrics",
    "naive",
    "paper_theta",
    "raking",
    "sampling_fraction",
    "size_classes",
    "statistics",
    "taylor",
    "two_phase",
]
