"""Labelled pairs of records: what they say about a matcher, and what they cannot say.

Pairs are drawn by bands of the height at which two records join. One labelled sample then serves every
threshold. It gives the precision of links, and the recall *among candidate pairs*, since no pair shows what
blocking left out.

Pairs that were drawn by bands of *edges*, as labelling tools do, estimate another share: that of right scored
edges. One wrong edge between two large clusters makes many wrong links, and its label counts once. Both kinds
have classes of their own, whose tables name what they estimate.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray, IntArray, label_components
from .._internal.errors import DataError, Grade, Remedy, Sentence, warn_of, whole
from ..metrics.columns import PREDICTED_LINKS
from ..metrics.intervals import check_level
from ..metrics.tables import Pictured, reason_column, say_undecided
from ..units.edges import Edges, ThresholdClusters, sweep
from ..units.units import KnownTotals
from .pair_strata import (
    FEWEST,
    FEWEST_RIGHT,
    NONE,
    Estimate,
    PairStrata,
    estimate_precision,
    estimate_recall,
    explain_strata,
    make_keys,
    read_pairs,
    refuse_pairs,
)
from .thresholds import load_edges


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Judged(Pictured):
    """Pairs with answers, drawn uniformly in bands that end at thresholds.

    `edges`: all scored edges; `left`, `right` (n,): positions of both records of each labelled pair; `floors`
    (B,): thresholds at which bands end, strictest first; `same` (n,): 1, 0, or NaN if undecided.
    """

    picture: ClassVar[str] = "calibration"
    names: ClassVar[tuple[str, str]]
    banded: ClassVar[str]
    edges: Edges
    left: IntArray
    right: IntArray
    floors: FloatArray
    same: FloatArray

    @abstractmethod
    def count(self, levels: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return numbers of all pairs between K falling levels, (K,), and the level of labelled ones, (n,).

        Labelled pairs below the last level have the position K.
        """

    def table(self, thresholds: Any = None, level: float = 0.95) -> pd.DataFrame:
        """Return both shares at each threshold, with an interval for each by itself.

        A threshold inside a band splits it, and each part needs two labelled pairs. The column reason says
        why a share has no estimate, and where recall is 1 by definition. If answers are undecided, the
        columns worst and best are the lower end if all of them are wrong, and the upper end if all are right
        (of recall: those above the threshold wrong, those below it right, and the reverse).

        `thresholds` are as `at` of `erbayes.thresholds`, by default those at which bands end. DataError if
        one is below the loosest band, or cannot be used.
        """
        check_level(level)
        rows, split = list[tuple[Any, ...]](), self._split(thresholds)
        for which, share in enumerate((estimate_precision, estimate_recall)):
            for threshold, strata in split:
                why = explain_strata(strata, recall=bool(which))
                found = NONE if why else share(strata, level)
                cases = [strata.decide(right, which * (1 - right)) for right in (0.0, 1.0)]
                worst, best = (NONE if why else share(case, level) for case in cases)
                if which and not why and strata.above.all():
                    why = "1 by definition: no band is below"
                ends = (*found, worst.lower, best.upper, level, why)
                rows.append((self.names[which], threshold, strata.pairs @ strata.above, *ends))
        columns = ["metric", "threshold", "pairs", *Estimate._fields, "worst", "best", "level", "reason"]
        table = pd.DataFrame(rows, columns=columns).rename(columns={"value": "estimate"})
        if not np.isnan(self.same).any():
            table = table.drop(columns=["worst", "best"])
        return table.drop(columns="reason").assign(**reason_column(table["reason"].tolist()))

    def bands(self, level: float = 0.95) -> pd.DataFrame:
        """Return the share of right pairs in each band with its exact interval: a calibration of scores."""
        check_level(level)
        ((_, strata),), place = self._split(self.floors[-1:]), self.count(self.floors)[1]
        lower, upper = strata.limits(level)
        counts = {"pairs": strata.pairs, "labelled": strata.labelled, "right": strata.right}
        counts["cannot_tell"] = np.bincount(place, np.isnan(self.same), len(self.floors))
        table = pd.DataFrame(counts).astype(np.int64)
        table.insert(0, "band", self.floors)
        return table.assign(share=strata.share, lower=lower, upper=upper)

    def alarms(self) -> list[Sentence]:
        """Return sentences about answers that are undecided, that contradict others, or that weigh much."""
        sentences, same = list[Sentence](), self.same == 1
        if unknown := int(np.isnan(self.same).sum()):
            ((_, strata),) = self._split(self.floors[-1:])
            of_each = strata.undecided / (strata.labelled + strata.undecided)
            share = float(strata.pairs @ of_each / strata.pairs.sum())
            said = f"{unknown:,} of {len(same):,} answers are undecided, for {share:.0%} of the pairs"
            sentences.append(say_undecided(said, share, "other pairs of their bands"))
        entity = label_components(self.left[same], self.right[same], len(self.edges.records))
        if broken := int(((self.same == 0) & (entity[self.left] == entity[self.right])).sum()):
            said = (
                f"{broken:,} pairs are answered as different, whose records are the same by other answers: "
                "one of these is wrong, and each counts as it is"
            )
            sentences.append(Sentence(said, Grade.CAUTION))
        return [*sentences, *self._warn_few()]

    def _warn_few(self) -> list[Sentence]:
        """Return a sentence if most of the estimated right pairs have fewer answers than recall needs."""
        pairs, place = self.count(self.floors)
        labelled = np.bincount(place[~np.isnan(self.same)], minlength=len(pairs))
        right = place[self.same == 1]
        weight = pairs[right] / labelled[right]
        heaviest = np.argsort(-weight, kind="stable")
        right, weight = right[heaviest], weight[heaviest]
        few = 1 + int(np.searchsorted(weight.cumsum(), weight.sum() / 2, side="right"))
        if len(right) < FEWEST_RIGHT or few >= FEWEST_RIGHT:
            return []
        said = (
            f"Most pairs that are estimated to be right are so by {few} of {len(right)} right answers, which "
            f"stand for {weight[0]:,.0f} pairs each in the band that ends at {self.floors[right[0]]:g}: one "
            "wrong answer there decides recall"
        )
        again = "look at these answers again, or draw pairs of bands that end higher"
        call = "pairs.draw_pairs(..., bands=[...])"
        remedy = Remedy(again, call, "or of a file without the lowest scores")
        return [Sentence(said, Grade.CAUTION, remedy)]

    def _split(self, thresholds: Any) -> list[tuple[float, PairStrata]]:
        """Return the bands at each threshold, which may split one of them."""
        at = self.floors if thresholds is None else self.edges.thresholds(thresholds)
        levels = np.unique(np.concatenate([at, self.floors]))[::-1]
        pairs, place = self.count(levels)
        if below := int(pairs[levels < self.floors[-1]].sum()):
            raise DataError(
                f"{below:,} pairs are between {at.min():g} and the loosest band, which ends at "
                f"{self.floors[-1]:g}: none of them was drawn, so choose a threshold above"
            )
        # levels between two floors belong to the band that ends at the looser one
        band = len(self.floors) - np.searchsorted(self.floors[::-1], levels, side="right")
        unknown, right, split = np.isnan(self.same).astype(float), np.nan_to_num(self.same), []
        for threshold in at.tolist():
            cell, most = 2 * band + (levels < threshold), 2 * len(self.floors) + 2
            M = np.bincount(cell, pairs, most)
            weights = (1 - unknown, right, unknown)
            n, y, u = (np.bincount(cell[place], weight, most)[M > 0] for weight in weights)
            split.append((threshold, PairStrata(M[M > 0], n, y, np.flatnonzero(M > 0) % 2 == 0, u)))
        return split

    @classmethod
    def of(cls, edges: Any, answers: Any, records: Any, score: str | None) -> Self:
        """Read answers about pairs, with their bands (see `estimate`)."""
        table = Edges.of(load_edges(edges, score), records, score)
        read, left, right, band, counts, same = read_pairs(answers, table)
        judged = cls(table, left, right, table.thresholds(np.unique(band)), same)
        pairs, place = judged.count(judged.floors)
        refuse_pairs(read, place == len(pairs), "are no candidates, since no band reaches them")
        wrong = (judged.floors[place] != band) | ((counts > 0) & (pairs[place] != counts))
        said = "are in another band, or one of another size: other edges, or bands of something else than"
        refuse_pairs(read, wrong, f"{said} {cls.banded}")
        warn_of(judged.alarms())
        return judged


