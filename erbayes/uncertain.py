"""Uncertain vectors, and the intervals, contrasts and tables that follow from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import ndtr

from .arrays import FloatArray, Seed, generator
from .digits import shown
from .errors import DataError, NotIdentified, some
from .intervals import DEFAULT, Distribution, EqualTailed, Kind, Support, interval
from .metrics import Metric, Wanted, chosen

NEGATIVE = (
    "its variance estimate is below 0, as that of Horvitz and Thompson can be in a small sample: use the "
    "jackknife, keep the draws with their repeats (UniformRecords), or label more units"
)
EMPTY = "it is 0/0 in this sample, which holds none of what it averages over"


class Tabled(ABC):
    """A result that prints as its table, in a console and in a notebook (see `erbayes.digits`)."""

    __slots__ = ()

    @abstractmethod
    def table(self) -> pd.DataFrame: ...

    def __repr__(self) -> str:
        return f"{type(self).__name__}\n{shown(self.table()).to_string(max_rows=60)}"

    def _repr_html_(self) -> str:
        return f"{type(self).__name__}{shown(self.table()).to_html(max_rows=60)}"


class Uncertain(Tabled):
    """An uncertain vector: what every engine returns.

    Attributes
    ----------
    names : tuple of str, (k,)
    support : tuple of (float, float), (k,)
    kind : Kind
        Of its intervals, if no other is asked for.
    """

    __slots__ = ()
    kind: ClassVar[Kind]
    names: tuple[str, ...]
    support: tuple[Support, ...]

    @property
    @abstractmethod
    def estimate(self) -> FloatArray:
        """Point estimates, (..., k)."""

    @property
    @abstractmethod
    def reasons(self) -> tuple[str, ...]:
        """Why a component has no estimate or no standard error, (k,); "" for those that have both."""

    @abstractmethod
    def spread(self) -> dict[str, FloatArray]:
        """Columns of tables that say how uncertain the components are, (..., k) each."""

    @abstractmethod
    def as_draws(self, number: int = 4000, rng: Seed = None, kind: Distribution = DEFAULT) -> Draws:
        """Draws of the vector.

        Parameters
        ----------
        number : int
            Draws to make from a distribution. A result that consists of draws has all of them.
        rng : Generator, int or None
        kind : Distribution
            Of each component of a `Normal`.
        """

    def interval(self, level: float = 0.95, kind: Kind | None = None) -> FloatArray:
        """Two-sided intervals, (..., k, 2), cut to the support.

        Parameters
        ----------
        level : float in (0, 1)
        kind : Kind, optional
            By default `kind` of the class.

        Raises
        ------
        DataError
            A level outside (0, 1), or a kind that this result cannot have.
        """
        return interval(self, level, self.kind if kind is None else kind)

    def table(self, level: float = 0.95, kind: Kind | None = None) -> pd.DataFrame:
        """Estimate, uncertainty, interval and its kind, one row per component.

        A column `reason` follows if a component has no estimate or no standard error.

        Parameters
        ----------
        level : float in (0, 1)
        kind : Kind, optional
            As in `interval`.
        """
        bounds, shape = self.interval(level, kind), self.estimate.shape
        labels = np.broadcast_to([(kind or self.kind).label(s) for s in self.support], shape)
        index = pd.Index(self.names, name="metric")
        if len(shape) > 1:
            index = pd.MultiIndex.from_product([*map(range, shape[:-1]), self.names])
        columns = {
            "estimate": self.estimate,
            **self.spread(),
            "lower": bounds[..., 0],
            "upper": bounds[..., 1],
            "level": np.full(shape, level),
            "kind": np.where(np.isnan(bounds[..., 0]), "none", labels),
        }
        reasons = np.broadcast_to(self.reasons, shape).ravel()
        return pd.DataFrame({k: x.ravel() for k, x in columns.items()} | reason_column(reasons), index=index)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Normal(Uncertain):
    """An uncertain vector with mean and covariance.

    Leading axes, of a study's samples, go through everything but `contrast`.

    Attributes
    ----------
    names : tuple of str, (k,)
    mean : float array, (..., k)
    cov : float array, (..., k, k)
        NaN where the sample gives no variance (a single draw).
    df : float array, (..., k)
        Degrees of freedom of each standard error.
    support : tuple of (float, float), (k,)
    draws : float array, (..., k), or float
        Effective number of draws over their finite-population correction, n_eff/θ: ∞ for a census.
    extremes : float array, (..., k, 2), optional
        How far each metric would move, to first order, if all draws were of the entity that raises it most,
        and of the one that lowers it most. By default to the ends of a bounded support, else not at all.
    undefined : tuple of str, (k,)
        Why a component is NaN, "" for those that are not; empty where none is.
    """

    kind: ClassVar[Kind] = DEFAULT
    names: tuple[str, ...]
    mean: FloatArray
    cov: FloatArray
    df: FloatArray
    support: tuple[Support, ...]
    draws: FloatArray | float = np.inf
    extremes: FloatArray | None = None
    undefined: tuple[str, ...] = ()

    @property
    def estimate(self) -> FloatArray:
        return self.mean

    @property
    def _variance(self) -> FloatArray:
        variance = np.diagonal(self.cov, axis1=-2, axis2=-1)
        return np.where(np.abs(variance) <= 1e-24 * np.maximum(self.mean**2, 1), 0.0, variance)

    @property
    def reasons(self) -> tuple[str, ...]:
        below = np.moveaxis(self._variance < 0, -1, 0)
        given = self.undefined or ("",) * len(self.names)
        return tuple(why or (NEGATIVE if bad.any() else "") for why, bad in zip(given, below, strict=True))

    @property
    def sd(self) -> FloatArray:
        """Standard errors, (..., k); 0 where only rounding is left, NaN where there is none (see `reasons`).

        Raises
        ------
        DataError
            No component has one, since variance estimates are below 0.
        """
        variance = self._variance
        if (variance < 0).any() and all(self.reasons):
            told = (f"{name}: {why}" for name, why in zip(self.names, self.reasons, strict=True))
            raise DataError("; ".join(told))
        return np.sqrt(np.where(variance < 0, np.nan, variance))

    @property
    def reach(self) -> FloatArray:
        """`extremes`, or their default, (..., k, 2)."""
        if self.extremes is not None:
            return self.extremes
        return _to_the_ends(self.mean, self.support)

    def spread(self) -> dict[str, FloatArray]:
        return {"se": self.sd, "df": np.broadcast_to(self.df, self.mean.shape)}

    def as_draws(self, number: int = 4000, rng: Seed = None, kind: Distribution = DEFAULT) -> Draws:
        """Draws from the distributions that give the intervals, joined by a normal copula."""
        known = self.sd > 0
        sd = np.where(known, self.sd, 1.0)
        correlation = np.where(np.outer(known, known), self.cov / np.outer(sd, sd), np.eye(len(sd)))
        value, vector = np.linalg.eigh(correlation)
        z = generator(rng).standard_normal((number, len(sd))) * np.sqrt(np.maximum(value, 0))
        values = np.clip(kind.quantile(self, ndtr(z @ vector.T)), *np.transpose(self.support))
        return Draws(self.names, values[None], self.support, self.mean)

    def part(self, at: Sequence[int]) -> Normal:
        """The components at these positions, jointly.

        Parameters
        ----------
        at : sequence of int
            From 0, in the order of `names`. Negative ones count from the end.

        Raises
        ------
        DataError
            A name in the place of a position, or a position that there is none of.
        """
        j = _at(at, self.names)
        return Normal(
            tuple(self.names[i] for i in j),
            self.mean[..., j],
            self.cov[..., j, :][..., j],
            self.df[..., j],
            tuple(self.support[i] for i in j),
            np.broadcast_to(self.draws, self.mean.shape)[..., j],
            self.reach[..., j, :],
            tuple(self.undefined[i] for i in j) if self.undefined else (),
        )

    def contrast(self, weights: FloatArray, names: Sequence[str]) -> Normal:
        """Linear combinations, `weights` of shape (j, k): differences of correlated estimates.

        Raises
        ------
        DataError
            Weights of another shape than (names, components), or a row of zeros.
        """
        C = _weights(weights, names, self.names)
        df = np.array([self.df[row != 0].min() for row in C])
        cov = _carried(C, np.where(np.isnan(self.cov), 0.0, self.cov), 1e-12)
        lost = (C != 0) @ np.isnan(np.diagonal(self.cov))
        cov[lost], cov[:, lost] = np.nan, np.nan
        given = np.array(self.undefined or ("",) * len(self.names), dtype=object)
        undefined = tuple("; ".join(dict.fromkeys(filter(None, given[row != 0]))) for row in C)
        mean, support = _combined(C, self.mean), ((-np.inf, np.inf),) * len(C)
        return Normal(tuple(names), mean, cov, df, support, undefined=undefined)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Draws(Uncertain):
    """An uncertain vector as draws of it: bootstrap replicates or a posterior sample.

    Attributes
    ----------
    names : tuple of str, (k,)
    values : float array, (chain, draw, k)
    support : tuple of (float, float), (k,)
    centre : float array, (k,), optional
        Estimates around which the draws lie. By default their means.
    """

    kind: ClassVar[Kind] = EqualTailed()
    names: tuple[str, ...]
    values: FloatArray
    support: tuple[Support, ...]
    centre: FloatArray | None = None

    @property
    def estimate(self) -> FloatArray:
        return self.mean if self.centre is None else self.centre

    @property
    def flat(self) -> FloatArray:
        """All draws, (chain x draw, k)."""
        return self.values.reshape(-1, self.values.shape[-1])

    @property
    def reasons(self) -> tuple[str, ...]:
        few = "draws: too few units hold what it averages over; label more"
        undefined = np.isnan(self.flat).sum(axis=0).tolist()
        return tuple(f"it is 0/0 in {n} of {len(self.flat)} {few}" if n else "" for n in undefined)

    @property
    def mean(self) -> FloatArray:
        """Means over draws, (k,)."""
        return np.asarray(self.flat.mean(axis=0))

    @property
    def cov(self) -> FloatArray:
        """Covariances over draws, (k, k)."""
        return np.atleast_2d(np.cov(self.flat, rowvar=False))

    @property
    def sd(self) -> FloatArray:
        """Standard deviations over draws, (k,)."""
        return np.asarray(self.flat.std(axis=0, ddof=1))

    def spread(self) -> dict[str, FloatArray]:
        return {"sd": self.sd}

    def as_draws(self, number: int = 4000, rng: Seed = None, kind: Distribution = DEFAULT) -> Draws:
        return self

    def part(self, at: Sequence[int]) -> Draws:
        """The components at these positions, jointly."""
        j = list(at)
        return Draws(
            tuple(self.names[i] for i in j),
            self.values[..., j],
            tuple(self.support[i] for i in j),
            self.estimate[j],
        )

    def contrast(self, weights: FloatArray, names: Sequence[str]) -> Draws:
        """Linear combinations, `weights` of shape (j, k): differences of correlated quantities.

        Raises
        ------
        DataError
            Weights of another shape than (names, components), or a row of zeros.
        """
        C = _weights(weights, names, self.names)
        support = ((-np.inf, np.inf),) * len(C)
        return Draws(tuple(names), _combined(C, self.values), support, _combined(C, self.estimate))

    def apply(self, metrics: Wanted) -> Draws:
        """Metrics of totals, draw by draw; NaN where one is 0/0 (see `reasons`).

        Raises
        ------
        NotIdentified
            A total that is not among the draws, or every metric 0/0 in some draws.
        """
        metrics = chosen(metrics)
        values = np.empty((*self.values.shape[:-1], len(metrics)))
        totals = np.ascontiguousarray(np.moveaxis(self.values, -1, 0))
        for j, metric in enumerate(metrics):
            at = positions(metric, self.names)
            with np.errstate(divide="ignore", invalid="ignore"):
                values[..., j] = metric.formula(*(totals[i] for i in at))
        found = Draws(tuple(m.name for m in metrics), values, tuple(m.support for m in metrics))
        if all(found.reasons):
            told = (f"{name}: {why}" for name, why in zip(found.names, found.reasons, strict=True))
            raise NotIdentified("; ".join(told))
        return found


def _to_the_ends(mean: FloatArray, support: Sequence[Support]) -> FloatArray:
    """How far each mean is from the ends of its support, (..., k, 2); 0 where that is not bounded."""
    ends = np.where(np.isfinite(support).all(axis=1, keepdims=True), support, np.nan)
    return np.nan_to_num(ends - mean[..., None])


def reason_column(reasons: Iterable[str]) -> dict[str, list[str]]:
    """A column of reasons, where there is one."""
    column = list(reasons)
    return {"reason": column} if any(column) else {}


def _carried(J: FloatArray, V: FloatArray, rounding: float = 1e-14) -> FloatArray:
    """J V J', and 0 where all but a share `rounding` cancels, or less than a trillionth is left below 0."""
    cov = J @ V @ np.swapaxes(J, -1, -2)
    size = np.abs(J) @ np.abs(V) @ np.swapaxes(np.abs(J), -1, -2)
    return np.where((np.abs(cov) <= rounding * size) | ((cov < 0) & (cov >= -1e-12 * size)), 0.0, cov)


