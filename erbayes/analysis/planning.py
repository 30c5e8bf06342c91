"""The number of units to label, and the design that draws them, for intervals of a required width.

    forecast(pilot, metrics, {"records": UniformRecords(), "entities": UniformClusters()}).table(0.05)

The width of an interval follows from estimate, variance of one draw, and effective number of draws.

    S² = Σa Σd²/a - (Σd)²

S² is the variance of one draw, and n times the variance of a total that n draws with unequal probabilities
estimate (Hansen and Hurwitz 1943; Cochran 1977, theorem 9A.1). Sums run over all units. d = J y is the
linearised effect of a unit on a metric. Units are drawn with probabilities p ∝ a: a = 1 if entities are drawn
uniformly, a = size if records are, and other designs have another function of size, or of the sizes of
predicted clusters. Each sum is a total, which a pilot of *any* design estimates: one pilot forecasts every
design. A population whose truth is known is its own census.

A pilot estimates the width w with an error, and so the number of draws n. The bounds n_low and n_high are the
numbers at which w has the required value t of its standard errors away:

    log w(n) ± t √(g' C g)

C is the linearised covariance, under the pilot's design, of the estimate, log S² and the log of the effective
number of draws, g the gradient of log w(n) by these three, and t the quantile of the pilot's degrees of
freedom. Ends of the scale (`extremes`) are held fixed. For n_high the pilot also has the pseudo-draws of
`BetaGamma`, since one that missed the heavy errors has both a small S² and a small C.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from .._internal import remedies
from .._internal.arrays import FloatArray, IntArray, floats
from .._internal.errors import DataError, Grade, Sentence, need_object, warn_of, whole
from ..design import ByPredictedSize, UniformClusters, UniformRecords
from ..design.contract import SelectedBySize, make_unreached
from ..design.records import draws_records
from ..design.sample import Sample
from ..engine.fitted import Fitted, fit_sample
from ..metrics.columns import RECORDS, Known
from ..metrics.definitions import Metric, MetricLike, resolve_metrics
from ..metrics.estimates import Estimates
from ..metrics.intervals import DEFAULT, Kind, check_level, need_suitable
from ..metrics.tables import Pictured, reason_column
from ..metrics.totals import Totals, derivatives
from ..metrics.unseen import Unseen
from ..study.populations import Population
from ..units.settled import chance_capped, find_heap

MOST = 10**9
"""Largest number of draws that a search tries, which is more than anybody labels."""


def _frame(design: SelectedBySize | ByPredictedSize) -> int | None:
    """Return the number of elements that a design draws from without replacement; None with replacement."""
    elements = design.population if isinstance(design, UniformRecords | UniformClusters) else None
    return None if elements is None else whole(elements, "population")


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """Forecast of interval widths and costs for one design and k metrics, at any number of draws.

    `estimate`, `variance`, `effective` (k,): each metric, the variance S² of one draw, and effective draws
    per draw; `covariance` (k, 3, 3): that of the estimate, log S² and log `effective` under the pilot's
    design; `extremes` (k, 2): `reach` of `Unseen`; `pilot_effective`, `df` (k,): effective draws of the
    pilot, ∞ for a census; `share`, `reach`, `price` (m,): of the units that each of the m draws of the pilot
    stands for, their chance at one draw, that of one of them (0 if N is not known), and the cost of one.
    `once`: None, or if the design counts each unit once, however often it is drawn, columns of these draws,
    each for the units that it stands for, (m, k): squared effects e² of a unit on each metric, Σ e = 0,
    what a unit has of the total that the metric averages over, and the square of this.
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
    once: tuple[FloatArray, ...] | None = None
    kind: Kind = DEFAULT

    def half_widths(self, n: int, level: float) -> FloatArray:
        """Return the half widths of intervals of n draws, (k,), NaN for a metric that is 0/0 in the pilot."""
        n, T = whole(n, "the number of draws", 0), _frame(self.design)
        if n < 2 or (T is not None and n > T):
            raise DataError(f"{n} draws: 2 or more are needed" + (f", {T} at most" if T is not None else ""))
        return self._shift_widths(np.full(len(self.metrics), n), level, np.zeros(1), 0)

    def _shift_widths(self, n: IntArray, level: float, t: FloatArray, fresh: int) -> FloatArray:
        """Return half widths of n draws, (k,), t of their standard errors away on the log scale."""
        scale = np.sqrt(np.where(self.variance > 0, self.variance, 1.0))
        # numerical slopes of the log width by the estimate, its log variance and its log effective draws
        step = 1e-4 * np.column_stack([scale, np.ones((len(n), 2))])
        sides = np.vstack([np.zeros(3), np.eye(3), -np.eye(3)]) if t.any() else np.zeros((1, 3))
        dx, log_S2, log_effective = np.moveaxis(sides[:, None] * step, -1, 0)
        spread, carried, bounding = self._correct(n)
        effective = n * self.effective * np.exp(log_effective)
        variance = self.variance * np.exp(log_S2) * spread / n
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            fit = Estimates(
                names=tuple(m.name for m in self.metrics),
                mean=self.estimate + dx,
                cov=variance[..., None] * np.eye(len(n)),
                df=np.maximum((n - 1) / n * effective * carried, 1.0),
                support=tuple(m.support for m in self.metrics),
                unseen=Unseen(effective=effective * bounding, reach=self.extremes - dx[..., None]),
            )
            half = np.diff(fit.interval(level, self.kind))[..., 0] / 2
            if len(half) == 1:
                return np.asarray(half[0], dtype=float)
            slope = (np.log(half[1:4]) - np.log(half[4:])).T / (2 * step)
            error = np.sqrt(np.maximum(np.einsum("ki,kij,kj->k", slope, self.covariance, slope), 0.0))
            # the n draws to come estimate their variance with an error of their own
            error *= np.sqrt(1 + fresh / n)
            # a width of 0, or of rounding where nearly all is labelled, has no slopes
            return np.asarray(np.where(np.isfinite(error), half[0] * np.exp(t * error), half[0]))

    def _correct(self, n: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return factors of variance, of effective draws, and of those that bound what is unseen, (k,)."""
        one, design = np.ones(len(n)), self.design
        if self.once is None:
            if isinstance(design, UniformRecords | UniformClusters) and design.population is not None:
                fpc = 1 - n / design.population
                with np.errstate(divide="ignore"):
                    return fpc, one, 1 / fpc
            return one, one, one
        square, size, size_square = self.once
        log_missed = self._log_missed(n[:, None]).T  # (m, k)
        missed, found, each = np.exp(log_missed), -np.expm1(log_missed), 1 / (n * self.reach[:, None])

        def compare(column: FloatArray, once: FloatArray, each: FloatArray) -> FloatArray:
            top, bottom = ((column * x).sum(axis=0) for x in (once, each))
            return np.divide(top, bottom, out=np.ones(len(n)), where=bottom > 0)

        unseen, missing = compare(size, missed, one), compare(size_square, missed * each, each)
        return (
            # Σ e² (1 - π)/π over Σ e²/(n p): the variance of Horvitz and Thompson over that with repeats
            compare(square, missed / found, each),
            compare(size_square, each, 1 / found),
            np.divide(unseen, missing, out=np.full(len(n), np.inf), where=missing > 0),
        )

    def _log_missed(self, n: IntArray) -> FloatArray:
        """Return the log chance that n draws, (..., 1), miss a unit, (..., m)."""
        T = _frame(self.design)  # of which a unit has a: (1 - n/T)^a, exact if a = 1 and close if n ≪ T
        with np.errstate(divide="ignore", invalid="ignore"):
            # by logs, since 1 - p is 1 to rounding if the population is large
            missed = n * np.log1p(-self.reach) if T is None else self.reach * T * np.log1p(-n / T)
        return np.asarray(missed)

    def smallest(
        self, half_width: FloatArray, level: float, t: ArrayLike = 0.0, fresh: int = 0
    ) -> FloatArray:
        """Return the smallest numbers of draws, (k,), whose intervals have the half widths, (k,).

        These are taken t of their standard errors away on the log scale. A number is ∞ if all possible draws
        are not enough, and NaN for a metric that is 0/0 or has no standard error.
        """
        most, t, k = _frame(self.design) or MOST, np.asarray(t, dtype=float), len(self.metrics)
        # bisection for all metrics at once, of logs while the ends are far apart
        low, high = np.full(k, 2), np.full(k, most + 1)
        while (low < high).any():
            n = np.where(high > 4 * low, np.sqrt(low * high).astype(int), (low + high) // 2)
            enough = self._shift_widths(np.minimum(n, most), level, t, fresh) <= half_width
            low, high = np.where(enough, low, n + 1), np.where(enough, n, high)
        undefined = np.isnan(self.estimate) | ((t != 0) & np.isnan(self.covariance).any(axis=(1, 2)))
        return np.where(undefined, np.nan, np.where(high > most, np.inf, high))

    def assured(self, half_width: FloatArray, level: float, assurance: float) -> FloatArray:
        """Return the smallest n, (k,), whose achieved half width is as required with probability `assurance`.

        The variance on the log scale is that of the forecast, times 1 + m/n for a pilot of m draws, since the
        width of a fresh sample varies too. Above one half the pilot also has the two pseudo-draws of
        `bounds`.
        """
        likely = self.smallest(half_width, level)
        if assurance == 0.5:
            return likely
        outlook = self._add_pseudo_draws() if assurance > 0.5 else self
        n = outlook.smallest(half_width, level, stdtrit(self.df, assurance), len(self.share))
        n = np.where(np.isnan(n), likely, n)
        return np.asarray(np.maximum(n, likely) if assurance > 0.5 else np.minimum(n, likely))

    def bounds(self, half_width: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the smallest n if half widths are t errors lower, or higher with pseudo-draws, (k,) each."""
        t = stdtrit(self.df, (1 + level) / 2)
        high = self._add_pseudo_draws().smallest(half_width, level, t)
        return np.where(np.isnan(high), np.nan, self.smallest(half_width, level, -t)), high

    def _add_pseudo_draws(self) -> Outlook:
        """Return the outlook if the pilot had the pseudo-draws too; its covariance is NaN if S² stays 0."""
        ends = self.extremes
        share = Unseen(effective=self.pilot_effective, reach=ends).weigh_pseudo_draws(DEFAULT.mass)
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
        """Return the expected cost of the distinct units of n draws, Σ price (1 - (1 - p)^n)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            units = np.where(self.reach > 0, -np.expm1(self._log_missed(np.array([n]))) / self.reach, n)
        return float((self.share * self.price * units).sum())


UNREACHED = f"{MOST:,} draws, or all that there are, do not reach its half width, in its own unit"
"""The reason why a plan has no number of draws for a metric."""


def _need_planned(design: object, name: str) -> None:
    """Raise DataError if the variance of a design is not that of a fixed number of draws by size."""
    if isinstance(design, type):
        need_object(design, "selection", "")
    by_size = isinstance(design, SelectedBySize) and design.fixed_size and not design.without_repeats
    if not by_size and not isinstance(design, UniformClusters | ByPredictedSize):
        raise DataError(
            f"{name}: {type(design).__name__} cannot be planned; UniformRecords, UniformClusters, BySize and "
            "ByPredictedSize can, and designs of your own that draw a given number of units with replacement "
            "(SelectedBySize)"
        )


def _compute_chances(design: SelectedBySize | ByPredictedSize, fitted: Fitted) -> FloatArray:
    """Return the chance of each unit of the pilot to be selected by one draw, up to a factor, (units,)."""
    source, units = fitted.sample, fitted.sample.units
    if isinstance(design, SelectedBySize):
        source.expansion.need_reached(RECORDS)
        return design.selection(units.size, units)
    source.expansion.need_reached(design.probability)
    of_draw = design.make_round(units, 1)
    planned = replace(source.expansion, unreached=make_unreached(of_draw.never, units))
    for column in fitted.counted:
        planned.need_reached(column)
    return of_draw.p


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Forecast(Pictured):
    """Forecast of interval widths and costs for several designs; `undefined` (k,): why a metric has none."""

    picture: ClassVar[str] = "forecast"
    metrics: tuple[Metric, ...]
    designs: dict[str, Outlook]
    undefined: tuple[str, ...]

    def table(
        self, half_width: ArrayLike = 0.05, level: float = 0.95, assurance: float = 0.8
    ) -> pd.DataFrame:
        """Return the smallest number of draws with the required half widths, (k,), by design and metric.

        The number is enough with probability `assurance`, since a pilot does not fix the width of another
        sample: one half gives the likely number. `n_low` and `n_high` bound it; they are missing above a
        billion or above the possible draws. A metric that does not reach its half width, which is in its own
        unit, has no n, and a reason.
        """
        check_level(assurance, "assurance")
        required = _need_widths(half_width, self.metrics, level)
        rows, reasons = list[dict[str, object]](), list[str]()
        for name, o in self.designs.items():
            numbers = np.array([o.assured(required, level, assurance), *o.bounds(required, level)]).T
            for m, half, draws, why in zip(self.metrics, required, numbers, self.undefined, strict=True):
                reasons.append(UNREACHED if np.isinf(draws[0]) else why)
                n, low, high = (int(x) if np.isfinite(x) else None for x in draws)
                row = {"design": name, "metric": m.name, "half_width": half, "n": n, "n_low": low}
                rows.append(row | {"n_high": high, "cost": np.nan if n is None else o.cost(n)})
        integer = "Int64" if any(reasons) else "int64"
        table = pd.DataFrame(rows).assign(**reason_column(reasons))
        return table.astype({"n": integer, "n_low": "Int64", "n_high": "Int64"})


def _need_widths(half_width: ArrayLike, metrics: Sequence[Metric], level: float) -> FloatArray:
    """Return the required half width of each metric, and check it and the level."""
    check_level(level)
    required = floats(half_width, "half widths")
    if required.shape not in {(), (len(metrics),)}:
        raise DataError(f"{required.size} half widths for {len(metrics)} metrics: give 1, or 1 per metric")
    if not (np.isfinite(required) & (required > 0)).all():
        raise DataError(f"half widths must be above 0 and finite, not {required.tolist()}")
    required = np.broadcast_to(required, len(metrics))
    for metric, half in zip(metrics, required, strict=True):
        least, most = metric.support
        if half >= (most - least) / 2:  # points taken for shares, which any two draws would reach
            raise DataError(
                f"{metric.name} lies between {least:g} and {most:g}, so that a half width of {half:g} "
                "says nothing: write 0.02 for 2 points"
            )
    return required


def forecast(
    source: Sample | Population,
    metrics: MetricLike,
    designs: Mapping[str, SelectedBySize | ByPredictedSize],
    *,
    cost: Callable[[FloatArray], FloatArray] | None = None,
    kind: Kind = DEFAULT,
) -> Forecast:
    """Forecast interval widths and costs, from a pilot sample or from a population whose truth is known.

    Parameters
    ----------
    source : Sample or Population
        A pilot of any design, or a synthetic or real population, whose forecast has no error.
    metrics : Metric or str, or several
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
        `.table(half_width)` has the smallest numbers of draws with their cost, by design and metric, and
        `.plot()` draws half widths over numbers of draws. A design asks for the largest number of its
        metrics. A metric that is 0/0 in the pilot has NaN and the reason.

    Raises
    ------
    DataError, NotIdentified
        A design that cannot be planned (strata, known weights), a pilot with too few draws for a
        variance, or metrics that it does not identify.

    Warns
    -----
    Alarm
        A metric counts true links, and draws of entities do not show what a heap in the predicted sizes is.

    Notes
    -----
    Under the pilot's own design and number of draws, the forecast is the pilot's interval, up to rounding.

    On seven populations, n_low and n_high at level .95 held the n of the census for 94 or 95 % of pilots. An
    `assurance` is too high if most pilots miss a few large entities on which a metric depends: in the worst
    case, uniform clusters with a heavy tail, .8 held for 35 % of samples.

    See Also
    --------
    erbayes.labels.check : whether the labels at hand are enough.

    References
    ----------
    Hansen and Hurwitz (1943), The Annals of Mathematical Statistics 14, 333-362. Cochran (1977), Sampling
    Techniques, theorem 9A.1.

    Examples
    --------
    >>> from erbayes import UniformClusters, UniformRecords, metrics
    >>> from erbayes.study import populations as simulate
    >>> rng = np.random.default_rng(1)
    >>> people = simulate.simulate(simulate.Zeta(2.5, 30), simulate.Misattribution(0.1), 2000, rng)
    >>> designs = {"entities": UniformClusters(), "records": UniformRecords()}
    >>> plan = forecast(people, [metrics.pairwise_recall], designs)
    >>> plan.table(0.05)[["design", "n", "cost"]].round()
         design     n    cost
    0  entities  1543  1479.0
    1   records    96   346.0
    """
    metrics = resolve_metrics(metrics)
    need_object(designs, "items", "designs must map names to designs, such as {'records': UniformRecords()}")
    if cost is not None:
        need_object(cost, "__call__", "cost is a function of sizes")
    if not designs:
        raise DataError(f"nothing to forecast: {len(metrics)} metrics under 0 designs")
    for name, design in designs.items():
        _need_planned(design, name)
    if not isinstance(source, Sample | Population):
        raise DataError(f"a forecast starts from a Sample or a Population, not from {type(source).__name__}")
    if isinstance(source, Population):  # a census
        source = Sample(source.units, UniformClusters(population=len(source.units)))
    draws = len(source.expansion.unit)
    if draws <= source.expansion.df_lost and not source.expansion.census:
        raise DataError(f"a pilot of {draws} draws gives no variance: label more")
    warn_of(_list_heap_alarms(designs, source, metrics))
    size = source.units.size[source.expansion.unit]
    price = np.asarray(size if cost is None else cost(size), dtype=float)
    if bad := int(np.count_nonzero(~(np.isfinite(price) & (price >= 0)))):
        raise DataError(f"costs must be 0 or more and finite; {bad} of {len(price)} are not")
    fitted = fit_sample(source, metrics)
    need_suitable(kind, fitted.estimates)
    outlooks = {name: _look_ahead(design, fitted, price, kind) for name, design in designs.items()}
    return Forecast(metrics, outlooks, fitted.estimates.undefined)


def _list_heap_alarms(
    designs: Mapping[str, SelectedBySize | ByPredictedSize], source: Sample, metrics: Sequence[Metric]
) -> list[Sentence]:
    """Return the alarm of each design whose draws do not show what a heap in the predicted sizes is."""
    known = None if source.expansion.census else source.units.known
    asked = any(m.depends_on_true_size for m in metrics) and chance_capped(source.looks) > 0
    if known is None or not asked or (heap := find_heap(known)) is None:
        return []
    told = f"{heap}, and draws of entities do not show which"
    return [
        Sentence(f"{name}: {told}", Grade.CAUTION, remedies.LOOK, remedies.RECORDS)
        for name, design in designs.items()
        if not draws_records(design, source.units)
    ]


def _look_ahead(
    design: SelectedBySize | ByPredictedSize, fitted: Fitted, price: FloatArray, kind: Kind
) -> Outlook:
    """Return the outlook of a design from the pilot, at a price of the unit of each of its draws, (m,)."""
    source, estimates = fitted.sample, fitted.estimates
    variance, w, unit = source.expansion, source.expansion.weight, source.expansion.unit
    a = _compute_chances(design, fitted)[unit]
    parts = [_compute_one_draw(source, fitted.totals, m, a) for m in fitted.metrics]
    S2, effective, covariance, effects, sizes = (np.array(part) for part in zip(*parts, strict=True))
    n = np.count_nonzero(w)
    if not variance.census:
        S2 = S2 * n / (n - variance.df_lost)
    once, size = None, source.units.size[unit]
    if not getattr(design, "repeats", True) and source.units.population is not None:
        once = tuple(w[:, None] * x.T for x in (effects**2, sizes, sizes**2))
    T = _frame(design) or (source.units.population or np.inf) * (w @ a) / (w @ size)
    extremes, pilot = np.asarray(estimates.unseen.reach), np.asarray(estimates.unseen.effective)
    of_metrics = estimates.mean, S2, effective, covariance, extremes, pilot, estimates.df
    of_draws = w * a / (w @ a), np.minimum(a / T, 1.0), price, once
    return Outlook(design, fitted.metrics, *of_metrics, *of_draws, kind)


def _compute_one_draw(
    source: Sample, totals: Totals, metric: Metric, a: FloatArray
) -> tuple[float, float, FloatArray, FloatArray, FloatArray]:
    """Return variance, effective, covariance of an `Outlook` if p ∝ a, and units' effects and sizes, (m,)."""
    w, unit, variance = source.expansion.weight, source.expansion.unit, source.expansion
    none = np.zeros(len(w))
    with np.errstate(divide="ignore", invalid="ignore"):
        J, H = derivatives(metric.formula, totals.mean[[totals.names.index(c.name) for c in metric.columns]])
    if not np.isfinite(J).all():
        return np.nan, np.nan, np.full((3, 3), np.nan), none, none
    counted = [none if isinstance(c, Known) else source.units.column(c)[unit] for c in metric.columns]
    Y = np.column_stack(counted)
    b = np.sum([coefficient * source.units.column(c)[unit] for c, coefficient in metric.size], axis=0)
    d = Y @ J
    d[np.abs(d) <= 1e-12 * (np.abs(Y) @ np.abs(J))] = 0.0  # terms that cancel leave only rounding
    per_chance = np.divide(1.0, a, out=np.zeros_like(a), where=a > 0)  # b and d are 0 where a is
    A, B, C, Q, D = w @ a, w @ b, w @ (b**2 * per_chance), w @ (d**2 * per_chance), w @ d
    S2 = float(A * Q - D**2)
    # a variance of 0 comes out as rounding
    S2 = S2 if S2 > 1e-12 * (A * Q + D**2) else 0.0
    moved = Y @ H  # J depends on the totals too
    dQ = d**2 * per_chance + 2 * moved @ (Y.T @ (w * d * per_chance))
    dS2 = Q * a + A * dQ - 2 * D * (d + moved @ (w @ Y))
    log_S2 = dS2 / S2 if S2 else np.zeros_like(d)
    log_effective = 2 * b / B - a / A - b**2 * per_chance / C
    influence = w[:, None] * np.column_stack([d, log_S2, log_effective])
    return S2, float(B**2 / (A * C)), variance.covariance(variance.residuals(influence)), d - a * D / A, b
