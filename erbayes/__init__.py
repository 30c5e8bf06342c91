"""How good is my entity resolution? Honest estimates from a small labelled sample."""

from . import columns, metrics
from .assisted import Assisted, assisted
from .calibration import ByGroup, Calibrated, linear, links_by_size, links_out_of_reach, raking
from .clustering import Clustering
from .compare import Comparison, Differing, compare
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
from .diagnostics import alarms, balance, influence
from .domains import by_domain
from .engine import P_naive, R_naive, jackknife, naive, taylor
from .errors import Alarm, DataError, NotIdentified
from .estimate import estimate
from .frame import Dated, links_inside
from .helped import AssistedEstimates
from .intervals import (
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
from .measuring import Missing, measure, measure_predicted
from .metrics import ALL, USUAL
from .nonresponse import Responding, size_classes
from .phases import TwoPhase, two_phase
from .sample import Sample
from .second import Second
from .uncertain import Draws, Normal, Totals
from .units import Units

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
    "taylor",
    "two_phase",
]