def _at(at: Any, names: Sequence[str]) -> list[int]:
    """Positions among `names`, (j,)."""
    j = list(at) if isinstance(at, Iterable) and not isinstance(at, str) else [at]
    k = len(names)
    bad = [i for i in j if isinstance(i, bool) or not isinstance(i, int | np.integer) or not -k <= i < k]
    if bad or not j:
        raise DataError(
            f"components are taken by position, 0 to {k - 1}, not {some(bad) or 'none'}; they are "
            + ", ".join(f"{i} {name}" for i, name in enumerate(names))
        )
    return [int(i) for i in j]


def _weights(weights: Any, names: Sequence[str], of: Sequence[str]) -> FloatArray:
    """Weights of linear combinations, (names, of)."""
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise DataError(f"names of combinations must be a list of str, not {names!r}")
    try:
        C = np.atleast_2d(np.asarray(weights, dtype=float))
    except (TypeError, ValueError) as error:
        raise DataError(f"weights of a combination must be numbers, one row per name: {error}") from error
    if C.shape != (len(names), len(of)):
        raise DataError(
            f"weights must have one row per name, {len(names)}, and one column per component, {len(of)}, "
            f"not shape {C.shape}"
        )
    if not np.isfinite(C).all():
        raise DataError("weights of a combination must be finite")
    if not (C != 0).any(axis=1).all():
        raise DataError("weights of a combination are all 0")
    return C


