"""Designs of draws in strata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from .._internal.arrays import IntArray
from .._internal.errors import DataError, head, member, refuse_cases, whole
from .._internal.policies import SingleUnit
from ..units.ids import as_index
from ..units.units import Units
from .contract import HasRounds
from .drawn import (
    FPC,
    expand_rounds,
    need_fpc,
    need_room,
    series_by_id,
    unbiased_fpc,
    unit_of_draws,
)
from .draws import DrawnUnits, Round, count_each


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
    fpc : callable (n, T) -> θ
        Finite-population correction, in [0, 1].

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
    fpc: FPC = unbiased_fpc

    depends_on_labels: ClassVar[bool] = False

    def expand(self, units: Units) -> DrawnUnits:
        rule = member(self.single_unit, SingleUnit, "single_unit")
        codes, names = self._code_strata(units)
        n, T = np.bincount(codes), self._find_sizes(names)
        if (n > T).any():
            raise DataError(f"more units drawn than there are in strata {head(names[n > T])}")
        need_room(int(T.sum()), units)
        single = (n == 1) & (T > 1)
        if rule is SingleUnit.ERROR:
            said = "{n} strata hold a single draw, such as"
            refuse_cases(names[single], said, ": merge strata or choose a rule of SingleUnit")
        fpc = np.array(
            # a stratum that is drawn completely adds no variance, whatever the fpc
            [0.0 if t == k else need_fpc(int(k), int(t), self.fpc) for k, t in zip(n, T, strict=True)]
        )
        unit, adjust = np.arange(len(units)), rule is SingleUnit.ADJUST
        return count_each(unit, (T / n)[codes], codes, fpc, adjust=adjust)

    def _code_strata(self, units: Units) -> tuple[IntArray, pd.Index]:
        """Return the stratum of each unit, (units,), and the names of strata that have one."""
        strata = series_by_id(self.stratum, "strata", "units").dropna()
        position = strata.index.get_indexer(units.ids)
        refuse_cases(units.ids[position < 0], "{n} units have no stratum, such as")
        codes, names = pd.factorize(strata.take(position))
        return codes.astype(np.int64), names

    def _find_sizes(self, names: pd.Index) -> IntArray:
        """Return the number of units of each stratum, refusing a population of other strata."""
        if not isinstance(self.population, Mapping | pd.Series):
            raise DataError(f"population must map strata to numbers of units, not be {self.population!r}")
        population = {h: whole(T, f"population of stratum {h!r}", 0) for h, T in self.population.items()}
        if empty := [h for h, T in population.items() if T and h not in set(names)]:
            raise DataError(
                f"{len(empty)} strata of {sum(population[h] for h in empty)} units hold no labelled "
                f"unit, such as {head(empty)}: the sample has no information about them; merge strata, or "
                "leave these out of the population and report that"
            )
        if unsized := [h for h in names if h not in population]:
            raise DataError(f"{len(unsized)} strata have no population size: {head(unsized)}")
        return np.array([population[h] for h in names])


@dataclass(frozen=True, slots=True, eq=False)
class Pooled:
    """Independent draws of several parts, such as strata of records or rounds, pooled.

    A unit may be drawn in every part. It counts once, with weight 1/π_c, π_c = 1 - Π_t (1 - p_c^(t))^n_t, for
    its chance p_c^(t) at each of the n_t draws of part t. Under `WithRepeats` each draw counts, with weight
    1/Σ_t n_t p_c^(t).

    Parameters
    ----------
    parts : sequence of designs
        Designs of draws with known chances: `UniformRecords`, `ByPredictedSize` or `KnownSelection`, each
        with its `draws`.
    repeats : bool
        True if each draw counts as often as it was made (see `WithRepeats`).

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> first = eb.UniformRecords(["x", "y"])
    >>> second = eb.design.ByPredictedSize(eb.columns.PREDICTED_LINKS, ["x", "x"])
    >>> eb.design.Pooled([first, second]).expand(units).weight.round(3)
    array([1.067, 1.463])
    """

    parts: Sequence[Any]
    repeats: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.parts, HasRounds) or not isinstance(self.parts, Sequence) or not self.parts:
            raise DataError("parts must be a list of designs, one or more")
        for part in self.parts:
            if isinstance(part, type | Pooled) or not isinstance(part, HasRounds):
                raise DataError(
                    f"draws by {getattr(part, '__name__', type(part).__name__)} cannot be pooled: the chance "
                    "of a unit at one draw must be known, as under UniformRecords, ByPredictedSize or "
                    "KnownSelection"
                )
            if getattr(part, "draws", None) is None:
                raise DataError(f"{type(part).__name__} in a pool needs its draws")

    def rounds(self, units: Units) -> list[Round]:
        return [one for part in self.parts for one in part.rounds(units) if one.draws]

    def expand(self, units: Units) -> DrawnUnits:
        unit = unit_of_draws(units, [unit for part in self.parts for unit in as_index(part.draws)])
        rounds = self.rounds(units)
        stratum = np.repeat(np.arange(len(rounds)), [one.draws for one in rounds])
        return expand_rounds(units, unit, rounds, self.repeats, stratum)
