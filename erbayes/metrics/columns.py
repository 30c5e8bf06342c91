"""Columns: quantities counted on units, as sums over their pieces.

The sum of a column over all units of the population is a total. In formulas, a piece has n records. Its
entity has N_c records, and its predicted cluster m.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import cached_property
from typing import Any, Protocol, SupportsIndex

import numpy as np
import pandas as pd

from .._internal.arrays import BoolArray, FloatArray, IntArray
from .._internal.errors import DataError, NotIdentified


class Links(Enum):
    """The meanings of "links of a domain", and the links between domains."""

    SHARED = "shared"
    """A link counts half for each of its two records, so that domains add up to all links (the default)."""
    INSIDE = "inside"
    """Both records must be in the domain. Entities and clusters end at its border."""
    ACROSS = "across"
    """The records must be in different domains, such as two sources; all have one result."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The records that have some values of a variable."""

    variable: str
    values: tuple[Hashable, ...]
    rest: bool = False

    def __str__(self) -> str:
        return f"{'not ' if self.rest else ''}{' or '.join(map(str, self.values))}"


@dataclass(frozen=True, eq=False)
class Pieces:
    """Pieces of units, sorted by unit and by group, on which columns are counted.

    Attributes
    ----------
    ids : Index, (u,), or None
        Id of each unit; None for pseudo-units, which are no units of the population.
    unit, group : int arrays, (p,)
        Unit of each piece, and the complete cluster that the piece belongs to: an entity, or a predicted
        cluster if those were sampled.
    n, N, m : float arrays, (p,)
        Records in the piece, in its entity (NaN if not known), in its predicted cluster.
    by_entity : bool
        True if units are made of complete entities, False if of complete predicted clusters.
    counted : float array, (p,), or None
        Records of each piece that are counted; None if all n are.
    """

    ids: pd.Index | None
    unit: IntArray
    group: IntArray
    n: FloatArray
    N: FloatArray
    m: FloatArray
    by_entity: bool = field(default=True, kw_only=True)
    counted: FloatArray | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return int(self.unit[-1]) + 1 if self.ids is None else len(self.ids)

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @cached_property
    def size(self) -> FloatArray:
        """Records of each unit, (u,)."""
        records = self.n if self.counted is None else self.counted
        return np.bincount(self.unit, weights=records, minlength=len(self))

    @cached_property
    def _values(self) -> dict[Column, FloatArray]:
        return {}

    def column(self, column: Column) -> FloatArray:
        """Values of a column on each unit, (u,), counted once; NotIdentified if these units have none."""
        if column not in self._values:
            self._values[column] = column.count(self)
        return self._values[column]

    def part(self, domain: Domain, links: Links) -> Pieces:
        """Return the same units with the records of a domain alone; pseudo-units are in every domain."""
        return self


class Column(Protocol):
    """A quantity counted on each unit. Its sum over all units of the population is a total."""

    @property
    def name(self) -> str: ...

    def __hash__(self) -> int: ...

    def identified(self, units: Pieces) -> bool:
        """Return whether these units have all that the column needs."""

    def count(self, units: Pieces) -> FloatArray:
        """Return the quantity of each unit, (units,)."""


Term = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]


def _differs_by_size(term: Term, n: FloatArray, m: FloatArray) -> BoolArray:
    """Return whether the term of each piece differs between sizes of its entity, (p,)."""
    with np.errstate(all="ignore"):
        return np.asarray(np.ptp([term(n, N, m) for N in (n, n + 1, n + 2, 10 * n, n + 1e6)], axis=0) > 0)


class _ByName:
    """A column that is pickled by its name if it is one of `COLUMNS`, so that it equals itself elsewhere."""

    __slots__ = ()
    name: str

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        named = _NAMED.get(self.name) is self
        return (_find_column, (self.name,)) if named else super().__reduce_ex__(protocol)


def _find_column(name: str) -> Any:
    return _NAMED[name]


