"""Scored edges between records, and their clusterings at many thresholds in one sweep.

At a threshold, edges with that score or more are links, and clusters are the connected components of links.
The sweep goes from the strictest threshold to the loosest and only ever joins clusters, so that all
thresholds together cost about as much as one sort of the scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray, IntArray, label_components
from .._internal.digits import shorten_down
from .._internal.errors import DataError, Grade, Remedy, Sentence, head, number, refuse_cases, whole
from .._internal.names import find_known
from .clustering import Clustering, list_all_records, read_ends
from .columns import read_prediction, read_records
from .ids import look_up
from .measuring import assemble
from .reading import SWEEP, Named, Near, Reading, to_links_table
from .units import KnownTotals, Units

SURE = 4.5
"""Standard errors from which the order of scores is no coincidence, which has a chance of 3 in a million."""


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Scored edges between `records`, (N,): ends and scores, larger for likelier matches, (E,).

    `unsure`: it is not said which of several scores of the table counts.
    """

    records: pd.Index
    left: IntArray
    right: IntArray
    score: FloatArray
    unsure: bool = False

    @classmethod
    def of(cls, edges: Any, records: Any, score: str | None = None, what: str = "edges") -> Edges:
        """Read edges from a table of two ids and a score (see `erbayes.thresholds`), or raise DataError."""
        if isinstance(edges, Edges):
            return edges
        if records is None:
            raise DataError(f"{what} do not name records that no edge has: list all of them, records=ids")
        said = f"{what}: expected a DataFrame or an Arrow table of two ids and a score"
        table, listed = to_links_table(edges, said), read_records(records, what)
        if not len(table):
            raise DataError(f"the table of the {what} has no row: without an edge there is no threshold")
        named = Named(links=True, score=score, threshold=SWEEP, one_list=True)
        reading = read_prediction(table, named, Near.all_of(listed), what=what)
        return cls.read(reading, listed, score is None)

    @classmethod
    def read(cls, reading: Reading, listed: pd.Index, unsure: bool = True) -> Edges:
        """Make edges of what the columns of a table mean; `unsure`: the score is not named."""
        what, scores = reading.what, reading.scores()
        left, right, distinct = read_ends(reading.key(0), reading.key(1), what)
        listed, position = list_all_records(listed, distinct, what)
        # half the memory, as long as positions fit
        small: Any = np.int32 if len(listed) < 2**31 else np.int64
        at = position.astype(small)
        if (left == right).all():
            raise DataError(f"{what}: every edge joins a record with itself, so that no two are compared")
        several = len(find_known(reading.table.columns, "score")) > 1
        return cls(listed, at[left], at[right], scores, unsure and several)

    def thresholds(self, at: Any) -> FloatArray:
        """Return falling thresholds, (K,): as many quantiles of the distinct scores, or these values.

        A quantile is the shortest number above the next lower score, so that it can be typed and cuts alike.
        """
        if isinstance(at, str) or not isinstance(at, Iterable):
            distinct = np.unique(self.score)
            if len(distinct) == 1:
                said = f"all {len(self.score):,} scores are {head(distinct)}, which is one clustering"
                raise DataError(f"{said} and no curve")
            chosen = spread_thresholds(distinct, at)
            lower = distinct[np.maximum(np.searchsorted(distinct, chosen) - 1, 0)]
            return np.array([shorten_down(x, below) for x, below in zip(chosen, lower, strict=True)])
        values = [number(x, "a threshold", lambda x: not np.isnan(x), "be a number") for x in at]
        if not values:
            raise DataError("no threshold is given: name some, or their number, such as at=50")
        if self.unsure and all(0 <= value <= 1 for value in values):
            both = "match_probability", "match_weight"
            ways = (Remedy("say which", f"score={name!r}", f"--score {name}") for name in both)
            said = f"thresholds such as {head(values)} may be of a probability or of a weight"
            raise DataError(f"{said}, which the edges have both", *ways)
        # in the precision of the scores, where .9 is as large as a score of .9
        thresholds = np.unique(np.array(values, dtype=self.score.dtype))[::-1]
        least, most = self.score.min(), self.score.max()
        outside, below = thresholds[(thresholds < 0) | (thresholds > 1)], thresholds[thresholds < least]
        if least >= 0 and most <= 1:
            said = "all scores lie between 0 and 1, as probabilities do, and {n} thresholds do not, such as"
            weights = ": give probabilities as thresholds, or name the column of weights as score"
            refuse_cases(outside, said, weights, of=len(thresholds))
        said = "{n} thresholds are below the least score, as the file has no edge there, such as"
        begin = f": what it would link is not known; begin at {least:g}, or keep more edges"
        refuse_cases(below, said, begin, of=len(thresholds))
        if (thresholds > most).all():
            raise DataError(f"no edge has a score of {head(thresholds)} or more: the greatest is {most:g}")
        return thresholds

    def watch(self, labels: Clustering) -> IntArray:
        """Return the position of each labelled record among all records, refusing labels of others."""
        position = look_up(self.records, labels.records, of="edges")
        said = f"{{n}} of {len(position):,} labelled records are not among all records, such as"
        refuse_cases(labels.records[position < 0], said, ": list every record that can be linked")
        return position

    def units(self, labels: Clustering, thresholds: FloatArray) -> Iterator[Units]:
        """Return the units of the labelled entities at each threshold, from the strictest on."""
        for level in sweep(self, thresholds, self.watch(labels)):
            yield assemble(labels, level.cluster, level.sizes, level.known)

    def alarms(self, labels: Clustering) -> list[Sentence]:
        """Return a sentence if edges inside labelled entities score lower than those that leave them."""
        entity = np.full(len(self.records), -1)
        entity[self.watch(labels)] = labels.codes
        one, other = entity[self.left], entity[self.right]
        touched = ((one >= 0) | (other >= 0)) & (self.left != self.right)
        inside = one[touched] == other[touched]
        right, wrong = np.sort(self.score[touched][inside]), self.score[touched][~inside]
        if not (len(right) and len(wrong)):
            return []
        lower = np.searchsorted(right, wrong, "left") + np.searchsorted(right, wrong, "right")
        share = lower.mean() / (2 * len(right))
        # if scores said nothing, the share would be ½ with this error, ties counted half (Mann-Whitney 1947)
        error = np.sqrt((len(right) + len(wrong) + 1) / (12 * len(right) * len(wrong)))
        if share <= 0.5 + SURE * error:
            return []
        said = f"Edges inside labelled entities score lower than those that leave them, in {share:.0%} of"
        return [Sentence(f"{said} comparisons: if scores are distances, give their negatives", Grade.FAULT)]


