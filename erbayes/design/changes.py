"""Designs that hold another one: some draws are unresolved, or weights are frozen.

An unresolved draw has no entity, so that the resolved draws of its class get its weight. Estimates are
unbiased if draws are missing at random within classes, which no data of the sample can show.

Source: Oh and Scheuren (1983), in Incomplete Data in Sample Surveys 2, 143-184; Särndal, Swensson and Wretman
(1992), chapter 15 (response homogeneity groups).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import hstack

from .._internal.arrays import BoolArray, FloatArray, IntArray
from .._internal.digits import Brief
from .._internal.errors import DataError, Remedy, need, need_object, number, refuse_cases, whole
from ..metrics.columns import EXACT
from ..units.ids import as_index
from ..units.units import Units
from .contract import Design, HasRounds, list_draws, make_unreached
from .draws import DrawnUnits, Round, count_once, indicate

FEWEST = 10
"""Number of resolved draws that each class by size needs, so that its share does not depend on a few."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FrozenWeights(Brief):
    """The draws of a design with their weights on the prediction that was drawn from.

    They evaluate another prediction of the same records if the chance of an entity depends on the predicted
    clusters of its records, as under `erbayes.labels.LinkEnds`.

    Parameters
    ----------
    design : Design
        The design of the draws.
    drawn_from : Units
        The same labels, measured on the prediction that was drawn from.

    Raises
    ------
    DataError
        In `expand`, if the prediction has more records than the one that was drawn from, or if labelled
        units are in one of the two only. Draws of those that `Missing.OMIT` left out count nothing.

    Examples
    --------
    >>> import erbayes as eb
    >>> old, new = {1: "a", 2: "a", 3: "b", 4: "b", 5: "b"}, {1: "a", 2: "b", 3: "b", 4: "b", 5: "b"}
    >>> labels = {1: "x", 2: "x", 3: "y"}
    >>> design = eb.design.ByPredictedSize(eb.columns.RECORDS)
    >>> design = eb.design.FrozenWeights(design, eb.measure(old, labels))
    >>> design.expand(eb.measure(new, labels)).weight.round(2)
    array([1.56, 2.78])
    """

    design: Design
    drawn_from: Units

    def expand(self, units: Units) -> DrawnUnits:
        need(self.drawn_from, Units, "drawn_from is Units, as measure(prediction, labels) returns them")
        expansion, known = self.design.expand(self.drawn_from), self.drawn_from.population
        if known is not None and units.population is not None and units.population > known:
            raise DataError(
                f"the prediction holds {units.population:,.0f} records, and the one that was drawn from "
                f"{known:,.0f}: records that could not be drawn must not count",
                Remedy("count its records only", "frame=drawn_from", "--frame FILE"),
            )
        then, never = self.drawn_from, expansion.unreached
        single = units.ids.symmetric_difference(then.ids).difference(units.omitted)
        said = "{n} labelled units are in one of the prediction and that which was drawn from, such as"
        refuse_cases(single, said, ": measure both by the same labels")
        position = units.ids.get_indexer(then.ids).astype(np.int64)
        same = units.known is not None and units.known.equals(then.known)
        same = same and np.array_equal(units.n, then.n) and np.array_equal(units.m, then.m)
        if never is not None and not same:
            # records that are never drawn may be in clusters of any size here
            never = make_unreached(np.unique(units.m) if units.known is None else units.known.size, units)
        return expansion.at(position, never)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Responding(Brief):
    """Another design, some of whose draws nobody could resolve (weighting classes).

    The r_g resolved draws of a class are r_g draws from what the class holds, so that a unit counts once, by
    its chance to be among them in any class. If one answer is that of all draws of a record, its chance is
    that to have a record that is drawn and answered. Where each draw counts, a resolved draw weighs n_g/r_g
    times what it would weigh if every draw had been resolved, for n_g draws of its class. Estimates are
    unbiased if draws of a class are resolved with one probability, whatever their entities.

    `odds` δ say how much more often unresolved draws are of entities with an error, which are not predicted
    exactly: a resolved draw of a class with U unresolved ones then represents 1 + U δ_s / Σ δ_t draws, with
    δ_s = δ if its entity has an error, and else 1. With δ = ∞ and 0 the unresolved draws of a class are all
    as bad, or as good, as its resolved ones can be.

    Parameters
    ----------
    design : Design
        The design of the resolved draws, in the order of drawing: independent and with replacement, uniform
        without replacement, or `Pooled`.
    resolved : sequence of bool, (n,)
        True for each draw whose entity is labelled, in the order of drawing, and part by part under `Pooled`.
    classes : sequence, (n,), optional
        Class of each draw, known without its label, such as that of `size_classes`. By default there is one.
        Under `Pooled` of several parts they are needed, each within one part.
    begun : sequence of bool, (n,), optional
        False for draws that nobody has tried to resolve, and that chance alone left out.
    records : sequence of record ids, (n,), optional
        The record of each draw, if one answer is that of all its draws. The variance allows for this if each
        unit counts once.
    clusters : sequence of cluster ids, (n,), optional
        The predicted cluster of each draw, for an alarm if all draws of a large one are unresolved.
    odds : float from 0 to ∞
        Odds δ of an error of unresolved draws, over those of the resolved ones of their class. A class whose
        resolved draws have all an odds of 0 has those of the next class of its part.

    Raises
    ------
    DataError
        If no draw is resolved, if arguments do not have a value for each draw, or if odds are below 0. In
        `expand`, if a class has no resolved draw, or the design takes no unresolved ones.

    Examples
    --------
    Of four drawn records one could not be resolved:

    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "y"})
    >>> design = Responding(eb.UniformRecords(["x", "y", "y"]), [True, True, False, True])
    >>> design.expand(units).weight.round(3)
    array([1.143, 1.73 ])

    Entity y has an error, and if the unresolved draw has one for certain, y stands for it:

    >>> certain = Responding(eb.UniformRecords(["x", "y", "y"]), [True, True, False, True], odds=np.inf)
    >>> certain.expand(units).weight.round(3)
    array([0.857, 1.946])
    """

    design: Design
    resolved: Sequence[bool] | BoolArray
    classes: Sequence[Any] | pd.Series | IntArray | None = None
    begun: Sequence[bool] | BoolArray | None = None
    records: Sequence[Any] | pd.Series | None = None
    clusters: Sequence[Any] | pd.Series | None = None
    odds: float = 1.0

    def __post_init__(self) -> None:
        need_object(self.design, "expand", "a design of unresolved draws is an object as UniformRecords()")
        resolved = np.asarray(self.resolved)
        if resolved.dtype != bool or resolved.ndim != 1 or not resolved.any():
            raise DataError("resolved holds True or False for every draw, and True for one or more")
        given = {"marks of begun draws": self.begun, "classes": self.classes}
        given |= {"records": self.records, "clusters": self.clusters}
        for what, values in given.items():
            if values is not None and len(values) != len(resolved):
                raise DataError(f"{len(values)} {what} for {len(resolved)} draws: each draw has one")
        if self.tried.dtype != bool:
            raise DataError("begun holds True or False for every draw")
        if mixed := int((pd.Series(resolved).groupby(self._code_records()).nunique() > 1).sum()):
            raise DataError(f"{mixed} records have resolved draws and others: an answer is for all draws")
        if unbegun := int((resolved & ~self.tried).sum()):
            raise DataError(f"{unbegun} draws are resolved, but not begun")
        missing = 0 if self.classes is None else int(pd.Series(list(self.classes)).isna().sum())
        if missing:
            raise DataError(f"{missing} of {len(resolved)} draws have no class: give them one of their own")
        number(self.odds, "odds", lambda x: x >= 0, "be 0 or more")

    @property
    def tried(self) -> BoolArray:
        """True for each draw that was begun, resolved or not, (n,)."""
        return np.ones(len(self.resolved), dtype=bool) if self.begun is None else np.asarray(self.begun)

    @property
    def unresolved(self) -> float:
        """Share of the draws that are not resolved, among those that were begun."""
        return float((~np.asarray(self.resolved)[self.tried]).mean())

    def expect_lost(self) -> pd.Series:
        """Return each predicted cluster of draws none of which is resolved, with its number by chance.

        Of clusters with as many records tried as it has, or more, chance leaves as many unresolved.
        """
        clusters = self._code_records() if self.clusters is None else pd.Series(list(self.clusters))
        each = pd.DataFrame({"of": clusters, "record": self._code_records(), "resolved": self.resolved})
        each = each[self.tried].drop_duplicates("record")
        tried, failed = each.groupby("of")["resolved"].size(), 1 - each["resolved"].mean()
        lost = tried[~each.groupby("of")["resolved"].any()]
        return lost.map(lambda k: float((tried >= k).sum() * failed**k))

    def _code_records(self) -> IntArray:
        """Return the record of each draw, (n,), each draw being its own by default."""
        if self.records is None:
            return np.arange(len(self.resolved))
        return pd.factorize(pd.Series(list(self.records)))[0].astype(np.int64)

    def _code_classes(self) -> IntArray:
        """Return the class of each draw, (n,), numbered in order."""
        classes = np.zeros(len(self.resolved)) if self.classes is None else pd.Series(list(self.classes))
        code, names = pd.factorize(classes, sort=True)
        answered = np.bincount(code[np.asarray(self.resolved)], minlength=len(names))
        said = "{n} classes hold no resolved draw, such as"
        refuse_cases(np.asarray(names)[answered == 0], said, ": merge them with others")
        return code.astype(np.int64)

    def expand(self, units: Units) -> DrawnUnits:
        draws, n = self.design.expand(units), len(self.resolved)
        known = draws.once or draws.df_lost > 1  # the chances of units, or of the parts of Pooled
        rounds = self.design.rounds(units) if known and isinstance(self.design, HasRounds) else []
        if not rounds and (known or draws.L is not None):
            raise DataError(
                f"{type(self.design).__name__} takes no unresolved draws: resolve each draw, list draws with "
                "their repeats (UniformRecords), draw records with replacement, or make the design of the "
                "resolved draws alone if strata are classes themselves"
            )
        if (r := len(draws.order)) != np.sum(self.resolved):
            said = f"{np.sum(self.resolved)} of {n} draws are resolved"
            raise DataError(f"{said}, but the design has {r} draws")
        classes = self._classify(units, draws)
        if rounds:
            of_part = np.bincount(classes.stratum, classes.drawn)
            expected = np.sum([k * one.p for k, one in zip(of_part, rounds, strict=True)], axis=0)
            repeats = classes.represented / expected[draws.order]
        else:
            repeats = draws.weight * (r / n) * classes.represented
        undecided = (1 - classes.resolved / classes.begun)[classes.code]
        if draws.once:
            return replace(self._count_once(units, draws, rounds, classes, repeats), undecided=undecided)
        found = replace(_count_each(draws, repeats, classes), undecided=undecided)
        return found if self.odds == 1 else _vary_lenders(found, classes, classes.lent, np.arange(r))

    def _classify(self, units: Units, draws: DrawnUnits) -> Classes:
        """Return the classes of draws, each within one part of the design."""
        resolved, of_all, r = np.asarray(self.resolved), self._code_classes(), len(draws.order)
        of_draw = np.zeros(r, dtype=np.int64) if draws.stratum is None else draws.stratum
        stratum = np.full(int(of_all.max()) + 1, -1)
        stratum[of_all[resolved]] = of_draw
        if mixed := int((stratum[of_all[resolved]] != of_draw).sum()):
            said = f"{mixed} draws share a class with draws of another part"
            raise DataError(f"{said}: classes lie within the parts of Pooled")
        delta = np.ones(r)
        if self.odds != 1:
            wrong, right = (self.odds, 1.0) if np.isfinite(self.odds) else (1.0, 0.0)
            delta = np.where(units.column(EXACT)[draws.order] == 0, wrong, right)
        of_all, stratum, delta = _lend(of_all, stratum, resolved, delta)
        code = of_all[resolved]
        drawn = np.bincount(of_all).astype(float)
        begun, answered = (np.bincount(of_all[at], minlength=len(drawn)) for at in (self.tried, resolved))
        lent = delta / np.bincount(code, delta)[code]
        represented = (1 + (begun - answered)[code] * lent) * (drawn / begun)[code]
        even = (drawn / answered)[code]
        return Classes(of_all, code, stratum, drawn, begun, answered, represented, even, lent / represented)

    def _count_once(
        self, units: Units, draws: DrawnUnits, rounds: list[Round], classes: Classes, repeats: FloatArray
    ) -> DrawnUnits:
        """Return units that count once, the resolved draws of each class being a round."""
        drawn, stratum, resolved = classes.drawn, classes.stratum, classes.resolved
        of_part = np.bincount(stratum, drawn)[stratum]
        share, of_class = drawn / of_part, [rounds[h] for h in stratum]
        P = np.stack([one.p for one in of_class], axis=1)
        p = P * _compare_shares(draws.order, classes, share, resolved * P)
        if self.records is not None and not any(one.population for one in of_class):
            record = self._code_records()
            answered, met = (
                pd.Series(record[at]).groupby(classes.of_all[at]).nunique().to_numpy(dtype=float)
                for at in (np.asarray(self.resolved), slice(None))
            )
            p = _answer_together(p, P / units.size[:, None] / share, drawn, resolved, answered / met)
        answers = [
            Round(int(x), of_unit, one.population and round(one.population * part))
            for x, of_unit, one, part in zip(resolved, p.T, of_class, share, strict=True)
        ]
        found = replace(count_once(draws.order, answers, repeats, classes.code), unreached=draws.unreached)
        found = _vary_shares(found, of_class, p, classes, share)
        if self.odds == 1:
            return found
        row = np.searchsorted(found.unit, draws.order)
        even = np.bincount(row, repeats / classes.represented * classes.even)
        tilted = np.bincount(row, repeats)
        found = replace(found, weight=found.weight * tilted / even)
        return _vary_lenders(found, classes, classes.lent * repeats / tilted[row], row)


