"""Estimates from labelled pairs: precision of links and recall of candidate pairs at each threshold.

Pairs that were drawn by bands of *edges*, as labelling tools do, estimate another share: that of right scored
edges. One wrong edge between two large clusters makes many wrong links, and its label counts once. Both kinds
have classes of their own, whose tables name what they estimate.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from ..._internal.arrays import BoolArray, FloatArray, IntArray, label_components
from ..._internal.errors import (
    PACKAGE,
    Alarm,
    DataError,
    Grade,
    NotIdentified,
    Remedy,
    Sentence,
    head,
    number,
)
from ..._internal.tables import NO, UNSURE, YES, need_table, refuse_names
from ...engine.bounded_means import betting_in_strata
from ...labels.drawing.stopping import Check, Verdict
from ...metrics.columns import PREDICTED_LINKS
from ...metrics.definitions import pairwise_precision
from ...metrics.intervals import check_level
from ...metrics.sentences import say_undecided
from ...metrics.tables import Pictured, reason_column
from ...units.edges import Edges, sweep
from ...units.ids import ids, look_up
from ..thresholds import load_edges
from .limits import FEWEST, NONE, Estimate, PairStrata, estimate_precision, estimate_recall

FEWEST_RIGHT = 5
"""Right answers from which recall has an estimate, since it divides by their number. If fewer stand for more
than half of all right pairs, an alarm says so. With 300 pairs of RLdata10000 and a clerk who errs in 5 %,
they did in 97 of 100 samples with bands down to the least score (a single answer in 17), and in none of 50
with bands down to -3."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Judged(Pictured):
    """Pairs with answers, drawn uniformly in bands that end at thresholds.

    `edges`: all scored edges; `left`, `right` (n,): positions of both records of each labelled pair; `floors`
    (B,): thresholds at which bands end, from the strictest to the loosest; `same` (n,): 1, 0, or NaN if
    undecided.
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
                why = _explain(strata, recall=bool(which))
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

    def check(self, threshold: float, least: float, level: float = 0.95) -> Check:
        """Check whether the share of right pairs above a threshold reaches a minimum, by exact bets.

        The minimum `least` and the number of pairs are chosen before pairs are labelled. The interval then
        covers the share with probability `level`, from the lower end if all undecided pairs are wrong to the
        upper end if all are right. NotIdentified if too few pairs are labelled.
        """
        least = number(least, "what is checked", lambda x: 0 < x < 1, "lie between 0 and 1")
        check_level(level)
        ((_, strata),) = self._split([threshold])
        if missing := _explain(strata, recall=False):
            raise NotIdentified(f"{self.names[0]} at {threshold:g}: {missing}")
        ends = np.array([_bet(strata, right, least, level)[end] for end, right in enumerate((0.0, 1.0))])
        verdict = Verdict.HOLDS if ends[0] >= least else Verdict.FAILS if ends[1] < least else Verdict.OPEN
        reason = _explain_open(strata, least, level) if verdict is Verdict.OPEN else ""
        return Check(
            metrics=(replace(pairwise_precision, name=self.names[0]),),
            minimum=np.array([least]),
            estimate=np.array([estimate_precision(strata, level).value]),
            interval=ends[None],
            level=level,
            kinds=("betting",),
            verdicts=(verdict,),
            further=(None if reason else 0,),
            reasons=(reason,),
        )

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
            said = f"{broken:,} pairs are answered as different, whose records are the same by other answers"
            sentences.append(
                Sentence(f"{said}: one of these is wrong, and each counts as it is", Grade.CAUTION)
            )
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
        return [
            Sentence(
                said,
                Grade.CAUTION,
                Remedy(
                    "look at these answers again, or draw pairs of bands that end higher",
                    "pairs.draw_pairs(..., bands=[...])",
                    "or of a file without the lowest scores",
                ),
            )
        ]

    def _split(self, thresholds: Any) -> list[tuple[float, PairStrata]]:
        """Return the bands at each threshold, which may split one of them."""
        at = self.floors if thresholds is None else self.edges.thresholds(thresholds)
        levels = np.unique(np.concatenate([at, self.floors]))[::-1]
        pairs, place = self.count(levels)
        if below := int(pairs[levels < self.floors[-1]].sum()):
            said = f"{below:,} pairs are between {at.min():g} and the loosest band, which ends at"
            raise DataError(
                f"{said} {self.floors[-1]:g}: none of them was drawn, so choose a threshold above"
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
        read = read_pairs(answers, table)
        judged = cls(table, read.left, read.right, table.thresholds(np.unique(read.band)), read.same)
        pairs, place = judged.count(judged.floors)
        read.refuse(place == len(pairs), "are no candidates, since no band reaches them")
        wrong = (judged.floors[place] != read.band) | ((read.pairs > 0) & (pairs[place] != read.pairs))
        said = "are in another band, or one of another size: other edges, or bands of something else than"
        read.refuse(wrong, f"{said} {cls.banded}")
        for alarm in judged.alarms():
            if alarm.grade is not Grade.NOTE:
                warnings.warn(alarm, Alarm, skip_file_prefixes=PACKAGE)
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
        watched = np.concatenate([self.left, self.right])
        for k, at in enumerate(sweep(self.edges, levels, watched)):
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
        `.table(thresholds=[...])`, `.bands()` and `.check(threshold, least)`.

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

    Arguments and errors are those of `estimate`, with bands of scores. An edge that is there twice has its
    higher score.

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


def _bet(strata: PairStrata, right: FloatArray | float, least: float, level: float) -> FloatArray:
    """Return exact ends of the share above the threshold, (2,), if a share of undecided pairs is right."""
    above, strata = strata.above, strata.decide(right, right)
    n, y = (np.rint(x[above]).astype(np.int64) for x in (strata.labelled, strata.right))
    answers = np.concatenate([np.arange(k) < of for k, of in zip(n, y, strict=True)])
    return betting_in_strata(answers, np.repeat(strata.pairs[above] / n, n), least, level)


def _explain_open(strata: PairStrata, least: float, level: float) -> str:
    """Return why a check is open: for want of answers, or of decisions, of which some would do."""
    unknown = np.where(strata.above, strata.undecided, 0.0)
    if not unknown.any() or _bet(strata, 1.0, least, level)[0] < least:
        return f"{strata.labelled[strata.above].sum():,.0f} labelled pairs do not decide"
    # those of the largest bands are decided last, so that as many always are enough
    weight = strata.pairs / (strata.labelled + strata.undecided)
    order = np.argsort(weight, kind="stable")

    def holds(number: int) -> bool:
        before = unknown[order].cumsum() - unknown[order]
        right = np.empty(len(order))
        right[order] = np.clip(number - before, 0, unknown[order]) / np.maximum(unknown[order], 1)
        return bool(_bet(strata, right, least, level)[0] >= least)

    total = int(unknown.sum())
    needed = bisect_left(range(total), True, key=holds)
    return f"{total:,} undecided pairs decide: it holds if {needed:,} of them are right"


def _explain(strata: PairStrata, recall: bool) -> str:
    """Return why strata identify no precision above the threshold, or no recall, or ""."""
    few = (strata.labelled < np.minimum(FEWEST, strata.pairs))[strata.above | recall]
    if not strata.above.any():
        return "no pair is joined there"
    if few.any():
        return (
            f"{few.sum()} of {len(few)} bands and parts of bands have fewer than {FEWEST} labelled pairs: "
            "choose a threshold at which a band ends, or draw pairs for this one"
        )
    right = int(strata.right.sum())
    if not recall or right >= FEWEST_RIGHT or (right > 0 and not strata.unseen.any()):
        return ""
    return f"{right} right answers are fewer than {FEWEST_RIGHT}"


SPLINK = {"unique_id_l": "left", "unique_id_r": "right", "clerical_match_score": "same"}
"""Columns of Splink's tables of labels, by our names."""
NO_BANDS = (
    "answers have no column 'band': pairs chosen by hand or by active learning are not representative, and "
    "no weight makes them so; draw pairs by erbayes.pairs.draw_pairs or, if these were drawn uniformly in "
    "bands, name for each the threshold at which its band ends"
)


