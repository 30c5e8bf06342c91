"""Metrics by domain: of the records that have one value of a variable, jointly for all values.

Estimates of a domain keep the whole sample, in which other records count 0. The number of draws that fall
into the domain is random, and part of the variance. Weights of draws and sizes of units stay those of whole
units.

Sources: Särndal, Swensson and Wretman (1992), Model Assisted Survey Sampling, chapter 10. Zou and Donner
(2008), Statistics in Medicine 27, 1693-1702 (intervals of differences).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.special import ndtr, stdtrit

from .arrays import FloatArray, IntArray, Seed
from .columns import PREDICTED_LINKS, RECORDS, Between, Column, Domain, InDomain, Known, Links
from .compare import Comparison
from .engine.closed_form import Taylor, columns_of, effects, taylor
from .engine.contract import Counting, Engine, need_engine, need_paired
from .errors import DataError, head, member, need, number
from .grouping import Grouping, Of
from .intervals import Kind, Symmetric, check_level
from .metrics import PER_RECORD, POSITIVE, USUAL, Metric, N, Value, Wanted, chosen
from .sample import Sample, need_sample
from .uncertain import Draws, Normal, Tabled
from .variance import kish

FEWEST = 10.0
"""Effective draws below which an estimate of a domain has no interval."""
LARGEST = 4000
"""Largest number of estimates, domains × metrics, whose covariance is computed."""
PATHS = 10_000
"""Random vectors from which the level of simultaneous intervals is computed."""
NO_DRAW = "no labelled record is in this domain"

Place = Domain | tuple[Domain, Domain]
"""A domain, or two groups whose links with each other count."""


def in_domain(metric: Metric, domain: Place, links: Links = Links.SHARED, *, known: bool = False) -> Metric:
    """Make the metric of a domain, as an object that every engine takes.

    A metric that counts something needs the number N of records of the domain. If that is not known, it is
    estimated as N r_g/r, with r_g and r the estimated records of the domain and of all.

    Parameters
    ----------
    metric : Metric
    domain : Domain, or two of them
        Two are groups whose links with each other are judged, from metrics of links alone.
    links : Links
    known : bool
        True if totals of the domain are known, as `Units.grouped` with a prediction makes them.

    Returns
    -------
    Metric
        Its sample must have units that are grouped by the variable (see `Units.grouped`).

    Raises
    ------
    NotIdentified
        If a metric between two groups is no metric of links.

    Examples
    --------
    >>> import erbayes as eb
    >>> precision = in_domain(eb.metrics.pairwise_precision, Domain("country", ("FR",)))
    >>> [column.name for column in precision.columns]
    ['common_links in country FR', 'predicted_links in country FR']
    """

    def counted(column: Column) -> Column:
        return _counted(column, domain, links)

    formula, columns = metric.formula, list[Column | Known]()
    scaled = []
    for i, column in enumerate(metric.columns):
        if not isinstance(column, Known):
            columns.append(counted(column))
        elif isinstance(domain, tuple) or isinstance(column.column, InDomain):
            raise DataError(f"{metric.name} needs '{column.name}': it has no part between two groups")
        elif column.everyone and links is Links.SHARED:
            columns.append(column)
        elif known or links is Links.INSIDE:
            columns.append(Known(InDomain(column.column, domain, links)))
        else:
            columns += [column, counted(column.column), column.column]
            scaled.append(i)
    if scaled:
        formula = _estimating(formula, len(metric.columns), tuple(scaled))
    return replace(
        metric,
        name=f"{metric.name}, {_text(domain)}",
        columns=tuple(columns),
        formula=formula,
        size=tuple((counted(column), coefficient) for column, coefficient in metric.size),
    )


@lru_cache(10_000)
def _counted(column: Column, domain: Place, links: Links) -> Column:
    """Return a column of a domain. Metrics share it."""
    return Between(column, *domain) if isinstance(domain, tuple) else InDomain(column, domain, links)


@cache
def _estimating(
    formula: Callable[..., Value], arguments: int, scaled: tuple[int, ...]
) -> Callable[..., Value]:
    """Return a formula whose known totals, at the positions `scaled`, are estimated for a domain.

    Each takes three arguments instead of one: the known total of all records, and estimates of that of the
    domain and of all. There is one function per formula, so that it is evaluated for all domains at once.
    """

    def estimating(*x: Value) -> Value:
        left, totals = list(x), []
        for i in range(arguments):
            total = left.pop(0)
            totals.append(total * left.pop(0) / left.pop(0) if i in scaled else total)
        return formula(*totals)

    return estimating


def _text(domain: Place) -> str:
    """Return the text of a domain in tables."""
    return " with ".join(map(str, domain)) if isinstance(domain, tuple) else str(domain)


def simultaneous_level(result: Normal | Draws, level: float) -> float:
    """Return the level of single intervals of which all hold at once at `level`.

    It is 2 Φ(c) - 1. c is the quantile of the largest of |z_1|, ..., |z_k|, normal variables with the
    correlations of the components. Intervals of this level on their own scale are the sup-t band.

    Parameters
    ----------
    result : Normal or Draws
        Components without a standard error above 0 are left out.
    level : float in (0, 1)

    Examples
    --------
    >>> fit = Normal(("a", "b"), np.ones(2), np.eye(2), np.full(2, 9.0), ((0.0, np.inf),) * 2)
    >>> round(simultaneous_level(fit, 0.95), 2)
    0.97
    """
    check_level(level)
    cov = np.atleast_2d(result.cov)
    some = np.flatnonzero(np.nan_to_num(np.diagonal(cov)) > 0)
    if len(some) < 2:
        return level
    sd = np.sqrt(np.diagonal(cov)[some])
    value, vector = np.linalg.eigh(np.nan_to_num(cov[np.ix_(some, some)] / np.outer(sd, sd)))
    real = value > 1e-9 * value.max()
    factor = vector[:, real] * np.sqrt(value[real])
    z = np.random.default_rng(0).standard_normal((PATHS, factor.shape[1])) @ factor.T
    c = np.quantile(np.abs(z).max(axis=1), level)
    return float(max(level, 2 * ndtr(c) - 1))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ByDomain(Tabled):
    """Metrics of several domains, jointly.

    Attributes
    ----------
    sample : Sample
        The sample, with units that are grouped by the variable.
    domains : tuple of Domain, (d,)
        Or pairs of them (see `by_pair`).
    settings : object
        Metrics, variable, links, engine and fewest effective draws, as in `by_domain`.
    joint : Normal or Draws
        All metrics of the first domain, then of the second, and so on, jointly.
    effective : float array, (d, k)
        Effective number of draws of each estimate (Kish), or what the engine counts (`engine.contract`).
    """

    sample: Sample
    domains: tuple[Place, ...]
    settings: _Settings
    joint: Normal | Draws
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
        return [_text(d) for d in self.domains]

    def _at(self, metric: int) -> list[int]:
        """Return the positions of a metric's estimates in `joint`, one per domain."""
        return list(range(metric, len(self.domains) * len(self.metrics), len(self.metrics)))

    def _few(self, effective: FloatArray) -> list[str]:
        """Return the reason not to give an interval for each effective number of draws."""
        if self.sample.expansion.variance.census:
            return [""] * len(effective)
        return [few_draws(n, self.settings.fewest) for n in effective.tolist()]

    def result(self, metric: Metric | str) -> Normal | Draws:
        """Return one metric of all domains, jointly, named by domain.

        Raises
        ------
        DataError
            If it is not among the metrics.
        """
        part = self.joint.part(self._at(self._position(metric)))
        return replace(part, names=tuple(self.names))

    def _position(self, metric: Metric | str) -> int:
        names = [m.name for m in self.metrics]
        wanted = metric if isinstance(metric, str) else metric.name
        if wanted not in names:
            raise DataError(f"these domains have no {wanted!r}; they have {', '.join(names)}")
        return names.index(wanted)

    def table(
        self, level: float = 0.95, kind: Kind | None = None, *, simultaneous: bool = False
    ) -> pd.DataFrame:
        """Return estimates and intervals, one row per domain and metric.

        A row with fewer effective draws than `fewest` has no interval, and its reason.

        Parameters
        ----------
        level : float in (0, 1)
        kind : Kind, optional
            By default that of the engine's results.
        simultaneous : bool
            True for intervals of each metric that hold for all domains at once.
        """
        effective = self.effective.ravel()
        families = [self._at(j) for j in range(len(self.metrics))] if simultaneous else []
        shown = _intervals(self.joint, level, kind, self._few(effective), families).reset_index(drop=True)
        names = np.array([m.name for m in self.metrics], dtype=object)
        shown.insert(0, "domain", np.repeat(np.array(self.names, dtype=object), len(names)))
        shown.insert(1, "metric", np.tile(names, len(self.domains)))
        shown.insert(list(shown.columns).index("lower"), "n_eff", effective)
        return _tidy(shown)

    def differences(
        self, level: float = 0.95, kind: Kind | None = None, *, simultaneous: bool = True
    ) -> pd.DataFrame:
        """Return the difference of every two domains, the later minus the earlier one, by metric.

        Parameters are those of `table`.
        """
        pairs = list(combinations(range(len(self.domains)), 2))
        if not pairs:
            raise DataError(f"differences need two domains or more; {self.variable!r} has one value")
        tables = []
        for j, metric in enumerate(self.metrics):
            fewer = np.array([self.effective[[a, b], j].min() for a, b in pairs])
            names = [f"{self.names[b]} - {self.names[a]}" for a, b in pairs]
            found = _differences(
                self.result(metric), pairs, names, self._few(fewer), level, kind, simultaneous
            )
            found.insert(1, "metric", metric.name)
            tables.append(found)
        return _tidy(pd.concat(tables))

    def against_rest(
        self, level: float = 0.95, kind: Kind | None = None, *, simultaneous: bool = True
    ) -> pd.DataFrame:
        """Return the difference between each domain and all other records, by metric.

        Parameters are those of `table`.
        """
        if len(self.domains) < 2 or any(isinstance(d, tuple) for d in self.domains):
            raise DataError("a comparison with the rest needs two domains or more, of single groups")
        rest = [replace(d, rest=True) for d in self.domains if isinstance(d, Domain)]
        both = _estimated(self.sample, (*self.domains, *rest), self.settings)
        d, tables = len(self.domains), []
        for j, metric in enumerate(self.metrics):
            fewer = np.minimum(both.effective[:d, j], both.effective[d:, j])
            pairs = [(d + i, i) for i in range(d)]
            names = [f"{name} - rest" for name in self.names]
            found = _differences(
                both.result(metric), pairs, names, self._few(fewer), level, kind, simultaneous
            )
            found.insert(1, "metric", metric.name)
            tables.append(found)
        return _tidy(pd.concat(tables))

    def balance(self) -> pd.DataFrame:
        """Compare the estimated predicted links of each domain with their known number.

        See `balance` of this module.

        Raises
        ------
        NotIdentified
            If the number of predicted links by domain is not known.
        """
        return balance(self.sample, self._single, self.settings.links)

    def alarms(self) -> list[str]:
        """Return an alarm for each domain that is out of balance (see `out_of_balance` of this module).

        The list is empty if there is none, or if predicted links by domain are not known.
        """
        if self.sample.units.grouping(self.variable).predicted is None:
            return []
        return [
            f"{alarm}; do not trust intervals of this domain."
            for alarm in out_of_balance(self.sample, self._single, self.settings.links, self.settings.fewest)
        ]

    @property
    def _single(self) -> list[Domain]:
        """Return the domains that are no pairs of groups."""
        return [d for d in self.domains if isinstance(d, Domain)]

    def ratios(self, to: Any, level: float = 0.95, *, simultaneous: bool = True) -> pd.DataFrame:
        """Return the ratio of each domain to one of them, by metric, with intervals on the log scale.

        Parameters
        ----------
        to : value
            The value of the variable whose domain is divided by.
        level, simultaneous
            As in `table`.

        Raises
        ------
        DataError
            If no domain has that value.
        """
        if str(to) not in self.names:
            raise DataError(f"{self.variable!r} has no domain {to!r}; it has {head(self.names, 10)}")
        base = self.names.index(str(to))
        others = [i for i in range(len(self.domains)) if i != base]
        tables = []
        for j, metric in enumerate(self.metrics):
            fit = _ratios(self.result(metric), others, base)
            fewer = np.minimum(self.effective[others, j], self.effective[base, j])
            kind = Symmetric() if isinstance(fit, Normal) else None
            shown = _intervals(fit, level, kind, self._few(fewer), [range(len(fewer))] * simultaneous)
            shown.insert(0, "metric", metric.name)
            tables.append(shown.rename_axis("ratio").reset_index())
        return _tidy(pd.concat(tables))