class LabelledPairs(_Judged):
    """Answers about pairs that were drawn by bands of height. `estimate` makes it.

    `table` has the *precision of links*, the share of right pairs among those that a threshold joins, and the
    *recall of candidate pairs*: the share of the right pairs of the loosest band and above that it joins.
    """

    __slots__ = ()
    names = ("precision of links", "recall of candidate pairs")
    banded = "the height at which two records join"

    def count(self, levels: FloatArray) -> tuple[FloatArray, IntArray]:
        n, joined = len(self.left), []
        place = np.full(n, len(levels))
        for k, at in enumerate(sweep(self.edges, levels, np.concatenate([self.left, self.right]))):
            together = at.cluster[:n] == at.cluster[n:]
            place[together & (place == len(levels))] = k
            joined.append(at.known.total(PREDICTED_LINKS))
        return np.diff(joined, prepend=0.0), place


class ScoredEdges(_Judged):
    """Answers about edges that were drawn by bands of their score. `scored_edges` makes it.

    `table` has `right scored edges`, a share of the edges from a threshold on, and `right edges kept`, the
    share of right edges of the file that are among them. Neither is precision or recall of links.
    """

    __slots__ = ()
    names = ("right scored edges", "right edges kept")
    banded = "the score of an edge"

    def count(self, levels: FloatArray) -> tuple[FloatArray, IntArray]:
        edges, N, K = self.edges, len(self.edges.records), len(levels)
        key = make_keys(edges.left, edges.right, N)
        order = np.argsort(-edges.score, kind="stable")
        order = order[edges.left[order] != edges.right[order]]
        # of an edge that is there twice the higher score counts, as in a sweep
        distinct, first = np.unique(key[order], return_index=True)
        place = K - np.searchsorted(levels[::-1], edges.score[order][first], side="right")
        wanted = make_keys(self.left, self.right, N)
        at = np.minimum(np.searchsorted(distinct, wanted), len(distinct) - 1)
        pairs = np.bincount(place, minlength=K + 1)[:K].astype(float)
        return pairs, np.where(distinct[at] == wanted, place[at], K)


