"""How the units were drawn: each design turns units into draws, weights and their variance.

In every design a total is estimated by Σ over draws of weight × y. Without replacement the
variance carries θ = 1 - n/T, which makes it unbiased for a total (Cochran 1977, theorem 2.2).
The paper's θ = 1 - (n-1)/(T-1) is T/(T-1) times larger: pass `correction=paper_theta` for it.
[B22] is Binette et al. (2022), arXiv 2210.01230.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from .arrays import FloatArray, IntArray
from .clustering import Clustering, as_index
from .columns import RECORDS
from .errors import DataError, member, need_object, number, some, whole
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


@runtime_checkable
class WithLaw(Protocol):
    """A design whose weights change with errors of labelling in a known way (see `erbayes.sensitivity`)."""

    @property
    def weights_follow_labels(self) -> bool:
        """True if a unit weighs less the more records its labels hold; False if labels do not matter."""
        ...


def _drawn(units: Units, draws: Any) -> IntArray:
    """Unit of each draw; every unit once if `draws` is None. Draws of omitted units are no draws."""
    if not len(units):
        raise DataError("the sample holds no unit")
    if draws is None:
        return np.arange(len(units))
    if isinstance(draws, str | Iterator) or not isinstance(draws, Iterable):
        raise DataError(f"draws must be a list of unit ids, not {draws!r}")
    listed = as_index(draws)
    listed = listed[~listed.isin(units.omitted)]
    unit = units.ids.get_indexer(listed).astype(np.int64)
    if (unit < 0).any():
        raise DataError(f"{int((unit < 0).sum())} draws name units without labels: {some(listed[unit < 0])}")
    undrawn = np.setdiff1d(np.arange(len(units)), unit)
    if len(undrawn):
        raise DataError(f"{len(undrawn)} labelled units were never drawn: {some(units.ids[undrawn])}")
    return unit


def _theta(n: int, T: int, correction: Correction) -> float:
    """θ of n draws without replacement from T."""
    need_object(correction, "__call__", "a correction is a function such as sampling_fraction")
    return number(correction(n, T), f"correction({n}, {T})", lambda theta: 0 <= theta <= 1, "lie in [0, 1]")


def _single_stratum(n: int, population: int | None, correction: Correction) -> StratifiedDraws:
    if population is not None:
        population = whole(population, "population")
        if n > population:
            raise DataError(f"{n} draws without replacement from a population of {population}")
    theta = 1.0 if population is None else _theta(n, population, correction) if population > 1 else 0.0
    return StratifiedDraws(np.zeros(n, dtype=np.int64), np.array([theta]))


def _need_frame(records: int | None, units: Units, argument: str) -> None:
    """Refuse a frame of fewer records than the prediction holds."""
    known = units.population
    if records is None or known is None:
        return
    if whole(records, argument) < known:
        raise DataError(
            f"{argument} = {records}, but the prediction holds {known:.0f} records: restrict it to those "
            "that were drawn from"
        )


def _need_room(population: int | None, units: Units) -> None:
    """Refuse more units than the prediction's records leave room for: each unit has a record."""
    known = units.population
    if population is None or known is None or units.unmatched:
        return
    room = len(units) + known - units.size.sum()
    if whole(population, "population") > room:
        raise DataError(
            f"population = {population} units, but the prediction holds {known:.0f} records, which leaves "
            f"room for {room:.0f} at most: pass the prediction of all records of the population, or the "
            "number of its units"
        )


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
    def weights_follow_labels(self) -> bool:
        """True: see `WithLaw`."""
        return True

    @property
    def without_repeats(self) -> bool:
        return False

    @property
    def fixed_size(self) -> bool:
        return True

    def selection(self, size: FloatArray, units: Units) -> FloatArray:
        return size

    def expand(self, units: Units) -> Expansion:
        _need_frame(self.population, units, "population")
        frame, known = self.population, units.population
        if frame is not None and known is not None and frame > known and not units.unmatched:
            raise DataError(
                f"population = {frame}, but the prediction holds {known:.0f} records: pass the "
                "prediction of all records that were drawn from, or their number"
            )
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
    def weights_follow_labels(self) -> bool:
        """True: see `WithLaw`."""
        return True

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
            return whole(self.records, "records")
        if units.known is None:
            raise DataError("the number of records is not known: pass records=")
        return int(units.known.total(RECORDS))

    def expand(self, units: Units) -> Expansion:
        if whole(self.draws, "draws", 0) < len(units):
            raise DataError(f"{self.draws} draws cannot have found {len(units)} distinct units")
        _need_frame(self.records, units, "records")
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
        census) then has standard error 0. Each unit has a record of the prediction, so more units than
        that leaves room for are refused.
    draws : sequence of unit ids, optional
        The unit of each draw, repeats kept; only with replacement.
    correction : callable (n, T) -> θ
    """

    population: int | None = None
    draws: Drawn | None = None
    correction: Correction = sampling_fraction

    @property
    def weights_follow_labels(self) -> bool:
        """False: see `WithLaw`."""
        return False

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
        _need_room(self.population, units)
        return self.over(units, unit)

    def over(self, units: Units, unit: IntArray) -> Expansion:
        """The expansion of draws given as positions among the units, (..., n)."""
        n = unit.shape[-1]
        variance = _single_stratum(n, self.population, self.correction)
        total = 1 if self.population is None else self.population
        return Expansion(unit, np.full(unit.shape, total / n), self.population is not None, variance)


def _refuse_repeats(unit: IntArray, population: int | None) -> None:
    if population is None:
        return
    repeats = len(unit) - len(np.unique(unit))
    if repeats:
        raise DataError(f"{repeats} units are listed twice, but the design has no repeats")


LARGEST = 1e100
"""Weights above it, or below its inverse, leave no room for their squares."""


def _numbers(values: Any, ids: pd.Index, what: str, of: str) -> FloatArray:
    """Numbers keyed by id, in the order of `ids`."""
    series = _by_id(values, what)
    if not series.index.is_unique:
        raise DataError(f"{what}: {int(series.index.duplicated().sum())} {of} are listed twice")
    where = series.index.get_indexer(ids)
    if (where < 0).any():
        raise DataError(
            f"{what} lack {int((where < 0).sum())} of {len(ids)} {of}, such as {some(ids[where < 0])}"
        )
    return _floats(series, what)[where]


def _by_id(values: Any, what: str) -> pd.Series:
    if isinstance(values, pd.Series):
        return values
    if not isinstance(values, Mapping):
        raise DataError(f"{what} must be a Series or a mapping by id, not {type(values).__name__}")
    return pd.Series(list(values.values()), as_index(list(values)))


def _floats(values: Any, what: str) -> FloatArray:
    array = np.asarray(values)
    if array.dtype.kind in "cmM" or array.ndim != 1:
        raise DataError(f"{what} must be one real number each, not {array.dtype} of shape {array.shape}")
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} must be numbers: {error}") from error


def _weights(units: Units, weights: Any) -> FloatArray:
    values = _numbers(weights, units.ids, "weights", "units")
    bad = ~((values >= 1 / LARGEST) & (values <= LARGEST))
    if bad.any():
        raise DataError(
            f"weights must lie between {1 / LARGEST:g} and {LARGEST:g}, positive and finite; "
            f"{int(bad.sum())} are not, such as that of {some(units.ids[bad])}"
        )
    return values


@dataclass(frozen=True, slots=True, eq=False)
class KnownWeights:
    """Units drawn with known probabilities; weight ∝ 1/p.

    With `population` the variance carries 1 - n/T, which is right for draws that are uniform but for their
    weights. Draws of unequal probabilities without replacement have another variance (Yates and Grundy),
    which needs the chance of each pair: leave `population` out, and the standard errors are too large.

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
        _refuse_repeats(unit, self.population)
        _need_room(self.population, units)
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
        need_object(self.probability, "__call__", "probability is a function of sizes, such as numpy.sqrt")
        try:
            chance = np.asarray(self.probability(size), dtype=float)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"probability must give a number for each of an array of sizes: {error}"
            ) from error
        if chance.shape not in {(), size.shape}:
            raise DataError(
                f"probability gave {chance.size} chances for {size.size} sizes: it takes an array of them"
            )
        chance = np.broadcast_to(chance, size.shape)
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

    A unit of N_c records reached by a record of probability p_i has weight 1/(n p_i N_c). If the
    probabilities of all its records are known, `WeightedRecords.of` weighs it by 1/(n p_c), p_c their sum
    (Hansen and Hurwitz). That has the smaller variance for every total, since p_c/N_c is the mean of the p_i
    and 1/p_c the mean of the other weight over the record that is drawn.

    Parameters
    ----------
    units : sequence of unit ids, (n,)
        The unit of each drawn record, repeats kept.
    probability : sequence of float, (n,)
        Probability p_i of that record at a single draw. A Series needs the index of `units`.
    absolute : bool
        True where the p_i of all records sum to 1; False where they are known up to a factor.
    summed : bool
        True where each probability is p_c, of the whole unit.
    """

    units: Drawn
    probability: Sequence[float] | pd.Series | FloatArray
    absolute: bool = False
    summed: bool = False

    @property
    def weights_follow_labels(self) -> bool:
        """True: see `WithLaw`."""
        return True

    @classmethod
    def of(cls, labels: Any, drawn: Drawn, probability: Any, absolute: bool = False) -> WeightedRecords:
        """From the probability of every labelled record.

        Parameters
        ----------
        labels : memberships
            The unit of every labelled record: its entity, or its block.
        drawn : sequence of record ids, (n,)
            The drawn records, repeats kept.
        probability : Series or mapping, record id -> p
            Of every labelled record at a single draw, 0 or more; other records are ignored. A unit whose
            records all have 0 is never drawn, and estimates do not cover it.
        absolute : bool
            True where the p of all records of the population sum to 1.

        Raises
        ------
        DataError
            A drawn record without a label, a labelled record without a probability, negative ones.

        Examples
        --------
        Two records drawn with probability proportional to the size of their predicted cluster:

        >>> labels = {1: "x", 2: "x", 3: "y"}
        >>> design = WeightedRecords.of(labels, [2, 3], {1: 0.2, 2: 0.2, 3: 0.1, 4: 0.5}, absolute=True)
        >>> design.probability.tolist()
        [0.4, 0.1]
        """
        labels = Clustering.of(labels, "labels")
        p = _numbers(probability, labels.records, "probabilities", "labelled records")
        bad = ~((p >= 0) & (p <= LARGEST))
        if bad.any():
            raise DataError(
                f"probabilities must be 0 or more and finite; {int(bad.sum())} are not, such as that of "
                f"{some(labels.records[bad])}"
            )
        listed = as_index(drawn)
        at = labels.records.get_indexer(listed)
        if (at < 0).any():
            raise DataError(f"{int((at < 0).sum())} drawn records have no label: {some(listed[at < 0])}")
        unit = labels.codes[at]
        return cls(labels.clusters[unit], np.bincount(labels.codes, p)[unit], absolute, summed=True)

    def expand(self, units: Units) -> Expansion:
        unit = _drawn(units, self.units)
        p = _floats(_of_draws(self.probability, self.units), "probabilities")
        if len(p) != len(unit):
            raise DataError(f"{len(p)} probabilities for {len(unit)} drawn records")
        bad = ~((p >= 1 / LARGEST) & (p <= (1 + 1e-12 if self.absolute else LARGEST)))
        if bad.any():
            raise DataError(f"probabilities must lie in (0, 1]; {int(bad.sum())} do not: {some(p[bad])}")
        records = 1.0 if self.summed else units.size[unit]
        return Expansion(
            unit,
            1 / (len(unit) * p * records),
            self.absolute,
            _single_stratum(len(unit), None, sampling_fraction),
        )


def _of_draws(probability: Any, units: Any) -> Any:
    """Probabilities in the order of the draws."""
    if not isinstance(probability, pd.Series):
        return probability
    if isinstance(units, pd.Series) and units.index.is_unique and probability.index.is_unique:
        if len(units) == len(probability) and not len(units.index.difference(probability.index)):
            return probability.reindex(units.index)
    elif isinstance(units, pd.Series) and units.index.equals(probability.index):
        return probability
    elif probability.index.equals(pd.RangeIndex(len(probability))):
        return probability
    raise DataError(
        "the index of the probabilities is not that of units: pass both as Series on one index, or "
        "probability.to_numpy() in the order of units"
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

    @property
    def weights_follow_labels(self) -> bool:
        """False: see `WithLaw`."""
        return False

    def expand(self, units: Units) -> Expansion:
        member(self.single_unit, SingleUnit, "single_unit")
        if not isinstance(self.population, Mapping | pd.Series):
            raise DataError(f"population must map strata to numbers of units, not be {self.population!r}")
        population = {h: whole(T, f"population of stratum {h!r}", 0) for h, T in self.population.items()}
        given = _by_id(self.stratum, "strata")
        if not given.index.is_unique:
            raise DataError(f"strata: {int(given.index.duplicated().sum())} units are listed twice")
        given = given.dropna()
        where = given.index.get_indexer(units.ids)
        if (where < 0).any():
            raise DataError(
                f"{int((where < 0).sum())} units have no stratum, such as {some(units.ids[where < 0])}"
            )
        codes, names = pd.factorize(given.array[where])
        empty = [h for h, T in population.items() if T and h not in set(names)]
        if empty:
            raise DataError(
                f"{len(empty)} strata of {sum(population[h] for h in empty)} units hold no labelled "
                f"unit, such as {some(empty)}: nothing tells of them; merge strata, or leave them out of "
                "the population and say so"
            )
        lacking = [h for h in names if h not in population]
        if lacking:
            raise DataError(f"{len(lacking)} strata have no population size: {some(lacking)}")
        n = np.bincount(codes)
        T = np.array([population[h] for h in names])
        if (n > T).any():
            raise DataError(f"more units drawn than there are in strata {some(names[n > T])}")
        _need_room(int(T.sum()), units)
        lonely = (n == 1) & (T > 1)
        if lonely.any() and self.single_unit is SingleUnit.ERROR:
            raise DataError(
                f"{int(lonely.sum())} strata hold a single draw, such as {some(names[lonely])}: "
                "merge strata or choose a rule of SingleUnit"
            )
        theta = np.array(
            [0.0 if t == k else _theta(int(k), int(t), self.correction) for k, t in zip(n, T, strict=True)]
        )
        variance = StratifiedDraws(codes.astype(np.int64), theta, self.single_unit is SingleUnit.ADJUST)
        return Expansion(np.arange(len(units)), (T / n)[codes], True, variance)
