"""Weights that stay those of the prediction which was drawn from when another one is evaluated."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._internal.errors import DataError, Remedy, need, refuse_cases
from ..units.units import Units
from .contract import Design
from .drawn import make_unreached
from .draws import DrawnUnits


@dataclass(frozen=True, slots=True, eq=False)
class FrozenWeights:
    """The draws of a design with their weights on the prediction that was drawn from.

    They evaluate another prediction of the same records if the selection probability of an entity depends on
    the predicted clusters of its records, as under `erbayes.labels.LinkEnds`.

    Parameters
    ----------
    design : Design
        The design of the draws.
    drawn_from : Units
        The same labels, measured on the prediction that was drawn from.

    Raises
    ------
    DataError
        In `expand`, if the prediction has more records than the one that was drawn from, or if labelled
        units are in one of the two only.

    Examples
    --------
    >>> import erbayes as eb
    >>> old, new = {1: "a", 2: "a", 3: "b", 4: "b", 5: "b"}, {1: "a", 2: "b", 3: "b", 4: "b", 5: "b"}
    >>> labels = {1: "x", 2: "x", 3: "y"}
    >>> design = eb.design.ByPredictedSize(eb.columns.RECORDS)
    >>> design = eb.design.FrozenWeights(design, eb.measure(old, labels))
    >>> design.expand(eb.measure(new, labels)).weight.round(2)
    array([1.56, 2.78])
    """

    design: Design
    drawn_from: Units

    def expand(self, units: Units) -> DrawnUnits:
        need(self.drawn_from, Units, "drawn_from is Units, as measure(prediction, labels) returns them")
        expansion, known = self.design.expand(self.drawn_from), self.drawn_from.population
        if known is not None and units.population is not None and units.population > known:
            raise DataError(
                f"the prediction holds {units.population:,.0f} records, and the one that was drawn from "
                f"{known:,.0f}: records that could not be drawn must not count",
                Remedy.FRAME,
            )
        single = units.ids.symmetric_difference(self.drawn_from.ids)
        said = (
            "{n} labelled units are in the prediction or in the one that was drawn from, not in both, such as"
        )
        refuse_cases(single, said, "", Remedy.MISSING)
        position = units.ids.get_indexer(self.drawn_from.ids).astype(np.int64)
        never = expansion.unreached
        if never is not None and not _is_same(units, self.drawn_from):
            # records that are never drawn may be in clusters of any size here
            sizes = np.unique(units.m) if units.known is None else units.known.size
            never = make_unreached(sizes, units)
        unit, order = position[expansion.unit], position[expansion.order]
        return replace(expansion, unit=unit, order=order, unreached=never)


def _is_same(units: Units, others: Units) -> bool:
    """Return whether two predictions are equal, as far as their sizes and the labelled units show."""
    if units.known is None or not units.known.equals(others.known):
        return False
    return np.array_equal(units.n, others.n) and np.array_equal(units.m, others.m)
