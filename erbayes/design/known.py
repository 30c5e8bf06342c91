"""Designs of draws with known probabilities: of units, by size, or of records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray
from .._internal.errors import DataError, need_object, number, refuse_cases
from ..units.clustering import Clustering
from ..units.ids import as_index
from ..units.units import Units
from .drawn import (
    FPC,
    Ids,
    InOneRound,
    find_theta,
    make_unreached,
    need_distinct,
    numbers_by_id,
    real_numbers,
    unbiased_fpc,
    unit_of_draws,
)
from .draws import DrawnUnits, Round, count_each, count_fixed, count_independent

LARGEST = 1e100
"""The largest weight. Squares of larger ones, or of weights below its inverse, leave the range of floats."""


def _check_weights(units: Units, weights: Any) -> FloatArray:
    """Return the weight of each unit, (units,), refusing those that are not positive and finite."""
    values = numbers_by_id(weights, units.ids, "weights", "units")
    must = f"lie between {1 / LARGEST:g} and {LARGEST:g}, positive and finite"
    bad = ~((values >= 1 / LARGEST) & (values <= LARGEST))
    refuse_cases(units.ids[bad], f"weights must {must}; {{n}} are not, such as that of")
    return values


@dataclass(frozen=True, slots=True, eq=False)
class KnownWeights:
    """Units drawn with known probabilities, to whose inverse weights are proportional.

    With `population` the variance has the factor θ = 1 - n/T, which is right only for uniform draws whose
    weights differ for another reason. `KnownInclusion` is for unequal probabilities without replacement.

    Parameters
    ----------
    weights : Series or mapping, unit id -> weight
        Positive, finite, for every labelled unit.
    draws, population, fpc
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
    draws: Ids | None = None
    population: int | None = None
    fpc: FPC = unbiased_fpc
    absolute: bool = False

    def expand(self, units: Units) -> DrawnUnits:
        unit = unit_of_draws(units, self.draws)
        need_distinct(unit, units, self.population)
        weight = _check_weights(units, self.weights)[unit]
        theta = find_theta(len(unit), self.population, self.fpc)
        return count_each(unit, weight, fpc=theta, absolute=self.absolute)


@dataclass(frozen=True, slots=True, eq=False)
class BySize:
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
    draws: Ids | None = None

    without_repeats: ClassVar[bool] = False
    fixed_size: ClassVar[bool] = True

    def selection(self, size: FloatArray, units: Units) -> FloatArray:
        need_object(self.probability, "__call__", "probability is a function of sizes, such as numpy.sqrt")
        try:
            p = np.asarray(self.probability(size), dtype=float)
        except (TypeError, ValueError) as error:
            raise DataError(f"probability must return one number per size: {error}") from error
        if p.shape not in {(), size.shape}:
            raise DataError(
                f"probability returned {p.size} chances for {size.size} sizes: it needs one per size"
            )
        p = np.broadcast_to(p, size.shape)
        said = "probability must be positive and finite for every size; {n} are not, such as that of size"
        refuse_cases(size[~(np.isfinite(p) & (p > 0))], said)
        return p

    def expand(self, units: Units) -> DrawnUnits:
        unit = unit_of_draws(units, self.draws)
        weight = 1 / self.selection(units.size[unit], units)
        return count_each(unit, weight, absolute=False)


