"""Metrics by domain: of the records that have one value of a variable, jointly for all values.

    by_domain(sample, country).table()

Estimates of a domain use the complete sample, in which other records count 0. The number of draws that fall
into the domain is random, and part of the variance. Weights of draws and sizes of units stay those of
complete units. Links between domains and differences of predictions have the same rows.

Source: Särndal, Swensson and Wretman (1992), Model Assisted Survey Sampling, chapter 10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtrit

from .._internal.arrays import FloatArray, Seed
from .._internal.errors import DataError, Grade, Sentence, member, need, number
from ..design.sample import Sample, need_sample
from ..engine import diagnostics, differences, fitted
from ..engine.named import Engine, EngineLike, estimate_paired, find_engine, need_paired, run_engine
from ..metrics.columns import PREDICTED_LINKS, RECORDS, Domain, InDomain, Links
from ..metrics.definitions import DEFAULT_METRICS, Metric, MetricLike, resolve_metrics
from ..metrics.estimates import EMPTY, Estimates
from ..metrics.intervals import Kind
from ..metrics.tables import Pictured
from ..metrics.unseen import kish
from ..units.clustering import Memberships
from ..units.grouping import Grouping, Of
from .comparison import Comparison
from .rows import (
    FEWEST,
    Place,
    degrees,
    effective_draws,
    estimate_without_links,
    expand_result,
    few_draws,
    in_domain,
    intervals_table,
    name_place,
    refuse_many,
    tidy,
)

__all__ = ["by_domain", "by_pair", "compare_by_domain", "in_domain"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ByDomain(Pictured):
    """Metrics of several domains, jointly.

    `domains` (d,): or pairs of them (see `by_pair`); `settings`: arguments of `by_domain`; `joint`: all
    metrics of the first domain, then of the second, and so on; `effective` (d, k): effective number of draws
    of each estimate (Kish), or what the engine counts.
    """

    picture: ClassVar[str] = "by_domain"
    sample: Sample
    domains: tuple[Place, ...]
    settings: Settings
    joint: Estimates
    effective: FloatArray

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Return the metrics, (k,), as they are for all records."""
        return self.settings.metrics

    @property
    def names(self) -> list[str]:
        """Return the text of each domain."""
        return [name_place(d) for d in self.domains]

    def result(self, metric: Metric | str) -> Estimates:
        """Return one metric of all domains, jointly, named by domain."""
        names = [m.name for m in self.metrics]
        wanted = metric if isinstance(metric, str) else metric.name
        if wanted not in names:
            raise DataError(f"these domains have no {wanted!r}; they have {', '.join(names)}")
        part = self.joint.part(range(names.index(wanted), len(self.joint.names), len(names)))
        return replace(part, names=tuple(self.names))

    def table(
        self, level: float = 0.95, kind: Kind | None = None, *, simultaneous: bool = False
    ) -> pd.DataFrame:
        """Return estimates and intervals, one row per domain and metric.

        A row with fewer effective draws than `fewest` has no interval, and its reason.
        """
        rows = {
            "domain": [name for name in self.names for _ in self.metrics],
            "metric": [metric.name for metric in self.metrics] * len(self.domains),
        }
        effective = self.effective.ravel()
        few = self.settings.list_reasons(self.sample, effective)
        every = len(self.metrics) * simultaneous
        return tidy(intervals_table(rows, self.joint, level, kind, few, every, effective))

    def differences(
        self, level: float = 0.95, kind: Kind | None = None, *, simultaneous: bool = True
    ) -> pd.DataFrame:
        """Return the differences of every two domains, by metric, for the parameters of `table`."""
        pairs = list(combinations(range(len(self.domains)), 2))
        if not pairs:
            raise DataError(f"differences need two domains or more; {self.settings.variable!r} has one value")
        names = [f"{self.names[b]} - {self.names[a]}" for a, b in pairs]
        return self._subtract_domains(pairs, names, level, kind, simultaneous)

    def _subtract_domains(
        self,
        pairs: Sequence[tuple[int, int]],
        names: Sequence[str],
        level: float,
        kind: Kind | None,
        simultaneous: bool,
    ) -> pd.DataFrame:
        tables, (first, second), one = [], np.transpose(pairs), np.eye(len(self.domains))
        for j, metric in enumerate(self.metrics):
            few = self.settings.list_reasons(self.sample, self.effective[np.array(pairs), j].min(axis=1))
            fit = self.result(metric).contrast(one[second] - one[first], names)
            rows = {"difference": names, "metric": metric.name}
            tables.append(intervals_table(rows, fit, level, kind, few, int(simultaneous)))
        return tidy(pd.concat(tables))

    def against_rest(
        self, level: float = 0.95, kind: Kind | None = None, *, simultaneous: bool = True
    ) -> pd.DataFrame:
        """Return differences of each domain from all other records, for the parameters of `table`."""
        if len(self.domains) < 2 or any(isinstance(d, tuple) for d in self.domains):
            raise DataError("a comparison with the rest needs two domains or more, of single groups")
        rest = [replace(d, rest=True) for d in self.domains if isinstance(d, Domain)]
        pairs = [(len(rest) + i, i) for i in range(len(rest))]
        return _estimate_domains(self.sample, (*self.domains, *rest), self.settings)._subtract_domains(
            pairs, [f"{name} - rest" for name in self.names], level, kind, simultaneous
        )

    def balance(self) -> pd.DataFrame:
        """Compare the estimated predicted links of each domain with their known number.

        The estimate is N_g Σwy/Σw records of the domain. Far below the known number, the sample missed large
        clusters that have records of the domain, and its other estimates are unreliable too.
        """
        links = self.settings.links
        columns, records = ([InDomain(c, d, links) for d in self._single] for c in (PREDICTED_LINKS, RECORDS))
        table = fitted.compare_with_known(columns, *self.sample.estimate_known(columns, records))
        with np.errstate(invalid="ignore"):  # a domain without draws
            table.insert(2, "df", np.maximum(kish(self.sample.contributions(columns)) - 1, 1))
        return table.set_axis(pd.Index(list(map(str, self._single)), name="domain"))

    def alarms(self) -> list[Sentence]:
        """Return alarms of undecided draws, and of each domain that is out of balance, if that is known."""
        sentences = diagnostics.warn_undecided(self.sample)
        known = self.sample.units.grouping(self.settings.variable).predicted is not None
        if not (known and self._single) or self.sample.balance_links is None:
            return sentences
        table = self.balance()
        table = table[table["df"] + 1 >= self.settings.fewest]
        # three standard errors for one domain, and a smaller chance of each of several (Bonferroni)
        limit = -stdtrit(table["df"], ndtr(-3) / max(len(table), 1))
        # sums of exact numbers differ by rounding
        far = abs(table["estimate"] - table["known"]) > limit * table["se"] + 1e-9 * table["known"]
        return sentences + [
            Sentence(
                f"Out of balance: the sample estimates {row.estimate:,.0f} predicted links of {domain} (se "
                f"{row.se:,.0f}), the prediction holds {row.known:,.0f}; do not trust intervals of this "
                "domain.",
                Grade.FAULT,
            )
            for domain, row in table[far].iterrows()
        ]

    @property
    def _single(self) -> list[Domain]:
        return [d for d in self.domains if isinstance(d, Domain)]