@dataclass(frozen=True, slots=True)
class PieceSum(_ByName):
    """A column that sums a term over the pieces of each unit: Σ term(n, N_c, m).

    If only r of the n records of a piece count, it adds (r/n) term(n, N_c, m).

    Parameters
    ----------
    name : str
        Columns with different terms need different names.
    term : callable (n, N_c, m) -> float array

    Examples
    --------
    The records of each unit in pieces of two or more:

    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "x"})
    >>> PieceSum("together", lambda n, N, m: np.where(n > 1, n, 0.0)).count(units)
    array([2.])
    """

    name: str
    term: Term

    def identified(self, units: Pieces) -> bool:
        return not np.isnan(self._compute_terms(units)).any()

    def _compute_terms(self, units: Pieces) -> FloatArray:
        """Return the terms of the pieces, NaN for those that need an unknown N."""
        terms = self.term(units.n, units.N, units.m)
        unknown = np.isnan(units.N)
        if not unknown.any():
            return terms
        # N > 1 is False if N is NaN, and would count an unknown size as a small one: several sizes are tried
        same = np.ones(len(terms), dtype=bool)
        same[unknown] = ~_differs_by_size(self.term, units.n[unknown], units.m[unknown])
        return np.where(same, terms, np.nan)

    def count(self, units: Pieces) -> FloatArray:
        terms = self._compute_terms(units)
        if np.isnan(terms).any():
            what = "needs the full size of every true entity that the sampled predicted clusters touch"
            raise NotIdentified(f"'{self.name}' {what}")
        if units.counted is not None:
            terms = terms * (units.counted / units.n)
        return np.bincount(units.unit, weights=terms, minlength=len(units))


@dataclass(frozen=True, slots=True)
class ClusterSum(_ByName):
    """A column that sums n φ(m) over the pieces of each unit. The prediction fixes its total.

    Parameters
    ----------
    name : str
    phi : callable m -> float array
        Vectorised: the share of one record in a quantity of its predicted cluster, which has m records.

    Examples
    --------
    The predicted clusters of each unit; each of m records counts 1/m per record:

    >>> import erbayes as eb
    >>> units = eb.measure({1: "a", 2: "a", 3: "b"}, {1: "x", 2: "y", 3: "x"})
    >>> ClusterSum("clusters", lambda m: 1 / m).count(units)
    array([1.5, 0.5])
    """

    name: str
    phi: Callable[[FloatArray], FloatArray]

    def identified(self, units: Pieces) -> bool:
        return True

    def count(self, units: Pieces) -> FloatArray:
        records = units.n if units.counted is None else units.counted
        return np.bincount(units.unit, weights=records * self.phi(units.m), minlength=len(units))


@dataclass(frozen=True, slots=True)
class GroupMax(_ByName):
    """A column that sums the largest term(n, N_c, m) of each entity, or predicted cluster, in a unit."""

    name: str
    term: Term
    by_entity: bool

    def identified(self, units: Pieces) -> bool:
        if self.by_entity != units.by_entity or np.isnan(units.N).any():
            return False
        size = units.N if self.by_entity else units.m
        return bool((np.bincount(units.group, units.n)[units.group] == size).all())  # no piece is missing

    def count(self, units: Pieces) -> FloatArray:
        if not self.identified(units):
            side = "true entities" if self.by_entity else "predicted clusters"
            raise NotIdentified(f"'{self.name}' is identified only if whole {side} are sampled")
        largest = np.zeros(int(units.group.max()) + 1)
        np.maximum.at(largest, units.group, self.term(units.n, units.N, units.m))
        if units.counted is not None:  # by the share of the records that count
            whole = np.bincount(units.group, units.n)
            largest *= np.bincount(units.group, units.counted) / np.where(whole > 0, whole, 1)
        unit = np.zeros(len(largest), dtype=np.int64)
        unit[units.group] = units.unit
        return np.bincount(unit, weights=largest, minlength=len(units))


@dataclass(frozen=True, slots=True, eq=False)
class OfUnits:
    """A column of values of your own for each unit, a Series indexed by ids of units, such as its cost."""

    name: str
    values: pd.Series

    def identified(self, units: Pieces) -> bool:
        return units.ids is not None and bool(units.ids.isin(self.values.index).all())

    def count(self, units: Pieces) -> FloatArray:
        if units.ids is None or not self.identified(units) or units.counted is not None:
            what = "has values of whole labelled units alone, and not of all of these"
            raise NotIdentified(f"'{self.name}' {what}")
        return self.values.loc[units.ids].to_numpy(dtype=float)


@dataclass(frozen=True, slots=True)
class Unidentified:
    """A quantity that no sample of units identifies, with the `reason`."""

    name: str
    reason: str

    def identified(self, units: Pieces) -> bool:
        return False

    def count(self, units: Pieces) -> FloatArray:
        raise NotIdentified(f"'{self.name}' is not identified: {self.reason}")


@dataclass(frozen=True, slots=True)
class Known:
    """A total that the prediction fixes. It enters a metric as a constant."""

    column: ClusterSum | InDomain
    everyone: bool = False

    @property
    def name(self) -> str:
        return f"known {self.column.name}{' of everyone' if self.everyone else ''}"