def estimate(edges: Any, answers: Any, *, records: Any = None, score: str | None = None) -> LabelledPairs:
    """Estimate precision of links and recall of candidate pairs at every threshold, from labelled pairs.

    Parameters
    ----------
    edges, records, score
        As in `draw_pairs`.
    answers : table
        Rows of `draw_pairs` with answers in the column same: y or n, or ? if undecided, as texts, truth
        values or 1 and 0. Undecided pairs are missing at random within their band.

    Returns
    -------
    LabelledPairs
        `.table(thresholds=[...])` and `.bands()`.

    Warns
    -----
    Alarm
        If a pair is answered as different although other answers make both records the same, or if most of
        the pairs that are estimated to be right depend on fewer than five right answers.

    Raises
    ------
    DataError
        If pairs have no bands, as those chosen by hand or by active learning, or other bands than their
        height; if they are no candidates, are there twice, or have no answer; if edges cannot be used.

    Examples
    --------
    >>> edges = pd.DataFrame({"l": ["a", "b", "d"], "r": ["b", "c", "e"], "weight": [9.0, 2.0, 4.0]})
    >>> answers = pd.DataFrame({"left": list("adba"), "right": list("becc"), "band": [4, 4, 2, 2]})
    >>> answers["same"] = ["y", "y", "n", "n"]
    >>> found = estimate(edges, answers, records=list("abcdef"))
    >>> found.table([4, 2])[["metric", "threshold", "estimate"]]
                          metric  threshold  estimate
    0         precision of links        4.0       1.0
    1         precision of links        2.0       0.5
    2  recall of candidate pairs        4.0       1.0
    3  recall of candidate pairs        2.0       1.0
    """
    return LabelledPairs.of(edges, answers, records, score)


