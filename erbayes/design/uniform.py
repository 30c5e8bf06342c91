"""Designs of uniform draws: records, their distinct entities, and units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._internal.arrays import FloatArray, IntArray
from .._internal.errors import DataError, NotIdentified, whole
from ..metrics.columns import RECORDS
from ..units.units import Units
from .drawn import (
    FPC,
    Ids,
    InOneRound,
    expand_rounds,
    find_theta,
    need_distinct,
    need_frame,
    unbiased_fpc,
    unit_of_draws,
)
from .draws import DrawnUnits, Round, count_each, count_once


@dataclass(frozen=True, slots=True, eq=False)
class UniformRecords(InOneRound):
    """Records drawn uniformly, each of which leads to its unit, with probability proportional to size.

    A unit of N_c among N records counts once, however often it was drawn, with weight 1/π_c for its
    probability π_c = 1 - (1 - N_c/N)^n to be among n draws (Horvitz and Thompson 1952), or the hypergeometric
    one without replacement. A further draw shows nothing new (Basu 1958). If N is not known, each draw has
    weight 1/(n N_c), up to a factor, as under `WithRepeats` ([B22]).

    Parameters
    ----------
    draws, fpc
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
    fpc: FPC = unbiased_fpc
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
        """Return draws of the units at the positions `unit`, (n,)."""
        records, n = self._find_records(units), len(unit)
        if records is not None and self.fpc is unbiased_fpc and not self.repeats:
            return expand_rounds(units, unit, [self.make_round(units, n)])
        # without N, weights are known up to a factor, which suffices for ratios
        weight = (1.0 if records is None else records) / (n * units.size[unit])
        theta = find_theta(n, self.population, self.fpc)
        return count_each(unit, weight, fpc=theta, absolute=records is not None)


@dataclass(frozen=True, slots=True, eq=False)
class DistinctEntities:
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


@dataclass(frozen=True, slots=True, eq=False)
class UniformClusters:
    """Units drawn uniformly: entities, blocks or predicted clusters.

    Each of n draws from T units has weight T/n, or 1/n if T is not known ([B22]).

    Parameters
    ----------
    population : int, optional
        Number of units in the population, if they were drawn without replacement. A sample of all units, a
        census, then has standard error 0.
    draws : sequence of unit ids, optional
        The unit of each draw, with repeats, if units were drawn with replacement. By default each labelled
        unit is one draw.
    fpc : callable (n, T) -> θ
        Finite-population correction, in [0, 1].

    Raises
    ------
    DataError
        In `expand`, if draws and labelled units differ, if `population` is less than the draws, or more than
        the records allow, or if units repeat although it is passed.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> eb.UniformClusters(population=3).expand(units).weight
    array([1.5, 1.5])
    """

    population: int | None = None
    draws: Ids | None = None
    fpc: FPC = unbiased_fpc

    depends_on_labels: ClassVar[bool] = False
    fixed_size: ClassVar[bool] = True

    @property
    def without_repeats(self) -> bool:
        return self.population is not None

    def selection(self, size: FloatArray, units: Units) -> FloatArray:
        return np.ones_like(size)

    def expand(self, units: Units) -> DrawnUnits:
        unit = unit_of_draws(units, self.draws)
        need_distinct(unit, units, self.population)
        return self.expand_draws(units, unit)

    def expand_draws(self, units: Units, unit: IntArray) -> DrawnUnits:
        """Return draws of the units at the positions `unit`, (n,)."""
        n, known = len(unit), self.population is not None
        weight = np.full(n, (1 if self.population is None else self.population) / n)
        return count_each(unit, weight, fpc=find_theta(n, self.population, self.fpc), absolute=known)