@dataclass(frozen=True, slots=True)
class InDomain:
    """A column that counts another one on the records of a domain, by `links`, on complete units."""

    column: Column
    domain: Domain
    links: Links = Links.SHARED
    name: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.column, OfUnits):
            raise NotIdentified(f"'{self.column.name}' has values of whole units, and no part in a domain")
        if self.links is Links.ACROSS:
            raise DataError(f"links across {self.domain.variable} are those of all its domains, not of one")
        inside = "inside" if self.links is Links.INSIDE else "in"
        name = f"{self.column.name} {inside} {self.domain.variable} {self.domain}"
        object.__setattr__(self, "name", name)

    def identified(self, units: Pieces) -> bool:
        return self.column.identified(units.part(self.domain, self.links))

    def count(self, units: Pieces) -> FloatArray:
        part = units.part(self.domain, self.links)
        return self.column.count(part) if len(part.n) else np.zeros(len(units))


@dataclass(frozen=True, slots=True)
class Between:
    """Links between different groups of several, counted from both; within one group if two agree."""

    column: Column
    groups: tuple[Domain, ...]
    name: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if self.column not in (COMMON_LINKS, TRUE_LINKS, PREDICTED_LINKS):
            what = "counts no links between groups, as pairwise-precision and pairwise-recall have"
            raise NotIdentified(f"'{self.column.name}' {what}")
        name = f"{self.column.name} of {self.groups[0].variable} {' with '.join(map(str, self.groups))}"
        object.__setattr__(self, "name", name)

    def identified(self, units: Pieces) -> bool:
        return InDomain(self.column, self.groups[0], Links.INSIDE).identified(units)

    def count(self, units: Pieces) -> FloatArray:
        first, *others = self.groups
        both = Domain(first.variable, tuple(value for group in self.groups for value in group.values))
        inside = [InDomain(self.column, domain, Links.INSIDE) for domain in (both, *self.groups)]
        if others == [first] or units.part(both, Links.INSIDE) is units:  # pseudo-units: all of them
            return inside[1].count(units)
        union, *single = (column.count(units) for column in inside)
        return np.asarray(union - sum(single))  # the rest of its links are within one of the groups


def whole_column(column: Column) -> Column:
    """Return the column that one of a domain counts on all records."""
    return column.column if isinstance(column, InDomain | Between) else column


def is_of_entities(column: Column | Known) -> bool:
    """Return whether sampled entities identify a column."""
    return not isinstance(column, Unidentified) and getattr(column, "by_entity", True)


def depends_on_true_size(column: Column | Known) -> bool:
    """Return whether a total differs between truths that join the same pieces to entities in other ways.

    A matcher that caps its clusters cuts large entities into pieces that look like entities of their own,
    and a sample that meets none of them takes one such truth for another.
    """
    if isinstance(column, Known):
        return False
    column = whole_column(column)
    if isinstance(column, PieceSum):
        n, m = np.array([1.0, 1.0, 2.0, 3.0]), np.array([1.0, 4.0, 5.0, 3.0])
        return bool(_differs_by_size(column.term, n, m).any())
    return not isinstance(column, ClusterSum)


def pairs(x: FloatArray) -> FloatArray:
    """Return the number of pairs of x records, x (x - 1) / 2."""
    return x * (x - 1) / 2


RECORDS = ClusterSum("records", lambda m: np.ones_like(m))
PREDICTED_LINKS = ClusterSum("predicted_links", lambda m: (m - 1) / 2)
PREDICTED_CLUSTERS = ClusterSum("predicted_clusters", lambda m: 1 / m)
N_LOG_M = ClusterSum("n_log_m", np.log)
ENTITIES = PieceSum("entities", lambda n, N, m: n / N)
TRUE_LINKS = PieceSum("true_links", lambda n, N, m: n * (N - 1) / 2)
COMMON_LINKS = PieceSum("common_links", lambda n, N, m: pairs(n))
PIECES = PieceSum("pieces", lambda n, N, m: np.ones_like(n))
EXACT = PieceSum("exact", lambda n, N, m: np.where(np.isnan(N), np.nan, 1.0 * ((n == N) & (n == m))))
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
    "the best one-to-one matching of entities and predicted clusters is a question about all of them "
    "together, which a sample does not answer",
)

COLUMNS: tuple[Column, ...] = tuple(
    column for column in vars().values() if isinstance(column, PieceSum | ClusterSum | GroupMax)
)
"""The columns above that a sample can identify, in this order."""
_NAMED: dict[str, Any] = {column.name: column for column in COLUMNS}
