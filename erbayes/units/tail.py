"""How heavy the tail of cluster sizes is: the shape of a Pareto tail."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv

from .._internal.errors import NotIdentified
from .units import KnownTotals

LEAST = 6
"""Size from which the tail of whole numbers is near enough to Pareto's (Clauset et al. 2009, figure 1)."""
FEWEST = 20
"""Number of clusters in the tail, with which the interval of the shape is a factor of 2.4 long."""


@dataclass(frozen=True, slots=True)
class TailIndex:
    """Shape a of the tail of cluster sizes, P(size > s) ∝ s^-a from `start` on, with its 95 % interval.

    With a shape of 2 or less, the mean number of links of a cluster has no limit as populations grow, and
    with 4 or less their variance has none, so that few clusters have most of the links.

    `clusters`: number of clusters in the tail.
    """

    shape: float
    lower: float
    upper: float
    start: int
    clusters: int

    def __str__(self) -> str:
        return (
            f"sizes of {self.start} records or more fall as a Pareto tail of shape {self.shape:.2g} "
            f"({self.lower:.2g} to {self.upper:.2g}, from {self.clusters:,} clusters)"
        )


def tail_index(known: KnownTotals) -> TailIndex:
    """Estimate the shape of the tail of cluster sizes by Hill's estimator for whole numbers.

    With k clusters of sizes s_i ≥ start, â = k/Σ log(s_i/(start - ½)), whose error is about a/√k. Bounds are
    those of k a/â, which has a Gamma distribution of shape k under a Pareto tail. The start is that from
    which the distribution of sizes is nearest to the tail, in the largest distance of the two.

    Parameters
    ----------
    known : KnownTotals
        Sizes of all predicted clusters, as `Units.known` has them.

    Raises
    ------
    NotIdentified
        If fewer than 20 clusters have six records or more.

    References
    ----------
    Hill (1975), The Annals of Statistics 3, 1163-1174. Clauset, Shalizi and Newman (2009), SIAM Review 51,
    661-703.

    Examples
    --------
    >>> size = np.arange(1.0, 201.0)
    >>> print(tail_index(KnownTotals(size, np.round(1e5 * size**-2.5))))
    sizes of 6 records or more fall as a Pareto tail of shape 1.5 (1.5 to 1.6, from 5,104 clusters)
    """
    size, count = known.size, known.count
    above = np.cumsum(count[::-1])[::-1]
    fits = []
    for j in np.flatnonzero((above >= FEWEST) & (size >= LEAST)):
        start, k = size[j] - 0.5, float(above[j])
        shape = k / float(count[j:] @ np.log(size[j:] / start))
        expected = ((size[j:] - 0.5) / start) ** -shape
        fits.append((float(np.abs(expected - above[j:] / k).max()), shape, int(j)))
    if not fits:
        raise NotIdentified(f"a tail index needs {FEWEST} clusters of {LEAST} records or more")
    _, shape, at = min(fits)
    clusters = int(above[at])
    lower, upper = (shape * float(gammaincinv(clusters, p)) / clusters for p in (0.025, 0.975))
    return TailIndex(shape, lower, upper, int(size[at]), clusters)