@dataclass(frozen=True, slots=True, eq=False)
class WeightedRecords:
    """Records drawn with known probabilities, each of which leads to its unit ([B22] lemma 1).

    If a record of probability p_i leads to a unit of N_c records, the draw has weight 1/(n p_i N_c). If the
    probabilities of all records of the unit are known, `WeightedRecords.of` makes the weight 1/(n p_c), with
    p_c their sum (Hansen and Hurwitz 1943). It is the mean of the other weight over the records by which the
    unit may be drawn, so that its variance is the smaller one for every total.

    Parameters
    ----------
    units : sequence of unit ids, (n,)
        The unit of each drawn record, with repeats.
    probability : sequence of float, (n,)
        Probability p_i of that record at a single draw, above 0. A Series needs the index of `units`.
    absolute : bool
        True if the p_i of all records sum to 1, False if they are known only up to a factor.
    summed : bool
        True if each probability is p_c, that of the unit.

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

    depends_on_labels: ClassVar[bool] = True

    @classmethod
    def of(
        cls, labels: Any, drawn: Ids, probability: Any, absolute: bool = False
    ) -> WeightedRecords | KnownSelection:
        """Make the design from the probability of every labelled record.

        It is a `KnownSelection`, in which an entity counts once, if the chances of entities are known, which
        are the sums of those of their records. Known up to a factor, they leave each draw to count
        (`summed=True`).

        Parameters
        ----------
        labels : memberships
            The unit of every labelled record: its entity, or its block.
        drawn : sequence of record ids, (n,)
            The drawn records, with repeats.
        probability : Series or mapping, record id -> p
            The probability of every labelled record at a single draw, 0 or more. Estimates do not cover units
            whose records all have probability 0.
        absolute : bool
            True if the p of all records of the population sum to 1.

        Examples
        --------
        Two records drawn with probability proportional to the size of their predicted cluster:

        >>> labels = {1: "x", 2: "x", 3: "y"}
        >>> design = WeightedRecords.of(labels, [2, 3], {1: 0.2, 2: 0.2, 3: 0.1, 4: 0.5}, absolute=True)
        >>> design.probability.to_dict()
        {'x': 0.4, 'y': 0.1}
        """
        labels = Clustering.of(labels, "labels")
        p = numbers_by_id(probability, labels.records, "probabilities", "labelled records")
        said = "probabilities must be 0 or more and finite; {n} are not, such as that of"
        refuse_cases(labels.records[~((p >= 0) & (p <= LARGEST))], said)
        listed = as_index(drawn)
        position = labels.records.get_indexer(listed)
        refuse_cases(listed[position < 0], "{n} drawn records have no label, such as")
        unit, of_unit = labels.codes[position], np.bincount(labels.codes, p)
        if absolute:
            return KnownSelection(pd.Series(of_unit, labels.clusters), labels.clusters[unit])
        return cls(labels.clusters[unit], of_unit[unit], summed=True)

    def expand(self, units: Units) -> DrawnUnits:
        unit = unit_of_draws(units, self.units)
        p = real_numbers(_order_by_draws(self.probability, self.units), "probabilities")
        if len(p) != len(unit):
            raise DataError(f"{len(p)} probabilities for {len(unit)} drawn records")
        bad = ~((p >= 1 / LARGEST) & (p <= (1 + 1e-12 if self.absolute else LARGEST)))
        refuse_cases(p[bad], "probabilities must lie in (0, 1]; {n} do not:")
        weight = 1 / (len(unit) * p * (1.0 if self.summed else units.size[unit]))
        return count_each(unit, weight, absolute=self.absolute)


def _order_by_draws(probability: Any, units: Any) -> Any:
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


@dataclass(frozen=True, slots=True, eq=False)
class KnownSelection(InOneRound):
    """Units drawn with replacement, whose selection probabilities are known (Horvitz and Thompson 1952).

    A unit with probability p_c at one of n draws counts once, with weight 1/π_c, π_c = 1 - (1 - p_c)^n, or as
    often as it was drawn, with weight 1/(n p_c), under `WithRepeats`.

    Parameters
    ----------
    probability : Series or mapping, unit id -> p
        That of every labelled unit at one draw, in [0, 1]. Those of all units of the population sum to 1.
    draws
        As in `UniformClusters`.
    never : sequence of int
        Sizes of predicted clusters whose records are never drawn.
    repeats : bool
        True if each draw counts as often as it was made (see `WithRepeats`).

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> eb.design.KnownSelection({"x": 0.5, "y": 0.25}).expand(units).weight.round(3)
    array([1.333, 2.286])
    """

    probability: pd.Series | Mapping[Any, float]
    draws: Ids | None = None
    never: Sequence[int] = ()
    repeats: bool = False

    def make_round(self, units: Units, draws: int) -> Round:
        p = numbers_by_id(self.probability, units.ids, "chances", "units")
        refuse_cases(p[~((p >= 0) & (p <= 1 + 1e-12))], "chances must lie in [0, 1]; {n} do not:")
        # a probability is a quotient of two sums over records, each of which rounds once per record
        rounding = np.finfo(float).eps * max(units.population or 0, units.size.sum())
        if (total := fsum(p)) > 1 + max(rounding, 1e-12):
            raise DataError(
                f"chances of {len(p)} units sum to {total:.6g}, although those of all units of the "
                "population sum to 1: a chance is that of one draw, so divide by the number of draws, or by "
                "the sum over the population"
            )
        return Round(draws, p, never=self.never)


@dataclass(frozen=True, slots=True, eq=False)
class KnownInclusion:
    """Units drawn at most once, with known probabilities π_c to be in the sample (Horvitz and Thompson 1952).

    A unit has weight 1/π_c. For a fixed number of units the variance is that of Hartley and Rao (1962), for
    systematic draws in random order, which is close for other designs of large entropy. For a random number
    it is that of independent units (Poisson draws).

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
    draws: Ids | None = None

    def expand(self, units: Units) -> DrawnUnits:
        unit = unit_of_draws(units, self.draws)
        if repeats := len(unit) - len(np.unique(unit)):
            raise DataError(f"{repeats} units are listed twice, but the design has no repeats")
        p = numbers_by_id(self.inclusion, units.ids[unit], "inclusion", "units")
        refuse_cases(p[~((p > 0) & (p <= 1))], "inclusion must lie in (0, 1]; {n} do not:")
        squares = p.sum() if self.squares is None else self.squares
        number(squares, "squares", lambda q: 0 < q < np.inf, "be above 0")
        found = count_fixed(unit, p, squares) if self.fixed_size else count_independent(unit, p)
        return replace(found, unreached=make_unreached(np.asarray(self.never, dtype=float), units))
