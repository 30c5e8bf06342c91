"""Plans: which records to draw, and the design by which they are estimated from afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from ..arrays import FloatArray
from ..clustering import Clustering
from ..columns import PREDICTED_LINKS, RECORDS, ClusterSum
from ..design import (
    ByPredictedSize,
    Design,
    PoissonRecords,
    SystematicRecords,
    WeightedRecords,
)
from ..errors import DataError, head, need, number
from ..units import KnownTotals
from .places import Chance, at_points, in_order, ordered_counts
from .source import BUCKETS, Source


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """What a plan needs to make a design: its draws, and the labels of their records.

    Attributes
    ----------
    table : DataFrame
        The draws (see `Drawn.table`).
    known : KnownTotals
        Sizes of the prediction that was drawn from.
    n : int
        The number of draws that was asked for.
    labels : Clustering
        True entity of every record of each drawn entity.
    values : Series or None, record -> value
        The values of all labelled records.
    """

    table: pd.DataFrame
    known: KnownTotals
    n: int
    labels: Clustering
    values: pd.Series | None

    @property
    def units(self) -> pd.Index:
        """The entity of each draw, (n,)."""
        records = pd.Index(self.table["record"])
        position = self.labels.records.get_indexer(records)
        lacking = records[position < 0].unique()
        if len(lacking):
            raise DataError(f"{len(lacking)} drawn records have no label: {head(lacking)}")
        return self.labels.clusters[self.labels.codes[position]]


class Plan(Protocol):
    """What to draw."""

    def draw(self, source: Source, n: int, seed: int) -> pd.DataFrame:
        """Draw n records.

        Returns
        -------
        DataFrame
            One row per draw: record, cluster, size, probability, and stratum if there are strata.
        """
        ...

    def design(self, drawn: Labelled) -> Design:
        """Return the design of the labelled draws."""
        ...


@runtime_checkable
class BySize(Protocol):
    """A plan under which the chance of a record depends on the size of its predicted cluster alone."""

    def column(self, known: KnownTotals) -> ClusterSum:
        """Return the column whose φ is the chance of a record, up to a factor."""
        ...


class _WithReplacement:
    """Draws with replacement by a column of the prediction."""

    __slots__ = ()

    def column(self, known: KnownTotals) -> ClusterSum:
        raise NotImplementedError

    def draw(self, source: Source, n: int, seed: int) -> pd.DataFrame:
        chance = chances(self, source.known)
        points = np.random.default_rng(seed).random(n)
        rows = at_points(source, ordered_counts(source, seed), chance, points, seed)
        return rows[["record", "cluster", "size"]].assign(probability=rows["chance"])

    def design(self, drawn: Labelled) -> Design:
        return ByPredictedSize(self.column(drawn.known), drawn.units, drawn.known)


def chances(plan: BySize, known: KnownTotals) -> Chance:
    """Return the chance of each record at one draw, by the size of its predicted cluster.

    Raises
    ------
    DataError
        If no record has a chance, as under `LinkEnds` if all predicted clusters are singletons.
    """
    column = plan.column(known)
    total = known.total(column)
    if not total > 0:
        raise DataError(
            f"no record has a chance to be drawn: the total of '{column.name}' is 0; draw Records() instead"
        )
    return lambda rows: np.asarray(column.phi(rows["size"].to_numpy(dtype=float)) / total)


@dataclass(frozen=True, slots=True)
class Records(_WithReplacement):
    """Plan: uniform records, with replacement. All metrics are identified.

    Examples
    --------
    >>> from erbayes.sampling import draw
    >>> drawn = draw({1: "a", 2: "a", 3: "b"}, Records(), n=2, seed=1)
    >>> drawn.table[["record", "size"]].shape
    (2, 2)
    """

    def column(self, known: KnownTotals) -> ClusterSum:
        return RECORDS


@dataclass(frozen=True, slots=True)
class LinkEnds(_WithReplacement):
    """Plan: ends of uniformly drawn predicted links, with replacement: p_i ∝ m_i - 1.

    Pairwise precision is then a plain mean of numbers in [0, 1], and needs several times fewer labels than
    under uniform records. Recall is not identified, since records of predicted singletons are never drawn.
    `Mixture` identifies both.

    Examples
    --------
    >>> from erbayes.sampling import draw
    >>> drawn = draw({1: "a", 2: "a", 3: "b"}, LinkEnds(), n=4, seed=1)
    >>> set(drawn.table["cluster"])
    {'a'}
    """

    def column(self, known: KnownTotals) -> ClusterSum:
        return PREDICTED_LINKS


@dataclass(frozen=True, slots=True)
class RootSize(_WithReplacement):
    """Plan: records with chance p_i ∝ √m_i, with replacement: a safe choice for precision and recall.

    Examples
    --------
    >>> from erbayes.sampling import draw
    >>> drawn = draw({1: "a", 2: "a", 3: "b"}, RootSize(), n=4, seed=1)
    >>> drawn.table["probability"].round(3).unique()
    array([0.369, 0.261])
    """

    def column(self, known: KnownTotals) -> ClusterSum:
        return ClusterSum("root_size", np.sqrt)


@dataclass(frozen=True, slots=True)
class Mixture(_WithReplacement):
    """Plan: uniform records with share α, otherwise another plan, with replacement: p_i = α/N + (1 - α) q_i.

    Parameters
    ----------
    alpha : float in (0, 1)
        Share of uniform records. Weights are then at most 1/α times those of uniform records.
    of : plan by size
        The other plan, with chances q_i. By default `LinkEnds()`.

    Raises
    ------
    DataError
        If `alpha` is outside (0, 1), or if `of` is no plan by size.

    Examples
    --------
    >>> from erbayes.sampling import draw
    >>> drawn = draw({1: "a", 2: "a", 3: "b"}, Mixture(0.3), n=4, seed=1)
    >>> drawn.table["probability"].round(3).unique()
    array([0.45])
    """

    alpha: float = 0.2
    of: Any = field(default_factory=LinkEnds)

    def __post_init__(self) -> None:
        number(self.alpha, "alpha", lambda a: 0 < a < 1, "lie in (0, 1)")
        need_by_size(self.of, "of")

    def column(self, known: KnownTotals) -> ClusterSum:
        other = self.of.column(known)
        uniform, rest = self.alpha / known.total(RECORDS), (1 - self.alpha) / known.total(other)
        return ClusterSum(f"mixture_{other.name}", lambda m: uniform + rest * other.phi(m))


def need_by_size(plan: Any, argument: str) -> None:
    """Refuse anything but an object of a plan under which the chance depends on predicted size alone."""
    if isinstance(plan, type) or not isinstance(plan, BySize):
        raise DataError(
            f"{argument} must be a plan whose chances depend on predicted size, such as LinkEnds(), "
            f"not {plan!r}"
        )


@dataclass(frozen=True, slots=True)
class GivenChances:
    """Plan: records with chances of your own, with replacement.

    The chance of each record, up to a factor, is its value: `draw(prediction, GivenChances(), n, seed,
    values=chances)`. All must be above 0, since estimates do not cover entities that cannot be drawn.

    Examples
    --------
    >>> from erbayes.sampling import draw
    >>> drawn = draw({1: "a", 2: "a", 3: "b"}, GivenChances(), 2, 1, values={1: 1, 2: 1, 3: 2})
    >>> drawn.table[["record", "probability"]].drop_duplicates().shape
    (2, 2)
    """

    def draw(self, source: Source, n: int, seed: int) -> pd.DataFrame:
        counts = ordered_counts(source, seed)
        p = positive(need_values(counts, self), "chances")
        total = float(p @ counts["records"].to_numpy())

        def chance(rows: pd.DataFrame) -> FloatArray:
            return rows["value"].to_numpy(dtype=float) / total

        points = np.random.default_rng(seed).random(n)
        rows = at_points(source, counts, chance, points, seed)
        return rows[["record", "cluster", "size"]].assign(probability=rows["chance"], value=rows["value"])

    def design(self, drawn: Labelled) -> Design:
        values = need_labelled_values(drawn, self, "chance")
        first = drawn.table.iloc[0]
        total = float(first["value"]) / float(first["probability"])
        return WeightedRecords.of(
            drawn.labels, pd.Index(drawn.table["record"]), values / total, absolute=True
        )


def positive(values: Any, what: str) -> FloatArray:
    """Return values as numbers, refusing those that are not above 0 and finite."""
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} must be numbers: {error}") from error
    bad = ~((numbers > 0) & np.isfinite(numbers))
    if bad.any():
        raise DataError(
            f"{what} must be above 0 and finite; {int(bad.sum())} of them are not, such as "
            f"{head(numbers[bad])}: entities without a chance are not estimated"
        )
    return numbers


def need_values(rows: pd.DataFrame, plan: Any) -> Any:
    """Return the values of records, refusing a source without them."""
    if "value" not in rows:
        raise DataError(f"{type(plan).__name__} needs a value of every record: draw(..., values=...)")
    return rows["value"].to_numpy()


def need_labelled_values(drawn: Labelled, plan: Any, what: str) -> pd.Series:
    """Return the values of labelled records, refusing draws without them."""
    if drawn.values is None:
        raise DataError(
            f"{type(plan).__name__} needs the {what} of every labelled record: "
            "Drawn.design(labels, values=...)"
        )
    return drawn.values


@dataclass(frozen=True, slots=True)
class Poisson:
    """Plan: each record independently, if its permanent random number is below its chance.

    The number of a record is made of its id and the seed, and lies in [0, 1). A record is drawn once if it is
    below π_i = min(1, n p_i), and else never. The number of draws is random, with mean n. A later prediction
    with the same seed draws the same records again, as far as their chances stay.

    Parameters
    ----------
    of : plan by size
        The plan whose chances p_i are used. By default `Records()`.

    Examples
    --------
    >>> from erbayes.sampling import draw
    >>> draw({i: i // 2 for i in range(100)}, Poisson(), n=10, seed=1).table["probability"].unique()
    array([0.1])
    """

    of: Any = field(default_factory=Records)

    def __post_init__(self) -> None:
        need_by_size(self.of, "of")

    def draw(self, source: Source, n: int, seed: int) -> pd.DataFrame:
        known, chance = source.known, chances(self.of, source.known)
        most = min(1.0, n * float(chance(pd.DataFrame({"size": known.size})).max()))
        rows = in_order(source.in_buckets(np.arange(int(np.ceil(most * BUCKETS))), seed))
        inclusion = np.minimum(n * chance(rows), 1.0)
        drawn = rows["key"].to_numpy() / 2.0**64 < inclusion
        return rows.loc[drawn, ["record", "cluster", "size"]].assign(probability=inclusion[drawn])

    def design(self, drawn: Labelled) -> Design:
        return PoissonRecords(self.of.column(drawn.known), drawn.n, drawn.known)


@dataclass(frozen=True, slots=True)
class Systematic:
    """Plan: records without replacement, with probability proportional to a chance (PPS).

    Records are in random order, that of their keys. Points at equal distances from a random start choose n of
    them (Hartley and Rao 1962). The probability of record i to be drawn is exactly n p_i.

    Parameters
    ----------
    of : plan by size
        The plan whose chances p_i are used. By default `RootSize()`.

    Examples
    --------
    >>> from erbayes.sampling import draw
    >>> drawn = draw({i: i // 2 for i in range(100)}, Systematic(Records()), n=10, seed=1)
    >>> drawn.table["record"].is_unique, drawn.table["probability"].unique().tolist()
    (True, [0.1])
    """

    of: Any = field(default_factory=RootSize)

    def __post_init__(self) -> None:
        need_by_size(self.of, "of")

    def draw(self, source: Source, n: int, seed: int) -> pd.DataFrame:
        known, chance = source.known, chances(self.of, source.known)
        inclusion = n * chance(pd.DataFrame({"size": known.size}))
        above = known.size[inclusion > 1 + 1e-12]
        if len(above):
            raise DataError(
                f"{n} draws give records of clusters of {above.min():.0f} records or more a probability "
                "above 1: draw fewer, or draw with replacement"
            )
        points = (np.random.default_rng(seed).random() + np.arange(n)) / n
        rows = at_points(source, ordered_counts(source, seed), chance, points, seed)
        return rows[["record", "cluster", "size"]].assign(probability=np.minimum(n * rows["chance"], 1.0))

    def design(self, drawn: Labelled) -> Design:
        inclusion = drawn.table["probability"].to_numpy()
        return SystematicRecords(self.of.column(drawn.known), drawn.units, inclusion, drawn.known)


PLANS = {
    "uniform-records": Records,
    "predicted-links": LinkEnds,
    "root-size": RootSize,
    "mixture": Mixture,
    "given-chances": GivenChances,
    "poisson": Poisson,
    "pps": Systematic,
}
"""Plans by the names that files and the command line have for them."""


def to_plain(plan: Any) -> dict[str, Any]:
    """Return a plan as plain values, for JSON.

    Raises
    ------
    DataError
        If the plan is none of `PLANS`.

    Examples
    --------
    >>> to_plain(Mixture(0.5))
    {'name': 'mixture', 'alpha': 0.5, 'of': {'name': 'predicted-links'}}
    """
    names = {cls: name for name, cls in PLANS.items()}
    if type(plan) not in names:
        raise DataError(f"only the plans of erbayes.sampling can be written, not {type(plan).__name__}")
    values = {f.name: getattr(plan, f.name) for f in fields(plan)}
    return {"name": names[type(plan)]} | {
        name: to_plain(value) if type(value) in names else value for name, value in values.items()
    }


def from_plain(values: Mapping[str, Any]) -> Any:
    """Return the plan of plain values (see `to_plain`).

    Raises
    ------
    DataError
        If the values are those of no plan.

    Examples
    --------
    >>> from_plain({"name": "mixture", "alpha": 0.5, "of": {"name": "predicted-links"}})
    Mixture(alpha=0.5, of=LinkEnds())
    """
    need(values, Mapping, "a plan is written as names and values")
    rest = dict(values)
    cls: Any = PLANS.get(rest.pop("name", ""))
    if cls is None or not set(rest) <= {f.name for f in fields(cls)}:
        raise DataError(f"no plan of erbayes.sampling is written as {dict(values)!r}")
    return cls(**{k: from_plain(v) if isinstance(v, Mapping) and "name" in v else v for k, v in rest.items()})
