"""Forecasts before any label exists, from a prior.

A prior draws plausible populations. The required number of draws is enough in a share of them, its
*assurance*. Source: O'Hagan and Stevens (2001); for lengths of intervals Joseph and Bélisle (1997).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ..._internal.arrays import Seed, generator
from ..._internal.errors import DataError, NotIdentified, need_object, whole
from ..._internal.progress import track
from ...design import ByPredictedSize
from ...design.contract import SelectedBySize
from ...metrics.definitions import Metric, Wanted, chosen
from ...metrics.intervals import DEFAULT, Kind, check_level
from ...metrics.uncertain import Tabled
from ...study.populations import Population
from .outlook import MOST, Outlook
from .pilot import Cost, Forecast, forecast, numbers_of_draws, records, required_widths

Prior = Callable[[np.random.Generator], Population]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PriorForecast(Tabled):
    """Forecasts of interval widths and costs under a prior: one per plausible population, as a census."""

    metrics: tuple[Metric, ...]
    populations: tuple[Forecast, ...]

    def outlooks(self) -> dict[str, list[Outlook]]:
        """Return the outlooks of each design, one per population."""
        return {name: [p.designs[name] for p in self.populations] for name in self.populations[0].designs}

    def table(self) -> pd.DataFrame:
        """Return the median and the quantiles q05 and q95 of each metric under the prior."""
        values = [next(iter(p.designs.values())).estimate for p in self.populations]
        low, median, high = np.quantile(values, [0.05, 0.5, 0.95], axis=0)
        names = [m.name for m in self.metrics]
        return pd.DataFrame({"metric": names, "median": median, "q05": low, "q95": high})

    def half_widths(self, sizes: Sequence[int], level: float = 0.95, assurance: float = 0.8) -> pd.DataFrame:
        """Return half widths that intervals do not exceed in a share `assurance` of the populations."""
        check_level(assurance, "assurance")
        rows, sizes = [], numbers_of_draws(sizes)
        for name, outlooks in self.outlooks().items():
            for n in sizes:
                widths = np.array([o.half_widths(n, level) for o in outlooks])
                halves = np.quantile(widths, assurance, axis=0, method="inverted_cdf")
                cost = np.mean([o.cost(n) for o in outlooks])
                rows += [(name, n, m.name, half, cost) for m, half in zip(self.metrics, halves, strict=True)]
        return pd.DataFrame(rows, columns=["design", "n", "metric", "half_width", "cost"])

    def smallest(self, half_width: ArrayLike, level: float = 0.95, assurance: float = 0.8) -> pd.DataFrame:
        """Return the smallest n that is enough for all metrics in a share `assurance` of the populations.

        There is one row per design, the cheapest first, with the metric that most often needs most draws and
        the `median` n. Parameters and errors are those of `Forecast.needed`.
        """
        check_level(assurance, "assurance")
        required, rows = required_widths(half_width, len(self.metrics), level), []
        for name, outlooks in self.outlooks().items():
            draws = np.array([o.smallest(required, level) for o in outlooks])
            # a number that occurs, because a population may need infinitely many draws
            n, median = np.quantile(draws.max(axis=1), [assurance, 0.5], method="inverted_cdf")
            if not np.isfinite(n):
                raise DataError(
                    f"{name}: {MOST:,} draws do not reach these half widths in a share of "
                    f"{assurance:g} of the populations"
                )
            hardest = self.metrics[np.bincount(draws.argmax(axis=1)).argmax()].name
            rows.append((name, hardest, int(n), median, np.mean([o.cost(int(n)) for o in outlooks])))
        table = pd.DataFrame(rows, columns=["design", "metric", "n", "median", "cost"])
        return table.astype({"median": "int64"}).sort_values("cost", kind="stable", ignore_index=True)


def forecast_from_prior(
    prior: Prior,
    metrics: Wanted,
    designs: Mapping[str, SelectedBySize | ByPredictedSize],
    *,
    rng: Seed = None,
    populations: int = 100,
    cost: Cost = records,
    kind: Kind = DEFAULT,
    progress: bool = True,
) -> PriorForecast:
    """Forecast interval widths and costs before anything is labelled, from plausible populations.

    Parameters
    ----------
    prior : callable, Generator -> Population
        Draws parameters, then a population with these sizes of entities and errors of the prediction
        (`erbayes.study.populations`). The population needs as many records as yours, or so many that few
        entities are drawn twice.
    metrics, designs, cost, kind
        As in `forecast`.
    rng : Generator, int or None
    populations : int
        Number of populations to draw, 1 or more.
    progress : bool

    Returns
    -------
    PriorForecast
        `.table()` shows the metrics under the prior: look at it first. `.smallest(half_width)` is the answer,
        and `.half_widths(sizes)` the whole curve.

    Examples
    --------
    >>> from erbayes import UniformClusters, UniformRecords, metrics
    >>> from erbayes.design import BySize
    >>> from erbayes.study import populations as simulate
    >>> def prior(rng):
    ...     wrong = simulate.Misattribution(rng.beta(2, 30))
    ...     return simulate.simulate(simulate.Zeta(rng.uniform(2.2, 2.8), 30), wrong, 2000, rng)
    >>> designs = {"entities": UniformClusters(), "records": UniformRecords(), "root": BySize(np.sqrt)}
    >>> plan = forecast_from_prior(prior, [metrics.pairwise_recall], designs, rng=np.random.default_rng(1))
    >>> plan.smallest(0.05, assurance=0.8)[["design", "n", "median", "cost"]].round()
         design     n  median    cost
    0   records   171     126   495.0
    1      root   459     349   816.0
    2  entities  1653    1128  1503.0
    """
    need_object(prior, "__call__", "prior is a function that draws a Population from a Generator")
    populations = whole(populations, "populations of a prior")
    metrics, rng = chosen(metrics), generator(rng)
    forecasts = tuple(
        forecast(prior(rng), metrics, designs, cost=cost, kind=kind)
        for _ in track(range(populations), populations, "drawing populations", progress)
    )
    for j, metric in enumerate(metrics):
        if undefined := sum(bool(f.undefined[j]) for f in forecasts):
            raise NotIdentified(
                f"{metric.name} is 0/0 in {undefined} of {populations} populations of the prior: leave the "
                "metric out, or give the populations more records"
            )
    return PriorForecast(metrics, forecasts)