def scored_edges(edges: Any, answers: Any, *, records: Any = None, score: str | None = None) -> ScoredEdges:
    """Estimate the share of right scored edges, from edges that were drawn by bands of their score.

    Splink and others draw edges to label in this way. A wrong edge that joins two clusters makes as many
    wrong links as there are pairs across them, so that this share may be far above the precision of links.

    Arguments and errors are those of `estimate`, with bands of scores. A repeated edge has its higher score.

    Examples
    --------
    >>> edges = pd.DataFrame({"l": ["a", "b", "d"], "r": ["b", "c", "e"], "weight": [9.0, 2.0, 4.0]})
    >>> answers = edges.set_axis(["left", "right", "weight"], axis=1)
    >>> answers = answers.assign(band=2.0, same=[True, False, True])
    >>> scored_edges(edges, answers, records=list("abcdef")).table([2])[["metric", "estimate"]].round(2)
                   metric  estimate
    0  right scored edges      0.67
    1    right edges kept      1.00
    """
    return ScoredEdges.of(edges, answers, records, score)


def draw_pairs(
    edges: Any,
    n: int,
    *,
    records: Any = None,
    seed: int,
    threshold: float | None = None,
    bands: int | Iterable[float] = 8,
    score: str | None = None,
) -> pd.DataFrame:
    """Draw pairs to label, uniformly without replacement in each band of height.

    The height of a pair is the strictest threshold at which both records are in one cluster, through other
    records if need be. Bands are about equally many edges, and each has the same number of drawn pairs, or
    all of its pairs if it has fewer.

    Parameters
    ----------
    edges, records, score
        As in `erbayes.thresholds`.
    n : int
        Number of pairs, two per band or more.
    seed : int
        The same seed draws the same pairs again.
    threshold : float, optional
        The threshold of interest, at which a band ends. Half of the bands are above it.
    bands : int or sequence of float
        The number of bands, or the thresholds at which they end. Pairs that join below the loosest of them
        are no candidates; by default that is the least score.

    Returns
    -------
    DataFrame
        One row per pair, in random order, with columns left, right, band (the threshold at which its band
        ends), pairs (their number in the band) and same, which is empty. Answers go there: y, n or ?.

    Raises
    ------
    DataError
        If edges, records or thresholds cannot be used, or if there are fewer than two pairs per band.

    Examples
    --------
    >>> edges = pd.DataFrame({"l": ["a", "b", "d"], "r": ["b", "c", "e"], "weight": [9.0, 2.0, 4.0]})
    >>> draw_pairs(edges, 4, records=list("abcdef"), seed=1, bands=[9, 2]).drop(columns="same")
      left right  band  pairs
    0    d     e   2.0      3
    1    a     b   9.0      1
    2    b     c   2.0      3
    3    a     c   2.0      3
    """
    table = Edges.of(load_edges(edges, score), records, score)
    floors = _choose_floors(table, threshold, bands)
    n, rng = whole(n, "number of pairs"), np.random.default_rng(whole(seed, "seed", 0))
    records = np.arange(len(table.records))
    known = KnownTotals(np.ones(1), np.array([float(len(records))]))
    apart = ThresholdClusters(records, np.ones_like(records), known, records)
    levels = [apart, *sweep(table, floors, records)]
    merged = [_count_new_pairs(before, after) for before, after in pairwise(levels)]
    # a threshold that joins no records ends no band
    at = [b for b, new in enumerate(merged) if new.any()]
    pairs = np.array([merged[b].sum() for b in at])
    drawn = [
        _draw_band(levels[b].cluster, levels[b + 1].cluster, merged[b], k, rng)
        for b, k in zip(at, _allocate(pairs, n).tolist(), strict=True)
    ]
    count = [len(left) for left, _ in drawn]
    left, right = (table.records[np.concatenate(ends)] for ends in zip(*drawn, strict=True))
    band, size = (np.repeat(values, count) for values in (floors[at], pairs))
    table_of_pairs = pd.DataFrame({"left": left, "right": right, "band": band, "pairs": size, "same": ""})
    # annotators who see a band after the other would learn what to answer
    return table_of_pairs.iloc[rng.permutation(len(table_of_pairs))].reset_index(drop=True)