def _scaled(y: Value, r: Value, N: Value) -> Value:
    """Return an estimated total as a ratio to records, times their known number."""
    return N * y / r


def balance(sample: Sample, domains: Sequence[Domain], links: Links = Links.SHARED) -> pd.DataFrame:
    """Compare the estimated predicted links of each domain with their known number.

    The estimate is N_g Σwy/Σw records of the domain. Far below the known number, the sample missed large
    clusters that have records of the domain, and its other estimates are doubtful too.

    Parameters
    ----------
    sample : Sample
        With units that are grouped by the variable, which is known for all records.
    domains : sequence of Domain
    links : Links

    Returns
    -------
    DataFrame
        One row per domain. Columns: estimate; se; df, its degrees of freedom, the effective draws of the
        links less 1; known; and ratio, estimate / known.

    Raises
    ------
    NotIdentified
        If the number of predicted links by domain is not known.

    Examples
    --------
    >>> import erbayes as eb
    >>> prediction = {i: i // 4 for i in range(120)}
    >>> units = eb.measure(prediction, {i: i // 3 for i in range(120)})
    >>> half = {i: "AB"[i // 60] for i in range(120)}
    >>> sample = eb.Sample(units.grouped(half, name="half", prediction=prediction), eb.UniformClusters())
    >>> balance(sample, [Domain("half", ("A",))])["known"]
    domain
    A    90.0
    Name: known, dtype: float64
    """
    metric = Metric("links", (PREDICTED_LINKS, RECORDS, N), _scaled, PER_RECORD, POSITIVE, "N Σwy/Σw records")
    of_domains = [in_domain(metric, d, links, known=True) for d in domains]
    fit = taylor(sample, of_domains).apply(of_domains, order=1)
    columns = [InDomain(PREDICTED_LINKS, d, links) for d in domains]
    known = np.array([sample.units.total(column) for column in columns])
    ratio = np.divide(fit.mean, known, out=np.full(len(known), np.nan), where=known > 0)
    with np.errstate(invalid="ignore"):  # a domain without draws
        df = np.maximum(kish(sample.contributions(columns)) - 1, 1)
    table = {"estimate": fit.mean, "se": fit.sd, "df": df, "known": known, "ratio": ratio}
    return pd.DataFrame(table, index=pd.Index(list(map(str, domains)), name="domain"))


