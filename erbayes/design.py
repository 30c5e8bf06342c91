"""Designs: the ways in which units were drawn. Each turns units into draws, weights and their variance.

In every design the sum of weight × column over draws estimates a total. For n draws without replacement from
T units, the variance has the factor θ = 1 - n/T. It is then unbiased for a total (Cochran 1977, theorem 2.2).
The paper's θ = 1 - (n-1)/(T-1) is T/(T-1) times as large. It needs `correction=paper_theta`.

Source: [B22] Binette et al. (2022), arXiv 2210.01230.
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
from .errors import DataError, head, member, need_object, number, whole
from .units import Units
from .variance import DistinctDraws, StratifiedDraws, Variance

Correction = Callable[[int, int], float]
Ids = Sequence[Any] | pd.Index


def sampling_fraction(n: int, T: int) -> float:
    """Return θ = 1 - n/T, with which the variance is unbiased for n units drawn without replacement from T.

    Examples
    --------
    >>> sampling_fraction(25, 100)
    0.75
    """
    return 1 - n / T


def paper_theta(n: int, T: int) -> float:
    """Return θ = 1 - (n-1)/(T-1), the factor of [B22] for n units drawn without replacement from T.

    Examples
    --------
    >>> paper_theta(34, 100)
    0.6666666666666667
    """
    return 1 - (n - 1) / (T - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Expansion:
    """Draws with their weights and their variance. The sum of weight × column over draws estimates a total.

    Attributes
    ----------
    unit : int array, (..., n)
        Position of the unit of each draw. Leading axes hold many samples of a study at once.
    weight : float array, (..., n)
        The number of units that each draw stands for.
    absolute : bool
        False if weights, and so totals, are known only up to a common factor.
    variance : Variance
        The variation of the draws over repeated sampling.
    """

    unit: IntArray
    weight: FloatArray
    absolute: bool
    variance: Variance


class Design(Protocol):
    """A way of drawing units."""

    def expand(self, units: Units) -> Expansion:
        """Return the draws of a sample with their weights and their variance.

        Raises
        ------
        DataError
            If the design does not fit the units.
        """
        ...


@runtime_checkable
class SelectedBySize(Protocol):
    """A design under which the chance to draw a unit depends on its size alone."""

    @property
    def without_repeats(self) -> bool:
        """True if no unit is drawn twice."""
        ...

    @property
    def fixed_size(self) -> bool:
        """True if the design fixes the number of draws.

        If it is False, `selection` returns the chances themselves, not up to a factor.
        """
        ...

    def expand(self, units: Units) -> Expansion: ...

    def selection(self, size: FloatArray, units: Units) -> FloatArray:
        """Return the chance to draw a unit of each size, up to a factor.

        Parameters
        ----------
        size : float array, (k,)
            Sizes in records.
        units : Units
        """
        ...


@runtime_checkable
class WithLaw(Protocol):
    """A design whose weights change in a known way with labelling errors (see `erbayes.sensitivity`)."""

    @property
    def weights_follow_labels(self) -> bool:
        """True if a unit weighs less the more records its labels give it; False if weights ignore labels."""
        ...


def _unit_of_draws(units: Units, draws: Any) -> IntArray:
    """Return the position of the unit of each draw, (n,). If `draws` is None, every unit is drawn once.

    Draws of omitted units are left out.
    """
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
        raise DataError(f"{int((unit < 0).sum())} draws name units without labels: {head(listed[unit < 0])}")
    undrawn = np.setdiff1d(np.arange(len(units)), unit)
    if len(undrawn):
        raise DataError(f"{len(undrawn)} labelled units were never drawn: {head(units.ids[undrawn])}")
    return unit


def _theta(n: int, T: int, correction: Correction) -> float:
    """Return θ of n draws without replacement from T, refusing one outside [0, 1]."""
    need_object(correction, "__call__", "a correction is a function such as sampling_fraction")
    return number(correction(n, T), f"correction({n}, {T})", lambda theta: 0 <= theta <= 1, "lie in [0, 1]")


def _single_stratum(n: int, population: int | None, correction: Correction) -> StratifiedDraws:
    """Return the variance of n draws from one stratum, with replacement if `population` is None."""
    if population is not None:
        population = whole(population, "population")
        if n > population:
            raise DataError(f"{n} draws without replacement from a population of {population}")
    theta = 1.0 if population is None else _theta(n, population, correction) if population > 1 else 0.0
    return StratifiedDraws(np.zeros(n, dtype=np.int64), np.array([theta]))


def _need_frame(records: int | None, units: Units, argument: str) -> None:
    """Refuse a frame that has fewer records than the prediction."""
    known = units.population
    if records is None or known is None:
        return
    if whole(records, argument) < known:
        raise DataError(
            f"{argument} = {records}, but the prediction holds {known:.0f} records: restrict it to those "
            "that were drawn from"
        )


def _need_room(population: int | None, units: Units) -> None:
    """Refuse a population of more units than the prediction has records for. Each unit has at least one."""
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
    """Records drawn uniformly, each with its whole unit: a chance proportional to size.

    A draw of a unit of N_c records has weight N/(n N_c), for n draws from N records ([B22]).

    Parameters
    ----------
    draws : sequence of unit ids, optional
        The unit of each drawn record, with repeats. By default each labelled unit is one draw.
    population : int, optional
        Number of records in the frame, if they were drawn without replacement.
    correction : callable (n, T) -> θ
        Finite-population correction, in [0, 1].

    Raises
    ------
    DataError
        In `expand`, if draws and labelled units differ, or if `population` is not the number of records.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> eb.UniformRecords(draws=["x", "x", "y"]).expand(units).weight.round(3)
    array([0.667, 0.667, 1.333])
    """

    draws: Ids | None = None
    population: int | None = None
    correction: Correction = sampling_fraction

    @property
    def weights_follow_labels(self) -> bool:
        """True: a unit weighs less if labels give it more records (see `WithLaw`)."""
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
        return self.expand_draws(units, _unit_of_draws(units, self.draws))

    def expand_draws(self, units: Units, unit: IntArray) -> Expansion:
        """Return the expansion of draws, whose units are at the positions `unit`, (..., n)."""
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
    """The distinct units of records drawn uniformly with replacement.

    Labels have this design if they list each entity once, although some entities were drawn more than once.
    Weights 1/N_c without the repeats bias precision. An entity of N_c among N records is in the sample with
    probability π_c = 1 - (1 - N_c/N)^n, and has weight 1/π_c (Horvitz and Thompson 1952).

    Parameters
    ----------
    draws : int
        Number n of records drawn, repeats included.
    records : int, optional
        Number N of records in the population. By default those of the prediction.

    Raises
    ------
    DataError
        In `expand`, if there are more units than draws, or if `records` is unknown or too small.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> eb.DistinctEntities(draws=2).expand(units).weight.round(3)
    array([1.333, 2.286])
    """

    draws: int
    records: int | None = None

    @property
    def weights_follow_labels(self) -> bool:
        """True: a unit weighs less if labels give it more records (see `WithLaw`)."""
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
    """Units drawn uniformly: entities, blocks or predicted clusters.

    Each of n draws from T units has weight T/n, or 1/n if T is not known ([B22]).

    Parameters
    ----------
    population : int, optional
        Number of units in the population, if they were drawn without replacement. A sample of all units, a
        census, then has standard error 0. The number cannot exceed the records of the prediction, since each
        unit has one.
    draws : sequence of unit ids, optional
        The unit of each draw, with repeats, if units were drawn with replacement. By default each labelled
        unit is one draw.
    correction : callable (n, T) -> θ
        Finite-population correction, in [0, 1].

    Raises
    ------
    DataError
        In `expand`, if draws and labelled units differ. If `population` is less than the draws, or more than
        the records allow. If units repeat although `population` is passed.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> eb.UniformClusters(population=3).expand(units).weight
    array([1.5, 1.5])
    """

    population: int | None = None
    draws: Ids | None = None
    correction: Correction = sampling_fraction

    @property
    def weights_follow_labels(self) -> bool:
        """False: weights do not depend on labels (see `WithLaw`)."""
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
        unit = _unit_of_draws(units, self.draws)
        _need_distinct(unit, units, self.population)
        return self.expand_draws(units, unit)

    def expand_draws(self, units: Units, unit: IntArray) -> Expansion:
        """Return the expansion of draws, whose units are at the positions `unit`, (..., n)."""
        n = unit.shape[-1]
        variance = _single_stratum(n, self.population, self.correction)
        total = 1 if self.population is None else self.population
        return Expansion(unit, np.full(unit.shape, total / n), self.population is not None, variance)


def _need_distinct(unit: IntArray, units: Units, population: int | None) -> None:
    """Refuse repeats, and too many units, in draws without replacement from `population`."""
    if population is not None and (repeats := len(unit) - len(np.unique(unit))):
        raise DataError(f"{repeats} units are listed twice, but the design has no repeats")
    _need_room(population, units)


LARGEST = 1e100
"""The largest weight. Squares of larger ones, or of weights below its inverse, leave the range of floats."""


def _numbers(values: Any, ids: pd.Index, what: str, owners: str) -> FloatArray:
    """Return numbers that are keyed by id, in the order of `ids`."""
    series = _series_by_id(values, what)
    if not series.index.is_unique:
        raise DataError(f"{what}: {int(series.index.duplicated().sum())} {owners} are listed twice")
    position = series.index.get_indexer(ids)
    lacking = ids[position < 0]
    if len(lacking):
        raise DataError(f"{what} lack {len(lacking)} of {len(ids)} {owners}, such as {head(lacking)}")
    return _floats(series, what)[position]


def _series_by_id(values: Any, what: str) -> pd.Series:
    """Return a Series or a mapping as a Series, refusing anything else."""
    if isinstance(values, pd.Series):
        return values
    if not isinstance(values, Mapping):
        raise DataError(f"{what} must be a Series or a mapping by id, not {type(values).__name__}")
    return pd.Series(list(values.values()), as_index(list(values)))


def _floats(values: Any, what: str) -> FloatArray:
    """Return real numbers as a float array, (n,), refusing anything else."""
    array = np.asarray(values)
    if array.dtype.kind in "cmM" or array.ndim != 1:
        raise DataError(f"{what} must be one real number each, not {array.dtype} of shape {array.shape}")
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} must be numbers: {error}") from error


def _weights(units: Units, weights: Any) -> FloatArray:
    """Return the weight of each unit, (units,), refusing those that are not positive and finite."""
    values = _numbers(weights, units.ids, "weights", "units")
    bad = ~((values >= 1 / LARGEST) & (values <= LARGEST))
    if bad.any():
        raise DataError(
            f"weights must lie between {1 / LARGEST:g} and {LARGEST:g}, positive and finite; "
            f"{int(bad.sum())} are not, such as that of {head(units.ids[bad])}"
        )
    return values


@dataclass(frozen=True, slots=True, eq=False)
class KnownWeights:
    """Units drawn with known chances; the weight of a unit is proportional to 1/chance.

    With `population` the variance has the factor θ = 1 - n/T. It is right only for uniform draws whose
    weights differ for another reason. Draws with unequal chances and without replacement have another
    variance (Yates and Grundy), which needs the chance of each pair. For these omit `population`; standard
    errors are then too large.

    Parameters
    ----------
    weights : Series or mapping, unit id -> weight
        Positive, finite, for every labelled unit.
    draws, population, correction
        As in `UniformClusters`.
    absolute : bool
        True if Σ weight × column over draws estimates the total itself, False if only up to a factor.

    Raises
    ------
    DataError
        In `expand`, if a labelled unit lacks a weight, or as in `UniformClusters`.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> eb.KnownWeights({"x": 1.0, "y": 2.0}).expand(units).weight
    array([1., 2.])
    """

    weights: pd.Series | Mapping[Any, float]
    draws: Ids | None = None
    population: int | None = None
    correction: Correction = sampling_fraction
    absolute: bool = False

    def expand(self, units: Units) -> Expansion:
        unit = _unit_of_draws(units, self.draws)
        _need_distinct(unit, units, self.population)
        return Expansion(
            unit,
            _weights(units, self.weights)[unit],
            self.absolute,
            _single_stratum(len(unit), self.population, self.correction),
        )


@dataclass(frozen=True, slots=True, eq=False)
class BySize:
    """Units drawn with replacement, with a chance that is a known function of their size.

    Parameters
    ----------
    probability : callable, sizes in records -> chance up to a factor
        Vectorised, positive.
    draws : sequence of unit ids, optional
        The unit of each draw, with repeats. By default each labelled unit is one draw.

    Raises
    ------
    DataError
        In `expand`, if a chance is not positive and finite, or if draws and labelled units differ.

    Examples
    --------
    A chance proportional to the square root of the size:

    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "x", 4: "x"})
    >>> eb.BySize(np.sqrt).expand(units).weight
    array([0.5])
    """

    probability: Callable[[FloatArray], FloatArray]
    draws: Ids | None = None

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
            raise DataError(f"probability must return one number per size: {error}") from error
        if chance.shape not in {(), size.shape}:
            raise DataError(
                f"probability returned {chance.size} chances for {size.size} sizes: it needs one per size"
            )
        chance = np.broadcast_to(chance, size.shape)
        bad = ~(np.isfinite(chance) & (chance > 0))
        if bad.any():
            raise DataError(
                f"probability must be positive and finite for every size; {int(bad.sum())} "
                f"are not, such as that of size {head(size[bad])}"
            )
        return chance

    def expand(self, units: Units) -> Expansion:
        unit = _unit_of_draws(units, self.draws)
        return Expansion(
            unit,
            1 / self.selection(units.size[unit], units),
            False,
            _single_stratum(len(unit), None, sampling_fraction),
        )


@dataclass(frozen=True, slots=True, eq=False)
class WeightedRecords:
    """Records drawn with known probabilities, each with its whole unit ([B22] lemma 1).

    If a record of probability p_i leads to a unit of N_c records, the draw has weight 1/(n p_i N_c). If the
    probabilities of all records of the unit are known, `WeightedRecords.of` makes the weight 1/(n p_c), with
    p_c their sum (Hansen and Hurwitz 1943). For each unit, it is the mean of the other weight over the
    records by which the unit may be drawn. Its variance is therefore the smaller one for every total.

    Parameters
    ----------
    units : sequence of unit ids, (n,)
        The unit of each drawn record, with repeats.
    probability : sequence of float, (n,)
        Probability p_i of that record at a single draw, above 0 and at most 1 if `absolute`. A Series needs
        the index of `units`.
    absolute : bool
        True if the p_i of all records sum to 1, False if they are known only up to a factor.
    summed : bool
        True if each probability is p_c, that of the whole unit.

    Raises
    ------
    DataError
        In `expand`, if draws and labelled units differ, or if a probability is missing or out of range.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> eb.WeightedRecords(["x", "y"], [0.25, 0.25], absolute=True).expand(units).weight
    array([1., 2.])
    """

    units: Ids
    probability: Sequence[float] | pd.Series | FloatArray
    absolute: bool = False
    summed: bool = False

    @property
    def weights_follow_labels(self) -> bool:
        """True: a unit weighs less if labels give it more records (see `WithLaw`)."""
        return True

    @classmethod
    def of(cls, labels: Any, drawn: Ids, probability: Any, absolute: bool = False) -> WeightedRecords:
        """Make the design from the probability of every labelled record.

        Parameters
        ----------
        labels : memberships
            The unit of every labelled record: its entity, or its block.
        drawn : sequence of record ids, (n,)
            The drawn records, with repeats.
        probability : Series or mapping, record id -> p
            The probability of every labelled record at a single draw, 0 or more. Other records are ignored.
            Estimates do not cover units whose records all have probability 0.
        absolute : bool
            True if the p of all records of the population sum to 1.

        Returns
        -------
        WeightedRecords
            With `summed=True`.

        Raises
        ------
        DataError
            If a drawn record has no label, if a labelled record has no probability, or if one is negative.

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
                f"{head(labels.records[bad])}"
            )
        listed = as_index(drawn)
        position = labels.records.get_indexer(listed)
        unlabelled = listed[position < 0]
        if len(unlabelled):
            raise DataError(f"{len(unlabelled)} drawn records have no label: {head(unlabelled)}")
        unit = labels.codes[position]
        return cls(labels.clusters[unit], np.bincount(labels.codes, p)[unit], absolute, summed=True)

    def expand(self, units: Units) -> Expansion:
        unit = _unit_of_draws(units, self.units)
        p = _floats(_in_order_of_draws(self.probability, self.units), "probabilities")
        if len(p) != len(unit):
            raise DataError(f"{len(p)} probabilities for {len(unit)} drawn records")
        bad = ~((p >= 1 / LARGEST) & (p <= (1 + 1e-12 if self.absolute else LARGEST)))
        if bad.any():
            raise DataError(f"probabilities must lie in (0, 1]; {int(bad.sum())} do not: {head(p[bad])}")
        records = 1.0 if self.summed else units.size[unit]
        return Expansion(
            unit,
            1 / (len(unit) * p * records),
            self.absolute,
            _single_stratum(len(unit), None, sampling_fraction),
        )


