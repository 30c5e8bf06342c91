"""Designs of records, each of which leads to its unit, whose chance is the sum of theirs; parts of a sample.

Sources: Hansen and Hurwitz (1943) for draws with replacement; Lavallée and Caron (2001), Survey Methodology
27, for units that are reached through their records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from .._internal import remedies
from .._internal.arrays import FloatArray, IntArray
from .._internal.digits import Brief
from .._internal.errors import DataError, NotIdentified, need, refuse_cases, whole
from ..metrics.columns import RECORDS, ClusterSum, pairs
from ..units.clustering import Clustering, list_all_records
from ..units.ids import as_index, ids, look_up
from ..units.units import KnownTotals, Units
from . import contract
from .draws import DrawnUnits, Round, count_each, count_once
from .units import KnownSelection


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class UniformRecords(Brief, contract.InOneRound):
    """Records drawn uniformly, each of which leads to its unit, with probability proportional to size.

    A unit of N_c among N records counts once, however often it was drawn, with weight 1/π_c for its
    probability π_c = 1 - (1 - N_c/N)^n to be among n draws (Horvitz and Thompson 1952), or the hypergeometric
    one without replacement. A further draw shows nothing new (Basu 1958). Each draw counts, with weight
    N/(n N_c) ([B22]), under `repeats`, or if N is not known, up to a factor.

    Parameters
    ----------
    draws
        As in `UniformClusters`.
    population : int, optional
        Number of records in the frame, if they were drawn without replacement.
    records : int, optional
        Number N of records that were drawn from, those of the prediction or more; by default those of the
        prediction, as always if labelled records are missing in it, since sizes are its own.
    repeats : bool
        True if each draw counts as often as it was made (Hansen and Hurwitz 1943). For a design that
        `erbayes.labels.draw` made, `dataclasses.replace(design, repeats=True)` says so.

    Raises
    ------
    DataError
        In `expand`, if draws and labelled units differ, or the number of records and that of the prediction.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> eb.UniformRecords(draws=["x", "x", "y"]).expand(units).weight.round(3)
    array([1.143, 1.73 ])
    >>> eb.UniformRecords(draws=["x", "x", "y"], repeats=True).expand(units).weight.round(3)
    array([0.667, 0.667, 1.333])
    """

    draws: contract.Ids | None = None
    population: int | None = None
    records: int | None = None
    repeats: bool = False

    depends_on_labels: ClassVar[bool] = True
    without_repeats: ClassVar[bool] = False
    fixed_size: ClassVar[bool] = True

    def selection(self, size: FloatArray, units: Units) -> FloatArray:
        return size

    def _find_records(self, units: Units) -> float | None:
        return units.population if self.records is None or units.unmatched else float(self.records)

    def make_round(self, units: Units, draws: int) -> Round:
        if (records := self._find_records(units)) is None:
            raise NotIdentified("the number of records is not known, as some are missing", remedies.LEAVE_OUT)
        return Round(draws, units.size / records, None if self.population is None else int(records))

    def expand(self, units: Units) -> DrawnUnits:
        contract.need_frame(self.population, units, "population", exact=True)
        contract.need_frame(self.records, units, "records")
        return self.expand_draws(units, contract.unit_of_draws(units, self.draws))

    def expand_draws(self, units: Units, unit: IntArray) -> DrawnUnits:
        records, n = self._find_records(units), unit.shape[-1]
        if records is not None and not self.repeats:
            return contract.InOneRound.expand_draws(self, units, unit)
        # without N, weights are known up to a factor, which suffices for ratios
        weight = (1.0 if records is None else records) / (n * units.size[unit])
        theta = contract.find_theta(n, self.population)
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
        contract.need_frame(self.records, units, "records")
        records, size = self._find_records(units), units.size
        if size.max() >= records:
            raise DataError(f"a unit of {int(size.max())} records in a population of {records}")
        return count_once(np.arange(len(units)), [Round(self.draws, size / records)])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ByPredictedSize(Brief, contract.InOneRound):
    """Records drawn with replacement, with a probability by the size of their predicted cluster.

    The chance p_c of a unit at one draw is the sum of φ(m) over its records, divided by the total of φ over
    all records. It counts once, with weight 1/π_c, π_c = 1 - (1 - p_c)^n. With `columns.PREDICTED_LINKS`,
    records are the ends of uniformly drawn predicted links.

    Parameters
    ----------
    probability : ClusterSum
        The column whose φ is the probability of a record, up to a factor: 0 or more.
    draws : sequence of unit ids, optional
        The unit of each drawn record, with repeats. By default each labelled unit is one draw.
    drawn_from : KnownTotals, optional
        Sizes of the prediction that was drawn from (`Units.known`). A prediction with other sizes is refused.
    repeats : bool
        True if each draw counts, with weight 1/(n p_c) (see `UniformRecords`).

    Raises
    ------
    DataError, NotIdentified
        In `expand`, if a drawn unit has chance 0, if the prediction is not the one that was drawn from, or if
        labelled records that are missing in it were kept.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b", 5: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> eb.design.ByPredictedSize(eb.columns.PREDICTED_LINKS).expand(units).weight.round(3)
    array([2.286, 2.286])
    """

    probability: ClusterSum
    draws: contract.Ids | None = None
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
                "labelled records that are missing in the prediction were kept, and could not be drawn",
                remedies.LEAVE_OUT,
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WeightedRecords(Brief):
    """Records drawn with known probabilities, each of which leads to its unit ([B22] lemma 1).

    If a record of probability p_i leads to a unit of N_c records, the draw has weight 1/(n p_i N_c). If the
    probabilities of all records of the unit are known, `WeightedRecords.of` makes the weight 1/(n p_c), with
    p_c their sum (Hansen and Hurwitz 1943), whose variance is smaller for every total.

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

    units: contract.Ids
    probability: Sequence[float] | pd.Series | FloatArray
    absolute: bool = False
    summed: bool = False

    depends_on_labels: ClassVar[bool] = True

    @classmethod
    def of(
        cls, labels: Any, drawn: contract.Ids, probability: Any, absolute: bool = False
    ) -> WeightedRecords | KnownSelection:
        """Make the design from the probability of every labelled record.

        The chance of an entity is the sum of those of its records. It is known if they are `absolute`, and
        an entity then counts once (`KnownSelection`); up to a factor, each draw counts (`summed=True`).

        Parameters
        ----------
        labels : memberships
            The unit of every labelled record: its entity, or its block.
        drawn : sequence of record ids, (n,)
            The drawn records, with repeats.
        probability : Series or mapping, record id -> p
            The probability of every labelled record at a single draw, 0 or more.
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
        p = contract.numbers_by_id(probability, labels.records, "probabilities", "labelled records")
        said = "probabilities must be 0 or more and finite; {n} are not, such as that of"
        refuse_cases(labels.records[~((p >= 0) & (p <= contract.LARGEST))], said)
        listed = as_index(drawn)
        position = labels.records.get_indexer(listed)
        refuse_cases(listed[position < 0], "{n} drawn records have no label, such as")
        unit, of_unit = labels.codes[position], np.bincount(labels.codes, p)
        if absolute:
            return KnownSelection(pd.Series(of_unit, labels.clusters), labels.clusters[unit])
        return cls(labels.clusters[unit], of_unit[unit], summed=True)

    def expand(self, units: Units) -> DrawnUnits:
        unit, n = np.full(len(listed := as_index(self.units)), -1), len(listed)
        unit[~listed.isin(units.omitted)] = contract.unit_of_draws(units, self.units)
        p = contract.real_numbers(_order_by_draws(self.probability, self.units), "probabilities")
        if len(p) != n:
            raise DataError(f"{len(p)} probabilities for {n} drawn records")
        bad = p[~((p >= 1 / contract.LARGEST) & (p <= (1 + 1e-12 if self.absolute else contract.LARGEST)))]
        refuse_cases(bad, f"probabilities must lie in (0, {'1]' if self.absolute else 'inf)'}; {{n}} do not:")
        weight = 1 / (n * p * (1.0 if self.summed else units.size[unit]))
        return count_each(np.arange(n), weight, absolute=self.absolute).at(unit)


def _order_by_draws(probability: Any, units: Any) -> Any:
    """Return probabilities in the order of the draws, refusing a Series on another index."""
    if not isinstance(probability, pd.Series):
        return probability
    index: pd.Index = units.index if isinstance(units, pd.Series) else pd.RangeIndex(len(probability))
    given = probability.index
    if given.equals(index):
        return probability
    if isinstance(units, pd.Series) and index.is_unique and given.is_unique:
        if index.symmetric_difference(given).empty:
            return probability.reindex(index)
    raise DataError(
        "the index of the probabilities is not that of units: pass both as Series on one index, or "
        "probability.to_numpy() in the order of units"
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pooled(Brief):
    """Independent draws of several parts, such as strata of records or rounds, pooled.

    A unit may be drawn in every part. It counts once, with weight 1/π_c, π_c = 1 - Π_t (1 - p_c^(t))^n_t, for
    its chance p_c^(t) at each of the n_t draws of part t.

    Parameters
    ----------
    parts : sequence of designs
        Designs with known chances and `draws`: `UniformRecords`, `ByPredictedSize` or `KnownSelection`.
    repeats : bool
        True if each draw counts, with weight 1/Σ_t n_t p_c^(t) (see `UniformRecords`).

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
        if (
            isinstance(self.parts, contract.HasRounds)
            or not isinstance(self.parts, Sequence)
            or not self.parts
        ):
            raise DataError("parts must be a list of designs, one or more")
        for part in self.parts:
            name = getattr(part, "__name__", type(part).__name__)
            if isinstance(part, type | Pooled) or not isinstance(part, contract.HasRounds):
                raise DataError(
                    f"draws by {name} cannot be pooled: the chance of a unit at one draw must be known, as "
                    "under UniformRecords, ByPredictedSize or KnownSelection"
                )
            if getattr(part, "draws", None) is None:
                raise DataError(f"{name} in a pool needs its draws")

    def rounds(self, units: Units) -> list[Round]:
        return [one for part in self.parts for one in part.rounds(units) if one.draws]

    def expand(self, units: Units) -> DrawnUnits:
        unit = contract.unit_of_draws(units, [unit for part in self.parts for unit in as_index(part.draws)])
        rounds = self.rounds(units)
        stratum = np.repeat(np.arange(len(rounds)), [one.draws for one in rounds])
        return contract.expand_rounds(units, unit, rounds, self.repeats, stratum)


