"""What two predictions of the same records have in common, where no sample can show a difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .clustering import Clustering
from .lookup import look_up
from .units import KnownTotals, histogram


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """The number of links that are in both predictions, and sizes of the clusters that are in one alone."""

    common_links: float
    differing: tuple[KnownTotals, KnownTotals]

    @classmethod
    def of(cls, first: Clustering, second: Clustering) -> Shared:
        """Count what two clusterings of the same records share.

        Examples
        --------
        >>> a, b = ({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "x", 2: "x", 3: "y", 4: "z"})
        >>> found = Shared.of(Clustering.of(a, "a"), Clustering.of(b, "b"))
        >>> found.common_links, found.differing[1].count
        (1.0, array([2.]))
        """
        codes = second.codes[look_up(second.records, first.records)]
        of_both, n = np.unique(first.codes * len(second.sizes) + codes, return_counts=True)
        a, b = np.divmod(of_both, len(second.sizes))
        same = (n == first.sizes[a]) & (n == second.sizes[b])
        differing = []
        for clustering, at in ((first, a), (second, b)):
            alone = np.ones(len(clustering.sizes), dtype=bool)
            alone[at[same]] = False
            differing.append(histogram(clustering.sizes[alone]))
        return cls(float((n * (n - 1.0)).sum() / 2), (differing[0], differing[1]))

    @property
    def alike(self) -> bool:
        """Return whether the predictions are the same."""
        return not len(self.differing[0].size)


class Overlaps:
    """What every two of several predictions share, counted once, when it is first asked for."""

    def __init__(self, clusterings: Sequence[Clustering]) -> None:
        self.clusterings = tuple(clusterings)
        self._found = dict[tuple[int, int], Shared]()

    def find(self, first: int, second: int) -> Shared | None:
        """Return what the predictions at two positions share; None if they were counted elsewhere."""
        if not self.clusterings:
            return None
        if (first, second) not in self._found:
            self._found[first, second] = Shared.of(self.clusterings[first], self.clusterings[second])
        return self._found[first, second]
