"""Thresholds of one matcher, judged together by one labelled sample.

A matcher's edges make a clustering at each threshold. All of them are judged by the same draws, so that their
estimates have a joint covariance, from which three answers follow: simultaneous bands over all thresholds,
the set of thresholds that contains the best one, and the loosest threshold that is certified.

Sources: Mogstad, Romano, Shaikh and Wilhelm (2024), The Review of Economic Studies 91, 476-518 (sets of the
best). Maurer, Hothorn and Lehmacher (1995), Biometrie in der chemisch-pharmazeutischen Industrie 6, 3-18
(tests in an order that was fixed before).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import ndtri

from .._internal.arrays import BoolArray, FloatArray, Seed, is_table, refuse_names, to_frame
from .._internal.digits import write_exactly
from .._internal.errors import DataError, NotIdentified, head, number, warn_of
from .._internal.names import NAMES, find_thresholds
from ..design.contract import Design, SelectedBySize
from ..design.sample import Sample, need_labels_and_design
from ..engine.diagnostics import warn_undecided
from ..engine.named import EngineLike, estimate_paired, find_engine, need_paired
from ..large import Columns, DuckDB, scan
from ..large.files import lies_elsewhere, opened
from ..metrics.definitions import DEFAULT_METRICS, Metric, MetricLike, b3_recall, pairwise_f1, resolve_metrics
from ..metrics.estimates import EMPTY, Estimates
from ..metrics.intervals import DEFAULT, BetaGamma, Kind, check_level, draw_paths
from ..metrics.tables import Pictured
from ..metrics.unseen import measure_parts, split_parts
from ..units.clustering import Clustering, Memberships
from ..units.columns import read_prediction
from ..units.edges import Edges, spread_thresholds
from ..units.ids import ids
from ..units.measuring import sampled_labels
from ..units.reading import Named, Near, explain_repeats, list_candidates, pair_columns
from .comparison import estimate_jointly
from .rows import FEWEST, effective_draws, intervals_table, refuse_many, tidy

CERTIFIED_FROM = 30.0
"""Effective draws from which certificates begin, because with fewer the limits depend on pseudo-draws."""
CAUTIOUS = BetaGamma(1.0)
"""The interval of certificates. After n draws without an error its lower limit p has about p^n = 1 - level,
as that of Clopper and Pearson. Half the mass misses more often on this side than on the other: a certificate
was false in .065 and .095 of samples of RLdata10000 at shares of .95."""

BYTES_OF_EDGE = {False: 120, True: 250}
"""Bytes at the peak for each edge, by whether ids are text (242 to 308 of 14 letters, else 116 to 133)."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """The loosest threshold at which a metric is `least` or more with confidence `level`.

    `threshold`, `lower`: the certified threshold, and the lower limit there; None if none is certified;
    `next`: the threshold at which the order stopped; None if it did not; `draws`: about how many further
    draws would certify the next one, if their labels are like those there are; `skipped`, `effective`: if
    none is certified, the threshold with most effective draws of those that have too few and an estimate of
    `least` or more, and their number; None if there is none.
    """

    metric: str
    least: float
    level: float
    threshold: float | None
    lower: float | None
    next: float | None
    draws: float | None
    skipped: float | None = None
    effective: float | None = None

    def __str__(self) -> str:
        said = f"No threshold is certified to have {self.metric} of {self.least:g} or more"
        if self.threshold is not None:
            at = self._write(self.threshold)
            said = f"At a threshold of {at}, {self.metric} is {self.least:g} or more"
        said += f" ({self.level:.0%} confidence)."
        if self.threshold is None and self.next is None:
            said += " Even without an error, the effective draws would be too few at every threshold."
        elif self.draws is not None and np.isinf(self.draws):
            unsure = self.skipped is not None
            where = "first threshold with enough effective draws" if unsure else "next threshold"
            said += f" The {where}, {self._write(self.next)}, has an estimate below that."
        elif self.draws is not None:
            said += f" About {self.draws:,.0f} further draws would certify {self._write(self.next)}."
        if self.skipped is not None and self.effective is not None:
            needed, there = np.ceil(_count_needed(self.least, self.level)), np.floor(self.effective)
            said += (
                f" It takes {needed:.0f} effective draws, and {self._write(self.skipped)}, whose estimate is "
                f"not below, has {there:.0f}: label more records."
            )
        return said

    def _write(self, threshold: float | None) -> str:
        return "" if threshold is None else write_exactly([threshold])[0]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Curve(Pictured):
    """Metrics of one matcher at many thresholds, jointly.

    `thresholds` (K,): from the strictest to the loosest; `metrics` (k,); `joint`: all metrics at the first
    threshold, then at the second, and so on, jointly; `samples` (K,): the same draws at each threshold, for
    `alarms`, `balance` and `influence`; `effective` (K, k): the effective number of draws of each estimate.
    """

    picture: ClassVar[str] = "curve"
    thresholds: FloatArray
    metrics: tuple[Metric, ...]
    joint: Estimates
    samples: tuple[Sample, ...]
    effective: FloatArray

    def table(
        self, metric: Metric | str | None = None, level: float = 0.95, kind: Kind | None = None
    ) -> pd.DataFrame:
        """Return estimates at each threshold, with a band that covers the metric at all of them at once.

        Under single linkage recall cannot fall as the threshold falls, so that its band, as steps, covers
        thresholds in between as well. The band of precision covers the listed thresholds only.
        """
        check_level(level)
        tables = []
        for place in range(len(self.metrics)) if metric is None else [self._locate(metric)]:
            fit, few, n_eff = self._take(place), self._few(place), self.effective[:, place]
            rows = {"metric": fit.names, "threshold": self.thresholds}
            tables.append(intervals_table(rows, fit, level, kind, few, 1, n_eff, before="level"))
        return tidy(pd.concat(tables))

    def best(self, metric: Metric | str = pairwise_f1, level: float = 0.95) -> pd.DataFrame:
        """Return a confidence set of the best threshold, which is among them at `level`.

        Threshold k stays unless another is better by more than chance explains: max_j (x_j - x_k)/s_jk > q_k,
        with s_jk the standard error of the difference and q_k a quantile of the largest of (Z_j - Z_k)/s_jk
        over j. Only the best threshold has to stay, so that no correction for many k is needed. Each estimate
        has the variance of its pseudo-draws too (see `BetaGamma`), of its own, because errors that no draw
        has shown may be at one threshold and not at another. Links that no draw reaches may be right at j and
        wrong at k, or the reverse, and allow for that as intervals do (`widen`). Below ten effective draws a
        threshold stays.
        """
        place = self._locate(metric)
        table, part = self.table(metric, level), self._take(place)
        known = np.array([not why for why in self._few(place)]) & np.isfinite(part.estimate)
        stays = ~known
        if known.any():
            part = part.part(np.flatnonzero(known).tolist())
            cov = part.cov + np.diag(part.unseen.spread_pseudo_draws(DEFAULT.mass))
            share = part.unseen.unreached_share
            arms = split_parts(share, measure_parts(part.estimate, share, np.array(part.support)))
            stays[known] = _keep_best(part.estimate, cov, level, self.samples[0].expansion.census, *arms)
        order = table.assign(known=known)[stays].sort_values(["known", "estimate"], ascending=False).index
        return table.loc[order].reset_index(drop=True)

    def certified(self, metric: Metric | str, least: float, level: float = 0.95) -> Certificate:
        """Return the loosest threshold at which a metric is `least` or more, with confidence `level`.

        Thresholds are tested from the strictest on, until the lower limit of one is below `least`. As the
        order is fixed, no correction for many tests is needed. It begins at the first threshold with
        effective draws enough to certify, were they all without an error, which does not depend on whether
        links are right. The certificate thus suits metrics that fall with the threshold, as precision does.
        """
        place = self._locate(metric)
        part, name = self._take(place), self.metrics[place].name
        if part.support[0] != (0.0, 1.0):
            raise DataError(f"certificates are of shares, and {name} is none")
        least = number(least, "what is certified", lambda x: 0 < x < 1, "lie between 0 and 1")
        level = number(level, "level of a certificate", lambda x: 0.5 < x < 1, "lie between 0.5 and 1")
        kind = CAUTIOUS if part.values is None else None
        x, lower = part.estimate, part.interval(2 * level - 1, kind)[:, 0]
        effective = self.effective[:, place]
        enough = effective >= _count_needed(least, level)
        census = self.samples[0].expansion.census
        begin = 0 if census else int(np.argmax(np.append(enough, True)))
        passed = begin + int(np.argmin(np.append(lower[begin:] >= least, False)))
        draws = None
        if begin <= passed < len(x) and np.isfinite(lower[passed]):
            n, gap = len(self.samples[0]), x[passed] - least
            draws = float(np.ceil(n * (((x[passed] - lower[passed]) / gap) ** 2 - 1))) if gap > 0 else np.inf
        at = [*self.thresholds.tolist(), None]
        if passed > begin:
            best = at[passed - 1], float(lower[passed - 1])
            return Certificate(name, least, level, *best, at[passed], draws)
        few = np.where(x[:begin] >= least, effective[:begin], 0.0)
        skipped = (at[int(few.argmax())], float(few.max())) if few.any() else (None, None)
        return Certificate(name, least, level, None, None, at[passed], draws, *skipped)

    def _locate(self, metric: Metric | str) -> int:
        names, wanted = [m.name for m in self.metrics], ", ".join(m.name for m in resolve_metrics(metric))
        if wanted not in names:
            raise DataError(f"the curve has {', '.join(names)}, not {wanted}: name one of these")
        return names.index(wanted)

    def _take(self, place: int) -> Estimates:
        return self.joint.part(range(place, len(self.joint.names), len(self.metrics)))

    def _few(self, place: int) -> list[str]:
        """Return why the metric has no interval at each threshold, (K,); "" if it has one."""
        effective = self.effective[:, place]
        more = np.fmax.accumulate(effective[::-1])[::-1] > effective
        few = describe_few(effective, self.samples[0])
        said = ": looser thresholds have more"
        return [why + said * bool(why and later) for why, later in zip(few, more.tolist(), strict=True)]


def describe_few(effective: FloatArray, sample: Sample) -> list[str]:
    """Return why estimates have no interval, from their effective draws; "" for those that have one."""
    few = (effective < FEWEST) & (not sample.expansion.census)
    said = [f"{n:.3g} effective draws are fewer than {FEWEST:g}" for n in effective.tolist()]
    return [why * bool(refused) for why, refused in zip(said, few, strict=True)]


def _count_needed(least: float, level: float) -> float:
    """Return the effective draws, all without an error, from which a lower limit can reach `least`."""
    return max(CERTIFIED_FROM, log(1 - level) / log(least))


def _keep_best(
    x: FloatArray, cov: FloatArray, level: float, census: bool, certain: FloatArray, of_chance: FloatArray
) -> BoolArray:
    """Return which of k thresholds stay among the best, (k,); `certain`: arms of unreached links, (k, 2)."""
    if census:
        return np.asarray(x == x.max())
    cov = np.nan_to_num(cov)
    variance = np.diagonal(cov)
    squares = variance[:, None] + variance - 2 * cov
    # differences that no draw shows are undecided, and rounding must not decide them
    se = np.sqrt(np.where(squares > 1e-12 * max(variance.max(), np.finfo(float).tiny), squares, np.inf))
    down, up = (of_chance / ndtri((1 + level) / 2)).T
    least = x - x[:, None] - certain[:, 0] - certain[:, 1:]
    worse = (least / np.sqrt(se**2 + down**2 + up[:, None] ** 2)).max(axis=1)
    stays = np.asarray(worse <= 0)
    if stays.all():
        return stays
    z = draw_paths(cov)
    for k in np.flatnonzero(~stays):
        stays[k] = worse[k] <= np.quantile(((z - z[:, [k]]) / se[k]).max(axis=1), level)
    return stays


def thresholds(
    edges: Any,
    labels: Memberships | None = None,
    design: Design | None = None,
    metrics: MetricLike = DEFAULT_METRICS,
    *,
    records: Any = None,
    at: Any = 200,
    score: str | None = None,
    engine: EngineLike | None = None,
    rng: Seed = None,
) -> Curve:
    """Estimate metrics of a matcher at many thresholds, from one labelled sample.

    At a threshold, edges with that score or more are links, and clusters are their connected components. If
    the matcher was tuned on the labelled entities, estimates are too good, which no number here can show.

    Parameters
    ----------
    edges : table, files, or mapping
        Two columns of record ids and one of scores, as a DataFrame or Arrow table, or a path
        of CSV or Parquet files, a table or relation of DuckDB. An edge may be there twice. Of tables with
        columns unique_id_l and unique_id_r, as Splink writes them, others are ignored. The array of dedupe's
        `score` is taken too. Clusters that the matcher has made, such as one-to-one matches, are a mapping
        threshold -> memberships, or a table of records with a column of cluster ids for each threshold, as
        Splink writes it: cluster_p_0_95 or 0.95. Such a table is scanned where it lies.
    labels, design, engine, rng
        As in `erbayes.compare`.
    metrics : Metric or str, or several
    records : sequence of ids
        All records, those without an edge included. A mapping of memberships has its own. Of a table of
        clusters, the name of its column of records, if it is not clear.
    at : int, sequence of float, or mapping threshold -> column
        The number of thresholds, which are quantiles of the distinct scores, or their values. A mapping names
        the columns of a table of clusters.
    score : str, optional
        The column of scores. By default the third, or Splink's match_weight or else match_probability.

    Warns
    -----
    Alarm
        If edges inside labelled entities have lower scores than those that leave them, as distances have, and
        for what the engine says of its result.

    Raises
    ------
    DataError
        If edges, records, thresholds or labels cannot be used, or if the engine has no method `paired`.

    See Also
    --------
    compare : a few predictions.
    stages : steps of one matcher.

    References
    ----------
    Mogstad, Romano, Shaikh and Wilhelm (2024), The Review of Economic Studies 91, 476-518.

    Examples
    --------
    >>> import erbayes as eb
    >>> edges = pd.DataFrame({"l": ["a", "b", "d"], "r": ["b", "c", "e"], "weight": [9.0, 2.0, 4.0]})
    >>> labels = {"a": "x", "b": "x", "c": "y", "d": "z", "e": "z"}
    >>> curve = thresholds(edges, labels, eb.UniformClusters(population=3), records=list("abcdef"))
    >>> curve.table("pairwise-recall")[["threshold", "estimate"]]
       threshold  estimate
    0        9.0       0.5
    1        4.0       1.0
    2        2.0       1.0
    >>> strict, loose = ["a", "a", "c", "d", "e", "f"], ["a", "a", "a", "d", "d", "f"]
    >>> clusters = pd.DataFrame({"id": list("abcdef"), "cluster_9": strict, "cluster_2.5": loose})
    >>> thresholds(clusters, labels, eb.UniformClusters(population=3)).thresholds
    array([9. , 2.5])
    """
    design = need_labels_and_design(labels, design, "thresholds(edges, labels, design)")
    metrics = resolve_metrics(metrics)
    labels = sampled_labels(labels, records)
    columns, table = {} if isinstance(edges, Mapping) else choose_columns(edges, at), None
    if columns or isinstance(edges, Mapping):
        levels = np.sort(
            [number(x, "a threshold", lambda x: not np.isnan(x), "be a number") for x in columns or edges]
        )[::-1]
    else:
        table = Edges.of(load_edges(edges, score), records, score)
        levels = table.thresholds(at)
    refuse_many(f"{len(levels):,} thresholds", len(levels), len(metrics), "fewer thresholds")
    # with one that every sample defines, so that 0/0 in others ends no curve
    defined = [*metrics, *({b3_recall} - set(metrics))]
    if table is None:
        predictions = read_clusters(edges, labels, records, columns) if columns else edges
        by_name = {str(threshold): predictions[threshold] for threshold in levels.tolist()}
        compared = estimate_jointly(by_name, labels, design, defined, engine=engine, rng=rng)
        joint, samples = compared.joint, [*compared.samples]
    else:
        warn_of(table.alarms(labels))
        samples, free = [], isinstance(design, SelectedBySize)  # whose draws are the same at each threshold
        for units in table.units(labels, levels):
            samples.append(samples[0].with_units(units) if samples and free else Sample(units, design))
        joint = estimate_paired(need_paired(find_engine(engine)), samples, defined, rng)
    width = len(joint.names) // len(levels)
    joint = joint.part([j for j in range(len(joint.names)) if j % width < len(metrics)])
    if np.isnan(joint.estimate).all():
        raise NotIdentified(f"{', '.join(m.name for m in metrics)}: {EMPTY}")
    warn_of([*warn_undecided(samples[0]), *joint.alarms])
    effective = np.array([effective_draws(sample, metrics) for sample in samples])
    return Curve(levels.astype(float), metrics, joint, tuple(samples), effective)


def load_edges(edges: Any, score: str | None) -> Any:
    """Return edges of files and databases as a table of the columns that are needed; others as they are."""
    if not lies_elsewhere(edges):
        return edges
    with opened([edges], DuckDB()) as (source,):
        names = list_candidates(source.columns(), score)
        source.use(*names)
        ((edges,),) = source.rows(f"SELECT COUNT(*) FROM {source.table}")
        needed, memory = BYTES_OF_EDGE[any(source.kind(name) == "string" for name in names)], find_memory()
        if edges * needed > memory:
            raise DataError(
                f"{edges:,} edges take about {edges * needed / 2**30:,.0f} GiB of memory; this machine has "
                f"{memory / 2**30:,.0f} GiB, enough for {memory // needed:,.0f}: leave out the lowest "
                "scores, or give a table with a column of clusters for each threshold, which is counted "
                "where it lies"
            )
        return source.fetched(f"SELECT {', '.join(map(source.value, names))} FROM {source.table}", names)


def find_memory() -> float:
    """Return the bytes of memory of the machine, infinity if its system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return np.inf


