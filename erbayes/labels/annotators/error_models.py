"""Models of annotators' errors: how many records they miss and keep, and how such errors are undone.

An annotator makes the same error for all records of one piece (see `erbayes.units`), so that a model of
errors is a distribution of the number of records missed or falsely accepted in each piece. `mislabel` and
`perturb` put errors into true labels. `restore` imputes true entities that are compatible with labels.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from ..._internal.arrays import BoolArray, FloatArray, IntArray, Seed, generator
from ..._internal.errors import DataError, need, need_object, refuse_cases
from ..._internal.tables import locate
from ...units.clustering import Clustering
from ...units.units import Units, need_units
from .rates import Rate, drawn, need_rate


@dataclass(frozen=True, slots=True)
class MissedPieces:
    """An annotator who misses all records of a piece elsewhere, or none of them.

    The probability p(n) to miss a piece falls with its n records on the logit scale:

        logit p(n) = logit(rate) - slope log n.

    Parameters
    ----------
    rate : float in [0, 1] or Rate
        The probability to miss a piece of one record, p(1).
    slope : float
        0 or more. Above 0, smaller pieces are missed more often.

    Examples
    --------
    >>> MissedPieces(0.5, slope=1.0).missed(np.array([1.0, 1.0, 9.0]), np.random.default_rng(2))
    array([1., 1., 0.])
    """

    rate: float | Rate
    slope: float = 0.0

    def __post_init__(self) -> None:
        need_rate(self.rate, "rate of MissedPieces")
        if not 0 <= self.slope < np.inf:
            raise DataError(f"slope of MissedPieces must be 0 or more and finite, not {self.slope}")

    def fixed(self, rng: np.random.Generator) -> MissedPieces:
        """Return the model with its prior replaced by one draw from it."""
        return replace(self, rate=float(drawn(self.rate, rng)))

    def _draw_probability(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        return np.asarray(expit(logit(drawn(self.rate, rng)) - self.slope * np.log(n)))

    def missed(self, n: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw the number of records missed in each piece of n records, (p,)."""
        return np.where(rng.random(len(n)) < self._draw_probability(n, rng), n, 0.0)

    def unseen(self, n: FloatArray, rng: np.random.Generator) -> IntArray:
        """Draw the number of missed pieces that each labelled piece of n records implies, (p,)."""
        return _draw_missed(np.ones_like(n), self._draw_probability(n, rng), rng).astype(np.int64)


@dataclass(frozen=True, slots=True)
class KeptRecords:
    """An annotator who falsely accepts each foreign record of home independently.

    Parameters
    ----------
    rate : float in [0, 1] or Rate
        The probability to accept a foreign record of home.

    Examples
    --------
    >>> foreign, home = np.array([10.0, 10.0]), np.array([True, False])
    >>> KeptRecords(0.5).kept(foreign, home, np.random.default_rng(1))
    array([5., 0.])
    """

    rate: float | Rate

    def __post_init__(self) -> None:
        need_rate(self.rate, "rate of KeptRecords")

    def fixed(self, rng: np.random.Generator) -> KeptRecords:
        """Return the model with its prior replaced by one draw from it."""
        return KeptRecords(float(drawn(self.rate, rng)))

    def _draw_probability(self, home: BoolArray, rng: np.random.Generator) -> FloatArray:
        return np.where(home, drawn(self.rate, rng), 0.0)

    def kept(self, foreign: FloatArray, home: BoolArray, rng: np.random.Generator) -> FloatArray:
        """Draw the number of foreign records accepted with each piece, (p,)."""
        return rng.binomial(foreign.astype(np.int64), self._draw_probability(home, rng)).astype(float)

    def unremoved(self, removed: FloatArray, home: BoolArray, rng: np.random.Generator) -> FloatArray:
        """Draw the number of foreign records still in each piece after others were removed, (p,)."""
        return _draw_missed(removed, self._draw_probability(home, rng), rng)


