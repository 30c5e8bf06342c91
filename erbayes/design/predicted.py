"""Designs of records whose selection probability depends on the size of their predicted cluster alone.

A record in a predicted cluster of m records is drawn with probability φ(m) over the total of φ, so that the
probability of a unit, the sum over its records, needs no more than its pieces and a column of the prediction:
`RECORDS` for uniform records, `PREDICTED_LINKS` for the ends of predicted links.

Sources: Hansen and Hurwitz (1943) for draws with replacement; Lavallée and Caron (2001), Survey Methodology
27, for units that are reached through their records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._internal.errors import DataError, NotIdentified, Remedy, need
from ..metrics.columns import ClusterSum
from ..units.units import KnownTotals, Units
from .contract import innermost
from .drawn import Ids, InOneRound
from .draws import Round


@dataclass(frozen=True, slots=True, eq=False)
class ByPredictedSize(InOneRound):
    """Records drawn with replacement, with a probability by the size of their predicted cluster.

    The chance p_c of a unit at one draw is the sum of φ(m) over its records, divided by the total of φ over
    all records. It counts once, with weight 1/π_c, π_c = 1 - (1 - p_c)^n, or as often as it was drawn, with
    weight 1/(n p_c), under `WithRepeats` (Hansen and Hurwitz 1943). With `columns.PREDICTED_LINKS`, records
    are the ends of uniformly drawn predicted links.

    Parameters
    ----------
    probability : ClusterSum
        The column whose φ is the probability of a record, up to a factor: 0 or more.
    draws : sequence of unit ids, optional
        The unit of each drawn record, with repeats. By default each labelled unit is one draw.
    drawn_from : KnownTotals, optional
        Sizes of the prediction that was drawn from (`Units.known`). A prediction with other sizes is refused.
    repeats : bool
        True if each draw counts as often as it was made (see `WithRepeats`).

    Raises
    ------
    DataError, NotIdentified
        In `expand`, if a drawn unit has chance 0, if the prediction is not the one that was drawn from, or if
        labelled records that are missing in it were not omitted.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b", 5: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> eb.design.ByPredictedSize(eb.columns.PREDICTED_LINKS).expand(units).weight.round(3)
    array([2.286, 2.286])
    """

    probability: ClusterSum
    draws: Ids | None = None
    drawn_from: KnownTotals | None = None
    repeats: bool = False

    def make_round(self, units: Units, draws: int) -> Round:
        known = self._find_known(units)
        p = units.column(self.probability) / known.total(self.probability)
        return Round(draws, p, never=known.size[self.probability.phi(known.size) == 0])

    def _find_known(self, units: Units) -> KnownTotals:
        """Return the sizes of the predicted clusters of all records, refusing another prediction."""
        need(self.probability, ClusterSum, "a probability is a ClusterSum, such as columns.PREDICTED_LINKS")
        known = units.known
        if known is None or not known.singletons:
            raise NotIdentified(
                "labelled records that are missing in the prediction were kept, but had no chance to be "
                "drawn from it: use Missing.OMIT"
            )
        if self.drawn_from is not None and not known.equals(self.drawn_from):
            raise DataError(
                f"chances are those of a prediction of {self.drawn_from}, but this one has {known}: pass the "
                "prediction that was drawn from",
                Remedy.DRAWN_FROM,
            )
        return known


def draws_records(design: Any, units: Units) -> bool:
    """Return whether units are known to be reached by draws of their records, each of which has a chance."""
    design = innermost(design)
    if isinstance(design, ByPredictedSize):
        known = design.drawn_from or units.known
        return known is not None and bool((design.probability.phi(known.size) > 0).all())
    return getattr(design, "depends_on_labels", False)
