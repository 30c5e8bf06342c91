"""Designs: the ways in which units were drawn. Each turns units into draws, weights and their variance.

In every design the sum of weight × column over draws estimates a total. For n draws without replacement from
T units, the variance has the factor θ = 1 - n/T. It is then unbiased for a total (Cochran 1977, theorem 2.2).
The paper's θ = 1 - (n-1)/(T-1) is T/(T-1) times as large.

Source: [B22] Binette et al. (2022), arXiv 2210.01230.
"""

from .._internal.remedies import SingleUnit
from .changes import FrozenWeights, Responding, size_classes
from .records import ByPredictedSize, DistinctEntities, Pooled, UniformRecords, WeightedRecords
from .units import BySize, KnownInclusion, KnownSelection, KnownWeights, Stratified, UniformClusters

__all__ = [
    "ByPredictedSize",
    "BySize",
    "DistinctEntities",
    "FrozenWeights",
    "KnownInclusion",
    "KnownSelection",
    "KnownWeights",
    "Pooled",
    "Responding",
    "SingleUnit",
    "Stratified",
    "UniformClusters",
    "UniformRecords",
    "WeightedRecords",
    "size_classes",
]
