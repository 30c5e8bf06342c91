"""A heap in the predicted sizes: far more clusters of one size than of sizes around it, and few above.

A matcher that caps its clusters leaves one, and so do entities that end at one size. Labels of few entities
do not tell these apart, while a look at some clusters of the heap does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from .._internal.arrays import FloatArray, IntArray
from .._internal.errors import DataError, whole
from .units import KnownTotals

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
    heap, on average; `excess`: clusters from .9 to 1.1 of the size beyond those to be expected there.
    """

    size: int
    clusters: int
    around: float
    excess: float

    def __str__(self) -> str:
        around = f"about {self.around:.0f}" if self.around >= 1 else "less than one"
        return (
            f"{self.clusters:,} of the predicted clusters have {self.size:,} records, and each size around "
            f"that has {around}: either entities end there, or the matcher cuts them"
        )


@dataclass(frozen=True, slots=True)
class Looks:
    """Clusters of a heap that somebody looked at, to see whether their entities go on elsewhere.

    Parameters
    ----------
    continued : int
        Of these clusters, those whose main entity has further records in other clusters, at least a fifth of
        the size of the heap.
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

    def __str__(self) -> str:
        return (
            f"Entities of {self.continued:,} of the {self.of:,} that were looked at go on in other clusters"
        )

    def __post_init__(self) -> None:
        whole(self.of, "the clusters that were looked at", 1)
        if whole(self.continued, "looks that found more", 0) > self.of:
            raise DataError(f"{self.continued} of {self.of} looks found more: they are at most {self.of}")


def chance_capped(looks: Looks | None) -> float:
    """Return the probability that the matcher cuts the entities of a heap, given looks."""
    if looks is None:
        return CAPPED
    found, other = int(looks.continued), int(looks.of) - int(looks.continued)
    # log odds, since the probabilities of hundreds of looks are too small for a number
    log_odds = (
        np.log(CAPPED / (1 - CAPPED))
        + found * np.log(GOES_ON / BY_CHANCE)
        + other * np.log((1 - GOES_ON) / (1 - BY_CHANCE))
    )
    chance = float(expit(log_odds))
    return chance if chance >= SETTLED else 0.0


def find_heap(known: KnownTotals) -> Heap | None:
    """Return the heap of a prediction, the clearest if there are several; None if there is none.

    With b clusters per size in [.6c, .9c), a per size in (1.1c, 1.5c] and n of size c, c is a heap if n > 2b,
    a < b/4 + .02 and (n - b)/√(b + 1) > 5. A cap fills one size, which clusters around would hide. No
    distribution of sizes is fitted, since a power law that is fitted to the smaller sizes finds heaps in
    log-normal ones.

    Examples
    --------
    >>> size = np.arange(1.0, 101.0)
    >>> count = np.where(size <= 50, np.floor(150 / size), 0.0)
    >>> count[49] = 120
    >>> find_heap(KnownTotals(size, count))
    Heap(size=50, clusters=120, around=1.5, excess=95.4)
    """
    order = np.argsort(known.size)
    size, count = known.size[order].astype(np.int64), known.count[order]
    total, c = np.append(0.0, np.cumsum(count)), size[(size >= SMALLEST) & (count >= FEWEST)]
    # first sizes of the ranges, by whole numbers, since .9 * 10 and 1.1 * 10 are off by rounding
    quarter, low, near, above, end = (
        -(-c // 4),
        -(-6 * c // 10),
        -(-9 * c // 10),
        11 * c // 10 + 1,
        3 * c // 2 + 1,
    )

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
    # a piece that lost or gained a record is one too
    excess = window[j] - (above[j] - near[j]) * b[j]
    return Heap(int(c[j]), int(alone[j]), round(float(around), 1), round(float(excess), 1))


def find_seen_caps(known: KnownTotals) -> tuple[int, int] | None:
    """Return the smallest and the largest cap that would leave a heap which is found; None if none does.

    A cap is tried by cutting the predicted clusters at it, into full pieces and a rest.

    Examples
    --------
    >>> size = np.arange(1.0, 101.0)
    >>> find_seen_caps(KnownTotals(size, np.floor(150 / size)))
    (8, 90)
    """
    size, count = known.size.astype(np.int64), known.count
    seen: list[int] = []
    for cap in range(SMALLEST, int(size.max(initial=0))):
        if count @ (size // cap) < FEWEST:
            break
        rest, larger = size % cap, size > cap
        pieces = np.bincount(np.where(larger, rest, size), count)
        pieces = np.append(pieces, np.zeros(max(cap + 1 - len(pieces), 0)))
        pieces[cap] += count[larger] @ (size // cap)[larger]
        left = np.flatnonzero(pieces[1:]) + 1
        heap = find_heap(KnownTotals(left.astype(float), pieces[left]))
        if heap is not None and heap.size == cap:
            seen.append(cap)
        elif seen:
            break
    return (seen[0], seen[-1]) if seen else None
