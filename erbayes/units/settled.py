"""What is known of a prediction besides a sample: what labels settle, what two predictions share, and a heap.

Every predicted link with a labelled end is settled, as all records of a labelled entity have labels. Among
the U records without a label, predicted cluster k of m_k records has u_k. Totals are worst if these records
are one entity, or spoil each other's clusters in pairs, and best if those of a predicted cluster are one
entity. Bounds of this kind are identified sets (Manski 2003, Partial Identification of Probability
Distributions); docs/intervals.md has the reasons.

What two predictions of the same records share, no sample can show to differ.

A heap is far more predicted clusters of one size than of sizes around it, and few above. A matcher that caps
its clusters leaves one, and so do entities that end at one size. Labels of few entities do not tell these
apart, while a look at some clusters of the heap does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.special import expit, logit

from .._internal.arrays import BoolArray, FloatArray, IntArray
from .._internal.errors import DataError, whole
from ..metrics import columns as u
from .clustering import Clustering
from .ids import look_up
from .units import KnownTotals, Units

Totals = dict[u.Column, FloatArray]
"""Totals of all records by their column, (samples,) each."""


@dataclass(frozen=True, slots=True, eq=False)
class Open:
    """What labels of samples leave open, (samples,) each.

    `records`: U; `links`: predicted links without a labelled end, Σ u_k (u_k - 1)/2; `shares`: Σ u_k/m_k;
    `squares`: Σ u_k²; `parts`: Σ u_k²/m_k; `whole`, `singles`: predicted clusters, and those of one record,
    without a label; `begun`: whether a predicted cluster has records with and without a label.
    """

    records: FloatArray
    links: FloatArray
    shares: FloatArray
    squares: FloatArray
    parts: FloatArray
    whole: FloatArray
    singles: FloatArray
    begun: BoolArray


def settle(units: Units, unit: IntArray, there: BoolArray) -> list[tuple[Totals, Totals]] | None:
    """Return the worst and the best totals of each family of metrics, of samples of distinct units.

    `unit` (samples, k): positions of units, which count where they are `there`. Predicted clusters settle, of
    the totals that they identify, what the entities do that they touch. None if labelled entities may not be
    whole, or if the prediction does not fix the number of records.
    """
    entities = units if units.by_entity else units.entities
    known = None if entities is None else entities.known
    if entities is None or known is None or not known.singletons or units.counted is not None:
        return None
    if (np.bincount(entities.group, entities.n)[entities.group] != entities.N).any():
        return None
    stop, samples = np.cumsum(np.count_nonzero(there, axis=-1)), len(unit)
    drawn = csr_array((np.ones(stop[-1]), unit[there], np.append(0, stop)), (samples, len(units)))
    if not units.by_entity:
        drawn = _find_touched(units, entities, drawn)

    left = _count_open(entities, known, drawn)
    U, whole, nothing = left.records, left.whole, np.zeros(samples)
    alone = (U == 1) & (left.singles == 1)  # the last record of all, alone, is exact for sure
    joined = np.where(alone, 0, np.ceil(left.singles / 2))  # single records that spoil each other's clusters
    # what records without a label add to totals at worst and at best
    added: tuple[dict[u.Column, tuple[FloatArray, FloatArray]], ...] = (
        {u.COMMON_LINKS: (nothing, left.links), u.TRUE_LINKS: (u.pairs(U) - left.links, left.links)},
        {u.B3_PRECISION: (left.shares, left.parts), u.B3_RECALL: (left.squares / np.maximum(U, 1), U)},
        {u.EXACT: (alone, whole), u.ENTITIES: (U - joined, whole + left.begun)},
        {u.TRUE_SINGLETONS: (U == 1, U), u.ENTITIES: (np.where(U == 1, 1, U // 2), U)},
        {u.TRUE_LINKS: (u.pairs(U), nothing)},
    )
    fixed = u.RECORDS, u.PREDICTED_LINKS, u.PREDICTED_CLUSTERS
    total: Totals = {c: np.full(samples, known.total(c)) for c in fixed}
    sure = {c: drawn @ entities.column(c) for family in added for c in family if c.identified(units)}
    ends = [[total | {c: sure[c] + y[i] for c, y in f.items() if c in sure} for f in added] for i in (0, 1)]
    return list(zip(*ends, strict=True))


def _find_touched(clusters: Units, entities: Units, drawn: csr_array) -> csr_array:
    """Return which entities the predicted clusters of each sample touch, (samples, entities)."""
    assert clusters.piece_of is not None and entities.piece_of is not None  # labels have ids of records
    touched = entities.unit[entities.piece_of[clusters.piece_of.index]]
    at = clusters.unit[clusters.piece_of], touched
    return (drawn @ csr_array((np.ones(len(touched)), at), (len(clusters), len(entities)))).sign()


def _count_open(units: Units, known: KnownTotals, drawn: csr_array) -> Open:
    """Return what the units of each sample, which are 1 in its row of `drawn`, leave open."""
    n, m, of_piece, samples = units.n, units.m, units.cluster, drawn.shape[0]
    shared, records = np.bincount(of_piece)[of_piece] > 1, np.zeros(int(of_piece.max()) + 1)
    records[of_piece] = m
    first = np.append(0, np.cumsum(shared))[units.first_pieces]
    # labelled records of each sample in predicted clusters that several units share
    joint = drawn @ csr_array((n[shared], of_piece[shared], first), (len(units), len(records)))
    of, labelled = np.repeat(np.arange(samples), np.diff(joint.indptr)), joint.data
    size = records[joint.indices]
    alone = (np.where(shared, 0, x) for x in (n**2, n**2 / m, 1, n < m))
    by_piece = n, n * m, n / m, m == 1, *alone
    by_unit = np.stack([np.bincount(units.unit, x, len(units)) for x in by_piece], axis=-1)
    inside, products, shares, singles, *own = (drawn @ by_unit).T
    together = labelled**2, labelled**2 / size, np.ones(len(of)), labelled < size
    both = (x + np.bincount(of, y, samples) for x, y in zip(own, together, strict=True))
    squares, parts, touched, begun = both
    sizes, count = known.size, known.count
    U, left = sizes @ count - inside, count @ sizes**2 - 2 * products + squares
    return Open(
        records=U,
        links=(left - U) / 2,
        shares=count.sum() - shares,
        squares=left,
        parts=sizes @ count - 2 * inside + parts,
        whole=count.sum() - touched,
        singles=count[sizes == 1].sum() - singles,
        begun=begun > 0,
    )


Pairs = Sequence[tuple[int, int]]
"""Positions of two predictions each."""


@dataclass(frozen=True, slots=True, eq=False)
class Overlap:
    """Links, clusters and records of clusters that are the same in two predictions, and links of one alone.

    `alone`: of each prediction, the sizes of its clusters and how many links those of each size have that the
    other prediction does not, (h,) each. `open_links`: links of both without a labelled end; `open_records`:
    records without a label whose clusters differ.
    """

    links: float
    clusters: float
    records: float
    alone: tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
    open_links: float
    open_records: float

    @classmethod
    def of(cls, first: Clustering, second: Clustering, labelled: IntArray) -> Overlap:
        """Count what clusterings of the same records in one order share; positions of `labelled` records."""
        a, b, m, k = first.codes, second.codes, first.sizes, second.sizes
        # most clusters of good matchers are in both, and need not be sorted
        partner = np.empty(len(m), dtype=np.int64)
        partner[a] = b
        same = m == k[partner]
        same[a[partner[a] != b]] = False
        rest = np.flatnonzero(~same[a])
        cells, n = np.unique(a[rest] * len(k) + b[rest], return_counts=True)
        one, other = np.divmod(cells, len(k))
        alone = []
        for records in (m[one], k[other]):
            total = np.bincount(records, n * (records - n) / 2)
            sizes = np.flatnonzero(total)
            alone.append((sizes.astype(float), total[sizes]))
        of_labelled, known = np.unique(a[labelled] * len(k) + b[labelled], return_counts=True)
        one, at = of_labelled // len(k), np.searchsorted(cells, of_labelled)
        size = np.where(same[one], m[one], np.append(n, 0)[at])
        links = u.pairs(n).sum() + u.pairs(m[same]).sum()
        shared = links, same.sum(), m[same].sum()
        cells_of = size.astype(float), known.astype(float), ~same[one]
        return cls.labelled(shared, (alone[0], alone[1]), len(a), cells_of)

    @classmethod
    def labelled(
        cls,
        shared: Iterable[float],
        alone: tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]],
        records: int,
        cells: tuple[FloatArray, FloatArray, BoolArray],
    ) -> Overlap:
        """Return an overlap of links, clusters and records that are `shared`, of all `records`.

        `cells`: where two clusters share labelled records, the number of those that they share in all and
        with a label, and whether the clusters differ, (l,) each.
        """
        links, same, inside = map(float, shared)
        n, known, differ = cells
        open_links = links - float((u.pairs(n) - u.pairs(n - known)).sum())
        return cls(links, same, inside, alone, open_links, records - inside - float(known[differ].sum()))


class Overlaps:
    """What each two of several predictions share, which `count` counts once, when it is first needed."""

    def __init__(self, count: Callable[[Pairs], Iterable[Overlap]]) -> None:
        self._count = count
        self._counted = dict[tuple[int, int], Overlap]()

    @classmethod
    def of(cls, clusterings: Sequence[Clustering], labelled: pd.Index) -> Overlaps:
        """Compare clusterings of the same records in one order, some of which are labelled."""
        at = look_up(clusterings[0].records, labelled)
        at = at[at >= 0]
        return cls(partial(_count_each, tuple(clusterings), at))

    def find(self, wanted: Pairs) -> list[Overlap]:
        """Return what the predictions of each pair share."""
        if new := [pair for pair in wanted if pair not in self._counted]:
            self._counted |= zip(new, self._count(new), strict=True)
        return [self._counted[pair] for pair in wanted]


def _count_each(clusterings: Sequence[Clustering], labelled: IntArray, wanted: Pairs) -> list[Overlap]:
    return [Overlap.of(clusterings[i], clusterings[j], labelled) for i, j in wanted]


SMALLEST = 8
"""Smallest size of a heap. The sizes from .6 to .9 of a smaller one are too few."""
FEWEST = 5
"""Fewest clusters of the size of a heap. A tail has by chance two or three of one size."""
BELOW = 20
"""Fewest clusters from a quarter to .9 of the size, which show how many are to be expected."""
TIMES = 2.0
"""Least ratio of clusters of the size to those to be expected. With 3, seven and six of 120 caps at 10 and 25
more are missed, and two of 120 populations without a cap have no heap that have one with 2: narrow log-normal
sizes (sd .15)."""
ABOVE = 0.25
"""Largest number of clusters per size above a heap, as a share of those below it, up to a fiftieth more. With
a third, heaps are found that no cap has made."""
ERRORS = 5.0
"""Standard errors above which the excess is a heap."""
CAPPED = 0.75
"""Probability, before any look, that the matcher cuts the entities of a heap. Matchers have caps more often
than entities end at one size."""
GOES_ON = 0.8
"""Chance that a look finds further records if the matcher cuts, which was .71 to .95 in four populations."""
BY_CHANCE = 0.05
"""Chance that it does so if entities end there, which was .00 in two populations."""
SETTLED = 0.025
"""Probability of a cap below which it is none, as in four looks that find nothing. It is what the tail of an
interval has, and draws that are rarer move its end by chance alone."""


@dataclass(frozen=True, slots=True)
class Heap:
    """A heap of predicted clusters, which a matcher's cap leaves, and a population whose entities end there.

    `size`: the fullest size of the heap; `clusters`: their number; `around`: clusters of each size near the
    heap, on average; `excess`: clusters from .9 to 1.1 of the size beyond those to be expected there, which
    are those of smaller sizes up to the heap, and of larger ones above it.
    """

    size: int
    clusters: int
    around: float
    excess: float

    def __str__(self) -> str:
        around = f"about {self.around:.0f}" if self.around >= 1 else "less than one"
        said = f"{self.clusters:,} of the predicted clusters have {self.size:,} records, and each size around"
        return f"{said} that has {around}: either entities end there, or the matcher cuts them"


@dataclass(frozen=True, slots=True)
class Looks:
    """Clusters of a heap that somebody looked at, to see whether their entities go on elsewhere.

    Parameters
    ----------
    continued : int
        Of these, those whose main entity has further records elsewhere, at least a fifth of the heap's size.
    of : int
        Clusters that were looked at, drawn at random from those of the heap.

    Raises
    ------
    DataError
        If these are no whole numbers with 0 ≤ `continued` ≤ `of`.

    Examples
    --------
    >>> Looks(5, of=5)
    Looks(continued=5, of=5)
    """

    continued: int
    of: int

    def __post_init__(self) -> None:
        whole(self.of, "the clusters that were looked at", 1)
        if whole(self.continued, "looks that found more", 0) > self.of:
            raise DataError(f"{self.continued} of {self.of} looks found more: they are at most {self.of}")

    def __str__(self) -> str:
        said = f"Entities of {self.continued:,} of the {self.of:,} that were looked at"
        return f"{said} go on in other clusters"


def chance_capped(looks: Looks | None) -> float:
    """Return the probability that the matcher cuts the entities of a heap, given looks."""
    if looks is None:
        return CAPPED
    found, other = int(looks.continued), int(looks.of) - int(looks.continued)
    # log odds, since the probabilities of hundreds of looks are too small for a number
    log_odds = logit(CAPPED) + found * np.log(GOES_ON / BY_CHANCE)
    chance = float(expit(log_odds + other * np.log((1 - GOES_ON) / (1 - BY_CHANCE))))
    return chance if chance >= SETTLED else 0.0


def find_heap(known: KnownTotals) -> Heap | None:
    """Return the heap of a prediction, the clearest if there are several; None if there is none.

    With b clusters per size in [.6c, .9c), a per size in (1.1c, 1.5c] and n of size c, c is a heap if n > 2b,
    a < b/4 + .02 and (n - b)/√(b + 1) > 5. A cap fills one size, which clusters around would hide. No
    distribution of sizes is fitted, since a power law of smaller sizes finds heaps in log-normal ones.

    Examples
    --------
    >>> size = np.arange(1.0, 101.0)
    >>> count = np.where(size <= 50, np.floor(150 / size), 0.0)
    >>> count[49] = 120
    >>> find_heap(KnownTotals(size, count))
    Heap(size=50, clusters=120, around=1.5, excess=113.4)
    """
    order = np.argsort(known.size)
    size, count = known.size[order].astype(np.int64), known.count[order]
    total, c = np.append(0.0, np.cumsum(count)), size[(size >= SMALLEST) & (count >= FEWEST)]
    # first sizes of the ranges, by whole numbers, since .9 * 10 and 1.1 * 10 are off by rounding
    quarter, low, near = -(-c // 4), -(-6 * c // 10), -(-9 * c // 10)
    above, end = 11 * c // 10 + 1, 3 * c // 2 + 1

    def number(start: IntArray, stop: IntArray) -> FloatArray:
        return np.asarray(total[np.searchsorted(size, stop)] - total[np.searchsorted(size, start)])

    alone = count[np.searchsorted(size, c)]
    below, over, window = number(low, near), number(above, end), number(near, above)
    b, a = below / np.maximum(near - low, 1), over / np.maximum(end - above, 1)
    errors = (alone - b) / np.sqrt(b + 1)
    found = (alone > TIMES * b) & (a < ABOVE * b + 0.02) & (errors > ERRORS)
    found &= number(quarter, near) >= BELOW
    if not found.any():
        return None
    j = int(np.where(found, errors, -np.inf).argmax())
    around = (below[j] + over[j]) / (near[j] - low[j] + end[j] - above[j])
    # a piece that lost or gained a record is one too, and a cap leaves no other cluster above it
    excess = window[j] - (c[j] + 1 - near[j]) * b[j] - (above[j] - c[j] - 1) * a[j]
    return Heap(int(c[j]), int(alone[j]), round(float(around), 1), round(float(excess), 1))
