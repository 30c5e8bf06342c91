"""The number of units to label, and the design that draws them, for intervals of a required width.

    forecast(pilot, metrics, {"records": UniformRecords(), "entities": UniformClusters()}).smallest(0.05)

The width of an interval follows from the estimate, from the variance of one draw S², and from the effective
number of draws. S² is n times the variance of a total that n draws with unequal probabilities estimate:

    S² = Σa Σd²/a - (Σd)²

Sums run over all units. d = J y is the linearised effect of a unit on a metric. Units are drawn with
probabilities p ∝ a: a = 1 if entities are drawn uniformly, and a = size if records are. Other designs have
another function of size, or of the sizes of predicted clusters. Source: Hansen and Hurwitz (1943); Cochran
(1977), theorem 9A.1.

Each sum is a total, which a pilot of *any* design estimates: one pilot forecasts every design. A population
is its own census.

A pilot estimates the width w with an error, and so the number of draws n. The bounds n_low and n_high are the
numbers at which w has the required value if it is moved by t of its standard errors:

    log w(n) ± t √(g' C g)

C is the linearised covariance, under the pilot's design, of the estimate, log S² and the log of the effective
number of draws. g is the gradient of log w(n) by these three. t is the quantile of the pilot's degrees of
freedom. Ends of the scale (`extremes`) are held fixed. For n_high the pilot also has the pseudo-draws of
`BetaGamma`. A pilot that missed the heavy errors has both a small S² and a small C.

Before any label exists, a prior draws plausible populations. The required n is enough in a share of them,
its *assurance*. Source: O'Hagan and Stevens (2001); for lengths of intervals Joseph and Bélisle (1997).
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
from .columns import RECORDS, Known
from .correction import FEWEST_DRAWS
from .design import ByPredictedSize, SelectedBySize, UniformClusters, UniformRecords
from .design.drawn import unreached
from .engine.closed_form import columns_of, taylor
from .errors import DataError, NotIdentified, need, need_object, number, whole
from .intervals import DEFAULT, Kind, check_level, need_suitable
from .metrics import Metric, Wanted, chosen
from .progress import track
from .sample import Sample
from .simulate import Population
from .uncertain import Normal, Tabled, Totals, derivatives, reason_column

Prior = Callable[[np.random.Generator], Population]
Cost = Callable[[FloatArray], FloatArray]
MOST = 10**9
"""Largest number of draws that a search tries."""
UNREACHED = f"{MOST:,} draws, or all that there are, do not reach its half width"
"""The reason why a plan has no number of draws for a metric."""


def records(size: FloatArray) -> FloatArray:
    """Return the number of records of each unit, the default cost of labelling it."""
    return size


def _need_planned(design: object, name: str) -> None:
    """Raise DataError if the variance of a design is not that of a fixed number of draws by size."""
    if isinstance(design, type):
        need_object(design, "selection", "")
    if isinstance(design, UniformClusters | ByPredictedSize):
        return
    if not isinstance(design, SelectedBySize) or not design.fixed_size or design.without_repeats:
        raise DataError(
            f"{name}: {type(design).__name__} cannot be planned; UniformRecords, UniformClusters, BySize and "
            "ByPredictedSize can, and designs of your own that draw a given number of units with replacement "
            "(SelectedBySize)"
        )


def _chances(
    design: SelectedBySize | ByPredictedSize, source: Sample, metrics: Sequence[Metric]
) -> FloatArray:
    """Return the chance of each unit of the source to be selected by one draw, up to a factor, (units,).

    Raises
    ------
    NotIdentified
        If the design never draws units that a metric needs, or if the source has none of the units that the
        design draws.
    """
    units = source.units
    if isinstance(design, SelectedBySize):
        source.expansion.need_reached(RECORDS)
        return design.selection(units.size, units)
    source.expansion.need_reached(design.chance)
    planned = replace(source.expansion, unreached=unreached(design.undrawn_sizes(units), units))
    for column in columns_of(metrics)[0]:
        planned.need_reached(column)
    return design.chances(units)


def _frame(design: SelectedBySize | ByPredictedSize) -> int | None:
    """Return the number of elements that a design draws from without replacement; None with replacement."""
    frame = design.population if isinstance(design, UniformRecords | UniformClusters) else None
    return None if frame is None else whole(frame, "population")


def _theta(design: SelectedBySize | ByPredictedSize, n: int) -> float:
    """Return the finite-population correction of n draws; 1 with replacement."""
    if isinstance(design, UniformRecords | UniformClusters) and design.population is not None:
        return design.correction(n, design.population)
    return 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """Forecast of interval widths and costs for one design, at any number of draws.

    Attributes
    ----------
    design : UniformRecords, UniformClusters, BySize, ByPredictedSize or another `SelectedBySize`
    metrics : tuple of Metric, (k,)
    estimate : float array, (k,)
        Estimate of each metric; NaN if the metric is 0/0 in the pilot.
    variance : float array, (k,)
        S², the variance of one draw.
    effective : float array, (k,)
        Effective draws per draw. They fix the degrees of freedom, and the influence of the pseudo-draws.
    covariance : float array, (k, 3, 3)
        Covariance of the estimate, log S² and log `effective` under the pilot's design. It is 0 for a census.
    extremes : float array, (k, 2)
        Ends of the scale, as in `Normal`.
    pilot_effective, df : float arrays, (k,)
        Effective number of draws of the pilot, ∞ for a census, and its degrees of freedom (see `Normal`).
    share : float array, (m,)
        Each of the m draws of the pilot stands for some units. This is their share in the probability of one
        draw.
    reach : float array, (m,)
        Probability that one draw selects one given unit of them; 0 if N is not known.
    price : float array, (m,)
        Cost of labelling one of them.
    kind : Kind
        Kind of the planned intervals.
    """

    design: SelectedBySize | ByPredictedSize
    metrics: tuple[Metric, ...]
    estimate: FloatArray
    variance: FloatArray
    effective: FloatArray
    covariance: FloatArray
    extremes: FloatArray
    pilot_effective: FloatArray
    df: FloatArray
    share: FloatArray
    reach: FloatArray
    price: FloatArray
    kind: Kind = DEFAULT

    @property
    def doubt(self) -> FloatArray:
        """Relative standard error of S², (k,): 0 for a census, NaN if the pilot shows no variation."""
        varies = (self.variance > 0) | np.isinf(self.pilot_effective)
        return np.where(varies, np.sqrt(self.covariance[:, 1, 1]), np.nan)

    def half_widths(self, n: int, level: float) -> FloatArray:
        """Return the half widths of the default intervals of n draws.

        Parameters
        ----------
        n : int
            Number of draws, 2 or more.
        level : float in (0, 1)

        Returns
        -------
        float array, (k,)
            NaN for a metric that is 0/0 in the pilot.

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
        """Return half widths of n draws, (k,), moved by t of their standard errors on the log scale."""
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
            half = np.diff(fit.interval(level, self.kind))[..., 0] / 2
            if len(half) == 1:
                return np.asarray(half[0], dtype=float)
            slope = (np.log(half[1:4]) - np.log(half[4:])).T / (2 * step)
            error = np.sqrt(np.maximum(np.einsum("ki,kij,kj->k", slope, self.covariance, slope), 0.0))
            return np.asarray(np.where(half[0] > 0, half[0] * np.exp(t * error), half[0]))

    def smallest(self, half_width: FloatArray, level: float, t: ArrayLike = 0.0) -> FloatArray:
        """Return the smallest number of draws whose intervals have the required half widths.

        Parameters
        ----------
        half_width : float array, (k,)
            Required half width of each metric.
        level : float in (0, 1)
        t : float or float array, (k,)
            Number of standard errors that is first added to the half widths, on the log scale.

        Returns
        -------
        float array, (k,)
            ∞ if a billion draws, or all possible draws of a design without replacement, are not enough. NaN
            for a metric that is 0/0, or whose half width needs a standard error and has none.
        """
        most, t, k = _frame(self.design) or MOST, np.asarray(t, dtype=float), len(self.metrics)
        low, high = np.full(k, 2), np.full(k, most + 1)
        while (low < high).any():
            n = (low + high) // 2
            enough = self._moved(np.minimum(n, most), level, t) <= half_width
            low, high = np.where(enough, low, n + 1), np.where(enough, n, high)
        undefined = np.isnan(self.estimate) | ((t != 0) & np.isnan(self.covariance).any(axis=(1, 2)))
        return np.where(undefined, np.nan, np.where(high > most, np.inf, high))

    def bounds(self, half_width: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds of `smallest` that allow for the error of the pilot.

        The lower bound is the smallest n if half widths are t standard errors lower. The upper bound is the
        smallest n if they are t standard errors higher. For the upper bound the pilot also has the two
        pseudo-draws of the default interval, which stand for errors that no draw has shown.

        Parameters
        ----------
        half_width : float array, (k,)
            Required half width of each metric.
        level : float in (0, 1)

        Returns
        -------
        low, high : float arrays, (k,)
            Values as in `smallest`.
        """
        t = stdtrit(self.df, (1 + level) / 2)
        high = self._with_pseudo_draws().smallest(half_width, level, t)
        return np.where(np.isnan(high), np.nan, self.smallest(half_width, level, -t)), high

    def _with_pseudo_draws(self) -> Outlook:
        """Return the outlook if the pilot had the pseudo-draws too; its covariance is NaN if S² stays 0."""
        share, ends = DEFAULT.share(self.extremes, self.pilot_effective), self.extremes
        estimate = self.estimate + share / (1 + 2 * share) * ends.sum(axis=1)
        square = ends**2 / self.effective[:, None]
        variance = (self.variance + share * square.sum(axis=1)) / (1 + 2 * share) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            kept = np.where(
                variance > 0, self.variance / variance, np.where(np.isinf(self.pilot_effective), 1, np.nan)
            )
            relative = np.where(variance[:, None] > 0, square / variance[:, None], 0.0)
        unit = np.stack([np.ones_like(kept), kept, np.ones_like(kept)], axis=-1)
        moved = np.stack([ends, relative, np.zeros_like(ends)], axis=-1)
        added = np.einsum("k,kei,kej->kij", share / self.pilot_effective, moved, moved)
        return replace(
            self,
            estimate=estimate,
            variance=variance,
            covariance=self.covariance * unit[:, :, None] * unit[:, None, :] + added,
            extremes=ends + (self.estimate - estimate)[:, None],
        )

    def cost(self, n: int) -> float:
        """Return the expected cost of the distinct units of n draws. A unit is labelled and paid for once.

        It is the sum over units of the price times the probability that the unit is drawn once or more:

            Σ price × (1 - (1 - p)^n)

        p is the probability that one draw selects the unit. Without replacement a unit with a of the T
        elements is never drawn with probability (1 - n/T)^a. This is exact if a = 1, and close if n ≪ T.

        Parameters
        ----------
        n : int
            Number of draws.

        Returns
        -------
        float
            In the unit of `price`.
        """
        T = _frame(self.design)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_undrawn = n * np.log1p(-self.reach) if T is None else self.reach * T * np.log1p(-n / T)
            units = np.where(self.reach > 0, -np.expm1(log_undrawn) / self.reach, n)
        return float((self.share * self.price * units).sum())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Forecast(Tabled):
    """Forecast of interval widths and costs for several designs.

    Tables have a column `reason` if a metric is 0/0 in the pilot.

    Attributes
    ----------
    metrics : tuple of Metric, (k,)
    designs : dict, name -> Outlook
    undefined : tuple of str, (k,)
        The reason why a metric has no forecast; "" for the others.
    """

    metrics: tuple[Metric, ...]
    designs: dict[str, Outlook]
    undefined: tuple[str, ...]

    def _with_reasons(self, rows: list[dict[str, object]]) -> pd.DataFrame:
        """Return rows as a table with reasons. Rows are in the order of metrics, repeated for each design."""
        return pd.DataFrame(rows).assign(**reason_column(self.undefined * (len(rows) // len(self.metrics))))

    def table(self) -> pd.DataFrame:
        """Return the estimate and the variance of one draw, one row per design and metric.

        Returns
        -------
        DataFrame
            design; metric; estimate; variance, S²; relative_se, the relative standard error of S².
        """
        return self._with_reasons(
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
        """Return the half widths of intervals of n draws, one row per design, n and metric.

        Parameters
        ----------
        sizes : sequence of int
            Numbers of draws, 2 or more each.
        level : float in (0, 1)

        Returns
        -------
        DataFrame
            design, n, metric, half_width, and cost, the expected cost of n draws.

        Raises
        ------
        DataError
            No list of whole numbers; fewer than 2 draws, or more than a design without replacement has.
        """
        sizes = _numbers_of_draws(sizes)
        return self._with_reasons(
            [
                {"design": name, "n": n, "metric": m.name, "half_width": half, "cost": o.cost(n)}
                for name, o in self.designs.items()
                for n in sizes
                for m, half in zip(self.metrics, o.half_widths(n, level), strict=True)
            ]
        )

    def needed(self, half_width: ArrayLike, level: float = 0.95) -> pd.DataFrame:
        """Return the smallest number of draws with the required half widths, one row per design and metric.

        Parameters
        ----------
        half_width : float or sequence of float, (k,)
            Half the required width of the interval, above 0: of all metrics, or of each.
        level : float in (0, 1)

        Returns
        -------
        DataFrame
            design; metric; half_width, the required one; n; n_low and n_high, its bounds at this level; cost,
            the expected cost of n draws. A bound is missing if it is above a billion, or above the possible
            draws of a design without replacement. Both bounds are missing if the pilot shows no variation. A
            metric that does not reach its half width has no n, and a reason.

        Raises
        ------
        DataError
            Half widths that are not above 0 or not one per metric, or too small for every metric.
        """
        required = _required(half_width, len(self.metrics), level)
        rows: list[dict[str, object]] = []
        reasons: list[str] = []
        for name, o in self.designs.items():
            numbers = np.array([o.smallest(required, level), *o.bounds(required, level)]).T
            for m, half, draws, undefined in zip(
                self.metrics, required, numbers, self.undefined, strict=True
            ):
                reasons.append(UNREACHED if np.isinf(draws[0]) else undefined)
                n, low, high = (int(x) if np.isfinite(x) else None for x in draws)
                row = {"design": name, "metric": m.name, "half_width": half}
                cost = np.nan if n is None else o.cost(n)
                rows.append(row | {"n": n, "n_low": low, "n_high": high, "cost": cost})
        if not any(row["n"] for row in rows):
            widths = ", ".join(f"{half:g}" for half in dict.fromkeys(required.tolist()))
            raise DataError(
                f"{MOST:,} draws do not reach a half width of {widths}, for any metric and design"
            )
        integer = "Int64" if any(reasons) else "int64"
        table = pd.DataFrame(rows).assign(**reason_column(reasons))
        return table.astype({"n": integer, "n_low": "Int64", "n_high": "Int64"})

    def smallest(self, half_width: ArrayLike, level: float = 0.95) -> pd.DataFrame:
        """Return the smallest number of draws that is enough for all metrics, one row per design.

        Parameters and errors are those of `needed`. A metric that does not reach its half width is an error.

        Returns
        -------
        DataFrame
            One row per design, the cheapest first. Columns are those of `needed`: `metric` is the metric that
            needs most draws. A metric that is 0/0 in the pilot needs no draws, and `reason` names it.
        """
        table = self.needed(half_width, level)
        defined = [m.name for m, why in zip(self.metrics, self.undefined, strict=True) if not why]
        unreached = table[table["n"].isna() & table["metric"].isin(defined)]
        if len(unreached):
            first = unreached.iloc[0]
            raise DataError(
                f"{MOST:,} draws of {first.design} do not reach a half width of {first.half_width:g} of "
                f"{first.metric}: leave the metric out, or require less of it"
            )
        most = table.loc[table["n"].astype(float).groupby(table["design"], sort=False).idxmax()]
        reasons = [f"{m.name}: {why}" for m, why in zip(self.metrics, self.undefined, strict=True) if why]
        most = most.assign(**reason_column(["; ".join(reasons)] * len(most)))
        return most.sort_values("cost", kind="stable", ignore_index=True)


def _required(half_width: ArrayLike, metrics: int, level: float) -> FloatArray:
    """Return the required half width of each metric, and check it and the level."""
    check_level(level)
    required = floats(half_width, "half widths")
    if required.shape not in {(), (metrics,)}:
        raise DataError(f"{required.size} half widths for {metrics} metrics: give 1, or 1 per metric")
    if not (np.isfinite(required) & (required > 0)).all():
        raise DataError(f"half widths must be above 0 and finite, not {required.tolist()}")
    return np.broadcast_to(required, metrics)


def _numbers_of_draws(sizes: Any) -> Sequence[int]:
    """Return numbers of draws as a list, whose members `Outlook.half_widths` checks."""
    need(sizes, Iterable, "sizes are a list of numbers of draws")
    return list(sizes)


def forecast(
    source: Sample | Population,
    metrics: Wanted,
    designs: Mapping[str, SelectedBySize | ByPredictedSize],
    *,
    cost: Cost = records,
    kind: Kind = DEFAULT,
) -> Forecast:
    """Forecast interval widths and costs, from a pilot sample or from a population whose truth is known.

    Parameters
    ----------
    source : Sample or Population
        A pilot of any design, or a synthetic or real population, whose forecast has no error.
    metrics : Metric or str, or several
        Objects of `erbayes.metrics`, or names as tables print them.
    designs : mapping, name -> design
        UniformRecords, UniformClusters, BySize, ByPredictedSize or another `SelectedBySize`. One with
        `population` draws without replacement. The `draws` of a design are ignored.
    cost : callable, sizes -> costs
        Cost of labelling units by their sizes, vectorised; by default the number of records.
    kind : Kind
        Kind of interval to plan for, one of those in closed form.

    Returns
    -------
    Forecast
        `.smallest(half_width)` is the answer, and `.half_widths(sizes)` the whole curve. A metric that is 0/0
        in the pilot has NaN and the reason.

    Raises
    ------
    DataError
        No metric or no design; a design that cannot be planned (strata, known weights, calibration); a pilot
        with too few draws for a variance; costs that are negative or not finite.
    NotIdentified
        A metric that the pilot does not identify, or only metrics that are 0/0.

    Notes
    -----
    Under the pilot's own design and number of draws, the forecast is the pilot's interval, up to rounding.

    In tests on seven populations, n_low and n_high at level .95 held the n of the census for 94 or 95 % of
    pilots. The share is lower if a metric depends on a few large entities that most pilots miss. An example
    is uniform clusters with a heavy tail (see `alarms`). In the worst case the share was 35 %.

    Examples
    --------
    >>> from erbayes import UniformClusters, UniformRecords, metrics, simulate
    >>> rng = np.random.default_rng(1)
    >>> people = simulate.simulate(simulate.Zeta(2.5, 30), simulate.Misattribution(0.1), 2000, rng)
    >>> designs = {"entities": UniformClusters(), "records": UniformRecords()}
    >>> plan = forecast(people, [metrics.pairwise_recall], designs)
    >>> plan.smallest(0.05)[["design", "n", "cost"]].round()
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
    estimates = totals.apply(metrics)
    need_suitable(kind, estimates)
    outlooks = {}
    for name, design in designs.items():
        a = _chances(design, source, metrics)[unit]
        parts = [_of_one_draw(source, totals, m, a) for m in metrics]
        S2, effective, covariance = (np.array(part) for part in zip(*parts, strict=True))
        if not variance.census:
            S2 = S2 * len(unit) / (len(unit) - variance.lost)
        T = _frame(design) or (source.units.population or np.inf) * (w @ a) / (w @ size)
        outlooks[name] = Outlook(
            design,
            metrics,
            estimates.mean,
            S2,
            effective,
            covariance,
            estimates.reach,
            np.broadcast_to(np.asarray(estimates.effective), estimates.mean.shape),
            estimates.df,
            w * a / (w @ a),
            np.minimum(a / T, 1.0),
            price,
            kind,
        )
    return Forecast(metrics, outlooks, estimates.undefined)


def _of_one_draw(
    source: Sample, totals: Totals, metric: Metric, a: FloatArray
) -> tuple[float, float, FloatArray]:
    """Return variance, effective and covariance of an `Outlook` if p ∝ a; NaN if the metric is 0/0."""
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
    d[np.abs(d) <= 1e-12 * (np.abs(Y) @ np.abs(J))] = 0.0  # terms that cancel leave only rounding
    per_chance = np.divide(1.0, a, out=np.zeros_like(a), where=a > 0)  # b and d are 0 where a is
    A, B, C, Q, D = w @ a, w @ b, w @ (b**2 * per_chance), w @ (d**2 * per_chance), w @ d
    S2 = float(A * Q - D**2)
    S2 = S2 if S2 > 1e-12 * (A * Q + D**2) else 0.0
    moved = Y @ H  # J depends on the totals too
    dQ = d**2 * per_chance + 2 * moved @ (Y.T @ (w * d * per_chance))
    dS2 = Q * a + A * dQ - 2 * D * (d + moved @ (w @ Y))
    log_S2 = dS2 / S2 if S2 else np.zeros_like(d)
    log_effective = 2 * b / B - a / A - b**2 * per_chance / C
    influence = w[:, None] * np.column_stack([d, log_S2, log_effective])
    return S2, float(B**2 / (A * C)), variance.covariance(variance.residuals(influence))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PriorForecast(Tabled):
    """Forecast of interval widths and costs under a prior: one forecast per plausible population.

    Attributes
    ----------
    metrics : tuple of Metric, (k,)
    populations : tuple of Forecast
        Forecast of each population that was drawn from the prior, as a census.
    """

    metrics: tuple[Metric, ...]
    populations: tuple[Forecast, ...]

    def outlooks(self) -> dict[str, list[Outlook]]:
        """Return the outlooks of each design, one per population."""
        return {name: [p.designs[name] for p in self.populations] for name in self.populations[0].designs}

    def table(self) -> pd.DataFrame:
        """Return the median and the central 90 % of each metric under the prior, one row per metric.

        Returns
        -------
        DataFrame
            metric; median; q05 and q95, quantiles at .05 and .95.
        """
        values = [next(iter(p.designs.values())).estimate for p in self.populations]
        low, median, high = np.quantile(values, [0.05, 0.5, 0.95], axis=0)
        names = [m.name for m in self.metrics]
        return pd.DataFrame({"metric": names, "median": median, "q05": low, "q95": high})

    def half_widths(self, sizes: Sequence[int], level: float = 0.95, assurance: float = 0.8) -> pd.DataFrame:
        """Return half widths that intervals do not exceed in a share `assurance` of the populations.

        Parameters
        ----------
        sizes : sequence of int
            Numbers of draws, 2 or more each.
        level, assurance : float in (0, 1)

        Returns
        -------
        DataFrame
            One row per design, n and metric: design, n, metric, half_width, and cost, the mean over
            populations.

        Raises
        ------
        DataError
            No list of whole numbers; fewer than 2 draws, or more than a design without replacement has; a
            level or an assurance outside (0, 1).
        """
        check_level(assurance, "assurance")
        rows, sizes = [], _numbers_of_draws(sizes)
        for name, outlooks in self.outlooks().items():
            for n in sizes:
                widths = np.array([o.half_widths(n, level) for o in outlooks])
                halves = np.quantile(widths, assurance, axis=0, method="inverted_cdf")
                cost = np.mean([o.cost(n) for o in outlooks])
                rows += [(name, n, m.name, half, cost) for m, half in zip(self.metrics, halves, strict=True)]
        return pd.DataFrame(rows, columns=["design", "n", "metric", "half_width", "cost"])

    def smallest(self, half_width: ArrayLike, level: float = 0.95, assurance: float = 0.8) -> pd.DataFrame:
        """Return the smallest n that is enough for all metrics in a share `assurance` of the populations.

        Parameters
        ----------
        half_width : float or sequence of float, (k,)
            Half the required width of the interval, above 0: of all metrics, or of each.
        level, assurance : float in (0, 1)

        Returns
        -------
        DataFrame
            One row per design, the cheapest first: design; metric, the one that most often needs most draws;
            n; median, the n that is enough in half of the populations; cost of n draws, the mean over
            populations.

        Raises
        ------
        DataError
            Half widths that are not above 0 or not one per metric, or that a billion draws do not reach.
        """
        check_level(assurance, "assurance")
        required, rows = _required(half_width, len(self.metrics), level), []
        for name, outlooks in self.outlooks().items():
            draws = np.array([o.smallest(required, level) for o in outlooks])
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


@dataclass(frozen=True, slots=True)
class Phases:
    """Numbers of draws for cheap and careful labels within a budget (see `phases`).

    Attributes
    ----------
    careful : int
        Number n of draws with careful labels; 10 or more if there are two phases.
    cheap : int
        Number n' of draws with cheap labels, n among them. It is 0 if cheap labels are not worth their cost.
    width : float
        Width of intervals over that of careful labels alone for the same budget. It is at most 1, apart from
        rounding.
    """

    careful: int
    cheap: int
    width: float


def phases(budget: float, correlation: float, *, careful: float, cheap: float) -> Phases:
    """Return the numbers of draws in two phases that make the shortest intervals within a budget.

    The variance of `erbayes.two_phase` is V ((1-ρ²)/n + ρ²/n'), with ρ the correlation of the effects of a
    draw by careful and by cheap labels. The cost is n c + n' c'. The best ratio is

        n'/n = √(c/c' · ρ²/(1-ρ²))

    Cheap labels are not worth their cost unless the variance is less than with careful labels alone.

    Parameters
    ----------
    budget : float
        The cost of all labels.
    correlation : float in [-1, 1]
        ρ, as the table of `erbayes.two_phase` or of a pilot shows it. Below 0 there is no help.
    careful, cheap : float
        Costs c and c' of one draw.

    Returns
    -------
    Phases

    Raises
    ------
    DataError
        If a cost or the budget is not above 0, or if the budget does not pay 2 careful draws.

    Notes
    -----
    Source: Neyman (1938); Cochran (1977), section 12.3. Pseudo-draws and degrees of freedom are not counted.

    Examples
    --------
    >>> phases(1000, 0.9, careful=5, cheap=0.1)
    Phases(careful=155, cheap=2250, width=0.563)
    >>> phases(1000, 0.3, careful=5, cheap=2)
    Phases(careful=200, cheap=0, width=1.0)
    """
    for value, name in ((budget, "the budget"), (careful, "the careful cost"), (cheap, "the cheap cost")):
        number(value, name, lambda x: 0 < x < np.inf, "be above 0 and finite")
    number(correlation, "the correlation", lambda x: -1 <= x <= 1, "lie in [-1, 1]")
    alone = int(budget // careful)
    if alone < 2:
        raise DataError(f"a budget of {budget:g} does not pay 2 careful draws of {careful:g} each: raise it")
    square = max(correlation, 0.0) ** 2
    part = np.sqrt(careful * (1 - square)) + np.sqrt(cheap * square)
    n = max(round(budget * np.sqrt((1 - square) / careful) / part), FEWEST_DRAWS)
    every = int((budget - n * careful) / cheap + 1e-9)
    if every <= n:
        return Phases(alone, 0, 1.0)
    width = float(np.sqrt(alone * ((1 - square) / n + square / every)))
    return Phases(n, every, round(width, 3)) if width < 1 else Phases(alone, 0, 1.0)


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
        (`erbayes.simulate`). The population needs as many records as yours, or so many that few entities are
        drawn twice.
    metrics, designs, cost, kind
        As in `forecast`.
    rng : Generator, int or None
        A generator or its seed. The same seed draws the same populations.
    populations : int
        Number of populations to draw, 1 or more.
    progress : bool
        Show a bar on standard error if it takes over two seconds.

    Returns
    -------
    PriorForecast
        `.table()` shows the metrics under the prior: look at it first. `.smallest(half_width)` is the answer,
        and `.half_widths(sizes)` the whole curve.

    Raises
    ------
    DataError
        Fewer than 1 population, or an error of `forecast`.
    NotIdentified
        A metric that is 0/0 in a population, or an error of `forecast`.

    Examples
    --------
    >>> from erbayes import BySize, UniformClusters, UniformRecords, metrics, simulate
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