def out_of_balance(
    sample: Sample, domains: Sequence[Domain], links: Links = Links.SHARED, fewest: float = FEWEST
) -> list[str]:
    """Return a clause for each domain whose predicted links are far from their known number.

    A single domain is far if it is over 3 standard errors off, as in `erbayes.alarms`. Several domains have
    the same chance of a false alarm together (Bonferroni), and few draws count by Student's t. Domains with
    fewer than `fewest` effective draws have no interval to doubt, and are left out. Other parameters, and
    errors, are those of `balance`.
    """
    table = balance(sample, domains, links)
    table = table[table["df"] + 1 >= fewest]
    limit = -stdtrit(table["df"], ndtr(-3) / max(len(table), 1))
    far = abs(table["estimate"] - table["known"]) > limit * table["se"] + 1e-9 * table["known"]
    return [
        f"Out of balance: the sample estimates {row.estimate:,.0f} predicted links of {domain} (se "
        f"{row.se:,.0f}), the prediction holds {row.known:,.0f}"
        for domain, row in table[far].iterrows()
    ]


def _ratios(fit: Normal | Draws, others: Sequence[int], base: int) -> Normal | Draws:
    """Return components over one of them, by linearisation, or draw by draw."""
    names = tuple(f"{fit.names[i]} / {fit.names[base]}" for i in others)
    with np.errstate(divide="ignore", invalid="ignore"):
        x = fit.estimate
        ratio = x[others] / x[base]
        if isinstance(fit, Draws):
            values = fit.values[..., others] / fit.values[..., [base]]
            return Draws(names, values, (POSITIVE,) * len(names), ratio)
        J = np.zeros((len(others), len(x)))
        J[np.arange(len(others)), others] = 1 / x[base]
        J[:, base] = -ratio / x[base]
        cov = J @ np.nan_to_num(fit.cov) @ J.T
    lost = np.isnan(ratio) | np.isnan(np.diagonal(fit.cov))[others] | np.isnan(fit.cov[base, base])
    cov[lost], cov[:, lost] = np.nan, np.nan
    df = np.minimum(fit.df[others], fit.df[base])
    undefined = fit.undefined or ("",) * len(x)
    why = tuple(undefined[i] or undefined[base] for i in others)
    return Normal(names, ratio, cov, df, (POSITIVE,) * len(names), undefined=why)


