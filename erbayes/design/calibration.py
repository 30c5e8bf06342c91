"""Calibration: weights of a design, changed so that estimates equal known totals of the prediction.

Source: Deville and Särndal (1992), JASA 87, 376-382, truncated linear distance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .._internal.arrays import FloatArray
from .._internal.errors import DataError, NotIdentified, head, need, need_object
from ..metrics.columns import PREDICTED_LINKS, RECORDS, ClusterSum, InDomain, pairs, whole_column
from ..metrics.unseen import NOTABLE as NOTABLE
from ..units.units import KnownTotals, Units, need_units
from .contract import Design
from .draws import DrawnUnits, bend, kish

WorkingVariance = Callable[[FloatArray], FloatArray]


def proportional_to_size(size: FloatArray) -> FloatArray:
    """Return the working variance v = N_c, with which calibration to N alone is the ratio estimator."""
    return size


FEWEST = 15.0
"""Effective number of draws that the estimate of each known total needs. With fewer, the few units that carry
it take all the change, and intervals covered as little as .13 in studies."""


def links_by_size(units: Units, draws: DrawnUnits) -> tuple[ClusterSum, ...]:
    """Return the columns of the default calibration: records, and predicted links by cluster size.

    Classes start at powers of 2, and are merged from the largest down until each has `FEWEST` draws.
    """
    need_units(units)
    need(draws, DrawnUnits, "draws of these units are needed, as design.expand(units) makes them")
    level = np.frexp(units.m)[1]
    levels = int(level.max()) + 1
    links = np.bincount(units.unit * levels + level, units.n * (units.m - 1) / 2, len(units) * levels)
    z = draws.weight[:, None] * links.reshape(-1, levels)[draws.unit]
    edges, merged = [np.inf], np.zeros(len(z))  # from the largest class down
    for k in range(levels - 1, 1, -1):
        merged = merged + z[:, k]
        if merged.any() and kish(merged[:, None])[0] >= FEWEST:
            edges.append(2.0 ** (k - 1))
            merged = np.zeros(len(z))
    # what is left below the last class has too few draws of its own, and joins it
    edges = [*edges[: max(len(edges) - 1, 1)], 0.0]
    return RECORDS, *(_make_links_between(lower, upper) for upper, lower in pairwise(edges))


def _make_links_between(lower: float, upper: float) -> ClusterSum:
    """Return the column of predicted links in clusters of lower ≤ m < upper records."""

    def phi(m: FloatArray) -> FloatArray:
        return np.where((m >= lower) & (m < upper), (m - 1) / 2, 0.0)

    return ClusterSum(f"predicted_links_{lower:g}_{upper:g}", phi)


KnownColumn = ClusterSum | InDomain
Totals = Callable[[Units, DrawnUnits], Sequence[KnownColumn]]


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """Another design with weights that are calibrated to known totals of the prediction.

    Each weight w_s is multiplied by a factor g_s = clip(1 + x_s'λ/v_s, L, U) with which Σ g_s w_s x_s is the
    known total of x, and v_s is the working variance of the unit (generalised regression; Deville and
    Särndal 1992). Weights that are known up to a factor are first scaled to N.

    Calibration makes estimates more precise if a sample by chance has too many or too few predicted links,
    and each total costs a degree of freedom. It is meant for draws with probability proportional to size:
    under uniform clusters and a heavy tail most samples are refused, and intervals from the others are not
    reliable.

    Parameters
    ----------
    design : Design
    totals : callable (Units, DrawnUnits) -> sequence of ClusterSum or InDomain
        The columns to whose totals the weights are calibrated.
    bounds : (float, float)
        L and U, 0 < L < 1 < U.
    working_variance : callable size -> v
        The variance of a unit's totals by its number of records, up to a factor.
    fewest : float
        The effective number of draws, (Σz)²/Σz², that the estimate of each total needs before calibration.

    Raises
    ------
    DataError, NotIdentified
        In `expand`, if no factors between L and U meet the totals, if the estimate of a total has too few
        effective draws, if more than a tenth of all predicted links are in clusters larger than any in the
        sample, or if the prediction does not fix a total.

    Examples
    --------
    >>> import erbayes as eb
    >>> prediction = {i: i // 2 for i in range(16)}
    >>> labels = {i: i // 4 for i in range(12)}
    >>> design = Calibrated(eb.UniformClusters(), fewest=3)
    >>> estimates = eb.estimate(prediction, labels, design, [eb.metrics.entities])
    >>> float(estimates.mean[0])
    4.0
    """

    design: Design
    totals: Totals = links_by_size
    bounds: tuple[float, float] = (0.2, 5.0)
    working_variance: WorkingVariance = proportional_to_size
    fewest: float = FEWEST

    def __post_init__(self) -> None:
        bounds = np.asarray(self.bounds)
        if bounds.dtype.kind not in "iuf" or bounds.shape != (2,) or not 0 < bounds[0] < 1 < bounds[1]:
            raise DataError(f"bounds must hold 0 < L < 1 < U, not {self.bounds!r}")

    def expand(self, units: Units) -> DrawnUnits:
        need_object(self.design, "expand", "a design to calibrate is an object such as UniformRecords()")
        draws, known = self.design.expand(units), units.known
        if known is None:
            raise NotIdentified("calibration needs the totals of the prediction, which are not known")
        columns = self._list_columns(units, draws)
        self._refuse_unreached(known, units, columns)
        target = np.array([units.total(c) for c in columns])
        y = np.column_stack([units.column(c) for c in columns])[:, target != 0]
        x, target = y[draws.unit], target[target != 0]
        unit, weight = draws.each
        self._refuse_few_draws(columns, weight, y[unit])
        size = units.size[draws.unit]
        if not draws.absolute:
            # weights known up to a factor are scaled to N, the ratio estimator, which is a calibration too
            N = known.total(RECORDS)
            draws = bend(draws, size[:, None] / N, np.full(len(size), N / (draws.weight @ size)), 1 / size)
        q = 1 / self.working_variance(size)
        return bend(draws, x / target, _compute_factors(draws.weight, x / target, q, self.bounds), q)

    def _list_columns(self, units: Units, draws: DrawnUnits) -> tuple[KnownColumn, ...]:
        """Return the columns to calibrate to, refusing those whose totals the prediction does not fix."""
        need_object(self.totals, "__call__", "totals is a function such as links_by_size")
        columns = tuple(self.totals(units, draws))
        other = [getattr(c, "name", repr(c)) for c in columns if not isinstance(c, ClusterSum | InDomain)]
        if other or not columns:
            raise DataError(
                "totals must return one ClusterSum or more, whose totals the prediction fixes, not "
                + (head(other) if other else "none")
            )
        for column in columns:
            draws.need_reached(column)
        return columns

    def _refuse_few_draws(self, columns: Sequence[KnownColumn], weight: FloatArray, x: FloatArray) -> None:
        """Refuse totals whose estimates too few draws carry, with their columns on the draws, (n, p)."""
        if len(x) <= x.shape[1]:
            raise DataError(f"{len(x)} draws cannot be calibrated to {x.shape[1]} totals")
        if not (carried := x.any(axis=0)).all():
            empty = [c.name for c, has_draws in zip(columns, carried, strict=True) if not has_draws]
            raise DataError(
                f"no draw adds to {len(empty)} of the totals to calibrate to, such as {head(empty)}: "
                "leave them out, or join groups"
            )
        if (fewest := kish(weight[:, None] * x).min()) < self.fewest * (1 - 1e-9):  # up to rounding
            raise DataError(
                f"the estimate of a total to calibrate to depends on {fewest:.1f} effective draws, "
                f"fewer than {self.fewest:g}: the few units that carry it would take all the change; do "
                "without calibration, or draw units with probability proportional to size"
            )

    def _refuse_unreached(self, known: KnownTotals, units: Units, columns: Sequence[KnownColumn]) -> None:
        """Refuse totals a large part of which is in clusters larger than any in the sample."""
        counted = [whole_column(c) for c in columns]
        shares = [float(known.share_above(c, units.m.max())) for c in counted if isinstance(c, ClusterSum)]
        # totals that count few records of large clusters, such as the number of clusters, need none of them
        unreached = float(known.share_above(PREDICTED_LINKS, units.m.max()))
        if unreached > NOTABLE and max(shares, default=1.0) > NOTABLE:
            raise DataError(
                f"{unreached:.0%} of all predicted links lie in clusters larger than any that the "
                "sample touches: no weight can represent them; do without calibration"
            )


def expect_unreached_links(known: KnownTotals, probability: ClusterSum, draws: int) -> float:
    """Return the expected share of predicted links in clusters larger than any that n draws will reach.

    It is Σ_s L_s (1 - q_s)^n, with L_s the share of links in clusters of s records, and q_s the probability
    that a draw is from one of s records or more; `probability` is that of a predicted cluster up to a factor.
    """
    order = np.argsort(known.size)
    size, count = known.size[order], known.count[order]
    mass, links = count * size * probability.phi(size), count * pairs(size)
    smaller = np.append(0.0, np.cumsum(mass)[:-1]) / mass.sum()
    return float(links @ smaller**draws / links.sum()) if links.any() else 0.0


def _compute_factors(w: FloatArray, x: FloatArray, q: FloatArray, bounds: tuple[float, float]) -> FloatArray:
    """Return factors g = clip(1 + q x'λ, L, U) of the weights, (n,)."""

    def gap_and_factors(multipliers: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        raw = 1 + q * (x @ multipliers)
        g = np.clip(raw, *bounds)
        return 1 - (w * g) @ x, g, np.where(raw == g, 1.0, 0.0)

    multipliers = np.zeros(x.shape[1])
    gap, g, slope = gap_and_factors(multipliers)
    for _ in range(50):
        if np.abs(gap).max() < 1e-12:
            return g
        curve = (x * (w * q * slope)[:, None]).T @ x
        step = np.linalg.lstsq(curve, gap, rcond=1e-12)[0]
        # a full step may overshoot where factors are at a bound
        for halving in 0.5 ** np.arange(20):
            nearer, g, slope = gap_and_factors(multipliers + halving * step)
            if np.linalg.norm(nearer) < np.linalg.norm(gap):
                break
        multipliers, gap = multipliers + halving * step, nearer
    raise DataError(
        f"calibration: no factors between {bounds[0]:g} and {bounds[1]:g} meet the {x.shape[1]} known "
        f"totals (nearest: off by {np.abs(gap).max():.1%}); widen the bounds, calibrate to fewer "
        "totals, or do without"
    )
