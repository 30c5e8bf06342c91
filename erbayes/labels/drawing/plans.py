"""Plans: ways of drawing records of a prediction. Each makes the design of its labelled draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from ..._internal.arrays import FloatArray, IntArray
from ..._internal.errors import DataError, head, need, number, refuse_cases, whole
from ..._internal.tables import locate
from ...design import (
    ByPredictedSize,
    KnownInclusion,
    KnownSelection,
    Pooled,
    UniformClusters,
    UniformRecords,
    WeightedRecords,
)
from ...design.contract import Design
from ...metrics.columns import PREDICTED_LINKS, RECORDS, ClusterSum
from ...units.clustering import Clustering
from ...units.units import KnownTotals
from .source import (
    Chance,
    Line,
    Source,
    at_equal_distances,
    at_points,
    containing,
    first_in_order,
    in_order,
    keys_of,
    match_values,
    ordered_counts,
)

COLUMNS = ["record", "cluster", "size", "probability"]
"""Columns of every table of draws."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelledDraws:
    """The draws of a plan with the labels of their records, of which the plan makes a design."""

    table: pd.DataFrame
    known: KnownTotals
    n: int
    labels: Clustering
    values: pd.Series | None
    kept: float = 1.0

    @property
    def units(self) -> pd.Index:
        """Return the entity of each draw, (n,)."""
        records = pd.Index(self.table["record"])
        position = locate(self.labels.records, records, "drawn records have no label")
        return self.labels.clusters[self.labels.codes[position]]


class Plan(Protocol):
    """A way of drawing records of a prediction."""

    def draw(self, source: Source, n: int, seed: int) -> pd.DataFrame:
        """Draw n records in any order, which `erbayes.labels.draw` shuffles.

        It does not if draws are independent and identically distributed, as `independent` of the class says.
        """

    def design(self, drawn: LabelledDraws) -> Design:
        """Return the design of the labelled draws."""


@runtime_checkable
class PlanBySize(Protocol):
    """A plan whose selection probability of a record depends on the size of its predicted cluster alone."""

    def column(self, known: KnownTotals) -> ClusterSum:
        """Return the column whose φ is the selection probability of a record, up to a factor."""


class _WithReplacement:
    """Draws with replacement by a column of the prediction."""

    __slots__ = ()

    independent: ClassVar[bool] = True

    def column(self, known: KnownTotals) -> ClusterSum:
        raise NotImplementedError

    def draw(self, source: Source, n: int, seed: int) -> pd.DataFrame:
        """Draw a size, then a cluster of this size, then a record of this cluster."""
        known = source.known
        p = chances(self, known)(pd.DataFrame({"size": known.size}))
        of_size, of_cluster, of_record = np.random.default_rng(seed).random((n, 3)).T
        ends = np.cumsum(known.count * known.size * p)
        at = containing(ends, of_size * ends[-1])
        draws = pd.DataFrame({"size": known.size[at].astype(np.int64), "probability": p[at]})
        draws["place"] = np.floor(of_cluster * known.count[at])
        draws["within"] = np.floor(of_record * draws["size"]).astype(np.int64)
        # places become clusters in the order in which draws meet them, the first by key being the first, so
        # that a source returns few clusters of each size
        met = draws[["size", "place"]].drop_duplicates()
        met = met.assign(rank=met.groupby("size").cumcount())
        number_of_size = dict(zip(*np.unique(met["size"], return_counts=True), strict=True))
        clusters = first_in_order(source.of_clusters(), number_of_size, seed)[["size", "cluster"]]
        clusters = clusters.assign(rank=clusters.groupby("size").cumcount())
        draws = draws.merge(met, how="left").merge(clusters, how="left")
        members = _order_members(source, draws["cluster"], seed)
        members = members.assign(within=members.groupby("cluster").cumcount())
        return draws.merge(members, how="left", on=["cluster", "within"])[COLUMNS]

    def design(self, drawn: LabelledDraws) -> Design:
        return ByPredictedSize(self.column(drawn.known), drawn.units, drawn.known)


