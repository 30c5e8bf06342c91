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
from .definitions import Metric, MetricLike, coefficients_of_size, resolve_metrics
from .estimates import EMPTY, Estimates, describe_reasons, measure_distances
from .intervals import Support
from .unseen import Unseen

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

    `moment`, `missing` (..., k, k): Σ z z' of the contributions z of draws, and Σ (1 - π) z z'/r, with r as
    in `Variance.repeated`; `df_per_draw`: degrees of freedom; `unseen` (..., k): what is estimated to be in
    no sampled unit; `absolute`: false if totals are known up to a common factor; `pseudo_units` (4, k): their
    columns (see `Units.pseudo_units`); `unreached_share` (..., 3): of each of `AVERAGED` (see `Unseen`).
    """

    names: tuple[str, ...]
    mean: FloatArray
    cov: FloatArray
    moment: FloatArray
    missing: FloatArray
    df_per_draw: FloatArray
    unseen: FloatArray
    absolute: bool
    pseudo_units: FloatArray
    unreached_share: FloatArray

    def positions(self, metric: Metric) -> list[int]:
        """Return the positions of a metric's totals; NotIdentified if it has none, or needs absolute ones."""
        if metric.absolute and not self.absolute:
            what = "absolute weights; this design knows them up to a factor"
            raise NotIdentified(f"{metric.name} needs {what}")
        return positions(metric, self.names)

    def evaluate(self, metrics: Sequence[Metric], totals: FloatArray) -> FloatArray:
        """Return the metrics of other totals of the same names, (n, k), as (n, metrics)."""
        values = np.empty((len(totals), len(metrics)))
        with np.errstate(divide="ignore", invalid="ignore"):
            for formula, j, place in self._group_by_formula(metrics):
                values[:, j] = formula(*np.moveaxis(totals[:, place], -1, 0))
        return values

    def slopes(self, metrics: Sequence[Metric]) -> FloatArray:
        """Return first derivatives of metrics by the totals, (..., metrics, k); NaN for one that is 0/0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            J = self._linearise(metrics, correct=False)[1]
        J[~np.isfinite(J).all(axis=-1)] = np.nan
        return J

    def _group_by_formula(
        self, metrics: Sequence[Metric]
    ) -> list[tuple[Callable[..., Any], IntArray, IntArray]]:
        """Return each formula with its metrics, (a,), and the positions of their totals, (a, k)."""
        at = {name: i for i, name in enumerate(self.names)}  # domains have thousands of totals
        shared, place = dict[Callable[..., Any], list[int]](), list[list[int]]()
        for j, metric in enumerate(metrics):
            shared.setdefault(metric.formula, []).append(j)
            names = [c.name for c in metric.columns]
            if (metric.absolute and not self.absolute) or not at.keys() >= {*names}:
                self.positions(metric)  # refuses it
            place.append([at[name] for name in names])
        return [(f, np.array(j), np.array([place[i] for i in j])) for f, j in shared.items()]

    def apply(self, metrics: MetricLike, order: int = 2) -> Estimates:
        """Apply metrics g to the totals t, with covariance V, as g(t) - ½ tr(H V) with covariance J V J'.

        For a ratio these are the corrected estimator and the variance of Binette et al. (2022). Degrees of
        freedom are n_eff (n - lost)/n, with n_eff = (Σa)²/Σa² for the contributions a to the total that the
        metric averages over. What no draw has shown is in the unseen part of it, Σ(1-π)a, and counts against
        Σ(1-π)a Σa/Σ((1-π)a²/r) draws, n_eff/θ without repeats. A metric that is 0/0 is NaN, with a reason.
        """
        metrics, batch = resolve_metrics(metrics), self.mean.shape[:-1]
        sized = coefficients_of_size(metrics, self.names)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean, J = self._linearise(metrics, order > 1 and not np.isnan(self.cov).any())
            mean = np.where(np.isinf(mean), np.nan, mean)  # of a denominator of 0
            total, unseen = self.mean @ sized.T, self.unseen @ sized.T
            effective = total**2 / self._compute_squares(sized, self.moment)
            df = np.maximum(effective * np.asarray(self.df_per_draw)[..., None], 1.0)
            # draws that met a large unit again would have met others, had they erred
            missed = self._compute_squares(sized, self.missing)
            draws = np.where(unseen > 0, unseen * total / missed, np.where(total == 0, np.nan, np.inf))
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
        in_error = np.array([[metric.clusters_in_error, 1.0] for metric in metrics])
        return Estimates(
            names=names,
            mean=mean,
            cov=np.where(still[..., None] | still[..., None, :], 0.0, cov),
            df=df,
            support=support,
            undefined=undefined,
            unseen=Unseen(
                effective=draws,
                reach=self._find_extremes(mean, J, sized, support) * in_error,
                unreached_share=self._take_unreached_shares(metrics),
            ),
        )

    def unseen_shares(self, sized: FloatArray) -> FloatArray:
        """Return the unseen share θ of the total that each row of coefficients makes, (..., metrics)."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.clip(self.unseen @ sized.T / (self.mean @ sized.T), 0.0, 1.0)

    def _linearise(self, metrics: Sequence[Metric], correct: bool) -> tuple[FloatArray, FloatArray]:
        """Return metrics, `correct` for bias or not, (..., metrics), and their slopes, (..., metrics, k)."""
        batch = self.mean.shape[:-1]
        mean, J = np.empty((*batch, len(metrics))), np.zeros((*batch, len(metrics), len(self.names)))
        for formula, j, place in self._group_by_formula(metrics):
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
        return share[..., [-1 if metric.averaged is None else metric.averaged for metric in metrics]]

    def _compute_squares(self, sized: FloatArray, M: FloatArray) -> FloatArray:
        """Return s'Ms of each row s of `sized`, (..., metrics). Rows have few entries."""
        return np.asarray(np.sum((make_sparse(sized, M) @ M) * sized, axis=-1))

    def _find_extremes(
        self, mean: FloatArray, J: FloatArray, sized: FloatArray, support: Sequence[Support]
    ) -> FloatArray:
        """Return `Unseen.reach`: the least and the largest J y of pseudo-units, (..., metrics, 2)."""
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


def evaluate_draws(metrics: MetricLike, names: tuple[str, ...], totals: FloatArray) -> Estimates:
    """Return draws of metrics, (chain, draw, k), from those of named totals, (chain, draw, total).

    Draws of totals may break their inequalities, so that a draw of a metric outside its support is set to the
    end of the support. A metric that is 0/0 in a draw is NaN there.
    """
    metrics = resolve_metrics(metrics)
    values = np.empty((*totals.shape[:-1], len(metrics)))
    columns = np.ascontiguousarray(np.moveaxis(totals, -1, 0))
    for j, metric in enumerate(metrics):
        with np.errstate(divide="ignore", invalid="ignore"):
            values[..., j] = metric.formula(*(columns[i] for i in positions(metric, names)))
    support = tuple(m.support for m in metrics)
    values = np.clip(values, *np.transpose(support))
    draws = Estimates.of_draws(tuple(m.name for m in metrics), values, support)
    if all(draws.reasons):
        raise NotIdentified(describe_reasons(draws))
    return draws


def positions(metric: Metric, names: Sequence[str]) -> list[int]:
    """Return the positions of a metric's totals among `names`, and refuse a metric without one of them."""
    lacking = [c.name for c in metric.columns if c.name not in names]
    if lacking:
        raise NotIdentified(f"{metric.name} needs {lacking}, which are not among the totals")
    return [names.index(c.name) for c in metric.columns]
