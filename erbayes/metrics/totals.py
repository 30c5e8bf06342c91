"""Uncertain totals, and the step from them to metrics: linearisation, with derivatives by complex steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._internal.arrays import FloatArray, IntArray
from .._internal.errors import NotIdentified
from .._internal.names import Nearest
from .combinations import compute_covariance, make_sparse
from .definitions import Metric, MetricLike, Support, coefficients_of_size, resolve_metrics
from .estimates import EMPTY, Estimates, describe_reasons, measure_distances
from .unseen import Unseen, count_unseen, kish

ROUNDING = 1e-9
"""Distance of a metric from an end of its range that is rounding, as few draws lose digits of derivatives."""


def gradient(f: Callable[..., Any], x: FloatArray) -> FloatArray:
    """Return the first derivatives of an analytic f at x, (k, ...), exact to rounding, by a complex step."""
    # a complex step subtracts nothing, so that it can be far below rounding
    step = 1e-30 * np.where(x == 0, 1.0, np.abs(x))
    shifted = x[:, None] + 1j * step * np.eye(len(x)).reshape(len(x), len(x), *(1,) * (x.ndim - 1))
    return np.asarray(f(*shifted).imag / step)


def derivatives(f: Callable[..., Any], x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the first, (k, ...), and the second derivatives of f, (k, k, ...), at x, (k, ...)."""
    k = len(x)
    step = 1e-3 * np.where(x == 0, 1.0, np.abs(x))
    points = np.repeat(x[:, None], 1 + 4 * k, axis=1)
    for i in range(k):
        points[i, 1 + 4 * i : 5 + 4 * i] += np.multiply.outer([-2.0, -1.0, 1.0, 2.0], step[i])
    slopes = gradient(f, points)
    shifted = slopes[:, 1:].reshape(k, k, 4, *x.shape[1:])
    # at 1e-3 the errors of five points, step⁴, and of rounding, 2e-16/step, are both about 1e-12
    second = np.tensordot(np.array([1.0, -8.0, 8.0, -1.0]) / 12, shifted, axes=(0, 2)) / step
    return slopes[:, 0], second


SILENT = 1e-16
"""Variance of a metric that is rounding, relative to the square of its parts."""