@dataclass(frozen=True, slots=True, eq=False)
class PairAnswers:
    """Labelled pairs: `left`, `right`, positions of both records; `band`, the threshold at which the band of
    each ends; `pairs`, how many its band has, 0 if the table does not say; `same`, 1, 0, or NaN. All (n,)."""

    table: pd.DataFrame
    left: IntArray
    right: IntArray
    band: FloatArray
    pairs: FloatArray
    same: FloatArray

    def refuse(self, wrong: BoolArray, said: str) -> None:
        """Refuse pairs with what is said of them."""
        if wrong.any():
            first = self.table.loc[wrong, ["left", "right"]].iloc[0].tolist()
            raise DataError(
                f"{wrong.sum():,} of {len(wrong):,} labelled pairs, such as {head(first)}, {said}"
            )


def read_pairs(answers: Any, edges: Edges) -> PairAnswers:
    """Return the pairs of a table with columns left, right, band and same, or raise DataError."""
    table = need_table(answers, "answers: expected a DataFrame or an Arrow table").reset_index(drop=True)
    table = table.rename(columns={theirs: own for theirs, own in SPLINK.items() if own not in table})
    if "band" not in table:
        raise DataError(NO_BANDS)
    refuse_names(["left", "right", "same"], list(table.columns), "the table of answers")
    if not len(table):
        raise DataError("the table of answers has no row")
    sides = [ids(table[side], f"column {side!r} of the answers") for side in ("left", "right")]
    left, right = (look_up(edges.records, side, of="edges") for side in sides)
    try:
        # Python reads a number to the last digit, so that it equals the one that was written
        band = np.array([float(x) for x in table["band"]], dtype=edges.score.dtype)
    except (TypeError, ValueError) as error:
        raise DataError(f"bands are thresholds, not such as {head(table['band'])}") from error
    counts = table.get("pairs", pd.Series(0.0, table.index))
    pairs = pd.to_numeric(counts, errors="coerce").fillna(-1).to_numpy(dtype=float)
    given = table["same"].astype(object).where(table["same"].notna(), "")
    words = given.map(lambda x: str(x).strip().lower().removesuffix(".0"))
    same = np.select([words.isin(YES), words.isin(NO)], [1.0, 0.0], np.nan)
    read = PairAnswers(table, left, right, band, pairs, same)
    read.refuse((left < 0) | (right < 0), "have a record that is not among all records")
    read.refuse(left == right, "are of a record with itself")
    twice = pd.Series(make_keys(left, right, len(edges.records))).duplicated().to_numpy()
    read.refuse(twice, "are there twice, perhaps reversed")
    said = "have no answer (write ? if nobody can tell, and leave out the last rows if nobody got to them)"
    read.refuse((words == "").to_numpy(), said)
    strange = ~words.isin(YES | NO | UNSURE).to_numpy()
    read.refuse(strange, f"have answers such as {head(given[strange].tolist())} and not y, n or ?")
    return read


def make_keys(left: IntArray, right: IntArray, N: int) -> IntArray:
    """Return a number for each unordered pair of positions, (n,)."""
    low, high = np.minimum(left, right).astype(np.int64), np.maximum(left, right)
    return np.asarray(low * N + high)