def _order_members(source: Source, clusters: pd.Series, seed: int) -> pd.DataFrame:
    """Return the records of clusters in the order of their keys."""
    members = source.members(pd.Index(clusters).unique())
    return in_order(members.assign(key=keys_of(members["record"], seed)))


def chances(plan: PlanBySize, known: KnownTotals) -> Chance:
    """Return the selection probability of each record, by the size of its predicted cluster."""
    column = plan.column(known)
    total = need_positive_total(column, known)
    return lambda rows: np.asarray(column.phi(rows["size"].to_numpy(dtype=float)) / total)


def need_positive_total(column: ClusterSum, known: KnownTotals) -> float:
    """Return the known total of a column of selection probabilities, and refuse one of 0."""
    total = known.total(column)
    if not total > 0:
        raise DataError(
            f"no record has a chance to be drawn: the total of '{column.name}' is 0 in this prediction, "
            "as if it had no links; draw uniform records instead"
        )
    return total


@dataclass(frozen=True, slots=True)
class Records(_WithReplacement):
    """Plan: uniform records, with replacement. All metrics are identified.

    Examples
    --------
    >>> from erbayes.labels import draw
    >>> drawn = draw({1: "a", 2: "a", 3: "b"}, Records(), n=2, seed=1)
    >>> drawn.table[["record", "size"]].shape
    (2, 2)
    """

    def column(self, known: KnownTotals) -> ClusterSum:
        return RECORDS

    def design(self, drawn: LabelledDraws) -> Design:
        return UniformRecords(drawn.units, records=int(drawn.known.total(RECORDS)))


@dataclass(frozen=True, slots=True)
class NewRecords:
    """Plan: uniform records among the new ones, whose value is 1 and not 0, with replacement.

    It has no design of its own, since entities without a new record cannot be drawn: `erbayes.top_up`
    makes one of these draws and those from the older release.
    """

    independent: ClassVar[bool] = True

    def draw(self, source: Source, n: int, seed: int) -> pd.DataFrame:
        return _draw_by_value(self, source, n, seed)[COLUMNS]

    def design(self, drawn: LabelledDraws) -> Design:
        raise DataError(
            "these draws are of new records alone, and tell nothing without those that they top up: "
            "erbayes.top_up makes one design of both, and so does erbayes estimate FOLDER"
        )


@dataclass(frozen=True, slots=True)
class LinkEnds(_WithReplacement):
    """Plan: ends of uniformly drawn predicted links, with replacement: p_i ∝ m_i - 1.

    Pairwise precision is then a plain mean of numbers in [0, 1], and needs several times fewer labels than
    under uniform records. Recall is not identified, since records of predicted singletons are never drawn.

    See Also
    --------
    Mixture : identifies precision and recall.

    Examples
    --------
    >>> from erbayes.labels import draw
    >>> drawn = draw({1: "a", 2: "a", 3: "b"}, LinkEnds(), n=4, seed=1)
    >>> set(drawn.table["cluster"])
    {'a'}
    """

    def column(self, known: KnownTotals) -> ClusterSum:
        return PREDICTED_LINKS


@dataclass(frozen=True, slots=True)
class RootSize(_WithReplacement):
    """Plan: records with selection probability p_i ∝ √m_i, with replacement.

    It is a safe choice for precision and recall.

    Examples
    --------
    >>> from erbayes.labels import draw
    >>> drawn = draw({1: "a", 2: "a", 3: "b"}, RootSize(), n=4, seed=1)
    >>> drawn.table["probability"].round(3).unique()
    array([0.369, 0.261])
    """

    def column(self, known: KnownTotals) -> ClusterSum:
        return ClusterSum("root_size", np.sqrt)