def _combined(C: FloatArray, x: FloatArray) -> FloatArray:
    """Linear combinations of the last axis; NaN only where a NaN has weight."""
    lost = np.isnan(x) @ (C != 0).T
    return np.where(lost, np.nan, np.where(np.isnan(x), 0.0, x) @ C.T)


def positions(metric: Metric, names: Sequence[str]) -> list[int]:
    """Where among `names` a metric's totals are.

    Raises
    ------
    NotIdentified
        A total that the engine did not produce.
    """
    lacking = [c.name for c in metric.columns if c.name not in names]
    if lacking:
        raise NotIdentified(f"{metric.name} needs {lacking}, which are not among the totals")
    return [names.index(c.name) for c in metric.columns]


def gradient(f: Callable[..., Any], x: FloatArray) -> FloatArray:
    """First derivatives by complex steps, exact to rounding: of the shape of x, (k, ...)."""
    step = 1e-30 * np.where(x == 0, 1.0, np.abs(x))
    shifted = x[:, None] + 1j * step * np.eye(len(x)).reshape(len(x), len(x), *(1,) * (x.ndim - 1))
    return np.asarray(f(*shifted).imag / step)


def derivatives(f: Callable[..., Any], x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """First, (k, ...), and second derivatives, (k, k, ...), at x, (k, ...).

    The second are five-point differences of complex-step gradients.
    """
    k = len(x)
    step = 1e-3 * np.where(x == 0, 1.0, np.abs(x))
    points = np.repeat(x[:, None], 1 + 4 * k, axis=1)
    for i in range(k):
        points[i, 1 + 4 * i : 5 + 4 * i] += np.multiply.outer([-2.0, -1.0, 1.0, 2.0], step[i])
    slopes = gradient(f, points)
    shifted = slopes[:, 1:].reshape(k, k, 4, *x.shape[1:])
    second = np.tensordot(np.array([1.0, -8.0, 8.0, -1.0]) / 12, shifted, axes=(0, 2)) / step
    return slopes[:, 0], second


@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """An uncertain vector of totals, to which metrics are applied.

    Attributes
    ----------
    names : tuple of str, (k,)
    mean, cov : float arrays, (..., k), (..., k, k)
        Known totals have variance 0. Leading axes are those of a study's samples.
    moment : float array, (..., k, k)
        Σ over draws of z z': gives the effective number of draws of any linear form.
    free : float
        Share of the draws that is left once strata and calibration have taken their degrees of freedom,
        (n - lost)/n.
    theta : float
        Finite-population correction, averaged over draws.
    absolute : bool
        False where totals are known only up to a common factor.
    stock : float array, (4, k)
        Totals of one entity each: all right, all wrong, and two singletons; NaN where a column cannot be
        counted on them.
    """

    names: tuple[str, ...]
    mean: FloatArray
    cov: FloatArray
    moment: FloatArray
    free: float
    theta: float
    absolute: bool
    stock: FloatArray

    def where(self, metric: Metric) -> list[int]:
        """Positions of a metric's totals.

        Raises
        ------
        NotIdentified
            A total that the engine did not produce, or one known only up to a factor.
        """
        if metric.absolute and not self.absolute:
            raise NotIdentified(
                f"{metric.name} needs absolute weights; this design knows them up to a factor"
            )
        return positions(metric, self.names)

    def slopes(self, metrics: Sequence[Metric]) -> FloatArray:
        """J: first derivatives of the metrics by the totals, (metrics, k); NaN for one that is 0/0."""
        J = np.zeros((len(metrics), len(self.names)))
        with np.errstate(divide="ignore", invalid="ignore"):
            for j, metric in enumerate(metrics):
                at = self.where(metric)
                J[j, at] = gradient(metric.formula, self.mean[at])
        J[~np.isfinite(J).all(axis=1)] = np.nan
        return J

    def apply(self, metrics: Wanted, order: int = 2) -> Normal:
        """The metrics, jointly Normal.

        Value g(t) - ½ tr(H V) and covariance J V J' (for a ratio this is the paper's corrected
        estimator and its variance). With `order=1` the value is g(t); so it is where the sample
        gives no variance. Degrees of freedom: n_eff (n - lost)/n with n_eff = (Σa)²/Σa², a the
        contributions to what the metric averages over. For one stratum that n draws share evenly this is
        n - 1, as in R's survey. A metric that is 0/0 in the sample is NaN (see `Normal.reasons`).

        Raises
        ------
        NotIdentified
            A total that the engine did not produce, or every metric 0/0.
        """
        metrics, batch = chosen(metrics), self.mean.shape[:-1]
        J = np.zeros((*batch, len(metrics), len(self.names)))
        mean = np.empty((*batch, len(metrics)))
        sized = np.zeros((len(metrics), len(self.names)))
        correct = order > 1 and not np.isnan(self.cov).any()
        with np.errstate(divide="ignore", invalid="ignore"):
            for j, metric in enumerate(metrics):
                at = self.where(metric)
                x = np.moveaxis(self.mean[..., at], -1, 0)
                mean[..., j] = metric.formula(*x)
                if not correct:
                    J[..., j, at] = np.moveaxis(gradient(metric.formula, x), 0, -1)
                else:
                    first, second = derivatives(metric.formula, x)
                    J[..., j, at] = np.moveaxis(first, 0, -1)
                    V = np.moveaxis(self.cov[..., np.array(at)[:, None], at], (-2, -1), (0, 1))
                    mean[..., j] -= np.sum(second * V, axis=(0, 1)) / 2
                for column, coefficient in metric.size:
                    if column.name in self.names:
                        sized[j, self.names.index(column.name)] = coefficient
            square = np.einsum("jk,...kl,jl->...j", sized, self.moment, sized)
            effective = (self.mean @ sized.T) ** 2 / square
            df, draws = np.maximum(effective * self.free, 1.0), effective / np.float64(self.theta)
        names, empty = tuple(m.name for m in metrics), np.isnan(mean)
        if empty.all() and not batch:
            raise NotIdentified(f"{', '.join(names)}: {EMPTY}")
        J[empty] = np.nan
        undefined = () if batch else tuple(EMPTY if none else "" for none in empty)
        support = tuple(m.support for m in metrics)
        extremes = self._extremes(mean, J, sized, support)
        return Normal(names, mean, _carried(J, self.cov), df, support, draws, extremes, undefined)

    def _extremes(
        self, mean: FloatArray, J: FloatArray, sized: FloatArray, support: Sequence[Support]
    ) -> FloatArray:
        """J y of the stock entities, each as large as the whole sample in what a metric averages over."""
        uncounted = np.isnan(self.stock).any(axis=0)
        stock = np.where(uncounted, 0.0, self.stock).T
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = J @ stock * (self.mean @ sized.T)[..., None] / (sized @ stock)
        moved = np.where(np.isfinite(moved), moved, 0.0)
        least, most = np.array(support).T
        down = np.clip(moved.min(axis=-1), np.minimum(least - mean, 0), 0)
        up = np.clip(moved.max(axis=-1), 0, np.maximum(most - mean, 0))
        unknown = (J[..., uncounted] != 0).any(axis=-1) | sized[:, uncounted].any(axis=-1)
        return np.where(unknown[..., None], _to_the_ends(mean, support), np.stack([down, up], axis=-1))