class Classes(NamedTuple):
    """Classes of n draws, of which r are resolved.

    `of_all` (n,), `code` (r,): class of each draw, and of each resolved one; `stratum` (G,): part of the
    design of each class; `drawn`, `begun`, `resolved` (G,): numbers of draws; `represented` (r,): draws that
    each resolved one stands for, and `even` (r,) on average; `lent` (r,): its weight in the mean of lenders
    of its class, over what it represents.
    """

    of_all: IntArray
    code: IntArray
    stratum: IntArray
    drawn: FloatArray
    begun: IntArray
    resolved: IntArray
    represented: FloatArray
    even: FloatArray
    lent: FloatArray


def leave_out(design: Any, units: Units) -> Any:
    """Return a design without resolved draws of entities that have no record in the prediction."""
    inner: Any = design.design if isinstance(design, Responding) and len(units.omitted) else None
    parts = getattr(inner, "parts", [inner])
    if any(getattr(part, "draws", None) is None for part in parts):
        return design
    kept = np.ones(len(design.resolved), dtype=bool)
    kept[design.resolved] = ~pd.Index([one for p in parts for one in as_index(p.draws)]).isin(units.omitted)
    fewer = [replace(part, draws=list_draws(units, part.draws)) for part in parts]
    inner = replace(inner, parts=fewer) if hasattr(inner, "parts") else fewer[0]
    of_draws = ((x, getattr(design, x)) for x in ("resolved", "classes", "begun", "records", "clusters"))
    present: Any = {x: pd.Series(list(y))[kept].to_numpy() for x, y in of_draws if y is not None}
    return replace(design, design=inner, **present)


