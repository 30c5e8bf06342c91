"""Rows of tables of domains: the metric of each, its effective draws, and intervals where these suffice.

The metric of a domain has the formula of the metric, of totals that count in the domain alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from .._internal.arrays import FloatArray, IntArray
from .._internal.errors import DataError
from ..design.sample import Sample
from ..engine.fitted import columns_of, fit_sample
from ..metrics.columns import Between, Column, Domain, InDomain, Known, Links
from ..metrics.definitions import Metric, Value, coefficients_of_size
from ..metrics.estimates import EMPTY, Estimates
from ..metrics.intervals import Kind, simultaneous_level
from ..metrics.unseen import count_unseen, kish, map_components

Place = Domain | tuple[Domain, ...]
"""A domain, or groups whose links with each other count."""


def in_domain(metric: Metric, domain: Place, links: Links = Links.SHARED, *, known: bool = False) -> Metric:
    """Make the metric of a domain, as an object that every engine takes.

    A metric that counts something needs the number N of records of the domain. If that is not known, it is
    estimated as N r_g/r, with r_g and r the estimated records of the domain and of all.

    Its sample must have units that are grouped by the variable (see `Units.grouped`).

    Parameters
    ----------
    domain : Domain, or several of them
        Several are groups whose links with each other are judged, from metrics of links alone.
    known : bool
        True if totals of the domain are known, as `Units.grouped` with a prediction makes them.

    Raises
    ------
    NotIdentified
        If a metric between groups is no metric of links.

    Examples
    --------
    >>> import erbayes as eb
    >>> precision = in_domain(eb.metrics.pairwise_precision, Domain("country", ("FR",)))
    >>> [column.name for column in precision.columns]
    ['common_links in country FR', 'predicted_links in country FR']
    """

    def counted(column: Column) -> Column:
        return _restrict_column(column, domain, links)

    formula, columns, scaled = metric.formula, list[Column | Known](), list[int]()
    for i, column in enumerate(metric.columns):
        if not isinstance(column, Known):
            columns.append(counted(column))
        elif isinstance(domain, tuple) or isinstance(column.column, InDomain):
            raise DataError(f"{metric.name} needs '{column.name}': it has no part between groups")
        elif column.everyone and links is Links.SHARED:
            columns.append(column)
        elif known or links is Links.INSIDE:
            columns.append(Known(InDomain(column.column, domain, links)))
        else:
            columns += [column, counted(column.column), column.column]
            scaled.append(i)
    if scaled:
        formula = _estimate_known_totals(formula, len(metric.columns), tuple(scaled))
    return replace(
        metric,
        name=f"{metric.name}, {name_place(domain)}",
        columns=tuple(columns),
        formula=formula,
        size=tuple((counted(column), coefficient) for column, coefficient in metric.size),
    )


@lru_cache(10_000)
def _restrict_column(column: Column, domain: Place, links: Links) -> Column:
    """Return a column of a domain. Metrics share it."""
    return Between(column, domain) if isinstance(domain, tuple) else InDomain(column, domain, links)


# one function per formula, so that it is evaluated for all domains at once
@cache
def _estimate_known_totals(
    formula: Callable[..., Value], arguments: int, scaled: tuple[int, ...]
) -> Callable[..., Value]:
    """Return a formula with three arguments (a total, the domain's and all) for each one in `scaled`."""

    def estimating(*x: Value) -> Value:
        left, totals = list(x), []
        for i in range(arguments):
            total = left.pop(0)
            totals.append(total * left.pop(0) / left.pop(0) if i in scaled else total)
        return formula(*totals)

    return estimating


def name_place(domain: Place) -> str:
    """Return the text of a domain in tables."""
    if not isinstance(domain, tuple):
        return str(domain)
    # sources can be many, and their names too long for a table
    return " with ".join(map(str, domain)) if len(domain) == 2 else f"across {domain[0].variable}"


LARGEST = 4000
"""Largest number of estimates, domains × metrics, since their covariance takes 128 MB then."""
FEWEST = 10.0
"""Effective draws below which an estimate of a domain has no interval.

Fewer give an interval of pseudo-draws mostly; from ten to thirty it covers .935 (benchmarks/domains.md).
"""
NO_DRAW = "no labelled record is in this domain"


def few_draws(effective: float, fewest: float) -> str:
    """Return why an estimate has no interval; "" if it depends on enough effective draws.

    NaN means a domain without a labelled record, and 0 a metric in which none of it counts.
    """
    if np.isnan(effective):
        return NO_DRAW
    if not effective:
        return EMPTY
    if effective >= fewest * (1 - 1e-9):  # a number of equal draws is exact up to rounding
        return ""
    return f"it depends on {effective:.3g} effective draws, fewer than {fewest:g}: join domains"


def effective_draws(sample: Sample, metrics: Sequence[Metric], unseen: bool = False) -> FloatArray:
    """Return the effective number of draws of each metric, (Σa)²/Σa² (Kish), (k,); NaN outside its domain.

    For a count it is the smallest of all its totals. A domain of records without a link has a Rand index,
    though it averages over links: where that total is 0, the largest number of any total counts. If `unseen`,
    it is the number of draws that bound what is unseen.
    """
    columns, draws = columns_of(metrics)[0], sample.expansion
    at = {column.name: i for i, column in enumerate(columns)}
    # a draw that met a large entity again would have met others, so that each counts
    Z = (sample if unseen else sample.count_each()).contributions(columns)
    number = partial(count_unseen, unseen=draws.unseen, repeated=draws.repeated) if unseen else kish
    size = coefficients_of_size(metrics, list(at))
    with np.errstate(divide="ignore", invalid="ignore"):
        single, found = number(Z), number(np.asarray(csr_array(size) @ Z.T).T)
    for j, m in enumerate(metrics):
        if not np.isfinite(m.support).all():
            # a total is known no better than that of its columns with the fewest draws
            found[j] = min([found[j], *(single[at[c.name]] for c in m.columns if c.name in at)])
        # nothing to average over, so that the column with the most draws counts
        elif np.isnan(found[j]):
            found[j] = np.fmax.reduce([single[at[c.name]] for c in m.columns if c.name in at])
    return found


def estimate_without_links(found: Estimates, sample: Sample, metrics: Sequence[Metric]) -> Estimates:
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


def expand_result(
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
    return map_components(fill, result, **{"names": names, "support": support, "undefined": tuple(undefined)})


def degrees(sample: Sample, metrics: Sequence[Metric]) -> FloatArray:
    """Return the degrees of freedom of standard errors of counts, (k,); infinite for shares.

    A few draws may carry the variance of a count in a domain, which its effective number of draws does not
    show. With e the effects of draws less their mean, they are 2/(Σe⁴/(Σe²)² - 1/n).
    """
    found = np.full(len(metrics), np.inf)
    if counts := [j for j, m in enumerate(metrics) if not np.isfinite(m.support).all()]:
        e = fit_sample(sample, [metrics[j] for j in counts]).effects
        e = e - e.mean(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            varied = (e**4).sum(axis=0) / (e**2).sum(axis=0) ** 2 - 1 / len(e)
            found[counts] = np.where(varied > 1e-12, 2 / varied, np.inf)
    return found


def intervals_table(
    rows: Mapping[str, Any],
    fit: Estimates,
    level: float,
    kind: Kind | None,
    few: Sequence[str],
    simultaneous: int = 0,
    n_eff: FloatArray | None = None,
    before: str = "lower",
) -> pd.DataFrame:
    """Return the table of a result after columns `rows`, without intervals of rows that are `few`.

    `simultaneous`: 0, or k if intervals of every k-th row are so; `n_eff`: the effective draws of each row,
    if they are shown, and `before` which column.
    """
    table = fit.table(level, kind).reset_index(drop=True)
    refused = np.array([bool(why) for why in few], dtype=bool)
    ends = ["lower", "upper", *["worst", "best"] * ("worst" in table)]
    for first in range(simultaneous):
        if at := [i for i in range(first, len(refused), simultaneous) if not refused[i]]:
            part = fit.part(at)
            table.loc[at, ends] = part.table(simultaneous_level(part, level), kind)[ends].to_numpy()
    for end in ends:
        table[end] = np.where(refused, np.nan, table[end])
    table["kind"] = np.where(refused, "none", table["kind"])
    table["reason"] = [why or reason for why, reason in zip(few, table.get("reason", few), strict=True)]
    if n_eff is not None:
        table.insert(list(table.columns).index(before), "n_eff", n_eff)
    return pd.concat([pd.DataFrame(rows, table.index), table], axis=1)


def refuse_many(what: str, number: int, metrics: int, instead: str) -> None:
    """Refuse more estimates than have a joint covariance in memory."""
    if number * metrics > LARGEST:
        raise DataError(
            f"{what} x {metrics} metrics are more than {LARGEST:,} estimates with their covariances: name "
            f"fewer metrics, or {instead}"
        )


def tidy(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with rows numbered from 0, without a column of reasons if there are none."""
    table = table.reset_index(drop=True)
    return table if table["reason"].any() else table.drop(columns="reason")
