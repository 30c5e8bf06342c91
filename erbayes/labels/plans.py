"""Plans: ways of drawing records of a prediction. Each makes the design of its labelled draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from .. import design as designs
from .._internal.arrays import FloatArray, IntArray, locate
from .._internal.errors import DataError, head, refuse_cases
from ..design.contract import Design, real_numbers
from ..metrics.columns import PREDICTED_LINKS, RECORDS, ClusterSum
from ..units.clustering import Clustering
from ..units.units import KnownTotals
from . import source as sources

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
        position = locate(self.labels.records, pd.Index(self.table["record"]), "drawn records have no label")
        return self.labels.clusters[self.labels.codes[position]]


class Plan(Protocol):
    """A way of drawing records of a prediction."""

    def draw(self, source: sources.Source, n: int, seed: int) -> pd.DataFrame:
        """Draw n records, which `erbayes.labels.draw` shuffles, unless the class says `independent`."""

    def design(self, drawn: LabelledDraws) -> Design:
        """Return the design of the labelled draws."""


@runtime_checkable
class PlanBySize(Protocol):
    """A plan whose selection probability of a record depends on the size of its predicted cluster alone."""

    __slots__ = ()

    def column(self, known: KnownTotals) -> ClusterSum:
        """Return the column whose φ is the selection probability of a record, up to a factor."""


class _WithReplacement(PlanBySize, Protocol):
    """Draws with replacement by a column of the prediction."""

    __slots__ = ()

    independent: ClassVar[bool] = True

    def draw(self, source: sources.Source, n: int, seed: int) -> pd.DataFrame:
        """Draw a size, then a cluster of this size, then a record of this cluster."""
        known = source.known
        p = chances(self, known)(pd.DataFrame({"size": known.size}))
        of_size, of_cluster, of_record = np.random.default_rng(seed).random((n, 3)).T
        ends = np.cumsum(known.count * known.size * p)
        at = sources.containing(ends, of_size * ends[-1])
        draws = pd.DataFrame({"size": known.size[at].astype(np.int64), "probability": p[at]})
        draws["place"] = np.floor(of_cluster * known.count[at])
        draws["within"] = np.floor(of_record * draws["size"]).astype(np.int64)
        # places become clusters in the order in which draws meet them, the first by key being the first, so
        # that a source returns few clusters of each size
        met = draws[["size", "place"]].drop_duplicates()
        number_of_size = met["size"].value_counts(sort=False).to_dict()
        clusters = sources.first_in_order(source.of_clusters(), number_of_size, seed)[["size", "cluster"]]
        met, clusters = (x.assign(rank=x.groupby("size").cumcount()) for x in (met, clusters))
        draws = draws.merge(met, how="left").merge(clusters, how="left")
        members = _order_members(source, draws["cluster"], seed)
        members["within"] = members.groupby("cluster").cumcount()
        return draws.merge(members, how="left", on=["cluster", "within"])[COLUMNS]

    def design(self, drawn: LabelledDraws) -> Design:
        return designs.ByPredictedSize(self.column(drawn.known), drawn.units, drawn.known)


def _order_members(source: sources.Source, clusters: pd.Series, seed: int) -> pd.DataFrame:
    members = source.members(pd.Index(clusters).unique())
    return sources.in_order(members.assign(key=sources.keys_of(members["record"], seed)))


def chances(plan: PlanBySize, known: KnownTotals) -> sources.Chance:
    """Return the selection probability of each record, by the size of its predicted cluster."""
    column = plan.column(known)
    total = need_positive_total(column, known)
    return lambda rows: np.asarray(column.phi(rows["size"].to_numpy(dtype=float)) / total)


def need_positive_total(column: ClusterSum, known: KnownTotals) -> float:
    """Return the known total of a column of selection probabilities, and refuse one of 0."""
    total = known.total(column)
    if not total > 0:
        raise DataError(
            f"no record has a chance to be drawn: the total of '{column.name}' is 0 in this prediction, as "
            "if it had no links; draw uniform records instead"
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
        return designs.UniformRecords(drawn.units, records=int(drawn.known.total(RECORDS)))


@dataclass(frozen=True, slots=True)
class NewRecords:
    """Plan: uniform records among the new ones, whose value is 1 and not 0, with replacement.

    `erbayes.top_up` makes one design of these draws and those from the older release, since entities without
    a new record cannot be drawn.
    """

    independent: ClassVar[bool] = True

    def draw(self, source: sources.Source, n: int, seed: int) -> pd.DataFrame:
        counts = sources.ordered_counts(source, seed)
        return _draw_by_value(source, counts, need_values(counts, self), n, seed)[COLUMNS]

    def design(self, drawn: LabelledDraws) -> Design:
        raise DataError(
            "these draws are of new records alone, and tell nothing without those that they top up: "
            "make one design of both by erbayes.top_up (erbayes estimate FOLDER)"
        )


@dataclass(frozen=True, slots=True)
class LinkEnds(_WithReplacement):
    """Plan: ends of uniformly drawn predicted links, with replacement: p_i ∝ m_i - 1.

    Pairwise precision is then a plain mean of numbers in [0, 1], and needs several times fewer labels than
    under uniform records. Recall is not identified, since records of predicted singletons are never drawn,
    whereas `Multipurpose` identifies all metrics.

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
    weights ½, ¼ and ¼ the sum of their variances, each over that under uniform records, is then least. No
    record has less than 1/√2 of its uniform chance, so that the variance of one draw (Hansen and Hurwitz
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
        return ClusterSum("multipurpose", partial(_suit_all, links=links or 1.0, clusters=clusters))


def _suit_all(m: FloatArray, links: float, clusters: float) -> FloatArray:
    """Return chances of records of clusters of m records for every metric, up to a factor."""
    return np.asarray(np.sqrt(1 + ((m - 1) ** 2 / links + m**-2.0 / clusters) / 2))


@dataclass(frozen=True, slots=True)
class GivenProbabilities:
    """Plan: records with selection probabilities of your own, with replacement.

    The value of each record is its selection probability, up to a factor. All must be above 0, since
    estimates exclude entities that cannot be drawn.

    Examples
    --------
    >>> from erbayes.labels import draw
    >>> chances = {1: 1, 2: 1, 3: 2}
    >>> drawn = draw({1: "a", 2: "a", 3: "b"}, GivenProbabilities(), n=2, seed=1, values=chances)
    >>> drawn.table[["record", "probability"]].drop_duplicates().shape
    (2, 2)
    """

    independent: ClassVar[bool] = True

    def draw(self, source: sources.Source, n: int, seed: int) -> pd.DataFrame:
        counts = sources.ordered_counts(source, seed)
        values = real_numbers(need_values(counts, self), "chances")
        then, bad = ": entities without a chance are not estimated", ~((values > 0) & np.isfinite(values))
        refuse_cases(values[bad], "chances are not above 0 and finite", then, of=len(values))
        return _draw_by_value(source, counts, values, n, seed)[[*COLUMNS, "value"]]

    def design(self, drawn: LabelledDraws) -> Design:
        # a draw's probability is its value over the total, so that no source is read again
        value, probability = drawn.table[["value", "probability"]].iloc[0].astype(float)
        given = need_labelled_values(drawn, self, "chance")
        p = pd.Series(real_numbers(given, "chances"), given.index) / (value / probability)
        return designs.WeightedRecords.of(drawn.labels, pd.Index(drawn.table["record"]), p, absolute=True)


def _draw_by_value(
    source: sources.Source, counts: pd.DataFrame, values: FloatArray, n: int, seed: int
) -> pd.DataFrame:
    """Return n independent draws with probabilities proportional to values, which are those of the counts."""
    total = float(values @ counts["records"].to_numpy())
    points = np.random.default_rng(seed).random(n)
    line: sources.Line = (lambda rows: rows["value"].to_numpy(dtype=float) / total, points)
    return sources.at_points(source, counts, [line], seed)[0]


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
    return sources.match_values(drawn.values, drawn.labels.records, "labelled records")


def _allocate_draws(n: int, names: Any, records: FloatArray) -> IntArray:
    """Return the number of draws in each stratum, (H,), in proportion to its records, but two or more."""
    share, draws = records / records.sum() * n, np.full(len(records), 2)  # fewer have no variance
    if draws.sum() > n:
        raise DataError(
            f"{n} draws do not give each of {len(names)} strata two draws, such as {head(names)}: "
            "draw more, or merge strata"
        )
    for _ in range(n - draws.sum()):
        draws[(share - draws).argmax()] += 1
    return draws


@dataclass(frozen=True, slots=True)
class Strata:
    """Plan: uniform records in strata, with replacement, independently in each stratum.

    The value of each record is its stratum. Draws are proportional to the records of strata, but at least
    two (`GivenProbabilities` draws some more often). An entity may have records in several strata, and counts
    once (see `erbayes.design.Pooled`).

    Examples
    --------
    >>> from erbayes.labels import draw
    >>> prediction = {i: i // 4 for i in range(100)}
    >>> source = {i: "web" if i < 40 else "shop" for i in range(100)}
    >>> drawn = draw(prediction, Strata(), n=10, seed=1, values=source)
    >>> drawn.table["stratum"].value_counts().to_dict()
    {'shop': 6, 'web': 4}
    """

    def draw(self, source: sources.Source, n: int, seed: int) -> pd.DataFrame:
        counts = sources.ordered_counts(source, seed)
        codes, names = pd.factorize(need_values(counts, self), sort=True)
        records = np.bincount(codes, counts["records"].to_numpy(dtype=float))
        draws = _allocate_draws(n, names, records)

        def chance(h: int, rows: pd.DataFrame) -> FloatArray:
            return np.where(need_values(rows, self) == names[h], 1 / records[h], 0.0)

        # strata are independent, since each has a stream of random numbers of its own
        lines = [
            (partial(chance, h), np.random.default_rng([seed, h]).random(k)) for h, k in enumerate(draws)
        ]
        draws_of = sources.at_points(source, counts, lines, seed)
        tables = [rows.assign(stratum=name) for name, rows in zip(names, draws_of, strict=True)]
        return pd.concat(tables)[[*COLUMNS, "stratum"]]

    def design(self, drawn: LabelledDraws) -> Design:
        stratum, parts = need_labelled_values(drawn, self, "stratum").map(str).to_numpy(), []
        for h, draws in drawn.table.assign(unit=drawn.units).groupby("stratum", sort=False):
            # a draw's probability is 1 over the stratum's records, so that no source is read again
            of_record = np.where(stratum == str(h), float(draws["probability"].iloc[0]), 0.0)
            of_entity = pd.Series(np.bincount(drawn.labels.codes, of_record), drawn.labels.clusters)
            parts.append(designs.KnownSelection(of_entity, pd.Index(draws["unit"])))
        return designs.Pooled(parts)


@dataclass(frozen=True, slots=True)
class PredictedClusters:
    """Plan: predicted clusters, without replacement.

    Units of the estimate are then predicted clusters (`erbayes.measure_predicted`). Precision needs labels of
    their records only. Points at equal distances choose n clusters in the order of the keys of their ids, and
    the table names the record of each whose key is first.

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

    def draw(self, source: sources.Source, n: int, seed: int) -> pd.DataFrame:
        known, clusters = source.known, source.of_clusters()
        inclusion = self.compute_inclusion(n, known)
        certain = known.size[inclusion == 1]
        rest = n - int(known.count[inclusion == 1].sum())
        counts, parts = sources.ordered_counts(clusters, seed), []

        def chance(rows: pd.DataFrame) -> FloatArray:
            p = inclusion[np.searchsorted(known.size, rows["size"])]
            return np.where(p < 1, p / rest, 0.0)

        if len(certain):
            buckets = counts.loc[counts["size"].isin(certain), "bucket"].unique()
            rows = sources.in_order(clusters.in_buckets(buckets, seed))
            parts.append(rows[rows["size"].isin(certain)])
        if rest:
            points = (np.random.default_rng(seed).random() + np.arange(rest)) / rest
            parts += sources.at_points(clusters, counts, [(chance, points)], seed)
        rows = pd.concat(parts, ignore_index=True)
        members = _order_members(source, rows["cluster"], seed)
        first = members.drop_duplicates("cluster").set_index("cluster")["record"]
        p = inclusion[np.searchsorted(known.size, rows["size"])]
        return rows.assign(record=first.reindex(rows["cluster"]).to_numpy(), probability=p)[COLUMNS]

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
            return designs.UniformClusters(int(known.count.sum()), drawn.table["cluster"].tolist())
        inclusion = drawn.kept * self.compute_inclusion(drawn.n, known)
        of_cluster = drawn.kept * drawn.table.set_index("cluster")["probability"]
        never, squares = known.size[inclusion == 0].astype(int).tolist(), float(known.count @ inclusion**2)
        return designs.KnownInclusion(of_cluster, squares=squares, never=never, draws=of_cluster.index)


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
FREE = (Records, NewRecords, GivenProbabilities)
"""Plans whose selection probabilities do not depend on predicted clusters."""


def to_plain(plan: Any) -> dict[str, Any]:
    """Return a plan of `WRITTEN` as plain values for JSON, such as {"name": "multipurpose"}."""
    name = next((name for name, cls in WRITTEN.items() if cls is type(plan)), None)
    if name is None:
        raise DataError(f"only the plans of erbayes.labels can be written, not {type(plan).__name__}")
    if not isinstance(plan, PredictedClusters):
        return {"name": name}
    return {"name": name, "of": None if plan.of is None else to_plain(plan.of)}


def from_plain(values: Mapping[str, Any]) -> Any:
    """Return the plan of plain values (see `to_plain`)."""
    cls: Any = WRITTEN.get(values["name"])
    of = values.get("of")
    if cls is None:
        raise DataError(f"no plan of this erbayes is called {values['name']!r}: read it with the older one")
    if strange := set(values) - {"name", "of"}:
        raise DataError(
            f"'plan' has facts of another erbayes, such as {min(strange)!r}: read it with that one"
        )
    return cls() if of is None else cls(from_plain(of))
