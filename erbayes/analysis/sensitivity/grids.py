"""Estimates at stated rates of errors of labels, and the rates that would change a verdict."""

from __future__ import annotations

from math import isfinite

import numpy as np
import pandas as pd

from ..._internal.errors import DataError, need, number, whole
from ..._internal.progress import show_progress
from ...labels.annotators.annotator import RATES, check_rates
from ...metrics.definitions import Metric, resolve_metric
from ...metrics.estimates import Estimates
from .imputation import WithErrors, multiply

MOST = 3.0
"""Multiple of rates up to which a tipping point is looked for."""
TRIES = 20
"""Answers by which it is found at most; about six are enough."""
NEAR = 0.25
"""Distance from a tipping point, in shares of it, over which the slope of its error is measured."""


def grid(
    found: WithErrors,
    rates: pd.DataFrame,
    *,
    imputations: int = 20,
    level: float = 0.95,
    progress: bool = True,
) -> pd.DataFrame:
    """Estimate as if annotators had erred at stated rates, without priors.

    Parameters
    ----------
    found : WithErrors
        From `erbayes.with_errors`, with an answer that is estimates, as that of `erbayes.estimate`.
    rates : DataFrame
        A row per point, with columns as `Annotator` has them; rates that are not there are 0, and unsure 1.
    imputations : int
        Imputed labels at each point, 2 or more. All points have the same random numbers, so that differences
        between them are no noise.
    level : float in (0, 1)

    Returns
    -------
    DataFrame
        A row per point and metric: the rates, the estimate, an interval for the error of drawing, and the
        Monte Carlo standard error of its ends.

    See Also
    --------
    erbayes.plots.draw_tipping : contours over two rates.

    Examples
    --------
    >>> from functools import partial
    >>> import erbayes as eb
    >>> prediction, labels = {i: i // 3 for i in range(240)}, {i: i // 4 for i in range(120)}
    >>> answer = partial(eb.estimate, prediction, metrics="pairwise-recall")
    >>> nothing = eb.labels.Annotator()
    >>> found = eb.with_errors(answer, labels, eb.UniformRecords(), prediction, nothing, imputations=2, rng=1)
    >>> points = pd.DataFrame({"missed": [0.0, 0.2]})
    >>> grid(found, points)[["missed", "metric", "estimate"]].round(2)
       missed           metric  estimate
    0     0.0  pairwise-recall      0.44
    1     0.2  pairwise-recall      0.37
    """
    need(found, WithErrors, "a grid is of what with_errors returns")
    need(rates, pd.DataFrame, "rates are a DataFrame with columns such as missed and kept")
    if not isinstance(found.random, Estimates):
        raise DataError(
            "a grid is of estimates: give with_errors an answer that returns them, such as "
            "lambda labels, design: eb.compare(...).subtract('old', 'new')"
        )
    rates, imputations = check_rates(rates.reset_index(drop=True)), whole(imputations, "imputations", 2)
    parts: list[pd.DataFrame] = []
    for at in show_progress(range(len(rates)), len(rates), "grid", progress):
        point = rates.loc[[at] * imputations].reset_index(drop=True)
        part = found.at(point, "a table of rates").table(level=level)
        part = part.loc[part["error"] == "both", ["metric", "estimate", "lower", "upper", "mcse"]]
        parts.append(pd.concat([point.head(len(part)), part.reset_index(drop=True)], axis=1))
    return pd.concat(parts, ignore_index=True)


def tipping(found: WithErrors, metric: Metric | str, under: float, *, progress: bool = True) -> pd.DataFrame:
    """Find how many times as often annotators must err for an estimate to fall under a stated value.

    Each rate is multiplied alone, the others as they were drawn, and then `all` of them. Imputations have the
    random numbers of `found`, so that `found.times` of the tipping point of `all` has the value.

    Parameters
    ----------
    found : WithErrors
        As in `grid`.
    metric : Metric or str
        A metric of the answer, or the name of another component.
    under : float
        The stated value, in the unit of the metric.

    Returns
    -------
    DataFrame
        A row per rate, and one for all: the `tipping_point`, a multiple up to 3, and its Monte Carlo standard
        error `mcse`. Both are NaN if three times the rate does not bring the metric under the value by two
        errors, and 0 if it is under the value without errors of this kind.

    Examples
    --------
    >>> from functools import partial
    >>> import erbayes as eb
    >>> prediction, labels = {i: i // 3 for i in range(240)}, {i: i // 4 for i in range(120)}
    >>> answer = partial(eb.estimate, prediction, metrics="pairwise-recall")
    >>> errors = eb.labels.Annotator(missed=eb.labels.Beta(2, 18))
    >>> found = eb.with_errors(answer, labels, eb.UniformRecords(), prediction, errors, imputations=20, rng=1)
    >>> tipping(found, "recall", 0.4).round(1)
             tipping_point  mcse
    rate
    removed            NaN   NaN
    missed             1.4   0.2
    kept               NaN   NaN
    added              NaN   NaN
    all                1.4   0.2
    """
    number(under, "under", isfinite, "be a finite number")
    need(found, WithErrors, "a tipping point is of what with_errors returns")
    named = metric if metric in found.random.names else resolve_metric(metric).name
    if named not in found.random.names:
        raise DataError(f"{named} is not among {', '.join(found.random.names)}")
    j = found.random.names.index(named)
    least, most = found.random.support[j]
    if not least <= under <= most:
        raise DataError(f"under must be from {least:g} to {most:g}, as {named} is, not {under:g}")
    points, kinds = {}, {name: [name] for name in RATES if found.rates[name].any()} | {"all": RATES}
    for name in show_progress(kinds, len(kinds), "tipping points", progress):
        points[name] = _find_root(found, j, under, kinds[name])
    table = pd.DataFrame.from_dict(points, "index", columns=["tipping_point", "mcse"], dtype=float)
    return table.reindex([*RATES, "all"]).rename_axis("rate")


def _find_root(found: WithErrors, j: int, under: float, names: list[str]) -> tuple[float, float]:
    """Return the multiple of some rates at which component j falls under a value, and its error."""

    def measure(factor: float) -> tuple[float, float]:
        x = np.array([fit.estimate[j] for fit in found.run(multiply(found.rates, factor, names))])
        return float(x.mean()) - under, float(x.std(ddof=1) / np.sqrt(len(x)))

    low, (above, _), high, (below, error) = 0.0, measure(0.0), MOST, measure(MOST)
    if above < 0:
        return 0.0, np.nan
    if below > -2 * error:
        return np.nan, np.nan
    for _ in range(TRIES):  # of false position
        at = low + above * (high - low) / (above - below)
        mean, error = measure(at)
        if abs(mean) <= error / 10:
            break
        low, above, high, below = (low, above, at, mean) if mean < 0 else (at, mean, high, below)
    fall = measure(at * (1 - NEAR))[0] - measure(at * (1 + NEAR))[0]
    return at, error * 2 * NEAR * at / abs(fall)
