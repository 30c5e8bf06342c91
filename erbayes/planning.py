"""Number of units to label, and the design that draws them, for a wished width of the interval.

    forecast(pilot, metrics, {"records": UniformRecords(), "entities": UniformClusters()}).smallest(0.05)

The width of an interval follows from the estimate, from the variance of one draw S², and from the effective
number of draws. S² is the variance, times n, of a total that n draws with unequal chances estimate:

    S² = Σa Σd²/a - (Σd)²

Here d = J y is the linearised effect of a unit on a metric. Units are drawn with probabilities p ∝ a: a = 1
for entities drawn uniformly, a = size for records drawn uniformly, or any function of size. Sums go over all
units. Each sum is a total, which a pilot of *any* design estimates: one pilot forecasts every design. A
population is its own census. Source: Hansen and Hurwitz; Cochran (1977), theorem 9A.1.

A pilot leaves the width in doubt, and so the number of draws n. The bounds of n are n_low and n_high. There
the half width w meets the wish once it is moved by its own standard error:

    log w(n) ± t √(g' C g)

C is the linearised covariance, under the pilot's design, of the estimate, log S² and the log of the effective
number of draws; g is the gradient of log w(n) by these three; t is the quantile of the pilot's degrees of
freedom. For n_high the pilot has the pseudo-draws of `BetaGamma` as well: a pilot that missed the heavy
errors has both a small S² and a small C. Ends of the scale (`extremes`) are held fixed.

Before any label exists a prior gives the populations that may be. The n asked for serves a share of them, its
*assurance*. Source: O'Hagan and Stevens (2001); for lengths of intervals Joseph and Bélisle (1997).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from .arrays import FloatArray, IntArray, Seed, floats, generator
from .columns import Known
from .design import SelectedBySize, UniformClusters, UniformRecords
from .engine.closed_form import taylor
from .errors import DataError, NotIdentified, need, need_object, whole
from .intervals import DEFAULT, check_level
from .metrics import Metric, Wanted, chosen
from .progress import track
from .sample import Sample
from .simulate import Population
from .uncertain import Normal, Tabled, Totals, derivatives, reason_column

Prior = Callable[[np.random.Generator], Population]
Cost = Callable[[FloatArray], FloatArray]
MOST = 10**9
"""Draws at which the search for an answer ends."""


def records(size: FloatArray) -> FloatArray:
    """Number of records, the default cost of labelling a unit."""
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
    """Number of elements to draw from without replacement; None with replacement."""
    frame = design.population if isinstance(design, UniformRecords | UniformClusters) else None
    return None if frame is None else whole(frame, "population")


def _theta(design: SelectedBySize, n: int) -> float:
    if isinstance(design, UniformRecords | UniformClusters) and design.population is not None:
        return design.correction(n, design.population)
    return 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """Widths and costs of n draws of one design.

    Attributes
    ----------
    design : UniformRecords, UniformClusters, BySize or another `SelectedBySize`
    metrics : tuple of Metric, (k,)
    estimate : float array, (k,)
        NaN for a metric that is 0/0 in the pilot.
    variance : float array, (k,)
        S², the variance of one draw.
    effective : float array, (k,)
        Effective draws per draw. They give the degrees of freedom and weigh against the pseudo-draws.
    covariance : float array, (k, 3, 3)
        Of the estimate, log S² and log effective, as the pilot leaves them in doubt: 0 from a census.
    extremes : float array, (k, 2)
        As in `Normal`.
    draws, df : float arrays, (k,)
        Effective number of draws of the pilot, ∞ for a census, and its degrees of freedom (see `Normal`).
    share, reach, price : float arrays, (m,)
        Units that each of the m draws of the pilot stands for: their share in the probability of one draw,
        the probability of each to be found by it (0 if N is not known), and the price of each.
    """

    design: SelectedBySize
    metrics: tuple[Metric, ...]
    estimate: FloatArray
    variance: FloatArray
    effective: FloatArray
    covariance: FloatArray
    extremes: FloatArray
    draws: FloatArray
    df: FloatArray
    share: FloatArray
    reach: FloatArray
    price: FloatArray

    @property
    def doubt(self) -> FloatArray:
        """Relative standard errors of S², (k,): 0 from a census, NaN if the pilot shows no variation."""
        shown = (self.variance > 0) | np.isinf(self.draws)
        return np.where(shown, np.sqrt(self.covariance[:, 1, 1]), np.nan)

    def half_widths(self, n: int, level: float) -> FloatArray:
        """Half widths of the default intervals of n draws, (k,); NaN for a metric that is 0/0.

        Raises
        ------
        DataError
            Fewer than 2 draws, or more than a design without replacement has.
        """
        n, T = whole(n, "the number of draws", 0), _frame(self.design)
        if n < 2 or (T is not None and n > T):
            raise DataError(f"{n} draws: 2 or more are needed" + (f", {T} at most" if T is not None else ""))
        return self._moved(np.full(len(self.metrics), n), level, np.zeros(1))

    def _moved(self, n: IntArray, level: float, t: FloatArray) -> FloatArray:
        """Half widths of n draws, (k,), moved by t of their standard errors on the log scale."""
        scale = np.sqrt(np.where(self.variance > 0, self.variance, 1.0))
        step = 1e-4 * np.column_stack([scale, np.ones((len(n), 2))])
        sides = np.vstack([np.zeros(3), np.eye(3), -np.eye(3)]) if t.any() else np.zeros((1, 3))
        dx, log_S2, log_effective = np.moveaxis(sides[:, None] * step, -1, 0)
        theta, effective = (
            np.array([_theta(self.design, int(x)) for x in n]),
            self.effective * np.exp(log_effective),
        )
        variance = self.variance * np.exp(log_S2) * theta / n
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            fit = Normal(
                tuple(m.name for m in self.metrics),
                self.estimate + dx,
                variance[..., None] * np.eye(len(n)),
                np.maximum((n - 1) * effective, 1.0),
                tuple(m.support for m in self.metrics),
                n * effective / theta,
                self.extremes - dx[..., None],
            )
            half = np.diff(fit.interval(level))[..., 0] / 2
            if len(half) == 1:
                return np.asarray(half[0], dtype=float)
            slope = (np.log(half[1:4]) - np.log(half[4:])).T / (2 * step)
            error = np.sqrt(np.maximum(np.einsum("ki,kij,kj->k", slope, self.covariance, slope), 0.0))
            return np.asarray(np.where(half[0] > 0, half[0] * np.exp(t * error), half[0]))

    def smallest(self, half_width: FloatArray, level: float, t: ArrayLike = 0.0) -> FloatArray:
        """The smallest number of draws that each metric needs, (k,).

        Parameters
        ----------
        half_width : float array, (k,)
        level : float in (0, 1)
        t : float or float array, (k,)
            Standard errors by which the half widths are moved first, on the log scale.

        Returns
        -------
        float array
            ∞ for a metric that no number of draws up to a billion, or of those there are, serves; NaN for one
            that is 0/0, or whose half width has no standard error.
        """
        most, t, k = _frame(self.design) or MOST, np.asarray(t, dtype=float), len(self.metrics)
        low, high = np.full(k, 2), np.full(k, most + 1)
        while (low < high).any():
            n = (low + high) // 2
            enough = self._moved(np.minimum(n, most), level, t) <= half_width
            low, high = np.where(enough, low, n + 1), np.where(enough, n, high)
        lost = np.isnan(self.estimate) | ((t != 0) & np.isnan(self.covariance).any(axis=(1, 2)))
        return np.where(lost, np.nan, np.where(high > most, np.inf, high))

    def bounds(self, half_width: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Bounds of `smallest` by what the pilot leaves in doubt, both (k,).

        The lower one is where the half width meets the wish if it is t standard errors lower. For the upper
        one it is t standard errors higher, and the pilot has the two pseudo-draws of the default interval in
        addition, which stand for errors that no draw has shown.
        """
        t = stdtrit(self.df, (1 + level) / 2)
        high = self._with_pseudo_draws().smallest(half_width, level, t)
        return np.where(np.isnan(high), np.nan, self.smallest(half_width, level, -t)), high

    def _with_pseudo_draws(self) -> Outlook:
        """What it would be if the pilot had the pseudo-draws as well; NaN covariance if S² stays 0."""
        share, ends = DEFAULT.share(self.extremes, self.draws), self.extremes
        estimate = self.estimate + share / (1 + 2 * share) * ends.sum(axis=1)
        square = ends**2 / self.effective[:, None]
        variance = (self.variance + share * square.sum(axis=1)) / (1 + 2 * share) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            kept = np.where(variance > 0, self.variance / variance, np.where(np.isinf(self.draws), 1, np.nan))
            relative = np.where(variance[:, None] > 0, square / variance[:, None], 0.0)
        unit = np.stack([np.ones_like(kept), kept, np.ones_like(kept)], axis=-1)
        moved = np.stack([ends, relative, np.zeros_like(ends)], axis=-1)
        added = np.einsum("k,kei,kej->kij", share / self.draws, moved, moved)
        return replace(
            self,
            estimate=estimate,
            variance=variance,
            covariance=self.covariance * unit[:, :, None] * unit[:, None, :] + added,
            extremes=ends + (self.estimate - estimate)[:, None],
        )

    def cost(self, n: int) -> float:
        """Expected cost of the units that n draws find, each labelled once however often it is drawn.

        It is Σ over units of price × (1 - (1-p)^n). Without replacement a unit of a of the T elements is
        missed with probability (1 - n/T)^a: exact for a = 1, close if n ≪ T.
        """
        T = _frame(self.design)
        with np.errstate(divide="ignore", invalid="ignore"):
            missed = n * np.log1p(-self.reach) if T is None else self.reach * T * np.log1p(-n / T)
            found = np.where(self.reach > 0, -np.expm1(missed) / self.reach, n)
        return float((self.share * self.price * found).sum())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Forecast(Tabled):
    """Widths and costs of n draws, design by design.

    Tables have a column `reason` if a metric is 0/0 in the pilot.

    Attributes
    ----------
    metrics : tuple of Metric, (k,)
    designs : dict, name -> Outlook
    undefined : tuple of str, (k,)
        Why a metric has no forecast; "" for the others.
    """

    metrics: tuple[Metric, ...]
    designs: dict[str, Outlook]
    undefined: tuple[str, ...]

    def _told(self, rows: list[dict[str, object]]) -> pd.DataFrame:
        """Rows of all metrics, in turn, with the reasons."""
        return pd.DataFrame(rows).assign(**reason_column(self.undefined * (len(rows) // len(self.metrics))))

    def table(self) -> pd.DataFrame:
        """Estimate, variance of one draw and its relative standard error, one row per design and metric."""
        return self._told(
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
        """Half widths of the intervals of n draws, one row per design, n and metric.

        Parameters
        ----------
        sizes : sequence of int
            Numbers of draws.
        level : float in (0, 1)

        Returns
        -------
        DataFrame
            design, n, metric, half_width, and cost of n draws.

        Raises
        ------
        DataError
            No list of whole numbers; fewer than 2 draws, or more than a design without replacement has.
        """
        sizes = _numbers_of_draws(sizes)
        return self._told(
            [
                {"design": name, "n": n, "metric": m.name, "half_width": half, "cost": o.cost(n)}
                for name, o in self.designs.items()
                for n in sizes
                for m, half in zip(self.metrics, o.half_widths(n, level), strict=True)
            ]
        )

    def needed(self, half_width: ArrayLike, level: float = 0.95) -> pd.DataFrame:
        """The smallest number of draws, one row per design and metric.

        Parameters
        ----------
        half_width : float or sequence of float, (k,)
            Half the wished width of the interval, of all metrics or of each.
        level : float in (0, 1)

        Returns
        -------
        DataFrame
            design; metric; half_width, the wished one; n; n_low and n_high, its bounds at this level; cost of
            n draws. A bound is missing if it is above a billion or above the draws there are. Both are if all
            that the pilot shows is of one kind.

        Raises
        ------
        DataError
            Half widths that are not above 0 or not one per metric, or that a billion draws do not reach.
        """
        wished, rows = _wished(half_width, len(self.metrics), level), []
        for name, o in self.designs.items():
            answers = (o.smallest(wished, level), *o.bounds(wished, level))
            for m, wish, *of in zip(self.metrics, wished, *answers, strict=True):
                n, low, high = (int(x) if np.isfinite(x) else None for x in of)
                if np.isinf(of[0]):
                    raise DataError(f"{m.name}, {name}: {MOST:,} draws do not reach a half width of {wish:g}")
                row = {
                    "design": name,
                    "metric": m.name,
                    "half_width": wish,
                    "n": n,
                    "n_low": low,
                    "n_high": high,
                }
                rows.append(row | {"cost": np.nan if n is None else o.cost(n)})
        whole_numbers = {
            "n": "Int64" if any(self.undefined) else "int64",
            "n_low": "Int64",
            "n_high": "Int64",
        }
        return self._told(rows).astype(whole_numbers)

    def smallest(self, half_width: ArrayLike, level: float = 0.95) -> pd.DataFrame:
        """The smallest number of draws that serves all metrics, one row per design, the cheapest first.

        Parameters, columns and errors are those of `needed`. `metric` is the one that asks for most. A metric
        that is 0/0 in the pilot asks for nothing, and `reason` names it.
        """
        table = self.needed(half_width, level)
        most = table.loc[table["n"].astype(float).groupby(table["design"], sort=False).idxmax()]
        lost = [f"{m.name}: {why}" for m, why in zip(self.metrics, self.undefined, strict=True) if why]
        most = most.assign(**reason_column(["; ".join(lost)] * len(most)))
        return most.sort_values("cost", kind="stable", ignore_index=True)


def _wished(half_width: ArrayLike, metrics: int, level: float) -> FloatArray:
    """The half width of each metric."""
    check_level(level)
    wished = floats(half_width, "half widths")
    if wished.shape not in {(), (metrics,)}:
        raise DataError(f"{wished.size} half widths for {metrics} metrics: give 1, or 1 per metric")
    if not (np.isfinite(wished) & (wished > 0)).all():
        raise DataError(f"half widths must be above 0 and finite, not {wished.tolist()}")
    return np.broadcast_to(wished, metrics)


def _numbers_of_draws(sizes: Any) -> Sequence[int]:
    """A list of them, whose members `Outlook.half_widths` checks."""
    need(sizes, Iterable, "sizes are a list of numbers of draws")
    return list(sizes)


def forecast(
    source: Sample | Population,
    metrics: Wanted,
    designs: Mapping[str, SelectedBySize],
    *,
    cost: Cost = records,
) -> Forecast:
    """Forecast of interval widths and costs, from a pilot sample or a population whose truth is known.

    Parameters
    ----------
    source : Sample or Population
        A pilot of any design; or a synthetic or real population, which leaves nothing in doubt.
    metrics : Metric or str, or several
        Objects of `erbayes.metrics`, or names as tables print them.
    designs : mapping, name -> UniformRecords, UniformClusters, BySize or another `SelectedBySize`
        With `population`, without replacement. Their `draws` play no role.
    cost : callable, sizes -> costs
        Cost of labelling units, vectorised; by default their records.

    Returns
    -------
    Forecast
        `.smallest(half_width)` is the answer, `.half_widths(sizes)` the whole curve. A metric that is 0/0 in
        the pilot has NaN and the reason.

    Raises
    ------
    DataError
        No metric, no design, one that cannot be planned (strata, known weights, calibration), a pilot that
        gives no variance, costs that are negative or not finite.
    NotIdentified
        A metric that the pilot does not identify, or every metric 0/0.

    Notes
    -----
    Under the pilot's own design and number of draws the forecast is the pilot's interval, to rounding.

    On seven populations n_low and n_high at level .95 held the n of the census for .95, .95 and .94 of
    pilots with 80, 200 and 400 draws. They hold it less often if a few heavy entities carry a metric and
    the pilot seldom meets one, as under uniform clusters in a population with a heavy tail (see `alarms`).
    There the share fell to .35 in the worst case.

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
    if len(unit) <= variance.lost and not variance.census:
        raise DataError(f"a pilot of {len(unit)} draws gives no variance: label more units")
    size = source.units.size[unit]
    price = np.asarray(cost(size), dtype=float)
    bad = int(np.count_nonzero(~(np.isfinite(price) & (price >= 0))))
    if bad:
        raise DataError(f"costs must be 0 or more and finite; {bad} of {len(price)} are not")
    totals = taylor(source, metrics)
    now = totals.apply(metrics)
    outlooks = {}
    for name, design in designs.items():
        a = design.selection(size, source.units)
        parts = [_of_one_draw(source, totals, m, a) for m in metrics]
        S2, effective, covariance = (np.array(part) for part in zip(*parts, strict=True))
        if not variance.census:
            S2 = S2 * len(unit) / (len(unit) - variance.lost)
        T = _frame(design) or (source.units.population or np.inf) * (w @ a) / (w @ size)
        outlooks[name] = Outlook(
            design,
            metrics,
            now.mean,
            S2,
            effective,
            covariance,
            now.reach,
            np.broadcast_to(np.asarray(now.draws), now.mean.shape),
            now.df,
            w * a / (w @ a),
            np.minimum(a / T, 1.0),
            price,
        )
    return Forecast(metrics, outlooks, now.undefined)


def _of_one_draw(
    source: Sample, totals: Totals, metric: Metric, a: FloatArray
) -> tuple[float, float, FloatArray]:
    """S², effective draws per draw and the covariance of an `Outlook`, if p ∝ a; NaN if the metric is 0/0."""
    w, unit, variance = source.expansion.weight, source.expansion.unit, source.expansion.variance
    with np.errstate(divide="ignore", invalid="ignore"):
        J, H = derivatives(metric.formula, totals.mean[totals.positions(metric)])
    if not np.isfinite(J).all():
        return np.nan, np.nan, np.full((3, 3), np.nan)
    Y = np.column_stack(
        [
            np.zeros(len(unit)) if isinstance(c, Known) else source.units.column(c)[unit]
            for c in metric.columns
        ]
    )
    b = np.sum([coefficient * source.units.column(c)[unit] for c, coefficient in metric.size], axis=0)
    d = Y @ J
    d[np.abs(d) <= 1e-12 * (np.abs(Y) @ np.abs(J))] = 0.0  # what cancels leaves only rounding
    A, B, C, Q, D = w @ a, w @ b, w @ (b**2 / a), w @ (d**2 / a), w @ d
    S2 = float(A * Q - D**2)
    S2 = S2 if S2 > 1e-12 * (A * Q + D**2) else 0.0
    moved = Y @ H  # J follows the totals as well
    dQ = d**2 / a + 2 * moved @ (Y.T @ (w * d / a))
    dS2 = Q * a + A * dQ - 2 * D * (d + moved @ (w @ Y))
    log_S2 = dS2 / S2 if S2 else np.zeros_like(d)
    log_effective = 2 * b / B - a / A - b**2 / (a * C)
    influence = w[:, None] * np.column_stack([d, log_S2, log_effective])
    return S2, float(B**2 / (A * C)), variance.covariance(variance.residuals(influence))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PriorForecast(Tabled):
    """Widths and costs of n draws from populations that a prior holds possible.

    Attributes
    ----------
    metrics : tuple of Metric, (k,)
    populations : tuple of Forecast
        One for each population drawn from the prior, each a census.
    """

    metrics: tuple[Metric, ...]
    populations: tuple[Forecast, ...]

    def outlooks(self) -> dict[str, list[Outlook]]:
        """Outlooks of each design, population by population."""
        return {name: [p.designs[name] for p in self.populations] for name in self.populations[0].designs}

    def table(self) -> pd.DataFrame:
        """Median and central 90 % of each metric under the prior, one row per metric."""
        values = [next(iter(p.designs.values())).estimate for p in self.populations]
        low, median, high = np.quantile(values, [0.05, 0.5, 0.95], axis=0)
        names = [m.name for m in self.metrics]
        return pd.DataFrame({"metric": names, "median": median, "q05": low, "q95": high})

    def half_widths(self, sizes: Sequence[int], level: float = 0.95, assurance: float = 0.8) -> pd.DataFrame:
        """Half widths that the intervals keep to in a share `assurance` of the populations.

        Parameters
        ----------
        sizes : sequence of int
            Numbers of draws.
        level, assurance : float in (0, 1)

        Returns
        -------
        DataFrame
            One row per design, n and metric; cost is the mean over populations.

        Raises
        ------
        DataError
            As `Forecast.half_widths`.
        """
        check_level(assurance, "assurance")
        rows, sizes = [], _numbers_of_draws(sizes)
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
            One row per design, the cheapest first: design; metric, which most often asks for most; n;
            median, the n that serves half of the populations; cost of n draws, the mean over populations.

        Raises
        ------
        DataError
            Half widths that are not above 0 or not one per metric, or that a billion draws do not reach.
        """
        check_level(assurance, "assurance")
        wished, rows = _wished(half_width, len(self.metrics), level), []
        for name, outlooks in self.outlooks().items():
            asked = np.array([o.smallest(wished, level) for o in outlooks])
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
    """Forecast of interval widths and costs before anything is labelled, from populations that may be.

    Parameters
    ----------
    prior : callable, Generator -> Population
        Draws parameters, and then a population: sizes of entities and errors of the prediction
        (`erbayes.simulate`). The population needs as many records as there are, or so many that few entities
        are drawn twice.
    metrics, designs, cost
        As in `forecast`.
    rng : Generator, int or None
        A seed gives the same populations again.
    populations : int
        Number of populations to draw.
    progress : bool
        Show a bar on standard error if it takes over two seconds.

    Returns
    -------
    PriorForecast
        `.table()` shows the metrics under the prior: look at it first. `.smallest(half_width)` is the answer,
        `.half_widths(sizes)` the whole curve.

    Raises
    ------
    DataError
        As `forecast`; fewer than 1 population.
    NotIdentified
        As `forecast`; a metric that is 0/0 in a population.

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
    need_object(prior, "__call__", "prior is a function that draws a Population from a Generator")
    populations = whole(populations, "populations of a prior")
    metrics, rng = chosen(metrics), generator(rng)
    forecasts = tuple(
        forecast(prior(rng), metrics, designs, cost=cost)
        for _ in track(range(populations), populations, "drawing populations", progress)
    )
    for j, metric in enumerate(metrics):
        if lost := sum(bool(f.undefined[j]) for f in forecasts):
            raise NotIdentified(
                f"{metric.name} is 0/0 in {lost} of {populations} populations of the prior: leave the "
                "metric out, or give the populations more records"
            )
    return PriorForecast(metrics, forecasts)
