"""Results of several engines side by side: one tidy table, each interval with its kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from html import escape
from typing import Any, ClassVar, Protocol

import numpy as np
import pandas as pd

from .arrays import FloatArray
from .bootstrap import BCa, Bootstrap
from .errors import DataError, NotIdentified
from .intervals import DEFAULT, Kind, check_level
from .metrics import USUAL, Metric, Wanted, chosen
from .uncertain import EMPTY, Draws, Normal, Tabled


class Engine(Protocol):
    """What metrics are yet to be applied to: `Totals`, or the fit of a model."""

    def apply(self, metrics: Sequence[Metric], /) -> Normal | Draws:
        """The metrics, jointly."""
        ...


class OfDraws(Protocol):
    """A way of turning draws into intervals; `kind` is its name in tables."""

    kind: ClassVar[str]

    def __call__(self, draws: Draws, level: float) -> FloatArray:
        """Intervals, (k, 2)."""
        ...


@dataclass(frozen=True, slots=True)
class EqualTailed:
    """As many draws below the interval as above it."""

    kind: ClassVar[str] = "equal-tailed"

    def __call__(self, draws: Draws, level: float) -> FloatArray:
        return draws.interval(level)


@dataclass(frozen=True, slots=True)
class HighestDensity:
    """The shortest interval, HDI. Needs arviz-stats (the extra `bayes`)."""

    kind: ClassVar[str] = "HDI"

    def __call__(self, draws: Draws, level: float) -> FloatArray:
        return np.asarray(_arviz().hdi(draws.flat, level, axis=0))


@dataclass(frozen=True, slots=True)
class Summary:
    """How results become rows.

    Parameters
    ----------
    level : float in (0, 1)
    kind : Kind
        Of intervals of Normal results; by default the natural one of each metric.
    of_draws : sequence of OfDraws
        A row for each.
    """

    level: float
    kind: Kind
    of_draws: Sequence[OfDraws]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SideBySide(Tabled):
    """What several engines say of the same metrics.

    Attributes
    ----------
    rows : DataFrame
        One row a method, metric and kind of interval: method, metric, estimate, sd, lower, upper, level,
        kind, ess_bulk, r_hat. `kind` is that of a Normal's interval, BCa of a bootstrap's, or that of
        draws. ess_bulk and r_hat are NaN but for draws in several chains.
    lacking : dict, (method, metric) -> str
        What a method does not give, and why. It has no row.
    """

    rows: pd.DataFrame
    lacking: dict[tuple[str, str], str]

    def table(self) -> pd.DataFrame:
        """The rows, metric by metric."""
        return self.rows

    def _left_out(self) -> list[str]:
        methods = dict.fromkeys(method for method, _ in self.lacking)
        return [f"{one} lacks {', '.join(m for who, m in self.lacking if who == one)}" for one in methods]

    def __repr__(self) -> str:
        return "\n".join([Tabled.__repr__(self), *self._left_out()])

    def _repr_html_(self) -> str:
        return Tabled._repr_html_(self) + "".join(f"<p>{escape(line)}</p>" for line in self._left_out())


def side_by_side(
    results: Mapping[str, Engine | Normal | Bootstrap | Draws | pd.Series],
    metrics: Wanted = USUAL,
    *,
    level: float = 0.95,
    kind: Kind = DEFAULT,
    of_draws: Sequence[OfDraws] = (EqualTailed(),),
) -> SideBySide:
    """What several engines say of the same metrics, in one table.

    Parameters
    ----------
    results : mapping, name of the method -> result
        `Totals` or a Bayesian fit, to which the metrics are applied; `Normal`, `Bootstrap` (BCa intervals) or
        `Draws` of metrics, such as a bootstrap's `draws`; a Series of bare estimates, such as `naive`.
    metrics : Metric or str, or several
        Objects of `erbayes.metrics`, or names as tables print them.
    level : float in (0, 1)
    kind : Kind
        Of interval, in closed form.
    of_draws : sequence of OfDraws
        `EqualTailed()` by default; `(EqualTailed(), HighestDensity())` gives a row for each.

    Raises
    ------
    DataError
        No results, or a level outside (0, 1).
    NotIdentified
        A metric that none of the results gives.

    Examples
    --------
    >>> import erbayes as eb
    >>> labels = {1: "x", 2: "x", 3: "y", 4: "z"}
    >>> units = eb.measure({1: "a", 2: "a", 3: "a", 4: "b"}, labels)
    >>> sample, b3 = eb.Sample(units, eb.UniformClusters()), [eb.metrics.b3_precision]
    >>> found = side_by_side({"naive": eb.naive(units, b3), "Taylor": eb.taylor(sample, b3),
    ...                       "jackknife": eb.jackknife(sample, b3)}, b3)
    >>> found.table()[["method", "estimate", "sd", "kind"]].round(3)
          method  estimate     sd   kind
    0      naive     0.667    NaN   none
    1     Taylor     0.667  0.144   Beta
    2  jackknife     0.667  0.128   Beta
    """
    check_level(level)
    metrics = chosen(metrics)
    if not results:
        raise DataError("nothing stands side by side: give at least one result")
    how, tables = Summary(level, kind, of_draws), []
    lacking: dict[tuple[str, str], str] = {}
    for method, result in results.items():
        found, missing = _given(result, metrics)
        tables += [_table(part, how).assign(method=method) for part in found]
        lacking |= {(method, metric): why for metric, why in missing.items()}
    names = [m.name for m in metrics]
    if not tables:
        raise _given_by_none(names, lacking)
    rows = pd.concat(tables).reset_index()
    without = [
        (method, metric) in lacking for method, metric in zip(rows["method"], rows["metric"], strict=True)
    ]
    rows = rows[rows["metric"].isin(names) & ~np.array(without, dtype=bool)]
    nobody = [name for name in names if name not in set(rows["metric"])]
    if nobody:
        raise _given_by_none(nobody, lacking)
    rows = rows.sort_values("metric", key=lambda of: of.map(names.index), kind="stable", ignore_index=True)
    columns = ["method", "metric", "estimate", "sd", "lower", "upper", "level", "kind", "ess_bulk", "r_hat"]
    return SideBySide(rows.assign(level=level)[columns], lacking)


def _given_by_none(names: Sequence[str], lacking: Mapping[tuple[str, str], str]) -> NotIdentified:
    """The error for metrics that no result gives, with the reasons."""
    why = dict.fromkeys(why for (_, metric), why in lacking.items() if metric in names)
    return NotIdentified(f"no result gives {', '.join(names)}: {'; '.join(why)}")


def _given(result: Any, metrics: Sequence[Metric]) -> tuple[list[Any], dict[str, str]]:
    """A result as it is, or metrics applied one by one; names of those lacking, and why."""
    if isinstance(result, pd.Series):
        undefined = {name: EMPTY if np.isnan(x) else "" for name, x in result.items()}
    elif isinstance(result, Bootstrap):
        undefined = dict(zip(result.draws.names, result.draws.reasons, strict=True))
    elif isinstance(result, Normal | Draws):
        undefined = dict(zip(result.names, result.reasons, strict=True))
    else:
        return _applied(result, metrics)
    lacking = {m.name: undefined.get(m.name, "not among its metrics") for m in metrics}
    return [result] if not all(undefined.values()) else [], {
        name: why for name, why in lacking.items() if why
    }


def _applied(engine: Engine, metrics: Sequence[Metric]) -> tuple[list[Normal | Draws], dict[str, str]]:
    found, lacking = [], {}
    for metric in metrics:
        try:
            one = engine.apply([metric])
        except NotIdentified as why:
            lacking[metric.name] = str(why)
            continue
        if why_not := one.reasons[0]:
            lacking[metric.name] = why_not
        else:
            found.append(one)
    return found, lacking


@singledispatch
def _table(result: Any, how: Summary) -> pd.DataFrame:
    """Rows of a result; the index holds metrics."""
    raise DataError(f"{type(result).__name__} is no result of an engine")


@_table.register
def _(result: pd.Series, how: Summary) -> pd.DataFrame:
    return _rows(result.index, result, np.nan, np.full((len(result), 2), np.nan), "none")


@_table.register
def _(result: Normal, how: Summary) -> pd.DataFrame:
    kinds = [how.kind.label(support) for support in result.support]
    return _rows(result.names, result.mean, result.sd, result.interval(how.level, how.kind), kinds)


@_table.register
def _(result: Bootstrap, how: Summary) -> pd.DataFrame:
    return _rows(result.fit.names, result.fit.mean, result.sd, result.interval(how.level), BCa.__name__)


@_table.register
def _(result: Draws, how: Summary) -> pd.DataFrame:
    told: dict[str, Any] = {}
    if len(result.values) > 1:
        told = {
            "ess_bulk": _arviz().ess(result.values, chain_axis=0, draw_axis=1, method="bulk"),
            "r_hat": _arviz().rhat(result.values, chain_axis=0, draw_axis=1),
        }
    parts = [
        _rows(result.names, result.mean, result.sd, of(result, how.level), of.kind).assign(**told)
        for of in how.of_draws
    ]
    return pd.concat(parts)


def _rows(names: Any, estimate: Any, sd: Any, bounds: FloatArray, kind: Any) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "estimate": np.asarray(estimate),
            "sd": sd,
            "lower": bounds[:, 0],
            "upper": bounds[:, 1],
            "kind": kind,
            "ess_bulk": np.nan,
            "r_hat": np.nan,
        },
        index=pd.Index(names, name="metric"),
    )


def _arviz() -> Any:
    try:
        from arviz_stats.base import array_stats
    except ModuleNotFoundError as error:
        raise DataError(
            "highest-density intervals and diagnostics of chains need arviz-stats: "
            "pip install 'erbayes[bayes]'"
        ) from error
    return array_stats
