"""Error models: which records an annotator misses and keeps, and what may stand behind labels.

Records of one piece (see `erbayes.units`) are exchangeable, so an error model says how many of each piece
are missed or kept. `mislabel` and `perturb` go from the truth to what an annotator would write; `restore`
draws a truth from what an annotator wrote.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from ..arrays import BoolArray, FloatArray, IntArray, Seed, generator
from ..clustering import Clustering
from ..errors import DataError, need, need_object, some
from ..units import Units, need_units
from .rates import Rate, drawn, need_rate


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
        need_rate(self.rate, "rate of MissedRecords")

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
        need_rate(self.rate, "rate of MissedPieces")
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
        need_rate(self.rate, "rate of KeptRecords")
        need_rate(self.elsewhere, "elsewhere of KeptRecords")

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
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "a"}, {1: "x", 2: "x", 3: "x"})
    >>> blind = Annotator(MissedPieces(1.0), KeptRecords(1.0))
    >>> mislabel(units, blind, np.random.default_rng(1)).table()["records"].to_list()
    [3.0]
    """

    missed: Missed = field(default_factory=lambda: MissedPieces(0.0))
    kept: KeptRecords = field(default_factory=lambda: KeptRecords(0.0))

    def __post_init__(self) -> None:
        need_object(self.missed, "missed", "missed is an object such as MissedPieces(0.1)")
        need_object(self.kept, "kept", "kept is an object such as KeptRecords(0.1)")

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


def _with_pieces(units: Units, at: IntArray, n: FloatArray, m: FloatArray, cluster: IntArray) -> Units:
    """The same units with other pieces, each like the one `at` which it stands."""
    there = n > 0
    at, n, m, cluster = at[there], n[there], m[there], cluster[there]
    order = np.argsort(at, kind="stable")
    at, n, m, cluster = at[order], n[order], m[order], cluster[order]
    group = units.group[at]
    N = np.bincount(group, weights=n)[group]
    return replace(units, unit=units.unit[at], group=group, n=n, N=N, m=m, cluster=cluster)


def need_annotator(model: Any) -> None:
    """Refuse anything but an `Annotator`."""
    need(model, Annotator, "a model of errors is an Annotator, such as Annotator(MissedPieces(0.1))")


def _need_entities(units: Units) -> None:
    need_units(units)
    if not units.by_entity:
        raise DataError("annotators label entities; these units are sampled predicted clusters")


def mislabel(units: Units, model: Annotator, rng: Seed = None, home: BoolArray | None = None) -> Units:
    """What an annotator would have made of these entities.

    Parameters
    ----------
    units : Units
        True entities.
    model : Annotator
    rng : Generator, int or None
    home : bool array, (p,), optional
        The piece that the annotator starts from, one an entity; by default that of a record drawn
        uniformly from the entity.

    Raises
    ------
    DataError
        Units that are not made of entities.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "a", 4: "b"}, {1: "x", 2: "x", 3: "x", 4: "x"})
    >>> seen = mislabel(units, Annotator(MissedRecords(1.0)), np.random.default_rng(1))
    >>> seen.table()["records"].to_list()
    [3.0]
    """
    _need_entities(units)
    need_annotator(model)
    rng = generator(rng)
    home = sampled_mention(units, rng) if home is None else home
    lost, kept = model.changes(units, home, rng)
    return _with_pieces(units, np.arange(len(units.n)), units.n - lost + kept, units.m, units.cluster)


def restore(units: Units, model: Annotator, rng: Seed = None, home: BoolArray | None = None) -> Units:
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
    rng : Generator, int or None
    home : bool array, (p,), optional
        As in `mislabel`.

    Raises
    ------
    DataError
        Units that are not made of entities; rates of 1.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "b", 3: "c", 4: "d"}, {1: "x", 2: "x", 3: "y"})
    >>> rng = np.random.default_rng(1)
    >>> truth = [restore(units, Annotator(MissedPieces(0.5)), rng).size for _ in range(500)]
    >>> np.mean(truth, axis=0).round()  # one find in x stands for one, in mean, that y lacks
    array([2., 2.])
    """
    _need_entities(units)
    need_annotator(model)
    rng = generator(rng)
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
        units,
        np.concatenate([every, _receivers(units, home, more, rng)]),
        np.concatenate([n, size[more]]),
        np.concatenate([units.m, units.m[more]]),
        np.concatenate([units.cluster, fresh]),
    )


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
    labels: Any, prediction: Any, model: Annotator, rng: Seed = None, mentions: Any = None
) -> pd.Series:
    """Labels with the errors that an annotator would have made.

    Parameters
    ----------
    labels, prediction : memberships
        See `Clustering.of`. Labelled records that the prediction lacks are left as they are, since neither
        error is defined for them.
    model : Annotator
    rng : Generator, int or None
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
    rng = generator(rng)
    labels, prediction = Clustering.of(labels, "labels"), Clustering.of(prediction, "prediction")
    where = prediction.records.get_indexer(labels.records)
    covered = np.flatnonzero(where >= 0)
    if not len(covered):
        raise DataError("none of the labelled records is in the prediction")
    present, entity = np.unique(labels.codes[covered], return_inverse=True)
    width = len(prediction.clusters)
    key, piece, counts = np.unique(
        entity * width + prediction.codes[where[covered]], return_inverse=True, return_counts=True
    )
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
        raise DataError(
            f"{int((at < 0).sum())} of {len(at)} mentions are not both labelled and predicted: "
            f"{some(mentions[at < 0])}"
        )
    chosen = piece[at]
    chosen = chosen[np.unique(units.group[chosen], return_index=True)[1]]
    if len(chosen) < len(units):
        without = np.setdiff1d(np.arange(len(units)), units.unit[chosen])
        raise DataError(f"{len(without)} labelled entities hold no mention: {some(units.ids[without])}")
    home = np.zeros(len(units.n), dtype=bool)
    home[chosen] = True
    return home