def _in_order_of_draws(probability: Any, units: Any) -> Any:
    """Return probabilities in the order of the draws, refusing a Series on another index."""
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
    """Rules for the variance of a stratum with one draw."""

    ERROR = "error"
    """Refuse (the default)."""
    CERTAINTY = "certainty"
    """It adds nothing, since the unit was certain to be drawn."""
    ADJUST = "adjust"
    """It adds the squared distance of its draw from the mean of all draws, which is conservative."""


@dataclass(frozen=True, slots=True, eq=False)
class Stratified:
    """Units drawn uniformly without replacement within strata.

    Parameters
    ----------
    stratum : Series or mapping, unit id -> stratum
        The stratum of every labelled unit.
    population : mapping, stratum -> number of units
        Every stratum of the population.
    single_unit : SingleUnit
        The rule for strata with one draw. A stratum whose only unit was drawn adds nothing under each rule.
    correction : callable (n, T) -> θ
        Finite-population correction, in [0, 1].

    Raises
    ------
    DataError
        In `expand`, if a unit has no stratum, or if a stratum has no size, no draw or too many. If a stratum
        has one draw, under `SingleUnit.ERROR`.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> strata, population = {"x": "large", "y": "small"}, {"large": 1, "small": 2}
    >>> design = eb.Stratified(strata, population, eb.SingleUnit.CERTAINTY)
    >>> design.expand(units).weight
    array([1., 2.])
    """

    stratum: pd.Series | Mapping[Any, Any]
    population: Mapping[Any, int]
    single_unit: SingleUnit = SingleUnit.ERROR
    correction: Correction = sampling_fraction

    @property
    def weights_follow_labels(self) -> bool:
        """False: weights do not depend on labels (see `WithLaw`)."""
        return False

    def expand(self, units: Units) -> Expansion:
        member(self.single_unit, SingleUnit, "single_unit")
        if not isinstance(self.population, Mapping | pd.Series):
            raise DataError(f"population must map strata to numbers of units, not be {self.population!r}")
        population = {h: whole(T, f"population of stratum {h!r}", 0) for h, T in self.population.items()}
        strata = _series_by_id(self.stratum, "strata")
        if not strata.index.is_unique:
            raise DataError(f"strata: {int(strata.index.duplicated().sum())} units are listed twice")
        strata = strata.dropna()
        position = strata.index.get_indexer(units.ids)
        lacking = units.ids[position < 0]
        if len(lacking):
            raise DataError(f"{len(lacking)} units have no stratum, such as {head(lacking)}")
        codes, names = pd.factorize(strata.array[position])
        if empty := [h for h, T in population.items() if T and h not in set(names)]:
            raise DataError(
                f"{len(empty)} strata of {sum(population[h] for h in empty)} units hold no labelled "
                f"unit, such as {head(empty)}: the sample has no information about them; merge strata, or "
                "leave these out of the population and report that"
            )
        if unsized := [h for h in names if h not in population]:
            raise DataError(f"{len(unsized)} strata have no population size: {head(unsized)}")
        n = np.bincount(codes)
        T = np.array([population[h] for h in names])
        if (n > T).any():
            raise DataError(f"more units drawn than there are in strata {head(names[n > T])}")
        _need_room(int(T.sum()), units)
        single = (n == 1) & (T > 1)
        if single.any() and self.single_unit is SingleUnit.ERROR:
            raise DataError(
                f"{int(single.sum())} strata hold a single draw, such as {head(names[single])}: "
                "merge strata or choose a rule of SingleUnit"
            )
        theta = np.array(
            [0.0 if t == k else _theta(int(k), int(t), self.correction) for k, t in zip(n, T, strict=True)]
        )
        variance = StratifiedDraws(codes.astype(np.int64), theta, self.single_unit is SingleUnit.ADJUST)
        return Expansion(np.arange(len(units)), (T / n)[codes], True, variance)
