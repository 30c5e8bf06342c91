"""What is assumed and seen of annotators: models of their errors, two of them side by side, their sheets.

An annotator starts from the predicted cluster of a sampled mention (*home*), removes wrong records from it,
and searches elsewhere for missing ones. Two errors: records elsewhere that are *missed*, and foreign records
that are *kept*. Both flatter the prediction.

Records of one piece (see `erbayes.units`) are exchangeable, so an error model says how many of each piece
are missed or kept. `mislabel` and `perturb` go from the truth to what an annotator would write; `restore`
draws a truth from what an annotator wrote.

Sources: Chapman (1951), University of California Publications in Statistics 1, 131-160 (two lists); Lash, Fox
and Fink (2009), Applying Quantitative Bias Analysis to Epidemiologic Data (rates with priors).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit

from .clustering import Clustering, DataError, FloatArray, IntArray, some
from .design import Design, KnownWeights
from .metrics import METRICS, UNIT, Metric
from .sample import Sample
from .taylor import effects, taylor
from .uncertain import Normal
from .units import Missing, Units, measure

BoolArray = NDArray[np.bool_]

# Rates


class Rate(Protocol):
    """A share that is not known."""

    def draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        """Draws in [0, 1], of shape `size`."""
        ...


@dataclass(frozen=True, slots=True)
class Beta:
    """A Beta prior: mean a/(a+b), as sure as a + b cases seen.

    Parameters
    ----------
    a, b : float
        Above 0.

    Examples
    --------
    >>> round(float(Beta(20, 80).draw(np.random.default_rng(1), (10_000,)).mean()), 2)
    0.2
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        if not (0 < self.a < np.inf and 0 < self.b < np.inf):
            raise DataError(f"a and b of Beta must be above 0 and finite, not {self.a} and {self.b}")

    def draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        """Draws in [0, 1], of shape `size`."""
        return rng.beta(self.a, self.b, size)


@dataclass(frozen=True, slots=True)
class Recaptured:
    """Share that two annotators both missed, from what each of them found.

    With shares q of a 2 × 2 table, odds ratio ω = q11 q00/(q10 q01). The posterior of the three seen cells
    under a Dirichlet prior gives q00 = ω q10 q01/q11, and the share is q00/(q00 + q10 + q01 + q11). With
    the default prior the missed are (first + ½)(second + ½)/(both + 1) in mean, Chapman's estimator but
    for the halves, which keep a doubt where counts are 0.

    What nobody can find is not in the data: ω > 1 (easy finds are easy for both) is an assumption, to vary.

    Parameters
    ----------
    both, first, second : float
        Finds of both, of only the first, of only the second.
    odds_ratio : float
        ω, above 0; 1 for independent annotators.
    prior : (float, float, float)
        Dirichlet masses of both, only the first, only the second.

    Raises
    ------
    DataError
        Negative counts, an odds ratio or a prior mass not above 0.

    Examples
    --------
    >>> share = Recaptured(60, 15, 20).draw(np.random.default_rng(1), (10_000,))
    >>> round(float(np.median(share)), 2)  # 15 · 20/60 = 5 of 100
    0.05
    """

    both: float
    first: float
    second: float
    odds_ratio: float = 1.0
    prior: tuple[float, float, float] = (2.0, 0.5, 0.5)

    def __post_init__(self) -> None:
        if min(self.both, self.first, self.second) < 0:
            raise DataError(f"counts must be 0 or more, not {self.both}, {self.first}, {self.second}")
        if not 0 < self.odds_ratio < np.inf:
            raise DataError(f"the odds ratio must be above 0 and finite, not {self.odds_ratio}")
        if min(self.prior) <= 0:
            raise DataError(f"prior masses must be above 0, not {self.prior}")

    def draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        """Draws in [0, 1], of shape `size`."""
        mass = np.add([self.both, self.first, self.second], self.prior)
        both, first, second = np.moveaxis(rng.standard_gamma(mass, (*size, 3)), -1, 0)
        with np.errstate(divide="ignore"):
            seen = both / (self.odds_ratio * first * second) * (both + first + second)
        return np.asarray(1 / (1 + seen))


def drawn(rate: float | Rate, rng: np.random.Generator, size: tuple[int, ...] = ()) -> FloatArray:
    """Draws of a rate, or a known one repeated."""
    return np.full(size, rate) if isinstance(rate, float | int) else np.asarray(rate.draw(rng, size))


def _need_rate(rate: float | Rate, what: str) -> None:
    if isinstance(rate, float | int) and not 0 <= rate <= 1:
        raise DataError(f"{what} must lie in [0, 1], not {rate}")


# Error models


