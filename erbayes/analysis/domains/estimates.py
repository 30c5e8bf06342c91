"""Estimates of domains, and of the links between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import ndtr, stdtrit

from ..._internal.arrays import FloatArray, IntArray, Seed
from ..._internal.errors import DataError, Grade, Sentence, member, number
from ...design.sample import Sample, need_sample
from ...engine.contract import Engine
from ...engine.diagnostics import compare_with_known, scale_to_records, warn_undecided
from ...engine.fitted import fit_sample
from ...engine.named import EngineLike, find_engine, run_engine
from ...metrics.columns import PREDICTED_LINKS, RECORDS, Domain, InDomain, Links
from ...metrics.definitions import DEFAULT_METRICS, Metric, MetricLike, resolve_metrics
from ...metrics.estimates import EMPTY, Estimates
from ...metrics.intervals import Kind
from ...metrics.tables import Pictured
from ...metrics.unseen import map_components
from ...units.clustering import Memberships
from ...units.grouping import Grouping, Of
from .rows import (
    FEWEST,
    Place,
    degrees,
    effective_draws,
    few_draws,
    in_domain,
    intervals_table,
    name_place,
    tidy,
)

LARGEST = 4000
"""Largest number of estimates, domains × metrics, since their covariance takes 128 MB then."""


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
    def variable(self) -> str:
        """Return the name of the variable."""
        return self.settings.variable

    @property
    def names(self) -> list[str]:
        """Return the text of each domain."""
        return [name_place(d) for d in self.domains]

    def _locate_estimates(self, metric: int) -> list[int]:
        return list(range(metric, len(self.domains) * len(self.metrics), len(self.metrics)))

    def _explain_few_draws(self, effective: FloatArray) -> list[str]:
        if self.sample.expansion.census:
            return [""] * len(effective)
        return [few_draws(n, self.settings.fewest) for n in effective.tolist()]

    def result(self, metric: Metric | str) -> Estimates:
        """Return one metric of all domains, jointly, named by domain."""
        names = [m.name for m in self.metrics]
        wanted = metric if isinstance(metric, str) else metric.name
        if wanted not in names:
            raise DataError(f"these domains have no {wanted!r}; they have {', '.join(names)}")
        part = self.joint.part(self._locate_estimates(names.index(wanted)))
        return replace(part, names=tuple(self.names))

    def table(
        self, level: float = 0.95, kind: Kind | None = None, *, simultaneous: bool = False
    ) -> pd.DataFrame:
        """Return estimates and intervals, one row per domain and metric.

        A row with fewer effective draws than `fewest` has no interval, and its reason.
        """
        effective = self.effective.ravel()
        families = [self._locate_estimates(j) for j in range(len(self.metrics))] if simultaneous else []
        shown = intervals_table(
            self.joint, level, kind, self._explain_few_draws(effective), families
        ).reset_index(drop=True)
        names = np.array([m.name for m in self.metrics], dtype=object)
        shown.insert(0, "domain", np.repeat(np.array(self.names, dtype=object), len(names)))
        shown.insert(1, "metric", np.tile(names, len(self.domains)))
        shown.insert(list(shown.columns).index("lower"), "n_eff", effective)
        return tidy(shown)

    def differences(
        self, level: float = 0.95, kind: Kind | None = None, *, simultaneous: bool = True
    ) -> pd.DataFrame:
        """Return the differences of every two domains, by metric, for the parameters of `table`."""
        pairs = list(combinations(range(len(self.domains)), 2))
        if not pairs:
            raise DataError(f"differences need two domains or more; {self.variable!r} has one value")
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
        """Return the second less the first domain of each pair."""
        tables, (first, second) = [], np.transpose(pairs)
        C = np.zeros((len(pairs), len(self.domains)))
        C[np.arange(len(pairs)), second], C[np.arange(len(pairs)), first] = 1.0, -1.0
        for j, metric in enumerate(self.metrics):
            few = self._explain_few_draws(self.effective[np.array(pairs), j].min(axis=1))
            families = [range(len(pairs))] * simultaneous
            found = intervals_table(self.result(metric).contrast(C, names), level, kind, few, families)
            found = found.rename_axis("difference").reset_index()
            found.insert(1, "metric", metric.name)
            tables.append(found)
        return tidy(pd.concat(tables))

    def against_rest(
        self, level: float = 0.95, kind: Kind | None = None, *, simultaneous: bool = True
    ) -> pd.DataFrame:
        """Return differences of each domain from all other records, for the parameters of `table`."""
        if len(self.domains) < 2 or any(isinstance(d, tuple) for d in self.domains):
            raise DataError("a comparison with the rest needs two domains or more, of single groups")
        rest = [replace(d, rest=True) for d in self.domains if isinstance(d, Domain)]
        both = _estimate_domains(self.sample, (*self.domains, *rest), self.settings)
        pairs = [(len(rest) + i, i) for i in range(len(rest))]
        return both._subtract_domains(
            pairs, [f"{name} - rest" for name in self.names], level, kind, simultaneous
        )

    def balance(self) -> pd.DataFrame:
        """Compare estimated with known predicted links of each domain (see `balance_domains`)."""
        return balance_domains(self.sample, self._single, self.settings.links)

    def alarms(self) -> list[Sentence]:
        """Return alarms of undecided draws, and of each domain that is out of balance, if that is known."""
        sentences = warn_undecided(self.sample)
        if not self._single or self.sample.units.grouping(self.variable).predicted is None:
            return sentences
        return sentences + [
            Sentence(f"{alarm}; do not trust intervals of this domain.", Grade.FAULT)
            for alarm in domains_out_of_balance(
                self.sample, self._single, self.settings.links, self.settings.fewest
            )
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
        all groups, of metrics of links. The last two need `prediction` unless predicted clusters were
        sampled.
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
    need_sample(sample)
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
    links.

    Parameters
    ----------
    sample, groups, prediction, fewest, engine, rng
        As in `by_domain`. The prediction is needed unless predicted clusters were sampled.
    metrics : Metric or str, or several
        Metrics of common, true and predicted links.

    Raises
    ------
    DataError
        As `by_domain`, or if a metric needs more than links.

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
    need_sample(sample)
    sample, grouping = grouped(sample, groups, Of.RECORDS, prediction)
    pairs = tuple(combinations_with_replacement(grouping.domains(), 2))
    settings = Settings(
        resolve_metrics(metrics), grouping.variable, Links.INSIDE, fewest, find_engine(engine), rng
    )
    return _estimate_domains(sample, pairs, settings)


def grouped(sample: Sample, groups: Any, of: Of | str, prediction: Any) -> tuple[Sample, Grouping]:
    """Return the sample with grouped units, and their grouping."""
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


def refuse_many(what: str, number: int, metrics: int, instead: str) -> None:
    """Refuse more estimates than have a joint covariance in memory."""
    if number * metrics > LARGEST:
        raise DataError(
            f"{what} x {metrics} metrics are more than {LARGEST:,} estimates with their covariances: name "
            f"fewer metrics, or {instead}"
        )


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
        found = _estimate_without_links(found, sample, asked)
        found = replace(found, df=np.fmin(found.df, degrees(sample, asked)))
    joint = _expand_result(found, there, metrics, [few_draws(n, 0) for n in effective.tolist()])
    shape = (len(places), len(settings.metrics))
    return ByDomain(sample, tuple(places), settings, joint, effective.reshape(shape))


def _estimate_without_links(found: Estimates, sample: Sample, metrics: Sequence[Metric]) -> Estimates:
    """Return estimates, (k,); those that average over a total of 0 get effective draws of other totals."""
    # such as the Rand index of records without a link, which is 1, with pseudo-draws at the ends of its scale
    unlinked = np.isnan(found.unseen.effective) & np.isfinite(found.mean)
    if not unlinked.any():
        return found
    effective, draws = (effective_draws(sample, metrics, unseen) for unseen in (False, True))
    unseen = replace(
        found.unseen,
        effective=np.where(unlinked, draws, found.unseen.effective),
        reach=np.where(unlinked[:, None], np.array(found.support) - found.mean[:, None], found.unseen.reach),
    )
    return replace(found, df=np.where(unlinked, np.maximum(effective - 1, 1), found.df), unseen=unseen)


def _expand_result(
    result: Estimates, places: IntArray, metrics: Sequence[Metric], reasons: Sequence[str]
) -> Estimates:
    """Return a result of the metrics at `places` as one of all, with NaN and its reason for the others."""
    if len(places) == len(metrics):
        return result

    def fill(axes: Sequence[int], x: Any) -> Any:
        if isinstance(x, tuple):
            return tuple(x[np.searchsorted(places, i)] if i in places else x[0] for i in range(len(metrics)))
        for axis in axes:
            full = np.full((len(metrics), *np.delete(x.shape, axis)), np.nan)
            full[places] = np.moveaxis(x, axis, 0)
            x = np.moveaxis(full, 0, axis)
        return x

    names, support = tuple(m.name for m in metrics), tuple(m.support for m in metrics)
    if result.values is not None:
        return map_components(fill, result, names=names, support=support)
    undefined = np.array(reasons, dtype=object)
    undefined[places] = result.undefined
    fixed = {"names": names, "support": support, "undefined": tuple(undefined)}
    return map_components(fill, result, **fixed)


def balance_domains(sample: Sample, domains: Sequence[Domain], links: Links = Links.SHARED) -> pd.DataFrame:
    """Compare the estimated predicted links of each domain with their known number.

    The estimate is N_g Σwy/Σw records of the domain. Far below the known number, the sample missed large
    clusters that have records of the domain, and its other estimates are unreliable too.
    """
    of_domains = [in_domain(scale_to_records(PREDICTED_LINKS), d, links, known=True) for d in domains]
    fit = fit_sample(sample, of_domains)
    totals = fit.totals
    columns = [InDomain(PREDICTED_LINKS, d, links) for d in domains]
    at = [totals.names.index(column.name) for column in columns]
    with np.errstate(invalid="ignore"):  # a domain without draws
        df = np.maximum(totals.mean[at] ** 2 / np.diagonal(totals.moment)[at] - 1, 1)
    table = compare_with_known(fit.plain, [sample.units.total(c) for c in columns])
    table.insert(2, "df", df)
    return table.set_axis(pd.Index(list(map(str, domains)), name="domain"))


def domains_out_of_balance(
    sample: Sample, domains: Sequence[Domain], links: Links = Links.SHARED, fewest: float = FEWEST
) -> list[str]:
    """Return a clause for each domain whose predicted links are far from their known number.

    A single domain is far if it is over 3 standard errors off. Several have the same chance of a false alarm
    together (Bonferroni), and few draws count by Student's t.
    """
    table = balance_domains(sample, domains, links)
    table = table[table["df"] + 1 >= fewest]
    # three standard errors for one domain, and a smaller chance of each if many are looked at
    limit = -stdtrit(table["df"], ndtr(-3) / max(len(table), 1))
    # sums of exact numbers differ by rounding
    far = abs(table["estimate"] - table["known"]) > limit * table["se"] + 1e-9 * table["known"]
    return [
        f"Out of balance: the sample estimates {row.estimate:,.0f} predicted links of {domain} (se "
        f"{row.se:,.0f}), the prediction holds {row.known:,.0f}"
        for domain, row in table[far].iterrows()
    ]