def _draw_missed(caught: FloatArray, p: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw the number of cases missed, given those caught, if each is missed with probability p < 1."""
    if np.any(p >= 1):
        raise DataError("labels cannot be restored if all is missed or kept: rates must be below 1")
    # what is missed until `caught` are caught is negative binomial, a gamma mixture of Poisson numbers, which
    # allows counts of 0 where NumPy's negative binomial does not
    return rng.poisson(rng.gamma(caught, 1.0) * (p / (1 - p))).astype(float)


@dataclass(frozen=True, slots=True)
class Annotator:
    """A model of an annotator who misses records and accepts foreign ones. By default there are no errors.

    Rates with priors are drawn once for each labelled sample, since they belong to the annotator.

    Parameters
    ----------
    missed : MissedPieces
        How records elsewhere are missed: `MissedPieces`, or your own class with its methods.
    kept : KeptRecords
        How foreign records are accepted.

    Examples
    --------
    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "a"}, {1: "x", 2: "x", 3: "x"})
    >>> blind = Annotator(MissedPieces(1.0), KeptRecords(1.0))
    >>> mislabel(units, blind, np.random.default_rng(1)).table()["records"].to_list()
    [3.0]
    """

    missed: MissedPieces = field(default_factory=lambda: MissedPieces(0.0))
    kept: KeptRecords = field(default_factory=lambda: KeptRecords(0.0))

    def __post_init__(self) -> None:
        need_object(self.missed, "missed", "missed is an object such as MissedPieces(0.1)")
        need_object(self.kept, "kept", "kept is an object such as KeptRecords(0.1)")

    def fixed(self, rng: np.random.Generator) -> Annotator:
        """Return the model with its priors replaced by one draw from them."""
        return Annotator(self.missed.fixed(rng), self.kept.fixed(rng))

    def changes(
        self, units: Units, home: BoolArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Draw the records missed and the foreign records accepted in each piece, (p,) each."""
        known = self.fixed(rng)
        missed = np.zeros(len(units.n))
        missed[~home] = known.missed.missed(units.n[~home], rng)
        kept = known.kept.kept(units.m - units.n, home, rng)
        return missed, np.where(missed < units.n, kept, 0.0)  # a missed piece is not touched


def sampled_mention(units: Units, rng: np.random.Generator) -> BoolArray:
    """Draw a home for each entity: True for the piece of one of its records, chosen uniformly, (p,)."""
    ends = np.cumsum(units.n)
    size = np.bincount(units.group, weights=units.n)
    position = np.cumsum(size) - size + rng.random(len(size)) * size
    home = np.zeros(len(units.n), dtype=bool)
    home[np.searchsorted(ends, position, side="right")] = True
    return home


def _replace_pieces(units: Units, like: IntArray, n: FloatArray, m: FloatArray, cluster: IntArray) -> Units:
    """These units with other pieces. Each belongs to the entity of the old piece at position `like`."""
    # pieces of a unit stay next to each other
    order = np.argsort(like, kind="stable")
    order = order[n[order] > 0]
    like, n, m, cluster = like[order], n[order], m[order], cluster[order]
    group = units.group[like]
    N = np.bincount(group, weights=n)[group]
    return replace(units, unit=units.unit[like], group=group, n=n, N=N, m=m, cluster=cluster)


def need_annotator(model: Any) -> None:
    """Refuse anything but an `Annotator`."""
    need(model, Annotator, "a model of errors is an Annotator, such as Annotator(MissedPieces(0.1))")


def _choose_homes(
    units: Units, model: Annotator, rng: Seed, home: BoolArray | None
) -> tuple[np.random.Generator, BoolArray]:
    """Return the generator and the homes, (p,), drawn unless given; refuse units that are no entities."""
    need_units(units)
    if not units.by_entity:
        raise DataError("annotators label entities; these units are sampled predicted clusters")
    need_annotator(model)
    rng = generator(rng)
    return rng, sampled_mention(units, rng) if home is None else home


def mislabel(units: Units, model: Annotator, rng: Seed = None, home: BoolArray | None = None) -> Units:
    """Draw the units that an annotator with errors would have labelled; `home` (p,)."""
    rng, home = _choose_homes(units, model, rng, home)
    missed, kept = model.changes(units, home, rng)
    return _replace_pieces(units, np.arange(len(units.n)), units.n - missed + kept, units.m, units.cluster)


def restore(units: Units, model: Annotator, rng: Seed = None, home: BoolArray | None = None) -> Units:
    """Impute the true entities of labels with errors; `home` (p,).

    Each piece that was caught with probability 1 - p implies NB(1, 1 - p) missed ones. A missed piece gets
    the size of the piece that implies it, and goes to an entity that was labelled in home only, whose home is
    about as large. Likewise each removed foreign record implies NB(1, 1 - v) accepted ones, for the share v.
    """
    rng, home = _choose_homes(units, model, rng, home)
    known = model.fixed(rng)
    copies = np.zeros(len(units.n), dtype=np.int64)
    copies[~home] = known.missed.unseen(units.n[~home], rng)
    foreign = known.kept.unremoved(units.m - units.n, home, rng)
    # the sampled mention itself is no error, so that home keeps a record
    n = np.maximum(units.n - foreign, home.astype(float))
    pieces = np.arange(len(n))
    sources = np.repeat(pieces, copies)
    # a missed piece is in a predicted cluster that no label touches, which has no number yet
    new_clusters = np.max(units.cluster, initial=0) + 1 + np.arange(len(sources))
    return _replace_pieces(
        units,
        np.concatenate([pieces, _choose_receivers(units, home, sources, rng)]),
        np.concatenate([n, units.n[sources]]),
        np.concatenate([units.m, units.m[sources]]),
        np.concatenate([units.cluster, new_clusters]),
    )


