"""Bootstrap schemes: rules by which each replicate changes the weights of draws.

A scheme makes multipliers r of the weights. Replicate b of the totals is Σ_s r_bs z_s, with z_s the
contributions of draw s: one matrix product for all metrics. Finite-population corrections θ shrink
multipliers towards 1, r -> 1 + √θ (r - 1).

Source: Rao and Wu (1988), JASA 83, 231-241.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .._internal.arrays import FloatArray, IntArray
from .._internal.errors import NotIdentified
from ..design.variance import StratifiedDraws

CHUNK = 2**18
"""The number of multipliers in memory at a time, 2 MB, so that many replicates need little."""


class Scheme(Protocol):
    """A rule for multipliers of weights, which schemes inherit from; given multipliers define `chunks`."""

    __slots__ = ()

    def multipliers(self, draws: StratifiedDraws, replicates: int, rng: np.random.Generator) -> FloatArray:
        """Return multipliers of the weights, (replicates, n)."""

    def chunks(
        self, draws: StratifiedDraws, replicates: int, rng: np.random.Generator
    ) -> Iterator[FloatArray]:
        """Yield the multipliers of all replicates, about `CHUNK` at a time."""
        rows = max(CHUNK // len(draws.stratum), 1)
        for done in range(0, replicates, rows):
            yield self.multipliers(draws, min(rows, replicates - done), rng)


def _number_strata(draws: StratifiedDraws) -> tuple[IntArray, FloatArray]:
    """Return the number of draws in each stratum, (H,), and √θ of each draw, (n,)."""
    n = np.bincount(draws.stratum)
    single = (n == 1) & (draws.fpc > 0)
    if single.any():
        raise NotIdentified(
            f"{int(single.sum())} of {len(n)} strata hold a single draw: the bootstrap cannot resample it"
        )
    return n, np.sqrt(draws.fpc)[draws.stratum]


def _draw_counts(draws: StratifiedDraws, replicates: int, rng: np.random.Generator) -> FloatArray:
    """Return how often each draw occurs among n_h - 1 draws with replacement in its stratum, (B, n)."""
    n = np.bincount(draws.stratum)
    total = len(draws.stratum)
    if len(n) == 1:
        picks = rng.integers(total, size=(replicates, total - 1))
    else:
        stratum = np.repeat(np.arange(len(n)), np.maximum(n - 1, 1))
        place = rng.integers(n[stratum], size=(replicates, len(stratum))) + (np.cumsum(n) - n)[stratum]
        picks = np.argsort(draws.stratum, kind="stable")[place]
    picks += np.arange(replicates)[:, None] * total  # own numbers for each replicate: one bincount counts all
    counts = np.bincount(picks.ravel(), minlength=replicates * total)
    return counts.reshape(replicates, total).astype(np.float64)


@dataclass(frozen=True, slots=True)
class RaoWu(Scheme):
    """Rao and Wu's bootstrap: n_h - 1 draws with replacement in each stratum, times n_h/(n_h - 1).

    The variance of totals is unbiased, in strata and without replacement too.

    Examples
    --------
    >>> from erbayes.design.variance import StratifiedDraws
    >>> draws = StratifiedDraws(np.array([0, 0, 0]), np.array([1.0]))
    >>> RaoWu().multipliers(draws, 2, np.random.default_rng(1)).sum(axis=1)
    array([3., 3.])
    """

    def multipliers(self, draws: StratifiedDraws, replicates: int, rng: np.random.Generator) -> FloatArray:
        n, root = _number_strata(draws)
        factor = (n / np.maximum(n - 1, 1))[draws.stratum]
        r = _draw_counts(draws, replicates, rng)
        # shrunk towards 1, so that the variance of multipliers has the finite-population correction θ
        r *= root * factor
        r += 1 - root
        return r