def _choose_floors(edges: Edges, threshold: float | None, bands: Any) -> FloatArray:
    """Return thresholds at which bands end, from the strictest to the loosest."""
    if not isinstance(bands, int | np.integer):
        return edges.thresholds([*bands, *([] if threshold is None else [threshold])])
    if threshold is None:
        shares = np.arange(whole(bands, "number of bands")) / int(bands)
        return edges.thresholds(np.quantile(edges.score, shares, method="lower"))
    half = whole(bands, "number of bands, half of which are above the threshold,", 2) // 2
    (least,) = edges.thresholds([threshold])
    above, below = edges.score[edges.score >= least], edges.score[edges.score < least]
    floors = [least, *np.quantile(above, np.arange(1, half) / half, method="lower")]
    if len(below):
        floors += np.quantile(
            below, np.arange(int(bands) - half) / (int(bands) - half), method="lower"
        ).tolist()
    return edges.thresholds(floors)


def _count_new_pairs(before: ThresholdClusters, after: ThresholdClusters) -> IntArray:
    """Return the pairs that each cluster joins which smaller ones inside it had apart, (clusters,)."""
    # floats are exact below 2⁵³, and no file has as many pairs
    apart = np.bincount(after.cluster[before.roots], before.sizes.astype(float) ** 2, len(after.sizes))
    return (after.sizes**2 - apart.astype(np.int64)) // 2


def _allocate(pairs: IntArray, n: int) -> IntArray:
    """Return equal numbers of draws of the bands, (B,), except for bands with fewer pairs."""
    if n < FEWEST * len(pairs):
        raise DataError(
            f"{n} pairs in {len(pairs)} bands are fewer than {FEWEST} each: draw {FEWEST * len(pairs)} or "
            "more, or name fewer bands, such as bands=4"
        )
    count = np.zeros(len(pairs), dtype=np.int64)
    for done, band in enumerate(np.argsort(pairs, kind="stable")):
        count[band] = min(pairs[band], (n - count.sum()) // (len(pairs) - done))
    return count


def _draw_band(
    before: IntArray, after: IntArray, new: IntArray, n: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Return both records of n distinct pairs of a band, (n,) each, every set of n pairs being as likely."""
    total = np.cumsum(new)
    rank = rng.choice(int(total[-1]), n, replace=False)
    cluster = np.searchsorted(total, rank, side="right")
    rank -= total[cluster] - new[cluster]
    # only clusters with a drawn pair are put in order, so that a draw costs a look at each record
    chosen = np.unique(cluster)
    record = np.flatnonzero(np.isin(after, chosen))
    record = record[np.lexsort((before[record], after[record]))]
    # each record makes a pair with those of its cluster that stand behind its old cluster
    end, old_end = _end_runs(after[record]), _end_runs(before[record])
    last = np.cumsum(end - old_end)
    start = np.cumsum(new[chosen]) - new[chosen]
    place = start[np.searchsorted(chosen, cluster)] + rank
    one = np.searchsorted(last, place, side="right")
    other = end[one] - (last[one] - place)
    return record[one], record[other]


def _end_runs(codes: IntArray) -> IntArray:
    """Return the end of the run of equal codes that each position is in, (n,)."""
    ends = np.flatnonzero(np.append(codes[1:] != codes[:-1], True)) + 1
    return np.repeat(ends, np.diff(ends, prepend=0))
