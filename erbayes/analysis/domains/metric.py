"""The metric of a domain: the same formula, of totals that count in the domain alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, lru_cache

from ..._internal.errors import DataError
from ...metrics.columns import Between, Column, Domain, InDomain, Known, Links
from ...metrics.definitions import Metric, Value

Place = Domain | tuple[Domain, ...]
"""A domain, or groups whose links with each other count."""


def in_domain(metric: Metric, domain: Place, links: Links = Links.SHARED, *, known: bool = False) -> Metric:
    """Make the metric of a domain, as an object that every engine takes.

    A metric that counts something needs the number N of records of the domain. If that is not known, it is
    estimated as N r_g/r, with r_g and r the estimated records of the domain and of all.

    Parameters
    ----------
    domain : Domain, or several of them
        Several are groups whose links with each other are judged, from metrics of links alone.
    known : bool
        True if totals of the domain are known, as `Units.grouped` with a prediction makes them.

    Returns
    -------
    Metric
        Its sample must have units that are grouped by the variable (see `Units.grouped`).

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

    formula, columns = metric.formula, list[Column | Known]()
    scaled = []
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
