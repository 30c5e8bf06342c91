"""How good is my entity resolution? Honest estimates from a small labelled sample."""

from . import metrics
from .clustering import Clustering, DataError
from .compare import Comparison, Coverage, compare
from .design import (
    DistinctEntities,
    KnownWeights,
    SingleUnit,
    Stratified,
    UniformClusters,
    UniformRecords,
    paper_theta,
    sampling_fraction,
)
from .diagnostics import alarms, balance, influence, links_out_of_reach
from .sample import Sample
from .taylor import estimate, jackknife, taylor
from .uncertain import Normal, Scale, Totals, identity, log, logit
from .units import Missing, NotIdentified, Units, measure, measure_predicted

__all__ = [
    "Clustering", "Comparison", "Coverage", "DataError", "DistinctEntities", "KnownWeights", "Missing",
    "Normal", "NotIdentified", "Sample", "Scale", "SingleUnit", "Stratified", "Totals", "UniformClusters",
    "UniformRecords", "Units", "alarms", "balance", "compare", "estimate", "identity", "influence",
    "jackknife", "links_out_of_reach", "log", "logit", "measure",
    "measure_predicted", "metrics", "paper_theta", "sampling_fraction", "taylor",
]  # fmt: skip