def find_responding(design: Any, odds: float | None = None) -> Responding | None:
    """Return the design, in another or not, of draws some of which are undecided, with `odds` if given."""
    while not isinstance(design, Responding) and hasattr(design, "design"):
        design = design.design
    found = isinstance(design, Responding) and design.unresolved > 0 and odds in (None, design.odds)
    return design if found else None


def set_odds(design: Any, odds: float) -> Any:
    """Return a design that holds `Responding`, or is one, with other odds."""
    if isinstance(design, Responding):
        return replace(design, odds=odds)
    return replace(design, design=set_odds(design.design, odds))


def _lend(
    code: IntArray, stratum: IntArray, resolved: BoolArray, delta: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return classes of draws, (n,), with their strata, (G,), and odds, (r,), some above 0 in each class.

    A class with odds of 0 alone goes to the nearest of its stratum. If all are such, their odds become 1.
    """
    lends = np.bincount(code[resolved], delta, len(stratum)) > 0
    some = np.bincount(stratum, lends)[stratum] > 0
    delta = np.where(some[code[resolved]], delta, 1.0)
    to, number = np.arange(len(stratum)), np.arange(len(stratum))
    for g in np.flatnonzero(~lends & some):
        others = number[lends & (stratum == stratum[g])]
        to[g] = others[np.abs(others - g).argmin()]
    kept, code = np.unique(to[code], return_inverse=True)
    return code.astype(np.int64), stratum[kept], delta


def _count_each(draws: DrawnUnits, repeats: FloatArray, classes: Classes) -> DrawnUnits:
    """Return resolved draws, each of which represents draws of its class that nobody could resolve.

    `draws`: the resolved ones, that count as often as they were made; `repeats` (r,): their weights. With n
    draws of a class, t of them begun and r resolved, and the mean m of lenders, the covariance is that of all
    draws with e + z - m (1 - r/t) of resolved ones, e + m r/t of others that were begun, for e = (1/n - 1/t)
    Σz, and Σz/n of those that were not.
    """
    code, stratum, lent = classes.code, classes.stratum, classes.lent
    n = np.bincount(stratum, classes.drawn)
    theta = np.zeros(len(n))
    theta[stratum[code]] = draws.unseen
    factor = theta * n / np.maximum(n - 1, 1)
    same = (stratum[:, None] == stratum).astype(float)
    lost = np.diag(1 - classes.resolved / classes.begun)
    unbegun = np.diag(1 / classes.begun - 1 / classes.drawn)
    G = np.block([[-same / n[stratum] - unbegun, -lost], [-lost, lost * classes.resolved]])
    of_class = indicate(code, len(stratum))
    mean = of_class.multiply((lent / np.bincount(code, lent)[code])[:, None])
    return replace(
        draws,
        weight=repeats,
        centred=False,
        d=factor[stratum[code]],
        A=hstack([of_class, mean], format="csr"),
        G=np.tile(factor[stratum], 2)[:, None] * G,
        df_lost=draws.df_lost + len(stratum) - 1,
        repeats=repeats,
        stratum=stratum[code],
    )


def _vary_shares(
    draws: DrawnUnits, rounds: Sequence[Round], p: FloatArray, classes: Classes, share: FloatArray
) -> DrawnUnits:
    """Return units that count once, with the variance of the shares s (G,) of classes among draws of a part.

    Of n draws in `rounds` (G,) they have the covariance (diag(s) - ss')/n, times (N - n)/(N - 1) if those are
    of N records without replacement. By log s_g, 1/π_c changes by r_g p_cg/(1 - p_cg) (1 - π_c)/π_c for
    chances `p` (units, G).
    """
    p, n = p[draws.unit], classes.drawn / share
    slope = np.divide(classes.resolved * p, 1 - p, out=np.zeros_like(p), where=p < 1)
    slope *= (draws.weight - 1)[:, None]
    records = np.array([one.population or np.inf for one in rounds])
    left = 1 - (n - 1) / np.maximum(records - 1, 1)
    G = (np.diag(1 / share) - (classes.stratum[:, None] == classes.stratum)) * left / n
    return replace(draws, by_share=(slope, G))


def _vary_lenders(draws: DrawnUnits, classes: Classes, lent: FloatArray, row: IntArray) -> DrawnUnits:
    """Return draws whose contributions vary as z - (a - n/r) m, with the mean m of lenders of the class.

    A draw represents a others; `lent` (r,): what it weighs in m; `row` (r,): its row.
    """
    L, R = np.zeros((2, len(draws.unit), len(classes.stratum)))
    np.add.at(L, (row, classes.code), classes.represented - classes.even)
    np.add.at(R, (row, classes.code), lent)
    return replace(draws, L=L, R=R)


def _answer_together(
    p: FloatArray, of_record: FloatArray, drawn: FloatArray, resolved: IntArray, answered: FloatArray
) -> FloatArray:
    """Return chances p, (units, G), with which r_g draws miss a unit as often as answers to records do.

    A record of chance π, `of_record` (units, G), is met by the n_g draws of a class and answered as the share
    `answered` (G,) of its records is: (1 - (1 - π)^n_g) a_g/T_g. That is the chance to be met by fewer draws
    than the r_g `resolved` ones, whose number a unit has for each of its records.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        missed = np.log1p(-of_record)
        draws = np.log1p(answered * np.expm1(drawn * missed)) / missed
        once = -np.expm1(draws / resolved * np.log1p(-np.minimum(p, 1)))
    return np.asarray(np.where((of_record > 0) & (of_record < 1), once, p))


def _compare_shares(order: IntArray, classes: Classes, share: FloatArray, expected: FloatArray) -> FloatArray:
    """Return the share of each unit that is in a class, over that of all draws of its part, (units, G).

    The share of a unit is that of its resolved draws `order` (r,). In a part where it has none, it is
    resolved as in the others. `expected` (units, G): draws of units if each had `share` (G,).
    """
    seen = np.zeros(expected.shape)
    np.add.at(seen, (order, classes.code), 1)
    of_part = seen @ (classes.stratum[:, None] == classes.stratum)
    found, known = np.divide(seen, of_part * share, where=of_part > 0, out=np.zeros(seen.shape)), of_part > 0
    elsewhere = (expected * found).sum(axis=1) / (expected * known).sum(axis=1)
    return np.asarray(np.where(known, found, elsewhere[:, None]))


def size_classes(size: Any, resolved: Sequence[bool] | BoolArray, fewest: int = FEWEST) -> IntArray:
    """Return classes of draws by the size of their predicted cluster, for `Responding`.

    Classes start at powers of 2, and are merged from the largest down until each has `fewest` resolved draws.

    Parameters
    ----------
    size : sequence of int, (n,)
        Records in the predicted cluster of each drawn record.
    resolved : sequence of bool, (n,)
    fewest : int

    Returns
    -------
    int array, (n,), the least size of each draw's class

    Examples
    --------
    >>> size_classes([1, 1, 2, 3, 9, 40], [True, True, True, True, False, True], fewest=2)
    array([1, 1, 2, 2, 2, 2])
    """
    sizes, answered = np.asarray(size, dtype=float), np.asarray(resolved, dtype=bool)
    if sizes.shape != answered.shape or not (sizes >= 1).all():
        raise DataError(f"{sizes.size} sizes of 1 or more are needed for {answered.size} draws")
    start, fewest, count = 2 ** (np.frexp(sizes)[1].astype(np.int64) - 1), whole(fewest, "fewest"), 0
    least: list[int] = []
    for power in np.unique(start)[::-1]:
        count += int(answered[start == power].sum())
        if count >= fewest:
            least.append(int(power))
            count = 0
    edges = np.unique([*least[:-1], int(start.min())])
    return np.asarray(edges[np.searchsorted(edges, start, side="right") - 1])