@dataclass(frozen=True, slots=True)
class Mixture(_WithReplacement):
    """Plan: uniform records with share α, otherwise another plan, with replacement: p_i = α/N + (1 - α) q_i.

    With the defaults, intervals of pairwise precision are half to seven tenths as long as those of as many
    uniform records, and of recall seven to nine tenths; those of B-cubed are up to 1.8 times as long, and of
    cluster metrics about twice, since small entities are seldom drawn. No size model fits the draws.

    Parameters
    ----------
    alpha : float in (0, 1)
        Share of uniform records. Weights are then at most 1/α times those of uniform records.
    of : plan by size
        The other plan, with selection probabilities q_i. By default `LinkEnds()`.

    Examples
    --------
    >>> from erbayes.labels import draw
    >>> drawn = draw({1: "a", 2: "a", 3: "b"}, Mixture(0.3), n=4, seed=1)
    >>> drawn.table["probability"].round(3).unique()
    array([0.45, 0.1 ])
    """

    alpha: float = 0.2
    of: Any = field(default_factory=LinkEnds)

    def __post_init__(self) -> None:
        number(self.alpha, "alpha", lambda a: 0 < a < 1, "lie in (0, 1)")
        need_by_size(self.of)

    def column(self, known: KnownTotals) -> ClusterSum:
        other = self.of.column(known)
        uniform = self.alpha / known.total(RECORDS)
        rest = (1 - self.alpha) / need_positive_total(other, known)
        return ClusterSum(f"mixture_{other.name}", lambda m: uniform + rest * other.phi(m))


def need_by_size(plan: Any) -> None:
    """Refuse anything but an object of a plan by predicted size alone."""
    if isinstance(plan, type) or not isinstance(plan, PlanBySize):
        raise DataError(
            f"of must be a plan whose chances depend on predicted size, such as LinkEnds(), not {plan!r}"
        )


@dataclass(frozen=True, slots=True)
class GivenProbabilities:
    """Plan: records with selection probabilities of your own, with replacement.

    The value of each record is its selection probability, up to a factor: `draw(prediction,
    GivenProbabilities(), n, seed, values=probabilities)`. All must be above 0, since estimates exclude
    entities that cannot be drawn.

    Examples
    --------
    >>> from erbayes.labels import draw
    >>> drawn = draw({1: "a", 2: "a", 3: "b"}, GivenProbabilities(), 2, 1, values={1: 1, 2: 1, 3: 2})
    >>> drawn.table[["record", "probability"]].drop_duplicates().shape
    (2, 2)
    """

    independent: ClassVar[bool] = True

    def draw(self, source: Source, n: int, seed: int) -> pd.DataFrame:
        return _draw_by_value(self, source, n, seed, _need_chances)[[*COLUMNS, "value"]]

    def design(self, drawn: LabelledDraws) -> Design:
        values = need_labelled_values(drawn, self, "chance")
        first = drawn.table.iloc[0]
        # a draw's probability is its value over the total, so that no source is read again
        total = float(first["value"]) / float(first["probability"])
        return WeightedRecords.of(
            drawn.labels, pd.Index(drawn.table["record"]), values / total, absolute=True
        )


def _draw_by_value(
    plan: Any, source: Source, n: int, seed: int, check: Callable[[Any], FloatArray] = np.asarray
) -> pd.DataFrame:
    """Return n independent draws with probabilities proportional to the values of records, checked."""
    counts = ordered_counts(source, seed)
    total = float(check(need_values(counts, plan)) @ counts["records"].to_numpy())
    points = np.random.default_rng(seed).random(n)
    line = Line(lambda rows: rows["value"].to_numpy(dtype=float) / total, points)
    (rows,) = at_points(source, counts, [line], seed)
    return rows.rename(columns={"chance": "probability"})


def _need_chances(values: Any) -> FloatArray:
    """Return values as numbers, refusing those that are not above 0 and finite."""
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(f"chances must be numbers: {error}") from error
    bad = numbers[~((numbers > 0) & np.isfinite(numbers))]
    then = ": entities without a chance are not estimated"
    refuse_cases(bad, "chances are not above 0 and finite", then, of=len(numbers))
    return numbers


def need_values(rows: pd.DataFrame, plan: Any) -> Any:
    """Return the values of records, refusing a source without them."""
    if "value" not in rows:
        raise DataError(f"{type(plan).__name__} needs a value of every record: draw(..., values=...)")
    return rows["value"].to_numpy()


