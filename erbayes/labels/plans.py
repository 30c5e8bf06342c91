"""Plans: ways of drawing records of a prediction. Each makes the design of its labelled draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from .._internal.arrays import FloatArray, IntArray, locate
from .._internal.errors import DataError, head, need, refuse_cases
from ..design import (
    ByPredictedSize,
    KnownInclusion,
    KnownSelection,
    Pooled,
    UniformClusters,
    UniformRecords,
    WeightedRecords,
)
from ..design.contract import Design
from ..metrics.columns import PREDICTED_LINKS, RECORDS, ClusterSum
from ..units.clustering import Clustering
from ..units.units import KnownTotals
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
    Multipurpose : identifies all metrics.

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
class Multipurpose(_WithReplacement):
    """Plan: records with chances that suit every metric, with replacement. It is the default of `draw`.

    A record in a predicted cluster of m records has the chance p ∝ √(1 + (x² + y²)/2), where x² and y² are
    (m - 1)² and m⁻² over their means over all records. If nothing is known of errors, a record's effect on
    metrics of records grows as 1, on those of links as m - 1, and on those of whole clusters as 1/m. With
    weights ½, ¼ and ¼ the sum of their variances, each over that under uniform records, is then least.

    No record has less than 1/√2 of its uniform chance, so that the variance of one draw (Hansen and Hurwitz
    1943) is at most √2 times that of a uniform record, for every metric and wherever errors are. Without
    predicted links records are uniform.

    References
    ----------
    Isaki and Fuller (1982), Journal of the American Statistical Association 77, 89-96 (anticipated
    variances); Holmberg (2002), Statistics in Transition 5, 969-994 (several of them).

    Examples
    --------
    >>> from erbayes.labels import draw
    >>> drawn = draw({1: "a", 2: "a", 3: "a", 4: "b"}, n=6, seed=1)
    >>> drawn.plan, drawn.table["probability"].round(2).unique()
    (Multipurpose(), array([0.24, 0.28]))
    """

    def column(self, known: KnownTotals) -> ClusterSum:
        links = known.total(ClusterSum("links", lambda m: (m - 1) ** 2)) / known.total(RECORDS)
        clusters = known.total(ClusterSum("clusters", lambda m: m**-2.0)) / known.total(RECORDS)
        # without predicted links, m - 1 is 0 for all records
        links = links or 1.0
        return ClusterSum(
            "multipurpose", lambda m: np.sqrt(1 + ((m - 1) ** 2 / links + m**-2.0 / clusters) / 2)
        )


def say_expected(plan: PlanBySize, known: KnownTotals, n: int) -> str:
    """Return how many of n draws are expected in clusters of which sizes, next to those of uniform records.

    >>> say_expected(Records(), KnownTotals(np.array([1.0, 2.0, 9.0]), np.array([20.0, 10.0, 2.0])), 90)
    '31 single records, 31 of clusters of 2 to 8, 28 of 9 or more, with 88% of the predicted links'
    """
    records, links = known.count * known.size, known.count * known.size * (known.size - 1)
    half = known.size[np.searchsorted(np.cumsum(links), links.sum() / 2)]
    part = np.where(known.size == 1, 0, np.where(known.size < half, 1, 2))

    def expect(plan: PlanBySize) -> IntArray:
        p = records * chances(plan, known)(pd.DataFrame({"size": known.size}))
        # ends are rounded and not parts, so that these add to n
        return np.diff(np.rint(n * np.cumsum(np.bincount(part, p, 3))), prepend=0).astype(np.int64)

    names = ["single records", "of clusters of 2" + f" to {half - 1:,.0f}" * bool(half > 3)]
    if links.any():
        share = links[part == 2].sum() / links.sum()
        clusters = "clusters of " * bool(half == 2)
        names += [f"of {clusters}{half:,.0f} or more, with {share:.0%} of the predicted links"]
    there = np.flatnonzero(np.bincount(part))
    said = ", ".join(f"{expect(plan)[i]:,} {names[i]}" for i in there)
    uniform = ", ".join(f"{k:,}" for k in expect(Records())[there])
    return said if isinstance(plan, Records) else f"{said} (uniform records: {uniform})"


@dataclass(frozen=True, slots=True)
class GivenProbabilities:
    """Plan: records with selection probabilities of your own, with replacement.

    The value of each record is its selection probability, up to a factor: `draw(prediction,
    GivenProbabilities(), n=n, seed=seed, values=probabilities)`. All must be above 0, since estimates exclude
    entities that cannot be drawn.

    Examples
    --------
    >>> from erbayes.labels import draw
    >>> chances = {1: 1, 2: 1, 3: 2}
    >>> drawn = draw({1: "a", 2: "a", 3: "b"}, GivenProbabilities(), n=2, seed=1, values=chances)
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


