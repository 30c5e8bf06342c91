"""Protocols of designs, draws in rounds, and checks of draws and values by id against the labelled units."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray, IntArray
from .._internal.errors import DataError, Remedy, head, need, refuse_cases, whole
from ..metrics.columns import Pieces
from ..units.ids import as_index, kind
from ..units.units import Units
from .draws import DrawnUnits, Round, count_once

Ids = Sequence[Any] | pd.Index
LARGEST = 1e100
"""The largest weight. Squares of larger ones, or of weights below its inverse, leave the range of floats."""
SEVERAL = 3
"""Entities of several labelled records from which it is no chance that draws are as many."""


class Design(Protocol):
    """A way of drawing units."""

    def expand(self, units: Units) -> DrawnUnits:
        """Return the draws of a sample with their weights and their variance."""


@runtime_checkable
class HasRounds(Design, Protocol):
    """A design of rounds of draws whose chances are known, so that a unit counts once."""

    def rounds(self, units: Units) -> list[Round]:
        """Return the rounds: their numbers of draws, and the chances of all units."""


@runtime_checkable
class SelectedBySize(Design, Protocol):
    """A design under which the selection probability of a unit depends on its size alone."""

    @property
    def without_repeats(self) -> bool:
        """True if no unit is drawn twice."""

    @property
    def fixed_size(self) -> bool:
        """True if the design fixes the number of draws. Else `selection` returns inclusion probabilities."""

    def selection(self, size: FloatArray, units: Units) -> FloatArray:
        """Return the selection probability of a unit of each size, (k,), up to a factor."""


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
    units: Units, unit: IntArray, rounds: Sequence[Round], each: bool, stratum: IntArray | None = None
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
    undrawn = set.intersection(*({*np.asarray(one.never, dtype=float)} for one in rounds))
    return replace(found, unreached=make_unreached(sorted(undrawn), units))


def innermost(design: Any) -> Any:
    """Return the design by which draws were made, which others, such as `FrozenWeights`, hold."""
    while hasattr(design, "design"):
        design = design.design
    return design


def unit_of_draws(units: Units, draws: Any, distinct: bool = False) -> IntArray:
    """Return the position of the unit of each draw, (n,), without draws of omitted units.

    Repeats are refused if draws are `distinct`.
    """
    if not len(units):
        raise DataError("the sample holds no unit")
    if draws is None:
        return np.arange(len(units))
    if isinstance(draws, str | Iterator) or not isinstance(draws, Iterable):
        raise DataError(f"draws must be a list of unit ids, not {draws!r}")
    listed = list_draws(units, draws)
    unit = units.ids.get_indexer(listed).astype(np.int64)
    if (unit < 0).any():
        unlabelled = listed[unit < 0]
        said = f"{len(unlabelled)} draws name units without labels: {head(unlabelled)}"
        if (known := kind(units.ids)) != (other := kind(unlabelled)):
            text = ".astype('Int64')" * (other == "floating") + ".astype(str)"
            said += f"; they are of type {other}, labelled units of type {known}: make text of both, {text}"
        if units.piece_of is not None and unlabelled.isin(units.piece_of.index).any():
            said += ", which are labelled records; list the entity of each drawn record instead"
        raise DataError(said)
    drawn = np.bincount(unit, minlength=len(units))
    undrawn = units.ids[drawn == 0]
    if len(undrawn):
        raise DataError(f"{len(undrawn)} labelled units were never drawn: {head(undrawn)}")
    if distinct and (repeats := len(unit) - len(units)):
        raise DataError(f"{repeats} units are listed twice, but the design has no repeats")
    # labels in the place of draws, although near a census of all records true draws may be so
    all_records = units.population if units.by_entity else None
    if all_records is None or 2 * units.size.sum() > all_records or np.count_nonzero(drawn > 1) < SEVERAL:
        return unit
    if np.array_equal(drawn, units.size):
        raise DataError(
            f"all {len(units):,} entities are drawn as often as they have labelled records, {len(unit):,} "
            "times in all: are these the labels, and not the draws?",
            Remedy("list the entity of each drawn record alone", "draws=labels[drawn]", "--drawn FILE"),
        )
    return unit


def list_draws(units: Units, draws: Any) -> pd.Index:
    """Return the unit of each draw by its id, without draws of omitted units."""
    listed = units.ids if draws is None else as_index(draws)
    return listed[~listed.isin(units.omitted)]


def find_theta(n: int, population: int | None = None) -> float:
    """Return θ = 1 - n/T for n draws of T units without replacement; 1 if the `population` T is None."""
    if population is None:
        return 1.0
    population = whole(population, "population")
    if n > population:
        raise DataError(f"{n} draws without replacement from a population of {population}")
    return 1 - n / population


def need_frame(records: int | None, units: Units, argument: str, exact: bool = False) -> None:
    """Refuse a frame that has fewer records than the prediction, or, if `exact`, more."""
    known = units.population
    if records is None or known is None:
        return
    said = f"{argument} = {records}, but the prediction holds {known:.0f} records"
    if whole(records, argument) < known:
        raise DataError(f"{said}: restrict it to those that were drawn from")
    if exact and records > known and not units.unmatched:
        raise DataError(f"{said}: pass the prediction of all records that were drawn from, or their number")


def need_room(population: int | None, units: Units) -> None:
    """Refuse a population of more units than the prediction has records for. Each unit has at least one."""
    known = units.population
    if population is None or known is None or units.unmatched:
        return
    # each unit that was not sampled has at least one of the other records
    room = len(units) + known - units.size.sum()
    if whole(population, "population") > room:
        raise DataError(
            f"population = {population} units, but the prediction holds {known:.0f} records, which leaves "
            f"room for {room:.0f} at most: pass the prediction of all records of the population, or the "
            "number of its units"
        )


def numbers_by_id(values: Any, ids: pd.Index, what: str, owners: str) -> FloatArray:
    """Return numbers that are keyed by id, in the order of `ids`."""
    series = series_by_id(values, what, owners)
    position = series.index.get_indexer(ids)
    refuse_cases(ids[position < 0], f"{what} are missing for {{n}} of {len(ids)} {owners}, such as")
    return real_numbers(series, what)[position]


def series_by_id(values: Any, what: str, owners: str = "ids") -> pd.Series:
    """Return a Series or a mapping as a Series with one value for each id, refusing anything else."""
    if isinstance(values, Mapping):
        values = pd.Series(list(values.values()), as_index(list(values)))
    need(values, pd.Series, f"{what} must be a Series or a mapping by id")
    series: pd.Series = values
    refuse_cases(series.index[series.index.duplicated()], f"{what}: {{n}} {owners} are listed twice, such as")
    return series


def real_numbers(values: Any, what: str) -> FloatArray:
    """Return real numbers as a float array, (n,), refusing anything else."""
    array = np.asarray(values)
    # complex numbers and dates would become floats without a word
    if array.dtype.kind in "cmM" or array.ndim != 1:
        raise DataError(f"{what} must be one real number each, not {array.dtype} of shape {array.shape}")
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} must be numbers: {error}") from error


def make_unreached(sizes: Sequence[float] | FloatArray, units: Units) -> Pieces | None:
    """Return pseudo-units of every kind in predicted clusters of `sizes`, which are never drawn, or None."""
    if not len(sizes):
        return None
    rows = list[tuple[float, float, float, int]]()  # records of piece, entity and cluster; number of pieces
    for s in sizes:
        if units.by_entity:
            # an entity of all s records, a singleton, and two and three records in as many clusters
            rows += [(s, s, s, 1), (1, 1, s, 1), (1, 2, s, 2), (1, 3, s, 3)]
        else:  # one entity, as many as there are records, and a part of a larger one
            rows += [(s, s, s, 1), (1, 1, s, int(s)), (s, s + 1, s, 1)]
    unit = np.repeat(np.arange(len(rows)), [row[3] for row in rows])
    n, N, m = np.array([row[:3] for row in rows], dtype=float)[unit].T
    return Pieces(None, unit, unit, n, N, m, by_entity=units.by_entity)