def by_domain(
    sample: Sample,
    groups: Memberships | str,
    metrics: MetricLike = DEFAULT_METRICS,
    *,
    of: Of | str = Of.RECORDS,
    prediction: Memberships | None = None,
    links: Links = Links.SHARED,
    fewest: float = FEWEST,
    engine: EngineLike | None = None,
    rng: Seed = None,
) -> ByDomain:
    """Estimate metrics of each group of records, jointly.

    Parameters
    ----------
    sample : Sample
        The complete sample. Labels must not be filtered by group.
    groups : Series, mapping, table of two columns, or str
        The value of each labelled record, or of all records. A str is the name of a variable by which the
        units are grouped already (`Units.grouped`). The variable has the name of the Series or the column.
    metrics : Metric or str, or several
    of : Of
        `Of.ENTITIES` if `groups` gives the value of each labelled entity.
    prediction : memberships, optional
        If the variable is known for all its records. Numbers of records by group are then known.
    links : Links
        `Links.SHARED`: a link counts half for each of its records. `Links.INSIDE`: both records must be in
        the group. `Links.ACROSS`: they must be in different groups, such as two sources, with one result for
        all groups, of metrics of links. The last two need `prediction`, or sampled predicted clusters.
    fewest : float
        Effective draws below which an estimate has no interval.
    engine : Engine or str, optional
        `"closed form"` (the default), `"jackknife"`, `"bootstrap"` or `"advised"`, or an engine. A size model
        is refused, since it is of whole entities, which may lie in several groups: it would have the closed
        form in each row. Fit a group that has whole entities as a population of its own.
    rng : Generator, int or None

    Raises
    ------
    DataError
        If labelled records have no value, if no group has a labelled record, or as in `Units.grouped`.
    NotIdentified
        If the sample or the engine cannot estimate a metric of a domain.

    See Also
    --------
    by_pair : links between every two groups.
    compare : several predictions.

    References
    ----------
    Särndal, Swensson and Wretman (1992), Model Assisted Survey Sampling, chapter 10.

    Examples
    --------
    >>> import erbayes as eb
    >>> prediction = {i: i // 4 for i in range(120)}
    >>> units = eb.measure(prediction, {i: i // 3 for i in range(120)})
    >>> sample = eb.Sample(units, eb.UniformClusters())
    >>> country = {i: "FR" if i < 60 else "US" for i in range(120)}
    >>> result = by_domain(sample, country, "pairwise-recall")
    >>> result.table()[["domain", "metric", "estimate", "n_eff"]].round(2)
      domain           metric  estimate  n_eff
    0     FR  pairwise-recall      0.67   20.0
    1     US  pairwise-recall      0.67   20.0
    """
    sample, grouping = grouped(sample, groups, of, prediction)
    given = resolve_metrics(metrics), grouping.variable, links, fewest, find_engine(engine), rng
    settings = Settings(*given, everyone=grouping.everyone)
    return _estimate_domains(sample, settings.list_places(grouping.domains()), settings)


