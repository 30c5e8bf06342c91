"""Results of several engines side by side: one tidy table, each interval with its kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Protocol

import numpy as np
import pandas as pd

from ..errors import DataError, NotIdentified, need
from ..intervals import Kind, array_stats, check_level, suitable
from ..metrics import USUAL, Metric, Wanted, chosen
from ..uncertain import EMPTY, Draws, Normal, Tabled


class Applied(Protocol):
    """What metrics are yet to be applied to: `Totals`, or the fit of a model."""

    def apply(self, metrics: Sequence[Metric], /) -> Normal | Draws:
        """Return the metrics, jointly."""
        ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SideBySide(Tabled):
    """Results of several engines for the same metrics.

    Attributes
    ----------
    rows : DataFrame
        One row per method, metric and kind of interval: method, metric, estimate, sd, lower, upper, level,
        kind, ess_bulk, r_hat. ess_bulk and r_hat are NaN except for draws in several chains.
    lacking : dict, (method, metric) -> str
        Metrics that a method does not have, and why. They have no row.
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
    results: Mapping[str, Applied | Normal | Draws | pd.Series],
    metrics: Wanted = USUAL,
    *,
    level: float = 0.95,
    kinds: Sequence[Kind] = (),
) -> SideBySide:
    """Put results of several engines for the same metrics into one table.

    Parameters
    ----------
    results : mapping, name of the method -> result
        What an engine returned: `Normal`, `Draws` or `Bootstrap`; `Totals` or a Bayesian fit, to which the
        metrics are applied; a Series of bare estimates, such as `naive`.
    metrics : Metric or str, or several
        Objects of `erbayes.metrics`, or names as tables print them.
    level : float in (0, 1)
    kinds : sequence of Kind
        Each result has one row for every kind that suits it, and its own kind if none does.

    Raises
    ------
    DataError
        No mapping, no results, or a level outside (0, 1).
    NotIdentified
        A metric that none of the results has.

    Examples
    --------
    >>> import erbayes as eb
    >>> labels = {1: "x", 2: "x", 3: "y", 4: "z"}
    >>> units = eb.measure({1: "a", 2: "a", 3: "a", 4: "b"}, labels)
    >>> sample, b3 = eb.Sample(units, eb.UniformClusters()), [eb.metrics.b3_precision]
    >>> found = side_by_side({"naive": eb.naive(units, b3), "Taylor": eb.taylor(sample, b3),
    ...                       "jackknife": eb.jackknife(sample, b3)}, b3)
    >>> found.table()[["method", "estimate", "sd", "kind"]].round(3)
          method  estimate     sd  kind
    0      naive     0.667    NaN  none
    1     Taylor     0.667  0.144  Beta
    2  jackknife     0.667  0.128  Beta
    """
    check_level(level)
    metrics = chosen(metrics)
    asked = {m.name for m in metrics}
    need(results, Mapping, "results must map names of methods to results, such as {'Taylor': taylor(sample)}")
    if not results:
        raise DataError("nothing stands side by side: give at least one result")
    rows: list[pd.DataFrame] = []
    lacking: dict[tuple[str, str], str] = {}
    for method, result in results.items():
        parts, reasons = _parts(result, metrics)
        lacking |= {(method, name): why for name, why in reasons.items()}
        for part in parts:
            table = _rows(part, level, kinds).assign(method=method)
            rows.append(table[[m not in reasons and m in asked for m in table.index]])
    names = [m.name for m in metrics]
    there = {name for part in rows for name in part.index}
    nobody = [name for name in names if name not in there]
    if nobody:
        why = dict.fromkeys(why for (_, metric), why in lacking.items() if metric in nobody)
        raise NotIdentified(f"no result has {', '.join(nobody)}: {'; '.join(why)}")
    table = pd.concat(rows).reset_index()
    table = table.sort_values("metric", key=lambda of: of.map(names.index), kind="stable", ignore_index=True)
    columns = ["method", "metric", "estimate", "sd", "lower", "upper", "level", "kind", "ess_bulk", "r_hat"]
    return SideBySide(table[columns], lacking)


def _parts(result: Any, metrics: Sequence[Metric]) -> tuple[list[Normal | Draws], dict[str, str]]:
    """What a result has of the metrics, and why it lacks the others.

    Raises
    ------
    DataError
        No result of an engine.
    """
    if isinstance(result, pd.Series):
        result = _bare(result)
    if isinstance(result, Normal | Draws):
        reasons = dict(zip(result.names, result.reasons, strict=True))
        lacking = {m.name: reasons.get(m.name, "not among its metrics") for m in metrics}
        return [] if all(reasons.values()) else [result], {name: why for name, why in lacking.items() if why}
    if not hasattr(result, "apply"):
        raise DataError(f"{type(result).__name__} is no result of an engine")
    parts, lacking = [], {}
    for metric in metrics:
        try:
            one = result.apply([metric])
        except NotIdentified as why:
            lacking[metric.name] = str(why)
        else:
            if one.reasons[0]:
                lacking[metric.name] = one.reasons[0]
            else:
                parts.append(one)
    return parts, lacking


def _bare(estimates: pd.Series) -> Normal:
    """Estimates without standard errors."""
    k, values = len(estimates), estimates.to_numpy(dtype=float)
    cov, support = np.full((k, k), np.nan), ((-np.inf, np.inf),) * k
    undefined = tuple(EMPTY if np.isnan(x) else "" for x in values)
    return Normal(tuple(estimates.index), values, cov, np.full(k, np.inf), support, undefined=undefined)


def _rows(part: Normal | Draws, level: float, kinds: Sequence[Kind]) -> pd.DataFrame:
    """One row per metric and kind of interval; the index holds the metric."""
    chains: dict[str, Any] = {"ess_bulk": np.nan, "r_hat": np.nan}
    if isinstance(part, Draws) and len(part.values) > 1:
        chains["ess_bulk"] = array_stats().ess(part.values, chain_axis=0, draw_axis=1, method="bulk")
        chains["r_hat"] = array_stats().rhat(part.values, chain_axis=0, draw_axis=1)
    tables = [part.table(level, kind).assign(**chains) for kind in suitable(kinds, part)]
    return pd.concat(tables).rename(columns={"se": "sd"})
