"""Designs of units: entities, blocks or predicted clusters, drawn uniformly or with known chances."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray, IntArray
from .._internal.digits import Brief
from .._internal.errors import DataError, head, member, need_object, number, refuse_cases, whole
from .._internal.remedies import SingleUnit
from ..units.units import Units
from . import contract
from .draws import DrawnUnits, Round, count_each, count_fixed, count_independent


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class UniformClusters(Brief):
    """Units drawn uniformly: entities, blocks or predicted clusters.

    Each of n draws from T units has weight T/n, or 1/n if T is not known ([B22]).

    Parameters
    ----------
    population : int, optional
        Number of units in the population, if they were drawn without replacement. A sample of all units, a
        census, then has standard error 0.
    draws : sequence of unit ids, optional
        The unit of each draw, with repeats, if drawn with replacement. By default each labelled unit, once.

    Raises
    ------
    DataError
        In `expand`, if draws and labelled units differ, if units repeat although `population` is passed, or
        if it is less than the draws, or more than the records allow.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> eb.UniformClusters(population=3).expand(units).weight
    array([1.5, 1.5])
    """

    population: int | None = None
    draws: contract.Ids | None = None

    depends_on_labels: ClassVar[bool] = False
    fixed_size: ClassVar[bool] = True

    @property
    def without_repeats(self) -> bool:
        return self.population is not None

    def selection(self, size: FloatArray, units: Units) -> FloatArray:
        return np.ones_like(size)

    def expand(self, units: Units) -> DrawnUnits:
        unit = contract.unit_of_draws(units, self.draws, distinct=self.without_repeats)
        contract.need_room(self.population, units)
        return self.expand_draws(units, unit)

    def expand_draws(self, units: Units, unit: IntArray) -> DrawnUnits:
        """Return draws of the units at the positions `unit`, (..., n)."""
        n, known = unit.shape[-1], self.without_repeats
        weight = np.full(unit.shape, (self.population or 1) / n)
        return count_each(unit, weight, fpc=contract.find_theta(n, self.population), absolute=known)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stratified(Brief):
    """Units drawn uniformly without replacement within strata.

    Parameters
    ----------
    stratum : Series or mapping, unit id -> stratum
        The stratum of every labelled unit.
    population : mapping, stratum -> number of units
        Every stratum of the population.
    single_unit : SingleUnit
        The rule for strata with one draw. A stratum whose only unit was drawn adds nothing under each rule.

    Raises
    ------
    DataError
        In `expand`, if a unit has no stratum, or if a stratum has no size, no draw, too many, or a single one
        under `SingleUnit.ERROR`.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> strata, population = {"x": "large", "y": "small"}, {"large": 1, "small": 2}
    >>> design = eb.Stratified(strata, population, eb.design.SingleUnit.CERTAINTY)
    >>> design.expand(units).weight
    array([1., 2.])
    """

    stratum: pd.Series | Mapping[Any, Any]
    population: Mapping[Any, int]
    single_unit: SingleUnit | str = SingleUnit.ERROR

    depends_on_labels: ClassVar[bool] = False

    def expand(self, units: Units) -> DrawnUnits:
        rule = member(self.single_unit, SingleUnit, "single_unit")
        strata = contract.series_by_id(self.stratum, "strata", "units").dropna()
        position = strata.index.get_indexer(units.ids)
        refuse_cases(units.ids[position < 0], "{n} units have no stratum, such as")
        codes, names = pd.factorize(strata.take(position))
        n, T = np.bincount(codes), self._find_sizes(names)
        if (n > T).any():
            raise DataError(f"more units drawn than there are in strata {head(names[n > T])}")
        contract.need_room(int(T.sum()), units)
        single = (n == 1) & (T > 1)
        if rule is SingleUnit.ERROR:
            said = "{n} strata hold a single draw, such as"
            refuse_cases(names[single], said, ": merge strata or pass SingleUnit.CERTAINTY")
        return count_each(np.arange(len(units)), (T / n)[codes], codes.astype(np.int64), 1 - n / T)

    def _find_sizes(self, names: pd.Index) -> IntArray:
        """Return the number of units of each stratum, refusing a population of other strata."""
        if not isinstance(self.population, Mapping | pd.Series):
            raise DataError(f"population must map strata to numbers of units, not be {self.population!r}")
        population = {h: whole(T, f"population of stratum {h!r}", 0) for h, T in self.population.items()}
        if empty := [h for h, T in population.items() if T and h not in set(names)]:
            raise DataError(
                f"{len(empty)} strata of {sum(population[h] for h in empty)} units hold no labelled unit, "
                f"such as {head(empty)}: merge strata, or leave these out of the population and report that"
            )
        if unsized := [h for h in names if h not in population]:
            raise DataError(f"{len(unsized)} strata have no population size: {head(unsized)}")
        return np.array([population[h] for h in names])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BySize(Brief):
    """Units drawn with replacement, with a probability that is a known function of their size.

    Parameters
    ----------
    probability : callable, sizes in records -> probability up to a factor
        Vectorised, positive.
    draws
        As in `UniformClusters`.

    Examples
    --------
    A probability proportional to the square root of the size:

    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "x", 4: "x"})
    >>> eb.design.BySize(np.sqrt).expand(units).weight
    array([0.5])
    """

    probability: Callable[[FloatArray], FloatArray]
    draws: contract.Ids | None = None

    without_repeats: ClassVar[bool] = False
    fixed_size: ClassVar[bool] = True

    def selection(self, size: FloatArray, units: Units) -> FloatArray:
        need_object(self.probability, "__call__", "probability is a function of sizes, such as numpy.sqrt")
        try:
            p = np.asarray(self.probability(size), dtype=float)
        except (TypeError, ValueError) as error:
            raise DataError(f"probability must return one number per size: {error}") from error
        if p.shape not in {(), size.shape}:
            raise DataError(f"probability returned {p.size} chances for {size.size} sizes, not one per size")
        p = np.broadcast_to(p, size.shape)
        said = "probability must be positive and finite for every size; {n} are not, such as that of size"
        refuse_cases(size[~(np.isfinite(p) & (p > 0))], said)
        return p

    def expand(self, units: Units) -> DrawnUnits:
        unit = contract.unit_of_draws(units, self.draws)
        return count_each(unit, 1 / self.selection(units.size[unit], units), absolute=False)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KnownWeights(Brief):
    """Units drawn with known probabilities, to whose inverse weights are proportional.

    With `population` the variance has the factor 1 - n/T, which is right only for uniform draws whose weights
    differ for another reason. `KnownInclusion` is for unequal probabilities without replacement.

    Parameters
    ----------
    weights : Series or mapping, unit id -> weight
        Positive, finite, for every labelled unit.
    draws, population
        As in `UniformClusters`.
    absolute : bool
        True if Σ weight × column over draws estimates the total itself, False if only up to a factor.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> eb.KnownWeights({"x": 1.0, "y": 2.0}).expand(units).weight
    array([1., 2.])
    """

    weights: pd.Series | Mapping[Any, float]
    draws: contract.Ids | None = None
    population: int | None = None
    absolute: bool = False

    def expand(self, units: Units) -> DrawnUnits:
        unit = contract.unit_of_draws(units, self.draws, distinct=self.population is not None)
        contract.need_room(self.population, units)
        weights = contract.numbers_by_id(self.weights, units.ids, "weights", "units")
        most = contract.LARGEST
        said = f"weights must lie between {1 / most:g} and {most:g}, positive and finite; {{n}} are not"
        bad = ~((weights >= 1 / most) & (weights <= most))
        refuse_cases(units.ids[bad], f"{said}, such as that of")
        theta = contract.find_theta(len(unit), self.population)
        return count_each(unit, weights[unit], fpc=theta, absolute=self.absolute)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KnownInclusion(Brief):
    """Units drawn at most once, with known probabilities π_c to be in the sample (Horvitz and Thompson 1952).

    The variance is that of Hartley and Rao (1962), for systematic draws in random order, which is close for
    other designs of large entropy, or of independent units (Poisson draws) if their number is random.

    Parameters
    ----------
    inclusion : Series or mapping, unit id -> π
        For every labelled unit, in (0, 1].
    fixed_size : bool
        True if the design fixes the number of units.
    squares : float, optional
        Sum of π² over the population, for Hartley and Rao. By default the sum of π over the sample.
    never : sequence of int
        Sizes of predicted clusters whose records are never drawn.
    draws : sequence of unit ids, optional
        The drawn units, each once. By default the labelled units.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> eb.design.KnownInclusion({"x": 1.0, "y": 0.5}).expand(units).weight
    array([1., 2.])
    """

    inclusion: pd.Series | Mapping[Any, float]
    fixed_size: bool = True
    squares: float | None = None
    never: Sequence[int] = ()
    draws: contract.Ids | None = None

    def expand(self, units: Units) -> DrawnUnits:
        unit = contract.unit_of_draws(units, self.draws, distinct=True)
        p = contract.numbers_by_id(self.inclusion, units.ids[unit], "inclusion", "units")
        refuse_cases(p[~((p > 0) & (p <= 1))], "inclusion must lie in (0, 1]; {n} do not:")
        squares = p.sum() if self.squares is None else self.squares
        number(squares, "squares", lambda q: 0 < q < np.inf, "be above 0")
        found = count_fixed(unit, p, squares) if self.fixed_size else count_independent(unit, p)
        return replace(found, unreached=contract.make_unreached(np.asarray(self.never, dtype=float), units))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KnownSelection(Brief, contract.InOneRound):
    """Units drawn with replacement, whose selection probabilities are known (Horvitz and Thompson 1952).

    A unit with probability p_c at one of n draws counts once, with weight 1/π_c, π_c = 1 - (1 - p_c)^n.

    Parameters
    ----------
    probability : Series or mapping, unit id -> p
        That of every labelled unit at one draw, in [0, 1]. Those of all units of the population sum to 1.
    draws
        As in `UniformClusters`.
    repeats : bool
        True if each draw counts, with weight 1/(n p_c) (see `UniformRecords`).

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> eb.design.KnownSelection({"x": 0.5, "y": 0.25}).expand(units).weight.round(3)
    array([1.333, 2.286])
    """

    probability: pd.Series | Mapping[Any, float]
    draws: contract.Ids | None = None
    repeats: bool = False

    def make_round(self, units: Units, draws: int) -> Round:
        p = contract.numbers_by_id(self.probability, units.ids, "chances", "units")
        refuse_cases(p[~((p >= 0) & (p <= 1 + 1e-12))], "chances must lie in [0, 1]; {n} do not:")
        # a probability is a quotient of two sums over records, each of which rounds once per record
        rounding = np.finfo(float).eps * max(units.population or 0, units.size.sum())
        if (total := fsum(p)) > 1 + max(rounding, 1e-12):
            raise DataError(
                f"chances of {len(p)} units sum to {total:.6g}, although those of all units sum to 1: divide "
                "them by the number of draws, or by their sum over the population"
            )
        return Round(draws, p)