def choose_columns(source: Any, at: Any) -> dict[float, Any]:
    """Return the column of clusters at each threshold; none if the rows of a table are edges."""
    if isinstance(at, Mapping):
        return dict(at)
    if lies_elsewhere(source):
        with opened([source], DuckDB()) as (table,):
            columns = table.columns()
    else:
        columns = list(to_frame(source).columns) if is_table(source) else []
    found = find_thresholds(columns)
    # both ends of an edge may be called id_1 and id_2
    if not found or any(pair.stem in ("", *NAMES["record"]) for pair in pair_columns(columns)):
        return {}
    if isinstance(at, str) or not isinstance(at, Iterable):
        return {t: found[t] for t in spread_thresholds(np.sort([*found]), at).tolist()}
    if unknown := [threshold for threshold in at if threshold not in found]:
        raise DataError(f"no column has clusters at {head(unknown)}; there are {head(sorted(found), 20)}")
    return {threshold: found[threshold] for threshold in at}


def read_clusters(
    source: Any, labels: Clustering, record: Any, columns: Mapping[float, Any]
) -> dict[float, Any]:
    """Return the clusters at each threshold, or what a scan counts of them, where the table lies."""
    if not (record is None or isinstance(record, str)):
        raise DataError("a table of clusters has a row for each record: leave out the list of all records")
    if lies_elsewhere(source):
        of_threshold = {str(threshold): column for threshold, column in columns.items()}
        units = scan(dict.fromkeys(of_threshold, source), labels, Columns(record, of_threshold))
        return {threshold: units[str(threshold)] for threshold in columns}
    table = to_frame(source)
    refuse_names(list(columns.values()), list(table.columns), "the table of clusters")
    rest = [c for c in table.columns if c not in set(columns.values())]
    first = next(iter(columns.values()))
    named = Named(record=record, cluster=first, links=False)
    reading = read_prediction(table[[*rest, first]], named, Near({labels.records.name: labels.records}))
    if reading.repeats:
        raise explain_repeats(table[reading.ids[0]], table[first], reading.what)
    # one index, so that labelled records are looked up in it once
    records = ids(reading.key(), f"record ids of the {reading.what}")
    return {
        threshold: Clustering.of(pd.Series(table[column].array, records), f"prediction at {threshold:g}")
        for threshold, column in columns.items()
    }