def _choose_receivers(units: Units, home: BoolArray, sources: IntArray, rng: np.random.Generator) -> IntArray:
    """Return the home piece, (sources,), of the entity that gets a missed piece like each source piece."""
    homes = np.flatnonzero(home)
    # entities with a home only get pieces: those whose home is as large as that of the source, or else the
    # next larger
    candidates = homes[np.bincount(units.group)[units.group[homes]] == 1]
    if not len(candidates):
        return sources
    candidates = candidates[np.argsort(units.n[candidates], kind="stable")]
    size = units.n[homes[units.group[sources]]]
    first, last = (np.searchsorted(units.n[candidates], size, side) for side in ("left", "right"))
    chosen = first + (rng.random(len(sources)) * (last - first)).astype(np.int64)
    return np.asarray(candidates[np.minimum(chosen, len(candidates) - 1)])


def _draw_ranks(piece: IntArray, rng: np.random.Generator) -> IntArray:
    """Position of each record in a random order of its piece, from 0."""
    order = rng.permutation(len(piece))
    order = order[np.argsort(piece[order], kind="stable")]
    counts = np.bincount(piece)
    rank = np.empty_like(piece)
    # a stable sort of a random order ranks the records of each piece at random, without a loop
    rank[order] = np.arange(len(piece)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rank


def perturb(
    labels: Any, prediction: Any, model: Annotator, rng: Seed = None, mentions: Any = None
) -> pd.Series:
    """Put simulated annotation errors into labels.

    Parameters
    ----------
    labels : memberships
        True entities. Labelled records that are missing in the prediction stay as they are, since neither
        error is defined for them.
    prediction : memberships
        See `Clustering.of`.
    model : Annotator
        How the annotator errs.
    rng : Generator, int or None
    mentions : sequence of record ids, optional
        The sampled mention of each entity, from which the annotator starts. By default it is drawn uniformly
        from the entity's records. Of several in one entity the first counts.

    Returns
    -------
    Series, record -> entity
        A record that is labelled is never accepted for a second entity.

    Raises
    ------
    DataError
        Mentions that are not both labelled and predicted, or an entity without one.

    Examples
    --------
    >>> labels, prediction = {1: "x", 2: "x", 3: "x"}, {1: "a", 2: "a", 3: "b", 4: "a"}
    >>> careless = Annotator(MissedPieces(1.0), KeptRecords(1.0))
    >>> perturb(labels, prediction, careless, np.random.default_rng(1), mentions=[2]).to_dict()
    {1: 'x', 2: 'x', 4: 'x'}
    """
    rng = generator(rng)
    labels, prediction = Clustering.of(labels, "labels"), Clustering.of(prediction, "prediction")
    position = prediction.records.get_indexer(labels.records)
    covered = np.flatnonzero(position >= 0)
    if not len(covered):
        raise DataError("none of the labelled records is in the prediction")
    present, entity = np.unique(labels.codes[covered], return_inverse=True)
    width = len(prediction.clusters)
    key, piece, counts = np.unique(
        entity * width + prediction.codes[position[covered]], return_inverse=True, return_counts=True
    )
    unit, cluster, n = key // width, key % width, counts.astype(float)
    N, m = np.bincount(unit, weights=n)[unit], prediction.sizes[cluster].astype(float)
    units = Units(labels.clusters[present], unit, unit, n, N, m, cluster, None)
    home = None if mentions is None else _mark_home(units, labels, covered, piece, pd.Index(mentions))
    missed, kept = model.changes(units, sampled_mention(units, rng) if home is None else home, rng)
    stays = np.ones(len(position), dtype=bool)
    stays[covered] = _draw_ranks(piece, rng) >= missed[piece]

    # candidates: each record of the predicted cluster of each piece that keeps some, if it has no label
    keeping = np.flatnonzero(kept)
    members = pd.DataFrame({"cluster": prediction.codes, "record": np.arange(len(prediction.codes))})
    homes = pd.DataFrame({"keeper": keeping, "cluster": cluster[keeping]})
    foreign = homes.merge(members[~members["record"].isin(position)], on="cluster")
    keeper, record = foreign["keeper"].to_numpy(), foreign["record"].to_numpy()
    chosen = _draw_ranks(keeper, rng) < kept[keeper]
    kept_labels = pd.Series(units.ids[unit[keeper[chosen]]], index=prediction.records[record[chosen]])
    remaining = pd.Series(labels.clusters[labels.codes[stays]], index=labels.records[stays])
    if not len(kept_labels):
        return remaining
    # a record that several entities keep goes to the first of them, since labels are disjoint
    return pd.concat([remaining, kept_labels[~kept_labels.index.duplicated()]])


def _mark_home(
    units: Units, labels: Clustering, covered: IntArray, piece: IntArray, mentions: pd.Index
) -> BoolArray:
    """True for the piece of the first sampled mention of each entity, (p,)."""
    are = "mentions are not both labelled and predicted"
    homes = piece[locate(labels.records[covered], mentions, are, of=len(mentions))]
    homes = homes[np.unique(units.group[homes], return_index=True)[1]]
    without = np.setdiff1d(np.arange(len(units)), units.unit[homes])
    refuse_cases(units.ids[without], "labelled entities have no mention")
    home = np.zeros(len(units.n), dtype=bool)
    home[homes] = True
    return home