def few_draws(effective: float, fewest: float) -> str:
    """Return why an estimate has no interval; "" if it rests on enough effective draws."""
    if np.isnan(effective):
        return NO_DRAW
    if effective >= fewest:
        return ""
    said = f"it rests on {effective:.1f} effective draws, fewer than {fewest:g}"
    return f"{said}: join domains, or see small_areas"


def _intervals(
    fit: Normal | Draws,
    level: float,
    kind: Kind | None,
    few: Sequence[str],
    families: Sequence[Sequence[int]] = (),
) -> pd.DataFrame:
    """Return the table of a result, without the intervals of rows that rest on few draws.

    Intervals of each family of positions hold at once.
    """
    table = fit.table(level, kind)
    refused = np.array([bool(why) for why in few], dtype=bool)
    bounds = table[["lower", "upper"]].to_numpy(copy=True)
    for family in families:
        at = [i for i in family if not refused[i]]
        if at:
            part = fit.part(at)
            bounds[at] = part.interval(simultaneous_level(part, level), kind)
    bounds[refused] = np.nan
    reasons = table["reason"] if "reason" in table else [""] * len(few)
    return table.assign(
        lower=bounds[:, 0],
        upper=bounds[:, 1],
        kind=np.where(refused, "none", table["kind"]),
        reason=[why or reason for why, reason in zip(few, reasons, strict=True)],
    )


