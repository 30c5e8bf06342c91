"""Calibration: weights of a design, adjusted so that estimated totals equal known ones.

Deville and Särndal (1992), JASA 87, 376-382, truncated linear distance. What a prediction says of
its own clusters is known without labels, so every sample can be held against it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .arrays import FloatArray
from .columns import PREDICTED_LINKS, RECORDS, ClusterSum
from .design import Design, Expansion
from .errors import DataError, NotIdentified, need, need_object, some
from .units import Units, need_units
from .variance import StratifiedDraws, Variance, kish

WorkingVariance = Callable[[FloatArray], FloatArray]


def proportional_to_size(size: FloatArray) -> FloatArray:
    """v = N_c: calibration to N alone is the ratio estimator."""
    return size


def constant(size: FloatArray) -> FloatArray:
    """v = 1, the default of R's survey::calibrate."""
    return np.ones_like(size)


@dataclass(frozen=True, slots=True, eq=False)
class CalibratedDraws:
    """Variance after calibration: that of the residuals g w (y - x'B).

    Attributes
    ----------
    base : Variance
        Of the design that was calibrated.
    x : float array, (n, p)
        Auxiliary variables of each draw; `target`, (p,), their known totals.
    w, g, q : float arrays, (n,)
        Weights of the design, factors of the calibration, inverse working variances.
    free : bool array, (n,)
        Draws whose factor is not at a bound.
    """

    base: Variance
    x: FloatArray
    target: FloatArray
    w: FloatArray
    g: FloatArray
    q: FloatArray
    free: NDArray[np.bool_]

    @property
    def lost(self) -> int:
        return self.base.lost + int(self.x.shape[1]) - 1

    @property
    def census(self) -> bool:
        return self.base.census

    @property
    def theta_mean(self) -> float:
        return self.base.theta_mean

    def residuals(self, Z: FloatArray) -> FloatArray:
        """g w (y - x'B), B of least squares with weights w q."""
        y = Z / (self.g * self.w)[:, None]
        root = np.sqrt(self.w * self.q)[:, None]
        B = np.linalg.lstsq(root * self.x, root * y, rcond=None)[0]
        return np.asarray((self.g * self.w)[:, None] * (y - self.x @ B))

    def covariance(self, residuals: FloatArray) -> FloatArray:
        return self.base.covariance(self.base.residuals(residuals))

    @property
    def independent(self) -> StratifiedDraws:
        return self.base.independent

    def jackknife(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Each replicate is calibrated anew."""
        parts = self._parts(Z)
        change, scale = self.base.jackknife(parts)
        return self._calibrated(change + parts.sum(axis=0), Z.shape[1]) - Z.sum(axis=0), scale

    def replicates(self, Z: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Each replicate is calibrated anew."""
        return self._calibrated(self.base.replicates(self._parts(Z), multipliers), Z.shape[1])

    def _parts(self, Z: FloatArray) -> FloatArray:
        """What one step of calibration needs, as contributions of each draw: z, gwx, wqxx', wqxy'."""
        n = len(Z)
        pull = (self.w * self.q * self.free)[:, None, None] * self.x[:, :, None]
        y = Z / (self.g * self.w)[:, None]
        return np.hstack(
            [
                Z,
                (self.g * self.w)[:, None] * self.x,
                (pull * self.x[:, None, :]).reshape(n, -1),
                (pull * y[:, None, :]).reshape(n, -1),
            ]
        )

    def _calibrated(self, sums: FloatArray, k: int) -> FloatArray:
        """Totals of each replicate, (B, k), after one step of Newton from the sample's own factors:
        exact where no factor is at a bound."""
        p = self.x.shape[1]
        z, x, xx, xy = np.split(sums, [k, k + p, k + p + p * p], axis=1)
        gap = (self.target - x)[:, :, None]
        try:
            step = np.linalg.solve(xx.reshape(-1, p, p), gap)
        except np.linalg.LinAlgError as error:
            raise NotIdentified(
                f"a replicate holds too few units to calibrate it to {p} totals: calibrate to fewer"
            ) from error
        return np.asarray(z + np.sum(xy.reshape(-1, p, k) * step, axis=1))


FEWEST = 15.0
"""Effective draws that the estimate of a total to calibrate to must rest on."""


def links_by_size(units: Units, expansion: Expansion) -> tuple[ClusterSum, ...]:
    """N, and the predicted links in classes of predicted cluster size.

    Classes double in size; from the largest down they are merged until each rests on `FEWEST`
    effective draws.

    Raises
    ------
    DataError
        Anything but units and their expansion.
    """
    need_units(units)
    need(expansion, Expansion, "an Expansion of these units is needed, as design.expand(units) makes it")
    level = np.frexp(units.m)[1]
    levels = int(level.max()) + 1
    links = np.bincount(units.unit * levels + level, units.n * (units.m - 1) / 2, len(units) * levels)
    z = expansion.weight[:, None] * links.reshape(-1, levels)[expansion.unit]
    edges, merged = [np.inf], np.zeros(len(z))
    for k in range(levels - 1, 1, -1):
        merged = merged + z[:, k]
        if merged.any() and kish(merged[:, None])[0] >= FEWEST:
            edges.append(2.0 ** (k - 1))
            merged = np.zeros(len(z))
    edges = [*edges[: max(len(edges) - 1, 1)], 0.0]
    return RECORDS, *(_links_between(lower, upper) for upper, lower in pairwise(edges))


def _links_between(lower: float, upper: float) -> ClusterSum:
    return ClusterSum(
        f"predicted_links_{lower:g}_{upper:g}",
        lambda m: np.where((m >= lower) & (m < upper), (m - 1) / 2, 0.0),
    )


Totals = Callable[[Units, Expansion], Sequence[ClusterSum]]


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """Another design, its weights calibrated to known totals of the prediction.

    w_s becomes g_s w_s with g_s = clip(1 + x_s'λ/v_s, L, U) and Σ g_s w_s x_s equal to the known
    totals of x. It helps precision where the sample by chance holds too many or too few predicted
    links, and costs a degree of freedom for each total. Made for draws with probability proportional to
    size: under uniform clusters and a heavy tail most samples are refused, and intervals from the rest
    are not to be trusted. Weights known up to a factor are first
    scaled to N (a ratio estimator), so that totals become absolute.

    Parameters
    ----------
    design : Design
    totals : callable (Units, Expansion) -> sequence of ClusterSum
        What to calibrate to.
    bounds : (float, float)
        L and U, 0 < L < 1 < U.
    working_variance : callable size -> v
        How the variance of a unit's totals grows with its size.
    fewest : float
        Effective draws, (Σz)²/Σz², that the uncalibrated estimate of each total must rest on. Where
        they are few, as under uniform clusters with a heavy tail, the units that carry the total are bent
        to fit, and calibrated intervals covered as little as .13.

    Raises
    ------
    DataError
        When the sample is expanded: no factors between L and U meet the totals; more than a tenth
        of all predicted links lie in clusters larger than any that the sample touches, for which
        no weight can stand in; an estimated total that rests on too few draws.
    NotIdentified
        A total that the prediction does not fix.

    Examples
    --------
    >>> import erbayes as eb
    >>> prediction = {i: i // 2 for i in range(16)}
    >>> labels = {i: i // 4 for i in range(12)}
    >>> design = Calibrated(eb.UniformClusters(), fewest=3)
    >>> found = eb.estimate(prediction, labels, design, [eb.metrics.entities])
    >>> float(found.mean[0])
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

    def expand(self, units: Units) -> Expansion:
        need_object(self.design, "expand", "a design to calibrate is an object such as UniformRecords()")
        expansion = self.design.expand(units)
        known = units.known
        if known is None:
            raise NotIdentified("calibration needs the totals of the prediction, which are not known")
        if (beyond := links_out_of_reach(units)) > 0.1:
            raise DataError(
                f"{beyond:.0%} of all predicted links lie in clusters larger than any that the "
                "sample touches: no weight can stand in for them; do without calibration"
            )
        need_object(self.totals, "__call__", "totals is a function such as links_by_size")
        columns = tuple(self.totals(units, expansion))
        other = [getattr(c, "name", repr(c)) for c in columns if not isinstance(c, ClusterSum)]
        if other or not columns:
            raise DataError(
                "totals must give one ClusterSum or more, whose totals the prediction fixes, not "
                + (some(other) if other else "none")
            )
        target = np.array([known.total(c) for c in columns])
        x = np.column_stack([units.column(c)[expansion.unit] for c in columns])
        x, target = x[:, target != 0], target[target != 0]
        if len(x) <= len(target):
            raise DataError(f"{len(x)} draws cannot be calibrated to {len(target)} totals")
        rests_on = kish(expansion.weight[:, None] * x)
        if rests_on.min() < self.fewest:
            raise DataError(
                f"the estimate of a total to calibrate to rests on {rests_on.min():.1f} effective draws, "
                f"fewer than {self.fewest:g}: the few units that carry it would be bent to fit; do "
                "without calibration, or draw units with probability proportional to size"
            )
        size = units.size[expansion.unit]
        w, variance = expansion.weight, expansion.variance
        if not expansion.absolute:
            N = known.total(RECORDS)
            factor = np.full(len(w), N / (w @ size))
            variance = CalibratedDraws(
                variance, size[:, None] / N, np.ones(1), w, factor, 1 / size, np.ones(len(w), dtype=bool)
            )
            w = w * factor
        q = 1 / self.working_variance(size)
        g, free = _factors(w, x / target, q, self.bounds)
        calibrated = CalibratedDraws(variance, x / target, np.ones(len(target)), w, g, q, free)
        return Expansion(expansion.unit, w * g, True, calibrated)


def links_out_of_reach(units: Units) -> float:
    """Share of all predicted links in clusters larger than any that the units touch, in [0, 1].

    Nothing in the sample can tell whether these links are right.

    Raises
    ------
    NotIdentified
        Where the totals of the prediction are not known.
    """
    need_units(units)
    if units.known is None:
        raise NotIdentified(
            "the links of the prediction are not known: labelled records that it "
            "lacks were kept; Missing.OMIT restricts the population instead"
        )
    reach = units.m.max()
    links = units.known.total(PREDICTED_LINKS)
    return units.known.total(_links_between(reach + 1, np.inf)) / links if links else 0.0


def _factors(
    w: FloatArray, x: FloatArray, q: FloatArray, bounds: tuple[float, float]
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """g = clip(1 + q x'λ, L, U) with Σ w g x = 1, by Newton's method with halved steps."""

    def at(multipliers: FloatArray) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
        raw = 1 + q * (x @ multipliers)
        g = np.clip(raw, *bounds)
        return 1 - (w * g) @ x, g, raw == g

    multipliers = np.zeros(x.shape[1])
    gap, g, free = at(multipliers)
    for _ in range(50):
        if np.abs(gap).max() < 1e-12:
            return g, free
        slope = (x * (w * q * free)[:, None]).T @ x
        step = np.linalg.lstsq(slope, gap, rcond=1e-12)[0]
        for halving in 0.5 ** np.arange(20):
            nearer, g, free = at(multipliers + halving * step)
            if np.linalg.norm(nearer) < np.linalg.norm(gap):
                break
        multipliers, gap = multipliers + halving * step, nearer
    raise DataError(
        f"calibration: no factors between {bounds[0]:g} and {bounds[1]:g} meet the {x.shape[1]} known "
        f"totals (nearest: off by {np.abs(gap).max():.1%}); widen the bounds, calibrate to fewer "
        "totals, or do without"
    )