def by_pair(
    sample: Sample,
    groups: Memberships | str,
    metrics: MetricLike = ("pairwise-precision", "pairwise-recall"),
    *,
    prediction: Memberships | None = None,
    fewest: float = FEWEST,
    engine: EngineLike | None = None,
    rng: Seed = None,
) -> ByDomain:
    """Estimate metrics of the links between every two groups, and within each, jointly.

    Groups a and b have n_a n_b common links in a piece. The domains are pairs of groups, and add up to all
    links. Parameters and errors are those of `by_domain`, for metrics of common, true and predicted links.
    The prediction is needed unless predicted clusters were sampled.

    Examples
    --------
    >>> import erbayes as eb
    >>> prediction = {i: i // 4 for i in range(120)}
    >>> sample = eb.Sample(eb.measure(prediction, {i: i // 3 for i in range(120)}), eb.UniformClusters())
    >>> source = {i: "AB"[i % 2] for i in range(120)}
    >>> result = by_pair(sample, source, "pairwise-recall", prediction=prediction)
    >>> result.table()[["domain", "metric", "estimate"]].round(2)
         domain           metric  estimate
    0  A with A  pairwise-recall      0.50
    1  A with B  pairwise-recall      0.75
    2  B with B  pairwise-recall      0.50
    """
    sample, grouping = grouped(sample, groups, Of.RECORDS, prediction)
    pairs = tuple(combinations_with_replacement(grouping.domains(), 2))
    given = resolve_metrics(metrics), grouping.variable, Links.INSIDE, fewest, find_engine(engine), rng
    return _estimate_domains(sample, pairs, Settings(*given))