def _differences(
    fit: Normal | Draws,
    pairs: Sequence[tuple[int, int]],
    names: Sequence[str],
    few: Sequence[str],
    level: float,
    kind: Kind | None,
    simultaneous: bool,
) -> pd.DataFrame:
    """Return the table of the second minus the first component of each pair.

    Intervals of a `Normal` follow from those of both components (Zou and Donner 2008). Let the components x
    and y have the limits (l, u) and (l', u') and the correlation r. The lower limit of x - y is
    x - y - √((x-l)² + (u'-y)² - 2 r (x-l)(u'-y)). The upper one is
    x - y + √((u-x)² + (y-l')² - 2 r (u-x)(y-l')).
    """
    first, second = np.transpose(pairs)
    C = np.zeros((len(pairs), len(fit.names)))
    C[np.arange(len(pairs)), second], C[np.arange(len(pairs)), first] = 1.0, -1.0
    contrast = fit.contrast(C, names)
    families = [range(len(pairs))] * simultaneous
    table = _intervals(contrast, level, None if isinstance(fit, Normal) else kind, few, families)
    if isinstance(fit, Normal):
        enough = [i for i, why in enumerate(few) if not why]
        used = simultaneous_level(contrast.part(enough), level) if simultaneous and enough else level
        single = fit.table(used, kind)
        down, up = (
            (single["estimate"] - single["lower"]).to_numpy(),
            (single["upper"] - single["estimate"]).to_numpy(),
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            r = np.nan_to_num(fit.cov[first, second] / (fit.sd[first] * fit.sd[second]))
        low = down[second] ** 2 + up[first] ** 2 - 2 * r * down[second] * up[first]
        high = up[second] ** 2 + down[first] ** 2 - 2 * r * up[second] * down[first]
        shown = table["kind"] != "none"
        table["lower"] = (table["estimate"] - np.sqrt(np.maximum(low, 0))).where(shown)
        table["upper"] = (table["estimate"] + np.sqrt(np.maximum(high, 0))).where(shown)
        table["kind"] = [
            f"{name}, of both" if there else "none"
            for name, there in zip(single["kind"].to_numpy()[second], shown, strict=True)
        ]
    return table.rename_axis("difference").reset_index()


def _tidy(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with rows numbered from 0, without a column of reasons if there are none."""
    table = table.reset_index(drop=True)
    return table if table["reason"].any() else table.drop(columns="reason")


def by_domain(
    sample: Sample,
    groups: Any,
    metrics: Wanted = USUAL,
    *,
    of: Of = Of.RECORDS,
    prediction: Any = None,
    name: str | None = None,
    links: Links = Links.SHARED,
    fewest: float = FEWEST,
    engine: Engine | None = None,
    rng: Seed = None,
) -> ByDomain:
    """Estimate metrics of each group of records, jointly.

    Parameters
    ----------
    sample : Sample
        The whole sample. Labels must not be filtered by group.
    groups : Series, mapping, table of two columns, or str
        The value of each labelled record, or of all records. A str is the name of a variable by which the
        units are grouped already (`Units.grouped`).
    metrics : Metric or str, or several
    of : Of
        `Of.ENTITIES` if `groups` gives the value of each labelled entity.
    prediction : memberships, optional
        If the variable is known for all its records. Numbers of records by group are then known.
    name : str, optional
        The name of the variable, as in `Units.grouped`.
    links : Links
        `Links.SHARED`: a link counts half for each of its records. `Links.INSIDE`: both records must be in
        the group, which needs `prediction` unless predicted clusters were sampled.
    fewest : float
        Effective draws below which an estimate has no interval.
    engine : Engine, optional
        `Taylor()` by default, or any other that takes the metrics.
    rng : Generator, int or None
        The source of chance of the engine.

    Returns
    -------
    ByDomain
        Groups without a labelled record are in its table, without an estimate.

    Raises
    ------
    DataError
        If labelled records have no value, if no group has a labelled record, or as in `Units.grouped`.
    NotIdentified
        If the sample or the engine cannot estimate a metric of a domain.

    Examples
    --------
    >>> import erbayes as eb
    >>> prediction = {i: i // 4 for i in range(120)}
    >>> units = eb.measure(prediction, {i: i // 3 for i in range(120)})
    >>> sample = eb.Sample(units, eb.UniformClusters())
    >>> country = {i: "FR" if i < 60 else "US" for i in range(120)}
    >>> result = by_domain(sample, country, "pairwise-recall", name="country")
    >>> result.table()[["domain", "metric", "estimate", "n_eff"]].round(2)
      domain           metric  estimate  n_eff
    0     FR  pairwise-recall      0.67   20.0
    1     US  pairwise-recall      0.67   20.0
    """
    need_sample(sample)
    sample, grouping = _grouped(sample, groups, of, prediction, name)
    settings = _Settings(chosen(metrics), grouping.variable, links, fewest, engine or Taylor(), rng)
    return _estimated(sample, tuple(grouping.domains()), settings)


def by_pair(
    sample: Sample,
    groups: Any,
    metrics: Wanted = ("pairwise-precision", "pairwise-recall"),
    *,
    prediction: Any = None,
    name: str | None = None,
    fewest: float = FEWEST,
    engine: Engine | None = None,
    rng: Seed = None,
) -> ByDomain:
    """Estimate metrics of the links between every two groups, and within each, jointly.

    Groups a and b have n_a n_b common links in a piece. The domains are pairs of groups, and add up to all
    links.

    Parameters
    ----------
    sample, groups, prediction, name, fewest, engine, rng
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
    >>> result = by_pair(sample, source, "pairwise-recall", prediction=prediction, name="source")
    >>> result.table()[["domain", "metric", "estimate"]].round(2)
         domain           metric  estimate
    0  A with A  pairwise-recall      0.50
    1  A with B  pairwise-recall      0.75
    2  B with B  pairwise-recall      0.50
    """
    need_sample(sample)
    sample, grouping = _grouped(sample, groups, Of.RECORDS, prediction, name)
    pairs = tuple(combinations_with_replacement(grouping.domains(), 2))
    settings = _Settings(chosen(metrics), grouping.variable, Links.INSIDE, fewest, engine or Taylor(), rng)
    return _estimated(sample, pairs, settings)


def _grouped(
    sample: Sample, groups: Any, of: Of, prediction: Any, name: str | None
) -> tuple[Sample, Grouping]:
    """Return the sample with grouped units, and their grouping."""
    if isinstance(groups, str):
        return sample, sample.units.grouping(groups)
    units = sample.units.grouped(groups, of=of, prediction=prediction, name=name)
    return Sample(units, sample.design, sample.expansion), units.groupings[-1]


@dataclass(frozen=True, slots=True, eq=False)
class _Settings:
    """All that estimates by domain need beside the sample."""

    metrics: tuple[Metric, ...]
    variable: str
    links: Links
    fewest: float
    engine: Engine
    rng: Seed

    def __post_init__(self) -> None:
        number(self.fewest, "fewest effective draws", lambda x: x >= 0, "be 0 or more")
        member(self.links, Links, "links")
        need_engine(self.engine)

    def of_places(self, sample: Sample, places: Sequence[Place]) -> list[Metric]:
        """Return each metric of the first place, then of the second, and so on."""
        if len(places) * len(self.metrics) > LARGEST:
            raise DataError(
                f"{len(places):,} domains x {len(self.metrics)} metrics are more than {LARGEST:,} estimates "
                "with their covariances: name fewer metrics, or join values to classes"
            )
        known = sample.units.grouping(self.variable).predicted is not None
        return [in_domain(m, p, self.links, known=known) for p in places for m in self.metrics]


def _estimated(sample: Sample, places: Sequence[Place], settings: _Settings) -> ByDomain:
    """Return all metrics of all domains, jointly. Domains without a draw are NaN."""
    metrics = settings.of_places(sample, places)
    engine, least = settings.engine, 0.0
    if isinstance(engine, Counting):
        effective, least = engine.effective_draws(sample, metrics), settings.fewest
    else:
        effective = effective_draws(sample, metrics)
    there = np.flatnonzero(effective >= least)
    if np.isnan(effective).all():
        raise DataError(f"no labelled record is in a domain of {settings.variable!r}")
    if not len(there):
        raise DataError(
            f"no domain of {settings.variable!r} has {least:g} draws, which {type(engine).__name__} needs: "
            f"join domains, or set fewest={np.nanmax(effective):g}"
        )
    asked = [metrics[i] for i in there]
    found = engine(sample, asked, settings.rng)
    if isinstance(found, Normal):
        found = replace(found, df=np.fmin(found.df, degrees(sample, asked)))
    joint = _spread(found, there, metrics)
    shape = (len(places), len(settings.metrics))
    return ByDomain(sample, tuple(places), settings, joint, effective.reshape(shape))


def effective_draws(sample: Sample, metrics: Sequence[Metric]) -> FloatArray:
    """Return the effective number of draws of each metric (Kish), (k,); NaN if none is in its domain.

    It is (Σa)²/Σa², with a the contributions of draws to the total that a share averages over. For a count it
    is the smallest of those of all its totals.
    """
    columns, _ = columns_of(metrics)
    at = {column.name: i for i, column in enumerate(columns)}
    Z = sample.contributions(columns)
    size = np.zeros((len(metrics), len(columns)))
    for j, m in enumerate(metrics):
        for column, coefficient in m.size:
            size[j, at[column.name]] = coefficient
    with np.errstate(divide="ignore", invalid="ignore"):
        single, found = kish(Z), kish(np.asarray(csr_array(size) @ Z.T).T)
    for j, m in enumerate(metrics):
        if not np.isfinite(m.support).all():
            found[j] = min([found[j], *(single[at[c.name]] for c in m.columns if c.name in at)])
    return found


def degrees(sample: Sample, metrics: Sequence[Metric]) -> FloatArray:
    """Return the degrees of freedom of standard errors of counts, (k,); infinite for shares.

    A few draws may carry the variance of a count in a domain, such as those of small entities. Its effective
    number of draws does not show this. Let e be the effects of the n draws, less their mean. The relative
    variance of Σe² is about Σe⁴/(Σe²)² - 1/n, and its degrees of freedom are 2 over it. Intervals of shares
    allow for errors that no draw has shown (see `erbayes.BetaGamma`), and keep theirs.

    Parameters
    ----------
    sample : Sample
    metrics : sequence of Metric, (k,)
        Those that are bounded on both sides are shares.

    Notes
    -----
    Source: Satterthwaite (1946), Biometrics Bulletin 2, 110-114, with the observed fourth moment in the place
    of the normal one. For normal effects the degrees of freedom are n.

    Examples
    --------
    >>> import erbayes as eb
    >>> labels = {i: i // 2 if i < 60 else i for i in range(80)}
    >>> sample = eb.Sample(eb.measure({i: i for i in range(80)}, labels), eb.UniformRecords())
    >>> degrees(sample, [eb.metrics.entities, eb.metrics.b3_recall]).round(0)
    array([600.,  inf])
    """
    found = np.full(len(metrics), np.inf)
    counts = [j for j, m in enumerate(metrics) if not np.isfinite(m.support).all()]
    if counts:
        e = effects(sample, [metrics[j] for j in counts])
        e = e - e.mean(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            varied = (e**4).sum(axis=0) / (e**2).sum(axis=0) ** 2 - 1 / len(e)
            found[counts] = np.where(varied > 1e-12, 2 / varied, np.inf)
    return found


def _spread(found: Normal | Draws, there: IntArray, metrics: Sequence[Metric]) -> Normal | Draws:
    """Return a result with NaN for the metrics that it lacks; `there` are the positions of those it has."""
    if len(there) == len(metrics):
        return found
    names, support = tuple(m.name for m in metrics), tuple(m.support for m in metrics)

    def filled(values: FloatArray) -> FloatArray:
        full = np.full((*values.shape[:-1], len(metrics)), np.nan)
        full[..., there] = values
        return full

    if isinstance(found, Draws):
        return Draws(names, filled(found.values), support, filled(found.estimate))
    undefined = np.full(len(metrics), NO_DRAW, dtype=object)
    undefined[there] = found.undefined or ""
    reach = np.zeros((len(metrics), 2))
    reach[there] = found.reach
    effective, df = (filled(np.broadcast_to(x, found.mean.shape)) for x in (found.effective, found.df))
    cov = filled(filled(found.cov).T).T
    return Normal(names, filled(found.mean), cov, df, support, effective, reach, tuple(undefined))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ComparedByDomain(Tabled):
    """Differences of several predictions by domain.

    Attributes
    ----------
    predictions : tuple of str, (p,)
    domains : tuple of Domain, (d,)
    metrics : tuple of Metric, (k,)
    joint : Normal or Draws
        Estimates of the first prediction by domain and metric, then of the second, and so on, jointly.
    effective : float array, (p, d, k)
        Effective number of draws of each estimate.
    census : bool
        True if every unit is labelled.
    fewest : float
    """

    predictions: tuple[str, ...]
    domains: tuple[Domain, ...]
    metrics: tuple[Metric, ...]
    joint: Normal | Draws
    effective: FloatArray
    census: bool
    fewest: float = FEWEST

    def table(
        self, level: float = 0.95, kind: Kind | None = None, *, simultaneous: bool = False
    ) -> pd.DataFrame:
        """Return each prediction minus each earlier one, one row per difference, domain and metric.

        Parameters are those of `ByDomain.table`.
        """
        shape, tables = self.effective.shape, []
        at = np.arange(len(self.joint.names)).reshape(shape)
        for (i, first), (j, second) in combinations(enumerate(self.predictions), 2):
            for k, metric in enumerate(self.metrics):
                both = self.joint.part([*at[i, :, k], *at[j, :, k]])
                d = len(self.domains)
                fit = both.contrast(np.hstack([-np.eye(d), np.eye(d)]), [str(x) for x in self.domains])
                fewer = np.minimum(self.effective[i, :, k], self.effective[j, :, k])
                few = [""] * d if self.census else [few_draws(n, self.fewest) for n in fewer.tolist()]
                shown = _intervals(fit, level, kind, few, [range(d)] * simultaneous)
                shown = shown.rename_axis("domain").reset_index()
                shown.insert(0, "difference", f"{second} - {first}")
                shown.insert(2, "metric", metric.name)
                shown.insert(list(shown.columns).index("lower"), "n_eff", fewer)
                tables.append(shown)
        return _tidy(pd.concat(tables))


def compare_by_domain(
    comparison: Comparison,
    groups: Any,
    metrics: Wanted = USUAL,
    *,
    of: Of = Of.RECORDS,
    predictions: Mapping[str, Any] | None = None,
    name: str | None = None,
    links: Links = Links.SHARED,
    fewest: float = FEWEST,
    engine: Engine | None = None,
    rng: Seed = None,
) -> ComparedByDomain:
    """Compare predictions by domain, with paired standard errors.

    Parameters
    ----------
    comparison : Comparison
        As `erbayes.compare` returns it.
    groups, metrics, of, name, links, fewest, rng
        As in `by_domain`.
    predictions : mapping, name -> memberships, optional
        The predictions, if the variable is known for all their records.
    engine : Engine, optional
        An engine with a method `paired`: `Taylor()` by default.

    Raises
    ------
    DataError
        As `by_domain`, or if the engine has no method `paired`.

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
    given = predictions or {}
    samples, grouping = [], None
    for which, sample in zip(comparison.predictions, comparison.samples, strict=True):
        grouped, grouping = _grouped(sample, groups, of, given.get(which), name)
        samples.append(grouped)
    assert grouping is not None  # a comparison has two samples or more
    paired = need_paired(engine or Taylor())
    settings = _Settings(chosen(metrics), grouping.variable, links, fewest, paired, rng)
    counted = samples[0].units.grouping(grouping.variable).counted.sum(axis=1)
    places = [d for d, n in zip(grouping.domains(), counted, strict=True) if n]
    by_metric = settings.of_places(samples[0], places)
    joint = paired.paired(samples, by_metric, rng)
    if isinstance(joint, Normal):
        joint = replace(joint, df=np.fmin(joint.df, np.concatenate([degrees(s, by_metric) for s in samples])))
    shape = (len(samples), len(places), len(settings.metrics))
    effective = np.array([effective_draws(s, by_metric) for s in samples]).reshape(shape)
    census = samples[0].expansion.variance.census
    return ComparedByDomain(
        comparison.predictions, tuple(places), settings.metrics, joint, effective, census, fewest
    )
