"""Bootstrap schemes: how the weights of draws are multiplied in each replicate.

A scheme draws multipliers r_bs; replicate b of the totals is Σ_s r_bs z_s: one matrix product for
all metrics. Finite-population corrections shrink multipliers to 1, r -> 1 + √θ (r - 1).

Sources: Rao and Wu (1988), JASA 83, 231-241; Rubin (1981), Annals of Statistics 9, 130-134 (Bayesian
bootstrap).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import FloatArray, IntArray
from ..columns import RECORDS, TRUE_LINKS, Column
from ..errors import DataError, NotIdentified
from ..sample import Sample
from ..variance import StratifiedDraws

CHUNK = 2**18
"""Multipliers held in memory at a time."""


class Scheme(Protocol):
    """A way of resampling draws: schemes inherit from it and give `multipliers`."""

    __slots__ = ()

    def multipliers(self, draws: StratifiedDraws, replicates: int, rng: np.random.Generator) -> FloatArray:
        """r_bs, (replicates, n + pseudo-draws)."""
        ...

    def chunks(
        self, draws: StratifiedDraws, replicates: int, rng: np.random.Generator
    ) -> Iterator[FloatArray]:
        """All multipliers, about `CHUNK` at a time."""
        at_once = max(CHUNK // len(draws.stratum), 1)
        for done in range(0, replicates, at_once):
            yield self.multipliers(draws, min(at_once, replicates - done), rng)

    def pseudo(self, sample: Sample, columns: Sequence[Column]) -> FloatArray:
        """Contributions of pseudo-draws, (pseudo-draws, k)."""
        return np.empty((0, len(columns)))


def _resampled(draws: StratifiedDraws) -> tuple[IntArray, FloatArray]:
    """Draws in each stratum, (H,), and √θ of each draw, (n,).

    Raises
    ------
    NotIdentified
        A stratum with one draw that was not certain: nothing to resample.
    """
    n = np.bincount(draws.stratum)
    single = (n == 1) & (draws.theta > 0)
    if single.any():
        raise NotIdentified(
            f"{int(single.sum())} of {len(n)} strata hold a single draw: the bootstrap cannot resample it"
        )
    return n, np.sqrt(draws.theta)[draws.stratum]


def _counts(draws: StratifiedDraws, fewer: int, replicates: int, rng: np.random.Generator) -> FloatArray:
    """How often each draw recurs among n_h - fewer draws with replacement in its stratum, (B, n)."""
    n = np.bincount(draws.stratum)
    total = len(draws.stratum)
    if len(n) == 1:
        picks = rng.integers(total, size=(replicates, total - fewer))
    else:
        of = np.repeat(np.arange(len(n)), np.maximum(n - fewer, 1))
        place = rng.integers(n[of], size=(replicates, len(of))) + (np.cumsum(n) - n)[of]
        picks = np.argsort(draws.stratum, kind="stable")[place]
    picks += np.arange(replicates)[:, None] * total
    counts = np.bincount(picks.ravel(), minlength=replicates * total)
    return counts.reshape(replicates, total).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Multinomial(Scheme):
    """n_h draws with replacement in each stratum, Efron's bootstrap. Variance (n-1)/n of the unbiased."""

    def multipliers(self, draws: StratifiedDraws, replicates: int, rng: np.random.Generator) -> FloatArray:
        _, root = _resampled(draws)
        r = _counts(draws, 0, replicates, rng)
        r *= root
        r += 1 - root
        return r


@dataclass(frozen=True, slots=True)
class RaoWu(Scheme):
    """n_h - 1 draws, rescaled by n_h/(n_h-1): the variance of totals is unbiased, in strata and
    without replacement too."""

    def multipliers(self, draws: StratifiedDraws, replicates: int, rng: np.random.Generator) -> FloatArray:
        n, root = _resampled(draws)
        factor = (n / np.maximum(n - 1, 1))[draws.stratum]
        r = _counts(draws, 1, replicates, rng)
        r *= root * factor
        r += 1 - root
        return r


@dataclass(frozen=True, slots=True)
class Dirichlet(Scheme):
    """Rubin's Bayesian bootstrap: n_h times flat Dirichlet weights in each stratum."""

    def multipliers(self, draws: StratifiedDraws, replicates: int, rng: np.random.Generator) -> FloatArray:
        n, root = _resampled(draws)
        r = rng.standard_exponential((replicates, len(draws.stratum)))
        member = np.eye(len(n))[draws.stratum] if len(n) > 1 else np.ones((len(draws.stratum), 1))
        return 1 + root * (r * n[draws.stratum] / (r @ member)[:, draws.stratum] - 1)


@dataclass(frozen=True, slots=True)
class PseudoDraws(Scheme):
    """Bayesian bootstrap with two more draws: one entity all right, one all wrong.

    Where a sample holds almost no error, every other interval shrinks to nothing. Here two pseudo-draws
    of average size say that errors may exist that were not seen: one entity that is predicted exactly,
    and one whose records are each the only one of it in a predicted cluster as large as the entity.
    Their weight and size give each the average records and true links of a draw.

    Parameters
    ----------
    mass : float
        Dirichlet mass of each, above 0; a draw of the sample has 1.
    """

    mass: float = 0.25

    def __post_init__(self) -> None:
        if not 0 < self.mass < np.inf:
            raise DataError(f"mass of a pseudo-draw must be above 0, not {self.mass}")

    def multipliers(self, draws: StratifiedDraws, replicates: int, rng: np.random.Generator) -> FloatArray:
        _, root = _resampled(draws)
        if draws.lost > 1 or draws.theta[0] < 1:
            raise NotIdentified("pseudo-draws are made for one stratum drawn with replacement")
        n = len(root)
        r = np.hstack(
            [
                rng.standard_exponential((replicates, n)),
                rng.standard_gamma(self.mass, (replicates, 2)),
            ]
        )
        return np.asarray(r * n / r.sum(axis=1, keepdims=True))

    def pseudo(self, sample: Sample, columns: Sequence[Column]) -> FloatArray:
        draws = len(sample.expansion.unit)
        records, links = sample.contributions([RECORDS, TRUE_LINKS]).sum(axis=0)
        size = max(round(1 + 2 * links / records), 2)
        stock = sample.units.stock(size)
        y = np.column_stack([stock.column(c)[:2] for c in columns])
        return np.asarray(y * (records / draws / size))


@dataclass(frozen=True, slots=True, eq=False)
class FixedReplicates(Scheme):
    """Multipliers made elsewhere, such as replicate weights divided by weights.

    Parameters
    ----------
    given : float array or nested sequence, (replicates, n)
    """

    given: ArrayLike

    def multipliers(self, draws: StratifiedDraws, replicates: int, rng: np.random.Generator) -> FloatArray:
        given = np.asarray(self.given, dtype=float)
        if given.shape != (replicates, len(draws.stratum)):
            raise DataError(
                f"{replicates} replicates of {len(draws.stratum)} draws need multipliers of that shape, "
                f"not {given.shape}"
            )
        if bad := int(np.count_nonzero(~np.isfinite(given))):
            raise DataError(f"multipliers must be finite; {bad} of {given.size} are not")
        return given

    def chunks(
        self, draws: StratifiedDraws, replicates: int, rng: np.random.Generator
    ) -> Iterator[FloatArray]:
        """The given ones, which are in memory already."""
        yield self.multipliers(draws, replicates, rng)
