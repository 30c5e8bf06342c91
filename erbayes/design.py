"""How the units were drawn: each design turns units into draws, weights and their variance.

In every design a total is estimated by Σ over draws of weight × y. Without replacement the
variance carries θ = 1 - n/T, which makes it unbiased for a total (Cochran 1977, theorem 2.2).
The paper's θ = 1 - (n-1)/(T-1) is T/(T-1) times larger: pass `correction=paper_theta` for it.
[B22] is Binette et al. (2022), arXiv 2210.01230.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from .arrays import FloatArray, IntArray
from .columns import RECORDS
from .errors import DataError, some
from .units import Units
from .variance import DistinctDraws, StratifiedDraws, Variance

Correction = Callable[[int, int], float]
Drawn = Sequence[Any] | pd.Index


def sampling_fraction(n: int, T: int) -> float:
    """θ = 1 - n/T: unbiased for n units drawn without replacement from T."""
    return 1 - n / T


def paper_theta(n: int, T: int) -> float:
    """θ = 1 - (n-1)/(T-1), the paper's."""
    return 1 - (n - 1) / (T - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Expansion:
    """Draws and their weights: a total is Σ weight × y[unit].

    Attributes
    ----------
    unit : int array, (..., n)
        Unit of each draw. Leading axes: many samples of a study at once.
    weight : float array, (..., n)
    absolute : bool
        False where weights, and so totals, are known only up to a common factor.
    variance : Variance
    """

    unit: IntArray
    weight: FloatArray
    absolute: bool
    variance: Variance


class Design(Protocol):
    """A way of drawing units."""

    def expand(self, units: Units) -> Expansion: ...


@runtime_checkable
class SelectedBySize(Protocol):
    """A design under which the chance of a unit depends on its size alone."""

    @property
    def without_repeats(self) -> bool:
        """True where no unit is drawn twice."""
        ...

    @property
    def fixed_size(self) -> bool:
        """True where the design sets the number of draws; else `selection` is the very chance."""
        ...

    def expand(self, units: Units) -> Expansion: ...

    def selection(self, size: FloatArray, units: Units) -> FloatArray:
        """Chance of a unit of each size, up to a factor."""
        ...


def _drawn(units: Units, draws: Any) -> IntArray:
    """Unit of each draw; every unit once where `draws` is None."""
    if not len(units):
        raise DataError("the sample holds no unit")
    if draws is None:
        return np.arange(len(units))
    listed = pd.Index(draws)
    unit = units.ids.get_indexer(listed).astype(np.int64)
    if (unit < 0).any():
        raise DataError(f"{int((unit < 0).sum())} draws name units without labels: {some(listed[unit < 0])}")
    undrawn = np.setdiff1d(np.arange(len(units)), unit)
    if len(undrawn):
        raise DataError(f"{len(undrawn)} labelled units were never drawn: {some(units.ids[undrawn])}")
    return unit


def _single_stratum(n: int, population: int | None, correction: Correction) -> StratifiedDraws:
    if population is not None and n > population:
        raise DataError(f"{n} draws without replacement from a population of {population}")
    theta = 1.0 if population is None else correction(n, population) if population > 1 else 0.0
    return StratifiedDraws(np.zeros(n, dtype=np.int64), np.array([theta]))


@dataclass(frozen=True, slots=True, eq=False)
class UniformRecords:
    """Records drawn uniformly, each leading to its unit: probability proportional to size.

    Parameters
    ----------
    draws : sequence of unit ids, optional
        The unit of each drawn record, repeats kept. None: each labelled unit is one draw.
    population : int, optional
        Number of records in the frame, where drawn without replacement.
    correction : callable (n, T) -> θ
    """

    draws: Drawn | None = None
    population: int | None = None
    correction: Correction = sampling_fraction

    @property
    def without_repeats(self) -> bool:
        return False

    @property
    def fixed_size(self) -> bool:
        return True

    def selection(self, size: FloatArray, units: Units) -> FloatArray:
        return size

    def expand(self, units: Units) -> Expansion:
        return self.over(units, _drawn(units, self.draws))

    def over(self, units: Units, unit: IntArray) -> Expansion:
        """The expansion of draws given as positions among the units, (..., n)."""
        records, n = units.population, unit.shape[-1]
        scale = 1.0 if records is None else records
        return Expansion(
            unit,
            scale / (n * units.size[unit]),
            records is not None,
            _single_stratum(n, self.population, self.correction),
        )


@dataclass(frozen=True, slots=True, eq=False)
class DistinctEntities:
    """The distinct units among `draws` records drawn uniformly with replacement.

    Where a label set lists each entity once although some were drawn twice, this is its design:
    weights 1/N_c without the repeats bias precision.

    Parameters
    ----------
    draws : int
        Number of records drawn.
    records : int, optional
        Records in the population; by default those of the prediction.
    """

    draws: int
    records: int | None = None

    @property
    def without_repeats(self) -> bool:
        return True

    @property
    def fixed_size(self) -> bool:
        return False

    def selection(self, size: FloatArray, units: Units) -> FloatArray:
        return DistinctDraws(np.minimum(size / self._records(units), 1), self.draws).inclusion

    def _records(self, units: Units) -> int:
        if self.records is not None:
            return self.records
        if units.known is None:
            raise DataError("the number of records is not known: pass records=")
        return int(units.known.total(RECORDS))

    def expand(self, units: Units) -> Expansion:
        if self.draws < len(units):
            raise DataError(f"{self.draws} draws cannot have found {len(units)} distinct units")
        records, size = self._records(units), units.size
        if size.max() >= records:
            raise DataError(f"a unit of {int(size.max())} records in a population of {records}")
        variance = DistinctDraws(size / records, self.draws)
        return Expansion(np.arange(len(units)), 1 / variance.inclusion, True, variance)


@dataclass(frozen=True, slots=True, eq=False)
class UniformClusters:
    """Units (entities, blocks, predicted clusters) drawn uniformly.

    Parameters
    ----------
    population : int, optional
        Number of units in the population, where drawn without replacement. A full sample (a
        census) then has standard error 0.
    draws : sequence of unit ids, optional
        The unit of each draw, repeats kept; only with replacement.
    correction : callable (n, T) -> θ
    """

    population: int | None = None
    draws: Drawn | None = None
    correction: Correction = sampling_fraction

    @property
    def without_repeats(self) -> bool:
        return self.population is not None

    @property
    def fixed_size(self) -> bool:
        return True

    def selection(self, size: FloatArray, units: Units) -> FloatArray:
        return np.ones_like(size)

    def expand(self, units: Units) -> Expansion:
        unit = _drawn(units, self.draws)
        _refuse_repeats(unit, self.population)
        return self.over(units, unit)

    def over(self, units: Units, unit: IntArray) -> Expansion:
        """The expansion of draws given as positions among the units, (..., n)."""
        total, n = 1 if self.population is None else self.population, unit.shape[-1]
        return Expansion(
            unit,
            np.full(unit.shape, total / n),
            self.population is not None,
            _single_stratum(n, self.population, self.correction),
        )


def _refuse_repeats(unit: IntArray, population: int | None) -> None:
    if population is None:
        return
    repeats = len(unit) - len(np.unique(unit))
    if repeats:
        raise DataError(f"{repeats} units are listed twice, but the design has no repeats")


def _weights(units: Units, weights: Any) -> FloatArray:
    series = weights if isinstance(weights, pd.Series) else pd.Series(dict(weights), dtype=float)
    if not series.index.is_unique:
        raise DataError(f"weights: {int(series.index.duplicated().sum())} units are listed twice")
    where = series.index.get_indexer(units.ids)
    if (where < 0).any():
        raise DataError(
            f"weights lack {int((where < 0).sum())} of {len(units)} units, such as "
            f"{some(units.ids[where < 0])}"
        )
    values: FloatArray = np.asarray(series, dtype=np.float64)[where]
    bad = ~(np.isfinite(values) & (values > 0))
    if bad.any():
        raise DataError(
            f"weights must be positive and finite; {int(bad.sum())} are not, such as that of "
            f"{some(units.ids[bad])}"
        )
    return values


@dataclass(frozen=True, slots=True, eq=False)
class KnownWeights:
    """Units drawn with known probabilities; weight ∝ 1/p.

    Parameters
    ----------
    weights : Series or mapping, unit id -> weight
        Positive, finite, for every labelled unit.
    draws, population, correction
        As in `UniformClusters`.
    absolute : bool
        True where Σ weight × y over draws estimates the total itself, not just up to a factor.
    """

    weights: pd.Series | Mapping[Any, float]
    draws: Drawn | None = None
    population: int | None = None
    correction: Correction = sampling_fraction
    absolute: bool = False

    def expand(self, units: Units) -> Expansion:
        unit = _drawn(units, self.draws)
        return Expansion(
            unit,
            _weights(units, self.weights)[unit],
            self.absolute,
            _single_stratum(len(unit), self.population, self.correction),
        )


@dataclass(frozen=True, slots=True, eq=False)
class BySize:
    """Units drawn with replacement with probability proportional to a known function of their size.

    Parameters
    ----------
    probability : callable, sizes in records -> chance up to a factor
        Vectorised, positive.
    draws : sequence of unit ids, optional
        The unit of each draw, repeats kept.

    Examples
    --------
    Giants twice as likely for each doubling of the square root of their size:

    >>> design = BySize(np.sqrt)
    """

    probability: Callable[[FloatArray], FloatArray]
    draws: Drawn | None = None

    @property
    def without_repeats(self) -> bool:
        return False

    @property
    def fixed_size(self) -> bool:
        return True

    def selection(self, size: FloatArray, units: Units) -> FloatArray:
        chance = np.broadcast_to(np.asarray(self.probability(size), dtype=float), size.shape)
        bad = ~(np.isfinite(chance) & (chance > 0))
        if bad.any():
            raise DataError(
                f"probability must be positive and finite for every size; {int(bad.sum())} "
                f"are not, such as that of size {some(size[bad])}"
            )
        return chance

    def expand(self, units: Units) -> Expansion:
        unit = _drawn(units, self.draws)
        return Expansion(
            unit,
            1 / self.selection(units.size[unit], units),
            False,
            _single_stratum(len(unit), None, sampling_fraction),
        )


@dataclass(frozen=True, slots=True, eq=False)
class WeightedRecords:
    """Records drawn with known probabilities, each leading to its unit ([B22] lemma 1).

    A unit of N_c records reached by a record of probability p_i has weight 1/(n p_i N_c).

    Parameters
    ----------
    units : sequence of unit ids, (n,)
        The unit of each drawn record, repeats kept.
    probability : sequence of float, (n,)
        Probability p_i of that record at a single draw.
    absolute : bool
        True where the p_i of all records sum to 1; False where they are known up to a factor.
    """

    units: Drawn
    probability: Sequence[float]
    absolute: bool = False

    def expand(self, units: Units) -> Expansion:
        unit = _drawn(units, self.units)
        p = np.asarray(self.probability, dtype=float)
        if len(p) != len(unit):
            raise DataError(f"{len(p)} probabilities for {len(unit)} drawn records")
        bad = ~(np.isfinite(p) & (p > 0) & (p <= (1 if self.absolute else np.inf)))
        if bad.any():
            raise DataError(f"probabilities must lie in (0, 1]; {int(bad.sum())} do not: {some(p[bad])}")
        return Expansion(
            unit,
            1 / (len(unit) * p * units.size[unit]),
            self.absolute,
            _single_stratum(len(unit), None, sampling_fraction),
        )


class SingleUnit(Enum):
    """What a stratum with one draw contributes to the variance."""

    ERROR = "error"
    """Refuse (the default)."""
    CERTAINTY = "certainty"
    """Nothing, for the unit was certain to be drawn."""
    ADJUST = "adjust"
    """Its squared distance from the mean of all draws, which is conservative."""


@dataclass(frozen=True, slots=True, eq=False)
class Stratified:
    """Units drawn uniformly without replacement within strata.

    Parameters
    ----------
    stratum : Series or mapping, unit id -> stratum
    population : mapping, stratum -> number of units
    single_unit : SingleUnit
        Rule for strata of one draw; a stratum whose only unit was drawn is a census under each.
    correction : callable (n, T) -> θ
    """

    stratum: pd.Series | Mapping[Any, Any]
    population: Mapping[Any, int]
    single_unit: SingleUnit = SingleUnit.ERROR
    correction: Correction = sampling_fraction

    def expand(self, units: Units) -> Expansion:
        given = pd.Series(self.stratum)
        if not given.index.is_unique:
            raise DataError(f"strata: {int(given.index.duplicated().sum())} units are listed twice")
        given = given.dropna()
        where = given.index.get_indexer(units.ids)
        if (where < 0).any():
            raise DataError(
                f"{int((where < 0).sum())} units have no stratum, such as {some(units.ids[where < 0])}"
            )
        codes, names = pd.factorize(given.array[where])
        empty = [h for h, T in self.population.items() if T and h not in set(names)]
        if empty:
            raise DataError(
                f"{len(empty)} strata of {sum(self.population[h] for h in empty)} units hold no labelled "
                f"unit, such as {some(empty)}: nothing tells of them; merge strata, or leave them out of "
                "the population and say so"
            )
        lacking = [h for h in names if h not in self.population]
        if lacking:
            raise DataError(f"{len(lacking)} strata have no population size: {some(lacking)}")
        n = np.bincount(codes)
        T = np.array([self.population[h] for h in names])
        if (n > T).any():
            raise DataError(f"more units drawn than there are in strata {some(names[n > T])}")
        lonely = (n == 1) & (T > 1)
        if lonely.any() and self.single_unit is SingleUnit.ERROR:
            raise DataError(
                f"{int(lonely.sum())} strata hold a single draw, such as {some(names[lonely])}: "
                "merge strata or choose a rule of SingleUnit"
            )
        theta = np.array(
            [0.0 if t == k else self.correction(int(k), int(t)) for k, t in zip(n, T, strict=True)]
        )
        variance = StratifiedDraws(codes.astype(np.int64), theta, self.single_unit is SingleUnit.ADJUST)
        return Expansion(np.arange(len(units)), (T / n)[codes], True, variance)