def need_labelled_values(drawn: LabelledDraws, plan: Any, what: str) -> pd.Series:
    """Return the values of labelled records, in the order of the labels, refusing draws without them."""
    if drawn.values is None:
        raise DataError(
            f"{type(plan).__name__} needs the {what} of every labelled record: "
            "RecordDraws.design(labels, values=...)"
        )
    return match_values(drawn.values, drawn.labels.records, "labelled records")


@dataclass(frozen=True, slots=True)
class Strata:
    """Plan: uniform records in strata, with replacement, independently in each stratum.

    Strata are classes of predicted size, or a value of every record: `draw(prediction, Strata(), n, seed,
    values=strata)`. An entity may have records in several strata. Its weight is 1/Σ_h n_h p_c^(h).

    Parameters
    ----------
    starts : sequence of int, optional
        Least size of each class of predicted size, the first one 1: (1, 2, 5) for singletons, 2 to 4 records,
        and larger clusters. By default strata are values.
    allocation : mapping, stratum -> draws, optional
        Two or more for each stratum, and n in all. A class of size has the text of its start as
        its name. By default draws are proportional to the records of strata, but at least two.

    Examples
    --------
    >>> from erbayes.labels import draw
    >>> prediction = {i: i // 4 if i < 40 else i for i in range(100)}
    >>> drawn = draw(prediction, Strata(starts=(1, 2), allocation={"1": 2, "2": 4}), n=6, seed=1)
    >>> drawn.table["stratum"].value_counts().to_dict()
    {'2': 4, '1': 2}
    """

    starts: Sequence[int] | None = None
    allocation: Mapping[Any, int] | None = None

    def __post_init__(self) -> None:
        if self.starts is not None:
            if isinstance(self.starts, str) or not isinstance(self.starts, Iterable):
                raise DataError(
                    f"starts of classes are a list of sizes such as (1, 2, 5), not {self.starts!r}"
                )
            starts = [whole(s, "starts of classes") for s in self.starts]
            if starts[:1] != [1] or (np.diff(starts) <= 0).any():
                raise DataError(f"starts of classes of size must rise from 1, not be {self.starts!r}")
            object.__setattr__(self, "starts", tuple(starts))

    def draw(self, source: Source, n: int, seed: int) -> pd.DataFrame:
        counts = ordered_counts(source, seed)
        codes, names = pd.factorize(self._find_strata(counts), sort=True)
        records = np.bincount(codes, counts["records"].to_numpy(dtype=float))
        draws = self._allocate_draws(n, names, records)

        def chance(h: int, rows: pd.DataFrame) -> FloatArray:
            return np.where(self._find_strata(rows) == names[h], 1 / records[h], 0.0)

        # strata are independent, since each has a stream of random numbers of its own
        points = [np.random.default_rng([seed, h]).random(k) for h, k in enumerate(draws)]
        lines = [Line(partial(chance, h), of_stratum) for h, of_stratum in enumerate(points)]
        draws_of = at_points(source, counts, lines, seed)
        tables = [rows.assign(stratum=name) for name, rows in zip(names, draws_of, strict=True)]
        return pd.concat(tables).rename(columns={"chance": "probability"})[[*COLUMNS, "stratum"]]

    def _find_strata(self, rows: pd.DataFrame) -> Any:
        """Return the stratum of records, (rows,)."""
        if self.starts is None:
            return need_values(rows, self)
        names = np.array([str(s) for s in self.starts], dtype=object)
        return names[np.searchsorted(self.starts, rows["size"], side="right") - 1]

    def _allocate_draws(self, n: int, names: Any, records: FloatArray) -> IntArray:
        """Return the number of draws in each stratum, (H,), by its records."""
        if self.allocation is not None:
            allocation = {str(h): whole(k, f"draws of stratum {h!r}") for h, k in self.allocation.items()}
            strata = [str(h) for h in names]
            if set(allocation) != set(strata):
                given = head(sorted(allocation), 9)
                raise DataError(f"the allocation must name the strata, {head(strata, 9)}, not {given}")
            if sum(allocation.values()) != n:
                raise DataError(f"the allocation is of {sum(allocation.values())} draws, not of {n}")
            draws = np.array([allocation[h] for h in strata], dtype=np.int64)
        else:
            share = records / records.sum() * n
            # fewer than two draws of a stratum have no variance
            draws = np.maximum(np.floor(share).astype(np.int64), 2)
            while draws.sum() != n and (draws.sum() < n or draws.max() > 2):
                step = 1 if draws.sum() < n else -1
                gap = np.where((step > 0) | (draws > 2), step * (share - draws), -np.inf)
                draws[gap.argmax()] += step
        few = draws < 2
        if few.any() or draws.sum() != n:
            raise DataError(
                f"{n} draws do not give each of {len(names)} strata two draws, such as "
                f"{head(names[few] if few.any() else names)}: draw more, or merge strata"
            )
        return draws

    def design(self, drawn: LabelledDraws) -> Design:
        stratum, units = drawn.table["stratum"].to_numpy(), drawn.units
        return Pooled([self._make_part(drawn, h, units[stratum == h]) for h in pd.unique(stratum)])

    def _make_part(self, drawn: LabelledDraws, stratum: Any, units: pd.Index) -> Design:
        """Return the design of the draws of a stratum, which are of these units."""
        if self.starts is not None:
            starts = [*self.starts, np.inf]
            at = [str(s) for s in starts].index(str(stratum))
            lower, upper = starts[at], starts[at + 1]
            inside = ClusterSum(
                f"records_{lower:g}_{upper:g}", lambda m: np.where((m >= lower) & (m < upper), 1.0, 0.0)
            )
            return ByPredictedSize(inside, units, drawn.known)
        # a draw's probability is 1 over the stratum's records, so that no source is read again
        p = float(drawn.table.loc[drawn.table["stratum"] == stratum, "probability"].iloc[0])
        values = need_labelled_values(drawn, self, "stratum")
        of_record = p * np.array([str(value) == str(stratum) for value in values])
        of_entity = np.bincount(drawn.labels.codes, of_record)
        return KnownSelection(pd.Series(of_entity, drawn.labels.clusters), units)


