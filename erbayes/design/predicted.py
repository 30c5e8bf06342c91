"""Designs of records whose selection probability depends on the size of their predicted cluster alone.

A record in a predicted cluster of m records is drawn with probability φ(m) over the total of φ, so that the
probability of a unit, the sum over its records, needs no more than its pieces and a column of the prediction:
`RECORDS` for uniform records, `PREDICTED_LINKS` for the ends of predicted links.

Sources: Hansen and Hurwitz (1943) for draws with replacement; Hájek (1964) for Poisson draws; Lavallée and
Caron (2001), Survey Methodology 27, for units that are reached through their records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .._internal.arrays import FloatArray
from .._internal.errors import DataError, NotIdentified, Remedy, need, number, refuse_cases
from ..metrics.columns import ClusterSum
from ..units.units import KnownTotals, Units
from .contract import Expansion
from .drawn import (
    DrawnWithReplacement,
    Ids,
    make_unreached,
    real_numbers,
    refuse_unreachable,
    unit_of_draws,
)
from .variance import HartleyRaoDraws, PoissonDraws


def _find_known(design: ByPredictedSize | PoissonRecords | SystematicRecords, units: Units) -> KnownTotals:
    """Return the sizes of the predicted clusters of all records, refusing another prediction."""
    need(design.probability, ClusterSum, "a probability is a ClusterSum, such as columns.PREDICTED_LINKS")
    known = units.known
    if known is None or not known.singletons:
        raise NotIdentified(
            "labelled records that are missing in the prediction were kept, but had no chance to be "
            "drawn from it: use Missing.OMIT"
        )
    if design.drawn_from is not None and not known.equals(design.drawn_from):
        raise DataError(
            f"chances are those of a prediction of {design.drawn_from}, but this one has {known}: pass the "
            "prediction that was drawn from",
            Remedy.DRAWN_FROM,
        )
    return known


def _find_unreached(probability: ClusterSum, known: KnownTotals) -> FloatArray:
    """Return the predicted sizes whose records have probability 0."""
    return np.asarray(known.size[probability.phi(known.size) == 0])


@dataclass(frozen=True, slots=True, eq=False)
class ByPredictedSize(DrawnWithReplacement):
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

    def selection_probabilities(self, units: Units) -> FloatArray:
        total = _find_known(self, units).total(self.probability)
        return np.asarray(units.column(self.probability) / total)

    def undrawn_sizes(self, units: Units) -> FloatArray:
        return _find_unreached(self.probability, _find_known(self, units))


@dataclass(frozen=True, slots=True, eq=False)
class PoissonRecords:
    """Records drawn independently, each at most once (Poisson draws), with a probability by predicted size.

    A record has the probability π_i = min(1, n φ(m)/Σφ) to be drawn, for n expected records. An entity is in
    the sample with probability π_c = 1 - Π(1 - π_i), and then has weight 1/π_c. Entities are independent, so
    that the variance of a total of y is Σ (1 - π_c) y_c²/π_c² over the sample. The number of records is
    random, which cancels in ratios of totals (Hájek 1964).

    Parameters
    ----------
    probability, drawn_from
        As in `ByPredictedSize`.
    expected : float
        Expected number n of drawn records, above 0.
    labelled : float in (0, 1]
        Share of the drawn records that were labelled, if the others were left out at random. Each π_i is
        multiplied by it.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> eb.design.PoissonRecords(eb.columns.RECORDS, expected=2).expand(units).weight.round(3)
    array([1.333, 2.   ])
    """

    probability: ClusterSum
    expected: float
    drawn_from: KnownTotals | None = None
    labelled: float = 1.0

    def of_record(self, known: KnownTotals) -> Callable[[FloatArray], FloatArray]:
        """Return the function that gives π_i of a record by the size of its predicted cluster."""
        number(self.expected, "expected", lambda n: 0 < n < np.inf, "be above 0 and finite")
        number(self.labelled, "labelled", lambda share: 0 < share <= 1, "lie in (0, 1]")
        factor = self.expected / known.total(self.probability)
        return lambda m: self.labelled * np.minimum(factor * self.probability.phi(m), 1.0)

    def included(self, units: Units) -> FloatArray:
        """Return the probability π_c of each unit to be in the sample, (units,)."""
        of_record = self.of_record(_find_known(self, units))

        def log_missed(m: FloatArray) -> FloatArray:
            with np.errstate(divide="ignore"):
                return np.log1p(-of_record(m))

        return np.asarray(-np.expm1(ClusterSum("log_missed", log_missed).count(units)))

    def expand(self, units: Units) -> Expansion:
        unit, p = unit_of_draws(units, None), self.included(units)
        refuse_unreachable(p, unit, units)
        unreached = make_unreached(_find_unreached(self.probability, _find_known(self, units)), units)
        return Expansion(unit, 1 / p, True, PoissonDraws(p), unreached)


@dataclass(frozen=True, slots=True, eq=False)
class SystematicRecords:
    """Records drawn systematically in random order, each once, with a probability by predicted size.

    A record has the probability π_i = n φ(m)/Σφ to be drawn. A draw of a unit has weight 1/Π_c, with Π_c, the
    sum of π_i over its records, the expected number of its draws. Each total is then a Horvitz-Thompson sum
    over records, and its variance that of Hartley and Rao (1962).

    Parameters
    ----------
    probability, drawn_from
        As in `ByPredictedSize`.
    draws : sequence of unit ids, (n,)
        The unit of each drawn record.
    inclusion : sequence of float, (n,)
        Probability π_i of each drawn record, in (0, 1].

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> design = eb.design.SystematicRecords(eb.columns.RECORDS, ["x", "y"], [0.5, 0.5])
    >>> design.expand(units).weight
    array([1., 2.])
    """

    probability: ClusterSum
    draws: Ids
    inclusion: Sequence[float] | FloatArray
    drawn_from: KnownTotals | None = None

    def expand(self, units: Units) -> Expansion:
        unit, known = unit_of_draws(units, self.draws), _find_known(self, units)
        inclusion = real_numbers(self.inclusion, "inclusion")
        n, total = len(unit), known.total(self.probability)
        if len(inclusion) != n:
            raise DataError(f"{len(inclusion)} probabilities for {n} drawn records")
        outside = ~((inclusion > 0) & (inclusion <= 1))
        refuse_cases(inclusion[outside], "inclusion must lie in (0, 1]; {n} do not:")
        p = n * units.column(self.probability) / total
        refuse_unreachable(p, unit, units)
        of_size = n * self.probability.phi(known.size) / total
        variance = HartleyRaoDraws(inclusion, float((known.size * known.count) @ of_size**2))
        unreached = make_unreached(_find_unreached(self.probability, known), units)
        return Expansion(unit, 1 / p[unit], True, variance, unreached)
