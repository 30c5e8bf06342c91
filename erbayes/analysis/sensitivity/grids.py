"""Estimates at stated rates of errors of labels, and the rates that would change a verdict."""

from __future__ import annotations

from math import isfinite

import numpy as np
import pandas as pd

from ..._internal.errors import DataError, need, number, whole
from ..._internal.progress import show_progress
from ...labels.annotators.error_models import RATES, check_rates
from ...metrics.definitions import Metric, resolve_metric
from ...metrics.estimates import Estimates
from .imputation import MOST, WithErrors, pool

STEPS = [0.0, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8]
"""Rates between which a tipping point is interpolated. Estimates fall smoothly between them."""
MULTIPLES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0]
"""Multiples of all rates between which a tipping point is interpolated."""


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
        A row per point, with columns missed, kept, added or delta; 0 for rates that are not there.
    imputations : int
        Imputed labels at each point, 2 or more. All points have the same random numbers, so that differences
        between them are no noise.
    level : float in (0, 1)

    Returns
    -------
    DataFrame
        A row per point and metric: the rates, the estimate, and an interval for the error of drawing.

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
    1     0.2  pairwise-recall      0.38
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
        both = pool(found.imputing.run(rates.loc[[at] * imputations]), found.random).both
        part = both.table(level).rename_axis("metric").reset_index()[["metric", "estimate", "lower", "upper"]]
        parts.append(pd.concat([rates.loc[[at] * len(part)].reset_index(drop=True), part], axis=1))
    return pd.concat(parts, ignore_index=True)


def tipping(
    found: WithErrors, metric: Metric | str, under: float, *, imputations: int = 5, progress: bool = True
) -> pd.DataFrame:
    """Find the smallest rates of errors that bring an estimate under a stated value.

    Each rate is raised alone, with no errors of other kinds, and then all rates of the priors together.

    Parameters
    ----------
    found, imputations
        As in `grid`.
    metric : Metric or str
        A metric of the answer, or the name of another component.
    under : float
        The stated value, in the unit of the metric.

    Returns
    -------
    DataFrame
        A row per rate, and one for the multiple of `all`: the `tipping_point`, NaN if no rate that is tried
        brings the metric under the value, and the mean of the rate by the priors.

    Examples
    --------
    >>> from functools import partial
    >>> import erbayes as eb
    >>> prediction, labels = {i: i // 3 for i in range(240)}, {i: i // 4 for i in range(120)}
    >>> answer = partial(eb.estimate, prediction, metrics="pairwise-recall")
    >>> annotator = eb.labels.Annotator(missed=eb.labels.Beta(2, 18))
    >>> found = eb.with_errors(answer, labels, eb.UniformRecords(), prediction, annotator, rng=1)
    >>> tipping(found, "recall", 0.4).round(3)
            tipping_point  prior_mean
    rate
    missed          0.186       0.108
    kept            0.409       0.000
    added             NaN       0.000
    all             1.797       1.000
    """
    number(under, "under", isfinite, "be a finite number")
    need(found, WithErrors, "a tipping point is of what with_errors returns")
    named = metric if metric in found.random.names else resolve_metric(metric).name
    if named not in found.random.names:
        raise DataError(f"{named} is not among {', '.join(found.random.names)}")
    least, most = found.random.support[found.random.names.index(named)]
    if not least <= under <= most:
        raise DataError(f"under must be from {least:g} to {most:g}, as {named} is, not {under:g}")
    means, steps = found.rates[RATES].mean(), {name: STEPS for name in RATES}
    points = [pd.DataFrame({name: STEPS}) for name in RATES]
    if means.any():
        together = pd.DataFrame(np.outer(MULTIPLES, means), columns=RATES)
        points.append(together.clip(upper=[MOST, MOST, np.inf], axis=1))
        steps["all"] = MULTIPLES
    made = grid(found, pd.concat(points).fillna(0.0), imputations=imputations, progress=progress)
    x, rows = made.loc[made["metric"] == named, "estimate"].to_numpy(), dict[str, tuple[float, float]]()
    for name, along in steps.items():
        tried, x = x[: len(along)], x[len(along) :]
        at, tip = int(np.argmax(np.append(tried < under, True))), np.nan  # where it first falls under
        if at < len(along):
            share = (tried[at - 1] - under) / (tried[at - 1] - tried[at]) if at else 0.0
            tip = along[at - 1] + share * (along[at] - along[at - 1]) if at else 0.0
        rows[name] = float(tip), float(means.get(name, 1.0))
    return pd.DataFrame.from_dict(rows, "index", columns=["tipping_point", "prior_mean"]).rename_axis("rate")