@dataclass(frozen=True, slots=True)
class PredictedClusters:
    """Plan: predicted clusters, without replacement.

    Units of the estimate are then predicted clusters (`erbayes.measure_predicted`). Precision needs labels
    of their records only. Clusters are in random order, that of the keys of their ids. Points at equal
    distances choose n of them. The table names the first record of each cluster, in the order of keys.

    Parameters
    ----------
    of : plan by size, optional
        The inclusion probability of a cluster is proportional to the sum of the plan's selection
        probabilities over its records: `Records()` for its size, `LinkEnds()` for its links. A cluster whose
        probability would exceed 1 is certain. By default clusters are uniform.

    Examples
    --------
    >>> from erbayes.labels import draw
    >>> prediction = {i: i // 4 if i < 40 else i for i in range(100)}
    >>> drawn = draw(prediction, PredictedClusters(LinkEnds()), n=5, seed=1)
    >>> drawn.table[["size", "probability"]].drop_duplicates().to_numpy().tolist()
    [[4.0, 0.5]]
    """

    of: Any = None

    def __post_init__(self) -> None:
        if self.of is not None:
            need_by_size(self.of)

    def draw(self, source: Source, n: int, seed: int) -> pd.DataFrame:
        known, clusters = source.known, source.of_clusters()
        inclusion = self.compute_inclusion(n, known)
        certain = known.size[inclusion == 1]
        rest = n - int(known.count[inclusion == 1].sum())
        counts = ordered_counts(clusters, seed)

        def of_rows(rows: pd.DataFrame) -> FloatArray:
            return inclusion[np.searchsorted(known.size, rows["size"])]

        def chance(rows: pd.DataFrame) -> FloatArray:
            p = of_rows(rows)
            return np.where(p < 1, p / rest, 0.0)

        parts = []
        if len(certain):
            buckets = counts.loc[counts["size"].isin(certain), "bucket"].unique()
            rows = in_order(clusters.in_buckets(buckets, seed))
            parts.append(rows[rows["size"].isin(certain)])
        if rest:
            parts += at_points(clusters, counts, [Line(chance, at_equal_distances(rest, seed))], seed)
        rows = pd.concat(parts, ignore_index=True)
        members = _order_members(source, rows["cluster"], seed)
        first = members.drop_duplicates("cluster").set_index("cluster")["record"]
        record = first.reindex(rows["cluster"]).to_numpy()
        return rows[["cluster", "size"]].assign(record=record, probability=of_rows(rows))[COLUMNS]

    def compute_inclusion(self, n: int, known: KnownTotals) -> FloatArray:
        """Return the probability of a cluster of each known size to be in the sample, (h,)."""
        weight = np.ones(len(known.size))
        if self.of is not None:
            weight = known.size * self.of.column(known).phi(known.size)
        clusters = int(known.count[weight > 0].sum())
        if n > clusters:
            raise DataError(f"{n} draws without replacement of {clusters} predicted clusters with a chance")
        certain = np.zeros(len(weight), dtype=bool)
        while True:
            rest, total = n - known.count[certain].sum(), known.count[~certain] @ weight[~certain]
            inclusion = np.where(certain, 1.0, rest * weight / total if total > 0 else 0.0)
            # clusters whose probability would pass 1 are certain, which raises that of the others
            more = ~certain & (inclusion >= 1 - 1e-12)
            if not more.any():
                return np.asarray(inclusion)
            certain |= more

    def design(self, drawn: LabelledDraws) -> Design:
        known = drawn.known
        if self.of is None:
            return UniformClusters(int(known.count.sum()), drawn.table["cluster"].tolist())
        inclusion = drawn.kept * self.compute_inclusion(drawn.n, known)
        of_cluster = drawn.kept * drawn.table.set_index("cluster")["probability"]
        never, listed = known.size[inclusion == 0].astype(int).tolist(), of_cluster.index
        squares = float(known.count @ inclusion**2)
        return KnownInclusion(of_cluster, squares=squares, never=never, draws=listed)