def top_up(labels: Any, old: tuple[Any, contract.Ids], new: tuple[Any, contract.Ids]) -> Pooled:
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
    known, nothing = Clustering.of(labels, "labels"), pd.Index([])
    before, _ = list_all_records(old[0], nothing, "old part")
    now = ids(new[0], "record ids of the new part")
    after, _ = list_all_records(now[~now.isin(before)], nothing, "new part")
    if not len(after):
        raise DataError(
            f"all {len(now):,} records of the new part are old ones: no draw was made among new ones"
        )
    inside = [look_up(records, known.records, of="part") >= 0 for records in (before, after)]
    outside = known.records[~(inside[0] | inside[1])]
    said = f"{{n}} of {len(known.records):,} labelled records are neither old nor new, such as"
    refuse_cases(outside, said, ": list all records, old=(ids, draws), new=(ids, draws)")
    parts = []
    of_each = zip(("old", "new"), (old[1], new[1]), inside, (before, after), strict=True)
    for what, draws, part, records in of_each:
        count = np.bincount(known.codes[part], minlength=len(known.clusters))
        drawn = ids(draws, f"{what} draws")
        strange = drawn[~drawn.isin(known.clusters[count > 0])]
        said = (
            f"{{n}} of {len(drawn):,} {what} draws are of entities that have no {what} record in the labels"
        )
        refuse_cases(strange, f"{said}, such as", ": label every record of each drawn entity")
        parts.append(KnownSelection(pd.Series(count / len(records), known.clusters), drawn))
    return Pooled(parts)


def draws_records(design: Any, units: Units) -> bool:
    """Return whether units are known to be reached by draws of their records, each of which has a chance."""
    while hasattr(design, "design"):  # whose draws were made from another prediction, if weights are frozen
        design, units = design.design, getattr(design, "drawn_from", units)
    if isinstance(design, ByPredictedSize):
        return units.known is not None and bool((design.probability.phi(units.known.size) > 0).all())
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