def grouped(sample: Sample, groups: Any, of: Of | str, prediction: Any) -> tuple[Sample, Grouping]:
    """Return the sample with grouped units, and their grouping."""
    need_sample(sample)
    if isinstance(groups, str):
        return sample, sample.units.grouping(groups)
    units = sample.units.grouped(groups, of=of, prediction=prediction)
    return sample.with_units(units), units.groupings[-1]


@dataclass(frozen=True, slots=True, eq=False)
class Settings:
    """All that estimates by domain need in addition to the sample."""

    metrics: tuple[Metric, ...]
    variable: str
    links: Links
    fewest: float
    engine: Engine
    rng: Seed
    everyone: bool = False
    """Whether the one group is all records, which then has the estimates of all, without a bar of draws."""

    def __post_init__(self) -> None:
        number(self.fewest, "fewest effective draws", lambda x: x >= 0, "be 0 or more")
        object.__setattr__(self, "links", member(self.links, Links, "links"))
        if self.everyone:
            object.__setattr__(self, "fewest", 0.0)

    def list_reasons(self, sample: Sample, effective: FloatArray) -> list[str]:
        """Return why estimates with these effective draws have no interval; "" for those that have one."""
        return ["" if sample.expansion.census else few_draws(n, self.fewest) for n in effective.tolist()]

    def list_places(self, domains: Sequence[Domain]) -> tuple[Place, ...]:
        """Return the domains, or all of them as one place for links across them."""
        if self.links is not Links.ACROSS:
            return tuple(domains)
        if len(domains) < 2:
            raise DataError(f"no links are across {self.variable!r}: it has one value, {domains[0]}")
        return (tuple(domains),)

    def of_places(self, sample: Sample, places: Sequence[Place]) -> list[Metric]:
        """Return each metric of the first place, then of the second, and so on."""
        if self.everyone and not any(isinstance(place, tuple) or place.rest for place in places):
            return list(self.metrics)
        refuse_many(f"{len(places):,} domains", len(places), len(self.metrics), "join values to classes")
        known = sample.units.grouping(self.variable).predicted is not None
        return [in_domain(m, p, self.links, known=known) for p in places for m in self.metrics]


def _estimate_domains(sample: Sample, places: Sequence[Place], settings: Settings) -> ByDomain:
    """Return all metrics of all domains, jointly. Domains without a draw are NaN."""
    metrics = settings.of_places(sample, places)
    effective = effective_draws(sample, metrics)
    there = np.flatnonzero(~np.isnan(effective))
    has_labels = [
        all(
            sample.units.column(InDomain(RECORDS, domain, Links.SHARED)).any()
            for domain in (place if isinstance(place, tuple) else (place,))
        )
        for place in places
    ]
    labelled = np.repeat(has_labels, len(settings.metrics))
    effective = np.where(np.isnan(effective) & labelled, 0.0, effective)
    if not len(there):
        why = EMPTY if labelled.any() else "no labelled record is in one"
        raise DataError(f"no metric of a domain of {settings.variable!r} can be estimated: {why}")
    asked = [metrics[i] for i in there]
    found = run_engine(settings.engine, sample, asked, settings.rng)
    if found.values is None and not settings.everyone:
        found = estimate_without_links(found, sample, asked)
        found = replace(found, df=np.fmin(found.df, degrees(sample, asked)))
    joint = expand_result(found, there, metrics, [few_draws(n, 0) for n in effective.tolist()])
    shape = (len(places), len(settings.metrics))
    return ByDomain(sample, tuple(places), settings, joint, effective.reshape(shape))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ComparedByDomain(Pictured):
    """Differences of several predictions by domain.

    `comparison`: of all records; `domains` (d,); `by_metric` (d x k): each metric of the first domain, then
    of the second, and so on; `joint`: these of the first prediction, then of the second, and so on;
    `samples`: with groups, of each prediction; `effective` (p, d, k): draws of each estimate.
    """

    picture: ClassVar[str] = "by_domain"
    comparison: Comparison
    domains: tuple[Place, ...]
    settings: Settings
    by_metric: tuple[Metric, ...]
    joint: Estimates
    samples: tuple[Sample, ...]
    effective: FloatArray

    def table(
        self, level: float = 0.95, kind: Kind | None = None, *, simultaneous: bool = False
    ) -> pd.DataFrame:
        """Return each prediction minus each earlier one by domain, for parameters of `ByDomain.table`."""
        metrics, tables = self.settings.metrics, []
        names = [name_place(domain) for domain in self.domains]
        repeated, overlaps = np.repeat(names, len(metrics)).tolist(), self.comparison.overlaps
        for (i, first), (j, second) in combinations(enumerate(self.comparison.predictions), 2):
            moved = differences.subtract(
                self.joint, self.samples, self.by_metric, [(i, j)], repeated, overlaps
            )
            for at, metric in enumerate(metrics):
                fewer = np.minimum(self.effective[i, :, at], self.effective[j, :, at])
                few = self.settings.list_reasons(self.samples[0], fewer)
                rows = {"difference": f"{second} - {first}", "domain": names, "metric": metric.name}
                fit = moved.part(range(at, len(repeated), len(metrics)))
                tables.append(intervals_table(rows, fit, level, kind, few, int(simultaneous), fewer))
        return tidy(pd.concat(tables))