def _allocate_draws(n: int, names: Any, records: FloatArray) -> IntArray:
    """Return the number of draws in each stratum, (H,), in proportion to its records, but two or more."""
    share = records / records.sum() * n
    # fewer than two draws of a stratum have no variance
    draws = np.maximum(np.floor(share).astype(np.int64), 2)
    if draws.size * 2 > n:
        raise DataError(
            f"{n} draws do not give each of {len(names)} strata two draws, such as {head(names)}: draw more, "
            "or merge strata"
        )
    while (left := n - draws.sum()) != 0:
        gap = share - draws if left > 0 else np.where(draws > 2, draws - share, -np.inf)
        draws[gap.argmax()] += np.sign(left)
    return draws


@dataclass(frozen=True, slots=True)
class Strata:
    """Plan: uniform records in strata, with replacement, independently in each stratum.

    The value of each record is its stratum: `draw(prediction, Strata(), n=n, seed=seed, values=strata)`.
    Draws are proportional to the records of strata, but at least two. An entity may have records in several
    strata, and counts once (see `erbayes.design.Pooled`).

    See Also
    --------
    GivenProbabilities : draws records of some strata more often than others.

    Examples
    --------
    >>> from erbayes.labels import draw
    >>> prediction = {i: i // 4 for i in range(100)}
    >>> source = {i: "web" if i < 40 else "shop" for i in range(100)}
    >>> drawn = draw(prediction, Strata(), n=10, seed=1, values=source)
    >>> drawn.table["stratum"].value_counts().to_dict()
    {'shop': 6, 'web': 4}
    """

    def draw(self, source: Source, n: int, seed: int) -> pd.DataFrame:
        counts = ordered_counts(source, seed)
        codes, names = pd.factorize(need_values(counts, self), sort=True)
        records = np.bincount(codes, counts["records"].to_numpy(dtype=float))
        draws = _allocate_draws(n, names, records)

        def chance(h: int, rows: pd.DataFrame) -> FloatArray:
            return np.where(need_values(rows, self) == names[h], 1 / records[h], 0.0)

        # strata are independent, since each has a stream of random numbers of its own
        points = [np.random.default_rng([seed, h]).random(k) for h, k in enumerate(draws)]
        lines = [Line(partial(chance, h), of_stratum) for h, of_stratum in enumerate(points)]
        draws_of = at_points(source, counts, lines, seed)
        tables = [rows.assign(stratum=name) for name, rows in zip(names, draws_of, strict=True)]
        return pd.concat(tables).rename(columns={"chance": "probability"})[[*COLUMNS, "stratum"]]

    def design(self, drawn: LabelledDraws) -> Design:
        values = need_labelled_values(drawn, self, "stratum")
        stratum, parts = np.array([str(value) for value in values]), []
        for h, draws in drawn.table.assign(unit=drawn.units).groupby("stratum", sort=False):
            # a draw's probability is 1 over the stratum's records, so that no source is read again
            of_record = np.where(stratum == str(h), float(draws["probability"].iloc[0]), 0.0)
            of_entity = np.bincount(drawn.labels.codes, of_record)
            parts.append(KnownSelection(pd.Series(of_entity, drawn.labels.clusters), pd.Index(draws["unit"])))
        return Pooled(parts)


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
        if self.of is not None and (isinstance(self.of, type) or not isinstance(self.of, PlanBySize)):
            must = "a plan whose chances depend on predicted size, such as LinkEnds()"
            raise DataError(f"of must be {must}, not {self.of!r}")

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
    "multipurpose": Multipurpose,
    "uniform-records": Records,
    "predicted-links": LinkEnds,
    "given-chances": GivenProbabilities,
    "stratified": Strata,
    "predicted-clusters": PredictedClusters,
}
"""Plans by the names that files and the command line have for them."""
WRITTEN = PLANS | {"new-records": NewRecords}
"""Plans that a folder may have. That of a top-up is none of `PLANS`, since nobody chooses it alone."""
RETIRED = ("mixture", "root-size", "poisson", "pps")
"""Plans of older folders, which are not read."""
FREE = (Records, NewRecords, GivenProbabilities)
"""Plans whose selection probabilities do not depend on predicted clusters."""


def to_plain(plan: Any) -> dict[str, Any]:
    """Return a plan of `WRITTEN` as plain values for JSON, such as {"name": "multipurpose"}."""
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
    rest = {name: value for name, value in values.items() if value is not None}
    name = str(rest.pop("name", ""))
    if name in RETIRED or {"starts", "allocation"} & set(rest):
        raise DataError(
            f"records were drawn by {name!r} of an older erbayes, which this one does not read: estimate "
            "with the erbayes that drew them, whose version drawn.json names, or draw anew"
        )
    cls: Any = WRITTEN.get(name)
    if cls is None or not set(rest) <= {f.name for f in fields(cls)}:
        raise DataError(f"no plan of erbayes.labels is written as {dict(values)!r}")
    return cls(**{k: from_plain(v) if isinstance(v, Mapping) and "name" in v else v for k, v in rest.items()})