@dataclass(frozen=True, slots=True, eq=False)
class Totals(Nearest):
    """Estimates of totals with their covariance, (..., k) and (..., k, k), to which metrics are applied.

    `contributions` (..., n, c): those of draws to the first c totals, while the others are known; `unseen`,
    `repeated` (..., n): of each draw, as in `count_unseen`; `df_per_draw`: degrees of freedom; `absolute`:
    false if totals are known up to a common factor; `pseudo_units` (4, k): their columns, and `by_entity`, as
    in `Units`; `unreached_share` (..., 3): of each of `AVERAGED` (see `Unseen`).
    """

    names: tuple[str, ...]
    mean: FloatArray
    cov: FloatArray
    contributions: FloatArray
    unseen: FloatArray
    repeated: FloatArray
    df_per_draw: FloatArray
    absolute: bool
    pseudo_units: FloatArray
    by_entity: bool
    unreached_share: FloatArray

    def sizes(self, metrics: Sequence[Metric]) -> FloatArray:
        """Return contributions of draws to the total that each metric averages over, (..., n, metrics)."""
        J, Z = coefficients_of_size(metrics, self.names[: self.contributions.shape[-1]]), self.contributions
        return np.asarray((make_sparse(J, Z) @ Z.mT).mT)

    def slopes(self, metrics: Sequence[Metric]) -> FloatArray:
        """Return first derivatives of metrics by the totals, (..., metrics, k); NaN for one that is 0/0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            J = self._linearise(metrics, correct=False)[1]
        J[~np.isfinite(J).all(axis=-1)] = np.nan
        return J

    def apply(self, metrics: MetricLike, order: int = 2) -> Estimates:
        """Apply metrics g to the totals t, with covariance V, as g(t) - ½ tr(H V) with covariance J V J'.

        For a ratio these are the corrected estimator and the variance of Binette et al. (2022). Degrees of
        freedom are n_eff (n - lost)/n, with n_eff = (Σa)²/Σa² for the contributions a to the total that the
        metric averages over. What no draw has shown counts against as many draws as `count_unseen` says. A
        metric that is 0/0 is NaN, with a reason.
        """
        metrics, batch = resolve_metrics(metrics), self.mean.shape[:-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            mean, J = self._linearise(metrics, order > 1 and not np.isnan(self.cov).any())
            mean = np.where(np.isinf(mean), np.nan, mean)  # of a denominator of 0
            sizes = self.sizes(metrics)
            df = np.maximum(kish(sizes) * np.asarray(self.df_per_draw)[..., None], 1.0)
        names, empty = tuple([m.name for m in metrics]), np.isnan(mean)
        if empty.all() and not batch:
            raise NotIdentified(f"{', '.join(names)}: {EMPTY}")
        J[empty] = np.nan
        undefined = () if batch else tuple([EMPTY if none else "" for none in empty])
        support = tuple([m.support for m in metrics])
        for end in np.transpose(support):  # an end of the range, for what is there up to rounding
            mean = np.where(np.abs(mean - end) <= ROUNDING, end, mean)
        cov = compute_covariance(J, self.cov)
        # variances of totals are differences of large numbers, so that draws that are alike leave rounding
        size = (np.abs(J) @ np.abs(self.mean)[..., None])[..., 0] ** 2
        still = np.abs(np.diagonal(cov, axis1=-2, axis2=-1)) <= SILENT * size
        in_error = np.array([[metric.count_in_error(self.by_entity), 1.0] for metric in metrics])
        return Estimates(
            names=names,
            mean=mean,
            cov=np.where(still[..., None] | still[..., None, :], 0.0, cov),
            df=df,
            support=support,
            undefined=undefined,
            unseen=Unseen(
                effective=count_unseen(sizes, self.unseen, self.repeated),
                reach=self._find_extremes(metrics, mean, J, support) * in_error,
                unreached_share=self._take_unreached_shares(metrics),
            ),
        )

    def _linearise(self, metrics: Sequence[Metric], correct: bool) -> tuple[FloatArray, FloatArray]:
        """Return metrics, `correct` for bias or not, (..., metrics), and their slopes, (..., metrics, k)."""
        batch = self.mean.shape[:-1]
        mean, J = np.empty((*batch, len(metrics))), np.zeros((*batch, len(metrics), len(self.names)))
        for metric in metrics:
            if metric.absolute and not self.absolute:
                what = "absolute weights; this design knows them up to a factor"
                raise NotIdentified(f"{metric.name} needs {what}")
        for formula, j, place in group_by_formula(metrics, self.names):
            x = np.moveaxis(self.mean[..., place], -1, 0)
            mean[..., j] = formula(*x)
            if not correct:
                J[..., j[:, None], place] = np.moveaxis(gradient(formula, x), 0, -1)
                continue
            first, second = derivatives(formula, x)
            J[..., j[:, None], place] = np.moveaxis(first, 0, -1)
            V = np.moveaxis(self.cov[..., place[:, :, None], place[:, None, :]], (-2, -1), (0, 1))
            mean[..., j] -= np.sum(second * V, axis=(0, 1)) / 2
        return mean, J

    def _take_unreached_shares(self, metrics: Sequence[Metric]) -> FloatArray:
        """Return the unreached share, (..., metrics): 0 for metrics that average over nothing of the kind."""
        if not self.unreached_share.any():
            return np.zeros(1)
        share = np.pad(self.unreached_share, [(0, 0)] * (self.unreached_share.ndim - 1) + [(0, 1)])
        return share[..., [metric.averaged[self.by_entity] for metric in metrics]]

    def _find_extremes(
        self, metrics: Sequence[Metric], mean: FloatArray, J: FloatArray, support: Sequence[Support]
    ) -> FloatArray:
        """Return `Unseen.reach`: the least and the largest J y of pseudo-units, (..., metrics, 2)."""
        sized = coefficients_of_size(metrics, self.names)
        uncounted = np.isnan(self.pseudo_units).any(axis=0)
        columns = np.where(uncounted, 0.0, self.pseudo_units).T
        with np.errstate(divide="ignore", invalid="ignore"):
            # scaled, so that an entity is as large as the sample in the total that the metric averages over
            moved = J @ columns * (self.mean @ sized.T)[..., None] / (sized @ columns)
        moved = np.where(np.isfinite(moved), moved, 0.0)
        least, most = np.array(support).T
        down = np.clip(moved.min(axis=-1), np.minimum(least - mean, 0), 0)
        up = np.clip(moved.max(axis=-1), 0, np.maximum(most - mean, 0))
        unknown = (J[..., uncounted] != 0).any(axis=-1) | sized[:, uncounted].any(axis=-1)
        return np.where(unknown[..., None], measure_distances(mean, support), np.stack([down, up], axis=-1))


def group_by_formula(
    metrics: Sequence[Metric], names: Sequence[str]
) -> list[tuple[Callable[..., Any], IntArray, IntArray]]:
    """Return each formula with its metrics, (a,), and the positions of their totals in `names`, (a, k)."""
    at = {name: i for i, name in enumerate(names)}  # domains have thousands of totals
    shared = dict[Callable[..., Any], list[int]]()
    for j, metric in enumerate(metrics):
        if lacking := [c.name for c in metric.columns if c.name not in at]:
            raise NotIdentified(f"{metric.name} needs {lacking}, which are not among the totals")
        shared.setdefault(metric.formula, []).append(j)
    place = [[at[c.name] for c in metric.columns] for metric in metrics]
    return [(f, np.array(j), np.array([place[i] for i in j])) for f, j in shared.items()]


def evaluate(metrics: Sequence[Metric], names: Sequence[str], totals: FloatArray) -> FloatArray:
    """Return metrics, (..., metrics), of totals of these names, (..., k); NaN or ∞ for a denominator of 0."""
    values = np.empty((*totals.shape[:-1], len(metrics)))
    with np.errstate(divide="ignore", invalid="ignore"):
        for formula, j, place in group_by_formula(metrics, names):
            values[..., j] = formula(*np.moveaxis(totals[..., place], -1, 0))
    return values


def evaluate_draws(metrics: MetricLike, names: tuple[str, ...], totals: FloatArray) -> Estimates:
    """Return draws of metrics, (chain, draw, k), from those of named totals, (chain, draw, total).

    Draws of totals may break their inequalities, so that a draw of a metric outside its support is set to the
    end of the support. A metric that is 0/0 in a draw is NaN there.
    """
    metrics = resolve_metrics(metrics)
    support = tuple(m.support for m in metrics)
    values = np.clip(evaluate(metrics, names, totals), *np.transpose(support))
    draws = Estimates.of_draws(tuple(m.name for m in metrics), values, support)
    if all(draws.reasons):
        raise NotIdentified(describe_reasons(draws))
    return draws