PLANS = {
    "uniform-records": Records,
    "predicted-links": LinkEnds,
    "root-size": RootSize,
    "mixture": Mixture,
    "given-chances": GivenProbabilities,
    "stratified": Strata,
    "predicted-clusters": PredictedClusters,
}
"""Plans by the names that files and the command line have for them."""
WRITTEN = PLANS | {"new-records": NewRecords}
"""Plans that a folder may have. That of a top-up is none of `PLANS`, since nobody chooses it alone."""
UNREAD = ("poisson", "pps")
"""Plans of older folders that have no design."""
FREE = (Records, NewRecords, GivenProbabilities)
"""Plans whose selection probabilities do not depend on predicted clusters."""


def to_plain(plan: Any) -> dict[str, Any]:
    """Return a plan of `WRITTEN` as plain values for JSON, such as {"name": "mixture", "alpha": 0.5, ...}."""
    names = {cls: name for name, cls in WRITTEN.items()}
    if type(plan) not in names:
        raise DataError(f"only the plans of erbayes.labels can be written, not {type(plan).__name__}")
    values = {f.name: getattr(plan, f.name) for f in fields(plan)}
    return {"name": names[type(plan)]} | {
        name: to_plain(value) if type(value) in names else value for name, value in values.items()
    }


def from_plain(values: Mapping[str, Any]) -> Any:
    """Return the plan of plain values (see `to_plain`)."""
    need(values, Mapping, "a plan is written as names and values")
    rest = dict(values)
    name = str(rest.pop("name", ""))
    if name in UNREAD:
        raise DataError(
            f"records were drawn by the plan {name!r}, whose chances no design reads: pass "
            "KnownInclusion, with the inclusion probability of each labelled entity, or draw anew"
        )
    cls: Any = WRITTEN.get(name)
    if cls is None or not set(rest) <= {f.name for f in fields(cls)}:
        raise DataError(f"no plan of erbayes.labels is written as {dict(values)!r}")
    return cls(**{k: from_plain(v) if isinstance(v, Mapping) and "name" in v else v for k, v in rest.items()})