def compare_by_domain(
    comparison: Comparison,
    groups: Memberships | str,
    metrics: MetricLike = DEFAULT_METRICS,
    *,
    of: Of | str = Of.RECORDS,
    predictions: Mapping[str, Any] | None = None,
    links: Links = Links.SHARED,
    fewest: float = FEWEST,
    engine: EngineLike | None = None,
    rng: Seed = None,
) -> ComparedByDomain:
    """Compare predictions by domain, with paired standard errors.

    Other parameters and errors are those of `by_domain`.

    Parameters
    ----------
    comparison : Comparison
        As `erbayes.compare` returns it.
    predictions : mapping, name -> memberships, optional
        The predictions, if the variable is known for all their records.
    engine : Engine or str, optional
        With a method `paired`.

    Examples
    --------
    >>> import erbayes as eb
    >>> labels = {i: i // 4 for i in range(120)}
    >>> predictions = {"old": {i: i // 2 for i in range(120)}, "new": {i: i // 3 for i in range(120)}}
    >>> comparison = eb.compare(predictions, labels, eb.UniformClusters(), "pairwise-recall")
    >>> half = {i: "first" if i < 60 else "second" for i in range(120)}
    >>> compare_by_domain(comparison, half, "pairwise-recall").table()[["domain", "estimate"]].round(2)
       domain  estimate
    0   first      0.11
    1  second      0.11
    """
    need(comparison, Comparison, "a Comparison is needed, as compare(predictions, labels, design) makes it")
    of_each = [
        grouped(sample, groups, of, (predictions or {}).get(name))
        for name, sample in zip(comparison.predictions, comparison.samples, strict=True)
    ]
    samples, grouping = [sample for sample, _ in of_each], of_each[-1][1]
    paired = need_paired(find_engine(engine))
    given = resolve_metrics(metrics), grouping.variable, links, fewest, paired, rng
    settings = Settings(*given, everyone=grouping.everyone)
    counted = samples[0].units.grouping(grouping.variable).counted.sum(axis=1)
    places = settings.list_places([d for d, n in zip(grouping.domains(), counted, strict=True) if n])
    by_metric = settings.of_places(samples[0], places)
    joint = estimate_paired(paired, samples, by_metric, rng)
    if joint.values is None and not settings.everyone:
        joint = replace(joint, df=np.fmin(joint.df, np.concatenate([degrees(s, by_metric) for s in samples])))
    shape = (len(places), len(settings.metrics))
    # each place has labelled records, so that a metric without draws is 0/0
    effective = np.array([np.nan_to_num(effective_draws(s, by_metric)).reshape(shape) for s in samples])
    return ComparedByDomain(comparison, places, settings, tuple(by_metric), joint, tuple(samples), effective)
