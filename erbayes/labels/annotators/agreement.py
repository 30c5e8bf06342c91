"""How far two annotators of the same mentions agree in the population."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..._internal.arrays import FloatArray
from ..._internal.errors import NotIdentified
from ...design import KnownWeights
from ...design.sample import Sample
from ...engine.closed_form import taylor
from ...metrics.columns import Pieces
from ...metrics.definitions import UNIT, Metric
from ...metrics.uncertain import Normal
from ...units.units import Units

PER_LINK = np.reciprocal
"""Weight 1/size of an entity, if draws are proportional to size."""


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """A column with known values, (u,)."""

    name: str
    values: FloatArray

    def identified(self, units: Pieces) -> bool:
        return True

    def count(self, units: Pieces) -> FloatArray:
        if len(units) != len(self.values):
            raise NotIdentified(f"'{self.name}' has values for the sampled units only")
        return self.values


def estimate_agreement(
    mentions: pd.Index,
    a: FloatArray,
    b: FloatArray,
    c: FloatArray,
    weight: Callable[[FloatArray], FloatArray],
) -> Normal:
    """Estimate the four shares of `Pair.agreement` from records of one, the other and both answers, (n,)."""
    N = (a + b) / 2
    same = ((a == c) & (b == c)).astype(float)
    one, size = Values("one", np.ones_like(N)), Values("size", N)
    both = Values("both", c * (c - 1))
    either = Values("either", (a * (a - 1) + b * (b - 1)) / 2)

    def share(name: str, top: Values, bottom: Values) -> Metric:
        return Metric(name, (top, bottom), lambda x, y: x / y, ((bottom, 1.0),), UNIT, "see Pair.agreement")

    metrics = [
        share("identical-entities", Values("same", same), one),
        share("identical-records", Values("same_size", same * N), size),
        share("jaccard", Values("jaccard_size", c / (a + b - c) * N), size),
        share("links", both, either),
    ]
    position = np.arange(len(N))  # units of one piece each, whose columns are the values above
    units = Units(mentions, position, position, N, N, N, position, None)
    design = KnownWeights(pd.Series(weight(N), index=mentions))
    return taylor(Sample(units, design), metrics).apply(metrics)
