"""Draws: what every design returns, with the variance of weighted sums over repeated sampling.

A unit counts once if its chance to be drawn at all is known (`count_once`), and as often as it was drawn if
not (`count_each`). Nobody else decides that. Contributions Z have one row per row of the draws, and one
column per total; their covariance is Z' diag(d) Z + (A'Z)' G (A'Z) under every design.

Sources: Horvitz and Thompson (1952), JASA 47, 663-685; Basu (1958), Sankhyā 20, 287-294; Hartley and Rao
(1962), Annals of Mathematical Statistics 33, 350-374; Beaumont and Patak (2012), International Statistical
Review 80, 127-148 (multipliers).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag
from scipy.sparse import csr_array

from .._internal.arrays import BoolArray, FloatArray, IntArray
from .._internal.errors import DataError, NotIdentified, head
from ..metrics.columns import Column, Pieces

MOST_CLASSES = 500
"""Distinct chances above which units with about the same chance share their joint chances, to bound memory.

A class of one in 500 of the logarithmic range changes the variance by less than a thousandth."""
STEEPEST = 2.0
"""Largest skewness of a multiplier. A gamma variable of more is near 0 in most replicates."""


class Round(NamedTuple):
    """Independent draws, each of which selects a unit with the same known chances.

    `draws`: their number n; `p` (units,): chances of all units at one draw; `population`: number of elements,
    such as records, of which a unit has p times as many, if n of them were drawn without replacement;
    `never`: sizes of predicted clusters whose records are never drawn.
    """

    draws: int
    p: FloatArray
    population: int | None = None
    never: Sequence[float] | FloatArray = ()

    def log_missed(self, p: FloatArray) -> FloatArray:
        """Return the log chance to miss a unit with chances p at one draw: -∞ if it cannot be missed."""
        with np.errstate(divide="ignore"):
            if self.population is None:
                return np.asarray(self.draws * np.log1p(-np.minimum(p, 1)))
            size = np.rint(np.minimum(p, 1) * self.population).astype(np.int64)
            left = np.maximum(self.population - np.arange(size.max(initial=0)), self.draws)
            return np.append(0.0, np.cumsum(np.log1p(-self.draws / left)))[size]

    def log_excess(self, p: FloatArray, q: FloatArray, both: FloatArray | float = 0.0) -> FloatArray:
        """Return ℓ(p + q - o) - ℓ(p) - ℓ(q) of pairs of units, (...), for the log chances ℓ to miss.

        `both`: chance o of one draw to be in both units.
        """
        if self.population is None:  # as a product, since a difference would cancel for small p
            with np.errstate(divide="ignore", invalid="ignore"):
                apart = (p / (1 - p)) * (q / (1 - q)) - both / ((1 - p) * (1 - q))
                return np.asarray(self.draws * np.log1p(-np.minimum(apart, 1)))
        return np.asarray(self.log_missed(p + q - both) - self.log_missed(p) - self.log_missed(q))


@dataclass(frozen=True, slots=True, eq=False)
class DrawnUnits:
    """Rows of units with weights: the sum of weight × column over rows estimates a total.

    Many samples of a study have a leading axis in each array of rows or draws, in which those with fewer rows
    repeat a unit with a weight of 0.

    - `unit`, `weight` (k,): position of the unit, and how many units it represents.
    - `d` (k,), `A` (k, g), `G` (g, g): covariance of totals, Z' diag(d) Z + (A'Z)' G (A'Z), to which
      `overlap` and `by_share` add. `A` of many samples has their blocks along its diagonal; `G` may be one.
    - `unseen` (k,): share of units like that of the row which no draw has seen, 1 - π or θ. `repeated` (k,):
      how many draws a unit like it had, over its chance to be seen, so that a set of units is missed with
      probability e^-Σrπ. `third` (k,): third moment of the row's multiplier.
    - `once`: whether a row is a distinct unit, or else a draw. `centred`: whether contributions vary about
      the means of groups alone, which are then taken off, so that equal draws have a variance of 0 exactly.
    - `absolute`: false if weights are known only up to a common factor. `df_lost`: degrees of freedom that
      means of strata and classes take.
    - `order` (n,): unit of each draw, in the order of drawing; `repeats` (n,): its weight if each counts,
      None where no design says it; `stratum` (n,): its stratum, with factors `theta` (H,); `undecided` (n,):
      share of the draws like it that nobody could resolve, or None.
    - `group` (k,): rows whose mean is taken off in the jackknife; None if none is. `scale` (k,): of the
      square of each change.
    - `overlap` (k, k): what units that share records add to G; None if units are disjoint. Multipliers leave
      it out.
    - `by_share` (k, c), (c, c): slopes of weights by the shares of classes among draws, and the covariance of
      these shares; None if there are no such classes.
    - `L`, `R` (k, p): what odds of unresolved draws take off contributions, which then vary as Z - L R'Z.
    - `unreached`: pseudo-units of every kind that the design never draws, or None.
    """

    unit: IntArray
    weight: FloatArray
    d: FloatArray
    A: csr_array
    G: FloatArray
    unseen: FloatArray
    repeated: FloatArray
    third: FloatArray
    order: IntArray
    scale: FloatArray
    group: IntArray | None
    once: bool = True
    centred: bool = False
    absolute: bool = True
    df_lost: int = 1
    repeats: FloatArray | None = None
    stratum: IntArray | None = None
    theta: FloatArray | None = None
    undecided: FloatArray | None = None
    overlap: csr_array | None = None
    by_share: tuple[FloatArray, FloatArray] | None = None
    L: FloatArray | None = None
    R: FloatArray | None = None
    unreached: Pieces | None = None

    @property
    def census(self) -> bool:
        """Return whether all units are in the sample."""
        return not self.unseen.any()

    @property
    def number(self) -> IntArray:
        """Return the number of rows, (...)."""
        return np.asarray(np.count_nonzero(self.weight, axis=-1))

    @property
    def alike(self) -> bool:
        """Return whether draws are independent, with replacement and without strata, each with its weight."""
        if self.repeats is None or self.L is not None or self.df_lost > 1:
            return False
        return not (np.any(self.stratum) or np.any(np.asarray(self.theta) < 1))

    def reaches(self, column: Column) -> bool:
        """Return whether the design can draw every unit on which a column counts."""
        return self.unreached is None or not self.unreached.column(column).any()

    def need_reached(self, column: Column) -> None:
        """Refuse a column that counts on units which the design never draws."""
        if self.unreached is None or self.reaches(column):
            return
        sizes = np.unique(self.unreached.m).astype(int)
        where, way = f"clusters of {head(sizes)} records", "pool the draws with uniform records (Pooled)"
        if sizes.tolist() == [1]:
            where = "predicted singletons"
            way += ", or ask for pairwise-precision, which such draws tell"
        raise NotIdentified(
            f"the total of '{column.name}' is not identified: records of {where} have chance 0, and units "
            f"wholly of these are never drawn; {way}"
        )

    def residuals(self, Z: FloatArray) -> FloatArray:
        """Return the part of contributions that varies, (k, c): Z - L R'Z."""
        if self.L is None or self.R is None:
            return Z
        return np.asarray(Z - self.L @ (self.R.T @ Z))

    def covariance(self, residuals: FloatArray) -> FloatArray:
        """Return covariances of totals, (..., c, c), from `residuals`, (..., k, c); NaN if there are none."""
        c = residuals.shape[-1]
        sums = self.A.T @ residuals.reshape(-1, c)
        if self.centred:
            residuals = residuals - (self.A @ (sums / self.A.sum(axis=0)[:, None])).reshape(residuals.shape)
            return np.asarray(residuals.mT @ (self.d[..., None] * residuals))
        sums = sums.reshape(*self.unit.shape[:-1], -1, c)
        own = self.d[..., None] * residuals
        if self.overlap is not None:
            own = own + self.overlap @ residuals
        if self.by_share is not None:
            slope, G = self.by_share
            own = own + slope @ (G @ (slope.T @ residuals))
        # one product for all samples, if they share G
        shared = self.G @ sums if self.G.ndim > 2 else np.moveaxis(np.tensordot(self.G, sums, (1, -2)), 0, -2)
        return np.asarray(residuals.mT @ own + sums.mT @ shared)

    def jackknife(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the change of totals without each row, (k, c), and the scale of its square, (k,)."""
        if len(Z) == 1 and not self.census:
            raise DataError("a single draw has no jackknife")
        Z = self.residuals(Z)
        if self.group is None:
            return -Z, self.scale
        group = self.group
        n = np.maximum(np.bincount(group), 1)
        means = np.stack([np.bincount(group, z) for z in Z.T], axis=-1) / n[:, None]
        factor = np.where(n > 1, n / np.maximum(n - 1, 1), 1.0)
        return -(Z - means[group]) * factor[group, None], self.scale

    def multipliers(self, replicates: int, rng: np.random.Generator) -> FloatArray:
        """Return multipliers of weights, (B, k), with mean 1 and the covariance of rows, but for `overlap`.

        A replicate of totals is t + (m - 1)'Z for the part Z that varies. Each multiplier starts from a
        gamma variable with the third moment of its row.
        """
        if np.isnan(self.d).any():
            raise NotIdentified("a single draw has no bootstrap: label more")
        root = np.sqrt(np.maximum(self.d, 0))
        live = np.flatnonzero(root)
        m = np.ones((replicates, len(root)))
        if not len(live):
            return m
        root = root[live]
        skew = np.clip(self.third[live] / root**3, -STEEPEST, STEEPEST)
        shape = 4 / np.maximum(skew**2, 1e-4)
        e = (rng.standard_gamma(shape, (replicates, len(live))) - shape) / np.sqrt(shape)
        e *= np.where(skew < 0, -1.0, 1.0)
        # the square root of I + D^-½ A G A' D^-½, which is I outside of the columns of Q
        A, G = self.A[live].toarray(), self.G
        if self.by_share is not None:
            A, G = np.hstack([A, self.by_share[0][live]]), block_diag(G, self.by_share[1])
        Q, K = np.linalg.qr(A / root[:, None])
        value, vector = np.linalg.eigh(K @ G @ K.T)
        Q = Q @ vector
        e += (e @ Q * (np.sqrt(np.maximum(1 + value, 0)) - 1)) @ Q.T
        m[:, live] += root * e
        return m

    def at(self, position: IntArray, unreached: Pieces | None = None) -> DrawnUnits:
        """Return the draws of units at other positions. Those at -1 are gone: drawn, they count nothing."""
        unit, order = position[self.unit], position[self.order]
        of_draws = {"repeats": self.repeats, "stratum": self.stratum, "undecided": self.undecided}
        left: dict[str, Any] = {name: x if x is None else x[order >= 0] for name, x in of_draws.items()}
        left |= {"order": order[order >= 0], "weight": np.where(unit < 0, 0.0, self.weight)}
        return replace(self, unit=np.maximum(unit, 0), unreached=unreached, **left)

    def count_each(self) -> DrawnUnits:
        """Return the same draws, each counted as often as it was made, where the design says its weight."""
        if not self.once or self.repeats is None or self.L is not None:
            return self
        each = count_each(self.order, self.repeats, self.stratum, 1.0 if self.theta is None else self.theta)
        return replace(each, unreached=self.unreached, undecided=self.undecided)


def indicate(code: IntArray, number: int) -> csr_array:
    """Return which rows, (..., k), are of which class: the matrix `A`. A code of -1 is of none."""
    inside = (code >= 0).ravel()
    at, samples = np.append(0, np.cumsum(inside)), code.size // code.shape[-1]
    column = (code.reshape(samples, -1) + number * np.arange(samples)[:, None]).ravel()[inside]
    return csr_array((np.ones(at[-1]), column, at), (code.size, samples * number))


def count_once(
    order: IntArray,
    rounds: Sequence[Round],
    repeats: FloatArray | None = None,
    stratum: IntArray | None = None,
    overlap: csr_array | None = None,
) -> DrawnUnits:
    """Return each unit of the draws `order`, (n,), once, by its chance π to be drawn at all.

    With ℓ the log chance to miss a set, summed over rounds, π_c = 1 - e^ℓ(c), and classes of equal chances
    share (π_cd - π_c π_d)/π_cd, with π_cd = 1 - e^ℓ(c) - e^ℓ(d) + e^ℓ(c, d). A round is a batch, a stratum
    of records, or the resolved draws of a class. `overlap` (units, units): chance of a draw to be in both of
    two units that share records, in each round that draws both.
    """
    unit, there = list_distinct(order)
    number = np.bincount(unit.ravel())
    drawn = np.flatnonzero(number)
    row = (np.cumsum(number > 0) - 1)[unit]
    P = np.stack([one.p[drawn] for one in rounds], axis=1)
    at, G = _classify(rounds, P, row)
    log_missed = _miss(rounds, P)
    shared = np.diagonal(G, axis1=-2, axis2=-1)
    shared = np.broadcast_to(shared, (*row.shape[:-1], shared.shape[-1]))
    d = np.exp(log_missed)[row] - np.take_along_axis(shared, at, -1)
    if overlap is not None:
        pairs = overlap[unit][:, unit].tocoo()
        i, j = pairs.coords
        together = _relate(rounds, P[i], P[j], np.minimum(pairs.data[:, None], np.minimum(P[i], P[j])))
        overlap = csr_array((together - G[at[i], at[j]], (i, j)), pairs.shape)
    found = count_included(unit, -np.expm1(log_missed), d, indicate(at, G.shape[-1]), G, row)
    return replace(
        found,
        weight=there * found.weight,
        order=order,
        repeats=repeats,
        stratum=stratum,
        theta=np.array([1.0 if one.population is None else 1 - one.draws / one.population for one in rounds]),
        overlap=overlap,
    )


def list_distinct(order: IntArray) -> tuple[IntArray, BoolArray]:
    """Return the distinct units of draws, (..., n), in order, and whether a row is one, (..., k) each.

    k is the largest number of any sample, and further rows of others repeat their first unit.
    """
    ordered = np.sort(order, axis=-1)
    first = np.ones(ordered.shape, dtype=bool)
    np.not_equal(ordered[..., 1:], ordered[..., :-1], out=first[..., 1:])
    number = np.count_nonzero(first, axis=-1, keepdims=True)
    there = np.arange(number.max()) < number
    unit = np.repeat(ordered[..., :1], there.shape[-1], axis=-1)
    unit[there] = ordered[first]
    return unit, there


def _classify(rounds: Sequence[Round], P: FloatArray, row: IntArray) -> tuple[IntArray, FloatArray]:
    """Return classes by chances P, (drawn, rounds), of rows, (..., k), and what each two share, (g, g).

    Where those of all samples are too many, each has classes of its own, (..., g, g).
    """
    if P.shape[1] == 1:  # rows as structures take longer
        key, at = np.unique(P[:, 0], return_inverse=True)
        key = key[:, None]
    else:
        key, at = np.unique(P, axis=0, return_inverse=True)
    if len(key) > MOST_CLASSES and row.ndim > 1:
        own = (np.unique(one, return_inverse=True) for one in row)
        code, of_each = zip(*(_classify(rounds, P[drawn], back) for drawn, back in own), strict=True)
        G = np.zeros((len(row), *np.max([one.shape for one in of_each], axis=0)))
        for joint, one in zip(G, of_each, strict=True):
            joint[: len(one), : len(one)] = one
        return np.stack(code), G
    if len(key) > MOST_CLASSES:
        size = np.log(P.sum(axis=1))
        step = np.ptp(size) / MOST_CLASSES
        alike = np.column_stack([np.rint((size - size.min()) / step), P > 0])
        at = np.unique(alike, axis=0, return_inverse=True)[1]
        number = np.bincount(at.ravel())
        key = np.column_stack([np.bincount(at.ravel(), p) / number for p in P.T])
    return at.ravel()[row], _relate(rounds, key[:, None], key)


def _miss(rounds: Sequence[Round], P: FloatArray) -> FloatArray:
    """Return the log chances that all rounds miss units with chances P, (..., rounds)."""
    return np.asarray(sum(one.log_missed(P[..., t]) for t, one in enumerate(rounds)))


def _relate(
    rounds: Sequence[Round], P: FloatArray, Q: FloatArray, both: FloatArray | None = None
) -> FloatArray:
    """Return (π_cd - π_c π_d)/π_cd of pairs of units with chances P, Q and `both`, (..., rounds)."""
    both = np.zeros(len(rounds)) if both is None else both
    missed, other = _miss(rounds, P), _miss(rounds, Q)
    with np.errstate(invalid="ignore"):
        of_each = (one.log_excess(P[..., t], Q[..., t], both[..., t]) for t, one in enumerate(rounds))
        excess = np.asarray(sum(of_each))
        neither = np.exp(missed + other)
        # π_cd - π_c π_d as a product: the difference itself cancels for small p
        joint = np.where(neither > 0, neither * np.expm1(np.where(np.isnan(excess), -np.inf, excess)), 0.0)
    apart = np.expm1(missed) * np.expm1(other)
    pair = apart + joint
    # two units of a single draw are never both found, of which rounding may leave something
    return np.asarray(np.divide(joint, pair, out=np.zeros_like(pair), where=pair > 1e-12 * apart))


def count_included(
    unit: IntArray, pi: FloatArray, d: FloatArray, A: csr_array, G: FloatArray, row: Any = ...
) -> DrawnUnits:
    """Return units that are in the sample or not, with chances π, at the positions `row`, (..., k), of pi."""
    n = unit.shape[-1]
    with np.errstate(divide="ignore"):
        repeated = np.where(pi < 1, -np.log1p(-np.minimum(pi, 1)) / pi, np.inf)
    return DrawnUnits(
        unit=unit,
        weight=(1 / pi)[row],
        d=d,
        A=A,
        G=G,
        unseen=(1 - pi)[row],
        repeated=repeated[row],
        third=((1 - pi) * (1 - 2 * pi))[row],
        order=unit,
        scale=((1 - pi) * (n - 1) / n)[row],
        group=np.zeros(n, dtype=np.int64),
    )


def count_each(
    order: IntArray,
    weight: FloatArray,
    stratum: IntArray | None = None,
    fpc: FloatArray | float = 1.0,
    absolute: bool = True,
) -> DrawnUnits:
    """Return a row for each draw, with its weight, of draws that are independent within strata.

    The covariance is Σ_h θ_h n_h/(n_h - 1) Σ_s (z_s - z̄_h)(z_s - z̄_h)' (Cochran 1977, chapter 5).
    """
    h = np.zeros(order.shape[-1], dtype=np.int64) if stratum is None else stratum
    n, shape = np.bincount(h).astype(float), order.shape
    theta = np.broadcast_to(np.asarray(fpc, dtype=float), n.shape)
    factor = theta * np.where(n > 1, n / np.maximum(n - 1, 1), 1.0)
    d = factor[h]
    if len(h) == 1 and theta[0] > 0:
        d = np.full(1, np.nan)
    with np.errstate(divide="ignore"):
        repeated = 1 / theta[h]
    third, scale = theta * (2 * theta - 1), theta * np.where(n > 1, (n - 1) / n, 1.0)
    return DrawnUnits(
        unit=order,
        weight=weight,
        d=np.broadcast_to(d, shape),
        A=indicate(np.broadcast_to(h, shape), len(n)),
        G=-np.diag(factor / n),
        unseen=np.broadcast_to(theta[h], shape),
        repeated=np.broadcast_to(repeated, shape),
        third=np.broadcast_to(third[h], shape),
        order=order,
        scale=scale[h],
        group=h,
        once=False,
        centred=True,
        absolute=absolute,
        df_lost=len(n),
        repeats=weight,
        stratum=h,
        theta=theta,
    )


def count_independent(unit: IntArray, pi: FloatArray) -> DrawnUnits:
    """Return units that enter the sample independently, with chances π (k,) (Poisson draws)."""
    found = count_included(unit, pi, 1 - pi, indicate(np.full(len(unit), -1), 1), np.zeros((1, 1)))
    return replace(found, group=None, scale=1 - pi)


def count_fixed(unit: IntArray, pi: FloatArray, squares: float) -> DrawnUnits:
    """Return a fixed number of units with chances π (k,), `squares` the sum of π² over the population.

    Hartley and Rao (1962) for systematic draws in random order, without those with π = 1, which are certain:
    1/(n - 1) Σ_{s<t} (1 - π_s - π_t + Q/n) (z_s - z_t)(z_s - z_t)'.
    """
    uncertain = pi < 1
    n = int(uncertain.sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        # 1 - π_s - π_t + Q/n as a sum of two
        half = np.where(uncertain, (1 + (squares - (~uncertain).sum()) / n) / 2 - pi, 0.0)
        d = np.where(uncertain, (n * half + half.sum()) / (n - 1), 0.0)
    if n < 2:
        d = np.where(uncertain, np.nan, 0.0)
    A = csr_array(np.column_stack([uncertain.astype(float), half if n else np.zeros(len(pi))]))
    return count_included(unit, pi, d, A, -np.array([[0.0, 1.0], [1.0, 0.0]]) / max(n - 1, 1))