class Missed(Protocol):
    """How records elsewhere are missed. Arrays are of the pieces outside home."""

    @property
    def rate(self) -> float | Rate: ...
    def fixed(self, rng: np.random.Generator) -> Missed:
        """The same with its prior replaced by one draw."""
        ...

    def missed(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Records missed of each piece of n records, (p,)."""
        ...

    def unseen(
        self, n: FloatArray, m: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, IntArray, FloatArray]:
        """What else there was, given that n of a predicted cluster of m were found.

        Returns
        -------
        joined : float array, (p,)
            More records of the same piece.
        copies, size : int array, float array, (p,)
            More pieces, and their size, in predicted clusters like this one.
        """
        ...


@dataclass(frozen=True, slots=True)
class MissedRecords:
    """Each record elsewhere is missed independently.

    Parameters
    ----------
    rate : float in [0, 1] or Rate
    """

    rate: float | Rate

    def __post_init__(self) -> None:
        _need_rate(self.rate, "rate of MissedRecords")

    def fixed(self, rng: np.random.Generator) -> MissedRecords:
        return replace(self, rate=float(drawn(self.rate, rng)))

    def missed(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        return rng.binomial(n.astype(np.int64), drawn(self.rate, rng)).astype(float)

    def unseen(
        self, n: FloatArray, m: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, IntArray, FloatArray]:
        more = _negative_binomial(n, drawn(self.rate, rng), rng)
        joined = np.minimum(more, m - n)
        return joined, (more - joined).astype(np.int64), np.ones_like(n)


@dataclass(frozen=True, slots=True)
class MissedPieces:
    """Each piece elsewhere is missed as a whole: a reviewer misses a predicted cluster, not a record.

    A piece of n records is missed with probability p(n), logit p(n) = logit(rate) - slope log n.

    Parameters
    ----------
    rate : float in [0, 1] or Rate
        p(1).
    slope : float
        0 or more; above 0, smaller pieces are likelier to be missed.
    """

    rate: float | Rate
    slope: float = 0.0

    def __post_init__(self) -> None:
        _need_rate(self.rate, "rate of MissedPieces")
        if not 0 <= self.slope < np.inf:
            raise DataError(f"slope of MissedPieces must be 0 or more and finite, not {self.slope}")

    def fixed(self, rng: np.random.Generator) -> MissedPieces:
        return replace(self, rate=float(drawn(self.rate, rng)))

    def _probability(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        return np.asarray(expit(logit(drawn(self.rate, rng)) - self.slope * np.log(n)))

    def missed(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        return np.where(rng.random(len(n)) < self._probability(n, rng), n, 0.0)

    def unseen(
        self, n: FloatArray, m: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, IntArray, FloatArray]:
        copies = _negative_binomial(np.ones_like(n), self._probability(n, rng), rng)
        return np.zeros_like(n), copies.astype(np.int64), n


@dataclass(frozen=True, slots=True)
class KeptRecords:
    """Each foreign record of a touched predicted cluster is kept independently.

    Parameters
    ----------
    rate : float in [0, 1] or Rate
        In the home cluster.
    elsewhere : float in [0, 1] or Rate
        In the other predicted clusters in which records were found.
    """

    rate: float | Rate
    elsewhere: float | Rate = 0.0

    def __post_init__(self) -> None:
        _need_rate(self.rate, "rate of KeptRecords")
        _need_rate(self.elsewhere, "elsewhere of KeptRecords")

    def fixed(self, rng: np.random.Generator) -> KeptRecords:
        """The same with its priors replaced by one draw."""
        return KeptRecords(float(drawn(self.rate, rng)), float(drawn(self.elsewhere, rng)))

    def _probability(self, home: BoolArray, rng: np.random.Generator) -> FloatArray:
        return np.where(home, drawn(self.rate, rng), drawn(self.elsewhere, rng))

    def kept(self, foreign: FloatArray, home: BoolArray, rng: np.random.Generator) -> FloatArray:
        """Foreign records kept of each piece, (p,)."""
        return rng.binomial(foreign.astype(np.int64), self._probability(home, rng)).astype(float)

    def unremoved(self, removed: FloatArray, home: BoolArray, rng: np.random.Generator) -> FloatArray:
        """Foreign records that are still there, given how many were removed, (p,)."""
        return _negative_binomial(removed, self._probability(home, rng), rng)


def _negative_binomial(seen: FloatArray, p: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Cases not seen before `seen` were, each being missed with probability p < 1."""
    if np.any(p >= 1):
        raise DataError("nothing can be restored where all is missed or kept: rates must be below 1")
    return rng.poisson(rng.gamma(seen, 1.0) * (p / (1 - p))).astype(float)


@dataclass(frozen=True, slots=True)
class Annotator:
    """An annotator who misses and keeps records; perfect by default.

    Rates with priors are drawn once for each labelled sample: they belong to the annotator.

    Parameters
    ----------
    missed : Missed
    kept : KeptRecords

    Examples
    --------
    >>> units = measure({1: "a", 2: "a", 3: "b", 4: "a"}, {1: "x", 2: "x", 3: "x"})
    >>> blind = Annotator(MissedPieces(1.0), KeptRecords(1.0))
    >>> mislabel(units, blind, np.random.default_rng(1)).table()["records"].to_list()
    [3.0]
    """

    missed: Missed = field(default_factory=lambda: MissedPieces(0.0))
    kept: KeptRecords = field(default_factory=lambda: KeptRecords(0.0))

    def fixed(self, rng: np.random.Generator) -> Annotator:
        """The same with priors replaced by one draw."""
        return Annotator(self.missed.fixed(rng), self.kept.fixed(rng))

    def changes(
        self, units: Units, home: BoolArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Records missed and foreign records kept of each piece, (p,) each."""
        known = self.fixed(rng)
        lost = np.zeros(len(units.n))
        lost[~home] = known.missed.missed(units.n[~home], rng)
        kept = known.kept.kept(units.m - units.n, home, rng)
        return lost, np.where(lost < units.n, kept, 0.0)


def sampled_mention(units: Units, rng: np.random.Generator) -> BoolArray:
    """A home for each entity: the piece of one of its records drawn uniformly, (p,)."""
    ends = np.cumsum(units.n)
    size = np.bincount(units.group, weights=units.n)
    at = np.cumsum(size) - size + rng.random(len(size)) * size
    home = np.zeros(len(units.n), dtype=bool)
    home[np.searchsorted(ends, at, side="right")] = True
    return home


def _with_pieces(
    units: Units, at: IntArray, n: FloatArray, m: FloatArray, cluster: IntArray
) -> Units:
    """The same units with other pieces, each like the one `at` which it stands."""
    there = n > 0
    at, n, m, cluster = at[there], n[there], m[there], cluster[there]
    order = np.argsort(at, kind="stable")
    at, n, m, cluster = at[order], n[order], m[order], cluster[order]
    group = units.group[at]
    N = np.bincount(group, weights=n)[group]
    return replace(units, unit=units.unit[at], group=group, n=n, N=N, m=m, cluster=cluster)


def _need_entities(units: Units) -> None:
    if not units.by_entity:
        raise DataError("annotators label entities; these units are sampled predicted clusters")


def mislabel(
    units: Units, model: Annotator, rng: np.random.Generator, home: BoolArray | None = None
) -> Units:
    """What an annotator would have made of these entities.

    Parameters
    ----------
    units : Units
        True entities.
    model : Annotator
    rng : Generator
    home : bool array, (p,), optional
        The piece that the annotator starts from, one an entity; by default that of a record drawn
        uniformly from the entity.

    Raises
    ------
    DataError
        Units that are not made of entities.

    Examples
    --------
    >>> units = measure({1: "a", 2: "a", 3: "a", 4: "b"}, {1: "x", 2: "x", 3: "x", 4: "x"})
    >>> seen = mislabel(units, Annotator(MissedRecords(1.0)), np.random.default_rng(1))
    >>> seen.table()["records"].to_list()
    [3.0]
    """
    _need_entities(units)
    home = sampled_mention(units, rng) if home is None else home
    lost, kept = model.changes(units, home, rng)
    return _with_pieces(units, np.arange(len(units.n)), units.n - lost + kept, units.m, units.cluster)


def restore(
    units: Units, model: Annotator, rng: np.random.Generator, home: BoolArray | None = None
) -> Units:
    """A draw of the true entities behind these labels, if annotators err as `model` says.

    A find of probability 1 - p stands for NB(1, 1 - p) others that were not made. Which records were missed
    is not known: a missed piece is taken to be like a found one, of its size and its predicted cluster's, on
    an entity of which only home was found, as large as the home of the find. A removed foreign record stands
    for NB(1, 1 - v) that were kept; one record of each home piece, the sampled mention, is never taken for
    foreign.

    Parameters
    ----------
    units : Units
        Entities as labelled.
    model : Annotator
    rng : Generator
    home : bool array, (p,), optional
        As in `mislabel`.

    Raises
    ------
    DataError
        Units that are not made of entities; rates of 1.

    Examples
    --------
    >>> units = measure({1: "a", 2: "b", 3: "c", 4: "d"}, {1: "x", 2: "x", 3: "y"})
    >>> rng = np.random.default_rng(1)
    >>> truth = [restore(units, Annotator(MissedPieces(0.5)), rng).size for _ in range(500)]
    >>> np.mean(truth, axis=0).round()  # one find in x stands for one, in mean, that y lacks
    array([2., 2.])
    """
    _need_entities(units)
    home = sampled_mention(units, rng) if home is None else home
    known = model.fixed(rng)
    joined, copies, size = np.zeros_like(units.n), np.zeros(len(units.n), dtype=np.int64), units.n.copy()
    away = ~home
    joined[away], copies[away], size[away] = known.missed.unseen(units.n[away], units.m[away], rng)
    foreign = known.kept.unremoved(units.m - units.n, home, rng)
    n = np.maximum(units.n - foreign, home.astype(float)) + joined
    every = np.arange(len(n))
    more = np.repeat(every, copies)
    fresh = np.max(units.cluster, initial=0) + 1 + np.arange(len(more))
    return _with_pieces(
        units, np.concatenate([every, _receivers(units, home, more, rng)]), np.concatenate([n, size[more]]),
        np.concatenate([units.m, units.m[more]]), np.concatenate([units.cluster, fresh]),
    )  # fmt: skip


def _receivers(units: Units, home: BoolArray, finds: IntArray, rng: np.random.Generator) -> IntArray:
    """Home pieces to which pieces like these finds are given: of entities without finds, of like size."""
    at = np.flatnonzero(home)
    alone = at[np.bincount(units.group)[units.group[at]] == 1]
    if not len(alone):
        return finds
    alone = alone[np.argsort(units.n[alone], kind="stable")]
    wanted = units.n[at[units.group[finds]]]
    first, last = (np.searchsorted(units.n[alone], wanted, side) for side in ("left", "right"))
    chosen = first + (rng.random(len(finds)) * (last - first)).astype(np.int64)
    return np.asarray(alone[np.minimum(chosen, len(alone) - 1)])


def _random_rank(piece: IntArray, rng: np.random.Generator) -> IntArray:
    """Position of each record in a random order of its piece."""
    order = rng.permutation(len(piece))
    order = order[np.argsort(piece[order], kind="stable")]
    counts = np.bincount(piece)
    rank = np.empty_like(piece)
    rank[order] = np.arange(len(piece)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rank


def perturb(
    labels: Any, prediction: Any, model: Annotator, rng: np.random.Generator, mentions: Any = None
) -> pd.Series:
    """Labels with the errors that an annotator would have made.

    Parameters
    ----------
    labels, prediction : memberships
        See `Clustering.of`. Labelled records that the prediction lacks are left as they are, since neither
        error is defined for them.
    model : Annotator
    rng : Generator
    mentions : sequence of record ids, optional
        The sampled mention of each entity, where the annotator starts; by default one drawn uniformly. Of
        several in one entity the first counts.

    Returns
    -------
    Series, record -> entity
        A record labelled already is never kept for a second entity.

    Raises
    ------
    DataError
        Mentions that are not labelled or not predicted, or that leave entities without any; labels of which
        the prediction has no record.

    Examples
    --------
    >>> labels, prediction = {1: "x", 2: "x", 3: "x"}, {1: "a", 2: "a", 3: "b", 4: "a"}
    >>> careless = Annotator(MissedPieces(1.0), KeptRecords(1.0))
    >>> perturb(labels, prediction, careless, np.random.default_rng(1), mentions=[2]).to_dict()
    {1: 'x', 2: 'x', 4: 'x'}
    """
    labels, prediction = Clustering.of(labels, "labels"), Clustering.of(prediction, "prediction")
    where = prediction.records.get_indexer(labels.records)
    covered = np.flatnonzero(where >= 0)
    if not len(covered):
        raise DataError("none of the labelled records is in the prediction")
    present, entity = np.unique(labels.codes[covered], return_inverse=True)
    width = len(prediction.clusters)
    key, piece, counts = np.unique(entity * width + prediction.codes[where[covered]],
                                   return_inverse=True, return_counts=True)  # fmt: skip
    unit, cluster, n = key // width, key % width, counts.astype(float)
    N, m = np.bincount(unit, weights=n)[unit], prediction.sizes[cluster].astype(float)
    units = Units(labels.clusters[present], unit, unit, n, N, m, cluster, None)
    home = None if mentions is None else _home(units, labels, covered, piece, pd.Index(mentions))
    lost, kept = model.changes(units, sampled_mention(units, rng) if home is None else home, rng)
    stays = np.ones(len(where), dtype=bool)
    stays[covered] = _random_rank(piece, rng) >= lost[piece]

    by_cluster = np.argsort(prediction.codes, kind="stable")
    first = np.cumsum(prediction.sizes) - prediction.sizes
    keeping = np.flatnonzero(kept)
    size = prediction.sizes[cluster[keeping]]
    of = np.repeat(keeping, size)
    offset = np.arange(len(of)) - np.repeat(np.cumsum(size) - size, size)
    record = by_cluster[np.repeat(first[cluster[keeping]], size) + offset]
    foreign = ~np.isin(record, where)
    of, record = of[foreign], record[foreign]
    chosen = _random_rank(of, rng) < kept[of]
    more = pd.Series(units.ids[unit[of[chosen]]], index=prediction.records[record[chosen]])
    kept_labels = pd.Series(labels.clusters[labels.codes[stays]], index=labels.records[stays])
    if not len(more):
        return kept_labels
    return pd.concat([kept_labels, more[~more.index.duplicated()]])


def _home(
    units: Units, labels: Clustering, covered: IntArray, piece: IntArray, mentions: pd.Index
) -> BoolArray:
    """The pieces of the sampled mentions."""
    at = labels.records[covered].get_indexer(mentions)
    if (at < 0).any():
        raise DataError(f"{int((at < 0).sum())} of {len(at)} mentions are not both labelled and predicted: "
                        f"{some(mentions[at < 0])}")  # fmt: skip
    chosen = piece[at]
    chosen = chosen[np.unique(units.group[chosen], return_index=True)[1]]
    if len(chosen) < len(units):
        without = np.setdiff1d(np.arange(len(units)), units.unit[chosen])
        raise DataError(f"{len(without)} labelled entities hold no mention: {some(units.ids[without])}")
    home = np.zeros(len(units.n), dtype=bool)
    home[chosen] = True
    return home


# Two annotators


PER_LINK = np.reciprocal
"""Weight 1/size of an entity, where draws are proportional to size."""


@dataclass(frozen=True, slots=True, eq=False)
class _Given:
    """A column whose values are at hand."""

    name: str
    values: FloatArray

    def identified(self, units: Units) -> bool:
        return True

    def count(self, units: Units) -> FloatArray:
        return self.values


def answers(labels: Any, mentions: Any) -> pd.DataFrame:
    """Labels as an answer for each sampled mention: all records of its entity.

    Parameters
    ----------
    labels : memberships
    mentions : sequence of record ids
        Each once.

    Returns
    -------
    DataFrame
        Columns mention, record: one row a record of the mention's entity.

    Raises
    ------
    DataError
        Mentions without a label, or listed twice.

    Examples
    --------
    >>> answers({1: "x", 2: "x", 3: "y"}, [2]).to_numpy().tolist()
    [[2, 1], [2, 2]]
    """
    labels, mentions = Clustering.of(labels, "labels"), pd.Index(mentions)
    at = labels.records.get_indexer(mentions)
    if (at < 0).any():
        raise DataError(f"{int((at < 0).sum())} of {len(at)} mentions have no label: "
                        f"{some(mentions[at < 0])}")  # fmt: skip
    _need_once(mentions)
    members = pd.DataFrame({"entity": labels.codes, "record": labels.records})
    asked = pd.DataFrame({"mention": mentions, "entity": labels.codes[at]})
    return asked.merge(members, on="entity")[["mention", "record"]]


def _need_once(mentions: pd.Index) -> None:
    if not mentions.is_unique:
        twice = mentions[mentions.duplicated()]
        raise DataError(f"{len(twice)} mentions are listed twice: {some(twice)}")


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two annotators' answers about the same sampled mentions.

    Attributes
    ----------
    mentions : Index, (n,)
    table : DataFrame
        One row a mention and record of its predicted cluster or of either answer. mention (position
        among the mentions), record, cluster (code), m (its size), home (the cluster of the mention), first,
        second (whether the record is in the answer).
    prediction : Clustering
    unmatched : int
        Rows left out since the prediction lacks their record.

    Examples
    --------
    >>> prediction = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
    >>> pair = Pair.of(answers({1: "x", 2: "x", 3: "x"}, [1]), answers({1: "x", 3: "x"}, [1]), prediction)
    >>> pair.disagreements()[["kind", "records", "examples"]].to_numpy().tolist()
    [['kept by the first only', 1, '2']]
    >>> pair.units(kept=np.logical_or).size, pair.units(kept=np.logical_and).size
    (array([3.]), array([2.]))
    """

    mentions: pd.Index
    table: pd.DataFrame
    prediction: Clustering
    unmatched: int = 0

    @classmethod
    def of(
        cls, first: pd.DataFrame, second: pd.DataFrame, prediction: Any, missing: Missing = Missing.ERROR
    ) -> Pair:
        """From two frames of `answers`.

        Raises
        ------
        DataError
            Different mentions; mentions that the prediction lacks; with `Missing.ERROR` any such record;
            other policies than ERROR and OMIT.
        """
        if missing not in {Missing.ERROR, Missing.OMIT}:
            raise DataError(f"two annotators are compared with Missing.ERROR or OMIT, not {missing}")
        prediction = Clustering.of(prediction, "prediction")
        mentions = pd.Index(first["mention"].unique())
        odd = mentions.symmetric_difference(pd.Index(second["mention"].unique()))
        if len(odd):
            raise DataError(f"{len(odd)} mentions were answered by one annotator only: {some(odd)}")
        at = prediction.records.get_indexer(mentions)
        if (at < 0).any():
            raise DataError(f"{int((at < 0).sum())} mentions are not in the prediction: "
                            f"{some(mentions[at < 0])}")  # fmt: skip
        home = prediction.codes[at]
        members = pd.DataFrame({"cluster": prediction.codes, "record": prediction.records})
        shown = pd.DataFrame({"mention": mentions, "cluster": home}).merge(members, on="cluster")
        rows = shown[["mention", "record"]]
        for name, given in (("first", first), ("second", second)):
            given = given[["mention", "record"]].drop_duplicates().assign(**{name: True})
            rows = rows.merge(given, on=["mention", "record"], how="outer")
        where = prediction.records.get_indexer(pd.Index(rows["record"]))
        lacking = where < 0
        unmatched = int(lacking.sum())
        if unmatched and missing is Missing.ERROR:
            raise DataError(
                f"{unmatched} records of the answers are not in the prediction, such as "
                f"{some(rows['record'][lacking].tolist())}; Missing.OMIT leaves them out"
            )
        rows, where = rows[~lacking], where[~lacking]
        mention = mentions.get_indexer(pd.Index(rows["mention"]))
        cluster = prediction.codes[where]
        table = pd.DataFrame({
            "mention": mention, "record": rows["record"].array, "cluster": cluster,
            "m": prediction.sizes[cluster], "home": cluster == home[mention],
            "first": rows["first"].eq(True).to_numpy(), "second": rows["second"].eq(True).to_numpy(),
        })  # fmt: skip
        return cls(mentions, table, prediction, unmatched)

    def _sizes(self, chosen: BoolArray) -> FloatArray:
        return np.bincount(self.table["mention"], weights=chosen, minlength=len(self.mentions))

    def agreement(self, weight: Callable[[FloatArray], FloatArray] = PER_LINK) -> Normal:
        """How far the annotators agree, in the population.

        With a, b and c records in the first answer, the second and both, N = (a + b)/2 and weights w(N):
        *identical-entities* Σ w 1[a = b = c]/Σ w; *identical-records* the same with w N; *jaccard*
        Σ w N c/(a + b - c)/Σ w N; *links* 2 Σ w C2(c)/Σ w (C2(a) + C2(b)), Dice's coefficient of links.

        Parameters
        ----------
        weight : callable
            Weight of an entity of N records: 1/N where mentions were drawn uniformly,
            `numpy.ones_like` where entities were.
        """
        first, second = self.table["first"].to_numpy(), self.table["second"].to_numpy()
        a, b, c = self._sizes(first), self._sizes(second), self._sizes(first & second)
        N = (a + b) / 2
        same = ((a == c) & (b == c)).astype(float)
        one, size = _Given("one", np.ones_like(N)), _Given("size", N)
        both = _Given("both", c * (c - 1))
        either = _Given("either", (a * (a - 1) + b * (b - 1)) / 2)

        def share(name: str, top: _Given, bottom: _Given) -> Metric:
            return Metric(name, (top, bottom), lambda x, y: x / y, ((bottom, 1.0),), UNIT,
                          "see Pair.agreement")  # fmt: skip

        metrics = [
            share("identical-entities", _Given("same", same), one),
            share("identical-records", _Given("same_size", same * N), size),
            share("jaccard", _Given("jaccard_size", c / (a + b - c) * N), size),
            share("links", both, either),
        ]
        every = np.arange(len(N))
        units = Units(self.mentions, every, every, N, N, N, every, None)
        design = KnownWeights(pd.Series(weight(N), index=self.mentions))
        return taylor(Sample(units, design), metrics).apply(metrics)

    def units(
        self, found: Callable[[BoolArray, BoolArray], BoolArray] = np.logical_or,
        kept: Callable[[BoolArray, BoolArray], BoolArray] = np.logical_and,
        decisions: pd.Series | None = None,
    ) -> Units:  # fmt: skip
        """One unit a mention: the entity that follows from both answers.

        Parameters
        ----------
        found, kept : callables
            What counts outside home and in it, of (in the first, in the second). The default is the
            strictest on the prediction, all errors that either annotator saw; found by `logical_and` and
            kept by `logical_or` is the most lenient.
        decisions : Series of bool, optional
            Adjudicated, indexed by (mention, record): whether the record belongs. Overrides both.

        Raises
        ------
        DataError
            Decisions on what is not in the table.
        """
        t = self.table
        first, second, home = (t[c].to_numpy() for c in ("first", "second", "home"))
        chosen = np.where(home, kept(first, second), found(first, second))
        if decisions is not None:
            index = pd.MultiIndex.from_arrays([self.mentions[t["mention"]], t["record"]])
            at = index.get_indexer(decisions.index)
            if (at < 0).any():
                raise DataError(f"{int((at < 0).sum())} decisions are on mentions and records that neither "
                                f"annotator saw: {some(decisions.index[at < 0])}")  # fmt: skip
            chosen[at] = decisions.to_numpy(dtype=bool)
        chosen[t["record"].to_numpy() == self.mentions[t["mention"]].to_numpy()] = True
        pieces = t[chosen].groupby(["mention", "cluster"]).agg(n=("record", "size"), m=("m", "first"))
        unit, cluster = (pieces.index.get_level_values(i).to_numpy(np.int64) for i in (0, 1))
        n = pieces["n"].to_numpy(float)
        known = measure(self.prediction, {self.mentions[0]: "x"}).known
        return Units(self.mentions, unit, unit, n, np.bincount(unit, weights=n)[unit],
                     pieces["m"].to_numpy(float), cluster, known, unmatched=self.unmatched)  # fmt: skip

    def disagreements(self) -> pd.DataFrame:
        """What to adjudicate, most links first.

        Returns
        -------
        DataFrame
            mention, cluster, kind, records (on which they differ), links (between these, and to what both
            put in), examples.
        """
        t = self.table
        common = self._sizes((t["first"] & t["second"]).to_numpy())
        odd = t[t["first"] != t["second"]]
        kind = odd["home"].map({True: "kept", False: "found"}) + " by the " + odd["first"].map(
            {True: "first", False: "second"}) + " only"  # fmt: skip
        found = odd.assign(kind=kind).groupby(["mention", "cluster", "kind"], as_index=False).agg(
            records=("record", "size"), examples=("record", lambda r: some_ids(r.tolist())))
        found["links"] = found["records"] * (common[found["mention"]] + (found["records"] - 1) / 2)
        found["mention"] = self.mentions[found["mention"]]
        found["cluster"] = self.prediction.clusters[found["cluster"]]
        found = found.sort_values("links", ascending=False, kind="stable", ignore_index=True)
        return found[["mention", "cluster", "kind", "records", "links", "examples"]]

    def counts(self) -> pd.DataFrame:
        """Cross-classification of what was found outside home and of what was removed from it.

        Records of one mention, one predicted cluster and one kind (of both, of only the first, of only the
        second) are a block: they were judged together, so that the records count as
        (Σ records)²/Σ records² cases (Kish) over blocks.

        Returns
        -------
        DataFrame
            Rows found, removed. Columns both, first, second (records); blocks_both, blocks_first,
            blocks_second; cases.
        """
        t = self.table
        found, removed = t[~t["home"]], t[t["home"]]
        removed = removed.assign(first=~removed["first"], second=~removed["second"])
        return pd.DataFrame([_crossed(found), _crossed(removed)], ["found", "removed"])

    def recaptured(self, odds_ratio: float = 1.0) -> tuple[Recaptured, Recaptured]:
        """Shares that both missed of what is to be found, and both left of what is to be removed.

        Shares are of records, which under draws proportional to size are shares of links; they are as sure
        as the number of `cases` in `counts`.
        """
        table = self.counts()
        records = table[["both", "first", "second"]].to_numpy(dtype=float)
        scaled = records * (table["cases"].to_numpy() / np.maximum(records.sum(axis=1), 1))[:, None]
        missed, kept = (Recaptured(both, first, second, odds_ratio) for both, first, second in scaled)
        return missed, kept


def _crossed(rows: pd.DataFrame) -> dict[str, float]:
    """Records, blocks and cases by who saw them."""
    rows = rows[rows["first"] | rows["second"]]
    blocks = rows.groupby(["mention", "cluster", "first", "second"], as_index=False).agg(n=("record", "size"))
    first, second, n = (blocks[c].to_numpy() for c in ("first", "second", "n"))
    kinds = {"both": first & second, "first": first & ~second, "second": ~first & second}
    return {
        **{kind: int(n[at].sum()) for kind, at in kinds.items()},
        **{f"blocks_{kind}": int(at.sum()) for kind, at in kinds.items()},
        "cases": float(n.sum() ** 2 / max((n**2).sum(), 1)),
    }


def some_ids(records: Sequence[Any]) -> str:
    """The first few ids, without quotes."""
    return ", ".join(map(str, records[:3])) + (", …" if len(records) > 3 else "")


def anchoring(
    prediction: Any, anchored: Any, scratch: Any, design: Design, metrics: Sequence[Metric] = METRICS,
    *, missing: Missing = Missing.ERROR,
) -> Normal:  # fmt: skip
    """Does starting from the predicted cluster flatter it? Labels from scratch minus those from there.

    Parameters
    ----------
    prediction : memberships
    anchored, scratch : memberships
        The same entities, by the same ids, labelled from the predicted cluster and from scratch.
    design : Design
        How they were drawn.
    metrics, missing
        As in `erbayes.estimate`.

    Returns
    -------
    Normal
        Differences, with the standard errors of a paired comparison.

    Raises
    ------
    DataError
        Entities in one of both only.

    Examples
    --------
    >>> import erbayes as eb
    >>> prediction = {1: "a", 2: "a", 3: "b", 4: "c", 5: "c"}
    >>> anchored, scratch = {1: "x", 2: "x", 4: "y", 5: "y"}, {1: "x", 2: "x", 3: "x", 4: "y", 5: "y"}
    >>> found = anchoring(prediction, anchored, scratch, eb.UniformClusters(), [eb.metrics.b3_recall])
    >>> found.mean.round(2), found.sd.round(2)
    (array([-0.31]), array([0.21]))
    """
    before, after = (measure(prediction, labels, missing=missing) for labels in (anchored, scratch))
    odd = before.ids.symmetric_difference(after.ids)
    if len(odd):
        raise DataError(f"{len(odd)} entities are labelled in one way only, such as {some(odd)}: "
                        "both label sets must hold the same entities, by the same ids")  # fmt: skip
    samples = [Sample(u, design) for u in (before, after.take(after.ids.get_indexer(before.ids)))]
    fits = [taylor(s, metrics).apply(metrics) for s in samples]
    joint = Normal(
        tuple(f"{m.name} {how}" for how in ("anchored", "from scratch") for m in metrics),
        np.concatenate([f.mean for f in fits]),
        samples[0].expansion.variance.covariance(np.hstack([effects(s, metrics) for s in samples])),
        np.concatenate([f.df for f in fits]), tuple(s for f in fits for s in f.support), fits[0].draws,
    )  # fmt: skip
    one = np.eye(len(metrics))
    return joint.contrast(np.hstack([-one, one]), [m.name for m in metrics])


# Sheets


class Problem(Enum):
    """What is wrong in a labelling sheet, and what is made of it."""

    UNKNOWN_MENTION = "the sampled mention is not in the prediction; the row is left out"
    REPEATED_MENTION = "the mention was sampled before; the first row counts"
    OTHER_CLUSTER = "the prediction puts the mention into another cluster, which is used"
    UNKNOWN_ADDED = "a mention to add is not in the prediction; it is added"
    UNKNOWN_REMOVED = "a mention to remove is not in the prediction; nothing is done"
    ALREADY_THERE = "a mention to add is in the predicted cluster already"
    NOT_THERE = "a mention to remove is not in the predicted cluster; nothing is done"
    ADDED_AND_REMOVED = "a mention is to be added and to be removed; it is removed"
    LISTED_TWICE = "a mention is listed twice in a cell"
    MENTION_REMOVED = "the sampled mention itself is to be removed; it is kept, unless asked otherwise"
    CORRECT_YET_CHANGED = "marked correct, but with mentions to add or to remove; they count"
    UNANSWERED = "neither marked correct nor with mentions to add or to remove; taken as correct"
    IN_TWO_ENTITIES = "a mention is in the entities of two sampled mentions"


@dataclass(frozen=True, slots=True)
class SheetColumns:
    """Names of a labelling sheet's columns.

    Parameters
    ----------
    mention, cluster, add, remove : str
        The sampled mention, its predicted cluster, mentions to add and to remove.
    correct : str, optional
        Filled where the predicted cluster is right.
    separator : str
        Regular expression between the mentions of a cell.
    """

    mention: str = "mention_id"
    cluster: str = "cluster_id"
    add: str = "add"
    remove: str = "remove"
    correct: str | None = "correct"
    separator: str = r"[,;\s]+"


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """What a sheet says.

    Attributes
    ----------
    answers : DataFrame
        Columns mention, record: the entity of each sampled mention, as `Pair.of` takes it.
    problems : DataFrame
        Columns row (counted from 0), mention, record, problem (of `Problem`): every inconsistency.
    """

    answers: pd.DataFrame
    problems: pd.DataFrame

    @property
    def labels(self) -> pd.Series:
        """record -> entity, named by the sampled mention.

        Raises
        ------
        DataError
            A record in two entities.
        """
        twice = self.answers["record"].duplicated()
        if twice.any():
            raise DataError(
                f"{int(twice.sum())} records are in the entities of two mentions, such as "
                f"{some(self.answers['record'][twice].tolist())}: adjudicate, or draw entities once"
            )
        return self.answers.set_index("record")["mention"]

    def summary(self) -> pd.Series:
        """How often each problem occurs."""
        kinds = pd.Series([p.value for p in self.problems["problem"]], dtype="str")
        return kinds.value_counts()


def read_sheet(
    table: pd.DataFrame, prediction: Any, columns: SheetColumns | None = None, *, keep_mention: bool = True
) -> Sheet:
    """Entities from a sheet: predicted cluster + mentions to add - mentions to remove.

    Parameters
    ----------
    table : DataFrame
        One row a sampled mention. Cells of mentions to add and to remove hold ids, or nothing.
    prediction : memberships
        The prediction that was shown to the annotator, with ids as text.
    columns : SheetColumns, optional
    keep_mention : bool
        False takes a sheet at its word that removes the sampled mention from its own entity, which is then
        that of the other records.

    Returns
    -------
    Sheet
        With every inconsistency; none stops the reading. See `Problem` for what is made of each.

    Raises
    ------
    DataError
        Missing columns, a sheet without rows.

    Examples
    --------
    >>> prediction = {"p-1": "a", "p-2": "a", "q-1": "b"}
    >>> rows = {"mention_id": ["p-1"], "cluster_id": ["a"], "add": ["q-1, z-9"], "remove": ["q-1 p-2"]}
    >>> sheet = read_sheet(pd.DataFrame(rows), prediction, SheetColumns(correct=None))
    >>> sheet.labels.to_dict()
    {'p-1': 'p-1', 'z-9': 'p-1'}
    >>> [p.name for p in sheet.problems["problem"]]
    ['UNKNOWN_ADDED', 'NOT_THERE', 'ADDED_AND_REMOVED']
    """
    columns = columns or SheetColumns()
    needed = [columns.mention, columns.cluster, columns.add, columns.remove]
    needed += [] if columns.correct is None else [columns.correct]
    lacking = [c for c in needed if c not in table.columns]
    if lacking or not len(table):
        raise DataError(f"the sheet of {len(table)} rows lacks columns {some(lacking)}; it has "
                        f"{some(table.columns, 20)}")  # fmt: skip
    prediction = Clustering.of(prediction, "prediction")
    predicted = pd.Series(prediction.clusters.take(prediction.codes), index=prediction.records)
    members = {k: pd.Index(g) for k, g in predicted.groupby(predicted, sort=False).groups.items()}
    found: dict[Any, list[Any]] = {}
    problems: list[tuple[int, Any, Any, Problem]] = []
    for row, cells in enumerate(table[needed].itertuples(index=False, name=None)):
        mention, stated = cells[:2]

        def note(problem: Problem, record: Any = None, row: int = row, mention: Any = mention) -> None:
            problems.append((row, mention, record, problem))

        if mention not in predicted.index:
            note(Problem.UNKNOWN_MENTION)
            continue
        if mention in found:
            note(Problem.REPEATED_MENTION)
            continue
        home = members[predicted[mention]]
        if stated != predicted[mention]:
            note(Problem.OTHER_CLUSTER)
        add, remove = (_listed(cell, columns.separator, note) for cell in cells[2:4])
        for record in add:
            if record not in predicted.index:
                note(Problem.UNKNOWN_ADDED, record)
            elif record in home:
                note(Problem.ALREADY_THERE, record)
        for record in remove:
            if record not in predicted.index:
                note(Problem.UNKNOWN_REMOVED, record)
            elif record not in home:
                note(Problem.NOT_THERE, record)
            if record in add:
                note(Problem.ADDED_AND_REMOVED, record)
            if record == mention:
                note(Problem.MENTION_REMOVED, record)
        if columns.correct is not None:
            correct = not pd.isna(cells[4]) and str(cells[4]).strip() != ""
            if correct and (add or remove):
                note(Problem.CORRECT_YET_CHANGED)
            if not correct and not add and not remove:
                note(Problem.UNANSWERED)
        gone = set(remove) - ({mention} if keep_mention else set())
        found[mention] = [r for r in dict.fromkeys([*home, *add]) if r not in gone]
    long = pd.DataFrame(
        [(mention, record) for mention, records in found.items() for record in records],
        columns=["mention", "record"],
    )
    rows = {mention: row for row, mention in reversed(list(enumerate(table[columns.mention])))}
    for mention, record in long[long["record"].duplicated(keep=False)].itertuples(index=False, name=None):
        problems.append((rows[mention], mention, record, Problem.IN_TWO_ENTITIES))
    kinds = pd.DataFrame(problems, columns=["row", "mention", "record", "problem"], dtype=object)
    return Sheet(long, kinds)


def _listed(cell: Any, separator: str, note: Callable[[Problem, Any], None]) -> dict[str, None]:
    """The ids in a cell, each once, in order."""
    if pd.isna(cell):
        return {}
    listed = [r for r in re.split(separator, str(cell)) if r]
    once = dict.fromkeys(listed)
    for record in once:
        if listed.count(record) > 1:
            note(Problem.LISTED_TWICE, record)
    return once
