"""Designs of draws whose chances are given: of units, of records, of parts of a sample, and of a top-up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray
from .._internal.digits import Brief
from .._internal.errors import DataError, refuse_cases
from ..units.clustering import Clustering, list_all_records
from ..units.ids import as_index, ids, look_up
from ..units.units import Units
from .checks import LARGEST, Ids, numbers_by_id, real_numbers, unit_of_draws
from .contract import HasRounds
from .draws import DrawnUnits, Round, count_each
from .records import InOneRound, expand_rounds


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KnownSelection(Brief, InOneRound):
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WeightedRecords(Brief):
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pooled(Brief):
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


def top_up(labels: Any, old: tuple[Any, Ids], new: tuple[Any, Ids]) -> Pooled:
    """Return the design of labels of an old release and of further draws among the records that came since.

    An entity with f of the F old records and a of the A new ones counts once, with weight 1/π for its chance
    π = 1 - (1 - f/F)^n (1 - a/A)^m, for n draws among the old records and m among the new ones.

    Parameters
    ----------
    labels : memberships
        True entity of every record of each drawn entity, old and new.
    old : (record ids, draws)
        All records from which the old draws were made, and the entity of each draw, with repeats.
    new : (record ids, draws)
        The same of the new draws, where the ids may be those of all records that there are now.

    Raises
    ------
    DataError
        Labelled records that are neither old nor new, or draws of entities without a record of their part.

    Examples
    --------
    >>> import erbayes as eb
    >>> labels = {1: "x", 2: "x", 3: "y", 4: "z"}
    >>> design = top_up(labels, old=([1, 2, 5], ["x", "x"]), new=(range(1, 7), ["y", "z"]))
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}, labels)
    >>> eb.Sample(units, design).expansion.weight.round(2)
    array([1.12, 1.8 , 1.8 ])
    """
    known = Clustering.of(labels, "labels")
    nothing = pd.Index([])
    before, _ = list_all_records(old[0], nothing, "old part")
    now = ids(new[0], "record ids of the new part")
    after, _ = list_all_records(now[~now.isin(before)], nothing, "new part")
    if not len(after):
        raise DataError(
            f"all {len(now):,} records of the new part are old ones: no draw was made among new ones"
        )
    inside = [look_up(records, known.records, of="part") >= 0 for records in (before, after)]
    outside = ~(inside[0] | inside[1])
    said = f"{{n}} of {len(outside):,} labelled records are neither old nor new, such as"
    refuse_cases(known.records[outside], said, ": list all records, old=(ids, draws), new=(ids, draws)")
    parts = []
    for what, draws, part, records in zip(
        ("old", "new"), (old[1], new[1]), inside, (before, after), strict=True
    ):
        count = np.bincount(known.codes[part], minlength=len(known.clusters))
        drawn = ids(draws, f"{what} draws")
        said = f"{what} draws are of entities that have no {what} record in the labels, such as"
        strange = ~drawn.isin(known.clusters[count > 0])
        remedy = ": label every record of each drawn entity"
        refuse_cases(drawn[strange], f"{{n}} of {len(drawn):,} {said}", remedy)
        parts.append(KnownSelection(pd.Series(count / len(records), known.clusters), drawn))
    return Pooled(parts)