def spread_thresholds(distinct: FloatArray, at: Any) -> FloatArray:
    """Return so many of rising numbers as falling thresholds, in equal distances by rank, or all."""
    number_of = whole(at, "at, if it is a number of thresholds,")
    rank = np.linspace(0, len(distinct) - 1, min(number_of, len(distinct)))
    return np.asarray(distinct[rank.round().astype(np.int64)][::-1])


@dataclass(frozen=True, slots=True, eq=False)
class ThresholdClusters:
    """Clusters of watched records at one threshold, positions in `sizes` and `roots`, a record of each."""

    cluster: IntArray
    sizes: IntArray
    known: KnownTotals
    roots: IntArray


def sweep(edges: Edges, thresholds: FloatArray, watched: IntArray) -> Iterator[ThresholdClusters]:
    """Return the clustering of the watched records at each of K falling thresholds."""
    # in each band of scores only the clusters that its edges touch are joined, so that each edge works once
    K = len(thresholds)
    band = (K - np.searchsorted(thresholds[::-1], edges.score, side="right")).astype(np.min_scalar_type(K))
    ends = np.cumsum(np.bincount(band, minlength=K + 1))[:K]
    # small integers are sorted by counting, which is quicker than a sort of scores
    order = np.argsort(band, kind="stable")[: ends[-1]]
    left, right = edges.left[order], edges.right[order]
    forest = _Forest(len(edges.records), left.dtype)
    at, start = np.asarray(watched), 0
    for end in ends.tolist():
        forest.join(left[start:end], right[start:end])
        start = end
        at = forest.find(at)
        cluster, roots = pd.factorize(at)
        yield ThresholdClusters(cluster, forest.size[roots], forest.known(), roots)


class _Forest:
    """Clusters of N records as trees: each record points to another of its cluster, a root to itself."""

    __slots__ = ("histogram", "parent", "size")

    def __init__(self, records: int, dtype: Any) -> None:
        self.parent = np.arange(records, dtype=dtype)
        self.size = np.ones(records, dtype=np.int64)
        self.histogram = {1: records}

    def find(self, records: IntArray) -> IntArray:
        """Return the root of each record, (r,)."""
        above = self.parent[records]
        while not np.array_equal(above, records):
            records, above = above, self.parent[above]
        return records

    def join(self, left: IntArray, right: IntArray) -> None:
        """Join the clusters of both ends of each edge, (e,)."""
        one, other = self.find(left), self.find(right)
        apart = one != other
        if not apart.any():
            return
        e = int(apart.sum())
        roots, code = np.unique(np.concatenate([one[apart], other[apart]]), return_inverse=True)
        component = label_components(code[:e], code[e:], len(roots))
        components = int(component.max()) + 1
        root = np.zeros(components, dtype=self.parent.dtype)
        root[component[::-1]] = roots[::-1]
        old = self.size[roots]
        new = np.bincount(component, weights=old, minlength=components).astype(np.int64)
        for sizes, sign in ((old, -1), (new, 1)):
            for size, times in zip(*(x.tolist() for x in np.unique(sizes, return_counts=True)), strict=True):
                self.histogram[size] = self.histogram.get(size, 0) + sign * times
        self.size[root], self.parent[roots] = new, root[component]
        # whatever was touched points to its root, so that paths stay short
        self.parent[left], self.parent[right] = self.parent[one], self.parent[other]

    def known(self) -> KnownTotals:
        """Return how many clusters have each size."""
        sizes = np.array([pair for pair in self.histogram.items() if pair[1]], dtype=float)
        return KnownTotals(sizes[:, 0], sizes[:, 1])
