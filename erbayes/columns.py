"""What is counted on units: a column is a sum over pieces; its sum over all units is a population total."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .arrays import FloatArray, IntArray
from .errors import NotIdentified


class Pieces(Protocol):
    """Pieces of units: n, N and m of each, its unit and its whole cluster (see `erbayes.Units`)."""

    @property
    def unit(self) -> IntArray: ...
    @property
    def group(self) -> IntArray: ...
    @property
    def n(self) -> FloatArray: ...
    @property
    def N(self) -> FloatArray: ...
    @property
    def m(self) -> FloatArray: ...
    @property
    def by_entity(self) -> bool: ...
    def __len__(self) -> int: ...


class Column(Protocol):
    """A quantity counted on each unit, whose sum over all units is a population total."""

    @property
    def name(self) -> str: ...
    def identified(self, units: Pieces) -> bool: ...
    def count(self, units: Pieces) -> FloatArray: ...


Term = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True, slots=True)
class PieceSum:
    """Σ over pieces of term(n, N_c, m)."""

    name: str
    term: Term

    def identified(self, units: Pieces) -> bool:
        return not np.isnan(self._terms(units)).any()

    def _terms(self, units: Pieces) -> FloatArray:
        """Terms of the pieces, NaN for those that need an unknown N.

        A comparison such as N > 1 is False if N is NaN, and would count an unknown size as a small one. So
        the term of an unknown N is that of several sizes, and NaN if these differ.
        """
        terms = self.term(units.n, units.N, units.m)
        unknown = np.isnan(units.N)
        if not unknown.any():
            return terms
        n, m = units.n[unknown], units.m[unknown]
        with np.errstate(all="ignore"):
            tried = [self.term(n, N, m) for N in (n, n + 1, n + 2, 10 * n, n + 1e6)]
        same = np.ones(len(terms), dtype=bool)
        same[unknown] = np.ptp(tried, axis=0) == 0
        return np.where(same, terms, np.nan)

    def count(self, units: Pieces) -> FloatArray:
        terms = self._terms(units)
        if np.isnan(terms).any():
            raise NotIdentified(
                f"'{self.name}' needs the full size of every true entity that the sampled "
                "predicted clusters touch"
            )
        return np.bincount(units.unit, weights=terms, minlength=len(units))


@dataclass(frozen=True, slots=True)
class ClusterSum:
    """Σ over pieces of n φ(m): its total over all units is known from the prediction alone."""

    name: str
    phi: Callable[[FloatArray], FloatArray]

    def identified(self, units: Pieces) -> bool:
        return True

    def count(self, units: Pieces) -> FloatArray:
        return np.bincount(units.unit, weights=units.n * self.phi(units.m), minlength=len(units))


@dataclass(frozen=True, slots=True)
class GroupMax:
    """Σ over whole entities (or whole predicted clusters) of the largest term(n, N_c, m)."""

    name: str
    term: Term
    by_entity: bool

    def identified(self, units: Pieces) -> bool:
        return self.by_entity == units.by_entity and not np.isnan(units.N).any()

    def count(self, units: Pieces) -> FloatArray:
        if not self.identified(units):
            side = "true entities" if self.by_entity else "predicted clusters"
            raise NotIdentified(f"'{self.name}' is identified only where whole {side} are sampled")
        largest = np.zeros(int(units.group.max()) + 1)
        np.maximum.at(largest, units.group, self.term(units.n, units.N, units.m))
        unit = np.zeros(len(largest), dtype=np.int64)
        unit[units.group] = units.unit
        return np.bincount(unit, weights=largest, minlength=len(units))


@dataclass(frozen=True, slots=True)
class Unidentified:
    """A quantity that no sample of units identifies, and why."""

    name: str
    reason: str

    def identified(self, units: Pieces) -> bool:
        return False

    def count(self, units: Pieces) -> FloatArray:
        raise NotIdentified(f"'{self.name}' is not identified: {self.reason}")


@dataclass(frozen=True, slots=True)
class Known:
    """A total fixed by the prediction, entering a metric as a constant."""

    column: ClusterSum

    @property
    def name(self) -> str:
        return f"known {self.column.name}"


def pairs(x: FloatArray) -> FloatArray:
    """C2(x) = x (x - 1) / 2."""
    return x * (x - 1) / 2


def _exact(n: FloatArray, N: FloatArray, m: FloatArray) -> FloatArray:
    return np.where(np.isnan(N), np.nan, ((n == N) & (n == m)).astype(float))


RECORDS = ClusterSum("records", lambda m: np.ones_like(m))
PREDICTED_LINKS = ClusterSum("predicted_links", lambda m: (m - 1) / 2)
PREDICTED_CLUSTERS = ClusterSum("predicted_clusters", lambda m: 1 / m)
N_LOG_M = ClusterSum("n_log_m", np.log)
ENTITIES = PieceSum("entities", lambda n, N, m: n / N)
TRUE_LINKS = PieceSum("true_links", lambda n, N, m: n * (N - 1) / 2)
COMMON_LINKS = PieceSum("common_links", lambda n, N, m: pairs(n))
PIECES = PieceSum("pieces", lambda n, N, m: np.ones_like(n))
EXACT = PieceSum("exact", _exact)
B3_PRECISION = PieceSum("b3_precision", lambda n, N, m: n**2 / m)
B3_RECALL = PieceSum("b3_recall", lambda n, N, m: n**2 / N)
B3_PRECISION_MEAN = PieceSum("b3_precision_mean", lambda n, N, m: n**2 / (m * N))
B3_RECALL_MEAN = PieceSum("b3_recall_mean", lambda n, N, m: n**2 / N**2)
N_LOG_N = PieceSum("n_log_n", lambda n, N, m: n * np.log(n))
N_LOG_SIZE = PieceSum("n_log_size", lambda n, N, m: n * np.log(N))
TRUE_SINGLETONS = PieceSum("true_singletons", lambda n, N, m: np.where(N > 1, 0.0, n / N))
LARGEST_PIECE = GroupMax("largest_piece", lambda n, N, m: n, True)
LARGEST_PIECE_PREDICTED = GroupMax("largest_piece_predicted", lambda n, N, m: n, False)
CLOSEST = GroupMax("closest_cluster", lambda n, N, m: n / (N + m - n), True)
CLOSEST_PREDICTED = GroupMax("closest_entity", lambda n, N, m: n / (N + m - n), False)
BEST_MATCHING = Unidentified(
    "best_matching",
    "the best one-to-one matching of entities and predicted "
    "clusters is a question about all of them together, which a sample does not answer",
)

COLUMNS: tuple[Column, ...] = tuple(
    column for column in vars().values() if isinstance(column, PieceSum | ClusterSum | GroupMax)
)
"""Every column above that some sample identifies, in this order."""
