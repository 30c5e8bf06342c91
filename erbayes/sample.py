"""Sample: units together with the design that drew them, the one input of every engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .clustering import FloatArray
from .design import Design, Expansion
from .units import Column, Known, NotIdentified, Units


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sample:
    """Units and their design.

    Attributes
    ----------
    units : Units
    design : Design
    expansion : Expansion
        Draws, weights and variance: what the design makes of the units.
    """

    units: Units
    design: Design
    expansion: Expansion

    def __init__(self, units: Units, design: Design, expansion: Expansion | None = None) -> None:
        object.__setattr__(self, "units", units)
        object.__setattr__(self, "design", design)
        object.__setattr__(self, "expansion", expansion or design.expand(units))

    def __repr__(self) -> str:
        draws = " x ".join(map(str, self.expansion.unit.shape))
        return f"Sample({draws} draws of {self.units!r} by {type(self.design).__name__})"

    @property
    def draws(self) -> float:
        """Number of draws over their finite-population correction, n/θ: ∞ for a census."""
        theta = self.expansion.variance.theta_mean
        return self.expansion.unit.shape[-1] / theta if theta else np.inf

    def contributions(self, columns: Sequence[Column]) -> FloatArray:
        """weight × y of each draw, (..., n draws, k columns): their sum estimates the totals."""
        counted = np.stack([self.units.column(c)[self.expansion.unit] for c in columns], axis=-1)
        return np.asarray(counted * self.expansion.weight[..., None])

    def known(self, total: Known) -> float:
        """A total that the prediction fixes.

        Raises
        ------
        NotIdentified
            Where it is not known.
        """
        if self.units.known is None:
            raise NotIdentified(
                f"the total of '{total.column.name}' is not known: labelled records that the "
                "prediction lacks were kept; Missing.OMIT restricts the population instead"
            )
        return self.units.known.total(total.column)
