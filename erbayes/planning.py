"""How many units to label, under which design, for a wished width of the interval.

    forecast(pilot, metrics, {"records": UniformRecords(), "entities": UniformClusters()}).smallest(0.05)

With d = J y the linearised effect of a unit on a metric, n draws of probabilities p ∝ a (a = 1: entities
drawn uniformly; a = size: records drawn uniformly; any function of size) give it the variance θ S²/n,

    S² = Σa Σd²/a - (Σd)²,

sums over all units (Hansen and Hurwitz; Cochran 1977, theorem 9A.1). Each sum is a total, which a pilot of
*any* design estimates: one pilot forecasts every design. A population is its own census. Before any label
exists a prior says which populations there may be: n is then asked to serve a share of them, its *assurance*
(O'Hagan and Stevens 2001; of interval lengths: Joseph and Bélisle 1997).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from .arrays import FloatArray, Seed, generator
from .columns import Known
from .design import SelectedBySize, UniformClusters, UniformRecords
from .errors import DataError, NotIdentified, need_object, whole
from .intervals import check_level
from .metrics import Metric, Wanted, chosen
from .progress import track
from .sample import Sample
from .simulate import Population
from .taylor import taylor
from .uncertain import EMPTY, Normal, Tabled, Totals, derivatives

Prior = Callable[[np.random.Generator], Population]
Cost = Callable[[FloatArray], FloatArray]
MOST = 10**9
"""Draws beyond which nobody looks for an answer."""


def records(size: FloatArray) -> FloatArray:
    """The default cost of labelling a unit: its records."""
    return size


def _need_planned(design: object, name: str) -> None:
    """Refuse designs whose variance is not that of n draws by size."""
    if isinstance(design, type):
        need_object(design, "selection", "")
    if isinstance(design, UniformClusters):
        return
    if not isinstance(design, SelectedBySize) or not design.fixed_size or design.without_repeats:
        raise DataError(
            f"{name}: {type(design).__name__} cannot be planned; UniformRecords, UniformClusters and BySize "
            "can, and designs of your own that draw a given number of units with replacement (SelectedBySize)"
        )


def _frame(design: SelectedBySize) -> int | None:
    """Elements to draw from without replacement; None with replacement."""
    frame = design.population if isinstance(design, UniformRecords | UniformClusters) else None
    return None if frame is None else whole(frame, "population")


def _theta(design: SelectedBySize, n: int) -> float:
    if isinstance(design, UniformRecords | UniformClusters) and design.population is not None:
        return design.correction(n, design.population)
    return 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """What n draws of one design will give.

    Attributes
    ----------
    design : UniformRecords, UniformClusters, BySize or another `SelectedBySize`
    metrics : tuple of Metric, (k,)
    estimate : float array, (k,)
    variance : float array, (k,)
        S², of one draw.
    doubt : float array, (k,)
        Relative standard error of S²: 0 from a census, NaN where the pilot shows no variation.
    extremes : float array, (k, 2)
        As in `Normal`.
    effective : float array, (k,)
        Effective draws per draw, which give the degrees of freedom.
    share, reach, price : float arrays, (m,)
        What each draw of the pilot stands for: units that share the probability of one draw, and are each
        found by it with probability `reach` (0 where N is not known) and labelled at this price.
    """

    design: SelectedBySize
    metrics: tuple[Metric, ...]
    estimate: FloatArray
    variance: FloatArray
    doubt: FloatArray
    extremes: FloatArray
    effective: FloatArray
    share: FloatArray
    reach: FloatArray
    price: FloatArray

    def half_widths(self, n: int, level: float, factor: float = 1.0) -> FloatArray:
        """Half widths of the default intervals, (k,), were S² `factor` times as large."""
        n, T = whole(n, "the number of draws", 0), _frame(self.design)
        if n < 2 or (T is not None and n > T):
            raise DataError(f"{n} draws: 2 or more are needed" + (f", {T} at most" if T is not None else ""))
        theta = _theta(self.design, n)
        found = Normal(
            tuple(m.name for m in self.metrics),
            self.estimate,
            np.diag(self.variance * factor * theta / n),
            np.maximum((n - 1) * self.effective, 1.0),
            tuple(m.support for m in self.metrics),
            n * self.effective / theta if theta else np.inf,
            self.extremes,
        )
        return np.asarray(np.diff(found.interval(level))[:, 0] / 2)

    def smallest(self, j: int, half_width: float, level: float, factor: float = 1.0) -> int | None:
        """Draws that the j-th metric needs; None where there are none, or S² is in doubt without bounds."""
        if not np.isfinite(factor):
            return None
        draws = range(2, (_frame(self.design) or MOST) + 1)
        at = bisect_left(draws, -half_width, key=lambda n: -float(self.half_widths(n, level, factor)[j]))
        return draws[at] if at < len(draws) else None

    def cost(self, n: int) -> float:
        """Expected cost of the units that n draws find, each labelled once however often it is drawn.

        Σ over units of price × (1 - (1-p)^n). Without replacement a unit of a of the T elements drawn from
        is missed with probability (1 - n/T)^a: exact for a = 1, close where n ≪ T.
        """
        T = _frame(self.design)
        with np.errstate(divide="ignore", invalid="ignore"):
            missed = n * np.log1p(-self.reach) if T is None else self.reach * T * np.log1p(-n / T)
            found = np.where(self.reach > 0, -np.expm1(missed) / self.reach, n)
        return float((self.share * self.price * found).sum())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Forecast(Tabled):
    """What n draws will give, design by design.

    Attributes
    ----------
    metrics : tuple of Metric, (k,)
    designs : dict, name -> Outlook
    df : float
        Degrees of freedom of the pilot.
    """

    metrics: tuple[Metric, ...]
    designs: dict[str, Outlook]
    df: float

    def table(self) -> pd.DataFrame:
        """One row a design and metric: estimate, variance of one draw and its relative standard error."""
        return pd.DataFrame(
            [
                {
                    "design": name,
                    "metric": m.name,
                    "estimate": o.estimate[j],
                    "variance": o.variance[j],
                    "relative_se": o.doubt[j],
                }
                for name, o in self.designs.items()
                for j, m in enumerate(self.metrics)
            ]
        )

    def half_widths(self, sizes: Sequence[int], level: float = 0.95) -> pd.DataFrame:
        """Half the width of the interval that n draws will give, one row a design, n and metric.

        Parameters
        ----------
        sizes : sequence of int
            Numbers of draws.
        level : float in (0, 1)

        Raises
        ------
        DataError
            Fewer than 2 draws, or more than a design without replacement has.
        """
        return pd.DataFrame(
            [
                {"design": name, "n": n, "metric": m.name, "half_width": half, "cost": o.cost(n)}
                for name, o in self.designs.items()
                for n in sizes
                for m, half in zip(self.metrics, o.half_widths(n, level), strict=True)
            ]
        )

    def needed(self, half_width: ArrayLike, level: float = 0.95) -> pd.DataFrame:
        """The smallest number of draws, one row a design and metric.

        Parameters
        ----------
        half_width : float or sequence of float, (k,)
            Half the wished width of the interval, of all metrics or of each.
        level : float in (0, 1)

        Returns
        -------
        DataFrame
            design; metric; half_width, the wished one; n; n_low and n_high, what it would be at the ends of
            a `level` interval of S² (log scale), missing where the pilot shows no variation; cost of n draws.

        Raises
        ------
        DataError
            Half widths that are not above 0 or not one a metric, or that a billion draws do not reach.
        """
        wished = _wished(half_width, len(self.metrics), level)
        rows = []
        for name, outlook in self.designs.items():
            off = np.exp(stdtrit(self.df, (1 + level) / 2) * outlook.doubt)
            for j, wish in enumerate(wished):
                n, low, high = (outlook.smallest(j, wish, level, f) for f in (1.0, 1 / off[j], off[j]))
                metric = self.metrics[j].name
                if n is None:
                    raise DataError(f"{metric}, {name}: {MOST:,} draws do not reach a half width of {wish:g}")
                rows.append((name, metric, wish, n, low, high, outlook.cost(n)))
        columns = ["design", "metric", "half_width", "n", "n_low", "n_high", "cost"]
        return pd.DataFrame(rows, columns=columns).astype({"n_low": "Int64", "n_high": "Int64"})

    def smallest(self, half_width: ArrayLike, level: float = 0.95) -> pd.DataFrame:
        """The smallest number of draws that serves all metrics, one row a design, the cheapest first.

        Parameters, columns and errors as in `needed`; `metric` is the one that asks for most.
        """
        table = self.needed(half_width, level)
        most = table.loc[table.groupby("design", sort=False)["n"].idxmax()]
        return most.sort_values("cost", kind="stable", ignore_index=True)


def _wished(half_width: ArrayLike, metrics: int, level: float) -> list[float]:
    """The half width of each metric."""
    check_level(level)
    try:
        wished = np.asarray(half_width, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(f"half widths must be numbers, not {half_width!r}") from error
    if wished.shape not in {(), (metrics,)}:
        raise DataError(f"{wished.size} half widths for {metrics} metrics: give 1, or 1 each")
    if not (np.isfinite(wished) & (wished > 0)).all():
        raise DataError(f"half widths must be above 0 and finite, not {wished.tolist()}")
    return list(np.broadcast_to(wished, metrics).tolist())


def forecast(
    source: Sample | Population,
    metrics: Wanted,
    designs: Mapping[str, SelectedBySize],
    *,
    cost: Cost = records,
) -> Forecast:
    """What n draws will tell of `metrics`, from a pilot sample or from a population whose truth is known.

    Parameters
    ----------
    source : Sample or Population
        A pilot of any design; or a synthetic or real population, which leaves no doubt about S².
    metrics : Metric or str, or several
        Objects of `erbayes.metrics`, or names as tables print them.
    designs : mapping, name -> UniformRecords, UniformClusters, BySize or another `SelectedBySize`
        With `population`, without replacement. Their `draws` play no role.
    cost : callable, sizes -> costs
        Of labelling units, vectorised; by default their records.

    Returns
    -------
    Forecast
        `.smallest(half_width)` is the answer, `.half_widths(sizes)` the whole curve.

    Raises
    ------
    DataError
        No metric, no design, one that cannot be planned (strata, known weights, calibration), a pilot that
        gives no variance, costs that are negative or not finite.
    NotIdentified
        A metric that the pilot does not identify.

    Notes
    -----
    Under the pilot's own design and number of draws this is the pilot's interval, to rounding. The doubt
    about S² is its linearised standard error under the pilot's design; under a heavy tail that is too small
    as well, since the pilot may have missed the giants (`alarms`).

    Examples
    --------
    >>> from erbayes import UniformClusters, UniformRecords, metrics, simulate
    >>> rng = np.random.default_rng(1)
    >>> people = simulate.simulate(simulate.Zeta(2.5, 30), simulate.Misattribution(0.1), 2000, rng)
    >>> designs = {"entities": UniformClusters(), "records": UniformRecords()}
    >>> found = forecast(people, [metrics.pairwise_recall], designs)
    >>> found.smallest(0.05)[["design", "n", "cost"]].round()
         design     n    cost
    0   records   134   441.0
    1  entities  1543  1479.0
    """
    metrics = chosen(metrics)
    need_object(designs, "items", "designs must map names to designs, such as {'records': UniformRecords()}")
    need_object(cost, "__call__", "cost is a function of sizes")
    if not designs:
        raise DataError(f"nothing to forecast: {len(metrics)} metrics under 0 designs")
    for name, design in designs.items():
        _need_planned(design, name)
    if not isinstance(source, Sample | Population):
        raise DataError(f"a forecast starts from a Sample or a Population, not from {type(source).__name__}")
    if isinstance(source, Population):
        source = Sample(source.units, UniformClusters(population=len(source.units)))
    variance, w, unit = source.expansion.variance, source.expansion.weight, source.expansion.unit
    df = len(unit) - variance.lost
    if df < 1 and not variance.census:
        raise DataError(f"a pilot of {len(unit)} draws gives no variance: label more units")
    size = source.units.size[unit]
    price = np.asarray(cost(size), dtype=float)
    bad = int(np.count_nonzero(~(np.isfinite(price) & (price >= 0))))
    if bad:
        raise DataError(f"costs must be 0 or more and finite; {bad} of {len(price)} are not")
    totals = taylor(source, metrics)
    now = totals.apply(metrics)
    empty = [name for name, why in zip(now.names, now.undefined, strict=True) if why]
    if empty:
        raise NotIdentified(f"{', '.join(empty)}: {EMPTY}")
    found = {}
    for name, design in designs.items():
        a = design.selection(size, source.units)
        S2, doubt, effective = np.transpose([_of_one_draw(source, totals, m, a) for m in metrics])
        if not variance.census:
            S2 = S2 * len(unit) / df
        T = _frame(design) or (source.units.population or np.inf) * (w @ a) / (w @ size)
        found[name] = Outlook(
            design,
            metrics,
            now.mean,
            S2,
            doubt,
            now.reach,
            effective,
            w * a / (w @ a),
            np.minimum(a / T, 1.0),
            price,
        )
    return Forecast(metrics, found, float(max(df, 1)))


def _of_one_draw(source: Sample, totals: Totals, metric: Metric, a: FloatArray) -> tuple[float, float, float]:
    """S², its relative standard error and the effective draws per draw, where p ∝ a."""
    w, unit, variance = source.expansion.weight, source.expansion.unit, source.expansion.variance
    J, H = derivatives(metric.formula, totals.mean[totals.where(metric)])
    Y = np.column_stack(
        [
            np.zeros(len(unit)) if isinstance(c, Known) else source.units.column(c)[unit]
            for c in metric.columns
        ]
    )
    b = np.sum([coefficient * source.units.column(c)[unit] for c, coefficient in metric.size], axis=0)
    effective = (w @ b) ** 2 / ((w @ a) * (w @ (b**2 / a)))
    d = Y @ J
    A, Q, D = w @ a, w @ (d**2 / a), w @ d
    S2 = A * Q - D**2
    if S2 <= 1e-12 * (A * Q + D**2):  # what cancels leaves only rounding
        return 0.0, 0.0 if variance.census else np.nan, float(effective)
    moved = Y @ H  # J follows the totals as well
    dQ = d**2 / a + 2 * moved @ (Y.T @ (w * d / a))
    dS2 = w * (Q * a + A * dQ - 2 * D * (d + moved @ (w @ Y)))
    error = variance.covariance(variance.residuals(dS2[:, None]))[0, 0]
    return float(S2), float(np.sqrt(max(error, 0.0)) / S2), float(effective)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PriorForecast(Tabled):
    """What n draws will give from populations that a prior holds possible.

    Attributes
    ----------
    metrics : tuple of Metric, (k,)
    populations : tuple of Forecast
        One for each population drawn from the prior, each a census.
    """

    metrics: tuple[Metric, ...]
    populations: tuple[Forecast, ...]

    def outlooks(self) -> dict[str, list[Outlook]]:
        """Of each design, population by population."""
        return {name: [p.designs[name] for p in self.populations] for name in self.populations[0].designs}

    def table(self) -> pd.DataFrame:
        """What the prior says of each metric: its median and the ends of its central 90 %."""
        values = [next(iter(p.designs.values())).estimate for p in self.populations]
        low, median, high = np.quantile(values, [0.05, 0.5, 0.95], axis=0)
        names = [m.name for m in self.metrics]
        return pd.DataFrame({"metric": names, "median": median, "q05": low, "q95": high})

    def half_widths(self, sizes: Sequence[int], level: float = 0.95, assurance: float = 0.8) -> pd.DataFrame:
        """Half the width that the interval keeps to in a share `assurance` of the populations.

        Parameters
        ----------
        sizes : sequence of int
            Numbers of draws.
        level, assurance : float in (0, 1)

        Returns
        -------
        DataFrame
            One row a design, n and metric; cost is the mean over populations.
        """
        check_level(assurance, "assurance")
        rows = []
        for name, outlooks in self.outlooks().items():
            for n in sizes:
                widths = np.array([o.half_widths(n, level) for o in outlooks])
                kept = np.quantile(widths, assurance, axis=0, method="inverted_cdf")
                cost = np.mean([o.cost(n) for o in outlooks])
                rows += [(name, n, m.name, half, cost) for m, half in zip(self.metrics, kept, strict=True)]
        return pd.DataFrame(rows, columns=["design", "n", "metric", "half_width", "cost"])

    def smallest(self, half_width: ArrayLike, level: float = 0.95, assurance: float = 0.8) -> pd.DataFrame:
        """The smallest n that serves all metrics in a share `assurance` of the populations.

        Parameters
        ----------
        half_width : float or sequence of float, (k,)
            Half the wished width of the interval, of all metrics or of each.
        level, assurance : float in (0, 1)

        Returns
        -------
        DataFrame
            One row a design, the cheapest first: design; metric, which most often asks for most; n;
            median, the n that serves half of the populations; cost of n draws, the mean over populations.

        Raises
        ------
        DataError
            Half widths that are not above 0 or not one a metric, or that a billion draws do not reach.
        """
        check_level(assurance, "assurance")
        wished, rows = _wished(half_width, len(self.metrics), level), []
        for name, outlooks in self.outlooks().items():
            asked = np.array(
                [[o.smallest(j, wish, level) or np.inf for j, wish in enumerate(wished)] for o in outlooks]
            )
            n, median = np.quantile(asked.max(axis=1), [assurance, 0.5], method="inverted_cdf")
            if not np.isfinite(n):
                raise DataError(
                    f"{name}: {MOST:,} draws do not reach these half widths in a share of "
                    f"{assurance:g} of the populations"
                )
            most = self.metrics[np.bincount(asked.argmax(axis=1)).argmax()].name
            rows.append((name, most, int(n), median, np.mean([o.cost(int(n)) for o in outlooks])))
        table = pd.DataFrame(rows, columns=["design", "metric", "n", "median", "cost"])
        return table.astype({"median": "int64"}).sort_values("cost", kind="stable", ignore_index=True)


def forecast_from_prior(
    prior: Prior,
    metrics: Wanted,
    designs: Mapping[str, SelectedBySize],
    *,
    rng: Seed = None,
    populations: int = 100,
    cost: Cost = records,
    progress: bool = True,
) -> PriorForecast:
    """What n draws will tell of `metrics` where nothing is labelled yet, from populations that may be.

    Parameters
    ----------
    prior : callable, Generator -> Population
        Draws parameters, and then a population: sizes of entities and errors of the prediction
        (`erbayes.simulate`). It should have as many records as there are, or so many that few entities
        are drawn twice.
    metrics, designs, cost
        As in `forecast`.
    rng : Generator, int or None
        A seed gives the same populations again.
    populations : int
        How many are drawn.
    progress : bool
        Show a bar on standard error where it takes over two seconds.

    Returns
    -------
    PriorForecast
        `.table()` shows what the prior says of the metrics: look at it first. `.smallest(half_width)` is
        the answer, `.half_widths(sizes)` the whole curve.

    Raises
    ------
    DataError
        As `forecast`; fewer than 1 population.

    Examples
    --------
    >>> from erbayes import BySize, UniformClusters, UniformRecords, metrics, simulate
    >>> def prior(rng):
    ...     wrong = simulate.Misattribution(rng.beta(2, 30))
    ...     return simulate.simulate(simulate.Zeta(rng.uniform(2.2, 2.8), 30), wrong, 2000, rng)
    >>> designs = {"entities": UniformClusters(), "records": UniformRecords(), "root": BySize(np.sqrt)}
    >>> found = forecast_from_prior(prior, [metrics.pairwise_recall], designs, rng=np.random.default_rng(1))
    >>> found.smallest(0.05, assurance=0.8)[["design", "n", "median", "cost"]].round()
         design     n  median    cost
    0   records   171     126   495.0
    1      root   459     349   816.0
    2  entities  1653    1128  1503.0
    """
    if populations < 1:
        raise DataError(f"{populations} populations: 1 or more are needed")
    metrics, rng = chosen(metrics), generator(rng)
    forecasts = tuple(
        forecast(prior(rng), metrics, designs, cost=cost)
        for _ in track(range(populations), populations, "drawing populations", progress)
    )
    return PriorForecast(metrics, forecasts)
