"""Designs of records, each of which leads to its unit, whose chance is the sum of theirs.

Sources: Hansen and Hurwitz (1943) for draws with replacement; Lavallée and Caron (2001), Survey Methodology
27, for units that are reached through their records.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from .._internal import remedies
from .._internal.arrays import FloatArray, IntArray
from .._internal.digits import Brief
from .._internal.errors import DataError, NotIdentified, head, need, whole
from ..metrics.columns import RECORDS, ClusterSum, pairs
from ..units.units import KnownTotals, Units
from .checks import Ids, find_theta, list_draws, make_unreached, need_frame, unit_of_draws
from .contract import innermost
from .draws import DrawnUnits, Round, count_each, count_once


class InOneRound(ABC):
    """A design of draws of one round, each with a known chance of its unit."""

    __slots__ = ()
    draws: Ids | None
    repeats: bool

    @abstractmethod
    def make_round(self, units: Units, draws: int) -> Round:
        """Return the round of so many draws."""

    def rounds(self, units: Units) -> list[Round]:
        return [self.make_round(units, len(list_draws(units, self.draws)))]

    def expand(self, units: Units) -> DrawnUnits:
        return self.expand_draws(units, unit_of_draws(units, self.draws))

    def expand_draws(self, units: Units, unit: IntArray) -> DrawnUnits:
        """Return draws of the units at the positions `unit`, (..., n)."""
        return expand_rounds(units, unit, [self.make_round(units, unit.shape[-1])], self.repeats)


def expand_rounds(
    units: Units,
    unit: IntArray,
    rounds: Sequence[Round],
    each: bool = False,
    stratum: IntArray | None = None,
) -> DrawnUnits:
    """Return draws of the units at the positions `unit`, (..., n), once, or `each` as often as it was drawn.

    `stratum` (n,): round of each draw.
    """
    expected = np.sum([one.draws * one.p for one in rounds], axis=0)[unit]
    if (expected <= 0).any():
        never = np.unique(unit[expected <= 0])
        raise DataError(
            f"{len(never)} drawn units have chance 0 under the design: {head(units.ids[never])}; the "
            "prediction or the labels are not those that were drawn from"
        )
    found = count_once(unit, rounds, 1 / expected, stratum)
    found = found.count_each() if each else found
    undrawn = sorted(set.intersection(*({*np.asarray(one.never, dtype=float)} for one in rounds)))
    return replace(found, unreached=make_unreached(undrawn, units)) if undrawn else found


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class UniformRecords(Brief, InOneRound):
    """Records drawn uniformly, each of which leads to its unit, with probability proportional to size.

    A unit of N_c among N records counts once, however often it was drawn, with weight 1/π_c for its
    probability π_c = 1 - (1 - N_c/N)^n to be among n draws (Horvitz and Thompson 1952), or the hypergeometric
    one without replacement. A further draw shows nothing new (Basu 1958). If N is not known, each draw has
    weight 1/(n N_c), up to a factor, as under `WithRepeats` ([B22]).

    Parameters
    ----------
    draws
        As in `UniformClusters`.
    population : int, optional
        Number of records in the frame, if they were drawn without replacement.
    records : int, optional
        Number N of records that were drawn from, by default those of the prediction. It may be larger than
        theirs, and a prediction of more records is refused. If labelled records are missing in the
        prediction, N is that of the prediction, as sizes are.
    repeats : bool
        True if each draw counts as often as it was made (see `WithRepeats`).

    Raises
    ------
    DataError
        In `expand`, if draws and labelled units differ, if `population` is not the number of records, or if
        the prediction has more than `records`.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> eb.UniformRecords(draws=["x", "x", "y"]).expand(units).weight.round(3)
    array([1.143, 1.73 ])
    """

    draws: Ids | None = None
    population: int | None = None
    records: int | None = None
    repeats: bool = False

    depends_on_labels: ClassVar[bool] = True
    without_repeats: ClassVar[bool] = False
    fixed_size: ClassVar[bool] = True

    def selection(self, size: FloatArray, units: Units) -> FloatArray:
        return size

    def _find_records(self, units: Units) -> float | None:
        """Return N, None if it is not known."""
        return units.population if self.records is None or units.unmatched else float(self.records)

    def make_round(self, units: Units, draws: int) -> Round:
        if (records := self._find_records(units)) is None:
            raise NotIdentified("the number of records is not known: use Missing.OMIT")
        return Round(draws, units.size / records, None if self.population is None else int(records))

    def expand(self, units: Units) -> DrawnUnits:
        need_frame(self.population, units, "population")
        need_frame(self.records, units, "records")
        frame, known = self.population, units.population
        if frame is not None and known is not None and frame > known and not units.unmatched:
            raise DataError(
                f"population = {frame}, but the prediction holds {known:.0f} records: pass the "
                "prediction of all records that were drawn from, or their number"
            )
        return self.expand_draws(units, unit_of_draws(units, self.draws))

    def expand_draws(self, units: Units, unit: IntArray) -> DrawnUnits:
        """Return draws of the units at the positions `unit`, (..., n)."""
        records, n = self._find_records(units), unit.shape[-1]
        if records is not None and not self.repeats:
            return expand_rounds(units, unit, [self.make_round(units, n)])
        # without N, weights are known up to a factor, which suffices for ratios
        weight = (1.0 if records is None else records) / (n * units.size[unit])
        theta = find_theta(n, self.population)
        return count_each(unit, weight, fpc=theta, absolute=records is not None)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DistinctEntities(Brief):
    """The distinct units of records drawn uniformly with replacement, if nobody noted the repeats.

    Numbers are those of `UniformRecords`, whose bootstraps and bets need the repeats.

    Parameters
    ----------
    draws : int
        Number n of records drawn, repeats included.
    records : int, optional
        Number N of records in the population. By default those of the prediction.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> eb.DistinctEntities(draws=2).expand(units).weight.round(3)
    array([1.333, 2.286])
    """

    draws: int
    records: int | None = None

    depends_on_labels: ClassVar[bool] = True
    without_repeats: ClassVar[bool] = True
    fixed_size: ClassVar[bool] = False

    def selection(self, size: FloatArray, units: Units) -> FloatArray:
        p = np.minimum(size / self._find_records(units), 1)
        return np.asarray(-np.expm1(Round(self.draws, p).log_missed(p)))

    def _find_records(self, units: Units) -> int:
        if self.records is not None:
            return whole(self.records, "records")
        if units.known is None:
            raise DataError("the number of records is not known: pass records=")
        return int(units.known.total(RECORDS))

    def expand(self, units: Units) -> DrawnUnits:
        if whole(self.draws, "draws", 0) < len(units):
            raise DataError(f"{self.draws} draws cannot have found {len(units)} distinct units")
        need_frame(self.records, units, "records")
        records, size = self._find_records(units), units.size
        if size.max() >= records:
            raise DataError(f"a unit of {int(size.max())} records in a population of {records}")
        return count_once(np.arange(len(units)), [Round(self.draws, size / records)])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ByPredictedSize(Brief, InOneRound):
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
            then, sizes = self.drawn_from, np.union1d(self.drawn_from.size, known.size)
            number = [np.bincount(np.searchsorted(sizes, x.size), x.count, len(sizes)) for x in (then, known)]
            at = int((number[0] != number[1]).argmax())
            was, has = (f"{x[at]:,.0f} of size {sizes[at]:,.0f}" for x in number)
            raise DataError(
                f"chances are those of a prediction of {then}, {was}, but this one has {known}, {has}: pass "
                "the prediction that was drawn from",
                remedies.DRAWN_FROM,
            )
        return known


def draws_records(design: Any, units: Units) -> bool:
    """Return whether units are known to be reached by draws of their records, each of which has a chance."""
    design = innermost(design)
    if isinstance(design, ByPredictedSize):
        known = design.drawn_from or units.known
        return known is not None and bool((design.probability.phi(known.size) > 0).all())
    return getattr(design, "depends_on_labels", False)


def expect_unreached_links(known: KnownTotals, probability: ClusterSum, draws: int) -> float:
    """Return the expected share of predicted links in clusters larger than any that n draws will reach.

    It is Σ_s L_s (1 - q_s)^n, with L_s the share of links in clusters of s records, and q_s the probability
    that a draw is from one of s records or more; `probability` is that of a predicted cluster up to a factor.
    """
    order = np.argsort(known.size)
    size, count = known.size[order], known.count[order]
    mass, links = count * size * probability.phi(size), count * pairs(size)
    smaller = np.append(0.0, np.cumsum(mass)[:-1]) / mass.sum()
    return float(links @ smaller**draws / links.sum()) if links.any() else 0.0
