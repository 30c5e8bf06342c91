"""A metric as an average of values of draws, which regression and tree explain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._internal.arrays import FloatArray
from ..._internal.errors import NotIdentified
from ...design.sample import Sample
from ...engine.closed_form import columns_of, taylor
from ...metrics.definitions import Metric, coefficients_of_size
from ...metrics.totals import derivatives
from ...metrics.uncertain import EMPTY


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """A metric to second order in totals: `Z` (n draws, k), `J` (k,), `H` (k, k) and `part` (n draws,)."""

    Z: FloatArray
    J: FloatArray
    H: FloatArray
    value: float
    part: FloatArray
    free: float
    theta: float

    @classmethod
    def of(cls, sample: Sample, metric: Metric) -> Linear:
        """Linearise a metric, or raise NotIdentified if it is 0/0 in the sample."""
        totals = taylor(sample, [metric])
        counted, _ = columns_of([metric])
        x = totals.mean[totals.positions(metric)]
        with np.errstate(divide="ignore", invalid="ignore"):
            first, second = derivatives(metric.formula, x)
            value = float(metric.formula(*x))
        if not (np.isfinite(first).all() and np.isfinite(value)):
            raise NotIdentified(f"no unit has an effect on {metric.name}: {EMPTY}")
        takes = np.array([[c == column for column in counted] for c in metric.columns], dtype=float)
        Z = sample.contributions(counted)
        part = Z @ coefficients_of_size([metric], [c.name for c in counted])[0]
        H = takes.T @ np.nan_to_num(second) @ takes
        return cls(Z, first @ takes, H, value, part, totals.free, totals.theta)

    @property
    def effect(self) -> FloatArray:
        """Return the linearised effect of each draw, J z, (n draws,)."""
        return np.asarray(self.Z @ self.J)
